/* Functions compiled once for each width of registers; the widest that the machine has is called.
 */
#ifndef PO_BASE_CLONES_H
#define PO_BASE_CLONES_H

/* PO_CLONES("avx512f", "avx2") before a function whose results are the same with all of them.
 * Nothing where the compiler or a sanitizer cannot choose at load time. */
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) &&                             \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define PO_CLONES(...) __attribute__((target_clones(__VA_ARGS__, "default")))
#else
#define PO_CLONES(...)
#endif

#endif

/* Prints muGraphs as C: one function for each, by the schedule that the tree states. */
#ifndef PO_CODEGEN_KERNEL_H
#define PO_CODEGEN_KERNEL_H

#include "mugraph/open.h"

typedef struct po_isa {
    const char *name; /* "avx512", "avx2" */
    uint32_t lanes;   /* floats a vector */
    uint32_t registers;
    const char *flags; /* of the compiler */
} po_isa;

enum { PO_ISA_AVX512, PO_ISA_AVX2, PO_ISAS };
extern const po_isa po_isas[PO_ISAS];

/* Rows and lanes that registers hold of a tile that adds up, at most as many as are given: the tile
 * that is printed for the instruction set. `extent`: rows in all, which come out most even so; 0:
 * any number. */
void po_isa_tile(const po_isa *isa, int64_t extent, int64_t *rows, int64_t *lanes);
/* Cycles a step of the sum takes for so many rows in tiles of `high`: two products a cycle, and no
 * less than the latency of one. */
double po_isa_cycles(int64_t rows, int64_t high, int64_t vectors);

/* What every printed file starts with: vectors, their functions (exp, tanh, erf, ... to within 4
 * ulp), and the types of the call below. */
void po_codegen_prelude(const po_isa *isa, po_text *out);

/* Another program for some sizes, with the inputs, outputs and names of the first: it runs where
 * `measure` is from `least` to `most`. The ranges of those of a kernel have nothing in common. */
typedef struct po_kernel_other {
    const char *name; /* what its functions are called by */
    const po_mu_open *open;
    const uint32_t *weight; /* by WEIGHT number of its muGraph: that of the call */
    uint32_t n_weights;
    po_dim measure;
    int64_t least, most;
    bool brief; /* printed in few lines: it has little to do */
} po_kernel_other;
enum { PO_KERNEL_OTHERS = 2 };
typedef struct po_kernel_others {
    po_kernel_other program[PO_KERNEL_OTHERS];
    uint32_t n;
} po_kernel_others;

/* What of a file of several programs was printed: functions of one serve the next as well. Starts
 * with its arena alone, which outlives the last of them. */
typedef struct po_codegen_file {
    po_arena *arena;
    const char *first; /* the program whose name they bear; it outlives them too */
    po_bytes *functions;
    uint32_t n, cap;
} po_codegen_file;

/* Prints, with others or not (NULL: none),
 *
 *     const size_t SYMBOL_sizes;            numbers in z
 *     void SYMBOL_measure(const long *given, long *z);
 *                                           fills z by the lengths of what is open, in the order
 *                                           of the names; z[0], z[1]: floats of device, and of
 *                                           scratch for each part of the pool
 *     void SYMBOL_start(float *device, const long *z);
 *                                           writes what rings hold; once, before the first call of
 *                                           these sizes
 *     void SYMBOL(const float *const *in, const float *const *weight, float *const *out,
 *                 float *device, float *scratch, const long *z, const pk_pool *pool);
 *
 * device and scratch are aligned to 64 bytes and belong to one call at a time. A pool runs
 * fn(arg, part) for every part in [0, parts):
 *
 *     typedef struct pk_pool {
 *         size_t parts;
 *         void (*run)(void *self, void (*fn)(void *arg, size_t part), void *arg);
 *         void *self;
 *     } pk_pool;
 *
 * Steps that do the same on other tensors, as layers of one shape do, share one function, in all
 * programs of `file` (NULL: it has this one alone). The GRID loops of a step are dealt out to the
 * parts in order; parts do not change the bits of the result. The muGraph stands above the function
 * as a comment. PO_UNSUPPORTED where a statement has no printer. */
po_status po_codegen_kernel(po_ctx *ctx, const po_mu_open *open, const po_kernel_others *others,
                            const po_isa *isa, const char *symbol, po_codegen_file *file,
                            po_text *out);

/* A length over names (ir/size.h) as an expression of C, with pk_quotient(a, n) for a / n rounded
 * down, pk_least(a, b) and pk_most(a, b). */
void po_codegen_length(po_dim length, po_text *out);

/* Where the tensors of DEVICE places lie: floats from the start of `device` to the start of each
 * (its element 0 is `origin` floats further); -1 for other places. For those who look on. */
po_status po_codegen_places(po_ctx *ctx, const po_mu *mu, const po_isa *isa, int64_t *places);

#endif

/* Runs the C compiler of this machine. */
#ifndef PO_CODEGEN_COMPILE_H
#define PO_CODEGEN_COMPILE_H

#include "base/hash.h"

/* What every file is compiled with. */
#define PO_CC_FLAGS                                                                                \
    "-std=c17 -O2 -fPIC -fvisibility=hidden -ffp-contract=fast -fno-math-errno -fno-trapping-math"

typedef struct po_cc_source {
    const char *path;   /* of an existing C file */
    const char *flags;  /* further ones, NULL for none */
    const char *header; /* read before the file (po_cc_header), NULL for none */
    bool optional;      /* po_cc_build.until */
} po_cc_source;

/* Whether there is a compiler that can be run. PO_UNSUPPORTED, as below. version (may be NULL): a
 * hash of what it says of itself, for the keys of what it compiled. */
po_status po_cc_check(po_ctx *ctx, const char *cc, po_hash *version);

/* Compiles each file (PO_CC_FLAGS, warnings off) and links one shared object. The compiler: `cc`
 * where not NULL (--cc), else the first of cc, gcc, clang that is on the path. PO_UNSUPPORTED with
 * the first lines that the compiler said where it fails or there is none. No half-written file is
 * left behind. */
po_status po_cc_library(po_ctx *ctx, const char *cc, const po_cc_source *sources, uint32_t n,
                        const char *include_dir, const char *so_path);

/* The same, told in full. */
typedef struct po_cc_build {
    const char *cc;
    const po_cc_source *sources;
    uint32_t n;
    const char *include_dir, *so_path;
    /* By file: it did not compile, and the object is linked without it. NULL: one file that does
     * not compile fails the whole. */
    bool *failed;
    void (*told)(void *user, uint32_t compiled); /* how many files are; may be NULL */
    void *user;
    /* Optional files, which stand side by side, are left out, all of them, where they would not be
     * compiled by then (po_now), as their bytes and the time of those before them tell. Files
     * behind them are compiled last, and then have a further flag. 0: nothing is left out. */
    double until;
    const char *without;
    bool *left_out; /* told; may be NULL */
} po_cc_build;
po_status po_cc_build_library(po_ctx *ctx, const po_cc_build *build);

/* Compiles a header beside itself for files with the same flags: gcc and clang take a third of a
 * second to read the vectors' own one. Where that cannot be done files read the text. */
po_status po_cc_header(po_ctx *ctx, const char *cc, const char *path, const char *flags);

#endif

/* Compiles CUDA C with NVRTC, which is opened when it is first needed: petopt builds and starts
 * without it, and no GPU is needed. */
#ifndef PO_CODEGEN_NVRTC_H
#define PO_CODEGEN_NVRTC_H

#include "base/ctx.h"
#include "base/str.h"

/* The architectures that kernels are delivered for, compute capability times 10; PTX of the last
 * one that all drivers of that CUDA version take stands for what comes later. */
enum { PO_CUDA_ARCHS = 5 };
extern const uint32_t po_cuda_archs[PO_CUDA_ARCHS]; /* 80, 86, 89, 90, 100 */

/* What the compiler says of a kernel. */
typedef struct po_cuda_usage {
    const char *symbol;
    uint32_t registers; /* a thread */
    uint32_t spills;    /* bytes stored and loaded because registers ran out */
    uint32_t stack;     /* bytes of local memory a thread */
    uint32_t shared;    /* bytes, static */
} po_cuda_usage;

typedef struct po_cuda_image {
    uint32_t arch;
    bool ptx;       /* text for later architectures; else a cubin */
    po_bytes bytes; /* PTX: with a final 0 */
    uint32_t n_usage;
    const po_cuda_usage *usage; /* by symbol in order of the source; none of PTX */
} po_cuda_image;

typedef struct po_nvrtc po_nvrtc;

/* `library`: path of libnvrtc; NULL: the system's. The arena closes it. PO_UNSUPPORTED with one
 * sentence where there is none, or it is too old. */
po_status po_nvrtc_open(po_ctx *ctx, po_arena *arena, const char *library, po_nvrtc **nvrtc);
/* The first one that is there: in `folder` (NULL: none), then in the system's places. `driver` is
 * the CUDA of the driver that is to load what it makes, "12.4" (NULL: whichever): drivers take
 * nothing of a later major number, so an older NVRTC comes first there, and PO_UNSUPPORTED says it
 * where there is none. */
po_status po_nvrtc_find(po_ctx *ctx, po_arena *arena, const char *folder, const char *driver,
                        po_nvrtc **nvrtc);
/* "13.0" */
const char *po_nvrtc_version(const po_nvrtc *nvrtc);
/* The same as the driver counts: 1000 times the major number and 10 times the minor one. */
int po_nvrtc_cuda(const po_nvrtc *nvrtc);
/* One image. PO_UNSUPPORTED with the compiler's first lines where it does not compile: a fault of
 * the printer, of which `what` says whose text it is. May be called by several threads at once. */
po_status po_nvrtc_compile(po_ctx *ctx, po_arena *arena, const po_nvrtc *nvrtc, const char *source,
                           const char *what, uint32_t arch, bool ptx, po_cuda_image *image);

#endif

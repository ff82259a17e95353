/* GPUs by name: what is known of them where none is at hand. Rates are the makers' figures for
 * dense work at boost clock, and what others have measured where the makers give none; nothing here
 * was measured by petopt. */
#ifndef PO_COST_GPU_H
#define PO_COST_GPU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How products are multiplied. All of them add up in f32. */
typedef enum po_gpu_math {
    PO_GPU_F32,  /* f32 on the ordinary units: TF32 off */
    PO_GPU_TF32, /* f32 tensors, factors rounded to 10 bits of mantissa, tensor cores */
    PO_GPU_F16,
    PO_GPU_BF16,
    PO_GPU_MATHS
} po_gpu_math;

typedef struct po_gpu {
    const char *name;                /* "H200" */
    uint32_t arch;                   /* compute capability times 10: 90 */
    uint32_t sms;                    /* multiprocessors */
    uint32_t threads;                /* that one multiprocessor holds */
    int64_t shared_block, shared_sm; /* bytes: of a block that opts in, of a multiprocessor */
    int64_t registers;               /* of a multiprocessor, 4 bytes each */
    int64_t l2;                      /* bytes */
    double dram, l2_rate;            /* bytes a second */
    double f32, tf32, f16;           /* FLOPs a second, 2 a multiply-add; bf16 runs as f16 does */
    double mma;    /* part of tf32 and f16 that mma.sync reaches; newer instructions reach all */
    double launch; /* seconds from the end of one kernel to the start of the next in a CUDA graph */
    double latency; /* seconds that the smallest kernel takes itself */
} po_gpu;

/* NULL after the last. By age: A100, A10, L4, H100, H200, B200. */
const po_gpu *po_gpu_at(size_t index);
/* By its own name or by the driver's ("NVIDIA H200", "NVIDIA A100-SXM4-80GB"); NULL: not known. */
const po_gpu *po_gpu_named(const char *name);

/* FLOPs a second of products; `library`: by code that is not held to mma.sync. */
double po_gpu_peak(const po_gpu *gpu, po_gpu_math math, bool library);
/* Bytes of an element: 4 or 2. */
int64_t po_gpu_bytes_of(po_gpu_math math);

/* One kernel. */
typedef struct po_gpu_work {
    double flops;  /* of products that `math` can do on its units */
    double scalar; /* FLOPs of everything else: f32 on the ordinary units */
    double dram;   /* bytes read and written, each once */
    double l2;     /* bytes in all, what is read again counted again; 0: as dram */
    double blocks; /* that can run at the same time; 0: enough */
    bool library;  /* cuBLAS, cuDNN */
    po_gpu_math math;
} po_gpu_work;

/* Seconds that a kernel takes at least, its launch included: the slowest of its units, each slowed
 * where there are not blocks enough for all multiprocessors, or for whole waves of them. What fits
 * half of the L2 moves at the L2's rate where `warm`: the kernel before it wrote it. */
double po_gpu_seconds(const po_gpu *gpu, const po_gpu_work *work, bool warm);

#endif

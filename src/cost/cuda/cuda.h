/* NVIDIA GPUs through the driver, cuBLASLt and cuDNN 9, each opened with dlopen when it is first
 * needed: petopt builds and starts without them.
 *
 * As with ONNX Runtime, nothing of them is ever loaded into the caller's process: what works with
 * a GPU runs in po_isolate's children, so that a driver that fails takes no more than the child
 * with it. */
#ifndef PO_COST_CUDA_H
#define PO_COST_CUDA_H

#include "base/arena.h"
#include "cost/cuda/api.h"

/* --- in the caller --- */

typedef struct po_cuda_options {
    const char *folder; /* looked into for the libraries before the system's places; NULL: none */
    bool alone;         /* only there */
    uint32_t device;    /* number of the GPU */
} po_cuda_options;

typedef struct po_cuda_info {
    bool has_gpu;    /* else `missing` says why, in one sentence */
    char name[128];  /* "NVIDIA H200" */
    char driver[16]; /* the CUDA that it is for: "13.0" */
    char cublas[16]; /* "13.1.0"; "": none, and no_cublas says why */
    char cudnn[16];  /* "9.19.0" */
    uint32_t arch;   /* compute capability times 10 */
    uint32_t sms;    /* multiprocessors */
    int64_t memory;  /* bytes */
    int64_t shared_block, shared_sm, l2;
    int64_t registers; /* of a multiprocessor */
    double clock;      /* Hz */
    char missing[300], no_cublas[300], no_cudnn[300];
} po_cuda_info;

/* Looks for a GPU and the libraries, in a child. What is not there is no failure. */
po_status po_cuda_query(po_ctx *ctx, po_arena *arena, const po_cuda_options *options,
                        po_cuda_info *info);

/* --- in children --- */

typedef struct po_cuda {
    const po_cuda_options *options;
    po_cuda_info info;
    const po_cu *cu;
    const po_lt *lt;   /* NULL before po_cuda_need_cublas */
    const po_dnn *dnn; /* NULL before po_cuda_need_cudnn */
    void *lt_handle, *dnn_handle;
    void *stream;
    uint64_t workspace;          /* device memory that all steps share; 0 before it is needed */
    struct po_cuda_tuned *tuned; /* the algorithms of equal steps; NULL before the first */
    po_arena *arena;
} po_cuda;

/* The driver, the GPU's primary context (which cuBLAS and cuDNN use too) and a stream. PO_RUNTIME
 * with one sentence where there is no driver, it is too old, or there is no such GPU, or one before
 * compute capability 8.0. */
po_status po_cuda_open(po_ctx *ctx, po_arena *arena, const po_cuda_options *options,
                       po_cuda **cuda);
/* PO_RUNTIME with one sentence naming the library. */
po_status po_cuda_need_cublas(po_ctx *ctx, po_cuda *cuda);
po_status po_cuda_need_cudnn(po_ctx *ctx, po_cuda *cuda);

/* PO_OK for 0; else PO_RUNTIME with the driver's sentence about `what`. */
po_status po_cuda_check(po_ctx *ctx, const po_cuda *cuda, int result, const char *what);
/* Device memory, aligned to 256 bytes; freed with the arena. 0 bytes get memory too. */
po_status po_cuda_alloc(po_ctx *ctx, po_cuda *cuda, po_arena *arena, int64_t bytes,
                        uint64_t *memory);

#define CU_TRY(ctx, cuda, what, call) PO_TRY(po_cuda_check((ctx), (cuda), (cuda)->cu->call, (what)))

#endif

/* Prints muGraphs as CUDA C: one kernel for each step (docs/cuda.md).
 *
 * The same muGraphs that the CPU printer takes, so that a program can be checked there and over
 * finite fields. A step is a launch, its GRID loops are blocks, what stands in them is worked by
 * the threads of a block, and the printer decides how: which statement runs on tensor cores, what
 * of SHARED places stays in registers, what is copied ahead, where a barrier is needed. Tiles
 * (lane, row, order) say nothing here. Arithmetic is in f32; tensors are stored by their type. */
#ifndef PO_CODEGEN_CUDA_H
#define PO_CODEGEN_CUDA_H

#include "mugraph/mugraph.h"

typedef enum po_cuda_arg_kind {
    PO_CUDA_INPUT, /* the region's input `number`, as its type says */
    PO_CUDA_WEIGHT,
    PO_CUDA_OUTPUT,
    PO_CUDA_DEVICE /* `offset` bytes into the memory that lives from one launch to the next */
} po_cuda_arg_kind;

typedef struct po_cuda_arg {
    po_cuda_arg_kind kind;
    uint32_t number;
    int64_t offset;
} po_cuda_arg;

/* A kernel and how it is started. Its parameters are pointers, all aligned to 256 bytes but those
 * of inputs and outputs, which are aligned to 16. */
typedef struct po_cuda_launch {
    const char *symbol; /* extern "C" */
    const char *what;   /* the step's name, for people */
    uint32_t grid[3], threads;
    uint32_t shared; /* bytes of dynamic shared memory */
    uint32_t n_args;
    const po_cuda_arg *args;
} po_cuda_launch;

typedef struct po_cuda_program {
    const char *source; /* complete: needs no header but those that NVRTC has within itself */
    uint32_t n_launches;
    const po_cuda_launch *launches; /* in order, on one stream */
    int64_t device;                 /* bytes that one call needs between launches */
} po_cuda_program;

typedef struct po_cuda_print_options {
    bool tf32;            /* products of f32 on tensor cores, rounded to 10 bits of mantissa */
    int64_t shared_limit; /* bytes of shared memory a block may have; 0: 99 KB, which all have */
    /* The muGraph is one sample's; the kernels take any number of them side by side: grid[0] times
     * as many blocks, and program.device times as many bytes. By INPUT number whether it is one of
     * each sample; outputs all are. NULL: one sample. */
    const bool *batched;
} po_cuda_print_options;

/* Symbols are SYMBOL_0, SYMBOL_1, ...; the same muGraph, symbol and options give the same text.
 * PO_UNSUPPORTED, with the step and the reason, where a statement has no printer or a block does
 * not fit. */
po_status po_codegen_cuda(po_ctx *ctx, po_arena *arena, const po_mu *mu, const char *symbol,
                          const po_cuda_print_options *options, po_cuda_program *program);

#endif

/* The cost service: the runtime, the machine and the cache that every measurement shares. */
#ifndef PO_COST_COST_H
#define PO_COST_COST_H

#include "cost/cache.h"
#include "cost/timing.h"

typedef struct po_cost_options {
    const char *library; /* path of libonnxruntime; NULL: the system's, then the build's */
    const char *cache;   /* file; NULL: the user's; "": none */
} po_cost_options;

typedef struct po_machine {
    char cpu[128];     /* "AMD EPYC (25-17-1)" */
    uint32_t cores;    /* that this process may use */
    bool has_runtime;  /* else `missing` says why */
    char runtime[32];  /* "1.31.1" */
    char library[512]; /* what was opened */
    char missing[400];
} po_machine;

typedef struct po_cost {
    po_machine machine;
    po_cache *cache;
    const char *library; /* as asked for */
} po_cost;

/* Looks at the machine, and (in a child process) for the runtime. A missing runtime is no failure
 * here: has_runtime tells. */
po_status po_cost_open(po_ctx *ctx, po_arena *arena, const po_cost_options *options,
                       po_cost **cost);
/* PO_RUNTIME with the reason, where there is no runtime. */
po_status po_cost_need_runtime(po_ctx *ctx, const po_cost *cost);

/* Hash of what every measurement depends on: petopt's version, runtime, CPU, cores. */
po_hash po_cost_key(const po_cost *cost);
/* Hash of a file's bytes, mixed into `seed`. PO_IO where it cannot be read. */
po_status po_cost_hash_file(po_ctx *ctx, const char *path, po_hash seed, po_hash *hash);

#endif

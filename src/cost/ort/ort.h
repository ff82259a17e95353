/* ONNX Runtime through its C API, opened by dlopen. For code inside po_isolate's children only:
 * the caller's process never loads the runtime, and what a child leaves open goes with it. */
#ifndef PO_COST_ORT_H
#define PO_COST_ORT_H

#include "base/file.h"
#include "ir/tensor.h"

typedef struct po_ort po_ort;
typedef struct po_session po_session;
typedef struct po_ort_run po_ort_run;

/* A value as it goes in or comes out of a model. */
typedef struct po_datum {
    po_type_kind kind;            /* PO_TYPE_UNKNOWN: an optional without a value */
    const po_tensor *tensor;      /* PO_TYPE_TENSOR */
    uint32_t n;                   /* sequence: elements; map: 2, keys and values */
    const struct po_datum *items; /* sequence and map */
} po_datum;

/* An input or output of a model. Unknown dims keep the model's symbols. */
typedef struct po_port {
    const char *name;
    po_type type;
} po_port;

/* Files that live in memory: external data of models, by the location that the model names. A
 * model may use any of them or none. */
typedef struct po_side_files {
    uint32_t n;
    const char *const *names;
    const void *const *data;
    const size_t *sizes;
    /* Mapped files that hold some of them: their pages are let go once a model is loaded. */
    uint32_t n_mapped;
    const po_content *const *mapped;
} po_side_files;

typedef struct po_ort_options {
    const char *library; /* path of libonnxruntime; NULL: the system's, then the build's */
    uint32_t threads;    /* of the pool that all sessions share; at least 1 */
} po_ort_options;

/* Opens the library, for what it is: nothing runs, for only po_ort_open starts it, which takes
 * longer. PO_RUNTIME: no library, or one that is too old. */
po_status po_ort_load(po_ctx *ctx, po_arena *arena, const char *library, po_ort **ort);
/* Opens the library and makes an environment whose sessions share one thread pool, so that the
 * idle workers of one session never spin against another. */
po_status po_ort_open(po_ctx *ctx, po_arena *arena, const po_ort_options *options, po_ort **ort);
const char *po_ort_version(const po_ort *ort); /* "1.31.1" */
const char *po_ort_library(const po_ort *ort); /* the path that was opened */

typedef struct po_session_options {
    bool deterministic;         /* for comparisons: same input, same bits */
    bool plain;                 /* no graph optimisation: what the file says, node by node */
    const char *kernels;        /* library of custom operators to register; may be NULL */
    const char *isa;            /* its code for this instruction set alone; NULL: the best one */
    const po_side_files *files; /* may be NULL; needs ONNX Runtime 1.18 */
} po_session_options;

/* Loads a model. Sequential execution, optimisation level ALL, messages dropped. It stays loaded
 * until the process ends. */
po_status po_session_open(po_ctx *ctx, po_arena *arena, po_ort *ort, const char *path,
                          const po_session_options *options, po_session **session);

const po_port *po_session_inputs(const po_session *session, uint32_t *n);
const po_port *po_session_outputs(const po_session *session, uint32_t *n);

/* Inputs by name, for any session that has these names. */
typedef struct po_feed {
    uint32_t n;
    const char *const *names;
    const po_datum *data;
} po_feed;

/* The feed in the session's order. PO_BAD_INPUT names an input that the feed lacks. */
po_status po_feed_order(po_ctx *ctx, po_arena *arena, const po_session *session,
                        const po_feed *feed, const po_datum **inputs);

/* Hands the inputs over (in the session's order, not copied where they are numeric tensors). */
po_status po_ort_run_prepare(po_ctx *ctx, po_session *session, const po_datum *inputs,
                             po_ort_run **run);
/* Runs the model `times` times; outputs are made afresh by each run, and kept after the last. */
po_status po_ort_run_repeat(po_ctx *ctx, po_ort_run *run, uint32_t times);
/* The outputs of the last run. Numeric data is the runtime's own, valid until the next run,
 * po_ort_run_drop_outputs or po_ort_run_free. */
po_status po_ort_run_outputs(po_ctx *ctx, po_arena *arena, const po_ort_run *run,
                             const po_datum **outputs);
/* Gives back the memory of the last run's outputs, which are then none. */
void po_ort_run_drop_outputs(po_ort_run *run);
void po_ort_run_free(po_ort_run *run); /* NULL is allowed */

#endif

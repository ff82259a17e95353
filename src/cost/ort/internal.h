/* What ort.c and run.c share. */
#ifndef PO_COST_ORT_PRIVATE_H
#define PO_COST_ORT_PRIVATE_H

#include "cost/ort/ort.h"

#include <onnxruntime_c_api.h>

struct po_ort {
    const OrtApi *api;
    uint32_t api_version;
    const char *version, *library;
    OrtEnv *env;
    OrtMemoryInfo *memory;
    OrtAllocator *allocator;
};

struct po_session {
    po_ort *ort;
    po_arena *arena;
    OrtSession *session;
    po_port *inputs, *outputs;
    uint32_t n_inputs, n_outputs;
    const char **input_names, **output_names;
};

/* Turns a runtime's status into ours and frees it; NULL is success. One line of its message. */
po_status po_ort_check(po_ctx *ctx, const po_ort *ort, OrtStatus *status, const char *what);

/* PO_RUNTIME with the runtime's message where a call of its API fails. */
#define ORT_TRY(ctx, ort, what, call) PO_TRY(po_ort_check((ctx), (ort), (ort)->api->call, (what)))

#endif

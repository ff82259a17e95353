/* What the files behind petopt.h share: the guard of an API call and the handles' insides. */
#ifndef PO_PIPELINE_API_H
#define PO_PIPELINE_API_H

#include "ir/graph.h"

struct po_cancel {
    atomic_bool raised;
};

/* Runs the body of an API call under a guard: when memory runs out, or the body fails, every
 * arena made in it is freed. The body keeps what shall live on (po_arena_keep). The failure's
 * sentence goes to `error`, which may be NULL. */
typedef po_status (*po_api_body)(po_ctx *ctx, void *args);
po_status po_api_call(po_ctx *ctx, po_api_body body, void *args, po_error *error);

/* Fails without a context: for arguments that are wrong. */
__attribute__((format(printf, 3, 4))) po_status po_api_error(po_error *error, po_status status,
                                                             const char *format, ...);

/* Takes a model's arenas out of the call's context, and puts them under another's. */
void po_api_keep_model(po_model *model);
void po_api_bind_model(po_model *model, po_ctx *ctx);

/* Prepares a context from the caller's callbacks (NULL is allowed): log and cancel flag. */
void po_api_context(po_ctx *ctx, const po_callbacks *callbacks);

#endif

/* The rules of opset.c's table: each rewrites one node in place for one new version. */
#ifndef PO_SIMPLIFY_OPSET_RULES_H
#define PO_SIMPLIFY_OPSET_RULES_H

#include "ops/rewrite.h"

typedef struct po_raising {
    po_ctx *ctx;
    po_graph *graph;
    int64_t version; /* that is being reached */
    uint32_t *fired; /* by rule; NULL: not counted */
} po_raising;

/* `text` is the table's argument: an attribute's name, several of them, or a reason. Failures are
 * PO_BAD_USE with node and reason. */
typedef po_status (*po_raise_fn)(const po_raising *r, po_node_id id, const char *text);

po_status po_raise_refuse(const po_raising *r, po_node_id id, const char *reason);
/* Attributes that later versions do not have and that say nothing. */
po_status po_raise_drop(const po_raising *r, po_node_id id, const char *names);
/* An attribute that must be 1 where it is given or not, then dropped. */
po_status po_raise_inference(const po_raising *r, po_node_id id, const char *name);
po_status po_raise_spatial(const po_raising *r, po_node_id id, const char *text);
/* A list of integers that becomes input 1. */
po_status po_raise_to_input(const po_raising *r, po_node_id id, const char *name);

po_status po_raise_broadcast(const po_raising *r, po_node_id id, const char *text);
po_status po_raise_prelu(const po_raising *r, po_node_id id, const char *text);
po_status po_raise_upsample_input(const po_raising *r, po_node_id id, const char *text);
po_status po_raise_upsample(const po_raising *r, po_node_id id, const char *text);
po_status po_raise_slice(const po_raising *r, po_node_id id, const char *text);
po_status po_raise_topk(const po_raising *r, po_node_id id, const char *text);
po_status po_raise_clip(const po_raising *r, po_node_id id, const char *text);
po_status po_raise_pad(const po_raising *r, po_node_id id, const char *text);
po_status po_raise_resize(const po_raising *r, po_node_id id, const char *text);
po_status po_raise_resize_mode(const po_raising *r, po_node_id id, const char *text);
po_status po_raise_scatter(const po_raising *r, po_node_id id, const char *text);
po_status po_raise_dropout(const po_raising *r, po_node_id id, const char *text);
po_status po_raise_softmax(const po_raising *r, po_node_id id, const char *text);
po_status po_raise_norm_outputs(const po_raising *r, po_node_id id, const char *text);
po_status po_raise_roi_align(const po_raising *r, po_node_id id, const char *text);
po_status po_raise_split(const po_raising *r, po_node_id id, const char *text);
po_status po_raise_dft(const po_raising *r, po_node_id id, const char *text);
po_status po_raise_grid_sample(const po_raising *r, po_node_id id, const char *text);

#endif

/* What an R/T's tensor is on its way through nodes, for rt_emit.c: each adds its node where one is
 * needed, and counts it. */
#ifndef PO_OPS_RT_EMIT_H
#define PO_OPS_RT_EMIT_H

#include "ops/move/rt.h"
#include "ops/rewrite.h"

enum { PO_EMIT_MOST_DIMS = 3 * PO_RT_MAX_DIGITS + 2 * PO_RT_MAX_RANK };

typedef struct po_emitter {
    const po_rt *rt;
    po_graph *graph; /* NULL: only counts */
    po_node_id place;
    po_value_id x;
    uint32_t rank;
    int64_t dims[PO_EMIT_MOST_DIMS];
    uint32_t digit[PO_EMIT_MOST_DIMS]; /* that a dim is; PO_NONE: a dim of 1, or a whole axis */
    uint32_t nodes;
    double traffic;
    bool failed;
    int64_t opset;
} po_emitter;

/* Elements of the tensor at hand. */
double po_emit_count(const po_emitter *e);
/* Adds the node of one output, whose dims are the emitter's by now. */
po_value_id po_emit_node(po_emitter *e, po_op_id op, uint32_t n_in, const po_value_id *in);
void po_emit_reshape(po_emitter *e, uint32_t rank, const int64_t *dims);
/* A reshape where nothing but dims of 1 moves. */
void po_emit_transpose(po_emitter *e, const uint32_t *perm);
/* Zeros before and after, by dim. */
void po_emit_pad(po_emitter *e, const int64_t *before, const int64_t *after);
/* By dim; fails where the opset has no steps. */
void po_emit_slice(po_emitter *e, const int64_t *start, const int64_t *length, const int64_t *step);

#endif

/* Softmax, LogSoftmax, Hardmax. Until opset 12 the input is seen as a matrix: the axes before
 * `axis` by those from it on; since 13 the axis alone counts. */
#include "ops/families/rules.h"
#include "ops/ref.h"
#include "ops/shape.h"

#include <math.h>

po_status po_infer_softmax(po_infer *infer) {
    const po_type *x = po_infer_tensor(infer, 0);
    int64_t axis = po_op_int(infer->graph, infer->node, "axis");
    uint32_t at;
    /* The first version did not bound the axis; runtimes take a scalar as a vector of one. */
    if (x && x->has_rank && (infer->opset == 0 || infer->opset >= 11))
        PO_TRY(po_rule_axis(infer->ctx, infer->node, axis, x->rank ? x->rank : 1, &at));
    return po_infer_unary(infer);
}

typedef struct line {
    const double *x;
    double *y;
    int64_t n, step;
} line;

static double top_of(const line *l, int64_t *at) {
    *at = 0;
    for (int64_t k = 1; k < l->n; k++)
        if (l->x[k * l->step] > l->x[*at * l->step])
            *at = k;
    return l->x[*at * l->step];
}

static void one_line(po_op_id op, const line *l) {
    int64_t at;
    double top = top_of(l, &at), sum = 0;
    if (op == PO_OP_Hardmax) {
        l->y[at * l->step] = 1.0; /* the rest is zero already */
        return;
    }
    for (int64_t k = 0; k < l->n; k++)
        sum += exp(l->x[k * l->step] - top);
    for (int64_t k = 0; k < l->n; k++) {
        double d = l->x[k * l->step] - top;
        l->y[k * l->step] = op == PO_OP_LogSoftmax ? d - log(sum) : exp(d) / sum;
    }
}

po_status po_ref_softmax(po_ref *ref) {
    const po_array *x = ref->in[0];
    bool matrix = ref->opset > 0 && ref->opset < 13;
    int64_t axis = po_op_int(ref->graph, ref->node, "axis");
    uint32_t at = 0;
    po_array *y;
    if (!x->f || !(po_axis_at(axis, x->rank, &at) || (x->rank == 0 && (axis == 0 || axis == -1))))
        return PO_UNSUPPORTED;
    PO_TRY(po_ref_out(ref, 0, x->dtype, x->rank, x->dims, &y));
    int64_t outer = po_product(x->dims, 0, at), n = x->rank ? x->dims[at] : 1,
            inner = x->rank ? po_product(x->dims, at + 1, x->rank) : 1;
    if (matrix) {
        n *= inner;
        inner = 1;
    }
    for (int64_t o = 0; o < outer && n; o++)
        for (int64_t i = 0; i < inner; i++) {
            int64_t from = o * n * inner + i;
            one_line(ref->node->op, &(line){x->f + from, y->f + from, n, inner});
        }
    return PO_OK;
}

const po_attr_def po_attrs_softmax[] = {
    {.name = "axis", .kind = PO_ATTR_INT, .since = 1, .until = 12, .has_default = true, .i = 1},
    {.name = "axis", .kind = PO_ATTR_INT, .since = 13, .has_default = true, .i = -1},
    {0},
};

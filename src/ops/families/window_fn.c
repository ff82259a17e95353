/* HannWindow, HammingWindow, BlackmanWindow: sums of cosines. */
#include "ir/size.h"
#include "ops/families/rules.h"
#include "ops/ref.h"
#include "ops/shape.h"

#include <math.h>

static po_dtype dtype_of(const po_graph *graph, const po_node *node) {
    int64_t v = po_op_int(graph, node, "output_datatype");
    return v > 0 && v < PO_DT_COUNT ? (po_dtype)v : PO_DT_NONE;
}

po_status po_infer_window_fn(po_infer *infer) {
    const po_partial *p = po_infer_partial(infer, 0);
    const int64_t *size;
    uint32_t count;
    if (po_infer_ints(infer, 0, &count, &size) && count == 1 && *size < 0)
        return po_rule_bad(infer->ctx, infer->node, "size is negative (found %lld)",
                           (long long)*size);
    po_dim n = p && p->n == 1 ? po_size_of_item(p->items[0]) : PO_DIM_UNKNOWN;
    po_infer_set(infer, 0, dtype_of(infer->graph, infer->node), 1, &n);
    return PO_OK;
}

po_status po_ref_window_fn(po_ref *ref) {
    /* w[k] = a - b cos(2 pi k / N) + c cos(4 pi k / N) */
    static const struct {
        po_op_id op;
        double a, b, c;
    } kinds[] = {
        {PO_OP_BlackmanWindow, 0.42, 0.5, 0.08},
        {PO_OP_HammingWindow, 25.0 / 46.0, 21.0 / 46.0, 0},
        {PO_OP_HannWindow, 0.5, 0.5, 0},
    };
    const int64_t *n;
    int64_t one;
    po_array *y;
    unsigned kind = 0;
    while (kinds[kind].op != ref->node->op)
        kind++;
    PO_TRY(po_ref_ints(ref, 0, &one, &n));
    if (one != 1)
        return PO_UNSUPPORTED;
    PO_TRY(po_ref_out(ref, 0, dtype_of(ref->graph, ref->node), 1, n, &y));
    if (!y->f)
        return PO_UNSUPPORTED;
    bool periodic = po_op_int(ref->graph, ref->node, "periodic") != 0;
    double period = (double)(periodic ? *n : *n - 1);
    for (int64_t k = 0; k < *n; k++) {
        double t = period > 0 ? 2.0 * M_PI * (double)k / period : 0;
        y->f[k] = kinds[kind].a - kinds[kind].b * cos(t) + kinds[kind].c * cos(2 * t);
    }
    return PO_OK;
}

const po_attr_def po_attrs_window_fn[] = {
    {.name = "output_datatype", .kind = PO_ATTR_INT, .since = 17, .has_default = true, .i = 1},
    {.name = "periodic", .kind = PO_ATTR_INT, .since = 17, .has_default = true, .i = 1},
    {0},
};

/* NegativeLogLikelihoodLoss and SoftmaxCrossEntropyLoss. */
#include "ops/families/rules.h"
#include "ops/ref.h"
#include "ops/shape.h"

#include <math.h>

static bool reduction_is(const po_graph *graph, const po_node *node, const char *name) {
    po_bytes r = po_op_string(graph, node, "reduction");
    return r.size == strlen(name) && memcmp(r.data, name, r.size) == 0;
}

/* The target lacks the dim of the classes. A weight of more or fewer classes runs. */
static po_status check_shapes(const po_infer *infer, const po_type *x, const po_type *target,
                              const po_type *weight) {
    if (weight && weight->has_rank && weight->rank != 1)
        return po_rule_bad(infer->ctx, infer->node, "weight must have rank 1 (found %u)",
                           weight->rank);
    if (!x || !x->has_rank)
        return PO_OK;
    if (x->rank < 2)
        return po_rule_bad(infer->ctx, infer->node, "input must have rank 2 or more (found %u)",
                           x->rank);
    if (!target || !target->has_rank)
        return PO_OK;
    if (target->rank != x->rank - 1)
        return po_rule_bad(infer->ctx, infer->node, "target must have rank %u (found %u)",
                           x->rank - 1, target->rank);
    for (uint32_t k = 0; k < target->rank; k++) {
        po_dim a = target->dims[k], b = x->dims[k == 0 ? 0 : k + 1];
        if (a.value >= 0 && b.value >= 0 && a.value != b.value)
            return po_rule_bad(infer->ctx, infer->node,
                               "dim %u of target does not fit (%lld and %lld)", k,
                               (long long)a.value, (long long)b.value);
    }
    return PO_OK;
}

po_status po_infer_loss(po_infer *infer) {
    const po_type *target = po_infer_tensor(infer, 1);
    po_dtype dtype = po_infer_dtype(infer, 0);
    PO_TRY(check_shapes(infer, po_infer_tensor(infer, 0), target, po_infer_tensor(infer, 2)));
    po_infer_set_unranked(infer, 0, dtype);
    po_infer_set_like(infer, 1, dtype); /* SoftmaxCrossEntropyLoss: log_prob */
    if (!reduction_is(infer->graph, infer->node, "none"))
        po_infer_set(infer, 0, dtype, 0, NULL);
    else if (target && target->has_rank)
        po_infer_set(infer, 0, dtype, target->rank, target->dims);
    return PO_OK;
}

/* Log-probabilities of [n, classes, inner] along the classes. */
static void log_softmax(const po_array *x, po_array *y, int64_t classes, int64_t inner) {
    for (int64_t l = 0; l < x->count / classes; l++) {
        int64_t from = l / inner * classes * inner + l % inner;
        double top = -INFINITY, sum = 0;
        for (int64_t c = 0; c < classes; c++)
            top = fmax(top, x->f[from + c * inner]);
        for (int64_t c = 0; c < classes; c++)
            sum += exp(x->f[from + c * inner] - top);
        for (int64_t c = 0; c < classes; c++)
            y->f[from + c * inner] = x->f[from + c * inner] - top - log(sum);
    }
}

po_status po_ref_loss(po_ref *ref) {
    const po_array *x = ref->in[0], *target = ref->in[1], *weight = po_ref_in(ref, 2);
    const po_attr *ignore = po_node_attr(ref->node, "ignore_index");
    po_array *prob = NULL, *each, *y;
    double sum = 0, total = 0;
    if (!x->f || x->rank < 2 || !target->i || target->rank != x->rank - 1 || x->dims[1] < 1)
        return PO_UNSUPPORTED;
    int64_t classes = x->dims[1], inner = po_product(x->dims, 2, x->rank);
    if (target->count != x->count / classes ||
        (weight && (weight->rank != 1 || weight->count != classes)))
        return PO_UNSUPPORTED;
    if (ref->node->op == PO_OP_SoftmaxCrossEntropyLoss) {
        PO_TRY(po_ref_make(ref, x->dtype, x->rank, x->dims, &prob));
        log_softmax(x, prob, classes, inner);
        if (ref->n_out > 1)
            ref->out[1] = prob;
        x = prob;
    }
    PO_TRY(po_ref_make(ref, x->dtype, target->rank, target->dims, &each));
    for (int64_t k = 0; k < target->count; k++) {
        int64_t c = target->i[k];
        if (ignore && c == ignore->u.i)
            continue;
        if (c < 0 || c >= classes)
            return PO_UNSUPPORTED;
        double w = weight ? weight->f[c] : 1.0;
        each->f[k] = -w * x->f[(k / inner * classes + c) * inner + k % inner];
        sum += each->f[k];
        total += w;
    }
    if (reduction_is(ref->graph, ref->node, "none")) {
        ref->out[0] = each;
        return PO_OK;
    }
    PO_TRY(po_ref_out(ref, 0, x->dtype, 0, NULL, &y));
    y->f[0] = reduction_is(ref->graph, ref->node, "sum") ? sum : sum / total;
    return PO_OK;
}

const po_attr_def po_attrs_loss[] = {
    {.name = "ignore_index", .kind = PO_ATTR_INT, .since = 12},
    {.name = "reduction", .kind = PO_ATTR_STRING, .since = 12, .has_default = true, .s = "mean"},
    {0},
};

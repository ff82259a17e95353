/* LpNormalization, MeanVarianceNormalization, LRN. */
#include "ops/rule.h"

#include <math.h>

/* --- LpNormalization --- */

po_status po_infer_lp_normalization(po_infer *infer) {
    const po_type *x = po_rule_ranked(infer, 0);
    uint32_t axis;
    int64_t p = po_op_int(infer->graph, infer->node, "p");
    po_infer_set_as(infer, 0, po_infer_dtype(infer, 0), x);
    if (p != 1 && p != 2)
        return po_rule_bad(infer->ctx, infer->node, "p must be 1 or 2 (found %lld)", (long long)p);
    if (x)
        PO_TRY(po_rule_axis(infer->ctx, infer->node, po_op_int(infer->graph, infer->node, "axis"),
                            x->rank, &axis));
    return PO_OK;
}

po_status po_ref_lp_normalization(po_ref *ref) {
    PO_TRY(po_rule_outputs(ref));
    const po_array *x = ref->in[0], *out = ref->out[0];
    uint32_t axis;
    if (!x->f)
        return PO_UNSUPPORTED;
    PO_TRY(po_rule_axis(ref->ctx, ref->node, po_op_int(ref->graph, ref->node, "axis"), x->rank,
                        &axis));
    bool one = po_op_int(ref->graph, ref->node, "p") == 1;
    int64_t n = x->dims[axis], inner = po_product(x->dims, axis + 1, x->rank);
    for (int64_t at = 0; at < x->count; at += n * inner)
        for (int64_t i = 0; i < inner; i++) {
            double sum = 0;
            for (int64_t k = 0; k < n; k++) {
                double v = x->f[at + k * inner + i];
                sum += one ? fabs(v) : v * v;
            }
            if (!one)
                sum = sqrt(sum);
            /* All zero stays all zero. */
            for (int64_t k = 0; k < n; k++)
                out->f[at + k * inner + i] = sum == 0.0 ? 0.0 : x->f[at + k * inner + i] / sum;
        }
    return PO_OK;
}

/* --- MeanVarianceNormalization --- */

/* The axes that are there: by default those of images, of which others have fewer. PO_UNSUPPORTED
 * where given ones are not there; runtimes run it all the same. */
static po_status mean_axes(const po_node *node, uint32_t rank, bool *reduced) {
    static const int64_t usual[] = {0, 2, 3};
    uint32_t n;
    const int64_t *given = po_node_ints(node, "axes", &n), *axes = given ? given : usual;
    memset(reduced, 0, PO_MAX_RANK);
    for (uint32_t i = 0; i < (given ? n : sizeof usual / sizeof *usual); i++) {
        uint32_t k;
        if (po_axis_at(axes[i], rank, &k))
            reduced[k] = true;
        else if (given)
            return PO_UNSUPPORTED;
    }
    return PO_OK;
}

po_status po_infer_mean_variance_normalization(po_infer *infer) {
    po_infer_set_as(infer, 0, po_infer_dtype(infer, 0), po_rule_ranked(infer, 0));
    return PO_OK;
}

po_status po_ref_mean_variance_normalization(po_ref *ref) {
    PO_TRY(po_rule_outputs(ref));
    const po_array *x = ref->in[0], *out = ref->out[0];
    bool reduced[PO_MAX_RANK];
    if (!x->f)
        return PO_UNSUPPORTED;
    PO_TRY(mean_axes(ref->node, x->rank, reduced));
    int64_t strides[PO_MAX_RANK] = {0}, index[PO_MAX_RANK] = {0}, kept = 1, n = 1;
    for (uint32_t k = x->rank; k-- > 0;) {
        if (reduced[k]) {
            n *= x->dims[k];
            continue;
        }
        strides[k] = kept;
        kept *= x->dims[k];
    }
    double *mean = PO_NEW_N(ref->arena, double, kept), *var = PO_NEW_N(ref->arena, double, kept);
    /* 0: sums, 1: squares, 2: result */
    for (int pass = 0; pass < 3; pass++) {
        for (int64_t i = 0; i < x->count; i++) {
            int64_t at = 0;
            for (uint32_t k = 0; k < x->rank; k++)
                at += index[k] * strides[k];
            double d = x->f[i] - mean[at];
            if (pass == 0)
                out->f[at] += x->f[i];
            else if (pass == 1)
                var[at] += d * d;
            else
                out->f[i] = d / (sqrt(var[at] / (double)n) + 1e-9);
            po_next_index(x->rank, x->dims, index);
        }
        for (int64_t at = 0; pass == 0 && at < kept && at < x->count; at++)
            mean[at] = out->f[at] / (double)n;
    }
    return PO_OK;
}

/* --- LRN --- */

po_status po_infer_lrn(po_infer *infer) {
    const po_type *x = po_rule_ranked(infer, 0);
    int64_t size = po_op_int(infer->graph, infer->node, "size");
    po_infer_set_as(infer, 0, po_infer_dtype(infer, 0), x);
    if (size < 1 || size > INT32_MAX)
        return po_rule_bad(infer->ctx, infer->node, "size is out of range (found %lld)",
                           (long long)size);
    if (x && x->rank < 2)
        return po_rule_bad(infer->ctx, infer->node, "input must have rank 2 or more (found %u)",
                           x->rank);
    return PO_OK;
}

po_status po_ref_lrn(po_ref *ref) {
    PO_TRY(po_rule_outputs(ref));
    const po_array *x = ref->in[0], *out = ref->out[0];
    if (!x->f)
        return PO_UNSUPPORTED;
    int64_t size = po_op_int(ref->graph, ref->node, "size");
    double alpha = (double)po_op_float(ref->graph, ref->node, "alpha");
    double beta = (double)po_op_float(ref->graph, ref->node, "beta");
    double bias = (double)po_op_float(ref->graph, ref->node, "bias");
    int64_t channels = x->dims[1], plane = po_product(x->dims, 2, x->rank);
    for (int64_t at = 0, k = 0; at < x->count; at += plane, k++) {
        int64_t c = k % channels, low = c - (size - 1) / 2, high = c + size / 2;
        low = low < 0 ? 0 : low;
        high = high >= channels ? channels - 1 : high;
        for (int64_t i = at; i < at + plane; i++) {
            double squares = 0;
            for (int64_t j = low; j <= high; j++) {
                double v = x->f[i + (j - c) * plane];
                squares += v * v;
            }
            out->f[i] = x->f[i] / pow(bias + alpha / (double)size * squares, beta);
        }
    }
    return PO_OK;
}

/* --- attributes --- */

const po_attr_def po_attrs_lp_normalization[] = {
    {.name = "axis", .kind = PO_ATTR_INT, .since = 1, .has_default = true, .i = -1},
    {.name = "p", .kind = PO_ATTR_INT, .since = 1, .has_default = true, .i = 2},
    {0},
};

const po_attr_def po_attrs_mean_variance_normalization[] = {
    {.name = "axes", .kind = PO_ATTR_INTS, .since = 9},
    {0},
};

const po_attr_def po_attrs_lrn[] = {
    {.name = "alpha", .kind = PO_ATTR_FLOAT, .since = 1, .has_default = true, .f = 9.99999975e-05f},
    {.name = "beta", .kind = PO_ATTR_FLOAT, .since = 1, .has_default = true, .f = 0.75f},
    {.name = "bias", .kind = PO_ATTR_FLOAT, .since = 1, .has_default = true, .f = 1.0f},
    {.name = "size", .kind = PO_ATTR_INT, .since = 1, .required = true},
    {0},
};

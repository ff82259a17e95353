/* Normalisations over channels, planes and trailing axes. */
#include "ops/rule.h"

#include <math.h>

/* --- BatchNormalization --- */

static bool is_training(const po_graph *graph, const po_node *node, int64_t opset) {
    if (opset >= 14)
        return po_op_int(graph, node, "training_mode") != 0;
    return node->n_out > 1;
}

po_status po_infer_batch_normalization(po_infer *infer) {
    const po_type *x = po_rule_ranked(infer, 0);
    bool spatial = infer->opset >= 9 || po_op_int(infer->graph, infer->node, "spatial") != 0;
    po_infer_set_as(infer, 0, po_infer_dtype(infer, 0), x);
    if (infer->opset >= 14 && infer->n_out > 1 &&
        po_op_int(infer->graph, infer->node, "training_mode") == 0)
        return po_rule_bad(infer->ctx, infer->node, "has %u outputs outside of training",
                           infer->n_out);
    for (uint32_t k = 1; k < infer->n_out; k++)
        po_infer_set_as(infer, k, po_infer_dtype(infer, 3), po_rule_ranked(infer, 3));
    if (!x || !spatial)
        return PO_OK;
    po_dim channels = x->rank > 1 ? x->dims[1] : PO_DIM(1), both;
    for (uint32_t k = 1; k < 5; k++) {
        const po_type *t = po_rule_ranked(infer, k);
        if (!t)
            continue;
        if (t->rank != 1)
            return po_rule_bad(infer->ctx, infer->node, "input %u must have rank 1 (found %u)", k,
                               t->rank);
        PO_TRY(po_rule_same_dim(infer, t->dims[0], channels, "numbers of channels", &both));
    }
    return PO_OK;
}

static void batch_statistics(const po_array *x, int64_t channels, int64_t plane, double *mean,
                             double *var) {
    int64_t images = x->count == 0 ? 0 : x->count / (channels * plane);
    double n = (double)(images * plane);
    for (int64_t c = 0; c < channels; c++) {
        double sum = 0, squares = 0;
        for (int64_t i = 0; i < images; i++)
            for (int64_t k = 0; k < plane; k++)
                sum += x->f[(i * channels + c) * plane + k];
        mean[c] = sum / n;
        for (int64_t i = 0; i < images; i++)
            for (int64_t k = 0; k < plane; k++) {
                double d = x->f[(i * channels + c) * plane + k] - mean[c];
                squares += d * d;
            }
        var[c] = squares / n;
    }
}

po_status po_ref_batch_normalization(po_ref *ref) {
    PO_TRY(po_rule_outputs(ref));
    const po_array *x = ref->in[0], *out = ref->out[0];
    bool spatial = ref->opset >= 9 || po_op_int(ref->graph, ref->node, "spatial") != 0;
    bool training = is_training(ref->graph, ref->node, ref->opset);
    if (!po_rule_floats(ref, 0, 4) || (training && ref->opset < 14) || !out)
        return PO_UNSUPPORTED;
    int64_t channels = x->rank > 1 ? x->dims[1] : 1;
    int64_t plane = x->rank > 1 ? po_product(x->dims, 2, x->rank) : 1;
    if (!spatial) {
        /* Statistics of their own for every position of an image. */
        channels *= plane;
        plane = 1;
        for (uint32_t k = 1; k < 5; k++)
            if (ref->in[k]->count != channels)
                return po_rule_bad(ref->ctx, ref->node, "input %u does not fit", k);
    }
    double epsilon = (double)po_op_float(ref->graph, ref->node, "epsilon");
    double *mean = ref->in[3]->f, *var = ref->in[4]->f;
    if (training) {
        mean = PO_NEW_N(ref->arena, double, channels);
        var = PO_NEW_N(ref->arena, double, channels);
        batch_statistics(x, channels, plane, mean, var);
        double keep = (double)po_op_float(ref->graph, ref->node, "momentum");
        for (uint32_t k = 1; k < 3 && k < ref->n_out; k++)
            for (int64_t c = 0; ref->out[k] && c < channels; c++)
                ref->out[k]->f[c] =
                    ref->in[2 + k]->f[c] * keep + (k == 1 ? mean[c] : var[c]) * (1.0 - keep);
    }
    for (int64_t at = 0, k = 0; at < x->count; at += plane, k++) {
        int64_t c = k % channels;
        double scale = ref->in[1]->f[c] / sqrt(var[c] + epsilon), shift = ref->in[2]->f[c];
        for (int64_t i = at; i < at + plane; i++)
            out->f[i] = (x->f[i] - mean[c]) * scale + shift;
    }
    return PO_OK;
}

/* --- InstanceNormalization and GroupNormalization --- */

/* `broadcasts`: the operator is a function whose body lets scale and bias broadcast. */
static po_status infer_channels(po_infer *infer, po_dim want, bool broadcasts) {
    const po_type *x = po_rule_ranked(infer, 0);
    po_infer_set_as(infer, 0, po_infer_dtype(infer, 0), x);
    if (x && x->rank < 2)
        return po_rule_bad(infer->ctx, infer->node, "input must have rank 2 or more (found %u)",
                           x->rank);
    for (uint32_t k = 1; k < 3; k++) {
        const po_type *t = po_rule_ranked(infer, k);
        po_dim both;
        if (t && t->rank != 1 && !broadcasts)
            return po_rule_bad(infer->ctx, infer->node, "input %u must have rank 1 (found %u)", k,
                               t->rank);
        if (t && t->rank == 1 && !(broadcasts && t->dims[0].value == 1))
            PO_TRY(po_rule_same_dim(infer, t->dims[0], want, "numbers of channels", &both));
    }
    return PO_OK;
}

po_status po_infer_instance_normalization(po_infer *infer) {
    const po_type *x = po_rule_ranked(infer, 0);
    return infer_channels(infer, x && x->rank > 1 ? x->dims[1] : PO_DIM_UNKNOWN, false);
}

po_status po_infer_group_normalization(po_infer *infer) {
    const po_type *x = po_rule_ranked(infer, 0);
    int64_t groups = po_op_int(infer->graph, infer->node, "num_groups");
    po_dim channels = x && x->rank > 1 ? x->dims[1] : PO_DIM_UNKNOWN;
    if (groups < 1 || (channels.value >= 0 && channels.value % groups != 0))
        return po_rule_bad(infer->ctx, infer->node, "num_groups %lld does not divide the channels",
                           (long long)groups);
    return infer_channels(infer, infer->opset < 21 ? PO_DIM(groups) : channels, true);
}

/* out = (x - mean) / sqrt(var + epsilon) over n elements. */
static void standardise(const double *x, double *out, int64_t n, double epsilon, double *mean_out,
                        double *inverse_out) {
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < n; i++)
        sum += x[i];
    double mean = sum / (double)n;
    for (int64_t i = 0; i < n; i++)
        squares += (x[i] - mean) * (x[i] - mean);
    double inverse = 1.0 / sqrt(squares / (double)n + epsilon);
    for (int64_t i = 0; i < n; i++)
        out[i] = (x[i] - mean) * inverse;
    if (mean_out)
        *mean_out = mean;
    if (inverse_out)
        *inverse_out = inverse;
}

/* Standardises pieces of `size` elements, then scales and shifts by channel; scale and shift have
 * this many items, of which equally many channels use each. */
static po_status by_channel(po_ref *ref, int64_t size, int64_t items) {
    const po_array *x = ref->in[0], *out = ref->out[0];
    for (uint32_t k = 1; k < 3; k++)
        if (ref->in[k]->rank != 1 || ref->in[k]->count != items)
            return PO_UNSUPPORTED; /* they broadcast */
    int64_t channels = x->dims[1], plane = po_product(x->dims, 2, x->rank);
    double epsilon = (double)po_op_float(ref->graph, ref->node, "epsilon");
    for (int64_t at = 0; at < x->count; at += size)
        standardise(x->f + at, out->f + at, size, epsilon, NULL, NULL);
    for (int64_t at = 0, k = 0; at < x->count; at += plane, k++) {
        int64_t c = k % channels * items / channels;
        double scale = ref->in[1]->f[c], shift = ref->in[2]->f[c];
        for (int64_t i = at; i < at + plane; i++)
            out->f[i] = out->f[i] * scale + shift;
    }
    return PO_OK;
}

po_status po_ref_instance_normalization(po_ref *ref) {
    PO_TRY(po_rule_outputs(ref));
    if (!po_rule_floats(ref, 0, 2))
        return PO_UNSUPPORTED;
    const po_array *x = ref->in[0];
    return by_channel(ref, po_product(x->dims, 2, x->rank), x->dims[1]);
}

po_status po_ref_group_normalization(po_ref *ref) {
    PO_TRY(po_rule_outputs(ref));
    const po_array *x = ref->in[0];
    int64_t groups = po_op_int(ref->graph, ref->node, "num_groups"), channels = x->dims[1];
    if (!po_rule_floats(ref, 0, 2))
        return PO_UNSUPPORTED;
    return by_channel(ref, channels / groups * po_product(x->dims, 2, x->rank),
                      ref->opset < 21 ? groups : channels);
}

/* --- LayerNormalization and RMSNormalization --- */

/* Scale and shift broadcast to the input's shape, from the right. */
static po_status fits_below(const po_infer *infer, uint32_t input, const po_type *x) {
    const po_type *t = po_rule_ranked(infer, input);
    if (t && t->rank > x->rank)
        return po_rule_bad(infer->ctx, infer->node, "input %u has too large a rank (%u)", input,
                           t->rank);
    for (uint32_t k = 0; t && k < t->rank; k++) {
        po_dim have = t->dims[k], want = x->dims[x->rank - t->rank + k];
        if (have.value >= 0 && have.value != 1 && want.value >= 0 && have.value != want.value)
            return po_rule_bad(infer->ctx, infer->node, "input %u does not broadcast (%lld, %lld)",
                               input, (long long)have.value, (long long)want.value);
    }
    return PO_OK;
}

static po_status infer_trailing(po_infer *infer) {
    const po_type *x = po_rule_ranked(infer, 0);
    uint32_t axis;
    po_infer_set_as(infer, 0, po_infer_dtype(infer, 0), x);
    po_dtype inner = (po_dtype)po_op_int(infer->graph, infer->node, "stash_type");
    for (uint32_t k = 1; k < infer->n_out; k++)
        po_infer_set_unranked(infer, k, inner);
    if (!x)
        return PO_OK;
    PO_TRY(po_rule_axis(infer->ctx, infer->node, po_op_int(infer->graph, infer->node, "axis"),
                        x->rank, &axis));
    PO_TRY(fits_below(infer, 1, x));
    PO_TRY(fits_below(infer, 2, x));
    for (uint32_t k = 1; k < infer->n_out; k++) {
        po_dim *dims = po_rule_out(infer, k, inner, x->rank);
        for (uint32_t i = 0; i < x->rank; i++)
            dims[i] = i < axis ? x->dims[i] : PO_DIM(1);
    }
    return PO_OK;
}

po_status po_infer_layer_normalization(po_infer *infer) {
    return infer_trailing(infer);
}

po_status po_infer_rms_normalization(po_infer *infer) {
    return infer_trailing(infer);
}

/* out = out * scale or out + shift, broadcast. */
static void apply(const po_array *out, const po_array *by, bool add) {
    int64_t strides[PO_MAX_RANK] = {0}, from[PO_MAX_RANK], index[PO_MAX_RANK] = {0};
    po_rule_strides(by->rank, by->dims, from);
    for (uint32_t k = 0; k < by->rank; k++)
        if (by->dims[k] != 1)
            strides[out->rank - by->rank + k] = from[k];
    for (int64_t i = 0; i < out->count; i++) {
        int64_t at = 0;
        for (uint32_t k = out->rank - by->rank; k < out->rank; k++)
            at += index[k] * strides[k];
        out->f[i] = add ? out->f[i] + by->f[at] : out->f[i] * by->f[at];
        po_next_index(out->rank, out->dims, index);
    }
}

po_status po_ref_layer_normalization(po_ref *ref) {
    PO_TRY(po_rule_outputs(ref));
    const po_array *x = ref->in[0], *out = ref->out[0];
    uint32_t axis;
    if (!po_rule_floats(ref, 0, 2) || !out)
        return PO_UNSUPPORTED;
    PO_TRY(po_rule_axis(ref->ctx, ref->node, po_op_int(ref->graph, ref->node, "axis"), x->rank,
                        &axis));
    double epsilon = (double)po_op_float(ref->graph, ref->node, "epsilon");
    int64_t size = po_product(x->dims, axis, x->rank);
    const po_array *mean = ref->n_out > 1 ? ref->out[1] : NULL;
    const po_array *inverse = ref->n_out > 2 ? ref->out[2] : NULL;
    if ((mean && !mean->f) || (inverse && !inverse->f))
        return PO_UNSUPPORTED;
    for (int64_t at = 0, k = 0; at < x->count; at += size, k++)
        standardise(x->f + at, out->f + at, size, epsilon, mean ? &mean->f[k] : NULL,
                    inverse ? &inverse->f[k] : NULL);
    apply(out, ref->in[1], false);
    if (po_ref_in(ref, 2))
        apply(out, ref->in[2], true);
    return PO_OK;
}

po_status po_ref_rms_normalization(po_ref *ref) {
    PO_TRY(po_rule_outputs(ref));
    const po_array *x = ref->in[0], *out = ref->out[0];
    uint32_t axis;
    if (!po_rule_floats(ref, 0, 1))
        return PO_UNSUPPORTED;
    PO_TRY(po_rule_axis(ref->ctx, ref->node, po_op_int(ref->graph, ref->node, "axis"), x->rank,
                        &axis));
    double epsilon = (double)po_op_float(ref->graph, ref->node, "epsilon");
    int64_t size = po_product(x->dims, axis, x->rank);
    for (int64_t at = 0; at < x->count; at += size) {
        double squares = 0;
        for (int64_t i = at; i < at + size; i++)
            squares += x->f[i] * x->f[i];
        double inverse = 1.0 / sqrt(squares / (double)size + epsilon);
        for (int64_t i = at; i < at + size; i++)
            out->f[i] = x->f[i] * inverse;
    }
    apply(out, ref->in[1], false);
    return PO_OK;
}

/* --- attributes --- */

const po_attr_def po_attrs_batch_normalization[] = {
    {.name = "consumed_inputs", .kind = PO_ATTR_INTS, .since = 1, .until = 5, .required = true},
    {.name = "epsilon",
     .kind = PO_ATTR_FLOAT,
     .since = 1,
     .has_default = true,
     .f = 9.99999975e-06f},
    {.name = "is_test", .kind = PO_ATTR_INT, .since = 1, .until = 6, .has_default = true, .i = 0},
    {.name = "momentum", .kind = PO_ATTR_FLOAT, .since = 1, .has_default = true, .f = 0.899999976f},
    {.name = "spatial", .kind = PO_ATTR_INT, .since = 1, .until = 8, .has_default = true, .i = 1},
    {.name = "training_mode", .kind = PO_ATTR_INT, .since = 14, .has_default = true, .i = 0},
    {0},
};

const po_attr_def po_attrs_instance_normalization[] = {
    {.name = "consumed_inputs", .kind = PO_ATTR_INTS, .since = 1, .until = 5},
    {.name = "epsilon",
     .kind = PO_ATTR_FLOAT,
     .since = 1,
     .has_default = true,
     .f = 9.99999975e-06f},
    {0},
};

const po_attr_def po_attrs_group_normalization[] = {
    {.name = "epsilon",
     .kind = PO_ATTR_FLOAT,
     .since = 18,
     .has_default = true,
     .f = 9.99999975e-06f},
    {.name = "num_groups", .kind = PO_ATTR_INT, .since = 18, .required = true},
    {.name = "stash_type", .kind = PO_ATTR_INT, .since = 21, .has_default = true, .i = 1},
    {0},
};

const po_attr_def po_attrs_layer_normalization[] = {
    {.name = "axis", .kind = PO_ATTR_INT, .since = 17, .has_default = true, .i = -1},
    {.name = "epsilon",
     .kind = PO_ATTR_FLOAT,
     .since = 17,
     .has_default = true,
     .f = 9.99999975e-06f},
    {.name = "stash_type", .kind = PO_ATTR_INT, .since = 17, .has_default = true, .i = 1},
    {0},
};

const po_attr_def po_attrs_rms_normalization[] = {
    {.name = "axis", .kind = PO_ATTR_INT, .since = 23, .has_default = true, .i = -1},
    {.name = "epsilon",
     .kind = PO_ATTR_FLOAT,
     .since = 23,
     .has_default = true,
     .f = 9.99999975e-06f},
    {.name = "stash_type", .kind = PO_ATTR_INT, .since = 23, .has_default = true, .i = 1},
    {0},
};

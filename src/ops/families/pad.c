/* Pad and CenterCropPad. */
#include "ir/size.h"
#include "ops/rule.h"

typedef enum pad_mode { PAD_CONSTANT, PAD_REFLECT, PAD_EDGE, PAD_WRAP } pad_mode;

static po_status mode_of(po_ctx *ctx, const po_graph *graph, const po_node *node, pad_mode *mode) {
    static const char *const names[] = {"constant", "reflect", "edge", "wrap"};
    for (int i = 0; i < 4; i++)
        if (po_rule_mode(graph, node, "mode", names[i])) {
            *mode = (pad_mode)i;
            return PO_OK;
        }
    return po_rule_bad(ctx, node, "unknown mode");
}

/* The pads of every axis, begin and end: 2 * rank numbers. *known false: they cannot be told.
 * touched[k] is false for axes that are surely not padded. */
static po_status read_pads(po_infer *infer, uint32_t rank, int64_t *pads, bool *touched,
                           bool *known) {
    const int64_t *given, *axes = NULL;
    int64_t n, n_axes = rank;
    const char *name = infer->opset < 2 ? "paddings" : infer->opset < 11 ? "pads" : NULL;
    po_known have = po_rule_ints(infer, name, infer->opset < 11 ? PO_NONE : 1, &given, &n);
    po_known have_axes =
        infer->opset < 18 ? PO_ABSENT : po_rule_ints(infer, NULL, 3, &axes, &n_axes);
    *known = have == PO_KNOWN && have_axes != PO_NOT_KNOWN;
    for (uint32_t k = 0; k < rank; k++) {
        pads[k] = pads[rank + k] = 0;
        touched[k] = have_axes != PO_KNOWN;
    }
    if (have_axes == PO_NOT_KNOWN)
        return PO_OK;
    if (have_axes == PO_ABSENT) {
        axes = NULL;
        n_axes = rank;
    }
    if (have == PO_KNOWN && (n_axes > rank || n != 2 * n_axes))
        return po_rule_bad(infer->ctx, infer->node, "pads has %lld items for %lld axes",
                           (long long)n, (long long)n_axes);
    bool seen[PO_MAX_RANK] = {false};
    for (int64_t i = 0; i < n_axes; i++) {
        uint32_t k;
        PO_TRY(po_rule_axis(infer->ctx, infer->node, axes ? axes[i] : i, rank, &k));
        if (seen[k])
            return po_rule_bad(infer->ctx, infer->node, "axis %u is padded twice", k);
        seen[k] = true;
        touched[k] = true;
        if (have == PO_KNOWN) {
            pads[k] = given[i];
            pads[rank + k] = given[n_axes + i];
        }
    }
    return PO_OK;
}

static po_status padded_dim(po_infer *infer, po_dim d, int64_t begin, int64_t end, pad_mode mode,
                            po_dim *out) {
    int64_t v;
    *out = PO_DIM_UNKNOWN;
    if (begin == 0 && end == 0) {
        *out = d;
        return PO_OK;
    }
    if (d.value < 0) {
        if (po_add_i64(begin, end, &v))
            *out = po_size_plus(infer->arena, d, v);
        return PO_OK;
    }
    if (!po_add_i64(d.value, begin, &v) || !po_add_i64(v, end, &v) || v < 0 || -begin > d.value ||
        -end > d.value)
        return po_rule_bad(infer->ctx, infer->node, "pads %lld and %lld do not fit a dim of %lld",
                           (long long)begin, (long long)end, (long long)d.value);
    int64_t left = d.value + (begin < 0 ? begin : 0) + (end < 0 ? end : 0);
    if (mode != PAD_CONSTANT && left <= 0 && v > 0)
        return po_rule_bad(infer->ctx, infer->node, "nothing is left to pad with");
    *out = PO_DIM(v);
    return PO_OK;
}

po_status po_infer_pad(po_infer *infer) {
    const po_type *in = po_rule_ranked(infer, 0);
    pad_mode mode = PAD_CONSTANT;
    po_infer_set_unranked(infer, 0, po_infer_dtype(infer, 0));
    PO_TRY(mode_of(infer->ctx, infer->graph, infer->node, &mode));
    if (!in || in->rank > PO_MAX_RANK)
        return PO_OK;
    int64_t pads[2 * PO_MAX_RANK];
    bool touched[PO_MAX_RANK], known;
    PO_TRY(read_pads(infer, in->rank, pads, touched, &known));
    po_dim *dims = po_rule_out(infer, 0, in->dtype, in->rank);
    for (uint32_t k = 0; k < in->rank; k++) {
        if (!touched[k])
            dims[k] = in->dims[k];
        else if (known && (pads[k] == INT64_MIN || pads[in->rank + k] == INT64_MIN))
            return po_rule_bad(infer->ctx, infer->node, "pads of axis %u are out of range", k);
        else if (known)
            PO_TRY(padded_dim(infer, in->dims[k], pads[k], pads[in->rank + k], mode, &dims[k]));
    }
    return PO_OK;
}

/* Where output index o of an axis comes from; -1: the constant. */
static int64_t source(pad_mode mode, int64_t o, int64_t dim, int64_t begin, int64_t end) {
    int64_t low = begin < 0 ? -begin : 0, n = dim - low + (end < 0 ? end : 0);
    int64_t i = o - (begin > 0 ? begin : 0);
    if (i >= 0 && i < n)
        return low + i;
    switch (mode) {
    case PAD_CONSTANT:
        return -1;
    case PAD_EDGE:
        return i < 0 ? low : low + n - 1;
    case PAD_WRAP:
        return low + (i % n + n) % n;
    case PAD_REFLECT:
        break;
    }
    if (n == 1)
        return low;
    int64_t period = 2 * (n - 1);
    i = (i % period + period) % period;
    return low + (i < n ? i : period - i);
}

/* The constant that fills, as one element of the array's kind. */
static po_status fill_value(const po_ref *ref, const po_array *in, double *f, int64_t *i,
                            po_bytes *s, const void **fill) {
    const po_array *value = ref->opset >= 11 ? po_ref_in(ref, 2) : NULL;
    *f = ref->opset < 11 ? (double)po_op_float(ref->graph, ref->node, "value") : 0.0;
    *i = (int64_t)*f;
    *s = (po_bytes){"", 0};
    if (value && (value->count < 1 || value->dtype != in->dtype))
        return PO_UNSUPPORTED;
    if (value && value->f)
        *f = value->f[0];
    if (value && value->i)
        *i = value->i[0];
    if (value && value->s)
        *s = value->s[0];
    *fill = in->f ? (const void *)f : in->i ? (const void *)i : (const void *)s;
    return PO_OK;
}

/* The pads come out of the node as the shape rule read them: the rule has checked them. */
static const int64_t *pads_of(const po_ref *ref, uint32_t *n) {
    if (ref->opset < 11)
        return po_node_ints(ref->node, ref->opset < 2 ? "paddings" : "pads", n);
    const po_array *a = po_ref_in(ref, 1);
    *n = a ? (uint32_t)a->count : 0;
    return a ? a->i : NULL;
}

po_status po_ref_pad(po_ref *ref) {
    PO_TRY(po_rule_outputs(ref));
    const po_array *in = ref->in[0], *out = ref->out[0];
    const po_array *axes = ref->opset >= 18 ? po_ref_in(ref, 3) : NULL;
    pad_mode mode = PAD_CONSTANT;
    uint32_t n;
    const int64_t *pads = pads_of(ref, &n);
    const int64_t *maps[PO_MAX_RANK] = {NULL};
    double f;
    int64_t i;
    po_bytes s;
    const void *fill;
    PO_TRY(mode_of(ref->ctx, ref->graph, ref->node, &mode));
    if (!pads && in->rank > 0)
        return PO_UNSUPPORTED;
    PO_TRY(fill_value(ref, in, &f, &i, &s, &fill));
    for (uint32_t a = 0; a < n / 2; a++) {
        uint32_t k;
        PO_TRY(po_rule_axis(ref->ctx, ref->node, axes ? axes->i[a] : (int64_t)a, in->rank, &k));
        int64_t *map = PO_NEW_N(ref->arena, int64_t, out->dims[k]);
        for (int64_t o = 0; o < out->dims[k]; o++)
            map[o] = source(mode, o, in->dims[k], pads[a], pads[n / 2 + a]);
        maps[k] = map;
    }
    po_move_mapped(out, in, maps, fill);
    return PO_OK;
}

/* --- CenterCropPad --- */

po_status po_infer_center_crop_pad(po_infer *infer) {
    const po_type *in = po_rule_ranked(infer, 0);
    po_infer_set_unranked(infer, 0, po_infer_dtype(infer, 0));
    uint32_t n_axes = 0;
    const int64_t *axes = po_node_ints(infer->node, "axes", &n_axes);
    if (!in || in->rank > PO_MAX_RANK)
        return PO_OK;
    const po_contents *shape = po_rule_contents(infer, 1);
    po_dim *dims = po_rule_out(infer, 0, in->dtype, in->rank);
    memcpy(dims, in->dims, in->rank * sizeof *dims);
    uint32_t n = axes ? n_axes : in->rank;
    if (n > in->rank || (shape && shape->n != n))
        return po_rule_bad(infer->ctx, infer->node, "shape has %u items for %u axes",
                           shape ? shape->n : 0, n);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t k;
        PO_TRY(po_rule_axis(infer->ctx, infer->node, axes ? axes[i] : (int64_t)i, in->rank, &k));
        dims[k] = PO_DIM_UNKNOWN;
        if (!shape)
            continue;
        if (shape->exact[i] && shape->values[i] < 0)
            return PO_UNSUPPORTED; /* the runtime runs it */
        dims[k] = shape->exact[i] ? PO_DIM(shape->values[i]) : (po_dim){-1, shape->symbols[i]};
    }
    return PO_OK;
}

po_status po_ref_center_crop_pad(po_ref *ref) {
    PO_TRY(po_rule_outputs(ref));
    const po_array *in = ref->in[0], *out = ref->out[0];
    const int64_t *maps[PO_MAX_RANK] = {NULL};
    double f = 0;
    int64_t i = 0;
    po_bytes s = {"", 0};
    for (uint32_t k = 0; k < out->rank; k++) {
        int64_t have = in->dims[k], want = out->dims[k];
        int64_t shift = have > want ? (have - want) / 2 : -((want - have) / 2);
        int64_t *map = PO_NEW_N(ref->arena, int64_t, want);
        for (int64_t o = 0; o < want; o++)
            map[o] = o + shift >= 0 && o + shift < have ? o + shift : -1;
        maps[k] = map;
    }
    po_move_mapped(out, in, maps,
                   in->f   ? (const void *)&f
                   : in->i ? (const void *)&i
                           : (const void *)&s);
    return PO_OK;
}

/* --- attributes --- */

const po_attr_def po_attrs_pad[] = {
    {.name = "mode", .kind = PO_ATTR_STRING, .since = 1, .has_default = true, .s = "constant"},
    {.name = "paddings", .kind = PO_ATTR_INTS, .since = 1, .until = 1, .required = true},
    {.name = "pads", .kind = PO_ATTR_INTS, .since = 2, .until = 10, .required = true},
    {.name = "value",
     .kind = PO_ATTR_FLOAT,
     .since = 1,
     .until = 10,
     .has_default = true,
     .f = 0.0f},
    {0},
};

const po_attr_def po_attrs_center_crop_pad[] = {
    {.name = "axes", .kind = PO_ATTR_INTS, .since = 18},
    {0},
};

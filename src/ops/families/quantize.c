/* QuantizeLinear, DequantizeLinear (a scale for the tensor, for each index of an axis, or for each
 * block along it) and DynamicQuantizeLinear. */
#include "ops/families/rules.h"
#include "ops/ref.h"
#include "ops/shape.h"

#include <math.h>

/* --- shapes --- */

static po_dtype attr_dtype(const po_graph *graph, const po_node *node, const char *name) {
    int64_t v = po_op_int(graph, node, name);
    return v > 0 && v < PO_DT_COUNT ? (po_dtype)v : PO_DT_NONE;
}

po_status po_infer_quantize(po_infer *infer) {
    po_dtype to = attr_dtype(infer->graph, infer->node, "output_dtype");
    if (infer->n_in > 2 && infer->in[2])
        to = po_infer_dtype(infer, 2);
    else if (to == PO_DT_NONE)
        to = PO_U8;
    po_infer_set_like(infer, 0, to);
    return PO_OK;
}

po_status po_infer_dequantize(po_infer *infer) {
    po_dtype to = attr_dtype(infer->graph, infer->node, "output_dtype");
    po_infer_set_like(infer, 0, to == PO_DT_NONE ? po_infer_dtype(infer, 1) : to);
    return PO_OK;
}

po_status po_infer_dynamicquantize(po_infer *infer) {
    po_infer_set_like(infer, 0, PO_U8);
    po_infer_set(infer, 1, PO_F32, 0, NULL);
    po_infer_set(infer, 2, PO_U8, 0, NULL);
    return PO_OK;
}

/* --- reference --- */

/* Where element (o, a, i) of x, seen as [outer, axis, inner], finds its scale. */
typedef struct scales {
    int64_t outer, axis, inner;
    int64_t per_axis, block; /* entries along the axis, elements that share one; 0: one for all */
    bool outer_too;          /* blocked scales have the outer and inner axes as well */
} scales;

static po_status scales_of(po_ref *ref, const po_array *x, const po_array *scale, scales *s) {
    int64_t block = po_op_int(ref->graph, ref->node, "block_size");
    int64_t axis = po_op_int(ref->graph, ref->node, "axis");
    uint32_t at;
    *s = (scales){.outer = 1, .axis = x->count, .inner = 1};
    if (scale->count == 1 && scale->rank <= 1)
        return PO_OK;
    if (!po_axis_at(axis, x->rank, &at) || block < 0)
        return PO_UNSUPPORTED;
    s->outer = po_product(x->dims, 0, at);
    s->axis = x->dims[at];
    s->inner = po_product(x->dims, at + 1, x->rank);
    if (block == 0) {
        s->per_axis = s->axis;
        s->block = 1;
        return scale->rank == 1 && scale->count == s->axis ? PO_OK : PO_UNSUPPORTED;
    }
    if (scale->rank != x->rank)
        return PO_UNSUPPORTED;
    for (uint32_t i = 0; i < x->rank; i++)
        if (i != at && scale->dims[i] != x->dims[i])
            return PO_UNSUPPORTED;
    s->per_axis = scale->dims[at];
    s->block = block;
    s->outer_too = true;
    return s->per_axis == po_ceil_div(s->axis, block) ? PO_OK : PO_UNSUPPORTED;
}

static int64_t scale_index(const scales *s, int64_t o, int64_t a, int64_t i) {
    if (s->block == 0)
        return 0;
    return s->outer_too ? (o * s->per_axis + a / s->block) * s->inner + i : a;
}

/* The zero point is absent, or shaped as the scale. */
static bool zero_fits(const po_array *zero, const po_array *scale) {
    return !zero || (zero->count == scale->count && !zero->s);
}

static void int_range(po_dtype dtype, double *low, double *high) {
    int bits = (int)po_dtype_bits(dtype);
    bool is_signed = po_dtype_class_of(dtype) == PO_CLASS_SIGNED;
    *low = is_signed ? -ldexp(1.0, bits - 1) : 0;
    *high = ldexp(1.0, bits - is_signed) - 1;
}

/* Saturates a whole number; NaN is left to the caller. */
static int64_t saturated(po_dtype dtype, double v) {
    double low, high;
    int_range(dtype, &low, &high);
    return (int64_t)(v < low ? low : v > high ? high : v);
}

po_status po_ref_quantize(po_ref *ref) {
    const po_array *x = ref->in[0], *scale = ref->in[1], *zero = po_ref_in(ref, 2);
    po_dtype to = attr_dtype(ref->graph, ref->node, "output_dtype");
    bool saturate = po_op_int(ref->graph, ref->node, "saturate") != 0 || ref->opset < 19;
    po_dtype precision = attr_dtype(ref->graph, ref->node, "precision");
    scales s;
    po_array *y;
    to = zero ? zero->dtype : to == PO_DT_NONE ? PO_U8 : to;
    if (x->s || !scale->f || !zero_fits(zero, scale) || po_dtype_bits(to) > 32 ||
        po_dtype_class_of(to) == PO_CLASS_NONE || po_dtype_class_of(to) == PO_CLASS_BOOL)
        return PO_UNSUPPORTED;
    PO_TRY(scales_of(ref, x, scale, &s));
    PO_TRY(po_ref_out(ref, 0, to, x->rank, x->dims, &y));
    /* The division is in the model's precision: a tie there is a tie of the result. */
    bool narrow = ref->round && precision != PO_F64 && scale->dtype != PO_F64;
    for (int64_t o = 0, k = 0; o < s.outer; o++)
        for (int64_t a = 0; a < s.axis; a++)
            for (int64_t i = 0; i < s.inner; i++, k++) {
                int64_t at = scale_index(&s, o, a, i);
                double v = (x->f ? x->f[k] : (double)x->i[k]) / scale->f[at];
                v = narrow ? (double)(float)v : v;
                if (isnan(v))
                    return PO_UNSUPPORTED;
                if (y->f)
                    y->f[k] = po_narrow_float(to, v + (zero ? zero->f[at] : 0), saturate);
                else
                    y->i[k] = saturated(to, nearbyint(v) + (double)(zero ? zero->i[at] : 0));
            }
    return PO_OK;
}

po_status po_ref_dequantize(po_ref *ref) {
    const po_array *x = ref->in[0], *scale = ref->in[1], *zero = po_ref_in(ref, 2);
    po_dtype to = attr_dtype(ref->graph, ref->node, "output_dtype");
    scales s;
    po_array *y;
    if (x->s || !scale->f || !zero_fits(zero, scale) || (zero && zero->dtype != x->dtype))
        return PO_UNSUPPORTED;
    to = to == PO_DT_NONE ? scale->dtype : to;
    if (po_dtype_class_of(to) != PO_CLASS_FLOAT)
        return PO_UNSUPPORTED;
    PO_TRY(scales_of(ref, x, scale, &s));
    PO_TRY(po_ref_out(ref, 0, to, x->rank, x->dims, &y));
    for (int64_t o = 0, k = 0; o < s.outer; o++)
        for (int64_t a = 0; a < s.axis; a++)
            for (int64_t i = 0; i < s.inner; i++, k++) {
                int64_t at = scale_index(&s, o, a, i);
                double v = x->f ? x->f[k] - (zero ? zero->f[at] : 0)
                                : (double)x->i[k] - (double)(zero ? zero->i[at] : 0);
                y->f[k] = v * scale->f[at];
            }
    return PO_OK;
}

po_status po_ref_dynamicquantize(po_ref *ref) {
    const po_array *x = ref->in[0];
    float low = 0, high = 0;
    po_array *y, *scale, *zero;
    if (x->dtype != PO_F32)
        return PO_UNSUPPORTED;
    for (int64_t k = 0; k < x->count; k++) {
        if (!isfinite(x->f[k]))
            return PO_UNSUPPORTED;
        low = x->f[k] < (double)low ? (float)x->f[k] : low;
        high = x->f[k] > (double)high ? (float)x->f[k] : high;
    }
    float step = (high - low) / 255.0f;
    if (!(step > 0) || isinf(step))
        return PO_UNSUPPORTED;
    int64_t shift = saturated(PO_U8, (double)nearbyintf(0.0f - low / step));
    PO_TRY(po_ref_out(ref, 0, PO_U8, x->rank, x->dims, &y));
    PO_TRY(po_ref_out(ref, 1, PO_F32, 0, NULL, &scale));
    PO_TRY(po_ref_out(ref, 2, PO_U8, 0, NULL, &zero));
    for (int64_t k = 0; k < x->count; k++)
        y->i[k] = saturated(PO_U8, (double)nearbyintf((float)x->f[k] / step) + (double)shift);
    scale->f[0] = (double)step;
    zero->i[0] = shift;
    return PO_OK;
}

/* --- attributes --- */

const po_attr_def po_attrs_quantizelinear[] = {
    {.name = "axis", .kind = PO_ATTR_INT, .since = 13, .has_default = true, .i = 1},
    {.name = "block_size", .kind = PO_ATTR_INT, .since = 21, .has_default = true, .i = 0},
    {.name = "output_dtype", .kind = PO_ATTR_INT, .since = 21, .has_default = true, .i = 0},
    {.name = "precision", .kind = PO_ATTR_INT, .since = 23, .has_default = true, .i = 0},
    {.name = "saturate", .kind = PO_ATTR_INT, .since = 19, .has_default = true, .i = 1},
    {0},
};
const po_attr_def po_attrs_dequantizelinear[] = {
    {.name = "axis", .kind = PO_ATTR_INT, .since = 13, .has_default = true, .i = 1},
    {.name = "block_size", .kind = PO_ATTR_INT, .since = 21, .has_default = true, .i = 0},
    {.name = "output_dtype", .kind = PO_ATTR_INT, .since = 23, .has_default = true, .i = 0},
    {0},
};

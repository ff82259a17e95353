/* DeformConv, Col2Im, MaxUnpool. */
#include "ops/window.h"

#include <math.h>

/* --- DeformConv (two spatial axes) --- */

typedef struct groups {
    int64_t group, offset_group;
} groups;

static po_status read_deform(po_infer *infer, po_window *w, groups *g, bool *known) {
    const po_type *x = po_rule_ranked(infer, 0), *weights = po_rule_ranked(infer, 1);
    const po_type *offset = po_rule_ranked(infer, 2), *bias = po_rule_ranked(infer, 3);
    const po_type *mask = po_rule_ranked(infer, 4);
    *known = x && weights;
    if (!*known)
        return PO_OK;
    if (x->rank != 4 || weights->rank != 4 || (offset && offset->rank != 4) ||
        (mask && mask->rank != 4) || (bias && bias->rank != 1))
        return po_rule_bad(infer->ctx, infer->node, "ranks do not fit (%u and %u)", x->rank,
                           weights->rank);
    int64_t kernel[2] = {weights->dims[2].value, weights->dims[3].value};
    PO_TRY(po_window_read(infer->ctx, infer->graph, infer->node, 2, kernel, w));
    g->group = po_op_int(infer->graph, infer->node, "group");
    g->offset_group = po_op_int(infer->graph, infer->node, "offset_group");
    if (g->group < 1 || g->offset_group < 1 || g->group > INT32_MAX || g->offset_group > INT32_MAX)
        return po_rule_bad(infer->ctx, infer->node, "groups are out of range (%lld and %lld)",
                           (long long)g->group, (long long)g->offset_group);
    int64_t channels = x->dims[1].value, out = weights->dims[0].value, taps, wide;
    if ((channels >= 0 && (channels % g->group || channels % g->offset_group)) ||
        (out >= 0 && out % g->group))
        return po_rule_bad(infer->ctx, infer->node, "channels do not divide into the groups");
    po_dim both;
    if (channels >= 0)
        PO_TRY(po_rule_same_dim(infer, PO_DIM(channels / g->group), weights->dims[1],
                                "channels of input and weights", &both));
    if (bias)
        PO_TRY(po_rule_same_dim(infer, bias->dims[0], weights->dims[0], "channels of the bias",
                                &both));
    if (kernel[0] < 0 || kernel[1] < 0 || !po_mul_i64(kernel[0], kernel[1], &taps) ||
        !po_mul_i64(taps, 2 * g->offset_group, &wide))
        *known = false;
    for (uint32_t k = 0; k < 2 && *known; k++) {
        const po_type *t = k ? mask : offset;
        if (!t)
            continue;
        PO_TRY(po_rule_same_dim(infer, t->dims[0], x->dims[0], "batch sizes", &both));
        PO_TRY(po_rule_same_dim(infer, t->dims[1], PO_DIM(k ? wide / 2 : wide),
                                "channels of offset or mask", &both));
        for (uint32_t a = 0; a < 2; a++)
            PO_TRY(po_rule_same_dim(infer, t->dims[2 + a], po_window_out(w, a, x->dims[2 + a]),
                                    "output dims of offset or mask", &both));
    }
    return PO_OK;
}

po_status po_infer_deform_conv(po_infer *infer) {
    const po_type *x = po_rule_ranked(infer, 0), *weights = po_rule_ranked(infer, 1);
    po_window w;
    groups g;
    bool known;
    po_infer_set_unranked(infer, 0, po_infer_dtype(infer, 0));
    PO_TRY(read_deform(infer, &w, &g, &known));
    if (!x || !weights)
        return PO_OK;
    po_dim *dims = po_rule_out(infer, 0, x->dtype, 4);
    dims[0] = x->dims[0];
    dims[1] = weights->dims[0];
    for (uint32_t a = 0; a < 2 && known; a++)
        dims[2 + a] = po_window_out(&w, a, x->dims[2 + a]);
    return PO_OK;
}

/* Linear in both axes; zero outside. */
static double at_place(const double *plane, int64_t height, int64_t width, double y, double x) {
    if (!(y > -1 && y < (double)height && x > -1 && x < (double)width))
        return 0;
    double fy = floor(y), fx = floor(x), sum = 0;
    for (int k = 0; k < 4; k++) {
        int64_t i = (int64_t)fy + k / 2, j = (int64_t)fx + k % 2;
        double wy = k / 2 ? y - fy : 1 - (y - fy), wx = k % 2 ? x - fx : 1 - (x - fx);
        if (i >= 0 && i < height && j >= 0 && j < width)
            sum += wy * wx * plane[i * width + j];
    }
    return sum;
}

po_status po_ref_deform_conv(po_ref *ref) {
    PO_TRY(po_rule_outputs(ref));
    const po_array *x = ref->in[0], *weights = ref->in[1], *offset = ref->in[2];
    const po_array *bias = po_ref_in(ref, 3), *mask = po_ref_in(ref, 4), *out = ref->out[0];
    po_window w;
    groups g;
    bool known;
    po_infer infer;
    po_type *types = PO_NEW_N(ref->arena, po_type, ref->n_out);
    PO_TRY(po_rule_infer_of(ref, types, &infer));
    PO_TRY(read_deform(&infer, &w, &g, &known));
    if (!known || !po_rule_floats(ref, 0, 4) || out->count == 0)
        return known && out->count == 0 ? PO_OK : PO_UNSUPPORTED;
    int64_t channels = x->dims[1], h = x->dims[2], wd = x->dims[3], oh = out->dims[2];
    int64_t ow = out->dims[3], taps = w.kernel[0] * w.kernel[1], outs = out->dims[1];
    int64_t each_in = channels / g.group, each_out = outs / g.group;
    for (int64_t b = 0; b < out->dims[0]; b++)
        for (int64_t c = 0; c < channels; c++)
            for (int64_t t = 0; t < taps; t++)
                for (int64_t o = 0; o < oh * ow; o++) {
                    int64_t og = c / (channels / g.offset_group);
                    int64_t row = (b * g.offset_group + og) * taps + t;
                    double dy = offset->f[2 * row * oh * ow + o];
                    double dx = offset->f[(2 * row + 1) * oh * ow + o];
                    double y = (double)(o / ow * w.stride[0] - w.begin[0] +
                                        t / w.kernel[1] * w.dilation[0]) +
                               dy;
                    double px = (double)(o % ow * w.stride[1] - w.begin[1] +
                                         t % w.kernel[1] * w.dilation[1]) +
                                dx;
                    double v = at_place(x->f + (b * channels + c) * h * wd, h, wd, y, px);
                    if (mask)
                        v *= mask->f[row * oh * ow + o];
                    for (int64_t k = 0; k < each_out; k++) {
                        int64_t to = c / each_in * each_out + k;
                        out->f[(b * outs + to) * oh * ow + o] +=
                            v * weights->f[(to * each_in + c % each_in) * taps + t];
                    }
                }
    for (int64_t i = 0; bias && i < out->count; i++)
        out->f[i] += bias->f[i / (oh * ow) % outs];
    return PO_OK;
}

/* --- Col2Im: the transposed of cutting an image into blocks --- */

static po_status read_col2im(po_infer *infer, po_window *w, const int64_t **image, bool *known) {
    const int64_t *block;
    int64_t n, n_block;
    const po_type *x = po_rule_ranked(infer, 0);
    *known = po_rule_ints(infer, NULL, 1, image, &n) == PO_KNOWN &&
             po_rule_ints(infer, NULL, 2, &block, &n_block) == PO_KNOWN;
    if (x && x->rank != 3)
        return po_rule_bad(infer->ctx, infer->node, "input must have rank 3 (found %u)", x->rank);
    if (!*known)
        return PO_OK;
    if (n != n_block || n < 1 || n > PO_MAX_RANK - 2)
        return po_rule_bad(infer->ctx, infer->node,
                           "image_shape and block_shape differ in length (%lld and %lld)",
                           (long long)n, (long long)n_block);
    for (int64_t k = 0; k < n; k++)
        if ((*image)[k] < 0 || (*image)[k] > INT32_MAX || block[k] < 1)
            return po_rule_bad(infer->ctx, infer->node, "a shape's item %lld is out of range",
                               (long long)k);
    return po_window_read(infer->ctx, infer->graph, infer->node, (uint32_t)n, block, w);
}

/* Channels of the image: what is left of the input's after the taps. */
static po_status image_channels(po_infer *infer, po_window *w, const int64_t *image,
                                po_dim *channels) {
    const po_type *x = po_rule_ranked(infer, 0);
    int64_t taps = 1, blocks = 1;
    *channels = PO_DIM_UNKNOWN;
    for (uint32_t k = 0; k < w->n; k++) {
        po_dim steps = po_window_out(w, k, PO_DIM(image[k]));
        if (steps.value < 0 || !po_mul_i64(taps, w->kernel[k], &taps) ||
            !po_mul_i64(blocks, steps.value, &blocks))
            return po_rule_bad(infer->ctx, infer->node, "blocks do not fit the image");
    }
    if (!x)
        return PO_OK;
    if ((x->dims[1].value >= 0 && x->dims[1].value % taps != 0) ||
        (x->dims[2].value >= 0 && x->dims[2].value != blocks))
        return po_rule_bad(infer->ctx, infer->node, "input does not hold %lld taps of %lld blocks",
                           (long long)taps, (long long)blocks);
    if (x->dims[1].value >= 0)
        *channels = PO_DIM(x->dims[1].value / taps);
    return PO_OK;
}

po_status po_infer_col2im(po_infer *infer) {
    const po_type *x = po_rule_ranked(infer, 0);
    const int64_t *image;
    po_window w;
    bool known;
    po_infer_set_unranked(infer, 0, po_infer_dtype(infer, 0));
    PO_TRY(read_col2im(infer, &w, &image, &known));
    if (!known)
        return PO_OK;
    po_dim *dims = po_rule_out(infer, 0, po_infer_dtype(infer, 0), w.n + 2);
    if (x)
        dims[0] = x->dims[0];
    for (uint32_t k = 0; k < w.n; k++)
        dims[2 + k] = PO_DIM(image[k]);
    return image_channels(infer, &w, image, &dims[1]);
}

po_status po_ref_col2im(po_ref *ref) {
    PO_TRY(po_rule_outputs(ref));
    const po_array *x = ref->in[0], *out = ref->out[0];
    const int64_t *image;
    po_window w;
    po_infer infer;
    bool known;
    int64_t steps[PO_MAX_RANK], strides[PO_MAX_RANK];
    po_type *types = PO_NEW_N(ref->arena, po_type, ref->n_out);
    PO_TRY(po_rule_infer_of(ref, types, &infer));
    PO_TRY(read_col2im(&infer, &w, &image, &known));
    if (!known || !x->f)
        return PO_UNSUPPORTED;
    for (uint32_t k = 0; k < w.n; k++)
        steps[k] = po_window_out(&w, k, PO_DIM(image[k])).value;
    po_rule_strides(w.n, out->dims + 2, strides);
    int64_t plane = po_product(out->dims, 2, out->rank), planes = out->dims[0] * out->dims[1];
    const double *from = x->f;
    if (x->count == 0)
        return PO_OK;
    for (int64_t c = 0; c < planes; c++) {
        int64_t tap[PO_MAX_RANK] = {0};
        do {
            int64_t at[PO_MAX_RANK] = {0};
            do {
                int64_t to = 0;
                bool inside = true;
                for (uint32_t k = 0; k < w.n && inside; k++) {
                    int64_t i = at[k] * w.stride[k] + tap[k] * w.dilation[k] - w.begin[k];
                    inside = i >= 0 && i < image[k];
                    to += i * strides[k];
                }
                if (inside)
                    out->f[c * plane + to] += *from;
                from++;
            } while (po_next_index(w.n, steps, at));
        } while (po_next_index(w.n, w.kernel, tap));
    }
    return PO_OK;
}

/* --- MaxUnpool --- */

/* The shape that the pool had, as far as kernel, strides and pads tell. */
static po_status unpooled(po_infer *infer, const po_type *x, po_dim *dims) {
    po_window w;
    PO_TRY(po_window_read(infer->ctx, infer->graph, infer->node, x->rank - 2, NULL, &w));
    dims[0] = x->dims[0];
    dims[1] = x->dims[1];
    for (uint32_t k = 0; k < w.n; k++) {
        int64_t v;
        dims[2 + k] = PO_DIM_UNKNOWN;
        if (x->dims[2 + k].value < 1 || x->dims[2 + k].value > INT32_MAX)
            continue;
        v = (x->dims[2 + k].value - 1) * w.stride[k] - w.begin[k] - w.end[k] + w.kernel[k];
        if (v < 0)
            return po_rule_bad(infer->ctx, infer->node, "the pads are too large");
        dims[2 + k] = PO_DIM(v);
    }
    return PO_OK;
}

po_status po_infer_max_unpool(po_infer *infer) {
    const po_type *x = po_rule_ranked(infer, 0), *indices = po_rule_ranked(infer, 1);
    const po_contents *shape = po_rule_contents(infer, 2);
    po_infer_set_unranked(infer, 0, po_infer_dtype(infer, 0));
    if (!x)
        return PO_OK;
    if (x->rank < 3 || (indices && indices->rank != x->rank) || (shape && shape->n != x->rank))
        return po_rule_bad(infer->ctx, infer->node, "ranks do not fit (%u)", x->rank);
    po_dim *dims = po_rule_out(infer, 0, x->dtype, x->rank), both;
    PO_TRY(unpooled(infer, x, dims));
    for (uint32_t k = 0; indices && k < x->rank; k++)
        PO_TRY(po_rule_same_dim(infer, x->dims[k], indices->dims[k], "dims of input and indices",
                                &both));
    for (uint32_t k = 0; k < x->rank; k++) {
        if (!shape) {
            if (infer->n_in > 2 && infer->in[2] && k > 1)
                dims[k] = PO_DIM_UNKNOWN;
            continue;
        }
        if (shape->exact[k] && (shape->values[k] < 0 || (dims[k].value > shape->values[k])))
            return po_rule_bad(infer->ctx, infer->node, "output_shape is too small (%lld)",
                               (long long)shape->values[k]);
        dims[k] = shape->exact[k] ? PO_DIM(shape->values[k]) : PO_DIM_UNKNOWN;
    }
    return PO_OK;
}

po_status po_ref_max_unpool(po_ref *ref) {
    PO_TRY(po_rule_outputs(ref));
    const po_array *x = ref->in[0], *indices = ref->in[1], *out = ref->out[0];
    po_infer infer;
    po_type *types = PO_NEW_N(ref->arena, po_type, ref->n_out);
    po_dim inner[PO_MAX_RANK];
    int64_t from[PO_MAX_RANK], to[PO_MAX_RANK], dims[PO_MAX_RANK], count = 1;
    PO_TRY(po_rule_infer_of(ref, types, &infer));
    PO_TRY(unpooled(&infer, infer.in[0], inner));
    if (!x->f || !indices->i || x->count == 0)
        return x->f && x->count == 0 ? PO_OK : PO_UNSUPPORTED;
    for (uint32_t k = 0; k < x->rank; k++) {
        dims[k] = inner[k].value;
        if (dims[k] < 0 || !po_mul_i64(count, dims[k], &count) || count > PO_REF_MAX_COUNT)
            return PO_UNSUPPORTED;
    }
    po_rule_strides(x->rank, dims, from);
    po_rule_strides(x->rank, out->dims, to);
    for (int64_t i = 0; i < x->count; i++) {
        int64_t at = 0, index = indices->i[i];
        if (index < 0 || index >= count)
            return po_rule_bad(ref->ctx, ref->node, "index %lld is out of range", (long long)index);
        for (uint32_t k = 0; k < x->rank; k++)
            at += index / from[k] % dims[k] * to[k];
        out->f[at] = x->f[i];
    }
    return PO_OK;
}

/* --- attributes --- */

const po_attr_def po_attrs_deform_conv[] = {
    {.name = "dilations", .kind = PO_ATTR_INTS, .since = 19},
    {.name = "group", .kind = PO_ATTR_INT, .since = 19, .has_default = true, .i = 1},
    {.name = "kernel_shape", .kind = PO_ATTR_INTS, .since = 19},
    {.name = "offset_group", .kind = PO_ATTR_INT, .since = 19, .has_default = true, .i = 1},
    {.name = "pads", .kind = PO_ATTR_INTS, .since = 19},
    {.name = "strides", .kind = PO_ATTR_INTS, .since = 19},
    {0},
};

const po_attr_def po_attrs_col2im[] = {
    {.name = "dilations", .kind = PO_ATTR_INTS, .since = 18},
    {.name = "pads", .kind = PO_ATTR_INTS, .since = 18},
    {.name = "strides", .kind = PO_ATTR_INTS, .since = 18},
    {0},
};

const po_attr_def po_attrs_max_unpool[] = {
    {.name = "kernel_shape", .kind = PO_ATTR_INTS, .since = 9, .required = true},
    {.name = "pads", .kind = PO_ATTR_INTS, .since = 9},
    {.name = "strides", .kind = PO_ATTR_INTS, .since = 9},
    {0},
};

/* Resize (every opset) and Upsample. */
#include "ir/size.h"
#include "ops/kernels.h"
#include "ops/rule.h"

#include <math.h>

/* What one node means, axis by axis. */
typedef struct plan {
    uint32_t rank;
    bool known[PO_MAX_RANK];   /* scale (and for references all else) is known */
    bool resized[PO_MAX_RANK]; /* false: the axis stays as it is */
    double scale[PO_MAX_RANK]; /* output / input */
    int64_t in[PO_MAX_RANK];   /* -1: not known */
    po_dim open[PO_MAX_RANK];  /* the same, with its symbol */
    po_dim out[PO_MAX_RANK];
    double start[PO_MAX_RANK], end[PO_MAX_RANK]; /* region of interest */
} plan;

typedef struct inputs {
    uint32_t roi, scales, sizes; /* indices, PO_NONE where the version has none */
} inputs;

static bool is_upsample(const po_node *node) {
    return strcmp(node->op_type, "Upsample") == 0;
}

static inputs inputs_of(const po_node *node, int64_t opset) {
    if (is_upsample(node))
        return (inputs){PO_NONE, opset >= 9 ? 1 : PO_NONE, PO_NONE};
    if (opset < 11)
        return (inputs){PO_NONE, 1, PO_NONE};
    return (inputs){1, 2, 3};
}

/* The axes that scales and sizes speak of. */
static po_status read_axes(po_infer *infer, uint32_t rank, uint32_t *axes, uint32_t *n) {
    const int64_t *given = infer->opset >= 18 ? po_node_ints(infer->node, "axes", n) : NULL;
    bool seen[PO_MAX_RANK] = {false};
    if (!given)
        *n = rank;
    if (*n > rank)
        return po_rule_bad(infer->ctx, infer->node, "too many axes (found %u)", *n);
    for (uint32_t i = 0; i < *n; i++) {
        axes[i] = i;
        if (given)
            PO_TRY(po_rule_axis(infer->ctx, infer->node, given[i], rank, &axes[i]));
        if (seen[axes[i]])
            return po_rule_bad(infer->ctx, infer->node, "axis %u is given twice", axes[i]);
        seen[axes[i]] = true;
    }
    return PO_OK;
}

/* Numbers of a float attribute or constant input; NULL where not known, *n -1 where absent. */
static const double *floats_of(po_infer *infer, const char *attr, uint32_t input, int64_t *n) {
    uint32_t count;
    const float *f = attr ? po_node_floats(infer->node, attr, &count) : NULL;
    *n = -1;
    if (f) {
        double *v = PO_NEW_N(infer->arena, double, count);
        for (uint32_t i = 0; i < count; i++)
            v[i] = (double)f[i];
        *n = count;
        return v;
    }
    if (input >= infer->n_in || !infer->in[input])
        return NULL;
    const po_tensor *t = infer->constant[input];
    *n = t ? t->count : 0;
    if (!t || t->count > INT64_C(2) * PO_MAX_RANK ||
        po_dtype_class_of(t->dtype) != PO_CLASS_FLOAT) {
        *n = t && t->count == 0 ? -1 : 0;
        return NULL;
    }
    if (t->count == 0) {
        *n = -1; /* an empty list stands for an omitted one */
        return NULL;
    }
    double *v = PO_NEW_N(infer->arena, double, t->count);
    for (int64_t i = 0; i < t->count; i++)
        v[i] = po_tensor_f64(t, i);
    return v;
}

/* By whole numbers, or halves and quarters: exact in single precision. */
static po_dim open_length(const po_infer *infer, po_dim in, double scale) {
    enum { MOST = 64 };
    if (scale == floor(scale) && scale <= MOST)
        return po_size_times(infer->arena, in, (int64_t)scale);
    const double part = 1 / scale;
    const bool power = part == 2 || part == 4 || part == 8 || part == 16 || part == 32;
    return power ? po_size_floor(infer->arena, in, 0, (int64_t)part) : PO_DIM_UNKNOWN;
}

static po_status set_scale(po_infer *infer, plan *p, uint32_t k, double scale) {
    if (!(scale > 0) || scale > 1e9)
        return po_rule_bad(infer->ctx, infer->node, "scale of axis %u is out of range (%g)", k,
                           scale);
    p->scale[k] = scale;
    p->known[k] = true;
    p->resized[k] = scale != 1.0;
    if (scale == 1.0)
        return PO_OK;
    p->out[k] = PO_DIM_UNKNOWN;
    if (p->in[k] >= 0 && p->in[k] < INT64_C(1) << 31) {
        /* In single precision, as the runtime does. */
        float product = (float)p->in[k] * (float)scale;
        p->out[k] = PO_DIM((int64_t)floor((double)product));
    } else if (p->in[k] < 0) {
        p->out[k] = open_length(infer, p->open[k], scale);
    }
    return PO_OK;
}

static po_status read_sizes(po_infer *infer, plan *p, const uint32_t *axes, uint32_t n,
                            const po_contents *sizes) {
    bool larger = po_rule_mode(infer->graph, infer->node, "keep_aspect_ratio_policy", "not_larger");
    bool smaller =
        po_rule_mode(infer->graph, infer->node, "keep_aspect_ratio_policy", "not_smaller");
    double scale = 0;
    bool all = true;
    if (sizes->n != n)
        return po_rule_bad(infer->ctx, infer->node, "sizes has %u items for %u axes", sizes->n, n);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t k = axes[i];
        p->resized[k] = true;
        p->out[k] = sizes->exact[i] ? PO_DIM(sizes->values[i]) : (po_dim){-1, sizes->symbols[i]};
        if (sizes->exact[i] && sizes->values[i] > INT32_MAX)
            return PO_UNSUPPORTED; /* may run where there is memory for it */
        if (sizes->exact[i] && sizes->values[i] < 0 && (larger || smaller))
            return PO_UNSUPPORTED; /* another axis may decide */
        if (sizes->exact[i] && sizes->values[i] < 0)
            return po_rule_bad(infer->ctx, infer->node, "size of axis %u is out of range (%lld)", k,
                               (long long)sizes->values[i]);
        p->known[k] = sizes->exact[i] && p->in[k] > 0 && p->in[k] <= INT32_MAX;
        all = all && p->known[k];
        if (!p->known[k])
            continue;
        p->scale[k] = (double)sizes->values[i] / (double)p->in[k];
        if (scale == 0 || (larger ? p->scale[k] < scale : p->scale[k] > scale))
            scale = p->scale[k];
    }
    for (uint32_t i = 0; (larger || smaller) && i < n; i++) {
        uint32_t k = axes[i];
        p->known[k] = all;
        p->scale[k] = scale;
        p->out[k] = all ? PO_DIM((int64_t)floor(scale * (double)p->in[k] + 0.5)) : PO_DIM_UNKNOWN;
    }
    /* Sizes that change nothing leave the axis alone. */
    for (uint32_t i = 0; i < n; i++)
        if (p->known[axes[i]] && p->scale[axes[i]] == 1.0)
            p->resized[axes[i]] = false;
    return PO_OK;
}

static po_status read_roi(po_infer *infer, plan *p, const uint32_t *axes, uint32_t n,
                          uint32_t input) {
    int64_t count;
    for (uint32_t k = 0; k < p->rank; k++) {
        p->start[k] = 0;
        p->end[k] = 1;
    }
    if (!po_rule_mode(infer->graph, infer->node, "coordinate_transformation_mode",
                      "tf_crop_and_resize"))
        return PO_OK;
    const double *roi = floats_of(infer, NULL, input, &count);
    if (count >= 0 && roi && count != 2 * (int64_t)n)
        return po_rule_bad(infer->ctx, infer->node, "roi has %lld items for %u axes",
                           (long long)count, n);
    for (uint32_t i = 0; roi && i < n; i++) {
        p->start[axes[i]] = roi[i];
        p->end[axes[i]] = roi[n + i];
        p->resized[axes[i]] = p->resized[axes[i]] || roi[i] != 0.0 || roi[n + i] != 1.0;
    }
    return PO_OK;
}

/* An optional input that is given, as far as can be told: an empty constant stands for none. */
static bool is_given(const po_infer *infer, uint32_t input) {
    return input < infer->n_in && infer->node->in[input] != PO_NONE &&
           !(infer->constant[input] && infer->constant[input]->count == 0);
}

/* What `scales` or `sizes` of another length than the axes would say. */
static po_status check_lengths(const po_infer *infer, inputs at, uint32_t n) {
    if (at.sizes == PO_NONE || infer->opset < 13)
        return PO_OK;
    if (!is_given(infer, at.scales) && !is_given(infer, at.sizes))
        return po_rule_bad(infer->ctx, infer->node, "neither scales nor sizes is there");
    const po_type *sizes = po_rule_ranked(infer, at.sizes);
    if (sizes && sizes->rank == 1 && sizes->dims[0].value > 0 && sizes->dims[0].value != n)
        return po_rule_bad(infer->ctx, infer->node, "sizes has %lld items for %u axes",
                           (long long)sizes->dims[0].value, n);
    return PO_OK;
}

/* Fills the plan; what is not known of it stays so. */
static po_status read_plan(po_infer *infer, const po_type *x, plan *p) {
    inputs at = inputs_of(infer->node, infer->opset);
    uint32_t axes[PO_MAX_RANK], n;
    int64_t n_scales;
    p->rank = x->rank;
    PO_TRY(read_axes(infer, x->rank, axes, &n));
    PO_TRY(check_lengths(infer, at, n));
    bool listed[PO_MAX_RANK] = {false};
    for (uint32_t i = 0; i < n; i++)
        listed[axes[i]] = true;
    for (uint32_t k = 0; k < x->rank; k++) {
        p->in[k] = x->dims[k].value;
        p->open[k] = x->dims[k];
        p->out[k] = listed[k] ? PO_DIM_UNKNOWN : x->dims[k];
        p->scale[k] = 1;
        p->known[k] = !listed[k];
        p->resized[k] = listed[k];
    }
    if (is_upsample(infer->node) && infer->opset < 7) {
        if (x->rank != 4)
            return po_rule_bad(infer->ctx, infer->node, "input must have rank 4 (found %u)",
                               x->rank);
        for (uint32_t k = 0; k < 2; k++)
            p->out[k] = x->dims[k];
        PO_TRY(set_scale(infer, p, 0, 1.0));
        PO_TRY(set_scale(infer, p, 1, 1.0));
        PO_TRY(
            set_scale(infer, p, 2, (double)po_op_float(infer->graph, infer->node, "height_scale")));
        return set_scale(infer, p, 3,
                         (double)po_op_float(infer->graph, infer->node, "width_scale"));
    }
    const double *scales =
        floats_of(infer, is_upsample(infer->node) ? "scales" : NULL, at.scales, &n_scales);
    const po_contents *sizes = po_rule_contents(infer, at.sizes);
    if (scales) {
        if (n_scales != (int64_t)n)
            return po_rule_bad(infer->ctx, infer->node, "scales has %lld items for %u axes",
                               (long long)n_scales, n);
        for (uint32_t i = 0; i < n; i++) {
            if (scales[i] == 1.0)
                p->out[axes[i]] = x->dims[axes[i]];
            PO_TRY(set_scale(infer, p, axes[i], scales[i]));
        }
    } else if (sizes && sizes->n) {
        PO_TRY(read_sizes(infer, p, axes, n, sizes));
    }
    return read_roi(infer, p, axes, n, at.roi);
}

po_status po_infer_resize(po_infer *infer) {
    const po_type *x = po_rule_ranked(infer, 0);
    po_infer_set_unranked(infer, 0, po_infer_dtype(infer, 0));
    if (!x || x->rank > PO_MAX_RANK)
        return PO_OK;
    plan *p = PO_NEW(infer->arena, plan);
    PO_TRY(read_plan(infer, x, p));
    memcpy(po_rule_out(infer, 0, x->dtype, x->rank), p->out, x->rank * sizeof *p->out);
    return PO_OK;
}

/* --- coordinates --- */

typedef enum transform {
    HALF_PIXEL,
    HALF_PIXEL_SYMMETRIC,
    PYTORCH_HALF_PIXEL,
    ALIGN_CORNERS,
    ASYMMETRIC,
    TF_HALF_PIXEL,
    TF_CROP
} transform;

static po_status transform_of(const po_ref *ref, transform *t) {
    static const char *const names[] = {
        "half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners",
        "asymmetric", "tf_half_pixel_for_nn", "tf_crop_and_resize"};
    *t = ASYMMETRIC;
    if (is_upsample(ref->node) || ref->opset < 11)
        return PO_OK;
    for (int i = 0; i < 7; i++)
        if (po_rule_mode(ref->graph, ref->node, "coordinate_transformation_mode", names[i])) {
            *t = (transform)i;
            return PO_OK;
        }
    return po_rule_bad(ref->ctx, ref->node, "unknown coordinate_transformation_mode");
}

/* Where output index o lies on the input's axis. */
static double raw_coordinate(transform t, const plan *p, uint32_t k, int64_t o) {
    double x = (double)o, in = (double)p->in[k], scale = p->scale[k];
    double out = (double)p->out[k].value;
    switch (t) {
    case HALF_PIXEL:
        return (x + 0.5) / scale - 0.5;
    case HALF_PIXEL_SYMMETRIC:
        return in / 2 * (1 - out / (scale * in)) + (x + 0.5) / scale - 0.5;
    case PYTORCH_HALF_PIXEL:
        return out > 1 ? (x + 0.5) / scale - 0.5 : 0.0;
    case ALIGN_CORNERS:
        return out == 1 ? 0.0 : x * (in - 1) / (out - 1);
    case ASYMMETRIC:
        return x / scale;
    case TF_HALF_PIXEL:
        return (x + 0.5) / scale;
    case TF_CROP:
        if (out > 1)
            return p->start[k] * (in - 1) + x * (p->end[k] - p->start[k]) * (in - 1) / (out - 1);
        return 0.5 * (p->start[k] + p->end[k]) * (in - 1);
    }
    return x;
}

/* The commonest ones as the runtime computes them, in single precision. */
static double rough_coordinate(transform t, const plan *p, uint32_t k, int64_t o) {
    float x = (float)o, scale = (float)p->scale[k], in = (float)p->in[k];
    float out = (float)p->out[k].value;
    switch (t) {
    case HALF_PIXEL:
        return (double)((x + 0.5f) / scale - 0.5f);
    case PYTORCH_HALF_PIXEL:
        return out > 1 ? (double)((x + 0.5f) / scale - 0.5f) : 0.0;
    case ALIGN_CORNERS:
        return out == 1 ? 0.0 : (double)(x * (in - 1) / (out - 1));
    case ASYMMETRIC:
        return (double)(x / scale);
    case TF_HALF_PIXEL:
        return (double)((x + 0.5f) / scale);
    default:
        return raw_coordinate(t, p, k, o);
    }
}

/* The same, kept to numbers that fit an index. */
static double coordinate(transform t, const plan *p, uint32_t k, int64_t o) {
    double x = raw_coordinate(t, p, k, o);
    return x >= -1e12 ? x <= 1e12 ? x : 1e12 : -1e12;
}

/* --- filters --- */

typedef struct filter {
    transform transform;
    bool linear, cubic, antialias, exclude_outside;
    double a;    /* cubic coefficient */
    int nearest; /* index into nearest_names */
    bool crop;
} filter;

static const char *const nearest_names[] = {"round_prefer_floor", "round_prefer_ceil", "floor",
                                            "ceil"};

static double cubic(double a, double x) {
    x = fabs(x);
    if (x <= 1)
        return ((a + 2) * x - (a + 3)) * x * x + 1;
    return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0.0;
}

/* The taps of one output index: indices base + first + [0, n), coefficients in c. */
static int64_t taps(const filter *f, double scale, double ratio, double *c, int64_t *first) {
    double s = f->antialias && scale < 1 ? scale : 1.0, sum = 0, reach = f->cubic ? 2.0 : 1.0;
    *first = (int64_t)floor(-reach / s) + 1;
    int64_t n = 2 - 2 * *first;
    for (int64_t i = 0; i < n; i++) {
        double x = ((double)(*first + i) - ratio) * s;
        c[i] = f->cubic ? cubic(f->a, x) : fabs(x) < 1 ? 1 - fabs(x) : 0.0;
        sum += c[i];
    }
    for (int64_t i = 0; f->antialias && i < n; i++)
        c[i] /= sum;
    return n;
}

static int64_t clamp(int64_t i, int64_t n) {
    return i < 0 ? 0 : i >= n ? n - 1 : i;
}

/* The input index of nearest mode. */
static int64_t nearest(const filter *f, double x, int64_t n) {
    double low = floor(x), ratio = x - low;
    bool up = false;
    if (ratio > 0)
        up = f->nearest == 0 ? ratio > 0.5 : f->nearest == 1 ? ratio >= 0.5 : f->nearest == 3;
    return clamp((int64_t)low + up, n);
}

/* Resamples one axis of `from` (dims [outer, in, inner]) into `to` ([outer, out, inner]). */
static void resample(const filter *f, const plan *p, uint32_t k, int64_t outer, int64_t inner,
                     const double *from, double *to, double *c, bool *beyond) {
    int64_t in = p->in[k], out = p->out[k].value;
    for (int64_t o = 0; o < out; o++) {
        double x = coordinate(f->transform, p, k, o), low = floor(x), sum = 0;
        int64_t base = (int64_t)low, first;
        double ratio = x - low;
        beyond[o] = f->crop && (x < 0 || x > (double)(in - 1));
        if (ratio == 0) {
            ratio = 1;
            base--;
        }
        int64_t n = taps(f, p->scale[k], ratio, c, &first);
        for (int64_t i = 0; f->exclude_outside && i < n; i++) {
            if (base + first + i < 0 || base + first + i >= in)
                c[i] = 0;
            sum += c[i];
        }
        for (int64_t i = 0; i < n; i++) {
            double v = f->exclude_outside ? c[i] / sum : c[i];
            int64_t at = clamp(base + first + i, in);
            for (int64_t e = 0; v != 0.0 && e < outer; e++)
                po_axpy(to + (e * out + o) * inner, 1, from + (e * in + at) * inner, 1, v, inner);
        }
    }
}

static po_status read_filter(const po_ref *ref, filter *f) {
    const po_graph *g = ref->graph;
    *f = (filter){0};
    f->cubic = po_rule_mode(g, ref->node, "mode", "cubic");
    f->linear = po_rule_mode(g, ref->node, "mode", "linear") ||
                po_rule_mode(g, ref->node, "mode", "bilinear");
    if (!f->cubic && !f->linear && !po_rule_mode(g, ref->node, "mode", "nearest"))
        return po_rule_bad(ref->ctx, ref->node, "unknown mode");
    PO_TRY(transform_of(ref, &f->transform));
    f->crop = f->transform == TF_CROP;
    f->antialias = po_op_int(g, ref->node, "antialias") != 0;
    f->exclude_outside = po_op_int(g, ref->node, "exclude_outside") != 0;
    f->a = (double)po_op_float(g, ref->node, "cubic_coeff_a");
    f->nearest = 2;
    for (int i = 0; ref->opset >= 11 && !is_upsample(ref->node) && i < 4; i++)
        if (po_rule_mode(g, ref->node, "nearest_mode", nearest_names[i]))
            f->nearest = i;
    return PO_OK;
}

/* --- references --- */

/* Index maps for nearest, or NULL for axes that stay. PO_UNSUPPORTED where rounding decides. */
static po_status nearest_maps(const po_ref *ref, const filter *f, const plan *p,
                              const int64_t **maps) {
    for (uint32_t k = 0; k < p->rank; k++) {
        maps[k] = NULL;
        if (!p->resized[k])
            continue;
        int64_t *map = PO_NEW_N(ref->arena, int64_t, p->out[k].value);
        filter own = *f;
        /* Before opset 11 the runtime takes the next pixel when it shrinks. */
        if (ref->opset < 11 && !is_upsample(ref->node) && p->scale[k] < 1)
            own.nearest = 3;
        for (int64_t o = 0; o < p->out[k].value; o++) {
            double x = coordinate(f->transform, p, k, o);
            bool beyond = f->crop && (x < 0 || x > (double)(p->in[k] - 1));
            map[o] = beyond ? -1 : nearest(&own, x, p->in[k]);
            if (!f->crop &&
                nearest(&own, rough_coordinate(f->transform, p, k, o), p->in[k]) != map[o])
                return PO_UNSUPPORTED;
        }
        maps[k] = map;
    }
    return PO_OK;
}

static po_status filtered(po_ref *ref, const filter *f, const plan *p, double fill) {
    const po_array *out = ref->out[0];
    const double *from = ref->in[0]->f;
    int64_t shape[PO_MAX_RANK];
    bool *beyond[PO_MAX_RANK] = {NULL};
    for (uint32_t k = 0; k < p->rank; k++)
        shape[k] = p->in[k];
    for (uint32_t k = 0; k < p->rank; k++) {
        if (!p->resized[k])
            continue;
        double reach = 2 + 2 * (2 / (p->scale[k] < 1 && f->antialias ? p->scale[k] : 1.0) + 1);
        int64_t outer = po_product(shape, 0, k), inner = po_product(shape, k + 1, p->rank), count;
        shape[k] = p->out[k].value;
        if (reach > 1e6 || !po_mul_i64(outer, shape[k], &count) ||
            !po_mul_i64(count, inner, &count) || count > PO_REF_MAX_COUNT)
            return PO_UNSUPPORTED;
        double *to = PO_NEW_N(ref->arena, double, count);
        double *c = PO_NEW_N(ref->arena, double, (int64_t)reach + 4);
        beyond[k] = PO_NEW_N(ref->arena, bool, shape[k]);
        resample(f, p, k, outer, inner, from, to, c, beyond[k]);
        from = to;
    }
    memcpy(out->f, from, (size_t)out->count * sizeof *out->f);
    int64_t index[PO_MAX_RANK] = {0};
    for (int64_t i = 0; f->crop && i < out->count; i++) {
        for (uint32_t k = 0; k < p->rank; k++)
            if (beyond[k] && beyond[k][index[k]])
                out->f[i] = fill;
        po_next_index(p->rank, out->dims, index);
    }
    return PO_OK;
}

/* The plan as the shape rule makes it, from the true shapes and contents. */
static po_status plan_of(po_ref *ref, plan *p) {
    const po_array *x = ref->in[0];
    po_type *out = PO_NEW_N(ref->arena, po_type, ref->n_out);
    po_infer infer;
    PO_TRY(po_rule_infer_of(ref, out, &infer));
    PO_TRY(read_plan(&infer, infer.in[0], p));
    for (uint32_t k = 0; k < x->rank; k++)
        if (!p->known[k] || (p->resized[k] && p->in[k] == 0))
            return PO_UNSUPPORTED;
    return PO_OK;
}

/* Where scale times length is not whole, runtimes and the standard's examples take different
 * corners; and scales that change no length are ignored by some. */
static bool is_settled(const plan *p, const filter *f) {
    bool whole = true, grows = false;
    for (uint32_t k = 0; k < p->rank; k++) {
        double wide = p->scale[k] * (double)p->in[k];
        whole = whole && (!p->resized[k] || fabs(wide - (double)p->out[k].value) <= 1e-6 * wide);
        grows = grows || p->in[k] != p->out[k].value;
    }
    return whole || (grows && f->transform != ALIGN_CORNERS);
}

po_status po_ref_resize(po_ref *ref) {
    PO_TRY(po_rule_outputs(ref));
    const po_array *x = ref->in[0], *out = ref->out[0];
    plan *p = PO_NEW(ref->arena, plan);
    filter f;
    PO_TRY(plan_of(ref, p));
    PO_TRY(read_filter(ref, &f));
    if (!is_settled(p, &f))
        return PO_UNSUPPORTED;
    double fill = (double)po_op_float(ref->graph, ref->node, "extrapolation_value");
    if (out->count == 0)
        return PO_OK;
    if (f.linear || f.cubic)
        return x->f ? filtered(ref, &f, p, fill) : PO_UNSUPPORTED;
    const int64_t *maps[PO_MAX_RANK];
    int64_t whole = fabs(fill) < 1e15 ? (int64_t)fill : 0;
    po_bytes text = {"", 0};
    PO_TRY(nearest_maps(ref, &f, p, maps));
    po_move_mapped(out, x, maps,
                   x->f   ? (const void *)&fill
                   : x->i ? (const void *)&whole
                          : (const void *)&text);
    return PO_OK;
}

/* --- attributes --- */

const po_attr_def po_attrs_resize[] = {
    {.name = "antialias", .kind = PO_ATTR_INT, .since = 18, .has_default = true, .i = 0},
    {.name = "axes", .kind = PO_ATTR_INTS, .since = 18},
    {.name = "coordinate_transformation_mode",
     .kind = PO_ATTR_STRING,
     .since = 11,
     .has_default = true,
     .s = "half_pixel"},
    {.name = "cubic_coeff_a", .kind = PO_ATTR_FLOAT, .since = 11, .has_default = true, .f = -0.75f},
    {.name = "exclude_outside", .kind = PO_ATTR_INT, .since = 11, .has_default = true, .i = 0},
    {.name = "extrapolation_value",
     .kind = PO_ATTR_FLOAT,
     .since = 11,
     .has_default = true,
     .f = 0.0f},
    {.name = "keep_aspect_ratio_policy",
     .kind = PO_ATTR_STRING,
     .since = 18,
     .has_default = true,
     .s = "stretch"},
    {.name = "mode", .kind = PO_ATTR_STRING, .since = 10, .has_default = true, .s = "nearest"},
    {.name = "nearest_mode",
     .kind = PO_ATTR_STRING,
     .since = 11,
     .has_default = true,
     .s = "round_prefer_floor"},
    {0},
};

const po_attr_def po_attrs_upsample[] = {
    {.name = "height_scale", .kind = PO_ATTR_FLOAT, .since = 1, .until = 6, .required = true},
    {.name = "mode", .kind = PO_ATTR_STRING, .since = 1, .has_default = true, .s = "nearest"},
    {.name = "scales", .kind = PO_ATTR_FLOATS, .since = 7, .until = 8, .required = true},
    {.name = "width_scale", .kind = PO_ATTR_FLOAT, .since = 1, .until = 6, .required = true},
    {0},
};

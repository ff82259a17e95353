/* GridSample and AffineGrid. */
#include "ops/rule.h"

#include <math.h>

/* --- GridSample --- */

po_status po_infer_grid_sample(po_infer *infer) {
    const po_type *x = po_rule_ranked(infer, 0), *grid = po_rule_ranked(infer, 1);
    po_infer_set_unranked(infer, 0, po_infer_dtype(infer, 0));
    if (!x || !grid)
        return PO_OK;
    if (x->rank < 3 || grid->rank != x->rank)
        return po_rule_bad(infer->ctx, infer->node, "ranks do not fit (%u and %u)", x->rank,
                           grid->rank);
    po_dim *dims = po_rule_out(infer, 0, x->dtype, x->rank), both;
    PO_TRY(po_rule_same_dim(infer, x->dims[0], grid->dims[0], "batch sizes", &dims[0]));
    PO_TRY(po_rule_same_dim(infer, grid->dims[grid->rank - 1], PO_DIM((int64_t)x->rank - 2),
                            "coordinates and spatial axes", &both));
    dims[1] = x->dims[1];
    for (uint32_t k = 2; k < x->rank; k++)
        dims[k] = grid->dims[k - 1];
    return PO_OK;
}

typedef enum padding { PADDING_ZEROS, PADDING_BORDER, PADDING_REFLECTION } padding;

enum { MAX_TAPS = 4 };

typedef struct sampler {
    int taps; /* 1 nearest, 2 linear, 4 cubic */
    padding padding;
    bool align;
} sampler;

/* The indices and weights of one axis; index -1: zero. */
typedef struct axis_taps {
    int64_t at[MAX_TAPS];
    double weight[MAX_TAPS];
} axis_taps;

static double reflect(double x, double low, double high) {
    double range = high - low;
    if (range <= 0)
        return low;
    double d = x < low ? low - x : x - high;
    if (d <= 0)
        return x;
    double n = floor(d / range), rest = d - n * range;
    bool even = fmod(n, 2) == 0;
    return (x < low) == even ? low + rest : high - rest;
}

static int64_t inside(const sampler *s, double i, int64_t n) {
    double low = s->align ? 0 : -0.5, high = s->align ? (double)n - 1 : (double)n - 0.5;
    if (i >= 0 && i < (double)n)
        return (int64_t)i;
    if (s->padding == PADDING_ZEROS || n == 0)
        return -1;
    if (s->padding == PADDING_REFLECTION)
        i = trunc(reflect(i, low, high));
    return i < 0 ? 0 : i >= (double)n ? n - 1 : (int64_t)i;
}

static void cubic_weights(double r, double *w) {
    const double a = -0.75;
    for (int k = 0; k < 4; k++) {
        double x = fabs(r - (k - 1));
        w[k] = x <= 1 ? ((a + 2) * x - (a + 3)) * x * x + 1
                      : ((a * x - 5 * a) * x + 8 * a) * x - 4 * a;
    }
}

static void find_taps(const sampler *s, double coordinate, int64_t n, axis_taps *t) {
    double size = (double)n;
    double x = s->align ? (coordinate + 1) / 2 * (size - 1) : ((coordinate + 1) * size - 1) / 2;
    double low = s->align ? 0 : -0.5, high = s->align ? size - 1 : size - 0.5;
    if (!(x > -1e9))
        x = -1e9;
    if (x > 1e9)
        x = 1e9;
    if (s->taps == 1)
        x = rint(x);
    /* Cubic windows reach over the border: there only the pixels are kept inside. */
    if (s->taps < 4 && (x < low || x > high)) {
        if (s->padding == PADDING_BORDER)
            x = x < 0 ? 0 : size - 1;
        else if (s->padding == PADDING_REFLECTION)
            x = reflect(x, low, high);
    }
    double base = s->taps == 1 ? trunc(x) : floor(x), r = x - base;
    if (s->taps == 1)
        t->weight[0] = 1;
    if (s->taps == 2) {
        t->weight[0] = 1 - r;
        t->weight[1] = r;
    }
    if (s->taps == 4) {
        cubic_weights(r, t->weight);
        base -= 1;
    }
    for (int k = 0; k < s->taps; k++)
        t->at[k] = inside(s, base + k, n);
}

static po_status read_sampler(const po_ref *ref, sampler *s) {
    const po_graph *g = ref->graph;
    s->align = po_op_int(g, ref->node, "align_corners") != 0;
    if (po_rule_mode(g, ref->node, "mode", "nearest"))
        s->taps = 1;
    else if (po_rule_mode(g, ref->node, "mode", "linear") ||
             po_rule_mode(g, ref->node, "mode", "bilinear"))
        s->taps = 2;
    else if (po_rule_mode(g, ref->node, "mode", "cubic") ||
             po_rule_mode(g, ref->node, "mode", "bicubic"))
        s->taps = 4;
    else
        return po_rule_bad(ref->ctx, ref->node, "unknown mode");
    s->padding = po_rule_mode(g, ref->node, "padding_mode", "border")       ? PADDING_BORDER
                 : po_rule_mode(g, ref->node, "padding_mode", "reflection") ? PADDING_REFLECTION
                                                                            : PADDING_ZEROS;
    return PO_OK;
}

/* The value of one plane at a place given by the taps of every axis. */
static double sample(const sampler *s, const po_array *x, const double *plane, const axis_taps *t) {
    uint32_t n = x->rank - 2;
    int64_t index[PO_MAX_RANK] = {0}, taps[PO_MAX_RANK];
    double sum = 0;
    for (uint32_t k = 0; k < n; k++)
        taps[k] = s->taps;
    do {
        int64_t at = 0;
        double weight = 1;
        for (uint32_t k = 0; k < n && at >= 0; k++) {
            int64_t i = t[k].at[index[k]];
            weight *= t[k].weight[index[k]];
            at = i < 0 ? -1 : at * x->dims[2 + k] + i;
        }
        if (at >= 0)
            sum += weight * plane[at];
    } while (po_next_index(n, taps, index));
    return sum;
}

po_status po_ref_grid_sample(po_ref *ref) {
    PO_TRY(po_rule_outputs(ref));
    const po_array *x = ref->in[0], *grid = ref->in[1], *out = ref->out[0];
    sampler s = {0};
    axis_taps t[PO_MAX_RANK];
    if (!po_rule_floats(ref, 0, 1) || x->rank > 8)
        return PO_UNSUPPORTED;
    PO_TRY(read_sampler(ref, &s));
    uint32_t n = x->rank - 2;
    int64_t places = po_product(out->dims, 2, out->rank), plane = po_product(x->dims, 2, x->rank);
    int64_t channels = x->dims[1];
    for (int64_t b = 0; b < out->dims[0]; b++)
        for (int64_t o = 0; o < places; o++) {
            const double *at = grid->f + (b * places + o) * n;
            for (uint32_t k = 0; k < n; k++)
                find_taps(&s, at[n - 1 - k], x->dims[2 + k], &t[k]);
            for (int64_t c = 0; c < channels; c++)
                out->f[(b * channels + c) * places + o] =
                    sample(&s, x, x->f + (b * channels + c) * plane, t);
        }
    return PO_OK;
}

/* --- AffineGrid --- */

po_status po_infer_affine_grid(po_infer *infer) {
    const po_type *theta = po_rule_ranked(infer, 0);
    const po_contents *size = po_rule_contents(infer, 1);
    po_infer_set_unranked(infer, 0, po_infer_dtype(infer, 0));
    if (theta && theta->rank != 3)
        return po_rule_bad(infer->ctx, infer->node, "theta must have rank 3 (found %u)",
                           theta->rank);
    if (!size)
        return PO_OK;
    if (size->n != 4 && size->n != 5)
        return po_rule_bad(infer->ctx, infer->node, "size must have 4 or 5 items (found %u)",
                           size->n);
    po_dim *dims = po_rule_out(infer, 0, po_infer_dtype(infer, 0), size->n), both;
    uint32_t n = size->n - 2;
    for (uint32_t k = 0; k < size->n; k++) {
        if (k == 1)
            continue;
        if (size->exact[k] && size->values[k] < 0)
            return po_rule_bad(infer->ctx, infer->node, "item %u of size is negative", k);
        dims[k ? k - 1 : 0] =
            size->exact[k] ? PO_DIM(size->values[k]) : (po_dim){-1, size->symbols[k]};
    }
    dims[n + 1] = PO_DIM(n);
    if (theta) {
        PO_TRY(po_rule_same_dim(infer, theta->dims[0], dims[0], "batch sizes", &dims[0]));
        PO_TRY(po_rule_same_dim(infer, theta->dims[1], PO_DIM(n), "rows of theta", &both));
        PO_TRY(po_rule_same_dim(infer, theta->dims[2], PO_DIM(n + 1), "columns of theta", &both));
    }
    return PO_OK;
}

po_status po_ref_affine_grid(po_ref *ref) {
    PO_TRY(po_rule_outputs(ref));
    const po_array *theta = ref->in[0], *out = ref->out[0];
    if (!theta->f)
        return PO_UNSUPPORTED;
    bool align = po_op_int(ref->graph, ref->node, "align_corners") != 0;
    uint32_t n = out->rank - 2;
    int64_t places = po_product(out->dims, 1, out->rank - 1);
    for (int64_t b = 0; b < out->dims[0]; b++) {
        int64_t index[PO_MAX_RANK] = {0};
        for (int64_t o = 0; o < places; o++) {
            double at[4];
            for (uint32_t k = 0; k < n; k++) {
                double size = (double)out->dims[1 + k], i = (double)index[k];
                double v =
                    align ? (size > 1 ? -1 + i * 2 / (size - 1) : -1) : (2 * i + 1) / size - 1;
                at[n - 1 - k] = v;
            }
            at[n] = 1;
            for (uint32_t r = 0; r < n; r++) {
                double sum = 0;
                for (uint32_t k = 0; k <= n; k++)
                    sum += theta->f[(b * n + r) * (n + 1) + k] * at[k];
                out->f[(b * places + o) * n + r] = sum;
            }
            po_next_index(n, out->dims + 1, index);
        }
    }
    return PO_OK;
}

/* --- attributes --- */

const po_attr_def po_attrs_grid_sample[] = {
    {.name = "align_corners", .kind = PO_ATTR_INT, .since = 16, .has_default = true, .i = 0},
    {.name = "mode",
     .kind = PO_ATTR_STRING,
     .since = 16,
     .until = 19,
     .has_default = true,
     .s = "bilinear"},
    {.name = "mode", .kind = PO_ATTR_STRING, .since = 20, .has_default = true, .s = "linear"},
    {.name = "padding_mode",
     .kind = PO_ATTR_STRING,
     .since = 16,
     .has_default = true,
     .s = "zeros"},
    {0},
};

const po_attr_def po_attrs_affine_grid[] = {
    {.name = "align_corners", .kind = PO_ATTR_INT, .since = 20, .has_default = true, .i = 0},
    {0},
};

/* MaxPool, AveragePool, LpPool and their global forms. */
#include "ops/window.h"

#include <float.h>
#include <math.h>

/* --- shapes --- */

/* Runtimes pool no map that is empty, unless there is none of it. */
static po_status takes_elements(po_infer *infer, const po_type *x) {
    bool empty = false;
    for (uint32_t k = 1; k < x->rank; k++)
        empty |= x->dims[k].value == 0;
    return empty && x->dims[0].value > 0
               ? po_rule_bad(infer->ctx, infer->node, "there is nothing in its input to pool")
               : PO_OK;
}

po_status po_infer_pool(po_infer *infer) {
    const po_type *x = po_rule_ranked(infer, 0);
    po_window w;
    for (uint32_t k = 0; k < infer->n_out; k++)
        po_infer_set_unranked(infer, k, k ? PO_I64 : po_infer_dtype(infer, 0));
    if (!x)
        return PO_OK;
    if (x->rank < 3)
        return po_rule_bad(infer->ctx, infer->node, "input must have rank 3 or more (found %u)",
                           x->rank);
    PO_TRY(takes_elements(infer, x));
    PO_TRY(po_window_read(infer->ctx, infer->graph, infer->node, x->rank - 2, NULL, &w));
    w.arena = infer->arena;
    for (uint32_t k = 0; k < infer->n_out; k++) {
        po_dim *dims = po_rule_out(infer, k, k ? PO_I64 : x->dtype, x->rank);
        dims[0] = x->dims[0];
        dims[1] = x->dims[1];
        for (uint32_t i = 0; i < w.n; i++) {
            dims[2 + i] = po_window_out(&w, i, x->dims[2 + i]);
            po_rule_demand_window(infer, &w, i, x->dims[2 + i], dims[2 + i]);
        }
    }
    return PO_OK;
}

po_status po_infer_global_pool(po_infer *infer) {
    const po_type *x = po_rule_ranked(infer, 0);
    po_infer_set_unranked(infer, 0, po_infer_dtype(infer, 0));
    if (!x)
        return PO_OK;
    if (x->rank < 2)
        return po_rule_bad(infer->ctx, infer->node, "input must have rank 2 or more (found %u)",
                           x->rank);
    PO_TRY(takes_elements(infer, x));
    po_dim *dims = po_rule_out(infer, 0, x->dtype, x->rank);
    for (uint32_t k = 0; k < x->rank; k++)
        dims[k] = k < 2 ? x->dims[k] : PO_DIM(1);
    return PO_OK;
}

/* --- references --- */

typedef struct pool {
    po_window w;
    const po_array *x, *out;
    uint32_t n;
    int64_t in_plane, out_plane, planes;
    int64_t strides[PO_MAX_RANK]; /* of the input's spatial axes */
    /* taps that hit the input, for the output position at hand */
    int64_t *hits;
    int64_t n_hits, padded; /* padded: taps inside the input or its padding */
} pool;

static po_status prepare(po_ref *ref, pool *p) {
    PO_TRY(po_rule_outputs(ref));
    p->x = ref->in[0];
    p->out = ref->out[0];
    if (!p->out || p->x->s)
        return PO_UNSUPPORTED;
    p->n = p->x->rank - 2;
    PO_TRY(po_window_read(ref->ctx, ref->graph, ref->node, p->n, NULL, &p->w));
    int64_t taps = 1;
    for (uint32_t k = 0; k < p->n; k++) {
        po_window_out(&p->w, k, PO_DIM(p->x->dims[2 + k]));
        if (!po_mul_i64(taps, p->w.kernel[k], &taps) || taps > PO_REF_MAX_COUNT)
            return PO_UNSUPPORTED;
    }
    /* Pools then start inside in one runtime and at the edge in another. */
    if (p->w.skips)
        return PO_UNSUPPORTED;
    p->in_plane = po_product(p->x->dims, 2, p->x->rank);
    p->out_plane = po_product(p->out->dims, 2, p->x->rank);
    p->planes = p->x->dims[0] * p->x->dims[1];
    po_rule_strides(p->n, p->x->dims + 2, p->strides);
    p->hits = PO_NEW_N(ref->arena, int64_t, taps);
    return PO_OK;
}

/* Finds the taps of one output position. */
static void find_hits(pool *p, const int64_t *at) {
    int64_t tap[PO_MAX_RANK] = {0};
    p->n_hits = p->padded = 0;
    do {
        int64_t from = 0;
        bool inside = true, padded = true;
        for (uint32_t k = 0; k < p->n && padded; k++) {
            int64_t i = at[k] * p->w.stride[k] + tap[k] * p->w.dilation[k] - p->w.begin[k];
            int64_t dim = p->x->dims[2 + k];
            inside = inside && i >= 0 && i < dim;
            padded = i >= -p->w.begin[k] && i < dim + p->w.end[k];
            from += i * p->strides[k];
        }
        p->padded += padded;
        if (inside && padded)
            p->hits[p->n_hits++] = from;
    } while (po_next_index(p->n, p->w.kernel, tap));
}

/* Calls fn for every output position with its taps; `o` is the position's number in a plane. */
static void for_positions(pool *p, void (*fn)(pool *p, int64_t o, void *user), void *user) {
    int64_t at[PO_MAX_RANK] = {0};
    for (int64_t o = 0; o < p->out_plane; o++) {
        find_hits(p, at);
        fn(p, o, user);
        po_next_index(p->n, p->out->dims + 2, at);
    }
}

static double lowest(po_dtype dtype) {
    switch (dtype) {
    case PO_F32:
        return -(double)FLT_MAX;
    case PO_F16:
        return -65504.0;
    case PO_BF16:
        return -0x1.fep127;
    default:
        return -DBL_MAX;
    }
}

/* Index of a hit as the second output counts it: row-major or column-major in a plane. */
static int64_t index_of(const pool *p, int64_t hit, bool column_major) {
    if (!column_major)
        return hit;
    int64_t index = 0, stride = 1;
    for (uint32_t k = 0; k < p->n; k++) {
        index += hit / p->strides[k] % p->x->dims[2 + k] * stride;
        stride *= p->x->dims[2 + k];
    }
    return index;
}

typedef struct max_args {
    const po_array *indices;
    bool column_major;
} max_args;

static void max_position(pool *p, int64_t o, void *user) {
    const max_args *args = user;
    for (int64_t c = 0; c < p->planes; c++) {
        int64_t base = c * p->in_plane, best = -1, to = c * p->out_plane + o;
        if (p->x->f) {
            double top = lowest(p->x->dtype);
            for (int64_t h = 0; h < p->n_hits; h++) {
                double v = p->x->f[base + p->hits[h]];
                if (best < 0 || v > top) {
                    top = v;
                    best = p->hits[h];
                }
            }
            p->out->f[to] = top;
        } else {
            int64_t top = po_dtype_class_of(p->x->dtype) == PO_CLASS_SIGNED ? INT64_MIN : 0;
            for (int64_t h = 0; h < p->n_hits; h++) {
                int64_t v = p->x->i[base + p->hits[h]];
                if (best < 0 || v > top) {
                    top = v;
                    best = p->hits[h];
                }
            }
            p->out->i[to] = top;
        }
        if (args->indices)
            args->indices->i[to] = best < 0 ? -1 : base + index_of(p, best, args->column_major);
    }
}

po_status po_ref_max_pool(po_ref *ref) {
    pool p;
    PO_TRY(prepare(ref, &p));
    max_args args = {.indices = ref->n_out > 1 ? ref->out[1] : NULL,
                     .column_major = po_op_int(ref->graph, ref->node, "storage_order") != 0};
    for_positions(&p, max_position, &args);
    return PO_OK;
}

static void average_position(pool *p, int64_t o, void *user) {
    const bool *include = user;
    int64_t n = *include ? p->padded : p->n_hits;
    for (int64_t c = 0; c < p->planes; c++) {
        double sum = 0;
        for (int64_t h = 0; h < p->n_hits; h++)
            sum += p->x->f[c * p->in_plane + p->hits[h]];
        p->out->f[c * p->out_plane + o] = n ? sum / (double)n : 0.0;
    }
}

po_status po_ref_average_pool(po_ref *ref) {
    pool p;
    PO_TRY(prepare(ref, &p));
    if (!p.x->f)
        return PO_UNSUPPORTED;
    bool include = po_op_int(ref->graph, ref->node, "count_include_pad") != 0;
    for_positions(&p, average_position, &include);
    return PO_OK;
}

/* The exponent was a float in opset 1. */
static double exponent(const po_ref *ref) {
    if (ref->opset < 2)
        return (double)po_op_float(ref->graph, ref->node, "p");
    return (double)po_op_int(ref->graph, ref->node, "p");
}

static double norm(double sum, double p) {
    return p == 1.0 ? sum : p == 2.0 ? sqrt(sum) : pow(sum, 1.0 / p);
}

static double power(double v, double p) {
    return p == 1.0 ? fabs(v) : p == 2.0 ? v * v : pow(fabs(v), p);
}

static void lp_position(pool *p, int64_t o, void *user) {
    const double *e = user;
    for (int64_t c = 0; c < p->planes; c++) {
        double sum = 0;
        for (int64_t h = 0; h < p->n_hits; h++)
            sum += power(p->x->f[c * p->in_plane + p->hits[h]], *e);
        p->out->f[c * p->out_plane + o] = norm(sum, *e);
    }
}

po_status po_ref_lp_pool(po_ref *ref) {
    pool p;
    PO_TRY(prepare(ref, &p));
    double e = exponent(ref);
    if (!p.x->f || e == 0.0)
        return PO_UNSUPPORTED;
    for_positions(&p, lp_position, &e);
    return PO_OK;
}

/* --- global pools --- */

typedef enum global_kind { GLOBAL_AVERAGE, GLOBAL_MAX, GLOBAL_LP } global_kind;

static po_status global_pool(po_ref *ref, global_kind kind, double p) {
    PO_TRY(po_rule_outputs(ref));
    const po_array *x = ref->in[0], *out = ref->out[0];
    if (!x->f || !out)
        return PO_UNSUPPORTED;
    int64_t plane = po_product(x->dims, 2, x->rank);
    for (int64_t c = 0; c < out->count; c++) {
        const double *v = x->f + c * plane;
        double sum = kind == GLOBAL_MAX ? lowest(x->dtype) : 0.0;
        for (int64_t i = 0; i < plane; i++) {
            if (kind == GLOBAL_MAX)
                sum = i == 0 || v[i] > sum ? v[i] : sum;
            else
                sum += kind == GLOBAL_LP ? power(v[i], p) : v[i];
        }
        out->f[c] = kind == GLOBAL_AVERAGE ? sum / (double)plane
                    : kind == GLOBAL_LP    ? norm(sum, p)
                                           : sum;
    }
    return PO_OK;
}

po_status po_ref_global_average_pool(po_ref *ref) {
    return global_pool(ref, GLOBAL_AVERAGE, 0.0);
}

po_status po_ref_global_max_pool(po_ref *ref) {
    return global_pool(ref, GLOBAL_MAX, 0.0);
}

po_status po_ref_global_lp_pool(po_ref *ref) {
    double p = exponent(ref);
    return p == 0.0 ? PO_UNSUPPORTED : global_pool(ref, GLOBAL_LP, p);
}

/* --- attributes --- */

const po_attr_def po_attrs_max_pool[] = {
    {.name = "auto_pad", .kind = PO_ATTR_STRING, .since = 1, .has_default = true, .s = "NOTSET"},
    {.name = "ceil_mode", .kind = PO_ATTR_INT, .since = 10, .has_default = true, .i = 0},
    {.name = "dilations", .kind = PO_ATTR_INTS, .since = 10},
    {.name = "kernel_shape", .kind = PO_ATTR_INTS, .since = 1, .required = true},
    {.name = "pads", .kind = PO_ATTR_INTS, .since = 1},
    {.name = "storage_order", .kind = PO_ATTR_INT, .since = 8, .has_default = true, .i = 0},
    {.name = "strides", .kind = PO_ATTR_INTS, .since = 1},
    {0},
};

const po_attr_def po_attrs_average_pool[] = {
    {.name = "auto_pad", .kind = PO_ATTR_STRING, .since = 1, .has_default = true, .s = "NOTSET"},
    {.name = "ceil_mode", .kind = PO_ATTR_INT, .since = 10, .has_default = true, .i = 0},
    {.name = "count_include_pad", .kind = PO_ATTR_INT, .since = 7, .has_default = true, .i = 0},
    {.name = "dilations", .kind = PO_ATTR_INTS, .since = 19},
    {.name = "kernel_shape", .kind = PO_ATTR_INTS, .since = 1, .required = true},
    {.name = "pads", .kind = PO_ATTR_INTS, .since = 1},
    {.name = "strides", .kind = PO_ATTR_INTS, .since = 1},
    {0},
};

const po_attr_def po_attrs_lp_pool[] = {
    {.name = "auto_pad", .kind = PO_ATTR_STRING, .since = 1, .has_default = true, .s = "NOTSET"},
    {.name = "ceil_mode", .kind = PO_ATTR_INT, .since = 18, .has_default = true, .i = 0},
    {.name = "dilations", .kind = PO_ATTR_INTS, .since = 18},
    {.name = "kernel_shape", .kind = PO_ATTR_INTS, .since = 1, .until = 1},
    {.name = "kernel_shape", .kind = PO_ATTR_INTS, .since = 2, .required = true},
    {.name = "p", .kind = PO_ATTR_FLOAT, .since = 1, .until = 1, .has_default = true, .f = 2.0f},
    {.name = "p", .kind = PO_ATTR_INT, .since = 2, .has_default = true, .i = 2},
    {.name = "pads", .kind = PO_ATTR_INTS, .since = 1},
    {.name = "strides", .kind = PO_ATTR_INTS, .since = 1},
    {0},
};

const po_attr_def po_attrs_global_lp_pool[] = {
    {.name = "p", .kind = PO_ATTR_FLOAT, .since = 1, .until = 1, .has_default = true, .f = 2.0f},
    {.name = "p", .kind = PO_ATTR_INT, .since = 2, .has_default = true, .i = 2},
    {0},
};

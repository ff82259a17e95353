/* Operators along axes: reductions, softmax, normalisations; maxima over windows. */
#include "verify/proof/internal.h"

#include "ops/rewrite.h"
#include "ops/sem/sem.h"
#include "ops/window.h"

#include <math.h>

/* Element i of row o lies at outer[o] + inner[i]. */
typedef struct rows {
    int64_t n_outer, n_inner, *outer, *inner;
} rows;

static int64_t *offsets(po_arena *arena, const po_ptensor *x, const bool *along, bool which,
                        int64_t *count) {
    int64_t stride = 1, strides[PO_MAX_RANK];
    *count = 1;
    for (uint32_t a = x->rank; a-- > 0; stride *= x->dims[a]) {
        strides[a] = stride;
        if (along[a] == which)
            *count *= x->dims[a];
    }
    int64_t *at = PO_NEW_N(arena, int64_t, *count);
    for (int64_t i = 0; i < *count; i++) {
        int64_t rest = i;
        for (uint32_t a = x->rank; a-- > 0;)
            if (along[a] == which) {
                at[i] += rest % x->dims[a] * strides[a];
                rest /= x->dims[a];
            }
    }
    return at;
}

static rows rows_of(po_arena *arena, const po_ptensor *x, const bool *along) {
    rows r;
    r.outer = offsets(arena, x, along, false, &r.n_outer);
    r.inner = offsets(arena, x, along, true, &r.n_inner);
    return r;
}

static bool mark(const po_ptensor *x, int64_t axis, bool *along) {
    axis += axis < 0 ? x->rank : 0;
    if (axis < 0 || axis >= x->rank)
        return false;
    along[axis] = true;
    return true;
}

/* --- reductions --- */

static uint32_t reduce(const po_pfun *f, po_op op, uint32_t n, uint32_t *v) {
    uint32_t sum = op == PO_OP_ReduceProd;
    if (op == PO_OP_ReduceMax || op == PO_OP_GlobalMaxPool)
        return po_px_set(f, n, v);
    if (op == PO_OP_ReduceMin) {
        for (uint32_t i = 0; i < n; i++)
            v[i] = po_field_neg(f->field, v[i]);
        return po_field_neg(f->field, po_px_set(f, n, v));
    }
    uint32_t first = n ? v[0] : 0;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t x = v[i];
        if (op == PO_OP_ReduceSumSquare || op == PO_OP_ReduceL2)
            x = po_field_mul(f->field, x, x);
        else if (op == PO_OP_ReduceL1)
            x = po_px_abs(f, x);
        else if (op == PO_OP_ReduceLogSumExp)
            x = po_px_exp(f, po_field_sub(f->field, x, first));
        sum = op == PO_OP_ReduceProd ? po_field_mul(f->field, sum, x)
                                     : po_field_add(f->field, sum, x);
    }
    switch (op) {
    case PO_OP_ReduceMean:
    case PO_OP_GlobalAveragePool:
        return po_field_mul(f->field, sum, po_field_inverse(f->field, n));
    case PO_OP_ReduceL2:
        return po_px_sqrt(f, sum);
    case PO_OP_ReduceLogSum:
        return po_pf(f->field, f->log, sum);
    case PO_OP_ReduceLogSumExp:
        return po_field_add(f->field, first, po_pf(f->field, f->log, sum));
    default:
        return sum;
    }
}

/* Of a reduction of n elements. */
static void set_bound(po_pnode *n, double inner) {
    po_ptensor *in = n->in[0], *out = n->out[0];
    po_pbound each = in->bound;
    po_op op = n->node->op;
    bool squares = op == PO_OP_ReduceSumSquare || op == PO_OP_ReduceL2;
    if (op == PO_OP_ReduceProd) {
        out->bound = po_pb_power(n->run, &each, fmax(1, inner));
        return;
    }
    if (squares)
        each = po_pb_power(n->run, &each, 2);
    po_pbound sum = po_pb_several(&each, inner);
    switch (op) {
    case PO_OP_ReduceSum:
    case PO_OP_ReduceMean:
    case PO_OP_GlobalAveragePool:
    case PO_OP_ReduceSumSquare:
        out->bound = sum;
        if (in->bound.form == PO_FORM_FRESH || in->bound.form == PO_FORM_SHIFTED)
            po_pb_shifted(out, in);
        return;
    case PO_OP_ReduceMax: /* of equal elements, them */
    case PO_OP_ReduceMin:
    case PO_OP_GlobalMaxPool:
        po_pn_function(n, out);
        out->bound = po_pb_around(n->run, &in->bound);
        return;
    case PO_OP_ReduceL1: /* a sum of symbols */
        po_pn_function(n, out);
        out->bound.form = PO_FORM_OTHER;
        return;
    case PO_OP_ReduceLogSumExp:
        po_pn_function(n, out);
        po_prun_compared(n->run, po_pb_total(&in->bound), 2, 0);
        out->bound = po_pb_around(n->run, &in->bound);
        return;
    default:
        po_pn_function(n, out);
        po_prun_compared(n->run, po_pb_total(&sum), 1, 0);
    }
}

static po_status run_reduce(po_pnode *n) {
    po_ptensor *in = n->in[0];
    const uint32_t *x = po_pt_mod(in);
    po_op op = n->node->op;
    bool along[PO_MAX_RANK] = {false},
         global = op == PO_OP_GlobalMaxPool || op == PO_OP_GlobalAveragePool;
    uint32_t n_axes = 0;
    const int64_t *axes = NULL;
    /* Whole numbers are divided otherwise. */
    if (po_dtype_class_of(in->dtype) != PO_CLASS_FLOAT &&
        (op == PO_OP_ReduceMean || op == PO_OP_ReduceL2 || op == PO_OP_ReduceLogSum ||
         op == PO_OP_ReduceLogSumExp))
        return PO_UNSUPPORTED;
    if (!x || (!global && !po_pn_ints(n, 1, "axes", &n_axes, &axes)))
        return PO_UNSUPPORTED;
    for (uint32_t k = 0; k < n_axes; k++)
        if (!mark(in, axes[k], along))
            return PO_UNSUPPORTED;
    bool none = n_axes == 0 && !global && po_op_int(n->graph, n->node, "noop_with_empty_axes");
    for (uint32_t a = 0; a < in->rank && n_axes == 0 && !none; a++)
        along[a] = !global || a >= 2;
    rows r = rows_of(n->arena, in, along);
    po_ptensor *out = po_pn_out(n, 0);
    if (r.n_outer != out->count || r.n_inner > UINT32_MAX)
        return PO_UNSUPPORTED;
    po_pfun f = po_pfun_of(n->run);
    uint32_t *row = PO_NEW_N(n->arena, uint32_t, r.n_inner);
    for (int64_t o = 0; o < r.n_outer; o++) {
        for (int64_t i = 0; i < r.n_inner; i++)
            row[i] = x[r.outer[o] + r.inner[i]];
        out->mod[o] = reduce(&f, op, (uint32_t)r.n_inner, row);
    }
    set_bound(n, (double)r.n_inner);
    if (op == PO_OP_ReduceSum && in->origin == PO_ORIGIN_EXP) {
        out->origin = PO_ORIGIN_EXP_SUM;
        out->from = po_pt_use(in);
    } else if (op == PO_OP_ReduceMax && out->rank == in->rank) {
        out->origin = PO_ORIGIN_ROW_MOST;
        out->from = po_pt_use(in);
    }
    return PO_OK;
}

/* --- softmax --- */

/* exp(x - x0) / sum of exp(x - x0), x0 being the first of the row: nothing that is taken off the
 * whole row changes it. */
static void softmax(po_pnode *n, po_ptensor *in, const bool *along, bool logarithm,
                    po_ptensor *out) {
    const uint32_t *x = po_pt_mod(in);
    po_pfun f = po_pfun_of(n->run);
    rows r = rows_of(n->arena, in, along);
    uint32_t *sums = PO_NEW_N(n->arena, uint32_t, r.n_outer);
    for (int64_t o = 0; o < r.n_outer && r.n_inner; o++) {
        uint32_t first = x[r.outer[o] + r.inner[0]];
        for (int64_t i = 0; i < r.n_inner; i++) {
            int64_t at = r.outer[o] + r.inner[i];
            uint32_t d = po_field_sub(f.field, x[at], first), e = po_px_exp(&f, d);
            out->mod[at] = logarithm ? d : e;
            sums[o] = po_field_add(f.field, sums[o], e);
        }
    }
    if (!logarithm)
        po_px_inverse(f.field, r.n_outer, sums);
    for (int64_t o = 0; o < r.n_outer; o++)
        for (int64_t i = 0; i < r.n_inner; i++) {
            uint32_t *v = &out->mod[r.outer[o] + r.inner[i]];
            *v = logarithm ? po_field_sub(f.field, *v, po_pf(f.field, f.log, sums[o]))
                           : po_field_mul(f.field, *v, sums[o]);
        }
    po_pn_function(n, out);
    po_prun_compared(n->run, po_pb_total(&in->bound), 2, 0); /* x - x0 */
    if (logarithm)
        out->bound = po_pb_around(n->run, &in->bound);
}

/* What was raised to a floor that far below the maxima of the same rows, where 2^-100 more or less
 * in the softmax is nothing: factors of sums with others that are not small. */
static po_ptensor *before_raising(const po_pnode *n, po_ptensor *in, const bool *along) {
    if (in->origin != PO_ORIGIN_RAISED || n->node->op != PO_OP_Softmax ||
        !po_only_factors(n->graph, n->node->out[0]))
        return in;
    const po_ptensor *floor = in->from;
    for (uint32_t a = 0; a < in->rank; a++)
        if (in->dims[a] != 1 && along[a] != (floor->dims[a] == 1))
            return in;
    return floor->from;
}

static po_status run_softmax(po_pnode *n) {
    po_ptensor *in = n->in[0];
    bool along[PO_MAX_RANK] = {false};
    if (!po_pt_mod(in) || !mark(in, po_op_int(n->graph, n->node, "axis"), along))
        return PO_UNSUPPORTED;
    for (uint32_t a = 1; a < in->rank && n->opset < 13; a++)
        along[a] = along[a] || along[a - 1];
    softmax(n, before_raising(n, in, along), along, n->node->op == PO_OP_LogSoftmax,
            po_pn_out(n, 0));
    return PO_OK;
}

/* The same by its parts: exp(z) / sum of exp(z). */
static po_status run_quotient(po_pnode *n) {
    po_ptensor *e = n->in[0], *s = po_pn_in(n, 1);
    bool along[PO_MAX_RANK] = {false};
    if (!s || e->origin != PO_ORIGIN_EXP || s->origin != PO_ORIGIN_EXP_SUM || s->from != e ||
        s->rank != e->rank)
        return PO_UNSUPPORTED;
    for (uint32_t a = 0; a < e->rank; a++)
        along[a] = s->dims[a] != e->dims[a];
    softmax(n, e->from, along, false, po_pn_out(n, 0));
    return PO_OK;
}

/* --- normalisation: (x - mean) / sqrt(var + eps), or x / sqrt(mean of x^2 + eps) --- */

typedef struct norm {
    bool along[PO_MAX_RANK];
    bool centre;
    uint32_t eps;
    const uint32_t *scale, *shift; /* may be NULL */
    int64_t by_row, by_inner;      /* element o / by_row % rows, or i: which scale */
    int64_t channels;
    bool inside; /* scales go by the place within the row, else by row */
} norm;

static void normalise(po_pnode *n, const norm *k) {
    po_ptensor *in = n->in[0], *out = po_pn_out(n, 0);
    const uint32_t *x = po_pt_mod(in);
    po_pfun f = po_pfun_of(n->run);
    rows r = rows_of(n->arena, in, k->along);
    uint32_t count = po_field_inverse(f.field, po_field_reduce(f.field, (uint64_t)r.n_inner));
    uint32_t *mean = PO_NEW_N(n->arena, uint32_t, r.n_outer);
    uint32_t *root = PO_NEW_N(n->arena, uint32_t, r.n_outer);
    for (int64_t o = 0; o < r.n_outer; o++) {
        uint32_t sum = 0, squares = 0;
        for (int64_t i = 0; i < r.n_inner; i++)
            sum = po_field_add(f.field, sum, x[r.outer[o] + r.inner[i]]);
        mean[o] = k->centre ? po_field_mul(f.field, sum, count) : 0;
        for (int64_t i = 0; i < r.n_inner; i++) {
            uint32_t d = po_field_sub(f.field, x[r.outer[o] + r.inner[i]], mean[o]);
            squares = po_field_add(f.field, squares, po_field_mul(f.field, d, d));
        }
        root[o] =
            po_px_sqrt(&f, po_field_add(f.field, po_field_mul(f.field, squares, count), k->eps));
    }
    po_px_inverse(f.field, r.n_outer, root);
    for (int64_t o = 0; o < r.n_outer; o++)
        for (int64_t i = 0; i < r.n_inner; i++) {
            int64_t at = r.outer[o] + r.inner[i];
            int64_t c = k->inside ? i / k->by_inner % k->channels
                                  : (o * k->by_row + i / k->by_inner) % k->channels;
            uint32_t v = po_field_mul(f.field, po_field_sub(f.field, x[at], mean[o]), root[o]);
            v = k->scale ? po_field_mul(f.field, v, k->scale[c]) : v;
            out->mod[at] = k->shift ? po_field_add(f.field, v, k->shift[c]) : v;
        }
    po_pbound mean_of = po_pb_several(&in->bound, (double)r.n_inner);
    po_pbound centred = po_pb_sum(n->run, &in->bound, &mean_of);
    po_pbound square = po_pb_power(n->run, &centred, 2);
    square = po_pb_several(&square, (double)r.n_inner);
    const uint32_t *const more[2] = {mean, root};
    for (uint32_t i = 0; i < 2 && k->inside; i++)
        if (i + 1 < n->node->n_out && n->node->out[i + 1] != PO_NONE) {
            po_ptensor *t = po_pn_out(n, i + 1);
            memcpy(t->mod, more[i], (size_t)r.n_outer * sizeof *t->mod);
            t->bound = i ? po_pb_symbol(n->run) : mean_of; /* a root is a new symbol */
        }
    po_prun_compared(n->run, po_pb_total(&square), 1, 1);
    po_pbound root_of = po_pb_symbol(n->run);
    out->bound = po_pb_product(n->run, &centred, &root_of);
    if (k->scale)
        out->bound = po_pb_product(n->run, &out->bound, &n->in[1]->bound);
    if (k->shift)
        out->bound = po_pb_sum(n->run, &out->bound, &n->in[2]->bound);
}

static bool same_length(const po_ptensor *t, int64_t n) {
    return !t || t->count == n;
}

static po_status run_norm(po_pnode *n) {
    po_ptensor *in = n->in[0], *scale = po_pn_in(n, 1), *shift = po_pn_in(n, 2);
    po_op op = n->node->op;
    norm k = {.centre = op != PO_OP_RMSNormalization, .by_row = 1, .by_inner = 1};
    /* LayerNormalization also gives means and inverse deviations. */
    for (uint32_t i = 1; i < n->node->n_out; i++)
        if (n->node->out[i] != PO_NONE && (op != PO_OP_LayerNormalization || i > 2))
            return PO_UNSUPPORTED;
    if (!po_pt_mod(in) || in->rank == 0 || in->count == 0)
        return PO_UNSUPPORTED;
    k.eps = po_pn_float(n, "epsilon").mod;
    uint32_t from = 2;
    int64_t inner = 1;
    if (op == PO_OP_LayerNormalization || op == PO_OP_RMSNormalization) {
        bool first[PO_MAX_RANK] = {false};
        if (!mark(in, po_op_int(n->graph, n->node, "axis"), first))
            return PO_UNSUPPORTED;
        for (from = 0; !first[from]; from++)
            ;
        k.inside = true;
    }
    for (uint32_t a = from; a < in->rank; a++) {
        k.along[a] = true;
        inner *= in->dims[a];
    }
    k.by_inner = k.inside ? 1 : inner;
    k.channels = k.inside ? inner : in->rank > 1 ? in->dims[1] : 1;
    if (k.inside && scale && scale->count == 1)
        k.channels = 1;
    if (!same_length(scale, k.channels) || !same_length(shift, k.channels))
        return PO_UNSUPPORTED;
    for (uint32_t i = 1; i < n->node->n_out; i++)
        if (n->node->out[i] != PO_NONE && po_type_count(&n->type[i]) != in->count / inner)
            return PO_UNSUPPORTED;
    k.scale = scale ? po_pt_mod(scale) : NULL;
    k.shift = shift ? po_pt_mod(shift) : NULL;
    normalise(n, &k);
    return PO_OK;
}

static po_status run_group_norm(po_pnode *n) {
    po_ptensor *in = n->in[0];
    int64_t groups = po_node_int(n->node, "num_groups", 0);
    if (!po_pt_mod(in) || in->rank < 2 || groups < 1 || in->dims[1] % groups || in->count == 0)
        return PO_UNSUPPORTED;
    int64_t channels = in->dims[1], plane = in->count / in->dims[0] / channels;
    int64_t dims[3] = {in->dims[0], groups, in->count / in->dims[0] / groups};
    po_ptensor *flat = po_pt_view(n->run, in, in->dtype, 3, dims);
    bool by_group = n->opset < 21;
    norm k = {
        .along = {false, false, true}, .centre = true, .by_inner = by_group ? dims[2] : plane};
    k.by_row = by_group ? 1 : channels / groups;
    k.channels = by_group ? groups : channels;
    k.eps = po_pn_float(n, "epsilon").mod;
    k.scale = po_pt_mod(n->in[1]);
    k.shift = po_pt_mod(n->in[2]);
    bool fits = same_length(n->in[1], k.channels) && same_length(n->in[2], k.channels);
    n->in[0] = flat;
    if (fits)
        normalise(n, &k);
    n->in[0] = in;
    po_pt_drop(flat);
    return fits ? PO_OK : PO_UNSUPPORTED;
}

static po_status run_batch_norm(po_pnode *n) {
    po_ptensor *in = n->in[0];
    const uint32_t *x = po_pt_mod(in), *p[4];
    if (!x || in->rank < 2 || po_node_int(n->node, "training_mode", 0) ||
        !po_node_int(n->node, "spatial", 1))
        return PO_UNSUPPORTED;
    for (uint32_t i = 1; i < n->node->n_out; i++)
        if (n->node->out[i] != PO_NONE)
            return PO_UNSUPPORTED;
    int64_t channels = in->dims[1], plane = 1;
    for (uint32_t a = 2; a < in->rank; a++)
        plane *= in->dims[a];
    for (uint32_t k = 0; k < 4; k++) {
        if (!po_pn_in(n, k + 1) || n->in[k + 1]->count != channels)
            return PO_UNSUPPORTED;
        p[k] = po_pt_mod(n->in[k + 1]);
    }
    po_pfun f = po_pfun_of(n->run);
    uint32_t eps = po_pn_float(n, "epsilon").mod, *factor = PO_NEW_N(n->arena, uint32_t, channels);
    for (int64_t c = 0; c < channels; c++)
        factor[c] = po_px_sqrt(&f, po_field_add(f.field, p[3][c], eps));
    po_px_inverse(f.field, channels, factor);
    for (int64_t c = 0; c < channels; c++)
        factor[c] = po_field_mul(f.field, factor[c], p[0][c]);
    po_ptensor *out = po_pn_out(n, 0);
    for (int64_t i = 0; i < out->count; i++) {
        int64_t c = i / plane % channels;
        out->mod[i] = po_field_add(
            f.field, po_field_mul(f.field, po_field_sub(f.field, x[i], p[2][c]), factor[c]),
            p[1][c]);
    }
    po_prun_compared(n->run, po_pb_total(&n->in[4]->bound), 1, 1);
    po_pbound root = po_pb_symbol(n->run);
    out->bound = po_pb_sum(n->run, &in->bound, &n->in[3]->bound);
    out->bound = po_pb_product(n->run, &out->bound, &root);
    out->bound = po_pb_product(n->run, &out->bound, &n->in[1]->bound);
    out->bound = po_pb_sum(n->run, &out->bound, &n->in[2]->bound);
    return PO_OK;
}

po_status po_pn_rows(po_pnode *n) {
    if (!po_pn_in(n, 0))
        return PO_UNSUPPORTED;
    switch (n->node->op) {
    case PO_OP_ReduceL1:
    case PO_OP_ReduceL2:
    case PO_OP_ReduceLogSum:
    case PO_OP_ReduceLogSumExp:
    case PO_OP_ReduceMax:
    case PO_OP_ReduceMean:
    case PO_OP_ReduceMin:
    case PO_OP_ReduceProd:
    case PO_OP_ReduceSum:
    case PO_OP_ReduceSumSquare:
    case PO_OP_GlobalMaxPool:
    case PO_OP_GlobalAveragePool:
        return run_reduce(n);
    case PO_OP_Softmax:
    case PO_OP_LogSoftmax:
        return run_softmax(n);
    case PO_OP_Div:
        return run_quotient(n);
    case PO_OP_LayerNormalization:
    case PO_OP_InstanceNormalization:
    case PO_OP_RMSNormalization:
        return run_norm(n);
    case PO_OP_GroupNormalization:
        return run_group_norm(n);
    case PO_OP_BatchNormalization:
        return run_batch_norm(n);
    default:
        return PO_UNSUPPORTED;
    }
}

/* --- windows --- */

enum { MOST_SPATIAL = 6 };

typedef struct pool {
    uint32_t n;
    const int64_t *in, *out;
    po_sem_window w[MOST_SPATIAL];
    const uint32_t *x; /* of one plane */
    uint32_t *values;
} pool;

/* The elements of a window, padding left out. */
static uint32_t gather(const pool *p, const int64_t *at, uint32_t axis, int64_t from,
                       uint32_t found) {
    if (axis == p->n) {
        p->values[found] = p->x[from];
        return found + 1;
    }
    const po_sem_window *w = &p->w[axis];
    for (int64_t k = 0; k < w->kernel; k++) {
        int64_t i = at[axis] * w->stride - w->before + k * w->dilation;
        if (i >= 0 && i < p->in[axis])
            found = gather(p, at, axis + 1, from * p->in[axis] + i, found);
    }
    return found;
}

po_status po_pn_window(po_pnode *n) {
    po_ptensor *in = po_pn_in(n, 0);
    if (n->node->op != PO_OP_MaxPool || !in || !po_pt_mod(in) || in->rank < 3 ||
        in->rank - 2 > MOST_SPATIAL || (n->node->n_out > 1 && n->node->out[1] != PO_NONE))
        return PO_UNSUPPORTED;
    po_ptensor *out = po_pn_out(n, 0);
    pool p = {.n = in->rank - 2, .in = in->dims + 2, .out = out->dims + 2};
    po_sem sem = {.ctx = n->run->ctx, .arena = n->arena, .graph = n->graph, .node = n->node};
    if (!po_sem_windows(&sem, p.n, NULL, p.in, p.out, p.w))
        return PO_UNSUPPORTED;
    int64_t size = 1, plane_in = 1, plane_out = 1;
    for (uint32_t a = 0; a < p.n; a++) {
        if (p.w[a].before < 0 || p.w[a].after < 0)
            return PO_UNSUPPORTED;
        size *= p.w[a].kernel;
        plane_in *= p.in[a];
        plane_out *= p.out[a];
    }
    if (size > 1 << 16)
        return PO_UNSUPPORTED;
    p.values = PO_NEW_N(n->arena, uint32_t, size);
    po_pfun f = po_pfun_of(n->run);
    for (int64_t i = 0; i < out->count; i++) {
        int64_t at[MOST_SPATIAL], rest = i % plane_out;
        for (uint32_t a = p.n; a-- > 0; rest /= p.out[a])
            at[a] = rest % p.out[a];
        p.x = in->mod + i / plane_out * plane_in;
        uint32_t found = gather(&p, at, 0, 0, 0);
        out->mod[i] = po_px_set(&f, found, p.values);
    }
    po_pn_function(n, out);
    out->bound = po_pb_around(n->run, &in->bound); /* the element itself, of a window of one */
    return PO_OK;
}

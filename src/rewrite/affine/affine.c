/* A chain is walked up from its end and each step put in front, twice: as float64 numbers, by which
 * matches are decided, and as recipes, by which constants are stored. */
#include "rewrite/affine/affine.h"

#include <float.h>
#include <math.h>

/* Where a constant operand's elements lie along x: one number, or one for each index of an axis. */
static bool constant_axis(const po_graph *graph, po_value_id x, const po_tensor *c, int *axis) {
    int rank = po_rank_of(graph, x);
    if (rank < 0 || (int)c->rank > rank)
        return false;
    *axis = -1;
    for (uint32_t i = 0; i < c->rank; i++) {
        int at = rank - (int)c->rank + (int)i;
        if (c->dims[i] == 1)
            continue;
        if (*axis >= 0 || po_dim_of(graph, x, at) != c->dims[i])
            return false;
        *axis = at;
    }
    return c->count > 0;
}

/* --- one node of a chain: y = p x + q --- */

enum { MOST_CONSTANTS = 4 }; /* of a batch normalisation: scale, shift, mean, variance */

typedef struct step {
    po_op op;
    po_value_id x; /* what it reads */
    po_value_id c[MOST_CONSTANTS];
    const po_tensor *t[MOST_CONSTANTS]; /* the same */
    int axis;                           /* of x, that they lie along; -1: single numbers */
    bool constant_first;
    double eps;
} step;

static bool read_norm(const po_graph *graph, const po_node *n, step *s) {
    int64_t channels = po_dim_of(graph, n->in[0], 1);
    if (n->n_in != 5 || channels < 0 || po_node_int(n, "training_mode", 0) ||
        po_node_int(n, "spatial", 1) != 1 || (n->n_out > 1 && n->out[1] != PO_NONE))
        return false;
    /* Before opset 7 is_test said whether this is inference. */
    if (po_op_version(graph, n) < 7 && po_node_int(n, "is_test", 0) == 0)
        return false;
    for (uint32_t i = 0; i < MOST_CONSTANTS; i++) {
        s->c[i] = n->in[i + 1];
        s->t[i] = po_graph_constant(graph, s->c[i]);
        if (!s->t[i] || s->t[i]->count != channels)
            return false;
    }
    s->axis = 1;
    s->eps = (double)po_op_float(graph, n, "epsilon");
    return true;
}

static bool read_step(const po_graph *graph, const po_node *n, step *s) {
    *s = (step){.op = (po_op)n->op, .x = n->n_in ? n->in[0] : PO_NONE, .axis = -1};
    switch (s->op) {
    case PO_OP_Mul:
    case PO_OP_Add:
    case PO_OP_Sub:
    case PO_OP_Div:
        /* Before opset 7 broadcasting was written with attributes. */
        if (n->n_in != 2 || po_op_version(graph, n) < 7)
            return false;
        for (uint32_t k = 0; k < 2; k++) {
            s->x = n->in[1 - k];
            s->c[0] = n->in[k];
            s->t[0] = po_graph_constant(graph, s->c[0]);
            s->constant_first = k == 0;
            if (s->t[0] && !po_graph_constant(graph, s->x))
                return (k == 1 || s->op != PO_OP_Div) &&
                       constant_axis(graph, s->x, s->t[0], &s->axis);
        }
        return false;
    case PO_OP_Neg:
        return true;
    case PO_OP_BatchNormalization:
        return read_norm(graph, n, s);
    default:
        return false;
    }
}

/* --- as numbers --- */

static double constant(const step *s, uint32_t which, uint32_t i) {
    return po_tensor_f64(s->t[which], s->t[which]->count == 1 ? 0 : i);
}

/* What it is at index i of the axis. */
static void numbers(const step *s, uint32_t i, double *p, double *q) {
    const double c = s->t[0] ? constant(s, 0, i) : -1;
    *p = 1;
    *q = 0;
    switch (s->op) {
    case PO_OP_Mul:
    case PO_OP_Neg:
        *p = c;
        break;
    case PO_OP_Div:
        *p = 1 / c;
        break;
    case PO_OP_Add:
        *q = c;
        break;
    case PO_OP_Sub:
        *p = s->constant_first ? -1 : 1;
        *q = s->constant_first ? c : -c;
        break;
    default: /* batch normalisation */
        *p = c / sqrt(constant(s, 3, i) + s->eps);
        *q = constant(s, 1, i) - constant(s, 2, i) * *p;
        break;
    }
}

/* One pair for each index of the axis, where there is one pair yet. */
static void widen(po_arena *arena, po_affine *m, uint32_t n) {
    double *a = PO_NEW_N(arena, double, n), *b = PO_NEW_N(arena, double, n);
    for (uint32_t i = 0; i < n; i++) {
        a[i] = m->a[0];
        b[i] = m->b[0];
    }
    m->a = a;
    m->b = b;
    m->n = n;
}

/* Puts the step in front of the chain. */
static bool join(po_arena *arena, po_affine *m, const step *s) {
    if (s->axis >= 0 && m->axis >= 0 && m->axis != s->axis)
        return false;
    if (s->axis >= 0 && m->n != s->t[0]->count)
        widen(arena, m, (uint32_t)s->t[0]->count);
    if (s->axis >= 0)
        m->axis = s->axis;
    for (uint32_t i = 0; i < m->n; i++) {
        double p, q;
        numbers(s, i, &p, &q);
        m->b[i] += m->a[i] * q;
        m->a[i] *= p;
    }
    return true;
}

static bool fits(const po_affine *m, po_dtype dtype) {
    double most = dtype == PO_F32 ? (double)FLT_MAX : DBL_MAX;
    for (uint32_t i = 0; i < m->n; i++)
        if (!(fabs(m->a[i]) <= most) || !(fabs(m->b[i]) <= most))
            return false;
    return true;
}

bool po_affine_match(const po_graph *graph, po_arena *arena, po_value_id y, po_affine *affine) {
    po_affine m = {.y = y, .axis = -1, .n = 1};
    m.a = PO_NEW(arena, double);
    m.b = PO_NEW(arena, double);
    m.a[0] = 1;
    po_value_id at = y;
    for (;;) {
        const po_node *n = po_graph_producer(graph, at);
        step s;
        if (!n || !po_rearrangeable(graph, at) || (at != y && !po_read_once(graph, at)) ||
            !read_step(graph, n, &s) || !join(arena, &m, &s))
            break;
        m.first = graph->values[at].producer;
        m.nodes++;
        at = s.x;
    }
    m.x = at;
    po_dtype dtype = graph->values[y].type.dtype;
    if (m.nodes == 0 || !fits(&m, dtype))
        return false;
    for (uint32_t i = 0; i < m.n; i++)
        /* What rounding leaves of 6 * (1 / 6) is 1 in the model's own precision. */
        if (fabs(m.a[i] - 1) <= (dtype == PO_F32 ? 0x1p-25 : 1e-12))
            m.a[i] = 1;
    *affine = m;
    return true;
}

/* --- as recipes --- */

/* Rank 0 or [n]. */
static const po_recipe *flat(const po_graph *graph, po_arena *arena, po_value_id v) {
    const po_recipe *r = po_recipe_doubles(graph, arena, v);
    return po_recipe_reshape(arena, r, r->count == 1 ? 0 : 1, &r->count);
}

/* The same; NULL stands for a factor of 1 and a sum of 0. */
static void recipes(const po_graph *graph, po_arena *arena, const step *s, const po_recipe **p,
                    const po_recipe **q) {
    const po_recipe *c[MOST_CONSTANTS] = {NULL}, *deviation;
    for (uint32_t i = 0; i < MOST_CONSTANTS && s->t[i]; i++)
        c[i] = flat(graph, arena, s->c[i]);
    *p = *q = NULL;
    switch (s->op) {
    case PO_OP_Mul:
        *p = c[0];
        break;
    case PO_OP_Neg:
        *p = po_recipe_number(arena, -1);
        break;
    case PO_OP_Div:
        *p = po_recipe_div(arena, po_recipe_number(arena, 1), c[0]);
        break;
    case PO_OP_Add:
        *q = c[0];
        break;
    case PO_OP_Sub:
        *p = s->constant_first ? po_recipe_number(arena, -1) : NULL;
        *q = s->constant_first ? c[0] : po_recipe_neg(arena, c[0]);
        break;
    default: /* batch normalisation */
        deviation =
            po_recipe_sqrt(arena, po_recipe_add(arena, c[3], po_recipe_number(arena, s->eps)));
        *p = po_recipe_div(arena, c[0], deviation);
        *q = po_recipe_sub(arena, c[1], po_recipe_mul(arena, c[2], *p));
        break;
    }
}

void po_affine_derive(const po_graph *graph, po_arena *arena, po_affine *affine) {
    po_value_id at = affine->y;
    affine->ra = affine->rb = NULL;
    for (uint32_t i = 0; i < affine->nodes; i++) {
        step s;
        const po_recipe *p, *q;
        read_step(graph, po_graph_producer(graph, at), &s);
        recipes(graph, arena, &s, &p, &q);
        if (q && affine->ra)
            q = po_recipe_mul(arena, affine->ra, q);
        if (q)
            affine->rb = affine->rb ? po_recipe_add(arena, affine->rb, q) : q;
        if (p)
            affine->ra = affine->ra ? po_recipe_mul(arena, affine->ra, p) : p;
        at = s.x;
    }
    /* Where the rounded product of all is 1 it is taken as 1. */
    if (po_affine_is_shift(affine))
        affine->ra = NULL;
}

/* The recipe that there is, else the numbers. */
static const po_recipe *stated(po_arena *arena, const po_affine *m, const po_recipe *r,
                               const double *values, uint32_t rank, uint32_t at) {
    int64_t dims[PO_MAX_RANK], n = m->n;
    if (!r)
        r = po_recipe_literal(arena, n == 1 ? 0 : 1, &n, values);
    if (r->rank == 0)
        return r;
    for (uint32_t i = 0; i < rank; i++)
        dims[i] = i == at ? r->count : 1;
    return po_recipe_reshape(arena, r, rank, dims);
}

const po_recipe *po_affine_scale(po_arena *arena, const po_affine *m, uint32_t rank, uint32_t at) {
    return stated(arena, m, m->ra, m->a, rank, at);
}

const po_recipe *po_affine_shift(po_arena *arena, const po_affine *m, uint32_t rank, uint32_t at) {
    return stated(arena, m, m->rb, m->b, rank, at);
}

bool po_affine_is_scale(const po_affine *affine) {
    for (uint32_t i = 0; i < affine->n; i++)
        if (affine->b[i] != 0)
            return false;
    return true;
}

bool po_affine_is_shift(const po_affine *affine) {
    for (uint32_t i = 0; i < affine->n; i++)
        if (affine->a[i] != 1)
            return false;
    return true;
}

bool po_affine_without_scale(po_arena *arena, const po_affine *m, po_affine *scale,
                             po_affine *shift) {
    *scale = *shift = *m;
    scale->b = PO_NEW_N(arena, double, m->n);
    scale->rb = NULL;
    shift->a = PO_NEW_N(arena, double, m->n);
    shift->b = PO_NEW_N(arena, double, m->n);
    for (uint32_t i = 0; i < m->n; i++) {
        shift->a[i] = 1;
        shift->b[i] = m->b[i] / m->a[i];
    }
    shift->ra = NULL;
    shift->rb =
        po_recipe_div(arena, po_affine_shift(arena, m, 1, 0), po_affine_scale(arena, m, 1, 0));
    return fits(shift, PO_F32);
}

static po_value_id emit_step(po_graph *graph, po_arena *arena, po_node_id place, po_value_id x,
                             const po_affine *m, bool scale) {
    po_type type = graph->values[x].type;
    /* [C, 1, 1]: as short as the axis allows. */
    uint32_t rank = m->axis >= 0 ? type.rank - (uint32_t)m->axis : 0;
    const po_recipe *r =
        scale ? po_affine_scale(arena, m, rank, 0) : po_affine_shift(arena, m, rank, 0);
    po_value_id c = po_add_recipe(graph, NULL, type.dtype, r);
    if (c == PO_NONE) { /* too long an axis for the reference: numbers without a recipe */
        int64_t dims[PO_MAX_RANK];
        for (uint32_t i = 0; i < rank; i++)
            dims[i] = i == 0 ? m->n : 1;
        c = po_add_floats(graph, NULL, type.dtype, rank, dims, scale ? m->a : m->b);
    }
    return po_add_op(graph, place, scale ? PO_OP_Mul : PO_OP_Add, 2, (po_value_id[]){x, c}, &type);
}

po_value_id po_affine_emit(po_graph *graph, po_node_id place, po_value_id x, const po_affine *m) {
    po_arena *scratch = po_arena_child(graph->arena);
    if (!po_affine_is_shift(m))
        x = emit_step(graph, scratch, place, x, m, true);
    if (!po_affine_is_scale(m))
        x = emit_step(graph, scratch, place, x, m, false);
    po_arena_free(scratch);
    return x;
}

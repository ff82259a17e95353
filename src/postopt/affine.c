#include "postopt/affine.h"

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

static void resize(po_arena *arena, po_affine *m, int axis, uint32_t n) {
    if (m->n == n)
        return;
    double *a = PO_NEW_N(arena, double, n), *b = PO_NEW_N(arena, double, n);
    for (uint32_t i = 0; i < n; i++) {
        a[i] = m->a[0];
        b[i] = m->b[0];
    }
    m->a = a;
    m->b = b;
    m->n = n;
    m->axis = axis;
}

/* Puts the step y = p x + q, done before m, into m. */
static void compose(po_affine *m, uint32_t i, double p, double q) {
    m->b[i] += m->a[i] * q;
    m->a[i] *= p;
}

static bool join_axis(po_arena *arena, po_affine *m, int axis, uint32_t n) {
    if (axis < 0)
        return true;
    if (m->axis >= 0 && m->axis != axis)
        return false;
    resize(arena, m, axis, n);
    m->axis = axis;
    return true;
}

static bool join_constant(const po_graph *graph, po_arena *arena, po_affine *m, po_value_id x,
                          const po_tensor *c, po_op_id op, bool constant_first) {
    int axis;
    if (!c || !constant_axis(graph, x, c, &axis) ||
        (axis >= 0 && !join_axis(arena, m, axis, (uint32_t)c->count)))
        return false;
    for (uint32_t i = 0; i < m->n; i++) {
        double v = po_tensor_f64(c, c->count == 1 ? 0 : i);
        switch ((po_op)op) {
        case PO_OP_Mul:
            compose(m, i, v, 0);
            break;
        case PO_OP_Div:
            compose(m, i, 1 / v, 0);
            break;
        case PO_OP_Add:
            compose(m, i, 1, v);
            break;
        default: /* Sub */
            compose(m, i, constant_first ? -1 : 1, constant_first ? v : -v);
            break;
        }
    }
    return true;
}

static bool join_norm(const po_graph *graph, po_arena *arena, po_affine *m, const po_node *n) {
    const po_tensor *p[4];
    int64_t channels = po_dim_of(graph, n->in[0], 1);
    if (n->n_in != 5 || channels < 0 || po_node_int(n, "training_mode", 0) ||
        po_node_int(n, "spatial", 1) != 1 || (n->n_out > 1 && n->out[1] != PO_NONE))
        return false;
    /* Before opset 7 is_test said whether this is inference. */
    if (po_op_version(graph, n) < 7 && po_node_int(n, "is_test", 0) == 0)
        return false;
    for (uint32_t i = 0; i < 4; i++) {
        p[i] = po_graph_constant(graph, n->in[i + 1]);
        if (!p[i] || p[i]->count != channels)
            return false;
    }
    if (!join_axis(arena, m, 1, (uint32_t)channels))
        return false;
    double eps = (double)po_op_float(graph, n, "epsilon");
    for (uint32_t i = 0; i < m->n; i++) {
        uint32_t c = m->n == 1 ? 0 : i;
        double scale = po_tensor_f64(p[0], c) / sqrt(po_tensor_f64(p[3], c) + eps);
        compose(m, i, scale, po_tensor_f64(p[1], c) - po_tensor_f64(p[2], c) * scale);
    }
    return true;
}

/* Puts the node in front of the chain; *x is what it reads. */
static bool join(const po_graph *graph, po_arena *arena, po_affine *m, const po_node *n,
                 po_value_id *x) {
    switch ((po_op)n->op) {
    case PO_OP_Mul:
    case PO_OP_Add:
    case PO_OP_Sub:
    case PO_OP_Div:
        /* Before opset 7 broadcasting was written with attributes. */
        if (n->n_in != 2 || po_op_version(graph, n) < 7)
            return false;
        for (uint32_t k = 0; k < 2; k++) {
            const po_tensor *c = po_graph_constant(graph, n->in[k]);
            *x = n->in[1 - k];
            if (!c || po_graph_constant(graph, *x))
                continue;
            if (k == 0 && n->op == PO_OP_Div)
                return false;
            return join_constant(graph, arena, m, *x, c, n->op, k == 0);
        }
        return false;
    case PO_OP_Neg:
        *x = n->in[0];
        for (uint32_t i = 0; i < m->n; i++)
            compose(m, i, -1, 0);
        return true;
    case PO_OP_BatchNormalization:
        *x = n->in[0];
        return join_norm(graph, arena, m, n);
    default:
        return false;
    }
}

bool po_affine_match(const po_graph *graph, po_arena *arena, po_value_id y, po_affine *affine) {
    po_affine m = {.y = y, .axis = -1, .n = 1};
    m.a = PO_NEW(arena, double);
    m.b = PO_NEW(arena, double);
    m.a[0] = 1;
    po_value_id at = y;
    for (;;) {
        const po_node *n = po_graph_producer(graph, at);
        po_value_id x = PO_NONE;
        if (!n || !po_rearrangeable(graph, at) || (at != y && !po_read_once(graph, at)))
            break;
        po_affine saved = m;
        saved.a = po_arena_memdup(arena, m.a, m.n * sizeof *m.a);
        saved.b = po_arena_memdup(arena, m.b, m.n * sizeof *m.b);
        if (!join(graph, arena, &m, n, &x)) {
            m = saved;
            break;
        }
        m.first = graph->values[at].producer;
        m.nodes++;
        at = x;
    }
    m.x = at;
    if (m.nodes == 0)
        return false;
    for (uint32_t i = 0; i < m.n; i++) {
        if (!isfinite(m.a[i]) || !isfinite(m.b[i]))
            return false;
        /* What rounding leaves of 6 * (1 / 6) is 1 in the model's own precision. */
        if (fabs(m.a[i] - 1) <= (graph->values[y].type.dtype == PO_F32 ? 0x1p-25 : 1e-12))
            m.a[i] = 1;
    }
    *affine = m;
    return true;
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
    shift->a = PO_NEW_N(arena, double, m->n);
    shift->b = PO_NEW_N(arena, double, m->n);
    for (uint32_t i = 0; i < m->n; i++) {
        if (m->a[i] == 0 || !isfinite(m->b[i] / m->a[i]))
            return false;
        shift->a[i] = 1;
        shift->b[i] = m->b[i] / m->a[i];
    }
    return true;
}

static po_value_id emit_step(po_graph *graph, po_node_id place, po_value_id x, const po_affine *m,
                             po_op_id op, const double *values) {
    int64_t dims[PO_MAX_RANK];
    uint32_t rank = 0;
    po_type type = graph->values[x].type;
    if (m->axis >= 0) {
        /* [C, 1, 1]: as short as the axis allows. */
        rank = type.rank - (uint32_t)m->axis;
        dims[0] = m->n;
        for (uint32_t i = 1; i < rank; i++)
            dims[i] = 1;
    }
    po_value_id c = po_add_floats(graph, NULL, type.dtype, rank, dims, values);
    return po_add_op(graph, place, op, 2, (po_value_id[]){x, c}, &type);
}

po_value_id po_affine_emit(po_graph *graph, po_node_id place, po_value_id x, const po_affine *m) {
    if (!po_affine_is_shift(m))
        x = emit_step(graph, place, x, m, PO_OP_Mul, m->a);
    if (!po_affine_is_scale(m))
        x = emit_step(graph, place, x, m, PO_OP_Add, m->b);
    return x;
}

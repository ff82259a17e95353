/* Lines a x + b, products of factors, polynomials up to x^3 and reductions over one axis, as nodes
 * spell them. */
#include "rewrite/spelling/match.h"

#include <math.h>

int64_t po_opset_of(const po_graph *graph) {
    return graph->model ? po_model_opset(graph->model, "") : 0;
}

bool po_near(double a, double b) {
    return fabs(a - b) <= 1e-6 * fabs(b);
}

bool po_is_f32(const po_graph *graph, po_value_id value) {
    return po_rearrangeable(graph, value) && graph->values[value].type.dtype == PO_F32;
}

bool po_same_rank(const po_graph *graph, po_value_id a, po_value_id b) {
    return po_rank_of(graph, a) >= 0 && po_rank_of(graph, a) == po_rank_of(graph, b);
}

void po_match_line(const po_graph *graph, po_arena *arena, po_value_id v, po_value_id *x, double *a,
                   double *b) {
    po_affine m;
    *x = v;
    *a = 1;
    *b = 0;
    if (!po_read_once(graph, v) || !po_affine_match(graph, arena, v, &m) || m.n != 1)
        return;
    *x = m.x;
    *a = m.a[0];
    *b = m.b[0];
}

static bool collect(const po_graph *graph, po_value_id v, bool root, po_matched_product *p) {
    const po_node *n = root || po_read_once(graph, v) ? po_graph_producer(graph, v) : NULL;
    double c;
    if (po_scalar_constant(graph, v, &c)) {
        p->c *= c;
        return true;
    }
    if (n && n->op == PO_OP_Mul && n->n_in == 2)
        return collect(graph, n->in[0], false, p) && collect(graph, n->in[1], false, p);
    if (n && n->op == PO_OP_Div && n->n_in == 2 && po_scalar_constant(graph, n->in[1], &c) &&
        c != 0) {
        p->c /= c;
        return collect(graph, n->in[0], false, p);
    }
    if (root || p->n == PO_MOST_FACTORS)
        return false;
    p->v[p->n++] = v;
    return true;
}

bool po_match_product(const po_graph *graph, po_value_id y, po_matched_product *product) {
    *product = (po_matched_product){.c = 1};
    return po_opset_of(graph) >= 7 && collect(graph, y, true, product) && isfinite(product->c) &&
           product->c != 0;
}

/* --- polynomials --- */

enum { DEEPEST = 12 };

static bool multiply(const double *a, const double *b, double *product) {
    for (int i = 0; i < 4; i++)
        product[i] = 0;
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 4; j++) {
            if (i + j < 4)
                product[i + j] += a[i] * b[j];
            else if (a[i] != 0 && b[j] != 0)
                return false;
        }
    return true;
}

static bool cubic(const po_graph *graph, po_value_id v, po_value_id x, int depth, double *k) {
    double a[4], b[4], c;
    for (int i = 0; i < 4; i++)
        k[i] = 0;
    if (v == x) {
        k[1] = 1;
        return true;
    }
    if (po_scalar_constant(graph, v, &c)) {
        k[0] = c;
        return true;
    }
    const po_node *n = po_read_once(graph, v) ? po_graph_producer(graph, v) : NULL;
    if (!n || n->n_in != 2 || depth == DEEPEST || !cubic(graph, n->in[0], x, depth + 1, a) ||
        !cubic(graph, n->in[1], x, depth + 1, b))
        return false;
    bool number = b[1] == 0 && b[2] == 0 && b[3] == 0;
    switch ((po_op)n->op) {
    case PO_OP_Add:
    case PO_OP_Sub:
        for (int i = 0; i < 4; i++)
            k[i] = n->op == PO_OP_Add ? a[i] + b[i] : a[i] - b[i];
        return true;
    case PO_OP_Mul:
        return multiply(a, b, k);
    case PO_OP_Div:
        if (!number || b[0] == 0)
            return false;
        for (int i = 0; i < 4; i++)
            k[i] = a[i] / b[0];
        return true;
    case PO_OP_Pow: {
        double square[4];
        if (!number || (b[0] != 2 && b[0] != 3) || !multiply(a, a, square))
            return false;
        if (b[0] == 3)
            return multiply(square, a, k);
        for (int i = 0; i < 4; i++)
            k[i] = square[i];
        return true;
    }
    default:
        return false;
    }
}

bool po_match_cubic(const po_graph *graph, po_value_id v, po_value_id x, double coefficient[4]) {
    return po_opset_of(graph) >= 7 && cubic(graph, v, x, 0, coefficient);
}

/* --- reductions --- */

bool po_reduced_axis(const po_graph *graph, const po_node *node, uint32_t *axis) {
    return po_reduced_axes(graph, node, 1, axis) == 1 && po_node_int(node, "keepdims", 1) == 1;
}

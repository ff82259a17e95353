/* Element-wise operators as expressions: a table from operators to what they compute. */
#include "superopt/lower/internal.h"

#include <float.h>
#include <math.h>

typedef struct expr {
    po_lowering *l;
    const po_lower_chain *chain;
    const po_node *node;
    uint32_t s; /* statement */
} expr;

/* What is there already is taken again, so that shared parts are computed once. */
static uint32_t item(expr *e, po_mu_function f, uint32_t a, uint32_t b, uint32_t c) {
    const po_mu_statement *s = &e->l->mu->nodes[e->s].statement;
    for (uint32_t i = 0; i < s->n_items; i++)
        if (s->items[i].function == f && s->items[i].a == a && s->items[i].b == b &&
            s->items[i].c == c)
            return i;
    return po_mu_item_of(e->l->mu, e->s, f, a, b, c);
}

static uint32_t number(expr *e, double value) {
    const po_mu_statement *s = &e->l->mu->nodes[e->s].statement;
    for (uint32_t i = 0; i < s->n_items; i++)
        if (s->items[i].function == PO_MU_CONST && s->items[i].value == value)
            return i;
    return po_mu_constant(e->l->mu, e->s, value);
}

static uint32_t in(expr *e, uint32_t k) {
    return po_lower_value(e->l, e->chain, e->node->in[k]);
}

static double attr(const expr *e, const char *name) {
    return (double)po_op_float(e->l->graph, e->node, name);
}

/* --- builders: the item of the node's output, or PO_NONE --- */

static uint32_t identity(expr *e, int f) {
    (void)f;
    return in(e, 0);
}

static uint32_t unary(expr *e, int f) {
    uint32_t x = in(e, 0);
    return x == PO_NONE ? x : item(e, (po_mu_function)f, x, 0, 0);
}

/* Two or more inputs, from the left. */
static uint32_t nary(expr *e, int f) {
    uint32_t x = in(e, 0);
    for (uint32_t k = 1; k < e->node->n_in && x != PO_NONE; k++) {
        uint32_t y = in(e, k);
        x = y == PO_NONE ? y : item(e, (po_mu_function)f, x, y, 0);
    }
    return x;
}

/* A square is a product, the power 1/2 a root. */
static uint32_t power(expr *e, int f) {
    const po_tensor *t = po_graph_constant(e->l->graph, e->node->in[1]);
    double value = t && t->count == 1 ? po_tensor_f64(t, 0) : 0;
    if (value != 2 && value != 0.5)
        return nary(e, f);
    uint32_t x = in(e, 0);
    return x == PO_NONE ? x
           : value == 2 ? item(e, PO_MU_TIMES, x, x, 0)
                        : item(e, PO_MU_SQRT, x, 0, 0);
}

static uint32_t relu(expr *e, int f) {
    (void)f;
    uint32_t x = in(e, 0);
    return x == PO_NONE ? x : item(e, PO_MU_MAX, x, number(e, 0), 0);
}

static uint32_t reciprocal(expr *e, int f) {
    (void)f;
    uint32_t x = in(e, 0);
    return x == PO_NONE ? x : item(e, PO_MU_OVER, number(e, 1), x, 0);
}

static bool bound(const expr *e, uint32_t k, const char *name, double otherwise, double *value) {
    const po_graph *g = e->l->graph;
    *value = otherwise;
    if (po_node_attr(e->node, name)) {
        *value = (double)po_node_float(e->node, name, 0);
        return true;
    }
    if (k >= e->node->n_in || e->node->in[k] == PO_NONE)
        return true;
    const po_tensor *t = po_graph_constant(g, e->node->in[k]);
    if (!t || t->count != 1)
        return false;
    *value = po_tensor_f64(t, 0);
    return true;
}

static uint32_t clip(expr *e, int f) {
    (void)f;
    double low, high;
    uint32_t x = in(e, 0);
    if (x == PO_NONE || !bound(e, 1, "min", -(double)INFINITY, &low) ||
        !bound(e, 2, "max", (double)INFINITY, &high))
        return PO_NONE;
    if (low > -(double)FLT_MAX)
        x = item(e, PO_MU_MAX, x, number(e, low), 0);
    if (high < (double)FLT_MAX)
        x = item(e, PO_MU_MIN, x, number(e, high), 0);
    return x;
}

static uint32_t line(expr *e, uint32_t x, double alpha, double beta) {
    x = item(e, PO_MU_PLUS, item(e, PO_MU_TIMES, x, number(e, alpha), 0), number(e, beta), 0);
    return item(e, PO_MU_MIN, item(e, PO_MU_MAX, x, number(e, 0), 0), number(e, 1), 0);
}

static uint32_t hard_sigmoid(expr *e, int f) {
    (void)f;
    uint32_t x = in(e, 0);
    return x == PO_NONE ? x : line(e, x, attr(e, "alpha"), attr(e, "beta"));
}

static uint32_t hard_swish(expr *e, int f) {
    (void)f;
    uint32_t x = in(e, 0);
    return x == PO_NONE ? x : item(e, PO_MU_TIMES, x, line(e, x, 1.0 / 6, 0.5), 0);
}

static uint32_t leaky(expr *e, int f) {
    (void)f;
    uint32_t x = in(e, 0);
    if (x == PO_NONE)
        return x;
    uint32_t low = item(e, PO_MU_TIMES, x, number(e, attr(e, "alpha")), 0);
    return item(e, PO_MU_CHOOSE, item(e, PO_MU_LESS, x, number(e, 0), 0), low, x);
}

static uint32_t prelu(expr *e, int f) {
    (void)f;
    uint32_t x = in(e, 0), slope = x == PO_NONE ? x : in(e, 1);
    if (slope == PO_NONE)
        return slope;
    uint32_t low = item(e, PO_MU_TIMES, x, slope, 0);
    return item(e, PO_MU_CHOOSE, item(e, PO_MU_LESS, x, number(e, 0), 0), low, x);
}

static uint32_t gelu_erf(expr *e, int f) {
    (void)f;
    uint32_t x = in(e, 0);
    if (x == PO_NONE || !po_node_string_is(e->node, "approximate", "none", "none"))
        return PO_NONE;
    uint32_t t =
        item(e, PO_MU_ERF, item(e, PO_MU_TIMES, x, number(e, 0.70710678118654752440), 0), 0, 0);
    t = item(e, PO_MU_PLUS, t, number(e, 1), 0);
    return item(e, PO_MU_TIMES, item(e, PO_MU_TIMES, x, number(e, 0.5), 0), t, 0);
}

static uint32_t swish(expr *e, int f) {
    (void)f;
    uint32_t x = in(e, 0);
    if (x == PO_NONE)
        return x;
    uint32_t t = item(e, PO_MU_TIMES, x, number(e, attr(e, "alpha")), 0);
    return item(e, PO_MU_TIMES, x, item(e, PO_MU_SIGMOID, t, 0, 0), 0);
}

/* What is no number is told from what is by two comparisons: neither holds of it. */
static uint32_t where_number(expr *e, int f) {
    (void)f;
    uint32_t x = in(e, 2), otherwise = x == PO_NONE ? x : in(e, 1);
    if (otherwise == PO_NONE)
        return PO_NONE;
    uint32_t low = item(e, PO_MU_LESS, x, number(e, 1), 0);
    uint32_t high = item(e, PO_MU_LESS, number(e, 0), x, 0);
    return item(e, PO_MU_CHOOSE, item(e, PO_MU_MAX, low, high, 0), x, otherwise);
}

/* Its reader alone says what it stands for. */
static uint32_t nothing(expr *e, int f) {
    (void)e;
    (void)f;
    return PO_NONE;
}

static const struct {
    po_op_id op;
    uint32_t (*make)(expr *e, int f);
    po_mu_function f;
} maps[] = {
    {PO_OP_Identity, identity, 0},
    {PO_OP_Cast, identity, 0}, /* between floats: what is stored rounds */
    {PO_OP_Add, nary, PO_MU_PLUS},
    {PO_OP_Sum, nary, PO_MU_PLUS},
    {PO_OP_Sub, nary, PO_MU_MINUS},
    {PO_OP_Mul, nary, PO_MU_TIMES},
    {PO_OP_Div, nary, PO_MU_OVER},
    {PO_OP_Max, nary, PO_MU_MAX},
    {PO_OP_Min, nary, PO_MU_MIN},
    {PO_OP_Pow, power, PO_MU_POW},
    {PO_OP_Neg, unary, PO_MU_NEGATE},
    {PO_OP_Abs, unary, PO_MU_ABS},
    {PO_OP_Exp, unary, PO_MU_EXP},
    {PO_OP_Log, unary, PO_MU_LOG},
    {PO_OP_Sqrt, unary, PO_MU_SQRT},
    {PO_OP_Tanh, unary, PO_MU_TANH},
    {PO_OP_Erf, unary, PO_MU_ERF},
    {PO_OP_Sigmoid, unary, PO_MU_SIGMOID},
    {PO_OP_Floor, unary, PO_MU_FLOOR},
    {PO_OP_Relu, relu, 0},
    {PO_OP_Reciprocal, reciprocal, 0},
    {PO_OP_Clip, clip, 0},
    {PO_OP_HardSigmoid, hard_sigmoid, 0},
    {PO_OP_HardSwish, hard_swish, 0},
    {PO_OP_LeakyRelu, leaky, 0},
    {PO_OP_PRelu, prelu, 0},
    {PO_OP_Gelu, gelu_erf, 0},
    {PO_OP_Swish, swish, 0},
    {PO_OP_IsNaN, nothing, 0},
    {PO_OP_Where, where_number, 0},
};
enum { MAPS = sizeof maps / sizeof maps[0] };

static size_t find(po_op_id op) {
    size_t i = 0;
    while (i < MAPS && maps[i].op != op)
        i++;
    return i;
}

/* Where(IsNaN(x), a number, x), as exporters guard a softmax whose row is masked as a whole. */
static bool is_guard(const po_graph *graph, const po_node *node) {
    const po_value *asked =
        node->n_in == 3 && node->in[0] != PO_NONE ? &graph->values[node->in[0]] : NULL;
    if (node->op != PO_OP_Where || !asked || asked->producer == PO_NONE || asked->n_uses != 1 ||
        asked->n_outputs > 0 || node->in[1] == PO_NONE)
        return false;
    const po_node *is_nan = &graph->nodes[asked->producer];
    const po_tensor *t = po_graph_constant(graph, node->in[1]);
    return is_nan->op == PO_OP_IsNaN && is_nan->in[0] == node->in[2] && t && t->count == 1;
}

bool po_lower_is_test(const po_graph *graph, const po_node *node) {
    const po_value *out = node->op == PO_OP_IsNaN ? &graph->values[node->out[0]] : NULL;
    return out && out->n_uses == 1 && out->uses[0].input == 0 &&
           is_guard(graph, &graph->nodes[out->uses[0].node]);
}

bool po_lower_is_map(const po_graph *graph, const po_node *node) {
    if (find(node->op) == MAPS)
        return false;
    if (node->op == PO_OP_IsNaN || node->op == PO_OP_Where)
        return po_lower_is_test(graph, node) || is_guard(graph, node);
    if (node->op == PO_OP_Gelu)
        return po_node_string_is(node, "approximate", "none", "none");
    for (uint32_t k = 1; k < node->n_in && node->op == PO_OP_Clip; k++)
        if (node->in[k] != PO_NONE) {
            const po_tensor *t = po_graph_constant(graph, node->in[k]);
            if (!t || t->count != 1)
                return false;
        }
    return po_op_version(graph, node) >= 7;
}

uint32_t po_lower_value(po_lowering *l, const po_lower_chain *chain, po_value_id v) {
    if (v == PO_NONE)
        return PO_NONE;
    if (v == chain->start)
        return chain->start_item;
    const po_tensor *t = po_graph_constant(l->graph, v);
    if (t && t->count == 1)
        return po_mu_constant(l->mu, chain->statement, po_tensor_f64(t, 0));
    po_node_id from = t ? PO_NONE : l->graph->values[v].producer;
    for (uint32_t i = 0; i < chain->n_nodes && from != PO_NONE; i++)
        if (chain->nodes[i] == from) {
            expr e = {l, chain, &l->graph->nodes[from], chain->statement};
            size_t k = find(e.node->op);
            return k < MAPS ? maps[k].make(&e, (int)maps[k].f) : PO_NONE;
        }
    uint32_t rank;
    const po_dim *dims = po_lower_dims(l, v, &rank);
    if (rank > chain->rank)
        return PO_NONE;
    po_lower_index at[PO_MU_MAX_RANK];
    for (uint32_t j = 0; j < rank; j++) {
        uint32_t k = j + chain->rank - rank;
        at[j] = dims[j].value == 1 ? (po_lower_index){0} : chain->at[k];
    }
    return po_lower_operand(l, chain->statement, v, at);
}

/* Integers that may differ since rounding decides between equals: the float input of the operator
 * that made them is looked at, in float64. */
#include "verify/verify_internal.h"

#include "ops/op.h"

#include <math.h>

/* Longest that the reference may take. */
static const double patience = 30;

typedef enum source_kind {
    FROM_NOTHING,
    FROM_ARG,
    FROM_ROUND,
    FROM_FLOOR,
    FROM_CEIL,
    FROM_CUT,
    FROM_COMPARE
} source_kind;

typedef struct source {
    source_kind kind;
    const po_node *node;
    int64_t axis; /* FROM_ARG; may be negative */
} source;

static const struct {
    const char *op;
    source_kind kind;
} kinds[] = {
    {"ArgMax", FROM_ARG},
    {"ArgMin", FROM_ARG},
    {"TopK", FROM_ARG},
    {"Round", FROM_ROUND},
    {"Floor", FROM_FLOOR},
    {"Ceil", FROM_CEIL},
    {"Less", FROM_COMPARE},
    {"LessOrEqual", FROM_COMPARE},
    {"Greater", FROM_COMPARE},
    {"Equal", FROM_COMPARE},
    {"GreaterOrEqual", FROM_COMPARE},
};

static bool is_float(const po_graph *g, po_value_id id) {
    return id != PO_NONE && po_dtype_class_of(g->values[id].type.dtype) == PO_CLASS_FLOAT;
}

/* The operator that chose the integers of an output, behind those that keep elements in place. */
static source find_source(const po_graph *g, po_value_id id) {
    source s = {FROM_NOTHING, NULL, 0};
    for (uint32_t depth = 0; depth < 16; depth++) {
        const po_node *node = po_graph_producer(g, id);
        if (!node || node->n_in == 0 || node->in[0] == PO_NONE)
            return s;
        for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++)
            if (strcmp(node->op_type, kinds[k].op) == 0 && is_float(g, node->in[0])) {
                s.kind = kinds[k].kind;
                s.node = node;
                s.axis = po_node_int(node, "axis", strcmp(node->op_type, "TopK") == 0 ? -1 : 0);
                return s;
            }
        bool cast = node->op == PO_OP_Cast;
        if (cast && is_float(g, node->in[0]) && !is_float(g, node->out[0])) {
            const po_node *before = po_graph_producer(g, node->in[0]);
            bool rounded = before && (before->op == PO_OP_Round || before->op == PO_OP_Floor ||
                                      before->op == PO_OP_Ceil);
            if (!rounded) {
                s.kind = FROM_CUT;
                s.node = node;
                return s;
            }
        } else if (!cast && !po_op_has(node->op, PO_OPF_SHAPE_ONLY)) {
            return s;
        }
        id = node->in[0];
    }
    return s;
}

/* What selects among its inputs, or steps, without rounding. */
static const char *const exact_ops[] = {"Round", "Floor",   "Ceil",      "Neg",      "Abs",
                                        "Relu",  "Sign",    "Max",       "Min",      "Clip",
                                        "Where", "MaxPool", "ReduceMax", "ReduceMin"};

/* Whether no rounding reached the value: then the other model has the same, and equals in it are
 * told apart by what the operator says, not by chance. */
static bool is_exact(const po_graph *g, po_value_id id, uint32_t depth) {
    const po_node *node = po_graph_producer(g, id);
    if (!node || po_graph_constant(g, id))
        return true;
    bool exact = po_op_has(node->op, PO_OPF_MOVES_DATA);
    for (size_t k = 0; k < sizeof exact_ops / sizeof exact_ops[0] && !exact; k++)
        exact = strcmp(node->op_type, exact_ops[k]) == 0;
    for (uint32_t i = 0; i < node->n_in && exact; i++)
        exact = node->in[i] == PO_NONE || (depth > 0 && is_exact(g, node->in[i], depth - 1));
    return exact;
}

/* The values of the node's float inputs, by the float64 reference; NULL without an answer. */
static po_status look_at_inputs(po_ctx *ctx, po_arena *arena, const po_graph *graph,
                                const po_feed *feed, const source *s, po_array **x, po_array **y) {
    po_graph *probe = po_graph_clone(ctx, graph);
    uint32_t first = probe->n_outputs, n = s->kind == FROM_COMPARE ? 2 : 1;
    for (uint32_t i = 0; i < n; i++)
        po_graph_add_output(probe, s->node->in[i]);
    po_limit limit = po_limit_begin(ctx, po_now() + patience);
    po_array **out = NULL;
    po_status status = po_verify_evaluate(ctx, arena, probe, feed, false, &out);
    if (status == PO_OK) {
        *x = out[first];
        *y = n == 2 ? out[first + 1] : NULL;
    }
    po_graph_free(probe);
    return po_verify_without_answer(ctx, &limit, status);
}

static double largest(const po_array *a) {
    double most = 0;
    for (int64_t i = 0; i < a->count; i++)
        if (isfinite(a->f[i]))
            most = fmax(most, fabs(a->f[i]));
    return most;
}

/* Element `at` along the axis, in the row that flat index i of an output lies in. `along` is the
 * output's length on that axis. NAN where it is outside. */
static double element_along(const po_array *x, int64_t axis, int64_t along, int64_t i, int64_t at) {
    if (axis < 0)
        axis += x->rank;
    if (axis < 0 || axis >= x->rank || along < 1)
        return NAN;
    int64_t length = x->dims[axis], inner = 1;
    for (uint32_t k = (uint32_t)axis + 1; k < x->rank; k++)
        inner *= x->dims[k];
    if (at < 0)
        at += length;
    int64_t outer = i / (inner * along), place = (outer * length + at) * inner + i % inner;
    return at < 0 || at >= length || place >= x->count ? NAN : x->f[place];
}

static bool is_tie(const source *s, const po_array *x, const po_array *y, int64_t along, int64_t i,
                   double expected, double got, double slack) {
    if (s->kind == FROM_ARG) {
        double a = element_along(x, s->axis, along, i, (int64_t)expected);
        double b = element_along(x, s->axis, along, i, (int64_t)got);
        return fabs(a - b) <= 2 * slack;
    }
    if (s->kind == FROM_COMPARE) {
        int64_t j = x->count == 1 ? 0 : i, k = y->count == 1 ? 0 : i;
        return j < x->count && k < y->count && fabs(x->f[j] - y->f[k]) <= 2 * slack;
    }
    if (i >= x->count || fabs(expected - got) > 1)
        return false;
    double low = fmin(expected, got), high = fmax(expected, got), between = low + 0.5;
    if (s->kind == FROM_FLOOR || (s->kind == FROM_CUT && low >= 0))
        between = high;
    else if (s->kind == FROM_CEIL || s->kind == FROM_CUT)
        between = low;
    return fabs(x->f[i] - between) <= slack;
}

/* The output's length along the axis of an ArgMax or TopK. */
static int64_t chosen_along(const po_graph *g, const source *s) {
    if (s->kind != FROM_ARG || strcmp(s->node->op_type, "TopK") != 0)
        return 1;
    const po_tensor *k = s->node->n_in > 1 && s->node->in[1] != PO_NONE
                             ? po_graph_constant(g, s->node->in[1])
                             : NULL;
    return k && k->count == 1 ? po_tensor_int(k, 0) : po_node_int(s->node, "k", 1);
}

static po_status count_ties(po_ctx *ctx, po_arena *arena, const po_graph *graph,
                            const po_feed *feed, const source *s, const po_tensor *expected,
                            const po_tensor *got, double tolerance, uint32_t *ties) {
    enum { DEPTH = 8 };
    po_array *x = NULL, *y = NULL;
    if (s->kind == FROM_ARG && is_exact(graph, s->node->in[0], DEPTH))
        return PO_OK;
    PO_TRY(look_at_inputs(ctx, arena, graph, feed, s, &x, &y));
    if (!x)
        return PO_OK;
    double slack = tolerance * fmax(largest(x), y ? largest(y) : 0);
    int64_t along = chosen_along(graph, s);
    uint32_t n = 0;
    for (int64_t i = 0; i < expected->count; i++) {
        int64_t a = po_tensor_int(expected, i), b = po_tensor_int(got, i);
        if (a == b)
            continue;
        if (!is_tie(s, x, y, along, i, (double)a, (double)b, slack))
            return PO_OK;
        n++;
    }
    *ties = n;
    return PO_OK;
}

po_status po_verify_ties(po_ctx *ctx, const po_graph *graph, const po_feed *feed,
                         const char *output, const po_tensor *expected, const po_tensor *got,
                         double tolerance, uint32_t *ties) {
    *ties = 0;
    po_value_id id = PO_NONE;
    for (uint32_t i = 0; i < graph->n_outputs; i++)
        if (strcmp(graph->values[graph->outputs[i]].name, output) == 0)
            id = graph->outputs[i];
    source s = id == PO_NONE ? (source){FROM_NOTHING, NULL, 0} : find_source(graph, id);
    if (s.kind == FROM_NOTHING || po_dtype_class_of(expected->dtype) == PO_CLASS_NONE ||
        po_dtype_class_of(expected->dtype) == PO_CLASS_FLOAT || expected->count != got->count)
        return PO_OK;
    po_arena *arena = po_arena_create(ctx);
    po_status status = count_ties(ctx, arena, graph, feed, &s, expected, got, tolerance, ties);
    po_arena_free(arena);
    return status;
}

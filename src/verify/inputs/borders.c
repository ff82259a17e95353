/* Where a graph tells values of an input apart: at the constants that it is compared with, at ties
 * of rounding, at limits of clips. Followed forwards from the input, through operators that move
 * elements and through scaling and shifting by single numbers, which is undone. */
#include "verify/inputs/internal.h"

#include "ops/op.h"

#include <math.h>

enum { MOST_BORDERS = 64, MOST_VISITED = 256, OF_A_CONSTANT = 16, TIES = 3 };

typedef enum border_rule {
    COMPARED, /* with the other input's elements */
    LIMITED,  /* by the constants that the other inputs are */
    AT_TIES,  /* halves */
    AT_WHOLE, /* numbers */
    AT_ZERO,
    IN_STEPS /* halves of steps as long as input 1 */
} border_rule;

static const struct {
    const char *op;
    border_rule rule;
} rows[] = {
    {"Less", COMPARED},
    {"LessOrEqual", COMPARED},
    {"Greater", COMPARED},
    {"GreaterOrEqual", COMPARED},
    {"Equal", COMPARED},
    {"Clip", LIMITED},
    {"Max", LIMITED},
    {"Min", LIMITED},
    {"Round", AT_TIES},
    {"Floor", AT_WHOLE},
    {"Ceil", AT_WHOLE},
    {"Sign", AT_ZERO},
    {"QuantizeLinear", IN_STEPS},
};

typedef struct border_search {
    const po_graph *graph;
    po_borders *found;
    uint32_t left;
} border_search;

/* What stands in the graph is scale * input + shift. */
typedef struct affine {
    double scale, shift;
    bool rounds; /* scaled or shifted: the input's own borders are where rounding puts them */
} affine;

static void add(border_search *s, const affine *map, double at) {
    double x = (at - map->shift) / map->scale;
    po_borders *f = s->found;
    if (!isfinite(x) || f->n == MOST_BORDERS)
        return;
    for (uint32_t k = 0; k < f->n; k++)
        if (f->list[k].at == x)
            return;
    f->list[f->n++] = (po_border){x, !map->rounds};
}

static const po_tensor *constant_in(const po_graph *g, const po_node *node, uint32_t k) {
    const po_tensor *t =
        k < node->n_in && node->in[k] != PO_NONE ? po_graph_constant(g, node->in[k]) : NULL;
    return t && t->count > 0 && t->dtype != PO_STR ? t : NULL;
}

static double number(const po_tensor *t, int64_t i) {
    return po_dtype_class_of(t->dtype) == PO_CLASS_FLOAT ? po_tensor_f64(t, i)
                                                         : (double)po_tensor_int(t, i);
}

static void add_constant(border_search *s, const affine *map, const po_tensor *t) {
    for (int64_t i = 0; t && i < t->count && i < OF_A_CONSTANT; i++)
        add(s, map, number(t, i));
}

/* Beyond a limit, by so much that it shows. */
static void add_beyond(border_search *s, const affine *map, const po_tensor *t) {
    static const double most = 1e8;
    for (int64_t i = 0; t && i < t->count && i < OF_A_CONSTANT; i++)
        if (fabs(number(t, i)) <= most)
            add(s, map, 2 * number(t, i));
}

/* Where integers no longer fit what they are cast to. */
static void add_ends(border_search *s, const affine *map, po_dtype from, po_dtype to) {
    bool whole =
        po_dtype_class_of(to) == PO_CLASS_SIGNED || po_dtype_class_of(to) == PO_CLASS_UNSIGNED;
    if (!whole || po_dtype_bits(to) >= po_dtype_bits(from))
        return;
    double end = exp2(po_dtype_bits(to) - (po_dtype_class_of(to) == PO_CLASS_SIGNED));
    add(s, map, end);
    add(s, map, -end);
}

static void apply(border_search *s, const affine *map, const po_node *node, uint32_t input,
                  border_rule rule) {
    const po_tensor *step = rule == IN_STEPS ? constant_in(s->graph, node, 1) : NULL;
    double length = step ? fabs(number(step, 0)) : 1;
    if ((rule == AT_ZERO || rule == IN_STEPS || rule == AT_TIES || rule == AT_WHOLE) && input > 0)
        return;
    switch (rule) {
    case COMPARED:
    case LIMITED:
        for (uint32_t k = 0; k < node->n_in; k++) {
            const po_tensor *t = k != input ? constant_in(s->graph, node, k) : NULL;
            add_constant(s, map, t);
            if (rule == LIMITED)
                add_beyond(s, map, t);
        }
        return;
    case AT_ZERO:
        add(s, map, 0);
        return;
    default:
        for (int k = -TIES; k <= TIES; k++)
            add(s, map, length * (k + (rule == AT_WHOLE ? 0 : 0.5)));
    }
}

/* The map behind a node that scales or shifts by one number. False: it is another kind. */
static bool passes_affine(const border_search *s, const po_node *node, uint32_t input,
                          affine *map) {
    if (node->op == PO_OP_Neg) {
        *map = (affine){-map->scale, -map->shift, map->rounds};
        return true;
    }
    bool adds = node->op == PO_OP_Add, takes = node->op == PO_OP_Sub;
    bool times = node->op == PO_OP_Mul, over = node->op == PO_OP_Div && input == 0;
    const po_tensor *other =
        adds || takes || times || over ? constant_in(s->graph, node, input == 0 ? 1 : 0) : NULL;
    if (!other || other->count != 1)
        return false;
    double c = number(other, 0);
    if ((times || over) && (c == 0 || !isfinite(1 / c)))
        return false;
    map->rounds = true;
    if (adds)
        map->shift += c;
    else if (takes && input == 0)
        map->shift -= c;
    else if (takes)
        *map = (affine){-map->scale, c - map->shift, true};
    else
        *map = (affine){times ? map->scale * c : map->scale / c,
                        times ? map->shift * c : map->shift / c, true};
    return true;
}

static void visit(border_search *s, po_value_id id, affine map) {
    if (s->left == 0)
        return;
    s->left--;
    const po_value *value = &s->graph->values[id];
    for (uint32_t u = 0; u < value->n_uses; u++) {
        const po_node *node = &s->graph->nodes[value->uses[u].node];
        uint32_t input = value->uses[u].input;
        if (input == PO_USE_CAPTURE || node->n_out == 0 || node->out[0] == PO_NONE)
            continue;
        for (size_t r = 0; r < sizeof rows / sizeof rows[0]; r++)
            if (strcmp(rows[r].op, node->op_type) == 0)
                apply(s, &map, node, input, rows[r].rule);
        bool real = po_dtype_class_of(value->type.dtype) == PO_CLASS_FLOAT;
        bool stays = real == (po_dtype_class_of(s->graph->values[node->out[0]].type.dtype) ==
                              PO_CLASS_FLOAT);
        if (node->op == PO_OP_Cast && real && !stays)
            apply(s, &map, node, input, AT_WHOLE);
        if (node->op == PO_OP_Cast && !real)
            add_ends(s, &map, value->type.dtype, s->graph->values[node->out[0]].type.dtype);
        affine next = map;
        bool moves = input == 0 && po_op_has(node->op, PO_OPF_MOVES_DATA);
        moves |= input == 0 && (node->op == PO_OP_ReduceMax || node->op == PO_OP_ReduceMin);
        moves |= node->op == PO_OP_Concat || (node->op == PO_OP_Cast && (stays || !real));
        if (moves || passes_affine(s, node, input, &next))
            for (uint32_t o = 0; o < node->n_out; o++)
                if (node->out[o] != PO_NONE)
                    visit(s, node->out[o], next);
    }
}

void po_borders_add(po_arena *arena, const po_graph *graph, po_value_id value,
                    po_borders *borders) {
    if (!borders->list)
        borders->list = PO_NEW_N(arena, po_border, MOST_BORDERS);
    border_search s = {graph, borders, MOST_VISITED};
    visit(&s, value, (affine){1, 0, false});
}

/* --- lengths --- */

static const struct {
    const char *op;
    uint32_t first; /* input that may hold one */
} cutters[] = {
    {"Slice", 1}, {"Less", 0},  {"LessOrEqual", 0}, {"Greater", 0}, {"GreaterOrEqual", 0},
    {"Equal", 0}, {"Mod", 1},   {"Div", 1},         {"Min", 0},     {"Max", 0},
    {"Sub", 0},   {"Split", 1}, {"Range", 0},       {"Tile", 1},    {"TopK", 1},
};

static uint32_t add_length(int64_t *lengths, uint32_t n, uint32_t most, int64_t v) {
    for (uint32_t i = 0; i < n; i++)
        if (lengths[i] == v)
            return n;
    if (n < most)
        lengths[n++] = v;
    return n;
}

uint32_t po_border_lengths(const po_graph *g, int64_t *lengths, uint32_t n, uint32_t most) {
    enum { LONGEST = 8192, OF_ONE = 4 };
    for (po_node_id id = 0; id < g->n_nodes; id++) {
        const po_node *node = &g->nodes[id];
        uint32_t from = PO_NONE;
        for (size_t k = 0; k < sizeof cutters / sizeof cutters[0] && !node->removed; k++)
            if (strcmp(cutters[k].op, node->op_type) == 0)
                from = cutters[k].first;
        for (uint32_t i = from; i < node->n_in; i++) {
            const po_tensor *t = constant_in(g, node, i);
            if (!t || t->count > OF_ONE || po_dtype_class_of(t->dtype) != PO_CLASS_SIGNED)
                continue;
            for (int64_t e = 0; e < t->count; e++) {
                int64_t v = po_tensor_int(t, e);
                v = v < 0 && v >= -LONGEST ? -v : v;
                if (v < 2 || v > LONGEST)
                    continue;
                n = add_length(lengths, n, most, v);
                n = add_length(lengths, n, most, v + 1);
            }
        }
    }
    return n;
}

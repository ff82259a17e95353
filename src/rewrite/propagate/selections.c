/* What is taken of a value is taken of what it is made of: the token that a classifier reads, the
 * last step of a sequence, some channels. Where every reader of a value takes the same places along
 * one axis, the nodes that make it, and what these are made of, need be no larger, as far as each
 * keeps the axis (ops/along.h): norms, products, residuals, the queries of attention, but not its
 * keys. The same holds of tokens that an index picks when the model runs, one of each sample,
 * through nodes that keep both axes. From the last node to the first it is found what is taken of
 * each value; then those nodes are made anew of what is taken, and a Slice stands where something
 * else reads the whole. */
#include "ops/along.h"
#include "ops/recipe/recipe.h"
#include "ops/rewrite.h"
#include "rewrite/passes.h"
#include "rewrite/propagate/numbers.h"

/* What is read of a value: nothing yet, all of it, a range of places along an axis, some of all
 * tokens of [N, T, C], or some rows of that as [N T, C]. What is taken of tokens is [K, 1, C]. */
typedef enum taken_kind { NOTHING, ALL, RANGE, TOKENS, ROWS } taken_kind;
typedef struct taken {
    taken_kind kind;
    int8_t axis;
    int64_t start, end; /* of a range, as Slice has them */
    po_dim length;      /* of what is taken along its axis; K */
    po_node_id picks;   /* of tokens and rows: the Gather of rows, or GatherND of tokens */
} taken;

typedef struct taking {
    po_ctx *ctx;
    po_graph *graph;
    po_arena *arena;
    const po_graph *pinned; /* the same nodes and values; every dim a number */
    taken *of;              /* by value */
    taken *chosen;          /* by node: what it takes of its first input; NOTHING */
    bool *narrow;           /* by node: it makes no more than what is taken */
    int8_t **along;         /* by node that is narrow: axes of its inputs */
    po_value_id *made;      /* by value: a part of it, once it is there; PO_NONE */
    taken *part;            /* by value: which part that is */
    uint32_t n_values;      /* before anything was added */
} taking;

/* --- what is taken --- */

static bool single_int(const po_graph *g, po_value_id v, int64_t *value) {
    const po_tensor *t = v == PO_NONE ? NULL : po_graph_constant(g, v);
    if (!t || t->count != 1 || (t->dtype != PO_I64 && t->dtype != PO_I32))
        return false;
    *value = po_tensor_int(t, 0);
    return true;
}

/* Whether so many of the pinned graph's `whole` places are few enough that taking them costs next
 * to nothing. */
static bool are_few(int64_t some, int64_t whole) {
    return some > 0 && whole > 0 && 2 * some <= whole;
}

static bool is_float_rank(const po_graph *g, po_value_id v, int rank) {
    return po_rank_of(g, v) == rank && po_dtype_class_of(g->values[v].type.dtype) == PO_CLASS_FLOAT;
}

/* A Gather of rows, or GatherND of tokens, by an index that is known when the model runs. */
static bool picks(const taking *s, po_node_id id, taken *t) {
    const po_node *n = &s->graph->nodes[id];
    const po_graph *g = s->graph, *p = s->pinned;
    if ((n->op != PO_OP_Gather && n->op != PO_OP_GatherND) || n->n_in != 2 || n->n_out != 1 ||
        po_graph_constant(g, n->in[1]) || po_model_opset(g->model, "") < 13)
        return false;
    const bool rows = n->op == PO_OP_Gather;
    if (rows ? !is_float_rank(g, n->in[0], 2) || po_rank_of(g, n->in[1]) != 1 ||
                   po_op_int(g, n, "axis") != 0
             : !is_float_rank(g, n->in[0], 3) || po_rank_of(g, n->in[1]) != 2 ||
                   po_dim_of(g, n->in[1], 1) != 2 || po_node_int(n, "batch_dims", 0) != 0)
        return false;
    *t = (taken){.kind = rows ? ROWS : TOKENS, .picks = id};
    t->length = g->values[n->in[1]].type.dims[0];
    const int64_t first = po_dim_of(p, n->in[0], 0), second = rows ? 1 : po_dim_of(p, n->in[0], 1);
    return first > 0 && second > 0 && are_few(po_dim_of(p, n->in[1], 0), first * second);
}

/* A Gather of one place, or a Slice of one axis in steps of 1: the range that it takes. */
static bool selects(const taking *s, const po_node *n, taken *t) {
    const po_graph *g = s->graph;
    int64_t axis = 0, step = 1;
    *t = (taken){.kind = RANGE};
    if (n->op == PO_OP_Gather && n->n_in == 2) {
        if (!single_int(g, n->in[1], &t->start))
            return false;
        axis = po_op_int(g, n, "axis");
        t->end = t->start == -1 ? INT64_MAX : t->start + 1;
        t->length = PO_DIM(1);
    } else if (n->op == PO_OP_Slice && n->n_in >= 4) {
        if (!single_int(g, n->in[1], &t->start) || !single_int(g, n->in[2], &t->end) ||
            !single_int(g, n->in[3], &axis) ||
            (n->n_in > 4 && n->in[4] != PO_NONE && !single_int(g, n->in[4], &step)))
            return false;
    } else {
        return false;
    }
    const int rank = po_rank_of(g, n->in[0]);
    axis += axis < 0 ? rank : 0;
    if (step != 1 || axis < 0 || axis >= rank || axis > INT8_MAX)
        return false;
    int64_t some = 1;
    t->axis = (int8_t)axis;
    if (n->op == PO_OP_Slice) {
        t->length = g->values[n->out[0]].type.dims[axis];
        some = po_dim_of(s->pinned, n->out[0], (int)axis);
    }
    return are_few(some, po_dim_of(s->pinned, n->in[0], (int)axis));
}

static bool same_part(const taken *a, const taken *b) {
    return a->kind == b->kind && a->axis == b->axis && a->start == b->start && a->end == b->end &&
           a->picks == b->picks;
}

static void take(taking *s, po_value_id v, const taken *t) {
    taken *of = &s->of[v];
    if (of->kind == NOTHING)
        *of = *t;
    else if (!same_part(of, t))
        of->kind = ALL;
}

static void take_captured(taking *s, const po_graph *body) {
    for (po_value_id v = 0; v < body->n_values; v++)
        if (body->values[v].outer != PO_NONE)
            take(s, body->values[v].outer, &(taken){.kind = ALL});
}

static void take_bodies(taking *s, const po_node *n) {
    for (uint32_t k = 0; k < n->n_attr; k++) {
        const po_attr *a = &n->attr[k];
        if (a->kind == PO_ATTR_GRAPH && a->u.g)
            take_captured(s, a->u.g);
        for (uint32_t b = 0; a->kind == PO_ATTR_GRAPHS && b < a->n; b++)
            take_captured(s, a->u.graphs[b]);
    }
}

/* Whether the node makes rows of tokens, [N, T, C] as [N T, C]. */
static bool makes_rows(const taking *s, const po_node *n) {
    return (n->op == PO_OP_Flatten || n->op == PO_OP_Reshape) &&
           po_rank_of(s->graph, n->in[0]) == 3 && po_rank_of(s->graph, n->out[0]) == 2 &&
           po_dim_of(s->graph, n->in[0], 2) > 0 &&
           po_dim_of(s->graph, n->in[0], 2) == po_dim_of(s->graph, n->out[0], 1);
}

/* Whether the node, of tokens [N, T, C], keeps samples and tokens apart; by input whether it goes
 * along both (0), or neither (PO_WHOLE). */
static po_status keeps_tokens(const taking *s, po_node_id id, po_arena *scratch, int8_t *in) {
    const po_node *n = &s->graph->nodes[id], *pinned = &s->pinned->nodes[id];
    int8_t *second = PO_NEW_N(scratch, int8_t, n->n_in + 1);
    if (n->op == PO_OP_Reshape || !is_float_rank(s->graph, n->out[0], 3))
        return PO_UNSUPPORTED;
    PO_TRY(po_kept_along(s->ctx, scratch, s->pinned, pinned, 0, in));
    PO_TRY(po_kept_along(s->ctx, scratch, s->pinned, pinned, 1, second));
    if (!po_same_along(s->graph, n, 0, in) || !po_same_along(s->graph, n, 1, second))
        return PO_UNSUPPORTED;
    for (uint32_t k = 0; k < n->n_in; k++) {
        const bool whole = in[k] == PO_WHOLE && second[k] == PO_WHOLE;
        if (!whole && (in[k] != 0 || second[k] != 1 || !is_float_rank(s->graph, n->in[k], 3)))
            return PO_UNSUPPORTED;
    }
    return PO_OK;
}

static po_type narrow_type(const taking *s, po_value_id v, const taken *t) {
    const po_type *whole = &s->graph->values[v].type;
    po_type type = *whole;
    if (whole->has_rank) {
        po_dim *dims = po_arena_memdup(s->graph->arena, whole->dims, whole->rank * sizeof *dims);
        dims[t->axis] = t->length;
        if (t->kind == TOKENS)
            dims[1] = PO_DIM(1);
        type.dims = dims;
    }
    return type;
}

/* The shape that a Reshape gets whose input is narrow along an axis. */
static bool told_shape(const taking *s, const po_node *n, const taken *t, int8_t own,
                       int64_t *shape) {
    const po_type y = narrow_type(s, n->out[0], t);
    return po_told_shape(&s->graph->values[n->in[0]].type, &y, (uint32_t)own, shape);
}

/* Operators whose inputs say how long the output is, beside Reshape. */
static bool states_lengths(po_op_id op) {
    return op == PO_OP_Expand || op == PO_OP_Tile || op == PO_OP_Resize || op == PO_OP_Upsample ||
           op == PO_OP_ConstantOfShape || op == PO_OP_CenterCropPad;
}

/* Whether the node can make no more than what is taken of it; along which axes then. */
static po_status find_narrow(taking *s, po_node_id id, const taken *of, int8_t *in) {
    const po_node *n = &s->graph->nodes[id];
    int64_t shape[PO_MAX_RANK];
    po_arena *scratch = po_arena_child(s->arena);
    po_status status = of->kind == TOKENS
                           ? keeps_tokens(s, id, scratch, in)
                           : po_kept_along(s->ctx, scratch, s->pinned, &s->pinned->nodes[id],
                                           (uint32_t)of->axis, in);
    po_arena_free(scratch);
    if (status != PO_OK)
        return status == PO_UNSUPPORTED ? PO_OK : status;
    if (of->kind == RANGE && !po_same_along(s->graph, n, (uint32_t)of->axis, in))
        return PO_OK;
    s->narrow[id] = n->op != PO_OP_Reshape || (n->n_in == 2 && told_shape(s, n, of, in[0], shape));
    return PO_OK;
}

static po_status take_of_node(taking *s, po_node_id id) {
    const po_node *n = &s->graph->nodes[id];
    taken chosen, all = {.kind = ALL};
    take_bodies(s, n);
    if (n->n_out == 1 && (selects(s, n, &chosen) || picks(s, id, &chosen))) {
        s->chosen[id] = chosen;
        take(s, n->in[0], &chosen);
        for (uint32_t k = 1; k < n->n_in; k++)
            if (n->in[k] != PO_NONE)
                take(s, n->in[k], &all);
        return PO_OK;
    }
    const taken *of = n->n_out == 1 && n->out[0] != PO_NONE ? &s->of[n->out[0]] : &all;
    int8_t *in = PO_NEW_N(s->arena, int8_t, n->n_in + 1);
    if ((of->kind == RANGE || of->kind == TOKENS) && !states_lengths(n->op)) {
        PO_TRY(find_narrow(s, id, of, in));
        s->along[id] = in;
    }
    for (uint32_t k = 0; k < n->n_in; k++) {
        if (n->in[k] == PO_NONE)
            continue;
        taken part = all;
        if (s->narrow[id] && in[k] != PO_WHOLE) {
            part = *of;
            part.axis = in[k];
        } else if (of->kind == ROWS && k == 0 && makes_rows(s, n)) {
            part = *of; /* of tokens, then */
            part.kind = TOKENS;
        }
        take(s, n->in[k], &part);
    }
    return PO_OK;
}

/* --- the nodes made anew --- */

/* What is taken of a constant is a constant. */
static po_value_id constant_part(const taking *s, po_value_id v, const taken *t) {
    const po_tensor *c = po_graph_constant(s->graph, v);
    if (!c || c->dtype != PO_F32 || t->kind != RANGE)
        return PO_NONE;
    const int64_t whole = c->dims[t->axis];
    int64_t from = t->start < 0 ? t->start + whole : t->start;
    if (from < 0 || t->length.value < 1 || from + t->length.value > whole)
        return PO_NONE;
    po_arena *scratch = po_arena_child(s->arena);
    const po_recipe *r = po_recipe_doubles(s->graph, scratch, v);
    r = po_recipe_slice(scratch, r, (uint32_t)t->axis, from, from + t->length.value);
    po_value_id part = po_add_recipe(s->graph, NULL, c->dtype, r);
    po_arena_free(scratch);
    return part;
}

/* Tokens as the model picks them, [K, 1, C]. */
static po_value_id add_picked(const taking *s, po_node_id place, po_value_id v, const taken *t) {
    po_graph *g = s->graph;
    const po_node n = g->nodes[t->picks];
    const po_type type = narrow_type(s, v, t), unknown = po_type_unranked(type.dtype);
    po_value_id in[2] = {v, n.in[1]};
    if (n.op == PO_OP_Gather) {
        in[0] = po_add_op(g, place, PO_OP_Flatten, 1, &v, &unknown);
        po_node_set_int(g, g->values[in[0]].producer, "axis", 2);
    }
    const po_value_id rows = po_add_like(g, place, &n, 2, in, &unknown);
    const po_value_id axes[2] = {rows, po_add_i64s(g, NULL, 1, (const int64_t[]){1})};
    return po_add_op(g, place, PO_OP_Unsqueeze, 2, axes, &type);
}

/* The part of a value that a node at `place` reads. */
static po_value_id part_of(taking *s, po_node_id place, po_value_id v, const taken *t) {
    const bool old = v < s->n_values;
    if (old && s->made[v] != PO_NONE && same_part(&s->part[v], t))
        return s->made[v];
    po_value_id part = t->kind == TOKENS ? add_picked(s, place, v, t) : constant_part(s, v, t);
    if (part == PO_NONE) {
        const po_type type = narrow_type(s, v, t);
        const int64_t axis = t->axis;
        part = po_add_slice(s->graph, place, v, 1, &axis, &t->start, &t->end, NULL, &type);
    }
    if (old && s->made[v] == PO_NONE) {
        s->made[v] = part;
        s->part[v] = *t;
    }
    return part;
}

static void make_narrow(taking *s, po_node_id id) {
    po_graph *g = s->graph;
    const po_node n = g->nodes[id];
    const taken *of = &s->of[n.out[0]];
    const po_type type = narrow_type(s, n.out[0], of);
    po_value_id *in = po_arena_memdup(s->arena, n.in, n.n_in * sizeof *in);
    int64_t shape[PO_MAX_RANK];
    if (n.op == PO_OP_Reshape && told_shape(s, &n, of, s->along[id][0], shape))
        in[1] = po_add_i64s(g, NULL, type.rank, shape);
    for (uint32_t k = 0; k < n.n_in; k++) {
        if (n.in[k] == PO_NONE || s->along[id][k] == PO_WHOLE)
            continue;
        taken part = *of;
        part.axis = s->along[id][k];
        in[k] = part_of(s, id, n.in[k], &part);
    }
    s->made[n.out[0]] = po_add_like(g, id, &n, n.n_in, in, &type);
    s->part[n.out[0]] = *of;
    if (n.op == PO_OP_Reshape)
        po_node_remove_attr(g, g->values[s->made[n.out[0]]].producer, "allowzero");
}

/* What picked tokens, of a value that they are taken of already. */
static void use_tokens(const taking *s, po_node_id id, po_value_id part) {
    po_graph *g = s->graph;
    const po_value_id y = g->nodes[id].out[0];
    const po_type type = g->values[y].type;
    const po_value_id in[2] = {part, po_add_i64s(g, NULL, 1, (const int64_t[]){1})};
    po_substitute(g, y, po_add_op(g, id, PO_OP_Squeeze, 2, in, &type));
}

/* The node that took the part: a Slice is the part, a Gather drops its axis. */
static void use_part(const taking *s, po_node_id id, po_value_id part) {
    po_graph *g = s->graph;
    const po_node *n = &g->nodes[id];
    if (n->op == PO_OP_Slice) {
        po_substitute(g, n->out[0], part);
        return;
    }
    const po_tensor *index = po_graph_constant(g, n->in[1]);
    po_value_id zero = po_add_i64s(g, NULL, 1, (int64_t[]){0});
    if (index->rank == 0)
        zero = po_add_reshaped(g, zero, 0, NULL);
    po_graph_set_input(g, id, 0, part);
    po_graph_set_input(g, id, 1, zero);
}

/* Whether taking less saves more than moves. */
static bool saves_work(const taking *s, uint32_t n, const po_node_id *order) {
    for (uint32_t i = 0; i < n; i++)
        if (s->narrow[order[i]] &&
            !po_op_has(s->graph->nodes[order[i]].op, PO_OPF_SHAPE_ONLY | PO_OPF_MOVES_DATA))
            return true;
    return false;
}

static po_status find_taken(taking *s, uint32_t n, const po_node_id *order) {
    const po_graph *g = s->graph;
    for (uint32_t i = 0; i < g->n_outputs; i++)
        take(s, g->outputs[i], &(taken){.kind = ALL});
    for (uint32_t i = n; i-- > 0;)
        PO_TRY(take_of_node(s, order[i]));
    return PO_OK;
}

/* Where a part of what the node takes from is there, it takes that. */
static bool take_part(taking *s, po_node_id id) {
    /* As it was: what it read may have been replaced. */
    po_value_id v = s->pinned->nodes[id].in[0];
    taken t = s->chosen[id];
    if (t.kind == ROWS) {
        const po_node *rows = po_graph_producer(s->pinned, v);
        if (!rows || !makes_rows(s, rows))
            return false;
        v = rows->in[0];
        t.kind = TOKENS;
    }
    if (s->made[v] == PO_NONE || !same_part(&s->part[v], &t))
        return false;
    if (t.kind == TOKENS)
        use_tokens(s, id, s->made[v]);
    else
        use_part(s, id, s->made[v]);
    return true;
}

static uint32_t rewrite(taking *s, uint32_t n, const po_node_id *order) {
    uint32_t used = 0;
    for (uint32_t i = 0; i < n; i++)
        if (s->narrow[order[i]])
            make_narrow(s, order[i]);
        else if (s->chosen[order[i]].kind != NOTHING)
            used += take_part(s, order[i]);
    return used;
}

/* Whether the node takes something of floats that nodes make and nothing but such nodes read. */
static bool may_select(const po_graph *g, const po_node *n) {
    static const po_op_id ops[] = {PO_OP_Gather, PO_OP_Slice, PO_OP_GatherND};
    const po_value *v = n->n_in > 1 && n->in[0] != PO_NONE ? &g->values[n->in[0]] : NULL;
    if (!v || v->producer == PO_NONE || v->n_outputs > 0 ||
        po_dtype_class_of(v->type.dtype) != PO_CLASS_FLOAT)
        return false;
    uint32_t selecting = 0;
    for (uint32_t u = 0; u < v->n_uses; u++)
        for (size_t k = 0; k < sizeof ops / sizeof *ops; k++)
            selecting += g->nodes[v->uses[u].node].op == ops[k];
    bool is = false;
    for (size_t k = 0; k < sizeof ops / sizeof *ops; k++)
        is |= n->op == ops[k];
    return is && selecting == v->n_uses;
}

po_status po_take_less(po_ctx *ctx, po_graph *graph, po_rewriting *state) {
    uint32_t n;
    if (graph->parent || po_model_opset(graph->model, "") < 10)
        return PO_OK;
    const po_node_id *order = po_graph_order(graph, state->scratch, &n);
    taking s = {.ctx = ctx, .graph = graph, .arena = state->scratch, .n_values = graph->n_values};
    bool any = false;
    for (uint32_t i = 0; i < n && !any; i++)
        any = may_select(graph, &graph->nodes[order[i]]);
    if (!any)
        return PO_OK;
    po_graph *pinned = po_with_numbers(ctx, graph);
    s.pinned = pinned;
    s.of = PO_NEW_N(s.arena, taken, graph->n_values);
    s.part = PO_NEW_N(s.arena, taken, graph->n_values);
    s.chosen = PO_NEW_N(s.arena, taken, graph->n_nodes);
    s.narrow = PO_NEW_N(s.arena, bool, graph->n_nodes);
    s.along = PO_NEW_N(s.arena, int8_t *, graph->n_nodes);
    s.made = PO_NEW_N(s.arena, po_value_id, graph->n_values);
    memset(s.made, 0xff, graph->n_values * sizeof *s.made); /* PO_NONE */
    po_status status = find_taken(&s, n, order);
    if (status == PO_OK && saves_work(&s, n, order))
        state->counts->fired[PO_LAW_TAKE_LESS] += rewrite(&s, n, order);
    po_graph_free(pinned);
    return status;
}

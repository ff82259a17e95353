/* Rows of tables: a product of one-hot rows by a table takes rows of it, and what acts on each
 * element of rows taken from a table may act on the table instead.
 *
 * OneHot marks nothing for an index outside [-depth, depth): the table gets a row of zeros on
 * either side, and its rows twice, for indices from the end; indices are clipped to one beyond.
 * Functions move past Gather for tables no larger than what is taken. */
#include "ops/recipe/recipe.h"
#include "rewrite/passes.h"

enum { CLIP_SINCE = 12 }; /* of integers; OneHot counts from the end since 11 */

/* OneHot over a new last axis, of ones among zeros. */
static bool read_one_hot(const po_graph *g, const po_node *n, int64_t *depth) {
    const po_type *t = n->in[0] == PO_NONE ? NULL : &g->values[n->in[0]].type;
    const po_tensor *d = po_graph_constant(g, n->in[1]), *v = po_graph_constant(g, n->in[2]);
    int64_t axis = po_node_int(n, "axis", -1);
    if (!t || t->kind != PO_TYPE_TENSOR || t->dtype != PO_I64 || !t->has_rank || t->rank == 0 ||
        !d || d->count != 1 || !v || v->count != 2 || po_tensor_f64(v, 0) != 0 ||
        po_tensor_f64(v, 1) != 1 || (axis != -1 && axis != (int64_t)t->rank))
        return false;
    *depth = po_tensor_int(d, 0);
    return *depth > 0;
}

static po_value_id add_clip(po_graph *g, po_node_id at, po_value_id x, int64_t low, int64_t high) {
    po_type type = g->values[x].type;
    po_tensor *bounds[2];
    po_value_id in[3] = {x};
    for (int i = 0; i < 2; i++) {
        int64_t bound = i ? high : low;
        bounds[i] =
            po_arena_memdup(g->arena, po_tensor_i64(g->arena, 1, &bound), sizeof(po_tensor));
        bounds[i]->rank = 0;
        in[1 + i] = po_graph_add_constant(g, NULL, bounds[i]);
    }
    return po_add_op(g, at, PO_OP_Clip, 3, in, &type);
}

static po_value_id add_gather(po_graph *g, po_node_id at, po_value_id table, po_value_id indices,
                              const po_type *type) {
    return po_add_op(g, at, PO_OP_Gather, 2, (po_value_id[]){table, indices}, type);
}

bool po_rows_of_table(po_rewriting *r, po_graph *g, po_node_id id) {
    po_arena *arena = r->scratch;
    const po_node *n = &g->nodes[id];
    if (n->op != PO_OP_MatMul || po_model_opset(g->model, "") < CLIP_SINCE)
        return false;
    const po_node *hot = po_made_by(g, n->in[0], PO_OP_OneHot);
    const po_tensor *t = po_graph_constant(g, n->in[1]);
    int64_t depth;
    if (!hot || !t || t->rank != 2 || (t->dtype != PO_F32 && t->dtype != PO_F64) ||
        !read_one_hot(g, hot, &depth) || depth != t->dims[0])
        return false;
    po_value_id indices = hot->in[0], y = n->out[0];
    const po_recipe *rows = po_recipe_doubles(g, arena, n->in[1]);
    const po_recipe *none = po_recipe_fill(arena, 2, (int64_t[]){1, t->dims[1]}, 0);
    const po_recipe *parts[] = {none, rows, rows, none};
    po_value_id table = po_add_recipe(g, NULL, t->dtype, po_recipe_concat(arena, 0, 4, parts));
    if (table == PO_NONE)
        return false;
    po_type type = g->values[indices].type, made = g->values[y].type;
    po_value_id at = add_clip(g, id, indices, -depth - 1, depth);
    po_value_id shift = po_add_i64s(g, NULL, 1, (int64_t[]){depth + 1});
    at = po_add_op(g, id, PO_OP_Add, 2, (po_value_id[]){at, shift}, &type);
    po_substitute(g, y, add_gather(g, id, table, at, &made));
    return true;
}

/* Rows of a constant table of rank 2. */
static const po_node *rows_of_table(const po_graph *g, po_value_id v) {
    const po_node *n = po_made_by(g, v, PO_OP_Gather);
    const po_tensor *t = n ? po_graph_constant(g, n->in[0]) : NULL;
    return t && t->rank == 2 && po_node_int(n, "axis", 0) == 0 && !po_graph_constant(g, n->in[1])
               ? n
               : NULL;
}

/* The same for every row: one number, or one for each column. */
static bool for_every_row(const po_tensor *t, int64_t columns) {
    return t && (t->count == 1 ? t->rank <= 1 : t->rank == 1 && t->dims[0] == columns);
}

bool po_function_of_table(po_rewriting *r, po_graph *g, po_node_id id) {
    po_arena *arena = r->scratch;
    enum { MOST = 3 };
    const po_node *n = &g->nodes[id], *first = NULL;
    if (po_model_opset(g->model, "") < CLIP_SINCE || !po_op_has(n->op, PO_OPF_ELEMENTWISE) ||
        po_op_has(n->op, PO_OPF_RANDOM) || n->n_out != 1 || n->n_in < 1 || n->n_in > MOST ||
        !po_rearrangeable(g, n->out[0]))
        return false;
    const po_recipe *in[MOST];
    const po_tensor *t = NULL;
    for (uint32_t k = 0; k < n->n_in; k++) {
        const po_node *rows = rows_of_table(g, n->in[k]);
        if (!rows)
            continue;
        const po_tensor *table = po_graph_constant(g, rows->in[0]);
        if (first && (rows->in[1] != first->in[1] || memcmp(table->dims, t->dims, 16) != 0))
            return false;
        first = rows;
        t = table;
    }
    po_type made = g->values[n->out[0]].type;
    if (!t || t->dtype != made.dtype || po_type_count(&made) < t->count)
        return false;
    for (uint32_t k = 0; k < n->n_in; k++) {
        const po_node *rows = rows_of_table(g, n->in[k]);
        const po_tensor *c = rows ? NULL : po_graph_constant(g, n->in[k]);
        if (!rows && (!for_every_row(c, t->dims[1]) || c->dtype != t->dtype))
            return false;
        in[k] = po_recipe_doubles(g, arena, rows ? rows->in[0] : n->in[k]);
    }
    po_value_id table = po_add_recipe(g, NULL, t->dtype,
                                      po_recipe_op(arena, &(po_recipe_spec){.op = n->op,
                                                                            .n_in = n->n_in,
                                                                            .n_attr = n->n_attr,
                                                                            .in = in,
                                                                            .attr = n->attr,
                                                                            .dtype = PO_F64,
                                                                            .rank = 2,
                                                                            .dims = t->dims}));
    if (table == PO_NONE)
        return false;
    po_substitute(g, n->out[0], add_gather(g, id, table, first->in[1], &made));
    return true;
}

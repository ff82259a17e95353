/* Cubic interpolation as products.
 *
 * ONNX Runtime 1.31 takes 70 ns for each element that it interpolates so, since it makes each by
 * itself of 16. Along each axis it is a product by a table, which its indexed sum holds: 2 to 5 ns
 * in all, dense as the tables are. Where maps are so large that their zeros would cost more, it
 * stays. */
#include "base/num.h"
#include "ops/recipe/recipe.h"
#include "ops/sem/sem.h"
#include "ops/sum/tables.h"
#include "rewrite/passes.h"

#include <math.h>

/* For the last two axes at most. */
static bool read_tables(const po_sum *sum, po_sum_tables *t) {
    if (!po_sum_tables_of(sum, t) || t->rank < 2)
        return false;
    for (uint32_t x = 0; x + 2 < t->rank; x++)
        if (t->of[x])
            return false;
    return t->of[t->rank - 1] || t->of[t->rank - 2];
}

/* Fractions as quotients of whole numbers: exact, and so are those of the proof. */
static po_value_id add_table(po_graph *g, po_arena *arena, po_dtype dtype, const po_operand *op,
                             bool turned) {
    double *num = PO_NEW_N(arena, double, op->count), *den = PO_NEW_N(arena, double, op->count);
    for (int64_t i = 0; i < op->count; i++) {
        num[i] = (double)op->table[i].num;
        den[i] = (double)op->table[i].den;
    }
    const po_recipe *r = po_recipe_div(arena, po_recipe_literal(arena, 2, op->dims, num),
                                       po_recipe_literal(arena, 2, op->dims, den));
    if (turned)
        r = po_recipe_transpose(arena, r, (const uint32_t[]){1, 0});
    return po_add_recipe(g, NULL, dtype, r);
}

/* Operations of one axis after the other for each element that is made. */
static double work(const po_operand *first, const po_operand *second) {
    const double in = first ? (double)first->dims[1] : 0;
    if (!second)
        return 2 * in;
    return 2 * in * (double)second->dims[1] / (double)second->dims[0] + 2 * (double)second->dims[1];
}

bool po_cubic_as_products(po_rewriting *r, po_graph *graph, po_node_id id) {
    po_arena *arena = r->scratch;
    const po_node *n = &graph->nodes[id];
    po_sum_tables t;
    po_sum *sum = NULL;
    if ((!(r->options->algebra & PO_ALGEBRA_UPSAMPLE) && !r->options->cubic) ||
        n->op != PO_OP_Resize || !po_node_string_is(n, "mode", "cubic", "nearest") ||
        !po_rearrangeable(graph, n->in[0]) || po_model_opset(graph->model, "") < 9 ||
        po_sem_of(r->ctx, arena, graph, n, &sum) != PO_OK || !sum || !read_tables(sum, &t))
        return false;
    const po_operand *rows = t.of[t.rank - 2], *columns = t.of[t.rank - 1];
    const double across = columns ? work(columns, rows) : work(rows, NULL);
    const double down = rows ? work(rows, columns) : work(columns, NULL);
    if (fmin(across, down) > po_numbers.cubic)
        return false;
    const po_dtype dtype = graph->values[n->in[0]].type.dtype;
    const po_type type = graph->values[n->out[0]].type;
    po_type between = po_type_unranked(dtype);
    po_value_id x = n->in[0], y = n->out[0];
    for (int step = 0; step < 2; step++) {
        const bool by_columns = (step == 0) == (across <= down);
        const po_operand *op = by_columns ? columns : rows;
        if (!op)
            continue;
        po_value_id table = add_table(graph, arena, dtype, op, by_columns);
        if (table == PO_NONE)
            return false;
        po_value_id in[2] = {by_columns ? x : table, by_columns ? table : x};
        x = po_add_op(graph, id, PO_OP_MatMul, 2, in, &between);
    }
    graph->values[x].type = type;
    po_substitute(graph, y, x);
    return true;
}

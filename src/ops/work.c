/* The figures of a node's indexed sum, whatever its element types are. */
#include "ops/work.h"

#include "ops/sem/sem.h"

#include <math.h>

/* Types of the node's operands and result. Numbers of every kind are counted alike, and only floats
 * have sums: the work of a product of integers is that of the same floats. */
static bool as_floats(po_arena *arena, const po_graph *g, uint32_t n, const po_value_id *values,
                      const po_type **types) {
    for (uint32_t i = 0; i < n; i++) {
        types[i] = NULL;
        if (values[i] == PO_NONE)
            continue;
        const po_type *type = &g->values[values[i]].type;
        if (type->kind != PO_TYPE_TENSOR || po_type_count(type) < 0)
            return false;
        po_type *copy = po_arena_memdup(arena, type, sizeof *type);
        copy->dtype = PO_F32;
        types[i] = copy;
    }
    return true;
}

static po_status sum_of(po_arena *arena, const po_graph *g, const po_node *node, po_sum **sums) {
    const po_type **in = PO_NEW_N(arena, const po_type *, node->n_in);
    const po_type **out = PO_NEW_N(arena, const po_type *, node->n_out);
    const po_tensor **constant = PO_NEW_N(arena, const po_tensor *, node->n_in);
    for (uint32_t i = 0; i < node->n_in; i++)
        constant[i] = node->in[i] == PO_NONE ? NULL : po_graph_constant(g, node->in[i]);
    if (!as_floats(arena, g, node->n_in, node->in, in) ||
        !as_floats(arena, g, node->n_out, node->out, out))
        return PO_UNSUPPORTED;
    return po_sem_node(NULL, arena, g, node, in, constant, out, sums);
}

static double count_of(const po_graph *g, po_value_id v) {
    const po_type *type = v == PO_NONE ? NULL : &g->values[v].type;
    return type && type->kind == PO_TYPE_TENSOR ? (double)po_type_count(type) : -1;
}

/* Of matrices m by k and k by n, (m k) (k n) (m n) is the square of what is multiplied. */
static bool by_counts(const po_graph *g, const po_node *node, po_work *work) {
    double a = count_of(g, node->in[0]), b = count_of(g, node->in[1]);
    double y = count_of(g, node->out[0]);
    if (a < 0 || b < 0 || y < 0)
        return false;
    *work = (po_work){.flops = 2 * sqrt(a) * sqrt(b) * sqrt(y)};
    return true;
}

bool po_work_of(const po_graph *graph, const po_node *node, po_work *work) {
    po_node plain = *node;
    po_value_id in[2];
    uint32_t second;
    const bool products = po_op_has(node->op, PO_OPF_PRODUCTS);
    if (!po_op_has(node->op, PO_OPF_SUMS | PO_OPF_PRODUCTS) || node->n_out < 1 ||
        node->out[0] == PO_NONE)
        return false;
    if (po_float_product(node, &plain, &second) && second < node->n_in) {
        in[0] = node->in[0];
        in[1] = node->in[second];
        plain.in = in;
    }
    po_arena *arena = po_arena_child(graph->arena);
    po_sum **sums = PO_NEW_N(arena, po_sum *, plain.n_out);
    bool known = sum_of(arena, graph, &plain, sums) == PO_OK && sums[0];
    if (known) {
        *work = (po_work){.flops = po_sum_work(sums[0])};
        work->product = products && po_sum_product_shape(sums[0], &work->shape);
    }
    po_arena_free(arena);
    return known || (products && plain.n_in > 1 && by_counts(graph, &plain, work));
}

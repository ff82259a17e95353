/* Which nodes are multilinear, and which of their constants are weights. */
#include "ops/conv_view.h"
#include "ops/rewrite.h"
#include "ops/sem/sem.h"
#include "split/parts.h"

enum { MOST_INPUTS = 64 };

static bool usable(const po_type *type) {
    return type->kind == PO_TYPE_TENSOR && po_type_count(type) > 0;
}

static bool is_float(const po_type *type) {
    return type->dtype == PO_F32 || type->dtype == PO_F64;
}

/* What goes in and comes out: static, floats of one type; integers only as constants. */
static bool types_fit(const po_graph *graph, const po_node *node) {
    po_dtype dtype = PO_DT_NONE;
    bool reads = false;
    for (uint32_t i = 0; i < node->n_out; i++) {
        if (node->out[i] == PO_NONE)
            continue;
        const po_type *type = &graph->values[node->out[i]].type;
        if (!usable(type) || !is_float(type) || (dtype && dtype != type->dtype))
            return false;
        dtype = type->dtype;
    }
    for (uint32_t i = 0; i < node->n_in; i++) {
        if (node->in[i] == PO_NONE)
            continue;
        const po_type *type = &graph->values[node->in[i]].type;
        bool constant = po_graph_constant(graph, node->in[i]) != NULL;
        if (!usable(type) || (is_float(type) && type->dtype != dtype) ||
            (!constant && !is_float(type)))
            return false;
        reads |= !constant;
    }
    return dtype && reads && node->n_in <= MOST_INPUTS;
}

static po_status sums_without(po_ctx *ctx, po_arena *arena, const po_graph *graph,
                              const po_node *node, uint32_t without, po_sum **sums) {
    const po_type *in[MOST_INPUTS] = {0}, **out = PO_NEW_N(arena, const po_type *, node->n_out);
    const po_tensor *constant[MOST_INPUTS] = {0};
    for (uint32_t i = 0; i < node->n_in; i++)
        if (node->in[i] != PO_NONE) {
            in[i] = &graph->values[node->in[i]].type;
            constant[i] = i == without ? NULL : po_graph_constant(graph, node->in[i]);
        }
    for (uint32_t i = 0; i < node->n_out; i++)
        if (node->out[i] != PO_NONE)
            out[i] = &graph->values[node->out[i]].type;
    return po_sem_node(ctx, arena, graph, node, in, constant, out, sums);
}

/* A product of two operands, at least, that is summed over a variable that the output lacks. */
static bool computes(const po_sum *sum) {
    for (uint32_t t = 0; t < sum->n_terms; t++) {
        const po_term *term = &sum->terms[t];
        uint32_t operands = 0;
        for (uint32_t f = 0; f < term->n_factors; f++)
            operands += sum->operands[term->factor[f].operand].kind != PO_OPERAND_TABLE;
        if (operands < 2)
            continue;
        for (uint32_t v = 0; v < term->n_vars; v++) {
            bool in_output = term->extent[v] == 1;
            for (uint32_t x = 0; x < term->out.rank; x++)
                in_output |= po_index_coef(term, &term->out, x, v) != 0;
            if (!in_output)
                return true;
        }
    }
    return false;
}

po_status po_split_kind_of(po_ctx *ctx, po_arena *arena, const po_graph *graph, const po_node *node,
                           po_split_kind *kind) {
    *kind = PO_SPLIT_OTHER;
    if (node->removed || !po_op_has(node->op, PO_OPF_LINEAR) || !types_fit(graph, node))
        return PO_OK;
    po_sum **sums = PO_NEW_N(arena, po_sum *, node->n_out);
    po_status status = sums_without(ctx, arena, graph, node, PO_NONE, sums);
    if (status == PO_UNSUPPORTED)
        return PO_OK;
    PO_TRY(status);
    bool compute = po_conv_is_either(node);
    for (uint32_t k = 0; k < node->n_out; k++) {
        if (node->out[k] == PO_NONE)
            continue;
        if (!sums[k])
            return PO_OK;
        for (uint32_t o = 0; o < sums[k]->n_operands; o++) {
            const po_operand *op = &sums[k]->operands[o];
            bool atom = op->kind == PO_OPERAND_RECIPROCAL || op->kind == PO_OPERAND_RSQRT;
            if (atom && !po_graph_constant(graph, node->in[op->input]))
                return PO_OK;
        }
        compute |= computes(sums[k]);
    }
    *kind = compute ? PO_SPLIT_COMPUTE : PO_SPLIT_LINEAR;
    return PO_OK;
}

po_status po_split_is_weight(po_ctx *ctx, po_arena *arena, const po_graph *graph,
                             const po_node *node, uint32_t input, bool *weight) {
    *weight = false;
    if (!is_float(&graph->values[node->in[input]].type))
        return PO_OK;
    po_sum **with = PO_NEW_N(arena, po_sum *, node->n_out);
    po_sum **without = PO_NEW_N(arena, po_sum *, node->n_out);
    PO_TRY(sums_without(ctx, arena, graph, node, PO_NONE, with));
    po_status status = sums_without(ctx, arena, graph, node, input, without);
    if (status == PO_UNSUPPORTED)
        return PO_OK;
    PO_TRY(status);
    *weight = true;
    for (uint32_t k = 0; k < node->n_out && *weight; k++)
        if (with[k] || without[k])
            *weight = with[k] && without[k] && po_sum_equal(with[k], without[k]);
    return PO_OK;
}

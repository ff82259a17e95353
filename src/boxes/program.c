/* Makes a program of a graph: the steps, the residues of constants that steps read, and the degree
 * of every value, by which chance agreement is bounded. Also the cuts of all values. */
#include "boxes/program.h"

#include "base/modp.h"
#include "ops/sem/sem.h"

/* --- constants --- */

static const uint32_t *residues_of(po_arena *arena, const po_tensor *t) {
    uint32_t *r = PO_NEW_N(arena, uint32_t, t->count ? t->count : 1);
    bool floats = po_dtype_class_of(t->dtype) == PO_CLASS_FLOAT;
    double last = 0;
    uint32_t residue = 0;
    for (int64_t i = 0; i < t->count; i++) {
        if (floats) {
            double v = po_tensor_f64(t, i);
            if (memcmp(&v, &last, sizeof v) != 0)
                residue = po_program_constant(v, t->dtype);
            last = v;
            r[i] = residue;
        } else {
            r[i] = po_mod_i64(po_tensor_int(t, i));
        }
    }
    return r;
}

/* --- from a graph --- */

typedef struct maker {
    po_ctx *ctx;
    po_arena *arena;
    const po_graph *graph;
    uint32_t *value; /* by the graph's values: the program's, or PO_NONE */
    po_tensor_shape *shapes;
    uint32_t *degree; /* by the program's values */
    uint32_t n_values, cap_values, cap_degree, n_degree;
    const uint32_t **constants;
    uint32_t n_constants, cap_constants;
    po_program_step *steps;
    uint32_t n_steps, cap_steps;
} maker;

static po_status shape_of(maker *m, po_value_id id, po_tensor_shape *shape) {
    const po_value *v = &m->graph->values[id];
    if (v->type.kind != PO_TYPE_TENSOR || !v->type.has_rank || po_type_count(&v->type) < 0)
        return po_fail(m->ctx, PO_UNSUPPORTED, "tensor '%s': its shape is not static",
                       po_graph_value_name(m->graph, id));
    int64_t *dims = PO_NEW_N(m->arena, int64_t, v->type.rank);
    for (uint32_t i = 0; i < v->type.rank; i++)
        dims[i] = v->type.dims[i].value;
    *shape = (po_tensor_shape){v->type.rank, dims, po_type_count(&v->type)};
    return PO_OK;
}

static po_status add_value(maker *m, po_value_id id, uint32_t degree) {
    po_tensor_shape shape;
    PO_TRY(shape_of(m, id, &shape));
    m->value[id] = m->n_values;
    PO_PUSH(m->arena, m->shapes, m->n_values, m->cap_values, shape);
    PO_PUSH(m->arena, m->degree, m->n_degree, m->cap_degree, degree);
    return PO_OK;
}

static uint32_t add_degree(uint32_t a, uint32_t b) {
    return a > UINT32_MAX - b ? UINT32_MAX : a + b;
}

static const char *name_of(const maker *m, const po_node *node) {
    if (*node->name)
        return node->name;
    for (uint32_t i = 0; i < node->n_out; i++)
        if (node->out[i] != PO_NONE)
            return po_graph_value_name(m->graph, node->out[i]);
    return node->op_type;
}

/* The largest degree of a term: an atom counts as a variable, or as its argument if that has a
 * larger one. */
static uint32_t degree_of(const maker *m, const po_sum *sum, const uint32_t *in) {
    uint32_t most = 0;
    for (uint32_t i = 0; i < sum->n_terms; i++) {
        uint32_t degree = 0;
        for (uint32_t k = 0; k < sum->terms[i].n_factors; k++) {
            const po_operand *op = &sum->operands[sum->terms[i].factor[k].operand];
            if (op->kind != PO_OPERAND_TABLE)
                degree = add_degree(degree, m->degree[in[op->input]]);
        }
        most = degree > most ? degree : most;
    }
    return most;
}

static bool reads(const po_sum *sum, uint32_t input) {
    for (uint32_t i = 0; i < sum->n_operands; i++)
        if (sum->operands[i].kind != PO_OPERAND_TABLE && sum->operands[i].input == input)
            return true;
    return false;
}

/* Constants that any of the node's sums reads become values. They come before every step's value,
 * so this is a pass of its own. */
static po_status add_constants(maker *m, const po_node *node, po_sum *const *sums) {
    for (uint32_t k = 0; k < node->n_in; k++) {
        po_value_id id = node->in[k];
        const po_tensor *t = id == PO_NONE ? NULL : po_graph_constant(m->graph, id);
        if (!t || m->value[id] != PO_NONE)
            continue;
        bool read = false;
        for (uint32_t i = 0; i < node->n_out; i++)
            read |= sums[i] && reads(sums[i], k);
        if (!read)
            continue;
        if (po_dtype_class_of(t->dtype) == PO_CLASS_NONE)
            return po_fail(m->ctx, PO_UNSUPPORTED, "tensor '%s': constants of type %s",
                           po_graph_value_name(m->graph, id), po_dtype_name(t->dtype));
        PO_TRY(add_value(m, id, 1));
        const uint32_t *residues = residues_of(m->arena, t);
        PO_PUSH(m->arena, m->constants, m->n_constants, m->cap_constants, residues);
    }
    return PO_OK;
}

static bool is_constant_node(const po_graph *graph, const po_node *node) {
    for (uint32_t i = 0; i < node->n_out; i++)
        if (node->out[i] != PO_NONE && !po_graph_constant(graph, node->out[i]))
            return false;
    return true;
}

static po_status sums_of(maker *m, const po_node *node, po_sum **sums) {
    po_status status = po_sem_of(m->ctx, m->arena, m->graph, node, sums);
    for (uint32_t i = 0; i < node->n_out && status == PO_OK; i++)
        if (node->out[i] != PO_NONE)
            status = sums[i] ? po_sum_normalize(sums[i]) : PO_UNSUPPORTED;
    if (status == PO_UNSUPPORTED)
        return po_fail(m->ctx, PO_UNSUPPORTED, "node '%s': %s has no indexed sum", name_of(m, node),
                       node->op_type);
    return status;
}

static po_status add_steps(maker *m, const po_node *node, po_sum *const *sums) {
    uint32_t *in = PO_NEW_N(m->arena, uint32_t, node->n_in);
    for (uint32_t k = 0; k < node->n_in; k++)
        in[k] = node->in[k] == PO_NONE ? PO_NONE : m->value[node->in[k]];
    for (uint32_t i = 0; i < node->n_out; i++) {
        if (node->out[i] == PO_NONE)
            continue;
        for (uint32_t k = 0; k < node->n_in; k++)
            if (in[k] == PO_NONE && reads(sums[i], k))
                return po_fail(m->ctx, PO_UNSUPPORTED, "node '%s': input %u is made elsewhere",
                               name_of(m, node), k);
        PO_TRY(add_value(m, node->out[i], degree_of(m, sums[i], in)));
        po_program_step step = {sums[i], in, node->n_in, m->n_values - 1, name_of(m, node)};
        PO_PUSH(m->arena, m->steps, m->n_steps, m->cap_steps, step);
    }
    return PO_OK;
}

po_status po_program_of(po_ctx *ctx, po_arena *arena, const po_graph *graph,
                        const po_program **program) {
    maker m = {.ctx = ctx, .arena = arena, .graph = graph};
    m.value = PO_NEW_N(arena, uint32_t, graph->n_values);
    for (uint32_t i = 0; i < graph->n_values; i++)
        m.value[i] = PO_NONE;
    for (uint32_t i = 0; i < graph->n_inputs; i++)
        PO_TRY(add_value(&m, graph->inputs[i], 1));
    uint32_t n_nodes, *outputs = PO_NEW_N(arena, uint32_t, graph->n_outputs);
    const po_node_id *order = po_graph_order(graph, arena, &n_nodes);
    po_sum ***sums = PO_NEW_N(arena, po_sum **, n_nodes);
    for (uint32_t i = 0; i < n_nodes; i++) {
        const po_node *node = &graph->nodes[order[i]];
        if (is_constant_node(graph, node))
            continue;
        sums[i] = PO_NEW_N(arena, po_sum *, node->n_out);
        PO_TRY(sums_of(&m, node, sums[i]));
        PO_TRY(add_constants(&m, node, sums[i]));
    }
    for (uint32_t i = 0; i < graph->n_outputs; i++) {
        const po_tensor *t = po_graph_constant(graph, graph->outputs[i]);
        if (!t || m.value[graph->outputs[i]] != PO_NONE)
            continue;
        if (po_dtype_class_of(t->dtype) == PO_CLASS_NONE)
            return po_fail(ctx, PO_UNSUPPORTED, "tensor '%s': constants of type %s",
                           po_graph_value_name(graph, graph->outputs[i]), po_dtype_name(t->dtype));
        PO_TRY(add_value(&m, graph->outputs[i], 1));
        const uint32_t *residues = residues_of(arena, t);
        PO_PUSH(arena, m.constants, m.n_constants, m.cap_constants, residues);
    }
    for (uint32_t i = 0; i < n_nodes; i++)
        if (sums[i])
            PO_TRY(add_steps(&m, &graph->nodes[order[i]], sums[i]));
    po_program *p = PO_NEW(arena, po_program);
    for (uint32_t i = 0; i < graph->n_outputs; i++) {
        outputs[i] = m.value[graph->outputs[i]];
        if (outputs[i] == PO_NONE)
            return po_fail(ctx, PO_UNSUPPORTED, "output '%s' is made elsewhere",
                           po_graph_value_name(graph, graph->outputs[i]));
        p->degree = m.degree[outputs[i]] > p->degree ? m.degree[outputs[i]] : p->degree;
    }
    p->values = m.shapes;
    p->n_values = m.n_values;
    p->n_inputs = graph->n_inputs;
    p->n_constants = m.n_constants;
    p->constants = m.constants;
    p->steps = m.steps;
    p->n_steps = m.n_steps;
    p->outputs = outputs;
    p->n_outputs = graph->n_outputs;
    *program = p;
    return PO_OK;
}

/* --- cuts --- */

static bool uniform(const uint32_t *residues, int64_t n) {
    for (int64_t i = 1; i < n; i++)
        if (residues[i] != residues[0])
            return false;
    return true;
}

const po_cuts *const *po_program_cuts_all(po_arena *arena, const po_program *program) {
    const po_cuts **cuts = PO_NEW_N(arena, const po_cuts *, program->n_values);
    for (uint32_t i = 0; i < program->n_constants; i++) {
        const po_tensor_shape *shape = &program->values[program->n_inputs + i];
        /* Known numbers differ from place to place as a table's do. */
        if (!uniform(program->constants[i], shape->count))
            cuts[program->n_inputs + i] = po_cuts_everywhere(arena, shape->rank, shape->dims);
    }
    for (uint32_t i = 0; i < program->n_steps; i++) {
        const po_program_step *step = &program->steps[i];
        const po_cuts **in = PO_NEW_N(arena, const po_cuts *, step->n_in);
        for (uint32_t k = 0; k < step->n_in; k++)
            in[k] = step->in[k] == PO_NONE ? NULL : cuts[step->in[k]];
        cuts[step->out] = po_cuts_of(arena, step->sum, in);
    }
    for (uint32_t i = 0; i < program->n_values; i++) {
        const po_tensor_shape *shape = &program->values[i];
        if (cuts[i])
            continue;
        po_cuts *whole = PO_NEW(arena, po_cuts);
        po_axis_cuts *axes = PO_NEW_N(arena, po_axis_cuts, shape->rank);
        for (uint32_t x = 0; x < shape->rank; x++) {
            int64_t *at = PO_NEW_N(arena, int64_t, 2);
            at[1] = shape->dims[x];
            axes[x] = (po_axis_cuts){shape->dims[x], 1, 1, at};
        }
        *whole = (po_cuts){shape->rank, axes};
        cuts[i] = whole;
    }
    return cuts;
}

const po_cuts *po_program_cuts(po_arena *arena, const po_program *program, uint32_t output) {
    return po_program_cuts_all(arena, program)[program->outputs[output]];
}

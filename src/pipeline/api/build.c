/* The builder of petopt.h: a graph and the model around it, made under one context. */
#include "ir/text.h"
#include "ops/op.h"
#include "pipeline/api/api.h"

#include <stdlib.h>

enum { OPSET_MIN = 7, OPSET_MAX = 26 };

struct po_builder {
    po_ctx ctx; /* holds the first failure, and the arenas until the model is finished */
    po_arena *arena;
    po_model *model;
    po_graph *graph;
};

/* Handles are value ids plus one, so that 0 can be "failed". */
static po_val handle_of(po_value_id id) {
    return id + 1;
}

/* The IR version that came with an operator-set version: the least that carries it. */
static int64_t ir_version_of(int64_t opset) {
    static const struct {
        int64_t opset, ir;
    } table[] = {{8, 3}, {9, 4}, {10, 5}, {11, 6}, {14, 7}, {18, 8}, {20, 9}, {22, 10}, {23, 11}};
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
        if (opset <= table[i].opset)
            return table[i].ir;
    return 12;
}

typedef struct create_args {
    po_builder *builder;
    const char *name;
    int64_t opset;
} create_args;

static po_status create_body(po_ctx *ctx, void *user) {
    create_args *args = user;
    po_builder *b = args->builder;
    if (args->opset < OPSET_MIN || args->opset > OPSET_MAX)
        return po_fail(ctx, PO_BAD_USE, "operator-set version %lld is not between %d and %d",
                       (long long)args->opset, OPSET_MIN, OPSET_MAX);
    b->arena = po_arena_create(ctx);
    b->model = PO_NEW(b->arena, po_model);
    b->model->arena = b->arena;
    b->model->ir_version = ir_version_of(args->opset);
    b->model->opsets = PO_NEW_N(b->arena, po_opset, 1);
    b->model->opsets[0] = (po_opset){"", args->opset};
    b->model->n_opsets = 1;
    b->graph = po_graph_create(ctx, b->model, args->name ? args->name : "graph");
    b->model->graph = b->graph;
    po_api_keep_model(b->model);
    return PO_OK;
}

po_builder *po_build_create(const char *graph_name, int64_t opset) {
    po_builder *b = calloc(1, sizeof *b);
    if (!b)
        return NULL;
    po_ctx_init(&b->ctx);
    create_args args = {b, graph_name, opset};
    po_status status = po_api_call(&b->ctx, create_body, &args, NULL);
    if (status == PO_NO_MEMORY) {
        free(b);
        return NULL;
    }
    return b; /* a bad version is told by po_build_finish */
}

void po_build_free(po_builder *b) {
    if (b && b->model)
        po_model_free(b->model);
    free(b);
}

/* --- one guarded call for everything that is added --- */

typedef struct add_args add_args;
struct add_args {
    po_builder *b;
    po_status (*add)(add_args *args);
    po_value_id made;
    po_val value;
    const char *name, *text, *domain;
    size_t n;
    const po_val *in;
    const int64_t *ints;
    const void *data;
    uint64_t seed;
    double low, high;
    int64_t i;
    float f;
};

static po_status add_body(po_ctx *ctx, void *user) {
    (void)ctx;
    add_args *args = user;
    return args->add(args);
}

static po_val add(add_args *args) {
    po_builder *b = args->b;
    if (!b || b->ctx.error.status != PO_OK)
        return 0;
    args->made = PO_NONE;
    if (po_api_call(&b->ctx, add_body, args, NULL) != PO_OK || args->made == PO_NONE)
        return 0;
    return handle_of(args->made);
}

static po_status bad_handle(po_builder *b, const char *what, const char *name) {
    return po_fail(&b->ctx, PO_BAD_USE, "%s '%s': a handle that this builder did not give out",
                   what, name ? name : "");
}

static bool known(const po_builder *b, po_val value) {
    return value >= 1 && value <= b->graph->n_values;
}

/* --- inputs and initialisers --- */

static po_status add_input(add_args *args) {
    po_builder *b = args->b;
    po_type type = {.kind = PO_TYPE_UNKNOWN};
    po_scan scan;
    po_scan_init(&scan, &b->ctx, b->graph->arena, args->text ? args->text : "");
    if (po_type_parse(&scan, &type) != PO_OK || !po_scan_at_end(&scan) ||
        type.kind != PO_TYPE_TENSOR) {
        po_ctx_clear(&b->ctx);
        return po_fail(&b->ctx, PO_BAD_USE, "input '%s': '%s' is not a tensor's type",
                       args->name ? args->name : "", args->text ? args->text : "");
    }
    args->made = po_graph_add_input(b->graph, args->name, &type);
    return PO_OK;
}

po_val po_build_input(po_builder *builder, const char *name, const char *type) {
    return add(&(add_args){.b = builder, .add = add_input, .name = name, .text = type});
}

static po_status add_tensor(add_args *args, po_dtype dtype, po_tensor **tensor) {
    po_builder *b = args->b;
    if (dtype == PO_DT_NONE || dtype == PO_STR)
        return po_fail(&b->ctx, PO_BAD_USE, "initialiser '%s': '%s' is not a type with data",
                       args->name ? args->name : "", args->text ? args->text : "");
    if (args->n > PO_MAX_RANK)
        return po_fail(&b->ctx, PO_BAD_USE, "initialiser '%s': rank %zu is over %d",
                       args->name ? args->name : "", args->n, PO_MAX_RANK);
    return po_tensor_create(&b->ctx, b->graph->arena, dtype, (uint32_t)args->n, args->ints, tensor);
}

static po_status add_data(add_args *args) {
    po_tensor *tensor;
    PO_TRY(add_tensor(
        args, args->text ? po_dtype_parse(args->text, strlen(args->text)) : PO_DT_NONE, &tensor));
    if (tensor->size > 0)
        memcpy(po_tensor_data(tensor), args->data, tensor->size);
    args->made = po_graph_add_constant(args->b->graph, args->name, tensor);
    return PO_OK;
}

po_val po_build_data(po_builder *builder, const char *name, const char *dtype, size_t rank,
                     const int64_t *dims, const void *data) {
    return add(&(add_args){.b = builder,
                           .add = add_data,
                           .name = name,
                           .text = dtype,
                           .n = rank,
                           .ints = dims,
                           .data = data});
}

static po_status add_random(add_args *args) {
    po_tensor *tensor;
    PO_TRY(add_tensor(args, PO_F32, &tensor));
    float *x = po_tensor_data(tensor);
    for (int64_t i = 0; i < tensor->count; i++) {
        double u = po_random_unit(args->seed, 0, (uint64_t)i);
        x[i] = (float)(args->low + (args->high - args->low) * u);
    }
    args->made = po_graph_add_constant(args->b->graph, args->name, tensor);
    return PO_OK;
}

po_val po_build_random(po_builder *builder, const char *name, size_t rank, const int64_t *dims,
                       uint64_t seed, double low, double high) {
    return add(&(add_args){.b = builder,
                           .add = add_random,
                           .name = name,
                           .n = rank,
                           .ints = dims,
                           .seed = seed,
                           .low = low,
                           .high = high});
}

po_val po_build_f32(po_builder *builder, float value) {
    return po_build_data(builder, NULL, "f32", 0, NULL, &value);
}

po_val po_build_i64(po_builder *builder, size_t n, const int64_t *values) {
    int64_t dim = (int64_t)n;
    return po_build_data(builder, NULL, "i64", 1, &dim, values);
}

/* --- nodes --- */

/* Imports the operator set of a domain at version 1, once. */
static void import_domain(po_builder *b, const char *domain) {
    po_model *m = b->model;
    if (!domain || !*domain || po_model_opset(m, domain) > 0)
        return;
    po_opset *opsets = PO_NEW_N(m->arena, po_opset, m->n_opsets + 1);
    memcpy(opsets, m->opsets, m->n_opsets * sizeof *opsets);
    opsets[m->n_opsets] = (po_opset){po_arena_strdup(m->arena, domain), 1};
    m->opsets = opsets;
    m->n_opsets++;
}

static po_status add_node(add_args *args) {
    po_builder *b = args->b;
    if (args->n > UINT32_MAX / 2)
        return po_fail(&b->ctx, PO_BAD_USE, "node '%s': too many inputs", args->text);
    po_value_id *in = PO_NEW_N(b->graph->arena, po_value_id, args->n);
    for (size_t i = 0; i < args->n; i++) {
        if (args->in[i] != PO_OMITTED && !known(b, args->in[i]))
            return bad_handle(b, args->text, args->name);
        in[i] = args->in[i] == PO_OMITTED ? PO_NONE : args->in[i] - 1;
    }
    import_domain(b, args->domain);
    po_type unknown = {.kind = PO_TYPE_UNKNOWN};
    po_value_id out = po_graph_add_value(b->graph, args->name, &unknown);
    po_node_spec spec = {.op = po_op_find(args->domain ? args->domain : "", args->text),
                         .op_type = args->text,
                         .domain = args->domain,
                         .name = args->name,
                         .n_in = (uint32_t)args->n,
                         .n_out = 1,
                         .in = in,
                         .out = &out};
    po_graph_add_node(b->graph, &spec);
    args->made = out;
    return PO_OK;
}

po_val po_build_node(po_builder *builder, const char *domain, const char *op_type, const char *name,
                     size_t n_in, const po_val *in) {
    for (size_t i = 0; i < n_in; i++)
        if (in[i] == 0)
            return 0; /* its failure is already kept */
    return add(&(add_args){.b = builder,
                           .add = add_node,
                           .domain = domain,
                           .text = op_type,
                           .name = name,
                           .n = n_in,
                           .in = in});
}

/* The node that makes the value, or PO_NONE. */
static po_node_id node_of(const po_builder *b, po_val value) {
    return known(b, value) ? b->graph->values[value - 1].producer : PO_NONE;
}

static po_status add_output_of(add_args *args) {
    po_builder *b = args->b;
    po_graph *g = b->graph;
    po_node_id node = node_of(b, args->value);
    if (node == PO_NONE || args->n >= 1u << 16)
        return bad_handle(b, "output of", "a value");
    uint32_t had = g->nodes[node].n_out;
    if (args->n >= had) {
        po_value_id *out = PO_NEW_N(g->arena, po_value_id, args->n + 1);
        memcpy(out, g->nodes[node].out, had * sizeof *out);
        for (size_t i = had; i <= args->n; i++)
            out[i] = PO_NONE;
        g->nodes[node].out = out;
        g->nodes[node].n_out = (uint32_t)args->n + 1;
    }
    if (g->nodes[node].out[args->n] == PO_NONE) {
        po_type unknown = {.kind = PO_TYPE_UNKNOWN};
        po_graph_set_output(g, node, (uint32_t)args->n, po_graph_add_value(g, NULL, &unknown));
    }
    args->made = g->nodes[node].out[args->n];
    return PO_OK;
}

po_val po_build_output_of(po_builder *builder, po_val value, size_t k) {
    return add(&(add_args){.b = builder, .add = add_output_of, .value = value, .n = k});
}

/* --- attributes --- */

static po_status set_attr(add_args *args, po_attr_kind kind) {
    po_builder *b = args->b;
    po_node_id node = node_of(b, args->value);
    if (node == PO_NONE)
        return bad_handle(b, "attribute", args->name);
    switch (kind) {
    case PO_ATTR_INT:
        po_node_set_int(b->graph, node, args->name, args->i);
        break;
    case PO_ATTR_FLOAT:
        po_node_set_float(b->graph, node, args->name, args->f);
        break;
    case PO_ATTR_STRING:
        po_node_set_string(b->graph, node, args->name, args->text);
        break;
    default:
        po_node_set_ints(b->graph, node, args->name, (uint32_t)args->n, args->ints);
        break;
    }
    return PO_OK;
}

static po_status set_int(add_args *args) {
    return set_attr(args, PO_ATTR_INT);
}

static po_status set_float(add_args *args) {
    return set_attr(args, PO_ATTR_FLOAT);
}

static po_status set_string(add_args *args) {
    return set_attr(args, PO_ATTR_STRING);
}

static po_status set_ints(add_args *args) {
    return set_attr(args, PO_ATTR_INTS);
}

void po_build_attr_int(po_builder *builder, po_val value, const char *name, int64_t x) {
    add(&(add_args){.b = builder, .add = set_int, .value = value, .name = name, .i = x});
}

void po_build_attr_float(po_builder *builder, po_val value, const char *name, float x) {
    add(&(add_args){.b = builder, .add = set_float, .value = value, .name = name, .f = x});
}

void po_build_attr_string(po_builder *builder, po_val value, const char *name, const char *x) {
    add(&(add_args){.b = builder, .add = set_string, .value = value, .name = name, .text = x});
}

void po_build_attr_ints(po_builder *builder, po_val value, const char *name, size_t n,
                        const int64_t *x) {
    add(&(add_args){
        .b = builder, .add = set_ints, .value = value, .name = name, .n = n, .ints = x});
}

/* --- the end --- */

static po_status add_output(add_args *args) {
    po_builder *b = args->b;
    if (!known(b, args->value))
        return bad_handle(b, "output", args->name);
    po_value_id id = args->value - 1;
    if (args->name && strcmp(b->graph->values[id].name, args->name) != 0) {
        /* The name belongs to a value of its own where this one already has an owner. */
        po_type unknown = {.kind = PO_TYPE_UNKNOWN};
        po_value_id out = po_graph_add_value(b->graph, args->name, &unknown);
        if (strcmp(b->graph->values[out].name, args->name) != 0)
            return po_fail(&b->ctx, PO_BAD_USE, "output '%s': the name is taken", args->name);
        po_node_id node = b->graph->values[id].producer;
        if (node != PO_NONE && b->graph->values[id].n_uses == 0 &&
            b->graph->values[id].n_outputs == 0) {
            po_graph_set_output(b->graph, node, b->graph->values[id].output, out);
        } else {
            po_node_spec spec = {.op = PO_OP_Identity,
                                 .op_type = "Identity",
                                 .n_in = 1,
                                 .n_out = 1,
                                 .in = &id,
                                 .out = &out};
            po_graph_add_node(b->graph, &spec);
        }
        id = out;
    }
    po_graph_add_output(b->graph, id);
    return PO_OK;
}

void po_build_output(po_builder *builder, po_val value, const char *name) {
    if (value != 0)
        add(&(add_args){.b = builder, .add = add_output, .value = value, .name = name});
}

static po_status finish_body(po_ctx *ctx, void *user) {
    po_builder *b = user;
    if (b->graph->n_outputs == 0)
        return po_fail(ctx, PO_BAD_USE, "graph '%s' has no output", b->graph->name);
    const po_graph *g = b->graph;
    for (po_node_id i = 0; i < g->n_nodes; i++)
        PO_TRY(po_ops_check_node(ctx, g, &g->nodes[i]));
    PO_TRY(po_infer_graph(ctx, b->graph, false));
    return po_graph_check(ctx, b->graph);
}

po_status po_build_finish(po_builder *b, po_model **model, po_error *error) {
    *model = NULL;
    if (!b)
        return po_api_error(error, PO_NO_MEMORY, "memory ran out");
    po_status status = b->ctx.error.status;
    if (status == PO_OK)
        status = po_api_call(&b->ctx, finish_body, b, NULL);
    if (error)
        *error = b->ctx.error;
    if (status == PO_OK) {
        *model = b->model;
        b->model = NULL;
    }
    po_build_free(b);
    return status;
}

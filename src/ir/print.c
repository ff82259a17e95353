/* Prints graphs as text that parses back. */
#include "ir/text.h"

static void indent(po_text *text, int depth) {
    for (int i = 0; i < depth; i++)
        po_text_puts(text, "  ");
}

static void print_graph(po_text *text, const po_graph *g, po_print_options options, int depth);

static void print_float(po_text *text, float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    po_text_float(text, PO_F32, bits);
}

static const char *const list_words[] = {
    [PO_ATTR_FLOATS] = "floats ", [PO_ATTR_STRINGS] = "strings ", [PO_ATTR_TENSORS] = "tensors ",
    [PO_ATTR_GRAPHS] = "graphs ", [PO_ATTR_TYPES] = NULL,
};

static void print_item(po_text *text, const po_attr *a, uint32_t i, po_print_options options,
                       int depth) {
    switch (a->kind) {
    case PO_ATTR_FLOATS:
        print_float(text, a->u.floats[i]);
        break;
    case PO_ATTR_INTS:
        po_text_printf(text, "%lld", (long long)a->u.ints[i]);
        break;
    case PO_ATTR_STRINGS:
        po_text_quoted(text, a->u.strings[i].data, a->u.strings[i].size);
        break;
    case PO_ATTR_TENSORS:
        po_tensor_print(text, a->u.tensors[i], options);
        break;
    case PO_ATTR_GRAPHS:
        print_graph(text, a->u.graphs[i], options, depth + 1);
        break;
    default:
        break;
    }
}

static void print_attr(po_text *text, const po_attr *a, po_print_options options, int depth) {
    po_text_name(text, a->name);
    po_text_puts(text, "=");
    if (a->reference) {
        po_text_printf(text, "param(%d, ", (int)a->kind);
        po_text_name(text, a->reference);
        po_text_puts(text, ")");
        return;
    }
    switch (a->kind) {
    case PO_ATTR_FLOAT:
        print_float(text, a->u.f);
        return;
    case PO_ATTR_INT:
        po_text_printf(text, "%lld", (long long)a->u.i);
        return;
    case PO_ATTR_STRING:
        po_text_quoted(text, a->u.s.data, a->u.s.size);
        return;
    case PO_ATTR_TENSOR:
        po_tensor_print(text, a->u.t, options);
        return;
    case PO_ATTR_GRAPH:
        print_graph(text, a->u.g, options, depth + 1);
        return;
    case PO_ATTR_FLOATS:
    case PO_ATTR_INTS:
    case PO_ATTR_STRINGS:
    case PO_ATTR_TENSORS:
    case PO_ATTR_GRAPHS:
        if (a->n == 0 && a->kind != PO_ATTR_INTS)
            po_text_puts(text, list_words[a->kind]);
        po_text_puts(text, "[");
        for (uint32_t i = 0; i < a->n; i++) {
            if (i)
                po_text_puts(text, ", ");
            print_item(text, a, i, options, depth);
        }
        po_text_puts(text, "]");
        return;
    default:
        po_text_printf(text, "verbatim(%d)", (int)a->kind);
        return;
    }
}

static void print_value(po_text *text, const po_graph *g, po_value_id id) {
    if (id == PO_NONE)
        po_text_puts(text, "_");
    else
        po_text_name(text, po_graph_value_name(g, id));
}

static void print_node(po_text *text, const po_graph *g, const po_node *n, po_print_options options,
                       int depth) {
    indent(text, depth);
    if (n->n_out == 0)
        po_text_puts(text, "()");
    bool typed = false;
    for (uint32_t i = 0; i < n->n_out; i++) {
        if (i)
            po_text_puts(text, ", ");
        print_value(text, g, n->out[i]);
        typed |= n->out[i] != PO_NONE && g->values[n->out[i]].type.kind != PO_TYPE_UNKNOWN;
    }
    po_text_puts(text, " = ");
    if (*n->domain) {
        po_text_name(text, n->domain);
        po_text_puts(text, "::");
    }
    po_text_name(text, n->op_type);
    if (*n->overload) {
        po_text_puts(text, ":");
        po_text_name(text, n->overload);
    }
    po_text_puts(text, "(");
    for (uint32_t i = 0; i < n->n_in; i++) {
        if (i)
            po_text_puts(text, ", ");
        print_value(text, g, n->in[i]);
        if (n->in[i] == PO_NONE)
            continue;
        const po_value *v = &g->values[n->in[i]];
        if (v->constant && v->producer == PO_NONE && !v->is_input) {
            po_text_puts(text, ": ");
            po_type_print(text, &v->type);
        }
    }
    po_text_puts(text, ")");
    for (uint32_t i = 0; i < n->n_attr; i++) {
        po_text_puts(text, i ? ", " : " {");
        print_attr(text, &n->attr[i], options, depth);
    }
    if (n->n_attr)
        po_text_puts(text, "}");
    for (uint32_t i = 0; typed && i < n->n_out; i++) {
        po_text_puts(text, i ? ", " : " : ");
        if (n->out[i] == PO_NONE)
            po_text_puts(text, "_");
        else
            po_type_print(text, &g->values[n->out[i]].type);
    }
    if (*n->name) {
        po_text_puts(text, " @ ");
        po_text_name(text, n->name);
    }
    po_text_puts(text, "\n");
}

static void print_graph(po_text *text, const po_graph *g, po_print_options options, int depth) {
    po_text_puts(text, "graph ");
    po_text_name(text, g->name);
    po_text_puts(text, " (");
    for (uint32_t i = 0; i < g->n_inputs; i++) {
        const po_value *v = &g->values[g->inputs[i]];
        po_text_puts(text, i ? ", " : "");
        po_text_name(text, v->name);
        po_text_puts(text, ": ");
        po_type_print(text, &v->type);
        if (v->constant) {
            po_text_puts(text, " = ");
            po_tensor_print(text, v->constant, options);
        }
    }
    po_text_puts(text, ") -> (");
    for (uint32_t i = 0; i < g->n_outputs; i++) {
        po_text_puts(text, i ? ", " : "");
        print_value(text, g, g->outputs[i]);
    }
    po_text_puts(text, ") {\n");
    for (uint32_t i = 0; i < g->n_initializers; i++) {
        const po_value *v = &g->values[g->initializers[i]];
        if (v->is_input)
            continue;
        indent(text, depth + 1);
        po_text_name(text, v->name);
        po_text_puts(text, " = ");
        if (v->constant)
            po_tensor_print(text, v->constant, options);
        else
            po_text_puts(text, "verbatim");
        po_text_puts(text, "\n");
    }
    uint32_t n;
    po_arena *scratch = po_arena_child(text->arena);
    const po_node_id *order = po_graph_order(g, scratch, &n);
    for (uint32_t i = 0; i < n; i++)
        print_node(text, g, &g->nodes[order[i]], options, depth + 1);
    po_arena_free(scratch);
    indent(text, depth);
    po_text_puts(text, "}");
}

void po_graph_print_as(po_text *text, const po_graph *graph, po_print_options options) {
    const po_model *model = graph->model;
    if (model) {
        po_text_printf(text, "pir 1 ir_version=%lld", (long long)model->ir_version);
        for (uint32_t i = 0; i < model->n_opsets; i++) {
            po_text_puts(text, " opset");
            if (*model->opsets[i].domain) {
                po_text_puts(text, "(");
                po_text_name(text, model->opsets[i].domain);
                po_text_puts(text, ")");
            }
            po_text_printf(text, "=%lld", (long long)model->opsets[i].version);
        }
        po_text_puts(text, "\n");
    }
    print_graph(text, graph, options, 0);
    po_text_puts(text, "\n");
}

void po_graph_print(po_text *text, const po_graph *graph) {
    po_graph_print_as(text, graph, (po_print_options){.most_items = 32});
}

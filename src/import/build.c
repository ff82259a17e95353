/* GraphProto to po_graph: names become values, and every rule about names is checked. */
#include "import/parts.h"

enum { FEW_ATTRS = 16 };

/* --- scopes --- */

po_value_id po_scope_find(const po_scope *scope, const char *name) {
    uint32_t id = po_map_get(scope->names, name);
    if (id != PO_NONE || !scope->outer)
        return id;
    po_value_id outside = po_scope_find(scope->outer, name);
    if (outside == PO_NONE)
        return PO_NONE;
    id = po_graph_capture(scope->graph, outside);
    po_map_put(scope->names, scope->graph->values[id].name, id);
    return id;
}

/* True where a body's name is taken by a value around the body. */
static bool hides(const po_scope *scope, const char *name) {
    for (const po_scope *s = scope->outer; s; s = s->outer)
        if (po_map_get(s->names, name) != PO_NONE)
            return true;
    return false;
}

/* Makes a value. It has the model's own name: the IR wants names unique over all bodies, models
 * only along a path of scopes, and sibling bodies that use one name keep it. In the body of an
 * inlined function, and where it would hide a value around the body, it gets a name that is new to
 * the graph. */
static po_value_id add_value(po_importer *im, po_scope *scope, const char *name,
                             const po_type *type, bool input) {
    po_graph *g = scope->graph;
    const char *prefix = scope->binding ? scope->binding->prefix : NULL;
    const char *full = prefix ? po_arena_printf(im->scratch, "%s%s", prefix, name) : name;
    bool hidden = !prefix && hides(scope, name);
    po_value_id id = input ? po_graph_add_input(g, full, type) : po_graph_add_value(g, full, type);
    if (!prefix && !hidden && strcmp(g->values[id].name, name) != 0)
        g->values[id].name = po_arena_strdup(g->arena, name);
    if (hidden)
        po_warn_at(im->ctx, im->file, NULL,
                   "tensor '%.100s' of a body hides one of the same name around it: renamed to "
                   "'%.100s'",
                   name, g->values[id].name);
    po_map_put(scope->names, prefix || hidden ? name : g->values[id].name, id);
    return id;
}

/* Refuses a name that is taken. */
static po_status check_new(po_importer *im, const po_place *place, const po_scope *scope,
                           const char *name) {
    if (po_map_get(scope->names, name) != PO_NONE)
        return po_bad(im, place, "tensor '%.100s' is made twice", name);
    return PO_OK;
}

/* Inputs of the model must have a type, and tensors an element type: nothing else tells it. */
static po_status check_typed(po_importer *im, const po_place *place,
                             const Onnx__ValueInfoProto *info, const po_type *type, bool input) {
    if (input && type->kind == PO_TYPE_UNKNOWN)
        return po_bad(im, place, "input '%.100s' has no type", info->name);
    if (type->kind == PO_TYPE_TENSOR && type->dtype == PO_DT_NONE)
        return po_bad(im, place, "tensor '%.100s' has no element type", info->name);
    return PO_OK;
}

static po_status add_inputs(po_importer *im, const po_place *place, const Onnx__GraphProto *proto,
                            po_scope *scope) {
    po_graph *g = scope->graph;
    for (size_t i = 0; i < proto->n_input; i++) {
        const Onnx__ValueInfoProto *info = proto->input[i];
        po_place at = {place, "input", (int64_t)i, info->name};
        if (!info->name || !*info->name)
            return po_bad(im, &at, "a graph input has no name");
        PO_TRY(check_new(im, &at, scope, info->name));
        po_type type;
        PO_TRY(po_type_from_proto(im->ctx, im->arena, im->file, &at, info->type, &type));
        if (!scope->outer)
            PO_TRY(check_typed(im, &at, info, &type, true));
        po_value_id id = add_value(im, scope, info->name, &type, true);
        g->values[id].origin = info;
    }
    return PO_OK;
}

static void list_initializer(po_graph *g, po_value_id id) {
    g->values[id].is_initializer = true;
    PO_PUSH(g->arena, g->initializers, g->n_initializers, g->cap_initializers, id);
}

/* A tensor's type against what was declared of it. */
static bool fits(const po_type *declared, const po_type *found) {
    bool ranked = declared->has_rank;
    bool fit = !declared->dtype || declared->dtype == found->dtype;
    if (declared->kind != PO_TYPE_UNKNOWN && declared->kind != PO_TYPE_TENSOR)
        return false;
    if (ranked && declared->rank != found->rank)
        return false;
    for (uint32_t k = 0; ranked && k < found->rank; k++)
        fit =
            fit && (declared->dims[k].value < 0 || declared->dims[k].value == found->dims[k].value);
    return fit;
}

static po_status add_initializer(po_importer *im, const po_place *place, po_scope *scope,
                                 const char *name, const po_type *type, po_value_id *id) {
    po_graph *g = scope->graph;
    *id = po_map_get(scope->names, name); /* only inputs and initialisers are there yet */
    if (*id != PO_NONE && !fits(&g->values[*id].type, type))
        return po_bad(im, place, "tensor '%.100s' is declared with another type", name);
    if (*id != PO_NONE && g->values[*id].is_initializer) {
        po_warn_at(im->ctx, im->file, place,
                   "initialiser '%.100s' is there twice: the last one counts, as in ONNX Runtime",
                   name);
        return PO_OK;
    }
    if (*id == PO_NONE)
        *id = add_value(im, scope, name, type, false);
    list_initializer(g, *id);
    return PO_OK;
}

static po_status add_initializers(po_importer *im, const po_place *place,
                                  const Onnx__GraphProto *proto, po_scope *scope) {
    po_graph *g = scope->graph;
    for (size_t i = 0; i < proto->n_initializer; i++) {
        const Onnx__TensorProto *t = proto->initializer[i];
        po_place at = {place, "initializer", (int64_t)i, t->name};
        const po_tensor *tensor = po_import_tensor(im, t);
        po_type type = po_tensor_type(im->arena, tensor);
        po_value_id id;
        if (!t->name || !*t->name) {
            po_warn_at(im->ctx, im->file, &at, "an initialiser without a name: left out");
            continue;
        }
        PO_TRY(add_initializer(im, &at, scope, t->name, &type, &id));
        g->values[id].constant = tensor;
    }
    for (size_t i = 0; i < proto->n_sparse_initializer; i++) {
        const Onnx__SparseTensorProto *s = proto->sparse_initializer[i];
        po_place at = {place, "sparse_initializer", (int64_t)i, s->values->name};
        po_type type = po_type_tensor_i64(im->arena, (po_dtype)s->values->data_type,
                                          (uint32_t)s->n_dims, s->dims);
        po_value_id id;
        if (!s->values->name) /* as runtimes do, which take an empty one */
            return po_bad(im, &at, "an initialiser has no name");
        if (!*s->values->name) {
            po_warn_at(im->ctx, im->file, &at, "an initialiser without a name: left out");
            continue;
        }
        if (po_map_get(scope->names, s->values->name) != PO_NONE &&
            g->values[po_map_get(scope->names, s->values->name)].is_initializer)
            return po_bad(im, &at, "tensor '%.100s' is made twice", s->values->name);
        /* No `constant`: it stays as it is, found again by name on export. */
        PO_TRY(add_initializer(im, &at, scope, s->values->name, &type, &id));
        po_renaming r = {&s->values->name, g->values[id].name};
        if (strcmp(r.now, *r.name) != 0)
            PO_PUSH(im->scratch, im->renamings, im->n_renamings, im->cap_renamings, r);
    }
    return PO_OK;
}

/* Types of what nodes make, from value_info and the graph's outputs. */
static po_status note_types(po_importer *im, const po_place *place, const Onnx__GraphProto *proto,
                            po_scope *scope) {
    size_t n = proto->n_value_info + proto->n_output;
    scope->types = po_map_create(im->scratch);
    scope->infos = PO_NEW_N(im->scratch, const Onnx__ValueInfoProto *, n);
    po_type *types = PO_NEW_N(im->scratch, po_type, n);
    scope->info_types = types;
    for (size_t i = 0; i < n; i++) {
        bool output = i >= proto->n_value_info;
        const Onnx__ValueInfoProto *info =
            output ? proto->output[i - proto->n_value_info] : proto->value_info[i];
        po_place at = {place, output ? "output" : "value_info",
                       (int64_t)(output ? i - proto->n_value_info : i), info->name};
        if (!info->name || !*info->name) {
            if (output)
                return po_bad(im, &at, "a graph output has no name");
            continue;
        }
        scope->infos[i] = info;
        po_map_put(scope->types, info->name, (uint32_t)i);
        /* Every one is checked, also those that no value has. */
        PO_TRY(po_type_from_proto(im->ctx, im->arena, im->file, &at, info->type, &types[i]));
        if (output && !scope->outer)
            PO_TRY(check_typed(im, &at, info, &types[i], false));
    }
    return PO_OK;
}

static po_status add_outputs(po_importer *im, const po_place *place, const Onnx__GraphProto *proto,
                             po_scope *scope) {
    for (size_t i = 0; i < proto->n_output; i++) {
        const Onnx__ValueInfoProto *info = proto->output[i];
        po_place at = {place, "output", (int64_t)i, info->name};
        po_value_id id = po_scope_find(scope, info->name);
        if (id == PO_NONE)
            return po_bad(im, &at, "nothing makes this output");
        po_graph_add_output(scope->graph, id);
        if (!scope->graph->values[id].origin)
            scope->graph->values[id].origin = info;
    }
    return PO_OK;
}

po_status po_build_graph(po_importer *im, const po_place *place, const Onnx__GraphProto *proto,
                         const po_scope *outer, const po_binding *binding, po_graph *graph) {
    po_scope scope = {.outer = outer,
                      .graph = graph,
                      .names = po_map_create(im->scratch),
                      .nodes = po_map_create(im->scratch),
                      .binding = binding,
                      .depth = outer ? outer->depth + 1 : 0};
    if (scope.depth > PO_DEEPEST_BODY)
        return po_bad(im, place, "bodies are nested too deep (found %d, limit %d)", scope.depth,
                      PO_DEEPEST_BODY);
    /* Of an inlined function's body the names are others now. */
    graph->origin = binding && binding->call ? NULL : proto;
    PO_TRY(add_inputs(im, place, proto, &scope));
    PO_TRY(add_initializers(im, place, proto, &scope));
    PO_TRY(note_types(im, place, proto, &scope));
    PO_TRY(po_build_nodes(im, place, &scope, proto->node, proto->n_node));
    return add_outputs(im, place, proto, &scope);
}

/* --- nodes --- */

/* The tensor of a Constant node; NULL where it holds something else. */
static const po_tensor *constant_of(po_importer *im, const po_attr *a) {
    po_tensor *t = PO_NEW(im->arena, po_tensor);
    t->count = a->n;
    t->rank = a->kind >= PO_ATTR_FLOATS ? 1 : 0;
    int64_t *dims = PO_NEW(im->arena, int64_t);
    *dims = a->n;
    t->dims = dims;
    if (a->reference)
        return NULL;
    if (strcmp(a->name, "value") == 0 && a->kind == PO_ATTR_TENSOR)
        return a->u.t;
    if (strcmp(a->name, "value_int") == 0 && a->kind == PO_ATTR_INT) {
        t->dtype = PO_I64;
        t->data = po_arena_memdup(im->arena, &a->u.i, sizeof a->u.i);
    } else if (strcmp(a->name, "value_ints") == 0 && a->kind == PO_ATTR_INTS) {
        t->dtype = PO_I64;
        t->data = a->u.ints;
    } else if (strcmp(a->name, "value_float") == 0 && a->kind == PO_ATTR_FLOAT) {
        t->dtype = PO_F32;
        t->data = po_arena_memdup(im->arena, &a->u.f, sizeof a->u.f);
    } else if (strcmp(a->name, "value_floats") == 0 && a->kind == PO_ATTR_FLOATS) {
        t->dtype = PO_F32;
        t->data = a->u.floats;
    } else if (strcmp(a->name, "value_string") == 0 && a->kind == PO_ATTR_STRING) {
        t->dtype = PO_STR;
        t->data = po_arena_memdup(im->arena, &a->u.s, sizeof a->u.s);
    } else if (strcmp(a->name, "value_strings") == 0 && a->kind == PO_ATTR_STRINGS) {
        t->dtype = PO_STR;
        t->data = a->u.strings;
    } else {
        return NULL;
    }
    t->size = (size_t)a->n * (po_dtype_bits(t->dtype) / 8);
    return t;
}

static po_status add_attrs(po_importer *im, const po_place *place, const po_scope *scope,
                           const Onnx__NodeProto *proto, po_node_spec *spec) {
    po_attr *attrs = PO_NEW_N(im->scratch, po_attr, proto->n_attribute);
    /* Few are compared with one another, many are looked up. */
    po_map *names = proto->n_attribute > FEW_ATTRS ? po_map_create(im->scratch) : NULL;
    for (size_t i = 0; i < proto->n_attribute; i++) {
        const Onnx__AttributeProto *a = proto->attribute[i];
        po_place at = {place, "attribute", (int64_t)i, a->name};
        bool present;
        PO_TRY(po_build_attr(im, &at, scope, a, &attrs[spec->n_attr], &present));
        bool twice = names && po_map_put(names, a->name, 0) != PO_NONE;
        for (size_t k = 0; k < i && !names; k++)
            twice |= strcmp(proto->attribute[k]->name, a->name) == 0;
        if (twice)
            return po_bad(im, &at, "the attribute is there twice");
        spec->n_attr += present;
    }
    spec->attr = attrs;
    return PO_OK;
}

static po_status find_inputs(po_importer *im, const po_place *place, const po_scope *scope,
                             const Onnx__NodeProto *proto, po_value_id *in) {
    for (size_t i = 0; i < proto->n_input; i++) {
        const char *name = proto->input[i];
        in[i] = PO_NONE;
        if (!*name)
            continue;
        in[i] = po_scope_find(scope, name);
        const po_binding *b = scope->binding;
        bool omitted = b && b->call && po_map_get(b->omitted, name) != PO_NONE;
        if (in[i] == PO_NONE && !omitted) {
            im->unsorted = true;
            return po_bad(im, place,
                          "input %zu is tensor '%.100s', which nothing before it makes (the nodes "
                          "are not sorted, form a cycle, or it is missing)",
                          i, name);
        }
    }
    return PO_OK;
}

static po_status make_outputs(po_importer *im, const po_place *place, po_scope *scope,
                              const Onnx__NodeProto *proto, po_value_id *out) {
    for (size_t i = 0; i < proto->n_output; i++) {
        const char *name = proto->output[i];
        out[i] = PO_NONE;
        if (!*name)
            continue;
        PO_TRY(check_new(im, place, scope, name));
        po_type type = {0};
        uint32_t info = scope->types ? po_map_get(scope->types, name) : PO_NONE;
        if (info != PO_NONE)
            type = scope->info_types[info];
        /* The output of an inlined function is the value that the call made. */
        const po_binding *b = scope->binding;
        bool outermost = b && b->call && scope->graph == b->caller;
        out[i] = outermost ? po_map_get(b->outputs, name) : PO_NONE;
        if (out[i] != PO_NONE)
            po_map_put(scope->names, name, out[i]);
        else
            out[i] = add_value(im, scope, name, &type, false);
        if (info != PO_NONE)
            scope->graph->values[out[i]].origin = scope->infos[info];
    }
    return PO_OK;
}

/* Runtimes want each node's name once in a graph. The message gets the new name as well. */
static const char *rename_node(po_importer *im, const po_place *place, const po_scope *scope,
                               const Onnx__NodeProto *proto) {
    const char *name;
    do
        name = po_arena_printf(im->arena, "%s_%u", proto->name, ++im->n_renamed);
    while (po_map_put(scope->nodes, name, 0) != PO_NONE);
    po_warn_at(im->ctx, im->file, place,
               "a node of this name is there already: renamed to '%.100s'", name);
    ((Onnx__NodeProto *)(uintptr_t)proto)->name = (char *)(uintptr_t)name;
    return name;
}

static po_status build_node(po_importer *im, const po_place *place, po_scope *scope,
                            const Onnx__NodeProto *proto) {
    if (!proto->op_type || !*proto->op_type)
        return po_bad(im, place, "a node has no operator type");
    po_value_id *in = PO_NEW_N(im->scratch, po_value_id, proto->n_input);
    po_value_id *out = PO_NEW_N(im->scratch, po_value_id, proto->n_output);
    po_node_spec spec = {.op_type = proto->op_type,
                         .domain = proto->domain,
                         .overload = proto->overload,
                         .name = proto->name ? proto->name : "",
                         .n_in = (uint32_t)proto->n_input,
                         .n_out = (uint32_t)proto->n_output,
                         .in = in,
                         .out = out,
                         .origin = proto};
    PO_TRY(find_inputs(im, place, scope, proto, in));
    PO_TRY(add_attrs(im, place, scope, proto, &spec));
    PO_TRY(make_outputs(im, place, scope, proto, out));
    const po_binding *b = scope->binding;
    if (!b && *spec.name && po_map_put(scope->nodes, spec.name, 0) != PO_NONE)
        spec.name = rename_node(im, place, scope, proto);
    if (b && b->call && *spec.name)
        spec.name = po_arena_printf(im->scratch, "%s%s", b->prefix, spec.name);
    if (b && b->call && scope->graph == b->caller)
        po_graph_add_node_at(scope->graph, b->place, &spec);
    else
        po_graph_add_node(scope->graph, &spec);
    bool standard = !spec.domain || !*spec.domain || strcmp(spec.domain, "ai.onnx") == 0;
    if (standard && strcmp(spec.op_type, "Constant") == 0 && spec.n_out == 1 && spec.n_attr == 1 &&
        out[0] != PO_NONE) {
        const po_tensor *t = constant_of(im, &spec.attr[0]);
        po_value *v = &scope->graph->values[out[0]];
        v->constant = t;
        if (t && v->type.kind == PO_TYPE_UNKNOWN)
            v->type = po_tensor_type(scope->graph->arena, t);
    }
    return PO_OK;
}

po_status po_build_nodes(po_importer *im, const po_place *place, po_scope *scope,
                         Onnx__NodeProto *const *nodes, size_t n) {
    for (size_t i = 0; i < n; i++) {
        po_place at = {place, "node", (int64_t)i, nodes[i]->name};
        PO_TRY(build_node(im, &at, scope, nodes[i]));
    }
    return PO_OK;
}

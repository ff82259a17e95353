/* Reads graphs from text. */
#include "ir/text.h"

enum { MOST_DEPTH = 32 }; /* of bodies in bodies */

typedef struct scope {
    po_graph *graph;
    po_map *names; /* of values that may be used here: own ones, and captures once they are made */
    struct scope *outer;
    int depth;
} scope;

typedef struct parser {
    po_scan scan;
    po_arena *arena; /* the graph's */
    po_arena *scratch;
    po_hash_map *hashes; /* of `data`'s constants; NULL without data */
    const po_tensor **tensors;
    uint32_t n_tensors, cap_tensors;
} parser;

static po_status parse_graph(parser *p, po_graph *g, scope *outer);

/* A name for a new value. */
static po_status new_name(parser *p, const po_graph *g, const char **name) {
    po_scan_peek(&p->scan);
    const char *at = p->scan.at;
    PO_TRY(po_scan_name(&p->scan, name));
    if (**name && po_map_get(g->root->names, *name) == PO_NONE)
        return PO_OK;
    p->scan.at = at;
    return **name ? po_scan_fail(&p->scan, "'%s' was made before", *name)
                  : po_scan_fail(&p->scan, "a value's name is empty");
}

/* The value of that name here: an own one, or a capture of an outer one. PO_NONE: there is none. */
static po_value_id look_up(scope *s, const char *name) {
    uint32_t id = po_map_get(s->names, name);
    if (id != PO_NONE || !s->outer)
        return id;
    po_value_id outer = look_up(s->outer, name);
    if (outer == PO_NONE)
        return PO_NONE;
    id = po_graph_capture(s->graph, outer);
    po_map_put(s->names, po_graph_value_name(s->graph, id), id);
    return id;
}

static void declare(scope *s, po_value_id id) {
    po_map_put(s->names, s->graph->values[id].name, id);
}

static po_status parse_tensor(parser *p, const po_tensor **tensor) {
    return po_tensor_parse(&p->scan, p->hashes, p->tensors, tensor);
}

/* "x", "_", or "w: type", which must fit, or "w: type {...}", which makes the constant. */
static po_status parse_input(parser *p, scope *s, po_value_id *id) {
    po_scan *scan = &p->scan;
    *id = PO_NONE;
    if (po_scan_take_word(scan, "_"))
        return PO_OK;
    po_scan_peek(scan);
    const char *at = scan->at, *name;
    PO_TRY(po_scan_name(scan, &name));
    if (!po_scan_take(scan, ":")) {
        *id = look_up(s, name);
        if (*id != PO_NONE)
            return PO_OK;
        scan->at = at;
        return po_scan_fail(scan, "nothing before this makes '%s'", name);
    }
    po_scan_peek(scan);
    const char *at_type = scan->at;
    po_type type;
    PO_TRY(po_type_parse(scan, &type));
    char next = po_scan_peek(scan);
    if (next != ',' && next != ')') {
        const po_tensor *t;
        scan->at = at;
        PO_TRY(new_name(p, s->graph, &name));
        scan->at = at_type;
        PO_TRY(parse_tensor(p, &t));
        *id = po_graph_add_constant(s->graph, name, t);
        declare(s, *id);
        return PO_OK;
    }
    *id = look_up(s, name);
    scan->at = *id == PO_NONE ? at : scan->at;
    if (*id == PO_NONE)
        return po_scan_fail(scan, "nothing before this makes '%s'", name);
    po_type have = s->graph->values[*id].type;
    if (!po_type_merge(p->scratch, &have, &type)) {
        scan->at = at_type;
        return po_scan_fail(scan, "'%s' has another type", name);
    }
    return PO_OK;
}

/* --- attributes --- */

static po_status parse_list(parser *p, scope *s, po_attr *a) {
    static const struct {
        const char *word;
        po_attr_kind kind;
    } words[] = {{"floats", PO_ATTR_FLOATS},
                 {"strings", PO_ATTR_STRINGS},
                 {"tensors", PO_ATTR_TENSORS},
                 {"graphs", PO_ATTR_GRAPHS}};
    po_scan *scan = &p->scan;
    a->kind = PO_ATTR_UNDEFINED;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (po_scan_take_word(scan, words[i].word))
            a->kind = words[i].kind;
    PO_TRY(po_scan_need(scan, "["));
    char c = po_scan_peek(scan);
    if (a->kind != PO_ATTR_UNDEFINED)
        ;
    else if (c == '"')
        a->kind = PO_ATTR_STRINGS;
    else if (po_scan_is_word(scan, "graph"))
        a->kind = PO_ATTR_GRAPHS;
    else if (po_scan_is_word(scan, "inf") || po_scan_is_word(scan, "nan"))
        a->kind = PO_ATTR_FLOATS;
    else if (c == ']' || c == '-' || (c >= '0' && c <= '9'))
        a->kind = po_scan_is_float(scan) ? PO_ATTR_FLOATS : PO_ATTR_INTS;
    else
        a->kind = PO_ATTR_TENSORS;
    static const size_t sizes[] = {[PO_ATTR_FLOATS] = sizeof(float),
                                   [PO_ATTR_INTS] = sizeof(int64_t),
                                   [PO_ATTR_STRINGS] = sizeof(po_bytes),
                                   [PO_ATTR_TENSORS] = sizeof(po_tensor *),
                                   [PO_ATTR_GRAPHS] = sizeof(po_graph *)};
    uint32_t n = 0, cap = 0;
    char *items = NULL;
    while (!po_scan_take(scan, "]")) {
        if (n)
            PO_TRY(po_scan_need(scan, ","));
        if (n == cap)
            items = po_arena_grow(p->arena, items, &cap, n + 1, sizes[a->kind]);
        char *item = items + n * sizes[a->kind];
        uint64_t bits;
        n++;
        switch (a->kind) {
        case PO_ATTR_FLOATS:
            PO_TRY(po_scan_float(scan, PO_F32, &bits));
            memcpy(item, &bits, sizeof(float));
            break;
        case PO_ATTR_INTS:
            PO_TRY(po_scan_i64(scan, (int64_t *)(void *)item));
            break;
        case PO_ATTR_STRINGS:
            PO_TRY(po_scan_string(scan, (po_bytes *)(void *)item));
            break;
        case PO_ATTR_TENSORS:
            PO_TRY(parse_tensor(p, (const po_tensor **)(void *)item));
            break;
        default: {
            po_graph *body = po_graph_create_body(s->graph, "");
            memcpy(item, &body, sizeof(body));
            PO_TRY(parse_graph(p, body, s));
        }
        }
    }
    a->n = n;
    a->u.ints = (const int64_t *)(void *)items;
    return PO_OK;
}

static po_status parse_attr(parser *p, scope *s, po_attr *a) {
    po_scan *scan = &p->scan;
    *a = (po_attr){.n = 1};
    PO_TRY(po_scan_name(scan, &a->name));
    PO_TRY(po_scan_need(scan, "="));
    char c = po_scan_peek(scan);
    if (po_scan_take_word(scan, "param")) {
        int64_t kind;
        PO_TRY(po_scan_need(scan, "("));
        PO_TRY(po_scan_i64(scan, &kind));
        if (kind < 0 || kind > PO_ATTR_TYPES)
            return po_scan_fail(scan, "no attribute kind has the number %lld", (long long)kind);
        a->kind = (po_attr_kind)kind;
        PO_TRY(po_scan_need(scan, ","));
        PO_TRY(po_scan_name(scan, &a->reference));
        return po_scan_need(scan, ")");
    }
    if (po_scan_is_word(scan, "verbatim"))
        return po_scan_fail(scan, "attribute '%s' was kept verbatim and not printed", a->name);
    if (po_scan_is_word(scan, "graph")) {
        a->kind = PO_ATTR_GRAPH;
        a->u.g = po_graph_create_body(s->graph, "");
        return parse_graph(p, a->u.g, s);
    }
    if (c == '"') {
        a->kind = PO_ATTR_STRING;
        return po_scan_string(scan, &a->u.s);
    }
    if (c == '[' || po_scan_is_word(scan, "floats") || po_scan_is_word(scan, "strings") ||
        po_scan_is_word(scan, "tensors") || po_scan_is_word(scan, "graphs"))
        return parse_list(p, s, a);
    bool special =
        po_scan_is(scan, "-inf") || po_scan_is_word(scan, "inf") || po_scan_is_word(scan, "nan");
    if (!special && c != '-' && !(c >= '0' && c <= '9')) {
        a->kind = PO_ATTR_TENSOR;
        return parse_tensor(p, &a->u.t);
    }
    if (special || po_scan_is_float(scan)) {
        uint64_t bits;
        a->kind = PO_ATTR_FLOAT;
        PO_TRY(po_scan_float(scan, PO_F32, &bits));
        memcpy(&a->u.f, &bits, sizeof a->u.f);
        return PO_OK;
    }
    a->kind = PO_ATTR_INT;
    return po_scan_i64(scan, &a->u.i);
}

/* --- nodes --- */

/* A Constant's value carries its tensor, as after import. */
static const po_tensor *constant_of(parser *p, const po_node *node) {
    if (strcmp(node->op_type, "Constant") != 0 || *node->domain)
        return NULL;
    const po_attr *a = NULL;
    for (uint32_t i = 0; i < node->n_attr; i++)
        if (strncmp(node->attr[i].name, "value", 5) == 0 && !node->attr[i].reference)
            a = &node->attr[i];
    if (!a)
        return NULL;
    po_dtype dtype;
    const void *data;
    switch (a->kind) {
    case PO_ATTR_TENSOR:
        return a->u.t;
    case PO_ATTR_FLOAT:
        return po_tensor_scalar_f32(p->arena, a->u.f);
    case PO_ATTR_INT:
        dtype = PO_I64;
        data = &a->u.i;
        break;
    case PO_ATTR_STRING:
        dtype = PO_STR;
        data = &a->u.s;
        break;
    case PO_ATTR_FLOATS:
        dtype = PO_F32;
        data = a->u.floats;
        break;
    case PO_ATTR_INTS:
        dtype = PO_I64;
        data = a->u.ints;
        break;
    case PO_ATTR_STRINGS:
        dtype = PO_STR;
        data = a->u.strings;
        break;
    default:
        return NULL;
    }
    bool list = a->kind >= PO_ATTR_FLOATS;
    po_tensor *t;
    int64_t dim = a->n;
    /* Neither the sizes nor the types can be refused. */
    if (po_tensor_wrap(p->scan.ctx, p->arena, dtype, list, &dim, data, &t) != PO_OK)
        return NULL;
    if (!list)
        t->data = po_arena_memdup(p->arena, data, dtype == PO_STR ? sizeof(po_bytes) : t->size);
    return t;
}

typedef struct ids {
    po_value_id *items;
    uint32_t n, cap;
} ids;

/* The outputs stand before the operator but are made after its inputs were looked up. */
typedef struct made {
    const char **names; /* NULL: omitted */
    uint32_t n, cap;
} made;

static po_status parse_outputs(parser *p, scope *s, made *m) {
    po_scan *scan = &p->scan;
    if (po_scan_take(scan, "(")) {
        PO_TRY(po_scan_need(scan, ")"));
        return po_scan_need(scan, "=");
    }
    do {
        const char *name = NULL;
        if (!po_scan_take_word(scan, "_"))
            PO_TRY(new_name(p, s->graph, &name));
        for (uint32_t i = 0; name && i < m->n; i++)
            if (m->names[i] && strcmp(m->names[i], name) == 0)
                return po_scan_fail(scan, "'%s' is named twice", name);
        PO_PUSH(p->scratch, m->names, m->n, m->cap, name);
    } while (po_scan_take(scan, ","));
    return po_scan_need(scan, "=");
}

static po_status parse_node(parser *p, scope *s, const made *m) {
    po_scan *scan = &p->scan;
    po_node_spec spec = {.n_out = m->n};
    const char *name;
    PO_TRY(po_scan_name(scan, &name));
    if (po_scan_take(scan, "::")) {
        spec.domain = name;
        PO_TRY(po_scan_name(scan, &name));
    }
    spec.op_type = name;
    if (po_scan_take(scan, ":"))
        PO_TRY(po_scan_name(scan, &spec.overload));
    ids in = {0};
    PO_TRY(po_scan_need(scan, "("));
    while (!po_scan_take(scan, ")")) {
        if (in.n)
            PO_TRY(po_scan_need(scan, ","));
        po_value_id id;
        PO_TRY(parse_input(p, s, &id));
        PO_PUSH(p->scratch, in.items, in.n, in.cap, id);
    }
    po_attr *attrs = NULL;
    uint32_t cap_attrs = 0;
    if (po_scan_take(scan, "{"))
        while (!po_scan_take(scan, "}")) {
            po_attr a;
            if (spec.n_attr)
                PO_TRY(po_scan_need(scan, ","));
            po_scan_peek(scan);
            const char *at = scan->at;
            PO_TRY(parse_attr(p, s, &a));
            for (uint32_t i = 0; i < spec.n_attr; i++)
                if (strcmp(attrs[i].name, a.name) == 0) {
                    scan->at = at;
                    return po_scan_fail(scan, "attribute '%s' is given twice", a.name);
                }
            PO_PUSH(p->scratch, attrs, spec.n_attr, cap_attrs, a);
        }
    po_value_id *out = PO_NEW_N(p->scratch, po_value_id, m->n);
    bool typed = po_scan_take(scan, ":");
    for (uint32_t i = 0; i < m->n; i++) {
        po_type type = {0};
        if (typed && i)
            PO_TRY(po_scan_need(scan, ","));
        if (typed && (m->names[i] || !po_scan_take_word(scan, "_")))
            PO_TRY(po_type_parse(scan, &type));
        out[i] = m->names[i] ? po_graph_add_value(s->graph, m->names[i], &type) : PO_NONE;
        if (m->names[i])
            declare(s, out[i]);
    }
    if (po_scan_take(scan, "@"))
        PO_TRY(po_scan_name(scan, &spec.name));
    spec.n_in = in.n;
    spec.in = in.items;
    spec.out = out;
    spec.attr = attrs;
    po_node_id id = po_graph_add_node(s->graph, &spec);
    if (m->n && out[0] != PO_NONE)
        s->graph->values[out[0]].constant = constant_of(p, &s->graph->nodes[id]);
    return PO_OK;
}

/* "w = f32[2] {...}" or a node. */
static po_status parse_statement(parser *p, scope *s) {
    po_scan *scan = &p->scan;
    made m = {0};
    PO_TRY(parse_outputs(p, s, &m));
    po_scan_peek(scan);
    const char *at = scan->at, *word;
    if (po_scan_is_word(scan, "verbatim"))
        return po_scan_fail(scan, "this initialiser was kept verbatim and not printed");
    PO_TRY(po_scan_name(scan, &word));
    bool tensor = po_scan_peek(scan) == '[';
    scan->at = at;
    if (!tensor)
        return parse_node(p, s, &m);
    if (m.n != 1 || !m.names[0])
        return po_scan_fail(scan, "a tensor needs one name");
    const po_tensor *t;
    PO_TRY(parse_tensor(p, &t));
    declare(s, po_graph_add_constant(s->graph, m.names[0], t));
    return PO_OK;
}

/* --- graphs --- */

static po_status parse_graph_input(parser *p, scope *s) {
    po_graph *g = s->graph;
    const char *name;
    po_type type = {0};
    PO_TRY(new_name(p, g, &name));
    if (po_scan_take(&p->scan, ":"))
        PO_TRY(po_type_parse(&p->scan, &type));
    po_value_id id = po_graph_add_input(g, name, &type);
    declare(s, id);
    if (!po_scan_take(&p->scan, "="))
        return PO_OK;
    const po_tensor *t;
    PO_TRY(parse_tensor(p, &t));
    g->values[id].constant = t;
    g->values[id].is_initializer = true;
    PO_PUSH(g->arena, g->initializers, g->n_initializers, g->cap_initializers, id);
    return PO_OK;
}

static po_status parse_graph(parser *p, po_graph *g, scope *outer) {
    po_scan *scan = &p->scan;
    scope s = {g, po_map_create(p->scratch), outer, outer ? outer->depth + 1 : 0};
    if (s.depth > MOST_DEPTH)
        return po_scan_fail(scan, "bodies are nested too deeply (limit %d)", MOST_DEPTH);
    PO_TRY(po_scan_take_word(scan, "graph") ? PO_OK : po_scan_fail(scan, "expected 'graph'"));
    PO_TRY(po_scan_name(scan, &g->name));
    PO_TRY(po_scan_need(scan, "("));
    while (!po_scan_take(scan, ")")) {
        if (g->n_inputs)
            PO_TRY(po_scan_need(scan, ","));
        PO_TRY(parse_graph_input(p, &s));
    }
    PO_TRY(po_scan_need(scan, "->"));
    PO_TRY(po_scan_need(scan, "("));
    po_scan_peek(scan);
    const char *at_outputs = scan->at;
    for (bool first = true; !po_scan_take(scan, ")"); first = false) {
        const char *name;
        if (!first)
            PO_TRY(po_scan_need(scan, ","));
        PO_TRY(po_scan_name(scan, &name));
    }
    PO_TRY(po_scan_need(scan, "{"));
    while (!po_scan_take(scan, "}"))
        PO_TRY(parse_statement(p, &s));
    /* Now the outputs' values exist. */
    const char *at_end = scan->at;
    scan->at = at_outputs;
    while (!po_scan_take(scan, ")")) {
        po_scan_take(scan, ",");
        po_scan_peek(scan);
        const char *at = scan->at, *name;
        PO_TRY(po_scan_name(scan, &name));
        po_value_id id = look_up(&s, name);
        if (id == PO_NONE) {
            scan->at = at;
            return po_scan_fail(scan, "nothing makes the output '%s'", name);
        }
        po_graph_add_output(g, id);
    }
    scan->at = at_end;
    return PO_OK;
}

static po_status parse_header(parser *p, po_model *model) {
    po_scan *scan = &p->scan;
    int64_t version;
    *model = (po_model){.arena = p->arena, .ir_version = 10};
    uint32_t cap = 0;
    if (po_scan_take_word(scan, "pir")) {
        PO_TRY(po_scan_i64(scan, &version));
        if (version != 1)
            return po_scan_fail(scan, "a later version of the text form (found %lld, limit 1)",
                                (long long)version);
        if (po_scan_take_word(scan, "ir_version")) {
            PO_TRY(po_scan_need(scan, "="));
            PO_TRY(po_scan_i64(scan, &model->ir_version));
        }
        while (po_scan_take_word(scan, "opset")) {
            po_opset opset = {.domain = ""};
            if (po_scan_take(scan, "(")) {
                PO_TRY(po_scan_name(scan, &opset.domain));
                PO_TRY(po_scan_need(scan, ")"));
            }
            PO_TRY(po_scan_need(scan, "="));
            PO_TRY(po_scan_i64(scan, &opset.version));
            PO_PUSH(p->arena, model->opsets, model->n_opsets, cap, opset);
        }
    } else {
        po_opset opset = {.domain = "", .version = 20};
        PO_PUSH(p->arena, model->opsets, model->n_opsets, cap, opset);
    }
    return PO_OK;
}

static void collect_tensor(parser *p, const po_tensor *t) {
    if (!t)
        return;
    po_hash_map_put(p->hashes, po_tensor_hash(t), p->n_tensors);
    PO_PUSH(p->scratch, p->tensors, p->n_tensors, p->cap_tensors, t);
}

static po_status collect_tensors(po_ctx *ctx, po_graph *graph, void *user) {
    (void)ctx;
    for (uint32_t i = 0; i < graph->n_values; i++)
        collect_tensor(user, graph->values[i].constant);
    for (uint32_t i = 0; i < graph->n_nodes; i++)
        for (uint32_t k = 0; k < graph->nodes[i].n_attr; k++) {
            const po_attr *a = &graph->nodes[i].attr[k];
            if (a->kind == PO_ATTR_TENSOR)
                collect_tensor(user, a->u.t);
            else if (a->kind == PO_ATTR_TENSORS)
                for (uint32_t j = 0; j < a->n; j++)
                    collect_tensor(user, a->u.tensors[j]);
        }
    return PO_OK;
}

static po_status parse_file(parser *p, po_graph *g) {
    g->model = PO_NEW(p->arena, po_model);
    g->model->graph = g;
    PO_TRY(parse_header(p, g->model));
    g->model->graph = g;
    PO_TRY(parse_graph(p, g, NULL));
    if (!po_scan_at_end(&p->scan))
        return po_scan_fail(&p->scan, "text after the graph's end");
    return po_graph_check(p->scan.ctx, g);
}

po_status po_graph_parse_with(po_ctx *ctx, const char *text, const po_graph *data,
                              po_graph **graph) {
    po_graph *g = po_graph_create(ctx, NULL, "");
    parser p = {.arena = g->arena, .scratch = po_arena_create(ctx)};
    po_scan_init(&p.scan, ctx, g->arena, text);
    po_status status = PO_OK;
    if (data) {
        p.hashes = po_hash_map_create(p.scratch);
        status = po_graph_walk(ctx, (po_graph *)(uintptr_t)data, collect_tensors, &p);
    }
    if (status == PO_OK)
        status = parse_file(&p, g);
    po_arena_free(p.scratch);
    if (status != PO_OK) {
        po_graph_free(g);
        return status;
    }
    *graph = g;
    return PO_OK;
}

po_status po_graph_parse(po_ctx *ctx, const char *text, po_graph **graph) {
    return po_graph_parse_with(ctx, text, NULL, graph);
}

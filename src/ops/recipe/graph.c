/* Recipes as a graph that prints, parses and can be computed again. */
#include "ir/function.h"
#include "ops/recipe/walk.h"
#include "ops/rewrite.h"

/* --- to a graph --- */

typedef struct writer {
    po_graph *to;
    po_recipe_walk walk;
    const char **names;         /* of roots: place + 1 in the walk gives the value that it makes */
    const po_recipe **recipes;  /* of the roots */
    uint32_t n, cap, cap_names; /* roots */
    po_value_id *made;          /* per place in the walk */
    po_map *sources;
    po_hash_map *nodes, *tables; /* places in the walk, of what was written, by contents */
} writer;

/* A source under its own name needs no recipe, and its name is the input's. */
static bool is_exported(const po_value *v, const char *prefix) {
    if (!prefix && v->recipe && v->recipe->kind == PO_RECIPE_SOURCE &&
        strcmp(v->recipe->name, v->name) == 0)
        return false;
    return v->constant && v->recipe && v->outer == PO_NONE && (v->n_uses || v->n_outputs) &&
           po_dtype_class_of(v->constant->dtype) == PO_CLASS_FLOAT;
}

static void collect_values(writer *w, const po_graph *graph, const char *prefix) {
    po_arena *arena = w->walk.arena;
    for (po_value_id i = 0; i < graph->n_values; i++) {
        const po_value *v = &graph->values[i];
        if (!is_exported(v, prefix))
            continue;
        uint32_t n = w->n;
        const char *name = prefix ? po_arena_printf(arena, "%s/%s", prefix, v->name) : v->name;
        PO_PUSH(arena, w->recipes, w->n, w->cap, v->recipe);
        PO_PUSH(arena, w->names, n, w->cap_names, name);
        po_recipe_walk_add(&w->walk, v->recipe, NULL);
    }
}

/* po_graph_walk does not take const graphs; nothing is changed. What the functions hold that the
 * graph calls has the names that it gets where they are put in the place of their calls
 * (po_inline_functions). */
static po_status collect(po_ctx *ctx, po_graph *graph, void *user) {
    (void)ctx;
    collect_values(user, graph, NULL);
    for (po_node_id i = 0; i < graph->n_nodes; i++) {
        const po_node *call = &graph->nodes[i];
        const po_function *f = call->removed ? NULL : po_graph_function(graph, call);
        if (f)
            collect_values(user, f->body, *call->name ? call->name : call->op_type);
    }
    return PO_OK;
}

static po_type type_of(const writer *w, const po_recipe *r) {
    return po_type_tensor_i64(w->to->arena, r->dtype, r->rank, r->dims);
}

/* Names that mean something are taken first: those of sources and of what is derived. */
static void add_names(writer *w) {
    w->made = PO_NEW_N(w->walk.arena, po_value_id, w->walk.n);
    memset(w->made, 0xff, w->walk.n * sizeof *w->made); /* PO_NONE */
    for (uint32_t k = 0; k < w->walk.n; k++) {
        const po_recipe *r = w->walk.items[k];
        if (r->kind != PO_RECIPE_SOURCE)
            continue;
        w->made[k] = po_map_get(w->sources, r->name);
        if (w->made[k] != PO_NONE)
            continue;
        po_type type = type_of(w, r);
        w->made[k] = po_graph_add_input(w->to, r->name, &type);
        po_map_put(w->sources, r->name, w->made[k]);
    }
}

/* A second constant of one recipe, or one that is a source or literal itself. */
static void add_copy(writer *w, po_value_id from, po_value_id to) {
    po_graph_add_node(w->to, &(po_node_spec){.op = PO_OP_Identity,
                                             .op_type = "Identity",
                                             .n_in = 1,
                                             .in = &from,
                                             .n_out = 1,
                                             .out = &to});
}

static bool same_node(const writer *w, const po_recipe *a, const po_recipe *b) {
    if (a->op != b->op || a->n_in != b->n_in || a->n_out != b->n_out || a->output != b->output ||
        a->n_attr != b->n_attr)
        return false;
    for (uint32_t i = 0; i < a->n_in; i++)
        if (!a->in[i] != !b->in[i] ||
            (a->in[i] && w->made[po_recipe_walk_place(&w->walk, a->in[i])] !=
                             w->made[po_recipe_walk_place(&w->walk, b->in[i])]))
            return false;
    for (uint32_t i = 0; i < a->n_attr; i++)
        if (strcmp(a->attr[i].name, b->attr[i].name) != 0 ||
            !po_attr_equal(&a->attr[i], &b->attr[i]))
            return false;
    return true;
}

/* The value of an equal expression that was written before, or PO_NONE. */
static po_value_id written(writer *w, uint32_t k) {
    const po_recipe *r = w->walk.items[k];
    bool literal = r->kind == PO_RECIPE_LITERAL;
    po_hash h = literal ? po_tensor_hash(r->tensor) : po_hash_u64((po_hash){0, 0}, r->op);
    for (uint32_t i = 0; !literal && i < r->n_in; i++)
        h = po_hash_u64(h, r->in[i] ? w->made[po_recipe_walk_place(&w->walk, r->in[i])] : PO_NONE);
    for (uint32_t i = 0; !literal && i < r->n_attr; i++)
        h = po_hash_u64(h, po_attr_hash(&r->attr[i]).lo);
    po_hash_map *map = literal ? w->tables : w->nodes;
    uint32_t first = po_hash_map_get(map, h);
    if (first == PO_NONE) {
        po_hash_map_put(map, h, k);
        return PO_NONE;
    }
    const po_recipe *other = w->walk.items[first];
    return (literal ? po_tensor_equal(other->tensor, r->tensor) : same_node(w, other, r))
               ? w->made[first]
               : PO_NONE;
}

static void add_node(writer *w, uint32_t k) {
    const po_recipe *r = w->walk.items[k];
    po_graph *g = w->to;
    po_value_id before = written(w, k);
    if (before != PO_NONE) {
        if (w->made[k] == PO_NONE)
            w->made[k] = before;
        else
            add_copy(w, before, w->made[k]);
        return;
    }
    po_value_id *in = PO_NEW_N(w->walk.arena, po_value_id, r->n_in);
    po_value_id *out = PO_NEW_N(w->walk.arena, po_value_id, r->n_out);
    for (uint32_t i = 0; i < r->n_in; i++)
        in[i] = r->in[i] ? w->made[po_recipe_walk_place(&w->walk, r->in[i])] : PO_NONE;
    for (uint32_t i = 0; i < r->n_out; i++) {
        po_type type = type_of(w, r);
        out[i] = i == r->output && w->made[k] != PO_NONE
                     ? w->made[k]
                     : po_graph_add_value(g, NULL, i == r->output ? &type : NULL);
    }
    w->made[k] = out[r->output];
    const po_op_row *row = po_op_row_of(r->op);
    po_graph_add_node(g, &(po_node_spec){.op = r->op,
                                         .op_type = row->name,
                                         .domain = row->domain,
                                         .n_in = r->n_in,
                                         .in = in,
                                         .n_out = r->n_out,
                                         .out = out,
                                         .n_attr = r->n_attr,
                                         .attr = r->attr});
}

static void add_table(writer *w, uint32_t k) {
    po_value_id before = written(w, k);
    w->made[k] =
        before != PO_NONE ? before : po_graph_add_constant(w->to, NULL, w->walk.items[k]->tensor);
}

po_status po_recipes_to_graph(po_ctx *ctx, const po_graph *graph, po_graph **recipes) {
    po_graph *g = po_graph_create(ctx, NULL, "recipes");
    po_arena_hold(g->arena, graph->arena);
    po_model *m = po_recipe_model(g->arena, graph->model);
    m->arena = g->arena;
    m->graph = g;
    g->model = m;
    po_arena *scratch = po_arena_create(ctx);
    writer w = {.to = g,
                .sources = po_map_create(scratch),
                .nodes = po_hash_map_create(scratch),
                .tables = po_hash_map_create(scratch)};
    po_recipe_walk_init(&w.walk, scratch);
    PO_TRY(po_graph_walk(ctx, (po_graph *)(uintptr_t)graph, collect, &w));
    add_names(&w);
    po_value_id *outputs = PO_NEW_N(scratch, po_value_id, w.n);
    for (uint32_t i = 0; i < w.n; i++) {
        po_type type = type_of(&w, w.recipes[i]);
        uint32_t k = po_recipe_walk_place(&w.walk, w.recipes[i]);
        outputs[i] = po_graph_add_value(g, w.names[i], &type);
        if (w.made[k] == PO_NONE && w.recipes[i]->kind == PO_RECIPE_OP)
            w.made[k] = outputs[i];
    }
    for (uint32_t k = 0; k < w.walk.n; k++) {
        if (w.walk.items[k]->kind == PO_RECIPE_OP)
            add_node(&w, k);
        else if (w.walk.items[k]->kind == PO_RECIPE_LITERAL)
            add_table(&w, k);
    }
    for (uint32_t i = 0; i < w.n; i++) {
        po_value_id from = w.made[po_recipe_walk_place(&w.walk, w.recipes[i])];
        if (from != outputs[i])
            add_copy(&w, from, outputs[i]);
        po_graph_add_output(g, outputs[i]);
    }
    po_arena_free(scratch);
    *recipes = g;
    if (w.n == 0) {
        po_graph_free(g);
        *recipes = NULL;
        return PO_OK;
    }
    return po_graph_check(ctx, g);
}

/* --- from a graph --- */

typedef struct by_name {
    po_arena *arena;
    po_map *places;
    const po_tensor **tensors;
    uint32_t n, cap;
} by_name;

static po_status collect_constants(po_ctx *ctx, po_graph *graph, void *user) {
    (void)ctx;
    by_name *b = user;
    for (po_value_id i = 0; i < graph->n_values; i++) {
        const po_value *v = &graph->values[i];
        if (!v->constant || v->outer != PO_NONE || !po_graph_constant(graph, i))
            continue;
        po_map_put(b->places, v->name, b->n);
        PO_PUSH(b->arena, b->tensors, b->n, b->cap, v->constant);
    }
    return PO_OK;
}

static po_status constants_of(po_ctx *ctx, po_arena *arena, const po_graph *graph, by_name *found) {
    *found = (by_name){.arena = arena, .places = po_map_create(arena)};
    return po_graph_walk(ctx, (po_graph *)(uintptr_t)graph, collect_constants, found);
}

static const po_tensor *find(const by_name *b, const char *name) {
    uint32_t at = po_map_get(b->places, name);
    return at == PO_NONE ? NULL : b->tensors[at];
}

po_status po_recipes_of(po_ctx *ctx, const po_graph *recipes, const po_graph *graph,
                        po_graph **out) {
    po_arena *scratch = po_arena_create(ctx);
    by_name there;
    uint32_t n = 0;
    PO_TRY(constants_of(ctx, scratch, graph, &there));
    po_graph *g = po_graph_clone(ctx, recipes);
    for (uint32_t i = 0; i < g->n_outputs; i++) {
        const po_value_id v = g->outputs[i];
        if (find(&there, g->values[v].name))
            g->outputs[n++] = v;
        else
            g->values[v].n_outputs--;
    }
    g->n_outputs = n;
    po_graph_sweep(g);
    po_arena_free(scratch);
    *out = g;
    if (n > 0)
        return PO_OK;
    po_graph_free(g);
    *out = NULL;
    return PO_OK;
}

/* True where the tensor is what the input's declared type says. */
static bool is_of(const po_tensor *t, const po_type *type) {
    if (type->dtype != t->dtype || !type->has_rank || type->rank != t->rank)
        return false;
    for (uint32_t i = 0; i < t->rank; i++)
        if (type->dims[i].value != t->dims[i])
            return false;
    return true;
}

/* Recipes of every value of the graph; *why is set where an input is no constant of the sources. */
static const po_recipe **read_recipes(po_arena *arena, const po_graph *recipes,
                                      const by_name *sources, const char **why) {
    const po_recipe **made = PO_NEW_N(arena, const po_recipe *, recipes->n_values);
    for (po_value_id i = 0; i < recipes->n_values; i++) {
        const po_value *v = &recipes->values[i];
        const po_tensor *t = v->is_input ? find(sources, v->name) : v->constant;
        if (v->is_input && (!t || !is_of(t, &v->type))) {
            *why = po_arena_printf(arena,
                                   t ? "source '%s' is of another type in the model"
                                     : "source '%s' is no constant of the model",
                                   v->name);
            return NULL;
        }
        if (!t)
            continue;
        po_recipe *r = PO_NEW(arena, po_recipe);
        *r = (po_recipe){.kind = v->is_input ? PO_RECIPE_SOURCE : PO_RECIPE_LITERAL,
                         .dtype = t->dtype,
                         .rank = t->rank,
                         .dims = t->dims,
                         .count = t->count,
                         .name = v->name,
                         .tensor = t};
        made[i] = r;
    }
    uint32_t n;
    const po_node_id *order = po_graph_order(recipes, arena, &n);
    for (uint32_t k = 0; k < n; k++) {
        const po_node *node = &recipes->nodes[order[k]];
        if (!po_op_row_of(node->op) || po_op_has(node->op, PO_OPF_CONTROL | PO_OPF_RANDOM)) {
            *why = po_arena_printf(arena, "operator %s is not one that recipes are made of",
                                   node->op_type);
            return NULL;
        }
        const po_recipe **in = PO_NEW_N(arena, const po_recipe *, node->n_in);
        for (uint32_t i = 0; i < node->n_in; i++)
            in[i] = node->in[i] == PO_NONE ? NULL : made[node->in[i]];
        for (uint32_t i = 0; i < node->n_out; i++) {
            if (node->out[i] == PO_NONE)
                continue;
            po_recipe *r = PO_NEW(arena, po_recipe);
            *r = (po_recipe){.kind = PO_RECIPE_OP,
                             .dtype = recipes->values[node->out[i]].type.dtype,
                             .op = node->op,
                             .n_in = node->n_in,
                             .n_attr = node->n_attr,
                             .n_out = node->n_out,
                             .output = i,
                             .in = in,
                             .attr = node->attr};
            made[node->out[i]] = r;
        }
    }
    return made;
}

static po_status check_output(po_ctx *ctx, po_arena *arena, const po_graph *recipes,
                              const po_recipe *recipe, const char *name, const po_tensor *stored,
                              const char **why) {
    if (!stored) {
        *why = po_arena_printf(arena, "'%s' is no constant of the written model", name);
        return PO_OK;
    }
    po_arena *scratch = po_arena_create(ctx);
    po_array *array;
    po_tensor *again;
    po_status status = po_recipe_eval(ctx, scratch, recipes->model, recipe, &array);
    if (status == PO_OK)
        status = po_array_to_tensor(ctx, scratch, array, &again);
    if (status == PO_OK && !po_tensor_equal(again, stored))
        *why = po_arena_printf(arena, "'%s' is not what its recipe gives", name);
    else if (status == PO_UNSUPPORTED)
        *why = po_arena_printf(arena, "the recipe of '%s' cannot be computed", name);
    po_arena_free(scratch);
    return status == PO_UNSUPPORTED ? PO_OK : status;
}

po_status po_recipes_check(po_ctx *ctx, po_arena *arena, const po_graph *recipes,
                           const po_graph *sources, const po_graph *graph, const char **why) {
    by_name from, stored;
    *why = NULL;
    PO_TRY(constants_of(ctx, arena, sources, &from));
    PO_TRY(constants_of(ctx, arena, graph, &stored));
    const po_recipe **made = read_recipes(arena, recipes, &from, why);
    for (uint32_t i = 0; made && i < recipes->n_outputs && !*why; i++) {
        po_value_id id = recipes->outputs[i];
        const char *name = recipes->values[id].name;
        PO_TRY(po_ctx_poll(ctx));
        if (!made[id])
            *why = po_arena_printf(arena, "'%s' is made by nothing", name);
        else
            PO_TRY(check_output(ctx, arena, recipes, made[id], name, find(&stored, name), why));
    }
    return PO_OK;
}

/* --- what has none --- */

typedef struct search {
    const by_name *sources;
    const po_map *outputs;
    const char *missing;
} search;

static po_status find_missing(po_ctx *ctx, po_graph *graph, void *user) {
    (void)ctx;
    search *s = user;
    for (po_value_id i = 0; i < graph->n_values && !s->missing; i++) {
        const po_value *v = &graph->values[i];
        if (!v->constant || v->outer != PO_NONE || (!v->n_uses && !v->n_outputs) ||
            !po_graph_constant(graph, i) ||
            po_dtype_class_of(v->constant->dtype) != PO_CLASS_FLOAT ||
            po_map_get(s->outputs, v->name) != PO_NONE)
            continue;
        const po_tensor *t = find(s->sources, v->name);
        if (!t || !po_tensor_equal(t, v->constant))
            s->missing = v->name;
    }
    return PO_OK;
}

po_status po_recipes_missing(po_ctx *ctx, po_arena *arena, const po_graph *recipes,
                             const po_graph *sources, const po_graph *graph, const char **name) {
    by_name from;
    po_map *outputs = po_map_create(arena);
    PO_TRY(constants_of(ctx, arena, sources, &from));
    for (uint32_t i = 0; recipes && i < recipes->n_outputs; i++)
        po_map_put(outputs, recipes->values[recipes->outputs[i]].name, i);
    search s = {&from, outputs, NULL};
    PO_TRY(po_graph_walk(ctx, (po_graph *)(uintptr_t)graph, find_missing, &s));
    *name = s.missing;
    return PO_OK;
}

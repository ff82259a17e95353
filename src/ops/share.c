/* Constants of many graphs, each kept once. */
#include "ops/share.h"

#include "ops/recipe/walk.h"

#include <stdlib.h>

typedef struct span {
    const char *data;
    size_t size;
} span;

struct po_shared {
    po_arena *arena;
    po_hash_map *places; /* by the hash of the bytes: in items */
    span *items;
    uint32_t n, cap;
};

po_shared *po_shared_create(po_arena *arena) {
    po_shared *shared = PO_NEW(arena, po_shared);
    shared->arena = arena;
    shared->places = po_hash_map_create(arena);
    return shared;
}

typedef struct sharing {
    po_shared *shared;
    po_arena *scratch;
    span *loose; /* of the graph's arena, by address */
    uint32_t n, cap;
    po_recipe_walk recipes;
} sharing;

static void add_span(void *user, const void *data, size_t size) {
    sharing *s = user;
    PO_PUSH(s->scratch, s->loose, s->n, s->cap, ((span){data, size}));
}

static int by_address(const void *a, const void *b) {
    const span *x = a, *y = b;
    return x->data < y->data ? -1 : x->data > y->data;
}

static bool is_loose(const sharing *s, const char *data) {
    uint32_t low = 0, high = s->n; /* the first that begins behind it */
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (s->loose[middle].data <= data)
            low = middle + 1;
        else
            high = middle;
    }
    return low > 0 && (size_t)(data - s->loose[low - 1].data) < s->loose[low - 1].size;
}

static void share_tensor(sharing *s, const po_tensor *t) {
    if (!t || t->dtype == PO_STR || !is_loose(s, t->data))
        return;
    po_shared *shared = s->shared;
    po_hash hash = po_hash_bytes(t->data, t->size, (po_hash){t->size, 0});
    uint32_t at = po_hash_map_get(shared->places, hash);
    if (at == PO_NONE || shared->items[at].size != t->size ||
        memcmp(shared->items[at].data, t->data, t->size) != 0) {
        at = shared->n;
        span copy = {po_arena_memdup(shared->arena, t->data, t->size), t->size};
        PO_PUSH(shared->arena, shared->items, shared->n, shared->cap, copy);
        po_hash_map_put(shared->places, hash, at);
    }
    po_tensor_rest_on(t, shared->items[at].data);
}

static void share_attributes(sharing *s, const po_attr *attr, uint32_t n) {
    for (uint32_t k = 0; k < n; k++) {
        if (attr[k].kind == PO_ATTR_TENSOR)
            share_tensor(s, attr[k].u.t);
        for (uint32_t j = 0; attr[k].kind == PO_ATTR_TENSORS && j < attr[k].n; j++)
            share_tensor(s, attr[k].u.tensors[j]);
    }
}

static po_status share_graph(po_ctx *ctx, po_graph *graph, void *user) {
    sharing *s = user;
    (void)ctx;
    for (po_value_id v = 0; v < graph->n_values; v++) {
        po_value *value = &graph->values[v];
        bool read = value->n_uses > 0 || value->n_outputs > 0 || value->is_input ||
                    value->is_initializer || value->producer != PO_NONE;
        if (!read) {
            value->constant = NULL;
            value->recipe = NULL;
        }
        share_tensor(s, value->constant);
        if (value->recipe)
            po_recipe_walk_add(&s->recipes, value->recipe, NULL);
    }
    for (po_node_id i = 0; i < graph->n_nodes; i++)
        share_attributes(s, graph->nodes[i].attr, graph->nodes[i].n_attr);
    return PO_OK;
}

void po_share_constants(po_shared *shared, po_graph *graph) {
    sharing s = {.shared = shared, .scratch = po_arena_child(shared->arena)};
    po_arena_visit_loose(graph->arena, add_span, &s);
    if (s.n > 0) {
        qsort(s.loose, s.n, sizeof *s.loose, by_address);
        po_recipe_walk_init(&s.recipes, s.scratch);
        po_graph_walk(po_arena_ctx(shared->arena), graph, share_graph, &s);
        for (uint32_t i = 0; i < s.recipes.n; i++) {
            share_tensor(&s, s.recipes.items[i]->tensor);
            share_attributes(&s, s.recipes.items[i]->attr, s.recipes.items[i]->n_attr);
        }
        po_arena_drop_loose(graph->arena);
    }
    po_arena_free(s.scratch);
}

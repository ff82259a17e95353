#include "ir/subprogram.h"

#include "base/arena.h"

static void free_graph(void *user) {
    po_graph_free(user);
}

void po_mutants_init(po_mutants *list, po_arena *arena) {
    *list = (po_mutants){.arena = arena};
}

bool po_mutants_add(po_mutants *list, const char *name, po_graph *graph) {
    for (uint32_t i = 0; i < list->n; i++)
        if (po_graph_equal(list->mutants[i].graph, graph)) {
            po_graph_free(graph);
            return false;
        }
    po_arena_keep(graph->arena); /* from here on the list's arena alone frees it */
    po_arena_defer(list->arena, free_graph, graph);
    po_mutant mutant = {po_arena_strdup(list->arena, name), graph};
    PO_PUSH(list->arena, list->mutants, list->n, list->cap, mutant);
    return true;
}

po_graph *po_mutant_start(po_ctx *ctx, const po_subprogram *sub, const po_value_id **inputs) {
    const po_graph *from = sub->graph;
    po_graph *graph = po_graph_create(ctx, from->model, from->name);
    po_value_id *ids = PO_NEW_N(graph->arena, po_value_id, from->n_inputs);
    for (uint32_t i = 0; i < from->n_inputs; i++) {
        const po_value *v = &from->values[from->inputs[i]];
        ids[i] = po_graph_add_input(graph, v->name, &v->type);
    }
    *inputs = ids;
    return graph;
}

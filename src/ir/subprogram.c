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

/* Lists of mutants, without repeats. */
#include "ir/subprogram.h"

#include "base/arena.h"

void po_mutants_init(po_mutants *list, po_arena *arena) {
    *list = (po_mutants){.arena = arena};
}

bool po_mutants_add(po_mutants *list, const char *name, po_graph *graph) {
    for (uint32_t i = 0; i < list->n; i++)
        if (po_graph_equal(list->mutants[i].graph, graph)) {
            po_graph_free(graph);
            return false;
        }
    po_arena_own(list->arena, graph->arena);
    po_mutant mutant = {po_arena_strdup(list->arena, name), graph};
    PO_PUSH(list->arena, list->mutants, list->n, list->cap, mutant);
    return true;
}

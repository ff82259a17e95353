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

bool po_reads_weights(const po_node *node, const bool *weight) {
    for (uint32_t i = 0; i < node->n_in; i++)
        if (node->in[i] != PO_NONE && !weight[node->in[i]])
            return false;
    return true;
}

bool *po_weights_of(const po_graph *graph, po_arena *arena, uint32_t n_activations) {
    bool *weight = PO_NEW_N(arena, bool, graph->n_values);
    for (po_value_id v = 0; v < graph->n_values; v++)
        weight[v] = graph->values[v].constant != NULL;
    for (uint32_t i = n_activations; i < graph->n_inputs; i++)
        weight[graph->inputs[i]] = true;
    uint32_t n;
    const po_node_id *order = po_graph_order(graph, arena, &n);
    for (uint32_t k = 0; k < n; k++) {
        const po_node *node = &graph->nodes[order[k]];
        bool all = po_reads_weights(node, weight);
        for (uint32_t i = 0; i < node->n_out; i++)
            if (node->out[i] != PO_NONE)
                weight[node->out[i]] = all;
    }
    return weight;
}

/* Subprograms: the parts of a model between its non-linear operators (PET, section 4.1), each as a
 * graph of its own, and the mutants that may take its place.
 *
 * Equal parts of a model are one subprogram with several occurrences: what is found for it is found
 * once. All tensors that it takes are inputs of its graph, weights too: whatever is shown of two
 * graphs with the same inputs holds for every weight. Constants that only shape an operator (axes,
 * dims, pads, indices) are initialisers. Every dim is static. */
#ifndef PO_IR_SUBPROGRAM_H
#define PO_IR_SUBPROGRAM_H

#include "ir/graph.h"

/* Where a subprogram stands in the model's graph. */
typedef struct po_occurrence {
    const po_value_id *in, *out; /* the model's values for the inputs and outputs of the graph */
    const po_node_id *nodes;     /* that it would take the place of */
    uint32_t n_nodes;
} po_occurrence;

typedef struct po_subprogram {
    const po_graph *graph;  /* inputs: activations first, then weights */
    uint32_t n_activations; /* how many of graph->inputs are activations */
    po_hash signature;      /* of the graph: operators, attributes, shapes, wiring */
    const po_occurrence *at;
    uint32_t n_at;
} po_subprogram;

/* A program with the inputs and outputs of a subprogram, in the same order and of the same types.
 * It may compute something else: only a proof makes it more than a guess. Nodes that read nothing
 * but weights run once, when the model is written. */
typedef struct po_mutant {
    const char *name; /* what was done, for reports: "dilation to phases" */
    po_graph *graph;
} po_mutant;

typedef struct po_mutants {
    po_arena *arena; /* of the array; graphs own themselves and go with it */
    po_mutant *mutants;
    uint32_t n, cap;
} po_mutants;

void po_mutants_init(po_mutants *list, po_arena *arena);
/* Takes the graph over. One that is there already (po_graph_equal) is freed, and false returned. */
bool po_mutants_add(po_mutants *list, const char *name, po_graph *graph);

/* By value: made of constants alone, and of the graph's inputs from `n_activations` on. */
bool *po_weights_of(const po_graph *graph, po_arena *arena, uint32_t n_activations);
/* Whether that is all that a node reads: it runs once. */
bool po_reads_weights(const po_node *node, const bool *weight);

#endif

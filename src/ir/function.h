/* Functions that petopt makes: a call node in the graph stands for a body, and the file holds that
 * body as a function of the model (docs/kernels.md). The functions that a model came with are
 * import's (po_inline_functions). */
#ifndef PO_IR_FUNCTION_H
#define PO_IR_FUNCTION_H

#include "ir/graph.h"

/* The domain of calls that a generated kernel may stand for (codegen/delivery/library.h), and its
 * version.
 */
#define PO_KERNEL_DOMAIN "petopt.kernels"
enum { PO_KERNEL_DOMAIN_VERSION = 1 };

/* The first IR version whose files may hold functions. */
enum { PO_FUNCTION_IR = 8 };

/* Lives in the root graph (po_graph.functions); clones share it. */
struct po_function {
    const char *domain, *name; /* of the calls: their domain and op_type */
    const po_graph *body;      /* a root graph of the same model, all of whose inputs and outputs
                                  the calls give, in order; it outlives every graph that has it */
};

/* The function of a call, or NULL. */
const po_function *po_graph_function(const po_graph *graph, const po_node *call);

/* Adds a function to the root graph of `graph`. A second one of the same domain and name is taken
 * to be the same. */
void po_graph_add_function(po_graph *graph, const po_function *function);

typedef struct po_outline {
    const char *domain, *name;
    const char *node_name; /* of the call; NULL: none */
    uint32_t n_nodes, n_in, n_out;
    const po_node_id *nodes; /* of `graph`, convex: no path leaves them and comes back */
    const po_value_id *in;   /* everything that the nodes read and do not make, but for constants
                                that the body is to hold itself, as Constant nodes */
    const po_value_id *out;  /* everything of theirs that is read outside, or given as a result */
} po_outline;

/* Moves nodes into a function and puts one call in their place. The body is a new root graph, for
 * the caller to edit (unpacking of weights) and to hold; it has the types of the graph's values.
 * The call's outputs are the values `out` themselves, names and uses kept. PO_UNSUPPORTED before
 * operator set 9, and where a value that is read outside is not in `out`, or one that is read
 * inside is neither made there, in `in`, nor constant. */
po_status po_graph_outline(po_ctx *ctx, po_graph *graph, const po_outline *outline, po_graph **body,
                           po_node_id *call);

/* Puts the bodies of the graph's functions in the place of their calls, those in bodies too; the
 * functions are gone from it. What a body names V is then CALL/V, CALL being the call's name, or
 * its operator where it has none. *inlined (may be NULL): how many calls. */
po_status po_graph_inline(po_ctx *ctx, po_graph *graph, uint32_t *inlined);

#endif

/* Graphs that keep the samples of a batch apart, and the same graph for any number of them.
 *
 * A value keeps n samples apart along an axis of n m places where those from m i to m i + m are of
 * sample i alone. A graph that was made for n samples holds that number where a Reshape states a
 * shape or an Expand a size; everything else follows. With these left open it takes any number. */
#ifndef PO_OPS_SAMPLES_H
#define PO_OPS_SAMPLES_H

#include "ops/op.h"

/* By value: the axis along which it keeps samples apart, or that it is the same for all of them,
 * or, where only parts of a graph are followed (po_samples_apart_parts), that it may be of several.
 */
enum { PO_NO_SAMPLES = -1, PO_MIXED_SAMPLES = -3 };

/* By value, all but inputs PO_NO_SAMPLES: 0 for inputs whose first axis is open in `like`, where
 * they have the same names. */
int8_t *po_samples_inputs(po_arena *arena, const po_graph *graph, const po_graph *like);

/* Follows samples through a graph of static types. axis: by value; set for inputs by the caller,
 * filled for what nodes make. PO_UNSUPPORTED, with the node: samples are mixed, or another number
 * of them would need other nodes. Operators without a sum (ops/sem) are taken at their shapes'
 * word. */
po_status po_samples_follow(po_ctx *ctx, const po_graph *graph, int64_t samples, int8_t *axis);

/* Opens a graph that was made for so many samples: inputs and outputs take the types that `like`
 * has for them, whose first axes are open, and what nodes make is inferred anew. PO_UNSUPPORTED
 * where it would not be the same for another number of samples; the graph is then of no use. */
po_status po_samples_open(po_ctx *ctx, po_graph *graph, const po_graph *like, int64_t samples);

/* Whether the first axis of some inputs is open, nothing else, and of the same number for all. */
bool po_samples_are_open(const po_graph *graph);

/* Shows that a graph, of which the first axes of some inputs are open and nothing else, makes of
 * each sample what it makes of it alone, whatever their number up to a million. PO_UNSUPPORTED,
 * with the node, where that is not seen. axis: by output. */
po_status po_samples_apart(po_ctx *ctx, po_arena *arena, const po_graph *open, int8_t **axis);
/* The same of all that nodes make. axis: by value. */
po_status po_samples_apart_values(po_ctx *ctx, po_arena *arena, const po_graph *open,
                                  int8_t **axis);
/* The same of the part of a graph of which it is seen: what another node makes, and all that is
 * made of that, is PO_MIXED_SAMPLES. *why: the first such node, in the arena; NULL: there is none.
 */
po_status po_samples_apart_parts(po_ctx *ctx, po_arena *arena, const po_graph *open, int8_t **axis,
                                 const char **why);

#endif

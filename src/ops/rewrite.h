/* What rewrites are written with: questions about constants and operators, and short ways to add
 * nodes. Used by simplify and postopt. */
#ifndef PO_OPS_REWRITE_H
#define PO_OPS_REWRITE_H

#include "ops/op.h"

/* The node that makes the value if it is this operator, else NULL. */
const po_node *po_made_by(const po_graph *graph, po_value_id value, po_op_id op);
/* The same, and the value has no other reader: its producer may be absorbed. */
const po_node *po_made_alone_by(const po_graph *graph, po_value_id value, po_op_id op);
/* Neither read elsewhere nor an output: only the node at the given use sees it. */
bool po_read_once(const po_graph *graph, po_value_id value);

/* True where the value is a constant with a single element, of a float or integer type. */
bool po_scalar_constant(const po_graph *graph, po_value_id value, double *number);
/* True where every element of the constant is this number. */
bool po_all_equal(const po_tensor *tensor, double number);
/* f32 or f64: the types whose arithmetic may be rearranged within rounding. */
bool po_rearrangeable(const po_graph *graph, po_value_id value);
/* The dims of a value with a static shape; NULL otherwise. *rank is set. */
const po_dim *po_static_dims(const po_graph *graph, po_value_id value, uint32_t *rank);
/* Dim `axis` (negative: from the end) where the rank and this dim are known, else -1. */
int64_t po_dim_of(const po_graph *graph, po_value_id value, int axis);
/* Rank, or -1 where it is not known. */
int po_rank_of(const po_graph *graph, po_value_id value);
/* Product of static dims, -1 where it overflows: the places that lie before an axis. */
int64_t po_places(const po_dim *dims, uint32_t n);
/* The shape that makes y of x as a Reshape is told it (room for PO_MAX_RANK): numbers, 0 where y is
 * as long as x at the same place (but at axis `but` of x; PO_NONE: at any), -1 for one length that
 * is left. False where that does not say it: two are left, or one beside a copy, which may be 0. */
bool po_told_shape(const po_type *x, const po_type *y, uint32_t but, int64_t *shape);
/* Both ranks are known and every dim is known to be the same; the dtypes may differ. */
bool po_same_dims(const po_graph *graph, po_value_id a, po_value_id b);
/* Equal known ranks, and every dim but along one axis is known to be the same. */
bool po_same_dims_but(const po_graph *graph, po_value_id a, po_value_id b, int axis);
/* The scales of a Resize or Upsample, one for each of so many axes, where they are constants. */
bool po_resize_scales(const po_graph *graph, const po_node *node, uint32_t rank, double *scale);
/* Whether a Resize or Upsample of so many axes makes each longer by a whole factor: what constant
 * scales say, or the shapes where sizes were given. */
bool po_whole_factors(const po_graph *graph, const po_node *node, uint32_t rank, int64_t *factor);
/* Whether a nearest Resize or Upsample of so many axes only repeats elements, by whole factors. */
bool po_repeats(const po_graph *graph, const po_node *node, uint32_t rank, int64_t *factor);
/* A constant of one element and at most one axis (a bound of Clip, a factor), which means the same
 * in every layout and beside every part of a tensor; or an input left out (PO_NONE). */
bool po_number_or_none(const po_graph *graph, po_value_id value);

/* True where the operators that make an f32 or f64 value show that no element is below 0 (sign.c).
 * The proof takes this for a law (docs/proof.md). */
bool po_never_negative(const po_graph *graph, po_value_id value);

/* Factors of products are all that is made of the value, perhaps moved or reshaped first
 * (masked.c): what is off by nothing beside the sum is off by nothing in them. The proof asks. */
bool po_only_factors(const po_graph *graph, po_value_id value);
/* Whether a number that hides elements from a softmax may have been added to the value or put into
 * it: a constant of 87 or more among what it is made of by element-wise nodes and moves. */
bool po_looks_masked(const po_graph *graph, po_value_id value);

/* How many axes the node is told to reduce, at most `most`, and which, counted from 0; 0 where they
 * are not constants, too many, or beyond a rank that is known. */
uint32_t po_reduced_axes(const po_graph *graph, const po_node *node, uint32_t most, uint32_t *axes);
/* The same for the axes of another shape, of so many: what Unsqueeze puts in. */
uint32_t po_axes_of(const po_graph *graph, const po_node *node, int rank, uint32_t most,
                    uint32_t *axes);

/* Numbers that no constant of the model is the source of (tables, 1/n), rounded from doubles, as an
 * initialiser. Its recipe is a literal: what is derived from weights is added by po_add_recipe. */
po_value_id po_add_floats(po_graph *graph, const char *name, po_dtype dtype, uint32_t rank,
                          const int64_t *dims, const double *values);
po_value_id po_add_i64s(po_graph *graph, const char *name, uint32_t n, const int64_t *values);
/* The same of any shape, row by row. */
po_value_id po_add_i64s_shaped(po_graph *graph, uint32_t rank, const int64_t *dims,
                               const int64_t *values);

/* Adds an operator with one output beside `place`; returns the output's id. The output's type is
 * `type` (may be NULL: not known). Attributes are set afterwards with po_node_set_*, on
 * graph->values[result].producer. */
po_value_id po_add_op(po_graph *graph, po_node_id place, po_op_id op, uint32_t n_in,
                      const po_value_id *in, const po_type *type);

/* Adds a node of another's operator and attributes beside `place`, with one output of that type;
 * returns it. */
po_value_id po_add_like(po_graph *graph, po_node_id place, const po_node *like, uint32_t n_in,
                        const po_value_id *in, const po_type *type);

/* Adds a Transpose of x beside `place`; returns its output. type may be NULL: x's, of no known
 * shape. */
po_value_id po_add_transpose(po_graph *graph, po_node_id place, po_value_id x, uint32_t rank,
                             const int64_t *perm, const po_type *type);

/* Adds a Cast of x beside `place`; returns its output. */
po_value_id po_add_cast(po_graph *graph, po_node_id place, po_value_id x, po_dtype to);

/* Adds a Concat along an axis beside `place`; returns its output. */
po_value_id po_add_concat(po_graph *graph, po_node_id place, uint32_t n, const po_value_id *in,
                          int64_t axis, const po_type *type);

/* Adds a Slice of n axes, one range each, beside `place`; returns its output. Negative ends count
 * from the axis' own; other steps than 1 (steps may be NULL) want opset 10. */
po_value_id po_add_slice(po_graph *graph, po_node_id place, po_value_id x, uint32_t n,
                         const int64_t *axes, const int64_t *starts, const int64_t *ends,
                         const int64_t *steps, const po_type *type);

/* Adds a Reshape to static dims beside `place`; returns its output. */
po_value_id po_add_reshape(po_graph *graph, po_node_id place, po_value_id x, uint32_t rank,
                           const int64_t *dims);
/* The same as a Reshape is told: 0 copies a length, -1 is what is left, and behind them come the
 * lengths that `more` holds (PO_NONE: none). type may be NULL: x's, of no known shape. */
po_value_id po_add_reshape_told(po_graph *graph, po_node_id place, po_value_id x, uint32_t n,
                                const int64_t *dims, po_value_id more, const po_type *type);

/* Adds what tells lengths [from, from + n) of x when the model runs beside `place`. */
po_value_id po_add_lengths(po_graph *graph, po_node_id place, po_value_id x, int64_t from,
                           int64_t n);

/* Makes every reader of `from` read `to` instead and, where `from` was an output that `to` cannot
 * take over (an input, a constant, an output already), keeps it as Identity(to). The producer of
 * `from` is removed where nothing of it is used any more. */
void po_substitute(po_graph *graph, po_value_id from, po_value_id to);

#endif

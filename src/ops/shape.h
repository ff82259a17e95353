/* What all shape rules share: failing with the node's name, axes, broadcasting with symbolic dims,
 * contents of small integer tensors. Symbols that a rule puts into its results must be those of its
 * inputs (they outlive the rule's arena). */
#ifndef PO_OPS_SHAPE_H
#define PO_OPS_SHAPE_H

#include "ops/op.h"

/* Contents are propagated for tensors of at most this many elements. */
enum { PO_PARTIAL_MAX = 1024 };

/* PO_BAD_INPUT with "node 'name' (Op): " in front. Without a context nothing is recorded. */
__attribute__((format(printf, 3, 4))) po_status po_rule_bad(po_ctx *ctx, const po_node *node,
                                                            const char *format, ...);
/* Axis in [-rank, rank-1] to [0, rank-1]; PO_BAD_INPUT outside. */
po_status po_rule_axis(po_ctx *ctx, const po_node *node, int64_t axis, uint32_t rank,
                       uint32_t *found);
/* The same without a message: false where it lies outside. */
bool po_axis_at(int64_t axis, uint32_t rank, uint32_t *at);

/* Type of input k where it is given and is a tensor, else NULL. */
const po_type *po_infer_tensor(const po_infer *infer, uint32_t k);
/* Element type of input k; PO_DT_NONE where it is not known. */
po_dtype po_infer_dtype(const po_infer *infer, uint32_t k);

/* Sets output k where the node has it. Dims are copied. */
void po_infer_set(const po_infer *infer, uint32_t k, po_dtype dtype, uint32_t rank,
                  const po_dim *dims);
void po_infer_set_unranked(const po_infer *infer, uint32_t k, po_dtype dtype);
/* Output k has the type's shape (unranked as the type is, or where it is NULL) and the given
 * element type. Dims are shared. */
void po_infer_set_as(const po_infer *infer, uint32_t k, po_dtype dtype, const po_type *type);
/* Output k has the shape of input 0 and the given element type. */
void po_infer_set_like(const po_infer *infer, uint32_t k, po_dtype dtype);

/* All contents of the integer input k, from a constant or from propagation: true where every
 * element is known. Values are in the rule's arena. Rank 0 gives one. */
bool po_infer_ints(const po_infer *infer, uint32_t k, uint32_t *n, const int64_t **values);
/* Contents of input k element by element (-1 and no symbol: unknown; numbers below 0:
 * po_size_item); NULL where nothing is known. */
const po_partial *po_infer_partial(const po_infer *infer, uint32_t k);
/* Number of elements of the 1-D (or scalar) input k; -1 where not known. */
int64_t po_infer_length(const po_infer *infer, uint32_t k);

/* Gives output k contents; `items` are copied. Nothing where there are too many. */
void po_infer_set_partial(const po_infer *infer, uint32_t k, uint32_t n, const po_dim *items);

/* An element of a small integer tensor as shape arithmetic sees it. */
typedef struct po_item {
    bool known;   /* value holds */
    bool natural; /* at least 0 */
    int64_t value;
    const char *symbol; /* the dim that it equals, or NULL */
} po_item;

/* Elements of input k (I64, I32 or bool, rank 0 or 1); false where nothing is known of them. */
bool po_infer_items(const po_infer *infer, uint32_t k, uint32_t *n, const po_item **items);
/* Gives output k contents; elements that do not fit its dtype count as unknown. */
void po_infer_set_items(po_infer *infer, uint32_t k, uint32_t n, const po_item *items);
/* Contents of output 0 of Add, Sub, Mul, Div, Mod, Min, Max, comparisons and logic. */
void po_contents_binary(po_infer *infer);
/* Of Where. */
void po_contents_where(po_infer *infer);

/* Tells who asks (po_infer_demands) what one of two dims must be, where the other is known. */
void po_rule_demand(const po_infer *infer, po_demand_kind kind, po_dim a, po_dim b);
/* Numpy broadcasting of two dims. A length above 1 against an unknown one gives the length: the
 * model would not run otherwise. PO_BAD_INPUT where they contradict one another. */
po_status po_rule_broadcast_dim(const po_infer *infer, po_dim a, po_dim b, po_dim *both);
/* Broadcasts `n` shapes (numpy rules) into *out (unranked where one of them is). The dtype of *out
 * is left alone. PO_BAD_INPUT where they do not fit. */
po_status po_infer_broadcast(po_infer *infer, uint32_t n, const po_type *const *shapes,
                             po_type *out);

/* Infers a body of a control operator: the caller has merged what it knows into the types of the
 * body's inputs. Captured values take their types from the parent graph. */
po_status po_infer_body(po_infer *infer, po_graph *body);
/* Merges a type into a value's; a contradiction is ignored (bodies declare what they like). */
void po_infer_merge(po_graph *graph, po_value_id value, const po_type *type);

#endif

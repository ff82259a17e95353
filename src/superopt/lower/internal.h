/* What the parts of the lowering share. */
#ifndef PO_SUPEROPT_LOWER_PRIVATE_H
#define PO_SUPEROPT_LOWER_PRIVATE_H

#include "superopt/lower/lower.h"

/* Where a value lies: index of the tensor's axis x is base[x] + sum of coef[x][j] * (the value's
 * index j). */
typedef struct po_view {
    bool set;
    uint32_t tensor, rank; /* of the tensor */
    int64_t base[PO_MU_MAX_RANK];
    int64_t coef[PO_MU_MAX_RANK][PO_MU_MAX_RANK];
} po_view;

/* An index that is affine in labels. */
enum { PO_AFFINE_TERMS = 8 };
typedef struct po_lower_index {
    int64_t offset;
    uint32_t n;
    po_mu_term terms[PO_AFFINE_TERMS];
} po_lower_index;

/* The place of a value in one that a Concat makes. */
typedef struct po_lower_part_of {
    po_value_id whole; /* PO_NONE: it has a tensor of its own */
    uint32_t axis;
    int64_t offset;
} po_lower_part_of;

typedef struct po_lowering {
    po_ctx *ctx;
    po_arena *arena;
    const po_graph *graph;
    const po_region *region;
    po_mu *mu;
    po_view *view;            /* by value */
    bool *channels_last;      /* by value */
    bool *done;               /* by node: lowered */
    uint32_t *place;          /* by node: number in the region, or PO_NONE */
    uint32_t *output;         /* by value: number among the region's outputs, or PO_NONE */
    po_lower_part_of *joined; /* by value */
    po_value_id *weights;
    uint32_t n_weights, cap_weights;
} po_lowering;

/* --- values (lower.c) --- */

/* Dims of a value, its rank; all static (po_lower_part). */
const po_dim *po_lower_dims(const po_lowering *l, po_value_id v, uint32_t *rank);
/* Makes storage for a value that a step writes, where it has none yet. */
const po_view *po_lower_storage(po_lowering *l, po_value_id v);
/* A value that is read: constants become WEIGHT tensors. NULL where it was not lowered yet. */
const po_view *po_lower_read(po_lowering *l, po_value_id v);
/* Before the value is read at these indices: where they reach past its edges, and what lies there
 * is not what lies past the edges of its tensor (it is a slice, or lies flat), it gets a tensor of
 * its own. */
void po_lower_settle(po_lowering *l, po_value_id v, const po_lower_index *at);
/* The access of an element: at[j] is the value's index j. */
po_mu_access po_lower_access(po_lowering *l, const po_view *view, const po_lower_index *at);
/* Reads the statement's `v` at these indices. */
uint32_t po_lower_operand(po_lowering *l, uint32_t statement, po_value_id v,
                          const po_lower_index *at);
/* One label an axis of the value, none where it has length 1. */
void po_lower_labels(po_lowering *l, po_value_id v, po_lower_index *at);

/* Where both sums and maxima read a tensor past its ends, the maxima read a copy: a ring holds one
 * number (edge.c). */
void po_lower_part_edges(po_mu *mu);

/* --- parts of joined values (join.c) --- */

void po_lower_plan_joins(po_lowering *l);
/* Where a value is to be written that is part of another; false: it is none. */
bool po_lower_join(po_lowering *l, po_value_id v, po_view *view);
/* Whether an input of a Concat lies already where that puts it. */
bool po_lower_is_joined(po_lowering *l, const po_node *node, uint32_t input);

/* --- expressions (expr.c) --- */

bool po_lower_is_map(const po_graph *graph, const po_node *node);
/* Whether it asks of numbers what one Where alone reads: that one computes it, and no step does. */
bool po_lower_is_test(const po_graph *graph, const po_node *node);
/* How a fused statement reads what stands before it. */
typedef struct po_lower_chain {
    uint32_t statement;
    po_value_id start;       /* what stands before; PO_NONE: nothing */
    uint32_t start_item;     /* of the statement */
    const po_node_id *nodes; /* of the chain, in order; the last makes the chain's result */
    uint32_t n_nodes;
    uint32_t rank;            /* of the result */
    const po_dim *dims;       /* likewise */
    const po_lower_index *at; /* its indices */
} po_lower_chain;
enum { PO_LOWER_CHAIN = 32 };
/* The item that the value is. PO_NONE where a form is missing. */
uint32_t po_lower_value(po_lowering *l, const po_lower_chain *chain, po_value_id v);

/* --- chains (chain.c) --- */

/* The element-wise nodes that can be computed behind `first` (in order, `first` itself not among
 * them) so that only the last one's value is seen by others; their number. `first` makes `v`. */
uint32_t po_lower_follow(po_lowering *l, po_node_id first, po_value_id v,
                         po_node_id nodes[PO_LOWER_CHAIN]);

/* --- steps: PO_UNSUPPORTED, not recorded, where a form is missing --- */

/* Ends a step: `anchor` (PO_NONE: none) made the value `v` at indices `at` in `statement` (a naive
 * one, whose output is not set). What can be computed behind it is fused to it. The value is
 * scale * what the statement makes plus the terms that `extra` adds: it returns the item, NULL:
 * nothing to add. */
typedef struct po_lower_end {
    uint32_t step, statement;
    po_node_id node;
    po_value_id value;
    const po_lower_index *at; /* PO_MU_MAX_RANK of them */
    double scale;
    /* What follows, where several steps make parts of one value (po_lower_follow); NULL: found. */
    const po_node_id *follow;
    uint32_t n_follow;
    /* Appends to the fused statement; gets the item so far; PO_NONE where it cannot. */
    uint32_t (*extra)(po_lowering *l, uint32_t statement, uint32_t item, void *user);
    void *user;
} po_lower_end;
po_status po_lower_finish(po_lowering *l, const po_lower_end *end);

/* lower_writer.c: steps written item by item, over the labels of one value each. */
typedef struct po_steps {
    po_lowering *l;
    po_value_id value;                 /* a step has a label for each of its axes */
    uint32_t step, statement;          /* the step that was started last */
    po_lower_index at[PO_MU_MAX_RANK]; /* what its tensors are read and written at */
} po_steps;
void po_steps_start(po_steps *b, const char *name, po_mu_combine combine);
void po_steps_output(po_steps *b, const po_view *to);
uint32_t po_steps_read(po_steps *b, const po_view *from);
uint32_t po_steps_item(po_steps *b, po_mu_function f, uint32_t x, uint32_t y);
uint32_t po_steps_number(po_steps *b, double value);
/* Ends the last step, which has no output yet, as po_lower_finish does. */
po_status po_steps_finish(po_steps *b, const po_node *node);

po_status po_lower_sum(po_lowering *l, const po_node *node); /* sum.c */
/* Whether it would find a form; in_pieces: of several steps too, that each write a block. */
bool po_lower_sum_fits(po_ctx *ctx, po_arena *arena, const po_graph *graph, const po_node *node,
                       bool in_pieces);
po_status po_lower_map(po_lowering *l, const po_node *node); /* chain.c */
/* rows.c: Softmax, ReduceL2; whether they have a form that these read. */
po_status po_lower_softmax(po_lowering *l, const po_node *node);
po_status po_lower_norm(po_lowering *l, const po_node *node);
bool po_lower_rows_fit(const po_graph *graph, const po_node *node);
po_status po_lower_max_pool(po_lowering *l, const po_node *node); /* pool.c */
/* instance.c */
po_status po_lower_instance(po_lowering *l, const po_node *node);
bool po_lower_instance_fits(const po_graph *graph, const po_node *node);
/* layer.c */
po_status po_lower_layer(po_lowering *l, const po_node *node);
bool po_lower_layer_fits(const po_graph *graph, const po_node *node);
/* maximum.c */
po_status po_lower_reduce_max(po_lowering *l, const po_node *node);
bool po_lower_maximum_fits(const po_graph *graph, const po_node *node);

#endif

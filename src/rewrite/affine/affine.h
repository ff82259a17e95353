/* Affine maps y = a x + b, one (a, b) for the whole tensor or one for each index of an axis: what
 * chains of Mul, Add, Sub, Div, Neg by constants and inference batch normalisation amount to.
 * Decisions look at the numbers; what is stored is derived by the recipes. */
#ifndef PO_REWRITE_AFFINE_AFFINE_H
#define PO_REWRITE_AFFINE_AFFINE_H

#include "ops/recipe/recipe.h"
#include "ops/rewrite.h"

typedef struct po_affine {
    po_value_id x, y; /* from, to */
    po_node_id first; /* the node that reads x */
    int axis;         /* of x, counted from 0; -1: one pair for the whole tensor */
    uint32_t n;       /* pairs: the length of the axis, or 1 */
    double *a, *b;
    const po_recipe *ra, *rb; /* how a and b are made, rank 0 or [n]: by po_affine_derive; NULL: the
                                 numbers are literals */
    uint32_t nodes;           /* length of the chain */
} po_affine;

/* The longest chain of affine nodes that ends in `y`, values between read by nothing else. False
 * where y is not made by an affine node, its type is not f32 or f64, or a coefficient is not
 * finite in that type. */
bool po_affine_match(const po_graph *graph, po_arena *arena, po_value_id y, po_affine *affine);
/* States how the matched coefficients are made, while the chain is still there. */
void po_affine_derive(const po_graph *graph, po_arena *arena, po_affine *affine);

bool po_affine_is_scale(const po_affine *affine); /* every b is 0 */
bool po_affine_is_shift(const po_affine *affine); /* every a is 1 */

/* The recipe of a or b with its axis as axis `at` of `rank`, the others of length 1; a single
 * number has rank 0. Either broadcasts to the channels of a tensor. */
const po_recipe *po_affine_scale(po_arena *arena, const po_affine *m, uint32_t rank, uint32_t at);
const po_recipe *po_affine_shift(po_arena *arena, const po_affine *m, uint32_t rank, uint32_t at);

/* Adds nodes that compute a x + b beside `place`; returns the result (x itself where a = 1 and
 * b = 0). `rank` is x's. */
po_value_id po_affine_emit(po_graph *graph, po_node_id place, po_value_id x, const po_affine *m);

/* absorb.c: puts the whole map into the weights of what makes x (nothing else may read x). True
 * where that happened; the chain's nodes are then gone. For MatMul only the scale goes in and the
 * shift stays as an Add. */
bool po_affine_absorb_back(po_graph *graph, po_arena *arena, const po_affine *m);
/* Lets one reader of y read x instead, the map put into its weights. With `ask` nothing is changed:
 * the answer tells whether it could be. */
bool po_affine_absorb_ahead(po_graph *graph, po_arena *arena, const po_affine *m, po_use use,
                            bool ask);
/* The part x + b / a that is left once a scale has gone ahead; false where some a is 0. */
bool po_affine_without_scale(po_arena *arena, const po_affine *m, po_affine *scale,
                             po_affine *shift);
/* Moves the map behind one reader that it commutes with (pooling means, for one): the reader reads
 * x and what read the reader's output reads the mapped one. */
bool po_affine_pass(po_graph *graph, po_arena *arena, const po_affine *m, po_use use);

#endif

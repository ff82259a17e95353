/* Random programs of linear operators on small shapes, and random mutants of them: convolutions of
 * one to three map axes with strides, dilations, groups and padding, transposed ones, matrix
 * products, reshapes with transposed digits, slices, concatenations, pads, pools, sums, products of
 * activations, constants.
 *
 * A mutant is the same program from the same draws, in which steps are written in another way:
 * batch merged into width, dilation to phases, channels or taps split, detours of moved data. Some
 * of these ways are right, some nearly so: a gap too short, a slice beside, a term dropped or
 * doubled, digits swapped, a kernel flipped. */
#ifndef TEST_RANDOM_LINEAR_H
#define TEST_RANDOM_LINEAR_H

#include "ops/op.h"

/* NULL where the draws make no program. Types are inferred, registry rows set. */
po_graph *test_random_linear(po_ctx *ctx, uint64_t seed);
/* NULL too where inputs or outputs came out otherwise than the program's. */
po_graph *test_random_mutant(po_ctx *ctx, uint64_t seed, uint64_t mutation);

#endif

/* Pairs of models with open dims: equal at every size, and equal at few. */
#ifndef TEST_SIZE_PAIRS_H
#define TEST_SIZE_PAIRS_H

#include "verify/proof/proof.h"

typedef struct size_pair {
    const char *name, *in, *a, *b; /* inputs, and nodes that make y of them */
} size_pair;

typedef struct size_pairs {
    const size_pair *row;
    uint32_t n;
} size_pairs;

typedef enum size_table {
    SIZES_EQUAL,    /* the same at every size */
    SIZES_FROM_ONE, /* where no length is 0; there they are not, or one is refused */
    SIZES_FEW,      /* the same at the sizes that are usual, and others elsewhere */
    SIZES_PLANTED,  /* each of which one obligation of the proof alone tells apart, mostly */
    SIZE_TABLES
} size_table;

size_pairs size_pairs_of(size_table table);
/* Fails the test where one is no graph. */
po_proof_report size_pair_prove(po_ctx *ctx, const size_pair *p, const char *in);
/* Whether more is said than what holds of a pair of the table. */
bool size_pair_fooled(size_table table, const po_proof_report *r);

/* What pairs are made of. */
#define TOKENS "x: f32[\"N\",\"T\",6]"
#define MAPS   "x: f32[\"N\",3,\"H\",\"W\"]"
#define COUNT  " s = Shape(x)\n n = Gather(s, one: i64[] {1}) {axis=0}\n"
#define ROWS   " s = Shape(x)\n n = Gather(s, one: i64[] {2}) {axis=0}\n"
/* Multiples of five: the first length that is tried and taken is 320. */
#define FIVES  "x: f32[2,1,5,\"W\"]"
#define FORCED "q = SpaceToDepth(x) {blocksize=5}\n z = ReduceMax(q) {axes=[1,2,3],keepdims=1}\n"
#define CUT(to, from, end, axis)                                                                   \
    " " to " = Slice(x, a" to ": i64[1] {" from "}, b" to ": i64[1] {" end "}, c" to               \
    ": i64[1] {" axis "})\n"

/* size_pairs_planted.c */
extern const size_pair size_planted[];
extern const uint32_t n_size_planted;

#endif

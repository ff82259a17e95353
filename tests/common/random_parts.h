/* What the parts of the generator of random programs share (random_linear.h). */
#ifndef TEST_RANDOM_PARTS_H
#define TEST_RANDOM_PARTS_H

#include "random_linear.h"
#include "rewrite/deriving.h"

typedef struct maker {
    po_deriving d; /* for the po_mk_ helpers */
    uint64_t seed, mutation;
    bool mutant;
    uint32_t draws, variations, altered; /* altered: the draw that comes out otherwise */
} maker;

typedef struct tensor {
    uint32_t n;
    int64_t dim[PO_MOST_DIMS];
} tensor;

/* random_parts.c: draws of the program (the same in a mutant, but for one perhaps); draws of the
 * mutant (0: as the program is written); values. */
int64_t rl_draw(maker *m, int64_t from, int64_t to);
bool rl_chance(maker *m, int64_t one_in);
int64_t rl_vary(maker *m, int64_t n, uint64_t percent);
tensor rl_dims_of(maker *m, po_value_id v);
int64_t rl_count_of(const tensor *t);
po_value_id rl_input(maker *m, uint32_t n, const int64_t *dims);
po_value_id rl_made(maker *m, po_op_id op, uint32_t n_in, const po_value_id *in, const tensor *t);
po_node_id rl_node_of(maker *m, po_value_id v);
po_value_id rl_slice(maker *m, po_value_id v, uint32_t axis, int64_t begin, int64_t count,
                     int64_t step);
po_value_id rl_reversed(maker *m, po_value_id v, uint32_t axis);
po_value_id rl_swapped(maker *m, po_value_id v, uint32_t a, uint32_t b);
po_value_id rl_digits(maker *m, po_value_id v, uint32_t axis, int64_t inner);
po_value_id rl_merged(maker *m, po_value_id v, uint32_t axis);
po_value_id rl_moved(maker *m, po_value_id v, uint32_t from, uint32_t to);
/* What is moved and moved back, in mutants alone. */
po_value_id rl_detour(maker *m, po_value_id v);

/* random_conv.c */
po_value_id rl_conv_step(maker *m, po_value_id x);

#endif

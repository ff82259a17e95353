/* Random small graphs of the operators that regions take: convolutions of one to three map axes
 * with strides, dilations, groups and padding, transposed ones, pools, products with a constant and
 * of two values, softmax, norms, reductions, element-wise chains, moves, several outputs; odd
 * lengths and lengths of 1. */
#ifndef TEST_RANDOM_REGIONS_H
#define TEST_RANDOM_REGIONS_H

#include "base/str.h"

/* Text that parses (ir/text.h), the same for a seed. */
const char *test_random_region(po_arena *arena, uint64_t seed);

#endif

/* What a batch makes beside what its samples make one by one. */
#ifndef TEST_PARTS_H
#define TEST_PARTS_H

#include "ops/op.h"

/* How far the part of sample i, of `many` along the axis, is from `one`; INFINITY where it is of
 * another shape. axis < 0: all of it is of every sample. */
double test_part_differs(const po_array *all, int64_t many, const po_array *one, int axis,
                         int64_t i);

#endif

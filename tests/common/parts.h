/* What a batch makes beside what its samples make one by one, by the reference. */
#ifndef TEST_PARTS_H
#define TEST_PARTS_H

#include "ops/op.h"

enum { TEST_SAMPLES = 4, TEST_MOST_INPUTS = 16 };

/* The graph with so many samples, or any number for n < 0, along the first axes of the inputs in
 * the mask. To be freed by the caller. */
po_graph *test_with_samples(po_ctx *ctx, const po_graph *graph, uint32_t mask, int64_t n);

/* The largest difference between what TEST_SAMPLES samples make and what each of them makes alone,
 * on drawn inputs, of which those that are not in the mask are the same for all. axis: by output,
 * that along which samples lie; below 0: it is the same for all. INFINITY where shapes differ; NAN
 * where the reference does not take it. */
double test_samples_apart(po_ctx *ctx, po_arena *arena, const po_graph *graph, uint32_t mask,
                          const int8_t *axis);

#endif

/* Tests of rewrites: a graph before and after, compared on random inputs in float64. */
#ifndef TEST_REWRITING_H
#define TEST_REWRITING_H

#include "ops/op.h"

/* Parses a .pir text, sets the registry rows and infers types. Aborts the test on failure. */
po_graph *test_graph(po_ctx *ctx, const char *text);
/* The value of this name. Aborts the test where there is none. */
po_value_id test_value(const po_graph *graph, const char *name);
/* Live nodes of an operator type, bodies included. */
uint32_t test_count(const po_graph *graph, const char *op_type);
/* Largest difference of any output over the largest magnitude of that output, with normal random
 * inputs (integers 0..3, bools 0 or 1); unknown dims are taken as 5. NaN where shapes or kinds of
 * outputs differ or a reference is missing. */
double test_difference(po_ctx *ctx, const po_graph *a, const po_graph *b, uint64_t seed);
/* What is wrong with how the constants of `after` are stated (ops/recipe/recipe.h): each float
 * constant is one of `before` by name and bits or has a recipe that gives its bits, also once the
 * recipes were printed and parsed. NULL: nothing. The text is the arena's of `after`. */
const char *test_recipe_fault(po_ctx *ctx, const po_graph *before, const po_graph *after);
/* Prints a fault of a case, where there is one; how many that is. */
int test_tell(const char *name, const char *fault);

#endif

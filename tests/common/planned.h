/* A small graph that is one region, with its plan: for tests of schedules. */
#ifndef TEST_PLANNED_H
#define TEST_PLANNED_H

#include "ops/op.h"
#include "superopt/plan/plan.h"
#include "superopt/plan/row_fusion.h"

typedef struct test_planned {
    po_ctx ctx;
    po_arena *arena;
    po_graph *graph;
    po_regions regions;
    po_plan plan;
} test_planned;

/* exact: no kernels that round otherwise than sums in another order do. */
void test_planned_start(test_planned *f, const char *graph, bool exact);
void test_planned_end(test_planned *f);

/* The graph's one input: floats from -1 to 1. */
po_array *test_planned_input(test_planned *f);
/* Evaluates a muGraph with the graph's constants for weights, packed as f->plan.packed has it or
 * as they are. */
po_status test_planned_eval(test_planned *f, const po_mu *mu, bool packed, const po_array *in,
                            double *out);

/* Steps from a node on, each by its first choice, in bands of so many rows; false where there are
 * fewer. */
bool test_planned_bands(test_planned *f, uint32_t node, uint32_t n, int64_t rows, po_row_fusion *b);

/* A choice for a step: its place among all of the step, what it is told as, its program by itself
 * and what is printed of that for AVX2. */
typedef struct test_printed {
    uint32_t place;
    const char *told, *text;
    const po_mu *mu;
} test_printed;
/* Whether it was one to look at. */
typedef bool (*test_printed_fn)(const test_printed *choice, const void *user);

/* Runs `each` with the scheduler's choices for the steps of a graph, as they are listed for an
 * instruction set; how many were looked at. */
uint32_t test_planned_printed(const char *graph, const char *scheduler, const po_isa *isa,
                              test_printed_fn each, const void *user);

#endif

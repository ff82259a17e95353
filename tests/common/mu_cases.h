/* muGraphs with what they compute, told by plain loops. */
#ifndef TEST_MU_CASES_H
#define TEST_MU_CASES_H

#include "mugraph/mugraph.h"

typedef struct test_mu_case {
    const char *name, *text;
    /* Dense, row-major arrays by number; one output. */
    void (*reference)(const double *const *in, const double *const *weight, double *out);
} test_mu_case;

extern const test_mu_case test_mu_cases[];
extern const uint32_t n_test_mu_cases;

const test_mu_case *test_mu_case_of(const char *name);
/* Elements of the tensor of a place and number; 0 where there is none. */
int64_t test_mu_count(const po_mu *mu, po_mu_place place, uint32_t number);
/* Random normal values for all inputs or weights of a muGraph, by number. */
const double **test_mu_values(const po_mu *mu, po_arena *arena, po_mu_place place, uint64_t seed,
                              double scale);

#endif

/* Small graphs for postopt: what must be gone, how many of an operator there must be, and the same
 * function in float64. */
#ifndef TEST_SAMPLES_H
#define TEST_SAMPLES_H

#include "postopt/postopt.h"

typedef struct test_sample {
    const char *name, *graph;
    const char *gone;     /* operators that must not be left, separated by spaces */
    const char *count_of; /* an operator ... */
    int count;            /* ... and how many of it must be there */
    po_leftover_form leftover;
} test_sample;

typedef struct test_sample_list {
    const test_sample *samples;
    size_t n;
} test_sample_list;

/* *state is a list; prints what is wrong, and fails where any sample is. */
void test_samples_run(void **state);
/* The cmocka test of an array of samples. */
#define TEST_SAMPLES(array)                                                                        \
    {                                                                                              \
        "samples", test_samples_run, NULL, NULL, &(test_sample_list) {                             \
            array, sizeof(array) / sizeof *(array)                                                 \
        }                                                                                          \
    }

#endif

/* MuGraphs that the printer is tested on. */
#ifndef TEST_KERNEL_CASES_H
#define TEST_KERNEL_CASES_H

#include <stdint.h>

typedef struct kernel_case {
    const char *name;
    double k; /* |y - float64| <= k u S(v) */
    const char *text;
} kernel_case;

extern const kernel_case kernel_cases[];
extern const uint32_t n_kernel_cases;

#endif

/* Small graphs for tests of schedules. */
#ifndef TEST_SCHEDULE_CASES_H
#define TEST_SCHEDULE_CASES_H

#include <stdint.h>

/* One that is there for a scheduler is named after it. */
typedef struct schedule_case {
    const char *name, *graph;
} schedule_case;

extern const schedule_case schedule_cases[];
extern const uint32_t n_schedule_cases;

#endif

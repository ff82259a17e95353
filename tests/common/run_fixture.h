/* A run of the pipeline by estimates on one graph, without a cache. */
#ifndef TESTS_RUN_FIXTURE_H
#define TESTS_RUN_FIXTURE_H

#include "pipeline/pipeline.h"

typedef struct run_fixture {
    po_ctx ctx;
    po_options options;
    po_run_state state;
} run_fixture;

/* The model in the text form of test_graph. */
void run_fixture_start(run_fixture *f, const char *model);
void run_fixture_end(run_fixture *f);

#endif

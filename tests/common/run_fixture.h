/* A run of the pipeline by estimates on one graph, without a cache. */
#ifndef TESTS_RUN_FIXTURE_H
#define TESTS_RUN_FIXTURE_H

#include "pipeline/pipeline.h"
#include "pipeline/variants.h"

typedef struct run_fixture {
    po_ctx ctx;
    po_options options;
    po_run run;
    po_imported imported;     /* the model, as it is */
    po_simplified simplified; /* the same */
    po_variant_list variants;
    po_selected selected; /* the original, at first */
} run_fixture;

/* The model in the text form of test_graph. */
void run_fixture_start(run_fixture *f, const char *model);
/* Forms of the model, as postopt makes them; and what select takes of f->variants. */
void run_fixture_postopt(run_fixture *f);
void run_fixture_select(run_fixture *f);
void run_fixture_end(run_fixture *f);

#endif

/* Runs of the pipeline for tests. */
#include "run_fixture.h"

#include "rewriting.h"
#include "unit.h"

void run_fixture_start(run_fixture *f, const char *model) {
    *f = (run_fixture){.options = po_options_default()};
    po_ctx_init(&f->ctx);
    f->options.model_cost = true;
    f->options.cache = "";
    po_run_begin(&f->run, &f->ctx, &f->options, po_arena_create(&f->ctx), 0);
    po_graph *g = test_graph(&f->ctx, model);
    po_run_hold(&f->run, g);
    f->imported = (po_imported){.original = g, .graph = g};
    f->simplified.graph = g;
    f->selected.winner.graph = g;
    po_variant_list_begin(&f->variants, &f->imported, &f->simplified, &(po_kernels){0});
}

void run_fixture_postopt(run_fixture *f) {
    const po_chosen chosen = {.recall = NULL};
    const po_kernels kernels = {.library = NULL};
    if (po_stage_postopt(&f->run, &f->imported, &f->simplified, &chosen, &kernels, &f->variants) !=
        PO_OK)
        fail_msg("%s", f->ctx.error.message);
}

void run_fixture_select(run_fixture *f) {
    if (po_stage_select(&f->run, &f->imported, &f->variants, 0, &f->selected) != PO_OK)
        fail_msg("%s", f->ctx.error.message);
}

void run_fixture_end(run_fixture *f) {
    po_arena_free(f->run.files);
    po_arena_free(f->run.arena);
}

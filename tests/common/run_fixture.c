/* Runs of the pipeline for tests. */
#include "run_fixture.h"

#include "rewriting.h"

void run_fixture_start(run_fixture *f, const char *model) {
    *f = (run_fixture){.options = po_options_default()};
    po_ctx_init(&f->ctx);
    f->options.model_cost = true;
    f->options.cache = "";
    po_run_begin(&f->state.run, &f->ctx, &f->options, po_arena_create(&f->ctx), 0);
    po_graph *g = test_graph(&f->ctx, model);
    po_run_hold(&f->state.run, g);
    f->state.original = f->state.current = f->state.winner = g;
}

void run_fixture_end(run_fixture *f) {
    po_arena_free(f->state.run.files);
    po_arena_free(f->state.run.arena);
}

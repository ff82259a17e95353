/* Runs of the pipeline for tests. */
#include "run_fixture.h"

#include "rewriting.h"

void run_fixture_start(run_fixture *f, const char *model) {
    *f = (run_fixture){.options = po_options_default()};
    po_ctx_init(&f->ctx);
    f->options.model_cost = true;
    f->options.cache = "";
    po_arena *arena = po_arena_create(&f->ctx);
    f->state = (po_run_state){.ctx = &f->ctx,
                              .options = &f->options,
                              .arena = arena,
                              .files = po_arena_create(&f->ctx),
                              .record = po_record_create(arena)};
    po_graph *g = test_graph(&f->ctx, model);
    po_pipeline_hold(&f->state, g);
    f->state.original = f->state.current = f->state.winner = g;
}

void run_fixture_end(run_fixture *f) {
    po_arena_free(f->state.files);
    po_arena_free(f->state.arena);
}

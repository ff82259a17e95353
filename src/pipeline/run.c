/* Setting up a run, and what its stages open on first use. */
#include "pipeline/run.h"

#include "cost/cost.h"
#include "cost/roofline.h"
#include "ops/share.h"
#include "pipeline/budget.h"

void po_run_begin(po_run *run, po_ctx *ctx, const po_options *options, po_arena *arena,
                  double started) {
    *run = (po_run){.ctx = ctx,
                    .options = options,
                    .arena = arena,
                    .files = po_arena_create(ctx),
                    .record = po_record_create(arena),
                    .budget = PO_NEW(arena, po_budget),
                    .services = PO_NEW(arena, po_services)};
    run->budget->started = started;
}

bool po_run_skips(const po_run *run, const char *part) {
    return po_options_has(run->options->skip, run->options->n_skip, part);
}

void po_run_hold(const po_run *run, po_graph *graph) {
    po_services *services = run->services;
    if (!services->shared)
        services->shared = po_shared_create(run->arena);
    po_share_constants(services->shared, graph);
    po_arena_own(run->arena, graph->arena);
}

po_status po_run_cost(const po_run *run, po_cost **cost) {
    po_cost_options options = {.cache = po_options_cache(run->options)};
    if (!run->services->cost)
        PO_TRY(po_cost_open(run->ctx, run->files, &options, &run->services->cost));
    *cost = run->services->cost;
    return PO_OK;
}

po_status po_run_rates(const po_run *run, po_rates *rates) {
    po_cost *cost;
    PO_TRY(po_run_cost(run, &cost));
    if (run->options->cuda)
        *rates = (po_rates){.gpu = run->gpu, .tf32 = run->options->tf32};
    else
        po_rates_of_machine(cost, rates);
    return PO_OK;
}

po_status po_run_inputs(const po_run *run, po_arena *arena, const po_graph *graph,
                        const po_graph *other, po_inputs **plan) {
    PO_TRY(po_inputs_plan(run->ctx, arena, graph, other, plan));
    return po_inputs_want(run->ctx, arena, *plan, run->options->sizes, run->options->n_sizes);
}

double po_run_room(const po_graph *original) {
    return 3 * (double)po_record_weights(original) + 265e6;
}

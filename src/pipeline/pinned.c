/* Whether the runtime takes a model with the dims that --input-shape named. A branch for other
 * lengths may not fit them, which runtimes see on loading: such a model runs, but only with its
 * dims open. */
#include "cost/cost.h"
#include "export/export.h"
#include "pipeline/budget.h"
#include "pipeline/candidates.h"
#include "pipeline/pin.h"
#include "pipeline/pipeline.h"
#include "select/lengths.h"

#include <stdio.h>

typedef struct job {
    const po_run *run;
    po_arena *arena;
    const po_cost *cost;
    const po_graph *open, *pinned;
    bool *stay_open;
} job;

static const char kind[] = "pinned";
enum { TRIES = 16 };
static const double looking = 10; /* seconds */

/* Runs the model at the path with inputs of the pinned dims: any, then such as its branches go by.
 */
static po_status run_any(const job *j, const po_timing_spec *brief, const po_inputs *plan) {
    po_ctx *ctx = j->run->ctx;
    po_timing_spec spec = *brief;
    po_feed feed;
    po_timing timing;
    po_status status = PO_OK;
    double end = po_now() + looking;
    spec.feed = &feed;
    for (uint32_t k = 0; k < TRIES && (k == 0 || po_now() < end); k++) {
        po_ctx_clear(ctx);
        PO_TRY(po_inputs_make(ctx, j->arena, plan, 0, k ? PO_INPUTS_BORDERS : PO_INPUTS_NORMAL,
                              k + 1, &feed));
        status = po_time_models(ctx, &spec, &timing, NULL);
        if (status != PO_RUNTIME)
            break;
    }
    return status;
}

static po_status plan_of(const job *j, const po_graph *graph, po_inputs **plan) {
    po_graph *typed;
    PO_TRY(po_pin_inputs(j->run->ctx, graph, NULL, 0, &typed));
    po_run_hold(j->run, typed);
    return po_inputs_plan(j->run->ctx, j->arena, typed, typed, plan);
}

static po_status ask(const job *j) {
    const po_run *run = j->run;
    po_ctx *ctx = run->ctx;
    po_candidate_store store;
    po_candidate made;
    const char *open;
    po_inputs *plan;
    po_timing timing;
    uint32_t size;
    char why[PO_MESSAGE_MAX];
    po_candidate_store_init(&store, j->arena);
    PO_TRY(po_candidate_write(ctx, &store, j->pinned, &made));
    PO_TRY(po_candidate_original(ctx, &store, j->open, &open));
    po_side_files files = po_candidate_files(&store);
    const char *pinned = made.path;
    po_timing_spec spec = po_timing_brief(j->cost->library, ctx->threads, &pinned, &files);
    PO_TRY(plan_of(j, j->pinned, &plan));
    po_status status = run_any(j, &spec, plan);
    if (status != PO_RUNTIME)
        return status;
    snprintf(why, sizeof why, "%s", ctx->error.message);
    po_ctx_clear(ctx);
    spec.models = &open;
    status = run_any(j, &spec, plan);
    *j->stay_open = status == PO_OK;
    if (status != PO_RUNTIME)
        return status;
    po_ctx_clear(ctx);
    /* Where it runs at no other lengths either, the shapes are not what it is about: select tells.
     */
    PO_TRY(plan_of(j, j->open, &plan));
    PO_TRY(po_time_at_first(ctx, j->arena, plan, &spec, po_now() + looking, &timing, NULL, &size));
    return po_fail(ctx, PO_BAD_USE,
                   "--input-shape: the runtime does not take the model with these shapes: %.600s",
                   why);
}

static po_status look(job *j) {
    po_hash key;
    uint32_t known = 0;
    PO_TRY(po_export_hash(j->run->ctx, j->pinned, &key));
    key = po_hash_u64(po_hash_u64(po_cost_key(j->cost), key.lo), key.hi);
    if (po_cache_get_fixed(j->cost->cache, kind, key, &known, sizeof known)) {
        *j->stay_open = known != 0;
        return PO_OK;
    }
    PO_TRY(ask(j));
    known = *j->stay_open;
    po_cache_put(j->cost->cache, kind, key, &known, sizeof known);
    return PO_OK;
}

po_status po_pinned_check(const po_run *run, const po_graph *open, const po_graph *pinned,
                          bool *stay_open) {
    po_cost *cost;
    *stay_open = false;
    if (run->options->level < 1 || run->options->cuda)
        return PO_OK;
    PO_TRY(po_run_cost(run, &cost));
    if (!cost->machine.has_runtime)
        return PO_OK;
    job j = {run, po_arena_create(run->ctx), cost, open, pinned, stay_open};
    po_status status = look(&j);
    po_arena_free(j.arena);
    if (status == PO_OK && *stay_open)
        po_record_note(run->record,
                       "the dims of --input-shape stay open: with them pinned the runtime does not "
                       "take the model, where a branch is for other lengths");
    if (status == PO_OK || status == PO_BAD_USE || status == PO_CANCELLED ||
        status == PO_TIME_LIMIT || status == PO_NO_MEMORY)
        return status;
    po_ctx_clear(run->ctx); /* whatever it is, select says it of the original */
    return PO_OK;
}

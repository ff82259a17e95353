/* Whether the runtime takes a model with the dims that --input-shape named. A branch for other
 * lengths may not fit them, which runtimes see on loading: such a model runs, but only with its
 * dims open. */
#include "cost/cost.h"
#include "export/export.h"

#include "pipeline/budget.h"
#include "pipeline/candidates.h"
#include "pipeline/pin.h"
#include "verify/inputs.h"

#include <stdio.h>

typedef struct job {
    po_run_state *state;
    po_arena *arena;
    const po_cost *cost;
    const po_graph *open, *pinned;
    bool *stay_open;
} job;

/* What is kept of it. */
typedef struct answer {
    uint32_t stay_open, unused;
} answer;

static const char kind[] = "pinned";
enum { TRIES = 8 };
static const double looking = 10; /* seconds */

/* Runs the model with inputs of the pinned dims: any, then such as its branches go by. */
static po_status run_any(const job *j, const po_graph *graph, const po_inputs *plan, uint32_t size,
                         uint32_t tries) {
    po_ctx *ctx = j->state->ctx;
    po_candidate_store store;
    po_candidate made;
    po_feed feed;
    po_timing timing;
    po_candidate_store_init(&store, j->arena);
    PO_TRY(po_candidate_write(ctx, &store, graph, &made));
    po_side_files files = po_candidate_files(&store);
    const char *path = made.path;
    po_timing_spec spec = {.files = &files,
                           .library = j->cost->library,
                           .threads = ctx->threads,
                           .n = 1,
                           .models = &path,
                           .feed = &feed,
                           .quick = 1,
                           .seed = 1};
    po_status status = PO_OK;
    double end = po_now() + looking;
    for (uint32_t k = 0; k < tries && (k == 0 || po_now() < end); k++) {
        po_ctx_clear(ctx);
        PO_TRY(po_inputs_make(ctx, j->arena, plan, size, k ? PO_INPUTS_BORDERS : PO_INPUTS_NORMAL,
                              k + 1, &feed));
        status = po_time_models(ctx, &spec, &timing, NULL);
        if (status != PO_RUNTIME)
            break;
    }
    return status;
}

/* PO_RUNTIME: the model does not run at lengths that it is tried at without --input-shape. */
static po_status runs_otherwise(const job *j) {
    po_run_state *state = j->state;
    po_inputs *plan;
    po_graph *typed;
    double end = po_now() + looking;
    PO_TRY(po_pin_inputs(state->ctx, j->open, NULL, 0, &typed));
    po_pipeline_hold(state, typed);
    po_status status = po_inputs_plan(state->ctx, j->arena, typed, typed, &plan);
    for (uint32_t size = 0; status == PO_OK && size < po_inputs_sizes(plan); size++) {
        status = run_any(j, j->open, plan, size, 1);
        if (status != PO_RUNTIME || size + 1 == po_inputs_sizes(plan) || po_now() > end)
            break;
        po_ctx_clear(state->ctx);
        status = PO_OK;
    }
    po_pipeline_drop(state, typed);
    return status;
}

static po_status ask(const job *j) {
    po_run_state *state = j->state;
    po_ctx *ctx = state->ctx;
    po_graph *typed;
    po_inputs *plan;
    char why[PO_MESSAGE_MAX];
    PO_TRY(po_pin_inputs(ctx, j->pinned, NULL, 0, &typed));
    po_pipeline_hold(state, typed);
    po_status status = po_inputs_plan(ctx, j->arena, typed, typed, &plan);
    if (status == PO_OK)
        status = run_any(j, j->pinned, plan, 0, TRIES);
    if (status == PO_RUNTIME) {
        snprintf(why, sizeof why, "%s", ctx->error.message);
        po_ctx_clear(ctx);
        status = run_any(j, j->open, plan, 0, TRIES);
        *j->stay_open = status == PO_OK;
    }
    po_pipeline_drop(state, typed);
    if (status != PO_RUNTIME)
        return status;
    po_ctx_clear(ctx);
    PO_TRY(runs_otherwise(j)); /* else the shapes are not what it is about: select tells */
    return po_fail(ctx, PO_BAD_USE,
                   "--input-shape: the runtime does not take the model with these shapes: %.600s",
                   why);
}

static po_status look(job *j) {
    po_hash key;
    answer known = {0, 0};
    PO_TRY(po_export_hash(j->state->ctx, j->pinned, &key));
    key = po_hash_u64(po_hash_u64(po_cost_key(j->cost), key.lo), key.hi);
    if (po_cache_get_fixed(j->cost->cache, kind, key, &known, sizeof known)) {
        *j->stay_open = known.stay_open != 0;
        return PO_OK;
    }
    PO_TRY(ask(j));
    known.stay_open = *j->stay_open;
    po_cache_put(j->cost->cache, kind, key, &known, sizeof known);
    return PO_OK;
}

po_status po_pinned_check(po_run_state *state, const po_graph *open, const po_graph *pinned,
                          bool *stay_open) {
    po_cost *cost;
    *stay_open = false;
    if (state->options->level < 1 || state->options->cuda)
        return PO_OK;
    PO_TRY(po_pipeline_cost(state, &cost));
    if (!cost->machine.has_runtime)
        return PO_OK;
    job j = {state, po_arena_create(state->ctx), cost, open, pinned, stay_open};
    po_status status = look(&j);
    po_arena_free(j.arena);
    if (status == PO_OK && *stay_open)
        po_record_note(state->record,
                       "the dims of --input-shape stay open: with them pinned the runtime does not "
                       "take the model, where a branch is for other lengths");
    if (status == PO_OK || status == PO_BAD_USE || status == PO_CANCELLED ||
        status == PO_TIME_LIMIT || status == PO_NO_MEMORY)
        return status;
    po_ctx_clear(state->ctx); /* whatever it is, select says it of the original */
    return PO_OK;
}

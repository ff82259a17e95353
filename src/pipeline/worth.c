/* What a run may spend, by how long one run of the model takes: that is what there is to gain. */
#include "cost/cost.h"
#include "export/export.h"
#include "pipeline/budget.h"
#include "pipeline/candidates.h"
#include "pipeline/open_batch.h"
#include "pipeline/pin.h"
#include "select/lengths.h"

/* Larger ones take as long to load as it could spare, and are worth all of the time. */
enum { MOST_NODES = 5000, LAYOUT = 3 };
#define MOST_WEIGHTS ((uint64_t)64 << 20)
/* Each session that is read or compared makes all of them anew. */
#define SLOW_WEIGHTS ((uint64_t)256 << 20)
static const double slow_run = 0.15; /* seconds: readings and comparisons take much of the time */
static const double looking = 10;    /* seconds, for lengths that the model takes */

/* What is kept of it. */
typedef struct first_run {
    double seconds;
    uint32_t size, disturbed;
} first_run;

static const char kind[] = "worth";

/* At the first assignment of lengths that the model takes. */
static po_status read_run(const po_run *run, const po_graph *original, const po_cost *cost,
                          po_arena *arena, const po_graph *typed, first_run *found) {
    po_candidate_store store;
    const char *path;
    po_inputs *plan;
    po_timing timing;
    po_candidate_store_init(&store, arena);
    PO_TRY(po_candidate_original(run->ctx, &store, original, &path));
    po_side_files files = po_candidate_files(&store);
    po_timing_spec spec = po_timing_brief(cost->library, run->ctx->threads, &path, &files);
    PO_TRY(po_run_inputs(run, arena, typed, typed, &plan));
    uint32_t size;
    po_status status =
        po_time_at_first(run->ctx, arena, plan, &spec, po_now() + looking, &timing, NULL, &size);
    if (status == PO_OK)
        *found = (first_run){timing.seconds, size, po_timing_disturbed(timing.waited)};
    return status;
}

static po_status look(const po_run *run, const po_graph *original, po_arena *arena,
                      first_run *found) {
    po_cost *cost;
    po_graph *typed;
    po_hash key;
    PO_TRY(po_run_cost(run, &cost));
    PO_TRY(po_pin_inputs(run->ctx, original, NULL, 0, &typed));
    po_run_hold(run, typed);
    po_status status = PO_OK;
    /* What to spend, and on what; and the lengths that it takes. */
    bool light = po_record_weights(typed) <= MOST_WEIGHTS;
    run->budget->sizes = po_batch_has_open_dims(typed);
    if (cost->machine.has_runtime && (light || run->budget->sizes)) {
        PO_TRY(po_export_hash(run->ctx, original, &key));
        key = po_hash_u64(po_hash_u64(po_hash_u64(po_cost_key(cost), LAYOUT), key.lo), key.hi);
        key = po_hash_u64(key, run->ctx->threads);
        key = po_pins_hash(key, run->options->sizes, run->options->n_sizes);
        if (!po_cache_get_fixed(cost->cache, kind, key, found, sizeof *found)) {
            status = read_run(run, original, cost, arena, typed, found);
            if (status == PO_OK && !found->disturbed)
                po_cache_put(cost->cache, kind, key, found, sizeof *found);
        }
    }
    po_graph_free(typed);
    return status;
}

po_status po_budget_settle(const po_run *run, const po_graph *original) {
    const po_options *o = run->options;
    first_run found = {0, 0, 0};
    run->budget->loads = run->budget->heavy = po_record_weights(original) > SLOW_WEIGHTS;
    if (o->level < 1 || o->cuda || o->model_cost || run->budget->started <= 0 ||
        po_run_skips(run, "select") || po_record_nodes(original) > MOST_NODES)
        return PO_OK;
    po_arena *arena = po_arena_create(run->ctx);
    po_status status = look(run, original, arena, &found);
    po_arena_free(arena);
    run->budget->size = found.size;
    if (status == PO_CANCELLED || status == PO_TIME_LIMIT || status == PO_NO_MEMORY ||
        status == PO_BAD_USE)
        return status;
    if (status != PO_OK || !(found.seconds > 0)) {
        po_ctx_clear(run->ctx); /* whatever it is, select says it of the original */
        return PO_OK;
    }
    run->budget->read = true;
    run->budget->heavy |= found.seconds > slow_run;
    if (o->time_limit > 0)
        return PO_OK;
    run->budget->spend = po_budget_share(o, found.seconds);
    po_log(run->ctx, "one run of the model takes %.3f ms: at most %.0f s are spent on it",
           1e3 * found.seconds, po_budget_end(run, PO_PART_PROOF) - run->budget->started);
    return PO_OK;
}

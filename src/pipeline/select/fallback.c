/* How fast a model with generated kernels is elsewhere: where their library is not loaded, it runs
 * on its own functions, which are the nodes of a form that was planned for kernels; and other
 * processors run the library's code for another instruction set. It is told; the closing table says
 * so where that is slower than the original. */
#include "codegen/delivery/library.h"
#include "cost/cost.h"
#include "cost/kernels.h"
#include "cost/timing.h"
#include "verify/inputs/inputs.h"

#include "pipeline/budget.h"
#include "pipeline/record.h"
#include "pipeline/select/selecting.h"

#include <math.h>

enum { LAYOUT = 2 }; /* of what is kept in the cache */
static const double told_below = 0.98, long_enough = 1.5, shortest = 0.3;

/* isa NULL: without the library. */
static po_status read_timing(selecting *s, uint32_t i, const char *isa, uint32_t size,
                             double seconds, po_timing *timing) {
    po_arena *arena = po_arena_create(s->ctx);
    po_inputs *plan;
    po_feed feed;
    po_timing both[2];
    const char *models[2] = {s->original_path, s->written[i].path};
    po_status status = po_run_inputs(s->run, arena, s->original, s->list.variants[i].graph, &plan);
    if (status == PO_OK)
        status = po_inputs_make(s->ctx, arena, plan, size, PO_INPUTS_NORMAL, 1, &feed);
    if (status == PO_OK)
        status =
            po_time_models(s->ctx,
                           &(po_timing_spec){.library = s->cost->library,
                                             .kernels = isa ? po_selecting_kernels(s, i) : NULL,
                                             .isa = isa,
                                             .files = &s->files,
                                             .threads = s->ctx->threads,
                                             .n = 2,
                                             .models = models,
                                             .feed = &feed,
                                             .seconds = seconds,
                                             .bound = told_below,
                                             .seed = 9},
                           both, NULL);
    if (status == PO_OK)
        *timing = both[1];
    po_arena_free(arena);
    return status;
}

/* *gain: 0 where it was not read. */
static po_status read_as(selecting *s, uint32_t i, const char *isa, uint32_t size,
                         const char *where, double *gain) {
    po_hash key = po_hash_u64(po_cost_key(s->cost), LAYOUT);
    double end = po_budget_end(s->run, PO_PART_SELECT);
    double left = end > 0 ? end - po_now() : long_enough;
    po_timing timing;
    *gain = 0;
    key = po_hash_u64(po_hash_u64(key, s->original_hash.lo), s->original_hash.hi);
    key = po_hash_u64(po_hash_u64(key, s->written[i].hash.lo), s->written[i].hash.hi);
    key = po_hash_u64(po_hash_u64(key, s->ctx->threads), size);
    if (isa) {
        po_hash library = s->list.library->hash;
        key = po_hash_str(po_hash_u64(po_hash_u64(key, library.lo), library.hi), isa);
    }
    if (!po_cache_get_fixed(s->cost->cache, "fallback", key, &timing, sizeof timing)) {
        memset(&timing, 0, sizeof timing);
        if (left < shortest) {
            po_record_note(s->run->record, "how fast the model is %s was not read: the time was up",
                           where);
            return PO_OK;
        }
        po_status status = read_timing(s, i, isa, size, fmin(left, long_enough), &timing);
        if (status == PO_RUNTIME || status == PO_UNSUPPORTED || status == PO_TIME_LIMIT) {
            po_record_note(s->run->record, "how fast the model is %s was not read: %s", where,
                           s->ctx->error.message);
            po_ctx_clear(s->ctx);
            return PO_OK;
        }
        PO_TRY(status);
        if (!po_timing_disturbed(timing.waited))
            po_cache_put(s->cost->cache, "fallback", key, &timing, sizeof timing);
    }
    *gain = timing.gain;
    char clock[PO_TIMING_CLOCK];
    if (timing.gain < told_below)
        po_record_note(s->run->record,
                       "%s the model runs %.2fx as fast as the original (%.2f to %.2f, %s)", where,
                       timing.gain, timing.low, timing.high,
                       po_timing_clock(s->ctx->threads, timing.threads, clock));
    return PO_OK;
}

po_status po_select_fallback(selecting *s, uint32_t i, uint32_t size) {
    double gain;
    PO_TRY(read_as(s, i, NULL, size, "where the library is not loaded",
                   &s->run->record->summary.ratio_fallback));
    for (uint32_t isa = po_isa_from(po_isa_of_machine() + 1); isa < PO_ISAS;
         isa = po_isa_from(isa + 1))
        PO_TRY(read_as(s, i, po_isas[isa].name, size, po_selecting_code(s, isa), &gain));
    return PO_OK;
}

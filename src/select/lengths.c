/* The lengths of open dims that models are timed at. */
#include "select/lengths.h"

po_status po_time_at_first(po_ctx *ctx, po_arena *arena, const po_inputs *plan,
                           const po_timing_spec *spec, double until, po_timing *timing,
                           po_timing_work *work, uint32_t *size) {
    po_timing_spec at = *spec;
    po_feed feed;
    at.feed = &feed;
    for (*size = 0;; ++*size) {
        PO_TRY(po_inputs_make(ctx, arena, plan, *size, PO_INPUTS_NORMAL, 1, &feed));
        po_status status = po_time_models(ctx, &at, timing, work);
        if (status != PO_RUNTIME || *size + 1 >= po_inputs_sizes(plan) ||
            (until > 0 && po_now() > until))
            return status;
        po_ctx_clear(ctx);
    }
}

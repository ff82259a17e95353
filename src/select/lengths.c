/* The lengths of open dims that models are timed at. */
#include "select/lengths.h"

#include <stdio.h>

/* Of sizes that nobody asked for, one at which a reading of several models takes no minutes. */
static const double slow_run = 1;

static bool may_be_less(const po_inputs *plan, uint32_t k) {
    return !po_inputs_asked(plan) && k + 1 < po_inputs_meant(plan) &&
           po_inputs_elements(plan, po_inputs_meant_size(k + 1)) <
               po_inputs_elements(plan, po_inputs_meant_size(k));
}

po_status po_time_at_first(po_ctx *ctx, po_arena *arena, const po_inputs *plan,
                           const po_timing_spec *spec, double until, po_timing *timing,
                           po_timing_work *work, uint32_t *size) {
    po_timing_spec at = *spec;
    po_feed feed;
    uint32_t meant = po_inputs_meant(plan), n = po_inputs_turns(plan);
    at.feed = &feed;
    for (uint32_t k = 0;; k++) {
        *size = po_inputs_turn(plan, k);
        PO_TRY(po_inputs_make(ctx, arena, plan, *size, PO_INPUTS_NORMAL, 1, &feed));
        po_status status = po_time_models(ctx, &at, timing, work);
        if (status == PO_RUNTIME && k < meant && po_inputs_asked(plan)) {
            char why[PO_MESSAGE_MAX];
            snprintf(why, sizeof why, "%s", ctx->error.message);
            const char *text = po_inputs_describe(arena, plan, *size, PO_INPUTS_NORMAL);
            po_ctx_clear(ctx);
            return po_fail(ctx, PO_BAD_USE, "--sizes: the model does not run on%s: %.600s",
                           strchr(text, ' '), why);
        }
        if (status == PO_OK && timing[0].seconds > slow_run && may_be_less(plan, k))
            continue;
        if (status != PO_RUNTIME || k + 1 >= n || (until > 0 && po_now() > until))
            return status;
        po_ctx_clear(ctx);
    }
}

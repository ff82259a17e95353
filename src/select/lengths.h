/* The lengths of open dims that models are timed at. */
#ifndef PO_SELECT_LENGTHS_H
#define PO_SELECT_LENGTHS_H

#include "cost/timing.h"
#include "verify/inputs/inputs.h"

/* po_time_models at the first assignment of lengths that the models take, of those that they are
 * meant for and then of those that are tried; PO_BAD_USE where these were asked for (--sizes) and
 * one is refused. Its number goes to *size.
 * The feed is made here. `until`: no other assignment is begun after it, as po_now counts; 0:
 * never. PO_RUNTIME: they take none that was tried. `work` may be NULL. */
po_status po_time_at_first(po_ctx *ctx, po_arena *arena, const po_inputs *plan,
                           const po_timing_spec *spec, double until, po_timing *timing,
                           po_timing_work *work, uint32_t *size);

#endif

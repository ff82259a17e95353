/* Up to which size a region of any size takes its second program: both are estimated at sizes below
 * that at hand, as their estimates compare with what was read there. */
#include "ir/size.h"
#include "pipeline/kernels/open_sizes.h"
#include "pipeline/kernels/stage.h"

#include <math.h>

enum { STEPS = 28, A_HALF = 4 /* so many steps halve every length */ };

typedef struct sizing {
    po_arena *arena;
    const po_mu_open *large, *small;
    double scale;
    po_dim measure;
} sizing;

/* Elements of the first input that is open. */
static bool measure_of(po_arena *arena, const po_kernel_ports *ports, po_dim *measure) {
    for (uint32_t i = 0; i < ports->n_in; i++) {
        const po_kernel_port *p = &ports->in[i];
        *measure = po_open_port_elements(arena, p);
        if (po_open_port_is(p) && measure->symbol)
            return true;
    }
    return false;
}

/* At 2^(-step / A_HALF) of the lengths at hand; false: it is no size of theirs. */
static bool at_step(const sizing *s, uint32_t step, int64_t *measure, bool *gains) {
    int64_t *lengths = PO_NEW_N(s->arena, int64_t, s->large->n_names + 1);
    for (uint32_t k = 0; k < s->large->n_names; k++) {
        const double length = (double)s->large->here[k] * exp2(-(double)step / A_HALF);
        lengths[k] = length < 1 ? 1 : (int64_t)llround(length);
    }
    po_arena *scratch = po_arena_child(s->arena);
    const po_mu *large = po_mu_open_at(scratch, s->large, lengths);
    const po_mu *small = po_mu_open_at(scratch, s->small, lengths);
    bool is = large && small && po_mu_open_length(s->large, lengths, s->measure, measure);
    *gains = is && s->scale * po_plan_estimated_small(small) < po_plan_estimated_small(large);
    po_arena_free(scratch);
    return is;
}

/* The most that the measure may be; 0: it never gains. */
static int64_t find_most(const sizing *s) {
    int64_t above = 0, at;
    bool gains;
    for (uint32_t step = 0; step <= STEPS; step++) {
        if (!at_step(s, step, &at, &gains))
            continue;
        if (gains)
            return above > at ? (int64_t)llround(sqrt((double)above * (double)at)) : at;
        above = at;
    }
    return 0;
}

po_status po_kernel_small_of(const po_run *run, po_arena *arena, const po_open_sizes *sizes,
                             const po_plan *plan, const po_mu_open *program,
                             const po_kernel_ports *ports, const po_kernel_small **small) {
    *small = NULL;
    po_kernel_ports own = *ports;
    sizing s = {.arena = arena, .large = program};
    const char *why = NULL;
    if (!plan->small || !measure_of(arena, ports, &s.measure))
        return PO_OK;
    po_status status = po_open_sizes_region(run, arena, sizes, plan->region, plan->small->mu, NULL,
                                            &s.small, &own);
    if (status != PO_OK) { /* the one program is for all sizes */
        PO_TRY(po_kernel_stage_drop(run, status, &why));
        po_log(run->ctx, "no program for small sizes: %s", why);
        return PO_OK;
    }
    s.scale = plan->small->scale;
    const int64_t most = find_most(&s);
    po_log(run->ctx, "small sizes are worked the plain way, up to %lld elements of %s (x %.2f)",
           (long long)most, s.measure.symbol, s.scale);
    if (most < 1)
        return PO_OK;
    po_kernel_small *made = PO_NEW(arena, po_kernel_small);
    *made =
        (po_kernel_small){s.small, plan->small->weight, plan->small->n_weights, s.measure, most};
    *small = made;
    return PO_OK;
}

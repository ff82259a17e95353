/* For which sizes a region of any size takes another program than that of the size at hand. Up to
 * which it takes that for small sizes: both are estimated below, as their estimates compare with
 * what was read at hand. From which on it takes that for wide ones its plan says. */
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

/* Opens another program; *open NULL: it cannot be, and the rest is for all sizes. */
static po_status open_other(const po_run *run, po_arena *arena, const po_open_sizes *sizes,
                            const po_plan *plan, const po_plan_other *other,
                            const po_kernel_ports *ports, const po_mu_open **open) {
    po_kernel_ports own = *ports;
    const char *why = NULL;
    *open = NULL;
    po_status status =
        po_open_sizes_region(run, arena, sizes, plan->region, other->mu, NULL, open, &own);
    if (status == PO_OK)
        return PO_OK;
    *open = NULL;
    PO_TRY(po_kernel_stage_drop(run, status, &why));
    po_log(run->ctx, "a program is for one size only: %s", why);
    return PO_OK;
}

static po_kernel_other program_of(const po_plan_other *other, const po_mu_open *open,
                                  po_dim measure) {
    return (po_kernel_other){
        .open = open, .weight = other->weight, .n_weights = other->n_weights, .measure = measure};
}

static po_status add_small(const po_run *run, const po_open_sizes *sizes, const po_plan *plan,
                           const po_kernel_ports *ports, sizing *s, po_kernel_others *others) {
    PO_TRY(open_other(run, s->arena, sizes, plan, plan->small, ports, &s->small));
    if (!s->small)
        return PO_OK;
    s->scale = plan->small->scale;
    const int64_t most = find_most(s);
    po_log(run->ctx, "small sizes are worked the plain way, up to %lld elements of %s (x %.2f)",
           (long long)most, s->measure.symbol, s->scale);
    if (most < 1)
        return PO_OK;
    po_kernel_other *small = &others->program[others->n++];
    *small = program_of(plan->small, s->small, s->measure);
    small->name = "small";
    small->brief = true;
    small->most = most;
    return PO_OK;
}

static po_status add_wide(const po_run *run, const po_open_sizes *sizes, const po_plan *plan,
                          const po_kernel_ports *ports, const sizing *s, po_kernel_others *others) {
    const po_mu_open *open;
    int64_t here;
    PO_TRY(open_other(run, s->arena, sizes, plan, plan->wide, ports, &open));
    if (!open || !po_mu_open_length(s->large, s->large->here, s->measure, &here))
        return PO_OK;
    po_kernel_other *wide = &others->program[others->n++];
    *wide = program_of(plan->wide, open, s->measure);
    wide->name = "wide";
    wide->least = llround((double)here * plan->wide->from) + 1;
    wide->most = INT64_MAX;
    return PO_OK;
}

po_status po_kernel_others_of(const po_run *run, po_arena *arena, const po_open_sizes *sizes,
                              po_plan *plan, const po_mu_open *program,
                              const po_kernel_ports *ports, po_kernel_others *others) {
    sizing s = {.arena = arena, .large = program};
    *others = (po_kernel_others){.n = 0};
    const bool known = measure_of(arena, ports, &s.measure);
    const uint32_t first = plan->small  ? plan->small->first
                           : plan->wide ? plan->wide->first
                                        : plan->n_packed;
    if (known && plan->small)
        PO_TRY(add_small(run, sizes, plan, ports, &s, others));
    plan->small = others->n ? plan->small : NULL;
    const uint32_t n = others->n;
    if (known && plan->wide)
        PO_TRY(add_wide(run, sizes, plan, ports, &s, others));
    /* What only programs read that are left out is not packed. */
    if (others->n == n && plan->wide)
        plan->n_packed = plan->wide->first;
    plan->wide = others->n > n ? plan->wide : NULL;
    if (others->n == 0)
        plan->n_packed = first;
    return PO_OK;
}

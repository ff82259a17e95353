/* Readings drawn by seed: a model's own time, with drift from round to round, placement by process,
 * jitter, bursts, and processors that another program took. */
#include "noisy.h"

#include <math.h>
#include <stdlib.h>

enum { QUICK_ROUNDS = 5, ROUNDS = 12 };
/* What a process costs beside its rounds: loading the models. */
static const double loading = 0.05;

po_status noisy_source(void *user, po_ctx *ctx, po_arena *arena, const po_timing_spec *spec,
                       uint32_t number, double seconds, po_timing_process *process) {
    (void)ctx;
    noisy_machine *m = user;
    uint32_t n = spec->n, rounds = spec->quick ? QUICK_ROUNDS : ROUNDS;
    uint64_t stream = m->seed + 7919 * spec->seed + number, at = 0;
    double *samples = PO_NEW_N(arena, double, rounds *n);
    double *waited = PO_NEW_N(arena, double, rounds *n), place[PO_TIMING_MAX], drift = 0;
    m->calls += number == 0;
    m->processes++;
    for (uint32_t i = 0; i < n; i++)
        place[i] = m->placement * po_random_normal(stream, 1, i);
    bool held = spec->threads > 1 && po_random_unit(stream, 7, 0) < m->held;
    for (uint32_t r = 0; r < rounds; r++) {
        drift += m->drift * po_random_normal(stream, 2, r);
        for (uint32_t i = 0; i < n; i++, at++) {
            int model = atoi(spec->models[i]);
            bool taken = held || (spec->threads > 1 && po_random_unit(stream, 3, at) < m->taken);
            taken &= m->only == 0 || m->only == 1 + (uint32_t)model;
            double t = taken && m->loaded            ? m->loaded[model]
                       : spec->threads == 1 || taken ? m->alone[model]
                                                     : m->shared[model];
            double unwaited = t, waits = taken ? m->waits * po_random_unit(stream, 8, at) : 0;
            t *= exp(drift + place[i] + m->jitter * po_random_normal(stream, 4, at));
            if (po_random_unit(stream, 5, at) < m->bursts)
                t *= 1 + 0.5 * po_random_unit(stream, 6, at);
            samples[r * n + i] = t * (1 + waits);
            /* A run is no longer than without waiting by more than what was waited. */
            double least = fmax(0.4, 1 - m->shared[model] / (unwaited * (1 + waits)));
            waited[r * n + i] = taken && !m->silent ? least : 0;
        }
    }
    *process = (po_timing_process){.rounds = rounds,
                                   .runs = 1,
                                   .samples = samples,
                                   .waited = waited,
                                   .spent = seconds + loading};
    return PO_OK;
}

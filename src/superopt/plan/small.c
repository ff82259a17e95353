/* A second program of a region that is made for any size: steps that transform their weights, or
 * split their sums, are worked the plain way. Which of the two runs is decided when a call's sizes
 * are known. */
#include "superopt/plan/internal.h"

/* Of the plain ways one that reads the weights in the order in which they are there is taken where
 * it is not so much slower. */
static const double worth_sharing = 1.5;

/* As read, or else as estimated; 0: it computes something else. */
static double seconds_of(const planning *p, const step *s, uint32_t choice) {
    const double read = p->seconds[s->form[choice]];
    return read > 0   ? read
           : read < 0 ? 0
                      : po_plan_scaled(p, s->form[choice], s->choices[choice].how);
}

static bool reads_the_same(const planning *p, const step *s, uint32_t a, uint32_t b) {
    const po_mu *naive = p->plans[s->plan].lowered.mu;
    po_arena *scratch = po_arena_child(p->scratch);
    po_standalone_step lone[2];
    (void)po_plan_standalone(scratch, naive, s->node, &s->choices[a], &lone[0]);
    (void)po_plan_standalone(scratch, naive, s->node, &s->choices[b], &lone[1]);
    bool same = lone[0].n_packed == lone[1].n_packed;
    for (uint32_t i = 0; i < lone[0].n_packed && same; i++)
        same = lone[0].packed[i].weight == lone[1].packed[i].weight &&
               po_packing_same(&lone[0].packed[i].packing, &lone[1].packed[i].packing);
    po_arena_free(scratch);
    return same;
}

/* The plain way of a step that is worked in another; else how it is worked. */
static uint32_t plain(const planning *p, const step *s) {
    if (s->choices[s->best].how->rounding != PO_ROUNDS)
        return s->best;
    double least = 0, shared = 0;
    uint32_t best = s->best, sharing = s->best;
    for (uint32_t k = 0; k < s->n; k++) {
        double seconds = s->choices[k].how->rounding == PO_ROUNDS ? 0 : seconds_of(p, s, k);
        if (seconds <= 0)
            continue;
        if (least == 0 || seconds < least) {
            least = seconds;
            best = k;
        }
        if ((shared == 0 || seconds < shared) && reads_the_same(p, s, s->best, k)) {
            shared = seconds;
            sharing = k;
        }
    }
    return shared > 0 && shared < worth_sharing * least ? sharing : best;
}

/* The place of a weight in this order among those of the plan; a new one where it is not there. */
static uint32_t place_of(po_packed *packed, uint32_t *n, const po_packed *one) {
    for (uint32_t i = 0; i < *n; i++)
        if (packed[i].weight == one->weight && po_packing_same(&packed[i].packing, &one->packing))
            return i;
    packed[*n] = *one;
    return (*n)++;
}

void po_plan_add_small(planning *p, uint32_t plan) {
    po_plan *to = &p->plans[plan];
    double as_it_is = 0, plainly = 0;
    bool other = false;
    po_schedule s;
    po_schedule_start(&s, p->arena, to->lowered.mu, false);
    for (uint32_t i = 0; i < p->n_steps; i++) {
        const step *st = &p->steps[i];
        if (st->plan != plan)
            continue;
        const uint32_t k = plain(p, st);
        po_schedule_step(&s, st->node, &st->choices[k]);
        other |= k != st->best;
        as_it_is += seconds_of(p, st, st->best);
        plainly += seconds_of(p, st, k);
    }
    if (!other)
        return;
    po_schedule_finish(&s);
    po_plan_small *small = PO_NEW(p->arena, po_plan_small);
    uint32_t *weight = PO_NEW_N(p->arena, uint32_t, s.n_packed + 1);
    po_packed *packed = PO_NEW_N(p->arena, po_packed, to->n_packed + s.n_packed + 1);
    memcpy(packed, to->packed, to->n_packed * sizeof *packed);
    const uint32_t first = to->n_packed;
    for (uint32_t i = 0; i < s.n_packed; i++)
        weight[i] = place_of(packed, &to->n_packed, &s.packed[i]);
    to->packed = packed;
    *small = (po_plan_small){s.mu, weight, s.n_packed, first,
                             plainly / po_plan_estimated_small(s.mu) /
                                 (as_it_is / po_plan_estimated_small(to->mu))};
    to->small = small;
}

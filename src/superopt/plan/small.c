/* Further programs of a region, which read the same weights. Of one that is made for any size:
 * steps that transform their weights, or split their sums, are worked the plain way where it is
 * small. Which of them runs is decided when a call's sizes are known. */
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

/* The plain way k as it is worked: in the order in which the weights lie, where it has such a one.
 */
static po_choice as_weights_lie(const planning *p, const step *s, uint32_t k) {
    const po_choice *best = &s->choices[s->best];
    po_choice sharing;
    return k != s->best && best->how->plainly &&
                   best->how->plainly(p->plans[s->plan].lowered.mu, s->node, best, &sharing)
               ? sharing
               : s->choices[k];
}

/* The place of a weight in this order among those of the plan; a new one where it is not there. */
static uint32_t place_of(po_packed *packed, uint32_t *n, const po_packed *one) {
    for (uint32_t i = 0; i < *n; i++)
        if (packed[i].weight == one->weight && po_packing_same(&packed[i].packing, &one->packing))
            return i;
    packed[*n] = *one;
    return (*n)++;
}

po_plan_other *po_plan_other_of(planning *p, uint32_t plan, po_mu *mu, const po_packed *own,
                                uint32_t n) {
    po_plan *to = &p->plans[plan];
    po_plan_other *other = PO_NEW(p->arena, po_plan_other);
    uint32_t *weight = PO_NEW_N(p->arena, uint32_t, n + 1);
    po_packed *packed = PO_NEW_N(p->arena, po_packed, to->n_packed + n + 1);
    memcpy(packed, to->packed, to->n_packed * sizeof *packed);
    *other = (po_plan_other){.mu = mu, .weight = weight, .n_weights = n, .first = to->n_packed};
    for (uint32_t i = 0; i < n; i++)
        weight[i] = place_of(packed, &to->n_packed, &own[i]);
    to->packed = packed;
    return other;
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
        const po_choice taken = as_weights_lie(p, st, k);
        po_schedule_step(&s, st->node, &taken);
        other |= k != st->best;
        as_it_is += seconds_of(p, st, st->best);
        plainly += seconds_of(p, st, k);
    }
    if (!other)
        return;
    po_schedule_finish(&s);
    po_plan_other *small = po_plan_other_of(p, plan, s.mu, s.packed, s.n_packed);
    small->scale =
        plainly / po_plan_estimated_small(s.mu) / (as_it_is / po_plan_estimated_small(to->mu));
    to->small = small;
}

/* --- like another plan --- */

/* Whether a plan reads this weight in this order. */
static bool has_packed(const po_plan *plan, po_value_id weight, const po_packing *packing) {
    for (uint32_t i = 0; i < plan->n_packed; i++)
        if (plan->lowered.weights[plan->packed[i].weight] == weight &&
            po_packing_same(&plan->packed[i].packing, packing))
            return true;
    return false;
}

static bool is_alike(const planning *p, const step *s, const po_choice *choice) {
    const po_plan *like = &p->options->like[s->plan];
    const po_lowered *own = &p->plans[s->plan].lowered;
    po_arena *scratch = po_arena_child(p->scratch);
    po_standalone_step lone;
    (void)po_plan_standalone(scratch, own->mu, s->node, choice, &lone);
    bool alike = true;
    for (uint32_t i = 0; i < lone.n_packed && alike; i++)
        alike = has_packed(like, own->weights[lone.packed[i].weight], &lone.packed[i].packing);
    po_arena_free(scratch);
    return alike;
}

void po_plan_keep_alike(const planning *p, step *s) {
    uint32_t kept = 0;
    for (uint32_t i = 0; i < s->n && !p->options->like[s->plan].failed; i++) {
        if (!is_alike(p, s, &s->choices[i]))
            continue;
        s->wide[kept] = s->wide[i];
        s->choices[kept++] = s->choices[i];
    }
    s->n = kept ? kept : s->n;
}

/* The number of a value among the weights of a lowering; PO_NONE: it has it not. */
static uint32_t weight_of(const po_lowered *lowered, po_value_id value) {
    for (uint32_t i = 0; i < lowered->n_weights; i++)
        if (lowered->weights[i] == value)
            return i;
    return PO_NONE;
}

const uint32_t *po_plan_share_weights(po_arena *arena, po_plan *with, const po_plan *plan) {
    const uint32_t n = plan->n_packed;
    uint32_t *number = PO_NEW_N(arena, uint32_t, n + 1);
    po_packed *packed = PO_NEW_N(arena, po_packed, with->n_packed + n + 1);
    uint32_t all = with->n_packed;
    memcpy(packed, with->packed, all * sizeof *packed);
    for (uint32_t i = 0; i < n; i++) {
        po_packed one = plan->packed[i];
        one.weight = weight_of(&with->lowered, plan->lowered.weights[one.weight]);
        if (one.weight == PO_NONE)
            return NULL;
        number[i] = place_of(packed, &all, &one);
    }
    with->packed = packed;
    with->n_packed = all;
    return number;
}

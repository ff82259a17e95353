/* Two rounds: the first choice of each family whose estimate is at most 1.5 times the least, then
 * the rest of the families that came within 3 % of the fastest, where the step is 1 % of the whole
 * or more. */
#include "superopt/plan/worth.h"

/* Estimates take all work for equal: what they put at half as much again has been the fastest in a
 * few steps of 20 networks, by half a percent of a network at most (docs/superopt.md). */
static const double near_least = 1.5, near_fastest = 1.03, worth_trying = 0.01;

static bool alike(const po_choice *a, const po_choice *b) {
    return a->how == b->how && a->how->family(a) == b->how->family(b);
}

static bool promises(const po_worth_step *s, uint32_t k) {
    double least = s->estimates[0];
    for (uint32_t i = 1; i < s->n; i++)
        least = s->estimates[i] < least ? s->estimates[i] : least;
    return s->estimates[k] <= near_least * least;
}

/* The choice of k's family that is read first. */
static uint32_t leader(const po_worth_step *s, uint32_t k) {
    for (uint32_t i = 0; i < k; i++)
        if (promises(s, i) && alike(&s->choices[i], &s->choices[k]))
            return i;
    return k;
}

void po_worth_first(const po_worth_step *s, bool *read) {
    uint32_t families = 0;
    for (uint32_t k = 0; k < s->n; k++) {
        read[k] = promises(s, k) && leader(s, k) == k;
        families += read[k];
    }
    for (uint32_t k = 0; k < s->n && families == 1 && s->part >= worth_trying; k++)
        read[k] = promises(s, k);
}

/* PO_NONE: none that was read is right. */
static uint32_t fastest(const double *seconds, uint32_t n) {
    uint32_t best = PO_NONE;
    for (uint32_t k = 0; k < n; k++)
        if (seconds[k] > 0 && (best == PO_NONE || seconds[k] < seconds[best]))
            best = k;
    return best;
}

void po_worth_then(const po_worth_step *s, bool *read) {
    const uint32_t best = fastest(s->seconds, s->n);
    for (uint32_t k = 0; k < s->n; k++) {
        double first = s->seconds[leader(s, k)];
        read[k] = best == PO_NONE || (s->part >= worth_trying && promises(s, k) && first > 0 &&
                                      first <= near_fastest * s->seconds[best]);
    }
}

uint32_t po_worth_taken(const double *seconds, const double *held, uint32_t n) {
    const uint32_t best = fastest(seconds, n);
    uint32_t least = best;
    for (uint32_t k = 0; k < n && held; k++)
        if (seconds[k] > 0 && seconds[k] <= near_fastest * seconds[best] &&
            (held[k] < held[least] || (held[k] == held[least] && seconds[k] < seconds[least])))
            least = k;
    return least;
}

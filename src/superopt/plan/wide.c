/* The program of a region for large sizes. What a step keeps for itself lies in the cache at the
 * size at hand; where maps are larger it may leave it, and a way that keeps less of them at a time
 * then takes less. Steps of which that is so are read at such a size beside the way that keeps
 * least, on maps that are not in the cache: in a network other steps come between two calls of one.
 */
#include "superopt/plan/internal.h"

#include <math.h>

/* Times as much as at hand: where steps are read. */
static const double larger = 8;
/* What stays in the second cache, and what moves otherwise. */
static const double cache = 1 << 20, bytes_a_second = 2e10;
/* Of what it holds, and of its time: what is worth reading, and taking. In a network the caches
 * hold less for a step than when it is read, by three times or so. */
static const double much_less = 0.5, about_as_much_work = 1.25, faster = 0.97, worth_it = 0.005;

typedef struct wider {
    planning *p;
    const int64_t *lengths; /* of the names */
} wider;

/* A choice at the larger size; NULL: it is no program there. */
static po_mu *at_lengths(const wider *w, const step *s, uint32_t k, po_standalone_step *lone) {
    planning *p = w->p;
    const po_mu_open *open;
    po_mu *mu =
        po_plan_standalone(p->scratch, p->plans[s->plan].lowered.mu, s->node, &s->choices[k], lone);
    if (po_mu_open_by(p->ctx, p->scratch, mu, &p->options->open->naming, &open) != PO_OK) {
        po_ctx_clear(p->ctx);
        return NULL;
    }
    po_mu *there = po_mu_open_at(p->scratch, open, w->lengths);
    return there && po_mu_open_is_there(there) ? there : NULL;
}

/* Bytes that a step keeps beside what it reads and writes. */
static double kept_by(const po_mu *mu, const po_standalone_step *lone) {
    double bytes = 0;
    for (uint32_t i = 0; i < mu->n_tensors; i++) {
        const po_mu_tensor *t = &mu->tensors[i];
        if ((t->place == PO_MU_DEVICE || t->place == PO_MU_SHARED) && !po_plan_is_naive(lone, i))
            bytes += 4 * (double)t->floats;
    }
    return bytes;
}

/* A step with two ways at the larger size: as it is worked, and what keeps less. */
typedef struct rival {
    uint32_t step, choice; /* of planning.steps, and of its choices */
    uint32_t form[2];
    double kept[2];
} rival;

/* The way that keeps least, of those that do about as much; false: what the step has stays in the
 * cache, or none keeps much less. */
static bool find_rival(const wider *w, uint32_t i, rival *r) {
    const step *s = &w->p->steps[i];
    po_standalone_step lone;
    const po_mu *own = at_lengths(w, s, s->best, &lone), *least = NULL;
    r->kept[0] = own ? kept_by(own, &lone) : 0;
    if (r->kept[0] <= cache)
        return false;
    r->kept[1] = much_less * r->kept[0];
    for (uint32_t k = 0; k < s->n; k++) {
        const po_mu *other =
            k == s->best || w->p->seconds[s->form[k]] < 0 ? NULL : at_lengths(w, s, k, &lone);
        const double kept = other ? kept_by(other, &lone) : 0;
        if (!other || kept >= r->kept[1] ||
            po_plan_estimated(other) > about_as_much_work * po_plan_estimated(own))
            continue;
        r->kept[1] = kept;
        least = other;
        r->choice = k;
    }
    if (!least)
        return false;
    r->step = i;
    r->form[0] = po_plan_add_variant(w->p, own, NULL, PO_KERNELS_COLD);
    r->form[1] = po_plan_add_variant(w->p, least, NULL, PO_KERNELS_COLD);
    return true;
}

static uint32_t find_rivals(const wider *w, uint32_t plan, rival *rivals) {
    planning *p = w->p;
    uint32_t n = 0;
    for (uint32_t i = 0; i < p->n_steps; i++) {
        if (p->steps[i].plan != plan)
            continue;
        if (p->steps[i].band != PO_NONE)
            i += p->bands[p->steps[i].band].b.n - 1;
        else if (find_rival(w, i, &rivals[n]))
            n++;
    }
    return n;
}

/* Seconds of a way at the larger size: as read, or by estimate, where what it keeps is written and
 * read once. */
static double seconds_there(const planning *p, const rival *r, uint32_t k, bool measured) {
    const double moved = r->kept[k] > cache ? 2 * r->kept[k] / bytes_a_second : 0;
    return measured ? p->seconds[r->form[k]] : po_plan_estimated(p->forms[r->form[k]].mu) + moved;
}

/* What a step loses at hand. Where that is not read it is half of what it saves, so that sizes are
 * parted half way. */
static double lost_here(const planning *p, const rival *r, double saved, bool measured) {
    const step *s = &p->steps[r->step];
    const double other = p->seconds[s->form[r->choice]], best = p->seconds[s->form[s->best]];
    return !measured || other <= 0 ? saved / larger : fmax(0, other - best);
}

/* Keeps those that are faster there; what they save there, and lose at hand. */
static uint32_t keep_faster(const planning *p, rival *rivals, uint32_t n, bool measured,
                            double *saved, double *lost) {
    uint32_t left = 0;
    *saved = *lost = 0;
    for (uint32_t i = 0; i < n; i++) {
        const rival *r = &rivals[i];
        const step *s = &p->steps[r->step];
        const double own = seconds_there(p, r, 0, measured),
                     other = seconds_there(p, r, 1, measured);
        if (!(own > 0 && other > 0 && other < faster * own))
            continue;
        po_log(p->ctx, "%s, %.0f times as large: %.3f ms, %.3f with less kept",
               p->plans[s->plan].lowered.mu->nodes[s->node].name, larger, 1e3 * own, 1e3 * other);
        *saved += own - other;
        *lost += lost_here(p, r, own - other, measured);
        rivals[left++] = *r;
    }
    return left;
}

static void apply(planning *p, uint32_t plan, const rival *rivals, uint32_t n, double from) {
    uint32_t *choice = PO_NEW_N(p->scratch, uint32_t, p->n_steps + 1);
    for (uint32_t i = 0; i < p->n_steps; i++)
        choice[i] = p->steps[i].best;
    for (uint32_t i = 0; i < n; i++)
        choice[rivals[i].step] = rivals[i].choice;
    po_schedule s;
    po_plan_schedule(p, p->arena, plan, choice, &s);
    po_plan_other *wide = po_plan_other_of(p, plan, s.mu, s.packed, s.n_packed);
    wide->from = from;
    p->plans[plan].wide = wide;
}

/* What the plan takes at hand. */
static double seconds_here(const planning *p, uint32_t plan, bool measured) {
    double seconds = 0;
    for (uint32_t i = 0; i < p->n_steps; i++) {
        const step *s = &p->steps[i];
        const uint32_t form = s->form[s->best];
        if (s->plan == plan)
            seconds += measured ? fmax(0, p->seconds[form]) : po_plan_estimated(p->forms[form].mu);
    }
    return seconds;
}

po_status po_plan_add_wide(planning *p, uint32_t plan, bool measured) {
    const po_mu_naming *naming = &p->options->open->naming;
    int64_t *lengths = PO_NEW_N(p->scratch, int64_t, naming->n_names + 1);
    for (uint32_t k = 0; k < naming->n_names; k++)
        lengths[k] = llround((double)naming->lengths[k] * pow(larger, 1.0 / naming->n_names));
    const wider w = {p, lengths};
    rival *rivals = PO_NEW_N(p->scratch, rival, p->n_steps + 1);
    uint32_t n = find_rivals(&w, plan, rivals);
    bool *wanted = PO_NEW_N(p->scratch, bool, p->n_forms + 1);
    for (uint32_t i = 0; i < n; i++)
        wanted[rivals[i].form[0]] = wanted[rivals[i].form[1]] = true;
    if (n > 0 && measured)
        PO_TRY(po_plan_read(p, wanted));
    double saved, lost;
    n = keep_faster(p, rivals, n, measured, &saved, &lost);
    if (n == 0 || saved < worth_it * larger * seconds_here(p, plan, measured))
        return PO_OK;
    /* What it loses of each place falls to what it saves, as the size grows. */
    const double from = pow(larger, lost / (lost + saved / larger));
    po_log(p->ctx, "wide sizes: %u steps keep less, from %.1f times the size on", n, from);
    apply(p, plan, rivals, n, from);
    return PO_OK;
}

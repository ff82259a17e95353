/* The program of a region for large sizes. What a step keeps for itself lies in the cache at the
 * size at hand; where maps are larger it may leave it, and a way that keeps less of them at a time
 * then takes less. Steps of which that is so are read at such a size beside the way that keeps
 * least, and those of windows beside the programs that were found for them, on maps that are not in
 * the cache: in a network other steps come between two calls of one. */
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

/* A program at the larger size; NULL: it is none there. */
static po_mu *at_lengths(const wider *w, po_mu *mu) {
    planning *p = w->p;
    const po_mu_open *open;
    if (po_mu_open_by(p->ctx, p->scratch, mu, &p->options->open->naming, &open) != PO_OK) {
        po_ctx_clear(p->ctx);
        return NULL;
    }
    po_mu *there = po_mu_open_at(p->scratch, open, w->lengths);
    return there && po_mu_open_is_there(there) ? there : NULL;
}

/* A step's choice there. */
static po_mu *choice_there(const wider *w, const step *s, uint32_t k, po_standalone_step *lone) {
    planning *p = w->p;
    return at_lengths(w, po_plan_standalone(p->scratch, p->plans[s->plan].lowered.mu, s->node,
                                            &s->choices[k], lone));
}

/* Bytes that a program keeps for itself: what it writes and reads again. */
static double kept_by(po_arena *scratch, const po_mu *mu) {
    bool *written = PO_NEW_N(scratch, bool, mu->n_tensors + 1),
         *read = PO_NEW_N(scratch, bool, mu->n_tensors + 1);
    double bytes = 0;
    for (uint32_t n = 0; n < mu->n_nodes; n++) {
        const po_mu_statement *s = &mu->nodes[n].statement;
        for (uint32_t k = 0; mu->nodes[n].kind == PO_MU_STATEMENT && k < s->n_in; k++)
            read[s->in[k].tensor] = true;
        if (mu->nodes[n].kind == PO_MU_STATEMENT)
            written[s->out.tensor] = true;
    }
    for (uint32_t i = 0; i < mu->n_tensors; i++) {
        const po_mu_tensor *t = &mu->tensors[i];
        if ((t->place == PO_MU_DEVICE || t->place == PO_MU_SHARED) && written[i] && read[i])
            bytes += 4 * (double)t->floats;
    }
    return bytes;
}

/* A step, or those of a window, with two ways at the larger size: as worked at hand, and another
 * that keeps less. */
typedef struct rival {
    uint32_t step, choice; /* of planning.steps, and of its choices */
    uint32_t window;       /* of planning.bands, in place of a choice; PO_NONE */
    uint32_t form[2];
    double kept[2];
} rival;

/* The way that keeps least, of those that do about as much; false: what the step has stays in the
 * cache, or none keeps much less. */
static bool find_rival(const wider *w, uint32_t i, rival *r) {
    const step *s = &w->p->steps[i];
    po_standalone_step lone;
    const po_mu *own = choice_there(w, s, s->best, &lone), *least = NULL;
    r->kept[0] = own ? kept_by(w->p->scratch, own) : 0;
    if (r->kept[0] <= cache)
        return false;
    r->kept[1] = much_less * r->kept[0];
    for (uint32_t k = 0; k < s->n; k++) {
        const po_mu *other =
            k == s->best || w->p->seconds[s->form[k]] < 0 ? NULL : choice_there(w, s, k, &lone);
        const double kept = other ? kept_by(w->p->scratch, other) : 0;
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
    r->window = PO_NONE;
    r->form[0] = po_plan_add_variant(w->p, own, NULL, PO_KERNELS_COLD);
    r->form[1] = po_plan_add_variant(w->p, least, NULL, PO_KERNELS_COLD);
    return true;
}

/* --- windows --- */

enum { MOST_RIVALS = 3 /* programs of a window that are read */ };

/* Steps as they are worked at hand; NULL: bands reach beyond them. */
static po_mu *as_worked(const wider *w, const band *b) {
    planning *p = w->p;
    po_schedule s;
    po_schedule_start(&s, p->scratch, b->b.naive, true);
    for (uint32_t i = b->first; i < b->first + b->b.n; i++) {
        const step *st = &p->steps[i];
        if (st->band == PO_NONE) {
            po_schedule_step(&s, st->node, &st->choices[st->best]);
            continue;
        }
        if (i + p->bands[st->band].b.n > b->first + b->b.n)
            return NULL;
        po_plan_apply_band(&s, &p->bands[st->band]);
        i += p->bands[st->band].b.n - 1;
    }
    po_standalone_step lone;
    return po_plan_end_standalone(&s, &b->b, true, 0, &lone);
}

/* Estimate there, what is kept being written and read once. */
static double estimate_there(const po_mu *mu, double kept) {
    return po_plan_estimated(mu) + (kept > cache ? 2 * kept / bytes_a_second : 0);
}

/* The window's programs that promise most there; how many. */
static uint32_t find_windows(const wider *w, uint32_t first, rival *rivals) {
    planning *p = w->p;
    const band *b = &p->bands[first];
    po_standalone_step lone;
    po_mu *worked = as_worked(w, b);
    const po_mu *own = worked ? at_lengths(w, worked) : NULL;
    double promise[MOST_RIVALS + 1];
    uint32_t n = 0;
    if (!own)
        return 0;
    const double kept = kept_by(p->scratch, own), now = estimate_there(own, kept);
    if (kept <= cache)
        return 0;
    const uint32_t form = po_plan_add_variant(p, own, NULL, PO_KERNELS_COLD);
    for (uint32_t i = 0; i < p->n_bands; i++) {
        const band *o = &p->bands[i];
        if (!o->window || o->apart != b->apart || o->first != b->first || p->seconds[o->form] < 0)
            continue;
        const po_mu *other = at_lengths(w, po_plan_standalone_band(p->scratch, o, &lone));
        const double less = other ? kept_by(p->scratch, other) : 0;
        if (!other || estimate_there(other, less) >= now)
            continue;
        uint32_t at = n;
        for (; at > 0 && estimate_there(other, less) < promise[at - 1]; at--) {
            promise[at] = promise[at - 1];
            rivals[at] = rivals[at - 1];
        }
        promise[at] = estimate_there(other, less);
        rivals[at] = (rival){.step = b->first,
                             .window = i,
                             .form = {form, po_plan_add_variant(p, other, NULL, PO_KERNELS_COLD)},
                             .kept = {kept, less}};
        n = n < MOST_RIVALS ? n + 1 : n;
    }
    return n;
}

/* By step: whether it is one of a window's that has rivals. */
static uint32_t find_rivals(const wider *w, uint32_t plan, rival *rivals) {
    planning *p = w->p;
    bool *taken = PO_NEW_N(p->scratch, bool, p->n_steps + 1);
    uint32_t n = 0;
    for (uint32_t i = 0; i < p->n_bands; i++) {
        const band *b = &p->bands[i];
        if (b->plan != plan || b->apart != i)
            continue;
        const uint32_t more = find_windows(w, i, &rivals[n]);
        for (uint32_t k = 0; k < b->b.n && more > 0; k++)
            taken[b->first + k] = true;
        n += more;
    }
    for (uint32_t i = 0; i < p->n_steps; i++) {
        if (p->steps[i].plan != plan || taken[i])
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
    return measured ? p->seconds[r->form[k]] : estimate_there(p->forms[r->form[k]].mu, r->kept[k]);
}

/* What steps take at hand, as they are worked there. */
static double worked_here(const planning *p, uint32_t first, uint32_t n) {
    double seconds = 0;
    for (uint32_t i = first; i < first + n; i++) {
        const step *s = &p->steps[i];
        const band *taken = s->band == PO_NONE ? NULL : &p->bands[s->band];
        seconds += p->seconds[taken ? taken->form : s->form[s->best]];
        i += taken ? taken->b.n - 1 : 0;
    }
    return seconds;
}

/* What a step loses at hand. Where that is not read it is half of what it saves, so that sizes are
 * parted half way. */
static double lost_here(const planning *p, const rival *r, double saved, bool measured) {
    const step *s = &p->steps[r->step];
    const band *window = r->window == PO_NONE ? NULL : &p->bands[r->window];
    const double other = p->seconds[window ? window->form : s->form[r->choice]];
    const double best = worked_here(p, r->step, window ? window->b.n : 1);
    return !measured || other <= 0 ? saved / larger : fmax(0, other - best);
}

/* Keeps those that are faster there; what they save there, and lose at hand. */
static uint32_t keep_faster(const planning *p, rival *rivals, uint32_t n, bool measured,
                            double *saved, double *lost) {
    uint32_t left = 0;
    for (uint32_t i = 0; i < n; i++) {
        const rival *r = &rivals[i];
        const step *s = &p->steps[r->step];
        const double own = seconds_there(p, r, 0, measured),
                     other = seconds_there(p, r, 1, measured);
        if (!(own > 0 && other > 0 && other < faster * own))
            continue;
        po_log(p->ctx, "%s, %.0f times as large: %.3f ms, %.3f with less kept",
               p->plans[s->plan].lowered.mu->nodes[s->node].name, larger, 1e3 * own, 1e3 * other);
        const bool again = left > 0 && rivals[left - 1].step == r->step; /* of a window the best */
        if (!again || other < seconds_there(p, &rivals[left - 1], 1, measured))
            rivals[again ? left - 1 : left++] = *r;
    }
    *saved = *lost = 0;
    for (uint32_t i = 0; i < left; i++) {
        const rival *r = &rivals[i];
        const double one = seconds_there(p, r, 0, measured) - seconds_there(p, r, 1, measured);
        *saved += one;
        *lost += lost_here(p, r, one, measured);
    }
    return left;
}

static void apply(planning *p, uint32_t plan, const rival *rivals, uint32_t n, double from) {
    uint32_t *choice = PO_NEW_N(p->scratch, uint32_t, p->n_steps + 1),
             *bands = PO_NEW_N(p->scratch, uint32_t, p->n_steps + 1);
    for (uint32_t i = 0; i < p->n_steps; i++) {
        choice[i] = p->steps[i].best;
        bands[i] = p->steps[i].band;
    }
    for (uint32_t i = 0; i < n; i++) {
        const rival *r = &rivals[i];
        if (r->window == PO_NONE) {
            choice[r->step] = r->choice;
            continue;
        }
        for (uint32_t k = 0; k < p->bands[r->window].b.n; k++)
            bands[r->step + k] = PO_NONE;
        bands[r->step] = r->window;
    }
    po_schedule s;
    po_plan_schedule(p, p->arena, plan, choice, bands, &s);
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
    rival *rivals =
        PO_NEW_N(p->scratch, rival, p->n_steps + (MOST_RIVALS + 1) * (size_t)p->n_bands + 1);
    uint32_t n = find_rivals(&w, plan, rivals);
    bool *wanted = PO_NEW_N(p->scratch, bool, p->n_forms + 1);
    for (uint32_t i = 0; i < n; i++)
        wanted[rivals[i].form[0]] = wanted[rivals[i].form[1]] = true;
    if (n > 0 && measured)
        PO_TRY(po_plan_read(p, wanted, NULL, 1));
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

/* Windows of a plan: which are worth a search, what it finds beside the steps one after the other.
 */
#include "superopt/plan/internal.h"
#include "superopt/plan/window.h"

enum { MOST_SEARCHES = 12 /* of a plan, of windows that differ */ };

/* Bytes that steps move more than one program would. */
static const double worth = 1 << 19;

/* Estimates are off by less: what is so much slower than the best by them is not timed. */
static const double worth_timing = 2;

/* Of what steps take, as read. */
static const double may_save = 0.3;

/* Steps that may be a window. */
typedef struct candidate {
    uint32_t first, n;
    const po_mu *cut; /* their muGraph by itself */
    const po_mu_view *view;
    po_hash key;     /* of it */
    double now, all; /* seconds of the steps, and of all windows that are the same */
} candidate;

typedef struct searched {
    po_found *found;
    uint32_t n;
} searched;

typedef struct windows {
    planning *p;
    int64_t spread;
    double now;         /* seconds of all steps */
    po_hash_map *known; /* of a window's muGraph: what was found */
    po_hash_map *open;  /* of a program: whether it is one for all sizes */
    searched *list;
    uint32_t n, cap;
} windows;

static po_status search_for(windows *w, const po_mu *mu, searched *to) {
    planning *p = w->p;
    po_search_options options = po_search_defaults();
    po_search_counts counts;
    options.exact = p->options->exact ||
                    (p->options->magnifies > 0 && p->options->magnifies < po_found_magnifies);
    *to = (searched){.found = PO_NEW_N(p->scratch, po_found, options.keep)};
    po_status status = po_search(p->ctx, p->scratch, mu, &options, &counts, to->found, &to->n);
    if (status == PO_UNSUPPORTED) {
        po_log(p->ctx, "%s", p->ctx->error.message);
        po_ctx_clear(p->ctx);
        to->n = 0;
        return PO_OK;
    }
    PO_TRY(status);
    while (to->n > 1 && to->found[to->n - 1].estimate > worth_timing * to->found[0].estimate)
        to->n--;
    po_log(p->ctx, "search: %.2f s, %llu states, %u forms, %u programs, %u plans, %u refused",
           counts.seconds, (unsigned long long)counts.states, counts.forms, counts.skeletons,
           counts.checked, counts.wrong);
    return PO_OK;
}

/* How many programs of a window are worth a reading, by what it takes of the whole. */
static uint32_t worth_reading(const windows *w, double now) {
    static const struct {
        double share;
        uint32_t readings;
    } rows[] = {{0.03, 12}, {0.005, 6}, {0.0005, 3}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (now >= rows[i].share * w->now)
            return rows[i].readings;
    return 0;
}

/* What was found for the window, now or for one that is the same; PO_NONE: enough was searched. */
static po_status search_once(windows *w, const candidate *c, const po_row_fusion *b,
                             uint32_t *known) {
    planning *p = w->p;
    searched one;
    *known = po_hash_map_get(w->known, c->key);
    if (*known != PO_NONE || w->n == MOST_SEARCHES)
        return PO_OK;
    po_log(p->ctx, "window of %u steps: %s .. %s", b->n, b->naive->nodes[b->node[0]].name,
           b->naive->nodes[b->node[b->n - 1]].name);
    PO_TRY(search_for(w, c->cut, &one));
    *known = w->n;
    po_hash_map_put(w->known, c->key, *known);
    PO_PUSH(p->scratch, w->list, w->n, w->cap, one);
    return PO_OK;
}

/* Whether a program is one for all sizes; that of another window may be the same. */
static po_status is_for_all(windows *w, const po_row_fusion *b, const po_plan_window *one,
                            bool *is) {
    planning *p = w->p;
    po_standalone_step lone;
    po_hash wide;
    *is = p->options->open == NULL;
    if (*is)
        return PO_OK;
    po_arena *scratch = po_arena_child(p->scratch);
    po_mu *mu = po_plan_window_standalone(scratch, b, one, &lone);
    const po_hash key = po_mu_hash(mu);
    const uint32_t known = po_hash_map_get(w->open, key);
    po_status status = PO_OK;
    *is = known == 1;
    if (known == PO_NONE) {
        status =
            po_plan_is_open(p, scratch, mu, &lone, b->naive->nodes[b->node[0]].name, is, &wide);
        po_hash_map_put(w->open, key, *is);
    }
    po_arena_free(scratch);
    return status;
}

/* Adds the window's programs as candidates beside its steps one after the other. */
static po_status add_window(windows *w, const candidate *c) {
    planning *p = w->p;
    const uint32_t most = worth_reading(w, c->all);
    const double gain = may_save * c->now;
    const po_row_fusion b = po_plan_steps_of(p, c->first, c->n);
    uint32_t known, apart = PO_NONE;
    if (most == 0)
        return PO_OK;
    PO_TRY(search_once(w, c, &b, &known));
    for (uint32_t i = 0; known != PO_NONE && i < w->list[known].n && i < most; i++) {
        po_plan_window one = {&w->list[known].found[i], c->view};
        bool is;
        PO_TRY(is_for_all(w, &b, &one, &is));
        if (!is)
            continue;
        if (apart == PO_NONE)
            apart = po_plan_add_band(p, c->first, &b, NULL, w->spread, PO_NONE, gain);
        po_plan_add_band(p, c->first, &b, po_arena_memdup(p->scratch, &one, sizeof one), w->spread,
                         apart, gain);
    }
    return PO_OK;
}

/* The longest window from a step on that can stand by itself and ends behind another's end; n 0:
 * there is none. */
static candidate window_from(const planning *p, const po_plan_uses *uses, uint32_t first,
                             uint32_t end) {
    candidate c = {.first = first, .n = PO_WINDOW_MOST + 1};
    const po_mu *naive = p->plans[p->steps[first].plan].lowered.mu;
    while (!c.cut) {
        c.n = po_plan_window_from(naive, uses, p->steps[first].node, c.n - 1, worth);
        if (first + c.n <= end)
            c.n = 0;
        if (c.n == 0)
            return c;
        const po_row_fusion b = po_plan_steps_of(p, first, c.n);
        po_arena *own = po_arena_child(p->scratch);
        po_arena_own(p->scratch, own);
        if (po_plan_window_cut(own, naive, b.node, b.n, &c.cut, &c.view))
            c.key = po_mu_hash(c.cut);
        else
            po_arena_free(own);
    }
    for (uint32_t i = first; i < first + c.n; i++)
        c.now += p->seconds[p->steps[i].form[p->steps[i].best]];
    return c;
}

/* Windows of a plan that do not lie in others, those first that take longest. */
static candidate *candidates_of(const planning *p, uint32_t plan, uint32_t *n) {
    candidate *list = NULL;
    uint32_t cap = 0, end = 0; /* of the window before */
    const po_plan_uses uses = po_plan_uses_of(p->scratch, p->plans[plan].lowered.mu);
    *n = 0;
    for (uint32_t i = 0; i < p->n_steps; i++) {
        if (p->steps[i].plan != plan)
            continue;
        const candidate one = window_from(p, &uses, i, end);
        if (one.n == 0)
            continue;
        end = i + one.n;
        PO_PUSH(p->scratch, list, *n, cap, one);
    }
    for (uint32_t i = 0; i < *n; i++)
        for (uint32_t k = 0; k < *n; k++)
            list[i].all += po_hash_equal(list[k].key, list[i].key) ? list[k].now : 0;
    for (uint32_t i = 1; i < *n; i++)
        for (uint32_t k = i; k > 0 && list[k].all > list[k - 1].all; k--) {
            const candidate other = list[k];
            list[k] = list[k - 1];
            list[k - 1] = other;
        }
    return list;
}

po_status po_plan_windows(planning *p, uint32_t plan, int64_t spread) {
    windows w = {.p = p,
                 .spread = spread,
                 .known = po_hash_map_create(p->scratch),
                 .open = po_hash_map_create(p->scratch)};
    uint32_t n;
    const candidate *list = candidates_of(p, plan, &n);
    for (uint32_t i = 0; i < p->n_steps; i++)
        if (p->steps[i].plan == plan)
            w.now += p->seconds[p->steps[i].form[p->steps[i].best]];
    for (uint32_t i = 0; i < n; i++) {
        PO_TRY(po_ctx_poll(p->ctx));
        PO_TRY(add_window(&w, &list[i]));
    }
    return PO_OK;
}

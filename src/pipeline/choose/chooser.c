/* The beam, its neighbours and what they promise. */
#include "pipeline/choose/chooser.h"

#include <math.h>

/* A neighbour, before it is a state. */
typedef struct proposal {
    uint32_t base;
    po_choices choices;
    double promise;
} proposal;

enum { MOST_BEAM = 4, MOST_PROPOSALS = MOST_BEAM * (2 * PO_CHOOSER_CHOICES + 2) };

typedef struct proposals {
    proposal list[MOST_PROPOSALS];
    uint32_t n;
} proposals;

po_chooser *po_chooser_create(po_ctx *ctx, po_arena *arena, const po_chooser_rules *rules) {
    po_chooser *c = PO_NEW(arena, po_chooser);
    *c = (po_chooser){.ctx = ctx, .arena = arena, .rules = *rules};
    return c;
}

const po_combination *po_chooser_find(const po_chooser *c, uint32_t base, po_choices choices) {
    for (uint32_t i = 0; i < c->n; i++)
        if (c->states[i].base == base && c->states[i].choices == choices)
            return &c->states[i];
    return NULL;
}

po_combination *po_chooser_add(po_chooser *c, uint32_t base, po_choices choices) {
    if (c->n == PO_CHOOSER_STATES || po_chooser_find(c, base, choices))
        return NULL;
    c->states[c->n] = (po_combination){.base = base, .choices = choices, .number = PO_NONE};
    return &c->states[c->n++];
}

static bool has_cost(const po_combination *s) {
    return s && s->priced && s->cost > 0 && isfinite(s->cost);
}

const po_combination *po_chooser_best(const po_chooser *c, uint32_t rank) {
    double above = 0;
    uint32_t last = PO_NONE;
    for (uint32_t k = 0;; k++) {
        uint32_t best = PO_NONE;
        for (uint32_t i = 0; i < c->n; i++) {
            const po_combination *s = &c->states[i];
            bool later = s->cost > above || (s->cost == above && last != PO_NONE && i > last);
            if (has_cost(s) && later && (best == PO_NONE || s->cost < c->states[best].cost))
                best = i;
        }
        if (best == PO_NONE)
            return NULL;
        if (k == rank)
            return &c->states[best];
        above = c->states[best].cost;
        last = best;
    }
}

/* --- what choices do --- */

static po_choices with(const po_chooser *c, po_choices choices, uint32_t choice) {
    return (choices & ~c->rules.excludes[choice]) | PO_CHOICE(choice);
}

/* What making the choice did to the cost, between the two best states that tell; 0: none do. */
static double effect_of(const po_chooser *c, uint32_t choice) {
    double effect = 0, least = HUGE_VAL;
    for (uint32_t i = 0; i < c->n; i++) {
        const po_combination *s = &c->states[i], *made;
        if (s->choices >> choice & 1 || !has_cost(s))
            continue;
        made = po_chooser_find(c, s->base, with(c, s->choices, choice));
        if (!has_cost(made) || fmin(s->cost, made->cost) >= least)
            continue;
        least = fmin(s->cost, made->cost);
        effect = made->cost / s->cost;
    }
    return effect;
}

/* The same of going over from one base to another. */
static double effect_of_base(const po_chooser *c, uint32_t from, uint32_t to) {
    double effect = 0, least = HUGE_VAL;
    for (uint32_t i = 0; i < c->n; i++) {
        const po_combination *s = &c->states[i];
        const po_combination *other = po_chooser_find(c, to, s->choices);
        if (s->base != from || !has_cost(s) || !has_cost(other) ||
            fmin(s->cost, other->cost) >= least)
            continue;
        least = fmin(s->cost, other->cost);
        effect = other->cost / s->cost;
    }
    return effect;
}

/* --- neighbours --- */

static void propose(const po_chooser *c, proposals *p, uint32_t base, po_choices choices,
                    double promise) {
    if (p->n == MOST_PROPOSALS || po_chooser_find(c, base, choices))
        return;
    for (uint32_t i = 0; i < p->n; i++)
        if (p->list[i].base == base && p->list[i].choices == choices)
            return;
    uint32_t k = p->n++;
    for (; k > 0 && p->list[k - 1].promise > promise; k--)
        p->list[k] = p->list[k - 1];
    p->list[k] = (proposal){base, choices, promise};
}

/* All that gains, made on top of a state: what gains most comes first, and keeps out what it
 * excludes. */
static void propose_joined(const po_chooser *c, proposals *p, const po_combination *s,
                           const double *effect) {
    po_choices choices = s->choices, left = s->open;
    double promise = s->cost;
    for (;;) {
        uint32_t best = PO_NONE;
        for (uint32_t k = 0; k < c->rules.n_choices; k++)
            if (left >> k & 1 && !(choices >> k & 1) && effect[k] > 0 &&
                effect[k] * c->rules.gain < 1 && (best == PO_NONE || effect[k] < effect[best]))
                best = k;
        if (best == PO_NONE)
            break;
        choices = with(c, choices, best);
        promise *= effect[best];
        left &= ~(c->rules.excludes[best] | PO_CHOICE(best));
        if (choices != s->choices)
            propose(c, p, s->base, choices, promise);
    }
}

static void propose_around(const po_chooser *c, proposals *p, const po_combination *s,
                           const double *effect) {
    for (uint32_t k = 0; k < c->rules.n_choices; k++) {
        double known = effect[k] > 0 ? effect[k] : 1;
        if (s->choices >> k & 1)
            propose(c, p, s->base, s->choices & ~PO_CHOICE(k), s->cost / known);
        else if (s->open >> k & 1)
            propose(c, p, s->base, with(c, s->choices, k), s->cost * known);
    }
    for (uint32_t base = 0; c->rules.bases >> base; base++) {
        double known = effect_of_base(c, s->base, base);
        if (base != s->base && c->rules.bases >> base & 1)
            propose(c, p, base, s->choices, s->cost * (known > 0 ? known : 1));
    }
}

static void find_neighbours(const po_chooser *c, proposals *p) {
    double effect[PO_CHOOSER_CHOICES];
    const po_combination *best = po_chooser_best(c, 0), *s;
    uint32_t kept = 0;
    p->n = 0;
    for (uint32_t k = 0; k < c->rules.n_choices; k++)
        effect[k] = effect_of(c, k);
    for (uint32_t i = 0; i < c->rules.beam && i < MOST_BEAM && (s = po_chooser_best(c, i)); i++) {
        propose_joined(c, p, s, effect);
        propose_around(c, p, s, effect);
    }
    while (kept < p->n && p->list[kept].promise <= c->rules.hopeless * best->cost)
        kept++;
    p->n = kept;
}

/* --- rounds --- */

static po_status price_new(po_chooser *c) {
    po_combination **batch = PO_NEW_N(c->arena, po_combination *, c->n + 1);
    uint32_t n = 0;
    for (uint32_t i = 0; i < c->n; i++)
        if (!c->states[i].priced)
            batch[n++] = &c->states[i];
    po_status status = n > 0 ? c->rules.price(c->rules.user, batch, n) : PO_OK;
    for (uint32_t i = 0; i < n; i++)
        batch[i]->priced = true;
    return status;
}

static po_status next_round(po_chooser *c, bool *better) {
    proposals p;
    const po_combination *best = po_chooser_best(c, 0);
    uint32_t before = c->n, most = c->rules.at_a_time;
    *better = false;
    if (!best)
        return PO_OK;
    double least = best->cost;
    find_neighbours(c, &p);
    for (uint32_t i = 0; i < p.n && (most == 0 || i < most) && c->n < c->rules.most; i++)
        po_chooser_add(c, p.list[i].base, p.list[i].choices);
    if (c->n == before)
        return PO_OK;
    PO_TRY(price_new(c));
    c->rounds++;
    best = po_chooser_best(c, 0);
    *better = best && best->cost * c->rules.gain < least;
    po_log(c->ctx, "choosing: round %u, %u of %u neighbours, %u of %u states; %s", c->rounds,
           c->n - before, p.n, c->n, c->rules.most,
           *better   ? "better"
           : c->over ? "the time is up"
                     : "none is better");
    return PO_OK;
}

po_status po_chooser_run(po_chooser *c) {
    bool better = true;
    PO_TRY(price_new(c));
    while (better && !c->over) {
        PO_TRY(po_ctx_poll(c->ctx));
        PO_TRY(next_round(c, &better));
    }
    return PO_OK;
}

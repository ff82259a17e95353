/* Choosing an option for each of many places, of which some pairs save something (layout_choice.h).
 */
#include "base/groups.h"
#include "pipeline/search/layout_choice.h"

#include <math.h>

typedef struct solver {
    const po_layout_problem *problem;
    po_arena *arena;
    bool *held;          /* by place: not chosen by the trees */
    uint32_t *order;     /* places of the trees, each after what it hangs on */
    uint32_t *up;        /* by place: the pair that it hangs on; PO_NONE: a root */
    uint32_t n_order;    /* the trees' */
    double **cost;       /* by place and option: the least of all that hangs on it, and its own */
    uint32_t **first_of; /* by place and the option of what it hangs on: the best of its own */
} solver;

static double saved(const po_layout_problem *p, const po_layout_pair *pair, uint32_t a,
                    uint32_t b) {
    return pair->saves[a * p->n_options[pair->b] + b];
}

double po_layouts_cost(const po_layout_problem *problem, const uint32_t *choice) {
    double sum = 0;
    for (uint32_t i = 0; i < problem->n; i++)
        sum += problem->seconds[i][choice[i]];
    for (uint32_t i = 0; i < problem->n_pairs; i++) {
        const po_layout_pair *pair = &problem->pairs[i];
        sum -= saved(problem, pair, choice[pair->a], choice[pair->b]);
    }
    return sum;
}

/* A place with one option joins nothing. One end of each pair that would close a cycle is held. */
static void hold(solver *s) {
    const po_layout_problem *p = s->problem;
    uint32_t *parent = PO_NEW_N(s->arena, uint32_t, p->n);
    for (uint32_t i = 0; i < p->n; i++) {
        parent[i] = i;
        s->held[i] = p->n_options[i] == 1;
    }
    for (uint32_t i = 0; i < p->n_pairs; i++) {
        const po_layout_pair *pair = &p->pairs[i];
        if (s->held[pair->a] || s->held[pair->b])
            continue;
        uint32_t a = po_group_root(parent, pair->a), b = po_group_root(parent, pair->b);
        if (a == b)
            s->held[pair->b] = true;
        parent[b] = a;
    }
}

static uint32_t other_end(const po_layout_pair *pair, uint32_t place) {
    return pair->a == place ? pair->b : pair->a;
}

/* The trees of what is not held. */
static void grow(solver *s) {
    const po_layout_problem *p = s->problem;
    uint32_t *start = PO_NEW_N(s->arena, uint32_t, p->n + 2);
    uint32_t *pairs = PO_NEW_N(s->arena, uint32_t, 2 * (size_t)p->n_pairs + 1);
    bool *seen = PO_NEW_N(s->arena, bool, p->n);
    for (uint32_t i = 0; i < p->n_pairs; i++) {
        start[p->pairs[i].a + 2]++;
        start[p->pairs[i].b + 2]++;
    }
    for (uint32_t i = 2; i < p->n + 2; i++)
        start[i] += start[i - 1];
    for (uint32_t i = 0; i < p->n_pairs; i++) {
        pairs[start[p->pairs[i].a + 1]++] = i;
        pairs[start[p->pairs[i].b + 1]++] = i;
    }
    for (uint32_t root = 0; root < p->n; root++) {
        if (seen[root] || s->held[root])
            continue;
        uint32_t next = s->n_order;
        seen[root] = true;
        s->up[root] = PO_NONE;
        s->order[s->n_order++] = root;
        for (; next < s->n_order; next++)
            for (uint32_t k = start[s->order[next]]; k < start[s->order[next] + 1]; k++) {
                uint32_t place = other_end(&p->pairs[pairs[k]], s->order[next]);
                if (seen[place] || s->held[place])
                    continue;
                seen[place] = true;
                s->up[place] = pairs[k];
                s->order[s->n_order++] = place;
            }
    }
}

static double saved_from(const solver *s, const po_layout_pair *pair, uint32_t place, uint32_t own,
                         uint32_t others) {
    return pair->a == place ? saved(s->problem, pair, own, others)
                            : saved(s->problem, pair, others, own);
}

/* The best of a place and all that hangs on it, for each option of what it hangs on. */
static void send_up(solver *s, uint32_t place) {
    const po_layout_problem *p = s->problem;
    const po_layout_pair *pair = &p->pairs[s->up[place]];
    uint32_t above = other_end(pair, place);
    for (uint32_t k = 0; k < p->n_options[above]; k++) {
        uint32_t first = 0;
        double least = 0;
        for (uint32_t i = 0; i < p->n_options[place]; i++) {
            double cost = s->cost[place][i] - saved_from(s, pair, place, i, k);
            if (i == 0 || cost < least) {
                least = cost;
                first = i;
            }
        }
        s->first_of[place][k] = first;
        s->cost[above][k] += least;
    }
}

/* The trees' best choice beside the held places as they stand. */
static void solve_trees(solver *s, uint32_t *choice) {
    const po_layout_problem *p = s->problem;
    for (uint32_t i = 0; i < s->n_order; i++) {
        uint32_t place = s->order[i];
        memcpy(s->cost[place], p->seconds[place], p->n_options[place] * sizeof(double));
    }
    for (uint32_t i = 0; i < p->n_pairs; i++) {
        const po_layout_pair *pair = &p->pairs[i];
        if (s->held[pair->a] == s->held[pair->b])
            continue;
        uint32_t place = s->held[pair->a] ? pair->b : pair->a, held = other_end(pair, place);
        for (uint32_t k = 0; k < p->n_options[place]; k++)
            s->cost[place][k] -= saved_from(s, pair, place, k, choice[held]);
    }
    for (uint32_t i = s->n_order; i-- > 0;)
        if (s->up[s->order[i]] != PO_NONE)
            send_up(s, s->order[i]);
    for (uint32_t i = 0; i < s->n_order; i++) {
        uint32_t place = s->order[i];
        if (s->up[place] != PO_NONE) {
            uint32_t above = other_end(&p->pairs[s->up[place]], place);
            choice[place] = s->first_of[place][choice[above]];
            continue;
        }
        choice[place] = 0;
        for (uint32_t k = 1; k < p->n_options[place]; k++)
            if (s->cost[place][k] < s->cost[place][choice[place]])
                choice[place] = k;
    }
}

/* Takes `tried` where it costs less. */
static bool take(const po_layout_problem *p, uint32_t *choice, const uint32_t *tried) {
    double now = po_layouts_cost(p, choice);
    if (!(po_layouts_cost(p, tried) < now - 1e-9 * fabs(now)))
        return false;
    memcpy(choice, tried, p->n * sizeof *choice);
    return true;
}

void po_layouts_solve(po_arena *arena, const po_layout_problem *problem, uint32_t *choice) {
    uint32_t n = problem->n, most = 1;
    solver s = {.problem = problem, .arena = po_arena_child(arena)};
    s.held = PO_NEW_N(s.arena, bool, n);
    s.order = PO_NEW_N(s.arena, uint32_t, n);
    s.up = PO_NEW_N(s.arena, uint32_t, n);
    s.cost = PO_NEW_N(s.arena, double *, n);
    s.first_of = PO_NEW_N(s.arena, uint32_t *, n);
    for (uint32_t i = 0; i < n; i++)
        most = problem->n_options[i] > most ? problem->n_options[i] : most;
    for (uint32_t i = 0; i < n; i++) {
        s.cost[i] = PO_NEW_N(s.arena, double, problem->n_options[i]);
        s.first_of[i] = PO_NEW_N(s.arena, uint32_t, most);
    }
    hold(&s);
    grow(&s);
    uint32_t *tried = PO_NEW_N(s.arena, uint32_t, n);
    memcpy(tried, choice, n * sizeof *tried);
    solve_trees(&s, tried);
    take(problem, choice, tried);
    bool changed = true;
    for (uint32_t round = 0; changed && round < PO_SEAMS_ROUNDS; round++) {
        changed = false;
        for (uint32_t i = 0; i < n; i++)
            for (uint32_t k = 0; s.held[i] && k < problem->n_options[i]; k++) {
                if (problem->n_options[i] == 1 || k == choice[i])
                    continue;
                memcpy(tried, choice, n * sizeof *tried);
                tried[i] = k;
                solve_trees(&s, tried);
                changed |= take(problem, choice, tried);
            }
    }
    po_arena_free(s.arena);
}

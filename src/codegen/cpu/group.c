/* Statements on tiles: the loops, the guards, and the order of rows and lanes around them. */
#include "codegen/cpu/group.h"
#include "base/num.h"
#include "codegen/cpu/lanes.h"

#include <stdio.h>

/* --- loops --- */

/* How many steps a label that runs has. */
static const char *steps_of(const cg *g, uint32_t label) {
    const cg_span *span = &g->span[label];
    return span->count ? span->count : po_arena_printf(g->arena, "%lld", (long long)span->full);
}

uint32_t cg_run(cg *g, uint32_t label, bool inner) {
    const cg_span *span = &g->span[label];
    const char *start = span->start == NULL ? "0" : span->start;
    const char *name = g->label[label];
    int64_t extent = g->mu->labels[label].extent;
    cg_value *value = &g->value[label];
    if (span->at != NULL || (span->full == 1 && span->count == NULL)) {
        *value = (cg_value){span->at != NULL ? span->at : span->start, 0, 0, extent - 1, inner};
        return 0;
    }
    const char *end = steps_of(g, label);
    if (span->start != NULL || span->count != NULL)
        end = po_arena_printf(g->arena, "%s + %s", start, end);
    cg_open(g, "for (long i_%s = %s; i_%s < %s; i_%s++)", name, start, name, end, name);
    *value = (cg_value){po_arena_printf(g->arena, "i_%s", name), 0, 0, extent - 1, inner};
    return 1;
}

void cg_run_blocks(cg *g, uint32_t label, int64_t block) {
    const char *name = g->label[label];
    cg_open(g, "for (long s_%s = 0; s_%s < %s; s_%s += %lld)", name, name, steps_of(g, label), name,
            (long long)block);
}

void cg_run_block(cg *g, uint32_t label, int64_t block) {
    const cg_span *span = &g->span[label];
    const char *start = span->start == NULL ? "0" : span->start, *name = g->label[label];
    const char *steps = po_arena_printf(g->arena, "%lld", (long long)block);
    if (span->count != NULL || span->full % block != 0) {
        const char *all = steps_of(g, label);
        steps = po_arena_printf(g->arena, "(%s - s_%s < %lld ? %s - s_%s : %lld)", all, name,
                                (long long)block, all, name, (long long)block);
    }
    cg_open(g, "for (long i_%s = %s + s_%s; i_%s < %s + s_%s + %s; i_%s++)", name, start, name,
            name, start, name, steps, name);
    g->value[label] = (cg_value){po_arena_printf(g->arena, "i_%s", name), 0, 0,
                                 g->mu->labels[label].extent - 1, true};
}

const char *cg_tail_of(cg *g, cg_steps steps) {
    const int64_t tail = steps.n % g->isa->lanes;
    return steps.count || tail == 0 ? steps.count
                                    : po_arena_printf(g->arena, "%lld", (long long)tail);
}

static po_status left_over(cg *g, cg_steps steps, const char *condition, cg_each_fn each,
                           void *user) {
    if (condition == NULL)
        cg_brace(g);
    else
        cg_open(g, "%s", condition);
    PO_TRY(each(user, steps));
    cg_close(g);
    return PO_OK;
}

/* `alone`: a last step may be left by itself. */
static void blocks_of(cg *g, uint32_t label, int64_t block, const char *end, bool alone) {
    const char *name = g->label[label];
    const char *unless = alone ? ""
                               : po_arena_printf(g->arena, " && i_%s + %lld != %s", name,
                                                 (long long)(block + 1), end);
    cg_open(g, "for (; i_%s + %lld <= %s%s; i_%s += %lld)", name, (long long)block, end, unless,
            name, (long long)block);
}

/* The next smaller block: halves of many rows, and each number of few, since weights are read once
 * more for every block. */
static int64_t smaller(int64_t n, int64_t vector) {
    enum { FEW = 4 };
    if (n == vector)
        return 0;
    if (vector > 1)
        return vector;
    return n >= INT64_C(2) * FEW ? n / 2 : n > FEW ? FEW : n - 1;
}

/* Any number of steps: blocks, then smaller ones; of lanes what is left of a vector. No row is left
 * alone: it has too few sums for the latency of one to be hidden. */
static po_status spread_any(cg *g, uint32_t label, int64_t block, int64_t vector, const char *end,
                            cg_each_fn each, void *user) {
    const char *name = g->label[label];
    for (int64_t n = block; n >= vector; n = smaller(n, vector)) {
        blocks_of(g, label, n, end, vector > 1 || n <= 2);
        PO_TRY(each(user, (cg_steps){n, NULL}));
        cg_close(g);
    }
    if (vector == 1)
        return PO_OK;
    const char *rest = po_arena_printf(g->arena, "rest_%s", name);
    cg_line(g, "const int %s = (int)(%s - i_%s);", rest, end, name);
    return left_over(g, (cg_steps){vector, rest}, po_arena_printf(g->arena, "if (%s > 0)", rest),
                     each, user);
}

po_status cg_spread(cg *g, uint32_t label, int64_t block, int64_t vector, bool inner,
                    cg_each_fn each, void *user) {
    const cg_span *span = &g->span[label];
    const char *start = span->start == NULL ? "0" : span->start;
    const char *name = g->label[label];
    int64_t extent = g->mu->labels[label].extent;
    cg_value *value = &g->value[label];
    if (span->count == NULL && span->full <= block) {
        *value = (cg_value){span->start, 0, 0, extent - 1, inner};
        return each(user, (cg_steps){span->full, NULL});
    }
    *value = (cg_value){po_arena_printf(g->arena, "i_%s", name), 0, 0, extent - 1, inner};
    const char *count = steps_of(g, label);
    const char *end = po_arena_printf(g->arena, "%s + %s", start, count);
    cg_brace(g);
    cg_line(g, "long i_%s = %s;", name, start);
    if (span->open) {
        PO_TRY(spread_any(g, label, block, vector, end, each, user));
        cg_close(g);
        return PO_OK;
    }
    blocks_of(g, label, block, end, true);
    PO_TRY(each(user, (cg_steps){block, NULL}));
    cg_close(g);
    int64_t left[2] = {span->full % block, span->tail % block};
    if (span->count == NULL && left[0] != 0)
        PO_TRY(left_over(g, (cg_steps){left[0], NULL}, NULL, each, user));
    for (int i = 0; i < 2 && span->count != NULL; i++)
        if (left[i] != 0 && (i == 0 || left[1] != left[0]))
            PO_TRY(left_over(
                g, (cg_steps){left[i], NULL},
                po_arena_printf(g->arena, "if (%s - i_%s == %lld)", end, name, (long long)left[i]),
                each, user));
    cg_close(g);
    return PO_OK;
}

/* --- guards --- */

uint32_t cg_guards(cg *g, uint32_t node, const bool *ready, bool *done) {
    const po_mu_statement *s = &g->mu->nodes[node].statement;
    po_text text;
    po_text_init(&text, g->arena);
    uint32_t n = 0;
    for (uint32_t k = 0; k <= s->n_in; k++) {
        const po_mu_access *access = k < s->n_in ? &s->in[k] : &s->out;
        if (po_mu_open_edge(g->open, node, k < s->n_in ? k : PO_NONE) != PO_MU_GUARD)
            continue;
        for (uint32_t a = 0; a < g->mu->tensors[access->tensor].rank; a++) {
            bool *flag = &done[k * PO_MU_MAX_RANK + a];
            bool all = true;
            for (uint32_t i = 0; i < access->axes[a].n; i++)
                all &= ready[access->axes[a].terms[i].label];
            if (*flag || !all)
                continue;
            *flag = true;
            if (!cg_leaves(g, access, a))
                continue;
            po_text_printf(&text, "%s%s", n++ ? " && " : "", cg_inside(g, access, a));
        }
    }
    if (n == 0)
        return 0;
    cg_open(g, "if (%s)", text.data);
    return 1;
}

/* --- the group --- */

typedef struct group {
    cg_tile tile;
    uint32_t n;
    const uint32_t *nodes;
    bool lanes_inside; /* rows outside lanes */
} group;

static po_status on_tile(group *u) {
    cg *g = u->tile.g;
    for (uint32_t i = 0; i < u->n; i++) {
        cg_tile tile = u->tile;
        if (i > 0 && tile.lane_reduced) { /* the lanes have been added up */
            tile.lane = PO_NONE;
            tile.lane_reduced = false;
            tile.v = 1;
            tile.tail = NULL;
        }
        PO_TRY(cg_on_tile(&tile, u->nodes[i], i > 0));
    }
    for (uint32_t i = 0; i < u->n; i++)
        g->tensor[g->mu->nodes[u->nodes[i]].statement.out.tensor].held = false;
    return PO_OK;
}

int64_t cg_rows_of(const cg_tile *t) {
    const int64_t lines = t->over == PO_NONE ? 1 : t->g->span[t->over].full;
    return t->row == PO_NONE ? 1 : lines * t->g->span[t->row].full;
}

static po_status over_lanes(group *u);

static po_status a_row_block(void *user, cg_steps steps) {
    group *u = user;
    u->tile.r = steps.n;
    return u->lanes_inside ? over_lanes(u) : on_tile(u);
}

/* The rows of `lines` lines, tile after tile: some begin within a line and end in the next. */
static po_status over_lines(group *u, int64_t lines) {
    cg *g = u->tile.g;
    const cg_span *span = &g->span[u->tile.over];
    const int64_t rows = lines * u->tile.line;
    g->value[u->tile.over] =
        (cg_value){span->start, 0, 0, g->mu->labels[u->tile.over].extent - 1, false};
    g->value[u->tile.row] = (cg_value){NULL, 0, 0, u->tile.line - 1, false};
    for (u->tile.first = 0; u->tile.first < rows; u->tile.first += u->tile.rows) {
        const int64_t left = rows - u->tile.first;
        cg_brace(g);
        PO_TRY(a_row_block(u, (cg_steps){left < u->tile.rows ? left : u->tile.rows, NULL}));
        cg_close(g);
    }
    return PO_OK;
}

static po_status over_rows(group *u) {
    if (u->tile.row == PO_NONE)
        return a_row_block(u, (cg_steps){1, NULL});
    if (u->tile.over != PO_NONE) {
        cg *g = u->tile.g;
        const cg_span *span = &g->span[u->tile.over];
        if (span->count == NULL)
            return over_lines(u, span->full);
        cg_open(g, "if (%s == %lld)", span->count, (long long)span->full);
        PO_TRY(over_lines(u, span->full));
        g->depth--;
        cg_open(g, "} else");
        PO_TRY(over_lines(u, span->tail));
        cg_close(g);
        return PO_OK;
    }
    return cg_spread(u->tile.g, u->tile.row, u->tile.rows, 1, false, a_row_block, u);
}

static po_status a_lane_block(void *user, cg_steps steps) {
    group *u = user;
    int64_t w = u->tile.g->isa->lanes;
    u->tile.v = (steps.n + w - 1) / w;
    u->tile.tail = cg_tail_of(u->tile.g, steps);
    return u->lanes_inside ? on_tile(u) : over_rows(u);
}

static po_status over_lanes(group *u) {
    if (u->tile.lane == PO_NONE || u->tile.lane_reduced) {
        u->tile.v = 1;
        u->tile.tail = NULL;
        return u->lanes_inside ? on_tile(u) : over_rows(u);
    }
    return cg_spread(u->tile.g, u->tile.lane, u->tile.lanes, u->tile.g->isa->lanes, false,
                     a_lane_block, u);
}

static bool contains(const uint32_t *list, uint32_t n, uint32_t label) {
    for (uint32_t i = 0; i < n; i++)
        if (list[i] == label)
            return true;
    return false;
}

/* Whether a guard of the group tests an index that holds the label. */
static bool is_guarded(cg *g, const group *u, uint32_t label) {
    for (uint32_t i = 0; i < u->n; i++) {
        const po_mu_statement *s = &g->mu->nodes[u->nodes[i]].statement;
        for (uint32_t k = 0; k <= s->n_in; k++) {
            const po_mu_access *access = k < s->n_in ? &s->in[k] : &s->out;
            if (po_mu_open_edge(g->open, u->nodes[i], k < s->n_in ? k : PO_NONE) != PO_MU_GUARD)
                continue;
            for (uint32_t a = 0; a < g->mu->tensors[access->tensor].rank; a++)
                if (po_mu_coef(&access->axes[a], label) != 0 &&
                    po_mu_open_leaves(g->open, access, a))
                    return true;
        }
    }
    return false;
}

/* Of rows or lanes, where it is one number; else 0. */
static int64_t extent_of(const cg *g, uint32_t label) {
    return label == PO_NONE || g->span[label].open ? 0 : g->span[label].full;
}

/* Whether what the group reads and writes is in whole vectors from row to row: not turned. */
static bool is_straight(const cg *g, const group *u) {
    for (uint32_t i = 0; i < u->n; i++) {
        const po_mu_statement *s = &g->mu->nodes[u->nodes[i]].statement;
        for (uint32_t k = 0; k <= s->n_in; k++) {
            const po_mu_access *access = k < s->n_in ? &s->in[k] : &s->out;
            if (g->mu->tensors[access->tensor].place != PO_MU_REGISTER &&
                cg_step_of(g, access, u->tile.row) == 1 && cg_step_of(g, access, u->tile.lane) != 0)
                return false;
        }
    }
    return true;
}

/* Lines of a few rows each, one after the other, leave registers unused in their last tiles: 7 rows
 * go 4 and 3 at a time, two lines of them 5, 5 and 4. `around`: the label next to the rows. */
static void join_lines(cg *g, group *u, uint32_t around) {
    enum { MOST = 64 /* rows: each tile of them is code of its own */ };
    const double worth = 0.97;
    cg_tile *t = &u->tile;
    const cg_span *row = t->row == PO_NONE ? NULL : &g->span[t->row];
    const cg_span *over = around == PO_NONE ? NULL : &g->span[around];
    if (!row || !over || t->lane == PO_NONE || t->lane_reduced || u->lanes_inside || row->open ||
        row->start || row->count || row->at || over->open || over->at || over->full < 2 ||
        over->full * row->full > MOST || is_guarded(g, u, around) || !is_straight(g, u))
        return;
    const int64_t vectors = t->lanes / g->isa->lanes, n = over->full * row->full;
    int64_t rows = g->mu->nodes[u->nodes[0]].statement.rows, lanes = t->lanes;
    po_isa_tile(g->isa, n, &rows, &lanes);
    const double apart = (double)over->full * po_isa_cycles(row->full, t->rows, vectors);
    if (lanes == t->lanes && po_isa_cycles(n, rows, vectors) < worth * apart) {
        t->over = around;
        t->line = row->full;
        t->rows = rows;
    }
}

/* The tile of the schedule, as far as registers go. */
static void set_tile(cg *g, group *u, bool reduces) {
    const po_mu_statement *s = &g->mu->nodes[u->nodes[0]].statement;
    const int64_t w = g->isa->lanes;
    u->tile.row = s->row;
    u->tile.lane = s->lane;
    if (s->lane != PO_NONE && is_guarded(g, u, s->lane))
        u->tile.lane = PO_NONE;
    if (s->row != PO_NONE && is_guarded(g, u, s->row))
        u->tile.row = PO_NONE;
    int64_t rows = u->tile.row == PO_NONE ? 1 : s->rows > 0 ? s->rows : 1;
    int64_t lanes = (int64_t)(s->vectors > 0 ? s->vectors : 1) * PO_MU_VECTOR;
    const int64_t all = po_ceil_div(extent_of(g, u->tile.lane), w) * w;
    if (all > 0 && all < lanes)
        lanes = all;
    if (u->tile.lane != PO_NONE && reduces)
        po_isa_tile(g->isa, extent_of(g, u->tile.row), &rows, &lanes);
    u->tile.rows = rows;
    u->tile.lanes = u->tile.lane == PO_NONE ? 1 : po_ceil_div(lanes, w) * w;
}

/* Sets what a fresh statement adds to more than once. */
static void set_first(cg *g, uint32_t node, const uint32_t *kept, uint32_t n_kept) {
    const po_mu_statement *s = &g->mu->nodes[node].statement;
    const char *condition;
    uint32_t braces = 0;
    bool *ready = PO_NEW_N(g->arena, bool, g->mu->n_labels + 1);
    bool *done = PO_NEW_N(g->arena, bool, (PO_MU_MAX_INPUTS + 1) * PO_MU_MAX_RANK);
    for (uint32_t i = 0; i < s->n_in * PO_MU_MAX_RANK; i++)
        done[i] = true;
    (void)cg_starts(g, s, &condition);
    if (condition != NULL) {
        cg_open(g, "if (%s)", condition);
        braces++;
    }
    for (uint32_t i = 0; i < n_kept; i++) {
        braces += cg_run(g, kept[i], false);
        ready[kept[i]] = true;
    }
    braces += cg_guards(g, node, ready, done);
    cg_line(g, "*(%s) = %s;", cg_base(g, &s->out),
            s->combine == PO_MU_ADD ? "0.0f" : "-__builtin_inff()");
    while (braces-- > 0)
        cg_close(g);
}

static bool has_guards(const cg *g, uint32_t node) {
    const po_mu_statement *s = &g->mu->nodes[node].statement;
    bool any = po_mu_open_edge(g->open, node, PO_NONE) == PO_MU_GUARD;
    for (uint32_t k = 0; k < s->n_in; k++)
        any |= po_mu_open_edge(g->open, node, k) == PO_MU_GUARD;
    return any;
}

uint32_t cg_led_by(cg *g, uint32_t node) {
    const po_mu_node *n = &g->mu->nodes[node];
    if (n->kind != PO_MU_STATEMENT || n->next == PO_NONE ||
        g->mu->nodes[n->next].kind != PO_MU_STATEMENT)
        return PO_NONE;
    const po_mu_statement *a = &n->statement, *b = &g->mu->nodes[n->next].statement;
    uint32_t after = g->mu->nodes[n->next].next;
    bool chain = after != PO_NONE && g->mu->nodes[after].kind == PO_MU_STATEMENT &&
                 g->mu->nodes[after].statement.fused;
    if (a->combine != PO_MU_SET || b->combine == PO_MU_SET || a->fused || b->fused || chain ||
        a->lane == PO_NONE || a->lane != b->lane || a->row != PO_NONE || b->row != PO_NONE ||
        g->mu->tensors[a->out.tensor].place == PO_MU_REGISTER || a->out.tensor == b->out.tensor ||
        cg_step_of(g, &a->out, a->lane) != 1 || has_guards(g, node) || has_guards(g, n->next))
        return PO_NONE;
    bool reads = false;
    for (uint32_t k = 0; k < b->n_in; k++) {
        if (b->in[k].tensor == a->out.tensor && !po_mu_same_access(g->mu, &b->in[k], &a->out))
            return PO_NONE;
        reads |= b->in[k].tensor == a->out.tensor;
    }
    for (uint32_t k = 0; k < a->n_in; k++)
        reads &= a->in[k].tensor != b->out.tensor && a->in[k].tensor != a->out.tensor;
    uint32_t n_kept[2], n_reduced[2], *kept[2], *reduced[2];
    po_mu_labels_of(g->mu, a, g->arena, &n_kept[0], &kept[0], &n_reduced[0], &reduced[0]);
    po_mu_labels_of(g->mu, b, g->arena, &n_kept[1], &kept[1], &n_reduced[1], &reduced[1]);
    if (!reads || n_reduced[0] != 0 || n_reduced[1] != 1 || reduced[1][0] != b->lane ||
        n_kept[0] != n_kept[1] + 1)
        return PO_NONE;
    for (uint32_t i = 0; i < n_kept[1]; i++)
        if (!contains(kept[0], n_kept[0], kept[1][i]))
            return PO_NONE;
    return n->next;
}

po_status cg_group(cg *g, uint32_t node, uint32_t *next) {
    group u = {.tile = {.g = g, .over = PO_NONE}, .n = 1};
    uint32_t led = cg_led_by(g, node);
    if (led != PO_NONE) {
        u.tile.led = true;
        u.tile.lead = node;
        node = led;
    }
    const po_mu_statement *s = &g->mu->nodes[node].statement;
    for (uint32_t m = g->mu->nodes[node].next; m != PO_NONE; m = g->mu->nodes[m].next) {
        if (g->mu->nodes[m].kind != PO_MU_STATEMENT || !g->mu->nodes[m].statement.fused)
            break;
        u.n++;
    }
    uint32_t *nodes = PO_NEW_N(g->arena, uint32_t, u.n);
    u.nodes = nodes;
    *next = node;
    for (uint32_t i = 0; i < u.n; i++, *next = g->mu->nodes[*next].next)
        nodes[i] = *next;

    uint32_t n_kept, n_reduced, *kept, *reduced;
    po_mu_labels_of(g->mu, s, g->arena, &n_kept, &kept, &n_reduced, &reduced);
    set_tile(g, &u, n_reduced > 0);
    u.tile.lane_reduced = u.tile.lane != PO_NONE && contains(reduced, n_reduced, u.tile.lane);
    u.lanes_inside = n_reduced == 0 && s->lane != PO_NONE;

    if (s->combine != PO_MU_SET && s->fresh && !cg_is_apart(g, &s->out)) {
        if (u.n > 1)
            return po_fail(g->ctx, PO_UNSUPPORTED,
                           "step '%s': '%s' is not finished where a fused statement reads it",
                           g->step, g->mu->tensors[s->out.tensor].name);
        set_first(g, node, kept, n_kept);
        u.tile.started = true;
    }

    /* The outer labels: those of the order, then any others. */
    uint32_t n_outer = 0, *outer = PO_NEW_N(g->arena, uint32_t, n_kept + 1);
    for (uint32_t i = 0; i < s->n_order; i++)
        if (contains(kept, n_kept, s->order[i]))
            outer[n_outer++] = s->order[i];
    for (uint32_t i = 0; i < n_kept; i++)
        if (!contains(outer, n_outer, kept[i]))
            outer[n_outer++] = kept[i];
    bool *ready = PO_NEW_N(g->arena, bool, g->mu->n_labels + 1);
    bool *done = PO_NEW_N(g->arena, bool, (PO_MU_MAX_INPUTS + 1) * PO_MU_MAX_RANK);
    /* What is added up or compared leaves out single terms: the tile sees to those. */
    for (uint32_t i = 0; s->combine != PO_MU_SET && i < s->n_in * PO_MU_MAX_RANK; i++)
        done[i] = true;
    uint32_t braces = 0, around = PO_NONE;
    for (uint32_t i = 0; i < n_outer; i++)
        if (outer[i] != u.tile.row && outer[i] != u.tile.lane)
            around = outer[i];
    if (n_reduced > 0)
        join_lines(g, &u, around);
    for (uint32_t i = 0; i < n_outer; i++) {
        if (outer[i] == u.tile.row || outer[i] == u.tile.lane)
            continue;
        if (outer[i] == u.tile.over) {
            ready[outer[i]] = true;
            continue;
        }
        braces += cg_run(g, outer[i], false);
        ready[outer[i]] = true;
        braces += cg_guards(g, node, ready, done);
    }
    PO_TRY(u.lanes_inside ? over_rows(&u) : over_lanes(&u));
    while (braces-- > 0)
        cg_close(g);
    return PO_OK;
}

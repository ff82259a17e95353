/* How the sums of a tile are added up: long ones in parts, and lanes at the end. */
#include "codegen/cpu/tile.h"

/* A chain of additions rounds once a term, and each time the same way where the terms are equal: a
 * mean over 160 x 160 numbers was off by 1e-5 of itself, which a detector magnified to 1.5e-3. So a
 * sum of what a tensor holds is added up in parts, a loop each and about as many terms as there are
 * parts; products with weights round either way and have parts only where they are very long and
 * registers are left. */
enum { LONG_SUM = 32, LONG_CHAIN = 2048, LEAST_BLOCK = 16, MOST_PARTS = 8 };

static bool is_reduced(const cg_tile_work *w, const po_mu_access *access) {
    for (uint32_t i = 0; i < w->n_reduced; i++)
        if (po_mu_has(w->t->g->mu, access, w->reduced[i]))
            return true;
    return w->t->lane_reduced && po_mu_has(w->t->g->mu, access, w->t->lane);
}

/* Whether two different things that vary with the terms are multiplied. */
static bool is_of_products(const cg_tile_work *w) {
    const po_mu_statement *s = w->s;
    bool *varies = PO_NEW_N(w->t->g->arena, bool, s->n_items + 1);
    for (uint32_t i = 0; i < s->n_items; i++) {
        const po_mu_item *it = &s->items[i];
        if (it->function == PO_MU_OPERAND)
            varies[i] = is_reduced(w, &s->in[it->a]);
        const uint32_t of[3] = {it->a, it->b, it->c};
        for (uint32_t a = 0; a < po_mu_arity(it->function); a++)
            varies[i] |= varies[of[a]];
        if (it->function == PO_MU_TIMES && it->a != it->b && varies[it->a] && varies[it->b])
            return true;
    }
    return false;
}

cg_sum cg_sum_of(const cg_tile_work *w) {
    if (w->s->combine != PO_MU_ADD || w->at_once != NULL)
        return CG_SUM_ONE;
    int64_t terms = 1;
    for (uint32_t i = 0; i < w->n_reduced && terms < LONG_CHAIN; i++)
        terms *= w->t->g->mu->labels[w->reduced[i]].extent;
    if (!is_of_products(w))
        return terms >= LONG_SUM ? CG_SUM_LEVELS : CG_SUM_ONE;
    bool registers = !w->t->lane_reduced && w->t->r * w->t->v <= MOST_PARTS;
    return terms >= LONG_CHAIN && registers ? CG_SUM_INNERMOST : CG_SUM_ONE;
}

static bool has_parts(const cg_tile_work *w, uint32_t at) {
    uint32_t running = w->unroll < w->n_reduced ? w->unroll : w->n_reduced;
    return w->sum == CG_SUM_LEVELS || (w->sum == CG_SUM_INNERMOST && at + 1 == running);
}

bool cg_sum_apart(const cg_tile_work *w, uint32_t at) {
    const cg_span *span = &w->t->g->span[w->reduced[at]];
    return at > 0 && has_parts(w, at) && (span->full > 1 || span->count != NULL);
}

int64_t cg_sum_block(const cg_tile_work *w, uint32_t at) {
    int64_t n = w->t->g->span[w->reduced[at]].full, block = LEAST_BLOCK;
    while (block * block < n)
        block *= 2;
    return has_parts(w, at) && n > block ? block : 0;
}

/* --- values --- */

/* The value is of vectors: those of the tile, or of the lanes that are added up. */
static int64_t vectors_of(const cg_tile_work *w) {
    if (!w->result_lane)
        return 1;
    return w->t->lane_reduced ? w->t->lanes / w->t->g->isa->lanes : w->t->v;
}

void cg_each_value(const cg_tile_work *w, const char *what, bool by_row, bool by_lane, int64_t n_v,
                   const char *type, const char *value) {
    cg *g = w->t->g;
    for (int64_t r = 0; r < (by_row ? w->t->r : 1); r++)
        for (int64_t v = 0; v < (by_lane ? n_v : 1); v++)
            cg_line(g, "%s%s%s%s;", type, cg_name(g, what, cg_number_of(w), by_row, r, by_lane, v),
                    value[0] ? " = " : "", value);
}

const char *cg_sum_start(cg_tile_work *w) {
    const char *whole = w->result;
    cg_brace(w->t->g);
    w->result = po_arena_printf(w->t->g->arena, "%ss", whole);
    cg_each_value(w, w->result, w->result_row, w->result_lane, vectors_of(w),
                  w->result_lane ? "pk_v " : "float ", w->result_lane ? "pk_set(0.0f)" : "0.0f");
    return whole;
}

void cg_sum_end(cg_tile_work *w, const char *whole) {
    cg *g = w->t->g;
    for (int64_t r = 0; r < (w->result_row ? w->t->r : 1); r++)
        for (int64_t v = 0; v < vectors_of(w); v++)
            cg_line(g, "%s += %s;",
                    cg_name(g, whole, cg_number_of(w), w->result_row, r, w->result_lane, v),
                    cg_name(g, w->result, cg_number_of(w), w->result_row, r, w->result_lane, v));
    w->result = whole;
    cg_close(g);
}

void cg_sum_lanes(const cg_tile_work *w, bool by_row) {
    cg *g = w->t->g;
    bool add = w->s->combine == PO_MU_ADD;
    int64_t n_v = w->t->lanes / g->isa->lanes;
    for (int64_t r = 0; r < (by_row ? w->t->r : 1); r++) {
        const char *all = cg_name(g, "a", cg_number_of(w), by_row, r, true, 0);
        for (int64_t v = 1; v < n_v; v++) {
            const char *one = cg_name(g, "a", cg_number_of(w), by_row, r, true, v);
            all = po_arena_printf(g->arena, add ? "(%s + %s)" : "pk_max(%s, %s)", all, one);
        }
        const char *to = cg_name(g, "v", cg_number_of(w), by_row, r, false, 0);
        if (add)
            cg_line(g, "%s += pk_sum_of(%s);", to, all);
        else
            cg_line(g, "%s = pk_max1(%s, pk_max_of(%s));", to, to, all);
    }
}

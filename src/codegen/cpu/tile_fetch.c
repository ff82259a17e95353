/* What a tile asks for before it is needed. */
#include "base/num.h"
#include "codegen/cpu/tile.h"

/* In C, whether these rows are the first of some that the slice at hand is worked for: those of the
 * next sample or line find fetched what comes. Parts of the pool begin with any line, so it is not
 * only the very first. NULL: there are no others. */
static const char *is_first(const cg_tile_work *w, const po_mu_access *access) {
    enum { EACH = 4 };
    cg *g = w->t->g;
    po_text text;
    po_text_init(&text, g->arena);
    const po_mu_access *out = &w->s->out;
    for (uint32_t x = 0; x < g->mu->tensors[out->tensor].rank; x++)
        for (uint32_t i = 0; i < out->axes[x].n; i++) {
            uint32_t label = out->axes[x].terms[i].label;
            const char *name = g->value[label].name;
            if (label != w->t->row && label != w->t->lane && name != NULL &&
                !po_mu_has(g->mu, access, label))
                po_text_printf(&text, "%s%s %% %d == 0", text.size ? " && " : "", name, EACH);
        }
    return text.size ? text.data : NULL;
}

/* Of rows whose number is open each fetches as much, so that few of them fetch the slice as well.
 */
static void share_by_rows(cg_tile_work *w, const po_text *from, const char *row, const char *first,
                          int64_t slice, int64_t bodies) {
    cg *g = w->t->g;
    const char *rows = g->span[w->t->row].count;
    w->stride = (slice + bodies - 1) / bodies;
    w->step = "hs";
    w->paced = true;
    cg_line(g, "const long hr = (%lld + %s) / %s;", (long long)(slice - 1), rows, rows);
    cg_line(g, "const long hs = %s%s(hr * %lld + %lld) / %lld%s;", first ? first : "",
            first ? " ? " : "", (long long)w->t->r, (long long)(bodies - 1), (long long)bodies,
            first ? " : 0" : "");
    cg_line(g, "const float *h = %s + %s * hr;", from->data, row);
}

/* What a tile fetches, and how often its body runs meanwhile. */
typedef struct coming {
    const po_mu_access *access;
    po_text from;   /* where it lies, in C */
    int64_t floats; /* of a slice */
    int64_t bodies; /* of a tile of rows */
    bool by_row;    /* each tile of rows has a slice of its own */
    const char *first;
} coming;

/* Where the chunks of what is reduced start, and how many steps they have. */
static void add_reduced(cg_tile_work *w, coming *c) {
    cg *g = w->t->g;
    c->bodies = 1;
    for (uint32_t i = 0; i < w->n_reduced; i++) {
        const cg_span *span = &g->span[w->reduced[i]];
        c->bodies *= span->full;
        if (span->start != NULL && cg_step_of(g, c->access, w->reduced[i]) != 0)
            po_text_printf(&c->from, " + %s * (%s)", cg_step_text(g, c->access, w->reduced[i]),
                           span->start);
    }
}

/* The next slice of an operand, or what comes soon of this one. */
static void own_slice(cg_tile_work *w, coming *c) {
    cg *g = w->t->g;
    const po_mu_statement *s = w->s;
    c->access = &s->in[s->ahead_of];
    c->floats = 1;
    po_text_printf(&c->from, "p%u + %lld", s->ahead_of, (long long)s->ahead);
    for (uint32_t i = 0; i < w->n_reduced; i++)
        if (cg_step_of(g, c->access, w->reduced[i]) != 0)
            c->floats *= g->span[w->reduced[i]].full;
    c->by_row = w->t->row != PO_NONE && w->in_row[s->ahead_of];
    if (w->in_lane[s->ahead_of])
        c->floats *= w->t->lanes;
    if (c->by_row)
        c->floats *= w->t->r;
    c->first = is_first(w, c->access);
}

uint32_t cg_filler_of(const cg *g, uint32_t node) {
    const po_mu *mu = g->mu;
    const po_mu_statement *s = &mu->nodes[node].statement;
    if (s->lane == PO_NONE || s->row == PO_NONE || s->ahead != 0)
        return PO_NONE;
    for (uint32_t k = 0; k < s->n_in; k++) {
        const po_mu_tensor *t = &mu->tensors[s->in[k].tensor];
        if (t->place != PO_MU_SHARED || t->scope == PO_NONE)
            continue;
        for (uint32_t n = t->scope; n != PO_NONE && n != node && po_mu_inside(mu, n, t->scope);
             n = po_mu_next(mu, n)) {
            const po_mu_statement *f = &mu->nodes[n].statement;
            if (mu->nodes[n].kind == PO_MU_STATEMENT && f->lane == PO_NONE && f->ahead != 0 &&
                f->ahead_of < f->n_in &&
                mu->tensors[f->in[f->ahead_of].tensor].place == PO_MU_WEIGHT)
                return n;
        }
    }
    return PO_NONE;
}

bool cg_is_fetched_later(const cg *g, uint32_t filler) {
    const uint32_t step = po_mu_step_of(g->mu, filler);
    for (uint32_t n = po_mu_next(g->mu, filler); n != PO_NONE && po_mu_inside(g->mu, n, step);
         n = po_mu_next(g->mu, n))
        if (g->mu->nodes[n].kind == PO_MU_STATEMENT && cg_filler_of(g, n) == filler)
            return true;
    return false;
}

po_mu_access cg_filled_from(const cg *g, uint32_t node, uint32_t filler) {
    const po_mu_statement *f = &g->mu->nodes[filler].statement;
    const po_mu_access *access = &f->in[f->ahead_of];
    const uint32_t rank = g->mu->tensors[access->tensor].rank;
    po_mu_index *axes = PO_NEW_N(g->arena, po_mu_index, rank + 1);
    for (uint32_t x = 0; x < rank; x++) {
        const po_mu_index *index = &access->axes[x];
        po_mu_term *terms = PO_NEW_N(g->arena, po_mu_term, index->n + 1);
        axes[x] = (po_mu_index){index->offset, 0, terms};
        for (uint32_t i = 0; i < index->n; i++)
            if (po_mu_binder(g->mu, node, index->terms[i].label) != PO_NONE)
                terms[axes[x].n++] = index->terms[i];
    }
    return (po_mu_access){access->tensor, axes};
}

/* What fills the next chunk of what is read here: all the tile's work until then fetches it. */
static bool fillers_slice(cg_tile_work *w, coming *c) {
    cg *g = w->t->g;
    const uint32_t filler = cg_filler_of(g, w->node);
    if (filler == PO_NONE || w->t->lane_reduced || w->t->row == PO_NONE)
        return false;
    const po_mu_statement *f = &g->mu->nodes[filler].statement;
    po_mu_access *access = PO_NEW(g->arena, po_mu_access);
    *access = cg_filled_from(g, w->node, filler);
    c->access = access;
    int64_t times = 1;
    po_text index;
    po_text_init(&index, g->arena);
    for (uint32_t i = 0; i < w->s->n_order; i++) {
        const uint32_t label = w->s->order[i];
        if (g->value[label].name == NULL || po_mu_binder(g->mu, w->node, label) != PO_NONE ||
            !po_mu_has(g->mu, &w->s->out, label))
            continue;
        if (g->span[label].start != NULL)
            return false;
        if (g->span[label].open) { /* the first of however many fetches all */
            c->first = po_arena_printf(g->arena, "%s%s%s == 0", c->first ? c->first : "",
                                       c->first ? " && " : "", g->value[label].name);
            continue;
        }
        times *= g->span[label].full;
        po_text around = index;
        po_text_init(&index, g->arena);
        if (around.size)
            po_text_printf(&index, "(%s) * %lld + ", around.data, (long long)g->span[label].full);
        po_text_puts(&index, g->value[label].name);
    }
    c->floats = (f->ahead + times - 1) / times;
    po_text_printf(&c->from, "%s + %lld", cg_base(g, access), (long long)f->ahead);
    if (index.size)
        po_text_printf(&c->from, " + (%s) * %lld", index.data, (long long)c->floats);
    return true;
}

/* Where what comes ahead is less than a slice, what comes is a part of this one: the first tile,
 * for which it is not in the cache yet, fetches all of it. */
void cg_fetch_ahead(cg_tile_work *w) {
    cg *g = w->t->g;
    const po_mu_statement *s = w->s;
    coming c = {.access = NULL};
    po_text_init(&c.from, g->arena);
    if (s->ahead != 0 && s->ahead_of < s->n_in && !cg_is_held(w, s->ahead_of))
        own_slice(w, &c);
    else if (!fillers_slice(w, &c))
        return;
    add_reduced(w, &c);
    const char *row = NULL;
    int64_t tiles = 1;
    const bool open = w->t->row != PO_NONE && g->span[w->t->row].open && !c.by_row;
    if (w->t->row != PO_NONE && !c.by_row)
        tiles = po_ceil_div(cg_rows_of(w->t), w->t->rows);
    if (tiles > 1 && w->t->over != PO_NONE)
        row = po_arena_printf(g->arena, "%lld", (long long)w->t->first);
    else if ((tiles > 1 || open) && g->value[w->t->row].name != NULL)
        row = po_arena_printf(g->arena, "(%s - %s)", g->value[w->t->row].name,
                              g->span[w->t->row].start == NULL ? "0" : g->span[w->t->row].start);
    const bool close = s->ahead != 0 && s->ahead < c.floats;
    if (!close && row != NULL && open) {
        share_by_rows(w, &c.from, row, c.first, c.floats, c.bodies);
        return;
    }
    int64_t share = close ? c.floats : (c.floats + tiles - 1) / tiles;
    w->stride = (share + c.bodies - 1) / c.bodies;
    w->bodies_a_line = PO_MU_VECTOR * c.bodies / share;
    w->step = po_arena_printf(g->arena, "%lld", (long long)w->stride);
    if (close && row != NULL)
        c.first = c.first ? po_arena_printf(g->arena, "%s == 0 && %s", row, c.first)
                          : po_arena_printf(g->arena, "%s == 0", row);
    else if (row != NULL)
        po_text_printf(&c.from, " + %s / %lld * %lld", row, (long long)w->t->rows,
                       (long long)share);
    if (c.first) {
        cg_line(g, "const long hs = %s ? %s : 0;", c.first, w->step);
        w->step = "hs";
        w->gated = true;
    }
    cg_line(g, "const float *h = %s;", c.from.data);
}

/* A line for each few bodies, not the same one in each of them; equal parts of the loop where there
 * are such. */
int64_t cg_fetch_block(const cg_tile_work *w, const cg_span *span) {
    enum { FEW = 4, USUAL = 16, MOST = 128 };
    int64_t n = w->paced ? USUAL : w->bodies_a_line;
    n = n > MOST ? MOST : n < FEW ? FEW : n - n % FEW;
    for (int64_t equal = n; span->count == NULL && 2 * equal > n; equal -= FEW)
        if (span->full % equal == 0)
            return equal;
    return n;
}

static void ask_for(cg *g, int64_t from, int64_t to) {
    for (int64_t i = from; i < to; i += PO_MU_VECTOR)
        cg_line(g, "pk_ahead(h + %lld);", (long long)i);
}

/* Before each body: all that it may ask for, with few rows alone more than a line. */
static void fetch_for_one(const cg_tile_work *w) {
    cg *g = w->t->g;
    const bool more = w->paced && w->stride > PO_MU_VECTOR;
    ask_for(g, 0, more ? PO_MU_VECTOR : w->stride);
    if (more) {
        cg_open(g, "if (hs > %d)", PO_MU_VECTOR);
        ask_for(g, PO_MU_VECTOR, w->stride);
        cg_close(g);
    }
    cg_line(g, "h += %s;", w->step);
}

void cg_fetch_for(const cg_tile_work *w, int64_t bodies) {
    cg *g = w->t->g;
    const int64_t lines = w->bodies_a_line > 0 ? po_ceil_div(bodies, w->bodies_a_line) : 0;
    const int64_t floats = lines * PO_MU_VECTOR;
    if (bodies == 1) {
        fetch_for_one(w);
    } else if (floats > 0 && floats < w->stride * bodies) {
        if (w->gated)
            cg_open(g, "if (hs > 0)");
        ask_for(g, 0, floats);
        cg_line(g, "h += %lld;", (long long)floats);
        if (w->gated)
            cg_close(g);
    } else {
        cg_line(g, "for (long q = 0; q < %lld * %s; q += %d)", (long long)bodies, w->step,
                PO_MU_VECTOR);
        cg_line(g, "    pk_ahead(h + q);");
        cg_line(g, "h += %lld * %s;", (long long)bodies, w->step);
    }
}

void cg_fetch_fused(cg_tile_work *w) {
    cg *g = w->t->g;
    uint32_t next = g->mu->nodes[w->node].next;
    for (; next != PO_NONE && g->mu->nodes[next].kind == PO_MU_STATEMENT;) {
        const po_mu_statement *f = &g->mu->nodes[next].statement;
        if (!f->fused)
            break;
        for (uint32_t k = 0; k < f->n_in; k++) {
            const po_mu_tensor *t = &g->mu->tensors[f->in[k].tensor];
            if (t->place == PO_MU_REGISTER || t->place == PO_MU_TABLE ||
                f->in[k].tensor == w->s->out.tensor || !po_mu_has(g->mu, &f->in[k], w->t->row) ||
                cg_step_of(g, &f->in[k], w->t->lane) != 1)
                continue;
            const char *base = cg_base(g, &f->in[k]);
            for (int64_t r = 0; r < w->t->r; r++)
                for (int64_t v = 0; v < w->t->v; v += PO_MU_VECTOR / g->isa->lanes) {
                    cg_place(w, r, v);
                    const char *rest = cg_rest(g, &f->in[k]);
                    cg_unplace(w);
                    cg_line(g, "pk_soon(%s%s);", base, rest);
                }
        }
        next = g->mu->nodes[next].next;
    }
}

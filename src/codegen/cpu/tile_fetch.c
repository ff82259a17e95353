/* What a tile asks for before it is needed. */
#include "codegen/cpu/tile.h"

/* In C, whether these rows are the first that the slice at hand is worked for: those of the next
 * sample or line find fetched what comes. NULL: there are no others. */
static const char *is_first(const cg_tile_work *w, const po_mu_access *access) {
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
                po_text_printf(&text, "%s%s == 0", text.size ? " && " : "", name);
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

/* Where what comes ahead is less than a slice, what comes is a part of this one: the first tile,
 * for which it is not in the cache yet, fetches all of it. */
void cg_fetch_ahead(cg_tile_work *w) {
    cg *g = w->t->g;
    const po_mu_statement *s = w->s;
    if (s->ahead == 0 || s->ahead_of >= s->n_in || cg_is_held(w, s->ahead_of))
        return;
    int64_t slice = 1, bodies = 1, tiles = 1;
    const po_mu_access *access = &s->in[s->ahead_of];
    po_text from;
    po_text_init(&from, g->arena);
    po_text_printf(&from, "p%u + %lld", s->ahead_of, (long long)s->ahead);
    for (uint32_t i = 0; i < w->n_reduced; i++) {
        const cg_span *span = &g->span[w->reduced[i]];
        int64_t step = cg_step_of(g, access, w->reduced[i]);
        bodies *= span->full;
        if (step == 0)
            continue;
        slice *= span->full;
        if (span->start != NULL)
            po_text_printf(&from, " + %s * (%s)", cg_step_text(g, access, w->reduced[i]),
                           span->start);
    }
    if (w->in_lane[s->ahead_of])
        slice *= w->t->lanes;
    if (w->t->row != PO_NONE && w->in_row[s->ahead_of])
        slice *= w->t->r;
    else if (w->t->row != PO_NONE)
        tiles = (g->span[w->t->row].full + w->t->rows - 1) / w->t->rows;
    const char *row = NULL;
    const bool open = w->t->row != PO_NONE && g->span[w->t->row].open && !w->in_row[s->ahead_of];
    if ((tiles > 1 || open) && g->value[w->t->row].name != NULL)
        row = po_arena_printf(g->arena, "(%s - %s)", g->value[w->t->row].name,
                              g->span[w->t->row].start == NULL ? "0" : g->span[w->t->row].start);
    bool close = s->ahead < slice;
    const char *first = is_first(w, access);
    if (!close && row != NULL && open) {
        share_by_rows(w, &from, row, first, slice, bodies);
        return;
    }
    int64_t share = close ? slice : (slice + tiles - 1) / tiles;
    w->stride = (share + bodies - 1) / bodies;
    w->step = po_arena_printf(g->arena, "%lld", (long long)w->stride);
    if (close && row != NULL)
        first = first ? po_arena_printf(g->arena, "%s == 0 && %s", row, first)
                      : po_arena_printf(g->arena, "%s == 0", row);
    else if (row != NULL)
        po_text_printf(&from, " + %s / %lld * %lld", row, (long long)w->t->rows, (long long)share);
    if (first) {
        cg_line(g, "const long hs = %s ? %s : 0;", first, w->step);
        w->step = "hs";
    }
    cg_line(g, "const float *h = %s;", from.data);
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
                    cg_place(w, 0, 0);
                    cg_line(g, "pk_soon(%s%s);", base, rest);
                }
        }
        next = g->mu->nodes[next].next;
    }
}

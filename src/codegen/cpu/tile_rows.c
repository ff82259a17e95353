/* What rows of a tile read in common, kept from the compiler. */
#include "codegen/cpu/tile.h"

/* Whether a step of the label goes on to what another row reads. */
static bool meets_rows(const cg_tile_work *w, const po_mu_access *in, uint32_t label) {
    const cg *g = w->t->g;
    const int64_t tap = cg_step_of(g, in, label);
    const int64_t row = w->t->row == PO_NONE ? 0 : cg_step_of(g, in, w->t->row);
    return tap > 0 && row > 0 && (tap % row == 0 || row % tap == 0) &&
           (g->span[label].full - 1) * tap >= row;
}

void cg_hide_rows(const cg_tile_work *w, uint32_t from, uint32_t to) {
    for (uint32_t k = 0; k < w->s->n_in; k++) {
        /* Vectors of the lanes are worth keeping: the next row multiplies them by another one. */
        const bool numbers = w->t->r > 1 && w->in_row[k] && !w->in_lane[k] && w->base[k] != NULL;
        bool meets = false;
        for (uint32_t i = from; i < to && numbers; i++)
            meets |= meets_rows(w, &w->s->in[k], w->reduced[i]);
        if (meets)
            cg_line(w->t->g, "PK_HIDE(%s);", w->base[k]);
    }
}

/* A statement on a tile: what its printing (tile.c) and its fetching (tile_fetch.c) share. */
#ifndef PO_CODEGEN_TILE_H
#define PO_CODEGEN_TILE_H

#include "codegen/group.h"

/* What is known of a statement while it is printed on a tile. */
typedef struct cg_tile_work {
    cg_tile *t;
    uint32_t node;
    const po_mu_statement *s;
    uint32_t n_reduced, *reduced; /* without the lane label */
    uint32_t at;                  /* reduced labels that run */
    uint32_t unroll;              /* from this one on they are unrolled */
    bool *ready, *done;
    const char *base[PO_MU_MAX_INPUTS]; /* pointers taken where the reduced loops start */
    bool in_row[PO_MU_MAX_INPUTS], in_lane[PO_MU_MAX_INPUTS];
    bool *item_row, *item_lane;
    const char *result;           /* what its value's variables start with: "v", "a" */
    bool result_row, result_lane; /* of them */
    int64_t v, tail;              /* vectors at hand: the tile's, or those of a reduced lane */
    int64_t stride;               /* what a body fetches ahead by, 0: nothing */
    bool first_only;              /* the first tile of rows fetches, for the others `hs` is 0 */
    const char *at_once;          /* where each row is stored as soon as it is there; NULL */
} cg_tile_work;

static inline int64_t cg_lane_value(const cg_tile_work *w, int64_t v) {
    return v * w->t->g->isa->lanes;
}

/* The tile's position of the row and lane labels, for addresses. */
static inline void cg_place(cg_tile_work *w, int64_t r, int64_t v) {
    cg *g = w->t->g;
    if (w->t->row != PO_NONE)
        g->value[w->t->row].add = r;
    if (w->t->lane != PO_NONE)
        g->value[w->t->lane].add = cg_lane_value(w, v);
}

static inline bool cg_is_held(const cg_tile_work *w, uint32_t k) {
    return w->t->g->tensor[w->s->in[k].tensor].held;
}

/* Each tile of rows fetches its share of the slice that comes `ahead` of the one at hand: declares
 * the pointer `h` and sets stride and first_only. */
void cg_fetch_ahead(cg_tile_work *w);
/* Operands of fused statements are fetched while the reduced labels run. */
void cg_fetch_fused(cg_tile_work *w);

#endif

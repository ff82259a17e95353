/* A statement on a tile: what its printing (tile.c), its sums (tile_sum.c), its fetching
 * (tile_fetch.c) and its rows (tile_rows.c) share. */
#ifndef PO_CODEGEN_TILE_H
#define PO_CODEGEN_TILE_H

#include "codegen/cpu/group.h"

/* How a sum is added up. */
typedef enum cg_sum {
    CG_SUM_ONE,       /* term by term */
    CG_SUM_INNERMOST, /* each run of the innermost loop by itself */
    CG_SUM_LEVELS,    /* each run of each label by itself */
} cg_sum;

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
    const char *result; /* what its value's variables start with: "v", "a", those of parts */
    bool result_row, result_lane; /* of them */
    cg_sum sum;
    int64_t v;             /* vectors at hand: the tile's, or those of a reduced lane */
    const char *tail;      /* lanes of the last of them in C; NULL: all */
    int64_t stride;        /* what a body fetches ahead at most, 0: nothing */
    const char *step;      /* what `h` goes on by: a number, or `hs` */
    bool paced;            /* `hs` may be anything up to the stride */
    bool gated;            /* `hs` is the stride or 0: others have fetched what comes */
    int64_t bodies_a_line; /* of what they fetch; 0: not known, or more than a line each */
    const char *at_once;   /* where each row is stored as soon as it is there; NULL */
} cg_tile_work;

static inline int64_t cg_lane_value(const cg_tile_work *w, int64_t v) {
    return v * w->t->g->isa->lanes;
}

/* The tile's position of the row and lane labels, for addresses. */
static inline void cg_place(cg_tile_work *w, int64_t r, int64_t v) {
    cg *g = w->t->g;
    const bool lines = w->t->over != PO_NONE;
    const int64_t at = lines ? w->t->first + r : r;
    if (lines)
        g->value[w->t->over].add = at / w->t->line;
    if (w->t->row != PO_NONE)
        g->value[w->t->row].add = lines ? at % w->t->line : at;
    if (w->t->lane != PO_NONE)
        g->value[w->t->lane].add = cg_lane_value(w, v);
}

static inline void cg_unplace(cg_tile_work *w) {
    cg *g = w->t->g;
    const uint32_t labels[] = {w->t->over, w->t->row, w->t->lane};
    for (size_t i = 0; i < sizeof labels / sizeof *labels; i++)
        if (labels[i] != PO_NONE)
            g->value[labels[i]].add = 0;
}

/* Whether an access moves from row to row of the tile. */
static inline bool cg_has_row(const cg_tile *t, const po_mu_access *access) {
    return (t->row != PO_NONE && po_mu_has(t->g->mu, access, t->row)) ||
           (t->over != PO_NONE && po_mu_has(t->g->mu, access, t->over));
}

static inline bool cg_is_held(const cg_tile_work *w, uint32_t k) {
    return w->t->g->tensor[w->s->in[k].tensor].held;
}

/* Of the tensor that is written, within the phase. */
static inline uint32_t cg_number_of(const cg_tile_work *w) {
    return w->t->g->tensor[w->s->out.tensor].number;
}

/* A line for each variable of a value: "<type><name> = <value>;", or without what is "". */
void cg_each_value(const cg_tile_work *w, const char *what, bool by_row, bool by_lane, int64_t n_v,
                   const char *type, const char *value);

/* What one row of a window reads another has read before. A compiler that keeps it, a number for
 * each row and tap, needs far more registers than there are, and the code takes 1.9 times as long:
 * operands are hidden where one reading may be such another's again. `from`, `to`: the numbers of
 * the reduced labels that run from one to the next. */
void cg_hide_rows(const cg_tile_work *w, uint32_t from, uint32_t to);

cg_sum cg_sum_of(const cg_tile_work *w);
/* Whether each run of the label number `at` is a part, and in how many steps a part of it goes (0:
 * in one). */
bool cg_sum_apart(const cg_tile_work *w, uint32_t at);
int64_t cg_sum_block(const cg_tile_work *w, uint32_t at);
/* Terms go to a part from here on; what they went to before. The end adds the part to that. */
const char *cg_sum_start(cg_tile_work *w);
void cg_sum_end(cg_tile_work *w, const char *whole);
/* Adds the lanes of the accumulators to the values. */
void cg_sum_lanes(const cg_tile_work *w, bool by_row);

/* Each tile of rows fetches its share of the slice that comes `ahead` of the one at hand: declares
 * the pointer `h` and sets stride, step and paced. */
void cg_fetch_ahead(cg_tile_work *w);
/* Of how many bodies what comes ahead is fetched at once, and the lines that do so before them. */
int64_t cg_fetch_block(const cg_tile_work *w, const cg_span *span);
void cg_fetch_for(const cg_tile_work *w, int64_t bodies);
/* A tile that reads what a loop's chunk was filled with before has more time to fetch the weights
 * of the next chunk than the statement that fills it, which does little else than read them. That
 * statement, of a tile's; PO_NONE: none. Whether a tile fetches in its place. The first float that
 * it reads, as far as loops around the tile go. */
uint32_t cg_filler_of(const cg *g, uint32_t node);
bool cg_is_fetched_later(const cg *g, uint32_t filler);
po_mu_access cg_filled_from(const cg *g, uint32_t node, uint32_t filler);
/* Operands of fused statements are fetched while the reduced labels run. */
void cg_fetch_fused(cg_tile_work *w);

#endif

/* The search's state, shared by its two files (inside this folder). */
#ifndef PO_MUTATE_ENUMERATE_FINDER_H
#define PO_MUTATE_ENUMERATE_FINDER_H

#include "mutate/enumerate.h"

enum {
    EN_SETS = 64,    /* shapes of results that have R/Ts of their own */
    EN_OPTIONS = 24, /* of one map axis of a convolution */
    EN_ENDS = 1 << 14,
    EN_SAMPLES = 160,  /* positions that tell a partial mutant from an exact one */
    EN_SEEN = 1 << 10, /* programs judged: at first, at most */
    EN_MOST_SEEN = 1 << 20
};

typedef struct en_seen {
    uint64_t lo, hi;
} en_seen;

typedef struct en_edge {
    uint8_t op, arg;
    const en_rts *set;
    const en_bucket *bucket;
} en_edge;

typedef struct en_finder {
    en_search *s;
    const en_program *target;
    en_program p;
    en_eval *eval;
    en_factors factors;
    uint32_t set_moves; /* that the sets below were made for */
    en_rts *in_set[EN_INPUTS], *last_set[EN_OUTS];
    uint64_t ends[EN_ENDS / 64]; /* what the last R/T can start from: cost, rank, first two dims */
    en_rts *made_set[EN_SETS];
    uint32_t n_made;
    uint32_t used[EN_SLOTS], uses[EN_INPUTS]; /* uses: of inputs, by the target */
    bool activation[EN_SLOTS];
    en_edge edges[EN_OPS * EN_ARGS];
    uint32_t n_edges;
    uint32_t kinds; /* bits of en_kind */
    uint32_t products;
    bool stacks;          /* operands may be stacked on a new axis */
    en_op window[EN_OPS]; /* the target's convolutions and pools */
    uint32_t n_windows;
    int32_t point[EN_OUTS][EN_POINTS][EN_RANK];
    uint32_t value[EN_OUTS][EN_POINTS];
    uint32_t sample[EN_OUTS][EN_SAMPLES];
    en_seen *table;
    uint32_t n_seen, mask;
    uint64_t work;
    uint32_t level, depth; /* moves, and operators with R/Ts, at most, of what is under search */
    bool stop;
} en_finder;

static inline void en_spend(en_finder *f, uint64_t work) {
    enum { POLL = 1 << 12 };
    bool ask = f->s->ctx && (f->work ^ (f->work + work)) >= POLL;
    f->work += work;
    if (f->work >= f->s->budget || (ask && po_ctx_poll(f->s->ctx) != PO_OK))
        f->stop = true;
}

/* Counts a candidate whose shapes do not fit. */
static inline void en_reject_shape(en_finder *f) {
    f->s->counts->judged++;
    f->s->counts->by_shape++;
    en_spend(f, 1);
}

/* --- enumerate_judge.c --- */

/* Lays out the inside points and the target's values there. */
void en_judge_target(en_finder *f);
/* Tries the program as it stands, every R/T of its buckets, with `moves` left for the last R/T. */
void en_finish(en_finder *f, uint32_t depth, uint32_t moves);

#endif

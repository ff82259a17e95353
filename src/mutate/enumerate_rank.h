/* What the enumeration finds for one part of a graph, sorted by what it promises (inside this
 * folder). */
#ifndef PO_MUTATE_ENUMERATE_RANK_H
#define PO_MUTATE_ENUMERATE_RANK_H

#include "mutate/enumerate.h"

typedef struct en_ranked {
    en_program program; /* at true sizes */
    double cost, share;
    uint64_t order;
    po_hash key;   /* what it costs: of programs alike in this, the first stays */
    uint64_t kind; /* what it becomes: programs alike in this take turns */
    uint32_t turn; /* those of its kind before it */
    uint8_t depth, moves;
} en_ranked;

typedef struct en_ranking {
    po_arena *arena;
    const en_problem *problem; /* at true sizes */
    /* Of the problem's own program. */
    po_hash original;
    uint64_t products;
    double flops, cost, weights;
    uint32_t nature;
    en_ranked *best; /* by cost, then order; when done, the best of each kind before the next */
    uint32_t n;
} en_ranking;

en_ranking *en_ranking_create(po_arena *arena, const en_problem *problem);
/* Takes one in (en_search's `found`, with the ranking as its user). */
bool en_rank(void *ranking, const en_found *found);
void en_rank_done(en_ranking *ranking);

#endif

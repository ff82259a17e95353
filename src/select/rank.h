/* Which of several candidates is the fastest: they compete with one another, not only with the
 * original.
 *
 * Where there are many, short readings of all leave the few that may be it. These are timed side by
 * side in rounds with the original; who is surely behind the best drops out, and the others are
 * timed again, for longer, until one is left, they are as good as alike, or the time is up. One
 * that the runtime does not take costs itself alone: the others are timed without it. */
#ifndef PO_SELECT_RANK_H
#define PO_SELECT_RANK_H

#include "cost/timing.h"

enum { PO_RANK_MAX = 64 };

typedef struct po_rank_spec {
    po_timing_spec
        timing; /* library, kernels, files, threads, feed, room, source; the rest is filled in */
    const char *original; /* path */
    uint32_t n;
    const char *const *candidates;
    uint32_t
        steps;    /* readings of those that are left, each twice as long; 0: as many as it takes */
    bool heavy;   /* each process takes seconds to load a model */
    double until; /* as po_now counts: no new readings after it; 0: no such time */
} po_rank_spec;

/* Fills timing[n] (all zeros: not read), read[n]: whether it was in the longer readings,
 * refused[n]: NULL, or in the arena's text why it does not load or run beside the original, which
 * does. */
po_status po_rank(po_ctx *ctx, po_arena *arena, const po_rank_spec *spec, po_timing *timing,
                  bool *read, const char **refused);

#endif

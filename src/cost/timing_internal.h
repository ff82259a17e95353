/* Between timing.c (the processes), timing_stats.c (what their samples say) and cuda/run.c (the
 * same for plans on a GPU). */
#ifndef PO_COST_TIMING_PRIVATE_H
#define PO_COST_TIMING_PRIVATE_H

#include "cost/timing.h"

/* Processes that belong together: they load the models in opposite orders. */
enum { PO_TIMING_GROUP = 2 };

/* The order of n models in a round, of at most PO_TIMING_MAX: drawn, the same for the same seed. */
void po_timing_shuffle(uint32_t *order, uint32_t n, uint64_t seed, uint64_t stream, uint64_t round);

double po_median(double *values, uint32_t n); /* reorders them */

/* Latencies, gains and intervals of n models. Scratch comes from the arena. */
void po_timing_evaluate(po_arena *arena, const po_timing_process *processes, uint32_t n_processes,
                        uint32_t n, uint64_t seed, bool ranking, po_timing *timing);

#endif

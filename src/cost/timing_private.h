/* Between timing.c (the processes) and timing_stats.c (what their samples say). */
#ifndef PO_COST_TIMING_PRIVATE_H
#define PO_COST_TIMING_PRIVATE_H

#include "cost/timing.h"

/* Processes that belong together: they load the models in opposite orders. */
enum { PO_TIMING_GROUP = 2 };

double po_median(double *values, uint32_t n); /* reorders them */

/* Latencies, gains and intervals of n models. Scratch comes from the arena. */
void po_timing_evaluate(po_arena *arena, const po_timing_process *processes, uint32_t n_processes,
                        uint32_t n, uint64_t seed, bool ranking, po_timing *timing);

#endif

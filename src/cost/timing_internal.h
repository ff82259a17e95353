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

/* Latencies, gains and intervals of the models, but not by how many threads. Scratch comes from the
 * arena. left_out: the models that are not ranked, NULL: none. */
void po_timing_evaluate(po_arena *arena, const po_timing_process *processes, uint32_t n_processes,
                        const po_timing_spec *spec, const bool *left_out, po_timing *timing);

/* Whether threads waited in all of its rounds but very few, whichever model is looked at. */
bool po_timing_process_disturbed(const po_timing_process *process, uint32_t n);

/* Which of the models one thread has to answer for: *any of those whose gain the disturbed rounds
 * leave open; left_out[n]: those that it is not asked for. The first never is. */
void po_timing_ask_one(const po_timing_spec *spec, const po_timing *timing, bool *any,
                       bool *left_out);
/* Puts its answer in the place of the others'. */
void po_timing_take_one(const po_timing_spec *spec, const po_timing *one, const bool *left_out,
                        po_timing *timing);

#endif

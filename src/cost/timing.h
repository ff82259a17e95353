/* Latency of models side by side.
 *
 * How a reading is made fair (measured: a naive loop over two sessions reads 1.10-1.19 for two
 * copies of one small model):
 * - Several child processes, each with all models loaded; the order of loading changes from one
 *   to the next and the heap is shifted by seeded amounts, so that what depends on placement
 *   averages out.
 * - In a process, rounds of one block a model in random order; the first runs of a block are not
 *   timed; a block is as many runs as the clock and the machine's noise need.
 * - With one thread the clock is the thread's own CPU time, so that other programs on the machine
 *   do not count; with more it is the wall, and of a pair of models only those rounds count in
 *   which no thread waited for a processor, where there are such (cost/waits.h).
 *   Where there are not, the interval grows by the part of the runs that was waited.
 * - Of these rounds the quieter half counts: that in which both models together took least.
 * - The gain is the mean over the orders of loading of each process's median ratio within rounds,
 *   its interval a bootstrap over processes and rounds, never narrower than +-0.5 %.
 * Processes are added until the question is settled or the time is up.
 *
 * A machine that other programs keep busy has no quiet rounds, and more of them tell no more: where
 * something hangs on the answer (po_timing_spec.bound), the same models are then read with one
 * thread. Its gain counts for a model that the disturbed rounds, taken as they are, have above the
 * bound too: what gains with one thread may lose with more. The interval is that of one thread, and
 * PO_TIMING_MARGIN wider at both ends, since the question was another. */
#ifndef PO_COST_TIMING_H
#define PO_COST_TIMING_H

#include "cost/ort/ort.h"

enum { PO_TIMING_MAX = 8 }; /* models in one comparison */

/* The samples of one process: rounds x models seconds of one run, and the part of each for which
 * threads waited for a processor. */
typedef struct po_timing_process {
    uint32_t rounds, runs; /* runs: of one model in a round */
    uint32_t filled; /* so many models filled the room, and nothing was read; 0: there was enough */
    const double *samples, *waited;
    double spent; /* seconds that it took in all */
} po_timing_process;

typedef struct po_timing_spec po_timing_spec;

/* Up to this part of a run its threads may wait for processors without counting as disturbed. */
#define PO_TIMING_QUIET 0.02

/* By which the interval of a gain with one thread grows where it stands for one with more: two
 * copies of a model read within 2 % of one another, and a gain that is smaller may well be another
 * with another number of threads. */
#define PO_TIMING_MARGIN 1.02

struct po_timing_spec {
    const char *library;        /* as in po_ort_options */
    const char *kernels;        /* custom operators; may be NULL */
    const char *isa;            /* as in po_session_options */
    const po_side_files *files; /* external data in memory, of any of the models; may be NULL */
    uint32_t threads;
    uint32_t n;
    const char *const *models; /* paths; the first is what the others are compared with */
    const po_feed *feed;
    double seconds; /* aim for at most this long (0: 8 s); what must be done may take longer */
    uint64_t seed;
    double room;    /* bytes of a process, but two models it may always hold; 0: any number */
    uint32_t quick; /* so many short processes, to tell what is worth a real reading; 0: that */
    bool thorough;  /* do not stop early where the answer is clear: for figures to be shown */
    bool ranking;   /* the question is which one is the fastest, not whether each is faster */
    /* Whether a gain is above it is what is asked, and where other programs have the processors one
     * thread may answer; 0: how fast the models are with so many threads, and nothing else. */
    double bound;
    /* Takes the samples of process `number`, which has about `seconds`; NULL: the runtime does. */
    po_status (*source)(void *user, po_ctx *ctx, po_arena *arena, const po_timing_spec *spec,
                        uint32_t number, double seconds, po_timing_process *process);
    void *source_user;
};

typedef struct po_timing {
    double seconds;         /* median latency of one run */
    double gain, low, high; /* the first model's time over this one's, and its 95 % interval */
    double as_read;         /* its upper end before what was waited widens it */
    /* The part of the runs used for which threads waited; 0 where one was asked for. Of those with
     * as many as were asked for, also where one answers in their place. */
    double waited;
    uint32_t threads; /* by which it was read: 1, by CPU time, where more could not tell */
    /* Upper end of the interval of this one's gain over the fastest of all but the first: below 1
     * it is not the fastest. Only where a ranking was asked for; 1 for the fastest. */
    double over_best;
} po_timing;

/* Whether threads waited for processors all the time: what was read then says little, and may not
 * answer for a quiet machine, in a cache. */
static inline bool po_timing_disturbed(double waited) {
    return waited > PO_TIMING_QUIET;
}

/* What it was read by, in words: "2 threads", "1 thread, processor time: the machine was too busy
 * for 2". */
enum { PO_TIMING_CLOCK = 80 };
const char *po_timing_clock(uint32_t asked, uint32_t threads, char text[PO_TIMING_CLOCK]);

typedef struct po_timing_work {
    uint32_t processes, rounds; /* in all */
    uint32_t runs;              /* timed runs of one model in one block */
    uint32_t filled;            /* of a process: then there are no timings */
    double spent;               /* seconds */
} po_timing_work;

/* Of one model, once and shortly: whether it runs, and about how long. The feed is left out. */
po_timing_spec po_timing_brief(const char *library, uint32_t threads, const char *const *model,
                               const po_side_files *files);

/* Fills timing[n]; `work` may be NULL. PO_RUNTIME where a model does not load or run. */
po_status po_time_models(po_ctx *ctx, const po_timing_spec *spec, po_timing *timing,
                         po_timing_work *work);

#endif

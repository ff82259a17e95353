/* A machine with other work on it, made of numbers: what po_timing_spec.source can be told instead
 * of the runtime's clock. */
#ifndef PO_TESTS_NOISY_H
#define PO_TESTS_NOISY_H

#include "cost/timing.h"

/* Seconds of each model, by its path "0", "1", ..; with several threads and with one. */
typedef struct noisy_machine {
    const double *alone, *shared; /* one thread; more, nothing else running */
    double placement;             /* standard deviation of logs: of a process, of a model in it */
    double jitter;                /* of each block */
    double drift;                 /* of all models together, from round to round: a walk */
    double bursts;        /* how often another program slows a block down, by up to a half */
    double taken;         /* with several threads, how often a block has but one processor */
    double held;          /* with several threads, how often a process has but one all the time */
    const double *loaded; /* seconds where a processor is taken; NULL: as with one thread */
    uint32_t only;        /* it is taken from this model alone, counted from 1; 0: from any */
    double waits;         /* a block that waits takes up to so many times as long again */
    bool silent;          /* the kernel does not say who waited */
    uint64_t seed;
    uint32_t calls, processes; /* counted: of which those with number 0; all */
} noisy_machine;

po_status noisy_source(void *user, po_ctx *ctx, po_arena *arena, const po_timing_spec *spec,
                       uint32_t number, double seconds, po_timing_process *process);

#endif

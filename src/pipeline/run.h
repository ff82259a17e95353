/* What every stage of a run has: set up once, and the same for all of them. */
#ifndef PO_PIPELINE_RUN_H
#define PO_PIPELINE_RUN_H

#include "ir/graph.h"
#include "pipeline/options.h"
#include "pipeline/record.h"

struct po_cost;
struct po_nvrtc;
struct po_rates;

/* Opened when they are first asked for, once for a run. */
typedef struct po_services {
    struct po_cost *cost;         /* po_run_cost */
    const struct po_nvrtc *nvrtc; /* po_run_nvrtc */
    struct po_shared *shared;     /* constants of all graphs that were made (ops/share.h) */
} po_services;

/* Set up before the first stage, and const from then on. What stages do besides their results goes
 * through a handle of its own: what they tell, what their time is, what they open. Graphs live
 * until the end: later ones share what earlier ones hold. */
typedef struct po_run {
    po_ctx *ctx;
    const po_options *options;
    const po_callbacks *callbacks; /* may be NULL */
    po_arena *arena;
    po_arena *files; /* what goes with the run: candidates' files, the runtime's cache */
    po_record *record;
    struct po_budget *budget; /* budget.h */
    po_services *services;
    const struct po_gpu *gpu;      /* target cuda: that estimates go by; else NULL */
    struct po_cuda_cost *gpu_cost; /* target cuda: readings of a GPU that is here, or recorded ones;
                                      NULL: estimates only */
} po_run;

/* A run with nothing opened, and all the time that its options allow from `started` on (po_now();
 * 0: a stage alone, which has no budget). Graphs and what is told lie in the arena. */
void po_run_begin(po_run *run, po_ctx *ctx, const po_options *options, po_arena *arena,
                  double started);

/* Whether this stage, or part of one, was left out by --skip. */
bool po_run_skips(const po_run *run, const char *part);

/* The run's arena owns the graph, which shares constants with all of these: before anything else is
 * made from it. po_graph_free frees it before the end. */
void po_run_hold(const po_run *run, po_graph *graph);

/* The cost service, with its cache. */
po_status po_run_cost(const po_run *run, struct po_cost **cost);

/* What estimates go by: this machine's rates, or the GPU that the model is made for. */
po_status po_run_rates(const po_run *run, struct po_rates *rates);

/* What the graph takes, at the sizes that were asked for; `other` as in po_inputs_plan. */
po_status po_run_inputs(const po_run *run, po_arena *arena, const po_graph *graph,
                        const po_graph *other, po_inputs **plan);

/* Bytes that a process which loads models may hold, with what it has from this one. With less,
 * models of large maps are ranked two at a time, and their readings are cut short by the clock. */
double po_run_room(const po_graph *original);

/* gpu/gpu.c: which GPU the model is made for, a part of the set-up: the one that was named, or this
 * machine's own, or else one that is assumed, with a note. */
po_status po_run_find_gpu(po_run *run);
/* The compiler for its kernels, by the options. PO_UNSUPPORTED with a sentence where there is none.
 * Not for recorded readings. */
po_status po_run_nvrtc(const po_run *run, const struct po_nvrtc **nvrtc);

#endif

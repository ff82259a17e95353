/* Plans: each region of a model as a scheduled muGraph, ready to be printed. */
#ifndef PO_SUPEROPT_PLAN_H
#define PO_SUPEROPT_PLAN_H

#include "cost/cost.h"
#include "mugraph/open.h"
#include "superopt/lower/lower.h"
#include "superopt/plan/check.h"
#include "superopt/plan/row_fusion.h"
#include "superopt/schedule/schedule.h"

/* A step as it is worked, for people. */
typedef struct po_plan_step {
    const char *name, *schedule;
    double flops;       /* of the naive step, multiply-adds as 2 */
    double bytes;       /* from and to memory (po_plan_traffic) */
    double seconds;     /* on one thread, alone; 0: not measured */
    double estimated;   /* likewise, by estimate: weights come from memory */
    uint32_t tried;     /* choices that were timed */
    double magnifies;   /* what it makes of rounding (po_choice_magnifies) */
    po_value_id made;   /* the value that it writes; PO_NONE: none of the model's */
    const po_mu *alone; /* as it was timed; NULL: it was not, or is no step by itself */
    int64_t spread;     /* as of po_timed_kernel, then */
} po_plan_step;

/* Another program of a region. Where it is small: what makes more of its weights first (Winograd's
 * transforms) pays for maps of many places alone. Where it is wide: what steps keep for themselves
 * leaves the cache where maps are large. */
typedef struct po_plan_other {
    po_mu *mu;
    const uint32_t *weight; /* by WEIGHT number of mu: that in po_plan.packed */
    uint32_t n_weights;
    uint32_t first; /* weights of po_plan.packed that the programs before have not, from here on */
    double scale;   /* small: of its estimates; they then compare with the first's as readings do */
    double from;    /* wide: times the size at hand from which on it takes less */
} po_plan_other;

/* What a program is estimated to take, with nothing read. */
double po_plan_estimated(const po_mu *mu);
/* The same where little is made of each weight: what a statement reads of them comes from memory,
 * and products in parts (Strassen) read a part more than once. */
double po_plan_estimated_small(const po_mu *mu);

typedef struct po_plan {
    const po_region *region;
    po_lowered lowered;      /* the naive muGraph */
    po_mu *mu;               /* scheduled */
    const po_packed *packed; /* by WEIGHT number of mu; then what `small` and `wide` read besides */
    uint32_t n_packed;
    const po_plan_other *small, *wide; /* NULL: there is none, or one size is all */
    const po_plan_step *steps;
    uint32_t n_steps;
    const char *failed; /* why there is no muGraph; NULL: there is one */
    uint32_t unread;    /* steps by estimate, which po_plan_options.until left no time for */
} po_plan;

/* What was read so far in a run, shared by the forms of a model that are planned one after the
 * other: no step is timed twice, and what was not read is estimated by what was. */
typedef struct po_plan_readings po_plan_readings;
po_plan_readings *po_plan_readings_create(po_arena *arena);

/* What is open (mugraph/open.h), and other sizes at which programs are looked at. */
typedef struct po_plan_sizes {
    po_mu_naming naming;
    const int64_t *const *others; /* lengths of the names */
    uint32_t n_others;
} po_plan_sizes;

typedef struct po_plan_options {
    bool exact;                /* no algorithm that rounds worse */
    double magnifies;          /* none that makes more of rounding; 0: any */
    const po_plan_sizes *open; /* only what can be opened for all sizes, each step by itself; NULL:
                                  the sizes at hand are all */
    const po_plan *like; /* by region: plans of the same nodes at other sizes, whose weights are
                            read as they are there; NULL: none, and plans are searched further */
    po_plan *beside;     /* by region: plans of the same work, with which these are compared: the
                            steps of both get the seconds of one more reading; NULL: none */
    bool measure;        /* else by estimate */
    const char *cc;      /* as for po_cc_library */
    po_cache *cache;     /* of readings; may be NULL */
    po_hash key;         /* of the machine (po_cost_key) */
    po_plan_readings *readings; /* may be NULL */
    double until; /* as po_now counts: what is not read by then is estimated; 0: no such time */
} po_plan_options;

/* Plans all regions; steps of the same form are timed once. A region that cannot be lowered has
 * `failed`. Fails only for what stops the run. */
po_status po_plan_regions(po_ctx *ctx, po_arena *arena, const po_graph *graph,
                          const po_regions *regions, const po_plan_options *options,
                          po_plan *plans);

/* Bytes that a naive step moves from and to memory, each tensor once: weights, and maps that the
 * second cache does not hold. step PO_NONE: of the whole, what only passes between its steps left
 * out. */
double po_plan_traffic(po_arena *arena, const po_mu *naive, uint32_t step);
/* The same of several steps, what passes between them left out; none: of the whole. */
double po_plan_traffic_of(po_arena *arena, const po_mu *naive, const uint32_t *steps, uint32_t n);

/* Seconds that all steps would take: what was read, or else FLOPs and bytes as the schedules of
 * that kind which were read had them. Compiles nothing. */
typedef struct po_plan_guess {
    double seconds;
    uint32_t n_nodes; /* in regions that cannot be lowered */
    uint32_t unread;  /* schedules that po_plan_regions would have to time, at most */
} po_plan_guess;
po_status po_plan_estimate(po_ctx *ctx, po_arena *arena, const po_graph *graph,
                           const po_regions *regions, const po_plan_options *options,
                           po_plan_guess *guess);

/* The weights of a plan among those of another of the same region, to whose list it adds what it
 * reads besides: by WEIGHT number of its muGraph. NULL, and nothing is added: it reads constants
 * that the other has not. small.c */
const uint32_t *po_plan_share_weights(po_arena *arena, po_plan *with, const po_plan *plan);

/* One step alone, to be timed and looked at (po_check_step, `lone`): what it reads and writes lies
 * in DEVICE tensors. */
po_mu *po_plan_standalone(po_arena *arena, const po_mu *naive, uint32_t node,
                          const po_choice *choice, po_standalone_step *lone);

/* The same of steps that follow one another, in bands or not (row_fusion.h). */
po_mu *po_plan_standalone_row_fusion(po_arena *arena, const po_row_fusion *bands,
                                     po_standalone_step *lone);

/* Ends a schedule of steps by themselves: their muGraph, and what it is compared with. exact, k: as
 * of po_standalone_step. */
po_mu *po_plan_end_standalone(po_schedule *s, const po_row_fusion *b, bool exact, double k,
                              po_standalone_step *lone);

/* Puts what the search finds for the region's naive muGraph in the plan's place, where it is
 * faster (search.h). */
po_status po_search_region(po_ctx *ctx, po_arena *arena, const po_plan_options *options,
                           po_plan *plan);

#endif

/* The search for fused programs (docs/superopt-search.md; Mirage, section 4): from a naive muGraph
 * to scheduled ones that compute the same, the algebra first and the loops second. */
#ifndef PO_SUPEROPT_SEARCH_H
#define PO_SUPEROPT_SEARCH_H

#include "cost/cuda/gpu.h"
#include "cost/kernels.h"
#include "superopt/schedule/schedule.h"

/* Budgets are numbers of states, so that results do not hang on the machine's speed. */
typedef struct po_search_options {
    uint32_t keep;          /* muGraphs returned at most */
    uint64_t algebra;       /* states of the algebra */
    uint64_t schedules;     /* states of the schedules */
    int64_t cache1, cache2; /* bytes of the caches that a block may count on; 0: ask the machine */
    const po_gpu *gpu;      /* schedules for it, weights as they are; NULL: for this machine */
    po_gpu_math math;       /* of products on it */
    bool exact;             /* nothing that rounds otherwise than the steps: their own operations */
} po_search_options;

po_search_options po_search_defaults(void);
/* For a GPU: in f32, F16 or BF16 as the muGraph's tensors are, and TF32 for products of f32. */
po_search_options po_search_for_gpu(const po_gpu *gpu, const po_mu *naive, bool tf32);

typedef struct po_search_counts {
    uint64_t states;   /* choices that were looked at, algebra and schedules */
    uint64_t by_form;  /* left out: leads to no part of the target */
    uint64_t by_shape; /* left out: does not fit the loops, or a cache */
    uint64_t by_bound; /* left out: cannot beat what is known */
    uint32_t forms, skeletons, checked, wrong; /* wrong: refused by po_search_same */
    double seconds;                            /* of the search without the checks */
} po_search_counts;

/* A muGraph that was found, checked (po_search_same, at shrunk and at true shapes). */
typedef struct po_found {
    const char *algebra, *schedule; /* for people */
    po_mu *mu;
    const po_packed *packed; /* by WEIGHT number of mu */
    uint32_t n_packed;
    po_mu *lone; /* to be timed: INPUT and OUTPUT tensors are DEVICE ones; NULL: for a GPU */
    const uint32_t *lone_tensor; /* by tensor of the naive one, borders only: that of `lone` */
    double estimate, seconds;
    const struct search_problem *problem; /* for po_search_append */
    const struct search_plan *plan;
} po_found;

/* What laws that round make of it: sums of others, and quotients. */
extern const double po_found_magnifies;

/* The best by estimate first. PO_UNSUPPORTED, with the reason, where the muGraph has a form that
 * the search does not read. */
po_status po_search(po_ctx *ctx, po_arena *arena, const po_mu *naive,
                    const po_search_options *options, po_search_counts *counts, po_found *found,
                    uint32_t *n_found);

/* Where a tensor lies that a muGraph has cut from another: axis x of it is `times` an index of axis
 * `axis` of the other's tensor, so that 128 * head + element is two axes; and by axis of the
 * other's, where it begins. */
typedef struct po_mu_view {
    uint32_t tensor; /* of the other; PO_NONE: its own */
    uint32_t axis[PO_MU_MAX_RANK];
    int64_t times[PO_MU_MAX_RANK], from[PO_MU_MAX_RANK];
} po_mu_view;

/* Adds what was found to a schedule of the muGraph that `naive` was cut from, as steps of this
 * name; not for a GPU. view: by tensor of `naive`; of weights only such as change nothing. */
void po_search_append(const po_found *found, const po_mu_view *view, const char *name,
                      po_schedule *to);

/* Whether a muGraph computes what another does: it passes po_mu_check, has equal values over finite
 * fields under random inputs and two seeds, and in float64 under small and under large inputs (so
 * that what overflows is told from what does not). packed: how the candidate reads the reference's
 * weights; NULL: as they are. PO_BAD_INPUT with what is wrong. */
po_status po_search_same(po_ctx *ctx, const po_mu *reference, const po_mu *candidate,
                         const po_packed *packed, uint32_t n_packed, int64_t shared_limit);

/* A compiled program against the naive muGraph in float64, every element: po_check_kernel_fn, for
 * `lone`. */
typedef struct po_search_query {
    const po_mu *naive;
    const po_found *found;
} po_search_query;
const char *po_search_queried(po_ctx *ctx, po_arena *arena, void *user,
                              const po_loaded_kernel *kernel);

#endif

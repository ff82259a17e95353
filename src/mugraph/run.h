/* Runs a muGraph's tree as it stands, over any kind of values: loops by chunks, storage of local
 * tensors by chunk, rings, tests at edges, fresh starts, and reads of what was never written. The
 * kind of values comes in as functions that work on stretches of elements. */
#ifndef PO_MUGRAPH_RUN_H
#define PO_MUGRAPH_RUN_H

#include "mugraph/check.h"

/* Storage of a tensor: what is held of it with its ring, dense and row-major. */
typedef struct po_mu_store {
    int64_t count;
    int64_t stride[PO_MU_MAX_RANK], extent[PO_MU_MAX_RANK];
    int64_t first[PO_MU_MAX_RANK]; /* index (less its chunk's start) of the first of the extent */
    /* What is written in the chunk under way has its number; NULL: all is there. */
    uint32_t *stamp, chunk;
    int64_t n_written, n_inside;
} po_mu_store;

enum { PO_MU_ACCESSES = PO_MU_MAX_INPUTS + 1 }; /* of a statement; what is written is the last */

typedef struct po_mu_guard {
    int64_t offset, dim;
    const int64_t *coef; /* by place in the plan's labels */
} po_mu_guard;

/* How a statement runs. */
typedef struct po_mu_plan {
    const po_mu_statement *s;
    uint32_t node, n_labels, n_kept, n_accesses;
    const uint32_t *label;                /* outermost first; PO_NONE: one of extent 1 */
    const int64_t *step[PO_MU_ACCESSES];  /* by place in the labels, in elements */
    const bool *is_local[PO_MU_ACCESSES]; /* the label's chunk starts at the storage's start */
    int64_t base[PO_MU_ACCESSES];
    uint32_t n_guards, n_out_guards; /* the guards of what is written come first */
    const po_mu_guard *guards;
    uint32_t outer[PO_MU_MAX_DEPTH], n_outer; /* for loops over labels that are reduced */
    const uint32_t *kept, *all;               /* places of kept labels, of all */
    int64_t *scratch;
    void *own; /* of the values' kind */
} po_mu_plan;

typedef struct po_mu_run po_mu_run;

struct po_mu_run {
    po_ctx *ctx;
    const po_mu *mu;
    po_arena *arena;
    po_mu_store *stores;   /* by tensor */
    po_mu_plan **plans;    /* by node */
    int64_t *start, *size; /* by label: the chunk under way */
    void *user;
    /* Makes the storage of a tensor, its ring filled. */
    void (*store)(po_mu_run *run, uint32_t tensor);
    /* n elements of what a statement writes, `step` apart from `at`: as before the first is added.
     */
    void (*begin)(po_mu_run *run, const po_mu_plan *plan, int64_t at, int64_t step, int64_t n);
    /* n iterations; at and step by access. */
    po_status (*inner)(po_mu_run *run, const po_mu_plan *plan, const int64_t *at,
                       const int64_t *step, int64_t n);
    /* All iterations of a statement that is in no loop, after `begin`, what it reads being written,
     * what it writes without tests at edges; false, with nothing done: one by one. May be NULL. */
    bool (*whole)(po_mu_run *run, const po_mu_plan *plan);
};

/* Checks what running relies on, then runs. PO_BAD_INPUT naming tensor and step where an element
 * is read, or is an output's, that was not written. */
po_status po_mu_run_all(po_mu_run *run);

#endif

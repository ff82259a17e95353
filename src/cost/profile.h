/* Where a model's time goes, by the runtime's own profile: operators as the runtime runs them,
 * fused and in its own layouts, not alone. */
#ifndef PO_COST_PROFILE_H
#define PO_COST_PROFILE_H

#include "cost/cost.h"
#include "ir/graph.h"

typedef struct po_profile_row {
    const char *name;     /* the node's, as the runtime calls it; fused ones get names of its own */
    const char *op;       /* "Conv", "ReorderInput" */
    const char *provider; /* "CPUExecutionProvider" */
    double seconds;       /* of one run of the model, all calls of the node together */
    uint32_t calls;       /* in one run */
} po_profile_row;

typedef struct po_profile {
    po_profile_row *rows; /* longest first; equals by name */
    uint32_t n;
    double seconds; /* sum of the rows */
    uint32_t runs;  /* that it is the mean of */
} po_profile;

typedef struct po_profile_spec {
    const char *library, *kernels; /* as in po_timing_spec */
    const po_side_files *files;
    uint32_t threads;
    const char *model;
    const po_feed *feed;
    double seconds; /* aim; 0: 2 */
} po_profile_spec;

/* The profile's file lies in a folder of its own under /tmp, and goes with this call. */
po_status po_profile_model(po_ctx *ctx, po_arena *arena, const po_profile_spec *spec,
                           po_profile *profile);

/* --- records of single operators --- */

/* What an operator's cost depends on: operator, attributes, shapes, dtypes, threads, and what
 * po_cost_key holds. False where a shape is not known. */
bool po_operator_key(const po_cost *cost, const po_graph *graph, const po_node *node,
                     uint32_t threads, po_hash *key);
/* Keeps the times of the graph's nodes that the profile has under their own name. Returns how many.
 * The graph's types must be inferred. */
uint32_t po_operators_record(po_cost *cost, const po_graph *graph, uint32_t threads,
                             const po_profile *profile);
/* Seconds of one call, as last recorded. False where there is no record. */
bool po_operator_seconds(po_cost *cost, const po_graph *graph, const po_node *node,
                         uint32_t threads, double *seconds);

#endif

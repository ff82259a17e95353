/* What the kernel stages of all targets do with a region (stage_superopt.c, stage_cuda.c). */
#ifndef PO_PIPELINE_KERNEL_STAGE_H
#define PO_PIPELINE_KERNEL_STAGE_H

#include "codegen/delivery/library.h"
#include "cost/cost.h"
#include "pipeline/run.h"
#include "superopt/regions.h"

/* Checks a region's program and what it was made from, at most so many bytes shared by a block, and
 * asks the same questions of the program once more, another way (mugraph/prove.h). */
po_status po_kernel_stage_check(const po_run *run, const po_mu *meaning, const po_mu *mu,
                                int64_t shared_limit);

/* Gives a kernel's ports the dims that the model has there. */
void po_kernel_stage_ports(po_arena *arena, const po_graph *graph, const po_region *region,
                           po_kernel *kernel);

/* What fails of one region, or of one candidate for it, leaves that out, and is no failure: *why,
 * in the run's arena. Other failures come back. */
po_status po_kernel_stage_drop(const po_run *run, po_status status, const char **why);

/* Puts a call of the kernel in the region's place, its inputs `in`. Equal regions call one kernel,
 * each under a name of its own, by `number`. As po_graph_outline; the body is held. */
po_status po_kernel_stage_call(const po_run *run, po_graph *graph, const po_region *region,
                               const po_kernel *kernel, uint32_t number, const po_value_id *in,
                               uint32_t n_in, po_graph **body, po_node_id *call);

/* What was compiled before, in the cost cache: one row kind for each sort of object. */
typedef struct po_kept_objects {
    po_cache *cache;
    const char *kind;
} po_kept_objects;
po_object_store po_kernel_stage_store(po_kept_objects *kept);

#endif

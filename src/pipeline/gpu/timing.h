/* Seconds of graphs and kernels on the GPU that a model is made for: read there, or taken from what
 * was recorded (run->gpu_cost, which must be there). */
#ifndef PO_PIPELINE_GPU_TIMING_H
#define PO_PIPELINE_GPU_TIMING_H

#include "cost/cuda/cost.h"
#include "pipeline/gpu/model.h"
#include "pipeline/run.h"

/* A graph as the executor runs it. Lives with the arena. *stand_ins: how many of its operators are
 * copies of what they make, as no step does them; NULL: none may be. */
po_status po_gpu_plan_graph(const po_run *run, po_arena *arena, const po_graph *graph,
                            const po_gpu_given *given, uint32_t n_given, bool fuse,
                            uint32_t *stand_ins, const po_cuda_plan **plan);

/* Seconds of one run. *known false, with the sentence in *why: a node has no step, or there is no
 * record. */
po_status po_gpu_graph_seconds(const po_run *run, po_arena *arena, const po_graph *graph, bool fuse,
                               bool *known, double *seconds, const char **why);

/* The same of many, which is faster than one by one: 0 seconds where a reading is not known. */
po_status po_gpu_graphs_seconds(const po_run *run, po_arena *arena, const po_graph *const *graphs,
                                uint32_t n, bool fuse, double *seconds, const char **why);

#endif

/* A whole model as a plan of the executor (cost/cuda/run.h): convolutions by cuDNN, products by
 * cuBLASLt, everything else as kernels of our own. What PET's mutants are compared by on a GPU, and
 * what whole models are timed and verified with there. */
#ifndef PO_PIPELINE_GPU_MODEL_H
#define PO_PIPELINE_GPU_MODEL_H

#include "codegen/delivery/library.h"
#include "cost/cuda/gpu.h"
#include "cost/cuda/run.h"
#include "cost/ort/ort.h"
#include "superopt/lower/lower.h"

/* A region whose kernels are there already. */
typedef struct po_gpu_given {
    const po_region *region;
    const po_lowered *lowered;
    const po_cuda_program *program;
    const po_cuda_image *image;
} po_gpu_given;

typedef struct po_gpu_model_options {
    const po_gpu *gpu;
    const po_nvrtc *nvrtc;         /* NULL: no images, for readings that are recorded already */
    const po_object_store *images; /* that were made before; NULL: none are kept */
    uint32_t arch;                 /* of the images */
    bool tf32;
    /* Regions as the kernel stage makes them, several operators a kernel; else one an operator,
     * as a runtime without fusion has them. */
    bool fuse;
    const po_gpu_given *given; /* without `fuse`; may be NULL */
    uint32_t n_given;
    /* An elementwise operator or a move of data that no step does (of integers, say) is a copy of
     * as many bytes: the plan says how long such a model takes, not what it computes. */
    bool stand_ins;
} po_gpu_model_options;

/* What a node became, for people and tests. */
typedef enum po_gpu_unit_kind {
    PO_GPU_KERNELS, /* a region */
    PO_GPU_MATMUL,
    PO_GPU_CONV,
    PO_GPU_STAND_IN
} po_gpu_unit_kind;

typedef struct po_gpu_unit {
    po_gpu_unit_kind kind;
    const po_node_id
        *nodes; /* in execution order; of a library's step, the last makes the result */
    uint32_t n_nodes;
} po_gpu_unit;

typedef struct po_gpu_model {
    po_cuda_plan plan; /* outputs in the graph's order */
    const po_gpu_unit *units;
    uint32_t n_units;
} po_gpu_model;

/* Types and shapes must be inferred and static. feed: inputs by name; NULL: zeros. PO_UNSUPPORTED
 * naming the node that has no step. Equal regions are compiled once. */
po_status po_gpu_model_make(po_ctx *ctx, po_arena *arena, const po_graph *graph,
                            const po_gpu_model_options *options, const po_feed *feed,
                            po_gpu_model *model);

/* --- library.c: what the libraries do --- */

/* How a convolution or product and what follows it is one step of a library. `last` makes the
 * result; places are values yet: buffer holds the value's number, PO_NONE nothing. */
typedef struct po_gpu_match {
    po_gpu_unit_kind kind;
    po_node_id nodes[4];
    uint32_t n_nodes;
    po_value_id out;
    union {
        po_cuda_conv conv;
        po_cuda_matmul matmul;
    } u;
} po_gpu_match;

/* False: the node is none, or one that the libraries do not have in this form. taken: nodes that
 * others have, by number. */
bool po_gpu_match_node(const po_graph *graph, po_node_id node, bool tf32, const bool *taken,
                       po_gpu_match *match);

#endif

/* The search's target for NVIDIA GPUs (docs/gpu-schedules.md): what replaces the CPU's loops, costs
 * and text of plans where search_problem.gpu is set. */
#ifndef PO_SUPEROPT_GPU_PRIVATE_H
#define PO_SUPEROPT_GPU_PRIVATE_H

#include "superopt/search/internal.h"

/* Bytes of SHARED tensors a block may have: so that all GPUs from 8.0 on take it. */
enum { GPU_SHARED = 96 << 10 };

/* Chunks of grids and of for loops; both end with 0. */
extern const int64_t gpu_chunks[], gpu_steps[];
bool gpu_chunk(const search_problem *p, uint32_t class, int64_t chunk, bool last);
/* Whether so many parts are worth a look. */
bool gpu_splits(const search_problem *p, const search_skeleton *s, const search_kernel *k);

/* As search_lay; operands of products stand by themselves, nothing is fused to a register tile. It
 * hangs on the loops' classes only, and not on their chunks. */
bool gpu_lay(const search_problem *p, const search_skeleton *s, const search_kernel *k,
             const bool *made, search_layout *l);
/* Whether blocks of these chunks can do it: no product has several matrices in a block, and blocks
 * that share a loop do not make the same sums. */
bool gpu_fits_blocks(const search_problem *p, const search_skeleton *s, const search_kernel *k,
                     const search_layout *l);
/* Whether the node is a product of two matrices in this kernel; its operands (nodes). */
bool gpu_is_product(const search_problem *p, const search_skeleton *s, const search_layout *l,
                    uint32_t i, uint32_t operand[2]);
/* Whether one of them is a vector: it then gets one row, so that it is a product of matrices. */
bool gpu_is_thin(const search_skeleton *s, const uint32_t operand[2]);
/* What a node's value is stored as: in DEVICE memory, or by a block. */
po_mu_type gpu_device_type(const search_problem *p, const search_skeleton *s, uint32_t i);
po_mu_type gpu_shared_type(const search_problem *p, const search_skeleton *s,
                           const search_layout *l, uint32_t root, uint32_t i);

/* Sets the kernel's seconds; false where it does not fit a block. */
bool gpu_estimate(const search_problem *p, const search_skeleton *s, search_kernel *k,
                  const search_layout *l);
/* Chunks of the grid of the step that adds up the parts. */
void gpu_combine_chunks(const search_problem *p, const search_kernel *k,
                        int64_t chunk[PO_MU_MAX_GRID]);

/* As search_emit; weights are read as they are. */
void gpu_emit(const search_problem *p, const search_plan *plan, po_schedule *to);

#endif

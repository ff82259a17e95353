/* Weights in the order in which a kernel reads them, and the nodes that undo it. */
#ifndef PO_OPS_PACK_H
#define PO_OPS_PACK_H

#include "ir/graph.h"

/* unpacked = Reshape(Slice(Reshape(Transpose(packed, perm), merged), length), the weight's dims)
 *
 * A convolution's panels of 64 outputs, [K'/64][C][R*S][64] for a weight [K][C][R][S]: dims
 * {K'/64, C, R*S, 64}, perm {0, 3, 1, 2}, merged {K', C, R*S}, length {K, C, R*S}. */
typedef struct po_packing {
    uint32_t rank, merged_rank; /* at most PO_MAX_RANK */
    int64_t dims[8];            /* of the packed tensor */
    uint32_t perm[8];           /* as Transpose has it: axis i of the result is axis perm[i] */
    int64_t merged[8];          /* dims after the Transpose, joined */
    int64_t length[8];          /* what of them is kept, from 0 on; the weight has as many */
} po_packing;

/* The packed tensor: unpacking gives the weight back, bit for bit; what the slice drops is 0.
 * PO_INTERNAL where the packing does not fit the weight. f32 only. */
po_status po_pack(po_ctx *ctx, po_arena *arena, const po_tensor *weight, const po_packing *packing,
                  const po_tensor **packed);

/* Makes the body's input (po_graph_outline) the packed tensor: what read the input reads the
 * unpacked one, of the weight's dims. Nodes that would change nothing are left out. */
po_status po_pack_unpack(po_ctx *ctx, po_graph *body, po_value_id input, const po_tensor *weight,
                         const po_packing *packing);

#endif

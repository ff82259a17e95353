/* Weights in the order in which a kernel reads them, and the nodes that undo it. */
#ifndef PO_OPS_PACK_H
#define PO_OPS_PACK_H

#include "ir/graph.h"

enum { PO_PACK_MAX = 8 };

/* weight = Reshape(Slice(Reshape(Transpose(packed, perm), merged), length), the weight's dims)
 *
 * A convolution's panels of 64 outputs, [K'/64][C][R*S][64] for a weight [K][C][R][S], K' being K
 * rounded up: dims {K'/64, C, R*S, 64}, perm {0, 3, 1, 2}, merged {K', C, R*S}, length {K, C, R*S}.
 */
typedef struct po_packing {
    uint32_t rank, merged_rank;  /* at most PO_PACK_MAX */
    int64_t dims[PO_PACK_MAX];   /* of the packed tensor */
    uint32_t perm[PO_PACK_MAX];  /* as Transpose has it: axis i of the result is axis perm[i] */
    int64_t merged[PO_PACK_MAX]; /* dims after the Transpose, joined or cut anew */
    int64_t
        length[PO_PACK_MAX]; /* what of them is kept, from 0 on: as many elements as the weight */
} po_packing;

/* The packed tensor: unpacking gives the weight back, bit for bit; what the Slice drops is 0. Four
 * bytes an element. PO_INTERNAL where the packing does not fit the weight. */
po_status po_pack(po_ctx *ctx, po_arena *arena, const po_tensor *weight, const po_packing *packing,
                  const po_tensor **packed);

/* The packed form of a constant as an initialiser, with the recipe that says so. */
po_status po_pack_add(po_ctx *ctx, po_graph *graph, const char *name, po_value_id weight,
                      const po_packing *packing, po_value_id *packed);

/* Makes the input of a function's body (po_graph_outline) the packed tensor: what read it reads the
 * weight, unpacked. Nodes that would change nothing are left out. */
po_status po_pack_unpack(po_ctx *ctx, po_graph *body, po_value_id input, const po_packing *packing);

#endif

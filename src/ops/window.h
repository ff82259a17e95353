/* Sliding windows of convolutions and pools: kernel, strides, dilations, pads of every kind. */
#ifndef PO_OPS_WINDOW_H
#define PO_OPS_WINDOW_H

#include "ops/rule.h"

/* Per spatial axis; everything was checked: kernel, stride and dilation are at least 1, and no sum
 * or product that the geometry needs can wrap. */
typedef struct po_window {
    uint32_t n;
    bool ceil, same, same_upper, valid, output_given;
    bool clips; /* a pool's window that is longer than its map is put once, as the runtime does */
    bool skips; /* SAME, but strides are so wide that windows leave input out at the ends */
    int64_t kernel[PO_MAX_RANK], stride[PO_MAX_RANK], dilation[PO_MAX_RANK];
    int64_t begin[PO_MAX_RANK], end[PO_MAX_RANK]; /* auto_pad SAME: set by po_window_out */
    int64_t extra[PO_MAX_RANK];                   /* output_padding */
    int64_t output[PO_MAX_RANK];                  /* output_shape */
    po_arena *arena; /* for lengths that are expressions; NULL: they stay unknown */
} po_window;

/* Reads the attributes for n spatial axes. `kernel` gives the kernel where it is known otherwise
 * (weights), items of -1 unknown, and must agree with kernel_shape; NULL: kernel_shape is needed.
 * PO_BAD_INPUT for what the operator cannot mean. */
po_status po_window_read(po_ctx *ctx, const po_graph *graph, const po_node *node, uint32_t n,
                         const int64_t *kernel, po_window *window);
/* The same for a convolution or pool whose input 0 has n spatial axes, where what is wrong is no
 * error: false. The kernel of a convolution is its weights'. Padding in words is numbers; false
 * where it is below zero, of a transposed convolution, or hangs on sizes that are open. */
bool po_window_of(const po_graph *graph, const po_node *node, uint32_t n, po_window *window);
/* Whether a pool's window that is longer than its map is put once all the same. */
bool po_window_clips(const po_graph *graph, const po_node *node);
/* Tells who asks (po_infer_demands) that windows fit on an axis, and run along it. */
void po_rule_demand_window(const po_infer *infer, const po_window *window, uint32_t axis, po_dim in,
                           po_dim out);
/* Length of the output on an axis for an input dim; sets the pads of SAME where the dim is known.
 */
po_dim po_window_out(po_window *window, uint32_t axis, po_dim in);
/* The same for a transposed convolution. */
po_dim po_window_transposed(po_window *window, uint32_t axis, po_dim in);

/* For an output range [0, n) and position(o) = o * step + offset: the part [*from, *to) whose
 * positions lie in [0, length). step >= 1. */
void po_window_clip(int64_t n, int64_t step, int64_t offset, int64_t length, int64_t *from,
                    int64_t *to);

#endif

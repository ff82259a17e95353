/* One view of a convolution, plain or transposed, of 1 to 3 map axes: what every rewrite reads of
 * one and makes another of. Lists that the node leaves out and padding in words are filled in. */
#ifndef PO_OPS_CONV_VIEW_H
#define PO_OPS_CONV_VIEW_H

#include "ops/rewrite.h"

enum { PO_MAP_AXES = 3 };

typedef struct po_conv {
    po_node_id node;
    po_value_id x, w, b, y; /* b: PO_NONE where there is none */
    po_dtype dtype;
    uint32_t n;                                 /* map axes */
    int64_t batch, in, out, group;              /* channels of all groups */
    int64_t size[PO_MAP_AXES], to[PO_MAP_AXES]; /* of the map: read, made */
    int64_t kernel[PO_MAP_AXES], stride[PO_MAP_AXES], dilation[PO_MAP_AXES];
    int64_t before[PO_MAP_AXES], after[PO_MAP_AXES]; /* zeros around the map */
    int64_t extra[PO_MAP_AXES];                      /* output_padding of a transposed one */
    const po_tensor *weights, *bias;                 /* NULL: no constants */
} po_conv;

/* A plain convolution; a transposed one; either. NULL is none. */
bool po_conv_is(const po_node *node);
bool po_conv_is_transposed(const po_node *node);
bool po_conv_is_either(const po_node *node);
/* The plain convolution that makes the value, else NULL; the same, and nothing else reads it. */
const po_node *po_made_by_conv(const po_graph *graph, po_value_id value);
const po_node *po_made_alone_by_conv(const po_graph *graph, po_value_id value);
/* The use is the map that a plain convolution reads. */
bool po_read_by_conv(const po_graph *graph, const po_use *use);

/* Reads a Conv or ConvTranspose whose weights have a known shape that fits its group. batch, size
 * and to are -1 where they are open. False for everything else, for lists of another length, for
 * padding below zero, and where SAME hangs on sizes that are open. */
bool po_conv_view(const po_graph *graph, po_node_id node, po_conv *conv);
/* kernel, stride, dilation, before, after and extra of a node with a window on conv->n axes, a pool
 * too (po_window_of). False also for ceil_mode and output_shape. */
bool po_conv_window(const po_graph *graph, const po_node *node, po_conv *conv);
/* No size is open, and the output is as long as kernel, strides, dilations and pads make it. */
bool po_conv_fits(const po_conv *conv);

bool po_conv_stride_one(const po_conv *conv);
bool po_conv_dilation_one(const po_conv *conv);
bool po_conv_padded(const po_conv *conv);
/* One tap, stride 1, no padding, one group: a matrix over the channels. */
bool po_conv_is_pointwise(const po_conv *conv);
int64_t po_conv_taps(const po_conv *conv);
/* Equal map axes, kernels, strides, dilations and pads. */
bool po_conv_same_windows(const po_conv *a, const po_conv *b);
/* A copy without one of its map axes, or with one more of length 1, its kernel too. */
po_conv po_conv_without_axis(const po_conv *conv, uint32_t axis);
po_conv po_conv_with_axis(const po_conv *conv, uint32_t axis);
/* Multiplications; every size is known. */
double po_conv_work(const po_conv *conv);
/* kernel_shape, group, strides, dilations and pads of a Conv node, from the view; what is as the
 * standard has it by itself is left out, but kernel_shape. */
void po_conv_set_lists(po_graph *graph, po_node_id node, const po_conv *conv);
/* Adds a plain convolution of x by w, with the view's window and groups, beside `place`; returns
 * its output. b may be PO_NONE; of the type the shape may be unknown, and NULL is x's without one.
 */
po_value_id po_add_conv(po_graph *graph, po_node_id place, po_value_id x, po_value_id w,
                        po_value_id b, const po_conv *conv, const po_type *type);
/* The view of a convolution of n map axes and one tap: a matrix over the channels of each group.
 * group == channels: a factor for each channel. */
po_conv po_conv_of_one_tap(po_dtype dtype, uint32_t n, int64_t in, int64_t out, int64_t group);

#endif

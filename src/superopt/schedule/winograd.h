/* Between winograd.c (how a convolution is worked) and winograd_choices.c (in which
 * sizes). */
#ifndef PO_SUPEROPT_WINOGRAD_H
#define PO_SUPEROPT_WINOGRAD_H

#include "superopt/schedule/conv.h"

/* Of po_choice.n: outputs of a tile along an axis, inputs of a slice, tile rows of a block (0: by
 * panels), outputs of a panel, tiles that a product takes at a time; what it makes of rounding, in
 * 16ths. */
enum {
    PO_WINOGRAD_OUTPUTS,
    PO_WINOGRAD_SLICE,
    PO_WINOGRAD_BLOCK,
    PO_WINOGRAD_PANEL,
    PO_WINOGRAD_ROWS,
    PO_WINOGRAD_MAGNIFIES
};
enum { PO_WINOGRAD_PAD = 16 }; /* floats that keep the products' store streams apart */

/* Outputs and products of a tile along an axis of which tiles have m outputs, and how many tiles
 * there are along it, of each phase. */
int64_t po_winograd_outputs(const po_conv_axis *axis, int64_t m);
int64_t po_winograd_products(const po_conv_axis *axis, int64_t m);
int64_t po_winograd_tiles(const po_conv_axis *axis, int64_t m);
/* By rows one axis alone is the map's rows, a tile each. */
void po_winograd_stand_up(po_mu_conv *v);

/* As in po_scheduler. */
void po_winograd_apply(po_schedule *s, uint32_t step, const po_choice *choice);

#endif

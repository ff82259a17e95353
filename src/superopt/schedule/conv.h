/* Steps that are convolutions along a map's axes, as Toom-Cook algorithms take them: with stride 1,
 * or with strides of no more than the taps. */
#ifndef PO_SUPEROPT_CONV_H
#define PO_SUPEROPT_CONV_H

#include "superopt/schedule/internal.h"

/* An axis of the map. */
typedef struct po_conv_axis {
    uint32_t at, tap; /* naive labels; tap PO_NONE where taps is 1; at where length is 1 */
    uint32_t axis;    /* of the input's tensor */
    int64_t length, taps;
    int64_t apart;  /* dilation: so many phases of the map */
    int64_t stride; /* so many phases of the taps; 1 where apart is more */
} po_conv_axis;

typedef struct po_mu_conv {
    po_naive_step n;
    po_conv_axis map[2]; /* y, x */
    po_conv_axis frames; /* axis PO_NONE: there are none. Any stride */
    uint32_t k, c;
    bool values;  /* the weight is computed at run time: w_k and w_order are not set */
    uint32_t w_k; /* axis of the weight */
    uint32_t w_order[PO_MU_MAX_RANK], n_w_order; /* the others, channels first */
    int64_t outputs, inputs;
} po_mu_conv;

/* Whether one algorithm serves both. */
bool po_conv_alike(const po_conv_axis *a, const po_conv_axis *b);
/* False where the step is something else: channels last, one group. */
bool po_conv_of(const po_mu *mu, uint32_t step, po_mu_conv *v);

/* The plain way of a convolution that reads its weights as those by tiles have them, in panels with
 * the channels outside; false: there is none. direct.c */
bool po_direct_as_tiles(const po_mu *naive, uint32_t step, int64_t panel, po_choice *choice);

#endif

/* Numbers of the machine that laws, searches and costs reckon with: one place for each, its unit,
 * and the reading that it comes from. They rank what is tried; what is kept is measured. Whole
 * readings stand in docs/rewrites.md unless another page is named. */
#ifndef PO_COST_MACHINE_H
#define PO_COST_MACHINE_H

#include <stdint.h>

/* The runtime's layout for convolutions keeps channels in blocks of this many: the floats of an
 * AVX-512 register (ONNX Runtime 1.31.1, NchwcBlockSize). */
enum { PO_CHANNEL_BLOCK = 16 };

/* Channels that the layout holds for so many: rounded up to whole blocks. */
static inline int64_t po_whole_blocks(int64_t channels) {
    return (channels + PO_CHANNEL_BLOCK - 1) / PO_CHANNEL_BLOCK * PO_CHANNEL_BLOCK;
}

/* Convolutions by tiles, in float operations of the runtime's convolutions: readings of single
 * layers of 32 to 512 channels at 14 to 160 rows, one thread (docs/rewrites.md). */
typedef struct po_tile_numbers {
    double tap;    /* of a row of the table, for an element that a depthwise convolution makes */
    double join;   /* of an element of the products' maps, written side by side */
    double turn;   /* of an element that is reordered, moved in blocks, or cut out */
    double sum;    /* of an element that the sums make, beside their terms */
    double places; /* of an element that is moved along rows and columns */
    double far;    /* of an element of the products beyond `cached_elements` */
    double cached_elements; /* that a cache holds */
    double weight;          /* of a weight beyond `cached_weights` */
    double cached_weights;
    double node;           /* of starting an operator */
    double gain;           /* least ratio of times by these numbers */
    double rounding;       /* most that the tiles may make of it */
    int64_t rows_of_input; /* what stands for those of the model's input where they are open */
} po_tile_numbers;

typedef struct po_machine_numbers {
    /* One core as preselections see it, whatever the shape. */
    double flops; /* float operations a second */
    double bytes; /* of memory moved a second */
    double start; /* seconds to start an operator */

    po_tile_numbers tiles;

    /* Convolutions in phases, in the same operations: wav2vec's four strided convolutions. */
    struct {
        double sum;    /* of an element that a depthwise convolution or an addition makes */
        double whole;  /* of an element that is put back to its place among the phases */
        double weight; /* of a weight more than there were */
        double node;   /* of starting an operator */
        double gain;
    } phases;

    /* Convolutions of upsampled maps by differences, in multiplications an output element: each
     * difference and product is written, cut and read again, then summed and moved. With 96
     * channels 0.7 ns at factor 4 (40x40 to 160x160), 3.6 ns at 2 (80x80 to 160x160); a
     * multiplication 0.02. */
    struct {
        double element, product;
        double part; /* of its own is moved and added (48 channels at factor 4 are even) */
        double gain; /* over phases */
    } differences;

    /* Convolutions of interpolated maps, smoothed behind, in multiplications an output element (9
     * ps each): layers of 32 to 512 channels at factors 2 to 8, bench/smooth.py. */
    struct {
        double moves;           /* around the smoothing */
        double difference, sum; /* what differences add to a product, and to their sum */
        double line;            /* how much slower short lines are */
        double rows;  /* what convolutions by rows, which would take it otherwise, add to half the
                         products */
        double nodes; /* of all elements together: starting two dozen operators */
        double gain;
    } smooth;

    /* Products of tokens as pointwise convolutions (bench/tokens.py). With fewer channels than
     * `narrow` on either side, maps of more than `elements` are turned for longer than the
     * convolution gains: 64 channels, 64 tokens even, 1024 tokens 0.91x. Fewer than `few` rows of a
     * matrix are worth it where it has `weights` (1024 x 1024: 1.2x to 1.4x; 256 x 256: 0.9x). */
    struct {
        int64_t narrow, few;
        double elements, weights;
    } tokens;

    /* Convolutions by frames: parts of the products of the plain way, at most. */
    struct {
        double worth; /* the tables take their part */
        double
            worth_eight; /* tiles of eight, of the products in tiles of four: they lose a digit */
    } frames;

    /* An element by cubic interpolation, in operations of products: half of those that take as long
     * as the runtime's 70 ns. */
    double cubic;
    /* Run-time weights cost the runtime its blocked layout: it runs at this part of its speed (72
     * against 110 GFLOP/s). */
    double unblocked_speed;
} po_machine_numbers;

/* A server core with AVX-512 and ONNX Runtime 1.31.1 (Zen 4, Xeon 6-167). */
extern const po_machine_numbers po_numbers;

#endif

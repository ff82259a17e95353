/* What may be chosen among the laws that work in place: families that are left out, and forms that
 * are written one way or another. */
#ifndef PO_REWRITE_OPTIONS_H
#define PO_REWRITE_OPTIONS_H

#include "ir/size.h"

#include <stdbool.h>
#include <stdint.h>

/* How hard-swish, x * clip(x + 3, 0, 6) / 6, is written. */
typedef enum po_hard_swish_form {
    PO_HARD_SWISH_KEEP,  /* as found */
    PO_HARD_SWISH_GATED, /* x * HardSigmoid(x): any opset */
    PO_HARD_SWISH_NODE   /* HardSwish: opset 14 and later, else gated */
} po_hard_swish_form;

/* How an affine map that no neighbour takes is written. */
typedef enum po_leftover_form {
    PO_LEFTOVER_ARITHMETIC, /* Mul, Add */
    PO_LEFTOVER_CONV        /* beside convolutions: a depthwise 1x1 convolution, which stays in the
                               runtime's blocked layout */
} po_leftover_form;

/* Families of linear identities that save work; each may be left out to be measured without. */
typedef enum po_algebra {
    PO_ALGEBRA_COMPOSE = 1 << 0,     /* products of weights, means first, gated residuals */
    PO_ALGEBRA_DEPTH_SPACE = 1 << 1, /* transposed convolutions, DepthToSpace behind */
    PO_ALGEBRA_UPSAMPLE = 1 << 2,    /* convolutions of upsampled maps in phases */
    PO_ALGEBRA_GATES = 1 << 3,       /* channel gates in the weights */
    PO_ALGEBRA_FRAMES = 1 << 4,   /* three-dimensional convolutions by frames, Toom-Cook in time */
    PO_ALGEBRA_PLANES = 1 << 5,   /* one-dimensional convolutions as planes of height 1 */
    PO_ALGEBRA_TILES = 1 << 6,    /* two-dimensional convolutions by tiles */
    PO_ALGEBRA_CHANNELS = 1 << 7, /* channels-last products as pointwise convolutions */
    PO_ALGEBRA_BLOCKS = 1 << 8,   /* channels padded to whole blocks beside pools and gates */
    PO_ALGEBRA_SPLITS = 1 << 9,   /* split outputs of convolutions as convolutions of their own */
    PO_ALGEBRA_PHASES = 1 << 10,  /* convolutions along one axis by Toom-Cook in phases */
    PO_ALGEBRA_DIFFERENCES = 1 << 11, /* convolutions of upsampled maps by differences */
    /* convolutions of interpolated maps as smoothed ones of repeated pixels */
    PO_ALGEBRA_SMOOTH = 1 << 12,
    PO_ALGEBRA_TOKENS = 1 << 13, /* products of tokens as pointwise convolutions */
    PO_ALGEBRA_ALL = (1 << 14) - 1
} po_algebra;
enum { PO_ALGEBRAS = 14 };

/* Families whose algorithms come in tiles: more outputs to a tile are fewer products, and more
 * rounding. */
typedef enum po_tile_family {
    PO_TILED_MAPS,
    PO_TILED_FRAMES,
    PO_TILED_PHASES,
    PO_TILED
} po_tile_family;

/* What else a form can differ in. */
typedef enum po_used {
    PO_USED_HARD_SWISH = 1 << 16, /* clipped lines and gates by them */
    PO_USED_LEFTOVER = 1 << 17,   /* affine maps as convolutions */
    PO_USED_SPREAD = 1 << 18,     /* gates upsampled */
    PO_USED_SUMS = 1 << 19,       /* sums before norms */
    PO_USED_MOVES = 1 << 20,      /* DepthToSpace as two moves */
    PO_USED_TINY = 1 << 21,       /* weights that count for nothing */
    PO_USED_MASKS = 1 << 22       /* rows of Softmax with masks */
} po_used;

/* What the names of open lengths are at the sizes that a model is meant for, best first: what pays
 * is told there. */
typedef struct po_meant {
    uint32_t n; /* 0: nothing is known */
    po_size_length_fn length;
    void *const *user; /* by size */
} po_meant;

typedef struct po_postopt_options {
    bool affine;      /* fold affine chains */
    uint32_t algebra; /* po_algebra bits */
    po_hard_swish_form hard_swish;
    po_leftover_form leftover;
    bool activations;  /* GELU, SiLU, Mish, Sigmoid, Softmax, clips, powers: docs/forms.md */
    bool norms;        /* layer, root-mean-square and group norms */
    bool spread_gates; /* channel gates of small maps upsampled to their size */
    bool sums; /* sums that only a norm reads as Sum: runtimes join Add with the norm, and the
                  joint kernel is slower than both */
    bool split_moves;             /* DepthToSpace of large maps as two single-axis moves */
    bool half;                    /* half precision worked in float */
    bool tiny;                    /* weights below 2^-100 as zeros */
    bool spectra;                 /* spectra of frames as convolutions */
    bool lone_norms;              /* a batch norm that no neighbour takes as Mul and Add */
    bool cubic;                   /* cubic interpolation as products, whatever the families */
    uint32_t most_tile[PO_TILED]; /* outputs of a tile; 0: as many as pay */
    /* Families (po_algebra) that are used in places alone: on maps with fewer positions than the
     * middle one of the model's convolutions, or with as many and more. */
    uint32_t on_small, on_large;
    po_meant meant;
    bool masks; /* what a mask hides from Softmax raised to where exponentials are normal numbers */
} po_postopt_options;

/* Everything on, in the forms that win most often. */
po_postopt_options po_postopt_defaults(void);
/* Affine maps and batch norms in the weights, these families of identities (po_algebra), and
 * nothing of what only one runtime likes. */
po_postopt_options po_postopt_plain(uint32_t algebra);
/* The same for GPUs, without families; norms stay as they are written: one node that is spelled
 * again has a scale where there was none, and kernels are searched for from what is there. */
po_postopt_options po_postopt_gpu(void);

#endif

/* The choices that are made by themselves. */
#include "rewrite/options.h"

po_postopt_options po_postopt_defaults(void) {
    return (po_postopt_options){.affine = true,
                                .algebra = PO_ALGEBRA_ALL,
                                .hard_swish = PO_HARD_SWISH_GATED,
                                .leftover = PO_LEFTOVER_CONV,
                                .activations = true,
                                .norms = true,
                                .spread_gates = true,
                                .sums = true,
                                .split_moves = true,
                                .half = true,
                                .tiny = true,
                                .spectra = true,
                                .masks = true};
}

po_postopt_options po_postopt_plain(uint32_t algebra) {
    po_postopt_options options = po_postopt_defaults();
    options.algebra = algebra;
    options.hard_swish = PO_HARD_SWISH_KEEP;
    options.leftover = PO_LEFTOVER_ARITHMETIC;
    options.spread_gates = options.sums = options.split_moves = options.masks = false;
    return options;
}

po_postopt_options po_postopt_gpu(void) {
    po_postopt_options options = po_postopt_plain(0);
    options.norms = options.half = false;
    return options;
}

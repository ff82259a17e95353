/* The table of passes: copy, sweep, simplify, postopt with its defaults or with one part alone, and
 * raising to opset 18. */
#include "golden.h"
#include "postopt/postopt.h"
#include "simplify/opset.h"
#include "simplify/simplify.h"

/* Only the text form itself. */
static po_status copy(po_ctx *ctx, const po_graph *graph, po_graph **result) {
    *result = po_graph_clone(ctx, graph);
    return PO_OK;
}

static po_status sweep(po_ctx *ctx, const po_graph *graph, po_graph **result) {
    *result = po_graph_clone(ctx, graph);
    po_graph_sweep(*result);
    return PO_OK;
}

static po_status simplify(po_ctx *ctx, const po_graph *graph, po_graph **result) {
    po_simplify_options options = po_simplify_defaults();
    return po_simplify(ctx, graph, &options, result, NULL);
}

static po_status postopt(po_ctx *ctx, const po_graph *graph, po_graph **result) {
    po_postopt_options options = po_postopt_defaults();
    return po_postopt(ctx, graph, &options, result, NULL);
}

/* Nothing of postopt but what is then switched on. */
static po_postopt_options bare(void) {
    return (po_postopt_options){.hard_swish = PO_HARD_SWISH_KEEP,
                                .leftover = PO_LEFTOVER_ARITHMETIC};
}

static po_status activations(po_ctx *ctx, const po_graph *graph, po_graph **result) {
    po_postopt_options options = bare();
    options.activations = true;
    return po_postopt(ctx, graph, &options, result, NULL);
}

static po_status norms(po_ctx *ctx, const po_graph *graph, po_graph **result) {
    po_postopt_options options = bare();
    options.norms = true;
    return po_postopt(ctx, graph, &options, result, NULL);
}

static po_status raise_to_18(po_ctx *ctx, const po_graph *graph, po_graph **result) {
    return po_raise_opset(ctx, graph, 18, result, NULL);
}

const golden_pass golden_passes[] = {
    {"copy", copy},
    {"sweep", sweep},
    {"simplify", simplify},
    {"postopt", postopt},
    {"activations", activations},
    {"norms", norms},
    {"raise 18", raise_to_18},
    {NULL, NULL},
};

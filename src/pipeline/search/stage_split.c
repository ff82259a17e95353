/* Split works on the graph with its affine maps folded: then what is left between non-linear
 * operators are plain convolutions and products. */
#include "ops/samples.h"
#include "pipeline/budget.h"
#include "pipeline/recall.h"
#include "pipeline/search/search.h"
#include "postopt/postopt.h"

/* Seconds of the search, the readings and the proof go with these. */
#define HEAVY_FLOPS 1.5e10
/* Larger graphs are of many small nodes, which no mutant helps. */
enum { MOST_NODES = 20000 };

static po_status fold(const po_run *run, const po_graph *graph, po_graph **out) {
    po_postopt_options options = po_postopt_defaults();
    options.algebra = 0;
    if (run->options->cuda)
        options.hard_swish = PO_HARD_SWISH_KEEP;
    options.leftover = PO_LEFTOVER_ARITHMETIC;
    PO_TRY(po_postopt(run->ctx, graph, &options, out, NULL));
    po_run_hold(run, *out);
    return po_infer_graph(run->ctx, *out, true);
}

/* Mutants are to keep samples apart as well. */
static po_status follow_samples(const po_run *run, const po_graph *open, const po_graph *folded,
                                po_search *search) {
    search->samples = PO_SAMPLES;
    search->sample_axis = po_samples_inputs(run->arena, folded, open);
    return po_samples_follow(run->ctx, folded, PO_SAMPLES, search->sample_axis);
}

po_status po_stage_split(const po_run *run, const po_imported *imported,
                         const po_simplified *simplified, const po_recall *recall,
                         const po_search **out) {
    *out = NULL;
    if ((recall && recall->n_placed == 0) || run->options->exact ||
        po_record_nodes(simplified->graph) > MOST_NODES)
        return PO_OK;
    po_search *search = PO_NEW(run->arena, po_search);
    search->arena = run->arena;
    search->until_chosen = po_arena_child(run->arena);
    po_arena_own(run->arena, search->until_chosen);
    PO_TRY(po_run_cost(run, &search->cost));
    PO_TRY(po_run_rates(run, &search->rates));
    search->room = po_run_room(imported->original);
    const po_graph *graph = simplified->sample ? simplified->sample : simplified->graph;
    po_graph *folded;
    PO_TRY(fold(run, graph, &folded));
    if (simplified->sample)
        PO_TRY(follow_samples(run, imported->graph, folded, search));
    PO_TRY(po_split_model(run->ctx, run->arena, folded, NULL, &search->split));
    search->graph = folded;
    search->kernels = run->options->kernels != NULL;
    search->n_sites = search->split.n;
    search->sites = PO_NEW_N(run->arena, po_site, search->n_sites);
    for (uint32_t i = 0; i < search->n_sites; i++) {
        search->sites[i].sub = &search->split.subs[i];
        search->sites[i].chosen = PO_NONE;
    }
    *out = search;
    double flops = 0;
    for (uint32_t i = 0; i < search->n_sites; i++) {
        const po_subprogram *sub = search->sites[i].sub;
        po_search_estimate(run, search, sub, sub->graph, &search->sites[i].estimate);
        flops += sub->n_at * search->sites[i].estimate.flops;
    }
    run->budget->heavy |= flops > HEAVY_FLOPS;
    po_log(run->ctx, "%u subprograms, %u nodes in them", search->n_sites, search->split.n_nodes);
    return PO_OK;
}

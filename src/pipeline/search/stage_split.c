/* Split works on the graph with its affine maps folded: then what is left between non-linear
 * operators are plain convolutions and products. */
#include "ops/op.h"
#include "pipeline/budget.h"
#include "pipeline/recall.h"
#include "pipeline/search/search.h"
#include "postopt/postopt.h"

/* Seconds of the search, the readings and the proof go with these. */
#define HEAVY_FLOPS 1.5e10
/* Larger graphs are of many small nodes, which no mutant helps. */
enum { MOST_NODES = 20000 };

static po_status fold(po_run_state *state, po_graph **out) {
    po_postopt_options options = po_postopt_defaults();
    options.algebra = 0;
    if (state->run.options->cuda)
        options.hard_swish = PO_HARD_SWISH_KEEP;
    options.leftover = PO_LEFTOVER_ARITHMETIC;
    PO_TRY(po_postopt(state->run.ctx, state->current, &options, out, NULL));
    po_run_hold(&state->run, *out);
    return po_infer_graph(state->run.ctx, *out, true);
}

po_status po_stage_split(po_run_state *state) {
    if ((state->recall && state->recall->n_placed == 0) || state->run.options->exact ||
        po_record_nodes(state->current) > MOST_NODES)
        return PO_OK;
    po_search *search = PO_NEW(state->run.arena, po_search);
    search->arena = state->run.arena;
    search->until_chosen = po_arena_create(state->run.ctx);
    PO_TRY(po_run_cost(&state->run, &search->cost));
    PO_TRY(po_run_rates(&state->run, &search->rates));
    po_graph *folded;
    PO_TRY(fold(state, &folded));
    PO_TRY(po_split_model(state->run.ctx, state->run.arena, folded, NULL, &search->split));
    search->graph = folded;
    search->kernels = state->run.options->kernels != NULL;
    search->n_sites = search->split.n;
    search->sites = PO_NEW_N(state->run.arena, po_site, search->n_sites);
    for (uint32_t i = 0; i < search->n_sites; i++) {
        search->sites[i].sub = &search->split.subs[i];
        search->sites[i].chosen = PO_NONE;
    }
    state->search = search;
    double flops = 0;
    for (uint32_t i = 0; i < search->n_sites; i++) {
        const po_subprogram *sub = search->sites[i].sub;
        po_search_estimate(state, sub, sub->graph, &search->sites[i].estimate);
        flops += sub->n_at * search->sites[i].estimate.flops;
    }
    state->run.budget->heavy |= flops > HEAVY_FLOPS;
    po_log(state->run.ctx, "%u subprograms, %u nodes in them", search->n_sites,
           search->split.n_nodes);
    return PO_OK;
}

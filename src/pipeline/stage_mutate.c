/* Mutants of every subprogram, each judged by points and boxes. */
#include "pipeline/search.h"

static po_status mutate_site(po_run_state *state, po_site *site) {
    po_arena *arena = state->search->arena;
    PO_TRY(po_program_of(state->ctx, arena, site->sub->graph, &site->program));
    site->known = po_agree_known_create(arena);
    po_mutants derived;
    po_mutants_init(&derived, arena);
    PO_TRY(po_derive(state->ctx, arena, site->sub, &derived, &site->counts));
    for (uint32_t k = 0; k < derived.n; k++)
        PO_TRY(po_search_add(state, site, &derived.mutants[k], (po_trial){.parent = PO_NONE}));
    return PO_OK;
}

po_status po_stage_mutate(po_run_state *state) {
    po_search *search = state->search;
    if (!search)
        return PO_OK;
    double start = po_now();
    for (uint32_t i = 0; i < search->n_sites; i++) {
        po_site *site = &search->sites[i];
        po_step(state->ctx, (double)i / search->n_sites, "mutants of subprogram %u", i + 1);
        po_status status = mutate_site(state, site);
        if (status == PO_UNSUPPORTED || status == PO_INTERNAL || status == PO_BAD_INPUT) {
            po_log(state->ctx, "subprogram %u: %s", i + 1, state->ctx->error.message);
            po_ctx_clear(state->ctx);
            status = PO_OK;
        }
        PO_TRY(status);
    }
    search->search_seconds += po_now() - start;
    return PO_OK;
}

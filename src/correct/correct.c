/* The ways to correct a mutant, one after another. */
#include "correct/ways.h"

#include "ops/op.h"

const char *po_correction_name(uint32_t way) {
    static const char *const names[PO_CORRECTIONS] = {
        [PO_CORRECTION_GAP] = "zero gap",
        [PO_CORRECTION_HALO] = "halo",
        [PO_CORRECTION_GAP_AND_HALO] = "zero gap and halo",
        [PO_CORRECTION_BOXES] = "boxes computed",
        [PO_CORRECTION_SLABS] = "slabs computed",
        [PO_CORRECTION_ROWS] = "rows computed",
    };
    return names[way];
}

uint32_t po_corrections(void) {
    return PO_CORRECTIONS;
}

const po_rt *po_stepped_rt(po_arena *arena, const po_stepped *r, const int64_t *dims) {
    po_rt_digit d[PO_RT_MAX_RANK];
    int64_t zero[PO_RT_MAX_RANK] = {0};
    for (uint32_t i = 0; i < r->rank; i++)
        d[i] = (po_rt_digit){r->count[i], i, i, r->step[i], 1};
    return po_rt_create(arena,
                        &(po_rt){r->rank, r->rank, r->rank, dims, r->count, r->first, zero, d});
}

/* Several windows in a row may be adapted in ways that do not fit one another. */
static po_status agrees(po_correcting *c, const po_graph *graph, bool *equal) {
    const po_agree_options options = {.seed = 0x636f7272};
    const po_program *program;
    po_agreement agreement;
    po_arena *scratch = po_arena_child(c->arena);
    *equal = false;
    po_status status = po_program_of(c->ctx, scratch, graph, &program);
    if (status == PO_OK)
        status = po_agree(c->ctx, scratch, c->original, program, &options, &agreement);
    if (status == PO_OK) {
        *equal = agreement.equal;
    } else if (status == PO_UNSUPPORTED) {
        po_ctx_clear(c->ctx);
        status = PO_OK;
    }
    po_arena_free(scratch);
    return status;
}

po_status po_correct_offer(po_correcting *c, po_graph *graph, po_correction way, bool *right) {
    *right = false;
    po_graph_sweep(graph);
    po_status status = po_infer_graph(c->ctx, graph, false);
    if (status == PO_BAD_INPUT || status == PO_UNSUPPORTED) {
        po_ctx_clear(c->ctx);
        po_graph_free(graph);
        return PO_OK;
    }
    PO_TRY(status);
    PO_TRY(agrees(c, graph, right));
    if (*right)
        po_mutants_add(
            c->corrected,
            po_arena_printf(c->arena, "%s, %s", c->mutant->name, po_correction_name(way)), graph);
    else
        po_graph_free(graph);
    return PO_OK;
}

po_status po_correct(po_ctx *ctx, po_arena *arena, const po_subprogram *sub,
                     const po_mutant *mutant, const po_agreement *agreement,
                     po_mutants *corrected) {
    if (agreement->equal)
        return PO_OK;
    po_correcting c = {ctx, po_arena_child(arena), sub, mutant, agreement, corrected, NULL};
    PO_TRY(po_program_of(ctx, c.arena, sub->graph, &c.original));
    PO_TRY(po_correct_windows(&c));
    PO_TRY(po_correct_boxes(&c));
    po_arena_free(c.arena);
    return PO_OK;
}

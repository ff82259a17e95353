/* Whether a variant computes what the original does wherever its library is loaded, and where it is
 * not; and what is told of that. */
#include "codegen/delivery/library.h"
#include "cost/cuda/cost.h"
#include "cost/kernels.h"
#include "pipeline/budget.h"
#include "pipeline/select/selecting.h"

#include <math.h>
#include <stdio.h>

enum { FRESH_OF_FUNCTIONS = 8, FRESH_IN_SHORT = 2 };

/* The library of generated kernels that a variant needs here; NULL: none. One for GPUs stays out of
 * sessions on the CPU: they run the functions. */
const char *po_selecting_kernels(const selecting *s, uint32_t i) {
    bool here = s->list.variants[i].kernels && !s->run->options->cuda;
    return here ? s->list.library->path : NULL;
}

/* One that the runtime refuses, or that computes something else, is a fault of ours: it is counted
 * and told, whatever the others come to. */
void po_selecting_fault(selecting *s, po_candidate_report *row, const char *why, bool refused) {
    row->refused |= refused;
    row->different |= !refused;
    po_record_note(s->run->record, "'%s' was dropped: %s", row->name, why);
}

void po_selecting_judge(selecting *s, po_candidate_report *row, const po_verify_report *r) {
    if (!r->equal && (r->refused || r->evidence != PO_EVIDENCE_NONE))
        po_selecting_fault(s, row, r->why, r->refused);
}

/* A comparison of a variant with the original; kernels NULL: without its library. */
po_verify_spec po_selecting_comparison(const selecting *s, uint32_t i, const char *kernels) {
    return (po_verify_spec){.library = s->cost->library,
                            .kernels = kernels,
                            .original = s->original_path,
                            .candidate = s->written[i].path,
                            .files = &s->files,
                            .graph = s->original,
                            .candidate_graph = s->list.variants[i].graph,
                            .checks = s->imported->checks,
                            .n_checks = s->imported->n_checks,
                            .meant = s->run->options->sizes,
                            .n_meant = s->run->options->n_sizes,
                            .tolerance = s->run->options->tolerance,
                            .seed = 1,
                            .fresh = PO_FRESH_SETS,
                            .fresh_seed = s->original_hash.lo ^ s->written[i].hash.lo};
}

/* Seconds of one of these comparisons: a few sets are compared whatever it takes. */
static const double most = 5, least = 0.5, short_time = 25;

const char *po_selecting_code(const selecting *s, uint32_t isa) {
    return po_arena_printf(s->arena, "by the kernels' code for %s", po_isas[isa].name);
}

/* isa NULL: as on this machine. `how` tells of it where it is not right. */
static po_status check_as(selecting *s, uint32_t i, const char *kernels, const char *isa,
                          const char *how, bool *right) {
    po_verify_spec spec = po_selecting_comparison(s, i, kernels);
    double end = po_budget_end(s->run, PO_PART_SELECT);
    double left = end > 0 ? fmax(end - po_now(), 0) : most;
    spec.isa = isa;
    spec.seconds = fmin(most, fmax(left / 3, least));
    spec.seed = 2;
    spec.fresh = left < short_time ? FRESH_IN_SHORT : FRESH_OF_FUNCTIONS;
    po_verify_report r;
    PO_TRY(po_verify(s->ctx, &spec, &r));
    *right = r.equal;
    if (!r.equal) {
        snprintf(r.why, sizeof r.why, "%s: %s", how, po_arena_strdup(s->arena, r.why));
        po_selecting_decide(s, po_selecting_row(s, i), "%s", r.why);
    }
    po_selecting_judge(s, po_selecting_row(s, i), &r);
    return PO_OK;
}

/* Without its library a model runs on its own functions, and on another processor by the library's
 * code for that one: they are compared too. */
po_status po_selecting_elsewhere(selecting *s, uint32_t i, bool *right) {
    const char *kernels = po_selecting_kernels(s, i);
    *right = true;
    if (!kernels)
        return PO_OK;
    PO_TRY(check_as(s, i, NULL, NULL, "without its library", right));
    for (uint32_t isa = po_isa_from(po_isa_of_machine() + 1); isa < PO_ISAS && *right;
         isa = po_isa_from(isa + 1))
        PO_TRY(check_as(s, i, kernels, po_isas[isa].name, po_selecting_code(s, isa), right));
    return PO_OK;
}

static const char *listed(selecting *s, const char *list, const char *name) {
    return *list ? po_arena_printf(s->run->arena, "%s, %s", list, name) : name;
}

/* Which code of the library ran on the inputs of the comparison. */
void po_selecting_tell_kernels(selecting *s, uint32_t i) {
    po_summary *sum = &s->run->record->summary;
    sum->kernels_compared = sum->kernels_unrun = "";
    if (!s->list.variants[i].kernels)
        return;
    if (s->run->options->cuda) {
        bool live = s->run->gpu_cost && !s->run->gpu_cost->replay;
        *(live ? &sum->kernels_compared : &sum->kernels_unrun) = sum->gpu;
        return;
    }
    for (uint32_t isa = 0; isa < PO_ISAS; isa++) {
        if (!po_isa_runs(isa) && s->list.library && s->list.library->partly)
            continue;
        const char **list = po_isa_runs(isa) ? &sum->kernels_compared : &sum->kernels_unrun;
        *list = listed(s, *list, po_isas[isa].name);
    }
}

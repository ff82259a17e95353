/* A short comparison of a variant with kernels, by the code for every instruction set that runs
 * here. Each kernel was compared with float64 by itself; what a network makes of the rounding of
 * all of them shows in the whole. */
#include "pipeline/kernels/values.h"

#include "codegen/delivery/library.h"
#include "cost/cost.h"
#include "cost/kernels.h"
#include "pipeline/candidates.h"
#include "pipeline/pin.h"

static const double seconds = 2, seconds_any_size = 4;
/* Of that, for code that this machine does not choose: select compares with it once more. */
static const double part_of_other_code = 0.25;
/* Others than those of select: what shows on such inputs shows while there is time for other
 * kernels. At any size as many as there are kinds and scales, half of them small. */
enum { few_fresh = 4, all_fresh = 56 };

/* isa NULL: as on this machine. */
static po_status compare(const po_run *run, const po_imported *imported, const po_library *library,
                         po_arena *arena, const po_variant *variant, bool any_size, double part,
                         const char *isa, po_verify_report *report) {
    po_cost *cost;
    po_candidate_store store;
    po_candidate candidate;
    const char *original;
    po_graph *typed;
    PO_TRY(po_run_cost(run, &cost));
    po_candidate_store_init(&store, arena);
    PO_TRY(po_candidate_original(run->ctx, &store, imported->original, &original));
    PO_TRY(po_candidate_write(run->ctx, &store, variant->graph, &candidate));
    PO_TRY(po_pin_inputs(run->ctx, imported->original, NULL, 0, &typed));
    const po_side_files files = po_candidate_files(&store);
    const po_verify_spec spec = {.library = cost->library,
                                 .kernels = library->path,
                                 .isa = isa,
                                 .original = original,
                                 .candidate = candidate.path,
                                 .files = &files,
                                 .graph = typed,
                                 .candidate_graph = variant->graph,
                                 .checks = imported->checks,
                                 .n_checks = imported->n_checks,
                                 .tolerance = part * run->options->tolerance,
                                 .seconds = (any_size ? seconds_any_size : seconds) *
                                            (isa ? part_of_other_code : 1),
                                 .fresh = any_size ? all_fresh : few_fresh,
                                 .fresh_small = any_size,
                                 .fresh_seed = candidate.hash.lo,
                                 .seed = 1};
    po_status status = po_verify(run->ctx, &spec, report);
    po_graph_free(typed);
    return status;
}

/* The same, told as po_kernel_values does. */
static po_status tell(const po_run *run, const po_imported *imported, const po_library *library,
                      const po_variant *variant, bool any_size, double part, const char *isa,
                      const char **why) {
    po_verify_report r = {.equal = 1};
    po_arena *arena = po_arena_create(run->ctx);
    po_status status = compare(run, imported, library, arena, variant, any_size, part, isa, &r);
    po_arena_free(arena);
    if (status == PO_OK)
        po_log(run->ctx, "kernels compared with %u sets of inputs%s%s: %.1f s", r.sets,
               isa ? ", by the code for " : "", isa ? isa : "", r.seconds);
    if (status == PO_CANCELLED || status == PO_TIME_LIMIT || status == PO_NO_MEMORY)
        return status;
    if (status != PO_OK)
        po_ctx_clear(run->ctx);
    else if (!r.equal && !r.refused && r.evidence == PO_EVIDENCE_RUNTIME)
        *why = po_arena_printf(run->arena, "%s%s%s", r.why, isa ? ", by the code for " : "",
                               isa ? isa : "");
    return PO_OK;
}

po_status po_kernel_values(const po_run *run, const po_imported *imported,
                           const po_library *library, const po_variant *variant, bool any_size,
                           double part, const char **why) {
    *why = NULL;
    PO_TRY(tell(run, imported, library, variant, any_size, part, NULL, why));
    for (uint32_t isa = po_isa_from(po_isa_of_machine() + 1); isa < PO_ISAS && !*why;
         isa = po_isa_from(isa + 1))
        PO_TRY(tell(run, imported, library, variant, any_size, 1, po_isas[isa].name, why));
    return PO_OK;
}

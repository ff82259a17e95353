/* Regions as the summary has them, and their lines of -v. */
#include "pipeline/kernels/tell_regions.h"

#include <math.h>

void po_tell_region(const po_run *run, const po_plan *plan, const po_rates *rates,
                    const char *why) {
    po_record *record = run->record;
    po_region_report row = {.nodes = plan->region->n_nodes,
                            .why = po_arena_strdup(record->arena, why ? why : "")};
    po_kernel_step_report *steps = PO_NEW_N(record->arena, po_kernel_step_report, plan->n_steps);
    for (uint32_t i = 0; i < plan->n_steps && !plan->failed; i++) {
        const po_plan_step *s = &plan->steps[i];
        double least = fmax(s->flops / rates->flops, s->bytes / rates->bytes);
        steps[i] = (po_kernel_step_report){.name = po_arena_strdup(record->arena, s->name),
                                           .schedule = po_arena_strdup(record->arena, s->schedule),
                                           .flops = s->flops,
                                           .bytes = s->bytes,
                                           .ms = 1e3 * s->seconds,
                                           .ms_roofline = 1e3 * least};
        row.ms += steps[i].ms;
        row.ms_roofline += steps[i].ms_roofline;
        row.n_steps++;
        po_log(run->ctx, "region %u, %s: %s; %.3f ms, %.0f GFLOP/s, %u tried", record->n_regions,
               s->name, s->schedule, steps[i].ms,
               s->seconds > 0 ? s->flops / s->seconds / 1e9 : 0.0, s->tried);
    }
    row.steps = steps;
    po_log(run->ctx, "region %u: %u nodes, %zu steps, %.3f ms in all, %.3f ms by the roofline",
           record->n_regions, plan->region->n_nodes, row.n_steps, row.ms, row.ms_roofline);
    PO_PUSH(record->arena, record->regions, record->n_regions, record->cap_regions, row);
}

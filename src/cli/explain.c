/* petopt explain: what the search tried for each part of the model. */
#include "cli/cli.h"

#include <stdlib.h>

enum { NAME_COLUMN = 60 }; /* longer names are cut: --json has them whole */

static void line_of(po_text *text, const po_mutant_report *m) {
    const char *how = m->corrected ? " (corrected)" : m->enumerated ? " (found blindly)" : "";
    char name[160];
    size_t room = NAME_COLUMN - strlen(how), size = strlen(m->name);
    snprintf(name, sizeof name, "%.*s%s%s", (int)(size > room ? room - 3 : room), m->name,
             size > room ? "..." : "", how);
    po_text_printf(text, "  %c %-*s %-22s", m->chosen ? '*' : ' ', NAME_COLUMN, name, m->fate);
    if (m->measured)
        po_text_printf(text, " %6.3fx", m->ratio);
    else
        po_text_puts(text, "       -");
    po_text_printf(text, "  %6.2fx  %8.1f  %8.2f%s%s\n", m->estimate, m->flops / 1e6,
                   m->bytes / 1e6, *m->why ? "  " : "", m->why);
}

static void subprogram(po_text *text, const po_subprogram_report *r, size_t index) {
    po_text_printf(text, "%zu. %s", index + 1, r->name);
    if (r->times > 1)
        po_text_printf(text, ", %zu times", r->times);
    po_text_puts(text, ":");
    for (size_t i = 0; i < r->n_before; i++)
        po_text_printf(text, "%s %s", i ? "," : "", r->before[i].op_type);
    po_text_puts(text, " -> [");
    for (size_t i = 0; i < r->rank; i++)
        po_text_printf(text, "%s%lld", i ? "," : "", (long long)r->dims[i]);
    po_text_printf(text, "], %.1f MFLOP, %.2f MB", r->flops / 1e6, r->bytes / 1e6);
    if (r->measured)
        po_text_printf(text, ", %.3f ms in context", r->ms);
    po_text_printf(text,
                   "\n   %llu derived, %llu lifted and %llu composed of %llu tried; %llu judged "
                   "blindly, of them %llu ended by shape, %llu as "
                   "known, %llu by points; %llu boxes and %llu points compared\n",
                   (unsigned long long)r->derived, (unsigned long long)r->lifted,
                   (unsigned long long)r->composed, (unsigned long long)r->tried,
                   (unsigned long long)r->judged, (unsigned long long)r->by_shape,
                   (unsigned long long)r->by_hash, (unsigned long long)r->by_points,
                   (unsigned long long)r->boxes, (unsigned long long)r->points);
    for (size_t i = 0; i < r->n_mutants; i++)
        line_of(text, &r->mutants[i]);
    if (r->n_repaired > 0)
        po_text_printf(text, "   %zu boxes of the output are corrected\n", r->n_repaired);
}

/* By what is left to win over the roofline, the most first. */
static int by_rest(const void *a, const void *b) {
    const po_kernel_step_report *x = *(const po_kernel_step_report *const *)a,
                                *y = *(const po_kernel_step_report *const *)b;
    double p = x->ms - x->ms_roofline, q = y->ms - y->ms_roofline;
    if (p != q)
        return p < q ? 1 : -1;
    return (x > y) - (x < y);
}

static void region(po_text *text, const po_region_report *r, size_t index) {
    po_text_printf(text, "region %zu: %llu operators, ", index, (unsigned long long)r->nodes);
    if (*r->why) {
        po_text_printf(text, "stays with the runtime: %s\n", r->why);
        return;
    }
    if (r->ms_estimated > 0) {
        po_text_printf(text, "%zu kernels, estimated %.1f us; node by node %.1f us\n", r->n_steps,
                       1e3 * r->ms_estimated, 1e3 * r->ms_nodes);
        for (size_t i = 0; i < r->n_steps; i++)
            po_text_printf(text, "  %s: %s\n", r->steps[i].name, r->steps[i].schedule);
        return;
    }
    po_text_printf(text, "%zu steps, %.3f ms, by the roofline %.3f ms\n", r->n_steps, r->ms,
                   r->ms_roofline);
    const po_kernel_step_report **order =
        PO_NEW_N(text->arena, const po_kernel_step_report *, r->n_steps);
    for (size_t i = 0; i < r->n_steps; i++)
        order[i] = &r->steps[i];
    if (r->n_steps > 0)
        qsort(order, r->n_steps, sizeof *order, by_rest);
    if (r->ms > 0)
        po_text_puts(text,
                     "        ms  roofline  GFLOP/s  step, the farthest from the roofline first\n");
    for (size_t i = 0; i < r->n_steps && r->ms > 0; i++)
        po_text_printf(text, "  %8.3f  %8.3f  %7.0f  %s: %s\n", order[i]->ms, order[i]->ms_roofline,
                       order[i]->ms > 0 ? order[i]->flops / order[i]->ms / 1e6 : 0.0,
                       order[i]->name, order[i]->schedule);
}

void po_explain_print(po_text *text, const po_outcome *outcome) {
    const po_summary *s = outcome->summary;
    if (s->n_subprograms == 0)
        po_text_puts(text, "no part of the model was searched\n");
    else
        po_text_printf(text, "    %-*s %-22s %7s  %7s  %8s  %8s\n", NAME_COLUMN, "mutant", "fate",
                       "measured", "roofline", "MFLOP", "MB");
    for (size_t i = 0; i < s->n_subprograms; i++)
        subprogram(text, &s->subprograms[i], i);
    for (size_t i = 0; i < s->n_regions; i++)
        region(text, &s->regions[i], i);
    po_text_printf(text, "search %.1f s, certification %.1f s, measurement %.1f s\n",
                   s->search_seconds, s->certify_seconds, s->measure_seconds);
    for (size_t i = 0; i < s->n_candidates; i++) {
        const po_candidate_report *c = &s->candidates[i];
        po_text_printf(text, "%c %s: ", c->chosen ? '*' : ' ', c->name);
        if (c->measured)
            po_text_printf(text, "%.3f ms, %.3fx (%.3f to %.3f); ", c->ms, c->ratio, c->low,
                           c->high);
        po_text_printf(text, "%s\n", c->verdict);
    }
    po_text_printf(text, "would be written: %s\n", s->winner);
}

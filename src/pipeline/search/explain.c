/* What the search did, for reports: every subprogram with its mutants. */
#include "pipeline/search/search.h"

const char *po_trial_fate_text(po_trial_fate fate) {
    static const char *const text[PO_TRIAL_FATES] = {
        [PO_TRIAL_MADE] = "not looked at",
        [PO_TRIAL_HOPELESS] = "estimated far slower",
        [PO_TRIAL_SAMPLES] = "for one batch alone",
        [PO_TRIAL_MALFORMED] = "malformed",
        [PO_TRIAL_POINTS] = "differs",
        [PO_TRIAL_PARTLY] = "agrees in part",
        [PO_TRIAL_INSIDE] = "agrees inside",
        [PO_TRIAL_BOXES] = "differs in some boxes",
        [PO_TRIAL_EQUAL] = "equal",
        [PO_TRIAL_UNMEASURED] = "not measured",
        [PO_TRIAL_COST] = "not faster",
        [PO_TRIAL_WHOLE] = "differs in the whole",
        [PO_TRIAL_CHOSEN] = "chosen",
        [PO_TRIAL_JOINED] = "chosen for its seams",
        [PO_TRIAL_REFUSED] = "refused",
    };
    return text[fate];
}

/* Where it agrees, as far as that was looked at: a few positions say what differs, not what
 * agrees. A corrected one was compared when it was made. */
static const char *agrees(po_arena *arena, const po_site *site, const po_trial *t) {
    const po_agreement *a = t->agreement;
    if (t->fate == PO_TRIAL_MALFORMED)
        return "not compared";
    if (t->fate == PO_TRIAL_WHOLE || t->fate == PO_TRIAL_POINTS)
        return "differs";
    if (t->whole || t->corrected || (a && a->equal))
        return "equal";
    if (!a)
        return t->fate == PO_TRIAL_PARTLY ? "differs" : "not compared";
    uint64_t equal = 0, all = 0;
    for (uint32_t k = 0; k < site->sub->graph->n_outputs; k++) {
        equal += a->agree[k].n;
        all += a->agree[k].n + a->differ[k].n;
    }
    return po_arena_printf(arena, "equal in %llu of %llu boxes", (unsigned long long)equal,
                           (unsigned long long)all);
}

static po_mutant_report mutant_of(po_arena *arena, const po_site *site, const po_trial *t) {
    double before = site->estimate.seconds, after = t->estimate.seconds;
    return (po_mutant_report){.name = t->name,
                              .fate = po_trial_fate_text(t->fate),
                              .agrees = agrees(arena, site, t),
                              .enumerated = t->enumerated,
                              .corrected = t->corrected,
                              .chosen = t->fate == PO_TRIAL_CHOSEN,
                              .measured = t->measured,
                              .ratio = t->ratio,
                              .estimate = after > 0 ? before / after : 0,
                              .flops = t->estimate.flops,
                              .bytes = t->estimate.bytes,
                              .why = t->why ? t->why : ""};
}

/* Where the mutant that was corrected differed on the first output. */
static void add_repairs(po_arena *arena, const po_site *site, po_subprogram_report *r) {
    const po_trial *chosen = &site->trials[site->chosen];
    if (!chosen->corrected || chosen->parent == PO_NONE)
        return;
    const po_agreement *a = site->trials[chosen->parent].agreement;
    if (!a || !a->differ)
        return;
    const po_box_list *list = &a->differ[0];
    po_box_report *boxes = PO_NEW_N(arena, po_box_report, list->n);
    for (uint32_t i = 0; i < list->n; i++)
        boxes[i] = (po_box_report){list->boxes[i].rank, list->boxes[i].first, list->boxes[i].step,
                                   list->boxes[i].count};
    r->repaired = boxes;
    r->n_repaired = list->n;
}

static po_subprogram_report report_of(po_arena *arena, const po_search *search,
                                      const po_site *site) {
    const po_graph *g = site->sub->graph;
    const po_mutate_counts *c = &site->counts;
    uint32_t n;
    po_subprogram_report r = {.name = po_graph_value_name(search->graph, site->sub->at[0].out[0]),
                              .times = site->sub->n_at,
                              .measured = site->seconds > 0,
                              .ms = 1e3 * site->seconds,
                              .flops = site->estimate.flops,
                              .bytes = site->estimate.bytes,
                              .derived = c->derived,
                              .lifted = c->lifted,
                              .composed = c->composed,
                              .tried = c->tried,
                              .judged = c->judged,
                              .by_shape = c->by_shape,
                              .by_hash = c->by_hash,
                              .by_points = c->by_points,
                              .boxes = site->boxes,
                              .points = site->points,
                              .n_mutants = site->n_trials};
    r.before = po_record_views(arena, g, &n);
    r.n_before = n;
    if (site->chosen != PO_NONE) {
        r.after = po_record_views(arena, site->trials[site->chosen].graph, &n);
        r.n_after = n;
        add_repairs(arena, site, &r);
    }
    po_mutant_report *mutants = PO_NEW_N(arena, po_mutant_report, site->n_trials);
    for (uint32_t i = 0; i < site->n_trials; i++)
        mutants[i] = mutant_of(arena, site, &site->trials[i]);
    r.mutants = mutants;
    const po_type *type = &g->values[g->outputs[0]].type;
    int64_t *dims = PO_NEW_N(arena, int64_t, type->rank);
    for (uint32_t i = 0; i < type->rank; i++)
        dims[i] = type->dims[i].value;
    r.rank = type->rank;
    r.dims = dims;
    return r;
}

void po_search_explain(po_record *record, const po_search *search) {
    po_subprogram_report *all = PO_NEW_N(record->arena, po_subprogram_report, search->n_sites);
    for (uint32_t i = 0; i < search->n_sites; i++)
        all[i] = report_of(record->arena, search, &search->sites[i]);
    record->subprograms = all;
    record->n_subprograms = search->n_sites;
    record->summary.search_seconds = search->search_seconds;
    record->summary.certify_seconds = search->certify_seconds;
    record->summary.measure_seconds = search->measure_seconds;
}

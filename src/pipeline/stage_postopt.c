/* Postopt's forms as variants (variants.h): those of the search's result, the first of the model
 * itself and those that differ from it in one choice, and the model as it was simplified. */
#include "pipeline/budget.h"
#include "pipeline/old_ir.h"
#include "pipeline/recall.h"
#include "pipeline/variants.h"

/* What the stage works on. */
typedef struct making {
    const po_run *run;
    po_variant_list *list;
    const po_postopt_counts *first; /* of the model's first form */
} making;

/* A form that the chooser starts from; `made` may be NULL. */
static po_status make_form(const making *m, uint32_t base, po_choices choices,
                           po_variant_made *made) {
    po_combination *form = po_chooser_add(m->list->chooser, base, choices);
    return po_variant_list_make(m->run, m->list, form, made);
}

/* The search's result in the form that wins most often, and with nothing but affine folding. */
static po_status make_mutated(void *user) {
    const making *m = user;
    const po_variant_plan *bases = m->list->bases;
    for (uint32_t i = 0; i < PO_BASE_MODEL; i++)
        if (bases[i].from)
            PO_TRY(make_form(m, i, 0, NULL));
    return bases[PO_MUTATED_BEST].from
               ? make_form(m, PO_MUTATED_BEST, PO_CHOICE(po_variant_affine_alone()), NULL)
               : PO_OK;
}

/* Those that differ from the model's first form in one choice. */
static po_status make_choices(void *user) {
    const making *m = user;
    po_ctx *ctx = m->run->ctx;
    for (uint32_t i = 0; i < po_variant_choices(); i++) {
        po_variant_plan plan = m->list->bases[PO_BASE_MODEL];
        plan.choices = PO_CHOICE(i);
        if (!po_variant_first(i) || !po_variant_matters(i, m->first))
            continue;
        po_step(ctx, (double)(i + 1) / (po_variant_choices() + 1), "%s",
                po_variant_name(m->run->arena, &plan));
        PO_TRY(po_ctx_poll(ctx));
        PO_TRY(make_form(m, PO_BASE_MODEL, plan.choices, NULL));
    }
    return PO_OK;
}

/* The model's first form for usual sizes, beside that for all. */
static po_status make_usual(void *user) {
    const making *m = user;
    return make_form(m, PO_BASE_USUAL, 0, NULL);
}

static void tell_rules(po_record *record, const po_postopt_counts *counts) {
    for (uint32_t i = 0; i < PO_LAWS; i++)
        po_record_fired(record, po_law_name((po_law_id)i), counts->fired[i]);
}

/* The one that won when this run was made before. */
static po_status make_known(const po_run *run, po_variant_list *list, const po_recall *recall) {
    po_variant_plan plan;
    po_variant_made made;
    if (!recall->form || !po_variant_named(recall->form, list->bases, PO_BASES, &plan))
        return PO_OK;
    PO_TRY(po_variant_make(run, list, &plan, &made));
    tell_rules(run->record, &made.counts);
    return PO_OK;
}

static po_status make_all(const po_run *run, po_variant_list *list) {
    po_variant_made first;
    bool cut;
    making m = {run, list, &first.counts};
    PO_TRY(po_budget_call(run, PO_PART_FORMS, "forms with mutants were left out", make_mutated, &m,
                          &cut));
    PO_TRY(make_form(&m, PO_BASE_MODEL, 0, &first));
    if (first.made)
        tell_rules(run->record, &first.counts);
    if (first.made && list->bases[PO_BASE_USUAL].from)
        PO_TRY(po_budget_call(run, PO_PART_FORMS, "the form for usual sizes was left out",
                              make_usual, &m, &cut));
    if (po_variants_one_only(list->bases[PO_BASE_MODEL].from))
        po_record_note(run->record, "one form only: each holds weights of its own");
    else if (first.made && !run->options->cuda)
        PO_TRY(po_budget_call(run, PO_PART_FORMS, "further forms were left out", make_choices, &m,
                              &cut));
    return PO_OK;
}

po_status po_stage_postopt(const po_run *run, const po_imported *imported,
                           const po_simplified *simplified, const po_chosen *chosen,
                           const po_kernels *kernels, po_variant_list *out) {
    const po_recall *recall = chosen->recall;
    po_variant_list_begin(out, imported, simplified, kernels);
    if (!run->options->exact) {
        PO_TRY(po_variant_list_forms(run, out, chosen));
        PO_TRY(recall ? make_known(run, out, recall) : make_all(run, out));
    }
    if (po_recall_wants(recall, "simplified")) {
        po_graph *plain = po_graph_clone(run->ctx, simplified->graph);
        po_run_hold(run, plain);
        po_old_ir_constants(run->ctx, plain);
        po_variant_add(run, out, "simplified", plain, NULL, NULL);
    }
    for (uint32_t i = out->n; i > 0; i--)
        if (!out->variants[i - 1].kernels)
            out->graph = out->variants[i - 1].graph;
    return PO_OK;
}

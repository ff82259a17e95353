/* Postopt's forms as variants (variants.h): those of the search's result, the first of the model
 * itself and those that differ from it in one choice, and the model as it was simplified. */
#include "pipeline/budget.h"
#include "pipeline/old_ir.h"
#include "pipeline/recall.h"
#include "pipeline/variants.h"

/* A form that the chooser starts from; `made` may be NULL. */
static po_status make_form(po_run_state *state, uint32_t base, po_choices choices,
                           po_variant_made *made) {
    return po_variant_list_make(state, po_chooser_add(state->forms->chooser, base, choices), made);
}

/* The search's result in the form that wins most often, and with nothing but affine folding. */
static po_status make_mutated(void *user) {
    po_run_state *state = user;
    const po_variant_list *f = state->forms;
    for (uint32_t i = 0; i < PO_BASE_MODEL; i++)
        if (f->bases[i].from)
            PO_TRY(make_form(state, i, 0, NULL));
    return f->bases[PO_MUTATED_BEST].from
               ? make_form(state, PO_MUTATED_BEST, PO_CHOICE(po_variant_affine_alone()), NULL)
               : PO_OK;
}

/* Those that differ from the model's first form in one choice. */
typedef struct choosing {
    po_run_state *state;
    const po_postopt_counts *first;
} choosing;

static po_status make_choices(void *user) {
    const choosing *c = user;
    po_run_state *state = c->state;
    const po_postopt_counts *first = c->first;
    for (uint32_t i = 0; i < po_variant_choices(); i++) {
        po_variant_plan plan = state->forms->bases[PO_BASE_MODEL];
        plan.choices = PO_CHOICE(i);
        if (!po_variant_first(i) || !po_variant_matters(i, first))
            continue;
        po_step(state->run.ctx, (double)(i + 1) / (po_variant_choices() + 1), "%s",
                po_variant_name(state->run.arena, &plan));
        PO_TRY(po_ctx_poll(state->run.ctx));
        PO_TRY(make_form(state, PO_BASE_MODEL, plan.choices, NULL));
    }
    return PO_OK;
}

static void tell_rules(po_run_state *state, const po_postopt_counts *counts) {
    for (uint32_t i = 0; i < PO_LAWS; i++)
        po_record_fired(state->run.record, po_law_name((po_law_id)i), counts->fired[i]);
}

/* The one that won when this run was made before. */
static po_status make_known(po_run_state *state) {
    po_variant_plan plan;
    po_variant_made made;
    if (!state->recall->form ||
        !po_variant_named(state->recall->form, state->forms->bases, PO_BASES, &plan))
        return PO_OK;
    PO_TRY(po_variant_make(state, &plan, &made));
    tell_rules(state, &made.counts);
    return PO_OK;
}

static po_status make_all(po_run_state *state) {
    po_variant_made first;
    bool cut;
    PO_TRY(po_budget_call(&state->run, PO_PART_FORMS, "forms with mutants were left out",
                          make_mutated, state, &cut));
    PO_TRY(make_form(state, PO_BASE_MODEL, 0, &first));
    if (first.made)
        tell_rules(state, &first.counts);
    if (po_variants_one_only(state->forms->bases[PO_BASE_MODEL].from))
        po_record_note(state->run.record, "one form only: each holds weights of its own");
    else if (first.made && !state->run.options->cuda)
        PO_TRY(po_budget_call(&state->run, PO_PART_FORMS, "further forms were left out",
                              make_choices, &(choosing){state, &first.counts}, &cut));
    return PO_OK;
}

po_status po_stage_postopt(po_run_state *state) {
    const po_graph *simplified = state->current;
    if (!state->run.options->exact) {
        po_variant_list_create(state, simplified);
        PO_TRY(state->recall ? make_known(state) : make_all(state));
    }
    if (po_recall_wants(state, "simplified")) {
        po_graph *plain = po_graph_clone(state->run.ctx, simplified);
        po_run_hold(&state->run, plain);
        po_old_ir_constants(state->run.ctx, plain);
        po_variant_add(state, "simplified", plain, NULL, NULL);
    }
    for (uint32_t i = state->n_variants; i > 0; i--)
        if (!state->variants[i - 1].kernels)
            state->current = state->variants[i - 1].graph;
    return PO_OK;
}

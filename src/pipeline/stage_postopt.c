/* Postopt's forms as variants (variants.h): those of the search's result, the first of the model
 * itself and those that differ from it in one choice, and the model as it was simplified. */
#include "pipeline/budget.h"
#include "pipeline/old_ir.h"
#include "pipeline/recall.h"
#include "pipeline/variants.h"

enum { MODEL = PO_MUTATED_KINDS, BASES };

typedef struct making {
    po_variant_plan
        bases[BASES]; /* of the search, by po_mutated_kind, where `from` is not NULL; the model's */
    po_postopt_counts first;
} making;

/* The search's result in the form that wins most often, and with nothing but affine folding. */
static po_status make_mutated(po_run_state *state, void *user) {
    const making *m = user;
    for (uint32_t i = 0; i < MODEL; i++)
        if (m->bases[i].from)
            PO_TRY(po_variant_make(state, &m->bases[i], NULL, NULL));
    po_variant_plan alone = m->bases[PO_MUTATED_BEST];
    alone.choices = UINT32_C(1) << po_variant_affine_alone();
    return alone.from ? po_variant_make(state, &alone, NULL, NULL) : PO_OK;
}

static po_status make_choices(po_run_state *state, void *user) {
    const making *m = user;
    for (uint32_t i = 0; i < po_variant_choices(); i++) {
        po_variant_plan plan = m->bases[MODEL];
        plan.choices = UINT32_C(1) << i;
        if (!po_variant_matters(i, &m->first))
            continue;
        po_step(state->ctx, (double)(i + 1) / (po_variant_choices() + 1), "%s",
                po_variant_name(state->arena, &plan));
        PO_TRY(po_ctx_poll(state->ctx));
        PO_TRY(po_variant_make(state, &plan, NULL, NULL));
    }
    return PO_OK;
}

static void tell_rules(po_run_state *state, const po_postopt_counts *counts) {
    for (uint32_t i = 0; i < PO_LAWS; i++)
        po_record_fired(state->record, po_law_name((po_law_id)i), counts->fired[i]);
}

/* The one that won when this run was made before. */
static po_status make_known(po_run_state *state, making *m) {
    po_variant_plan plan;
    if (!state->recall->form || !po_variant_named(state->recall->form, m->bases, BASES, &plan))
        return PO_OK;
    PO_TRY(po_variant_make(state, &plan, &m->first, NULL));
    tell_rules(state, &m->first);
    return PO_OK;
}

static po_status make_all(po_run_state *state, making *m) {
    bool cut, made;
    PO_TRY(po_budget_call(state, PO_PART_FORMS, "forms with mutants were left out", make_mutated, m,
                          &cut));
    PO_TRY(po_variant_make(state, &m->bases[MODEL], &m->first, &made));
    if (made)
        tell_rules(state, &m->first);
    if (po_variants_one_only(m->bases[MODEL].from))
        po_record_note(state->record, "one form only: each holds weights of its own");
    else if (made && !state->options->cuda)
        PO_TRY(po_budget_call(state, PO_PART_FORMS, "further forms were left out", make_choices, m,
                              &cut));
    return PO_OK;
}

po_status po_stage_postopt(po_run_state *state) {
    const po_graph *simplified = state->current;
    if (!state->options->exact) {
        making m = {.bases[MODEL] = {"", simplified, 0}};
        for (uint32_t i = 0; i < MODEL; i++)
            m.bases[i] = (po_variant_plan){po_mutated_name(i), state->mutated[i].graph, 0};
        PO_TRY(state->recall ? make_known(state, &m) : make_all(state, &m));
    }
    if (po_recall_wants(state, "simplified")) {
        po_graph *plain = po_graph_clone(state->ctx, simplified);
        po_pipeline_hold(state, plain);
        po_old_ir_constants(state->ctx, plain);
        po_variant_add(state, "simplified", plain, NULL);
    }
    for (uint32_t i = state->n_variants; i > 0; i--)
        if (!state->variants[i - 1].kernels)
            state->current = state->variants[i - 1].graph;
    return PO_OK;
}

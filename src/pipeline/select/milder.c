/* Error as a cost: a variant that is beyond the limit as a whole is no reason for the original to
 * stay. What has the largest part in its rounding, by what each law states of itself
 * (po_postopt_counts), takes its milder alternative: a further state of the chooser, which competes
 * like any other. So many are made that the run ends in its time whatever the comparisons say. */
#include "pipeline/select/selecting.h"
#include "pipeline/variants.h"

/* Whether an element is beyond the limit, and nothing else is wrong. */
static bool by_rounding(const po_verify_report *r) {
    return !r->equal && !r->refused && r->evidence != PO_EVIDENCE_NONE && r->index >= 0;
}

/* What the milder one is called by what it does, without what its parent did as well. */
static const char *told(selecting *s, po_choices before, po_choices choices) {
    const po_variant_plan more = {"", NULL, choices & ~before};
    return po_arena_printf(s->run->arena, "%s: beyond %.0e otherwise",
                           po_variant_name(s->run->arena, &more), s->run->options->tolerance);
}

/* It is there already: its turn is the next. PO_NONE: it had one, or was not read. */
static uint32_t go_next(selecting *s, const po_combination *form, const char *why) {
    uint32_t at = 0, first = 0;
    const uint32_t i = form ? form->number : PO_NONE;
    while (at < s->n_order && s->order[at] != i)
        at++;
    while (first < s->n_order && s->done[s->order[first]])
        first++;
    if (at == s->n_order || s->done[i])
        return PO_NONE;
    for (; at > first; at--)
        s->order[at] = s->order[at - 1];
    s->order[first] = i;
    s->milder[i] = why;
    return i;
}

po_status po_selecting_milder(selecting *s, uint32_t i, const po_verify_report *r,
                              uint32_t *number) {
    const po_variant *v = &s->list.variants[i];
    *number = PO_NONE;
    if (!by_rounding(r) || !v->how || !v->counts || !s->list.chooser || s->n_milder == MOST_MILDER)
        return PO_OK;
    po_choices choices = v->how->choices;
    uint32_t base = 0, before = s->list.n;
    while (base < PO_BASES && s->list.bases[base].from != v->how->from)
        base++;
    if (base == PO_BASES || !po_variant_milder(v->counts, &choices))
        return PO_OK;
    const char *why = told(s, v->how->choices, choices);
    s->n_milder++;
    PO_TRY(po_ctx_poll(s->ctx));
    PO_TRY(po_variant_list_make(s->run, &s->list, po_chooser_add(s->list.chooser, base, choices),
                                NULL));
    if (s->list.n == before) {
        *number = go_next(s, po_chooser_find(s->list.chooser, base, choices), why);
        return PO_OK;
    }
    PO_TRY(po_selecting_write(s, before));
    if (!s->written[before].path)
        return PO_OK;
    po_log(s->ctx, "'%s' is beyond the limit (%s): '%s' is made", v->name, r->why,
           s->list.variants[before].name);
    s->milder[before] = why;
    *number = before;
    return PO_OK;
}

/* The choice without timing, and what becomes of a choice that the proof disproves. */
#include "cost/roofline.h"
#include "pipeline/select/selecting.h"

/* Whether the roofline of this machine has a variant slower than the original. Where a shape is not
 * known in one of them there is no telling. */
static bool estimated_slower(const selecting *s, uint32_t i, const po_rates *rates, double *gain) {
    po_estimate before, after;
    po_roofline_graph(s->original, rates, 1, &before);
    po_roofline_graph(s->list.variants[i].graph, rates, 1, &after);
    if (before.unknown > 0 || after.unknown > 0 || !(after.seconds > 0))
        return false;
    *gain = before.seconds / after.seconds;
    return *gain < 0.999;
}

/* One, or, where it is beyond the limit, what rounds less. */
static po_status try_by_model(selecting *s, uint32_t i, const po_rates *rates, const char *why,
                              bool *ended) {
    while (i != PO_NONE) {
        double gain = 1;
        po_verify_report report;
        bool untested, taken;
        if (!s->written[i].path || s->done[i])
            return PO_OK;
        if (estimated_slower(s, i, rates, &gain)) {
            po_selecting_decide(s, po_selecting_row(s, i), "estimated to be slower (%.2fx)", gain);
            return PO_OK;
        }
        PO_TRY(po_selecting_compare(s, i, why, &report, &untested, &taken));
        *ended = taken || untested;
        if (*ended)
            return PO_OK;
        PO_TRY(po_selecting_milder(s, i, &report, &i));
    }
    return PO_OK;
}

/* Without measuring: the first variant that compares equal and is not estimated to be slower. */
po_status po_select_by_model(selecting *s, const char *why) {
    po_rates rates;
    bool ended = false;
    PO_TRY(po_run_rates(s->run, &rates));
    s->ctx->threads = 1; /* the answer must not depend on how many there are */
    for (uint32_t i = 0; i < s->list.n && !ended; i++)
        PO_TRY(try_by_model(s, i, &rates, why, &ended));
    return PO_OK;
}

/* Gives up a winner whose proof found a difference. */
void po_selecting_give_up(selecting *s) {
    po_summary *sum = &s->run->record->summary;
    for (uint32_t i = 0; i < s->list.n; i++) {
        if (s->list.variants[i].graph != s->out->winner.graph)
            continue;
        po_candidate_report *row = po_selecting_row(s, i);
        row->chosen = false;
        po_selecting_decide(s, row, "disproved: %s", s->out->winner.proof.why);
        po_record_note(s->run->record,
                       "'%s' was dropped: it compares equal, and the proof found a difference: %s",
                       row->name, s->out->winner.proof.why);
    }
    s->out->winner.graph = s->out->graph = s->imported->original;
    s->out->winner.path = NULL;
    sum->winner = "original";
    sum->measured = sum->compared = sum->proved = false;
    sum->error = 0;
    sum->error_reference = -1;
    sum->proof = "";
}

#include "pipeline/budget.h"

/* Seconds of a run at -O1 and -O2 without --time-limit: writing the result comes on top. */
static const double default_budget = 104;
/* The same at -O3. */
static const double deep_budget = 600;
/* With --time-limit: its part that is left to the search and the readings. */
static const double of_limit = 0.95;

/* Seconds beyond its end that a part may take where no limit was asked for: readings of the best
 * candidate are cut to fit, but a busy machine loads models slowly and has to be read again, and a
 * gain that was found is not thrown away for that. */
static const double grace[PO_PARTS] = {[PO_PART_SELECT] = 40};

/* Of the run's time, at which each part must have ended. */
static const double heavy_ends[PO_PARTS] = {
    [PO_PART_JUDGE] = 0.14, [PO_PART_CHOOSE] = 0.18, [PO_PART_KERNELS] = 0.25,
    [PO_PART_FORMS] = 0.27, [PO_PART_RANKS] = 0.48,  [PO_PART_SELECT] = 0.85,
    [PO_PART_PROOF] = 1,
};

/* Where readings and proofs are short, the search may have more. */
static const double light_ends[PO_PARTS] = {
    [PO_PART_JUDGE] = 0.34, [PO_PART_CHOOSE] = 0.4, [PO_PART_KERNELS] = 0.46,
    [PO_PART_FORMS] = 0.48, [PO_PART_RANKS] = 0.65, [PO_PART_SELECT] = 0.92,
    [PO_PART_PROOF] = 1,
};

/* At -O3 most of the time is for measuring what was found. */
static const double deep_ends[PO_PARTS] = {
    [PO_PART_JUDGE] = 0.76, [PO_PART_CHOOSE] = 0.79, [PO_PART_KERNELS] = 0.8,
    [PO_PART_FORMS] = 0.82, [PO_PART_RANKS] = 0.88,  [PO_PART_SELECT] = 0.97,
    [PO_PART_PROOF] = 1,
};

double po_budget_end(const po_run_state *state, po_part part) {
    const po_options *o = state->options;
    bool deep = o->level >= 3 && o->time_limit <= 0;
    double all = o->time_limit > 0 ? of_limit * o->time_limit : deep ? deep_budget : default_budget;
    if (state->started <= 0)
        return 0;
    return state->started + (deep ? deep_ends : state->heavy ? heavy_ends : light_ends)[part] * all;
}

double po_budget_grace(const po_run_state *state, po_part part) {
    return state->options->time_limit > 0 ? 0 : grace[part];
}

po_status po_budget_call(po_run_state *state, po_part part, const char *what, po_part_fn fn,
                         void *user, bool *cut) {
    po_ctx *ctx = state->ctx;
    double outer = ctx->deadline, end = po_budget_end(state, part);
    *cut = false;
    end += end > 0 ? po_budget_grace(state, part) : 0;
    if (end > 0 && (outer <= 0 || end < outer))
        ctx->deadline = end;
    po_status status = po_ctx_poll(ctx);
    if (status == PO_OK)
        status = fn(state, user);
    bool own = ctx->deadline != outer && (outer <= 0 || po_now() < outer);
    ctx->deadline = outer;
    if (status != PO_TIME_LIMIT || !own)
        return status;
    po_ctx_clear(ctx);
    *cut = state->cut = true;
    po_record_note(state->record,
                   "%s after %.0f s, its part of the time limit (--time-limit S%s gives more)",
                   what, po_now() - state->started, state->options->level < 3 ? ", or -O3," : "");
    return PO_OK;
}

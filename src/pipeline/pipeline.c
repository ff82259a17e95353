/* The stages in their order, and what they share. */
#include "pipeline/pipeline.h"
#include "pipeline/gpu/open_batch.h"

#include "ir/text.h"
#include "pipeline/budget.h"
#include "pipeline/recall.h"

const char *po_pipeline_no_kernels(const po_run_state *state) {
    const po_options *o = state->run.options;
    if (!o->kernels || state->winner->n_functions > 0)
        return "";
    if (state->recall)
        return state->recall->no_kernels;
    if (o->level < 1)
        return "none are made at -O0";
    if (!state->library && o->cuda)
        return state->run.record->n_regions > 0
                   ? (state->run.gpu_cost ? "none gains" : "by estimate none gains")
               : po_batch_has_open_dims(state->original) && !po_batch_is_open(state->original)
                   ? "kernels need static shapes but for the batch (--input-shape)"
                   : "no part of it promises a gain over NVIDIA's libraries";
    if (!state->library && state->run.record->cut && state->run.record->n_regions == 0)
        return "none could be made for this model in its time (--time-limit S gives more)";
    if (!state->library && po_batch_has_open_dims(state->original))
        return "none could be made for this model; they need static shapes (--input-shape)";
    if (!state->library)
        return "none could be made for this model";
    const char *verdict = po_record_candidate(state->run.record, "kernels")->verdict;
    return *verdict ? verdict : "they were not compared in time";
}

/* --- the list --- */

typedef struct stage {
    const char *name;
    po_status (*run)(po_run_state *state); /* NULL: a later version's */
    int level;                             /* from which -O level it runs */
    double share;                          /* of a run's time, roughly, for the progress line */
} stage;

static const stage stages[] = {
    {"import", po_stage_import, 0, 0.01},  {"simplify", po_stage_simplify, 1, 0.04},
    {"split", po_stage_split, 2, 0.01},    {"mutate", po_stage_mutate, 2, 0.09},
    {"correct", po_stage_correct, 2, 0.2}, {"superopt", po_stage_superopt, 1, 0.1},
    {"choose", po_stage_choose, 2, 0.05},  {"postopt", po_stage_postopt, 1, 0.05},
    {"select", po_stage_select, 1, 0.43},  {"export", po_stage_export, 1, 0.02},
};
enum { STAGES = sizeof stages / sizeof stages[0] };

bool po_stage_known(const char *name) {
    for (size_t i = 0; i < STAGES; i++)
        if (strcmp(stages[i].name, name) == 0)
            return true;
    return false;
}

bool po_stage_part_known(const char *name) {
    static const char *const parts[] = {"blind", "derived",  "corrected",
                                        "seams", "combined", "partly"};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        if (strcmp(parts[i], name) == 0)
            return true;
    return false;
}

/* --- progress --- */

typedef struct steps {
    po_run_state *state;
    const stage *now;
    double before;  /* shares of the stages that are done */
    double started; /* po_now() */
    double done;    /* of this stage: what is looked at again goes back no further */
} steps;

static void tell(void *user, const char *what, double fraction) {
    steps *s = user;
    const po_callbacks *callbacks = s->state->run.callbacks;
    if (!callbacks || !callbacks->progress)
        return;
    s->done = fraction > 1 ? 1 : fraction > s->done ? fraction : s->done;
    double all = s->before + s->now->share * s->done;
    all = all > 0.99 ? 0.99 : all; /* a run may begin again */
    double spent = po_now() - s->started;
    double left = all > 0.05 ? spent * (1 - all) / all : -1;
    if (s->state->run.ctx->deadline > 0) {
        double limit = s->state->run.ctx->deadline - po_now();
        left = left < 0 || left > limit ? (limit > 0 ? limit : 0) : left;
    }
    po_progress progress = {s->now->name, what, all, left};
    callbacks->progress(callbacks->user, &progress);
}

/* --- running --- */

static void dump(const po_run_state *state, const char *name) {
    if (!po_options_has(state->run.options->dump, state->run.options->n_dump, name) ||
        !state->run.callbacks || !state->run.callbacks->dump)
        return;
    po_arena *scratch = po_arena_create(state->run.ctx);
    po_text text;
    po_text_init(&text, scratch);
    po_graph_print(&text, state->current);
    state->run.callbacks->dump(state->run.callbacks->user, name, text.size ? text.data : "");
    po_arena_free(scratch);
}

/* What a stage's failure means for the run: true where the run goes on without its change. What is
 * wrong with the input or the options shows in import. */
static bool survives(const stage *s, po_status status) {
    if (s->run == po_stage_import)
        return false;
    return status == PO_UNSUPPORTED || status == PO_INTERNAL || status == PO_BAD_INPUT ||
           status == PO_IO; /* a temporary file, a process: the output is not written here */
}

static po_stage_report *report_of(po_run_state *state, const stage *s) {
    po_record *r = state->run.record;
    po_stage_report row = {.name = s->name, .note = ""};
    row.nodes_before = row.nodes_after = po_record_nodes(state->current);
    PO_PUSH(r->arena, r->stages, r->n_stages, r->cap_stages, row);
    return &r->stages[r->n_stages - 1];
}

static po_status run_stage(po_run_state *state, const stage *s) {
    po_ctx *ctx = state->run.ctx;
    po_stage_report *report = report_of(state, s);
    state->run.record->stage = s->name;
    if (!s->run) {
        report->note = "a later version's";
    } else if (s->level > state->run.options->level) {
        report->note = "not part of this level";
    } else if (po_run_skips(&state->run, s->name) &&
               s->run != po_stage_select) { /* which still compares, and only leaves out timing */
        report->note = "skipped as asked for";
    } else {
        double start = po_now();
        po_status status = po_ctx_poll(ctx);
        if (status == PO_OK)
            status = s->run(state);
        report->seconds = po_now() - start;
        report->ran = true;
        report->nodes_after = po_record_nodes(state->current);
        po_log(ctx, "%s: %.3f s, %llu nodes -> %llu", s->name, report->seconds,
               (unsigned long long)report->nodes_before, (unsigned long long)report->nodes_after);
        if (survives(s, status)) {
            report->note = po_arena_printf(state->run.arena, "dropped: %s", ctx->error.message);
            po_record_note(state->run.record, "%s was dropped: %s", s->name, ctx->error.message);
            po_ctx_clear(ctx);
        } else if (status != PO_OK) {
            return status;
        }
    }
    dump(state, s->name);
    return PO_OK;
}

/* What was decided is kept. What was recalled and is not accepted any more is forgotten: *at
 * goes back to the one before split. */
static po_status decided(po_run_state *state, size_t *at) {
    if (!state->recall || !state->recall->form || state->winner != state->original)
        return po_recall_keep(state);
    state->recall = NULL;
    state->search = NULL;
    memset(state->mutated, 0, sizeof state->mutated);
    state->library = NULL;
    state->current = state->split_from;
    while (stages[*at].run != po_stage_split)
        --*at;
    --*at;
    return PO_OK;
}

po_status po_pipeline_run(po_run_state *state) {
    po_ctx *ctx = state->run.ctx;
    steps s = {.state = state, .started = po_now()};
    ctx->step = tell;
    ctx->step_user = &s;
    state->winner = state->original;
    po_status status = PO_OK;
    for (size_t i = 0; i < STAGES && status == PO_OK; i++) {
        if (stages[i].run == po_stage_split && !state->tried_recall) {
            state->tried_recall = true;
            state->split_from = state->current;
            status = po_recall_find(state);
            if (status == PO_OK && !state->recall)
                status = po_budget_settle(state);
            if (status != PO_OK)
                break;
        }
        s.now = &stages[i];
        s.done = 0;
        if (stages[i].level <= state->run.options->level)
            tell(&s, "", 0);
        status = run_stage(state, &stages[i]);
        if (i == 0)
            state->winner = state->original; /* import may have pinned its shapes */
        s.before += stages[i].share;
        if (status == PO_OK && stages[i].run == po_stage_select)
            status = decided(state, &i);
    }
    ctx->step = NULL;
    if (status == PO_CANCELLED || status == PO_TIME_LIMIT) {
        state->run.record->summary.stopped = status;
        po_ctx_clear(ctx);
        ctx->cancel = NULL; /* what is left to do is short */
        ctx->deadline = 0;
        status = PO_OK;
    }
    return status;
}

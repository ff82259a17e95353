/* The stages in their order, and what each hands on to the next. */
#include "pipeline/pipeline.h"

#include "pipeline/budget.h"
#include "pipeline/dump.h"
#include "pipeline/recall.h"
#include "pipeline/search/search.h"
#include "pipeline/variants.h"

/* What the stages have found so far: the result of each, by its name. */
typedef struct way {
    const po_run *run;
    const po_graph *model;
    po_imported imported;
    po_simplified simplified;
    po_recalled recalled;
    const po_search *search; /* of split, mutate, correct; NULL */
    po_kernels kernels;
    po_chosen chosen;
    bool has_chosen;
    po_variant_list variants;
    po_selected selected;
    po_winner exported;
    bool undecided;        /* readings of this way, or of one before it */
    const po_graph *shown; /* by reports and dumps: what the last stage made */
    /* For the log: the graph that was hashed last, and its hash. */
    const po_graph *hashed;
    po_hash hash;
    /* Progress. */
    uint32_t now;   /* the stage under way */
    double before;  /* shares of the stages that are done */
    double started; /* po_now() */
    double done;    /* of this stage: what is looked at again goes back no further */
} way;

/* --- the stages, and where their results go --- */

static po_status import(way *w) {
    po_status status = po_stage_import(w->run, w->model, &w->imported);
    w->shown = w->simplified.graph = w->imported.graph;
    w->exported.graph = w->imported.original;
    return status;
}

static po_status simplify(way *w) {
    po_status status = po_stage_simplify(w->run, &w->imported, &w->simplified);
    w->shown = w->simplified.graph;
    return status;
}

static po_status split(way *w) {
    return po_stage_split(w->run, &w->imported, &w->simplified, w->recalled.recall, &w->search);
}

static po_status mutate(way *w) {
    return po_stage_mutate(w->run, w->search, w->recalled.recall, &w->search);
}

static po_status correct(way *w) {
    return po_stage_correct(w->run, w->search, w->recalled.recall, &w->search);
}

/* For a GPU superopt has asked for it. */
static po_status choose(way *w) {
    if (w->has_chosen)
        return PO_OK;
    w->has_chosen = true;
    return po_stage_choose(w->run, w->search, w->recalled.recall, &w->chosen);
}

/* For a GPU mutants are chosen when the model is there as kernels, and get kernels themselves: they
 * have a part of the kernels' time. */
static po_status superopt_for_gpu(void *user) {
    way *w = user;
    struct po_cuda_forms *forms;
    PO_TRY(po_stage_cuda_model(w->run, &w->simplified, &forms));
    if (forms && !po_run_skips(w->run, "choose"))
        PO_TRY(choose(w));
    return po_stage_cuda(forms, &w->chosen, &w->kernels);
}

static po_status superopt(way *w) {
    po_status status;
    bool cut;
    w->chosen.search = w->search;
    if (w->run->options->cuda) {
        status = po_budget_call(w->run, PO_PART_KERNELS, "the making of kernels was cut short",
                                superopt_for_gpu, w, &cut);
    } else {
        status = po_stage_superopt(w->run, &w->imported, &w->simplified, w->search,
                                   w->recalled.recall, &w->kernels);
        w->search = w->chosen.search = w->kernels.search;
    }
    po_variant_list_begin(&w->variants, &w->imported, &w->simplified, &w->kernels);
    return status;
}

static po_status postopt(way *w) {
    po_status status = po_stage_postopt(w->run, &w->imported, &w->simplified, &w->chosen,
                                        &w->kernels, &w->variants);
    w->shown = w->variants.graph;
    return status;
}

static po_status select_winner(way *w) {
    po_status status =
        po_stage_select(w->run, &w->imported, &w->variants, w->run->budget->size, &w->selected);
    w->shown = w->selected.graph;
    w->exported = w->selected.winner;
    w->undecided |= w->selected.undecided;
    return status;
}

static po_status export(way *w) {
    po_status status = po_stage_export(w->run, &w->imported, &w->selected.winner, &w->exported);
    if (w->exported.graph != w->selected.winner.graph)
        w->shown = w->exported.graph;
    return status;
}

/* --- the list --- */

enum {
    IMPORT,
    SIMPLIFY,
    SPLIT,
    MUTATE,
    CORRECT,
    SUPEROPT,
    CHOOSE,
    POSTOPT,
    SELECT,
    EXPORT,
    STAGES
};

static const struct {
    const char *name;
    po_status (*run)(way *w);
    int level;    /* from which -O level it runs */
    double share; /* of a run's time, roughly, for the progress line */
} stages[STAGES] = {
    [IMPORT] = {"import", import, 0, 0.01},        [SIMPLIFY] = {"simplify", simplify, 1, 0.04},
    [SPLIT] = {"split", split, 2, 0.01},           [MUTATE] = {"mutate", mutate, 2, 0.09},
    [CORRECT] = {"correct", correct, 2, 0.2},      [SUPEROPT] = {"superopt", superopt, 1, 0.1},
    [CHOOSE] = {"choose", choose, 2, 0.05},        [POSTOPT] = {"postopt", postopt, 1, 0.05},
    [SELECT] = {"select", select_winner, 1, 0.43}, [EXPORT] = {"export", export, 1, 0.02},
};

bool po_stage_known(const char *name) {
    for (size_t i = 0; i < STAGES; i++)
        if (strcmp(stages[i].name, name) == 0)
            return true;
    return false;
}

bool po_stage_part_known(const char *name) {
    static const char *const parts[] = {"blind",    "derived", "corrected", "seams",
                                        "combined", "partly",  "usual"};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        if (strcmp(parts[i], name) == 0)
            return true;
    return false;
}

/* --- progress --- */

static void tell(void *user, const char *what, double fraction) {
    way *w = user;
    const po_callbacks *callbacks = w->run->callbacks;
    if (!callbacks || !callbacks->progress)
        return;
    w->done = fraction > 1 ? 1 : fraction > w->done ? fraction : w->done;
    double all = w->before + stages[w->now].share * w->done;
    all = all > 0.99 ? 0.99 : all; /* a run may begin again */
    double spent = po_now() - w->started;
    double left = all > 0.05 ? spent * (1 - all) / all : -1;
    if (w->run->ctx->deadline > 0) {
        double limit = w->run->ctx->deadline - po_now();
        left = left < 0 || left > limit ? (limit > 0 ? limit : 0) : left;
    }
    po_progress progress = {stages[w->now].name, what, all, left};
    callbacks->progress(callbacks->user, &progress);
}

/* --- one stage --- */

static void dump(const way *w, uint32_t stage) {
    const po_search *search = stage >= SPLIT && stage <= CORRECT ? w->search
                              : stage == CHOOSE                  ? w->chosen.search
                                                                 : NULL;
    if (po_dump_is_asked(w->run, stages[stage].name))
        po_dump(w->run, stages[stage].name, w->shown, search,
                stage == SUPEROPT ? w->kernels.programs : NULL);
}

/* What a stage's failure means for the run: true where the run goes on without its change. What is
 * wrong with the input or the options shows in import. */
static bool survives(uint32_t stage, po_status status) {
    if (stage == IMPORT)
        return false;
    return status == PO_UNSUPPORTED || status == PO_INTERNAL || status == PO_BAD_INPUT ||
           status == PO_IO; /* a temporary file, a process: the output is not written here */
}

static po_stage_report *add_report(way *w, const char *name) {
    po_record *r = w->run->record;
    po_stage_report row = {.name = name, .note = ""};
    row.nodes_before = row.nodes_after = po_record_nodes(w->shown);
    PO_PUSH(r->arena, r->stages, r->n_stages, r->cap_stages, row);
    return &r->stages[r->n_stages - 1];
}

/* Of the graph that is shown; where nobody listens, nothing. */
static po_hash hash_shown(way *w) {
    if (w->run->ctx->log && w->hashed != w->shown) {
        w->hashed = w->shown;
        w->hash = po_graph_hash(w->shown);
    }
    return w->hash;
}

/* The stage's line of -v: whether the graph is another, and by what. */
static void log_stage(way *w, const po_stage_report *report, bool same) {
    const po_record *r = w->run->record;
    po_arena *scratch = po_arena_create(w->run->ctx);
    const char *rules = "";
    for (uint32_t i = 0; i < r->n_rewrites; i++)
        if (strcmp(r->rewrites[i].stage, report->name) == 0)
            rules = po_arena_printf(scratch, "%s%s %s %llu", rules, *rules ? "," : ";",
                                    r->rewrites[i].rule, (unsigned long long)r->rewrites[i].count);
    po_log(w->run->ctx, "%s: %.3f s, %llu nodes -> %llu%s%s", report->name, report->seconds,
           (unsigned long long)report->nodes_before, (unsigned long long)report->nodes_after,
           same && !*rules ? ", unchanged" : "", rules);
    po_arena_free(scratch);
}

static po_status run_stage(way *w, uint32_t stage, po_stage_report *report) {
    const po_run *run = w->run;
    po_hash before = hash_shown(w);
    double start = po_now();
    po_status status = po_ctx_poll(run->ctx);
    if (status == PO_OK)
        status = stages[stage].run(w);
    report->seconds = po_now() - start;
    report->ran = true;
    report->nodes_after = po_record_nodes(w->shown);
    log_stage(w, report, po_hash_equal(before, hash_shown(w)));
    if (!survives(stage, status))
        return status;
    report->note = po_arena_printf(run->arena, "dropped: %s", run->ctx->error.message);
    po_record_note(run->record, "%s was dropped: %s", report->name, run->ctx->error.message);
    po_ctx_clear(run->ctx);
    return PO_OK;
}

/* A stage, unless it is skipped, or not part of this level. */
static po_status step(way *w, uint32_t stage) {
    const po_run *run = w->run;
    const char *name = stages[stage].name;
    bool in_level = stages[stage].level <= run->options->level;
    w->now = stage;
    w->done = 0;
    if (in_level)
        tell(w, "", 0);
    po_stage_report *report = add_report(w, name);
    run->record->stage = name;
    if (!in_level)
        report->note = "not part of this level";
    else if (po_run_skips(run, name) && stage != SELECT) /* which only leaves out timing */
        report->note = "skipped as asked for";
    else
        PO_TRY(run_stage(w, stage, report));
    w->before += stages[stage].share;
    dump(w, stage);
    return PO_OK;
}

/* --- all of them --- */

/* From split to select, with what is recalled, if anything is. */
static po_status look_for_winner(way *w) {
    w->search = NULL;
    w->kernels = (po_kernels){0};
    w->chosen = (po_chosen){.recall = w->recalled.recall};
    w->has_chosen = false;
    w->selected = (po_selected){.winner = {.graph = w->imported.original}};
    po_variant_list_begin(&w->variants, &w->imported, &w->simplified, &w->kernels);
    w->shown = w->simplified.graph;
    for (uint32_t stage = SPLIT; stage <= SELECT; stage++)
        PO_TRY(step(w, stage));
    w->undecided |= w->chosen.search && w->chosen.search->undecided;
    return PO_OK;
}

static const char *why_no_kernels(const way *w) {
    return po_kernels_why_none(w->run, w->imported.original, w->chosen.recall, &w->kernels,
                               w->exported.graph);
}

static po_status go(way *w) {
    PO_TRY(step(w, IMPORT));
    PO_TRY(step(w, SIMPLIFY));
    PO_TRY(po_recall_find(w->run, w->imported.original, &w->recalled));
    if (!w->recalled.recall)
        PO_TRY(po_budget_settle(w->run, w->imported.original));
    PO_TRY(look_for_winner(w));
    const po_recall *recall = w->chosen.recall;
    if (recall && recall->form && w->selected.winner.graph == w->imported.original) {
        w->recalled.recall = NULL; /* it is not accepted any more: once more without */
        PO_TRY(look_for_winner(w));
    }
    po_recall_keep(w->run, &w->recalled,
                   &(po_decided){.chosen = &w->chosen,
                                 .changed = w->selected.winner.graph != w->imported.original,
                                 .undecided = w->undecided,
                                 .kernels_of_mutants = w->kernels.of_mutants,
                                 .no_kernels = why_no_kernels(w)});
    return step(w, EXPORT);
}

po_status po_pipeline_run(const po_run *run, const po_graph *model, po_optimised *out) {
    po_ctx *ctx = run->ctx;
    way *w = PO_NEW(run->files, way);
    w->run = run;
    w->model = w->shown = w->imported.original = w->exported.graph = model;
    w->started = po_now();
    ctx->step = tell;
    ctx->step_user = w;
    po_status status = go(w);
    ctx->step = NULL;
    if (status == PO_CANCELLED || status == PO_TIME_LIMIT) {
        run->record->summary.stopped = status;
        po_ctx_clear(ctx);
        ctx->cancel = NULL; /* what is left to do is short */
        ctx->deadline = 0;
        status = PO_OK;
    }
    *out = (po_optimised){.original = w->imported.original,
                          .winner = w->exported,
                          .library = w->kernels.library,
                          .no_kernels = why_no_kernels(w)};
    return status;
}

/* Which variant, if any, takes the original's place. All are timed together first; the fastest then
 * go through the full protocol (select/select.h), best first, until one is accepted. */
#include "codegen/delivery/library.h"
#include "cost/roofline.h"
#include "import/import.h"
#include "pipeline/budget.h"
#include "pipeline/open_batch.h"
#include "pipeline/pin.h"
#include "pipeline/proving.h"
#include "pipeline/select/selecting.h"
#include "select/select.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* Above MANY_NODES outputs are compared by the reference first; above HUGE the runtime takes
 * minutes to load the model, and more than in proportion. */
enum { MANY_NODES = 5000, HUGE_NODES = 20000 };
/* The float64 reference would not be done within its time. */
#define REFERENCE_FLOPS 3e10
#define HEAVY_WEIGHTS   ((uint64_t)64 << 20)
enum { MOST_TRIED = 3, MOST_TRIED_ELSEWHERE = 6 };
static const double widest = 1.5;       /* of an interval that is worth telling */
static const double worth_trying = 1.0; /* a first reading below this is not followed up */

po_candidate_report *po_selecting_row(selecting *s, uint32_t i) {
    const po_variant *v = &s->list.variants[i];
    po_candidate_report *row = po_record_candidate(s->run->record, v->name);
    row->nodes = po_record_nodes(v->graph);
    return row;
}

void po_selecting_decide(selecting *s, po_candidate_report *row, const char *format, ...) {
    char text[PO_MESSAGE_MAX];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    row->verdict = po_arena_strdup(s->run->arena, text);
}

/* --- the protocol --- */

static void fill_row(po_candidate_report *row, const po_verdict *v) {
    const po_reading *r = po_verdict_shown(v);
    if (r) {
        row->measured = true;
        row->ms = 1000 * r->candidate;
        row->ratio = r->gain;
        row->low = r->low;
        row->high = r->high;
    }
    row->compared = v->verify.evidence != PO_EVIDENCE_NONE;
    row->error = v->verify.max_rel;
}

/* po_summary.latency_by of so many threads. */
static const char *clock_words(const selecting *s, uint32_t by) {
    char clock[PO_TIMING_CLOCK];
    if (by >= s->ctx->threads)
        return "";
    return po_arena_strdup(s->run->record->arena, po_timing_clock(s->ctx->threads, by, clock));
}

static void fill_clock(selecting *s, uint32_t by) {
    po_summary *sum = &s->run->record->summary;
    sum->latency_threads = by;
    sum->latency_by = clock_words(s, by);
}

/* What the closing table shows of a reading; ratio 1 where the original stays. */
static void fill_summary(selecting *s, const po_verdict *v, bool accepted) {
    po_summary *sum = &s->run->record->summary;
    const po_reading *r = po_verdict_shown(v);
    if (!r || (sum->measured && !accepted))
        return;
    sum->measured = true;
    sum->ms_before = 1000 * r->original;
    sum->ms_after = 1000 * (accepted ? r->candidate : r->original);
    sum->ratio = accepted ? r->gain : 1;
    sum->ratio_low = accepted ? r->low : 1;
    sum->ratio_high = accepted ? r->high : 1;
    fill_clock(s, r->by);
}

static bool shows_size(const po_verdict *v, const po_reading *r) {
    return r == po_verdict_shown(v) || r->kind == PO_READING_SIZE;
}

/* What was read at each assignment of lengths, where there are several. */
static void tell_sizes(selecting *s, const po_verdict *v) {
    static const char kind[] = "normal ";
    po_summary *sum = &s->run->record->summary;
    po_arena *arena = s->run->record->arena;
    po_size_report *list = PO_NEW_N(arena, po_size_report, PO_READINGS_MAX);
    uint32_t n = 0;
    for (uint32_t i = 0; i < v->n_readings; i++) {
        const po_reading *r = &v->readings[i];
        if (!shows_size(v, r))
            continue;
        bool prefixed = strncmp(r->inputs, kind, sizeof kind - 1) == 0;
        list[n++] =
            (po_size_report){po_arena_strdup(arena, r->inputs + (prefixed ? sizeof kind - 1 : 0)),
                             1000 * r->original,
                             1000 * r->candidate,
                             r->gain,
                             r->low,
                             r->high,
                             r->by,
                             clock_words(s, r->by)};
    }
    if (n > 1) {
        sum->sizes = list;
        sum->n_sizes = n;
    }
}

static void take(selecting *s, uint32_t i, po_candidate_report *row,
                 const po_verify_report *report) {
    po_summary *sum = &s->run->record->summary;
    row->chosen = true;
    s->out->winner.graph = s->out->graph = s->list.variants[i].graph;
    s->out->winner.path = s->written[i].whole ? s->written[i].path : NULL;
    sum->winner = row->name;
    po_selecting_tell_kernels(s, i);
    if (s->milder[i])
        po_record_note(s->run->record, "%s", s->milder[i]);
    sum->compared = report->evidence != PO_EVIDENCE_NONE;
    sum->error = report->max_rel;
    sum->error_reference = report->own_error;
    sum->inputs = report->sets;
    sum->inputs_fresh = report->fresh;
    sum->inputs_excused = report->excused;
    sum->error_excused = report->excused_rel;
    if (report->empty_refused)
        po_record_note(s->run->record,
                       "the runtime refuses a batch of 0 samples, which it takes in the original");
    if (report->excused > 0)
        po_record_note(s->run->record,
                       "on %u of %u sets of inputs it differs by up to %.1e, where the original's "
                       "own error against float64 is an eighth of that or more",
                       report->excused, report->sets, report->excused_rel);
}

/* Where a thread count was named, what others read decides nothing: it is told. */
static void tell_other_threads(const selecting *s, const po_verdict *v) {
    for (uint32_t i = 0; i < v->n_readings; i++) {
        const po_reading *r = &v->readings[i];
        if (r->kind != PO_READING_THREADS || s->run->options->threads == 0)
            continue;
        const char *plural = r->threads == 1 ? "" : "s";
        if (r->high > widest * r->low)
            po_record_note(s->run->record,
                           "with %u thread%s: not to be told beside what else is running",
                           r->threads, plural);
        else
            po_record_note(s->run->record, "with %u thread%s: %.2fx as fast (%.2f to %.2f)%s",
                           r->threads, plural, r->gain, r->low, r->high,
                           r->gain < 1 ? "; without --threads nothing is written that is slower "
                                         "with one thread or with all"
                                       : "");
    }
}

static po_status try_variant(selecting *s, uint32_t i, po_verdict *v) {
    po_import_rest(s->imported->original->model);
    po_candidate_report *row = po_selecting_row(s, i);
    po_select_spec spec = {.cost = s->cost,
                           .kernels = po_selecting_kernels(s, i),
                           .original = s->original_path,
                           .candidate = s->written[i].path,
                           .files = &s->files,
                           .graph = s->original,
                           .candidate_graph = s->list.variants[i].graph,
                           .original_hash = s->original_hash,
                           .candidate_hash = s->written[i].hash,
                           .checks = s->imported->checks,
                           .n_checks = s->imported->n_checks,
                           .meant = s->run->options->sizes,
                           .n_meant = s->run->options->n_sizes,
                           .threads = s->ctx->threads,
                           .these_threads = s->run->options->threads > 0,
                           .tolerance = s->run->options->tolerance,
                           .verify_seconds = s->heavy || s->run->budget->heavy ? 10 : 0,
                           .loads = s->run->budget->loads && !po_batch_has_open_dims(s->original),
                           .no_reference = s->flops > REFERENCE_FLOPS,
                           .until = po_budget_end(s->run, PO_PART_SELECT),
                           .patience = po_budget_grace(s->run, PO_PART_SELECT),
                           .first = s->read[i] ? &s->rank[i] : NULL,
                           .size = s->size,
                           .seed = 1};
    PO_TRY(po_select(s->ctx, &spec, v));
    s->busy |= po_verdict_disturbed(v);
    fill_row(row, v);
    po_selecting_judge(s, row, &v->verify);
    bool accepted = po_verdict_accepted(v);
    po_selecting_decide(s, row, "%s%s", v->reason, v->cached ? " (from the cache)" : "");
    if (accepted)
        PO_TRY(po_selecting_elsewhere(s, i, &accepted));
    if (!accepted && po_verdict_accepted(v))
        v->code = PO_VERDICT_WRONG;
    fill_summary(s, v, accepted);
    if (accepted) {
        take(s, i, row, &v->verify);
        tell_other_threads(s, v);
        tell_sizes(s, v);
        if (po_selecting_kernels(s, i))
            PO_TRY(po_select_fallback(s, i, s->size));
    }
    return PO_OK;
}

/* The original cannot be compared with anything: the shapes asked for may be why. */
static po_status original_fails(selecting *s, const char *reason) {
    if (s->run->options->n_pins > 0)
        return po_fail(s->ctx, PO_BAD_USE, "with these input shapes the model cannot be run: %s",
                       reason);
    po_record_note(s->run->record, "the original stays: nothing can be compared with it (%s)",
                   reason);
    return PO_OK;
}

/* Where the original stays its latency is still worth telling. */
static void fill_from_ranking(selecting *s) {
    po_summary *sum = &s->run->record->summary;
    const po_timing *t = s->n_order > 0 ? &s->rank[s->order[0]] : NULL;
    if (sum->measured || !t || !(t->seconds > 0))
        return;
    sum->measured = true;
    sum->ms_before = sum->ms_after = 1000 * t->seconds * t->gain;
    sum->ratio = sum->ratio_low = sum->ratio_high = 1;
    fill_clock(s, t->threads);
}

/* The best of the first readings is no gain, and neither is what follows it. */
static void tell_slower(selecting *s, uint32_t i) {
    const po_timing *t = &s->rank[i];
    po_candidate_report *row = po_selecting_row(s, i);
    bool by_one = t->threads < s->ctx->threads;
    char clock[PO_TIMING_CLOCK];
    s->busy |= po_timing_disturbed(t->waited) && (by_one || t->high > 1);
    if (t->high > widest * t->low)
        po_selecting_decide(s, row,
                            "the machine was too busy to tell: %.2fx, between %.2f and %.2f, in "
                            "the first reading",
                            t->gain, t->low, t->high);
    else
        po_selecting_decide(s, row,
                            "no gain in the first reading: %.3fx, between %.3f and %.3f%s%s",
                            t->gain, t->low, t->high, by_one ? "; " : "",
                            by_one ? po_timing_clock(s->ctx->threads, t->threads, clock) : "");
}

/* The best in the order that has had no turn; PO_NONE: there is none. */
static uint32_t next_of(const selecting *s) {
    for (uint32_t k = 0; k < s->n_order; k++)
        if (!s->done[s->order[k]])
            return s->order[k];
    return PO_NONE;
}

/* Makes what rounds less than one that is beyond the limit, and reads it. */
static po_status follow_milder(selecting *s, uint32_t i, const po_verify_report *r,
                               uint32_t *most) {
    uint32_t number;
    PO_TRY(po_selecting_milder(s, i, r, &number));
    if (number == PO_NONE)
        return PO_OK;
    ++*most;
    return s->rank[number].seconds > 0 ? PO_OK : po_selecting_read(s, number);
}

static po_status by_protocol(void *user) {
    selecting *s = user;
    double end = po_budget_end(s->run, PO_PART_SELECT);
    uint32_t most = MOST_TRIED, tried = 0, i;
    for (; tried < most && (i = next_of(s)) != PO_NONE; tried++) {
        if (tried > 0 && end > 0 && po_now() > end)
            return po_fail(s->ctx, PO_TIME_LIMIT, "the time for comparing was up");
        bool ranked = s->rank[i].seconds > 0;
        if (ranked && s->rank[i].gain < worth_trying) {
            tell_slower(s, i);
            break;
        }
        po_step(s->ctx, 0.5 + 0.5 * tried / most, "comparing and confirming '%s'",
                s->list.variants[i].name);
        po_verdict v;
        po_selecting_decide(s, po_selecting_row(s, i), "not compared and confirmed in time");
        s->done[i] = true;
        po_status status = try_variant(s, i, &v);
        if (status == PO_RUNTIME) { /* it stops the comparison: the next one may not */
            po_selecting_fault(s, po_selecting_row(s, i), s->ctx->error.message, true);
            po_ctx_clear(s->ctx);
            continue;
        }
        PO_TRY(status);
        if (po_verdict_accepted(&v))
            return PO_OK;
        if (v.code == PO_VERDICT_UNTESTED)
            return original_fails(s, v.reason);
        if (v.code == PO_VERDICT_SLOWER_ELSEWHERE ||
            (v.code == PO_VERDICT_WRONG && v.verify.fresh > 0))
            most = most < MOST_TRIED_ELSEWHERE ? MOST_TRIED_ELSEWHERE : most;
        po_log(s->ctx, "%s: %s", s->list.variants[i].name, v.reason);
        PO_TRY(follow_milder(s, i, &v.verify, &most));
    }
    return PO_OK;
}

static po_status by_measurement(selecting *s) {
    bool cut;
    PO_TRY(po_cost_need_runtime(s->ctx, s->cost));
    if (!s->chosen_before)
        PO_TRY(po_selecting_rank(s));
    /* Each step is planned to end with the part; what is nearly done may take the proof's time, for
     * a gain that is found out and compared is worth more than its proof. */
    PO_TRY(po_budget_call(s->run, PO_PART_PROOF, "comparing and confirming was cut short",
                          by_protocol, s, &cut));
    s->out->undecided |= cut || s->busy;
    if (s->busy && s->out->winner.graph == s->imported->original)
        po_record_note(s->run->record,
                       "other programs kept the processors while candidates were timed: nothing of "
                       "that is kept in the cache, and a run on a quiet machine may gain");
    fill_from_ranking(s);
    return PO_OK;
}

po_status po_selecting_compare(selecting *s, uint32_t i, const char *why, po_verify_report *report,
                               bool *untested, bool *taken) {
    po_candidate_report *row = po_selecting_row(s, i);
    po_verify_spec spec = po_selecting_comparison(s, i, po_selecting_kernels(s, i));
    spec.reference_first = row->nodes > MANY_NODES;
    po_verify_report r;
    *taken = false;
    s->done[i] = true;
    po_step(s->ctx, (double)i / s->list.n, "comparing '%s'", row->name);
    PO_TRY(po_verify(s->ctx, &spec, &r));
    row->compared = r.evidence != PO_EVIDENCE_NONE;
    row->error = r.max_rel;
    po_selecting_judge(s, row, &r);
    *untested = !row->compared;
    if (*untested)
        return original_fails(s, r.why);
    po_selecting_decide(s, row, "%s", r.equal ? why : r.why);
    if (r.equal)
        PO_TRY(po_selecting_elsewhere(s, i, taken));
    if (*taken)
        take(s, i, row, &r);
    *report = r;
    return PO_OK;
}

/* --- preparing --- */

static void name_machine(selecting *s) {
    const po_machine *m = &s->cost->machine;
    po_summary *sum = &s->run->record->summary;
    sum->cpu = po_arena_strdup(s->run->arena, m->cpu);
    if (m->has_runtime)
        sum->runtime = po_arena_printf(s->run->arena, "ONNX Runtime %s", m->runtime);
}

static po_status prepare(selecting *s) {
    PO_TRY(po_run_cost(s->run, &s->cost));
    name_machine(s);
    po_graph *typed;
    PO_TRY(po_pin_inputs(s->ctx, s->imported->original, NULL, 0, &typed));
    po_run_hold(s->run, typed);
    s->original = typed;
    s->heavy = po_record_weights(typed) > HEAVY_WEIGHTS;
    po_estimate estimate;
    po_roofline_graph(typed, &(po_rates){.flops = 1, .bytes = 1}, 1, &estimate);
    s->flops = estimate.flops;
    po_candidate_store_init(&s->store, s->arena);
    PO_TRY(po_candidate_original(s->ctx, &s->store, s->imported->original, &s->original_path));
    PO_TRY(po_export_hash(s->ctx, s->imported->original, &s->original_hash));
    PO_TRY(po_selecting_write(s, 0));
    return PO_OK;
}

static po_status choose(selecting *s) {
    if (s->run->options->cuda)
        return po_select_for_gpu(s);
    if (s->run->options->model_cost)
        return po_select_by_model(s, "compares equal; taken unmeasured");
    uint64_t nodes = po_record_nodes(s->imported->original);
    if (nodes > HUGE_NODES && !s->run->options->measured_cost) {
        if (!s->chosen_before)
            po_record_note(s->run->record,
                           "estimated, not timed: the runtime takes minutes to load %llu nodes; "
                           "--cost ort times them all the same",
                           (unsigned long long)nodes);
        return po_select_by_model(s, "compares equal; too large a graph to be timed by default");
    }
    if (po_run_skips(s->run, "select"))
        return po_select_by_model(s, "compares equal; not timed, as asked for");
    return by_measurement(s);
}

/* What is chosen must not be disproved: the next one then has its turn. Each variant has one. */
static po_status select_winner(selecting *s) {
    const po_graph *original = s->imported->original;
    po_winner *winner = &s->out->winner;
    PO_TRY(prepare(s));
    for (;;) {
        PO_TRY(choose(s));
        s->chosen_before = true;
        if (winner->graph == original)
            return PO_OK;
        po_status status = po_proving_winner(s->run, original, winner);
        s->out->graph = winner->graph;
        PO_TRY(status);
        if (winner->proof.differ != PO_DIFFER_CERTAIN)
            return PO_OK;
        po_selecting_give_up(s);
    }
}

/* What did not win is not looked at again, and may hold weights of its own. */
static void drop_losers(const selecting *s) {
    for (uint32_t i = 0; i < s->list.n; i++) {
        const po_graph *graph = s->list.variants[i].graph;
        if (graph != s->out->winner.graph && graph != s->out->graph)
            po_graph_free(graph);
    }
}

po_status po_stage_select(const po_run *run, const po_imported *imported,
                          const po_variant_list *variants, uint32_t size, po_selected *out) {
    *out = (po_selected){.winner = {.graph = imported->original}, .graph = variants->graph};
    if (variants->n == 0)
        return PO_OK;
    selecting *s = PO_NEW(run->files, selecting);
    s->run = run;
    s->ctx = run->ctx;
    s->arena = run->files;
    s->imported = imported;
    s->list = *variants;
    if (variants->chooser)
        s->list.chooser = po_arena_memdup(run->files, variants->chooser, sizeof *variants->chooser);
    s->size = size;
    s->out = out;
    po_status status = select_winner(s);
    drop_losers(s);
    po_graph_free(s->original);
    return status;
}

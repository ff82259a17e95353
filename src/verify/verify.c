/* Comparisons in processes of their own, and what their reports come to. */
#include "verify/verify_internal.h"

#include "ops/op.h"

#include <math.h>
#include <stdio.h>

static const double default_tolerance = 1e-4, default_seconds = 20;
/* Past its aim by this many seconds a child counts as hung. */
static const double patience = 900, reference_patience = 60, ladder_patience = 8;

static void say(po_verify_report *report, const char *text) {
    snprintf(report->why, sizeof report->why, "%.*s", PO_REPORT_TEXT - 1, text);
}

void po_verify_note(po_verify_report *report, const char *output, const char *set,
                    const po_difference *d) {
    report->elements += d->elements;
    report->identical = report->identical && d->identical;
    if (d->excused && d->mismatch == PO_MATCH) {
        report->excused_rel = fmax(report->excused_rel, d->max_rel);
        return;
    }
    bool first_bad = d->mismatch != PO_MATCH && report->equal;
    bool worse = report->equal && d->max_rel > report->max_rel;
    if (first_bad || worse || (report->equal && report->index < 0 && d->index >= 0)) {
        snprintf(report->output, sizeof report->output, "%s", output);
        snprintf(report->set, sizeof report->set, "%s", set);
        report->index = d->index;
        report->expected = d->expected;
        report->got = d->got;
    }
    report->max_abs = fmax(report->max_abs, d->max_abs);
    report->max_rel = fmax(report->max_rel, d->max_rel);
    if (!first_bad)
        return;
    report->equal = 0;
    if (d->index < 0)
        snprintf(report->why, sizeof report->why, "output '%.80s': %s (inputs: %.90s)", output,
                 po_mismatch_text(d->mismatch), set);
    else
        snprintf(report->why, sizeof report->why,
                 "output '%.80s'[%lld]: %s: %.9g, expected %.9g, %lld of %lld elements "
                 "(inputs: %.90s)",
                 output, (long long)d->index, po_mismatch_text(d->mismatch), d->got, d->expected,
                 (long long)d->bad, (long long)d->elements, set);
}

void po_verify_join(po_verify_report *report, const po_verify_report *more) {
    bool worse = more->max_rel > report->max_rel || (report->equal && !more->equal);
    report->equal = report->equal && (more->equal || more->evidence == PO_EVIDENCE_NONE);
    report->identical = report->identical && more->identical;
    report->sets += more->sets;
    report->fresh += more->fresh;
    report->excused += more->excused;
    report->empty_refused |= more->empty_refused;
    report->excused_rel = fmax(report->excused_rel, more->excused_rel);
    report->elements += more->elements;
    report->ties += more->ties;
    report->max_abs = fmax(report->max_abs, more->max_abs);
    report->max_rel = fmax(report->max_rel, more->max_rel);
    report->seconds += more->seconds;
    if (!worse)
        return;
    memcpy(report->output, more->output, sizeof report->output);
    memcpy(report->set, more->set, sizeof report->set);
    memcpy(report->why, more->why, sizeof report->why);
    report->index = more->index;
    report->expected = more->expected;
    report->got = more->got;
}

po_status po_verify_check_feed(po_ctx *ctx, po_arena *arena, const po_graph *graph,
                               const po_check_set *check, po_feed *feed) {
    const char **names = PO_NEW_N(arena, const char *, graph->n_inputs);
    uint32_t n = 0;
    for (uint32_t i = 0; i < graph->n_inputs; i++) {
        const po_value *value = &graph->values[graph->inputs[i]];
        if (!value->constant && !value->is_initializer)
            names[n++] = value->name;
    }
    if (n != check->n)
        return po_fail(ctx, PO_BAD_INPUT, "%s: %u inputs (the model has %u)", check->name, check->n,
                       n);
    *feed = (po_feed){n, names, check->data};
    return PO_OK;
}

/* Follows operators that only move data back to where the values come from. */
static bool bounded_by_one(const po_graph *graph, po_value_id value, uint32_t depth) {
    const po_node *node = po_graph_producer(graph, value);
    if (!node || depth == 0)
        return false;
    if (po_op_has(node->op, PO_OPF_BOUNDED))
        return true;
    if (!po_op_has(node->op, PO_OPF_MOVES_DATA) || node->n_in == 0)
        return false;
    uint32_t n = po_op_row_of(node->op)->max_in < 0 ? node->n_in : 1; /* all are data, or one */
    for (uint32_t i = 0; i < n; i++)
        if (node->in[i] == PO_NONE || !bounded_by_one(graph, node->in[i], depth - 1))
            return false;
    return true;
}

double po_natural_scale(const po_graph *graph, const char *output) {
    for (uint32_t i = 0; i < graph->n_outputs; i++)
        if (strcmp(graph->values[graph->outputs[i]].name, output) == 0)
            return bounded_by_one(graph, graph->outputs[i], 12) ? 1 : 0;
    return 0;
}

/* The child's last word. False where there was none. */
static bool last_mark(const po_bytes *data, po_verify_mark *mark) {
    if (data->size < sizeof *mark)
        return false;
    size_t whole = data->size / sizeof *mark;
    memcpy(mark, data->data + (whole - 1) * sizeof *mark, sizeof *mark);
    return true;
}

static bool must_stop(po_status status) {
    return status == PO_CANCELLED || status == PO_TIME_LIMIT || status == PO_NO_MEMORY ||
           status == PO_INTERNAL;
}

/* Runs one child function and takes over its report, also where it ended badly. */
static po_status run_child(po_ctx *ctx, po_arena *arena, const char *what, double seconds,
                           po_child_fn fn, po_verify_job *job, po_verify_report *report,
                           po_verify_stage *stage) {
    po_bytes data = {NULL, 0};
    po_verify_mark mark;
    po_status status = po_isolate(ctx, arena, what, seconds, fn, job, &data);
    if (must_stop(status))
        return status;
    *stage = PO_STAGE_START;
    if (last_mark(&data, &mark)) {
        *report = mark.report;
        *stage = (po_verify_stage)mark.stage;
    }
    if (status == PO_OK)
        return PO_OK;
    if (*stage == PO_STAGE_DONE) { /* of an empty batch */
        po_ctx_clear(ctx);
        return PO_OK;
    }
    /* The text must not be kept in ctx: the run goes on. */
    char text[PO_MESSAGE_MAX];
    snprintf(text, sizeof text, "%s", ctx->error.message);
    po_ctx_clear(ctx);
    if (*stage == PO_STAGE_LOAD_CANDIDATE || *stage == PO_STAGE_RUN_CANDIDATE) {
        report->equal = 0;
        report->refused = 1;
        report->evidence = PO_EVIDENCE_RUNTIME;
        snprintf(report->why, sizeof report->why, "the candidate: %.340s", text);
    } else if (report->sets == 0) {
        report->evidence = PO_EVIDENCE_NONE;
        report->equal = 0;
        say(report, text);
    } else {
        /* What was being judged then had shown a difference, or was not judged. */
        if (*stage == PO_STAGE_COMPARE && report->evidence == PO_EVIDENCE_RUNTIME)
            report->equal = 0;
        snprintf(report->why, sizeof report->why, "after %u sets: %.340s", report->sets, text);
    }
    return PO_OK;
}

/* Compares by the reference; the report stays as it is where that gives no answer. */
static po_status ask_reference(po_ctx *ctx, po_arena *arena, po_verify_job *job,
                               po_verify_report *report) {
    po_verify_report by_reference = *report;
    po_verify_stage stage;
    PO_TRY(run_child(ctx, arena, "comparing by the reference", reference_patience,
                     po_verify_by_reference, job, &by_reference, &stage));
    if (by_reference.sets > 0)
        *report = by_reference;
    return PO_OK;
}

static po_status verify(po_ctx *ctx, po_arena *arena, const po_verify_spec *spec,
                        po_verify_report *report) {
    po_inputs *plan = NULL;
    PO_TRY(po_inputs_plan(ctx, arena, spec->graph, spec->candidate_graph, &plan));
    PO_TRY(po_inputs_want(ctx, arena, plan, spec->meant, spec->n_meant));
    po_verify_job job = {spec, plan};
    po_verify_stage stage;
    if (spec->reference_first && spec->candidate_graph) {
        PO_TRY(ask_reference(ctx, arena, &job, report));
        if (report->sets > 0)
            return PO_OK;
    }
    PO_TRY(run_child(ctx, arena, "comparing", spec->seconds + patience, po_verify_run, &job, report,
                     &stage));
    if (report->evidence == PO_EVIDENCE_NONE && stage != PO_STAGE_DONE &&
        spec->candidate_graph != NULL && report->sets == 0 && !spec->reference_first)
        PO_TRY(ask_reference(ctx, arena, &job, report));
    if (spec->ladder && report->equal && report->evidence == PO_EVIDENCE_RUNTIME) {
        po_verify_report ladder = *report;
        PO_TRY(run_child(ctx, arena, "comparing with float64", ladder_patience, po_verify_ladder,
                         &job, &ladder, &stage));
        if (stage == PO_STAGE_DONE) {
            report->own_error = ladder.own_error;
            report->candidate_error = ladder.candidate_error;
        }
    }
    return PO_OK;
}

po_status po_verify(po_ctx *ctx, const po_verify_spec *given, po_verify_report *report) {
    po_verify_spec spec = *given;
    if (!(spec.tolerance > 0))
        spec.tolerance = default_tolerance;
    if (!(spec.seconds > 0))
        spec.seconds = default_seconds;
    memset(report, 0, sizeof *report);
    report->tolerance = spec.tolerance;
    report->index = -1;
    report->own_error = report->candidate_error = -1;
    double start = po_now();
    po_arena *arena = po_arena_create(ctx);
    po_status status = verify(ctx, arena, &spec, report);
    po_arena_free(arena);
    report->seconds = po_now() - start;
    return status;
}

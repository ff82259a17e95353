/* The float64 reference of the operators in the runtime's place, and beside it. */
#include "verify/verify_internal.h"

#include "cost/ort/ort.h"
#include "ops/op.h"

#include <math.h>
#include <stdio.h>

static void send(po_reply *reply, const po_verify_report *report, po_verify_stage stage) {
    po_verify_mark m;
    memset(&m, 0, sizeof m);
    m.stage = (int32_t)stage;
    m.report = *report;
    po_reply_add(reply, &m, sizeof m);
}

po_status po_verify_by_reference(po_ctx *ctx, po_arena *arena, po_reply *reply, void *user) {
    const po_verify_job *job = user;
    const po_verify_spec *spec = job->spec;
    const po_graph *a = spec->graph, *b = spec->candidate_graph;
    po_verify_report report;
    memset(&report, 0, sizeof report);
    report.tolerance = spec->tolerance;
    report.index = -1;
    report.own_error = report.candidate_error = -1;
    report.evidence = PO_EVIDENCE_REFERENCE;
    report.equal = report.identical = 1;
    if (a->n_outputs != b->n_outputs)
        return po_fail(ctx, PO_UNSUPPORTED, "the numbers of outputs differ");
    uint32_t sizes = po_inputs_sizes(job->plan) < 3 ? po_inputs_sizes(job->plan) : 3;
    for (uint32_t k = 0; k < spec->n_checks + sizes && report.equal; k++) {
        po_feed feed;
        const char *set;
        if (k < spec->n_checks) {
            set = spec->checks[k].name;
            PO_TRY(po_verify_check_feed(ctx, arena, a, &spec->checks[k], &feed));
        } else {
            uint32_t size = k - spec->n_checks;
            set = po_inputs_describe(arena, job->plan, size, PO_INPUTS_NORMAL);
            PO_TRY(
                po_inputs_make(ctx, arena, job->plan, size, PO_INPUTS_NORMAL, spec->seed, &feed));
        }
        po_array **expected = NULL, **got = NULL;
        PO_TRY(po_verify_evaluate(ctx, arena, a, &feed, true, &expected));
        PO_TRY(po_verify_evaluate(ctx, arena, b, &feed, true, &got));
        for (uint32_t i = 0; i < a->n_outputs; i++) {
            po_tensor *x = NULL, *y = NULL;
            PO_TRY(po_array_to_tensor(ctx, arena, expected[i], &x));
            PO_TRY(po_array_to_tensor(ctx, arena, got[i], &y));
            po_datum dx = {PO_TYPE_TENSOR, x, 0, NULL}, dy = {PO_TYPE_TENSOR, y, 0, NULL};
            po_compare_rule rule = {.tolerance = spec->tolerance};
            po_difference d;
            po_compare(&dx, &dy, &rule, &d);
            po_verify_note(&report, a->values[a->outputs[i]].name, set, &d);
        }
        report.sets++;
        report.sizes = k < spec->n_checks ? 0 : k - spec->n_checks + 1;
        send(reply, &report, PO_STAGE_COMPARE);
    }
    send(reply, &report, PO_STAGE_DONE);
    return PO_OK;
}

/* --- the ladder: errors against float64 --- */

static po_status own_error(po_ctx *ctx, po_arena *arena, po_ort *ort, const po_verify_spec *spec,
                           const char *path, const char *kernels, const po_feed *feed,
                           po_array *const *exact, double *worst) {
    po_session *session = NULL;
    po_session_options options = {
        .deterministic = true, .kernels = kernels, .isa = spec->isa, .files = spec->files};
    const po_datum *inputs = NULL, *outputs = NULL;
    po_ort_run *run = NULL;
    PO_TRY(po_session_open(ctx, arena, ort, path, &options, &session));
    PO_TRY(po_feed_order(ctx, arena, session, feed, &inputs));
    PO_TRY(po_ort_run_prepare(ctx, session, inputs, &run));
    PO_TRY(po_ort_run_repeat(ctx, run, 1));
    PO_TRY(po_ort_run_outputs(ctx, arena, run, &outputs));
    uint32_t n;
    const po_port *names = po_session_outputs(session, &n);
    *worst = -1;
    for (uint32_t i = 0; i < n; i++) {
        if (outputs[i].kind != PO_TYPE_TENSOR || !exact[i]->f)
            continue;
        po_tensor reference = {PO_F64,
                               exact[i]->rank,
                               exact[i]->dims,
                               exact[i]->count,
                               exact[i]->f,
                               sizeof(double) * (size_t)exact[i]->count,
                               NULL};
        po_compare_rule rule = {.tolerance = HUGE_VAL,
                                .natural = po_natural_scale(spec->graph, names[i].name)};
        po_difference d;
        po_compare_reference(&reference, outputs[i].tensor, &rule, &d);
        if (d.mismatch == PO_MATCH)
            *worst = fmax(*worst, d.max_rel);
    }
    po_ort_run_free(run);
    return PO_OK;
}

po_status po_verify_ladder(po_ctx *ctx, po_arena *arena, po_reply *reply, void *user) {
    const po_verify_job *job = user;
    const po_verify_spec *spec = job->spec;
    po_verify_report report;
    memset(&report, 0, sizeof report);
    send(reply, &report, PO_STAGE_START);
    po_feed feed;
    PO_TRY(po_inputs_make(ctx, arena, job->plan, 0, PO_INPUTS_NORMAL, spec->seed, &feed));
    po_array **exact = NULL;
    PO_TRY(po_verify_evaluate(ctx, arena, spec->graph, &feed, false, &exact));
    po_ort *ort = NULL;
    PO_TRY(po_ort_open(ctx, arena, &(po_ort_options){spec->library, PO_VERIFY_THREADS}, &ort));
    PO_TRY(own_error(ctx, arena, ort, spec, spec->original, NULL, &feed, exact, &report.own_error));
    PO_TRY(own_error(ctx, arena, ort, spec, spec->candidate, spec->kernels, &feed, exact,
                     &report.candidate_error));
    send(reply, &report, PO_STAGE_DONE);
    return PO_OK;
}

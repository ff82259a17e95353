/* The child that runs both models and compares. */
#include "verify/verify_private.h"

#include "cost/ort.h"
#include "ops/op.h"

#include <math.h>
#include <stdio.h>

enum { WANTED_SIZES = 3, EXTRA_SEEDS = 3 };
/* The runtime computes a sigmoid as 0.5 + p/q: near 0 it is off by this much of 1. */
static const double few_units = 8 * 0x1p-24;

typedef struct output {
    const char *name;
    double natural;  /* magnitude: the largest so far, or what its operator can reach */
    double rounding; /* of that operator */
    double noise;    /* on the set at hand */
    bool random;     /* two runs of the original differ */
} output;

typedef struct runner {
    po_ctx *ctx;
    po_arena *arena;
    po_reply *reply;
    const po_verify_spec *spec;
    const po_inputs *plan;
    po_session *original, *candidate;
    po_session *plain; /* the original without graph optimisation; opened when first needed */
    po_ort *ort;
    output *outputs;
    uint32_t n_outputs;
    po_verify_report report;
    double until;
} runner;

static void mark(const runner *r, po_verify_stage stage) {
    po_verify_mark m;
    memset(&m, 0, sizeof m);
    m.stage = (int32_t)stage;
    m.report = r->report;
    po_reply_add(r->reply, &m, sizeof m);
}

static po_status differs(runner *r, const char *format, const char *name) {
    r->report.equal = 0;
    snprintf(r->report.why, sizeof r->report.why, format, name);
    return PO_OK;
}

static const po_port *port_named(const po_port *ports, uint32_t n, const char *name) {
    for (uint32_t i = 0; i < n; i++)
        if (strcmp(ports[i].name, name) == 0)
            return &ports[i];
    return NULL;
}

/* The same inputs by name, the same outputs in the same order. Sets report.equal. */
static po_status check_interface(runner *r) {
    uint32_t n_in, n_in2, n_out, n_out2;
    const po_port *in = po_session_inputs(r->original, &n_in);
    const po_port *in2 = po_session_inputs(r->candidate, &n_in2);
    const po_port *out = po_session_outputs(r->original, &n_out);
    const po_port *out2 = po_session_outputs(r->candidate, &n_out2);
    for (uint32_t i = 0; i < n_in; i++)
        if (!port_named(in2, n_in2, in[i].name))
            return differs(r, "the candidate lacks the input '%.200s'", in[i].name);
    for (uint32_t i = 0; i < n_in2; i++)
        if (!port_named(in, n_in, in2[i].name))
            return differs(r, "the candidate has an input '%.200s' of its own", in2[i].name);
    for (uint32_t i = 0; i < n_out; i++)
        if (i >= n_out2 || strcmp(out[i].name, out2[i].name) != 0)
            return differs(r, "the candidate lacks the output '%.200s' or has it elsewhere",
                           out[i].name);
    if (n_out2 > n_out)
        return differs(r, "the candidate has an output '%.200s' of its own", out2[n_out].name);
    r->n_outputs = n_out;
    r->outputs = PO_NEW_N(r->arena, output, n_out);
    for (uint32_t i = 0; i < n_out; i++) {
        r->outputs[i].name = out[i].name;
        r->outputs[i].natural = po_natural_scale(r->spec->graph, out[i].name);
        r->outputs[i].rounding = few_units * r->outputs[i].natural;
    }
    return PO_OK;
}

/* Feeds one session and runs it. */
static po_status run_one(runner *r, po_session *session, const po_feed *feed, po_run **run) {
    const po_datum *inputs = NULL;
    PO_TRY(po_feed_order(r->ctx, r->arena, session, feed, &inputs));
    PO_TRY(po_run_prepare(r->ctx, session, inputs, run));
    return po_run_repeat(r->ctx, *run, 1);
}

/* Two runs of the original must give the same bits; outputs that do not are marked random. */
static po_status find_random(runner *r, const po_feed *feed, po_arena *scratch,
                             const po_datum *first) {
    po_run *again = NULL;
    const po_datum *second = NULL;
    po_compare_rule rule = {.tolerance = 0};
    mark(r, PO_STAGE_RUN_ORIGINAL);
    PO_TRY(run_one(r, r->original, feed, &again));
    PO_TRY(po_run_outputs(r->ctx, scratch, again, &second));
    for (uint32_t i = 0; i < r->n_outputs; i++) {
        po_difference d;
        po_compare(&first[i], &second[i], &rule, &d);
        if (!d.identical && !r->outputs[i].random) {
            r->outputs[i].random = true;
            r->report.random_outputs++;
        }
    }
    po_run_free(again);
    return PO_OK;
}

/* One more run of the original in another manner: how far does it move the outputs? */
static po_status add_noise(runner *r, po_session *session, const po_feed *feed, po_arena *scratch,
                           const po_datum *expected) {
    po_run *run = NULL;
    const po_datum *moved = NULL;
    po_status status = run_one(r, session, feed, &run);
    if (status == PO_OK)
        status = po_run_outputs(r->ctx, scratch, run, &moved);
    for (uint32_t i = 0; status == PO_OK && i < r->n_outputs; i++) {
        po_compare_rule rule = {.tolerance = HUGE_VAL};
        po_difference d;
        po_compare(&expected[i], &moved[i], &rule, &d);
        if (d.mismatch == PO_MATCH)
            r->outputs[i].noise = fmax(r->outputs[i].noise, d.max_abs);
    }
    po_run_free(run);
    return status;
}

/* Every float of the feed moved by one part in 2^23, up or down. */
static po_status move_feed(runner *r, po_arena *arena, const po_feed *feed, po_feed *moved) {
    po_datum *data = po_arena_memdup(arena, feed->data, sizeof *data * feed->n);
    for (uint32_t k = 0; k < feed->n; k++) {
        const po_tensor *t = data[k].tensor;
        if (data[k].kind != PO_TYPE_TENSOR || t->dtype != PO_F32)
            continue;
        po_tensor *copy = NULL;
        PO_TRY(po_tensor_create(r->ctx, arena, t->dtype, t->rank, t->dims, &copy));
        const float *from = t->data;
        float *to = po_tensor_data(copy);
        for (int64_t i = 0; i < t->count; i++)
            to[i] =
                from[i] * (po_random_u64(r->spec->seed, 99 + k, (uint64_t)i) & 1 ? 1 + 0x1p-23f
                                                                                 : 1 - 0x1p-23f);
        data[k].tensor = copy;
    }
    *moved = (po_feed){feed->n, feed->names, data};
    return PO_OK;
}

/* How far rounding alone moves each output on this set: the original without graph optimisation,
 * and with its inputs off by their last bit. */
static po_status measure_noise(runner *r, const po_feed *feed, po_arena *scratch,
                               const po_datum *expected) {
    po_feed moved;
    mark(r, PO_STAGE_COMPARE);
    for (uint32_t i = 0; i < r->n_outputs; i++)
        r->outputs[i].noise = 0;
    PO_TRY(move_feed(r, scratch, feed, &moved));
    PO_TRY(add_noise(r, r->original, &moved, scratch, expected));
    if (!r->plain)
        PO_TRY(po_session_open(
            r->ctx, r->arena, r->ort, r->spec->original,
            &(po_session_options){.deterministic = true, .plain = true, .files = r->spec->files},
            &r->plain));
    return add_noise(r, r->plain, feed, scratch, expected);
}

static po_status compare_outputs(runner *r, const po_feed *feed, po_arena *scratch,
                                 const char *name, const po_datum *expected, const po_datum *got) {
    bool measured = false;
    for (uint32_t i = 0; i < r->n_outputs; i++) {
        output *o = &r->outputs[i];
        po_compare_rule rule = {r->spec->tolerance, o->natural, o->rounding, 0, o->random};
        po_difference d;
        po_compare(&expected[i], &got[i], &rule, &d);
        if (d.mismatch == PO_MISMATCH_ERROR && d.max_rel <= r->spec->tolerance) {
            if (!measured)
                PO_TRY(measure_noise(r, feed, scratch, expected));
            measured = true;
            rule.noise = o->noise;
            po_compare(&expected[i], &got[i], &rule, &d);
        }
        if (d.mismatch == PO_MISMATCH_EXACT && expected[i].kind == PO_TYPE_TENSOR) {
            uint32_t ties = 0;
            mark(r, PO_STAGE_COMPARE);
            PO_TRY(po_verify_ties(r->ctx, r->spec->graph, feed, o->name, expected[i].tensor,
                                  got[i].tensor, r->spec->tolerance, &ties));
            r->report.ties += ties;
            if (ties > 0)
                d.mismatch = PO_MATCH;
        }
        o->natural = fmax(o->natural, d.largest);
        po_verify_note(&r->report, o->name, name, &d);
    }
    return PO_OK;
}

/* Compares on one set. *ran is false where the original does not run on it. The candidate's own
 * failure is a difference. */
static po_status compare_set(runner *r, const po_feed *feed, const char *name, bool *ran) {
    po_arena *scratch = po_arena_create(r->ctx);
    po_run *a = NULL, *b = NULL;
    const po_datum *expected = NULL, *got = NULL;
    *ran = false;
    mark(r, PO_STAGE_RUN_ORIGINAL);
    po_status status = run_one(r, r->original, feed, &a);
    if (status == PO_OK)
        status = po_run_outputs(r->ctx, scratch, a, &expected);
    if (status == PO_OK) {
        *ran = true;
        if (r->report.sets == 0)
            status = find_random(r, feed, scratch, expected);
        if (status == PO_OK) {
            mark(r, PO_STAGE_RUN_CANDIDATE);
            status = run_one(r, r->candidate, feed, &b);
        }
        if (status == PO_OK)
            status = po_run_outputs(r->ctx, scratch, b, &got);
        if (status == PO_OK) {
            status = compare_outputs(r, feed, scratch, name, expected, got);
        }
        if (status == PO_OK) {
            r->report.sets++;
            mark(r, PO_STAGE_COMPARE);
        }
    }
    po_run_free(a);
    po_run_free(b);
    po_arena_free(scratch);
    return status;
}

/* Makes and compares one generated set. A set that the original refuses is skipped. */
static po_status try_set(runner *r, uint32_t size, po_input_kind kind, uint64_t seed, bool *ran) {
    po_arena *arena = po_arena_create(r->ctx);
    po_feed feed;
    *ran = false;
    po_status status = po_inputs_make(r->ctx, arena, r->plan, size, kind, seed, &feed);
    if (status == PO_OK)
        status = compare_set(r, &feed, po_inputs_describe(arena, r->plan, size, kind), ran);
    if (status != PO_OK && !*ran && (status == PO_RUNTIME || status == PO_UNSUPPORTED)) {
        if (r->report.skipped++ == 0)
            snprintf(r->report.why, sizeof r->report.why, "%.*s", PO_REPORT_TEXT - 1,
                     r->ctx->error.message);
        po_ctx_clear(r->ctx);
        status = PO_OK;
    }
    po_arena_free(arena);
    return status;
}

static bool time_left(const runner *r) {
    return po_now() < r->until;
}

static po_status compare_checks(runner *r) {
    for (uint32_t k = 0; k < r->spec->n_checks && r->report.equal; k++) {
        const po_check_set *check = &r->spec->checks[k];
        po_feed feed;
        bool ran;
        PO_TRY(po_verify_check_feed(r->ctx, r->arena, r->spec->graph, check, &feed));
        PO_TRY(compare_set(r, &feed, check->name, &ran));
    }
    return PO_OK;
}

/* First one set at each of up to three sizes that the original runs at, then the odd kinds. */
static po_status compare_generated(runner *r) {
    uint32_t good[WANTED_SIZES], n_good = 0;
    const po_verify_spec *spec = r->spec;
    for (uint32_t size = 0; size < po_inputs_sizes(r->plan) && n_good < WANTED_SIZES; size++) {
        bool ran;
        if (n_good > 0 && !time_left(r))
            break;
        PO_TRY(try_set(r, size, PO_INPUTS_NORMAL, spec->seed, &ran));
        if (ran) {
            r->report.size[n_good] = size;
            good[n_good++] = size;
        }
        if (!r->report.equal)
            return PO_OK;
    }
    r->report.sizes = n_good;
    for (uint32_t g = 0; g < (spec->thorough ? n_good : n_good > 0); g++) {
        for (int kind = PO_INPUTS_NORMAL + 1; kind < PO_INPUTS_KINDS; kind++) {
            bool ran;
            if (!po_inputs_has(r->plan, (po_input_kind)kind) || !time_left(r))
                continue;
            PO_TRY(try_set(r, good[g], (po_input_kind)kind, spec->seed, &ran));
            if (!r->report.equal)
                return PO_OK;
        }
        for (uint64_t more = 1; spec->thorough && more <= EXTRA_SEEDS && time_left(r); more++) {
            bool ran;
            PO_TRY(try_set(r, good[g], PO_INPUTS_NORMAL, spec->seed + more, &ran));
            if (!r->report.equal)
                return PO_OK;
        }
    }
    return PO_OK;
}

po_status po_verify_run(po_ctx *ctx, po_arena *arena, po_reply *reply, void *user) {
    const po_verify_job *job = user;
    const po_verify_spec *spec = job->spec;
    runner r = {.ctx = ctx, .arena = arena, .reply = reply, .spec = spec, .plan = job->plan};
    memset(&r.report, 0, sizeof r.report);
    r.report.tolerance = spec->tolerance;
    r.report.index = -1;
    r.report.own_error = r.report.candidate_error = -1;
    r.until = po_now() + spec->seconds;

    po_session_options options = {.deterministic = true, .files = spec->files};
    PO_TRY(po_ort_open(ctx, arena, &(po_ort_options){spec->library, PO_VERIFY_THREADS}, &r.ort));
    mark(&r, PO_STAGE_LOAD_ORIGINAL);
    PO_TRY(po_session_open(ctx, arena, r.ort, spec->original, &options, &r.original));
    mark(&r, PO_STAGE_LOAD_CANDIDATE);
    options.kernels = spec->kernels;
    PO_TRY(po_session_open(ctx, arena, r.ort, spec->candidate, &options, &r.candidate));

    r.report.evidence = PO_EVIDENCE_RUNTIME;
    r.report.equal = r.report.identical = 1;
    PO_TRY(check_interface(&r));
    if (r.report.equal) {
        PO_TRY(compare_checks(&r));
        if (r.report.equal)
            PO_TRY(compare_generated(&r));
    }
    if (r.report.equal && r.report.sets == 0) {
        r.report.evidence = PO_EVIDENCE_NONE;
        r.report.equal = 0;
        mark(&r, PO_STAGE_COMPARE); /* the reference may do better */
        return PO_OK;
    }
    if (r.report.equal && r.report.random_outputs == r.n_outputs && r.n_outputs > 0)
        r.report.evidence = PO_EVIDENCE_SHAPES;
    if (r.report.equal)
        r.report.why[0] = '\0';
    mark(&r, PO_STAGE_DONE);
    return PO_OK;
}

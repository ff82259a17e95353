/* The child that runs both models and compares. */
#include "verify/runner.h"

#include "ops/op.h"

#include <math.h>
#include <stdio.h>

enum { EXTRA_SEEDS = 3, BORDER_SEEDS = 6, LEAST_FRESH = 4 };
/* Seconds that the float64 reference may take of one comparison. */
static const double all_references = 25;
/* Of what is allowed; where the worst fresh set comes nearer, more like it are drawn. */
static const double near_the_limit = 0.5;
/* The runtime computes a sigmoid as 0.5 + p/q: near 0 it is off by this much of 1. */
static const double few_units = 8 * 0x1p-24;

void po_runner_mark(const po_runner *r, po_verify_stage stage) {
    po_verify_mark m;
    memset(&m, 0, sizeof m);
    m.stage = (int32_t)stage;
    m.report = r->report;
    po_reply_add(r->reply, &m, sizeof m);
}

static po_status differs(po_runner *r, const char *format, const char *name) {
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
static po_status check_interface(po_runner *r) {
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
    r->outputs = PO_NEW_N(r->arena, po_runner_output, n_out);
    for (uint32_t i = 0; i < n_out; i++) {
        r->outputs[i].name = out[i].name;
        r->outputs[i].natural = po_natural_scale(r->spec->graph, out[i].name);
        r->outputs[i].rounding = few_units * r->outputs[i].natural;
    }
    return PO_OK;
}

po_status po_runner_run(po_runner *r, po_session *session, const po_feed *feed, po_ort_run **run) {
    const po_datum *inputs = NULL;
    PO_TRY(po_feed_order(r->ctx, r->arena, session, feed, &inputs));
    PO_TRY(po_ort_run_prepare(r->ctx, session, inputs, run));
    return po_ort_run_repeat(r->ctx, *run, 1);
}

/* Runs a session once; what it gives is valid until the run is freed. */
static po_status run_once(po_runner *r, po_arena *scratch, po_session *session, const po_feed *feed,
                          po_ort_run **run, const po_datum **out) {
    PO_TRY(po_runner_run(r, session, feed, run));
    return po_ort_run_outputs(r->ctx, scratch, *run, out);
}

/* Two runs of the original must give the same bits; outputs that do not are marked random. */
static po_status find_random(po_runner *r, const po_feed *feed, po_arena *scratch,
                             const po_datum *first) {
    po_ort_run *again = NULL;
    const po_datum *second = NULL;
    po_compare_rule rule = {.tolerance = 0};
    po_runner_mark(r, PO_STAGE_RUN_ORIGINAL);
    PO_TRY(run_once(r, scratch, r->original, feed, &again, &second));
    for (uint32_t i = 0; i < r->n_outputs; i++) {
        po_difference d;
        po_compare(&first[i], &second[i], &rule, &d);
        if (!d.identical && !r->outputs[i].random) {
            r->outputs[i].random = true;
            r->report.random_outputs++;
        }
    }
    po_ort_run_free(again);
    return PO_OK;
}

static po_status compare_outputs(po_runner *r, const po_input_set *set, po_arena *scratch,
                                 const po_datum *expected, const po_datum *got) {
    po_excuses e = {0};
    bool excused = false;
    r->strain = 0;
    for (uint32_t i = 0; i < r->n_outputs; i++) {
        po_runner_output *o = &r->outputs[i];
        po_compare_rule rule = {.tolerance = r->spec->tolerance,
                                .natural = o->natural,
                                .rounding = o->rounding,
                                .shapes_only = o->random,
                                .one_sided = set->wide};
        po_difference d;
        po_compare(&expected[i], &got[i], &rule, &d);
        if (d.mismatch == PO_MISMATCH_ERROR || d.mismatch == PO_MISMATCH_SPECIAL)
            PO_TRY(po_excuse_floats(r, set, scratch, i, expected, got, &rule, &e, &d));
        if (d.mismatch == PO_MISMATCH_EXACT && expected[i].kind == PO_TYPE_TENSOR) {
            uint32_t ties = 0;
            po_runner_mark(r, PO_STAGE_COMPARE);
            PO_TRY(po_verify_ties(r->ctx, r->spec->graph, set->feed, o->name, expected[i].tensor,
                                  got[i].tensor, r->spec->tolerance, &ties));
            r->report.ties += ties;
            if (ties > 0)
                d.mismatch = PO_MATCH;
        }
        /* Inputs that no model is made for are judged by, but what comes of them is no measure. */
        bool usual = !set->draw || !(set->draw->scale > 1);
        if (!set->wide && usual)
            o->natural = fmax(o->natural, d.largest);
        if (set->wide && d.mismatch == PO_MATCH)
            d = (po_difference){.mismatch = PO_MATCH,
                                .identical = d.identical,
                                .elements = d.elements,
                                .index = -1};
        excused |= d.excused;
        r->strain = d.excused ? r->strain : fmax(r->strain, d.strain);
        po_verify_note(&r->report, o->name, set->name, &d);
    }
    r->report.excused += excused;
    return PO_OK;
}

/* Compares on one set. *ran is false where the original does not run on it. The candidate's own
 * failure is a difference. */
static po_status compare_set(po_runner *r, const po_input_set *set, bool *ran) {
    const po_feed *feed = set->feed;
    po_arena *scratch = po_arena_create(r->ctx);
    po_ort_run *a = NULL, *b = NULL;
    const po_datum *expected = NULL, *got = NULL;
    *ran = false;
    po_runner_mark(r, PO_STAGE_RUN_ORIGINAL);
    po_status status = run_once(r, scratch, r->original, feed, &a, &expected);
    if (status == PO_OK) {
        *ran = true;
        if (r->report.sets == 0)
            status = find_random(r, feed, scratch, expected);
        if (status == PO_OK) {
            po_runner_mark(r, PO_STAGE_RUN_CANDIDATE);
            status = run_once(r, scratch, r->candidate, feed, &b, &got);
        }
        if (status == PO_OK)
            status = compare_outputs(r, set, scratch, expected, got);
        if (status == PO_OK) {
            r->report.sets++;
            po_runner_mark(r, PO_STAGE_COMPARE);
        }
    }
    po_ort_run_free(a);
    po_ort_run_free(b);
    po_arena_free(scratch);
    return status;
}

/* Makes and compares one generated set. A set that the original refuses is skipped. */
static po_status try_set(po_runner *r, const po_draw *draw, bool wide, bool *ran) {
    po_arena *arena = po_arena_create(r->ctx);
    po_feed feed;
    *ran = false;
    po_status status = po_inputs_draw(r->ctx, arena, r->plan, draw, &feed);
    if (status == PO_OK) {
        po_input_set set = {&feed, po_inputs_tell(arena, r->plan, draw), draw, wide};
        status = compare_set(r, &set, ran);
    }
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

/* Also for the reference: a set that it has no time for could not be judged. */
static bool time_left(const po_runner *r) {
    return po_now() < r->until && r->references > 0;
}

static po_status compare_checks(po_runner *r) {
    for (uint32_t k = 0; k < r->spec->n_checks && r->report.equal; k++) {
        const po_check_set *check = &r->spec->checks[k];
        po_feed feed;
        bool ran;
        PO_TRY(po_verify_check_feed(r->ctx, r->arena, r->spec->graph, check, &feed));
        PO_TRY(compare_set(r, &(po_input_set){&feed, check->name, NULL, false}, &ran));
    }
    return PO_OK;
}

/* Every kind at one size; then inputs up to 1e4, where sums cancel and exponentials overflow. */
static const struct {
    po_input_kind kind;
    double scale;
    bool wide;
} odd_sets[] = {
    {PO_INPUTS_UNIFORM, 1, false},  {PO_INPUTS_ZERO, 1, false},    {PO_INPUTS_LARGE, 1, false},
    {PO_INPUTS_EXTREME, 1, false},  {PO_INPUTS_ONE_HOT, 1, false}, {PO_INPUTS_MASKED, 1, false},
    {PO_INPUTS_DENORMAL, 1, false}, {PO_INPUTS_BORDERS, 1, false}, {PO_INPUTS_NORMAL, 300, true},
    {PO_INPUTS_NORMAL, 3000, true}, {PO_INPUTS_OFFSET, 100, true}, {PO_INPUTS_OFFSET, 1e4, true},
};

static po_status compare_odd(po_runner *r, uint32_t size) {
    for (size_t k = 0; k < sizeof odd_sets / sizeof odd_sets[0]; k++) {
        bool ran, wide = odd_sets[k].wide;
        po_draw draw = {size, odd_sets[k].kind, r->spec->seed, odd_sets[k].scale};
        if (!po_inputs_has(r->plan, wide ? PO_INPUTS_LARGE : draw.kind) || !time_left(r))
            continue;
        PO_TRY(try_set(r, &draw, wide, &ran));
        if (!r->report.equal)
            return PO_OK;
    }
    return PO_OK;
}

/* Borders once more, drawn otherwise, and open dims at the graphs' own borders. */
static po_status compare_borders(po_runner *r, uint32_t size) {
    bool ran;
    for (uint64_t k = 1; k <= BORDER_SEEDS && po_inputs_has(r->plan, PO_INPUTS_BORDERS); k++)
        if (r->report.equal && time_left(r))
            PO_TRY(
                try_set(r, &(po_draw){size, PO_INPUTS_BORDERS, r->spec->seed + k, 1}, false, &ran));
    uint32_t first = po_inputs_sizes(r->plan);
    for (uint32_t k = 0; k < po_inputs_border_sizes(r->plan); k++)
        if (r->report.equal && time_left(r))
            PO_TRY(
                try_set(r, &(po_draw){first + k, PO_INPUTS_NORMAL, r->spec->seed, 1}, false, &ran));
    return PO_OK;
}

/* Whether a set of the same lengths was compared before. */
static bool is_known(const po_runner *r, uint32_t size, const uint32_t *good, uint32_t n_good) {
    for (uint32_t i = 0; i < n_good; i++)
        if (po_inputs_alike(r->plan, good[i], size))
            return true;
    return false;
}

/* One set at a size, which is good where the original takes it. */
static po_status try_size(po_runner *r, uint32_t size, uint32_t *good, uint32_t *n_good) {
    bool ran = is_known(r, size, good, *n_good);
    if ((*n_good > 0 && !ran && !time_left(r)) || !r->report.equal)
        return PO_OK;
    /* What nobody asked for must not take more memory than there may be. */
    if (!ran && !po_inputs_is_meant(size) && !po_inputs_fit(r->ctx, r->plan, r->spec->graph, size))
        return PO_OK;
    if (!ran)
        PO_TRY(try_set(r, &(po_draw){size, PO_INPUTS_NORMAL, r->spec->seed, 1}, false, &ran));
    if (ran) {
        r->report.size[*n_good] = size;
        good[(*n_good)++] = size;
    }
    return PO_OK;
}

/* First one set at each of up to three sizes that the original runs at and at those that it is
 * meant for, then the odd kinds. */
static po_status compare_generated(po_runner *r, uint32_t *good, uint32_t *n_good) {
    const po_verify_spec *spec = r->spec;
    for (uint32_t size = 0; size < po_inputs_sizes(r->plan) && *n_good < PO_SIZES_TRIED; size++)
        PO_TRY(try_size(r, size, good, n_good));
    uint32_t tried = *n_good;
    for (uint32_t k = 0; k < po_inputs_meant(r->plan) && *n_good < PO_SIZES_COMPARED; k++)
        PO_TRY(try_size(r, po_inputs_meant_size(k), good, n_good));
    r->report.sizes = *n_good;
    if (!r->report.equal)
        return PO_OK;
    /* Large inputs take long: the rest is drawn at what was tried, and where the model is used
     * first. */
    if (tried > 0 && *n_good > tried)
        *n_good = tried + !is_known(r, good[tried], good, tried);
    for (uint32_t g = 0; g < (spec->thorough ? *n_good : *n_good > 0); g++) {
        PO_TRY(compare_odd(r, good[g]));
        for (uint64_t more = 1; spec->thorough && more <= EXTRA_SEEDS && time_left(r); more++) {
            bool ran;
            if (r->report.equal)
                PO_TRY(try_set(r, &(po_draw){good[g], PO_INPUTS_NORMAL, spec->seed + more, 1},
                               false, &ran));
        }
        if (!r->report.equal)
            return PO_OK;
    }
    return spec->thorough && *n_good > 0 ? compare_borders(r, good[0]) : PO_OK;
}

/* In turn one that the model is meant for, and the smallest at which there is something to see,
 * where many sets cost little. */
static uint32_t size_in_turn(const po_runner *r, const uint32_t *good, uint32_t n_good,
                             uint32_t k) {
    static const double enough = 1024; /* elements */
    uint32_t best = PO_NONE;
    for (uint32_t g = 0; g < n_good; g++) {
        const double n = po_inputs_elements(r->plan, good[g]);
        if (k % 2 == 0 && po_inputs_is_meant(good[g]))
            return good[g];
        if (n >= enough && (best == PO_NONE || n < po_inputs_elements(r->plan, good[best])))
            best = g;
    }
    return good[best == PO_NONE ? 0 : best];
}

/* Sets that chose nothing. Where the worst of them comes near the limit, half as many again of its
 * kind and scale: what it is the worst of is then better known. */
static po_status compare_fresh(po_runner *r, const uint32_t *good, uint32_t n_good) {
    const po_verify_spec *spec = r->spec;
    uint32_t wanted = spec->fresh;
    double worst = 0;
    po_draw like = {0};
    for (uint32_t k = 0; k < wanted + wanted / 2 && n_good > 0; k++) {
        bool ran, again = k >= wanted;
        if ((again && worst < near_the_limit) || (r->report.fresh >= LEAST_FRESH && !time_left(r)))
            break;
        po_draw draw = po_inputs_fresh(r->plan, k, spec->fresh_seed);
        if (again)
            draw = (po_draw){like.size, like.kind, spec->fresh_seed + k, like.scale};
        else
            draw.size = spec->fresh_small ? size_in_turn(r, good, n_good, k) : good[k % n_good];
        PO_TRY(try_set(r, &draw, false, &ran));
        r->report.fresh += ran;
        if (!r->report.equal)
            return PO_OK;
        if (ran && r->strain > worst) {
            worst = r->strain;
            like = draw;
        }
    }
    return PO_OK;
}

/* Kernels for any size have lengths of their own to be wrong at: short ones, odd ones, others. */
static po_status compare_sizes(po_runner *r, const uint32_t *good, uint32_t n_good) {
    for (uint32_t size = 0; size < po_inputs_sizes(r->plan); size++) {
        bool ran;
        if (r->report.equal && time_left(r) && !is_known(r, size, good, n_good) &&
            po_inputs_fit(r->ctx, r->plan, r->spec->graph, size))
            PO_TRY(try_set(r, &(po_draw){size, PO_INPUTS_NORMAL, r->spec->seed, 1}, false, &ran));
    }
    return PO_OK;
}

static po_status compare_all(po_runner *r) {
    const po_verify_spec *spec = r->spec;
    uint32_t good[PO_SIZES_COMPARED] = {0}, n_good = 0;
    if (spec->fresh_only) {
        for (; n_good < spec->n_sizes; n_good++)
            good[n_good] = spec->sizes[n_good];
        n_good = n_good ? n_good : 1;
        /* At the first of them they were compared before; verify asks at the others too. */
        for (uint32_t g = 1; g < n_good && r->report.equal; g++)
            if (!po_inputs_is_meant(good[g]))
                PO_TRY(compare_odd(r, good[g]));
        if (!r->report.equal)
            return PO_OK;
    } else {
        PO_TRY(compare_checks(r));
        if (r->report.equal)
            PO_TRY(compare_generated(r, good, &n_good));
    }
    if (spec->kernels && spec->fresh > 0)
        PO_TRY(compare_sizes(r, good, n_good));
    return r->report.equal ? compare_fresh(r, good, n_good) : PO_OK;
}

static bool same_shapes(const po_runner *r, const po_datum *expected, const po_datum *got) {
    const po_compare_rule rule = {.shapes_only = true};
    for (uint32_t i = 0; i < r->n_outputs; i++) {
        po_difference d;
        po_compare(&expected[i], &got[i], &rule, &d);
        if (d.mismatch != PO_MATCH)
            return false;
    }
    return true;
}

/* Whether the candidate takes it is known only where the original does. */
static po_status compare_empty(po_runner *r, po_arena *scratch, const po_feed *feed, po_ort_run **a,
                               po_ort_run **b) {
    const po_datum *expected, *got;
    PO_TRY(run_once(r, scratch, r->original, feed, a, &expected));
    r->report.empty_refused = 1;
    po_runner_mark(r, PO_STAGE_DONE);
    PO_TRY(run_once(r, scratch, r->candidate, feed, b, &got));
    r->report.empty_refused = !same_shapes(r, expected, got);
    po_runner_mark(r, PO_STAGE_DONE);
    return PO_OK;
}

/* Runtimes refuse an empty batch at some nodes and not at others, or die of it: it is told, and no
 * difference. All else was said before. */
static po_status try_empty(po_runner *r) {
    po_feed feed;
    po_ort_run *a = NULL, *b = NULL;
    uint32_t size = r->spec->fresh_only && r->spec->n_sizes > 0 ? r->spec->sizes[0] : 0;
    po_draw draw = {size | PO_EMPTY_BATCH, PO_INPUTS_NORMAL, r->spec->seed, 1};
    if (!po_inputs_has_batch(r->plan))
        return PO_OK;
    po_arena *scratch = po_arena_create(r->ctx);
    po_status status = po_inputs_draw(r->ctx, scratch, r->plan, &draw, &feed);
    if (status == PO_OK)
        status = compare_empty(r, scratch, &feed, &a, &b);
    po_ort_run_free(a);
    po_ort_run_free(b);
    po_arena_free(scratch);
    if (status != PO_RUNTIME && status != PO_UNSUPPORTED)
        return status;
    po_ctx_clear(r->ctx);
    return PO_OK;
}

po_status po_verify_run(po_ctx *ctx, po_arena *arena, po_reply *reply, void *user) {
    const po_verify_job *job = user;
    const po_verify_spec *spec = job->spec;
    po_runner r = {.ctx = ctx, .arena = arena, .reply = reply, .spec = spec, .plan = job->plan};
    memset(&r.report, 0, sizeof r.report);
    r.report.tolerance = spec->tolerance;
    r.report.index = -1;
    r.report.own_error = r.report.candidate_error = -1;
    r.until = po_now() + spec->seconds;
    r.references = fmin(all_references, spec->seconds);

    po_session_options options = {.deterministic = true, .files = spec->files};
    PO_TRY(po_ort_open(ctx, arena, &(po_ort_options){spec->library, PO_VERIFY_THREADS}, &r.ort));
    po_runner_mark(&r, PO_STAGE_LOAD_ORIGINAL);
    PO_TRY(po_session_open(ctx, arena, r.ort, spec->original, &options, &r.original));
    po_runner_mark(&r, PO_STAGE_LOAD_CANDIDATE);
    options.kernels = spec->kernels;
    options.isa = spec->isa;
    PO_TRY(po_session_open(ctx, arena, r.ort, spec->candidate, &options, &r.candidate));

    r.report.evidence = PO_EVIDENCE_RUNTIME;
    r.report.equal = r.report.identical = 1;
    PO_TRY(check_interface(&r));
    if (r.report.equal)
        PO_TRY(compare_all(&r));
    if (r.report.equal && r.report.sets == 0) {
        r.report.evidence = PO_EVIDENCE_NONE;
        r.report.equal = 0;
        po_runner_mark(&r, PO_STAGE_COMPARE); /* the reference may do better */
        return PO_OK;
    }
    if (r.report.equal && r.report.random_outputs == r.n_outputs && r.n_outputs > 0)
        r.report.evidence = PO_EVIDENCE_SHAPES;
    if (r.report.equal)
        r.report.why[0] = '\0';
    po_runner_mark(&r, PO_STAGE_DONE);
    return r.report.equal && (spec->fresh_only || spec->thorough) ? try_empty(&r) : PO_OK;
}

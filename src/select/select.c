/* The protocol by which one candidate is taken or not. */
#include "select/select.h"

#include "po_rules.h"

#include <math.h>
#include <stdio.h>

static const double part_for_fresh = 0.35;
/* Fresh sets, the functions, code for other processors: each as long as the first comparison. */
static const double for_comparisons = 3;
/* A gain must be above 1 where it is claimed and may not be below this elsewhere. */
static const double claimed = 1.0, elsewhere = 0.98;
/* A short look at another size is enough where it reads above this. */
static const double clear_elsewhere = 1.1;
/* Who names a thread count serves with it, and what one thread gains is but a hint: it must gain
 * so much more. */
static const double for_named = 1.03;
static const double long_run = 20e-3; /* seconds */
/* An inconclusive reading is taken again, for longer, where more samples could show a gain: an
 * interval is never narrower than this. */
static const double within_reach = 1.005;
enum { TRIES = 4, TRIES_DISTURBED = 2, READINGS_LEFT = 3 };
/* Seconds for comparing on fresh inputs: what is left, but within these. */
static const double least_for_fresh = 3, most_for_fresh = 10;

static po_status conclude(po_verdict *verdict, po_verdict_code code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static po_status conclude(po_verdict *verdict, po_verdict_code code, const char *format, ...) {
    va_list args;
    va_start(args, format);
    vsnprintf(verdict->reason, sizeof verdict->reason, format, args);
    va_end(args);
    verdict->code = (int32_t)code;
    return PO_OK;
}

const po_reading *po_verdict_shown(const po_verdict *verdict) {
    const po_reading *shown = NULL;
    for (uint32_t i = 0; i < verdict->n_readings; i++) {
        const po_reading *r = &verdict->readings[i];
        if (r->kind == PO_READING_FIRST || r->kind == PO_READING_CONFIRM)
            shown = r;
    }
    return shown;
}

static bool by_one(const po_reading *reading) {
    return reading->by < reading->threads;
}

/* Not taken for a last reading that was disturbed and says neither yes nor no. */
static bool is_left_open(const po_verdict *verdict) {
    bool no_gain = verdict->code == (int32_t)PO_VERDICT_NO_GAIN;
    if ((!no_gain && verdict->code != (int32_t)PO_VERDICT_SLOWER_ELSEWHERE) ||
        verdict->n_readings == 0)
        return false;
    const po_reading *r = &verdict->readings[verdict->n_readings - 1];
    return !by_one(r) && po_timing_disturbed(r->waited) &&
           r->high > (no_gain ? claimed : elsewhere);
}

bool po_verdict_disturbed(const po_verdict *verdict) {
    bool any = is_left_open(verdict);
    for (uint32_t i = 0; i < verdict->n_readings; i++)
        any |= by_one(&verdict->readings[i]);
    return any;
}

/* --- the cache --- */

static po_hash hash_datum(po_hash hash, const po_datum *datum) {
    hash = po_hash_u64(hash, (uint64_t)datum->kind);
    if (datum->tensor) {
        po_hash t = po_tensor_hash(datum->tensor);
        hash = po_hash_u64(po_hash_u64(hash, t.lo), t.hi);
    }
    for (uint32_t i = 0; i < datum->n; i++)
        hash = hash_datum(hash, &datum->items[i]);
    return hash;
}

static po_hash hash_f64(po_hash hash, double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return po_hash_u64(hash, bits);
}

static po_status content_hash(po_ctx *ctx, const char *path, po_hash given, po_hash *hash) {
    *hash = given;
    if (po_hash_equal(given, (po_hash){0, 0}))
        return po_cost_hash_file(ctx, path, given, hash);
    return PO_OK;
}

/* Everything that the verdict depends on. *same: the two files are one. */
static po_status verdict_key(po_ctx *ctx, const po_select_spec *spec, po_hash *key, bool *same) {
    po_hash a, b;
    PO_TRY(content_hash(ctx, spec->original, spec->original_hash, &a));
    PO_TRY(content_hash(ctx, spec->candidate, spec->candidate_hash, &b));
    *same = po_hash_equal(a, b);
    po_hash k = po_hash_str(po_cost_key(spec->cost), PO_RULES);
    k = po_hash_u64(po_hash_u64(k, a.lo), a.hi);
    k = po_hash_u64(po_hash_u64(k, b.lo), b.hi);
    k = po_hash_u64(po_hash_u64(k, spec->threads), spec->these_threads);
    k = po_pins_hash(po_hash_u64(hash_f64(k, spec->tolerance), spec->size), spec->meant,
                     spec->n_meant);
    k = po_hash_u64(k, spec->n_checks);
    for (uint32_t i = 0; i < spec->n_checks; i++)
        for (uint32_t j = 0; j < spec->checks[i].n; j++)
            k = hash_datum(k, &spec->checks[i].data[j]);
    if (spec->kernels)
        PO_TRY(po_cost_hash_file(ctx, spec->kernels, k, &k));
    *key = k;
    return PO_OK;
}

static bool finite_positive(double v) {
    return isfinite(v) && v > 0;
}

/* A row whose checksum holds may still come from a build with another layout. */
static bool sensible(const po_verdict *v) {
    if (v->code <= PO_VERDICT_NONE || v->code > PO_VERDICT_SLOWER_ELSEWHERE ||
        v->n_readings > PO_READINGS_MAX || v->reason[sizeof v->reason - 1] != '\0')
        return false;
    for (uint32_t i = 0; i < v->n_readings; i++) {
        const po_reading *r = &v->readings[i];
        if (!finite_positive(r->original) || !finite_positive(r->candidate) ||
            !finite_positive(r->gain) || !(r->low <= r->gain && r->gain <= r->high) ||
            r->by != r->threads)
            return false;
    }
    return v->code != PO_VERDICT_FASTER || (v->verify.equal && v->n_readings > 0);
}

/* --- readings --- */

typedef struct reader {
    po_ctx *ctx;
    po_arena *arena;
    const po_select_spec *spec;
    const po_inputs *plan;
    po_verdict *verdict;
} reader;

/* bound, quick: as in po_timing_spec. */
static po_status read_once(reader *r, uint32_t threads, uint32_t size, double bound, uint32_t quick,
                           uint64_t seed, double seconds, po_reading *reading) {
    const po_select_spec *spec = r->spec;
    po_arena *arena = po_arena_create(r->ctx);
    po_feed feed;
    po_timing timing[2];
    po_timing_work work = {.processes = 0};
    const char *models[2] = {spec->original, spec->candidate};
    po_status status =
        po_inputs_make(r->ctx, arena, r->plan, size, PO_INPUTS_NORMAL, spec->seed, &feed);
    if (status == PO_OK) {
        po_timing_spec timed = {.library = spec->cost->library,
                                .kernels = spec->kernels,
                                .files = spec->files,
                                .threads = threads,
                                .n = 2,
                                .models = models,
                                .feed = &feed,
                                .seconds = seconds,
                                .seed = seed,
                                .bound = bound,
                                .quick = quick,
                                .source = spec->source,
                                .source_user = spec->source_user};
        status = po_time_models(r->ctx, &timed, timing, &work);
    }
    if (status == PO_OK) {
        const char *text = po_inputs_describe(arena, r->plan, size, PO_INPUTS_NORMAL);
        snprintf(reading->inputs, sizeof reading->inputs, "%s", text);
        reading->threads = threads;
        reading->by = timing[1].threads;
        reading->original = timing[0].seconds;
        reading->candidate = timing[1].seconds;
        reading->gain = timing[1].gain;
        reading->low = timing[1].low;
        reading->high = timing[1].high;
        reading->waited = timing[1].waited;
        reading->processes = work.processes;
        reading->rounds = work.rounds;
        reading->spent = work.spent;
    }
    po_arena_free(arena);
    return status;
}

/* Whether more samples could tell on which side of the bound a gain lies. A gain that is claimed
 * must look like one already; what must not be lost may look like anything. */
static bool open_still(const po_reading *reading, po_reading_kind kind, double bound) {
    bool claims = kind == PO_READING_FIRST || kind == PO_READING_CONFIRM;
    double most = claims ? reading->gain : reading->high;
    return reading->low <= bound && most > bound * within_reach;
}

/* What a reading's lower end must be above. */
static double bound_of(const reader *r, const po_reading *reading, double bound) {
    return by_one(reading) && r->spec->these_threads ? bound * for_named : bound;
}

static void keep_reading(reader *r, const po_reading *reading) {
    char clock[PO_TIMING_CLOCK];
    po_log(r->ctx, "%s, %s: %.3f -> %.3f ms, %.3fx [%.3f, %.3f], %u rounds, %.1f s",
           po_timing_clock(reading->threads, reading->by, clock), reading->inputs,
           1e3 * reading->original, 1e3 * reading->candidate, reading->gain, reading->low,
           reading->high, reading->rounds, reading->spent);
    if (r->verdict->n_readings < PO_READINGS_MAX)
        r->verdict->readings[r->verdict->n_readings++] = *reading;
}

/* One reading against a bound. Taken again for longer while it leaves the answer open; where other
 * programs disturb it that rarely helps. */
static po_status read_against(reader *r, po_reading_kind kind, uint32_t threads, uint32_t size,
                              double bound, bool decides, bool *holds) {
    double seconds = r->spec->timing_seconds > 0 ? r->spec->timing_seconds : 8;
    double until = r->spec->until, left = until > 0 ? until - po_now() : HUGE_VAL, least = bound;
    po_reading reading;
    seconds = fmin(seconds, fmax(left / READINGS_LEFT, 0.5));
    memset(&reading, 0, sizeof reading);
    for (uint64_t attempt = 0; attempt < (decides ? TRIES : 1); attempt++) {
        uint64_t seed = r->spec->seed + 1000 * (uint64_t)kind + UINT64_C(100) * threads +
                        UINT64_C(10) * size + attempt;
        PO_TRY(read_once(r, threads, size, decides ? bound : 0, 0, seed, seconds, &reading));
        reading.kind = (int32_t)kind;
        least = bound_of(r, &reading, bound);
        if (!open_still(&reading, kind, least) ||
            (po_timing_disturbed(reading.waited) && attempt + 1 >= TRIES_DISTURBED) ||
            (until > 0 && po_now() + 2 * reading.spent > until + r->spec->patience))
            break;
        seconds *= 2;
    }
    keep_reading(r, &reading);
    *holds = reading.low > least;
    return PO_OK;
}

/* At a size that only must not be slower a short look is enough where the gain is clear. What was
 * confirmed by one thread, on a machine too busy for more, is not read by more for longer either.
 */
static po_status look_at_size(reader *r, uint32_t size, bool *clear) {
    po_reading reading;
    memset(&reading, 0, sizeof reading);
    PO_TRY(read_once(r, r->spec->threads, size, elsewhere, 1,
                     r->spec->seed + 1000 * (uint64_t)PO_READING_SIZE + size, 1, &reading));
    reading.kind = PO_READING_SIZE;
    *clear = reading.low > clear_elsewhere &&
             (!by_one(&reading) || by_one(po_verdict_shown(r->verdict)));
    if (*clear)
        keep_reading(r, &reading);
    return PO_OK;
}

/* By the last reading. */
static po_status not_by_time(po_verdict *verdict, po_verdict_code code, const char *what) {
    const po_reading *r = &verdict->readings[verdict->n_readings - 1];
    char clock[PO_TIMING_CLOCK];
    verdict->code = (int32_t)code;
    return conclude(verdict, code, "%s: %.3fx, between %.3f and %.3f (%s, %s)",
                    is_left_open(verdict) ? "the machine was too busy to tell" : what, r->gain,
                    r->low, r->high, po_timing_clock(r->threads, r->by, clock), r->inputs);
}

static po_status no_gain(po_verdict *verdict) {
    return not_by_time(verdict, PO_VERDICT_NO_GAIN, "not faster beyond doubt");
}

static po_status not_elsewhere(po_verdict *verdict) {
    return not_by_time(verdict, PO_VERDICT_SLOWER_ELSEWHERE, "perhaps slower elsewhere");
}

/* What was read when candidates were ranked is a first reading as good as any, where it is clear.
 */
static bool take_first(reader *r) {
    const po_timing *t = r->spec->first;
    if (!t)
        return false;
    po_reading reading = {.kind = PO_READING_FIRST,
                          .threads = r->spec->threads,
                          .by = t->threads,
                          .original = t->seconds * t->gain,
                          .candidate = t->seconds,
                          .gain = t->gain,
                          .low = t->low,
                          .high = t->high,
                          .waited = t->waited};
    if (!(t->low > bound_of(r, &reading, claimed)))
        return false;
    const char *text = po_inputs_describe(r->arena, r->plan, r->spec->size, PO_INPUTS_NORMAL);
    snprintf(reading.inputs, sizeof reading.inputs, "%s", text);
    r->verdict->readings[r->verdict->n_readings++] = reading;
    return true;
}

/* Whether a reading like the last one, and the comparisons that are to come, would not be done in
 * time. */
static bool is_short(const reader *r) {
    const po_verdict *v = r->verdict;
    double last = v->n_readings > 0 ? v->readings[v->n_readings - 1].spent : 0;
    return r->spec->until > 0 &&
           po_now() + last + for_comparisons * v->verify.seconds > r->spec->until;
}

/* The assignments of lengths to read at, the one that decides first: those that the model is meant
 * for, as far as it takes them, else those that were tried, the largest first. Returns how many. */
static uint32_t sizes_to_read(const reader *r, uint32_t *list) {
    const po_verify_report *tried = &r->verdict->verify;
    uint32_t n = 0, n_meant = 0, first = 0;
    for (uint32_t k = 0; k < tried->sizes; k++)
        n_meant += po_inputs_is_meant(tried->size[k]);
    for (uint32_t k = 0; k < tried->sizes; k++)
        if (n_meant == 0 || po_inputs_is_meant(tried->size[k])) {
            first = tried->size[k] == r->spec->size ? n : first;
            list[n++] = tried->size[k];
        }
    /* What takes long at the first lengths tried is no toy there, and takes many times that at the
     * last. */
    if (n > 1 && n_meant == 0 && !(r->spec->first && r->spec->first->seconds >= long_run))
        first = n - 1;
    if (n == 0)
        list[n++] = 0;
    uint32_t size = list[first];
    for (; first > 0; first--)
        list[first] = list[first - 1];
    list[0] = size;
    return n;
}

static po_status measure(reader *r) {
    const po_select_spec *spec = r->spec;
    po_verdict *verdict = r->verdict;
    uint32_t cores = spec->cost->machine.cores, sizes[PO_SIZES_COMPARED];
    uint32_t n_sizes = sizes_to_read(r, sizes), main_size = sizes[0];
    po_step(r->ctx, 0.4, "timing at %u threads", spec->threads);
    bool holds = main_size == spec->size && take_first(r);
    if (!holds)
        PO_TRY(read_against(r, PO_READING_FIRST, spec->threads, main_size, claimed, true, &holds));
    if (!holds)
        return no_gain(verdict);
    po_step(r->ctx, 0.6, "timing again in fresh processes");
    PO_TRY(read_against(r, PO_READING_CONFIRM, spec->threads, main_size, claimed, true, &holds));
    if (!holds)
        return no_gain(verdict);
    uint32_t others[2] = {1, cores}, by = verdict->readings[verdict->n_readings - 1].by;
    for (uint32_t i = 0; i < 2; i++) {
        if (others[i] == spec->threads || others[i] == by || (i == 1 && cores == 1))
            continue;
        if (spec->these_threads && is_short(r)) {
            po_log(r->ctx, "%u threads: not read, there is no time for what does not decide",
                   others[i]);
            continue;
        }
        po_step(r->ctx, 0.8, "timing at %u threads", others[i]);
        PO_TRY(read_against(r, PO_READING_THREADS, others[i], main_size, elsewhere,
                            !spec->these_threads, &holds));
        if (!holds && !spec->these_threads)
            return not_elsewhere(verdict);
    }
    for (uint32_t k = 1; k < n_sizes; k++) {
        bool clear;
        po_step(r->ctx, 0.9, "timing at other sizes");
        PO_TRY(look_at_size(r, sizes[k], &clear));
        if (clear)
            continue;
        PO_TRY(read_against(r, PO_READING_SIZE, spec->threads, sizes[k], elsewhere, true, &holds));
        if (!holds)
            return not_elsewhere(verdict);
    }
    const po_reading *shown = po_verdict_shown(verdict);
    char clock[PO_TIMING_CLOCK];
    return conclude(verdict, PO_VERDICT_FASTER, "%.3fx, at least %.3f (%s, %s)", shown->gain,
                    shown->low, po_timing_clock(shown->threads, shown->by, clock), shown->inputs);
}

static po_verify_spec comparison(const po_select_spec *spec) {
    return (po_verify_spec){.library = spec->cost->library,
                            .kernels = spec->kernels,
                            .files = spec->files,
                            .original = spec->original,
                            .candidate = spec->candidate,
                            .graph = spec->graph,
                            .candidate_graph = spec->candidate_graph,
                            .checks = spec->checks,
                            .n_checks = spec->n_checks,
                            .meant = spec->meant,
                            .n_meant = spec->n_meant,
                            .tolerance = spec->tolerance,
                            .seconds = spec->verify_seconds,
                            .seed = spec->seed,
                            .ladder = !spec->no_reference};
}

/* The limit is to hold on inputs that no candidate was chosen by. Each has others, which follow
 * from what it is. */
static po_status compare_fresh(po_ctx *ctx, const po_select_spec *spec, uint64_t seed,
                               po_verdict *verdict) {
    po_verify_report *all = &verdict->verify, fresh;
    po_verify_spec check = comparison(spec);
    double left = spec->until > 0 ? spec->until - po_now() : HUGE_VAL;
    check.ladder = false;
    check.fresh = PO_FRESH_SETS;
    check.fresh_only = true;
    check.fresh_seed = seed;
    if (spec->kernels) /* which are compared in other forms besides */
        left *= part_for_fresh;
    check.seconds = fmax(least_for_fresh, fmin(left, most_for_fresh));
    for (; check.n_sizes < all->sizes; check.n_sizes++)
        check.sizes[check.n_sizes] = all->size[check.n_sizes];
    po_step(ctx, 0.95, "comparing on fresh inputs");
    PO_TRY(po_verify(ctx, &check, &fresh));
    po_log(ctx, "%u fresh sets of inputs, largest difference %.2e: %.1f s", fresh.fresh,
           fresh.max_rel, fresh.seconds);
    po_verify_join(all, &fresh);
    if (fresh.evidence == PO_EVIDENCE_NONE || fresh.equal)
        return PO_OK;
    return conclude(verdict, PO_VERDICT_WRONG, "on fresh inputs: %.370s", fresh.why);
}

static po_status decide(po_ctx *ctx, po_arena *arena, const po_select_spec *spec,
                        uint64_t fresh_seed, po_verdict *verdict) {
    po_verify_spec check = comparison(spec);
    check.fresh = spec->loads ? PO_FRESH_SETS : 0;
    check.fresh_seed = fresh_seed;
    po_step(ctx, 0, "comparing outputs");
    PO_TRY(po_verify(ctx, &check, &verdict->verify));
    const po_verify_report *report = &verdict->verify;
    po_log(ctx, "compared with %u sets of inputs: %.1f s", report->sets, report->seconds);
    if (report->evidence == PO_EVIDENCE_NONE)
        return conclude(verdict, PO_VERDICT_UNTESTED, "it could not be tested: %.300s",
                        report->why);
    if (!report->equal)
        return conclude(verdict, PO_VERDICT_WRONG, "%.390s", report->why);
    if (report->random_outputs > 0)
        return conclude(verdict, PO_VERDICT_UNTESTED,
                        "it could not be tested: %u outputs differ from run to run",
                        report->random_outputs);
    if (report->evidence != PO_EVIDENCE_RUNTIME)
        return conclude(verdict, PO_VERDICT_UNTESTED,
                        "it could not be timed: ONNX Runtime %s does not run the original",
                        spec->cost->machine.runtime);
    reader r = {ctx, arena, spec, NULL, verdict};
    po_inputs *plan = NULL;
    PO_TRY(po_inputs_plan(ctx, arena, spec->graph, spec->candidate_graph, &plan));
    PO_TRY(po_inputs_want(ctx, arena, plan, spec->meant, spec->n_meant));
    r.plan = plan;
    PO_TRY(measure(&r));
    return po_verdict_accepted(verdict) && !spec->loads
               ? compare_fresh(ctx, spec, fresh_seed, verdict)
               : PO_OK;
}

po_status po_select(po_ctx *ctx, const po_select_spec *spec, po_verdict *verdict) {
    memset(verdict, 0, sizeof *verdict);
    PO_TRY(po_cost_need_runtime(ctx, spec->cost));
    po_hash key;
    bool same;
    PO_TRY(verdict_key(ctx, spec, &key, &same));
    if (same) {
        verdict->verify.equal = verdict->verify.identical = 1;
        return conclude(verdict, PO_VERDICT_SAME_FILE, "nothing was changed");
    }
    if (po_cache_get_fixed(spec->cost->cache, "verdict", key, verdict, sizeof *verdict) &&
        sensible(verdict)) {
        verdict->cached = 1;
        return PO_OK;
    }
    memset(verdict, 0, sizeof *verdict);
    po_arena *arena = po_arena_create(ctx);
    po_status status = decide(ctx, arena, spec, key.lo ^ key.hi, verdict);
    po_arena_free(arena);
    PO_TRY(status);
    /* What stood in the way of a test (memory, a limit) may be gone the next time, and so may what
     * kept the processors. */
    if (verdict->code != PO_VERDICT_UNTESTED && !po_verdict_disturbed(verdict))
        po_cache_put(spec->cost->cache, "verdict", key, verdict, sizeof *verdict);
    return PO_OK;
}

/* Readings of many candidates, down to the few that may be the fastest. */
#include "select/rank.h"

#include <math.h>
#include <stdio.h>

enum { FEW = 4, MOST_KEPT = 6, HEAVY_KEPT = 2, BATCH = PO_TIMING_MAX - 1, STEPS = 3, QUICK = 2 };
static const double close_enough = 0.9; /* of the best short reading */
static const double heavy_close = 0.95;
static const double alike = 0.01;     /* what differs by less is not told apart */
static const double seconds_each = 1; /* of the first step, for each model in it; then doubled */
static const double least_width = 0.005;

typedef struct ranking {
    po_ctx *ctx;
    const po_rank_spec *spec;
    po_timing *timing;
    bool *read;
    uint32_t batch; /* candidates that a process has room for, beside the original */
} ranking;

/* Two readings of one gain, each with the weight that its interval gives it. Of two questions, one
 * thread's and that of more, the one counts that was to be answered, or else could be. */
static po_timing join(const po_timing *a, const po_timing *b) {
    if (a->threads != b->threads) {
        const po_timing *more = a->threads > b->threads ? a : b, *one = more == a ? b : a;
        return po_timing_disturbed(more->waited) ? *one : *more;
    }
    double wa = log(a->high / a->low), wb = log(b->high / b->low);
    wa = 1 / (wa * wa), wb = 1 / (wb * wb);
    double of_a = wa / (wa + wb), gain = of_a * log(a->gain) + (1 - of_a) * log(b->gain);
    double half = fmax(0.5 / sqrt(wa + wb), least_width);
    /* Where they contradict one another neither's interval says enough. */
    half = fmax(half, 0.5 * fabs(log(a->gain / b->gain)));
    po_timing joined = *b;
    joined.seconds = of_a * a->seconds + (1 - of_a) * b->seconds;
    joined.gain = exp(gain);
    joined.low = exp(gain - half);
    joined.high = exp(gain + half);
    joined.waited = of_a * a->waited + (1 - of_a) * b->waited;
    return joined;
}

/* Where there is no room for all of them nothing is read, and r->batch says for how many there is.
 */
static po_status time_batch(ranking *r, const uint32_t *which, uint32_t n, uint32_t quick,
                            double seconds, uint64_t seed) {
    const char *models[PO_TIMING_MAX] = {r->spec->original};
    po_timing timing[PO_TIMING_MAX];
    for (uint32_t i = 0; i < n; i++)
        models[i + 1] = r->spec->candidates[which[i]];
    po_timing_spec spec = r->spec->timing;
    spec.n = n + 1;
    spec.models = models;
    spec.seconds = seconds;
    spec.quick = quick;
    spec.ranking = true;
    spec.bound = 1;
    spec.seed = seed;
    po_timing_work work;
    PO_TRY(po_time_models(r->ctx, &spec, timing, &work));
    if (work.filled > 0) {
        po_log(r->ctx, "a process has room for %u models", work.filled);
        r->batch = work.filled - 1;
        return PO_OK;
    }
    po_log(r->ctx, "%u candidates in %u processes, %u rounds: %.1f s", n, work.processes,
           work.rounds, work.spent);
    for (uint32_t i = 0; i < n; i++) {
        po_timing *t = &r->timing[which[i]];
        bool again = r->read[which[i]];
        *t = again ? join(t, &timing[i + 1]) : timing[i + 1];
        r->read[which[i]] = quick == 0;
    }
    return PO_OK;
}

static void sort_by_gain(const ranking *r, uint32_t *which, uint32_t n) {
    for (uint32_t i = 1; i < n; i++)
        for (uint32_t k = i; k > 0; k--) {
            uint32_t *a = &which[k - 1], *b = &which[k], swap = *a;
            if (r->timing[*a].gain >= r->timing[*b].gain)
                break;
            *a = *b;
            *b = swap;
        }
}

/* Short readings of all; the best few stay, best first. */
static po_status shorten(ranking *r, uint32_t *which, uint32_t *n) {
    bool heavy = r->spec->heavy;
    uint32_t all = *n, most = heavy ? HEAVY_KEPT : MOST_KEPT;
    for (uint32_t i = 0; i < all;) {
        uint32_t some = all - i < r->batch ? all - i : r->batch;
        po_step(r->ctx, 0.3 * i / all, "timing %u candidates", all);
        PO_TRY(time_batch(r, which + i, some, heavy ? 1 : QUICK, 0, 7 + i));
        i += some <= r->batch ? some : 0;
    }
    sort_by_gain(r, which, all);
    *n = all < most ? all : most;
    double least = (heavy ? heavy_close : close_enough) * r->timing[which[0]].gain;
    while (*n > 1 && r->timing[which[*n - 1]].gain < least)
        --*n;
    return PO_OK;
}

/* Leaves out who is surely behind; sorts the others, best first. */
static uint32_t drop_losers(const ranking *r, uint32_t *which, uint32_t n) {
    uint32_t kept = 0;
    for (uint32_t i = 0; i < n; i++)
        if (r->timing[which[i]].over_best >= 1)
            which[kept++] = which[i];
    sort_by_gain(r, which, kept);
    return kept;
}

static bool all_alike(const ranking *r, const uint32_t *which, uint32_t n) {
    for (uint32_t i = 0; i < n; i++)
        if (r->timing[which[i]].over_best > 1 + alike)
            return false;
    return true;
}

/* Where a process does not hold all that are left, each is timed with the original alone, and their
 * gains are compared. */
static po_status time_alone(ranking *r, const uint32_t *which, uint32_t n) {
    for (uint32_t i = 0; i < n; i++) {
        double seconds = 2 * seconds_each, until = r->spec->until;
        if (i > 0 && until > 0 && po_now() + seconds > until)
            break;
        po_step(r->ctx, 0.3 + 0.1 * i / n, "timing %u candidates", n);
        PO_TRY(time_batch(r, which + i, 1, 0, seconds, 1000 + i));
    }
    return PO_OK;
}

static po_status rank_those(ranking *r, uint32_t *which, uint32_t n) {
    const po_rank_spec *spec = r->spec;
    if (n > FEW || (spec->heavy && n > 1))
        PO_TRY(shorten(r, which, &n));
    const uint32_t steps = spec->steps > 0 && spec->steps < STEPS ? spec->steps : STEPS;
    for (uint32_t step = 0; step < steps; step++) {
        if (n > r->batch)
            return time_alone(r, which, n);
        double seconds = seconds_each * (n + 1) * (1u << step), start = po_now();
        if (step > 0 && spec->until > 0 && start + seconds > spec->until)
            break;
        po_step(r->ctx, 0.3, "timing %u candidates", n);
        PO_TRY(time_batch(r, which, n, 0, seconds, 1000 + step));
        if (n > r->batch)
            continue;
        n = drop_losers(r, which, n);
        if (n < 2 || all_alike(r, which, n))
            break;
    }
    return PO_OK;
}

/* What ends the run, and not one candidate. */
static bool is_fatal(po_status status) {
    return status == PO_CANCELLED || status == PO_TIME_LIMIT || status == PO_NO_MEMORY;
}

/* Each beside the original alone: who fails there, while the original alone does not, is out. */
static po_status drop_refused(ranking *r, po_arena *arena, const char **refused, uint32_t *which,
                              uint32_t *n) {
    uint32_t kept = 0;
    PO_TRY(time_batch(r, which, 0, 1, 0, 1));
    for (uint32_t i = 0; i < *n; i++) {
        po_status status = time_batch(r, &which[i], 1, 1, 0, 1);
        if (is_fatal(status))
            return status;
        if (status == PO_OK) {
            which[kept++] = which[i];
            continue;
        }
        refused[which[i]] = po_arena_strdup(arena, r->ctx->error.message);
        po_ctx_clear(r->ctx);
    }
    *n = kept;
    return PO_OK;
}

po_status po_rank(po_ctx *ctx, po_arena *arena, const po_rank_spec *spec, po_timing *timing,
                  bool *read, const char **refused) {
    ranking r = {ctx, spec, timing, read, BATCH};
    if (spec->n > PO_RANK_MAX)
        return po_fail(ctx, PO_BAD_USE, "%u candidates to rank (limit %d)", spec->n, PO_RANK_MAX);
    for (uint32_t i = 0; i < spec->n; i++)
        refused[i] = NULL;
    for (;;) { /* with fewer each time */
        uint32_t which[PO_RANK_MAX], left[PO_RANK_MAX], n = 0, kept;
        char why[PO_MESSAGE_MAX];
        for (uint32_t i = 0; i < spec->n; i++) {
            timing[i] = (po_timing){.seconds = 0};
            read[i] = false;
            if (!refused[i])
                which[n++] = left[i] = i;
        }
        if (n == 0)
            return PO_OK;
        po_status status = rank_those(&r, which, n);
        if (status == PO_OK || is_fatal(status))
            return status;
        snprintf(why, sizeof why, "%s", ctx->error.message);
        po_log(ctx, "first readings failed, each is read alone: %s", why);
        po_ctx_clear(ctx);
        kept = n;
        PO_TRY(drop_refused(&r, arena, refused, left, &kept));
        if (kept == n)
            return po_fail(ctx, status, "%s", why);
    }
}

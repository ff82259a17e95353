/* What samples of rounds say of models: which rounds and processes count, the gain, its interval.
 */
#include "cost/timing_internal.h"

#include <math.h>
#include <stdlib.h>

enum { RESAMPLES = 400, LEAST_ROUNDS = 3 };
/* What no number of samples removes: placement, frequency, neighbours. In log units; where a single
 * group of processes has to speak for all, it is as much as the placement of one may make. */
static const double least_half_width = 0.005, half_width_of_one = 0.03;
static const double most_lost = 0.99;

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

double po_median(double *values, uint32_t n) {
    if (n == 0)
        return 0;
    qsort(values, n, sizeof *values, by_value);
    return n % 2 ? values[n / 2] : 0.5 * (values[n / 2 - 1] + values[n / 2]);
}

/* The mean over the middle half of sorted values: as robust as needed, and steadier than the
 * median of a few processes. */
static double middle_mean(double *values, uint32_t n) {
    qsort(values, n, sizeof *values, by_value);
    uint32_t cut = n / 4;
    double sum = 0;
    for (uint32_t i = cut; i < n - cut; i++)
        sum += values[i];
    return sum / (n - 2 * cut);
}

typedef struct draws {
    uint64_t seed, stream, at;
} draws;

static uint32_t draw(draws *d, uint32_t n) {
    return (uint32_t)(po_random_u64(d->seed, d->stream, d->at++) % n);
}

/* --- which rounds count --- */

typedef struct moment {
    double waited, seconds; /* of both models: the larger part; the sum of logs */
    double ratio;           /* log of the first's time over the second's */
    double second;          /* seconds of the second, and of the first */
    double first;
} moment;

static int by_waiting(const void *a, const void *b) {
    const moment *x = a, *y = b;
    return x->waited != y->waited ? (x->waited < y->waited ? -1 : 1)
                                  : (x->seconds > y->seconds) - (x->seconds < y->seconds);
}

static int by_seconds(const void *a, const void *b) {
    const moment *x = a, *y = b;
    return (x->seconds > y->seconds) - (x->seconds < y->seconds);
}

/* Moves the rounds that count to the front: those in which no thread waited, or of a process that
 * has hardly any the quarter with the least waiting; of these the half that took least. */
static uint32_t choose_rounds(moment *m, uint32_t n) {
    uint32_t quiet = 0;
    qsort(m, n, sizeof *m, by_waiting);
    while (quiet < n && m[quiet].waited <= PO_TIMING_QUIET)
        quiet++;
    if (quiet < LEAST_ROUNDS)
        quiet = n / 4 > LEAST_ROUNDS ? n / 4 : n < LEAST_ROUNDS ? n : LEAST_ROUNDS;
    qsort(m, quiet, sizeof *m, by_seconds);
    uint32_t half = (quiet + 1) / 2;
    return half > LEAST_ROUNDS ? half : quiet < LEAST_ROUNDS ? quiet : LEAST_ROUNDS;
}

/* What two models' samples say of one another: the rounds that count, by process. */
typedef struct pair {
    uint32_t n; /* processes */
    uint32_t *rounds;
    double **ratios;      /* logs, by process and round */
    double **doubts;      /* of them, logs too: what waiting may have made of one model alone */
    double *waited;       /* mean, by process */
    double first, second; /* median seconds */
} pair;

static void make_pair(po_arena *arena, const po_timing_process *processes, uint32_t n_processes,
                      uint32_t n, uint32_t a, uint32_t b, pair *out) {
    uint32_t total = 0, k = 0;
    for (uint32_t p = 0; p < n_processes; p++)
        total += processes[p].rounds;
    *out = (pair){.n = n_processes,
                  .rounds = PO_NEW_N(arena, uint32_t, n_processes),
                  .ratios = PO_NEW_N(arena, double *, n_processes),
                  .doubts = PO_NEW_N(arena, double *, n_processes),
                  .waited = PO_NEW_N(arena, double, n_processes)};
    moment *m = PO_NEW_N(arena, moment, total);
    double *first = PO_NEW_N(arena, double, total), *second = PO_NEW_N(arena, double, total);
    for (uint32_t p = 0; p < n_processes; p++) {
        const po_timing_process *process = &processes[p];
        for (uint32_t r = 0; r < process->rounds; r++) {
            const double *t = process->samples + (size_t)n * r;
            const double *w = process->waited ? process->waited + (size_t)n * r : NULL;
            m[r] = (moment){w ? fmax(w[a], w[b]) : 0, log(t[a]) + log(t[b]), log(t[a] / t[b]), t[b],
                            t[a]};
        }
        uint32_t used = out->rounds[p] = choose_rounds(m, process->rounds);
        out->ratios[p] = PO_NEW_N(arena, double, used);
        out->doubts[p] = PO_NEW_N(arena, double, used);
        for (uint32_t r = 0; r < used; r++, k++) {
            out->ratios[p][r] = m[r].ratio;
            if (po_timing_disturbed(m[r].waited))
                out->doubts[p][r] = -log(1 - fmin(m[r].waited, most_lost));
            out->waited[p] += m[r].waited / used;
            first[k] = m[r].first;
            second[k] = m[r].second;
        }
    }
    out->first = po_median(first, k);
    out->second = po_median(second, k);
}

/* --- the gain --- */

/* Processes are taken in groups, in which the orders of loading cancel; where any were quiet the
 * others are left out. Returns how many of them count. */
static uint32_t choose_groups(const pair *pr, uint32_t size, uint32_t *groups, double *waited) {
    uint32_t n = pr->n / size, quiet = 0;
    double all = 0, of_quiet = 0;
    for (uint32_t g = 0; g < n; g++) {
        double w = 0;
        for (uint32_t p = g * size; p < (g + 1) * size; p++)
            w += pr->waited[p] / size;
        all += w;
        if (w <= PO_TIMING_QUIET) {
            groups[quiet++] = g;
            of_quiet += w;
        }
    }
    if (quiet > 0) {
        *waited = of_quiet / quiet;
        return quiet;
    }
    for (uint32_t g = 0; g < n; g++)
        groups[g] = g;
    *waited = all / n;
    return n;
}

/* One estimate of the log gain, or with doubt 1 or -1 of its upper or lower end by what was waited.
 * With draws the groups and the rounds in them are resampled. */
static double estimate(const pair *pr, uint32_t size, const uint32_t *groups, uint32_t n_groups,
                       double doubt, draws *d, double *scratch, double *means) {
    for (uint32_t g = 0; g < n_groups; g++) {
        uint32_t from = groups[d ? draw(d, n_groups) : g] * size;
        double sum = 0;
        for (uint32_t p = from; p < from + size; p++) {
            uint32_t rounds = pr->rounds[p];
            for (uint32_t r = 0; r < rounds; r++) {
                uint32_t at = d ? draw(d, rounds) : r;
                scratch[r] = pr->ratios[p][at] + doubt * pr->doubts[p][at];
            }
            sum += po_median(scratch, rounds);
        }
        means[g] = sum / size;
    }
    return middle_mean(means, n_groups);
}

/* Of model b over model a. */
static void evaluate_pair(po_arena *arena, const po_timing_process *processes, uint32_t n_processes,
                          uint32_t n, uint32_t a, uint32_t b, uint64_t seed, po_timing *timing,
                          double *first) {
    pair pr;
    make_pair(arena, processes, n_processes, n, a, b, &pr);
    uint32_t most = 0, size = n_processes >= PO_TIMING_GROUP ? PO_TIMING_GROUP : 1;
    for (uint32_t p = 0; p < n_processes; p++)
        most = pr.rounds[p] > most ? pr.rounds[p] : most;
    double *scratch = PO_NEW_N(arena, double, most), *means = PO_NEW_N(arena, double, n_processes),
           resampled[RESAMPLES];
    uint32_t *groups = PO_NEW_N(arena, uint32_t, n_processes);
    uint32_t n_groups = choose_groups(&pr, size, groups, &timing->waited);
    double log_gain = estimate(&pr, size, groups, n_groups, 0, NULL, scratch, means);
    draws d = {seed, b, 0};
    for (uint32_t i = 0; i < RESAMPLES; i++)
        resampled[i] = estimate(&pr, size, groups, n_groups, 0, &d, scratch, means);
    qsort(resampled, RESAMPLES, sizeof *resampled, by_value);
    double low = resampled[RESAMPLES * 25 / 1000], high = resampled[RESAMPLES * 975 / 1000];
    bool one = n_groups == 1 && n_processes > size;
    double least = one ? half_width_of_one : least_half_width, under = 0, over = 0;
    if (po_timing_disturbed(timing->waited)) {
        /* Waiting may have struck one of the two alone, to the good or to the bad of the gain. */
        under = estimate(&pr, size, groups, n_groups, -1, NULL, scratch, means) - log_gain;
        over = estimate(&pr, size, groups, n_groups, 1, NULL, scratch, means) - log_gain;
    }
    timing->seconds = pr.second;
    timing->gain = exp(log_gain);
    timing->low = exp(fmin(low, log_gain - least) + under);
    timing->as_read = exp(fmax(high, log_gain + least));
    timing->high = timing->as_read * exp(over);
    *first = pr.first;
}

static void compare_with_best(po_arena *arena, const po_timing_process *processes,
                              uint32_t n_processes, const po_timing_spec *spec,
                              const bool *left_out, po_timing *timing) {
    uint32_t best = 0;
    for (uint32_t m = 1; m < spec->n; m++)
        if (!(left_out && left_out[m]) && (best == 0 || timing[m].gain > timing[best].gain))
            best = m;
    for (uint32_t m = 1; m < spec->n && best > 0; m++) {
        po_timing over;
        double first;
        if (m == best || (left_out && left_out[m]))
            continue;
        evaluate_pair(arena, processes, n_processes, spec->n, best, m, spec->seed + spec->n, &over,
                      &first);
        timing[m].over_best = over.high;
    }
}

void po_timing_evaluate(po_arena *arena, const po_timing_process *processes, uint32_t n_processes,
                        const po_timing_spec *spec, const bool *left_out, po_timing *timing) {
    po_arena *scratch = po_arena_child(arena);
    uint32_t n = spec->n;
    pair own;
    make_pair(scratch, processes, n_processes, n, 0, 0, &own);
    timing[0] = (po_timing){
        .seconds = own.first, .gain = 1, .low = 1, .high = 1, .as_read = 1, .over_best = 1};
    choose_groups(&own, 1, PO_NEW_N(scratch, uint32_t, n_processes), &timing[0].waited);
    for (uint32_t m = 1; m < n; m++) {
        double first;
        evaluate_pair(scratch, processes, n_processes, n, 0, m, spec->seed, &timing[m], &first);
        timing[m].over_best = 1;
        if (m == 1)
            timing[0].seconds = first;
    }
    for (uint32_t m = 0; m < n; m++)
        timing[m].threads = spec->threads;
    if (spec->ranking && n > 2)
        compare_with_best(scratch, processes, n_processes, spec, left_out, timing);
    po_arena_free(scratch);
}

/* --- where one thread answers for more --- */

bool po_timing_process_disturbed(const po_timing_process *process, uint32_t n) {
    uint32_t least = process->rounds < LEAST_ROUNDS ? process->rounds : LEAST_ROUNDS;
    for (uint32_t m = n > 1; process->waited && m < n; m++) {
        uint32_t quiet = 0;
        for (uint32_t r = 0; r < process->rounds; r++) {
            const double *w = process->waited + (size_t)n * r;
            quiet += fmax(w[0], w[m]) <= PO_TIMING_QUIET;
        }
        if (quiet >= least)
            return false;
    }
    return process->waited != NULL;
}

void po_timing_ask_one(const po_timing_spec *spec, const po_timing *timing, bool *any,
                       bool *left_out) {
    *any = false;
    for (uint32_t m = 0; m < spec->n; m++) {
        const po_timing *t = &timing[m];
        bool sure = t->low > spec->bound && !(spec->ranking && spec->n > 2);
        /* What decides has to be above the bound in the disturbed rounds as well; an order is no
         * decision, and only leaves out what is surely below it. */
        left_out[m] = m == 0 || (spec->ranking ? t->as_read : t->gain) < spec->bound;
        *any |= !left_out[m] && !sure && spec->threads > 1 && spec->bound > 0 &&
                po_timing_disturbed(t->waited);
    }
}

void po_timing_take_one(const po_timing_spec *spec, const po_timing *one, const bool *left_out,
                        po_timing *timing) {
    for (uint32_t m = 0; m < spec->n; m++) {
        po_timing *t = &timing[m];
        double waited = t->waited;
        if (m > 0 && left_out[m]) { /* it is behind, and others need no more readings for it */
            t->over_best = 1;
            continue;
        }
        *t = one[m];
        t->waited = waited;
        if (m > 0) {
            t->low /= PO_TIMING_MARGIN;
            t->high *= PO_TIMING_MARGIN;
        }
    }
}

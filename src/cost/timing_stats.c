#include "cost/timing_private.h"

#include <math.h>
#include <stdlib.h>

enum { RESAMPLES = 400 };
/* What no number of samples removes: placement, frequency, neighbours. In log units. */
static const double least_half_width = 0.005;

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

/* One estimate of the log gain. Processes are taken in groups, in which the orders of loading
 * cancel. With draws the groups and the rounds in them are resampled. */
static double estimate(const po_timing_process *processes, uint32_t n_processes, uint32_t n,
                       uint32_t model, draws *d, double *scratch, double *groups) {
    uint32_t size = n_processes >= PO_TIMING_GROUP ? PO_TIMING_GROUP : 1;
    uint32_t n_groups = n_processes / size;
    for (uint32_t g = 0; g < n_groups; g++) {
        uint32_t from = (d ? draw(d, n_groups) : g) * size;
        double sum = 0;
        for (uint32_t p = from; p < from + size; p++) {
            const po_timing_process *process = &processes[p];
            for (uint32_t r = 0; r < process->rounds; r++) {
                const double *round =
                    process->samples + (size_t)n * (d ? draw(d, process->rounds) : r);
                scratch[r] = log(round[0] / round[model]);
            }
            sum += po_median(scratch, process->rounds);
        }
        groups[g] = sum / size;
    }
    return middle_mean(groups, n_groups);
}

void po_timing_evaluate(po_arena *arena, const po_timing_process *processes, uint32_t n_processes,
                        uint32_t n, uint64_t seed, po_timing *timing) {
    uint32_t most = 0, total = 0;
    for (uint32_t p = 0; p < n_processes; p++) {
        total += processes[p].rounds;
        if (processes[p].rounds > most)
            most = processes[p].rounds;
    }
    double *scratch = PO_NEW_N(arena, double, total),
           *groups = PO_NEW_N(arena, double, n_processes);
    double *resampled = PO_NEW_N(arena, double, RESAMPLES);
    for (uint32_t m = 0; m < n; m++) {
        uint32_t k = 0;
        for (uint32_t p = 0; p < n_processes; p++)
            for (uint32_t r = 0; r < processes[p].rounds; r++)
                scratch[k++] = processes[p].samples[(size_t)n * r + m];
        timing[m].seconds = po_median(scratch, k);
        timing[m].gain = timing[m].low = timing[m].high = 1;
        if (m == 0)
            continue;
        double log_gain = estimate(processes, n_processes, n, m, NULL, scratch, groups);
        draws d = {seed, m, 0};
        for (uint32_t b = 0; b < RESAMPLES; b++)
            resampled[b] = estimate(processes, n_processes, n, m, &d, scratch, groups);
        qsort(resampled, RESAMPLES, sizeof *resampled, by_value);
        double low = resampled[RESAMPLES * 25 / 1000], high = resampled[RESAMPLES * 975 / 1000];
        timing[m].gain = exp(log_gain);
        timing[m].low = exp(fmin(low, log_gain - least_half_width));
        timing[m].high = exp(fmax(high, log_gain + least_half_width));
    }
}

/* Rounds over models in child processes, and what is made of their samples. */
#include "cost/isolate.h"
#include "cost/timing_internal.h"
#include "cost/waits.h"

#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

/* Times in seconds. */
static const double default_seconds = 8;
static const double least_slice = 60e-6;  /* between two readings of the clock */
static const double block_aim = 6e-3;     /* timed part of a block, where runs are short */
static const double warm_aim = 300e-6;    /* untimed part of a block, at least one run */
static const double clear_margin = 0.015; /* of a gain: no more processes needed */
static const double fine_width = 0.008;   /* of an interval: likewise */
static const double slow_round = 0.5;
static const double quick_block = 2e-3;
static const double slow_run = 4e-3;       /* needs no untimed runs in a quick reading */
static const double very_slow_run = 60e-3; /* nor in any: it starts from cold caches anyway */
static const double quick_share = 0.15;    /* of a quick process, where its rounds are short */
static const double longest_share = 0.3;   /* of a process, where its rounds are short */
/* Parts of the time: for rounds that are all disturbed, where one thread may answer, and where it
 * shows late whether it may; for that one, where the others took all of it. */
static const double hopeless_share = 0.25, longest_hope = 0.5, least_for_one = 0.5;
enum {
    LEAST_ROUNDS = 5,
    LEAST_SLOW_ROUNDS = 3,
    QUICK_ROUNDS = 7,
    LEAST_QUICK_ROUNDS = 3,
    MOST_ROUNDS = 60,
    MOST_PROCESSES = 96,
    LONGEST_PROCESS = 600, /* seconds beyond the plan until a child counts as hung */
    MOST_SLICES = 64
};

typedef struct job {
    const po_timing_spec *spec;
    uint32_t number; /* of the process */
    double seconds;  /* for its rounds */
} job;

/* What the child sends: this, then rounds x n doubles of seconds, and as many of waiting. */
typedef struct head {
    uint32_t rounds, runs, filled;
} head;

typedef struct plan {
    uint32_t warm, runs, slices; /* untimed runs; runs a slice; slices a block */
} plan;

static double read_clock(uint32_t threads) {
    return threads == 1 ? po_thread_seconds() : po_now();
}

/* Seconds of one run: the median over the block's slices, or over those in which no thread waited
 * where there are such; and the part of them for which threads did. */
static po_status time_block(po_ctx *ctx, po_ort_run *run, const plan *p, uint32_t threads,
                            const po_waits *waits, double *seconds, double *waited) {
    double slices[MOST_SLICES], quiet[MOST_SLICES], all = 0, lost = 0;
    uint32_t n_quiet = 0;
    PO_TRY(po_ort_run_repeat(ctx, run, p->warm));
    double before = po_waits_read(waits);
    for (uint32_t i = 0; i < p->slices; i++) {
        double start = read_clock(threads);
        PO_TRY(po_ort_run_repeat(ctx, run, p->runs));
        double spent = read_clock(threads) - start, after = po_waits_read(waits);
        slices[i] = spent / p->runs;
        if (after - before <= PO_TIMING_QUIET * spent)
            quiet[n_quiet++] = slices[i];
        all += spent;
        lost += after - before;
        before = after;
    }
    *seconds = n_quiet > 0 ? po_median(quiet, n_quiet) : po_median(slices, p->slices);
    *waited = n_quiet > 0 || !(all > 0) ? 0 : lost / all;
    if (!(*seconds > 0))
        *seconds = 1e-9;
    po_ort_run_drop_outputs(run); /* the next model's fit where they were */
    return PO_OK;
}

/* How long one run takes, roughly: the least of a few. */
static po_status estimate_run(po_ctx *ctx, po_ort_run *run, const po_timing_spec *spec,
                              double *seconds) {
    uint32_t threads = spec->threads, least = spec->quick ? 1 : 3;
    double until = po_now() + 2e-3;
    *seconds = HUGE_VAL;
    for (uint32_t i = 0; i < least || (i < 50 && po_now() < until); i++) {
        double start = read_clock(threads);
        PO_TRY(po_ort_run_repeat(ctx, run, 1));
        double one = read_clock(threads) - start;
        if (one < *seconds)
            *seconds = one > 1e-7 ? one : 1e-7;
        if (one > very_slow_run)
            break;
    }
    po_ort_run_drop_outputs(run);
    return PO_OK;
}

static uint32_t times_to_fill(double aim, double one, uint32_t most) {
    double n = ceil(aim / one);
    return n < 1 ? 1 : n > most ? most : (uint32_t)n;
}

static plan make_plan(const double *estimates, uint32_t n, bool quick) {
    double least = HUGE_VAL, most = 0;
    for (uint32_t m = 0; m < n; m++) {
        least = fmin(least, estimates[m]);
        most = fmax(most, estimates[m]);
    }
    plan p;
    p.warm = times_to_fill(warm_aim, most, 1000);
    p.runs = times_to_fill(least_slice, least, 1000);
    p.slices = times_to_fill(quick ? quick_block : block_aim, most * p.runs, MOST_SLICES);
    if (least > (quick ? slow_run : very_slow_run))
        p.warm = 0;
    return p;
}

/* Moves what is allocated next by an amount of its own: children of one parent would otherwise
 * all get the same addresses. */
static void shift_heap(uint64_t seed, uint64_t number, uint64_t model) {
    for (uint64_t i = 0; i < 4; i++) {
        size_t size = (size_t)(po_random_u64(seed, 77 + number, 8 * model + i) % (64u << (4 * i)));
        volatile char *hole = malloc(size + 16);
        if (hole)
            hole[0] = 1;
    }
}

void po_timing_shuffle(uint32_t *order, uint32_t n, uint64_t seed, uint64_t stream,
                       uint64_t round) {
    for (uint32_t i = 0; i < n; i++)
        order[i] = i;
    for (uint32_t i = n; i > 1; i--) {
        uint32_t k = (uint32_t)(po_random_u64(seed, stream, round * PO_TIMING_MAX + i) % i);
        uint32_t kept = order[k];
        order[k] = order[i - 1];
        order[i - 1] = kept;
    }
}

/* Which model process `number` loads at place k: each even process's order is turned round in the
 * odd one after it, so that being loaded earlier or later cancels in each pair. */
static uint32_t loaded_at(uint32_t number, uint32_t k, uint32_t n) {
    uint32_t place = number % 2 ? n - 1 - k : k;
    return (place + number / 2) % n;
}

/* Bytes of memory that this process has. */
static double resident(void) {
    char text[128] = "";
    long pages = 0;
    int file = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return 0;
    ssize_t n = read(file, text, sizeof text - 1);
    close(file);
    if (n > 0 && strchr(text, ' ') != NULL)
        pages = strtol(strchr(text, ' '), NULL, 10);
    return (double)pages * (double)sysconf(_SC_PAGESIZE);
}

/* The most that it had. */
static double most_resident(void) {
    struct rusage used;
    return getrusage(RUSAGE_SELF, &used) == 0 ? 1024.0 * (double)used.ru_maxrss : 0;
}

/* Bytes that models up to place k hold, and those that the first does. */
typedef struct holding {
    double all, first;
} holding;

/* Whether one more than the models up to place k would be too many. Sessions share what they work
 * in, so that each adds less than the first; while one is loaded it takes more than it keeps. */
static bool is_full(const po_timing_spec *spec, uint32_t k, holding h, double part) {
    double more = k == 0 ? h.all : (h.all - h.first) / k;
    return spec->room > 0 && k + 1 < spec->n && most_resident() + more > part * spec->room;
}

static po_status time_in_child(po_ctx *ctx, po_arena *arena, po_reply *reply, void *user) {
    const job *j = user;
    const po_timing_spec *spec = j->spec;
    uint32_t n = spec->n;
    po_ort *ort = NULL;
    PO_TRY(po_ort_open(ctx, arena, &(po_ort_options){spec->library, spec->threads}, &ort));
    po_ort_run *runs[PO_TIMING_MAX];
    double estimates[PO_TIMING_MAX], before = resident();
    holding holds = {0, 0};
    for (uint32_t k = 0; k < n; k++) {
        uint32_t m = loaded_at(j->number, k, n);
        shift_heap(spec->seed, j->number, m);
        po_session *session = NULL;
        const po_datum *inputs = NULL;
        PO_TRY(po_session_open(
            ctx, arena, ort, spec->models[m],
            &(po_session_options){.kernels = spec->kernels, .isa = spec->isa, .files = spec->files},
            &session));
        PO_TRY(po_feed_order(ctx, arena, session, spec->feed, &inputs));
        PO_TRY(po_ort_run_prepare(ctx, session, inputs, &runs[m]));
        double start = read_clock(spec->threads);
        PO_TRY(po_ort_run_repeat(ctx, runs[m], 1));
        estimates[m] = read_clock(spec->threads) - start;
        holds.all = resident() - before;
        /* The second run makes another plan of its memory. */
        if (is_full(spec, k, holds, 0.25)) {
            PO_TRY(po_ort_run_repeat(ctx, runs[m], 1));
            holds.all = resident() - before;
        }
        po_ort_run_drop_outputs(runs[m]);
        if (k > 0 && is_full(spec, k, holds, 1)) {
            po_reply_add(reply, &(head){.filled = k + 1}, sizeof(head));
            return PO_OK;
        }
        holds.first = k == 0 ? holds.all : holds.first;
    }
    for (uint32_t m = 0; m < n; m++)
        if (estimates[m] < 2 * very_slow_run)
            PO_TRY(estimate_run(ctx, runs[m], spec, &estimates[m]));

    plan p = make_plan(estimates, n, spec->quick > 0);
    double *samples = PO_NEW_N(arena, double, (size_t)MOST_ROUNDS *n);
    double *waited = PO_NEW_N(arena, double, (size_t)MOST_ROUNDS *n);
    po_waits waits = {.n = 0};
    if (spec->threads > 1)
        po_waits_open(&waits);
    head h = {0, p.runs * p.slices, 0};
    double until = po_now() + j->seconds, round = 0;
    for (uint32_t m = 0; m < n; m++)
        round += estimates[m] * (p.warm + p.runs * p.slices);
    uint32_t least = spec->quick          ? LEAST_QUICK_ROUNDS
                     : round > slow_round ? LEAST_SLOW_ROUNDS
                                          : LEAST_ROUNDS;
    if (spec->quick && round > slow_round)
        least = 1;
    uint32_t most = spec->quick ? QUICK_ROUNDS : MOST_ROUNDS;
    while (h.rounds < least || (h.rounds < most && po_now() < until)) {
        uint32_t order[PO_TIMING_MAX];
        po_timing_shuffle(order, n, spec->seed, 1000 + j->number, h.rounds);
        for (uint32_t k = 0; k < n; k++) {
            size_t at = (size_t)h.rounds * n + order[k];
            PO_TRY(time_block(ctx, runs[order[k]], &p, spec->threads, &waits, &samples[at],
                              &waited[at]));
        }
        h.rounds++;
        PO_TRY(po_ctx_poll(ctx));
    }
    po_reply_add(reply, &h, sizeof h);
    po_reply_add(reply, samples, sizeof *samples * h.rounds * n);
    po_reply_add(reply, waited, sizeof *waited * h.rounds * n);
    po_waits_close(&waits);
    return PO_OK;
}

/* A process of its own. */
static po_status time_in_process(void *user, po_ctx *ctx, po_arena *arena,
                                 const po_timing_spec *spec, uint32_t number, double seconds,
                                 po_timing_process *process) {
    (void)user;
    job j = {spec, number, seconds};
    po_bytes data;
    double start = po_now();
    PO_TRY(po_isolate(ctx, arena, "timing", seconds + LONGEST_PROCESS, time_in_child, &j, &data));
    head h = {0, 0, 0};
    memcpy(&h, data.data, data.size < sizeof h ? data.size : sizeof h);
    if (h.filled >= 2 && h.filled < spec->n && data.size == sizeof h) {
        *process = (po_timing_process){.filled = h.filled};
        return PO_OK;
    }
    size_t size = sizeof(double) * h.rounds * spec->n;
    if (h.rounds == 0 || h.rounds > MOST_ROUNDS || data.size != sizeof h + 2 * size)
        return po_fail(ctx, PO_INTERNAL, "timing: %zu bytes came back", data.size);
    const char *at = (const char *)data.data + sizeof h;
    *process = (po_timing_process){.rounds = h.rounds,
                                   .runs = h.runs,
                                   .samples = po_arena_memdup(arena, at, size),
                                   .waited = po_arena_memdup(arena, at + size, size),
                                   .spent = po_now() - start};
    return PO_OK;
}

/* margin: by which intervals are to grow yet. */
static bool settled(const po_timing *timing, const po_timing_spec *spec, const bool *left_out,
                    double margin) {
    for (uint32_t m = 1; m < spec->n; m++) {
        const po_timing *t = &timing[m];
        bool clear = t->low > (1 + clear_margin) * margin || t->high < (1 - clear_margin) / margin;
        bool fine = t->high - t->low < fine_width * t->gain;
        if (spec->ranking) /* and those behind need no more readings */
            clear = t->over_best < 1 || (spec->n == 2 && clear);
        if (!fine && (spec->thorough || !clear) && !(left_out && left_out[m]))
            return false;
    }
    return true;
}

po_timing_spec po_timing_brief(const char *library, uint32_t threads, const char *const *model,
                               const po_side_files *files) {
    return (po_timing_spec){.library = library,
                            .files = files,
                            .threads = threads,
                            .n = 1,
                            .models = model,
                            .quick = 1,
                            .seed = 1};
}

const char *po_timing_clock(uint32_t asked, uint32_t threads, char text[PO_TIMING_CLOCK]) {
    const char *plural = threads == 1 ? "" : "s";
    if (threads < asked)
        snprintf(text, PO_TIMING_CLOCK,
                 "%u thread%s, processor time: the machine was too busy for %u", threads, plural,
                 asked);
    else
        snprintf(text, PO_TIMING_CLOCK, "%u thread%s", threads, plural);
    return text;
}

/* Readings with one number of threads. */
typedef struct reading {
    const po_timing_spec *spec;
    const bool *left_out; /* as in po_timing_evaluate */
    double margin;        /* as in settled */
    uint32_t group;       /* processes that are added at a time */
    po_timing_process *processes;
    po_timing_work done;
} reading;

/* Whether more processes would be disturbed like all so far, where one thread may answer. */
static bool is_disturbed(const reading *r) {
    if (r->spec->threads == 1 || !(r->spec->bound > 0))
        return false;
    for (uint32_t p = 0; p < r->done.processes; p++)
        if (!po_timing_process_disturbed(&r->processes[p], r->spec->n))
            return false;
    return true;
}

/* Whether they would not even say more of whether one thread may answer. */
static bool is_hopeless(const reading *r, const po_timing *timing, double budget) {
    double spent = r->done.spent / budget;
    if (!is_disturbed(r) || spent < hopeless_share)
        return false;
    for (uint32_t m = 1; m < r->spec->n && spent < longest_hope; m++)
        if (timing[m].gain < r->spec->bound && timing[m].as_read >= r->spec->bound)
            return false;
    return true;
}

static po_status add_process(po_ctx *ctx, po_arena *arena, reading *r, double share) {
    const po_timing_spec *spec = r->spec;
    po_timing_process *p = &r->processes[r->done.processes];
    PO_TRY((spec->source ? spec->source : time_in_process)(spec->source_user, ctx, arena, spec,
                                                           r->done.processes, share, p));
    r->done.filled = p->filled;
    if (p->filled > 0)
        return PO_OK;
    r->done.processes++;
    r->done.rounds += p->rounds;
    r->done.runs = p->runs;
    r->done.spent += p->spent;
    return PO_OK;
}

/* Adds groups of processes until it is settled, hopeless, or the time is up. */
static po_status read_models(po_ctx *ctx, po_arena *arena, reading *r, po_timing *timing) {
    const po_timing_spec *spec = r->spec;
    double budget = spec->seconds > 0 ? spec->seconds : default_seconds;
    bool over = false;
    while (!over && r->done.processes + r->group <= MOST_PROCESSES) {
        /* Many short processes say more than few long ones: placement differs between them. */
        double share = spec->quick ? quick_share : fmin(budget / (6.0 * r->group), longest_share);
        for (uint32_t k = 0; k < r->group && !over; k++) {
            PO_TRY(add_process(ctx, arena, r, share));
            if (r->done.filled > 0)
                return PO_OK;
            over = spec->quick && is_disturbed(r);
        }
        po_timing_evaluate(arena, r->processes, r->done.processes, spec, r->left_out, timing);
        double each = r->done.spent / r->done.processes;
        bool enough = r->done.processes >= 2 * r->group || each * r->group > budget / 3;
        bool settles = settled(timing, spec, r->left_out, r->margin);
        over = spec->quick || (enough && (settles || is_hopeless(r, timing, budget))) ||
               r->done.spent + each * r->group > budget;
    }
    return PO_OK;
}

static reading begin(po_arena *arena, const po_timing_spec *spec, const bool *left_out,
                     double margin) {
    return (reading){.spec = spec,
                     .left_out = left_out,
                     .margin = margin,
                     .group = spec->quick ? spec->quick : PO_TIMING_GROUP,
                     .processes = PO_NEW_N(arena, po_timing_process, MOST_PROCESSES)};
}

/* What more threads could not tell, in what is left of the time. */
static po_status read_with_one(po_ctx *ctx, po_arena *arena, const po_timing_spec *spec,
                               const bool *left_out, po_timing_work *done, po_timing *timing) {
    double budget = spec->seconds > 0 ? spec->seconds : default_seconds;
    po_timing_spec alone = *spec;
    po_timing one[PO_TIMING_MAX];
    alone.threads = 1;
    alone.seconds = fmax(budget - done->spent, least_for_one * budget);
    if (alone.quick > 1)
        alone.quick -= done->processes < alone.quick ? done->processes : alone.quick - 1;
    reading r = begin(arena, &alone, left_out, PO_TIMING_MARGIN);
    PO_TRY(read_models(ctx, arena, &r, one));
    done->filled = r.done.filled;
    done->processes += r.done.processes;
    done->rounds += r.done.rounds;
    done->spent += r.done.spent;
    if (done->filled == 0)
        po_timing_take_one(spec, one, left_out, timing);
    return PO_OK;
}

po_status po_time_models(po_ctx *ctx, const po_timing_spec *spec, po_timing *timing,
                         po_timing_work *work) {
    if (spec->n < 1 || spec->n > PO_TIMING_MAX)
        return po_fail(ctx, PO_BAD_USE, "%u models to time (limit %d)", spec->n, PO_TIMING_MAX);
    po_arena *scratch = po_arena_create(ctx);
    reading r = begin(scratch, spec, NULL, 1);
    po_status status = read_models(ctx, scratch, &r, timing);
    bool any = false, left_out[PO_TIMING_MAX];
    if (status == PO_OK && r.done.filled == 0)
        po_timing_ask_one(spec, timing, &any, left_out);
    if (any)
        status = read_with_one(ctx, scratch, spec, left_out, &r.done, timing);
    po_arena_free(scratch);
    if (work)
        *work = r.done;
    return status;
}

/* When the parts of a run end, and what stops them. */
#include "pipeline/budget.h"

#include <math.h>

/* Seconds of a run at -O1 and -O2 without --time-limit, and by when it ends whatever is under way:
 * writing the result comes on top. */
static const double default_budget = 104, default_limit = 118;
/* The same at -O3. */
static const double deep_budget = 600, deep_limit = 616;
/* With --time-limit: its part that is left to the search and the readings. */
static const double of_limit = 0.95;
static const double writing = 5;

/* What a run may spend goes by what it can gain: the least of it where one run of the model takes
 * `short_run`, all from `long_run` on, and in between a power of that time. Compilers take their
 * time however short the model is. */
static const double least_budget = 10, least_with_kernels = 25;
static const double short_run = 0.1e-3, long_run = 2e-3;

/* Seconds beyond its end that a part may take where no limit was asked for: readings of the best
 * candidate are cut to fit, but a busy machine loads models slowly and has to be read again, and a
 * gain that was found is not thrown away for that. Nor are kernels of which the library is under
 * way. Of the whole budget; less of it has less. */
static const double grace[PO_PARTS] = {[PO_PART_KERNELS] = 12, [PO_PART_SELECT] = 12};

/* Of the run's time, at which each part must have ended. */
typedef struct ends {
    double part[PO_PARTS];
} ends;

static const ends light = {{
    [PO_PART_JUDGE] = 0.34,
    [PO_PART_READ] = 0.34,
    [PO_PART_KERNELS] = 0.34,
    [PO_PART_CHOOSE] = 0.4,
    [PO_PART_FORMS] = 0.48,
    [PO_PART_RANKS] = 0.65,
    [PO_PART_SELECT] = 0.92,
    [PO_PART_PROOF] = 1,
}};

/* Where readings and proofs take long, the search has less. */
static const ends heavy = {{
    [PO_PART_JUDGE] = 0.14,
    [PO_PART_READ] = 0.14,
    [PO_PART_KERNELS] = 0.14,
    [PO_PART_CHOOSE] = 0.18,
    [PO_PART_FORMS] = 0.27,
    [PO_PART_RANKS] = 0.48,
    [PO_PART_SELECT] = 0.85,
    [PO_PART_PROOF] = 1,
}};

/* Schedules are compiled and read, and then the library is compiled: on a busy machine it is that
 * which must not be cut. What is not needed goes to the parts that follow. */
static const ends light_kernels = {{
    [PO_PART_JUDGE] = 0.12,
    [PO_PART_READ] = 0.46,
    [PO_PART_KERNELS] = 0.66,
    [PO_PART_CHOOSE] = 0.67,
    [PO_PART_FORMS] = 0.69,
    [PO_PART_RANKS] = 0.78,
    [PO_PART_SELECT] = 0.93,
    [PO_PART_PROOF] = 1,
}};

static const ends heavy_kernels = {{
    [PO_PART_JUDGE] = 0.08,
    [PO_PART_READ] = 0.33,
    [PO_PART_KERNELS] = 0.46,
    [PO_PART_CHOOSE] = 0.46,
    [PO_PART_FORMS] = 0.46,
    [PO_PART_RANKS] = 0.5,
    [PO_PART_SELECT] = 0.82,
    [PO_PART_PROOF] = 1,
}};

/* Where each session takes seconds to load its weights, or each run a good part of one and larger
 * sizes several, comparisons need most of the time. */
static const ends late_kernels = {{
    [PO_PART_JUDGE] = 0.04,
    [PO_PART_READ] = 0.22,
    [PO_PART_KERNELS] = 0.36,
    [PO_PART_CHOOSE] = 0.36,
    [PO_PART_FORMS] = 0.38,
    [PO_PART_RANKS] = 0.4,
    [PO_PART_SELECT] = 0.82,
    [PO_PART_PROOF] = 1,
}};

/* A GPU is read quickly, and what its libraries offer for each mutant takes long to try. */
static const ends gpu = {{
    [PO_PART_JUDGE] = 0.5,
    [PO_PART_READ] = 0.5,
    [PO_PART_KERNELS] = 0.5,
    [PO_PART_CHOOSE] = 0.6,
    [PO_PART_FORMS] = 0.63,
    [PO_PART_RANKS] = 0.7,
    [PO_PART_SELECT] = 0.93,
    [PO_PART_PROOF] = 1,
}};

/* With kernels nearly all of it is these. */
static const ends gpu_kernels = {{
    [PO_PART_JUDGE] = 0.14,
    [PO_PART_READ] = 0.6,
    [PO_PART_KERNELS] = 0.7,
    [PO_PART_CHOOSE] = 0.72,
    [PO_PART_FORMS] = 0.74,
    [PO_PART_RANKS] = 0.78,
    [PO_PART_SELECT] = 0.93,
    [PO_PART_PROOF] = 1,
}};

/* At -O3 most of the time is for measuring what was found. */
static const ends deep = {{
    [PO_PART_JUDGE] = 0.68,
    [PO_PART_READ] = 0.78,
    [PO_PART_KERNELS] = 0.8,
    [PO_PART_CHOOSE] = 0.82,
    [PO_PART_FORMS] = 0.84,
    [PO_PART_RANKS] = 0.89,
    [PO_PART_SELECT] = 0.97,
    [PO_PART_PROOF] = 1,
}};

static bool is_deep(const po_options *o) {
    return o->level >= 3 && o->time_limit <= 0;
}

static const ends *ends_of(const po_run *run) {
    const po_options *o = run->options;
    if (is_deep(o))
        return &deep;
    if (o->kernels && o->cuda)
        return &gpu_kernels;
    if (o->kernels && (run->budget->loads || (run->budget->heavy && run->budget->sizes)))
        return &late_kernels;
    if (o->kernels)
        return run->budget->heavy ? &heavy_kernels : &light_kernels;
    if (o->cuda)
        return run->gpu_cost ? &gpu : &light;
    return run->budget->heavy ? &heavy : &light;
}

static double whole_of(const po_options *o) {
    return o->time_limit > 0 ? of_limit * o->time_limit : is_deep(o) ? deep_budget : default_budget;
}

double po_budget_limit(const po_options *options) {
    return options->time_limit > 0 ? options->time_limit
           : is_deep(options)      ? deep_limit
                                   : default_limit;
}

double po_budget_end(const po_run *run, po_part part) {
    if (run->budget->started <= 0)
        return 0;
    /* Proving what won may take what is left until the limit, but for writing. */
    if (part == PO_PART_PROOF && run->options->time_limit <= 0 &&
        !(run->budget->spend > 0 && run->budget->spend < 1))
        return run->budget->started + po_budget_limit(run->options) - writing;
    double all = whole_of(run->options) * (run->budget->spend > 0 ? run->budget->spend : 1);
    return run->budget->started + ends_of(run)->part[part] * all;
}

double po_budget_grace(const po_run *run, po_part part) {
    return run->options->time_limit > 0
               ? 0
               : grace[part] * (run->budget->spend > 0 ? run->budget->spend : 1);
}

double po_budget_share(const po_options *options, double seconds) {
    double least = options->kernels ? least_with_kernels : least_budget;
    double share = least / whole_of(options);
    if (options->time_limit > 0 || share >= 1 || seconds >= long_run)
        return 1;
    if (seconds <= short_run)
        return share;
    return share * pow(seconds / short_run, log(1 / share) / log(long_run / short_run));
}

po_status po_budget_call(const po_run *run, po_part part, const char *what, po_part_fn fn,
                         void *user, bool *cut) {
    po_ctx *ctx = run->ctx;
    double end = po_budget_end(run, part);
    end += end > 0 ? po_budget_grace(run, part) : 0;
    po_limit limit = po_limit_begin(ctx, end);
    po_status status = po_ctx_poll(ctx);
    if (status == PO_OK)
        status = fn(user);
    *cut = po_limit_end(ctx, &limit, &status);
    if (!*cut)
        return status;
    run->record->cut = true;
    po_record_note(
        run->record, "%s after %.0f s, its part of the time limit (--time-limit S%s gives more)",
        what, po_now() - run->budget->started, run->options->level < 3 ? ", or -O3," : "");
    return PO_OK;
}

/* Whether a candidate takes the original's place: it must compute the same and be faster beyond
 * doubt, else the original stays.
 *
 * The protocol: verify; time both at the thread count asked for; where the lower bound of the gain
 * is above 1, once more in fresh processes with another seed; then at one and at all threads, and
 * at the other sizes of open dims, where the lower bound must not be below 0.98. A reading that
 * leaves the answer open is taken again, each time for twice as long, until it is clear or the time
 * is up; then the original stays. Where other programs keep the processors one thread answers in
 * place of more (cost/timing.h). What is to be taken is compared once more, on inputs that took no
 * part in any of this: the limit is to hold on those as well. Where the thread count was named, the
 * model is for that one: other counts are read too, and told, but do not decide. Verdicts are kept
 * in the cost cache; with a verdict from there nothing is run. */
#ifndef PO_SELECT_SELECT_H
#define PO_SELECT_SELECT_H

#include "cost/cost.h"
#include "verify/verify.h"

typedef struct po_select_spec {
    po_cost *cost;
    const char *kernels;              /* custom operators for the candidate; may be NULL */
    const po_side_files *files;       /* external data in memory, of either; may be NULL */
    const char *original, *candidate; /* paths */
    const po_graph *graph;            /* of the original, types inferred */
    const po_graph *candidate_graph;
    /* Hashes of all that the models hold, external data included; zeros: of the two files' bytes,
     * which then must be all. */
    po_hash original_hash, candidate_hash;
    const po_check_set *checks;
    uint32_t n_checks;
    const po_pin *meant; /* as in po_inputs_want; NULL: by what the inputs are */
    uint32_t n_meant;
    uint32_t threads;      /* that the model will be run with */
    bool these_threads;    /* with no others: what others read is told and does not decide */
    double tolerance;      /* 0: 1e-4 */
    bool no_reference;     /* it would take too long: errors against float64 are not told */
    double verify_seconds; /* 0: 20 */
    bool loads; /* models of static dims that take long to load: fresh inputs are compared with the
                   others, before anything is timed, so that they are loaded once less */
    double timing_seconds;  /* for one reading; 0: 8 */
    double until;           /* as po_now counts: readings are short enough to end by then where that
                               can be; 0: no such time */
    double patience;        /* seconds beyond it for readings that left the answer open */
    const po_timing *first; /* both models were timed like this before; NULL: they were not */
    uint32_t size;          /* at this assignment of lengths */
    uint64_t seed;
    /* As in po_timing_spec. */
    po_status (*source)(void *user, po_ctx *ctx, po_arena *arena, const po_timing_spec *spec,
                        uint32_t number, double seconds, po_timing_process *process);
    void *source_user;
} po_select_spec;

typedef enum po_reading_kind {
    PO_READING_FIRST,   /* at the thread count asked for */
    PO_READING_CONFIRM, /* the same in fresh processes */
    PO_READING_THREADS, /* at another thread count */
    PO_READING_SIZE     /* at another size */
} po_reading_kind;

typedef struct po_reading {
    int32_t kind;                /* po_reading_kind */
    uint32_t threads;            /* for which it answers */
    uint32_t by;                 /* threads, or 1 in their place (po_timing.threads) */
    char inputs[PO_REPORT_NAME]; /* "normal x:1x3x640x640" */
    double original, candidate;  /* median seconds of a run */
    double gain, low, high;      /* original over candidate, and its 95 % interval */
    double waited;               /* as in po_timing */
    uint32_t processes, rounds;
    double spent; /* seconds */
} po_reading;

typedef enum po_verdict_code {
    PO_VERDICT_NONE = 0,
    PO_VERDICT_FASTER,          /* the only one with which the candidate is taken */
    PO_VERDICT_SAME_FILE,       /* byte for byte the original */
    PO_VERDICT_WRONG,           /* differs: see the report */
    PO_VERDICT_UNTESTED,        /* could not be compared */
    PO_VERDICT_NO_GAIN,         /* not faster beyond doubt */
    PO_VERDICT_SLOWER_ELSEWHERE /* faster as asked, but not shown to hold at other threads or sizes
                                 */
} po_verdict_code;

enum { PO_READINGS_MAX = 8 };

/* Plain bytes, as kept in the cache. */
typedef struct po_verdict {
    int32_t code;   /* po_verdict_code */
    int32_t cached; /* it came from the cache */
    po_verify_report verify;
    uint32_t n_readings;
    po_reading readings[PO_READINGS_MAX];
    char reason[PO_REPORT_TEXT]; /* one sentence */
} po_verdict;

static inline bool po_verdict_accepted(const po_verdict *verdict) {
    return verdict->code == PO_VERDICT_FASTER;
}
/* It hangs on readings that other programs disturbed: one with one thread in place of more, or one
 * that leaves the answer open. A quiet machine may answer otherwise, and it is not kept. */
bool po_verdict_disturbed(const po_verdict *verdict);
/* The reading to show: the confirmed one where there is one. NULL where nothing was timed. */
const po_reading *po_verdict_shown(const po_verdict *verdict);

/* Fails only for what stops the run; all else is a verdict. PO_RUNTIME where there is no runtime
 * to measure with. */
po_status po_select(po_ctx *ctx, const po_select_spec *spec, po_verdict *verdict);

#endif

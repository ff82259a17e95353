/* Whether a candidate model computes what the original does: both run in the runtime on the same
 * inputs, every element of every output compared. Where the runtime does not run the original, the
 * float64 reference evaluates both graphs. */
#ifndef PO_VERIFY_VERIFY_H
#define PO_VERIFY_VERIFY_H

#include "verify/compare.h"
#include "verify/inputs/inputs.h"

/* One set of the user's inputs, in the order of the graph's inputs. A NULL datum list entry is not
 * possible: every input that has no initialiser must be given. */
typedef struct po_check_set {
    const char *name; /* for messages: the folder */
    uint32_t n;
    const po_datum *data; /* for the inputs without initialisers, in order */
} po_check_set;

enum { PO_SIZES_TRIED = 3, PO_SIZES_COMPARED = 6 };

typedef struct po_verify_spec {
    const char *library;              /* as in po_ort_options */
    const char *kernels;              /* custom operators for the candidate; may be NULL */
    const char *isa;                  /* as in po_session_options */
    const po_side_files *files;       /* external data in memory, of either; may be NULL */
    const char *original, *candidate; /* paths */
    const po_graph *graph;            /* of the original, types inferred */
    const po_graph *candidate_graph; /* may be NULL; gives pinned dims, and the reference a graph */
    const po_check_set *checks;
    uint32_t n_checks;
    const po_pin *meant; /* as in po_inputs_want; NULL: by what the inputs are */
    uint32_t n_meant;
    double tolerance; /* 0: 1e-4 */
    double seconds;   /* aim; 0: 20. The first set is always compared */
    uint64_t seed;
    bool reference_first; /* ask the float64 reference, and the runtime only where it cannot tell:
                             for graphs so large that the runtime takes minutes to load them */
    uint32_t fresh; /* sets besides, of every kind and scale (po_inputs_fresh); fewer where they
                       take long */
    uint64_t fresh_seed;
    bool fresh_small; /* every other one at a size where it costs little */
    bool fresh_only;  /* the rest was compared before, at these sizes */
    uint32_t n_sizes, sizes[PO_SIZES_COMPARED];
    bool thorough; /* every kind of inputs at every size, more seeds */
    bool ladder;   /* also measure both models' own error against float64 where that is quick */
} po_verify_spec;

typedef enum po_evidence {
    PO_EVIDENCE_NONE = 0,  /* untested: `why` says what stood in the way */
    PO_EVIDENCE_RUNTIME,   /* compared in the runtime */
    PO_EVIDENCE_REFERENCE, /* compared by the float64 reference: the runtime runs not the original
                            */
    PO_EVIDENCE_SHAPES /* the original's outputs are random: kinds, dtypes and shapes compared */
} po_evidence;

enum { PO_REPORT_NAME = 96, PO_REPORT_TEXT = 400 };

/* Plain bytes: it is sent between processes and kept in the cache. */
typedef struct po_verify_report {
    int32_t evidence;                 /* po_evidence */
    int32_t equal;                    /* no difference beyond what is allowed; 0 where untested */
    int32_t identical;                /* every bit of every output */
    int32_t refused;                  /* the candidate does not load, or does not run */
    uint32_t sets, sizes;             /* sets of inputs compared; at how many assignments of dims */
    uint32_t size[PO_SIZES_COMPARED]; /* which ones, as po_inputs_make counts them: first those
                                         that are tried, then those that are meant */
    uint32_t fresh;                   /* of them, those that were drawn last and chose nothing */
    uint32_t excused;        /* on so many the original's own error against float64 is as large */
    double excused_rel;      /* the largest difference there, as max_rel, which leaves it out */
    uint32_t skipped;        /* sets that the original did not run on */
    int32_t empty_refused;   /* an empty batch, which the original takes, the candidate does not */
    uint32_t random_outputs; /* compared by shape alone, since two runs differ */
    int64_t elements;
    double tolerance;
    double max_abs, max_rel;     /* over the sets; max_rel against the output's largest magnitude */
    char output[PO_REPORT_NAME]; /* where: the worst, or the first that is not equal */
    char set[PO_REPORT_NAME];    /* the inputs that it was on */
    int64_t index;               /* -1: nothing differs */
    double expected, got;
    uint32_t ties;            /* integers that differ only since their float inputs tie */
    double own_error;         /* the original's error against float64, relative; -1: not measured */
    double candidate_error;   /* the candidate's */
    double seconds;           /* what it took */
    char why[PO_REPORT_TEXT]; /* one sentence where not equal, untested, or partly tested */
} po_verify_report;

/* Fresh sets where a model is to be accepted. */
enum { PO_FRESH_SETS = 32 };

/* Adds what further sets of the same models showed. */
void po_verify_join(po_verify_report *report, const po_verify_report *more);

/* Fails only for what stops the run (cancelled, out of memory); a missing runtime, a model that
 * does not load and a crash are answers in the report. */
po_status po_verify(po_ctx *ctx, const po_verify_spec *spec, po_verify_report *report);

#endif

/* petopt: makes an ONNX model faster without changing what it computes.
 *
 * The only public header. Every function that can fail returns a po_status and,
 * where it takes one, fills a po_error (which may be NULL) with one sentence that names the node,
 * the tensor and the reason. Handles are opaque and belong to one thread at a time. Strings that a
 * handle returns live as long as the handle. The header is C and C++. */
#ifndef PETOPT_H
#define PETOPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define PO_API __attribute__((visibility("default")))
#else
#define PO_API
#endif

/* What a call came to. PO_OK is the only success; PO_NOT_EQUAL is verify's "no". */
typedef enum po_status {
    PO_OK = 0,
    PO_NOT_EQUAL,     /* the models compute different functions */
    PO_BAD_INPUT,     /* the model, or a file that it names, is malformed or over a limit */
    PO_BAD_USE,       /* an option or argument is wrong */
    PO_NOT_AVAILABLE, /* not in this version */
    PO_UNSUPPORTED,   /* understood, but outside what this rule handles: callers skip it */
    PO_NO_MEMORY,     /* memory ran out */
    PO_IO,            /* reading or writing a file failed */
    PO_RUNTIME,       /* the inference runtime is missing or failed */
    PO_CANCELLED,     /* the caller's cancel flag was seen */
    PO_TIME_LIMIT,    /* the time limit passed */
    PO_INTERNAL       /* a check of petopt's own failed: a bug */
} po_status;

/* Returns the name of a status as lower-case words ("bad input"); never NULL. */
PO_API const char *po_status_name(po_status status);

#define PO_MESSAGE_MAX 1024

typedef struct po_error {
    po_status status;
    char message[PO_MESSAGE_MAX]; /* one sentence, printable, NUL-terminated */
} po_error;

/* The library's version, "0.1.0". */
PO_API const char *po_version(void);

/* --- in a host program --------------------------------------------------------------------------
 *
 * The library sets no signal handlers. po_optimise, po_models_verify and po_models_bench fork: the
 * inference runtime and generated kernels run in children, never in the host. A child of a host
 * with other threads that hold a lock at that moment may wait for it for ever; it is ended at its
 * time limit, and what it was asked for counts as failed. Hosts with busy threads do better to call
 * from a process of their own. Children are waited for by their number: a host that ignores SIGCHLD
 * or reaps every child takes their answers away. Models of more than 4 MiB are mapped: a file that
 * another program shortens meanwhile raises SIGBUS, which the library leaves to the host (the
 * program petopt puts zeros there, stops, and writes nothing). SIGPIPE and SIGXFSZ are the host's
 * as well: where it does not ignore SIGXFSZ, a limit on file sizes ends it. */

/* --- models ------------------------------------------------------------------------------------
 *
 * A model is read once and never changed; its weights stay in the file that it was read from, which
 * must not be changed while the model lives (replacing it by rename is fine). */

typedef struct po_model po_model;

/* Reads an ONNX file and the external data that it names. */
PO_API po_status po_model_load(const char *path, po_model **model, po_error *error);
/* Writes the model: all of it or nothing, also where `path` is the file that it was read from.
 * Models too large for one file get PATH.<hash of the data>.data beside it. */
PO_API po_status po_model_save(po_model *model, const char *path, po_error *error);
/* NULL is allowed. */
PO_API void po_model_free(po_model *model);
/* The text form (`petopt show`). *text is to be freed by po_string_free. */
PO_API po_status po_model_text(po_model *model, char **text, po_error *error);
PO_API void po_string_free(char *text);

/* A node as it stands in the model's main graph. */
typedef struct po_node_view {
    const char *op_type, *domain, *name; /* domain "" is ONNX's own; name may be "" */
    size_t n_in, n_out;
    const char *const *in; /* names of values; "" where an optional one is left out */
    const char *const *out;
} po_node_view;

/* The nodes of the main graph in execution order. The array lives as long as the model. */
PO_API po_status po_model_nodes(po_model *model, const po_node_view **nodes, size_t *count,
                                po_error *error);

/* --- options -----------------------------------------------------------------------------------
 *
 * Options are named and given as on the command line: po_options_set(o, "input-shape",
 * "x:1,3,640,640"). The table below is what the command line is made from. */

typedef struct po_options po_options;

/* What an option belongs to. */
enum { PO_FOR_OPTIMISE = 1, PO_FOR_VERIFY = 2, PO_FOR_BENCH = 4 };

typedef struct po_option_def {
    const char *name;     /* without dashes */
    char letter;          /* its short form, or 0 */
    const char *argument; /* what to print for its value */
    const char *help;     /* one sentence */
    unsigned commands;    /* PO_FOR_... */
} po_option_def;

/* The table's rows, in the order of the help text; NULL past the last. */
PO_API const po_option_def *po_option_at(size_t index);

PO_API po_status po_options_create(po_options **options);
PO_API void po_options_free(po_options *options);
/* PO_BAD_USE for an unknown name or a bad value, PO_NOT_AVAILABLE for what a later version does.
 * input-shape, skip and dump may be given several times; for the others the last one counts. */
PO_API po_status po_options_set(po_options *options, const char *name, const char *value,
                                po_error *error);

/* Seconds after which po_optimise returns by itself with these options (NULL: the defaults): every
 * part of it asks for the time. A host that must have its thread back even if a part of a library
 * hangs calls it in a process of its own, as the program petopt does. */
PO_API double po_options_seconds(const po_options *options);

/* --- progress and cancelling -------------------------------------------------------------------
 */

/* A flag that any thread or a signal handler may raise; the call under way then ends soon. */
typedef struct po_cancel po_cancel;
PO_API po_cancel *po_cancel_create(void); /* NULL: memory ran out */
PO_API void po_cancel_raise(po_cancel *cancel);
PO_API void po_cancel_free(po_cancel *cancel);

typedef struct po_progress {
    const char *stage;   /* "import", "simplify", ... */
    const char *what;    /* what is being tried; "" where the stage says enough */
    double fraction;     /* of the whole call, 0 to 1 */
    double seconds_left; /* an estimate; negative where there is none */
} po_progress;

/* What a long call reports to. Every member may be NULL, and so may the whole. */
typedef struct po_callbacks {
    void *user;
    void (*progress)(void *user, const po_progress *progress);
    void (*log)(void *user, const char *line);                     /* details, one line each */
    void (*dump)(void *user, const char *stage, const char *text); /* text form, by option dump */
    const po_cancel *cancel;
} po_callbacks;

/* --- optimising --------------------------------------------------------------------------------
 */

typedef struct po_result po_result;

/* How often an operator occurs, bodies of control flow included. */
typedef struct po_operator_count {
    const char *name; /* "Conv"; other domains in front: "com.microsoft.Gelu" */
    uint64_t before, after;
} po_operator_count;

typedef struct po_stage_report {
    const char *name;
    double seconds;
    uint64_t nodes_before, nodes_after;
    bool ran;         /* false: skipped, or not part of this level */
    const char *note; /* why it did not run, or what it dropped; "" where there is nothing to say */
} po_stage_report;

typedef struct po_rewrite_report {
    const char *stage, *rule;
    uint64_t count;
} po_rewrite_report;

/* One program that was tried. Ratios are original time over candidate time: above 1 is faster. */
typedef struct po_candidate_report {
    const char *name;
    uint64_t nodes;
    bool measured;
    double ms;               /* median latency */
    double ratio, low, high; /* and the ends of its confidence interval */
    bool compared;           /* against the original's outputs */
    double error;            /* largest difference, as a part of the output's largest magnitude */
    bool refused;            /* the runtime does not load or run it */
    bool different;          /* it runs and computes something else */
    bool chosen;
    const char *verdict; /* one sentence: why it won or lost */
} po_candidate_report;

/* A mutant that was tried in a subprogram's place. */
typedef struct po_mutant_report {
    const char *name;
    const char *fate;           /* "chosen", "not faster", "differs", ... */
    const char *agrees;         /* "equal", "equal in 3 of 4 boxes", "differs", "not compared" */
    bool enumerated, corrected; /* found blindly; repaired where it differed; neither: derived */
    bool chosen, measured;
    double ratio;    /* measured in context: above 1 is faster */
    double estimate; /* the same by the roofline */
    double flops, bytes;
    const char *why; /* "" where the fate says it all */
} po_mutant_report;

/* Positions first + i * step for 0 <= i < count on each axis of an output. */
typedef struct po_box_report {
    size_t rank;
    const int64_t *first, *step, *count;
} po_box_report;

/* A part of the model between non-linear operators, and what was tried for it. */
typedef struct po_subprogram_report {
    const char *name;                   /* a value that it makes, where it stands first */
    size_t times;                       /* that it stands in the model */
    const po_node_view *before, *after; /* after: the chosen mutant; NULL: it stays as it is */
    size_t n_before, n_after;
    bool measured;
    double ms; /* in context */
    double flops, bytes;
    uint64_t derived, judged, by_shape, by_hash, by_points; /* generated; judged blindly, and why
                                                               that was the end of them */
    uint64_t lifted, composed, tried; /* at -O3: by laws in place, by laws on what laws made; of */
    uint64_t boxes, points;           /* compared */
    const po_mutant_report *mutants;
    size_t n_mutants;
    size_t rank; /* of the first output, with its dims */
    const int64_t *dims;
    const po_box_report *repaired; /* of it, where the chosen mutant was corrected */
    size_t n_repaired;
} po_subprogram_report;

/* A step of a generated kernel. */
typedef struct po_kernel_step_report {
    const char *name, *schedule;
    double flops, bytes; /* of the plain algorithm; from and to memory: weights, and maps that the
                            second cache does not hold */
    double ms;           /* alone, on one thread; 0: not measured */
    double ms_roofline;  /* the longer of these operations at the peak of one core and of these
                            bytes from memory; fast algorithms may stay below it */
} po_kernel_step_report;

/* A part of the model for which a kernel was sought (option kernels). */
typedef struct po_region_report {
    uint64_t nodes;  /* after simplifying and folding */
    const char *why; /* it stays with the runtime; "": it has a kernel */
    /* Target cuda: what the GPU's description makes of the kernels, and of the nodes one by one as
     * NVIDIA's libraries have them; 0: no estimate. The steps are launches. */
    double ms_estimated, ms_nodes;
    const po_kernel_step_report *steps;
    size_t n_steps;
    double ms, ms_roofline; /* sums over the steps */
} po_region_report;

/* What was read at one assignment of lengths to open dims. */
typedef struct po_size_report {
    const char *inputs;         /* "x:1x3x640x640" */
    double ms_before, ms_after; /* median latency */
    double ratio, low, high;
    uint32_t threads; /* as latency_threads and latency_by below */
    const char *by;
} po_size_report;

typedef struct po_summary {
    const char *runtime, *cpu; /* "ONNX Runtime 1.31.1"; "" where none was used */
    const char *gpu;           /* target cuda: "NVIDIA H200"; "": another target */
    uint32_t threads;
    int level;
    po_status stopped;  /* PO_OK, or PO_CANCELLED or PO_TIME_LIMIT: cut short */
    bool changed;       /* false: what would be written is the original */
    const char *winner; /* name of the candidate that would be written; "original" */
    const char *kept;   /* one sentence: why the original stays; "" where it does not */
    /* The library of kernels that po_result_save writes with it, "DIR/libpetopt_kernels.so" (option
     * kernels); NULL: the winner has none. The model runs without it too, but not as fast. */
    const char *library;
    size_t n_kernels; /* in it */
    /* The instruction sets, or the GPU, by whose code of the library the winner was compared, and
     * those whose code no one ran here: "avx512, avx2"; "": none. */
    const char *kernels_compared, *kernels_unrun;
    uint64_t nodes_before, nodes_after;
    uint64_t weights_before, weights_after; /* bytes of constants */
    bool measured;
    bool estimated; /* not measured: the figures are what is known of `gpu` makes them */
    double ms_before, ms_after; /* median latency */
    double ratio, ratio_low, ratio_high;
    const po_size_report *sizes; /* that the winner was read at, where dims are open; the first is
                                    the one of the figures above */
    size_t n_sizes;
    bool compared;
    double error;           /* as in po_candidate_report */
    double ratio_fallback;  /* latency where the library is not loaded, as `ratio`; 0: not read */
    double error_reference; /* the original's own against float64; negative where not known */
    double tolerance;
    bool proved;       /* that the winner computes what the original does; else tested only */
    const char *proof; /* one sentence: what was proved, or why not; "" where nothing changed */
    double seconds;    /* of the whole call */
    const po_operator_count *operators;
    size_t n_operators;
    const po_stage_report *stages;
    size_t n_stages;
    const po_rewrite_report *rewrites;
    size_t n_rewrites;
    const po_candidate_report *candidates;
    size_t n_candidates;
    const po_subprogram_report *subprograms; /* from level 2 on */
    size_t n_subprograms;
    const po_region_report *regions; /* of the variant with kernels, whether it won or not */
    size_t n_regions;
    double search_seconds, certify_seconds, measure_seconds; /* of the search for mutants */
    const char *const *notes; /* sentences for the user: what was dropped or left alone, and why */
    size_t n_notes;
    /* Sets of inputs that the winner was compared on, user's data included; of them those drawn
     * when it was chosen already; and those where only the original's own error against float64,
     * times eight, is as large as the difference, which is then at most error_excused. */
    uint32_t inputs, inputs_fresh, inputs_excused;
    double error_excused;
    /* By how many threads the latency was read: `threads`, or 1, by its processor time, where other
     * programs kept the machine too busy for more; 0: it was not measured on a CPU. And that in
     * words, "1 thread, processor time: the machine was too busy for 2"; "": by `threads`. */
    uint32_t latency_threads;
    const char *latency_by;
} po_summary;

/* Looks for a faster program that computes the same function. What cannot be shown to be right and
 * faster is dropped, so the result is the original itself where nothing wins. When cancelled or out
 * of time the result is the best verified so far, and the summary says so; PO_CANCELLED is returned
 * only where there is no result yet. options and callbacks may be NULL. The model must outlive the
 * result. */
PO_API po_status po_optimise(po_model *model, const po_options *options,
                             const po_callbacks *callbacks, po_result **result, po_error *error);
/* Whether what po_optimise finds with these options could be saved to `path`, as far as that shows
 * before the run: the folder, and with option kernels that the folder of kernels is not another
 * model's. Nothing is left behind. */
PO_API po_status po_options_check_output(const po_options *options, const char *path,
                                         po_error *error);
PO_API const po_summary *po_result_summary(const po_result *result);
/* Writes the model that won, and beside it, where it is not the original, the certificate that
 * po_models_verify reads: PATH.cert. As whole and as durable as po_model_save. */
PO_API po_status po_result_save(po_result *result, const char *path, po_error *error);
/* The same with a last word: `ready` is called once all is on the disk under temporary names. Where
 * it returns false nothing takes its name, and the status is PO_CANCELLED. */
PO_API po_status po_result_save_if(po_result *result, const char *path, bool (*ready)(void *user),
                                   void *user, po_error *error);
/* The model that won, to be saved or looked at; it belongs to the result. */
PO_API po_model *po_result_model(po_result *result);
PO_API void po_result_free(po_result *result);

/* --- comparing and measuring -------------------------------------------------------------------
 */

typedef struct po_equality {
    bool equal;
    bool proved;     /* by a certificate or because the graphs are the same; else tested only */
    uint64_t inputs; /* sets of inputs that both were run on */
    double error;    /* largest difference, as a part of the output's largest magnitude */
    double tolerance;
    char worst[256]; /* the output that differs most */
    char how[256];   /* one sentence: what the answer rests on */
    char proof[256]; /* one sentence: what was proved, or why it was tested only */
    char runtime[64];
} po_equality;

/* Decides whether the model in file `b` computes what the one in file `a` does. PO_OK: yes;
 * PO_NOT_EQUAL: no, with the reason as error; anything else: no answer. */
PO_API po_status po_models_verify(const char *a, const char *b, const po_options *options,
                                  const po_callbacks *callbacks, po_equality *report,
                                  po_error *error);

typedef struct po_bench_row {
    double ms;               /* median latency */
    double ratio, low, high; /* of the first model's time over this one's, with its interval */
} po_bench_row;

typedef struct po_bench_report {
    char runtime[64];
    char cpu[128];
    uint32_t threads;
    uint32_t rounds; /* blocks that the medians rest on */
    double control;  /* ratio of the first model against itself: how far 1.00 can be trusted */
    size_t n_rows;
    po_bench_row *rows; /* one for each model */
} po_bench_report;

/* Measures models side by side, interleaved in random blocks, on the same inputs where their
 * interfaces agree. The report is to be freed by po_bench_report_free. */
PO_API po_status po_models_bench(const char *const *paths, size_t count, const po_options *options,
                                 const po_callbacks *callbacks, po_bench_report **report,
                                 po_error *error);
PO_API void po_bench_report_free(po_bench_report *report);

/* --- building ----------------------------------------------------------------------------------
 *
 * Functions that add something return a handle of the value that it makes, 0 on failure. The first
 * failure is kept and told by po_build_finish, so that callers need no check in between; a 0 given
 * as an input passes through. Names may be NULL: then a fresh one is made. */

typedef struct po_builder po_builder;
typedef uint32_t po_val;
#define PO_OMITTED UINT32_MAX /* an optional input that is left out */

/* An empty graph for an ONNX operator-set version (7 to 26). NULL: memory ran out. */
PO_API po_builder *po_build_create(const char *graph_name, int64_t opset);
/* For a builder that was not finished; NULL is allowed. */
PO_API void po_build_free(po_builder *builder);

/* An input of the graph. The type is in text form: "f32[batch,3,224,224]", "i64[1,?]". */
PO_API po_val po_build_input(po_builder *builder, const char *name, const char *type);
/* An initialiser with data of a type named as in the text form ("f32", "i64"), copied. */
PO_API po_val po_build_data(po_builder *builder, const char *name, const char *dtype, size_t rank,
                            const int64_t *dims, const void *data);
/* An f32 initialiser, uniform in [low, high): the same numbers for the same seed everywhere. */
PO_API po_val po_build_random(po_builder *builder, const char *name, size_t rank,
                              const int64_t *dims, uint64_t seed, double low, double high);
/* Short forms for the constants that graphs are full of. */
PO_API po_val po_build_f32(po_builder *builder, float value);                     /* rank 0 */
PO_API po_val po_build_i64(po_builder *builder, size_t n, const int64_t *values); /* rank 1 */

/* A node with one output. domain NULL: ONNX's own. */
PO_API po_val po_build_node(po_builder *builder, const char *domain, const char *op_type,
                            const char *name, size_t n_in, const po_val *in);
/* Output k of the node that makes `value`; it and those before it are added where needed. */
PO_API po_val po_build_output_of(po_builder *builder, po_val value, size_t k);
/* Attributes of the node that makes `value`. */
PO_API void po_build_attr_int(po_builder *builder, po_val value, const char *name, int64_t x);
PO_API void po_build_attr_float(po_builder *builder, po_val value, const char *name, float x);
PO_API void po_build_attr_string(po_builder *builder, po_val value, const char *name,
                                 const char *x);
PO_API void po_build_attr_ints(po_builder *builder, po_val value, const char *name, size_t n,
                               const int64_t *x);

/* Makes a value an output of the graph under this name (NULL: its own). */
PO_API void po_build_output(po_builder *builder, po_val value, const char *name);
/* Infers the types, checks the graph and hands it over as a model; the builder is freed in any
 * case. */
PO_API po_status po_build_finish(po_builder *builder, po_model **model, po_error *error);

#ifdef __cplusplus
}
#endif
#endif

/* Between verify.c (the caller's side), runner.c (the child with the runtime) and reference.c. */
#ifndef PO_VERIFY_VERIFY_PRIVATE_H
#define PO_VERIFY_VERIFY_PRIVATE_H

#include "cost/isolate.h"
#include "ops/op.h"
#include "verify/verify.h"

/* The runtime compares with one thread: sums must not depend on how work was divided. */
enum { PO_VERIFY_THREADS = 1 };

/* What the child was doing when it was last heard of: tells whose crash a crash is. */
typedef enum po_verify_stage {
    PO_STAGE_START = 0,
    PO_STAGE_LOAD_ORIGINAL,
    PO_STAGE_LOAD_CANDIDATE,
    PO_STAGE_RUN_ORIGINAL,
    PO_STAGE_RUN_CANDIDATE,
    PO_STAGE_COMPARE,
    PO_STAGE_DONE
} po_verify_stage;

typedef struct po_verify_mark {
    int32_t stage;
    po_verify_report report;
} po_verify_mark;

typedef struct po_verify_job {
    const po_verify_spec *spec;
    const po_inputs *plan;
} po_verify_job;

/* Child function: sends a po_verify_mark before each step and at the end. */
po_status po_verify_run(po_ctx *ctx, po_arena *arena, po_reply *reply, void *job);
/* Child function: the same through the float64 reference. */
po_status po_verify_by_reference(po_ctx *ctx, po_arena *arena, po_reply *reply, void *job);
/* Child function: own_error and candidate_error. */
po_status po_verify_ladder(po_ctx *ctx, po_arena *arena, po_reply *reply, void *job);

/* Takes one output's difference into the report. The first mismatch sets `equal` to 0 and `why`. */
void po_verify_note(po_verify_report *report, const char *output, const char *set,
                    const po_difference *difference);

/* The magnitude that an output can reach whatever its inputs: 1 where it comes from a sigmoid, a
 * softmax and the like, 0 where nothing is known. */
double po_natural_scale(const po_graph *graph, const char *output);

/* Whether an integer or bool output differs by nothing but ties: each of its differing elements was
 * chosen (ArgMax, TopK, rounding, comparison) between floats of the original that lie within the
 * tolerance. *ties is how many; 0 where any is more than that, or nothing is known of the output.
 */
po_status po_verify_ties(po_ctx *ctx, const po_graph *graph, const po_feed *feed,
                         const char *output, const po_tensor *expected, const po_tensor *got,
                         double tolerance, uint32_t *ties);

/* The graph's outputs by the float64 reference. */
po_status po_verify_evaluate(po_ctx *ctx, po_arena *arena, const po_graph *graph,
                             const po_feed *feed, bool round, po_array ***out);
/* With half a bit of noise wherever floats round (ops/op.h). */
po_status po_verify_evaluate_noisy(po_ctx *ctx, po_arena *arena, const po_graph *graph,
                                   const po_feed *feed, uint64_t draw, po_array ***noisy);
/* Ends a part of the run that asked the reference. Where it was too slow, or has no such operator,
 * there is no answer and the run goes on: PO_OK. */
po_status po_verify_without_answer(po_ctx *ctx, const po_limit *limit, po_status status);

/* own_error.c: how far an output of the original is off from float64. */
typedef struct po_own_error {
    double most, mean; /* absolute; of the mean square its root */
    bool known;
    const bool *overflowed; /* as in po_compare_rule */
} po_own_error;
/* The reference's outputs, as long as the arena; NULL where it has no answer within the time. */
po_status po_verify_exact(po_ctx *ctx, po_arena *arena, const po_graph *graph, const po_feed *feed,
                          double seconds, po_array ***exact);
/* By graph output; `outputs` are the original's. Unknown where nothing exact is. */
void po_verify_own_error(po_arena *arena, const po_graph *graph, po_array *const *exact,
                         const po_datum *outputs, po_own_error *own);
/* The same of what noise moves the reference by: a draw of it, where the original may be exact by
 * luck (a mean of equal numbers). Unknown too where there is no answer within the time. */
po_status po_verify_noise(po_ctx *ctx, const po_graph *graph, const po_feed *feed,
                          po_array *const *exact, uint64_t draw, double seconds, po_own_error *own);

/* steps.c: whether some operator cuts values to steps: there a small difference becomes a large
 * one.
 */
bool po_verify_has_steps(const po_graph *graph);
/* Whether some operator of the root rounds values to steps. */
bool po_verify_quantises(const po_graph *graph);

/* A feed of the user's data: names from the graph. PO_BAD_INPUT where the counts do not match. */
po_status po_verify_check_feed(po_ctx *ctx, po_arena *arena, const po_graph *graph,
                               const po_check_set *check, po_feed *feed);

#endif

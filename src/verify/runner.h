/* What the child that compares two models knows: its sessions, and each output's own measures. */
#ifndef PO_VERIFY_RUNNER_H
#define PO_VERIFY_RUNNER_H

#include "cost/ort/ort.h"
#include "verify/verify_internal.h"

typedef struct po_runner_output {
    const char *name;
    double natural;  /* magnitude: the largest so far, or what its operator can reach */
    double rounding; /* of that operator */
    double noise;    /* on the set at hand */
    bool random;     /* two runs of the original differ */
} po_runner_output;

typedef struct po_runner {
    po_ctx *ctx;
    po_arena *arena;
    po_reply *reply;
    const po_verify_spec *spec;
    const po_inputs *plan;
    po_session *original, *candidate;
    po_session *plain; /* the original without graph optimisation; opened when first needed */
    po_ort *ort;
    po_runner_output *outputs;
    uint32_t n_outputs;
    po_verify_report report;
    double until;
    double references; /* seconds left for the float64 reference */
    double strain;     /* of the set at hand: the largest error over what the tolerance allows */
} po_runner;

/* A set of inputs. */
typedef struct po_input_set {
    const po_feed *feed;
    const char *name;
    const po_draw *draw; /* NULL: the user's data */
    bool wide;           /* beyond what models are made for */
} po_input_set;

/* Tells the parent what the child is at. */
void po_runner_mark(const po_runner *r, po_verify_stage stage);
/* Feeds one session and runs it. */
po_status po_runner_run(po_runner *r, po_session *session, const po_feed *feed, po_ort_run **run);

/* excuse.c: what may stand in the way of comparing floats is asked for once a set, when it is first
 * needed. */
typedef struct po_excuses {
    bool noise, own, scaled;
    uint32_t draws;          /* of noise that were asked for */
    po_array **exact;        /* the reference's outputs; NULL: it has no answer */
    po_own_error *own_error; /* by output */
    const po_datum *at_scale;
} po_excuses;

/* Compares output i again, as far as it is off, by what the original itself is off there. */
po_status po_excuse_floats(po_runner *r, const po_input_set *set, po_arena *scratch, uint32_t i,
                           const po_datum *expected, const po_datum *got, po_compare_rule *rule,
                           po_excuses *excuses, po_difference *d);

#endif

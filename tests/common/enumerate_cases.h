/* Small subprograms with a known better form, for the enumeration's test and its bench. */
#ifndef TEST_ENUMERATE_CASES_H
#define TEST_ENUMERATE_CASES_H

#include "mutate/mutate.h"

typedef struct enumerate_case {
    const char *name;
    const char *text;       /* .pir */
    uint32_t n_activations; /* of the inputs */
    bool partial;           /* the form agrees in part only */
    /* Whether a mutant is the form that is looked for. */
    bool (*is)(const po_graph *graph);
} enumerate_case;

extern const enumerate_case enumerate_cases[];
extern const uint32_t n_enumerate_cases;

/* A mutant that PET's paper tells of, at its true size. */
typedef struct enumerate_paper_case {
    const char *name;
    const char *text;                     /* .pir, without its first line */
    uint32_t n_activations, rounds, keep; /* 0: as po_mutate_options says */
    const char *wanted;                   /* what the mutant's name ends with */
    const char *corrected; /* how what differs is corrected first; "": nothing does */
} enumerate_paper_case;

extern const enumerate_paper_case enumerate_paper_cases[];
extern const uint32_t n_enumerate_paper_cases;
po_subprogram enumerate_paper_subprogram(po_ctx *ctx, const enumerate_paper_case *c);

/* Parses a case as a subprogram. Aborts the test on failure. */
po_subprogram enumerate_subprogram(po_ctx *ctx, const enumerate_case *c);

#endif

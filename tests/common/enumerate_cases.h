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

/* Parses a case as a subprogram. Aborts the test on failure. */
po_subprogram enumerate_subprogram(po_ctx *ctx, const enumerate_case *c);

#endif

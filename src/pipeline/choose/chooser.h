/* The one chooser of rewrites, whatever they are for: ONNX Runtime, kernels on this processor, a
 * GPU. A state is a graph to begin with (base) and which choices are made on it (bits). What a
 * state costs only the caller knows, who reads it, or estimates it.
 *
 * From the states that were given first a beam of the best goes on to its neighbours: one choice
 * more or less, another base, or all at once that seemed to gain elsewhere. They are priced in the
 * order of what they promise, by what their choices did between states that have a price, and this
 * goes on until no new one is better than the best by what counts as a gain. Each state is priced
 * once, and there is a number that ends it whatever the prices say: it ends by construction. The
 * same prices lead the same way. */
#ifndef PO_PIPELINE_CHOOSER_H
#define PO_PIPELINE_CHOOSER_H

#include "base/ctx.h"
#include "base/hash.h"

enum { PO_CHOOSER_CHOICES = 64, PO_CHOOSER_STATES = 64 };
typedef uint64_t po_choices; /* bits */
#define PO_CHOICE(k) ((po_choices)1 << (k))

typedef struct po_combination {
    uint32_t base;
    po_choices choices;
    /* Set by pricing. */
    double cost;     /* anything above 0; else: it cannot be had, or nobody knows */
    po_choices open; /* choices that would change something if they were made here */
    uint32_t number; /* the caller's own; PO_NONE at first */
    bool priced;
} po_combination;

typedef struct po_chooser_rules {
    uint32_t bases; /* bits: those that there are */
    uint32_t n_choices;
    po_choices excludes[PO_CHOOSER_CHOICES]; /* by choice: those it takes the place of */
    uint32_t beam;
    uint32_t at_a_time; /* neighbours priced before the beam is found again; 0: all of them */
    uint32_t most;      /* states from which on no neighbour is proposed */
    double gain;        /* what counts: 1.01 is one part in a hundred */
    double hopeless;    /* a neighbour that promises more than so many times the least is left */
    /* Sets what the states of the batch cost. */
    po_status (*price)(void *user, po_combination *const *batch, uint32_t n);
    void *user;
} po_chooser_rules;

typedef struct po_chooser {
    po_ctx *ctx;
    po_arena *arena;
    po_chooser_rules rules;
    po_combination states[PO_CHOOSER_STATES];
    uint32_t n, rounds;
    bool over; /* no further round: the caller says so where its time is up */
} po_chooser;

po_chooser *po_chooser_create(po_ctx *ctx, po_arena *arena, const po_chooser_rules *rules);

/* A state to be priced next; NULL: it is known, or there is no room. */
po_combination *po_chooser_add(po_chooser *c, uint32_t base, po_choices choices);
const po_combination *po_chooser_find(const po_chooser *c, uint32_t base, po_choices choices);

/* Prices what was added, then what that leads to. May be called again with more. */
po_status po_chooser_run(po_chooser *c);

/* The states that have a price, the least first: number `rank` of them; NULL: there are fewer. */
const po_combination *po_chooser_best(const po_chooser *c, uint32_t rank);

#endif

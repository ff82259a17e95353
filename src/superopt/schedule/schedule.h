/* Schedules: how a naive step is worked. Each scheduler looks at one step of a naive muGraph, says
 * in which ways it can work it (choices), and writes the loops, tiles and places of one of them to
 * another muGraph. What a choice needs of its step it checks itself: whatever is listed is right,
 * and which is fastest is measured. */
#ifndef PO_SUPEROPT_SCHEDULE_H
#define PO_SUPEROPT_SCHEDULE_H

#include "codegen/cpu/kernel.h"
#include "mugraph/mugraph.h"
#include "ops/recipe/pack.h"

/* A weight in the order in which the kernel reads it. */
typedef struct po_packed {
    uint32_t weight; /* number in the naive muGraph */
    po_packing packing;
    uint32_t tensor; /* in the scheduled one; WEIGHT numbers count up in this list */
} po_packed;

bool po_packing_same(const po_packing *a, const po_packing *b);

/* A scheduled muGraph under way. */
typedef struct po_schedule {
    po_arena *arena, *scratch; /* scratch: of the step that is being added */
    const po_mu *naive;
    po_mu *mu;
    uint32_t *tensor; /* by naive tensor: its twin, or PO_NONE; weights are packed instead */
    po_packed *packed;
    uint32_t n_packed, cap_packed;
    bool lone; /* one step to be timed: INPUT and OUTPUT tensors are made DEVICE ones */
} po_schedule;

void po_schedule_start(po_schedule *s, po_arena *arena, const po_mu *naive, bool lone);
/* Rings by what is read, pitches, and places that are used again once their tensor is dead. */
void po_schedule_finish(po_schedule *s);

enum { PO_CHOICE_NUMBERS = 6, PO_CHOICES_MAX = 24 };
enum { PO_SHARED_BYTES = 4 << 20 }; /* of cache that one block may take */

/* What working something in another way does to its result. --accuracy exact admits the first two.
 */
typedef enum po_rounding {
    PO_KEEPS_BITS,  /* the same operations */
    PO_ORDERS_SUMS, /* the same terms, added up in another order */
    PO_ROUNDS       /* other products, or sums of others, which round otherwise */
} po_rounding;

typedef struct po_scheduler po_scheduler;
typedef struct po_choice {
    const po_scheduler *how;
    int64_t n[PO_CHOICE_NUMBERS]; /* the scheduler's own */
} po_choice;

/* Adds a naive step, worked so. */
void po_schedule_step(po_schedule *s, uint32_t step, const po_choice *choice);

struct po_scheduler {
    const char *name;
    po_rounding rounding;
    /* Appends choices for a step, the best guess for `isa` first; returns how many there are now.
     */
    uint32_t (*list)(const po_mu *naive, uint32_t step, const po_isa *isa, po_choice *choices,
                     uint32_t n);
    void (*apply)(po_schedule *s, uint32_t step, const po_choice *choice);
    /* Choices with the same number do the same in pieces of other sizes. */
    int64_t (*family)(const po_choice *choice);
    /* "direct, tile 6x64": for people. */
    void (*tell)(const po_choice *choice, po_text *text);
    /* What it makes of rounding, where the plain way is 1 (ops/sum/bilinear.h); NULL: 1. */
    double (*magnifies)(const po_choice *choice);
    /* The plain way that reads the same weights as this, in the same order; false, or NULL: there
     * is none. */
    bool (*plainly)(const po_mu *naive, uint32_t step, const po_choice *choice, po_choice *plain);
};

extern const po_scheduler po_schedule_direct;   /* direct.c: products, in tiles */
extern const po_scheduler po_schedule_winograd; /* winograd_choices.c */
extern const po_scheduler po_schedule_strassen; /* strassen_choices.c: products, 7 for 8 */
extern const po_scheduler po_schedule_turned;   /* turned.c: pixels as lanes */
extern const po_scheduler po_schedule_planes;   /* planes.c: few outputs of a group */
extern const po_scheduler po_schedule_blocks;   /* blocks.c: long sums, in parts */
extern const po_scheduler po_schedule_map;      /* map.c: anything, lane by lane */

double po_choice_magnifies(const po_choice *choice);

/* Choices of all schedulers for a step, at least one, that make so much of rounding at most; 0:
 * any. Their best guesses are for code of `isa`; each can be printed for any. */
uint32_t po_choices_of(const po_mu *naive, uint32_t step, const po_isa *isa, double most,
                       po_choice choices[PO_CHOICES_MAX]);

#endif

/* Which schedules of a step are compiled and read: most of what a user waits for is the compiler.
 * And which of those that were read is taken. */
#ifndef PO_SUPEROPT_PLAN_WORTH_H
#define PO_SUPEROPT_PLAN_WORTH_H

#include "superopt/schedule/schedule.h"

typedef struct po_worth_step {
    uint32_t n;
    const po_choice *choices;
    const double *estimates; /* by choice */
    const double *seconds;   /* as read; 0: not read, below: it computes something else */
    double part;             /* of the whole, estimated */
} po_worth_step;

/* First: of the choices whose estimate is near the least, the first of each family
 * (po_scheduler.family), and all of them where they are one family and the step has a part in the
 * whole that is worth it. */
void po_worth_first(const po_worth_step *step, bool *read);

/* Then, where it is worth it, the others of the families whose first was the fastest or nearly so;
 * all choices where none that was read is right. */
void po_worth_then(const po_worth_step *step, bool *read);

/* The fastest of those with more than 0 `seconds`; PO_NONE: there is none. `held`, bytes by choice:
 * of those that readings do not tell apart from it the one that holds least, which leaves the
 * caches last where lengths are larger than where it was read. NULL: those lengths are all. */
uint32_t po_worth_taken(const double *seconds, const double *held, uint32_t n);

#endif

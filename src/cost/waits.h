/* How long the threads of this process waited for a processor that others had.
 *
 * On a machine with other work a run with several threads reads like one with fewer: whichever
 * thread waits, the others wait for it. The kernel keeps count (man 5 proc, schedstat: the second
 * number of each thread), so that such readings can be told from fair ones. */
#ifndef PO_COST_WAITS_H
#define PO_COST_WAITS_H

#include "base/ctx.h"

enum { PO_WAITS_MAX = 256 }; /* threads that are looked at */

typedef struct po_waits {
    uint32_t n; /* 0: not known */
    int files[PO_WAITS_MAX];
} po_waits;

/* Looks at the threads that there are now. The files stay open until po_waits_close. */
void po_waits_open(po_waits *waits);
void po_waits_close(po_waits *waits);
/* Seconds that they waited so far, added up; 0 where it is not known. */
double po_waits_read(const po_waits *waits);
/* The second number of a schedstat's text, in seconds; 0 where there is none. */
double po_waits_parse(const char *text);

#endif

/* Between consumers.c and borders.c (what an input is used for) and inputs.c (what it then holds).
 */
#ifndef PO_VERIFY_INPUTS_PRIVATE_H
#define PO_VERIFY_INPUTS_PRIVATE_H

#include "ir/graph.h"

typedef enum po_role {
    PO_ROLE_FREE = 0, /* any number of the dtype */
    PO_ROLE_RANGE,    /* integers (perhaps kept as floats) from low to high, both inclusive */
    PO_ROLE_MASK,     /* 0 or 1; a row is ones, then zeros */
    PO_ROLE_REAL,     /* floats uniform from low to high */
    PO_ROLE_LIST      /* the integers given, cut or padded with the last to the length */
} po_role;

/* What the consumers ask of an input. */
typedef struct po_need {
    po_role role;
    double low, high;
    uint32_t n;
    const int64_t *list;
    bool arithmetic; /* only element-wise operators take it: integers of either sign are fine */
    bool guessed;    /* the range is none that a consumer asks for: borders may lie outside of it */
} po_need;

/* Follows the value through operators that only move data to all that consume it. */
po_need po_need_of(po_arena *arena, const po_graph *graph, po_value_id value);

/* A value at which the graph takes another branch. */
typedef struct po_border {
    double at;
    bool exact; /* the input itself is compared; else rounding decides where the branch begins */
} po_border;

typedef struct po_borders {
    uint32_t n;
    po_border *list;
} po_borders;

/* borders.c: those of an input, added to what is there (all 0: nothing). */
void po_borders_add(po_arena *arena, const po_graph *graph, po_value_id value, po_borders *borders);

/* Lengths at which a graph may take another branch: integer constants that it compares, divides or
 * cuts by, and the ones after them. Returns how many of at most `most` there are; none twice. */
uint32_t po_border_lengths(const po_graph *graph, int64_t *lengths, uint32_t n, uint32_t most);

#endif

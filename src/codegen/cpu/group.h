/* A statement and those fused to it, on register tiles. */
#ifndef PO_CODEGEN_GROUP_H
#define PO_CODEGEN_GROUP_H

#include "codegen/cpu/printer.h"

typedef struct cg_tile {
    cg *g;
    uint32_t row, lane; /* PO_NONE: none; lane PO_NONE: floats instead of vectors */
    bool lane_reduced;
    bool started; /* the elements were set before: what is fresh goes on */
    bool led;     /* what the lanes are reduced of is made by the statement `lead` first */
    uint32_t lead;
    int64_t rows, lanes; /* of the schedule, cut to this machine's registers */
    /* Rows of several steps of the label around them, `over` (PO_NONE: of one): row r of a tile is
     * the position `first` + r of lines of `line` rows each. */
    uint32_t over;
    int64_t line, first;
    /* of the tile that is being printed */
    int64_t r, v;     /* rows, vectors */
    const char *tail; /* lanes of the last vector in C; NULL: all */
} cg_tile;

/* Rows that tiles go through one after the other, where that is one number. */
int64_t cg_rows_of(const cg_tile *t);

/* "x3_1_2" */
const char *cg_name(cg *g, const char *what, uint32_t number, bool by_row, int64_t r, bool by_lane,
                    int64_t v);

/* One statement on the tile: its value comes to be in C variables, and in memory where its place is
 * not REGISTER. guarded: what its guards leave out is seen to here. */
po_status cg_on_tile(cg_tile *t, uint32_t node, bool guarded);

/* Steps of a label that are worked at once: n, or what the C expression says, at most n. */
typedef struct cg_steps {
    int64_t n;
    const char *count;
} cg_steps;
typedef po_status (*cg_each_fn)(void *user, cg_steps steps);

/* Runs `each` with blocks of `block` steps of a label, then with what is left: where that may be
 * any number, blocks of `vector` steps and then a part of one; 1: of half as many, down to 1. */
po_status cg_spread(cg *g, uint32_t label, int64_t block, int64_t vector, bool inner,
                    cg_each_fn each, void *user);
/* The lanes of the last of their vectors in C; NULL: all. */
const char *cg_tail_of(cg *g, cg_steps steps);
/* Opens the loop over a label (or none, where it has one step); returns braces opened. */
uint32_t cg_run(cg *g, uint32_t label, bool inner);
/* The same in blocks of `block` steps: the loop over blocks, and the one inside a block. Each opens
 * a brace; the label has more steps than a block. */
void cg_run_blocks(cg *g, uint32_t label, int64_t block);
void cg_run_block(cg *g, uint32_t label, int64_t block);
/* Opens an `if` for the guards of a statement whose labels are all set in `ready`, and marks them
 * in `done` (a flag for each operand and axis, the statement's own access last). */
uint32_t cg_guards(cg *g, uint32_t node, const bool *ready, bool *done);

#endif

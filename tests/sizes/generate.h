/* Random small graphs with open dims, and small changes of them, as lines of text. */
#ifndef TEST_SIZES_GENERATE_H
#define TEST_SIZES_GENERATE_H

#include "base/arena.h"

enum { GENERATED_LINES = 96, GENERATED_LINE = 400 };

/* Nodes that make y (and z) of the inputs, one a line. */
typedef struct generated {
    char inputs[200], outputs[40];
    uint32_t n;
    char line[GENERATED_LINES][GENERATED_LINE];
} generated;

/* Draws of a seed, one after the other. */
typedef struct lots {
    uint64_t seed, stream, drawn;
} lots;
uint32_t lots_below(lots *l, uint32_t n);
bool lots_one_in(lots *l, uint32_t n);

/* A graph of operators that the proof for every size follows, most of the time, with one to three
 * open dims. */
void generate_graph(generated *g, uint64_t seed);
/* Another number, operator or operand somewhere, or nodes put in that change a value at few lengths
 * only. What comes out need not be a graph. */
void generate_change(generated *g, uint64_t seed);
/* The text of it. */
const char *generated_text(const generated *g, po_arena *arena);

#endif

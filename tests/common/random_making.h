/* Graphs that are made by drawing lots: values so far, their text, and one node after the other. */
#ifndef TEST_RANDOM_MAKING_H
#define TEST_RANDOM_MAKING_H

#include "base/str.h"

enum { MAKING_VALUES = 32, MAKING_RANK = 6 };

typedef struct making_value {
    uint32_t rank;
    int64_t dim[MAKING_RANK];
    bool used; /* has a reader */
} making_value;

typedef struct making {
    po_arena *arena;
    po_text body;
    uint64_t seed, draws;
    making_value v[MAKING_VALUES]; /* v0 and v1 are the inputs; v1 may be missing */
    uint32_t n, n_inputs, n_constants;
    bool modern; /* of an opset with RMSNormalization, where all reductions take axes as an input */
} making;

int64_t making_draw(making *m, int64_t from, int64_t to); /* both among what is drawn */
bool making_chance(making *m, int64_t one_in);
int64_t making_pick(making *m, const int64_t *from, size_t n);
#define PICK(m, ...)                                                                               \
    making_pick((m), (const int64_t[]){__VA_ARGS__},                                               \
                sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t))

int64_t making_count_of(const making_value *v);

/* Text: numbers in a row, a random constant, integers as a constant of a line before. */
const char *making_list(making *m, const int64_t *n, uint32_t count);
const char *making_weight(making *m, uint32_t rank, const int64_t *dims);
const char *making_integers(making *m, const int64_t *n, uint32_t count);
/* A constant of the value's rank or less that broadcasts to it. */
const char *making_broadcast(making *m, const making_value *v);

/* Nodes; the number of what they make. */
__attribute__((format(printf, 3, 4))) uint32_t making_made(making *m, const making_value *v,
                                                           const char *format, ...);
uint32_t making_unary(making *m, uint32_t x, const char *op);
uint32_t making_binary(making *m, uint32_t x, uint32_t y, const char *op);
uint32_t making_with_number(making *m, uint32_t x, const char *op, double number);

/* random_moves.c: slices, joins, padding, other shapes; x where none fits. */
uint32_t making_move(making *m, uint32_t x);

#endif

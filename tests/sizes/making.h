/* A random graph while it is made. A value is told by its dims, numbers or words that tell how they
 * were made; equal words are equal lengths, so that values of one shape can be added. */
#ifndef TEST_SIZES_MAKING_H
#define TEST_SIZES_MAKING_H

#include "generate.h"

enum { DIM = 72, VALUES = 80 };

typedef struct shape {
    char dim[4][DIM];
    uint32_t rank;
} shape;

typedef struct making {
    generated *g;
    lots lots;
    uint32_t n, constants;
    shape value[VALUES]; /* v0, v1, .. */
    bool maps;
} making;

/* Draws from 0 to n - 1. */
uint32_t sizes_below(making *m, uint32_t n);
__attribute__((format(printf, 2, 3))) void sizes_line(making *m, const char *format, ...);
/* The number of the value that the next line makes. */
uint32_t sizes_value(making *m, shape s);
/* The same with another dim. */
__attribute__((format(printf, 3, 4))) shape sizes_dim(shape s, uint32_t axis, const char *format,
                                                      ...);
/* 0: open */
int sizes_number(const shape *s, uint32_t axis);
/* A value that has the shape of v but for one axis (4: none); v itself where there is none. */
uint32_t sizes_partner(making *m, uint32_t v, uint32_t axis);
const char *sizes_one_of(making *m, const char *const *list, uint32_t n);
#define ONE_OF(m, ...)                                                                             \
    sizes_one_of(m, (const char *const[]){__VA_ARGS__},                                            \
                 sizeof((const char *const[]){__VA_ARGS__}) / sizeof(const char *))

/* --- nodes of any shape (making.c) --- */

void sizes_unary(making *m, uint32_t v);
void sizes_scalar(making *m, uint32_t v);
void sizes_combine(making *m, uint32_t v);
void sizes_slice(making *m, uint32_t v, uint32_t axis);
void sizes_concat(making *m, uint32_t v, uint32_t axis);

/* Nodes of tokens (tokens.c) and of maps (maps.c), one or a few of them. */
void sizes_token_node(making *m, uint32_t v);
void sizes_map_node(making *m, uint32_t v);

#endif

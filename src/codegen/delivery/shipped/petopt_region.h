/* What the tables of a library say of a model's regions. C and C++. */
#ifndef PETOPT_REGION_H
#define PETOPT_REGION_H

#include <stddef.h>
#include <stdint.h>

/* Element types, by the numbers that ONNX gives them; 0 stands for f32 too. */
enum { PK_F32 = 1, PK_F16 = 10, PK_BF16 = 16, PK_MAX_RANK = 8 };

typedef struct pk_port {
    size_t rank;
    const int64_t *dims; /* one may be -m: as many samples as there are, each of m places; those
                            before it are 1 */
    int type;
} pk_port;

/* A length that is open: what an axis of an input has, over `multiple`. */
typedef struct pk_given {
    size_t input, axis;
    int64_t multiple;
} pk_given;

/* A region of a model: one operator. Its inputs are n_in activations, then n_weights weights. */
typedef struct pk_region {
    const char *name;
    size_t n_in, n_weights, n_out;
    const pk_port *in, *out;
    const int64_t *weight_elements;
    const int *weight_types; /* NULL: all f32 */
    const void *code;        /* the target's */
    size_t n_given; /* lengths that are open; where there are some the dims of ports are those that
                       `lengths` says */
    const pk_given *given;
    /* PK_MAX_RANK dims for each input, then for each output; NULL: they are not asked for. 0: the
     * model has no such lengths, or the region is not meant for them. */
    int (*lengths)(const int64_t *given, int64_t *dims);
    const struct pk_batched *batched; /* how several samples are worked at once; NULL: one by one */
} pk_region;

/* Of a region of one sample: its head, where it has one, is called for each of them, and the rest,
 * which has their number among its lengths, for many. */
typedef struct pk_part {
    const pk_region *region;
    const size_t *from; /* by input: that of the whole; behind those the outputs of the head */
} pk_part;

typedef struct pk_batched {
    pk_part head, rest;
} pk_batched;

static inline int64_t pk_least(int64_t a, int64_t b) {
    return a < b ? a : b;
}

static inline int64_t pk_most(int64_t a, int64_t b) {
    return a > b ? a : b;
}

/* a / n rounded down, n > 0. */
static inline int64_t pk_quotient(int64_t a, int64_t n) {
    return a / n - (a % n < 0);
}

#endif

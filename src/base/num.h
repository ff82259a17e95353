/* Checked 64-bit arithmetic for numbers that come from a model: each returns false on overflow.
 * Whole divisions, and counting through indices. */
#ifndef PO_BASE_NUM_H
#define PO_BASE_NUM_H

#include <stdbool.h>
#include <stdint.h>

static inline bool po_add_i64(int64_t a, int64_t b, int64_t *sum) {
    return !__builtin_add_overflow(a, b, sum);
}

static inline bool po_sub_i64(int64_t a, int64_t b, int64_t *difference) {
    return !__builtin_sub_overflow(a, b, difference);
}

static inline bool po_mul_i64(int64_t a, int64_t b, int64_t *product) {
    return !__builtin_mul_overflow(a, b, product);
}

/* Rounds towards minus infinity; b > 0. */
static inline int64_t po_floor_div(int64_t a, int64_t b) {
    return a / b - (a % b < 0);
}

/* Rounds towards plus infinity; b > 0. */
static inline int64_t po_ceil_div(int64_t a, int64_t b) {
    return a / b + (a % b > 0);
}

/* The greatest that divides both, at least 0; 0 of two zeros. Neither is INT64_MIN. */
static inline int64_t po_gcd_i64(int64_t a, int64_t b) {
    while (b) {
        int64_t r = a % b;
        a = b;
        b = r;
    }
    return a < 0 ? -a : a;
}

/* Adds one to a row-major index; false after the last, when it is back at the first. */
static inline bool po_next_index(uint32_t rank, const int64_t *dims, int64_t *index) {
    for (uint32_t i = rank; i-- > 0;) {
        if (++index[i] < dims[i])
            return true;
        index[i] = 0;
    }
    return false;
}

#endif

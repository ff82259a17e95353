/* Arithmetic modulo a prime p between 2^30 and 2^31, drawn or fixed. Values are below p.
 *
 * modp.h has the fixed prime's own, which is faster; proofs draw theirs, so that no one can choose
 * numbers that are one modulo it. */
#ifndef PO_BASE_FIELD_H
#define PO_BASE_FIELD_H

#include "base/ctx.h"
#include "base/modp.h"

typedef struct po_field {
    uint32_t p, half;  /* half: 1 / 2 */
    uint64_t quotient; /* 2^64 / p, rounded down */
} po_field;

/* The fixed prime's, PO_P. */
#define PO_FIELD_FIXED ((po_field){PO_P, 1u << 30, 8589934596})

/* How many primes there are to draw from: log2 of it. */
#define PO_FIELD_LOG2_PRIMES 25.59

/* p: a prime between 2^30 and 2^31. */
po_field po_field_of(uint32_t p);
bool po_field_is_prime(uint32_t n);
/* The powers of it are all values but 0. */
uint32_t po_field_generator(po_field f);
/* Draws n different primes from the system's randomness, each of those between 2^30 and 2^31 with
 * the same chance, and a seed. PO_IO where the system has none. */
po_status po_field_draw(po_ctx *ctx, uint32_t n, uint32_t *primes, uint64_t *seed);

/* Any 64-bit number. */
static inline uint32_t po_field_reduce(po_field f, uint64_t v) {
    uint64_t q = (uint64_t)((unsigned __int128)v * f.quotient >> 64);
    uint64_t r = v - q * f.p; /* below 2 p */
    return (uint32_t)(r >= f.p ? r - f.p : r);
}

static inline uint32_t po_field_add(po_field f, uint32_t a, uint32_t b) {
    uint32_t s = a + b;
    return s >= f.p ? s - f.p : s;
}

static inline uint32_t po_field_neg(po_field f, uint32_t a) {
    return a ? f.p - a : 0;
}

static inline uint32_t po_field_sub(po_field f, uint32_t a, uint32_t b) {
    return a >= b ? a - b : a + f.p - b;
}

static inline uint32_t po_field_mul(po_field f, uint32_t a, uint32_t b) {
    return po_field_reduce(f, (uint64_t)a * b);
}

/* The residue of a signed number. */
static inline uint32_t po_field_i64(po_field f, int64_t v) {
    return v >= 0 ? po_field_reduce(f, (uint64_t)v)
                  : po_field_neg(f, po_field_reduce(f, 0 - (uint64_t)v));
}

static inline uint32_t po_field_pow(po_field f, uint32_t base, uint32_t exponent) {
    uint32_t power = 1;
    for (; exponent; exponent >>= 1, base = po_field_mul(f, base, base))
        if (exponent & 1)
            power = po_field_mul(f, power, base);
    return power;
}

/* 1 / a; 0 for 0, which has no inverse. */
static inline uint32_t po_field_inverse(po_field f, uint32_t a) {
    return po_field_pow(f, a, f.p - 2);
}

#endif

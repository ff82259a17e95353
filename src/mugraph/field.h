/* Arithmetic modulo p = 2^61 - 2373 and q = 2^60 - 1187, both prime, p = 2q + 1. Values are below
 * the modulus. */
#ifndef PO_MUGRAPH_FIELD_H
#define PO_MUGRAPH_FIELD_H

#include "mugraph/eval.h"

typedef struct po_mu_field {
    uint64_t modulus;
    uint32_t bits, below; /* modulus = 2^bits - below */
} po_mu_field;

#define PO_MU_FIELD_P ((po_mu_field){PO_MU_P, 61, 2373})
#define PO_MU_FIELD_Q ((po_mu_field){PO_MU_Q, 60, 1187})

static inline uint64_t po_mu_field_add(po_mu_field f, uint64_t a, uint64_t b) {
    uint64_t s = a + b;
    return s >= f.modulus ? s - f.modulus : s;
}

static inline uint64_t po_mu_field_sub(po_mu_field f, uint64_t a, uint64_t b) {
    return a >= b ? a - b : a + f.modulus - b;
}

/* 2^bits is `below`: what stands above comes back below, twice. */
static inline uint64_t po_mu_field_mul(po_mu_field f, uint64_t a, uint64_t b) {
    uint64_t mask = ((uint64_t)1 << f.bits) - 1;
    unsigned __int128 t = (unsigned __int128)a * b;
    t = (t & mask) + (unsigned __int128)(uint64_t)(t >> f.bits) * f.below;
    uint64_t s = ((uint64_t)t & mask) + (uint64_t)(t >> f.bits) * f.below;
    return s >= f.modulus ? s - f.modulus : s;
}

static inline uint64_t po_mu_field_pow(po_mu_field f, uint64_t base, uint64_t exponent) {
    uint64_t power = 1;
    for (; exponent; exponent >>= 1, base = po_mu_field_mul(f, base, base))
        if (exponent & 1)
            power = po_mu_field_mul(f, power, base);
    return power;
}

/* 1 / a; 0 for 0, which has no inverse. */
static inline uint64_t po_mu_field_inverse(po_mu_field f, uint64_t a) {
    return po_mu_field_pow(f, a, f.modulus - 2);
}

static inline uint64_t po_mu_field_i64(po_mu_field f, int64_t v) {
    uint64_t r = (v < 0 ? 0 - (uint64_t)v : (uint64_t)v) % f.modulus;
    return v < 0 && r ? f.modulus - r : r;
}

#endif

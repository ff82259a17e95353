/* Arithmetic modulo p = 2^31 - 1 (a Mersenne prime). Values are below p. */
#ifndef PO_BASE_MODP_H
#define PO_BASE_MODP_H

#include <stdint.h>

#define PO_P 2147483647u

/* Any 64-bit number. */
static inline uint32_t po_mod_reduce(uint64_t v) {
    v = (v & PO_P) + (v >> 31);
    v = (v & PO_P) + (v >> 31);
    return v >= PO_P ? (uint32_t)(v - PO_P) : (uint32_t)v;
}

static inline uint32_t po_mod_add(uint32_t a, uint32_t b) {
    uint32_t s = a + b;
    return s >= PO_P ? s - PO_P : s;
}

static inline uint32_t po_mod_neg(uint32_t a) {
    return a ? PO_P - a : 0;
}

static inline uint32_t po_mod_mul(uint32_t a, uint32_t b) {
    return po_mod_reduce((uint64_t)a * b);
}

/* The residue of a signed number. */
static inline uint32_t po_mod_i64(int64_t v) {
    return v >= 0 ? po_mod_reduce((uint64_t)v) : po_mod_neg(po_mod_reduce(0 - (uint64_t)v));
}

static inline uint32_t po_mod_pow(uint32_t base, uint32_t exponent) {
    uint32_t power = 1;
    for (; exponent; exponent >>= 1, base = po_mod_mul(base, base))
        if (exponent & 1)
            power = po_mod_mul(power, base);
    return power;
}

/* 1 / a; 0 for 0, which has no inverse. */
static inline uint32_t po_mod_inverse(uint32_t a) {
    return po_mod_pow(a, PO_P - 2);
}

#endif

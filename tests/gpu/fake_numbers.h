/* Numbers as the fake libraries store them. Types as CUDA numbers them: 0 f32, 2 f16, 14 bf16. */
#ifndef PO_TESTS_FAKE_NUMBERS_H
#define PO_TESTS_FAKE_NUMBERS_H

#include <math.h>
#include <stdint.h>
#include <string.h>

enum { F32 = 0, F16 = 2, BF16 = 14 };

static inline int bytes_of(int type) {
    return type == F32 ? 4 : 2;
}

/* To so many bits of mantissa, to the nearest, ties to even. */
static inline double rounded(double v, int bits, int least) {
    int e;
    if (v == 0 || !isfinite(v))
        return v;
    frexp(v, &e);
    int shift = (e - 1 > least ? e - 1 : least) - bits;
    return ldexp(nearbyint(ldexp(v, -shift)), shift);
}

static inline double fake_load(int type, const void *at, int64_t i) {
    if (type == F32) {
        float f;
        memcpy(&f, (const char *)at + 4 * i, 4);
        return (double)f;
    }
    uint16_t h;
    memcpy(&h, (const char *)at + 2 * i, 2);
    if (type == BF16) {
        uint32_t bits = (uint32_t)h << 16;
        float f;
        memcpy(&f, &bits, 4);
        return (double)f;
    }
    int e = h >> 10 & 31, m = h & 1023;
    double v = e == 0 ? ldexp(m, -24) : e == 31 ? (m ? NAN : INFINITY) : ldexp(1024 + m, e - 25);
    return h >> 15 ? -v : v;
}

static inline void fake_store(int type, void *at, int64_t i, double v) {
    if (type == F32) {
        float f = (float)v;
        memcpy((char *)at + 4 * i, &f, 4);
        return;
    }
    uint16_t h;
    if (type == BF16) {
        float f = (float)rounded(v, 7, -126);
        uint32_t bits;
        memcpy(&bits, &f, 4);
        h = (uint16_t)(bits >> 16);
    } else {
        double r = fabs(rounded(v, 10, -14));
        int e;
        if (isnan(v))
            h = 0x7e00;
        else if (r > 65504)
            h = 0x7c00;
        else if (r < 0x1p-14)
            h = (uint16_t)ldexp(r, 24);
        else {
            frexp(r, &e);
            h = (uint16_t)((e + 14) << 10 | ((int)ldexp(r, 11 - e) & 1023));
        }
        h = (uint16_t)(h | (signbit(v) ? 0x8000 : 0));
    }
    memcpy((char *)at + 2 * i, &h, 2);
}

#endif

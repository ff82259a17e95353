/* Functions of residues: random ones of which the stated laws hold and no others. */
#include "verify/proof/internal.h"

#include <math.h>
#include <stdlib.h>

uint64_t po_pf_key(const po_prun *run, const char *name) {
    po_hash h = po_hash_str((po_hash){run->seed, 0x66756e}, name);
    return h.lo ^ h.hi;
}

po_pfun po_pfun_of(const po_prun *run) {
    return (po_pfun){.field = run->field,
                     .exp = po_pf_key(run, "exp"),
                     .erf = po_pf_key(run, "erf"),
                     .log = po_pf_key(run, "log"),
                     .sqrt = po_pf_key(run, "sqrt"),
                     .abs = po_pf_key(run, "abs"),
                     .clip = po_pf_key(run, "clip"),
                     .less = po_pf_key(run, "less"),
                     .equal = po_pf_key(run, "equal"),
                     .set = po_pf_key(run, "set"),
                     .both = po_pf_key(run, "and"),
                     .either = po_pf_key(run, "or"),
                     .power = po_pf_key(run, "power"),
                     .powers = run->powers};
}

/* Powers of a generator are all residues but 0, and the inverse of one is another. Three tables of
 * eleven bits of the exponent each. */
enum { DIGIT = 2048 };

void po_pf_powers(po_field f, uint32_t *table) {
    uint32_t base = po_field_generator(f);
    for (uint32_t k = 0; k < 3; k++) {
        table[(size_t)k * DIGIT] = 1;
        for (uint32_t i = 1; i < DIGIT; i++)
            table[k * DIGIT + i] = po_field_mul(f, table[k * DIGIT + i - 1], base);
        base = po_field_mul(f, table[k * DIGIT + DIGIT - 1], base);
    }
}

static uint32_t power_of_generator(const po_pfun *f, uint32_t e) {
    const uint32_t *t = f->powers;
    uint32_t v = po_field_mul(f->field, t[e % DIGIT], t[DIGIT + e / DIGIT % DIGIT]);
    return po_field_mul(f->field, v, t[2 * DIGIT + e / DIGIT / DIGIT]);
}

/* The one of x and -x that stands for both. */
static uint32_t unsign(const po_pfun *f, uint32_t x) {
    uint32_t y = po_field_neg(f->field, x);
    return x < y ? x : y;
}

static uint32_t odd(const po_pfun *f, uint64_t key, uint32_t x) {
    uint32_t c = unsign(f, x);
    if (c == 0)
        return 0;
    return c == x ? po_pf(f->field, key, c) : po_field_neg(f->field, po_pf(f->field, key, c));
}

uint32_t po_px_exp(const po_pfun *f, uint32_t x) {
    uint32_t c = unsign(f, x), order = f->field.p - 1;
    if (c == 0)
        return 1;
    uint32_t e = po_pf(f->field, f->exp, c) % order;
    return power_of_generator(f, c == x ? e : (order - e) % order);
}

uint32_t po_px_abs(const po_pfun *f, uint32_t x) {
    uint32_t c = unsign(f, x);
    return c ? po_pf(f->field, f->abs, c) : 0;
}

uint32_t po_px_erf(const po_pfun *f, uint32_t x) {
    return odd(f, f->erf, x);
}

uint32_t po_px_clip(const po_pfun *f, uint32_t x) {
    uint32_t half = f->field.half;
    return po_field_add(f->field, half, odd(f, f->clip, po_field_sub(f->field, x, half)));
}

uint32_t po_px_sqrt(const po_pfun *f, uint32_t x) {
    enum { MOST_SQUARE = 1 << 20 };
    if (x <= MOST_SQUARE) {
        uint32_t root = (uint32_t)lround(sqrt((double)x));
        if (root * root == x)
            return root;
    }
    return po_pf(f->field, f->sqrt, x);
}

uint32_t po_px_relu(const po_pfun *f, uint32_t x) {
    return po_field_mul(f->field, f->field.half, po_field_add(f->field, x, po_px_abs(f, x)));
}

uint32_t po_px_max(const po_pfun *f, uint32_t a, uint32_t b) {
    uint32_t d = po_px_abs(f, po_field_add(f->field, a, po_field_neg(f->field, b)));
    return po_field_mul(f->field, f->field.half,
                        po_field_add(f->field, po_field_add(f->field, a, b), d));
}

uint32_t po_px_power(const po_pfun *f, uint32_t x, const po_pnum *exponent) {
    enum { MOST_POWER = 64 };
    double e = fabs(exponent->value), whole = floor(e);
    if (!exponent->given || !(e <= MOST_POWER) || (e != whole && e != whole + 0.5))
        return po_pf(f->field, f->power ^ po_mix(exponent->mod), x);
    uint32_t v = po_field_pow(f->field, x, (uint32_t)whole);
    if (e != whole)
        v = po_field_mul(f->field, v, po_px_sqrt(f, x));
    return exponent->value < 0 ? po_field_inverse(f->field, v) : v;
}

static int compare(const void *a, const void *b) {
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

static void sort(uint32_t n, uint32_t *values) {
    enum { FEW = 48 };
    if (n > FEW) {
        qsort(values, n, sizeof *values, compare);
        return;
    }
    for (uint32_t i = 0; i < n; i++) {
        uint32_t v = values[i], k = i;
        for (; k && values[k - 1] > v; k--)
            values[k] = values[k - 1];
        values[k] = v;
    }
}

uint32_t po_px_set(const po_pfun *f, uint32_t n, uint32_t *values) {
    uint64_t sum = 0;
    uint32_t distinct = 0;
    sort(n, values);
    for (uint32_t i = 0; i < n; i++) {
        if (i && values[i] == values[i - 1])
            continue;
        sum += po_mix(values[i] * 0x9e3779b97f4a7c15 ^ f->set);
        distinct++;
    }
    return distinct == 1 ? values[0] : po_pf(f->field, f->set, sum);
}

void po_px_inverse(po_field f, int64_t n, uint32_t *values) {
    enum { PIECE = 512 };
    uint32_t before[PIECE];
    for (int64_t at = 0; at < n; at += PIECE) {
        uint32_t *v = values + at, m = n - at < PIECE ? (uint32_t)(n - at) : PIECE, all = 1;
        for (uint32_t i = 0; i < m; i++) {
            before[i] = all;
            all = v[i] ? po_field_mul(f, all, v[i]) : all;
        }
        all = po_field_inverse(f, all);
        for (uint32_t i = m; i-- > 0;) {
            if (!v[i])
                continue;
            uint32_t inverse = po_field_mul(f, all, before[i]);
            all = po_field_mul(f, all, v[i]);
            v[i] = inverse;
        }
    }
}

void po_px_sigmoid(const po_pfun *f, int64_t n, const uint32_t *x, uint32_t *out) {
    for (int64_t i = 0; i < n; i++)
        out[i] = po_field_add(f->field, 1, po_px_exp(f, po_field_neg(f->field, x[i])));
    po_px_inverse(f->field, n, out);
}

void po_px_tanh(const po_pfun *f, int64_t n, const uint32_t *x, uint32_t *out) {
    for (int64_t i = 0; i < n; i++)
        out[i] = po_field_add(f->field, 1, po_px_exp(f, po_field_add(f->field, x[i], x[i])));
    po_px_inverse(f->field, n, out);
    for (int64_t i = 0; i < n; i++)
        out[i] = po_field_add(f->field, 1,
                              po_field_neg(f->field, po_field_add(f->field, out[i], out[i])));
}

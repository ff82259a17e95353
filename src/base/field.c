/* Primes for fields: Miller-Rabin with bases that decide it, the least generator by trial division
 * of p - 1, and primes drawn from the system's random numbers. */
#include "base/field.h"

#include <errno.h>
#include <string.h>
#include <sys/random.h>

po_field po_field_of(uint32_t p) {
    return (po_field){p, (p + 1) / 2, UINT64_MAX / p}; /* p divides no power of 2 */
}

/* Miller-Rabin with bases that decide it below 3,215,031,751. */
bool po_field_is_prime(uint32_t n) {
    static const uint32_t bases[] = {2, 3, 5, 7};
    if (n < 1u << 30 || n % 2 == 0)
        return false;
    po_field f = po_field_of(n); /* its products are right for any odd n */
    uint32_t odd = n - 1, twos = 0;
    for (; odd % 2 == 0; odd /= 2)
        twos++;
    for (size_t i = 0; i < sizeof bases / sizeof bases[0]; i++) {
        uint32_t x = po_field_pow(f, bases[i], odd), k = 0;
        for (; k < twos && x != n - 1 && (k || x != 1); k++)
            x = po_field_mul(f, x, x);
        if (k == twos)
            return false;
    }
    return true;
}

static bool generates(po_field f, uint32_t g, uint32_t n, const uint32_t *factors) {
    for (uint32_t i = 0; i < n; i++)
        if (po_field_pow(f, g, (f.p - 1) / factors[i]) == 1)
            return false;
    return true;
}

uint32_t po_field_generator(po_field f) {
    uint32_t factors[16], n = 0, rest = f.p - 1;
    for (uint32_t d = 2; d <= rest / d; d += d == 2 ? 1 : 2) {
        if (rest % d)
            continue;
        factors[n++] = d;
        while (rest % d == 0)
            rest /= d;
    }
    if (rest > 1)
        factors[n++] = rest;
    uint32_t g = 2;
    while (!generates(f, g, n, factors))
        g++;
    return g;
}

static po_status fill(po_ctx *ctx, void *bytes, size_t size) {
    for (size_t have = 0; have < size;) {
        ssize_t n = getrandom((char *)bytes + have, size - have, 0);
        if (n < 0 && errno != EINTR)
            return po_fail(ctx, PO_IO, "the system gives no random numbers: %s", strerror(errno));
        have += n < 0 ? 0 : (size_t)n;
        PO_TRY(po_ctx_poll(ctx));
    }
    return PO_OK;
}

po_status po_field_draw(po_ctx *ctx, uint32_t n, uint32_t *primes, uint64_t *seed) {
    PO_TRY(fill(ctx, seed, sizeof *seed));
    for (uint32_t i = 0; i < n;) {
        PO_TRY(fill(ctx, &primes[i], sizeof primes[i]));
        primes[i] = 1u << 30 | primes[i] >> 2 | 1;
        bool fresh = po_field_is_prime(primes[i]); /* one in eleven is */
        for (uint32_t k = 0; k < i; k++)
            fresh = fresh && primes[k] != primes[i];
        i += fresh;
    }
    return PO_OK;
}

/* The machine's two rates, measured. */
#include "cost/roofline.h"

#include <math.h>
#include <stdlib.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

enum { CHAINS = 12, STEPS = 20000, TRIES = 5, RATES_LAYOUT = 3 };
#define MEMORY_BYTES ((size_t)64 << 20)

/* Each runs CHAINS independent chains of STEPS multiply-adds over vectors of `width` floats and
 * returns a number that depends on all of them, so that none can be left out. Every chain is a
 * variable: compilers leave a short array in memory, which halves the rate. */
#define EACH(f, ...)                                                                               \
    f(0, __VA_ARGS__) f(1, __VA_ARGS__) f(2, __VA_ARGS__) f(3, __VA_ARGS__) f(4, __VA_ARGS__)      \
        f(5, __VA_ARGS__) f(6, __VA_ARGS__) f(7, __VA_ARGS__) f(8, __VA_ARGS__) f(9, __VA_ARGS__)  \
            f(10, __VA_ARGS__) f(11, __VA_ARGS__)
#define START(k, type, all)   type a##k = all((float)(k));
#define STEP(k, multiply_add) a##k = multiply_add(a##k, x, y);
#define END(k, add)           sum = add(sum, a##k);
#define RUN_CHAINS(type, all, multiply_add, add)                                                   \
    const type x = all(0.999f), y = all(0.001f);                                                   \
    type sum = y;                                                                                  \
    EACH(START, type, all)                                                                         \
    for (int i = 0; i < STEPS; i++) {                                                              \
        EACH(STEP, multiply_add)                                                                   \
    }                                                                                              \
    EACH(END, add)

#if defined(__x86_64__)
__attribute__((target("avx512f"))) static float chains_512(void) {
    RUN_CHAINS(__m512, _mm512_set1_ps, _mm512_fmadd_ps, _mm512_add_ps)
    return _mm512_reduce_add_ps(sum);
}

__attribute__((target("avx2,fma"))) static float chains_256(void) {
    RUN_CHAINS(__m256, _mm256_set1_ps, _mm256_fmadd_ps, _mm256_add_ps)
    float lanes[8];
    _mm256_storeu_ps(lanes, sum);
    return lanes[0] + lanes[7];
}
#endif

typedef float vector __attribute__((vector_size(16)));
#define ALL_PLAIN(value)            ((vector){value, value, value, value})
#define MULTIPLY_ADD_PLAIN(a, x, y) ((a) * (x) + (y))
#define ADD_PLAIN(a, b)             ((a) + (b))

static float chains_plain(void) {
    RUN_CHAINS(vector, ALL_PLAIN, MULTIPLY_ADD_PLAIN, ADD_PLAIN)
    return sum[0] + sum[3];
}

typedef struct kernel {
    float (*run)(void);
    int width;
} kernel;

static kernel best_kernel(void) {
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f"))
        return (kernel){chains_512, 16};
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        return (kernel){chains_256, 8};
#endif
    return (kernel){chains_plain, 4};
}

static double measure_flops(void) {
    kernel k = best_kernel();
    double best = HUGE_VAL;
    volatile float sink = k.run();
    for (int i = 0; i < TRIES; i++) {
        double start = po_thread_seconds();
        for (int r = 0; r < 10; r++)
            sink = sink + k.run();
        best = fmin(best, po_thread_seconds() - start);
    }
    return 10.0 * 2.0 * CHAINS * STEPS * k.width / fmax(best, 1e-9);
}

/* A sanitizer would look at each number that is read, which takes longer than reading it. */
__attribute__((no_sanitize("address", "thread", "undefined"))) static double measure_bytes(void) {
    size_t n = MEMORY_BYTES / sizeof(uint64_t);
    uint64_t *data = malloc(MEMORY_BYTES);
    if (!data)
        return 0;
    for (size_t i = 0; i < n; i++)
        data[i] = i;
    double best = HUGE_VAL;
    volatile uint64_t sink = 0;
    for (int t = 0; t < TRIES; t++) {
        double start = po_thread_seconds();
        uint64_t sum[4] = {0, 0, 0, 0};
        for (size_t i = 0; i < n; i += 4)
            for (size_t k = 0; k < 4; k++)
                sum[k] += data[i + k];
        sink = sink + sum[0] + sum[1] + sum[2] + sum[3];
        best = fmin(best, po_thread_seconds() - start);
    }
    free(data);
    return (double)MEMORY_BYTES / fmax(best, 1e-9);
}

static bool sensible(const po_rates *r) {
    return isfinite(r->flops) && isfinite(r->bytes) && r->flops > 1e8 && r->flops < 1e14 &&
           r->bytes > 1e8 && r->bytes < 1e13;
}

void po_rates_of_machine(po_cost *cost, po_rates *rates) {
    po_hash key = po_hash_u64(po_hash_str((po_hash){0, 0}, cost->machine.cpu), RATES_LAYOUT);
    double kept[2];
    *rates = (po_rates){0};
    if (po_cache_get_fixed(cost->cache, "rates", key, kept, sizeof kept)) {
        rates->flops = kept[0];
        rates->bytes = kept[1];
        if (sensible(rates))
            return;
    }
    rates->flops = kept[0] = measure_flops();
    rates->bytes = kept[1] = measure_bytes();
    if (sensible(rates))
        po_cache_put(cost->cache, "rates", key, kept, sizeof kept);
    else
        *rates = (po_rates){.flops = 1e11, .bytes = 1e10}; /* an ordinary core */
}

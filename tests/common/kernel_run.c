/* A kernel is called twice, every buffer between protected pages and canaries, so that what is
 * touched outside shows; then each element is compared with float64, in units of its magnitude's
 * rounding. */
#include "kernel_run.h"

#include "codegen/compile.h"
#include "mugraph/eval.h"
#include "test_paths.h"

#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PORTS = 64, FENCE = 4096 };

uint32_t test_ports(const po_mu *mu, po_mu_place place, int64_t *elements, uint32_t most) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < mu->n_tensors; i++)
        if (mu->tensors[i].place == place && mu->tensors[i].number < most) {
            uint32_t k = mu->tensors[i].number;
            while (n <= k)
                elements[n++] = 0;
            /* Rings and gaps of weights are part of what is packed. */
            elements[k] = po_mu_elements(&mu->tensors[i]);
        }
    return n;
}

void test_text_start(const po_isa *isa, po_text *text) {
    po_text_puts(text, "#pragma GCC visibility push(default)\n");
    po_codegen_prelude(isa, text);
}

po_status test_open_text(po_ctx *ctx, const po_mu_open *open, const po_isa *isa, const char *symbol,
                         po_text *text) {
    if (text->size == 0)
        test_text_start(isa, text);
    return po_codegen_kernel(ctx, open, NULL, isa, symbol, NULL, text);
}

po_status test_kernel_text(po_ctx *ctx, const po_mu *mu, const po_isa *isa, const char *symbol,
                           po_text *text) {
    po_arena *arena = po_arena_create(ctx);
    po_status status = test_open_text(ctx, po_mu_closed(arena, mu), isa, symbol, text);
    po_arena_free(arena);
    return status;
}

po_status test_kernels_load(po_ctx *ctx, po_arena *arena, const po_isa *isa,
                            const char *const *texts, uint32_t n, const char *flags,
                            const char *dir, bool keep, void **library) {
    const char *so = po_arena_printf(arena, "%s/kernels_%s.so", dir, isa->name);
    po_cc_source *sources = PO_NEW_N(arena, po_cc_source, n + 1);
    for (uint32_t i = 0; i < n; i++) {
        sources[i].path = po_arena_printf(arena, "%s/kernel_%s_%u.c", dir, isa->name, i);
        sources[i].flags =
            po_arena_printf(arena, "%s %s", isa->flags, flags == NULL ? "-DPK_LEAST=0" : flags);
        test_write_text(sources[i].path, texts[i]);
    }
    po_status status = po_cc_library(ctx, NULL, sources, n, NULL, so);
    *library = status == PO_OK ? dlopen(so, RTLD_NOW | RTLD_LOCAL) : NULL;
    if (status == PO_OK && *library == NULL)
        status = po_fail(ctx, PO_RUNTIME, "%s", dlerror());
    for (uint32_t i = 0; i < n && !keep; i++)
        (void)unlink(sources[i].path);
    if (!keep)
        (void)unlink(so);
    return status;
}

test_kernel test_kernel_of(po_arena *arena, void *library, const char *symbol, const po_mu *mu,
                           const long *given, const po_isa *isa) {
    test_kernel kernel = {.mu = mu, .isa = isa};
    void (*measure)(const long *given, long *z);
    char name[80];
    *(void **)&kernel.run = dlsym(library, symbol);
    (void)snprintf(name, sizeof name, "%s_start", symbol);
    *(void **)&kernel.start = dlsym(library, name);
    (void)snprintf(name, sizeof name, "%s_measure", symbol);
    *(void **)&measure = dlsym(library, name);
    (void)snprintf(name, sizeof name, "%s_sizes", symbol);
    long *z = PO_NEW_N(arena, long, *(const size_t *)dlsym(library, name) + 1);
    measure(given, z);
    kernel.z = z;
    kernel.device = (size_t)z[0];
    kernel.scratch = (size_t)z[1];
    return kernel;
}

bool test_has_isa(const po_isa *isa) {
    if (isa->lanes == 8)
        return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
}

/* --- fenced memory --- */

static const float canary = -123456.789f;

test_buffer test_buffer_of(size_t floats, bool at_start, bool aligned) {
    size_t bytes = floats * sizeof(float), room = aligned ? (bytes + 63) / 64 * 64 : bytes;
    size_t pages = (room + FENCE - 1) / FENCE * FENCE;
    test_buffer b = {NULL, floats, NULL, pages + 2 * FENCE};
    char *map = mmap(NULL, b.size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (map == MAP_FAILED)
        abort();
    b.map = map;
    for (size_t i = 0; i < pages / sizeof(float); i++)
        ((float *)(void *)(map + FENCE))[i] = canary;
    (void)mprotect(map, FENCE, PROT_NONE);
    (void)mprotect(map + FENCE + pages, FENCE, PROT_NONE);
    b.data = (float *)(void *)(at_start ? map + FENCE : map + FENCE + pages - room);
    return b;
}

void test_buffer_free(test_buffer *b) {
    (void)munmap(b->map, b->size);
    b->map = NULL;
}

bool test_buffer_whole(const test_buffer *b) {
    const float *from = (const float *)(const void *)((const char *)b->map + FENCE);
    const float *to = (const float *)(const void *)((const char *)b->map + b->size - FENCE);
    for (const float *p = from; p < b->data; p++)
        if (memcmp(p, &canary, sizeof canary) != 0)
            return false;
    for (const float *p = b->data + b->floats; p < to; p++)
        if (memcmp(p, &canary, sizeof canary) != 0)
            return false;
    return true;
}

/* --- pools --- */

void test_pool_serial(void *self, void (*fn)(void *arg, size_t part), void *arg) {
    const test_pool *pool = self;
    for (size_t i = pool->parts; i-- > 0;) /* any order will do */
        fn(arg, i);
}

typedef struct thread_call {
    void (*fn)(void *arg, size_t part);
    void *arg;
    size_t part;
} thread_call;

static void *thread_main(void *user) {
    const thread_call *call = user;
    call->fn(call->arg, call->part);
    return NULL;
}

void test_pool_threads(void *self, void (*fn)(void *arg, size_t part), void *arg) {
    const test_pool *pool = self;
    pthread_t threads[16];
    thread_call calls[16];
    for (size_t i = 0; i < pool->parts && i < 16; i++) {
        calls[i] = (thread_call){fn, arg, i};
        if (pthread_create(&threads[i], NULL, thread_main, &calls[i]) != 0)
            abort();
    }
    for (size_t i = 0; i < pool->parts && i < 16; i++)
        (void)pthread_join(threads[i], NULL);
}

/* --- against float64 --- */

static double **doubles_of(po_arena *arena, const float *const *from, const int64_t *n,
                           uint32_t count) {
    double **to = PO_NEW_N(arena, double *, count + 1);
    for (uint32_t i = 0; i < count; i++) {
        to[i] = PO_NEW_N(arena, double, n[i] + 1);
        for (int64_t k = 0; from != NULL && k < n[i]; k++)
            to[i][k] = (double)from[i][k];
    }
    return to;
}

const char *test_kernel_check(po_ctx *ctx, po_arena *arena, const test_kernel *kernel,
                              const float *const *in, const float *const *weight, size_t parts,
                              bool threads, bool at_start, double k, double *worst,
                              float **outputs) {
    int64_t n_in[PORTS], n_weight[PORTS], n_out[PORTS];
    uint32_t ins = test_ports(kernel->mu, PO_MU_INPUT, n_in, PORTS);
    uint32_t weights = test_ports(kernel->mu, PO_MU_WEIGHT, n_weight, PORTS);
    uint32_t outs = test_ports(kernel->mu, PO_MU_OUTPUT, n_out, PORTS);
    test_buffer ib[PORTS], wb[PORTS], ob[PORTS];
    const float *i_p[PORTS], *w_p[PORTS] = {NULL};
    float *o_p[PORTS];
    for (uint32_t i = 0; i < ins; i++) {
        ib[i] = test_buffer_of((size_t)n_in[i], at_start, false);
        memcpy(ib[i].data, in[i], (size_t)n_in[i] * sizeof(float));
        i_p[i] = ib[i].data;
    }
    for (uint32_t i = 0; i < weights; i++) {
        wb[i] = test_buffer_of((size_t)n_weight[i], at_start, false);
        memcpy(wb[i].data, weight[i], (size_t)n_weight[i] * sizeof(float));
        w_p[kernel->weight ? kernel->weight[i] : i] = wb[i].data;
    }
    for (uint32_t i = 0; i < outs; i++) {
        ob[i] = test_buffer_of((size_t)n_out[i], at_start, false);
        o_p[i] = ob[i].data;
    }
    test_buffer device = test_buffer_of(kernel->device, at_start, true);
    test_buffer scratch = test_buffer_of(kernel->scratch * parts, at_start, true);
    test_pool pool = {parts, threads ? test_pool_threads : test_pool_serial, NULL};
    pool.self = &pool;
    kernel->start(device.data, kernel->z);
    /* The second call meets what the first has left behind. */
    for (int call = 0; call < 2; call++)
        kernel->run(i_p, w_p, o_p, device.data, scratch.data, kernel->z, &pool);

    const char *wrong = NULL;
    for (uint32_t i = 0; i < outs; i++)
        if (!test_buffer_whole(&ob[i]))
            wrong = po_arena_printf(arena, "output %u: written outside", i);
    if (!test_buffer_whole(&device) || !test_buffer_whole(&scratch))
        wrong = "memory of the call: written outside";
    if (k > 0 && wrong == NULL) {
        double **in64 = doubles_of(arena, in, n_in, ins);
        double **weight64 = doubles_of(arena, weight, n_weight, weights);
        double **out64 = doubles_of(arena, NULL, n_out, outs);
        double **size = doubles_of(arena, NULL, n_out, outs);
        if (po_mu_eval(ctx, kernel->mu, (const double *const *)in64,
                       (const double *const *)weight64, out64, size) != PO_OK)
            wrong = ctx->error.message;
        for (uint32_t i = 0; i < outs && wrong == NULL; i++)
            for (int64_t j = 0; j < n_out[i]; j++) {
                double y = (double)o_p[i][j], ref = out64[i][j];
                double unit = 0x1p-24 * size[i][j] + 0x1p-149;
                double off = y == ref || (isnan(y) && isnan(ref)) ? 0 : fabs(y - ref) / unit;
                if (worst != NULL && off > *worst)
                    *worst = off;
                if (!(off <= k)) {
                    wrong = po_arena_printf(arena,
                                            "output %u, element %lld: %.9g instead of %.9g (%.3g "
                                            "units of %.3g)",
                                            i, (long long)j, y, ref, off, unit);
                    break;
                }
            }
    }
    for (uint32_t i = 0; i < outs; i++) {
        if (outputs != NULL)
            memcpy(outputs[i], o_p[i], (size_t)n_out[i] * sizeof(float));
        test_buffer_free(&ob[i]);
    }
    for (uint32_t i = 0; i < ins; i++)
        test_buffer_free(&ib[i]);
    for (uint32_t i = 0; i < weights; i++)
        test_buffer_free(&wb[i]);
    test_buffer_free(&device);
    test_buffer_free(&scratch);
    return wrong;
}

#include "cost/kernels.h"

#include "base/folder.h"
#include "codegen/compile.h"
#include "cost/isolate.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { FILE_KERNELS = 4, FOLDER = 64 };

/* As the prelude has it (codegen/kernel.h). */
typedef struct pool {
    size_t parts;
    void (*run)(void *self, void (*fn)(void *arg, size_t part), void *arg);
    void *self;
} pool;

static void run_one(void *self, void (*fn)(void *arg, size_t part), void *arg) {
    (void)self;
    fn(arg, 0);
}

uint32_t po_isa_of_machine(void) {
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw"))
        return PO_ISA_AVX512;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        return PO_ISA_AVX2;
#endif
    return PO_ISAS;
}

/* --- the folder --- */

static po_status write_text(po_ctx *ctx, const char *path, const po_text *text) {
    FILE *file = fopen(path, "wb");
    if (!file)
        return po_fail(ctx, PO_IO, "'%s' cannot be written: %s", path, strerror(errno));
    size_t written = fwrite(text->data, 1, text->size, file);
    if (fclose(file) != 0 || written != text->size)
        return po_fail(ctx, PO_IO, "'%s' cannot be written", path);
    return PO_OK;
}

/* --- in the child --- */

typedef struct timing {
    const char *dir;
    uint32_t isa, n;
    const po_timed_kernel *kernels;
    const uint32_t *library; /* by kernel: number of its file, PO_NONE */
} timing;

typedef void (*kernel_fn)(const float *const *in, const float *const *weight, float *const *out,
                          float *device, float *scratch, const pool *p);

static float *filled(po_arena *arena, size_t floats, uint64_t stream) {
    char *memory = po_arena_alloc(arena, floats * sizeof(float) + 128);
    float *data = (float *)(((uintptr_t)memory + 63) / 64 * 64);
#ifdef MADV_HUGEPAGE
    /* As the library has it below many weights. */
    enum { MANY = 2 << 20 /* floats */, PAGE = 2 << 20 };
    uintptr_t from = ((uintptr_t)data + PAGE - 1) / PAGE * PAGE;
    uintptr_t to = (uintptr_t)(data + floats) / PAGE * PAGE;
    if (floats >= MANY && from < to)
        madvise((void *)from, to - from, MADV_HUGEPAGE); /* only advice */
#endif
    for (size_t i = 0; i < floats; i++)
        data[i] = (float)((double)((i * 2654435761U + stream) % 1999U) / 1000.0 - 1.0);
    return data;
}

enum { COLD = 48 << 20, MOST_COPIES = 24, RUNS = 7 };

typedef struct loaded {
    kernel_fn run;
    float *device, *scratch;
} loaded;

static void run_loaded(void *self, const float *const *weights) {
    const loaded *l = self;
    pool one = {1, run_one, NULL};
    l->run(NULL, weights, NULL, l->device, l->scratch, &one);
}

/* NULL, or what is wrong. */
static const char *check_kernel(po_ctx *ctx, po_arena *arena, const po_timed_kernel *k,
                                uint32_t isa, loaded *l) {
    int64_t *places = PO_NEW_N(arena, int64_t, k->mu->n_tensors);
    if (po_codegen_places(ctx, k->mu, &po_isas[isa], places) != PO_OK)
        return "no places";
    po_loaded_kernel kernel = {k->mu, l->device, places, l, run_loaded};
    return k->check(ctx, arena, k->user, &kernel);
}

/* Of this thread alone: what else the machine does in the meantime is not the kernel's. */
static double spent_here(void) {
    struct timespec t;
    if (clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t) != 0)
        return po_now();
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double time_kernel(po_ctx *ctx, po_reply *reply, void *library, const po_timed_kernel *k,
                          uint32_t number, uint32_t isa, bool look, double *looked) {
    const po_mu *mu = k->mu;
    char name[64];
    snprintf(name, sizeof name, "k%u_%s", number, po_isas[isa].name);
    void *run_symbol = dlsym(library, name);
    snprintf(name, sizeof name, "k%u_%s_start", number, po_isas[isa].name);
    void *start_symbol = dlsym(library, name);
    snprintf(name, sizeof name, "k%u_%s_device", number, po_isas[isa].name);
    const size_t *device_floats = dlsym(library, name);
    snprintf(name, sizeof name, "k%u_%s_scratch", number, po_isas[isa].name);
    const size_t *scratch_floats = dlsym(library, name);
    if (!run_symbol || !start_symbol || !device_floats || !scratch_floats)
        return 0;
    kernel_fn run;
    void (*start)(float *);
    memcpy(&run, &run_symbol, sizeof run);
    memcpy(&start, &start_symbol, sizeof start);
    po_arena *arena = po_arena_create(ctx);
    int64_t bytes = 0;
    uint32_t n_weights = 0;
    for (uint32_t i = 0; i < mu->n_tensors; i++)
        if (mu->tensors[i].place == PO_MU_WEIGHT) {
            bytes += 4 * mu->tensors[i].floats;
            n_weights += 1;
        }
    uint32_t copies = bytes > COLD / 2 ? 2 : bytes > 0 ? (uint32_t)(COLD / bytes) : 1;
    copies = copies > MOST_COPIES ? MOST_COPIES : copies < 1 ? 1 : copies;
    const float ***weights = PO_NEW_N(arena, const float **, copies);
    for (uint32_t c = 0; c < copies; c++) {
        weights[c] = PO_NEW_N(arena, const float *, n_weights);
        for (uint32_t i = 0; i < mu->n_tensors; i++)
            if (mu->tensors[i].place == PO_MU_WEIGHT && mu->tensors[i].number < n_weights)
                weights[c][mu->tensors[i].number] = filled(arena, (size_t)mu->tensors[i].floats, i);
    }
    float *device = filled(arena, *device_floats, 7), *scratch = filled(arena, *scratch_floats, 9);
    pool one = {1, run_one, NULL};
    start(device);
    if (look && k->check) {
        loaded l = {run, device, scratch};
        double from = po_now();
        const char *wrong = check_kernel(ctx, arena, k, isa, &l);
        *looked += po_now() - from;
        if (wrong) {
            po_reply_log(reply, "a schedule is wrong: %s", wrong);
            po_arena_free(arena);
            return -1;
        }
    }
    double best = 0, begin = spent_here();
    uint32_t n = 0, turn = 0;
    run(NULL, weights[turn++ % copies], NULL, device, scratch, &one);
    while (n < RUNS && (n < 3 || spent_here() - begin < 0.1)) {
        uint32_t repeat = 0;
        double from = spent_here(), spent;
        do {
            run(NULL, weights[turn++ % copies], NULL, device, scratch, &one);
            repeat++;
            spent = spent_here() - from;
        } while (spent < 5e-4);
        best = n++ == 0 || spent / repeat < best ? spent / repeat : best;
    }
    po_arena_free(arena);
    return best;
}

/* Twice over all of them, at different times: what disturbed one reading rarely disturbs both. */
static po_status time_all(po_ctx *ctx, po_arena *arena, po_reply *reply, void *user) {
    const timing *t = user;
    double *best = PO_NEW_N(arena, double, t->n);
    void **library = PO_NEW_N(arena, void *, t->n);
    bool *opened = PO_NEW_N(arena, bool, t->n);
    double looked = 0;
    for (uint32_t pass = 0; pass < 2; pass++)
        for (uint32_t i = 0; i < t->n; i++) {
            uint32_t file = t->library[i];
            if (file == PO_NONE)
                continue;
            if (pass == 0 && !library[file] && !opened[file]) {
                opened[file] = true;
                char path[FOLDER + 32];
                snprintf(path, sizeof path, "%s/k%u.so", t->dir, file);
                library[file] = dlopen(path, RTLD_NOW | RTLD_LOCAL);
                if (!library[file])
                    po_reply_log(reply, "a kernel does not load: %s", dlerror());
            }
            if (!library[file] || best[i] < 0)
                continue;
            double seconds = time_kernel(ctx, reply, library[file], &t->kernels[i], i, t->isa,
                                         pass == 0, &looked);
            best[i] = pass == 0 || (seconds > 0 && seconds < best[i]) ? seconds : best[i];
        }
    po_reply_log(reply, "%u kernels compared with float64 in %.2f s", t->n, looked);
    po_reply_add(reply, best, t->n * sizeof *best);
    return PO_OK;
}

/* --- in the caller --- */

static bool stops(po_status status) {
    return status == PO_CANCELLED || status == PO_TIME_LIMIT || status == PO_NO_MEMORY ||
           status == PO_IO;
}

enum { BATCH = 4 * FILE_KERNELS /* kernels of one library */ };

/* Prints kernels [from, to) to a file; *printed: how many could be. */
static po_status print_file(po_ctx *ctx, const timing *t, uint32_t from, uint32_t to,
                            uint32_t library_number, uint32_t *library, const char *path,
                            uint32_t *printed) {
    po_arena *scratch = po_arena_create(ctx);
    const po_isa *isa = &po_isas[t->isa];
    po_text text;
    po_text_init(&text, scratch);
    po_codegen_prelude(isa, &text);
    for (uint32_t i = from; i < to; i++) {
        char symbol[64];
        size_t size = text.size;
        snprintf(symbol, sizeof symbol, "k%u_%s", i, isa->name);
        po_status status = po_codegen_kernel(ctx, t->kernels[i].mu, isa, symbol, &text);
        if (stops(status))
            return status;
        if (status != PO_OK) {
            po_log(ctx, "not timed: %s", ctx->error.message);
            po_ctx_clear(ctx);
            text.size = size;
            text.data[size] = '\0';
            continue;
        }
        library[i] = library_number;
        ++*printed;
    }
    po_status status = write_text(ctx, path, &text);
    po_arena_free(scratch);
    return status;
}

/* Kernels [from, to) as one library: several files, for several compilers at a time. */
static po_status build_batch(po_ctx *ctx, po_arena *arena, const char *cc, const timing *t,
                             uint32_t from, uint32_t to, uint32_t *library) {
    po_cc_source sources[BATCH / FILE_KERNELS];
    uint32_t n = 0, printed = 0;
    const char *flags = po_arena_printf(arena, "%s -fvisibility=default", po_isas[t->isa].flags);
    for (uint32_t i = from; i < to; i += FILE_KERNELS, n++) {
        sources[n].path = po_arena_printf(arena, "%s/k%u.c", t->dir, i);
        sources[n].flags = flags;
        PO_TRY(print_file(ctx, t, i, to - i < FILE_KERNELS ? to : i + FILE_KERNELS, from, library,
                          sources[n].path, &printed));
    }
    if (!printed)
        return PO_OK;
    po_status status =
        po_cc_library(ctx, cc, sources, n, NULL, po_arena_printf(arena, "%s/k%u.so", t->dir, from));
    if (status == PO_OK || stops(status))
        return status;
    po_log(ctx, "not timed: %s", ctx->error.message);
    po_ctx_clear(ctx);
    for (uint32_t i = from; i < to; i++)
        library[i] = PO_NONE;
    return PO_OK;
}

po_status po_time_kernels(po_ctx *ctx, const char *cc, uint32_t isa, po_timed_kernel *kernels,
                          uint32_t n) {
    if (n == 0)
        return PO_OK;
    if (isa >= PO_ISAS)
        return po_fail(ctx, PO_UNSUPPORTED, "kernels need AVX2 or AVX-512, which this CPU lacks");
    const char *dir;
    po_arena *folder = po_arena_create(ctx);
    PO_TRY(po_folder_temporary(ctx, folder, &dir));
    uint32_t *library = PO_NEW_N(folder, uint32_t, n);
    timing t = {dir, isa, n, kernels, library};
    for (uint32_t i = 0; i < n; i++)
        library[i] = PO_NONE;
    po_status status = PO_OK;
    for (uint32_t i = 0; i < n && status == PO_OK; i += BATCH) {
        po_step(ctx, 0.6 * i / n, "compiling %u of %u schedules", i, n);
        status = po_ctx_poll(ctx);
        if (status == PO_OK)
            status = build_batch(ctx, folder, cc, &t, i, n - i < BATCH ? n : i + BATCH, library);
    }
    PO_TRY(status);
    po_bytes data;
    po_step(ctx, 0.6, "timing %u schedules", n);
    PO_TRY(po_isolate(ctx, folder, "timing kernels", 10 + 1.5 * n, time_all, &t, &data));
    if (data.size != n * sizeof(double))
        return po_fail(ctx, PO_RUNTIME, "timing kernels gave no answer");
    for (uint32_t i = 0; i < n; i++)
        memcpy(&kernels[i].seconds, data.data + i * sizeof(double), sizeof(double));
    po_arena_free(folder);
    return PO_OK;
}

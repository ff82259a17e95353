/* Compiles printed kernels as one library and times them in a child. */
#include "cost/kernels.h"

#include "base/file.h"
#include "base/folder.h"
#include "codegen/compile.h"
#include "cost/isolate.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum { FILE_KERNELS = 4 };

/* Seconds that a process may take, and for each kernel: comparing a large one with float64 takes a
 * while. The run has limits of its own. */
static const double longest = 60, longest_each = 10;

/* As the prelude has it (codegen/cpu/kernel.h). */
typedef struct pool {
    size_t parts;
    void (*run)(void *self, void (*fn)(void *arg, size_t part), void *arg);
    void *self;
} pool;

static void run_one(void *self, void (*fn)(void *arg, size_t part), void *arg) {
    (void)self;
    fn(arg, 0);
}

bool po_isa_runs(uint32_t isa) {
#if defined(__x86_64__)
    __builtin_cpu_init();
    bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    if (isa == PO_ISA_AVX2)
        return avx2;
    return avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw");
#else
    (void)isa;
    return false;
#endif
}

uint32_t po_isa_from(uint32_t isa) {
    while (isa < PO_ISAS && !po_isa_runs(isa))
        isa++;
    return isa;
}

uint32_t po_isa_of_machine(void) {
    return po_isa_from(0);
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
    const char *library; /* of all that compiled */
    uint32_t isa, n;
    const po_timed_kernel *kernels;
    bool *built; /* by kernel */
} timing;

typedef void (*kernel_fn)(const float *const *in, const float *const *weight, float *const *out,
                          float *device, float *scratch, const int64_t *z, const pool *p);

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
    enum { PERIOD = 1999 };
    size_t n = floats < PERIOD ? floats : PERIOD;
    for (size_t i = 0; i < n; i++)
        data[i] = (float)((double)((i * 2654435761U + stream) % PERIOD) / 1000.0 - 1.0);
    for (; n < floats; n += n < floats - n ? n : floats - n)
        memcpy(data + n, data, (n < floats - n ? n : floats - n) * sizeof *data);
    return data;
}

enum { MOST_COPIES = 24, RUNS = 7, ALIGNED = 64 };

/* Numbers that the weights of all kernels are taken from: filled once. */
typedef struct numbers {
    float *data;
    size_t bytes;
} numbers;

static size_t weights_of(const po_mu *mu, uint32_t *n) {
    size_t bytes = 0;
    *n = 0;
    for (uint32_t i = 0; i < mu->n_tensors; i++)
        if (mu->tensors[i].place == PO_MU_WEIGHT) {
            bytes += (4 * (size_t)mu->tensors[i].floats + ALIGNED - 1) / ALIGNED * ALIGNED;
            *n += 1;
        }
    return bytes;
}

/* How often weights of so many bytes lie side by side, so that none are in cache when they are read
 * again. */
static uint32_t copies_of(size_t bytes) {
    if (bytes > PO_KERNELS_COLD / 2)
        return 2;
    size_t copies = bytes > 0 ? PO_KERNELS_COLD / bytes : 1;
    return copies > MOST_COPIES ? MOST_COPIES : copies < 1 ? 1 : (uint32_t)copies;
}

static numbers all_weights(po_arena *arena, const timing *t) {
    numbers w = {NULL, 0};
    for (uint32_t i = 0; i < t->n; i++) {
        uint32_t n;
        size_t bytes = weights_of(t->kernels[i].mu, &n);
        bytes *= copies_of(bytes);
        w.bytes = bytes > w.bytes ? bytes : w.bytes;
    }
    w.data = filled(arena, w.bytes / sizeof(float), 1);
    return w;
}

/* By copy and number: where the weights of a kernel lie. */
static const float ***lay_weights(po_arena *arena, const po_mu *mu, const numbers *w,
                                  uint32_t *copies) {
    uint32_t n;
    size_t bytes = weights_of(mu, &n), at = 0;
    *copies = copies_of(bytes);
    const float ***to = PO_NEW_N(arena, const float **, *copies);
    for (uint32_t c = 0; c < *copies; c++) {
        to[c] = PO_NEW_N(arena, const float *, n + 1);
        for (uint32_t i = 0; i < mu->n_tensors; i++) {
            const po_mu_tensor *t = &mu->tensors[i];
            if (t->place != PO_MU_WEIGHT || t->number >= n)
                continue;
            to[c][t->number] = w->data + at;
            at += (4 * (size_t)t->floats + ALIGNED - 1) / ALIGNED * (ALIGNED / sizeof(float));
        }
    }
    return to;
}

typedef struct loaded {
    kernel_fn run;
    float *device, *scratch;
    const int64_t *z;
} loaded;

static void run_loaded(void *self, const float *const *weights) {
    const loaded *l = self;
    pool one = {1, run_one, NULL};
    l->run(NULL, weights, NULL, l->device, l->scratch, l->z, &one);
}

const char po_check_no_time[] = "there was no time to compare it";

/* NULL, or what is wrong. */
static const char *check_kernel(po_ctx *ctx, po_arena *arena, const po_timed_kernel *k,
                                uint32_t isa, loaded *l) {
    int64_t *places = PO_NEW_N(arena, int64_t, k->mu->n_tensors);
    if (po_codegen_places(ctx, k->mu, &po_isas[isa], places) != PO_OK)
        return "no places";
    po_loaded_kernel kernel = {k->mu, l->device, places, l, run_loaded};
    return k->check(ctx, arena, k->user, &kernel);
}

/* What the child does it for, and where its time goes. */
typedef struct visit {
    po_ctx *ctx;
    po_reply *reply;
    void *library;
    uint32_t isa;
    numbers numbers;
    double looked;
} visit;

/* A reading as it goes to the caller. */
typedef struct reading {
    uint32_t kernel;
    double seconds;
} reading;

static const double slow_run = 0.03;
/* Of a kernel that is right and has not been timed. */
static const double looked_at = HUGE_VAL;

typedef struct opened {
    kernel_fn run;
    void (*start)(float *device, const int64_t *z);
    const int64_t *z;
    size_t device, scratch; /* floats */
} opened;

static bool open_kernel(const visit *r, po_arena *arena, uint32_t number, opened *o) {
    const char *isa = po_isas[r->isa].name;
    char name[64];
    snprintf(name, sizeof name, "k%u_%s", number, isa);
    void *run = dlsym(r->library, name);
    snprintf(name, sizeof name, "k%u_%s_start", number, isa);
    void *start = dlsym(r->library, name);
    snprintf(name, sizeof name, "k%u_%s_sizes", number, isa);
    const size_t *sizes = dlsym(r->library, name);
    snprintf(name, sizeof name, "k%u_%s_measure", number, isa);
    void *measure_at = dlsym(r->library, name);
    if (!run || !start || !sizes || !measure_at)
        return false;
    void (*measure)(const int64_t *given, int64_t *z);
    memcpy(&o->run, &run, sizeof run);
    memcpy(&o->start, &start, sizeof start);
    memcpy(&measure, &measure_at, sizeof measure_at);
    int64_t *z = PO_NEW_N(arena, int64_t, *sizes + 1);
    measure(NULL, z);
    o->z = z;
    o->device = (size_t)z[0];
    o->scratch = (size_t)z[1];
    return true;
}

/* looked_at, or what stands for a kernel that is wrong; 0: not known. */
static double look_at(visit *r, const po_timed_kernel *k, uint32_t number) {
    opened o;
    if (!k->check)
        return looked_at;
    po_arena *arena = po_arena_create(r->ctx);
    if (!open_kernel(r, arena, number, &o)) {
        po_arena_free(arena);
        return 0;
    }
    loaded l = {o.run, filled(arena, o.device, 7), filled(arena, o.scratch, 9), o.z};
    o.start(l.device, o.z);
    double from = po_now();
    const char *wrong = check_kernel(r->ctx, arena, k, r->isa, &l);
    r->looked += po_now() - from;
    if (wrong)
        po_reply_log(r->reply, wrong == po_check_no_time ? "%s" : "a schedule is wrong: %s", wrong);
    po_arena_free(arena);
    return wrong == po_check_no_time ? 0 : wrong ? -1 : looked_at;
}

static double time_kernel(visit *r, const po_timed_kernel *k, uint32_t number) {
    opened o;
    po_arena *arena = po_arena_create(r->ctx);
    if (!open_kernel(r, arena, number, &o)) {
        po_arena_free(arena);
        return 0;
    }
    uint32_t copies, n_weights;
    const float ***weights = lay_weights(arena, k->mu, &r->numbers, &copies);
    float *scratch = filled(arena, o.scratch, 9);
    pool one = {1, run_one, NULL};
    int64_t apart = 4 * (int64_t)o.device + (int64_t)weights_of(k->mu, &n_weights);
    uint32_t places = apart > 0 && apart < k->spread ? (uint32_t)(k->spread / apart) : 1;
    float **maps = PO_NEW_N(arena, float *, MOST_COPIES);
    places = places > MOST_COPIES ? MOST_COPIES : places;
    for (uint32_t i = 0; i < places; i++) {
        maps[i] = filled(arena, o.device, 7 + i);
        o.start(maps[i], o.z);
    }
    double best = 0, begin = po_thread_seconds();
    uint32_t n = 0, turn = 0;
    o.run(NULL, weights[turn % copies], NULL, maps[turn % places], scratch, o.z, &one);
    turn++;
    /* What takes long is hardly disturbed by what lasts for moments. */
    uint32_t least = po_thread_seconds() - begin > slow_run ? 1 : 3;
    while (n < RUNS && (n < least || po_thread_seconds() - begin < 0.1)) {
        uint32_t repeat = 0;
        double from = po_thread_seconds(), spent;
        do {
            o.run(NULL, weights[turn % copies], NULL, maps[turn % places], scratch, o.z, &one);
            turn++;
            repeat++;
            spent = po_thread_seconds() - from;
        } while (spent < 5e-4);
        best = n++ == 0 || spent / repeat < best ? spent / repeat : best;
    }
    po_arena_free(arena);
    return best;
}

static void tell_reading(const visit *r, uint32_t kernel, double seconds) {
    reading one = {kernel, seconds};
    po_reply_add(r->reply, &one, sizeof one);
}

/* Compares what no process before this one has. What comparisons keep for each other goes before
 * anything is timed: maps and weights take as much. */
static void look_at_all(visit *r, const timing *t, double *best) {
    uint64_t before = r->ctx->next_arena;
    for (uint32_t i = 0; i < t->n; i++)
        if (t->built[i] && best[i] == 0) {
            best[i] = look_at(r, &t->kernels[i], i);
            tell_reading(r, i, best[i]);
        }
    po_arenas_free_since(r->ctx, before);
}

/* Float64 values of one step after the other come and go: what was freed is used again, rather than
 * given back to the system page by page, which took two thirds of the comparisons of large maps. */
static void keep_memory(void) {
#ifdef __GLIBC__
    mallopt(M_MMAP_THRESHOLD, 32 << 20);
    mallopt(M_TRIM_THRESHOLD, 1 << 30);
#endif
}

/* Twice over all of them, at different times: what disturbed one reading rarely disturbs both. */
static po_status time_all(po_ctx *ctx, po_arena *arena, po_reply *reply, void *user) {
    const timing *t = user;
    keep_memory();
    double *best = PO_NEW_N(arena, double, t->n), begin = po_now();
    for (uint32_t i = 0; i < t->n; i++)
        best[i] = t->kernels[i].seconds;
    visit r = {.ctx = ctx, .reply = reply, .isa = t->isa};
    r.library = dlopen(t->library, RTLD_NOW | RTLD_LOCAL);
    if (!r.library) {
        po_reply_log(reply, "kernels do not load: %s", dlerror());
        return PO_OK;
    }
    look_at_all(&r, t, best);
    r.numbers = all_weights(arena, t);
    for (uint32_t pass = 0; pass < 2; pass++)
        for (uint32_t i = 0; i < t->n; i++) {
            if (!t->built[i] || best[i] <= 0 || (pass == 0 && best[i] != looked_at))
                continue; /* it cannot be read, or a process before this one has */
            double seconds = time_kernel(&r, &t->kernels[i], i);
            best[i] = seconds > 0 && seconds < best[i] ? seconds : best[i];
            tell_reading(&r, i, best[i]);
        }
    po_reply_log(reply, "%u kernels compared with float64 in %.2f s, timed in %.2f s", t->n,
                 r.looked, po_now() - begin - r.looked);
    return PO_OK;
}

/* --- in the caller --- */

static bool stops(po_status status) {
    return status == PO_CANCELLED || status == PO_TIME_LIMIT || status == PO_NO_MEMORY ||
           status == PO_IO;
}

/* Prints kernels [from, to) to a file. */
static po_status print_file(po_ctx *ctx, const timing *t, uint32_t from, uint32_t to,
                            const char *path) {
    po_arena *scratch = po_arena_create(ctx);
    const po_isa *isa = &po_isas[t->isa];
    po_codegen_file file = {.arena = scratch};
    po_text text;
    po_text_init(&text, scratch);
    for (uint32_t i = from; i < to; i++) {
        const char *symbol = po_arena_printf(scratch, "k%u_%s", i, isa->name);
        const size_t size = text.size;
        const po_codegen_file before = file;
        po_status status = po_codegen_kernel(ctx, po_mu_closed(scratch, t->kernels[i].mu), NULL,
                                             isa, symbol, &file, &text);
        if (stops(status))
            return status;
        t->built[i] = status == PO_OK;
        if (status == PO_OK)
            continue;
        po_log(ctx, "not timed: %s", ctx->error.message);
        po_ctx_clear(ctx);
        file = before;
        text.size = size;
        text.data[size] = '\0';
    }
    po_status status = write_text(ctx, path, &text);
    po_arena_free(scratch);
    return status;
}

static po_status write_header(po_ctx *ctx, const char *cc, const po_isa *isa, const char *flags,
                              const char *path) {
    po_arena *scratch = po_arena_create(ctx);
    po_text text;
    po_text_init(&text, scratch);
    po_codegen_prelude(isa, &text);
    PO_TRY(write_text(ctx, path, &text));
    po_arena_free(scratch);
    return po_cc_header(ctx, cc, path, flags);
}

typedef struct telling {
    po_ctx *ctx;
    uint32_t n, files;
} telling;

static void tell(void *user, uint32_t compiled) {
    const telling *t = user;
    po_step(t->ctx, 0.6 * compiled / t->files, "compiling %u of %u schedules",
            t->n * compiled / t->files, t->n);
}

/* The folder's file system may not let programs be loaded (noexec): memory does. */
static po_status load_from_memory(po_ctx *ctx, po_arena *arena, timing *t) {
    int fd;
    po_content built;
    PO_TRY(po_file_open(ctx, arena, AT_FDCWD, t->library, 0, &fd));
    PO_TRY(po_file_content(ctx, arena, fd, t->library, &built));
    return po_memory_file(ctx, arena, "kernels", built.data, built.size, &t->library);
}

/* All kernels as one library; *any: there is one. */
static po_status build(po_ctx *ctx, po_arena *arena, const char *cc, const char *dir, timing *t,
                       bool *any) {
    uint32_t n = (t->n + FILE_KERNELS - 1) / FILE_KERNELS;
    const char *flags = po_arena_printf(arena, "%s -fvisibility=default", po_isas[t->isa].flags);
    const char *header = po_arena_printf(arena, "%s/prelude.h", dir);
    po_cc_source *sources = PO_NEW_N(arena, po_cc_source, n);
    bool *failed = PO_NEW_N(arena, bool, n);
    PO_TRY(write_header(ctx, cc, &po_isas[t->isa], flags, header));
    for (uint32_t i = 0; i < n; i++) {
        uint32_t from = i * FILE_KERNELS, to = from + FILE_KERNELS;
        sources[i] = (po_cc_source){
            .path = po_arena_printf(arena, "%s/k%u.c", dir, i), .flags = flags, .header = header};
        PO_TRY(print_file(ctx, t, from, to < t->n ? to : t->n, sources[i].path));
    }
    telling told = {ctx, t->n, n};
    po_cc_build spec = {.cc = cc,
                        .sources = sources,
                        .n = n,
                        .so_path = t->library,
                        .failed = failed,
                        .told = tell,
                        .user = &told};
    po_status status = po_cc_build_library(ctx, &spec);
    if (status != PO_OK && stops(status))
        return status;
    *any = status == PO_OK;
    if (*any)
        PO_TRY(load_from_memory(ctx, arena, t));
    if (!*any) {
        po_log(ctx, "not timed: %s", ctx->error.message);
        po_ctx_clear(ctx);
    }
    for (uint32_t i = 0; i < t->n; i++)
        t->built[i] &= !failed[i / FILE_KERNELS];
    return PO_OK;
}

/* The kernel that was under way when a process ended: the first that it had and sent nothing of, or
 * the first that it had not timed. */
static uint32_t under_way(const timing *t) {
    const double states[] = {0, looked_at};
    for (uint32_t k = 0; k < 2; k++)
        for (uint32_t i = 0; i < t->n; i++)
            if (t->built[i] && t->kernels[i].seconds == states[k])
                return i;
    return PO_NONE;
}

/* What ends its process, or hangs in it, is wrong; the others go on without it. */
static po_status time_built(po_ctx *ctx, po_arena *arena, timing *t, po_timed_kernel *kernels) {
    enum { MOST_ENDED = 8 };
    po_status status = PO_OK;
    po_step(ctx, 0.6, "timing %u schedules", t->n);
    for (uint32_t ended = 0; ended < MOST_ENDED; ended++) {
        po_bytes data = {NULL, 0};
        status = po_isolate(ctx, arena, "timing kernels", longest + longest_each * t->n, time_all,
                            t, &data);
        for (size_t at = 0; at + sizeof(reading) <= data.size; at += sizeof(reading)) {
            reading one;
            memcpy(&one, data.data + at, sizeof one);
            if (one.kernel < t->n)
                kernels[one.kernel].seconds = one.seconds;
        }
        uint32_t at = under_way(t);
        if (status != PO_RUNTIME || at == PO_NONE)
            break;
        po_log(ctx, "a schedule is wrong: %s", ctx->error.message);
        po_ctx_clear(ctx);
        status = PO_OK;
        kernels[at].seconds = -1;
    }
    for (uint32_t i = 0; i < t->n; i++)
        if (kernels[i].seconds == looked_at)
            kernels[i].seconds = 0; /* there was no time to read it */
    return status;
}

po_status po_time_kernels(po_ctx *ctx, const char *cc, uint32_t isa, po_timed_kernel *kernels,
                          uint32_t n) {
    if (n == 0)
        return PO_OK;
    if (isa >= PO_ISAS)
        return po_fail(ctx, PO_UNSUPPORTED, "kernels need AVX2 or AVX-512, which this CPU lacks");
    const char *dir;
    bool any;
    po_arena *folder = po_arena_create(ctx);
    double start = po_now();
    for (uint32_t i = 0; i < n; i++)
        kernels[i].seconds = 0;
    PO_TRY(po_folder_temporary(ctx, folder, &dir));
    timing t = {po_arena_printf(folder, "%s/kernels.so", dir), isa, n, kernels,
                PO_NEW_N(folder, bool, n)};
    po_step(ctx, 0, "compiling %u schedules", n);
    PO_TRY(build(ctx, folder, cc, dir, &t, &any));
    po_log(ctx, "%u kernels compiled in %.2f s", n, po_now() - start);
    po_status status = any ? time_built(ctx, folder, &t, kernels) : PO_OK;
    po_arena_free(folder);
    return status;
}

/* A library of kernels for ONNX Runtime 1.17 or later on the CPU: each region of a model is one
 * custom operator. petopt_kernels.c holds the table of regions and includes this file once; the
 * kernels are in files of their own. */
#ifndef PETOPT_ORT_H
#define PETOPT_ORT_H

#include "petopt_ort_api.h"

#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

/* --- what a kernel is --- */

typedef struct pk_pool {
    size_t parts;
    void (*run)(void *self, void (*fn)(void *arg, size_t part), void *arg);
    void *self;
} pk_pool;

typedef struct pk_kernel_code {
    const char *isa;
    const size_t *sizes; /* numbers that hang on lengths: z[0] is floats of device, z[1] those of
                            scratch for each part */
    void (*measure)(const int64_t *given, int64_t *z);
    void (*start)(float *device, const int64_t *z);
    void (*call)(const float *const *in, const float *const *weight, float *const *out,
                 float *device, float *scratch, const int64_t *z, const pk_pool *pool);
} pk_kernel_code;

enum { PK_ISAS = 2, PK_MAX_PARTS = 256, PK_LINE = 64, PK_ORT_API = 17, PK_MAX_GIVEN = 16 };

/* --- memory of a call --- */

typedef struct pk_memory {
    char *base;
    size_t bytes;
    float *floats;
} pk_memory;

typedef struct pk_buffer {
    struct pk_buffer *next; /* in the list of free ones */
    size_t room[2];         /* floats of device and scratch */
    pk_memory device, scratch;
    /* Of the sample at hand and of all: n_in activations, then n_weights. */
    const float **in, **all_in;
    float **out, **all_out;
    int64_t given[PK_MAX_GIVEN], *z;
    bool measured;
    pk_region region; /* with the dims of these lengths */
    pk_port *ports;
    int64_t *dims;
} pk_buffer;

typedef struct pk_kernel {
    const OrtApi *api;
    const pk_region *region;
    const pk_kernel_code *code;
    bool *constant; /* by input: its shape was checked once and for all */
    pthread_mutex_t lock;
    pk_buffer *free_buffers;
    unsigned calls;
    size_t parts, most_parts; /* threads that are known of; that there can be */
} pk_kernel;

static size_t pk_up(size_t bytes, size_t multiple) {
    return (bytes + multiple - 1) / multiple * multiple;
}

/* Zeroed, aligned to a line. With PK_GUARD (tests) it ends where nothing is mapped. */
static bool pk_map(pk_memory *m, size_t floats) {
    size_t need = pk_up(floats * sizeof(float) + 1, PK_LINE), before = 0, after = 0;
#ifdef PK_GUARD
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    need = pk_up(floats * sizeof(float), PK_LINE);
    before = pk_up(need, page) - need;
    after = page;
#endif
    m->bytes = before + need + after;
    void *base = mmap(NULL, m->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (base == MAP_FAILED)
        return false;
    m->base = base;
    m->floats = (float *)(void *)(m->base + before);
    if (after && mprotect(m->base + before + need, after, PROT_NONE) != 0)
        return false;
#ifdef MADV_HUGEPAGE
    madvise(m->base, before + need, MADV_HUGEPAGE); /* only advice */
#endif
    return true;
}

static void pk_unmap(pk_memory *m) {
    if (m->base)
        munmap(m->base, m->bytes);
}

static void pk_free_buffer(pk_buffer *b) {
    if (!b)
        return;
    pk_unmap(&b->device);
    pk_unmap(&b->scratch);
    free(b->in);
    free(b->out);
    free(b->z);
    free(b->ports);
    free(b->dims);
    free(b);
}

static pk_buffer *pk_make_buffer(const pk_kernel *k) {
    const pk_region *r = k->region;
    pk_buffer *b = calloc(1, sizeof *b);
    if (!b)
        return NULL;
    const size_t n_in = r->n_in + r->n_weights + 1, n_out = r->n_out + 1;
    b->in = calloc(2 * n_in, sizeof *b->in);
    b->out = calloc(2 * n_out, sizeof *b->out);
    b->z = calloc(*k->code->sizes + 2, sizeof *b->z);
    b->ports = calloc(r->n_in + r->n_out + 1, sizeof *b->ports);
    b->dims = calloc((r->n_in + r->n_out + 1) * PK_MAX_RANK, sizeof *b->dims);
    if (!b->in || !b->out || !b->z || !b->ports || !b->dims) {
        pk_free_buffer(b);
        return NULL;
    }
    b->all_in = b->in + n_in;
    b->all_out = b->out + n_out;
    b->region = *r;
    for (size_t i = 0; r->n_given > 0 && i < r->n_in + r->n_out; i++) {
        b->ports[i] = i < r->n_in ? r->in[i] : r->out[i - r->n_in];
        b->ports[i].dims = b->dims + i * PK_MAX_RANK;
    }
    if (r->n_given > 0) {
        b->region.in = b->ports;
        b->region.out = b->ports + r->n_in;
    }
    return b;
}

static bool pk_fit_memory(pk_memory *m, size_t *room, size_t floats) {
    if (m->base && *room >= floats)
        return true;
    pk_unmap(m);
    *m = (pk_memory){NULL, 0, NULL};
    *room = floats;
    return pk_map(m, floats);
}

/* Makes a buffer one for so many parts, and for these lengths. */
static bool pk_fit(const pk_kernel *k, pk_buffer *b, size_t parts, const int64_t *given) {
    const size_t bytes = k->region->n_given * sizeof *given;
    if (!b->measured || (bytes > 0 && memcmp(b->given, given, bytes) != 0)) {
        if (bytes > 0) {
            memcpy(b->given, given, bytes);
            (void)k->region->lengths(given, b->dims);
        }
        k->code->measure(given, b->z);
        b->measured = pk_fit_memory(&b->device, &b->room[0], (size_t)b->z[0]);
        if (!b->measured)
            return false;
        k->code->start(b->device.floats, b->z);
    }
    return pk_fit_memory(&b->scratch, &b->room[1], (size_t)b->z[1] * parts);
}

/* Takes a free buffer, or makes one. */
static pk_buffer *pk_take(pk_kernel *k, size_t parts, const int64_t *given) {
    pthread_mutex_lock(&k->lock);
    pk_buffer *b = k->free_buffers;
    if (b)
        k->free_buffers = b->next;
    pthread_mutex_unlock(&k->lock);
    if (!b)
        b = pk_make_buffer(k);
    if (b && pk_fit(k, b, parts, given))
        return b;
    pk_free_buffer(b);
    return NULL;
}

static void pk_return(pk_kernel *k, pk_buffer *b) {
    pthread_mutex_lock(&k->lock);
    b->next = k->free_buffers;
    k->free_buffers = b;
    pthread_mutex_unlock(&k->lock);
}

/* --- the runtime's threads --- */

typedef struct pk_run {
    const OrtApi *api;
    OrtKernelContext *context;
    OrtStatus *failed;
    size_t parts;
    bool asks;    /* how many threads there are */
    size_t found; /* of them, at most, in one step */
} pk_run;

/* How many threads the runtime has for this session is not in its interface. Now and then a call is
 * cut into twice as many parts as there are known threads, and who works them is noted: nobody
 * waits for anybody, and workers that had no processor once are found another time. The answer
 * decides how work is cut, never what comes out. */
typedef struct pk_asking {
    void (*fn)(void *arg, size_t part);
    void *arg;
    pthread_t who[PK_MAX_PARTS]; /* by part */
} pk_asking;

static void pk_note(void *arg, size_t part) {
    pk_asking *a = arg;
    a->who[part] = pthread_self();
    a->fn(a->arg, part);
}

static size_t pk_different(const pthread_t *who, size_t n) {
    size_t found = 0;
    for (size_t i = 0; i < n; i++) {
        size_t k = 0;
        while (k < i && !pthread_equal(who[k], who[i]))
            k++;
        found += k == i;
    }
    return found;
}

static void pk_deal(pk_run *run, void (*fn)(void *arg, size_t part), void *arg) {
    OrtStatus *status =
        PK_CALL(run->api, KernelContext_ParallelFor, run->context, fn, run->parts, 0, arg);
    if (status && run->failed)
        pk_release_status(run->api, status);
    else if (status)
        run->failed = status;
}

static void pk_parallel(void *self, void (*fn)(void *arg, size_t part), void *arg) {
    pk_run *run = self;
    if (run->parts == 1) {
        fn(arg, 0);
        return;
    }
    if (!run->asks) {
        pk_deal(run, fn, arg);
        return;
    }
    pk_asking asking = {.fn = fn, .arg = arg};
    pk_deal(run, pk_note, &asking);
    size_t found = run->failed ? 0 : pk_different(asking.who, run->parts);
    run->found = found > run->found ? found : run->found;
}

/* Parts of this call; whether it asks how many threads there are: the first few calls, and then
 * one in sixteen, as long as there may be more than are known. */
static size_t pk_parts(pk_kernel *k, bool *asks) {
    pthread_mutex_lock(&k->lock);
    unsigned call = k->calls++;
    size_t parts = k->parts;
    pthread_mutex_unlock(&k->lock);
    *asks = parts < k->most_parts && (call < 8 || call % 16 == 0);
    if (*asks)
        parts = 2 * parts < k->most_parts ? 2 * parts : k->most_parts;
    return parts;
}

static void pk_learn(pk_kernel *k, const pk_run *run) {
    pthread_mutex_lock(&k->lock);
    if (run->found > k->parts)
        k->parts = run->found;
    pthread_mutex_unlock(&k->lock);
}

static size_t pk_processors(void) {
    cpu_set_t set;
    CPU_ZERO(&set);
    if (sched_getaffinity(0, sizeof set, &set) != 0)
        return 1;
    size_t n = (size_t)CPU_COUNT(&set);
    return n < 1 ? 1 : n < PK_MAX_PARTS ? n : PK_MAX_PARTS;
}

/* --- lengths that are open --- */

static OrtStatus *pk_give(const OrtApi *api, const pk_region *r, const pk_given *g,
                          const OrtTensorTypeAndShapeInfo *info, int64_t *length) {
    int64_t dims[PK_MAX_RANK] = {0};
    size_t rank = 0;
    PK_TRY(PK_CALL(api, GetDimensionsCount, info, &rank));
    const size_t known = rank < PK_MAX_RANK ? rank : PK_MAX_RANK;
    PK_TRY(PK_CALL(api, GetDimensions, info, dims, known));
    if (rank != r->in[g->input].rank)
        return pk_wrong_shape(api, r, g->input, dims, known);
    *length = dims[g->axis] / g->multiple;
    if (dims[g->axis] % g->multiple == 0)
        return NULL;
    char text[512], shape[256];
    pk_put_dims(shape, sizeof shape, 0, dims, known);
    snprintf(text, sizeof text,
             "petopt.kernels, %s: input %zu has the shape %s; its axis %zu must be a multiple of "
             "%lld",
             r->name, g->input, shape, g->axis, (long long)g->multiple);
    return pk_fail(api, PK_ORT_INVALID_ARGUMENT, text);
}

static OrtStatus *pk_no_lengths(const OrtApi *api, const pk_region *r, const int64_t *lengths) {
    char text[512], list[256];
    pk_put_dims(list, sizeof list, 0, lengths, r->n_given);
    snprintf(text, sizeof text, "petopt.kernels, %s: at lengths %s shapes do not fit one another",
             r->name, list);
    return pk_fail(api, PK_ORT_INVALID_ARGUMENT, text);
}

/* The lengths that are open, by what a call is given. */
static OrtStatus *pk_given_lengths(const OrtApi *api, const pk_region *r, OrtKernelContext *context,
                                   int64_t *lengths) {
    for (size_t k = 0; k < r->n_given; k++) {
        const OrtValue *value = NULL;
        OrtTensorTypeAndShapeInfo *info = NULL;
        PK_TRY(PK_CALL(api, KernelContext_GetInput, context, r->given[k].input, &value));
        if (!value)
            return pk_fail(api, PK_ORT_INVALID_ARGUMENT, "petopt.kernels: an input is missing");
        PK_TRY(PK_CALL(api, GetTensorTypeAndShape, value, &info));
        OrtStatus *status = pk_give(api, r, &r->given[k], info, &lengths[k]);
        pk_release_shape(api, info);
        PK_TRY(status);
    }
    if (r->n_given > 0 && !r->lengths(lengths, NULL))
        return pk_no_lengths(api, r, lengths);
    return NULL;
}

/* --- the operator --- */

/* batch: how many samples there are; -1: shapes are all static. */
static OrtStatus *pk_bind(pk_kernel *k, OrtKernelContext *context, pk_buffer *b, int64_t *batch) {
    const pk_region *r = &b->region;
    void *data = NULL;
    *batch = -1;
    for (size_t i = 0; i < r->n_in + r->n_weights; i++) {
        PK_TRY(pk_input(k->api, r, context, i, k->constant[i], batch, &data));
        b->all_in[i] = data;
    }
    for (size_t i = 0; i < r->n_out; i++) {
        PK_TRY(pk_output(k->api, r, context, i, *batch, &data));
        b->all_out[i] = data;
    }
    return NULL;
}

/* Floats from the first sample of a port to another; 0: it has the same for all. */
static size_t pk_offset(const pk_port *p, size_t sample) {
    size_t floats = sample;
    if (sample == 0 || !pk_is_open(p))
        return 0;
    for (size_t i = 0; i < p->rank; i++)
        floats *= (size_t)(p->dims[i] < 0 ? -p->dims[i] : p->dims[i]);
    return floats;
}

/* Kernels are of one sample: they are called for each of them. */
static void pk_call_sample(const pk_kernel *k, const pk_buffer *all, const pk_buffer *own,
                           size_t sample, const pk_pool *pool) {
    const pk_region *r = &all->region;
    for (size_t i = 0; i < r->n_in + r->n_weights; i++)
        own->in[i] = all->all_in[i] + (i < r->n_in ? pk_offset(&r->in[i], sample) : 0);
    for (size_t i = 0; i < r->n_out; i++)
        own->out[i] = all->all_out[i] + pk_offset(&r->out[i], sample);
    k->code->call(own->in, own->in + r->n_in, own->out, own->device.floats, own->scratch.floats,
                  own->z, pool);
}

static void pk_alone(void *self, void (*fn)(void *arg, size_t part), void *arg) {
    (void)self;
    fn(arg, 0);
}

/* Samples dealt out to the threads, each with memory of its own. */
typedef struct pk_dealt {
    const pk_kernel *k;
    const pk_buffer *all;
    pk_buffer **own; /* by part */
    size_t samples, parts;
} pk_dealt;

static void pk_samples_of(void *arg, size_t part) {
    const pk_dealt *d = arg;
    const pk_pool alone = {1, pk_alone, NULL};
    for (size_t s = part * d->samples / d->parts; s < (part + 1) * d->samples / d->parts; s++)
        pk_call_sample(d->k, d->all, d->own[part], s, &alone);
}

/* As many samples as come out even are worked side by side, one thread each; what is left over, and
 * all where there is no memory for that, one after the other on all threads. */
static void pk_call_each(pk_kernel *k, pk_buffer *b, size_t samples, pk_run *run) {
    const pk_pool pool = {run->parts, pk_parallel, run};
    const size_t parts = run->asks ? 1 : run->parts;
    pk_buffer *own[PK_MAX_PARTS] = {b};
    size_t n = 1, done = 0;
    while (samples >= parts && n < parts && (own[n] = pk_take(k, 1, b->given)))
        n++;
    if (n > 1 && n == parts) {
        pk_dealt dealt = {k, b, own, samples / parts * parts, parts};
        pk_parallel(run, pk_samples_of, &dealt);
        done = dealt.samples;
    }
    while (n > 1)
        pk_return(k, own[--n]);
    for (; done < samples; done++)
        pk_call_sample(k, b, b, done, &pool);
}

static OrtStatus *pk_compute(void *kernel, OrtKernelContext *context) {
    pk_kernel *k = kernel;
    bool asks;
    int64_t given[PK_MAX_GIVEN] = {0};
    PK_TRY(pk_given_lengths(k->api, k->region, context, given));
    const size_t parts = pk_parts(k, &asks);
    pk_buffer *b = pk_take(k, parts, given);
    if (!b)
        return pk_fail(k->api, PK_ORT_FAIL, "petopt.kernels: memory ran out");
    int64_t batch;
    OrtStatus *status = pk_bind(k, context, b, &batch);
    if (!status) {
        pk_run run = {k->api, context, NULL, parts, asks, 0};
        pk_call_each(k, b, batch < 0 ? 1 : (size_t)batch, &run);
        status = run.failed;
        if (run.found > 0)
            pk_learn(k, &run);
    }
    pk_return(k, b);
    return status;
}

static void pk_destroy(void *kernel) {
    pk_kernel *k = kernel;
    for (pk_buffer *b = k->free_buffers, *next; b; b = next) {
        next = b->next;
        pk_free_buffer(b);
    }
    pthread_mutex_destroy(&k->lock);
    free(k->constant);
    free(k);
}

/* --- pages of the weights --- */

typedef struct pk_range {
    uintptr_t from, to;
} pk_range;

static int pk_by_address(const void *a, const void *b) {
    const pk_range *x = a, *y = b;
    return x->from < y->from ? -1 : x->from > y->from;
}

/* Asks for large pages below the weights: a model's are many times what the processor's tables of
 * pages reach (BERT-base: 2 % of the time). Only advice: what lies there stays as it is. */
static void pk_enlarge_pages(pk_range *ranges, size_t n) {
#ifdef MADV_HUGEPAGE
    enum { COLLAPSE = 25 /* now, and not when the system comes to it: Linux 6.1 */ };
    const uintptr_t page = (uintptr_t)2 << 20, near = (uintptr_t)64 << 10;
    uintptr_t all = 0;
    for (size_t i = 0; i < n; i++)
        all += ranges[i].to - ranges[i].from;
    if (all < 8 * page) /* within reach */
        return;
    qsort(ranges, n, sizeof *ranges, pk_by_address);
    for (size_t i = 0, j; i < n; i = j) {
        uintptr_t to = ranges[i].to;
        for (j = i + 1; j < n && ranges[j].from < to + near; j++)
            to = ranges[j].to > to ? ranges[j].to : to;
        uintptr_t from = (ranges[i].from + page - 1) / page * page;
        to = to / page * page;
        if (from >= to || madvise((void *)from, to - from, MADV_HUGEPAGE) != 0)
            continue;
        madvise((void *)from, to - from, COLLAPSE);
    }
#else
    (void)ranges, (void)n, (void)pk_by_address;
#endif
}

static OrtStatus *pk_look_at_constants(pk_kernel *k, const OrtKernelInfo *info, pk_range *ranges,
                                       size_t *n_ranges) {
    for (size_t i = 0; i < k->region->n_in + k->region->n_weights; i++) {
        const OrtValue *value = NULL;
        PK_TRY(pk_constant(k->api, k->region, info, i, &k->constant[i], &value));
        if (!k->constant[i])
            continue;
        void *data = NULL;
        if (i < k->region->n_in)
            continue;
        PK_TRY(PK_CALL(k->api, GetTensorMutableData, value, &data));
        size_t bytes = (size_t)k->region->weight_elements[i - k->region->n_in] * sizeof(float);
        ranges[(*n_ranges)++] = (pk_range){(uintptr_t)data, (uintptr_t)data + bytes};
    }
    return NULL;
}

static OrtStatus *pk_check_constants(pk_kernel *k, const OrtKernelInfo *info) {
    pk_range *ranges = calloc(k->region->n_weights + 1, sizeof *ranges);
    size_t n = 0;
    if (!ranges)
        return pk_fail(k->api, PK_ORT_FAIL, "petopt.kernels: memory ran out");
    OrtStatus *status = pk_look_at_constants(k, info, ranges, &n);
    if (!status)
        pk_enlarge_pages(ranges, n);
    free(ranges);
    return status;
}

static OrtStatus *pk_create(const OrtCustomOp *base, const OrtApi *api, const OrtKernelInfo *info,
                            void **kernel) {
    const pk_op *op = (const pk_op *)base;
    pk_kernel *k = calloc(1, sizeof *k);
    bool *constant = calloc(op->region->n_in + op->region->n_weights + 1, sizeof *constant);
    if (!k || !constant) {
        free(k);
        free(constant);
        return pk_fail(api, PK_ORT_FAIL, "petopt.kernels: memory ran out");
    }
    *k = (pk_kernel){.api = api,
                     .region = op->region,
                     .code = op->code,
                     .constant = constant,
                     .parts = 1,
                     .most_parts = pk_processors()};
    pthread_mutex_init(&k->lock, NULL);
    OrtStatus *status = pk_check_constants(k, info);
    if (status)
        pk_destroy(k);
    else
        *kernel = k;
    return status;
}

/* Picks by the processor: `supported` says of each instruction set whether it may be used. */
static const void *pk_choose(const void *user, const pk_region *region) {
    const bool *supported = user;
    const pk_kernel_code *code = region->code;
    for (int isa = 0; isa < PK_ISAS; isa++)
        if (supported[isa] && code[isa].call)
            return &code[isa];
    return NULL;
}

/* The session's entry "petopt.isa" names the one instruction set that may be used, or none. */
static OrtStatus *pk_narrow(const OrtApi *api, const OrtSessionOptions *options,
                            const pk_region *regions, size_t n, bool *supported) {
    static const char entry[] = "petopt.isa";
    char name[16] = "";
    size_t size = sizeof name;
    int given = 0;
    bool known;
    PK_TRY(PK_CALL(api, HasSessionConfigEntry, options, entry, &given));
    if (!given)
        return NULL;
    PK_TRY(PK_CALL(api, GetSessionConfigEntry, options, entry, name, &size));
    known = strcmp(name, "none") == 0;
    for (int isa = 0; isa < PK_ISAS; isa++) {
        bool named = false;
        for (size_t i = 0; i < n && !named; i++) {
            const pk_kernel_code *code = regions[i].code;
            named = code[isa].isa && strcmp(code[isa].isa, name) == 0;
        }
        supported[isa] &= named;
        known |= named;
    }
    return known ? NULL
                 : pk_fail(api, PK_ORT_INVALID_ARGUMENT,
                           "petopt.kernels: petopt.isa names no code of this library");
}

/* `supported`: by instruction set, whether this processor has it; narrowed as the session asks. */
static OrtStatus *pk_register_cpu(OrtSessionOptions *options, const OrtApiBase *base,
                                  const pk_region *regions, size_t n, bool *supported) {
    pk_target cpu = {PK_ORT_API, NULL, pk_choose, supported, pk_create, pk_compute, pk_destroy, 0};
    const OrtApi *api = base->GetApi(PK_ORT_API);
    if (api)
        PK_TRY(pk_narrow(api, options, regions, n, supported));
    for (int isa = 0; isa < PK_ISAS; isa++)
        cpu.choice |= (uint32_t)supported[isa] << isa;
    return pk_register(options, base, regions, n, &cpu);
}

#endif

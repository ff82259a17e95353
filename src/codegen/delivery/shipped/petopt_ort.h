/* A library of kernels for ONNX Runtime 1.17 or later on the CPU: each region of a model is one
 * custom operator. petopt_kernels.c holds the table of regions and includes this file once; the
 * kernels are in files of their own. */
#ifndef PETOPT_ORT_H
#define PETOPT_ORT_H

#include "petopt_ort_api.h"

#include "petopt_kernel.h"

#include <sched.h>

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
static void pk_call_each(pk_kernel *k, pk_buffer *b, size_t done, size_t samples, pk_run *run) {
    const pk_pool pool = {run->parts, pk_parallel, run};
    const size_t parts = run->asks ? 1 : run->parts;
    pk_buffer *own[PK_MAX_PARTS] = {b};
    size_t n = 1;
    while (done == 0 && samples >= parts && n < parts && (own[n] = pk_take(k, 1, b->given)))
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

/* --- several samples at once --- */

/* A group of samples: what is open of it comes from the whole and, for the rest, from the head. */
typedef struct pk_group {
    const pk_buffer *whole;
    size_t samples;
    pk_buffer *head, *rest; /* head: NULL where there is none */
} pk_group;

static int64_t pk_dim_of(const pk_group *g, size_t input, size_t axis, size_t samples) {
    const pk_region *r = &g->whole->region;
    const pk_port *p = input < r->n_in ? &r->in[input] : &g->head->region.out[input - r->n_in];
    return p->dims[axis] < 0 ? -p->dims[axis] * (int64_t)samples : p->dims[axis];
}

/* A buffer for a part of the region; NULL: it is not meant for these lengths, or memory ran out. */
static pk_buffer *pk_take_part(const pk_group *g, pk_kernel *k, const size_t *from, size_t samples,
                               size_t parts) {
    int64_t lengths[PK_MAX_GIVEN] = {0};
    const pk_region *r = k->region;
    for (size_t i = 0; i < r->n_given; i++) {
        const pk_given *given = &r->given[i];
        const int64_t dim = pk_dim_of(g, from[given->input], given->axis, samples);
        if (dim % given->multiple != 0)
            return NULL;
        lengths[i] = dim / given->multiple;
    }
    return r->n_given == 0 || r->lengths(lengths, NULL) ? pk_take(k, parts, lengths) : NULL;
}

/* Room for what the head makes of all samples of a group. */
static bool pk_fit_between(pk_group *g) {
    const pk_region *r = &g->head->region;
    size_t floats = 0;
    for (size_t i = 0; i < r->n_out; i++)
        floats += pk_up(pk_offset(&r->out[i], g->samples), PK_LINE);
    if (!pk_fit_memory(&g->rest->between, &g->rest->between_room, floats))
        return false;
    floats = 0;
    for (size_t i = 0; i < r->n_out; i++) {
        g->head->all_out[i] = g->rest->between.floats + floats;
        floats += pk_up(pk_offset(&r->out[i], g->samples), PK_LINE);
    }
    return true;
}

static bool pk_take_group(pk_kernel *k, pk_group *g, size_t parts) {
    const pk_batched *b = k->region->batched;
    if (k->head && !(g->head = pk_take_part(g, k->head, b->head.from, 1, parts)))
        return false;
    g->rest = pk_take_part(g, k->rest, b->rest.from, g->samples, parts);
    return g->rest && (!k->head || pk_fit_between(g));
}

/* The inputs of a part, from the group's first sample on. */
static void pk_bind_part(const pk_group *g, const size_t *from, size_t first, pk_buffer *part) {
    const pk_region *whole = &g->whole->region, *r = &part->region;
    for (size_t i = 0; i < r->n_in; i++)
        part->all_in[i] = from[i] < whole->n_in
                              ? g->whole->all_in[from[i]] + pk_offset(&whole->in[from[i]], first)
                              : g->head->all_out[from[i] - whole->n_in];
    memcpy(part->all_in + r->n_in, g->whole->all_in + whole->n_in,
           r->n_weights * sizeof *part->all_in);
}

static void pk_call_group(pk_kernel *k, const pk_group *g, size_t first, pk_run *run) {
    const pk_batched *b = k->region->batched;
    const pk_region *r = &g->whole->region;
    const pk_pool pool = {run->parts, pk_parallel, run};
    if (g->head) {
        pk_bind_part(g, b->head.from, first, g->head);
        pk_call_each(k->head, g->head, 0, g->samples, run);
    }
    pk_bind_part(g, b->rest.from, first, g->rest);
    for (size_t i = 0; i < r->n_out; i++)
        g->rest->all_out[i] = g->whole->all_out[i] + pk_offset(&r->out[i], first);
    k->rest->code->call(g->rest->all_in, g->rest->all_in + g->rest->region.n_in, g->rest->all_out,
                        g->rest->device.floats, g->rest->scratch.floats, g->rest->z, &pool);
}

/* Samples in groups of one size, each on all threads; how many that were. */
static size_t pk_call_groups(pk_kernel *k, const pk_buffer *b, size_t samples, pk_run *run) {
    const size_t groups = (samples + PK_MOST_SAMPLES - 1) / PK_MOST_SAMPLES;
    size_t done = 0;
    if (!k->rest || samples < 2)
        return 0;
    pk_group g = {b, samples / groups, NULL, NULL};
    if (pk_take_group(k, &g, run->parts))
        for (; done + g.samples <= samples; done += g.samples)
            pk_call_group(k, &g, done, run);
    if (g.head)
        pk_return(k->head, g.head);
    if (g.rest)
        pk_return(k->rest, g.rest);
    return done;
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
        const size_t samples = batch < 0 ? 1 : (size_t)batch;
        pk_call_each(k, b, pk_call_groups(k, b, samples, &run), samples, &run);
        status = run.failed;
        if (run.found > 0)
            pk_learn(k, &run);
    }
    pk_return(k, b);
    return status;
}

static void pk_destroy(void *kernel) {
    pk_kernel *k = kernel;
    if (k->head)
        pk_destroy(k->head);
    if (k->rest)
        pk_destroy(k->rest);
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

static pk_kernel *pk_new(const OrtApi *api, const pk_region *region, const pk_kernel_code *code) {
    pk_kernel *k = calloc(1, sizeof *k);
    bool *constant = calloc(region->n_in + region->n_weights + 1, sizeof *constant);
    if (!k || !constant) {
        free(k);
        free(constant);
        return NULL;
    }
    *k = (pk_kernel){.api = api,
                     .region = region,
                     .code = code,
                     .constant = constant,
                     .parts = 1,
                     .most_parts = pk_processors()};
    pthread_mutex_init(&k->lock, NULL);
    return k;
}

/* A part of the region, by the same instruction set; NULL, and not missed: there is none. */
static pk_kernel *pk_new_part(const pk_kernel *k, const pk_part *part) {
    const pk_kernel_code *whole = k->region->code;
    if (!part->region)
        return NULL;
    const pk_kernel_code *code = part->region->code;
    code += k->code - whole;
    return code->call ? pk_new(k->api, part->region, code) : NULL;
}

/* Without one of its parts samples are worked one by one. */
static void pk_add_parts(pk_kernel *k) {
    const pk_batched *b = k->region->batched;
    if (!b)
        return;
    k->head = pk_new_part(k, &b->head);
    if (k->head || !b->head.region)
        k->rest = pk_new_part(k, &b->rest);
}

static OrtStatus *pk_create(const OrtCustomOp *base, const OrtApi *api, const OrtKernelInfo *info,
                            void **kernel) {
    const pk_op *op = (const pk_op *)base;
    pk_kernel *k = pk_new(api, op->region, op->code);
    if (!k)
        return pk_fail(api, PK_ORT_FAIL, "petopt.kernels: memory ran out");
    pk_add_parts(k);
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

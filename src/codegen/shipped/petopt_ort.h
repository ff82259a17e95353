/* A library of kernels for ONNX Runtime 1.17 or later: each region of a model is one custom
 * operator. petopt_kernels.c holds the table of regions and includes this file once; the kernels
 * are in files of their own. No header of the runtime is needed. */
#ifndef PETOPT_ORT_H
#define PETOPT_ORT_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

/* --- what a kernel is --- */

typedef struct pk_pool {
    size_t parts;
    void (*run)(void *self, void (*fn)(void *arg, size_t part), void *arg);
    void *self;
} pk_pool;

typedef struct pk_kernel_code {
    const char *isa;
    const size_t *device, *scratch; /* floats; of scratch: for each part */
    void (*start)(float *device);
    void (*call)(const float *const *in, const float *const *weight, float *const *out,
                 float *device, float *scratch, const pk_pool *pool);
} pk_kernel_code;

typedef struct pk_port {
    size_t rank;
    const int64_t *dims;
} pk_port;

enum { PK_ISAS = 2, PK_MAX_RANK = 8, PK_MAX_PARTS = 256, PK_LINE = 64 };

typedef struct pk_region {
    const char *name;
    size_t n_in, n_weights, n_out;
    const pk_port *in, *out;
    const int64_t *weight_floats;
    pk_kernel_code code[PK_ISAS]; /* call NULL: none */
} pk_region;

/* --- the runtime's interface --- */

typedef struct OrtStatus OrtStatus;
typedef struct OrtValue OrtValue;
typedef struct OrtKernelInfo OrtKernelInfo;
typedef struct OrtKernelContext OrtKernelContext;
typedef struct OrtSessionOptions OrtSessionOptions;
typedef struct OrtCustomOpDomain OrtCustomOpDomain;
typedef struct OrtShapeInferContext OrtShapeInferContext;
typedef struct OrtTensorTypeAndShapeInfo OrtTensorTypeAndShapeInfo;
typedef void (*pk_function)(void);

enum { PK_ORT_API = 17, PK_ORT_FAIL = 1, PK_ORT_INVALID_ARGUMENT = 2, PK_ORT_FLOAT = 1 };

enum {
#define PK_API(name, slot) PK_API_##name = (slot),
#define PK_OP(name, slot)
#include "ort_slots.def"
#undef PK_API
#undef PK_OP
#define PK_API(name, slot)
#define PK_OP(name, slot) PK_OP_##name = (slot)-1,
#include "ort_slots.def"
#undef PK_API
#undef PK_OP
    PK_OP_SLOTS = PK_OP_ReleaseAliasMap + 1
};

typedef struct OrtApi {
    pk_function slot[PK_API_KernelContext_ParallelFor + 1]; /* there are more */
} OrtApi;

typedef struct OrtApiBase {
    const OrtApi *(*GetApi)(uint32_t version);
    const char *(*GetVersionString)(void);
} OrtApiBase;

typedef struct OrtCustomOp {
    uint32_t version;
    pk_function slot[PK_OP_SLOTS];
} OrtCustomOp;

#define PK_CALL(api, name, ...)                                                                    \
    ((OrtStatus * (*)(PK_TYPES_##name))(api)->slot[PK_API_##name])(__VA_ARGS__)
#define PK_TYPES_CreateStatus                 int, const char *
#define PK_TYPES_CreateCustomOpDomain         const char *, OrtCustomOpDomain **
#define PK_TYPES_CustomOpDomain_Add           OrtCustomOpDomain *, const OrtCustomOp *
#define PK_TYPES_AddCustomOpDomain            OrtSessionOptions *, OrtCustomOpDomain *
#define PK_TYPES_GetTensorMutableData         const OrtValue *, void **
#define PK_TYPES_CreateTensorTypeAndShapeInfo OrtTensorTypeAndShapeInfo **
#define PK_TYPES_SetTensorElementType         OrtTensorTypeAndShapeInfo *, int
#define PK_TYPES_SetDimensions                OrtTensorTypeAndShapeInfo *, const int64_t *, size_t
#define PK_TYPES_GetDimensionsCount           const OrtTensorTypeAndShapeInfo *, size_t *
#define PK_TYPES_GetDimensions                const OrtTensorTypeAndShapeInfo *, int64_t *, size_t
#define PK_TYPES_GetTensorShapeElementCount   const OrtTensorTypeAndShapeInfo *, size_t *
#define PK_TYPES_GetTensorTypeAndShape        const OrtValue *, OrtTensorTypeAndShapeInfo **
#define PK_TYPES_KernelContext_GetInput       const OrtKernelContext *, size_t, const OrtValue **
#define PK_TYPES_KernelContext_GetOutput                                                           \
    OrtKernelContext *, size_t, const int64_t *, size_t, OrtValue **
#define PK_TYPES_KernelInfoGetConstantInput_tensor                                                 \
    const OrtKernelInfo *, size_t, int *, const OrtValue **
#define PK_TYPES_ShapeInferContext_SetOutputTypeShape                                              \
    const OrtShapeInferContext *, size_t, const OrtTensorTypeAndShapeInfo *
#define PK_TYPES_KernelContext_ParallelFor                                                         \
    const OrtKernelContext *, void (*)(void *, size_t), size_t, size_t, void *

static void pk_release_shape(const OrtApi *api, OrtTensorTypeAndShapeInfo *info) {
    ((void (*)(OrtTensorTypeAndShapeInfo *))api->slot[PK_API_ReleaseTensorTypeAndShapeInfo])(info);
}

static void pk_release_status(const OrtApi *api, OrtStatus *status) {
    ((void (*)(OrtStatus *))api->slot[PK_API_ReleaseStatus])(status);
}

#define PK_TRY(call)                                                                               \
    do {                                                                                           \
        OrtStatus *pk_status_ = (call);                                                            \
        if (pk_status_)                                                                            \
            return pk_status_;                                                                     \
    } while (0)

static void pk_release_domain(const OrtApi *api, OrtCustomOpDomain *domain) {
    ((void (*)(OrtCustomOpDomain *))api->slot[PK_API_ReleaseCustomOpDomain])(domain);
}

typedef struct pk_op {
    OrtCustomOp base; /* first: the runtime hands its address back */
    const OrtApi *api;
    const pk_region *region;
    const pk_kernel_code *code;
} pk_op;

static OrtStatus *pk_fail(const OrtApi *api, int code, const char *text) {
    return PK_CALL(api, CreateStatus, code, text);
}

/* --- checking what comes in --- */

static size_t pk_put(char *text, size_t size, size_t at, const char *more) {
    int n = at < size ? snprintf(text + at, size - at, "%s", more) : 0;
    return at + (n > 0 ? (size_t)n : 0);
}

static size_t pk_put_dims(char *text, size_t size, size_t at, const int64_t *dims, size_t rank) {
    at = pk_put(text, size, at, "[");
    for (size_t i = 0; i < rank; i++) {
        char number[32];
        snprintf(number, sizeof number, "%s%lld", i ? "," : "", (long long)dims[i]);
        at = pk_put(text, size, at, number);
    }
    return pk_put(text, size, at, "]");
}

static OrtStatus *pk_wrong_shape(const OrtApi *api, const pk_region *r, size_t input,
                                 const int64_t *found, size_t rank) {
    char text[512];
    int n =
        snprintf(text, sizeof text, "petopt.kernels, %s: input %zu has the shape ", r->name, input);
    size_t at = pk_put_dims(text, sizeof text, n > 0 ? (size_t)n : 0, found, rank);
    if (input < r->n_in) {
        at = pk_put(text, sizeof text, at, ", its kernel was made for ");
        pk_put_dims(text, sizeof text, at, r->in[input].dims, r->in[input].rank);
    } else {
        char number[96];
        snprintf(number, sizeof number, ", its kernel was made for %lld elements",
                 (long long)r->weight_floats[input - r->n_in]);
        pk_put(text, sizeof text, at, number);
    }
    return pk_fail(api, PK_ORT_INVALID_ARGUMENT, text);
}

static OrtStatus *pk_check_info(const OrtApi *api, const pk_region *r, size_t input,
                                const OrtTensorTypeAndShapeInfo *info) {
    int64_t dims[PK_MAX_RANK];
    size_t rank = 0;
    PK_TRY(PK_CALL(api, GetDimensionsCount, info, &rank));
    size_t known = rank < PK_MAX_RANK ? rank : PK_MAX_RANK;
    PK_TRY(PK_CALL(api, GetDimensions, info, dims, known));
    bool right = false;
    if (input < r->n_in) {
        const pk_port *p = &r->in[input];
        right = rank == p->rank && (!rank || !memcmp(dims, p->dims, rank * sizeof *dims));
    } else {
        size_t count = 0;
        PK_TRY(PK_CALL(api, GetTensorShapeElementCount, info, &count));
        right = count == (size_t)r->weight_floats[input - r->n_in];
    }
    return right ? NULL : pk_wrong_shape(api, r, input, dims, known);
}

static OrtStatus *pk_check_input(const OrtApi *api, const pk_region *r, size_t input,
                                 const OrtValue *value) {
    OrtTensorTypeAndShapeInfo *info = NULL;
    PK_TRY(PK_CALL(api, GetTensorTypeAndShape, value, &info));
    OrtStatus *status = pk_check_info(api, r, input, info);
    pk_release_shape(api, info);
    return status;
}

/* --- memory of a call --- */

typedef struct pk_memory {
    char *base;
    size_t bytes;
    float *floats;
} pk_memory;

typedef struct pk_buffer {
    struct pk_buffer *next; /* in the list of free ones */
    size_t parts;
    pk_memory device, scratch;
    const float **in; /* n_in, then n_weights */
    float **out;
} pk_buffer;

typedef struct pk_kernel {
    const OrtApi *api;
    const pk_region *region;
    const pk_kernel_code *code;
    bool *constant; /* by input: its shape was checked once and for all */
    pthread_mutex_t lock;
    pk_buffer *free_buffers;
    unsigned calls;
    size_t parts, most_parts;
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
    free(b);
}

static pk_buffer *pk_make_buffer(const pk_kernel *k, size_t parts) {
    const pk_region *r = k->region;
    pk_buffer *b = calloc(1, sizeof *b);
    if (!b)
        return NULL;
    b->parts = parts;
    b->in = calloc(r->n_in + r->n_weights + 1, sizeof *b->in);
    b->out = calloc(r->n_out + 1, sizeof *b->out);
    if (!b->in || !b->out || !pk_map(&b->device, *k->code->device) ||
        !pk_map(&b->scratch, *k->code->scratch * parts)) {
        pk_free_buffer(b);
        return NULL;
    }
    k->code->start(b->device.floats);
    return b;
}

/* Takes a free buffer of the number of parts that the call is to have, or makes one. */
static pk_buffer *pk_take(pk_kernel *k) {
    pthread_mutex_lock(&k->lock);
    pk_buffer *b = k->free_buffers;
    if (b)
        k->free_buffers = b->next;
    size_t parts = k->parts;
    pthread_mutex_unlock(&k->lock);
    if (b && b->parts != parts) {
        pk_free_buffer(b);
        b = NULL;
    }
    return b ? b : pk_make_buffer(k, parts);
}

static void pk_give(pk_kernel *k, pk_buffer *b) {
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
} pk_run;

static void pk_parallel(void *self, void (*fn)(void *arg, size_t part), void *arg) {
    pk_run *run = self;
    if (run->parts == 1) {
        fn(arg, 0);
        return;
    }
    OrtStatus *status =
        PK_CALL(run->api, KernelContext_ParallelFor, run->context, fn, run->parts, 0, arg);
    if (status && run->failed)
        pk_release_status(run->api, status);
    else if (status)
        run->failed = status;
}

/* How many threads the runtime has for this session is not in its interface: as many as can be made
 * to meet. The answer decides how work is cut, never what comes out. */
typedef struct pk_meeting {
    atomic_size_t there;
    atomic_bool over;
    size_t expected;
    struct timespec begin;
    long patience; /* nanoseconds */
} pk_meeting;

static void pk_meet(void *arg, size_t part) {
    pk_meeting *m = arg;
    (void)part;
    if (atomic_load(&m->over))
        return;
    if (atomic_fetch_add(&m->there, 1) + 1 >= m->expected)
        atomic_store(&m->over, true);
    while (!atomic_load(&m->over)) {
        struct timespec now;
        clock_gettime(CLOCK_MONOTONIC, &now);
        int64_t spent =
            (int64_t)(now.tv_sec - m->begin.tv_sec) * 1000000000 + (now.tv_nsec - m->begin.tv_nsec);
        if (spent > m->patience)
            atomic_store(&m->over, true);
        sched_yield();
    }
}

static size_t pk_count_threads(const pk_kernel *k, OrtKernelContext *context, long patience) {
    pk_meeting m = {.expected = k->most_parts, .patience = patience};
    clock_gettime(CLOCK_MONOTONIC, &m.begin);
    pk_run run = {k->api, context, NULL, m.expected};
    pk_parallel(&run, pk_meet, &m);
    if (run.failed)
        pk_release_status(k->api, run.failed);
    size_t there = atomic_load(&m.there);
    return there < 1 ? 1 : there < m.expected ? there : m.expected;
}

/* Workers may have been asleep or at other work when they were counted: they are counted again
 * after a few calls. */
static void pk_settle_parts(pk_kernel *k, OrtKernelContext *context) {
    if (k->most_parts == 1)
        return;
    pthread_mutex_lock(&k->lock);
    unsigned call = k->calls < 64 ? k->calls++ : k->calls;
    bool count = k->parts < k->most_parts && (call == 0 || call == 3 || call == 31);
    pthread_mutex_unlock(&k->lock);
    if (!count)
        return;
    size_t found = pk_count_threads(k, context, call == 0 ? 500000 : 1000000);
    pthread_mutex_lock(&k->lock);
    if (found > k->parts)
        k->parts = found;
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

/* --- the operator --- */

static OrtStatus *pk_bind(pk_kernel *k, OrtKernelContext *context, pk_buffer *b) {
    const pk_region *r = k->region;
    for (size_t i = 0; i < r->n_in + r->n_weights; i++) {
        const OrtValue *value = NULL;
        void *data = NULL;
        PK_TRY(PK_CALL(k->api, KernelContext_GetInput, context, i, &value));
        if (!value)
            return pk_fail(k->api, PK_ORT_INVALID_ARGUMENT, "petopt.kernels: an input is missing");
        if (!k->constant[i])
            PK_TRY(pk_check_input(k->api, r, i, value));
        PK_TRY(PK_CALL(k->api, GetTensorMutableData, value, &data));
        b->in[i] = data;
    }
    for (size_t i = 0; i < r->n_out; i++) {
        OrtValue *value = NULL;
        void *data = NULL;
        PK_TRY(PK_CALL(k->api, KernelContext_GetOutput, context, i, r->out[i].dims, r->out[i].rank,
                       &value));
        PK_TRY(PK_CALL(k->api, GetTensorMutableData, value, &data));
        b->out[i] = data;
    }
    return NULL;
}

static OrtStatus *pk_compute(void *kernel, OrtKernelContext *context) {
    pk_kernel *k = kernel;
    pk_settle_parts(k, context);
    pk_buffer *b = pk_take(k);
    if (!b)
        return pk_fail(k->api, PK_ORT_FAIL, "petopt.kernels: memory ran out");
    OrtStatus *status = pk_bind(k, context, b);
    if (!status) {
        pk_run run = {k->api, context, NULL, b->parts};
        pk_pool pool = {b->parts, pk_parallel, &run};
        k->code->call(b->in, b->in + k->region->n_in, b->out, b->device.floats, b->scratch.floats,
                      &pool);
        status = run.failed;
    }
    pk_give(k, b);
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
        int is_constant = 0;
        PK_TRY(PK_CALL(k->api, KernelInfoGetConstantInput_tensor, info, i, &is_constant, &value));
        k->constant[i] = is_constant && value;
        if (!k->constant[i])
            continue;
        PK_TRY(pk_check_input(k->api, k->region, i, value));
        void *data = NULL;
        if (i < k->region->n_in)
            continue;
        PK_TRY(PK_CALL(k->api, GetTensorMutableData, value, &data));
        size_t bytes = (size_t)k->region->weight_floats[i - k->region->n_in] * sizeof(float);
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

static OrtStatus *pk_set_shape(const OrtApi *api, OrtShapeInferContext *context, size_t i,
                               const pk_port *port, OrtTensorTypeAndShapeInfo *info) {
    PK_TRY(PK_CALL(api, SetTensorElementType, info, PK_ORT_FLOAT));
    PK_TRY(PK_CALL(api, SetDimensions, info, port->dims, port->rank));
    return PK_CALL(api, ShapeInferContext_SetOutputTypeShape, context, i, info);
}

static OrtStatus *pk_infer_shapes(const OrtCustomOp *base, OrtShapeInferContext *context) {
    const pk_op *op = (const pk_op *)base;
    for (size_t i = 0; i < op->region->n_out; i++) {
        OrtTensorTypeAndShapeInfo *info = NULL;
        PK_TRY(PK_CALL(op->api, CreateTensorTypeAndShapeInfo, &info));
        OrtStatus *status = pk_set_shape(op->api, context, i, &op->region->out[i], info);
        pk_release_shape(op->api, info);
        PK_TRY(status);
    }
    return NULL;
}

static const char *pk_name(const OrtCustomOp *base) {
    return ((const pk_op *)base)->region->name;
}

static const char *pk_provider(const OrtCustomOp *base) {
    (void)base;
    return NULL; /* the CPU's */
}

static int pk_type(const OrtCustomOp *base, size_t index) {
    (void)base, (void)index;
    return PK_ORT_FLOAT;
}

static size_t pk_inputs(const OrtCustomOp *base) {
    const pk_region *r = ((const pk_op *)base)->region;
    return r->n_in + r->n_weights;
}

static size_t pk_outputs(const OrtCustomOp *base) {
    return ((const pk_op *)base)->region->n_out;
}

/* Characteristic "required" and memory type "default" are both 0. */
static int pk_ordinary(const OrtCustomOp *base, size_t index) {
    (void)base, (void)index;
    return 0;
}

static int pk_version(const OrtCustomOp *base) {
    (void)base;
    return 1;
}

static void pk_fill_op(pk_op *op, const OrtApi *api, const pk_region *region,
                       const pk_kernel_code *code) {
    *op = (pk_op){.base = {.version = PK_ORT_API}, .api = api, .region = region, .code = code};
    pk_function *slot = op->base.slot;
    slot[PK_OP_GetName] = (pk_function)pk_name;
    slot[PK_OP_GetExecutionProviderType] = (pk_function)pk_provider;
    slot[PK_OP_GetInputType] = (pk_function)pk_type;
    slot[PK_OP_GetInputTypeCount] = (pk_function)pk_inputs;
    slot[PK_OP_GetOutputType] = (pk_function)pk_type;
    slot[PK_OP_GetOutputTypeCount] = (pk_function)pk_outputs;
    slot[PK_OP_KernelDestroy] = (pk_function)pk_destroy;
    slot[PK_OP_GetInputCharacteristic] = (pk_function)pk_ordinary;
    slot[PK_OP_GetOutputCharacteristic] = (pk_function)pk_ordinary;
    slot[PK_OP_GetInputMemoryType] = (pk_function)pk_ordinary;
    slot[PK_OP_CreateKernelV2] = (pk_function)pk_create;
    slot[PK_OP_KernelComputeV2] = (pk_function)pk_compute;
    slot[PK_OP_InferOutputShapeFn] = (pk_function)pk_infer_shapes;
    slot[PK_OP_GetStartVersion] = (pk_function)pk_version;
    slot[PK_OP_GetEndVersion] = (pk_function)pk_version;
}

/* --- registration --- */

/* One for each runtime in the process; it stays, since sessions may hold on to its operators. */
typedef struct pk_registration {
    struct pk_registration *next;
    const OrtApi *api;
    OrtCustomOpDomain *domain;
    pk_op ops[];
} pk_registration;

static OrtStatus *pk_make_registration(const OrtApi *api, const pk_region *regions, size_t n,
                                       const bool *supported, pk_registration **made) {
    *made = NULL;
    pk_registration *r = calloc(1, sizeof *r + n * sizeof r->ops[0]);
    if (!r)
        return pk_fail(api, PK_ORT_FAIL, "petopt.kernels: memory ran out");
    r->api = api;
    *made = r;
    PK_TRY(PK_CALL(api, CreateCustomOpDomain, "petopt.kernels", &r->domain));
    for (size_t i = 0; i < n; i++) {
        int isa = 0;
        while (isa < PK_ISAS && !(supported[isa] && regions[i].code[isa].call))
            isa++;
        if (isa == PK_ISAS)
            continue; /* this region runs on the model's own function */
        pk_fill_op(&r->ops[i], api, &regions[i], &regions[i].code[isa]);
        PK_TRY(PK_CALL(api, CustomOpDomain_Add, r->domain, &r->ops[i].base));
    }
    return NULL;
}

static OrtStatus *pk_register(OrtSessionOptions *options, const OrtApiBase *base,
                              const pk_region *regions, size_t n, const bool *supported) {
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static pk_registration *known;
    const OrtApi *api = base->GetApi(PK_ORT_API);
    bool any = false;
    for (int isa = 0; isa < PK_ISAS; isa++)
        any = any || supported[isa];
    if (!api || !any)
        return NULL; /* too old a runtime or processor: the model runs on its own functions */
    pthread_mutex_lock(&lock);
    pk_registration *r = known;
    while (r && r->api != api)
        r = r->next;
    OrtStatus *status = NULL;
    if (!r) {
        status = pk_make_registration(api, regions, n, supported, &r);
        if (!status) {
            r->next = known;
            known = r;
        } else if (r) {
            if (r->domain)
                pk_release_domain(api, r->domain);
            free(r);
        }
    }
    pthread_mutex_unlock(&lock);
    return status ? status : PK_CALL(api, AddCustomOpDomain, options, r->domain);
}

#endif

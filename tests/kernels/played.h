/* Plays the runtime to libraries of kernels: what petopt_ort_api.h calls, every call of which can
 * be made to fail. Included after the library's own header. */
#ifndef TEST_KERNELS_PLAYED_H
#define TEST_KERNELS_PLAYED_H

#undef NDEBUG
#include <assert.h>
#include <stdatomic.h>

/* --- the runtime's side of its types --- */

struct OrtStatus {
    char text[256];
};
struct OrtTensorTypeAndShapeInfo {
    size_t rank;
    int64_t dims[PK_MAX_RANK];
};
struct OrtValue {
    struct OrtTensorTypeAndShapeInfo shape;
    float *data;
};
struct OrtKernelInfo {
    const OrtValue *constant[4];
};
struct OrtKernelContext {
    const OrtValue *in[4];
    OrtValue out;
    size_t threads;
    void *stream;
};
struct OrtCustomOpDomain {
    const OrtCustomOp *ops[8];
    size_t n;
};
struct OrtSessionOptions {
    OrtCustomOpDomain *domains[4];
    size_t n;
    const char *isa; /* the entry petopt.isa; NULL: none */
};
struct OrtShapeInferContext {
    struct OrtTensorTypeAndShapeInfo out;
};

static atomic_int statuses, infos, blocks; /* alive */
static int element_type = 1;
static atomic_int fail_at; /* calls until one fails; 0: none does */

static OrtStatus *make_status(int code, const char *text) {
    OrtStatus *s = calloc(1, sizeof *s);
    assert(s && code != 0);
    snprintf(s->text, sizeof s->text, "%s", text);
    statuses++;
    return s;
}
static void free_status(OrtStatus *s) {
    free(s);
    statuses--;
}
/* Every call of the runtime's passes here. */
static OrtStatus *chance(void) {
    int left = atomic_load(&fail_at);
    return left > 0 && atomic_fetch_sub(&fail_at, 1) == 1 ? make_status(1, "as asked for") : NULL;
}
#define CHANCE                                                                                     \
    do {                                                                                           \
        OrtStatus *failed_ = chance();                                                             \
        if (failed_)                                                                               \
            return failed_;                                                                        \
    } while (0)

static OrtStatus *create_domain(const char *name, OrtCustomOpDomain **domain) {
    CHANCE;
    assert(strcmp(name, "petopt.kernels") == 0);
    *domain = calloc(1, sizeof **domain);
    return NULL;
}
static void free_domain(OrtCustomOpDomain *domain) {
    free(domain);
}
static OrtStatus *add_op(OrtCustomOpDomain *domain, const OrtCustomOp *op) {
    CHANCE;
    domain->ops[domain->n++] = op;
    return NULL;
}
static OrtStatus *add_domain(OrtSessionOptions *options, OrtCustomOpDomain *domain) {
    CHANCE;
    options->domains[options->n++] = domain;
    return NULL;
}
static OrtStatus *has_entry(const OrtSessionOptions *options, const char *key, int *has) {
    CHANCE;
    *has = options->isa && strcmp(key, "petopt.isa") == 0;
    return NULL;
}
static OrtStatus *get_entry(const OrtSessionOptions *options, const char *key, char *value,
                            size_t *size) {
    CHANCE;
    assert(options->isa && strcmp(key, "petopt.isa") == 0);
    bool fits = strlen(options->isa) < *size;
    *size = strlen(options->isa) + 1;
    if (!fits)
        return make_status(1, "too long");
    memcpy(value, options->isa, *size);
    return NULL;
}
static OrtStatus *get_input(const OrtKernelContext *c, size_t i, const OrtValue **value) {
    CHANCE;
    *value = c->in[i];
    return NULL;
}
static OrtStatus *get_output(OrtKernelContext *c, size_t i, const int64_t *dims, size_t rank,
                             OrtValue **value) {
    CHANCE;
    assert(i == 0 && rank == c->out.shape.rank);
    assert(memcmp(dims, c->out.shape.dims, rank * sizeof *dims) == 0);
    *value = &c->out;
    return NULL;
}
static OrtStatus *get_data(const OrtValue *value, void **data) {
    CHANCE;
    *data = value->data;
    return NULL;
}
static OrtStatus *get_shape(const OrtValue *value, OrtTensorTypeAndShapeInfo **info) {
    CHANCE;
    *info = malloc(sizeof **info);
    **info = value->shape;
    infos++;
    return NULL;
}
static void free_shape(OrtTensorTypeAndShapeInfo *info) {
    free(info);
    infos--;
}
static OrtStatus *get_rank(const OrtTensorTypeAndShapeInfo *info, size_t *rank) {
    CHANCE;
    *rank = info->rank;
    return NULL;
}
static OrtStatus *get_dims(const OrtTensorTypeAndShapeInfo *info, int64_t *dims, size_t n) {
    CHANCE;
    memcpy(dims, info->dims, n * sizeof *dims);
    return NULL;
}
static OrtStatus *get_count(const OrtTensorTypeAndShapeInfo *info, size_t *count) {
    CHANCE;
    *count = 1;
    for (size_t i = 0; i < info->rank; i++)
        *count *= (size_t)info->dims[i];
    return NULL;
}
static OrtStatus *get_constant(const OrtKernelInfo *info, size_t i, int *is, const OrtValue **v) {
    CHANCE;
    *v = info->constant[i];
    *is = *v != NULL;
    return NULL;
}
static OrtStatus *make_shape(OrtTensorTypeAndShapeInfo **info) {
    CHANCE;
    *info = calloc(1, sizeof **info);
    infos++;
    return NULL;
}
static OrtStatus *set_type(OrtTensorTypeAndShapeInfo *info, int type) {
    CHANCE;
    assert(info && type == element_type);
    return NULL;
}
static OrtStatus *set_dims(OrtTensorTypeAndShapeInfo *info, const int64_t *dims, size_t n) {
    CHANCE;
    info->rank = n;
    memcpy(info->dims, dims, n * sizeof *dims);
    return NULL;
}
static OrtStatus *set_output(OrtShapeInferContext *c, size_t i,
                             const OrtTensorTypeAndShapeInfo *info) {
    CHANCE;
    assert(i == 0);
    c->out = *info;
    return NULL;
}

/* --- memory of the device --- */

struct OrtAllocator {
    int open;
};
static struct OrtAllocator allocator;
static OrtStatus *get_allocator(const OrtKernelInfo *info, int type, OrtAllocator **made) {
    CHANCE;
    assert(info && type == 0);
    allocator.open++;
    *made = &allocator;
    return NULL;
}
static void free_allocator(OrtAllocator *a) {
    a->open--;
}
static OrtStatus *alloc(OrtAllocator *a, size_t bytes, void **memory) {
    CHANCE;
    assert(a->open > 0);
    *memory = malloc(bytes);
    blocks++;
    return NULL;
}
static OrtStatus *free_memory(OrtAllocator *a, void *memory) {
    assert(a->open > 0);
    free(memory);
    blocks--;
    CHANCE;
    return NULL;
}
static OrtStatus *get_stream(const OrtKernelContext *c, void **stream) {
    CHANCE;
    *stream = c->stream;
    return NULL;
}

/* --- threads --- */

typedef struct loop {
    void (*fn)(void *, size_t);
    void *arg;
    size_t total;
    atomic_size_t next;
} loop;

/* One of its threads: its own part first, then what is left. */
typedef struct worker {
    loop *l;
    size_t first;
} worker;

static void *work(void *user) {
    worker *w = user;
    loop *l = w->l;
    for (size_t i = w->first; i < l->total; i = atomic_fetch_add(&l->next, 1))
        l->fn(l->arg, i);
    return NULL;
}

static atomic_bool busy; /* other programs have the processors: the caller does it all */
static OrtStatus *parallel_for(const OrtKernelContext *c, void (*fn)(void *, size_t), size_t total,
                               size_t batch, void *arg) {
    CHANCE;
    assert(batch == 0);
    size_t n = busy ? 1 : c->threads;
    loop l = {.fn = fn, .arg = arg, .total = total, .next = n};
    worker workers[8];
    pthread_t threads[8];
    for (size_t i = 0; i < n; i++)
        workers[i] = (worker){&l, i};
    for (size_t i = 1; i < n; i++)
        assert(pthread_create(&threads[i], NULL, work, &workers[i]) == 0);
    work(&workers[0]);
    for (size_t i = 1; i < n; i++)
        pthread_join(threads[i], NULL);
    return NULL;
}

static OrtApi api;

static uint32_t api_version;
static void fill_api(uint32_t version) {
    api_version = version;
#define SET(name, fn) api.slot[PK_API_##name] = (pk_function)fn
    SET(CreateStatus, make_status);
    SET(CreateCustomOpDomain, create_domain);
    SET(CustomOpDomain_Add, add_op);
    SET(ReleaseCustomOpDomain, free_domain);
    SET(AddCustomOpDomain, add_domain);
    SET(HasSessionConfigEntry, has_entry);
    SET(GetSessionConfigEntry, get_entry);
    SET(GetTensorMutableData, get_data);
    SET(CreateTensorTypeAndShapeInfo, make_shape);
    SET(SetTensorElementType, set_type);
    SET(SetDimensions, set_dims);
    SET(GetDimensionsCount, get_rank);
    SET(GetDimensions, get_dims);
    SET(GetTensorShapeElementCount, get_count);
    SET(GetTensorTypeAndShape, get_shape);
    SET(KernelContext_GetInput, get_input);
    SET(KernelContext_GetOutput, get_output);
    SET(ReleaseStatus, free_status);
    SET(ReleaseTensorTypeAndShapeInfo, free_shape);
    SET(KernelInfoGetConstantInput_tensor, get_constant);
    SET(ShapeInferContext_SetOutputTypeShape, set_output);
    SET(KernelContext_ParallelFor, parallel_for);
    SET(KernelInfoGetAllocator, get_allocator);
    SET(ReleaseAllocator, free_allocator);
    SET(AllocatorAlloc, alloc);
    SET(AllocatorFree, free_memory);
    SET(KernelContext_GetGPUComputeStream, get_stream);
}

static bool too_old;
static const OrtApi *get_api(uint32_t version) {
    return version == api_version && !too_old ? &api : NULL;
}
static const OrtApiBase base = {get_api, NULL};

/* --- what is expected --- */

#define OP(op, name, type) ((type)(op)->slot[PK_OP_##name])
typedef OrtStatus *(*create_fn)(const OrtCustomOp *, const OrtApi *, const OrtKernelInfo *,
                                void **);
typedef OrtStatus *(*compute_fn)(void *, OrtKernelContext *);
typedef void (*destroy_fn)(void *);
typedef OrtStatus *(*infer_fn)(const OrtCustomOp *, OrtShapeInferContext *);
typedef const char *(*name_fn)(const OrtCustomOp *);

static void drop(OrtStatus *status, const char *says) {
    assert(status && strstr(status->text, says));
    free_status(status);
}

#endif

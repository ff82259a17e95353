/* Plays the runtime to src/codegen/shipped/petopt_ort.h: registration, kernels on many threads, and
 * every call of the runtime's failing. Built with sanitizers too. */
#include "codegen/shipped/petopt_ort.h"

#undef NDEBUG
#include <assert.h>

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
};
struct OrtCustomOpDomain {
    const OrtCustomOp *ops[8];
    size_t n;
};
struct OrtSessionOptions {
    OrtCustomOpDomain *domains[4];
    size_t n;
};
struct OrtShapeInferContext {
    struct OrtTensorTypeAndShapeInfo out;
};

static atomic_int statuses, infos; /* alive */
static atomic_int fail_at;         /* calls until one fails; 0: none does */

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
static OrtStatus *get_input(const OrtKernelContext *c, size_t i, const OrtValue **value) {
    CHANCE;
    *value = c->in[i];
    return NULL;
}
static OrtStatus *get_output(OrtKernelContext *c, size_t i, const int64_t *dims, size_t rank,
                             OrtValue **value) {
    CHANCE;
    assert(i == 0 && rank == 2 && dims[0] == c->out.shape.dims[0]);
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
    assert(info && type == 1);
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

typedef struct loop {
    void (*fn)(void *, size_t);
    void *arg;
    size_t total;
    atomic_size_t next;
} loop;

static void *work(void *user) {
    loop *l = user;
    for (size_t i; (i = atomic_fetch_add(&l->next, 1)) < l->total;)
        l->fn(l->arg, i);
    return NULL;
}
static OrtStatus *parallel_for(const OrtKernelContext *c, void (*fn)(void *, size_t), size_t total,
                               size_t batch, void *arg) {
    CHANCE;
    assert(batch == 0);
    loop l = {.fn = fn, .arg = arg, .total = total};
    pthread_t threads[8];
    for (size_t i = 1; i < c->threads; i++)
        assert(pthread_create(&threads[i], NULL, work, &l) == 0);
    work(&l);
    for (size_t i = 1; i < c->threads; i++)
        pthread_join(threads[i], NULL);
    return NULL;
}

static OrtApi api;

static void fill_api(void) {
#define SET(name, fn) api.slot[PK_API_##name] = (pk_function)fn
    SET(CreateStatus, make_status);
    SET(CreateCustomOpDomain, create_domain);
    SET(CustomOpDomain_Add, add_op);
    SET(ReleaseCustomOpDomain, free_domain);
    SET(AddCustomOpDomain, add_domain);
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
}

static bool too_old;
static const OrtApi *get_api(uint32_t version) {
    return version == 17 && !too_old ? &api : NULL;
}
static const OrtApiBase base = {get_api, NULL};

/* --- a kernel: out = in * weight, row by row; all of its memory is written and read back --- */

enum { ROWS = 13, COLUMNS = 7, DEVICE = 96, SCRATCH = 48 };
static const size_t device_floats = DEVICE, scratch_floats = SCRATCH;

static void start(float *device) {
    for (size_t i = 0; i < DEVICE; i++)
        device[i] = (float)i;
}

typedef struct job {
    const float *in, *weight;
    float *out, *scratch;
    size_t parts;
} job;

static void part(void *arg, size_t p) {
    job *j = arg;
    float *mine = j->scratch + p * SCRATCH;
    for (size_t row = p * ROWS / j->parts; row < (p + 1) * ROWS / j->parts; row++) {
        for (size_t i = 0; i < SCRATCH; i++)
            mine[i] = (float)(row + i);
        for (size_t c = 0; c < COLUMNS; c++)
            j->out[row * COLUMNS + c] = j->in[row * COLUMNS + c] * j->weight[c];
        for (size_t i = 0; i < SCRATCH; i++)
            assert(mine[i] == (float)(row + i));
    }
}

static void call(const float *const *in, const float *const *weight, float *const *out,
                 float *device, float *scratch, const pk_pool *pool) {
    assert(((uintptr_t)device | (uintptr_t)scratch) % 64 == 0);
    for (size_t i = 0; i < DEVICE; i++)
        assert(device[i] == (float)i);
    for (size_t i = 0; i < DEVICE; i++)
        device[i] = -1;
    job j = {in[0], weight[0], out[0], scratch, pool->parts};
    pool->run(pool->self, part, &j);
    pool->run(pool->self, part, &j);
    for (size_t i = 0; i < DEVICE; i++)
        assert(device[i] == -1);
    start(device);
}

static const int64_t dims[] = {ROWS, COLUMNS}, floats[] = {COLUMNS};
static const pk_port port[] = {{2, dims, PK_F32}};
static const pk_kernel_code for_avx512[] = {
    {"avx512", &device_floats, &scratch_floats, start, call}, {0}};
static const pk_kernel_code for_avx2[] = {{0},
                                          {"avx2", &device_floats, &scratch_floats, start, call}};
static const pk_region regions[] = {
    {"R1", 1, 1, 1, port, port, floats, NULL, for_avx512},
    {"R2", 1, 1, 1, port, port, floats, NULL, for_avx2},
};

/* --- what is expected --- */

#define OP(op, name, type) ((type)(op)->slot[PK_OP_##name])
typedef OrtStatus *(*create_fn)(const OrtCustomOp *, const OrtApi *, const OrtKernelInfo *,
                                void **);
typedef OrtStatus *(*compute_fn)(void *, OrtKernelContext *);
typedef void (*destroy_fn)(void *);
typedef OrtStatus *(*infer_fn)(const OrtCustomOp *, OrtShapeInferContext *);
typedef const char *(*name_fn)(const OrtCustomOp *);

static const OrtCustomOp *op;
static float input[ROWS * COLUMNS], weight[COLUMNS];
static OrtValue x = {{2, {ROWS, COLUMNS}}, input}, w = {{1, {COLUMNS}}, weight};

static void drop(OrtStatus *status, const char *says) {
    assert(status && strstr(status->text, says));
    free_status(status);
}

static void registers(void) {
    OrtSessionOptions a = {0}, b = {0}, none = {0};
    const bool both[] = {true, true}, avx2[] = {false, true}, neither[] = {false, false};
    assert(!pk_register_cpu(&none, &base, regions, 2, neither) && none.n == 0);
    too_old = true;
    assert(!pk_register_cpu(&none, &base, regions, 2, both) && none.n == 0);
    too_old = false;
    for (int k = 1; k <= 3; k++) { /* creating, adding twice */
        fail_at = k;
        drop(pk_register_cpu(&none, &base, regions, 2, both), "as asked for");
        assert(none.n == 0);
    }
    fail_at = 0;
    assert(!pk_register_cpu(&a, &base, regions, 2, both) && a.n == 1 && a.domains[0]->n == 2);
    assert(!pk_register_cpu(&b, &base, regions, 2, avx2) && b.n == 1);
    assert(a.domains[0] == b.domains[0]); /* once a runtime */
    op = a.domains[0]->ops[0];
    assert(strcmp(OP(op, GetName, name_fn)(op), "R1") == 0 && op->version == 17);
}

static OrtStatus *create(const OrtValue *constant, void **kernel) {
    OrtKernelInfo info = {{NULL, constant}};
    return OP(op, CreateKernelV2, create_fn)(op, &api, &info, kernel);
}

static OrtStatus *compute(void *kernel, const OrtValue *in, const OrtValue *weights, size_t threads,
                          float *out) {
    OrtKernelContext c = {{in, weights}, {{2, {ROWS, COLUMNS}}, out}, threads};
    return OP(op, KernelComputeV2, compute_fn)(kernel, &c);
}

static void right(const float *out) {
    for (size_t i = 0; i < ROWS * COLUMNS; i++)
        assert(out[i] == input[i] * weight[i % COLUMNS]);
}

static void checks_shapes(void) {
    void *kernel;
    float out[ROWS * COLUMNS], many[1000] = {0};
    OrtValue wide = {{2, {ROWS, COLUMNS + 1}}, many}, deep = {{3, {ROWS, COLUMNS, 1}}, many},
             long_w = {{1, {COLUMNS + 1}}, many}, huge = {{12, {0}}, many};
    drop(create(&long_w, &kernel), "7 elements");
    assert(!create(NULL, &kernel)); /* not constant: looked at in each call */
    drop(compute(kernel, &wide, &w, 1, out), "input 0 has the shape [13,8]");
    drop(compute(kernel, &deep, &w, 1, out), "made for [13,7]");
    drop(compute(kernel, &huge, &w, 1, out), "petopt.kernels");
    drop(compute(kernel, &x, &long_w, 1, out), "input 1");
    drop(compute(kernel, NULL, &w, 1, out), "missing");
    assert(!compute(kernel, &x, &w, 1, out));
    right(out);
    OP(op, KernelDestroy, destroy_fn)(kernel);
}

/* Each call of the runtime's fails once: a status comes back, and the next run is right. */
static void survives(void) {
    float out[ROWS * COLUMNS];
    int failures = 0;
    for (int k = 1; k < 60; k++) {
        void *kernel = NULL;
        fail_at = k;
        OrtStatus *status = create(&w, &kernel);
        if (status) {
            drop(status, "as asked for");
            failures++;
            continue;
        }
        for (int run = 0; run < 2; run++) {
            status = compute(kernel, &x, &w, 2, out);
            if (!status)
                continue;
            drop(status, "as asked for");
            failures++;
        }
        fail_at = 0;
        assert(!compute(kernel, &x, &w, 2, out));
        right(out);
        OP(op, KernelDestroy, destroy_fn)(kernel);
    }
    assert(failures > 8 && statuses == 0 && infos == 0);
    OrtShapeInferContext shapes = {0};
    assert(!OP(op, InferOutputShapeFn, infer_fn)(op, &shapes));
    assert(shapes.out.rank == 2 && shapes.out.dims[1] == COLUMNS);
    for (int k = 1; k <= 4; k++) {
        fail_at = k;
        drop(OP(op, InferOutputShapeFn, infer_fn)(op, &shapes), "as asked for");
    }
    fail_at = 0;
    assert(infos == 0);
}

typedef struct caller {
    void *kernel;
    size_t threads;
} caller;

static void *run_many(void *user) {
    caller *c = user;
    float out[ROWS * COLUMNS];
    for (int i = 0; i < 60; i++) {
        assert(!compute(c->kernel, &x, &w, c->threads, out));
        right(out);
    }
    return NULL;
}

static void many_threads(void) {
    for (size_t threads = 1; threads <= 3; threads++) {
        void *kernel;
        pthread_t callers[8];
        assert(!create(&w, &kernel));
        ((pk_kernel *)kernel)->most_parts = 4; /* whatever machine this is */
        caller c = {kernel, threads};
        for (size_t i = 0; i < 8; i++)
            assert(pthread_create(&callers[i], NULL, run_many, &c) == 0);
        for (size_t i = 0; i < 8; i++)
            pthread_join(callers[i], NULL);
        assert(((pk_kernel *)kernel)->parts <= (threads > 4 ? 4 : threads));
        OP(op, KernelDestroy, destroy_fn)(kernel);
    }
    assert(statuses == 0 && infos == 0);
}

/* Large pages change nothing that lies there, whatever lies between. */
static void keeps_weights(void) {
    const size_t n = (size_t)12 << 20, hole = (size_t)5 << 20, page = 4096;
    char *memory = mmap(NULL, 4 * n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert(memory != MAP_FAILED);
    for (size_t i = 0; i < 4 * n; i++)
        memory[i] = (char)(i * 31 % 251);
    assert(munmap(memory + hole, page) == 0 && mprotect(memory + n, page, PROT_READ) == 0);
    const uintptr_t at = (uintptr_t)memory;
    pk_range ranges[] = {{at + 2 * n + 64, at + 3 * n},
                         {at + hole + page, at + 2 * n},
                         {at + 64, at + hole - 64},
                         {at + 3 * n + 4096, at + 4 * n - 64}};
    pk_enlarge_pages(ranges, sizeof ranges / sizeof *ranges);
    for (size_t i = 0; i < 4 * n; i++)
        assert((i >= hole && i < hole + page) || memory[i] == (char)(i * 31 % 251));
    munmap(memory, 4 * n);
}

int main(void) {
    fill_api();
    for (size_t i = 0; i < ROWS * COLUMNS; i++)
        input[i] = (float)i - 20;
    for (size_t i = 0; i < COLUMNS; i++)
        weight[i] = (float)i / 4;
    registers();
    checks_shapes();
    survives();
    many_threads();
    keeps_weights();
    puts("all as expected");
    return 0;
}

/* Plays the runtime to src/codegen/delivery/shipped/petopt_ort.h: registration, kernels on many
 * threads, and every call of the runtime's failing. Built with sanitizers too. */
#include "codegen/delivery/shipped/petopt_ort.h"

#include "played.h"

/* --- a kernel: out = in * weight, row by row; all of its memory is written and read back --- */

enum { ROWS = 13, COLUMNS = 7, DEVICE = 96, SCRATCH = 48 };
static const size_t sizes = 2;

static void measure(const int64_t *given, int64_t *z) {
    (void)given;
    z[0] = DEVICE;
    z[1] = SCRATCH;
}

static void start(float *device, const int64_t *z) {
    assert(z[0] == DEVICE);
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
                 float *device, float *scratch, const int64_t *z, const pk_pool *pool) {
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
    start(device, z);
}

static const int64_t dims[] = {ROWS, COLUMNS}, floats[] = {COLUMNS};
static const pk_port port[] = {{2, dims, PK_F32}};
static const pk_kernel_code for_avx512[] = {{"avx512", &sizes, measure, start, call}, {0}};
static const pk_kernel_code for_avx2[] = {{0}, {"avx2", &sizes, measure, start, call}};
static const pk_region regions[] = {
    {"R1", 1, 1, 1, port, port, floats, NULL, for_avx512, 0, NULL, NULL, NULL},
    {"R2", 1, 1, 1, port, port, floats, NULL, for_avx2, 0, NULL, NULL, NULL},
};

/* The same of as many samples as there are: each has ROWS rows in, and a map of its own out. */
static const int64_t rows_of_all[] = {-ROWS, COLUMNS}, maps_of_all[] = {1, -1, ROWS, COLUMNS};
static const pk_port many_rows[] = {{2, rows_of_all, PK_F32}}, many_maps[] = {{4, maps_of_all, 0}};

/* --- the same, from three samples on in two parts: rows times weights, then all of them put in
 * maps; what was called is noted --- */

enum { LEAST = 3, MOST_AT_ONCE = 64 };
static size_t rests, at_once[MOST_AT_ONCE];
static const size_t rest_sizes = 3;

static void measure_rest(const int64_t *given, int64_t *z) {
    z[0] = DEVICE;
    z[1] = SCRATCH;
    z[2] = given[0];
}

static void call_rest(const float *const *in, const float *const *weights, float *const *out,
                      float *device, float *scratch, const int64_t *z, const pk_pool *pool) {
    (void)scratch, (void)pool;
    assert(weights[0][1] == 0.25f && device[1] == 1 && rests < MOST_AT_ONCE);
    at_once[rests++] = (size_t)z[2];
    for (int64_t i = 0; i < z[2] * ROWS * COLUMNS; i++)
        out[0][i] = in[0][i];
}

static int rest_lengths(const int64_t *given, int64_t *to) {
    const int64_t all[] = {given[0], ROWS, COLUMNS}, maps[] = {1, given[0], ROWS, COLUMNS};
    if (to) {
        memcpy(to, all, sizeof all);
        memcpy(to + PK_MAX_RANK, maps, sizeof maps);
    }
    return given[0] >= LEAST;
}

static const int64_t between_dims[] = {-1, ROWS, COLUMNS};
static const pk_port between[] = {{3, between_dims, PK_F32}};
static const pk_kernel_code rest_code[] = {{"avx512", &rest_sizes, measure_rest, start, call_rest},
                                           {0}};
static const pk_given of_between[] = {{0, 0, 1}};
static const pk_region head = {"R4_head", 1,          1, 1,    many_rows, between, floats,
                               NULL,      for_avx512, 0, NULL, NULL,      NULL},
                       rest = {"R4_rest", 1,         1, 1,          between,      many_maps, floats,
                               NULL,      rest_code, 1, of_between, rest_lengths, NULL};
static const size_t first_input[] = {0}, made_by_head[] = {1};
static const pk_batched in_parts = {{&head, first_input}, {&rest, made_by_head}};
static const pk_region open_regions[] = {
    {"R3", 1, 1, 1, many_rows, many_maps, floats, NULL, for_avx512, 0, NULL, NULL, NULL},
    {"R4", 1, 1, 1, many_rows, many_maps, floats, NULL, for_avx512, 0, NULL, NULL, &in_parts},
};

/* --- what is expected --- */

static const OrtCustomOp *op;
static float input[ROWS * COLUMNS], weight[COLUMNS];
static OrtValue x = {{2, {ROWS, COLUMNS}}, input}, w = {{1, {COLUMNS}}, weight};

/* The session's entry narrows what the processor has, for that session. */
static void names_isas(const OrtCustomOpDomain *avx2_alone) {
    OrtSessionOptions named = {.isa = "avx2"}, first = {.isa = "avx512"}, off = {.isa = "none"},
                      wrong = {.isa = "sse2"}, far_too_long = {.isa = "avx512, and then some"};
    bool all[] = {true, true}, one[] = {false, true};
    fail_at = 2;
    drop(pk_register_cpu(&named, &base, regions, 2, all), "as asked for");
    fail_at = 0;
    assert(!pk_register_cpu(&named, &base, regions, 2, all) && named.domains[0] == avx2_alone);
    assert(!pk_register_cpu(&first, &base, regions, 2, one) && first.n == 0);
    assert(!pk_register_cpu(&off, &base, regions, 2, (bool[]){true, true}) && off.n == 0);
    drop(pk_register_cpu(&wrong, &base, regions, 2, (bool[]){true, true}), "petopt.isa");
    drop(pk_register_cpu(&far_too_long, &base, regions, 2, (bool[]){true, true}), "too long");
}

static void registers(void) {
    OrtSessionOptions a = {0}, b = {0}, none = {0};
    bool both[] = {true, true}, avx2[] = {false, true}, neither[] = {false, false};
    assert(!pk_register_cpu(&none, &base, regions, 2, neither) && none.n == 0);
    too_old = true;
    assert(!pk_register_cpu(&none, &base, regions, 2, both) && none.n == 0);
    too_old = false;
    for (int k = 1; k <= 4; k++) { /* the entry, creating, adding twice */
        fail_at = k;
        drop(pk_register_cpu(&none, &base, regions, 2, both), "as asked for");
        assert(none.n == 0);
    }
    fail_at = 0;
    assert(!pk_register_cpu(&a, &base, regions, 2, both) && a.n == 1 && a.domains[0]->n == 2);
    assert(!pk_register_cpu(&b, &base, regions, 2, both) && b.n == 1);
    assert(a.domains[0] == b.domains[0]); /* once a runtime */
    assert(!pk_register_cpu(&b, &base, regions, 2, avx2) && b.n == 2);
    assert(a.domains[0] != b.domains[1] && b.domains[1]->n == 1); /* and choice */
    names_isas(b.domains[1]);
    op = a.domains[0]->ops[0];
    assert(strcmp(OP(op, GetName, name_fn)(op), "R1") == 0 && op->version == 17);
}

static OrtStatus *create(const OrtValue *constant, void **kernel) {
    OrtKernelInfo info = {{NULL, constant}};
    return OP(op, CreateKernelV2, create_fn)(op, &api, &info, kernel);
}

static OrtStatus *compute(void *kernel, const OrtValue *in, const OrtValue *weights, size_t threads,
                          float *out) {
    OrtKernelContext c = {{in, weights}, {{2, {ROWS, COLUMNS}}, out}, threads, NULL};
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

enum { MOST = 20 };
static float in_of_all[MOST * ROWS * COLUMNS], out_of_all[MOST * ROWS * COLUMNS + 1];

/* A call with so many samples, on so many threads. */
static void right_batch(const OrtCustomOp *any, void *kernel, size_t n, size_t threads) {
    OrtValue x_of_all = {{2, {(int64_t)n * ROWS, COLUMNS}}, in_of_all};
    OrtKernelContext c = {
        {&x_of_all, &w}, {{4, {1, (int64_t)n, ROWS, COLUMNS}}, out_of_all}, threads, NULL};
    for (size_t i = 0; i <= MOST * ROWS * COLUMNS; i++)
        out_of_all[i] = -1;
    assert(!OP(any, KernelComputeV2, compute_fn)(kernel, &c));
    for (size_t i = 0; i < n * ROWS * COLUMNS; i++)
        assert(out_of_all[i] == in_of_all[i] * weight[i % COLUMNS]);
    for (size_t i = n * ROWS * COLUMNS; i <= MOST * ROWS * COLUMNS; i++)
        assert(out_of_all[i] == -1);
}

static const OrtCustomOp *created(size_t region, void **kernel) {
    OrtSessionOptions options = {0};
    OrtKernelInfo info = {{NULL, &w}};
    /* one choice, one registration: that of the other regions is for both codes */
    bool one[] = {true, false};
    assert(!pk_register_cpu(&options, &base, open_regions, 2, one));
    const OrtCustomOp *any = options.domains[0]->ops[region];
    assert(!OP(any, CreateKernelV2, create_fn)(any, &api, &info, kernel));
    ((pk_kernel *)*kernel)->most_parts = 4; /* whatever machine this is */
    return any;
}

/* A kernel of one sample is called for each, whatever their number. */
static void takes_any_batch(void) {
    void *kernel;
    const OrtCustomOp *any = created(0, &kernel);
    OrtShapeInferContext shapes = {0};
    assert(!OP(any, InferOutputShapeFn, infer_fn)(any, &shapes) && shapes.out.rank == 0);
    for (size_t turn = 0; turn < 120; turn++)
        right_batch(any, kernel, turn % 6, turn < 12 ? 1 : turn < 60 ? 2 : 3);
    assert(((pk_kernel *)kernel)->parts == 3); /* samples were dealt out */
    OrtValue half = {{2, {ROWS + 1, COLUMNS}}, in_of_all},
             wide = {{2, {ROWS, COLUMNS + 1}}, in_of_all};
    OrtKernelContext c = {{&half, &w}, {{4, {1, 1, ROWS, COLUMNS}}, out_of_all}, 1, NULL};
    drop(OP(any, KernelComputeV2, compute_fn)(kernel, &c), "made for [13 N,7]");
    c = (OrtKernelContext){{&wide, &w}, {{4, {1, 1, ROWS, COLUMNS}}, out_of_all}, 1, NULL};
    drop(OP(any, KernelComputeV2, compute_fn)(kernel, &c), "has the shape [13,8]");
    OP(any, KernelDestroy, destroy_fn)(kernel);
}

/* From three samples on in groups of eight at most, all of one size; what is left over one by one.
 */
static void takes_groups(void) {
    static const size_t groups[MOST + 1] = {[3] = 1, 1, 1, 1, 1, 1, 2, 2, 2,
                                            2,       2, 2, 2, 2, 3, 3, 3, 3};
    void *kernel;
    const OrtCustomOp *any = created(1, &kernel);
    for (size_t threads = 1; threads <= 3; threads++)
        for (size_t n = 0; n <= MOST; n++) {
            rests = 0;
            right_batch(any, kernel, n, threads);
            assert(rests == groups[n]);
            for (size_t i = 0; i < rests; i++)
                assert(at_once[i] == n / groups[n]);
        }
    OP(any, KernelDestroy, destroy_fn)(kernel);
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
        assert(((pk_kernel *)kernel)->parts == threads);
        OP(op, KernelDestroy, destroy_fn)(kernel);
    }
    assert(statuses == 0 && infos == 0);
}

/* A session that starts while others have the processors finds its threads once they are there. */
static void starts_busy(void) {
    enum { WHILE_BUSY = 100, SOON = 64 };
    for (size_t threads = 1; threads <= 6; threads++) {
        void *kernel;
        float out[ROWS * COLUMNS];
        assert(!create(&w, &kernel));
        pk_kernel *k = kernel;
        k->most_parts = 5;
        busy = true;
        for (int i = 0; i < WHILE_BUSY; i++) {
            assert(!compute(kernel, &x, &w, threads, out));
            right(out);
            assert(k->parts == 1);
        }
        busy = false;
        for (int i = 0; i < SOON; i++) {
            assert(!compute(kernel, &x, &w, threads, out));
            right(out);
        }
        assert(k->parts == (threads < 5 ? threads : 5));
        OP(op, KernelDestroy, destroy_fn)(kernel);
    }
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
    fill_api(PK_ORT_API);
    for (size_t i = 0; i < ROWS * COLUMNS; i++)
        input[i] = (float)i - 20;
    for (size_t i = 0; i < COLUMNS; i++)
        weight[i] = (float)i / 4;
    for (size_t i = 0; i < MOST * ROWS * COLUMNS; i++)
        in_of_all[i] = (float)i;
    registers();
    checks_shapes();
    takes_any_batch();
    takes_groups();
    survives();
    many_threads();
    starts_busy();
    keeps_weights();
    puts("all as expected");
    return 0;
}

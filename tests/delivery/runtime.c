/* Plays the runtime and the driver to src/codegen/delivery/shipped/petopt_ort_cuda.h: registration,
 * streams, contexts, calls from many threads, and each call of the runtime's and of the driver's
 * failing. Built with sanitizers too. */
static void *played_open(const char *name, int mode);
static void *played_symbol(void *library, const char *name);
#define dlopen played_open
#define dlsym  played_symbol
#include "codegen/delivery/shipped/petopt_ort_cuda.h"

#include "kernels/played.h"

/* --- the driver --- */

enum { CONTEXTS = 2, LAUNCHES = 2 };
typedef struct context {
    int modules;
} context;
typedef struct stream {
    context *of;
} stream;
typedef struct module {
    context *of;
} module;
typedef struct function {
    char name[16];
} function;

static context contexts[CONTEXTS];
static module *last; /* that was loaded */
static _Thread_local context *stack[8];
static _Thread_local int depth; /* of the stack: what is current is its top */
static atomic_int retained, loads;
static int devices = 1, arch = 80, version = 12040;
static bool no_driver, no_symbol;
static function functions[LAUNCHES] = {{"K_0"}, {"K_1"}};

static int cu_chance(void) {
    int left = atomic_load(&fail_at);
    return left > 0 && atomic_fetch_sub(&fail_at, 1) == 1 ? 700 : 0;
}
#define CU_CHANCE                                                                                  \
    do {                                                                                           \
        if (cu_chance())                                                                           \
            return 700;                                                                            \
    } while (0)

static int init(unsigned flags) {
    return flags != 0;
}
static int count(int *n) {
    *n = devices;
    return 0;
}
static int get_version(int *v) {
    *v = version;
    return 0;
}
static int get_device(int *device, int i) {
    *device = i;
    return i >= devices;
}
static int attribute(int *value, int what, int device) {
    CU_CHANCE;
    assert(device < devices && (what == 75 || what == 76));
    *value = what == 75 ? arch / 10 : arch % 10;
    return 0;
}
static int current(void **c) {
    CU_CHANCE;
    *c = depth ? stack[depth - 1] : NULL;
    return 0;
}
static int current_device(int *device) {
    CU_CHANCE;
    assert(depth > 0);
    *device = 0;
    return 0;
}
static int push(void *c) {
    CU_CHANCE;
    assert(c && depth < 8);
    stack[depth++] = c;
    return 0;
}
static int pop(void **c) {
    assert(depth > 0);
    *c = stack[--depth];
    return 0;
}
static int retain(void **c, int device) {
    CU_CHANCE;
    assert(device == 0);
    *c = &contexts[0];
    retained++;
    return 0;
}
static int release(int device) {
    retained--;
    return device;
}
static int context_of(void *s, void **c) {
    CU_CHANCE;
    *c = ((stream *)s)->of;
    return 0;
}
static int load(void **m, const void *image) {
    CU_CHANCE;
    assert(depth > 0 && strcmp(image, "machine code") == 0);
    module *made = calloc(1, sizeof *made);
    made->of = stack[depth - 1];
    made->of->modules++;
    loads++;
    *m = last = made;
    return 0;
}
static int unload(void *m) {
    module *mod = m;
    assert(depth > 0 && mod->of == stack[depth - 1]);
    mod->of->modules--;
    free(mod);
    return 0;
}
static void unload_last(void) {
    last->of->modules--;
    free(last);
}
static int get_function(void **f, void *m, const char *name) {
    CU_CHANCE;
    assert(m);
    for (int i = 0; i < LAUNCHES; i++)
        if (strcmp(functions[i].name, name) == 0)
            *f = &functions[i];
    assert(*f);
    return 0;
}
static int set_attribute(void *f, int what, int value) {
    CU_CHANCE;
    assert(f == &functions[1] && what == 8 && value == 60000);
    return 0;
}

enum { ROWS = 5, COLUMNS = 6, PLACE = 256 };

/* K_0: what is between = in * weight; K_1: out = what is between + 1. */
static int launch(void *f, unsigned x, unsigned y, unsigned z, unsigned tx, unsigned ty,
                  unsigned tz, unsigned shared, void *s, void **params, void **extra) {
    CU_CHANCE;
    assert(depth > 0 && (!s || ((stream *)s)->of == stack[depth - 1]) && !extra);
    assert(x == ROWS && y == 2 && z == 1 && tx == 64 && ty == 1 && tz == 1);
    assert(shared == (f == &functions[1] ? 60000 : 0));
    const float *a = *(float **)params[0], *b = *(float **)params[1];
    float *to = f == &functions[0] ? *(float **)params[2] : *(float **)params[1];
    float *place = f == &functions[0] ? to : (float *)(uintptr_t)a;
    assert((uintptr_t)place % 256 == PLACE % 256);
    for (int i = 0; i < ROWS * COLUMNS; i++)
        to[i] = f == &functions[0] ? a[i] * b[i % COLUMNS] : a[i] + 1;
    return 0;
}
static int error_string(int code, const char **text) {
    *text = code == 700 ? "an illegal address" : NULL;
    return *text == NULL;
}

static void *played_open(const char *name, int mode) {
    assert(strcmp(name, "libcuda.so.1") == 0 && mode != 0);
    return no_driver ? NULL : functions;
}

static void *played_symbol(void *library, const char *name) {
    static const struct {
        const char *name;
        pk_function function;
    } rows[] = {{"cuInit", (pk_function)init},
                {"cuDeviceGetCount", (pk_function)count},
                {"cuDriverGetVersion", (pk_function)get_version},
                {"cuDeviceGet", (pk_function)get_device},
                {"cuDeviceGetAttribute", (pk_function)attribute},
                {"cuCtxGetCurrent", (pk_function)current},
                {"cuCtxGetDevice", (pk_function)current_device},
                {"cuCtxPushCurrent_v2", (pk_function)push},
                {"cuCtxPopCurrent_v2", (pk_function)pop},
                {"cuDevicePrimaryCtxRetain", (pk_function)retain},
                {"cuDevicePrimaryCtxRelease_v2", (pk_function)release},
                {"cuStreamGetCtx", (pk_function)context_of},
                {"cuModuleLoadData", (pk_function)load},
                {"cuModuleUnload", (pk_function)unload},
                {"cuModuleGetFunction", (pk_function)get_function},
                {"cuFuncSetAttribute", (pk_function)set_attribute},
                {"cuLaunchKernel", (pk_function)launch},
                {"cuGetErrorString", (pk_function)error_string}};
    void *found = NULL;
    assert(library == functions);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (strcmp(rows[i].name, name) == 0)
            memcpy(&found, &rows[i].function, sizeof found);
    assert(found);
    return no_symbol && strcmp(name, "cuStreamGetCtx") == 0 ? NULL : found;
}

/* --- a region --- */

static const char code[] = "machine code";
static const pk_image images[] = {{80, 0, code, sizeof code}, {90, 0, code, sizeof code}};
static const pk_arg args[] = {{PK_ARG_INPUT, 0, 0},
                              {PK_ARG_WEIGHT, 0, 0},
                              {PK_ARG_DEVICE, 0, PLACE},
                              {PK_ARG_DEVICE, 0, PLACE},
                              {PK_ARG_OUTPUT, 0, 0}};
static const pk_launch launches[] = {{"K_0", {ROWS, 2, 1}, 64, 0, 3, args},
                                     {"K_1", {ROWS, 2, 1}, 64, 60000, 2, args + 3}};
static const pk_program program = {
    2, images, LAUNCHES, launches, PLACE + ROWS *COLUMNS * sizeof(float), 12080};
static const int64_t dims[] = {ROWS, COLUMNS}, elements[] = {COLUMNS};
static const pk_port port[] = {{2, dims, PK_F32}};
static const int types[] = {PK_F32};
const pk_region pk_regions[] = {
    {"R", 1, 1, 1, port, port, elements, types, &program, 0, NULL, NULL, NULL}};
const size_t pk_n_regions = 1;

/* --- what is expected --- */

static const OrtCustomOp *op;
static _Alignas(64) float input[ROWS * COLUMNS], weight[COLUMNS];
static OrtValue x = {{2, {ROWS, COLUMNS}}, input}, w = {{1, {COLUMNS}}, weight};

/* A process would look for the driver once: here each question has its own. */
static char why[PK_WHY];
static bool fits(void) {
    pk_driver driver;
    return pk_driver_open(&driver) && pk_program_fits(&driver, &program, why);
}

static void finds_devices(void) {
    static const struct {
        int arch;
        unsigned image;
    } rows[] = {{80, 80}, {86, 80}, {89, 80}, {90, 90}, {75, 0}, {100, 0}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const pk_image *image = pk_image_for(&program, (unsigned)rows[i].arch, version);
        arch = rows[i].arch;
        assert((image ? image->arch : 0) == rows[i].image && fits() == (rows[i].image != 0));
    }
    const pk_image later[] = {{80, 0, code, 1}, {90, 1, code, 1}, {80, 1, code, 1}};
    const pk_program forward = {3, later, 0, NULL, 0, 13010};
    assert(pk_image_for(&forward, 120, 13010) == &later[1] && !pk_image_for(&forward, 120, 13000));
    assert(pk_image_for(&forward, 86, 13000) == &later[0] && !pk_image_for(&forward, 86, 12090));
    assert(strcmp(why, "no machine code for a GPU of compute capability 10.0") == 0);
    arch = 80;
    version = 11080;
    assert(!fits());
    assert(strcmp(why, "the kernels need a driver for CUDA 12.8, and this one is for CUDA 11.8") ==
           0);
    version = 12040;
    devices = 0;
    assert(!fits());
    devices = 1;
    no_symbol = true;
    assert(!fits());
    no_symbol = false;
}

static void registers(void) {
    OrtSessionOptions options = {0}, again = {0}, none = {0};
    too_old = true;
    assert(!pk_register_cuda(&none, &base) && none.n == 0);
    too_old = false;
    for (int k = 3; k <= 6; k += 3) { /* the domain, the operator; between them it looks again */
        fail_at = k;
        drop(pk_register_cuda(&none, &base), "as asked for");
        assert(none.n == 0);
    }
    fail_at = 0;
    assert(!pk_register_cuda(&options, &base) && options.n == 1 && options.domains[0]->n == 1);
    assert(!pk_register_cuda(&again, &base) && again.domains[0] == options.domains[0]);
    op = options.domains[0]->ops[0];
    assert(strcmp(OP(op, GetName, name_fn)(op), "R") == 0 && op->version == 17);
    assert(strcmp(OP(op, GetExecutionProviderType, name_fn)(op), "CUDAExecutionProvider") == 0);
}

static OrtStatus *create(const OrtValue *constant, void **kernel) {
    OrtKernelInfo info = {{NULL, constant}};
    return OP(op, CreateKernelV2, create_fn)(op, &api, &info, kernel);
}

static OrtStatus *compute(void *kernel, const OrtValue *in, stream *s, float *out) {
    OrtKernelContext c = {{in, &w}, {{2, {ROWS, COLUMNS}}, out}, 1, s};
    return OP(op, KernelComputeV2, compute_fn)(kernel, &c);
}

static void right(const float *out) {
    for (size_t i = 0; i < ROWS * COLUMNS; i++)
        assert(out[i] == input[i] * weight[i % COLUMNS] + 1);
}

static void checks(void) {
    void *kernel;
    _Alignas(64) float out[ROWS * COLUMNS], many[100] = {0};
    OrtValue wide = {{2, {ROWS, COLUMNS + 1}}, many}, long_w = {{1, {COLUMNS + 1}}, many},
             crooked = {{2, {ROWS, COLUMNS}}, many + 1};
    drop(create(&long_w, &kernel), "6 elements");
    assert(!create(&w, &kernel));
    drop(compute(kernel, &wide, NULL, out), "input 0 has the shape [5,7]");
    drop(compute(kernel, &crooked, NULL, out), "aligned to 16 bytes");
    drop(compute(kernel, NULL, NULL, out), "missing");
    assert(!compute(kernel, &x, NULL, out));
    right(out);
    OP(op, KernelDestroy, destroy_fn)(kernel);
    assert(retained == 0 && blocks == 0 && allocator.open == 0 && contexts[0].modules == 0);
}

/* Machine code is loaded once in each context, memory made once for each stream. */
static void keeps_apart(void) {
    void *kernel;
    _Alignas(64) float out[ROWS * COLUMNS];
    stream streams[3] = {{&contexts[0]}, {&contexts[1]}, {&contexts[1]}};
    int before = loads;
    assert(!create(&w, &kernel));
    for (int turn = 0; turn < 3; turn++)
        for (int i = 0; i < 3; i++) {
            assert(!compute(kernel, &x, &streams[i], out));
            right(out);
        }
    assert(loads == before + 2 && blocks == 3 && retained == 0 && depth == 0);
    assert(contexts[0].modules == 1 && contexts[1].modules == 1);
    OP(op, KernelDestroy, destroy_fn)(kernel);
    assert(blocks == 0 && contexts[0].modules == 0 && contexts[1].modules == 0);
}

/* Each call of the runtime's and of the driver's fails once: a status comes back that says so, and
 * the next run is right. */
static void survives(void) {
    _Alignas(64) float out[ROWS * COLUMNS];
    stream s = {&contexts[1]};
    int failures = 0;
    for (int k = 1; k < 60; k++) {
        void *kernel = NULL;
        fail_at = k;
        OrtStatus *status = create(&w, &kernel);
        for (int run = 0; run < 2 && !status; run++) {
            status = compute(kernel, &x, run ? &s : NULL, out);
            assert(depth == 0);
        }
        if (status) {
            assert(strstr(status->text, "as asked for") ||
                   strstr(status->text, "illegal address") ||
                   strstr(status->text, "no machine code"));
            free_status(status);
            failures++;
        }
        fail_at = 0;
        if (!kernel)
            continue;
        assert(!compute(kernel, &x, &s, out) && !compute(kernel, &x, NULL, out));
        right(out);
        OP(op, KernelDestroy, destroy_fn)(kernel);
        assert(blocks == 0 && retained == 0 && allocator.open == 0);
        assert(contexts[0].modules == 0 && contexts[1].modules == 0);
    }
    assert(failures > 25 && statuses == 0 && infos == 0);
}

/* The memory that could not be given back, and a context that could not be entered to the end. */
static void ends_badly(void) {
    _Alignas(64) float out[ROWS * COLUMNS];
    for (int k = 1; k <= 2; k++) {
        void *kernel;
        assert(!create(&w, &kernel) && !compute(kernel, &x, NULL, out));
        fail_at = k;
        OP(op, KernelDestroy, destroy_fn)(kernel);
        fail_at = 0;
        assert(statuses == 0 && blocks == 0 && contexts[0].modules == (k == 2));
        if (contexts[0].modules) /* it goes with its context */
            unload_last();
    }
}

static void *run_many(void *kernel) {
    _Alignas(64) float out[ROWS * COLUMNS];
    for (int i = 0; i < 200; i++) {
        assert(!compute(kernel, &x, NULL, out));
        right(out);
    }
    return NULL;
}

static void many_threads(void) {
    void *kernel;
    pthread_t callers[8];
    assert(!create(&w, &kernel));
    for (size_t i = 0; i < 8; i++)
        assert(pthread_create(&callers[i], NULL, run_many, kernel) == 0);
    for (size_t i = 0; i < 8; i++)
        pthread_join(callers[i], NULL);
    OP(op, KernelDestroy, destroy_fn)(kernel);
    assert(statuses == 0 && infos == 0 && blocks == 0);
}

int main(void) {
    fill_api(PK_ORT_CUDA_API);
    for (size_t i = 0; i < ROWS * COLUMNS; i++)
        input[i] = (float)i - 20;
    for (size_t i = 0; i < COLUMNS; i++)
        weight[i] = (float)i / 4;
    no_driver = true;
    assert(!fits());
    no_driver = false;
    finds_devices();
    registers();
    checks();
    keeps_apart();
    survives();
    many_threads();
    ends_badly();
    puts("all as expected");
    return 0;
}

/* Opens the driver, cuBLASLt and cuDNN by tables of their functions, refuses versions and GPUs that
 * are too old, and describes the GPU. Device memory goes with its arena. */
#include "cost/cuda/cuda.h"

#include "cost/isolate.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    LOOK_SECONDS = 120,
    OLDEST_DRIVER = 12000,
    OLDEST_CUBLAS = 120000,
    OLDEST_CUDNN = 90000,
    OLDEST_ARCH = 80
};

/* Where the toolkit puts its libraries, for systems whose loader is not told of it. */
static const char *const toolkit = "/usr/local/cuda/lib64";

/* --- doors --- */

typedef struct row {
    const char *name;
    size_t at; /* in the table */
} row;

#define ROW_OF(table, name) {#name, offsetof(table, name)},
static const row cu_rows[] = {
#define PO_CU_ROW(returns, name, parameters, arguments) ROW_OF(po_cu, name)
#include "cost/cuda/api.def"
};
static const row lt_rows[] = {
#define PO_LT_ROW(returns, name, parameters, arguments) ROW_OF(po_lt, name)
#include "cost/cuda/api.def"
};
static const row dnn_rows[] = {
#define PO_DNN_ROW(returns, name, parameters, arguments) ROW_OF(po_dnn, name)
#include "cost/cuda/api.def"
};

/* A library: its file's names, newest first, and what it is for people. */
typedef struct door {
    const char *what, *names[2];
    const row *rows;
    size_t n_rows;
} door;

#define COUNT(rows) (sizeof(rows) / sizeof(rows)[0])
static const door doors[] = {
    {"the NVIDIA driver", {"libcuda.so.1", NULL}, cu_rows, COUNT(cu_rows)},
    {"cuBLAS", {"libcublasLt.so.13", "libcublasLt.so.12"}, lt_rows, COUNT(lt_rows)},
    {"cuDNN", {"libcudnn.so.9", NULL}, dnn_rows, COUNT(dnn_rows)},
};
enum { DRIVER, CUBLAS, CUDNN };

/* Why a file that is there did not open is kept in `why`. */
static void *open_file(po_arena *arena, const char *folder, const char *name, const char **why) {
    const char *path = folder ? po_arena_printf(arena, "%s/%s", folder, name) : name;
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!handle && folder && access(path, F_OK) == 0)
        *why = po_arena_strdup(arena, dlerror());
    return handle;
}

static po_status open_door(po_ctx *ctx, const po_cuda *cuda, uint32_t which, void *table) {
    const door *d = &doors[which];
    const po_cuda_options *o = cuda->options;
    const char *const places[] = {o->folder, NULL, toolkit};
    const char *why = NULL;
    void *handle = NULL;
    /* Libraries of a later CUDA than the driver's do not start. */
    size_t newest = d->names[1] && strtol(cuda->info.driver, NULL, 10) < 13 ? 1 : 0;
    for (size_t p = o->folder ? 0 : 1; p < COUNT(places) && !handle && !(p > 0 && o->alone); p++)
        for (size_t i = 0; i < COUNT(d->names) && d->names[i] && !handle; i++)
            handle = open_file(cuda->arena, places[p], d->names[i ^ newest], &why);
    if (!handle && why)
        return po_fail(ctx, PO_RUNTIME, "%s could not be opened: %s", d->what, why);
    if (!handle)
        return po_fail(ctx, PO_RUNTIME, "%s was not found (%s)", d->what, d->names[0]);
    for (size_t i = 0; i < d->n_rows; i++) {
        void *symbol = dlsym(handle, d->rows[i].name);
        if (!symbol)
            return po_fail(ctx, PO_RUNTIME, "%s is too old, or none: it has no %s", d->what,
                           d->rows[i].name);
        memcpy((char *)table + d->rows[i].at, &symbol, sizeof symbol);
    }
    return PO_OK;
}

/* --- the driver --- */

po_status po_cuda_check(po_ctx *ctx, const po_cuda *cuda, int result, const char *what) {
    if (result == PO_CU_SUCCESS)
        return PO_OK;
    const char *text = NULL;
    if (cuda->cu->cuGetErrorString(result, &text) != PO_CU_SUCCESS || !text)
        text = "an error without a name";
    return po_fail(ctx, PO_RUNTIME, "%s, %s: %s (CUDA error %d)",
                   cuda->info.name[0] ? cuda->info.name : "the NVIDIA driver", what, text, result);
}

static po_status read_info(po_ctx *ctx, po_cuda *cuda, int device) {
    static const char *const what = "asking what it is";
    po_cuda_info *info = &cuda->info;
    size_t memory = 0;
    int major = 0, minor = 0, clock = 0, sms = 0, l2 = 0, block = 0, sm = 0, registers = 0;
    const struct {
        int attribute, *value;
    } asked[] = {
        {PO_CU_MAJOR, &major},
        {PO_CU_MINOR, &minor},
        {PO_CU_CLOCK_RATE, &clock},
        {PO_CU_SMS, &sms},
        {PO_CU_L2, &l2},
        {PO_CU_SHARED_BLOCK, &block},
        {PO_CU_SHARED_SM, &sm},
        {PO_CU_REGISTERS_SM, &registers},
    };
    CU_TRY(ctx, cuda, what, cuDeviceGetName(info->name, (int)sizeof info->name - 1, device));
    CU_TRY(ctx, cuda, what, cuDeviceTotalMem_v2(&memory, device));
    for (size_t i = 0; i < COUNT(asked); i++)
        CU_TRY(ctx, cuda, what, cuDeviceGetAttribute(asked[i].value, asked[i].attribute, device));
    info->arch = (uint32_t)(10 * major + minor);
    info->sms = (uint32_t)sms;
    info->memory = (int64_t)memory;
    info->shared_block = block;
    info->shared_sm = sm;
    info->l2 = l2;
    info->registers = registers;
    info->clock = 1e3 * clock;
    info->has_gpu = true;
    return PO_OK;
}

static po_status start(po_ctx *ctx, po_cuda *cuda) {
    int version = 0, n = 0, device = 0;
    void *context = NULL;
    CU_TRY(ctx, cuda, "asking its version", cuDriverGetVersion(&version));
    if (version < OLDEST_DRIVER)
        return po_fail(ctx, PO_RUNTIME,
                       "the NVIDIA driver is too old: it is for CUDA %d.%d, and 12.0 is needed",
                       version / 1000, version % 1000 / 10);
    snprintf(cuda->info.driver, sizeof cuda->info.driver, "%d.%d", version / 1000,
             version % 1000 / 10);
    int result = cuda->cu->cuInit(0);
    if (result == PO_CU_NO_DEVICE)
        return po_fail(ctx, PO_RUNTIME, "the NVIDIA driver sees no GPU");
    PO_TRY(po_cuda_check(ctx, cuda, result, "starting"));
    CU_TRY(ctx, cuda, "counting GPUs", cuDeviceGetCount(&n));
    if (n == 0)
        return po_fail(ctx, PO_RUNTIME, "the NVIDIA driver sees no GPU");
    if (cuda->options->device >= (uint32_t)n)
        return po_fail(ctx, PO_RUNTIME, "there is no GPU %u: the NVIDIA driver sees %d",
                       cuda->options->device, n);
    CU_TRY(ctx, cuda, "choosing a GPU", cuDeviceGet(&device, (int)cuda->options->device));
    PO_TRY(read_info(ctx, cuda, device));
    if (cuda->info.arch < OLDEST_ARCH)
        return po_fail(ctx, PO_RUNTIME,
                       "%s has compute capability %u.%u, and kernels need %d.%d or later",
                       cuda->info.name, cuda->info.arch / 10, cuda->info.arch % 10,
                       OLDEST_ARCH / 10, OLDEST_ARCH % 10);
    CU_TRY(ctx, cuda, "opening it", cuDevicePrimaryCtxRetain(&context, device));
    CU_TRY(ctx, cuda, "opening it", cuCtxSetCurrent(context));
    CU_TRY(ctx, cuda, "making a stream", cuStreamCreate(&cuda->stream, PO_CU_STREAM_NON_BLOCKING));
    return PO_OK;
}

po_status po_cuda_open(po_ctx *ctx, po_arena *arena, const po_cuda_options *options,
                       po_cuda **out) {
    po_cuda *cuda = PO_NEW(arena, po_cuda);
    cuda->options = options;
    cuda->arena = arena;
    po_cu *cu = PO_NEW(arena, po_cu);
    PO_TRY(open_door(ctx, cuda, DRIVER, cu));
    cuda->cu = cu;
    PO_TRY(start(ctx, cuda));
    *out = cuda;
    return PO_OK;
}

/* --- cuBLAS and cuDNN --- */

po_status po_cuda_need_cublas(po_ctx *ctx, po_cuda *cuda) {
    if (cuda->lt_handle)
        return PO_OK;
    po_lt *lt = PO_NEW(cuda->arena, po_lt);
    PO_TRY(open_door(ctx, cuda, CUBLAS, lt));
    size_t v = lt->cublasLtGetVersion();
    unsigned major = (unsigned)(v / 10000), minor = (unsigned)(v / 100 % 100);
    if (v < OLDEST_CUBLAS)
        return po_fail(ctx, PO_RUNTIME, "cuBLAS %u.%u is too old: 12.0 is needed", major, minor);
    snprintf(cuda->info.cublas, sizeof cuda->info.cublas, "%u.%u.%u", major % 1000U, minor,
             (unsigned)(v % 100));
    int result = lt->cublasLtCreate(&cuda->lt_handle);
    if (result != 0 || !cuda->lt_handle)
        return po_fail(ctx, PO_RUNTIME, "cuBLAS %s does not start: %s", cuda->info.cublas,
                       lt->cublasLtGetStatusString(result));
    cuda->lt = lt;
    return PO_OK;
}

po_status po_cuda_need_cudnn(po_ctx *ctx, po_cuda *cuda) {
    if (cuda->dnn_handle)
        return PO_OK;
    po_dnn *dnn = PO_NEW(cuda->arena, po_dnn);
    PO_TRY(open_door(ctx, cuda, CUDNN, dnn));
    size_t v = dnn->cudnnGetVersion();
    if (v < OLDEST_CUDNN) /* before 9 a version was 1000 times the major number */
        return po_fail(ctx, PO_RUNTIME, "cuDNN %u is too old: 9 is needed", (unsigned)(v / 1000));
    snprintf(cuda->info.cudnn, sizeof cuda->info.cudnn, "%u.%u.%u", (unsigned)(v / 10000) % 1000U,
             (unsigned)(v / 100 % 100), (unsigned)(v % 100));
    int result = dnn->cudnnCreate(&cuda->dnn_handle);
    if (result == 0)
        result = dnn->cudnnSetStream(cuda->dnn_handle, cuda->stream);
    if (result != 0)
        return po_fail(ctx, PO_RUNTIME, "cuDNN %s does not start: %s", cuda->info.cudnn,
                       dnn->cudnnGetErrorString(result));
    cuda->dnn = dnn;
    return PO_OK;
}

/* --- memory --- */

typedef struct held {
    const po_cu *cu;
    uint64_t memory;
} held;

static void give_back(void *user) {
    const held *h = user;
    h->cu->cuMemFree_v2(h->memory);
}

po_status po_cuda_alloc(po_ctx *ctx, po_cuda *cuda, po_arena *arena, int64_t bytes,
                        uint64_t *memory) {
    if (bytes < 0)
        return po_fail(ctx, PO_BAD_USE, "%lld bytes of GPU memory", (long long)bytes);
    if (bytes > cuda->info.memory)
        return po_fail(ctx, PO_UNSUPPORTED, "%s has no %.1f GB of memory (%.1f in all)",
                       cuda->info.name, (double)bytes / 1e9, (double)cuda->info.memory / 1e9);
    held *h = PO_NEW(arena, held);
    h->cu = cuda->cu;
    int result = cuda->cu->cuMemAlloc_v2(&h->memory, bytes > 0 ? (size_t)bytes : 1);
    if (result == PO_CU_NO_MEMORY) /* what needs less may still run */
        return po_fail(ctx, PO_UNSUPPORTED, "%s has no %.1f GB of memory left", cuda->info.name,
                       (double)bytes / 1e9);
    PO_TRY(po_cuda_check(ctx, cuda, result, "allocating memory"));
    po_arena_defer(arena, give_back, h);
    *memory = h->memory;
    return PO_OK;
}

/* --- looking, for the caller --- */

/* The sentence of a failure that is no failure of looking. */
static void keep(po_ctx *ctx, char *text, size_t size) {
    snprintf(text, size, "%.*s", (int)size - 1, ctx->error.message);
    po_ctx_clear(ctx);
}

static po_status look(po_ctx *ctx, po_arena *arena, po_reply *reply, void *user) {
    po_cuda *cuda = NULL;
    PO_TRY(po_cuda_open(ctx, arena, user, &cuda));
    if (po_cuda_need_cublas(ctx, cuda) != PO_OK) {
        cuda->info.cublas[0] = '\0';
        keep(ctx, cuda->info.no_cublas, sizeof cuda->info.no_cublas);
    }
    if (po_cuda_need_cudnn(ctx, cuda) != PO_OK) {
        cuda->info.cudnn[0] = '\0';
        keep(ctx, cuda->info.no_cudnn, sizeof cuda->info.no_cudnn);
    }
    po_reply_add(reply, &cuda->info, sizeof cuda->info);
    return PO_OK;
}

po_status po_cuda_query(po_ctx *ctx, po_arena *arena, const po_cuda_options *options,
                        po_cuda_info *info) {
    po_cuda_options copy = *options;
    po_bytes data = {NULL, 0};
    memset(info, 0, sizeof *info);
    po_status status =
        po_isolate(ctx, arena, "looking for a GPU", LOOK_SECONDS, look, &copy, &data);
    if (status == PO_OK && data.size == sizeof *info) {
        memcpy(info, data.data, sizeof *info);
        return PO_OK;
    }
    if (status == PO_OK)
        return po_fail(ctx, PO_INTERNAL, "looking for a GPU: %zu bytes came back", data.size);
    if (status != PO_RUNTIME)
        return status;
    keep(ctx, info->missing, sizeof info->missing);
    return PO_OK;
}

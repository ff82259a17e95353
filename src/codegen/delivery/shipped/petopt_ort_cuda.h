/* A library of kernels for ONNX Runtime 1.18 or later on NVIDIA GPUs: each region of a model is one
 * custom operator of the CUDA provider, started on the provider's stream. petopt_kernels.c includes
 * this file once; the table of regions is in petopt_table.c. Where there is no driver, or a GPU
 * that no machine code fits, nothing is registered and the model runs on its own functions. */
#ifndef PETOPT_ORT_CUDA_H
#define PETOPT_ORT_CUDA_H

#include "petopt_ort_api.h"
#include "petopt_table.h"

/* PK_ON_CPU is for tests, with a driver that works in the processor's memory. */
#ifdef PK_ON_CPU
#define PK_PROVIDER "CPUExecutionProvider"
#else
#define PK_PROVIDER "CUDAExecutionProvider"
#endif

enum { PK_ORT_CUDA_API = 18 };

static void pk_release_allocator(const OrtApi *api, OrtAllocator *allocator) {
    ((void (*)(OrtAllocator *))api->slot[PK_API_ReleaseAllocator])(allocator);
}

/* What the launches of one call share. Calls on one stream come one after the other as long as
 * their launches are not mixed (pk_cuda_kernel.lock), and so can use the same. */
typedef struct pk_scratch {
    struct pk_scratch *next;
    void *stream, *memory;
    size_t size;
} pk_scratch;

typedef struct pk_cuda_kernel {
    const OrtApi *api;
    const pk_region *region;
    pk_loader loader;
    OrtAllocator *allocator; /* the provider's, of the device */
    bool *constant;          /* by input: its shape was checked when the kernel was made */
    pthread_mutex_t lock;    /* held while a call's launches are put on their stream */
    pk_scratch *scratch;
} pk_cuda_kernel;

static OrtStatus *pk_cuda_failed(const pk_cuda_kernel *k, const char *why) {
    char text[PK_WHY + 200];
    snprintf(text, sizeof text, "petopt.kernels, %s: %s", k->region->name, why);
    return pk_fail(k->api, PK_ORT_FAIL, text);
}

/* Memory for calls on this stream; it stays until the kernel goes. More samples get another, at
 * least twice as large: the launches before may still use the first. */
static OrtStatus *pk_scratch_of(pk_cuda_kernel *k, void *stream, int64_t samples, char **device) {
    int right = 0;
    size_t size = pk_device_bytes(k->loader.program, samples, &right), most = 0;
    *device = NULL;
    if (!right)
        return pk_cuda_failed(k, "too many samples");
    if (size == 0)
        return NULL;
    OrtStatus *status = NULL;
    pk_scratch *s = k->scratch;
    for (; s && (s->stream != stream || s->size < size); s = s->next)
        most = s->stream == stream && s->size > most ? s->size : most;
    if (!s && (s = calloc(1, sizeof *s))) {
        s->stream = stream;
        s->size = size < 2 * most ? 2 * most : size;
        status = PK_CALL(k->api, AllocatorAlloc, k->allocator, s->size, &s->memory);
        if (!status && s->memory) {
            s->next = k->scratch;
            k->scratch = s;
        } else {
            free(s);
            s = NULL;
        }
    }
    if (status)
        return status;
    if (!s)
        return pk_cuda_failed(k, "memory ran out");
    uintptr_t at = (uintptr_t)s->memory;
    *device = (char *)s->memory + (PK_DEVICE_ALIGN - at % PK_DEVICE_ALIGN) % PK_DEVICE_ALIGN;
    return NULL;
}

static OrtStatus *pk_cuda_bind(pk_cuda_kernel *k, OrtKernelContext *context, const void **in,
                               void **out, int64_t *samples) {
    const pk_region *r = k->region;
    void *data = NULL;
    int64_t batch = -1;
    for (size_t i = 0; i < r->n_in + r->n_weights; i++) {
        PK_TRY(pk_input(k->api, r, context, i, k->constant[i], &batch, &data));
        in[i] = data;
    }
    *samples = batch < 0 ? 1 : batch;
    for (size_t i = 0; i < r->n_out; i++)
        PK_TRY(pk_output(k->api, r, context, i, *samples, &out[i]));
    return NULL;
}

static OrtStatus *pk_cuda_call(pk_cuda_kernel *k, OrtKernelContext *context, const void **in,
                               void **out) {
    void *stream = NULL;
    char why[PK_WHY] = "";
    pk_data data = {in, in + k->region->n_in, out, NULL, 1};
    PK_TRY(pk_cuda_bind(k, context, in, out, &data.samples));
    PK_TRY(PK_CALL(k->api, KernelContext_GetGPUComputeStream, context, &stream));
    pthread_mutex_lock(&k->lock);
    OrtStatus *status = pk_scratch_of(k, stream, data.samples, &data.device);
    int right = status || pk_run_on(&k->loader, &data, stream, why);
    pthread_mutex_unlock(&k->lock);
    return right ? status : pk_cuda_failed(k, why);
}

static OrtStatus *pk_cuda_compute(void *kernel, OrtKernelContext *context) {
    pk_cuda_kernel *k = kernel;
    const void **in = calloc(k->region->n_in + k->region->n_weights + 1, sizeof *in);
    void **out = calloc(k->region->n_out + 1, sizeof *out);
    OrtStatus *status =
        in && out ? pk_cuda_call(k, context, in, out) : pk_cuda_failed(k, "memory ran out");
    free(in);
    free(out);
    return status;
}

static void pk_cuda_destroy(void *kernel) {
    pk_cuda_kernel *k = kernel;
    for (pk_scratch *s = k->scratch, *next; s; s = next) {
        next = s->next;
        OrtStatus *status = PK_CALL(k->api, AllocatorFree, k->allocator, s->memory);
        if (status)
            pk_release_status(k->api, status);
        free(s);
    }
    if (k->allocator)
        pk_release_allocator(k->api, k->allocator);
    pk_loader_free(&k->loader);
    pthread_mutex_destroy(&k->lock);
    free(k->constant);
    free(k);
}

static OrtStatus *pk_cuda_prepare(pk_cuda_kernel *k, const OrtKernelInfo *info) {
    enum { OF_THE_DEVICE = 0 };
    for (size_t i = 0; i < k->region->n_in + k->region->n_weights; i++) {
        const OrtValue *value = NULL;
        PK_TRY(pk_constant(k->api, k->region, info, i, &k->constant[i], &value));
    }
    return PK_CALL(k->api, KernelInfoGetAllocator, info, OF_THE_DEVICE, &k->allocator);
}

static OrtStatus *pk_cuda_create(const OrtCustomOp *base, const OrtApi *api,
                                 const OrtKernelInfo *info, void **kernel) {
    const pk_op *op = (const pk_op *)base;
    pk_cuda_kernel *k = calloc(1, sizeof *k);
    bool *constant = calloc(op->region->n_in + op->region->n_weights + 1, sizeof *constant);
    if (!k || !constant) {
        free(k);
        free(constant);
        return pk_fail(api, PK_ORT_FAIL, "petopt.kernels: memory ran out");
    }
    k->api = api;
    k->region = op->region;
    k->constant = constant;
    pk_loader_init(&k->loader, pk_driver_get(), op->code);
    pthread_mutex_init(&k->lock, NULL);
    OrtStatus *status = pk_cuda_prepare(k, info);
    if (status)
        pk_cuda_destroy(k);
    else
        *kernel = k;
    return status;
}

/* Where there is a GPU it is said once why the model runs without the kernels. */
static const void *pk_cuda_choose(const void *user, const pk_region *region) {
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static bool said;
    const pk_driver *driver = pk_driver_get();
    char why[PK_WHY] = "";
    (void)user;
    if (!driver || pk_program_fits(driver, region->code, why))
        return driver ? region->code : NULL;
    pthread_mutex_lock(&lock);
    if (!said)
        fprintf(stderr, "petopt.kernels are not used: %s\n", why);
    said = true;
    pthread_mutex_unlock(&lock);
    return NULL;
}

static OrtStatus *pk_register_cuda(OrtSessionOptions *options, const OrtApiBase *base) {
    const pk_target cuda = {PK_ORT_CUDA_API, PK_PROVIDER,     pk_cuda_choose,  NULL,
                            pk_cuda_create,  pk_cuda_compute, pk_cuda_destroy, 0};
    return pk_register(options, base, pk_regions, pk_n_regions, &cuda);
}

#endif

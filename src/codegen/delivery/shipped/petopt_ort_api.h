/* ONNX Runtime's interface as far as libraries of kernels use it, and what such libraries have in
 * common: ports, their check, operators, registration. No header of the runtime is needed. */
#ifndef PETOPT_ORT_API_H
#define PETOPT_ORT_API_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "petopt_region.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- the runtime's interface --- */

typedef struct OrtStatus OrtStatus;
typedef struct OrtValue OrtValue;
typedef struct OrtKernelInfo OrtKernelInfo;
typedef struct OrtKernelContext OrtKernelContext;
typedef struct OrtSessionOptions OrtSessionOptions;
typedef struct OrtCustomOpDomain OrtCustomOpDomain;
typedef struct OrtShapeInferContext OrtShapeInferContext;
typedef struct OrtTensorTypeAndShapeInfo OrtTensorTypeAndShapeInfo;
typedef struct OrtAllocator OrtAllocator;
typedef void (*pk_function)(void);

enum { PK_ORT_OP = 17 /* of OrtCustomOp */, PK_ORT_FAIL = 1, PK_ORT_INVALID_ARGUMENT = 2 };

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
    pk_function slot[PK_API_KernelInfoGetAllocator + 1]; /* there are more */
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
#define PK_TYPES_HasSessionConfigEntry const OrtSessionOptions *, const char *, int *
#define PK_TYPES_GetSessionConfigEntry const OrtSessionOptions *, const char *, char *, size_t *
#define PK_TYPES_KernelInfoGetConstantInput_tensor                                                 \
    const OrtKernelInfo *, size_t, int *, const OrtValue **
#define PK_TYPES_ShapeInferContext_SetOutputTypeShape                                              \
    const OrtShapeInferContext *, size_t, const OrtTensorTypeAndShapeInfo *
#define PK_TYPES_AllocatorAlloc                    OrtAllocator *, size_t, void **
#define PK_TYPES_AllocatorFree                     OrtAllocator *, void *
#define PK_TYPES_KernelInfoGetAllocator            const OrtKernelInfo *, int, OrtAllocator **
#define PK_TYPES_KernelContext_GetGPUComputeStream const OrtKernelContext *, void **
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
        snprintf(number, sizeof number, dims[i] < 0 ? "%lld N" : "%lld",
                 (long long)(dims[i] < 0 ? -dims[i] : dims[i]));
        at = pk_put(text, size, at, i ? "," : "");
        at = pk_put(text, size, at, dims[i] == -1 ? "N" : number);
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
                 (long long)r->weight_elements[input - r->n_in]);
        pk_put(text, sizeof text, at, number);
    }
    return pk_fail(api, PK_ORT_INVALID_ARGUMENT, text);
}

/* A dim of a port where there are so many samples. */
static int64_t pk_dim(int64_t dim, int64_t batch) {
    return dim < 0 ? -dim * batch : dim;
}

/* Whether a port holds as many samples as there are. */
static bool pk_is_open(const pk_port *p) {
    for (size_t i = 0; i < p->rank; i++)
        if (p->dims[i] < 0)
            return true;
    return false;
}

/* batch: how many samples there are; -1: not known yet. */
static bool pk_has_dims(const pk_port *p, const int64_t *dims, size_t rank, int64_t *batch) {
    bool right = rank == p->rank;
    for (size_t i = 0; i < rank && right; i++) {
        if (p->dims[i] < 0 && *batch < 0)
            *batch = dims[i] / -p->dims[i];
        right = dims[i] == pk_dim(p->dims[i], *batch);
    }
    return right;
}

static OrtStatus *pk_check_info(const OrtApi *api, const pk_region *r, size_t input,
                                const OrtTensorTypeAndShapeInfo *info, int64_t *batch) {
    int64_t dims[PK_MAX_RANK];
    size_t rank = 0;
    PK_TRY(PK_CALL(api, GetDimensionsCount, info, &rank));
    size_t known = rank < PK_MAX_RANK ? rank : PK_MAX_RANK;
    PK_TRY(PK_CALL(api, GetDimensions, info, dims, known));
    bool right = false;
    if (input < r->n_in) {
        right = pk_has_dims(&r->in[input], dims, rank, batch);
    } else {
        size_t count = 0;
        PK_TRY(PK_CALL(api, GetTensorShapeElementCount, info, &count));
        right = count == (size_t)r->weight_elements[input - r->n_in];
    }
    return right ? NULL : pk_wrong_shape(api, r, input, dims, known);
}

static OrtStatus *pk_check_input(const OrtApi *api, const pk_region *r, size_t input,
                                 const OrtValue *value, int64_t *batch) {
    OrtTensorTypeAndShapeInfo *info = NULL;
    PK_TRY(PK_CALL(api, GetTensorTypeAndShape, value, &info));
    OrtStatus *status = pk_check_info(api, r, input, info, batch);
    pk_release_shape(api, info);
    return status;
}

/* The runtime's input i of a call; `constant`: its shape was checked when the kernel was made. */
static OrtStatus *pk_input(const OrtApi *api, const pk_region *r, OrtKernelContext *context,
                           size_t i, bool constant, int64_t *batch, void **data) {
    const OrtValue *value = NULL;
    PK_TRY(PK_CALL(api, KernelContext_GetInput, context, i, &value));
    if (!value)
        return pk_fail(api, PK_ORT_INVALID_ARGUMENT, "petopt.kernels: an input is missing");
    if (!constant)
        PK_TRY(pk_check_input(api, r, i, value, batch));
    return PK_CALL(api, GetTensorMutableData, value, data);
}

static OrtStatus *pk_output(const OrtApi *api, const pk_region *r, OrtKernelContext *context,
                            size_t i, int64_t batch, void **data) {
    OrtValue *value = NULL;
    const pk_port *p = &r->out[i];
    int64_t dims[PK_MAX_RANK] = {0};
    for (size_t k = 0; k < p->rank; k++)
        dims[k] = pk_dim(p->dims[k], batch);
    PK_TRY(PK_CALL(api, KernelContext_GetOutput, context, i, dims, p->rank, &value));
    return PK_CALL(api, GetTensorMutableData, value, data);
}

/* Whether input i is a constant: its shape is checked here, once and for all. */
static OrtStatus *pk_constant(const OrtApi *api, const pk_region *r, const OrtKernelInfo *info,
                              size_t i, bool *constant, const OrtValue **value) {
    int is_constant = 0;
    *value = NULL;
    PK_TRY(PK_CALL(api, KernelInfoGetConstantInput_tensor, info, i, &is_constant, value));
    /* How many samples there are, and what lengths, is asked at each call. */
    *constant =
        is_constant && *value && !(i < r->n_in && (pk_is_open(&r->in[i]) || r->n_given > 0));
    int64_t batch = -1;
    return *constant ? pk_check_input(api, r, i, *value, &batch) : NULL;
}

/* --- the operator --- */

typedef struct pk_op {
    OrtCustomOp base; /* first: the runtime hands its address back */
    const OrtApi *api;
    const pk_region *region;
    const void *code; /* of it: what runs here */
    const char *provider;
} pk_op;

static OrtStatus *pk_set_shape(const OrtApi *api, OrtShapeInferContext *context, size_t i,
                               const pk_port *port, OrtTensorTypeAndShapeInfo *info) {
    PK_TRY(PK_CALL(api, SetTensorElementType, info, port->type ? port->type : PK_F32));
    PK_TRY(PK_CALL(api, SetDimensions, info, port->dims, port->rank));
    return PK_CALL(api, ShapeInferContext_SetOutputTypeShape, context, i, info);
}

static OrtStatus *pk_infer_shapes(const OrtCustomOp *base, OrtShapeInferContext *context) {
    const pk_op *op = (const pk_op *)base;
    for (size_t i = 0; i < op->region->n_out; i++) {
        OrtTensorTypeAndShapeInfo *info = NULL;
        if (pk_is_open(&op->region->out[i]) || op->region->n_given > 0)
            continue; /* as many samples, and as long, as there will be */
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
    return ((const pk_op *)base)->provider;
}

static int pk_input_type(const OrtCustomOp *base, size_t index) {
    const pk_region *r = ((const pk_op *)base)->region;
    int type = index < r->n_in   ? r->in[index].type
               : r->weight_types ? r->weight_types[index - r->n_in]
                                 : PK_F32;
    return type ? type : PK_F32;
}

static int pk_output_type(const OrtCustomOp *base, size_t index) {
    int type = ((const pk_op *)base)->region->out[index].type;
    return type ? type : PK_F32;
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

/* What runs a library's regions. */
typedef struct pk_target {
    uint32_t api;         /* version of the runtime's interface that is needed */
    const char *provider; /* NULL: the CPU's */
    /* What of a region's code runs on this machine; NULL: nothing, the model's own function does.
     */
    const void *(*choose)(const void *user, const pk_region *region);
    const void *user;
    OrtStatus *(*create)(const OrtCustomOp *op, const OrtApi *api, const OrtKernelInfo *info,
                         void **kernel);
    OrtStatus *(*compute)(void *kernel, OrtKernelContext *context);
    void (*destroy)(void *kernel);
    uint32_t choice; /* another number where `choose` chooses otherwise */
} pk_target;

static void pk_fill_op(pk_op *op, const OrtApi *api, const pk_region *region, const void *code,
                       const pk_target *target) {
    *op = (pk_op){.base = {.version = PK_ORT_OP},
                  .api = api,
                  .region = region,
                  .code = code,
                  .provider = target->provider};
    pk_function *slot = op->base.slot;
    slot[PK_OP_GetName] = (pk_function)pk_name;
    slot[PK_OP_GetExecutionProviderType] = (pk_function)pk_provider;
    slot[PK_OP_GetInputType] = (pk_function)pk_input_type;
    slot[PK_OP_GetInputTypeCount] = (pk_function)pk_inputs;
    slot[PK_OP_GetOutputType] = (pk_function)pk_output_type;
    slot[PK_OP_GetOutputTypeCount] = (pk_function)pk_outputs;
    slot[PK_OP_KernelDestroy] = (pk_function)target->destroy;
    slot[PK_OP_GetInputCharacteristic] = (pk_function)pk_ordinary;
    slot[PK_OP_GetOutputCharacteristic] = (pk_function)pk_ordinary;
    slot[PK_OP_GetInputMemoryType] = (pk_function)pk_ordinary;
    slot[PK_OP_CreateKernelV2] = (pk_function)target->create;
    slot[PK_OP_KernelComputeV2] = (pk_function)target->compute;
    slot[PK_OP_InferOutputShapeFn] = (pk_function)pk_infer_shapes;
    slot[PK_OP_GetStartVersion] = (pk_function)pk_version;
    slot[PK_OP_GetEndVersion] = (pk_function)pk_version;
}

/* --- registration --- */

/* One for each runtime in the process and choice of code; it stays, since sessions may hold on to
 * its operators. */
typedef struct pk_registration {
    struct pk_registration *next;
    const OrtApi *api;
    uint32_t choice; /* the target's */
    OrtCustomOpDomain *domain;
    pk_op ops[];
} pk_registration;

static OrtStatus *pk_make_registration(const OrtApi *api, const pk_region *regions, size_t n,
                                       const pk_target *target, pk_registration **made) {
    *made = NULL;
    pk_registration *r = calloc(1, sizeof *r + n * sizeof r->ops[0]);
    if (!r)
        return pk_fail(api, PK_ORT_FAIL, "petopt.kernels: memory ran out");
    r->api = api;
    r->choice = target->choice;
    *made = r;
    PK_TRY(PK_CALL(api, CreateCustomOpDomain, "petopt.kernels", &r->domain));
    for (size_t i = 0; i < n; i++) {
        const void *code = target->choose(target->user, &regions[i]);
        if (!code)
            continue;
        pk_fill_op(&r->ops[i], api, &regions[i], code, target);
        PK_TRY(PK_CALL(api, CustomOpDomain_Add, r->domain, &r->ops[i].base));
    }
    return NULL;
}

/* Where nothing of the library can run nothing is registered, and that is no failure: the model
 * runs on its own functions. So it does in too old a runtime. */
static OrtStatus *pk_register(OrtSessionOptions *options, const OrtApiBase *base,
                              const pk_region *regions, size_t n, const pk_target *target) {
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static pk_registration *known;
    const OrtApi *api = base->GetApi(target->api);
    bool any = false;
    for (size_t i = 0; i < n && !any; i++)
        any = target->choose(target->user, &regions[i]) != NULL;
    if (!api || !any)
        return NULL;
    pthread_mutex_lock(&lock);
    pk_registration *r = known;
    while (r && (r->api != api || r->choice != target->choice))
        r = r->next;
    OrtStatus *status = NULL;
    if (!r) {
        status = pk_make_registration(api, regions, n, target, &r);
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

/* Kernels for NVIDIA GPUs: what the tables of a library hold, and how they are started. The driver
 * is opened when it is first needed, so that a library loads where there is none. C and C++; no
 * header of CUDA is needed. */
#ifndef PETOPT_CUDA_H
#define PETOPT_CUDA_H

#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --- tables --- */

/* Machine code for one architecture, compute capability times 10; PTX is for later ones. */
typedef struct pk_image {
    unsigned arch;
    int ptx;
    const void *data;
    size_t size;
} pk_image;

typedef enum pk_arg_kind { PK_ARG_INPUT, PK_ARG_WEIGHT, PK_ARG_OUTPUT, PK_ARG_DEVICE } pk_arg_kind;

/* A parameter of a kernel: a tensor by its number, or a place in the call's own memory. */
typedef struct pk_arg {
    pk_arg_kind kind;
    unsigned number;
    size_t offset; /* PK_ARG_DEVICE: bytes */
} pk_arg;

/* grid: of one sample; more have their blocks one behind the other along the first axis. */
typedef struct pk_launch {
    const char *symbol;
    unsigned grid[3], threads, shared, n_args;
    const pk_arg *args;
} pk_launch;

/* What one call does: launches in order, on one stream. */
typedef struct pk_program {
    size_t n_images;
    const pk_image *images;
    size_t n_launches;
    const pk_launch *launches;
    size_t device; /* bytes that the launches share, of a sample; aligned to PK_DEVICE_ALIGN */
    int cuda;      /* of the compiler that made the images: 1000 times its major number, 10 times
                      its minor one; 0: any driver takes them */
} pk_program;

enum { PK_MAX_ARGS = 64, PK_DEVICE_ALIGN = 256, PK_DATA_ALIGN = 16, PK_WHY = 400 };

/* --- the driver --- */

typedef int pk_cu; /* CUresult: 0 is success */
enum {
    PK_CU_CAPABILITY_MAJOR = 75,
    PK_CU_CAPABILITY_MINOR = 76,
    PK_CU_DYNAMIC_SHARED = 8, /* of a function: the most that it may have */
    PK_CU_SHARED_BY_DEFAULT = 48 << 10
};

#define PK_DRIVER(F)                                                                               \
    F(cuInit, (unsigned))                                                                          \
    F(cuDriverGetVersion, (int *))                                                                 \
    F(cuDeviceGetCount, (int *))                                                                   \
    F(cuDeviceGet, (int *, int))                                                                   \
    F(cuDeviceGetAttribute, (int *, int, int))                                                     \
    F(cuCtxGetCurrent, (void **))                                                                  \
    F(cuCtxGetDevice, (int *))                                                                     \
    F(cuCtxPushCurrent_v2, (void *))                                                               \
    F(cuCtxPopCurrent_v2, (void **))                                                               \
    F(cuDevicePrimaryCtxRetain, (void **, int))                                                    \
    F(cuDevicePrimaryCtxRelease_v2, (int))                                                         \
    F(cuStreamGetCtx, (void *, void **))                                                           \
    F(cuModuleLoadData, (void **, const void *))                                                   \
    F(cuModuleUnload, (void *))                                                                    \
    F(cuModuleGetFunction, (void **, void *, const char *))                                        \
    F(cuFuncSetAttribute, (void *, int, int))                                                      \
    F(cuLaunchKernel, (void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,         \
                       unsigned, void *, void **, void **))                                        \
    F(cuGetErrorString, (int, const char **))

typedef struct pk_driver {
    void *library; /* stays open */
#define PK_MEMBER(name, types) pk_cu(*name) types;
    PK_DRIVER(PK_MEMBER)
#undef PK_MEMBER
    int n_devices, version; /* version: as pk_program.cuda */
} pk_driver;

/* "cuLaunchKernel: out of memory" */
static inline int pk_cu_failed(const pk_driver *d, pk_cu code, const char *what, char *why) {
    const char *text = NULL;
    if (code == 0)
        return 0;
    if (d->cuGetErrorString(code, &text) != 0 || !text)
        text = "an error that the driver has no name for";
    snprintf(why, PK_WHY, "%s: %s (%d)", what, text, code);
    return 1;
}

/* The architecture of a device; 0: the driver does not say. */
static inline unsigned pk_arch_of(const pk_driver *d, int device) {
    int major = 0, minor = 0;
    if (d->cuDeviceGetAttribute(&major, PK_CU_CAPABILITY_MAJOR, device) != 0 ||
        d->cuDeviceGetAttribute(&minor, PK_CU_CAPABILITY_MINOR, device) != 0)
        return 0;
    return (unsigned)(10 * major + minor);
}

static inline int pk_driver_open(pk_driver *d) {
    memset(d, 0, sizeof *d);
    d->library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!d->library)
        return 0;
    void *found;
#define PK_FIND(name, types)                                                                       \
    found = dlsym(d->library, #name);                                                              \
    if (!found)                                                                                    \
        return 0;                                                                                  \
    memcpy((void *)&d->name, &found, sizeof found);
    PK_DRIVER(PK_FIND)
#undef PK_FIND
    return d->cuInit(0) == 0 && d->cuDriverGetVersion(&d->version) == 0 &&
           d->cuDeviceGetCount(&d->n_devices) == 0 && d->n_devices > 0;
}

/* The driver, or NULL where there is none, it is too old, or it has no device. */
static inline const pk_driver *pk_driver_get(void) {
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static pk_driver driver;
    static int state; /* 0: not tried; 1: there; -1: not */
    pthread_mutex_lock(&lock);
    if (state == 0)
        state = pk_driver_open(&driver) ? 1 : -1;
    pthread_mutex_unlock(&lock);
    return state > 0 ? &driver : NULL;
}

/* --- images --- */

/* Machine code runs on its own architecture and on later ones of the same major number; PTX on its
 * own and all later ones. Drivers of an older CUDA take machine code where the major number is the
 * same, and no PTX. The latest that fits is taken; NULL: none does. */
static inline const pk_image *pk_image_for(const pk_program *p, unsigned arch, int version) {
    const pk_image *best = NULL;
    for (size_t i = 0; i < p->n_images; i++) {
        const pk_image *m = &p->images[i];
        if (m->arch > arch || (!m->ptx && m->arch / 10 != arch / 10))
            continue;
        if (m->ptx ? version < p->cuda : version / 1000 < p->cuda / 1000)
            continue;
        if (!best || best->ptx > m->ptx || (best->ptx == m->ptx && best->arch < m->arch))
            best = m;
    }
    return best;
}

/* The image for a device; NULL: *why, PK_WHY characters. */
static inline const pk_image *pk_image_of(const pk_driver *d, const pk_program *p, int device,
                                          char *why) {
    unsigned arch = pk_arch_of(d, device);
    const pk_image *image = pk_image_for(p, arch, d->version);
    if (!image && pk_image_for(p, arch, p->cuda))
        snprintf(why, PK_WHY,
                 "the kernels need a driver for CUDA %d.%d, and this one is for CUDA %d.%d",
                 p->cuda / 1000, p->cuda % 1000 / 10, d->version / 1000, d->version % 1000 / 10);
    else if (!image)
        snprintf(why, PK_WHY, "no machine code for a GPU of compute capability %u.%u", arch / 10,
                 arch % 10);
    return image;
}

/* Whether every device of this machine can run it: which one a session will use is not known when
 * operators are registered. */
static inline int pk_program_fits(const pk_driver *d, const pk_program *p, char *why) {
    for (int i = 0; i < d->n_devices; i++) {
        int device = 0;
        if (pk_cu_failed(d, d->cuDeviceGet(&device, i), "cuDeviceGet", why) ||
            !pk_image_of(d, p, device, why))
            return 0;
    }
    return 1;
}

/* --- loaded programs --- */

/* A program in one context. */
typedef struct pk_loaded {
    struct pk_loaded *next;
    void *context, *module;
    void **functions; /* by launch */
} pk_loaded;

/* The programs that a kernel has loaded; zeroed before the first use. */
typedef struct pk_loader {
    const pk_driver *driver;
    const pk_program *program;
    pthread_mutex_t lock;
    pk_loaded *loaded;
    void *primary; /* the context where a thread had none; NULL: not needed so far */
} pk_loader;

static inline void pk_loader_init(pk_loader *l, const pk_driver *driver,
                                  const pk_program *program) {
    l->driver = driver;
    l->program = program;
    l->loaded = NULL;
    l->primary = NULL;
    pthread_mutex_init(&l->lock, NULL);
}

static inline void pk_unload(const pk_driver *d, pk_loaded *p) {
    if (!p)
        return;
    void *popped;
    /* Where the context is gone its modules went with it. */
    if (p->module && d->cuCtxPushCurrent_v2(p->context) == 0) {
        d->cuModuleUnload(p->module);
        d->cuCtxPopCurrent_v2(&popped);
    }
    free(p->functions);
    free(p);
}

static inline void pk_loader_free(pk_loader *l) {
    for (pk_loaded *p = l->loaded, *next; p; p = next) {
        next = p->next;
        pk_unload(l->driver, p);
    }
    if (l->primary)
        l->driver->cuDevicePrimaryCtxRelease_v2(0);
    pthread_mutex_destroy(&l->lock);
}

/* Loads into the current context. */
static inline int pk_fill(const pk_driver *d, const pk_program *program, pk_loaded *p, char *why) {
    int device = 0;
    if (pk_cu_failed(d, d->cuCtxGetDevice(&device), "cuCtxGetDevice", why))
        return 0;
    const pk_image *image = pk_image_of(d, program, device, why);
    if (!image)
        return 0;
    if (pk_cu_failed(d, d->cuModuleLoadData(&p->module, image->data), "cuModuleLoadData", why))
        return 0;
    for (size_t i = 0; i < program->n_launches; i++) {
        const pk_launch *launch = &program->launches[i];
        if (pk_cu_failed(d, d->cuModuleGetFunction(&p->functions[i], p->module, launch->symbol),
                         launch->symbol, why))
            return 0;
        if (launch->shared > PK_CU_SHARED_BY_DEFAULT &&
            pk_cu_failed(
                d,
                d->cuFuncSetAttribute(p->functions[i], PK_CU_DYNAMIC_SHARED, (int)launch->shared),
                launch->symbol, why))
            return 0;
    }
    return 1;
}

/* The program in a context that is current; loaded the first time. NULL: *why. */
static inline const pk_loaded *pk_load(pk_loader *l, void *context, char *why) {
    pthread_mutex_lock(&l->lock);
    pk_loaded *p = l->loaded;
    while (p && p->context != context)
        p = p->next;
    if (!p) {
        p = (pk_loaded *)calloc(1, sizeof *p);
        void **functions = (void **)calloc(l->program->n_launches + 1, sizeof *functions);
        snprintf(why, PK_WHY, "memory ran out");
        if (p && functions) {
            p->context = context;
            p->functions = functions;
        } else {
            free(functions);
            free(p);
            p = NULL;
        }
        if (p && !pk_fill(l->driver, l->program, p, why)) {
            pk_unload(l->driver, p);
            p = NULL;
        }
        if (p) {
            p->next = l->loaded;
            l->loaded = p;
        }
    }
    pthread_mutex_unlock(&l->lock);
    return p;
}

/* Pointers of one call. */
typedef struct pk_data {
    const void *const *in, *const *weight;
    void *const *out;
    char *device;
    int64_t samples; /* 1 where the shapes are all static */
} pk_data;

/* Bytes that a call with so many samples needs between launches, with room to align them. 0: none,
 * or *right is 0: more than there can be. */
static inline size_t pk_device_bytes(const pk_program *p, int64_t samples, int *right) {
    size_t most = (SIZE_MAX / 2 - PK_DEVICE_ALIGN) / (p->device ? p->device : 1);
    *right = samples >= 0 && (uint64_t)samples <= most;
    return *right && p->device && samples ? p->device * (size_t)samples + PK_DEVICE_ALIGN : 0;
}

/* Copies an argument's pointer; 0: it is not aligned as kernels want it. */
static inline int pk_pointer(const pk_arg *arg, const pk_data *data, const void **pointer) {
    switch (arg->kind) {
    case PK_ARG_INPUT:
        *pointer = data->in[arg->number];
        break;
    case PK_ARG_WEIGHT:
        *pointer = data->weight[arg->number];
        break;
    case PK_ARG_OUTPUT:
        *pointer = data->out[arg->number];
        break;
    default:
        *pointer = data->device + arg->offset;
        break;
    }
    return (uintptr_t)*pointer % PK_DATA_ALIGN == 0;
}

static inline int pk_start(const pk_driver *d, const pk_launch *launch, void *function,
                           const pk_data *data, void *stream, char *why) {
    const void *pointers[PK_MAX_ARGS];
    void *params[PK_MAX_ARGS];
    if (data->samples > INT32_MAX / (int64_t)launch->grid[0]) {
        snprintf(why, PK_WHY, "%lld samples are more than a grid can have",
                 (long long)data->samples);
        return 0;
    }
    if (launch->n_args > PK_MAX_ARGS) {
        snprintf(why, PK_WHY, "%s has %u parameters", launch->symbol, launch->n_args);
        return 0;
    }
    for (unsigned i = 0; i < launch->n_args; i++) {
        params[i] = (void *)&pointers[i];
        if (!pk_pointer(&launch->args[i], data, &pointers[i])) {
            snprintf(why, PK_WHY, "a tensor's memory is not aligned to %d bytes",
                     (int)PK_DATA_ALIGN);
            return 0;
        }
    }
    return !pk_cu_failed(d,
                         d->cuLaunchKernel(function, launch->grid[0] * (unsigned)data->samples,
                                           launch->grid[1], launch->grid[2], launch->threads, 1, 1,
                                           launch->shared, stream, params, NULL),
                         launch->symbol, why);
}

/* The context of a stream. The default stream belongs to the context that is current; where there
 * is none that is, as in CUDA's own runtime, the first device's. */
static inline int pk_context_of(pk_loader *l, void *stream, void **context, char *why) {
    const pk_driver *d = l->driver;
    pk_cu code = stream ? d->cuStreamGetCtx(stream, context) : d->cuCtxGetCurrent(context);
    if (pk_cu_failed(d, code, "the stream's context", why))
        return 0;
    if (*context)
        return 1;
    pthread_mutex_lock(&l->lock);
    code = l->primary ? 0 : d->cuDevicePrimaryCtxRetain(&l->primary, 0);
    *context = l->primary;
    pthread_mutex_unlock(&l->lock);
    return !pk_cu_failed(d, code, "cuDevicePrimaryCtxRetain", why);
}

/* Starts all launches on a stream; what they compute is there when the stream comes to it. 0: *why,
 * PK_WHY characters. */
static inline int pk_run_on(pk_loader *l, const pk_data *data, void *stream, char *why) {
    const pk_driver *d = l->driver;
    void *context = NULL, *popped;
    if (data->samples == 0)
        return 1;
    if (!pk_context_of(l, stream, &context, why))
        return 0;
    if (pk_cu_failed(d, d->cuCtxPushCurrent_v2(context), "cuCtxPushCurrent", why))
        return 0;
    const pk_loaded *loaded = pk_load(l, context, why);
    int right = loaded != NULL;
    for (size_t i = 0; i < l->program->n_launches && right; i++)
        right = pk_start(d, &l->program->launches[i], loaded->functions[i], data, stream, why);
    d->cuCtxPopCurrent_v2(&popped);
    return right;
}

#ifdef __cplusplus
}
#endif

#endif

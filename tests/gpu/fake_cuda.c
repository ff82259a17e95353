/* libcuda.so.1 for machines without a GPU: device memory is memory, full of NaNs at first, work is
 * done when it is launched, and a clock of its own moves by what each piece of work is said to
 * take, so that what is timed is known. FAKE_VERSION, FAKE_DEVICES and FAKE_CRASH make others of
 * it.
 *
 * It stands beside the emulated driver (tests/cuda/driver.c) because the two are for different
 * ends: there kernels are threads with stacks that are switched by hand, which no sanitizer
 * follows, and take what a GPU might; here they are functions of C, which run under sanitizers and
 * may crash, and all times and sizes are the figures that the tests expect. */
#include "fake_cuda.h"

#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef FAKE_MAJOR
#define FAKE_MAJOR 9
#endif
#ifndef FAKE_VERSION
#define FAKE_VERSION 13000
#endif
#ifndef FAKE_DEVICES
#define FAKE_DEVICES 1
#endif
#define API __attribute__((visibility("default")))

enum { OK = 0, INVALID = 1, NO_MEMORY = 2, NO_DEVICE = 100, BAD_IMAGE = 200, NOT_FOUND = 500 };
enum { BLOCKS = 4096, PARAMETERS = 64 };

typedef struct work {
    void (*run)(void *);
    void *argument;
    double microseconds;
} work;

typedef struct graph {
    size_t n, room;
    work *items;
} graph;

typedef struct stream {
    graph *captured;
} stream;

static struct {
    void *at;
    size_t bytes;
} blocks[BLOCKS];
static double clock_now;

API int fake_cuda_holds(const void *at, uint64_t bytes) {
    const char *p = at;
    for (size_t i = 0; i < BLOCKS; i++) {
        const char *from = blocks[i].at;
        if (from && p >= from && p + bytes <= from + blocks[i].bytes)
            return 1;
    }
    return 0;
}

API void fake_cuda_enqueue(void *s, void (*run)(void *), void *argument, double microseconds) {
    stream *to = s;
    if (!to->captured) {
        run(argument);
        clock_now += microseconds;
        return;
    }
    graph *g = to->captured;
    if (g->n == g->room) {
        g->room = 2 * g->room + 16;
        g->items = realloc(g->items, g->room * sizeof *g->items);
    }
    g->items[g->n++] = (work){run, argument, microseconds};
}

API int cuInit(unsigned flags) {
#ifdef FAKE_CRASH
    abort();
#endif
    return flags ? INVALID : FAKE_DEVICES ? OK : NO_DEVICE;
}

API int cuDriverGetVersion(int *version) {
    *version = FAKE_VERSION;
    return OK;
}

API int cuGetErrorString(int error, const char **text) {
    *text = error == NO_MEMORY ? "out of memory" : error == BAD_IMAGE ? "bad image" : "bad value";
    return OK;
}

API int cuDeviceGetCount(int *n) {
    *n = FAKE_DEVICES;
    return OK;
}

API int cuDeviceGet(int *device, int number) {
    *device = number;
    return OK;
}

API int cuDeviceGetName(char *name, int size, int device) {
    snprintf(name, (size_t)size, "Fake GPU %d", device);
    return OK;
}

API int cuDeviceGetAttribute(int *value, int attribute, int device) {
    static const int known[][2] = {{13, 1000000}, {16, 4},      {38, 1 << 20}, {75, FAKE_MAJOR},
                                   {76, 0},       {81, 233472}, {82, 65536},   {97, 232448}};
    (void)device;
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (known[i][0] == attribute) {
            *value = known[i][1];
            return OK;
        }
    return INVALID;
}

API int cuDeviceTotalMem_v2(size_t *bytes, int device) {
    (void)device;
    *bytes = (size_t)1 << 30;
    return OK;
}

API int cuDevicePrimaryCtxRetain(void **context, int device) {
    (void)device;
    *context = &clock_now;
    return OK;
}

API int cuDevicePrimaryCtxRelease_v2(int device) {
    (void)device;
    return OK;
}

API int cuCtxSetCurrent(void *context) {
    return context == &clock_now ? OK : INVALID;
}

/* --- memory --- */

API int cuMemGetInfo_v2(size_t *unused, size_t *total) {
    *unused = *total = (size_t)1 << 30;
    return OK;
}

/* Others have all but this. */
enum { LEFT = 192 << 20 };

API int cuMemAlloc_v2(uint64_t *memory, size_t bytes) {
    size_t taken = 0;
    if (bytes == 0)
        return INVALID;
    for (size_t i = 0; i < BLOCKS; i++)
        taken += blocks[i].at ? blocks[i].bytes : 0;
    if (bytes > LEFT || taken > LEFT - bytes)
        return NO_MEMORY;
    for (size_t i = 0; i < BLOCKS; i++)
        if (!blocks[i].at) {
            blocks[i].at = aligned_alloc(256, (bytes + 255) / 256 * 256);
            if (!blocks[i].at)
                return NO_MEMORY;
            blocks[i].bytes = bytes;
            memset(blocks[i].at, 0xff, bytes < 1 << 20 ? bytes : 1 << 20);
            *memory = (uint64_t)(uintptr_t)blocks[i].at;
            return OK;
        }
    return NO_MEMORY;
}

API int cuMemFree_v2(uint64_t memory) {
    for (size_t i = 0; i < BLOCKS; i++)
        if (blocks[i].at == (void *)(uintptr_t)memory) {
            free(blocks[i].at);
            blocks[i].at = NULL;
            return OK;
        }
    return INVALID;
}

/* From ordinary memory, on a stream of petopt's own: one without would not be waited for there. */
API int cuMemcpyHtoDAsync_v2(uint64_t to, const void *from, size_t bytes, void *s) {
    if (!s || ((stream *)s)->captured || !fake_cuda_holds((void *)(uintptr_t)to, bytes))
        return INVALID;
    memcpy((void *)(uintptr_t)to, from, bytes);
    return OK;
}

API int cuMemcpyDtoH_v2(void *to, uint64_t from, size_t bytes) {
    if (!fake_cuda_holds((void *)(uintptr_t)from, bytes))
        return INVALID;
    memcpy(to, (void *)(uintptr_t)from, bytes);
    return OK;
}

typedef struct moved {
    char *to;
    const char *from;
    unsigned char value;
    size_t bytes;
} moved;

static void move(void *argument) {
    const moved *m = argument;
    if (m->from)
        memmove(m->to, m->from, m->bytes);
    else
        memset(m->to, m->value, m->bytes);
}

static int enqueue_move(moved m, void *s) {
    if (!fake_cuda_holds(m.to, m.bytes) || (m.from && !fake_cuda_holds(m.from, m.bytes)))
        return INVALID;
    moved *kept = malloc(sizeof m);
    if (!kept)
        return NO_MEMORY;
    *kept = m;
    fake_cuda_enqueue(s, move, kept, 1 + (double)m.bytes * 1e-6);
    return OK;
}

API int cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t bytes, void *s) {
    return enqueue_move((moved){(char *)(uintptr_t)to, (char *)(uintptr_t)from, 0, bytes}, s);
}

API int cuMemsetD8Async(uint64_t to, unsigned char value, size_t bytes, void *s) {
    return enqueue_move((moved){(char *)(uintptr_t)to, NULL, value, bytes}, s);
}

/* --- modules --- */

typedef struct function {
    fake_cuda_kernel *run;
    int n_args, shared;
} function;

API int cuModuleLoadData(void **module, const void *image) {
    const char *text = image;
    if (strncmp(text, "fake ", 5) != 0)
        return BAD_IMAGE;
    *module = dlopen(text + 5, RTLD_NOW | RTLD_LOCAL);
    return *module ? OK : BAD_IMAGE;
}

API int cuModuleUnload(void *module) {
    return dlclose(module) ? INVALID : OK;
}

API int cuModuleGetFunction(void **out, void *module, const char *name) {
    char args[200];
    snprintf(args, sizeof args, "%s_args", name);
    void *run = dlsym(module, name);
    const int *n = dlsym(module, args);
    function *f = run && n ? calloc(1, sizeof *f) : NULL;
    if (!f)
        return NOT_FOUND;
    memcpy(&f->run, &run, sizeof run);
    f->n_args = *n;
    *out = f;
    return OK;
}

API int cuFuncSetAttribute(void *f, int attribute, int value) {
    if (attribute != 8 || value < 0 || value > 232448)
        return INVALID;
    ((function *)f)->shared = value;
    return OK;
}

API int cuFuncGetAttribute(int *value, int attribute, void *f) {
    *value = attribute == 8 ? ((function *)f)->shared : 0;
    return OK;
}

typedef struct launch {
    const function *f;
    unsigned grid[3], threads;
    uint64_t values[PARAMETERS];
    void *parameters[PARAMETERS];
} launch;

static void run_launch(void *argument) {
    launch *l = argument;
    l->f->run(l->parameters, l->grid, l->threads);
}

API int cuLaunchKernel(void *function_, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                       unsigned by, unsigned bz, unsigned shared, void *s, void **parameters,
                       void **extra) {
    const function *f = function_;
    if (!gx || !gy || !gz || bx == 0 || bx > 1024 || by != 1 || bz != 1 || extra ||
        f->n_args > PARAMETERS || (shared > 49152 && (int)shared > f->shared))
        return INVALID;
    launch *l = calloc(1, sizeof *l);
    if (!l)
        return NO_MEMORY;
    *l = (launch){.f = f, .grid = {gx, gy, gz}, .threads = bx};
    for (int i = 0; i < f->n_args; i++) {
        memcpy(&l->values[i], parameters[i], 8);
        l->parameters[i] = &l->values[i];
    }
    fake_cuda_enqueue(s, run_launch, l, 10);
    return OK;
}

/* --- streams, events, graphs --- */

API int cuStreamCreate(void **out, unsigned flags) {
    (void)flags;
    *out = calloc(1, sizeof(stream));
    return *out ? OK : NO_MEMORY;
}

API int cuStreamSynchronize(void *s) {
    return ((stream *)s)->captured ? INVALID : OK;
}

API int cuStreamDestroy_v2(void *s) {
    free(s);
    return OK;
}

API int cuStreamBeginCapture_v2(void *s, int mode) {
    stream *to = s;
    (void)mode;
    if (to->captured)
        return INVALID;
    to->captured = calloc(1, sizeof *to->captured);
    return to->captured ? OK : NO_MEMORY;
}

API int cuStreamEndCapture(void *s, void **out) {
    stream *from = s;
    *out = from->captured;
    from->captured = NULL;
    return *out ? OK : INVALID;
}

API int cuEventCreate(void **event, unsigned flags) {
    (void)flags;
    *event = calloc(1, sizeof(double));
    return *event ? OK : NO_MEMORY;
}

API int cuEventRecord(void *event, void *s) {
    if (((stream *)s)->captured)
        return INVALID;
    *(double *)event = clock_now;
    return OK;
}

API int cuEventSynchronize(void *event) {
    return event ? OK : INVALID;
}

API int cuEventElapsedTime(float *milliseconds, void *from, void *to) {
    *milliseconds = (float)((*(double *)to - *(double *)from) * 1e-3);
    return OK;
}

API int cuEventDestroy_v2(void *event) {
    free(event);
    return OK;
}

API int cuGraphInstantiateWithFlags(void **exec, void *g, unsigned long long flags) {
    *exec = g;
    return flags ? INVALID : OK;
}

API int cuGraphGetNodes(void *g, void **nodes, size_t *n) {
    *n = ((graph *)g)->n;
    return nodes ? INVALID : OK;
}

API int cuGraphLaunch(void *exec, void *s) {
    const graph *g = exec;
    for (size_t i = 0; i < g->n; i++)
        fake_cuda_enqueue(s, g->items[i].run, g->items[i].argument, g->items[i].microseconds - 2);
    return OK;
}

API int cuGraphExecDestroy(void *exec) {
    return exec ? OK : INVALID;
}

API int cuGraphDestroy(void *g) {
    return g ? OK : INVALID;
}

/* A CUDA driver whose device is the emulator. Streams work at once, unless they are captured; then
 * what is asked of them is kept and runs when its graph is launched. What a driver would refuse is
 * refused: copies outside buffers, more shared memory than was asked for, images for other
 * architectures, what may not be done while a stream is captured. */
#include "driver_private.h"
#include "emulated_build.h"

#include <dlfcn.h>
#include <elf.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static char device_name[128] = "NVIDIA A100-SXM4-40GB";
static uint32_t device_arch = 80;
static bool started;
static int context; /* its address is the primary context */
static __thread void *current;
static function *functions;
pthread_mutex_t driver_lock = PTHREAD_MUTEX_INITIALIZER;

void emu_device(const char *name, uint32_t arch) {
    (void)snprintf(device_name, sizeof device_name, "%s", name);
    device_arch = arch;
}

/* --- errors --- */

static const struct {
    int error;
    const char *name, *text;
} errors[] = {
    {GOOD, "CUDA_SUCCESS", "no error"},
    {INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {NOT_INITIALIZED, "CUDA_ERROR_NOT_INITIALIZED", "initialization error"},
    {INVALID_DEVICE, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
    {INVALID_IMAGE, "CUDA_ERROR_INVALID_IMAGE", "device kernel image is invalid"},
    {INVALID_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
    {NO_BINARY, "CUDA_ERROR_NO_BINARY_FOR_GPU", "no kernel image is available for execution"},
    {INVALID_HANDLE, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
    {NOT_FOUND, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
    {LAUNCH_OUT_OF_RESOURCES, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES",
     "too many resources requested for launch"},
    {CAPTURE_UNSUPPORTED, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED",
     "operation not permitted when stream is capturing"},
    {CAPTURE_INVALIDATED, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED",
     "operation failed due to a previous error during capture"},
};

int cuGetErrorString(int error, const char **text) {
    if (error == ILLEGAL_ADDRESS) { /* what the emulator saw */
        *text = emu_error()[0] ? emu_error() : "an illegal memory access was encountered";
        return GOOD;
    }
    for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++)
        if (errors[i].error == error) {
            *text = errors[i].text;
            return GOOD;
        }
    *text = NULL;
    return INVALID_VALUE;
}

int cuGetErrorName(int error, const char **text) {
    *text = error == ILLEGAL_ADDRESS ? "CUDA_ERROR_ILLEGAL_ADDRESS" : NULL;
    for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++)
        if (errors[i].error == error)
            *text = errors[i].name;
    return *text ? GOOD : INVALID_VALUE;
}

int driver_fault(void) {
    return emu_error()[0] ? ILLEGAL_ADDRESS : GOOD;
}

int driver_ready(void) {
    return !started ? NOT_INITIALIZED : !current ? INVALID_CONTEXT : driver_fault();
}

/* --- the device --- */

int cuInit(unsigned flags) {
    started = true;
    return flags ? INVALID_VALUE : GOOD;
}

int cuDriverGetVersion(int *version) {
    *version = 13000;
    return GOOD;
}

int cuGetProcAddress_v2(const char *symbol, void **entry, int version, uint64_t flags,
                        int *status) {
    char name[128];
    (void)version;
    (void)flags;
    static int anchor;
    Dl_info info;
    void *self = dladdr(&anchor, &info) ? dlopen(info.dli_fname, RTLD_NOW | RTLD_NOLOAD) : NULL;
    (void)snprintf(name, sizeof name, "%s_v2", symbol);
    *entry = self ? dlsym(self, name) : NULL;
    if (self && !*entry)
        *entry = dlsym(self, symbol);
    if (self)
        (void)dlclose(self);
    if (status)
        *status = *entry ? 0 : 1;
    return *entry ? GOOD : NOT_FOUND;
}

int cuDeviceGetCount(int *n) {
    *n = 1;
    return started ? GOOD : NOT_INITIALIZED;
}

int cuDeviceGet(int *device, int number) {
    *device = 0;
    return !started ? NOT_INITIALIZED : number ? INVALID_DEVICE : GOOD;
}

int cuDeviceGetName(char *name, int size, int device) {
    (void)snprintf(name, (size_t)size, "%s", device_name);
    return device ? INVALID_DEVICE : GOOD;
}

int cuDeviceTotalMem_v2(size_t *bytes, int device) {
    *bytes = total_memory;
    return device ? INVALID_DEVICE : GOOD;
}

static uint32_t shared_of_block(void) {
    switch (device_arch) {
    case 80:
    case 87:
        return 163 << 10;
    case 90:
    case 100:
    case 103:
        return 227 << 10;
    default:
        return 99 << 10;
    }
}

int cuDeviceGetAttribute(int *value, int attribute, int device) {
    static const struct {
        int attribute, value;
    } rest[] = {{1, 1024},     {2, 1024},  {3, 1024},        {4, 64},     {5, 0x7fffffff},
                {6, 65535},    {7, 65535}, {8, SHARED_FREE}, {10, 32},    {12, 65536},
                {13, 1410000}, {16, 108},  {36, 1215000},    {37, 5120},  {38, 40 << 20},
                {39, 2048},    {40, 2},    {41, 1},          {82, 65536}, {106, 32},
                {111, 1024},   {115, 1},   {31, 1},          {18, 0},     {20, 0},
                {17, 0},       {83, 1},    {89, 1},          {95, 1}};
    if (device)
        return INVALID_DEVICE;
    switch (attribute) {
    case 75:
        *value = (int)(device_arch / 10);
        return GOOD;
    case 76:
        *value = (int)(device_arch % 10);
        return GOOD;
    case 81:
        *value = (int)shared_of_block() + 1024;
        return GOOD;
    case 97:
        *value = (int)shared_of_block();
        return GOOD;
    }
    for (size_t i = 0; i < sizeof rest / sizeof rest[0]; i++)
        if (rest[i].attribute == attribute) {
            *value = rest[i].value;
            return GOOD;
        }
    return INVALID_VALUE;
}

/* --- contexts: the primary one --- */

int cuDevicePrimaryCtxRetain(void **out, int device) {
    *out = &context;
    return !started ? NOT_INITIALIZED : device ? INVALID_DEVICE : GOOD;
}

int cuDevicePrimaryCtxRelease_v2(int device) {
    return device ? INVALID_DEVICE : GOOD;
}

int cuCtxSetCurrent(void *c) {
    if (c && c != &context)
        return INVALID_CONTEXT;
    current = c;
    return GOOD;
}

int cuCtxGetCurrent(void **c) {
    *c = current;
    return GOOD;
}

enum { DEPTH = 64 };
static __thread void *pushed[DEPTH];
static __thread uint32_t n_pushed;

int cuCtxPushCurrent_v2(void *c) {
    void *last = current;
    if (n_pushed == DEPTH || !c || cuCtxSetCurrent(c) != GOOD)
        return INVALID_CONTEXT;
    pushed[n_pushed++] = last;
    return GOOD;
}

int cuCtxPopCurrent_v2(void **c) {
    if (!current)
        return INVALID_CONTEXT;
    if (c)
        *c = current;
    current = n_pushed ? pushed[--n_pushed] : NULL;
    return GOOD;
}

int cuStreamGetCtx(void *on, void **c) {
    (void)on;
    *c = &context;
    return GOOD;
}

int cuCtxGetDevice(int *device) {
    *device = 0;
    return current ? GOOD : INVALID_CONTEXT;
}

int cuCtxSynchronize(void) {
    READY();
    return GOOD;
}

/* --- memory --- */

int cuMemGetInfo_v2(size_t *unused, size_t *total) {
    READY();
    *unused = total_memory;
    *total = total_memory;
    return GOOD;
}

int cuMemAlloc_v2(uint64_t *memory, size_t bytes) {
    READY();
    if (bytes == 0)
        return INVALID_VALUE;
    if (bytes > total_memory)
        return OUT_OF_MEMORY;
    (void)pthread_mutex_lock(&driver_lock);
    *memory = (uint64_t)(uintptr_t)emu_alloc(bytes);
    (void)pthread_mutex_unlock(&driver_lock);
    return *memory ? GOOD : OUT_OF_MEMORY;
}

int cuMemFree_v2(uint64_t memory) {
    (void)pthread_mutex_lock(&driver_lock);
    bool good = memory == 0 || emu_free((void *)(uintptr_t)memory);
    (void)pthread_mutex_unlock(&driver_lock);
    return good ? GOOD : INVALID_VALUE;
}

int cuMemAllocAsync(uint64_t *memory, size_t bytes, void *on) {
    (void)on;
    return cuMemAlloc_v2(memory, bytes);
}

int cuMemFreeAsync(uint64_t memory, void *on) {
    (void)on;
    return cuMemFree_v2(memory);
}

int cuMemAllocHost_v2(void **memory, size_t bytes) {
    *memory = malloc(bytes ? bytes : 1);
    return *memory ? GOOD : OUT_OF_MEMORY;
}

int cuMemFreeHost(void *memory) {
    free(memory);
    return GOOD;
}

static void *at(uint64_t memory) {
    return (void *)(uintptr_t)memory;
}

static int copy(void *to, const void *from, size_t bytes, bool to_device, bool from_device,
                void *on) {
    READY();
    if ((to_device && !emu_holds(to, bytes)) || (from_device && !emu_holds(from, bytes)))
        return INVALID_VALUE;
    return driver_ask(on, &(node){.action = COPY, .to = to, .from = from, .bytes = bytes});
}

int cuMemcpyHtoD_v2(uint64_t to, const void *from, size_t bytes) {
    return copy(at(to), from, bytes, true, false, NULL);
}

int cuMemcpyDtoH_v2(void *to, uint64_t from, size_t bytes) {
    return copy(to, at(from), bytes, false, true, NULL);
}

int cuMemcpyDtoD_v2(uint64_t to, uint64_t from, size_t bytes) {
    return copy(at(to), at(from), bytes, true, true, NULL);
}

int cuMemcpyHtoDAsync_v2(uint64_t to, const void *from, size_t bytes, void *on) {
    return copy(at(to), from, bytes, true, false, on);
}

int cuMemcpyDtoHAsync_v2(void *to, uint64_t from, size_t bytes, void *on) {
    return copy(to, at(from), bytes, false, true, on);
}

int cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t bytes, void *on) {
    return copy(at(to), at(from), bytes, true, true, on);
}

static int fill(action how, uint64_t to, unsigned value, size_t bytes, void *on) {
    READY();
    if (!emu_holds(at(to), bytes))
        return INVALID_VALUE;
    return driver_ask(on, &(node){.action = how, .to = at(to), .bytes = bytes, .value = value});
}

int cuMemsetD8_v2(uint64_t to, unsigned char value, size_t n) {
    return fill(FILL8, to, value, n, NULL);
}

int cuMemsetD32_v2(uint64_t to, unsigned value, size_t n) {
    return fill(FILL32, to, value, 4 * n, NULL);
}

int cuMemsetD8Async(uint64_t to, unsigned char value, size_t n, void *on) {
    return fill(FILL8, to, value, n, on);
}

int cuMemsetD32Async(uint64_t to, unsigned value, size_t n, void *on) {
    return fill(FILL32, to, value, 4 * n, on);
}

/* --- modules --- */

static size_t elf_bytes(const unsigned char *image) {
    Elf64_Ehdr h;
    memcpy(&h, image, sizeof h);
    return h.e_shoff + (size_t)h.e_shnum * h.e_shentsize;
}

static bool write_library(const void *image, const char *path) {
    FILE *f = fopen(path, "wb");
    if (!f)
        return false;
    size_t n = elf_bytes(image);
    bool good = fwrite(image, 1, n, f) == n;
    return fclose(f) == 0 && good;
}

int cuModuleLoadData(void **out, const void *image) {
    static const char ptx[] = "//.version ";
    char folder[128], library[160], *log = NULL;
    READY();
    if (!emu_folder(folder, sizeof folder))
        return OUT_OF_MEMORY;
    (void)snprintf(library, sizeof library, "%s/kernel.so", folder);
    bool good = false;
    if (memcmp(image, ELFMAG, SELFMAG) == 0)
        good = write_library(image, library);
    else if (strncmp(image, ptx, sizeof ptx - 1) == 0)
        good = emu_build(image, device_arch, library, &log);
    free(log);
    void *handle = good ? dlopen(library, RTLD_NOW | RTLD_LOCAL) : NULL;
    emu_folder_remove(folder);
    if (!handle)
        return INVALID_IMAGE;
    unsigned (*arch)(void);
    *(void **)&arch = dlsym(handle, "emu_arch");
    /* A cubin serves its own major version, from its minor one on. */
    unsigned made = arch ? arch() : 0;
    if (made / 10 != device_arch / 10 || made > device_arch) {
        (void)dlclose(handle);
        return NO_BINARY;
    }
    module *m = calloc(1, sizeof *m);
    if (!m)
        return OUT_OF_MEMORY;
    m->library = handle;
    *out = m;
    return GOOD;
}

int cuModuleLoadDataEx(void **out, const void *image, unsigned n, int *options, void **values) {
    (void)n;
    (void)options;
    (void)values;
    return cuModuleLoadData(out, image);
}

int cuModuleUnload(void *handle) {
    module *m = handle;
    if (!m)
        return INVALID_HANDLE;
    (void)pthread_mutex_lock(&driver_lock);
    for (function **p = &functions; *p;) {
        function *f = *p;
        if (f->from == m) {
            *p = f->next;
            free(f);
        } else {
            p = &f->next;
        }
    }
    (void)pthread_mutex_unlock(&driver_lock);
    (void)dlclose(m->library);
    free(m);
    return GOOD;
}

int cuModuleGetFunction(void **out, void *handle, const char *name) {
    module *m = handle;
    char symbol[EMU_NAME + 16];
    READY();
    if (strlen(name) >= EMU_NAME)
        return NOT_FOUND;
    function *f = calloc(1, sizeof *f);
    if (!f)
        return OUT_OF_MEMORY;
    (void)snprintf(symbol, sizeof symbol, "%s__call", name);
    *(void **)&f->entry = dlsym(m->library, symbol);
    const unsigned *(*sizes)(void);
    (void)snprintf(symbol, sizeof symbol, "%s__sizes", name);
    *(void **)&sizes = dlsym(m->library, symbol);
    if (!f->entry || !sizes) {
        free(f);
        return NOT_FOUND;
    }
    f->sizes = sizes();
    f->from = m;
    f->shared_limit = SHARED_FREE;
    (void)snprintf(f->name, sizeof f->name, "%s", name);
    (void)pthread_mutex_lock(&driver_lock);
    f->next = functions;
    functions = f;
    (void)pthread_mutex_unlock(&driver_lock);
    *out = f;
    return GOOD;
}

int cuFuncSetAttribute(void *handle, int attribute, int value) {
    function *f = handle;
    if (attribute == 9) /* preferred carve-out: a hint */
        return GOOD;
    if (attribute != 8 || value < 0 || (uint32_t)value > shared_of_block())
        return INVALID_VALUE;
    f->shared_limit = (uint32_t)value > SHARED_FREE ? (uint32_t)value : SHARED_FREE;
    return GOOD;
}

int cuFuncGetAttribute(int *value, int attribute, void *handle) {
    const function *f = handle;
    static const int values[] = {1024, 0, 0, 0, 32, 90, 90, 0};
    if (attribute == 8)
        *value = (int)f->shared_limit;
    else if (attribute >= 0 && attribute < 8)
        *value = values[attribute];
    else
        return INVALID_VALUE;
    return GOOD;
}

int cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, void *handle, int threads,
                                                size_t shared) {
    (void)handle;
    if (threads <= 0 || threads > 1024)
        return INVALID_VALUE;
    size_t by_threads = 2048 / (size_t)threads;
    size_t by_shared = (shared_of_block() + 1024) / (shared + 1024);
    *blocks = (int)(by_threads < by_shared ? by_threads : by_shared);
    return GOOD;
}

int cuLaunchKernel(void *handle, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                   unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared, void *on,
                   void **parameters, void **extra) {
    const function *f = handle;
    READY();
    if (!f || extra || block_y != 1 || block_z != 1 || !grid_x || !grid_y || !grid_z || !block_x ||
        block_x > 1024 || grid_y > 65535 || grid_z > 65535 || shared > f->shared_limit)
        return INVALID_VALUE;
    node n = {
        .action = LAUNCH, .function = f, .shape = {{grid_x, grid_y, grid_z}, block_x, shared}};
    for (uint32_t i = 0; f->sizes[i]; i++) {
        if (i == ARGS || f->sizes[i] > 8)
            return INVALID_VALUE;
        memcpy(n.args + i, parameters[i], f->sizes[i]);
    }
    return driver_ask(on, &n);
}

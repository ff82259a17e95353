/* NVRTC by dlopen: a table of its functions, and a library that is no newer than the driver's CUDA.
 * Registers, stack and spills of each kernel are read from what ptxas prints. */
#include "codegen/cuda/nvrtc.h"

#include "po_config.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const uint32_t po_cuda_archs[PO_CUDA_ARCHS] = {80, 86, 89, 90, 100};

/* It stays in memory once it was opened: it keeps some of its own until the process ends. */
enum { FLAGS = RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE };
enum {
    OLDEST_MAJOR = 12,
    OLDEST_MINOR = 8,
    FIRST_WITH_CACHE = 12090,
    SAID_LINES = 3,
    SYMBOL = 256
};

/* NVRTC's functions: results are 0 or an error. */
#define NVRTC_FUNCTIONS(F)                                                                         \
    F(const char *, nvrtcGetErrorString, (int))                                                    \
    F(int, nvrtcVersion, (int *, int *))                                                           \
    F(int, nvrtcCreateProgram,                                                                     \
      (void **, const char *, const char *, int, const char *const *, const char *const *))        \
    F(int, nvrtcDestroyProgram, (void **))                                                         \
    F(int, nvrtcCompileProgram, (void *, int, const char *const *))                                \
    F(int, nvrtcGetProgramLogSize, (void *, size_t *))                                             \
    F(int, nvrtcGetProgramLog, (void *, char *))                                                   \
    F(int, nvrtcGetCUBINSize, (void *, size_t *))                                                  \
    F(int, nvrtcGetCUBIN, (void *, char *))                                                        \
    F(int, nvrtcGetPTXSize, (void *, size_t *))                                                    \
    F(int, nvrtcGetPTX, (void *, char *))

struct po_nvrtc {
    void *library;
    const char *version;
    int cuda;
#define MEMBER(returns, name, parameters) returns(*name) parameters;
    NVRTC_FUNCTIONS(MEMBER)
#undef MEMBER
};

static const struct {
    const char *name;
    size_t at;
} rows[] = {
#define ROW(returns, name, parameters) {#name, offsetof(po_nvrtc, name)},
    NVRTC_FUNCTIONS(ROW)
#undef ROW
};

/* --- the library --- */

/* The system's by its names, where the toolkit puts it, and what petopt was built beside. */
static const char *const names[] = {"libnvrtc.so.13",
                                    "libnvrtc.so.12",
                                    "/usr/local/cuda/lib64/libnvrtc.so.13",
                                    "/usr/local/cuda/lib64/libnvrtc.so.12",
                                    PO_NVRTC_LIBRARY,
                                    "libnvrtc.so"};

static void close_library(void *user) {
    (void)dlclose(user);
}

static void *open_any(void) {
    void *library = NULL;
    for (size_t i = 0; i < sizeof names / sizeof names[0] && !library; i++)
        if (names[i][0])
            library = dlopen(names[i], FLAGS);
    return library;
}

static const char *line_of(po_arena *arena, const char *text) {
    char *line = po_arena_strdup(arena, text ? text : "");
    line[strcspn(line, "\n")] = '\0';
    return line;
}

po_status po_nvrtc_open(po_ctx *ctx, po_arena *arena, const char *library, po_nvrtc **nvrtc) {
    po_nvrtc *n = PO_NEW(arena, po_nvrtc);
    int major = 0, minor = 0;
    n->library = library ? dlopen(library, FLAGS) : open_any();
    if (!n->library && library && access(library, F_OK) == 0)
        return po_fail(ctx, PO_UNSUPPORTED, "NVRTC '%s' cannot be opened: %s", library,
                       line_of(arena, dlerror()));
    if (!n->library)
        return po_fail(ctx, PO_UNSUPPORTED,
                       "kernels for NVIDIA GPUs need NVRTC, which was not found (%s)",
                       library ? library : "libnvrtc.so.13 or .12");
    po_arena_defer(arena, close_library, n->library);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        void *found = dlsym(n->library, rows[i].name);
        if (!found)
            return po_fail(ctx, PO_UNSUPPORTED, "NVRTC is too old, or none: it has no %s",
                           rows[i].name);
        memcpy((char *)n + rows[i].at, &found, sizeof found);
    }
    if (n->nvrtcVersion(&major, &minor) != 0 || major < OLDEST_MAJOR ||
        (major == OLDEST_MAJOR && minor < OLDEST_MINOR))
        return po_fail(ctx, PO_UNSUPPORTED, "NVRTC %d.%d is too old: %d.%d is needed", major, minor,
                       OLDEST_MAJOR, OLDEST_MINOR);
    n->version = po_arena_printf(arena, "%d.%d", major, minor);
    n->cuda = 1000 * major + 10 * minor;
    *nvrtc = n;
    return PO_OK;
}

static po_status find_up_to(po_ctx *ctx, po_arena *arena, const char *folder, long newest,
                            po_nvrtc **nvrtc) {
    const char *const places[] = {folder, "", "/usr/local/cuda/lib64"};
    static const struct {
        const char *file;
        long major;
    } files[] = {{"libnvrtc.so.13", 13}, {"libnvrtc.so.12", 12}};
    for (size_t p = folder ? 0 : 1; p < sizeof places / sizeof places[0]; p++)
        for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
            const char *path = *places[p]
                                   ? po_arena_printf(arena, "%s/%s", places[p], files[i].file)
                                   : files[i].file;
            if (files[i].major > newest || (*places[p] && access(path, F_OK) != 0))
                continue;
            po_status status = po_nvrtc_open(ctx, arena, path, nvrtc);
            if (status == PO_OK || p == 0) /* what a user names is not passed over */
                return status;
            po_ctx_clear(ctx);
        }
    return po_nvrtc_open(ctx, arena, NULL, nvrtc);
}

po_status po_nvrtc_find(po_ctx *ctx, po_arena *arena, const char *folder, const char *driver,
                        po_nvrtc **nvrtc) {
    long newest = driver ? strtol(driver, NULL, 10) : LONG_MAX;
    PO_TRY(find_up_to(ctx, arena, folder, newest, nvrtc));
    if ((*nvrtc)->cuda / 1000 > newest)
        return po_fail(ctx, PO_UNSUPPORTED,
                       "what NVRTC %s makes needs a driver for CUDA %d, and this one is for CUDA "
                       "%s: it needs NVRTC %ld (--cuda-libraries says where)",
                       (*nvrtc)->version, (*nvrtc)->cuda / 1000, driver, newest);
    return PO_OK;
}

const char *po_nvrtc_version(const po_nvrtc *nvrtc) {
    return nvrtc->version;
}

int po_nvrtc_cuda(const po_nvrtc *nvrtc) {
    return nvrtc->cuda;
}

/* --- what ptxas says of kernels --- */

/* The number that stands before `words`, not past the end of the line; 0. */
static uint32_t number_before(const char *line, const char *words) {
    const char *end = line + strcspn(line, "\n"), *at = strstr(line, words);
    if (!at || at > end)
        return 0;
    while (at > line && at[-1] == ' ')
        at--;
    while (at > line && at[-1] >= '0' && at[-1] <= '9')
        at--;
    return (uint32_t)strtoul(at, NULL, 10);
}

typedef struct found_usage {
    po_cuda_usage usage;
    const char *at; /* where the source names it */
} found_usage;

static int by_place(const void *a, const void *b) {
    const found_usage *x = a, *y = b;
    return x->at < y->at ? -1 : x->at > y->at;
}

/* Where a source defines a kernel: the first mark of its name as a whole word. */
static const char *place_of(const char *source, const char *symbol) {
    size_t n = strlen(symbol);
    for (const char *at = source; (at = strstr(at, symbol)); at += n) {
        char before = (char)(at == source ? ' ' : at[-1]), after = at[n];
        if (!strchr("_abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789", before) &&
            (after == '(' || after == ' ' || after == '\n'))
            return at;
    }
    return source;
}

static po_status read_usage(po_ctx *ctx, po_arena *arena, const char *log, const char *source,
                            const char *what, po_cuda_image *image) {
    static const char entry[] = "Compiling entry function '";
    found_usage *all = NULL, *u = NULL;
    uint32_t n = 0, cap = 0;
    bool complete = true;
    for (const char *line = log; *line; line += strcspn(line, "\n"), line += *line != '\0') {
        size_t length = strcspn(line, "\n");
        const char *at = strstr(line, entry);
        if (at && at < line + length) {
            char symbol[SYMBOL];
            at += sizeof entry - 1;
            size_t size = strcspn(at, "'\n");
            size = size < SYMBOL ? size : SYMBOL - 1;
            memcpy(symbol, at, size);
            symbol[size] = '\0';
            complete &= !u || u->usage.registers;
            found_usage fresh = {.usage.symbol = po_arena_strdup(arena, symbol),
                                 .at = place_of(source, symbol)};
            PO_PUSH(arena, all, n, cap, fresh);
            u = &all[n - 1];
        } else if (u) {
            u->usage.spills += number_before(line, " bytes spill stores") +
                               number_before(line, " bytes spill loads");
            u->usage.stack += number_before(line, " bytes stack frame");
            u->usage.shared += number_before(line, " bytes smem");
            u->usage.registers += number_before(line, " registers");
        }
    }
    if (!complete || !u || !u->usage.registers)
        return po_fail(ctx, PO_UNSUPPORTED,
                       "%s: NVRTC does not say what registers its kernels take: '%s'", what,
                       line_of(arena, log));
    qsort(all, n, sizeof *all, by_place);
    po_cuda_usage *usage = PO_NEW_N(arena, po_cuda_usage, n);
    for (uint32_t i = 0; i < n; i++)
        usage[i] = all[i].usage;
    image->n_usage = n;
    image->usage = usage;
    return PO_OK;
}

/* --- compiling --- */

typedef struct holder {
    const po_nvrtc *nvrtc;
    void *program;
} holder;

static void destroy(void *user) {
    holder *h = user;
    if (h->program)
        (void)h->nvrtc->nvrtcDestroyProgram(&h->program);
}

static const char *log_of(po_arena *arena, const po_nvrtc *n, void *program) {
    size_t size = 0;
    if (n->nvrtcGetProgramLogSize(program, &size) != 0)
        return "";
    char *log = po_arena_alloc(arena, size + 1);
    memset(log, 0, size + 1);
    return n->nvrtcGetProgramLog(program, log) == 0 ? log : "";
}

/* The first lines that say something, side by side. */
static const char *first_lines(po_arena *arena, const char *log) {
    po_text text;
    uint32_t lines = 0;
    po_text_init(&text, arena);
    for (const char *line = log; *line && lines < SAID_LINES;) {
        size_t length = strcspn(line, "\n"), skip = strspn(line, " ");
        if (skip < length) {
            po_text_puts(&text, lines++ ? " | " : "");
            po_text_add(&text, line + skip, length - skip);
        }
        line += length + (line[length] != '\0');
    }
    return lines ? text.data : "";
}

static po_status compile(po_ctx *ctx, po_arena *arena, po_arena *scratch, const po_nvrtc *n,
                         const char *source, const char *what, po_cuda_image *image) {
    holder *h = PO_NEW(scratch, holder);
    const char *target = po_arena_printf(scratch, "--gpu-architecture=%s_%u",
                                         image->ptx ? "compute" : "sm", image->arch);
    const char *options[4] = {target, "--std=c++17"};
    int n_options = 2;
    if (!image->ptx)
        options[n_options++] = "--ptxas-options=-v";
    /* A program from NVRTC's cache comes without what ptxas says. The cache lies in a folder that
     * is not ours to write, and to ask for it NVRTC starts the driver in this process, whose
     * children can use no GPU from then on. */
    if (n->cuda >= FIRST_WITH_CACHE)
        options[n_options++] = "--no-cache";
    size_t size = 0;
    *h = (holder){.nvrtc = n};
    po_arena_defer(scratch, destroy, h);
    int rc = n->nvrtcCreateProgram(&h->program, source, "kernels.cu", 0, NULL, NULL);
    if (rc == 0)
        rc = n->nvrtcCompileProgram(h->program, n_options, options);
    const char *log = h->program ? log_of(scratch, n, h->program) : "";
    if (rc != 0)
        return po_fail(ctx, PO_UNSUPPORTED, "%s does not compile for %s (%s): %s", what,
                       strchr(target, '=') + 1, n->nvrtcGetErrorString(rc),
                       first_lines(scratch, log));
    rc = image->ptx ? n->nvrtcGetPTXSize(h->program, &size)
                    : n->nvrtcGetCUBINSize(h->program, &size);
    char *data = po_arena_alloc(arena, size + 1);
    if (rc == 0)
        rc = image->ptx ? n->nvrtcGetPTX(h->program, data) : n->nvrtcGetCUBIN(h->program, data);
    if (rc != 0 || size == 0)
        return po_fail(ctx, PO_UNSUPPORTED, "%s: NVRTC makes nothing for %s (%s)", what,
                       strchr(target, '=') + 1, n->nvrtcGetErrorString(rc));
    image->bytes = (po_bytes){data, size};
    return image->ptx ? PO_OK : read_usage(ctx, arena, log, source, what, image);
}

po_status po_nvrtc_compile(po_ctx *ctx, po_arena *arena, const po_nvrtc *nvrtc, const char *source,
                           const char *what, uint32_t arch, bool ptx, po_cuda_image *image) {
    po_arena *scratch = po_arena_child(arena);
    *image = (po_cuda_image){.arch = arch, .ptx = ptx};
    po_status status = compile(ctx, arena, scratch, nvrtc, source, what, image);
    po_arena_free(scratch);
    return status;
}

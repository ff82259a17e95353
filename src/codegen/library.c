/* Prints the library around kernels, and builds it in memory. */
#include "codegen/library.h"

#include "base/folder.h"
#include "codegen/compile.h"
#include "codegen/shipped.h"

#include <errno.h>
#include <fcntl.h>
#include <onnxruntime_c_api.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

/* What is shipped was written without the runtime's header: it says the same. */
#define PK_API(name, slot)                                                                         \
    _Static_assert(offsetof(OrtApi, name) == (slot) * sizeof(void *), "place of " #name);
#define PK_OP(name, slot)                                                                          \
    _Static_assert(offsetof(struct OrtCustomOp, name) == (slot) * sizeof(void *),                  \
                   "place of " #name);
#include "codegen/shipped/ort_slots.def"
#undef PK_API
#undef PK_OP

/* --- printing --- */

static void print_dims(po_text *out, const char *name, const char *what, uint32_t k,
                       const po_kernel_port *p) {
    po_text_printf(out, "static const int64_t %s_%s%u[] = {", name, what, k);
    for (uint32_t i = 0; i < p->rank; i++)
        po_text_printf(out, "%s%lld", i ? ", " : "", (long long)p->dims[i]);
    po_text_puts(out, p->rank ? "};\n" : "0};\n");
}

static void print_ports(po_text *out, const char *name, const char *what, uint32_t n,
                        const po_kernel_port *ports) {
    for (uint32_t i = 0; i < n; i++)
        print_dims(out, name, what, i, &ports[i]);
    po_text_printf(out, "static const pk_port %s_%s[] = {", name, what);
    for (uint32_t i = 0; i < n; i++)
        po_text_printf(out, "%s{%u, %s_%s%u}", i ? ", " : "", ports[i].rank, name, what, i);
    po_text_puts(out, n ? "};\n" : "{0}};\n");
}

static void print_declarations(po_text *out, const po_kernel *k) {
    po_text_printf(out, "\n/* %s */\n", k->what ? k->what : k->name);
    for (uint32_t i = 0; i < PO_ISAS; i++) {
        if (!k->code[i])
            continue;
        const char *n = k->name, *isa = po_isas[i].name;
        po_text_printf(
            out,
            "extern const size_t %s_%s_device, %s_%s_scratch;\n"
            "void %s_%s_start(float *device);\n"
            "void %s_%s(const float *const *in, const float *const *weight,\n"
            "    float *const *out, float *device, float *scratch, const pk_pool *pool);\n",
            n, isa, n, isa, n, isa, n, isa);
    }
    print_ports(out, k->name, "in", k->n_in, k->in);
    print_ports(out, k->name, "out", k->n_out, k->out);
    po_text_printf(out, "static const int64_t %s_weights[] = {", k->name);
    for (uint32_t i = 0; i < k->n_weights; i++)
        po_text_printf(out, "%s%lld", i ? ", " : "", (long long)k->weight_floats[i]);
    po_text_puts(out, k->n_weights ? "};\n" : "0};\n");
}

static void print_row(po_text *out, const po_kernel *k) {
    po_text_printf(out, "    {\"%s\", %u, %u, %u, %s_in, %s_out, %s_weights, {", k->name, k->n_in,
                   k->n_weights, k->n_out, k->name, k->name, k->name);
    for (uint32_t i = 0; i < PO_ISAS; i++) {
        const char *n = k->name, *isa = po_isas[i].name;
        if (k->code[i])
            po_text_printf(
                out, "%s\n        {\"%s\", &%s_%s_device, &%s_%s_scratch, %s_%s_start, %s_%s}",
                i ? "," : "", isa, n, isa, n, isa, n, isa, n, isa);
        else
            po_text_printf(out, "%s {0}", i ? "," : "");
    }
    po_text_puts(out, "}},\n");
}

/* What the compiler may use is what the processor must have: -mNAME. */
static void print_features(po_text *out, uint32_t isa) {
    po_text_printf(out, "    supported[%u] = (PK_ALLOW & %u) != 0", isa, 1u << isa);
    char flags[512];
    snprintf(flags, sizeof flags, "%s", po_isas[isa].flags);
    for (char *save = NULL, *f = strtok_r(flags, " ", &save); f; f = strtok_r(NULL, " ", &save))
        if (strncmp(f, "-m", 2) == 0 && !strchr(f, '='))
            po_text_printf(out, " &&\n        __builtin_cpu_supports(\"%s\")", f + 2);
    po_text_puts(out, ";\n");
}

/* The source of the library itself, without its kernels (petopt_kernels.c). */
static void print_source(const po_kernel *kernels, uint32_t n, po_text *out) {
    po_text_puts(out, "/* The table of this model's kernels; see README.md. */\n"
                      "#include \"petopt_ort.h\"\n\n"
                      "/* Bits of the instruction sets that may be used; tests leave some out. */\n"
                      "#ifndef PK_ALLOW\n#define PK_ALLOW 3\n#endif\n");
    for (uint32_t i = 0; i < n; i++)
        print_declarations(out, &kernels[i]);
    po_text_puts(out, "\nstatic const pk_region regions[] = {\n");
    for (uint32_t i = 0; i < n; i++)
        print_row(out, &kernels[i]);
    po_text_puts(out, "};\n\nstatic void find_supported(bool *supported) {\n"
                      "    __builtin_cpu_init();\n");
    for (uint32_t i = 0; i < PO_ISAS; i++)
        print_features(out, i);
    po_text_puts(
        out, "}\n\n"
             "__attribute__((visibility(\"default\"))) OrtStatus *\n"
             "RegisterCustomOps(OrtSessionOptions *options, const OrtApiBase *base);\n\n"
             "OrtStatus *RegisterCustomOps(OrtSessionOptions *options, const OrtApiBase *base) {\n"
             "    bool supported[PK_ISAS];\n"
             "    find_supported(supported);\n"
             "    return pk_register(options, base, regions, sizeof regions / sizeof regions[0], "
             "supported);\n"
             "}\n");
}

/* --- sources --- */

typedef struct building {
    po_ctx *ctx;
    po_arena *arena;
    const po_library_spec *spec;
    po_library *library;
    po_library_file *files;
    const char **flags; /* by file; NULL: nothing to compile */
    uint32_t n, cap, cap_flags;
} building;

static void add_file(building *b, const char *name, const char *text, const char *flags) {
    uint32_t n = b->n;
    PO_PUSH(b->arena, b->flags, n, b->cap_flags, flags);
    PO_PUSH(b->arena, b->files, b->n, b->cap, ((po_library_file){name, text}));
}

static const char *flags_of(building *b, const char *isa) {
    const char *more = b->spec->flags;
    return po_arena_printf(b->arena, "%s%s%s", isa, *isa && more ? " " : "", more ? more : "");
}

static void make_sources(building *b) {
    po_text source;
    po_text_init(&source, b->arena);
    print_source(b->spec->kernels, b->spec->n_kernels, &source);
    add_file(b, "petopt_kernels.c", source.data, flags_of(b, ""));
    add_file(b, "petopt_ort.h", po_shipped_petopt_ort_h, NULL);
    add_file(b, "ort_slots.def", po_shipped_ort_slots_def, NULL);
    for (uint32_t i = 0; i < b->spec->n_kernels; i++)
        for (uint32_t isa = 0; isa < PO_ISAS; isa++) {
            const po_kernel *k = &b->spec->kernels[i];
            if (k->code[isa])
                add_file(b, po_arena_printf(b->arena, "%s_%s.c", k->name, po_isas[isa].name),
                         k->code[isa], flags_of(b, po_isas[isa].flags));
        }
}

static po_hash hash_sources(const building *b) {
    po_hash hash = {0, 0};
    for (uint32_t i = 0; i < b->n; i++) {
        hash = po_hash_str(po_hash_str(hash, b->files[i].name), b->files[i].text);
        hash = po_hash_str(hash, b->flags[i]);
    }
    return hash;
}

/* --- building --- */

static void close_descriptor(void *user) {
    close(*(int *)user);
}

static po_status write_temporary(building *b, po_arena *temporary, const char *folder,
                                 const po_library_file *file, const char **path) {
    char *name = po_arena_printf(temporary, "%s/%s", folder, file->name);
    *path = name;
    FILE *f = fopen(name, "we");
    bool written = f && fputs(file->text, f) != EOF;
    if (!f || fclose(f) != 0 || !written)
        return po_fail(b->ctx, PO_IO, "%.300s: cannot be written (%s)", name, strerror(errno));
    return PO_OK;
}

static po_status compile(building *b, po_arena *temporary, const char **so_path) {
    const char *folder;
    PO_TRY(po_folder_temporary(b->ctx, temporary, &folder));
    po_cc_source *sources = PO_NEW_N(temporary, po_cc_source, b->n);
    uint32_t n = 0;
    for (uint32_t i = 0; i < b->n; i++) {
        const char *path;
        PO_TRY(write_temporary(b, temporary, folder, &b->files[i], &path));
        if (b->flags[i])
            sources[n++] = (po_cc_source){.path = path, .flags = b->flags[i]};
    }
    char *so = po_arena_printf(temporary, "%s/" PO_LIBRARY_NAME, folder);
    *so_path = so;
    return po_cc_library(b->ctx, b->spec->cc, sources, n, folder, so);
}

/* Copies the object to where only descriptors lead. */
static po_status keep_object(building *b, po_bytes object) {
    int *fd = PO_NEW(b->arena, int);
    *fd = memfd_create(PO_LIBRARY_NAME, MFD_CLOEXEC);
    if (*fd < 0)
        return po_fail(b->ctx, PO_IO, "no memory file for the library (%s)", strerror(errno));
    po_arena_defer(b->arena, close_descriptor, fd);
    po_writer *w = po_writer_on_fd(b->ctx, b->arena, *fd, "the library in memory");
    po_writer_put(w, object.data, object.size);
    PO_TRY(po_writer_finish(w));
    b->library->path = po_arena_printf(b->arena, "/proc/self/fd/%d", *fd);
    b->library->object.data = po_arena_memdup(b->arena, object.data, object.size);
    b->library->object.size = object.size;
    return PO_OK;
}

static po_hash object_key(const building *b) {
    po_hash key = po_hash_str(hash_sources(b), PO_CC_FLAGS);
    return po_hash_str(key, b->spec->cc ? b->spec->cc : "");
}

static po_status build(building *b, po_arena *temporary) {
    const po_object_store *store = b->spec->store;
    const char *so_path = NULL;
    po_bytes known;
    if (store && store->find(store->user, temporary, object_key(b), &known))
        return keep_object(b, known);
    PO_TRY(compile(b, temporary, &so_path));
    int fd;
    po_content object;
    PO_TRY(po_file_open(b->ctx, temporary, AT_FDCWD, so_path, O_RDONLY, &fd));
    PO_TRY(po_file_content(b->ctx, temporary, fd, so_path, &object));
    PO_TRY(keep_object(b, (po_bytes){(const char *)object.data, object.size}));
    if (store)
        store->keep(store->user, object_key(b), b->library->object);
    return PO_OK;
}

po_status po_library_build(po_ctx *ctx, po_arena *arena, const po_library_spec *spec,
                           const po_library **out) {
    po_library *library = PO_NEW(arena, po_library);
    building b = {.ctx = ctx, .arena = arena, .spec = spec, .library = library};
    make_sources(&b);
    po_arena *temporary = po_arena_create(ctx);
    po_status status = build(&b, temporary);
    po_arena_free(temporary);
    PO_TRY(status);
    library->files = b.files;
    library->flags = b.flags;
    library->n_files = b.n;
    library->hash = hash_sources(&b);
    *out = library;
    return PO_OK;
}

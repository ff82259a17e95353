/* Prints the library around kernels for the CPU. */
#include "codegen/delivery/library.h"

#include "codegen/delivery/shipped.h"

#include <onnxruntime_c_api.h>
#include <stdio.h>

/* What is shipped was written without the runtime's header: it says the same. */
#define PK_API(name, slot)                                                                         \
    _Static_assert(offsetof(OrtApi, name) == (slot) * sizeof(void *), "place of " #name);
#define PK_OP(name, slot)                                                                          \
    _Static_assert(offsetof(struct OrtCustomOp, name) == (slot) * sizeof(void *),                  \
                   "place of " #name);
#include "codegen/delivery/shipped/ort_slots.def"
#undef PK_API
#undef PK_OP

/* Defined where there is no code for an instruction set, which stands behind it. */
#define WITHOUT "PK_WITHOUT_"

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
        po_text_printf(out, "%s{%u, %s_%s%u, PK_F32}", i ? ", " : "", ports[i].rank, name, what, i);
    po_text_puts(out, n ? "};\n" : "{0}};\n");
}

static void print_range(po_text *out, const po_size_range *r) {
    po_text_puts(out, " &&\n        ");
    po_codegen_length(r->of, out);
    po_text_printf(out, " >= %lld", (long long)r->least);
    if (r->most == 0)
        return;
    po_text_puts(out, " &&\n        ");
    po_codegen_length(r->of, out);
    po_text_printf(out, " <= %lld", (long long)r->most);
}

/* The dims of ports by the lengths that a call is given. */
static void print_lengths(po_text *out, const po_kernel *k) {
    po_text_printf(out, "static const pk_given %s_given[] = {", k->name);
    for (uint32_t i = 0; i < k->n_given; i++)
        po_text_printf(out, "%s{%u, %u, %lld}", i ? ", " : "", k->given[i].input, k->given[i].axis,
                       (long long)k->given[i].multiple);
    po_text_printf(out, "};\nstatic int %s_lengths(const int64_t *given, int64_t *dims) {\n",
                   k->name);
    for (uint32_t i = 0; i < k->n_given; i++)
        po_text_printf(out, "    const int64_t %s = given[%u];\n", k->names[i], i);
    for (uint32_t i = 0; i < k->n_given; i++)
        po_text_printf(out, "    (void)%s;\n", k->names[i]);
    for (uint32_t i = 0; i < k->n_in + k->n_out; i++) {
        const po_kernel_port *p = i < k->n_in ? &k->in[i] : &k->out[i - k->n_in];
        for (uint32_t d = 0; d < p->rank; d++) {
            po_text_printf(out, "    if (dims)\n        dims[%u * PK_MAX_RANK + %u] = ", i, d);
            if (p->open[d].symbol)
                po_codegen_length(p->open[d], out);
            else
                po_text_printf(out, "%lld", (long long)p->dims[d]);
            po_text_puts(out, ";\n");
        }
    }
    po_text_puts(out, "    return 1");
    for (uint32_t i = 0; i < k->n_equal; i++) {
        po_text_puts(out, " &&\n        ");
        po_codegen_length(k->equal[i].a, out);
        po_text_puts(out, " == ");
        po_codegen_length(k->equal[i].b, out);
    }
    for (uint32_t i = 0; i < k->n_meant; i++)
        print_range(out, &k->meant[i]);
    po_text_puts(out, ";\n}\n");
}

static void print_declarations(po_text *out, const po_kernel *k) {
    po_text_printf(out, "\n/* %s */\n", k->what ? k->what : k->name);
    for (uint32_t i = 0; i < PO_ISAS; i++) {
        if (!k->code[i])
            continue;
        const char *n = k->name, *isa = po_isas[i].name;
        po_text_printf(out,
                       "#ifndef " WITHOUT "%s\n"
                       "extern const size_t %s_%s_sizes;\n"
                       "void %s_%s_measure(const int64_t *given, int64_t *z);\n"
                       "void %s_%s_start(float *device, const int64_t *z);\n"
                       "void %s_%s(const float *const *in, const float *const *weight,\n"
                       "    float *const *out, float *device, float *scratch, const int64_t *z,\n"
                       "    const pk_pool *pool);\n"
                       "#endif\n",
                       isa, n, isa, n, isa, n, isa, n, isa);
    }
    print_ports(out, k->name, "in", k->n_in, k->in);
    print_ports(out, k->name, "out", k->n_out, k->out);
    po_text_printf(out, "static const int64_t %s_weights[] = {", k->name);
    for (uint32_t i = 0; i < k->n_weights; i++)
        po_text_printf(out, "%s%lld", i ? ", " : "", (long long)k->weight_floats[i]);
    po_text_puts(out, k->n_weights ? "};\n" : "0};\n");
    if (k->n_given > 0)
        print_lengths(out, k);
}

static void print_code(po_text *out, const po_kernel *k) {
    po_text_printf(out, "static const pk_kernel_code %s_code[PK_ISAS] = {\n", k->name);
    for (uint32_t i = 0; i < PO_ISAS; i++) {
        const char *n = k->name, *isa = po_isas[i].name;
        if (k->code[i])
            po_text_printf(out,
                           "#ifndef " WITHOUT "%s\n"
                           "    [%u] = {\"%s\", &%s_%s_sizes, %s_%s_measure, %s_%s_start, %s_%s},\n"
                           "#endif\n",
                           isa, i, isa, n, isa, n, isa, n, isa, n, isa);
    }
    po_text_puts(out, "};\n");
}

/* A pk_region. */
static void print_row(po_text *out, const po_kernel *k) {
    po_text_printf(out, "{\"%s\", %u, %u, %u, %s_in, %s_out, %s_weights, NULL, %s_code, %u",
                   k->name, k->n_in, k->n_weights, k->n_out, k->name, k->name, k->name, k->name,
                   k->n_given);
    if (k->n_given > 0)
        po_text_printf(out, ", %s_given, %s_lengths", k->name, k->name);
    else
        po_text_puts(out, ", NULL, NULL");
    if (k->rest)
        po_text_printf(out, ", &%s_batched}", k->name);
    else
        po_text_puts(out, ", NULL}");
}

static void print_part(po_text *out, const po_kernel *k) {
    print_declarations(out, k);
    print_code(out, k);
    po_text_printf(out, "static const pk_region %s = ", k->name);
    print_row(out, k);
    po_text_printf(out, ";\nstatic const size_t %s_from[] = {", k->name);
    for (uint32_t i = 0; i < k->n_in; i++)
        po_text_printf(out, "%s%u", i ? ", " : "", k->from[i]);
    po_text_puts(out, k->n_in ? "};\n" : "0};\n");
}

static void print_batched(po_text *out, const po_kernel *k) {
    if (k->head)
        print_part(out, k->head);
    print_part(out, k->rest);
    po_text_printf(out, "static const pk_batched %s_batched = {", k->name);
    for (int i = 0; i < 2; i++) {
        const po_kernel *part = i == 0 ? k->head : k->rest;
        if (part)
            po_text_printf(out, "%s{&%s, %s_from}", i ? ", " : "", part->name, part->name);
        else
            po_text_puts(out, "{NULL, NULL}");
    }
    po_text_puts(out, "};\n");
}

/* What the compiler may use is what the processor must have: -mNAME. */
static void print_features(po_text *out, uint32_t isa) {
    const char *and = "";
    po_text_printf(out, "    supported[%u] = ", isa);
    char flags[512];
    snprintf(flags, sizeof flags, "%s", po_isas[isa].flags);
    for (char *save = NULL, *f = strtok_r(flags, " ", &save); f; f = strtok_r(NULL, " ", &save))
        if (strncmp(f, "-m", 2) == 0 && !strchr(f, '='))
            po_text_printf(out, "%s__builtin_cpu_supports(\"%s\")", and, f + 2),
                and = " &&\n        ";
    po_text_puts(out, ";\n");
}

/* The source of the library itself, without its kernels (petopt_kernels.c). */
static void print_source(const po_kernel *kernels, uint32_t n, po_text *out) {
    po_text_puts(out, "/* The table of this model's kernels; see README.md. */\n"
                      "#include \"petopt_ort.h\"\n");
    for (uint32_t i = 0; i < n; i++) {
        print_declarations(out, &kernels[i]);
        print_code(out, &kernels[i]);
        if (kernels[i].rest)
            print_batched(out, &kernels[i]);
    }
    po_text_puts(out, "\nstatic const pk_region regions[] = {\n");
    for (uint32_t i = 0; i < n; i++) {
        po_text_puts(out, "    ");
        print_row(out, &kernels[i]);
        po_text_puts(out, ",\n");
    }
    po_text_puts(out, "};\n\nstatic void find_supported(bool *supported) {\n"
                      "    __builtin_cpu_init();\n");
    for (uint32_t i = 0; i < PO_ISAS; i++)
        print_features(out, i);
    po_text_puts(
        out,
        "}\n\n"
        "__attribute__((visibility(\"default\"))) OrtStatus *\n"
        "RegisterCustomOps(OrtSessionOptions *options, const OrtApiBase *base);\n\n"
        "OrtStatus *RegisterCustomOps(OrtSessionOptions *options, const OrtApiBase *base) {\n"
        "    bool supported[PK_ISAS];\n"
        "    find_supported(supported);\n"
        "    return pk_register_cpu(options, base, regions, sizeof regions / sizeof regions[0], "
        "supported);\n"
        "}\n");
}

/* --- sources --- */

static const char *flags_of(po_arena *arena, const po_library_spec *spec, const char *isa) {
    const char *more = spec->flags;
    return po_arena_printf(arena, "%s%s%s", isa, *isa && more ? " " : "", more ? more : "");
}

static void add_sources(po_library_sources *s, const po_library_spec *spec) {
    po_text source;
    po_text_init(&source, s->arena);
    print_source(spec->kernels, spec->n_kernels, &source);
    po_library_add(s, "petopt_kernels.c", source.data, flags_of(s->arena, spec, ""));
    po_library_add(s, "petopt_ort.h", po_shipped_petopt_ort_h, NULL);
    po_library_add(s, "petopt_ort_api.h", po_shipped_petopt_ort_api_h, NULL);
    po_library_add(s, "petopt_kernel.h", po_shipped_petopt_kernel_h, NULL);
    po_library_add(s, "petopt_region.h", po_shipped_petopt_region_h, NULL);
    po_library_add(s, "ort_slots.def", po_shipped_ort_slots_def, NULL);
    for (uint32_t i = 0; i < spec->n_kernels; i++) {
        const po_kernel *k = &spec->kernels[i];
        for (uint32_t isa = 0; isa < PO_ISAS; isa++)
            if (k->code[isa])
                po_library_add_code(s, k->name, &po_isas[isa], k->code[isa],
                                    flags_of(s->arena, spec, po_isas[isa].flags),
                                    spec->foreign[isa]);
    }
}

/* -DPK_WITHOUT_avx512, NULL where this machine runs all code; *names: "avx512". */
static const char *without(po_arena *arena, const po_library_spec *spec, const char **names) {
    const char *flags = NULL;
    *names = "";
    for (uint32_t isa = 0; isa < PO_ISAS; isa++)
        if (spec->foreign[isa]) {
            flags = po_arena_printf(arena, "%s%s-D" WITHOUT "%s", flags ? flags : "",
                                    flags ? " " : "", po_isas[isa].name);
            *names =
                po_arena_printf(arena, "%s%s%s", *names, **names ? ", " : "", po_isas[isa].name);
        }
    return flags;
}

/* --- building --- */

#define ABOUT "for ONNX Runtime 1.17 or later on x86-64 Linux. "
#define DEPENDS                                                                                    \
    "The model does not depend on it: without the\n"                                               \
    "library, on an older processor, or with the library of another model it runs on the "         \
    "standard\n"                                                                                   \
    "operators that it carries for each of these.\n"
static const char about[] = ABOUT "It has code for AVX-512 and for AVX2 and\n"
                                  "picks by the processor that it is loaded on. " DEPENDS;

po_status po_library_build(po_ctx *ctx, po_arena *arena, const po_library_spec *spec,
                           const po_library **library) {
    po_library_sources s = {.arena = arena};
    add_sources(&s, spec);
    const char *names;
    po_library_parts parts = {.cc = spec->cc,
                              .store = spec->store,
                              .sources = &s,
                              .about = about,
                              .more = "",
                              .until = spec->until,
                              .without = without(arena, spec, &names)};
    parts.about_without =
        po_arena_printf(arena, ABOUT "There was no time to compile\ncode for %s. " DEPENDS, names);
    return po_library_compile(ctx, arena, &parts, library);
}

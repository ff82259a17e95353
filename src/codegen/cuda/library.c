/* Prints the library around kernels for NVIDIA GPUs. */
#include "codegen/cuda/library.h"

#include "codegen/delivery/shipped.h"

/* --- images --- */

/* As numbers of 8 bytes: compilers read these ten times as fast as single bytes. */
static void print_bytes(po_text *out, const char *name, const po_cuda_image *image) {
    po_text_printf(out, "\n/* %s for compute capability %u.%u */\nconst uint64_t %s[] = {",
                   image->ptx ? "PTX" : "machine code", image->arch / 10, image->arch % 10, name);
    for (size_t i = 0; i < image->bytes.size; i += 8) {
        size_t n = image->bytes.size - i < 8 ? image->bytes.size - i : 8;
        uint64_t word = 0;
        for (size_t k = 0; k < n; k++)
            word |= (uint64_t)(unsigned char)image->bytes.data[i + k] << (8 * k);
        po_text_printf(out, "%s0x%llx,", i % 32 == 0 ? "\n" : "", (unsigned long long)word);
    }
    po_text_puts(out, "};\n");
}

static const char *image_name(po_arena *arena, const po_cuda_kernel *k, const po_cuda_image *m) {
    return po_arena_printf(arena, "%s_%s%u", k->ports.name, m->ptx ? "ptx" : "sm", m->arch);
}

/* NAME_images.c. Numbers hold their first byte lowest, as all machines that CUDA runs on do. */
static const char *print_images(po_arena *arena, const po_cuda_kernel *k) {
    po_text out;
    po_text_init(&out, arena);
    po_text_printf(&out,
                   "/* %s.cu, compiled by NVRTC. */\n#include \"petopt_cuda.h\"\n\n"
                   "#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__\n"
                   "#error \"the numbers below are for little-endian machines\"\n#endif\n",
                   k->ports.name);
    for (uint32_t i = 0; i < k->n_images; i++)
        print_bytes(&out, image_name(arena, k, &k->images[i]), &k->images[i]);
    po_text_printf(&out, "\nconst pk_image %s_images[] = {\n", k->ports.name);
    for (uint32_t i = 0; i < k->n_images; i++) {
        const po_cuda_image *m = &k->images[i];
        po_text_printf(&out, "    {%u, %d, %s, %zu},\n", m->arch, m->ptx, image_name(arena, k, m),
                       m->bytes.size);
    }
    po_text_puts(&out, "};\n");
    return out.data;
}

/* --- the table --- */

static const char *const type_names[] = {
    [PO_MU_F32] = "PK_F32", [PO_MU_F16] = "PK_F16", [PO_MU_BF16] = "PK_BF16"};

static void print_ports(po_text *out, const char *name, const char *what, uint32_t n,
                        const po_kernel_port *ports, const po_mu_type *types) {
    for (uint32_t i = 0; i < n; i++) {
        po_text_printf(out, "static const int64_t %s_%s%u[] = {", name, what, i);
        for (uint32_t k = 0; k < ports[i].rank; k++)
            po_text_printf(out, "%s%lld", k ? ", " : "", (long long)ports[i].dims[k]);
        po_text_puts(out, ports[i].rank ? "};\n" : "0};\n");
    }
    po_text_printf(out, "static const pk_port %s_%s[] = {", name, what);
    for (uint32_t i = 0; i < n; i++)
        po_text_printf(out, "%s{%u, %s_%s%u, %s}", i ? ", " : "", ports[i].rank, name, what, i,
                       type_names[types[i]]);
    po_text_puts(out, n ? "};\n" : "{0}};\n");
}

static void print_weights(po_text *out, const po_cuda_kernel *k) {
    const po_kernel *p = &k->ports;
    po_text_printf(out, "static const int64_t %s_weights[] = {", p->name);
    for (uint32_t i = 0; i < p->n_weights; i++)
        po_text_printf(out, "%s%lld", i ? ", " : "", (long long)p->weight_floats[i]);
    po_text_puts(out, p->n_weights ? "};\n" : "0};\n");
    po_text_printf(out, "static const int %s_types[] = {", p->name);
    for (uint32_t i = 0; i < p->n_weights; i++)
        po_text_printf(out, "%s%s", i ? ", " : "", type_names[k->weights[i]]);
    po_text_puts(out, p->n_weights ? "};\n" : "0};\n");
}

static void print_args(po_text *out, const char *name, uint32_t i, const po_cuda_launch *launch) {
    static const char *const kinds[] = {[PO_CUDA_INPUT] = "PK_ARG_INPUT",
                                        [PO_CUDA_WEIGHT] = "PK_ARG_WEIGHT",
                                        [PO_CUDA_OUTPUT] = "PK_ARG_OUTPUT",
                                        [PO_CUDA_DEVICE] = "PK_ARG_DEVICE"};
    po_text_printf(out, "static const pk_arg %s_args%u[] = {", name, i);
    for (uint32_t a = 0; a < launch->n_args; a++) {
        const po_cuda_arg *arg = &launch->args[a];
        bool device = arg->kind == PO_CUDA_DEVICE;
        po_text_printf(out, "%s{%s, %u, %lld}", a ? ", " : "", kinds[arg->kind],
                       device ? 0 : arg->number, (long long)(device ? arg->offset : 0));
    }
    po_text_puts(out, launch->n_args ? "};\n" : "{PK_ARG_DEVICE, 0, 0}};\n");
}

static void print_comment(po_text *out, const char *text) {
    for (const char *c = text; *c; c++)
        po_text_add(out, *c == '/' && c > text && c[-1] == '*' ? " " : c, 1);
}

static void print_program(po_text *out, const po_cuda_kernel *k) {
    const char *name = k->ports.name;
    const po_cuda_program *p = &k->program;
    for (uint32_t i = 0; i < p->n_launches; i++)
        print_args(out, name, i, &p->launches[i]);
    po_text_printf(out, "static const pk_launch %s_launches[] = {\n", name);
    for (uint32_t i = 0; i < p->n_launches; i++) {
        const po_cuda_launch *l = &p->launches[i];
        po_text_puts(out, "    /* ");
        print_comment(out, l->what ? l->what : l->symbol);
        po_text_printf(out, " */\n    {\"%s\", {%u, %u, %u}, %u, %u, %u, %s_args%u},\n", l->symbol,
                       l->grid[0], l->grid[1], l->grid[2], l->threads, l->shared, l->n_args, name,
                       i);
    }
    po_text_puts(out, "};\n");
    po_text_printf(out,
                   "extern const pk_image %s_images[];\n"
                   "static const pk_program %s_program = {%u, %s_images, %u, %s_launches, %lld, "
                   "%d};\n",
                   name, name, k->n_images, name, p->n_launches, name, (long long)p->device,
                   k->cuda);
}

static const char *print_table(po_arena *arena, const po_cuda_library_spec *spec) {
    po_text out;
    po_text_init(&out, arena);
    po_text_puts(&out, "/* The table of this model's regions; see README.md. */\n"
                       "#include \"petopt_table.h\"\n");
    for (uint32_t i = 0; i < spec->n_kernels; i++) {
        const po_cuda_kernel *k = &spec->kernels[i];
        po_text_puts(&out, "\n/* ");
        print_comment(&out, k->ports.what ? k->ports.what : k->ports.name);
        po_text_puts(&out, " */\n");
        print_ports(&out, k->ports.name, "in", k->ports.n_in, k->ports.in, k->in);
        print_ports(&out, k->ports.name, "out", k->ports.n_out, k->ports.out, k->out);
        print_weights(&out, k);
        print_program(&out, k);
    }
    po_text_puts(&out, "\nconst pk_region pk_regions[] = {\n");
    for (uint32_t i = 0; i < spec->n_kernels; i++) {
        const po_kernel *p = &spec->kernels[i].ports;
        const char *n = p->name;
        po_text_printf(&out,
                       "    {\"%s\", %u, %u, %u, %s_in, %s_out, %s_weights, %s_types, "
                       "&%s_program},\n",
                       n, p->n_in, p->n_weights, p->n_out, n, n, n, n, n);
    }
    po_text_puts(&out, "};\n"
                       "const size_t pk_n_regions = sizeof pk_regions / sizeof pk_regions[0];\n");
    return out.data;
}

static const char source[] =
    "/* This model's kernels as operators of ONNX Runtime; see README.md. */\n"
    "#include \"petopt_ort_cuda.h\"\n\n"
    "__attribute__((visibility(\"default\"))) OrtStatus *\n"
    "RegisterCustomOps(OrtSessionOptions *options, const OrtApiBase *base);\n\n"
    "OrtStatus *RegisterCustomOps(OrtSessionOptions *options, const OrtApiBase *base) {\n"
    "    return pk_register_cuda(options, base);\n"
    "}\n";

/* --- the whole --- */

/* The shipped text with the files of these kernels in the place of @IMAGES@. */
static const char *print_cmake(po_arena *arena, const po_cuda_library_spec *spec) {
    static const char mark[] = "@IMAGES@";
    const char *text = po_shipped_tensorrt_CMakeLists_txt, *at = strstr(text, mark);
    po_text out;
    po_text_init(&out, arena);
    po_text_add(&out, text, (size_t)(at - text));
    for (uint32_t i = 0; i < spec->n_kernels; i++)
        po_text_printf(&out, "\n    ../%s_images.c", spec->kernels[i].ports.name);
    po_text_puts(&out, at + strlen(mark));
    return out.data;
}

static const char about[] =
    "for the CUDA provider of ONNX Runtime 1.18 or later on Linux, on NVIDIA GPUs of compute\n"
    "capability 8.0 or later. The model does not depend on it: without the library, where there "
    "is\n"
    "no such GPU, or with the library of another model it runs on the standard operators that it\n"
    "carries for each of these. It must run on the CUDA provider:\n"
    "`providers=[\"CUDAExecutionProvider\"]`.\n";

static const char more[] =
    "\n`*.cu` are the kernels' sources; `*_images.c` holds what NVRTC made of them. Compiled with\n"
    "another compiler they take the place of these numbers.\n\n"
    "TensorRT 10 or later takes the same kernels as plugins, one for each operator:\n\n"
    "    cmake -S tensorrt -B build && cmake --build build\n\n"
    "builds `libpetopt_tensorrt.so`; load it before the model is parsed (`trtexec\n"
    "--dynamicPlugins=build/libpetopt_tensorrt.so`, or `IPluginRegistry::loadLibrary`) and again\n"
    "before an engine is read. Parsers up to TensorRT 10.14 take a model's functions before\n"
    "plugins, and so run the standard operators.\n";

po_status po_cuda_library_build(po_ctx *ctx, po_arena *arena, const po_cuda_library_spec *spec,
                                const po_library **library) {
    po_library_sources s = {.arena = arena};
    const char *flags = spec->flags ? spec->flags : "";
    po_library_add(&s, "petopt_kernels.c", source, flags);
    po_library_add(&s, "petopt_table.c", print_table(arena, spec), flags);
    po_library_add(&s, "petopt_cuda.h", po_shipped_petopt_cuda_h, NULL);
    po_library_add(&s, "petopt_ort_api.h", po_shipped_petopt_ort_api_h, NULL);
    po_library_add(&s, "petopt_ort_cuda.h", po_shipped_petopt_ort_cuda_h, NULL);
    po_library_add(&s, "petopt_region.h", po_shipped_petopt_region_h, NULL);
    po_library_add(&s, "petopt_table.h", po_shipped_petopt_table_h, NULL);
    po_library_add(&s, "ort_slots.def", po_shipped_ort_slots_def, NULL);
    po_library_add(&s, "tensorrt/petopt_plugin.cpp", po_shipped_petopt_plugin_cpp, NULL);
    po_library_add(&s, "tensorrt/CMakeLists.txt", print_cmake(arena, spec), NULL);
    for (uint32_t i = 0; i < spec->n_kernels; i++) {
        const po_cuda_kernel *k = &spec->kernels[i];
        po_library_add(&s, po_arena_printf(arena, "%s.cu", k->ports.name), k->program.source, NULL);
        po_library_add(&s, po_arena_printf(arena, "%s_images.c", k->ports.name),
                       print_images(arena, k), flags);
    }
    po_library_parts parts = {
        .cc = spec->cc, .store = spec->store, .sources = &s, .about = about, .more = more};
    return po_library_compile(ctx, arena, &parts, library);
}

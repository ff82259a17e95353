/* delivery_make IN OUT DIR [FLAGS]: every Relu(Add(MatMul(x, w), b)) with static shapes, in f32 or
 * f16, becomes a call of two CUDA kernels written here, with memory between them; the library goes
 * to DIR, compiled with FLAGS. NVRTC is the system's: tests put their own in its place. Exit codes:
 * 0, 1 with the message on standard error. */
#include "codegen/cuda/library.h"
#include "codegen/delivery/shipped.h"
#include "dense.h"
#include "export/export.h"
#include "import/import.h"
#include "ops/op.h"

#include <stdio.h>

enum { MOST = 16, THREADS = 64 };

/* A block makes a row of x w + b in memory of the call's own, another one rounds and clips it. */
static const char code[] =
    "typedef %s T;\n"
    "#define LOAD(v) %s(v)\n"
    "#define STORE(v) %s(v)\n"
    "extern \"C\" __global__ void __launch_bounds__(%d) %s_0(const T *x, const T *w, const T *b,\n"
    "                                                      float *sum) {\n"
    "    PC_SHARED(memory);\n"
    "    float *row = (float *)memory;\n"
    "    for (int k = threadIdx.x; k < %d; k += blockDim.x)\n"
    "        row[k] = LOAD(x[blockIdx.x * %d + k]);\n"
    "    pc_barrier();\n"
    "    for (int n = threadIdx.x; n < %d; n += blockDim.x) {\n"
    "        float s = LOAD(b[n]);\n"
    "        for (int k = 0; k < %d; k++)\n"
    "            s += row[k] * LOAD(w[k * %d + n]);\n"
    "        sum[blockIdx.x * %d + n] = s;\n"
    "    }\n"
    "}\n"
    "extern \"C\" __global__ void __launch_bounds__(%d) %s_1(const float *sum, T *y) {\n"
    "    for (int n = threadIdx.x; n < %d; n += blockDim.x) {\n"
    "        float s = sum[blockIdx.x * %d + n];\n"
    "        y[blockIdx.x * %d + n] = STORE(s > 0.0f ? s : 0.0f);\n"
    "    }\n"
    "}\n";

typedef struct making {
    po_ctx *ctx;
    po_arena *arena;
    po_nvrtc *nvrtc;
    po_cuda_kernel kernels[MOST];
    uint32_t n;
} making;

static const struct {
    po_dtype dtype;
    po_mu_type type;
    const char *name, *element, *load, *store;
} kinds[] = {{PO_F32, PO_MU_F32, "f32", "float", "", ""},
             {PO_F16, PO_MU_F16, "f16", "pc_f16", "pc_from_f16", "pc_to_f16"},
             {PO_BF16, PO_MU_BF16, "bf16", "pc_bf16", "pc_from_bf16", "pc_to_bf16"}};
enum { KINDS = sizeof kinds / sizeof kinds[0] };

static const char *print_code(making *m, const char *name, const int *d, uint32_t kind) {
    const char *body = po_arena_printf(m->arena, code, kinds[kind].element, kinds[kind].load,
                                       kinds[kind].store, THREADS, name, d[1], d[1], d[2], d[1],
                                       d[2], d[2], THREADS, name, d[2], d[2], d[2]);
    return po_arena_printf(m->arena, "%s%s", po_shipped_cuda_prelude_cu, body);
}

static void set_launches(making *m, po_cuda_kernel *k, const int *d) {
    po_cuda_launch *l = PO_NEW_N(m->arena, po_cuda_launch, 2);
    po_cuda_arg *args = PO_NEW_N(m->arena, po_cuda_arg, 6);
    const int64_t offset = 512; /* that a place need not be the first is part of the test */
    args[0] = (po_cuda_arg){PO_CUDA_INPUT, 0, 0};
    args[1] = (po_cuda_arg){PO_CUDA_WEIGHT, 0, 0};
    args[2] = (po_cuda_arg){PO_CUDA_WEIGHT, 1, 0};
    args[3] = (po_cuda_arg){PO_CUDA_DEVICE, 0, offset};
    args[4] = args[3];
    args[5] = (po_cuda_arg){PO_CUDA_OUTPUT, 0, 0};
    for (uint32_t i = 0; i < 2; i++)
        l[i] = (po_cuda_launch){.symbol = po_arena_printf(m->arena, "%s_%u", k->ports.name, i),
                                .what = i ? "round */ and clip" : "product and bias",
                                .grid = {(uint32_t)d[0], 1, 1},
                                .threads = THREADS,
                                .shared = i ? 0 : 4 * (uint32_t)d[1],
                                .n_args = i ? 2 : 4,
                                .args = args + 4 * i};
    k->program.n_launches = 2;
    k->program.launches = l;
    k->program.device = offset + 4 * (int64_t)d[0] * d[2];
}

/* d: rows, inner length, columns. */
static po_status kernel_of(making *m, const int *d, uint32_t kind, const char **name) {
    *name = po_arena_printf(m->arena, "Test_%d_%d_%d_%s_v%d", d[0], d[1], d[2], kinds[kind].name,
                            PO_CUDA_KERNEL_ABI);
    for (uint32_t i = 0; i < m->n; i++)
        if (strcmp(m->kernels[i].ports.name, *name) == 0)
            return PO_OK;
    po_kernel_port *ports = PO_NEW_N(m->arena, po_kernel_port, 2);
    int64_t *elements = PO_NEW_N(m->arena, int64_t, 2);
    po_mu_type *types = PO_NEW_N(m->arena, po_mu_type, 2);
    ports[0] = (po_kernel_port){.rank = 2, .dims = {d[0], d[1]}};
    ports[1] = (po_kernel_port){.rank = 2, .dims = {d[0], d[2]}};
    elements[0] = (int64_t)d[1] * d[2];
    elements[1] = d[2];
    types[0] = types[1] = kinds[kind].type;
    po_cuda_kernel *k = &m->kernels[m->n++];
    *k = (po_cuda_kernel){.ports = {.name = *name,
                                    .what = "a dense */ layer",
                                    .n_in = 1,
                                    .n_weights = 2,
                                    .n_out = 1,
                                    .in = &ports[0],
                                    .out = &ports[1],
                                    .weight_floats = elements},
                          .in = types,
                          .weights = types,
                          .out = types};
    set_launches(m, k, d);
    k->program.source = print_code(m, *name, d, kind);
    return po_cuda_kernel_compile(m->ctx, m->arena, m->nvrtc, NULL, k);
}

static po_status take(making *m, po_graph *g, const dense *layer) {
    const int d[3] = {(int)layer->d[0], (int)layer->d[1], (int)layer->d[2]};
    uint32_t kind = 0;
    while (kind < KINDS && kinds[kind].dtype != g->values[layer->out[0]].type.dtype)
        kind++;
    const char *name;
    if (kind == KINDS)
        return PO_OK;
    PO_TRY(kernel_of(m, d, kind, &name));
    po_outline outline = dense_outline(layer, name);
    po_graph *body;
    po_node_id call;
    PO_TRY(po_graph_outline(m->ctx, g, &outline, &body, &call));
    po_node_set_string(g, call, "plugin_version", PO_PLUGIN_VERSION);
    po_node_set_string(g, call, "plugin_namespace", PO_PLUGIN_NAMESPACE);
    return PO_OK;
}

static po_status make(po_ctx *ctx, char **argv) {
    po_model *model;
    const po_library *library;
    making m = {.ctx = ctx, .arena = po_arena_create(ctx)};
    PO_TRY(po_nvrtc_open(ctx, m.arena, NULL, &m.nvrtc));
    PO_TRY(po_import_file(ctx, argv[1], &model));
    po_graph *g = po_graph_clone(ctx, model->graph);
    po_ops_resolve(g);
    PO_TRY(po_infer_graph(ctx, g, true));
    dense layer;
    for (po_node_id i = 0; i < g->n_nodes; i++)
        if (m.n < MOST && dense_at(g, i, &layer))
            PO_TRY(take(&m, g, &layer));
    po_graph_sweep(g);
    PO_TRY(po_graph_check(ctx, g));
    po_cuda_library_spec spec = {.kernels = m.kernels, .n_kernels = m.n, .flags = argv[4]};
    PO_TRY(po_cuda_library_build(ctx, m.arena, &spec, &library));
    PO_TRY(po_library_save(ctx, library, NULL, argv[3], argv[2]));
    return po_export_file(ctx, g, argv[2], NULL, NULL);
}

int main(int argc, char **argv) {
    po_ctx ctx;
    po_ctx_init(&ctx);
    po_guard guard;
    po_guard_push(&ctx, &guard);
    if (argc < 4 || argc > 5 || setjmp(guard.env) != 0)
        return 2;
    po_status status = make(&ctx, argv);
    if (status != PO_OK)
        fprintf(stderr, "%s\n", ctx.error.message);
    po_arenas_free_since(&ctx, guard.mark);
    po_guard_pop(&ctx, &guard);
    return status == PO_OK ? 0 : 1;
}

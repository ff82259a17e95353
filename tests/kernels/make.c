/* kernels_make IN OUT DIR [FLAGS]: every Relu(Add(MatMul(x, w), b)) with static shapes, in bodies
 * too, becomes a call whose kernel is the C text below; the library goes to DIR, compiled with
 * FLAGS. Exit codes: 0, 1 with the message on standard error. */
#include "codegen/delivery/library.h"
#include "dense.h"
#include "export/export.h"
#include "import/import.h"
#include "ops/op.h"
#include "ops/recipe/pack.h"

#include <stdio.h>

enum { PANEL = 4, MOST = 16 };

/* Rows are dealt out to the parts. The device memory says whether it was prepared, and whether two
 * calls share it. */
static const char code[] =
    "#include <stddef.h>\n"
    "typedef struct pk_pool {\n"
    "    size_t parts;\n"
    "    void (*run)(void *self, void (*fn)(void *arg, size_t part), void *arg);\n"
    "    void *self;\n"
    "} pk_pool;\n"
    "enum { M = %lld, K = %lld, N = %lld, P = 4 };\n"
    "const size_t %s_sizes = 2;\n"
    "void %s_measure(const long *given, long *z);\n"
    "void %s_measure(const long *given, long *z) { (void)given; z[0] = z[1] = 32; }\n"
    "void %s_start(float *device, const long *z);\n"
    "void %s_start(float *device, const long *z) { (void)z; device[0] = 7; device[1] = 0; }\n"
    "typedef struct job { const float *x, *w, *b; float *y, *scratch; size_t parts; } job;\n"
    "static void part(void *arg, size_t p) {\n"
    "    job *j = arg;\n"
    "    float *sum = j->scratch + p * 32;\n"
    "    for (size_t m = p * M / j->parts; m < (p + 1) * M / j->parts; m++)\n"
    "        for (size_t n = 0; n < N; n++) {\n"
    "            sum[n %% P] = j->b[n];\n"
    "            for (size_t k = 0; k < K; k++)\n"
    "                sum[n %% P] += j->x[m * K + k] * j->w[(n / P * K + k) * P + n %% P];\n"
    "            j->y[m * N + n] = sum[n %% P] > 0 ? sum[n %% P] : 0;\n"
    "        }\n"
    "}\n"
    "void %s(const float *const *in, const float *const *weight, float *const *out,\n"
    "        float *device, float *scratch, const long *z, const pk_pool *pool);\n"
    "void %s(const float *const *in, const float *const *weight, float *const *out,\n"
    "        float *device, float *scratch, const long *z, const pk_pool *pool) {\n"
    "    (void)z;\n"
    "    job j = {in[0], weight[0], weight[1], out[0], scratch, pool->parts};\n"
    "    float shared = device[1]++;\n"
    "    int aligned = ((size_t)device | (size_t)scratch) %% 64 == 0;\n"
    "    pool->run(pool->self, part, &j);\n"
    "    if (device[0] != 7 || shared != 0 || device[1] != 1 || !aligned)\n"
    "        out[0][0] = 12345;\n"
    "    device[1] = 0;\n"
    "}\n";

typedef struct making {
    po_arena *arena;
    po_kernel kernels[MOST];
    uint32_t n;
    uint32_t calls;
} making;

static const char *print_code(making *m, const char *name, const int64_t *d) {
    return po_arena_printf(m->arena, code, (long long)d[0], (long long)d[1], (long long)d[2], name,
                           name, name, name, name, name, name);
}

/* d: rows, inner length, columns. */
static const char *kernel_of(making *m, const int64_t *d) {
    const char *name = po_arena_printf(m->arena, "Test_%lld_%lld_%lld_v%d", (long long)d[0],
                                       (long long)d[1], (long long)d[2], PO_KERNEL_ABI);
    for (uint32_t i = 0; i < m->n; i++)
        if (strcmp(m->kernels[i].name, name) == 0)
            return name;
    po_kernel_port *in = PO_NEW(m->arena, po_kernel_port), *out = PO_NEW(m->arena, po_kernel_port);
    int64_t *floats = PO_NEW_N(m->arena, int64_t, 2);
    *in = (po_kernel_port){.rank = 2, .dims = {d[0], d[1]}};
    *out = (po_kernel_port){.rank = 2, .dims = {d[0], d[2]}};
    floats[0] = (d[2] + PANEL - 1) / PANEL * PANEL * d[1];
    floats[1] = d[2];
    po_kernel *k = &m->kernels[m->n++];
    *k = (po_kernel){.name = name,
                     .what = "a dense layer",
                     .n_in = 1,
                     .n_weights = 2,
                     .n_out = 1,
                     .in = in,
                     .out = out,
                     .weight_floats = floats};
    for (uint32_t isa = 0; isa < PO_ISAS; isa++)
        k->code[isa] =
            print_code(m, po_arena_printf(m->arena, "%s_%s", name, po_isas[isa].name), d);
    return name;
}

static po_status take(po_ctx *ctx, making *m, po_graph *g, const dense *layer) {
    const int64_t *d = layer->d, padded = (d[2] + PANEL - 1) / PANEL;
    po_packing packing = {3,           2, {padded, d[1], PANEL}, {1, 0, 2}, {d[1], padded * PANEL},
                          {d[1], d[2]}};
    po_value_id packed;
    po_outline outline = dense_outline(layer, kernel_of(m, d));
    PO_TRY(po_pack_add(ctx, g, "packed", layer->in[1], &packing, &packed));
    po_graph *body;
    po_node_id call;
    bool known = false;
    for (uint32_t i = 0; i < g->root->n_functions; i++)
        known = known || strcmp(g->root->functions[i].name, outline.name) == 0;
    PO_TRY(po_graph_outline(ctx, g, &outline, &body, &call));
    if (!known)
        PO_TRY(po_pack_unpack(ctx, body, body->inputs[1], &packing));
    po_graph_set_input(g, call, 1, packed);
    m->calls++;
    return PO_OK;
}

static po_status take_all(po_ctx *ctx, po_graph *g, void *user) {
    making *m = user;
    dense layer;
    for (po_node_id i = 0; i < g->n_nodes; i++)
        if (m->n < MOST && dense_at(g, i, &layer))
            PO_TRY(take(ctx, m, g, &layer));
    return PO_OK;
}

static po_status make(po_ctx *ctx, char **argv) {
    po_model *model;
    const po_library *library;
    making m = {.arena = po_arena_create(ctx)};
    PO_TRY(po_import_file(ctx, argv[1], &model));
    po_graph *g = po_graph_clone(ctx, model->graph);
    po_ops_resolve(g);
    PO_TRY(po_infer_graph(ctx, g, true));
    PO_TRY(po_graph_walk(ctx, g, take_all, &m));
    po_graph_sweep(g);
    PO_TRY(po_graph_check(ctx, g));
    po_library_spec spec = {.kernels = m.kernels, .n_kernels = m.n, .flags = argv[4]};
    PO_TRY(po_library_build(ctx, m.arena, &spec, &library));
    PO_TRY(po_library_save(ctx, library, NULL, argv[3], argv[2]));
    PO_TRY(po_export_file(ctx, g, argv[2], NULL, NULL));
    uint32_t inlined;
    PO_TRY(po_graph_inline(ctx, g, &inlined));
    PO_TRY(po_graph_check(ctx, g));
    if (inlined != m.calls)
        return po_fail(ctx, PO_INTERNAL, "%u calls made, %u inlined", m.calls, inlined);
    printf("%u calls, %u kernels\n", m.calls, m.n);
    return PO_OK;
}

int main(int argc, char **argv) {
    if (argc < 4)
        return 2;
    po_ctx ctx;
    po_ctx_init(&ctx);
    ctx.threads = 2;
    po_guard guard;
    po_guard_push(&ctx, &guard);
    po_status status = setjmp(guard.env) != 0 ? po_guard_unwind(&ctx, &guard) : make(&ctx, argv);
    if (status != PO_OK)
        fprintf(stderr, "%s\n", ctx.error.message);
    po_arenas_free_since(&ctx, 0);
    return status == PO_OK ? 0 : 1;
}

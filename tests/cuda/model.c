/* Whole models through the executor, on the emulated driver and on fakes of the libraries: what
 * comes out against the float64 reference, and what became of the nodes. */
#include "unit.h"

#include "ir/text.h"
#include "ops/op.h"
#include "pipeline/gpu/model.h"
#include "verify/inputs/inputs.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const po_cuda_options emulated = {.folder = EMULATED, .alone = true};

typedef struct fixture {
    po_ctx ctx;
    po_arena *arena;
    po_graph *g;
    po_feed feed;
    po_nvrtc *nvrtc;
    po_gpu_model model;
} fixture;

static void start(fixture *f, const char *text) {
    memset(f, 0, sizeof *f);
    po_ctx_init(&f->ctx);
    f->arena = po_arena_create(&f->ctx);
    po_inputs *plan;
    if (po_graph_parse(&f->ctx, text, &f->g) != PO_OK)
        fail_msg("%s", f->ctx.error.message);
    po_ops_resolve(f->g);
    assert_int_equal(po_infer_graph(&f->ctx, f->g, true), PO_OK);
    assert_int_equal(po_inputs_plan(&f->ctx, f->arena, f->g, f->g, &plan), PO_OK);
    assert_int_equal(po_inputs_make(&f->ctx, f->arena, plan, 0, PO_INPUTS_NORMAL, 3, &f->feed),
                     PO_OK);
    if (po_nvrtc_open(&f->ctx, f->arena, EMULATED "/libnvrtc.so.13", &f->nvrtc) != PO_OK)
        fail_msg("%s", f->ctx.error.message);
}

static void stop(fixture *f) {
    po_graph_free(f->g);
    po_arena_free(f->arena);
}

static const double *reference(fixture *f, int64_t *count) {
    const po_array **in = PO_NEW_N(f->arena, const po_array *, f->g->n_inputs);
    po_array **out = PO_NEW_N(f->arena, po_array *, f->g->n_outputs);
    for (uint32_t i = 0; i < f->g->n_inputs; i++) {
        po_array *a;
        assert_string_equal(f->feed.names[i], f->g->values[f->g->inputs[i]].name);
        assert_int_equal(po_array_from_tensor(&f->ctx, f->arena, f->feed.data[i].tensor, &a),
                         PO_OK);
        in[i] = a;
    }
    assert_int_equal(po_ref_graph(&f->ctx, f->arena, f->g, in, out, false), PO_OK);
    *count = out[0]->count;
    return out[0]->f;
}

/* Runs as steps of a library and kernels; largest error as a part of the largest magnitude. */
static double run(fixture *f, bool fuse) {
    const po_gpu_model_options options = {
        .gpu = po_gpu_named("H200"), .nvrtc = f->nvrtc, .arch = 80, .fuse = fuse};
    po_bytes direct, graph;
    int64_t count;
    if (po_gpu_model_make(&f->ctx, f->arena, f->g, &options, &f->feed, &f->model) != PO_OK)
        fail_msg("%s", f->ctx.error.message);
    const po_cuda_plan *plan = &f->model.plan;
    if (po_cuda_execute(&f->ctx, f->arena, &emulated, plan, false, &direct) != PO_OK)
        fail_msg("%s", f->ctx.error.message);
    if (po_cuda_execute(&f->ctx, f->arena, &emulated, plan, true, &graph) != PO_OK)
        fail_msg("%s", f->ctx.error.message);
    assert_int_equal(direct.size, graph.size);
    assert_memory_equal(direct.data, graph.data, direct.size);
    const double *want = reference(f, &count);
    bool half = f->g->values[f->g->outputs[0]].type.dtype == PO_F16;
    assert_int_equal(direct.size, (size_t)count * (half ? 2 : 4));
    double *got = PO_NEW_N(f->arena, double, count), worst = 0, largest = 0;
    po_cuda_load(half ? PO_MU_F16 : PO_MU_F32, direct.data, count, got);
    for (int64_t i = 0; i < count; i++) {
        assert_true(isfinite(got[i]));
        worst = fmax(worst, fabs(got[i] - want[i]));
        largest = fmax(largest, fabs(want[i]));
    }
    return worst / largest;
}

static uint32_t count_of(const fixture *f, po_gpu_unit_kind kind) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < f->model.n_units; i++)
        n += f->model.units[i].kind == kind;
    return n;
}

/* Residuals, pools, a flattened end: libraries take in what follows them, views cost nothing. */
static void convolutional(void **state) {
    (void)state;
    fixture f;
    start(&f, "graph net (x: f32[1,3,12,12]) -> (o) {\n"
              "  w1 = f32[8,3,3,3] random 1\n  b1 = f32[8] random 2\n"
              "  w2 = f32[8,8,3,3] random 3\n  w3 = f32[8,5] random 4\n  b3 = f32[5] random 5\n"
              "  s = i64[2] {1, 8}\n"
              "  c = Conv(x, w1, b1) {pads=[1,1,1,1]}\n  r = Relu(c)\n"
              "  p = MaxPool(r) {kernel_shape=[2,2], strides=[2,2]}\n"
              "  d = Conv(p, w2) {pads=[1,1,1,1]}\n  e = Add(d, p)\n  g = Relu(e)\n"
              "  a = GlobalAveragePool(g)\n  v = Reshape(a, s)\n"
              "  l = Gemm(v, w3, b3)\n  o = Softmax(l)\n}\n");
    assert_true(run(&f, false) < 1e-5);
    assert_int_equal(count_of(&f, PO_GPU_CONV), 2);
    assert_int_equal(count_of(&f, PO_GPU_MATMUL), 1);
    assert_int_equal(count_of(&f, PO_GPU_KERNELS), 3);
    assert_int_equal(f.model.units[0].n_nodes, 2);
    assert_true(run(&f, true) < 1e-5);
    assert_int_equal(count_of(&f, PO_GPU_CONV), 2);
    stop(&f);
}

/* The same small model as one region and node by node, in 16 bits; few rows and many, short rows
 * and long. */
static void fused(void **state) {
    (void)state;
    static const int sizes[][3] = {{4, 64, 32}, {2, 512, 768}, {1, 256, 40}, {16, 128, 64}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        char text[1024];
        fixture f;
        int rows = sizes[i][0], k = sizes[i][1], columns = sizes[i][2];
        snprintf(text, sizeof text,
                 "graph net (x: f16[%d,%d], z: f16[%d,%d]) -> (o) {\n"
                 "  g = f16[%d] random 1\n  w = f16[%d,%d] random 2\n  e = f16[] {0.001}\n"
                 "  ax = i64[1] {-1}\n"
                 "  q = Mul(x, x)\n  m = ReduceMean(q, ax)\n  n = Add(m, e)\n  s = Sqrt(n)\n"
                 "  h = Div(x, s)\n  k = Mul(h, g)\n  y = MatMul(k, w)\n  o = Add(y, z)\n}\n",
                 rows, k, rows, columns, k, k, columns);
        start(&f, text);
        double error = run(&f, true);
        if (!(error < 4e-3))
            fail_msg("%d x %d x %d: error %g", rows, k, columns, error);
        assert_int_equal(f.model.n_units, 1);
        assert_int_equal(f.model.units[0].n_nodes, 8);
        uint32_t launches = f.model.plan.n_steps;
        error = run(&f, false);
        if (!(error < 8e-3))
            fail_msg("%d x %d x %d, node by node: error %g", rows, k, columns, error);
        assert_int_equal(count_of(&f, PO_GPU_MATMUL), 1);
        assert_true(f.model.plan.n_steps > launches);
        stop(&f);
    }
}

/* Memory between steps is used again, and nothing that is still read is written over. */
static void memory(void **state) {
    (void)state;
    fixture f;
    start(&f, "graph net (x: f32[8,256]) -> (o) {\n"
              "  w = f32[256,256] random 1\n"
              "  a = MatMul(x, w)\n  b = Sin(a)\n  c = MatMul(b, w)\n  d = Cos(c)\n"
              "  e = MatMul(d, w)\n  f = Add(e, b)\n  g = MatMul(f, w)\n  o = Mul(g, a)\n}\n");
    po_status status = po_gpu_model_make(
        &f.ctx, f.arena, f.g,
        &(po_gpu_model_options){.gpu = po_gpu_named("H200"), .nvrtc = f.nvrtc, .arch = 80}, &f.feed,
        &f.model);
    /* Sine has no kernel: the sentence names the node. */
    assert_int_equal(status, PO_UNSUPPORTED);
    assert_non_null(strstr(f.ctx.error.message, "(Sin)"));
    po_ctx_clear(&f.ctx);
    stop(&f);
    start(&f, "graph net (x: f32[8,256]) -> (o) {\n"
              "  w = f32[256,256] random 1\n"
              "  a = MatMul(x, w)\n  b = Tanh(a)\n  c = MatMul(b, w)\n  d = Tanh(c)\n"
              "  e = MatMul(d, w)\n  f = Add(e, b)\n  g = MatMul(f, w)\n  o = Mul(g, a)\n}\n");
    assert_true(run(&f, false) < 1e-4);
    /* x, o, w, and what is between: a and b live, and one more at a time. */
    int64_t most = 0;
    for (uint32_t i = 0; i < f.model.plan.n_buffers; i++)
        if (!f.model.plan.buffers[i].data && f.model.plan.buffers[i].bytes > most)
            most = f.model.plan.buffers[i].bytes;
    assert_true(most <= 4 * 8 * 256 * 4);
    stop(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(convolutional), cmocka_unit_test(fused),
                                       cmocka_unit_test(memory)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

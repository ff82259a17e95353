/* Which nodes become a step of cuBLASLt or cuDNN, and what their kernels take in. */
#include "ir/text.h"
#include "ops/op.h"
#include "pipeline/gpu/model.h"
#include "unit.h"

#include <string.h>

typedef struct fixture {
    po_ctx ctx;
    po_graph *g;
    bool *taken;
    po_gpu_match match;
} fixture;

/* Whether the first node that makes `made` starts a step of a library. */
static bool matches(fixture *f, const char *text, const char *made) {
    po_ctx_init(&f->ctx);
    if (po_graph_parse(&f->ctx, text, &f->g) != PO_OK)
        fail_msg("%s", f->ctx.error.message);
    po_ops_resolve(f->g);
    assert_int_equal(po_infer_graph(&f->ctx, f->g, false), PO_OK);
    f->taken = PO_NEW_N(f->g->arena, bool, f->g->n_nodes);
    for (po_node_id i = 0; i < f->g->n_nodes; i++)
        if (strcmp(f->g->values[f->g->nodes[i].out[0]].name, made) == 0)
            return po_gpu_match_node(f->g, i, false, f->taken, &f->match);
    fail_msg("no node makes '%s'", made);
    return false;
}

static const char *name_of(const fixture *f, po_cuda_place place) {
    return place.buffer == PO_NONE ? "" : f->g->values[place.buffer].name;
}

#define CONV_HEAD                                                                                  \
    "graph g (x: f32[2,8,9,9], w: f32[16,4,3,3], b: f32[16], z: f32[2,16,5,9]) -> (o) {\n"
#define CONV "  y = Conv(x, w, b) {pads=[1,2,1,2], strides=[2,1], dilations=[1,2], group=2}\n"

static void convolutions(void **state) {
    (void)state;
    fixture f;
    assert_true(matches(&f, CONV_HEAD CONV "  s = Add(z, y)\n  o = Relu(s)\n}\n", "y"));
    const po_cuda_conv *c = &f.match.u.conv;
    assert_int_equal(f.match.kind, PO_GPU_CONV);
    assert_int_equal(f.match.n_nodes, 3);
    assert_string_equal(name_of(&f, c->x), "x");
    assert_string_equal(name_of(&f, c->w), "w");
    assert_string_equal(name_of(&f, c->bias), "b");
    assert_string_equal(name_of(&f, c->z), "z");
    assert_string_equal(name_of(&f, c->y), "o");
    assert_int_equal(c->act, PO_CUDA_RELU);
    assert_int_equal(c->spatial, 2);
    assert_int_equal(c->n, 2);
    assert_int_equal(c->c, 8);
    assert_int_equal(c->k, 16);
    assert_int_equal(c->groups, 2);
    assert_int_equal(c->out[0], 5);
    assert_int_equal(c->out[1], 9);
    assert_int_equal(c->stride[0], 2);
    assert_int_equal(c->dilation[1], 2);
    assert_int_equal(c->before[0], 1);
    assert_int_equal(c->before[1], 2);
    assert_int_equal(c->after[1], 2);
    po_graph_free(f.g);
    /* The sum is seen by others: what comes after it stays outside, and it too where the
     * convolution's own result is. */
    assert_true(
        matches(&f, CONV_HEAD CONV "  s = Add(z, y)\n  r = Relu(s)\n  o = Mul(r, s)\n}\n", "y"));
    assert_int_equal(f.match.n_nodes, 2);
    assert_int_equal(f.match.u.conv.act, PO_CUDA_PLAIN);
    po_graph_free(f.g);
    assert_true(matches(&f, CONV_HEAD CONV "  s = Add(z, y)\n  o = Mul(y, s)\n}\n", "y"));
    assert_int_equal(f.match.n_nodes, 1);
    po_graph_free(f.g);
    /* A number is no residual. */
    assert_true(
        matches(&f, CONV_HEAD CONV "  k = f32[] {2}\n  s = Add(y, k)\n  o = Relu(s)\n}\n", "y"));
    assert_int_equal(f.match.n_nodes, 1);
    po_graph_free(f.g);
    /* SAME: the pads that it comes to. */
    assert_true(matches(&f,
                        "graph g (x: f32[1,4,8], w: f32[4,4,4]) -> (y) {\n"
                        "  y = Conv(x, w) {auto_pad=\"SAME_UPPER\"}\n}\n",
                        "y"));
    assert_int_equal(f.match.u.conv.spatial, 1);
    assert_int_equal(f.match.u.conv.before[0], 1);
    assert_int_equal(f.match.u.conv.after[0], 2);
    po_graph_free(f.g);
    assert_false(
        matches(&f, "graph g (x: f64[1,4,8], w: f64[4,4,4]) -> (y) {\n  y = Conv(x, w)\n}\n", "y"));
    po_graph_free(f.g);
}

static void products(void **state) {
    (void)state;
    fixture f;
    /* Leading dims are rows where the right side has none; bias, then residual, then activation. */
    assert_true(
        matches(&f,
                "graph g (x: f16[2,3,4,5], w: f16[5,7], b: f16[7], z: f16[2,3,4,7]) -> (o) "
                "{\n  y = MatMul(x, w)\n  s = Add(b, y)\n  t = Add(s, z)\n  o = Relu(t)\n}\n",
                "y"));
    const po_cuda_matmul *p = &f.match.u.matmul;
    assert_int_equal(f.match.n_nodes, 4);
    assert_int_equal(p->type, PO_MU_F16);
    assert_int_equal(p->m, 24);
    assert_int_equal(p->k, 5);
    assert_int_equal(p->n, 7);
    assert_int_equal(p->batch, 1);
    assert_string_equal(name_of(&f, p->bias), "b");
    assert_string_equal(name_of(&f, p->c), "z");
    assert_string_equal(name_of(&f, p->y), "o");
    assert_int_equal(p->act, PO_CUDA_RELU);
    po_graph_free(f.g);
    assert_true(matches(&f,
                        "graph g (x: f32[2,3,4,5], w: f32[2,3,5,7]) -> (o) {\n"
                        "  o = MatMul(x, w)\n}\n",
                        "o"));
    assert_int_equal(f.match.u.matmul.batch, 6);
    assert_int_equal(f.match.u.matmul.m, 4);
    assert_int_equal(f.match.u.matmul.step_a, 20);
    assert_int_equal(f.match.u.matmul.step_b, 35);
    assert_int_equal(f.match.u.matmul.step_y, 28);
    po_graph_free(f.g);
    assert_true(matches(&f,
                        "graph g (x: f32[5,4], w: f32[7,5], b: f32[1,7]) -> (o) {\n"
                        "  o = Gemm(x, w, b) {transA=1, transB=1}\n}\n",
                        "o"));
    p = &f.match.u.matmul;
    assert_int_equal(p->m, 4);
    assert_int_equal(p->k, 5);
    assert_int_equal(p->n, 7);
    assert_true(p->turn_a && p->turn_b);
    assert_int_equal(p->apart_a, 4);
    assert_int_equal(p->apart_b, 5);
    assert_string_equal(name_of(&f, p->bias), "b");
    po_graph_free(f.g);
    static const char *const not_ours[] = {
        "graph g (x: f32[2,3,4,5], w: f32[3,5,7]) -> (o) {\n  o = MatMul(x, w)\n}\n",
        "graph g (x: f32[4,5], w: f32[5,7]) -> (o) {\n  o = Gemm(x, w) {alpha=0.5}\n}\n",
        "graph g (x: f32[4,5], w: f32[5,7], b: f32[4,1]) -> (o) {\n  o = Gemm(x, w, b)\n}\n",
        "graph g (x: f32[5], w: f32[5,7]) -> (o) {\n  o = MatMul(x, w)\n}\n",
        "graph g (x: f32[5,7], w: f32[5,7]) -> (o) {\n  o = Add(x, w)\n}\n",
    };
    for (size_t i = 0; i < sizeof not_ours / sizeof *not_ours; i++) {
        assert_false(matches(&f, not_ours[i], "o"));
        po_graph_free(f.g);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(convolutions), cmocka_unit_test(products)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

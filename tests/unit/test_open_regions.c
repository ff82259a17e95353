/* Regions of a model whose batch is open: what a call for each sample may read, write and hold. */
#include "ops/samples.h"
#include "pipeline/kernels/open_regions.h"
#include "rewriting.h"
#include "unit.h"

#include <stdio.h>

typedef struct fixture {
    po_ctx ctx;
    po_arena *arena;
    po_graph *graph;
} fixture;

static void start(fixture *f, const char *model) {
    po_ctx_init(&f->ctx);
    f->arena = po_arena_create(&f->ctx);
    f->graph = test_graph(&f->ctx, model);
}

static void end(fixture *f) {
    po_arenas_free_since(&f->ctx, 0);
}

/* Between Transposes samples do not lie one behind the other: what makes and reads such a value at
 * a border stays outside, what has it inside does not. axis: told by hand, as of x[N,3,4]. */
static void borders_lie_apart(void **state) {
    static const char *const model = "graph g (x: f32[1,3,4], w: f32[4,4]) -> (y, z) {\n"
                                     " a = MatMul(x, w)\n t = Transpose(a) {perm=[1,0,2]}\n"
                                     " b = Tanh(t)\n c = Transpose(b) {perm=[1,0,2]}\n"
                                     " y = MatMul(c, w)\n d = Exp(y)\n"
                                     " z = Transpose(d) {perm=[1,0,2]}\n}";
    static const struct {
        const char *name;
        int8_t axis;
    } known[] = {{"x", 0}, {"a", 0}, {"t", 1}, {"b", 1}, {"c", 0}, {"y", 0}, {"d", 0}, {"z", 1}};
    (void)state;
    fixture f;
    po_regions regions;
    start(&f, model);
    int8_t *axis = PO_NEW_N(f.arena, int8_t, f.graph->n_values);
    memset(axis, PO_NO_SAMPLES, f.graph->n_values);
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        axis[test_value(f.graph, known[i].name)] = known[i].axis;
    assert_int_equal(po_open_regions(&f.ctx, f.arena, f.graph, NULL, NULL, &regions), PO_OK);
    assert_int_equal(regions.n_nodes, 7);
    assert_int_equal(po_open_regions(&f.ctx, f.arena, f.graph, axis, NULL, &regions), PO_OK);
    assert_int_equal(regions.n, 1);
    assert_int_equal(regions.n_nodes, 6); /* all but what makes z */
    const po_region *r = &regions.regions[0];
    po_kernel_ports ports;
    assert_int_equal(po_open_ports(&f.ctx, f.arena, f.graph, axis, r, &ports), PO_OK);
    assert_int_equal(ports.in[0].dims[0], -1);
    assert_int_equal(ports.in[0].dims[1], 3);
    assert_int_equal(ports.in[1].dims[0], 4); /* w is the same for all */
    /* Of several samples no call for one makes anything. */
    axis[test_value(f.graph, "d")] = axis[test_value(f.graph, "z")] = PO_MIXED_SAMPLES;
    assert_int_equal(po_open_regions(&f.ctx, f.arena, f.graph, axis, NULL, &regions), PO_OK);
    assert_int_equal(regions.n_nodes, 5);
    axis[test_value(f.graph, "b")] = PO_MIXED_SAMPLES; /* inside */
    assert_int_equal(po_open_regions(&f.ctx, f.arena, f.graph, axis, NULL, &regions), PO_OK);
    for (uint32_t i = 0; i < regions.n; i++)
        for (uint32_t k = 0; k < regions.regions[i].n_nodes; k++)
            assert_false(po_node_touches(&f.graph->nodes[regions.regions[i].nodes[k]],
                                         test_value(f.graph, "b")));
    axis[test_value(f.graph, "b")] = 1;
    axis[test_value(f.graph, "d")] = 0;
    axis[test_value(f.graph, "z")] = 1;
    /* a border that was not looked at is an error of ours */
    axis[test_value(f.graph, "y")] = PO_NO_SAMPLES;
    assert_int_equal(po_open_ports(&f.ctx, f.arena, f.graph, axis, r, &ports), PO_INTERNAL);
    po_ctx_clear(&f.ctx);
    end(&f);
}

/* What mixes samples stays outside where it is little of the work; else kernels are of no sample.
 */
static void little_may_mix(void **state) {
    static const struct {
        const char *batch, *here;
        bool little;
    } cases[] = {
#define MODEL(n, outputs)                                                                          \
    "graph g (x: f32[" n ",64,64]) -> (y) {\n a = MatMul(x, w: f32[64," outputs "] random 1)\n"    \
    " m = ReduceMax(a) {axes=[0],keepdims=1}\n b = Sub(a, m)\n"                                    \
    " y = MatMul(b, v: f32[" outputs ",1] random 2)\n}"
        {MODEL("N", "256"), MODEL("1", "256"), true},
#undef MODEL
        {"graph g (x: f32[N,64,64]) -> (y) {\n m = ReduceMax(x) {axes=[0],keepdims=1}\n"
         " y = MatMul(m, w: f32[64,64] random 1)\n}",
         "graph g (x: f32[1,64,64]) -> (y) {\n m = ReduceMax(x) {axes=[0],keepdims=1}\n"
         " y = MatMul(m, w: f32[64,64] random 1)\n}",
         false},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        fixture f;
        start(&f, cases[i].batch);
        const po_graph *here = test_graph(&f.ctx, cases[i].here);
        const int8_t *axis;
        po_status status = po_open_axes(&f.ctx, f.arena, f.graph, here, &axis);
        printf("case %zu: %s\n", i, status == PO_OK ? "little" : f.ctx.error.message);
        assert_int_equal(status, cases[i].little ? PO_OK : PO_UNSUPPORTED);
        if (cases[i].little) {
            assert_int_equal(axis[test_value(f.graph, "a")], 0);
            assert_int_equal(axis[test_value(f.graph, "y")], PO_MIXED_SAMPLES);
        } else {
            assert_non_null(strstr(f.ctx.error.message, "ReduceMax 'm': it mixes samples"));
        }
        end(&f);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(borders_lie_apart),
                                       cmocka_unit_test(little_may_mix)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

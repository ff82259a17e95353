/* What is equal over the reals and not in floats is told apart, what the original itself computes
 * no better is not; and inputs stand where a graph tells values apart. */
#include "ir/text.h"
#include "onnx_load.h"
#include "ops/op.h"
#include "test_onnx.h"
#include "test_paths.h"
#include "unit.h"
#include "verify/verify.h"
#include "verify/verify_internal.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>

enum { F32 = 1, I64 = 7, BOOL = 9, ROWS = 4, LONG = 8 };

typedef void (*build_fn)(test_onnx *m);

static test_onnx *floats_model(void) {
    test_onnx *m = test_onnx_new();
    test_onnx_input(m, "x", F32, "4,8");
    test_onnx_output(m, "y", F32, "4,8");
    return m;
}

static void number(test_onnx *m, const char *name, float value) {
    test_onnx_initializer(m, name, F32, "", &value, sizeof value);
}

static void row_op(test_onnx *m, const char *op, const char *in, const char *out) {
    Onnx__NodeProto *node = test_onnx_node(m, op, in, out);
    int64_t last[] = {-1};
    if (strcmp(op, "ReduceSum") == 0)
        test_onnx_initializer(m, "last", I64, "1", last, sizeof last);
    else
        test_onnx_ints(node, "axes", 1, last);
}

static void softmax(test_onnx *m) {
    test_onnx_int(test_onnx_node(m, "Softmax", "x", "y"), "axis", -1);
}

static void softmax_without_maximum(test_onnx *m) {
    test_onnx_node(m, "Exp", "x", "e");
    row_op(m, "ReduceSum", "e last", "sum");
    test_onnx_node(m, "Div", "e sum", "y");
}

static void variance(test_onnx *m) {
    row_op(m, "ReduceMean", "x", "mean");
    test_onnx_node(m, "Sub", "x mean", "d");
    test_onnx_node(m, "Mul", "d d", "s");
    row_op(m, "ReduceMean", "s", "v");
    test_onnx_node(m, "Div", "s v", "y");
}

/* E[x^2] - E[x]^2 */
static void variance_of_squares(test_onnx *m) {
    row_op(m, "ReduceMean", "x", "mean");
    test_onnx_node(m, "Sub", "x mean", "d");
    test_onnx_node(m, "Mul", "d d", "s");
    test_onnx_node(m, "Mul", "x x", "xx");
    row_op(m, "ReduceMean", "xx", "of_squares");
    test_onnx_node(m, "Mul", "mean mean", "square");
    test_onnx_node(m, "Sub", "of_squares square", "v");
    test_onnx_node(m, "Div", "s v", "y");
}

static void identity(test_onnx *m) {
    test_onnx_node(m, "Identity", "x", "y");
}

static void there_and_back(test_onnx *m) {
    number(m, "far", 1e9f);
    test_onnx_node(m, "Add", "x far", "t");
    test_onnx_node(m, "Sub", "t far", "y");
}

/* x + 1e5 x - 1e5 x: off by 6e-3 of x. */
static void far_multiples(test_onnx *m, const char *out) {
    number(m, "many", 1e5f);
    test_onnx_node(m, "Mul", "x many", "far");
    test_onnx_node(m, "Add", "x far", "t");
    test_onnx_node(m, "Sub", "t far", out);
}

static void cancelling(test_onnx *m) {
    far_multiples(m, "y");
}

/* Off all over by what the original is off at its worst. */
static void cancelling_and_off(test_onnx *m) {
    number(m, "factor", 1.05f);
    far_multiples(m, "u");
    test_onnx_node(m, "Mul", "u factor", "y");
}

static void eighth_power(test_onnx *m) {
    test_onnx_node(m, "Mul", "x x", "x2");
    test_onnx_node(m, "Mul", "x2 x2", "x4");
    test_onnx_node(m, "Mul", "x4 x4", "y");
}

/* Overflows where the original's result is beyond 1e30. */
static void eighth_power_scaled(test_onnx *m) {
    number(m, "up", 1e4f);
    number(m, "down", 1e-8f);
    test_onnx_node(m, "Mul", "x x", "x2");
    test_onnx_node(m, "Mul", "x2 x2", "x4");
    test_onnx_node(m, "Mul", "x4 up", "t");
    test_onnx_node(m, "Mul", "t t", "u");
    test_onnx_node(m, "Mul", "u down", "y");
}

static void square(test_onnx *m) {
    test_onnx_node(m, "Mul", "x x", "y");
}

/* Overflows from 1.8e3 on, where the original is far from the end. */
static void square_scaled(test_onnx *m) {
    number(m, "up", 1e16f);
    number(m, "down", 1e-32f);
    test_onnx_node(m, "Mul", "x up", "t");
    test_onnx_node(m, "Mul", "t t", "u");
    test_onnx_node(m, "Mul", "u down", "y");
}

static void branch(test_onnx *m, const char *op) {
    number(m, "border", 0.7f);
    number(m, "two", 2);
    test_onnx_node(m, op, "x border", "c");
    test_onnx_node(m, "Mul", "x two", "t");
    test_onnx_node(m, "Where", "c x t", "y");
}

static void below(test_onnx *m) {
    branch(m, "Less");
}

static void not_above(test_onnx *m) {
    branch(m, "LessOrEqual");
}

static void rounded(test_onnx *m) {
    test_onnx_node(m, "Round", "x", "y");
}

static void floored(test_onnx *m) {
    number(m, "half", 0.5f);
    test_onnx_node(m, "Add", "x half", "t");
    test_onnx_node(m, "Floor", "t", "y");
}

/* y = x, or with a part of x[0, 0] where x[0, 0] = x[0, 1]: no random numbers show it. */
static void alike(test_onnx *m) {
    int64_t first[] = {0}, second[] = {1};
    number(m, "part", 0.01f);
    test_onnx_initializer(m, "first", I64, "1", first, sizeof first);
    test_onnx_initializer(m, "second", I64, "1", second, sizeof second);
    test_onnx_int(test_onnx_node(m, "Gather", "x first", "row"), "axis", 0);
    test_onnx_int(test_onnx_node(m, "Gather", "row first", "a"), "axis", 1);
    test_onnx_int(test_onnx_node(m, "Gather", "row second", "b"), "axis", 1);
    test_onnx_node(m, "Equal", "a b", "c");
    test_onnx_int(test_onnx_node(m, "Cast", "c", "f"), "to", F32);
    test_onnx_node(m, "Mul", "f a", "g");
    test_onnx_node(m, "Mul", "g part", "h");
    test_onnx_node(m, "Add", "x h", "y");
}

typedef struct fixture {
    char dir[512], a[600], b[600];
    po_ctx ctx;
} fixture;

static po_verify_report verify_files(fixture *f, uint32_t fresh) {
    po_model *model = test_model_load(&f->ctx, f->a);
    assert_non_null(model);
    po_ops_resolve(model->graph);
    assert_int_equal(po_infer_graph(&f->ctx, model->graph, true), PO_OK);
    po_verify_spec spec = {.original = f->a,
                           .candidate = f->b,
                           .graph = model->graph,
                           .seed = 42,
                           .fresh = fresh,
                           .fresh_seed = 7};
    po_verify_report report;
    if (po_verify(&f->ctx, &spec, &report) != PO_OK)
        fail_msg("%s", f->ctx.error.message);
    test_model_free(model);
    return report;
}

static void start(fixture *f) {
    test_mkdtemp(f->dir, sizeof f->dir);
    snprintf(f->a, sizeof f->a, "%s/a.onnx", f->dir);
    snprintf(f->b, sizeof f->b, "%s/b.onnx", f->dir);
    po_ctx_init(&f->ctx);
}

static void write_model(const char *path, build_fn build) {
    test_onnx *m = floats_model();
    build(m);
    test_onnx_write(m, path);
    test_onnx_free(m);
}

static po_verify_report verify(build_fn a, build_fn b, uint32_t fresh) {
    fixture f;
    start(&f);
    write_model(f.a, a);
    write_model(f.b, b);
    po_verify_report r = verify_files(&f, fresh);
    assert_int_equal(r.evidence, PO_EVIDENCE_RUNTIME);
    test_rmtree(f.dir);
    return r;
}

static void assert_differ(build_fn a, build_fn b, const char *set) {
    po_verify_report r = verify(a, b, 0);
    if (r.equal)
        fail_msg("'%s' shows nothing", set);
    if (!strstr(r.set, set) || !strstr(r.why, set))
        fail_msg("'%s' does not name '%s': %s", r.set, set, r.why);
}

static void assert_equal(build_fn a, build_fn b) {
    po_verify_report r = verify(a, b, PO_FRESH_SETS);
    if (!r.equal)
        fail_msg("%s", r.why);
}

static void large_inputs_tell_floats_from_reals(void **state) {
    (void)state;
    assert_differ(softmax, softmax_without_maximum, "normal, times 300,");
    assert_differ(variance, variance_of_squares, "offset, times");
    assert_differ(identity, there_and_back, "normal");
    assert_differ(square, square_scaled, "normal, times 3000,");
}

static void what_the_original_does_no_better_is_equal(void **state) {
    (void)state;
    assert_equal(softmax_without_maximum, softmax); /* it overflows, not the other */
    assert_equal(cancelling, identity);
    assert_equal(variance_of_squares, variance);
    assert_equal(eighth_power, eighth_power_scaled); /* near the end of the range */
    po_verify_report r = verify(cancelling, identity, 0);
    assert_true(r.excused > 0 && r.excused_rel > 1e-4 && r.max_rel <= 1e-4);
    assert_differ(cancelling, cancelling_and_off, "");
}

static void inputs_stand_where_values_are_told_apart(void **state) {
    (void)state;
    assert_differ(below, not_above, "at borders");
    assert_differ(rounded, floored, "at borders");
    assert_equal(below, below);
    assert_equal(rounded, rounded);
}

static void clipped(test_onnx *m) {
    number(m, "low", -1e3f);
    number(m, "high", 1e3f);
    test_onnx_node(m, "Clip", "x low high", "y");
}

/* The linker puts this in the place of the library's own, in this test only: --wrap. */
static bool dies;
po_status __real_po_verify_exact(po_ctx *, po_arena *, const po_graph *, /* NOLINT */
                                 const po_feed *, double, po_array ***);
po_status __wrap_po_verify_exact(po_ctx *, po_arena *, const po_graph *, /* NOLINT */
                                 const po_feed *, double, po_array ***);
po_status __wrap_po_verify_exact(po_ctx *ctx, po_arena *arena, /* NOLINT */
                                 const po_graph *graph, const po_feed *feed, double seconds,
                                 po_array ***exact) {
    if (dies)
        raise(SIGKILL);
    return __real_po_verify_exact(ctx, arena, graph, feed, seconds, exact);
}

/* The outputs had shown a difference, of which nobody came to know how much of it is allowed. */
static void a_comparison_that_dies_is_not_equal(void **state) {
    (void)state;
    assert_differ(identity, clipped, "times 3000,");
    dies = true;
    po_verify_report r = verify(identity, clipped, 0);
    dies = false;
    assert_true(r.sets > 0);
    assert_false(r.equal);
    assert_non_null(strstr(r.why, "after"));
}

/* y = table[ids], plus 1 where an id is 777. */
static void write_ids(const char *path, bool one_apart) {
    static float table[1000];
    for (int i = 0; i < 1000; i++)
        table[i] = (float)i * 0.001f;
    int64_t apart = 777;
    test_onnx *m = test_onnx_new();
    test_onnx_input(m, "ids", I64, "1,8");
    test_onnx_output(m, "y", F32, "1,8");
    test_onnx_initializer(m, "table", F32, "1000", table, sizeof table);
    test_onnx_initializer(m, "apart", I64, "", &apart, sizeof apart);
    test_onnx_node(m, "Gather", "table ids", "rows");
    test_onnx_node(m, "Equal", "ids apart", "c");
    test_onnx_int(test_onnx_node(m, "Cast", "c", "f"), "to", F32);
    test_onnx_node(m, one_apart ? "Add" : "Max", "rows f", "y");
    test_onnx_write(m, path);
    test_onnx_free(m);
}

static void ids_that_are_constants_occur(void **state) {
    (void)state;
    fixture f;
    start(&f);
    write_ids(f.a, true);
    write_ids(f.b, false);
    po_verify_report r = verify_files(&f, 0);
    assert_false(r.equal);
    assert_non_null(strstr(r.set, "at borders"));
    write_ids(f.b, true);
    assert_true(verify_files(&f, PO_FRESH_SETS).equal);
    test_rmtree(f.dir);
}

static void fresh_sets_count(void **state) {
    (void)state;
    po_verify_report r = verify(identity, alike, 0);
    assert_true(r.equal && r.fresh == 0);
    r = verify(identity, alike, PO_FRESH_SETS);
    assert_false(r.equal);
    assert_true(r.fresh > 0);
    r = verify(identity, identity, PO_FRESH_SETS);
    assert_true(r.equal);
    assert_int_equal(r.fresh, PO_FRESH_SETS);
}

/* What noise makes of numbers that sizes are computed from is another size, and no measure. */
static void noise_may_change_a_size(void **state) {
    static const char text[] =
        "graph g (x: f32[1,1,9,9]) -> (y) {\n"
        "  s = Div(a: f32[4] {1.0, 1.0, 1.0, 1.0}, b: f32[4] {1.0, 1.0, 3.0, 3.0})\n"
        "  y = Resize(x, r: f32[0] {}, s)\n}\n";
    static const float numbers[81] = {1, 2, 3};
    const char *name = "x";
    (void)state;
    po_ctx ctx;
    po_ctx_init(&ctx);
    po_graph *graph = NULL;
    assert_int_equal(po_graph_parse(&ctx, text, &graph), PO_OK);
    po_ops_resolve(graph);
    const int64_t dims[] = {1, 1, 9, 9};
    const po_tensor x = {PO_F32, 4, dims, 81, numbers, sizeof numbers, NULL};
    const po_datum datum = {PO_TYPE_TENSOR, &x, 0, NULL};
    const po_feed feed = {1, &name, &datum};
    po_array **exact = NULL;
    assert_int_equal(po_verify_exact(&ctx, graph->arena, graph, &feed, 10, &exact), PO_OK);
    assert_int_equal(exact[0]->count, 9);
    uint32_t known = 0;
    for (uint64_t draw = 0; draw < 16; draw++) {
        po_own_error own;
        assert_int_equal(po_verify_noise(&ctx, graph, &feed, exact, draw, 10, &own), PO_OK);
        assert_true(own.most == 0);
        known += own.known;
    }
    assert_true(known < 16);
    po_graph_free(graph);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(large_inputs_tell_floats_from_reals),
        cmocka_unit_test(a_comparison_that_dies_is_not_equal),
        cmocka_unit_test(what_the_original_does_no_better_is_equal),
        cmocka_unit_test(inputs_stand_where_values_are_told_apart),
        cmocka_unit_test(ids_that_are_constants_occur),
        cmocka_unit_test(fresh_sets_count),
        cmocka_unit_test(noise_may_change_a_size),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* verify says yes to the same function and no to each kind of wrong model. */
#include "onnx_load.h"
#include "test_onnx.h"
#include "test_paths.h"
#include "unit.h"
#include "verify/verify.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { F32 = 1, I64 = 7, CHANNELS = 4, SIDE = 12 };

/* What can be wrong with the candidate. */
typedef struct fault {
    float weight;       /* added to one weight of the convolution */
    bool border;        /* pads at another side */
    float bias;         /* added to one bias */
    int64_t element;    /* this output element is changed; -1: none */
    float change;       /* by so much */
    const char *output; /* name of the output */
    bool order;         /* Add's operands swapped: right, but another file */
} fault;

static const fault none = {0, false, 0, -1, 0, "y", false};

/* y = Relu(Conv(x, w, b)) + c */
static void write_conv(const char *path, fault f) {
    test_onnx *m = test_onnx_new();
    test_onnx_input(m, "x", F32, "1,3,12,12");
    test_onnx_output(m, f.output, F32, "1,4,12,12");
    float w[CHANNELS * 3 * 9], b[CHANNELS], c[CHANNELS * SIDE * SIDE];
    for (int i = 0; i < CHANNELS * 27; i++)
        w[i] = (float)po_random_normal(1, 1, (uint64_t)i) * 0.3f;
    for (int i = 0; i < CHANNELS; i++)
        b[i] = (float)i * 0.1f;
    for (int i = 0; i < CHANNELS * SIDE * SIDE; i++)
        c[i] = 0.01f * (float)(i % 7);
    w[31] += f.weight;
    b[2] += f.bias;
    if (f.element >= 0)
        c[f.element] += f.change;
    test_onnx_initializer(m, "w", F32, "4,3,3,3", w, sizeof w);
    test_onnx_initializer(m, "b", F32, "4", b, sizeof b);
    test_onnx_initializer(m, "c", F32, "1,4,12,12", c, sizeof c);
    Onnx__NodeProto *conv = test_onnx_node(m, "Conv", "x w b", "t");
    int64_t pads[] = {1, 1, 1, 1}, wrong[] = {2, 1, 0, 1};
    test_onnx_ints(conv, "pads", 4, f.border ? wrong : pads);
    test_onnx_node(m, "Relu", "t", "r");
    test_onnx_node(m, "Add", f.order ? "c r" : "r c", f.output);
    test_onnx_write(m, path);
    test_onnx_free(m);
}

typedef struct fixture {
    char dir[512], a[600], b[600];
    po_ctx ctx;
} fixture;

static void start(fixture *f) {
    test_mkdtemp(f->dir, sizeof f->dir);
    snprintf(f->a, sizeof f->a, "%s/a.onnx", f->dir);
    snprintf(f->b, sizeof f->b, "%s/b.onnx", f->dir);
    po_ctx_init(&f->ctx);
}

static void finish(fixture *f) {
    test_rmtree(f->dir);
}

static po_verify_report verify_with(fixture *f, po_verify_spec spec) {
    po_model *model = test_model_load(&f->ctx, f->a);
    assert_non_null(model);
    po_ops_resolve(model->graph);
    assert_int_equal(po_infer_graph(&f->ctx, model->graph, true), PO_OK);
    spec.original = f->a;
    spec.candidate = f->b;
    spec.graph = model->graph;
    spec.seed = 42;
    po_verify_report report;
    po_status status = po_verify(&f->ctx, &spec, &report);
    if (status != PO_OK)
        fail_msg("%s", f->ctx.error.message);
    test_model_free(model);
    return report;
}

static po_verify_report verify(fixture *f) {
    return verify_with(f, (po_verify_spec){0});
}

static void the_same_function_passes(void **state) {
    (void)state;
    fixture f;
    start(&f);
    write_conv(f.a, none);
    write_conv(f.b, none);
    po_verify_report r = verify_with(&f, (po_verify_spec){.ladder = true});
    if (!r.equal)
        fail_msg("%s", r.why);
    assert_true(r.identical);
    assert_int_equal(r.evidence, PO_EVIDENCE_RUNTIME);
    assert_true(r.sets >= 5);
    assert_int_equal(r.elements, r.sets * CHANNELS * SIDE * SIDE);
    assert_true(r.max_abs == 0 && r.max_rel == 0);
    fault swapped = none;
    swapped.order = true;
    write_conv(f.b, swapped);
    r = verify(&f);
    assert_true(r.equal);
    finish(&f);
}

/* Each of these is a wrong model, and must be found out. */
static void wrong_models_are_caught(void **state) {
    (void)state;
    fixture f;
    start(&f);
    write_conv(f.a, none);
    fault faults[6];
    for (int i = 0; i < 6; i++)
        faults[i] = none;
    faults[0].weight = 0.01f;
    faults[1].border = true;
    faults[2].bias = 0.01f;
    faults[3].element = 0; /* one corner */
    faults[3].change = 0.01f;
    faults[4].element = CHANNELS * SIDE * SIDE - 1; /* the last one */
    faults[4].change = 0.01f;
    faults[5].output = "z";
    for (int i = 0; i < 6; i++) {
        write_conv(f.b, faults[i]);
        po_verify_report r = verify(&f);
        if (r.equal)
            fail_msg("fault %d passed", i);
        assert_int_equal(r.evidence, PO_EVIDENCE_RUNTIME);
        assert_true(r.why[0] != '\0');
        if (i == 3 || i == 4)
            assert_int_equal(r.index, faults[i].element);
        if (i < 5) {
            assert_string_equal(r.output, "y");
            assert_true(r.max_rel > 1e-4);
        }
    }
    finish(&f);
}

/* Rounding passes, and what it comes to is told. */
static void small_errors_are_measured(void **state) {
    (void)state;
    fixture f;
    start(&f);
    write_conv(f.a, none);
    fault slight = none;
    slight.bias = 3e-5f;
    write_conv(f.b, slight);
    po_verify_report r = verify_with(&f, (po_verify_spec){.tolerance = 1e-3, .ladder = true});
    assert_true(r.equal);
    assert_false(r.identical);
    assert_true(r.max_abs > 2.9e-5 && r.max_abs < 3.3e-5);
    r = verify_with(&f, (po_verify_spec){.tolerance = 1e-7});
    assert_false(r.equal);
    finish(&f);
}

static void broken_candidates_are_answers(void **state) {
    (void)state;
    fixture f;
    start(&f);
    write_conv(f.a, none);
    test_write_text(f.b, "nonsense");
    po_verify_report r = verify(&f);
    assert_false(r.equal);
    assert_int_equal(r.evidence, PO_EVIDENCE_RUNTIME);
    assert_non_null(strstr(r.why, "the candidate"));
    /* Where the runtime cannot be had there is no answer, and it is said. */
    r = verify_with(&f, (po_verify_spec){.library = "/nowhere/libonnxruntime.so"});
    assert_false(r.equal);
    assert_int_equal(r.evidence, PO_EVIDENCE_NONE);
    assert_non_null(strstr(r.why, "could not be opened"));
    finish(&f);
}

/* y = Gather(table[50, 8], ids) + Cast(mask) * 0.5, batch and seq open. */
static void write_embedding(const char *path, bool wrong_row, bool wrong_batch) {
    test_onnx *m = test_onnx_new();
    test_onnx_input(m, "ids", I64, "batch,seq");
    test_onnx_input(m, "attention_mask", I64, "batch,seq");
    test_onnx_output(m, "y", F32, "batch,seq,8");
    float table[50 * 8], half = 0.5f;
    for (int i = 0; i < 400; i++)
        table[i] = (float)po_random_normal(2, 2, (uint64_t)i);
    if (wrong_row)
        table[49 * 8] += 1; /* the last id alone shows it */
    int64_t axis[] = {2};
    test_onnx_initializer(m, "table", F32, "50,8", table, sizeof table);
    test_onnx_initializer(m, "half", F32, "", &half, sizeof half);
    test_onnx_initializer(m, "axis", I64, "1", axis, sizeof axis);
    test_onnx_node(m, "Gather", "table ids", "rows");
    test_onnx_int(test_onnx_node(m, "Cast", "attention_mask", "floats"), "to", F32);
    test_onnx_node(m, "Mul", "floats half", "scaled");
    test_onnx_node(m, "Unsqueeze", "scaled axis", "column");
    test_onnx_node(m, "Add", "rows column", wrong_batch ? "sum" : "y");
    if (wrong_batch) { /* right for batch 1 only: y = sum with its first batch row in all rows */
        int64_t zero[] = {0};
        test_onnx_initializer(m, "zero", I64, "1", zero, sizeof zero);
        test_onnx_int(test_onnx_node(m, "Gather", "sum zero", "first"), "axis", 0);
        test_onnx_node(m, "Sub", "sum sum", "nothing");
        test_onnx_node(m, "Add", "first nothing", "y");
    }
    test_onnx_write(m, path);
    test_onnx_free(m);
}

static void open_dims_get_several_lengths(void **state) {
    (void)state;
    fixture f;
    start(&f);
    write_embedding(f.a, false, false);
    write_embedding(f.b, false, false);
    po_verify_report r = verify(&f);
    if (!r.equal)
        fail_msg("%s", r.why);
    assert_int_equal(r.sizes, 6);   /* three that are tried, three that are meant */
    assert_int_equal(r.skipped, 0); /* every id was below the vocabulary */
    write_embedding(f.b, true, false);
    assert_false(verify(&f).equal);
    write_embedding(f.b, false, true);
    assert_false(verify(&f).equal);
    finish(&f);
}

static void the_users_data_counts(void **state) {
    (void)state;
    fixture f;
    start(&f);
    /* y = Relu(x - 1e6): on inputs up to 1e4 it is 0 whatever the weights. */
    for (int i = 0; i < 2; i++) {
        test_onnx *m = test_onnx_new();
        test_onnx_input(m, "x", F32, "3");
        test_onnx_output(m, "y", F32, "3");
        float shift[] = {1e6f, 1e6f, i ? 1e6f + 0.5f : 1e6f};
        test_onnx_initializer(m, "s", F32, "3", shift, sizeof shift);
        test_onnx_node(m, "Sub", "x s", "t");
        test_onnx_node(m, "Relu", "t", "y");
        test_onnx_write(m, i ? f.b : f.a);
        test_onnx_free(m);
    }
    assert_true(verify(&f).equal);
    float data[] = {1e6f + 20, 1e6f + 30, 1e6f + 40};
    int64_t dims[] = {3};
    po_tensor tensor = {PO_F32, 1, dims, 3, data, sizeof data, NULL};
    po_datum datum = {PO_TYPE_TENSOR, &tensor, 0, NULL};
    po_check_set set = {"test_data_set_0", 1, &datum};
    po_verify_report r = verify_with(&f, (po_verify_spec){.checks = &set, .n_checks = 1});
    assert_false(r.equal);
    assert_int_equal(r.index, 2);
    assert_string_equal(r.set, "test_data_set_0");
    finish(&f);
}

static void random_models_are_compared_by_shape(void **state) {
    (void)state;
    fixture f;
    start(&f);
    for (int i = 0; i < 2; i++) {
        test_onnx *m = test_onnx_new();
        test_onnx_input(m, "x", F32, "3,5");
        test_onnx_output(m, "y", F32, "3,5");
        test_onnx_node(m, "RandomNormalLike", "x", "y");
        test_onnx_write(m, i ? f.b : f.a);
        test_onnx_free(m);
    }
    po_verify_report r = verify(&f);
    assert_true(r.equal);
    assert_int_equal(r.evidence, PO_EVIDENCE_SHAPES);
    assert_int_equal(r.random_outputs, 1);
    finish(&f);
}

/* y = ArgMax(x + 1), z = Cast(Floor(4 * x + 8)), both integers. */
static void write_choices(const char *path, float nudge, int64_t where) {
    enum { ROWS = 40, LONG = 9 };
    test_onnx *m = test_onnx_new();
    test_onnx_input(m, "x", F32, "40,9");
    test_onnx_output(m, "y", I64, "40");
    test_onnx_output(m, "z", I64, "40,9");
    float c[ROWS * LONG], d[1] = {8 + nudge}, four[1] = {4};
    for (int i = 0; i < ROWS * LONG; i++)
        c[i] = 1;
    c[where] += nudge;
    test_onnx_initializer(m, "c", F32, "40,9", c, sizeof c);
    test_onnx_initializer(m, "d", F32, "", d, sizeof d);
    test_onnx_initializer(m, "four", F32, "", four, sizeof four);
    test_onnx_node(m, "Add", "x c", "s");
    Onnx__NodeProto *arg = test_onnx_node(m, "ArgMax", "s", "y");
    test_onnx_int(arg, "axis", 1);
    test_onnx_int(arg, "keepdims", 0);
    test_onnx_node(m, "Mul", "x four", "p");
    test_onnx_node(m, "Add", "p d", "q");
    test_onnx_node(m, "Floor", "q", "f");
    test_onnx_int(test_onnx_node(m, "Cast", "f", "z"), "to", I64);
    test_onnx_write(m, path);
    test_onnx_free(m);
}

/* All inputs 0 in one set: every ArgMax ties there and every Floor stands on its step. */
static void ties_are_no_differences(void **state) {
    (void)state;
    fixture f;
    start(&f);
    write_choices(f.a, 0, 0);
    write_choices(f.b, 2e-6f, 5); /* wins row 0 on zeros; the floor stays 8 */
    po_verify_report r = verify(&f);
    if (!r.equal)
        fail_msg("%s", r.why);
    assert_true(r.ties > 0);
    write_choices(f.b, -2e-6f, 0); /* loses row 0; the floor is 7 everywhere on zeros */
    r = verify(&f);
    if (!r.equal)
        fail_msg("%s", r.why);
    assert_true(r.ties > 40 * 9);
    write_choices(f.b, 0.3f, 5); /* no tie: a different choice */
    assert_false(verify(&f).equal);
    write_choices(f.b, -0.3f, 0);
    assert_false(verify(&f).equal);
    finish(&f);
}

/* y = Relu of x [N, 4, 6], by way of another shape, or of none. */
static void write_batch(const char *path, const int64_t *shape) {
    test_onnx *m = test_onnx_new();
    const int64_t back[3] = {-1, 4, 6};
    test_onnx_input(m, "x", F32, "batch,4,6");
    test_onnx_output(m, "y", F32, "batch,4,6");
    test_onnx_initializer(m, "back", I64, "3", back, sizeof back);
    if (shape)
        test_onnx_initializer(m, "shape", I64, "2", shape, 2 * sizeof *shape);
    if (shape)
        test_onnx_node(m, "Reshape", "x shape", "r");
    test_onnx_node(m, "Relu", shape ? "r" : "x", "t");
    test_onnx_node(m, "Reshape", "t back", "y");
    test_onnx_write(m, path);
    test_onnx_free(m);
}

/* The runtime does not know what -1 stands for where the batch that 0 copies is empty. */
static void an_empty_batch_that_is_refused_is_told(void **state) {
    (void)state;
    const struct {
        int64_t shape[2];
        bool asked, refused;
    } rows[] = {{{-1, 24}, true, false}, {{0, -1}, true, true}, {{0, -1}, false, false}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        fixture f;
        start(&f);
        write_batch(f.a, NULL);
        write_batch(f.b, rows[i].shape);
        po_verify_report r = verify_with(&f, (po_verify_spec){.thorough = rows[i].asked});
        assert_true(r.equal);
        assert_int_equal(r.empty_refused, rows[i].refused);
        /* What the original does not take either is no fault. */
        write_batch(f.a, rows[i].shape);
        r = verify_with(&f, (po_verify_spec){.thorough = rows[i].asked});
        assert_true(r.equal);
        assert_int_equal(r.empty_refused, 0);
        finish(&f);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_batch_that_is_refused_is_told),
        cmocka_unit_test(the_same_function_passes),
        cmocka_unit_test(wrong_models_are_caught),
        cmocka_unit_test(small_errors_are_measured),
        cmocka_unit_test(broken_candidates_are_answers),
        cmocka_unit_test(open_dims_get_several_lengths),
        cmocka_unit_test(the_users_data_counts),
        cmocka_unit_test(ties_are_no_differences),
        cmocka_unit_test(random_models_are_compared_by_shape),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

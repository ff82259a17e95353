/* Generated inputs stay within what the model does with them. */
#include "onnx_load.h"
#include "test_onnx.h"
#include "test_paths.h"
#include "unit.h"
#include "verify/inputs/inputs.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { F32 = 1, U8 = 2, I32 = 6, I64 = 7, BOOL = 9 };

typedef struct fixture {
    char dir[512], path[600];
    po_ctx ctx;
    po_arena *arena;
    po_model *model;
    po_inputs *plan;
} fixture;

/* Writes the model, loads it as a graph and plans its inputs. */
static void start(fixture *f, test_onnx *m) {
    test_mkdtemp(f->dir, sizeof f->dir);
    snprintf(f->path, sizeof f->path, "%s/a.onnx", f->dir);
    test_onnx_write(m, f->path);
    test_onnx_free(m);
    po_ctx_init(&f->ctx);
    f->arena = po_arena_create(&f->ctx);
    f->model = test_model_load(&f->ctx, f->path);
    assert_non_null(f->model);
    po_ops_resolve(f->model->graph);
    assert_int_equal(po_infer_graph(&f->ctx, f->model->graph, true), PO_OK);
    assert_int_equal(po_inputs_plan(&f->ctx, f->arena, f->model->graph, NULL, &f->plan), PO_OK);
}

static void finish(fixture *f) {
    test_model_free(f->model);
    po_arena_free(f->arena);
    test_rmtree(f->dir);
}

static const po_tensor *input(fixture *f, uint32_t size, po_input_kind kind, uint64_t seed,
                              const char *name) {
    po_feed feed;
    assert_int_equal(po_inputs_make(&f->ctx, f->arena, f->plan, size, kind, seed, &feed), PO_OK);
    for (uint32_t i = 0; i < feed.n; i++)
        if (strcmp(feed.names[i], name) == 0)
            return feed.data[i].tensor;
    fail_msg("no input '%s'", name);
    return NULL;
}

/* Every kind and three seeds: the elements lie in [low, high], and both ends are met somewhere. */
static void assert_range(fixture *f, const char *name, int64_t low, int64_t high) {
    bool met_low = false, met_high = false;
    for (int kind = 0; kind < PO_INPUTS_KINDS; kind++)
        for (uint64_t seed = 0; seed < 3; seed++) {
            const po_tensor *t = input(f, 2, (po_input_kind)kind, seed, name);
            for (int64_t i = 0; i < t->count; i++) {
                int64_t v = po_tensor_int(t, i);
                if (v < low || v > high)
                    fail_msg("%s: %lld is outside [%lld, %lld]", name, (long long)v, (long long)low,
                             (long long)high);
                met_low |= v == low;
                met_high |= v == high;
            }
        }
    assert_true(met_low && met_high);
}

static void ids_lie_below_the_vocabulary(void **state) {
    (void)state;
    test_onnx *m = test_onnx_new();
    test_onnx_input(m, "ids", I64, "batch,seq");
    test_onnx_input(m, "types", I64, "batch,seq");
    test_onnx_input(m, "attention_mask", I64, "batch,seq");
    test_onnx_input(m, "image", U8, "1,3,8,8");
    test_onnx_input(m, "flag", BOOL, "4");
    test_onnx_output(m, "y", F32, "batch,seq,2");
    test_onnx_output(m, "z", F32, "batch,seq,2");
    test_onnx_output(m, "mask", F32, "batch,seq");
    test_onnx_output(m, "pixels", F32, "1,3,8,8");
    test_onnx_output(m, "not", BOOL, "4");
    float table[7 * 2] = {0}, two[2 * 2] = {0};
    int64_t axis[] = {-1};
    test_onnx_initializer(m, "table", F32, "7,2", table, sizeof table);
    test_onnx_initializer(m, "two", F32, "2,2", two, sizeof two);
    test_onnx_initializer(m, "axis", I64, "1", axis, sizeof axis);
    test_onnx_node(m, "Gather", "table ids", "y");
    test_onnx_node(m, "Unsqueeze", "types axis", "wide"); /* through operators that move data */
    test_onnx_node(m, "Squeeze", "wide axis", "narrow");
    test_onnx_node(m, "Gather", "two narrow", "z");
    test_onnx_int(test_onnx_node(m, "Cast", "attention_mask", "mask"), "to", F32);
    test_onnx_int(test_onnx_node(m, "Cast", "image", "pixels"), "to", F32);
    test_onnx_node(m, "Not", "flag", "not");
    /* A one-hot code spelled out; what is compared with few numbers may be any. */
    int32_t codes[12], few[2] = {3, 4};
    for (int32_t i = 0; i < 12; i++)
        codes[i] = i + 1;
    test_onnx_input(m, "bytes", I32, "batch,1");
    test_onnx_input(m, "other", I32, "batch,1");
    test_onnx_output(m, "hot", BOOL, "batch,12");
    test_onnx_output(m, "same", BOOL, "batch,2");
    test_onnx_initializer(m, "codes", I32, "1,12", codes, sizeof codes);
    test_onnx_initializer(m, "few", I32, "1,2", few, sizeof few);
    test_onnx_node(m, "Equal", "bytes codes", "hot");
    test_onnx_node(m, "Equal", "few other", "same");
    fixture f;
    start(&f, m);
    assert_range(&f, "bytes", 1, 12);
    bool beyond = false;
    for (uint64_t seed = 0; seed < 8; seed++)
        for (int64_t i = 0, v; i < input(&f, 2, PO_INPUTS_NORMAL, seed, "other")->count; i++) {
            v = po_tensor_int(input(&f, 2, PO_INPUTS_NORMAL, seed, "other"), i);
            beyond |= v < 3 || v > 4;
        }
    assert_true(beyond);
    assert_range(&f, "ids", 0, 6);
    assert_range(&f, "types", 0, 1);
    assert_range(&f, "attention_mask", 0, 1);
    assert_range(&f, "image", 0, 255);
    assert_range(&f, "flag", 0, 1);
    /* Masks are ones, then zeros; a fully masked row where it is asked for, and only there. */
    for (int kind = 0; kind < PO_INPUTS_KINDS; kind++) {
        const po_tensor *t = input(&f, 2, (po_input_kind)kind, 1, "attention_mask");
        int64_t row = t->dims[1], empty = 0;
        for (int64_t r = 0; r < t->dims[0]; r++) {
            empty += po_tensor_int(t, r * row) == 0;
            for (int64_t i = 1; i < row; i++)
                assert_true(po_tensor_int(t, r * row + i) <= po_tensor_int(t, r * row + i - 1));
        }
        assert_int_equal(empty, kind == PO_INPUTS_MASKED ? 1 : 0);
    }
    assert_true(po_inputs_has(f.plan, PO_INPUTS_MASKED));
    assert_false(po_inputs_has(f.plan, PO_INPUTS_LARGE)); /* no floats to be large */
    finish(&f);
}

/* The k-th assignment that the model is meant for, as the text of its inputs. */
static void assert_meant(fixture *f, uint32_t k, const char *expected) {
    assert_true(k < po_inputs_meant(f->plan));
    uint32_t size = po_inputs_meant_size(k);
    assert_true(po_inputs_is_meant(size));
    assert_string_equal(po_inputs_describe(f->arena, f->plan, size, PO_INPUTS_NORMAL), expected);
}

static void start_identity(fixture *f, int dtype, const char *in, const char *out) {
    test_onnx *m = test_onnx_new();
    test_onnx_input(m, "x", dtype, in);
    test_onnx_output(m, "y", dtype, out);
    test_onnx_node(m, "Identity", "x", "y");
    start(f, m);
}

static void lengths_are_those_that_models_have(void **state) {
    (void)state;
    static const struct {
        int dtype;
        const char *in, *out;
        uint32_t n;
        const char *first, *last;
    } cases[] = {
        {I64, "batch,seq", "batch,seq", 3, "normal x:1x128", "normal x:1x512"},
        {F32, "?,3,?,?", "?,3,?,?", 3, "normal x:1x3x640x640", "normal x:1x3x320x480"},
        {F32, "n,3,h,w", "n,10", 3, "normal x:1x3x224x224", "normal x:1x3x160x160"},
        {F32, "?,?,?,3", "n,10", 3, "normal x:1x224x224x3", "normal x:1x160x160x3"},
        {F32, "?,3,48,?", "n,t,10", 3, "normal x:1x3x48x320", "normal x:1x3x48x160"},
        {F32, "n,3,224,224", "n,10", 2, "normal x:1x3x224x224", "normal x:2x3x224x224"},
        {F32, "1,n", "1,n", 3, "normal x:1x16000", "normal x:1x512"},
        {F32, "b,t,80", "b,t,80", 3, "normal x:1x200x80", "normal x:1x800x80"},
        {F32, "seq_len,576", "seq_len,1", 3, "normal x:128x576", "normal x:512x576"},
        {F32, "b,3,t,h,w", "b,10", 3, "normal x:1x3x16x112x112", "normal x:1x3x8x112x112"},
        {F32, "4,8", "4,8", 0, NULL, NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        fixture f;
        start_identity(&f, cases[i].dtype, cases[i].in, cases[i].out);
        assert_int_equal(po_inputs_meant(f.plan), cases[i].n);
        if (cases[i].n > 0) {
            assert_meant(&f, 0, cases[i].first);
            assert_meant(&f, cases[i].n - 1, cases[i].last);
        }
        finish(&f);
    }
}

/* Keras' ids are floats, which are cast where they choose rows of a table. */
static void floats_may_be_ids(void **state) {
    (void)state;
    const float table[14] = {0};
    test_onnx *m = test_onnx_new();
    test_onnx_input(m, "x", F32, "n,t");
    test_onnx_output(m, "y", F32, "n,t,2");
    test_onnx_initializer(m, "table", F32, "7,2", table, sizeof table);
    test_onnx_int(test_onnx_node(m, "Cast", "x", "ids"), "to", I32);
    test_onnx_node(m, "Gather", "table ids", "y");
    fixture f;
    start(&f, m);
    assert_meant(&f, 0, "normal x:1x128");
    assert_meant(&f, 2, "normal x:1x512");
    finish(&f);
}

/* Every assignment has one turn. Of those that nobody means the largest come first. */
static void sizes_are_looked_for_in_turn(void **state) {
    (void)state;
    enum { MOST = 40 };
    fixture f;
    start_identity(&f, F32, "?,3,?,?", "?,3,?,?");
    const uint32_t n = po_inputs_turns(f.plan), meant = po_inputs_meant(f.plan);
    double before = HUGE_VAL;
    bool seen[MOST] = {false}, line = false;
    assert_int_equal(n, meant + po_inputs_sizes(f.plan));
    for (uint32_t k = 0; k < n; k++) {
        const uint32_t size = po_inputs_turn(f.plan, k);
        assert_int_equal(po_inputs_is_meant(size), k < meant);
        if (k < meant)
            continue;
        assert_true(size < MOST && !seen[size]);
        seen[size] = true;
        assert_true(po_inputs_elements(f.plan, size) <= before);
        before = po_inputs_elements(f.plan, size);
        const po_tensor *x = input(&f, size, PO_INPUTS_NORMAL, 1, "x");
        if (x->dims[2] > 32 && x->dims[2] <= 80 && !line) { /* a line of text */
            assert_int_equal(x->dims[2], 48);
            assert_int_equal(x->dims[3], 320);
            line = true;
        }
    }
    assert_true(line);
    finish(&f);
    start_identity(&f, I64, "batch,seq", "batch,seq");
    /* 128 tokens are refused: not more of them first. */
    assert_true(po_inputs_elements(f.plan, po_inputs_turn(f.plan, po_inputs_meant(f.plan))) <= 128);
    finish(&f);
}

static void a_decoder_makes_one_token(void **state) {
    (void)state;
    test_onnx *m = test_onnx_new();
    test_onnx_input(m, "x", I64, "batch,sequence_length");
    test_onnx_input(m, "mask", I64, "batch,past_sequence_length + sequence_length");
    test_onnx_input(m, "key", F32, "batch,4,past_sequence_length,8");
    test_onnx_output(m, "y", I64, "batch,sequence_length");
    test_onnx_node(m, "Identity", "x", "y");
    fixture f;
    start(&f, m);
    assert_meant(&f, 0, "normal x:1x1 mask:1x257 key:1x4x256x8");
    assert_meant(&f, 1, "normal x:2x1 mask:2x17 key:2x4x16x8");
    finish(&f);
}

static void sizes_that_are_asked_for_are_taken(void **state) {
    (void)state;
    test_onnx *m = test_onnx_new();
    test_onnx_input(m, "x", F32, "n,3,h,w");
    test_onnx_input(m, "ids", I64, "n,seq");
    test_onnx_input(m, "mask", I64, "n,seq + 1");
    test_onnx_output(m, "y", F32, "n,3,h,w");
    test_onnx_node(m, "Identity", "x", "y");
    fixture f;
    start(&f, m);
    int64_t a[] = {2, 3, 96, 64}, b[] = {1, 3, 32, 32}, ids[] = {2, 7}, bad[] = {1, 4, 32, 32};
    po_pin sizes[] = {{"x", 4, a, NULL}, {"ids", 2, ids, NULL}, {"x", 4, b, NULL}};
    assert_int_equal(po_inputs_want(&f.ctx, f.arena, f.plan, sizes, 3), PO_OK);
    assert_int_equal(po_inputs_meant(f.plan), 2);
    assert_meant(&f, 0, "normal x:2x3x96x64 ids:2x7 mask:2x8");
    assert_meant(&f, 1, "normal x:1x3x32x32 ids:1x128 mask:1x129");
    po_pin wrong[] = {{"x", 4, bad, NULL}, {"z", 4, a, NULL}, {"ids", 4, a, NULL}};
    static const char *const why[] = {"dim 1 of input 'x' is 3, not 4", "no input 'z'",
                                      "input 'ids' has rank 2, not 4"};
    for (size_t i = 0; i < 3; i++) {
        po_ctx_clear(&f.ctx);
        assert_int_equal(po_inputs_want(&f.ctx, f.arena, f.plan, &wrong[i], 1), PO_BAD_USE);
        assert_non_null(strstr(f.ctx.error.message, why[i]));
    }
    finish(&f);
}

static void open_dims_agree_and_vary(void **state) {
    (void)state;
    test_onnx *m = test_onnx_new();
    test_onnx_input(m, "x", F32, "batch,seq,16");
    test_onnx_input(m, "past", F32, "batch,past_len,16");
    test_onnx_input(m, "total", F32, "batch,past_len + seq");
    test_onnx_input(m, "image", F32, "?,3,?,?");
    test_onnx_output(m, "y", F32, "batch,seq,16");
    test_onnx_node(m, "Identity", "x", "y");
    fixture f;
    start(&f, m);
    assert_true(po_inputs_sizes(f.plan) >= 3);
    int64_t seen[3][3];
    for (uint32_t size = 0; size < 3; size++) {
        const po_tensor *x = input(&f, size, PO_INPUTS_NORMAL, 1, "x");
        const po_tensor *past = input(&f, size, PO_INPUTS_NORMAL, 1, "past");
        const po_tensor *total = input(&f, size, PO_INPUTS_NORMAL, 1, "total");
        const po_tensor *image = input(&f, size, PO_INPUTS_NORMAL, 1, "image");
        assert_int_equal(x->dims[0], past->dims[0]);
        assert_int_equal(x->dims[0], total->dims[0]);
        assert_int_equal(total->dims[1], past->dims[1] + x->dims[1]);
        assert_int_equal(image->dims[1], 3);
        assert_int_equal(image->dims[2] % 32, 0);
        assert_true(image->dims[2] != image->dims[3]);
        seen[size][0] = x->dims[0];
        seen[size][1] = x->dims[1];
        seen[size][2] = image->dims[2];
    }
    for (int k = 0; k < 3; k++)
        assert_true(seen[0][k] != seen[1][k] && seen[1][k] != seen[2][k] &&
                    seen[0][k] != seen[2][k]);
    finish(&f);
}

static void kinds_are_what_they_say(void **state) {
    (void)state;
    test_onnx *m = test_onnx_new();
    test_onnx_input(m, "x", F32, "64,100");
    test_onnx_output(m, "y", F32, "64,100");
    test_onnx_node(m, "Identity", "x", "y");
    fixture f;
    start(&f, m);
    double sum[PO_INPUTS_KINDS], most[PO_INPUTS_KINDS];
    for (int kind = 0; kind < PO_INPUTS_KINDS; kind++) {
        const po_tensor *t = input(&f, 0, (po_input_kind)kind, 5, "x");
        sum[kind] = most[kind] = 0;
        for (int64_t i = 0; i < t->count; i++) {
            sum[kind] += fabs(po_tensor_f64(t, i));
            most[kind] = fmax(most[kind], fabs(po_tensor_f64(t, i)));
        }
    }
    double n = 6400;
    assert_true(fabs(sum[PO_INPUTS_NORMAL] / n - 0.798) < 0.03); /* sqrt(2 / pi) */
    assert_true(fabs(sum[PO_INPUTS_UNIFORM] / n - 0.5) < 0.03 && most[PO_INPUTS_UNIFORM] <= 1);
    assert_true(most[PO_INPUTS_ZERO] == 0);
    assert_true(sum[PO_INPUTS_LARGE] / n > 20);
    assert_true(sum[PO_INPUTS_ONE_HOT] == 64 && most[PO_INPUTS_ONE_HOT] == 1);
    assert_true(most[PO_INPUTS_DENORMAL] < 1e-28 && most[PO_INPUTS_DENORMAL] > 0);
    const po_tensor *a = input(&f, 0, PO_INPUTS_NORMAL, 5, "x");
    const po_tensor *b = input(&f, 0, PO_INPUTS_NORMAL, 5, "x");
    const po_tensor *c = input(&f, 0, PO_INPUTS_NORMAL, 6, "x");
    assert_memory_equal(a->data, b->data, a->size);
    assert_true(memcmp(a->data, c->data, a->size) != 0);
    finish(&f);
}

static void shapes_given_as_inputs_fit(void **state) {
    (void)state;
    test_onnx *m = test_onnx_new();
    test_onnx_input(m, "x", F32, "2,3,4");
    test_onnx_input(m, "shape", I64, "2");
    test_onnx_input(m, "axes", I64, "2");
    test_onnx_input(m, "parts", I64, "2");
    test_onnx_output(m, "y", F32, "6,4");
    test_onnx_output(m, "z", F32, "1,1,2,3,4");
    test_onnx_output(m, "p", F32, "2,1,4");
    test_onnx_output(m, "q", F32, "2,2,4");
    test_onnx_node(m, "Reshape", "x shape", "y");
    test_onnx_node(m, "Unsqueeze", "x axes", "z");
    test_onnx_int(test_onnx_node(m, "Split", "x parts", "p q"), "axis", 1);
    fixture f;
    start(&f, m);
    const po_tensor *t = input(&f, 0, PO_INPUTS_NORMAL, 1, "shape");
    assert_true(po_tensor_int(t, 0) == 6 && po_tensor_int(t, 1) == 4);
    t = input(&f, 0, PO_INPUTS_NORMAL, 1, "axes");
    assert_true(po_tensor_int(t, 0) == 0 && po_tensor_int(t, 1) == 1);
    t = input(&f, 0, PO_INPUTS_EXTREME, 1, "parts");
    assert_true(po_tensor_int(t, 0) == 1 && po_tensor_int(t, 1) == 2);
    finish(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ids_lie_below_the_vocabulary),
        cmocka_unit_test(open_dims_agree_and_vary),
        cmocka_unit_test(lengths_are_those_that_models_have),
        cmocka_unit_test(floats_may_be_ids),
        cmocka_unit_test(sizes_are_looked_for_in_turn),
        cmocka_unit_test(a_decoder_makes_one_token),
        cmocka_unit_test(sizes_that_are_asked_for_are_taken),
        cmocka_unit_test(kinds_are_what_they_say),
        cmocka_unit_test(shapes_given_as_inputs_fit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* petopt.h as its callers use it. */
#include "petopt.h"
#include "test_paths.h"
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* x -> x + 0 -> Relu -> y, of the given IR version's opset, with dims of one symbol. */
static po_model *small_model(int64_t opset) {
    po_builder *b = po_build_create("small", opset);
    po_val in[2] = {po_build_input(b, "x", "f32[n,3,n]"), po_build_f32(b, 0)};
    po_val y = po_build_node(b, NULL, "Add", NULL, 2, in);
    y = po_build_node(b, NULL, "Relu", NULL, 1, &y);
    po_build_output(b, y, "y");
    po_model *model;
    po_error error;
    assert_int_equal(po_build_finish(b, &model, &error), PO_OK);
    return model;
}

static po_options *options_of(const char *const *pairs) {
    po_options *options;
    assert_int_equal(po_options_create(&options), PO_OK);
    for (; *pairs; pairs += 2)
        assert_int_equal(po_options_set(options, pairs[0], pairs[1], NULL), PO_OK);
    return options;
}

static char *text_of(po_model *model) {
    char *text;
    assert_int_equal(po_model_text(model, &text, NULL), PO_OK);
    return text;
}

static void builder_keeps_its_first_failure(void **state) {
    (void)state;
    po_error error;
    po_model *model;
    po_builder *b = po_build_create("g", 13);
    assert_int_equal(po_build_input(b, "x", "f99[1]"), 0);
    assert_int_equal(po_build_input(b, "y", "f32[1]"), 0); /* nothing more is taken */
    assert_int_equal(po_build_finish(b, &model, &error), PO_BAD_USE);
    assert_non_null(strstr(error.message, "f99[1]"));
    assert_null(model);

    b = po_build_create("g", 13);
    po_val strange = 17;
    assert_int_equal(po_build_node(b, NULL, "Relu", NULL, 1, &strange), 0);
    assert_int_equal(po_build_finish(b, &model, &error), PO_BAD_USE);

    b = po_build_create("g", 13);
    po_build_input(b, "x", "f32[1]");
    assert_int_equal(po_build_finish(b, &model, &error), PO_BAD_USE); /* no output */

    b = po_build_create("g", 3);
    assert_int_equal(po_build_finish(b, &model, &error), PO_BAD_USE); /* no such version */

    b = po_build_create("g", 13);
    po_val in[2] = {po_build_input(b, "x", "f32[2,3]"), po_build_input(b, "z", "f32[4,5]")};
    po_build_output(b, po_build_node(b, NULL, "MatMul", "m", 2, in), "y");
    assert_int_equal(po_build_finish(b, &model, &error), PO_BAD_INPUT); /* 3 against 4 */
    po_build_free(NULL);
}

static void types_are_read(void **state) {
    (void)state;
    static const char *const good[] = {"f32[]", "i64[1,?]", "f16[batch,3,224,224]", "bool[0]"};
    static const char *const bad[] = {"",        "f32",       "f32[1",   "f32[1,]",
                                      "f32[-1]", "f32[1,,2]", "f32[1]x", "f32[9999999999999999999]",
                                      "[1]"};
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        po_builder *b = po_build_create("g", 13);
        assert_int_not_equal(po_build_input(b, "x", good[i]), 0);
        po_build_free(b);
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        po_builder *b = po_build_create("g", 13);
        assert_int_equal(po_build_input(b, "x", bad[i]), 0);
        po_build_free(b);
    }
}

static void outputs_beyond_the_first_are_added(void **state) {
    (void)state;
    po_builder *b = po_build_create("g", 13);
    po_val x = po_build_input(b, "x", "f32[4]");
    po_val first = po_build_node(b, NULL, "Split", NULL, 1, &x);
    po_build_attr_int(b, first, "axis", 0);
    po_val second = po_build_output_of(b, first, 1);
    assert_int_equal(po_build_output_of(b, first, 0), first);
    po_build_output(b, second, "high");
    po_build_output(b, first, "low");
    po_model *model;
    assert_int_equal(po_build_finish(b, &model, NULL), PO_OK);
    const po_node_view *nodes;
    size_t n;
    assert_int_equal(po_model_nodes(model, &nodes, &n, NULL), PO_OK);
    assert_int_equal(n, 1);
    assert_int_equal(nodes[0].n_out, 2);
    assert_string_equal(nodes[0].out[0], "low");
    assert_string_equal(nodes[0].out[1], "high");
    po_model_free(model);
}

static void options_are_checked(void **state) {
    (void)state;
    static const struct {
        const char *name, *value;
        po_status status;
    } rows[] = {
        {"level", "1", PO_OK},
        {"level", "3", PO_OK},
        {"level", "4", PO_BAD_USE},
        {"tolerance", "1e-3", PO_OK},
        {"tolerance", "0,5", PO_BAD_USE},
        {"tolerance", ".", PO_BAD_USE},
        {"tolerance", "1e999", PO_BAD_USE},
        {"threads", "1025", PO_BAD_USE},
        {"input-shape", "a:b:1,2", PO_OK},      /* the name is what stands before the last colon */
        {"input-shape", "a:N,1,batch1", PO_OK}, /* what stays open */
        {"input-shape", "a:1,1x", PO_BAD_USE},
        {"input-shape", "a:1,?", PO_BAD_USE},
        {"sizes", "a:N,1", PO_BAD_USE},
        {"input-shape", ":1", PO_BAD_USE},
        {"skip", "postopt", PO_OK},
        {"skip", "postop", PO_BAD_USE},
        {"target", "cuda", PO_OK},
        {"target", "tpu", PO_BAD_USE},
        {"gpu", "A100", PO_OK},
        {"gpu", "A1", PO_BAD_USE},
        {"tf32", "maybe", PO_BAD_USE},
        {"no-such", "1", PO_BAD_USE},
    };
    po_options *options;
    assert_int_equal(po_options_create(&options), PO_OK);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        po_error error;
        assert_int_equal(po_options_set(options, rows[i].name, rows[i].value, &error),
                         rows[i].status);
        assert_int_equal(error.status, rows[i].status);
        assert_true((error.message[0] != '\0') == (rows[i].status != PO_OK));
    }
    po_options_free(options);
    size_t n = 0;
    while (po_option_at(n))
        n++;
    assert_in_range(n, 10, 100);
}

static void pinned_symbols_are_replaced_everywhere(void **state) {
    (void)state;
    po_model *model = small_model(17);
    po_options *options =
        options_of((const char *const[]){"level", "0", "input-shape", "x:5,3,5", NULL});
    po_result *result;
    assert_int_equal(po_optimise(model, options, NULL, &result, NULL), PO_OK);
    char *text = text_of(po_result_model(result));
    assert_non_null(strstr(text, "(x: f32[5,3,5])"));
    assert_null(strstr(text, "\"n\""));
    po_string_free(text);
    /* The model itself stays as it was. */
    text = text_of(model);
    assert_non_null(strstr(text, "\"n\""));
    po_string_free(text);
    po_result_free(result);
    po_options_free(options);
    /* A name with two lengths stands for neither. */
    options = options_of((const char *const[]){"level", "0", "input-shape", "x:5,3,6", NULL});
    assert_int_equal(po_optimise(model, options, NULL, &result, NULL), PO_OK);
    text = text_of(po_result_model(result));
    assert_non_null(strstr(text, "(x: f32[5,3,6])"));
    po_string_free(text);
    po_result_free(result);
    po_options_free(options);

    static const char *const wrong[] = {"x:5,4,5", "x:5,3", "z:5,3,5", "x:5,c,5"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        po_error error;
        options = options_of((const char *const[]){"level", "0", "input-shape", wrong[i], NULL});
        assert_int_equal(po_optimise(model, options, NULL, &result, &error), PO_BAD_USE);
        assert_null(result);
        assert_non_null(strstr(error.message, "--input-shape"));
        po_options_free(options);
    }
    po_model_free(model);
}

static void saved_models_read_back(void **state) {
    (void)state;
    char folder[4096], path[4200];
    test_mkdtemp(folder, sizeof folder);
    snprintf(path, sizeof path, "%s/m.onnx", folder);
    po_model *model = small_model(17), *back;
    assert_int_equal(po_model_save(model, path, NULL), PO_OK);
    assert_int_equal(po_model_load(path, &back, NULL), PO_OK);
    po_model_free(model);
    assert_int_equal(po_model_save(back, path, NULL), PO_OK);
    assert_int_equal(po_model_load(path, &model, NULL), PO_OK);
    char *a = text_of(model), *b = text_of(back);
    assert_string_equal(a, b);
    assert_non_null(strstr(a, "graph small (x: f32[\"n\",3,\"n\"]) -> (y)"));
    po_string_free(a);
    po_string_free(b);
    po_model_free(back);
    po_model_free(model);
    po_error error;
    assert_int_not_equal(po_model_load(folder, &back, &error), PO_OK);
    assert_null(back);
    test_rmtree(folder);
}

static void a_raised_flag_gives_the_original(void **state) {
    (void)state;
    po_model *model = small_model(17);
    po_cancel *cancel = po_cancel_create();
    po_cancel_raise(cancel);
    po_callbacks callbacks = {.cancel = cancel};
    po_result *result;
    assert_int_equal(po_optimise(model, NULL, &callbacks, &result, NULL), PO_OK);
    const po_summary *s = po_result_summary(result);
    assert_int_equal(s->stopped, PO_CANCELLED);
    assert_false(s->changed);
    assert_string_equal(s->winner, "original");
    assert_int_equal(s->nodes_after, 2);
    po_result_free(result);
    po_cancel_free(cancel);
    po_model_free(model);
}

typedef struct heard {
    int dumps, steps;
    double last;
} heard;

static void on_dump(void *user, const char *stage, const char *text) {
    ((heard *)user)->dumps++;
    assert_string_equal(stage, "simplify");
    assert_non_null(strstr(text, "Relu(x)"));
}

static void on_progress(void *user, const po_progress *progress) {
    heard *h = user;
    h->steps++;
    assert_true(progress->fraction >= h->last && progress->fraction <= 1);
    h->last = progress->fraction;
}

/* The model of before IR version 4 has its zero as a Constant node still. */
static void a_useless_node_goes(void **state) {
    (void)state;
    static const int64_t opsets[] = {17, 7};
    for (size_t i = 0; i < sizeof opsets / sizeof opsets[0]; i++) {
        po_model *model = small_model(opsets[i]);
        po_options *options = options_of((const char *const[]){
            "cost", "model", "cache", "none", "dump", "simplify", "threads", "1", NULL});
        heard h = {0};
        po_callbacks callbacks = {.user = &h, .dump = on_dump, .progress = on_progress};
        po_result *result;
        po_error error;
        assert_int_equal(po_optimise(model, options, &callbacks, &result, &error), PO_OK);
        const po_summary *s = po_result_summary(result);
        assert_int_equal(s->nodes_before, 2);
        assert_int_equal(s->nodes_after, 1);
        assert_true(s->changed);
        assert_true(s->compared);
        assert_true(s->error <= s->tolerance);
        assert_int_equal(h.dumps, 1);
        assert_true(h.steps > 2);
        po_result_free(result);
        po_options_free(options);
        po_model_free(model);
    }
}

static void bench_counts_its_models(void **state) {
    (void)state;
    const char *const paths[9] = {"a", "b", "c", "d", "e", "f", "g", "h", "i"};
    po_bench_report *report;
    po_error error;
    assert_int_equal(po_models_bench(paths, 9, NULL, NULL, &report, &error), PO_BAD_USE);
    assert_int_equal(po_models_bench(paths, 0, NULL, NULL, &report, &error), PO_BAD_USE);
    assert_int_not_equal(po_models_bench(paths, 1, NULL, NULL, &report, &error), PO_OK);
    assert_null(report);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(builder_keeps_its_first_failure),
        cmocka_unit_test(types_are_read),
        cmocka_unit_test(outputs_beyond_the_first_are_added),
        cmocka_unit_test(options_are_checked),
        cmocka_unit_test(pinned_symbols_are_replaced_everywhere),
        cmocka_unit_test(saved_models_read_back),
        cmocka_unit_test(a_raised_flag_gives_the_original),
        cmocka_unit_test(a_useless_node_goes),
        cmocka_unit_test(bench_counts_its_models),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

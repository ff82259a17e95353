/* Certificates: an optimised model is proved with the one beside it, and with no other. */
#include "import/import.h"
#include "petopt.h"
#include "pipeline/pin.h"
#include "pipeline/proving.h"
#include "proofs.h"
#include "test_paths.h"
#include "unit.h"
#include "verify/cert.h"

#include <stdio.h>
#include <stdlib.h>

typedef struct bed {
    char folder[512], in[600], out[600], cert[620];
} bed;

/* Conv, batch normalisation, Relu: what is written has folded weights. */
static po_model *network(void) {
    po_builder *b = po_build_create("net", 13);
    po_val x = po_build_input(b, "x", "f32[1,16,10,10]");
    int64_t w[] = {16, 16, 3, 3}, c[] = {16}, pads[] = {1, 1, 1, 1};
    po_val conv[] = {x, po_build_random(b, "w", 4, w, 1, -0.3, 0.3)};
    po_val y = po_build_node(b, NULL, "Conv", "conv", 2, conv);
    po_build_attr_ints(b, y, "pads", 4, pads);
    po_val norm[] = {y, po_build_random(b, "scale", 1, c, 2, 0.5, 1.5),
                     po_build_random(b, "shift", 1, c, 3, -1, 1),
                     po_build_random(b, "mean", 1, c, 4, -1, 1),
                     po_build_random(b, "var", 1, c, 5, 0.5, 2)};
    y = po_build_node(b, NULL, "BatchNormalization", "norm", 5, norm);
    y = po_build_node(b, NULL, "Relu", "relu", 1, &y);
    po_build_output(b, y, "y");
    po_model *model;
    assert_int_equal(po_build_finish(b, &model, NULL), PO_OK);
    return model;
}

static void optimise(bed *t) {
    po_error error;
    po_model *built = network(), *model;
    po_options *o;
    po_result *result;
    test_mkdtemp(t->folder, sizeof t->folder);
    snprintf(t->in, sizeof t->in, "%s/in.onnx", t->folder);
    snprintf(t->out, sizeof t->out, "%s/out.onnx", t->folder);
    snprintf(t->cert, sizeof t->cert, "%s.cert", t->out);
    assert_int_equal(po_model_save(built, t->in, NULL), PO_OK);
    po_model_free(built);
    assert_int_equal(po_options_create(&o), PO_OK);
    assert_int_equal(po_options_set(o, "cache", "none", NULL), PO_OK);
    assert_int_equal(po_options_set(o, "cost", "model", NULL), PO_OK);
    assert_int_equal(po_options_set(o, "level", "1", NULL), PO_OK);
    assert_int_equal(po_model_load(t->in, &model, NULL), PO_OK);
    if (po_optimise(model, o, NULL, &result, &error) != PO_OK)
        fail_msg("%s", error.message);
    const po_summary *s = po_result_summary(result);
    assert_true(s->changed);
    if (!s->proved)
        fail_msg("%s", s->proof);
    assert_int_equal(po_result_save(result, t->out, NULL), PO_OK);
    po_result_free(result);
    po_model_free(model);
    po_options_free(o);
}

/* What verify makes of the files, short of running them. */
static po_replay replay(const char *in, const char *out) {
    po_ctx ctx;
    po_ctx_init(&ctx);
    po_arena *arena = po_arena_create(&ctx);
    po_model *a, *b;
    po_graph *x, *y;
    po_replay r;
    assert_int_equal(po_import_file(&ctx, in, &a), PO_OK);
    assert_int_equal(po_import_file(&ctx, out, &b), PO_OK);
    assert_int_equal(po_pin_inputs(&ctx, a->graph, NULL, 0, &x), PO_OK);
    assert_int_equal(po_pin_inputs(&ctx, b->graph, NULL, 0, &y), PO_OK);
    assert_int_equal(po_proving_replay(&ctx, arena, x, y, out, NULL, &r), PO_OK);
    po_graph_free(x);
    po_graph_free(y);
    po_model_free(a);
    po_model_free(b);
    po_arenas_free_since(&ctx, 0);
    return r;
}

static void expect_unproved(const bed *t, const char *what) {
    po_replay r = replay(t->in, t->out);
    if (r.proved)
        fail_msg("proved with %s", what);
    assert_true(strlen(r.text) > 0);
}

static void what_is_written_is_proved(void **state) {
    (void)state;
    bed t;
    optimise(&t);
    po_replay r = replay(t.in, t.out);
    if (!r.proved)
        fail_msg("%s", r.text);
    po_equality e;
    po_options *o;
    po_error error;
    assert_int_equal(po_options_create(&o), PO_OK);
    if (po_models_verify(t.in, t.out, o, NULL, &e, &error) != PO_OK)
        fail_msg("%s", error.message);
    assert_true(e.equal && e.proved && strlen(e.proof) > 0);
    po_options_free(o);
    /* Without it nothing is known of the folded weights. */
    assert_int_equal(remove(t.cert), 0);
    expect_unproved(&t, "no certificate");
    test_rmtree(t.folder);
}

/* Every tenth byte of the certificate turned into another. */
static void no_changed_byte_is_believed(void **state) {
    (void)state;
    bed t;
    optimise(&t);
    size_t size;
    char *text = test_read_file(t.cert, &size);
    int tried = 0;
    for (size_t i = 0; i < size; i += 1 + size / 60) {
        char was = text[i];
        if (was == ' ' || was == '\n')
            continue;
        text[i] = was == '7' ? '8' : '7';
        test_write_file(t.cert, text, size);
        expect_unproved(&t, "a changed byte");
        text[i] = was;
        tried++;
    }
    assert_true(tried > 30);
    test_write_file(t.cert, text, size);
    assert_true(replay(t.in, t.out).proved);
    for (size_t cut = 0; cut < size; cut += 1 + size / 20) {
        test_write_file(t.cert, text, cut);
        expect_unproved(&t, "half a certificate");
    }
    free(text);
    test_rmtree(t.folder);
}

/* --- one who can compute digests --- */

typedef struct forgery {
    const char *from, *to; /* in the recipes */
} forgery;

static const forgery forgeries[] = {
    {" = Sqrt(", " = Exp("},
    {" = Div(", " = Mul("},
    {" = Sub(", " = Add("},
    {" = Mul(", " = Add("},
    {"(mean)", "(shift)"},
    {"{to=1}", "{to=10}"},
    {"mean: f32[16]", "mean: f32[15]"},
    {"graph recipes", "graph recipe ("},
};

static void write_cert(const bed *t, po_arena *arena, const po_cert *cert) {
    const char *text = po_cert_print(arena, cert);
    test_write_text(t->cert, text);
}

static void no_forged_recipe_is_believed(void **state) {
    (void)state;
    bed t;
    optimise(&t);
    po_ctx ctx;
    po_ctx_init(&ctx);
    po_arena *arena = po_arena_create(&ctx);
    size_t size;
    char *text = test_read_file(t.cert, &size);
    po_cert cert;
    assert_int_equal(po_cert_parse(&ctx, arena, text, size, &cert), PO_OK);
    assert_true(cert.proof.proved && cert.proof.trials == 2 && cert.proof.log2_bound < -20);
    write_cert(&t, arena, &cert);
    assert_true(replay(t.in, t.out).proved);
    for (size_t i = 0; i < sizeof forgeries / sizeof *forgeries; i++) {
        po_cert forged = cert;
        char *recipes = test_replaced(cert.recipes, forgeries[i].from, forgeries[i].to);
        if (!recipes)
            fail_msg("'%s' is not in the recipes:\n%s", forgeries[i].from, cert.recipes);
        forged.recipes = recipes;
        write_cert(&t, arena, &forged);
        expect_unproved(&t, forgeries[i].to);
        free(recipes);
    }
    po_cert forged = cert;
    forged.recipes = NULL;
    write_cert(&t, arena, &forged);
    expect_unproved(&t, "no recipes");
    forged = cert;
    forged.in = cert.out;
    write_cert(&t, arena, &forged);
    expect_unproved(&t, "another input's hash");
    free(text);
    po_arenas_free_since(&ctx, 0);
    test_rmtree(t.folder);
}

/* A bit of the model that was written, and of the one that it was made from. */
static void changed_models_are_not_proved(void **state) {
    (void)state;
    bed t;
    optimise(&t);
    const char *const files[] = {t.in, t.out};
    for (int k = 0; k < 2; k++) {
        size_t size;
        unsigned char *data = test_read_file(files[k], &size);
        data[size / 2] ^= 1; /* within the weights */
        test_write_file(files[k], data, size);
        expect_unproved(&t, "a changed model");
        data[size / 2] ^= 1;
        test_write_file(files[k], data, size);
        free(data);
    }
    assert_true(replay(t.in, t.out).proved);
    test_rmtree(t.folder);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_written_is_proved),
        cmocka_unit_test(no_changed_byte_is_believed),
        cmocka_unit_test(no_forged_recipe_is_believed),
        cmocka_unit_test(changed_models_are_not_proved),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* A candidate that compares equal and is another function is not written: the proof counts. */
#include "ir/text.h"
#include "petopt.h"
#include "pipeline/pipeline.h"
#include "rewriting.h"
#include "run_fixture.h"
#include "test_onnx.h"
#include "test_paths.h"
#include "unit.h"

#include <stdio.h>

#define FORM(nodes)                                                                                \
    "pir 1 ir_version=8 opset=17\n"                                                                \
    "graph g (x: f32[2,6,4,4]) -> (y) {\n" nodes "}\n"

static const char original[] = FORM("  m = Mul(x, k: f32[] {0.3})\n"
                                    "  e = Mul(x, t: f32[] {1e-06})\n"
                                    "  f = Sub(e, e)\n"
                                    "  g = Add(m, f)\n"
                                    "  y = Relu(g)\n");
/* Off by 3e-6 of the output: far within the tolerance. */
static const char planted[] = FORM("  m = Mul(x, k: f32[] {0.3})\n"
                                   "  e = Mul(x, t: f32[] {1e-06})\n"
                                   "  g = Add(m, e)\n"
                                   "  y = Relu(g)\n");
static const char sound[] = FORM("  m = Mul(x, k: f32[] {0.3})\n"
                                 "  y = Relu(m)\n");

static void add(run_fixture *f, const char *name, const char *text) {
    po_graph *g = test_graph(&f->ctx, text);
    po_run_hold(&f->run, g);
    f->variants.variants[f->variants.n++] = (po_variant){.name = name, .graph = g};
}

static bool told(const run_fixture *f, const char *what) {
    for (uint32_t i = 0; i < f->run.record->n_notes; i++)
        if (strstr(f->run.record->notes[i], what))
            return true;
    return false;
}

static void the_next_has_its_turn(void **unused) {
    (void)unused;
    run_fixture f;
    run_fixture_start(&f, original);
    add(&f, "planted", planted);
    add(&f, "sound", sound);
    run_fixture_select(&f);
    assert_string_equal(f.run.record->summary.winner, "sound");
    assert_true(f.selected.winner.graph != f.imported.original && f.selected.winner.proof.proved);
    assert_true(told(&f, "'planted' was dropped: it compares equal, and the proof found"));
    const po_candidate_report *row = po_record_candidate(f.run.record, "planted");
    assert_true(!row->chosen && row->compared && row->error < 1e-4);
    assert_non_null(strstr(row->verdict, "disproved"));
    run_fixture_end(&f);
}

static void without_another_the_original_stays(void **unused) {
    (void)unused;
    run_fixture f;
    run_fixture_start(&f, original);
    add(&f, "planted", planted);
    run_fixture_select(&f);
    assert_true(f.selected.winner.graph == f.imported.original && !f.selected.winner.path);
    assert_string_equal(f.run.record->summary.winner, "original");
    assert_false(f.run.record->summary.compared);
    run_fixture_end(&f);
}

/* y = 0.3 x, or 1e-6 x more. */
static void write_file(const char *path, bool more) {
    test_onnx *m = test_onnx_new();
    float k = 0.3f, t = 1e-6f;
    test_onnx_input(m, "x", 1, "2,6");
    test_onnx_output(m, "y", 1, "2,6");
    test_onnx_initializer(m, "k", 1, "", &k, sizeof k);
    test_onnx_initializer(m, "t", 1, "", &t, sizeof t);
    test_onnx_node(m, "Mul", "x k", "m");
    test_onnx_node(m, "Mul", "x t", "e");
    test_onnx_node(m, "Sub", "e e", "f");
    test_onnx_node(m, "Add", more ? "m e" : "m f", "y");
    test_onnx_write(m, path);
    test_onnx_free(m);
}

static void verify_says_so(void **unused) {
    (void)unused;
    char dir[512], a[600], b[600];
    test_mkdtemp(dir, sizeof dir);
    snprintf(a, sizeof a, "%s/a.onnx", dir);
    snprintf(b, sizeof b, "%s/b.onnx", dir);
    write_file(a, false);
    write_file(b, true);
    po_equality e;
    po_error error;
    assert_int_equal(po_models_verify(a, b, NULL, NULL, &e, &error), PO_NOT_EQUAL);
    assert_true(!e.equal && !e.proved && e.error < 1e-4);
    assert_non_null(strstr(error.message, "the proof found a difference"));
    test_rmtree(dir);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_next_has_its_turn),
        cmocka_unit_test(without_another_the_original_stays),
        cmocka_unit_test(verify_says_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Every backend model of onnx is taken, and its graph keeps the invariants. */
#include "unit.h"

#include "import/import.h"
#include "test_paths.h"

#include <stdio.h>

enum { LEAST = 1914 };

typedef struct counts {
    int good, bad;
} counts;

static void visit(void *user, const char *path) {
    counts *c = user;
    po_ctx ctx;
    po_model *model = NULL;
    po_ctx_init(&ctx);
    po_status status = po_import_file(&ctx, path, &model);
    if (status == PO_OK)
        status = po_graph_check(&ctx, model->graph);
    if (status == PO_OK)
        c->good++;
    else
        c->bad += printf("%s\n", ctx.error.message) > 0;
    po_model_free(model);
    c->bad += ctx.arenas != NULL;
}

static void test_all(void **state) {
    (void)state;
    counts c = {0, 0};
    test_each_model("onnx/test-data", visit, &c);
    assert_int_equal(c.bad, 0);
    assert_true(c.good >= LEAST);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_all)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Every backend model of onnx is taken, and its graph keeps the invariants. */
#include "unit.h"

#include "import/import.h"
#include "test_paths.h"

#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

enum { LEAST = 1914 };

static int good, bad; /* ftw gives its callback no argument */

static int visit(const char *path, const struct stat *st, int kind) {
    size_t n = strlen(path);
    (void)st;
    if (kind != FTW_F || n < 5 || strcmp(path + n - 5, ".onnx") != 0)
        return 0;
    po_ctx ctx;
    po_model *model = NULL;
    po_ctx_init(&ctx);
    po_status status = po_import_file(&ctx, path, &model);
    if (status == PO_OK)
        status = po_graph_check(&ctx, model->graph);
    if (status == PO_OK)
        good++;
    else
        bad += printf("%s\n", ctx.error.message) > 0;
    po_model_free(model);
    bad += ctx.arenas != NULL;
    return 0;
}

static void test_all(void **state) {
    (void)state;
    char data[PATH_MAX];
    assert_int_equal(ftw(test_deps_path(data, sizeof data, "onnx/test-data"), visit, 32), 0);
    assert_int_equal(bad, 0);
    assert_true(good >= LEAST);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_all)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

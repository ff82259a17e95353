/* Every published backend model and the OCR models come back from their text form. */
#include "import/import.h"
#include "ir/text.h"
#include "test_paths.h"
#include "unit.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>

enum { LEAST_EQUAL = 1910 };

typedef struct totals {
    int equal, verbatim, refused, failed;
} totals;

/* Printed with all data and by hash; each must parse back to an equal graph. */
static const char *round_trip(po_ctx *ctx, const po_graph *g) {
    for (int by_hash = 0; by_hash < 2; by_hash++) {
        po_arena *arena = po_arena_create(ctx);
        po_text text, again;
        po_graph *back;
        po_print_options options = {.most_items = 8, .all_data = !by_hash};
        po_text_init(&text, arena);
        po_graph_print_as(&text, g, options);
        if (po_graph_parse_with(ctx, text.data, by_hash ? g : NULL, &back) != PO_OK)
            return ctx->error.message;
        po_text_init(&again, arena);
        po_graph_print_as(&again, back, options);
        if (!po_graph_equal(g, back))
            return "not equal";
        if (text.size != again.size || memcmp(text.data, again.data, text.size) != 0)
            return "the text differs the second time";
        po_graph_free(back);
        po_arena_free(arena);
    }
    return NULL;
}

static void one_model(totals *all, const char *path) {
    po_ctx ctx;
    po_ctx_init(&ctx);
    po_model *model;
    if (po_import_file(&ctx, path, &model) != PO_OK) {
        printf("%s: %s\n", path, ctx.error.message);
        all->refused++;
    } else {
        const char *wrong = round_trip(&ctx, model->graph);
        bool verbatim = wrong && strstr(wrong, "verbatim");
        if (wrong)
            printf("%s: %s\n", path, wrong);
        all->verbatim += verbatim;
        all->failed += wrong && !verbatim;
        all->equal += !wrong;
        po_model_free(model);
    }
    po_arenas_free_since(&ctx, 0);
}

static void folder(totals *all, const char *rel, const char *file) {
    char path[512], full[1200];
    struct dirent **names;
    int n = scandir(test_deps_path(path, sizeof path, rel), &names, NULL, alphasort);
    assert_true(n > 0);
    for (int i = 0; i < n; i++) {
        const char *name = names[i]->d_name, *dot = strrchr(name, '.');
        snprintf(full, sizeof full, "%s/%s%s", path, name, file);
        if (name[0] != '.' && (*file || (dot && strcmp(dot, ".onnx") == 0)))
            one_model(all, full);
        free(names[i]);
    }
    free(names);
}

static void test_models_come_back(void **state) {
    (void)state;
    totals all = {0};
    folder(&all, "onnx/test-data/node", "/model.onnx");
    folder(&all, "onnx/test-data/simple", "/model.onnx");
    folder(&all, "onnx/test-data/pytorch-operator", "/model.onnx");
    folder(&all, "onnx/test-data/pytorch-converted", "/model.onnx");
    folder(&all, "onnx/test-data/light", "");
    folder(&all, "models", "");
    printf("%d models equal, %d hold what the form does not, %d not imported, %d failed\n",
           all.equal, all.verbatim, all.refused, all.failed);
    assert_int_equal(all.failed, 0);
    assert_int_equal(all.refused, 0);
    assert_true(all.verbatim <= 4);
    assert_true(all.equal >= LEAST_EQUAL);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_models_come_back)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

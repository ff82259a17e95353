/* The golden cases of activations and norms compute what they computed before: both graphs are
 * evaluated in float64 on random inputs. */
#include "postopt/postopt.h"
#include "rewriting.h"
#include "test_paths.h"
#include "unit.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LEAST_CASES = 14 };

/* Constants of the models are floats: 1/sqrt 2 alone is off by 2e-8. */
#define MOST_ERROR 2e-6

/* Difference between the case's graph and what all of postopt makes of it. */
static double difference_of(const char *path, bool damage) {
    size_t size;
    char *text = test_read_file(path, &size);
    assert_non_null(text);
    po_ctx ctx;
    po_ctx_init(&ctx);
    po_graph *g = test_graph(&ctx, text), *h = NULL;
    po_postopt_options options = po_postopt_defaults();
    if (po_postopt(&ctx, g, &options, &h, NULL) != PO_OK || po_graph_check(&ctx, h) != PO_OK)
        fail_msg("%s: %s", path, ctx.error.message);
    bool damaged = false;
    for (uint32_t i = 0; damage && i < h->n_values; i++) {
        const po_tensor *t = h->values[i].constant;
        if (!t || t->dtype != PO_F32 || t->count < 1)
            continue;
        po_tensor *changed = po_arena_memdup(h->arena, t, sizeof *t);
        changed->data = po_arena_memdup(h->arena, t->data, t->size);
        po_tensor_set_f64(changed, 0, po_tensor_f64(t, 0) * 1.0001 + 1e-4);
        h->values[i].constant = changed;
        damaged |= h->values[i].n_uses > 0;
    }
    double d = test_difference(&ctx, g, h, 7);
    const char *fault = test_recipe_fault(&ctx, g, h);
    if (fault && !damage)
        fail_msg("%s: %s", path, fault);
    if (!fault && damaged)
        fail_msg("%s: a changed constant was not found", path);
    po_graph_free(h);
    po_graph_free(g);
    free(text);
    return d;
}

static void each_case(int *cases, int *wrong, bool damage) {
    char folder[4096], path[8192];
    test_source_path(folder, sizeof folder, "tests/golden/cases");
    DIR *dir = opendir(folder);
    assert_non_null(dir);
    for (struct dirent *e; (e = readdir(dir));) {
        const char *tail = strstr(e->d_name, ".in.pir");
        if (!tail || (strncmp(e->d_name, "act_", 4) && strncmp(e->d_name, "norm_", 5)))
            continue;
        snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
        double d = difference_of(path, damage);
        ++*cases;
        if (d < MOST_ERROR)
            continue;
        ++*wrong;
        if (!damage)
            printf("%s: error %g\n", e->d_name, d);
    }
    closedir(dir);
}

static void test_cases(void **state) {
    (void)state;
    int cases = 0, wrong = 0;
    each_case(&cases, &wrong, false);
    assert_int_equal(wrong, 0);
    assert_true(cases >= LEAST_CASES);
}

/* Constants off by 1e-4 are noticed (activations whose constants are attributes apart). */
static void test_damage(void **state) {
    (void)state;
    int cases = 0, wrong = 0;
    each_case(&cases, &wrong, true);
    assert_true(wrong >= cases - 3);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cases),
        cmocka_unit_test(test_damage),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

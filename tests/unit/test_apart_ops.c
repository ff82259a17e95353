/* Every operator, as the backend models of onnx use it, with the first axis of its inputs opened:
 * where samples are said to be kept apart, the reference makes of four what it makes of each. */
#include "import/import.h"
#include "ops/samples.h"
#include "parts.h"
#include "test_paths.h"
#include "unit.h"

#include <math.h>
#include <stdio.h>

enum { LEAST_SHOWN = 800 };

typedef struct counts {
    int shown, refused, bad;
} counts;

static bool can_be_opened(const po_graph *g) {
    for (uint32_t i = 0; i < g->n_inputs; i++) {
        const po_type *t = &g->values[g->inputs[i]].type;
        if (t->kind != PO_TYPE_TENSOR || !t->has_rank || po_type_count(t) < 0 ||
            po_dtype_class_of(t->dtype) == PO_CLASS_NONE || t->dtype == PO_STR)
            return false;
    }
    return g->n_inputs > 0 && g->n_inputs <= TEST_MOST_INPUTS;
}

static void look(counts *c, po_ctx *ctx, const po_graph *graph, uint32_t mask, const char *path) {
    po_arena *arena = po_arena_create(ctx);
    po_graph *open = test_with_samples(ctx, graph, mask, -1);
    int8_t *axis;
    po_status status = po_samples_apart(ctx, arena, open, &axis);
    po_ctx_clear(ctx);
    if (status != PO_OK) {
        c->refused++;
    } else {
        double worst = test_samples_apart(ctx, arena, graph, mask, axis);
        po_ctx_clear(ctx);
        c->shown += !isnan(worst);
        if (worst >= 1e-9) {
            c->bad++;
            printf("%s, inputs %x: off by %g\n", path, mask, worst);
        }
    }
    po_graph_free(open);
    po_arena_free(arena);
}

static void visit(void *user, const char *path) {
    po_ctx ctx;
    po_model *model = NULL;
    po_ctx_init(&ctx);
    if (po_import_file(&ctx, path, &model) == PO_OK && can_be_opened(model->graph)) {
        const po_graph *g = model->graph;
        po_ops_resolve(model->graph);
        uint32_t all = 0;
        for (uint32_t i = 0; i < g->n_inputs; i++)
            all |= g->values[g->inputs[i]].type.rank > 0 ? 1u << i : 0;
        if (all)
            look(user, &ctx, g, all, path);
        for (uint32_t i = 0; i < g->n_inputs; i++)
            if (all >> i & 1 && all != 1u << i)
                look(user, &ctx, g, 1u << i, path);
    }
    po_model_free(model);
}

static void operators_keep_their_word(void **state) {
    (void)state;
    counts c = {0, 0, 0};
    test_each_model("onnx/test-data/node", visit, &c);
    printf("%d shown, %d refused\n", c.shown, c.refused);
    assert_int_equal(c.bad, 0);
    assert_true(c.shown >= LEAST_SHOWN);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(operators_keep_their_word)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

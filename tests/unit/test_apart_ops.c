/* Every operator, as the backend models of onnx use it, with the first axis of its inputs opened:
 * where samples are said to be kept apart, the reference makes of four what it makes of each. */
#include "import/import.h"
#include "ops/samples.h"
#include "parts.h"
#include "test_paths.h"
#include "unit.h"

#include <ftw.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>

enum { MANY = 4, MOST_INPUTS = 16, LEAST_SHOWN = 800 };

static int shown, refused, bad; /* ftw gives its callback no argument */

/* With so many samples, or any number for n < 0, along the first axes of the inputs in the mask. */
static po_graph *with_samples(po_ctx *ctx, const po_graph *graph, uint32_t mask, int64_t n) {
    po_graph *g = po_graph_clone(ctx, graph);
    for (uint32_t i = 0; i < g->n_inputs; i++) {
        po_type *type = &g->values[g->inputs[i]].type;
        po_dim *dims = po_arena_memdup(g->arena, type->dims, type->rank * sizeof *dims);
        if (mask >> i & 1)
            dims[0] = n < 0 ? (po_dim){-1, "N"} : PO_DIM(n);
        type->dims = dims;
    }
    return g;
}

static bool can_be_opened(const po_graph *g) {
    for (uint32_t i = 0; i < g->n_inputs; i++) {
        const po_type *t = &g->values[g->inputs[i]].type;
        if (t->kind != PO_TYPE_TENSOR || !t->has_rank || po_type_count(t) < 0 ||
            po_dtype_class_of(t->dtype) == PO_CLASS_NONE || t->dtype == PO_STR)
            return false;
    }
    return g->n_inputs > 0 && g->n_inputs <= MOST_INPUTS;
}

/* `first`: of the samples; inputs that are not in the mask are the same for all. */
static const po_array *drawn(po_ctx *ctx, po_arena *arena, const po_graph *g, uint32_t i,
                             uint32_t mask, int64_t first) {
    const po_type *t = &g->values[g->inputs[i]].type;
    int64_t dims[PO_MAX_RANK], each = 1;
    for (uint32_t d = 0; d < t->rank; d++) {
        dims[d] = t->dims[d].value;
        each *= d > 0 ? dims[d] : 1;
    }
    po_array *a;
    if (po_array_create(ctx, arena, t->dtype, t->rank, dims, &a) != PO_OK)
        return NULL;
    const int64_t from = mask >> i & 1 ? first * each : 0;
    for (int64_t k = 0; k < a->count; k++) {
        const uint64_t at = (uint64_t)(from + k);
        if (a->f)
            a->f[k] = po_random_normal(3, i, at);
        else
            a->i[k] = (int64_t)(po_random_u64(3, i, at) % (t->dtype == PO_BOOL ? 2 : 4));
    }
    po_array_round(a);
    return a;
}

static bool evaluate(po_ctx *ctx, po_arena *arena, const po_graph *g, uint32_t mask, int64_t first,
                     po_array **out) {
    const po_array *in[MOST_INPUTS];
    for (uint32_t i = 0; i < g->n_inputs; i++)
        if (!(in[i] = drawn(ctx, arena, g, i, mask, first)))
            return false;
    return po_ref_graph(ctx, arena, g, in, out, false) == PO_OK;
}

/* False where the reference does not take it. */
static bool hold(po_ctx *ctx, po_arena *arena, const po_graph *graph, uint32_t mask,
                 const int8_t *axis, double *worst) {
    po_graph *many = with_samples(ctx, graph, mask, MANY), *one = with_samples(ctx, graph, mask, 1);
    po_array **all = PO_NEW_N(arena, po_array *, graph->n_outputs);
    po_array **part = PO_NEW_N(arena, po_array *, graph->n_outputs);
    bool good = evaluate(ctx, arena, many, mask, 0, all);
    *worst = 0;
    for (int64_t i = 0; good && i < MANY; i++) {
        good = evaluate(ctx, arena, one, mask, i, part);
        for (uint32_t k = 0; good && k < graph->n_outputs; k++)
            *worst = fmax(*worst, test_part_differs(all[k], MANY, part[k], axis[k], i));
    }
    po_graph_free(one);
    po_graph_free(many);
    return good;
}

static void look(po_ctx *ctx, const po_graph *graph, uint32_t mask, const char *path) {
    po_arena *arena = po_arena_create(ctx);
    po_graph *open = with_samples(ctx, graph, mask, -1);
    int8_t *axis;
    double worst;
    po_status status = po_samples_apart(ctx, arena, open, &axis);
    po_ctx_clear(ctx);
    if (status != PO_OK) {
        refused++;
    } else if (hold(ctx, arena, graph, mask, axis, &worst)) {
        shown++;
        if (!(worst < 1e-9)) {
            bad++;
            printf("%s, inputs %x: off by %g\n", path, mask, worst);
        }
    }
    po_ctx_clear(ctx);
    po_graph_free(open);
    po_arena_free(arena);
}

static int visit(const char *path, const struct stat *st, int kind) {
    size_t n = strlen(path);
    (void)st;
    if (kind != FTW_F || n < 5 || strcmp(path + n - 5, ".onnx") != 0)
        return 0;
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
            look(&ctx, g, all, path);
        for (uint32_t i = 0; i < g->n_inputs; i++)
            if (all >> i & 1 && all != 1u << i)
                look(&ctx, g, 1u << i, path);
    }
    po_model_free(model);
    return 0;
}

static void operators_keep_their_word(void **state) {
    (void)state;
    char data[PATH_MAX];
    assert_int_equal(ftw(test_deps_path(data, sizeof data, "onnx/test-data/node"), visit, 32), 0);
    printf("%d shown, %d refused\n", shown, refused);
    assert_int_equal(bad, 0);
    assert_true(shown >= LEAST_SHOWN);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(operators_keep_their_word)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

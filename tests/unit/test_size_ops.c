/* Every operator, as the backend models of onnx use it, with the dims of its inputs opened: what
 * its shape rule says of names is, at the lengths that they have, what it says of numbers. */
#include "import/import.h"
#include "ir/size.h"
#include "ops/op.h"
#include "test_paths.h"
#include "unit.h"

#include <stdio.h>

enum { LEAST_EXPRESSIONS = 1500, MORE = 3 };

typedef struct counts {
    int expressions, same, bad;
} counts;

/* The name of a length that is k in the model is nk, and it is k + more. */
static bool length_of(void *user, const char *symbol, int64_t *length) {
    const int64_t *more = user;
    long long k;
    if (sscanf(symbol, "n%lld", &k) != 1)
        return false;
    *length = k + *more;
    return true;
}

/* Lengths of two and more as names; or longer by so many. */
static po_dim as_name(void *user, po_graph *graph, po_value_id input, uint32_t axis) {
    const po_dim d = graph->values[input].type.dims[axis];
    (void)user;
    return d.value < 2 ? d
                       : (po_dim){-1, po_arena_printf(graph->arena, "n%lld", (long long)d.value)};
}

static po_dim longer(void *user, po_graph *graph, po_value_id input, uint32_t axis) {
    const po_dim d = graph->values[input].type.dims[axis];
    return d.value < 2 ? d : PO_DIM(d.value + *(const int64_t *)user);
}

static void compare(counts *c, po_arena *arena, const po_graph *open, const po_graph *pinned,
                    int64_t more, const char *path) {
    for (po_value_id v = 0; v < open->n_values; v++) {
        const po_type *a = &open->values[v].type, *b = &pinned->values[v].type;
        if (!po_graph_producer(open, v) || !a->has_rank || !b->has_rank || a->rank != b->rank)
            continue;
        for (uint32_t d = 0; d < a->rank; d++) {
            int64_t value;
            if (b->dims[d].value < 0 || !po_size_made(a->dims[d].symbol) || a->dims[d].value >= 0)
                continue;
            c->expressions++;
            c->same += po_size_at(arena, a->dims[d], length_of, &more, &value);
            if (value != b->dims[d].value) {
                c->bad++;
                printf("%s: '%s' dim %u: %s is %lld with %lld more, not %lld\n", path,
                       open->values[v].name, d, a->dims[d].symbol, (long long)value,
                       (long long)more, (long long)b->dims[d].value);
            }
        }
    }
}

static void visit(void *user, const char *path) {
    po_ctx ctx;
    po_model *model = NULL;
    po_ctx_init(&ctx);
    if (po_import_file(&ctx, path, &model) == PO_OK) {
        po_ops_resolve(model->graph);
        po_graph *open = po_infer_with_dims(&ctx, model->graph, as_name, NULL);
        for (int64_t more = 0; more < MORE; more++) {
            po_graph *pinned = po_infer_with_dims(&ctx, model->graph, longer, &more);
            compare(user, open->arena, open, pinned, more, path);
            po_graph_free(pinned);
        }
        po_graph_free(open);
    }
    po_model_free(model);
}

static void expressions_are_the_lengths(void **state) {
    (void)state;
    counts c = {0, 0, 0};
    test_each_model("onnx/test-data/node", visit, &c);
    printf("%d expressions\n", c.expressions);
    assert_int_equal(c.bad, 0);
    assert_int_equal(c.same, c.expressions);
    assert_true(c.expressions >= LEAST_EXPRESSIONS);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(expressions_are_the_lengths)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Open lengths that a model's own nodes say: inputs are drawn so that it runs. */
#include "ops/ref.h"
#include "rewriting.h"
#include "unit.h"
#include "verify/inputs/internal.h"

typedef struct fixture {
    po_ctx ctx;
    po_arena *arena;
    po_graph *graph;
    po_inputs *plan;
} fixture;

static void start(fixture *f, const char *text) {
    po_ctx_init(&f->ctx);
    f->arena = po_arena_create(&f->ctx);
    f->graph = test_graph(&f->ctx, text);
    assert_int_equal(po_inputs_plan(&f->ctx, f->arena, f->graph, NULL, &f->plan), PO_OK);
}

static void finish(fixture *f) {
    po_graph_free(f->graph);
    po_arena_free(f->arena);
}

/* `length`: of axis `axis` of x wherever it is tried; `exact`: what kernels and proofs may build
 * on; `first`: of the batch or the frames at which it is timed. */
static const struct row {
    const char *name, *graph;
    uint32_t axis;
    int64_t length;
    bool exact;
    int64_t first;
} rows[] = {
    {"rows of a product",
     "graph g (x: f32[\"n\",\"m\"]) -> (y) {\n y = MatMul(x, w: f32[266,8] random 1)\n}", 1, 266,
     true, 1},
    {"behind a transposition, and what moves nothing",
     "graph g (x: f32[\"n\",\"m\"]) -> (y) {\n a = Unsqueeze(x, i: i64[1] {0})\n"
     " b = Transpose(a) {perm=[0, 2, 1]}\n c = Relu(b)\n"
     " y = Conv(c, w: f32[4,23,3] random 1) {kernel_shape=[3], pads=[1, 1]}\n}",
     1, 23, true, 200},
    {"features of a recurrent layer",
     "graph g (x: f32[\"n\",\"m\"]) -> (y) {\n a = Unsqueeze(x, i: i64[1] {1})\n"
     " y, _, _ = LSTM(a, w: f32[1,8,31] random 1, r: f32[1,8,2] random 2) {hidden_size=2}\n}",
     1, 31, true, 200},
    {"what is added spreads, or is as long",
     "graph g (x: f32[\"n\",\"m\"]) -> (y) {\n y = Add(x, w: f32[19] random 1)\n}", 1, 19, false,
     1},
    {"samples of so many numbers",
     "graph g (x: f32[\"n\",3,\"m\"]) -> (y) {\n a = Reshape(x, s: i64[2] {-1, 36})\n"
     " y = MatMul(a, w: f32[36,2] random 1)\n}",
     2, 12, false, 1},
    {"so many numbers in all",
     "graph g (x: f32[1,3,\"m\"]) -> (y) {\n y = Reshape(x, s: i64[2] {4, 9})\n}", 2, 12, false, 1},
    {"an axis that goes is one long",
     "graph g (x: f32[\"n\",\"m\",8]) -> (y) {\n y = Squeeze(x, i: i64[1] {1})\n}", 1, 1, true, 1},
    {"a height without a name, of which one row is left",
     "graph g (x: f32[1,3,?,320]) -> (y) {\n a = Conv(x, w: f32[4,3,3,3] random 1) "
     "{kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1]}\n"
     " b = AveragePool(a) {kernel_shape=[12, 2], strides=[12, 2]}\n"
     " y = Squeeze(b, i: i64[1] {2})\n}",
     2, 32, false, 1},
    {"what is half of it, less the ends",
     "graph g (x: f32[1,2,\"m\"]) -> (y) {\n a = Conv(x, w: f32[2,2,4] random 1) "
     "{kernel_shape=[4], "
     "strides=[2]}\n y = MatMul(a, v: f32[20,3] random 2)\n}",
     2, 42, false, 1},
};

static void lengths_are_those_that_nodes_take(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        fixture f;
        start(&f, rows[i].graph);
        for (uint32_t size = 0; size < 16; size++)
            if (po_inputs_length(f.plan, "x", rows[i].axis, size) != rows[i].length)
                fail_msg("%s: %lld at assignment %u", rows[i].name,
                         (long long)po_inputs_length(f.plan, "x", rows[i].axis, size), size);
        assert_int_equal(po_inputs_length(f.plan, "x", rows[i].axis, PO_FIRST_MEANT),
                         rows[i].length);
        assert_int_equal(po_inputs_length(f.plan, "x", 0, PO_FIRST_MEANT), rows[i].first);
        if ((po_inputs_related(f.plan, "m").value == rows[i].length) != rows[i].exact)
            fail_msg("%s: taken for exact, or not", rows[i].name);
        finish(&f);
    }
}

/* The model's reference runs at every assignment that is tried. */
static void models_run_at_them(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        fixture f;
        start(&f, rows[i].graph);
        for (uint32_t size = 0; size < 4; size++) {
            po_feed feed;
            assert_int_equal(
                po_inputs_make(&f.ctx, f.arena, f.plan, size, PO_INPUTS_NORMAL, 1, &feed), PO_OK);
            po_array *in, *out;
            assert_int_equal(po_array_from_tensor(&f.ctx, f.arena, feed.data[0].tensor, &in),
                             PO_OK);
            const po_array *inputs = in;
            if (po_ref_graph(&f.ctx, f.arena, f.graph, &inputs, &out, false) != PO_OK)
                fail_msg("%s: %s", rows[i].name, f.ctx.error.message);
        }
        finish(&f);
    }
}

/* Windows say the least that there can be; longer ones are as they were. Slices may be empty. */
static void windows_fit(void **state) {
    (void)state;
    fixture f;
    start(&f, "graph g (x: f32[1,2,\"m\"]) -> (y) {\n"
              " a = Conv(x, w: f32[2,2,9] random 1) {kernel_shape=[9], strides=[3]}\n"
              " b = MaxPool(a) {kernel_shape=[4], strides=[4]}\n"
              " y = Slice(b, s: i64[1] {0}, e: i64[1] {-2}, i: i64[1] {2})\n}");
    int64_t least = INT64_MAX, most = 0;
    for (uint32_t size = 0; size < 16; size++) {
        const int64_t length = po_inputs_length(f.plan, "x", 2, size);
        least = length < least ? length : least;
        most = length > most ? length : most;
    }
    /* One window; the pool, too, is put once where its map is shorter. */
    assert_int_equal(least, 9);
    assert_int_equal(most, 16000);
    finish(&f);
}

static void what_is_asked_for_counts(void **state) {
    (void)state;
    fixture f;
    int64_t dims[2] = {5, 7};
    const po_pin size = {.name = "x", .rank = 2, .dims = dims};
    start(&f, rows[0].graph);
    assert_int_equal(po_inputs_want(&f.ctx, f.arena, f.plan, &size, 1), PO_OK);
    assert_int_equal(po_inputs_length(f.plan, "x", 1, PO_FIRST_MEANT), 7);
    finish(&f);
}

/* The first element of a row is one, whatever the row is. */
static void what_always_holds_demands_nothing(void **state) {
    (void)state;
    fixture f;
    start(&f, "graph g (x: f32[2,\"m\"]) -> (y) {\n"
              " a = Slice(x, s: i64[1] {0}, e: i64[1] {1}, i: i64[1] {1})\n"
              " y = Squeeze(a, i)\n}");
    assert_int_not_equal(po_inputs_length(f.plan, "x", 1, 0), po_inputs_length(f.plan, "x", 1, 1));
    finish(&f);
}

/* Windows over both axes: frames of features. */
static void frames_have_features(void **state) {
    (void)state;
    fixture f;
    start(&f, "graph g (x: f32[\"n\",\"m\"]) -> (y) {\n"
              " a = Unsqueeze(x, i: i64[2] {0, 1})\n"
              " y = Conv(a, w: f32[2,1,3,3] random 1) {kernel_shape=[3, 3]}\n}");
    assert_int_equal(po_inputs_length(f.plan, "x", 0, PO_FIRST_MEANT), 200);
    assert_int_equal(po_inputs_length(f.plan, "x", 1, PO_FIRST_MEANT), 80);
    finish(&f);
}

/* Tokens that are put into one list are as many as there are. */
static void rows_of_tokens_demand_nothing(void **state) {
    (void)state;
    static const char *const graphs[] = {
        "graph g (x: f32[\"n\",\"m\",24]) -> (y) {\n y = Reshape(x, s: i64[2] {-1, 24})\n}",
        "graph g (x: f32[\"n\",\"m\",4,6]) -> (y) {\n y = Reshape(x, s: i64[2] {-1, 24})\n}",
        "graph g (x: f32[\"n\",4,\"m\",6]) -> (y) {\n y = Reshape(x, s: i64[2] {-1, 24})\n}",
        "graph g (x: f32[\"n\",\"k\",\"m\",6]) -> (y) {\n y = Reshape(x, s: i64[2] {-1, 24})\n}",
    };
    for (size_t i = 0; i < sizeof graphs / sizeof graphs[0]; i++) {
        fixture f;
        start(&f, graphs[i]);
        const uint32_t axis = i < 2 ? 1 : 2;
        if (po_inputs_length(f.plan, "x", axis, 0) == po_inputs_length(f.plan, "x", axis, 1))
            fail_msg("graph %zu: %lld at two assignments", i,
                     (long long)po_inputs_length(f.plan, "x", axis, 0));
        finish(&f);
    }
}

/* What nothing reads is not executed, and demands nothing. */
static void dead_nodes_demand_nothing(void **state) {
    (void)state;
    fixture f;
    start(&f, "graph g (x: f32[\"n\",\"m\"]) -> (y) {\n y = Relu(x)\n"
              " z = MatMul(x, w: f32[266,8] random 1)\n}");
    assert_int_not_equal(po_inputs_length(f.plan, "x", 1, 0), 266);
    assert_true(po_inputs_related(f.plan, "m").value < 0);
    finish(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lengths_are_those_that_nodes_take),
        cmocka_unit_test(models_run_at_them),
        cmocka_unit_test(windows_fit),
        cmocka_unit_test(what_is_asked_for_counts),
        cmocka_unit_test(what_always_holds_demands_nothing),
        cmocka_unit_test(frames_have_features),
        cmocka_unit_test(rows_of_tokens_demand_nothing),
        cmocka_unit_test(dead_nodes_demand_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

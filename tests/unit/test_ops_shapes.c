/* Shape rules of nn and data movement where dims are symbols: what must stay known, and what must
 * be refused with the node's name. */
#include "ops/op.h"
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>

typedef struct bench {
    po_ctx ctx;
    po_arena *arena;
    po_opset opset;
    po_model model;
    po_graph *g;
} bench;

static void open_bench(bench *b, int64_t opset) {
    memset(b, 0, sizeof *b);
    po_ctx_init(&b->ctx);
    b->arena = po_arena_create(&b->ctx);
    b->opset = (po_opset){"", opset};
    b->model = (po_model){.arena = b->arena, .opsets = &b->opset, .n_opsets = 1};
    b->g = po_graph_create(&b->ctx, &b->model, "g");
}

static void close_bench(bench *b) {
    po_graph_free(b->g);
    po_arena_free(b->arena);
}

/* "N,3,?,64": symbols, numbers, unknown. */
static po_value_id input(bench *b, const char *dims) {
    po_dim d[16];
    uint32_t n = 0;
    char text[128];
    snprintf(text, sizeof text, "%s", dims);
    for (char *save, *word = strtok_r(text, ",", &save); word; word = strtok_r(NULL, ",", &save))
        d[n++] = *word == '?'                   ? PO_DIM_UNKNOWN
                 : *word >= '0' && *word <= '9' ? PO_DIM(atoi(word))
                                                : (po_dim){-1, po_arena_strdup(b->arena, word)};
    po_type t = po_type_tensor(b->arena, PO_F32, n, d);
    return po_graph_add_input(b->g, NULL, &t);
}

static po_value_id ints(bench *b, uint32_t n, const int64_t *v) {
    return po_graph_add_constant(b->g, NULL, po_tensor_i64(b->arena, n, v));
}

static po_value_id scalar(bench *b, int64_t v) {
    po_tensor *t;
    assert_int_equal(po_tensor_create(&b->ctx, b->arena, PO_I64, 0, NULL, &t), PO_OK);
    po_tensor_set_int(t, 0, v);
    return po_graph_add_constant(b->g, NULL, t);
}

#define INTS(b, ...)                                                                               \
    ints((b), sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t), (int64_t[]){__VA_ARGS__})

static po_node_id node(bench *b, const char *op, uint32_t n_in, const po_value_id *in,
                       uint32_t n_out) {
    po_value_id out[4];
    for (uint32_t k = 0; k < n_out; k++)
        out[k] = po_graph_add_value(b->g, NULL, NULL);
    return po_ops_add(b->g, PO_NONE,
                      &(po_node_spec){.op = po_op_find("", op),
                                      .name = "the node",
                                      .n_in = n_in,
                                      .in = in,
                                      .n_out = n_out,
                                      .out = out});
}

#define NODE(b, op, n_out, ...)                                                                    \
    node((b), (op), sizeof((po_value_id[]){__VA_ARGS__}) / sizeof(po_value_id),                    \
         (po_value_id[]){__VA_ARGS__}, (n_out))

static po_value_id out_of(const bench *b, po_node_id id, uint32_t k) {
    return b->g->nodes[id].out[k];
}

static void expect(bench *b, po_value_id v, const char *want) {
    po_text text;
    po_status status = po_infer_graph(&b->ctx, b->g, false);
    if (status != PO_OK)
        fail_msg("%s", b->ctx.error.message);
    po_text_init(&text, b->arena);
    po_type_print(&text, &b->g->values[v].type);
    assert_string_equal(text.data, want);
}

/* The rule refuses, names the node and says this. */
static void expect_bad(bench *b, const char *why) {
    assert_int_equal(po_infer_graph(&b->ctx, b->g, false), PO_BAD_INPUT);
    assert_non_null(strstr(b->ctx.error.message, "the node"));
    if (!strstr(b->ctx.error.message, why))
        fail_msg("'%s' does not say '%s'", b->ctx.error.message, why);
    close_bench(b);
}

static void check(const char *op, const char *dims, const char *attr, uint32_t n,
                  const int64_t *values, const char *want, bool bad) {
    bench b;
    open_bench(&b, 13);
    po_node_id id = NODE(&b, op, 1, input(&b, dims));
    if (strcmp(op, "Conv") == 0 || strcmp(op, "ConvTranspose") == 0) {
        po_value_id w = input(&b, "8,4,3,3");
        po_graph_resize_inputs(b.g, id, 2);
        po_graph_set_input(b.g, id, 1, w);
    } else if (strstr(op, "Pool")) {
        po_node_set_ints(b.g, id, "kernel_shape", 2, (int64_t[]){3, 3});
    }
    if (attr && n == 0)
        po_node_set_int(b.g, id, attr, values[0]);
    else if (attr)
        po_node_set_ints(b.g, id, attr, n, values);
    if (bad) {
        expect_bad(&b, want);
        return;
    }
    expect(&b, out_of(&b, id, 0), want);
    close_bench(&b);
}

static void test_windows(void **state) {
    (void)state;
    check("Conv", "N,4,H,W", "pads", 4, (int64_t[]){1, 1, 1, 1}, "f32[\"N\",8,\"H\",\"W\"]", false);
    check("Conv", "N,4,H,10", NULL, 0, NULL, "f32[\"N\",8,\"(H - 2)\",8]", false);
    check("MaxPool", "N,4,H,W", "pads", 4, (int64_t[]){0, 1, 2, 1}, "f32[\"N\",4,\"H\",\"W\"]",
          false);
    /* Smaller than the kernel: not known, not negative. */
    check("Conv", "1,4,2,2", NULL, 0, NULL, "f32[1,8,?,?]", false);
    check("Conv", "1,4,0,8", NULL, 0, NULL, "f32[1,8,?,6]", false);
    /* A pool's is put once, where its stride passes what is missing: as in the runtime. */
    check("MaxPool", "1,4,1,2", "strides", 2, (int64_t[]){3, 3}, "f32[1,4,1,1]", false);
    check("AveragePool", "N,4,H,W", "strides", 2, (int64_t[]){3, 2},
          "f32[\"N\",4,\"(max(1, floor(H/3)))\",\"(floor((W + 1)/2) - 1)\"]", false);
    check("MaxPool", "1,4,1,2", "strides", 2, (int64_t[]){2, 2}, "f32[1,4,?,1]", false);
    /* Of no samples. */
    check("MaxPool", "0,4,0,3", "strides", 2, (int64_t[]){3, 3}, "f32[0,4,?,1]", false);
    check("ConvTranspose", "N,8,5,W", "output_shape", 2, (int64_t[]){9, 9}, "f32[\"N\",4,9,9]",
          false);
}

static void test_windows_refuse(void **state) {
    static const int64_t hostile[] = {0, -1, INT64_MIN, INT64_MAX, INT64_C(1) << 32};
    static const char *const lists[] = {"strides", "dilations", "kernel_shape"};
    (void)state;
    for (size_t k = 0; k < sizeof hostile / sizeof *hostile; k++) {
        for (size_t a = 0; a < 3; a++) {
            check("Conv", "1,4,9,9", lists[a], 2, (int64_t[]){1, hostile[k]}, lists[a], true);
            check("AveragePool", "1,4,9,9", lists[a], 2, (int64_t[]){1, hostile[k]}, lists[a],
                  true);
        }
        check("Conv", "1,4,9,9", "group", 0, &hostile[k], "group", true);
    }
    check("Conv", "1,4,9,9", "pads", 4, (int64_t[]){0, 0, 0, INT64_MIN}, "pads", true);
    check("Conv", "1,4,9,9", "pads", 3, (int64_t[]){0, 0, 0}, "pads has 3 items", true);
    check("MaxPool", "1,4,0,3", "strides", 2, (int64_t[]){3, 3}, "nothing in its input", true);
    check("AveragePool", "2,0,9,9", NULL, 0, NULL, "nothing in its input", true);
    check("Conv", "1,5,9,9", NULL, 0, NULL, "channels of input and weights differ", true);
    check("Conv", "1,4,9", NULL, 0, NULL, "ranks", true);
}

static void test_reshape(void **state) {
    (void)state;
    static const struct {
        const char *in;
        int64_t target[4];
        uint32_t n;
        const char *want;
    } rows[] = {
        {"N,12,64", {0, -1, 4, 16}, 4, "f32[\"N\",12,4,16]"},
        {"N,12,64", {0, -1}, 2, "f32[\"N\",768]"},
        {"N,12,64", {-1, 768}, 2, "f32[\"N\",768]"},
        {"N,12,64", {-1, 64}, 2, "f32[\"(12*N)\",64]"},
        {"N,S,64", {0, 0, 4, 16}, 4, "f32[\"N\",\"S\",4,16]"},
        {"N,S,64", {0, 0, -1}, 3, "f32[\"N\",\"S\",64]"},
        {"2,3,4", {6, -1}, 2, "f32[6,4]"},
        {"2,0,4", {0, 0, -1}, 3, "f32[2,0,4]"},
        {"?,3,4", {0, -1}, 2, "f32[?,12]"},
        {"past + 1,3,4", {-1, 12}, 2, "f32[\"past + 1\",12]"},
    };
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        bench b;
        open_bench(&b, 13);
        po_value_id x = input(&b, rows[k].in);
        po_node_id id = NODE(&b, "Reshape", 1, x, ints(&b, rows[k].n, rows[k].target));
        expect(&b, out_of(&b, id, 0), rows[k].want);
        close_bench(&b);
    }
}

static void test_reshape_refuses(void **state) {
    (void)state;
    static const struct {
        int64_t target[3];
        uint32_t n;
        const char *why;
    } rows[] = {
        {{-1, -1}, 2, "more than one"},      {{5, -1}, 2, "divide"},
        {{2, 2, 2}, 3, "do not fit"},        {{-2, 4}, 2, "negative"},
        {{INT64_MAX, INT64_MAX}, 2, "node"}, {{INT64_MIN, 1}, 2, "negative"},
    };
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        bench b;
        open_bench(&b, 13);
        po_value_id x = input(&b, "2,3,4");
        NODE(&b, "Reshape", 1, x, ints(&b, rows[k].n, rows[k].target));
        if (k == 4) { /* a product that wraps is no length at all */
            assert_int_equal(po_infer_graph(&b.ctx, b.g, false), PO_OK);
            close_bench(&b);
            continue;
        }
        expect_bad(&b, rows[k].why);
    }
}

/* Shape arithmetic as exporters write it: [Shape(x)[0], 12, -1] and its kin. */
static void test_contents(void **state) {
    bench b;
    (void)state;
    open_bench(&b, 13);
    po_value_id x = input(&b, "N,S,768");
    po_value_id shape = out_of(&b, NODE(&b, "Shape", 1, x), 0);
    po_value_id batch = out_of(&b, NODE(&b, "Gather", 1, shape, scalar(&b, 0)), 0);
    po_value_id seq = out_of(&b, NODE(&b, "Gather", 1, shape, scalar(&b, -2)), 0);
    po_value_id zero = INTS(&b, 0);
    po_value_id batch1 = out_of(&b, NODE(&b, "Unsqueeze", 1, batch, zero), 0);
    po_value_id seq1 = out_of(&b, NODE(&b, "Unsqueeze", 1, seq, zero), 0);
    po_value_id target =
        out_of(&b, NODE(&b, "Concat", 1, batch1, seq1, INTS(&b, 12), INTS(&b, -1)), 0);
    po_node_set_int(b.g, b.g->values[target].producer, "axis", 0);
    po_value_id y = out_of(&b, NODE(&b, "Reshape", 1, x, target), 0);
    po_value_id front = out_of(&b, NODE(&b, "Slice", 1, shape, INTS(&b, 0), INTS(&b, 2)), 0);
    po_value_id back = out_of(
        &b, NODE(&b, "Slice", 1, shape, INTS(&b, -1), INTS(&b, INT64_MIN), zero, INTS(&b, -2)), 0);
    po_node_id split = NODE(&b, "Split", 2, shape, INTS(&b, 1, 2));
    expect(&b, y, "f32[\"N\",\"S\",12,64]");
    const po_partial *p = b.g->values[front].partial;
    assert_non_null(p);
    assert_int_equal(p->n, 2);
    assert_string_equal(p->items[1].symbol, "S");
    p = b.g->values[back].partial;
    assert_int_equal(p->n, 2);
    assert_int_equal(p->items[0].value, 768);
    assert_string_equal(p->items[1].symbol, "N");
    p = b.g->values[out_of(&b, split, 1)].partial;
    assert_int_equal(p->n, 2);
    assert_int_equal(p->items[1].value, 768);
    close_bench(&b);
}

static void test_movement_refuses(void **state) {
    bench b;
    (void)state;
    open_bench(&b, 13);
    NODE(&b, "Slice", 1, input(&b, "4,4"), INTS(&b, 0), INTS(&b, 2), INTS(&b, 1), INTS(&b, 0));
    expect_bad(&b, "step 0 is 0");
    open_bench(&b, 13);
    NODE(&b, "Slice", 1, input(&b, "4,4"), INTS(&b, 0, 0), INTS(&b, 2, 2), INTS(&b, 1, -1));
    expect_bad(&b, "twice");
    open_bench(&b, 13);
    NODE(&b, "Tile", 1, input(&b, "4,4"), INTS(&b, 1, -3));
    expect_bad(&b, "negative");
    open_bench(&b, 13);
    NODE(&b, "Pad", 1, input(&b, "4,4"), INTS(&b, 0, -3, 0, -2));
    expect_bad(&b, "do not fit");
    open_bench(&b, 13);
    po_node_set_ints(b.g, NODE(&b, "Transpose", 1, input(&b, "4,4")), "perm", 2, (int64_t[]){0, 0});
    expect_bad(&b, "permutation");
    open_bench(&b, 13);
    NODE(&b, "Split", 2, input(&b, "5,4"));
    expect_bad(&b, "split");
    open_bench(&b, 13);
    NODE(&b, "MatMul", 1, input(&b, "N,4,5"), input(&b, "6,7"));
    expect_bad(&b, "inner dims differ");
    open_bench(&b, 13);
    NODE(&b, "Expand", 1, input(&b, "3,4"), INTS(&b, 2, 4));
    expect_bad(&b, "broadcast");
}

/* Sizes that overflow are no sizes; nothing is refused, nothing is computed. */
static void test_explosions(void **state) {
    bench b;
    (void)state;
    open_bench(&b, 13);
    po_value_id x = input(&b, "4,4");
    po_node_id tile = NODE(&b, "Tile", 1, x, INTS(&b, INT64_MAX, 2));
    po_node_id expand = NODE(&b, "Expand", 1, input(&b, "1"), INTS(&b, INT64_MAX));
    expect(&b, out_of(&b, tile, 0), "f32[?,8]");
    expect(&b, out_of(&b, expand, 0), "f32[9223372036854775807]");
    po_array *one, *shape, *out[1];
    assert_int_equal(po_array_create(&b.ctx, b.arena, PO_F32, 1, (int64_t[]){1}, &one), PO_OK);
    assert_int_equal(po_array_create(&b.ctx, b.arena, PO_I64, 1, (int64_t[]){1}, &shape), PO_OK);
    shape->i[0] = INT64_MAX;
    assert_int_equal(po_ref_node(&b.ctx, b.arena, b.g, &b.g->nodes[expand],
                                 (const po_array *[]){one, shape}, out),
                     PO_UNSUPPORTED);
    shape->i[0] = (INT64_C(1) << 28) + 1;
    assert_int_equal(po_ref_node(&b.ctx, b.arena, b.g, &b.g->nodes[expand],
                                 (const po_array *[]){one, shape}, out),
                     PO_UNSUPPORTED);
    shape->i[0] = 5;
    assert_int_equal(po_ref_node(&b.ctx, b.arena, b.g, &b.g->nodes[expand],
                                 (const po_array *[]){one, shape}, out),
                     PO_OK);
    assert_int_equal(out[0]->count, 5);
    close_bench(&b);
}

static void test_symbols_pass(void **state) {
    bench b;
    (void)state;
    open_bench(&b, 17);
    po_value_id x = input(&b, "N,S,768");
    po_value_id w = input(&b, "768,3072");
    expect(&b, out_of(&b, NODE(&b, "MatMul", 1, x, w), 0), "f32[\"N\",\"S\",3072]");
    po_node_id t = NODE(&b, "Transpose", 1, x);
    po_node_set_ints(b.g, t, "perm", 3, (int64_t[]){0, 2, 1});
    expect(&b, out_of(&b, t, 0), "f32[\"N\",768,\"S\"]");
    expect(&b, out_of(&b, NODE(&b, "MatMul", 1, x, out_of(&b, t, 0)), 0), "f32[\"N\",\"S\",\"S\"]");
    expect(&b, out_of(&b, NODE(&b, "Flatten", 1, x), 0), "f32[\"N\",\"(768*S)\"]");
    expect(&b, out_of(&b, NODE(&b, "LayerNormalization", 1, x, input(&b, "768")), 0),
           "f32[\"N\",\"S\",768]");
    po_value_id s = out_of(
        &b, NODE(&b, "Slice", 1, x, INTS(&b, 0, 1), INTS(&b, INT64_MAX, 9), INTS(&b, 1, 2)), 0);
    expect(&b, s, "f32[\"N\",\"S\",8]");
    po_value_id pad = out_of(&b, NODE(&b, "Pad", 1, x, INTS(&b, 0, 0, 1, 0, 0, 1)), 0);
    expect(&b, pad, "f32[\"N\",\"S\",770]");
    close_bench(&b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_windows),    cmocka_unit_test(test_windows_refuse),
        cmocka_unit_test(test_reshape),    cmocka_unit_test(test_reshape_refuses),
        cmocka_unit_test(test_contents),   cmocka_unit_test(test_movement_refuses),
        cmocka_unit_test(test_explosions), cmocka_unit_test(test_symbols_pass),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

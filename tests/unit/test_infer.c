/* Shape inference: symbols, contents, bodies, contradictions, and time on large graphs. */
#include "ir/text.h"
#include "ops/op.h"
#include "unit.h"

#include <stdio.h>

typedef struct fixture {
    po_ctx ctx;
    po_graph *graph;
} fixture;

static po_status infer_text(fixture *f, const char *text, bool lenient) {
    po_ctx_init(&f->ctx);
    if (po_graph_parse(&f->ctx, text, &f->graph) != PO_OK)
        fail_msg("%s", f->ctx.error.message);
    po_ops_resolve(f->graph);
    return po_infer_graph(&f->ctx, f->graph, lenient);
}

static po_value_id value_named(const po_graph *g, const char *name) {
    for (po_value_id v = 0; v < g->n_values; v++)
        if (strcmp(po_graph_value_name(g, v), name) == 0)
            return v;
    fail_msg("no value '%s'", name);
    return PO_NONE;
}

static void expect_in(fixture *f, const po_graph *g, const char *name, const char *type) {
    po_text text;
    po_text_init(&text, f->graph->arena);
    po_type_print(&text, &g->values[value_named(g, name)].type);
    if (strcmp(text.data, type) != 0)
        fail_msg("%s is %s, not %s", name, text.data, type);
}

static void expect(fixture *f, const char *name, const char *type) {
    expect_in(f, f->graph, name, type);
}

/* Contents as "2,H,?". */
static void expect_contents(fixture *f, const char *name, const char *contents) {
    const po_partial *p = f->graph->values[value_named(f->graph, name)].partial;
    po_text text;
    po_text_init(&text, f->graph->arena);
    po_text_puts(&text, "");
    for (uint32_t i = 0; p && i < p->n; i++) {
        po_text_puts(&text, i ? "," : "");
        if (p->items[i].value >= 0)
            po_text_printf(&text, "%lld", (long long)p->items[i].value);
        else
            po_text_puts(&text, p->items[i].symbol ? p->items[i].symbol : "?");
    }
    if (!p || strcmp(text.data, contents) != 0)
        fail_msg("%s holds %s, not %s", name, p ? text.data : "nothing known", contents);
}

static void infer_ok(fixture *f, const char *text) {
    if (infer_text(f, text, false) != PO_OK)
        fail_msg("%s", f->ctx.error.message);
}

static void done(fixture *f) {
    po_graph_free(f->graph);
    assert_null(f->ctx.arenas);
}

static void test_broadcasting(void **state) {
    fixture f;
    (void)state;
    infer_ok(&f,
             "graph g (x: f32[\"N\",1,\"W\",4], y: f32[3,\"W\",1], z: f32[\"M\",1,1,1]) -> (d) {\n"
             "  a = Add(x, y)\n  b = Mul(a, z)\n  c = Less(x, y)\n  d = Where(c, a, b)\n}\n");
    expect(&f, "a", "f32[\"N\",3,\"W\",4]");
    expect(&f, "b", "f32[?,3,\"W\",4]"); /* N against M: either may be 1 */
    expect(&f, "c", "bool[\"N\",3,\"W\",4]");
    expect(&f, "d", "f32[?,3,\"W\",4]");
    done(&f);
}

static void test_shape_arithmetic(void **state) {
    fixture f;
    (void)state;
    infer_ok(&f, "graph g (x: f32[\"N\",12,\"L\",64]) -> (r, e, k) {\n"
                 "  s = Shape(x)\n"
                 "  n = Gather(s, i0: i64[1] {0}) {axis=0}\n"
                 "  l = Gather(s, i2: i64[1] {2}) {axis=0}\n"
                 "  h = Gather(s, i3: i64[1] {3}) {axis=0}\n"
                 "  hh = Mul(h, c12: i64[1] {12})\n"
                 "  shape = Concat(n, l, hh) {axis=0}\n"
                 "  t = Transpose(x) {perm=[0,2,1,3]}\n"
                 "  r = Reshape(t, shape)\n"
                 /* how exporters write expand(-1, 3, -1) */
                 "  want = Concat(m1: i64[1] {-1}, three: i64[1] {3}, m1) {axis=0}\n"
                 "  ones = ConstantOfShape(rank: i64[1] {3}) {value=i64[1] {1}}\n"
                 "  minus = Mul(ones, m1)\n"
                 "  is_minus = Equal(want, minus)\n"
                 "  low = Where(is_minus, ones, want)\n"
                 "  zero = Sub(n, n)\n"
                 "  less = Less(l, m1)\n"
                 "  pick = Where(less, m1, l)\n"
                 "  q = Unsqueeze(pick, ax: i64[1] {0})\n"
                 "  limit = Squeeze(l, ax)\n"
                 "  range = Range(start: i64[] {0}, limit, step: i64[] {1})\n"
                 "  e = Expand(f: f32[1] {1.0}, l)\n"
                 "  k = ConstantOfShape(shape)\n}\n");
    expect_contents(&f, "s", "N,12,L,64");
    expect_contents(&f, "shape", "N,L,768");
    expect(&f, "r", "f32[\"N\",\"L\",768]");
    expect_contents(&f, "ones", "1,1,1");
    expect_contents(&f, "zero", "0");
    expect_contents(&f, "less", "0"); /* a length is not negative */
    expect_contents(&f, "pick", "L");
    expect(&f, "range", "i64[\"L\"]");
    expect(&f, "e", "f32[\"L\"]");
    expect(&f, "k", "f32[\"N\",\"L\",768]");
    done(&f);
}

static void test_overridable_contents(void **state) {
    fixture f;
    (void)state;
    po_ctx_init(&f.ctx);
    f.graph = po_graph_create(&f.ctx, NULL, "g");
    po_graph *g = f.graph;
    po_type t = po_type_tensor_i64(g->arena, PO_F32, 1, (int64_t[]){6});
    po_type s = po_type_tensor_i64(g->arena, PO_I64, 1, (int64_t[]){2});
    po_value_id in[] = {po_graph_add_input(g, "x", &t), po_graph_add_input(g, "shape", &s)};
    po_value_id out = po_graph_add_value(g, "y", NULL);
    g->values[in[1]].constant = po_tensor_i64(g->arena, 2, (int64_t[]){2, 3});
    po_ops_add(g, PO_NONE,
               &(po_node_spec){.op = PO_OP_Reshape, .n_in = 2, .in = in, .n_out = 1, .out = &out});
    po_graph_add_output(g, out);
    assert_int_equal(po_infer_graph(&f.ctx, g, false), PO_OK);
    /* Callers may pass another shape. */
    expect(&f, "y", "f32[?,?]");
    done(&f);
}

static void test_bodies(void **state) {
    fixture f;
    (void)state;
    infer_ok(&f,
             "graph g (x: f32[2,\"L\"], c: bool[], m: i64[]) -> (y, z, acc, s, so) {\n"
             "  y, z = If(c) {then_branch=graph t () -> (ty, tz) { ty = Relu(x)\n tz = Shape(x) },"
             " else_branch=graph e () -> (ey, ez) { ey = Neg(x)\n ez = Cast(ey) {to=7} }}\n"
             "  acc, s = Loop(m, c, x) {body=graph b (i: i64[], cc: bool[], v: f32[2,\"L\"])"
             " -> (co, vo, so1) { co = Identity(cc)\n vo = Add(v, x)\n so1 = ReduceSum(vo, ax: "
             "i64[1] {0}) {keepdims=0} }}\n"
             "  fin, so = Scan(x0: f32[3] {0.0}, w: f32[5,3] random 1) {num_scan_inputs=1,"
             " body=graph sb (st, el) -> (st1, o) { st1 = Add(st, el)\n o = Exp(st1) }}\n}\n");
    expect(&f, "y", "f32[2,\"L\"]");
    expect(&f, "z", "i64[*]");
    expect(&f, "acc", "f32[2,\"L\"]");
    expect(&f, "s", "f32[?,\"L\"]");
    expect(&f, "fin", "f32[3]");
    expect(&f, "so", "f32[5,3]");
    done(&f);
}

static void test_contradictions(void **state) {
    fixture f;
    static const char add[] =
        "graph g (x: f32[3], y: f32[4]) -> (z) {\n  z = Add(x, y) @ \"sum\"\n}\n";
    static const char declared[] =
        "graph g (x: f32[3]) -> (z) {\n  z = Relu(x) : f32[4] @ \"act\"\n}\n";
    (void)state;
    assert_int_equal(infer_text(&f, add, false), PO_BAD_INPUT);
    assert_non_null(strstr(f.ctx.error.message, "sum"));
    done(&f);
    assert_int_equal(infer_text(&f, add, true), PO_OK);
    assert_int_equal(f.ctx.error.status, PO_OK);
    done(&f);
    assert_int_equal(infer_text(&f, declared, false), PO_BAD_INPUT);
    assert_non_null(strstr(f.ctx.error.message, "act"));
    done(&f);
    assert_int_equal(infer_text(&f, declared, true), PO_OK);
    expect(&f, "z", "f32[4]");
    done(&f);
    assert_int_equal(infer_text(&f,
                                "graph g (x: f32[3]) -> (z) {\n  z = Softmax(x) "
                                "{axis=-9223372036854775808}\n}\n",
                                false),
                     PO_BAD_INPUT);
    done(&f);
    assert_int_equal(infer_text(&f, "graph g (x: f32[3]) -> (z) {\n  z = Cast(x)\n}\n", false),
                     PO_BAD_INPUT);
    done(&f);
}

/* Running again must change nothing. */
/* What the standard leaves open, or is stricter in than runtimes are, and right beside it. */
static void test_taken_as_it_is(void **state) {
    static const struct {
        const char *text, *y; /* NULL: refused */
    } rows[] = {
        {"graph g (x: f32[8]) -> (y, z) {\n  y, z = Split(x) {num_outputs=2}\n}\n", "f32[4]"},
        {"graph g (x: f32[8]) -> (y, z) {\n  y, z = Split(x) {num_outputs=3}\n}\n", "f32[?]"},
        {"graph g (x: f32[8]) -> (y, z) {\n  y, z = Split(x) {num_outputs=1}\n}\n", NULL},
        {"graph g (x: f32[]) -> (y) {\n  y = Einsum(x) {equation=\"\"}\n}\n", "f32[]"},
        {"graph g (x: f32[2]) -> (y) {\n  y = Einsum(x) {equation=\"\"}\n}\n", NULL},
        {"graph g (x: f32[]) -> (y) {\n  y = Einsum(x)\n}\n", NULL},
        {"graph g (x: f32[1,1,2,4]) -> (y) {\n  y = Resize(x, _, _, s: i64[2] {-3,8}) "
         "{axes=[2,3], keep_aspect_ratio_policy=\"not_smaller\"}\n}\n",
         "?"},
        {"graph g (x: f32[1,1,2,4]) -> (y) {\n  y = Resize(x, _, _, s: i64[2] {-3,8}) "
         "{axes=[2,3]}\n}\n",
         NULL},
        {"graph g (x: f32[1,4,2], s: f32[1], b: f32[2]) -> (y) {\n"
         "  y = GroupNormalization(x, s, b) {num_groups=2}\n}\n",
         "f32[1,4,2]"},
        {"graph g (x: f32[1,4,2], s: f32[3], b: f32[4]) -> (y) {\n"
         "  y = GroupNormalization(x, s, b) {num_groups=2}\n}\n",
         NULL},
        {"graph g (x: f32[2,3,4], i: i64[1,1]) -> (y) {\n  y = GatherND(x, i) {batch_dims=1}\n}\n",
         "f32[*]"},
        {"graph g (x: f32[1,2]) -> (y) {\n  y = Squeeze(x, a: i64[2] {0,-2})\n}\n", "f32[2]"},
        {"graph g (x: f32[2]) -> (y) {\n  y = Unsqueeze(x, a: i64[2] {0,0})\n}\n", NULL},
        {"graph g (x: f32[3,3,3]) -> (y) {\n  y = MeanVarianceNormalization(x)\n}\n", "f32[3,3,3]"},
        {"graph g (x: f32[1,32,1], w: f32[1,16]) -> (y) {\n"
         "  y = STFT(x, s: i64[] {8}, w, n: i64[] {16})\n}\n",
         "f32[1,3,9,2]"},
        {"graph g (x: f32[2,32], w: f32[16]) -> (y) {\n"
         "  y = STFT(x, s: i64[] {8}, w, n: i64[] {16})\n}\n",
         "f32[2,3,9,2]"},
        {"graph g (x: f32[2,32,1,1], w: f32[16]) -> (y) {\n"
         "  y = STFT(x, s: i64[] {8}, w, n: i64[] {16})\n}\n",
         NULL},
    };
    (void)state;
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        fixture f;
        po_status status = infer_text(&f, rows[k].text, false);
        if ((status == PO_OK) != !!rows[k].y)
            fail_msg("%s: %s", rows[k].text, f.ctx.error.message);
        if (rows[k].y)
            expect(&f, "y", rows[k].y);
        done(&f);
    }
}

static void test_twice(void **state) {
    fixture f;
    (void)state;
    infer_ok(&f, "graph g (x: f32[\"N\",4]) -> (r) {\n  s = Shape(x)\n  y = Exp(x)\n"
                 "  r = Reshape(y, s)\n}\n");
    expect(&f, "r", "f32[\"N\",4]");
    const po_dim *before = f.graph->values[value_named(f.graph, "r")].type.dims;
    const po_partial *contents = f.graph->values[value_named(f.graph, "s")].partial;
    assert_int_equal(po_infer_graph(&f.ctx, f.graph, false), PO_OK);
    expect(&f, "r", "f32[\"N\",4]");
    assert_ptr_equal(before, f.graph->values[value_named(f.graph, "r")].type.dims);
    assert_ptr_equal(contents, f.graph->values[value_named(f.graph, "s")].partial);
    done(&f);
}

static double seconds_for(uint32_t nodes) {
    fixture f;
    po_ctx_init(&f.ctx);
    po_graph *g = f.graph = po_graph_create(&f.ctx, NULL, "large");
    po_type t = po_type_tensor_i64(g->arena, PO_F32, 4, (int64_t[]){1, 64, 56, 56});
    po_value_id v = po_graph_add_input(g, "x", &t), w = v;
    for (uint32_t i = 0; i < nodes; i++) {
        po_value_id in[] = {v, w}, out = po_graph_add_value(g, NULL, NULL);
        po_ops_add(g, PO_NONE,
                   &(po_node_spec){.op = i % 2 ? PO_OP_Add : PO_OP_Relu,
                                   .n_in = i % 2 ? 2 : 1,
                                   .in = in,
                                   .n_out = 1,
                                   .out = &out});
        w = v;
        v = out;
    }
    po_graph_add_output(g, v);
    double start = po_now();
    assert_int_equal(po_infer_graph(&f.ctx, g, false), PO_OK);
    double took = po_now() - start;
    expect(&f, g->values[v].name, "f32[1,64,56,56]");
    done(&f);
    return took;
}

static void test_large_graph(void **state) {
    (void)state;
    double small = seconds_for(10000), large = seconds_for(100000);
    printf("10,000 nodes %.1f ms, 100,000 nodes %.1f ms\n", 1e3 * small, 1e3 * large);
    assert_true(large < 2.0); /* far below without sanitizers; quadratic work would take minutes */
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_broadcasting),
        cmocka_unit_test(test_shape_arithmetic),
        cmocka_unit_test(test_overridable_contents),
        cmocka_unit_test(test_bodies),
        cmocka_unit_test(test_contradictions),
        cmocka_unit_test(test_taken_as_it_is),
        cmocka_unit_test(test_twice),
        cmocka_unit_test(test_large_graph),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

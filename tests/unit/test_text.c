/* The text form: graphs come back from what was printed, and bad texts are refused by place. */
#include "ir/text.h"
#include "ops/op.h"
#include "unit.h"

#include <stdio.h>

static const po_print_options everything = {.most_items = 32, .all_data = true};

/* --- random graphs --- */

typedef struct maker {
    po_ctx *ctx;
    uint64_t seed, next;
} maker;

static uint64_t draw(maker *m, uint64_t below) {
    return po_random_u64(m->seed, 0, m->next++) % below;
}

static const char *odd_name(maker *m, po_arena *arena) {
    static const char *const names[] = {"x",          "/a/b",   "1",           "a:0",  "_",
                                        "with \"q\"", "tab\t!", "h\xc3\xa9",   "\\",   "graph",
                                        "f32",        "raw",    "#no comment", "hash", "a.b-c"};
    size_t n = sizeof names / sizeof *names;
    return po_arena_printf(arena, "%s%s", names[draw(m, n)], draw(m, 2) ? "" : names[draw(m, n)]);
}

/* Every type and every bit pattern: NaN payloads, -0, bools that are neither 0 nor 1, dirty padding
 * behind sub-byte items. */
static const po_tensor *random_tensor(maker *m, po_arena *arena) {
    po_dtype dtype = (po_dtype)(1 + draw(m, PO_DT_COUNT - 1));
    int64_t dims[3];
    uint32_t rank = (uint32_t)draw(m, 4);
    for (uint32_t i = 0; i < rank; i++)
        dims[i] = (int64_t)draw(m, draw(m, 4) ? 4 : 9);
    po_tensor *t;
    assert_int_equal(po_tensor_create(m->ctx, arena, dtype, rank, dims, &t), PO_OK);
    if (dtype == PO_STR) {
        for (int64_t i = 0; i < t->count; i++) {
            const char *s = odd_name(m, arena);
            ((po_bytes *)po_tensor_data(t))[i] =
                draw(m, 3) ? (po_bytes){s, strlen(s)} : (po_bytes){"a\0\x01\xff", 4};
        }
        return t;
    }
    static const unsigned char bytes[] = {0, 1, 0x80, 0xff, 0x7f, 0xf0, 0xc0, 0x3f};
    uint64_t kind = draw(m, 3);
    for (size_t i = 0; i < t->size; i++)
        ((unsigned char *)po_tensor_data(t))[i] = kind == 0   ? (unsigned char)draw(m, 256)
                                                  : kind == 1 ? bytes[draw(m, sizeof bytes)]
                                                              : (unsigned char)draw(m, 2);
    return t;
}

static po_type random_type(maker *m, po_arena *arena, int depth) {
    po_dim dims[4];
    uint32_t rank = (uint32_t)draw(m, 5);
    for (uint32_t i = 0; i < rank; i++) {
        dims[i] = draw(m, 2) ? PO_DIM((int64_t)draw(m, 1000)) : PO_DIM_UNKNOWN;
        if (!po_dim_known(dims[i]) && draw(m, 2))
            dims[i].symbol = odd_name(m, arena);
    }
    po_type type = po_type_tensor(arena, (po_dtype)draw(m, PO_DT_COUNT), rank, dims);
    switch (draw(m, 9)) {
    case 0:
        return (po_type){0};
    case 1:
        type.kind = PO_TYPE_SPARSE;
        return type;
    case 2:
        return po_type_unranked(PO_F16);
    case 3:
        return (po_type){.kind = PO_TYPE_OPAQUE};
    case 4:
        if (depth < 3) {
            static const po_type_kind kinds[] = {PO_TYPE_SEQUENCE, PO_TYPE_OPTIONAL, PO_TYPE_MAP};
            po_type element = random_type(m, arena, depth + 1);
            type = (po_type){.kind = kinds[draw(m, 3)]};
            if (type.kind == PO_TYPE_MAP)
                type.dtype = PO_I64;
            if (element.kind != PO_TYPE_UNKNOWN)
                type.element = po_arena_memdup(arena, &element, sizeof element);
        }
        return type;
    default:
        return type;
    }
}

static void fill_graph(maker *m, po_graph *g, int depth);

static po_attr random_attr(maker *m, po_graph *g, uint32_t index, int depth) {
    static const float floats[] = {0.0f, -0.0f, 1.0f, 0.1f, 1e-45f, 3.4e38f, 16777216.0f};
    po_arena *arena = g->arena;
    po_attr a = {.name = po_arena_printf(arena, "%s%u", odd_name(m, arena), index), .n = 1};
    float odd = floats[draw(m, 7)];
    uint32_t nan_bits = 0x7f800001u | (uint32_t)(draw(m, 2) << 31) | (uint32_t)draw(m, 1 << 22);
    if (draw(m, 4) == 0)
        memcpy(&odd, &nan_bits, sizeof odd);
    else if (draw(m, 4) == 0)
        odd = draw(m, 2) ? __builtin_inff() : -__builtin_inff();
    uint32_t n = (uint32_t)draw(m, 4);
    a.kind = (po_attr_kind)(1 + draw(m, depth < 3 ? 10 : 4));
    if (a.kind >= PO_ATTR_FLOATS)
        a.n = n;
    float *f = PO_NEW_N(arena, float, n);
    int64_t *ints = PO_NEW_N(arena, int64_t, n);
    po_bytes *strings = PO_NEW_N(arena, po_bytes, n);
    const po_tensor **tensors = PO_NEW_N(arena, const po_tensor *, n);
    po_graph **graphs = PO_NEW_N(arena, po_graph *, n);
    switch (a.kind) {
    case PO_ATTR_FLOAT:
        a.u.f = odd;
        break;
    case PO_ATTR_INT:
        a.u.i = draw(m, 2) ? INT64_MIN : (int64_t)draw(m, UINT64_MAX);
        break;
    case PO_ATTR_STRING:
        a.u.s = draw(m, 2) ? (po_bytes){"a\0b", 3} : (po_bytes){"", 0};
        break;
    case PO_ATTR_TENSOR:
        a.u.t = random_tensor(m, arena);
        break;
    case PO_ATTR_GRAPH:
        a.u.g = po_graph_create_body(g, odd_name(m, arena));
        fill_graph(m, a.u.g, depth + 1);
        break;
    case PO_ATTR_FLOATS:
        for (uint32_t i = 0; i < n; i++)
            f[i] = i ? floats[draw(m, 7)] : odd;
        a.u.floats = f;
        break;
    case PO_ATTR_INTS:
        for (uint32_t i = 0; i < n; i++)
            ints[i] = (int64_t)draw(m, 10) - 5;
        a.u.ints = ints;
        break;
    case PO_ATTR_STRINGS:
        for (uint32_t i = 0; i < n; i++)
            strings[i] = (po_bytes){"\"\x7f", draw(m, 3)};
        a.u.strings = strings;
        break;
    case PO_ATTR_TENSORS:
        for (uint32_t i = 0; i < n; i++)
            tensors[i] = random_tensor(m, arena);
        a.u.tensors = tensors;
        break;
    default:
        for (uint32_t i = 0; i < n; i++) {
            graphs[i] = po_graph_create_body(g, "b");
            fill_graph(m, graphs[i], depth + 1);
        }
        a.u.graphs = graphs;
    }
    if (draw(m, 12) == 0 && a.kind != PO_ATTR_GRAPH && a.kind != PO_ATTR_GRAPHS)
        a.reference = "outer attribute";
    return a;
}

/* A value that may be read: an own one or one of an enclosing graph. */
static po_value_id pick(maker *m, po_graph *g, uint32_t n_ready) {
    if (g->parent && (n_ready == 0 || draw(m, 3) == 0)) {
        /* Only what stands before the body's node: graph inputs are always there. */
        po_graph *p = g->parent;
        if (p->n_inputs)
            return po_graph_capture(g, p->inputs[draw(m, p->n_inputs)]);
    }
    return n_ready ? (po_value_id)draw(m, n_ready) : PO_NONE;
}

static void fill_graph(maker *m, po_graph *g, int depth) {
    uint32_t n_inputs = 1 + (uint32_t)draw(m, 3), n_nodes = (uint32_t)draw(m, depth ? 3 : 10);
    for (uint32_t i = 0; i < n_inputs; i++) {
        po_type type = random_type(m, g->arena, 0);
        po_value_id id = po_graph_add_input(g, odd_name(m, g->arena), &type);
        if (draw(m, 4) == 0) {
            g->values[id].constant = random_tensor(m, g->arena);
            g->values[id].is_initializer = true;
            PO_PUSH(g->arena, g->initializers, g->n_initializers, g->cap_initializers, id);
        }
    }
    for (uint32_t i = (uint32_t)draw(m, 4); i; i--)
        po_graph_add_constant(g, odd_name(m, g->arena), random_tensor(m, g->arena));
    for (uint32_t i = 0; i < n_nodes; i++) {
        po_value_id in[3], out[3];
        po_attr attr[3];
        po_node_spec spec = {.op_type = odd_name(m, g->arena), .in = in, .out = out, .attr = attr};
        uint32_t ready = g->n_values;
        spec.domain = draw(m, 3) ? NULL : "com.microsoft";
        spec.overload = draw(m, 5) ? NULL : "an overload";
        spec.name = draw(m, 2) ? NULL : odd_name(m, g->arena);
        for (spec.n_in = 0; spec.n_in < draw(m, 4); spec.n_in++)
            in[spec.n_in] = draw(m, 6) ? pick(m, g, ready) : PO_NONE;
        for (uint32_t k = (uint32_t)draw(m, 4); k; k--) {
            attr[spec.n_attr] = random_attr(m, g, spec.n_attr, depth);
            spec.n_attr++;
        }
        for (uint32_t k = (uint32_t)draw(m, 4); k; k--) {
            po_type type = random_type(m, g->arena, 0);
            out[spec.n_out++] =
                draw(m, 5) ? po_graph_add_value(g, odd_name(m, g->arena), &type) : PO_NONE;
        }
        po_graph_add_node(g, &spec);
    }
    for (uint32_t i = (uint32_t)draw(m, 4); i; i--) {
        po_value_id v = pick(m, g, g->n_values);
        if (v != PO_NONE)
            po_graph_add_output(g, v);
    }
}

static char *print(po_arena *arena, const po_graph *g, po_print_options options) {
    po_text text;
    po_text_init(&text, arena);
    po_graph_print_as(&text, g, options);
    return text.data;
}

static void test_random_graphs_come_back(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 3000; seed++) {
        po_ctx ctx;
        po_ctx_init(&ctx);
        maker m = {.ctx = &ctx, .seed = seed};
        po_graph *g = po_graph_create(&ctx, NULL, odd_name(&m, po_arena_create(&ctx))), *back;
        po_opset opsets[] = {{"", 17}, {"com.microsoft", 1}};
        po_model model = {.graph = g, .ir_version = 8, .opsets = opsets, .n_opsets = 2};
        g->model = &model;
        fill_graph(&m, g, 0);
        assert_int_equal(po_graph_check(&ctx, g), PO_OK);
        char *text = print(g->arena, g, everything);
        if (po_graph_parse(&ctx, text, &back) != PO_OK)
            fail_msg("seed %d: %s\n%s", (int)seed, ctx.error.message, text);
        if (!po_graph_equal(g, back))
            fail_msg("seed %d: not equal\n%s", (int)seed, text);
        assert_true(po_hash_equal(po_graph_hash(g), po_graph_hash(back)));
        assert_int_equal(back->model->ir_version, 8);
        assert_int_equal(po_model_opset(back->model, "com.microsoft"), 1);
        assert_string_equal(print(g->arena, back, everything), text);
        /* Without the data the text is the same both ways, and the data is found by hash. */
        po_print_options by_hash = {.most_items = 4};
        po_graph *third;
        char *brief = print(g->arena, g, by_hash);
        assert_string_equal(print(g->arena, back, by_hash), brief);
        if (po_graph_parse_with(&ctx, brief, g, &third) != PO_OK)
            fail_msg("seed %d: %s\n%s", (int)seed, ctx.error.message, brief);
        assert_true(po_graph_equal(g, third));
        po_arenas_free_since(&ctx, 0);
    }
}

static void test_data_by_hash(void **state) {
    (void)state;
    po_ctx ctx;
    po_ctx_init(&ctx);
    po_graph *g, *h;
    assert_int_equal(po_graph_parse(&ctx,
                                    "graph g (x: f32[64]) -> (y) {\n"
                                    "  y = Mul(x, w: f32[64] random 7)\n}",
                                    &g),
                     PO_OK);
    po_text text;
    po_text_init(&text, g->arena);
    po_graph_print(&text, g);
    assert_non_null(strstr(text.data, "w = f32[64] hash "));
    assert_non_null(strstr(text.data, "y = Mul(x, w: f32[64])"));
    assert_int_equal(po_graph_parse_with(&ctx, text.data, g, &h), PO_OK);
    assert_true(po_graph_equal(g, h));
    po_graph_free(h);
    assert_int_equal(po_graph_parse(&ctx, text.data, &h), PO_BAD_INPUT);
    assert_non_null(strstr(ctx.error.message, "was not printed"));
    po_arenas_free_since(&ctx, 0);
}

static void test_reads_as_written(void **state) {
    (void)state;
    static const char text[] =
        "pir 1 ir_version=8 opset=17 opset(com.microsoft)=1\n"
        "graph demo (x: f32[1,3,\"H\",?], w: f32[2] = f32[2] {0.5, -0.0}) -> (y, x) {\n"
        "  b = f32[4] {nan(0x7fc00001), inf, -inf, 0.1}\n"
        "  n = i64[2] {1, -1}\n"
        "  flags = bool[3] {1}\n"
        "  c = c64[1] raw 0000803f00000040\n"
        "  t = Conv(x, _, b: f32[4]) {a=1.0, i=2, l=[1, 2], f=[0.5], none=floats [], s=\"\\x00q\"} "
        ":"
        " f32[1,4,\"H\",?] @ \"node 1\"\n"
        "  y, _ = com.microsoft::Odd:v2(t, flags: bool[3]) {body=graph b () -> (r) {\n"
        "    r = Reshape(t, n)\n"
        "  }, p=param(2, alpha)}\n"
        "  () = Sink(\"a b\": i64[] {7})\n"
        "}\n";
    po_ctx ctx;
    po_ctx_init(&ctx);
    po_graph *g;
    if (po_graph_parse(&ctx, text, &g) != PO_OK)
        fail_msg("%s", ctx.error.message);
    po_text again;
    po_text_init(&again, g->arena);
    po_graph_print(&again, g);
    static const char *const lines[] = {
        "pir 1 ir_version=8 opset=17 opset(com.microsoft)=1\n",
        "graph demo (x: f32[1,3,\"H\",?], w: f32[2] = f32[2] {0.5, -0.0}) -> (y, x) {\n",
        "  b = f32[4] {nan(0x7fc00001), inf, -inf, 0.1}\n",
        "  flags = bool[3] {1}\n",
        "  t = Conv(x, _, b: f32[4]) {a=1.0, i=2, l=[1, 2], f=[0.5], none=floats [], s=\"\\x00q\"} "
        ":"
        " f32[1,4,\"H\",?] @ \"node 1\"\n",
        "  y, _ = com.microsoft::Odd:v2(t, flags: bool[3]) {body=graph b () -> (r) {\n",
        "  () = Sink(\"a b\": i64[])\n",
    };
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        if (!strstr(again.data, lines[i]))
            fail_msg("missing: %s\nin:\n%s", lines[i], again.data);
    po_arenas_free_since(&ctx, 0);
}

static void test_constant_nodes_carry_tensors(void **state) {
    (void)state;
    po_ctx ctx;
    po_ctx_init(&ctx);
    po_graph *g;
    assert_int_equal(po_graph_parse(&ctx,
                                    "graph g () -> (a, b, c) { a = Constant() {value_ints=[4, 5]}\n"
                                    "b = Constant() {value_float=2.5}\n"
                                    "c = Constant() {value=f16[1] {0.5}} }",
                                    &g),
                     PO_OK);
    const po_tensor *a = g->values[g->outputs[0]].constant, *b = g->values[g->outputs[1]].constant;
    const po_tensor *c = g->values[g->outputs[2]].constant;
    assert_int_equal(a->rank, 1);
    assert_int_equal(po_tensor_int(a, 1), 5);
    assert_int_equal(b->rank, 0);
    assert_true(po_tensor_f64(b, 0) == 2.5 && po_tensor_f64(c, 0) == 0.5);
    po_arenas_free_since(&ctx, 0);
}

static void test_rejects(void **state) {
    (void)state;
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"", "line 1, column 1: expected 'graph'"},
        {"pir 2\ngraph g () -> () {}", "a later version"},
        {"pir 1 opset=\ngraph", "line 2, column 1: expected a whole number"},
        {"graph g (x: f32[1]) -> (y) {\n  y = Relu(z)\n}", "line 2, column 12: nothing before"},
        {"graph g (x: f32[1]) -> (y) {\n  x = Relu(x)\n}", "line 2, column 3: 'x' was made"},
        {"graph g (x: f32[1]) -> (y) {}", "line 1, column 25: nothing makes the output 'y'"},
        {"graph g (x: f99[1]) -> () {}", "line 1, column 13: no element type is named 'f99'"},
        {"graph g (x: f32[-1]) -> () {}", "a dim is negative"},
        {"graph g (x: f32[99999999999999999999]) -> () {}", "too large"},
        {"graph g () -> () {} x", "text after the graph's end"},
        {"graph g () -> () {", "expected a name (found the end)"},
        {"graph g () -> () { \"\" = F() }", "a value's name is empty"},
        {"graph g () -> () { a, a = F() }", "'a' is named twice"},
        {"graph g () -> () { a = F() {k=1, k=2} }", "attribute 'k' is given twice"},
        {"graph g () -> () { a = F() {k=[1, 0.5]} }", "expected a whole number"},
        {"graph g () -> () { a = F() {k=1e60} }", "expected a finite number"},
        {"graph g () -> () { a = F() {k=0x1p3} }", "expected"},
        {"graph g () -> () { a = F() {k=verbatim(11)} }", "kept verbatim"},
        {"graph g () -> () { a = F() {k=param(99, b)} }", "no attribute kind"},
        {"graph g () -> () { a = F() {k=\"\\q\"} }", "unknown escape"},
        {"graph g () -> () { a = F() {k=\"open} }", "a string has no end"},
        {"graph g () -> () { a = F() {k=\"x\n\"} }", "a control character"},
        {"graph \"a\\x00b\" () -> () {}", "NUL"},
        {"graph g () -> () { w = f32[3] {1.0, 2.0} }", "2 items for a tensor of 3"},
        {"graph g () -> () { w = f32[1] {1.0, 2.0} }", "more items"},
        {"graph g () -> () { w = f32[2] raw 0000 }", "larger than the text"},
        {"graph g () -> () { w = u8[2] raw 000_0 }", "expected two"},
        {"graph g () -> () { w = u8[2] raw 000000 }", "too many hexadecimal"},
        {"graph g () -> () { w = u8[1] {256} }", "does not fit in u8"},
        {"graph g () -> () { w = i4[1] {8} }", "does not fit in i4"},
        {"graph g () -> () { w = f32[1] {nan(0x3f800000)} }", "no NaN of type f32"},
        {"graph g () -> () { w = f16[1] {65520.0} }", "too large for f16"},
        {"graph g () -> () { w = f8e4m3fn[1] {inf} }", "has no infinity"},
        {"graph g () -> () { w = f32[?] {1.0} }", "known dims"},
        {"graph g () -> () { w = f32[400000000,400000000] {1.0} }", "larger than"},
        {"graph g () -> () { w = f32[4000000000,4000000000,9] {1.0} }", "overflows"},
        {"graph g () -> () { w = f32[400000000] {1.0} }", "larger than"},
        {"graph g () -> () { w = str[9] {\"a\"} }", "larger than"},
        {"graph g () -> () { w = str[3] {\"a\"} }", "1 items for a tensor of 3"},
        {"graph g () -> () { w = f32[1] {1.0} y = F(w: i64[1]) }", "'w' has another type"},
        {"graph g () -> () { w = f32[1] {1.0} y = F(w: f32[1] {2.0}) }", "'w' was made before"},
        {"graph g (x: f32[1]) -> () { y = If() {b=graph b (x: f32[1]) -> () {}} }", "was made"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        po_ctx ctx;
        po_ctx_init(&ctx);
        po_graph *g;
        po_status status = po_graph_parse(&ctx, cases[i].text, &g);
        if (status != PO_BAD_INPUT || !strstr(ctx.error.message, cases[i].message))
            fail_msg("%s\ngave %d '%s', not '%s'", cases[i].text, (int)status, ctx.error.message,
                     cases[i].message);
        assert_null(ctx.arenas);
    }
}

/* Any prefix of a text is refused cleanly, and so is nesting without end. */
static void test_truncated_and_nested(void **state) {
    (void)state;
    static const char text[] = "pir 1 opset=17\ngraph g (x: seq(f32[1]), w: i4[3] = i4[3] {1, 2, "
                               "3}) -> (y) { y, _ = a::F:b(x, w: i4[3], c: str[] {\"s\"}) "
                               "{k=[0.5], b=graph b () -> (x) {}} : f32[?,\"n\"], _ @ \"n\"\n}";
    po_ctx ctx;
    po_graph *g;
    po_ctx_init(&ctx);
    assert_int_equal(po_graph_parse(&ctx, text, &g), PO_OK);
    po_graph_free(g);
    for (size_t n = 0; n + 1 < strlen(text); n++) {
        po_arena *arena = po_arena_create(&ctx);
        char *cut = po_arena_printf(arena, "%.*s", (int)n, text);
        assert_int_equal(po_graph_parse(&ctx, cut, &g), PO_BAD_INPUT);
        po_arena_free(arena);
        po_ctx_clear(&ctx);
    }
    po_arena *arena = po_arena_create(&ctx);
    po_text deep;
    po_text_init(&deep, arena);
    for (int i = 0; i < 1000; i++)
        po_text_puts(&deep, "graph g () -> () { () = If() {b=");
    assert_int_equal(po_graph_parse(&ctx, deep.data, &g), PO_BAD_INPUT);
    assert_non_null(strstr(ctx.error.message, "nested too deeply"));
    po_arena_free(arena);
}

/* Texts that differ in what their lines do not show: operator sets, and which value of around it a
 * body reads where. */
static void test_what_equality_sees(void **state) {
    static const char *const pairs[][2] = {
        {"pir 1 ir_version=8 opset=11\ngraph g (x: f32[2,3,4]) -> (y) {\n  y = Softmax(x) "
         "{axis=1}\n}\n",
         "pir 1 ir_version=8 opset=13\ngraph g (x: f32[2,3,4]) -> (y) {\n  y = Softmax(x) "
         "{axis=1}\n}\n"},
        {"pir 1 ir_version=8 opset=17 opset(d)=1\ngraph g (x: f32[2]) -> (y) {\n  y = d::F(x)\n}\n",
         "pir 1 ir_version=8 opset=17 opset(d)=2\ngraph g (x: f32[2]) -> (y) {\n  y = "
         "d::F(x)\n}\n"},
    };
    static const char *const body =
        "pir 1 ir_version=8 opset=17\ngraph g (a: f32[2], b: f32[2], c: bool[]) -> (y) {\n"
        "  y = If(c) {then_branch=graph t () -> (p) { s = Add(a, b) p = Sub(%s) },\n"
        "    else_branch=graph e () -> (q) { r = Add(a, b) q = Sub(a, b) }}\n}\n";
    (void)state;
    po_ctx ctx;
    po_ctx_init(&ctx);
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        po_graph *g, *h;
        assert_int_equal(po_graph_parse(&ctx, pairs[i][0], &g), PO_OK);
        assert_int_equal(po_graph_parse(&ctx, pairs[i][1], &h), PO_OK);
        assert_false(po_graph_equal(g, h));
        assert_false(po_hash_equal(po_graph_hash(g), po_graph_hash(h)));
        po_graph_free(h);
        po_graph_free(g);
    }
    po_graph *g[2];
    for (int i = 0; i < 2; i++) {
        char text[512];
        snprintf(text, sizeof text, body, i ? "b, a" : "a, b");
        assert_int_equal(po_graph_parse(&ctx, text, &g[i]), PO_OK);
    }
    assert_false(po_graph_equal(g[0], g[1]));
    /* The bodies alone, as the proof looks at those that it does not enter. */
    assert_false(po_hash_equal(po_graph_hash(g[0]->nodes[0].attr[0].u.g),
                               po_graph_hash(g[1]->nodes[0].attr[0].u.g)));
    for (int i = 0; i < 2; i++)
        po_graph_free(g[i]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_equality_sees),
        cmocka_unit_test(test_random_graphs_come_back),
        cmocka_unit_test(test_data_by_hash),
        cmocka_unit_test(test_reads_as_written),
        cmocka_unit_test(test_constant_nodes_carry_tensors),
        cmocka_unit_test(test_rejects),
        cmocka_unit_test(test_truncated_and_nested),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

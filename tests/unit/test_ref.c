/* The reference's driver: rounding, lifetimes, bodies, limits, and what C leaves undefined. */
#include "ir/text.h"
#include "ops/op.h"
#include "ops/rule.h"
#include "unit.h"

#include <math.h>
#include <stdio.h>

typedef struct fixture {
    po_ctx ctx;
    po_graph *graph;
    po_array *out[8];
} fixture;

static void setup(fixture *f, const char *text) {
    po_ctx_init(&f->ctx);
    if (po_graph_parse(&f->ctx, text, &f->graph) != PO_OK)
        fail_msg("%s", f->ctx.error.message);
    po_ops_resolve(f->graph);
}

/* Float inputs count up from 1, integer inputs from 0. */
static void make_inputs(fixture *f, const po_array **in) {
    po_graph *g = f->graph;
    for (uint32_t k = 0; k < g->n_inputs; k++) {
        const po_type *t = &g->values[g->inputs[k]].type;
        int64_t dims[8];
        po_array *a;
        for (uint32_t i = 0; i < t->rank; i++)
            dims[i] = t->dims[i].value;
        assert_int_equal(po_array_create(&f->ctx, g->arena, t->dtype, t->rank, dims, &a), PO_OK);
        for (int64_t i = 0; i < a->count; i++) {
            if (a->f)
                a->f[i] = (double)(i + 1);
            else
                a->i[i] = i;
        }
        in[k] = a;
    }
}

static po_status evaluate(fixture *f, bool round) {
    const po_array *in[8] = {0};
    make_inputs(f, in);
    return po_ref_graph(&f->ctx, f->graph->arena, f->graph, in, f->out, round);
}

static void done(fixture *f) {
    assert_int_equal(f->ctx.error.status, PO_OK);
    po_graph_free(f->graph);
    assert_null(f->ctx.arenas);
}

static po_status status_of(const char *text) {
    fixture f;
    setup(&f, text);
    po_status status = evaluate(&f, true);
    done(&f);
    return status;
}

static void test_rounding(void **state) {
    fixture f;
    (void)state;
    setup(&f, "graph g (x: f32[1], n: i8[200]) -> (y, m) {\n  a = Add(x, big: f32[1] {1e8})\n"
              "  y = Sub(a, big)\n  m = Add(n, hundred: i8[1] {100})\n}\n");
    assert_int_equal(evaluate(&f, true), PO_OK);
    assert_true(f.out[0]->f[0] == 0.0);
    assert_int_equal(f.out[1]->i[20], 120);
    assert_int_equal(f.out[1]->i[30], -126);
    assert_int_equal(evaluate(&f, false), PO_OK);
    assert_true(f.out[0]->f[0] == 1.0);
    assert_int_equal(f.out[1]->i[30], -126); /* integers wrap either way */
    done(&f);
}

/* Noise is where floats round, and nowhere else. */
static void test_noise(void **state) {
    fixture f;
    const po_array *in[8] = {0};
    po_array *noisy[8] = {0};
    (void)state;
    setup(&f, "graph g (x: f32[4]) -> (exact, luck, chosen, step, far, wide, square) {\n"
              "  t = Mul(x, third: f32[] {0.333333343})\n  r = Relu(t)\n  exact = Sub(r, t)\n"
              "  e = Mul(ones: f32[8] {1.1}, ones)\n  m = ReduceMean(e) {axes=[0], keepdims=1}\n"
              "  luck = Sub(e, m)\n  chosen = Mul(x, half: f32[] {0.5})\n"
              "  step = Floor(t)\n  big = Add(t, b: f32[] {1e9})\n  far = Sub(big, b)\n"
              "  w = Cast(t) {to=11}\n  v = Cast(x) {to=11}\n  wide = Exp(v)\n"
              "  two = Constant() {value_float=2.0}\n  n = Neg(t)\n  square = Pow(n, two)\n}\n");
    make_inputs(&f, in);
    uint32_t moved = 0;
    for (uint64_t draw = 0; draw < 8; draw++) {
        assert_int_equal(
            po_ref_graph_noisy(&f.ctx, f.graph->arena, f.graph, in, draw, f.out, noisy), PO_OK);
        double luck = 0, far = 0;
        for (int64_t i = 0; i < 4; i++) {
            assert_true(f.out[0]->f[i] == 0 && noisy[0]->f[i] == 0);
            assert_true(f.out[1]->f[i] == 0);
            luck = fmax(luck, fabs(noisy[1]->f[i]));
            assert_true(noisy[2]->f[i] == f.out[2]->f[i]);
            assert_true(noisy[3]->f[i] == f.out[3]->f[i]);
            assert_true(fabs(f.out[4]->f[i] - (double)(float)((double)(i + 1) / 3)) < 1e-6);
            far = fmax(far, fabs(noisy[4]->f[i] - f.out[4]->f[i]));
            assert_true(noisy[5]->f[i] == f.out[5]->f[i]);
            assert_true(fabs(noisy[6]->f[i] / f.out[6]->f[i] - 1) < 0x1p-21);
        }
        assert_true(luck < 0x1p-21);
        moved += luck > 0;
        assert_true(far > 50 && far < 130);
    }
    assert_true(moved > 4);
    done(&f);
}

/* What cancels was rounded by its partial sums; nothing else may be told apart by whether the exact
 * values are wanted too. */
static void test_noise_alone(void **state) {
    static const char *const graphs[] = {
        "graph g (x: f32[4]) -> (y, z, w) {\n  a = Sub(x, c: f32[4] {1.0, 2.0, 3.0, 4.0})\n"
        "  b = Mul(x, s: f32[4] {1.0, -2.0, 3.0, -1.5})\n  y = ReduceSum(b) {keepdims=0}\n"
        "  e = Exp(a)\n  r = Relu(e)\n  v = Reshape(r, d: i64[2] {2})\n"
        "  z = MatMul(v, v)\n  i = Identity(v)\n  w = Neg(i)\n}\n",
        "graph g (x: f32[4]) -> (y, z) {\n  y = ReduceSum(x, k: i64[0] {}) "
        "{keepdims=1, noop_with_empty_axes=1}\n  z = Transpose(y)\n}\n",
    };
    (void)state;
    for (size_t g = 0; g < sizeof graphs / sizeof *graphs; g++) {
        fixture f;
        const po_array *in[8] = {0};
        po_array *noisy[8] = {0}, *alone[8] = {0};
        double most = 0;
        setup(&f, graphs[g]);
        assert_int_equal(po_infer_graph(&f.ctx, f.graph, false), PO_OK);
        make_inputs(&f, in);
        for (uint64_t draw = 0; draw < 8; draw++) {
            assert_int_equal(
                po_ref_graph_noisy(&f.ctx, f.graph->arena, f.graph, in, draw, f.out, noisy), PO_OK);
            assert_int_equal(
                po_ref_graph_noisy(&f.ctx, f.graph->arena, f.graph, in, draw, NULL, alone), PO_OK);
            for (uint32_t k = 0; k < f.graph->n_outputs; k++)
                for (int64_t i = 0; i < noisy[k]->count; i++) {
                    double moved = fabs(noisy[k]->f[i] - f.out[k]->f[i]);
                    assert_true(noisy[k]->f[i] == alone[k]->f[i]);
                    assert_true(moved < 0x1p-19);
                    most = fmax(most, k == 0 ? moved : 0);
                }
        }
        assert_true(most > 0);
        assert_true(f.out[0]->f[0] == (g == 0 ? 0 : 1));
        done(&f);
    }
}

/* Views outlive what they look into; inputs and constants may be outputs. */
static void test_lifetimes(void **state) {
    fixture f;
    (void)state;
    setup(&f, "graph g (x: f32[2,3]) -> (y, z, x, c, u) {\n"
              "  a = Exp(x)\n  v = Identity(a)\n  w = Reshape(v, s: i64[1] {-1})\n  b = Neg(a)\n"
              "  y = Identity(w)\n  z = Add(b, c: f32[2,3] {0.5})\n  e = Neg(f: f32[0] {})\n"
              "  u = Identity(e)\n}\n");
    assert_int_equal(evaluate(&f, false), PO_OK);
    assert_int_equal(f.out[0]->rank, 1);
    assert_true(f.out[0]->f[5] == exp(6.0));
    assert_true(f.out[1]->f[5] == 0.5 - exp(6.0));
    assert_true(f.out[2]->f[5] == 6.0);
    assert_true(f.out[3]->f[5] == 0.5);
    assert_int_equal(f.out[4]->count, 0);
    done(&f);
}

static const char nested[] =
    "graph g (x: f32[2], m: i64[3]) -> (last, all) {\n"
    "  last, all = Loop(four: i64[] {4}, t: bool[] {1}, x) {body=graph b (i: i64[], c: bool[], v: "
    "f32[2]) -> (go, next, v) {\n"
    "    odd = Mod(i, two: i64[] {2})\n    is = Cast(odd) {to=9}\n"
    "    next = If(is) {then_branch=graph p () -> (q) { q = Add(v, x) },"
    " else_branch=graph n () -> (r) { r = Mul(v, two2: f32[] {2.0}) }}\n"
    "    go = Less(i, limit: i64[] {2})\n  }}\n}\n";

static void test_bodies(void **state) {
    fixture f;
    (void)state;
    setup(&f, nested);
    /* Trips 0, 1, 2 run: x2, +x, x2; the condition stops it then. */
    assert_int_equal(evaluate(&f, true), PO_OK);
    assert_true(f.out[0]->f[0] == 6.0 && f.out[0]->f[1] == 12.0);
    assert_int_equal(f.out[1]->rank, 2);
    assert_int_equal(f.out[1]->dims[0], 3);
    assert_true(f.out[1]->f[0] == 1.0 && f.out[1]->f[2] == 2.0 && f.out[1]->f[5] == 6.0);
    done(&f);
}

/* What no output is computed from needs no reference; what a body captures is one's. */
static void test_needed(void **state) {
    static const char form[] =
        "graph g (x: f32[2], c: bool[]) -> (y) {\n  r = RandomNormalLike(x)\n  d = Neg(r)\n"
        "  e = Exp(x)\n  y = If(c) {then_branch=graph t () -> (a) { a = Neg(e) }, "
        "else_branch=graph f () -> (b) { u = RandomNormalLike(e)\n b = Abs(%s) }}\n}\n";
    static const char *const read[] = {"e", "u", "r", "d"};
    (void)state;
    for (size_t k = 0; k < sizeof read / sizeof *read; k++) {
        char text[1024];
        snprintf(text, sizeof text, form, read[k]);
        assert_int_equal(status_of(text), k ? PO_UNSUPPORTED : PO_OK);
    }
}

/* A node evaluated alone knows constants around it, and nothing else. */
static void test_node_with_body(void **state) {
    static const char known[] =
        "graph g (c: bool[]) -> (y) {\n  k = f32[2] {3.0}\n  y = If(c) {then_branch=graph t () -> "
        "(a) { a = Neg(k) }, else_branch=graph e () -> (b) { b = Abs(k) }}\n}\n";
    static const char unknown[] =
        "graph g (c: bool[], k: f32[2]) -> (y) {\n  y = If(c) {then_branch=graph t () -> (a) { a = "
        "Neg(k) }, else_branch=graph e () -> (b) { b = Abs(k) }}\n}\n";
    fixture f;
    (void)state;
    for (int k = 0; k < 2; k++) {
        setup(&f, k ? unknown : known);
        po_array *c;
        assert_int_equal(po_array_create(&f.ctx, f.graph->arena, PO_BOOL, 0, NULL, &c), PO_OK);
        c->i[0] = 1;
        const po_array *in[] = {c};
        po_status status =
            po_ref_node(&f.ctx, f.graph->arena, f.graph, &f.graph->nodes[0], in, f.out);
        assert_int_equal(status, k ? PO_UNSUPPORTED : PO_OK);
        if (!k)
            assert_true(f.out[0]->f[1] == -3.0);
        done(&f);
    }
}

static void test_undefined_arithmetic(void **state) {
    static const char *const texts[] = {
        "graph g () -> (y) {\n  y = Div(a: i32[1] {1}, b: i32[1] {0})\n}\n",
        "graph g () -> (y) {\n  y = Div(a: u8[1] {1}, b: u8[1] {0})\n}\n",
        "graph g () -> (y) {\n  y = Div(a: i64[1] {-9223372036854775808}, b: i64[1] {-1})\n}\n",
        "graph g () -> (y) {\n  y = Div(a: i8[1] {-128}, b: i8[1] {-1})\n}\n",
        "graph g () -> (y) {\n  y = Mod(a: i64[1] {-9223372036854775808}, b: i64[1] {-1})\n}\n",
        "graph g () -> (y) {\n  y = Mod(a: u64[1] {5}, b: u64[1] {0})\n}\n",
        "graph g () -> (y) {\n  y = Pow(a: i64[1] {10}, b: i64[1] {30})\n}\n",
        "graph g () -> (y) {\n  y = Pow(a: i64[1] {2}, b: i64[1] {-1})\n}\n",
        "graph g () -> (y) {\n  y = BitShift(a: u8[1] {1}, b: u8[1] {8}) {direction=\"LEFT\"}\n}\n",
        "graph g () -> (y) {\n  y = Cast(a: f32[1] {3e9}) {to=6}\n}\n",
        "graph g () -> (y) {\n  y = Cast(a: f32[1] {nan(0x7fc00000)}) {to=7}\n}\n",
        "graph g () -> (y) {\n  y = Cast(a: f32[1] {-1.0}) {to=2}\n}\n",
    };
    (void)state;
    for (size_t k = 0; k < sizeof texts / sizeof *texts; k++)
        if (status_of(texts[k]) != PO_UNSUPPORTED)
            fail_msg("evaluated: %s", texts[k]);
    /* and right beside it */
    assert_int_equal(
        status_of("graph g () -> (y) {\n  y = Div(a: i8[1] {-128}, b: i8[1] {2})\n}\n"), PO_OK);
    assert_int_equal(status_of("graph g () -> (y) {\n  y = BitShift(a: u8[1] {1}, b: u8[1] {7}) "
                               "{direction=\"LEFT\"}\n}\n"),
                     PO_OK);
}

static void test_limits(void **state) {
    static const char *const texts[] = {
        "graph g () -> (y) {\n  y = ConstantOfShape(a: i64[2] {65536,65536})\n}\n",
        "graph g () -> (y) {\n  y = ConstantOfShape(a: i64[3] {0,4611686018427387904,2})\n}\n",
        ("graph g () -> (y) {\n  y = Range(a: i64[] {0}, b: i64[] {9223372036854775807}, c: i64[] "
         "{1})\n}\n"),
        "graph g () -> (y) {\n  y = Range(a: f32[] {0.0}, b: f32[] {1.0}, c: f32[] {1e-30})\n}\n",
        "graph g () -> (y) {\n  y = Expand(a: f32[1] {0.0}, b: i64[2] {65536,65536})\n}\n",
        "graph g () -> (y) {\n  y = Tile(a: f32[2] {0.0}, b: i64[1] {9223372036854775807})\n}\n",
        ("graph g () -> (y) {\n  y = OneHot(a: i64[1] {0}, b: i64[] {1000000000}, c: f32[2] "
         "{0.0,1.0})\n}\n"),
        /* a loop that would run for ever */
        ("graph g () -> (y) {\n  y = Loop(n: i64[] {9223372036854775807}, c: bool[] {1}, x: f32[1] "
         "{0.0}) {body=graph b (i: i64[], go: bool[], v: f32[1]) -> (go, w) { w = Add(v, v) "
         "}}\n}\n"),
    };
    (void)state;
    for (size_t k = 0; k < sizeof texts / sizeof *texts; k++)
        if (status_of(texts[k]) != PO_UNSUPPORTED)
            fail_msg("evaluated: %s", texts[k]);
}

static void test_values(void **state) {
    fixture f;
    (void)state;
    setup(&f, "graph g () -> (m, d, c, p, l) {\n"
              "  m = Mod(a: i32[4] {-5,5,-5,5}, b: i32[4] {3,3,-3,-3})\n"
              "  d = Div(a, b)\n"
              "  c = Greater(u: u64[1] {18446744073709551615}, v: u64[1] {1})\n"
              "  p = Pow(t: f32[1] {2.0}, e: i64[1] {-2})\n"
              "  l = ReduceLogSumExp(h: f32[2] {1000.0,1000.0})\n}\n");
    assert_int_equal(evaluate(&f, false), PO_OK);
    const int64_t mod[] = {1, 2, -2, -1}, div[] = {-1, 1, 1, -1};
    assert_memory_equal(f.out[0]->i, mod, sizeof mod);
    assert_memory_equal(f.out[1]->i, div, sizeof div);
    assert_int_equal(f.out[2]->i[0], 1);
    assert_true(f.out[3]->f[0] == 0.25);
    assert_true(fabs(f.out[4]->f[0] - 1000.0 - log(2.0)) < 1e-9);
    done(&f);
}

/* Runtimes take a real signal without its last axis, and exporters write it so. */
static void test_signal_of_rank_2(void **state) {
    fixture f;
    (void)state;
    setup(&f, "graph g (x: f32[2,20]) -> (a, b) {\n"
              "  a = STFT(x, s: i64[] {3}, w: f32[8] random 1)\n"
              "  t = Reshape(x, r: i64[3] {2,20,1})\n  b = STFT(t, s, w)\n}\n");
    assert_int_equal(evaluate(&f, false), PO_OK);
    const int64_t dims[] = {2, 5, 5, 2};
    assert_int_equal(f.out[0]->rank, 4);
    assert_memory_equal(f.out[0]->dims, dims, sizeof dims);
    assert_memory_equal(f.out[0]->f, f.out[1]->f, (size_t)f.out[0]->count * sizeof(double));
    done(&f);
}

static void test_cancel(void **state) {
    fixture f;
    atomic_bool stop = true;
    (void)state;
    setup(&f, nested);
    f.ctx.cancel = &stop;
    assert_int_equal(evaluate(&f, true), PO_CANCELLED);
    po_ctx_clear(&f.ctx);
    done(&f);
}

/* --- moves --- */

/* Transposes, cuts and repetitions, of rows as long as the squares that they are done in and of
 * others, in elements of 8 bytes and of 1, beside one element at a time. */
static void test_moves(void **state) {
    (void)state;
    static const int64_t lengths[] = {1, 2, 7, 8, 31, 32, 33, 70};
    enum { MOVES = 400, MOST = 1 << 16, OFFSET = 3 };
    static double from[4 * MOST + OFFSET], to[MOST + 1];
    int turned = 0;
    for (int64_t i = 0; i < 4 * MOST + OFFSET; i++)
        from[i] = (double)i + 0.5;
    for (uint64_t seed = 0; seed < MOVES; seed++) {
        const uint32_t rank = (uint32_t)(po_random_u64(seed, 1, 0) % 5);
        int64_t dims[5], strides[5], count = 1, reach = 1;
        uint32_t order[5];
        for (uint32_t x = 0; x < rank; x++) {
            dims[x] = lengths[po_random_u64(seed, 2, x) % (rank > 3 ? 4 : 8)];
            count *= dims[x];
            order[x] = x;
        }
        if (count > MOST)
            continue;
        for (uint32_t x = rank; x-- > 1;) {
            const uint32_t k = (uint32_t)(po_random_u64(seed, 3, x) % (x + 1)), was = order[x];
            order[x] = order[k];
            order[k] = was;
        }
        for (uint32_t i = 0; i < rank; i++) { /* some axes with gaps, some repeated */
            const uint64_t gap = po_random_u64(seed, 4, i) % 8;
            strides[order[i]] = gap == 0 && reach < MOST ? 2 * reach : gap == 1 ? 0 : reach;
            reach += strides[order[i]] * (dims[order[i]] - 1);
        }
        if (reach > 4 * MOST)
            continue;
        turned += rank > 1 && strides[rank - 1] > 1 && dims[rank - 1] >= 8;
        for (uint32_t width = 1; width <= sizeof(double); width *= 8) {
            const char *in = (const char *)from;
            memset(to, 1, sizeof to);
            po_move((char *)to, in, width, rank, dims, OFFSET, strides);
            for (int64_t e = 0; e < count; e++) {
                int64_t at = OFFSET, rest = e;
                for (uint32_t x = rank; x-- > 0; rest /= dims[x])
                    at += rest % dims[x] * strides[x];
                assert_memory_equal((char *)to + e * width, in + at * width, width);
            }
            assert_int_equal(((char *)to)[count * width], 1); /* nothing behind it */
        }
    }
    assert_true(turned > MOVES / 10);
}

/* As many as asked for, between the two, and not the same in every row. */
static void test_drawn(void **state) {
    (void)state;
    po_ctx ctx;
    po_ctx_init(&ctx);
    po_arena *arena = po_arena_create(&ctx);
    const int64_t sizes[] = {0, 5, 65537, 65538, 300000};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        po_tensor *t, *again;
        assert_int_equal(po_tensor_create(&ctx, arena, PO_F32, 1, &sizes[i], &t), PO_OK);
        assert_int_equal(po_tensor_create(&ctx, arena, PO_F32, 1, &sizes[i], &again), PO_OK);
        po_tensor_draw(t, 5, -0.5, 0.25);
        po_tensor_draw(again, 5, -0.5, 0.25);
        assert_true(po_tensor_equal(t, again));
        double least = 1, most = -1;
        for (int64_t e = 0; e < t->count; e++) {
            const double v = po_tensor_f64(t, e);
            least = v < least ? v : least;
            most = v > most ? v : most;
            assert_true(e < 65537 || v == po_tensor_f64(t, e - 65537));
        }
        assert_true(sizes[i] < 1000 ||
                    (least >= -0.5 && least < -0.49 && most > 0.24 && most < 0.25));
    }
    po_arena_free(arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_moves),          cmocka_unit_test(test_drawn),
        cmocka_unit_test(test_rounding),       cmocka_unit_test(test_noise),
        cmocka_unit_test(test_noise_alone),    cmocka_unit_test(test_lifetimes),
        cmocka_unit_test(test_bodies),         cmocka_unit_test(test_needed),
        cmocka_unit_test(test_node_with_body), cmocka_unit_test(test_undefined_arithmetic),
        cmocka_unit_test(test_limits),         cmocka_unit_test(test_values),
        cmocka_unit_test(test_cancel),         cmocka_unit_test(test_signal_of_rank_2),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Laws in text: what each part of a pattern takes and what it refuses, and what is written. */
#include "rewrite/pattern.h"
#include "rewriting.h"
#include "unit.h"

#include <math.h>
#include <stdio.h>

typedef struct sample {
    const char *nodes; /* that make y of x and s: f32[2,4] */
    const char *pattern;
    bool matches;
} sample;

static const sample samples[] = {
    {"m = Mul(s, x)\n y = Add(m, x)", "Add(x, Mul(x, s))", true}, /* either order */
    {"m = Mul(s, s)\n y = Add(m, x)", "Add(x, Mul(x, s))", false},
    {"m = Mul(s, x)\n y = Add(m, x)", "Sub(x, Mul(x, s))", false},
    {"m = Sub(s, x)\n y = Add(m, x)", "Add(x, Sub(x, s))", false}, /* does not commute */
    {"m = Mul(s, x)\n y = Add(m, x)\n z = Neg(m)", "Add(x, Mul(x, s))", false}, /* read elsewhere */
    {"m = Mul(s, x)\n y = Add(m, x)\n z = Neg(m)", "Add(x, &Mul(x, s))", true},
    {"z = Mul(s, x)\n y = Add(z, x)", "Add(x, Mul(x, s))", false}, /* an output */
    {"y = Add(x, c: f32[] {3.0})", "Add(x, 3)", true},
    {"y = Add(x, c: f32[1,1] {3.0})", "Add(x, 6/2)", true},
    {"y = Mul(x, c: f32[] {0.70710678})", "Mul(x, sqrt(1/2))", true},
    {"y = Mul(x, c: f32[] {0.7072})", "Mul(x, sqrt(1/2))", false},
    {"y = Mul(x, c: f32[] {3.14159265})", "Mul(x, pi)", true},
    {"y = Add(x, c: f32[] {3.0001})", "Add(x, 3)", false},
    {"y = Add(x, c: f32[4] {3.0})", "Add(x, 3)", false},
    {"y = Add(x, c: f32[4] {3.0})", "Add(x, c:const)", true},
    {"y = Add(x, s)", "Add(x, c:const)", false},
    {"y = Add(x, s)", "Add(x, c:number)", false},
    {"m = Mul(x, a: f32[] {2.0})\n y = Add(m, b: f32[] {2.0})", "Add(Mul(x, c:number), c:number)",
     true},
    {"m = Mul(x, a: f32[] {2.0})\n y = Add(m, b: f32[] {3.0})", "Add(Mul(x, c:number), c:number)",
     false},
    {"e = Exp(x)\n y = Div(e, e)", "Div(e, e=Exp(x))", true},
    {"e = Exp(x)\n y = Div(e, e)\n z = Neg(e)", "Div(e, e=Exp(x))", false},
    {"e = Exp(x)\n f = Exp(x)\n y = Div(e, f)", "Div(e, e=Exp(x))", false},
    {"e = Exp(x)\n f = Exp(x)\n y = Div(e, f)", "Div(Exp(x), Exp(x))", true},
    {"m = Pow(x, c: f32[] {2.0})\n y = Neg(m)", "Neg((Mul(x, x) | Pow(x, 2)))", true},
    {"m = Mul(x, x)\n y = Neg(m)", "Neg((Mul(x, x) | Pow(x, 2)))", true},
    {"m = Mul(x, s)\n y = Neg(m)", "Neg((Mul(x, x) | Pow(x, 2)))", false},
    {"y = Neg(x)", "Abs(x) | Neg(x)", true},
    {"y = Neg(x)", "Negative(x)", false},
    {"y = Sum(x, s)", "Sum(x)", false},
    /* The first choice holds for its own part and not for what follows. */
    {"a = Exp(x)\n b = Exp(s)\n m = Mul(a, b)\n y = Sub(m, x)", "Sub(Mul(Exp(t), Exp(x)), x)",
     true},
    {"y = HardSigmoid(x) {alpha=0.25}", "HardSigmoid{alpha=1/4, beta=0.5}(x)", true},
    {"y = HardSigmoid(x)", "HardSigmoid{alpha=0.25}(x)", false},
    {"y = HardSigmoid(x)", "HardSigmoid{beta=a}(x)", true},
    {"y = ReduceMean(x) {axes=[-1]}", "ReduceMean[1](x)", true},
    {"y = ReduceMean(x) {axes=[-1]}", "ReduceMean[0](x)", false},
    {"y = ReduceMean(x) {axes=[-1], keepdims=0}", "ReduceMean[k](x)", false},
    {"y = ReduceMean(x) {axes=[0,1]}", "ReduceMean[k](x)", false},
    {"m = Div(x, a: f32[] {2.0})\n n = Add(b: f32[] {3.0}, m)\n y = Tanh(n)",
     "Tanh(line(0.5, x, 3))", true},
    {"m = Div(x, a: f32[] {2.0})\n n = Add(b: f32[] {3.0}, m)\n y = Tanh(n)",
     "Tanh(line(0.5, x, 2))", false},
    {"y = Tanh(x)", "Tanh(line(1, x, 0))", true},
    {"m = Mul(x, a: f32[] {2.0})\n n = Div(s, b: f32[] {4.0})\n y = Mul(m, n)",
     "product(0.5, x, s)", true},
    {"m = Mul(x, a: f32[] {2.0})\n n = Mul(m, x)\n y = Mul(n, s)", "product(c, x, s)", false},
    {"c = Pow(x, n: f32[] {3.0})\n d = Add(c, x)\n t = Tanh(d)\n y = Mul(x, t)",
     "product(1, x, Tanh(cubic(x, 0, 1, 0, 1)))", true},
    {"c = Pow(x, n: f32[] {2.0})\n d = Add(c, x)\n t = Tanh(d)\n y = Mul(x, t)",
     "product(1, x, Tanh(cubic(x, 0, 1, 0, 1)))", false},
};

static po_graph *graph_of(po_ctx *ctx, po_arena *arena, const char *nodes) {
    return test_graph(ctx, po_arena_printf(arena,
                                           "graph g (x: f32[2,4], s: f32[2,4]) -> (y%s) {\n %s\n}",
                                           strstr(nodes, "z = ") ? ", z" : "", nodes));
}

static bool matches(const po_graph *g, po_arena *arena, const char *pattern, po_match *m) {
    return po_matches(g, arena, po_graph_producer(g, g->outputs[0]), pattern, m);
}

static void test_samples(void **state) {
    (void)state;
    int bad = 0;
    for (size_t i = 0; i < sizeof samples / sizeof *samples; i++) {
        po_ctx ctx;
        po_ctx_init(&ctx);
        po_arena *arena = po_arena_create(&ctx);
        po_graph *g = graph_of(&ctx, arena, samples[i].nodes);
        po_match m;
        if (matches(g, arena, samples[i].pattern, &m) != samples[i].matches) {
            printf("%s of\n %s\n", samples[i].pattern, samples[i].nodes);
            bad++;
        }
        po_graph_free(g);
        po_arena_free(arena);
    }
    assert_int_equal(bad, 0);
}

static void test_letters(void **state) {
    (void)state;
    po_ctx ctx;
    po_ctx_init(&ctx);
    po_arena *arena = po_arena_create(&ctx);
    po_graph *g = graph_of(&ctx, arena, "m = Mul(s, c: f32[] {3.0})\n y = Sub(m, x)");
    po_match m;
    assert_true(matches(g, arena, "Sub(Mul(a, b:number), c)", &m));
    assert_int_equal(po_matched(&m, 'a'), g->inputs[1]);
    assert_int_equal(po_matched(&m, 'c'), g->inputs[0]);
    assert_true(po_matched_number(&m, 'b') == 3);
    assert_int_equal(po_matched(&m, 'b'), PO_NONE);
    assert_int_equal(po_matched(&m, 'd'), PO_NONE);
    po_graph_free(g);
    po_arena_free(arena);
}

/* Every order of eight sums in a row, none of which holds: it ends. */
static void test_bounded(void **state) {
    (void)state;
    po_ctx ctx;
    po_ctx_init(&ctx);
    po_arena *arena = po_arena_create(&ctx);
    const char *nodes = "v0 = Add(x, s)", *pattern = "Add(a, b)";
    for (int i = 1; i < 20; i++) {
        nodes = po_arena_printf(arena, "%s\n v%d = Add(v%d, v%d)", nodes, i, i - 1, i - 1);
        pattern = po_arena_printf(arena, "Add(&%s, &%s)", pattern, pattern);
        if (i == 10)
            break;
    }
    po_graph *g = graph_of(&ctx, arena, po_arena_printf(arena, "%s\n y = Neg(v10)", nodes));
    po_match m;
    assert_false(matches(g, arena, po_arena_printf(arena, "Neg(&Add(%s, Exp(x)))", pattern), &m));
    po_graph_free(g);
    po_arena_free(arena);
}

typedef struct writing {
    const char *from, *pattern, *text, *to; /* nodes before and after */
} writing;

static const writing writings[] = {
    {"m = Mul(s, x)\n y = Add(m, x)", "Add(x, Mul(x, s))", "Mul(x, Add(s, 1))",
     "a = Add(s, one: f32[] {1.0})\n y = Mul(x, a)"},
    {"y = Mul(x, c: f32[] {2.0})", "Mul(x, c:number)", "Div(x, 1/c)", "y = Div(x, c: f32[] {0.5})"},
    {"y = Mul(x, c: f32[] {2.0})", "Mul(x, c:number)", "Mul(Exp(x), c/2)", "y = Exp(x)"},
    {"y = Neg(x)", "Neg(x)", "e = Exp(x); f = Add(e, -2*sqrt(4)); Div(e, f)",
     "e = Exp(x)\n f = Add(e, c: f32[] {-4.0})\n y = Div(e, f)"},
    {"y = Neg(x)", "Neg(x)", "Sub(x, ReduceMax[-1](Clip(x, -inf, 0.25)))",
     "c = Min(x, b: f32[] {0.25})\n m = ReduceMax(c) {axes=[-1]}\n y = Sub(x, m)"},
    {"y = Neg(x)", "Neg(x)", "Gelu{approximate=tanh}(LeakyRelu{alpha=1/4}(Softmax{axis=-1}(x)))",
     "a = Softmax(x) {axis=-1}\n b = LeakyRelu(a) {alpha=0.25}\n y = Gelu(b) "
     "{approximate=\"tanh\"}"},
};

static void test_writing(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof writings / sizeof *writings; i++) {
        const writing *w = &writings[i];
        po_ctx ctx;
        po_ctx_init(&ctx);
        po_arena *arena = po_arena_create(&ctx);
        po_graph *g = graph_of(&ctx, arena, w->from), *to = graph_of(&ctx, arena, w->to);
        po_match m;
        assert_true(matches(g, arena, w->pattern, &m));
        po_write_instead(g, g->values[g->outputs[0]].producer, &m, w->text);
        po_graph_sweep(g);
        assert_int_equal(po_graph_check(&ctx, g), PO_OK);
        const double off = test_difference(&ctx, g, to, 1);
        if (g->n_live != to->n_live || !(off <= 1e-6))
            fail_msg("%s: %u nodes for %u, off by %g", w->text, g->n_live, to->n_live, off);
        po_graph_free(to);
        po_graph_free(g);
        po_arena_free(arena);
    }
}

/* Each of the texts above with one part changed is not what was written. */
static void test_sabotage(void **state) {
    (void)state;
    static const char *const wrong[] = {"Mul(x, Add(s, 2))", "Mul(s, Add(x, 1))", "Add(x, s)"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        po_ctx ctx;
        po_ctx_init(&ctx);
        po_arena *arena = po_arena_create(&ctx);
        po_graph *g = graph_of(&ctx, arena, writings[0].from);
        po_graph *to = graph_of(&ctx, arena, writings[0].to);
        po_match m;
        assert_true(matches(g, arena, writings[0].pattern, &m));
        po_write_instead(g, g->values[g->outputs[0]].producer, &m, wrong[i]);
        assert_false(test_difference(&ctx, g, to, 1) <= 1e-6);
        po_graph_free(to);
        po_graph_free(g);
        po_arena_free(arena);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_samples),  cmocka_unit_test(test_letters),
        cmocka_unit_test(test_bounded),  cmocka_unit_test(test_writing),
        cmocka_unit_test(test_sabotage),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

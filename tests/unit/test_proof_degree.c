/* What the proof says of degrees against what they are: rational programs are evaluated on many
 * values of one variable, all others fixed, and the quotient of least degree through these points
 * is compared with the bound that the program was given (docs/proof.md, "The bound"). */
#include "ops/op.h"
#include "rewriting.h"
#include "unit.h"
#include "verify/proof/internal.h"

#include <stdio.h>

enum { POINTS = 160, WIDTH = 4 };

/* --- the quotient of least degree through points --- */

typedef struct poly {
    int degree; /* -1: zero */
    uint32_t c[POINTS + 2];
} poly;

static uint32_t minus(uint32_t a, uint32_t b) {
    return po_mod_add(a, po_mod_neg(b));
}

static void trim(poly *p) {
    while (p->degree >= 0 && p->c[p->degree] == 0)
        p->degree--;
}

/* Newton's form, multiplied out. */
static poly interpolate(int n, const uint32_t *x, const uint32_t *y) {
    uint32_t d[POINTS];
    memcpy(d, y, (size_t)n * sizeof *d);
    for (int k = 1; k < n; k++)
        for (int i = n - 1; i >= k; i--)
            d[i] = po_mod_mul(minus(d[i], d[i - 1]), po_mod_inverse(minus(x[i], x[i - k])));
    poly p = {.degree = 0};
    for (int k = n - 1; k >= 0; k--) {
        for (int i = p.degree + 1; i > 0; i--)
            p.c[i] = minus(p.c[i - 1], po_mod_mul(x[k], p.c[i]));
        p.c[0] = po_mod_add(minus(0, po_mod_mul(x[k], p.c[0])), d[k]);
        p.degree++;
    }
    p.degree = n - 1;
    trim(&p);
    return p;
}

/* a mod b; and t -= q * u. */
static void divide(poly *a, const poly *b, poly *t, const poly *u) {
    uint32_t inverse = po_mod_inverse(b->c[b->degree]);
    while (a->degree >= b->degree) {
        int shift = a->degree - b->degree;
        uint32_t q = po_mod_mul(a->c[a->degree], inverse);
        for (int i = 0; i <= b->degree; i++)
            a->c[i + shift] = minus(a->c[i + shift], po_mod_mul(q, b->c[i]));
        for (int i = 0; i <= u->degree; i++)
            t->c[i + shift] = minus(t->c[i + shift], po_mod_mul(q, u->c[i]));
        t->degree = t->degree > u->degree + shift ? t->degree : u->degree + shift;
        trim(a);
    }
    trim(t);
}

/* Degrees of numerator and denominator added up, at least. */
static int true_degree(int n, const uint32_t *x, const uint32_t *y) {
    static poly a, b, s, t;
    memset(&a, 0, sizeof a);
    a.degree = 0;
    a.c[0] = 1;
    for (int k = 0; k < n; k++) {
        for (int i = a.degree + 1; i > 0; i--)
            a.c[i] = minus(a.c[i - 1], po_mod_mul(x[k], a.c[i]));
        a.c[0] = minus(0, po_mod_mul(x[k], a.c[0]));
        a.degree++;
    }
    b = interpolate(n, x, y);
    memset(&s, 0, sizeof s);
    s.degree = -1;
    memset(&t, 0, sizeof t);
    t.c[0] = 1;
    int least = b.degree < 0 ? 0 : b.degree;
    for (poly *r0 = &a, *r1 = &b, *t0 = &s, *t1 = &t; r1->degree >= 0;) {
        int sum = r1->degree + t1->degree;
        least = sum < least ? sum : least;
        divide(r0, r1, t0, t1);
        poly *swap = r0;
        r0 = r1;
        r1 = swap;
        swap = t0;
        t0 = t1;
        t1 = swap;
    }
    return least;
}

static void test_interpolation(void **state) {
    (void)state;
    static const struct {
        int above, below;
    } rows[] = {{0, 0}, {1, 0}, {0, 1}, {5, 3}, {3, 9}, {40, 39}, {60, 70}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        uint32_t x[POINTS], y[POINTS];
        for (uint32_t k = 0; k < POINTS; k++) {
            x[k] = (uint32_t)(po_random_u64(1, i, k) % PO_P);
            uint32_t above = 1, below = 1;
            for (uint32_t r = 0; r < (uint32_t)rows[i].above; r++)
                above = po_mod_mul(above, minus(x[k], 1000 + r));
            for (uint32_t r = 0; r < (uint32_t)rows[i].below; r++)
                below = po_mod_mul(below, minus(x[k], 2000 + r));
            y[k] = po_mod_mul(above, po_mod_inverse(below));
        }
        assert_int_equal(true_degree(POINTS, x, y), rows[i].above + rows[i].below);
    }
}

/* --- programs --- */

/* x: inputs; c, s: constants, WIDTH of them and one. Rows are points. */
static const char *const names[3] = {"x", "c", "s"};

static po_graph *program(po_ctx *ctx, const char *body, int rows) {
    char text[8192];
    snprintf(text, sizeof text,
             "pir 1 ir_version=8 opset=17\n"
             "graph g (x: f32[%d,%d], c: f32[%d,%d], s: f32[%d,1]) -> (y) {\n%s}\n",
             rows, WIDTH, rows, WIDTH, rows, body);
    return test_graph(ctx, text);
}

/* Evaluates with element `element` of variable `variable` at a value of its own in each row. */
static void evaluate(const char *body, int rows, uint64_t seed, uint32_t variable, int element,
                     const uint32_t *at, double *bound, uint32_t *y) {
    po_ctx ctx;
    po_ctx_init(&ctx);
    po_graph *g = program(&ctx, body, rows);
    po_arena *arena = po_arena_create(&ctx);
    uint32_t *powers = PO_NEW_N(arena, uint32_t, PO_PF_POWERS);
    po_pf_powers(PO_FIELD_FIXED, powers);
    po_prun run = {.ctx = &ctx,
                   .arena = arena,
                   .field = PO_FIELD_FIXED,
                   .fractions = po_pc_fractions(PO_FIELD_FIXED),
                   .seed = seed,
                   .reuse = po_hash_map_create(arena),
                   .tables = po_hash_map_create(arena),
                   .poles = po_hash_map_create(arena),
                   .powers = powers};
    po_pnamed in[3];
    for (uint32_t v = 0; v < 3; v++) {
        int width = v == 2 ? 1 : WIDTH;
        po_ptensor *t = po_pt_residues(&run, PO_F32, 2, (const int64_t[]){rows, width});
        for (int i = 0; i < rows * width; i++)
            t->mod[i] = v == variable && i % width == element
                            ? at[i / width]
                            : 1 + (uint32_t)(po_random_u64(seed, v + 7, (uint64_t)(i % width)) %
                                             (PO_P - 1));
        t->bound = v == 0 ? po_pb_symbol(&run) : po_pb_constant(1);
        t->constant = v > 0;
        in[v] = (po_pnamed){names[v], t};
    }
    po_ptensor *out;
    po_pgraph_spec spec = {.graph = g, .in = in, .n_in = 3};
    if (po_prun_graph(&run, &spec, &out) != PO_OK)
        fail_msg("%s: %s", body, run.why);
    *bound = po_pb_total(&out->bound).degree;
    for (int i = 0; i < rows; i++)
        y[i] = po_pt_mod(out)[(int64_t)i * (out->count / rows)];
    po_prun_forget(&run);
    po_graph_free(g);
    po_arenas_free_since(&ctx, 0);
}

/* The most that the first element of y has in one of its variables, over the bound. */
static double ratio(const char *body, uint64_t seed, double *bound) {
    static const struct {
        uint32_t variable;
        int element;
    } varied[] = {{0, 0}, {0, 2}, {1, 0}, {1, 3}, {2, 0}};
    double worst = 0;
    uint32_t at[POINTS], y[POINTS];
    for (uint32_t k = 0; k < POINTS; k++)
        at[k] = 1 + (uint32_t)(po_random_u64(seed, 99, k) % (PO_P - 1));
    evaluate(body, 1, seed, 0, 0, at, bound, y);
    for (size_t i = 0; i < sizeof varied / sizeof varied[0]; i++) {
        double unused;
        evaluate(body, POINTS, seed, varied[i].variable, varied[i].element, at, &unused, y);
        double degree = true_degree(POINTS, at, y);
        worst = degree / *bound > worst ? degree / *bound : worst;
    }
    return worst;
}

/* What the argument allows: two finite poles of a symbol, and infinity. Where nothing is divided by
 * variables the bound is one of numerator and denominator themselves. */
static const double allowed = 5, exact = 1;

static char *many_shifts(char *text, size_t size, int n) {
    size_t at = 0;
    for (int k = 0; k < n; k++)
        at += (size_t)snprintf(text + at, size - at,
                               " a%d = Add(x, k%d: f32[] {0.%d37})\n b%d = Reciprocal(a%d)\n", k, k,
                               k + 1, k, k);
    at += (size_t)snprintf(text + at, size - at, " y = Sum(b0");
    for (int k = 1; k < n; k++)
        at += (size_t)snprintf(text + at, size - at, ", b%d", k);
    snprintf(text + at, size - at, ")\n");
    return text;
}

static void test_known_programs(void **state) {
    (void)state;
    static const struct {
        const char *body;
        double bound; /* exactly; 0: whatever holds */
    } rows[] = {
        {" a = Mul(x, x)\n b = Mul(a, a)\n y = Mul(b, b)\n", 8},
        {" m = Mul(s, c)\n d = Mul(m, m)\n y = Div(x, d)\n", 5}, /* one term below */
        {" y = Reciprocal(x)\n", 1},
        {" a = Add(x, c)\n y = Div(s, a)\n", 2}, /* x + c is as good as x */
        {" a = Add(x, c)\n b = Div(s, a)\n e = Div(c, a)\n y = Mul(b, e)\n", 4},
        /* x + c and x - c have no common inverse that is a variable's */
        {" a = Add(x, c)\n b = Sub(x, c)\n d = Reciprocal(a)\n e = Reciprocal(b)\n"
         " y = Add(d, e)\n",
         0},
        {" k = Add(s, c)\n y = Div(x, k)\n", 0},
        {" k = Add(s, c)\n d = Div(x, k)\n e = Div(c, k)\n y = Sub(d, e)\n", 0},
        {" k = Add(s, c)\n d = Div(x, k)\n y = ReduceMean(d) {axes=[1]}\n", 0},
        {" k = Add(s, c)\n d = Div(c, k)\n y = MatMul(d, w: f32[4,3] random 5)\n", 0},
        {" r = ReduceMean(x) {axes=[1]}\n y = Div(x, r)\n", 0},
        {" q = Mul(x, x)\n r = ReduceMean(q) {axes=[1]}\n y = Div(x, r)\n", 0},
        {" q = Add(x, c)\n r = Mul(q, x)\n d = Div(s, r)\n y = ReduceMean(d) {axes=[1]}\n", 0},
        {" a = Div(x, c)\n b = Div(c, x)\n d = Add(a, b)\n y = Div(s, d)\n", 0},
        {" a = Pow(x, k: f32[] {-3.0})\n b = Add(a, x)\n y = Pow(b, m: f32[] {-2.0})\n", 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        double bound, r = ratio(rows[i].body, 3, &bound);
        if (r > allowed || (rows[i].bound > 0 && bound != rows[i].bound))
            fail_msg("%s: bound %g, of which %g times is reached", rows[i].body, bound, r);
    }
}

/* Each inverse has a pole of its own: the bound must know of all of them. */
static void test_many_poles(void **state) {
    (void)state;
    char text[4096];
    double bound;
    for (int n = 1; n <= 20; n += 19) {
        double r = ratio(many_shifts(text, sizeof text, n), 11, &bound);
        if (r > allowed)
            fail_msg("%d poles, bound %g", n, bound);
        /* A bound that counts them as one variable would be seen here. */
        if (n == 20)
            assert_true(r * bound / 2 > allowed);
    }
}

/* Sums over denominators of several terms: of constants, which are common, and of others. */
static void test_exact_programs(void **state) {
    (void)state;
    static const char *const parts[] = {
        " p%d = Mul(s, k%d: f32[] {0.%d37})\n q%d = Add(p%d, c)\n d%d = Div(c, q%d)\n"
        " m%d = ReduceMean(d%d) {axes=[1], keepdims=1}\n",
        " p%d = Mul(s, k%d: f32[] {0.%d37})\n q%d = Add(p%d, x)\n r%d = Mul(q%d, q%d)\n"
        " d%d = Div(c, r%d)\n",
    };
    static const char *const programs[] = {
        /* one number, to the eighth */
        " r = ReduceMean(c) {axes=[1], keepdims=1}\n k = Add(s, r)\n a = Div(s, k)\n"
        " b = Mul(a, a)\n d = Mul(b, b)\n y = Mul(d, d)\n",
        /* over the same denominator twice */
        " k = Add(s, c)\n a = Div(s, k)\n b = Div(c, k)\n d = Add(a, b)\n"
        " y = ReduceMean(d) {axes=[1]}\n",
        /* of inputs: each its own */
        " a = Mul(x, s)\n q = Add(a, c)\n d = Div(c, q)\n y = ReduceMean(d) {axes=[1]}\n",
        " a = Mul(x, s)\n q = Add(a, c)\n d = Div(c, q)\n y = MatMul(d, w: f32[4,3] random 1)\n",
        " a = Mul(x, s)\n q = Add(a, c)\n d = Reciprocal(q)\n e = Div(x, q)\n y = Sub(d, e)\n",
        " k = Add(s, c)\n a = Reciprocal(k)\n b = Sub(a, s)\n y = Reciprocal(b)\n",
        /* numerators are raised by what they are not divided by */
        " t = Mul(s, s)\n u = Mul(t, s)\n k = Add(s, c)\n d = Div(u, k)\n"
        " y = ReduceMean(d) {axes=[1]}\n",
        " t = Mul(s, s)\n u = Mul(t, t)\n k = Add(s, c)\n d = Div(c, k)\n"
        " m = ReduceMean(d) {axes=[1]}\n y = Add(m, u)\n",
        " t = Mul(s, s)\n u = Mul(t, t)\n k = Add(s, c)\n d = Div(c, k)\n"
        " m = ReduceMean(d) {axes=[1]}\n y = Sub(u, m)\n",
    };
    double bound;
    for (size_t i = 0; i < sizeof programs / sizeof programs[0]; i++) {
        double r = ratio(programs[i], 21 + i, &bound);
        if (r > exact)
            fail_msg("%s: bound %g, of which %g times is reached", programs[i], bound, r);
    }
    for (int which = 0; which < 2; which++) {
        char text[4096];
        size_t at = 0;
        for (int k = 0; k < 8; k++)
            at += (size_t)snprintf(text + at, sizeof text - at, parts[which], k, k, k + 1, k, k, k,
                                   k, k, k, k);
        for (int k = 0; k < 8; k++)
            at += (size_t)snprintf(text + at, sizeof text - at, "%s%c%d", k ? ", " : " y = Sum(",
                                   which ? 'd' : 'm', k);
        snprintf(text + at, sizeof text - at, ")\n");
        double r = ratio(text, 5, &bound);
        if (r > exact)
            fail_msg("%s: bound %g, of which %g times is reached", text, bound, r);
        if (which == 0)
            assert_true(r * bound > 50);
    }
}

/* One operator of a random program; the values before it are v0 to v(n-1). */
static int add_operator(char *text, size_t size, uint64_t seed, int n) {
    static const char *const ops[] = {
        "Add(v%d, v%d)",
        "Sub(v%d, v%d)",
        "Mul(v%d, v%d)",
        "Div(v%d, v%d)",
        "Div(v%d, v%d)",
        "Reciprocal(v%d)",
        "Neg(v%d)",
        "Sum(v%d, v%d)",
        "ReduceMean(v%d) {axes=[1], keepdims=1}",
        "Add(v%d, v%d)",
        "ReduceSumSquare(v%d) {axes=[1], keepdims=1}",
        "Max(v%d)",
    };
    uint32_t op = (uint32_t)(po_random_u64(seed, 1, (uint64_t)n) % (sizeof ops / sizeof ops[0]));
    int a = (int)(po_random_u64(seed, 2, (uint64_t)n) % (uint64_t)n);
    int b = (int)(po_random_u64(seed, 3, (uint64_t)n) % (uint64_t)n);
    char line[96];
    snprintf(line, sizeof line, ops[op], a, b);
    return snprintf(text, size, " v%d = %s\n", n, line);
}

static void test_random_programs(void **state) {
    (void)state;
    enum { LEAST = 3, MOST = 9 };
    int looked = 0, high = 0;
    for (uint64_t seed = 1; seed <= 400 / TEST_SHARE; seed++) {
        char text[2048];
        int n = 3, last = LEAST + (int)(seed % (MOST - LEAST));
        int at = snprintf(text, sizeof text,
                          " v0 = Identity(x)\n v1 = Identity(c)\n v2 = Identity(s)\n");
        for (; n < 3 + last; n++)
            at += add_operator(text + at, sizeof text - (size_t)at, seed, n);
        snprintf(text + at, sizeof text - (size_t)at, " y = Identity(v%d)\n", n - 1);
        double bound;
        uint32_t unused[1], point[1] = {5};
        evaluate(text, 1, seed, 0, 0, point, &bound, unused);
        if (bound < 1 || bound * allowed > POINTS - 4)
            continue; /* the points would not do */
        double r = ratio(text, seed, &bound);
        if (r > allowed)
            fail_msg("seed %d:\n%sbound %g, of which %g times is reached", (int)seed, text, bound,
                     r);
        looked++;
        high += r > 1;
    }
    printf("%d programs, %d with more than their bound in one variable\n", looked, high);
    assert_true(looked > 200 / TEST_SHARE);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_interpolation),   cmocka_unit_test(test_known_programs),
        cmocka_unit_test(test_many_poles),      cmocka_unit_test(test_exact_programs),
        cmocka_unit_test(test_random_programs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

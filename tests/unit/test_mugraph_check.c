/* What po_mu_check refuses, and that it takes what is right. */
#include "mu_cases.h"
#include "unit.h"

#include <math.h>
#include <stdio.h>

static const int64_t shared_limit = 1 << 20;

/* --- in text --- */

/* Loops, scopes and tiles that the cases do not have, all right. */
static const char parts[] = "mugraph parts {\n"
                            "  label i 12 label j 40 label k 6 label b 2 label h 3\n"
                            "  tensor X input 0 [12, 40]\n"
                            "  tensor W weight 0 [6, 40]\n"
                            "  tensor T table [3] {1, 1/2, 1/3}\n"
                            "  tensor A device [12, 40] before [1, 0] after [1, 0]\n"
                            "  tensor S device [12, 40]\n"
                            "  tensor Y output 0 [12, 40]\n"
                            "  tensor Z output 1 [12, 6]\n"
                            "  step \"copy\" { grid i by 4 { A[i, j] = X[i, j] } }\n"
                            "  step \"sums\" {\n"
                            "    grid i by 4 {\n"
                            "      grid j by 16 {\n"
                            "        register P [12, 40]\n"
                            "        P[i, j] += A[i+h-1, j] * T[h] fresh tile i*2 j*1 order h\n"
                            "        S[i, j] = max(P[i, j], 0) fused\n"
                            "        Y[i, j] = S[i, j] * 2 fused\n"
                            "      }\n"
                            "    }\n"
                            "  }\n"
                            "  step \"rows\" {\n"
                            "    grid i by 3 {\n"
                            "      shared R [12, 6]\n"
                            "      for j by 8 {\n"
                            "        shared Q [12, 40]\n"
                            "        Q[i, j] = exp(S[i, j])\n"
                            "        R[i, k] += Q[i, j] * W[k, j] fresh\n"
                            "      }\n"
                            "      Z[i, k] = R[i, k]\n"
                            "    }\n"
                            "  }\n"
                            "}\n";

typedef struct planted {
    const char *base; /* NULL: parts */
    const char *from, *to, *want;
} planted;

static const planted errors[] = {
    /* labels and loops */
    {NULL, "for j by 8 {\n        shared Q [12, 40]\n        Q", "for i by 1 { shared Q [12, 40] Q",
     "bound by two loops"},
    {NULL, "grid j by 16", "grid i by 16", "bound by two loops"},
    {NULL, "for j by 8", "grid j by 8", "does not stand alone"},
    {NULL, "grid i by 4 {\n      grid j by 16", "for i by 4 {\n      grid j by 16",
     "inside a loop that is none"},
    {NULL, "grid i by 4 { A[i, j] = X[i, j] }",
     "grid i by 4 { A[i, j] = X[i, j] } A[i, j] = X[i, j]", "does not stand alone"},
    {NULL, "grid i by 4 { A[i, j] = X[i, j] }", "", "empty"},
    {NULL, "grid i by 4 { A[i, j] = X[i, j] }", "grid i by 4 { }", "empty"},
    {NULL, "grid i by 4 { A[i, j] = X[i, j] }",
     "grid i by 4 { grid j by 4 { grid k by 1 { grid b by 1 { A[i, j] = X[i, j] } } } }",
     "more than 3 grid loops"},
    /* tensors */
    {NULL, "Z output 1", "Z output 2", "number 2 of 2"},
    {NULL, "Z output 1", "Z output 0", "number 0 of another"},
    {NULL, "X input 0 [12, 40]", "X input 0 [12, 40] after [0, 1]", "has a ring"},
    {NULL, "X input 0 [12, 40]", "X input 0 [12, 40] stride [64, 1]", "must be dense"},
    {NULL, "S device [12, 40]", "S device [12, 40] stride [39, 1]", "overlap"},
    {NULL, "S device [12, 40]", "S device [12, 40] stride [0, 1]", "overlap"},
    {NULL, "S device [12, 40]", "S device [12, 40] fill 1", "neither 0 nor -infinity"},
    {NULL, "T table [3] {1, 1/2, 1/3}", "T table [3]  after [1] {1, 1/2, 1/3}", "has a ring"},
    {NULL, "S device [12, 40]", "S device [1099511627776, 40]", "dim 40 on axis 1"},
    {NULL, "shared R [12, 6]", "shared R [12, 6] before [1, 0]", "of which a chunk is held"},
    /* accesses */
    {NULL, "X[i, j]", "X[9000000000000*i, j]", "is read from"},
    {NULL, "X[i, j]", "X[i-9000000000000, j]", "is read from"},
    /* expressions and combinations */
    {NULL, "A[i, j] = X[i, j]", "X[i, j] = X[i, j]", "cannot be written"},
    {NULL, "A[i, j] = X[i, j]", "W[k, j] = X[i, j]", "cannot be written"},
    {NULL, "A[i, j] = X[i, j]", "T[h] = X[i, j]", "cannot be written"},
    {NULL, "Z[i, k] = R[i, k]", "Z[i, k] = R[i, k] + X[i, j]", "not in what is written"},
    {NULL, "A[i, j] = X[i, j]", "A[i, j] = X[i, j] fresh", "needs no fresh start"},
    {NULL, "Z[i, k] = R[i, k]", "Z[i, k] = R[i, k] Z[i+h, k] = R[i, k] * T[h]", "more than once"},
    {NULL, "Z[i, k] = R[i, k]", "Z[i, k] = R[i, k] Z[i, k] = Z[i, k-1]", "other elements"},
    {NULL, "Z[i, k] = R[i, k]", "Z[i, k] = R[i, k] Z[i, k] += Z[i, k] * X[i, j]",
     "being added up is read"},
    {NULL, "Z[i, k] = R[i, k]", "Z[i, k] = R[i, k] Z[i, k] += Z[i, k] fresh",
     "being added up is read"},
    /* tiles */
    {NULL, "tile i*2 j*1 order h", "tile i*2 k*1", "a tile of 1 vectors along 'k'"},
    {NULL, "tile i*2 j*1 order h", "tile h*2 j*1", "a tile of 2 rows along 'h'"},
    {NULL, "tile i*2 j*1 order h", "tile j*2 j*1", "one label"},
    {NULL, "tile i*2 j*1 order h", "tile i*0 j*1", "a tile of 0 rows"},
    {NULL, "tile i*2 j*1 order h", "tile i*2 j*65", "a tile of 65 vectors"},
    {NULL, "tile i*2 j*1 order h", "tile i*2 j*1 order i h", "cannot stand in the order"},
    {NULL, "tile i*2 j*1 order h", "tile i*2 j*1 order h h", "cannot stand in the order"},
    {NULL, "tile i*2 j*1 order h", "tile i*2 j*1 order k h", "cannot stand in the order"},
    {NULL, "tile i*2 j*1 order h", "tile j*1 order h", "the order has 1 labels of 2"},
    {NULL, "tile i*2 j*1 order h", "tile j*1 order h i", "after what is reduced"},
    {"winograd", "tx, a, b, c] fresh\n        Y", "tx, a, b, c] fresh tile a*1 b*1\n        Y",
     "a tile inside a lanes loop"},
    /* rings */
    {NULL, "before [1, 0] after [1, 0]", "", "does not serve"},
    {NULL, "before [1, 0] after [1, 0]", "before [1, 0]", "does not serve"},
    {NULL, "before [1, 0] after [1, 0]", "after [1, 0]", "does not serve"},
    {NULL, "before [1, 0] after [1, 0]", "before [1, 0] after [1, 0] fill -inf", "does not serve"},
    {NULL, "A[i+h-1, j] * T[h]", "(A[i+h-1, j] + T[h])", "does not serve"},
    {NULL, "A[i+h-1, j] * T[h]", "exp(A[i+h-1, j])", "does not serve"},
    {NULL, "A[i+h-1, j] * T[h]", "T[h] / A[i+h-1, j]", "does not serve"},
    {NULL, "P[i, j] += A[i+h-1, j]", "P[i, j] max= A[i+h-1, j]", "does not serve"},
    {NULL, "A[i+h-1, j]", "A[i+h, j]", "does not serve"},
    {NULL, "A[i+h-1, j]", "X[i+h-1, j]", "does not serve"},
    {NULL, "A[i+h-1, j]", "A[i, j+h-1]", "does not serve"},
    {"pool", "fill -inf", "", "does not serve"},
    {"pool", "c] fresh tile", "c] * 2 fresh tile", NULL}, /* twice -infinity serves */
    {"conv", "after [1, 2, 0]", "after [1, 1, 0]", "does not serve"},
    /* The tail of a vector goes over the ring, which then holds no fill. */
    {NULL, "before [1, 0] after [1, 0]\n", "before [0, 1] after [0, 1]\n", "does not serve"},
    /* scopes */
    {NULL, "Z[i, k] = R[i, k]", "Z[i, k] = R[i, k] + P[i, k]",
     "outside the loop in which it lives"},
    {NULL, "Z[i, k] = R[i, k]", "Z[i, k] += Q[i, j] * W[k, j] fresh", "outside the loop"},
    {NULL, "Q[i, j] * W", "Q[i+j, j] * W", "holds a chunk along 'j', and is used by"},
    {NULL, "Q[i, j] * W", "Q[2*i, j] * W", "and is used by 2*i and by 1*i"},
    {NULL, "step \"copy\" {", "step \"copy\" { shared H [4] H[h] = T[h]", "does not stand alone"},
    {NULL, "  step \"rows\"",
     "  step \"one\" { shared H [3] H[h] = T[h] } step \"two\" { S[h, h] = H[h] } step \"rows\"",
     "is used in two steps"},
    {NULL, "shared R [12, 6]", "register R [12, 6]", "outside the statements fused"},
    {NULL, "Y[i, j] = S[i, j] * 2 fused", "Y[i, j] = P[i, j] * 2", "outside the statements fused"},
    /* fused statements */
    {NULL, "A[i, j] = X[i, j] } }", "A[i, j] = X[i, j] fused } }", "no statement stands before"},
    {NULL, "Y[i, j] = S[i, j] * 2 fused", "Y[i, j] = A[i, j] * 2 fused", "does not read what"},
    {NULL, "Y[i, j] = S[i, j] * 2 fused", "Y[i, j] = S[i, j] * 2 tile i*2 j*1 fused",
     "with a tile of its own"},
    {NULL, "Y[i, j] = S[i, j] * 2 fused", "Y[i, j] += S[i, j] * T[h] fresh fused", "reduces 'h'"},
    {NULL, "Y[i, j] = S[i, j] * 2 fused", "Y[i, j+h] += S[i, j] * T[h] fresh fused",
     "its labels are not"},
    {NULL, "Z[i, k] = R[i, k]", "Z[i, k] = R[i, k] fused", "no statement stands before"},
    /* parallel chunks */
    {NULL, "grid i by 4 { A[i, j] = X[i, j] }", "grid i by 4 { A[j, j] += X[i, j] fresh }",
     "write the same elements of 'A'"},
    {NULL, "grid i by 4 { A[i, j] = X[i, j] }", "grid h by 1 { A[i, j] += X[i, j] * T[h] fresh }",
     "write the same elements of 'A'"},
    {NULL, "Y[i, j] = S[i, j] * 2 fused", "Y[h, j] += S[i, j] * T[h] fresh",
     "write the same elements of 'Y'"},
    {NULL, "Y[i, j] = S[i, j] * 2 fused", "Y[i, j] = S[i-1, j] * 2",
     "may read elements of 'S' that another writes"},
    {NULL, "Y[i, j] = S[i, j] * 2 fused", "Y[i, j] += S[i, k] * W[k, j] fresh",
     "may read elements of 'S' that another writes"},
    {"transposed", "grid k by 1 { for c by 2 {", "for c by 2 { lanes x {",
     "write the same elements of 'Y'"},
    {"winograd", "Y[k, 2*ty+i, 2*tx+j]", "Y[k, 2*ty+r, 2*tx+j]", "write the same elements of 'Y'"},
    {"winograd", "U[a, b, c, k] * V", "U[a, b, c, a] * V", NULL},
    {"winograd", "lanes k { U[a, b, c, k]", "lanes c { U[a, b, c, k]", NULL},
    {"winograd", "lanes k { U[a, b, c, k]", "lanes r { U[a, b, c, k]", "write the same elements"},
    {"winograd", "M[ty, tx, a, b, k] += U[a, b, c, k] * V",
     "M[ty, tx, a, b, u+k] += U[a, b, c, k] * V", "write the same elements of 'M'"},
    {"winograd", "A[j, b] * M[ty, tx, a, b, k] fresh", "A[j, b] * M[ty, tx, a, b, k+1] fresh",
     "may read elements of 'M'"},
    {"winograd", "M[ty, tx, a, b, k] += U[a, b, c, k] * V",
     "M[ty, tx, a, b, 0] += U[a, b, c, k] * V", "holds a chunk along 'k'"},
    {"winograd", "M[ty, tx, a, b, k] += U[a, b, c, k] * V", "M[ty, tx, a, b, 0] += V",
     "holds a chunk along 'k'"},
    {"winograd", "M[ty, tx, a, b, k] += U[a, b, c, k] * V",
     "register Z [4] Z[a] += U[a, b, c, k] fresh M[ty, tx, a, b, k] += Z[a] * U[a, b, c, k] * V",
     "from lane to lane of 'k' comes together in 'Z'"},
    {"winograd", "M[ty, tx, a, b, k] += U[a, b, c, k] * V",
     "register Z [4] Z[a] += B[a, b] fresh M[ty, tx, a, b, k] += Z[a] * U[a, b, c, k] * V", NULL},
    /* Digits of one axis: right in either order, and not where they overlap. */
    {NULL, "grid i by 4 { A[i, j] = X[i, j] }",
     "grid b by 1 { grid k by 1 { A[6*b+k, j] = X[6*b+k, j] } }", NULL},
    {NULL, "grid i by 4 { A[i, j] = X[i, j] }",
     "grid k by 1 { grid b by 1 { A[6*b+k, j] = X[6*b+k, j] } }", NULL},
    {NULL, "grid i by 4 { A[i, j] = X[i, j] }",
     "grid k by 1 { grid b by 1 { A[b+2*k, j] = X[b+2*k, j] } }", NULL},
    {NULL, "grid i by 4 { A[i, j] = X[i, j] }", "grid k by 1 { A[5*b+k, j] += X[6*b+k, j] fresh }",
     "write the same elements of 'A'"},
    {NULL, "grid i by 4 { A[i, j] = X[i, j] }", "grid b by 1 { A[5*b+k, j] += X[6*b+k, j] fresh }",
     "write the same elements of 'A'"},
    {NULL, "grid i by 4 { A[i, j] = X[i, j] }",
     "grid k by 1 { A[6*b+k, j] += X[6*b+k, j] fresh A[6*b+k, j] = A[6*b+k, j] * 2 }", NULL},
    /* accumulators */
    {NULL, "shared R [12, 6]\n      for j by 8 {", "for j by 8 { shared R [12, 6]",
     "outside the loop"},
    {"two_levels", "shared P [23]\n        for k by 4 {", "for k by 4 { shared P [23]",
     "outside the loop"},
    {"two_levels",
     "for k by 4 {\n          P[8*b+i] += A[8*b+i, k] * v[k] fresh\n        }\n        O[8*b+i] = "
     "P[8*b+i]",
     "for k by 4 { shared R [23] R[8*b+i] += A[8*b+i, k] * v[k] fresh P[8*b+i] = R[8*b+i] } "
     "O[8*b+i] = P[8*b+i]",
     "does not outlive the loop over 'k'"},
    {"transposed", "for c by 2", "for x by 2", "undoes another's"},
    /* reads before writes */
    {NULL, "step \"copy\" { grid i by 4 { A[i, j] = X[i, j] } }", "", "no statement before writes"},
    {NULL, "Q[i, j] * W[k, j] fresh", "Q[i, j] * W[k, j]", "no statement before writes"},
    {NULL, "Q[i, j] = exp(S[i, j])", "Q[i, j] = exp(Y[i, j]) + Z[i, j]", "'Z' is read"},
    {"attention", "m[i] = -inf", "old[i] = 0", "there is no tensor"},
    {"attention", "      l[i] = 0\n", "", "'l' is read"},
    /* outputs */
    {NULL, "Z[i, k] = R[i, k]", "R[i, k] = R[i, k]", "output 'Z' is never written"},
    {NULL, "Z output 1 [12, 6]", "Z output 1 [12, 7]", "output 'Z' is never written"},
    {NULL, "Z output 1 [12, 6]", "Z output 1 [13, 6]", "output 'Z' is never written"},
    {NULL, "Z[i, k] = R[i, k]", "Z[i, k+1] = R[i, k]", "element 0 of output 'Z'"},
    {NULL, "Z[i, k] = R[i, k]", "Z[2*i, k] = R[i, k]", "element 6 of output 'Z'"},
    {NULL, "Z[i, k] = R[i, k]", "Z[i, k] = R[i, k-1]", "element 0 of output 'Z'"},
    {"winograd", "label ty 4", "label ty 3", "element 42 of output 'Y'"},
    {"two_levels", "label b 3", "label b 2", "element 16 of output 'O'"},
};

static const char *changed(po_arena *arena, const char *base, const char *from, const char *to) {
    const char *at = strstr(base, from);
    if (!at)
        fail_msg("no '%s' in the text", from);
    return po_arena_printf(arena, "%.*s%s%s", (int)(at - base), base, to, at + strlen(from));
}

static void right_ones(void **state) {
    (void)state;
    po_ctx ctx;
    po_ctx_init(&ctx);
    for (uint32_t i = 0; i <= n_test_mu_cases; i++) {
        po_arena *arena = po_arena_create(&ctx);
        po_mu *mu;
        if (po_mu_parse(&ctx, arena, i ? test_mu_cases[i - 1].text : parts, &mu) != PO_OK ||
            po_mu_check(&ctx, mu, shared_limit) != PO_OK)
            fail_msg("%s", ctx.error.message);
        po_arena_free(arena);
    }
}

static void planted_errors(void **state) {
    (void)state;
    po_ctx ctx;
    po_ctx_init(&ctx);
    int wrong = 0;
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++) {
        const planted *p = &errors[i];
        po_arena *arena = po_arena_create(&ctx);
        const char *text =
            changed(arena, p->base ? test_mu_case_of(p->base)->text : parts, p->from, p->to);
        po_mu *mu;
        po_status status = po_mu_parse(&ctx, arena, text, &mu);
        if (status == PO_OK)
            status = po_mu_check(&ctx, mu, shared_limit);
        bool right = p->want ? status == PO_BAD_INPUT && strstr(ctx.error.message, p->want)
                             : status == PO_OK;
        if (!right)
            fprintf(stderr, "'%s' for '%s': %s\n", p->to, p->from,
                    status == PO_OK ? "taken" : ctx.error.message);
        wrong += !right;
        po_ctx_clear(&ctx);
        po_arena_free(arena);
    }
    assert_int_equal(wrong, 0);
}

static void shared_bytes(void **state) {
    (void)state;
    po_ctx ctx;
    po_ctx_init(&ctx);
    po_arena *arena = po_arena_create(&ctx);
    po_mu *mu;
    po_mu_cost cost;
    assert_int_equal(po_mu_parse(&ctx, arena, parts, &mu), PO_OK);
    po_mu_cost_of(mu, &cost);
    /* R holds 3 x 6, Q 3 x 8; A with its ring, and S. */
    assert_int_equal(cost.shared, 4 * (3 * 6 + 3 * 8));
    assert_int_equal(cost.device, 4 * (14 * 40 + 12 * 40));
    assert_int_equal(po_mu_check(&ctx, mu, cost.shared), PO_OK);
    assert_int_equal(po_mu_check(&ctx, mu, cost.shared - 1), PO_BAD_INPUT);
    assert_non_null(strstr(ctx.error.message, "step 'rows': shared tensors take 168 bytes"));
    po_arena_free(arena);
}

static void cost_is(const char *text, double flops, double bytes) {
    po_ctx ctx;
    po_ctx_init(&ctx);
    po_arena *arena = po_arena_create(&ctx);
    po_mu *mu;
    po_mu_cost c;
    assert_int_equal(po_mu_parse(&ctx, arena, text, &mu), PO_OK);
    po_mu_cost_of(mu, &c);
    assert_true(c.flops == flops);
    assert_true(c.bytes == bytes);
    assert_int_equal(c.shared, 0);
    assert_int_equal(c.device, 0);
    po_arena_free(arena);
}

static void cost(void **state) {
    (void)state;
    cost_is("mugraph m { label i 4 label j 8 label k 16\n"
            "  tensor A input 0 [4, 16] tensor B weight 0 [16, 8]\n"
            "  tensor Y output 0 [4, 8]\n"
            "  step \"s\" { for k by 5 { Y[i, j] += A[i, k] * B[k, j] fresh } } }",
            2.0 * 4 * 8 * 16, 4.0 * (4 * 16 + 16 * 8 + 4 * 8));
    /* Both rows of a tile use the same sums of B and C. */
    cost_is("mugraph m { label i 4 label j 16 label k 16\n"
            "  tensor A input 0 [4, 16] tensor B weight 0 [16, 16] tensor C weight 1 [16, 16]\n"
            "  tensor Y output 0 [4, 16]\n"
            "  step \"s\" { Y[i, j] += A[i, k] * (B[k, j] + C[k, j]) fresh tile i*2 j*1 } }",
            2.5 * 4 * 16 * 16, 4.0 * (4 * 16 + 2 * 16 * 16 + 4 * 16));
}

/* --- what text cannot say --- */

static uint32_t statement_of(const po_mu *mu, uint32_t number) {
    uint32_t n = PO_NONE;
    do
        n = po_mu_next(mu, n);
    while (mu->nodes[n].kind != PO_MU_STATEMENT || number--);
    return n;
}

static void no_operand(po_mu *mu) {
    ((po_mu_item *)(uintptr_t)mu->nodes[statement_of(mu, 0)].statement.items)[0].a = 1;
}
static void unused_operand(po_mu *mu) {
    uint32_t n = statement_of(mu, 0);
    po_mu_operand(mu, n, mu->nodes[n].statement.in[0]);
}
static void unused_item(po_mu *mu) {
    uint32_t n = statement_of(mu, 0);
    po_mu_constant(mu, n, 1);
    po_mu_item_of(mu, n, PO_MU_EXP, 0, 0, 0);
}
static void forward_item(po_mu *mu) {
    po_mu_item_of(mu, statement_of(mu, 0), PO_MU_PLUS, 0, 1, 0);
}
static void no_items(po_mu *mu) {
    mu->nodes[statement_of(mu, 0)].statement.n_items = 0;
}
static void not_a_number(po_mu *mu) {
    uint32_t n = statement_of(mu, 0);
    po_mu_constant(mu, n, NAN);
    po_mu_item_of(mu, n, PO_MU_PLUS, 0, 1, 0);
}
static void no_out(po_mu *mu) {
    mu->nodes[statement_of(mu, 0)].statement.out.tensor = PO_NONE;
}
static void no_label(po_mu *mu) {
    ((po_mu_term *)(uintptr_t)mu->nodes[statement_of(mu, 0)].statement.out.axes[0].terms)->label =
        99;
}
static void zero_coef(po_mu *mu) {
    ((po_mu_term *)(uintptr_t)mu->nodes[statement_of(mu, 0)].statement.out.axes[0].terms)->coef = 0;
}
static void two_names(po_mu *mu) {
    mu->labels[1].name = mu->labels[0].name;
}
static void bad_name(po_mu *mu) {
    mu->labels[1].name = "Upper";
}
static void two_tensors(po_mu *mu) {
    mu->tensors[1].name = mu->tensors[0].name;
}
static void no_extent(po_mu *mu) {
    mu->labels[0].extent = 0;
}
static void high_rank(po_mu *mu) {
    mu->tensors[0].rank = 9;
}
static void no_table(po_mu *mu) {
    mu->tensors[2].table = NULL;
}
static void bad_fraction(po_mu *mu) {
    ((po_rational *)(uintptr_t)mu->tensors[2].table)[1].den = 0;
}
static void table_elsewhere(po_mu *mu) {
    mu->tensors[0].table = mu->tensors[2].table;
}
static void scope_elsewhere(po_mu *mu) {
    mu->tensors[0].scope = 1;
}
static void scope_statement(po_mu *mu) {
    mu->tensors[7].scope = statement_of(mu, 0);
}
static void not_laid_out(po_mu *mu) {
    mu->tensors[3].before[0] = 2;
}
static void wrong_origin(po_mu *mu) {
    mu->tensors[3].origin = 0;
}
static void cycle(po_mu *mu) {
    mu->nodes[statement_of(mu, 0)].next = statement_of(mu, 0);
}
static void child_of_statement(po_mu *mu) {
    po_mu_add_statement(mu, statement_of(mu, 0), PO_MU_SET);
}
static void loop_at_top(po_mu *mu) {
    po_mu_add_loop(mu, PO_NONE, PO_MU_FOR, 0, 1);
}
static void step_inside(po_mu *mu) {
    mu->nodes[statement_of(mu, 0)].kind = PO_MU_STEP;
}
static void lost_node(po_mu *mu) {
    mu->nodes[mu->first].next = mu->nodes[mu->nodes[mu->first].next].next;
}
static void no_chunk(po_mu *mu) {
    mu->nodes[mu->nodes[mu->first].first].chunk = 0;
}
static void lanes_chunk(po_mu *mu) {
    mu->nodes[mu->nodes[mu->first].first].loop = PO_MU_LANES;
}
static void rank_mismatch(po_mu *mu) { /* a tensor gets an axis that its accesses do not have */
    mu->tensors[3].dims[1] = 20;
    po_mu_layout(mu, 3, 1, 0);
}
static void negative_ring(po_mu *mu) {
    mu->tensors[3].before[0] = -1;
    po_mu_layout(mu, 3, 1, 0);
}

static void built_wrong(void **state) {
    (void)state;
    static const struct {
        void (*change)(po_mu *mu);
        const char *want;
    } cases[] = {
        {no_operand, "operand 1 of 1"},
        {unused_operand, "operand 1, of 'X', is not used"},
        {unused_item, "part 1 of the expression is not used"},
        {forward_item, "part 1 of the expression uses part 1"},
        {no_items, "an expression of 0 parts"},
        {not_a_number, "not a number"},
        {no_out, "an access of no tensor"},
        {no_label, "a malformed index"},
        {zero_coef, "a malformed index"},
        {two_names, "two labels 'i'"},
        {bad_name, "cannot be called 'Upper'"},
        {two_tensors, "two tensors 'X'"},
        {no_extent, "extent 0"},
        {high_rank, "more than 8"},
        {no_table, "has no fractions"},
        {bad_fraction, "holds 1/0"},
        {table_elsewhere, "is no table"},
        {scope_elsewhere, "neither shared nor register"},
        {scope_statement, "is no loop"},
        {not_laid_out, "was not laid out"},
        {wrong_origin, "was not laid out"},
        {cycle, "malformed"},
        {child_of_statement, "kind cannot"},
        {loop_at_top, "kind cannot"},
        {step_inside, "kind cannot"},
        {lost_node, "not in the tree"},
        {no_chunk, "chunks of 0"},
        {lanes_chunk, "chunks of 4"},
        {rank_mismatch, "does not serve"},
        {negative_ring, "a ring of -1"},
    };
    po_ctx ctx;
    po_ctx_init(&ctx);
    int wrong = 0;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        po_arena *arena = po_arena_create(&ctx);
        po_mu *mu;
        assert_int_equal(po_mu_parse(&ctx, arena, parts, &mu), PO_OK);
        cases[i].change(mu);
        po_status status = po_mu_check(&ctx, mu, shared_limit);
        bool right = status == PO_BAD_INPUT && strstr(ctx.error.message, cases[i].want);
        if (!right)
            fprintf(stderr, "'%s': %s\n", cases[i].want,
                    status == PO_OK ? "taken" : ctx.error.message);
        wrong += !right;
        po_ctx_clear(&ctx);
        po_arena_free(arena);
    }
    assert_int_equal(wrong, 0);
}

/* --- edges --- */

static void edges(void **state) {
    (void)state;
    static const struct {
        const char *statement;
        po_mu_edge edge; /* of operand 0 */
    } cases[] = {
        {"Y[i] += Z[i+h-1] * T[h] fresh", PO_MU_RING},
        {"Y[i] += -Z[i+h-1] * 3 * exp(T[h]) fresh", PO_MU_RING},
        {"Y[i] += Z[i+h-1] / T[h] fresh", PO_MU_RING},
        {"Y[i] += tanh(Z[i+h-1]) * T[h] fresh", PO_MU_RING},
        {"Y[i] += abs(Z[i+h-1]) fresh", PO_MU_RING},
        {"Y[i] += exp(Z[i+h-1]) fresh", PO_MU_GUARD},
        {"Y[i] += Z[i+h-1] + T[h] fresh", PO_MU_GUARD},
        {"Y[i] max= Z[i+h-1] fresh", PO_MU_GUARD},
        {"Y[i] = Z[i+1]", PO_MU_GUARD},
        {"Y[i] += Z[i+h-2] * T[h] fresh", PO_MU_GUARD},
        {"Y[i] += Z[i+h] * T[h] fresh", PO_MU_GUARD},
        {"Y[i] += Z[i] fresh", PO_MU_WITHIN},
        {"Y[i] max= M[i+h-1] fresh", PO_MU_RING},
        {"Y[i] max= M[i+h-1] - T[h] fresh", PO_MU_RING},
        {"Y[i] += exp(M[i+h-1] - T[h]) fresh", PO_MU_RING},
        {"Y[i] += M[i+h-1] * T[h] fresh", PO_MU_GUARD},
        {"Y[i] max= M[i+h-1] * T[h] fresh", PO_MU_GUARD},
        {"Y[i] max= T[h] - M[i+h-1] fresh", PO_MU_GUARD},
    };
    po_ctx ctx;
    po_ctx_init(&ctx);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        po_arena *arena = po_arena_create(&ctx);
        const char *text =
            po_arena_printf(arena,
                            "mugraph m { label i 16 label h 3 tensor T table [3] {1, 2, 3}\n"
                            "tensor Z device [16] before [1] after [1]\n"
                            "tensor M device [16] before [1] after [1] fill -inf\n"
                            "tensor Y output 0 [16] step \"s\" { %s } }",
                            cases[i].statement);
        po_mu *mu;
        assert_int_equal(po_mu_parse(&ctx, arena, text, &mu), PO_OK);
        const po_mu_statement *s = &mu->nodes[1].statement;
        uint32_t operand = 0;
        while (mu->tensors[s->in[operand].tensor].place != PO_MU_DEVICE)
            operand++;
        if (po_mu_edge_of(mu, 1, operand) != cases[i].edge)
            fail_msg("%s", cases[i].statement);
        po_arena_free(arena);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(right_ones),   cmocka_unit_test(planted_errors),
        cmocka_unit_test(shared_bytes), cmocka_unit_test(cost),
        cmocka_unit_test(built_wrong),  cmocka_unit_test(edges),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

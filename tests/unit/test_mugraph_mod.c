/* muGraphs over finite fields: forms that compute the same agree, others do not. */
#include "mu_cases.h"
#include "mugraph/field.h"
#include "unit.h"

#include <math.h>
#include <stdio.h>

/* --- arithmetic --- */

static void arithmetic(void **state) {
    (void)state;
    const po_mu_field fields[] = {PO_MU_FIELD_P, PO_MU_FIELD_Q};
    assert_true(PO_MU_P == 2 * PO_MU_Q + 1);
    for (int k = 0; k < 2; k++) {
        po_mu_field f = fields[k];
        const uint64_t corners[] = {0, 1, 2, f.modulus - 1, f.modulus - 2, f.modulus / 2};
        assert_true(f.modulus == (UINT64_C(1) << f.bits) - f.below);
        for (uint64_t i = 0; i < 10000; i++) {
            uint64_t a = i < 36 ? corners[i / 6] : po_random_u64(1, 0, i) % f.modulus;
            uint64_t b = i < 36 ? corners[i % 6] : po_random_u64(1, 1, i) % f.modulus;
            uint64_t want = (uint64_t)((unsigned __int128)a * b % f.modulus);
            assert_true(po_mu_field_mul(f, a, b) == want);
            assert_true(po_mu_field_sub(f, po_mu_field_add(f, a, b), b) == a);
            assert_true(po_mu_field_add(f, a, b) == (a + b) % f.modulus);
            if (i < 100 && a)
                assert_true(po_mu_field_mul(f, a, po_mu_field_inverse(f, a)) == 1);
        }
        assert_true(po_mu_field_i64(f, -5) == f.modulus - 5);
        assert_true(po_mu_field_i64(f, INT64_MIN) == f.modulus - (UINT64_C(1) << 63) % f.modulus);
        /* Fermat to several bases: the moduli are prime. */
        for (uint64_t base = 2; base < 40; base++)
            assert_true(po_mu_field_pow(f, base, f.modulus - 1) == 1);
    }
    po_mu_residue half = po_mu_residue_of(0.5), third = po_mu_residue_of(1e-300);
    assert_true(po_mu_field_add(PO_MU_FIELD_P, half.p, half.p) == 1);
    assert_true(po_mu_field_add(PO_MU_FIELD_Q, half.q, half.q) == 1);
    assert_true(third.p != 0 && po_mu_residue_of(0).p == 0);
    assert_true(po_mu_residue_of(-3).p == PO_MU_P - 3 && po_mu_residue_of(-3).q == PO_MU_Q - 3);
}

/* --- comparison --- */

enum { SAME, DIFFERENT, FAILED };

static po_status outputs_of(po_ctx *ctx, po_arena *arena, const po_mu *mu, uint64_t seed,
                            po_mu_residue **out) {
    const po_mu_residue **in[2];
    for (int w = 0; w < 2; w++) {
        in[w] = PO_NEW_N(arena, const po_mu_residue *, mu->n_tensors + 1);
        for (uint32_t n = 0; n < mu->n_tensors; n++) {
            int64_t count = test_mu_count(mu, w ? PO_MU_WEIGHT : PO_MU_INPUT, n);
            po_mu_residue *v = PO_NEW_N(arena, po_mu_residue, count + 1);
            for (int64_t i = 0; i < count; i++)
                v[i] = po_mu_residue_random(seed, (uint64_t)w * 100 + n, (uint64_t)i);
            in[w][n] = v;
        }
    }
    *out = PO_NEW_N(arena, po_mu_residue, test_mu_count(mu, PO_MU_OUTPUT, 0));
    return po_mu_eval_mod(ctx, mu, in[0], in[1], out, seed);
}

/* Two texts, the second changed: do they agree under two seeds? */
static int compare(po_ctx *ctx, const char *a, const char *b, const char *from, const char *to) {
    po_arena *arena = po_arena_create(ctx);
    po_mu *ma, *mb;
    int verdict = SAME;
    if (from) {
        const char *at = strstr(b, from);
        if (!at)
            fail_msg("no '%s' in the text", from);
        b = po_arena_printf(arena, "%.*s%s%s", (int)(at - b), b, to, at + strlen(from));
    }
    if (po_mu_parse(ctx, arena, a, &ma) != PO_OK)
        fail_msg("%s", ctx->error.message);
    if (po_mu_parse(ctx, arena, b, &mb) != PO_OK)
        fail_msg("%s (%s)", ctx->error.message, to);
    int64_t n = test_mu_count(ma, PO_MU_OUTPUT, 0);
    assert_int_equal(n, test_mu_count(mb, PO_MU_OUTPUT, 0));
    for (uint64_t seed = 1; seed <= 2 && verdict == SAME; seed++) {
        po_mu_residue *va, *vb;
        if (outputs_of(ctx, arena, ma, seed, &va) != PO_OK)
            fail_msg("%s", ctx->error.message);
        if (outputs_of(ctx, arena, mb, seed, &vb) != PO_OK)
            verdict = FAILED;
        for (int64_t i = 0; i < n && verdict == SAME; i++)
            verdict = po_mu_residue_equal(va[i], vb[i]) ? SAME : DIFFERENT;
    }
    po_arena_free(arena);
    return verdict;
}

/* --- pairs of forms --- */

static const char conv_plain[] =
    "mugraph conv { label y 7 label x 7 label c 3 label r 3 label s 3 label k 20\n"
    "  tensor X input 0 [3, 7, 7] tensor W weight 0 [20, 3, 3, 3] tensor Y output 0 [20, 7, 7]\n"
    "  step \"conv\" { Y[k, y, x] += X[c, y+r-1, x+s-1] * W[k, c, r, s] fresh } }";

static const char matmul_plain[] =
    "mugraph matmul { label m 7 label n 10 label k 11\n"
    "  tensor A input 0 [7, 11] tensor B weight 0 [11, 10] tensor bias weight 1 [10]\n"
    "  tensor P device [7, 10] tensor C output 0 [7, 10]\n"
    "  step \"matmul\" { P[m, n] += A[m, k] * B[k, n] fresh }\n"
    "  step \"bias\" { C[m, n] = max(P[m, n] + bias[n], 0) } }";

/* The mean of squares less the square of the mean. */
static const char layer_norm_moments[] =
    "mugraph layer_norm { label i 5 label c 24\n"
    "  tensor X input 0 [5, 24] tensor gamma weight 0 [24] tensor beta weight 1 [24]\n"
    "  tensor Y output 0 [5, 24]\n"
    "  tensor one device [5] tensor two device [5]\n"
    "  step \"norm\" {\n"
    "    one[i] += X[i, c] fresh two[i] += X[i, c] * X[i, c] fresh\n"
    "    Y[i, c] = (X[i, c] - one[i] / 24) / pow(two[i] / 24 - pow(one[i] / 24, 2) + 1e-05, 0.5) * "
    "gamma[c] + beta[c]\n"
    "  } }";

static const char rms_before[] =
    "mugraph rms { label i 4 label c 16 label k 6\n"
    "  tensor X input 0 [4, 16] tensor W weight 0 [16, 6] tensor Y output 0 [4, 6]\n"
    "  tensor v device [4] tensor N device [4, 16]\n"
    "  step \"rms\" { v[i] += X[i, c] * X[i, c] * 0.0625 fresh }\n"
    "  step \"norm\" { N[i, c] = X[i, c] / sqrt(v[i] + 1e-06) }\n"
    "  step \"linear\" { Y[i, k] += N[i, c] * W[c, k] fresh } }";

/* One pass over X, divided at the end. */
static const char rms_after[] =
    "mugraph rms { label i 4 label c 16 label k 6\n"
    "  tensor X input 0 [4, 16] tensor W weight 0 [16, 6] tensor Y output 0 [4, 6]\n"
    "  step \"all\" { grid i by 2 {\n"
    "    shared v [4] shared P [4, 6]\n"
    "    for c by 5 {\n"
    "      v[i] += X[i, c] * X[i, c] fresh\n"
    "      P[i, k] += X[i, c] * W[c, k] fresh\n"
    "    }\n"
    "    Y[i, k] = P[i, k] / sqrt(v[i] / 16 + 1e-06)\n"
    "  } } }";

static const char pool_plain[] =
    "mugraph pool { label y 4 label x 4 label r 3 label s 3 label c 5\n"
    "  tensor X input 0 [8, 7, 5] tensor R device [8, 7, 5] tensor Y output 0 [4, 4, 5]\n"
    "  label yi 8 label xi 7\n"
    "  step \"relu\" { R[yi, xi, c] = max(X[yi, xi, c], 0) }\n"
    "  step \"pool\" { Y[y, x, c] max= R[2*y+r-1, 2*x+s-1, c] fresh } }";

/* Columns, then rows, then Relu. */
static const char pool_by_axis[] =
    "mugraph pool { label y 4 label x 4 label r 3 label s 3 label c 5 label yi 8\n"
    "  tensor X input 0 [8, 7, 5] tensor C device [8, 4, 5] tensor Y output 0 [4, 4, 5]\n"
    "  step \"columns\" { C[yi, x, c] max= X[yi, 2*x+s-1, c] fresh }\n"
    "  step \"rows\" {\n"
    "    Y[y, x, c] max= C[2*y+r-1, x, c] fresh\n"
    "    Y[y, x, c] = max(Y[y, x, c], 0) } }";

/* The keys in two parts, each with its own maximum and sum, put together at the end. */
static const char attention_split[] =
    "mugraph attention { label i 6 label b 2 label j 10 label d 4 label e 3\n"
    "  tensor Q input 0 [6, 4] tensor K input 1 [20, 4] tensor V input 2 [20, 3]\n"
    "  tensor O output 0 [6, 3]\n"
    "  tensor m device [2, 6] tensor l device [2, 6] tensor a device [2, 6, 3]\n"
    "  tensor M device [6] tensor L device [6]\n"
    "  step \"parts\" { grid b by 1 {\n"
    "    shared s [6, 20]\n"
    "    s[i, 10*b+j] += Q[i, d] * K[10*b+j, d] * 0.5 fresh\n"
    "    m[b, i] max= s[i, 10*b+j] fresh\n"
    "    l[b, i] += exp(s[i, 10*b+j] - m[b, i]) fresh\n"
    "    a[b, i, e] += exp(s[i, 10*b+j] - m[b, i]) * V[10*b+j, e] fresh } }\n"
    "  step \"together\" {\n"
    "    M[i] max= m[b, i] fresh\n"
    "    L[i] += l[b, i] * exp(m[b, i] - M[i]) fresh\n"
    "    O[i, e] += a[b, i, e] * exp(m[b, i] - M[i]) / L[i] fresh } }";

static const char gated_plain[] =
    "mugraph gated { label i 3 label c 8 label k 5\n"
    "  tensor X input 0 [3, 8] tensor G weight 0 [8, 5] tensor U weight 1 [8, 5]\n"
    "  tensor g device [3, 5] tensor u device [3, 5] tensor Y output 0 [3, 5]\n"
    "  step \"g\" { g[i, k] += X[i, c] * G[c, k] fresh }\n"
    "  step \"u\" { u[i, k] += X[i, c] * U[c, k] fresh }\n"
    "  step \"y\" { Y[i, k] = g[i, k] * sigmoid(g[i, k]) * u[i, k] } }";

static const char gated_fused[] =
    "mugraph gated { label i 3 label c 8 label k 5\n"
    "  tensor X input 0 [3, 8] tensor G weight 0 [8, 5] tensor U weight 1 [8, 5]\n"
    "  tensor Y output 0 [3, 5]\n"
    "  step \"all\" { grid k by 2 {\n"
    "    shared g [3, 5] shared u [3, 5]\n"
    "    for c by 3 { g[i, k] += X[i, c] * G[c, k] fresh u[i, k] += X[i, c] * U[c, k] fresh }\n"
    "    Y[i, k] = u[i, k] * (sigmoid(g[i, k]) * g[i, k]) } } }";

/* Q and K divided by the root of their mean square; four rows of Q to one of K. */
static const char qk_norm[] =
    "mugraph qk_norm { label i 8 label g 2 label h 4 label j 6 label d 4 label b 2\n"
    "  tensor Q input 0 [8, 4] tensor K input 1 [2, 6, 4] tensor O output 0 [8, 6]\n"
    "  tensor vq device [8] tensor vk device [2, 6]\n"
    "  step \"q\" { vq[i] += Q[i, d] * Q[i, d] * 0.25 fresh }\n"
    "  step \"k\" { vk[b, j] += K[b, j, d] * K[b, j, d] * 0.25 fresh }\n"
    "  step \"o\" { O[4*g+h, j] += Q[4*g+h, d] / sqrt(vq[4*g+h]) * K[g, j, d] / sqrt(vk[g, j]) "
    "fresh } }";

/* The same, divided after the product. */
static const char qk_norm_after[] =
    "mugraph qk_norm { label g 2 label h 4 label j 6 label d 4\n"
    "  tensor Q input 0 [8, 4] tensor K input 1 [2, 6, 4] tensor O output 0 [8, 6]\n"
    "  step \"o\" { grid g by 1 {\n"
    "    shared vq [8] shared vk [2, 6] shared P [8, 6]\n"
    "    for d by 3 {\n"
    "      vq[4*g+h] += Q[4*g+h, d] * Q[4*g+h, d] fresh\n"
    "      vk[g, j] += K[g, j, d] * K[g, j, d] fresh\n"
    "      P[4*g+h, j] += Q[4*g+h, d] * K[g, j, d] fresh\n"
    "    }\n"
    "    O[4*g+h, j] = P[4*g+h, j] / sqrt(vq[4*g+h] / 4) / sqrt(vk[g, j] / 4) } } }";

/* The form that a search without axis labels takes for the same: sums of rows of Q times K. */
static const char qk_norm_wrong[] =
    "mugraph qk_norm { label g 2 label h 4 label j 6 label d 4\n"
    "  tensor Q input 0 [8, 4] tensor K input 1 [2, 6, 4] tensor O output 0 [8, 6]\n"
    "  step \"o\" { grid g by 1 {\n"
    "    shared vq [8] shared vk [2, 6] shared R [8]\n"
    "    vq[4*g+h] += Q[4*g+h, d] * Q[4*g+h, d] fresh\n"
    "    vk[g, j] += K[g, j, d] * K[g, j, d] fresh\n"
    "    R[4*g+h] += Q[4*g+h, d] fresh\n"
    "    O[4*g+h, j] = R[4*g+h] / sqrt(vq[4*g+h] / 4) * K[g, j, 0] / sqrt(vk[g, j] / 4) } } }";

typedef struct pairing {
    const char *name, *a, *b;
} pairing;

static const char *text_of(const char *text) { /* that of a case, or itself */
    return strncmp(text, "mugraph", 7) == 0 ? text : test_mu_case_of(text)->text;
}

static const pairing same[] = {
    {"attention", "softmax", "attention"},
    {"split attention", "softmax", attention_split},
    {"matmul", matmul_plain, "matmul"},
    {"Winograd", conv_plain, "winograd"},
    {"layer norm by moments", "layer_norm", layer_norm_moments},
    {"norm after linear", rms_before, rms_after},
    {"pool by axis", pool_plain, pool_by_axis},
    {"pool with tests", "pool", "pool_guarded"},
    {"gated", gated_plain, gated_fused},
    {"QK norm", qk_norm, qk_norm_after},
};

static void equal_forms(void **state) {
    (void)state;
    po_ctx ctx;
    po_ctx_init(&ctx);
    for (size_t i = 0; i < sizeof same / sizeof *same; i++)
        if (compare(&ctx, text_of(same[i].a), text_of(same[i].b), NULL, NULL) != SAME)
            fail_msg("%s: not the same (%s)", same[i].name, ctx.error.message);
}

/* --- planted errors --- */

typedef struct planted {
    const char *what, *a, *b, *from, *to;
} planted;

static const planted errors[] = {
    /* attention with a running maximum */
    {"sum not rescaled", "softmax", "attention", "l[i] = l[i] * f[i]", "l[i] = l[i]"},
    {"result not rescaled", "softmax", "attention", "acc[i, e] = acc[i, e] * f[i]",
     "acc[i, e] = acc[i, e]"},
    {"neither rescaled", "softmax", "attention",
     "l[i] = l[i] * f[i]\n        acc[i, e] = acc[i, e] * f[i]", ""},
    {"rescaled twice", "softmax", "attention", "l[i] = l[i] * f[i]",
     "l[i] = l[i] * f[i] l[i] = l[i] * f[i]"},
    {"rescaled the other way", "softmax", "attention", "exp(old[i] - m[i])", "exp(m[i] - old[i])"},
    {"old maximum taken after the new", "softmax", "attention",
     "old[i] = m[i]\n        m[i] max= s[i, j]", "m[i] max= s[i, j] old[i] = m[i]"},
    {"sum by the old maximum", "softmax", "attention", "l[i] += exp(s[i, j] - m[i])",
     "l[i] += exp(s[i, j] - old[i])"},
    {"result by the old maximum", "softmax", "attention", "exp(s[i, j] - m[i]) * V",
     "exp(s[i, j] - old[i]) * V"},
    {"result unshifted", "softmax", "attention", "exp(s[i, j] - m[i]) * V", "exp(s[i, j]) * V"},
    {"sum unshifted", "softmax", "attention", "l[i] += exp(s[i, j] - m[i])",
     "l[i] += exp(s[i, j])"},
    {"maximum put back", "softmax", "attention", "acc[i, e] / l[i]",
     "acc[i, e] * exp(m[i]) / l[i]"},
    {"sum before exp", "softmax", "attention", "acc[i, e] += exp(s[i, j] - m[i]) * V[j, e]",
     "l[i] = l[i] acc[i, e] += exp(s[i, j] * V[j, e] - m[i])"},
    {"scale left out", "softmax", "attention", "* 0.5 fresh", "fresh"},
    {"scale after exp", "softmax", "attention", "l[i] += exp(s[i, j] - m[i])",
     "l[i] += exp(s[i, j] - m[i]) * 0.5"},
    {"no division", "softmax", "attention", "acc[i, e] / l[i]", "acc[i, e]"},
    {"sum one more", "softmax", "attention", "l[i] += exp(s[i, j] - m[i])",
     "l[i] += exp(s[i, j] - m[i]) l[i] = l[i] + 1"},
    {"result starts anew", "softmax", "attention", "acc[i, e] = acc[i, e] * f[i]", "acc[i, e] = 0"},
    {"sum starts anew", "softmax", "attention", "l[i] = l[i] * f[i]", "l[i] = 0"},
    {"sum added twice", "softmax", "attention", "l[i] += exp(s[i, j] - m[i])",
     "l[i] += exp(s[i, j] - m[i]) l[i] += exp(s[i, j] - m[i])"},
    {"result added twice", "softmax", "attention", "      O[i, e] = acc",
     "      acc[i, e] = acc[i, e] + acc[i, e] O[i, e] = acc"},
    {"keys of another row", "softmax", "attention", "K[j, d] *", "K[-j+19, d] *"},
    {"values of another row", "softmax", "attention", "V[j, e]", "V[-j+19, e]"},
    {"division in each chunk", "softmax", "attention", "acc[i, e] += exp(s[i, j] - m[i]) * V[j, e]",
     "acc[i, e] += exp(s[i, j] - m[i]) / l[i] * V[j, e]"},
    {"exp of exp", "softmax", "attention", "exp(s[i, j] - m[i]) * V",
     "exp(exp(s[i, j] - m[i])) * V"},
    /* attention in parts */
    {"parts not rescaled", "softmax", attention_split, "a[b, i, e] * exp(m[b, i] - M[i])",
     "a[b, i, e]"},
    {"sums not rescaled", "softmax", attention_split, "l[b, i] * exp(m[b, i] - M[i])", "l[b, i]"},
    {"one part only", "softmax", attention_split, "L[i] += l[b, i]", "L[i] += l[0, i]"},
    {"a part counted twice", "softmax", attention_split, "a[b, i, e] * exp(m[b, i]",
     "a[0, i, e] * exp(m[b, i]"},
    {"average of the parts", "softmax", attention_split, "a[b, i, e] * exp(m[b, i] - M[i]) / L[i]",
     "a[b, i, e] / l[b, i] * 0.5"},
    /* norms */
    {"mean over the wrong count", "layer_norm", layer_norm_moments, "one[i] / 24)", "one[i] / 23)"},
    {"variance without the mean", "layer_norm", layer_norm_moments, " - pow(one[i] / 24, 2)", ""},
    {"the mean not squared", "layer_norm", layer_norm_moments, "pow(one[i] / 24, 2)",
     "one[i] / 24"},
    {"no root", "layer_norm", layer_norm_moments, "+ 1e-05, 0.5)", "+ 1e-05, 1)"},
    {"another epsilon", "layer_norm", layer_norm_moments, "1e-05", "1e-06"},
    {"epsilon outside of the root", "layer_norm", layer_norm_moments, "+ 1e-05, 0.5)",
     ", 0.5) / 1.00001"},
    {"beta scaled", "layer_norm", layer_norm_moments, "gamma[c] + beta[c]", "(gamma[c] + beta[c])"},
    {"gamma of another channel", "layer_norm", layer_norm_moments, "gamma[c]", "gamma[-c+23]"},
    {"square sums of other rows", rms_before, rms_after, "sqrt(v[i]", "sqrt(v[i] + X[i, 0]"},
    {"square sum of one chunk", rms_before, rms_after, "v[i] += X[i, c] * X[i, c] fresh",
     "v[i] = 0 v[i] += X[i, c] * X[i, c]"},
    {"the root divided too early", rms_before, rms_after, "P[i, k] += X[i, c] * W[c, k] fresh",
     "P[i, k] += X[i, c] * W[c, k] / sqrt(v[i] + 1) fresh"},
    {"root of the sum, not of the mean", rms_before, rms_after, "v[i] / 16", "v[i]"},
    {"square of the sum", rms_before, rms_after, "v[i] += X[i, c] * X[i, c] fresh",
     "v[i] += X[i, c] fresh"},
    {"fmap over the wrong axis", rms_before, rms_after, "W[c, k] fresh", "W[k, c] fresh"},
    /* QK norm: the sum over the head before the product, which saved graphs of others have */
    {"no contraction over the head", qk_norm, qk_norm_after,
     "P[4*g+h, j] += Q[4*g+h, d] * K[g, j, d] fresh",
     "P[4*g+h, j] += Q[4*g+h, d] * K[g, j, 1] fresh"},
    {"row sums multiplied", qk_norm, qk_norm_wrong, NULL, NULL},
    {"heads in the wrong order", qk_norm, qk_norm_after, "P[4*g+h, j] += Q[4*g+h, d]",
     "P[4*g+h, j] += Q[2*h+g, d]"},
    {"the norm of the wrong head", qk_norm, qk_norm_after, "sqrt(vq[4*g+h] / 4)",
     "sqrt(vq[4*g] / 4)"},
    {"K not normalised", qk_norm, qk_norm_after, " / sqrt(vk[g, j] / 4)", ""},
    {"K normalised twice", qk_norm, qk_norm_after, " / sqrt(vk[g, j] / 4)",
     " / sqrt(vk[g, j] / 4) / sqrt(vk[g, j] / 4)"},
    {"the root once for both", qk_norm, qk_norm_after, "sqrt(vq[4*g+h] / 4) / sqrt(vk[g, j] / 4)",
     "sqrt(vq[4*g+h] / 4 + vk[g, j] / 4)"},
    /* sums, starts, chunks */
    {"no start", matmul_plain, "matmul", "B[k, n] fresh", "B[k, n]"},
    {"Relu inside the sum", matmul_plain, "matmul", "A[m, k] * B[k, n] fresh",
     "max(A[m, k] * B[k, n], 0) fresh"},
    {"Relu before the bias", matmul_plain, "matmul", "max(P[m, n] + bias[n], 0)",
     "max(P[m, n], 0) + bias[n]"},
    {"bias in each chunk", matmul_plain, "matmul", "fresh tile m*2 n*1\n",
     "fresh P[m, n] = P[m, n] + bias[n]\n"},
    {"a shifted chunk", matmul_plain, "matmul", "A[m, k]", "A[m, k-1]"},
    {"maximum for sum", matmul_plain, "matmul", "P[m, n] +=", "P[m, n] max="},
    {"the greatest twice", pool_plain, pool_by_axis, "max(Y[y, x, c], 0)",
     "max(Y[y, x, c], 0) + max(Y[y, x, c], 0)"},
    {"a smaller window", pool_plain, pool_by_axis, "2*x+s-1", "2*x+0*s"},
    {"a shifted window", pool_plain, pool_by_axis, "2*y+r-1", "2*y+r"},
    {"sum for maximum", pool_plain, pool_by_axis, "C[yi, x, c] max=", "C[yi, x, c] +="},
    {"no Relu", pool_plain, pool_by_axis, "max(Y[y, x, c], 0)", "Y[y, x, c]"},
    {"least for greatest", pool_plain, pool_by_axis, "max(Y[y, x, c], 0)", "min(Y[y, x, c], 0)"},
    {"sigmoid of the other", gated_plain, gated_fused, "sigmoid(g[i, k])", "sigmoid(u[i, k])"},
    {"gate inside the sum", gated_plain, gated_fused, "u[i, k] += X[i, c] * U[c, k] fresh",
     "u[i, k] += X[i, c] * U[c, k] * sigmoid(X[i, c]) fresh"},
    {"gate by tanh", gated_plain, gated_fused, "sigmoid(g[i, k])", "tanh(g[i, k])"},
    /* Winograd */
    {"a digit of B", conv_plain, "winograd", "{1, 0, -1, 0,", "{1, 0, 1, 0,"},
    {"a digit of G", conv_plain, "winograd", "1/2, -1/2, 1/2", "1/2, 1/2, 1/2"},
    {"a digit of A", conv_plain, "winograd", "0, 1, -1, -1}", "0, 1, -1, 1}"},
    {"an inexact half", conv_plain, "winograd", "1/2, 1/2, 1/2, 1/2,",
     "1/2, 1/2, 1/2, 500001/1000000,"},
    {"B for its transpose", conv_plain, "winograd", "B[a, u] * B[b, v]", "B[u, a] * B[v, b]"},
    {"one axis twice", conv_plain, "winograd", "B[a, u] * B[b, v]", "B[a, u] * B[b, u]"},
};

static void planted_errors(void **state) {
    (void)state;
    po_ctx ctx;
    po_ctx_init(&ctx);
    int wrong = 0;
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++) {
        const planted *p = &errors[i];
        if (compare(&ctx, text_of(p->a), text_of(p->b), p->from, p->to) == SAME) {
            fprintf(stderr, "not seen: %s\n", p->what);
            wrong++;
        }
        po_ctx_clear(&ctx);
    }
    assert_int_equal(wrong, 0);
    assert_true(sizeof errors / sizeof *errors >= 60);
}

/* --- single identities --- */

/* Y = an expression of two inputs, compared with another. */
static int expressions(po_ctx *ctx, const char *a, const char *b) {
    static const char frame[] =
        "mugraph m { label i 40 tensor a input 0 [40] tensor b input 1 [40]\n"
        "  tensor Y output 0 [40] step \"s\" { Y[i] = %s } }";
    char ta[600], tb[600];
    snprintf(ta, sizeof ta, frame, a);
    snprintf(tb, sizeof tb, frame, b);
    return compare(ctx, ta, tb, NULL, NULL);
}

static void identities(void **state) {
    (void)state;
    static const struct {
        const char *a, *b;
        int verdict;
    } cases[] = {
        {"exp(a[i] + b[i])", "exp(a[i]) * exp(b[i])", SAME},
        {"exp(a[i] - b[i])", "exp(a[i]) / exp(b[i])", SAME},
        {"exp(a[i] * 2)", "pow(exp(a[i]), 2)", SAME},
        {"exp(-a[i]) * exp(a[i])", "1", SAME},
        {"exp(a[i]) + exp(b[i])", "exp(a[i] + b[i])", DIFFERENT},
        {"exp(a[i] * b[i])", "exp(a[i]) * exp(b[i])", DIFFERENT},
        {"exp(a[i])", "exp(b[i])", DIFFERENT},
        {"exp(a[i])", "1 + a[i]", DIFFERENT},
        {"a[i] / b[i] * b[i]", "a[i]", SAME},
        {"a[i] / (b[i] * 2)", "0.5 * a[i] / b[i]", SAME},
        {"sqrt(a[i] * a[i])", "a[i]", DIFFERENT},
        {"pow(a[i], 0.5)", "sqrt(a[i])", SAME},
        {"pow(a[i], -0.5)", "1 / sqrt(a[i])", SAME},
        {"pow(a[i], 3)", "a[i] * a[i] * a[i]", SAME},
        {"pow(a[i], -1)", "1 / a[i]", SAME},
        {"pow(a[i], 0)", "1", SAME},
        {"pow(a[i], b[i])", "pow(b[i], a[i])", DIFFERENT},
        {"pow(a[i], 2.5)", "a[i] * a[i]", DIFFERENT},
        {"abs(a[i])", "abs(-a[i])", SAME},
        {"abs(a[i])", "a[i]", DIFFERENT},
        {"max(a[i], b[i])", "max(b[i], a[i])", SAME},
        {"max(a[i], a[i])", "a[i]", SAME},
        {"max(max(a[i], b[i]), 0)", "max(a[i], max(0, max(b[i], a[i])))", SAME},
        {"min(a[i], b[i])", "-max(-a[i], -b[i])", SAME},
        {"max(a[i], b[i])", "a[i]", DIFFERENT},
        {"max(a[i], 0)", "a[i]", DIFFERENT},
        {"max(a[i], 0)", "0", DIFFERENT},
        {"max(a[i], -inf)", "a[i]", SAME},
        {"min(a[i], b[i])", "max(a[i], b[i])", DIFFERENT},
        {"exp(-inf + a[i])", "0", SAME},
        {"max(a[i], b[i]) - max(a[i], b[i]) + 1", "1", SAME},
        {"exp(a[i] - max(a[i], b[i])) * exp(max(a[i], b[i]))", "exp(a[i])", SAME},
        {"exp(a[i] - max(a[i], b[i])) * exp(max(a[i], 0))", "exp(a[i])", DIFFERENT},
        {"tanh(a[i])", "sigmoid(a[i])", DIFFERENT},
        {"erf(a[i] + b[i])", "erf(b[i] + a[i])", SAME},
        {"exp(tanh(a[i]) + tanh(b[i]))", "exp(tanh(a[i])) * exp(tanh(b[i]))", SAME},
        {"exp(exp(a[i]))", "exp(exp(a[i]) + 0)", SAME},
        {"exp(exp(a[i]) + b[i])", "exp(exp(a[i])) * exp(b[i])", DIFFERENT}, /* equal; not seen */
        {"less(a[i], b[i])", "less(b[i], a[i])", DIFFERENT},
        {"choose(a[i], b[i], 1)", "choose(a[i], 1, b[i])", DIFFERENT},
        {"floor(a[i])", "a[i]", DIFFERENT},
        {"log(exp(a[i]))", "a[i]", DIFFERENT}, /* equal; not seen */
        {"a[i]", "a[i] / 0", FAILED},
        {"a[i]", "a[i] / (b[i] - b[i])", FAILED},
        {"a[i]", "0 * -inf", FAILED},
        {"a[i]", "a[i] - -inf", FAILED},
        {"a[i]", "inf", FAILED},
    };
    po_ctx ctx;
    po_ctx_init(&ctx);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        if (expressions(&ctx, cases[i].a, cases[i].b) != cases[i].verdict)
            fail_msg("%s and %s", cases[i].a, cases[i].b);
        assert_int_equal(cases[i].verdict == FAILED, ctx.error.status == PO_UNSUPPORTED);
        po_ctx_clear(&ctx);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(arithmetic),
        cmocka_unit_test(equal_forms),
        cmocka_unit_test(planted_errors),
        cmocka_unit_test(identities),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

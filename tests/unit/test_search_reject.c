/* Programs with a planted error, all of the right shape where that can be: the search's own check
 * refuses every one, and takes the ones they were made from. */
#include "superopt/search/search.h"

#include "search_blocks.h"
#include "unit.h"

#include <stdio.h>

/* Fused programs for the blocks. */
static const struct {
    const char *block, *text;
} programs[] = {
    {"rmsnorm_linear",
     "mugraph c { label i 16 label k 64 label j 128\n"
     " tensor X input 0 [16, 64] tensor g weight 0 [64] tensor W weight 1 [64, 128]\n"
     " tensor O output 0 [16, 128]\n"
     " step \"all\" { grid j by 32 {\n"
     "  shared s [16] shared a [16, 128]\n"
     "  for k by 16 {\n"
     "   shared n [16, 64]\n"
     "   s[i] += X[i, k] * X[i, k] fresh\n"
     "   n[i, k] = X[i, k] * g[k]\n"
     "   a[i, j] += n[i, k] * W[k, j] fresh\n"
     "  }\n"
     "  O[i, j] = a[i, j] / sqrt(s[i] * 0.015625 + 0.000001)\n"
     " } } }"},
    {"gated_mlp",
     "mugraph c { label i 8 label k 64 label j 128\n"
     " tensor X input 0 [8, 64] tensor U weight 0 [64, 128] tensor V weight 1 [64, 128]\n"
     " tensor O output 0 [8, 128]\n"
     " step \"all\" { grid j by 32 {\n"
     "  shared u [8, 128] shared v [8, 128]\n"
     "  for k by 16 {\n"
     "   u[i, j] += X[i, k] * U[k, j] fresh\n"
     "   v[i, j] += X[i, k] * V[k, j] fresh\n"
     "  }\n"
     "  O[i, j] = u[i, j] * sigmoid(u[i, j]) * v[i, j]\n"
     " } } }"},
    {"lora", "mugraph c { label i 16 label k 64 label r 16 label j 128\n"
             " tensor X input 0 [16, 64] tensor W weight 0 [64, 128] tensor A weight 1 [64, 16]\n"
             " tensor B weight 2 [16, 128] tensor O output 0 [16, 128]\n"
             " step \"all\" { grid j by 32 {\n"
             "  shared t [16, 16] shared u [16, 128]\n"
             "  for k by 16 {\n"
             "   t[i, r] += X[i, k] * A[k, r] fresh\n"
             "   u[i, j] += X[i, k] * W[k, j] fresh\n"
             "  }\n"
             "  u[i, j] += t[i, r] * B[r, j]\n"
             "  O[i, j] = u[i, j]\n"
             " } } }"},
    {"ntrans", "mugraph c { label i 8 label k 64\n"
               " tensor X input 0 [8, 64] tensor H input 1 [8, 64] tensor A input 2 [8, 64]\n"
               " tensor O output 0 [8, 64]\n"
               " step \"all\" { grid i by 2 {\n"
               "  shared s [8] shared y [8, 64] shared t [8]\n"
               "  s[i] += H[i, k] * H[i, k] fresh\n"
               "  y[i, k] = X[i, k] + A[i, k] * (H[i, k] / sqrt(s[i]) - X[i, k])\n"
               "  t[i] += y[i, k] * y[i, k] fresh\n"
               "  O[i, k] = y[i, k] / sqrt(t[i])\n"
               " } } }"},
    {"gqa",
     "mugraph c { label b 2 label i 16 label k 16 label j 64 label d 32\n"
     " tensor Q input 0 [2, 16, 16] tensor K input 1 [2, 16, 64] tensor V input 2 [2, 64, 32]\n"
     " tensor O output 0 [2, 16, 32]\n"
     " step \"all\" { grid b by 1 { grid i by 8 {\n"
     "  shared m [2, 16] shared l [2, 16] shared acc [2, 16, 32]\n"
     "  m[b, i] = -inf\n"
     "  l[b, i] = 0\n"
     "  acc[b, i, d] = 0\n"
     "  for j by 16 {\n"
     "   shared s [2, 16, 64] shared old [2, 16] shared f [2, 16] shared p [2, 16, 64]\n"
     "   s[b, i, j] += Q[b, i, k] * K[b, k, j] * 0.25 fresh\n"
     "   old[b, i] = m[b, i]\n"
     "   m[b, i] max= s[b, i, j]\n"
     "   f[b, i] = exp(old[b, i] - m[b, i])\n"
     "   p[b, i, j] = exp(s[b, i, j] - m[b, i])\n"
     "   l[b, i] = l[b, i] * f[b, i]\n"
     "   l[b, i] += p[b, i, j]\n"
     "   acc[b, i, d] = acc[b, i, d] * f[b, i]\n"
     "   acc[b, i, d] += p[b, i, j] * V[b, j, d]\n"
     "  }\n"
     "  O[b, i, d] = acc[b, i, d] / l[b, i]\n"
     " } } } }"},
    {"qknorm",
     "mugraph c { label b 2 label i 16 label k 16 label j 64 label d 32 label x 4 label y 4\n"
     " tensor Q input 0 [2, 16, 16] tensor K input 1 [2, 16, 64] tensor V input 2 [2, 64, 32]\n"
     " tensor g weight 0 [16] tensor h weight 1 [16]\n"
     " tensor O output 0 [2, 16, 32]\n"
     " step \"all\" { grid b by 1 {\n"
     "  shared n [2, 16] shared o [2, 64] shared q [2, 16, 16] shared s [2, 16, 64]\n"
     "  shared m [2, 16] shared p [2, 16, 64] shared l [2, 16] shared a [2, 16, 32]\n"
     "  n[b, i] += Q[b, i, k] * Q[b, i, k] fresh\n"
     "  o[b, j] += K[b, k, j] * K[b, k, j] fresh\n"
     "  q[b, i, k] = Q[b, i, k] * g[k] * h[k] / sqrt(n[b, i] * 0.0625 + 0.000001)\n"
     "  s[b, i, j] += q[b, i, k] * K[b, k, j] fresh\n"
     "  s[b, i, j] = s[b, i, j] * 0.25 / sqrt(o[b, j] * 0.0625 + 0.000001)\n"
     "  m[b, i] max= s[b, i, j] fresh\n"
     "  p[b, i, j] = exp(s[b, i, j] - m[b, i])\n"
     "  l[b, i] += p[b, i, j] fresh\n"
     "  a[b, i, d] += p[b, i, j] * V[b, j, d] fresh\n"
     "  O[b, i, d] = a[b, i, d] / l[b, i]\n"
     " } } }"},
};

/* One line of a program becomes another, or several. */
static const struct {
    const char *block, *error, *from, *to;
} errors[] = {
    {"rmsnorm_linear", "no square", "X[i, k] * X[i, k] fresh", "X[i, k] fresh"},
    {"rmsnorm_linear", "the norm of the scaled row", "X[i, k] * X[i, k] fresh",
     "X[i, k] * g[k] * X[i, k] fresh"},
    {"rmsnorm_linear", "the sum of squares is a maximum", "s[i] += X[i, k] * X[i, k] fresh",
     "s[i] max= X[i, k] * X[i, k] fresh"},
    {"rmsnorm_linear", "the sum of squares goes on from nothing", "X[i, k] * X[i, k] fresh",
     "X[i, k] * X[i, k]"},
    {"rmsnorm_linear", "a repeated accumulation of squares", "s[i] += X[i, k] * X[i, k] fresh",
     "s[i] += X[i, k] * X[i, k] fresh s[i] += X[i, k] * X[i, k]"},
    {"rmsnorm_linear", "a repeated accumulation of products", "a[i, j] += n[i, k] * W[k, j] fresh",
     "a[i, j] += n[i, k] * W[k, j] fresh a[i, j] += n[i, k] * W[k, j]"},
    {"rmsnorm_linear", "no gain", "n[i, k] = X[i, k] * g[k]", "n[i, k] = X[i, k] + g[k] * 0"},
    {"rmsnorm_linear", "the gain twice", "X[i, k] * g[k]", "X[i, k] * g[k] * g[k]"},
    {"rmsnorm_linear", "the gain along the wrong axis", "X[i, k] * g[k]", "X[i, k] * g[i]"},
    {"rmsnorm_linear", "the gain added", "X[i, k] * g[k]", "X[i, k] + g[k]"},
    {"rmsnorm_linear", "a wrong mean", "s[i] * 0.015625", "s[i] * 0.03125"},
    {"rmsnorm_linear", "no mean", "s[i] * 0.015625", "s[i]"},
    {"rmsnorm_linear", "no epsilon", " + 0.000001", ""},
    {"rmsnorm_linear", "another epsilon", "0.000001", "0.00001"},
    {"rmsnorm_linear", "epsilon outside the root", "sqrt(s[i] * 0.015625 + 0.000001)",
     "(sqrt(s[i] * 0.015625) + 0.000001)"},
    {"rmsnorm_linear", "the mean outside the root", "sqrt(s[i] * 0.015625 + 0.000001)",
     "(sqrt(s[i] + 0.000001) * 0.015625)"},
    {"rmsnorm_linear", "no root", "/ sqrt(s[i] * 0.015625 + 0.000001)",
     "/ (s[i] * 0.015625 + 0.000001)"},
    {"rmsnorm_linear", "times the norm", "a[i, j] / sqrt", "a[i, j] * sqrt"},
    {"rmsnorm_linear", "the norm of the first row for all", "s[i] * 0.015625", "s[0] * 0.015625"},
    {"rmsnorm_linear", "division by a norm that is not complete", "n[i, k] * W[k, j] fresh",
     "n[i, k] * W[k, j] / sqrt(s[i]) fresh"},
    {"rmsnorm_linear", "the grid deals out what is added up", "grid j by 32", "grid k by 16"},
    {"rmsnorm_linear", "products of the last iteration only", "n[i, k] * W[k, j] fresh\n  }",
     "n[i, k] * W[k, j] fresh }\n a[i, j] += X[i, k] * W[k, j] fresh"},
    {"gated_mlp", "the gate of the other product", "sigmoid(u[i, j])", "sigmoid(v[i, j])"},
    {"gated_mlp", "no product with the gate's own value", "u[i, j] * sigmoid", "sigmoid"},
    {"gated_mlp", "the second product added", "sigmoid(u[i, j]) * v[i, j]",
     "sigmoid(u[i, j]) + v[i, j]"},
    {"gated_mlp", "the gate of both", "sigmoid(u[i, j])", "sigmoid(u[i, j] * v[i, j])"},
    {"gated_mlp", "the gate twice", "sigmoid(u[i, j])", "sigmoid(sigmoid(u[i, j]))"},
    {"gated_mlp", "the gate before the sum is complete", "X[i, k] * V[k, j] fresh",
     "X[i, k] * V[k, j] * sigmoid(u[i, j]) fresh"},
    {"gated_mlp", "one weight for both", "X[i, k] * V[k, j]", "X[i, k] * U[k, j]"},
    {"gated_mlp", "no second factor", " * v[i, j]", " * (v[i, j] - v[i, j] + 1)"},
    {"gated_mlp", "the sum of gates of products", "u[i, j] += X[i, k] * U[k, j] fresh",
     "u[i, j] += sigmoid(X[i, k] * U[k, j]) fresh"},
    {"lora", "the second sum starts anew", "u[i, j] += t[i, r] * B[r, j]",
     "u[i, j] += t[i, r] * B[r, j] fresh"},
    {"lora", "the low rank taken away", "u[i, j] += t[i, r] * B[r, j]",
     "u[i, j] += -t[i, r] * B[r, j]"},
    {"lora", "the low rank twice", "u[i, j] += t[i, r] * B[r, j]",
     "u[i, j] += t[i, r] * B[r, j] u[i, j] += t[i, r] * B[r, j]"},
    {"lora", "the low rank of a sum that is not complete", "u[i, j] += X[i, k] * W[k, j] fresh\n",
     "u[i, j] += X[i, k] * W[k, j] fresh u[i, j] += t[i, r] * B[r, j]\n"},
    {"lora", "no input in the low rank", "t[i, r] += X[i, k] * A[k, r] fresh",
     "t[i, r] += A[k, r] + 0 * X[i, k] fresh"},
    {"lora", "row and rank mixed up", "t[i, r] * B[r, j]", "t[r, i] * B[r, j]"},
    {"lora", "a product of the sums", "u[i, j] += t[i, r] * B[r, j]",
     "u[i, j] = u[i, j] * t[i, 0]"},
    {"lora", "no low rank", "u[i, j] += t[i, r] * B[r, j]", "u[i, j] += 0 * t[i, r] * B[r, j]"},
    {"ntrans", "the sum of entries", "H[i, k] * H[i, k] fresh", "H[i, k] fresh"},
    {"ntrans", "the norm of another input", "H[i, k] * H[i, k] fresh", "X[i, k] * X[i, k] fresh"},
    {"ntrans", "nothing taken away", " - X[i, k])", ")"},
    {"ntrans", "the step on the wrong term", "X[i, k] + A[i, k] * (H[i, k] / sqrt(s[i]) - X[i, k])",
     "A[i, k] * X[i, k] + H[i, k] / sqrt(s[i]) - X[i, k]"},
    {"ntrans", "the first norm again", "y[i, k] / sqrt(t[i])", "y[i, k] / sqrt(s[i])"},
    {"ntrans", "no root", "y[i, k] / sqrt(t[i])", "y[i, k] / t[i]"},
    {"ntrans", "the norm of the input at the end", "t[i] += y[i, k] * y[i, k] fresh",
     "t[i] += y[i, k] * X[i, k] fresh"},
    {"ntrans", "the first row's norm", "sqrt(s[i])", "sqrt(s[0])"},
    {"ntrans", "the norm inside the step", "A[i, k] * (H[i, k] / sqrt(s[i]) - X[i, k])",
     "A[i, k] * (H[i, k] - X[i, k]) / sqrt(s[i])"},
    {"gqa", "no rescale of the denominator", "l[b, i] = l[b, i] * f[b, i]\n", "\n"},
    {"gqa", "no rescale of the numerator", "acc[b, i, d] = acc[b, i, d] * f[b, i]\n", "\n"},
    {"gqa", "a rescale the wrong way", "exp(old[b, i] - m[b, i])", "exp(m[b, i] - old[b, i])"},
    {"gqa", "a rescale twice", "acc[b, i, d] * f[b, i]", "acc[b, i, d] * f[b, i] * f[b, i]"},
    {"gqa", "a rescale without exp", "exp(old[b, i] - m[b, i])", "old[b, i] - m[b, i]"},
    {"gqa", "no shift", "exp(s[b, i, j] - m[b, i])", "exp(s[b, i, j])"},
    {"gqa", "a shift by the old maximum", "exp(s[b, i, j] - m[b, i])",
     "exp(s[b, i, j] - old[b, i])"},
    {"gqa", "a shift the wrong way", "exp(s[b, i, j] - m[b, i])", "exp(s[b, i, j] + m[b, i])"},
    {"gqa", "a sum before exp", "l[b, i] += p[b, i, j]", "l[b, i] += s[b, i, j]"},
    {"gqa", "no exp", "p[b, i, j] = exp(s[b, i, j] - m[b, i])",
     "p[b, i, j] = s[b, i, j] - m[b, i]"},
    {"gqa", "a repeated sum of the denominator", "l[b, i] += p[b, i, j]",
     "l[b, i] += p[b, i, j] l[b, i] += p[b, i, j]"},
    {"gqa", "a repeated sum of the numerator", "acc[b, i, d] += p[b, i, j] * V[b, j, d]",
     "acc[b, i, d] += p[b, i, j] * V[b, j, d] acc[b, i, d] += p[b, i, j] * V[b, j, d]"},
    {"gqa", "the maximum over the wrong label", "m[b, i] max= s[b, i, j]",
     "m[b, i] max= Q[b, i, k]"},
    {"gqa", "a sum for the maximum", "m[b, i] max= s[b, i, j]", "m[b, i] += s[b, i, j]"},
    {"gqa", "a maximum for the sum", "l[b, i] += p[b, i, j]", "l[b, i] max= p[b, i, j]"},
    {"gqa", "no scale", " * 0.25", ""},
    {"gqa", "a wrong scale", " * 0.25", " * 0.125"},
    {"gqa", "the scale after exp", " * 0.25 fresh", " fresh l[b, i] = l[b, i] * 0.25"},
    {"gqa", "one batch for all", "K[b, k, j]", "K[0, k, j]"},
    {"gqa", "the loop over the contracted label", "for j by 16", "for k by 4"},
    {"gqa", "the loop over the output's label", "for j by 16", "for d by 8"},
    {"gqa", "the loop dealt out as a grid", "for j by 16", "grid j by 16"},
    {"gqa", "division in the loop", "p[b, i, j] * V[b, j, d]\n",
     "p[b, i, j] * V[b, j, d] acc[b, i, d] = acc[b, i, d] / l[b, i]\n"},
    {"gqa", "division of the summands by the sum so far", "acc[b, i, d] += p[b, i, j] * V",
     "acc[b, i, d] += p[b, i, j] / l[b, i] * V"},
    {"gqa", "no division", "acc[b, i, d] / l[b, i]", "acc[b, i, d] + 0 * l[b, i]"},
    {"gqa", "division twice", "acc[b, i, d] / l[b, i]", "acc[b, i, d] / l[b, i] / l[b, i]"},
    {"gqa", "the old maximum taken too late", "old[b, i] = m[b, i]\n   m[b, i] max= s[b, i, j]\n",
     "m[b, i] max= s[b, i, j] old[b, i] = m[b, i]\n"},
    {"gqa", "the scores of the first chunk for all", "fresh\n   old", "\n   old"},
    {"qknorm", "rowsum(norm(Q)) * K[floor(i / 4)]", "s[b, i, j] += q[b, i, k] * K[b, k, j] fresh",
     "n[b, i] += q[b, i, k] fresh\n"
     "  s[b, 4*x+y, j] = n[b, 4*x+y] * K[b, x, j]"},
    {"qknorm", "rowsum(norm(Q)) * colsum(K)", "s[b, i, j] += q[b, i, k] * K[b, k, j] fresh",
     "n[b, i] += q[b, i, k] fresh l[b, j] += 0 * K[b, k, j] fresh\n"
     "  s[b, i, j] = n[b, i] * o[b, j]"},
    {"qknorm", "one gain only", " * g[k] * h[k] /", " * g[k] * g[k] /"},
    {"qknorm", "the norm of K over the wrong label", "o[b, j] += K[b, k, j] * K[b, k, j] fresh",
     "n[b, k] += K[b, k, j] * K[b, k, j] o[b, j] += K[b, k, j] * K[b, k, j] fresh"},
    {"qknorm", "the norm of K left out", " / sqrt(o[b, j] * 0.0625 + 0.000001)", " + 0 * o[b, j]"},
    {"qknorm", "the norm after exp", "p[b, i, j] = exp(s[b, i, j] - m[b, i])",
     "p[b, i, j] = exp(s[b, i, j] - m[b, i]) / sqrt(o[b, j])"},
    {"qknorm", "the scale twice", "s[b, i, j] * 0.25 /", "s[b, i, j] * 0.0625 /"},
    {"qknorm", "the shift in the numerator only", "l[b, i] += p[b, i, j] fresh",
     "l[b, i] += exp(s[b, i, j]) fresh"},
};

static const char *program_of(const char *block) {
    for (size_t i = 0; i < sizeof programs / sizeof *programs; i++)
        if (strcmp(programs[i].block, block) == 0)
            return programs[i].text;
    return NULL;
}

static po_mu *parsed(po_ctx *ctx, po_arena *arena, const char *text) {
    po_mu *mu;
    if (po_mu_parse(ctx, arena, text, &mu) != PO_OK)
        fail_msg("%s\n%s", ctx->error.message, text);
    for (uint32_t i = 0; i < mu->n_tensors; i++)
        po_mu_layout(mu, i, 1, 0);
    return mu;
}

static po_status judge(po_ctx *ctx, po_arena *arena, const char *block, const char *text) {
    return po_search_same(ctx, parsed(ctx, arena, search_block_of(block)), parsed(ctx, arena, text),
                          NULL, 0, 1 << 20);
}

static void takes_what_is_right(void **state) {
    (void)state;
    po_ctx ctx;
    po_ctx_init(&ctx);
    for (size_t i = 0; i < sizeof programs / sizeof *programs; i++) {
        po_arena *arena = po_arena_create(&ctx);
        if (judge(&ctx, arena, programs[i].block, programs[i].text) != PO_OK)
            fail_msg("%s: %s", programs[i].block, ctx.error.message);
        po_arena_free(arena);
    }
}

static void refuses_planted_errors(void **state) {
    (void)state;
    po_ctx ctx;
    po_ctx_init(&ctx);
    uint32_t n = 0;
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++) {
        po_arena *arena = po_arena_create(&ctx);
        const char *text = program_of(errors[i].block), *at = strstr(text, errors[i].from);
        if (!at)
            fail_msg("%s, %s: no '%s'", errors[i].block, errors[i].error, errors[i].from);
        text = po_arena_printf(arena, "%.*s%s%s", (int)(at - text), text, errors[i].to,
                               at + strlen(errors[i].from));
        po_status status = judge(&ctx, arena, errors[i].block, text);
        if (status != PO_BAD_INPUT)
            fail_msg("%s, %s: taken (%d)", errors[i].block, errors[i].error, (int)status);
        n++;
        po_ctx_clear(&ctx);
        po_arena_free(arena);
    }
    assert_true(n >= 60);
}

/* The variance as the mean of squares less the square of the mean is the same number, of which f32
 * loses what is left of large ones. */
static void refuses_lost_digits(void **state) {
#define NORM(steps)                                                                                \
    "mugraph c { label i 8 label x 32 label z 32 tensor X input 0 [8, 32] "                        \
    "tensor O output 0 [8, 32] step \"all\" { grid i by 4 { shared s [8] shared q [8] "            \
    "s[i] += X[i, x] fresh " steps " O[i, z] = (X[i, z] - s[i] * 0.03125) / sqrt(q[i]) } } }"
    static const char *const texts[] = {
        NORM("q[i] += (e1 := X[i, x] - s[i] * 0.03125) * e1 * 0.03125 fresh"),
        NORM("q[i] += (e1 := s[i] * 0.03125 - X[i, x]) * (e1 * 0.03125) fresh"),
        NORM("q[i] += X[i, x] * X[i, x] * 0.03125 fresh "
             "q[i] = q[i] - s[i] * 0.03125 * (s[i] * 0.03125)")};
#undef NORM
    (void)state;
    po_ctx ctx;
    po_ctx_init(&ctx);
    po_arena *arena = po_arena_create(&ctx);
    po_mu *mu[3];
    for (int i = 0; i < 3; i++)
        if (po_mu_parse(&ctx, arena, texts[i], &mu[i]) != PO_OK)
            fail_msg("%s", ctx.error.message);
    if (po_search_same(&ctx, mu[0], mu[1], NULL, 0, 4 << 20) != PO_OK)
        fail_msg("%s", ctx.error.message);
    assert_int_equal(po_search_same(&ctx, mu[0], mu[2], NULL, 0, 4 << 20), PO_BAD_INPUT);
    assert_non_null(strstr(ctx.error.message, "it loses digits"));
    /* What has lost them already has none to keep. */
    po_ctx_clear(&ctx);
    if (po_search_same(&ctx, mu[2], mu[0], NULL, 0, 4 << 20) != PO_OK)
        fail_msg("%s", ctx.error.message);
    po_arenas_free_since(&ctx, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(takes_what_is_right),
        cmocka_unit_test(refuses_planted_errors),
        cmocka_unit_test(refuses_lost_digits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The search for fused programs: what it finds for the six blocks of the Mirage paper, and that its
 * own checks refuse what computes something else. */
#include "superopt/search/internal.h"

#include "search_blocks.h"
#include "unit.h"

static po_mu *parsed(po_ctx *ctx, po_arena *arena, const char *text) {
    po_mu *mu;
    if (po_mu_parse(ctx, arena, text, &mu) != PO_OK)
        fail_msg("%s", ctx->error.message);
    return mu;
}

static void finds(void **state) {
    (void)state;
    po_ctx ctx;
    po_ctx_init(&ctx);
    for (size_t i = 0; i < n_search_blocks; i++) {
        po_arena *arena = po_arena_create(&ctx);
        po_mu *mu = parsed(&ctx, arena, search_blocks[i].text);
        po_search_options options = po_search_defaults();
        po_search_counts counts;
        po_found *found = PO_NEW_N(arena, po_found, options.keep);
        uint32_t n;
        if (po_search(&ctx, arena, mu, &options, &counts, found, &n) != PO_OK)
            fail_msg("%s: %s", search_blocks[i].name, ctx.error.message);
        assert_true(n > 0);
        assert_int_equal(counts.wrong, 0);
        for (uint32_t k = 0; k < n; k++)
            if (po_search_same(&ctx, mu, found[k].mu, found[k].packed, found[k].n_packed,
                               1 << 20) != PO_OK)
                fail_msg("%s: %s", search_blocks[i].name, ctx.error.message);
        po_arena_free(arena);
    }
}

/* What the compiled form of a program says of itself beside a naive one. */
static double looked(po_ctx *ctx, po_arena *arena, const char *naive, const char *lone,
                     const uint32_t *twin) {
    po_found found = {.lone = parsed(ctx, arena, lone), .lone_tensor = twin};
    po_search_query look = {parsed(ctx, arena, naive), &found};
    po_timed_kernel one = {.mu = found.lone, .check = po_search_queried, .user = &look};
    assert_int_equal(po_time_kernels(ctx, NULL, po_isa_of_machine(), &one, 1), PO_OK);
    return one.seconds;
}

/* Values that random numbers between -1 and 1 do not reach count as well. */
static void looks_at_the_edges(void **state) {
    (void)state;
    static const char naive[] = "mugraph m { label i 64 label j 16 tensor X input 0 [64, 16]"
                                " tensor Y output 0 [64, 16] step \"a\" { Y[i, j] = %s } }",
                      lone[] = "mugraph m { label i 64 label j 16 tensor X device [64, 16]"
                               " tensor Y device [64, 16] step \"a\" { Y[i, j] = X[i, j] } }";
    static const struct {
        const char *what;
        bool right;
    } cases[] = {{"X[i, j]", true},
                 {"max(X[i, j], -2)", false}, /* another value from 2 on */
                 {"X[i, j] + 0", true}};
    if (po_isa_of_machine() == PO_ISAS)
        skip();
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        po_ctx ctx;
        po_ctx_init(&ctx);
        po_arena *arena = po_arena_create(&ctx);
        double seconds = looked(&ctx, arena, po_arena_printf(arena, naive, cases[i].what), lone,
                                (const uint32_t[]){0, 1});
        if (cases[i].right ? !(seconds > 0) : seconds != -1)
            fail_msg("%s: %g s", cases[i].what, seconds);
        po_arena_free(arena);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds),
        cmocka_unit_test(looks_at_the_edges),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

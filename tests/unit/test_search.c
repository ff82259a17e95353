/* The search for fused programs: what it finds for the six blocks of the Mirage paper, and that its
 * own checks refuse what computes something else. */
#include "superopt/search_private.h"

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

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

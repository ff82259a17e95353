/* Schedules for GPUs: found for the blocks of the Mirage and Trinity papers at short shapes, in f32
 * and in f16, and refused where they compute something else. */
#include "superopt/gpu/internal.h"
#include "superopt/gpu/plan.h"

#include "gpu_blocks.h"
#include "unit.h"

static po_mu *parsed(po_ctx *ctx, po_arena *arena, const char *text, po_mu_type type) {
    po_mu *mu;
    if (po_mu_parse(ctx, arena, text, &mu) != PO_OK)
        fail_msg("%s", ctx->error.message);
    for (uint32_t i = 0; i < mu->n_tensors; i++)
        mu->tensors[i].type = type;
    return mu;
}

static uint32_t kernels_of(const po_found *f) {
    uint32_t n = 1;
    for (const char *at = f->schedule; (at = strstr(at, "makes ")); at++)
        n++;
    return n;
}

/* Of plans with as many kernels and one estimate, which are readings of the same thing. */
static uint32_t most_twins(const po_found *found, uint32_t n) {
    uint32_t most = 0;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t twins = 0;
        for (uint32_t k = 0; k < n; k++)
            twins += found[k].estimate == found[i].estimate &&
                     kernels_of(&found[k]) == kernels_of(&found[i]);
        most = twins > most ? twins : most;
    }
    return most;
}

static void finds(void **state) {
    (void)state;
    po_ctx ctx;
    po_ctx_init(&ctx);
    for (size_t i = 0; i < 2 * n_search_blocks; i++) {
        po_arena *arena = po_arena_create(&ctx);
        const search_block *block = &search_blocks[i / 2];
        po_mu *mu = parsed(&ctx, arena, block->text, i % 2 ? PO_MU_F16 : PO_MU_F32);
        po_search_options options = po_search_for_gpu(po_gpu_named("H100"), mu, true);
        po_search_counts counts;
        po_found *found = PO_NEW_N(arena, po_found, options.keep);
        uint32_t n;
        if (po_search(&ctx, arena, mu, &options, &counts, found, &n) != PO_OK)
            fail_msg("%s: %s", block->name, ctx.error.message);
        assert_true(n > 0);
        assert_int_equal(counts.wrong, 0);
        assert_in_range(most_twins(found, n), 1, 2);
        po_arena_free(arena);
    }
}

/* Whole regions: taken apart, put together, every candidate the same function. */
static void plans(void **state) {
    (void)state;
    po_ctx ctx;
    po_ctx_init(&ctx);
    static const char *const gpus[] = {"H100", "L4"};
    for (uint32_t i = 0; i < n_search_blocks + n_gpu_blocks; i++) {
        po_arena *arena = po_arena_create(&ctx);
        bool trinity = i >= n_search_blocks;
        const search_block *block = trinity ? &gpu_blocks[i - n_search_blocks] : &search_blocks[i];
        po_mu *mu;
        if (po_mu_parse(&ctx, arena, block->text, &mu) != PO_OK)
            fail_msg("%s: %s", block->name, ctx.error.message);
        for (uint32_t k = 0; k < mu->n_tensors && !trinity; k++)
            mu->tensors[k].type = PO_MU_F16;
        po_gpu_options options = {.keep = 4};
        po_gpu_candidate *c;
        uint32_t n;
        if (po_gpu_plan(&ctx, arena, mu, po_gpu_named(gpus[i % 2]), &options, &c, &n) != PO_OK)
            fail_msg("%s: %s", block->name, ctx.error.message);
        assert_true(n > 0);
        for (uint32_t k = 0; k < n; k++)
            if (po_search_same(&ctx, mu, c[k].mu, NULL, 0, GPU_SHARED) != PO_OK)
                fail_msg("%s, %s: %s", block->name, c[k].what, ctx.error.message);
        po_arena_free(arena);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds),
        cmocka_unit_test(plans),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

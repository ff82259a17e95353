/* Each sample goes through postopt once, compared in float64, and then through eight forms of its
 * options for what is wrong with their recipes. */
#include "samples.h"

#include "rewriting.h"
#include "unit.h"

#include <stdio.h>

static bool has_word(const char *words, const char *end, const po_graph *g, char *found) {
    for (const char *w = words; w < end;) {
        size_t n = strcspn(w, " ");
        memcpy(found, w, n);
        found[n] = '\0';
        if (n && test_count(g, found))
            return true;
        w += n + (w[n] == ' ');
    }
    return false;
}

/* What is wrong with the recipes of any of postopt's forms, or NULL. */
static const char *fault_of_forms(po_ctx *ctx, po_arena *arena, const po_graph *g) {
    for (uint32_t form = 0; form < 8; form++) {
        po_postopt_options options = po_postopt_defaults();
        options.hard_swish = form % 2 ? PO_HARD_SWISH_NODE : PO_HARD_SWISH_GATED;
        options.leftover = form & 2 ? PO_LEFTOVER_CONV : PO_LEFTOVER_ARITHMETIC;
        options.algebra = form & 4 ? 0 : PO_ALGEBRA_ALL;
        options.split_moves = form % 2;
        po_graph *h;
        if (po_postopt(ctx, g, &options, &h, NULL) != PO_OK)
            return ctx->error.message;
        const char *fault = test_recipe_fault(ctx, g, h);
        if (fault)
            return po_arena_printf(arena, "form %u: %s", form, fault);
        po_graph_free(h);
    }
    return NULL;
}

void test_samples_run(void **state) {
    const test_sample_list *list = *state;
    int bad = 0;
    for (size_t i = 0; i < list->n; i++) {
        const test_sample *s = &list->samples[i];
        po_ctx ctx;
        po_ctx_init(&ctx);
        po_graph *g = test_graph(&ctx, s->graph), *h = NULL;
        po_postopt_options options = po_postopt_defaults();
        options.leftover = s->leftover;
        if (po_postopt(&ctx, g, &options, &h, NULL) != PO_OK || po_graph_check(&ctx, h) != PO_OK) {
            printf("%s: %s\n", s->name, ctx.error.message);
            bad++;
            continue;
        }
        char word[64];
        double d = test_difference(&ctx, g, h, 11);
        bool left = has_word(s->gone, s->gone + strlen(s->gone), h, word);
        uint32_t found = test_count(h, s->count_of);
        if (left || (int)found != s->count || !(d < 2e-6)) {
            printf("%s: error %g, %s%s left, %u of %s (want %d)\n", s->name, d,
                   left ? "" : "nothing of ", left ? word : s->gone, found, s->count_of, s->count);
            bad++;
        }
        bad += test_tell(s->name, fault_of_forms(&ctx, g->arena, g));
        po_graph_free(h);
        po_graph_free(g);
    }
    assert_int_equal(bad, 0);
}

/* Any text: the reader of muGraphs either refuses it, or what it reads prints as text that reads
 * the same. Whatever it is, checking and evaluating it end well or fail. */
#include "mugraph/eval.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool right) {
    if (!right)
        abort();
}

/* Values for the tensors of a place, by number. */
static double **values(po_arena *arena, const po_mu *mu, po_mu_place place) {
    double **all = PO_NEW_N(arena, double *, mu->n_tensors + 1);
    for (uint32_t i = 0; i < mu->n_tensors; i++) {
        const po_mu_tensor *t = &mu->tensors[i];
        if (t->place != place)
            continue;
        all[t->number] = PO_NEW_N(arena, double, t->floats);
        for (int64_t k = 0; k < t->floats; k++)
            all[t->number][k] = po_random_normal(1, t->number, (uint64_t)k);
    }
    return all;
}

static po_mu_residue **residues(po_arena *arena, const po_mu *mu, po_mu_place place) {
    po_mu_residue **all = PO_NEW_N(arena, po_mu_residue *, mu->n_tensors + 1);
    for (uint32_t i = 0; i < mu->n_tensors; i++) {
        const po_mu_tensor *t = &mu->tensors[i];
        if (t->place != place)
            continue;
        all[t->number] = PO_NEW_N(arena, po_mu_residue, t->floats);
        for (int64_t k = 0; k < t->floats; k++)
            all[t->number][k] = po_mu_residue_random(1, t->number, (uint64_t)k);
    }
    return all;
}

static void evaluate(po_ctx *ctx, po_arena *arena, const po_mu *mu) {
    po_mu_eval(ctx, mu, (const double *const *)values(arena, mu, PO_MU_INPUT),
               (const double *const *)values(arena, mu, PO_MU_WEIGHT),
               values(arena, mu, PO_MU_OUTPUT), values(arena, mu, PO_MU_OUTPUT));
    po_ctx_clear(ctx);
    po_mu_eval_mod(ctx, mu, (const po_mu_residue *const *)residues(arena, mu, PO_MU_INPUT),
                   (const po_mu_residue *const *)residues(arena, mu, PO_MU_WEIGHT),
                   residues(arena, mu, PO_MU_OUTPUT), 1);
}

/* Of all tensors, whether they are read or not. */
static double floats_of(const po_mu *mu) {
    double floats = 0;
    for (uint32_t i = 0; i < mu->n_tensors; i++)
        floats += (double)mu->tensors[i].floats;
    return floats;
}

static void mugraphs(po_ctx *ctx, const char *input) {
    po_arena *arena = po_arena_create(ctx);
    po_mu *mu, *again;
    po_text first, second;
    if (po_mu_parse(ctx, arena, input, &mu) != PO_OK) {
        po_ctx_clear(ctx);
        return;
    }
    po_text_init(&first, arena);
    po_text_init(&second, arena);
    po_mu_print(&first, mu);
    require(po_mu_parse(ctx, arena, first.data, &again) == PO_OK);
    po_mu_print(&second, again);
    require(strcmp(first.data, second.data) == 0);
    require(po_mu_equal(mu, again));
    po_mu_cost cost;
    if (po_mu_check(ctx, mu, 1 << 20) == PO_OK) {
        po_mu_cost_of(mu, &cost);
        if (cost.flops + cost.bytes + (double)cost.device + (double)cost.shared + floats_of(mu) <
            1e6)
            evaluate(ctx, arena, mu);
    }
    po_ctx_clear(ctx);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    po_ctx ctx;
    po_guard guard;
    po_ctx_init(&ctx);
    char *input = malloc(size + 1);
    require(input != NULL);
    memcpy(input, data, size);
    input[size] = '\0';
    po_guard_push(&ctx, &guard);
    if (setjmp(guard.env) == 0) {
        mugraphs(&ctx, input);
        po_guard_pop(&ctx, &guard);
        po_arenas_free_since(&ctx, 0);
    } else {
        po_guard_unwind(&ctx, &guard);
    }
    free(input);
    return 0;
}

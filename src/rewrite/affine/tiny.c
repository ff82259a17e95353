/* Weights that count for nothing become zeros.
 *
 * What training drives towards zero and does not cut stays in a model as numbers like 1e-40. They
 * change no result, and processors take many times as long for a product that falls below the
 * smallest normal number as for any other: detectors and recognisers of text as shipped run two to
 * four times as fast without (docs/rewrites.md).
 *
 * A rounding: of 2^-100 at most, where that of a number near 1 is 2^-24. It is stated as such in
 * the recipe (po_recipe_drop_tiny). Biases stay: one may be what keeps a logarithm from zero. */
#include "ops/recipe/recipe.h"
#include "rewrite/passes.h"

/* Beside a weight of this size it is less than that weight's own rounding. */
static const float beside = 0x1p-76f;

/* Whether the tensor has tiny weights, and others. In f32 without a conversion: this looks at every
 * weight of the model. */
static bool has_tiny(const po_tensor *t) {
    enum { SOME = 1024 }; /* without a way out between them, which vectors have none of */
    const float most = (float)PO_RECIPE_TINY;
    const char *at = t->data; /* may be unaligned */
    int tiny = 0, large = 0;
    for (int64_t i = 0; i < t->count && !(tiny && large); i += SOME) {
        float w[SOME] = {0};
        const int64_t n = t->count - i < SOME ? t->count - i : SOME;
        memcpy(w, at + i * (int64_t)sizeof *w, (size_t)n * sizeof *w);
        for (int k = 0; k < SOME; k++) {
            large |= (w[k] >= beside) | (w[k] <= -beside);
            tiny |= (w[k] < most) & (w[k] > -most) & (w[k] != 0);
        }
    }
    return tiny && large;
}

/* A factor of a sum of products, by its place among the inputs. */
static bool is_weight(const po_graph *graph, const po_node *node, uint32_t input) {
    enum { FACTORS = 2 };
    if (input >= FACTORS || input >= node->n_in || node->in[input] == PO_NONE)
        return false;
    const po_tensor *t = po_graph_constant(graph, node->in[input]);
    return t && t->dtype == PO_F32 && t->rank >= 2 && t->data;
}

/* The value without what is tiny; PO_NONE where it has nothing of that. */
static po_value_id dropped(po_graph *graph, po_arena *scratch, po_value_id w) {
    if (!has_tiny(po_graph_constant(graph, w)))
        return PO_NONE;
    const po_recipe *r = po_recipe_doubles(graph, scratch, w);
    return po_add_recipe(graph, NULL, PO_F32, po_recipe_drop_tiny(scratch, r));
}

po_status po_drop_tiny(po_ctx *ctx, po_graph *graph, po_rewriting *state) {
    if (!state->options->tiny)
        return PO_OK;
    po_value_id known = graph->n_values, *made = PO_NEW_N(state->scratch, po_value_id, known);
    bool *looked = PO_NEW_N(state->scratch, bool, known);
    uint32_t n;
    const po_node_id *order = po_graph_order(graph, state->scratch, &n);
    for (uint32_t k = 0; k < n; k++) {
        if (!po_op_has(graph->nodes[order[k]].op, PO_OPF_SUMS))
            continue;
        PO_TRY(po_ctx_poll(ctx));
        for (uint32_t i = 0; i < 2; i++) {
            const po_node *node = &graph->nodes[order[k]];
            po_value_id w = is_weight(graph, node, i) ? node->in[i] : PO_NONE;
            if (w == PO_NONE || w >= known)
                continue;
            if (!looked[w])
                made[w] = dropped(graph, state->scratch, w);
            looked[w] = true;
            if (!po_law_fired(state, PO_LAW_TINY, made[w] != PO_NONE))
                continue;
            po_graph_set_input(graph, order[k], i, made[w]);
            state->counts->used |= PO_USED_TINY;
        }
    }
    return PO_OK;
}

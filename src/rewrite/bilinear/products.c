/* What the products of a tile take of weights and bias. */
#include "rewrite/bilinear/products.h"

po_value_id po_product_weights(po_graph *graph, po_arena *arena, const po_conv *c,
                               const po_bilinear *alg, int64_t taps, int64_t rest,
                               const int64_t kernel[2]) {
    const int64_t n = alg->n, in = c->in / c->group;
    const po_recipe *powers = po_recipe_literal(arena, 2, (const int64_t[]){n, taps}, alg->powers);
    const po_recipe *scale = po_recipe_literal(arena, 3, (const int64_t[]){n, 1, 1}, alg->scale);
    const po_recipe *w = po_conv_weights(graph, arena, c);
    w = po_recipe_reshape(arena, w, 3, (const int64_t[]){c->out * in, taps, rest});
    w = po_recipe_einsum(arena, "nt,pty->npy", 2, (const po_recipe *[]){powers, w});
    w = po_recipe_div(arena, w, scale);
    w = po_recipe_reshape(arena, w, 4, (const int64_t[]){n * c->out, in, kernel[0], kernel[1]});
    return po_add_recipe(graph, NULL, PO_F32, w);
}

po_value_id po_product_bias(po_graph *graph, po_arena *arena, const po_conv *c, int64_t one,
                            int64_t products) {
    if (!c->bias)
        return PO_NONE;
    const int64_t before = one * c->out, after = (products - 1) * c->out - before;
    const po_recipe *parts[3];
    uint32_t n = 0;
    if (before)
        parts[n++] = po_recipe_fill(arena, 1, &before, 0);
    parts[n++] = po_conv_bias(graph, arena, c);
    if (after)
        parts[n++] = po_recipe_fill(arena, 1, &after, 0);
    return po_add_recipe(graph, NULL, PO_F32, po_recipe_concat(arena, 0, n, parts));
}

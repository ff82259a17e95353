/* What the products of a tile take of weights and bias. */
#include "rewrite/bilinear/products.h"

po_value_id po_product_weights(po_graph *graph, po_arena *arena, const po_conv *c, uint32_t axes,
                               const po_bilinear *alg, const int64_t taps[2],
                               const int64_t kernel[2]) {
    const int64_t in = c->in / c->group;
    const po_recipe *of[3], *scale[2];
    int64_t products = 1;
    of[0] = po_recipe_reshape(arena, po_conv_weights(graph, arena, c), 4,
                              (const int64_t[]){c->out, in, taps[0], taps[1]});
    for (uint32_t i = 0; i < axes; i++) {
        const int64_t n = alg[i].n;
        of[1 + i] = po_recipe_literal(arena, 2, (const int64_t[]){n, taps[i]}, alg[i].powers);
        scale[i] = po_recipe_literal(arena, 4, (const int64_t[]){i ? n : 1, i ? 1 : n, 1, 1},
                                     alg[i].scale);
        products *= n;
    }
    const po_recipe *w =
        po_recipe_einsum(arena, axes == 2 ? "oiyx,ay,bx->baoi" : "oiyx,ay->aoix", 1 + axes, of);
    w = po_recipe_reshape(
        arena, w, 4,
        (const int64_t[]){products / alg[0].n, alg[0].n, c->out * in, kernel[0] * kernel[1]});
    for (uint32_t i = 0; i < axes; i++)
        w = po_recipe_div(arena, w, scale[i]);
    w = po_recipe_reshape(arena, w, 4,
                          (const int64_t[]){products * c->out, in, kernel[0], kernel[1]});
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

/* Numbers in the place of open dims: primes, and for maps multiples of 32. */
#include "rewrite/propagate/numbers.h"

#include "ops/op.h"

/* Positions of maps are whole multiples, so that what is halved five times fits again. */
static int64_t number_for(uint32_t which, bool position) {
    static const int64_t primes[] = {29, 31, 37, 41, 43, 47, 53, 59};
    static const int64_t maps[] = {96, 160, 224, 288, 352, 416, 480, 544};
    which %= sizeof primes / sizeof *primes;
    return position ? maps[which] : primes[which];
}

po_graph *po_with_numbers(po_ctx *ctx, const po_graph *graph) {
    po_graph *g = po_graph_clone(ctx, graph);
    const char *names[32];
    int64_t numbers[32];
    uint32_t n = 0, drawn = 0;
    if (po_infer_forget_shapes(ctx, g) != PO_OK)
        po_ctx_clear(ctx);
    for (uint32_t i = 0; i < g->n_inputs; i++) {
        po_type *t = &g->values[g->inputs[i]].type;
        if (t->kind != PO_TYPE_TENSOR || !t->has_rank)
            continue;
        po_dim *dims = po_arena_memdup(g->arena, t->dims, t->rank * sizeof *dims);
        for (uint32_t d = 0; d < t->rank; d++) {
            if (dims[d].value >= 0)
                continue;
            uint32_t k = 0;
            while (k < n && (!dims[d].symbol || strcmp(names[k], dims[d].symbol) != 0))
                k++;
            const int64_t number = k < n ? numbers[k] : number_for(drawn++, t->rank > 3 && d > 1);
            if (k == n && dims[d].symbol && n < sizeof names / sizeof *names) {
                names[n] = dims[d].symbol;
                numbers[n++] = number;
            }
            dims[d] = PO_DIM(number);
        }
        t->dims = dims;
    }
    if (po_infer_graph(ctx, g, true) != PO_OK)
        po_ctx_clear(ctx);
    return g;
}

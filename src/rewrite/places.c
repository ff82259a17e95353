/* Where families are used, and what they make of rounding: what a choice among variants asks. */
#include "ops/conv_view.h"
#include "ops/sum/bilinear.h"
#include "rewrite/passes.h"

#include <stdlib.h>

void po_law_magnifies(po_rewriting *state, uint32_t algebra, double times) {
    state->counts->used |= algebra;
    for (uint32_t i = 0; i < PO_ALGEBRAS; i++) {
        double *known = &state->counts->magnifies[i];
        if (algebra >> i & 1 && *known < times)
            *known = times;
    }
}

int64_t po_law_length(const po_rewriting *state, po_dim dim, uint32_t k) {
    const po_meant *meant = &state->options->meant;
    int64_t length = dim.value;
    if (length < 0 && (!dim.symbol || k >= meant->n ||
                       !po_size_at(state->scratch, dim, meant->length, meant->user[k], &length)))
        return -1;
    return length;
}

/* Positions of a map: what comes behind batch and channels; 0: not known. */
static int64_t positions_of(const po_rewriting *state, const po_graph *graph, po_value_id y) {
    const po_type *type = &graph->values[y].type;
    int64_t n = 1;
    if (type->kind != PO_TYPE_TENSOR || !type->has_rank || type->rank < 3)
        return 0;
    for (uint32_t i = 2; i < type->rank; i++) {
        const int64_t length = po_law_length(state, type->dims[i], 0);
        if (length < 0)
            return 0;
        n *= length;
    }
    return n;
}

static int by_size(const void *a, const void *b) {
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

int64_t po_law_middle(const po_rewriting *state, const po_graph *graph) {
    int64_t *sizes = PO_NEW_N(state->scratch, int64_t, graph->n_nodes + 1);
    uint32_t n = 0, distinct = 0;
    for (po_node_id i = 0; i < graph->n_nodes; i++)
        if (!graph->nodes[i].removed && po_conv_is(&graph->nodes[i]) &&
            graph->nodes[i].out[0] != PO_NONE)
            sizes[n++] = positions_of(state, graph, graph->nodes[i].out[0]);
    qsort(sizes, n, sizeof *sizes, by_size);
    for (uint32_t i = 0; i < n; i++)
        if (sizes[i] > 0 && (distinct == 0 || sizes[distinct - 1] != sizes[i]))
            sizes[distinct++] = sizes[i];
    return distinct > 0 ? sizes[distinct / 2] : 0;
}

bool po_law_may(const po_rewriting *state, uint32_t algebra, const po_graph *graph, po_value_id y) {
    const po_postopt_options *o = state->options;
    bool small = positions_of(state, graph, y) < state->middle;
    return small ? !(o->on_large & algebra) : !(o->on_small & algebra);
}

void po_law_tiled(po_rewriting *state, const po_graph *graph, po_value_id y,
                  const po_tiled_use *use) {
    uint32_t *known = &state->counts->tile[use->which];
    bool small = positions_of(state, graph, y) < state->middle;
    *known = *known < use->m ? use->m : *known;
    *(small ? &state->counts->on_small : &state->counts->on_large) |= use->algebra;
    double times =
        po_bilinear_magnifies(PO_POINTS_DYADIC, use->m, (uint32_t)use->r, (uint32_t)use->stride);
    po_law_magnifies(state, use->algebra, use->across > 0 ? times * use->across : times);
}

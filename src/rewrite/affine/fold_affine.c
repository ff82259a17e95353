/* Folds every maximal affine chain: into what comes before it, else into what comes after it, else
 * it is written as short as it goes. */
#include "ops/conv_view.h"
#include "rewrite/affine/affine.h"
#include "rewrite/passes.h"

/* A copy: absorbing edits the use list. */
static const po_use *uses_of(const po_graph *graph, po_arena *arena, po_value_id v, uint32_t *n) {
    *n = graph->values[v].n_uses;
    return po_arena_memdup(arena, graph->values[v].uses, *n * sizeof(po_use));
}

/* Every reader takes it, or none: with a reader left over the chain would have to stay. */
static bool absorb_all_ahead(po_graph *graph, po_arena *arena, const po_affine *m) {
    uint32_t n;
    const po_use *uses = uses_of(graph, arena, m->y, &n);
    if (n == 0 || graph->values[m->y].n_outputs)
        return false;
    for (uint32_t i = 0; i < n; i++)
        if (uses[i].input == PO_USE_CAPTURE ||
            !po_affine_absorb_ahead(graph, arena, m, uses[i], true))
            return false;
    for (uint32_t i = 0; i < n; i++)
        po_affine_absorb_ahead(graph, arena, m, uses[i], false);
    return true;
}

static bool pass_means(po_graph *graph, po_arena *arena, const po_affine *m) {
    uint32_t n;
    const po_use *uses = uses_of(graph, arena, m->y, &n);
    bool moved = false;
    for (uint32_t i = 0; i < n; i++)
        if (uses[i].input != PO_USE_CAPTURE)
            moved |= po_affine_pass(graph, arena, m, uses[i]);
    return moved;
}

/* --- what is left --- */

static bool feeds_conv(const po_graph *graph, po_value_id v) {
    for (uint32_t i = 0; i < graph->values[v].n_uses; i++) {
        po_use u = graph->values[v].uses[i];
        if (po_read_by_conv(graph, &u))
            return true;
    }
    return false;
}

/* As a depthwise 1x1 convolution, between operators that run in the blocked layout. */
static bool leave_as_conv(po_graph *graph, po_arena *arena, const po_affine *m) {
    int64_t channels = po_dim_of(graph, m->x, 1);
    const po_type *type = &graph->values[m->x].type;
    if (type->dtype != PO_F32 || po_rank_of(graph, m->x) != 4 || channels < 1 ||
        (m->axis >= 0 && m->axis != 1) || po_affine_is_scale(m) ||
        graph->values[m->x].producer == PO_NONE || !feeds_conv(graph, m->y))
        return false;
    po_type same = *type;
    po_value_id w = po_add_recipe(graph, NULL, PO_F32,
                                  po_recipe_expand(arena, po_affine_scale(arena, m, 4, 0), 4,
                                                   (const int64_t[]){channels, 1, 1, 1}));
    po_value_id bias =
        po_add_recipe(graph, NULL, PO_F32,
                      po_recipe_expand(arena, po_affine_shift(arena, m, 1, 0), 1, &channels));
    if (w == PO_NONE || bias == PO_NONE)
        return false;
    const po_conv tap = po_conv_of_one_tap(PO_F32, 2, channels, channels, channels);
    po_substitute(graph, m->y, po_add_conv(graph, m->first, m->x, w, bias, &tap, &same));
    return true;
}

/* Readers that pad take the scale, and only the shift stays in front of them. */
static bool leave_shift(po_graph *graph, po_arena *arena, const po_affine *m) {
    po_affine scale, shift;
    if (po_affine_is_shift(m) || po_affine_is_scale(m) ||
        !po_affine_without_scale(arena, m, &scale, &shift))
        return false;
    uint32_t n;
    const po_use *uses = uses_of(graph, arena, m->y, &n);
    if (!absorb_all_ahead(graph, arena, &scale))
        return false;
    po_value_id shifted = po_affine_emit(graph, m->first, m->x, &shift);
    for (uint32_t i = 0; i < n; i++)
        if (graph->nodes[uses[i].node].in[uses[i].input] == m->x) /* it took the scale */
            po_graph_set_input(graph, uses[i].node, uses[i].input, shifted);
    return true;
}

static bool leave_short(po_graph *graph, const po_affine *m, bool lone_norms) {
    uint32_t needed = !po_affine_is_scale(m) + !po_affine_is_shift(m);
    const po_node *first = &graph->nodes[m->first];
    if (m->nodes <= needed && first->op != PO_OP_BatchNormalization)
        return false;
    if (m->nodes == 1 && !lone_norms)
        return false; /* a lone batch normalisation is one node already */
    po_substitute(graph, m->y, po_affine_emit(graph, m->first, m->x, m));
    return true;
}

/* Folds the chain that ends in the node, where there is one, and marks its nodes as seen. */
static void fold_chain(po_graph *graph, po_arena *arena, po_node_id end, bool *seen,
                       uint32_t n_seen, po_rewriting *state) {
    po_affine m;
    if (!po_affine_match(graph, arena, graph->nodes[end].out[0], &m))
        return;
    po_affine_derive(graph, arena, &m);
    po_value_id at = m.y;
    for (uint32_t i = 0; i < m.nodes; i++) {
        po_node_id id = graph->values[at].producer;
        const po_node *step = &graph->nodes[id];
        if (id < n_seen)
            seen[id] = true;
        at = step->n_in > 1 && po_graph_constant(graph, step->in[0]) ? step->in[1] : step->in[0];
    }
    if (po_affine_is_shift(&m) && po_affine_is_scale(&m) && m.nodes > 1) {
        po_substitute(graph, m.y, m.x);
        po_law_fired(state, PO_LAW_AFFINE_NOTHING, true);
        return;
    }
    if (po_law_fired(state, PO_LAW_AFFINE_BACK, po_affine_absorb_back(graph, arena, &m)) ||
        po_law_fired(state, PO_LAW_AFFINE_AHEAD, absorb_all_ahead(graph, arena, &m)) ||
        po_law_fired(state, PO_LAW_AFFINE_MEAN, pass_means(graph, arena, &m)))
        return;
    if (po_law_fired(state, PO_LAW_AFFINE_CONV,
                     state->options->leftover == PO_LEFTOVER_CONV &&
                         leave_as_conv(graph, arena, &m)))
        state->counts->used |= PO_USED_LEFTOVER;
    else if (!po_law_fired(state, PO_LAW_AFFINE_SCALE_AHEAD, leave_shift(graph, arena, &m)))
        po_law_fired(state, PO_LAW_AFFINE_SHORT,
                     leave_short(graph, &m, state->options->lone_norms));
}

static bool may_end_chain(const po_graph *graph, const po_node *n) {
    switch ((po_op)n->op) {
    case PO_OP_Mul:
    case PO_OP_Add:
    case PO_OP_Sub:
    case PO_OP_Div:
    case PO_OP_Neg:
    case PO_OP_BatchNormalization:
        return n->n_out > 0 && n->out[0] != PO_NONE && po_rearrangeable(graph, n->out[0]);
    default:
        return false;
    }
}

po_status po_fold_affine(po_ctx *ctx, po_graph *graph, po_rewriting *state) {
    if (!state->options->affine)
        return PO_OK;
    uint32_t n;
    const po_node_id *order = po_graph_order(graph, state->scratch, &n);
    uint32_t n_seen = graph->n_nodes; /* folding adds nodes */
    bool *seen = PO_NEW_N(state->scratch, bool, n_seen);
    /* From the end, so that the first match met is the whole chain. */
    for (uint32_t k = n; k-- > 0;) {
        const po_node *node = &graph->nodes[order[k]];
        if (node->removed || seen[order[k]] || !may_end_chain(graph, node))
            continue;
        /* Weights in float64 are large: they are given back at once. */
        po_arena *arena = po_arena_create(ctx);
        fold_chain(graph, arena, order[k], seen, n_seen, state);
        po_arena_free(arena);
    }
    return PO_OK;
}

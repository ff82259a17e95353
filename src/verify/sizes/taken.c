/* Lengths that the original takes and the candidate does not: windows that no longer fit, Reshapes
 * that copy a dim in the place of a length of 0, means of nothing. */
#include "verify/sizes/internal.h"

#include "ir/size.h"
#include "ops/rewrite.h"
#include "ops/window.h"
#include "verify/sizes/guard.h"

#include <stdio.h>

typedef struct taking {
    const po_sizes *s;
    po_arena *arena;
    po_room *given; /* what the original needs of lengths */
    uint32_t n, cap;
    char *why;
    size_t size;
} taking;

static bool fail(const taking *t, const po_node *node, const char *why) {
    snprintf(t->why, t->size, "node '%.80s' (%.40s): %s", node->name, node->op_type, why);
    return false;
}

static bool takes_whole_maps(po_op_id op) {
    return op == PO_OP_GlobalAveragePool || op == PO_OP_GlobalMaxPool || op == PO_OP_GlobalLpPool;
}

/* How long an axis of a map must be, so that a window fits; of a transposed one, its output. */
static po_room room_of(const po_graph *g, const po_node *node, const po_window *w, uint32_t k) {
    const bool transposed = node->op == PO_OP_ConvTranspose;
    const po_type *t = &g->values[transposed ? node->out[0] : node->in[0]].type;
    const int64_t extent = w ? (w->kernel[k] - 1) * w->dilation[k] + 1 : 1;
    const int64_t pads = w && !w->same ? w->begin[k] + w->end[k] : 0;
    return (po_room){t->dims[k + 2], transposed || !w || w->same ? 1 : extent - pads};
}

/* What a node of windows needs, axis by axis: told, or asked for. */
static bool each_room(taking *t, const po_graph *g, const po_node *node, bool asks) {
    const po_type *type = node->n_in ? &g->values[node->in[0]].type : NULL;
    const bool windows = po_op_has(node->op, PO_OPF_WINDOW);
    po_window w;
    if (!type || (!windows && !takes_whole_maps(node->op)) || type->kind != PO_TYPE_TENSOR ||
        !type->has_rank || type->rank < 3 || !g->values[node->out[0]].type.has_rank)
        return true;
    const bool known = windows && po_window_of(g, node, type->rank - 2, &w);
    for (uint32_t k = 0; k + 2 < type->rank; k++) {
        const po_room room = room_of(g, node, known ? &w : NULL, k);
        if (room.length.value >= 0)
            continue;
        if (!asks)
            PO_PUSH(t->arena, t->given, t->n, t->cap, room);
        else if (!po_bounds_follow(t->arena, t->n, t->given, room))
            return fail(t, node, "its windows need not fit where those of the original do");
    }
    return true;
}

/* A 0 among the lengths that a Reshape is given is the input's dim of that place. */
static bool reshape_is_plain(taking *t, const po_graph *g, const po_node *node) {
    const po_partial *p =
        node->n_in > 1 && node->in[1] != PO_NONE ? g->values[node->in[1]].partial : NULL;
    const po_type *in = node->n_in ? &g->values[node->in[0]].type : NULL;
    if (node->op != PO_OP_Reshape || !p || po_op_int(g, node, "allowzero") != 0)
        return true;
    for (uint32_t i = 0; i < p->n; i++) {
        const po_dim d = p->items[i];
        int64_t number;
        if (d.value >= 0 || !d.symbol || po_size_number(d, &number) ||
            (in->has_rank && i < in->rank && po_dim_same(in->dims[i], d)))
            continue;
        if (!po_bounds_follow(t->arena, t->n, t->given, (po_room){d, 1}))
            return fail(t, node, "a length of 0 would be another");
    }
    return true;
}

/* Of nothing there is no mean. */
static bool mean_is_some(taking *t, const po_graph *g, const po_node *node) {
    uint32_t axes[PO_MAX_RANK], n = 0;
    const po_type *type = node->n_in ? &g->values[node->in[0]].type : NULL;
    if (node->op == PO_OP_ReduceMean)
        n = po_reduced_axes(g, node, PO_MAX_RANK, axes);
    else if (node->op == PO_OP_GlobalAveragePool)
        for (uint32_t x = 2; x < type->rank; x++)
            axes[n++] = x;
    for (uint32_t i = 0; i < n; i++) {
        const po_room some = {type->dims[axes[i]], 1};
        if (some.length.value < 0 && !po_bounds_follow(t->arena, t->n, t->given, some))
            return fail(t, node, "it may be the mean of nothing");
    }
    return true;
}

static bool part_is_taken(taking *t, const po_pieces *part) {
    for (uint32_t side = 0; side < 2; side++) {
        const po_graph *g = t->s->sized[side].open;
        const po_cone *c = &part->side[side];
        for (uint32_t i = 0; i < c->n_nodes; i++) {
            const po_node *node = &g->nodes[c->nodes[i]];
            if (!mean_is_some(t, g, node) || (side == 1 && !each_room(t, g, node, true)))
                return false;
        }
    }
    return true;
}

/* The nodes that outputs are made by, the last first. */
static uint32_t needed_nodes(const po_graph *g, po_arena *arena, po_node_id **nodes) {
    uint32_t n, found = 0;
    const po_node_id *order = po_graph_order(g, arena, &n);
    bool *needed = PO_NEW_N(arena, bool, g->n_values);
    *nodes = PO_NEW_N(arena, po_node_id, n);
    for (uint32_t k = 0; k < g->n_outputs; k++)
        needed[g->outputs[k]] = true;
    while (n-- > 0) {
        const po_node *node = &g->nodes[order[n]];
        bool wanted = false;
        for (uint32_t k = 0; k < node->n_out; k++)
            wanted |= node->out[k] != PO_NONE && needed[node->out[k]];
        for (uint32_t k = 0; k < node->n_in && wanted; k++)
            if (node->in[k] != PO_NONE)
                needed[node->in[k]] = true;
        if (wanted)
            (*nodes)[found++] = order[n];
    }
    return found;
}

bool po_sizes_taken(const po_sizes *s, char *why, size_t size) {
    po_arena *arena = po_arena_child(s->arena);
    taking t = {.s = s, .arena = arena, .why = why, .size = size};
    bool taken = true;
    for (uint32_t side = 0; side < 2; side++) {
        const po_graph *g = s->sized[side].open;
        po_node_id *nodes;
        const uint32_t n = needed_nodes(g, arena, &nodes);
        for (uint32_t i = 0; i < n && side == 0; i++)
            each_room(&t, g, &g->nodes[nodes[i]], false);
        for (uint32_t i = 0; i < n && taken; i++)
            taken = reshape_is_plain(&t, g, &g->nodes[nodes[i]]);
    }
    for (uint32_t i = 0; i < s->n_shown && taken; i++)
        taken = part_is_taken(&t, &s->shown[i]);
    po_arena_free(arena);
    return taken;
}

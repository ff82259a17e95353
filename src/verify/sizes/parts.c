/* Parts of both models: what makes a value of each from values that are the same. */
#include "verify/sizes/internal.h"

#include <stdio.h>

/* --- parts --- */

/* Collects what makes the target, back to leaves. False where it is too much, or begins at
 * something else. */
typedef struct collecting {
    const po_sizes *s;
    uint32_t side;
    bool *seen;        /* by value */
    const bool *grown; /* by class: no leaf */
    po_pieces *part;
    bool first; /* leaves are found; else they must be those */
    bool failed;
    uint32_t entered; /* nodes */
} collecting;

static bool is_leaf(collecting *c, po_value_id v, uint32_t *leaf) {
    uint32_t class = c->s->class_of[c->side][v];
    po_pieces *p = c->part;
    if (class == PO_NONE || (c->first && v == p->side[c->side].target))
        return false;
    if (c->s->classes[class].within != PO_NONE)
        class = c->s->classes[class].within;
    class = c->s->classes[class].flat;
    for (*leaf = 0; *leaf < p->n_leaves; ++*leaf)
        if (p->leaves[*leaf] == class)
            return true;
    if (!c->first || c->grown[class] || !c->s->classes[class].original ||
        p->n_leaves == PO_CONE_LEAVES)
        return false;
    p->leaves[p->n_leaves++] = class;
    return true;
}

static void collect(collecting *c, po_value_id v) {
    const po_graph *g = c->s->sized[c->side].open;
    po_cone *made = &c->part->side[c->side];
    uint32_t leaf;
    if (c->failed || c->seen[v])
        return;
    c->seen[v] = true;
    if (po_piece_is_known(g, v))
        return;
    if (is_leaf(c, v, &leaf)) {
        c->failed = made->n_leaves == PO_CONE_LEAVES;
        if (!c->failed) {
            made->leaves[made->n_leaves] = v;
            made->leaf[made->n_leaves++] = leaf;
        }
        return;
    }
    const po_node_id id = g->values[v].producer;
    if (id == PO_NONE || ++c->entered > 2 * PO_CONE_NODES) {
        c->failed = true;
        return;
    }
    for (uint32_t k = 0; k < g->nodes[id].n_in; k++)
        if (g->nodes[id].in[k] != PO_NONE)
            collect(c, g->nodes[id].in[k]);
    for (uint32_t i = 0; i < made->n_nodes; i++)
        if (made->nodes[i] == id)
            return;
    c->failed |= made->n_nodes == PO_CONE_NODES;
    if (!c->failed)
        made->nodes[made->n_nodes++] = id;
}

bool po_cone_collect(po_sizes *s, po_arena *scratch, po_pieces *part, uint32_t side,
                     const bool *grown) {
    collecting c = {.s = s,
                    .side = side,
                    .seen = PO_NEW_N(scratch, bool, s->graph[side]->n_values),
                    .grown = grown,
                    .part = part,
                    .first = side == 1};
    collect(&c, part->side[side].target);
    return !c.failed;
}

/* --- their makeups --- */

static po_status makeup_side(po_sizes *s, po_arena *scratch, const po_pieces *part, uint32_t side,
                             po_piece *p) {
    const po_cone *c = &part->side[side];
    const po_sized *g = &s->sized[side];
    *p = (po_piece){.ctx = s->ctx,
                    .arena = scratch,
                    .oracle = s->oracle,
                    .open = g->open,
                    .makeup = PO_NEW_N(scratch, po_makeup *, g->open->n_values)};
    for (uint32_t i = 0; i < PO_MAKEUP_SIZES; i++)
        p->at[i] = g->at[i];
    for (uint32_t i = 0; i < part->n_leaves; i++) {
        const po_size_class *l = &s->classes[part->leaves[i]];
        PO_PUSH(scratch, p->leaves, p->n_leaves, p->cap_leaves,
                &po_sizes_value(s, l->side, l->value)->type);
    }
    for (uint32_t i = 0; i < c->n_leaves; i++)
        if (!po_piece_leaf(p, c->leaves[i], c->leaf[i], po_sizes_channels(s, side, c->leaves[i]))) {
            snprintf(p->why, sizeof p->why, "the shape of '%.80s' is not known",
                     po_sizes_value(s, side, c->leaves[i])->name);
            return PO_UNSUPPORTED;
        }
    for (uint32_t i = 0; i < c->n_nodes; i++)
        PO_TRY(po_piece_node(p, &g->open->nodes[c->nodes[i]]));
    return p->makeup[c->target] ? PO_OK : PO_UNSUPPORTED;
}

po_status po_pieces_same(po_sizes *s, po_arena *scratch, const po_pieces *part, bool *same,
                         char *why, size_t size) {
    po_piece side[2];
    const char *reason = "";
    *same = false;
    for (uint32_t k = 0; k < 2; k++) {
        po_status status = makeup_side(s, scratch, part, k, &side[k]);
        if (status == PO_UNSUPPORTED)
            snprintf(why, size, "%s", side[k].why);
        if (status != PO_OK)
            return status == PO_UNSUPPORTED ? PO_OK : status;
    }
    po_compared *both = po_compared_create(scratch, &s->names, &side[0]);
    bool added = true;
    for (uint32_t k = 0; k < 2 && added; k++) {
        const po_makeup *m = side[k].makeup[part->side[k].target];
        m = po_makeup_trimmed(&side[k], m, part->side[k].channels);
        added = po_compared_add(both, po_makeup_merged(&side[k], m)) && !side[k].full;
    }
    *same = added && po_compared_apart(both, &reason);
    if (!*same)
        snprintf(why, size, "%s", added ? reason : "its axes are made of others");
    return PO_OK;
}

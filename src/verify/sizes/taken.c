/* Lengths that the original takes and the candidate does not: runtimes slide no window where it
 * does not fit, take nothing from an empty map, and find no length for a -1 beside a 0. Besides,
 * nothing is said where a Reshape copies a dim in the place of a length of 0, or a mean or a
 * largest is one of nothing.
 *
 * What nodes need is a list of rooms, lengths that are at least so much. All that the candidate
 * needs must follow from what the original does. Of windows it is what ONNX Runtime refuses, with
 * its optimisations and without. */
#include "verify/sizes/internal.h"

#include "ir/size.h"
#include "ops/rewrite.h"
#include "ops/window.h"
#include "verify/sizes/guard.h"

#include <stdio.h>

enum { MOST_FACTORS = 4 };

typedef struct rooms {
    po_room *room;
    uint32_t n, cap;
} rooms;

/* SURE: runtimes refuse less. FITS: what windows of pools need as well; runtimes make something of
 * smaller maps, each in its way, which only other pools do too. */
typedef enum certainty { SURE, FITS } certainty;

typedef struct needing {
    const po_sizes *s;
    po_arena *arena;
    rooms given[FITS + 1]; /* what the original needs; FITS has all of SURE */
    bool asks;             /* what nodes need must follow */
    const char *refused;   /* why it does not */
} needing;

/* Whether the length is at least so much where the original takes all lengths that it needs. What
 * divides a length above 0 is above 0, and so is the product of such. */
static bool follows(const needing *t, const rooms *given, po_room asked, uint32_t depth) {
    po_arena *arena = t->arena;
    if (asked.length.value >= 0)
        return asked.length.value >= asked.least;
    for (uint32_t i = 0; i < given->n; i++)
        if (given->room[i].least >= asked.least && po_dim_same(given->room[i].length, asked.length))
            return true;
    if (po_bounds_follow(t->s->oracle, given->n, given->room, asked))
        return true;
    for (uint32_t i = 0; i < given->n && asked.least <= 1; i++) {
        const po_dim rest = given->room[i].least < 1
                                ? PO_DIM_UNKNOWN
                                : po_size_divide(arena, given->room[i].length, asked.length);
        if (rest.value > 0 || rest.symbol)
            return true;
    }
    const po_names *names = &t->s->names;
    for (uint32_t i = 0; i < given->n + names->n && asked.least <= 1 && depth < MOST_FACTORS; i++) {
        const po_dim by =
            i < given->n ? given->room[i].length : (po_dim){-1, names->name[i - given->n]};
        const po_dim rest = po_dim_same(by, asked.length) ? PO_DIM_UNKNOWN
                                                          : po_size_divide(arena, asked.length, by);
        if ((rest.value > 0 || rest.symbol) && follows(t, given, (po_room){rest, 1}, depth + 1) &&
            follows(t, given, (po_room){by, 1}, MOST_FACTORS))
            return true;
    }
    return false;
}

/* A node needs it: told, or asked for. What has a length that is not known at all is made by the
 * same node in both. */
static void need(needing *t, po_room room, certainty certain, const char *why) {
    if (room.length.value >= 0 || !room.length.symbol || room.least < 1 || t->refused)
        return;
    if (t->asks) {
        if (!follows(t, &t->given[certain], room, 0))
            t->refused = why;
        return;
    }
    for (uint32_t k = certain; k <= FITS; k++) {
        bool known = false;
        for (uint32_t i = 0; i < t->given[k].n && !known; i++)
            known = t->given[k].room[i].least == room.least &&
                    po_dim_same(t->given[k].room[i].length, room.length);
        if (!known)
            PO_PUSH(t->arena, t->given[k].room, t->given[k].n, t->given[k].cap, room);
    }
}

/* --- what nodes need --- */

static bool takes_whole_maps(po_op_id op) {
    return op == PO_OP_GlobalAveragePool || op == PO_OP_GlobalMaxPool || op == PO_OP_GlobalLpPool;
}

static bool is_pool(po_op_id op) {
    return op == PO_OP_MaxPool || op == PO_OP_AveragePool || op == PO_OP_LpPool;
}

static bool is_convolution(po_op_id op) {
    return po_op_has_all(op, PO_OPF_WINDOW | PO_OPF_PRODUCTS) && op != PO_OP_ConvTranspose;
}

static bool is_same_padded(const po_node *node) {
    return po_node_string_is(node, "auto_pad", "SAME_UPPER", "NOTSET") ||
           po_node_string_is(node, "auto_pad", "SAME_LOWER", "NOTSET");
}

/* Windows fit, and pools take no map that is empty; of transposed convolutions there is something
 * left behind their pads. */
static void need_windows(needing *t, const po_graph *g, const po_node *node) {
    static const char *const why = "its windows need not fit where those of the original do";
    const po_type *in = &g->values[node->in[0]].type, *out = &g->values[node->out[0]].type;
    const bool pool = is_pool(node->op), plain = pool || is_convolution(node->op);
    const bool same = plain && is_same_padded(node);
    po_window w;
    if (in->kind != PO_TYPE_TENSOR || !in->has_rank || in->rank < 3 || !out->has_rank)
        return;
    const bool known = plain && po_window_of(g, node, in->rank - 2, &w);
    for (uint32_t x = 2; x < in->rank; x++) {
        const po_room some = {in->dims[x], 1};
        if (node->op == PO_OP_ConvTranspose) {
            need(t, (po_room){x < out->rank ? out->dims[x] : PO_DIM_UNKNOWN, 1}, SURE, why);
            continue;
        }
        /* Of windows that are not known nothing follows. */
        if (pool || same || (!known && t->asks))
            need(t, some, SURE, why);
        if (known && !same) {
            const uint32_t k = x - 2;
            const int64_t extent = (w.kernel[k] - 1) * w.dilation[k] + 1;
            need(t, (po_room){in->dims[x], extent - w.begin[k] - w.end[k]}, pool ? FITS : SURE,
                 why);
        }
    }
}

static void need_maps(needing *t, const po_graph *g, const po_node *node) {
    const po_type *in = &g->values[node->in[0]].type;
    for (uint32_t x = 2; in->kind == PO_TYPE_TENSOR && in->has_rank && x < in->rank; x++)
        need(t, (po_room){in->dims[x], 1}, SURE, "it may take all of an empty map");
}

/* What is padded by its own elements has some: those that are mirrored, one more than there are
 * pads. */
static void need_edges(needing *t, const po_graph *g, const po_node *node) {
    const po_type *in = &g->values[node->in[0]].type;
    const po_tensor *pads =
        node->n_in > 1 && node->in[1] != PO_NONE ? g->values[node->in[1]].constant : NULL;
    const bool mirrors = po_node_string_is(node, "mode", "reflect", "constant");
    if (!in->has_rank)
        return;
    const bool known =
        pads && (node->n_in < 4 || node->in[3] == PO_NONE) && pads->count == 2 * (int64_t)in->rank;
    for (uint32_t x = 0; x < in->rank; x++) {
        const int64_t begin = known ? po_tensor_int(pads, x) : 0,
                      end = known ? po_tensor_int(pads, x + in->rank) : 0,
                      most = begin > end ? begin : end;
        if (known ? most > 0 : t->asks)
            need(t, (po_room){in->dims[x], mirrors ? most + 1 : 1}, SURE,
                 "there may be nothing to pad with");
    }
}

/* Behind the last dim of the input there is none that a 0 could copy. */
static void need_dims(needing *t, const po_graph *g, const po_node *node) {
    const po_partial *p =
        node->n_in > 1 && node->in[1] != PO_NONE ? g->values[node->in[1]].partial : NULL;
    const po_type *in = &g->values[node->in[0]].type;
    if (!p || !in->has_rank || po_op_int(g, node, "allowzero") != 0)
        return;
    for (uint32_t i = in->rank; i < p->n; i++)
        need(t, (po_room){p->items[i], 1}, SURE, "there is no dim to copy for a length of 0");
}

/* Of a -1 the other lengths are the divisor. */
static void need_divisor(needing *t, const po_graph *g, const po_node *node) {
    const po_type *out = &g->values[node->out[0]].type;
    const po_value *shape =
        node->n_in > 1 && node->in[1] != PO_NONE ? &g->values[node->in[1]] : NULL;
    const po_tensor *c = shape ? shape->constant : NULL;
    const po_partial *p = shape ? shape->partial : NULL;
    bool rest[PO_MAX_RANK] = {false}, any = t->asks && !c && !p;
    for (uint32_t i = 0; out->has_rank && i < out->rank && i < PO_MAX_RANK; i++) {
        int64_t item = 0;
        bool known = true;
        if (c && i < c->count)
            item = po_tensor_int(c, i);
        else if (!c && p && i < p->n && !po_size_number(p->items[i], &item))
            known = p->items[i].symbol != NULL, item = 0;
        /* An item that is not known may be a -1. */
        rest[i] = known ? item < 0 : t->asks;
        any |= rest[i];
    }
    for (uint32_t i = 0; any && out->has_rank && i < out->rank && i < PO_MAX_RANK; i++)
        if (!rest[i])
            need(t, (po_room){out->dims[i], 1}, SURE, "a -1 may stand beside a length of 0");
}

static void needs_of(needing *t, const po_graph *g, const po_node *node) {
    if (node->n_in == 0 || node->n_out == 0 || node->in[0] == PO_NONE || node->out[0] == PO_NONE)
        return;
    if (po_op_has(node->op, PO_OPF_WINDOW))
        need_windows(t, g, node);
    else if (takes_whole_maps(node->op))
        need_maps(t, g, node);
    else if (node->op == PO_OP_Pad && !po_node_string_is(node, "mode", "constant", "constant"))
        need_edges(t, g, node);
    else if (node->op == PO_OP_Reshape) {
        need_divisor(t, g, node);
        need_dims(t, g, node);
    }
}

/* --- what is another for a length of 0 --- */

/* Whether an item of a shape is 0 only where the dim is that it would copy. */
static bool copies_itself(const needing *t, po_dim item, po_dim copied) {
    rooms given = {0};
    if (po_dim_same(item, copied))
        return true;
    for (uint32_t i = 0; i < t->given[SURE].n; i++)
        PO_PUSH(t->arena, given.room, given.n, given.cap, t->given[SURE].room[i]);
    const po_room some = {copied, 1};
    PO_PUSH(t->arena, given.room, given.n, given.cap, some);
    return follows(t, &given, (po_room){item, 1}, 0);
}

/* A 0 among the lengths that a Reshape is given is the input's dim of that place. */
static void copies_nothing(needing *t, const po_graph *g, const po_node *node) {
    const po_partial *p =
        node->n_in > 1 && node->in[1] != PO_NONE ? g->values[node->in[1]].partial : NULL;
    const po_type *in = node->n_in ? &g->values[node->in[0]].type : NULL;
    if (node->op != PO_OP_Reshape || !p || po_op_int(g, node, "allowzero") != 0)
        return;
    for (uint32_t i = 0; i < p->n && !t->refused; i++) {
        int64_t number;
        const po_dim item = p->items[i];
        if (!po_size_number(item, &number) && item.symbol && (!in->has_rank || i < in->rank) &&
            !copies_itself(t, item, in->has_rank ? in->dims[i] : PO_DIM_UNKNOWN))
            t->refused = "a length of 0 would be another";
    }
}

/* Of nothing there is no mean, and its largest is below all others: what holds of equal elements,
 * or of their bounds, does not hold there. */
static void reduces_something(needing *t, const po_graph *g, const po_node *node) {
    uint32_t axes[PO_MAX_RANK], n = 0;
    const po_type *type = node->n_in ? &g->values[node->in[0]].type : NULL;
    if (node->op == PO_OP_ReduceMean || node->op == PO_OP_ReduceMax || node->op == PO_OP_ReduceMin)
        n = po_reduced_axes(g, node, PO_MAX_RANK, axes);
    for (uint32_t i = 0; i < n; i++)
        need(t, (po_room){type->dims[axes[i]], 1}, SURE,
             node->op == PO_OP_ReduceMean ? "it may be the mean of nothing"
                                          : "it may be taken of nothing");
}

/* --- both models --- */

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

typedef void looking(needing *t, const po_graph *g, const po_node *node);

/* Until something is refused. */
static void each(needing *t, uint32_t side, uint32_t n, const po_node_id *nodes, looking *look,
                 char *why, size_t size) {
    const po_graph *g = t->s->sized[side].open;
    for (uint32_t i = 0; i < n && !t->refused; i++) {
        const po_node *node = &g->nodes[nodes[i]];
        look(t, g, node);
        if (t->refused)
            snprintf(why, size, "node '%.80s' (%.40s): %s", node->name, node->op_type, t->refused);
    }
}

/* What the original needs, node by node: lengths behind a Reshape are what they are said to be only
 * where it copies nothing, so it is looked at by what is needed before it. */
static void needs_in_order(needing *t, const po_graph *g, const po_node *node) {
    copies_nothing(t, g, node);
    needs_of(t, g, node);
}

bool po_sizes_taken(const po_sizes *s, char *why, size_t size) {
    po_arena *arena = po_arena_child(s->arena);
    needing t = {.s = s, .arena = arena};
    po_node_id *nodes[2];
    uint32_t n[2];
    for (uint32_t side = 0; side < 2; side++)
        n[side] = needed_nodes(s->sized[side].open, arena, &nodes[side]);
    for (uint32_t i = n[0]; i-- > 0;)
        each(&t, 0, 1, &nodes[0][i], needs_in_order, why, size);
    t.asks = true;
    each(&t, 1, n[1], nodes[1], needs_of, why, size);
    each(&t, 1, n[1], nodes[1], copies_nothing, why, size);
    for (uint32_t side = 0; side < 2; side++) {
        for (uint32_t i = 0; i < s->n_shown; i++) {
            const po_cone *c = &s->shown[i].side[side];
            each(&t, side, c->n_nodes, c->nodes, reduces_something, why, size);
        }
    }
    po_arena_free(arena);
    return !t.refused;
}

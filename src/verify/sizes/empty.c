/* Lengths that the candidate alone refuses: runtimes slide no window over an empty map, and find no
 * length for a -1 beside a 0. Where the original takes a length of 0, the candidate must. */
#include "ir/size.h"
#include "verify/sizes/guard.h"
#include "verify/sizes/internal.h"

#include <stdio.h>

enum { MOST_FACTORS = 4 };

/* Lengths at which a model does not run where one of them is 0. */
typedef struct demands {
    const po_sizes *s;
    po_arena *arena;
    po_dim *dims;
    uint32_t n, cap;
} demands;

/* What has a length that is not known at all is made by the same node in both. */
static void demand(demands *d, po_dim dim) {
    if (dim.value >= 0 || !dim.symbol)
        return;
    for (uint32_t i = 0; i < d->n; i++)
        if (po_dim_same(d->dims[i], dim))
            return;
    PO_PUSH(d->arena, d->dims, d->n, d->cap, dim);
}

static void demand_map(demands *d, const po_type *t) {
    for (uint32_t x = 2; t->kind == PO_TYPE_TENSOR && t->has_rank && x < t->rank; x++)
        demand(d, t->dims[x]);
}

static bool is_global_pool(po_op_id op) {
    return op == PO_OP_GlobalAveragePool || op == PO_OP_GlobalMaxPool || op == PO_OP_GlobalLpPool;
}

/* What a -1 is the rest of. */
static void demand_shape(demands *d, const po_graph *g, const po_node *node) {
    const po_type *out = &g->values[node->out[0]].type;
    const po_value *shape = node->n_in > 1 ? &g->values[node->in[1]] : NULL;
    const po_tensor *t = shape ? shape->constant : NULL;
    const po_partial *p = shape ? shape->partial : NULL;
    bool rest[PO_MAX_RANK] = {false}, any = !t && !p;
    for (uint32_t i = 0; out->has_rank && i < out->rank && i < PO_MAX_RANK; i++) {
        int64_t item = -1;
        if (t ? i < t->count : p && i < p->n)
            rest[i] = t                                     ? po_tensor_int(t, i) < 0
                      : !po_size_number(p->items[i], &item) ? !p->items[i].symbol
                                                            : item < 0;
        any |= rest[i];
    }
    for (uint32_t i = 0; any && out->has_rank && i < out->rank && i < PO_MAX_RANK; i++)
        if (!rest[i])
            demand(d, out->dims[i]);
}

static void demands_of(demands *d, uint32_t side) {
    const po_graph *g = d->s->sized[side].open;
    for (po_node_id id = 0; id < g->n_nodes; id++) {
        const po_node *n = &g->nodes[id];
        if (n->removed || n->n_in == 0 || n->n_out == 0 || n->in[0] == PO_NONE ||
            n->out[0] == PO_NONE)
            continue;
        if (po_op_has(n->op, PO_OPF_WINDOW) || is_global_pool(n->op)) {
            demand_map(d, &g->values[n->in[0]].type);
            demand_map(d, &g->values[n->out[0]].type);
        } else if (n->op == PO_OP_Pad && !po_node_string_is(n, "mode", "constant", "constant")) {
            demand_map(d, &g->values[n->in[0]].type);
        } else if (n->op == PO_OP_Reshape) {
            demand_shape(d, g, n);
        }
    }
}

/* Whether a length is at least 1 where all that the original demands are: those are no less than
 * what divides them, and products of such lengths are such. */
static bool is_taken(const demands *original, po_dim dim, uint32_t depth) {
    po_arena *arena = original->arena;
    if (dim.value >= 0)
        return dim.value > 0;
    if (!dim.symbol || po_bounds_least(arena, dim, 1))
        return dim.symbol != NULL;
    for (uint32_t i = 0; i < original->n; i++)
        if (po_dim_same(original->dims[i], dim) ||
            po_size_divide(arena, original->dims[i], dim).value > 0)
            return true;
    const po_names *names = &original->s->names;
    for (uint32_t i = 0; i < original->n + names->n && depth < MOST_FACTORS; i++) {
        const po_dim by =
            i < original->n ? original->dims[i] : (po_dim){-1, names->name[i - original->n]};
        const po_dim rest = po_dim_same(by, dim) ? PO_DIM_UNKNOWN : po_size_divide(arena, dim, by);
        if ((rest.value > 0 || rest.symbol) && is_taken(original, rest, depth + 1) &&
            (i < original->n || is_taken(original, by, MOST_FACTORS)))
            return true;
    }
    return false;
}

bool po_sizes_taken(const po_sizes *s, char *why, size_t size) {
    po_arena *scratch = po_arena_child(s->arena);
    demands original = {.s = s, .arena = scratch}, candidate = {.s = s, .arena = scratch};
    bool taken = true;
    demands_of(&original, 0);
    demands_of(&candidate, 1);
    for (uint32_t i = 0; i < candidate.n && taken; i++) {
        taken = is_taken(&original, candidate.dims[i], 0);
        if (!taken)
            snprintf(why, size, "a length of %.100s that is 0 is taken by the original alone",
                     candidate.dims[i].symbol);
    }
    po_arena_free(scratch);
    return taken;
}

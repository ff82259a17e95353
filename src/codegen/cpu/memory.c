/* Where the tensors of a kernel lie in the memory of a call. */
#include "codegen/cpu/printer.h"

typedef struct interval {
    uint32_t first, last; /* first > last: not used */
} interval;

static void widen(interval *i, uint32_t first, uint32_t last) {
    i->first = first < i->first ? first : i->first;
    i->last = last > i->last ? last : i->last;
}

static bool overlaps(interval a, interval b) {
    return a.first <= b.last && b.first <= a.last;
}

/* Whether the ring can be filled anew in each call at little cost: spans of memory that lie inside
 * one another, axis by axis, and at most a quarter of the tensor. */
static bool is_cheap(const po_mu_tensor *t) {
    int64_t inside = 1, all = 1;
    if (t->place != PO_MU_DEVICE)
        return false;
    for (uint32_t a = 0; a < t->rank; a++) {
        int64_t whole = t->before[a] + t->dims[a] + t->after[a];
        if (a > 0 && t->stride[a] * whole > t->stride[a - 1])
            return false;
        inside *= t->dims[a];
        all *= whole;
    }
    return all - inside <= all / 4;
}

static bool same_layout(const cg *g, uint32_t i, uint32_t k) {
    const po_mu_tensor *a = &g->mu->tensors[i], *b = &g->mu->tensors[k];
    if (a->rank != b->rank || a->floats != b->floats || a->fill != b->fill)
        return false;
    for (uint32_t x = 0; x < a->rank; x++)
        if (!po_dim_same(g->open->dim[i][x], g->open->dim[k][x]) || a->stride[x] != b->stride[x] ||
            a->before[x] != b->before[x] || a->after[x] != b->after[x])
            return false;
    return true;
}

bool cg_same_place(const cg *g, uint32_t a, uint32_t b) {
    const char *x = g->tensor[a].open, *y = g->tensor[b].open;
    return x && y ? strcmp(x, y) == 0 : !x && !y && g->tensor[a].offset == g->tensor[b].offset;
}

/* Parts of memory are told apart by cache lines. */
static int64_t rounded(int64_t floats) {
    return (floats + 15) / 16 * 16;
}

static bool meet(const cg *g, uint32_t tensor, int64_t at, uint32_t other) {
    int64_t from = g->tensor[other].offset;
    return from < at + rounded(g->mu->tensors[tensor].floats) &&
           at < from + rounded(g->mu->tensors[other].floats);
}

/* Whether the two may lie on one another, the one at an offset, where they don't live at once. */
static bool may_share(const cg *g, uint32_t tensor, int64_t at, uint32_t other) {
    const po_mu_tensor *t = &g->mu->tensors[tensor], *o = &g->mu->tensors[other];
    return ((!po_mu_has_ring(t) || is_cheap(t)) && (!po_mu_has_ring(o) || is_cheap(o))) ||
           (at == g->tensor[other].offset && same_layout(g, tensor, other));
}

/* One of those placed that keeps a tensor from an offset, or PO_NONE. */
static uint32_t in_the_way(const cg *g, const interval *live, const uint32_t *placed, uint32_t n,
                           uint32_t tensor, int64_t at) {
    for (uint32_t i = 0; i < n; i++)
        if (meet(g, tensor, at, placed[i]) &&
            (overlaps(live[placed[i]], live[tensor]) || !may_share(g, tensor, at, placed[i])))
            return placed[i];
    return PO_NONE;
}

/* The place of one of its like, whose ring may be there already; else the lowest that is free. */
static int64_t place(const cg *g, const interval *live, const uint32_t *placed, uint32_t n,
                     uint32_t tensor) {
    const po_mu_tensor *t = &g->mu->tensors[tensor];
    for (uint32_t i = 0; po_mu_has_ring(t) && i < n; i++) {
        int64_t at = g->tensor[placed[i]].offset;
        if (same_layout(g, tensor, placed[i]) &&
            in_the_way(g, live, placed, n, tensor, at) == PO_NONE)
            return at;
    }
    int64_t at = 0;
    for (uint32_t o; (o = in_the_way(g, live, placed, n, tensor, at)) != PO_NONE;)
        at = g->tensor[o].offset + rounded(g->mu->tensors[o].floats);
    return at;
}

/* Larger ones first: small ones then fill what is left between them. */
static void by_size(const po_mu *mu, uint32_t *tensors, uint32_t n) {
    for (uint32_t i = 1; i < n; i++) {
        uint32_t tensor = tensors[i], at = i;
        for (; at > 0 && mu->tensors[tensors[at - 1]].floats < mu->tensors[tensor].floats; at--)
            tensors[at] = tensors[at - 1];
        tensors[at] = tensor;
    }
}

static void place_all(cg *g, const interval *live, const uint32_t *tensors, uint32_t n,
                      int64_t *total) {
    for (uint32_t i = 0; i < n; i++) {
        int64_t at = place(g, live, tensors, i, tensors[i]);
        g->tensor[tensors[i]].offset = at;
        int64_t end = at + rounded(g->mu->tensors[tensors[i]].floats);
        *total = end > *total ? end : *total;
    }
}

static void used(const cg *g, uint32_t node, interval *live, uint32_t first, uint32_t last) {
    const po_mu_statement *s = &g->mu->nodes[node].statement;
    for (uint32_t k = 0; k <= s->n_in; k++)
        widen(&live[po_mu_touched(s, k)], first, last);
}

uint32_t cg_below_scope(const po_mu *mu, uint32_t node, const po_mu_tensor *t) {
    uint32_t scope = t->scope == PO_NONE ? po_mu_step_of(mu, node) : t->scope;
    while (mu->nodes[node].parent != scope && mu->nodes[node].parent != PO_NONE)
        node = mu->nodes[node].parent;
    return node;
}

uint32_t cg_last_inside(const po_mu *mu, uint32_t node) {
    uint32_t last = node;
    for (uint32_t n = po_mu_next(mu, node); n != PO_NONE && po_mu_inside(mu, n, node);
         n = po_mu_next(mu, n))
        last = n;
    return last;
}

/* Whether a statement may run on the tiles of the one before it, one tile after the other: what the
 * first reads of the last tile must not lie where the second writes of the first (group.c). */
static bool shares_tiles(const po_mu *mu, uint32_t before, uint32_t node) {
    const po_mu_statement *a = &mu->nodes[before].statement, *b = &mu->nodes[node].statement;
    if (mu->nodes[before].kind != PO_MU_STATEMENT || mu->nodes[node].kind != PO_MU_STATEMENT)
        return false;
    return b->fused || (a->combine == PO_MU_SET && b->combine != PO_MU_SET && a->lane != PO_NONE &&
                        a->lane == b->lane);
}

/* The first and the last of the statements that share tiles with a node of a step. */
static interval tiles_of(const po_mu *mu, uint32_t node) {
    uint32_t parent = mu->nodes[node].parent;
    if (parent == PO_NONE)
        return (interval){node, node};
    interval i = {mu->nodes[parent].first, mu->nodes[parent].first};
    bool found = i.first == node;
    for (uint32_t n = mu->nodes[i.first].next; n != PO_NONE; n = mu->nodes[n].next) {
        const bool joins = shares_tiles(mu, i.last, n);
        if (!joins && found)
            break;
        i = (interval){joins ? i.first : n, n};
        found |= n == node;
    }
    return i;
}

/* --- sizes that are open --- */

/* Places in a row, each as long as the longest of those that have it one after the other. */
typedef struct slot {
    uint32_t *tensors, n, cap;
    const char *size; /* in C */
} slot;

static bool fits(const cg *g, const interval *live, const slot *s, uint32_t tensor) {
    const po_mu *mu = g->mu;
    for (uint32_t i = 0; i < s->n; i++) {
        const po_mu_tensor *t = &mu->tensors[tensor], *o = &mu->tensors[s->tensors[i]];
        const bool rings =
            (po_mu_has_ring(t) && !is_cheap(t)) || (po_mu_has_ring(o) && !is_cheap(o));
        if (overlaps(live[tensor], live[s->tensors[i]]) ||
            (rings && !same_layout(g, tensor, s->tensors[i])))
            return false;
    }
    return true;
}

static const char *rounded_size(cg *g, uint32_t tensor) {
    const po_dim floats = g->open->floats[tensor];
    return cg_keep(g, po_arena_printf(g->arena, "(%s + 15) / 16 * 16", cg_length(g, floats)));
}

/* The tensors behind one another from `at` on, those that do not live at once in one place; where
 * the last ends. */
static const char *place_open(cg *g, const interval *live, const uint32_t *tensors, uint32_t n,
                              const char *at) {
    slot *slots = PO_NEW_N(g->arena, slot, n + 1);
    uint32_t n_slots = 0;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t k = 0;
        while (k < n_slots && !fits(g, live, &slots[k], tensors[i]))
            k++;
        n_slots += k == n_slots;
        slot *s = &slots[k];
        const char *size = rounded_size(g, tensors[i]);
        if (!s->size)
            s->size = size;
        else if (strcmp(s->size, size) != 0)
            s->size = cg_keep(g, po_arena_printf(g->arena, "pk_most(%s, %s)", s->size, size));
        PO_PUSH(g->arena, s->tensors, s->n, s->cap, tensors[i]);
    }
    for (uint32_t k = 0; k < n_slots; k++) {
        for (uint32_t i = 0; i < slots[k].n; i++)
            g->tensor[slots[k].tensors[i]].open = at;
        at = cg_keep(g, po_arena_printf(g->arena, "%s + %s", at, slots[k].size));
    }
    return at;
}

static const char *number(cg *g, int64_t n) {
    return po_arena_printf(g->arena, "%lld", (long long)n);
}

/* Rings of tensors that share a place with another layout are filled in each call. */
static void fill_shared(cg *g, const uint32_t *device, uint32_t n, const uint32_t *writer) {
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t k = 0; k < n && po_mu_has_ring(&g->mu->tensors[device[i]]); k++) {
            const uint32_t a = device[i], b = device[k];
            const bool at_once = g->tensor[a].open
                                     ? cg_same_place(g, a, b)
                                     : !g->tensor[b].open && meet(g, a, g->tensor[a].offset, b);
            if (at_once && !(cg_same_place(g, a, b) && same_layout(g, a, b)))
                g->tensor[a].filled_by = writer[a];
        }
}

/* Those whose size is open come first in `tensors`, of which there are so many. */
static uint32_t open_first(const cg *g, uint32_t *tensors, uint32_t n) {
    uint32_t n_open = 0;
    for (uint32_t i = 0; i < n; i++)
        if (g->open->floats[tensors[i]].value < 0) {
            const uint32_t tensor = tensors[i];
            memmove(tensors + n_open + 1, tensors + n_open, (i - n_open) * sizeof *tensors);
            tensors[n_open++] = tensor;
        }
    return n_open;
}

static void shared_of_step(cg *g, uint32_t step, const uint32_t *position, const char **most) {
    const po_mu *mu = g->mu;
    interval *live = PO_NEW_N(g->arena, interval, mu->n_tensors + 1);
    for (uint32_t i = 0; i < mu->n_tensors; i++)
        live[i] = (interval){UINT32_MAX, 0};
    for (uint32_t n = step; n != PO_NONE && po_mu_inside(mu, n, step); n = po_mu_next(mu, n)) {
        const po_mu_statement *s = &mu->nodes[n].statement;
        if (mu->nodes[n].kind != PO_MU_STATEMENT)
            continue;
        for (uint32_t k = 0; k <= s->n_in; k++) {
            uint32_t tensor = po_mu_touched(s, k);
            if (mu->tensors[tensor].place != PO_MU_SHARED)
                continue;
            interval tiles = tiles_of(mu, cg_below_scope(mu, n, &mu->tensors[tensor]));
            widen(&live[tensor], position[tiles.first], position[cg_last_inside(mu, tiles.last)]);
        }
    }
    uint32_t n_here = 0, *here = PO_NEW_N(g->arena, uint32_t, mu->n_tensors + 1);
    for (uint32_t i = 0; i < mu->n_tensors; i++)
        if (mu->tensors[i].place == PO_MU_SHARED && live[i].first <= live[i].last)
            here[n_here++] = i;
    const uint32_t n_open = open_first(g, here, n_here);
    int64_t floats = 0;
    place_all(g, live, here + n_open, n_here - n_open, &floats);
    const char *end = place_open(g, live, here, n_open, number(g, floats));
    *most = !*most || strcmp(*most, "0") == 0 ? end
            : strcmp(end, "0") == 0 || strcmp(*most, end) == 0
                ? *most
                : po_arena_printf(g->arena, "pk_most(%s, %s)", *most, end);
}

po_status cg_memory(cg *g) {
    const po_mu *mu = g->mu;
    g->tensor = PO_NEW_N(g->arena, cg_tensor, mu->n_tensors + 1);
    uint32_t *position = PO_NEW_N(g->arena, uint32_t, mu->n_nodes + 1), at = 0;
    interval *live = PO_NEW_N(g->arena, interval, mu->n_tensors + 1);
    uint32_t *writer = PO_NEW_N(g->arena, uint32_t, mu->n_tensors + 1);
    for (uint32_t i = 0; i < mu->n_tensors; i++) {
        live[i] = (interval){UINT32_MAX, 0};
        writer[i] = g->tensor[i].filled_by = PO_NONE;
    }
    for (uint32_t n = mu->first; n != PO_NONE; n = po_mu_next(mu, n)) {
        position[n] = at++;
        if (mu->nodes[n].kind != PO_MU_STATEMENT)
            continue;
        used(g, n, live, position[po_mu_step_of(mu, n)], position[po_mu_step_of(mu, n)]);
        uint32_t *first = &writer[mu->nodes[n].statement.out.tensor];
        *first = *first == PO_NONE ? n : *first;
    }
    /* What is only read was put there before the first step. */
    for (uint32_t i = 0; i < mu->n_tensors; i++)
        if (writer[i] == PO_NONE && live[i].first <= live[i].last)
            widen(&live[i], 0, at);
    uint32_t n_device = 0, *device = PO_NEW_N(g->arena, uint32_t, mu->n_tensors + 1);
    for (uint32_t i = 0; i < mu->n_tensors; i++)
        if (mu->tensors[i].place == PO_MU_DEVICE && live[i].first <= live[i].last)
            device[n_device++] = i;
    by_size(mu, device, n_device);
    const uint32_t n_open = open_first(g, device, n_device);
    int64_t floats = 0;
    (void)cg_keep(g, "device");
    (void)cg_keep(g, "scratch");
    place_all(g, live, device + n_open, n_device - n_open, &floats);
    const char *end = place_open(g, live, device, n_open, number(g, floats)), *scratch = "0";
    fill_shared(g, device, n_device, writer);
    for (uint32_t step = mu->first; step != PO_NONE; step = mu->nodes[step].next)
        shared_of_step(g, step, position, &scratch);
    g->sizes->all[CG_DEVICE].expression = end;
    g->sizes->all[CG_SCRATCH].expression = scratch;
    return PO_OK;
}

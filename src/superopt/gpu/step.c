/* Parts put together, and naive steps as kernels. */
#include "superopt/gpu/join.h"

/* --- a muGraph behind another --- */

typedef struct appending {
    po_arena *arena;
    po_mu *to;
    const po_mu *from;
    po_mu_view *twin;
    uint32_t *label, *node; /* by those of `from`: those of `to`, PO_NONE */
} appending;

static appending begin(po_arena *arena, po_mu *to, const po_mu *from, po_mu_view *twin) {
    appending a = {arena,
                   to,
                   from,
                   twin,
                   PO_NEW_N(arena, uint32_t, from->n_labels + 1),
                   PO_NEW_N(arena, uint32_t, from->n_nodes + 1)};
    for (uint32_t i = 0; i < from->n_labels; i++)
        a.label[i] = PO_NONE;
    for (uint32_t i = 0; i < from->n_nodes; i++)
        a.node[i] = PO_NONE;
    return a;
}

static uint32_t label_of(appending *a, uint32_t label) {
    if (a->label[label] == PO_NONE)
        a->label[label] =
            po_mu_add_label(a->to, a->from->labels[label].name, a->from->labels[label].extent);
    return a->label[label];
}

static uint32_t tensor_of(appending *a, uint32_t tensor) {
    po_mu_view *twin = &a->twin[tensor];
    const po_mu_tensor *t = &a->from->tensors[tensor];
    if (twin->tensor != PO_NONE)
        return twin->tensor;
    twin->tensor = po_mu_add_tensor(a->to, t->name, t->place, t->rank, t->dims);
    for (uint32_t x = 0; x < t->rank; x++) {
        twin->axis[x] = x;
        twin->times[x] = 1;
    }
    po_mu_tensor *to = &a->to->tensors[twin->tensor];
    to->type = t->type;
    to->number = t->number;
    to->table = t->table;
    to->scope = t->scope == PO_NONE ? PO_NONE : a->node[t->scope];
    return twin->tensor;
}

static po_mu_access access_of(appending *a, const po_mu_access *from) {
    po_mu_access to = po_mu_access_of(a->to, tensor_of(a, from->tensor));
    const po_mu_view *twin = &a->twin[from->tensor];
    for (uint32_t x = 0; x < a->from->tensors[from->tensor].rank; x++) {
        const po_mu_index *i = &from->axes[x];
        po_mu_at(a->to, &to, twin->axis[x], twin->times[x] * i->offset, PO_NONE);
        for (uint32_t k = 0; k < i->n; k++)
            po_mu_at(a->to, &to, twin->axis[x], twin->times[x] * i->terms[k].coef,
                     label_of(a, i->terms[k].label));
    }
    return to;
}

static void append_statement(appending *a, uint32_t parent, const po_mu_statement *s) {
    uint32_t id = po_mu_add_statement(a->to, parent, s->combine);
    a->to->nodes[id].statement.fresh = s->fresh;
    for (uint32_t k = 0; k < s->n_in; k++)
        po_mu_operand(a->to, id, access_of(a, &s->in[k]));
    po_mu_copy_items(a->to, id, s);
    po_mu_access out = access_of(a, &s->out);
    a->to->nodes[id].statement.out = out;
}

static void append_children(appending *a, uint32_t parent, uint32_t first) {
    for (uint32_t n = first; n != PO_NONE; n = a->from->nodes[n].next) {
        const po_mu_node *node = &a->from->nodes[n];
        if (node->kind == PO_MU_STATEMENT) {
            append_statement(a, parent, &node->statement);
            continue;
        }
        a->node[n] =
            node->kind == PO_MU_STEP
                ? po_mu_add_step(a->to, node->name)
                : po_mu_add_loop(a->to, parent, node->loop, label_of(a, node->label), node->chunk);
        append_children(a, a->node[n], node->first);
    }
}

void gpu_append(po_arena *arena, po_mu *to, const po_mu *from, const po_mu_view *twin) {
    po_mu_view *own = PO_NEW_N(arena, po_mu_view, from->n_tensors + 1);
    memcpy(own, twin, from->n_tensors * sizeof *own);
    appending a = begin(arena, to, from, own);
    append_children(&a, PO_NONE, from->first);
}

/* --- a naive step --- */

/* Elements that a block makes, and that it adds up where it adds up. */
enum { EACH = 2048, SUMMED = 8192 };

typedef struct grid_of {
    uint32_t n, label[PO_MU_MAX_GRID];
    int64_t chunk[PO_MU_MAX_GRID];
    double blocks;
} grid_of;

/* Labels of an access in the order of its axes, larger digits first. */
static uint32_t labels_of(const po_mu *mu, const po_mu_access *a, uint32_t *labels, uint32_t most) {
    uint32_t n = 0;
    for (uint32_t x = 0; x < mu->tensors[a->tensor].rank; x++)
        for (int64_t below = INT64_MAX;;) {
            const po_mu_term *best = NULL;
            for (uint32_t k = 0; k < a->axes[x].n; k++) {
                const po_mu_term *t = &a->axes[x].terms[k];
                int64_t size = t->coef < 0 ? -t->coef : t->coef;
                if (size < below && (!best || size > (best->coef < 0 ? -best->coef : best->coef)))
                    best = t;
            }
            if (!best)
                break;
            below = best->coef < 0 ? -best->coef : best->coef;
            bool known = false;
            for (uint32_t i = 0; i < n; i++)
                known |= labels[i] == best->label;
            if (!known && n < most)
                labels[n++] = best->label;
        }
    return n;
}

static grid_of grid_for(const po_mu *mu, const po_mu_access *out, int64_t each) {
    enum { MOST = 16 };
    grid_of g = {.blocks = 1};
    uint32_t labels[MOST], n = labels_of(mu, out, labels, MOST);
    int64_t chunk[MOST], left = each;
    for (uint32_t i = n; i-- > 0;) {
        int64_t extent = mu->labels[labels[i]].extent;
        chunk[i] = extent < left ? extent : left < 1 ? 1 : left;
        left /= chunk[i];
        left = left < 1 ? 1 : left;
    }
    /* The outermost three that are cut; where there are more, those inside stay whole. */
    for (uint32_t i = 0; i < n && g.n < PO_MU_MAX_GRID; i++) {
        int64_t extent = mu->labels[labels[i]].extent;
        if (chunk[i] >= extent)
            continue;
        g.label[g.n] = labels[i];
        g.chunk[g.n++] = chunk[i];
        g.blocks *= (double)((extent + chunk[i] - 1) / chunk[i]);
    }
    return g;
}

/* What the step's first statement adds up for each element. */
static double summed(po_arena *arena, const po_mu *mu, const po_mu_statement *s) {
    uint32_t n_kept, n_reduced, *kept, *reduced;
    double n = 1;
    po_mu_labels_of(mu, s, arena, &n_kept, &kept, &n_reduced, &reduced);
    for (uint32_t i = 0; i < n_reduced; i++)
        n *= (double)mu->labels[reduced[i]].extent;
    return n;
}

static double bytes_of(const po_mu_tensor *t) {
    return (double)(po_mu_elements(t) * po_mu_bytes(t->type));
}

static double seconds_of(po_arena *arena, const po_mu *mu, uint32_t step, const po_gpu *gpu,
                         double blocks) {
    po_gpu_work work = {.blocks = blocks, .math = PO_GPU_F32};
    for (uint32_t n = mu->nodes[step].first; n != PO_NONE; n = mu->nodes[n].next) {
        const po_mu_statement *s = &mu->nodes[n].statement;
        uint32_t n_kept, n_reduced, *kept, *reduced;
        double times = s->n_items;
        po_mu_labels_of(mu, s, arena, &n_kept, &kept, &n_reduced, &reduced);
        for (uint32_t i = 0; i < n_kept + n_reduced; i++)
            times *= (double)mu->labels[i < n_kept ? kept[i] : reduced[i - n_kept]].extent;
        work.scalar += times;
        for (uint32_t k = 0; k <= s->n_in; k++) {
            const po_mu_tensor *t = &mu->tensors[po_mu_touched(s, k)];
            work.dram += t->place == PO_MU_REGISTER || t->place == PO_MU_TABLE ? 0 : bytes_of(t);
        }
    }
    return po_gpu_seconds(gpu, &work, true);
}

double gpu_append_step(po_arena *arena, po_mu *to, const po_mu *naive, uint32_t step,
                       const po_gpu *gpu, po_mu_view *twin) {
    appending a = begin(arena, to, naive, twin);
    const po_mu_node *first = &naive->nodes[naive->nodes[step].first];
    double depth = summed(arena, naive, &first->statement);
    int64_t each = depth > 1 ? (int64_t)(SUMMED / depth) : EACH;
    grid_of g = grid_for(naive, &first->statement.out, each < 1 ? 1 : each);
    uint32_t at = po_mu_add_step(to, naive->nodes[step].name), scope = PO_NONE;
    for (uint32_t i = 0; i < g.n; i++)
        at = scope = po_mu_add_loop(to, at, PO_MU_GRID, label_of(&a, g.label[i]), g.chunk[i]);
    for (uint32_t n = naive->nodes[step].first; n != PO_NONE; n = naive->nodes[n].next) {
        const po_mu_statement *s = &naive->nodes[n].statement;
        const po_mu_tensor *t = &naive->tensors[s->out.tensor];
        bool local = t->place == PO_MU_REGISTER;
        bool apart = !local && s->combine != PO_MU_SET && s->fresh;
        po_mu_view home = {.tensor = PO_NONE};
        if (local || apart) { /* sums stay in the block until they are whole */
            home = twin[s->out.tensor];
            home.tensor =
                home.tensor == PO_NONE && apart ? tensor_of(&a, s->out.tensor) : home.tensor;
            if (apart)
                home = twin[s->out.tensor];
            uint32_t own =
                po_mu_add_tensor(to, local ? t->name : "sum", PO_MU_SHARED, t->rank, t->dims);
            to->tensors[own].scope = scope;
            po_mu_view plain = {.tensor = own};
            for (uint32_t x = 0; x < t->rank; x++) {
                plain.axis[x] = x;
                plain.times[x] = 1;
            }
            twin[s->out.tensor] = plain;
        }
        append_statement(&a, at, s);
        if (apart) {
            po_mu_access from = access_of(&a, &s->out);
            twin[s->out.tensor] = home;
            po_mu_access out = access_of(&a, &s->out);
            uint32_t id = po_mu_add_statement(to, at, PO_MU_SET);
            to->nodes[id].statement.out = out;
            po_mu_item_of(to, id, PO_MU_OPERAND, po_mu_operand(to, id, from), 0, 0);
        }
    }
    return seconds_of(arena, naive, step, gpu, g.blocks);
}

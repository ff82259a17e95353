/* Naive steps as kernels. */
#include "superopt/gpu/join.h"

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
    part_appending a = part_append_begin(arena, to, naive, twin);
    const po_mu_node *first = &naive->nodes[naive->nodes[step].first];
    double depth = summed(arena, naive, &first->statement);
    int64_t each = depth > 1 ? (int64_t)(SUMMED / depth) : EACH;
    grid_of g = grid_for(naive, &first->statement.out, each < 1 ? 1 : each);
    uint32_t at = po_mu_add_step(to, naive->nodes[step].name), scope = PO_NONE;
    for (uint32_t i = 0; i < g.n; i++)
        at = scope =
            po_mu_add_loop(to, at, PO_MU_GRID, part_append_label(&a, g.label[i]), g.chunk[i]);
    for (uint32_t n = naive->nodes[step].first; n != PO_NONE; n = naive->nodes[n].next) {
        const po_mu_statement *s = &naive->nodes[n].statement;
        const po_mu_tensor *t = &naive->tensors[s->out.tensor];
        bool local = t->place == PO_MU_REGISTER;
        bool apart = !local && s->combine != PO_MU_SET && s->fresh;
        po_mu_view home = {.tensor = PO_NONE};
        if (local || apart) { /* sums stay in the block until they are whole */
            home = twin[s->out.tensor];
            home.tensor = home.tensor == PO_NONE && apart ? part_append_tensor(&a, s->out.tensor)
                                                          : home.tensor;
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
        part_append_statement(&a, at, s);
        if (apart) {
            po_mu_access from = part_append_access(&a, &s->out);
            twin[s->out.tensor] = home;
            po_mu_access out = part_append_access(&a, &s->out);
            uint32_t id = po_mu_add_statement(to, at, PO_MU_SET);
            to->nodes[id].statement.out = out;
            po_mu_item_of(to, id, PO_MU_OPERAND, po_mu_operand(to, id, from), 0, 0);
        }
    }
    return seconds_of(arena, naive, step, gpu, g.blocks);
}

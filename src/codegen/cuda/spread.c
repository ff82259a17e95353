/* Steps without GRID loops, as lowering makes them, are dealt to blocks: each statement, with those
 * fused to it, becomes a step in GRID loops over what it writes. */
#include "codegen/cuda/internal.h"

enum {
    SMALL = 65536,   /* iterations of a step that one block does */
    FEW_BLOCKS = 216 /* so many at least where there is work for them: two a processor */
};

static double work_of(const po_mu *mu, po_arena *arena, uint32_t step) {
    double all = 0;
    for (uint32_t n = step; n != PO_NONE && po_mu_inside(mu, n, step); n = po_mu_next(mu, n)) {
        uint32_t n_kept, n_reduced, *kept, *reduced;
        double times = 1;
        if (mu->nodes[n].kind != PO_MU_STATEMENT)
            continue;
        po_mu_labels_of(mu, &mu->nodes[n].statement, arena, &n_kept, &kept, &n_reduced, &reduced);
        for (uint32_t i = 0; i < n_kept; i++)
            times *= (double)mu->labels[kept[i]].extent;
        for (uint32_t i = 0; i < n_reduced; i++)
            times *= (double)mu->labels[reduced[i]].extent;
        all += times;
    }
    return all;
}

static bool is_fused(const po_mu *mu, uint32_t node) {
    return mu->nodes[node].kind == PO_MU_STATEMENT && mu->nodes[node].statement.fused;
}

/* The node behind a statement and those fused to it. */
static uint32_t behind(const po_mu *mu, uint32_t node) {
    do
        node = mu->nodes[node].next;
    while (node != PO_NONE && is_fused(mu, node));
    return node;
}

static bool is_grid(const po_mu *mu, uint32_t node) {
    return node != PO_NONE && mu->nodes[node].kind == PO_MU_LOOP &&
           mu->nodes[node].loop == PO_MU_GRID;
}

/* Each part of a step becomes a step; what more than one of them names lies in memory then. */
static void split(cu *c, uint32_t step) {
    po_mu *mu = c->mu;
    for (uint32_t t = 0; t < mu->n_tensors; t++) {
        po_mu_tensor *tensor = &mu->tensors[t];
        if (tensor->place != PO_MU_SHARED && tensor->place != PO_MU_REGISTER)
            continue;
        uint32_t parts = 0;
        for (uint32_t n = mu->nodes[step].first; n != PO_NONE;) {
            uint32_t to = behind(mu, n);
            bool named = false;
            for (uint32_t i = n; i != to; i = mu->nodes[i].next)
                named |= po_mu_names(mu, i, t);
            parts += named;
            n = to;
        }
        if (parts < 2)
            continue;
        tensor->place = PO_MU_DEVICE;
        tensor->scope = PO_NONE;
        po_mu_layout(mu, t, 1, 0);
    }
    uint32_t at = step;
    for (uint32_t n; (n = behind(mu, mu->nodes[step].first)) != PO_NONE;) {
        uint32_t next = po_mu_add_step(mu, mu->nodes[step].name);
        cu_detach(mu, next);
        cu_attach(mu, PO_NONE, mu->nodes[at].next, next);
        for (uint32_t to = behind(mu, n); n != to;) {
            uint32_t then = mu->nodes[n].next;
            cu_detach(mu, n);
            cu_attach(mu, next, PO_NONE, n);
            n = then;
        }
        at = next;
    }
    /* Tensors whose scope was the step: that of where they are named now. */
    for (uint32_t s = step; s != PO_NONE && s != mu->nodes[at].next; s = mu->nodes[s].next)
        for (uint32_t t = 0; t < mu->n_tensors; t++)
            if (mu->tensors[t].scope == step && po_mu_names(mu, s, t))
                mu->tensors[t].scope = s;
}

/* --- chunks --- */

typedef struct chunks {
    uint32_t n, label[CU_LABELS]; /* outermost first */
    int64_t chunk[CU_LABELS];
} chunks;

static int64_t power_below(int64_t v) {
    int64_t p = 1;
    while (p * 2 <= v)
        p *= 2;
    return p;
}

static int64_t at_most(int64_t a, int64_t b) {
    return a < b ? a : b;
}

static int64_t steps_of(const po_mu *mu, const po_mu_access *access, uint32_t label) {
    int64_t step = 0;
    for (uint32_t x = 0; x < mu->tensors[access->tensor].rank; x++)
        step += po_mu_coef(&access->axes[x], label) * mu->tensors[access->tensor].stride[x];
    return step < 0 ? -step : step;
}

/* Whole inner labels, until so many elements are together; what does not fit is cut. */
static void fill(const po_mu *mu, chunks *k, int64_t elements) {
    for (uint32_t i = k->n; i-- > 0;) {
        int64_t extent = mu->labels[k->label[i]].extent;
        k->chunk[i] = extent <= elements ? extent : power_below(elements);
        elements = elements / k->chunk[i] > 0 ? elements / k->chunk[i] : 1;
    }
}

static int64_t blocks_of(const po_mu *mu, const chunks *k) {
    double blocks = 1;
    for (uint32_t i = 0; i < k->n; i++)
        blocks *= (double)po_ceil_div(mu->labels[k->label[i]].extent, k->chunk[i]);
    return blocks > 1e9 ? 1000000000 : (int64_t)blocks;
}

/* A product's block: 128 x 128 down to 16 x 32, as long as there are too few blocks. */
static void of_product(const po_mu *mu, const cu_product *p, chunks *k) {
    static const int64_t sizes[][2] = {{128, 128}, {64, 128}, {64, 64},
                                       {32, 64},   {16, 64},  {16, 32}};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        int64_t rows = sizes[s][0], cols = sizes[s][1];
        for (uint32_t i = 0; i < k->n; i++)
            k->chunk[i] = 1;
        for (uint32_t side = 0; side < 2; side++) {
            const uint32_t *label = side ? p->col : p->row;
            int64_t room = side ? cols : rows;
            for (uint32_t j = side ? p->n_col : p->n_row; j-- > 0 && room > 1;)
                for (uint32_t i = 0; i < k->n; i++)
                    if (k->label[i] == label[j]) {
                        int64_t extent = mu->labels[label[j]].extent;
                        k->chunk[i] = at_most(extent, power_below(room));
                        /* An odd rest inside would leave tiles that are no boxes. */
                        room = extent <= room ? room / extent : 1;
                    }
        }
        if (blocks_of(mu, k) >= FEW_BLOCKS)
            return;
    }
}

static void choose(cu *c, uint32_t node, chunks *k) {
    const po_mu *mu = c->mu;
    const po_mu_statement *s = &mu->nodes[node].statement;
    uint32_t n_kept, n_reduced, *kept, *reduced;
    po_mu_labels_of(mu, s, c->arena, &n_kept, &kept, &n_reduced, &reduced);
    int64_t elements = 1, sums = 1;
    k->n = 0;
    for (uint32_t i = 0; i < n_kept && k->n < CU_LABELS; i++) { /* far ones first */
        uint32_t at = k->n++;
        int64_t step = steps_of(mu, &s->out, kept[i]);
        for (; at > 0 && steps_of(mu, &s->out, k->label[at - 1]) < step; at--)
            k->label[at] = k->label[at - 1];
        k->label[at] = kept[i];
        elements = mu->labels[kept[i]].extent * at_most(elements, INT32_MAX);
    }
    for (uint32_t i = 0; i < n_reduced; i++)
        sums = mu->labels[reduced[i]].extent * at_most(sums, INT32_MAX);
    cu_product product;
    if (cu_product_of(c, node, &product)) {
        of_product(mu, &product, k);
        return;
    }
    bool along = false; /* what is added up lies side by side */
    for (uint32_t i = 0; i < s->n_in && n_reduced > 0; i++)
        for (uint32_t r = 0; r < n_reduced; r++)
            along |= steps_of(mu, &s->in[i], reduced[r]) == 1;
    int64_t each = power_below(elements / FEW_BLOCKS > 256 ? elements / FEW_BLOCKS : 256);
    each = at_most(each, 4096);
    if (n_reduced > 0)
        each = !along ? at_most(each, 256) : sums >= 2048 ? 1 : sums >= 128 ? 8 : 64;
    fill(mu, k, each);
    /* A map that turns its operand about: squares, so that both sides move whole sectors. */
    for (uint32_t i = 0; n_reduced == 0 && k->n > 1 && i < s->n_in; i++)
        for (uint32_t j = 0; j + 1 < k->n; j++) {
            uint32_t last = k->n - 1;
            if (steps_of(mu, &s->in[i], k->label[j]) != 1 || k->chunk[j] >= 32 ||
                steps_of(mu, &s->in[i], k->label[last]) <= 1)
                continue;
            for (uint32_t x = 0; x < k->n; x++)
                k->chunk[x] = 1;
            k->chunk[j] = at_most(mu->labels[k->label[j]].extent, 32);
            k->chunk[last] = at_most(mu->labels[k->label[last]].extent, 32);
        }
}

/* Whether all that a part's statements write lies apart, so that blocks may deal it out. */
static bool may_deal(cu *c, uint32_t from) {
    for (uint32_t n = from; n != behind(c->mu, from); n = c->mu->nodes[n].next)
        if (c->mu->nodes[n].kind != PO_MU_STATEMENT ||
            !cu_is_apart(c, n, &c->mu->nodes[n].statement.out))
            return false;
    return true;
}

static void deal(cu *c, uint32_t step) {
    po_mu *mu = c->mu;
    uint32_t node = mu->nodes[step].first, loop = step;
    chunks k;
    choose(c, node, &k);
    for (uint32_t i = 0; i < k.n; i++)
        if (k.chunk[i] < mu->labels[k.label[i]].extent)
            loop = cu_wrap(mu, mu->nodes[loop].first, PO_NONE, PO_MU_GRID, k.label[i], k.chunk[i]);
    for (uint32_t t = 0; t < mu->n_tensors; t++)
        if ((mu->tensors[t].place == PO_MU_SHARED || mu->tensors[t].place == PO_MU_REGISTER) &&
            po_mu_names(mu, step, t))
            mu->tensors[t].scope = loop;
}

/* A FOR loop that is all of a step, and whose chunks are apart, is a GRID loop. */
static void as_grid(cu *c, uint32_t loop) {
    po_mu_node *n = &c->mu->nodes[loop];
    if (n->kind != PO_MU_LOOP || n->loop != PO_MU_FOR)
        return;
    n->loop = PO_MU_GRID;
    if (po_mu_check(c->ctx, c->mu, INT64_MAX) != PO_OK) {
        po_ctx_clear(c->ctx);
        c->mu->nodes[loop].loop = PO_MU_FOR;
    }
}

po_status cu_spread(cu *c) {
    po_mu *mu = c->mu;
    for (uint32_t step = mu->first; step != PO_NONE; step = mu->nodes[step].next) {
        uint32_t first = mu->nodes[step].first;
        if (first == PO_NONE || is_grid(mu, first))
            continue;
        if (behind(mu, first) != PO_NONE) {
            if (work_of(mu, c->arena, step) <= SMALL)
                continue;
            split(c, step);
        }
        if (mu->nodes[mu->nodes[step].first].kind == PO_MU_LOOP)
            as_grid(c, mu->nodes[step].first);
        else if (may_deal(c, mu->nodes[step].first))
            deal(c, step);
    }
    return PO_OK;
}

/* Steps that follow one another and need nothing of one another, as one kernel: each block does the
 * work of a block of each, in one loop where both have one. Saves launches, and fills a GPU that
 * one of them would not. */
#include "superopt/gpu/internal.h"
#include "superopt/gpu/join.h"

enum { MOST = 8 /* steps together */ };

typedef struct shape {
    bool plain; /* grids around statements and at most one loop with statements */
    uint32_t n_grid, grid[PO_MU_MAX_GRID];
    uint32_t body, loop; /* nodes; loop PO_NONE */
    double blocks;
} shape;

static shape shape_of(const po_mu *mu, uint32_t step) {
    shape s = {.plain = true, .body = step, .loop = PO_NONE, .blocks = 1};
    for (;;) {
        uint32_t n = mu->nodes[s.body].first;
        if (mu->nodes[n].kind != PO_MU_LOOP || mu->nodes[n].loop != PO_MU_GRID)
            break;
        s.grid[s.n_grid++] = s.body = n;
        int64_t extent = mu->labels[mu->nodes[n].label].extent, chunk = mu->nodes[n].chunk;
        s.blocks *= (double)((extent + chunk - 1) / chunk);
    }
    for (uint32_t n = mu->nodes[s.body].first; n != PO_NONE; n = mu->nodes[n].next) {
        if (mu->nodes[n].kind == PO_MU_STATEMENT)
            continue;
        s.plain &= s.loop == PO_NONE && mu->nodes[n].loop == PO_MU_FOR;
        s.loop = n;
        for (uint32_t k = mu->nodes[n].first; k != PO_NONE; k = mu->nodes[k].next)
            s.plain &= mu->nodes[k].kind == PO_MU_STATEMENT;
    }
    return s;
}

static bool same_loop(const po_mu *mu, uint32_t a, uint32_t b) {
    return mu->labels[mu->nodes[a].label].extent == mu->labels[mu->nodes[b].label].extent &&
           mu->nodes[a].chunk == mu->nodes[b].chunk;
}

static bool alike(const po_mu *mu, const shape *a, const shape *b) {
    if (!a->plain || !b->plain || a->n_grid != b->n_grid || a->n_grid == 0 ||
        (a->loop == PO_NONE) != (b->loop == PO_NONE))
        return false;
    for (uint32_t i = 0; i < a->n_grid; i++)
        if (!same_loop(mu, a->grid[i], b->grid[i]))
            return false;
    return a->loop == PO_NONE || same_loop(mu, a->loop, b->loop);
}

/* Whether one step writes what the other touches. */
static bool touches(const po_mu *mu, uint32_t writer, uint32_t other) {
    for (uint32_t n = writer; n != PO_NONE && po_mu_inside(mu, n, writer); n = po_mu_next(mu, n)) {
        uint32_t t = mu->nodes[n].statement.out.tensor;
        if (mu->nodes[n].kind != PO_MU_STATEMENT || mu->tensors[t].place == PO_MU_SHARED)
            continue;
        if (po_mu_names(mu, other, t))
            return true;
    }
    return false;
}

/* Bytes of a block, what a loop copies twice. */
static int64_t shared_of(const po_mu *mu, uint32_t step, uint32_t loop) {
    int64_t bytes = 0;
    for (uint32_t i = 0; i < mu->n_tensors; i++) {
        const po_mu_tensor *t = &mu->tensors[i];
        bool in = false;
        for (uint32_t n = step; n != PO_NONE && po_mu_inside(mu, n, step) && !in;
             n = po_mu_next(mu, n))
            in = mu->nodes[n].kind == PO_MU_STATEMENT && mu->nodes[n].statement.out.tensor == i;
        if (in && t->place == PO_MU_SHARED)
            bytes +=
                po_mu_bytes(t->type) * t->floats * (loop != PO_NONE && t->scope == loop ? 2 : 1);
    }
    return bytes;
}

typedef struct merging {
    const po_mu *mu;
    po_mu *to;
    uint32_t *node, *label, *tensor; /* by those of mu: those of `to` */
    const po_mu_statement **copied;  /* by tensor: the copy of another step that stands for it */
} merging;

/* --- copies that two steps make alike --- */

static bool is_copy(const po_mu *mu, const po_mu_statement *s) {
    return s->combine == PO_MU_SET && s->n_in == 1 && s->n_items == 1 &&
           mu->tensors[s->out.tensor].place == PO_MU_SHARED &&
           mu->tensors[s->in[0].tensor].place != PO_MU_SHARED;
}

/* Whether index b is index a once b's labels stand for a's; notes which do. */
static bool stands_for(const merging *m, const po_mu_index *a, const po_mu_index *b) {
    if (a->n != b->n || a->offset != b->offset)
        return false;
    for (uint32_t i = 0; i < b->n; i++) {
        uint32_t label = b->terms[i].label, k = 0;
        while (k < a->n && a->terms[k].coef != b->terms[i].coef)
            k++;
        if (k == a->n)
            return false;
        uint32_t other = a->terms[k].label;
        if (m->label[label] == label && label != other &&
            m->mu->labels[label].extent == m->mu->labels[other].extent)
            m->label[label] = other;
        if (m->label[label] != other)
            return false;
    }
    return true;
}

static bool same_copy(const merging *m, const po_mu_statement *a, const po_mu_statement *b) {
    const po_mu_tensor *x = &m->mu->tensors[a->out.tensor], *y = &m->mu->tensors[b->out.tensor];
    if (a->in[0].tensor != b->in[0].tensor || x->type != y->type || x->rank != y->rank)
        return false;
    for (uint32_t i = 0; i < m->mu->tensors[a->in[0].tensor].rank; i++)
        if (!stands_for(m, &a->in[0].axes[i], &b->in[0].axes[i]))
            return false;
    for (uint32_t i = 0; i < x->rank; i++)
        if (x->dims[i] != y->dims[i] || !stands_for(m, &a->out.axes[i], &b->out.axes[i]))
            return false;
    return true;
}

static uint32_t writers(const po_mu *mu, uint32_t tensor) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < mu->n_nodes; i++)
        n += mu->nodes[i].kind == PO_MU_STATEMENT && mu->nodes[i].statement.out.tensor == tensor;
    return n;
}

/* Lets the copies of a body stand for those of another that are the same. Their bytes. */
static int64_t share_copies(const merging *m, uint32_t mine, uint32_t other, bool twice) {
    const po_mu *mu = m->mu;
    int64_t bytes = 0;
    for (uint32_t b = mu->nodes[other].first; b != PO_NONE; b = mu->nodes[b].next)
        for (uint32_t a = mu->nodes[mine].first; a != PO_NONE; a = mu->nodes[a].next) {
            const po_mu_statement *x = &mu->nodes[a].statement, *y = &mu->nodes[b].statement;
            uint32_t t = y->out.tensor;
            if (mu->nodes[a].kind != PO_MU_STATEMENT || mu->nodes[b].kind != PO_MU_STATEMENT ||
                !is_copy(mu, x) || !is_copy(mu, y) || writers(mu, t) != 1 ||
                writers(mu, x->out.tensor) != 1 || m->copied[t] || !same_copy(m, x, y))
                continue;
            m->tensor[t] = m->tensor[x->out.tensor];
            m->copied[t] = x;
            bytes += po_mu_bytes(mu->tensors[t].type) * mu->tensors[t].floats * (twice ? 2 : 1);
        }
    return bytes;
}

/* --- writing --- */

static po_mu_access merged_access(const merging *m, const po_mu_access *a) {
    po_mu_access out = po_mu_access_of(m->to, m->tensor[a->tensor]);
    for (uint32_t x = 0; x < m->mu->tensors[a->tensor].rank; x++) {
        po_mu_at(m->to, &out, x, a->axes[x].offset, PO_NONE);
        for (uint32_t k = 0; k < a->axes[x].n; k++)
            po_mu_at(m->to, &out, x, a->axes[x].terms[k].coef, m->label[a->axes[x].terms[k].label]);
    }
    return out;
}

static void copy_statement(const merging *m, uint32_t parent, const po_mu_statement *s) {
    po_mu_access in[PO_MU_MAX_INPUTS];
    if (m->copied[s->out.tensor])
        return;
    for (uint32_t k = 0; k < s->n_in; k++)
        in[k] = merged_access(m, &s->in[k]);
    part_same_statement(m->to, parent, s, in, merged_access(m, &s->out));
}

/* The statements of a body before its loop, or behind it: copies to the block, or the others. */
static void copy_side(const merging *m, uint32_t parent, uint32_t body, bool behind, bool copies) {
    bool passed = false;
    for (uint32_t n = m->mu->nodes[body].first; n != PO_NONE; n = m->mu->nodes[n].next) {
        const po_mu_statement *s = &m->mu->nodes[n].statement;
        if (m->mu->nodes[n].kind != PO_MU_STATEMENT)
            passed = true;
        else if (passed == behind && is_copy(m->mu, s) == copies)
            copy_statement(m, parent, s);
    }
}

/* All copies first, so that they can be under way together. */
static void copy_sides(const merging *m, uint32_t parent, const uint32_t *bodies, uint32_t n,
                       bool behind) {
    for (uint32_t k = 0; k < n; k++)
        copy_side(m, parent, bodies[k], behind, true);
    for (uint32_t k = 0; k < n; k++)
        copy_side(m, parent, bodies[k], behind, false);
}

static void copy_tree(const merging *m, uint32_t parent, uint32_t first) {
    for (uint32_t n = first; n != PO_NONE; n = m->mu->nodes[n].next) {
        const po_mu_node *node = &m->mu->nodes[n];
        if (node->kind == PO_MU_STATEMENT) {
            copy_statement(m, parent, &node->statement);
            continue;
        }
        m->node[n] = po_mu_add_loop(m->to, parent, node->loop, m->label[node->label], node->chunk);
        copy_tree(m, m->node[n], node->first);
    }
}

/* One step of several: the first one's loops, all their bodies. */
static void copy_group(const merging *m, const uint32_t *steps, const shape *shapes, uint32_t n) {
    const po_mu *mu = m->mu;
    uint32_t at = po_mu_add_step(m->to, mu->nodes[steps[0]].name);
    if (n == 1) {
        m->node[steps[0]] = at;
        copy_tree(m, at, mu->nodes[steps[0]].first);
        return;
    }
    for (uint32_t i = 0; i < shapes[0].n_grid; i++) {
        const po_mu_node *g = &mu->nodes[shapes[0].grid[i]];
        at = po_mu_add_loop(m->to, at, PO_MU_GRID, g->label, g->chunk);
        for (uint32_t k = 0; k < n; k++)
            m->node[shapes[k].grid[i]] = at;
    }
    uint32_t bodies[MOST], loops[MOST];
    for (uint32_t k = 0; k < n; k++) {
        bodies[k] = shapes[k].body;
        loops[k] = shapes[k].loop;
    }
    copy_sides(m, at, bodies, n, false);
    if (shapes[0].loop == PO_NONE)
        return;
    const po_mu_node *f = &mu->nodes[shapes[0].loop];
    uint32_t loop = po_mu_add_loop(m->to, at, PO_MU_FOR, f->label, f->chunk);
    for (uint32_t k = 0; k < n; k++)
        m->node[loops[k]] = loop;
    copy_sides(m, loop, loops, n, false);
    copy_sides(m, at, bodies, n, true);
}

/* The labels of a step's loops are those of the first one's. */
static void join_loops(const merging *m, const shape *first, const shape *s) {
    const po_mu *mu = m->mu;
    for (uint32_t i = 0; i < s->n_grid; i++)
        m->label[mu->nodes[s->grid[i]].label] = mu->nodes[first->grid[i]].label;
    if (s->loop != PO_NONE)
        m->label[mu->nodes[s->loop].label] = mu->nodes[first->loop].label;
}

/* Takes back what was noted of a step. */
static void part(const merging *m, uint32_t step) {
    const po_mu *mu = m->mu;
    for (uint32_t n = step; n != PO_NONE && po_mu_inside(mu, n, step); n = po_mu_next(mu, n)) {
        const po_mu_statement *s = &mu->nodes[n].statement;
        if (mu->nodes[n].kind != PO_MU_STATEMENT)
            continue;
        m->copied[s->out.tensor] = NULL;
        m->tensor[s->out.tensor] = s->out.tensor;
    }
    for (uint32_t n = step; n != PO_NONE && po_mu_inside(mu, n, step); n = po_mu_next(mu, n)) {
        const po_mu_statement *s = &mu->nodes[n].statement;
        if (mu->nodes[n].kind == PO_MU_LOOP)
            m->label[mu->nodes[n].label] = mu->nodes[n].label;
        for (uint32_t k = 0; mu->nodes[n].kind == PO_MU_STATEMENT && k <= s->n_in; k++) {
            const po_mu_access *a = k < s->n_in ? &s->in[k] : &s->out;
            for (uint32_t x = 0; x < mu->tensors[a->tensor].rank; x++)
                for (uint32_t i = 0; i < a->axes[x].n; i++)
                    m->label[a->axes[x].terms[i].label] = a->axes[x].terms[i].label;
        }
    }
}

const po_mu *gpu_merge_steps(po_arena *arena, const po_mu *mu, const po_gpu *gpu,
                             uint32_t *merged) {
    enum { FEW = 4 /* blocks of a multiprocessor: more are no gain */ };
    merging m = {mu,
                 part_same_tables(arena, mu),
                 PO_NEW_N(arena, uint32_t, mu->n_nodes + 1),
                 PO_NEW_N(arena, uint32_t, mu->n_labels + 1),
                 PO_NEW_N(arena, uint32_t, mu->n_tensors + 1),
                 PO_NEW_N(arena, const po_mu_statement *, mu->n_tensors + 1)};
    for (uint32_t i = 0; i < mu->n_labels; i++)
        m.label[i] = i;
    for (uint32_t i = 0; i < mu->n_tensors; i++)
        m.tensor[i] = i;
    *merged = 0;
    for (uint32_t step = mu->first; step != PO_NONE;) {
        uint32_t group[MOST] = {step}, n = 1, next = mu->nodes[step].next;
        shape shapes[MOST] = {shape_of(mu, step)};
        int64_t shared = shared_of(mu, step, shapes[0].loop);
        for (; next != PO_NONE && n < MOST; next = mu->nodes[next].next) {
            shape s = shape_of(mu, next);
            int64_t more = shared_of(mu, next, s.loop);
            bool fits = alike(mu, &shapes[0], &s) && s.blocks <= FEW * (double)gpu->sms;
            for (uint32_t k = 0; k < n && fits; k++)
                fits = !touches(mu, group[k], next) && !touches(mu, next, group[k]);
            if (!fits)
                break;
            join_loops(&m, &shapes[0], &s);
            more -= share_copies(&m, shapes[0].body, s.body, false);
            if (s.loop != PO_NONE)
                more -= share_copies(&m, shapes[0].loop, s.loop, true);
            if (shared + more > GPU_SHARED) {
                part(&m, next);
                break;
            }
            group[n] = next;
            shapes[n++] = s;
            shared += more;
        }
        copy_group(&m, group, shapes, n);
        *merged += n - 1;
        step = next;
    }
    for (uint32_t i = 0; i < m.to->n_tensors; i++)
        if (m.to->tensors[i].scope != PO_NONE)
            m.to->tensors[i].scope = m.node[m.to->tensors[i].scope];
    for (uint32_t i = 0; i < m.to->n_tensors; i++)
        po_mu_layout(m.to, i, 1, 0);
    return *merged ? m.to : mu;
}

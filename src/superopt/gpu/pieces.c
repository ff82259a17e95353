/* Pieces that need not be put together: what only copies a tensor made of them to a block copies
 * the pieces, in a scheduled muGraph. */
#include "superopt/gpu/join.h"

/* Whether the statement's own range is that of the source's axis wherever it does not fill the
 * target's: what is outside the piece is then outside the source, and not copied. */
static bool is_piece(const po_mu *mu, const po_mu_statement *s) {
    const po_mu_tensor *to = &mu->tensors[s->out.tensor];
    for (uint32_t x = 0; x < to->rank; x++) {
        const po_mu_index *i = &s->out.axes[x];
        if (i->n == 0 && i->offset == 0 && to->dims[x] == 1)
            continue;
        if (i->n != 1 || i->terms[0].coef != 1)
            return false;
        uint32_t label = i->terms[0].label;
        int64_t extent = mu->labels[label].extent;
        if (i->offset == 0 && extent == to->dims[x])
            continue;
        uint32_t axis = part_axis_of(mu, &s->in[0], label);
        if (axis == PO_NONE || s->in[0].axes[axis].offset != 0 ||
            mu->tensors[s->in[0].tensor].dims[axis] != extent)
            return false;
    }
    return to->type == mu->tensors[s->in[0].tensor].type && po_mu_is_inside(mu, &s->in[0]);
}

typedef struct pieces {
    bool *split;                   /* by tensor: is read in pieces */
    const po_mu_statement **piece; /* in order */
    uint32_t n, cap;
} pieces;

static void find_pieces(po_arena *arena, const po_mu *mu, pieces *p) {
    bool *written = PO_NEW_N(arena, bool, mu->n_tensors + 1);
    p->split = PO_NEW_N(arena, bool, mu->n_tensors + 1);
    for (uint32_t i = 0; i < mu->n_tensors; i++)
        p->split[i] = mu->tensors[i].place == PO_MU_DEVICE;
    for (uint32_t n = 0; n < mu->n_nodes; n++) {
        const po_mu_statement *s = &mu->nodes[n].statement;
        if (mu->nodes[n].kind != PO_MU_STATEMENT)
            continue;
        bool copies = part_is_copy(mu, s);
        written[s->out.tensor] = true;
        p->split[s->out.tensor] &= copies && is_piece(mu, s);
        /* Who reads it copies it to a block. */
        for (uint32_t k = 0; k < s->n_in; k++)
            p->split[s->in[k].tensor] &= copies && mu->tensors[s->out.tensor].place == PO_MU_SHARED;
    }
    for (uint32_t i = 0; i < mu->n_tensors; i++)
        p->split[i] &= written[i];
    for (uint32_t n = po_mu_next(mu, PO_NONE); n != PO_NONE; n = po_mu_next(mu, n))
        if (mu->nodes[n].kind == PO_MU_STATEMENT && p->split[mu->nodes[n].statement.out.tensor])
            PO_PUSH(arena, p->piece, p->n, p->cap, &mu->nodes[n].statement);
}

typedef struct rewriting {
    const po_mu *mu;
    po_mu *to;
    const pieces *p;
    uint32_t *node; /* of mu: that of `to` */
    bool failed;
} rewriting;

/* Whether all statements below a node make pieces. */
static bool only_pieces(const rewriting *r, uint32_t node) {
    for (uint32_t n = r->mu->nodes[node].first; n != PO_NONE; n = r->mu->nodes[n].next) {
        const po_mu_node *at = &r->mu->nodes[n];
        if (at->kind == PO_MU_STATEMENT ? !r->p->split[at->statement.out.tensor]
                                        : !only_pieces(r, n))
            return false;
    }
    return true;
}

static void rewrite(rewriting *r, uint32_t parent, uint32_t first) {
    const po_mu *mu = r->mu;
    for (uint32_t n = first; n != PO_NONE; n = mu->nodes[n].next) {
        const po_mu_node *node = &mu->nodes[n];
        const po_mu_statement *s = &node->statement;
        if (node->kind == PO_MU_STEP && only_pieces(r, n))
            continue;
        if (node->kind != PO_MU_STATEMENT) {
            r->node[n] = node->kind == PO_MU_STEP
                             ? po_mu_add_step(r->to, node->name)
                             : po_mu_add_loop(r->to, parent, node->loop, node->label, node->chunk);
            rewrite(r, r->node[n], node->first);
            continue;
        }
        po_mu_access in[PO_MU_MAX_INPUTS], out = part_same_access(r->to, mu, &s->out);
        bool split = s->n_in == 1 && r->p->split[s->in[0].tensor];
        r->failed |= r->p->split[s->out.tensor];
        for (uint32_t k = 0; k < s->n_in && !split; k++)
            in[k] = part_same_access(r->to, mu, &s->in[k]);
        if (!split)
            part_same_statement(r->to, parent, s, in, out);
        for (uint32_t k = 0; k < r->p->n && split; k++) {
            if (r->p->piece[k]->out.tensor != s->in[0].tensor)
                continue;
            r->failed |= !part_through(r->to, mu, r->p->piece[k], &s->in[0], &in[0]);
            if (!r->failed)
                part_same_statement(r->to, parent, s, in, out);
        }
    }
}

const po_mu *gpu_read_pieces(po_arena *arena, const po_mu *mu) {
    pieces p = {0};
    find_pieces(arena, mu, &p);
    if (p.n == 0)
        return mu;
    rewriting r = {mu, part_same_tables(arena, mu), &p, PO_NEW_N(arena, uint32_t, mu->n_nodes + 1),
                   false};
    for (uint32_t i = 0; i < mu->n_nodes; i++)
        r.node[i] = PO_NONE;
    rewrite(&r, PO_NONE, mu->first);
    for (uint32_t i = 0; i < r.to->n_tensors; i++)
        if (r.to->tensors[i].scope != PO_NONE)
            r.to->tensors[i].scope = r.node[r.to->tensors[i].scope];
    for (uint32_t i = 0; i < r.to->n_tensors; i++)
        po_mu_layout(r.to, i, 1, 0);
    return r.failed ? mu : r.to;
}

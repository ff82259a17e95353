/* A copy of a muGraph in the form that the CUDA printer works on: no LANES loops, fused statements
 * or REGISTER tensors, which say how a CPU's registers are used; what is added up over chunks lies
 * in SHARED tensors of f32. */
#include "codegen/cuda/internal.h"

void cu_detach(po_mu *mu, uint32_t node) {
    uint32_t parent = mu->nodes[node].parent;
    uint32_t *at = parent == PO_NONE ? &mu->first : &mu->nodes[parent].first;
    while (*at != node)
        at = &mu->nodes[*at].next;
    *at = mu->nodes[node].next;
    mu->nodes[node].next = PO_NONE;
}

void cu_attach(po_mu *mu, uint32_t parent, uint32_t before, uint32_t node) {
    uint32_t *at = parent == PO_NONE ? &mu->first : &mu->nodes[parent].first;
    while (*at != before)
        at = &mu->nodes[*at].next;
    mu->nodes[node].next = before;
    mu->nodes[node].parent = parent;
    *at = node;
}

uint32_t cu_wrap(po_mu *mu, uint32_t from, uint32_t to, po_mu_loop_kind kind, uint32_t label,
                 int64_t chunk) {
    uint32_t parent = mu->nodes[from].parent;
    uint32_t loop = po_mu_add_loop(mu, parent, kind, label, chunk);
    cu_detach(mu, loop);
    cu_attach(mu, parent, from, loop);
    while (mu->nodes[loop].next != to) {
        uint32_t node = mu->nodes[loop].next;
        cu_detach(mu, node);
        cu_attach(mu, loop, PO_NONE, node);
    }
    return loop;
}

void cu_replace(po_mu *mu, uint32_t node, const po_mu_access *from, const po_mu_access *to) {
    po_mu_statement *s = &mu->nodes[node].statement;
    po_mu_access old = *from;
    for (uint32_t k = 0; k < s->n_in; k++)
        if (po_mu_same_access(mu, &s->in[k], &old))
            s->in[k] = *to;
    if (po_mu_same_access(mu, &s->out, &old))
        s->out = *to;
}

static po_status copy_of(cu *c, const po_mu *mu) {
    po_text text;
    po_text_init(&text, c->arena);
    po_mu_print(&text, mu);
    return po_mu_parse(c->ctx, c->arena, text.data, &c->mu);
}

static void plain(po_mu *mu) {
    for (uint32_t n = 0; n < mu->n_nodes; n++) {
        if (mu->nodes[n].kind == PO_MU_LOOP && mu->nodes[n].loop == PO_MU_LANES) {
            mu->nodes[n].chunk = po_mu_chunk(mu, n);
            mu->nodes[n].loop = PO_MU_FOR;
        }
        mu->nodes[n].statement.fused = false;
    }
    for (uint32_t t = 0; t < mu->n_tensors; t++)
        if (mu->tensors[t].place == PO_MU_REGISTER)
            mu->tensors[t].place = PO_MU_SHARED;
}

/* The outermost of the FOR loops around a statement over labels that it reduces; PO_NONE. */
static uint32_t outermost_reducing(const po_mu *mu, uint32_t node) {
    const po_mu_statement *s = &mu->nodes[node].statement;
    uint32_t found = PO_NONE;
    for (uint32_t at = mu->nodes[node].parent; at != PO_NONE; at = mu->nodes[at].parent) {
        const po_mu_node *n = &mu->nodes[at];
        bool read = false;
        if (n->kind != PO_MU_LOOP || n->loop != PO_MU_FOR || po_mu_has(mu, &s->out, n->label))
            continue;
        for (uint32_t k = 0; k < s->n_in; k++)
            read |= po_mu_has(mu, &s->in[k], n->label);
        if (read)
            found = at;
    }
    return found;
}

/* Whether only one statement of the step names a tensor, and it once. */
static bool is_alone(const po_mu *mu, uint32_t node, uint32_t tensor) {
    uint32_t step = po_mu_step_of(mu, node), uses = 0;
    for (uint32_t n = step; n != PO_NONE && po_mu_inside(mu, n, step); n = po_mu_next(mu, n)) {
        const po_mu_statement *s = &mu->nodes[n].statement;
        if (mu->nodes[n].kind != PO_MU_STATEMENT)
            continue;
        for (uint32_t k = 0; k <= s->n_in; k++)
            uses += po_mu_touched(s, k) == tensor;
    }
    return uses == 1;
}

/* A tensor that holds the block's part of what a statement writes, by its labels. */
static po_mu_access part_of(po_mu *mu, const po_mu_access *access, const char *name,
                            uint32_t scope) {
    uint32_t labels[PO_MU_MAX_RANK + 1], n = 0;
    int64_t dims[PO_MU_MAX_RANK];
    for (uint32_t x = 0; x < mu->tensors[access->tensor].rank; x++)
        for (uint32_t i = 0; i < access->axes[x].n; i++) {
            uint32_t label = access->axes[x].terms[i].label;
            bool there = false;
            for (uint32_t k = 0; k < n; k++)
                there |= labels[k] == label;
            if (!there && n < PO_MU_MAX_RANK)
                labels[n++] = label;
        }
    for (uint32_t k = 0; k < n; k++)
        dims[k] = mu->labels[labels[k]].extent;
    if (n == 0)
        dims[0] = 1;
    uint32_t t = po_mu_add_tensor(mu, name, PO_MU_SHARED, n ? n : 1, dims);
    mu->tensors[t].scope = scope;
    po_mu_access a = po_mu_access_of(mu, t);
    for (uint32_t k = 0; k < n; k++)
        po_mu_at(mu, &a, k, 1, labels[k]);
    return a;
}

/* Labels of an access, each once. */
static uint32_t n_labels_of(const po_mu *mu, const po_mu_access *access) {
    uint32_t n = 0;
    for (uint32_t l = 0; l < mu->n_labels; l++)
        n += po_mu_has(mu, access, l);
    return n;
}

/* What is added up over chunks in memory, or rounded each time, is added up in a SHARED tensor, and
 * stored behind the loop. */
static void accumulate(cu *c, uint32_t node) {
    po_mu *mu = c->mu;
    const po_mu_statement *s = &mu->nodes[node].statement;
    const po_mu_tensor *t = &mu->tensors[s->out.tensor];
    if (s->combine == PO_MU_SET || n_labels_of(mu, &s->out) > PO_MU_MAX_RANK)
        return;
    uint32_t loop = outermost_reducing(mu, node);
    if (loop == PO_NONE || !cu_is_global(t) || !is_alone(mu, node, s->out.tensor) ||
        !cu_is_apart(c, node, &s->out))
        return;
    /* Loops over kept labels inside the reducing one would let only a part live. */
    for (uint32_t at = mu->nodes[node].parent; at != loop; at = mu->nodes[at].parent)
        if (po_mu_has(mu, &s->out, mu->nodes[at].label))
            return;
    uint32_t parent = mu->nodes[loop].parent;
    po_mu_access old = s->out;
    bool fresh = s->fresh;
    po_mu_access sum = part_of(mu, &old, po_arena_printf(c->arena, "%s.sum", t->name), parent);
    mu->nodes[node].statement.out = sum;
    uint32_t store = po_mu_add_statement(mu, parent, PO_MU_SET);
    mu->nodes[store].statement.out = old;
    (void)po_mu_item_of(mu, store, PO_MU_OPERAND, po_mu_operand(mu, store, sum), 0, 0);
    cu_detach(mu, store);
    cu_attach(mu, parent, mu->nodes[loop].next, store);
    if (fresh)
        return;
    uint32_t load = po_mu_add_statement(mu, parent, PO_MU_SET);
    mu->nodes[load].statement.out = sum;
    (void)po_mu_item_of(mu, load, PO_MU_OPERAND, po_mu_operand(mu, load, old), 0, 0);
    cu_detach(mu, load);
    cu_attach(mu, parent, loop, load);
}

po_status cu_normal(cu *c, const po_mu *mu) {
    PO_TRY(copy_of(c, mu));
    PO_TRY(cu_spread(c));
    plain(c->mu);
    cu_slice(c);
    uint32_t n_nodes = c->mu->n_nodes;
    for (uint32_t n = 0; n < n_nodes; n++)
        if (c->mu->nodes[n].kind == PO_MU_STATEMENT)
            accumulate(c, n);
    return PO_OK;
}

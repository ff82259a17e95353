/* Where the threads of a block must wait for each other: between an access to something and a
 * later one of which either writes, unless each thread finds there what it alone put there.
 *
 * The step is walked as it runs, with what was accessed since the last barrier in hand; a loop's
 * body until no more barriers are found to be needed, as its end meets its start. */
#include "codegen/cuda/internal.h"

typedef struct touch {
    uint32_t tensor, node;
    const po_mu_access *access;
    bool write;
    const char *who; /* which thread has which element, given the access; NULL: no telling */
} touch;

typedef struct walk {
    cu *c;
    touch *touched;
    uint32_t n, cap;
    bool found; /* a barrier that was not there before */
} walk;

static const char *labels_text(const cu *c, uint32_t node, const uint32_t *labels, uint32_t n) {
    po_text text;
    po_text_init(&text, c->arena);
    po_text_puts(&text, "");
    for (uint32_t i = 0; i < n; i++)
        po_text_printf(&text, " %u:%lld", labels[i], (long long)cu_count(c, node, labels[i]));
    return text.data == NULL ? "" : text.data;
}

static bool has_all(const po_mu *mu, const po_mu_access *a, const uint32_t *labels, uint32_t n) {
    for (uint32_t i = 0; i < n; i++)
        if (!po_mu_has(mu, a, labels[i]))
            return false;
    return true;
}

/* The first of the lanes that have an element. */
static const char *by_rows(const cu *c, uint32_t node) {
    const cu_node *n = &c->node[node];
    return n->lanes == c->threads ? "first"
                                  : po_arena_printf(c->arena, "rows %u%s", n->lanes,
                                                    labels_text(c, node, n->order, n->n_order));
}

static const char *who(const cu *c, uint32_t node, const po_mu_access *a, bool write) {
    const cu_node *n = &c->node[node];
    const cu_fragment *f = &c->fragment[n->fragment];
    switch (n->work) {
    case CU_MAP:
    case CU_THREAD:
        for (uint32_t i = 0; i < n->n_red; i++)
            if (n->work == CU_THREAD && po_mu_has(c->mu, a, n->red[i]))
                return NULL;
        return has_all(c->mu, a, n->order, n->n_order)
                   ? (n->work == CU_MAP && n->lanes > 1
                          ? by_rows(c, node)
                          : po_arena_printf(c->arena, "map %u%s", n->vector,
                                            labels_text(c, node, n->order, n->n_order)))
                   : NULL;
    case CU_ROWS:
        return write ? by_rows(c, node) : NULL;
    case CU_PRODUCT:
        return write ? po_arena_printf(c->arena, "tile %u", n->fragment) : NULL;
    case CU_FRAGMENT:
        return has_all(c->mu, a, f->row, f->n_row) && has_all(c->mu, a, f->col, f->n_col)
                   ? po_arena_printf(c->arena, "tile %u", n->fragment)
                   : NULL;
    case CU_TILE_ROW: /* the first of the lanes that have the row */
        return c->tensor[c->mu->nodes[node].statement.out.tensor].fragment == 0 &&
                       has_all(c->mu, a, f->row, f->n_row)
                   ? po_arena_printf(c->arena, "band %u%s", f->tiles_r,
                                     labels_text(c, node, f->row, f->n_row))
                   : NULL;
    case CU_BLOCK:
        return write ? "first" : NULL;
    case CU_ONE:
        return "first";
    case CU_COPY:
    case CU_TILE_SUM:
        break;
    }
    return NULL;
}

static bool meets(const cu *c, uint32_t a, uint32_t b) {
    const po_mu_tensor *s = &c->mu->tensors[a], *t = &c->mu->tensors[b];
    const cu_tensor *x = &c->tensor[a], *y = &c->tensor[b];
    if (a == b)
        return true;
    if (s->place != PO_MU_SHARED || t->place != PO_MU_SHARED)
        return false;
    return x->offset < y->offset + y->elements * y->stages * po_mu_bytes(t->type) &&
           y->offset < x->offset + x->elements * x->stages * po_mu_bytes(s->type);
}

static bool clash(const cu *c, const touch *a, const touch *b) {
    if ((!a->write && !b->write) || !meets(c, a->tensor, b->tensor))
        return false;
    if (a->tensor != b->tensor || a->who == NULL || b->who == NULL)
        return true;
    if (strcmp(a->who, b->who) != 0)
        return true;
    return strcmp(a->who, "first") != 0 && !po_mu_same_access(c->mu, a->access, b->access);
}

/* Whether the block's threads meet in a tensor at all: memory that is only read is left out. */
static bool matters(const cu *c, uint32_t node, uint32_t tensor) {
    const po_mu_tensor *t = &c->mu->tensors[tensor];
    if (t->place == PO_MU_SHARED)
        return c->tensor[tensor].fragment == 0;
    return cu_is_global(t) && cu_writes(c, po_mu_step_of(c->mu, node), tensor);
}

static const char *reason_of(const cu *c, const touch *old, const touch *now) {
    const char *name = c->mu->tensors[now->tensor].name;
    if (old->tensor != now->tensor)
        return po_arena_printf(c->arena, "%s lies where %s was", name,
                               c->mu->tensors[old->tensor].name);
    return po_arena_printf(c->arena, "%s was %s by other threads", name,
                           old->write ? "written" : "read");
}

static void add(walk *w, const touch *t) {
    if (matters(w->c, t->node, t->tensor))
        PO_PUSH(w->c->arena, w->touched, w->n, w->cap, *t);
}

/* Sets a barrier before a node if one of its accesses needs it. */
static void look(walk *w, uint32_t node, const touch *now, uint32_t n) {
    cu_node *at = &w->c->node[node];
    for (uint32_t i = 0; i < n && !at->barrier; i++)
        for (uint32_t k = 0; k < w->n && !at->barrier; k++)
            if (matters(w->c, now[i].node, now[i].tensor) && clash(w->c, &w->touched[k], &now[i])) {
                at->barrier = w->found = true;
                at->reason = reason_of(w->c, &w->touched[k], &now[i]);
            }
    if (at->barrier)
        w->n = 0;
}

static void statement(walk *w, uint32_t node) {
    cu *c = w->c;
    const po_mu_statement *s = &c->mu->nodes[node].statement;
    touch now[PO_MU_MAX_INPUTS + 1];
    if (c->node[node].pipelined)
        return;
    for (uint32_t k = 0; k <= s->n_in; k++) {
        const po_mu_access *a = k < s->n_in ? &s->in[k] : &s->out;
        now[k] = (touch){a->tensor, node, a, k == s->n_in, who(c, node, a, k == s->n_in)};
    }
    look(w, node, now, s->n_in + 1);
    if (c->node[node].work == CU_BLOCK) /* all wait before the first thread stores */
        w->n = 0;
    for (uint32_t k = c->node[node].work == CU_BLOCK ? s->n_in : 0; k <= s->n_in; k++)
        add(w, &now[k]);
}

static void block(walk *w, uint32_t parent);

static void loop(walk *w, uint32_t node) {
    cu *c = w->c;
    const po_mu *mu = c->mu;
    if (mu->nodes[node].loop == PO_MU_GRID) {
        block(w, node);
        return;
    }
    if (c->node[node].n_copies > 0) {
        touch *now = PO_NEW_N(c->arena, touch, c->node[node].n_copies);
        uint32_t n = 0;
        for (uint32_t k = mu->nodes[node].first; k != PO_NONE; k = mu->nodes[k].next)
            if (mu->nodes[k].kind == PO_MU_STATEMENT && c->node[k].pipelined)
                now[n++] = (touch){mu->nodes[k].statement.out.tensor, k,
                                   &mu->nodes[k].statement.out, true, NULL};
        look(w, node, now, n);
        w->n = 0; /* each chunk starts with a barrier */
        block(w, node);
        return;
    }
    /* Its end meets its start: twice, until that finds nothing more. */
    bool found = w->found;
    do {
        w->found = false;
        block(w, node);
        block(w, node);
        found |= w->found;
    } while (w->found);
    w->found = found;
}

static void block(walk *w, uint32_t parent) {
    for (uint32_t n = w->c->mu->nodes[parent].first; n != PO_NONE; n = w->c->mu->nodes[n].next) {
        if (w->c->mu->nodes[n].kind == PO_MU_STATEMENT)
            statement(w, n);
        else
            loop(w, n);
    }
}

void cu_barriers(cu *c, uint32_t step) {
    walk w = {.c = c};
    block(&w, step);
}

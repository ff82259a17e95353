/* What stays in register tiles: SHARED tensors that products, maps over their tiles and sums over
 * the tiles' columns alone use. Where each warp has whole rows, what has an element a row stays in
 * registers too, and a product takes its rows from the tile of the one before: attention's scores,
 * their maxima and what is made of them never lie in shared memory, as in FlashAttention-2 (Dao
 * 2023, arXiv 2307.08691, section 3). */
#include "codegen/cuda/internal.h"

enum { LABELS = 64, TILE_ROWS = 16 };

/* Of a statement, labels that run in the block. */
typedef struct roles {
    uint32_t n_kept, n_red, kept[LABELS], red[LABELS];
} roles;

int64_t cu_registers(const cu_fragment *f) {
    return (int64_t)f->tiles_r * f->tiles_c * (f->tensor ? 4 : 1);
}

static int64_t registers_of(const cu *c, const cu_tensor *t) {
    const cu_fragment *f = &c->fragment[t->fragment - 1];
    return t->rows ? 2 * (int64_t)f->tiles_r : cu_registers(f);
}

static bool labels_of(const cu *c, uint32_t node, roles *l) {
    const po_mu_statement *s = &c->mu->nodes[node].statement;
    uint32_t n_kept, n_reduced, *kept, *reduced;
    po_mu_labels_of(c->mu, s, c->arena, &n_kept, &kept, &n_reduced, &reduced);
    if (n_kept > LABELS || n_reduced > LABELS)
        return false;
    l->n_kept = cu_running(c, node, kept, n_kept, l->kept);
    l->n_red = s->combine == PO_MU_SET ? 0 : cu_running(c, node, reduced, n_reduced, l->red);
    return true;
}

static bool are_rows(const cu *c, uint32_t node, const roles *l, const cu_fragment *f) {
    return cu_same_set(l->kept, l->n_kept, f->row, f->n_row) &&
           cu_count_all(c, node, l->kept, l->n_kept) == f->rows;
}

static bool are_columns(const cu *c, uint32_t node, const roles *l, const cu_fragment *f) {
    return l->n_red > 0 && cu_same_set(l->red, l->n_red, f->col, f->n_col) &&
           cu_count_all(c, node, l->red, l->n_red) == f->cols;
}

static bool are_elements(const cu *c, uint32_t node, const roles *l, const cu_fragment *f) {
    uint32_t all[2 * CU_LABELS];
    memcpy(all, f->row, f->n_row * sizeof *all);
    memcpy(all + f->n_row, f->col, f->n_col * sizeof *all);
    return l->n_red == 0 && cu_same_set(l->kept, l->n_kept, all, f->n_row + f->n_col) &&
           cu_count_all(c, node, l->kept, l->n_kept) == f->rows * f->cols;
}

/* --- whole rows --- */

static bool has_whole_rows(const cu_fragment *f) {
    return f->tensor && f->warps_c == 1 && f->warps_k == 1 &&
           f->rows == (int64_t)TILE_ROWS * f->tiles_r * f->warps_r;
}

/* Whether each thread has the same rows of both. */
static bool same_rows(const cu_fragment *a, const cu_fragment *b) {
    return has_whole_rows(a) && has_whole_rows(b) && a->rows == b->rows &&
           a->tiles_r == b->tiles_r && a->n_row == b->n_row &&
           memcmp(a->row, b->row, a->n_row * sizeof *a->row) == 0;
}

bool cu_is_held(const cu *c, uint32_t node) {
    const cu_node *n = &c->node[node];
    uint32_t tensor = c->mu->nodes[node].statement.in[n->product.a].tensor, red[CU_LABELS];
    const cu_tensor *t = &c->tensor[tensor];
    if (t->fragment == 0 || t->rows || n->swapped || (n->kind != 1 && n->kind != 2))
        return false;
    const cu_fragment *from = &c->fragment[t->fragment - 1], *to = &c->fragment[n->fragment];
    uint32_t n_red = cu_running(c, node, n->product.red, n->product.n_red, red);
    return same_rows(from, to) && n_red == 1 && from->n_col == 1 && red[0] == from->col[0] &&
           cu_count(c, node, red[0]) == from->cols && from->cols % 16 == 0 &&
           !cu_has_tail(c, node, red[0]);
}

/* Deals whole rows to warps where sums over a tile's columns may then stay in registers; false:
 * nowhere. Other tiles of the same rows follow. */
static bool deal_rows(cu *c, uint32_t step) {
    const po_mu *mu = c->mu;
    uint32_t warps = c->threads / CU_WARP;
    bool any = false, wanted[CU_FRAGMENTS] = {false};
    for (uint32_t n = step; n != PO_NONE && po_mu_inside(mu, n, step); n = po_mu_next(mu, n)) {
        roles l;
        if (mu->nodes[n].kind != PO_MU_STATEMENT || c->node[n].work == CU_PRODUCT ||
            c->node[n].work == CU_ONE || !labels_of(c, n, &l))
            continue;
        for (uint32_t i = 0; i < c->n_fragments; i++) {
            const cu_fragment *f = &c->fragment[i];
            wanted[i] |= f->tensor && f->rows % (TILE_ROWS * (int64_t)warps) == 0 &&
                         are_rows(c, n, &l, f) && are_columns(c, n, &l, f);
            any |= wanted[i];
        }
    }
    for (uint32_t i = 0; i < c->n_fragments; i++) {
        cu_fragment *f = &c->fragment[i];
        bool follows = wanted[i];
        for (uint32_t k = 0; k < c->n_fragments && !follows; k++) {
            const cu_fragment *o = &c->fragment[k];
            follows = wanted[k] && f->tensor && f->rows == o->rows && f->n_row == o->n_row &&
                      memcmp(f->row, o->row, f->n_row * sizeof *f->row) == 0;
        }
        if (!follows)
            continue;
        f->warps_r = warps;
        f->warps_c = 1;
        f->tiles_r = (uint32_t)(f->rows / (TILE_ROWS * (int64_t)warps));
        f->tiles_c = (uint32_t)po_ceil_div(f->cols, 8);
        any &= cu_registers(f) <= CU_REGISTERS;
    }
    return any;
}

/* --- what goes together --- */

/* What a statement is, given where tensors are thought to lie; false: they do not go together. */
static bool role_of(const cu *c, uint32_t node, cu_work *work, uint32_t *fragment) {
    const po_mu_statement *s = &c->mu->nodes[node].statement;
    const cu_tensor *out = &c->tensor[s->out.tensor];
    uint32_t tile = PO_NONE, band = PO_NONE;
    roles l;
    *work = c->node[node].work;
    *fragment = c->node[node].fragment;
    for (uint32_t k = 0; k <= s->n_in; k++) {
        const cu_tensor *t = &c->tensor[po_mu_touched(s, k)];
        uint32_t *of = t->rows ? &band : &tile;
        if (t->fragment == 0)
            continue;
        if (*of != PO_NONE && *of != t->fragment - 1 &&
            (!t->rows || !same_rows(&c->fragment[*of], &c->fragment[t->fragment - 1])))
            return false;
        *of = t->fragment - 1;
    }
    if (tile == PO_NONE && band == PO_NONE)
        return true;
    if (*work == CU_ONE || !labels_of(c, node, &l))
        return false;
    for (uint32_t k = 0; k < s->n_in && s->fresh; k++)
        if (cu_leaves(c, &s->in[k]))
            return false;
    *fragment = tile != PO_NONE ? tile : band;
    const cu_fragment *f = &c->fragment[*fragment];
    if (tile == PO_NONE) {
        *work = CU_TILE_ROW;
        return l.n_red == 0 && are_rows(c, node, &l, f);
    }
    if (band != PO_NONE && !same_rows(f, &c->fragment[band]))
        return false;
    bool to_rows = out->fragment != 0 && out->rows;
    if (l.n_red > 0) {
        *work = CU_TILE_SUM;
        return to_rows && are_rows(c, node, &l, f) && are_columns(c, node, &l, f);
    }
    *work = CU_FRAGMENT;
    return !to_rows && are_elements(c, node, &l, f);
}

static bool product_has(const cu *c, uint32_t node, uint32_t tensor) {
    const po_mu_statement *s = &c->mu->nodes[node].statement;
    const cu_node *n = &c->node[node];
    for (uint32_t k = 0; k < s->n_in; k++)
        if (s->in[k].tensor == tensor && (k != n->product.a || !cu_is_held(c, node)))
            return false;
    return s->out.tensor != tensor ||
           (!c->tensor[tensor].rows && c->tensor[tensor].fragment == n->fragment + 1);
}

static bool stays(const cu *c, uint32_t step, uint32_t tensor) {
    const po_mu_access *first = NULL;
    for (uint32_t n = step; n != PO_NONE && po_mu_inside(c->mu, n, step);
         n = po_mu_next(c->mu, n)) {
        const po_mu_statement *s = &c->mu->nodes[n].statement;
        bool named = false;
        cu_work work;
        uint32_t fragment;
        if (c->mu->nodes[n].kind != PO_MU_STATEMENT)
            continue;
        for (uint32_t k = 0; k <= s->n_in; k++) {
            const po_mu_access *a = k < s->n_in ? &s->in[k] : &s->out;
            if (a->tensor != tensor)
                continue;
            named = true;
            first = first == NULL ? a : first;
            if (!po_mu_same_access(c->mu, a, first) || cu_leaves(c, a))
                return false;
        }
        if (named && !(c->node[n].work == CU_PRODUCT ? product_has(c, n, tensor)
                                                     : role_of(c, n, &work, &fragment)))
            return false;
    }
    return first != NULL;
}

/* --- all of a step --- */

/* What the statement makes of a tile or of its rows, if that may stay too. */
static bool follow(cu *c, uint32_t node) {
    const po_mu_statement *s = &c->mu->nodes[node].statement;
    cu_tensor *out = &c->tensor[s->out.tensor];
    roles l;
    if (c->mu->tensors[s->out.tensor].place != PO_MU_SHARED || out->fragment != 0 ||
        c->node[node].work == CU_PRODUCT || !labels_of(c, node, &l))
        return false;
    for (uint32_t k = 0; k < s->n_in; k++) {
        const cu_tensor *in = &c->tensor[s->in[k].tensor];
        const cu_fragment *f = in->fragment == 0 ? NULL : &c->fragment[in->fragment - 1];
        if (f == NULL || !has_whole_rows(f))
            continue;
        bool sum = !in->rows && are_rows(c, node, &l, f) && are_columns(c, node, &l, f);
        bool row = in->rows && l.n_red == 0 && are_rows(c, node, &l, f);
        if (sum || row || (!in->rows && are_elements(c, node, &l, f))) {
            out->fragment = in->fragment;
            out->rows = sum || row;
            return true;
        }
    }
    return false;
}

/* Where tensors lie: all that may stay at first. What one of them loses, others may lose with it:
 * again until nothing changes. */
static void settle(cu *c, uint32_t step) {
    const po_mu *mu = c->mu;
    for (uint32_t t = 0; t < mu->n_tensors; t++)
        c->tensor[t].fragment = 0, c->tensor[t].rows = false;
    for (uint32_t n = step; n != PO_NONE && po_mu_inside(mu, n, step); n = po_mu_next(mu, n)) {
        const po_mu_statement *s = &mu->nodes[n].statement;
        if (mu->nodes[n].kind == PO_MU_STATEMENT && c->node[n].work == CU_PRODUCT &&
            mu->tensors[s->out.tensor].place == PO_MU_SHARED)
            c->tensor[s->out.tensor].fragment = c->node[n].fragment + 1;
    }
    for (bool again = true; again;) {
        again = false;
        for (uint32_t n = step; n != PO_NONE && po_mu_inside(mu, n, step); n = po_mu_next(mu, n))
            again |= mu->nodes[n].kind == PO_MU_STATEMENT && follow(c, n);
    }
    for (bool again = true; again;) {
        again = false;
        int64_t registers = 0;
        for (uint32_t t = 0; t < mu->n_tensors; t++) {
            cu_tensor *tensor = &c->tensor[t];
            if (tensor->fragment == 0)
                continue;
            int64_t own = registers_of(c, tensor);
            registers += own;
            if (registers > CU_REGISTERS || !stays(c, step, t)) {
                registers -= own;
                tensor->fragment = 0;
                tensor->rows = false;
                again = true;
            }
        }
    }
}

static bool has_sums(const cu *c, uint32_t step) {
    for (uint32_t n = step; n != PO_NONE && po_mu_inside(c->mu, n, step);
         n = po_mu_next(c->mu, n)) {
        cu_work work;
        uint32_t fragment;
        if (c->mu->nodes[n].kind == PO_MU_STATEMENT && c->node[n].work != CU_PRODUCT &&
            role_of(c, n, &work, &fragment) && work == CU_TILE_SUM)
            return true;
    }
    return false;
}

void cu_reside(cu *c, uint32_t step) {
    cu_fragment before[CU_FRAGMENTS];
    memcpy(before, c->fragment, sizeof before);
    bool whole = deal_rows(c, step);
    if (whole)
        settle(c, step);
    if (!whole || !has_sums(c, step)) {
        memcpy(c->fragment, before, sizeof before);
        settle(c, step);
    }
    for (uint32_t n = step; n != PO_NONE && po_mu_inside(c->mu, n, step); n = po_mu_next(c->mu, n))
        if (c->mu->nodes[n].kind == PO_MU_STATEMENT && c->node[n].work != CU_PRODUCT)
            (void)role_of(c, n, &c->node[n].work, &c->node[n].fragment);
}

/* How each statement of a step is worked. */
#include "codegen/cuda/internal.h"

/* --- register tiles --- */

/* The warps so that each has as few tiles as can be, then so that operands are read least. */
static void deal_warps(const cu *c, cu_fragment *f) {
    int64_t tr = po_ceil_div(f->rows, f->tensor ? 16 : 4), tc = po_ceil_div(f->cols, 8);
    int64_t best = INT64_MAX, best_reads = INT64_MAX;
    uint32_t warps = c->threads / CU_WARP;
    for (uint32_t r = 1; r <= warps; r *= 2) {
        int64_t a = po_ceil_div(tr, r), b = po_ceil_div(tc, warps / r);
        int64_t reads = a * (f->tensor ? 2 : 1) + b;
        if (a * b > best || (a * b == best && reads >= best_reads))
            continue;
        best = a * b;
        best_reads = reads;
        f->warps_r = r;
        f->warps_c = warps / r;
        f->tiles_r = (uint32_t)a;
        f->tiles_c = (uint32_t)b;
    }
}

/* The register tile for a product: one that others have, or a new one; false: none is left, or it
 * takes too many registers. */
static bool fragment_for(cu *c, uint32_t node, cu_node *n) {
    const cu_product *p = &n->product;
    cu_fragment f = {.tensor = n->kind != 0};
    uint32_t row[CU_LABELS], col[CU_LABELS];
    uint32_t n_row = cu_running(c, node, p->row, p->n_row, row),
             n_col = cu_running(c, node, p->col, p->n_col, col);
    int64_t rows = cu_count_all(c, node, row, n_row), cols = cu_count_all(c, node, col, n_col);
    for (uint32_t i = 0; i < c->n_fragments; i++) {
        const cu_fragment *o = &c->fragment[i];
        bool as =
            cu_same_set(o->row, o->n_row, row, n_row) && cu_same_set(o->col, o->n_col, col, n_col);
        bool turned =
            cu_same_set(o->row, o->n_row, col, n_col) && cu_same_set(o->col, o->n_col, row, n_row);
        if (o->tensor != f.tensor || (!as && !turned) || o->rows * o->cols != rows * cols ||
            o->rows != (as ? rows : cols))
            continue;
        n->fragment = i;
        n->swapped = !as;
        return true;
    }
    if (c->n_fragments == CU_FRAGMENTS)
        return false;
    if (f.tensor) {
        int64_t as = po_ceil_div(rows, 16) * 16 * (po_ceil_div(cols, 8) * 8);
        int64_t turned = po_ceil_div(cols, 16) * 16 * (po_ceil_div(rows, 8) * 8);
        n->swapped = turned < as;
    }
    f.rows = n->swapped ? cols : rows;
    f.cols = n->swapped ? rows : cols;
    f.n_row = n->swapped ? n_col : n_row;
    f.n_col = n->swapped ? n_row : n_col;
    memcpy(f.row, n->swapped ? col : row, f.n_row * sizeof *row);
    memcpy(f.col, n->swapped ? row : col, f.n_col * sizeof *col);
    f.warps_k = 1;
    f.gather = PO_NONE;
    deal_warps(c, &f);
    if (cu_registers(&f) > CU_REGISTERS)
        return false;
    n->fragment = c->n_fragments;
    c->fragment[c->n_fragments++] = f;
    return true;
}

static uint32_t kind_of(const cu *c, const po_mu_statement *s, const cu_product *p) {
    po_mu_type a = c->mu->tensors[s->in[p->a].tensor].type,
               b = c->mu->tensors[s->in[p->b].tensor].type;
    if (a == PO_MU_F16 && b == PO_MU_F16)
        return 1;
    if (a == PO_MU_BF16 && b == PO_MU_BF16)
        return 2;
    if (a == PO_MU_F32 && b == PO_MU_F32)
        return c->options->tf32 ? 3 : 0;
    return c->options->tf32 ? 3 : 4;
}

/* --- orders and vectors --- */

/* Kept labels that run, the one that most accesses move along by single elements last. */
static void order_of(const cu *c, uint32_t node, const uint32_t *kept, uint32_t n_kept,
                     cu_node *n) {
    const po_mu_statement *s = &c->mu->nodes[node].statement;
    uint32_t best = PO_NONE;
    int64_t most = 0;
    n->n_order = 0;
    for (uint32_t i = 0; i < n_kept && n->n_order < CU_LABELS; i++) {
        if (cu_count(c, node, kept[i]) <= 1)
            continue;
        uint32_t at = n->n_order++;
        int64_t step = cu_step_of(c, &s->out, kept[i]);
        for (; at > 0 && cu_step_of(c, &s->out, n->order[at - 1]) < step; at--)
            n->order[at] = n->order[at - 1];
        n->order[at] = kept[i];
        int64_t score = 0;
        for (uint32_t k = 0; k <= s->n_in; k++) {
            const po_mu_access *a = k < s->n_in ? &s->in[k] : &s->out;
            if (cu_step_of(c, a, kept[i]) == 1 && c->tensor[a->tensor].fragment == 0)
                score += (cu_is_global(&c->mu->tensors[a->tensor]) ? 8 : 2) + (k == s->n_in);
        }
        if (score > most) {
            most = score;
            best = kept[i];
        }
    }
    for (uint32_t i = 0; best != PO_NONE && i + 1 < n->n_order; i++)
        if (n->order[i] == best) {
            n->order[i] = n->order[i + 1];
            n->order[i + 1] = best;
        }
}

/* Whether the label moves an axis that may be left: elements side by side are not all inside. */
static bool leaves_along(const cu *c, const po_mu_access *a, uint32_t label) {
    for (uint32_t x = 0; x < c->mu->tensors[a->tensor].rank; x++) {
        int64_t least, most;
        po_mu_range(c->mu, a, x, &least, &most);
        if (po_mu_coef(&a->axes[x], label) != 0 &&
            (least < 0 || most >= c->mu->tensors[a->tensor].dims[x]))
            return true;
    }
    return false;
}

/* Elements at a time along a label: all accesses move by it side by side, or not at all. */
static uint32_t vector_of(const cu *c, uint32_t node, uint32_t label, int64_t elements,
                          bool with_out) {
    const po_mu_statement *s = &c->mu->nodes[node].statement;
    int64_t vector = 8;
    for (uint32_t k = 0; k < s->n_in + with_out; k++) {
        const po_mu_access *a = k < s->n_in ? &s->in[k] : &s->out;
        if (c->mu->tensors[a->tensor].place == PO_MU_TABLE)
            return 1;
        if (cu_step_of(c, a, label) == 0 && !leaves_along(c, a, label))
            continue;
        if (leaves_along(c, a, label))
            return 1;
        int64_t most = 16 / po_mu_bytes(c->mu->tensors[a->tensor].type);
        vector = vector < most ? vector : most;
        int64_t side = cu_side(c, node, a, label, vector);
        vector = side < 1 ? 1 : side;
    }
    while (vector > 1 && elements / vector < c->threads)
        vector /= 2;
    return (uint32_t)vector;
}

/* --- statements --- */

static bool is_copy(const cu *c, uint32_t node, const po_mu_statement *s) {
    const po_mu_tensor *from = &c->mu->tensors[s->in[0].tensor],
                       *to = &c->mu->tensors[s->out.tensor];
    return s->combine == PO_MU_SET && s->n_in == 1 && s->n_items == 1 && cu_is_global(from) &&
           to->place == PO_MU_SHARED && from->type == to->type &&
           !cu_writes(c, po_mu_step_of(c->mu, node), s->in[0].tensor);
}

/* Lanes that add up an element: all elements at once where that leaves each at least eight, which
 * read 128 bytes side by side; no more than there are things to add. */
static uint32_t lanes_for(const cu *c, int64_t sums, int64_t elements) {
    uint32_t lanes = 1;
    while (lanes < CU_WARP && lanes * INT64_C(2) <= sums &&
           (lanes < 8 || lanes * INT64_C(2) * elements <= c->threads))
        lanes *= 2;
    return lanes;
}

static void plan_sum(cu *c, uint32_t node, const uint32_t *reduced, uint32_t n_reduced,
                     cu_node *n) {
    const po_mu_statement *s = &c->mu->nodes[node].statement;
    uint32_t best = PO_NONE;
    int64_t most = -1, sums = 1, elements = cu_count_all(c, node, n->order, n->n_order);
    n->n_red = 0;
    for (uint32_t i = 0; i < n_reduced && n->n_red < CU_LABELS; i++) {
        int64_t score = 0;
        if (cu_count(c, node, reduced[i]) <= 1)
            continue;
        sums *= cu_count(c, node, reduced[i]);
        n->red[n->n_red++] = reduced[i];
        for (uint32_t k = 0; k < s->n_in; k++)
            score += cu_step_of(c, &s->in[k], reduced[i]) == 1;
        if (score >= most) {
            most = score;
            best = reduced[i];
        }
    }
    for (uint32_t i = 0; i + 1 < n->n_red; i++)
        if (n->red[i] == best) {
            n->red[i] = n->red[i + 1];
            n->red[i + 1] = best;
        }
    bool along = false; /* the last kept label moves operands side by side, and no reduced one */
    for (uint32_t k = 0; k < s->n_in && n->n_order > 0; k++)
        along |= cu_step_of(c, &s->in[k], n->order[n->n_order - 1]) == 1;
    n->vector = 1;
    if (n->n_red == 0 || sums < 4 || (along && most == 0 && elements >= CU_WARP) ||
        (along && sums <= 64 && elements >= c->threads)) {
        n->work = CU_THREAD;
        return;
    }
    n->work = CU_ROWS;
    n->lanes = lanes_for(c, sums, elements);
    if (sums >= 512 && elements * CU_WARP * 2 < c->threads) {
        n->work = CU_BLOCK;
        n->lanes = c->threads;
    }
    if (most == 0)
        return;
    uint32_t threads = c->threads;
    c->threads = n->lanes; /* so that each lane has one vector at least */
    n->vector = vector_of(c, node, n->red[n->n_red - 1], sums, false);
    c->threads = threads;
}

static void plan_statement(cu *c, uint32_t node) {
    const po_mu_statement *s = &c->mu->nodes[node].statement;
    cu_node *n = &c->node[node];
    uint32_t n_kept, n_reduced, *kept, *reduced;
    po_mu_labels_of(c->mu, s, c->arena, &n_kept, &kept, &n_reduced, &reduced);
    if (s->combine == PO_MU_SET) /* a grid's labels that what is written leaves out */
        n_reduced = 0;
    n->vector = 1;
    n->lanes = 1;
    if (!cu_is_apart(c, node, &s->out)) {
        order_of(c, node, kept, n_kept, n);
        n->n_red = cu_running(c, node, reduced, n_reduced, n->red);
        n->work = CU_ONE;
        return;
    }
    if (cu_product_of(c, node, &n->product)) {
        int64_t tile = cu_count_all(c, node, n->product.row, n->product.n_row) *
                       cu_count_all(c, node, n->product.col, n->product.n_col);
        bool one = true; /* product, whatever labels rows and columns share */
        for (uint32_t i = 0; i < n_kept; i++)
            if (po_mu_has(c->mu, &s->in[n->product.a], kept[i]) &&
                po_mu_has(c->mu, &s->in[n->product.b], kept[i]))
                one &= cu_count(c, node, kept[i]) == 1;
        n->kind = kind_of(c, s, &n->product);
        n->work = CU_PRODUCT;
        /* A factor outside adds nothing, and yet the sum starts. */
        for (uint32_t i = 0; i < n->product.n_factor; i++)
            one &= !cu_leaves(c, &s->in[n->product.factor[i]]);
        if (one && tile >= 8 && fragment_for(c, node, n))
            return;
    }
    order_of(c, node, kept, n_kept, n);
    /* What adds nothing up still starts anew where its operands lie outside. */
    bool starts = false;
    for (uint32_t k = 0; k < s->n_in && s->fresh && s->combine != PO_MU_SET; k++)
        starts |= !po_mu_is_inside(c->mu, &s->in[k]);
    if (n_reduced > 0 || starts) {
        plan_sum(c, node, reduced, n_reduced, n);
        return;
    }
    n->work = is_copy(c, node, s) ? CU_COPY : CU_MAP;
    if (n->n_order > 0)
        n->vector = vector_of(c, node, n->order[n->n_order - 1],
                              cu_count_all(c, node, n->order, n->n_order), true);
}

/* --- warps that share sums --- */

/* The outermost FOR loop around a node; the node where there is none. */
static uint32_t outermost_for(const po_mu *mu, uint32_t node) {
    uint32_t found = node;
    for (uint32_t at = mu->nodes[node].parent; at != PO_NONE; at = mu->nodes[at].parent)
        if (mu->nodes[at].kind == PO_MU_LOOP && mu->nodes[at].loop == PO_MU_FOR)
            found = at;
    return found;
}

/* Whether a FOR loop around `node` does not hold `other`. */
static bool goes_round_without(const po_mu *mu, uint32_t node, uint32_t other) {
    for (uint32_t at = mu->nodes[node].parent; at != PO_NONE; at = mu->nodes[at].parent)
        if (mu->nodes[at].kind == PO_MU_LOOP && mu->nodes[at].loop == PO_MU_FOR &&
            !po_mu_inside(mu, other, at))
            return true;
    return false;
}

/* Whether the products of a tile may be added up by several warps: all before the first map, which
 * makes one sum of their parts and so runs once for each, in loops that hold none of the maps, each
 * with steps for every warp. That map. */
static bool may_share(const cu *c, uint32_t step, uint32_t fragment, uint32_t warps,
                      uint32_t *first) {
    const po_mu *mu = c->mu;
    *first = PO_NONE;
    for (uint32_t n = step; n != PO_NONE && po_mu_inside(mu, n, step); n = po_mu_next(mu, n)) {
        const cu_node *node = &c->node[n];
        if (mu->nodes[n].kind != PO_MU_STATEMENT || node->fragment != fragment)
            continue;
        if (node->work == CU_FRAGMENT && *first == PO_NONE)
            *first = n;
        if (node->work != CU_PRODUCT)
            continue;
        int64_t sums = 1;
        for (uint32_t i = 0; i < node->product.n_red; i++) {
            int64_t count = cu_count(c, n, node->product.red[i]);
            sums = count > sums ? count : sums;
        }
        if (*first != PO_NONE || node->product.scale != 1 || node->product.n_factor > 0 ||
            c->tensor[mu->nodes[n].statement.out.tensor].fragment != fragment + 1 ||
            !cu_starts_once(c, n) || sums < 16 * (int64_t)warps)
            return false;
    }
    for (uint32_t n = step; n != PO_NONE && po_mu_inside(mu, n, step); n = po_mu_next(mu, n)) {
        if (mu->nodes[n].kind != PO_MU_STATEMENT || c->node[n].work != CU_PRODUCT ||
            c->node[n].fragment != fragment)
            continue;
        if (*first != PO_NONE && goes_round_without(mu, *first, n))
            return false;
        for (uint32_t m = n; m != PO_NONE && po_mu_inside(mu, m, step); m = po_mu_next(mu, m))
            if (mu->nodes[m].kind == PO_MU_STATEMENT && c->node[m].work == CU_FRAGMENT &&
                c->node[m].fragment == fragment && po_mu_inside(mu, m, outermost_for(mu, n)))
                return false;
    }
    return *first != PO_NONE;
}

/* Where a block has fewer tiles than warps, what is added up is dealt to them too. */
static void share_sums(cu *c, uint32_t step) {
    uint32_t warps = c->threads / CU_WARP;
    for (uint32_t i = 0; i < c->n_fragments; i++) {
        cu_fragment *f = &c->fragment[i];
        int64_t tr = po_ceil_div(f->rows, 16), tc = po_ceil_div(f->cols, 8);
        uint32_t r = 1, first;
        while (r * INT64_C(2) <= tr && r * 2 <= f->warps_r)
            r *= 2;
        uint32_t cols = 1;
        while (cols * INT64_C(2) <= tc && r * cols * 2 <= warps)
            cols *= 2;
        if (!f->tensor || r * cols == warps || !may_share(c, step, i, warps / (r * cols), &first))
            continue;
        f->warps_r = r;
        f->warps_c = cols;
        f->warps_k = warps / (r * cols);
        f->tiles_r = (uint32_t)po_ceil_div(tr, r);
        f->tiles_c = (uint32_t)po_ceil_div(tc, cols);
        f->gather = first;
    }
}

/* --- rows --- */

static bool same_order(const cu *c, uint32_t a, uint32_t b) {
    const cu_node *x = &c->node[a], *y = &c->node[b];
    if (x->n_order != y->n_order)
        return false;
    for (uint32_t i = 0; i < x->n_order; i++)
        if (x->order[i] != y->order[i] ||
            cu_count(c, a, x->order[i]) != cu_count(c, b, y->order[i]))
            return false;
    return true;
}

/* Small maps over what rows are added up to go to the threads that have the sums: between a maximum
 * and what is made of it is no barrier then. */
static void along_rows(cu *c, uint32_t step) {
    const po_mu *mu = c->mu;
    for (uint32_t n = step; n != PO_NONE && po_mu_inside(mu, n, step); n = po_mu_next(mu, n)) {
        if (mu->nodes[n].kind != PO_MU_STATEMENT || c->node[n].work != CU_MAP ||
            cu_count_all(c, n, c->node[n].order, c->node[n].n_order) > c->threads)
            continue;
        for (uint32_t r = step; r != PO_NONE && po_mu_inside(mu, r, step); r = po_mu_next(mu, r)) {
            if (mu->nodes[r].kind != PO_MU_STATEMENT ||
                (c->node[r].work != CU_ROWS && c->node[r].work != CU_BLOCK) || !same_order(c, n, r))
                continue;
            c->node[n].lanes = c->node[r].lanes;
            c->node[n].vector = 1;
            break;
        }
    }
}

/* --- pipelines --- */

/* Copies that a FOR loop's chunks begin with are issued for chunks ahead. */
static void pipelines(cu *c, uint32_t step) {
    const po_mu *mu = c->mu;
    for (uint32_t n = step; n != PO_NONE && po_mu_inside(mu, n, step); n = po_mu_next(mu, n)) {
        if (mu->nodes[n].kind != PO_MU_LOOP || mu->nodes[n].loop != PO_MU_FOR)
            continue;
        int64_t chunks = po_ceil_div(mu->labels[mu->nodes[n].label].extent, po_mu_chunk(mu, n));
        uint32_t stages = chunks < c->stages ? (uint32_t)chunks : c->stages;
        for (uint32_t k = mu->nodes[n].first; k != PO_NONE; k = mu->nodes[k].next) {
            const po_mu_statement *s = &mu->nodes[k].statement;
            if (mu->nodes[k].kind != PO_MU_STATEMENT || c->node[k].work != CU_COPY ||
                mu->tensors[s->out.tensor].scope != n || c->stages == 0)
                continue;
            c->node[k].pipelined = true;
            c->node[n].n_copies++;
            c->node[n].stages = stages;
            c->tensor[s->out.tensor].stages = stages;
        }
    }
}

/* --- a step --- */

enum { FEW_ROWS = 16 /* one tile of tensor cores */ };

/* Whether something stands in a FOR loop that neither copies nor is a product: what is dealt to
 * threads between barriers, of which more wait for longer. */
static bool makes_in_loop(cu *c, uint32_t node) {
    const po_mu *mu = c->mu;
    cu_product p;
    return outermost_for(mu, node) != node && !cu_product_of(c, node, &p) &&
           !is_copy(c, node, &mu->nodes[node].statement);
}

/* 8 warps for large tiles, and for loops of products of few rows alone (on an H200 19.8 us
 * for 23.8, 65 for 70), else 4 (32 us for 39). */
static uint32_t threads_for(cu *c, uint32_t step) {
    const po_mu *mu = c->mu;
    bool product = false, large = false, wide = false, few = true;
    for (uint32_t n = step; n != PO_NONE && po_mu_inside(mu, n, step); n = po_mu_next(mu, n)) {
        cu_product p;
        if (mu->nodes[n].kind != PO_MU_STATEMENT)
            continue;
        uint32_t n_kept, n_reduced, *kept, *reduced;
        po_mu_labels_of(mu, &mu->nodes[n].statement, c->arena, &n_kept, &kept, &n_reduced,
                        &reduced);
        wide |= cu_count_all(c, n, kept, n_kept) * cu_count_all(c, n, reduced, n_reduced) > 1024;
        few &= !makes_in_loop(c, n);
        if (!cu_product_of(c, n, &p))
            continue;
        int64_t rows = cu_count_all(c, n, p.row, p.n_row),
                cols = cu_count_all(c, n, p.col, p.n_col);
        product = true;
        few &= rows <= FEW_ROWS || cols <= FEW_ROWS;
        large |= rows * cols >= INT64_C(128) * 128;
    }
    return (product ? large || few : wide) ? 256 : 128;
}

void cu_plan_step(cu *c, uint32_t step) {
    const po_mu *mu = c->mu;
    c->n_fragments = 0;
    c->threads = threads_for(c, step);
    for (uint32_t n = step; n != PO_NONE && po_mu_inside(mu, n, step); n = po_mu_next(mu, n))
        if (mu->nodes[n].kind == PO_MU_STATEMENT)
            plan_statement(c, n);
    pipelines(c, step);
    cu_reside(c, step);
    along_rows(c, step);
    share_sums(c, step);
}

/* Products over register tiles: on tensor cores from shared memory by ldmatrix, or element by
 * element where that does not serve; by FFMA for f32. Maps over the same tiles. */
#include "codegen/cuda_private.h"

/* --- tiles --- */

static const char *registers_of(cu *c, const cu_fragment *f) {
    return f->tensor ? po_arena_printf(c->arena, "[%u][%u][4]", f->tiles_r, f->tiles_c)
                     : po_arena_printf(c->arena, "[%u][%u]", f->tiles_r, f->tiles_c);
}

static void zero(cu *c, const cu_fragment *f, const char *name) {
    cg_line(&c->g, "#pragma unroll");
    cg_line(&c->g, "for (int r = 0; r < %u; r++)", f->tiles_r);
    cg_line(&c->g, "#pragma unroll");
    cg_line(&c->g, "    for (int t = 0; t < %u; t++)", f->tiles_c);
    if (f->tensor)
        cg_line(&c->g, "        %s[r][t][0] = %s[r][t][1] = %s[r][t][2] = %s[r][t][3] = 0.0f;",
                name, name, name, name);
    else
        cg_line(&c->g, "        %s[r][t] = 0.0f;", name);
}

bool cu_starts_once(const cu *c, uint32_t node) {
    const po_mu *mu = c->mu;
    const po_mu_statement *s = &mu->nodes[node].statement;
    uint32_t scope = mu->tensors[s->out.tensor].scope;
    if (!s->fresh)
        return false;
    if (scope == PO_NONE)
        scope = po_mu_step_of(mu, node);
    for (uint32_t at = mu->nodes[node].parent; at != scope && at != PO_NONE;
         at = mu->nodes[at].parent) {
        bool read = false;
        for (uint32_t k = 0; k < s->n_in; k++)
            read |= po_mu_has(mu, &s->in[k], mu->nodes[at].label);
        if (!read || po_mu_has(mu, &s->out, mu->nodes[at].label))
            return false;
    }
    for (uint32_t n = po_mu_step_of(mu, node); n != node; n = po_mu_next(mu, n))
        if (mu->nodes[n].kind == PO_MU_STATEMENT &&
            mu->nodes[n].statement.out.tensor == s->out.tensor)
            return false;
    return true;
}

void cu_declare_fragment(cu *c, uint32_t tensor) {
    const cu_fragment *f = &c->fragment[c->tensor[tensor].fragment - 1];
    cg_line(&c->g, "float %s%s; /* %s, in registers */", c->tensor[tensor].name, registers_of(c, f),
            c->mu->tensors[tensor].name);
    for (uint32_t n = c->mu->first; n != PO_NONE; n = po_mu_next(c->mu, n))
        if (c->mu->nodes[n].kind == PO_MU_STATEMENT && c->node[n].work == CU_PRODUCT &&
            c->mu->nodes[n].statement.out.tensor == tensor && cu_starts_once(c, n)) {
            zero(c, f, c->tensor[tensor].name);
            return;
        }
}

static int64_t height(const cu_fragment *f) {
    return (f->tensor ? 16 : 4) * (int64_t)f->tiles_r;
}

static int64_t width(const cu_fragment *f) {
    return 8 * (int64_t)f->tiles_c;
}

/* "warp / 2 % 2 * 32 + ": where a warp's rows or columns start. Warps lie with the columns' number
 * running fastest, then the rows', then that of their share of what is added up. */
static const char *start_of(cu *c, uint32_t by, uint32_t warps, bool last, int64_t size) {
    if (warps == 1)
        return "";
    const char *text = "warp";
    if (by > 1)
        text = po_arena_printf(c->arena, "%s / %u", text, by);
    if (!last)
        text = po_arena_printf(c->arena, "%s %% %u", text, warps);
    return po_arena_printf(c->arena, "%s * %lld + ", text, (long long)size);
}

static const char *warp_row(cu *c, const cu_fragment *f) {
    return start_of(c, f->warps_c, f->warps_r, f->warps_k == 1, height(f));
}

static const char *warp_col(cu *c, const cu_fragment *f) {
    return start_of(c, 1, f->warps_c, f->warps_k == 1 && f->warps_r == 1, width(f));
}

/* Opens the loops over a thread's elements: up to the pair on tensor cores. */
static void open_tiles(cu *c, const cu_fragment *f) {
    cg_line(&c->g, "#pragma unroll");
    cg_open(&c->g, "for (int r = 0; r < %u; r++)", f->tiles_r);
    cg_line(&c->g, "#pragma unroll");
    cg_open(&c->g, "for (int t = 0; t < %u; t++)", f->tiles_c);
    if (f->tensor) {
        cg_line(&c->g, "#pragma unroll");
        cg_open(&c->g, "for (int h = 0; h < 4; h += 2)");
        cg_line(&c->g, "const int row = %sr * 16 + lane / 4 + h * 4;", warp_row(c, f));
        cg_line(&c->g, "const int left = %st * 8 + lane %% 4 * 2;", warp_col(c, f));
    } else {
        cg_line(&c->g, "const int row = %sr * 4 + lane / 8;", warp_row(c, f));
        cg_line(&c->g, "const int left = %st * 8 + lane %% 8;", warp_col(c, f));
    }
}

static void close_tiles(cu *c, const cu_fragment *f) {
    for (uint32_t i = 0; i < (f->tensor ? 3 : 2); i++)
        cg_close(&c->g);
    cu_forget(c, f->row, f->n_row);
    cu_forget(c, f->col, f->n_col);
}

/* Whether rows, columns lie inside the box for all threads. */
static bool is_full(const cu_fragment *f, bool col) {
    return col ? f->cols == width(f) * f->warps_c : f->rows == height(f) * f->warps_r;
}

/* The element's condition, its labels being set: the box, tails, indices of these accesses. */
static const char *element_counts(cu *c, uint32_t node, const cu_fragment *f) {
    const po_mu_statement *s = &c->mu->nodes[node].statement;
    const char *all = NULL;
    if (!is_full(f, false))
        all = cu_and(c, all, po_arena_printf(c->arena, "row < %lld", (long long)f->rows));
    if (!is_full(f, true))
        all = cu_and(c, all, po_arena_printf(c->arena, "col < %lld", (long long)f->cols));
    all = cu_and(c, all, cu_tail(c, node, f->row, f->n_row));
    all = cu_and(c, all, cu_tail(c, node, f->col, f->n_col));
    for (uint32_t k = 0; k <= s->n_in; k++) {
        const po_mu_access *a = k < s->n_in ? &s->in[k] : &s->out;
        if (c->node[node].work == CU_PRODUCT &&
            (k == c->node[node].product.a || k == c->node[node].product.b))
            continue;
        all = cu_and(c, all, cu_inside(c, a));
    }
    return all;
}

static const char *register_of(cu *c, const cu_fragment *f, const char *name) {
    return po_arena_printf(c->arena, f->tensor ? "%s[r][t][h + p]" : "%s[r][t]", name);
}

/* Whether what is written may be stored by two elements: the columns' last label moves it by one,
 * in pairs that are inside together. */
static bool in_pairs(const cu *c, uint32_t node, const cu_fragment *f, const po_mu_access *out) {
    const po_mu_statement *s = &c->mu->nodes[node].statement;
    if (!f->tensor || f->n_col == 0)
        return false;
    uint32_t along = f->col[f->n_col - 1];
    if (cu_count(c, node, along) % 2 != 0 || cu_side(c, node, out, along, 2) != 2)
        return false;
    for (uint32_t k = 0; k <= s->n_in; k++)
        if (cu_leaves(c, k < s->n_in ? &s->in[k] : &s->out))
            return false;
    return true;
}

/* The body over each element: `value` of it goes to what the statement writes. For products `sum`
 * is the name of the registers; for maps NULL. */
static void over_tiles(cu *c, uint32_t node, const cu_fragment *f, const char *sum) {
    const po_mu_statement *s = &c->mu->nodes[node].statement;
    const cu_tensor *to = &c->tensor[s->out.tensor];
    bool memory = to->fragment == 0, pairs = memory && in_pairs(c, node, f, &s->out);
    const char *operand[PO_MU_MAX_INPUTS], *value, *first = s->fresh ? cu_is_first(c, node) : NULL;
    open_tiles(c, f);
    if (pairs)
        cg_line(&c->g, "float y[2];");
    if (f->tensor) {
        cg_line(&c->g, "#pragma unroll");
        cg_open(&c->g, "for (int p = 0; p < 2; p++)");
    }
    cg_line(&c->g, "const int col = left%s;", f->tensor ? " + p" : "");
    cu_take_apart(c, node, "row", f->row, f->n_row, 1);
    cu_take_apart(c, node, "col", f->col, f->n_col, 1);
    const char *inside = element_counts(c, node, f);
    if (inside != NULL)
        cg_open(&c->g, "if (%s)", inside);
    if (sum != NULL) {
        const cu_product *p = &c->node[node].product;
        value = register_of(c, f, sum);
        if (p->scale != 1)
            value = po_arena_printf(c->arena, "%s * %s", cu_literal(c, p->scale), value);
        for (uint32_t k = 0; k < p->n_factor; k++)
            value = po_arena_printf(c->arena, "%s * %s", value, cu_get(c, &s->in[p->factor[k]]));
    } else {
        for (uint32_t k = 0; k < s->n_in; k++) {
            const cu_tensor *t = &c->tensor[s->in[k].tensor];
            operand[k] = po_arena_printf(c->arena, "x%u", k);
            cg_line(&c->g, "const float x%u = %s;", k,
                    t->fragment != 0 ? register_of(c, f, t->name) : cu_get(c, &s->in[k]));
        }
        value = cu_value_of(c, s, operand);
    }
    const char *old = memory ? cu_get(c, &s->out) : register_of(c, f, to->name);
    if (s->combine != PO_MU_SET) {
        const char *start = s->combine == PO_MU_ADD ? "0.0f" : "(-PC_INF)";
        if (s->fresh && first == NULL)
            old = start;
        else if (s->fresh)
            old = po_arena_printf(c->arena, "(%s ? %s : %s)", first, start, old);
        value = s->combine == PO_MU_MAXIMUM
                    ? po_arena_printf(c->arena, "pc_max(%s, %s)", old, value)
                : strcmp(old, "0.0f") == 0 ? value
                                           : po_arena_printf(c->arena, "%s + (%s)", old, value);
    }
    if (!memory)
        cg_line(&c->g, "%s = %s;", register_of(c, f, to->name), value);
    else if (pairs)
        cg_line(&c->g, "y[p] = %s;", value);
    else
        cu_put(c, &s->out, value);
    if (inside != NULL)
        cg_close(&c->g);
    if (f->tensor)
        cg_close(&c->g);
    if (pairs) {
        const po_mu_type type = c->mu->tensors[s->out.tensor].type;
        cg_line(&c->g, "const int col = left;");
        cu_take_apart(c, node, "row", f->row, f->n_row, 1);
        cu_take_apart(c, node, "col", f->col, f->n_col, 1);
        inside = element_counts(c, node, f);
        if (inside != NULL)
            cg_open(&c->g, "if (%s)", inside);
        cg_line(&c->g, "pc_put%d%s(%s, y);", type == PO_MU_F32 ? 8 : 4, cu_suffix(type),
                cu_pointer(c, &s->out));
        if (inside != NULL)
            cg_close(&c->g);
    }
    close_tiles(c, f);
}

po_status cu_print_fragment(cu *c, uint32_t node) {
    const cu_fragment *f = &c->fragment[c->node[node].fragment];
    const po_mu_statement *s = &c->mu->nodes[node].statement;
    if (f->gather == node)
        cu_gather(c, node);
    /* Warps that share sums have the same: one of them stores. */
    bool one = f->warps_k > 1 && c->tensor[s->out.tensor].fragment == 0;
    cg_line(&c->g, "/* map: over the register tile */");
    if (one)
        cg_open(&c->g, "if (warp < %u)", f->warps_r * f->warps_c);
    over_tiles(c, node, f, NULL);
    if (one)
        cg_close(&c->g);
    return PO_OK;
}

/* --- operands --- */

typedef enum cu_load { LOAD_EACH, LOAD_MATRIX, LOAD_TURNED } cu_load;

typedef struct cu_side_of { /* of a product: what gives the tile's rows, or its columns */
    const po_mu_access *access;
    bool col;
    uint32_t n;
    const uint32_t *labels;
    int64_t count;
    bool full;
    cu_load load;
} cu_side_of;

typedef struct cu_sums { /* reduced labels that run; the last one in steps of the tile */
    uint32_t n, red[CU_LABELS];
    int64_t inner;
    bool tail;
} cu_sums;

static cu_sums sums_of(const cu *c, uint32_t node) {
    const cu_product *p = &c->node[node].product;
    const po_mu_statement *s = &c->mu->nodes[node].statement;
    cu_sums k = {0};
    uint32_t best = PO_NONE;
    for (uint32_t i = 0; i < p->n_red; i++) {
        if (cu_count(c, node, p->red[i]) <= 1)
            continue;
        k.red[k.n++] = p->red[i];
        k.tail |= cu_has_tail(c, node, p->red[i]);
        if (cu_step_of(c, &s->in[p->a], p->red[i]) == 1 ||
            cu_step_of(c, &s->in[p->b], p->red[i]) == 1)
            best = k.n - 1;
    }
    if (best != PO_NONE) {
        uint32_t label = k.red[best];
        k.red[best] = k.red[k.n - 1];
        k.red[k.n - 1] = label;
    }
    k.inner = k.n > 0 ? cu_count(c, node, k.red[k.n - 1]) : 1;
    return k;
}

static cu_load load_of(const cu *c, uint32_t node, const cu_side_of *side, const cu_sums *k) {
    const po_mu_access *a = side->access;
    if (c->mu->tensors[a->tensor].place != PO_MU_SHARED || k->n == 0 || k->inner % 16 != 0 ||
        cu_leaves(c, a))
        return LOAD_EACH;
    if (cu_side(c, node, a, k->red[k->n - 1], 8) == 8)
        return LOAD_MATRIX;
    if (side->n > 0 && cu_count(c, node, side->labels[side->n - 1]) % 8 == 0 &&
        cu_side(c, node, a, side->labels[side->n - 1], 8) == 8)
        return LOAD_TURNED;
    return LOAD_EACH;
}

static cu_side_of side_of(const cu *c, uint32_t node, bool col, const cu_sums *k) {
    const cu_node *n = &c->node[node];
    const cu_fragment *f = &c->fragment[n->fragment];
    const po_mu_statement *s = &c->mu->nodes[node].statement;
    cu_side_of side = {.access = &s->in[col != n->swapped ? n->product.b : n->product.a],
                       .col = col,
                       .n = col ? f->n_col : f->n_row,
                       .labels = col ? f->col : f->row,
                       .count = col ? f->cols : f->rows,
                       .full = is_full(f, col)};
    side.load = load_of(c, node, &side, k);
    return side;
}

/* Sets the labels of a side and of what is added up: `m` and `k` are C expressions. */
static void set_labels(cu *c, uint32_t node, const cu_side_of *side, const cu_sums *k,
                       const char *m, const char *at) {
    cg_line(&c->g, "const int m = %s;", m);
    cu_take_apart(c, node, "m", side->labels, side->n, 1);
    if (k->n > 0) {
        cg_line(&c->g, "const int j = %s;", at);
        c->value[k->red[k->n - 1]].inner = "j";
    }
}

/* One side's registers by ldmatrix. Four matrices of 8 x 8: for rows the two halves of 16, then
 * the two of k; for columns the two halves of k, then the next 8 columns. */
static void load_matrices(cu *c, uint32_t node, const cu_fragment *f, const cu_side_of *side,
                          const cu_sums *k) {
    bool turned = side->load == LOAD_TURNED;
    uint32_t tiles = side->col ? f->tiles_c : f->tiles_r;
    uint32_t by = side->col && tiles % 2 == 0 ? 2 : 1;
    const char *base = side->col ? warp_col(c, f) : warp_row(c, f), *m, *at;
    bool four = !side->col || by == 2;
    if (side->col) {
        m = turned ? (four ? "lane / 16 * 8" : "0")
                   : (four ? "lane % 8 + lane / 16 * 8" : "lane % 8");
        at = turned ? "lane % 16" : "lane / 8 % 2 * 8";
    } else {
        m = turned ? "lane / 8 % 2 * 8" : "lane % 16";
        at = turned ? "lane % 8 + lane / 16 * 8" : "lane / 16 * 8";
    }
    m = po_arena_printf(c->arena, "%si * %d + %s", base, side->col ? 8 : 16, m);
    if (!side->full)
        m = po_arena_printf(c->arena, "min(%s, %lld)", m,
                            (long long)(side->count - (turned ? 8 : 1)));
    at = po_arena_printf(c->arena, "k + %s", at);
    cg_line(&c->g, "#pragma unroll");
    cg_open(&c->g, by == 2 ? "for (int i = 0; i < %u; i += 2)" : "for (int i = 0; i < %u; i++)",
            tiles);
    set_labels(c, node, side, k, m, at);
    const char *name = side->col ? "b" : "a";
    if (side->col && by == 2) {
        cg_line(&c->g, "unsigned four[4];");
        cg_line(&c->g, "pc_ldmatrix4%s(four, %s);", turned ? "_trans" : "",
                cu_pointer(c, side->access));
        cg_line(&c->g, "b[i][0] = four[0], b[i][1] = four[1];");
        cg_line(&c->g, "b[i + 1][0] = four[2], b[i + 1][1] = four[3];");
    } else {
        cg_line(&c->g, "pc_ldmatrix%d%s(%s[i], %s);", four ? 4 : 2, turned ? "_trans" : "", name,
                cu_pointer(c, side->access));
    }
    cg_close(&c->g);
}

/* What an element needs to be read: the box, tails, and its own indices. NULL: nothing. */
static const char *needs(cu *c, uint32_t node, const cu_side_of *side, const cu_sums *k,
                         int64_t step) {
    const po_mu_tensor *t = &c->mu->tensors[side->access->tensor];
    const char *all = NULL;
    if (!side->full)
        all = cu_and(c, all, po_arena_printf(c->arena, "m < %lld", (long long)side->count));
    if (cu_is_global(t))
        all = cu_and(c, all, cu_tail(c, node, side->labels, side->n));
    if (k->n > 0 && k->inner % step != 0)
        all = cu_and(c, all, po_arena_printf(c->arena, "j < %lld", (long long)k->inner));
    all = cu_and(c, all, cu_tail(c, node, k->red, k->n));
    return cu_and(c, all, cu_inside(c, side->access));
}

/* One side's registers element by element. */
static void load_each(cu *c, uint32_t node, const cu_fragment *f, const cu_side_of *side,
                      const cu_sums *k) {
    uint32_t kind = c->node[node].kind, tiles = side->col ? f->tiles_c : f->tiles_r;
    const char *base = side->col ? warp_col(c, f) : warp_row(c, f), *name = side->col ? "b" : "a";
    const char *m, *at;
    int64_t step = kind == 3 ? 8 : 16;
    cg_line(&c->g, "#pragma unroll");
    cg_open(&c->g, "for (int i = 0; i < %u; i++)", tiles);
    cg_line(&c->g, "#pragma unroll");
    cg_open(&c->g, "for (int q = 0; q < %d; q++)", side->col ? 2 : 4);
    m = po_arena_printf(
        c->arena, side->col ? "%si * 8 + lane / 4" : "%si * 16 + lane / 4 + q %% 2 * 8", base);
    if (kind == 3)
        at = side->col ? "k + lane % 4 + q * 4" : "k + lane % 4 + q / 2 * 4";
    else
        at = side->col ? "k + lane % 4 * 2 + q * 8 + h" : "k + lane % 4 * 2 + q / 2 * 8 + h";
    if (kind != 3) {
        cg_line(&c->g, "unsigned half[2];");
        cg_line(&c->g, "#pragma unroll");
        cg_open(&c->g, "for (int h = 0; h < 2; h++)");
    }
    set_labels(c, node, side, k, m, at);
    const char *need = needs(c, node, side, k, step);
    const char *value = po_arena_printf(c->arena, "%s[%s]", c->tensor[side->access->tensor].name,
                                        cu_offset(c, side->access));
    if (kind == 3)
        value = po_arena_printf(c->arena, "pc_to_tf32(%s)", value);
    if (need != NULL)
        value = po_arena_printf(c->arena, "%s ? %s : 0", need, value);
    if (kind == 3) {
        cg_line(&c->g, "%s[i][q] = %s;", name, value);
    } else {
        cg_line(&c->g, "half[h] = %s;", value);
        cg_close(&c->g);
        cg_line(&c->g, "%s[i][q] = half[0] | half[1] << 16;", name);
    }
    cg_close(&c->g);
    cg_close(&c->g);
}

static void open_sums(cu *c, uint32_t node, const cu_sums *k, int64_t step, bool whole) {
    const cu_fragment *f = &c->fragment[c->node[node].fragment];
    int64_t by = step * f->warps_k;
    const char *from = "0";
    if (f->warps_k > 1)
        from =
            po_arena_printf(c->arena, "warp / %u * %lld", f->warps_r * f->warps_c, (long long)step);
    for (uint32_t i = 0; i + 1 < k->n; i++) {
        const char *label = c->mu->labels[k->red[i]].name;
        c->value[k->red[i]].inner = po_arena_printf(c->arena, "i_%s", label);
        if (cu_has_tail(c, node, k->red[i]) && !whole)
            cg_open(&c->g, "for (int i_%s = 0; i_%s < n_%s; i_%s++)", label, label, label, label);
        else
            cg_open(&c->g, "for (int i_%s = 0; i_%s < %lld; i_%s++)", label, label,
                    (long long)cu_count(c, node, k->red[i]), label);
    }
    if (k->n > 0 && !whole && cu_has_tail(c, node, k->red[k->n - 1])) {
        cg_line(&c->g, "#pragma unroll 4");
        cg_open(&c->g, "for (int k = 0; k < n_%s; k++)", c->mu->labels[k->red[k->n - 1]].name);
    } else {
        cg_line(&c->g, k->inner / by <= 8 ? "#pragma unroll" : "#pragma unroll 4");
        cg_open(&c->g, "for (int k = %s; k < %lld; k += %lld)", from, (long long)k->inner,
                (long long)by);
    }
}

static void close_sums(cu *c, const cu_sums *k) {
    for (uint32_t i = 0; i < (k->n > 0 ? k->n : 1); i++)
        cg_close(&c->g);
    cu_forget(c, k->red, k->n);
}

static void on_tensor_cores(cu *c, uint32_t node, const cu_fragment *f, const char *sum) {
    static const char *const names[] = {"", "f16", "bf16", "tf32"};
    uint32_t kind = c->node[node].kind;
    cu_sums k = sums_of(c, node);
    cu_side_of row = side_of(c, node, false, &k), col = side_of(c, node, true, &k);
    bool staged = c->tensor[row.access->tensor].staged && c->tensor[col.access->tensor].staged;
    /* Behind the last element of a tail only copies hold zeros. */
    if (kind == 3 || (k.tail && !staged))
        row.load = col.load = LOAD_EACH;
    const char *share = f->warps_k == 1 ? "" : po_arena_printf(c->arena, "%u x ", f->warps_k);
    cg_line(&c->g, "/* mma 16x8x%d %s: %s%u x %u warps of %u x %u tiles; rows %s, columns %s */",
            kind == 3 ? 8 : 16, names[kind], share, f->warps_r, f->warps_c, f->tiles_r, f->tiles_c,
            row.load == LOAD_EACH     ? "by element"
            : row.load == LOAD_TURNED ? "by ldmatrix.trans"
                                      : "by ldmatrix",
            col.load == LOAD_EACH     ? "by element"
            : col.load == LOAD_TURNED ? "by ldmatrix.trans"
                                      : "by ldmatrix");
    open_sums(c, node, &k, kind == 3 ? 8 : 16, true);
    cg_line(&c->g, "unsigned a[%u][4], b[%u][2];", f->tiles_r, f->tiles_c);
    for (int side = 0; side < 2; side++) {
        const cu_side_of *one = side ? &col : &row;
        if (one->load == LOAD_EACH)
            load_each(c, node, f, one, &k);
        else
            load_matrices(c, node, f, one, &k);
        cu_forget(c, one->labels, one->n);
    }
    cg_line(&c->g, "#pragma unroll");
    cg_line(&c->g, "for (int r = 0; r < %u; r++)", f->tiles_r);
    cg_line(&c->g, "#pragma unroll");
    cg_line(&c->g, "    for (int t = 0; t < %u; t++)", f->tiles_c);
    cg_line(&c->g, "        pc_mma_%s(%s[r][t], a[r], b[t]);", names[kind], sum);
    close_sums(c, &k);
}

/* --- without tensor cores --- */

static void load_floats(cu *c, uint32_t node, const cu_fragment *f, const cu_side_of *side,
                        const cu_sums *k) {
    const po_mu_tensor *t = &c->mu->tensors[side->access->tensor];
    uint32_t tiles = side->col ? f->tiles_c : f->tiles_r;
    const char *m = side->col ? po_arena_printf(c->arena, "%si * 8 + lane %% 8", warp_col(c, f))
                              : po_arena_printf(c->arena, "%si * 4 + lane / 8", warp_row(c, f));
    /* What is read for nothing must be there to be read. */
    bool tests = cu_is_global(t) || cu_leaves(c, side->access);
    if (!side->full && !tests)
        m = po_arena_printf(c->arena, "min(%s, %lld)", m, (long long)(side->count - 1));
    cg_line(&c->g, "#pragma unroll");
    cg_open(&c->g, "for (int i = 0; i < %u; i++)", tiles);
    set_labels(c, node, side, k, m, "k");
    const char *need = tests ? needs(c, node, side, k, 1) : NULL, *value = cu_get(c, side->access);
    if (need != NULL)
        value = po_arena_printf(c->arena, "%s ? %s : 0.0f", need, value);
    cg_line(&c->g, "%s[i] = %s;", side->col ? "b" : "a", value);
    cg_close(&c->g);
    cu_forget(c, side->labels, side->n);
}

static void by_ffma(cu *c, uint32_t node, const cu_fragment *f, const char *sum) {
    cu_sums k = sums_of(c, node);
    cu_side_of row = side_of(c, node, false, &k), col = side_of(c, node, true, &k);
    cg_line(&c->g, "/* FFMA: %u x %u warps, a thread has %u x %u elements */", f->warps_r,
            f->warps_c, f->tiles_r, f->tiles_c);
    open_sums(c, node, &k, 1, false);
    cg_line(&c->g, "float a[%u], b[%u];", f->tiles_r, f->tiles_c);
    load_floats(c, node, f, &row, &k);
    load_floats(c, node, f, &col, &k);
    cg_line(&c->g, "#pragma unroll");
    cg_line(&c->g, "for (int r = 0; r < %u; r++)", f->tiles_r);
    cg_line(&c->g, "#pragma unroll");
    cg_line(&c->g, "    for (int t = 0; t < %u; t++)", f->tiles_c);
    cg_line(&c->g, "        %s[r][t] += a[r] * b[t];", sum);
    close_sums(c, &k);
}

/* --- warps that share sums --- */

static bool is_summed(const cu *c, uint32_t step, uint32_t tensor) {
    for (uint32_t n = step; n != PO_NONE && po_mu_inside(c->mu, n, step); n = po_mu_next(c->mu, n))
        if (c->mu->nodes[n].kind == PO_MU_STATEMENT && c->node[n].work == CU_PRODUCT &&
            c->mu->nodes[n].statement.out.tensor == tensor)
            return true;
    return false;
}

int64_t cu_gather_bytes(const cu *c, uint32_t step) {
    int64_t floats = 0;
    for (uint32_t t = 0; t < c->mu->n_tensors; t++) {
        if (c->tensor[t].fragment == 0 || !is_summed(c, step, t))
            continue;
        const cu_fragment *f = &c->fragment[c->tensor[t].fragment - 1];
        if (f->warps_k > 1)
            floats += (int64_t)c->threads * f->tiles_r * f->tiles_c * 4;
    }
    return floats * 4;
}

void cu_gather(cu *c, uint32_t node) {
    uint32_t step = po_mu_step_of(c->mu, node);
    const cu_fragment *f = &c->fragment[c->node[node].fragment];
    uint32_t registers = f->tiles_r * f->tiles_c * 4, at = 0, others = c->threads / f->warps_k;
    cg_line(&c->g, "/* %u warps have parts of the sums: all parts to all of them */", f->warps_k);
    for (uint32_t up = c->mu->nodes[node].parent; up != PO_NONE; up = c->mu->nodes[up].parent)
        if (c->mu->nodes[up].kind == PO_MU_LOOP && c->mu->nodes[up].loop == PO_MU_FOR) {
            cg_line(&c->g, "pc_barrier(); /* the parts before these have been read */");
            break;
        }
    for (int pass = 0; pass < 2; pass++) {
        at = 0;
        for (uint32_t t = 0; t < c->mu->n_tensors; t++) {
            const cu_tensor *to = &c->tensor[t];
            if (to->fragment != c->node[node].fragment + 1 || !is_summed(c, step, t))
                continue;
            cg_line(&c->g, "#pragma unroll");
            cg_open(&c->g, "for (int i = 0; i < %u; i++)", registers);
            const char *sum = po_arena_printf(c->arena, "%s[i / %u][i / 4 %% %u][i %% 4]", to->name,
                                              f->tiles_c * 4, f->tiles_c);
            if (pass == 0) {
                cg_line(&c->g, "sums[%u + i * %u + threadIdx.x] = %s;", at, c->threads, sum);
            } else {
                cg_line(&c->g, "float all = 0.0f;");
                cg_line(&c->g, "#pragma unroll");
                cg_line(&c->g, "for (int w = 0; w < %u; w++)", f->warps_k);
                cg_line(&c->g, "    all += sums[%u + i * %u + w * %u + threadIdx.x %% %u];", at,
                        c->threads, others, others);
                cg_line(&c->g, "%s = all;", sum);
            }
            cg_close(&c->g);
            at += registers * c->threads;
        }
        if (pass == 0)
            cg_line(&c->g, "pc_barrier(); /* all warps' parts are there */");
    }
}

po_status cu_print_product(cu *c, uint32_t node) {
    const cu_node *n = &c->node[node];
    const cu_fragment *f = &c->fragment[n->fragment];
    const po_mu_statement *s = &c->mu->nodes[node].statement;
    const cu_tensor *to = &c->tensor[s->out.tensor];
    bool direct = to->fragment != 0 && n->product.scale == 1 && n->product.n_factor == 0;
    const char *sum = direct ? to->name : "sum";
    if (!direct) {
        cg_brace(&c->g);
        cg_line(&c->g, "float sum%s;", registers_of(c, f));
        zero(c, f, sum);
    } else if (s->fresh && !cu_starts_once(c, node)) {
        const char *first = cu_is_first(c, node);
        if (first != NULL)
            cg_open(&c->g, "if (%s)", first);
        zero(c, f, sum);
        if (first != NULL)
            cg_close(&c->g);
    }
    if (f->tensor)
        on_tensor_cores(c, node, f, sum);
    else
        by_ffma(c, node, f, sum);
    if (!direct) {
        over_tiles(c, node, f, sum);
        cg_close(&c->g);
    }
    return PO_OK;
}

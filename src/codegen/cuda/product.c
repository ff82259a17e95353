/* Products over register tiles: on tensor cores from shared memory by ldmatrix, or element by
 * element where that does not serve; by FFMA for f32. */
#include "codegen/cuda/internal.h"

/* --- operands --- */

typedef enum cu_load { LOAD_EACH, LOAD_MATRIX, LOAD_TURNED, LOAD_HELD } cu_load;

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
                       .full = cu_is_full(f, col)};
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
    const char *base = side->col ? cu_warp_col(c, f) : cu_warp_row(c, f), *m, *at;
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
    const char *base = side->col ? cu_warp_col(c, f) : cu_warp_row(c, f),
               *name = side->col ? "b" : "a";
    const char *m, *at;
    int64_t step = kind >= 3 ? 8 : 16;
    cg_line(&c->g, "#pragma unroll");
    cg_open(&c->g, "for (int i = 0; i < %u; i++)", tiles);
    cg_line(&c->g, "#pragma unroll");
    cg_open(&c->g, "for (int q = 0; q < %d; q++)", side->col ? 2 : 4);
    m = po_arena_printf(
        c->arena, side->col ? "%si * 8 + lane / 4" : "%si * 16 + lane / 4 + q %% 2 * 8", base);
    if (kind >= 3)
        at = side->col ? "k + lane % 4 + q * 4" : "k + lane % 4 + q / 2 * 4";
    else
        at = side->col ? "k + lane % 4 * 2 + q * 8 + h" : "k + lane % 4 * 2 + q / 2 * 8 + h";
    if (kind < 3) {
        cg_line(&c->g, "unsigned half[2];");
        cg_line(&c->g, "#pragma unroll");
        cg_open(&c->g, "for (int h = 0; h < 2; h++)");
    }
    set_labels(c, node, side, k, m, at);
    const char *need = needs(c, node, side, k, step);
    const char *value =
        kind >= 3 ? cu_get(c, side->access)
                  : po_arena_printf(c->arena, "%s[%s]", c->tensor[side->access->tensor].name,
                                    cu_offset(c, side->access));
    if (need != NULL)
        value =
            po_arena_printf(c->arena, kind >= 3 ? "%s ? %s : 0.0f" : "%s ? %s : 0", need, value);
    if (kind < 3) {
        cg_line(&c->g, "half[h] = %s;", value);
        cg_close(&c->g);
        cg_line(&c->g, "%s[i][q] = half[0] | half[1] << 16;", name);
    } else if (c->mu->tensors[side->access->tensor].type != PO_MU_F32) {
        cg_line(&c->g, "%s[i][q] = pc_bits(%s); /* exact */", name, value);
    } else if (kind == 3) {
        cg_line(&c->g, "%s[i][q] = pc_to_tf32(%s);", name, value);
    } else {
        cg_line(&c->g, "const float v = %s;", value);
        cg_line(&c->g, "%s[i][q] = pc_to_tf32(v);", name);
        cg_line(&c->g, "rest[i][q] = pc_to_tf32(v - pc_float(%s[i][q]));", name);
    }
    cg_close(&c->g);
    cg_close(&c->g);
}

/* The rows' registers out of the tile of the product before, which has them where they must be. */
static void load_held(cu *c, const cu_fragment *f, const cu_side_of *side) {
    const char *name = c->tensor[side->access->tensor].name,
               *type = cu_suffix(c->mu->tensors[side->access->tensor].type);
    cg_line(&c->g, "#pragma unroll");
    cg_open(&c->g, "for (int i = 0; i < %u; i++)", f->tiles_r);
    cg_line(&c->g, "#pragma unroll");
    cg_line(&c->g, "for (int q = 0; q < 4; q++)");
    cg_line(&c->g,
            "    a[i][q] = pc_pack%s(%s[i][k / 8 + q / 2][q %% 2 * 2], "
            "%s[i][k / 8 + q / 2][q %% 2 * 2 + 1]);",
            type, name, name);
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
        /* Registers have no index that is known only when it runs. */
        cg_line(&c->g,
                k->inner / by <= 8 || cu_is_held(c, node) ? "#pragma unroll" : "#pragma unroll 4");
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
    static const char *const names[] = {"", "f16", "bf16", "tf32", "tf32"};
    static const char *const how[] = {"by element", "by ldmatrix", "by ldmatrix.trans",
                                      "as they are in registers"};
    uint32_t kind = c->node[node].kind;
    cu_sums k = sums_of(c, node);
    cu_side_of row = side_of(c, node, false, &k), col = side_of(c, node, true, &k);
    bool staged = c->tensor[row.access->tensor].staged && c->tensor[col.access->tensor].staged;
    /* Behind the last element of a tail only copies hold zeros. */
    if (kind >= 3 || (k.tail && !staged))
        row.load = col.load = LOAD_EACH;
    if (c->tensor[row.access->tensor].fragment != 0)
        row.load = LOAD_HELD;
    const char *share = f->warps_k == 1 ? "" : po_arena_printf(c->arena, "%u x ", f->warps_k);
    cg_line(&c->g, "/* mma 16x8x%d %s: %s%u x %u warps of %u x %u tiles; rows %s, columns %s */",
            kind >= 3 ? 8 : 16, names[kind], share, f->warps_r, f->warps_c, f->tiles_r, f->tiles_c,
            how[row.load], how[col.load]);
    open_sums(c, node, &k, kind >= 3 ? 8 : 16, true);
    cg_line(&c->g, "unsigned a[%u][4], b[%u][2];", f->tiles_r, f->tiles_c);
    bool split = kind == 4, by_row = c->mu->tensors[row.access->tensor].type == PO_MU_F32;
    if (split)
        cg_line(&c->g, "unsigned rest[%u][%d]; /* what tf32 leaves of f32 */",
                by_row ? f->tiles_r : f->tiles_c, by_row ? 4 : 2);
    for (int side = 0; side < 2; side++) {
        const cu_side_of *one = side ? &col : &row;
        if (one->load == LOAD_HELD)
            load_held(c, f, one);
        else if (one->load == LOAD_EACH)
            load_each(c, node, f, one, &k);
        else
            load_matrices(c, node, f, one, &k);
        cu_forget(c, one->labels, one->n);
    }
    cg_line(&c->g, "#pragma unroll");
    cg_line(&c->g, "for (int r = 0; r < %u; r++)", f->tiles_r);
    cg_line(&c->g, "#pragma unroll");
    cg_open(&c->g, "    for (int t = 0; t < %u; t++)", f->tiles_c);
    if (split)
        cg_line(&c->g, "pc_mma_tf32(%s[r][t], %s);", sum,
                by_row ? "rest[r], b[t]" : "a[r], rest[t]");
    cg_line(&c->g, "pc_mma_%s(%s[r][t], a[r], b[t]);", names[kind], sum);
    cg_close(&c->g);
    close_sums(c, &k);
}

/* --- without tensor cores --- */

static void load_floats(cu *c, uint32_t node, const cu_fragment *f, const cu_side_of *side,
                        const cu_sums *k) {
    const po_mu_tensor *t = &c->mu->tensors[side->access->tensor];
    uint32_t tiles = side->col ? f->tiles_c : f->tiles_r;
    const char *m = side->col ? po_arena_printf(c->arena, "%si * 8 + lane %% 8", cu_warp_col(c, f))
                              : po_arena_printf(c->arena, "%si * 4 + lane / 8", cu_warp_row(c, f));
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

po_status cu_print_product(cu *c, uint32_t node) {
    const cu_node *n = &c->node[node];
    const cu_fragment *f = &c->fragment[n->fragment];
    const po_mu_statement *s = &c->mu->nodes[node].statement;
    const cu_tensor *to = &c->tensor[s->out.tensor];
    bool direct = to->fragment != 0 && n->product.scale == 1 && n->product.n_factor == 0;
    const char *sum = direct ? to->name : "sum";
    if (!direct) {
        cg_brace(&c->g);
        cg_line(&c->g, "float sum%s;", cu_registers_text(c, f));
        cu_zero(c, f, sum);
    } else if (s->fresh && !cu_starts_once(c, node)) {
        const char *first = cu_is_first(c, node);
        if (first != NULL)
            cg_open(&c->g, "if (%s)", first);
        cu_zero(c, f, sum);
        if (first != NULL)
            cg_close(&c->g);
    }
    if (f->tensor)
        on_tensor_cores(c, node, f, sum);
    else
        by_ffma(c, node, f, sum);
    if (!direct) {
        cu_over_tiles(c, node, f, sum);
        cg_close(&c->g);
    }
    return PO_OK;
}

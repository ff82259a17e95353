/* Register tiles: where a thread's elements of a product lie, maps over them, and the sum of what
 * warps that share sums have. */
#include "codegen/cuda/internal.h"

/* --- tiles --- */

const char *cu_registers_text(cu *c, const cu_fragment *f) {
    return f->tensor ? po_arena_printf(c->arena, "[%u][%u][4]", f->tiles_r, f->tiles_c)
                     : po_arena_printf(c->arena, "[%u][%u]", f->tiles_r, f->tiles_c);
}

void cu_zero(cu *c, const cu_fragment *f, const char *name) {
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
    if (c->tensor[tensor].rows) {
        cg_line(&c->g, "float %s[%u][2]; /* %s, by rows in registers */", c->tensor[tensor].name,
                f->tiles_r, c->mu->tensors[tensor].name);
        return;
    }
    cg_line(&c->g, "float %s%s; /* %s, in registers */", c->tensor[tensor].name,
            cu_registers_text(c, f), c->mu->tensors[tensor].name);
    for (uint32_t n = c->mu->first; n != PO_NONE; n = po_mu_next(c->mu, n))
        if (c->mu->nodes[n].kind == PO_MU_STATEMENT && c->node[n].work == CU_PRODUCT &&
            c->mu->nodes[n].statement.out.tensor == tensor && cu_starts_once(c, n)) {
            cu_zero(c, f, c->tensor[tensor].name);
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

const char *cu_warp_row(cu *c, const cu_fragment *f) {
    return start_of(c, f->warps_c, f->warps_r, f->warps_k == 1, height(f));
}

const char *cu_warp_col(cu *c, const cu_fragment *f) {
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
        cg_line(&c->g, "const int row = %sr * 16 + lane / 4 + h * 4;", cu_warp_row(c, f));
        cg_line(&c->g, "const int left = %st * 8 + lane %% 4 * 2;", cu_warp_col(c, f));
    } else {
        cg_line(&c->g, "const int row = %sr * 4 + lane / 8;", cu_warp_row(c, f));
        cg_line(&c->g, "const int left = %st * 8 + lane %% 8;", cu_warp_col(c, f));
    }
}

static void close_tiles(cu *c, const cu_fragment *f) {
    for (uint32_t i = 0; i < (f->tensor ? 3 : 2); i++)
        cg_close(&c->g);
    cu_forget(c, f->row, f->n_row);
    cu_forget(c, f->col, f->n_col);
}

/* Whether rows, columns lie inside the box for all threads. */
bool cu_is_full(const cu_fragment *f, bool col) {
    return col ? f->cols == width(f) * f->warps_c : f->rows == height(f) * f->warps_r;
}

/* The element's condition, its labels being set: the box, tails, indices of these accesses. */
static const char *element_counts(cu *c, uint32_t node, const cu_fragment *f) {
    const po_mu_statement *s = &c->mu->nodes[node].statement;
    const char *all = NULL;
    if (!cu_is_full(f, false))
        all = cu_and(c, all, po_arena_printf(c->arena, "row < %lld", (long long)f->rows));
    if (!cu_is_full(f, true))
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

const char *cu_combined(cu *c, uint32_t node, const char *old, const char *value) {
    const po_mu_statement *s = &c->mu->nodes[node].statement;
    if (s->combine == PO_MU_SET)
        return value;
    const char *start = s->combine == PO_MU_ADD ? "0.0f" : "(-PC_INF)";
    const char *first = s->fresh ? cu_is_first(c, node) : NULL;
    if (s->fresh && first == NULL)
        old = start;
    else if (s->fresh)
        old = po_arena_printf(c->arena, "(%s ? %s : %s)", first, start, old);
    return s->combine == PO_MU_MAXIMUM ? po_arena_printf(c->arena, "pc_max(%s, %s)", old, value)
           : strcmp(old, "0.0f") == 0  ? value
                                       : po_arena_printf(c->arena, "%s + (%s)", old, value);
}

const char *cu_rounded(cu *c, po_mu_type type, const char *value) {
    if (type == PO_MU_F32)
        return value;
    const char *suffix = cu_suffix(type);
    return po_arena_printf(c->arena, "pc_from%s(pc_to%s(%s))", suffix, suffix, value);
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
void cu_over_tiles(cu *c, uint32_t node, const cu_fragment *f, const char *sum) {
    const po_mu_statement *s = &c->mu->nodes[node].statement;
    const cu_tensor *to = &c->tensor[s->out.tensor];
    bool memory = to->fragment == 0, pairs = memory && in_pairs(c, node, f, &s->out);
    const char *operand[PO_MU_MAX_INPUTS], *value;
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
                    t->fragment == 0 ? cu_get(c, &s->in[k])
                    : t->rows        ? po_arena_printf(c->arena, "%s[r][h / 2]", t->name)
                                     : register_of(c, f, t->name));
        }
        value = cu_value_of(c, s, operand);
    }
    const char *old = memory ? cu_get(c, &s->out) : register_of(c, f, to->name);
    value = cu_combined(c, node, old, value);
    if (!memory && sum == NULL)
        value = cu_rounded(c, c->mu->tensors[s->out.tensor].type, value);
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

static void gather(cu *c, uint32_t node) {
    uint32_t step = po_mu_step_of(c->mu, node);
    const cu_fragment *f = &c->fragment[c->node[node].fragment];
    uint32_t registers = f->tiles_r * f->tiles_c * 4, at = 0, others = c->threads / f->warps_k;
    cg_line(&c->g, "/* %u warps have parts of the sums: all parts to all of them */", f->warps_k);
    for (uint32_t up = c->mu->nodes[node].parent; up != PO_NONE; up = c->mu->nodes[up].parent)
        if (c->mu->nodes[up].kind == PO_MU_LOOP && c->mu->nodes[up].loop == PO_MU_FOR) {
            cg_line(&c->g, "pc_barrier(); /* the parts before these have been read */");
            break;
        }
    /* Each tile's parts have room of their own. */
    uint32_t base = 0;
    for (uint32_t t = 0; t < c->mu->n_tensors; t++) {
        uint32_t other = c->tensor[t].fragment;
        if (other != 0 && other < c->node[node].fragment + 1 && is_summed(c, step, t) &&
            c->fragment[other - 1].warps_k > 1)
            base +=
                c->threads * c->fragment[other - 1].tiles_r * c->fragment[other - 1].tiles_c * 4;
    }
    for (int pass = 0; pass < 2; pass++) {
        at = base;
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

po_status cu_print_fragment(cu *c, uint32_t node) {
    const cu_fragment *f = &c->fragment[c->node[node].fragment];
    const po_mu_statement *s = &c->mu->nodes[node].statement;
    if (f->gather == node)
        gather(c, node);
    /* Warps that share sums have the same: one of them stores. */
    bool one = f->warps_k > 1 && c->tensor[s->out.tensor].fragment == 0;
    cg_line(&c->g, "/* map: over the register tile */");
    if (one)
        cg_open(&c->g, "if (warp < %u)", f->warps_r * f->warps_c);
    cu_over_tiles(c, node, f, NULL);
    if (one)
        cg_close(&c->g);
    return PO_OK;
}

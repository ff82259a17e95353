/* Rows of register tiles: sums over a tile's columns, and maps over its rows. A row lies in four
 * lanes side by side, which all have what belongs to it: r[tile][half]. */
#include "codegen/cuda/internal.h"

static void open_rows(cu *c, const cu_fragment *f) {
    cg_line(&c->g, "#pragma unroll");
    cg_open(&c->g, "for (int r = 0; r < %u; r++)", f->tiles_r);
    cg_line(&c->g, "#pragma unroll");
    cg_open(&c->g, "for (int h = 0; h < 4; h += 2)");
    cg_line(&c->g, "const int row = %sr * 16 + lane / 4 + h * 4;", cu_warp_row(c, f));
}

static void close_rows(cu *c, const cu_fragment *f) {
    cg_close(&c->g);
    cg_close(&c->g);
    cu_forget(c, f->row, f->n_row);
}

static const char *row_of(cu *c, uint32_t tensor) {
    return po_arena_printf(c->arena, "%s[r][h / 2]", c->tensor[tensor].name);
}

/* The operands, as x0, x1, ..., where the labels are set; `p`: in the loop over a tile's columns.
 */
static void operands(cu *c, const po_mu_statement *s, const char **operand) {
    for (uint32_t k = 0; k < s->n_in; k++) {
        const cu_tensor *t = &c->tensor[s->in[k].tensor];
        operand[k] = po_arena_printf(c->arena, "x%u", k);
        cg_line(&c->g, "const float x%u = %s;", k,
                t->fragment == 0 ? cu_get(c, &s->in[k])
                : t->rows        ? row_of(c, s->in[k].tensor)
                                 : po_arena_printf(c->arena, "%s[r][t][h + p]", t->name));
    }
}

static const char *insides(cu *c, const po_mu_statement *s, bool out) {
    const char *all = NULL;
    for (uint32_t k = 0; k < s->n_in + out; k++)
        all = cu_and(c, all, cu_inside(c, k < s->n_in ? &s->in[k] : &s->out));
    return all;
}

po_status cu_print_tile_sum(cu *c, uint32_t node) {
    const cu_fragment *f = &c->fragment[c->node[node].fragment];
    const po_mu_statement *s = &c->mu->nodes[node].statement;
    const char *operand[PO_MU_MAX_INPUTS], *start, *value, *to = row_of(c, s->out.tensor);
    bool sum = s->combine == PO_MU_ADD;
    start = sum ? "0.0f" : "(-PC_INF)";
    cg_line(&c->g, "/* sum: over the columns of the register tile */");
    open_rows(c, f);
    cg_line(&c->g, "float sum = %s;", start);
    cg_line(&c->g, "#pragma unroll");
    cg_open(&c->g, "for (int t = 0; t < %u; t++)", f->tiles_c);
    cg_line(&c->g, "#pragma unroll");
    cg_open(&c->g, "for (int p = 0; p < 2; p++)");
    cg_line(&c->g, "const int col = t * 8 + lane %% 4 * 2 + p;");
    cu_take_apart(c, node, "row", f->row, f->n_row, 1);
    cu_take_apart(c, node, "col", f->col, f->n_col, 1);
    const char *counts = cu_tail(c, node, f->col, f->n_col);
    if (!cu_is_full(f, true))
        counts = cu_and(c, po_arena_printf(c->arena, "col < %lld", (long long)f->cols), counts);
    counts = cu_and(c, counts, insides(c, s, false));
    if (counts != NULL)
        cg_open(&c->g, "if (%s)", counts);
    operands(c, s, operand);
    value = cu_value_of(c, s, operand);
    cg_line(&c->g, sum ? "sum = sum + %s;" : "sum = pc_max(sum, %s);", value);
    if (counts != NULL)
        cg_close(&c->g);
    cg_close(&c->g);
    cg_close(&c->g);
    cu_forget(c, f->col, f->n_col);
    cg_line(&c->g, "sum = %s<4>(sum);", sum ? "pc_sum" : "pc_most");
    cg_line(&c->g, "%s = %s;", to,
            cu_rounded(c, c->mu->tensors[s->out.tensor].type, cu_combined(c, node, to, "sum")));
    close_rows(c, f);
    return PO_OK;
}

po_status cu_print_tile_row(cu *c, uint32_t node) {
    const cu_fragment *f = &c->fragment[c->node[node].fragment];
    const po_mu_statement *s = &c->mu->nodes[node].statement;
    const char *operand[PO_MU_MAX_INPUTS];
    bool memory = c->tensor[s->out.tensor].fragment == 0;
    cg_line(&c->g, "/* map: over the rows of the register tile */");
    open_rows(c, f);
    cu_take_apart(c, node, "row", f->row, f->n_row, 1);
    /* One of the lanes that have the row reads and writes what others might read. */
    const char *counts = memory ? "lane % 4 == 0" : NULL;
    counts = cu_and(c, counts, cu_tail(c, node, f->row, f->n_row));
    counts = cu_and(c, counts, insides(c, s, true));
    if (counts != NULL)
        cg_open(&c->g, "if (%s)", counts);
    operands(c, s, operand);
    const char *value = cu_value_of(c, s, operand);
    const char *to = memory ? cu_get(c, &s->out) : row_of(c, s->out.tensor);
    value = cu_combined(c, node, to, value);
    if (memory)
        cu_put(c, &s->out, value);
    else
        cg_line(&c->g, "%s = %s;", to, cu_rounded(c, c->mu->tensors[s->out.tensor].type, value));
    if (counts != NULL)
        cg_close(&c->g);
    close_rows(c, f);
    return PO_OK;
}

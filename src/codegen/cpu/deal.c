/* How the blocks of a phase are dealt out to the parts of the pool: in order, or so that each part
 * has rows of its own. */
#include "codegen/cpu/printer.h"
#include "ir/size.h"

/* How many chunks a loop has. */
static po_dim blocks_of(cg *g, uint32_t loop) {
    const int64_t chunk = po_mu_open_chunk(g->open, loop);
    const po_dim extent = g->open->extent[g->mu->nodes[loop].label];
    return chunk ? po_size_floor(g->arena, extent, chunk - 1, chunk) : PO_DIM(1);
}

/* Floats of what statements inside a loop read that moves with the label and not with the other. */
static double moved_by(const cg *g, uint32_t loop, uint32_t label, uint32_t other) {
    const po_mu *mu = g->mu;
    double floats = 0;
    for (uint32_t t = 0; t < mu->n_tensors; t++) {
        bool is = false;
        for (uint32_t n = loop; n != PO_NONE && po_mu_inside(mu, n, loop); n = po_mu_next(mu, n)) {
            const po_mu_statement *s = &mu->nodes[n].statement;
            for (uint32_t k = 0; mu->nodes[n].kind == PO_MU_STATEMENT && k < s->n_in; k++)
                is |= s->in[k].tensor == t && po_mu_has(mu, &s->in[k], label) &&
                      !po_mu_has(mu, &s->in[k], other);
        }
        const po_mu_place place = mu->tensors[t].place;
        floats += is && place != PO_MU_REGISTER && place != PO_MU_TABLE
                      ? (double)mu->tensors[t].floats
                      : 0;
    }
    return floats;
}

/* Whether parts have rows of their own, and go through all panels of a weight for them. What was
 * written by other parts takes longer to read than what all have read: rows come first where they
 * are half of what the panels are. */
static bool deals_rows(const cg *g, const uint32_t *nest, uint32_t n) {
    if (n != 2)
        return false;
    const uint32_t outer = g->mu->nodes[nest[0]].label, inner = g->mu->nodes[nest[1]].label;
    const double rows = moved_by(g, nest[1], inner, outer);
    return rows > 0 && 2 * rows >= moved_by(g, nest[1], outer, inner);
}

/* Blocks [from, to) of rows times panels, panels outside: each is read once for all rows. */
static void deal_rows(cg *g, const uint32_t *nest) {
    const char *panels = cg_length(g, blocks_of(g, nest[0])), *index[] = {"panel", "row"};
    cg_open(g, "for (size_t panel = 0; panel < (size_t)%s; panel++)", panels);
    cg_line(g, "const size_t before = from + (size_t)%s - 1 - panel;", panels);
    cg_open(g, "for (size_t row = before / (size_t)%s; row * (size_t)%s + panel < to; row++)",
            panels, panels);
    for (uint32_t i = 0; i < 2; i++)
        cg_line(g, "const long b_%s = (long)%s * %lld;", g->label[g->mu->nodes[nest[i]].label],
                index[i], (long long)po_mu_open_chunk(g->open, nest[i]));
}

static void deal_blocks(cg *g, const uint32_t *nest, uint32_t n) {
    cg_open(g, "for (size_t block = from; block < to; block++)");
    if (n > 1)
        cg_line(g, "long rest = (long)block;");
    for (uint32_t i = n; i-- > 0;) {
        const int64_t chunk = po_mu_open_chunk(g->open, nest[i]);
        const char *count = cg_length(g, blocks_of(g, nest[i]));
        const char *name = g->label[g->mu->nodes[nest[i]].label];
        const char *rest = n > 1 ? "rest" : "(long)block";
        if (i == 0)
            cg_line(g, "const long b_%s = %s * %lld;", name, rest, (long long)chunk);
        else
            cg_line(g, "const long b_%s = rest %% %s * %lld;", name, count, (long long)chunk);
        if (i > 0)
            cg_line(g, "rest /= %s;", count);
    }
}

uint32_t cg_deal(cg *g, uint32_t node, uint32_t nest[PO_MU_MAX_DEPTH], uint32_t *braces) {
    const po_mu *mu = g->mu;
    uint32_t n = 0;
    for (uint32_t at = node;;) {
        nest[n++] = at;
        uint32_t first = mu->nodes[at].first;
        if (n == PO_MU_MAX_DEPTH || first == PO_NONE || mu->nodes[first].next != PO_NONE ||
            mu->nodes[first].kind != PO_MU_LOOP || mu->nodes[first].loop != PO_MU_GRID)
            break;
        at = first;
    }
    po_text blocks;
    po_text_init(&blocks, g->arena);
    int64_t number = 1;
    for (uint32_t i = 0; i < n; i++) {
        const po_dim count = blocks_of(g, nest[i]);
        number *= count.value >= 0 ? count.value : 1;
        if (count.value < 0)
            po_text_printf(&blocks, " * (size_t)%s", cg_length(g, count));
    }
    const char *all =
        po_arena_printf(g->arena, "%lldul%s", (long long)number, blocks.data ? blocks.data : "");
    cg_line(g, "const size_t from = %s * part / parts;", all);
    cg_line(g, "const size_t to = %s * (part + 1) / parts;", all);
    const bool rows = deals_rows(g, nest, n);
    if (rows)
        deal_rows(g, nest);
    else
        deal_blocks(g, nest, n);
    *braces = rows ? 2 : 1;
    return n;
}

/* About how long a phase takes, by its statements. */
#include "codegen/cpu/printer.h"

static double of_statement(cg *g, const po_mu_statement *s) {
    static const double flops[] = {
#define PO_MU_FUNCTION(id, name, arity, n, what) n,
#include "mugraph/functions.def"
#undef PO_MU_FUNCTION
    };
    uint32_t n_kept, n_reduced, *kept, *reduced;
    double elements = 1, each = 0;
    po_mu_labels_of(g->mu, s, g->arena, &n_kept, &kept, &n_reduced, &reduced);
    for (uint32_t i = 0; i < n_kept; i++)
        elements *= (double)g->mu->labels[kept[i]].extent;
    for (uint32_t i = 0; i < n_reduced; i++)
        elements *= (double)g->mu->labels[reduced[i]].extent;
    for (uint32_t i = 0; i < s->n_items; i++)
        each += flops[s->items[i].function];
    /* A product and its sum a cycle; else what is read and written counts: two cycles a vector. */
    each += n_reduced > 0 ? 0 : 2 * (double)(s->n_in + 1);
    return elements * each / PO_MU_VECTOR;
}

double cg_cycles(cg *g, uint32_t from, uint32_t to) {
    double cycles = 0;
    for (uint32_t n = from; n != PO_NONE && n != to; n = po_mu_next(g->mu, n))
        if (g->mu->nodes[n].kind == PO_MU_STATEMENT)
            cycles += of_statement(g, &g->mu->nodes[n].statement);
    return cycles;
}

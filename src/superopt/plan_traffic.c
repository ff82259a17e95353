#include "superopt/plan.h"

/* What is smaller is found where the step before left it: in the second cache. */
static const double kept_in_cache = 1 << 20;

double po_plan_traffic(po_arena *arena, const po_mu *naive, uint32_t step) {
    bool *seen = PO_NEW_N(arena, bool, naive->n_tensors);
    for (uint32_t i = 0; i < naive->n_nodes; i++) {
        if (naive->nodes[i].kind != PO_MU_STATEMENT ||
            (step != PO_NONE && !po_mu_inside(naive, i, step)))
            continue;
        const po_mu_statement *s = &naive->nodes[i].statement;
        seen[s->out.tensor] = true;
        for (uint32_t k = 0; k < s->n_in; k++)
            seen[s->in[k].tensor] = true;
    }
    double bytes = 0;
    for (uint32_t i = 0; i < naive->n_tensors; i++) {
        const po_mu_tensor *t = &naive->tensors[i];
        bool inner = t->place == PO_MU_DEVICE && step == PO_NONE;
        if (!seen[i] || inner || t->place == PO_MU_SHARED || t->place == PO_MU_REGISTER ||
            t->place == PO_MU_TABLE)
            continue;
        double size = 4;
        for (uint32_t k = 0; k < t->rank; k++)
            size *= (double)t->dims[k];
        bytes += t->place == PO_MU_WEIGHT || size > kept_in_cache ? size : 0;
    }
    return bytes;
}

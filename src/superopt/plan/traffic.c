/* Bytes that naive steps move from and to memory: weights, and tensors above 1 MiB that do not only
 * pass between the steps, each counted once. */
#include "superopt/plan/plan.h"

/* What is smaller is found where the step before left it: in the second cache. */
static const double kept_in_cache = 1 << 20;

static bool is_of(const po_mu *naive, uint32_t node, const uint32_t *steps, uint32_t n) {
    for (uint32_t i = 0; i < n; i++)
        if (po_mu_inside(naive, node, steps[i]))
            return true;
    return n == 0;
}

double po_plan_traffic_of(po_arena *arena, const po_mu *naive, const uint32_t *steps, uint32_t n) {
    bool *read = PO_NEW_N(arena, bool, naive->n_tensors);
    bool *written = PO_NEW_N(arena, bool, naive->n_tensors);
    for (uint32_t i = 0; i < naive->n_nodes; i++) {
        const po_mu_statement *s = &naive->nodes[i].statement;
        if (naive->nodes[i].kind != PO_MU_STATEMENT || !is_of(naive, i, steps, n))
            continue;
        written[s->out.tensor] = true;
        for (uint32_t k = 0; k < s->n_in; k++)
            read[s->in[k].tensor] = true;
    }
    double bytes = 0;
    for (uint32_t i = 0; i < naive->n_tensors; i++) {
        const po_mu_tensor *t = &naive->tensors[i];
        bool inner = t->place == PO_MU_DEVICE && (n == 0 || (read[i] && written[i]));
        if ((!read[i] && !written[i]) || inner || t->place == PO_MU_SHARED ||
            t->place == PO_MU_REGISTER || t->place == PO_MU_TABLE)
            continue;
        double size = 4;
        for (uint32_t k = 0; k < t->rank; k++)
            size *= (double)t->dims[k];
        bytes += t->place == PO_MU_WEIGHT || size > kept_in_cache ? size : 0;
    }
    return bytes;
}

double po_plan_traffic(po_arena *arena, const po_mu *naive, uint32_t step) {
    return po_plan_traffic_of(arena, naive, &step, step != PO_NONE);
}

/* A plan beside another of the same work: the steps of both are read once more, in one process.
 * What was read earlier is no measure of a few percent: a machine that others use is a tenth slower
 * or faster a minute later. */
#include "superopt/plan/internal.h"

/* The plan's steps as they were read now; NULL: not all were. */
static const po_plan_step *read_again(const planning *p, const po_plan *plan,
                                      const uint32_t *forms) {
    po_plan_step *steps = po_arena_memdup(p->arena, plan->steps, plan->n_steps * sizeof *steps);
    for (uint32_t i = 0; i < plan->n_steps; i++) {
        steps[i].seconds = p->seconds[forms[i]];
        if (!(steps[i].seconds > 0))
            return NULL;
    }
    return steps;
}

po_status po_plan_read_beside(planning *p, uint32_t plan) {
    enum { BOTH = 2 };
    po_plan *const both[BOTH] = {&p->plans[plan], &p->options->beside[plan]};
    const po_plan_step *read[BOTH];
    uint32_t *forms[BOTH], most = 0;
    for (uint32_t k = 0; k < BOTH; k++) {
        forms[k] = PO_NEW_N(p->scratch, uint32_t, both[k]->n_steps + 1);
        most = both[k]->n_steps > most ? both[k]->n_steps : most;
    }
    /* Those that are compared are read one after the other. */
    for (uint32_t i = 0; i < most; i++)
        for (uint32_t k = 0; k < BOTH; k++) {
            if (i >= both[k]->n_steps)
                continue;
            const po_plan_step *s = &both[k]->steps[i];
            if (!s->alone)
                return PO_OK;
            /* Known apart from the first reading by a byte more of memory. */
            forms[k][i] = po_plan_add_variant(p, s->alone, NULL, s->spread + 1);
        }
    bool *wanted = PO_NEW_N(p->scratch, bool, p->n_forms + 1);
    for (uint32_t k = 0; k < BOTH; k++)
        for (uint32_t i = 0; i < both[k]->n_steps; i++)
            wanted[forms[k][i]] = true;
    PO_TRY(po_plan_read(p, wanted, NULL, 1));
    for (uint32_t k = 0; k < BOTH; k++)
        read[k] = read_again(p, both[k], forms[k]);
    for (uint32_t k = 0; k < BOTH && read[0] && read[1]; k++)
        both[k]->steps = read[k];
    return PO_OK;
}

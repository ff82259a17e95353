/* What a block holds is bounded: a choice that holds more is none, however well it is put. */
#include "planned.h"
#include "unit.h"

/* Rows of which a half is a prime number are one block of Strassen's. */
static const char rows[] =
    "graph g (x: f32[40022,512]) -> (y) {\n y = MatMul(x, w: f32[512,512] random 1)\n}";

static int64_t held(test_planned *f, uint32_t node, const po_choice *choice) {
    po_standalone_step lone;
    po_mu_cost cost;
    po_mu_cost_of(po_plan_standalone(f->arena, f->plan.lowered.mu, node, choice, &lone), &cost);
    return cost.shared;
}

static void no_block_holds_more(void **state) {
    (void)state;
    uint32_t larger = 0;
    test_planned f;
    test_planned_start(&f, rows, false);
    const po_mu *naive = f.plan.lowered.mu;
    for (uint32_t node = naive->first; node != PO_NONE; node = naive->nodes[node].next) {
        po_choice choices[PO_CHOICES_MAX];
        const uint32_t n = po_choices_of(naive, node, &po_isas[PO_ISA_AVX512], 0, choices);
        for (uint32_t k = 0; k < n; k++)
            larger += held(&f, node, &choices[k]) > PO_SHARED_BYTES;
    }
    assert_true(larger > 0);
    assert_int_equal(po_mu_check(&f.ctx, f.plan.mu, PO_SHARED_BYTES), PO_OK);
    test_planned_end(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(no_block_holds_more)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

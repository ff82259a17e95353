/* Which schedules are taken for any size: what a schedule counts for itself may be the number of
 * one of the model's lengths at the size at hand. */
#include "planned.h"
#include "unit.h"

/* Halves of 15 rows are 8 pairs, worked in blocks of 4: 4 times 14 places, 56. */
static const char map[] =
    "graph g (x: f32[1,8,15,14]) -> (y) {\n"
    " a = Conv(x, w: f32[256,8,1,1] random 1) {kernel_shape=[1, 1]}\n b = Relu(a)\n"
    " y = Conv(b, v: f32[512,256,1,1] random 2) {kernel_shape=[1, 1]}\n}";

static bool in_parts(uint32_t n_known, int64_t third) {
    static const char *const names[] = {"p0", "p1", "p2"};
    const int64_t lengths[] = {15, 14, third};
    const po_mu_number known[] = {
        {15, {-1, names[0]}}, {14, {-1, names[1]}}, {third, {-1, names[2]}}};
    const po_plan_sizes sizes = {.naming = {n_known, names, lengths, known, n_known}};
    const po_plan_options options = {.open = &sizes};
    test_planned f;
    test_planned_start(&f, map, false);
    po_plan plan;
    assert_int_equal(po_plan_regions(&f.ctx, f.arena, f.graph, &f.regions, &options, &plan), PO_OK);
    assert_null(plan.failed);
    const char *found = NULL;
    for (uint32_t i = 0; i < plan.n_steps; i++)
        found = strstr(plan.steps[i].schedule, "Strassen") ? plan.steps[i].schedule : found;
    const bool in = found != NULL;
    assert_true(!in || strstr(found, "blocks of 4"));
    test_planned_end(&f);
    return in;
}

static void lengths_of_its_own(void **state) {
    (void)state;
    assert_true(in_parts(2, 0));
    assert_true(in_parts(3, 55));
    assert_false(in_parts(3, 56));
    assert_false(in_parts(3, 4));
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(lengths_of_its_own)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

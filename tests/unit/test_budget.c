/* How long a run may take, by what there is to gain, and limits of parts of a call. */
#include "pipeline/budget.h"
#include "unit.h"

#include <math.h>

/* Parts end in their order, within the whole, for every kind of run. */
static void parts_follow_one_another(void **state) {
    (void)state;
    for (int i = 0; i < 64; i++) {
        po_options o = po_options_default();
        char kernels[] = "k";
        o.kernels = i & 1 ? kernels : NULL;
        o.cuda = i & 2;
        o.level = i & 4 ? 3 : 2;
        o.time_limit = i & 8 ? 7 : 0;
        po_budget budget = {.started = 1000, .heavy = i & 16, .sizes = i & 32};
        po_run run = {.options = &o, .budget = &budget};
        double before = budget.started;
        for (po_part part = 0; part < PO_PARTS; part++) {
            double end = po_budget_end(&run, part);
            assert_true(end >= before);
            assert_true(end + po_budget_grace(&run, part) < 1000 + po_budget_limit(&o));
            before = end;
        }
        budget.started = 0;
        assert_true(po_budget_end(&run, PO_PART_PROOF) == 0);
    }
}

/* Two minutes by default, whatever is under way. */
static void default_is_two_minutes(void **state) {
    (void)state;
    po_options o = po_options_default();
    assert_true(po_budget_limit(&o) <= 120);
    o.kernels = "k";
    assert_true(po_budget_limit(&o) <= 120);
    o.time_limit = 500;
    assert_true(po_budget_limit(&o) == 500);
}

/* Ten seconds below 0.1 ms, all from 2 ms on, and no step between. */
static void toys_have_ten_seconds(void **state) {
    (void)state;
    po_options o = po_options_default();
    po_budget budget = {.started = 1000};
    po_run run = {.options = &o, .budget = &budget};
    budget.spend = po_budget_share(&o, 5e-6);
    assert_true(fabs(po_budget_end(&run, PO_PART_PROOF) - 1010) < 1e-6);
    double before = 0;
    for (double seconds = 1e-6; seconds < 0.1; seconds *= 1.01) {
        double share = po_budget_share(&o, seconds);
        assert_true(share >= before && share <= 1);
        assert_true(before == 0 || share < 1.02 * before);
        before = share;
    }
    assert_true(before == 1);
    assert_true(po_budget_share(&o, 2e-3) == 1);
    o.time_limit = 30; /* asked for: all of it */
    assert_true(po_budget_share(&o, 5e-6) == 1);
    o.time_limit = 0;
    o.kernels = "k";
    assert_true(po_budget_share(&o, 5e-6) > budget.spend);
}

/* --- limits of parts --- */

static po_status wait_for_it(po_ctx *ctx) {
    po_status status = PO_OK;
    while (status == PO_OK)
        status = po_ctx_poll(ctx);
    return status;
}

static void parts_have_limits(void **state) {
    (void)state;
    po_ctx ctx;
    po_ctx_init(&ctx);
    po_limit limit = po_limit_begin(&ctx, po_now() + 0.01);
    po_status status = wait_for_it(&ctx);
    assert_int_equal(status, PO_TIME_LIMIT);
    assert_true(po_limit_end(&ctx, &limit, &status));
    assert_int_equal(status, PO_OK);
    assert_int_equal(ctx.error.status, PO_OK);
    assert_true(ctx.deadline == 0);
    limit = po_limit_begin(&ctx, 0); /* none */
    assert_true(ctx.deadline == 0);
    status = PO_RUNTIME;
    assert_false(po_limit_end(&ctx, &limit, &status));
    assert_int_equal(status, PO_RUNTIME);
}

/* The call's own limit holds inside of a part, and is no part's. */
static void the_call_goes_first(void **state) {
    (void)state;
    po_ctx ctx;
    po_ctx_init(&ctx);
    ctx.deadline = po_now() + 0.01;
    double outer = ctx.deadline;
    po_limit limit = po_limit_begin(&ctx, po_now() + 100);
    assert_true(ctx.deadline == outer);
    po_status status = wait_for_it(&ctx);
    assert_false(po_limit_end(&ctx, &limit, &status));
    assert_int_equal(status, PO_TIME_LIMIT);
    assert_true(ctx.deadline == outer);
    po_ctx_clear(&ctx);
    atomic_bool stop = true;
    ctx.deadline = 0;
    ctx.cancel = &stop;
    limit = po_limit_begin(&ctx, po_now() + 100);
    status = wait_for_it(&ctx);
    assert_false(po_limit_end(&ctx, &limit, &status));
    assert_int_equal(status, PO_CANCELLED);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_follow_one_another), cmocka_unit_test(default_is_two_minutes),
        cmocka_unit_test(toys_have_ten_seconds),    cmocka_unit_test(parts_have_limits),
        cmocka_unit_test(the_call_goes_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* A plan beside another of the same work: the steps of both have the seconds of readings that were
 * taken together, and what is the same step has been read once. */
#include "planned.h"
#include "unit.h"

static const char map[] =
    "graph g (x: f32[1,16,20,21]) -> (y) {\n"
    " a = Conv(x, w: f32[16,16,3,3] random 1) {kernel_shape=[3, 3], pads=[1, 1, 1, 1]}\n"
    " b = Relu(a)\n"
    " y = Conv(b, v: f32[32,16,1,1] random 2) {kernel_shape=[1, 1]}\n}";

typedef struct fixture {
    test_planned f;
    po_plan_options options;
    po_plan first, second;
} fixture;

static void plan(fixture *t, po_plan *plan) {
    assert_int_equal(
        po_plan_regions(&t->f.ctx, t->f.arena, t->f.graph, &t->f.regions, &t->options, plan),
        PO_OK);
    assert_null(plan->failed);
}

/* The first plan, and its steps with seconds that no reading has. */
static void start(fixture *t, po_plan_step *steps) {
    *t = (fixture){.options = {.measure = true}};
    test_planned_start(&t->f, map, false);
    t->options.readings = po_plan_readings_create(t->f.arena);
    plan(t, &t->first);
    assert_true(t->first.n_steps >= 2 && t->first.n_steps <= 8);
    for (uint32_t i = 0; i < t->first.n_steps; i++) {
        assert_true(t->first.steps[i].seconds > 0 && t->first.steps[i].alone);
        steps[i] = t->first.steps[i];
        steps[i].seconds = 1e6;
    }
    t->first.steps = steps;
    t->options.beside = &t->first;
}

static void both_are_read(void **state) {
    (void)state;
    po_plan_step steps[8];
    fixture t;
    start(&t, steps);
    plan(&t, &t.second);
    assert_int_equal(t.second.n_steps, t.first.n_steps);
    for (uint32_t i = 0; i < t.first.n_steps; i++) {
        assert_string_equal(t.second.steps[i].schedule, t.first.steps[i].schedule);
        assert_true(t.first.steps[i].seconds < 1e6);
        assert_true(t.second.steps[i].seconds == t.first.steps[i].seconds);
    }
    /* Another time nothing is read anew. */
    po_plan third, *second = &t.second;
    plan(&t, &third);
    for (uint32_t i = 0; i < second->n_steps; i++)
        assert_true(third.steps[i].seconds == second->steps[i].seconds);
    test_planned_end(&t.f);
}

/* What is no step by itself is compared with nothing, and keeps what it has. */
static void one_is_not_alone(void **state) {
    (void)state;
    po_plan_step steps[8];
    fixture t;
    start(&t, steps);
    steps[1].alone = NULL;
    plan(&t, &t.second);
    for (uint32_t i = 0; i < t.first.n_steps; i++) {
        assert_true(t.first.steps[i].seconds == 1e6);
        assert_true(t.second.steps[i].seconds > 0 && t.second.steps[i].seconds < 1e6);
    }
    test_planned_end(&t.f);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(both_are_read),
                                       cmocka_unit_test(one_is_not_alone)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

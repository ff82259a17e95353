/* Programs for sizes beyond that at hand: what keeps less is taken where what is kept leaves the
 * cache, and reads the weights of the plan. */
#include "planned.h"
#include "unit.h"

static const char deep[] =
    "graph g (x: f32[1,128,29,28]) -> (y) {\n"
    " a = Conv(x, w: f32[128,128,3,3] random 1) {kernel_shape=[3, 3], pads=[1, 1, 1, 1]}\n"
    " b = Relu(a)\n"
    " y = Conv(b, v: f32[128,128,3,3] random 2) {kernel_shape=[3, 3], pads=[1, 1, 1, 1]}\n}";
static const char shallow[] =
    "graph g (x: f32[1,8,29,28]) -> (y) {\n"
    " y = Conv(x, w: f32[8,8,3,3] random 1) {kernel_shape=[3, 3], pads=[1, 1, 1, 1]}\n}";

static const char *const names[] = {"p0", "p1"};
static const int64_t lengths[] = {29, 28}, larger[] = {82, 79};
static const po_mu_number known[] = {{29, {-1, "p0"}}, {28, {-1, "p1"}}};
static const po_plan_sizes sizes = {.naming = {2, names, lengths, known, 2}};

typedef struct planned {
    test_planned f;
    po_plan plan;
} planned;

static void start(planned *p, const char *graph, bool open) {
    const po_plan_options options = {.open = open ? &sizes : NULL};
    test_planned_start(&p->f, graph, false);
    assert_int_equal(
        po_plan_regions(&p->f.ctx, p->f.arena, p->f.graph, &p->f.regions, &options, &p->plan),
        PO_OK);
    assert_null(p->plan.failed);
}

/* Floats of the program's own tensors where it is large. */
static int64_t kept(planned *p, po_mu *at_hand) {
    const po_mu_open *open;
    int64_t floats = 0;
    assert_int_equal(po_mu_open_by(&p->f.ctx, p->f.arena, at_hand, &sizes.naming, &open), PO_OK);
    const po_mu *mu = po_mu_open_at(p->f.arena, open, larger);
    assert_non_null(mu);
    for (uint32_t i = 0; i < mu->n_tensors; i++)
        if (mu->tensors[i].place == PO_MU_DEVICE || mu->tensors[i].place == PO_MU_SHARED)
            floats += mu->tensors[i].floats;
    return floats;
}

static void keeps_less(void **state) {
    (void)state;
    planned p;
    start(&p, deep, true);
    const po_plan *plan = &p.plan;
    const po_plan_other *wide = plan->wide;
    assert_non_null(wide);
    assert_true(kept(&p, wide->mu) < kept(&p, plan->mu));
    assert_true(wide->from > 1 && wide->from < 8);
    assert_true(wide->first <= plan->n_packed);
    uint32_t n = 0;
    for (uint32_t i = 0; i < wide->mu->n_tensors; i++) {
        const po_mu_tensor *t = &wide->mu->tensors[i];
        if (t->place != PO_MU_WEIGHT)
            continue;
        assert_true(t->number < wide->n_weights);
        const po_packing *as = &plan->packed[wide->weight[t->number]].packing;
        int64_t elements = 1;
        for (uint32_t k = 0; k < as->rank; k++)
            elements *= as->dims[k];
        assert_true(elements == t->floats);
        n++;
    }
    assert_int_equal(n, wide->n_weights);
    test_planned_end(&p.f);
}

static void one_program(void **state) {
    (void)state;
    planned p;
    start(&p, shallow, true); /* what it keeps stays in the cache */
    assert_null(p.plan.wide);
    test_planned_end(&p.f);
    start(&p, deep, false); /* one size is all */
    assert_null(p.plan.wide);
    test_planned_end(&p.f);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(keeps_less), cmocka_unit_test(one_program)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

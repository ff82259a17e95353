/* Windows: which steps are one, and that every program that is found for one does in their place
 * what they do, as a muGraph and compiled. */
#include "superopt/plan/window.h"

#include "planned.h"
#include "unit.h"

/* A layer as exporters write it, 2 heads of 24, 40 tokens: no length is whole vectors. */
#define LAYER(output)                                                                              \
    "graph g (x: f32[1,40,48]) -> (" output ") {\n"                                                \
    " a = MatMul(x, wa: f32[48,48] random 1)\n b = MatMul(x, wb: f32[48,48] random 2)\n"           \
    " c = MatMul(x, wc: f32[48,48] random 3)\n"                                                    \
    " ah = Reshape(a, s: i64[4]{1,40,2,24})\n bh = Reshape(b, s)\n ch = Reshape(c, s)\n"           \
    " q = Transpose(ah) {perm=[0,2,1,3]}\n k = Transpose(bh) {perm=[0,2,3,1]}\n"                   \
    " v = Transpose(ch) {perm=[0,2,1,3]}\n"                                                        \
    " d = MatMul(q, k)\n e = Mul(d, f: f32[]{0.2})\n p = Softmax(e) {axis=-1}\n"                   \
    " h = MatMul(p, v)\n i = Transpose(h) {perm=[0,2,1,3]}\n j = Reshape(i, t: i64[3]{1,40,48})\n" \
    " l = MatMul(j, wd: f32[48,48] random 4)\n m = Add(l, x)\n"                                    \
    " y = LayerNormalization(m, g: f32[48] random 5, o: f32[48] random 6)\n}"

/* One product for all three, sliced; a factor on either side of a product. */
static const char sliced[] =
    "graph g (x: f32[1,40,48]) -> (y) {\n"
    " p = MatMul(x, w: f32[48,144] random 1)\n"
    " a, b, c = Split(p, z: i64[3]{48,48,48}) {axis=2}\n"
    " ah = Reshape(a, s: i64[4]{1,40,2,24})\n bh = Reshape(b, s)\n ch = Reshape(c, s)\n"
    " q = Transpose(ah) {perm=[0,2,1,3]}\n k = Transpose(bh) {perm=[0,2,3,1]}\n"
    " v = Transpose(ch) {perm=[0,2,1,3]}\n"
    " qf = Mul(q, f: f32[]{0.45180100202560425})\n kf = Mul(k, f)\n"
    " d = MatMul(qf, kf)\n e = Softmax(d) {axis=-1}\n h = MatMul(e, v)\n"
    " i = Transpose(h) {perm=[0,2,1,3]}\n j = Reshape(i, t: i64[3]{1,40,48})\n"
    " y = MatMul(j, u: f32[48,48] random 4)\n}";

enum { FOUND = 12 };

typedef struct fixture {
    test_planned f;
    po_row_fusion b; /* the window's steps */
    const po_mu *mu;
    const po_mu_view *view;
    po_found found[FOUND];
    uint32_t n;
} fixture;

/* The window that begins with the number-th step. */
static void cut(fixture *t, uint32_t first, uint32_t n) {
    uint32_t node = t->f.plan.lowered.mu->first;
    for (uint32_t i = 0; i < first; i++)
        node = t->f.plan.lowered.mu->nodes[node].next;
    assert_true(test_planned_bands(&t->f, node, n, 0, &t->b));
    assert_true(po_plan_window_cut(t->f.arena, t->b.naive, t->b.node, t->b.n, &t->mu, &t->view));
}

/* lossy: whether some programs are refused. */
static void search(fixture *t, const char *graph, uint32_t first, uint32_t n, bool lossy) {
    test_planned_start(&t->f, graph, true);
    cut(t, first, n);
    po_search_options options = po_search_defaults();
    po_search_counts counts;
    assert_true(options.keep <= FOUND);
    assert_int_equal(po_search(&t->f.ctx, t->f.arena, t->mu, &options, &counts, t->found, &t->n),
                     PO_OK);
    assert_true(t->n > 0);
    assert_int_equal(counts.wrong > 0, lossy);
}

/* The whole with the window's steps as one program; whether it computes the same. */
static po_status in_place(fixture *t, const po_plan_window *w) {
    const po_mu *naive = t->b.naive;
    po_schedule s;
    po_schedule_start(&s, t->f.arena, naive, false);
    for (uint32_t node = naive->first; node != PO_NONE; node = naive->nodes[node].next) {
        po_row_fusion one;
        bool inside = false;
        for (uint32_t i = 0; i < t->b.n; i++)
            inside |= t->b.node[i] == node;
        if (node == t->b.node[0])
            po_plan_window_apply(&s, &t->b, w);
        if (inside)
            continue;
        assert_true(test_planned_bands(&t->f, node, 1, 0, &one));
        po_schedule_step(&s, node, one.choice[0]);
    }
    po_schedule_finish(&s);
    return po_search_same(&t->f.ctx, naive, s.mu, s.packed, s.n_packed, 4 << 20);
}

/* --- which steps --- */

static void tells_windows(void **state) {
    static const struct {
        const char *graph, *first, *last;
        double worth;
    } rows[] = {
        {LAYER("y"), "MatMul 1x2x40x24 by 1x2x24x40", "MatMul 1x2x40x40 by 1x2x40x24", 0},
        {LAYER("y"), "LayerNormalization sums", "LayerNormalization", 0},
        /* What is read elsewhere ends it. */
        {LAYER("p, y"), "MatMul 1x2x40x24 by 1x2x24x40", "Softmax division", 0},
        {sliced, "Mul qf", "MatMul 1x2x40x40 by 1x2x40x24", 0},
        /* Not worth it. */
        {LAYER("y"), "MatMul 1x2x40x24 by 1x2x24x40", NULL, 1e6},
        /* A product with a weight, whatever stands behind it. */
        {LAYER("y"), "MatMul 1x40x48 by 48x48", NULL, 0},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        test_planned f;
        test_planned_start(&f, rows[i].graph, true);
        const po_mu *naive = f.plan.lowered.mu;
        uint32_t node = naive->first;
        while (node != PO_NONE && strcmp(naive->nodes[node].name, rows[i].first) != 0)
            node = naive->nodes[node].next;
        assert_int_not_equal(node, PO_NONE);
        const po_plan_uses uses = po_plan_uses_of(f.arena, naive);
        uint32_t n = po_plan_window_from(naive, &uses, node, PO_WINDOW_MOST, rows[i].worth);
        assert_int_equal(n > 0, rows[i].last != NULL);
        for (uint32_t k = 1; k < n; k++)
            node = naive->nodes[node].next;
        if (rows[i].last)
            assert_string_equal(naive->nodes[node].name, rows[i].last);
        test_planned_end(&f);
    }
}

/* --- what is found --- */

enum { NORM = 1 };

static const struct {
    const char *graph;
    uint32_t first, n;
} windows[] = {{LAYER("y"), 3, 6}, {LAYER("y"), 11, 4}, {sliced, 1, 8}};

static void does_what_the_steps_do(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof windows / sizeof windows[0]; i++) {
        fixture t;
        search(&t, windows[i].graph, windows[i].first, windows[i].n, i == NORM);
        for (uint32_t k = 0; k < t.n; k++) {
            const po_plan_window w = {&t.found[k], t.view};
            if (in_place(&t, &w) != PO_OK)
                fail_msg("%s; %s: %s", w.found->algebra, w.found->schedule, t.f.ctx.error.message);
        }
        test_planned_end(&t.f);
    }
}

/* Tails of rows, of keys and of elements among them. */
static void compiled_as_well(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof windows / sizeof windows[0]; i++) {
        fixture t;
        search(&t, windows[i].graph, windows[i].first, windows[i].n, i == NORM);
        po_timed_kernel kernel[FOUND];
        po_standalone_step lone[FOUND];
        po_step_values *last = NULL;
        for (uint32_t k = 0; k < t.n; k++) {
            const po_plan_window w = {&t.found[k], t.view};
            const po_mu *mu = po_plan_window_standalone(t.f.arena, &t.b, &w, &lone[k]);
            lone[k].last = &last;
            kernel[k] = (po_timed_kernel){.mu = mu, .check = po_check_step, .user = &lone[k]};
        }
        assert_int_equal(po_time_kernels(&t.f.ctx, NULL, po_isa_of_machine(), kernel, t.n), PO_OK);
        for (uint32_t k = 0; k < t.n; k++)
            if (kernel[k].seconds <= 0)
                fail_msg("%s; %s", t.found[k].algebra, t.found[k].schedule);
        test_planned_end(&t.f);
    }
}

/* A tensor that is read by other digits than it was written by is another tensor. */
static void a_wrong_view_is_seen(void **state) {
    (void)state;
    fixture t;
    search(&t, windows[0].graph, windows[0].first, windows[0].n, false);
    uint32_t views = 0;
    for (uint32_t i = 0; i < t.mu->n_tensors; i++) {
        po_mu_view *wrong = po_arena_memdup(t.f.arena, t.view, t.mu->n_tensors * sizeof *wrong);
        uint32_t x = 0;
        while (x + 1 < t.mu->tensors[i].rank && wrong[i].axis[x] != wrong[i].axis[x + 1])
            x++;
        if (wrong[i].tensor == PO_NONE || x + 1 >= t.mu->tensors[i].rank)
            continue;
        const int64_t times = wrong[i].times[x];
        wrong[i].times[x] = wrong[i].times[x + 1];
        wrong[i].times[x + 1] = times;
        const po_plan_window w = {&t.found[0], wrong};
        assert_int_not_equal(in_place(&t, &w), PO_OK);
        po_ctx_clear(&t.f.ctx);
        views++;
    }
    assert_int_equal(views, 3); /* queries, keys, values */
    test_planned_end(&t.f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tells_windows), cmocka_unit_test(does_what_the_steps_do),
        cmocka_unit_test(compiled_as_well), cmocka_unit_test(a_wrong_view_is_seen)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

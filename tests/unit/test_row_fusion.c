/* Steps in bands of rows: every way in which the steps of small graphs can be joined computes what
 * the graph does, as a muGraph and compiled, and no label of it can be one shorter. */
#include "cost/kernels.h"
#include "mugraph/prove.h"
#include "planned.h"
#include "unit.h"

#include <math.h>

static const struct {
    const char *name, *graph;
    uint32_t fit; /* joins of two and of three steps that there are, bands of all heights */
} samples[] = {
    {"expand, depthwise, project, residual",
     "graph g (x: f32[1,16,12,10]) -> (y) {\n"
     " e = Conv(x, a: f32[32,16,1,1] random 1, b: f32[32] random 2) {kernel_shape=[1, 1]}\n"
     " f = Relu(e)\n d = Conv(f, c: f32[32,1,3,3] random 3, g: f32[32] random 4) "
     "{kernel_shape=[3, 3], pads=[1, 1, 1, 1], group=32}\n h = HardSwish(d)\n"
     " p = Conv(h, i: f32[16,32,1,1] random 5, j: f32[16] random 6) {kernel_shape=[1, 1]}\n"
     " y = Add(p, x)\n}",
     15},
    {"strides and a large window",
     "graph g (x: f32[1,16,16,11]) -> (y) {\n"
     " e = Conv(x, a: f32[24,16,1,1] random 1, b: f32[24] random 2) {kernel_shape=[1, 1]}\n"
     " f = Relu(e)\n d = Conv(f, c: f32[24,1,5,5] random 3, g: f32[24] random 4) "
     "{kernel_shape=[5, 5], pads=[2, 2, 2, 2], strides=[2, 1], group=24}\n h = Sigmoid(d)\n"
     " y = Conv(h, i: f32[16,24,1,1] random 5, j: f32[16] random 6) {kernel_shape=[1, 1]}\n}",
     16},
    {"depthwise, product, depthwise",
     "graph g (x: f32[1,16,12,9]) -> (y) {\n"
     " e = Conv(x, a: f32[16,1,3,3] random 1, b: f32[16] random 2) {kernel_shape=[3, 3], "
     "pads=[1, 1, 1, 1], group=16}\n f = Relu(e)\n"
     " d = Conv(f, c: f32[32,16,1,1] random 3, g: f32[32] random 4) {kernel_shape=[1, 1]}\n"
     " h = Relu(d)\n y = Conv(h, i: f32[32,1,3,3] random 5, j: f32[32] random 6) "
     "{kernel_shape=[3, 3], pads=[1, 1, 1, 1], group=32}\n}",
     25},
    {"two windows, uneven edges, a dilation",
     "graph g (x: f32[1,16,12,9]) -> (y) {\n"
     " a = Conv(x, w: f32[16,16,3,3] random 1, b: f32[16] random 2) {kernel_shape=[3, 3], "
     "pads=[2, 1, 0, 1]}\n r = Relu(a)\n"
     " c = Conv(r, v: f32[16,16,3,3] random 3, u: f32[16] random 4) {kernel_shape=[3, 3], "
     "pads=[2, 2, 2, 2], dilations=[2, 2]}\n y = Relu(c)\n}",
     15},
    {"a window and a pool",
     "graph g (x: f32[1,16,16,12]) -> (y) {\n"
     " a = Conv(x, w: f32[16,16,3,3] random 1, b: f32[16] random 2) {kernel_shape=[3, 3], "
     "pads=[1, 1, 1, 1]}\n r = Tanh(a)\n"
     " m = MaxPool(r) {kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1]}\n"
     " y = Conv(m, v: f32[32,16,1,1] random 3) {kernel_shape=[1, 1]}\n}",
     16},
    {"an image as planes, and depth to space",
     "graph g (x: f32[1,3,16,12]) -> (y) {\n"
     " a = Conv(x, w: f32[16,3,3,3] random 1, b: f32[16] random 2) {kernel_shape=[3, 3], "
     "pads=[1, 1, 1, 1], strides=[2, 2]}\n r = Relu(a)\n"
     " c = Conv(r, v: f32[64,16,1,1] random 3, e: f32[64] random 4) {kernel_shape=[1, 1]}\n"
     " s = Sigmoid(c)\n d = DepthToSpace(s) {blocksize=2}\n"
     " y = Conv(d, u: f32[16,16,3,3] random 5, t: f32[16] random 6) {kernel_shape=[3, 3], "
     "pads=[1, 1, 1, 1]}\n}",
     18},
    {"what passes on is read elsewhere",
     "graph g (x: f32[1,16,12,10]) -> (y) {\n"
     " a = Conv(x, w: f32[16,16,3,3] random 1, b: f32[16] random 2) {kernel_shape=[3, 3], "
     "pads=[1, 1, 1, 1]}\n r = Relu(a)\n"
     " m = MaxPool(r) {kernel_shape=[3, 3], pads=[1, 1, 1, 1]}\n"
     " g = GlobalAveragePool(r)\n y = Mul(m, g)\n}",
     5},
    {"windows without a sum to leave rows out by",
     "graph g (x: f32[1,16,12,10]) -> (y) {\n"
     " a = Conv(x, w: f32[16,16,3,3] random 1) {kernel_shape=[3, 3], pads=[1, 1, 1, 1]}\n"
     " y = MaxPool(a) {kernel_shape=[3, 3], pads=[1, 1, 1, 1]}\n}",
     5},
};
enum { SAMPLES = sizeof samples / sizeof samples[0] };

/* All joins that fit, heights of bands included. */
static uint32_t joins(test_planned *f, po_row_fusion *found, uint32_t most) {
    const po_mu *naive = f->plan.lowered.mu;
    uint32_t n = 0;
    for (uint32_t node = naive->first; node != PO_NONE; node = naive->nodes[node].next)
        for (uint32_t steps = 2; steps <= 3; steps++) {
            po_row_fusion b;
            po_row_fusion_cost cost = {.height = 0};
            for (int64_t rows = 1; rows <= 64 && test_planned_bands(f, node, steps, rows, &b);
                 rows++) {
                if (!po_row_fusion_fits(f->arena, &b, &cost) || rows == cost.height)
                    continue;
                assert_true(n < most && cost.height % rows == 0);
                assert_true(cost.held > 0 && cost.whole > 0 && cost.most_again >= 1);
                found[n++] = b;
            }
        }
    return n;
}

/* The whole with one join. */
static const po_mu *whole(test_planned *f, const po_row_fusion *b) {
    const po_mu *naive = f->plan.lowered.mu;
    po_schedule s;
    po_schedule_start(&s, f->arena, naive, false);
    for (uint32_t node = naive->first; node != PO_NONE; node = naive->nodes[node].next) {
        po_choice choices[PO_CHOICES_MAX];
        if (node == b->node[0]) {
            po_row_fusion_apply(&s, b);
            node = b->node[b->n - 1];
            continue;
        }
        po_choices_of(naive, node, &po_isas[PO_ISA_AVX512], 1, choices);
        po_schedule_step(&s, node, &choices[0]);
    }
    po_schedule_finish(&s);
    f->plan.packed = s.packed;
    f->plan.n_packed = s.n_packed;
    return s.mu;
}

/* Whether the muGraph computes what is expected. */
static bool computes(test_planned *f, const po_mu *mu, const po_array *in,
                     const po_array *expected) {
    double *out = PO_NEW_N(f->arena, double, expected->count);
    if (test_planned_eval(f, mu, true, in, out) != PO_OK)
        return false;
    for (int64_t e = 0; e < expected->count; e++)
        if (!(fabs(out[e] - expected->f[e]) <= 1e-9))
            return false;
    return true;
}

enum { MOST = 64 };

static void bands_compute_what_the_graph_does(void **state) {
    (void)state;
    for (size_t i = 0; i < SAMPLES; i++) {
        test_planned f;
        po_row_fusion found[MOST];
        po_array *expected;
        test_planned_start(&f, samples[i].graph, true);
        const po_array *in = test_planned_input(&f);
        assert_int_equal(po_ref_graph(&f.ctx, f.arena, f.graph, &in, &expected, false), PO_OK);
        uint32_t n = joins(&f, found, MOST);
        assert_int_equal(n, samples[i].fit);
        for (uint32_t k = 0; k < n; k++) {
            const po_mu *mu = whole(&f, &found[k]);
            po_mu_proved proved;
            po_status status = po_mu_check(&f.ctx, mu, 1 << 24);
            if (status == PO_OK)
                status = po_mu_prove(&f.ctx, mu, 0, &proved);
            bool right = status == PO_OK && computes(&f, mu, in, expected);
            po_text text;
            po_text_init(&text, f.arena);
            po_mu_print(&text, mu);
            if (!right)
                fail_msg("%s, %u steps, %lld rows: %s\n%s", samples[i].name, found[k].n,
                         (long long)found[k].rows, f.ctx.error.message, text.data);
        }
        test_planned_end(&f);
    }
}

static void compiled_bands_compute_what_the_steps_do(void **state) {
    (void)state;
    uint32_t isa = po_isa_of_machine();
    if (isa == PO_ISAS)
        skip();
    for (size_t i = 0; i < SAMPLES; i += TEST_SHARE) {
        test_planned f;
        po_row_fusion found[MOST];
        po_timed_kernel kernels[MOST];
        test_planned_start(&f, samples[i].graph, true);
        uint32_t n = joins(&f, found, MOST);
        for (uint32_t k = 0; k < n; k++) {
            po_standalone_step *lone = PO_NEW(f.arena, po_standalone_step);
            kernels[k] =
                (po_timed_kernel){.mu = po_plan_standalone_row_fusion(f.arena, &found[k], lone),
                                  .check = po_check_step,
                                  .user = lone,
                                  .spread = 1 << 20};
        }
        if (n > 0)
            assert_int_equal(po_time_kernels(&f.ctx, NULL, isa, kernels, n), PO_OK);
        for (uint32_t k = 0; k < n; k++)
            if (!(kernels[k].seconds > 0))
                fail_msg("%s, %u steps, %lld rows: %s", samples[i].name, found[k].n,
                         (long long)found[k].rows,
                         kernels[k].seconds < 0 ? "wrong" : "not printed or compiled");
        test_planned_end(&f);
    }
}

/* Rows that are missed, a halo that is too small, edges that are not filled: whatever label runs
 * one short is refused, or fails, or shows. */
static void shorter_labels_are_refused(void **state) {
    (void)state;
    for (size_t i = 0; i < SAMPLES; i++) {
        test_planned f;
        po_row_fusion found[MOST];
        po_array *expected;
        test_planned_start(&f, samples[i].graph, true);
        const po_array *in = test_planned_input(&f);
        assert_int_equal(po_ref_graph(&f.ctx, f.arena, f.graph, &in, &expected, false), PO_OK);
        uint32_t n = joins(&f, found, MOST);
        for (uint32_t k = i % 2; k < n; k += 3) {
            po_mu *mu = (po_mu *)(uintptr_t)whole(&f, &found[k]);
            for (uint32_t l = 0; l < mu->n_labels; l++) {
                if (mu->labels[l].extent == 1)
                    continue;
                mu->labels[l].extent--;
                for (uint32_t t = 0; t < mu->n_tensors; t++)
                    if (mu->tensors[t].place == PO_MU_SHARED)
                        po_mu_layout(mu, t, PO_MU_VECTOR, 0);
                po_text text;
                po_text_init(&text, f.arena);
                po_mu_print(&text, mu);
                /* With a dilation rows between those that are needed are held and not read; of
                 * what goes through two windows, or is written two rows at a time, more rows are
                 * filled than are read. */
                bool between = (strstr(samples[i].name, "dilation") && found[k].rows == 1) ||
                               ((found[k].n > 2 || strstr(samples[i].name, "depth to space")) &&
                                mu->labels[l].name[0] == 'f');
                if (computes(&f, mu, in, expected) && !between)
                    fail_msg("%s, %u steps, %lld rows: '%s' may be one shorter\n%s",
                             samples[i].name, found[k].n, (long long)found[k].rows,
                             mu->labels[l].name, text.data);
                po_ctx_clear(&f.ctx);
                mu->labels[l].extent++;
            }
        }
        test_planned_end(&f);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bands_compute_what_the_graph_does),
        cmocka_unit_test(compiled_bands_compute_what_the_steps_do),
        cmocka_unit_test(shorter_labels_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

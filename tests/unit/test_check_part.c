/* Parts of what steps write, each computed from what it needs of the inputs, against the same
 * elements of the whole. */
#include "mugraph/eval.h"
#include "planned.h"
#include "superopt/plan/check_part.h"
#include "unit.h"

#include <math.h>

#define CONV3 "{kernel_shape=[3, 3], pads=[1, 1, 1, 1]}"

static const char *const samples[] = {
    "graph g (x: f32[1,4,12,13]) -> (y) {\n"
    " a = Conv(x, w: f32[8,4,3,3] random 1, b: f32[8] random 2) " CONV3 "\n r = Relu(a)\n"
    " c = Conv(r, v: f32[8,8,3,3] random 3) " CONV3 "\n s = Add(c, r)\n y = Relu(s)\n}",
    "graph g (x: f32[2,5,23,9]) -> (y) {\n"
    " a = Conv(x, w: f32[10,5,3,3] random 1, b: f32[10] random 2) {kernel_shape=[3, 3], "
    "strides=[2, 1], dilations=[1, 2], pads=[1, 2, 1, 2]}\n y = Sigmoid(a)\n}",
    "graph g (x: f32[1,3,33,17]) -> (y) {\n"
    " m = MaxPool(x) {kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1]}\n"
    " v = AveragePool(m) {kernel_shape=[2, 2], strides=[1, 1]}\n y = Tanh(v)\n}",
    "graph g (x: f32[1,4,9,7]) -> (y) {\n"
    " y = ConvTranspose(x, w: f32[4,3,2,2] random 1) {kernel_shape=[2, 2], strides=[2, 2]}\n}",
    "graph g (x: f32[1,4,9,7]) -> (y) {\n"
    " y = ConvTranspose(x, w: f32[4,3,4,4] random 1) {kernel_shape=[4, 4], strides=[2, 2], "
    "pads=[1, 1, 1, 1]}\n}",
    "graph g (x: f32[37,24]) -> (y) {\n a = MatMul(x, w: f32[24,33] random 1)\n"
    " b = Add(a, c: f32[33] random 2)\n e = Erf(b)\n y = Mul(b, e)\n}",
    "graph g (x: f32[31,24]) -> (y) {\n a = Softmax(x)\n y = MatMul(a, w: f32[24,8] random 1)\n}",
    "graph g (x: f32[1,8,12,10]) -> (y) {\n r = Relu(x)\n a = Concat(x, r) {axis=1}\n"
    " b = Transpose(a) {perm=[0, 2, 3, 1]}\n y = Exp(b)\n}",
    "graph g (x: f32[1,4,40]) -> (y) {\n"
    " a = Conv(x, w: f32[6,4,7] random 1) {kernel_shape=[7], pads=[3, 3]}\n y = LeakyRelu(a)\n}",
};
enum { SAMPLES = sizeof samples / sizeof *samples, MOST_JOINED = 3 };

/* Every tensor has numbers of its own, which go by the element's place in the whole. */
static bool evaluate(test_planned *f, const po_mu *naive, const po_looked_steps *n,
                     const po_step_part *part, double *value, double *sum) {
    const double **in = PO_NEW_N(f->arena, const double *, naive->n_tensors);
    uint32_t n_in = 0;
    for (uint32_t id = 0; id < naive->n_tensors; id++) {
        const po_mu_tensor *t = &naive->tensors[id];
        bool read = false;
        for (uint32_t i = 0; i < n->n; i++)
            for (uint32_t k = 0; k < n->s[i]->n_in; k++)
                read |= n->s[i]->in[k].tensor == id;
        if (!read || n->inner[id] || t->place == PO_MU_TABLE || t->place == PO_MU_REGISTER)
            continue;
        const po_part_box *box = &part->boxes[id];
        double *data = PO_NEW_N(f->arena, double, po_part_elements(box, t->rank)), *to = data;
        po_part_walk w = po_part_walk_in(box, t);
        do
            *to++ = 2 * po_random_unit(1, id, (uint64_t)w.at) - 1;
        while (po_part_next(&w));
        in[n_in++] = data;
    }
    bool right = po_mu_eval(&f->ctx, part->mu, in, NULL, &value, &sum) == PO_OK;
    po_ctx_clear(&f->ctx);
    return right;
}

/* Elements that parts left out. */
static int64_t compare(test_planned *f, const char *graph, const po_mu *naive,
                       const po_looked_steps *n, const po_part_size *size) {
    static const po_part_size none = {INT64_MAX, INT64_MAX, 0, 0, INT64_MAX, 1};
    po_step_part whole[PO_PARTS_MOST], parts[PO_PARTS_MOST];
    uint32_t n_whole, n_parts;
    if (!po_step_parts(f->arena, naive, n, &none, whole, &n_whole))
        return 0;
    assert_true(po_step_parts(f->arena, naive, n, size, parts, &n_parts));
    assert_int_equal(n_whole, 1);
    const po_mu_tensor *out = &naive->tensors[n->out->tensor];
    int64_t left = whole->count;
    assert_int_equal(whole->count, po_mu_elements(out));
    double *value = PO_NEW_N(f->arena, double, whole->count),
           *sum = PO_NEW_N(f->arena, double, whole->count);
    if (!evaluate(f, naive, n, whole, value, sum))
        return 0; /* others of its steps write what this one reads */
    for (uint32_t p = 0; p < n_parts; p++) {
        const po_part_box *box = &parts[p].boxes[n->out->tensor];
        int64_t count = parts[p].count;
        assert_int_equal(count, po_part_elements(box, out->rank));
        double *some = PO_NEW_N(f->arena, double, count), *sums = PO_NEW_N(f->arena, double, count);
        assert_true(evaluate(f, naive, n, &parts[p], some, sums));
        po_part_walk w = po_part_walk_in(box, out);
        for (int64_t k = 0; k < count; k++, po_part_next(&w)) {
            int64_t e = w.at;
            if (!(fabs(some[k] - value[e]) <= 1e-12 * (1 + sum[e])) ||
                !(fabs(sums[k] - sum[e]) <= 1e-12 * sum[e]))
                fail_msg("%s\npart %u: element %lld is %g and not %g", graph, p, (long long)e,
                         some[k], value[e]);
        }
        left -= count;
    }
    return left;
}

static void parts_are_what_the_whole_has_there(void **state) {
    (void)state;
    uint32_t cut = 0, joined = 0, both = 0;
    for (size_t i = 0; i < SAMPLES; i++) {
        test_planned f;
        test_planned_start(&f, samples[i], false);
        const po_mu *naive = f.plan.lowered.mu;
        for (uint32_t node = naive->first; node != PO_NONE; node = naive->nodes[node].next)
            for (uint32_t steps = 1; steps <= MOST_JOINED; steps++)
                for (int64_t rows = 1; rows <= 3; rows++) {
                    po_looked_steps n;
                    const po_part_size size = {0, 0, 0, rows, INT64_MAX, 1},
                                       heavy = {0, 0, 0, rows, 0, 4 - rows};
                    if (!po_look_at_steps(f.arena, naive, node, steps, &n))
                        continue;
                    const int64_t left = compare(&f, samples[i], naive, &n, &size);
                    cut += left > 0;
                    joined += left > 0 && steps > 1;
                    both += left > 0 && compare(&f, samples[i], naive, &n, &heavy) > left;
                }
        test_planned_end(&f);
    }
    assert_true(cut > 40 && joined > 15 && both > 40);
}

static void small_outputs_are_whole(void **state) {
    (void)state;
    test_planned f;
    po_looked_steps n;
    test_planned_start(&f, samples[0], false);
    const po_mu *naive = f.plan.lowered.mu;
    assert_true(po_look_at_steps(f.arena, naive, naive->first, 1, &n));
    assert_int_equal(compare(&f, samples[0], naive, &n, &po_part_usual), 0);
    test_planned_end(&f);
}

/* A small output may go through much. */
static void what_is_gone_through_counts(void **state) {
    (void)state;
    test_planned f;
    po_looked_steps n;
    const po_part_size small = {INT64_MAX, INT64_MAX, 0, 1, INT64_MAX, 1},
                       much = {INT64_MAX, 0, 0, 1, INT64_MAX, 1};
    test_planned_start(&f, samples[0], false);
    const po_mu *naive = f.plan.lowered.mu;
    assert_true(po_look_at_steps(f.arena, naive, naive->first, 1, &n));
    assert_int_equal(compare(&f, samples[0], naive, &n, &small), 0);
    assert_true(compare(&f, samples[0], naive, &n, &much) > 0);
    test_planned_end(&f);
}

/* What a part costs is what its steps touch: elsewhere the network may have any number of weights.
 */
static void weights_of_other_steps_are_not_counted(void **state) {
    static const char sample[] =
        "graph g (x: f32[1,4,12,13]) -> (y) {\n a = Conv(x, w: f32[8,4,3,3] random 1) " CONV3
        "\n f = Flatten(a)\n y = MatMul(f, v: f32[1248,100] random 2)\n}";
    (void)state;
    test_planned f;
    po_looked_steps n;
    const po_part_size size = {0, 0, 0, 1, INT64_MAX, 1};
    test_planned_start(&f, sample, false);
    const po_mu *naive = f.plan.lowered.mu;
    assert_true(po_look_at_steps(f.arena, naive, naive->first, 1, &n));
    assert_true(compare(&f, sample, naive, &n, &size) > 0);
    test_planned_end(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_are_what_the_whole_has_there),
        cmocka_unit_test(small_outputs_are_whole),
        cmocka_unit_test(what_is_gone_through_counts),
        cmocka_unit_test(weights_of_other_steps_are_not_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Lowering and schedules on small graphs: the naive and the scheduled muGraph compute what the
 * graph does, and every choice, printed and compiled, what its step does. */
#include "cost/kernels.h"
#include "planned.h"
#include "schedule_cases.h"
#include "superopt/schedule/conv.h"
#include "superopt/schedule/internal.h"
#include "unit.h"

#include <math.h>
#include <strings.h>

/* The muGraph on the graph's inputs and (packed: scheduled) weights. */
static void evaluate(test_planned *f, const po_mu *mu, bool packed, const po_array *in,
                     double *out) {
    po_status status = po_mu_check(&f->ctx, mu, 1 << 24);
    if (status == PO_OK)
        status = test_planned_eval(f, mu, packed, in, out);
    if (status != PO_OK) {
        po_text text;
        po_text_init(&text, f->arena);
        po_mu_print(&text, mu);
        fail_msg("%s\n%s", f->ctx.error.message, text.data);
    }
}

enum { MOST_CHOICES = 8 };

static void take_choice(test_planned *f, uint32_t k) {
    const po_mu *naive = f->plan.lowered.mu;
    po_schedule s;
    po_schedule_start(&s, f->arena, naive, false);
    for (uint32_t node = naive->first; node != PO_NONE; node = naive->nodes[node].next) {
        po_choice choices[PO_CHOICES_MAX];
        uint32_t n = po_choices_of(naive, node, &po_isas[k % PO_ISAS], 0, choices);
        assert_true(n > 0);
        po_schedule_step(&s, node, &choices[k % n]);
    }
    po_schedule_finish(&s);
    f->plan.mu = s.mu;
    f->plan.packed = s.packed;
    f->plan.n_packed = s.n_packed;
}

static void computes_what_the_graph_does(void **state) {
    (void)state;
    for (size_t i = 0; i < n_schedule_cases; i++) {
        test_planned f;
        test_planned_start(&f, schedule_cases[i].graph, false);
        const po_array *in = test_planned_input(&f);
        po_array *expected;
        assert_int_equal(po_ref_graph(&f.ctx, f.arena, f.graph, &in, &expected, false), PO_OK);
        /* The naive muGraph, the plan's own, and ones that take choice k of every step. */
        for (uint32_t k = 0; k < 2 + MOST_CHOICES; k++) {
            double *out = PO_NEW_N(f.arena, double, expected->count);
            if (k >= 2)
                take_choice(&f, k - 2);
            evaluate(&f, k ? f.plan.mu : f.plan.lowered.mu, k > 0, in, out);
            for (int64_t e = 0; e < expected->count; e++)
                if (!(fabs(out[e] - expected->f[e]) <= 1e-9))
                    fail_msg("%s, %u: element %lld is %g instead of %g", schedule_cases[i].name, k,
                             (long long)e, out[e], expected->f[e]);
        }
        test_planned_end(&f);
    }
}

/* What lies along another axis is turned on the way, and never read one by one. */
static void nothing_is_read_across(void **state) {
    (void)state;
    size_t found = 0;
    for (size_t i = 0; i < n_schedule_cases; i++) {
        test_planned f;
        uint32_t turned = 0;
        if (strncmp(schedule_cases[i].name, "maps of tokens", 14) != 0)
            continue;
        found++;
        test_planned_start(&f, schedule_cases[i].graph, false);
        const po_mu *naive = f.plan.lowered.mu;
        for (uint32_t node = naive->first; node != PO_NONE; node = naive->nodes[node].next) {
            po_choice choices[PO_CHOICES_MAX];
            assert_true(po_choices_of(naive, node, &po_isas[PO_ISA_AVX512], 0, choices) > 0);
            po_text text;
            po_text_init(&text, f.arena);
            choices[0].how->tell(&choices[0], &text);
            assert_null(strstr(text.data, "plain loops"));
            turned += strstr(text.data, "turned in registers") != NULL;
        }
        assert_true(turned > 0);
        test_planned_end(&f);
    }
    assert_int_equal(found, 1);
}

static const po_scheduler *const schedulers[] = {&po_schedule_winograd, &po_schedule_strassen,
                                                 &po_schedule_planes};

/* A sample is named after the scheduler that it is there for. */
static bool is_named_after(const char *sample, const po_scheduler *scheduler) {
    return strncasecmp(sample, scheduler->name, strlen(scheduler->name)) == 0;
}

/* The choices of a step, and the plain ways that read the weights of others of them. */
static uint32_t all_choices(const po_mu *naive, uint32_t node, uint32_t isa, po_choice *choices) {
    const uint32_t listed = po_choices_of(naive, node, &po_isas[isa], 0, choices);
    uint32_t n = listed;
    for (uint32_t k = 0; k < listed; k++)
        n += choices[k].how->plainly &&
             choices[k].how->plainly(naive, node, &choices[k], &choices[n]);
    return n;
}

/* A choice that has a plain way, which reads the same weights; of weights that are computed there
 * is no order. */
static bool is_read_plainly(po_arena *arena, const po_mu *naive, uint32_t node,
                            const po_choice *choice) {
    po_choice plain;
    po_mu_conv conv;
    po_standalone_step lone[2];
    if (!choice->how->plainly || (po_conv_of(naive, node, &conv) && conv.values))
        return false;
    assert_true(choice->how->plainly(naive, node, choice, &plain));
    po_plan_standalone(arena, naive, node, choice, &lone[0]);
    po_plan_standalone(arena, naive, node, &plain, &lone[1]);
    assert_int_equal(lone[0].n_packed, lone[1].n_packed);
    for (uint32_t w = 0; w < lone[0].n_packed; w++)
        assert_true(po_packing_same(&lone[0].packed[w].packing, &lone[1].packed[w].packing));
    return true;
}

/* The weights of convolutions by tiles lie as plain ways can read them. */
static void plain_ways_read_the_same_weights(void **state) {
    (void)state;
    uint32_t found = 0;
    for (size_t i = 0; i < n_schedule_cases; i++) {
        test_planned f;
        test_planned_start(&f, schedule_cases[i].graph, false);
        const po_mu *naive = f.plan.lowered.mu;
        for (uint32_t node = naive->first; node != PO_NONE; node = naive->nodes[node].next) {
            po_choice choices[PO_CHOICES_MAX];
            for (uint32_t isa = 0; isa < PO_ISAS; isa++) {
                const uint32_t n = po_choices_of(naive, node, &po_isas[isa], 0, choices);
                for (uint32_t k = 0; k < n; k++)
                    found += is_read_plainly(f.arena, naive, node, &choices[k]);
            }
        }
        test_planned_end(&f);
    }
    assert_true(found > 20);
}

/* Every choice of every step of a sample, compiled as this code. */
static void compile_choices(size_t i, uint32_t isa) {
    enum { MOST = PO_CHOICES_MAX * 16 };
    test_planned f;
    test_planned_start(&f, schedule_cases[i].graph, false);
    const po_mu *naive = f.plan.lowered.mu;
    po_timed_kernel kernels[MOST];
    const char *told[MOST];
    uint32_t n = 0;
    bool wanted = false;
    for (size_t k = 0; k < sizeof schedulers / sizeof schedulers[0]; k++)
        wanted |= is_named_after(schedule_cases[i].name, schedulers[k]);
    for (uint32_t node = naive->first; node != PO_NONE; node = naive->nodes[node].next) {
        po_choice choices[2 * PO_CHOICES_MAX];
        uint32_t n_choices = all_choices(naive, node, isa, choices);
        assert_true(n + n_choices <= MOST);
        for (uint32_t k = 0; k < n_choices; k++) {
            po_standalone_step *lone = PO_NEW(f.arena, po_standalone_step);
            po_text text;
            po_text_init(&text, f.arena);
            choices[k].how->tell(&choices[k], &text);
            told[n] = text.data;
            wanted &= !is_named_after(schedule_cases[i].name, choices[k].how);
            kernels[n] =
                (po_timed_kernel){.mu = po_plan_standalone(f.arena, naive, node, &choices[k], lone),
                                  .check = po_check_step,
                                  .user = lone};
            n++;
        }
    }
    bool twice = isa != PO_ISA_AVX512 || !strstr(schedule_cases[i].name, "twice");
    for (uint32_t k = 0; k < n; k++)
        twice |= strstr(told[k], "twice") != NULL;
    if (wanted || !twice)
        fail_msg("'%s' has no step that is worked so", schedule_cases[i].name);
    assert_int_equal(po_time_kernels(&f.ctx, NULL, isa, kernels, n), PO_OK);
    for (uint32_t k = 0; k < n; k++)
        if (!(kernels[k].seconds > 0))
            fail_msg("%s, %s, %s: %s", schedule_cases[i].name, po_isas[isa].name, told[k],
                     kernels[k].seconds < 0 ? "wrong" : "not printed or compiled");
    test_planned_end(&f);
}

/* As every code that this machine runs. */
static void kernels_compute_what_their_steps_do(void **state) {
    (void)state;
    if (po_isa_of_machine() == PO_ISAS)
        skip();
    for (uint32_t isa = po_isa_of_machine(); isa < PO_ISAS; isa = po_isa_from(isa + 1))
        for (size_t i = 0; i < n_schedule_cases; i += TEST_SHARE)
            compile_choices(i, isa);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(computes_what_the_graph_does),
        cmocka_unit_test(plain_ways_read_the_same_weights),
        cmocka_unit_test(kernels_compute_what_their_steps_do),
        cmocka_unit_test(nothing_is_read_across),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

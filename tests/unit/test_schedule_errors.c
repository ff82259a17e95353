/* What is wrong with a compiled schedule is found (superopt/plan/check.h): a step that differs in
 * one place, and an element that does. */
#include "cost/kernels.h"
#include "planned.h"
#include "schedule_cases.h"
#include "superopt/schedule/internal.h"
#include "unit.h"

/* A step that differs in one place from what was compiled must be told. */
static void errors_are_found(void **state) {
    (void)state;
    uint32_t isa = po_isa_of_machine();
    if (isa == PO_ISAS)
        skip();
    for (int error = 0; error < 5; error++) {
        test_planned f;
        test_planned_start(&f, schedule_cases[0].graph, false);
        po_mu *naive = f.plan.lowered.mu;
        uint32_t node = naive->nodes[naive->nodes[naive->first].next].next;
        po_choice choices[PO_CHOICES_MAX];
        po_standalone_step lone;
        po_choices_of(naive, node, &po_isas[PO_ISA_AVX512], 0, choices);
        po_timed_kernel kernel = {.mu =
                                      po_plan_standalone(f.arena, naive, node, &choices[0], &lone),
                                  .check = po_check_step,
                                  .user = &lone};
        po_mu_statement *s = &naive->nodes[naive->nodes[node].first].statement;
        po_mu_statement *tail =
            &naive->nodes[naive->nodes[naive->nodes[node].first].next].statement;
        po_mu_index *y = (po_mu_index *)(uintptr_t)&s->in[0].axes[1];
        po_mu_item *items = (po_mu_item *)(uintptr_t)tail->items;
        switch (error) {
        case 0: /* a row further */
            y->offset++;
            break;
        case 1: /* another tap */
            ((po_mu_index *)(uintptr_t)&s->in[1].axes[2])->offset = -1;
            break;
        case 2: /* no bound at 0 */
            items[tail->n_items - 1].function = PO_MU_PLUS;
            break;
        case 3: /* the residual is left out: its operand is the sum itself */
            tail->n_items = 1;
            break;
        default: /* a stride */
            ((po_mu_term *)(uintptr_t)y->terms)[0].coef = 2;
        }
        assert_int_equal(po_time_kernels(&f.ctx, NULL, isa, &kernel, 1), PO_OK);
        if (kernel.seconds != -1)
            fail_msg("error %d is not found", error);
        test_planned_end(&f);
    }
}

/* A kernel that gets one element wrong, a little. */
typedef struct damaged {
    const po_loaded_kernel *kernel;
    int64_t at;
} damaged;

static void run_damaged(void *self, const float *const *weights) {
    const damaged *d = self;
    d->kernel->run(d->kernel->self, weights);
    d->kernel->device[d->at] = d->kernel->device[d->at] * 1.01F + 1e-3F;
}

/* NULL where damage to every single element is found, and none without damage. */
static const char *check_damaged(po_ctx *ctx, po_arena *arena, void *user,
                                 const po_loaded_kernel *kernel) {
    const po_standalone_step *lone = user;
    po_naive_step step;
    const char *wrong = po_check_step(ctx, arena, user, kernel);
    if (wrong || !po_naive_step_of(lone->naive, lone->step, &step))
        return wrong;
    uint32_t twin = lone->tensor[step.out->tensor];
    const po_mu_tensor *t = &kernel->mu->tensors[twin];
    int64_t count = 1;
    for (uint32_t x = 0; x < t->rank; x++)
        count *= t->dims[x];
    for (int64_t e = 0; e < count; e++) {
        damaged d = {kernel, kernel->places[twin] + t->origin};
        for (int64_t x = t->rank, rest = e; x-- > 0; rest /= t->dims[x])
            d.at += rest % t->dims[x] * t->stride[x];
        po_loaded_kernel broken = *kernel;
        broken.self = &d;
        broken.run = run_damaged;
        if (!po_check_step(ctx, arena, user, &broken))
            return po_arena_printf(arena, "damage to element %lld is not found", (long long)e);
    }
    return NULL;
}

static void damage_to_any_element_is_found(void **state) {
    (void)state;
    uint32_t isa = po_isa_of_machine();
    if (isa == PO_ISAS)
        skip();
    /* Winograd; steps that write a part of a map each; sums along the lanes. */
    static const char *const names[] = {"Winograd and a residual", "transposed, strides 2 and 1",
                                        "softmax and a maximum", "floors of more than a thousand"};
    for (size_t i = 0; i < n_schedule_cases; i++) {
        bool wanted = false;
        for (size_t k = 0; k < sizeof names / sizeof names[0]; k++)
            wanted |= strcmp(schedule_cases[i].name, names[k]) == 0;
        if (!wanted)
            continue;
        test_planned f;
        test_planned_start(&f, schedule_cases[i].graph, false);
        const po_mu *naive = f.plan.lowered.mu;
        po_timed_kernel kernels[16];
        uint32_t n = 0;
        for (uint32_t node = naive->first; node != PO_NONE && n < 16;
             node = naive->nodes[node].next) {
            po_choice choices[PO_CHOICES_MAX];
            po_standalone_step *lone = PO_NEW(f.arena, po_standalone_step);
            po_choices_of(naive, node, &po_isas[PO_ISA_AVX512], 0, choices);
            kernels[n++] =
                (po_timed_kernel){.mu = po_plan_standalone(f.arena, naive, node, &choices[0], lone),
                                  .check = check_damaged,
                                  .user = lone};
        }
        assert_int_equal(po_time_kernels(&f.ctx, NULL, isa, kernels, n), PO_OK);
        for (uint32_t k = 0; k < n; k++)
            if (!(kernels[k].seconds > 0))
                fail_msg("%s, step %u: damage is not found", schedule_cases[i].name, k);
        test_planned_end(&f);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(errors_are_found),
        cmocka_unit_test(damage_to_any_element_is_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

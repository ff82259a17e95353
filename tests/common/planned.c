/* Makes and plans the graph, and evaluates its muGraph, naive or scheduled, in float64 on the
 * graph's own weights, packed where the scheduled one wants them so. */
#include "planned.h"

#include "kernel_run.h"
#include "mugraph/eval.h"
#include "ops/recipe/pack.h"
#include "rewriting.h"
#include "superopt/schedule/internal.h"
#include "unit.h"

enum { MOST_WEIGHTS = 32 };

void test_planned_start(test_planned *f, const char *graph, bool exact) {
    po_plan_options options = {.exact = exact};
    po_ctx_init(&f->ctx);
    f->arena = po_arena_create(&f->ctx);
    f->graph = test_graph(&f->ctx, graph);
    assert_int_equal(
        po_regions_find(&f->ctx, f->arena, f->graph, po_lower_part, &f->ctx, &f->regions), PO_OK);
    assert_int_equal(f->regions.n, 1);
    assert_int_equal(f->regions.n_nodes, f->graph->n_live);
    assert_int_equal(po_plan_regions(&f->ctx, f->arena, f->graph, &f->regions, &options, &f->plan),
                     PO_OK);
    if (f->plan.failed)
        fail_msg("%s", f->plan.failed);
}

void test_planned_end(test_planned *f) {
    po_graph_free(f->graph);
    po_arenas_free_since(&f->ctx, 0);
}

po_array *test_planned_input(test_planned *f) {
    const po_type *type = &f->graph->values[f->graph->inputs[0]].type;
    int64_t dims[PO_MU_MAX_RANK];
    po_array *in;
    for (uint32_t k = 0; k < type->rank; k++)
        dims[k] = type->dims[k].value;
    assert_int_equal(po_array_create(&f->ctx, f->arena, PO_F32, type->rank, dims, &in), PO_OK);
    for (int64_t i = 0; i < in->count; i++)
        in->f[i] = (double)(float)(2 * po_random_unit(5, 1, (uint64_t)i) - 1);
    return in;
}

bool test_planned_bands(test_planned *f, uint32_t node, uint32_t n, int64_t rows,
                        po_row_fusion *b) {
    const po_mu *naive = f->plan.lowered.mu;
    po_choice *choices = PO_NEW_N(f->arena, po_choice, PO_CHOICES_MAX * n);
    *b = (po_row_fusion){.naive = naive, .n = n, .rows = rows};
    for (uint32_t i = 0; i < n; i++, node = naive->nodes[node].next) {
        if (node == PO_NONE)
            return false;
        assert_true(po_choices_of(naive, node, &po_isas[PO_ISA_AVX512], 1,
                                  &choices[i * PO_CHOICES_MAX]) > 0);
        b->node[i] = node;
        b->choice[i] = &choices[i * PO_CHOICES_MAX];
    }
    return true;
}

po_status test_planned_eval(test_planned *f, const po_mu *mu, bool packed, const po_array *in,
                            double *out) {
    const double *weights[MOST_WEIGHTS];
    uint32_t n = packed ? f->plan.n_packed : f->plan.lowered.n_weights;
    assert_true(n <= MOST_WEIGHTS);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t w = packed ? f->plan.packed[i].weight : i;
        const po_tensor *t = po_graph_constant(f->graph, f->plan.lowered.weights[w]);
        if (packed)
            assert_int_equal(po_pack(&f->ctx, f->arena, t, &f->plan.packed[i].packing, &t), PO_OK);
        weights[i] = po_tensor_doubles(f->arena, t);
    }
    return po_mu_eval(&f->ctx, mu, (const double *const[]){in->f}, weights, &out, NULL);
}

uint32_t test_planned_printed(const char *graph, const char *scheduler, const po_isa *isa,
                              test_printed_fn each, const void *user) {
    test_planned f;
    uint32_t looked = 0;
    test_planned_start(&f, graph, false);
    const po_mu *naive = f.plan.lowered.mu;
    for (uint32_t node = naive->first; node != PO_NONE; node = naive->nodes[node].next) {
        po_choice choices[PO_CHOICES_MAX];
        const uint32_t n = po_choices_of(naive, node, isa, 0, choices);
        for (uint32_t k = 0; k < n; k++) {
            po_standalone_step lone;
            po_text told, text;
            if (strcmp(choices[k].how->name, scheduler) != 0)
                continue;
            po_text_init(&told, f.arena);
            po_text_init(&text, f.arena);
            choices[k].how->tell(&choices[k], &told);
            const po_mu *mu = po_plan_standalone(f.arena, naive, node, &choices[k], &lone);
            assert_int_equal(test_kernel_text(&f.ctx, mu, &po_isas[PO_ISA_AVX2], "k", &text),
                             PO_OK);
            looked += each(&(test_printed){k, told.data, text.data, mu}, user);
        }
    }
    test_planned_end(&f);
    return looked;
}

/* Which form of a model kernels are made of, by estimates alone, and which mutants. */
#include "ops/samples.h"
#include "pipeline/kernels/one_sample.h"
#include "pipeline/kernels/open_regions.h"
#include "pipeline/kernels/variants.h"
#include "pipeline/search/search.h"
#include "rewriting.h"
#include "unit.h"

#include <stdio.h>
#include <unistd.h>

typedef struct fixture {
    po_ctx ctx;
    po_arena *arena;
    po_options options;
    po_run run;
    const po_graph *graph;
    po_search *split; /* NULL: there are no mutants */
    po_plan_options plan;
    po_search search;
} fixture;

static void start(fixture *f, const char *model) {
    *f = (fixture){.options = po_options_default()};
    po_ctx_init(&f->ctx);
    f->arena = po_arena_create(&f->ctx);
    po_run_begin(&f->run, &f->ctx, &f->options, f->arena, 0);
    f->graph = test_graph(&f->ctx, model);
    po_run_hold(&f->run, (po_graph *)(uintptr_t)f->graph);
    f->plan.readings = po_plan_readings_create(f->arena);
}

static void end(fixture *f) {
    po_arenas_free_since(&f->ctx, 0);
}

static po_status variants(fixture *f, const po_graph *like, po_kernel_variant *form) {
    const po_kernel_source source = {like ? like : f->graph, f->graph, like, f->split};
    return po_kernel_variants(&f->run, &source, f->arena, &f->plan, form);
}

/* Weights that were made are rounded once. */
static po_kernel_variant taken(fixture *f) {
    po_kernel_variant form;
    assert_int_equal(variants(f, NULL, &form), PO_OK);
    double d = test_difference(&f->ctx, f->graph, form.graph, 1);
    if (!(d < 3e-5))
        fail_msg("%s: differs by %g", form.name, d);
    assert_int_equal(form.outside, 0);
    return form;
}

/* 16 to 64 to 16 channels is one product; under `exact` it stays. */
static void composes(void **state) {
    static const char *const model = "graph g (x: f32[1,16,24,24]) -> (y) {\n"
                                     " a = Conv(x, w: f32[64,16,1,1] random 1)\n"
                                     " y = Conv(a, v: f32[16,64,1,1] random 2)\n}";
    (void)state;
    fixture f;
    start(&f, model);
    assert_int_equal(test_count(taken(&f).graph, "Conv"), 1);
    f.plan.exact = true;
    assert_int_equal(test_count(taken(&f).graph, "Conv"), 2);
    end(&f);
}

#define GATED(n)                                                                                   \
    "graph g (x: f32[" n ",12,32,32], z: f32[" n ",48,16,16]) -> (y) {\n"                          \
    " m = GlobalAveragePool(x)\n s = Conv(m, p: f32[48,12,1,1] random 1)\n t = Sigmoid(s)\n"       \
    " a = Conv(x, w: f32[48,12,1,1] random 2)\n b = Mul(a, t)\n"                                   \
    " u = Resize(z, e: f32[0] {}, q: f32[4] {1.0, 1.0, 2.0, 2.0}) {mode=\"nearest\", "             \
    "coordinate_transformation_mode=\"asymmetric\", nearest_mode=\"floor\"}\n c = Add(b, u)\n"     \
    " y = Conv(c, v: f32[16,48,3,3] random 3) {kernel_shape=[3, 3], pads=[1, 1, 1, 1]}\n}"

/* The gate of the 12 channels goes into weights; the same form each time. */
static void several_families(void **state) {
    (void)state;
    fixture f;
    start(&f, GATED("1"));
    po_kernel_variant first = taken(&f), second = taken(&f);
    assert_string_equal(first.name, second.name);
    assert_true(po_graph_equal(first.graph, second.graph));
    f.plan.exact = true;
    po_kernel_variant plain;
    assert_int_equal(variants(&f, NULL, &plain), PO_OK);
    assert_true(first.seconds < 0.9 * plain.seconds);
    end(&f);
}

/* Without a region no form has an estimate: there is nothing to climb. Nor is there where the time
 * for readings is over. */
static void ends_without_regions(void **state) {
    static const char *const model = "graph g (x: f32[24,24]) -> (y) {\n"
                                     " a = CumSum(x, i: i64[] {0})\n y = Det(a)\n}";
    (void)state;
    fixture f;
    po_kernel_variant form;
    alarm(60);
    start(&f, model);
    assert_int_equal(variants(&f, NULL, &form), PO_OK);
    assert_int_equal(form.regions.n, 0);
    end(&f);
    start(&f, "graph g (x: f32[1,16,24,24]) -> (y) {\n"
              " a = Conv(x, w: f32[64,16,1,1] random 1)\n"
              " y = Conv(a, v: f32[16,64,1,1] random 2)\n}");
    f.plan.until = po_now() - 1;
    assert_int_equal(variants(&f, NULL, &form), PO_OK);
    assert_int_equal(form.regions.n, 1);
    assert_int_equal(f.ctx.error.status, PO_OK);
    end(&f);
    alarm(0);
}

/* Where there is no time to read schedules, those that are likely best are taken: maxima of rows
 * are found in vectors, not number by number. */
static void unread_is_not_slow(void **state) {
    (void)state;
    fixture f;
    po_kernel_variant form;
    start(&f, "graph g (x: f32[64,96]) -> (y) {\n"
              " a = MatMul(x, w: f32[96,256] random 1)\n y = Softmax(a)\n}");
    f.plan.measure = true;
    f.plan.until = po_now() - 1;
    assert_int_equal(variants(&f, NULL, &form), PO_OK);
    assert_int_equal(form.regions.n, 1);
    assert_true(form.plans[0].n_steps > 1);
    assert_int_equal(form.plans[0].unread, form.plans[0].n_steps);
    for (uint32_t i = 0; i < form.plans[0].n_steps; i++)
        if (strstr(form.plans[0].steps[i].schedule, "plain loops"))
            fail_msg("%s", form.plans[0].steps[i].name);
    end(&f);
}

/* --- open sizes --- */

/* The form of a model with open sizes, of which every region has a program. */
static void start_open(fixture *f, const char *model, po_kernel_variant *form) {
    start(f, model);
    assert_int_equal(variants(f, NULL, form), PO_OK);
    assert_non_null(form->sizes);
    assert_true(form->regions.n > 0);
    for (uint32_t i = 0; i < form->regions.n; i++)
        if (form->plans[i].failed)
            fail_msg("region %u: %s", i, form->plans[i].failed);
}

/* Made where every length is a number of its own; two that must be the same are a condition. */
static void of_any_size(void **state) {
    static const char *const model =
        "graph g (x: f32[N,3,H,W]) -> (y) {\n"
        " a = Conv(x, w: f32[16,3,3,3] random 1) {pads=[1, 1, 1, 1]}\n"
        " b = Conv(a, v: f32[16,16,3,3] random 2) {pads=[1, 1, 1, 1], strides=[2, 2]}\n"
        " u = Resize(b, e: f32[0] {}, q: f32[4] {1.0, 1.0, 2.0, 2.0}) {mode=\"nearest\", "
        "coordinate_transformation_mode=\"asymmetric\", nearest_mode=\"floor\"}\n"
        " y = Add(a, u)\n}";
    (void)state;
    fixture f;
    po_kernel_variant form;
    start_open(&f, model, &form);
    assert_non_null(form.axis);
    assert_int_equal(form.regions.n, 1);
    const po_plan_sizes *plan = &form.sizes->plan;
    assert_int_equal(plan->naming.n_names, 2);
    for (uint32_t i = 0; i < plan->naming.n_known; i++)
        for (uint32_t k = 0; k < i; k++)
            if (plan->naming.known[k].number == plan->naming.known[i].number)
                assert_true(po_open_lengths_same(f.arena, plan->naming.names, plan->naming.n_names,
                                                 form.sizes->samples, plan->naming.known[i].is,
                                                 plan->naming.known[k].is));
    assert_true(form.sizes->n_equal > 0);
    for (uint32_t i = 0; i < form.sizes->samples->n; i++)
        assert_int_equal(form.sizes->samples->length[i] % 2, 0); /* the model takes no odd ones */
    assert_int_equal(form.programs[0]->n_names, 2);
    assert_int_equal(form.ports[0].in[0].dims[0], -1);
    assert_string_equal(form.ports[0].in[0].open[2].symbol, "p0");
    assert_true(form.ports[0].n_equal > 0);
    end(&f);
}

/* --- readings at other sizes --- */

static po_plan_guess guessed(fixture *f, const po_kernel_variant *form) {
    po_plan_guess guess;
    po_plan_options options = f->plan;
    options.open = &form->sizes->plan;
    options.measure = true;
    assert_int_equal(
        po_plan_estimate(&f->ctx, f->arena, form->graph, &form->regions, &options, &guess), PO_OK);
    return guess;
}

/* Two forms of a model are made at lengths of their own, here since the second has one that the
 * first was made at among its channels. A step that both have is read once. */
static void readings_are_of_programs(void **state) {
    (void)state;
    char model[300];
    fixture f;
    po_kernel_variant first, second;
    start(&f, "graph g (x: f32[1,T,16]) -> (y) {\n y = MatMul(x, w: f32[16,32] random 1)\n}");
    f.plan.measure = true;
    f.plan.cc = "cc";
    assert_int_equal(variants(&f, NULL, &first), PO_OK);
    const int64_t length = first.sizes->plan.naming.lengths[0];
    snprintf(model, sizeof model,
             "graph g (x: f32[1,T,16]) -> (y, z) {\n y = MatMul(x, w: f32[16,32] random 1)\n"
             " z = MatMul(x, v: f32[16,%lld] random 2)\n}",
             (long long)length);
    f.graph = test_graph(&f.ctx, model);
    po_run_hold(&f.run, (po_graph *)(uintptr_t)f.graph);
    f.plan.measure = false;
    assert_int_equal(variants(&f, NULL, &second), PO_OK);
    assert_int_not_equal(second.sizes->plan.naming.lengths[0], length);
    const po_plan_guess known = guessed(&f, &first), both = guessed(&f, &second);
    f.plan.readings = po_plan_readings_create(f.arena);
    const po_plan_guess neither = guessed(&f, &second);
    assert_int_equal(known.unread, 0);
    assert_in_range(both.unread, 1, neither.unread - 1);
    end(&f);
}

/* --- numbers that are not what they seem --- */

/* A mean over 3 rows of 80 columns, and 240 channels: at 320 the number of its terms is theirs. */
#define MEAN                                                                                       \
    "graph g (x: f32[1,3,12,W]) -> (y) {\n"                                                        \
    " a = Conv(x, w: f32[16,3,4,4] random 1) {strides=[4, 4]}\n m = GlobalAveragePool(a)\n"        \
    " b = Conv(m, v: f32[240,16,1,1] random 2)\n c = Conv(a, u: f32[240,16,1,1] random 3)\n"       \
    " d = Mul(b, c)\n y = Tanh(d)\n}"

static uint32_t known_at(const po_mu_naming *naming, int64_t number) {
    for (uint32_t i = 0; i < naming->n_known; i++)
        if (naming->known[i].number == number)
            return i;
    return PO_NONE;
}

/* The size at hand is one at which it is not. What says that it is, is found out by what the model
 * is lowered to at other sizes. */
static void means_are_told_apart(void **state) {
    (void)state;
    fixture f;
    po_kernel_variant form;
    const po_mu_open *open;
    start_open(&f, MEAN, &form);
    assert_int_equal(form.regions.n, 1);
    const int64_t terms = 3 * (form.sizes->plan.naming.lengths[0] / 4);
    assert_int_not_equal(terms, 240);
    const uint32_t mean = known_at(&form.sizes->plan.naming, terms);
    assert_int_not_equal(mean, PO_NONE);
    for (int planted = 0; planted < 2; planted++) {
        po_open_sizes forged = *form.sizes;
        po_mu_naming *naming = &forged.plan.naming;
        po_mu_number *known =
            po_arena_memdup(f.arena, naming->known, naming->n_known * sizeof *known);
        if (planted)
            known[mean] = known[--naming->n_known];
        naming->known = known;
        po_kernel_ports ports;
        const po_region *r = &form.regions.regions[0];
        assert_int_equal(po_open_ports(&f.ctx, f.arena, form.graph, NULL, r, &ports), PO_OK);
        assert_int_equal(po_open_sizes_larger(&f.run, &forged), PO_OK);
        assert_int_equal(po_open_sizes_region(&f.run, f.arena, &forged, r, form.plans[0].mu,
                                              form.plans[0].lowered.mu, &open, &ports),
                         planted ? PO_UNSUPPORTED : PO_OK);
        po_open_sizes_larger_free(&forged);
        if (planted)
            assert_non_null(strstr(f.ctx.error.message, "at other sizes"));
        po_ctx_clear(&f.ctx);
    }
    end(&f);
}

/* A factor of 1/16 is no mean of 16 rows. */
static void factors_are_no_means(void **state) {
    static const char *const names[] = {"p0", "p1"};
    static const int64_t lengths[] = {16, 21}, samples[] = {33, 34, 35};
    (void)state;
    for (int factor = 0; factor < 2; factor++) {
        fixture f;
        po_open_lengths told;
        const po_open_samples some = {.length = (int64_t *)(uintptr_t)samples, .n = 3};
        start(&f, factor ? "graph g (x: f32[1,5,p0,p1]) -> (y) {\n y = Mul(x, c: f32[] {0.0625})\n}"
                         : "graph g (x: f32[1,5,p0,p1]) -> (y) {\n y = Mul(x, c: f32[] {0.3})\n}");
        po_open_lengths_init(&told, f.arena, names, 2, &some);
        po_open_lengths_collect(&told, f.graph);
        assert_int_equal(po_open_lengths_tell(&told, lengths), !factor);
        end(&f);
    }
}

/* Samples and tokens in one axis, turned round, have no form for all sizes: what makes them stays
 * with the runtime, and what lies before them has kernels. */
static void what_cannot_be_opened_stays_outside(void **state) {
    static const char *const model =
        "graph g (x: f32[N,T,64]) -> (y) {\n a = MatMul(x, w: f32[64,64] random 1)\n"
        " b = Tanh(a)\n f = Reshape(b, s: i64[2] {-1, 64})\n t = Transpose(f) {perm=[1, 0]}\n"
        " u = Transpose(t) {perm=[1, 0]}\n c = MatMul(u, v: f32[64,64] random 2)\n"
        " d = Tanh(c)\n y = MatMul(d, q: f32[64,64] random 3)\n}";
    (void)state;
    fixture f;
    po_kernel_variant form;
    start_open(&f, model, &form);
    assert_in_range(form.regions.n_nodes, 2, 7);
    end(&f);
}

/* Lengths of which nothing is known have no kernels, and say so. */
static void of_unknown_size(void **state) {
    static const char *const model = "graph g (x: f32[N,16], k: i64[2]) -> (y) {\n"
                                     " a = Reshape(x, k)\n"
                                     " y = MatMul(a, w: f32[16,16] random 1)\n}";
    (void)state;
    fixture f;
    po_kernel_variant form;
    start(&f, model);
    po_status status = variants(&f, NULL, &form);
    assert_true(status == PO_UNSUPPORTED || form.regions.n == 0 || form.plans[0].failed);
    end(&f);
}

/* --- an open batch --- */

#define TOKENS(n)                                                                                  \
    "graph g (x: f32[" n ",16,24,24]) -> (y) {\n"                                                  \
    " a = Conv(x, w: f32[64,16,1,1] random 1)\n b = Conv(a, v: f32[16,64,1,1] random 2)\n"         \
    " c = Tanh(b)\n y = Conv(c, u: f32[8,16,1,1] random 3)\n}"

/* Planned with one sample, delivered for any number; laws compose as they do for a known one. */
static void of_one_sample(void **state) {
    (void)state;
    fixture f;
    po_kernel_variant form;
    start(&f, TOKENS("2"));
    po_graph *like = test_graph(&f.ctx, TOKENS("N"));
    assert_int_equal(variants(&f, like, &form), PO_OK);
    assert_non_null(form.open);
    assert_int_equal(form.regions.n, 1);
    assert_int_equal(test_count(form.graph, "Conv"), 2);
    assert_int_equal(form.graph->values[form.graph->inputs[0]].type.dims[0].value, 1);
    assert_true(form.open->values[form.open->inputs[0]].type.dims[0].value < 0);
    assert_int_equal(form.axis[form.open->outputs[0]], 0);
    assert_true(test_difference(&f.ctx, like, form.open, 1) < 3e-5);
    po_graph_free(like);
    end(&f);
}

/* --- forms of one sample --- */

/* Kernels have the gate in their weights, what is delivered has it as it was. */
static void gates_of_one_sample(void **state) {
    (void)state;
    fixture f;
    po_kernel_variant form;
    start(&f, GATED("2"));
    po_graph *like = test_graph(&f.ctx, GATED("N"));
    assert_int_equal(variants(&f, like, &form), PO_OK);
    assert_non_null(strstr(form.name, "gates in weights"));
    assert_non_null(form.there);
    assert_int_equal(form.there->n, form.regions.n);
    assert_int_equal(test_count(form.open, "Mul"), 1);
    assert_true(form.open->values[form.open->inputs[0]].type.dims[0].value < 0);
    assert_int_equal(form.graph->values[form.graph->inputs[0]].type.dims[0].value, 1);
    assert_true(test_difference(&f.ctx, like, form.open, 1) < 3e-5);
    po_graph_free(like);
    end(&f);
}

/* A form in the place of what is delivered: as it is proved, and where its regions are. */
static po_status stands_for(fixture *f, const char *text) {
    static const char *const open = "graph g (x: f32[N,16,6,6]) -> (y) {\n"
                                    " m = GlobalAveragePool(x)\n s = Sigmoid(m)\n a = Mul(x, s)\n"
                                    " y = Conv(a, v: f32[16,16,1,1] random 1)\n}";
    start(f, open);
    int8_t *axis;
    po_regions regions, there;
    assert_int_equal(po_samples_apart_values(&f->ctx, f->arena, f->graph, &axis), PO_OK);
    po_graph *one = test_graph(&f->ctx, text);
    po_run_hold(&f->run, one);
    const po_delivered delivered = {f->graph, axis, one, false};
    const int8_t *axes = po_one_sample_axes(f->arena, one, &delivered);
    assert_int_equal(po_open_regions(&f->ctx, f->arena, one, axes, NULL, &regions), PO_OK);
    assert_int_equal(regions.n, 1);
    PO_TRY(po_one_sample_regions(&f->ctx, f->arena, one, &regions, &delivered, &there));
    return po_one_sample_prove(&f->run, f->graph, one, &regions, f->graph, &there, one);
}

/* Each of the wrong ones agrees with the original where a gate is 1, or a weight is nothing. */
static void one_sample_is_proved(void **state) {
#define ONE  "graph g (x: f32[1,16,6,6]) -> (y) {\n"
#define GATE " m = GlobalAveragePool(x)\n s = Sigmoid(m)\n"
    static const struct {
        const char *text;
        po_status status;
    } forms[] = {
        {ONE GATE " w = Mul(v: f32[16,16,1,1] random 1, s)\n y = Conv(x, w)\n}", PO_OK},
        {ONE " y = Conv(x, v: f32[16,16,1,1] random 1)\n}", PO_UNSUPPORTED},
        {ONE GATE " w = Mul(v: f32[16,16,1,1] random 2, s)\n y = Conv(x, w)\n}", PO_UNSUPPORTED},
        {ONE GATE " r = Transpose(s) {perm=[1, 0, 2, 3]}\n"
                  " w = Mul(v: f32[16,16,1,1] random 1, r)\n y = Conv(x, w)\n}",
         PO_UNSUPPORTED},
        {ONE GATE " q = Mul(s, s)\n w = Mul(v: f32[16,16,1,1] random 1, q)\n y = Conv(x, w)\n}",
         PO_UNSUPPORTED},
    };
#undef ONE
#undef GATE
    (void)state;
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
        fixture f;
        const po_status status = stands_for(&f, forms[i].text);
        if (status != forms[i].status)
            fail_msg("form %zu: %d, %s", i, (int)status, f.ctx.error.message);
        po_ctx_clear(&f.ctx);
        end(&f);
    }
}

/* What is of one sample alone is no border: its nodes stay outside, and a form of which a border is
 * not there, or that is asked for more than its regions read, is refused. */
static void borders_of_one_sample(void **state) {
    static const char *const model = "graph g (x: f32[1,16,6,6]) -> (y) {\n"
                                     " other = Conv(x, v: f32[16,16,1,1] random 1)\n"
                                     " n = CumSum(other, i: i64[] {1})\n y = Tanh(n)\n}";
    (void)state;
    fixture f;
    start(&f, "graph g (x: f32[N,16,6,6]) -> (y) {\n a = Conv(x, v: f32[16,16,1,1] random 1)\n"
              " n = CumSum(a, i: i64[] {1})\n y = Tanh(n)\n}");
    int8_t *axis;
    po_regions regions, there;
    assert_int_equal(po_samples_apart_values(&f.ctx, f.arena, f.graph, &axis), PO_OK);
    po_graph *one = test_graph(&f.ctx, model);
    po_run_hold(&f.run, one);
    const po_delivered delivered = {f.graph, axis, one, false};
    assert_int_equal(po_open_regions(&f.ctx, f.arena, one, NULL, NULL, &regions), PO_OK);
    assert_int_equal(regions.n, 1);
    assert_int_equal(po_one_sample_regions(&f.ctx, f.arena, one, &regions, &delivered, &there),
                     PO_UNSUPPORTED);
    assert_non_null(strstr(f.ctx.error.message, "'other'"));
    po_ctx_clear(&f.ctx);
    const int8_t *axes = po_one_sample_axes(f.arena, one, &delivered);
    assert_int_equal(axes[test_value(one, "other")], PO_NOT_DELIVERED);
    assert_int_equal(axes[test_value(one, "y")], 0);
    assert_int_equal(po_open_regions(&f.ctx, f.arena, one, axes, NULL, &regions), PO_OK);
    assert_int_equal(regions.n, 0);
    end(&f);
}

/* --- mutants --- */

/* Two maps by one kernel: no law in place adds them first. */
#define ONE                                                                                        \
    "graph g (x: f32[1,16,24,24], z: f32[1,16,24,24], w: f32[16,16,3,3]) -> (y) {\n"               \
    " k = Add(x, z)\n"
#define CONV "Conv(k, w) {kernel_shape=[3, 3], pads=[1, 1, 1, 1]}\n"

static void split(fixture *f, const char *const *mutants, uint32_t n) {
    static const char *const model =
        "graph g (x: f32[1,16,24,24], z: f32[1,16,24,24]) -> (y) {\n"
        " a = Conv(x, w: f32[16,16,3,3] random 1) {kernel_shape=[3, 3], pads=[1, 1, 1, 1]}\n"
        " b = Conv(z, w) {kernel_shape=[3, 3], pads=[1, 1, 1, 1]}\n"
        " c = Add(a, b)\n y = Tanh(c)\n}";
    start(f, model);
    po_search *s = &f->search;
    *s = (po_search){.arena = f->arena, .graph = f->graph, .rates = {.flops = 1e11, .bytes = 1e9}};
    f->split = s;
    assert_int_equal(po_split_model(&f->ctx, f->arena, s->graph, NULL, &s->split), PO_OK);
    assert_int_equal(s->split.n, 1);
    s->n_sites = 1;
    s->sites = PO_NEW(f->arena, po_site);
    *s->sites = (po_site){.sub = &s->split.subs[0],
                          .chosen = PO_NONE,
                          .known = po_agree_known_create(f->arena),
                          .n_trials = n,
                          .trials = PO_NEW_N(f->arena, po_trial, n)};
    assert_int_equal(po_program_of(&f->ctx, f->arena, s->sites->sub->graph, &s->sites->program),
                     PO_OK);
    for (uint32_t i = 0; i < n; i++) {
        po_graph *made = test_graph(&f->ctx, mutants[i]);
        po_run_hold(&f->run, made);
        s->sites->trials[i] =
            (po_trial){.name = "by hand", .graph = made, .fate = PO_TRIAL_MADE, .parent = PO_NONE};
    }
}

static void mutants_take_part(void **state) {
    (void)state;
    fixture f;
    const po_graph *mutated;
    split(&f, (const char *[]){ONE " y = " CONV "}"}, 1);
    assert_int_equal(po_kernel_mutants(&f.run, f.split, &f.plan, 1e-6, &mutated), PO_OK);
    assert_non_null(mutated);
    assert_int_equal(test_count(mutated, "Conv"), 1);
    double d = test_difference(&f.ctx, f.graph, mutated, 1);
    if (!(d < 3e-5))
        fail_msg("differs by %g", d);
    assert_non_null(strstr(taken(&f).name, "mutants"));
    end(&f);
    /* What the runtime had better candidates for, too. */
    split(&f, (const char *[]){ONE " y = " CONV "}"}, 1);
    f.search.sites->trials[0].fate = PO_TRIAL_UNMEASURED;
    assert_int_equal(po_kernel_mutants(&f.run, f.split, &f.plan, 1e-6, &mutated), PO_OK);
    assert_non_null(mutated);
    end(&f);
}

/* What computes something else is not taken however fast it is, nor what saves next to nothing. */
static void wrong_mutants_do_not(void **state) {
    (void)state;
    fixture f;
    const po_graph *mutated;
    split(&f,
          (const char *[]){
              ONE " y = Conv(k, w) {kernel_shape=[3, 3], pads=[2, 1, 0, 1]}\n}",
              ONE " n = Neg(k)\n y = Conv(n, w) {kernel_shape=[3, 3], pads=[1, 1, 1, 1]}\n}"},
          2);
    assert_int_equal(po_kernel_mutants(&f.run, f.split, &f.plan, 1e-6, &mutated), PO_OK);
    assert_null(mutated);
    end(&f);
    split(&f, (const char *[]){ONE " y = " CONV "}"}, 1);
    assert_int_equal(po_kernel_mutants(&f.run, f.split, &f.plan, 10, &mutated), PO_OK);
    assert_null(mutated);
    f.plan.exact = true;
    assert_int_equal(po_kernel_mutants(&f.run, f.split, &f.plan, 1e-6, &mutated), PO_OK);
    assert_null(mutated);
    end(&f);
}

/* A law that is right in part, whose patches are steps of the same region; what it gains by another
 * family is found beside one that leaves operators to the runtime. */
static void partly_right(void **state) {
    static const char *const model =
        "graph g (x: f32[1,32,40,40]) -> (y) {\n"
        " a = Conv(x, w: f32[64,32,3,3] random 1) {kernel_shape=[3, 3], pads=[1, 1, 1, 1]}\n"
        " z = Relu(a)\n u = Resize(z, _, s: f32[4] {1, 1, 2, 2}) {mode=\"linear\"}\n"
        " y = Conv(u, v: f32[64,64,3,3] random 2) {kernel_shape=[3, 3], pads=[1, 1, 1, 1]}\n}";
    (void)state;
    fixture f;
    start(&f, model);
    assert_non_null(strstr(taken(&f).name, "interpolated maps smoothed behind"));
    end(&f);
    start(&f, model);
    f.options.skip = (const char *[]){"partly"};
    f.options.n_skip = 1;
    assert_null(strstr(taken(&f).name, "interpolated maps smoothed behind"));
    f.options.n_skip = 0;
    end(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(composes),
        cmocka_unit_test(several_families),
        cmocka_unit_test(partly_right),
        cmocka_unit_test(ends_without_regions),
        cmocka_unit_test(unread_is_not_slow),
        cmocka_unit_test(of_any_size),
        cmocka_unit_test(what_cannot_be_opened_stays_outside),
        cmocka_unit_test(of_unknown_size),
        cmocka_unit_test(means_are_told_apart),
        cmocka_unit_test(factors_are_no_means),
        cmocka_unit_test(readings_are_of_programs),
        cmocka_unit_test(of_one_sample),
        cmocka_unit_test(gates_of_one_sample),
        cmocka_unit_test(one_sample_is_proved),
        cmocka_unit_test(borders_of_one_sample),
        cmocka_unit_test(mutants_take_part),
        cmocka_unit_test(wrong_mutants_do_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Variants by choices: their names read back, and what read better alone is joined. */
#include "pipeline/proving.h"
#include "pipeline/search/search.h"
#include "pipeline/variants.h"
#include "rewriting.h"
#include "run_fixture.h"
#include "unit.h"

#define MODEL(out, last)                                                                           \
    "graph g (x: f32[1,16,24,24]) -> (" out ") {\n"                                                \
    " a = Conv(x, w: f32[64,16,1,1] random 1)\n"                                                   \
    " b = Conv(a, v: f32[16,64,1,1] random 2)\n"                                                   \
    " c = Add(b, three: f32[] {3.0})\n"                                                            \
    " d = Clip(c, zero: f32[] {0.0}, six: f32[] {6.0})\n"                                          \
    " e = Mul(b, d)\n f = Div(e, six)\n"                                                           \
    " n = Sigmoid(f)\n m = Mul(n, k: f32[1,16,1,1] random 3)\n"                                    \
    " p = Add(m, j: f32[1,16,1,1] random 5)\n"                                                     \
    " y = Conv(p, u: f32[16,1,3,3] random 4) "                                                     \
    "{group=16, kernel_shape=[3, 3], pads=[1, 1, 1, 1]}\n" last "}"
static const char model[] = MODEL("y", "");
static const char mutated[] = MODEL("z", " z = Tanh(y)\n");

typedef struct fixture {
    run_fixture base;
    po_run *run;
    po_variant_list *list;
    po_chosen chosen;
    double gain[PO_MAX_VARIANTS];
} fixture;

static void start(fixture *f) {
    *f = (fixture){.run = &f->base.run, .list = &f->base.variants};
    run_fixture_start(&f->base, model);
}

static void end(fixture *f) {
    run_fixture_end(&f->base);
}

static uint32_t find(const fixture *f, const char *name) {
    for (uint32_t i = 0; i < f->list->n; i++)
        if (strcmp(f->list->variants[i].name, name) == 0)
            return i;
    return PO_NONE;
}

static void make(fixture *f) {
    const po_kernels none = {.library = NULL};
    assert_int_equal(po_stage_postopt(f->run, &f->base.imported, &f->base.simplified, &f->chosen,
                                      &none, f->list),
                     PO_OK);
    for (uint32_t i = 0; i < f->list->n; i++)
        f->gain[i] = 1.2;
}

static void read_as(fixture *f, const char *name, double gain) {
    uint32_t i = find(f, name);
    if (i == PO_NONE)
        fail_msg("there is no '%s'", name);
    f->gain[i] = gain;
}

/* What the readings of f->gain would be; of a form that is not there yet: the first form's, times
 * what its choices read over it alone. */
static po_status price(void *user, po_combination *const *batch, uint32_t n) {
    fixture *f = user;
    for (uint32_t i = 0; i < n; i++) {
        po_combination *form = batch[i];
        uint32_t before = f->list->n;
        if (form->number == PO_NONE)
            assert_int_equal(po_variant_list_make(f->run, f->list, form, NULL), PO_OK);
        for (uint32_t k = before; k < f->list->n; k++)
            f->gain[k] = 1;
        if (form->number != PO_NONE && f->gain[form->number] > 0)
            form->cost = 1 / f->gain[form->number];
    }
    return PO_OK;
}

/* How many forms the chooser comes to from there. */
static uint32_t combine(fixture *f) {
    po_chooser *c = f->list->chooser;
    uint32_t before = f->list->n;
    c->rules.beam = 2;
    c->rules.at_a_time = 3;
    c->rules.most = c->n + 8;
    c->rules.gain = 1.01;
    c->rules.hopeless = 0.995;
    c->rules.price = price;
    c->rules.user = f;
    assert_int_equal(po_chooser_run(c), PO_OK);
    return f->list->n - before;
}

static void names_read_back(void **state) {
    (void)state;
    fixture f;
    start(&f);
    const po_graph *g = f.base.simplified.graph;
    const po_variant_plan bases[] = {
        {"mutants", g, 0}, {"mutants, seams joined", g, 0}, {"", g, 0}};
    const po_choices all = PO_CHOICE(po_variant_choices()) - 1;
    for (uint32_t b = 0; b < 3; b++)
        for (uint32_t i = 0; i < 500; i++) {
            po_variant_plan plan = bases[b], back;
            plan.choices = i == 0 ? 0 : i == 1 ? all : i * UINT64_C(0x9E3779B97F4A7C15) & all;
            const char *name = po_variant_name(f.run->arena, &plan);
            assert_true(po_variant_named(name, bases, 3, &back));
            assert_string_equal(back.of, plan.of);
            assert_true(back.choices == plan.choices);
        }
    static const char *const none[] = {"simplified", "kernels",        "",
                                       "mutantsx",   "mutants and ",   "mutants and folded",
                                       " and ",      "gates kept and", "folded and gates kept"};
    for (size_t i = 0; i < sizeof none / sizeof none[0]; i++) {
        po_variant_plan back;
        if (po_variant_named(none[i], bases, 3, &back))
            fail_msg("'%s' was read as %s, %llx", none[i], back.of,
                     (unsigned long long)back.choices);
    }
    /* Nothing was found by the search: nothing is made of it. */
    po_variant_plan back;
    assert_false(po_variant_named("mutants", &(po_variant_plan){"mutants", NULL, 0}, 1, &back));
    end(&f);
}

/* Two choices that each read better are made together, and compute the same. */
static void joined(void **state) {
    (void)state;
    fixture f;
    start(&f);
    make(&f);
    read_as(&f, "without composed products", 1.3);
    read_as(&f, "leftovers as arithmetic", 1.25);
    assert_int_equal(combine(&f), 1);
    uint32_t i = find(&f, "without composed products and leftovers as arithmetic");
    assert_int_not_equal(i, PO_NONE);
    const po_graph *g = f.list->variants[i].graph;
    assert_int_equal(test_count(g, "Conv"), 3);
    assert_true(
        test_difference(&f.base.ctx, f.base.imported.original, (po_graph *)(uintptr_t)g, 1) < 3e-5);
    end(&f);
}

/* One that reads better is there already; what is noise is not followed. */
static void alone(void **state) {
    (void)state;
    fixture f;
    start(&f);
    make(&f);
    assert_int_equal(combine(&f), 0);
    end(&f);
    start(&f);
    make(&f);
    read_as(&f, "without composed products", 1.3);
    read_as(&f, "leftovers as arithmetic", 1.203);
    assert_int_equal(combine(&f), 0);
    end(&f);
    start(&f);
    make(&f);
    for (uint32_t i = 0; i < f.list->n; i++)
        f.gain[i] = 0; /* nothing was read */
    assert_int_equal(combine(&f), 0);
    end(&f);
}

/* What read better in the model is tried in the search's result, where that reads best. */
static void with_mutants(void **state) {
    (void)state;
    fixture f;
    start(&f);
    po_graph *g = test_graph(&f.base.ctx, mutated);
    po_run_hold(f.run, g);
    f.chosen.mutated[PO_MUTATED_BEST].graph = g;
    make(&f);
    read_as(&f, "mutants", 1.4);
    read_as(&f, "leftovers as arithmetic", 1.3);
    assert_int_equal(combine(&f), 1);
    assert_int_not_equal(find(&f, "mutants and leftovers as arithmetic"), PO_NONE);
    end(&f);
}

/* Two spellings of one thing cannot both be made: the better one is. */
static void excluded(void **state) {
    (void)state;
    fixture f;
    start(&f);
    make(&f);
    read_as(&f, "HardSwish nodes", 1.25);
    read_as(&f, "hard-swish kept", 1.3);
    assert_int_equal(combine(&f), 0);
    end(&f);
    start(&f);
    make(&f);
    read_as(&f, "HardSwish nodes", 1.25);
    read_as(&f, "hard-swish kept", 1.3);
    read_as(&f, "without composed products", 1.22);
    assert_true(combine(&f) > 0);
    assert_int_equal(find(&f, "without composed products and HardSwish nodes and hard-swish kept"),
                     PO_NONE);
    assert_int_not_equal(find(&f, "without composed products and hard-swish kept"), PO_NONE);
    end(&f);
}

/* A family may be used on a part of the model alone: on the smaller maps, or the larger ones. */
static void in_places(void **state) {
    static const char sizes[] = "graph g (x: f32[1,96,48,48]) -> (y) {\n"
                                " a = Conv(x, w: f32[96,96,3,3] random 1) {pads=[1,1,1,1]}\n"
                                " p = MaxPool(a) {kernel_shape=[2,2], strides=[2,2]}\n"
                                " y = Conv(p, v: f32[96,96,3,3] random 3) {pads=[1,1,1,1]}\n}";
    static const char *const names[] = {"folded", "2-D convolutions kept on large maps",
                                        "2-D convolutions kept on small maps"};
    (void)state;
    fixture f;
    start(&f);
    const po_graph *g = test_graph(&f.base.ctx, sizes);
    po_run_hold(f.run, (po_graph *)(uintptr_t)g);
    f.list->original = g;
    const uint32_t small[] = {PO_ALGEBRA_TILES, PO_ALGEBRA_TILES, 0},
                   large[] = {PO_ALGEBRA_TILES, 0, PO_ALGEBRA_TILES};
    for (uint32_t i = 0; i < 3; i++) {
        const po_variant_plan base = {"", g, 0};
        po_variant_plan plan;
        po_variant_made made;
        assert_true(po_variant_named(names[i], &base, 1, &plan));
        assert_int_equal(po_variant_make(f.run, f.list, &plan, &made), PO_OK);
        assert_int_equal(made.number, i);
        assert_int_equal(made.counts.fired[PO_LAW_TILES], i == 0 ? 2 : 1);
        assert_int_equal(made.counts.on_small & PO_ALGEBRA_TILES, small[i]);
        assert_int_equal(made.counts.on_large & PO_ALGEBRA_TILES, large[i]);
        po_graph *out = (po_graph *)(uintptr_t)f.list->variants[i].graph;
        assert_true(test_difference(&f.base.ctx, g, out, 1) < 3e-5);
        /* Where it is used in one part only there is nothing to choose between. */
        uint32_t open = 0;
        for (uint32_t k = 0; k < po_variant_choices(); k++)
            open += !po_variant_first(k) && po_variant_matters(k, &made.counts);
        assert_int_equal(open, made.counts.tile[PO_TILED_MAPS] / 2 - 1 + (i == 0 ? 2 : 0));
    }
    end(&f);
}

/* A form for usual sizes beside that for all, where a law wants one sample; nothing is written
 * twice where none does. */
static void usual_sizes(void **state) {
#define OPEN(last)                                                                                 \
    "graph g (x: f32[\"N\",8,\"H\",\"W\"]) -> (y) {\n m = GlobalAveragePool(x)\n"                  \
    " a = Conv(m, p: f32[32,8,1,1] random 1)\n s = Sigmoid(a)\n"                                   \
    " e = Conv(x, w: f32[32,8,1,1] random 2)\n" last " y = Conv(f, v: f32[8,32,1,1] random 3)\n}"
    static const struct {
        const char *model;
        bool gated;
    } cases[] = {{OPEN(" f = Mul(e, s)\n"), true}, {OPEN(" f = Add(e, s)\n"), false}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        fixture f;
        f = (fixture){.run = &f.base.run, .list = &f.base.variants};
        run_fixture_start(&f.base, cases[i].model);
        make(&f);
        const uint32_t k = find(&f, "branch for usual sizes"), folded = find(&f, "folded");
        assert_int_equal(k != PO_NONE, cases[i].gated);
        assert_true(folded == PO_NONE || !f.list->variants[folded].twice);
        if (cases[i].gated) {
            po_variant_plan back;
            po_branches found;
            const po_variant *v = &f.list->variants[k];
            assert_true(v->twice);
            assert_true(po_branches_find(f.run->arena, v->graph, &found));
            assert_int_equal(found.n, 3);
            assert_true(po_variant_named("branch for usual sizes and gates kept", f.list->bases,
                                         PO_BASES, &back));
            assert_ptr_equal(back.from, f.list->bases[PO_BASE_USUAL].from);
            assert_null(test_recipe_fault(&f.base.ctx, f.base.imported.original,
                                          (po_graph *)(uintptr_t)v->graph));
            po_proof_report r;
            const po_graph *recipes;
            assert_int_equal(po_proving_recipes(f.run, v->graph, &recipes), PO_OK);
            assert_int_equal(
                po_proving_graphs(&f.base.ctx, f.base.imported.original, v->graph, recipes, 0, &r),
                PO_OK);
            assert_true(r.proved && r.every_size);
        }
        end(&f);
    }
}

/* The search starts from gates that are whole: with their constants in the weights before them they
 * could not be told any more, and no form with mutants would have them. */
static void search_keeps_gates(void **state) {
    (void)state;
    fixture f;
    start(&f);
    const po_search *search;
    assert_int_equal(po_stage_split(f.run, &f.base.imported, &f.base.simplified, NULL, &search),
                     PO_OK);
    assert_non_null(search);
    assert_int_equal(test_count(search->graph, "HardSigmoid"), 1);
    assert_int_equal(test_count(search->graph, "Clip"), 0);
    end(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_read_back), cmocka_unit_test(joined),
        cmocka_unit_test(alone),           cmocka_unit_test(with_mutants),
        cmocka_unit_test(excluded),        cmocka_unit_test(search_keeps_gates),
        cmocka_unit_test(in_places),       cmocka_unit_test(usual_sizes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Choosing mutants with the seams between them: by brute force, and on a chain made by hand. */
#include "pipeline/search/layout_choice.h"
#include "rewriting.h"
#include "unit.h"

#include <math.h>
#include <stdio.h>

typedef struct fixture {
    po_ctx ctx;
    po_arena *arena;
} fixture;

static void start(fixture *f) {
    po_ctx_init(&f->ctx);
    f->arena = po_arena_create(&f->ctx);
}

static void end(fixture *f) {
    po_arenas_free_since(&f->ctx, 0);
}

/* --- the solver --- */

enum { MOST_PLACES = 7, MOST_OPTIONS = 4 };

typedef enum shape { CHAIN, TREE, RING, ANY } shape;

static void random_problem(po_arena *arena, uint64_t seed, shape kind, po_layout_problem *p) {
    uint64_t draw = 0;
    uint32_t n = 2 + (uint32_t)(po_random_u64(seed, 1, draw++) % (MOST_PLACES - 1));
    n = kind == RING && n < 3 ? 3 : n;
    uint32_t *n_options = PO_NEW_N(arena, uint32_t, n);
    double **seconds = PO_NEW_N(arena, double *, n);
    po_layout_pair *pairs = PO_NEW_N(arena, po_layout_pair, n * n);
    *p = (po_layout_problem){
        .n = n, .n_options = n_options, .seconds = (const double *const *)seconds, .pairs = pairs};
    for (uint32_t i = 0; i < n; i++) {
        n_options[i] = 1 + (uint32_t)(po_random_u64(seed, 1, draw++) % MOST_OPTIONS);
        seconds[i] = PO_NEW_N(arena, double, n_options[i]);
        for (uint32_t k = 0; k < n_options[i]; k++)
            seconds[i][k] = 1 + po_random_unit(seed, 2, draw++);
    }
    for (uint32_t b = 1; b < n; b++)
        for (uint32_t a = 0; a < b; a++) {
            bool last = kind == RING && b == n - 1 && a == 0;
            bool joined = kind == TREE  ? a == po_random_u64(seed, 3, b) % b
                          : kind == ANY ? po_random_u64(seed, 1, draw++) % 2 == 0
                                        : a == b - 1 || last;
            if (!joined)
                continue;
            po_layout_pair pair = {a, b, PO_NEW_N(arena, double, n_options[a] * n_options[b])};
            for (uint32_t k = 0; k < n_options[a] * n_options[b]; k++)
                pair.saves[k] =
                    po_random_u64(seed, 1, draw++) % 3 == 0 ? po_random_unit(seed, 2, draw++) : 0;
            pairs[p->n_pairs++] = pair;
        }
}

static double least_of_all(const po_layout_problem *p) {
    uint32_t choice[MOST_PLACES] = {0};
    double least = INFINITY;
    for (;;) {
        least = fmin(least, po_layouts_cost(p, choice));
        uint32_t i = 0;
        while (i < p->n && ++choice[i] == p->n_options[i])
            choice[i++] = 0;
        if (i == p->n)
            return least;
    }
}

static void choose_alone(const po_layout_problem *p, uint32_t *choice) {
    for (uint32_t i = 0; i < p->n; i++) {
        choice[i] = 0;
        for (uint32_t k = 1; k < p->n_options[i]; k++)
            if (p->seconds[i][k] < p->seconds[i][choice[i]])
                choice[i] = k;
    }
}

static void brute_force(void **state) {
    (void)state;
    enum { EACH = 200 };
    static const char *const names[] = {"chains", "trees", "rings", "any graphs"};
    for (shape kind = CHAIN; kind <= ANY; kind++) {
        int better = 0, least = 0;
        for (uint64_t seed = 0; seed < EACH; seed++) {
            fixture f;
            start(&f);
            po_layout_problem p;
            random_problem(f.arena, seed, kind, &p);
            uint32_t choice[MOST_PLACES], again[MOST_PLACES];
            choose_alone(&p, choice);
            memcpy(again, choice, sizeof again);
            double alone = po_layouts_cost(&p, choice), all = least_of_all(&p);
            po_layouts_solve(f.arena, &p, choice);
            po_layouts_solve(f.arena, &p, again);
            assert_memory_equal(choice, again, p.n * sizeof *choice);
            double found = po_layouts_cost(&p, choice);
            assert_true(found >= all - 1e-9);
            assert_true(found <= alone + 1e-9);
            if (kind != ANY && found > all + 1e-9)
                fail_msg("%s, seed %d: %g, not %g", names[kind], (int)seed, found, all);
            better += found < alone - 1e-9;
            least += found <= all + 1e-9;
            end(&f);
        }
        printf("%s: the least in %d of %d, less than each alone in %d\n", names[kind], least, EACH,
               better);
        assert_true(better > EACH / 3);
        assert_true(least > EACH * 9 / 10);
    }
}

/* --- layouts --- */

static void layouts(void **state) {
    (void)state;
    static const struct {
        const char *graph;
        bool moves;
    } samples[] = {
        {"graph g (x: f32[1,4,6,6], w: f32[4,4,1,1]) -> (y) { y = Conv(x, w) }", false},
        {"graph g (x: f32[1,6,6,4], w: f32[4,4,1,1]) -> (y) {\n"
         " a = Transpose(x) {perm=[0,3,1,2]}\n b = Conv(a, w)\n"
         " y = Transpose(b) {perm=[0,2,3,1]}\n}",
         true},
        /* Read beside the move: the move stays. */
        {"graph g (x: f32[1,4,4,4], w: f32[4,4,1,1]) -> (y) {\n"
         " a = Transpose(x) {perm=[0,3,1,2]}\n s = Add(a, x)\n b = Conv(s, w)\n"
         " c = Transpose(b) {perm=[0,2,3,1]}\n d = Add(b, c)\n"
         " y = Add(d, c)\n}",
         false},
        {"graph g (x: f32[1,4,4,4], w: f32[4,4,1,1]) -> (y, z) {\n"
         " b = Conv(x, w)\n y = Transpose(b) {perm=[0,2,3,1]}\n z = Add(y, b)\n"
         " t = Transpose(x) {perm=[0,3,1,2]}\n}",
         false},
    };
    for (size_t i = 0; i < sizeof samples / sizeof samples[0]; i++) {
        fixture f;
        start(&f);
        po_graph *g = test_graph(&f.ctx, samples[i].graph);
        po_seam_move layout;
        assert_int_equal(po_layouts_of(&f.ctx, f.arena, g, 1, &layout), PO_OK);
        bool none_in = po_rt_is_identity(layout.in[0]), none_out = po_rt_is_identity(layout.out[0]);
        assert_int_equal(none_in, !samples[i].moves);
        assert_int_equal(none_out, !samples[i].moves);
        if (samples[i].moves)
            assert_true(po_rt_is_identity(po_rt_compose(f.arena, layout.out[0], layout.in[0])));
        po_graph_free(g);
        end(&f);
    }
}

/* --- a chain by hand: two equal convolutions, element-wise nodes between --- */

static void fill_site(fixture *f, po_site *site, const po_subprogram *sub, const double *ratios) {
    static const char *const mutants[] = {
        "graph g (x: f32[1,16,32,32], w: f32[16,16,1,1]) -> (y) {\n"
        " a = Transpose(x) {perm=[0,1,3,2]}\n b = Conv(a, w)\n"
        " y = Transpose(b) {perm=[0,1,3,2]}\n}",
        "graph g (x: f32[1,16,32,32], w: f32[16,16,1,1]) -> (y) {\n"
        " a = Identity(x)\n y = Conv(a, w)\n}",
        "graph g (x: f32[1,16,32,32], w: f32[16,16,1,1]) -> (y) {\n"
        " a = Transpose(x) {perm=[0,1,3,2]}\n b = Identity(a)\n c = Conv(b, w)\n"
        " y = Transpose(c) {perm=[0,1,3,2]}\n}",
    };
    uint32_t n = sizeof mutants / sizeof mutants[0];
    *site = (po_site){.sub = sub,
                      .seconds = 1e-3,
                      .chosen = PO_NONE,
                      .n_trials = n,
                      .trials = PO_NEW_N(f->arena, po_trial, n)};
    for (uint32_t i = 0; i < n; i++)
        site->trials[i] = (po_trial){.name = "by hand",
                                     .graph = test_graph(&f->ctx, mutants[i]),
                                     .fate = PO_TRIAL_INSIDE,
                                     .measured = true,
                                     .ratio = ratios[i]};
}

static void chain_with(const char *between, const double *ratios, bool other_reader,
                       uint32_t *taken, double *gained, uint32_t *options) {
    fixture f;
    start(&f);
    char text[2048];
    snprintf(text, sizeof text,
             "graph g (x: f32[1,16,32,32]) -> (y%s) {\n"
             " a = Conv(x, w: f32[16,16,1,1] random 1)\n%s\n"
             " c = Conv(b, v: f32[16,16,1,1] random 2)\n y = Tanh(c)\n%s}",
             other_reader ? ", z" : "", between, other_reader ? " z = Exp(a)\n" : "");
    po_graph *g = test_graph(&f.ctx, text);
    po_search search = {.arena = f.arena, .graph = g, .rates = {.flops = 1e11, .bytes = 1e9}};
    assert_int_equal(po_split_model(&f.ctx, f.arena, g, &(po_split_options){0}, &search.split),
                     PO_OK);
    assert_int_equal(search.split.n, 1);
    assert_int_equal(search.split.subs[0].n_at, 2);
    search.n_sites = 1;
    search.sites = PO_NEW(f.arena, po_site);
    fill_site(&f, search.sites, &search.split.subs[0], ratios);
    po_layouts seams;
    assert_int_equal(po_layouts_find(&f.ctx, f.arena, &search, 1, &seams), PO_OK);
    assert_int_equal(seams.problem.n, 2);
    uint32_t choice[2];
    choose_alone(&seams.problem, choice);
    double alone = po_layouts_cost(&seams.problem, choice);
    po_layouts_solve(f.arena, &seams.problem, choice);
    *gained = alone - po_layouts_cost(&seams.problem, choice);
    for (int i = 0; i < 2; i++)
        taken[i] = seams.options[0][choice[i]].trial;
    *options = seams.n_options[0];
    for (uint32_t i = 0; i < search.sites->n_trials; i++)
        po_graph_free((po_graph *)(uintptr_t)search.sites->trials[i].graph);
    po_graph_free(g);
    end(&f);
}

/* A move of the map: 65536 bytes read and written, 131 us at 1e9 bytes a second; two of them meet
 * at the seam, 262 us. The mutants take 0.93, 0.98 and 0.9 times the original's speed. */
static void by_hand(void **state) {
    (void)state;
    static const struct {
        const char *name, *between;
        double ratios[3];
        bool other_reader;
        int moves; /* that are saved; 0: nothing is joined */
    } samples[] = {
        {"a seam that saves more than the mutants lose",
         " b = Relu(a)",
         {0.93, 0.98, 0.9},
         false,
         2},
        {"through several nodes of one value",
         " s = Sigmoid(a)\n m = Max(a, s)\n b = Min(m, k: f32[1] {2})",
         {0.93, 0.98, 0.9},
         false,
         2},
        {"mutants too slow for that", " b = Relu(a)", {0.8, 0.98, 0.75}, false, 0},
        {"a softmax between", " b = Softmax(a) {axis=1}", {0.93, 0.98, 0.9}, false, 0},
        {"another reader keeps the first move", " b = Relu(a)", {0.93, 0.98, 0.9}, true, 0},
        {"and the second may pay alone", " b = Relu(a)", {0.97, 0.98, 0.9}, true, 1},
    };
    for (size_t i = 0; i < sizeof samples / sizeof samples[0]; i++) {
        uint32_t taken[2], options;
        double gained;
        chain_with(samples[i].between, samples[i].ratios, samples[i].other_reader, taken, &gained,
                   &options);
        printf("%s: %u options, trials %d and %d, %.0f us less\n", samples[i].name, options,
               (int)taken[0], (int)taken[1], 1e6 * gained);
        /* The original, the faster of the two with moves, the one without. */
        assert_int_equal(options, 3);
        for (int k = 0; k < 2; k++)
            assert_int_equal(taken[k], samples[i].moves ? 0 : PO_NONE);
        assert_int_equal(gained > 0, samples[i].moves > 0);
        if (samples[i].moves) {
            double moves = samples[i].moves * 2 * 16 * 32 * 32 * 4 / 1e9,
                   slower = 2 * 1e-3 * (1.02 / samples[i].ratios[0] - 1);
            assert_true(fabs(gained - (moves - slower)) < 1e-9);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(brute_force),
        cmocka_unit_test(layouts),
        cmocka_unit_test(by_hand),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

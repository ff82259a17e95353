/* What --accuracy exact admits of kernels: the classes in the schedulers' and the search's tables
 * against the bits of what they make. Inputs and weights are small whole numbers, so that sums of
 * the same products are the same in any order. */
#include "planned.h"
#include "search_blocks.h"
#include "superopt/schedule/internal.h"
#include "superopt/search/internal.h"
#include "unit.h"

#include <stdio.h>

/* Whole numbers from -3 to 3, none of them 0. */
static double small(uint64_t i) {
    uint64_t draw = po_random_u64(7, 1, i) % 6;
    return draw < 3 ? (double)draw - 3 : (double)draw - 2;
}

/* `w` of the text is followed by so many numbers. scaled: rows of the input lie far apart, so that
 * sums of different rows round (sums along one do not). */
static const struct {
    const char *head, *tail;
    int count;
    bool scaled;
} samples[] = {
    {"graph g (x: f32[1,16,9,13]) -> (y) {\n y = Conv(x, w: f32[32,16,3,3] {",
     "}) {kernel_shape=[3,3], pads=[1,1,1,1]}\n}", 32 * 16 * 9, false},
    {"graph g (x: f32[1,16,40]) -> (y) {\n a = Conv(x, w: f32[16,16,7] {",
     "}) {kernel_shape=[7], pads=[3,3]}\n y = Relu(a)\n}", 16 * 16 * 7, false},
    {"graph g (x: f32[98,96]) -> (y) {\n y = MatMul(x, w: f32[96,128] {", "})\n}", 96 * 128, true},
    {"graph g (x: f32[1,32,7,37]) -> (y) {\n y = Conv(x, w: f32[32,4,3,3] {",
     "}) {kernel_shape=[3,3], pads=[1,1,1,1], group=8}\n}", 32 * 4 * 9, false},
    {"graph g (x: f32[1,16,5,70]) -> (y) {\n a = ConvTranspose(x, v: f32[16,1,2,2] {",
     "}) {kernel_shape=[2,2], strides=[2,2]}\n y = Relu(a)\n}", 16 * 4, false},
    {"graph g (x: f32[1,16,30,40]) -> (y) {\n s = Relu(x)\n r = GlobalAveragePool(s)\n"
     " t = Mul(s, r)\n y = Mul(t, w: f32[1] {",
     "})\n}", 1, false},
};

static const po_scheduler *const schedulers[] = {
    &po_schedule_winograd, &po_schedule_strassen, &po_schedule_planes, &po_schedule_direct,
    &po_schedule_turned,   &po_schedule_blocks,   &po_schedule_map};
enum { SCHEDULERS = sizeof schedulers / sizeof *schedulers };

typedef struct seen {
    uint32_t used[SCHEDULERS], changed[SCHEDULERS];
} seen;

static uint32_t place_of(const po_scheduler *how) {
    uint32_t i = 0;
    while (schedulers[i] != how)
        i++;
    return i;
}

/* Choice k of every step; the schedulers taken, a bit each. */
static uint32_t take_choice(test_planned *f, uint32_t k) {
    const po_mu *naive = f->plan.lowered.mu;
    uint32_t taken = 0;
    po_schedule s;
    po_schedule_start(&s, f->arena, naive, false);
    for (uint32_t node = naive->first; node != PO_NONE; node = naive->nodes[node].next) {
        po_choice choices[PO_CHOICES_MAX];
        uint32_t n = po_choices_of(naive, node, &po_isas[PO_ISA_AVX512], 0, choices);
        po_schedule_step(&s, node, &choices[k % n]);
        taken |= 1u << place_of(choices[k % n].how);
    }
    po_schedule_finish(&s);
    f->plan.mu = s.mu;
    f->plan.packed = s.packed;
    f->plan.n_packed = s.n_packed;
    return taken;
}

static bool same_bits(test_planned *f, const po_array *in, const double *expected, int64_t count) {
    double *out = PO_NEW_N(f->arena, double, count);
    if (po_mu_check(&f->ctx, f->plan.mu, 1 << 24) != PO_OK ||
        test_planned_eval(f, f->plan.mu, true, in, out) != PO_OK)
        fail_msg("%s", f->ctx.error.message);
    return memcmp(out, expected, (size_t)count * sizeof *out) == 0;
}

static void try_sample(size_t i, seen *s) {
    po_ctx ctx;
    po_ctx_init(&ctx);
    po_arena *arena = po_arena_create(&ctx);
    po_text text;
    po_text_init(&text, arena);
    po_text_puts(&text, samples[i].head);
    for (int k = 0; k < samples[i].count; k++)
        po_text_printf(&text, "%s%d", k ? ", " : "", (int)small((uint64_t)k));
    po_text_puts(&text, samples[i].tail);
    test_planned f;
    test_planned_start(&f, text.data, false);
    po_array *in = po_arena_memdup(f.arena, test_planned_input(&f), sizeof *in);
    const po_type *out = &f.graph->values[f.graph->outputs[0]].type;
    int64_t count = po_type_count(out), row = in->dims[in->rank - 1];
    for (int64_t k = 0; k < in->count; k++)
        in->f[k] =
            small((uint64_t)k) * (samples[i].scaled && k / row * 2 < in->dims[0] ? 0x1p60 : 1);
    double *expected = PO_NEW_N(f.arena, double, count);
    assert_int_equal(test_planned_eval(&f, f.plan.lowered.mu, false, in, expected), PO_OK);
    for (uint32_t k = 0; k < PO_CHOICES_MAX; k++) {
        uint32_t taken = take_choice(&f, k);
        bool same = same_bits(&f, in, expected, count), may_round = false;
        for (uint32_t j = 0; j < SCHEDULERS; j++)
            if (taken >> j & 1) {
                may_round |= schedulers[j]->rounding == PO_ROUNDS;
                s->used[j]++;
                s->changed[j] += !same;
            }
        if (!same && !may_round)
            fail_msg("sample %zu, choice %u: other bits, and no scheduler says so", i, k);
    }
    test_planned_end(&f);
    po_arena_free(arena);
}

static void schedulers_keep_what_they_promise(void **state) {
    (void)state;
    seen s = {{0}, {0}};
    for (size_t i = 0; i < sizeof samples / sizeof *samples; i++)
        try_sample(i, &s);
    for (uint32_t j = 0; j < SCHEDULERS; j++) {
        printf("%-10s taken %u times, other bits %u times\n", schedulers[j]->name, s.used[j],
               s.changed[j]);
        assert_true(s.used[j] > 0);
        /* One that always keeps bits has no reason to be left out. */
        if (schedulers[j]->rounding == PO_ROUNDS)
            assert_true(s.changed[j] > 0);
    }
}

/* Under exact no choice of any step rounds. */
static void exact_lists_none_that_rounds(void **state) {
    (void)state;
    test_planned f;
    test_planned_start(&f,
                       "graph g (x: f32[1,96,11,9]) -> (y) {\n"
                       " a = Conv(x, w: f32[96,96,3,3] random 1) {kernel_shape=[3,3]}\n"
                       " r = Relu(a)\n"
                       " y = Conv(r, v: f32[96,96,1,1] random 2) {kernel_shape=[1,1]}\n}",
                       false);
    const po_mu *naive = f.plan.lowered.mu;
    uint32_t left_out = 0;
    for (uint32_t node = naive->first; node != PO_NONE; node = naive->nodes[node].next) {
        po_choice choices[PO_CHOICES_MAX];
        uint32_t n = po_choices_of(naive, node, &po_isas[PO_ISA_AVX512], 0, choices);
        for (uint32_t k = 0; k < n; k++)
            left_out += choices[k].how->rounding == PO_ROUNDS;
        n = po_choices_of(naive, node, &po_isas[PO_ISA_AVX512], 1, choices);
        assert_true(n > 0);
        for (uint32_t k = 0; k < n; k++)
            assert_true(choices[k].how->rounding != PO_ROUNDS);
    }
    assert_true(left_out > 0);
    test_planned_end(&f);
}

/* --- the search --- */

/* Sums that are rescaled start from a 0 that is written; others are made fresh. */
static bool rescales(const po_mu *mu) {
    for (uint32_t i = po_mu_next(mu, PO_NONE); i != PO_NONE; i = po_mu_next(mu, i)) {
        const po_mu_statement *s = &mu->nodes[i].statement;
        if (mu->nodes[i].kind == PO_MU_STATEMENT && s->n_items == 1 && s->combine == PO_MU_SET &&
            s->items[0].function == PO_MU_CONST && s->items[0].value == 0)
            return true;
    }
    return false;
}

/* Of what is found, how many are the steps' own program, and how many rescale sums by a running
 * maximum. */
static void look(po_ctx *ctx, const char *block, bool exact, uint32_t *n, uint32_t *own,
                 uint32_t *rescaled) {
    po_arena *arena = po_arena_create(ctx);
    po_mu *mu;
    assert_int_equal(po_mu_parse(ctx, arena, block, &mu), PO_OK);
    po_search_options options = po_search_defaults();
    po_search_counts counts;
    options.exact = exact;
    options.keep = 96;
    po_found *found = PO_NEW_N(arena, po_found, options.keep);
    search_problem p;
    search_skeleton *naive = PO_NEW(arena, search_skeleton);
    po_text text;
    po_text_init(&text, arena);
    assert_int_equal(search_problem_of(ctx, arena, mu, true, &p), PO_OK);
    if (search_naive(&p, naive))
        search_tell_skeleton(&p, naive, &text);
    *own = *rescaled = 0;
    if (po_search(ctx, arena, mu, &options, &counts, found, n) != PO_OK)
        fail_msg("%s", ctx->error.message);
    for (uint32_t i = 0; i < *n; i++) {
        *own += strcmp(found[i].algebra, text.data) == 0;
        *rescaled += rescales(found[i].mu);
    }
    po_arena_free(arena);
}

/* The text with another number in the place of one. */
static const char *with_number(po_arena *arena, const char *text, const char *from,
                               const char *to) {
    po_text t;
    po_text_init(&t, arena);
    for (const char *next; (next = strstr(text, from)) != NULL; text = next + strlen(from)) {
        po_text_add(&t, text, (size_t)(next - text));
        po_text_puts(&t, to);
    }
    po_text_puts(&t, text);
    return t.data;
}

static void search_under_exact_keeps_the_steps(void **state) {
    (void)state;
    po_ctx ctx;
    po_ctx_init(&ctx);
    po_arena *arena = po_arena_create(&ctx);
    uint32_t others = 0, all_rescaled = 0, kept = 0;
    for (uint32_t i = 0; i <= n_search_blocks; i++) {
        /* And attention over a long sequence, which is worked in one pass. */
        const char *text = i < n_search_blocks
                               ? search_blocks[i].text
                               : with_number(arena, search_block_of("gqa"), "64", "4096");
        uint32_t n, own, rescaled;
        look(&ctx, text, false, &n, &own, &rescaled);
        others += n - own;
        all_rescaled += rescaled;
        look(&ctx, text, true, &n, &own, &rescaled);
        kept += n;
        assert_int_equal(own, n);
        assert_int_equal(rescaled, 0);
    }
    printf("%u programs of the steps under exact; without it %u others, %u rescaled\n", kept,
           others, all_rescaled);
    /* The test can fail: without exact there are such. */
    assert_true(others > 0 && all_rescaled > 0 && kept > 0);
    po_arena_free(arena);
}

static void laws_have_names(void **state) {
    (void)state;
    uint32_t rounds = 0;
    for (uint32_t i = 0; i < SEARCH_LAWS; i++) {
        assert_non_null(search_law_name((search_law)i));
        rounds += search_law_rounding((search_law)i) == PO_ROUNDS;
    }
    assert_true(rounds > 0 && rounds < SEARCH_LAWS);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(schedulers_keep_what_they_promise),
        cmocka_unit_test(exact_lists_none_that_rounds),
        cmocka_unit_test(search_under_exact_keeps_the_steps),
        cmocka_unit_test(laws_have_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

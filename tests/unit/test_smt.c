/* Questions about accesses put to Z3: true, false and undecided ones; layouts and exact covers; the
 * second look at chosen muGraphs, with planted errors; and that nothing that the quick conditions
 * of po_mu_check pass is refuted. */
#include "mugraph/prove.h"

#include "mu_cases.h"
#include "unit.h"

#include <stdio.h>

typedef struct fixture {
    po_ctx ctx;
    po_arena *arena;
} fixture;

static void begin(fixture *f) {
    po_ctx_init(&f->ctx);
    f->arena = po_arena_create(&f->ctx);
}

static po_mu *parsed(fixture *f, const char *text) {
    po_mu *mu;
    if (po_mu_parse(&f->ctx, f->arena, text, &mu) != PO_OK)
        fail_msg("%s\n%s", f->ctx.error.message, text);
    return mu;
}

/* --- questions --- */

static void answers(void **state) {
    (void)state;
    fixture f;
    begin(&f);
    po_smt *smt = po_smt_create(f.arena, 0);
    uint32_t x = po_smt_variable(smt, 0, 99), y = po_smt_variable(smt, 0, 6);
    uint32_t seven = po_smt_sum(smt, 7, 0, NULL), none = po_smt_sum(smt, 0, 0, NULL);
    po_smt_term parts[2] = {{po_smt_quotient(smt, x, 7), 7}, {po_smt_rest(smt, x, 7), 1}};
    uint32_t again = po_smt_sum(smt, 0, 2, parts);
    /* x = 7 (x / 7) + x % 7 */
    po_smt_require(smt, (po_smt_claim){PO_SMT_DIFFERENT, x, again});
    assert_int_equal(po_smt_ask(smt), PO_SMT_NEVER);
    /* What was required is gone. */
    assert_int_equal(po_smt_ask(smt), PO_SMT_SOME);
    /* 7 a + y is x for one pair only, and some x is not below 7. */
    po_smt_require(smt, (po_smt_claim){PO_SMT_LESS, seven, x});
    assert_int_equal(po_smt_ask(smt), PO_SMT_SOME);
    po_smt_require(smt, (po_smt_claim){PO_SMT_LESS, y, none});
    assert_int_equal(po_smt_ask(smt), PO_SMT_NEVER);
    /* One of none. */
    po_smt_require_any(smt, 0, NULL);
    assert_int_equal(po_smt_ask(smt), PO_SMT_NEVER);
    po_smt_require_any(smt, 2, (po_smt_claim[]){{PO_SMT_LESS, y, none}, {PO_SMT_EQUAL, x, seven}});
    assert_int_equal(po_smt_ask(smt), PO_SMT_SOME);
    po_arenas_free_since(&f.ctx, 0);
}

/* After a restart nothing is left of what was said before, and limits hold as before. */
static void starts_again(void **state) {
    (void)state;
    fixture f;
    begin(&f);
    po_smt *smt = po_smt_create(f.arena, 0);
    for (int64_t i = 0; i < 40; i++) {
        const uint32_t x = po_smt_variable(smt, i, i + 1), y = po_smt_variable(smt, 0, 9);
        const uint32_t at = po_smt_sum(smt, i, 0, NULL), next = po_smt_sum(smt, i + 1, 0, NULL);
        assert_int_equal(x, 0);
        po_smt_require(smt, (po_smt_claim){PO_SMT_LESS, at, x});
        po_smt_require(smt, (po_smt_claim){PO_SMT_DIFFERENT, x, next});
        assert_int_equal(po_smt_ask(smt), PO_SMT_NEVER);
        po_smt_require(smt, (po_smt_claim){PO_SMT_EQUAL, x, at});
        assert_int_equal(po_smt_ask(smt), PO_SMT_SOME);
        po_smt_require(smt, (po_smt_claim){PO_SMT_LESS, x, at}); /* is not asked any more */
        po_smt_restart(smt);
        (void)y;
    }
    po_arenas_free_since(&f.ctx, 0);
}

/* Twelve numbers of two thousand that sum up to a number that their factors cannot make: beyond a
 * small limit. The same limit gives the same answer each time. */
static po_smt_answer hard(po_smt *smt) {
    static const int64_t factor[] = {12223, 12224, 36674, 61119, 85569, 91123};
    po_smt_term terms[6];
    for (uint32_t i = 0; i < 6; i++)
        terms[i] = (po_smt_term){po_smt_variable(smt, 0, 2000), factor[i]};
    uint32_t sum = po_smt_sum(smt, 0, 6, terms), target = po_smt_sum(smt, 89643481, 0, NULL);
    po_smt_require(smt, (po_smt_claim){PO_SMT_EQUAL, sum, target});
    return po_smt_ask(smt);
}

static void gives_up(void **state) {
    (void)state;
    fixture f;
    begin(&f);
    po_smt *again = po_smt_create(f.arena, 200);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(hard(po_smt_create(f.arena, 200)), PO_SMT_UNKNOWN);
        assert_int_equal(hard(again), PO_SMT_UNKNOWN);
        po_smt_restart(again);
    }
    po_arenas_free_since(&f.ctx, 0);
}

/* --- layouts --- */

static void layouts(void **state) {
    (void)state;
    static const struct {
        uint32_t rank;
        int64_t stride[3], extent[3];
        po_smt_answer answer;
    } rows[] = {
        {3, {100, 10, 1}, {5, 10, 10}, PO_SMT_NEVER},
        {3, {100, 10, 1}, {5, 10, 11}, PO_SMT_SOME},
        {2, {3, 5}, {5, 3}, PO_SMT_NEVER}, /* no digits, and yet apart: 3a + 5b, a < 5, b < 3 */
        {2, {3, 5}, {6, 4}, PO_SMT_SOME},
        {3, {6, 10, 15}, {5, 3, 2}, PO_SMT_NEVER},
        {3, {6, 10, 15}, {6, 4, 2}, PO_SMT_SOME},
        {1, {0}, {2}, PO_SMT_SOME},
        {1, {0}, {1}, PO_SMT_NEVER},
    };
    fixture f;
    begin(&f);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        po_smt *smt = po_smt_create(f.arena, 0);
        po_smt_answer found =
            po_mu_never_overlap(rows[i].rank, rows[i].stride, rows[i].extent, smt);
        /* One by one. */
        bool taken[600] = {false}, meet = false;
        int64_t n = 1;
        for (uint32_t x = 0; x < rows[i].rank; x++)
            n *= rows[i].extent[x];
        for (int64_t e = 0; e < n; e++) {
            int64_t at = 0, rest = e;
            for (uint32_t x = 0; x < rows[i].rank; x++) {
                at += rest % rows[i].extent[x] * rows[i].stride[x];
                rest /= rows[i].extent[x];
            }
            meet |= taken[at];
            taken[at] = true;
        }
        assert_int_equal(found, rows[i].answer);
        assert_int_equal(meet, rows[i].answer == PO_SMT_SOME);
    }
    po_arenas_free_since(&f.ctx, 0);
}

/* --- covers --- */

#define COVER(body)                                                                                \
    "mugraph c {\n label a 3\n label b 5\n label d 2\n label e 15\n label g 10\n tensor X input "  \
    "0 [40]\n"                                                                                     \
    " tensor Y output 0 [30]\n step \"s\" {\n" body " }\n}"

static void covers(void **state) {
    (void)state;
    static const struct {
        const char *text;
        po_smt_answer answer;
    } rows[] = {
        {COVER("Y[10*a+2*b+d] = X[a+b+d]\n"), PO_SMT_NEVER},
        {COVER("Y[e] = X[e]\n Y[e+15] = X[e]\n"), PO_SMT_NEVER},
        {COVER("Y[2*e] = X[e]\n Y[2*e+1] = X[e]\n"), PO_SMT_NEVER},
        {COVER("Y[e] = X[e]\n Y[e+14] = X[e]\n"), PO_SMT_SOME}, /* 14 twice, 29 never */
        {COVER("Y[2*e] = X[e]\n"), PO_SMT_SOME},                /* half of it */
        {COVER("Y[e+16] = X[e]\n Y[e] = X[e]\n"), PO_SMT_SOME}, /* outside */
        {COVER("Y[10*a+2*b+3*d] = X[a+b+d]\n"), PO_SMT_SOME},
        {COVER("Y[3*g+a] = X[g+a]\n"), PO_SMT_NEVER},
        {COVER("Y[3*g+a] = X[4*g+a]\n"), PO_SMT_NEVER},
        {COVER("Y[3*g+a] = X[4*g+2*a]\n"), PO_SMT_SOME}, /* reads outside: leaves an element */
    };
    fixture f;
    begin(&f);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        po_mu *mu = parsed(&f, rows[i].text);
        po_smt *smt = po_smt_create(f.arena, 0);
        uint32_t out = 0;
        while (mu->tensors[out].place != PO_MU_OUTPUT)
            out++;
        if (po_mu_never_missed(mu, out, smt) != rows[i].answer)
            fail_msg("%s", rows[i].text);
    }
    po_arenas_free_since(&f.ctx, 0);
}

/* A statement of 66 labels reads 40 elements too far by the last of them. */
static void covers_by_many_labels(void **state) {
    (void)state;
    enum { MANY = 64 };
    for (int outside = 0; outside < 2; outside++) {
        char labels[MANY * 16] = "", sum[MANY * 8] = "", text[4096];
        for (int k = 0, at = 0, to = 0; k < MANY; k++) {
            at += sprintf(labels + at, " label l%d 1\n", k);
            to += sprintf(sum + to, "%sl%d", k ? "+" : "", k);
        }
        snprintf(text, sizeof text,
                 "mugraph m {\n%s label e 15\n label d 2\n tensor X input 0 [40]\n"
                 " tensor Y output 0 [30]\n step \"s\" {\n"
                 "  Y[e+15*d+%s] = X[%s+%d*d]\n }\n}",
                 labels, sum, sum, outside ? 40 : 39);
        fixture f;
        begin(&f);
        po_mu *mu = parsed(&f, text);
        po_smt *smt = po_smt_create(f.arena, 0);
        assert_int_equal(po_mu_never_missed(mu, 1, smt), outside ? PO_SMT_SOME : PO_SMT_NEVER);
        po_arenas_free_since(&f.ctx, 0);
    }
}

/* --- the second look --- */

/* Every muGraph of the tests that po_mu_check passes. */
static void agrees(void **state) {
    (void)state;
    fixture f;
    begin(&f);
    uint32_t asked = 0;
    for (size_t i = 0; i < n_test_mu_cases; i++) {
        po_mu *mu = parsed(&f, test_mu_cases[i].text);
        po_mu_proved proved;
        if (po_mu_check(&f.ctx, mu, 1 << 22) != PO_OK) {
            po_ctx_clear(&f.ctx);
            continue;
        }
        if (po_mu_prove(&f.ctx, mu, 0, &proved) != PO_OK)
            fail_msg("%s: %s", test_mu_cases[i].name, f.ctx.error.message);
        asked += proved.asked;
    }
    assert_true(asked > 50);
    po_arenas_free_since(&f.ctx, 0);
}

#define BLOCKS(body)                                                                               \
    "mugraph b {\n label i 40\n label j 6\n label k 8\n tensor X input 0 [400]\n"                  \
    " tensor Y output 0 [240]\n step \"s\" {\n  grid i by 8 {\n" body "  }\n }\n}"

static void refuses(void **state) {
    (void)state;
    static const struct {
        const char *what, *text;
        bool right;
    } rows[] = {
        {"apart", BLOCKS("   Y[6*i+j] = X[6*i+j]\n"), true},
        {"apart, not by digits", BLOCKS("   Y[5*i+40*j-35*j] = X[i+j]\n"), false},
        {"neighbours meet", BLOCKS("   Y[5*i+j] = X[i+j]\n"), false},
        {"a neighbour's elements are read",
         BLOCKS("   Y[6*i+j] = X[i+j]\n   Y[6*i+j] = Y[6*i+j+1]\n"), false},
        {"its own elements are read", BLOCKS("   Y[6*i+j] = X[i+j]\n   Y[6*i+j] = Y[6*i+j] * 2\n"),
         true},
        {"outside", BLOCKS("   Y[6*i+j] = X[10*i+2*j+1]\n"), true}, /* is tested */
        {"added up by two", BLOCKS("   Y[6*i+j+k] += X[i]\n"), false},
    };
    fixture f;
    begin(&f);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        po_mu *mu = parsed(&f, rows[i].text);
        po_mu_proved proved;
        po_status status = po_mu_prove(&f.ctx, mu, 0, &proved);
        if ((status == PO_OK) != rows[i].right)
            fail_msg("%s: %s", rows[i].what, status == PO_OK ? "passed" : f.ctx.error.message);
        po_ctx_clear(&f.ctx);
    }
    /* An overlapping layout. */
    po_mu *mu = parsed(&f, rows[0].text);
    mu->tensors[0].rank = 1;
    mu->tensors[0].stride[0] = 0;
    po_mu_proved proved;
    assert_int_equal(po_mu_prove(&f.ctx, mu, 0, &proved), PO_BAD_INPUT);
    /* Undecided is refused. */
    po_ctx_clear(&f.ctx);
    mu = parsed(&f, rows[0].text);
    assert_int_equal(po_mu_prove(&f.ctx, mu, 1, &proved), PO_BAD_INPUT);
    assert_true(proved.unknown > 0);
    po_arenas_free_since(&f.ctx, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers),      cmocka_unit_test(gives_up),
        cmocka_unit_test(starts_again), cmocka_unit_test(layouts),
        cmocka_unit_test(covers),       cmocka_unit_test(covers_by_many_labels),
        cmocka_unit_test(agrees),       cmocka_unit_test(refuses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

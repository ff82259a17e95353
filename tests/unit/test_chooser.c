/* The chooser among combinations of rewrites, by prices that are made up. */
#include "pipeline/choose/chooser.h"
#include "unit.h"

#include <math.h>

/* A machine made of prices: what each choice does alone, and what pairs do beyond that. */
typedef struct fake {
    po_ctx ctx;
    po_arena *arena;
    double base[3], alone[8], pair[8][8];
    double noise, lies;        /* each price off by so much, by its number; each better than all */
    uint32_t asked[3][1 << 8]; /* how often each state was priced */
    uint32_t n_asked, n_batches, widest;
    uint32_t none;       /* states with all of these choices cannot be made */
    uint32_t stop_after; /* batches; 0: never */
    po_chooser *c;
} fake;

static po_status price(void *user, po_combination *const *batch, uint32_t n) {
    fake *f = user;
    f->n_batches++;
    f->widest = n > f->widest ? n : f->widest;
    for (uint32_t i = 0; i < n; i++) {
        po_combination *s = batch[i];
        double cost = f->base[s->base];
        for (uint32_t a = 0; a < 8; a++) {
            cost *= s->choices >> a & 1 ? f->alone[a] : 1;
            for (uint32_t b = 0; b < a; b++)
                cost *= (s->choices >> a & 1) && (s->choices >> b & 1) && f->pair[a][b] > 0
                            ? f->pair[a][b]
                            : 1;
        }
        f->asked[s->base][s->choices & 0xff]++;
        f->n_asked++;
        s->open = 0xff;
        s->cost = f->none && (s->choices & f->none) == f->none ? 0
                  : f->lies > 0                                ? (f->lies *= 0.5)
                                                               : cost;
    }
    f->c->over |= f->stop_after > 0 && f->n_batches >= f->stop_after;
    return PO_OK;
}

static void start(fake *f, po_chooser_rules rules) {
    static const double one[3] = {1, 1, 1};
    *f = (fake){.noise = 0};
    memcpy(f->base, one, sizeof one);
    for (uint32_t i = 0; i < 8; i++)
        f->alone[i] = 1;
    po_ctx_init(&f->ctx);
    f->arena = po_arena_create(&f->ctx);
    rules.price = price;
    rules.user = f;
    rules.n_choices = rules.n_choices ? rules.n_choices : 8;
    rules.bases = rules.bases ? rules.bases : 1;
    f->c = po_chooser_create(&f->ctx, f->arena, &rules);
}

static void end(fake *f) {
    po_arenas_free_since(&f->ctx, 0);
}

/* The first state, and those that differ from it in one choice. */
static void seed(fake *f) {
    po_chooser_add(f->c, 0, 0);
    for (uint32_t k = 0; k < f->c->rules.n_choices; k++)
        po_chooser_add(f->c, 0, UINT32_C(1) << k);
}

static const po_chooser_rules wide = {.beam = 3, .most = 60, .gain = 1.01, .hopeless = 10};
static const po_chooser_rules narrow = {
    .beam = 2, .at_a_time = 3, .most = 17, .gain = 1.01, .hopeless = 1};

static void once_each(const fake *f) {
    for (uint32_t b = 0; b < 3; b++)
        for (uint32_t i = 0; i < 1 << 8; i++)
            assert_true(f->asked[b][i] <= 1);
}

/* A choice that loses alone gains beside another, and two that gain alone lose together: joining
 * what read better alone finds neither. */
static void finds_pairs(void **state) {
    (void)state;
    fake f;
    start(&f, wide);
    f.alone[0] = 1.05;
    f.alone[1] = 0.94;
    f.pair[1][0] = 0.6;
    f.alone[2] = f.alone[3] = 0.95;
    f.pair[3][2] = 1.3;
    seed(&f);
    assert_int_equal(po_chooser_run(f.c), PO_OK);
    const po_combination *best = po_chooser_best(f.c, 0);
    assert_int_equal(best->choices & 0xf & ~0xcu, 3);
    assert_true((best->choices & 0xc) == 4 || (best->choices & 0xc) == 8);
    once_each(&f);
    end(&f);
}

/* With few readings a round: all that gained is tried at once, then what it was made of. */
static void few_readings(void **state) {
    (void)state;
    fake f;
    start(&f, narrow);
    f.alone[1] = 0.9;
    f.alone[4] = 0.8;
    f.alone[6] = 0.95;
    f.pair[6][4] = 1.5;
    seed(&f);
    assert_int_equal(po_chooser_run(f.c), PO_OK);
    assert_int_equal(po_chooser_best(f.c, 0)->choices, 1 << 1 | 1 << 4);
    assert_true(f.n_batches <= 3);
    once_each(&f);
    end(&f);
    /* Nothing gains: nothing more is read. */
    start(&f, narrow);
    for (uint32_t i = 0; i < 8; i++)
        f.alone[i] = 1.02;
    seed(&f);
    assert_int_equal(po_chooser_run(f.c), PO_OK);
    assert_int_equal(f.n_asked, 9);
    end(&f);
}

/* What gained on one base is tried on the best of them; bases that are not there are not. */
static void other_bases(void **state) {
    (void)state;
    fake f;
    po_chooser_rules rules = narrow;
    rules.bases = 5;
    start(&f, rules);
    f.base[2] = 0.7;
    f.alone[3] = 0.9;
    seed(&f);
    po_chooser_add(f.c, 2, 0);
    assert_int_equal(po_chooser_run(f.c), PO_OK);
    assert_int_equal(po_chooser_best(f.c, 0)->base, 2);
    assert_int_equal(po_chooser_best(f.c, 0)->choices, 1 << 3);
    for (uint32_t i = 0; i < 1 << 8; i++)
        assert_int_equal(f.asked[1][i], 0);
    once_each(&f);
    end(&f);
}

/* Of choices that exclude one another one is made. */
static void excluded(void **state) {
    (void)state;
    fake f;
    po_chooser_rules rules = wide;
    rules.excludes[2] = 1 << 5;
    rules.excludes[5] = 1 << 2;
    start(&f, rules);
    f.alone[2] = 0.9;
    f.alone[5] = 0.8;
    f.alone[7] = 0.9;
    seed(&f);
    assert_int_equal(po_chooser_run(f.c), PO_OK);
    assert_int_equal(po_chooser_best(f.c, 0)->choices, 1 << 5 | 1 << 7);
    for (uint32_t i = 0; i < 1 << 8; i++)
        assert_false(f.asked[0][i] && (i & 1 << 2) && (i & 1 << 5));
    end(&f);
}

/* The same prices lead the same way; other states may be added later on. */
static void same_again(void **state) {
    (void)state;
    fake f[2];
    for (int i = 0; i < 2; i++) {
        start(&f[i], wide);
        for (uint32_t k = 0; k < 8; k++)
            f[i].alone[k] = 0.93 + 0.02 * ((k * 5) % 8);
        f[i].pair[3][1] = 1.4;
        f[i].pair[7][2] = 0.8;
        seed(&f[i]);
        assert_int_equal(po_chooser_run(f[i].c), PO_OK);
    }
    assert_int_equal(f[0].c->n, f[1].c->n);
    for (uint32_t i = 0; i < f[0].c->n; i++) {
        assert_int_equal(f[0].c->states[i].choices, f[1].c->states[i].choices);
        assert_true(f[0].c->states[i].cost == f[1].c->states[i].cost);
    }
    uint32_t asked = f[0].n_asked;
    assert_null(po_chooser_add(f[0].c, 0, 0));
    assert_int_equal(po_chooser_run(f[0].c), PO_OK);
    once_each(&f[0]);
    assert_true(f[0].n_asked <= asked + 60);
    double last = 0;
    for (uint32_t i = 0; po_chooser_best(f[0].c, i); i++) {
        assert_true(po_chooser_best(f[0].c, i)->cost >= last);
        last = po_chooser_best(f[0].c, i)->cost;
    }
    end(&f[0]);
    end(&f[1]);
}

/* Prices that are lies: each state better than all before it, or none at all. It ends all the same.
 */
static void lies(void **state) {
    (void)state;
    fake f;
    start(&f, wide);
    f.lies = 1;
    seed(&f);
    assert_int_equal(po_chooser_run(f.c), PO_OK);
    assert_int_equal(f.n_asked, 60);
    once_each(&f);
    end(&f);
    const double bad[] = {0, -1, HUGE_VAL, NAN};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        start(&f, wide);
        f.base[0] = bad[i];
        seed(&f);
        assert_int_equal(po_chooser_run(f.c), PO_OK);
        assert_int_equal(f.n_asked, 9);
        assert_null(po_chooser_best(f.c, 0));
        end(&f);
    }
    /* Some cannot be made. */
    start(&f, wide);
    f.alone[0] = f.alone[1] = f.alone[2] = 0.8;
    f.none = 3;
    seed(&f);
    assert_int_equal(po_chooser_run(f.c), PO_OK);
    assert_int_not_equal(po_chooser_best(f.c, 0)->choices & 3, 3);
    assert_true(po_chooser_best(f.c, 0)->choices & 4);
    end(&f);
}

/* Time that is up, a call that is cancelled. */
static void stops(void **state) {
    (void)state;
    fake f;
    start(&f, wide);
    f.lies = 1;
    f.stop_after = 2;
    seed(&f);
    assert_int_equal(po_chooser_run(f.c), PO_OK);
    assert_int_equal(f.n_batches, 2);
    end(&f);
    atomic_bool cancel = true;
    start(&f, wide);
    f.lies = 1;
    f.ctx.cancel = &cancel;
    seed(&f);
    assert_int_equal(po_chooser_run(f.c), PO_CANCELLED);
    assert_int_equal(f.n_batches, 1);
    end(&f);
    /* There is room for so many, whoever adds them. */
    start(&f, wide);
    for (uint32_t i = 0; i < 200; i++)
        assert_int_equal(po_chooser_add(f.c, 0, i) != NULL, i < PO_CHOOSER_STATES);
    assert_int_equal(po_chooser_run(f.c), PO_OK);
    assert_int_equal(f.n_asked, PO_CHOOSER_STATES);
    end(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_pairs), cmocka_unit_test(few_readings),
        cmocka_unit_test(other_bases), cmocka_unit_test(excluded),
        cmocka_unit_test(same_again),  cmocka_unit_test(lies),
        cmocka_unit_test(stops),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

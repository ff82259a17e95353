/* Labelled normal forms against what programs compute over finite fields. */
#include "superopt/search/form.h"

#include "mugraph/field.h"
#include "unit.h"

enum { CLASSES = 3, LEAVES = 4, STEPS = 12, MOST = LEAVES + STEPS };
static const int64_t extents[CLASSES] = {2, 3, 2};
static const uint64_t leaf_labels[LEAVES] = {1, 3, 6, 5};

/* A program of steps, each a tensor with its form. */
typedef struct program {
    po_mu *mu;
    uint32_t label[CLASSES], tensor[MOST], form[MOST], exact[MOST], n;
    uint64_t labels[MOST];
    bool exp[MOST]; /* an exp, or what it was put through, is in it */
} program;

static uint32_t classes_of(uint64_t labels, uint32_t *classes) {
    uint32_t n = 0;
    for (uint32_t c = 0; c < CLASSES; c++)
        if (labels >> c & 1)
            classes[n++] = c;
    return n;
}

static uint32_t add_tensor(program *p, po_mu_place place, uint64_t labels) {
    uint32_t classes[CLASSES], n = classes_of(labels, classes);
    int64_t dims[CLASSES];
    for (uint32_t i = 0; i < n; i++)
        dims[i] = extents[classes[i]];
    return po_mu_add_tensor(p->mu, "t", place, n, dims);
}

static po_mu_access at(program *p, uint32_t i) {
    uint32_t classes[CLASSES], n = classes_of(p->labels[i], classes), labels[CLASSES];
    for (uint32_t k = 0; k < n; k++)
        labels[k] = p->label[classes[k]];
    return po_mu_access_by(p->mu, p->tensor[i], labels);
}

enum { SUM = PO_MU_FUNCTIONS, MAXIMUM };

/* The value is written by its own step. */
static void add_step(program *p, po_forms *forms, po_forms *exact, uint32_t how, uint32_t a,
                     uint32_t b, uint32_t class) {
    bool reduces = how == SUM || how == MAXIMUM;
    uint32_t i = p->n, arity = reduces ? 1 : po_mu_arity((po_mu_function)how);
    uint32_t x[2] = {p->form[a], p->form[b]}, y[2] = {p->exact[a], p->exact[b]};
    if (how == SUM) {
        p->form[i] = po_form_sum(forms, x[0], class);
        p->exact[i] = po_form_sum(exact, y[0], class);
    } else if (how == MAXIMUM) {
        p->form[i] = po_form_maximum(forms, x[0], class);
        p->exact[i] = po_form_maximum(exact, y[0], class);
    } else {
        p->form[i] = po_form_apply(forms, (po_mu_function)how, x);
        p->exact[i] = po_form_apply(exact, (po_mu_function)how, y);
    }
    p->labels[i] = p->labels[a] | (arity > 1 ? p->labels[b] : 0);
    if (reduces)
        p->labels[i] &= ~((uint64_t)1 << class);
    p->exp[i] = p->exp[a] || (arity > 1 && p->exp[b]) || how == PO_MU_EXP;
    p->tensor[i] = add_tensor(p, PO_MU_DEVICE, p->labels[i]);
    uint32_t step = po_mu_add_step(p->mu, "s");
    uint32_t s = po_mu_add_statement(p->mu, step,
                                     how == SUM       ? PO_MU_ADD
                                     : how == MAXIMUM ? PO_MU_MAXIMUM
                                                      : PO_MU_SET);
    p->mu->nodes[s].statement.fresh = reduces;
    p->mu->nodes[s].statement.out = at(p, i);
    uint32_t first =
        po_mu_item_of(p->mu, s, PO_MU_OPERAND, po_mu_operand(p->mu, s, at(p, a)), 0, 0);
    if (arity > 1) {
        uint32_t second =
            po_mu_item_of(p->mu, s, PO_MU_OPERAND, po_mu_operand(p->mu, s, at(p, b)), 0, 0);
        po_mu_item_of(p->mu, s, (po_mu_function)how, first, second, 0);
    } else if (!reduces) {
        po_mu_item_of(p->mu, s, (po_mu_function)how, first, 0, 0);
    }
    p->n++;
}

static uint32_t pick(uint64_t seed, uint32_t i, uint32_t k, uint32_t n) {
    return (uint32_t)(po_random_u64(seed, i, k) % n);
}

static void grow(program *p, po_forms *forms, po_forms *exact, uint64_t seed, bool divides) {
    static const uint32_t plain[] = {PO_MU_TIMES, PO_MU_PLUS,  PO_MU_MINUS, SUM,
                                     SUM,         PO_MU_TIMES, PO_MU_EXP};
    static const uint32_t all[] = {PO_MU_TIMES, PO_MU_PLUS, SUM,       PO_MU_OVER, PO_MU_SQRT, SUM,
                                   PO_MU_TIMES, MAXIMUM,    PO_MU_EXP, PO_MU_OVER, PO_MU_MINUS};
    for (uint32_t i = 0; p->n < MOST && i < 200; i++) {
        uint32_t how = divides ? all[pick(seed, i, 0, sizeof all / sizeof *all)]
                               : plain[pick(seed, i, 0, sizeof plain / sizeof *plain)];
        uint32_t a = pick(seed, i, 1, p->n), b = pick(seed, i, 2, p->n);
        uint32_t class = pick(seed, i, 3, CLASSES);
        if ((how == SUM || how == MAXIMUM) && !(p->labels[a] >> class & 1))
            continue;
        if (how == PO_MU_EXP && p->exp[a])
            continue;
        if (po_form_size(forms, p->form[a]) > 9 || po_form_size(forms, p->form[b]) > 9 ||
            (!divides && how == PO_MU_TIMES && (p->exp[a] || p->exp[b]) && p->exp[a] != p->exp[b]))
            continue;
        add_step(p, forms, exact, how, a, b, class);
        if (p->form[p->n - 1] == PO_NONE || p->exact[p->n - 1] == PO_NONE) {
            p->n--;
            return;
        }
    }
}

/* Values of all tensors: each is copied to an output. */
static bool evaluate(po_ctx *ctx, po_arena *arena, program *p, uint64_t seed,
                     po_mu_residue **values) {
    const po_mu_residue **in = PO_NEW_N(arena, const po_mu_residue *, LEAVES);
    for (uint32_t i = 0; i < p->n; i++) {
        int64_t count = 1;
        for (uint32_t c = 0; c < CLASSES; c++)
            count *= p->labels[i] >> c & 1 ? extents[c] : 1;
        po_mu_residue *random = PO_NEW_N(arena, po_mu_residue, count);
        values[i] = PO_NEW_N(arena, po_mu_residue, count);
        for (int64_t k = 0; k < count; k++)
            random[k] = po_mu_residue_random(seed, i, (uint64_t)k);
        if (i < LEAVES)
            in[i] = random;
    }
    return po_mu_eval_mod(ctx, p->mu, in, NULL, values, seed) == PO_OK;
}

static void start(program *p, po_arena *arena, po_forms *forms, po_forms *exact) {
    static const char *const names[] = {"a", "b", "c"};
    *p = (program){.mu = po_mu_create(arena, "p"), .n = LEAVES};
    for (uint32_t c = 0; c < CLASSES; c++)
        p->label[c] = po_mu_add_label(p->mu, names[c], extents[c]);
    for (uint32_t i = 0; i < LEAVES; i++) {
        uint32_t classes[CLASSES], n = classes_of(leaf_labels[i], classes);
        p->labels[i] = leaf_labels[i];
        p->form[i] = po_form_leaf(forms, i, n, classes);
        p->exact[i] = po_form_leaf(exact, i, n, classes);
        p->tensor[i] = add_tensor(p, PO_MU_INPUT, p->labels[i]);
        p->mu->tensors[p->tensor[i]].number = i;
    }
}

static void copy_out(program *p) {
    for (uint32_t i = 0; i < p->n; i++) {
        uint32_t out = add_tensor(p, PO_MU_OUTPUT, p->labels[i]), from = p->tensor[i];
        p->mu->tensors[out].number = i;
        uint32_t s = po_mu_add_statement(p->mu, po_mu_add_step(p->mu, "out"), PO_MU_SET);
        po_mu_access in = at(p, i);
        p->tensor[i] = out;
        p->mu->nodes[s].statement.out = at(p, i);
        p->tensor[i] = from;
        po_mu_item_of(p->mu, s, PO_MU_OPERAND, po_mu_operand(p->mu, s, in), 0, 0);
    }
}

typedef struct counts {
    uint32_t equal, merged, unequal, programs;
} counts;

static void compare(po_ctx *ctx, uint64_t seed, bool divides, counts *n) {
    po_arena *arena = po_arena_create(ctx);
    po_forms *forms = po_forms_create(arena, false, CLASSES, extents);
    po_forms *exact = po_forms_create(arena, true, CLASSES, extents);
    program p;
    po_mu_residue *values[MOST];
    start(&p, arena, forms, exact);
    grow(&p, forms, exact, seed, divides);
    copy_out(&p);
    bool run = evaluate(ctx, arena, &p, seed, values);
    po_ctx_clear(ctx);
    n->programs += run;
    for (uint32_t i = 0; i < p.n && run; i++)
        for (uint32_t k = 0; k < i; k++) {
            if (p.labels[i] != p.labels[k])
                continue;
            int64_t count = 1;
            for (uint32_t c = 0; c < CLASSES; c++)
                count *= p.labels[i] >> c & 1 ? extents[c] : 1;
            bool same = true;
            for (int64_t e = 0; e < count; e++)
                same &= po_mu_residue_equal(values[i][e], values[k][e]);
            n->equal += p.exact[i] == p.exact[k];
            n->merged += p.exact[i] == p.exact[k] && p.form[i] != p.form[k];
            n->unequal += p.exact[i] != p.exact[k];
            bool wrong = !same && (p.exact[i] == p.exact[k] || p.form[i] == p.form[k]);
            if (wrong || (same && !divides && p.exact[i] != p.exact[k])) {
                po_text text;
                po_text_init(&text, arena);
                po_form_print(exact, p.exact[i], &text);
                po_text_puts(&text, " | ");
                po_form_print(exact, p.exact[k], &text);
                po_text_puts(&text, "\n");
                po_mu_print(&text, p.mu);
                fail_msg("seed %d, tensors %u and %u: %s values, forms %s", (int)seed, i, k,
                         same ? "equal" : "different", text.data);
            }
        }
    po_arena_free(arena);
}

/* Without division a form is the function: equal forms if and only if equal values. With it and
 * with maxima and roots equal forms have equal values. */
static void random_programs(void **state) {
    (void)state;
    po_ctx ctx;
    po_ctx_init(&ctx);
    counts plain = {0}, all = {0};
    for (uint64_t seed = 1; seed <= 600; seed++) {
        compare(&ctx, seed, false, &plain);
        compare(&ctx, 10000 + seed, true, &all);
    }
    assert_true(plain.equal > 300 && plain.unequal > 5000 && all.equal > 100 && all.merged > 0);
    assert_true(plain.programs > 500 && all.programs > 300);
}

/* --- by hand --- */

enum { I, J, K, N };
static const int64_t sizes[N] = {4, 5, 6};

typedef struct leaves {
    po_forms *f;
    uint32_t q, k, v, one; /* Q[i, k], K[k, j], V[j], and a number */
} leaves;

static leaves start_leaves(po_arena *arena, bool exact) {
    po_forms *f = po_forms_create(arena, exact, N, sizes);
    return (leaves){f, po_form_leaf(f, 0, 2, (uint32_t[]){I, K}),
                    po_form_leaf(f, 1, 2, (uint32_t[]){K, J}),
                    po_form_leaf(f, 2, 1, (uint32_t[]){J}), po_form_number(f, 1)};
}

static uint32_t exp_of(po_forms *f, uint32_t a) {
    return po_form_apply(f, PO_MU_EXP, &a);
}

static uint32_t root_of(po_forms *f, uint32_t a) {
    return po_form_apply(f, PO_MU_SQRT, &a);
}

/* exp(s - m) summed against V and divided by its sum: the shift cancels, whatever it is, where it
 * is the same above and below. */
static void shifts(void **state) {
    (void)state;
    po_ctx ctx;
    po_ctx_init(&ctx);
    po_arena *arena = po_arena_create(&ctx);
    for (int exact = 0; exact < 2; exact++) {
        leaves l = start_leaves(arena, exact);
        po_forms *f = l.f;
        uint32_t s = po_form_sum(f, po_form_multiply(f, l.q, l.k), K);
        uint32_t m = po_form_maximum(f, s, J), other = po_form_sum(f, l.q, K);
        uint32_t plain =
            po_form_divide(f, po_form_sum(f, po_form_multiply(f, exp_of(f, s), l.v), J),
                           po_form_sum(f, exp_of(f, s), J));
        uint32_t p = exp_of(f, po_form_subtract(f, s, m));
        uint32_t up = po_form_sum(f, po_form_multiply(f, p, l.v), J);
        uint32_t shifted = po_form_divide(f, up, po_form_sum(f, p, J));
        assert_true((plain == shifted) == exact);
        /* Dividing before the sum over j is the same in either way of working. */
        uint32_t early =
            po_form_sum(f, po_form_multiply(f, po_form_divide(f, p, po_form_sum(f, p, J)), l.v), J);
        assert_true(early == shifted);
        uint32_t p2 = exp_of(f, po_form_subtract(f, s, other));
        assert_true(po_form_divide(f, up, po_form_sum(f, p2, J)) != shifted);
        /* A maximum over the wrong label does not cancel: it has the label that is summed. */
        uint32_t p3 = exp_of(f, po_form_subtract(f, s, po_form_maximum(f, s, I)));
        uint32_t wrong = po_form_divide(f, po_form_sum(f, po_form_multiply(f, p3, l.v), J),
                                        po_form_sum(f, p3, J));
        assert_true(wrong != shifted && wrong != plain);
        assert_true(po_form_divide(f, up, po_form_sum(f, exp_of(f, s), J)) != shifted);
    }
    po_arena_free(arena);
}

/* The wrong QKNorm: rowsum(norm(Q_i)) * K, with no contraction, of the right shape all the same. */
static void wrong_qknorm(void **state) {
    (void)state;
    po_ctx ctx;
    po_ctx_init(&ctx);
    po_arena *arena = po_arena_create(&ctx);
    leaves l = start_leaves(arena, true);
    po_forms *f = l.f;
    uint32_t square = po_form_sum(f, po_form_multiply(f, l.q, l.q), K);
    uint32_t norm = po_form_divide(f, l.q, root_of(f, square));
    uint32_t right = po_form_sum(f, po_form_multiply(f, norm, l.k), K);
    uint32_t wrong = po_form_multiply(f, po_form_sum(f, norm, K), l.k);
    assert_true(right != wrong && right != po_form_sum(f, wrong, K));
    assert_true(po_form_divide(f, po_form_sum(f, po_form_multiply(f, l.q, l.k), K),
                               root_of(f, square)) == right);
    po_closure c;
    bool full;
    po_form_close(f, arena, right, 1000, &c, &full);
    assert_false(full);
    bool has_wrong = false, has_late = false, has_square = false;
    for (uint32_t i = 0; i < c.n; i++) {
        has_wrong |= c.forms[i] == po_form_sum(f, norm, K) || c.forms[i] == wrong;
        has_late |= c.forms[i] == po_form_sum(f, po_form_multiply(f, l.q, l.k), K);
        has_square |= c.forms[i] == square;
    }
    assert_true(has_late && has_square && !has_wrong);
    po_arena_free(arena);
}

/* A bound label is not a free one of the same name. */
static void capture(void **state) {
    (void)state;
    po_ctx ctx;
    po_ctx_init(&ctx);
    po_arena *arena = po_arena_create(&ctx);
    leaves l = start_leaves(arena, true);
    po_forms *f = l.f;
    uint32_t total = po_form_sum(f, l.q, K), both = po_form_multiply(f, total, l.q);
    uint32_t squares = po_form_sum(f, po_form_multiply(f, l.q, l.q), K);
    assert_true(po_form_sum(f, both, K) == po_form_multiply(f, total, total));
    assert_true(po_form_sum(f, both, K) != squares);
    /* Sums that have nothing to add up, and sums of sums in either order. */
    assert_true(po_form_sum(f, total, K) == po_form_multiply(f, total, po_form_number(f, 6)));
    uint32_t x = po_form_multiply(f, l.q, l.k);
    assert_true(po_form_sum(f, po_form_sum(f, x, K), I) == po_form_sum(f, po_form_sum(f, x, I), K));
    uint32_t e = exp_of(f, total), root = root_of(f, po_form_multiply(f, total, e));
    assert_true(po_form_sum(f, po_form_multiply(f, root, l.q), K) ==
                po_form_multiply(f, root, total));
    po_arena_free(arena);
}

/* Values of forms are values of what the forms say: sums, differences, products and quotients have
 * those of their operands, whatever names labels got on the way. */
static void values_of_forms(void **state) {
    (void)state;
    static const po_mu_function functions[] = {PO_MU_PLUS, PO_MU_MINUS, PO_MU_TIMES, PO_MU_OVER};
    const po_mu_field q = PO_MU_FIELD_P;
    po_ctx ctx;
    po_ctx_init(&ctx);
    uint32_t told = 0, made = 0, apart = 0, pairs = 0;
    for (uint64_t seed = 1; seed <= 300; seed++) {
        po_arena *arena = po_arena_create(&ctx);
        po_forms *forms = po_forms_create(arena, false, CLASSES, extents);
        po_form_values *values = po_form_values_create(arena, forms);
        program p;
        po_forms *exact = po_forms_create(arena, true, CLASSES, extents);
        start(&p, arena, forms, exact);
        grow(&p, forms, exact, seed, true);
        for (uint32_t i = 0; i < p.n; i++)
            for (uint32_t k = 0; k < p.n; k++) {
                uint64_t x, y, z;
                assert_true(po_form_value(values, p.form[i], &x));
                assert_true(po_form_value(values, p.form[k], &y));
                pairs += p.form[i] != p.form[k];
                apart += x != y;
                assert_true(p.form[i] != p.form[k] || x == y);
                for (uint32_t n = 0; n < 4; n++) {
                    uint32_t args[2] = {p.form[i], p.form[k]};
                    uint32_t form = po_form_apply(forms, functions[n], args);
                    uint64_t expected = n == 0   ? po_mu_field_add(q, x, y)
                                        : n == 1 ? po_mu_field_sub(q, x, y)
                                        : n == 2 ? po_mu_field_mul(q, x, y)
                                                 : po_mu_field_mul(q, x, po_mu_field_inverse(q, y));
                    made++;
                    if (form == PO_NONE)
                        continue;
                    told++;
                    assert_true(po_form_value(values, form, &z));
                    if (z != expected)
                        fail_msg("seed %d, tensors %u and %u: the value is another", (int)seed, i,
                                 k);
                }
            }
        po_arena_free(arena);
    }
    assert_true(told > 50000 && 10 * told > 9 * made && 100 * apart > 99 * pairs);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_programs), cmocka_unit_test(values_of_forms),
        cmocka_unit_test(shifts),          cmocka_unit_test(wrong_qknorm),
        cmocka_unit_test(capture),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

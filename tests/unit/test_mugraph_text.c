/* The text of muGraphs: what is printed parses back to the same, and bad texts are refused. */
#include "mugraph/mugraph.h"
#include "unit.h"

#include <math.h>
#include <stdio.h>

/* --- the text of the docs --- */

static const char conv[] =
    "mugraph conv {\n"
    "  label y 56\n"
    "  label x 56\n"
    "  label c 64\n"
    "  label r 3\n"
    "  label s 3\n"
    "  label b 1\n"
    "  label k 64\n"
    "  tensor X input 0 [64, 56, 56]\n"
    "  tensor W weight 0 [1, 64, 3, 3, 64]\n"
    "  tensor bias weight 1 [64]\n"
    "  tensor A device [56, 56, 64] before [1, 1, 0] after [1, 1, 0] stride [3712, 64, 1]\n"
    "  tensor Y output 0 [64, 56, 56]\n"
    "  step \"channels last\" {\n"
    "    grid y by 8 {\n"
    "      A[y, x, c] = X[c, y, x]\n"
    "    }\n"
    "  }\n"
    "  step \"conv 3x3\" {\n"
    "    grid y by 4 {\n"
    "      register P [56, 56, 64]\n"
    "      P[y, x, 64*b+k] += A[y+r-1, x+s-1, c] * W[b, c, r, s, k] fresh tile x*7 k*4 order b y "
    "r s c\n"
    "      Y[64*b+k, y, x] = max(P[y, x, 64*b+k] + bias[64*b+k], 0) fused\n"
    "    }\n"
    "  }\n"
    "}\n";

/* Types: kept by the text, and part of what makes muGraphs equal; the traffic goes by them. */
static void types(void **state) {
    (void)state;
    static const char format[] = "mugraph cast {\n"
                                 "  label i 64\n"
                                 "  tensor X input 0 [64]%s\n"
                                 "  tensor Y output 0 [64]%s\n"
                                 "  step \"cast\" {\n"
                                 "    Y[i] = X[i]\n"
                                 "  }\n"
                                 "}\n";
    static const char *const types[][2] = {{"", ""}, {" f16", ""}, {" f16", " bf16"}};
    static const double bytes[] = {512, 384, 256};
    po_ctx ctx;
    po_ctx_init(&ctx);
    po_arena *arena = po_arena_create(&ctx);
    po_mu *mu[3];
    for (uint32_t i = 0; i < 3; i++) {
        char *source = po_arena_printf(arena, format, types[i][0], types[i][1]);
        po_text text;
        po_mu_cost cost;
        assert_int_equal(po_mu_parse(&ctx, arena, source, &mu[i]), PO_OK);
        po_text_init(&text, arena);
        po_mu_print(&text, mu[i]);
        assert_string_equal(text.data, source);
        po_mu_cost_of(mu[i], &cost);
        assert_true(cost.bytes == bytes[i]);
        for (uint32_t k = 0; k < i; k++) {
            assert_false(po_mu_equal(mu[i], mu[k]));
            assert_false(po_hash_equal(po_mu_hash(mu[i]), po_mu_hash(mu[k])));
        }
    }
    po_arena_free(arena);
}

static void docs_example(void **state) {
    (void)state;
    po_ctx ctx;
    po_ctx_init(&ctx);
    po_arena *arena = po_arena_create(&ctx);
    po_mu *mu, *again;
    po_text text;
    if (po_mu_parse(&ctx, arena, conv, &mu) != PO_OK)
        fail_msg("%s", ctx.error.message);
    assert_int_equal(mu->n_labels, 7);
    assert_int_equal(mu->n_tensors, 6);
    const po_mu_tensor *a = &mu->tensors[3], *p = &mu->tensors[5];
    assert_string_equal(a->name, "A");
    assert_int_equal(a->floats, 58 * 58 * 64);
    assert_int_equal(a->origin, 58 * 64 + 64);
    assert_string_equal(p->name, "P");
    assert_int_equal(p->floats, 4 * 56 * 64);
    int64_t least, count;
    assert_true(po_mu_held(mu, 5, 0, &least, &count));
    assert_int_equal(least, 0);
    assert_int_equal(count, 4);
    const po_mu_statement *s = NULL;
    uint32_t node = PO_NONE;
    while ((node = po_mu_next(mu, node)) != PO_NONE)
        if (mu->nodes[node].kind == PO_MU_STATEMENT && mu->nodes[node].statement.fresh)
            break;
    s = &mu->nodes[node].statement;
    assert_int_equal(s->row, 1);
    assert_int_equal(s->rows, 7);
    assert_int_equal(s->lane, 6);
    assert_int_equal(s->vectors, 4);
    assert_int_equal(s->n_order, 5);
    assert_int_equal(po_mu_edge_of(mu, node, 0), PO_MU_RING);
    assert_int_equal(po_mu_edge_of(mu, node, 1), PO_MU_WITHIN);
    po_text_init(&text, arena);
    po_mu_print(&text, mu);
    /* The strides are those that the ring asks for, so that they are not printed. */
    char *want = po_arena_strdup(arena, conv), *stride = strstr(want, " stride");
    memmove(stride, strchr(stride, '\n'), strlen(strchr(stride, '\n')) + 1);
    assert_string_equal(text.data, want);
    assert_int_equal(po_mu_parse(&ctx, arena, text.data, &again), PO_OK);
    assert_true(po_mu_equal(mu, again));
    assert_true(po_hash_equal(po_mu_hash(mu), po_mu_hash(again)));
    po_arena_free(arena);
}

/* --- random ones --- */

typedef struct maker {
    uint64_t seed, next;
    po_mu *mu;
    bool used[8]; /* by tensor */
} maker;

static int64_t draw(maker *m, int64_t from, int64_t to) {
    return from + (int64_t)(po_random_u64(m->seed, 7, m->next++) % (uint64_t)(to - from + 1));
}

/* Of a tensor that lives around the node. */
static po_mu_access random_access(maker *m, uint32_t node) {
    uint32_t tensor;
    do
        tensor = (uint32_t)draw(m, 0, m->mu->n_tensors - 1);
    while (!po_mu_inside(m->mu, node, m->mu->tensors[tensor].scope));
    m->used[tensor] = true;
    po_mu_access access = po_mu_access_of(m->mu, tensor);
    for (uint32_t x = 0; x < m->mu->tensors[tensor].rank; x++)
        for (int64_t k = draw(m, 0, 3); k > 0; k--)
            po_mu_at(m->mu, &access, x, draw(m, 0, 2) ? 1 : draw(m, -70, 70),
                     draw(m, 0, 4) ? (uint32_t)draw(m, 0, m->mu->n_labels - 1) : PO_NONE);
    return access;
}

static uint32_t random_label(maker *m) {
    return (uint32_t)draw(m, 0, m->mu->n_labels - 1);
}

static void random_statement(maker *m, uint32_t parent) {
    static const double constants[] = {0,     1,    -1,       0.5,       1e-5,
                                       -3.25, 1e30, INFINITY, -INFINITY, 1.0 / 3};
    uint32_t n = po_mu_add_statement(m->mu, parent, (po_mu_combine)draw(m, 0, 2));
    m->mu->nodes[n].statement.out = random_access(m, n);
    uint32_t items = 0;
    /* Every item is used by a later one. */
    for (int64_t k = draw(m, 1, 8); k > 0; k--) {
        uint32_t last = items - 1;
        if (draw(m, 0, 2) == 0)
            items = 1 + po_mu_constant(m->mu, n, constants[draw(m, 0, 9)]);
        else
            items = 1 + po_mu_item_of(m->mu, n, PO_MU_OPERAND,
                                      po_mu_operand(m->mu, n, random_access(m, n)), 0, 0);
        po_mu_function f = (po_mu_function)draw(m, 2, PO_MU_FUNCTIONS - 1);
        while (last != PO_NONE && po_mu_arity(f) < 2)
            f = (po_mu_function)draw(m, 2, PO_MU_FUNCTIONS - 1);
        if (last != PO_NONE || po_mu_arity(f) == 1)
            items =
                1 + po_mu_item_of(m->mu, n, f, items - 1, last, (uint32_t)draw(m, 0, items - 1));
    }
    po_mu_statement *s = &m->mu->nodes[n].statement;
    s->fresh = draw(m, 0, 1);
    s->fused = draw(m, 0, 3) == 0;
    if (draw(m, 0, 1)) {
        s->lane = random_label(m);
        s->vectors = (uint32_t)draw(m, 1, 4);
    }
    if (draw(m, 0, 1)) {
        s->row = random_label(m);
        s->rows = (uint32_t)draw(m, 1, 14);
    }
    if (draw(m, 0, 1)) {
        s->n_order = (uint32_t)draw(m, 1, 4);
        uint32_t *order = PO_NEW_N(m->mu->arena, uint32_t, s->n_order);
        for (uint32_t i = 0; i < s->n_order; i++)
            order[i] = random_label(m);
        s->order = order;
    }
}

static void random_block(maker *m, uint32_t parent, uint32_t depth) {
    for (int64_t k = draw(m, 1, 3); k > 0; k--) {
        if (depth == 4 || draw(m, 0, 1)) {
            random_statement(m, parent);
            continue;
        }
        uint32_t loop = po_mu_add_loop(m->mu, parent, (po_mu_loop_kind)draw(m, 0, 2),
                                       random_label(m), draw(m, 1, 20));
        /* Tensors that live here get their scope before they are used. */
        for (uint32_t i = 0; i < m->mu->n_tensors; i++)
            if (m->mu->tensors[i].place >= PO_MU_SHARED && m->mu->tensors[i].scope == PO_NONE &&
                !m->used[i] && i > 0 && draw(m, 0, 4) == 0)
                m->mu->tensors[i].scope = loop;
        random_block(m, loop, depth + 1);
    }
}

static po_mu *random_mu(maker *m, po_arena *arena) {
    static const char *const names[] = {"X",    "a b",   "conv/out.1", "order", "x",
                                        "grid", "Y\"\n", "max",        "e1",    ""};
    po_mu *mu = m->mu = po_mu_create(arena, draw(m, 0, 1) ? "m" : "odd name");
    for (int64_t k = draw(m, 1, 6); k > 0; k--)
        po_mu_add_label(mu,
                        draw(m, 0, 1)   ? "x"
                        : draw(m, 0, 1) ? "order"
                                        : "Row-3",
                        draw(m, 1, 99));
    for (int64_t k = draw(m, 1, 6); k > 0; k--) {
        int64_t dims[PO_MU_MAX_RANK], count = 1;
        uint32_t rank = (uint32_t)draw(m, 0, 3);
        for (uint32_t x = 0; x < rank; x++)
            count *= dims[x] = draw(m, 1, 4);
        /* One at least is seen everywhere. */
        po_mu_place place = (po_mu_place)draw(m, 0, mu->n_tensors ? PO_MU_REGISTER : PO_MU_DEVICE);
        uint32_t id = po_mu_add_tensor(mu, names[draw(m, 0, 9)], place, rank, dims);
        po_mu_tensor *t = &mu->tensors[id];
        t->number = place <= PO_MU_WEIGHT ? (uint32_t)draw(m, 0, 3) : 0;
        if (place == PO_MU_TABLE) {
            po_rational *table = PO_NEW_N(arena, po_rational, count);
            for (int64_t i = 0; i < count; i++)
                assert_true(po_rational_make(draw(m, -9, 9), draw(m, 1, 9), &table[i]));
            t->table = table;
        }
        t->fill = draw(m, 0, 2) ? 0 : -INFINITY;
        for (uint32_t x = 0; x < rank; x++) {
            t->before[x] = draw(m, 0, 2) ? 0 : draw(m, 1, 3);
            t->after[x] = draw(m, 0, 2) ? 0 : draw(m, 1, 3);
        }
    }
    for (int64_t k = draw(m, 1, 2); k > 0; k--)
        random_block(m, po_mu_add_step(mu, draw(m, 0, 1) ? "step \"one\"" : ""), 0);
    for (uint32_t i = 0; i < mu->n_tensors; i++)
        po_mu_layout(mu, i, draw(m, 0, 2) ? 1 : 16, draw(m, 0, 2) ? 0 : 16);
    return mu;
}

static void random_ones(void **state) {
    (void)state;
    po_ctx ctx;
    po_ctx_init(&ctx);
    uint32_t own = 0, named = 0;
    po_hash last = {0, 0};
    for (uint64_t seed = 0; seed < 2000; seed++) {
        po_arena *arena = po_arena_create(&ctx);
        maker m = {.seed = seed};
        po_mu *mu = random_mu(&m, arena), *again;
        po_text first, second;
        po_text_init(&first, arena);
        po_mu_print(&first, mu);
        if (po_mu_parse(&ctx, arena, first.data, &again) != PO_OK)
            fail_msg("seed %d: %s\n%s", (int)seed, ctx.error.message, first.data);
        po_text_init(&second, arena);
        po_mu_print(&second, again);
        assert_string_equal(first.data, second.data);
        assert_true(po_mu_equal(mu, again));
        assert_true(po_hash_equal(po_mu_hash(mu), po_mu_hash(again)));
        assert_false(po_hash_equal(po_mu_hash(mu), last));
        last = po_mu_hash(mu);
        own += strstr(first.data, " stride ") != NULL;
        named += strstr(first.data, ":=") != NULL;
        /* Sizes by layout are those that the text gives. */
        for (uint32_t i = 0; i < mu->n_tensors; i++)
            for (uint32_t k = 0; k < again->n_tensors; k++)
                if (strcmp(mu->tensors[i].name, again->tensors[k].name) == 0) {
                    assert_int_equal(mu->tensors[i].floats, again->tensors[k].floats);
                    assert_int_equal(mu->tensors[i].origin, again->tensors[k].origin);
                }
        po_arena_free(arena);
    }
    assert_true(own > 100 && named > 100);
}

/* --- what equality sees --- */

static void equality(void **state) {
    (void)state;
    static const struct {
        const char *from, *to;
        bool equal;
    } changes[] = {
        {"label y 56", "label z 56", false}, /* no such label any more: does not parse */
        {"mugraph conv", "mugraph other", true},
        {"\"conv 3x3\"", "\"another\"", true},
        {"label k 64", "label k 63", false},
        {"y+r-1", "y+r", false},
        {"y+r-1", "r+y-1", true},
        {"c, r, s, k] fresh", "c, r, s, k]", false},
        {"A[y+r-1, x+s-1, c] * W[b, c, r, s, k]", "(A[y+r-1, x+s-1, c] * W[b, c, r, s, k])", true},
        {"A[y+r-1, x+s-1, c] * W[b, c, r, s, k]", "W[b, c, r, s, k] * A[y+r-1, x+s-1, c]", false},
        {"x*7", "x*6", false},
        {"by 8", "by 4", false},
        {" fused", "", false},
        {"order b y r s c", "order b y s r c", false},
        {"] + bias[64*b+k], 0)", "] + bias[64*b+k], 0.5)", false},
        {"max(P", "min(P", false},
        {"+=", "max=", false},
        {" before [1, 1, 0]", " before [1, 2, 0]", false},
        {"grid y by 8", "for y by 8", false},
        {"register P", "shared P", false},
        {"weight 1", "weight 2", false},
    };
    po_ctx ctx;
    po_ctx_init(&ctx);
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        po_arena *arena = po_arena_create(&ctx);
        po_mu *a, *b;
        assert_int_equal(po_mu_parse(&ctx, arena, conv, &a), PO_OK);
        const char *at = strstr(conv, changes[i].from);
        assert_non_null(at);
        const char *text = po_arena_printf(arena, "%.*s%s%s", (int)(at - conv), conv, changes[i].to,
                                           at + strlen(changes[i].from));
        bool equal = po_mu_parse(&ctx, arena, text, &b) == PO_OK && po_mu_equal(a, b);
        if (equal != changes[i].equal)
            fail_msg("'%s' for '%s'", changes[i].to, changes[i].from);
        if (equal)
            assert_true(po_hash_equal(po_mu_hash(a), po_mu_hash(b)));
        po_ctx_clear(&ctx);
        po_arena_free(arena);
    }
}

/* --- texts that are refused --- */

static void refused(void **state) {
    (void)state;
    static const struct {
        const char *text, *want;
    } cases[] = {
        {"", "expected 'mugraph'"},
        {"mugraph", "expected a name"},
        {"mugraph m", "expected '{'"},
        {"mugraph m {", "expected label, tensor, step"},
        {"mugraph m {} x", "text after the muGraph"},
        {"mugraph m {\n label i}", "line 2"},
        {"mugraph m { label i 0 }", "below 1"},
        {"mugraph m { label I 4 }", "expected a label"},
        {"mugraph m { label order 4 }", "cannot be a label"},
        {"mugraph m { label i 4 label i 4 }", "two labels 'i'"},
        {"mugraph m { label i 99999999999999999999 }", "too large"},
        {"mugraph m { tensor A input 0 [0] }", "below 1"},
        {"mugraph m { tensor A input 0 [1, 1, 1, 1, 1, 1, 1, 1, 1] }", "more than 8 axes"},
        {"mugraph m { tensor A input -1 [4] }", "below 0"},
        {"mugraph m { tensor A here [4] }", "expected input, output"},
        {"mugraph m { tensor A device [4] tensor A device [4] }", "two tensors 'A'"},
        {"mugraph m { tensor A device [4] before [1, 1] }", "2 numbers for 1 axes"},
        {"mugraph m { tensor A device [4] after [-1] }", "below 0"},
        {"mugraph m { tensor A device [4] fill nan }", "expected a number"},
        {"mugraph m { tensor T table [2] {1} }", "1 fractions for 2 elements"},
        {"mugraph m { tensor T table [2] {1, 2, 3} }", "3 fractions for 2 elements"},
        {"mugraph m { tensor T table [2] {1, 1/0} }", "no fraction"},
        {"mugraph m { tensor T table [9999, 9999] {1} }", "more than"},
        {"mugraph m { step s }", "expected '\"'"},
        {"mugraph m { step \"\\x00\" {} }", "NUL"},
        {"mugraph m { step \"s\" { grid i by 4 {} } }", "expected a label that was declared"},
        {"mugraph m { label i 4 step \"s\" { grid i {} } }", "expected 'by'"},
        {"mugraph m { label i 4 step \"s\" { for i by 0 {} } }", "below 1"},
        {"mugraph m { label i 4 step \"s\" { A[i] = 1 } }", "no tensor 'A'"},
        {"mugraph m { label i 4 tensor A device [4] step \"s\" { A[] = 1 } }", "expected a label"},
        {"mugraph m { label i 4 tensor A device [4] step \"s\" { A[i, i] = 1 } }", "has 1 axes"},
        {"mugraph m { label i 4 tensor A device [4] step \"s\" { A[j] = 1 } }", "expected a label"},
        {"mugraph m { label i 4 tensor A device [4] step \"s\" { A[i] 1 } }", "expected '='"},
        {"mugraph m { label i 4 tensor A device [4] step \"s\" { A[i] = } }", "expected a name"},
        {"mugraph m { label i 4 tensor A device [4] step \"s\" { A[i] = 1 + } }",
         "expected a name"},
        {"mugraph m { label i 4 tensor A device [4] step \"s\" { A[i] = (1 } }", "expected ')'"},
        {"mugraph m { label i 4 tensor A device [4] step \"s\" { A[i] = sin(1) } }",
         "no function 'sin'"},
        {"mugraph m { label i 4 tensor A device [4] step \"s\" { A[i] = const(1) } }",
         "no function 'const'"},
        {"mugraph m { label i 4 tensor A device [4] step \"s\" { A[i] = max(1) } }",
         "expected ','"},
        {"mugraph m { label i 4 tensor A device [4] step \"s\" { A[i] = exp(1, 2) } }",
         "expected ')'"},
        {"mugraph m { label i 4 tensor A device [4] step \"s\" { A[i] = t } }", "neither"},
        {"mugraph m { label i 4 tensor A device [4] step \"s\" { A[i] = (t := t + 1) } }",
         "neither"},
        {"mugraph m { label i 4 tensor A device [4] step \"s\" { A[i] = (t := 1) + (t := 2) } }",
         "two expressions 't'"},
        {"mugraph m { label i 4 tensor A device [4] step \"s\" { A[i] = 1e999 } }",
         "expected a number"},
        {"mugraph m { label i 4 tensor A device [4] step \"s\" { A[i] = 1 tile j*4 } }",
         "expected a label"},
        {"mugraph m { label i 4 tensor A device [4] step \"s\" { A[i] = 1 tile i } }",
         "expected '*'"},
        {"mugraph m { label i 4 tensor A device [4] step \"s\" { A[i] = 1 order } }",
         "expected a label"},
        {"mugraph m { label i 4 tensor A device [4] step \"s\" { A[9223372036854775807+1] = 1 } }",
         "too large"},
        {"mugraph m { label i 4 tensor A device [4] step \"s\" { A[9223372036854775807*i+i] = 1 } "
         "}",
         "too large"},
    };
    po_ctx ctx;
    po_ctx_init(&ctx);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        po_arena *arena = po_arena_create(&ctx);
        po_mu *mu;
        assert_int_equal(po_mu_parse(&ctx, arena, cases[i].text, &mu), PO_BAD_INPUT);
        if (!strstr(ctx.error.message, cases[i].want) || !strstr(ctx.error.message, "line "))
            fail_msg("'%s': '%s'", cases[i].text, ctx.error.message);
        po_ctx_clear(&ctx);
        po_arena_free(arena);
    }
}

/* Nesting and sizes that only a hostile text has. */
static void refused_deep(void **state) {
    (void)state;
    static const struct {
        const char *part, *want;
    } cases[] = {{"(", "nested deeper"},
                 {"-", "nested deeper"},
                 {"exp(", "nested deeper"},
                 {"1+", "more than 64 parts"},
                 {"for i by 1 {", "nested deeper"}};
    po_ctx ctx;
    po_ctx_init(&ctx);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        po_arena *arena = po_arena_create(&ctx);
        po_mu *mu;
        po_text text;
        po_text_init(&text, arena);
        po_text_puts(&text, "mugraph m { label i 4 tensor A device [4] step \"s\" { ");
        po_text_puts(&text, cases[i].part[0] == 'f' ? "" : "A[i] = ");
        for (int k = 0; k < 100000; k++)
            po_text_puts(&text, cases[i].part);
        assert_int_equal(po_mu_parse(&ctx, arena, text.data, &mu), PO_BAD_INPUT);
        if (!strstr(ctx.error.message, cases[i].want))
            fail_msg("'%s': '%s'", cases[i].part, ctx.error.message);
        po_ctx_clear(&ctx);
        po_arena_free(arena);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(types),    cmocka_unit_test(docs_example), cmocka_unit_test(random_ones),
        cmocka_unit_test(equality), cmocka_unit_test(refused),      cmocka_unit_test(refused_deep),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* R/T forms against index maps written out: making, composing, inverting, printing, emitting. */
#include "base/scan.h"
#include "ops/ref.h"
#include "ops/rewrite.h"
#include "rewriting.h"
#include "rt_maps.h"
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>

typedef struct fixture {
    po_ctx ctx;
    po_arena *arena;
} fixture;

static void start(fixture *f) {
    po_ctx_init(&f->ctx);
    f->arena = po_arena_create(&f->ctx);
}

static void stop(fixture *f) {
    po_arena_free(f->arena);
}

static void chains_compose(void **state) {
    (void)state;
    enum { CHAINS = 20000 };
    uint32_t composed = 0, refused = 0, associated = 0;
    for (uint64_t seed = 1; seed <= CHAINS; seed++) {
        fixture f;
        start(&f);
        rt_maker m = {seed, 0};
        rt_chain c = rt_random_chain(&m, f.arena, 5);
        const po_rt *rt = c.n ? c.step[0] : NULL;
        rt_map *made = c.n ? c.made[0] : NULL;
        for (uint32_t i = 1; i < c.n && rt; i++) {
            made = rt_then(f.arena, made, c.made[i]);
            const po_rt *longer = po_rt_compose(f.arena, rt, c.step[i]);
            if (longer && !rt_same_map(made, rt_map_of(f.arena, longer)))
                fail_msg("seed %llu: '%s' then '%s' is not '%s'", (unsigned long long)seed,
                         rt_text(f.arena, rt, true), rt_text(f.arena, c.step[i], true),
                         rt_text(f.arena, longer, true));
            refused += !longer && !rt_empty(made);
            composed += longer != NULL;
            rt = longer;
        }
        if (rt && c.n > 2) { /* the other way to put the parentheses */
            const po_rt *right = c.step[c.n - 1];
            for (uint32_t i = c.n - 1; i-- > 0 && right;)
                right = po_rt_compose(f.arena, c.step[i], right);
            if (right && !po_rt_equal(rt, right))
                fail_msg("seed %llu: '%s' is not '%s'", (unsigned long long)seed,
                         rt_text(f.arena, rt, true), rt_text(f.arena, right, true));
            if (right)
                assert_true(po_hash_equal(po_rt_hash(rt), po_rt_hash(right)));
            associated += right != NULL;
        }
        stop(&f);
    }
    printf("%u composed, %u refused, %u both ways\n", composed, refused, associated);
    assert_true(composed > CHAINS && associated > CHAINS / 4 && refused < composed / 5);
}

typedef struct entry {
    rt_map *m;
    const po_rt *rt;
    struct entry *next;
} entry;

/* Forms that move elements equally are equal: chains that happen to agree are looked for. */
static void forms_are_canonical(void **state) {
    (void)state;
    enum { CHAINS = 30000, BUCKETS = 4096 };
    fixture f;
    start(&f);
    entry **bucket = PO_NEW_N(f.arena, entry *, BUCKETS);
    uint32_t met = 0, unequal = 0;
    for (uint64_t seed = 1; seed <= CHAINS; seed++) {
        rt_maker m = {seed + 900000, 0};
        rt_chain c = rt_random_chain(&m, f.arena, 4);
        const po_rt *rt = c.n ? c.step[0] : NULL;
        for (uint32_t i = 1; i < c.n && rt; i++)
            rt = po_rt_compose(f.arena, rt, c.step[i]);
        if (!rt)
            continue;
        rt_map *made = rt_map_of(f.arena, rt);
        if (made->n_out > 400)
            continue;
        po_hash h = po_hash_bytes(made->from, (size_t)made->n_out * sizeof *made->from,
                                  (po_hash){made->in_rank, made->out_rank});
        entry *e = bucket[h.lo % BUCKETS];
        while (e && !rt_same_map(e->m, made))
            e = e->next;
        if (e) {
            met++;
            if (!po_rt_equal(e->rt, rt) && unequal++ < 8)
                printf("  '%s' and '%s'\n", rt_text(f.arena, e->rt, true),
                       rt_text(f.arena, rt, true));
        } else {
            e = PO_NEW(f.arena, entry);
            *e = (entry){made, rt, bucket[h.lo % BUCKETS]};
            bucket[h.lo % BUCKETS] = e;
        }
    }
    printf("%u pairs that move alike, %u of them with two forms\n", met, unequal);
    /* What remains: both ends of an axis cut through the digits of one group. */
    assert_true(met > 5000 && unequal <= met / 1000);
    stop(&f);
}

static void inverses_undo(void **state) {
    (void)state;
    uint32_t inverted = 0, missed = 0, identities = 0;
    for (uint64_t seed = 1; seed <= 20000; seed++) {
        fixture f;
        start(&f);
        rt_maker m = {seed + 5000000, 0};
        rt_chain c = rt_random_chain(&m, f.arena, 3);
        const po_rt *rt = c.n ? c.step[0] : NULL;
        for (uint32_t i = 1; i < c.n && rt; i++)
            rt = po_rt_compose(f.arena, rt, c.step[i]);
        if (rt) {
            rt_map *made = rt_map_of(f.arena, rt);
            bool identity =
                made->in_rank == made->out_rank &&
                memcmp(made->in_dims, made->out_dims, made->in_rank * sizeof *made->in_dims) == 0;
            uint32_t *copies = PO_NEW_N(f.arena, uint32_t, made->n_in);
            bool all = true, no_zero = true, once = true;
            for (int64_t i = 0; i < made->n_out; i++) {
                identity &= made->from[i] == i;
                no_zero &= made->from[i] >= 0;
                if (made->from[i] >= 0)
                    once &= !copies[made->from[i]]++;
            }
            for (int64_t i = 0; i < made->n_in; i++)
                all &= copies[i] != 0;
            assert_int_equal(po_rt_is_identity(rt), identity);
            if (po_rt_is_bijection(rt) != (all && no_zero && once))
                fail_msg("'%s' is%s a bijection", rt_text(f.arena, rt, true),
                         all && no_zero && once ? "" : " not");
            const po_rt *back = po_rt_invert(f.arena, rt);
            if (back) {
                rt_map *round = rt_then(f.arena, made, rt_map_of(f.arena, back));
                for (int64_t i = 0; i < round->n_out; i++)
                    if (round->from[i] != i)
                        fail_msg("'%s' is not undone by '%s'", rt_text(f.arena, rt, true),
                                 rt_text(f.arena, back, true));
            }
            if (all && once && !back)
                fail_msg("'%s' has no inverse", rt_text(f.arena, rt, true));
            identities += identity;
            inverted += back != NULL;
            missed += all && !back;
        }
        stop(&f);
    }
    printf("%u inverted, %u that lose nothing were not, %u identities\n", inverted, missed,
           identities);
    /* Missed: windows that overlap unevenly, of which no one copy is the natural one. */
    assert_true(inverted > 4000 && identities > 100 && missed < inverted / 20);
}

static void text_parses_back(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 10000; seed++) {
        fixture f;
        start(&f);
        rt_maker m = {seed + 7000000, 0};
        rt_chain c = rt_random_chain(&m, f.arena, 3);
        const po_rt *rt = c.n ? c.step[0] : NULL, *back = NULL;
        for (uint32_t i = 1; i < c.n && rt; i++)
            rt = po_rt_compose(f.arena, rt, c.step[i]);
        for (int stated = 0; rt && stated < 2; stated++) {
            const char *text = rt_text(f.arena, rt, stated != 0);
            if (po_rt_parse(&f.ctx, f.arena, text, rt->in_rank, stated ? NULL : rt->in_dims,
                            &back) != PO_OK)
                fail_msg("'%s': %s", text, f.ctx.error.message);
            if (!po_rt_equal(rt, back))
                fail_msg("'%s' became '%s'", text, rt_text(f.arena, back, true));
        }
        stop(&f);
    }
}

/* Nodes compute what the form says, no more of them than were counted, and lead back to it. */
static void emitted_nodes_move_alike(void **state) {
    (void)state;
    uint32_t emitted = 0, back = 0, refused = 0, nodes = 0;
    for (uint64_t seed = 1; seed <= 6000; seed++) {
        fixture f;
        start(&f);
        rt_maker m = {seed + 3000000, 0};
        rt_chain c = rt_random_chain(&m, f.arena, 4);
        const po_rt *rt = c.n ? c.step[0] : NULL;
        for (uint32_t i = 1; i < c.n && rt; i++)
            rt = po_rt_compose(f.arena, rt, c.step[i]);
        if (rt) {
            po_model model = {.ir_version = 8,
                              .opsets = &(po_opset){"", rt_draw(&m, 0, 1) ? 17 : 9},
                              .n_opsets = 1};
            po_graph *g = po_graph_create(&f.ctx, &model, "moves");
            po_type type = po_type_tensor_i64(g->arena, PO_F32, rt->in_rank, rt->in_dims);
            po_value_id x = po_graph_add_input(g, "x", &type), y = po_rt_emit(g, PO_NONE, x, rt);
            bool old = model.opsets[0].version < 11;
            if (y == PO_NONE) {
                refused++;
                assert_true(old || po_rt_nodes(f.arena, rt) == PO_NONE);
            } else {
                if (!old)
                    assert_int_equal(g->n_live, po_rt_nodes(f.arena, rt));
                po_value_id root;
                const po_rt *again;
                nodes += g->n_live;
                emitted++;
                assert_int_equal(po_rt_of_chain(&f.ctx, f.arena, g, y, &root, &again), PO_OK);
                if (root == x) {
                    back++;
                    if (!po_rt_equal(again, rt))
                        fail_msg("'%s' came back as '%s'", rt_text(f.arena, rt, true),
                                 rt_text(f.arena, again, true));
                }
                if (y == x)
                    y = po_add_op(g, PO_NONE, PO_OP_Identity, 1, &x, &type);
                po_graph_add_output(g, y);
                assert_int_equal(po_infer_graph(&f.ctx, g, false), PO_OK);
                rt_map *made = rt_map_of(f.arena, rt);
                po_array *in, *out;
                assert_int_equal(
                    po_array_create(&f.ctx, f.arena, PO_F32, rt->in_rank, rt->in_dims, &in), PO_OK);
                for (int64_t i = 0; i < in->count; i++)
                    in->f[i] = (double)(i + 1);
                if (po_ref_graph(&f.ctx, f.arena, g, (const po_array *const *)&in, &out, false) !=
                    PO_OK)
                    fail_msg("'%s': %s", rt_text(f.arena, rt, true), f.ctx.error.message);
                assert_int_equal(out->rank, rt->out_rank);
                for (uint32_t i = 0; i < out->rank; i++)
                    assert_true(out->dims[i] == rt->out_dims[i]);
                for (int64_t i = 0; i < out->count; i++)
                    if ((int64_t)out->f[i] != made->from[i] + 1)
                        fail_msg("seed %llu: '%s' is emitted wrongly", (unsigned long long)seed,
                                 rt_text(f.arena, rt, true));
            }
            po_graph_free(g);
        }
        stop(&f);
    }
    printf("%u emitted in %u nodes, %u read back, %u refused\n", emitted, nodes, back, refused);
    assert_true(emitted > 3000 && back > emitted * 9 / 10 && refused < emitted / 10);
}

typedef struct example {
    const char *text;
    int64_t dims[5]; /* up to a 0 */
    uint32_t nodes;
} example;

static void design_examples(void **state) {
    (void)state;
    static const example examples[] = {
        {"n c (h 2) w -> (2 n) c h w", {2, 32, 56, 56}, 3},
        {"n c h w -> n h w c", {2, 3, 8, 8}, 1},
        {"n c h w -> c (n*15 h)=30 w", {2, 3, 14, 14}, 3},
        {"n c h w -> c (n*15 h) w", {2, 3, 14, 14}, 4},
        {"n c (t:2*4 h:6)-1 w -> (n t) c h w", {3, 2, 8, 5}, 4},
        {"n c h*2+1 w -> n c h w", {1, 2, 6, 4}, 1},
        {"n c h w -> n c h+1=16 w", {1, 2, 14, 4}, 1},
        {"n -h:4+3 -> n h", {2, 4}, 1},
        {"n (2 i:2 c) h w -> n c (h 2) (w i)", {1, 12, 2, 2}, 1},
        {"n (c 2 i:2) h w -> n c (h 2) (w i)", {1, 12, 2, 2}, 1},
        {"n c (h 2) (w i:2) -> n (2 i c) h w", {1, 3, 4, 4}, 1},
        {"1 n (c 2) -> n c 2", {1, 4, 6}, 1},
        {"n c h -> (n c h)", {2, 3, 4}, 1},
        {"n c -> n c", {2, 3}, 0},
    };
    for (size_t k = 0; k < sizeof examples / sizeof *examples; k++) {
        fixture f;
        start(&f);
        uint32_t rank = 0;
        while (rank < 5 && examples[k].dims[rank])
            rank++;
        const po_rt *rt = NULL;
        po_status s = po_rt_parse(&f.ctx, f.arena, examples[k].text, rank, examples[k].dims, &rt);
        if (s != PO_OK)
            fail_msg("'%s': %s", examples[k].text, f.ctx.error.message);
        if (s == PO_OK) {
            uint32_t nodes = po_rt_nodes(f.arena, rt);
            if (nodes != examples[k].nodes)
                fail_msg("'%s' takes %u nodes, not %u", examples[k].text, nodes, examples[k].nodes);
        }
        stop(&f);
    }
}

static void bad_texts_are_refused(void **state) {
    (void)state;
    static const char *const bad[] = {
        "",
        "n",
        "n ->",
        "n -> c",
        "n -> n n",
        "n n -> n n",
        "(h 4) -> h 4",
        "n -> n*0",
        "n:4 -> n c",
        "n:99999999999999 -> n",
        "(n -> n",
        "n -> (n",
        "n +  -> n",
        "h:3*2 -> h 2",
        "n-9 -> n",
        "(a b) -> a b",
        "n:0 -> n",
        "n=7 -> n",
        "-3 -> 3",
        "n -> n*99999999999999999",
        "n -> n=0",
        "n -> n+1=1",
        "h -> h-6",
    };
    for (size_t k = 0; k < sizeof bad / sizeof *bad; k++) {
        fixture f;
        start(&f);
        const po_rt *rt;
        int64_t dims[1] = {6};
        if (po_rt_parse(&f.ctx, f.arena, bad[k], 1, dims, &rt) == PO_OK)
            fail_msg("'%s' parsed as '%s'", bad[k], rt_text(f.arena, rt, true));
        assert_true(f.ctx.error.message[0] != '\0');
        stop(&f);
    }
}

/* Texts that were hurt: no crash, and what parses prints and parses back. */
static void hurt_texts(void **state) {
    (void)state;
    static const char alphabet[] = "nchwt 0123456789()*+-=:>_";
    uint32_t parsed = 0;
    for (uint64_t seed = 1; seed <= 40000; seed++) {
        fixture f;
        start(&f);
        rt_maker m = {seed, 0};
        char text[] = "n c (t:2*4 h:6)-1 w -> (n t) c h+1=9 w";
        for (int64_t k = rt_draw(&m, 1, 4); k > 0; k--)
            text[rt_draw(&m, 0, sizeof text - 2)] = alphabet[rt_draw(&m, 0, sizeof alphabet - 2)];
        const po_rt *rt, *back;
        int64_t dims[4] = {3, 2, 8, 5};
        if (po_rt_parse(&f.ctx, f.arena, text, 4, dims, &rt) == PO_OK) {
            parsed++;
            if (po_rt_parse(&f.ctx, f.arena, rt_text(f.arena, rt, false), 4, dims, &back) !=
                    PO_OK ||
                !po_rt_equal(rt, back))
                fail_msg("'%s' does not come back: %s", text, rt_text(f.arena, rt, false));
        }
        stop(&f);
    }
    assert_true(parsed > 1000);
}

/* A form that was changed is another one. */
static void changes_are_seen(void **state) {
    (void)state;
    uint32_t seen = 0, changes = 0;
    for (uint64_t seed = 1; seed <= 4000; seed++) {
        fixture f;
        start(&f);
        rt_maker m = {seed + 11000000, 0};
        rt_chain c = rt_random_chain(&m, f.arena, 1);
        if (c.n && c.step[0]->n) {
            po_rt rt = *c.step[0];
            po_rt_digit d[PO_RT_MAX_DIGITS];
            int64_t base[PO_RT_MAX_RANK];
            memcpy(d, rt.digits, rt.n * sizeof *d);
            memcpy(base, rt.in_base, rt.in_rank * sizeof *base);
            rt.digits = d;
            rt.in_base = base;
            uint32_t k = (uint32_t)rt_draw(&m, 0, rt.n - 1);
            switch (rt_draw(&m, 0, 3)) {
            case 0:
                base[rt_draw(&m, 0, rt.in_rank - 1)]++;
                break;
            case 1:
                d[k].extent--;
                break;
            case 2:
                d[k].in_coef++;
                d[k].in_coef += d[k].in_coef == 0;
                break;
            default:
                d[k].out_coef++;
            }
            const po_rt *other = po_rt_create(f.arena, &rt);
            if (other) {
                bool alike = rt_same_map(rt_map_of(f.arena, other), c.made[0]);
                assert_int_equal(po_rt_equal(other, c.step[0]), alike);
                changes++;
                seen += !alike;
            }
        }
        stop(&f);
    }
    assert_true(changes > 1000 && seen > changes * 9 / 10);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(chains_compose),
        cmocka_unit_test(forms_are_canonical),
        cmocka_unit_test(inverses_undo),
        cmocka_unit_test(text_parses_back),
        cmocka_unit_test(emitted_nodes_move_alike),
        cmocka_unit_test(design_examples),
        cmocka_unit_test(bad_texts_are_refused),
        cmocka_unit_test(hurt_texts),
        cmocka_unit_test(changes_are_seen),
    };
    return cmocka_run_group_tests_name("rt", tests, NULL, NULL);
}

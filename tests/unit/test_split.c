/* Split: what is in one subprogram, and what split.h promises, by brute force on random graphs. */
#include "base/str.h"
#include "rewriting.h"
#include "split/parts.h"
#include "unit.h"

#include <math.h>

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

static void split_of(fixture *f, const po_graph *g, uint32_t most, po_split *split) {
    po_status status = po_split_model(&f->ctx, f->arena, g, &(po_split_options){most}, split);
    if (status != PO_OK)
        fail_msg("%s", f->ctx.error.message);
}

/* --- samples --- */

#define CONV "{kernel_shape=[3, 3], pads=[1, 1, 1, 1]}"

static const struct {
    const char *name, *graph;
    uint32_t subs, occurrences, nodes; /* of the split; nodes: of the first subprogram */
    uint32_t activations, inputs;      /* of the first subprogram */
} samples[] = {
    {"non-linear operators split, equals are one",
     "graph g (x: f32[1,4,6,6]) -> (y) {\n"
     " a = Conv(x, w: f32[4,4,3,3] random 1, b: f32[4] random 2) " CONV "\n r = Relu(a)\n"
     " c = Conv(r, v: f32[4,4,3,3] random 3, d: f32[4] random 4) " CONV "\n y = Relu(c)\n}",
     1, 2, 1, 1, 3},
    {"parallel operators are one subprogram",
     "graph g (x: f32[4,8]) -> (y, z) {\n"
     " a = MatMul(x, w: f32[8,8] random 1)\n b = MatMul(x, v: f32[8,6] random 2)\n"
     " y = Relu(a)\n z = Relu(b)\n}",
     1, 1, 2, 1, 3},
    {"three products of one tensor stay together, although two of them are multiplied", /* Q, K, V
                                                                                         */
     "graph g (x: f32[6,8]) -> (y) {\n"
     " q = MatMul(x, a: f32[8,8] random 1)\n k = MatMul(x, b: f32[8,8] random 2)\n"
     " v = MatMul(x, c: f32[8,8] random 3)\n t = Transpose(k) {perm=[1, 0]}\n"
     " s = MatMul(q, t)\n p = Softmax(s)\n y = MatMul(p, v)\n}",
     2, 2, 5, 1, 4},
    {"equal branches of two tensors",
     "graph g (x: f32[1,4,6,6], z: f32[1,4,6,6]) -> (y) {\n"
     " a = Conv(x, w: f32[4,4,3,3] random 1) " CONV "\n r = Relu(a)\n"
     " b = Conv(z, v: f32[6,4,3,3] random 2) " CONV "\n s = Relu(b)\n"
     " y = Concat(r, s) {axis=1}\n}",
     1, 1, 2, 2, 4},
    {"branches of other kernels stay apart",
     "graph g (x: f32[1,4,6,6], z: f32[1,4,6,6]) -> (y) {\n"
     " a = Conv(x, w: f32[4,4,3,3] random 1) " CONV "\n r = Relu(a)\n"
     " b = Conv(z, v: f32[4,4,1,1] random 2)\n s = Relu(b)\n"
     " y = Concat(r, s) {axis=1}\n}",
     2, 2, 1, 1, 2},
    {"a residual sum joins its convolution, not the one before the activation",
     "graph g (x: f32[1,4,6,6]) -> (y) {\n"
     " a = Conv(x, w: f32[4,4,3,3] random 1) " CONV "\n r = Relu(a)\n"
     " c = Conv(r, v: f32[4,4,3,3] random 3) " CONV "\n s = Add(c, x)\n y = Relu(s)\n}",
     2, 2, 1, 1, 2},
    {"nothing that multiplies, nothing to split",
     "graph g (x: f32[2,3]) -> (y) {\n t = Transpose(x) {perm=[1, 0]}\n y = Add(t, t)\n}", 0, 0, 0,
     0, 0},
    {"quotients of activations are not linear",
     "graph g (x: f32[4,4], z: f32[4,4]) -> (y) {\n"
     " d = Div(x, z)\n y = MatMul(d, w: f32[4,4] random 1)\n}",
     1, 1, 1, 1, 2},
    {"constants that shape stay inside",
     "graph g (x: f32[4,4]) -> (y) {\n"
     " r = Reshape(x, s: i64[2] {2, 8})\n y = MatMul(r, w: f32[8,4] random 1)\n}",
     1, 1, 2, 1, 2},
    {"open shapes are left alone",
     "graph g (x: f32[B,4]) -> (y) {\n y = MatMul(x, w: f32[4,4] random 1)\n}", 0, 0, 0, 0, 0},
};

static void sample_graphs(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof samples / sizeof *samples; i++) {
        fixture f;
        start(&f);
        po_graph *g = test_graph(&f.ctx, samples[i].graph);
        po_split split;
        split_of(&f, g, 0, &split);
        uint32_t occurrences = 0;
        for (uint32_t s = 0; s < split.n; s++)
            occurrences += split.subs[s].n_at;
        if (split.n != samples[i].subs || occurrences != samples[i].occurrences ||
            (split.n > 0 && (split.subs[0].graph->n_live != samples[i].nodes ||
                             split.subs[0].n_activations != samples[i].activations ||
                             split.subs[0].graph->n_inputs != samples[i].inputs)))
            fail_msg("%s: %u subprograms, %u occurrences; the first: %u nodes, %u of %u inputs",
                     samples[i].name, split.n, occurrences,
                     split.n ? split.subs[0].graph->n_live : 0,
                     split.n ? split.subs[0].n_activations : 0,
                     split.n ? split.subs[0].graph->n_inputs : 0);
        po_graph_free(g);
        end(&f);
    }
}

static void bound_on_operators(void **state) {
    (void)state;
    fixture f;
    start(&f);
    po_text t;
    po_text_init(&t, f.arena);
    po_text_puts(&t, "graph g (x: f32[4,4]) -> (y9) {\n y0 = Identity(x)\n");
    for (int i = 1; i < 10; i++)
        po_text_printf(&t, " y%d = MatMul(y%d, w%d: f32[4,4] random %d)\n", i, i - 1, i, i);
    po_text_puts(&t, "}");
    po_graph *g = test_graph(&f.ctx, t.data);
    for (uint32_t most = 1; most < 6; most++) {
        po_split split;
        split_of(&f, g, most, &split);
        uint32_t n = 0;
        for (uint32_t s = 0; s < split.n; s++)
            n += split.subs[s].n_at;
        assert_int_equal(n, (9 + most - 1) / most);
    }
    po_graph_free(g);
    end(&f);
}

/* --- random graphs --- */

/* Values of shape [1,4,5,5], each made from those before it. */
static const char *random_graph(po_arena *arena, uint64_t seed) {
    po_text t;
    po_text_init(&t, arena);
    uint32_t n = 4 + (uint32_t)(po_random_u64(seed, 0, 0) % 20);
    po_text_puts(&t, "graph g (v0: f32[1,4,5,5], v1: f32[1,4,5,5]) -> (");
    po_text_printf(&t, "v%u, v%u) {\n", n + 1, n);
    for (uint32_t i = 2; i < n + 2; i++) {
        uint32_t a = (uint32_t)(po_random_u64(seed, i, 0) % i),
                 b = (uint32_t)(po_random_u64(seed, i, 1) % i);
        switch (po_random_u64(seed, i, 2) % 8) {
        case 0:
            po_text_printf(&t, " v%u = Relu(v%u)\n", i, a);
            break;
        case 1:
            po_text_printf(&t, " v%u = Add(v%u, v%u)\n", i, a, b);
            break;
        case 2:
            po_text_printf(&t, " v%u = Mul(v%u, v%u)\n", i, a, b);
            break;
        case 3:
            po_text_printf(&t, " v%u = Transpose(v%u) {perm=[0, 1, 3, 2]}\n", i, a);
            break;
        case 4:
            po_text_printf(&t, " v%u = MatMul(v%u, m%u: f32[5,5] random %u)\n", i, a, i, i);
            break;
        default:
            po_text_printf(&t, " v%u = Conv(v%u, w%u: f32[4,4,3,3] random %u) " CONV "\n", i, a, i,
                           i);
        }
    }
    po_text_puts(&t, "}");
    return t.data;
}

/* Whether a path leads from one node to another, by nodes outside the occurrence only. */
static bool path_outside(const po_graph *g, const uint32_t *in, uint32_t own, po_node_id from,
                         po_node_id to, bool left) {
    const po_node *node = &g->nodes[from];
    for (uint32_t k = 0; k < node->n_out; k++)
        for (uint32_t u = 0; u < g->values[node->out[k]].n_uses; u++) {
            po_node_id next = g->values[node->out[k]].uses[u].node;
            if (in[next] == own ? left && next == to : path_outside(g, in, own, next, to, true))
                return true;
        }
    return false;
}

static void convex_by_brute_force(fixture *f, const po_graph *g, const po_split *split) {
    uint32_t *in = PO_NEW_N(f->arena, uint32_t, g->n_nodes), own = 0;
    for (uint32_t s = 0; s < split->n; s++)
        for (uint32_t k = 0; k < split->subs[s].n_at; k++, own++)
            for (uint32_t i = 0; i < split->subs[s].at[k].n_nodes; i++) {
                assert_int_equal(in[split->subs[s].at[k].nodes[i]], 0);
                in[split->subs[s].at[k].nodes[i]] = own + 1;
            }
    own = 0;
    for (uint32_t s = 0; s < split->n; s++)
        for (uint32_t k = 0; k < split->subs[s].n_at; k++) {
            const po_occurrence *at = &split->subs[s].at[k];
            own++;
            for (uint32_t i = 0; i < at->n_nodes; i++)
                for (uint32_t j = 0; j < at->n_nodes; j++)
                    assert_false(path_outside(g, in, own, at->nodes[i], at->nodes[j], false));
        }
    for (po_node_id id = 0; id < g->n_nodes; id++)
        if (!g->nodes[id].removed &&
            (g->nodes[id].op == PO_OP_Conv || g->nodes[id].op == PO_OP_MatMul))
            assert_int_not_equal(in[id], 0);
}

/* Every occurrence taken out and put back computes the same. */
static void replace_all(fixture *f, const po_graph *g, const po_split *split, uint64_t seed) {
    po_graph *copy = po_graph_clone(&f->ctx, g);
    for (uint32_t s = 0; s < split->n; s++)
        for (uint32_t k = 0; k < split->subs[s].n_at; k++)
            assert_int_equal(po_split_replace(&f->ctx, copy, &split->subs[s], &split->subs[s].at[k],
                                              split->subs[s].graph),
                             PO_OK);
    po_graph_sweep(copy);
    if (po_graph_check(&f->ctx, copy) != PO_OK)
        fail_msg("%s", f->ctx.error.message);
    assert_int_equal(copy->n_live, g->n_live);
    assert_true(test_difference(&f->ctx, g, copy, seed) < 1e-6);
    po_graph_free(copy);
}

static void random_graphs(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 150; seed++) {
        fixture f;
        start(&f);
        po_graph *g = test_graph(&f.ctx, random_graph(f.arena, seed));
        po_graph_sweep(g);
        po_split split;
        split_of(&f, g, 1 + (uint32_t)(seed % 5), &split);
        convex_by_brute_force(&f, g, &split);
        replace_all(&f, g, &split, seed);
        po_graph_free(g);
        end(&f);
    }
}

/* --- replacing --- */

/* A mutant with work on weights: what it makes of them is stored. */
static void weights_are_evaluated(void **state) {
    (void)state;
    fixture f;
    start(&f);
    po_graph *g =
        test_graph(&f.ctx, "graph g (x: f32[2,3]) -> (y) {\n a = MatMul(x, w: f32[3,4] random 1)\n"
                           " b = MatMul(a, v: f32[4,5] random 2)\n y = Identity(b)\n}");
    po_split split;
    split_of(&f, g, 0, &split);
    assert_int_equal(split.n, 1);
    po_graph *m = test_graph(&f.ctx, "graph sub (x0: f32[2,3], w0: f32[3,4], w1: f32[4,5]) -> (y0) "
                                     "{\n p = MatMul(w0, w1)\n y0 = MatMul(x0, p)\n}");
    assert_int_equal(po_split_replace(&f.ctx, g, &split.subs[0], &split.subs[0].at[0], m), PO_OK);
    po_graph_sweep(g);
    assert_int_equal(po_graph_check(&f.ctx, g), PO_OK);
    assert_int_equal(test_count(g, "MatMul"), 1);
    po_graph *again =
        test_graph(&f.ctx, "graph g (x: f32[2,3]) -> (y) {\n a = MatMul(x, w: f32[3,4] random 1)\n"
                           " b = MatMul(a, v: f32[4,5] random 2)\n y = Identity(b)\n}");
    assert_true(test_difference(&f.ctx, g, again, 5) < 1e-6);
    po_graph_free(m);
    po_graph_free(again);
    po_graph_free(g);
    end(&f);
}

/* --- sabotage: the checker must see every broken promise --- */

typedef enum breakage {
    TWICE,       /* a node in two occurrences */
    REMOVED,     /* a node that is not there */
    MISCOUNTED,  /* the number of covered nodes */
    NOT_LINEAR,  /* an activation inside */
    NOT_CONVEX,  /* a node missing in the middle */
    WRONG_INPUT, /* an input that is made inside */
    WRONG_TYPE,  /* an input of another type */
    NO_PRODUCT,  /* only a sum */
    LOST_OUTPUT, /* an output that is not told */
    BREAKAGES
} breakage;

static po_status broken(fixture *f, breakage how) {
    po_graph *g = test_graph(
        &f->ctx, "graph g (x: f32[4,4], u: f32[2,2]) -> (y) {\n"
                 " a = MatMul(x, w: f32[4,4] random 1)\n b = Relu(a)\n"
                 " c = MatMul(b, v: f32[4,4] random 2)\n d = Add(c, a)\n y = Relu(d)\n}");
    /* Nodes 0 .. 4: a b c d y. */
    static const po_node_id lists[BREAKAGES][3] = {
        [TWICE] = {2, 3},      [REMOVED] = {2, 3},    [MISCOUNTED] = {2, 3},
        [NOT_LINEAR] = {0, 1}, [NOT_CONVEX] = {0, 2}, [WRONG_INPUT] = {2, 3},
        [WRONG_TYPE] = {2, 3}, [NO_PRODUCT] = {3},    [LOST_OUTPUT] = {0},
    };
    static const uint32_t lengths[BREAKAGES] = {2, 2, 2, 2, 2, 2, 2, 1, 1};
    po_subprogram sub = {0};
    po_occurrence at[2];
    po_extract made;
    po_status status =
        po_split_extract(&f->ctx, f->arena, g, lists[how], lengths[how], true, &made);
    assert_int_equal(status, PO_OK);
    sub.graph = made.graph;
    sub.n_activations = made.n_activations;
    at[0] = made.at;
    sub.at = at;
    sub.n_at = 1;
    po_split split = {&sub, 1, lengths[how]};
    at[1] = at[0];
    po_value_id *in = (po_value_id *)at[0].in, *out = (po_value_id *)at[0].out;
    switch (how) {
    case TWICE:
        sub.n_at = 2;
        split.n_nodes = 4;
        break;
    case REMOVED:
        ((po_node_id *)at[0].nodes)[1] = 77;
        break;
    case MISCOUNTED:
        split.n_nodes = 3;
        break;
    case WRONG_INPUT:
        in[0] = out[0];
        break;
    case WRONG_TYPE:
        in[0] = g->inputs[1];
        break;
    case LOST_OUTPUT:
        made.graph->n_outputs = 0;
        break;
    default:
        break;
    }
    status = po_split_check(&f->ctx, g, &split);
    po_ctx_clear(&f->ctx);
    return status;
}

static void checker_sees(void **state) {
    (void)state;
    for (int how = 0; how < BREAKAGES; how++) {
        fixture f;
        start(&f);
        if (broken(&f, (breakage)how) != PO_INTERNAL)
            fail_msg("breakage %d went unseen", how);
        end(&f);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sample_graphs), cmocka_unit_test(bound_on_operators),
        cmocka_unit_test(random_graphs), cmocka_unit_test(weights_are_evaluated),
        cmocka_unit_test(checker_sees),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The six blocks that Trinity (ASPLOS 2026) is measured on: 16 tokens behind 1008, the shapes of
 * LLaMA 3 8B (32 heads of 128). Keys and values of the tokens before are inputs; those of the new
 * ones are outputs too. */
#include "net.h"

#include <math.h>

enum {
    TOKENS = 16,
    BEFORE = 1008,
    KEYS = 1024,
    HEADS = 32,
    HEAD = 128,
    HIDDEN = 4096,
    INNER = 14336
};

/* x times a matrix, a head apart: [HEADS, TOKENS, HEAD]. */
static po_val project(net *n, po_val x, const char *name) {
    po_val w = net_weight(n, name, 2, (int64_t[]){HIDDEN, HIDDEN}, HIDDEN);
    po_val y = net_op2(n, "MatMul", x, w);
    y = net_op2(n, "Reshape", y, po_build_i64(n->b, 3, (int64_t[]){TOKENS, HEADS, HEAD}));
    return net_transpose(n, y, 3, (int64_t[]){1, 0, 2});
}

static po_val behind(net *n, const char *name, po_val now) {
    po_val before = net_input(n, name, 3, (int64_t[]){HEADS, BEFORE, HEAD});
    return net_concat(n, 2, (po_val[]){before, now}, 1);
}

static po_val softmax(net *n, po_val x) {
    po_val y = net_op1(n, "Softmax", x);
    po_build_attr_int(n->b, y, "axis", -1);
    return y;
}

/* What the queries get from the values, by [TOKENS, HIDDEN]. */
static void answer(net *n, po_val weights, po_val v) {
    po_val o = net_transpose(n, net_op2(n, "MatMul", weights, v), 3, (int64_t[]){1, 0, 2});
    o = net_op2(n, "Reshape", o, po_build_i64(n->b, 2, (int64_t[]){TOKENS, HIDDEN}));
    po_build_output(n->b, o, "O");
}

/* The scores of the queries; *v: the values. */
static po_val score(net *n, bool norm_x, bool norm_heads, po_val *v) {
    po_val x = net_input(n, "X", 2, (int64_t[]){TOKENS, HIDDEN});
    if (norm_x)
        x = net_op2(n, "Mul", net_rms(n, x, -1, 1e-6f), net_vector(n, "gain", HIDDEN, 0.8, 1.2));
    po_val q = project(n, x, "WQ"), k = project(n, x, "WK"), now = project(n, x, "WV");
    if (norm_heads) {
        q = net_op2(n, "Mul", net_rms(n, q, -1, 1e-6f), net_vector(n, "gain_q", HEAD, 0.8, 1.2));
        k = net_op2(n, "Mul", net_rms(n, k, -1, 1e-6f), net_vector(n, "gain_k", HEAD, 0.8, 1.2));
    }
    po_build_output(n->b, k, NULL);
    po_build_output(n->b, now, NULL);
    k = net_transpose(n, behind(n, "K_before", k), 3, (int64_t[]){0, 2, 1});
    *v = behind(n, "V_before", now);
    return net_op2(n, "Mul", net_op2(n, "MatMul", q, k), net_number(n, 1 / sqrtf(HEAD)));
}

static po_val sum_tokens(net *n, po_val x) {
    po_val in[2] = {x, po_build_i64(n->b, 1, (int64_t[]){1})};
    po_val y = po_build_node(n->b, NULL, "ReduceSum", NULL, 2, in);
    po_build_attr_int(n->b, y, "keepdims", 0);
    return y;
}

static void attention(net *n, bool norm_x, bool norm_heads) {
    po_val v, s = score(n, norm_x, norm_heads, &v);
    answer(n, softmax(n, s), v);
}

void build_vanilla(net *n) {
    attention(n, false, false);
}

void build_prenorm(net *n) {
    attention(n, true, false);
}

void build_qknorm_block(net *n) {
    attention(n, false, true);
}

/* Which keys to keep is told by what each gets of all queries, the scores disturbed. */
void build_keyformer(net *n) {
    po_val v, s = score(n, false, false, &v);
    po_val noise = net_input(n, "noise", 3, (int64_t[]){HEADS, TOKENS, KEYS});
    po_val disturbed = net_op2(n, "Div", net_op2(n, "Add", s, noise), net_number(n, 1.5f));
    po_build_output(n->b, sum_tokens(n, softmax(n, disturbed)), "kept");
    answer(n, softmax(n, s), v);
}

/* Which keys to keep is told by the mean and the deviation of what each gets. */
void build_roco(net *n) {
    po_val v, weights = softmax(n, score(n, false, false, &v));
    po_build_output(n->b, sum_tokens(n, weights), "sums");
    po_build_output(n->b, sum_tokens(n, net_op2(n, "Mul", weights, weights)), "squares");
    answer(n, weights, v);
}

void build_swiglu(net *n) {
    po_val x = net_input(n, "X", 2, (int64_t[]){TOKENS, HIDDEN});
    po_val y = net_op2(n, "Mul", net_rms(n, x, -1, 1e-6f), net_vector(n, "gain", HIDDEN, 0.8, 1.2));
    po_val gate =
        net_op2(n, "MatMul", y, net_weight(n, "W1", 2, (int64_t[]){HIDDEN, INNER}, HIDDEN));
    po_val up = net_op2(n, "MatMul", y, net_weight(n, "W3", 2, (int64_t[]){HIDDEN, INNER}, HIDDEN));
    gate = net_op2(n, "Mul", gate, net_op1(n, "Sigmoid", gate));
    po_val down = net_op2(n, "MatMul", net_op2(n, "Mul", gate, up),
                          net_weight(n, "W2", 2, (int64_t[]){INNER, HIDDEN}, INNER));
    po_build_output(n->b, net_op2(n, "Add", x, down), "O");
}

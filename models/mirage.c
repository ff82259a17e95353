/* The six blocks that Mirage (Wu et al. 2025, arXiv 2405.05751) is measured on, in f32 or f16:
 * where no batch is given, attention at batch 1, the others at batch 8. */
#include "net.h"

static po_val attend(net *n, po_val q, po_val k, po_val v) {
    po_val scores = net_op2(n, "Mul", net_op2(n, "MatMul", q, k), net_number(n, 0.125f));
    po_val weights = net_op1(n, "Softmax", scores);
    po_build_attr_int(n->b, weights, "axis", -1);
    return net_op2(n, "MatMul", weights, v);
}

void build_gqa(net *n) {
    int64_t heads = 2 * net_batch(n, 1);
    po_val q = net_input(n, "Q", 3, (int64_t[]){heads, 256, 64});
    po_val k = net_input(n, "K", 3, (int64_t[]){heads, 64, 4096});
    po_val v = net_input(n, "V", 3, (int64_t[]){heads, 4096, 64});
    po_build_output(n->b, attend(n, q, k, v), "O");
}

void build_qknorm(net *n) {
    int64_t heads = 2 * net_batch(n, 1);
    po_val q = net_input(n, "Q", 3, (int64_t[]){heads, 256, 64});
    po_val k = net_input(n, "K", 3, (int64_t[]){heads, 64, 4096});
    po_val v = net_input(n, "V", 3, (int64_t[]){heads, 4096, 64});
    po_val gain_k = net_random(n, "gain_k", 2, (int64_t[]){64, 1}, 0.8, 1.2);
    q = net_op2(n, "Mul", net_rms(n, q, -1, 1e-6f), net_vector(n, "gain_q", 64, 0.8, 1.2));
    k = net_op2(n, "Mul", net_rms(n, k, 1, 1e-6f), gain_k);
    po_build_output(n->b, attend(n, q, k, v), "O");
}

void build_rmsnorm_linear(net *n) {
    po_val x = net_input(n, "X", 2, (int64_t[]){2 * net_batch(n, 8), 4096});
    x = net_op2(n, "Mul", net_rms(n, x, -1, 1e-6f), net_vector(n, "gain", 4096, 0.8, 1.2));
    po_val w = net_weight(n, "W", 2, (int64_t[]){4096, 6144}, 4096);
    po_build_output(n->b, net_op2(n, "MatMul", x, w), "O");
}

void build_lora(net *n) {
    po_val x = net_input(n, "X", 2, (int64_t[]){2 * net_batch(n, 8), 256});
    po_val w = net_weight(n, "W", 2, (int64_t[]){256, 4096}, 256);
    po_val a = net_weight(n, "A", 2, (int64_t[]){256, 16}, 256);
    po_val b = net_weight(n, "B", 2, (int64_t[]){16, 4096}, 16);
    po_val low = net_op2(n, "MatMul", net_op2(n, "MatMul", x, a), b);
    po_build_output(n->b, net_op2(n, "Add", net_op2(n, "MatMul", x, w), low), "O");
}

void build_gated_mlp(net *n) {
    po_val x = net_input(n, "X", 2, (int64_t[]){net_batch(n, 8), 4096});
    po_val gate = net_op2(n, "MatMul", x, net_weight(n, "W1", 2, (int64_t[]){4096, 4096}, 4096));
    po_val up = net_op2(n, "MatMul", x, net_weight(n, "W2", 2, (int64_t[]){4096, 4096}, 4096));
    gate = net_op2(n, "Mul", gate, net_op1(n, "Sigmoid", gate));
    po_build_output(n->b, net_op2(n, "Mul", gate, up), "O");
}

static po_val unit(net *n, po_val x) {
    x = net_wide(n, x);
    po_val norm = net_op1(n, "ReduceL2", x);
    po_build_attr_ints(n->b, norm, "axes", 1, (int64_t[]){-1});
    po_build_attr_int(n->b, norm, "keepdims", 1);
    return net_narrow(n, net_op2(n, "Div", x, norm));
}

void build_ntrans(net *n) {
    po_val x = net_input(n, "X", 2, (int64_t[]){net_batch(n, 8), 4096});
    po_val h = net_input(n, "H", 2, (int64_t[]){net_batch(n, 8), 4096});
    po_val alpha = net_input(n, "alpha", 2, (int64_t[]){net_batch(n, 8), 4096});
    po_val step = net_op2(n, "Mul", alpha, net_op2(n, "Sub", unit(n, h), x));
    po_build_output(n->b, unit(n, net_op2(n, "Add", x, step)), "O");
}

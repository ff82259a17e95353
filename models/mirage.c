/* The six blocks that Mirage (Wu et al. 2025, arXiv 2405.05751) is measured on, in f32: attention
 * at batch 1, the others at batch 8. */
#include "net.h"

static po_val attend(net *n, po_val q, po_val k, po_val v) {
    po_val scores = net_op2(n, "Mul", net_op2(n, "MatMul", q, k), po_build_f32(n->b, 0.125f));
    po_val weights = net_op1(n, "Softmax", scores);
    po_build_attr_int(n->b, weights, "axis", -1);
    return net_op2(n, "MatMul", weights, v);
}

void build_gqa(net *n) {
    po_val q = po_build_input(n->b, "Q", "f32[2,256,64]");
    po_val k = po_build_input(n->b, "K", "f32[2,64,4096]");
    po_val v = po_build_input(n->b, "V", "f32[2,4096,64]");
    po_build_output(n->b, attend(n, q, k, v), "O");
}

void build_qknorm(net *n) {
    po_val q = po_build_input(n->b, "Q", "f32[2,256,64]");
    po_val k = po_build_input(n->b, "K", "f32[2,64,4096]");
    po_val v = po_build_input(n->b, "V", "f32[2,4096,64]");
    po_val gain_k = po_build_random(n->b, "gain_k", 2, (int64_t[]){64, 1}, n->seed++, 0.8, 1.2);
    q = net_op2(n, "Mul", net_rms(n, q, -1, 1e-6f), net_vector(n, "gain_q", 64, 0.8, 1.2));
    k = net_op2(n, "Mul", net_rms(n, k, 1, 1e-6f), gain_k);
    po_build_output(n->b, attend(n, q, k, v), "O");
}

void build_rmsnorm_linear(net *n) {
    po_val x = po_build_input(n->b, "X", "f32[16,4096]");
    x = net_op2(n, "Mul", net_rms(n, x, -1, 1e-6f), net_vector(n, "gain", 4096, 0.8, 1.2));
    po_val w = net_weight(n, "W", 2, (int64_t[]){4096, 6144}, 4096);
    po_build_output(n->b, net_op2(n, "MatMul", x, w), "O");
}

void build_lora(net *n) {
    po_val x = po_build_input(n->b, "X", "f32[16,256]");
    po_val w = net_weight(n, "W", 2, (int64_t[]){256, 4096}, 256);
    po_val a = net_weight(n, "A", 2, (int64_t[]){256, 16}, 256);
    po_val b = net_weight(n, "B", 2, (int64_t[]){16, 4096}, 16);
    po_val low = net_op2(n, "MatMul", net_op2(n, "MatMul", x, a), b);
    po_build_output(n->b, net_op2(n, "Add", net_op2(n, "MatMul", x, w), low), "O");
}

void build_gated_mlp(net *n) {
    po_val x = po_build_input(n->b, "X", "f32[8,4096]");
    po_val gate = net_op2(n, "MatMul", x, net_weight(n, "W1", 2, (int64_t[]){4096, 4096}, 4096));
    po_val up = net_op2(n, "MatMul", x, net_weight(n, "W2", 2, (int64_t[]){4096, 4096}, 4096));
    gate = net_op2(n, "Mul", gate, net_op1(n, "Sigmoid", gate));
    po_build_output(n->b, net_op2(n, "Mul", gate, up), "O");
}

static po_val unit(net *n, po_val x) {
    po_val norm = net_op1(n, "ReduceL2", x);
    po_build_attr_ints(n->b, norm, "axes", 1, (int64_t[]){-1});
    po_build_attr_int(n->b, norm, "keepdims", 1);
    return net_op2(n, "Div", x, norm);
}

void build_ntrans(net *n) {
    po_val x = po_build_input(n->b, "X", "f32[8,4096]");
    po_val h = po_build_input(n->b, "H", "f32[8,4096]");
    po_val alpha = po_build_input(n->b, "alpha", "f32[8,4096]");
    po_val step = net_op2(n, "Mul", alpha, net_op2(n, "Sub", unit(n, h), x));
    po_build_output(n->b, unit(n, net_op2(n, "Add", x, step)), "O");
}

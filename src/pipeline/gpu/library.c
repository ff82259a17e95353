/* Convolutions and products as steps of cuDNN and cuBLASLt, with the bias, the residual and the
 * activation that their kernels take in. What is named here is what these libraries have: a call
 * for each form of product, and sums and Relu behind it. */
#include "ops/conv_view.h"
#include "pipeline/gpu/model.h"

static const po_type *type_of(const po_graph *g, po_value_id v) {
    return &g->values[v].type;
}

/* The type that the libraries and the executor have for it. */
static bool element(const po_type *type, po_mu_type *to) {
    if (type->kind != PO_TYPE_TENSOR || !po_type_static(type))
        return false;
    *to = type->dtype == PO_F16 ? PO_MU_F16 : type->dtype == PO_BF16 ? PO_MU_BF16 : PO_MU_F32;
    return type->dtype == PO_F32 || type->dtype == PO_F16 || type->dtype == PO_BF16;
}

static po_cuda_place value(po_value_id v) {
    return (po_cuda_place){v, 0};
}

static bool alike(const po_type *a, const po_type *b) {
    if (a->rank != b->rank || a->dtype != b->dtype)
        return false;
    for (uint32_t x = 0; x < a->rank; x++)
        if (a->dims[x].value != b->dims[x].value)
            return false;
    return true;
}

/* --- what follows --- */

/* The node that alone reads the match's result, where it is free. */
static const po_node *follower(const po_graph *g, const po_gpu_match *m, const bool *taken) {
    const po_use *use = po_graph_sole_use(g, m->out);
    if (!use || taken[use->node])
        return NULL;
    const po_node *node = &g->nodes[use->node];
    return node->n_out == 1 && node->out[0] != PO_NONE ? node : NULL;
}

static void take(const po_graph *g, po_gpu_match *m, const po_node *node) {
    m->nodes[m->n_nodes++] = (po_node_id)(node - g->nodes);
    m->out = node->out[0];
}

/* The other operand of a sum with the match's result; PO_NONE: it is none. */
static po_value_id added(const po_node *node, const po_gpu_match *m) {
    if (node->op != PO_OP_Add || node->n_in != 2)
        return PO_NONE;
    if (node->in[0] == node->in[1])
        return PO_NONE;
    return node->in[0] == m->out ? node->in[1] : node->in[0];
}

/* Whether the other operand has one number for each of the last axis and no more. */
static bool one_a_column(const po_graph *g, po_value_id other, po_value_id result) {
    const po_type *t = type_of(g, other), *y = type_of(g, result);
    int64_t columns = y->rank ? y->dims[y->rank - 1].value : 1;
    return t->kind == PO_TYPE_TENSOR && po_type_static(t) && t->dtype == y->dtype && t->rank >= 1 &&
           t->rank <= y->rank && t->dims[t->rank - 1].value == columns &&
           po_type_count(t) == columns;
}

/* --- convolutions --- */

static bool conv_geometry(const po_graph *g, const po_node *node, po_cuda_conv *c) {
    po_conv v;
    if (!po_conv_view(g, (po_node_id)(node - g->nodes), &v))
        return false;
    c->spatial = v.n;
    c->n = v.batch;
    c->c = v.in;
    c->k = v.out;
    c->groups = v.group;
    for (uint32_t i = 0; i < v.n; i++) {
        c->in[i] = v.size[i];
        c->out[i] = v.to[i];
        c->kernel[i] = v.kernel[i];
        c->stride[i] = v.stride[i];
        c->dilation[i] = v.dilation[i];
        c->before[i] = v.before[i];
        c->after[i] = v.after[i];
    }
    return true;
}

static bool match_conv(const po_graph *g, const po_node *node, bool tf32, const bool *taken,
                       po_gpu_match *m) {
    po_cuda_conv *c = &m->u.conv;
    *c = (po_cuda_conv){.tf32 = tf32, .bias = PO_CUDA_NOWHERE, .z = PO_CUDA_NOWHERE};
    if (node->n_in < 2 || !element(type_of(g, node->in[0]), &c->type) || !conv_geometry(g, node, c))
        return false;
    m->kind = PO_GPU_CONV;
    take(g, m, node);
    c->x = value(node->in[0]);
    c->w = value(node->in[1]);
    if (node->n_in > 2 && node->in[2] != PO_NONE)
        c->bias = value(node->in[2]);
    const po_node *next = follower(g, m, taken);
    po_value_id other = next ? added(next, m) : PO_NONE;
    if (other != PO_NONE && alike(type_of(g, other), type_of(g, m->out))) {
        c->z = value(other);
        take(g, m, next);
        next = follower(g, m, taken);
    }
    if (next && next->op == PO_OP_Relu) {
        c->act = PO_CUDA_RELU;
        take(g, m, next);
    }
    c->y = value(m->out);
    return true;
}

/* --- products --- */

static int64_t matrices(const po_type *t) {
    int64_t n = 1;
    for (uint32_t x = 0; x + 2 < t->rank; x++)
        n *= t->dims[x].value;
    return n;
}

/* MatMul: a [.., m, k] with b [k, n] or [.., k, n] of the same leading dims. */
static bool matmul_geometry(const po_graph *g, const po_node *node, po_cuda_matmul *p) {
    const po_type *a = type_of(g, node->in[0]), *b = type_of(g, node->in[1]);
    const po_type *y = type_of(g, node->out[0]);
    if (a->rank < 2 || b->rank < 2 || y->rank < 2)
        return false;
    int64_t of_a = matrices(a), of_b = matrices(b);
    p->m = a->dims[a->rank - 2].value;
    p->k = a->dims[a->rank - 1].value;
    p->n = b->dims[b->rank - 1].value;
    p->batch = of_b;
    if (of_b == 1) {
        p->m *= of_a;
        p->batch = 1;
    } else if (a->rank != b->rank || of_a != of_b || of_a != matrices(y)) {
        return false;
    }
    p->apart_a = p->k;
    p->apart_b = p->n;
    return true;
}

/* Gemm without factors. */
static bool gemm_geometry(const po_graph *g, const po_node *node, po_cuda_matmul *p) {
    const po_type *a = type_of(g, node->in[0]), *b = type_of(g, node->in[1]);
    bool bias = node->n_in > 2 && node->in[2] != PO_NONE;
    float alpha = po_node_float(node, "alpha", 1), beta = po_node_float(node, "beta", 1);
    if (a->rank != 2 || b->rank != 2 || alpha < 1 || alpha > 1 || (bias && (beta < 1 || beta > 1)))
        return false;
    p->turn_a = po_node_int(node, "transA", 0) != 0;
    p->turn_b = po_node_int(node, "transB", 0) != 0;
    p->m = a->dims[p->turn_a].value;
    p->k = a->dims[!p->turn_a].value;
    p->n = b->dims[!p->turn_b].value;
    p->batch = 1;
    p->apart_a = a->dims[1].value;
    p->apart_b = b->dims[1].value;
    if (!bias)
        return true;
    if (one_a_column(g, node->in[2], node->out[0]))
        p->bias = value(node->in[2]);
    else if (alike(type_of(g, node->in[2]), type_of(g, node->out[0])))
        p->c = value(node->in[2]);
    else
        return false;
    return true;
}

static bool match_product(const po_graph *g, const po_node *node, bool tf32, const bool *taken,
                          po_gpu_match *m) {
    po_cuda_matmul *p = &m->u.matmul;
    *p = (po_cuda_matmul){.tf32 = tf32, .bias = PO_CUDA_NOWHERE, .c = PO_CUDA_NOWHERE};
    po_mu_type other_type;
    if (node->n_in < 2 || !element(type_of(g, node->in[0]), &p->type) ||
        !element(type_of(g, node->in[1]), &other_type) || other_type != p->type ||
        !(node->op == PO_OP_MatMul ? matmul_geometry(g, node, p) : gemm_geometry(g, node, p)))
        return false;
    m->kind = PO_GPU_MATMUL;
    take(g, m, node);
    p->a = value(node->in[0]);
    p->b = value(node->in[1]);
    p->apart_c = p->apart_y = p->n;
    if (p->batch > 1) {
        p->step_a = p->m * p->k;
        p->step_b = p->k * p->n;
        p->step_c = p->step_y = p->m * p->n;
    }
    for (int tries = 0; tries < 2; tries++) {
        const po_node *next = follower(g, m, taken);
        po_value_id other = next ? added(next, m) : PO_NONE;
        if (other == PO_NONE)
            break;
        if (p->bias.buffer == PO_NONE && p->c.buffer == PO_NONE && one_a_column(g, other, m->out))
            p->bias = value(other);
        else if (p->c.buffer == PO_NONE && alike(type_of(g, other), type_of(g, m->out)))
            p->c = value(other);
        else
            break;
        take(g, m, next);
    }
    const po_node *next = follower(g, m, taken);
    if (next && m->n_nodes < 4 && next->op == PO_OP_Relu) {
        p->act = PO_CUDA_RELU;
        take(g, m, next);
    }
    p->y = value(m->out);
    return true;
}

bool po_gpu_match_node(const po_graph *graph, po_node_id id, bool tf32, const bool *taken,
                       po_gpu_match *match) {
    const po_node *node = &graph->nodes[id];
    *match = (po_gpu_match){0};
    if (node->removed || taken[id])
        return false;
    if (po_conv_is(node))
        return match_conv(graph, node, tf32, taken, match);
    if (node->op == PO_OP_MatMul || node->op == PO_OP_Gemm)
        return match_product(graph, node, tf32, taken, match);
    return false;
}

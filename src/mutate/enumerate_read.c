/* A subprogram as a compact program, and as a smaller one of the same structure. */
#include "mutate/enumerate.h"
#include "ops/conv_view.h"
#include "ops/rewrite.h"
#include "ops/window.h"

typedef struct reading {
    po_arena *arena;
    const po_graph *g;
    const bool *inside;
    en_problem *problem;
    uint32_t *slot; /* by value; PO_NONE */
    bool *bare;     /* values read without their bias */
} reading;

static bool shape_of(const reading *r, po_value_id v, en_shape *s) {
    uint32_t rank;
    const po_dim *dims = v == PO_NONE ? NULL : po_static_dims(r->g, v, &rank);
    int64_t count = 1;
    if (!dims || rank > EN_RANK || po_dtype_class_of(r->g->values[v].type.dtype) != PO_CLASS_FLOAT)
        return false;
    *s = (en_shape){.rank = (uint8_t)rank};
    for (uint32_t i = 0; i < rank; i++) {
        if (dims[i].value < 1 || dims[i].value > INT32_MAX || (count *= dims[i].value) > INT32_MAX)
            return false;
        s->d[i] = (int32_t)dims[i].value;
    }
    return true;
}

static const po_node *maker(const reading *r, po_value_id v) {
    const po_node *n = po_graph_producer(r->g, v);
    return n && r->inside[r->g->values[v].producer] ? n : NULL;
}

static bool has_bias(const po_node *n) {
    return (po_conv_is(n) || n->op == PO_OP_Gemm) && n->n_in == 3 && n->in[2] != PO_NONE;
}

/* Leaves out the biases of what makes an output, or of the two that it is the sum of. */
static bool strip(reading *r, uint32_t output, po_value_id v, bool deeper) {
    en_problem *p = r->problem;
    const po_node *n = maker(r, v);
    if (n && has_bias(n)) {
        if (p->n_biases[output] == EN_BIASES || (deeper && r->g->values[v].n_uses != 1) ||
            r->bare[v])
            return false;
        p->bias[output][p->n_biases[output]++] = n->in[2];
        r->bare[v] = true;
    }
    if (n && n->op == PO_OP_Add && deeper)
        return true;
    for (uint32_t k = 0; n && n->op == PO_OP_Add && k < 2; k++)
        if (!strip(r, output, n->in[k], true))
            return false;
    return true;
}

/* The enumeration keeps windows in short numbers, and a convolution's kernel as its weights. */
static bool read_windows(const reading *r, const po_node *n, uint32_t maps, en_op *op) {
    po_window w;
    if (maps > EN_MAPS || !po_window_of(r->g, n, maps, &w) || w.ceil)
        return false;
    for (uint32_t m = 0; m < maps; m++) {
        const int64_t all[] = {w.kernel[m], w.stride[m], w.dilation[m], w.begin[m], w.end[m]};
        for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
            if (all[i] > INT16_MAX)
                return false;
        op->window[m] = po_conv_is(n) ? 0 : (int16_t)w.kernel[m];
        op->stride[m] = (int16_t)w.stride[m];
        op->dilation[m] = (int16_t)w.dilation[m];
        op->lo[m] = (int16_t)w.begin[m];
        op->hi[m] = (int16_t)w.end[m];
    }
    return true;
}

static bool read_pool(const reading *r, const po_node *n, uint32_t maps, en_op *op) {
    bool padded = false;
    if (!read_windows(r, n, maps, op))
        return false;
    for (uint32_t m = 0; m < maps; m++)
        padded |= op->lo[m] || op->hi[m];
    return !padded || po_op_int(r->g, n, "count_include_pad");
}

/* A transpose as one or two exchanges of axes, which fit any size. */
static bool transpose(const en_shape *in, const int64_t *perm, uint32_t n, en_rt *rt) {
    uint8_t at[EN_RANK];
    const uint8_t rank = (uint8_t)n;
    en_rt_start(in, rt);
    for (uint8_t i = 0; i < rank; i++)
        at[i] = i;
    for (uint8_t i = 0; i < rank; i++) {
        uint8_t k = i;
        while (k < rank && at[k] != (uint8_t)perm[i])
            k++;
        if (k == rank)
            return false;
        if (k != i) {
            if (!en_rt_move(rt, &(en_move){.kind = EN_SWAP, .axis = i, .to = k}))
                return false;
            uint8_t t = at[i];
            at[i] = at[k];
            at[k] = t;
        }
    }
    return en_rt_finish(rt);
}

static bool swap_last(reading *r, en_program *p, uint32_t n, uint32_t arg) {
    en_rt *rt = PO_NEW(r->arena, en_rt);
    const en_shape *s = &p->shape[p->op[n].in[arg]];
    p->view[n][arg] = rt;
    return s->rank == 2 && transpose(s, (int64_t[]){1, 0}, 2, rt);
}

static bool read_gemm(reading *r, const po_node *n, uint32_t at) {
    en_program *p = &r->problem->target;
    p->op[at].kind = EN_MATMUL;
    p->op[at].n_in = 2;
    bool bare = r->bare[n->out[0]];
    if ((n->n_in != 2 && !bare) || po_op_float(r->g, n, "alpha") != 1.0f ||
        (bare && po_op_float(r->g, n, "beta") != 1.0f))
        return false;
    return (!po_op_int(r->g, n, "transA") || swap_last(r, p, at, 0)) &&
           (!po_op_int(r->g, n, "transB") || swap_last(r, p, at, 1));
}

static bool read_node(reading *r, const po_node *n) {
    en_program *p = &r->problem->target;
    en_shape x;
    uint32_t count;
    const int64_t *v;
    if (p->n_ops == EN_OPS || n->n_in == 0 || !shape_of(r, n->in[0], &x))
        return false;
    en_op *op = &p->op[p->n_ops];
    *op = (en_op){.n_in = (uint8_t)n->n_in, .n_out = 1, .out = p->n_slots};
    if ((po_conv_is(n) || n->op == PO_OP_Gemm) && n->n_in == 3 &&
        (r->bare[n->out[0]] || n->in[2] == PO_NONE))
        op->n_in = 2;
    if (n->op == PO_OP_Reshape || n->op == PO_OP_Squeeze || n->op == PO_OP_Unsqueeze)
        op->n_in = 1; /* the rest shapes it */
    if (op->n_in > EN_ARGS || n->n_out > EN_OUTS)
        return false;
    if (n->op == PO_OP_Split)
        op->n_in = 1;
    for (uint32_t k = 0; k < op->n_in; k++) {
        if (n->in[k] == PO_NONE || r->slot[n->in[k]] == PO_NONE)
            return false;
        op->in[k] = (uint8_t)r->slot[n->in[k]];
    }
    bool good = true;
    switch (n->op) {
    case PO_OP_Conv:
        op->kind = EN_CONV;
        good = op->n_in == 2 && x.rank >= 3 && read_windows(r, n, x.rank - 2u, op);
        break;
    case PO_OP_MatMul:
        op->kind = EN_MATMUL;
        break;
    case PO_OP_Gemm:
        good = read_gemm(r, n, p->n_ops);
        break;
    case PO_OP_Add:
        op->kind = EN_ADD;
        break;
    case PO_OP_AveragePool:
        op->kind = EN_POOL;
        good = x.rank >= 3 && read_pool(r, n, x.rank - 2u, op);
        break;
    case PO_OP_Concat:
    case PO_OP_Split: {
        int64_t axis = po_op_int(r->g, n, "axis");
        op->kind = n->op == PO_OP_Concat ? EN_CONCAT : EN_SPLIT;
        op->axis = (uint8_t)(axis < 0 ? axis + x.rank : axis);
        op->n_out = (uint8_t)n->n_out;
        for (uint32_t k = 0; good && op->kind == EN_SPLIT && k < n->n_out; k++) {
            en_shape part;
            good = shape_of(r, n->out[k], &part) && op->axis < part.rank;
            op->size[k] = good ? part.d[op->axis] : 0;
        }
        break;
    }
    case PO_OP_Transpose: {
        int64_t reversed[EN_RANK];
        en_rt *rt = PO_NEW(r->arena, en_rt);
        for (uint32_t i = 0; i < x.rank; i++)
            reversed[i] = x.rank - 1 - (int64_t)i;
        v = po_node_ints(n, "perm", &count);
        good = !v || count == x.rank;
        if (good && transpose(&x, v ? v : reversed, x.rank, rt)) {
            op->kind = EN_MOVE;
            p->view[p->n_ops][0] = rt;
        } else {
            good = false;
        }
        break;
    }
    case PO_OP_Identity:
        op->kind = EN_MOVE;
        break;
    case PO_OP_Reshape:
    case PO_OP_Squeeze:
    case PO_OP_Unsqueeze:
    case PO_OP_Flatten:
        op->kind = EN_RESHAPE;
        good = shape_of(r, n->out[0], &p->shape[op->out]);
        break;
    default:
        good = false;
    }
    if (!good || op->out + op->n_out > EN_SLOTS || !en_program_infer(p, p->n_ops))
        return false;
    for (uint32_t k = 0; k < op->n_out; k++) {
        en_shape declared;
        if (n->out[k] == PO_NONE)
            continue;
        if (!shape_of(r, n->out[k], &declared) || !en_same(&declared, &p->shape[op->out + k]))
            return false;
        r->slot[n->out[k]] = op->out + k;
    }
    p->n_slots = (uint8_t)(p->n_slots + op->n_out);
    p->n_ops++;
    return true;
}

/* How many of a node's inputs are tensors that it computes with. */
static uint32_t operands(const reading *r, const po_node *n) {
    switch (n->op) {
    case PO_OP_Reshape:
    case PO_OP_Squeeze:
    case PO_OP_Unsqueeze:
    case PO_OP_Split:
        return 1;
    default:
        return has_bias(n) && r->bare[n->out[0]] ? 2 : n->n_in;
    }
}

static bool add_input(reading *r, po_value_id v) {
    en_program *p = &r->problem->target;
    if (v == PO_NONE || r->slot[v] != PO_NONE)
        return true;
    if (p->n_in == EN_INPUTS || !shape_of(r, v, &p->shape[p->n_in]))
        return false;
    p->monomials[p->n_in] = (en_monomials){1, {(uint8_t)(1u << p->n_in)}};
    r->problem->input[p->n_in] = v;
    r->slot[v] = p->n_in++;
    return true;
}

/* What a convolution averages with as a pool does: multiplied with it, a tensor's elements stay
 * what they are but for a known factor. */
static void add_table(reading *r, const po_node *pool) {
    en_program *p = &r->problem->target;
    en_op op;
    en_shape x;
    if (p->n_in == EN_INPUTS || !shape_of(r, pool->in[0], &x) || x.rank < 3 ||
        !read_windows(r, pool, x.rank - 2u, &op))
        return;
    en_shape *table = &p->shape[p->n_in];
    *table = (en_shape){.rank = x.rank, .d = {x.d[1], 1}};
    for (uint32_t i = 2; i < x.rank; i++)
        table->d[i] = op.window[i - 2];
    p->monomials[p->n_in] = (en_monomials){1, {0}};
    r->problem->input[p->n_in++] = PO_NONE;
    p->table = p->n_in;
}

bool en_read(po_arena *arena, const po_graph *g, const bool *weight, const en_region *region,
             en_problem *problem) {
    reading r = {arena,
                 g,
                 region->inside,
                 problem,
                 PO_NEW_N(arena, uint32_t, g->n_values),
                 PO_NEW_N(arena, bool, g->n_values)};
    en_program *p = &problem->target;
    uint32_t n_order, n_out = 0;
    const po_node_id *order = po_graph_order(g, arena, &n_order);
    memset(problem, 0, sizeof *problem);
    problem->graph = g;
    memset(r.slot, 0xFF, g->n_values * sizeof *r.slot);
    for (uint32_t i = 0; i < n_order; i++) {
        const po_node *n = &g->nodes[order[i]];
        for (uint32_t k = 0; r.inside[order[i]] && k < n->n_out; k++) {
            const po_value *v = n->out[k] == PO_NONE ? NULL : &g->values[n->out[k]];
            bool leaves = v && v->n_outputs;
            for (uint32_t u = 0; v && u < v->n_uses; u++)
                leaves |= v->uses[u].input == PO_USE_CAPTURE || !r.inside[v->uses[u].node];
            if (!leaves)
                continue;
            if (n_out == EN_OUTS || !strip(&r, n_out, n->out[k], false))
                return false;
            problem->output[n_out++] = n->out[k];
        }
    }
    for (uint32_t pass = 0; pass < 2; pass++) {
        for (uint32_t i = 0; i < n_order; i++) {
            const po_node *n = &g->nodes[order[i]];
            uint32_t n_in = r.inside[order[i]] ? operands(&r, n) : 0;
            for (uint32_t k = 0; k < n_in; k++)
                if (n->in[k] == PO_NONE ||
                    (!maker(&r, n->in[k]) && weight[n->in[k]] == (pass == 1) &&
                     !add_input(&r, n->in[k])))
                    return false;
        }
        if (pass == 0)
            problem->n_activations = p->n_in;
    }
    for (uint32_t i = 0; i < n_order && !p->table; i++)
        if (r.inside[order[i]] && g->nodes[order[i]].op == PO_OP_AveragePool)
            add_table(&r, &g->nodes[order[i]]);
    p->n_slots = p->n_in;
    for (uint32_t i = 0; i < n_order; i++)
        if (r.inside[order[i]] && !read_node(&r, &g->nodes[order[i]]))
            return false;
    for (uint32_t i = 0; i < n_out; i++)
        p->out[i] = (uint8_t)r.slot[problem->output[i]];
    p->n_out = (uint8_t)n_out;
    en_set_tiles(problem);
    return p->n_ops > 0 && n_out > 0;
}

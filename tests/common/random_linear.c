/* Up to four steps are drawn among convolutions (random_conv.c), pools, products, moves and sums,
 * each with a mutant's other ways and bugs beside it. Graphs whose tensors pass 3000 elements are
 * dropped. */
#include "random_parts.h"
#include "unit.h"

enum { MOST_ELEMENTS = 3000 };

/* --- other steps --- */

static po_value_id pool_step(maker *m, po_value_id x) {
    tensor t = rl_dims_of(m, x);
    int64_t kernel[PO_MAP_AXES], stride[PO_MAP_AXES], pads[2 * PO_MAP_AXES];
    bool counted = rl_chance(m, 2);
    uint32_t n = t.n - 2;
    for (uint32_t i = 0; i < n; i++) {
        kernel[i] = rl_draw(m, 1, 3);
        stride[i] = rl_draw(m, 1, 2);
        pads[i] = rl_draw(m, 0, kernel[i] - 1);
        pads[n + i] = rl_draw(m, 0, kernel[i] - 1);
        t.dim[i + 2] = (t.dim[i + 2] + pads[i] + pads[n + i] - kernel[i]) / stride[i] + 1;
    }
    counted ^= rl_vary(m, 2, 20) != 0;
    po_value_id y = rl_made(m, PO_OP_AveragePool, 1, &x, &t);
    po_node_set_ints(m->d.g, rl_node_of(m, y), "kernel_shape", n, kernel);
    po_node_set_ints(m->d.g, rl_node_of(m, y), "strides", n, stride);
    po_node_set_ints(m->d.g, rl_node_of(m, y), "pads", 2 * n, pads);
    po_node_set_int(m->d.g, rl_node_of(m, y), "count_include_pad", counted);
    return y;
}

static po_value_id matmul_step(maker *m, po_value_id x) {
    tensor t = rl_dims_of(m, x);
    int64_t k = t.dim[t.n - 1], dims[2] = {k, rl_draw(m, 1, 4)};
    po_value_id w = rl_input(m, 2, dims);
    int64_t way = rl_vary(m, 5, 50), bug = rl_vary(m, 3, 40);
    if (way == 1 && k > 1) {
        po_value_id a = po_mk_matmul(&m->d, rl_slice(m, x, t.n - 1, 0, k / 2, 1),
                                     rl_slice(m, w, 0, 0, k / 2, 1));
        po_value_id b =
            po_mk_matmul(&m->d, rl_slice(m, x, t.n - 1, k / 2 - (bug == 1), k - k / 2, 1),
                         rl_slice(m, w, 0, k / 2, k - k / 2, 1));
        return m->d.dropped ? x : po_mk_binary(&m->d, PO_OP_Add, a, bug == 2 ? a : b);
    }
    if (way == 2 && t.n > 2) {
        po_value_id flat = po_mk_reshape(&m->d, x, 2, (int64_t[]){rl_count_of(&t) / k, k});
        t.dim[t.n - 1] = dims[1];
        return po_mk_reshape(&m->d, po_mk_matmul(&m->d, flat, w), t.n, t.dim);
    }
    if (way == 3)
        return po_mk_matmul(&m->d, rl_detour(m, x), w);
    if (way == 4)
        return po_mk_matmul(&m->d, x,
                            bug == 1 && dims[1] == k ? rl_swapped(m, w, 0, 1) : rl_detour(m, w));
    return po_mk_matmul(&m->d, x, w);
}

/* An axis split into digits, all axes permuted, and two neighbours merged. */
static po_value_id digits_step(maker *m, po_value_id x) {
    tensor t = rl_dims_of(m, x);
    uint32_t axis = (uint32_t)rl_draw(m, 0, t.n - 1);
    int64_t inner = rl_draw(m, 1, 3);
    if (t.dim[axis] % inner || t.n > 5)
        inner = 1;
    x = rl_digits(m, x, axis, inner);
    uint32_t a = (uint32_t)rl_draw(m, 0, t.n), b = (uint32_t)rl_draw(m, 0, t.n);
    if (rl_vary(m, 2, 15))
        b = (b + 1) % (t.n + 1);
    x = rl_swapped(m, x, a, b);
    return rl_merged(m, x, (uint32_t)rl_draw(m, 0, t.n - 1));
}

static po_value_id add_step(maker *m, po_value_id x) {
    tensor t = rl_dims_of(m, x);
    uint32_t axis = (uint32_t)rl_draw(m, 0, t.n - 1);
    po_value_id other;
    switch (rl_draw(m, 0, 3)) {
    case 0:
        other = rl_input(m, t.n, t.dim);
        break;
    case 1: /* shifted */
        other = po_mk_pad(&m->d, x, axis, 1, -1);
        if (rl_vary(m, 2, 30))
            other = po_mk_pad(&m->d, x, axis, -1, 1);
        break;
    case 2:
        other = rl_reversed(m, x, axis);
        break;
    default:
        other = rl_input(m, 1, &t.dim[t.n - 1]);
        break;
    }
    if (m->d.dropped)
        return x;
    int64_t bug = rl_vary(m, 4, 20);
    if (bug == 1)
        return x;
    if (bug == 2)
        other = po_mk_binary(&m->d, PO_OP_Add, other, other);
    return po_mk_binary(&m->d, bug == 3 ? PO_OP_Sub : PO_OP_Add, x, rl_detour(m, other));
}

/* Products of activations, of an input with itself too, and with tables of numbers. */
static po_value_id mul_step(maker *m, po_value_id x) {
    tensor t = rl_dims_of(m, x);
    uint32_t axis = (uint32_t)rl_draw(m, 0, t.n - 1);
    int64_t what = rl_draw(m, 0, 4);
    if (what == 0)
        return po_mk_binary(&m->d, PO_OP_Mul, x, rl_detour(m, rl_input(m, t.n, t.dim)));
    if (what == 1)
        return po_mk_binary(&m->d, PO_OP_Mul, x, rl_detour(m, rl_reversed(m, x, axis)));
    if (what == 2) {
        po_value_id shifted = po_mk_pad(&m->d, x, axis, rl_vary(m, 2, 30) ? 0 : 1, -1);
        if (rl_vary(m, 2, 50))
            shifted = po_mk_pad(&m->d, x, axis, -1, 1);
        tensor u = rl_dims_of(m, shifted);
        return m->d.dropped || u.dim[axis] != t.dim[axis]
                   ? x
                   : po_mk_binary(&m->d, PO_OP_Mul, x, shifted);
    }
    double numbers[64];
    int64_t n = t.dim[t.n - 1] < 64 ? t.dim[t.n - 1] : 1, odd = rl_draw(m, 0, 2),
            at = rl_draw(m, 0, n - 1);
    for (int64_t i = 0; i < n; i++)
        numbers[i] = i == at ? (double[]){2, 3, 0.37}[odd] : 1;
    if (rl_vary(m, 2, 25))
        numbers[at] = 1;
    return po_mk_binary(&m->d, PO_OP_Mul, x, po_mk_table(&m->d, 1, &n, numbers));
}

static po_value_id move_step(maker *m, po_value_id x) {
    tensor t = rl_dims_of(m, x);
    uint32_t axis = (uint32_t)rl_draw(m, 0, t.n - 1), other = (uint32_t)rl_draw(m, 0, t.n - 1);
    int64_t dim = t.dim[axis], step = dim > 2 ? rl_draw(m, 1, 2) : 1, what = rl_draw(m, 0, 6);
    int64_t begin = rl_draw(m, 0, dim > 2 ? 1 : 0), before = rl_draw(m, 0, 2),
            after = rl_draw(m, 0, 2);
    switch (what) {
    case 0: { /* a slice; or one beside */
        int64_t n = (dim - begin - 1) / step + 1;
        if (rl_vary(m, 2, 30) && begin + (n - 1) * step + 1 < dim)
            begin++;
        else if (begin && rl_vary(m, 2, 30))
            begin--;
        return rl_slice(m, x, axis, begin, n, step);
    }
    case 1:
        if (before && rl_vary(m, 2, 30)) {
            before--;
            after++;
        }
        return po_mk_pad(&m->d, x, axis, before, after);
    case 2: { /* with a part of itself */
        po_value_id part[2] = {x, rl_slice(m, x, axis, begin, dim - begin, 1)};
        po_value_id turned[2] = {part[1], part[0]};
        return m->d.dropped ? x : po_mk_concat(&m->d, axis, 2, rl_vary(m, 2, 30) ? turned : part);
    }
    case 3: {
        t.dim[axis] = rl_draw(m, 1, 3);
        po_value_id part[2] = {x, rl_input(m, t.n, t.dim)};
        po_value_id turned[2] = {part[1], part[0]};
        return po_mk_concat(&m->d, axis, 2, rl_vary(m, 2, 30) ? turned : part);
    }
    case 4:
        return rl_swapped(m, x, axis, other);
    case 5: { /* the sum of an axis, and that repeated */
        tensor one = t;
        one.dim[axis] = 1;
        po_value_id in[2] = {x, po_add_i64s(m->d.g, NULL, 1, (int64_t[]){axis})};
        po_value_id sum =
            rl_made(m, rl_vary(m, 2, 20) ? PO_OP_ReduceMean : PO_OP_ReduceSum, 2, in, &one);
        po_value_id to[2] = {sum, po_add_i64s(m->d.g, NULL, t.n, t.dim)};
        return rl_chance(m, 2) ? sum : rl_made(m, PO_OP_Expand, 2, to, &t);
    }
    default: { /* elements in any order */
        int64_t at[16];
        if (dim > 16)
            return x;
        for (int64_t i = 0; i < dim; i++)
            at[i] = rl_draw(m, 0, dim - 1);
        if (rl_vary(m, 2, 30))
            at[dim - 1] = (at[dim - 1] + 1) % dim;
        po_value_id in[2] = {x, po_add_i64s(m->d.g, NULL, (uint32_t)dim, at)};
        po_value_id y = rl_made(m, PO_OP_Gather, 2, in, &t);
        po_node_set_int(m->d.g, rl_node_of(m, y), "axis", axis);
        return y;
    }
    }
}

static po_value_id step(maker *m, po_value_id x) {
    tensor t = rl_dims_of(m, x);
    bool map = t.n >= 3 && t.n <= 5;
    int64_t what = rl_draw(m, 0, 11);
    if (what < 5 && map)
        return rl_conv_step(m, x);
    if (what == 5 && map)
        return pool_step(m, x);
    if (what == 6 && t.n >= 2)
        return matmul_step(m, x);
    if (what == 7)
        return digits_step(m, x);
    if (what == 8)
        return add_step(m, x);
    if (what == 9)
        return mul_step(m, x);
    return move_step(m, x);
}

/* --- programs --- */

static po_graph *make(po_ctx *ctx, maker *m) {
    po_graph *g = po_graph_create(ctx, NULL, "linear");
    po_model *model = PO_NEW(g->arena, po_model);
    po_opset *opset = PO_NEW(g->arena, po_opset);
    *opset = (po_opset){"", 20};
    *model =
        (po_model){.arena = g->arena, .graph = g, .ir_version = 10, .opsets = opset, .n_opsets = 1};
    g->model = model;
    m->d.ctx = ctx;
    m->d.arena = po_arena_child(g->arena);
    m->d.from = m->d.g = g;
    m->d.place = PO_NONE;
    tensor t = {.n = (uint32_t)rl_draw(m, 2, 5)};
    for (uint32_t i = 0; i < t.n; i++)
        t.dim[i] = i < 2 ? rl_draw(m, 1, 4) : rl_draw(m, 2, t.n == 5 ? 5 : 8);
    po_value_id x = rl_input(m, t.n, t.dim), first = PO_NONE;
    for (int64_t i = rl_draw(m, 1, 4); i > 0 && !m->d.dropped; i--) {
        x = rl_detour(m, x);
        if (m->d.dropped)
            break;
        x = step(m, x);
        t = rl_dims_of(m, x);
        if (t.n == 0 || t.n > 6 || rl_count_of(&t) > MOST_ELEMENTS)
            m->d.dropped = true;
        if (first == PO_NONE)
            first = x;
    }
    bool two = rl_chance(m, 6);
    if (!m->d.dropped && two && first != x && g->values[first].producer != PO_NONE)
        po_graph_add_output(g, first);
    if (!m->d.dropped) {
        x = rl_detour(m, x);
        if (g->values[x].producer == PO_NONE || g->values[x].n_outputs)
            m->d.dropped = true;
        else
            po_graph_add_output(g, x);
    }
    po_arena_free(m->d.arena);
    po_graph_sweep(g);
    if (m->d.dropped || po_infer_graph(ctx, g, false) != PO_OK) {
        if (!m->d.dropped)
            fail_msg("seed %d: %s", (int)m->seed, ctx->error.message);
        po_graph_free(g);
        return NULL;
    }
    return g;
}

po_graph *test_random_linear(po_ctx *ctx, uint64_t seed) {
    maker m = {.seed = seed};
    return make(ctx, &m);
}

po_graph *test_random_mutant(po_ctx *ctx, uint64_t seed, uint64_t mutation) {
    maker m = {.seed = seed, .mutation = mutation, .mutant = true, .altered = PO_NONE};
    uint64_t r = po_random_u64(mutation, 4, 0);
    if (r % 4 == 0)
        m.altered = (uint32_t)(r / 4 % 40);
    po_graph *program = test_random_linear(ctx, seed), *g = program ? make(ctx, &m) : NULL;
    bool alike = g && g->n_inputs == program->n_inputs && g->n_outputs == program->n_outputs;
    for (uint32_t i = 0; alike && i < g->n_inputs; i++)
        alike =
            po_type_equal(&g->values[g->inputs[i]].type, &program->values[program->inputs[i]].type);
    for (uint32_t i = 0; alike && i < g->n_outputs; i++)
        alike = po_type_equal(&g->values[g->outputs[i]].type,
                              &program->values[program->outputs[i]].type);
    po_graph_free(program);
    if (alike)
        return g;
    po_graph_free(g);
    return NULL;
}

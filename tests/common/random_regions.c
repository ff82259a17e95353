/* Each kind of step draws its shape and writes its line, from a mix for maps and one for rows.
 * Arguments are kept where functions are tame: nothing near 0 below a bar, no exponential of large
 * numbers. */
#include "random_regions.h"

#include "random_making.h"

/* --- element-wise --- */

static uint32_t activation(making *m, uint32_t x) {
    making_value v = m->v[x];
    static const char *const plain[] = {"Relu", "Relu",      "Sigmoid", "Tanh",
                                        "Erf",  "HardSwish", "Neg",     "Identity"};
    switch (making_draw(m, 0, 19)) {
    case 6:
        m->v[x].used = true;
        return making_made(m, &v, "LeakyRelu(v%u) {alpha=0.1}", x);
    case 7:
        m->v[x].used = true;
        return making_made(m, &v, "HardSigmoid(v%u) {alpha=0.2, beta=0.4}", x);
    case 8: {
        m->v[x].used = true;
        uint32_t k = m->n_constants;
        m->n_constants += 2;
        return making_made(m, &v, "Clip(v%u, w%u: f32[] {-0.5}, w%u: f32[] {%d})", x, k, k + 1,
                           (int)making_draw(m, 1, 6));
    }
    case 9: /* a gate */
        return making_binary(m, x, making_unary(m, x, "Sigmoid"), "Mul");
    case 10: { /* Gelu */
        uint32_t e = making_with_number(m, x, "Mul", 0.70710678);
        e = making_with_number(m, making_unary(m, e, "Erf"), "Add", 1);
        return making_with_number(m, making_binary(m, x, e, "Mul"), "Mul", 0.5);
    }
    case 11: /* what is below a bar is never near 0 */
        return making_binary(m, x, making_with_number(m, making_unary(m, x, "Abs"), "Add", 0.5),
                             "Div");
    case 12:
        return making_unary(m, making_with_number(m, making_unary(m, x, "Abs"), "Add", 0.25),
                            "Sqrt");
    case 13:
        return making_unary(m, making_with_number(m, making_unary(m, x, "Abs"), "Add", 0.5), "Log");
    case 14: /* no exponential of what is large */
        return making_unary(m, making_unary(m, making_unary(m, x, "Abs"), "Neg"), "Exp");
    case 15:
        return making_with_number(m, x, "Pow", (double)making_draw(m, 2, 3));
    case 16:
        return making_unary(m, making_with_number(m, making_unary(m, x, "Abs"), "Add", 0.5),
                            "Reciprocal");
    case 17: {
        int64_t channels[MAKING_RANK] = {0};
        uint32_t rank = v.rank > 1 ? v.rank - 1 : v.rank;
        for (uint32_t i = 0; i < rank; i++)
            channels[i] = i == 0 && v.rank > 1 ? v.dim[1] : 1;
        m->v[x].used = true;
        return making_made(m, &v, "PRelu(v%u, %s)", x, making_weight(m, rank, channels));
    }
    case 18:
        return making_with_number(m, x, making_chance(m, 2) ? "Max" : "Min", 0.25);
    default:
        return making_unary(m, x, plain[making_draw(m, 0, 7)]);
    }
}

/* Whether a value of shape b broadcasts to one of shape a. */
static bool reaches(const making_value *a, const making_value *b) {
    for (uint32_t i = 0; i < b->rank && b->rank <= a->rank; i++)
        if (b->dim[i] != 1 && b->dim[i] != a->dim[a->rank - b->rank + i])
            return false;
    return b->rank <= a->rank;
}

/* Of this one and a constant, or an earlier value of the same shape or one that broadcasts. */
static uint32_t arithmetic(making *m, uint32_t x) {
    static const char *const ops[] = {"Add", "Sub", "Mul", "Add", "Mul", "Max", "Min"};
    const char *op = ops[making_draw(m, 0, 6)];
    making_value v = m->v[x];
    for (uint32_t y = m->n; y-- > 0;)
        if (y != x && reaches(&v, &m->v[y]) && making_chance(m, 2))
            return making_binary(m, x, y, op);
    m->v[x].used = true;
    const char *w = making_broadcast(m, &v);
    return making_chance(m, 3) ? making_made(m, &v, "%s(%s, v%u)", op, w, x)
                               : making_made(m, &v, "%s(v%u, %s)", op, x, w);
}

/* --- maps --- */

static int64_t window(int64_t in, int64_t taps, int64_t stride, int64_t dilation, int64_t pads) {
    int64_t room = in + pads - ((taps - 1) * dilation + 1);
    return room < 0 ? 0 : room / stride + 1;
}

typedef struct windows {
    int64_t taps[3], stride[3], dilation[3], pads[6];
} windows;

static bool draw_windows(making *m, making_value *v, bool pool, windows *w) {
    uint32_t n = v->rank - 2;
    bool alike = making_chance(m, 2), plain = making_chance(m, 2);
    *w = (windows){{0}, {0}, {0}, {0}};
    for (uint32_t i = 0; i < n; i++) {
        w->taps[i] = alike && i ? w->taps[0]
                     : pool     ? making_draw(m, 1, 3)
                                : PICK(m, 1, 2, 3, 3, 3, 5, 7);
        w->stride[i] = plain ? 1 : alike && i ? w->stride[0] : making_draw(m, 1, 3);
        w->dilation[i] = plain || pool ? 1 : alike && i ? w->dilation[0] : PICK(m, 1, 1, 2, 3);
        w->pads[i] = making_draw(m, 0, pool ? w->taps[i] / 2 : w->taps[i] * w->dilation[i] / 2);
        w->pads[n + i] = making_chance(m, 3) ? 0 : w->pads[i];
        v->dim[2 + i] = window(v->dim[2 + i], w->taps[i], w->stride[i], w->dilation[i],
                               w->pads[i] + w->pads[n + i]);
        if (v->dim[2 + i] < 1)
            return false;
    }
    return true;
}

static int64_t channels(making *m) {
    return PICK(m, 1, 2, 3, 5, 7, 8, 12, 16, 16, 16, 17, 20, 24, 32, 32, 33, 40, 48);
}

static uint32_t convolution(making *m, uint32_t x) {
    making_value v = m->v[x];
    uint32_t n = v.rank - 2;
    windows w;
    if (!draw_windows(m, &v, false, &w))
        return x;
    int64_t in = v.dim[1], group = 1, out = channels(m);
    if (making_chance(m, 5)) { /* depthwise */
        group = in;
        out = in * PICK(m, 1, 1, 2);
    } else if (making_chance(m, 4)) {
        group = in % 4 == 0 && making_chance(m, 2) ? 4 : in % 2 == 0 ? 2 : 1;
        out = group * PICK(m, 1, 3, 4, 8, 16);
    }
    int64_t dims[5] = {out, in / group, w.taps[0], w.taps[1], w.taps[2]};
    v.dim[1] = out;
    m->v[x].used = true;
    const char *weights = making_weight(m, v.rank, dims);
    const char *bias =
        making_chance(m, 3) ? "" : po_arena_printf(m->arena, ", %s", making_weight(m, 1, &out));
    return making_made(
        m, &v,
        "Conv(v%u, %s%s) {kernel_shape=[%s], strides=[%s], dilations=[%s], pads=[%s], "
        "group=%lld}",
        x, weights, bias, making_list(m, w.taps, n), making_list(m, w.stride, n),
        making_list(m, w.dilation, n), making_list(m, w.pads, 2 * n), (long long)group);
}

static uint32_t transposed(making *m, uint32_t x) {
    making_value v = m->v[x];
    uint32_t n = v.rank - 2;
    int64_t taps[3], stride[3], pads[6], extra[3];
    for (uint32_t i = 0; i < n; i++) {
        stride[i] = making_draw(m, 1, 3);
        taps[i] = making_chance(m, 2) ? stride[i] : making_draw(m, 1, 4);
        pads[i] = pads[n + i] = making_draw(m, 0, (taps[i] - 1) / 2);
        extra[i] = stride[i] > 1 ? making_draw(m, 0, stride[i] - 1) : 0;
        v.dim[2 + i] = (v.dim[2 + i] - 1) * stride[i] + taps[i] - 2 * pads[i] + extra[i];
        if (v.dim[2 + i] < 1 || v.dim[2 + i] > 40)
            return x;
    }
    int64_t out = making_chance(m, 4) ? 1 : channels(m);
    int64_t dims[5] = {v.dim[1], out, taps[0], n > 1 ? taps[1] : 0, n > 2 ? taps[2] : 0};
    v.dim[1] = out;
    m->v[x].used = true;
    const char *weights = making_weight(m, v.rank, dims);
    const char *bias =
        making_chance(m, 3) ? "" : po_arena_printf(m->arena, ", %s", making_weight(m, 1, &out));
    return making_made(m, &v,
                       "ConvTranspose(v%u, %s%s) {kernel_shape=[%s], strides=[%s], pads=[%s], "
                       "output_padding=[%s]}",
                       x, weights, bias, making_list(m, taps, n), making_list(m, stride, n),
                       making_list(m, pads, 2 * n), making_list(m, extra, n));
}

static uint32_t pool(making *m, uint32_t x) {
    making_value v = m->v[x];
    uint32_t n = v.rank - 2;
    windows w;
    bool most = making_chance(m, 2);
    if (making_chance(m, 4)) {
        for (uint32_t i = 0; i < n; i++)
            v.dim[2 + i] = 1;
        m->v[x].used = true;
        return making_made(m, &v, "%s(v%u)", most ? "GlobalMaxPool" : "GlobalAveragePool", x);
    }
    if (!draw_windows(m, &v, true, &w))
        return x;
    m->v[x].used = true;
    return making_made(m, &v, "%s(v%u) {kernel_shape=[%s], strides=[%s], pads=[%s]%s}",
                       most ? "MaxPool" : "AveragePool", x, making_list(m, w.taps, n),
                       making_list(m, w.stride, n), making_list(m, w.pads, 2 * n),
                       !most && making_chance(m, 2) ? ", count_include_pad=1" : "");
}

static uint32_t upsampled(making *m, uint32_t x) {
    making_value v = m->v[x];
    po_text scales;
    po_text_init(&scales, m->arena);
    po_text_puts(&scales, "1.0, 1.0");
    for (uint32_t i = 2; i < v.rank; i++) {
        int64_t s = making_draw(m, 1, 3);
        v.dim[i] *= s;
        po_text_printf(&scales, ", %lld.0", (long long)s);
    }
    if (making_count_of(&v) > 20000)
        return x;
    m->v[x].used = true;
    uint32_t k = m->n_constants;
    m->n_constants += 2;
    return making_made(m, &v,
                       "Resize(v%u, e%u: f32[0] {}, s%u: f32[%u] {%s}) {mode=\"nearest\", "
                       "coordinate_transformation_mode=\"asymmetric\", nearest_mode=\"floor\"}",
                       x, k, k + 1, v.rank, scales.data);
}

static uint32_t instance(making *m, uint32_t x) {
    making_value v = m->v[x];
    m->v[x].used = true;
    const char *scale = making_weight(m, 1, &v.dim[1]), *bias = making_weight(m, 1, &v.dim[1]);
    return making_made(m, &v, "InstanceNormalization(v%u, %s, %s) {epsilon=0.01}", x, scale, bias);
}

static uint32_t depth_space(making *m, uint32_t x) {
    making_value v = m->v[x];
    if (v.rank != 4)
        return x;
    if (v.dim[1] % 4 == 0 && making_chance(m, 2)) {
        v.dim[1] /= 4;
        v.dim[2] *= 2;
        v.dim[3] *= 2;
        m->v[x].used = true;
        return making_made(m, &v, "DepthToSpace(v%u) {blocksize=2, mode=\"%s\"}", x,
                           making_chance(m, 2) ? "DCR" : "CRD");
    }
    if (v.dim[2] % 2 != 0 || v.dim[3] % 2 != 0)
        return x;
    v.dim[1] *= 4;
    v.dim[2] /= 2;
    v.dim[3] /= 2;
    m->v[x].used = true;
    return making_made(m, &v, "SpaceToDepth(v%u) {blocksize=2}", x);
}

/* --- matrices --- */

static uint32_t product(making *m, uint32_t x) {
    making_value v = m->v[x];
    if (v.rank < 2)
        return x;
    int64_t k = v.dim[v.rank - 1], out = PICK(m, 1, 3, 8, 15, 16, 17, 31, 32, 33, 48, 64, 65, 80);
    int64_t dims[2] = {k, out};
    m->v[x].used = true;
    if (v.rank == 2 && making_chance(m, 2)) {
        bool turned = making_chance(m, 2);
        int64_t other[2] = {out, k};
        v.dim[1] = out;
        const char *w = making_weight(m, 2, turned ? other : dims), *b = making_weight(m, 1, &out);
        return making_made(m, &v, "Gemm(v%u, %s, %s) {transB=%d%s}", x, w, b, turned,
                           making_chance(m, 3) ? ", alpha=0.5" : "");
    }
    v.dim[v.rank - 1] = out;
    return making_made(m, &v, "MatMul(v%u, %s)", x, making_weight(m, 2, dims));
}

/* Of two values: one and another of its inner length, or itself turned. */
static uint32_t product_of_two(making *m, uint32_t x) {
    making_value v = m->v[x];
    if (v.rank < 2)
        return x;
    for (uint32_t y = m->n; y-- > 0;) {
        const making_value *u = &m->v[y];
        bool fits = u->rank == v.rank && u->dim[u->rank - 2] == v.dim[v.rank - 1];
        for (uint32_t i = 0; i + 2 < v.rank && fits; i++)
            fits = u->dim[i] == v.dim[i];
        if (!fits || !making_chance(m, 2))
            continue;
        v.dim[v.rank - 1] = u->dim[u->rank - 1];
        m->v[x].used = m->v[y].used = true;
        return making_made(m, &v, "MatMul(v%u, v%u)", x, y);
    }
    int64_t perm[MAKING_RANK];
    making_value t = v;
    for (uint32_t i = 0; i < v.rank; i++)
        perm[i] = i + 2 == v.rank ? v.rank - 1 : i + 1 == v.rank ? v.rank - 2 : i;
    t.dim[v.rank - 2] = v.dim[v.rank - 1];
    t.dim[v.rank - 1] = v.dim[v.rank - 2];
    m->v[x].used = true;
    uint32_t turned =
        making_made(m, &t, "Transpose(v%u) {perm=[%s]}", x, making_list(m, perm, v.rank));
    m->v[turned].used = true;
    v.dim[v.rank - 1] = v.dim[v.rank - 2];
    return making_made(m, &v, "MatMul(v%u, v%u)", x, turned);
}

static uint32_t softmax(making *m, uint32_t x) {
    making_value v = m->v[x];
    if (v.rank == 0)
        return activation(m, x);
    m->v[x].used = true;
    return making_made(m, &v, "Softmax(v%u) {axis=-1}", x);
}

static uint32_t reduced(making *m, uint32_t x, const char *op, uint32_t axis, bool keep) {
    making_value v = m->v[x];
    if (keep) {
        v.dim[axis] = 1;
    } else {
        for (uint32_t i = axis; i + 1 < v.rank; i++)
            v.dim[i] = v.dim[i + 1];
        v.rank--;
    }
    m->v[x].used = true;
    if (strcmp(op, "ReduceSum") == 0 || m->modern) {
        int64_t a = axis;
        const char *axes = making_integers(m, &a, 1);
        return making_made(m, &v, "%s(v%u, %s) {keepdims=%d}", op, x, axes, keep);
    }
    return making_made(m, &v, "%s(v%u) {axes=[%u], keepdims=%d}", op, x, axis, keep);
}

static uint32_t reduction(making *m, uint32_t x) {
    static const char *const ops[] = {"ReduceMean", "ReduceSum", "ReduceMax", "ReduceL2"};
    const char *op = ops[making_draw(m, 0, 3)];
    making_value v = m->v[x];
    if (v.rank == 0)
        return activation(m, x);
    uint32_t last = v.rank - 1;
    if (making_chance(m, 6)) { /* of everything: a number */
        v.rank = 0;
        m->v[x].used = true;
        return making_made(m, &v, "%s(v%u) {keepdims=0}", op, x);
    }
    uint32_t axis = making_chance(m, 2) ? last : (uint32_t)making_draw(m, 0, last);
    bool keep = making_chance(m, 2); /* not among the arguments: compilers differ in their order */
    return reduced(m, x, op, axis, keep);
}

/* Mean and deviation, or the root of the mean square alone, along the last axis. */
static uint32_t norm(making *m, uint32_t x) {
    if (m->v[x].rank == 0)
        return activation(m, x);
    uint32_t last = m->v[x].rank - 1;
    uint32_t shifted = x;
    int64_t length = m->v[x].dim[last];
    if (making_chance(m, 2))
        shifted = making_binary(m, x, reduced(m, x, "ReduceMean", last, true), "Sub");
    uint32_t square = making_chance(m, 2) ? making_with_number(m, shifted, "Pow", 2)
                                          : making_binary(m, shifted, shifted, "Mul");
    uint32_t mean = reduced(m, square, "ReduceMean", last, true);
    uint32_t root = making_unary(m, making_with_number(m, mean, "Add", 0.01), "Sqrt");
    uint32_t y = making_binary(m, shifted, root, "Div");
    m->v[y].used = true;
    making_value v = m->v[y];
    return making_made(m, &v, "Mul(v%u, %s)", y, making_weight(m, 1, &length));
}

/* The same as one node, over the last axes. */
static uint32_t layer(making *m, uint32_t x) {
    making_value v = m->v[x];
    if (v.rank < 2)
        return x;
    uint32_t last = v.rank - 1,
             axis = making_chance(m, 3) ? (uint32_t)making_draw(m, 1, last) : last;
    m->v[x].used = true;
    const char *scale = making_weight(m, v.rank - axis, v.dim + axis);
    if (m->modern && making_chance(m, 2))
        return making_made(m, &v, "RMSNormalization(v%u, %s) {axis=%u, epsilon=0.01}", x, scale,
                           axis);
    const char *bias =
        making_chance(m, 3)
            ? ""
            : po_arena_printf(m->arena, ", %s", making_weight(m, v.rank - axis, v.dim + axis));
    return making_made(m, &v, "LayerNormalization(v%u, %s%s) {axis=%d, epsilon=0.01}", x, scale,
                       bias, making_chance(m, 2) ? (int)axis : (int)axis - (int)v.rank);
}

/* --- other types --- */

/* There and back: what is between belongs to no region, what is before and behind does. */
static uint32_t converted(making *m, uint32_t x) {
    static const int types[] = {6,  7,  9, 10,
                                11, 16, 3, 2}; /* i32, i64, bool, f16, f64, bf16, ... */
    making_value v = m->v[x];
    m->v[x].used = true;
    uint32_t k = m->n_constants++;
    po_text_printf(&m->body, "  i%u = Cast(v%u) {to=%d}\n", k, x, types[making_draw(m, 0, 7)]);
    return making_made(m, &v, "Cast(i%u) {to=1}", k);
}

/* As 8 bits and back; what it is scaled by is a number. */
static uint32_t quantised(making *m, uint32_t x) {
    making_value v = m->v[x];
    m->v[x].used = true;
    uint32_t k = m->n_constants++, scale = m->n;
    po_text_printf(&m->body, "  q%u, v%u, z%u = DynamicQuantizeLinear(v%u)\n", k, scale, k, x);
    m->v[m->n++] = (making_value){.used = true};
    uint32_t y = making_made(m, &v, "DequantizeLinear(q%u, v%u, z%u)", k, scale, k);
    return making_binary(m, y, making_with_number(m, scale, "Mul", 0.5), "Mul");
}

/* --- programs --- */

static uint32_t map_step(making *m, uint32_t x) {
    if (m->v[x].rank < 3 || m->v[x].rank > 5)
        return activation(m, x);
    switch (making_draw(m, 0, 16)) {
    case 5:
        return transposed(m, x);
    case 6:
    case 7:
        return pool(m, x);
    case 8:
        return upsampled(m, x);
    case 9:
        return instance(m, x);
    case 10:
        return depth_space(m, x);
    case 11:
    case 12:
        return activation(m, x);
    case 13:
        return arithmetic(m, x);
    case 14:
        return reduction(m, x);
    case 15:
        return making_move(m, x);
    case 16:
        return layer(m, x);
    default:
        return convolution(m, x);
    }
}

static uint32_t row_step(making *m, uint32_t x) {
    if (making_chance(m, 40))
        return making_chance(m, 2) ? converted(m, x) : quantised(m, x);
    if (making_count_of(&m->v[x]) == 0) /* of what is empty anything that has no weights */
        return making_chance(m, 3)   ? reduction(m, x)
               : making_chance(m, 2) ? making_move(m, x)
                                     : arithmetic(m, x);
    switch (making_draw(m, 0, 13)) {
    case 3:
        return product_of_two(m, x);
    case 4:
    case 5:
        return softmax(m, x);
    case 6:
        return norm(m, x);
    case 7:
        return reduction(m, x);
    case 8:
        return activation(m, x);
    case 9:
        return arithmetic(m, x);
    case 10:
    case 11:
        return making_move(m, x);
    case 12:
    case 13:
        return layer(m, x);
    default:
        return product(m, x);
    }
}

static void draw_input(making *m, bool maps) {
    making_value *v = &m->v[0];
    if (maps) {
        static const int64_t longest[] = {70, 21, 7};
        v->rank = (uint32_t)PICK(m, 3, 4, 4, 4, 5);
        v->dim[0] = making_chance(m, 4) ? 2 : 1;
        v->dim[1] = channels(m);
        for (uint32_t i = 2; i < v->rank; i++)
            v->dim[i] = making_chance(m, 12) ? 1 : making_draw(m, 2, longest[v->rank - 3]);
    } else {
        v->rank = (uint32_t)PICK(m, 0, 1, 1, 2, 2, 2, 3, 3, 3, 4, 5, 6);
        for (uint32_t i = 0; i + 2 < v->rank; i++)
            v->dim[i] = making_draw(m, 1, 3);
        if (v->rank > 1)
            v->dim[v->rank - 2] = PICK(m, 1, 3, 6, 7, 12, 16, 17, 20);
        if (v->rank > 0)
            v->dim[v->rank - 1] = PICK(m, 1, 5, 15, 16, 17, 24, 32, 33, 40, 47, 64, 70);
        if (v->rank > 0 && making_chance(m, 40))
            v->dim[making_draw(m, 0, v->rank - 1)] = 0;
    }
    m->n = m->n_inputs = 1;
    if (making_chance(m, 4)) { /* a second one of the same shape, or its product's other side */
        m->v[1] = m->v[0];
        if (!maps && v->rank > 1 && making_chance(m, 2)) {
            m->v[1].dim[v->rank - 2] = v->dim[v->rank - 1];
            m->v[1].dim[v->rank - 1] = PICK(m, 7, 16, 33);
        }
        m->n = m->n_inputs = 2;
    }
}

const char *test_random_region(po_arena *arena, uint64_t seed) {
    making m = {.arena = arena, .seed = seed};
    po_text text, outputs;
    po_text_init(&m.body, arena);
    po_text_init(&text, arena);
    po_text_init(&outputs, arena);
    m.modern = making_chance(&m, 4);
    bool maps = making_chance(&m, 2) || making_chance(&m, 5);
    draw_input(&m, maps);
    int64_t steps = making_draw(&m, 1, 4);
    uint32_t x = 0;
    for (int64_t i = 0; i < steps || m.n == m.n_inputs; i++) {
        if (m.n + 8 > MAKING_VALUES || making_count_of(&m.v[x]) > 20000)
            break;
        /* Now and then from an earlier value. */
        if (i && making_chance(&m, 5))
            x = (uint32_t)making_draw(&m, 0, m.n - 1);
        x = maps ? map_step(&m, x) : row_step(&m, x);
    }
    if (m.n_inputs == 2 && !m.v[1].used) /* every input is read */
        making_unary(&m, 1, "Relu");
    if (!m.v[0].used)
        making_unary(&m, 0, "Relu");
    uint32_t n_out = 0;
    for (uint32_t i = m.n_inputs; i < m.n; i++)
        if (!m.v[i].used || making_chance(&m, 8))
            po_text_printf(&outputs, "%sv%u", n_out++ ? ", " : "", i);
    po_text_printf(&text, "%sgraph g (", m.modern ? "pir 1 opset = 23 " : "");
    for (uint32_t i = 0; i < m.n_inputs; i++)
        po_text_printf(&text, "%sv%u: f32[%s]", i ? ", " : "", i,
                       making_list(&m, m.v[i].dim, m.v[i].rank));
    po_text_printf(&text, ") -> (%s) {\n%s}", outputs.data, m.body.data);
    return text.data;
}

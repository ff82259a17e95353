#include "random_linear.h"

#include "mutate/derive.h"
#include "unit.h"

enum { MOST_ELEMENTS = 3000 };

typedef struct maker {
    po_deriving d; /* for the po_mk_ helpers */
    uint64_t seed, mutation;
    bool mutant;
    uint32_t draws, variations, altered; /* altered: the draw that comes out otherwise */
} maker;

/* --- draws --- */

/* Of the program: the same in a mutant, but for one draw perhaps. */
static int64_t draw(maker *m, int64_t from, int64_t to) {
    uint32_t n = m->draws++;
    uint64_t r = m->mutant && n == m->altered ? po_random_u64(m->mutation, 2, n)
                                              : po_random_u64(m->seed, 1, n);
    return from + (int64_t)(r % (uint64_t)(to - from + 1));
}

static bool chance(maker *m, int64_t one_in) {
    return draw(m, 1, one_in) == 1;
}

/* Of the mutant: 0 is as the program is written, 1 to n - 1 are other ways. */
static int64_t vary(maker *m, int64_t n, uint64_t percent) {
    if (!m->mutant)
        return 0;
    uint64_t r = po_random_u64(m->mutation, 3, m->variations++);
    return r % 100 < percent ? 1 + (int64_t)(r / 100 % (uint64_t)(n - 1)) : 0;
}

/* --- values --- */

typedef struct tensor {
    uint32_t n;
    int64_t dim[PO_MOST_DIMS];
} tensor;

static tensor dims_of(maker *m, po_value_id v) {
    tensor t = {0};
    if (!po_dims_of(m->d.g, v, &t.n, t.dim))
        m->d.dropped = true;
    return t;
}

static int64_t count_of(const tensor *t) {
    int64_t count = 1;
    for (uint32_t i = 0; i < t->n; i++)
        count *= t->dim[i];
    return count;
}

static po_value_id input(maker *m, uint32_t n, const int64_t *dims) {
    po_type type = po_type_tensor_i64(m->d.g->arena, PO_F32, n, dims);
    return po_graph_add_input(m->d.g, NULL, &type);
}

static po_value_id made(maker *m, po_op_id op, uint32_t n_in, const po_value_id *in,
                        const tensor *t) {
    for (uint32_t i = 0; i < t->n; i++)
        if (t->dim[i] < 1)
            m->d.dropped = true;
    po_type type = po_type_tensor_i64(m->d.g->arena, PO_F32, t->n, t->dim);
    return po_add_op(m->d.g, PO_NONE, op, n_in, in, &type);
}

static po_node_id node_of(maker *m, po_value_id v) {
    return m->d.g->values[v].producer;
}

static po_value_id slice(maker *m, po_value_id v, uint32_t axis, int64_t begin, int64_t count,
                         int64_t step) {
    return m->d.dropped ? v : po_mk_slice(&m->d, v, axis, begin, count, step);
}

static po_value_id reversed(maker *m, po_value_id v, uint32_t axis) {
    tensor t = dims_of(m, v);
    return slice(m, v, axis, t.dim[axis] - 1, t.dim[axis], -1);
}

static po_value_id swapped(maker *m, po_value_id v, uint32_t a, uint32_t b) {
    int perm[PO_MOST_DIMS];
    for (int i = 0; i < PO_MOST_DIMS; i++)
        perm[i] = i;
    perm[a] = (int)b;
    perm[b] = (int)a;
    return m->d.dropped ? v : po_mk_transpose(&m->d, v, perm);
}

/* Axis as (outer, inner) digits. */
static po_value_id digits(maker *m, po_value_id v, uint32_t axis, int64_t inner) {
    tensor t = dims_of(m, v);
    if (m->d.dropped || t.n + 1 > PO_MOST_DIMS || t.dim[axis] % inner) {
        m->d.dropped = true;
        return v;
    }
    memmove(&t.dim[axis + 2], &t.dim[axis + 1], (t.n - axis - 1) * sizeof *t.dim);
    t.dim[axis] /= inner;
    t.dim[axis + 1] = inner;
    return po_mk_reshape(&m->d, v, t.n + 1, t.dim);
}

/* Axes `axis` and the one after it as one. */
static po_value_id merged(maker *m, po_value_id v, uint32_t axis) {
    tensor t = dims_of(m, v);
    if (m->d.dropped || axis + 1 >= t.n) {
        m->d.dropped = true;
        return v;
    }
    t.dim[axis] *= t.dim[axis + 1];
    memmove(&t.dim[axis + 1], &t.dim[axis + 2], (t.n - axis - 2) * sizeof *t.dim);
    return po_mk_reshape(&m->d, v, t.n - 1, t.dim);
}

/* Moves an axis to another place. */
static po_value_id moved(maker *m, po_value_id v, uint32_t from, uint32_t to) {
    int perm[PO_MOST_DIMS];
    tensor t = dims_of(m, v);
    uint32_t n = 0;
    for (uint32_t i = 0; i < t.n; i++) {
        if (n == to)
            perm[n++] = (int)from;
        if (i != from)
            perm[n++] = (int)i;
    }
    if (n == to)
        perm[n] = (int)from;
    return m->d.dropped ? v : po_mk_transpose(&m->d, v, perm);
}

/* --- detours: what is moved and moved back --- */

static po_value_id detour(maker *m, po_value_id v) {
    int64_t way = vary(m, 9, 25), bug = way ? vary(m, 3, 45) : 0;
    tensor t = dims_of(m, v);
    if (way == 0 || t.n == 0 || m->d.dropped)
        return v;
    uint32_t axis = (uint32_t)vary(m, t.n + 1, 80), other;
    axis = axis ? axis - 1 : t.n - 1;
    other = (axis + 1) % t.n;
    int64_t dim = t.dim[axis];
    switch (way) {
    case 1: /* a transpose, there and back; or only there */
        v = swapped(m, v, axis, other);
        return bug && dim == t.dim[other] ? v : swapped(m, v, axis, other);
    case 2: /* halves, side by side; in the wrong order, or the second one early */
        if (dim < 2)
            return v;
        {
            po_value_id part[2] = {slice(m, v, axis, 0, dim / 2, 1),
                                   slice(m, v, axis, dim / 2 - (bug == 2), dim - dim / 2, 1)};
            po_value_id turned[2] = {part[1], part[0]};
            return m->d.dropped ? v : po_mk_concat(&m->d, axis, 2, bug == 1 ? turned : part);
        }
    case 3: /* reversed twice, or once */
        v = reversed(m, v, axis);
        return bug ? v : reversed(m, v, axis);
    case 4: /* zeros around, and off again; or beside */
        v = po_mk_pad(&m->d, v, axis, 1, 1);
        return slice(m, v, axis, bug ? 2 * (bug - 1) : 1, dim, 1);
    case 5: /* times 2 and halved; or times 3 */
        v = po_mk_binary(&m->d, PO_OP_Mul, v, po_mk_scalar(&m->d, bug ? 3 : 2));
        return po_mk_binary(&m->d, PO_OP_Mul, v, po_mk_scalar(&m->d, 0.5));
    case 6: /* digits swapped, and back; or only swapped */
        for (int64_t inner = 2; inner < dim; inner++)
            if (dim % inner == 0 && t.n + 1 < PO_MOST_DIMS) {
                v = merged(m, swapped(m, digits(m, v, axis, inner), axis, axis + 1), axis);
                if (bug)
                    return v;
                v = digits(m, v, axis, dim / inner);
                return merged(m, swapped(m, v, axis, axis + 1), axis);
            }
        return v;
    case 7: /* evens and odds, put together again; or odds first */
        if (dim % 2 == 0) {
            po_value_id part[2] = {slice(m, v, axis, bug == 1, dim / 2, 2),
                                   slice(m, v, axis, bug != 1, dim / 2, 2)};
            if (m->d.dropped || t.n + 1 >= PO_MOST_DIMS)
                return v;
            v = digits(m, po_mk_concat(&m->d, axis, 2, part), axis, dim / 2);
            return merged(m, swapped(m, v, axis, axis + 1), axis);
        }
        return v;
    default: /* flat and back; or by other dims */
        if (m->d.dropped)
            return v;
        v = po_mk_reshape(&m->d, v, 1, (int64_t[]){count_of(&t)});
        if (bug && t.n > 1) {
            tensor u = t;
            u.dim[axis] = t.dim[other];
            u.dim[other] = dim;
            v = po_mk_reshape(&m->d, v, u.n, u.dim);
            return swapped(m, v, axis, other);
        }
        return po_mk_reshape(&m->d, v, t.n, t.dim);
    }
}

/* --- convolutions --- */

static po_value_id conv(maker *m, po_value_id x, po_value_id w, const po_map_conv *c) {
    return m->d.dropped ? x : po_mk_conv(&m->d, x, w, PO_NONE, c);
}

static po_value_id padded(maker *m, po_value_id x, const po_map_conv *c, int64_t shift) {
    int64_t before[PO_MOST_DIMS] = {0}, after[PO_MOST_DIMS] = {0};
    for (uint32_t i = 0; i < c->n; i++) {
        before[i + 2] = c->before[i];
        after[i + 2] = c->after[i];
    }
    before[c->n + 1] += shift;
    after[c->n + 1] -= shift;
    return m->d.dropped ? x : po_mk_pads(&m->d, x, before, after);
}

static po_map_conv unpadded(const po_map_conv *c) {
    po_map_conv plain = *c;
    memset(plain.before, 0, sizeof plain.before);
    memset(plain.after, 0, sizeof plain.after);
    return plain;
}

/* A transposed convolution whose pads crop. w: [in, out, kernel]. */
static po_value_id transposed(maker *m, po_value_id x, po_value_id w, const po_map_conv *c) {
    tensor t = dims_of(m, x), k = dims_of(m, w);
    int64_t pads[2 * PO_MAP_AXES];
    if (m->d.dropped || t.dim[1] != k.dim[0]) {
        m->d.dropped = true;
        return x;
    }
    t.dim[1] = k.dim[1];
    for (uint32_t i = 0; i < c->n; i++) {
        pads[i] = c->before[i];
        pads[c->n + i] = c->after[i];
        if (pads[i] < 0 || pads[c->n + i] < 0)
            m->d.dropped = true;
        t.dim[i + 2] = (t.dim[i + 2] - 1) * c->stride[i] + c->dilation[i] * (c->kernel[i] - 1) + 1 -
                       pads[i] - pads[c->n + i];
    }
    po_value_id y = made(m, PO_OP_ConvTranspose, 2, (po_value_id[]){x, w}, &t);
    po_node_set_ints(m->d.g, node_of(m, y), "kernel_shape", c->n, c->kernel);
    po_node_set_ints(m->d.g, node_of(m, y), "strides", c->n, c->stride);
    po_node_set_ints(m->d.g, node_of(m, y), "dilations", c->n, c->dilation);
    po_node_set_ints(m->d.g, node_of(m, y), "pads", 2 * c->n, pads);
    return y;
}

/* The batch laid side by side along the last axis, with a gap of zeros: too short in the bugs. */
static po_value_id conv_side_by_side(maker *m, po_value_id x, po_value_id w, const po_map_conv *c) {
    uint32_t last = c->n - 1, axis = c->n + 1;
    int64_t zeros = po_larger(c->before[last], c->after[last]), gap = zeros;
    int64_t size = c->size[last], bug = vary(m, 3, 60);
    gap = bug == 1 ? 0 : bug == 2 && zeros ? zeros - 1 : zeros;
    if (c->stride[last] != 1 ||
        c->before[last] + c->after[last] != c->dilation[last] * (c->kernel[last] - 1))
        return conv(m, x, w, c);
    x = po_mk_pad(&m->d, x, axis, 0, gap);
    x = merged(m, moved(m, x, 0, axis - 1), axis - 1);
    tensor t = dims_of(m, x);
    memmove(&t.dim[1], &t.dim[0], t.n * sizeof *t.dim);
    t.dim[0] = 1;
    x = conv(m, po_mk_reshape(&m->d, x, t.n + 1, t.dim), w, c);
    x = digits(m, x, axis, size + gap);
    x = merged(m, moved(m, x, axis, 0), 0);
    return slice(m, x, axis, 0, size, 1);
}

/* Dilation along the last axis as phases laid into the batch. */
static po_value_id conv_phases(maker *m, po_value_id x, po_value_id w, const po_map_conv *c) {
    uint32_t last = c->n - 1, axis = c->n + 1;
    int64_t d = c->dilation[last], bug = vary(m, 4, 50);
    if (c->stride[last] != 1 || d == 1)
        return conv(m, x, w, c);
    po_map_conv plain = unpadded(c);
    plain.dilation[last] = 1;
    x = padded(m, x, c, bug == 1 ? 1 : 0);
    tensor t = dims_of(m, x);
    if (m->d.dropped)
        return x;
    int64_t room = po_up_to(t.dim[axis], d), made_size = t.dim[axis] - d * (c->kernel[last] - 1);
    x = po_mk_pad(&m->d, x, axis, 0, room - t.dim[axis]);
    x = merged(m, moved(m, digits(m, x, axis, d), axis + 1, 0), 0);
    x = conv(m, x, w, &plain);
    tensor u = dims_of(m, x);
    if (m->d.dropped)
        return x;
    x = digits(m, x, 0, u.dim[0] / d);
    if (bug == 2)
        x = reversed(m, x, 0);
    x = merged(m, moved(m, x, 0, axis + 1), axis);
    tensor v = dims_of(m, x);
    return slice(m, x, axis, bug == 3 && v.dim[axis] > made_size ? 1 : 0, made_size, 1);
}

/* Outputs in two parts, or input channels in two terms, or taps of the last axis in two terms. */
static po_value_id conv_parts(maker *m, po_value_id x, po_value_id w, const po_map_conv *c,
                              int64_t way) {
    int64_t bug = vary(m, 4, 50), k = way == 0 ? c->out : way == 1 ? c->in : c->kernel[c->n - 1];
    uint32_t last = c->n - 1, axis = c->n + 1;
    if (k < 2 || (c->group != 1 && way < 2))
        return conv(m, x, w, c);
    int64_t first = k / 2, rest = k - first;
    po_value_id part[2];
    if (way == 0) {
        part[0] = conv(m, x, slice(m, w, 0, 0, first, 1), c);
        part[1] = conv(m, x, slice(m, w, 0, first - (bug == 1), rest, 1), c);
        po_value_id turned[2] = {part[1], part[0]};
        return m->d.dropped ? x : po_mk_concat(&m->d, 1, 2, bug == 2 ? turned : part);
    }
    if (way == 1) {
        part[0] = conv(m, slice(m, x, 1, 0, first, 1), slice(m, w, 1, 0, first, 1), c);
        part[1] =
            conv(m, slice(m, x, 1, first - (bug == 1), rest, 1), slice(m, w, 1, first, rest, 1), c);
    } else {
        po_map_conv a = unpadded(c), b = a;
        a.kernel[last] = first;
        b.kernel[last] = rest;
        x = padded(m, x, c, 0);
        tensor t = dims_of(m, x);
        int64_t d = c->dilation[last];
        part[0] = conv(m, slice(m, x, axis, 0, t.dim[axis] - d * rest, 1),
                       slice(m, w, axis, 0, first, 1), &a);
        part[1] = conv(m, slice(m, x, axis, d * first - (bug == 1), t.dim[axis] - d * first, 1),
                       slice(m, w, axis, first, rest, 1), &b);
    }
    if (bug == 2)
        return part[0];
    return m->d.dropped ? x : po_mk_binary(&m->d, PO_OP_Add, part[0], bug == 3 ? part[0] : part[1]);
}

static po_value_id conv_turned(maker *m, po_value_id x, po_value_id w, const po_map_conv *c) {
    uint32_t a = c->n, b = c->n + 1;
    if (c->n < 2)
        return conv(m, x, w, c);
    po_map_conv t = *c;
    for (uint32_t i = 0; i < 2; i++) {
        uint32_t to = c->n - 2 + i, from = c->n - 1 - i;
        t.size[to] = c->size[from];
        t.kernel[to] = c->kernel[from];
        t.stride[to] = c->stride[from];
        t.dilation[to] = c->dilation[from];
        t.before[to] = c->before[from];
        t.after[to] = c->after[from];
    }
    bool bug = c->kernel[c->n - 1] == c->kernel[c->n - 2] && vary(m, 2, 50);
    return swapped(m, conv(m, swapped(m, x, a, b), bug ? w : swapped(m, w, a, b), &t), a, b);
}

static po_value_id conv_as_transposed(maker *m, po_value_id x, po_value_id w,
                                      const po_map_conv *c) {
    po_map_conv t = *c;
    if (c->group != 1 || !po_stride_one(c))
        return conv(m, x, w, c);
    int64_t bug = vary(m, 3, 50);
    for (uint32_t i = 0; i < c->n; i++) {
        int64_t reach = c->dilation[i] * (c->kernel[i] - 1);
        t.before[i] = reach - c->before[i];
        t.after[i] = reach - c->after[i];
        if (t.before[i] < 0 || t.after[i] < 0)
            return conv(m, x, w, c);
        if (bug != 1 || i > 0)
            w = reversed(m, w, i + 2);
    }
    return transposed(m, x, bug == 2 && c->in == c->out ? w : swapped(m, w, 0, 1), &t);
}

static po_value_id conv_step(maker *m, po_value_id x) {
    tensor t = dims_of(m, x), k = {.n = t.n};
    po_map_conv c = {.n = t.n - 2, .batch = t.dim[0], .in = t.dim[1], .group = 1};
    if (chance(m, 4) && t.dim[1] % 2 == 0)
        c.group = 2;
    else if (chance(m, 8))
        c.group = t.dim[1];
    c.out = c.group * draw(m, 1, 3);
    k.dim[0] = c.out;
    k.dim[1] = c.in / c.group;
    bool same = chance(m, 2), transposing = chance(m, 6) && c.group == 1;
    for (uint32_t i = 0; i < c.n; i++) {
        c.size[i] = t.dim[i + 2];
        c.kernel[i] = k.dim[i + 2] = draw(m, 1, 3);
        c.stride[i] = chance(m, 4) ? 2 : 1;
        c.dilation[i] = chance(m, 3) ? draw(m, 2, 3) : 1;
        int64_t reach = c.dilation[i] * (c.kernel[i] - 1);
        c.before[i] = same ? (reach + 1) / 2 : draw(m, 0, 2);
        c.after[i] = same ? reach / 2 : draw(m, 0, 2);
    }
    if (transposing) {
        k.dim[0] = c.in;
        k.dim[1] = draw(m, 1, 3);
        po_value_id w = input(m, k.n, k.dim);
        po_map_conv other = c;
        if (vary(m, 2, 25)) {
            other.before[0] = c.after[0];
            other.after[0] = c.before[0];
        }
        if (vary(m, 2, 15))
            w = reversed(m, w, 2);
        return transposed(m, x, w, &other);
    }
    po_value_id w = input(m, k.n, k.dim), y;
    bool biased = chance(m, 5);
    po_value_id bias = biased ? input(m, 1, &c.out) : PO_NONE;
    int64_t way = vary(m, 12, 55);
    switch (way) {
    case 1:
        y = conv_side_by_side(m, x, w, &c);
        break;
    case 2:
        y = conv_phases(m, x, w, &c);
        break;
    case 3:
    case 4:
    case 5:
        y = conv_parts(m, x, w, &c, way - 3);
        break;
    case 6:
        y = conv_turned(m, x, w, &c);
        break;
    case 7:
        y = conv_as_transposed(m, x, w, &c);
        break;
    case 8: { /* zeros put around first */
        po_map_conv plain = unpadded(&c);
        y = conv(m, padded(m, x, &c, c.after[c.n - 1] ? vary(m, 2, 50) : 0), w, &plain);
        break;
    }
    case 9: /* an axis of weights the wrong way */
        y = conv(m, x, vary(m, 2, 50) ? reversed(m, w, 2) : detour(m, w), &c);
        break;
    case 10: { /* dilation and padding traded */
        po_map_conv other = c;
        int64_t reach = c.dilation[0] * (c.kernel[0] - 1);
        other.dilation[0] = c.dilation[0] == 1 ? 2 : 1;
        other.before[0] += other.dilation[0] * (c.kernel[0] - 1) - reach;
        y = conv(m, x, w, other.before[0] < 0 ? &c : &other);
        break;
    }
    case 11: /* channels in another order than the weights */
        y = conv(m, detour(m, x), w, &c);
        break;
    default:
        y = conv(m, x, w, &c);
        break;
    }
    if (!biased || m->d.dropped)
        return y;
    bias = po_mk_bias_on(&m->d, bias, c.n);
    y = po_mk_binary(&m->d, PO_OP_Add, y, bias);
    return vary(m, 2, 10) ? po_mk_binary(&m->d, PO_OP_Add, y, bias) : y;
}

/* --- other steps --- */

static po_value_id pool_step(maker *m, po_value_id x) {
    tensor t = dims_of(m, x);
    int64_t kernel[PO_MAP_AXES], stride[PO_MAP_AXES], pads[2 * PO_MAP_AXES];
    bool counted = chance(m, 2);
    uint32_t n = t.n - 2;
    for (uint32_t i = 0; i < n; i++) {
        kernel[i] = draw(m, 1, 3);
        stride[i] = draw(m, 1, 2);
        pads[i] = draw(m, 0, kernel[i] - 1);
        pads[n + i] = draw(m, 0, kernel[i] - 1);
        t.dim[i + 2] = (t.dim[i + 2] + pads[i] + pads[n + i] - kernel[i]) / stride[i] + 1;
    }
    counted ^= vary(m, 2, 20) != 0;
    po_value_id y = made(m, PO_OP_AveragePool, 1, &x, &t);
    po_node_set_ints(m->d.g, node_of(m, y), "kernel_shape", n, kernel);
    po_node_set_ints(m->d.g, node_of(m, y), "strides", n, stride);
    po_node_set_ints(m->d.g, node_of(m, y), "pads", 2 * n, pads);
    po_node_set_int(m->d.g, node_of(m, y), "count_include_pad", counted);
    return y;
}

static po_value_id matmul_step(maker *m, po_value_id x) {
    tensor t = dims_of(m, x);
    int64_t k = t.dim[t.n - 1], dims[2] = {k, draw(m, 1, 4)};
    po_value_id w = input(m, 2, dims);
    int64_t way = vary(m, 5, 50), bug = vary(m, 3, 40);
    if (way == 1 && k > 1) {
        po_value_id a =
            po_mk_matmul(&m->d, slice(m, x, t.n - 1, 0, k / 2, 1), slice(m, w, 0, 0, k / 2, 1));
        po_value_id b = po_mk_matmul(&m->d, slice(m, x, t.n - 1, k / 2 - (bug == 1), k - k / 2, 1),
                                     slice(m, w, 0, k / 2, k - k / 2, 1));
        return m->d.dropped ? x : po_mk_binary(&m->d, PO_OP_Add, a, bug == 2 ? a : b);
    }
    if (way == 2 && t.n > 2) {
        po_value_id flat = po_mk_reshape(&m->d, x, 2, (int64_t[]){count_of(&t) / k, k});
        t.dim[t.n - 1] = dims[1];
        return po_mk_reshape(&m->d, po_mk_matmul(&m->d, flat, w), t.n, t.dim);
    }
    if (way == 3)
        return po_mk_matmul(&m->d, detour(m, x), w);
    if (way == 4)
        return po_mk_matmul(&m->d, x,
                            bug == 1 && dims[1] == k ? swapped(m, w, 0, 1) : detour(m, w));
    return po_mk_matmul(&m->d, x, w);
}

/* An axis split into digits, all axes permuted, and two neighbours merged. */
static po_value_id digits_step(maker *m, po_value_id x) {
    tensor t = dims_of(m, x);
    uint32_t axis = (uint32_t)draw(m, 0, t.n - 1);
    int64_t inner = draw(m, 1, 3);
    if (t.dim[axis] % inner || t.n > 5)
        inner = 1;
    x = digits(m, x, axis, inner);
    uint32_t a = (uint32_t)draw(m, 0, t.n), b = (uint32_t)draw(m, 0, t.n);
    if (vary(m, 2, 15))
        b = (b + 1) % (t.n + 1);
    x = swapped(m, x, a, b);
    return merged(m, x, (uint32_t)draw(m, 0, t.n - 1));
}

static po_value_id add_step(maker *m, po_value_id x) {
    tensor t = dims_of(m, x);
    uint32_t axis = (uint32_t)draw(m, 0, t.n - 1);
    po_value_id other;
    switch (draw(m, 0, 3)) {
    case 0:
        other = input(m, t.n, t.dim);
        break;
    case 1: /* shifted */
        other = po_mk_pad(&m->d, x, axis, 1, -1);
        if (vary(m, 2, 30))
            other = po_mk_pad(&m->d, x, axis, -1, 1);
        break;
    case 2:
        other = reversed(m, x, axis);
        break;
    default:
        other = input(m, 1, &t.dim[t.n - 1]);
        break;
    }
    if (m->d.dropped)
        return x;
    int64_t bug = vary(m, 4, 20);
    if (bug == 1)
        return x;
    if (bug == 2)
        other = po_mk_binary(&m->d, PO_OP_Add, other, other);
    return po_mk_binary(&m->d, bug == 3 ? PO_OP_Sub : PO_OP_Add, x, detour(m, other));
}

/* Products of activations, of an input with itself too, and with tables of numbers. */
static po_value_id mul_step(maker *m, po_value_id x) {
    tensor t = dims_of(m, x);
    uint32_t axis = (uint32_t)draw(m, 0, t.n - 1);
    int64_t what = draw(m, 0, 4);
    if (what == 0)
        return po_mk_binary(&m->d, PO_OP_Mul, x, detour(m, input(m, t.n, t.dim)));
    if (what == 1)
        return po_mk_binary(&m->d, PO_OP_Mul, x, detour(m, reversed(m, x, axis)));
    if (what == 2) {
        po_value_id shifted = po_mk_pad(&m->d, x, axis, vary(m, 2, 30) ? 0 : 1, -1);
        if (vary(m, 2, 50))
            shifted = po_mk_pad(&m->d, x, axis, -1, 1);
        tensor u = dims_of(m, shifted);
        return m->d.dropped || u.dim[axis] != t.dim[axis]
                   ? x
                   : po_mk_binary(&m->d, PO_OP_Mul, x, shifted);
    }
    double numbers[64];
    int64_t n = t.dim[t.n - 1] < 64 ? t.dim[t.n - 1] : 1, odd = draw(m, 0, 2),
            at = draw(m, 0, n - 1);
    for (int64_t i = 0; i < n; i++)
        numbers[i] = i == at ? (double[]){2, 3, 0.37}[odd] : 1;
    if (vary(m, 2, 25))
        numbers[at] = 1;
    return po_mk_binary(&m->d, PO_OP_Mul, x, po_mk_table(&m->d, 1, &n, numbers));
}

static po_value_id move_step(maker *m, po_value_id x) {
    tensor t = dims_of(m, x);
    uint32_t axis = (uint32_t)draw(m, 0, t.n - 1), other = (uint32_t)draw(m, 0, t.n - 1);
    int64_t dim = t.dim[axis], step = dim > 2 ? draw(m, 1, 2) : 1, what = draw(m, 0, 6);
    int64_t begin = draw(m, 0, dim > 2 ? 1 : 0), before = draw(m, 0, 2), after = draw(m, 0, 2);
    switch (what) {
    case 0: { /* a slice; or one beside */
        int64_t n = (dim - begin - 1) / step + 1;
        if (vary(m, 2, 30) && begin + (n - 1) * step + 1 < dim)
            begin++;
        else if (begin && vary(m, 2, 30))
            begin--;
        return slice(m, x, axis, begin, n, step);
    }
    case 1:
        if (before && vary(m, 2, 30)) {
            before--;
            after++;
        }
        return po_mk_pad(&m->d, x, axis, before, after);
    case 2: { /* with a part of itself */
        po_value_id part[2] = {x, slice(m, x, axis, begin, dim - begin, 1)};
        po_value_id turned[2] = {part[1], part[0]};
        return m->d.dropped ? x : po_mk_concat(&m->d, axis, 2, vary(m, 2, 30) ? turned : part);
    }
    case 3: {
        t.dim[axis] = draw(m, 1, 3);
        po_value_id part[2] = {x, input(m, t.n, t.dim)};
        po_value_id turned[2] = {part[1], part[0]};
        return po_mk_concat(&m->d, axis, 2, vary(m, 2, 30) ? turned : part);
    }
    case 4:
        return swapped(m, x, axis, other);
    case 5: { /* the sum of an axis, and that repeated */
        tensor one = t;
        one.dim[axis] = 1;
        po_value_id in[2] = {x, po_add_i64s(m->d.g, NULL, 1, (int64_t[]){axis})};
        po_value_id sum = made(m, vary(m, 2, 20) ? PO_OP_ReduceMean : PO_OP_ReduceSum, 2, in, &one);
        po_value_id to[2] = {sum, po_add_i64s(m->d.g, NULL, t.n, t.dim)};
        return chance(m, 2) ? sum : made(m, PO_OP_Expand, 2, to, &t);
    }
    default: { /* elements in any order */
        int64_t at[16];
        if (dim > 16)
            return x;
        for (int64_t i = 0; i < dim; i++)
            at[i] = draw(m, 0, dim - 1);
        if (vary(m, 2, 30))
            at[dim - 1] = (at[dim - 1] + 1) % dim;
        po_value_id in[2] = {x, po_add_i64s(m->d.g, NULL, (uint32_t)dim, at)};
        po_value_id y = made(m, PO_OP_Gather, 2, in, &t);
        po_node_set_int(m->d.g, node_of(m, y), "axis", axis);
        return y;
    }
    }
}

static po_value_id step(maker *m, po_value_id x) {
    tensor t = dims_of(m, x);
    bool map = t.n >= 3 && t.n <= 5;
    int64_t what = draw(m, 0, 11);
    if (what < 5 && map)
        return conv_step(m, x);
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
    tensor t = {.n = (uint32_t)draw(m, 2, 5)};
    for (uint32_t i = 0; i < t.n; i++)
        t.dim[i] = i < 2 ? draw(m, 1, 4) : draw(m, 2, t.n == 5 ? 5 : 8);
    po_value_id x = input(m, t.n, t.dim), first = PO_NONE;
    for (int64_t i = draw(m, 1, 4); i > 0 && !m->d.dropped; i--) {
        x = detour(m, x);
        if (m->d.dropped)
            break;
        x = step(m, x);
        t = dims_of(m, x);
        if (t.n == 0 || t.n > 6 || count_of(&t) > MOST_ELEMENTS)
            m->d.dropped = true;
        if (first == PO_NONE)
            first = x;
    }
    bool two = chance(m, 6);
    if (!m->d.dropped && two && first != x && g->values[first].producer != PO_NONE)
        po_graph_add_output(g, first);
    if (!m->d.dropped) {
        x = detour(m, x);
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

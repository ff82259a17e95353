/* Convolutions of random programs, and the ways in which mutants write them. */
#include "random_parts.h"

static po_value_id conv(maker *m, po_value_id x, po_value_id w, const po_conv *c) {
    return m->d.dropped ? x : po_mk_conv(&m->d, x, w, PO_NONE, c);
}

static po_value_id padded(maker *m, po_value_id x, const po_conv *c, int64_t shift) {
    int64_t before[PO_MOST_DIMS] = {0}, after[PO_MOST_DIMS] = {0};
    for (uint32_t i = 0; i < c->n; i++) {
        before[i + 2] = c->before[i];
        after[i + 2] = c->after[i];
    }
    before[c->n + 1] += shift;
    after[c->n + 1] -= shift;
    return m->d.dropped ? x : po_mk_pads(&m->d, x, before, after);
}

static po_conv unpadded(const po_conv *c) {
    po_conv plain = *c;
    memset(plain.before, 0, sizeof plain.before);
    memset(plain.after, 0, sizeof plain.after);
    return plain;
}

/* A transposed convolution whose pads crop. w: [in, out, kernel]. */
static po_value_id transposed(maker *m, po_value_id x, po_value_id w, const po_conv *c) {
    tensor t = rl_dims_of(m, x), k = rl_dims_of(m, w);
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
    po_value_id y = rl_made(m, PO_OP_ConvTranspose, 2, (po_value_id[]){x, w}, &t);
    po_node_set_ints(m->d.g, rl_node_of(m, y), "kernel_shape", c->n, c->kernel);
    po_node_set_ints(m->d.g, rl_node_of(m, y), "strides", c->n, c->stride);
    po_node_set_ints(m->d.g, rl_node_of(m, y), "dilations", c->n, c->dilation);
    po_node_set_ints(m->d.g, rl_node_of(m, y), "pads", 2 * c->n, pads);
    return y;
}

/* The batch laid side by side along the last axis, with a gap of zeros: too short in the bugs. */
static po_value_id conv_side_by_side(maker *m, po_value_id x, po_value_id w, const po_conv *c) {
    uint32_t last = c->n - 1, axis = c->n + 1;
    int64_t zeros = po_larger(c->before[last], c->after[last]), gap = zeros;
    int64_t size = c->size[last], bug = rl_vary(m, 3, 60);
    gap = bug == 1 ? 0 : bug == 2 && zeros ? zeros - 1 : zeros;
    if (c->stride[last] != 1 ||
        c->before[last] + c->after[last] != c->dilation[last] * (c->kernel[last] - 1))
        return conv(m, x, w, c);
    x = po_mk_pad(&m->d, x, axis, 0, gap);
    x = rl_merged(m, rl_moved(m, x, 0, axis - 1), axis - 1);
    tensor t = rl_dims_of(m, x);
    memmove(&t.dim[1], &t.dim[0], t.n * sizeof *t.dim);
    t.dim[0] = 1;
    x = conv(m, po_mk_reshape(&m->d, x, t.n + 1, t.dim), w, c);
    x = rl_digits(m, x, axis, size + gap);
    x = rl_merged(m, rl_moved(m, x, axis, 0), 0);
    return rl_slice(m, x, axis, 0, size, 1);
}

/* Dilation along the last axis as phases laid into the batch. */
static po_value_id conv_phases(maker *m, po_value_id x, po_value_id w, const po_conv *c) {
    uint32_t last = c->n - 1, axis = c->n + 1;
    int64_t d = c->dilation[last], bug = rl_vary(m, 4, 50);
    if (c->stride[last] != 1 || d == 1)
        return conv(m, x, w, c);
    po_conv plain = unpadded(c);
    plain.dilation[last] = 1;
    x = padded(m, x, c, bug == 1 ? 1 : 0);
    tensor t = rl_dims_of(m, x);
    if (m->d.dropped)
        return x;
    int64_t room = po_up_to(t.dim[axis], d), made_size = t.dim[axis] - d * (c->kernel[last] - 1);
    x = po_mk_pad(&m->d, x, axis, 0, room - t.dim[axis]);
    x = rl_merged(m, rl_moved(m, rl_digits(m, x, axis, d), axis + 1, 0), 0);
    x = conv(m, x, w, &plain);
    tensor u = rl_dims_of(m, x);
    if (m->d.dropped)
        return x;
    x = rl_digits(m, x, 0, u.dim[0] / d);
    if (bug == 2)
        x = rl_reversed(m, x, 0);
    x = rl_merged(m, rl_moved(m, x, 0, axis + 1), axis);
    tensor v = rl_dims_of(m, x);
    return rl_slice(m, x, axis, bug == 3 && v.dim[axis] > made_size ? 1 : 0, made_size, 1);
}

/* Outputs in two parts, or input channels in two terms, or taps of the last axis in two terms. */
static po_value_id conv_parts(maker *m, po_value_id x, po_value_id w, const po_conv *c,
                              int64_t way) {
    int64_t bug = rl_vary(m, 4, 50), k = way == 0 ? c->out : way == 1 ? c->in : c->kernel[c->n - 1];
    uint32_t last = c->n - 1, axis = c->n + 1;
    if (k < 2 || (c->group != 1 && way < 2))
        return conv(m, x, w, c);
    int64_t first = k / 2, rest = k - first;
    po_value_id part[2];
    if (way == 0) {
        part[0] = conv(m, x, rl_slice(m, w, 0, 0, first, 1), c);
        part[1] = conv(m, x, rl_slice(m, w, 0, first - (bug == 1), rest, 1), c);
        po_value_id turned[2] = {part[1], part[0]};
        return m->d.dropped ? x : po_mk_concat(&m->d, 1, 2, bug == 2 ? turned : part);
    }
    if (way == 1) {
        part[0] = conv(m, rl_slice(m, x, 1, 0, first, 1), rl_slice(m, w, 1, 0, first, 1), c);
        part[1] = conv(m, rl_slice(m, x, 1, first - (bug == 1), rest, 1),
                       rl_slice(m, w, 1, first, rest, 1), c);
    } else {
        po_conv a = unpadded(c), b = a;
        a.kernel[last] = first;
        b.kernel[last] = rest;
        x = padded(m, x, c, 0);
        tensor t = rl_dims_of(m, x);
        int64_t d = c->dilation[last];
        part[0] = conv(m, rl_slice(m, x, axis, 0, t.dim[axis] - d * rest, 1),
                       rl_slice(m, w, axis, 0, first, 1), &a);
        part[1] = conv(m, rl_slice(m, x, axis, d * first - (bug == 1), t.dim[axis] - d * first, 1),
                       rl_slice(m, w, axis, first, rest, 1), &b);
    }
    if (bug == 2)
        return part[0];
    return m->d.dropped ? x : po_mk_binary(&m->d, PO_OP_Add, part[0], bug == 3 ? part[0] : part[1]);
}

static po_value_id conv_turned(maker *m, po_value_id x, po_value_id w, const po_conv *c) {
    uint32_t a = c->n, b = c->n + 1;
    if (c->n < 2)
        return conv(m, x, w, c);
    po_conv t = *c;
    for (uint32_t i = 0; i < 2; i++) {
        uint32_t to = c->n - 2 + i, from = c->n - 1 - i;
        t.size[to] = c->size[from];
        t.kernel[to] = c->kernel[from];
        t.stride[to] = c->stride[from];
        t.dilation[to] = c->dilation[from];
        t.before[to] = c->before[from];
        t.after[to] = c->after[from];
    }
    bool bug = c->kernel[c->n - 1] == c->kernel[c->n - 2] && rl_vary(m, 2, 50);
    return rl_swapped(m, conv(m, rl_swapped(m, x, a, b), bug ? w : rl_swapped(m, w, a, b), &t), a,
                      b);
}

static po_value_id conv_as_transposed(maker *m, po_value_id x, po_value_id w, const po_conv *c) {
    po_conv t = *c;
    if (c->group != 1 || !po_conv_stride_one(c))
        return conv(m, x, w, c);
    int64_t bug = rl_vary(m, 3, 50);
    for (uint32_t i = 0; i < c->n; i++) {
        int64_t reach = c->dilation[i] * (c->kernel[i] - 1);
        t.before[i] = reach - c->before[i];
        t.after[i] = reach - c->after[i];
        if (t.before[i] < 0 || t.after[i] < 0)
            return conv(m, x, w, c);
        if (bug != 1 || i > 0)
            w = rl_reversed(m, w, i + 2);
    }
    return transposed(m, x, bug == 2 && c->in == c->out ? w : rl_swapped(m, w, 0, 1), &t);
}

po_value_id rl_conv_step(maker *m, po_value_id x) {
    tensor t = rl_dims_of(m, x), k = {.n = t.n};
    po_conv c = {.n = t.n - 2, .batch = t.dim[0], .in = t.dim[1], .group = 1};
    if (rl_chance(m, 4) && t.dim[1] % 2 == 0)
        c.group = 2;
    else if (rl_chance(m, 8))
        c.group = t.dim[1];
    c.out = c.group * rl_draw(m, 1, 3);
    k.dim[0] = c.out;
    k.dim[1] = c.in / c.group;
    bool same = rl_chance(m, 2), transposing = rl_chance(m, 6) && c.group == 1;
    for (uint32_t i = 0; i < c.n; i++) {
        c.size[i] = t.dim[i + 2];
        c.kernel[i] = k.dim[i + 2] = rl_draw(m, 1, 3);
        c.stride[i] = rl_chance(m, 4) ? 2 : 1;
        c.dilation[i] = rl_chance(m, 3) ? rl_draw(m, 2, 3) : 1;
        int64_t reach = c.dilation[i] * (c.kernel[i] - 1);
        c.before[i] = same ? (reach + 1) / 2 : rl_draw(m, 0, 2);
        c.after[i] = same ? reach / 2 : rl_draw(m, 0, 2);
    }
    if (transposing) {
        k.dim[0] = c.in;
        k.dim[1] = rl_draw(m, 1, 3);
        po_value_id w = rl_input(m, k.n, k.dim);
        po_conv other = c;
        if (rl_vary(m, 2, 25)) {
            other.before[0] = c.after[0];
            other.after[0] = c.before[0];
        }
        if (rl_vary(m, 2, 15))
            w = rl_reversed(m, w, 2);
        return transposed(m, x, w, &other);
    }
    po_value_id w = rl_input(m, k.n, k.dim), y;
    bool biased = rl_chance(m, 5);
    po_value_id bias = biased ? rl_input(m, 1, &c.out) : PO_NONE;
    int64_t way = rl_vary(m, 12, 55);
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
        po_conv plain = unpadded(&c);
        y = conv(m, padded(m, x, &c, c.after[c.n - 1] ? rl_vary(m, 2, 50) : 0), w, &plain);
        break;
    }
    case 9: /* an axis of weights the wrong way */
        y = conv(m, x, rl_vary(m, 2, 50) ? rl_reversed(m, w, 2) : rl_detour(m, w), &c);
        break;
    case 10: { /* dilation and padding traded */
        po_conv other = c;
        int64_t reach = c.dilation[0] * (c.kernel[0] - 1);
        other.dilation[0] = c.dilation[0] == 1 ? 2 : 1;
        other.before[0] += other.dilation[0] * (c.kernel[0] - 1) - reach;
        y = conv(m, x, w, other.before[0] < 0 ? &c : &other);
        break;
    }
    case 11: /* channels in another order than the weights */
        y = conv(m, rl_detour(m, x), w, &c);
        break;
    default:
        y = conv(m, x, w, &c);
        break;
    }
    if (!biased || m->d.dropped)
        return y;
    y = po_mk_biased(&m->d, y, bias, c.n);
    return rl_vary(m, 2, 10) ? po_mk_biased(&m->d, y, bias, c.n) : y;
}

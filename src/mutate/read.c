/* Convolutions as derivations see them. */
#include "mutate/derive.h"

static bool list(const po_node *n, const char *name, uint32_t count, int64_t *to, int64_t fill) {
    uint32_t have;
    const int64_t *v = po_node_ints(n, name, &have);
    for (uint32_t i = 0; i < count; i++)
        to[i] = v && have == count ? v[i] : fill;
    return !v || have == count;
}

/* Lists of the node; dims of x and y. Padding is not yet looked at. */
static bool read(const po_graph *g, po_node_id id, po_map_conv *c, int64_t w[PO_MOST_DIMS]) {
    const po_node *n = &g->nodes[id];
    int64_t x[PO_MOST_DIMS], y[PO_MOST_DIMS];
    uint32_t rx, rw, ry;
    if (n->n_in < 2 || !po_rearrangeable(g, n->in[0]) || !po_dims_of(g, n->in[0], &rx, x) ||
        !po_dims_of(g, n->in[1], &rw, w) || !po_dims_of(g, n->out[0], &ry, y) || rx < 3 ||
        rx > 2 + PO_MAP_AXES || rw != rx || ry != rx)
        return false;
    *c = (po_map_conv){.node = id,
                       .x = n->in[0],
                       .w = n->in[1],
                       .b = n->n_in > 2 ? n->in[2] : PO_NONE,
                       .y = n->out[0],
                       .n = rx - 2,
                       .batch = x[0],
                       .in = x[1],
                       .out = y[1],
                       .group = po_node_int(n, "group", 1)};
    for (uint32_t i = 0; i < rx; i++)
        if (x[i] < 1 || w[i] < 1 || y[i] < 1)
            return false;
    for (uint32_t i = 0; i < c->n; i++) {
        c->size[i] = x[i + 2];
        c->to[i] = y[i + 2];
        c->kernel[i] = w[i + 2];
    }
    return list(n, "strides", c->n, c->stride, 1) && list(n, "dilations", c->n, c->dilation, 1) &&
           c->group > 0 && c->in % c->group == 0 && c->out % c->group == 0;
}

static bool explicit_pads(const po_node *n, po_map_conv *c) {
    int64_t pads[2 * PO_MAP_AXES];
    if (!list(n, "pads", 2 * c->n, pads, 0))
        return false;
    for (uint32_t i = 0; i < c->n; i++) {
        c->before[i] = pads[i];
        c->after[i] = pads[c->n + i];
        if (pads[i] < 0 || pads[c->n + i] < 0)
            return false;
    }
    return true;
}

bool po_read_map_conv(const po_graph *g, po_node_id id, po_map_conv *c) {
    const po_node *n = &g->nodes[id];
    int64_t w[PO_MOST_DIMS];
    if (n->op != PO_OP_Conv || !read(g, id, c, w) || w[0] != c->out || w[1] * c->group != c->in)
        return false;
    bool upper = po_node_string_is(n, "auto_pad", "SAME_UPPER", "NOTSET");
    bool lower = po_node_string_is(n, "auto_pad", "SAME_LOWER", "NOTSET");
    bool given = po_node_string_is(n, "auto_pad", "NOTSET", "NOTSET");
    if (given && !explicit_pads(n, c))
        return false;
    for (uint32_t i = 0; i < c->n; i++) {
        int64_t span = c->dilation[i] * (c->kernel[i] - 1) + 1;
        if (upper || lower) {
            int64_t all = po_larger((c->to[i] - 1) * c->stride[i] + span - c->size[i], 0);
            c->before[i] = upper ? all / 2 : all - all / 2;
            c->after[i] = all - c->before[i];
        }
        int64_t room = c->size[i] + c->before[i] + c->after[i] - span;
        if (c->stride[i] < 1 || c->dilation[i] < 1 || room < 0 ||
            room / c->stride[i] + 1 != c->to[i])
            return false;
    }
    return true;
}

bool po_read_conv_transpose(const po_graph *g, po_node_id id, po_map_conv *c) {
    const po_node *n = &g->nodes[id];
    int64_t w[PO_MOST_DIMS];
    return n->op == PO_OP_ConvTranspose && read(g, id, c, w) && w[0] == c->in &&
           w[1] * c->group == c->out && po_node_string_is(n, "auto_pad", "NOTSET", "NOTSET") &&
           !po_node_attr(n, "output_shape") && explicit_pads(n, c);
}

int64_t po_kernel_taps(const po_map_conv *c) {
    int64_t taps = 1;
    for (uint32_t i = 0; i < c->n; i++)
        taps *= c->kernel[i];
    return taps;
}

double po_map_conv_work(const po_map_conv *c) {
    double work = (double)c->batch * (double)c->out * (double)(c->in / c->group);
    for (uint32_t i = 0; i < c->n; i++)
        work *= (double)(c->to[i] * c->kernel[i]);
    return work;
}

bool po_stride_one(const po_map_conv *c) {
    for (uint32_t i = 0; i < c->n; i++)
        if (c->stride[i] != 1)
            return false;
    return true;
}

bool po_dilation_one(const po_map_conv *c) {
    for (uint32_t i = 0; i < c->n; i++)
        if (c->dilation[i] != 1)
            return false;
    return true;
}

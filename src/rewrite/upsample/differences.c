/* Convolutions over nearest upsampling as products with the small map and its differences.
 *
 * Along one axis let u = up_f(z), a kernel w of k = 2 p + 1 taps keep the size, p <= f, and
 * d[j] = z[j] - z[j-1] (zeros around z). A window that starts in pixel j of the small map leaves it
 * only to a neighbour, so output f j + r is
 *     (sum w) z[j]  -  (sum of the taps left of pixel j) d[j]  +  (sum of those right of it) d[j+1]
 * and only the p outputs at either edge have such taps. So k products a small pixel make all f
 * outputs; in two dimensions k k products, of z, its differences along each axis and along both,
 * instead of the 4 f f of phases. The products are pointwise convolutions; a table of 0 and 1 with
 * f f rows adds them up, and DepthToSpace puts them in place. */
#include "rewrite/passes.h"
#include "rewrite/upsample/split.h"

typedef struct upsampled_conv {
    po_conv c;
    po_value_id z;
    int64_t f, k, p;
    po_dim n, h, w; /* of the small map */
} upsampled_conv;

static bool pays(int64_t f, int64_t k, int64_t channels, double more) {
    /* Phases read 2 x 2 pixels of the small map, whatever the kernel, while 2 p <= f; else more. */
    double reach = (double)(k - 1 <= f ? 2 : 3);
    double products = (double)(k * k) / (double)(f * f);
    return reach * reach * (double)channels >
           po_numbers.differences.gain *
               (products * ((double)channels + po_numbers.differences.product) +
                po_numbers.differences.element + more);
}

/* The map that y is upsampled from, through upsamplings of upsamplings. */
static bool upsampled_through(const po_graph *graph, po_value_id y, po_value_id *z, int64_t *f) {
    int64_t factor;
    *f = 1;
    *z = y;
    while (*f <= 64 && po_upsampled(graph, *z, z, &factor))
        *f *= factor;
    return *f > 1 && *f <= 64;
}

static bool read_upsampled(const po_graph *graph, po_node_id id, upsampled_conv *u) {
    if (!po_conv_read(graph, id, &u->c) || !po_conv_keeps_size(&u->c) ||
        !upsampled_through(graph, u->c.x, &u->z, &u->f))
        return false;
    u->k = u->c.kernel[0];
    u->p = u->c.before[0];
    if (po_rank_of(graph, u->z) != 4 || u->p > u->f || u->c.in % PO_CHANNEL_BLOCK ||
        po_dim_of(graph, u->z, 1) != u->c.in)
        return false;
    const po_dim *d = graph->values[u->z].type.dims;
    u->n = d[0];
    u->h = d[2];
    u->w = d[3];
    return u->n.value != 0 && u->h.value != 0 && u->w.value != 0 && pays(u->f, u->k, u->c.in, 0);
}

/* Which taps go into each product, [k, k]: all; minus those left of the pixel for output r < p;
 * those right of it for output f - 1 - q, q < p. */
static const double *tap_table(po_arena *arena, const upsampled_conv *u) {
    double *t = PO_NEW_N(arena, double, u->k * u->k);
    for (int64_t d = 0; d < u->k; d++) {
        t[d] = 1;
        for (int64_t r = 0; r < u->p; r++) {
            t[(1 + r) * u->k + d] = d < u->p - r ? -1 : 0;
            t[(1 + u->p + r) * u->k + d] = d > u->p + r ? 1 : 0;
        }
    }
    return t;
}

/* Which products each output takes along one axis. */
static bool takes(const upsampled_conv *u, int64_t output, int64_t product) {
    return product == 0 ||
           (product <= u->p ? output == product - 1 : output == u->f - 1 - (product - 1 - u->p));
}

/* The sums of the products for all f f outputs: [f f, k k] of 0 and 1. */
static po_value_id sum_table(po_graph *graph, po_arena *arena, const upsampled_conv *u) {
    int64_t rows = u->f * u->f, columns = u->k * u->k;
    double *t = PO_NEW_N(arena, double, rows *columns);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++)
            t[i * columns + j] =
                takes(u, i / u->f, j / u->k) && takes(u, i % u->f, j % u->k) ? 1 : 0;
    return po_add_floats(graph, NULL, u->c.dtype, 2, (const int64_t[]){rows, columns}, t);
}

/* Differences of the small map along the axes where `along` is 1: a depthwise convolution. */
static po_value_id difference(po_graph *graph, po_arena *arena, const upsampled_conv *u,
                              const int64_t along[2]) {
    if (!along[0] && !along[1])
        return u->z;
    /* -1 for the earlier pixel along each axis. */
    static const double one[2] = {-1, 1}, two[4] = {1, -1, -1, 1};
    po_conv like = po_conv_pointwise(u->c.dtype, u->c.in, u->c.in);
    for (int axis = 0; axis < 2; axis++) {
        like.kernel[axis] = 1 + along[axis];
        like.before[axis] = like.after[axis] = along[axis];
    }
    const po_taps taps = {along[0] && along[1] ? two : one, 0};
    return po_conv_each(graph, arena, u->c.node, u->z, &like, u->c.in, &taps, PO_NONE);
}

/* The small map with so many channels. */
static po_type like_small(const po_graph *graph, const upsampled_conv *u, int64_t channels) {
    return po_type_tensor(graph->arena, u->c.dtype, 4,
                          (po_dim[]){u->n, PO_DIM(channels), u->h, u->w});
}

/* Channels [from, from + out) of a map at the small map's pixels: differences [j + shift], of which
 * there is one more along an axis than pixels. */
static po_value_id cut(po_graph *graph, const upsampled_conv *u, po_value_id x, int64_t from,
                       const int64_t along[2], const int64_t shift[2]) {
    int64_t axes[3] = {1}, first[3] = {from}, last[3] = {from + u->c.out};
    uint32_t n = 1;
    for (int axis = 0; axis < 2; axis++)
        if (along[axis]) {
            axes[n] = 2 + axis;
            first[n] = shift[axis];
            last[n++] = shift[axis] ? INT64_MAX : -1;
        }
    po_type type = like_small(graph, u, u->c.out);
    return po_add_slice(graph, u->c.node, x, n, axes, first, last, NULL, &type);
}

/* The products of one kind in the places [k, k] of `parts`; weights are all made before. */
static void add_products(po_graph *graph, po_arena *arena, const upsampled_conv *u,
                         const int64_t along[2], po_value_id weights, po_value_id bias,
                         po_value_id *parts) {
    int64_t count[2], first[2];
    for (int axis = 0; axis < 2; axis++) {
        first[axis] = along[axis];
        count[axis] = along[axis] ? u->k - 1 : 1;
    }
    po_conv made = po_conv_pointwise(u->c.dtype, count[0] * count[1] * u->c.out, u->c.in);
    po_value_id x = difference(graph, arena, u, along);
    po_value_id all = po_conv_add(graph, u->c.node, x, &made, weights, bias);
    for (int64_t i = 0; i < count[0] * count[1]; i++) {
        int64_t a = first[0] + i / count[1], b = first[1] + i % count[1];
        const int64_t shift[2] = {a > u->p, b > u->p};
        parts[a * u->k + b] =
            !along[0] && !along[1] ? all : cut(graph, u, all, i * u->c.out, along, shift);
    }
}

static const int64_t kinds[4][2] = {{0, 0}, {0, 1}, {1, 0}, {1, 1}};

/* [products of one kind, out, in, 1, 1]. */
static po_value_id product_weights(po_graph *graph, po_arena *arena, const upsampled_conv *u,
                                   const po_recipe *w, const int64_t along[2]) {
    const po_recipe *table =
        po_recipe_literal(arena, 2, (const int64_t[]){u->k, u->k}, tap_table(arena, u));
    const po_recipe *part[2];
    int64_t count = u->c.out;
    for (int axis = 0; axis < 2; axis++) {
        part[axis] = po_recipe_slice(arena, table, 0, along[axis], along[axis] ? u->k : 1);
        count *= along[axis] ? u->k - 1 : 1;
    }
    w = po_recipe_einsum(arena, "oiyx,bx,ay->aboi", 3, (const po_recipe *[]){w, part[1], part[0]});
    return po_add_recipe(graph, NULL, u->c.dtype,
                         po_recipe_reshape(arena, w, 4, (const int64_t[]){count, u->c.in, 1, 1}));
}

/* As a Reshape is told: the length, or what stands for one that is not known. */
static int64_t told(po_dim d, int64_t otherwise) {
    return d.value > 0 ? d.value : otherwise;
}

/* [n, outputs out, h w] as [n, outputs out, h, w]. */
static po_value_id as_map(po_graph *graph, const upsampled_conv *u, po_value_id y) {
    const int64_t channels = u->f * u->f * u->c.out;
    po_type type = like_small(graph, u, channels);
    const int64_t dims[4] = {told(u->n, 0), channels, told(u->h, -1), told(u->w, -1)};
    if (u->h.value > 0 || u->w.value > 0)
        return po_add_reshape_told(graph, u->c.node, y, 4, dims, PO_NONE, &type);
    const po_value_id size = po_add_lengths(graph, u->c.node, u->z, 2, 2);
    return po_add_reshape_told(graph, u->c.node, y, 2, dims, size, &type);
}

/* The products [n, k k out, h, w], added up for all f f outputs: [n, f f out, h, w]. */
static po_value_id add_up(po_graph *graph, po_arena *arena, const upsampled_conv *u,
                          po_value_id y) {
    const int64_t products = u->k * u->k, outputs = u->f * u->f;
    int64_t plane = -1;
    if (u->h.value > 0 && u->w.value > 0)
        plane = u->c.out * u->h.value * u->w.value;
    const po_dim length = plane > 0 ? PO_DIM(plane) : PO_DIM_UNKNOWN;
    po_type type =
        po_type_tensor(graph->arena, u->c.dtype, 3, (po_dim[]){u->n, PO_DIM(products), length});
    y = po_add_reshape_told(graph, u->c.node, y, 3,
                            (const int64_t[]){told(u->n, 0), products, plane}, PO_NONE, &type);
    type = po_type_tensor(graph->arena, u->c.dtype, 3, (po_dim[]){u->n, PO_DIM(outputs), length});
    po_value_id table = sum_table(graph, arena, u);
    y = po_add_op(graph, u->c.node, PO_OP_MatMul, 2, (po_value_id[]){table, y}, &type);
    return as_map(graph, u, y);
}

static bool by_differences(po_graph *graph, po_arena *arena, po_node_id id) {
    upsampled_conv u;
    if (!read_upsampled(graph, id, &u))
        return false;
    const po_recipe *w = po_conv_weights(graph, arena, &u.c);
    po_value_id weights[4], *parts = PO_NEW_N(arena, po_value_id, u.k * u.k);
    for (int i = 0; i < 4; i++)
        if ((weights[i] = product_weights(graph, arena, &u, w, kinds[i])) == PO_NONE)
            return false;
    for (int i = 0; i < 4; i++)
        add_products(graph, arena, &u, kinds[i], weights[i], i ? PO_NONE : u.c.b, parts);
    po_type type = like_small(graph, &u, u.k * u.k * u.c.out);
    po_value_id y = po_add_concat(graph, id, (uint32_t)(u.k * u.k), parts, 1, &type);
    y = add_up(graph, arena, &u, y);
    type = graph->values[u.c.y].type;
    po_substitute(graph, u.c.y, po_add_depth_to_space(graph, id, y, u.f, &type));
    return true;
}

/* --- sums and concatenations of upsampled maps, upsampled again --- */

/* True where a convolution like this one over up_f(part) would be taken apart above; the part has
 * `channels`. */
static bool part_pays(const po_graph *graph, const po_conv *c, int64_t f, po_value_id part,
                      int64_t channels) {
    po_value_id z;
    int64_t g;
    return upsampled_through(graph, part, &z, &g) && f * g <= 64 && c->before[0] <= f * g &&
           channels > 0 && channels % PO_CHANNEL_BLOCK == 0 && po_rank_of(graph, z) == 4 &&
           pays(f * g, c->kernel[0], channels, po_numbers.differences.part);
}

/* K up_f(up_g a + b) = K up_fg(a) + K up_f(b), where b becomes cheap by its gate. */
static bool part_sum(po_graph *graph, const po_conv *c, const po_node *up, po_value_id inner,
                     int64_t f) {
    const po_node *sum = po_made_by(graph, inner, PO_OP_Add);
    for (uint32_t k = 0; sum && sum->n_in == 2 && k < 2; k++) {
        po_value_id in[2] = {sum->in[k], sum->in[1 - k]};
        if (!part_pays(graph, c, f, in[0], c->in) || !po_gated_narrow(graph, in[1]) ||
            !po_same_dims(graph, in[0], in[1]))
            continue;
        po_node like = *up;
        for (int i = 0; i < 2; i++)
            in[i] = po_add_upsample(graph, c->node, in[i], f, &like);
        return po_distribute_conv(graph, c, in);
    }
    return false;
}

/* K up_f(Concat(up_g a, b)) = K1 up_fg(a) + K2 up_f(b). */
static bool part_concat(po_graph *graph, const po_conv *c, const po_node *up, po_value_id inner,
                        int64_t f) {
    const po_node *cat = po_made_by(graph, inner, PO_OP_Concat);
    if (!cat || cat->n_in != 2 || po_node_int(cat, "axis", 1) != 1)
        return false;
    po_value_id in[2] = {cat->in[0], cat->in[1]};
    const int64_t channels[2] = {po_dim_of(graph, in[0], 1), po_dim_of(graph, in[1], 1)};
    if (channels[0] < 1 || channels[1] < 1 || channels[0] + channels[1] != c->in ||
        (!part_pays(graph, c, f, in[0], channels[0]) &&
         !part_pays(graph, c, f, in[1], channels[1])))
        return false;
    po_node like = *up;
    for (int i = 0; i < 2; i++)
        in[i] = po_add_upsample(graph, c->node, in[i], f, &like);
    return po_split_conv(graph, c, 2, in, channels);
}

static bool take_parts(po_graph *graph, po_node_id id, bool gates, po_rewriting *state) {
    po_conv c;
    po_value_id inner;
    int64_t f;
    if (!po_conv_read(graph, id, &c) || !po_conv_keeps_size(&c) ||
        !po_upsampled(graph, c.x, &inner, &f))
        return false;
    const po_node *up = po_graph_producer(graph, c.x);
    return po_law_fired(state, PO_LAW_PART_SUM, gates && part_sum(graph, &c, up, inner, f)) ||
           po_law_fired(state, PO_LAW_PART_CONCAT, part_concat(graph, &c, up, inner, f));
}

po_status po_use_differences(po_ctx *ctx, po_graph *graph, po_rewriting *state) {
    (void)ctx;
    bool gates = state->options->algebra & PO_ALGEBRA_GATES;
    bool concats = state->options->algebra & PO_ALGEBRA_UPSAMPLE;
    /* Parts first, and at once what becomes of them: the pass behind this one would take the
     * convolutions over them. */
    for (bool again = true; again;) {
        uint32_t n;
        const po_node_id *order = po_graph_order(graph, state->scratch, &n);
        again = false;
        for (uint32_t i = 0; i < n; i++)
            if (!graph->nodes[order[i]].removed && graph->nodes[order[i]].n_out > 0 &&
                (po_law_fired(state, PO_LAW_FACTOR_UPSAMPLING,
                              concats && po_factor_concat(state, graph, order[i])) ||
                 take_parts(graph, order[i], gates, state) ||
                 po_law_fired(state, PO_LAW_DIFFERENCES,
                              by_differences(graph, state->scratch, order[i]))))
                again = true;
    }
    return PO_OK;
}

/* Three-dimensional convolutions as two-dimensional ones of frames.
 *
 * A map [N, C, T, H, W] is taken as frames [N, T, C, H, W]. A convolution with kt taps in time
 * becomes Toom-Cook F(m, kt) along time: a product by B^T along T (padding lies in B), one
 * two-dimensional convolution with a group for each product, a product by A^T. Interleaving costs
 * nothing, because time is the axis next to the batch. Other convolutions gather their taps into
 * channels. Activations, sums and pools between them stay in frames, so that a whole network is
 * turned over once. */
#include "ops/conv_view.h"
#include "rewrite/bilinear/products.h"
#include "rewrite/layout/relayout.h"
#include "rewrite/passes.h"

enum { RANK = 5, OUTPUTS = 4, MOST_OUTPUTS = 8, MOST_STRIDE = 4 };

/* N, C, T, H, W of a static f32 map; false for anything else. */
static bool map_dims(const po_graph *graph, po_value_id v, int64_t d[RANK]) {
    uint32_t rank;
    const po_dim *dims = po_static_dims(graph, v, &rank);
    if (!dims || rank != RANK || graph->values[v].type.dtype != PO_F32)
        return false;
    for (int i = 0; i < RANK; i++) {
        d[i] = dims[i].value;
        if (d[i] < 1)
            return false;
    }
    return true;
}

/* Swaps the channel and the time axis: there and back. */
static po_value_id turn(po_relayout *f, po_node_id at, po_value_id x, const po_type *type) {
    return po_add_transpose(f->graph, at, x, RANK, (const int64_t[]){0, 2, 1, 3, 4}, type);
}

static po_value_id from_frames(po_relayout *f, po_node_id at, po_value_id old,
                               const po_type *type) {
    return turn(f, at, f->twin[old], type);
}

static po_value_id to_frames(po_relayout *f, po_node_id at, po_value_id x) {
    return turn(f, at, x, NULL);
}

/* table [rows, T] times x [N, T, rest], as [N, rows, rest]. */
static po_value_id along_time(po_relayout *f, po_node_id at, const double *table, int64_t rows,
                              int64_t columns, po_value_id x) {
    po_value_id t =
        po_add_floats(f->graph, NULL, PO_F32, 2, (const int64_t[]){rows, columns}, table);
    po_type unknown = po_type_unranked(PO_F32);
    return po_add_op(f->graph, at, PO_OP_MatMul, 2, (po_value_id[]){t, x}, &unknown);
}

/* --- convolutions --- */

typedef struct conv3 {
    po_node_id node;
    int64_t x[RANK], y[RANK];
    int64_t kt, stride, pad; /* along time; pad before */
    int64_t taps;            /* of the frame kernel */
    po_conv plane;           /* of one frame: group 1, one time tap; with the weights' values */
} conv3;

static bool read_conv(const po_graph *g, po_node_id id, conv3 *c) {
    po_conv v;
    if (!po_conv_read_maps(g, id, 3, &v) || v.dtype != PO_F32 || v.group != 1 ||
        v.dilation[0] != 1 || !map_dims(g, v.x, c->x) || !map_dims(g, v.y, c->y))
        return false;
    c->node = id;
    c->kt = v.kernel[0];
    c->stride = v.stride[0];
    c->pad = v.before[0];
    c->taps = v.kernel[1] * v.kernel[2];
    c->plane = po_conv_without_axis(&v, 0);
    return true;
}

/* Products of a tile of m outputs. */
static bool make_tiling(po_arena *arena, uint32_t m, const conv3 *c, po_bilinear *t) {
    return c->stride <= MOST_STRIDE && c->kt > c->stride && c->kt <= PO_BILINEAR_MAX &&
           po_bilinear_make(arena, PO_POINTS_DYADIC, m, (uint32_t)c->kt, (uint32_t)c->stride, t);
}

/* F(m, kt) along time. */
static po_value_id by_products(po_relayout *f, const conv3 *c, const po_bilinear *alg,
                               po_value_id x) {
    int64_t m = alg->m, n = alg->n, out = c->plane.out, in = c->plane.in, t_in = c->x[2];
    int64_t t_out = c->y[2], tiles = (t_out + m - 1) / m, rows = tiles * n;
    po_value_id w = po_product_weights(f->graph, f->arena, &c->plane, 1, alg,
                                       (const int64_t[]){c->kt, c->taps}, c->plane.kernel);
    po_value_id bias = po_product_bias(f->graph, f->arena, &c->plane, alg->one, n);
    if (w == PO_NONE || (c->plane.bias && bias == PO_NONE))
        return PO_NONE;
    double *b = PO_NEW_N(f->arena, double, rows *t_in),
           *a = PO_NEW_N(f->arena, double, t_out *rows);
    for (int64_t tile = 0; tile < tiles; tile++) {
        for (int64_t j = 0; j < n; j++)
            for (int64_t k = 0; k < n; k++) {
                int64_t t = tile * m * c->stride + k - c->pad;
                if (t >= 0 && t < t_in)
                    b[(tile * n + j) * t_in + t] = alg->b[j * n + k];
            }
        for (int64_t i = 0; i < m && tile * m + i < t_out; i++)
            memcpy(&a[(tile * m + i) * rows + tile * n], &alg->a[i * n], (size_t)n * sizeof *a);
    }
    int64_t batch = c->x[0], h = c->x[3], wd = c->x[4], h2 = c->y[3], w2 = c->y[4];
    po_conv grouped = c->plane;
    grouped.group = n;
    grouped.in = n * in;
    grouped.out = n * out;
    x = po_add_reshape(f->graph, c->node, x, 3, (int64_t[]){batch, t_in, in * h * wd});
    x = along_time(f, c->node, b, rows, t_in, x);
    x = po_add_reshape(f->graph, c->node, x, 4, (int64_t[]){batch * tiles, n * in, h, wd});
    x = po_conv_add(f->graph, c->node, x, &grouped, w, bias);
    x = po_add_reshape(f->graph, c->node, x, 3, (int64_t[]){batch, rows, out * h2 * w2});
    x = along_time(f, c->node, a, t_out, rows, x);
    return po_add_reshape(f->graph, c->node, x, RANK, (int64_t[]){batch, t_out, out, h2, w2});
}

/* The taps in time as channels, in the order tap, channel. */
static po_value_id by_channels(po_relayout *f, const conv3 *c, po_value_id x) {
    int64_t batch = c->x[0], t_in = c->x[2], t_out = c->y[2], in = c->plane.in, kt = c->kt;
    int64_t h = c->x[3], wd = c->x[4];
    po_conv wide = c->plane;
    wide.in = kt * in;
    const po_recipe *v =
        po_recipe_rearrange(f->arena, po_conv_weights(f->graph, f->arena, &c->plane),
                            "o i t y x -> o (t i) y x", 0, NULL);
    po_value_id w = kt == 1 ? po_add_reshaped(f->graph, c->plane.w, 4, v->dims)
                            : po_add_recipe(f->graph, NULL, PO_F32, v);
    if (w == PO_NONE)
        return PO_NONE;
    bool as_it_is = kt == 1 && c->stride == 1 && t_in == t_out && c->pad == 0;
    if (!as_it_is) {
        double *pick = PO_NEW_N(f->arena, double, t_out *kt *t_in);
        for (int64_t t = 0; t < t_out; t++)
            for (int64_t k = 0; k < kt; k++) {
                int64_t from = t * c->stride + k - c->pad;
                if (from >= 0 && from < t_in)
                    pick[(t * kt + k) * t_in + from] = 1;
            }
        x = po_add_reshape(f->graph, c->node, x, 3, (int64_t[]){batch, t_in, in * h * wd});
        x = along_time(f, c->node, pick, t_out * kt, t_in, x);
    }
    x = po_add_reshape(f->graph, c->node, x, 4, (int64_t[]){batch * t_out, kt * in, h, wd});
    x = po_conv_add(f->graph, c->node, x, &wide, w, c->plane.b);
    return po_add_reshape(f->graph, c->node, x, RANK,
                          (int64_t[]){batch, t_out, wide.out, c->y[3], c->y[4]});
}

/* Products along time, over all tiles. */
static double all_products(const conv3 *c, const po_bilinear *alg) {
    return (double)((c->y[2] + alg->m - 1) / alg->m) * (double)alg->n;
}

static uint32_t most_of(const po_rewriting *state) {
    return po_law_tile(state, PO_TILED_FRAMES, MOST_OUTPUTS);
}

static bool worth_products(po_arena *arena, const conv3 *c, uint32_t most, po_bilinear *alg) {
    uint32_t few = most < OUTPUTS ? most : OUTPUTS;
    uint32_t m = c->y[2] < few ? (uint32_t)c->y[2] : few;
    po_bilinear eight;
    if (c->plane.in % PO_CHANNEL_BLOCK || c->plane.out % PO_CHANNEL_BLOCK ||
        !make_tiling(arena, m, c, alg))
        return false;
    if (c->stride == 1 && most == MOST_OUTPUTS && make_tiling(arena, MOST_OUTPUTS, c, &eight) &&
        all_products(c, &eight) <= po_numbers.frames.worth_eight * all_products(c, alg))
        *alg = eight;
    return c->stride == 1 ||
           all_products(c, alg) <= po_numbers.frames.worth * (double)(c->y[2] * c->kt);
}

static bool convert_conv(po_relayout *f, po_node_id id) {
    conv3 c;
    po_bilinear alg;
    if (!read_conv(f->graph, id, &c))
        return false;
    po_value_id x = po_relayout_twin(f, id, f->graph->nodes[id].in[0]);
    bool worth = worth_products(f->arena, &c, most_of(f->state), &alg);
    po_value_id y = worth ? by_products(f, &c, &alg, x) : by_channels(f, &c, x);
    if (y == PO_NONE)
        return false;
    po_relayout_set(f, id, y);
    if (worth)
        po_law_tiled(f->state, f->graph, c.plane.y,
                     &(po_tiled_use){PO_TILED_FRAMES, PO_ALGEBRA_FRAMES, alg.m, c.kt, c.stride, 0});
    po_law_fired(f->state, PO_LAW_FRAMES, worth);
    return true;
}

/* The mean over the map of each frame, then over the frames. */
static bool convert_mean(po_relayout *f, po_node_id id) {
    const po_node *n = &f->graph->nodes[id];
    int64_t d[RANK];
    po_value_id y = n->out[0];
    if (n->op != PO_OP_GlobalAveragePool || !po_relayout_has(f, n->in[0]) ||
        !map_dims(f->graph, n->in[0], d))
        return false;
    po_type unknown = po_type_unranked(PO_F32), type = f->graph->values[y].type;
    po_value_id x = f->twin[n->in[0]];
    x = po_add_reshape(f->graph, id, x, 4, (int64_t[]){d[0] * d[2], d[1], d[3], d[4]});
    x = po_add_op(f->graph, id, PO_OP_GlobalAveragePool, 1, &x, &unknown);
    x = po_add_reshape(f->graph, id, x, 3, (int64_t[]){d[0], d[2], d[1]});
    double *mean = PO_NEW_N(f->arena, double, d[2]);
    for (int64_t t = 0; t < d[2]; t++)
        mean[t] = 1.0 / (double)d[2];
    x = along_time(f, id, mean, 1, d[2], x);
    x = po_add_reshape(f->graph, id, x, RANK, (int64_t[]){d[0], d[1], 1, 1, 1});
    f->graph->values[x].type = type;
    po_substitute(f->graph, y, x);
    return true;
}

static bool worth_turning(const po_graph *graph, po_arena *arena, uint32_t most) {
    for (po_node_id i = 0; i < graph->n_nodes; i++) {
        conv3 c;
        po_bilinear alg;
        if (!graph->nodes[i].removed && po_conv_is(&graph->nodes[i]) && read_conv(graph, i, &c) &&
            worth_products(arena, &c, most, &alg))
            return true;
    }
    return false;
}

po_status po_use_frames(po_ctx *ctx, po_graph *graph, po_rewriting *state) {
    (void)ctx;
    if (po_model_opset(graph->model, "") < 7 ||
        !worth_turning(graph, state->scratch, most_of(state)))
        return PO_OK;
    static const po_relayout_law laws[] = {{PO_LAWS, convert_conv},
                                           {PO_LAWS, po_relayout_elementwise},
                                           {PO_LAW_FRAMES_MEAN, convert_mean}};
    po_relayout f = {.enter = to_frames, .leave = from_frames};
    po_relayout_graph(&f, graph, state, RANK, laws, sizeof laws / sizeof *laws);
    return PO_OK;
}

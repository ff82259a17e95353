/* Convolutions with fewer multiplications, for maps of any size: Toom-Cook F(m, k) along the rows
 * of a map, or along rows and columns (Winograd).
 *
 * B^T is a convolution itself: a product reads n = m + k - 1 rows with its row of the table, m rows
 * further for every tile. So each of the n is a depthwise convolution of stride m, which the
 * runtime runs in its blocked layout, and zeros behind the map, as many as a tile may lack, make
 * enough tiles whatever the size. The products are one convolution with a group for each; A^T is a
 * matrix product, whose rows are put in their places by moves; what lies behind the map is cut off.
 * With dilation d the rows q, q + d, .. of each residue q have windows and products of their own.
 * It pays where the multiplications saved outweigh the tables and moves: many channels. */
#include "base/num.h"
#include "ops/conv_view.h"
#include "ops/recipe/recipe.h"
#include "rewrite/bilinear/products.h"
#include "rewrite/passes.h"

#include <math.h>

enum { ROWS, COLUMNS, AXES, MOST_OUTPUTS = 6 };

typedef struct tiling {
    po_conv conv;
    po_bilinear alg[AXES];
    int64_t m[AXES], n[AXES]; /* outputs and products of a tile; 1: not by tiles */
    bool open;                /* a size is not known: conv has a likely one for it */
} tiling;

/* --- what it costs --- */

/* In multiplications and additions of the runtime's convolutions. */
static double cost_direct(const tiling *t) {
    const po_conv *c = &t->conv;
    return 2.0 * (double)(po_conv_taps(c) * c->in / c->group) *
           (double)(c->out * c->to[ROWS] * c->to[COLUMNS]);
}

static double cost_tiled(const tiling *t) {
    const po_conv *c = &t->conv;
    const po_tile_numbers *per = &po_numbers.tiles;
    const bool both = t->m[COLUMNS] > 1;
    const int64_t d = c->dilation[ROWS], rows = po_ceil_div(c->to[ROWS], t->m[ROWS] * d) * d;
    const int64_t columns = both ? po_ceil_div(c->to[COLUMNS], t->m[COLUMNS]) : c->to[COLUMNS];
    const double products = (double)(t->n[ROWS] * t->n[COLUMNS]);
    const double map = (double)(c->in * c->size[ROWS] * c->size[COLUMNS]);
    const double strips = (double)(t->n[ROWS] * c->in * rows * c->size[COLUMNS]);
    const double in = products * (double)(c->in * rows * (both ? columns : c->size[COLUMNS]));
    const double out = products * (double)(c->out * rows * columns);
    const double y = (double)(c->out * rows * t->m[ROWS] * columns * t->m[COLUMNS]);
    const double taps = (double)(c->in / c->group * (both ? 1 : c->kernel[COLUMNS]));
    const double weights = products * (double)c->out * taps, held = in + out;
    double cost = per->node * (double)(t->n[ROWS] * d + (both ? t->n[COLUMNS] : 0) + 10);
    cost += 2 * out * taps + per->tap * (double)t->n[ROWS] * strips + per->join * strips;
    cost += both ? (per->tap * (double)t->n[COLUMNS] + per->join) * in : 0;
    cost += per->turn * (map + out) + (per->sum + 2 * products) * y;
    cost += (both ? per->places : per->turn) * y + per->turn * y;
    if (held > per->cached_elements)
        cost += per->far * (held - per->cached_elements);
    if (weights > per->cached_weights)
        cost += per->weight * (weights - per->cached_weights);
    return cost;
}

/* --- where it is done --- */

/* Rows that a map is likely to have where nothing says what it is read at: those of usual inputs,
 * as far as strides tell how many are left; maps of many channels are small. */
static int64_t likely_rows(const po_graph *graph, po_value_id v, int64_t channels) {
    const po_tile_numbers *per = &po_numbers.tiles;
    const double most = sqrt(per->cached_elements / (double)channels);
    double rows = (double)per->rows_of_input;
    for (uint32_t steps = 0; steps < graph->n_nodes; steps++) {
        const po_node *n = po_graph_producer(graph, v);
        po_conv window = {.n = 2};
        if (!n || n->n_in == 0 || n->in[0] == PO_NONE)
            break;
        if ((po_conv_is_either(n) || n->op == PO_OP_MaxPool || n->op == PO_OP_AveragePool) &&
            po_conv_window(graph, n, &window) && window.stride[0] > 0)
            rows *= po_conv_is_transposed(n) ? (double)window.stride[0]
                                             : 1.0 / (double)window.stride[0];
        else if (n->op == PO_OP_Resize || n->op == PO_OP_Upsample)
            rows *= 2;
        v = n->in[0];
    }
    return (int64_t)fmax(4, fmin(rows, most));
}

/* True where rows, and columns where there are tiles of them, have an algorithm. */
static bool with_tiles(po_arena *arena, tiling *t, uint32_t axis, uint32_t m) {
    const po_conv *c = &t->conv;
    t->m[axis] = t->n[axis] = 1;
    if (m == 1)
        return true;
    if (m + (uint32_t)c->kernel[axis] - 1 > PO_BILINEAR_STEADY ||
        !po_bilinear_make(arena, PO_POINTS_DYADIC, m, (uint32_t)c->kernel[axis], 1,
                          &t->alg[axis]) ||
        t->alg[axis].one == PO_NONE)
        return false;
    t->m[axis] = m;
    t->n[axis] = t->alg[axis].n;
    return true;
}

static double magnifies(const tiling *t, uint32_t axis) {
    return t->m[axis] == 1 ? 1
                           : po_bilinear_magnifies(PO_POINTS_DYADIC, (uint32_t)t->m[axis],
                                                   (uint32_t)t->conv.kernel[axis], 1);
}

/* A map's lengths at one of the sizes that are meant. */
typedef struct map_size {
    int64_t size[AXES], to[AXES];
} map_size;

/* By size, in scratch; NULL: it is too short at one of them. */
static const map_size *sizes_of(const po_rewriting *state, const po_graph *g, const tiling *t,
                                uint32_t *n) {
    const po_conv *c = &t->conv;
    *n = t->open && state->options->meant.n ? state->options->meant.n : 1;
    map_size *sizes = PO_NEW_N(state->scratch, map_size, *n);
    for (uint32_t k = 0; k < *n; k++)
        for (uint32_t a = 0; a < AXES; a++) {
            map_size *at = &sizes[k];
            at->size[a] = po_law_length(state, g->values[c->x].type.dims[2 + a], k); /* of rank 4 */
            at->size[a] = at->size[a] > 0 ? at->size[a] : likely_rows(g, c->x, c->in);
            at->to[a] = c->to[a] > 0 ? c->to[a] : at->size[a] / c->stride[a];
            if (at->size[a] < 2 || at->to[a] < 2)
                return NULL;
        }
    return sizes;
}

static void set_size(tiling *t, const map_size *at) {
    memcpy(t->conv.size, at->size, sizeof at->size);
    memcpy(t->conv.to, at->to, sizeof at->to);
}

/* The part of the direct cost that is left, added up over the sizes that are meant; infinite where
 * it does not pay at one of them. */
static double part_of(const tiling *t, const map_size *sizes, uint32_t n) {
    double all = 0;
    for (uint32_t k = 0; k < n; k++) {
        tiling at = *t;
        set_size(&at, &sizes[k]);
        const double part = cost_tiled(&at) / cost_direct(&at);
        if (part * po_numbers.tiles.gain >= 1)
            return INFINITY;
        all += part;
    }
    return all;
}

/* Reads a convolution that gains by it, with the tiles that gain most. */
static bool read_tiling(const po_rewriting *state, const po_graph *g, po_node_id id, tiling *t) {
    const uint32_t most = po_law_tile(state, PO_TILED_MAPS, MOST_OUTPUTS);
    po_conv *c = &t->conv;
    if (!po_conv_read(g, id, c) || c->dtype != PO_F32 || po_rank_of(g, c->x) != 4 ||
        !po_law_may(state, PO_ALGEBRA_TILES, g, c->y) || c->stride[ROWS] != 1 ||
        c->kernel[ROWS] < 2 || c->in / c->group % PO_CHANNEL_BLOCK ||
        c->out / c->group % PO_CHANNEL_BLOCK || c->before[ROWS] < c->dilation[ROWS] - 1)
        return false;
    t->open = false;
    for (uint32_t a = 0; a < AXES; a++)
        t->open = t->open || c->size[a] < 0 || c->to[a] < 0;
    if (t->open && po_model_opset(g->model, "") < 10) /* Slices whose ends are computed */
        return false;
    uint32_t n_sizes;
    const map_size *sizes = sizes_of(state, g, t, &n_sizes);
    if (!sizes)
        return false;
    set_size(t, &sizes[0]);
    const bool columns =
        c->stride[COLUMNS] == 1 && po_conv_dilation_one(c) && c->kernel[COLUMNS] > 1;
    double best = INFINITY;
    tiling with = *t;
    for (uint32_t m = 2; m <= most; m++)
        for (uint32_t across = 1; across <= (columns ? most : 1); across++) {
            if (!with_tiles(state->scratch, &with, ROWS, m) ||
                !with_tiles(state->scratch, &with, COLUMNS, across) ||
                magnifies(&with, ROWS) * magnifies(&with, COLUMNS) > po_numbers.tiles.rounding)
                continue;
            double cost = part_of(&with, sizes, n_sizes);
            if (cost < best) {
                best = cost;
                *t = with;
            }
        }
    return best < INFINITY;
}

/* --- the nodes --- */

/* B^T along one axis for the rows of residue q: the products' maps, one after the other. PO_NONE
 * where the tables cannot be stored. */
static po_value_id spread(po_graph *g, po_arena *arena, const tiling *t, po_value_id x,
                          int64_t channels, uint32_t axis, int64_t q) {
    const po_conv *c = &t->conv;
    const int64_t d = c->dilation[axis], m = t->m[axis], n = t->n[axis];
    po_conv window = po_conv_pointwise(c->dtype, channels, channels);
    po_value_id parts[PO_BILINEAR_MAX];
    window.kernel[axis] = n;
    window.stride[axis] = m * d;
    window.dilation[axis] = d;
    window.before[axis] = c->before[axis] - q;
    window.after[axis] = c->after[axis] + q + (m - 1) * d;
    for (int64_t j = 0; j < n; j++) {
        const po_taps taps = {&t->alg[axis].b[j * n], 0};
        parts[j] = po_conv_each(g, arena, c->node, x, &window, channels, &taps, PO_NONE);
        if (parts[j] == PO_NONE)
            return PO_NONE;
    }
    const po_type unknown = po_type_unranked(c->dtype);
    return po_add_concat(g, c->node, (uint32_t)n, parts, 1, &unknown);
}

/* A product that every output takes once. */
static int64_t taken_once(const tiling *t) {
    return t->alg[ROWS].one + (t->m[COLUMNS] > 1 ? t->alg[COLUMNS].one * t->n[ROWS] : 0);
}

/* A^T of both axes: [outputs of a tile, products]. */
static po_value_id sums_of(po_graph *g, po_arena *arena, const tiling *t) {
    const int64_t rows = t->n[ROWS], all = rows * t->n[COLUMNS];
    const int64_t outputs = t->m[ROWS] * t->m[COLUMNS];
    double *a = PO_NEW_N(arena, double, outputs *all);
    for (int64_t i = 0; i < outputs; i++)
        for (int64_t j = 0; j < all; j++) {
            const int64_t at = i / t->m[COLUMNS] * rows + j % rows;
            const int64_t across = i % t->m[COLUMNS] * t->n[COLUMNS] + j / rows;
            a[i * all + j] =
                t->alg[ROWS].a[at] * (t->m[COLUMNS] > 1 ? t->alg[COLUMNS].a[across] : 1);
        }
    return po_add_floats(g, NULL, t->conv.dtype, 2, (const int64_t[]){outputs, all}, a);
}

/* Lengths times or plus numbers; `none` of them changes nothing. */
static po_value_id reckoned(po_graph *g, po_node_id at, po_op_id op, po_value_id lengths,
                            uint32_t n, const int64_t *by, int64_t none) {
    bool same = true;
    for (uint32_t i = 0; i < n; i++)
        same = same && by[i] == none;
    if (same)
        return lengths;
    const po_type type = g->values[lengths].type;
    return po_add_op(g, at, op, 2, (po_value_id[]){lengths, po_add_i64s(g, NULL, n, by)}, &type);
}

/* The products [N, residues products out, tiles, tiles] as the map. */
static po_value_id put_together(po_graph *g, po_arena *arena, const tiling *t, po_value_id v) {
    const po_conv *c = &t->conv;
    const po_node_id at = c->node;
    const po_type unknown = po_type_unranked(c->dtype);
    const int64_t d = c->dilation[ROWS], m = t->m[ROWS], across = t->m[COLUMNS];
    const int64_t n = c->batch > 0 ? c->batch : 0; /* a Reshape copies it */
    const int64_t rows = po_ceil_div(c->to[ROWS], m * d);
    const int64_t columns = po_ceil_div(c->to[COLUMNS], across);
    const int64_t products = t->n[ROWS] * t->n[COLUMNS];
    const int64_t each = t->open ? -1 : c->out * rows * columns;
    /* Last come columns, told or read off the products. */
    const int64_t lines = t->open ? -1 : c->out * rows, tall = t->open ? -1 : rows * m * d;
    const int64_t wide = columns * across;
    const po_value_id read =
        t->open ? reckoned(g, at, PO_OP_Mul, po_add_lengths(g, at, v, 3, 1), 1, &across, 1)
                : PO_NONE;
    const uint32_t told = !t->open;
    po_value_id sums = sums_of(g, arena, t), y;
    y = d > 1
            ? po_add_reshape_told(g, at, v, 4, (const int64_t[]){n, d, products, each}, PO_NONE,
                                  NULL)
            : po_add_reshape_told(g, at, v, 3, (const int64_t[]){n, products, each}, PO_NONE, NULL);
    y = po_add_op(g, at, PO_OP_MatMul, 2, (po_value_id[]){sums, y}, &unknown);
    if (across > 1) {
        y = po_add_reshape_told(g, at, y, 4, (const int64_t[]){n, m, across, each}, PO_NONE, NULL);
        y = po_add_transpose(g, at, y, 4, (const int64_t[]){0, 1, 3, 2}, NULL);
    }
    if (d > 1) {
        y = po_add_reshape_told(g, at, y, 4 + told, (const int64_t[]){n, d, m, lines, wide}, read,
                                NULL);
        y = po_add_transpose(g, at, y, 5, (const int64_t[]){0, 3, 2, 1, 4}, NULL);
    } else {
        y = po_add_reshape_told(g, at, y, 3 + told, (const int64_t[]){n, m, lines, wide}, read,
                                NULL);
        y = po_add_transpose(g, at, y, 4, (const int64_t[]){0, 2, 1, 3}, NULL);
    }
    return po_add_reshape_told(g, at, y, 3 + told, (const int64_t[]){n, c->out, tall, wide}, read,
                               NULL);
}

/* Without what the last tiles make behind the map. */
static po_value_id cut(po_graph *g, const tiling *t, po_value_id y) {
    const po_conv *c = &t->conv;
    const uint32_t axes = t->m[COLUMNS] > 1 ? 2 : 1;
    const po_type type = g->values[c->y].type;
    const int64_t axis[AXES] = {2, 3}, zero[AXES] = {0};
    const bool whole = !t->open && c->to[ROWS] % (t->m[ROWS] * c->dilation[ROWS]) == 0 &&
                       c->to[COLUMNS] % t->m[COLUMNS] == 0;
    if (whole)
        return y;
    if (!t->open)
        return po_add_slice(g, c->node, y, axes, axis, zero, c->to, NULL, &type);
    int64_t more[AXES];
    for (uint32_t a = 0; a < AXES; a++)
        more[a] = c->before[a] + c->after[a] - (c->kernel[a] - 1) * c->dilation[a];
    const po_value_id ends = po_add_lengths(g, c->node, c->x, 2, axes);
    const po_value_id in[4] = {y, po_add_i64s(g, NULL, axes, zero),
                               reckoned(g, c->node, PO_OP_Add, ends, axes, more, 0),
                               po_add_i64s(g, NULL, axes, axis)};
    return po_add_op(g, c->node, PO_OP_Slice, 4, in, &type);
}

static bool convert(po_rewriting *state, po_graph *g, po_node_id id) {
    po_arena *arena = state->scratch;
    tiling t;
    if (!read_tiling(state, g, id, &t))
        return false;
    const po_conv *c = &t.conv;
    const bool both = t.m[COLUMNS] > 1;
    const int64_t d = c->dilation[ROWS], products = t.n[ROWS] * t.n[COLUMNS];
    const int64_t taps[AXES] = {c->kernel[ROWS], c->kernel[COLUMNS]};
    const int64_t kernel[AXES] = {1, both ? 1 : c->kernel[COLUMNS]};
    const po_value_id weights =
        po_product_weights(g, arena, c, both ? AXES : 1, t.alg, taps, kernel);
    const po_value_id bias = po_product_bias(g, arena, c, taken_once(&t), products);
    if (weights == PO_NONE || (c->bias && bias == PO_NONE))
        return false;
    po_conv grouped = *c;
    grouped.group = products * c->group;
    grouped.in = products * c->in;
    grouped.out = products * c->out;
    for (uint32_t a = 0; a < AXES && t.m[a] > 1; a++) {
        grouped.kernel[a] = grouped.dilation[a] = 1;
        grouped.before[a] = grouped.after[a] = 0;
    }
    po_value_id *parts = PO_NEW_N(arena, po_value_id, d);
    for (int64_t q = 0; q < d; q++) {
        po_value_id x = spread(g, arena, &t, c->x, c->in, ROWS, q);
        if (x != PO_NONE && both)
            x = spread(g, arena, &t, x, t.n[ROWS] * c->in, COLUMNS, 0);
        if (x == PO_NONE)
            return false;
        parts[q] = po_conv_add(g, id, x, &grouped, weights, bias);
    }
    const po_type unknown = po_type_unranked(c->dtype);
    po_value_id y = d > 1 ? po_add_concat(g, id, (uint32_t)d, parts, 1, &unknown) : parts[0];
    y = cut(g, &t, put_together(g, arena, &t, y));
    g->values[y].type = g->values[c->y].type;
    po_substitute(g, c->y, y);
    const po_tiled_use use = {
        PO_TILED_MAPS,         PO_ALGEBRA_TILES, (uint32_t)t.m[ROWS], c->kernel[ROWS], 1,
        magnifies(&t, COLUMNS)};
    po_law_tiled(state, g, y, &use);
    return po_law_fired(state, PO_LAW_TILES, true);
}

po_status po_use_tiles(po_ctx *ctx, po_graph *graph, po_rewriting *state) {
    uint32_t n;
    if (po_model_opset(graph->model, "") < 7)
        return PO_OK;
    const po_node_id *order = po_graph_order(graph, state->scratch, &n);
    for (uint32_t i = 0; i < n; i++)
        if (!graph->nodes[order[i]].removed && po_conv_is(&graph->nodes[order[i]])) {
            PO_TRY(po_ctx_poll(ctx));
            convert(state, graph, order[i]);
        }
    return PO_OK;
}

/* Two-dimensional convolutions with fewer multiplications: Toom-Cook F(m, kh) along the rows.
 *
 * A map [N, C, H, W] is taken as rows [H, N, C, W]. A convolution with kh taps along H and stride 1
 * there becomes a product by B^T along H (padding and dilation lie in B), one convolution with
 * kernel [1, kw] and a group for each of the n = m + kh - 1 products, and a product by A^T. With H
 * in front both products are single matrix products. Activations, sums and concatenations between
 * such convolutions stay in rows. It pays where the multiplications saved outweigh the two products
 * and four moves of the maps: many channels, few rows. */
#include "ops/conv_view.h"
#include "ops/recipe/recipe.h"
#include "rewrite/bilinear/products.h"
#include "rewrite/layout/relayout.h"
#include "rewrite/passes.h"

enum { RANK = 4, MOST_OUTPUTS = 6 };

/* Tiles are taken in strips: the tables would be square in H otherwise. Neighbouring strips read
 * some rows both. */
typedef struct rows_conv {
    po_conv conv;
    po_bilinear alg;
    int64_t batch, h, w, h2, w2; /* of the input, of the output */
    int64_t strips, tiles;       /* tiles of a strip; the last strip may have some for nothing */
    bool shuffled;               /* DepthToSpace reads it */
} rows_conv;

/* Output rows q, q + d, .. of each residue q of the dilation d, m to a tile. */
static int64_t count_tiles(int64_t rows, int64_t dilation, int64_t m) {
    int64_t tiles = 0;
    for (int64_t q = 0; q < dilation && q < rows; q++)
        tiles += ((rows - q + dilation - 1) / dilation + m - 1) / m;
    return tiles;
}

static double cost_direct(const rows_conv *r) {
    const po_conv *c = &r->conv;
    return 2.0 * (double)(c->kernel[0] * c->kernel[1] * c->in / c->group) *
           (double)(c->out * r->batch) * (double)(r->h2 * r->w2);
}

static double cost_products(const rows_conv *r) {
    const po_conv *c = &r->conv;
    const po_rows_numbers *per = &po_numbers.rows;
    int64_t m = r->alg.m, n = r->alg.n, reads = r->tiles * m + n - m;
    double in = (double)(r->batch * c->in * r->w), out = (double)(r->batch * c->out * r->w2);
    double rows = (double)(r->strips * r->tiles * n), h = (double)r->h, h2 = (double)r->h2;
    double taps = (double)(c->in / c->group * c->kernel[1]);
    double weights = (double)(c->out * n) * taps;
    double from = r->strips > 1 && reads < r->h ? (double)reads : h;
    double to = r->strips > 1 ? (double)(r->tiles * n) : rows;
    double cost = per->nodes + 2 * rows * out * taps + per->product * rows * (in + out);
    cost += 2 * rows * in * (from + per->table) + 2 * h2 * out * (to + per->table);
    cost += per->map * (h * in + h2 * out) + (r->shuffled ? per->shuffle * h2 * out : 0);
    if (r->strips > 1)
        cost += per->gather * ((double)r->strips * from * in + h2 * out);
    if (rows * (in + out) > per->cached_elements)
        cost += per->far * (rows * (in + out) - per->cached_elements);
    return cost +
           (weights > per->cached_weights ? per->weight * (weights - per->cached_weights) : 0);
}

static bool read_by_shuffle(const po_graph *g, po_value_id y) {
    const po_value *v = &g->values[y];
    return v->n_uses > 0 && g->nodes[v->uses[0].node].op == PO_OP_DepthToSpace;
}

/* Reads a convolution that gains by it, with the algorithm that gains most. */
static bool read_conv(const po_rewriting *state, const po_graph *g, po_node_id id, rows_conv *r) {
    const uint32_t most = po_law_tile(state, PO_TILED_ROWS, MOST_OUTPUTS);
    uint32_t rank, rank2;
    if (!po_conv_read(g, id, &r->conv) || r->conv.dtype != PO_F32 ||
        !po_law_may(state, PO_ALGEBRA_ROWS, g, r->conv.y))
        return false;
    const po_conv *c = &r->conv;
    const po_dim *x = po_static_dims(g, c->x, &rank), *y = po_static_dims(g, c->y, &rank2);
    if (!x || !y || rank != RANK || rank2 != RANK || (c->group != 1 && x[0].value > 1) ||
        c->stride[0] != 1 || c->kernel[0] < 2 || c->in / c->group % PO_CHANNEL_BLOCK ||
        c->out / c->group % PO_CHANNEL_BLOCK)
        return false;
    r->batch = x[0].value;
    r->h = x[2].value;
    r->w = x[3].value;
    r->h2 = y[2].value;
    r->w2 = y[3].value;
    r->shuffled = read_by_shuffle(g, c->y);
    if (r->batch < 1 || r->h < 1 || r->w < 1 || r->h2 < 2 || r->w2 < 1)
        return false;
    double best = cost_direct(r) / po_numbers.rows.gain;
    rows_conv with = *r;
    bool found = false;
    for (uint32_t m = 2; m <= most; m++) {
        if (m + (uint32_t)c->kernel[0] - 1 > PO_BILINEAR_STEADY ||
            !po_bilinear_make(state->scratch, PO_POINTS_DYADIC, m, (uint32_t)c->kernel[0], 1,
                              &with.alg))
            continue;
        int64_t all = count_tiles(r->h2, c->dilation[0], m);
        for (with.strips = 1; with.strips <= all; with.strips++) {
            with.tiles = (all + with.strips - 1) / with.strips;
            double cost = cost_products(&with);
            if (cost < best) {
                best = cost;
                *r = with;
                found = true;
            }
        }
    }
    return found;
}

/* --- the two tables --- */

/* The matrices of the products, [strips, rows of a strip, ..], and which rows they take and make:
 * input row from[s * reads + i], output row to[s * writes + i] or -1. */
typedef struct tables {
    int64_t reads, writes;
    double *b, *a; /* [strips, tiles * n, reads], [strips, writes, tiles * n] */
    int64_t *from, *to;
} tables;

/* Index of the row among those of the strip; added where it is new. */
static int64_t place_of(int64_t *rows, int64_t *count, int64_t row) {
    for (int64_t i = 0; i < *count; i++)
        if (rows[i] == row)
            return i;
    rows[*count] = row;
    return (*count)++;
}

static tables make_tables(po_relayout *f, const rows_conv *r) {
    const po_conv *c = &r->conv;
    int64_t m = r->alg.m, n = r->alg.n, d = c->dilation[0], s = r->strips, tall = r->tiles * n;
    tables t = {.reads = r->tiles * n < r->h ? r->tiles * n : r->h, .writes = r->tiles * m};
    t.b = PO_NEW_N(f->arena, double, s *tall *t.reads);
    t.a = PO_NEW_N(f->arena, double, s *t.writes *tall);
    t.from = PO_NEW_N(f->arena, int64_t, s * t.reads);
    t.to = PO_NEW_N(f->arena, int64_t, s * t.writes);
    for (int64_t i = 0; i < s * t.writes; i++)
        t.to[i] = -1;
    int64_t tile = 0, count = 0, most = 0;
    for (int64_t q = 0; q < d && q < r->h2; q++)
        for (int64_t first = q; first < r->h2; first += m * d, tile++) {
            int64_t strip = tile / r->tiles, at = tile % r->tiles;
            if (at == 0)
                count = 0;
            for (int64_t k = 0; k < n; k++) {
                int64_t row = first + k * d - c->before[0];
                if (row < 0 || row >= r->h)
                    continue;
                int64_t column = place_of(&t.from[strip * t.reads], &count, row);
                for (int64_t j = 0; j < n; j++)
                    t.b[(strip * tall + at * n + j) * t.reads + column] = r->alg.b[j * n + k];
            }
            most = count > most ? count : most;
            for (int64_t i = 0; i < m && first + i * d < r->h2; i++) {
                int64_t row = strip * t.writes + at * m + i;
                t.to[row] = first + i * d;
                memcpy(&t.a[row * tall + at * n], &r->alg.a[i * n], (size_t)n * sizeof *t.a);
            }
        }
    /* Room was made for tiles that share no row. */
    for (int64_t row = 0; row < s * tall; row++)
        memmove(&t.b[row * most], &t.b[row * t.reads], (size_t)most * sizeof *t.b);
    for (int64_t i = 0; i < s; i++)
        memmove(&t.from[i * most], &t.from[i * t.reads], (size_t)most * sizeof *t.from);
    t.reads = most;
    return t;
}

static po_value_id add_table(po_relayout *f, int64_t strips, int64_t rows, int64_t columns,
                             const double *table) {
    const po_recipe *r = po_recipe_literal(f->arena, strips > 1 ? 3 : 2,
                                           strips > 1 ? (const int64_t[]){strips, rows, columns}
                                                      : (const int64_t[]){rows, columns},
                                           table);
    return po_add_recipe(f->graph, NULL, PO_F32, r);
}

/* --- the nodes --- */

static po_value_id to_rows(po_relayout *f, po_node_id at, po_value_id x) {
    return po_add_transpose(f->graph, at, x, RANK, (const int64_t[]){2, 0, 1, 3}, NULL);
}

static po_value_id from_rows(po_relayout *f, po_node_id at, po_value_id x, const po_type *type) {
    return po_add_transpose(f->graph, at, x, RANK, (const int64_t[]){1, 2, 0, 3}, type);
}

/* x [rows, size] by these rows; x itself where they are all of them in order. */
static po_value_id gathered(po_relayout *f, po_node_id at, po_value_id x, int64_t rows, int64_t n,
                            const int64_t *index) {
    bool same = n == rows;
    for (int64_t i = 0; i < n && same; i++)
        same = index[i] == i;
    if (same)
        return x;
    po_type unknown = po_type_unranked(PO_F32);
    po_value_id in[2] = {x, po_add_i64s(f->graph, NULL, (uint32_t)n, index)};
    po_value_id y = po_add_op(f->graph, at, PO_OP_Gather, 2, in, &unknown);
    po_node_set_int(f->graph, f->graph->values[y].producer, "axis", 0);
    return y;
}

static po_value_id product(po_relayout *f, po_node_id at, po_value_id table, po_value_id x) {
    po_type unknown = po_type_unranked(PO_F32);
    return po_add_op(f->graph, at, PO_OP_MatMul, 2, (po_value_id[]){table, x}, &unknown);
}

static bool convert_conv(po_relayout *f, po_node_id id) {
    rows_conv r;
    if (!read_conv(f->state, f->graph, id, &r))
        return false;
    const po_conv *c = &r.conv;
    po_graph *g = f->graph;
    const int64_t kernel[2] = {1, c->kernel[1]};
    po_value_id weights =
        po_product_weights(g, f->arena, c, &r.alg, c->kernel[0], c->kernel[1], kernel);
    po_value_id bias = po_product_bias(g, f->arena, c, &r.alg), to, from;
    if (weights == PO_NONE || (c->bias && bias == PO_NONE))
        return false;
    tables tb = make_tables(f, &r);
    to = add_table(f, r.strips, r.tiles * r.alg.n, tb.reads, tb.b);
    from = add_table(f, r.strips, tb.writes, r.tiles * r.alg.n, tb.a);
    int64_t n = r.alg.n, t = r.strips * r.tiles, s = r.strips, batch = r.batch, in = c->in,
            out = c->out;
    po_conv grouped = *c;
    grouped.group = n * c->group;
    grouped.in = n * in;
    grouped.out = n * out;
    grouped.kernel[0] = grouped.dilation[0] = 1;
    grouped.before[0] = grouped.after[0] = 0;
    po_value_id x = po_relayout_twin(f, id, c->x);
    int64_t size = batch * in * r.w, size2 = batch * out * r.w2;
    x = po_add_reshape(g, id, x, 2, (int64_t[]){r.h, size});
    x = gathered(f, id, x, r.h, s * tb.reads, tb.from);
    if (s > 1)
        x = po_add_reshape(g, id, x, 3, (int64_t[]){s, tb.reads, size});
    x = product(f, id, to, x);
    if (batch == 1) { /* runtimes move two axes faster than four */
        x = po_add_reshape(g, id, x, 3, (int64_t[]){t, n * in, r.w});
        x = po_add_transpose(g, id, x, 3, (const int64_t[]){1, 0, 2}, NULL);
    } else {
        x = po_add_reshape(g, id, x, 5, (int64_t[]){t, n, batch, in, r.w});
        x = po_add_transpose(g, id, x, 5, (const int64_t[]){2, 1, 3, 0, 4}, NULL);
    }
    x = po_add_reshape(g, id, x, 4, (int64_t[]){batch, n * in, t, r.w});
    x = po_conv_add(g, id, x, &grouped, weights, bias);
    if (batch == 1) {
        x = po_add_transpose(g, id, x, 4, (const int64_t[]){2, 0, 1, 3}, NULL);
    } else {
        x = po_add_reshape(g, id, x, 5, (int64_t[]){batch, n, out, t, r.w2});
        x = po_add_transpose(g, id, x, 5, (const int64_t[]){3, 1, 0, 2, 4}, NULL);
    }
    x = s > 1 ? po_add_reshape(g, id, x, 3, (int64_t[]){s, r.tiles * n, size2})
              : po_add_reshape(g, id, x, 2, (int64_t[]){t * n, size2});
    x = product(f, id, from, x);
    if (s > 1)
        x = po_add_reshape(g, id, x, 2, (int64_t[]){s * tb.writes, size2});
    /* Where each output row was made. */
    int64_t *order = PO_NEW_N(f->arena, int64_t, r.h2);
    for (int64_t i = 0; i < s * tb.writes; i++)
        if (tb.to[i] >= 0)
            order[tb.to[i]] = i;
    x = gathered(f, id, x, s * tb.writes, r.h2, order);
    x = po_add_reshape(g, id, x, 4, (int64_t[]){r.h2, batch, out, r.w2});
    po_relayout_set(f, id, x);
    const po_tiled_use use = {PO_TILED_ROWS, PO_ALGEBRA_ROWS, r.alg.m, r.alg.r, 1};
    po_law_tiled(f->state, g, c->y, &use);
    return true;
}

/* Every reader is a convolution that will be converted. */
static bool read_by_rows(const po_relayout *f, po_value_id v) {
    const po_graph *g = f->graph;
    const po_value *value = &g->values[v];
    rows_conv r;
    for (uint32_t i = 0; i < value->n_uses; i++)
        if (value->uses[i].input != 0 || !read_conv(f->state, g, value->uses[i].node, &r))
            return false;
    return value->n_outputs == 0 && value->n_uses > 0;
}

/* Along the channels, where a part is in rows already and the whole is wanted so. */
static bool convert_concat(po_relayout *f, po_node_id id) {
    const po_node *n = &f->graph->nodes[id];
    int64_t axis = po_node_int(n, "axis", 0);
    if (n->op != PO_OP_Concat || (axis != 1 && axis != 1 - RANK) ||
        po_rank_of(f->graph, n->out[0]) != RANK)
        return false;
    uint32_t n_in = n->n_in, known = 0;
    po_value_id *in = po_arena_memdup(f->arena, n->in, n_in * sizeof *in);
    for (uint32_t i = 0; i < n_in; i++) {
        if (in[i] >= f->n || !po_rearrangeable(f->graph, in[i]))
            return false;
        known += po_relayout_has(f, in[i]);
    }
    if (known == 0 || !read_by_rows(f, n->out[0]))
        return false;
    for (uint32_t i = 0; i < n_in; i++)
        in[i] = po_relayout_twin(f, id, in[i]);
    po_value_id y = po_relayout_copy(f, id, in, n_in);
    po_node_set_int(f->graph, f->graph->values[y].producer, "axis", 2);
    po_relayout_set(f, id, y);
    return true;
}

po_status po_use_rows(po_ctx *ctx, po_graph *graph, po_rewriting *state) {
    (void)ctx;
    rows_conv r;
    bool any = false;
    if (po_model_opset(graph->model, "") < 7)
        return PO_OK;
    for (po_node_id i = 0; i < graph->n_nodes && !any; i++)
        any = !graph->nodes[i].removed && po_conv_is(&graph->nodes[i]) &&
              read_conv(state, graph, i, &r);
    if (!any)
        return PO_OK;
    static const po_relayout_law laws[] = {{PO_LAW_ROWS, convert_conv},
                                           {PO_LAWS, po_relayout_elementwise},
                                           {PO_LAW_ROWS_CONCAT, convert_concat}};
    po_relayout f = {.enter = to_rows, .leave = from_rows};
    po_relayout_graph(&f, graph, state, RANK, laws, sizeof laws / sizeof *laws);
    return PO_OK;
}

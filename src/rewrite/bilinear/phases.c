/* Convolutions along one axis with fewer multiplications, in the runtime's blocked layout:
 * Toom-Cook F(m, r) by phases.
 *
 * Output positions are taken in tiles of m, and the values at position j of every tile, a phase,
 * stay a tensor of their own. With stride s the taps q, q + s, .. of each residue q are a
 * correlation with stride 1 of r taps; its products are pointwise convolutions of sums of positions
 * that are s * m apart. Taking such sums is a depthwise convolution with stride s * m, making the
 * phases of the output from the products is adding, which the runtime does inside the convolutions.
 * So nothing leaves the blocked layout, and where a residue has one tap its pointwise convolutions
 * only add.
 *
 * What acts on elements goes phase by phase, and the next convolution reads phases where s * m is a
 * multiple of their number. Phases are as long as the tiles are many; what stands in the last tile
 * behind the end is never read. */
#include "base/num.h"
#include "ops/recipe/recipe.h"
#include "ops/sum/bilinear.h"
#include "rewrite/conv/conv.h"
#include "rewrite/passes.h"

enum { RANK = 4, MOST_PHASES = 4, MOST_PRODUCTS = 6, MOST_INPUTS = 4 };

/* A value whose positions along an axis are dealt out: part[p][i] = value[count * i + p]. */
typedef struct phased {
    uint32_t count; /* 0: it is whole */
    uint32_t axis;
    int64_t length, real; /* of each part; of the value: what comes behind is anything */
    po_value_id part[MOST_PHASES];
} phased;

typedef struct phases {
    po_graph *graph;
    po_arena *arena;
    phased *of;         /* for each value that the graph had at first */
    po_value_id *whole; /* of the phased: put together, where something asked for it; PO_NONE */
    uint32_t n;
    po_node_id *done; /* converted nodes, in order */
    uint32_t n_done, cap_done;
    po_rewriting *state;
} phases;

typedef struct phase_conv {
    po_arena *arena; /* for the algorithms' tables */
    po_conv conv;
    uint32_t axis, m;
    int64_t taps, stride, before, after; /* along the axis; padding */
    int64_t from, to, across; /* length of the axis in x and in y; positions on the other axes */
    int64_t tiles;
    phased x;
} phase_conv;

/* --- sums of positions --- */

/* sum of c[l] x[step * i + at + l * apart] for l < n and each tile i. */
typedef struct sum {
    int64_t at, apart;
    uint32_t n;
    const double *c;
} sum;

/* The part of a sum that one phase of x gives: a depthwise convolution, or x itself. */
typedef struct window {
    bool used;
    int64_t first, spacing, count; /* offsets first, first + spacing, .. */
    int64_t stride;
    double c[MOST_PRODUCTS * 8];
} window;

/* False where the taps lie too far apart. */
static bool make_window(const phase_conv *r, const sum *s, uint32_t phase, window *w) {
    int64_t count = r->x.count ? r->x.count : 1, offset[MOST_PRODUCTS], last = 0, spacing = 0;
    double c[MOST_PRODUCTS];
    uint32_t n = 0;
    *w = (window){.stride = r->stride * r->m / count};
    for (uint32_t l = 0; l < s->n; l++) {
        int64_t at = s->at + (int64_t)l * s->apart, q = po_floor_div(at, count);
        if (s->c[l] == 0 || at - q * count != phase)
            continue;
        offset[n] = q;
        c[n++] = s->c[l];
    }
    if (n == 0)
        return true;
    /* A window starts at or before the first position: what begins later has zeros in front. */
    w->first = offset[0] < 0 ? offset[0] : 0;
    last = offset[n - 1];
    for (uint32_t l = 0; l < n; l++)
        spacing = po_gcd_i64(offset[l] - w->first, spacing);
    w->spacing = spacing ? spacing : 1;
    w->count = (last - w->first) / w->spacing + 1;
    if (w->count > (int64_t)(sizeof w->c / sizeof *w->c))
        return false;
    for (uint32_t l = 0; l < n; l++)
        w->c[(offset[l] - w->first) / w->spacing] += c[l];
    w->used = true;
    return true;
}

static int64_t span(const window *w) {
    return (w->count - 1) * w->spacing + 1;
}

/* --- the sums of a convolution --- */

/* Calls back for every sum that the convolution takes: of each residue q, products or single taps.
 */
typedef struct residue {
    uint32_t q, r; /* taps q, q + stride, ..: r of them */
    po_bilinear alg;
} residue;

static bool read_residue(const phase_conv *r, uint32_t q, residue *e) {
    *e = (residue){.q = q, .r = (uint32_t)((r->taps - q + r->stride - 1) / r->stride)};
    return e->r < 2 || (e->r + r->m - 1 <= MOST_PRODUCTS &&
                        po_bilinear_make(r->arena, PO_POINTS_DYADIC, r->m, e->r, 1, &e->alg));
}

static uint32_t residues(const phase_conv *r) {
    return (uint32_t)(r->stride < r->taps ? r->stride : r->taps);
}

static uint32_t sums_of(const phase_conv *r, const residue *e) {
    return e->r < 2 ? r->m : e->alg.n;
}

static sum sum_of(const phase_conv *r, const residue *e, uint32_t k) {
    static const double one = 1;
    if (e->r < 2)
        return (sum){e->q + (int64_t)k * r->stride - r->before, 0, 1, &one};
    return (sum){e->q - r->before, r->stride, e->alg.n, &e->alg.b[(size_t)k * e->alg.n]};
}

/* --- reading, and whether it pays --- */

/* Every reader is a convolution that takes sums along the axis, perhaps behind what acts on
 * elements: then phases are what it reads. */
static bool read_along(const po_graph *g, po_value_id v, uint32_t axis) {
    for (int depth = 0; depth < 4; depth++) {
        if (g->values[v].n_outputs || g->values[v].n_uses != 1)
            return false;
        po_conv c;
        po_node_id id = g->values[v].uses[0].node;
        if (po_conv_read(g, id, &c))
            return c.kernel[axis - 2] > 2 && c.group == 1;
        if (!po_op_has(g->nodes[id].op, PO_OPF_ELEMENTWISE) || g->nodes[id].n_out != 1)
            return false;
        v = g->nodes[id].out[0];
    }
    return false;
}

/* Counts tiles and cost; false where it cannot be done with m phases. */
static bool cost_phases(const po_graph *g, phase_conv *r, double *cost) {
    const po_conv *c = &r->conv;
    uint32_t parts = r->x.count ? r->x.count : 1;
    double products = 0, matrices = 0, windows = 0, adds = 0;
    if (r->stride * r->m % parts)
        return false;
    r->tiles = (r->to + r->m - 1) / r->m;
    for (uint32_t q = 0; q < residues(r); q++) {
        residue e;
        if (!read_residue(r, q, &e))
            return false;
        uint32_t n = sums_of(r, &e);
        products += n;
        matrices += e.r < 2 ? 1 : n;
        adds += e.r < 2 ? 0 : (e.alg.n > 3) + (e.alg.n > 4) * r->m * (e.alg.n - 4);
        for (uint32_t k = 0; k < n; k++)
            for (uint32_t p = 0; p < parts; p++) {
                window w;
                sum s = sum_of(r, &e, k);
                if (!make_window(r, &s, p, &w))
                    return false;
                if (!w.used)
                    continue;
                windows++;
                /* No window gives fewer tiles than another. */
                int64_t length = r->x.count ? r->x.length : r->from;
                int64_t tiles = po_floor_div(length - w.first - span(&w), w.stride) + 1;
                if (tiles > r->tiles)
                    r->tiles = tiles;
            }
    }
    double in = (double)(c->in * r->tiles * r->across),
           out = (double)(c->out * r->tiles * r->across);
    double weights = (double)(c->in * c->out) * (matrices - (double)r->taps);
    *cost = 2 * products * in * (double)c->out +
            po_numbers.phases.sum * (windows * in + adds * out) +
            po_numbers.phases.node * (2 * products + windows + adds) +
            po_numbers.phases.weight * weights;
    if (!read_along(g, c->y, r->axis))
        *cost += po_numbers.phases.whole * out * r->m;
    return true;
}

/* Reads a convolution that gains, with the number of phases that gains most. */
static bool read_conv(const phases *f, po_node_id id, phase_conv *r) {
    const po_graph *g = f->graph;
    *r = (phase_conv){.arena = f->arena};
    if (!po_conv_read(g, id, &r->conv) || !po_law_may(f->state, PO_ALGEBRA_PHASES, g, r->conv.y))
        return false;
    const po_conv *c = &r->conv;
    uint32_t rank, rank2;
    const po_dim *x = po_static_dims(g, c->x, &rank), *y = po_static_dims(g, c->y, &rank2);
    if (c->dtype != PO_F32 || c->group != 1 || !x || !y || rank != RANK || rank2 != RANK ||
        c->in % PO_CHANNEL_BLOCK || c->out % PO_CHANNEL_BLOCK || c->x >= f->n)
        return false;
    uint32_t a = c->kernel[1] > 1, b = 1 - a;
    if (c->kernel[a] < 3 || c->kernel[b] != 1 || c->stride[b] != 1 || c->dilation[a] != 1 ||
        c->before[b] || c->after[b])
        return false;
    r->axis = 2 + a;
    r->taps = c->kernel[a];
    r->stride = c->stride[a];
    r->before = c->before[a];
    r->after = c->after[a];
    r->from = x[r->axis].value;
    r->to = y[r->axis].value;
    r->across = x[0].value * x[2 + b].value;
    if (r->across < 1 || r->from < 1 || r->to < 2)
        return false;
    /* Phases of another axis, or with anything where padding wants zeros, are put together first.
     */
    const phased *known = &f->of[c->x];
    if (known->count && known->axis == r->axis &&
        (r->after == 0 || known->length * known->count == known->real))
        r->x = *known;
    const uint32_t most = po_law_tile(f->state, PO_TILED_PHASES, MOST_PHASES);
    phase_conv with = *r;
    double putting = known->count && f->whole[c->x] == PO_NONE
                         ? po_numbers.phases.whole * (double)(c->in * r->from * r->across)
                         : 0;
    double best = 2.0 * (double)(c->in * c->out) * (double)(r->taps * r->to * r->across);
    best = (best + putting) / po_numbers.phases.gain;
    for (int whole = 0; whole < (r->x.count ? 2 : 1); whole++) {
        if (whole)
            with.x = (phased){0};
        for (with.m = 2; with.m <= most; with.m++) {
            double cost;
            if (!cost_phases(g, &with, &cost))
                continue;
            cost += with.x.count ? 0 : putting;
            if (cost >= best)
                continue;
            best = cost;
            *r = with;
        }
    }
    return r->m > 0;
}

/* --- the nodes --- */

static po_value_id turned(phases *f, po_node_id at, po_value_id x, const int64_t perm[RANK]) {
    return po_add_transpose(f->graph, at, x, RANK, perm, NULL);
}

/* The value with its positions in their order again: with channels last, phases side by side are
 * that already. */
static po_value_id whole_of(phases *f, po_node_id at, po_value_id v) {
    po_graph *g = f->graph;
    const phased *p = &f->of[v];
    if (p->count == 0)
        return v;
    if (f->whole[v] != PO_NONE)
        return f->whole[v];
    po_value_id in[MOST_PHASES];
    po_type unknown = po_type_unranked(PO_F32), type = g->values[v].type;
    for (uint32_t i = 0; i < p->count; i++)
        in[i] = turned(f, at, p->part[i], (const int64_t[]){0, 2, 3, 1});
    po_value_id y = po_add_concat(g, at, p->count, in, p->axis, &unknown);
    int64_t dims[RANK] = {type.dims[0].value, type.dims[2].value, type.dims[3].value,
                          type.dims[1].value};
    dims[p->axis - 1] = p->length * p->count;
    y = po_add_reshape(g, at, y, RANK, dims);
    if (p->length * p->count != p->real) {
        po_value_id cut[4] = {y, po_add_i64s(g, NULL, 1, (const int64_t[]){0}),
                              po_add_i64s(g, NULL, 1, &p->real),
                              po_add_i64s(g, NULL, 1, (const int64_t[]){p->axis - 1})};
        y = po_add_op(g, at, PO_OP_Slice, 4, cut, &unknown);
    }
    y = turned(f, at, y, (const int64_t[]){0, 3, 1, 2});
    g->values[y].type = type;
    return f->whole[v] = y;
}

static po_value_id added(phases *f, po_node_id at, po_value_id a, po_value_id b) {
    po_type unknown = po_type_unranked(PO_F32);
    return a == PO_NONE || b == PO_NONE
               ? (a == PO_NONE ? b : a)
               : po_add_op(f->graph, at, PO_OP_Add, 2, (po_value_id[]){a, b}, &unknown);
}

/* A depthwise convolution with the same taps for every channel. */
static po_value_id depthwise(phases *f, po_node_id at, po_value_id x, int64_t channels,
                             uint32_t axis, int64_t n, const double *taps, po_conv like) {
    like.kernel[axis - 2] = n;
    return po_conv_each(f->graph, f->arena, at, x, &like, channels, &(po_taps){taps, 0}, PO_NONE);
}

static po_value_id scaled(phases *f, po_node_id at, po_value_id x, int64_t channels, double c) {
    return depthwise(f, at, x, channels, 3, 1, &c, po_conv_pointwise(PO_F32, channels, channels));
}

static po_value_id take_sum(phases *f, po_node_id at, const phase_conv *r, const sum *s,
                            po_value_id x) {
    uint32_t parts = r->x.count ? r->x.count : 1, a = r->axis - 2;
    int64_t length = r->x.count ? r->x.length : r->from;
    po_value_id y = PO_NONE;
    for (uint32_t p = 0; p < parts; p++) {
        window w;
        make_window(r, s, p, &w);
        if (!w.used)
            continue;
        po_value_id from = r->x.count ? r->x.part[p] : x;
        if (!(w.stride == 1 && w.count == 1 && w.first == 0 && w.c[0] == 1 && length == r->tiles)) {
            po_conv like = po_conv_pointwise(PO_F32, r->conv.in, r->conv.in);
            like.stride[a] = w.stride;
            like.dilation[a] = w.spacing;
            like.before[a] = -w.first;
            int64_t behind = (r->tiles - 1) * w.stride + span(&w) - (length - w.first);
            like.after[a] = behind > 0 ? behind : 0;
            from = depthwise(f, at, from, r->conv.in, r->axis, w.count, w.c, like);
        }
        y = added(f, at, from, y);
    }
    return y;
}

/* Weights of product k, [out, in, 1, 1]: a combination of the taps of the residue. */
static const po_recipe *weights_of(phases *f, const phase_conv *r, const residue *e, uint32_t k) {
    const po_conv *c = &r->conv;
    int64_t pairs = c->out * c->in, index[MOST_PRODUCTS + 1];
    const po_recipe *w = po_recipe_reshape(f->arena, po_conv_weights(f->graph, f->arena, c), 2,
                                           (const int64_t[]){pairs, r->taps});
    for (uint32_t i = 0; i < e->r; i++)
        index[i] = e->q + (int64_t)i * r->stride;
    w = po_recipe_gather(f->arena, w, 1, e->r, index);
    if (e->r > 1) {
        const po_recipe *column = po_recipe_literal(f->arena, 2, (const int64_t[]){e->r, 1},
                                                    &e->alg.powers[(size_t)k * e->r]);
        w = po_recipe_div(f->arena, po_recipe_matmul(f->arena, w, column),
                          po_recipe_number(f->arena, e->alg.scale[k]));
    }
    return po_recipe_reshape(f->arena, w, RANK, (const int64_t[]){c->out, c->in, 1, 1});
}

/* What the products of one residue add to the phases y[0..m). */
static bool add_products(phases *f, po_node_id at, const phase_conv *r, const residue *e,
                         po_value_id x, const po_recipe *bias, po_value_id *y) {
    const po_conv *c = &r->conv;
    uint32_t n = sums_of(r, e), m = r->m;
    po_conv like = po_conv_pointwise(PO_F32, c->out, c->in);
    po_value_id p[MOST_PRODUCTS] = {PO_NONE}, base[2], w = PO_NONE, shift = PO_NONE;
    if (bias && (shift = po_add_recipe(f->graph, NULL, PO_F32, bias)) == PO_NONE)
        return false;
    for (uint32_t k = 0; k < n; k++) {
        sum s = sum_of(r, e, k);
        /* A single tap has the same weights in every phase. */
        if (k == 0 || e->r > 1)
            w = po_add_recipe(f->graph, NULL, PO_F32, weights_of(f, r, e, k));
        if (w == PO_NONE)
            return false;
        bool biased = e->r < 2 || k == e->alg.one;
        p[k] = po_conv_add(f->graph, at, take_sum(f, at, r, &s, x), &like, w,
                           biased ? shift : PO_NONE);
    }
    if (e->r < 2) {
        for (uint32_t j = 0; j < m; j++)
            y[j] = added(f, at, p[j], y[j]);
        return true;
    }
    /* Points 1 and -1, of which every phase takes the sum or the difference. */
    base[0] = base[1] = p[1];
    if (n > 3) {
        base[0] = added(f, at, p[1], p[2]);
        base[1] = added(f, at, scaled(f, at, p[2], c->out, -1), p[1]);
    }
    for (uint32_t j = 0; j < m; j++) {
        const double *a = &e->alg.a[(size_t)j * n];
        y[j] = added(f, at, base[j % 2], y[j]);
        for (uint32_t k = 3; k + 1 < n; k++)
            y[j] = added(f, at, a[k] == 1 ? p[k] : scaled(f, at, p[k], c->out, a[k]), y[j]);
        if (a[0] != 0)
            y[j] = added(f, at, p[0], y[j]);
        if (a[n - 1] != 0)
            y[j] = added(f, at, p[n - 1], y[j]);
    }
    return true;
}

static void note(phases *f, po_node_id id, const phased *p) {
    f->of[f->graph->nodes[id].out[0]] = *p;
    PO_PUSH(f->arena, f->done, f->n_done, f->cap_done, id);
}

static bool convert_conv(phases *f, po_node_id id) {
    phase_conv r;
    if (!read_conv(f, id, &r))
        return false;
    const po_recipe *bias = po_conv_bias(f->graph, f->arena, &r.conv);
    po_value_id x = r.x.count ? PO_NONE : whole_of(f, id, r.conv.x);
    phased y = {.count = r.m, .axis = r.axis, .length = r.tiles, .real = r.to};
    for (uint32_t j = 0; j < MOST_PHASES; j++)
        y.part[j] = PO_NONE;
    /* Residues with several taps first: single taps then join the convolutions' sums. */
    for (int single = 0; single < 2; single++)
        for (uint32_t q = 0; q < residues(&r); q++) {
            residue e;
            read_residue(&r, q, &e);
            if ((e.r < 2) != single)
                continue;
            if (!add_products(f, id, &r, &e, x, bias, y.part))
                return false;
            bias = NULL;
        }
    const po_tiled_use use = {PO_TILED_PHASES, PO_ALGEBRA_PHASES, r.m, r.taps, r.stride, 0};
    po_law_tiled(f->state, f->graph, r.conv.y, &use);
    note(f, id, &y);
    return true;
}

/* A node that acts on each element, of phases and of numbers: on each phase. */
static bool convert_elementwise(phases *f, po_node_id id) {
    po_graph *g = f->graph;
    const po_node *n = &g->nodes[id];
    const phased *like = NULL;
    if (!po_op_has(n->op, PO_OPF_ELEMENTWISE) || n->n_in < 1 || n->n_in > MOST_INPUTS)
        return false;
    for (uint32_t k = 0; k < n->n_in; k++) {
        if (po_number_or_none(g, n->in[k]))
            continue;
        const phased *p = n->in[k] < f->n ? &f->of[n->in[k]] : NULL;
        if (!p || !p->count ||
            (like && (p->count != like->count || p->axis != like->axis ||
                      p->length != like->length || p->real != like->real)) ||
            !po_same_dims(g, n->in[k], n->out[0]))
            return false;
        like = p;
    }
    if (!like || n->out[0] >= f->n || !po_rearrangeable(g, n->out[0]))
        return false;
    phased y = *like;
    uint32_t n_in = n->n_in, n_attr = n->n_attr;
    po_op_id op = n->op;
    const po_value_id *old = po_arena_memdup(f->arena, n->in, n_in * sizeof *old);
    const po_attr *attrs = po_arena_memdup(g->arena, n->attr, n_attr * sizeof *attrs);
    for (uint32_t p = 0; p < y.count; p++) {
        po_value_id in[MOST_INPUTS];
        for (uint32_t k = 0; k < n_in; k++)
            in[k] = po_number_or_none(g, old[k]) ? old[k] : f->of[old[k]].part[p];
        po_type unknown = po_type_unranked(PO_F32);
        y.part[p] = po_graph_add_value(g, NULL, &unknown);
        po_ops_add(g, id,
                   &(po_node_spec){.op = op,
                                   .name = g->values[y.part[p]].name,
                                   .n_in = n_in,
                                   .in = in,
                                   .n_out = 1,
                                   .out = &y.part[p],
                                   .n_attr = n_attr,
                                   .attr = attrs});
    }
    note(f, id, &y);
    return true;
}

po_status po_use_phases(po_ctx *ctx, po_graph *graph, po_rewriting *state) {
    (void)ctx;
    /* Slice takes its bounds as inputs since 10. */
    if (po_model_opset(graph->model, "") < 10)
        return PO_OK;
    phases f = {.graph = graph, .arena = state->scratch, .n = graph->n_values};
    f.state = state;
    f.of = PO_NEW_N(f.arena, phased, f.n);
    f.whole = PO_NEW_N(f.arena, po_value_id, f.n);
    memset(f.of, 0, f.n * sizeof *f.of);
    memset(f.whole, 0xff, f.n * sizeof *f.whole); /* PO_NONE */
    uint32_t n;
    const po_node_id *order = po_graph_order(graph, state->scratch, &n);
    for (uint32_t k = 0; k < n; k++) {
        const po_node *node = &graph->nodes[order[k]];
        if (node->removed || node->n_out != 1 || node->out[0] == PO_NONE || node->out[0] >= f.n)
            continue;
        if (!po_law_fired(state, PO_LAW_PHASES, convert_conv(&f, order[k])))
            convert_elementwise(&f, order[k]);
    }
    for (uint32_t k = 0; k < f.n_done; k++) {
        po_value_id y = graph->nodes[f.done[k]].out[0];
        po_substitute(graph, y, whole_of(&f, f.done[k], y));
    }
    return PO_OK;
}

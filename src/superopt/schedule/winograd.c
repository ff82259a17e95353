/* Convolutions by Toom-Cook algorithms along one or both axes of a map (ops/sum/bilinear.h): fewer
 * multiplications, rounding somewhat worse. Weights are transformed while they are read, so that
 * the model keeps its own. A third axis, of frames, is summed over as it stands: frames share their
 * transforms.
 *
 * Two ways. "By panels": the whole map is transformed first; then, for each panel of outputs and
 * slice of inputs, the slice's weights are transformed into cache and multiplied. The map lies
 * slice by slice, so that what a pass reads of it lies together. "By rows": the weights are
 * transformed once a call, and each block of tile rows is worked from its transform to its outputs
 * without leaving the cache; for large maps of few channels. */
#include "superopt/schedule/winograd.h"
#include "base/num.h"
#include "ops/sum/bilinear.h"

/* --- building --- */

typedef struct build {
    po_schedule *s;
    const po_mu_conv *v;
    const po_choice *choice;
    po_for_label *map;
    int64_t m[2], t[2]; /* along y and x */
    int64_t rows, columns, panel, slice, block;
    int64_t shots; /* frames of the input */
    /* labels */
    uint32_t ty, ti, tx, i, j, d, e, u, w, r, q, c, k, b, cb, tile, py, px;
    uint32_t z, g, shot; /* frame, its tap, frame of the input */
    uint32_t a_table[2], b_table[2], g_table[2];
} build;

static uint32_t label(build *z, const char *name, int64_t n) {
    return n == 1 ? PO_NONE : po_mu_add_label(z->s->mu, name, n);
}

static uint32_t tensor(build *z, const char *name, po_mu_place place, uint32_t rank,
                       const int64_t *dims) {
    return po_mu_add_tensor(z->s->mu, name, place, rank, dims);
}

static uint32_t table(build *z, const char *name, uint32_t rows, uint32_t columns,
                      const po_rational *values) {
    uint32_t id = tensor(z, name, PO_MU_TABLE, 2, (int64_t[]){rows, columns});
    z->s->mu->tensors[id].table = values;
    return id;
}

static po_mu_access by(build *z, uint32_t tensor_id, const uint32_t *labels) {
    return po_access_by(z->s->mu, tensor_id, labels);
}

static void at_tile(build *z, po_mu_access *access, uint32_t axis) {
    if (z->ti != PO_NONE)
        po_mu_at(z->s->mu, access, axis, z->columns, z->ti);
    if (z->block == 0 && z->ty != PO_NONE)
        po_mu_at(z->s->mu, access, axis, z->columns, z->ty);
    if (z->py != PO_NONE)
        po_mu_at(z->s->mu, access, axis, z->rows * z->columns * z->v->map[1].apart, z->py);
    if (z->px != PO_NONE)
        po_mu_at(z->s->mu, access, axis, z->rows * z->columns, z->px);
    if (z->tx != PO_NONE)
        po_mu_at(z->s->mu, access, axis, 1, z->tx);
}

/* The same for [.., ty, ti, tx, ., ., lane]: phases are further digits of ty and tx, the frame
 * one of ty. */
static po_mu_access phased(build *z, uint32_t tensor_id, const uint32_t *labels, uint32_t frame) {
    po_mu_access access = by(z, tensor_id, labels);
    uint32_t first = z->s->mu->tensors[tensor_id].rank - 6;
    if (z->py != PO_NONE)
        po_mu_at(z->s->mu, &access, first, z->rows, z->py);
    if (z->px != PO_NONE)
        po_mu_at(z->s->mu, &access, first + 2, z->columns, z->px);
    if (frame != PO_NONE)
        po_mu_at(z->s->mu, &access, first, z->rows * z->v->map[0].apart, frame);
    return access;
}

static uint32_t product(build *z, uint32_t parent, po_mu_access out, po_mu_access a,
                        po_mu_access b) {
    return po_add_product(z->s->mu, parent, out, a, b);
}

static uint32_t loop(build *z, uint32_t parent, po_mu_loop_kind kind, uint32_t l) {
    return l == PO_NONE ? parent : po_mu_add_loop(z->s->mu, parent, kind, l, 1);
}

/* Where a transformed input lies outermost: a block of rows of its own, or a slice. */
static void at_outer(build *z, po_mu_access *access) {
    const uint32_t outer = z->block ? z->ty : z->cb;
    if (outer != PO_NONE)
        po_mu_at(z->s->mu, access, 0, 1, outer);
}

/* The tile of inputs for the naive access: y = stride * m * ty + d, x = stride * m * tx + e. */
static void transform_input(build *z, uint32_t parent, uint32_t to) {
    po_mu *mu = z->s->mu;
    const po_mu_access *a = &z->v->n.s->in[z->v->n.a];
    uint32_t lanes = po_mu_add_loop(mu, parent, PO_MU_LANES, z->c, 0);
    /* A tile's outputs and their taps are positions within it. */
    po_for_label *map = po_for_labels(z->s);
    map[z->v->c] = z->map[z->v->c];
    for (uint32_t n = 0; n < 2; n++) {
        const po_conv_axis *axis = &z->v->map[n];
        uint32_t within = n ? z->j : z->i, position = n ? z->e : z->d;
        if (axis->at == PO_NONE)
            continue;
        const po_for_label *from = &z->map[axis->at];
        for (uint32_t i = 0; i < from->n; i++)
            if (from->terms[i].label != within)
                map[axis->at].terms[map[axis->at].n++] = from->terms[i];
        if (axis->tap != PO_NONE)
            map[axis->tap] = (po_for_label){1, {{position, 1}}};
    }
    po_mu_access in = po_map_access(z->s, map, a);
    uint32_t frames = z->v->frames.axis;
    if (frames != PO_NONE) {
        po_mu_at(mu, &in, frames, -a->axes[frames].offset, PO_NONE);
        if (z->shot != PO_NONE)
            po_mu_at(mu, &in, frames, 1, z->shot);
    }
    po_mu_access out = po_mu_access_of(mu, to);
    uint32_t first = mu->tensors[to].rank - 4;
    at_outer(z, &out);
    if (z->shot != PO_NONE)
        po_mu_at(mu, &out, first - 1, 1, z->shot);
    if (z->u != PO_NONE)
        po_mu_at(mu, &out, first, 1, z->u);
    if (z->w != PO_NONE)
        po_mu_at(mu, &out, first + 1, 1, z->w);
    at_tile(z, &out, first + 2);
    po_mu_at(mu, &out, first + 3, 1, z->c);
    if (z->u != PO_NONE && z->w != PO_NONE) {
        int64_t dims[] = {z->v->inputs / z->slice,
                          z->rows * z->v->map[0].apart * z->shots,
                          z->block ? z->block : 1,
                          z->columns * z->v->map[1].apart,
                          z->t[0],
                          z->t[1],
                          z->slice};
        uint32_t half = tensor(z, "h", PO_MU_REGISTER, 7, dims);
        mu->tensors[half].scope = lanes;
        const uint32_t half_at[] = {z->cb, z->ty, z->ti, z->tx, z->u, z->e, z->c};
        product(z, lanes, phased(z, half, half_at, z->shot),
                by(z, z->b_table[0], (uint32_t[]){z->u, z->d}), in);
        in = phased(z, half, half_at, z->shot);
    }
    po_mu_access b = z->w != PO_NONE ? by(z, z->b_table[1], (uint32_t[]){z->w, z->e})
                                     : by(z, z->b_table[0], (uint32_t[]){z->u, z->d});
    product(z, lanes, out, b, in);
}

/* What `values_in_panels` has copied. */
static po_mu_access packed_value(build *z, uint32_t packed) {
    const po_for_label *c = &z->map[z->v->c];
    const uint32_t at[] = {z->b, z->g, z->r, z->q, PO_NONE, z->k};
    po_mu_access access = by(z, packed, at);
    for (uint32_t i = 0; i < c->n; i++)
        po_mu_at(z->s->mu, &access, 4, c->terms[i].coef, c->terms[i].label);
    return access;
}

static void transform_weights(build *z, uint32_t parent, uint32_t to, uint32_t packed,
                              const po_panels *p) {
    po_mu *mu = z->s->mu;
    const po_mu_conv *v = z->v;
    uint32_t lanes = po_mu_add_loop(mu, parent, PO_MU_LANES, z->k, 0);
    po_mu_access in = v->values ? packed_value(z, packed)
                                : po_panel_access(z->s, z->map, &v->n.s->in[v->n.b], p, packed);
    bool both = z->u != PO_NONE && z->w != PO_NONE;
    uint32_t id = PO_NONE;
    if (both) {
        int64_t dims[] = {v->outputs / z->panel,
                          v->inputs / z->slice,
                          z->slice * v->frames.taps,
                          z->t[0],
                          v->map[1].taps,
                          z->panel};
        uint32_t half = tensor(z, "g", PO_MU_REGISTER, 6, dims);
        mu->tensors[half].scope = lanes;
        po_mu_access half_at = by(z, half, (uint32_t[]){z->b, z->cb, z->c, z->u, z->q, z->k});
        if (z->g != PO_NONE)
            po_mu_at(mu, &half_at, 2, z->slice, z->g);
        id = product(z, lanes, half_at, by(z, z->g_table[0], (uint32_t[]){z->u, z->r}), in);
        in = half_at;
    }
    po_mu_access g = z->w != PO_NONE ? by(z, z->g_table[1], (uint32_t[]){z->w, z->q})
                                     : by(z, z->g_table[0], (uint32_t[]){z->u, z->r});
    const uint32_t at[] = {z->b, z->cb, z->g, z->u, z->w, z->c, z->k};
    uint32_t whole = product(z, lanes, by(z, to, at), g, in);
    if (!z->block && !v->values) { /* the next slice comes from memory meanwhile */
        id = both ? id : whole;
        mu->nodes[id].statement.ahead =
            z->slice * v->frames.taps * v->map[0].taps * v->map[1].taps * p->panel;
        mu->nodes[id].statement.ahead_of = 1;
    }
}

static void transform_output(build *z, uint32_t parent, uint32_t from) {
    po_mu *mu = z->s->mu;
    const po_naive_step *n = &z->v->n;
    uint32_t lanes = po_mu_add_loop(mu, parent, PO_MU_LANES, z->k, 0);
    int64_t dims[] = {z->v->outputs / z->panel,
                      z->rows * z->v->map[0].apart * z->v->frames.length,
                      z->block ? z->block : 1,
                      z->columns * z->v->map[1].apart,
                      z->m[0],
                      z->m[1],
                      z->panel};
    uint32_t out = tensor(z, "p", PO_MU_REGISTER, 7, dims);
    mu->tensors[out].scope = lanes;
    const uint32_t out_at[] = {z->b, z->ty, z->ti, z->tx, z->i, z->j, z->k};
    po_mu_access m = po_mu_access_of(mu, from);
    uint32_t first = mu->tensors[from].rank - 4;
    if (z->b != PO_NONE)
        po_mu_at(mu, &m, 0, 1, z->b);
    if (z->block && z->ty != PO_NONE)
        po_mu_at(mu, &m, 1, 1, z->ty);
    if (z->z != PO_NONE)
        po_mu_at(mu, &m, first - 1, 1, z->z);
    if (z->u != PO_NONE)
        po_mu_at(mu, &m, first, 1, z->u);
    if (z->w != PO_NONE)
        po_mu_at(mu, &m, first + 1, 1, z->w);
    at_tile(z, &m, first + 2);
    po_mu_at(mu, &m, first + 3, 1, z->k);
    if (z->u != PO_NONE && z->w != PO_NONE) {
        dims[5] = z->t[1];
        uint32_t half = tensor(z, "o", PO_MU_REGISTER, 7, dims);
        mu->tensors[half].scope = lanes;
        const uint32_t half_at[] = {z->b, z->ty, z->ti, z->tx, z->i, z->w, z->k};
        product(z, lanes, phased(z, half, half_at, z->z),
                by(z, z->a_table[0], (uint32_t[]){z->i, z->u}), m);
        m = phased(z, half, half_at, z->z);
    }
    po_mu_access a = z->w != PO_NONE ? by(z, z->a_table[1], (uint32_t[]){z->j, z->w})
                                     : by(z, z->a_table[0], (uint32_t[]){z->i, z->u});
    product(z, lanes, phased(z, out, out_at, z->z), a, m);
    po_mu_access y = po_map_access(z->s, z->map, n->out);
    if (!n->tail) {
        uint32_t id = po_mu_add_statement(mu, lanes, PO_MU_SET);
        mu->nodes[id].statement.out = y;
        po_mu_item_of(mu, id, PO_MU_OPERAND, po_mu_operand(mu, id, phased(z, out, out_at, z->z)), 0,
                      0);
        return;
    }
    po_mu_access replaced[PO_MU_MAX_INPUTS];
    for (uint32_t i = 0; i < n->tail->n_in; i++) {
        replaced[i].tensor = PO_NONE;
        if (n->tail->in[i].tensor == n->s->out.tensor)
            replaced[i] = phased(z, out, out_at, z->z);
    }
    uint32_t id = po_map_statement(z->s, lanes, z->map, n->tail, &y, replaced);
    mu->nodes[id].statement.fused = false;
}

/* Strides of [..., u, w, tile, channel] with room between the streams. */
static void spread(build *z, uint32_t id, int64_t tiles, int64_t channels, int64_t gap) {
    po_mu_layout(z->s->mu, id, 1, 0);
    po_mu_tensor *t = &z->s->mu->tensors[id];
    uint32_t first = t->rank - 4;
    channels = po_ceil_div(channels, PO_MU_VECTOR) * PO_MU_VECTOR;
    t->stride[first + 3] = 1;
    t->stride[first + 2] = channels + gap;
    t->stride[first + 1] = tiles * t->stride[first + 2] + PO_WINOGRAD_PAD;
    t->stride[first] = z->t[1] * t->stride[first + 1];
    int64_t stride = z->t[0] * t->stride[first];
    for (uint32_t x = first; x-- > 0;) {
        int64_t least, count;
        po_mu_held(z->s->mu, id, x, &least, &count);
        t->stride[x] = stride;
        stride *= count;
    }
    po_mu_measure(z->s->mu, id);
}

static void tile_product(build *z, uint32_t id) {
    enum { MOST = 8 };
    po_mu_statement *s = &z->s->mu->nodes[id].statement;
    uint32_t *order = PO_NEW_N(z->s->arena, uint32_t, MOST), n = 0;
    const uint32_t outer[MOST] = {
        z->block ? z->ty : PO_NONE, z->b, z->u, z->w, z->z, z->cb, z->g, z->c};
    for (uint32_t i = 0; i < MOST; i++)
        if (outer[i] != PO_NONE)
            order[n++] = outer[i];
    s->lane = z->k;
    s->vectors = (uint32_t)po_ceil_div(z->panel, PO_MU_VECTOR);
    s->row = z->tile;
    s->rows = (uint32_t)z->choice->n[PO_WINOGRAD_ROWS];
    s->order = order;
    s->n_order = n;
}

static void map_labels(build *z) {
    const po_mu_conv *v = z->v;
    po_for_label *map = z->map;
    for (uint32_t n = 0; n < 2; n++) {
        const po_conv_axis *axis = &v->map[n];
        if (axis->tap != PO_NONE)
            map[axis->tap] = (po_for_label){1, {{n ? z->q : z->r, 1}}};
        if (axis->at == PO_NONE)
            continue;
        po_for_label *f = &map[axis->at];
        uint32_t outer = n ? z->tx : z->ty, phase = n ? z->px : z->py, within = n ? z->j : z->i;
        if (within != PO_NONE)
            f->terms[f->n++] = (po_mu_term){within, axis->apart};
        if (outer != PO_NONE)
            f->terms[f->n++] =
                (po_mu_term){outer, axis->apart * z->m[n] * (n || !z->block ? 1 : z->block)};
        if (phase != PO_NONE)
            f->terms[f->n++] = (po_mu_term){phase, 1};
        if (!n && z->ti != PO_NONE)
            f->terms[f->n++] = (po_mu_term){z->ti, z->m[0]};
    }
    if (z->z != PO_NONE)
        map[v->frames.at] = (po_for_label){1, {{z->z, 1}}};
    if (z->g != PO_NONE)
        map[v->frames.tap] = (po_for_label){1, {{z->g, 1}}};
    map[v->c] = (po_for_label){1, {{z->c, 1}}};
    if (z->cb != PO_NONE)
        map[v->c].terms[map[v->c].n++] = (po_mu_term){z->cb, z->slice};
    map[v->k] = (po_for_label){1, {{z->k, 1}}};
    if (z->b != PO_NONE)
        map[v->k].terms[map[v->k].n++] = (po_mu_term){z->b, z->panel};
}

static void prepare(build *z, po_schedule *s, const po_mu_conv *v, const po_choice *choice) {
    *z = (build){.s = s, .v = v, .choice = choice, .map = po_for_labels(s)};
    for (uint32_t n = 0; n < 2; n++) {
        const po_conv_axis *axis = &v->map[n];
        po_bilinear alg;
        z->m[n] = po_winograd_outputs(axis, choice->n[PO_WINOGRAD_OUTPUTS]);
        z->t[n] = po_winograd_products(axis, choice->n[PO_WINOGRAD_OUTPUTS]);
        if (n && po_conv_alike(axis, &v->map[0])) {
            z->a_table[1] = z->a_table[0];
            z->b_table[1] = z->b_table[0];
            z->g_table[1] = z->g_table[0];
        } else if (axis->taps > 1) {
            po_bilinear_make(s->arena, PO_POINTS_STEADY, (uint32_t)z->m[n], (uint32_t)axis->taps,
                             (uint32_t)axis->stride, &alg);
            z->a_table[n] = table(z, "at", alg.m, alg.n, alg.exact_a);
            z->b_table[n] = table(z, "bt", alg.n, alg.n, alg.exact_b);
            z->g_table[n] = table(z, "gt", alg.n, alg.r, alg.exact_g);
        }
    }
    const po_conv_axis *y = &v->map[0], *x = &v->map[1];
    z->rows = po_winograd_tiles(y, choice->n[PO_WINOGRAD_OUTPUTS]);
    z->columns = po_winograd_tiles(x, choice->n[PO_WINOGRAD_OUTPUTS]);
    z->panel = choice->n[PO_WINOGRAD_PANEL];
    z->slice = choice->n[PO_WINOGRAD_SLICE];
    z->block = choice->n[PO_WINOGRAD_BLOCK];
    const po_mu_tensor *in = &s->naive->tensors[v->n.s->in[v->n.a].tensor];
    z->shots = v->frames.axis == PO_NONE ? 1 : in->dims[v->frames.axis];
    if (z->block)
        z->rows = po_ceil_div(z->rows, z->block);
    z->ty = label(z, "ty", z->rows);
    z->ti = z->block ? label(z, "ti", z->block) : PO_NONE;
    z->tx = label(z, "tx", z->columns);
    z->i = label(z, "i", z->m[0]);
    z->j = label(z, "j", z->m[1]);
    z->d = label(z, "d", z->t[0]);
    z->e = label(z, "e", z->t[1]);
    z->u = label(z, "u", z->t[0]);
    z->w = label(z, "v", z->t[1]);
    z->r = label(z, "r", y->taps);
    z->q = label(z, "s", x->taps);
    z->k = label(z, "k", z->panel);
    z->b = label(z, "b", v->outputs / z->panel);
    z->cb = label(z, "cb", v->inputs / z->slice);
    z->py = label(z, "py", y->apart);
    z->px = label(z, "px", x->apart);
    z->z = label(z, "z", v->frames.length);
    z->g = label(z, "g", v->frames.taps);
    z->shot = label(z, "f", z->shots);
    z->tile = label(z, "t", (z->block ? z->block : z->rows) * z->columns * y->apart * x->apart);
    z->c = label(z, "c", z->slice);
    map_labels(z);
}

/* The transformed inputs, by frame of the output and its tap. */
static po_mu_access transformed(build *z, uint32_t big) {
    po_mu *mu = z->s->mu;
    uint32_t first = mu->tensors[big].rank - 4;
    po_mu_access in = po_mu_access_of(mu, big);
    at_outer(z, &in);
    if (z->v->frames.axis != PO_NONE) {
        const po_mu_index *index = &z->v->n.s->in[z->v->n.a].axes[z->v->frames.axis];
        po_mu_at(mu, &in, first - 1, index->offset, PO_NONE);
        for (uint32_t i = 0; i < index->n; i++) {
            uint32_t to = index->terms[i].label == z->v->frames.tap ? z->g : z->z;
            if (to != PO_NONE)
                po_mu_at(mu, &in, first - 1, index->terms[i].coef, to);
        }
    }
    const uint32_t rest[] = {z->u, z->w, z->tile, z->c};
    for (uint32_t i = 0; i < 4; i++)
        if (rest[i] != PO_NONE)
            po_mu_at(mu, &in, first + i, 1, rest[i]);
    return in;
}

static void by_panels(build *z, const char *name, uint32_t packed, const po_panels *p) {
    po_schedule *s = z->s;
    po_mu *mu = s->mu;
    const po_mu_conv *v = z->v;
    int64_t tiles = po_mu_extent(mu, z->tile), panels = v->outputs / z->panel;
    int64_t slices = v->inputs / z->slice;
    int64_t u_dims[] = {panels, slices, v->frames.taps, z->t[0], z->t[1], z->slice, z->panel};
    int64_t m_dims[] = {panels, v->frames.length, z->t[0], z->t[1], tiles, z->panel};
    int64_t v_dims[] = {slices, z->shots, z->t[0], z->t[1], tiles, z->slice};
    uint32_t big = tensor(z, "v", PO_MU_DEVICE, 6, v_dims);
    spread(z, big, tiles, z->slice, 0);
    uint32_t at = po_mu_add_step(mu, po_arena_printf(s->arena, "%s, inputs", name));
    at = loop(z, loop(z, at, PO_MU_GRID, z->shot), PO_MU_GRID, z->py);
    at = loop(z, at, PO_MU_GRID, z->ty);
    at = loop(z, loop(z, at, PO_MU_FOR, z->px), PO_MU_FOR, z->tx);
    transform_input(z, loop(z, at, PO_MU_FOR, z->cb), big);
    uint32_t outer = loop(z, po_mu_add_step(mu, name), PO_MU_GRID, z->b);
    at = loop(z, outer, PO_MU_FOR, z->cb);
    uint32_t u = tensor(z, "u", PO_MU_SHARED, 7, u_dims);
    uint32_t m = tensor(z, "m", PO_MU_SHARED, 6, m_dims);
    mu->tensors[u].scope = at;
    mu->tensors[m].scope = outer;
    transform_weights(z, loop(z, loop(z, at, PO_MU_FOR, z->c), PO_MU_FOR, z->g), u, packed, p);
    po_mu_access in = transformed(z, big);
    const uint32_t m_at[] = {z->b, z->z, z->u, z->w, z->tile, z->k};
    const uint32_t u_at[] = {z->b, z->cb, z->g, z->u, z->w, z->c, z->k};
    uint32_t id = product(z, at, by(z, m, m_at), in, by(z, u, u_at));
    tile_product(z, id);
    at = loop(z, loop(z, outer, PO_MU_FOR, z->z), PO_MU_FOR, z->py);
    at = loop(z, loop(z, at, PO_MU_FOR, z->px), PO_MU_FOR, z->ty);
    transform_output(z, loop(z, at, PO_MU_FOR, z->tx), m);
    spread(z, u, z->slice, z->panel, 0);
    spread(z, m, tiles, z->panel, 0);
}

static void by_rows(build *z, const char *name, uint32_t packed, const po_panels *p) {
    po_schedule *s = z->s;
    po_mu *mu = s->mu;
    const po_mu_conv *v = z->v;
    int64_t tiles = po_mu_extent(mu, z->tile), panels = v->outputs / z->panel;
    int64_t u_dims[] = {panels, 1, v->frames.taps, z->t[0], z->t[1], z->slice, z->panel};
    int64_t m_dims[] = {panels, z->rows, v->frames.length, z->t[0], z->t[1], tiles, z->panel};
    int64_t v_dims[] = {z->rows, z->shots, z->t[0], z->t[1], tiles, v->inputs};
    uint32_t u = tensor(z, "u", PO_MU_DEVICE, 7, u_dims);
    uint32_t at = po_mu_add_step(mu, po_arena_printf(s->arena, "%s, weights", name));
    at = loop(z, loop(z, at, PO_MU_GRID, z->b), PO_MU_GRID, z->c);
    transform_weights(z, loop(z, at, PO_MU_FOR, z->g), u, packed, p);
    uint32_t outer = loop(z, po_mu_add_step(mu, name), PO_MU_GRID, z->ty);
    uint32_t big = tensor(z, "v", PO_MU_SHARED, 6, v_dims);
    uint32_t m = tensor(z, "m", PO_MU_SHARED, 7, m_dims);
    mu->tensors[big].scope = outer;
    at = loop(z, loop(z, outer, PO_MU_FOR, z->shot), PO_MU_FOR, z->ti);
    transform_input(z, loop(z, at, PO_MU_FOR, z->tx), big);
    at = loop(z, outer, PO_MU_FOR, z->b);
    mu->tensors[m].scope = at;
    const uint32_t m_at[] = {z->b, z->ty, z->z, z->u, z->w, z->tile, z->k};
    const uint32_t u_at[] = {z->b, z->cb, z->g, z->u, z->w, z->c, z->k};
    uint32_t id = product(z, at, by(z, m, m_at), transformed(z, big), by(z, u, u_at));
    tile_product(z, id);
    at = loop(z, loop(z, at, PO_MU_FOR, z->z), PO_MU_FOR, z->ti);
    transform_output(z, loop(z, at, PO_MU_FOR, z->tx), m);
    spread(z, u, z->slice, z->panel, 0);
    spread(z, big, tiles, v->inputs, PO_WINOGRAD_PAD);
    spread(z, m, tiles, z->panel, 0);
}

/* A copy of weights that are computed at run time, [panels, frame's taps, taps, taps, inputs,
 * panel], in a step of its own. */
static uint32_t values_in_panels(build *z, const char *name) {
    po_schedule *s = z->s;
    const po_mu_conv *v = z->v;
    int64_t panels = v->outputs / z->panel;
    int64_t dims[] = {panels, v->frames.taps, v->map[0].taps, v->map[1].taps, v->inputs, z->panel};
    uint32_t packed = tensor(z, "w", PO_MU_DEVICE, 6, dims);
    po_mu_layout(s->mu, packed, PO_MU_VECTOR, 0);
    po_for_label *map = po_for_labels(s);
    uint32_t at[6] = {label(z, "b", panels)},
             step = po_mu_add_step(s->mu, po_arena_printf(s->arena, "%s, panels", name));
    const uint32_t inner[] = {v->frames.tap, v->map[0].tap, v->map[1].tap, v->c};
    for (uint32_t i = 0; i < 4; i++)
        at[1 + i] = inner[i] == PO_NONE ? PO_NONE : po_keep_label(s, map, inner[i]);
    at[5] = label(z, "k", z->panel);
    map[v->k] = (po_for_label){1, {{at[5], 1}}};
    if (at[0] != PO_NONE)
        map[v->k].terms[map[v->k].n++] = (po_mu_term){at[0], z->panel};
    uint32_t id = po_mu_add_statement(s->mu, step, PO_MU_SET);
    s->mu->nodes[id].statement.out = by(z, packed, at);
    po_mu_access in = po_map_access(s, map, &v->n.s->in[v->n.b]);
    po_mu_item_of(s->mu, id, PO_MU_OPERAND, po_mu_operand(s->mu, id, in), 0, 0);
    return packed;
}

void po_winograd_apply(po_schedule *s, uint32_t step, const po_choice *choice) {
    po_mu_conv v;
    build z;
    po_conv_of(s->naive, step, &v);
    if (choice->n[PO_WINOGRAD_BLOCK])
        po_winograd_stand_up(&v);
    prepare(&z, s, &v, choice);
    const char *name = s->naive->nodes[step].name;
    if (v.values) {
        uint32_t packed = values_in_panels(&z, name);
        (z.block ? by_rows : by_panels)(&z, name, packed, NULL);
        return;
    }
    po_panels p = {.weight_tensor = v.n.s->in[v.n.b].tensor,
                   .split = v.w_k,
                   .panel = po_ceil_div(z.panel, PO_MU_VECTOR) * PO_MU_VECTOR,
                   .n_order = v.n_w_order};
    memcpy(p.order, v.w_order, sizeof v.w_order);
    uint32_t packed = po_pack_weight(s, &p);
    (z.block ? by_rows : by_panels)(&z, name, packed, &p);
}

/* Convolutions with stride 1 by Toom-Cook algorithms along both axes of a map (toom.h): fewer
 * multiplications, rounding somewhat worse. Weights are transformed while they are read, so that
 * the model keeps its own.
 *
 * Two ways. "By panels": the whole map is transformed first; then, for each panel of outputs and
 * slice of inputs, the slice's weights are transformed into cache and multiplied. "By rows": the
 * weights are transformed once a call, and each block of tile rows is worked from its transform to
 * its outputs without leaving the cache; for large maps of few channels. */
#include "superopt/schedule_private.h"
#include "superopt/toom.h"

enum { OUTPUTS, SLICE, BLOCK, PANEL, ROWS }; /* of po_choice.n; BLOCK 0: by panels */
enum { PAD = 16 }; /* floats that keep the products' store streams apart */

/* The labels and axes of a convolution. */
typedef struct conv {
    po_naive_step n;
    uint32_t y, x, k, r, s, c;   /* naive labels */
    uint32_t axis_y, axis_x;     /* of the input's tensor */
    uint32_t w_k, w_c, w_r, w_s; /* axes of the weight */
    int64_t height, width, outputs, inputs, taps;
    int64_t apart; /* dilation, the same along both axes: so many phases each */
} conv;

static int64_t extent(const po_mu *mu, uint32_t label) {
    return mu->labels[label].extent;
}

/* An axis whose index is a kept label with coef 1, and a reduced one with the dilation. */
static bool window_axis(const po_mu *mu, const po_naive_step *n, const po_mu_index *index,
                        uint32_t *kept, uint32_t *reduced, int64_t *apart) {
    if (index->n != 2)
        return false;
    uint32_t a = index->terms[0].label, b = index->terms[1].label;
    bool first = po_is_reduced(mu, n, a);
    if (first == po_is_reduced(mu, n, b) || index->terms[first ? 1 : 0].coef != 1)
        return false;
    *kept = first ? b : a;
    *reduced = first ? a : b;
    *apart = index->terms[first ? 0 : 1].coef;
    return *apart >= 1;
}

static bool lone_label(const po_mu_index *index, uint32_t label) {
    return index->offset == 0 && index->n == 1 && index->terms[0].label == label &&
           index->terms[0].coef == 1;
}

static bool find_conv(const po_mu *mu, uint32_t step, conv *v) {
    if (!po_naive_step_of(mu, step, &v->n) || !v->n.product)
        return false;
    const po_mu_access *a = &v->n.s->in[v->n.a], *b = &v->n.s->in[v->n.b], *o = v->n.out;
    uint32_t rank = mu->tensors[a->tensor].rank, found = 0;
    if (mu->tensors[b->tensor].place != PO_MU_WEIGHT || mu->tensors[b->tensor].rank != 4 ||
        mu->tensors[a->tensor].place != PO_MU_DEVICE || rank != mu->tensors[o->tensor].rank)
        return false;
    v->c = PO_NONE;
    for (uint32_t i = 0; i < rank; i++) {
        uint32_t kept, reduced;
        int64_t apart;
        const po_mu_index *index = &a->axes[i];
        if (index->n == 0)
            continue;
        if (i + 1 == rank && index->n == 1 && lone_label(index, index->terms[0].label)) {
            v->c = index->terms[0].label;
            continue;
        }
        if (!window_axis(mu, &v->n, index, &kept, &reduced, &apart) || found == 2 ||
            (found == 1 && apart != v->apart))
            return false;
        v->apart = apart;
        *(found ? &v->x : &v->y) = kept;
        *(found ? &v->s : &v->r) = reduced;
        *(found ? &v->axis_x : &v->axis_y) = i;
        found++;
    }
    if (found != 2 || v->c == PO_NONE || !po_is_reduced(mu, &v->n, v->c))
        return false;
    v->k = v->n.lane;
    v->w_k = po_access_axis(mu, b, v->k);
    v->w_c = po_access_axis(mu, b, v->c);
    v->w_r = po_access_axis(mu, b, v->r);
    v->w_s = po_access_axis(mu, b, v->s);
    if (v->w_k == PO_NONE || v->w_c == PO_NONE || v->w_r == PO_NONE || v->w_s == PO_NONE ||
        !lone_label(&b->axes[v->w_k], v->k) || !lone_label(&b->axes[v->w_c], v->c) ||
        !lone_label(&b->axes[v->w_r], v->r) || !lone_label(&b->axes[v->w_s], v->s))
        return false;
    for (uint32_t i = 0; i < rank; i++) {
        const po_mu_index *index = &o->axes[i];
        if (index->n > 1 || (index->n == 1 && !lone_label(index, index->terms[0].label)))
            return false;
    }
    v->height = extent(mu, v->y);
    v->width = extent(mu, v->x);
    v->outputs = extent(mu, v->k);
    v->inputs = extent(mu, v->c);
    v->taps = extent(mu, v->r);
    return v->apart <= 4 && v->height >= v->apart && v->width >= v->apart &&
           extent(mu, v->s) == v->taps && v->inputs % PO_MU_VECTOR == 0 &&
           (v->outputs % PO_MU_VECTOR == 0 || (v->outputs < 64 && v->outputs >= 8)) &&
           v->height > 1 && v->width > 1;
}

/* --- choices --- */

static int64_t up(int64_t a, int64_t b) {
    return (a + b - 1) / b;
}

static uint32_t add(po_choice *choices, uint32_t n, const conv *v, int64_t outputs, int64_t slice,
                    int64_t block) {
    static const int64_t panels[][2] = {{64, 6}, {48, 8}, {32, 14}, {16, 14}};
    uint32_t i = 0;
    bool odd = v->outputs % PO_MU_VECTOR != 0; /* one panel, its end padded */
    while (odd ? i < 3 && panels[i + 1][0] >= v->outputs : v->outputs % panels[i][0] != 0)
        i++;
    if (n == PO_CHOICES_MAX)
        return n;
    choices[n] = (po_choice){.how = &po_schedule_winograd};
    choices[n].n[OUTPUTS] = outputs;
    choices[n].n[SLICE] = slice;
    choices[n].n[BLOCK] = block;
    choices[n].n[PANEL] = odd ? v->outputs : panels[i][0];
    choices[n].n[ROWS] = panels[i][1];
    return n + 1;
}

static uint32_t list(const po_mu *naive, uint32_t step, po_choice *choices, uint32_t n) {
    static const int64_t slices[] = {64, 48, 32, 16}, forms[] = {4, 2};
    enum { LARGEST_WEIGHTS = 1 << 20, FEW_TILES = 196, SMALL_MAP = 64 };
    conv v;
    if (!find_conv(naive, step, &v) || (v.taps != 3 && v.taps != 5))
        return n;
    for (size_t f = 0; f < sizeof forms / sizeof forms[0]; f++) {
        int64_t m = forms[f], t = m + v.taps - 1;
        int64_t rows = up(up(v.height, v.apart), m), tiles = rows * up(up(v.width, v.apart), m);
        tiles *= v.apart * v.apart;
        if (t > 6 || (m == 2 && v.taps == 3 && tiles > SMALL_MAP))
            continue;
        uint32_t taken = 0;
        for (size_t i = 0; i < sizeof slices / sizeof slices[0] && tiles <= 4 * FEW_TILES; i++)
            if (v.inputs % slices[i] == 0 && taken < 2) {
                n = add(choices, n, &v, m, slices[i], 0);
                taken++;
            }
        if (t * t * v.inputs * v.outputs > LARGEST_WEIGHTS || v.apart > 1)
            continue;
        for (int64_t block = 1; block <= 4 && block < rows; block *= 2)
            if (rows % block == 0)
                n = add(choices, n, &v, m, v.inputs, block);
    }
    return n;
}

/* --- building --- */

typedef struct build {
    po_schedule *s;
    const conv *v;
    const po_choice *choice;
    po_for_label *map;
    int64_t m, t, rows, columns, panel, slice, block;
    /* labels */
    uint32_t ty, ti, tx, i, j, d, e, u, w, r, q, c, k, b, cb, tile, py, px;
    uint32_t a_table, b_table, g_table;
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

/* Labels that are PO_NONE have one value only. */
static po_mu_access by(build *z, uint32_t tensor_id, const uint32_t *labels) {
    po_mu_access access = po_mu_access_of(z->s->mu, tensor_id);
    for (uint32_t x = 0; x < z->s->mu->tensors[tensor_id].rank; x++)
        if (labels[x] != PO_NONE)
            po_mu_at(z->s->mu, &access, x, 1, labels[x]);
    return access;
}

static void at_tile(build *z, po_mu_access *access, uint32_t axis) {
    if (z->ti != PO_NONE)
        po_mu_at(z->s->mu, access, axis, z->columns, z->ti);
    if (z->block == 0 && z->ty != PO_NONE)
        po_mu_at(z->s->mu, access, axis, z->columns, z->ty);
    if (z->py != PO_NONE) {
        po_mu_at(z->s->mu, access, axis, z->rows * z->columns * z->v->apart, z->py);
        po_mu_at(z->s->mu, access, axis, z->rows * z->columns, z->px);
    }
    if (z->tx != PO_NONE)
        po_mu_at(z->s->mu, access, axis, 1, z->tx);
}

/* The same for [.., ty, ti, tx, ., ., lane]: phases are further digits of ty and tx. */
static po_mu_access phased(build *z, uint32_t tensor_id, const uint32_t *labels) {
    po_mu_access access = by(z, tensor_id, labels);
    uint32_t first = z->s->mu->tensors[tensor_id].rank - 6;
    if (z->py != PO_NONE) {
        po_mu_at(z->s->mu, &access, first, z->rows, z->py);
        po_mu_at(z->s->mu, &access, first + 2, z->columns, z->px);
    }
    return access;
}

/* out += a * b */
static uint32_t product(build *z, uint32_t parent, po_mu_access out, po_mu_access a,
                        po_mu_access b) {
    po_mu *mu = z->s->mu;
    uint32_t id = po_mu_add_statement(mu, parent, PO_MU_ADD);
    mu->nodes[id].statement.out = out;
    mu->nodes[id].statement.fresh = true;
    uint32_t x = po_mu_item_of(mu, id, PO_MU_OPERAND, po_mu_operand(mu, id, a), 0, 0);
    uint32_t y = po_mu_item_of(mu, id, PO_MU_OPERAND, po_mu_operand(mu, id, b), 0, 0);
    po_mu_item_of(mu, id, PO_MU_TIMES, x, y, 0);
    return id;
}

static uint32_t loop(build *z, uint32_t parent, po_mu_loop_kind kind, uint32_t l) {
    return l == PO_NONE ? parent : po_mu_add_loop(z->s->mu, parent, kind, l, 1);
}

/* The tile of inputs that `map` gives for the naive access: y = m * ty + d, x = m * tx + e. */
static void transform_input(build *z, uint32_t parent, uint32_t to) {
    po_mu *mu = z->s->mu;
    const po_mu_access *a = &z->v->n.s->in[z->v->n.a];
    uint32_t lanes = po_mu_add_loop(mu, parent, PO_MU_LANES, z->c, 0);
    int64_t apart = z->v->apart;
    int64_t dims[] = {z->rows * apart, z->block ? z->block : 1, z->columns * apart, z->t, z->t,
                      z->v->inputs};
    uint32_t half = tensor(z, "h", PO_MU_REGISTER, 6, dims);
    mu->tensors[half].scope = lanes;
    /* Taps and outputs of the naive label are both the position within the tile. */
    po_for_label *map = po_for_labels(z->s);
    map[z->v->c] = (po_for_label){1, {{z->c, 1}}};
    map[z->v->y] = z->map[z->v->y];
    map[z->v->x] = z->map[z->v->x];
    for (uint32_t n = 0; n < 2; n++) {
        po_for_label *f = &map[n ? z->v->x : z->v->y];
        uint32_t within = n ? z->j : z->i, position = n ? z->e : z->d;
        for (uint32_t i = 0; i < f->n; i++)
            if (f->terms[i].label == within)
                f->terms[i].label = position;
    }
    po_mu_access in = po_map_access(z->s, map, a);
    const uint32_t half_at[] = {z->ty, z->ti, z->tx, z->u, z->e, z->c};
    product(z, lanes, phased(z, half, half_at), by(z, z->b_table, (uint32_t[]){z->u, z->d}), in);
    po_mu_access out = po_mu_access_of(mu, to);
    uint32_t first = mu->tensors[to].rank - 4;
    if (first && z->ty != PO_NONE)
        po_mu_at(mu, &out, 0, 1, z->ty);
    po_mu_at(mu, &out, first, 1, z->u);
    po_mu_at(mu, &out, first + 1, 1, z->w);
    at_tile(z, &out, first + 2);
    po_mu_at(mu, &out, first + 3, 1, z->c);
    product(z, lanes, out, by(z, z->b_table, (uint32_t[]){z->w, z->e}), by(z, half, half_at));
}

static void transform_weights(build *z, uint32_t parent, uint32_t to, uint32_t packed,
                              const po_panels *p) {
    po_mu *mu = z->s->mu;
    const po_mu_access *b = &z->v->n.s->in[z->v->n.b];
    uint32_t lanes = po_mu_add_loop(mu, parent, PO_MU_LANES, z->k, 0);
    int64_t slices = z->v->inputs / z->slice;
    int64_t dims[] = {z->v->outputs / z->panel, slices, z->slice, z->t, z->v->taps, z->panel};
    uint32_t half = tensor(z, "g", PO_MU_REGISTER, 6, dims);
    mu->tensors[half].scope = lanes;
    const uint32_t half_at[] = {z->b, z->cb, z->c, z->u, z->q, z->k};
    uint32_t id =
        product(z, lanes, by(z, half, half_at), by(z, z->g_table, (uint32_t[]){z->u, z->r}),
                po_panel_access(z->s, z->map, b, p, packed));
    if (!z->block) { /* the next slice comes from memory meanwhile */
        mu->nodes[id].statement.ahead = z->slice * z->v->taps * z->v->taps * p->panel;
        mu->nodes[id].statement.ahead_of = 1;
    }
    product(z, lanes, by(z, to, (uint32_t[]){z->b, z->cb, z->u, z->w, z->c, z->k}),
            by(z, z->g_table, (uint32_t[]){z->w, z->q}), by(z, half, half_at));
}

static void transform_output(build *z, uint32_t parent, uint32_t from) {
    po_mu *mu = z->s->mu;
    const po_naive_step *n = &z->v->n;
    uint32_t lanes = po_mu_add_loop(mu, parent, PO_MU_LANES, z->k, 0);
    int64_t panels = z->v->outputs / z->panel, block = z->block ? z->block : 1;
    int64_t rows = z->rows * z->v->apart, columns = z->columns * z->v->apart;
    int64_t half_dims[] = {panels, rows, block, columns, z->m, z->t, z->panel};
    int64_t out_dims[] = {panels, rows, block, columns, z->m, z->m, z->panel};
    uint32_t half = tensor(z, "o", PO_MU_REGISTER, 7, half_dims);
    uint32_t out = tensor(z, "p", PO_MU_REGISTER, 7, out_dims);
    mu->tensors[half].scope = mu->tensors[out].scope = lanes;
    const uint32_t half_at[] = {z->b, z->ty, z->ti, z->tx, z->i, z->w, z->k};
    const uint32_t out_at[] = {z->b, z->ty, z->ti, z->tx, z->i, z->j, z->k};
    po_mu_access m = po_mu_access_of(mu, from);
    uint32_t first = mu->tensors[from].rank - 4;
    if (z->b != PO_NONE)
        po_mu_at(mu, &m, 0, 1, z->b);
    if (first > 1 && z->ty != PO_NONE)
        po_mu_at(mu, &m, 1, 1, z->ty);
    po_mu_at(mu, &m, first, 1, z->u);
    po_mu_at(mu, &m, first + 1, 1, z->w);
    at_tile(z, &m, first + 2);
    po_mu_at(mu, &m, first + 3, 1, z->k);
    product(z, lanes, phased(z, half, half_at), by(z, z->a_table, (uint32_t[]){z->i, z->u}), m);
    product(z, lanes, phased(z, out, out_at), by(z, z->a_table, (uint32_t[]){z->j, z->w}),
            phased(z, half, half_at));
    po_mu_access y = po_map_access(z->s, z->map, n->out);
    if (!n->tail) {
        uint32_t id = po_mu_add_statement(mu, lanes, PO_MU_SET);
        mu->nodes[id].statement.out = y;
        po_mu_item_of(mu, id, PO_MU_OPERAND, po_mu_operand(mu, id, phased(z, out, out_at)), 0, 0);
        return;
    }
    po_mu_access replaced[PO_MU_MAX_INPUTS];
    for (uint32_t i = 0; i < n->tail->n_in; i++) {
        replaced[i].tensor = PO_NONE;
        if (n->tail->in[i].tensor == n->s->out.tensor)
            replaced[i] = phased(z, out, out_at);
    }
    uint32_t id = po_map_statement(z->s, lanes, z->map, n->tail, &y, replaced);
    mu->nodes[id].statement.fused = false;
}

/* Strides of [..., u, w, tile, channel] with room between the streams. */
static void spread(build *z, uint32_t id, int64_t tiles, int64_t channels, int64_t gap) {
    po_mu_layout(z->s->mu, id, 1, 0);
    po_mu_tensor *t = &z->s->mu->tensors[id];
    uint32_t first = t->rank - 4;
    channels = up(channels, PO_MU_VECTOR) * PO_MU_VECTOR;
    t->stride[first + 3] = 1;
    t->stride[first + 2] = channels + gap;
    t->stride[first + 1] = tiles * t->stride[first + 2] + PAD;
    t->stride[first] = z->t * t->stride[first + 1];
    int64_t stride = z->t * t->stride[first];
    for (uint32_t x = first; x-- > 0;) {
        int64_t least, count;
        po_mu_held(z->s->mu, id, x, &least, &count);
        t->stride[x] = stride;
        stride *= count;
    }
    po_mu_measure(z->s->mu, id);
}

static void tile_product(build *z, uint32_t id) {
    po_mu_statement *s = &z->s->mu->nodes[id].statement;
    uint32_t *order = PO_NEW_N(z->s->arena, uint32_t, 6), n = 0;
    const uint32_t outer[] = {z->block ? z->ty : PO_NONE, z->b, z->u, z->w, z->cb, z->c};
    for (uint32_t i = 0; i < 6; i++)
        if (outer[i] != PO_NONE)
            order[n++] = outer[i];
    s->lane = z->k;
    s->vectors = (uint32_t)up(z->panel, PO_MU_VECTOR);
    s->row = z->tile;
    s->rows = (uint32_t)z->choice->n[ROWS];
    s->order = order;
    s->n_order = n;
}

static void prepare(build *z, po_schedule *s, const conv *v, const po_choice *choice) {
    po_toom toom;
    *z = (build){.s = s, .v = v, .choice = choice, .map = po_for_labels(s)};
    z->m = choice->n[OUTPUTS];
    z->t = z->m + v->taps - 1;
    z->rows = up(up(v->height, v->apart), z->m);
    z->columns = up(up(v->width, v->apart), z->m);
    z->panel = choice->n[PANEL];
    z->slice = choice->n[SLICE];
    z->block = choice->n[BLOCK];
    po_toom_make(s->arena, (uint32_t)z->m, (uint32_t)v->taps, &toom);
    z->a_table = table(z, "at", toom.m, toom.n, toom.a);
    z->b_table = table(z, "bt", toom.n, toom.n, toom.b);
    z->g_table = table(z, "gt", toom.n, toom.r, toom.g);
    if (z->block)
        z->rows /= z->block;
    z->ty = label(z, "ty", z->rows);
    z->ti = z->block ? label(z, "ti", z->block) : PO_NONE;
    z->tx = label(z, "tx", z->columns);
    z->i = label(z, "i", z->m);
    z->j = label(z, "j", z->m);
    z->d = label(z, "d", z->t);
    z->e = label(z, "e", z->t);
    z->u = label(z, "u", z->t);
    z->w = label(z, "v", z->t);
    z->r = label(z, "r", v->taps);
    z->q = label(z, "s", v->taps);
    z->k = label(z, "k", z->panel);
    z->b = label(z, "b", v->outputs / z->panel);
    z->cb = label(z, "cb", v->inputs / z->slice);
    z->py = label(z, "py", v->apart);
    z->px = label(z, "px", v->apart);
    z->tile = label(z, "t", (z->block ? z->block : z->rows) * z->columns * v->apart * v->apart);
    po_for_label *map = z->map;
    for (uint32_t n = 0; n < 2; n++) {
        po_for_label *f = &map[n ? v->x : v->y];
        *f = (po_for_label){1, {{n ? z->j : z->i, v->apart}}};
        uint32_t outer = n ? z->tx : z->ty, phase = n ? z->px : z->py;
        if (outer != PO_NONE)
            f->terms[f->n++] =
                (po_mu_term){outer, v->apart * z->m * (n || !z->block ? 1 : z->block)};
        if (phase != PO_NONE)
            f->terms[f->n++] = (po_mu_term){phase, 1};
        if (!n && z->ti != PO_NONE)
            f->terms[f->n++] = (po_mu_term){z->ti, z->m};
    }
    map[v->r] = (po_for_label){1, {{z->r, 1}}};
    map[v->s] = (po_for_label){1, {{z->q, 1}}};
    map[v->k] = (po_for_label){1, {{z->k, 1}}};
    if (z->b != PO_NONE)
        map[v->k].terms[map[v->k].n++] = (po_mu_term){z->b, z->panel};
}

static void apply(po_schedule *s, uint32_t step, const po_choice *choice) {
    conv v;
    build z;
    find_conv(s->naive, step, &v);
    prepare(&z, s, &v, choice);
    po_mu *mu = s->mu;
    const char *name = s->naive->nodes[step].name;
    int64_t tiles = (z.block ? z.block : z.rows) * z.columns * v.apart * v.apart;
    int64_t panels = v.outputs / z.panel, slices = v.inputs / z.slice;
    po_panels p = {.weight_tensor = v.n.s->in[v.n.b].tensor,
                   .split = v.w_k,
                   .panel = up(z.panel, PO_MU_VECTOR) * PO_MU_VECTOR,
                   .n_order = 3,
                   .order = {v.w_c, v.w_r, v.w_s}};
    uint32_t packed = po_pack_weight(s, &p);
    int64_t u_dims[] = {panels, slices, z.t, z.t, z.slice, z.panel};
    int64_t m_dims[] = {panels, z.rows, z.t, z.t, tiles, z.panel};
    int64_t v_dims[] = {z.rows, z.t, z.t, tiles, v.inputs};
    uint32_t at, outer, id;
    if (!z.block) {
        int64_t m_plain[] = {panels, z.t, z.t, tiles, z.panel};
        uint32_t big = tensor(&z, "v", PO_MU_DEVICE, 4, v_dims + 1);
        spread(&z, big, tiles, v.inputs, PAD);
        z.c = label(&z, "c", v.inputs);
        at = po_mu_add_step(mu, po_arena_printf(s->arena, "%s, inputs", name));
        at = loop(&z, loop(&z, at, PO_MU_GRID, z.py), PO_MU_GRID, z.ty);
        at = loop(&z, loop(&z, at, PO_MU_FOR, z.px), PO_MU_FOR, z.tx);
        transform_input(&z, at, big);
        at = outer = loop(&z, po_mu_add_step(mu, name), PO_MU_GRID, z.b);
        uint32_t whole = z.c;
        z.c = slices > 1 ? label(&z, "ci", z.slice) : whole;
        z.map[v.c] = (po_for_label){1, {{z.c, 1}}};
        if (z.cb != PO_NONE)
            z.map[v.c].terms[z.map[v.c].n++] = (po_mu_term){z.cb, z.slice};
        at = loop(&z, at, PO_MU_FOR, z.cb);
        uint32_t u = tensor(&z, "u", PO_MU_SHARED, 6, u_dims);
        uint32_t m = tensor(&z, "m", PO_MU_SHARED, 5, m_plain);
        mu->tensors[u].scope = at;
        mu->tensors[m].scope = outer;
        transform_weights(&z, loop(&z, at, PO_MU_FOR, z.c), u, packed, &p);
        po_mu_access in = by(&z, big, (uint32_t[]){z.u, z.w, z.tile, z.c});
        if (z.cb != PO_NONE)
            po_mu_at(mu, &in, 3, z.slice, z.cb);
        id = product(&z, at, by(&z, m, (uint32_t[]){z.b, z.u, z.w, z.tile, z.k}), in,
                     by(&z, u, (uint32_t[]){z.b, z.cb, z.u, z.w, z.c, z.k}));
        tile_product(&z, id);
        at = loop(&z, loop(&z, outer, PO_MU_FOR, z.py), PO_MU_FOR, z.px);
        transform_output(&z, loop(&z, loop(&z, at, PO_MU_FOR, z.ty), PO_MU_FOR, z.tx), m);
        spread(&z, u, z.slice, z.panel, 0);
        spread(&z, m, tiles, z.panel, 0);
        return;
    }
    z.c = label(&z, "c", v.inputs);
    z.map[v.c] = (po_for_label){1, {{z.c, 1}}};
    uint32_t u = tensor(&z, "u", PO_MU_DEVICE, 6, u_dims);
    at = po_mu_add_step(mu, po_arena_printf(s->arena, "%s, weights", name));
    at = loop(&z, loop(&z, at, PO_MU_GRID, z.b), PO_MU_GRID, z.c);
    transform_weights(&z, at, u, packed, &p);
    outer = loop(&z, po_mu_add_step(mu, name), PO_MU_GRID, z.ty);
    uint32_t big = tensor(&z, "v", PO_MU_SHARED, 5, v_dims);
    uint32_t m = tensor(&z, "m", PO_MU_SHARED, 6, m_dims);
    mu->tensors[big].scope = outer;
    at = loop(&z, loop(&z, outer, PO_MU_FOR, z.ti), PO_MU_FOR, z.tx);
    transform_input(&z, at, big);
    at = loop(&z, outer, PO_MU_FOR, z.b);
    mu->tensors[m].scope = at;
    id = product(&z, at, by(&z, m, (uint32_t[]){z.b, z.ty, z.u, z.w, z.tile, z.k}),
                 by(&z, big, (uint32_t[]){z.ty, z.u, z.w, z.tile, z.c}),
                 by(&z, u, (uint32_t[]){z.b, z.cb, z.u, z.w, z.c, z.k}));
    tile_product(&z, id);
    transform_output(&z, loop(&z, loop(&z, at, PO_MU_FOR, z.ti), PO_MU_FOR, z.tx), m);
    spread(&z, u, z.slice, z.panel, 0);
    spread(&z, big, tiles, v.inputs, PAD);
    spread(&z, m, tiles, z.panel, 0);
}

static void tell(const po_choice *choice, po_text *text) {
    po_text_printf(text, "F(%lld) Winograd, ", (long long)choice->n[OUTPUTS]);
    if (choice->n[BLOCK])
        po_text_printf(text, "%lld tile rows at a time", (long long)choice->n[BLOCK]);
    else
        po_text_printf(text, "slices of %lld", (long long)choice->n[SLICE]);
    po_text_printf(text, ", tile %lldx%lld", (long long)choice->n[ROWS],
                   (long long)choice->n[PANEL]);
}

const po_scheduler po_schedule_winograd = {"winograd", false, list, apply, tell};

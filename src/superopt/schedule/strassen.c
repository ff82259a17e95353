/* Products of a map or matrix with a weight by Strassen's algorithm, once or twice: rows, channels
 * and outputs in halves, 7 products of quarters for 8, or 49 of sixteenths for 64. Rows are halved
 * by turns, even and odd ones, so that what a half is does not hang on how many there are. The
 * inputs' sums are made first, for all rows or, where there are many, block by block; the weights'
 * sums are made in registers, where a tile of rows reads a vector of each of two quarters, or of
 * four parts, so that the model keeps its own weights and nothing is written for them.
 *
 * V. Strassen, "Gaussian elimination is not optimal", Numerische Mathematik 13 (1969). */
#include "superopt/schedule/strassen.h"

#define N(x)                                                                                       \
    { x, 1 }
/* Quarters 11, 12, 21, 22 of inputs (row, channel) by product; those that are quarters themselves
 * stand last. */
static const po_rational of_inputs[PO_STRASSEN_PRODUCTS * 4] = {
    N(1), N(0), N(0), N(1), N(-1), N(0), N(1), N(0), N(0), N(1), N(0), N(-1), N(0), N(0),
    N(1), N(1), N(1), N(1), N(0),  N(0), N(1), N(0), N(0), N(0), N(0), N(0),  N(0), N(1)};
enum { SUMS = 5 /* products of sums of inputs */ };
/* Of weights: one quarter (channel, output), plus or minus another. */
typedef struct sum_of_two {
    uint8_t channel, output;
    int8_t sign; /* of the other; 0: none */
    uint8_t other_channel, other_output;
    bool fetches; /* the next panel's of its first quarter: each is fetched by one product */
} sum_of_two;
static const sum_of_two of_weights[PO_STRASSEN_PRODUCTS] = {
    {0, 0, 1, 1, 1, false}, {0, 0, 1, 0, 1, false}, {1, 0, 1, 1, 1, false}, {0, 0, 0, 0, 0, true},
    {1, 1, 0, 0, 0, true},  {0, 1, -1, 1, 1, true}, {1, 0, -1, 0, 0, true}};
/* Products by quarter of the outputs (row, output). */
static const po_rational of_outputs[4 * PO_STRASSEN_PRODUCTS] = {
    N(1), N(0), N(1), N(0), N(-1), N(0), N(1), N(0), N(0), N(0), N(0),  N(1), N(1), N(0),
    N(0), N(0), N(0), N(1), N(0),  N(0), N(1), N(1), N(1), N(0), N(-1), N(0), N(1), N(0)};
#undef N

typedef struct build {
    po_schedule *s;
    const po_strassen_parts *p;
    const po_choice *choice;
    po_for_label *map;
    uint32_t kept[PO_STRASSEN_KEPT]; /* PO_NONE: a block is one of the halved label */
    uint32_t levels;
    uint32_t u[PO_STRASSEN_MOST]; /* product, by level, the outer one first */
    uint32_t h[PO_STRASSEN_MOST], j[PO_STRASSEN_MOST],
        g[PO_STRASSEN_MOST]; /* halves of rows, channels, outputs */
    uint32_t rb;             /* block of the halved label */
    uint32_t tile;           /* row of a block, or of a part */
    uint32_t c, cb, k, b;    /* channel, slice, output, panel */
    uint32_t held;           /* the slice of which sums are held; PO_NONE: of all slices */
    int64_t rows;            /* of a block */
    bool direct;             /* a row is one label: quarters of inputs are read where they are */
} build;

static uint32_t label(build *z, const char *name, int64_t n) {
    return n == 1 ? PO_NONE : po_mu_add_label(z->s->mu, name, n);
}

static uint32_t table(build *z, const char *name, const int64_t *dims, const po_rational *values) {
    uint32_t id = po_mu_add_tensor(z->s->mu, name, PO_MU_TABLE, 3, dims);
    z->s->mu->tensors[id].table = values;
    return id;
}

static po_mu_access by(build *z, uint32_t tensor, const uint32_t *labels) {
    return po_access_by(z->s->mu, tensor, labels);
}

/* A row of a part by its kept labels. */
static void at_tile(build *z, po_mu_access *access, uint32_t axis) {
    int64_t coef = 1;
    for (uint32_t i = z->p->n_kept; i-- > 0;)
        if (z->kept[i] != PO_NONE) {
            po_mu_at(z->s->mu, access, axis, coef, z->kept[i]);
            coef *= po_mu_extent(z->s->mu, z->kept[i]);
        }
}

static uint32_t product(build *z, uint32_t parent, po_mu_access out, po_mu_access a,
                        po_mu_access b) {
    return po_add_product(z->s->mu, parent, out, a, b);
}

static uint32_t loop(build *z, uint32_t parent, po_mu_loop_kind kind, uint32_t l) {
    return l == PO_NONE ? parent : po_mu_add_loop(z->s->mu, parent, kind, l, 1);
}

static uint32_t kept_loops(build *z, uint32_t at, po_mu_loop_kind first) {
    for (uint32_t i = 0; i < z->p->n_kept; i++)
        at = loop(z, at, i ? PO_MU_FOR : first, z->kept[i]);
    return at;
}

/* What stands for the label that is halved. */
static po_for_label *rows_of(build *z) {
    return &z->map[z->p->kept[z->p->halved]];
}

/* Adds the number of a part, halves of halves: `each` for one. */
static void add_part(const build *z, po_for_label *to, const uint32_t *halves, int64_t each) {
    for (uint32_t l = 0; l < z->levels; l++)
        to->terms[to->n++] = (po_mu_term){halves[l], each << (z->levels - 1 - l)};
}

static void prepare(build *z) {
    const po_strassen_parts *p = z->p;
    const po_mu *naive = z->s->naive;
    int64_t slice = z->choice->n[PO_STRASSEN_SLICE], panel = z->choice->n[PO_STRASSEN_PANEL];
    int64_t block = z->choice->n[PO_STRASSEN_BLOCK];
    uint32_t longer = 0;
    z->tile = PO_NONE;
    for (uint32_t i = 0; i < p->n_kept; i++) {
        const bool halved = i == p->halved;
        int64_t n = halved ? block : po_mu_extent(naive, p->kept[i]);
        z->kept[i] = halved && n == 1
                         ? PO_NONE
                         : po_mu_add_label(z->s->mu, naive->labels[p->kept[i]].name, n);
        po_for_label *to = &z->map[p->kept[i]];
        *to = (po_for_label){0};
        if (z->kept[i] != PO_NONE)
            to->terms[to->n++] = (po_mu_term){z->kept[i], halved ? p->in : 1};
        longer += n > 1;
        z->tile = n > 1 ? z->kept[i] : z->tile;
    }
    for (uint32_t l = 0; l < z->levels; l++) {
        z->u[l] = label(z, "u", PO_STRASSEN_PRODUCTS);
        z->h[l] = label(z, "h", 2);
        z->j[l] = label(z, "j", 2);
        z->g[l] = label(z, "g", 2);
    }
    z->rb = label(z, "rb", p->part[0] / block);
    z->rows = p->tiles / p->part[0] * block;
    const bool one_label = longer == 1;
    z->direct = one_label && z->levels == 1;
    if (!one_label)
        z->tile = label(z, "t", z->rows);
    z->k = label(z, "k", panel);
    z->b = label(z, "b", p->part[2] / panel);
    z->cb = label(z, "cb", p->part[1] / slice);
    z->held = z->choice->n[PO_STRASSEN_BY_SLICES] ? z->cb : PO_NONE;
    po_for_label *row = rows_of(z), *k = &z->map[p->n.lane];
    if (z->rb != PO_NONE)
        row->terms[row->n++] = (po_mu_term){z->rb, p->in * block};
    k->terms[k->n++] = (po_mu_term){z->k, 1};
    if (z->b != PO_NONE)
        k->terms[k->n++] = (po_mu_term){z->b, panel};
}

/* What stands for a channel: within its slice or, without slices, its part. */
static void set_channel(build *z, bool sliced) {
    po_for_label *c = &z->map[z->p->c];
    z->c = label(z, sliced ? "ci" : "c", sliced ? z->choice->n[PO_STRASSEN_SLICE] : z->p->part[1]);
    *c = (po_for_label){1, {{z->c, 1}}};
    if (sliced)
        c->terms[c->n++] = (po_mu_term){z->cb, z->choice->n[PO_STRASSEN_SLICE]};
}

/* A tensor in registers inside the loop: labels of pieces and rows, these, and lanes. */
static po_mu_access registers(build *z, const char *name, uint32_t scope, uint32_t piece,
                              const uint32_t *of, uint32_t n, uint32_t lane) {
    po_mu *mu = z->s->mu;
    int64_t dims[PO_MU_MAX_RANK] = {0};
    uint32_t labels[PO_MU_MAX_RANK] = {0}, rank = 0;
    if (piece != PO_NONE)
        labels[rank++] = piece;
    for (uint32_t i = 0; i < z->p->n_kept; i++)
        if (z->kept[i] != PO_NONE)
            labels[rank++] = z->kept[i];
    for (uint32_t i = 0; i < n; i++)
        labels[rank++] = of[i];
    labels[rank++] = lane;
    for (uint32_t i = 0; i < rank; i++)
        dims[i] = po_mu_extent(mu, labels[i]);
    uint32_t id = po_mu_add_tensor(mu, name, PO_MU_REGISTER, rank, dims);
    mu->tensors[id].scope = scope;
    return by(z, id, labels);
}

/* The sums of the inputs, level by level. */
static void transform_inputs(build *z, uint32_t at, uint32_t to, int64_t sums) {
    const po_strassen_parts *p = z->p;
    po_mu *mu = z->s->mu;
    po_for_label *row = rows_of(z), *c = &z->map[p->c];
    const uint32_t had = row->n, last = z->levels - 1;
    set_channel(z, z->held != PO_NONE);
    add_part(z, row, z->h, 1);
    add_part(z, c, z->j, p->part[1]);
    po_mu_access from = po_map_access(z->s, z->map, &p->n.s->in[p->n.a]);
    row->n = had;
    uint32_t u = sums == PO_STRASSEN_PRODUCTS ? z->u[last] : label(z, "us", sums);
    at = po_mu_add_loop(mu, kept_loops(z, at, z->rb == PO_NONE ? PO_MU_GRID : PO_MU_FOR),
                        PO_MU_LANES, z->c, 0);
    uint32_t first = PO_NONE, quarters = table(z, "a", (int64_t[]){sums, 2, 2}, of_inputs);
    if (last > 0) {
        po_mu_access half =
            registers(z, "r", at, z->held, (uint32_t[]){z->u[0], z->h[1], z->j[1]}, 3, z->c);
        first =
            product(z, at, half, by(z, quarters, (uint32_t[]){z->u[0], z->h[0], z->j[0]}), from);
        from = half;
    }
    po_mu_access out =
        by(z, to, (uint32_t[]){z->held, last > 0 ? z->u[0] : PO_NONE, u, PO_NONE, z->c});
    at_tile(z, &out, 3);
    uint32_t id =
        product(z, at, out, by(z, quarters, (uint32_t[]){u, z->h[last], z->j[last]}), from);
    po_mu_statement *reads = &mu->nodes[last > 0 ? first : id].statement;
    reads->ahead = 2 * p->in * p->part[1]; /* about two rows further */
    reads->ahead_of = 1;
}

/* Moves an access by a number of steps of a naive label. */
static void shift(build *z, po_mu_access *to, const po_mu_access *from, uint32_t label, int64_t n) {
    for (uint32_t x = 0; x < z->s->naive->tensors[from->tensor].rank; x++)
        if (n != 0 && po_mu_coef(&from->axes[x], label) != 0)
            po_mu_at(z->s->mu, to, x, n * po_mu_coef(&from->axes[x], label), PO_NONE);
}

/* A part of the weight, in panels: [panels][other axes][channels][panel]. */
static uint32_t weight_part(build *z, uint32_t statement, const po_panels *panels, uint32_t packed,
                            int64_t channel, int64_t output) {
    const po_strassen_parts *p = z->p;
    po_mu_access a = po_panel_access(z->s, z->map, &p->n.s->in[p->n.b], panels, packed);
    uint32_t last = z->s->mu->tensors[packed].rank - 1;
    if (channel != 0)
        po_mu_at(z->s->mu, &a, last - 1, channel * p->part[1], PO_NONE);
    if (output != 0)
        po_mu_at(z->s->mu, &a, 0, output * p->part[2] / panels->panel, PO_NONE);
    return po_mu_operand(z->s->mu, statement, a);
}

/* A sum of parts of the weight: of two at each level; its item. */
static uint32_t weight_sum(build *z, uint32_t id, const po_panels *panels, uint32_t packed,
                           const sum_of_two *const *sums, uint32_t level, int64_t channel,
                           int64_t output) {
    po_mu *mu = z->s->mu;
    if (level == z->levels)
        return po_mu_item_of(mu, id, PO_MU_OPERAND,
                             weight_part(z, id, panels, packed, channel, output), 0, 0);
    const sum_of_two *q = sums[level];
    uint32_t one = weight_sum(z, id, panels, packed, sums, level + 1, 2 * channel + q->channel,
                              2 * output + q->output);
    if (q->sign == 0)
        return one;
    uint32_t two = weight_sum(z, id, panels, packed, sums, level + 1,
                              2 * channel + q->other_channel, 2 * output + q->other_output);
    return po_mu_item_of(mu, id, q->sign > 0 ? PO_MU_PLUS : PO_MU_MINUS, one, two, 0);
}

/* A product of parts: m[u] += (sum of inputs) * (sum of weights), by its numbers u at each level.
 */
static void multiply(build *z, uint32_t at, const uint32_t *u, uint32_t v, uint32_t m,
                     const po_panels *panels, uint32_t packed) {
    const po_strassen_parts *p = z->p;
    const sum_of_two *sums[PO_STRASSEN_MOST];
    const po_mu_access *from = &p->n.s->in[p->n.a];
    po_mu *mu = z->s->mu;
    po_mu_access a, out = by(z, m, (uint32_t[]){z->b, PO_NONE, PO_NONE, z->tile, z->k});
    bool fetches = true;
    if (u[0] >= SUMS && z->direct) {
        a = po_map_access(z->s, z->map, from);
        shift(z, &a, from, p->kept[p->halved], u[0] == SUMS ? 0 : 1);
        shift(z, &a, from, p->c, u[0] == SUMS ? 0 : p->part[1]);
    } else {
        a = by(z, v, (uint32_t[]){z->held, PO_NONE, PO_NONE, z->tile, z->c});
        for (uint32_t l = 0; l < z->levels; l++)
            po_mu_at(mu, &a, l + 3 - z->levels, u[l], PO_NONE);
        if (z->cb != z->held)
            po_mu_at(mu, &a, 4, z->choice->n[PO_STRASSEN_SLICE], z->cb);
    }
    for (uint32_t l = 0; l < z->levels; l++) {
        po_mu_at(mu, &out, l + 3 - z->levels, u[l], PO_NONE);
        sums[l] = &of_weights[u[l]];
        fetches = fetches && sums[l]->fetches;
    }
    uint32_t id = po_mu_add_statement(mu, at, PO_MU_ADD);
    po_mu_statement *s = &mu->nodes[id].statement;
    s->out = out;
    s->fresh = true;
    uint32_t x = po_mu_item_of(mu, id, PO_MU_OPERAND, po_mu_operand(mu, id, a), 0, 0);
    uint32_t y = weight_sum(z, id, panels, packed, sums, 0, 0, 0);
    po_mu_item_of(mu, id, PO_MU_TIMES, x, y, 0);
    s = &mu->nodes[id].statement;
    s->lane = z->k;
    s->vectors = (uint32_t)(z->choice->n[PO_STRASSEN_PANEL] / PO_MU_VECTOR);
    s->row = z->tile;
    s->rows = (uint32_t)z->choice->n[PO_STRASSEN_ROWS];
    if (fetches) { /* the next panel comes from memory meanwhile */
        s->ahead = p->in * p->part[1] * panels->panel;
        s->ahead_of = 1; /* its first part */
    }
}

static void multiply_all(build *z, uint32_t at, uint32_t v, uint32_t m) {
    const po_strassen_parts *p = z->p;
    const po_mu_access *b = &p->n.s->in[p->n.b];
    po_panels panels = {
        .weight_tensor = b->tensor, .split = p->w_k, .panel = z->choice->n[PO_STRASSEN_PANEL]};
    for (uint32_t x = 0; x < z->s->naive->tensors[b->tensor].rank; x++)
        if (x != p->w_k && x != p->w_c)
            panels.order[panels.n_order++] = x;
    panels.order[panels.n_order++] = p->w_c;
    uint32_t packed = po_pack_weight(z->s, &panels);
    uint32_t u[PO_STRASSEN_MOST];
    for (u[0] = 0; u[0] < PO_STRASSEN_PRODUCTS; u[0]++)
        for (u[1] = 0; u[1] < (z->levels > 1 ? PO_STRASSEN_PRODUCTS : 1); u[1]++)
            multiply(z, at, u, v, m, &panels, packed);
}

/* The outputs from the products, level by level. */
static void transform_outputs(build *z, uint32_t at, uint32_t m) {
    const po_strassen_parts *p = z->p;
    const po_naive_step *n = &p->n;
    po_mu *mu = z->s->mu;
    const uint32_t last = z->levels - 1;
    uint32_t lanes = po_mu_add_loop(mu, kept_loops(z, at, PO_MU_FOR), PO_MU_LANES, z->k, 0);
    uint32_t quarters = table(z, "o", (int64_t[]){2, 2, PO_STRASSEN_PRODUCTS}, of_outputs);
    po_mu_access from =
        by(z, m, (uint32_t[]){z->b, last > 0 ? z->u[0] : PO_NONE, z->u[last], PO_NONE, z->k});
    at_tile(z, &from, 3);
    if (last > 0) {
        po_mu_access half =
            registers(z, "q", lanes, z->b, (uint32_t[]){z->h[0], z->g[0], z->u[1]}, 3, z->k);
        product(z, lanes, half, by(z, quarters, (uint32_t[]){z->h[0], z->g[0], z->u[0]}), from);
        from = half;
    }
    uint32_t halves[2 * PO_STRASSEN_MOST];
    for (uint32_t l = 0; l < z->levels; l++) {
        halves[l] = z->h[l];
        halves[z->levels + l] = z->g[l];
    }
    po_mu_access out = registers(z, "p", lanes, z->b, halves, 2 * z->levels, z->k);
    product(z, lanes, out, by(z, quarters, (uint32_t[]){z->h[last], z->g[last], z->u[last]}), from);
    po_mu_access y = po_map_access(z->s, z->map, n->out);
    if (!n->tail) {
        uint32_t id = po_mu_add_statement(mu, lanes, PO_MU_SET);
        mu->nodes[id].statement.out = y;
        po_mu_item_of(mu, id, PO_MU_OPERAND, po_mu_operand(mu, id, out), 0, 0);
        return;
    }
    po_mu_access replaced[PO_MU_MAX_INPUTS];
    for (uint32_t i = 0; i < n->tail->n_in; i++) {
        replaced[i].tensor = PO_NONE;
        if (n->tail->in[i].tensor == n->s->out.tensor)
            replaced[i] = out;
    }
    uint32_t id = po_map_statement(z->s, lanes, z->map, n->tail, &y, replaced);
    mu->nodes[id].statement.fused = false;
}

/* Strides of [.., product, row, lane] with room between the streams. */
static void spread(build *z, uint32_t id, int64_t gap) {
    po_mu_layout(z->s->mu, id, 1, 0);
    po_mu_tensor *t = &z->s->mu->tensors[id];
    int64_t stride = 1;
    for (uint32_t x = t->rank; x-- > 0;) {
        int64_t least, count;
        po_mu_held(z->s->mu, id, x, &least, &count);
        t->stride[x] = stride;
        stride = stride * count + (x + 1 == t->rank ? gap : x + 2 == t->rank ? PO_STRASSEN_PAD : 0);
    }
    po_mu_measure(z->s->mu, id);
}

void po_strassen_apply(po_schedule *s, uint32_t step, const po_choice *choice) {
    po_strassen_parts p;
    po_strassen_parts_of(s->naive, step, choice->n[PO_STRASSEN_LEVELS], &p);
    build z = {.s = s, .p = &p, .choice = choice, .map = po_for_labels(s)};
    z.levels = (uint32_t)choice->n[PO_STRASSEN_LEVELS];
    po_mu *mu = s->mu;
    const char *name = s->naive->nodes[step].name;
    int64_t panel = choice->n[PO_STRASSEN_PANEL];
    prepare(&z);
    const bool whole = z.rb == PO_NONE, by_slices = z.held != PO_NONE;
    int64_t sums = z.direct ? SUMS : PO_STRASSEN_PRODUCTS,
            outer_sums = z.levels > 1 ? PO_STRASSEN_PRODUCTS : 1;
    const int64_t slices = po_mu_extent(mu, z.held);
    uint32_t v =
        po_mu_add_tensor(mu, "v", whole ? PO_MU_DEVICE : PO_MU_SHARED, 5,
                         (int64_t[]){slices, outer_sums, sums, z.rows, p.part[1] / slices});
    uint32_t block = PO_NONE, outer, inner;
    if (whole) {
        transform_inputs(&z, po_mu_add_step(mu, po_arena_printf(s->arena, "%s, inputs", name)), v,
                         sums);
        outer = loop(&z, po_mu_add_step(mu, name), PO_MU_GRID, z.b);
    } else {
        block = loop(&z, po_mu_add_step(mu, name), PO_MU_GRID, z.rb);
        inner = loop(&z, block, PO_MU_FOR, z.held);
        mu->tensors[v].scope = inner;
        transform_inputs(&z, inner, v, sums);
        outer = loop(&z, inner, PO_MU_FOR, z.b);
    }
    uint32_t m = po_mu_add_tensor(
        mu, "m", PO_MU_SHARED, 5,
        (int64_t[]){p.part[2] / panel, outer_sums, PO_STRASSEN_PRODUCTS, z.rows, panel});
    mu->tensors[m].scope = by_slices                             ? block
                           : mu->nodes[outer].kind == PO_MU_LOOP ? outer
                                                                 : PO_NONE;
    z.map[p.c].n -= z.levels;
    if (z.cb != z.held)
        set_channel(&z, true);
    multiply_all(&z, by_slices ? outer : loop(&z, outer, PO_MU_FOR, z.cb), v, m);
    if (by_slices)
        outer = loop(&z, block, PO_MU_FOR, z.b);
    po_for_label *row = rows_of(&z), *k = &z.map[p.n.lane];
    add_part(&z, row, z.h, 1);
    add_part(&z, k, z.g, p.part[2]);
    transform_outputs(&z, outer, m);
    spread(&z, v, PO_STRASSEN_PAD);
    spread(&z, m, 0);
}

/* Products in register tiles: convolutions of any rank, stride and dilation, and matrix products.
 * One operand has the lane (weights, packed in panels, or a value), the other gives one number for
 * a whole vector. */
#include "base/num.h"
#include "superopt/schedule/conv.h"

#include <math.h>

enum { PANEL, ROWS, ROW, FETCH, ORDER, LINES }; /* of po_choice.n */
/* What lies outside in a panel: a convolution's taps, or its channels, as by tiles. */
enum { TAPS, CHANNELS };
/* What is fetched while a panel is worked: the next one, nothing, what comes soon. */
enum { NEXT, ALONE, SOON };
enum { DISTANCE = 1 << 13 /* floats: what comes soon */ };
/* Panels and rows: tiles that leave registers for a vector of weights a column and one number. */
static const int64_t tiles[][2] = {{64, 6},  {64, 7},  {48, 8},  {48, 7},
                                   {32, 14}, {32, 12}, {16, 14}, {64, 4}};
enum { TILES = sizeof tiles / sizeof tiles[0] };

/* The kept label of `a` that moves it least: neighbours along it lie in neighbouring numbers. */
static uint32_t row_label(const po_mu *mu, const po_naive_step *n) {
    const po_mu_access *a = &n->s->in[n->a];
    uint32_t best = PO_NONE;
    for (uint32_t x = 0; x < mu->tensors[a->tensor].rank; x++)
        for (uint32_t i = 0; i < a->axes[x].n; i++) {
            uint32_t label = a->axes[x].terms[i].label;
            if (!po_is_reduced(mu, n, label) && !po_mu_has(mu, &n->s->in[n->b], label) &&
                (best == PO_NONE || po_mu_extent(mu, label) >= po_mu_extent(mu, best) / 2))
                best = label;
        }
    return best;
}

/* A weight whose panels the lane may be cut into: the lane stands alone along its axis, or with
 * whole multiples of the panel. */
static bool panels_fit(const po_mu *mu, const po_naive_step *n, int64_t panel) {
    const po_mu_access *b = &n->s->in[n->b];
    uint32_t axis = po_access_axis(mu, b, n->lane);
    if (axis == PO_NONE || mu->tensors[b->tensor].place != PO_MU_WEIGHT ||
        mu->tensors[b->tensor].rank >= PO_MU_MAX_RANK || b->axes[axis].offset != 0)
        return false;
    for (uint32_t i = 0; i < b->axes[axis].n; i++) {
        po_mu_term t = b->axes[axis].terms[i];
        if (t.label == n->lane ? t.coef != 1 : t.coef % panel != 0)
            return false;
    }
    const po_mu_index *out = po_mu_last_axis(mu, n->out);
    for (uint32_t i = 0; i < out->n; i++)
        if (out->terms[i].label != n->lane && out->terms[i].coef % PO_MU_VECTOR != 0)
            return false;
    return true;
}

/* Cycles a step of the sum takes for all rows, an output: 32 bytes of weights come from the second
 * cache in one. A panel that is worked in several parts is read in strides. */
static double cost_of(const po_isa *isa, const int64_t tile[2], int64_t rows) {
    enum { LANES_A_CYCLE = 8 };
    int64_t high = tile[1], lanes = tile[0];
    po_isa_tile(isa, rows, &high, &lanes);
    const double work = po_isa_cycles(rows, high, lanes / isa->lanes);
    const double weights = (double)(po_ceil_div(rows, high) * lanes) / LANES_A_CYCLE;
    return (work > weights ? work : weights) / (double)lanes *
           (1 + 0.1 * log2((double)po_ceil_div(tile[0], lanes)));
}

/* Labels of an access, each once: the kept ones, the reduced ones, the lane. False where an index
 * can lie outside, or the elements that all of them reach would be far more than there are. */
static bool labels_of(const po_mu *mu, const po_naive_step *n, const po_mu_access *access,
                      uint32_t *labels, uint32_t *count) {
    const po_mu_tensor *t = &mu->tensors[access->tensor];
    int64_t reached = 1, held = 1;
    *count = 0;
    for (uint32_t pass = 0; pass < 3; pass++)
        for (uint32_t x = 0; x < t->rank; x++)
            for (uint32_t i = 0; i < access->axes[x].n; i++) {
                uint32_t label = access->axes[x].terms[i].label;
                bool there = (label == n->lane ? 2U : po_is_reduced(mu, n, label)) != pass;
                for (uint32_t k = 0; k < *count; k++)
                    there |= labels[k] == label;
                if (there)
                    continue;
                if (*count == PO_MU_MAX_RANK)
                    return false;
                labels[(*count)++] = label;
                reached *= po_mu_extent(mu, label);
            }
    for (uint32_t x = 0; x < t->rank; x++)
        held *= t->dims[x];
    return reached <= 2 * held && po_mu_is_inside(mu, access);
}

/* Whether vectors of the lane lie side by side. */
static bool lies_in_lanes(const po_mu *mu, const po_naive_step *n) {
    const po_mu_access *b = &n->s->in[n->b];
    uint32_t axis = po_access_axis(mu, b, n->lane);
    return axis != PO_NONE && axis + 1 == mu->tensors[b->tensor].rank &&
           po_mu_coef(&b->axes[axis], n->lane) == 1;
}

/* Products of two values: the second one's vectors are read where they lie, or from a copy that has
 * the lane last. */
static bool values_fit(const po_mu *mu, const po_naive_step *n) {
    const po_mu_access *b = &n->s->in[n->b];
    po_mu_place place = mu->tensors[b->tensor].place;
    uint32_t labels[PO_MU_MAX_RANK], count;
    if (place != PO_MU_DEVICE && place != PO_MU_INPUT)
        return false;
    const po_mu_index *out = po_mu_last_axis(mu, n->out);
    for (uint32_t i = 0; i < out->n; i++)
        if (out->terms[i].label != n->lane && out->terms[i].coef % PO_MU_VECTOR != 0)
            return false;
    return labels_of(mu, n, b, labels, &count);
}

/* The copy of the second operand with the lane last, in a step of its own; its access. */
static po_mu_access turned_copy(po_schedule *s, const po_naive_step *n, const char *name) {
    const po_mu *mu = s->naive;
    const po_mu_access *b = &n->s->in[n->b];
    uint32_t labels[PO_MU_MAX_RANK], count;
    int64_t dims[PO_MU_MAX_RANK];
    po_mu_index *axes = PO_NEW_N(s->arena, po_mu_index, PO_MU_MAX_RANK);
    labels_of(mu, n, b, labels, &count);
    for (uint32_t i = 0; i < count; i++)
        dims[i] = po_mu_extent(mu, labels[i]);
    uint32_t tensor = po_mu_add_tensor(s->mu, "turned", PO_MU_DEVICE, count, dims);
    po_mu_layout(s->mu, tensor, PO_MU_VECTOR, 0);
    po_for_label *map = po_for_labels(s);
    for (uint32_t i = 0; i < count; i++)
        po_keep_label(s, map, labels[i]);
    uint32_t at = po_mu_add_step(s->mu, po_arena_printf(s->arena, "%s, turned", name));
    const po_mu_index *end = po_mu_last_axis(mu, b);
    uint32_t row = PO_NONE;
    for (uint32_t i = 0; i < end->n; i++)
        if (end->terms[i].coef == 1)
            row = end->terms[i].label;
    if (count > 2)
        at = po_mu_add_loop(s->mu, at, PO_MU_GRID, map[labels[0]].terms[0].label, 1);
    uint32_t id = po_mu_add_statement(s->mu, at, PO_MU_SET);
    po_mu_access out = po_mu_access_of(s->mu, tensor);
    for (uint32_t i = 0; i < count; i++)
        po_mu_at(s->mu, &out, i, 1, map[labels[i]].terms[0].label);
    po_mu_access in = po_map_access(s, map, b);
    po_mu_statement *copy = &s->mu->nodes[id].statement;
    copy->out = out;
    uint32_t operand = po_mu_operand(s->mu, id, in);
    po_mu_item_of(s->mu, id, PO_MU_OPERAND, operand, 0, 0);
    copy = &s->mu->nodes[id].statement;
    copy->lane = map[n->lane].terms[0].label;
    copy->vectors = 1;
    if (row != PO_NONE && row != n->lane && !(count > 2 && row == labels[0])) {
        copy->row = map[row].terms[0].label;
        copy->rows = PO_MU_VECTOR;
    }
    /* As the naive step's labels have it. */
    for (uint32_t i = 0; i < count; i++) {
        po_mu_term *term = PO_NEW(s->arena, po_mu_term);
        *term = (po_mu_term){labels[i], 1};
        axes[i] = (po_mu_index){0, 1, term};
    }
    return (po_mu_access){tensor, axes};
}

/* Kept labels from the outermost: those that both operands have, then those of `a`. */
typedef struct kept {
    uint32_t n, label[PO_MU_MAX_DEPTH];
} kept;

static void add_kept(const po_mu *mu, const po_naive_step *n, uint32_t skip, kept *k) {
    const uint32_t rank = mu->tensors[n->s->out.tensor].rank;
    for (int both = 1; both >= 0; both--)
        for (uint32_t x = 0; x < rank; x++)
            for (uint32_t i = n->s->out.axes[x].n; i-- > 0;) {
                uint32_t label = n->s->out.axes[x].terms[i].label;
                bool there = label == skip || label == n->lane ||
                             po_mu_has(mu, &n->s->in[n->b], label) != both;
                for (uint32_t j = 0; j < k->n; j++)
                    there |= k->label[j] == label;
                if (!there && k->n < PO_MU_MAX_DEPTH)
                    k->label[k->n++] = label;
            }
}

/* How many floats of the weight a panel has. */
static int64_t panel_size(const po_mu *mu, const po_naive_step *n, int64_t panel) {
    return po_mu_elements(&mu->tensors[n->s->in[n->b].tensor]) / po_mu_extent(mu, n->lane) * panel;
}

/* Whether panels follow one another, so that the next one can be fetched, from memory. */
static bool fetches(const po_mu *mu, const po_naive_step *n, int64_t panel) {
    enum { FAR = 1 << 18 /* floats: no second cache holds the weight beside all else */ };
    return panel > 0 && po_mu_extent(mu, n->lane) > panel &&
           po_mu_elements(&mu->tensors[n->s->in[n->b].tensor]) >= FAR;
}

/* The largest of equal parts that pad least, by a twentieth at most: 8 of 125 for 1000 classes; 0:
 * none. */
static int64_t equal_parts(int64_t lanes) {
    enum { LARGEST = 8 * PO_MU_VECTOR, LEAST = 2 * PO_MU_VECTOR };
    int64_t best = 0, best_pad = 0;
    for (int64_t part = LARGEST; part >= LEAST; part--) {
        int64_t pad = (PO_MU_VECTOR - part % PO_MU_VECTOR) % PO_MU_VECTOR;
        if (lanes % part == 0 && lanes > part && 20 * pad <= part &&
            (best == 0 || pad * best < best_pad * part)) {
            best = part;
            best_pad = pad;
        }
    }
    return best;
}

/* Of the tiles that may be the one that costs least; TILES: none. */
static uint32_t cheapest(const po_isa *isa, const bool *may, int64_t rows) {
    uint32_t best = TILES;
    for (uint32_t i = 0; i < TILES; i++)
        if (may[i] &&
            (best == TILES || cost_of(isa, tiles[i], rows) < cost_of(isa, tiles[best], rows)))
            best = i;
    return best;
}

/* Whether registers leave the same of both. */
static bool prints_same(const po_isa *isa, const int64_t a[2], const int64_t b[2], int64_t extent) {
    int64_t rows[2] = {a[1], b[1]}, lanes[2] = {a[0], b[0]};
    po_isa_tile(isa, extent, &rows[0], &lanes[0]);
    po_isa_tile(isa, extent, &rows[1], &lanes[1]);
    return a[0] == b[0] && rows[0] == rows[1] && lanes[0] == lanes[1];
}

static po_choice in_tiles(uint32_t tile, int64_t panel, uint32_t row, int64_t rows) {
    po_choice choice = {.how = &po_schedule_direct};
    choice.n[PANEL] = panel;
    choice.n[ROWS] = tiles[tile][1] < rows ? tiles[tile][1] : rows;
    choice.n[ROW] = row == PO_NONE ? -1 : (int64_t)row;
    return choice;
}

/* The tiles that cost least, of panels as they are or of `panel` lanes (0: one piece), at most so
 * many. */
static uint32_t add_tiles(const po_isa *isa, bool *may, int64_t rows, uint32_t most, int64_t panel,
                          uint32_t row, po_choice *choices, uint32_t n) {
    for (uint32_t taken = 0; taken < most && n < PO_CHOICES_MAX; taken++) {
        const uint32_t best = cheapest(isa, may, rows);
        /* Tiles higher than the map are all the same to it. */
        if (best == TILES || (taken && tiles[best][1] > rows))
            break;
        for (uint32_t i = 0; i < TILES; i++)
            may[i] &= !prints_same(isa, tiles[i], tiles[best], rows);
        choices[n++] = in_tiles(best, panel < 0 ? tiles[best][0] : panel, row, rows);
    }
    return n;
}

/* The label around the rows whose steps are their lines: PO_NONE where the weights move with it. */
static uint32_t line_label(const po_mu *mu, const po_naive_step *n, uint32_t row) {
    kept k = {0};
    add_kept(mu, n, row, &k);
    const uint32_t last = row == PO_NONE || k.n == 0 ? PO_NONE : k.label[k.n - 1];
    return last == PO_NONE || po_mu_has(mu, &n->s->in[n->b], last) ? PO_NONE : last;
}

/* Cycles of all lines, so many of them worked as one. */
static double cycles_of(const po_isa *isa, const int64_t tile[2], int64_t rows, int64_t lines,
                        int64_t joined) {
    const int64_t parts[2] = {joined, lines % joined}, times[2] = {lines / joined, 1};
    double cycles = 0;
    for (int i = 0; i < 2; i++) {
        int64_t high = tile[1] < rows ? tile[1] : rows, lanes = tile[0];
        po_isa_tile(isa, parts[i] * rows, &high, &lanes);
        if (parts[i] > 0)
            cycles += (double)times[i] * po_isa_cycles(parts[i] * rows, high, lanes / isa->lanes);
    }
    return cycles;
}

/* How many lines are worked as one: 7 rows leave registers unused, 14 do not, and 49 read a panel
 * once while the next one is fetched. 1 where that promises no more than readings differ by. */
static int64_t lines_of(const po_isa *isa, const int64_t tile[2], int64_t rows, int64_t lines,
                        int64_t panels) {
    enum { MOST_LINES = 4, MOST_ROWS = 16, ALL_ROWS = 64, MANY_PANELS = 16 };
    const double worth = 0.95, same = 0.98;
    if (rows > MOST_ROWS)
        return 1;
    double best = worth * cycles_of(isa, tile, rows, lines, 1);
    int64_t of = 1;
    for (int64_t n = 2; n <= MOST_LINES && n <= lines; n++) {
        const double cycles = cycles_of(isa, tile, rows, lines, n);
        if (cycles < (of == 1 ? 1 : same) * best) {
            best = cycles;
            of = n;
        }
    }
    const bool all = lines * rows <= ALL_ROWS && panels >= MANY_PANELS &&
                     cycles_of(isa, tile, rows, lines, lines) * same <= best;
    return all ? lines : of;
}

/* Whether line after line is worked with all of the weight, rather than panel after panel with all
 * lines: a small weight stays in the second cache, a large map is read from behind it once. */
static bool lines_come_first(const po_mu *mu, const po_naive_step *n, uint32_t line) {
    enum { SMALL = 1 << 15, LARGE = 1 << 17 /* floats */, ENOUGH = 8 /* for threads */ };
    return line != PO_NONE && po_mu_extent(mu, line) >= ENOUGH &&
           mu->tensors[n->s->in[n->b].tensor].place == PO_MU_WEIGHT &&
           po_mu_elements(&mu->tensors[n->s->in[n->b].tensor]) <= SMALL &&
           po_mu_elements(&mu->tensors[n->s->in[n->a].tensor]) >= LARGE;
}

static uint32_t list(const po_mu *naive, uint32_t step, const po_isa *isa, po_choice *choices,
                     uint32_t n) {
    enum { MOST_TILES = 3, UNEVEN_TILES = 2, LEAST_PANELS = 8 };
    po_naive_step p;
    if (!po_naive_step_of(naive, step, &p) || !p.product)
        return n;
    int64_t lanes = po_mu_extent(naive, p.lane);
    uint32_t row = row_label(naive, &p);
    int64_t rows = row == PO_NONE ? 1 : po_mu_extent(naive, row);
    bool weight = naive->tensors[p.s->in[p.b].tensor].place == PO_MU_WEIGHT;
    if (!weight && (row == PO_NONE || !values_fit(naive, &p)))
        return n;
    const uint32_t first = n;
    const bool uneven = lanes % PO_MU_VECTOR != 0;
    bool may[TILES];
    /* Many lanes that are none of whole vectors are panels and a rest, a step of its own: in one
     * piece rows of a weight are read in strides, at 13 GB/s instead of 35. */
    for (uint32_t i = 0; i < TILES; i++) {
        const int64_t panel = tiles[i][0];
        may[i] = (uneven ? weight && lanes >= LEAST_PANELS * panel : lanes % panel == 0) &&
                 (!weight || panels_fit(naive, &p, panel));
    }
    n = add_tiles(isa, may, rows, uneven ? UNEVEN_TILES : MOST_TILES, -1, row, choices, n);
    /* In equal parts, and in one piece without padding. */
    const int64_t widths[] = {weight ? equal_parts(lanes) : 0, lanes};
    for (uint32_t k = 0; k < 2 && uneven; k++) {
        if (widths[k] == 0 || (weight && !panels_fit(naive, &p, widths[k])))
            continue;
        for (uint32_t i = 0; i < TILES; i++)
            may[i] = tiles[i][0] == 64;
        n = add_tiles(isa, may, rows, n > first ? 1 : MOST_TILES, widths[k] < lanes ? widths[k] : 0,
                      row, choices, n);
    }
    const uint32_t around = line_label(naive, &p, row);
    const int64_t lines = around == PO_NONE ? 1 : po_mu_extent(naive, around);
    for (uint32_t i = first; i < n; i++) {
        const int64_t panel = choices[i].n[PANEL] ? choices[i].n[PANEL] : lanes;
        const int64_t tile[] = {panel, choices[i].n[ROWS]};
        choices[i].n[LINES] = lines_of(isa, tile, rows, lines, lanes / panel);
    }
    /* The processor may see by itself what comes next. A panel that is read once, or that does not
     * stay in the second cache beside the next one, is fetched as it comes. */
    for (uint32_t i = first, end = n; i < end && i < first + 2 && n < PO_CHOICES_MAX; i++) {
        enum { BESIDE = 1 << 16 /* floats */ };
        if (!weight || row == PO_NONE || !fetches(naive, &p, choices[i].n[PANEL]))
            break;
        int64_t size = panel_size(naive, &p, choices[i].n[PANEL]);
        choices[n] = choices[i];
        choices[n++].n[FETCH] = ALONE;
        if (size > DISTANCE && (size > BESIDE || choices[i].n[ROWS] >= rows * choices[i].n[LINES]))
            choices[i].n[FETCH] = SOON;
    }
    return n;
}

bool po_direct_as_tiles(const po_mu *naive, uint32_t step, int64_t panel, po_choice *choice) {
    po_mu_conv v;
    if (!po_conv_of(naive, step, &v) || v.values || !panels_fit(naive, &v.n, panel))
        return false;
    const bool whole = panel % PO_MU_VECTOR == 0; /* else one panel, its end padded */
    const uint32_t row = row_label(naive, &v.n);
    const int64_t rows = row == PO_NONE ? 1 : po_mu_extent(naive, row);
    bool may[TILES];
    for (uint32_t i = 0; i < TILES; i++)
        may[i] = tiles[i][0] == (whole ? panel : 64);
    /* Any instruction set's rows do: fewer are printed where registers are few. */
    const uint32_t best = cheapest(&po_isas[PO_ISA_AVX512], may, rows);
    if (best == TILES)
        return false;
    *choice = in_tiles(best, whole ? panel : 0, row, rows);
    choice->n[ORDER] = CHANNELS;
    if (fetches(naive, &v.n, choice->n[PANEL]) && panel_size(naive, &v.n, panel) > DISTANCE)
        choice->n[FETCH] = SOON;
    return true;
}

/* Lanes that are worked by one step: all, or those of whole panels, or those behind these. */
typedef struct piece {
    const char *name;
    uint32_t step;
    po_naive_step n;      /* what it reads and writes is moved by the lanes before it */
    int64_t lanes, panel; /* of it */
    int64_t packed;       /* lanes of the weight's panels */
} piece;

/* The axes of a weight in its panels, and what is summed over, in the order in which they lie. */
static void order_channels_first(const po_mu *mu, const piece *of, po_panels *p, uint32_t *reduced,
                                 uint32_t n_reduced) {
    po_mu_conv v;
    po_conv_of(mu, of->step, &v);
    const po_mu_access *b = &v.n.s->in[v.n.b];
    uint32_t n = 0;
    p->n_order = v.n_w_order;
    memcpy(p->order, v.w_order, sizeof v.w_order);
    for (uint32_t k = 0; k < p->n_order; k++)
        for (uint32_t i = n; i < n_reduced; i++)
            if (po_access_axis(mu, b, reduced[i]) == p->order[k]) {
                const uint32_t label = reduced[i];
                reduced[i] = reduced[n];
                reduced[n++] = label;
            }
}

static void apply_piece(po_schedule *s, const piece *of, const po_choice *choice) {
    const po_mu *mu = s->naive;
    po_naive_step n = of->n;
    int64_t lanes = of->lanes, panel = of->panel;
    uint32_t row = choice->n[ROW] < 0 ? PO_NONE : (uint32_t)choice->n[ROW];
    int64_t rows = row == PO_NONE ? 1 : po_mu_extent(mu, row);
    bool weight = mu->tensors[n.s->in[n.b].tensor].place == PO_MU_WEIGHT, turned = false;
    po_mu_access other = n.s->in[n.b];
    if (!weight && !lies_in_lanes(mu, &n)) {
        other = turned_copy(s, &n, of->name);
        turned = true;
    }
    po_for_label *map = po_for_labels(s);
    /* The lane: within a panel, and the panel's number. */
    uint32_t within = po_mu_add_label(s->mu, mu->labels[n.lane].name, panel), number = PO_NONE;
    map[n.lane].n = 1;
    map[n.lane].terms[0] = (po_mu_term){within, 1};
    if (lanes > panel) {
        number = po_mu_add_label(s->mu, "b", lanes / panel);
        map[n.lane].terms[map[n.lane].n++] = (po_mu_term){number, panel};
    }
    po_keep_labels(s, map, &n);
    /* Weights: panels, the taps outside and the channels inside, as they are read. */
    const po_mu_access *a = &n.s->in[n.a], *b = &n.s->in[n.b];
    po_panels p = {.weight_tensor = b->tensor,
                   .split = po_access_axis(mu, b, n.lane),
                   .panel = (of->packed + PO_MU_VECTOR - 1) / PO_MU_VECTOR * PO_MU_VECTOR};
    if (p.panel != panel && panel < lanes)
        p.within = panel;
    uint32_t reduced[PO_MU_MAX_RANK], n_reduced = 0;
    uint32_t a_rank = mu->tensors[a->tensor].rank;
    for (uint32_t x = 0; x < a_rank; x++)
        for (uint32_t i = 0; i < a->axes[x].n; i++) {
            uint32_t label = a->axes[x].terms[i].label;
            if (po_is_reduced(mu, &n, label) && n_reduced < PO_MU_MAX_RANK)
                reduced[n_reduced++] = label;
        }
    uint32_t b_rank = mu->tensors[b->tensor].rank;
    if (choice->n[ORDER] == CHANNELS)
        order_channels_first(mu, of, &p, reduced, n_reduced);
    for (uint32_t i = 0; i < n_reduced; i++) {
        uint32_t axis = po_access_axis(mu, b, reduced[i]);
        bool there = axis == PO_NONE || axis == p.split;
        for (uint32_t k = 0; k < p.n_order; k++)
            there |= p.order[k] == axis;
        if (!there)
            p.order[p.n_order++] = axis;
    }
    for (uint32_t x = 0; x < b_rank; x++) {
        bool there = x == p.split;
        for (uint32_t k = 0; k < p.n_order; k++)
            there |= p.order[k] == x;
        if (!there) {
            memmove(&p.order[1], &p.order[0], p.n_order++ * sizeof *p.order);
            p.order[0] = x;
        }
    }
    uint32_t weights = weight ? po_pack_weight(s, &p) : PO_NONE;
    /* Loops: panels and groups, then the outer rows, or these first. */
    uint32_t at = po_mu_add_step(s->mu, of->name), grids = 0;
    kept k = {0};
    add_kept(mu, &n, row, &k);
    const bool joined = choice->n[LINES] > 1;
    const uint32_t line = joined ? PO_NONE : line_label(mu, &n, row);
    const bool first = lines_come_first(mu, &n, line);
    if (first) {
        at = po_mu_add_loop(s->mu, at, PO_MU_GRID, map[line].terms[0].label, 1);
        grids++;
    }
    if (number != PO_NONE) {
        at = po_mu_add_loop(s->mu, at, PO_MU_GRID, number, 1);
        grids++;
    }
    const uint32_t behind = first ? k.n - 1 : k.n; /* the lines are the last */
    for (uint32_t i = 0; i < behind && (grids < 2 || (joined && i + 1 == k.n)); i++, grids++)
        at = po_mu_add_loop(s->mu, at, PO_MU_GRID, map[k.label[i]].terms[0].label,
                            joined && i + 1 == k.n ? choice->n[LINES] : 1);
    if (grids == 0 && row != PO_NONE && po_mu_extent(mu, row) >= 4 * choice->n[ROWS])
        at = po_mu_add_loop(s->mu, at, PO_MU_GRID, map[row].terms[0].label, 2 * choice->n[ROWS]);
    /* The tile, and what is fused to it. */
    uint32_t scope = at;
    po_mu_access replaced[PO_MU_MAX_INPUTS], out;
    replaced[n.a].tensor = PO_NONE;
    if (weight)
        replaced[n.b] = po_panel_access(s, map, b, &p, weights);
    else if (turned)
        replaced[n.b] =
            po_map_access_on(s, map, &other, s->mu->tensors[other.tensor].rank, other.tensor);
    else
        replaced[n.b].tensor = PO_NONE;
    uint32_t reg = PO_NONE;
    if (n.tail) {
        const po_mu_tensor *t = &mu->tensors[n.s->out.tensor];
        reg = po_mu_add_tensor(s->mu, "p", PO_MU_REGISTER, t->rank, t->dims);
        s->mu->tensors[reg].scope = scope;
        s->tensor[n.s->out.tensor] = reg;
    }
    out = po_map_access(s, map, &n.s->out);
    uint32_t id = po_map_statement(s, at, map, n.s, &out, replaced);
    uint32_t *order = PO_NEW_N(s->arena, uint32_t, PO_MU_MAX_DEPTH + PO_MU_MAX_RANK), n_order = 0;
    if (number != PO_NONE)
        order[n_order++] = number;
    for (uint32_t i = 0; i < k.n; i++)
        order[n_order++] = map[k.label[i]].terms[0].label;
    for (uint32_t i = 0; i < n_reduced; i++)
        order[n_order++] = map[reduced[i]].terms[0].label;
    po_mu_statement *main = &s->mu->nodes[id].statement;
    main->lane = within;
    /* A lone row reads a panel as it lies in memory. */
    int64_t most = rows == 1 && panel < lanes ? panel : 64;
    main->vectors = (uint32_t)(((panel < most ? panel : most) + PO_MU_VECTOR - 1) / PO_MU_VECTOR);
    main->row = row == PO_NONE ? PO_NONE : map[row].terms[0].label;
    main->rows = row == PO_NONE ? 1 : (uint32_t)choice->n[ROWS];
    main->order = order;
    main->n_order = n_order;
    /* While a panel is worked the next one comes from memory. */
    if (weight && number != PO_NONE && row != PO_NONE && choice->n[FETCH] != ALONE) {
        main->ahead = 1;
        for (uint32_t x = 1; x < s->mu->tensors[weights].rank; x++)
            main->ahead *= s->mu->tensors[weights].dims[x];
        if (choice->n[FETCH] == SOON)
            main->ahead = DISTANCE;
        main->ahead_of = n.b;
    }
    if (n.tail) {
        po_mu_access y = po_map_access(s, map, n.out);
        po_map_statement(s, at, map, n.tail, &y, NULL);
    }
}

/* The access where the label begins at `by`. */
static po_mu_access moved(po_schedule *s, const po_mu_access *access, uint32_t label, int64_t by) {
    uint32_t rank = s->naive->tensors[access->tensor].rank;
    po_mu_index *axes = PO_NEW_N(s->arena, po_mu_index, rank + 1);
    for (uint32_t x = 0; x < rank; x++) {
        axes[x] = access->axes[x];
        axes[x].offset += by * po_mu_coef(&axes[x], label);
    }
    return (po_mu_access){access->tensor, axes};
}

static po_mu_statement *moved_statement(po_schedule *s, const po_mu_statement *from, uint32_t label,
                                        int64_t by) {
    po_mu_statement *to = PO_NEW(s->arena, po_mu_statement);
    *to = *from;
    for (uint32_t k = 0; k < from->n_in; k++)
        to->in[k] = moved(s, &from->in[k], label, by);
    to->out = moved(s, &from->out, label, by);
    return to;
}

static void apply(po_schedule *s, uint32_t step, const po_choice *choice) {
    piece all = {.name = s->naive->nodes[step].name, .step = step};
    po_naive_step_of(s->naive, step, &all.n);
    int64_t lanes = po_mu_extent(s->naive, all.n.lane);
    all.packed = all.panel = choice->n[PANEL] ? choice->n[PANEL] : lanes;
    int64_t rest = lanes % all.panel;
    all.lanes = lanes - rest;
    apply_piece(s, &all, choice);
    if (rest == 0)
        return;
    piece behind = {.name = po_arena_printf(s->arena, "%s, the rest", all.name),
                    .step = step,
                    .n = all.n,
                    .lanes = rest,
                    .panel = rest,
                    .packed = all.packed};
    behind.n.s = moved_statement(s, all.n.s, all.n.lane, all.lanes);
    if (all.n.tail)
        behind.n.tail = moved_statement(s, all.n.tail, all.n.lane, all.lanes);
    behind.n.out = all.n.tail ? &behind.n.tail->out : &behind.n.s->out;
    apply_piece(s, &behind, choice);
}

static int64_t family(const po_choice *choice) {
    return choice->n[ROWS];
}

static void tell(const po_choice *choice, po_text *text) {
    po_text_printf(text, "direct, tile %lldx%lld", (long long)choice->n[ROWS],
                   (long long)(choice->n[PANEL] ? choice->n[PANEL] : 64));
    if (choice->n[LINES] > 1)
        po_text_printf(text, ", %lld lines as one", (long long)choice->n[LINES]);
    po_text_printf(text, "%s",
                   choice->n[FETCH] == ALONE  ? ", nothing fetched ahead"
                   : choice->n[FETCH] == SOON ? ", fetched as it comes"
                                              : "");
}

const po_scheduler po_schedule_direct = {"direct", PO_ORDERS_SUMS, list, apply,
                                         family,   tell,           NULL, NULL};

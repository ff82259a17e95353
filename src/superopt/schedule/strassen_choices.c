/* Which products are worked by Strassen's algorithm, once or twice, and in which sizes. */
#include "base/num.h"
#include "superopt/schedule/strassen.h"

enum {
    ENOUGH = 16 /* of a label, to halve it rather than one inside of it */,
    MOST_PANEL = 196608 /* floats: all parts of a panel stay in the second cache */,
    MOST_SUMS = 524288,  /* floats of the inputs' sums, of which a block holds no more, */
    SLICED_SUMS = 327680 /* and of a slice */
};
/* By the times that the algorithm is used. */
static const struct {
    uint32_t most_kept;  /* labels of rows: a register tile has 8 axes */
    int64_t least_rows;  /* of a part, for a gain */
    int64_t least_lanes; /* the same of channels and outputs */
} of_level[PO_STRASSEN_MOST + 1] = {[1] = {PO_STRASSEN_KEPT, 48, 48}, [2] = {2, 32, 128}};
/* Lanes of a panel and rows of a tile, the best guess first. A tile of one vector reads the fewest
 * bytes of the weights for a multiplication, which come from the second cache: two vectors for each
 * that is multiplied, or four where halves are halved, and those leave no other choice. */
static const struct {
    int64_t levels, panel[2];
    bool narrow; /* for machines whose registers hold no row of wider panels in one part */
} tiles[] = {{1, {16, 22}, false},
             {1, {48, 8}, false},
             {1, {64, 6}, false},
             {1, {16, 14}, true},
             {2, {16, 22}, false}};

static bool lone_label(const po_mu_index *index, uint32_t label) {
    return index->n == 1 && index->terms[0].label == label && index->terms[0].coef == 1 &&
           index->offset == 0;
}

/* The weight's axes: outputs, channels, and such of one element. */
static bool find_weight(const po_mu *mu, po_strassen_parts *p) {
    const po_mu_access *b = &p->n.s->in[p->n.b];
    const po_mu_tensor *t = &mu->tensors[b->tensor];
    p->w_k = po_access_axis(mu, b, p->n.lane);
    p->w_c = po_access_axis(mu, b, p->c);
    if (t->place != PO_MU_WEIGHT || t->rank >= PO_MU_MAX_RANK || p->w_k == PO_NONE ||
        p->w_c == PO_NONE)
        return false;
    for (uint32_t x = 0; x < t->rank; x++)
        if (x == p->w_k   ? !lone_label(&b->axes[x], p->n.lane)
            : x == p->w_c ? !lone_label(&b->axes[x], p->c)
                          : b->axes[x].n > 0)
            return false;
    return true;
}

/* The first label that is long enough, else the longest. */
static uint32_t find_halved(const po_mu *mu, const po_strassen_parts *p) {
    uint32_t longest = 0;
    for (uint32_t i = 0; i < p->n_kept; i++) {
        if (po_mu_extent(mu, p->kept[i]) >= ENOUGH)
            return i;
        longest = po_mu_extent(mu, p->kept[i]) > po_mu_extent(mu, p->kept[longest]) ? i : longest;
    }
    return longest;
}

bool po_strassen_parts_of(const po_mu *mu, uint32_t step, int64_t levels, po_strassen_parts *p) {
    *p = (po_strassen_parts){.c = PO_NONE, .in = INT64_C(1) << levels};
    if (!po_naive_step_of(mu, step, &p->n) || !p->n.product || !p->n.s->fresh)
        return false;
    const po_mu_access *a = &p->n.s->in[p->n.a], *o = p->n.out;
    const po_mu_tensor *t = &mu->tensors[a->tensor];
    if (t->rank < 2 || (t->place != PO_MU_DEVICE && t->place != PO_MU_INPUT))
        return false;
    const po_mu_index *last = po_mu_last_axis(mu, a);
    if (last->n != 1 || !lone_label(last, last->terms[0].label) ||
        !po_is_reduced(mu, &p->n, last->terms[0].label))
        return false;
    p->c = last->terms[0].label;
    for (uint32_t x = 0; x + 1 < t->rank; x++) {
        int64_t least, most;
        if (a->axes[x].n == 0)
            continue;
        uint32_t label = a->axes[x].terms[0].label;
        po_mu_range(mu, a, x, &least, &most);
        if (a->axes[x].n > 1 || p->n_kept == of_level[levels].most_kept ||
            po_is_reduced(mu, &p->n, label) || po_access_axis(mu, a, label) != x || least < 0 ||
            most >= t->dims[x])
            return false;
        p->kept[p->n_kept++] = label;
    }
    if (p->n_kept == 0 || !find_weight(mu, p))
        return false;
    for (uint32_t x = 0; x < mu->tensors[o->tensor].rank; x++)
        if (o->axes[x].n > 1 || (o->axes[x].n == 1 && o->axes[x].terms[0].coef != 1))
            return false;
    p->halved = find_halved(mu, p);
    const uint32_t rows = p->kept[p->halved];
    p->part[0] = po_ceil_div(po_mu_extent(mu, rows), p->in);
    p->part[1] = po_mu_extent(mu, p->c) / p->in;
    p->part[2] = po_mu_extent(mu, p->n.lane) / p->in;
    p->tiles = p->part[0];
    for (uint32_t i = 0; i < p->n_kept; i++)
        p->tiles *= i != p->halved ? po_mu_extent(mu, p->kept[i]) : 1;
    bool even = po_mu_extent(mu, rows) % p->in == 0;
    return (even || (t->place == PO_MU_DEVICE && po_ends_outside(mu, o, rows))) &&
           po_mu_extent(mu, rows) > 1 && po_mu_extent(mu, p->c) % (p->in * PO_MU_VECTOR) == 0 &&
           po_mu_extent(mu, p->n.lane) % (p->in * PO_MU_VECTOR) == 0;
}

/* Rows of a part of the halved label that make a block: the least divisor that gives enough rows,
 * of one sample where there are several. */
static int64_t block_of(const po_mu *mu, const po_strassen_parts *p, int64_t enough) {
    int64_t of_one = 1;
    for (uint32_t i = p->halved + 1; i < p->n_kept; i++)
        of_one *= po_mu_extent(mu, p->kept[i]);
    for (int64_t rows = 1; rows < p->part[0]; rows++)
        if (p->part[0] % rows == 0 && rows * of_one >= enough)
            return rows;
    return p->part[0];
}

static uint32_t list_level(const po_mu *naive, uint32_t step, const po_isa *isa, int64_t levels,
                           po_choice *choices, uint32_t n) {
    po_strassen_parts p;
    if (!po_strassen_parts_of(naive, step, levels, &p) || p.tiles < of_level[levels].least_rows ||
        p.part[1] < of_level[levels].least_lanes || p.part[2] < of_level[levels].least_lanes)
        return n;
    const bool narrow = po_panel_parts(isa, (const int64_t[]){32, 14}) > 1;
    const int64_t block = block_of(naive, &p, of_level[levels].least_rows);
    const int64_t each =
        (levels > 1 ? PO_STRASSEN_PRODUCTS * PO_STRASSEN_PRODUCTS : PO_STRASSEN_PRODUCTS) *
        p.tiles / p.part[0] * block;
    const bool by_slices = block < p.part[0] && each * p.part[1] > MOST_SUMS;
    for (size_t i = 0; i < sizeof tiles / sizeof tiles[0]; i++) {
        const int64_t *panel = tiles[i].panel;
        int64_t slice = MOST_PANEL / (p.in * p.in * panel[0]);
        if (by_slices && slice > SLICED_SUMS / each)
            slice = SLICED_SUMS / each;
        slice -= slice % PO_MU_VECTOR;
        while (slice > 0 && p.part[1] % slice != 0)
            slice -= PO_MU_VECTOR;
        if (tiles[i].levels != levels || tiles[i].narrow != narrow || p.part[2] % panel[0] != 0 ||
            slice < INT64_C(2) * PO_MU_VECTOR || n == PO_CHOICES_MAX ||
            (by_slices && each * (slice + PO_STRASSEN_PAD + p.part[2]) * 4 > PO_SHARED_BYTES))
            continue;
        choices[n] = (po_choice){.how = &po_schedule_strassen};
        choices[n].n[PO_STRASSEN_SLICE] = slice;
        choices[n].n[PO_STRASSEN_PANEL] = panel[0];
        choices[n].n[PO_STRASSEN_ROWS] = panel[1];
        choices[n].n[PO_STRASSEN_BLOCK] = block;
        choices[n].n[PO_STRASSEN_LEVELS] = levels;
        choices[n++].n[PO_STRASSEN_BY_SLICES] = by_slices;
    }
    return n;
}

static uint32_t list(const po_mu *naive, uint32_t step, const po_isa *isa, po_choice *choices,
                     uint32_t n) {
    for (int64_t levels = 1; levels <= PO_STRASSEN_MOST; levels++)
        n = list_level(naive, step, isa, levels, choices, n);
    return n;
}

static int64_t family(const po_choice *choice) {
    return choice->n[PO_STRASSEN_LEVELS];
}

static void tell(const po_choice *choice, po_text *text) {
    po_text_printf(text, "Strassen%s, %sslices of %lld, tile %lldx%lld, blocks of %lld",
                   choice->n[PO_STRASSEN_LEVELS] > 1 ? " twice" : "",
                   choice->n[PO_STRASSEN_BY_SLICES] ? "by " : "",
                   (long long)choice->n[PO_STRASSEN_SLICE], (long long)choice->n[PO_STRASSEN_ROWS],
                   (long long)choice->n[PO_STRASSEN_PANEL],
                   (long long)choice->n[PO_STRASSEN_BLOCK]);
}

/* An output is up to four products of sums of two, of which one way or the other two would do. */
static double magnifies(const po_choice *choice) {
    return choice->n[PO_STRASSEN_LEVELS] > 1 ? 36 : 6;
}

const po_scheduler po_schedule_strassen = {"strassen", PO_ROUNDS, list,      po_strassen_apply,
                                           family,     tell,      magnifies, NULL};

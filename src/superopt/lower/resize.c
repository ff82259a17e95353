/* Interpolation along several axes: where the weights repeat from element to element, a few steps
 * of a few products each, in place of one that reads whole rows of tables.
 *
 * Along an axis the elements that are made fall in three parts: the first and the last, which the
 * ends of what is read have a say in, and between them periods of so many `phases`, each made like
 * the one before it, from `pace` elements further on. A part of each axis makes a step. */
#include "base/num.h"
#include "ops/sum/tables.h"
#include "superopt/lower/sum_kind.h"

/* Phases are written out one by one, and so is what each reads. */
enum { PARTS = 3, MOST_PHASES = 32, MOST_TAPS = 8, MOST_CELLS = 4096 };

/* Element out + phases * i + r is the sum over k of weight[r][k] * (element in + pace * i + k). */
typedef struct part {
    int64_t out, phases, periods, in, pace, taps;
} part;

typedef struct resized_axis {
    const po_operand *table; /* [made, read]; NULL: the axis stays */
    uint32_t n;
    part parts[PARTS];
} resized_axis;

/* --- along one axis --- */

static po_rational weight_at(const po_operand *table, int64_t made, int64_t read) {
    const bool inside = read >= 0 && read < table->dims[1];
    return inside ? table->table[made * table->dims[1] + read] : PO_RATIONAL(0);
}

/* What a run of elements reads: from *from up to, but not with, *to. */
static void reach(const po_operand *table, int64_t first, int64_t n, int64_t *from, int64_t *to) {
    *from = table->dims[1];
    *to = 0;
    for (int64_t o = first; o < first + n; o++)
        for (int64_t i = 0; i < table->dims[1]; i++)
            if (weight_at(table, o, i).num != 0) {
                *from = i < *from ? i : *from;
                *to = i + 1 > *to ? i + 1 : *to;
            }
}

/* The part of `periods` periods from an element on; false: it reads too much, or nothing. */
static bool make_part(const po_operand *table, int64_t out, int64_t phases, int64_t periods,
                      int64_t pace, part *p) {
    int64_t to;
    *p = (part){.out = out, .phases = phases, .periods = periods, .pace = pace};
    reach(table, out, phases, &p->in, &to);
    p->taps = to - p->in;
    return p->taps > 0 && p->taps <= MOST_TAPS && phases <= MOST_PHASES;
}

static bool repeats(const po_operand *table, int64_t made, int64_t phases, int64_t pace) {
    for (int64_t i = 0; i < table->dims[1] + pace; i++)
        if (!po_rational_equal(weight_at(table, made, i - pace),
                               weight_at(table, made + phases, i)))
            return false;
    return true;
}

/* Elements from `first` on that are periods. */
static int64_t run_from(const po_operand *table, int64_t first, int64_t phases, int64_t pace) {
    int64_t last = first;
    while (last + phases < table->dims[0] && repeats(table, last, phases, pace))
        last++;
    return last == first ? 0 : (last - first + phases) / phases * phases;
}

static bool find_parts(const po_operand *table, int64_t phases, int64_t pace, resized_axis *axis) {
    int64_t most = 0, first = 0;
    axis->n = 0;
    for (int64_t o = 0; o < 2 * phases && o + phases <= table->dims[0]; o++) {
        int64_t n = run_from(table, o, phases, pace);
        first = n > most ? o : first;
        most = n > most ? n : most;
    }
    const int64_t behind = table->dims[0] - first - most;
    if (most == 0 || behind > 2 * phases)
        return false;
    if (first > 0 && !make_part(table, 0, first, 1, 0, &axis->parts[axis->n++]))
        return false;
    if (!make_part(table, first, phases, most / phases, pace, &axis->parts[axis->n++]))
        return false;
    return behind == 0 || make_part(table, first + most, behind, 1, 0, &axis->parts[axis->n++]);
}

/* By the ratio of lengths, or of the distances between the first and the last. */
static bool read_axis(const po_operand *table, resized_axis *axis) {
    axis->table = table;
    for (int64_t less = 0; less < 2; less++) {
        const int64_t made = table->dims[0] - less, read = table->dims[1] - less;
        if (made < 1 || read < 1)
            return false;
        const int64_t by = po_gcd_i64(made, read);
        if (made / by <= MOST_PHASES && find_parts(table, made / by, read / by, axis))
            return true;
    }
    return false;
}

/* --- the whole --- */

static bool read_axes(const po_sum *sum, resized_axis *axes) {
    po_sum_tables tables;
    if (!po_sum_tables_of(sum, &tables))
        return false;
    int64_t cells = 1;
    for (uint32_t x = 0; x < sum->rank; x++) {
        int64_t most = 1;
        axes[x] = (resized_axis){.n = 1, .parts = {{0, 1, sum->dims[x], 0, 1, 1}}};
        if (tables.of[x] && !read_axis(tables.of[x], &axes[x]))
            return false;
        for (uint32_t i = 0; i < axes[x].n; i++) {
            const int64_t own = axes[x].parts[i].phases * axes[x].parts[i].taps;
            most = own > most ? own : most;
        }
        cells *= most;
    }
    return cells > 1 && cells <= MOST_CELLS;
}

/* A part of each axis. */
typedef struct piece {
    const resized_axis *axes;
    const part *parts[PO_SUM_MAX_FACTORS];
} piece;

/* The weights of all axes as one table, [phases, taps] of each that has some. */
static uint32_t add_weights(po_sum *sum, const piece *p) {
    int64_t dims[2 * PO_SUM_MAX_FACTORS], count = 1;
    uint32_t rank = 0;
    for (uint32_t x = 0; x < sum->rank; x++)
        if (p->axes[x].table) {
            dims[rank++] = p->parts[x]->phases;
            dims[rank++] = p->parts[x]->taps;
            count *= p->parts[x]->phases * p->parts[x]->taps;
        }
    po_rational *table = PO_NEW_N(sum->arena, po_rational, count);
    for (int64_t i = 0; i < count; i++) {
        int64_t rest = i;
        table[i] = PO_RATIONAL(1);
        for (uint32_t x = sum->rank; x-- > 0;) {
            const part *a = p->parts[x];
            if (!p->axes[x].table)
                continue;
            const po_rational w = weight_at(p->axes[x].table, a->out + rest / a->taps % a->phases,
                                            a->in + rest % a->taps);
            rest /= a->taps * a->phases;
            if (!po_rational_mul(table[i], w, &table[i]))
                return UINT32_MAX;
        }
    }
    return po_sum_table(sum, rank, dims, table);
}

static void move(po_term *t, const part *a, uint32_t x, po_index *in, po_index *weights,
                 uint32_t at) {
    t->out.base[x] = a->out;
    in->base[x] = a->in;
    if (weights) {
        const uint32_t phase = po_term_var(t, NULL, a->phases);
        po_index_add(t, &t->out, x, 1, phase);
        po_index_add(t, weights, at, 1, phase);
    }
    const uint32_t period = po_term_var(t, NULL, a->periods);
    po_index_add(t, &t->out, x, a->phases, period);
    po_index_add(t, in, x, a->pace, period);
    if (weights) {
        const uint32_t tap = po_term_var(t, NULL, a->taps);
        po_index_add(t, in, x, 1, tap);
        po_index_add(t, weights, at + 1, 1, tap);
    }
}

/* NULL: it has no such form. */
static po_sum *sum_of(po_arena *arena, const po_sum *whole, const piece *p) {
    po_sum *sum = po_sum_create(arena, whole->rank, whole->dims);
    const po_operand *x = NULL;
    for (uint32_t k = 0; k < whole->n_operands; k++)
        x = whole->operands[k].kind == PO_OPERAND_INPUT ? &whole->operands[k] : x;
    const uint32_t input = po_sum_input(sum, x->input, x->rank, x->dims);
    const uint32_t table = add_weights(sum, p);
    if (table == UINT32_MAX)
        return NULL;
    po_term *t = po_sum_term(sum, 3 * sum->rank);
    po_index *in = po_term_factor(sum, t, input), *weights = po_term_factor(sum, t, table);
    for (uint32_t i = 0, at = 0; i < sum->rank; i++) {
        const bool mixed = p->axes[i].table != NULL;
        move(t, p->parts[i], i, in, mixed ? weights : NULL, at);
        at += mixed ? 2 : 0;
    }
    return po_sum_check(sum) ? sum : NULL;
}

uint32_t po_lower_pieces(po_arena *arena, const po_sum *sum, po_sum *pieces[PO_LOWER_PIECES]) {
    resized_axis axes[PO_SUM_MAX_FACTORS];
    uint32_t n = 1;
    if (!read_axes(sum, axes))
        return 0;
    for (uint32_t x = 0; x < sum->rank; x++)
        n *= axes[x].n;
    for (uint32_t i = 0; i < n && n <= PO_LOWER_PIECES; i++) {
        piece p = {.axes = axes};
        for (uint32_t x = 0, rest = i; x < sum->rank; x++) {
            p.parts[x] = &axes[x].parts[rest % axes[x].n];
            rest /= axes[x].n;
        }
        pieces[i] = sum_of(arena, sum, &p);
        if (!pieces[i])
            return 0;
    }
    return n <= PO_LOWER_PIECES ? n : 0;
}

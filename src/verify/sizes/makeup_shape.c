/* Makeups in another shape: digits grouped otherwise, merged, without channels that are 0. */
#include "verify/sizes/makeup.h"

#include "ir/size.h"

/* Takes the digits of one axis off the list of what is left. */
typedef struct regroup {
    po_piece *part;
    const po_makeup *from;
    po_makeup *to;
    uint32_t at; /* the next digit of `from` */
    po_dim left; /* of it, where it is a number that was split; else its size */
} regroup;

static void next_digit(regroup *g) {
    g->at++;
    g->left = g->at < g->from->n_digits ? g->from->digit[g->at].size : PO_DIM(1);
}

static bool put_digit(regroup *g, uint32_t axis, po_dim size) {
    po_makeup *to = g->to;
    if (to->n_digits == PO_MAKEUP_DIGITS)
        return false;
    if (size.value < 0)
        po_makeup_take(g->part, to, to->n_digits, g->from, g->at, g->at + 1);
    to->digit[to->n_digits++] = (po_digit){axis, size};
    return true;
}

/* How many digits, of which the next is whole, have this length together; 0: none. Sums of lengths
 * are multiplied, and not divided. */
static uint32_t run_of(const regroup *g, po_dim dim) {
    po_dim product = g->left;
    for (uint32_t n = 1; g->at + n <= g->from->n_digits; n++) {
        if (po_dim_same(product, dim))
            return n;
        if (g->at + n < g->from->n_digits)
            product = po_size_mul(g->part->arena, product, g->from->digit[g->at + n].size);
    }
    return 0;
}

static bool take_axis(regroup *g, uint32_t axis, po_dim dim) {
    bool any = false;
    for (uint32_t n = dim.value < 0 ? run_of(g, dim) : 0; n > 0; n--) {
        if (g->left.value != 1 && !put_digit(g, axis, g->left))
            return false;
        next_digit(g);
        any = true;
        dim = PO_DIM(1);
    }
    while (dim.value != 1) {
        while (g->at < g->from->n_digits && g->left.value == 1)
            next_digit(g);
        if (g->at >= g->from->n_digits || dim.value == 0 || g->left.value == 0)
            return false;
        po_dim rest = po_size_divide(g->part->arena, dim, g->left);
        const bool open = g->left.value < 0;
        if (po_dim_same(dim, g->left))
            rest = PO_DIM(1);
        if (rest.value > 0 || rest.symbol) {
            if (!put_digit(g, axis, g->left))
                return false;
            dim = rest;
            next_digit(g);
        } else if (!open && dim.value > 1 && g->left.value % dim.value == 0) {
            if (!put_digit(g, axis, dim))
                return false;
            g->left = PO_DIM(g->left.value / dim.value);
            dim = PO_DIM(1);
        } else {
            return false;
        }
        any = true;
    }
    return any || put_digit(g, axis, PO_DIM(1));
}

po_makeup *po_makeup_reshaped(po_piece *part, const po_makeup *f, const po_type *type) {
    po_makeup *out = po_makeup_create(part, type);
    if (!out)
        return NULL;
    out->n_digits = 0;
    regroup g = {part, f, out, 0, f->n_digits ? f->digit[0].size : PO_DIM(1)};
    for (uint32_t axis = 0; axis < type->rank; axis++)
        if (!take_axis(&g, axis, type->dims[axis]))
            return NULL;
    while (g.at < f->n_digits && g.left.value == 1)
        next_digit(&g);
    if (g.at < f->n_digits)
        return NULL;
    po_makeup_inherit(part, out, f);
    out->places = f->places;
    out->strict = f->strict;
    out->sized = f->sized;
    return out;
}

/* Takes the digits of one axis, of which the first is open and the others are numbers, as one: of
 * place y = k p + a the first counts p. */
static bool merge_axis(po_piece *part, const po_makeup *of, uint32_t from, uint32_t to,
                       po_makeup *out) {
    enum { MOST_TIMES = 64 };
    po_dim size = of->digit[from].size;
    int64_t times = 1;
    for (uint32_t i = from + 1; i < to; i++)
        times = of->digit[i].size.value < 1 || times > MOST_TIMES ? MOST_TIMES + 1
                                                                  : times * of->digit[i].size.value;
    if (!po_digit_open(&of->digit[from]) || times > MOST_TIMES)
        return false;
    size = po_size_times(part->arena, size, times);
    if (!size.symbol)
        return false;
    for (uint32_t i = 0; i < of->n_reads; i++) {
        po_makeup_read r = of->reads[i];
        if (r.digit != from)
            continue;
        r.digit = out->n_digits;
        for (int64_t a = 0; a < times; a++) {
            r.read = of->reads[i].read;
            r.read.rho = r.read.rho * times + a;
            r.read.m *= times;
            po_makeup_add_read(part, out, r);
        }
    }
    out->digit[out->n_digits++] = (po_digit){of->digit[from].axis, size};
    return true;
}

const po_makeup *po_makeup_merged(po_piece *part, const po_makeup *makeup) {
    po_makeup *out = PO_NEW(part->arena, po_makeup);
    *out = *makeup;
    out->n_digits = out->n_reads = out->cap_reads = 0;
    out->reads = NULL;
    for (uint32_t i = 0; i < makeup->n_digits;) {
        uint32_t from, to;
        po_makeup_axis(makeup, makeup->digit[i].axis, &from, &to);
        if (to - from < 2 || !merge_axis(part, makeup, from, to, out))
            po_makeup_put(part, out, makeup->digit[i].axis, makeup, from, to);
        i = to;
    }
    return out;
}

/* Another length of axis 1, which is fixed. False: it is not. */
static bool set_channels(po_makeup *m, int64_t channels) {
    uint32_t from, to;
    po_makeup_axis(m, 1, &from, &to);
    for (uint32_t i = from; i < to; i++)
        if (po_digit_open(&m->digit[i]))
            return false;
    if (to == from)
        return false;
    const uint32_t gone = to - from - 1;
    m->digit[from].size = PO_DIM(channels);
    memmove(&m->digit[from + 1], &m->digit[to], (m->n_digits - to) * sizeof *m->digit);
    m->n_digits -= gone;
    for (uint32_t i = 0; i < m->n_reads; i++)
        m->reads[i].digit -= m->reads[i].digit >= to ? gone : 0;
    return true;
}

const po_makeup *po_makeup_trimmed(po_piece *part, const po_makeup *makeup, int64_t channels) {
    if (channels == 0)
        return makeup;
    po_makeup *m = PO_NEW(part->arena, po_makeup);
    *m = *makeup;
    m->reads = PO_NEW_N(part->arena, po_makeup_read, m->n_reads);
    if (m->n_reads > 0)
        memcpy(m->reads, makeup->reads, m->n_reads * sizeof *m->reads);
    m->cap_reads = m->n_reads;
    return set_channels(m, channels) ? m : makeup;
}

bool po_piece_leaf(po_piece *part, po_value_id value, uint32_t leaf, int64_t channels) {
    po_makeup *f = po_makeup_create(part, part->leaves[leaf]);
    po_type type = part->open->values[value].type;
    for (uint32_t i = 0; f && i < f->n_digits; i++)
        if (po_digit_open(&f->digit[i]))
            po_makeup_add_read(part, f, (po_makeup_read){leaf, i, i, PO_READ_ITSELF, false});
    po_dim all = PO_DIM(0);
    if (channels > 0) {
        po_dim *dims = PO_NEW_N(part->arena, po_dim, type.rank);
        memcpy(dims, type.dims, type.rank * sizeof *dims);
        all = dims[1];
        dims[1] = PO_DIM(channels);
        type.dims = dims;
    }
    f = f ? po_makeup_reshaped(part, f, &type) : NULL;
    if (f && channels > 0 && !set_channels(f, all.value))
        f = NULL;
    part->makeup[value] = f;
    return f != NULL;
}

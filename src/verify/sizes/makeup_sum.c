/* Makeups by indexed sums: what differs between two assignments of lengths is open, and each index
 * has one open variable at most. */
#include "verify/sizes/makeup.h"

#include "base/num.h"
#include "ops/sum/sum.h"
#include "verify/sizes/guard.h"

#include <math.h>

enum { MOST_STEPS = 4096, LARGE = 2 /* assignments that tell what is open */ };

/* One term, at all assignments. */
typedef struct reading {
    po_piece *part;
    const po_node *node;
    const po_sum *sum[PO_MAKEUP_SIZES];
    const po_term *t[PO_MAKEUP_SIZES];
    bool open[PO_SUM_MAX_VARS];
    bool bound[PO_SUM_MAX_VARS]; /* open, and in no index of the output */
    bool mean;                   /* its scale is one over what it adds up over open lengths */
    uint32_t poles;              /* leaves that some factor is divided by something of, by bit */
    po_makeup *out;
} reading;

static po_status fail(const reading *r, const char *why) {
    return po_piece_fail(r->part, r->node, why);
}

/* --- the same at all assignments --- */

static bool same_index(const po_term *t, const po_index *a, const po_term *u, const po_index *b) {
    if (a->rank != b->rank)
        return false;
    for (uint32_t x = 0; x < a->rank; x++) {
        if (a->base[x] != b->base[x])
            return false;
        for (uint32_t v = 0; v < t->n_vars; v++)
            if (po_index_coef(t, a, x, v) != po_index_coef(u, b, x, v))
                return false;
    }
    return true;
}

/* The scale is the same, or one over the product of what is added up: a mean. */
static bool same_scale(const reading *r, uint32_t at, bool mean) {
    const po_term *t = r->t[0], *u = r->t[at];
    po_rational a = t->scale, b = u->scale;
    for (uint32_t v = 0; v < t->n_vars && mean; v++)
        if (r->bound[v] && (!po_rational_mul(a, PO_RATIONAL(t->extent[v]), &a) ||
                            !po_rational_mul(b, PO_RATIONAL(u->extent[v]), &b)))
            return false;
    return po_rational_equal(a, b);
}

static bool same_term(const reading *r, uint32_t at, bool *mean) {
    const po_term *t = r->t[0], *u = r->t[at];
    if (t->n_vars != u->n_vars || t->n_factors != u->n_factors ||
        !same_index(t, &t->out, u, &u->out))
        return false;
    for (uint32_t i = 0; i < t->n_factors; i++)
        if (t->factor[i].operand != u->factor[i].operand ||
            !same_index(t, &t->factor[i].at, u, &u->factor[i].at))
            return false;
    for (uint32_t v = 0; v < t->n_vars; v++)
        if (!r->open[v] && t->extent[v] != u->extent[v])
            return false;
    const bool plain = same_scale(r, at, false);
    *mean |= !plain;
    return plain || same_scale(r, at, true);
}

static bool same_operands(const reading *r) {
    const po_sum *a = r->sum[0];
    for (uint32_t at = 1; at < PO_MAKEUP_SIZES; at++) {
        const po_sum *b = r->sum[at];
        if (a->n_operands != b->n_operands || a->n_terms != b->n_terms || a->rank != b->rank)
            return false;
        for (uint32_t i = 0; i < a->n_operands; i++) {
            const po_operand *x = &a->operands[i], *y = &b->operands[i];
            if (x->kind != y->kind || x->rank != y->rank)
                return false;
            if (x->kind != PO_OPERAND_TABLE) {
                if (x->input != y->input || x->eps != y->eps)
                    return false;
                continue;
            }
            if (x->count != y->count ||
                memcmp(x->table, y->table, (size_t)x->count * sizeof *x->table) != 0)
                return false;
        }
    }
    return true;
}

/* --- indices --- */

/* The open variable of an index along an axis: PO_NONE where there is none. False: several. */
static bool open_variable(const reading *r, const po_index *at, uint32_t axis, uint32_t *var) {
    *var = PO_NONE;
    for (uint32_t v = 0; v < r->t[0]->n_vars; v++)
        if (r->open[v] && po_index_coef(r->t[0], at, axis, v) != 0) {
            if (*var != PO_NONE)
                return false;
            *var = v;
        }
    return true;
}

/* Something besides the open variable moves it. */
static bool moves_else(const reading *r, const po_index *at, uint32_t axis, uint32_t var) {
    for (uint32_t v = 0; v < r->t[0]->n_vars; v++)
        if (v != var && r->t[0]->extent[v] > 1 && po_index_coef(r->t[0], at, axis, v) != 0)
            return true;
    return false;
}

/* The index is the variable, which runs over all of the axis. */
static bool is_label(const reading *r, const po_index *at, uint32_t axis, uint32_t var,
                     uint32_t operand) {
    if (var == PO_NONE || at->base[axis] != 0 || moves_else(r, at, axis, var) ||
        po_index_coef(r->t[0], at, axis, var) != 1)
        return false;
    for (uint32_t i = 0; i < LARGE; i++) {
        const po_sum *s = r->sum[i];
        const int64_t length = operand == PO_NONE ? s->dims[axis] : s->operands[operand].dims[axis];
        if (r->t[i]->extent[var] != length)
            return false;
    }
    return true;
}

/* The output's axis that the variable moves; PO_NONE: none. */
static uint32_t axis_of(const reading *r, uint32_t var) {
    for (uint32_t x = 0; x < r->t[0]->out.rank; x++)
        if (po_index_coef(r->t[0], &r->t[0]->out, x, var) != 0)
            return x;
    return PO_NONE;
}

/* --- windows --- */

typedef struct window {
    const reading *r;
    const po_makeup *of; /* the operand's */
    const po_index *at;
    uint32_t operand, axis, out_axis, var;
    uint32_t digit, out_digit;
    bool strict; /* the operand is, or is a function of it */
} window;

/* The length that the variable runs over, as an expression. */
static bool extent_of(const window *w, po_dim *length) {
    const reading *r = w->r;
    bool out = true, in = true;
    for (uint32_t i = 0; i < LARGE; i++) {
        out &= r->t[i]->extent[w->var] == r->sum[i]->dims[w->out_axis];
        in &= r->t[i]->extent[w->var] == r->sum[i]->operands[w->operand].dims[w->axis];
    }
    *length = out ? r->out->digit[w->out_digit].size : w->of->digit[w->digit].size;
    return out || in;
}

/* Whatever lies outside of the operand, or of what the variable runs over, must be 0 by the leaf's
 * own bounds; where the operand is not 0 there, all must lie inside. */
static bool guarded(const window *w, po_pace step, const po_makeup_read *of, po_paced s) {
    const reading *r = w->r;
    const po_dim length = r->out->digit[w->out_digit].size, in = w->of->digit[w->digit].size;
    po_dim runs;
    po_bounds g = {.read = s.read, .length = length, .reads = !w->strict && of};
    if (g.reads)
        g.leaf = r->part->leaves[of->leaf]->dims[of->leaf_axis];
    const int64_t times = step.in * s.by, plus = step.in * s.at + step.in_base;
    const bool itself = g.reads && po_read_is_itself(of->read) && po_dim_same(g.leaf, in);
    if (!itself && !po_bounds_hold(r->part->oracle, &g, times, plus, in))
        return false;
    if (!extent_of(w, &runs))
        return false;
    if (step.out == 1 && step.out_base == 0 && po_dim_same(runs, length))
        return true;
    if (step.in == 1 && step.in_base == 0 && po_dim_same(runs, in))
        return true;
    return po_bounds_hold(r->part->oracle, &g, s.by, s.at, runs);
}

static po_status take_step(const window *w, po_pace step) {
    const reading *r = w->r;
    bool any = false;
    for (uint32_t i = 0; i < w->of->n_reads; i++) {
        const po_makeup_read *of = &w->of->reads[i];
        po_paced s;
        if (of->digit != w->digit)
            continue;
        any = true;
        if (!po_read_pace(of->read, step, &s))
            continue;
        if (!guarded(w, step, of, s))
            return fail(r, "not shown to stay within its input for every length");
        po_makeup_add_read(
            r->part, r->out,
            (po_makeup_read){of->leaf, of->leaf_axis, w->out_digit, s.read, of->absent});
    }
    if (any)
        return PO_OK;
    po_paced s;
    return po_read_pace(PO_READ_ITSELF, step, &s) && guarded(w, step, NULL, s)
               ? PO_OK
               : fail(r, "not shown to stay within its input for every length");
}

/* Every offset that the fixed variables give the two indices. */
static po_status take_window(window *w) {
    const reading *r = w->r;
    const po_term *t = r->t[0];
    uint32_t vars[PO_SUM_MAX_VARS], n = 0;
    int64_t steps = 1;
    for (uint32_t v = 0; v < t->n_vars; v++)
        if (!r->open[v] && t->extent[v] > 1 &&
            (po_index_coef(t, w->at, w->axis, v) != 0 ||
             po_index_coef(t, &t->out, w->out_axis, v) != 0)) {
            vars[n++] = v;
            if (!po_mul_i64(steps, t->extent[v], &steps) || steps > MOST_STEPS)
                return fail(r, "its windows are too large");
        }
    for (int64_t i = 0; i < steps; i++) {
        po_pace s = {po_index_coef(t, &t->out, w->out_axis, w->var), t->out.base[w->out_axis],
                     po_index_coef(t, w->at, w->axis, w->var), w->at->base[w->axis]};
        int64_t left = i;
        for (uint32_t k = 0; k < n; k++) {
            const int64_t value = left % t->extent[vars[k]];
            left /= t->extent[vars[k]];
            s.out_base += value * po_index_coef(t, &t->out, w->out_axis, vars[k]);
            s.in_base += value * po_index_coef(t, w->at, w->axis, vars[k]);
        }
        if (s.out < 1 || s.in < 1)
            return fail(r, "it reads backwards");
        PO_TRY(take_step(w, s));
    }
    return PO_OK;
}

/* --- factors --- */

static bool axis_is_open(const po_makeup *f, uint32_t axis) {
    uint32_t from, to;
    bool open = false;
    po_makeup_axis(f, axis, &from, &to);
    for (uint32_t i = from; i < to; i++)
        open |= po_digit_open(&f->digit[i]);
    return open;
}

/* Takes the places of an operand's axis, one by one, for an axis of the output. */
static po_status take_label(const reading *r, const po_makeup *f, uint32_t axis,
                            uint32_t out_axis) {
    uint32_t from, to, own, end;
    po_makeup_axis(f, axis, &from, &to);
    po_makeup_axis(r->out, out_axis, &own, &end);
    if (!po_makeup_same_digits(f, from, to, r->out, own, end))
        return fail(r, "its operands split an axis each in another way");
    po_makeup_take(r->part, r->out, own, f, from, to);
    return PO_OK;
}

static po_status take_places(const reading *r, const po_makeup *f, const po_index *at,
                             uint32_t axis) {
    uint32_t from, to;
    const int64_t place = at->base[axis];
    po_makeup_axis(f, axis, &from, &to);
    if (moves_else(r, at, axis, PO_NONE) || place < 0 || to - from != 1 ||
        !po_bounds_least(r->part->oracle, f->digit[from].size, place + 1) ||
        !po_makeup_tie_all(r->part, r->out, f, from, to, place))
        return fail(r, "it reads some places of an open axis");
    return PO_OK;
}

static po_status take_axis(const reading *r, const po_makeup *f, uint32_t factor, uint32_t axis,
                           bool strict) {
    const po_index *at = &r->t[0]->factor[factor].at;
    const uint32_t operand = r->t[0]->factor[factor].operand;
    uint32_t var, from, to;
    if (!open_variable(r, at, axis, &var))
        return fail(r, "several open lengths move one index");
    if (!axis_is_open(f, axis))
        return var == PO_NONE ? PO_OK : fail(r, "an open length moves along a fixed axis");
    po_makeup_axis(f, axis, &from, &to);
    if (var == PO_NONE)
        return take_places(r, f, at, axis);
    const bool label = is_label(r, at, axis, var, operand);
    if (r->bound[var]) {
        if (!label || !po_makeup_tie_all(r->part, r->out, f, from, to, PO_EVERY_PLACE))
            return fail(r, "it adds up over an open axis that is not read one by one");
        return PO_OK;
    }
    const uint32_t out_axis = axis_of(r, var);
    if (label && is_label(r, &r->t[0]->out, out_axis, var, PO_NONE))
        return take_label(r, f, axis, out_axis);
    if (to - from != 1) {
        f = po_makeup_merged(r->part, f);
        po_makeup_axis(f, axis, &from, &to);
    }
    window w = {r, f, at, operand, axis, out_axis, var, from, 0, strict};
    uint32_t end;
    po_makeup_axis(r->out, out_axis, &w.out_digit, &end);
    if (to - from != 1 || end - w.out_digit != 1)
        return fail(r, "it slides over an axis that was merged");
    return take_window(&w);
}

/* The makeup of a factor; NULL for a table. */
static const po_makeup *makeup_of_factor(const reading *r, uint32_t i, bool *strict) {
    const po_operand *op = &r->sum[0]->operands[r->t[0]->factor[i].operand];
    if (op->kind == PO_OPERAND_TABLE)
        return NULL;
    const po_makeup *f = r->part->makeup[r->node->in[op->input]];
    *strict = f->strict || op->kind != PO_OPERAND_INPUT;
    return f;
}

/* What a factor is divided by; all of what it is of, where it is a quotient itself. */
static uint32_t poles_of(const reading *r, uint32_t i) {
    bool strict;
    const po_operand *op = &r->sum[0]->operands[r->t[0]->factor[i].operand];
    const po_makeup *f = makeup_of_factor(r, i, &strict);
    if (!f)
        return 0;
    return f->poles | (op->kind != PO_OPERAND_INPUT ? po_makeup_leaves(f) : 0);
}

/* Whether the term is 0 where the factor's leaves are: x (1 / x) is 1. */
static bool is_zero_with(const reading *r, const po_makeup *f, bool strict) {
    return f && !strict && !(po_makeup_leaves(f) & r->poles);
}

/* Whether the term is 0 where the output's axis ends, as the factor is. */
static bool ends_with(const reading *r, uint32_t i, uint32_t axis) {
    bool strict = false;
    const po_makeup *f = makeup_of_factor(r, i, &strict);
    const po_index *at = &r->t[0]->factor[i].at;
    if (!is_zero_with(r, f, strict))
        return false;
    for (uint32_t x = 0; x < at->rank; x++) {
        uint32_t var, from, to;
        if (!open_variable(r, at, x, &var) || var == PO_NONE || axis_of(r, var) != axis)
            continue;
        po_makeup_axis(f, x, &from, &to);
        if (po_makeup_reads(f, from, to))
            return true;
    }
    return false;
}

/* --- terms --- */

/* The split axes of operands are those of the output where all of an axis goes along. */
static void split_axes(reading *r) {
    for (uint32_t x = 0; x < r->t[0]->out.rank; x++) {
        uint32_t own, end, var;
        po_makeup_axis(r->out, x, &own, &end);
        if (end - own != 1 || !open_variable(r, &r->t[0]->out, x, &var) || var == PO_NONE ||
            !is_label(r, &r->t[0]->out, x, var, PO_NONE))
            continue;
        for (uint32_t i = 0; i < r->t[0]->n_factors; i++) {
            bool strict;
            const po_makeup *f = makeup_of_factor(r, i, &strict);
            const po_index *at = &r->t[0]->factor[i].at;
            for (uint32_t a = 0; f && a < at->rank; a++) {
                uint32_t from, to, of;
                po_makeup_axis(f, a, &from, &to);
                if (to - from < 2 || !open_variable(r, at, a, &of) || of != var ||
                    !is_label(r, at, a, var, r->t[0]->factor[i].operand) ||
                    r->out->n_digits + (to - from) - 1 > PO_MAKEUP_DIGITS)
                    continue;
                po_makeup *o = r->out;
                memmove(&o->digit[own + (to - from)], &o->digit[end],
                        (o->n_digits - end) * sizeof *o->digit);
                for (uint32_t k = from; k < to; k++)
                    o->digit[own + k - from] = (po_digit){x, f->digit[k].size};
                o->n_digits += (to - from) - 1;
                /* No reads were taken yet. */
                i = r->t[0]->n_factors;
                break;
            }
        }
    }
}

static po_status look_at_term(reading *r) {
    const po_term *t = r->t[0];
    bool mean = false;
    if (t->n_vars > PO_SUM_MAX_VARS || t->n_vars != r->t[1]->n_vars)
        return fail(r, "its sum is another for other lengths");
    for (uint32_t v = 0; v < t->n_vars; v++) {
        r->open[v] = t->extent[v] != r->t[1]->extent[v];
        r->bound[v] = r->open[v];
        for (uint32_t x = 0; x < t->out.rank; x++)
            if (po_index_coef(t, &t->out, x, v) != 0)
                r->bound[v] = false;
    }
    for (uint32_t at = 1; at < PO_MAKEUP_SIZES; at++)
        if (!same_term(r, at, &mean))
            return fail(r, "its sum is another for other lengths");
    r->mean = mean;
    for (uint32_t x = 0; x < t->out.rank; x++) {
        uint32_t var;
        if (!open_variable(r, &t->out, x, &var) || (var != PO_NONE) != axis_is_open(r->out, x))
            return fail(r, "its output has an open axis that its sum does not move along");
        for (uint32_t y = x + 1; y < t->out.rank && var != PO_NONE; y++)
            if (po_index_coef(t, &t->out, y, var) != 0)
                return fail(r, "it writes a diagonal");
    }
    return PO_OK;
}

static po_status take_term(reading *r) {
    const po_term *t = r->t[0];
    double places = 0;
    bool used[PO_SUM_MAX_VARS] = {false};
    r->poles = 0;
    for (uint32_t i = 0; i < t->n_factors; i++)
        r->poles |= poles_of(r, i);
    r->out->poles |= r->poles;
    for (uint32_t i = 0; i < t->n_factors; i++) {
        bool strict = false;
        const po_makeup *f = makeup_of_factor(r, i, &strict);
        const po_index *at = &t->factor[i].at;
        for (uint32_t v = 0; v < t->n_vars; v++)
            for (uint32_t x = 0; x < at->rank; x++)
                used[v] |= is_zero_with(r, f, strict) && po_index_coef(t, at, x, v) != 0;
        if (!f) {
            for (uint32_t x = 0; x < at->rank; x++) {
                uint32_t var;
                if (!open_variable(r, at, x, &var) || var != PO_NONE)
                    return fail(r, "a table is as long as an open dim");
            }
            continue;
        }
        if (f->sized)
            return fail(r, "it computes with lengths");
        for (uint32_t x = 0; x < at->rank; x++)
            PO_TRY(take_axis(r, f, i, x, strict));
        po_makeup_inherit(r->part, r->out, f);
        places += f->places;
    }
    for (uint32_t v = 0; v < t->n_vars; v++) {
        places += r->bound[v];
        r->out->sums |= r->bound[v] && !r->mean;
        r->out->means |= r->bound[v] && r->mean;
        /* Else the length itself would be a factor. */
        if (r->bound[v] && !used[v] && !r->mean)
            return fail(r, "it adds up over an open axis what need not differ along it");
    }
    r->out->places = fmax(r->out->places, places);
    for (uint32_t x = 0; x < t->out.rank; x++) {
        bool ends = !axis_is_open(r->out, x);
        for (uint32_t i = 0; i < t->n_factors && !ends; i++)
            ends = ends_with(r, i, x);
        r->out->strict |= !ends;
    }
    return PO_OK;
}

po_status po_makeup_sum(po_piece *part, const po_node *node, uint32_t k,
                        const po_sum *const *sums) {
    reading r = {.part = part, .node = node};
    const po_value_id value = node->out[k];
    memcpy(r.sum, sums, sizeof r.sum);
    r.out = po_makeup_create(part, &part->open->values[value].type);
    if (!r.out || !same_operands(&r))
        return fail(&r, "its sum is another for other lengths");
    for (int pass = 0; pass < 2; pass++)
        for (uint32_t i = 0; i < r.sum[0]->n_terms; i++) {
            for (uint32_t at = 0; at < PO_MAKEUP_SIZES; at++)
                r.t[at] = &r.sum[at]->terms[i];
            PO_TRY(look_at_term(&r));
            if (pass == 0)
                split_axes(&r);
            else
                PO_TRY(take_term(&r));
        }
    part->makeup[value] = r.out;
    return PO_OK;
}

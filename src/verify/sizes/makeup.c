/* Makeups of nodes without an indexed sum: element-wise, along axes, of another shape; the rest by
 * their sums. */
#include "verify/sizes/makeup.h"

#include "ir/size.h"
#include "ops/indices.h"
#include "ops/rewrite.h"
#include "ops/sem/sem.h"

#include <math.h>
#include <stdio.h>

/* Reads of one value; more are not looked at. */
enum { MOST_READS = 4096, MOST_OUTPUTS = 64 };

po_status po_piece_fail(po_piece *part, const po_node *node, const char *why) {
    snprintf(part->why, sizeof part->why, "node '%.80s' (%.40s): %s", node->name, node->op_type,
             why);
    return PO_UNSUPPORTED;
}

/* --- makeups --- */

void po_makeup_axis(const po_makeup *makeup, uint32_t axis, uint32_t *from, uint32_t *to) {
    uint32_t i = 0;
    while (i < makeup->n_digits && makeup->digit[i].axis < axis)
        i++;
    *from = i;
    while (i < makeup->n_digits && makeup->digit[i].axis == axis)
        i++;
    *to = i;
}

void po_makeup_add_read(po_piece *part, po_makeup *makeup, po_makeup_read read) {
    for (uint32_t i = 0; i < makeup->n_reads; i++) {
        const po_makeup_read *r = &makeup->reads[i];
        if (r->leaf == read.leaf && r->leaf_axis == read.leaf_axis && r->digit == read.digit &&
            r->absent == read.absent && po_read_equal(r->read, read.read))
            return;
    }
    part->full |= makeup->n_reads == MOST_READS;
    if (!part->full)
        PO_PUSH(part->arena, makeup->reads, makeup->n_reads, makeup->cap_reads, read);
}

void po_makeup_add_tie(po_piece *part, po_makeup *makeup, po_makeup_tie tie) {
    for (uint32_t i = 0; i < makeup->n_ties; i++)
        if (makeup->ties[i].leaf == tie.leaf && makeup->ties[i].leaf_axis == tie.leaf_axis &&
            makeup->ties[i].place == tie.place && po_read_equal(makeup->ties[i].read, tie.read))
            return;
    PO_PUSH(part->arena, makeup->ties, makeup->n_ties, makeup->cap_ties, tie);
}

po_makeup *po_makeup_create(po_piece *part, const po_type *type) {
    if (type->kind != PO_TYPE_TENSOR || !type->has_rank || type->rank > PO_MAKEUP_DIGITS)
        return NULL;
    po_makeup *f = PO_NEW(part->arena, po_makeup);
    for (uint32_t i = 0; i < type->rank; i++) {
        if (type->dims[i].value < 0 && !type->dims[i].symbol)
            return NULL;
        f->digit[f->n_digits++] = (po_digit){i, type->dims[i]};
    }
    return f;
}

bool po_piece_is_known(const po_graph *open, po_value_id value) {
    const po_value *v = &open->values[value];
    if (v->constant)
        return true;
    const po_partial *p = v->type.rank <= 1 ? v->partial : NULL;
    for (uint32_t i = 0; p && i < p->n; i++)
        if (p->items[i].value < 0 && !p->items[i].symbol)
            return false;
    return p && !v->is_input;
}

/* Integers that follow from lengths, unless they are numbers. */
static bool is_sized(const po_value *v) {
    int64_t number;
    bool sized = false;
    for (uint32_t i = 0; !v->constant && v->partial && i < v->partial->n; i++)
        sized |= !po_size_number(v->partial->items[i], &number);
    return sized;
}

static po_makeup *makeup_of(po_piece *part, po_value_id value) {
    if (value == PO_NONE)
        return NULL;
    if (!part->makeup[value] && po_piece_is_known(part->open, value)) {
        po_makeup *f = po_makeup_create(part, &part->open->values[value].type);
        if (f) {
            f->strict = true;
            f->sized = is_sized(&part->open->values[value]);
            part->makeup[value] = f;
        }
    }
    return part->makeup[value];
}

bool po_makeup_tie_all(po_piece *part, po_makeup *out, const po_makeup *of, uint32_t from,
                       uint32_t to, int64_t place) {
    for (uint32_t i = 0; i < of->n_reads; i++) {
        const po_makeup_read *r = &of->reads[i];
        if (r->digit < from || r->digit >= to)
            continue;
        if (r->absent || (place != PO_EVERY_PLACE && !po_read_is_itself(r->read)))
            return false;
        po_makeup_add_tie(part, out, (po_makeup_tie){r->leaf, r->leaf_axis, place, r->read});
    }
    return true;
}

void po_makeup_inherit(po_piece *part, po_makeup *out, const po_makeup *of) {
    for (uint32_t i = 0; i < of->n_ties; i++)
        po_makeup_add_tie(part, out, of->ties[i]);
    out->needed = fmax(out->needed, of->needed);
    out->sums |= of->sums;
    out->means |= of->means;
    out->poles |= of->poles;
}

uint32_t po_makeup_leaves(const po_makeup *makeup) {
    uint32_t leaves = 0;
    for (uint32_t i = 0; i < makeup->n_reads; i++)
        leaves |= 1u << makeup->reads[i].leaf;
    for (uint32_t i = 0; i < makeup->n_ties; i++)
        leaves |= 1u << makeup->ties[i].leaf;
    return leaves;
}

void po_makeup_take(po_piece *part, po_makeup *out, uint32_t own, const po_makeup *of,
                    uint32_t from, uint32_t to) {
    for (uint32_t i = 0; i < of->n_reads; i++) {
        po_makeup_read r = of->reads[i];
        if (r.digit < from || r.digit >= to)
            continue;
        r.digit = own + (r.digit - from);
        po_makeup_add_read(part, out, r);
    }
}

bool po_makeup_put(po_piece *part, po_makeup *out, uint32_t axis, const po_makeup *of,
                   uint32_t from, uint32_t to) {
    if (out->n_digits + (to - from) > PO_MAKEUP_DIGITS)
        return false;
    po_makeup_take(part, out, out->n_digits, of, from, to);
    for (uint32_t i = from; i < to; i++)
        out->digit[out->n_digits++] = (po_digit){axis, of->digit[i].size};
    return true;
}

bool po_makeup_reads(const po_makeup *makeup, uint32_t from, uint32_t to) {
    for (uint32_t i = 0; i < makeup->n_reads; i++)
        if (makeup->reads[i].digit >= from && makeup->reads[i].digit < to)
            return true;
    return false;
}

bool po_makeup_same_digits(const po_makeup *a, uint32_t from, uint32_t to, const po_makeup *b,
                           uint32_t b_from, uint32_t b_to) {
    bool same = to - from == b_to - b_from;
    for (uint32_t i = 0; same && i < to - from; i++)
        same = po_dim_same(a->digit[from + i].size, b->digit[b_from + i].size);
    return same;
}

/* --- element by element --- */

/* The axis of the operand that goes along an axis of the output; -1: none, as it has one place
 * there. -2: it does not fit. */
static int axis_along(const po_type *out, uint32_t axis, const po_type *in) {
    const int at = (int)axis - (int)out->rank + (int)in->rank;
    if (at < 0 || (in->dims[at].value == 1 && out->dims[axis].value != 1))
        return -1;
    return po_dim_same(in->dims[at], out->dims[axis]) ? at : -2;
}

/* The output's digits: those of an operand that goes along, which all others have as well. */
static po_makeup *merged_digits(po_piece *part, const po_node *node, const po_type *type) {
    po_makeup *out = po_makeup_create(part, type);
    if (!out)
        return NULL;
    out->n_digits = 0;
    for (uint32_t axis = 0; axis < type->rank; axis++) {
        const uint32_t first = out->n_digits;
        bool taken = false;
        for (uint32_t k = 0; k < node->n_in; k++) {
            const po_makeup *f = makeup_of(part, node->in[k]);
            if (!f)
                continue;
            const int at = axis_along(type, axis, &part->open->values[node->in[k]].type);
            uint32_t from, to;
            if (at == -2)
                return NULL;
            if (at < 0)
                continue;
            po_makeup_axis(f, (uint32_t)at, &from, &to);
            if (taken && !po_makeup_same_digits(out, first, out->n_digits, f, from, to))
                return NULL;
            for (uint32_t i = from; i < to && !taken; i++) {
                if (out->n_digits == PO_MAKEUP_DIGITS)
                    return NULL;
                out->digit[out->n_digits++] = (po_digit){axis, f->digit[i].size};
            }
            taken = true;
        }
        if (!taken)
            return NULL;
    }
    return out;
}

/* What a function of elements is made of (docs/proof.md): its degree in what it is given, beside
 * symbols, and the degree of what these are symbols of. */
typedef struct degrees {
    double itself, argument;
} degrees;

static degrees degrees_of(const po_graph *graph, const po_node *node) {
    double power;
    switch (node->op) {
    case PO_OP_Pow:
        power = po_scalar_constant(graph, node->in[1], &power) ? fmax(4, fabs(power)) : 4;
        return (degrees){power, power};
    case PO_OP_Erf:
    case PO_OP_Tanh:
    case PO_OP_Sigmoid:
    case PO_OP_Exp:
    case PO_OP_Log:
    case PO_OP_Sqrt:
    case PO_OP_IsNaN:
    case PO_OP_Not:
        return (degrees){0, 1};
    case PO_OP_Relu:
    case PO_OP_Abs:
    case PO_OP_Clip:
    case PO_OP_Cast:
    case PO_OP_Div:
    case PO_OP_Mul:
    case PO_OP_Add:
    case PO_OP_Sub:
    case PO_OP_And:
    case PO_OP_Or:
    case PO_OP_Where:
    case PO_OP_Less:
    case PO_OP_LessOrEqual:
    case PO_OP_Greater:
    case PO_OP_GreaterOrEqual:
        return (degrees){1, 1};
    default:
        return (degrees){4, 4};
    }
}

/* Whether it divides by input k. */
static bool divides_by(const po_graph *graph, const po_node *node, uint32_t k) {
    double power;
    if (node->op == PO_OP_Pow)
        return k == 0 && !(po_scalar_constant(graph, node->in[1], &power) && power >= 0);
    return node->op == PO_OP_Reciprocal || (node->op == PO_OP_Div && k == 1);
}

/* Symbols, of which no law makes something of what they are of. */
static bool is_symbol(po_op_id op) {
    return op == PO_OP_Erf || op == PO_OP_Exp || op == PO_OP_Log || op == PO_OP_Sigmoid ||
           op == PO_OP_Tanh;
}

static po_status element_wise(po_piece *part, const po_node *node) {
    const po_type *type = &part->open->values[node->out[0]].type;
    po_makeup *out = type->has_rank ? merged_digits(part, node, type) : NULL;
    if (!out || node->n_out != 1)
        return po_piece_fail(part, node, "its operands are not seen to go along one another");
    for (uint32_t k = 0; k < node->n_in; k++) {
        const po_makeup *f = makeup_of(part, node->in[k]);
        if (!f)
            continue;
        if (f->sized)
            return po_piece_fail(part, node, "it computes with lengths");
        for (uint32_t axis = 0; axis < type->rank; axis++) {
            const int at = axis_along(type, axis, &part->open->values[node->in[k]].type);
            uint32_t from, to, own, end;
            po_makeup_axis(out, axis, &own, &end);
            if (at < 0)
                continue;
            po_makeup_axis(f, (uint32_t)at, &from, &to);
            po_makeup_take(part, out, own, f, from, to);
        }
        po_makeup_inherit(part, out, f);
        out->poles |= divides_by(part->open, node, k) ? po_makeup_leaves(f) : 0;
        out->places += f->places;
    }
    out->poles = is_symbol(node->op) ? 0 : out->poles;
    const degrees d = degrees_of(part->open, node);
    out->needed = fmax(out->needed, d.argument * out->places);
    out->places *= d.itself;
    out->strict = true;
    part->makeup[node->out[0]] = out;
    return PO_OK;
}

/* --- along axes --- */

static bool is_soft(po_op_id op) {
    return op == PO_OP_Softmax || op == PO_OP_LogSoftmax;
}

/* Sums of what need not be 0 without a leaf: of numbers the length would be a factor. Of a set
 * nothing is counted, and of exponentials it is seen that they differ (varies.c). */
static bool counts(const po_node *node, const po_makeup *f) {
    switch (node->op) {
    case PO_OP_ReduceL1:
    case PO_OP_ReduceL2:
    case PO_OP_ReduceLogSum:
    case PO_OP_ReduceSumSquare:
        return f->strict || (f->poles & po_makeup_leaves(f)) != 0;
    default:
        return false;
    }
}

/* Moves over each place of some axes by itself; along the others it takes all, in any order. */
static po_status over_axes(po_piece *part, const po_node *node, const bool *along, bool drops) {
    const po_makeup *f = makeup_of(part, node->in[0]);
    const po_type *to = &part->open->values[node->out[0]].type;
    const po_type *from_type = &part->open->values[node->in[0]].type;
    po_makeup *out = f ? po_makeup_create(part, to) : NULL;
    if (!out)
        return po_piece_fail(part, node, "its shape is not known");
    out->n_digits = 0;
    uint32_t axis = 0;
    for (uint32_t x = 0; x < from_type->rank; x++) {
        uint32_t from, end;
        po_makeup_axis(f, x, &from, &end);
        if (along[x] && !po_makeup_tie_all(part, out, f, from, end, PO_EVERY_PLACE))
            return po_piece_fail(part, node, "it takes all of an axis that is not read one by one");
        /* Of what is the same all along the axis the length would be a factor. */
        if (along[x] && from_type->dims[x].value < 0) {
            if (!po_makeup_reads(f, from, end) || counts(node, f))
                return po_piece_fail(part, node,
                                     "it takes what need not differ along an open axis");
            out->places++;
            out->sums = true;
        }
        if (along[x] && drops) {
            if (out->n_digits == PO_MAKEUP_DIGITS)
                return po_piece_fail(part, node, "too many axes");
            if (to->rank == from_type->rank)
                out->digit[out->n_digits++] = (po_digit){axis++, PO_DIM(1)};
            continue;
        }
        if (!po_makeup_put(part, out, axis, f, from, end))
            return po_piece_fail(part, node, "too many axes");
        axis++;
    }
    if (axis != to->rank)
        return po_piece_fail(part, node, "its shape is not that of its axes");
    po_makeup_inherit(part, out, f);
    /* A maximum is a symbol, exponentials are: their sum is of one place more. What norms divide by
     * is a symbol of squares. */
    out->needed = fmax(out->needed, 2 * (out->places + f->places));
    out->places += is_soft(node->op) ? 0 : f->places;
    /* Norms divide by what they are of. */
    out->poles = is_soft(node->op) ? 0 : out->poles | po_makeup_leaves(f);
    out->strict = true;
    part->makeup[node->out[0]] = out;
    return PO_OK;
}

static bool is_constant(const po_makeup *m) {
    bool constant = m && m->n_reads == 0 && m->n_ties == 0 && !m->sized;
    for (uint32_t i = 0; constant && i < m->n_digits; i++)
        constant = !po_digit_open(&m->digit[i]);
    return constant;
}

/* Softmax, norms: `axis` and what lies behind it. Open axes only where order does not matter. */
static po_status along_later(po_piece *part, const po_node *node) {
    const po_type *t = &part->open->values[node->in[0]].type;
    int64_t first = po_op_int(part->open, node, "axis");
    bool along[PO_MAX_RANK] = {false};
    if (!t->has_rank || !po_same_dims(part->open, node->in[0], node->out[0]))
        return po_piece_fail(part, node, "its shape is not known");
    first += first < 0 ? t->rank : 0;
    if (first < 0 || first >= t->rank || (node->n_out > 1 && node->out[1] != PO_NONE))
        return po_piece_fail(part, node, "it has an axis that is not known");
    for (uint32_t x = (uint32_t)first; x < t->rank; x++) {
        along[x] = true;
        if (t->dims[x].value < 0 && !is_soft(node->op))
            return po_piece_fail(part, node, "it works along an open axis");
    }
    for (uint32_t k = 1; k < node->n_in; k++)
        if (node->in[k] != PO_NONE && !is_constant(makeup_of(part, node->in[k])))
            return po_piece_fail(part, node, "its scale is no constant");
    return over_axes(part, node, along, false);
}

/* Those whose result is the same in any order, and that of the empty set, if any, too. */
static bool takes_a_set(po_op_id op) {
    return op == PO_OP_ReduceMax || op == PO_OP_ReduceMin || op == PO_OP_ReduceL1 ||
           op == PO_OP_ReduceL2 || op == PO_OP_ReduceLogSum || op == PO_OP_ReduceLogSumExp ||
           op == PO_OP_ReduceSumSquare;
}

static po_status reduces(po_piece *part, const po_node *node) {
    uint32_t axes[PO_MAX_RANK], n = po_reduced_axes(part->open, node, PO_MAX_RANK, axes);
    const po_type *t = &part->open->values[node->in[0]].type;
    bool along[PO_MAX_RANK] = {false};
    if (!t->has_rank || n == 0)
        return po_piece_fail(part, node, "its axes are not known");
    for (uint32_t i = 0; i < n; i++) {
        along[axes[i]] = true;
        if (t->dims[axes[i]].value < 0 && !takes_a_set(node->op))
            return po_piece_fail(part, node, "it works along an open axis");
    }
    return over_axes(part, node, along, true);
}

/* A maximum over the whole map. */
static po_status pools_all(po_piece *part, const po_node *node) {
    const po_type *t = &part->open->values[node->in[0]].type;
    bool along[PO_MAX_RANK] = {false};
    if (!t->has_rank || t->rank < 3)
        return po_piece_fail(part, node, "its axes are not known");
    for (uint32_t x = 2; x < t->rank; x++)
        along[x] = true;
    return over_axes(part, node, along, true);
}

static po_status reshapes(po_piece *part, const po_node *node) {
    const po_makeup *f = makeup_of(part, node->in[0]);
    po_makeup *out = f ? po_makeup_reshaped(part, f, &part->open->values[node->out[0]].type) : NULL;
    if (!out)
        return po_piece_fail(part, node, "its shape does not follow from that of its input");
    part->makeup[node->out[0]] = out;
    return PO_OK;
}

/* --- a node --- */

/* Sums of all outputs at all assignments; false: some have none. */
static po_status sums_of(po_piece *part, const po_node *node,
                         po_sum *sums[PO_MAKEUP_SIZES][MOST_OUTPUTS], bool *all) {
    *all = true;
    memset(sums, 0, sizeof(po_sum *) * PO_MAKEUP_SIZES * MOST_OUTPUTS);
    for (uint32_t i = 0; i < PO_MAKEUP_SIZES && *all; i++) {
        const po_graph *g = part->at[i];
        po_status status = po_sem_of(part->ctx, part->arena, g, node, sums[i]);
        *all = status == PO_OK;
        if (status != PO_OK && status != PO_UNSUPPORTED && status != PO_BAD_INPUT)
            return status;
        po_ctx_clear(part->ctx);
        for (uint32_t k = 0; k < node->n_out && *all; k++)
            *all = node->out[k] == PO_NONE || sums[i][k];
    }
    return PO_OK;
}

static po_status by_sums(po_piece *part, const po_node *node, bool *done) {
    po_sum *sums[PO_MAKEUP_SIZES][MOST_OUTPUTS];
    PO_TRY(sums_of(part, node, sums, done));
    for (uint32_t k = 0; k < node->n_out && *done; k++) {
        const po_sum *of[PO_MAKEUP_SIZES];
        for (uint32_t i = 0; i < PO_MAKEUP_SIZES; i++)
            of[i] = sums[i][k];
        if (node->out[k] != PO_NONE)
            PO_TRY(po_makeup_sum(part, node, k, of));
    }
    return PO_OK;
}

static po_status find_makeup(po_piece *part, const po_node *node) {
    bool done = false;
    if (po_piece_follows_places(part, node))
        return PO_OK;
    if (po_piece_passes(part->open, node) || po_takes_in_order(part->arena, part->open, node))
        return reshapes(part, node);
    if (node->n_out == 0 || node->n_out > MOST_OUTPUTS || node->n_in == 0 ||
        node->in[0] == PO_NONE || po_op_has(node->op, PO_OPF_CONTROL | PO_OPF_RANDOM))
        return po_piece_fail(part, node, "it is none that is followed");
    for (uint32_t k = 0; k < node->n_in; k++) {
        const po_makeup *f = makeup_of(part, node->in[k]);
        if (node->in[k] != PO_NONE && (!f || f->placed))
            return po_piece_fail(part, node, "an input is not followed");
    }
    if (po_op_has(node->op, PO_OPF_SHAPE_ONLY))
        return reshapes(part, node);
    if (!po_piece_follows_lengths(part, node) || !po_piece_pads_alike(part, node))
        return po_piece_fail(part, node, "what it does may be another for other lengths");
    PO_TRY(by_sums(part, node, &done));
    if (done)
        return PO_OK;
    if (po_op_has(node->op, PO_OPF_ELEMENTWISE))
        return element_wise(part, node);
    if (node->op == PO_OP_GlobalMaxPool)
        return pools_all(part, node);
    if (node->n_out == 1 && po_op_has(node->op, PO_OPF_REDUCES))
        return reduces(part, node);
    if (po_op_has(node->op, PO_OPF_WINDOW))
        return po_makeup_window(part, node);
    if (po_op_has(node->op, PO_OPF_ALONG))
        return along_later(part, node);
    return po_piece_fail(part, node, "it is none that is followed");
}

po_status po_piece_node(po_piece *part, const po_node *node) {
    PO_TRY(find_makeup(part, node));
    return part->full ? po_piece_fail(part, node, "it reads too many places") : PO_OK;
}

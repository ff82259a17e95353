/* Shape arithmetic: what is known of the contents of small integer tensors. */
#include "base/num.h"
#include "ir/size.h"
#include "ops/shape.h"

static bool counts_items(po_dtype dtype) {
    return dtype == PO_I64 || dtype == PO_I32 || dtype == PO_BOOL;
}

bool po_infer_items(const po_infer *infer, uint32_t k, uint32_t *n, const po_item **items) {
    const po_type *t = po_infer_tensor(infer, k);
    const po_tensor *c = k < infer->n_in ? infer->constant[k] : NULL;
    const po_partial *p = po_infer_partial(infer, k);
    if (!t || !counts_items(t->dtype) || !t->has_rank || t->rank > 1)
        return false;
    if (c && c->count > PO_PARTIAL_MAX)
        return false;
    if (!c && !p)
        return false;
    *n = c ? (uint32_t)c->count : p->n;
    po_item *out = PO_NEW_N(infer->arena, po_item, *n);
    for (uint32_t i = 0; i < *n; i++) {
        if (c)
            out[i] = (po_item){.known = true, .value = po_tensor_int(c, i)};
        else if (!(out[i].known = po_size_number(p->items[i], &out[i].value)))
            out[i].symbol = p->items[i].symbol;
        out[i].natural = out[i].symbol || (out[i].known && out[i].value >= 0);
    }
    *items = out;
    return true;
}

void po_infer_set_items(po_infer *infer, uint32_t k, uint32_t n, const po_item *items) {
    if (k >= infer->n_out || n > PO_PARTIAL_MAX)
        return;
    po_dtype dtype = infer->out[k].dtype;
    if (!counts_items(dtype))
        return;
    po_dim *dims = PO_NEW_N(infer->arena, po_dim, n);
    for (uint32_t i = 0; i < n; i++) {
        dims[i] = PO_DIM_UNKNOWN;
        const int64_t most = dtype == PO_I64 ? INT64_MAX : dtype == PO_I32 ? INT32_MAX : 1;
        const int64_t least = dtype == PO_BOOL ? 0 : -most;
        if (items[i].known && items[i].value >= least && items[i].value <= most)
            dims[i] = po_size_item(infer->arena, items[i].value);
        else if (!items[i].known)
            dims[i].symbol = items[i].symbol;
    }
    po_infer_set_partial(infer, k, n, dims);
}

static po_item number(int64_t v) {
    return (po_item){.known = true, .natural = v >= 0, .value = v};
}

static bool is(po_item a, int64_t v) {
    return a.known && a.value == v;
}

static bool same(po_item a, po_item b) {
    return !a.known && !b.known && a.symbol && b.symbol && strcmp(a.symbol, b.symbol) == 0;
}

static po_item both_known(po_op_id op, int64_t a, int64_t b) {
    int64_t v;
    switch (op) {
    case PO_OP_Add:
        return po_add_i64(a, b, &v) ? number(v) : (po_item){0};
    case PO_OP_Sub:
        return po_sub_i64(a, b, &v) ? number(v) : (po_item){0};
    case PO_OP_Mul:
        return po_mul_i64(a, b, &v) ? number(v) : (po_item){0};
    case PO_OP_Div:
        return a >= 0 && b > 0 ? number(a / b) : (po_item){0};
    case PO_OP_Mod:
        return a >= 0 && b > 0 ? number(a % b) : (po_item){0};
    case PO_OP_Max:
        return number(a > b ? a : b);
    case PO_OP_Min:
        return number(a < b ? a : b);
    case PO_OP_Equal:
        return number(a == b);
    case PO_OP_Greater:
        return number(a > b);
    case PO_OP_GreaterOrEqual:
        return number(a >= b);
    case PO_OP_Less:
        return number(a < b);
    case PO_OP_LessOrEqual:
        return number(a <= b);
    case PO_OP_And:
        return number(a && b);
    case PO_OP_Or:
        return number(a || b);
    case PO_OP_Xor:
        return number(!a != !b);
    default:
        return (po_item){0};
    }
}

static po_dim length(po_item a) {
    return a.known ? PO_DIM(a.value) : (po_dim){-1, a.symbol};
}

/* As an item: expressions that may be below 0 are unknown. */
static po_item item(po_arena *arena, po_dim d) {
    if (d.value >= 0)
        return number(d.value);
    return d.symbol && po_size_natural(arena, d) ? (po_item){.natural = true, .symbol = d.symbol}
                                                 : (po_item){0};
}

/* Of two lengths, at least one of them open; unknown where it may be below 0. */
static po_item expression(po_arena *arena, po_op_id op, po_item a, po_item b) {
    if (op == PO_OP_Add && (a.known ? b.symbol : a.symbol) && (a.known || b.known))
        return item(arena,
                    po_size_plus(arena, length(a.known ? b : a), a.known ? a.value : b.value));
    if (op == PO_OP_Sub && a.symbol && b.known && b.value > INT64_MIN)
        return item(arena, po_size_plus(arena, length(a), -b.value));
    if (!a.natural || !b.natural)
        return (po_item){0};
    switch (op) {
    case PO_OP_Add:
        return item(arena, po_size_add(arena, length(a), length(b)));
    case PO_OP_Sub:
        return item(arena, po_size_sub(arena, length(a), length(b)));
    case PO_OP_Mul:
        return item(arena, po_size_mul(arena, length(a), length(b)));
    case PO_OP_Div:
        return b.known ? item(arena, po_size_floor(arena, length(a), 0, b.value)) : (po_item){0};
    case PO_OP_Max:
        return item(arena, po_size_max(arena, length(a), length(b)));
    case PO_OP_Min:
        return item(arena, po_size_min(arena, length(a), length(b)));
    default:
        return (po_item){0};
    }
}

/* At least one of the two is a symbol or unknown. Symbols are lengths: at least 0. */
static po_item one_open(po_op_id op, po_item a, po_item b) {
    bool a_above = a.natural && b.known && b.value < 0,
         b_above = b.natural && a.known && a.value < 0;
    switch (op) {
    case PO_OP_Add:
        return is(a, 0) ? b : is(b, 0) ? a : (po_item){0};
    case PO_OP_Sub:
        return is(b, 0) ? a : same(a, b) ? number(0) : (po_item){0};
    case PO_OP_Mul:
        return is(a, 0) || is(b, 0) ? number(0) : is(a, 1) ? b : is(b, 1) ? a : (po_item){0};
    case PO_OP_Div:
        return is(b, 1) ? a : (po_item){0};
    case PO_OP_Mod:
        return is(b, 1) ? number(0) : (po_item){0};
    case PO_OP_Max:
        if (same(a, b) || (a.natural && b.known && b.value <= 0))
            return a;
        return b.natural && a.known && a.value <= 0 ? b : (po_item){0};
    case PO_OP_Min:
        if (same(a, b) || (b.natural && a.known && a.value <= 0))
            return a;
        return a.natural && b.known && b.value <= 0 ? b : (po_item){0};
    case PO_OP_Equal:
        return same(a, b) ? number(1) : a_above || b_above ? number(0) : (po_item){0};
    case PO_OP_Greater:
    case PO_OP_GreaterOrEqual:
        return a_above ? number(1) : b_above ? number(0) : (po_item){0};
    case PO_OP_Less:
    case PO_OP_LessOrEqual:
        return b_above ? number(1) : a_above ? number(0) : (po_item){0};
    case PO_OP_And:
        return is(a, 0) || is(b, 0) ? number(0) : (po_item){0};
    case PO_OP_Or:
        return is(a, 1) || is(b, 1) ? number(1) : (po_item){0};
    default:
        return (po_item){0};
    }
}

/* Length of two lists broadcast; false where they do not fit. */
static bool common_length(uint32_t a, uint32_t b, uint32_t *n) {
    *n = a == 1 ? b : a;
    return a == b || a == 1 || b == 1;
}

void po_contents_binary(po_infer *infer) {
    const po_item *a, *b;
    uint32_t na, nb, n;
    po_op_id op = infer->node->op;
    if ((op == PO_OP_And || op == PO_OP_Or || op == PO_OP_Xor) &&
        (po_infer_dtype(infer, 0) != PO_BOOL || po_infer_dtype(infer, 1) != PO_BOOL))
        return;
    if (!po_infer_items(infer, 0, &na, &a) || !po_infer_items(infer, 1, &nb, &b) ||
        !common_length(na, nb, &n))
        return;
    po_item *out = PO_NEW_N(infer->arena, po_item, n);
    for (uint32_t i = 0; i < n; i++) {
        po_item x = a[na == 1 ? 0 : i], y = b[nb == 1 ? 0 : i];
        out[i] = x.known && y.known ? both_known(op, x.value, y.value) : one_open(op, x, y);
        if (!out[i].known && !out[i].symbol && !(x.known && y.known))
            out[i] = expression(infer->arena, op, x, y);
    }
    po_infer_set_items(infer, 0, n, out);
}

void po_contents_where(po_infer *infer) {
    const po_item *c, *a, *b;
    uint32_t nc, na, nb, m, n;
    if (!po_infer_items(infer, 0, &nc, &c) || !po_infer_items(infer, 1, &na, &a) ||
        !po_infer_items(infer, 2, &nb, &b) || !common_length(na, nb, &m) ||
        !common_length(nc, m, &n))
        return;
    po_item *out = PO_NEW_N(infer->arena, po_item, n);
    for (uint32_t i = 0; i < n; i++) {
        po_item cond = c[nc == 1 ? 0 : i], x = a[na == 1 ? 0 : i], y = b[nb == 1 ? 0 : i];
        if (cond.known)
            out[i] = cond.value ? x : y;
        else if (same(x, y) || (x.known && is(y, x.value)))
            out[i] = x;
    }
    po_infer_set_items(infer, 0, n, out);
}

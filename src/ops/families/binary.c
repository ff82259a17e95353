/* Binary arithmetic, bit operations, comparisons and logic. */
#include "ops/broadcast.h"
#include "ops/families/rules.h"
#include "ops/shape.h"

#include <math.h>

/* --- shapes --- */

/* Until opset 6 the second input was broadcast into the first, and only where asked for. */
static po_status binary_type(po_infer *infer, po_dtype dtype) {
    const po_type *a = po_infer_tensor(infer, 0), *b = po_infer_tensor(infer, 1);
    const po_type *both[] = {a, b};
    po_type out = po_type_unranked(dtype);
    if (infer->opset < 7 && infer->opset > 0 && infer->node->domain[0] == '\0') {
        po_infer_set_like(infer, 0, dtype);
        return PO_OK;
    }
    PO_TRY(po_infer_broadcast(infer, 2, both, &out));
    infer->out[0] = out;
    return PO_OK;
}

po_status po_infer_binary(po_infer *infer) {
    po_dtype dtype = po_infer_dtype(infer, 0);
    if (dtype == PO_DT_NONE && infer->node->op != PO_OP_Pow && infer->node->op != PO_OP_BitShift)
        dtype = po_infer_dtype(infer, 1);
    PO_TRY(binary_type(infer, dtype));
    po_contents_binary(infer);
    return PO_OK;
}

po_status po_infer_compare(po_infer *infer) {
    PO_TRY(binary_type(infer, PO_BOOL));
    po_contents_binary(infer);
    return PO_OK;
}

/* --- reference --- */

/* Until opset 6: equal shapes, or with `broadcast` the second input within the first, from `axis`
 * on or at the end. */
static po_status begin_aligned(po_ref *ref, po_bcast *b) {
    const po_array *x = ref->in[0], *y = ref->in[1];
    const po_attr *axis = po_node_attr(ref->node, "axis");
    int64_t aligned[PO_MAX_RANK];
    uint32_t at = 0;
    bool has_axis = axis && axis->kind == PO_ATTR_INT;
    if (x->rank > PO_MAX_RANK || y->rank > x->rank)
        return PO_UNSUPPORTED;
    if (!po_op_int(ref->graph, ref->node, "broadcast")) {
        if (y->rank != x->rank || memcmp(x->dims, y->dims, x->rank * sizeof *x->dims) != 0)
            return PO_UNSUPPORTED;
        has_axis = false;
    }
    if (has_axis && (!po_axis_at(axis->u.i, x->rank, &at) || at + y->rank > x->rank))
        return PO_UNSUPPORTED;
    uint32_t rank = has_axis ? x->rank - at : y->rank;
    for (uint32_t i = 0; i < rank; i++)
        aligned[i] = i < y->rank ? y->dims[i] : 1;
    const uint32_t ranks[] = {x->rank, rank};
    const int64_t *dims[] = {x->dims, aligned};
    if (!po_bcast_dims(b, 2, ranks, dims) ||
        memcmp(b->out_dims, x->dims, x->rank * sizeof *x->dims) != 0)
        return PO_UNSUPPORTED;
    return PO_OK;
}

/* Prepares the iteration. */
static po_status begin(po_ref *ref, po_bcast *b) {
    if (ref->opset > 0 && ref->opset < 7 && ref->node->domain[0] == '\0')
        return begin_aligned(ref, b);
    return po_bcast_init(b, 2, ref->in) ? PO_OK : PO_UNSUPPORTED;
}

/* Loops over a row; a and b name the operands, the expression gives the result. */
#define ROWS(type, field_a, field_b, field_out, expression)                                        \
    while (po_bcast_next(&bc, &row)) {                                                             \
        const type *pa = x->field_a + row.from[0], *pb = y->field_b + row.from[1];                 \
        int64_t sa = row.step[0], sb = row.step[1];                                                \
        for (int64_t k = 0; k < row.n; k++) {                                                      \
            const type a = pa[k * sa], b = pb[k * sb];                                             \
            z->field_out[row.at + k] = (expression);                                               \
        }                                                                                          \
    }

static po_status floats(po_ref *ref, const po_array *x, const po_array *y, po_array *z,
                        po_bcast bc) {
    po_bcast_row row = {0};
    switch (ref->node->op) {
    case PO_OP_Add:
        ROWS(double, f, f, f, a + b)
        return PO_OK;
    case PO_OP_Sub:
        ROWS(double, f, f, f, a - b)
        return PO_OK;
    case PO_OP_Mul:
        ROWS(double, f, f, f, a *b)
        return PO_OK;
    case PO_OP_Div:
        ROWS(double, f, f, f, a / b)
        return PO_OK;
    case PO_OP_Pow:
        ROWS(double, f, f, f, pow(a, b))
        return PO_OK;
    case PO_OP_Mod:
        if (!po_op_int(ref->graph, ref->node, "fmod"))
            return PO_UNSUPPORTED;
        ROWS(double, f, f, f, fmod(a, b))
        return PO_OK;
    default:
        return PO_UNSUPPORTED;
    }
}

/* a^b for integers; false where it leaves 64 bits or b is negative. */
static bool int_pow(int64_t a, int64_t b, int64_t *out) {
    int64_t result = 1;
    if (b < 0)
        return false;
    for (; b; b >>= 1) {
        if ((b & 1) && !po_mul_i64(result, a, &result))
            return false;
        if (b > 1 && !po_mul_i64(a, a, &a))
            return false;
    }
    *out = result;
    return true;
}

static bool fits(po_dtype dtype, int64_t v) {
    uint32_t bits = po_dtype_bits(dtype);
    if (bits == 64)
        return po_dtype_class_of(dtype) != PO_CLASS_UNSIGNED || v >= 0;
    if (po_dtype_class_of(dtype) == PO_CLASS_UNSIGNED)
        return v >= 0 && v < (int64_t)1 << bits;
    return v >= -((int64_t)1 << (bits - 1)) && v < (int64_t)1 << (bits - 1);
}

/* One element of the operations that are not defined everywhere. False: not defined here. */
static bool partial_op(const po_ref *ref, po_dtype dtype, int64_t a, int64_t b, int64_t flag,
                       int64_t *out) {
    bool is_unsigned = po_dtype_class_of(dtype) == PO_CLASS_UNSIGNED;
    switch (ref->node->op) {
    case PO_OP_Div:
    case PO_OP_Mod:
        if (b == 0 || (!is_unsigned && a == INT64_MIN && b == -1))
            return false;
        if (is_unsigned) {
            uint64_t q =
                ref->node->op == PO_OP_Div ? (uint64_t)a / (uint64_t)b : (uint64_t)a % (uint64_t)b;
            *out = (int64_t)q;
            return true;
        }
        *out = ref->node->op == PO_OP_Div ? a / b : a % b;
        /* Python's sign, unless fmod asks for C's. */
        if (ref->node->op == PO_OP_Mod && !flag && *out != 0 && (*out < 0) != (b < 0))
            *out += b;
        return ref->node->op == PO_OP_Mod || fits(dtype, *out);
    case PO_OP_Pow:
        return int_pow(a, b, out) && fits(dtype, *out);
    case PO_OP_BitShift:
        if ((uint64_t)b >= po_dtype_bits(dtype))
            return false;
        *out = (int64_t)(flag ? (uint64_t)a << b : (uint64_t)a >> b);
        return true;
    default:
        return false;
    }
}

static po_status ints(po_ref *ref, const po_array *x, const po_array *y, po_array *z, po_bcast bc) {
    po_bcast_row row = {0};
    int64_t flag = 0;
    switch (ref->node->op) {
    case PO_OP_Add:
        ROWS(int64_t, i, i, i, (int64_t)((uint64_t)a + (uint64_t)b))
        return PO_OK;
    case PO_OP_Sub:
        ROWS(int64_t, i, i, i, (int64_t)((uint64_t)a - (uint64_t)b))
        return PO_OK;
    case PO_OP_Mul:
        ROWS(int64_t, i, i, i, (int64_t)((uint64_t)a * (uint64_t)b))
        return PO_OK;
    case PO_OP_BitwiseAnd:
    case PO_OP_And:
        ROWS(int64_t, i, i, i, a & b)
        return PO_OK;
    case PO_OP_BitwiseOr:
    case PO_OP_Or:
        ROWS(int64_t, i, i, i, a | b)
        return PO_OK;
    case PO_OP_BitwiseXor:
    case PO_OP_Xor:
        ROWS(int64_t, i, i, i, a ^ b)
        return PO_OK;
    case PO_OP_Mod:
        flag = po_op_int(ref->graph, ref->node, "fmod");
        break;
    case PO_OP_BitShift:
        flag = po_node_string_is(ref->node, "direction", "LEFT", "");
        break;
    default:
        break;
    }
    while (po_bcast_next(&bc, &row))
        for (int64_t k = 0; k < row.n; k++)
            if (!partial_op(ref, x->dtype, x->i[row.from[0] + k * row.step[0]],
                            y->i[row.from[1] + k * row.step[1]], flag, &z->i[row.at + k]))
                return PO_UNSUPPORTED;
    return PO_OK;
}

/* Pow may mix types: the result has the base's. */
static po_status mixed_pow(const po_array *x, const po_array *y, po_array *z, po_bcast bc) {
    po_bcast_row row = {0};
    while (po_bcast_next(&bc, &row))
        for (int64_t k = 0; k < row.n; k++) {
            int64_t i = row.from[0] + k * row.step[0], j = row.from[1] + k * row.step[1];
            if (x->f) {
                z->f[row.at + k] = pow(x->f[i], (double)y->i[j]);
                continue;
            }
            double v = pow((double)x->i[i], y->f[j]);
            if (!(v > -0x1p53 && v < 0x1p53) || !fits(x->dtype, (int64_t)v))
                return PO_UNSUPPORTED;
            z->i[row.at + k] = (int64_t)v;
        }
    return PO_OK;
}

po_status po_ref_binary(po_ref *ref) {
    const po_array *x = ref->in[0], *y = ref->in[1];
    bool pow_mixed = ref->node->op == PO_OP_Pow && x->dtype != y->dtype;
    po_bcast b;
    po_array *z;
    if (x->s || y->s || (x->dtype != y->dtype && !pow_mixed))
        return PO_UNSUPPORTED;
    PO_TRY(begin(ref, &b));
    PO_TRY(po_ref_out(ref, 0, x->dtype, b.out_rank, b.out_dims, &z));
    if (pow_mixed && (x->f == NULL) != (y->f == NULL))
        return mixed_pow(x, y, z, b);
    return x->f ? floats(ref, x, y, z, b) : ints(ref, x, y, z, b);
}

static bool strings_equal(po_bytes a, po_bytes b) {
    return a.size == b.size && (a.size == 0 || memcmp(a.data, b.data, a.size) == 0);
}

#define COMPARE(type, cast, field)                                                                 \
    switch (ref->node->op) {                                                                       \
    case PO_OP_Equal:                                                                              \
        ROWS(type, field, field, i, a == b)                                                        \
        return PO_OK;                                                                              \
    case PO_OP_Greater:                                                                            \
        ROWS(type, field, field, i, (cast)a > (cast)b)                                             \
        return PO_OK;                                                                              \
    case PO_OP_GreaterOrEqual:                                                                     \
        ROWS(type, field, field, i, (cast)a >= (cast)b)                                            \
        return PO_OK;                                                                              \
    case PO_OP_Less:                                                                               \
        ROWS(type, field, field, i, (cast)a < (cast)b)                                             \
        return PO_OK;                                                                              \
    case PO_OP_LessOrEqual:                                                                        \
        ROWS(type, field, field, i, (cast)a <= (cast)b)                                            \
        return PO_OK;                                                                              \
    default:                                                                                       \
        return PO_UNSUPPORTED;                                                                     \
    }

po_status po_ref_compare(po_ref *ref) {
    const po_array *x = ref->in[0], *y = ref->in[1];
    po_bcast bc;
    po_bcast_row row = {0};
    po_array *z;
    if (x->dtype != y->dtype)
        return PO_UNSUPPORTED;
    PO_TRY(begin(ref, &bc));
    PO_TRY(po_ref_out(ref, 0, PO_BOOL, bc.out_rank, bc.out_dims, &z));
    if (x->f)
        COMPARE(double, double, f)
    if (x->i && x->dtype == PO_U64)
        COMPARE(int64_t, uint64_t, i)
    if (x->i)
        COMPARE(int64_t, int64_t, i)
    if (ref->node->op != PO_OP_Equal)
        return PO_UNSUPPORTED;
    ROWS(po_bytes, s, s, i, strings_equal(a, b))
    return PO_OK;
}

po_status po_ref_logic(po_ref *ref) {
    const po_array *x = ref->in[0], *y = ref->in[1];
    po_bcast b;
    po_array *z;
    if (x->dtype != PO_BOOL || y->dtype != PO_BOOL)
        return PO_UNSUPPORTED;
    PO_TRY(begin(ref, &b));
    PO_TRY(po_ref_out(ref, 0, PO_BOOL, b.out_rank, b.out_dims, &z));
    return ints(ref, x, y, z, b);
}

/* --- attributes --- */

#define ALIGNED                                                                                    \
    {.name = "axis", .kind = PO_ATTR_INT, .since = 1, .until = 6}, {                               \
        .name = "broadcast", .kind = PO_ATTR_INT, .since = 1, .until = 6, .has_default = true,     \
        .i = 0                                                                                     \
    }

const po_attr_def po_attrs_broadcast[] = {ALIGNED, {0}};
const po_attr_def po_attrs_broadcast_consumed[] = {
    ALIGNED,
    {.name = "consumed_inputs", .kind = PO_ATTR_INTS, .since = 1, .until = 5},
    {0},
};
const po_attr_def po_attrs_mod[] = {
    {.name = "fmod", .kind = PO_ATTR_INT, .since = 10, .has_default = true, .i = 0},
    {0},
};
const po_attr_def po_attrs_bitshift[] = {
    {.name = "direction", .kind = PO_ATTR_STRING, .since = 11, .required = true},
    {0},
};

/* Integer and quantised products: MatMulInteger, ConvInteger, QLinearMatMul, QLinearConv. Each is
 * the float operator on operands less their zero points: sums of such products are exact in
 * doubles. */
#include "ops/broadcast.h"
#include "ops/families/rules.h"
#include "ops/shape.h"
#include "ops/work.h"

#include <math.h>

/* The node as its float counterpart: the attributes are the same, the inputs are two. */
static po_node counterpart(const po_node *node, bool conv) {
    po_node plain = *node;
    plain.op = conv ? PO_OP_Conv : PO_OP_MatMul;
    plain.op_type = conv ? "Conv" : "MatMul";
    plain.n_in = 2;
    return plain;
}

bool po_float_product(const po_node *node, po_node *plain, uint32_t *second) {
    switch ((po_op)node->op) {
    case PO_OP_ConvInteger:
    case PO_OP_MatMulInteger:
        *second = 1;
        break;
    case PO_OP_QLinearConv:
    case PO_OP_QLinearMatMul:
        *second = 3;
        break;
    default:
        return false;
    }
    *plain = counterpart(node, po_op_has(node->op, PO_OPF_WINDOW));
    return true;
}

/* --- shapes --- */

static po_status infer_product(po_infer *infer, bool conv, uint32_t second, po_dtype dtype) {
    const po_type *in[] = {infer->in[0], infer->in[second]};
    const po_tensor *constant[] = {NULL, NULL};
    const po_partial *partial[] = {NULL, NULL};
    po_node node = counterpart(infer->node, conv);
    po_infer plain = *infer;
    plain.node = &node;
    plain.n_in = 2;
    plain.in = in;
    plain.constant = constant;
    plain.partial = partial;
    PO_TRY(conv ? po_infer_conv(&plain) : po_infer_matmul(&plain));
    infer->out[0].dtype = dtype;
    return PO_OK;
}

po_status po_infer_matmulinteger(po_infer *infer) {
    return infer_product(infer, false, 1, PO_I32);
}

po_status po_infer_convinteger(po_infer *infer) {
    return infer_product(infer, true, 1, PO_I32);
}

po_status po_infer_qlinearmatmul(po_infer *infer) {
    return infer_product(infer, false, 3, po_infer_dtype(infer, 7));
}

po_status po_infer_qlinearconv(po_infer *infer) {
    return infer_product(infer, true, 3, po_infer_dtype(infer, 7));
}

/* --- reference --- */

/* A vector of values for one axis, seen with the rank that broadcasts along it. */
static const po_array *along_axis(po_ref *ref, const po_array *v, uint32_t rank, uint32_t axis) {
    int64_t dims[PO_MAX_RANK];
    if (v->rank != 1 || v->count == 1 || axis >= rank || rank > PO_MAX_RANK)
        return v;
    for (uint32_t i = 0; i < rank; i++)
        dims[i] = i == axis ? v->count : 1;
    return po_array_view(ref->arena, v, rank, dims);
}

/* x less its zero point, as doubles. */
static po_status centred(po_ref *ref, const po_array *x, const po_array *zero, uint32_t axis,
                         const po_array **out) {
    const po_array *none = &(po_array){.count = 1, .i = (int64_t[]){0}};
    const po_array *both[] = {x, zero ? along_axis(ref, zero, x->rank, axis) : none};
    po_bcast b;
    po_bcast_row row = {0};
    po_array *y;
    if (!x || !x->i || !both[1]->i || !po_bcast_init(&b, 2, both) || b.out_rank != x->rank ||
        b.count != x->count)
        return PO_UNSUPPORTED;
    PO_TRY(po_ref_make(ref, PO_F64, x->rank, x->dims, &y));
    while (po_bcast_next(&b, &row))
        for (int64_t k = 0; k < row.n; k++)
            y->f[row.at + k] = (double)x->i[row.from[0] + k * row.step[0]] -
                               (double)both[1]->i[row.from[1] + k * row.step[1]];
    *out = y;
    return PO_OK;
}

/* The product of both centred operands. Zero points of vectors run along the rows of the first
 * operand and the columns of the second; of convolutions along the output channels. */
static po_status product(po_ref *ref, bool conv, uint32_t second, const po_array *zero_a,
                         const po_array *zero_b, po_array **out) {
    const po_array *a = ref->in[0], *b = ref->in[second], *in[2];
    if (!a || !b || a->rank < 1 || b->rank < 1)
        return PO_UNSUPPORTED;
    PO_TRY(centred(ref, a, zero_a, a->rank < 2 ? 0 : a->rank - 2, &in[0]));
    PO_TRY(centred(ref, b, zero_b, conv ? 0 : b->rank - 1, &in[1]));
    po_node node = counterpart(ref->node, conv);
    po_ref plain = *ref;
    plain.node = &node;
    plain.n_in = 2;
    plain.in = in;
    plain.out = out;
    *out = NULL;
    PO_TRY(conv ? po_ref_conv(&plain) : po_ref_matmul(&plain));
    return *out ? PO_OK : PO_UNSUPPORTED;
}

static po_status integer_product(po_ref *ref, bool conv) {
    po_array *p, *y;
    PO_TRY(product(ref, conv, 1, po_ref_in(ref, 2), po_ref_in(ref, 3), &p));
    PO_TRY(po_ref_out(ref, 0, PO_I32, p->rank, p->dims, &y));
    for (int64_t k = 0; k < p->count; k++) {
        if (!(fabs(p->f[k]) < 0x1p53))
            return PO_UNSUPPORTED;
        y->i[k] = (int64_t)p->f[k];
    }
    return PO_OK;
}

po_status po_ref_matmulinteger(po_ref *ref) {
    return integer_product(ref, false);
}

po_status po_ref_convinteger(po_ref *ref) {
    return integer_product(ref, true);
}

/* y = round(p * scale_a * scale_b / scale_y) + zero_y, saturated. The second operand's scale may be
 * a vector along `axis` of the result; `bias` likewise, in units of the product. */
static po_status requantise(po_ref *ref, const po_array *p, uint32_t axis, const po_array *bias) {
    const po_array *scale_a = ref->in[1], *scale_b = ref->in[4], *scale_y = ref->in[6];
    const po_array *zero = ref->in[7];
    po_dtype_class class = po_dtype_class_of(zero->dtype);
    po_array *y;
    if (!scale_a->f || !scale_b->f || !scale_y->f || !zero->i || scale_a->count != 1 ||
        scale_y->count != 1 || zero->count != 1 || axis >= p->rank ||
        po_dtype_bits(zero->dtype) > 16)
        return PO_UNSUPPORTED;
    int64_t n = p->dims[axis], inner = po_product(p->dims, axis + 1, p->rank);
    if ((scale_b->count != 1 && scale_b->count != n) || (bias && (!bias->i || bias->count != n)))
        return PO_UNSUPPORTED;
    PO_TRY(po_ref_out(ref, 0, zero->dtype, p->rank, p->dims, &y));
    int bits = (int)po_dtype_bits(zero->dtype);
    double low = class == PO_CLASS_SIGNED ? -ldexp(1, bits - 1) : 0;
    double high = ldexp(1, class == PO_CLASS_SIGNED ? bits - 1 : bits) - 1;
    for (int64_t k = 0; k < p->count; k++) {
        int64_t at = k / inner % n;
        double v = p->f[k] + (bias ? (double)bias->i[at] : 0);
        v *= scale_a->f[0] * scale_b->f[scale_b->count == 1 ? 0 : at] / scale_y->f[0];
        v = nearbyint(v) + (double)zero->i[0];
        if (isnan(v))
            return PO_UNSUPPORTED;
        y->i[k] = (int64_t)(v < low ? low : v > high ? high : v);
    }
    return PO_OK;
}

po_status po_ref_qlinearmatmul(po_ref *ref) {
    po_array *p;
    PO_TRY(product(ref, false, 3, ref->in[2], ref->in[5], &p));
    return requantise(ref, p, p->rank ? p->rank - 1 : 0, NULL);
}

po_status po_ref_qlinearconv(po_ref *ref) {
    po_array *p;
    PO_TRY(product(ref, true, 3, ref->in[2], ref->in[5], &p));
    return requantise(ref, p, 1, po_ref_in(ref, 8));
}

const po_attr_def po_attrs_qlinearconv[] = {
    {.name = "auto_pad", .kind = PO_ATTR_STRING, .since = 10, .has_default = true, .s = "NOTSET"},
    {.name = "dilations", .kind = PO_ATTR_INTS, .since = 10},
    {.name = "group", .kind = PO_ATTR_INT, .since = 10, .has_default = true, .i = 1},
    {.name = "kernel_shape", .kind = PO_ATTR_INTS, .since = 10},
    {.name = "pads", .kind = PO_ATTR_INTS, .since = 10},
    {.name = "strides", .kind = PO_ATTR_INTS, .since = 10},
    {0},
};

/* Cast, CastLike, BitCast. What C or the runtimes leave undefined (a float outside of the integer
 * type, NaN to an integer) is not evaluated. */
#include "ops/families/rules.h"
#include "ops/ref.h"
#include "ops/shape.h"

#include <ctype.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* --- target type --- */

/* Until opset 5 the type was given by its name. */
static po_dtype named(po_bytes name) {
    static const char *const names[PO_DT_COUNT] = {
        [PO_F32] = "FLOAT",  [PO_U8] = "UINT8",    [PO_I8] = "INT8",    [PO_U16] = "UINT16",
        [PO_I16] = "INT16",  [PO_I32] = "INT32",   [PO_I64] = "INT64",  [PO_STR] = "STRING",
        [PO_BOOL] = "BOOL",  [PO_F16] = "FLOAT16", [PO_F64] = "DOUBLE", [PO_U32] = "UINT32",
        [PO_U64] = "UINT64",
    };
    for (unsigned i = 1; i < PO_DT_COUNT; i++)
        if (names[i] && strlen(names[i]) == name.size &&
            memcmp(names[i], name.data, name.size) == 0)
            return (po_dtype)i;
    return PO_DT_NONE;
}

static po_dtype target(const po_graph *graph, const po_node *node) {
    const po_attr *a = po_node_attr(node, "to");
    if (a && a->kind == PO_ATTR_STRING)
        return named(a->u.s);
    int64_t to = po_op_int(graph, node, "to");
    return to > 0 && to < PO_DT_COUNT ? (po_dtype)to : PO_DT_NONE;
}

po_status po_infer_cast(po_infer *infer) {
    const po_item *items;
    uint32_t n;
    po_dtype to = target(infer->graph, infer->node), from = po_infer_dtype(infer, 0);
    if (to == PO_DT_NONE)
        return po_rule_bad(infer->ctx, infer->node, "attribute 'to' names no element type");
    if (infer->node->op == PO_OP_BitCast && from && po_dtype_bits(from) != po_dtype_bits(to))
        return po_rule_bad(infer->ctx, infer->node, "elements of %s and %s differ in width",
                           po_dtype_name(from), po_dtype_name(to));
    po_infer_set_like(infer, 0, to);
    if (infer->out[0].dtype != PO_BOOL && infer->node->op == PO_OP_Cast &&
        po_infer_items(infer, 0, &n, &items))
        po_infer_set_items(infer, 0, n, items);
    return PO_OK;
}

po_status po_infer_castlike(po_infer *infer) {
    po_infer_set_like(infer, 0, po_infer_dtype(infer, 1));
    return PO_OK;
}

/* --- floats of 8 bits or less --- */

static double largest(po_dtype dtype) {
    switch (dtype) {
    case PO_F8E4M3FN:
        return 448;
    case PO_F8E4M3FNUZ:
        return 240;
    case PO_F8E5M2:
    case PO_F8E5M2FNUZ:
        return 57344;
    case PO_F4E2M1:
        return 6;
    default:
        return INFINITY;
    }
}

double po_narrow_float(po_dtype dtype, double value, bool saturate) {
    double top = largest(dtype);
    if ((saturate || dtype == PO_F4E2M1) && fabs(value) > top)
        value = copysign(top, value);
    return po_round_float(dtype, value);
}

/* A power of two between 2^-127 and 2^127, or NaN. */
static double to_e8m0(double x, po_bytes mode, bool saturate) {
    int e;
    if (isnan(x) || x < 0)
        return NAN;
    if (x == 0)
        return 0x1p-127;
    double m = isinf(x) ? 1 : frexp(x, &e); /* x = m * 2^e, m in [0.5, 1) */
    if (isinf(x))
        e = 1024;
    bool nearest = mode.size == 7, up = mode.size == 2; /* "nearest", "up", "down" */
    if (m == 0.5 || (!up && !nearest) || (nearest && m < 0.75))
        e--;
    if (e > 127)
        return saturate ? 0x1p127 : NAN;
    return ldexp(1.0, e < -127 ? -127 : e);
}

/* --- conversions --- */

typedef struct cast {
    po_dtype to;
    bool saturate;
    po_bytes mode;
} cast;

static po_status float_to_int(const po_array *x, po_array *y) {
    uint32_t bits = po_dtype_bits(y->dtype);
    bool is_signed = po_dtype_class_of(y->dtype) == PO_CLASS_SIGNED;
    double low = is_signed ? -ldexp(1.0, (int)bits - 1) : 0;
    double high = ldexp(1.0, (int)bits - is_signed);
    for (int64_t k = 0; k < x->count; k++) {
        double v = trunc(x->f[k]);
        if (!(v >= low && v < high))
            return PO_UNSUPPORTED;
        y->i[k] = v >= 0x1p63 ? (int64_t)(uint64_t)v : (int64_t)v;
    }
    return PO_OK;
}

static po_status from_float(const cast *c, const po_array *x, po_array *y) {
    if (y->s)
        return PO_UNSUPPORTED; /* runtimes print differently */
    if (y->dtype == PO_BOOL) {
        for (int64_t k = 0; k < x->count; k++)
            y->i[k] = x->f[k] != 0;
        return PO_OK;
    }
    if (y->i)
        return float_to_int(x, y);
    for (int64_t k = 0; k < x->count && c->to == PO_F4E2M1; k++)
        if (isnan(x->f[k]))
            return PO_UNSUPPORTED; /* the type has no NaN */
    for (int64_t k = 0; k < x->count; k++)
        y->f[k] = c->to == PO_F8E8M0         ? to_e8m0(x->f[k], c->mode, c->saturate)
                  : po_dtype_bits(c->to) > 8 ? x->f[k]
                                             : po_narrow_float(c->to, x->f[k], c->saturate);
    return PO_OK;
}

static po_status from_int(po_ref *ref, const cast *c, const po_array *x, po_array *y) {
    bool is_u64 = x->dtype == PO_U64;
    for (int64_t k = 0; k < x->count; k++) {
        int64_t v = x->i[k];
        if (y->s) {
            char *text = is_u64 ? po_arena_printf(ref->arena, "%llu", (unsigned long long)v)
                                : po_arena_printf(ref->arena, "%lld", (long long)v);
            if (x->dtype == PO_BOOL)
                return PO_UNSUPPORTED;
            y->s[k] = (po_bytes){text, strlen(text)};
        } else if (y->i) {
            y->i[k] = y->dtype == PO_BOOL ? v != 0 : v;
        } else {
            /* Straight to the type: by way of a double there would be two roundings. */
            bool once = po_dtype_bits(c->to) < 64;
            double wide = is_u64 ? (double)(uint64_t)v : (double)v;
            y->f[k] = once ? (double)(is_u64 ? (float)(uint64_t)v : (float)v) : wide;
            if (c->to == PO_F8E8M0)
                y->f[k] = to_e8m0(y->f[k], c->mode, c->saturate);
            else if (po_dtype_bits(c->to) <= 8)
                y->f[k] = po_narrow_float(c->to, y->f[k], c->saturate);
        }
    }
    return PO_OK;
}

static po_status from_string(const po_array *x, po_array *y) {
    locale_t plain = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    po_status status = plain ? PO_OK : PO_UNSUPPORTED;
    for (int64_t k = 0; k < x->count && status == PO_OK; k++) {
        char text[64], *end = text;
        if (x->s[k].size == 0 || x->s[k].size >= sizeof text ||
            isspace((unsigned char)x->s[k].data[0])) {
            status = PO_UNSUPPORTED;
            break;
        }
        memcpy(text, x->s[k].data, x->s[k].size);
        text[x->s[k].size] = '\0';
        if (y->f)
            y->f[k] = y->dtype == PO_F64 ? strtod_l(text, &end, plain)
                                         : (double)strtof_l(text, &end, plain);
        else
            y->i[k] = strtoll_l(text, &end, 10, plain);
        if (*end != '\0' || end == text)
            status = PO_UNSUPPORTED;
    }
    if (plain)
        freelocale(plain);
    return status;
}

po_status po_ref_cast(po_ref *ref) {
    const po_array *x = ref->in[0];
    cast c = {.to = ref->node->op == PO_OP_CastLike ? ref->in[1]->dtype
                                                    : target(ref->graph, ref->node),
              .saturate = po_op_int(ref->graph, ref->node, "saturate") != 0 || ref->opset < 19,
              .mode = po_op_string(ref->graph, ref->node, "round_mode")};
    po_array *y;
    if (c.to == x->dtype) {
        ref->out[0] = po_array_view(ref->arena, x, x->rank, x->dims);
        return PO_OK;
    }
    if (po_dtype_class_of(c.to) == PO_CLASS_NONE && c.to != PO_STR)
        return PO_UNSUPPORTED;
    PO_TRY(po_ref_out(ref, 0, c.to, x->rank, x->dims, &y));
    if (x->f)
        return from_float(&c, x, y);
    if (x->i)
        return from_int(ref, &c, x, y);
    return y->i && y->dtype == PO_BOOL ? PO_UNSUPPORTED : from_string(x, y);
}

po_status po_ref_bitcast(po_ref *ref) {
    const po_array *x = ref->in[0];
    po_dtype to = target(ref->graph, ref->node);
    uint32_t bits = po_dtype_bits(to);
    po_array *y;
    if (x->s || bits == 0 || bits != po_dtype_bits(x->dtype) ||
        po_dtype_class_of(to) == PO_CLASS_NONE)
        return PO_UNSUPPORTED;
    PO_TRY(po_ref_out(ref, 0, to, x->rank, x->dims, &y));
    for (int64_t k = 0; k < x->count; k++) {
        uint64_t word = x->f ? po_encode_float(x->dtype, x->f[k]) : (uint64_t)x->i[k];
        if (y->f)
            y->f[k] = po_decode_float(to, word);
        else
            y->i[k] = (int64_t)word;
    }
    return PO_OK;
}

/* --- attributes --- */

#define ROUNDING                                                                                   \
    {.name = "round_mode", .kind = PO_ATTR_STRING, .since = 24, .has_default = true, .s = "up"}, { \
        .name = "saturate", .kind = PO_ATTR_INT, .since = 19, .has_default = true, .i = 1          \
    }

const po_attr_def po_attrs_cast[] = {
    {.name = "to", .kind = PO_ATTR_STRING, .since = 1, .until = 5, .required = true},
    {.name = "to", .kind = PO_ATTR_INT, .since = 6, .required = true},
    ROUNDING,
    {0},
};
const po_attr_def po_attrs_castlike[] = {ROUNDING, {0}};
const po_attr_def po_attrs_bitcast[] = {
    {.name = "to", .kind = PO_ATTR_INT, .since = 26, .required = true},
    {0},
};

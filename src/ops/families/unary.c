/* Unary mathematics and activations: one table of scalar functions. */
#include "ops/families/rules.h"
#include "ops/ref.h"
#include "ops/shape.h"

#include <math.h>

/* p: the float attributes that the table names, in order. */
typedef double (*float_fn)(double x, const double *p);

static double f_abs(double x, const double *p) {
    (void)p;
    return fabs(x);
}
#define PLAIN(name, expression)                                                                    \
    static double f_##name(double x, const double *p) {                                            \
        (void)p;                                                                                   \
        return expression;                                                                         \
    }
PLAIN(acos, acos(x))
PLAIN(acosh, acosh(x))
PLAIN(asin, asin(x))
PLAIN(asinh, asinh(x))
PLAIN(atan, atan(x))
PLAIN(atanh, atanh(x))
PLAIN(ceil, ceil(x))
PLAIN(cos, cos(x))
PLAIN(cosh, cosh(x))
PLAIN(erf, erf(x))
PLAIN(exp, exp(x))
PLAIN(floor, floor(x))
PLAIN(log, log(x))
PLAIN(neg, -x)
PLAIN(reciprocal, 1.0 / x)
PLAIN(round, nearbyint(x)) /* half to even, the default rounding mode */
PLAIN(sign, isnan(x) ? x : (double)((x > 0) - (x < 0)))
PLAIN(sin, sin(x))
PLAIN(sinh, sinh(x))
PLAIN(sqrt, sqrt(x))
PLAIN(tan, tan(x))
PLAIN(tanh, tanh(x))
PLAIN(relu, x < 0 ? 0.0 : x)
PLAIN(sigmoid, 1.0 / (1.0 + exp(-x)))
PLAIN(softplus, x > 0 ? x + log1p(exp(-x)) : log1p(exp(x)))
PLAIN(softsign, x / (1.0 + fabs(x)))
PLAIN(hardswish, x *fmax(0.0, fmin(1.0, x / 6.0 + 0.5)))
PLAIN(mish, x *tanh(f_softplus(x, NULL)))
#undef PLAIN

static double f_celu(double x, const double *p) {
    return fmax(0.0, x) + fmin(0.0, p[0] * expm1(x / p[0]));
}
static double f_elu(double x, const double *p) {
    return x < 0 ? p[0] * expm1(x) : x;
}
static double f_selu(double x, const double *p) {
    return p[1] * (x > 0 ? x : p[0] * expm1(x));
}
static double f_hardsigmoid(double x, const double *p) {
    return fmax(0.0, fmin(1.0, p[0] * x + p[1]));
}
static double f_leakyrelu(double x, const double *p) {
    return x < 0 ? p[0] * x : x;
}
static double f_shrink(double x, const double *p) {
    return x < -p[1] ? x + p[0] : x > p[1] ? x - p[0] : 0.0;
}
static double f_swish(double x, const double *p) {
    return x / (1.0 + exp(-p[0] * x));
}
static double f_thresholdedrelu(double x, const double *p) {
    return x > p[0] ? x : 0.0;
}
/* p[0]: 1 for the tanh form. */
static double f_gelu(double x, const double *p) {
    if (p[0] != 0)
        return 0.5 * x * (1.0 + tanh(sqrt(2.0 / M_PI) * (x + 0.044715 * x * x * x)));
    return 0.5 * x * (1.0 + erf(x / sqrt(2.0)));
}
static double f_ms_gelu(double x, const double *p) {
    (void)p;
    return 0.5 * x * (1.0 + erf(x / sqrt(2.0)));
}
static double f_quickgelu(double x, const double *p) {
    return x / (1.0 + exp(-p[0] * x));
}

/* Integers: arithmetic as unsigned numbers, which wraps. */
static int64_t i_abs(int64_t x) {
    return x < 0 ? (int64_t)(0 - (uint64_t)x) : x;
}
static int64_t i_neg(int64_t x) {
    return (int64_t)(0 - (uint64_t)x);
}
static int64_t i_sign(int64_t x) {
    return (x > 0) - (x < 0);
}
static int64_t i_relu(int64_t x) {
    return x < 0 ? 0 : x;
}
static int64_t i_not(int64_t x) {
    return ~x;
}
static int64_t i_lnot(int64_t x) {
    return x == 0;
}
static int64_t i_same(int64_t x) {
    return x;
}

typedef struct unary_row {
    float_fn f;
    int64_t (*i)(int64_t x);
    int64_t (*u)(int64_t x); /* for unsigned types; NULL: as i */
    const char *attrs[2];
} unary_row;

static int64_t u_sign(int64_t x) {
    return x != 0;
}

static const unary_row table[PO_OP_COUNT] = {
    [PO_OP_Abs] = {f_abs, i_abs, i_same, {0}},
    [PO_OP_Acos] = {.f = f_acos},
    [PO_OP_Acosh] = {.f = f_acosh},
    [PO_OP_Asin] = {.f = f_asin},
    [PO_OP_Asinh] = {.f = f_asinh},
    [PO_OP_Atan] = {.f = f_atan},
    [PO_OP_Atanh] = {.f = f_atanh},
    [PO_OP_BitwiseNot] = {.i = i_not},
    [PO_OP_Ceil] = {.f = f_ceil},
    [PO_OP_Celu] = {.f = f_celu, .attrs = {"alpha"}},
    [PO_OP_Cos] = {.f = f_cos},
    [PO_OP_Cosh] = {.f = f_cosh},
    [PO_OP_Elu] = {.f = f_elu, .attrs = {"alpha"}},
    [PO_OP_Erf] = {.f = f_erf},
    [PO_OP_Exp] = {.f = f_exp},
    [PO_OP_Floor] = {.f = f_floor},
    [PO_OP_Gelu] = {.f = f_gelu},
    [PO_OP_HardSigmoid] = {.f = f_hardsigmoid, .attrs = {"alpha", "beta"}},
    [PO_OP_HardSwish] = {.f = f_hardswish},
    [PO_OP_LeakyRelu] = {.f = f_leakyrelu, .attrs = {"alpha"}},
    [PO_OP_Log] = {.f = f_log},
    [PO_OP_Mish] = {.f = f_mish},
    [PO_OP_Neg] = {f_neg, i_neg, NULL, {0}},
    [PO_OP_Not] = {.i = i_lnot},
    [PO_OP_Reciprocal] = {.f = f_reciprocal},
    [PO_OP_Relu] = {f_relu, i_relu, i_same, {0}},
    [PO_OP_Round] = {.f = f_round},
    [PO_OP_Selu] = {.f = f_selu, .attrs = {"alpha", "gamma"}},
    [PO_OP_Shrink] = {.f = f_shrink, .attrs = {"bias", "lambd"}},
    [PO_OP_Sigmoid] = {.f = f_sigmoid},
    [PO_OP_Sign] = {f_sign, i_sign, u_sign, {0}},
    [PO_OP_Sin] = {.f = f_sin},
    [PO_OP_Sinh] = {.f = f_sinh},
    [PO_OP_Softplus] = {.f = f_softplus},
    [PO_OP_Softsign] = {.f = f_softsign},
    [PO_OP_Sqrt] = {.f = f_sqrt},
    [PO_OP_Swish] = {.f = f_swish, .attrs = {"alpha"}},
    [PO_OP_Tan] = {.f = f_tan},
    [PO_OP_Tanh] = {.f = f_tanh},
    [PO_OP_ThresholdedRelu] = {.f = f_thresholdedrelu, .attrs = {"alpha"}},
    [PO_OP_MS_Gelu] = {.f = f_ms_gelu},
    [PO_OP_MS_QuickGelu] = {.f = f_quickgelu, .attrs = {"alpha"}},
};

po_status po_infer_unary(po_infer *infer) {
    po_infer_set_like(infer, 0, po_infer_dtype(infer, 0));
    return PO_OK;
}

po_status po_infer_sign_change(po_infer *infer) {
    const po_item *items;
    uint32_t n;
    po_infer_unary(infer);
    if (!po_infer_items(infer, 0, &n, &items))
        return PO_OK;
    po_item *out = PO_NEW_N(infer->arena, po_item, n);
    for (uint32_t i = 0; i < n; i++) {
        bool flip = infer->node->op == PO_OP_Neg || items[i].value < 0;
        out[i] = flip ? (po_item){0} : items[i];
        if (items[i].known && flip && items[i].value != INT64_MIN)
            out[i] = (po_item){.known = true, .value = -items[i].value};
        else if (!items[i].known && infer->node->op == PO_OP_Abs)
            out[i].symbol = items[i].symbol; /* a length is its own magnitude */
    }
    po_infer_set_items(infer, 0, n, out);
    return PO_OK;
}

po_status po_infer_unary_bool(po_infer *infer) {
    po_infer_set_like(infer, 0, PO_BOOL);
    return PO_OK;
}

po_status po_ref_unary(po_ref *ref) {
    const po_array *x = ref->in[0];
    const unary_row *row = &table[ref->node->op];
    int64_t (*fn)(int64_t) =
        row->u && po_dtype_class_of(x->dtype) == PO_CLASS_UNSIGNED ? row->u : row->i;
    double p[2] = {0, 0};
    po_array *y;
    if (x->f ? !row->f : !fn || x->s)
        return PO_UNSUPPORTED;
    for (int k = 0; k < 2 && row->attrs[k]; k++)
        p[k] = (double)po_op_float(ref->graph, ref->node, row->attrs[k]);
    if (ref->node->op == PO_OP_Gelu) {
        po_bytes form = po_op_string(ref->graph, ref->node, "approximate");
        p[0] = form.size == 4 && memcmp(form.data, "tanh", 4) == 0;
    }
    PO_TRY(po_ref_out(ref, 0, x->dtype, x->rank, x->dims, &y));
    if (x->f)
        for (int64_t k = 0; k < x->count; k++)
            y->f[k] = row->f(x->f[k], p);
    else
        for (int64_t k = 0; k < x->count; k++)
            y->i[k] = fn(x->i[k]);
    return PO_OK;
}

po_status po_ref_unary_bool(po_ref *ref) {
    const po_array *x = ref->in[0];
    bool nan = ref->node->op == PO_OP_IsNaN;
    bool negative = nan || po_op_int(ref->graph, ref->node, "detect_negative");
    bool positive = nan || po_op_int(ref->graph, ref->node, "detect_positive");
    po_array *y;
    if (!x->f)
        return PO_UNSUPPORTED;
    PO_TRY(po_ref_out(ref, 0, PO_BOOL, x->rank, x->dims, &y));
    for (int64_t k = 0; k < x->count; k++)
        y->i[k] = nan ? isnan(x->f[k]) : isinf(x->f[k]) && (signbit(x->f[k]) ? negative : positive);
    return PO_OK;
}

/* --- attributes --- */

#define CONSUMED                                                                                   \
    { .name = "consumed_inputs", .kind = PO_ATTR_INTS, .since = 1, .until = 5 }

const po_attr_def po_attrs_consumed[] = {CONSUMED, {0}};
const po_attr_def po_attrs_isinf[] = {
    {.name = "detect_negative", .kind = PO_ATTR_INT, .since = 10, .has_default = true, .i = 1},
    {.name = "detect_positive", .kind = PO_ATTR_INT, .since = 10, .has_default = true, .i = 1},
    {0},
};
const po_attr_def po_attrs_celu[] = {
    {.name = "alpha", .kind = PO_ATTR_FLOAT, .since = 12, .has_default = true, .f = 1.0f},
    {0},
};
const po_attr_def po_attrs_elu[] = {
    {.name = "alpha", .kind = PO_ATTR_FLOAT, .since = 1, .has_default = true, .f = 1.0f},
    CONSUMED,
    {0},
};
const po_attr_def po_attrs_gelu[] = {
    {.name = "approximate", .kind = PO_ATTR_STRING, .since = 20, .has_default = true, .s = "none"},
    {0},
};
const po_attr_def po_attrs_hardsigmoid[] = {
    {.name = "alpha", .kind = PO_ATTR_FLOAT, .since = 1, .has_default = true, .f = 0.2f},
    {.name = "beta", .kind = PO_ATTR_FLOAT, .since = 1, .has_default = true, .f = 0.5f},
    CONSUMED,
    {0},
};
const po_attr_def po_attrs_leakyrelu[] = {
    {.name = "alpha", .kind = PO_ATTR_FLOAT, .since = 1, .has_default = true, .f = 0.01f},
    CONSUMED,
    {0},
};
const po_attr_def po_attrs_selu[] = {
    {.name = "alpha",
     .kind = PO_ATTR_FLOAT,
     .since = 1,
     .until = 5,
     .has_default = true,
     .f = 1.6732f},
    {.name = "alpha", .kind = PO_ATTR_FLOAT, .since = 6, .has_default = true, .f = 1.6732632f},
    {.name = "gamma",
     .kind = PO_ATTR_FLOAT,
     .since = 1,
     .until = 5,
     .has_default = true,
     .f = 1.0507f},
    {.name = "gamma", .kind = PO_ATTR_FLOAT, .since = 6, .has_default = true, .f = 1.050701f},
    CONSUMED,
    {0},
};
const po_attr_def po_attrs_shrink[] = {
    {.name = "bias", .kind = PO_ATTR_FLOAT, .since = 9, .has_default = true, .f = 0.0f},
    {.name = "lambd", .kind = PO_ATTR_FLOAT, .since = 9, .has_default = true, .f = 0.5f},
    {0},
};
const po_attr_def po_attrs_swish[] = {
    {.name = "alpha", .kind = PO_ATTR_FLOAT, .since = 24, .has_default = true, .f = 1.0f},
    {0},
};
const po_attr_def po_attrs_thresholdedrelu[] = {
    {.name = "alpha", .kind = PO_ATTR_FLOAT, .since = 1, .has_default = true, .f = 1.0f},
    {0},
};
const po_attr_def po_attrs_quickgelu[] = {
    {.name = "alpha", .kind = PO_ATTR_FLOAT, .since = 1, .has_default = true, .f = 1.702f},
    {0},
};

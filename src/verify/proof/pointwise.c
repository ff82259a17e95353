/* Functions of one element, or of elements at one place: by what they are in terms of a few
 * (function.c), so that their usual spellings agree; any other is a random function of its
 * own. */
#include "ops/recipe/recipe.h"
#include "verify/proof/internal.h"

#include <math.h>

/* --- one input --- */

typedef struct unary {
    po_pnode *n;
    po_pfun f;
    const uint32_t *x;
    uint32_t *out;
    int64_t count;
} unary;

static uint32_t half(po_field f, uint32_t x) {
    return po_field_mul(f, x, f.half);
}

static void gelu(const unary *u, bool by_tanh) {
    uint32_t inverse = po_pc_residue(u->n->run, 0.70710678118654752440, PO_F32, true);
    uint32_t c = po_pc_residue(u->n->run, 0.79788456080286535588, PO_F32, true);
    uint32_t cubic = po_pc_residue(u->n->run, 0.044715, PO_F32, true);
    for (int64_t i = 0; i < u->count; i++) {
        uint32_t x = u->x[i];
        uint32_t cube = po_field_mul(u->f.field, x, po_field_mul(u->f.field, x, x));
        u->out[i] =
            by_tanh
                ? po_field_mul(u->f.field, c,
                               po_field_add(u->f.field, x, po_field_mul(u->f.field, cubic, cube)))
                : po_px_erf(&u->f, po_field_mul(u->f.field, x, inverse));
    }
    if (by_tanh)
        po_px_tanh(&u->f, u->count, u->out, u->out);
    for (int64_t i = 0; i < u->count; i++)
        u->out[i] = half(u->f.field,
                         po_field_mul(u->f.field, u->x[i], po_field_add(u->f.field, 1, u->out[i])));
}

/* x * sigmoid(alpha x) */
static void swish(const unary *u, uint32_t alpha) {
    for (int64_t i = 0; i < u->count; i++)
        u->out[i] = po_field_mul(u->f.field, alpha, u->x[i]);
    po_px_sigmoid(&u->f, u->count, u->out, u->out);
    for (int64_t i = 0; i < u->count; i++)
        u->out[i] = po_field_mul(u->f.field, u->out[i], u->x[i]);
}

static void softplus(const unary *u) {
    for (int64_t i = 0; i < u->count; i++)
        u->out[i] =
            po_pf(u->f.field, u->f.log, po_field_add(u->f.field, 1, po_px_exp(&u->f, u->x[i])));
}

static void each(const unary *u, uint32_t (*fn)(const po_pfun *f, uint32_t x)) {
    for (int64_t i = 0; i < u->count; i++)
        u->out[i] = fn(&u->f, u->x[i]);
}

static void hard(const unary *u, bool by_x, po_pnum alpha, po_pnum beta) {
    for (int64_t i = 0; i < u->count; i++) {
        uint32_t v =
            po_field_add(u->f.field, po_field_mul(u->f.field, alpha.mod, u->x[i]), beta.mod);
        v = po_px_clip(&u->f, v);
        u->out[i] = by_x ? po_field_mul(u->f.field, v, u->x[i]) : v;
    }
}

static bool by_tanh(const po_pnode *n) {
    return po_node_string_is(n->node, "approximate", "tanh", "none");
}

static po_pnum sixth(po_field f, uint32_t times) {
    return (po_pnum){true, po_field_mul(f, times, po_field_inverse(f, 6)), times / 6.0};
}

static bool known_function(unary *u) {
    po_pnode *n = u->n;
    switch (n->node->op) {
    case PO_OP_Exp:
        each(u, po_px_exp);
        break;
    case PO_OP_Sqrt:
        each(u, po_px_sqrt);
        break;
    case PO_OP_Erf:
        each(u, po_px_erf);
        break;
    case PO_OP_Abs:
        each(u, po_px_abs);
        break;
    case PO_OP_Log:
        for (int64_t i = 0; i < u->count; i++)
            u->out[i] = po_pf(u->f.field, u->f.log, u->x[i]);
        break;
    case PO_OP_Tanh:
        po_px_tanh(&u->f, u->count, u->x, u->out);
        break;
    case PO_OP_Sigmoid:
        po_px_sigmoid(&u->f, u->count, u->x, u->out);
        break;
    case PO_OP_Softplus:
        softplus(u);
        break;
    case PO_OP_Softsign:
        for (int64_t i = 0; i < u->count; i++)
            u->out[i] = po_field_add(u->f.field, 1, po_px_abs(&u->f, u->x[i]));
        po_px_inverse(u->f.field, u->count, u->out);
        for (int64_t i = 0; i < u->count; i++)
            u->out[i] = po_field_mul(u->f.field, u->out[i], u->x[i]);
        break;
    case PO_OP_Mish:
        softplus(u);
        po_px_tanh(&u->f, u->count, u->out, u->out);
        for (int64_t i = 0; i < u->count; i++)
            u->out[i] = po_field_mul(u->f.field, u->out[i], u->x[i]);
        break;
    case PO_OP_Gelu:
        gelu(u, by_tanh(n));
        break;
    case PO_OP_MS_Gelu:
        gelu(u, false);
        break;
    case PO_OP_MS_FastGelu:
        gelu(u, true);
        break;
    case PO_OP_Swish:
    case PO_OP_MS_QuickGelu:
        swish(u, po_pn_float(n, "alpha").mod);
        break;
    case PO_OP_HardSwish:
        hard(u, true, sixth(u->f.field, 1), sixth(u->f.field, 3));
        break;
    case PO_OP_HardSigmoid:
        hard(u, false, po_pn_float(n, "alpha"), po_pn_float(n, "beta"));
        break;
    default:
        return false;
    }
    return true;
}

/* x times a function of x: the product is of a larger degree. */
static bool times_itself(po_op_id op) {
    switch (op) {
    case PO_OP_Gelu:
    case PO_OP_MS_Gelu:
    case PO_OP_MS_FastGelu:
    case PO_OP_HardSwish:
    case PO_OP_Swish:
    case PO_OP_MS_QuickGelu:
    case PO_OP_Mish:
    case PO_OP_Softsign:
        return true;
    default:
        return false;
    }
}

/* Of what the function's symbols are asked for, in x; factors aside. */
static double argument_degree(const po_node *node) {
    bool cubic = node->op == PO_OP_MS_FastGelu ||
                 (node->op == PO_OP_Gelu && po_node_string_is(node, "approximate", "tanh", "none"));
    return cubic ? 3 : 1;
}

static po_status run_unary(po_pnode *n) {
    po_ptensor *in = n->in[0];
    unary u = {.n = n, .f = po_pfun_of(n->run), .x = po_pt_mod(in), .count = in->count};
    if (!u.x || n->node->n_in != 1 || po_type_count(&n->type[0]) != in->count)
        return PO_UNSUPPORTED;
    po_ptensor *out = po_pn_out(n, 0);
    u.out = out->mod;
    if (!known_function(&u)) {
        po_hash h = po_pn_identity(n);
        for (int64_t i = 0; i < u.count; i++)
            u.out[i] = po_pf(u.f.field, h.lo ^ h.hi, u.x[i]);
    }
    if (n->node->op == PO_OP_Exp) {
        out->origin = PO_ORIGIN_EXP;
        out->from = po_pt_use(in);
    }
    po_pn_function(n, out);
    po_prun_compared(n->run, po_pb_total(&in->bound), argument_degree(n->node), 3);
    if (times_itself(n->node->op))
        out->bound = po_pb_product(n->run, &out->bound, &in->bound);
    return PO_OK;
}

/* --- changes of type --- */

static po_status run_cast(po_pnode *n) {
    po_ptensor *in = n->in[0];
    po_dtype_class from = po_dtype_class_of(in->dtype), to = po_dtype_class_of(n->type[0].dtype);
    if (!po_pt_mod(in) || to == PO_CLASS_NONE)
        return PO_UNSUPPORTED;
    /* Float to float: rounding is not looked at. Integers: they may wrap where bits are lost. */
    bool wider = from == to && po_dtype_bits(n->type[0].dtype) >= po_dtype_bits(in->dtype);
    bool same = to == PO_CLASS_FLOAT || from == PO_CLASS_BOOL || wider;
    if (!same)
        return run_unary(n);
    n->out[0] = po_pt_view(n->run, in, n->type[0].dtype, in->rank, in->dims);
    return PO_OK;
}

/* --- several inputs --- */

typedef struct places {
    po_pnode *n;
    po_pfun f;
    uint32_t *out;
    int64_t count;
} places;

static po_status start(po_pnode *n, places *p, const uint32_t **x) {
    for (uint32_t k = 0; k < n->node->n_in; k++) {
        x[k] = po_pn_broadcast(n, k);
        if (!x[k])
            return PO_UNSUPPORTED;
    }
    po_ptensor *out = po_pn_out(n, 0);
    *p = (places){n, po_pfun_of(n->run), out->mod, out->count};
    return PO_OK;
}

static void set_bound(po_pnode *n, bool product) {
    po_ptensor *out = n->out[0], *youngest = n->in[0];
    uint32_t n_in = n->node->n_in, equal = 0;
    out->bound = n->in[0]->bound;
    for (uint32_t k = 1; k < n_in; k++) {
        const po_pbound *b = &n->in[k]->bound;
        out->bound =
            product ? po_pb_product(n->run, &out->bound, b) : po_pb_sum(n->run, &out->bound, b);
        youngest = b->newest > youngest->bound.newest ? n->in[k] : youngest;
    }
    for (uint32_t k = 0; k < n_in; k++)
        equal += n->in[k]->bound.newest == youngest->bound.newest;
    if (!product && equal == 1 && youngest->count == out->count &&
        (youngest->bound.form == PO_FORM_FRESH || youngest->bound.form == PO_FORM_SHIFTED))
        po_pb_shifted(out, youngest);
}

static po_status run_arithmetic(po_pnode *n) {
    places p;
    uint32_t n_in = n->node->n_in;
    const uint32_t **x = PO_NEW_N(n->arena, const uint32_t *, n_in);
    po_op op = n->node->op;
    PO_TRY(start(n, &p, x));
    uint32_t scale = op == PO_OP_Mean ? po_field_inverse(p.f.field, n_in) : 1;
    for (int64_t i = 0; i < p.count; i++) {
        uint32_t v = x[0][i];
        for (uint32_t k = 1; k < n_in; k++) {
            uint32_t y = x[k][i];
            v = op == PO_OP_Mul
                    ? po_field_mul(p.f.field, v, y)
                    : po_field_add(p.f.field, v, op == PO_OP_Sub ? po_field_neg(p.f.field, y) : y);
        }
        p.out[i] = scale == 1 ? v : po_field_mul(p.f.field, scale, v);
    }
    set_bound(n, op == PO_OP_Mul);
    if (op == PO_OP_Sub && n->in[0]->origin == PO_ORIGIN_ROW_MOST &&
        n->in[0]->rank == n->out[0]->rank) {
        /* exp(-70) < 2^-100 */
        po_pnum number = po_pn_input_number(n, 1);
        if (number.given && number.value >= 70) {
            n->out[0]->origin = PO_ORIGIN_ROW_FLOOR;
            n->out[0]->from = po_pt_use(n->in[0]->from);
        }
    }
    if (op == PO_OP_Mul && n_in == 2)
        for (uint32_t k = 0; k < 2; k++) {
            po_pnum number = po_pn_input_number(n, k);
            if (number.given && n->in[1 - k]->count == n->out[0]->count && !n->out[0]->from) {
                n->out[0]->origin = PO_ORIGIN_SCALED;
                n->out[0]->from = po_pt_use(n->in[1 - k]);
                n->out[0]->lo = number;
            }
        }
    return PO_OK;
}

/* exp(z) / sum of exp(z) along some axes is a softmax, whatever is taken off z first. */
static po_status run_division(po_pnode *n) {
    const uint32_t *x[2];
    places p;
    if (po_dtype_class_of(n->in[0]->dtype) != PO_CLASS_FLOAT)
        return PO_UNSUPPORTED;
    PO_TRY(start(n, &p, x));
    uint32_t *inverse = po_arena_memdup(n->arena, x[1], (size_t)p.count * sizeof *x[1]);
    po_px_inverse(p.f.field, p.count, inverse);
    for (int64_t i = 0; i < p.count; i++)
        p.out[i] = po_field_mul(p.f.field, x[0][i], inverse[i]);
    po_pbound under = po_pb_inverse(n->run, n->in[1]);
    n->out[0]->bound = po_pb_product(n->run, &n->in[0]->bound, &under);
    return PO_OK;
}

static po_status run_reciprocal(po_pnode *n) {
    const uint32_t *x = po_pt_mod(n->in[0]);
    if (!x)
        return PO_UNSUPPORTED;
    po_ptensor *out = po_pn_out(n, 0);
    memcpy(out->mod, x, (size_t)out->count * sizeof *x);
    po_px_inverse(n->run->field, out->count, out->mod);
    out->bound = po_pb_inverse(n->run, n->in[0]);
    return PO_OK;
}

static po_status run_negation(po_pnode *n, uint32_t plus) {
    const uint32_t *x = po_pt_mod(n->in[0]);
    if (!x)
        return PO_UNSUPPORTED;
    po_ptensor *out = po_pn_out(n, 0);
    for (int64_t i = 0; i < out->count; i++)
        out->mod[i] = po_field_add(n->run->field, plus, po_field_neg(n->run->field, x[i]));
    out->bound = n->in[0]->bound;
    out->bound.form = plus ? PO_FORM_OTHER : out->bound.form;
    return PO_OK;
}

static po_status run_power(po_pnode *n) {
    const uint32_t *x[2];
    places p;
    PO_TRY(start(n, &p, x));
    po_pnum exponent = po_pn_input_number(n, 1);
    for (int64_t i = 0; i < p.count; i++) {
        if (!exponent.given)
            exponent.mod = x[1][i];
        p.out[i] = po_px_power(&p.f, x[0][i], &exponent);
    }
    double e = exponent.given ? fabs(exponent.value) : -1;
    po_pn_function(n, n->out[0]);
    if (!(e >= 0 && e <= 64 && (e == floor(e) || e == floor(e) + 0.5)))
        return PO_OK;
    po_pbound of = exponent.value < 0 ? po_pb_inverse(n->run, n->in[0]) : n->in[0]->bound;
    po_pbound whole = po_pb_power(n->run, &of, floor(e)), root = n->out[0]->bound;
    n->out[0]->bound = e == floor(e) ? whole : po_pb_product(n->run, &whole, &root);
    return PO_OK;
}

static uint32_t compare(const places *p, po_op op, uint32_t a, uint32_t b) {
    uint32_t d = po_field_add(p->f.field, a, po_field_neg(p->f.field, b)),
             minus = po_field_neg(p->f.field, d);
    switch (op) {
    case PO_OP_Equal:
        return d == 0 ? 1 : po_pf(p->f.field, p->f.equal, d < minus ? d : minus);
    case PO_OP_Less:
        return d == 0 ? 0 : po_pf(p->f.field, p->f.less, d);
    case PO_OP_Greater:
        return d == 0 ? 0 : po_pf(p->f.field, p->f.less, minus);
    case PO_OP_GreaterOrEqual:
        return d == 0 ? 1
                      : po_field_add(p->f.field, 1,
                                     po_field_neg(p->f.field, po_pf(p->f.field, p->f.less, d)));
    default: /* LessOrEqual */
        return d == 0 ? 1
                      : po_field_add(p->f.field, 1,
                                     po_field_neg(p->f.field, po_pf(p->f.field, p->f.less, minus)));
    }
}

static uint32_t logic(const places *p, po_op op, uint32_t a, uint32_t b) {
    bool both = op == PO_OP_And;
    if (a == b)
        return a;
    if (a <= 1 || b <= 1) {
        uint32_t bit = a <= 1 ? a : b, other = a <= 1 ? b : a;
        return both ? (bit ? other : 0) : (bit ? 1 : other);
    }
    uint32_t low = a < b ? a : b, high = a < b ? b : a;
    return po_pf(p->f.field, both ? p->f.both : p->f.either, (uint64_t)high << 31 | low);
}

static po_status run_predicate(po_pnode *n) {
    const uint32_t *x[2];
    places p;
    po_op op = n->node->op;
    PO_TRY(start(n, &p, x));
    for (int64_t i = 0; i < p.count; i++)
        p.out[i] = op == PO_OP_And || op == PO_OP_Or ? logic(&p, op, x[0][i], x[1][i])
                                                     : compare(&p, op, x[0][i], x[1][i]);
    po_pn_function(n, n->out[0]);
    return PO_OK;
}

/* y + c (x - y), which for a condition of 0 and 1 chooses. */
static po_status run_where(po_pnode *n) {
    const uint32_t *x[3];
    places p;
    PO_TRY(start(n, &p, x));
    for (int64_t i = 0; i < p.count; i++)
        p.out[i] = po_field_add(
            p.f.field, x[2][i],
            po_field_mul(p.f.field, x[0][i],
                         po_field_add(p.f.field, x[1][i], po_field_neg(p.f.field, x[2][i]))));
    po_pbound both = po_pb_sum(n->run, &n->in[1]->bound, &n->in[2]->bound);
    po_pbound chosen = po_pb_product(n->run, &n->in[0]->bound, &both);
    n->out[0]->bound = po_pb_sum(n->run, &chosen, &n->in[2]->bound);
    return PO_OK;
}

/* Whether sums and products with a number may wrap. */
static bool may_wrap(const po_pnode *n) {
    uint32_t bits = po_dtype_bits(n->type[0].dtype);
    if (po_dtype_class_of(n->type[0].dtype) == PO_CLASS_FLOAT)
        return false;
    int64_t most = bits > 2 ? (int64_t)1 << (bits - 2) : 1;
    for (uint32_t k = 0; k < n->node->n_in; k++) {
        const po_array *a = n->in[k]->known;
        for (int64_t i = 0; a && a->i && i < a->count; i++)
            if (a->i[i] >= most || a->i[i] <= -most)
                return true;
    }
    return false;
}

/* Any other function of the elements at one place. */
static po_status run_other(po_pnode *n) {
    places p;
    uint32_t n_in = n->node->n_in;
    const uint32_t **x = PO_NEW_N(n->arena, const uint32_t *, n_in);
    PO_TRY(start(n, &p, x));
    po_hash h = po_pn_identity(n);
    bool swap = po_op_has(n->node->op, PO_OPF_COMMUTATIVE) && n_in == 2;
    for (int64_t i = 0; i < p.count; i++) {
        uint64_t v = h.hi;
        if (swap && x[0][i] > x[1][i]) {
            v = po_mix((v ^ x[1][i]) * 0x9e3779b97f4a7c15);
            v = po_mix((v ^ x[0][i]) * 0x9e3779b97f4a7c15);
        } else {
            for (uint32_t k = 0; k < n_in; k++)
                v = po_mix((v ^ x[k][i]) * 0x9e3779b97f4a7c15);
        }
        p.out[i] = po_pf(p.f.field, h.lo, v);
    }
    po_pn_function(n, n->out[0]);
    return PO_OK;
}

po_status po_pn_pointwise(po_pnode *n) {
    if (!po_op_has(n->node->op, PO_OPF_ELEMENTWISE) || n->node->n_in == 0)
        return PO_UNSUPPORTED;
    for (uint32_t k = 0; k < n->node->n_in; k++)
        if (!n->in[k] || !po_pt_mod(n->in[k]))
            return PO_UNSUPPORTED;
    switch (n->node->op) {
    case PO_OP_Add:
    case PO_OP_Sub:
    case PO_OP_Mul:
    case PO_OP_Sum:
    case PO_OP_Mean:
        return may_wrap(n) ? run_other(n) : run_arithmetic(n);
    case PO_OP_Div:
        return run_division(n) == PO_OK ? PO_OK : run_other(n);
    case PO_OP_Neg:
        return run_negation(n, 0);
    case PO_OP_Not:
        return run_negation(n, 1);
    case PO_OP_Reciprocal:
        return run_reciprocal(n);
    case PO_OP_Pow:
        return run_power(n);
    case PO_OP_Equal:
    case PO_OP_Less:
    case PO_OP_LessOrEqual:
    case PO_OP_Greater:
    case PO_OP_GreaterOrEqual:
    case PO_OP_And:
    case PO_OP_Or:
        return run_predicate(n);
    case PO_OP_Where:
        return run_where(n);
    case PO_OP_Cast:
    case PO_OP_CastLike:
        return run_cast(n);
    case PO_OP_MS_BiasGelu:
        return PO_UNSUPPORTED;
    case PO_OP_Shrink: /* of recipes it is a rounding, like a Cast */
        return n->run->recipes && po_recipe_drops_tiny(n->node) ? run_cast(n) : run_unary(n);
    default:
        return n->node->n_in == 1 ? run_unary(n) : run_other(n);
    }
}

/* Relu, Clip, Max, Min and their kind. Limits that are numbers compose: clip(clip(x, a, b), c, d)
 * is one clip. All are functions of |.| and of a clip to [0, 1]:
 *     relu(x) = (x + |x|) / 2,   clip(x, lo, hi) = lo + (hi - lo) clip01((x - lo) / (hi - lo)) */
#include "ops/rewrite.h"
#include "verify/proof/internal.h"

#include <math.h>

typedef struct limits {
    po_ptensor *of;
    po_pnum lo, hi;
} limits;

/* Below or above every number of the type: no limit. */
static bool endless(const po_pnum *limit) {
    return !limit->given || fabs(limit->value) >= 3.4028234e38;
}

static po_pnum larger(po_pnum a, po_pnum b) {
    return endless(&a) ? b : endless(&b) ? a : a.value >= b.value ? a : b;
}

static po_pnum smaller(po_pnum a, po_pnum b) {
    return endless(&a) ? b : endless(&b) ? a : a.value <= b.value ? a : b;
}

/* clip(clip(x, l.lo, l.hi), lo, hi) as one. */
static void add_limits(limits *l, po_pnum lo, po_pnum hi) {
    if (!endless(&l->lo))
        l->lo = smaller(larger(l->lo, lo), hi);
    else if (!endless(&lo))
        l->lo = lo;
    if (!endless(&l->hi))
        l->hi = smaller(larger(l->hi, lo), hi);
    else if (!endless(&hi))
        l->hi = hi;
}

static void apply(const po_pfun *f, const limits *l, const uint32_t *x, int64_t count,
                  uint32_t *out) {
    uint32_t half = f->field.half;
    if (endless(&l->lo) && endless(&l->hi)) {
        memcpy(out, x, (size_t)count * sizeof *x);
    } else if (endless(&l->hi)) {
        uint32_t minus = po_field_neg(f->field, l->lo.mod);
        for (int64_t i = 0; i < count; i++)
            out[i] = po_field_add(f->field, l->lo.mod,
                                  po_px_relu(f, po_field_add(f->field, x[i], minus)));
    } else if (endless(&l->lo)) {
        for (int64_t i = 0; i < count; i++) {
            uint32_t d =
                po_px_abs(f, po_field_add(f->field, x[i], po_field_neg(f->field, l->hi.mod)));
            out[i] = po_field_mul(f->field, half,
                                  po_field_add(f->field, po_field_add(f->field, x[i], l->hi.mod),
                                               po_field_neg(f->field, d)));
        }
    } else {
        uint32_t width = po_field_add(f->field, l->hi.mod, po_field_neg(f->field, l->lo.mod));
        uint32_t inverse = po_field_inverse(f->field, width),
                 minus = po_field_neg(f->field, l->lo.mod);
        for (int64_t i = 0; i < count; i++) {
            uint32_t t = po_field_mul(f->field, po_field_add(f->field, x[i], minus), inverse);
            out[i] =
                po_field_add(f->field, l->lo.mod, po_field_mul(f->field, width, po_px_clip(f, t)));
        }
    }
}

static po_status run_limits(po_pnode *n, po_ptensor *in, po_pnum lo, po_pnum hi) {
    limits l = {in, {0}, {0}};
    if (in->origin == PO_ORIGIN_CLIP)
        l = (limits){in->from, in->lo, in->hi};
    if (!endless(&lo) && !endless(&hi) && lo.value > hi.value)
        lo = hi;
    add_limits(&l, lo, hi);
    const uint32_t *x = po_pt_mod(l.of);
    if (!x || l.of->count != po_type_count(&n->type[0]))
        return PO_UNSUPPORTED;
    po_pfun f = po_pfun_of(n->run);
    po_ptensor *out = po_pn_out(n, 0);
    apply(&f, &l, x, out->count, out->mod);
    po_prun_compared(n->run, po_pb_total(&l.of->bound), 1, 2); /* (x - lo) / (hi - lo) */
    bool both = !endless(&l.lo) && !endless(&l.hi);            /* then it is a new symbol's */
    out->bound = both ? po_pb_symbol(n->run) : po_pb_around(n->run, &l.of->bound);
    if (!both)
        po_pb_shifted(out, out);
    out->origin = PO_ORIGIN_CLIP;
    out->from = po_pt_use(l.of);
    out->lo = l.lo;
    out->hi = l.hi;
    return PO_OK;
}

static po_status run_clip(po_pnode *n) {
    po_pnum lo = {0}, hi = {0};
    if (n->opset < 11) {
        lo = po_pn_float(n, "min");
        hi = po_pn_float(n, "max");
    } else {
        lo = po_pn_input_number(n, 1);
        hi = po_pn_input_number(n, 2);
        if ((po_pn_in(n, 1) && !lo.given) || (po_pn_in(n, 2) && !hi.given))
            return PO_UNSUPPORTED;
    }
    return run_limits(n, n->in[0], lo, hi);
}

/* a x + (1 - a) relu(x), the slope being a tensor. */
static po_status run_slope(po_pnode *n, po_ptensor *in, const uint32_t *slope, uint32_t step,
                           po_pbound of_slope) {
    const po_pbound one = po_pb_constant(0);
    const uint32_t *x = po_pt_mod(in);
    po_pfun f = po_pfun_of(n->run);
    if (!x || !slope || in->count != po_type_count(&n->type[0]))
        return PO_UNSUPPORTED;
    po_ptensor *out = po_pn_out(n, 0);
    for (int64_t i = 0; i < out->count; i++) {
        uint32_t a = slope[i * step], rest = po_field_add(f.field, 1, po_field_neg(f.field, a));
        out->mod[i] = po_field_add(f.field, po_field_mul(f.field, a, x[i]),
                                   po_field_mul(f.field, rest, po_px_relu(&f, x[i])));
    }
    po_prun_compared(n->run, po_pb_total(&in->bound), 1, 0);
    po_pbound around = po_pb_around(n->run, &in->bound), both = po_pb_sum(n->run, &of_slope, &one);
    out->bound = po_pb_product(n->run, &around, &both);
    return PO_OK;
}

/* max(x, a x): a slope below 0, or above. */
static bool scaled_pair(po_pnode *n, po_ptensor **of, uint32_t *slope) {
    for (uint32_t k = 0; k < 2; k++) {
        po_ptensor *y = n->in[k], *x = n->in[1 - k];
        if (y->origin != PO_ORIGIN_SCALED || y->from != x || y->lo.value < 0)
            continue;
        *of = x;
        *slope = y->lo.mod;
        if (y->lo.value <= 1)
            return true;
        /* max(x, a x) for a > 1 is the slope 1 / a of a x. */
        *of = y;
        *slope = po_field_inverse(n->run->field, *slope);
        return true;
    }
    return false;
}

static po_status run_extremum(po_pnode *n) {
    bool max = n->node->op == PO_OP_Max;
    uint32_t n_in = n->node->n_in, slope;
    po_ptensor *of;
    if (n_in == 1) {
        n->out[0] = po_pt_use(n->in[0]);
        return PO_OK;
    }
    if (n_in == 2) {
        for (uint32_t k = 0; k < 2; k++) {
            po_pnum number = po_pn_input_number(n, k), none = {0};
            if (number.given && n->in[1 - k]->count == po_type_count(&n->type[0]))
                return run_limits(n, n->in[1 - k], max ? number : none, max ? none : number);
        }
        if (max && scaled_pair(n, &of, &slope))
            return run_slope(n, of, &slope, 0, po_pb_constant(1));
    }
    const uint32_t **x = PO_NEW_N(n->arena, const uint32_t *, n_in);
    for (uint32_t k = 0; k < n_in; k++) {
        x[k] = po_pn_broadcast(n, k);
        if (!x[k])
            return PO_UNSUPPORTED;
    }
    po_pfun f = po_pfun_of(n->run);
    po_ptensor *out = po_pn_out(n, 0);
    for (int64_t i = 0; i < out->count; i++) {
        uint32_t v = x[0][i];
        for (uint32_t k = 1; k < n_in; k++)
            v = max ? po_px_max(&f, v, x[k][i])
                    : po_field_neg(f.field, po_px_max(&f, po_field_neg(f.field, v),
                                                      po_field_neg(f.field, x[k][i])));
        out->mod[i] = v;
    }
    /* (a + b + |a - b|) / 2, once for each further one */
    out->bound = n->in[0]->bound;
    for (uint32_t k = 1; k < n_in; k++) {
        po_pbound s = po_pb_sum(n->run, &out->bound, &n->in[k]->bound);
        po_prun_compared(n->run, po_pb_total(&s), 1, 0);
        out->bound = po_pb_around(n->run, &s);
    }
    if (n_in == 2)
        po_pb_shifted(out, out);
    for (uint32_t k = 0; k < n_in && max && n_in == 2; k++)
        if (n->in[k]->origin == PO_ORIGIN_ROW_FLOOR && n->in[k]->from == n->in[1 - k]) {
            out->origin = PO_ORIGIN_RAISED;
            out->from = po_pt_use(n->in[k]);
        }
    return PO_OK;
}

po_status po_pn_clip(po_pnode *n) {
    po_pnum zero = {true, 0, 0}, none = {0}, alpha;
    if (!po_pn_in(n, 0))
        return PO_UNSUPPORTED;
    for (uint32_t k = 0; k < n->node->n_in; k++)
        if (n->in[k] && !po_pt_mod(n->in[k]))
            return PO_UNSUPPORTED;
    switch (n->node->op) {
    case PO_OP_Relu:
        return run_limits(n, n->in[0], po_never_negative(n->graph, n->node->in[0]) ? none : zero,
                          none);
    case PO_OP_Clip:
        return run_clip(n);
    case PO_OP_LeakyRelu:
        alpha = po_pn_float(n, "alpha");
        return run_slope(n, n->in[0], &alpha.mod, 0, po_pb_constant(1));
    case PO_OP_PRelu:
        if (!po_pn_in(n, 1))
            return PO_UNSUPPORTED;
        return run_slope(n, n->in[0], po_pn_broadcast(n, 1), 1, n->in[1]->bound);
    case PO_OP_Max:
    case PO_OP_Min:
        for (uint32_t k = 0; k < n->node->n_in; k++)
            if (!n->in[k])
                return PO_UNSUPPORTED;
        return run_extremum(n);
    default:
        return PO_UNSUPPORTED;
    }
}

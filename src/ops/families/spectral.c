/* DFT, STFT, MelWeightMatrix. */
#include "ops/rule.h"

#include <math.h>

/* The sums are written out: more products than this are refused. */
#define MAX_WORK (INT64_C(1) << 33)

/* A scalar integer input: PO_ABSENT, PO_NOT_KNOWN or PO_KNOWN. */
static po_known scalar(const po_infer *infer, uint32_t input, int64_t *value) {
    const int64_t *v;
    int64_t n;
    po_known known = po_rule_ints(infer, NULL, input, &v, &n);
    if (known == PO_KNOWN && n != 1)
        return PO_NOT_KNOWN;
    if (known == PO_KNOWN)
        *value = v[0];
    return known;
}

/* --- DFT --- */

typedef struct dft {
    uint32_t axis;
    int64_t length; /* of the transform; -1: not known */
    po_dim out;
    bool inverse, onesided;
} dft;

static po_status read_dft(const po_infer *infer, const po_type *x, dft *d, bool *known) {
    int64_t axis = po_op_int(infer->graph, infer->node, "axis"), length = -1;
    po_dim in;
    *known = true;
    d->inverse = po_op_int(infer->graph, infer->node, "inverse") != 0;
    d->onesided = po_op_int(infer->graph, infer->node, "onesided") != 0;
    if (infer->opset >= 20) {
        axis = -2;
        *known = scalar(infer, 2, &axis) != PO_NOT_KNOWN;
    }
    if (x->rank < 2)
        return po_rule_bad(infer->ctx, infer->node, "input must have rank 2 or more (found %u)",
                           x->rank);
    if (!*known)
        return PO_OK;
    PO_TRY(po_rule_axis(infer->ctx, infer->node, axis, x->rank, &d->axis));
    po_dim last = x->dims[x->rank - 1];
    if (d->axis == x->rank - 1 || (last.value >= 0 && last.value != 1 && last.value != 2))
        return po_rule_bad(infer->ctx, infer->node,
                           "the last axis must hold real and imaginary parts (%lld)",
                           (long long)last.value);
    in = x->dims[d->axis];
    switch (scalar(infer, 1, &length)) {
    case PO_ABSENT:
        length = in.value;
        if (in.value >= 0 && in.value < INT32_MAX && d->inverse && d->onesided)
            length = in.value > 0 ? 2 * (in.value - 1) : 0;
        break;
    case PO_NOT_KNOWN:
        break;
    case PO_KNOWN:
        if (length < 1 || length > INT32_MAX)
            return po_rule_bad(infer->ctx, infer->node, "dft_length is out of range (%lld)",
                               (long long)length);
    }
    d->length = length;
    d->out = length < 0                   ? PO_DIM_UNKNOWN
             : d->onesided && !d->inverse ? PO_DIM(length / 2 + 1)
                                          : PO_DIM(length);
    if (length < 0 && !d->onesided && scalar(infer, 1, &length) == PO_ABSENT)
        d->out = in;
    return PO_OK;
}

po_status po_infer_dft(po_infer *infer) {
    const po_type *x = po_rule_ranked(infer, 0);
    dft d;
    bool known;
    po_infer_set_unranked(infer, 0, po_infer_dtype(infer, 0));
    if (!x)
        return PO_OK;
    PO_TRY(read_dft(infer, x, &d, &known));
    po_dim *dims = po_rule_out(infer, 0, x->dtype, x->rank);
    for (uint32_t k = 0; known && k < x->rank; k++)
        dims[k] = k == d.axis ? d.out : x->dims[k];
    dims[x->rank - 1] = PO_DIM(d.inverse && d.onesided ? 1 : 2);
    return PO_OK;
}

/* cos and sin of 2 pi k / n for k < n. */
static void make_table(po_arena *arena, int64_t n, double **c, double **s) {
    *c = PO_NEW_N(arena, double, n);
    *s = PO_NEW_N(arena, double, n);
    for (int64_t k = 0; k < n; k++) {
        double angle = 2.0 * 3.14159265358979323846 * (double)k / (double)n;
        (*c)[k] = cos(angle);
        (*s)[k] = sin(angle);
    }
}

/* A strided signal of `have` samples, zero beyond, with real and imaginary parts. */
typedef struct signal {
    const double *re, *im; /* im NULL: real */
    int64_t step, have;
} signal;

/* One output of the transform of n samples; sign -1 forward, 1 backward. */
static void one_bin(const signal *x, const double *c, const double *s, int64_t n, int64_t k,
                    int sign, double *re, double *im) {
    int64_t angle = 0, have = x->have < n ? x->have : n;
    *re = *im = 0;
    for (int64_t t = 0; t < have; t++) {
        double a = x->re[t * x->step], b = x->im ? x->im[t * x->step] : 0.0;
        double co = c[angle], si = sign * s[angle];
        *re += a * co - b * si;
        *im += a * si + b * co;
        angle += k;
        angle = angle >= n ? angle - n : angle;
    }
}

/* Real output t of a one-sided spectrum: the other half is its mirror. */
static double real_sample(const signal *x, const double *c, const double *s, int64_t n, int64_t t) {
    int64_t half = n / 2 + 1, have = x->have < half ? x->have : half, angle = 0;
    double sum = 0;
    for (int64_t k = 0; k < have; k++) {
        double a = x->re[k * x->step], b = x->im ? x->im[k * x->step] : 0.0;
        double both = k == 0 || 2 * k == n ? 1 : 2;
        sum += both * (a * c[angle] - (both == 2 ? b * s[angle] : 0.0));
        angle += t;
        angle = angle >= n ? angle - n : angle;
    }
    return sum / (double)n;
}

po_status po_ref_dft(po_ref *ref) {
    PO_TRY(po_rule_outputs(ref));
    const po_array *x = ref->in[0], *out = ref->out[0];
    po_infer infer;
    po_type *types = PO_NEW_N(ref->arena, po_type, ref->n_out);
    dft d;
    bool known;
    double *c, *s;
    int64_t work;
    PO_TRY(po_rule_infer_of(ref, types, &infer));
    PO_TRY(read_dft(&infer, infer.in[0], &d, &known));
    if (!known || !x->f || d.length < 1 || !po_mul_i64(out->count, d.length, &work) ||
        work > MAX_WORK)
        return PO_UNSUPPORTED;
    if (out->count == 0)
        return PO_OK;
    make_table(ref->arena, d.length, &c, &s);
    int64_t parts = x->dims[x->rank - 1], out_parts = out->dims[out->rank - 1];
    int64_t inner = po_product(x->dims, d.axis + 1, x->rank - 1);
    int64_t in = x->dims[d.axis], bins = out->dims[d.axis];
    int64_t outer = po_product(x->dims, 0, d.axis);
    for (int64_t o = 0; o < outer * inner; o++) {
        const double *from = x->f + (o / inner * in * inner + o % inner) * parts;
        double *to = out->f + (o / inner * bins * inner + o % inner) * out_parts;
        signal sig = {from, parts == 2 ? from + 1 : NULL, inner * parts, in};
        for (int64_t k = 0; k < bins; k++, to += inner * out_parts) {
            if (out_parts == 1) {
                to[0] = real_sample(&sig, c, s, d.length, k);
                continue;
            }
            one_bin(&sig, c, s, d.length, k, d.inverse ? 1 : -1, &to[0], &to[1]);
            if (d.inverse) {
                to[0] /= (double)d.length;
                to[1] /= (double)d.length;
            }
        }
    }
    return PO_OK;
}

/* --- STFT --- */

typedef struct stft {
    int64_t step, length; /* -1: not known */
    po_dim frames, bins;
} stft;

static po_status read_stft(const po_infer *infer, stft *s) {
    const po_type *x = po_rule_ranked(infer, 0), *window = po_rule_ranked(infer, 2);
    bool has_window = infer->n_in > 2 && infer->in[2];
    if (window && window->rank != 1)
        window = NULL; /* runtimes take it by its elements */
    s->step = s->length = -1;
    s->frames = s->bins = PO_DIM_UNKNOWN;
    if (x && x->rank != 3 && x->rank != 2) /* runtimes take real signals of rank 2 */
        return po_rule_bad(infer->ctx, infer->node, "signal must have rank 3 (found %u)", x->rank);
    scalar(infer, 1, &s->step);
    if (scalar(infer, 3, &s->length) == PO_ABSENT)
        s->length = window ? window->dims[0].value : has_window || !x ? -1 : x->dims[1].value;
    bool known_step = s->step != -1, known_length = s->length != -1;
    if ((known_step && s->step < 1) || (known_length && s->length < 1))
        return po_rule_bad(infer->ctx, infer->node,
                           "frame_step and frame_length must be positive (%lld, %lld)",
                           (long long)s->step, (long long)s->length);
    po_dim both;
    if (known_length && window)
        PO_TRY(po_rule_same_dim(infer, window->dims[0], PO_DIM(s->length),
                                "window and frame_length", &both));
    bool onesided = po_op_int(infer->graph, infer->node, "onesided") != 0;
    if (known_length)
        s->bins = PO_DIM(onesided ? s->length / 2 + 1 : s->length);
    if (known_length && known_step && x && x->dims[1].value >= 0) {
        if (x->dims[1].value < s->length)
            return po_rule_bad(infer->ctx, infer->node, "the signal is shorter than a frame");
        s->frames = PO_DIM(1 + (x->dims[1].value - s->length) / s->step);
    }
    return PO_OK;
}

po_status po_infer_stft(po_infer *infer) {
    const po_type *x = po_rule_ranked(infer, 0);
    stft s;
    PO_TRY(read_stft(infer, &s));
    po_dim *dims = po_rule_out(infer, 0, po_infer_dtype(infer, 0), 4);
    if (x)
        dims[0] = x->dims[0];
    dims[1] = s.frames;
    dims[2] = s.bins;
    dims[3] = PO_DIM(2);
    return PO_OK;
}

po_status po_ref_stft(po_ref *ref) {
    PO_TRY(po_rule_outputs(ref));
    const po_array *x = ref->in[0], *window = po_ref_in(ref, 2), *out = ref->out[0];
    po_infer infer;
    po_type *types = PO_NEW_N(ref->arena, po_type, ref->n_out);
    stft d;
    double *c, *s;
    int64_t work;
    PO_TRY(po_rule_infer_of(ref, types, &infer));
    PO_TRY(read_stft(&infer, &d));
    const int64_t parts = x->rank == 3 ? x->dims[2] : 1;
    if (!x->f || (window && (!window->f || window->rank != 1)) || parts < 1 || parts > 2 ||
        !po_mul_i64(out->count, d.length, &work) || work > MAX_WORK)
        return PO_UNSUPPORTED;
    make_table(ref->arena, d.length, &c, &s);
    double *frame = PO_NEW_N(ref->arena, double, d.length *parts);
    double *to = out->f;
    for (int64_t b = 0; b < out->dims[0]; b++)
        for (int64_t f = 0; f < out->dims[1]; f++) {
            const double *from = x->f + (b * x->dims[1] + f * d.step) * parts;
            for (int64_t i = 0; i < d.length * parts; i++)
                frame[i] = from[i] * (window ? window->f[i / parts] : 1.0);
            signal sig = {frame, parts == 2 ? frame + 1 : NULL, parts, d.length};
            for (int64_t k = 0; k < out->dims[2]; k++, to += 2)
                one_bin(&sig, c, s, d.length, k, -1, &to[0], &to[1]);
        }
    return PO_OK;
}

/* --- MelWeightMatrix --- */

po_status po_infer_mel_weight_matrix(po_infer *infer) {
    int64_t bins = -1, length = -1;
    po_dtype dtype = (po_dtype)po_op_int(infer->graph, infer->node, "output_datatype");
    scalar(infer, 0, &bins);
    scalar(infer, 1, &length);
    po_dim *dims = po_rule_out(infer, 0, dtype, 2);
    dims[0] = length >= 0 ? PO_DIM(length / 2 + 1) : PO_DIM_UNKNOWN;
    dims[1] = bins >= 0 ? PO_DIM(bins) : PO_DIM_UNKNOWN;
    return PO_OK;
}

/* The row of the spectrum where mel bin k starts. */
static double edge(double low, double step, int64_t k, double length, double rate) {
    double hertz = 700.0 * (pow(10.0, (low + (double)k * step) / 2595.0) - 1.0);
    return floor((length + 1) * hertz / rate);
}

po_status po_ref_mel_weight_matrix(po_ref *ref) {
    double p[5];
    PO_TRY(po_rule_outputs(ref));
    for (uint32_t k = 0; k < 5; k++) {
        if (ref->in[k]->s || ref->in[k]->count != 1)
            return PO_UNSUPPORTED;
        p[k] = po_rule_number(ref->in[k], 0);
    }
    const po_array *out = ref->out[0];
    int64_t rows = out->dims[0], bins = out->dims[1];
    double low = 2595.0 * log10(1.0 + p[3] / 700.0), high = 2595.0 * log10(1.0 + p[4] / 700.0);
    double step = (high - low) / (double)(bins + 2);
    for (int64_t i = 0; i < bins; i++) {
        double a = edge(low, step, i, p[1], p[2]), b = edge(low, step, i + 1, p[1], p[2]);
        double e = edge(low, step, i + 2, p[1], p[2]);
        if (!(a >= 0 && a <= b && b <= e && b < (double)rows && e <= (double)rows))
            return PO_UNSUPPORTED;
        if (a == b)
            po_rule_set_number(out, (int64_t)b * bins + i, 1.0);
        for (int64_t j = (int64_t)a; a < b && j <= (int64_t)b; j++)
            po_rule_set_number(out, j * bins + i, ((double)j - a) / (b - a));
        for (int64_t j = (int64_t)b; j < (int64_t)e; j++)
            po_rule_set_number(out, j * bins + i, (e - (double)j) / (e - b));
    }
    return PO_OK;
}

/* --- attributes --- */

const po_attr_def po_attrs_dft[] = {
    {.name = "axis", .kind = PO_ATTR_INT, .since = 17, .until = 19, .has_default = true, .i = 1},
    {.name = "inverse", .kind = PO_ATTR_INT, .since = 17, .has_default = true, .i = 0},
    {.name = "onesided", .kind = PO_ATTR_INT, .since = 17, .has_default = true, .i = 0},
    {0},
};

const po_attr_def po_attrs_stft[] = {
    {.name = "onesided", .kind = PO_ATTR_INT, .since = 17, .has_default = true, .i = 1},
    {0},
};

const po_attr_def po_attrs_mel_weight_matrix[] = {
    {.name = "output_datatype", .kind = PO_ATTR_INT, .since = 17, .has_default = true, .i = 1},
    {0},
};

/* Attention (opset 23, 24). */
#include "ir/size.h"
#include "ops/kernels.h"
#include "ops/rule.h"

#include <math.h>

enum { Q, K, V, MASK, PAST_KEY, PAST_VALUE, NONPAD };

typedef struct sizes {
    po_dim batch, q_heads, kv_heads, q_len, kv_len, past, total, head, v_head;
    bool flat; /* inputs of rank 3: heads are side by side in the last axis */
} sizes;

/* Heads and head size of an input. */
static po_status split_heads(const po_infer *infer, const po_type *t, const char *attr,
                             po_dim *heads, po_dim *len, po_dim *size) {
    if (t->rank == 4) {
        *heads = t->dims[1];
        *len = t->dims[2];
        *size = t->dims[3];
        return PO_OK;
    }
    int64_t n = po_op_int(infer->graph, infer->node, attr);
    if (n < 1 || n > INT32_MAX || (t->dims[2].value >= 0 && t->dims[2].value % n != 0))
        return po_rule_bad(infer->ctx, infer->node, "%s %lld does not divide the hidden size", attr,
                           (long long)n);
    *heads = PO_DIM(n);
    *len = t->dims[1];
    *size = t->dims[2].value >= 0 ? PO_DIM(t->dims[2].value / n) : PO_DIM_UNKNOWN;
    return PO_OK;
}

static po_status expect(const po_infer *infer, uint32_t input, uint32_t rank, const po_dim *want) {
    const po_type *t = po_rule_ranked(infer, input);
    po_dim both;
    if (t && t->rank != rank)
        return po_rule_bad(infer->ctx, infer->node, "input %u must have rank %u (found %u)", input,
                           rank, t->rank);
    for (uint32_t k = 0; t && k < rank; k++)
        PO_TRY(po_rule_same_dim(infer, t->dims[k], want[k], "dims of the inputs", &both));
    return PO_OK;
}

static po_status check_mask(const po_infer *infer, const sizes *s) {
    const po_type *t = po_rule_ranked(infer, MASK);
    po_dim want[4] = {s->batch, s->q_heads, s->q_len, s->total};
    if (!t)
        return PO_OK;
    if (t->rank < 1 || t->rank > 4)
        return po_rule_bad(infer->ctx, infer->node, "attn_mask has a wrong rank (%u)", t->rank);
    for (uint32_t k = 0; k < t->rank; k++) {
        po_dim d = t->dims[k], w = want[4 - t->rank + k];
        bool last = k == t->rank - 1;
        if (d.value < 0 || w.value < 0 || d.value == w.value || (last && d.value < w.value) ||
            (!last && d.value == 1))
            continue;
        return po_rule_bad(infer->ctx, infer->node, "attn_mask does not fit (%lld and %lld)",
                           (long long)d.value, (long long)w.value);
    }
    return PO_OK;
}

/* *known false: the rank is not known. */
static po_status read_sizes(const po_infer *infer, sizes *s, bool *known) {
    const po_type *q = po_rule_ranked(infer, Q), *k = po_rule_ranked(infer, K);
    const po_type *v = po_rule_ranked(infer, V), *past = po_rule_ranked(infer, PAST_KEY);
    po_dim heads, len;
    *known = q && k && v;
    if (!*known)
        return PO_OK;
    if ((q->rank != 3 && q->rank != 4) || k->rank != q->rank || v->rank != q->rank)
        return po_rule_bad(infer->ctx, infer->node, "ranks must be 3 or 4 (found %u, %u, %u)",
                           q->rank, k->rank, v->rank);
    s->flat = q->rank == 3;
    PO_TRY(split_heads(infer, q, "q_num_heads", &s->q_heads, &s->q_len, &s->head));
    PO_TRY(split_heads(infer, k, "kv_num_heads", &s->kv_heads, &s->kv_len, &heads));
    PO_TRY(po_rule_same_dim(infer, s->head, heads, "head sizes", &s->head));
    PO_TRY(split_heads(infer, v, "kv_num_heads", &heads, &len, &s->v_head));
    PO_TRY(po_rule_same_dim(infer, s->kv_heads, heads, "numbers of heads", &s->kv_heads));
    PO_TRY(po_rule_same_dim(infer, s->kv_len, len, "lengths of keys and values", &s->kv_len));
    PO_TRY(po_rule_same_dim(infer, q->dims[0], k->dims[0], "batch sizes", &s->batch));
    PO_TRY(po_rule_same_dim(infer, s->batch, v->dims[0], "batch sizes", &s->batch));
    if (s->q_heads.value >= 0 && s->kv_heads.value >= 0 &&
        (s->kv_heads.value == 0 || s->q_heads.value % s->kv_heads.value != 0))
        return po_rule_bad(infer->ctx, infer->node,
                           "numbers of heads do not divide (%lld and %lld)",
                           (long long)s->q_heads.value, (long long)s->kv_heads.value);
    bool has_past = PAST_KEY < infer->n_in && infer->in[PAST_KEY];
    bool has_past_value = PAST_VALUE < infer->n_in && infer->in[PAST_VALUE];
    if (has_past != has_past_value)
        return po_rule_bad(infer->ctx, infer->node, "past_key and past_value go together");
    s->past = !has_past ? PO_DIM(0) : past && past->rank == 4 ? past->dims[2] : PO_DIM_UNKNOWN;
    s->total = po_size_add(infer->arena, s->past, s->kv_len);
    PO_TRY(expect(infer, PAST_KEY, 4, (po_dim[]){s->batch, s->kv_heads, s->past, s->head}));
    PO_TRY(expect(infer, PAST_VALUE, 4, (po_dim[]){s->batch, s->kv_heads, s->past, s->v_head}));
    PO_TRY(expect(infer, NONPAD, 1, &s->batch));
    return check_mask(infer, s);
}

po_status po_infer_attention(po_infer *infer) {
    sizes s;
    bool known;
    for (uint32_t k = 0; k < infer->n_out; k++)
        po_infer_set_unranked(infer, k, po_infer_dtype(infer, k == 2 ? V : k == 1 ? K : Q));
    PO_TRY(read_sizes(infer, &s, &known));
    if (!known)
        return PO_OK;
    po_dtype dtype = po_infer_dtype(infer, Q);
    if (s.flat) {
        po_dim *y = po_rule_out(infer, 0, dtype, 3);
        y[0] = s.batch;
        y[1] = s.q_len;
        y[2] = po_size_mul(infer->arena, s.q_heads, s.v_head);
    } else {
        memcpy(po_rule_out(infer, 0, dtype, 4), (po_dim[]){s.batch, s.q_heads, s.q_len, s.v_head},
               4 * sizeof(po_dim));
    }
    memcpy(po_rule_out(infer, 1, po_infer_dtype(infer, K), 4),
           (po_dim[]){s.batch, s.kv_heads, s.total, s.head}, 4 * sizeof(po_dim));
    memcpy(po_rule_out(infer, 2, po_infer_dtype(infer, V), 4),
           (po_dim[]){s.batch, s.kv_heads, s.total, s.v_head}, 4 * sizeof(po_dim));
    memcpy(po_rule_out(infer, 3, dtype, 4), (po_dim[]){s.batch, s.q_heads, s.q_len, s.total},
           4 * sizeof(po_dim));
    return PO_OK;
}

/* --- reference --- */

/* Heads as rows of their own: [batch, heads, past + len, size]. */
static double *gather_heads(po_ref *ref, const po_array *x, const po_array *past, bool flat,
                            int64_t heads, int64_t len, int64_t size) {
    int64_t batch = x->dims[0], before = past ? past->dims[2] : 0, total = before + len;
    double *out = PO_NEW_N(ref->arena, double, batch *heads *total *size);
    for (int64_t b = 0; b < batch; b++)
        for (int64_t h = 0; h < heads; h++) {
            double *to = out + (b * heads + h) * total * size;
            if (before)
                memcpy(to, past->f + (b * heads + h) * before * size,
                       (size_t)(before * size) * sizeof *to);
            for (int64_t t = 0; t < len; t++) {
                int64_t from = flat ? (b * len + t) * heads + h : (b * heads + h) * len + t;
                memcpy(to + (before + t) * size, x->f + from * size, (size_t)size * sizeof *to);
            }
        }
    return out;
}

/* What the mask adds at a place: 0, minus infinity, or its value. */
static double mask_at(const po_array *mask, int64_t b, int64_t h, int64_t q, int64_t t) {
    int64_t index[4] = {b, h, q, t}, at = 0;
    if (!mask)
        return 0;
    if (t >= mask->dims[mask->rank - 1])
        return -INFINITY;
    for (uint32_t k = 0; k < mask->rank; k++) {
        bool last = k == mask->rank - 1;
        int64_t i = index[4 - mask->rank + k];
        at = at * mask->dims[k] + (mask->dims[k] == 1 && !last ? 0 : i);
    }
    return mask->f ? mask->f[at] : mask->i[at] ? 0.0 : -INFINITY;
}

static void softmax(double *x, int64_t n) {
    double top = -INFINITY, sum = 0;
    for (int64_t i = 0; i < n; i++)
        top = x[i] > top ? x[i] : top;
    for (int64_t i = 0; i < n; i++) {
        x[i] = exp(x[i] - top);
        sum += x[i];
    }
    for (int64_t i = 0; i < n; i++)
        x[i] /= sum;
}

typedef struct options {
    double scale, softcap;
    bool causal;
    int64_t mode;
} options;

/* One head: scores [q_len, total] from products to probabilities; `kept` gets the stage that the
 * fourth output shows. */
static void weigh(po_ref *ref, const options *o, int64_t b, int64_t h, int64_t q_len, int64_t total,
                  int64_t past, double *scores, double *kept) {
    const po_array *mask = po_ref_in(ref, MASK), *nonpad = po_ref_in(ref, NONPAD);
    size_t row = (size_t)total * sizeof *scores;
    for (int64_t q = 0; q < q_len; q++, scores += total) {
        double *keep = kept ? kept + q * total : NULL;
        if (keep && o->mode == 0)
            memcpy(keep, scores, row);
        for (int64_t t = 0; t < total && o->softcap > 0; t++)
            scores[t] = tanh(scores[t] / o->softcap) * o->softcap;
        if (keep && o->mode == 1)
            memcpy(keep, scores, row);
        for (int64_t t = 0; t < total; t++) {
            double bias = mask_at(mask, b, h, q, t);
            if ((o->causal && t > past + q) || (nonpad && t >= nonpad->i[b]))
                bias = -INFINITY;
            scores[t] += bias;
        }
        if (keep && o->mode == 2)
            memcpy(keep, scores, row);
        softmax(scores, total);
        if (keep && o->mode == 3)
            memcpy(keep, scores, row);
    }
}

po_status po_ref_attention(po_ref *ref) {
    for (uint32_t k = 0; k < ref->n_out; k++)
        ref->out[k] = NULL;
    PO_TRY(po_rule_outputs(ref));
    po_type *types = PO_NEW_N(ref->arena, po_type, ref->n_out);
    po_infer infer;
    sizes s;
    bool known;
    PO_TRY(po_rule_infer_of(ref, types, &infer));
    PO_TRY(read_sizes(&infer, &s, &known));
    const po_array *mask = po_ref_in(ref, MASK), *nonpad = po_ref_in(ref, NONPAD);
    if (!known || !po_rule_floats(ref, Q, V) || !po_rule_floats(ref, PAST_KEY, PAST_VALUE) ||
        (mask && mask->s) || (nonpad && !nonpad->i))
        return PO_UNSUPPORTED;
    int64_t batch = s.batch.value, hq = s.q_heads.value, hk = s.kv_heads.value, d = s.head.value;
    int64_t n = s.q_len.value, total = s.total.value, dv = s.v_head.value, past = s.past.value;
    int64_t work;
    if (!po_mul_i64(n, total, &work) || work > PO_REF_MAX_COUNT)
        return PO_UNSUPPORTED;
    options o = {.scale = (double)po_node_float(ref->node, "scale", 1.0f),
                 .softcap = (double)po_op_float(ref->graph, ref->node, "softcap"),
                 .causal = po_op_int(ref->graph, ref->node, "is_causal") != 0,
                 .mode = po_op_int(ref->graph, ref->node, "qk_matmul_output_mode")};
    if (!po_node_attr(ref->node, "scale") && d)
        o.scale = 1.0 / sqrt((double)d);
    double *q = gather_heads(ref, ref->in[Q], NULL, s.flat, hq, n, d);
    double *k =
        gather_heads(ref, ref->in[K], po_ref_in(ref, PAST_KEY), s.flat, hk, s.kv_len.value, d);
    double *v =
        gather_heads(ref, ref->in[V], po_ref_in(ref, PAST_VALUE), s.flat, hk, s.kv_len.value, dv);
    double *scores = PO_NEW_N(ref->arena, double, n *total);
    double *y = PO_NEW_N(ref->arena, double, n *dv);
    for (int64_t i = 0; i < batch * hq * n * d; i++)
        q[i] *= o.scale;
    for (int64_t b = 0; b < batch; b++)
        for (int64_t h = 0; h < hq; h++) {
            int64_t kv = b * hk + h / (hq / hk);
            memset(scores, 0, (size_t)(n * total) * sizeof *scores);
            memset(y, 0, (size_t)(n * dv) * sizeof *y);
            po_gemm(n, total, d, q + (b * hq + h) * n * d, d, 1, k + kv * total * d, 1, d, scores,
                    total);
            double *kept =
                ref->n_out > 3 && ref->out[3] ? ref->out[3]->f + (b * hq + h) * n * total : NULL;
            weigh(ref, &o, b, h, n, total, past, scores, kept);
            po_gemm(n, dv, total, scores, total, 1, v + kv * total * dv, dv, 1, y, dv);
            for (int64_t t = 0; ref->out[0] && t < n; t++)
                memcpy(ref->out[0]->f + (s.flat ? (b * n + t) * hq + h : (b * hq + h) * n + t) * dv,
                       y + t * dv, (size_t)dv * sizeof *y);
        }
    if (ref->n_out > 1 && ref->out[1])
        memcpy(ref->out[1]->f, k, (size_t)ref->out[1]->count * sizeof *k);
    if (ref->n_out > 2 && ref->out[2])
        memcpy(ref->out[2]->f, v, (size_t)ref->out[2]->count * sizeof *v);
    return PO_OK;
}

/* --- attributes --- */

const po_attr_def po_attrs_attention[] = {
    {.name = "is_causal", .kind = PO_ATTR_INT, .since = 23, .has_default = true, .i = 0},
    {.name = "kv_num_heads", .kind = PO_ATTR_INT, .since = 23},
    {.name = "q_num_heads", .kind = PO_ATTR_INT, .since = 23},
    {.name = "qk_matmul_output_mode",
     .kind = PO_ATTR_INT,
     .since = 23,
     .has_default = true,
     .i = 0},
    {.name = "scale", .kind = PO_ATTR_FLOAT, .since = 23},
    {.name = "softcap", .kind = PO_ATTR_FLOAT, .since = 23, .has_default = true, .f = 0.0f},
    {.name = "softmax_precision", .kind = PO_ATTR_INT, .since = 23},
    {0},
};

/* RotaryEmbedding (opset 23). */
#include "ops/rule.h"

typedef struct rotary {
    int64_t batch, seq, heads, size, turned; /* turned: how much of a head is rotated */
    bool heads_first;                        /* rank 4: [batch, heads, seq, size] */
} rotary;

static po_status head_count(po_ctx *ctx, const po_graph *graph, const po_node *node, uint32_t rank,
                            int64_t hidden, int64_t *heads) {
    *heads = po_op_int(graph, node, "num_heads");
    if (rank == 3 && (*heads < 1 || (hidden >= 0 && hidden % *heads != 0)))
        return po_rule_bad(ctx, node, "num_heads %lld does not divide the hidden size",
                           (long long)*heads);
    return PO_OK;
}

po_status po_infer_rotary_embedding(po_infer *infer) {
    const po_type *x = po_rule_ranked(infer, 0);
    int64_t heads;
    po_infer_set_as(infer, 0, po_infer_dtype(infer, 0), x);
    if (!x)
        return PO_OK;
    if (x->rank != 3 && x->rank != 4)
        return po_rule_bad(infer->ctx, infer->node, "input must have rank 3 or 4 (found %u)",
                           x->rank);
    return head_count(infer->ctx, infer->graph, infer->node, x->rank, x->dims[x->rank - 1].value,
                      &heads);
}

static po_status read_rotary(po_ref *ref, rotary *r) {
    const po_array *x = ref->in[0], *ids = po_ref_in(ref, 3);
    r->heads_first = x->rank == 4;
    r->batch = x->dims[0];
    r->seq = x->dims[r->heads_first ? 2 : 1];
    if (r->heads_first) {
        r->heads = x->dims[1];
        r->size = x->dims[3];
    } else {
        PO_TRY(head_count(ref->ctx, ref->graph, ref->node, 3, x->dims[2], &r->heads));
        r->size = x->dims[2] / r->heads;
    }
    r->turned = po_op_int(ref->graph, ref->node, "rotary_embedding_dim");
    if (r->turned == 0)
        r->turned = r->size;
    if (r->turned < 0 || r->turned > r->size || r->turned % 2 != 0)
        return po_rule_bad(ref->ctx, ref->node, "rotary_embedding_dim is out of range (%lld)",
                           (long long)r->turned);
    for (uint32_t k = 1; k < 3; k++) {
        const po_array *cache = ref->in[k];
        bool fits =
            ids ? cache->rank == 2 && ids->rank == 2 && ids->dims[0] == r->batch &&
                      ids->dims[1] == r->seq && ids->i
                : cache->rank == 3 && cache->dims[0] == r->batch && cache->dims[1] == r->seq;
        if (!fits || cache->dims[cache->rank - 1] != r->turned / 2 ||
            cache->dims[0] != ref->in[1]->dims[0])
            return po_rule_bad(ref->ctx, ref->node, "the caches do not fit the input");
    }
    return PO_OK;
}

po_status po_ref_rotary_embedding(po_ref *ref) {
    rotary r;
    PO_TRY(po_rule_outputs(ref));
    const po_array *x = ref->in[0], *cosines = ref->in[1], *sines = ref->in[2];
    const po_array *ids = po_ref_in(ref, 3), *out = ref->out[0];
    if (!po_rule_floats(ref, 0, 2))
        return PO_UNSUPPORTED;
    PO_TRY(read_rotary(ref, &r));
    bool interleaved = po_op_int(ref->graph, ref->node, "interleaved") != 0;
    int64_t half = r.turned / 2;
    memcpy(out->f, x->f, (size_t)x->count * sizeof *x->f);
    for (int64_t b = 0; b < r.batch; b++)
        for (int64_t t = 0; t < r.seq; t++) {
            int64_t row = b * r.seq + t;
            if (ids)
                PO_TRY(po_rule_index(ref, ids->i[b * r.seq + t], cosines->dims[0], &row));
            for (int64_t h = 0; h < r.heads; h++) {
                int64_t at = (r.heads_first ? (b * r.heads + h) * r.seq + t
                                            : (b * r.seq + t) * r.heads + h) *
                             r.size;
                for (int64_t k = 0; k < half; k++) {
                    double c = cosines->f[row * half + k], s = sines->f[row * half + k];
                    int64_t i = at + (interleaved ? 2 * k : k);
                    int64_t j = interleaved ? i + 1 : i + half;
                    out->f[i] = c * x->f[i] - s * x->f[j];
                    out->f[j] = s * x->f[i] + c * x->f[j];
                }
            }
        }
    return PO_OK;
}

/* --- attributes --- */

const po_attr_def po_attrs_rotary_embedding[] = {
    {.name = "interleaved", .kind = PO_ATTR_INT, .since = 23, .has_default = true, .i = 0},
    {.name = "num_heads", .kind = PO_ATTR_INT, .since = 23},
    {.name = "rotary_embedding_dim", .kind = PO_ATTR_INT, .since = 23, .has_default = true, .i = 0},
    {0},
};

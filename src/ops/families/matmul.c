/* MatMul and Gemm. */
#include "ops/kernels.h"
#include "ops/rule.h"

/* --- MatMul --- */

/* A vector operand is a matrix with an axis of 1 that the result does not have. */
po_status po_infer_matmul(po_infer *infer) {
    const po_type *a = po_rule_ranked(infer, 0), *b = po_rule_ranked(infer, 1);
    po_dtype dtype = po_infer_dtype(infer, 0);
    po_infer_set_unranked(infer, 0, dtype != PO_DT_NONE ? dtype : po_infer_dtype(infer, 1));
    if (!a || !b)
        return PO_OK;
    if (a->rank == 0 || b->rank == 0)
        return po_rule_bad(infer->ctx, infer->node, "an operand has rank 0");
    bool row = a->rank == 1, column = b->rank == 1;
    po_dim inner;
    PO_TRY(po_rule_same_dim(infer, a->dims[a->rank - 1], b->dims[column ? 0 : b->rank - 2],
                            "inner dims", &inner));
    uint32_t na = row ? 0 : a->rank - 2, nb = column ? 0 : b->rank - 2, n = na > nb ? na : nb;
    po_dim *dims = po_rule_out(infer, 0, infer->out[0].dtype, n + !row + !column);
    for (uint32_t k = 0; k < n; k++) {
        po_dim da = k + na >= n ? a->dims[k + na - n] : PO_DIM(1);
        po_dim db = k + nb >= n ? b->dims[k + nb - n] : PO_DIM(1);
        PO_TRY(po_rule_broadcast_dim(infer, da, db, &dims[k]));
    }
    if (!row)
        dims[n++] = a->dims[a->rank - 2];
    if (!column)
        dims[n] = b->dims[b->rank - 1];
    return PO_OK;
}

/* Two's complement product of integer matrices, row-major. */
static void gemm_int(int64_t m, int64_t n, int64_t k, const int64_t *a, const int64_t *b,
                     int64_t *c) {
    for (int64_t y = 0; y < m; y++)
        for (int64_t i = 0; i < k; i++) {
            uint64_t v = (uint64_t)a[y * k + i];
            for (int64_t x = 0; x < n; x++)
                c[y * n + x] = (int64_t)((uint64_t)c[y * n + x] + v * (uint64_t)b[i * n + x]);
        }
}

po_status po_ref_matmul(po_ref *ref) {
    PO_TRY(po_rule_outputs(ref));
    const po_array *a = ref->in[0], *b = ref->in[1], *out = ref->out[0];
    if (a->s || a->dtype != b->dtype)
        return PO_UNSUPPORTED;
    bool row = a->rank == 1, column = b->rank == 1;
    uint32_t na = row ? 0 : a->rank - 2, nb = column ? 0 : b->rank - 2;
    uint32_t batch = out->rank - !row - !column;
    int64_t m = row ? 1 : a->dims[a->rank - 2], k = a->dims[a->rank - 1];
    int64_t n = column ? 1 : b->dims[b->rank - 1];
    int64_t index[PO_MAX_RANK] = {0}, at = 0;
    if (out->count == 0)
        return PO_OK;
    do {
        int64_t ia = 0, ib = 0;
        for (uint32_t d = 0; d < na; d++)
            ia = ia * a->dims[d] + (a->dims[d] == 1 ? 0 : index[batch - na + d]);
        for (uint32_t d = 0; d < nb; d++)
            ib = ib * b->dims[d] + (b->dims[d] == 1 ? 0 : index[batch - nb + d]);
        if (a->f)
            po_gemm(m, n, k, a->f + ia * m * k, k, 1, b->f + ib * k * n, n, 1, out->f + at * m * n,
                    n);
        else
            gemm_int(m, n, k, a->i + ia * m * k, b->i + ib * k * n, out->i + at * m * n);
        at++;
    } while (po_next_index(batch, out->dims, index));
    return PO_OK;
}

/* --- Gemm --- */

po_status po_infer_gemm(po_infer *infer) {
    const po_type *a = po_rule_ranked(infer, 0), *b = po_rule_ranked(infer, 1);
    const po_type *c = po_rule_ranked(infer, 2);
    bool ta = po_op_int(infer->graph, infer->node, "transA") != 0;
    bool tb = po_op_int(infer->graph, infer->node, "transB") != 0;
    po_dim *dims = po_rule_out(infer, 0, po_infer_dtype(infer, 0), 2), inner;
    if ((a && a->rank != 2) || (b && b->rank != 2))
        return po_rule_bad(infer->ctx, infer->node, "operands must have rank 2 (found %u and %u)",
                           a ? a->rank : 2, b ? b->rank : 2);
    if (a && b)
        PO_TRY(po_rule_same_dim(infer, a->dims[!ta], b->dims[tb], "inner dims", &inner));
    if (a)
        dims[0] = a->dims[ta];
    if (b)
        dims[1] = b->dims[!tb];
    if (c && c->rank > 2)
        return po_rule_bad(infer->ctx, infer->node, "C has too large a rank (%u)", c->rank);
    /* Before opset 7 C is aligned as `broadcast` and `axis` say; the runtime reads the same. */
    for (uint32_t k = 0; c && k < c->rank; k++) {
        po_dim have = c->dims[k], want = dims[2 - c->rank + k];
        if (have.value >= 0 && have.value != 1 && want.value >= 0 && have.value != want.value)
            return po_rule_bad(infer->ctx, infer->node, "C does not broadcast (%lld and %lld)",
                               (long long)have.value, (long long)want.value);
    }
    return PO_OK;
}

/* out = beta * C, broadcast; integers as doubles. */
static void start_with_c(const po_array *c, double beta, const po_array *out) {
    int64_t m = out->dims[0], n = out->dims[1];
    int64_t row = c->rank == 2 && c->dims[0] != 1 ? c->dims[1] : 0;
    int64_t column = c->rank >= 1 && c->dims[c->rank - 1] != 1;
    for (int64_t y = 0; y < m; y++)
        for (int64_t x = 0; x < n; x++)
            out->f[y * n + x] = beta * c->f[y * row + x * column];
}

po_status po_ref_gemm(po_ref *ref) {
    PO_TRY(po_rule_outputs(ref));
    const po_array *a = ref->in[0], *b = ref->in[1], *c = po_ref_in(ref, 2), *out = ref->out[0];
    if (!po_rule_floats(ref, 0, 2))
        return PO_UNSUPPORTED;
    bool ta = po_op_int(ref->graph, ref->node, "transA") != 0;
    bool tb = po_op_int(ref->graph, ref->node, "transB") != 0;
    double alpha = (double)po_op_float(ref->graph, ref->node, "alpha");
    double beta = (double)po_op_float(ref->graph, ref->node, "beta");
    int64_t m = out->dims[0], n = out->dims[1], k = a->dims[!ta];
    if (out->count == 0)
        return PO_OK;
    const double *scaled = a->f;
    if (alpha != 1.0) {
        double *s = PO_NEW_N(ref->arena, double, a->count);
        for (int64_t i = 0; i < a->count; i++)
            s[i] = alpha * a->f[i];
        scaled = s;
    }
    if (c && c->count)
        start_with_c(c, beta, out);
    po_gemm(m, n, k, scaled, ta ? 1 : a->dims[1], ta ? a->dims[1] : 1, b->f, tb ? 1 : b->dims[1],
            tb ? b->dims[1] : 1, out->f, n);
    return PO_OK;
}

/* --- attributes --- */

const po_attr_def po_attrs_gemm[] = {
    {.name = "alpha", .kind = PO_ATTR_FLOAT, .since = 1, .has_default = true, .f = 1.0f},
    {.name = "beta", .kind = PO_ATTR_FLOAT, .since = 1, .has_default = true, .f = 1.0f},
    {.name = "broadcast", .kind = PO_ATTR_INT, .since = 1, .until = 6, .has_default = true, .i = 0},
    {.name = "transA", .kind = PO_ATTR_INT, .since = 1, .has_default = true, .i = 0},
    {.name = "transB", .kind = PO_ATTR_INT, .since = 1, .has_default = true, .i = 0},
    {0},
};

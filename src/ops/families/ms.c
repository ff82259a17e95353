/* com.microsoft: what the transformer tools of ONNX Runtime write. */
#include "ops/broadcast.h"
#include "ops/families/rules.h"
#include "ops/shape.h"

#include <math.h>

/* --- BiasGelu, FastGelu --- */

po_status po_infer_ms_gelu_bias(po_infer *infer) {
    return po_infer_unary(infer);
}

po_status po_ref_ms_gelu_bias(po_ref *ref) {
    const po_array *x = ref->in[0], *bias = po_ref_in(ref, 1);
    bool fast = ref->node->op == PO_OP_MS_FastGelu;
    po_array *y;
    int64_t n = x->rank ? x->dims[x->rank - 1] : 1;
    if (!x->f || (bias && (!bias->f || bias->rank != 1 || bias->count != n)))
        return PO_UNSUPPORTED;
    PO_TRY(po_ref_out(ref, 0, x->dtype, x->rank, x->dims, &y));
    for (int64_t k = 0; k < x->count; k++) {
        double v = x->f[k] + (bias ? bias->f[k % n] : 0);
        y->f[k] = fast ? 0.5 * v * (1.0 + tanh(sqrt(2.0 / M_PI) * (v + 0.044715 * v * v * v)))
                       : 0.5 * v * (1.0 + erf(v / sqrt(2.0)));
    }
    return PO_OK;
}

/* --- SkipLayerNormalization, SkipSimplifiedLayerNormalization --- */

/* Outputs: the result, mean, inverse deviation (both only in training), and the sum. */
po_status po_infer_ms_skip_norm(po_infer *infer) {
    po_dtype dtype = po_infer_dtype(infer, 0);
    po_infer_set_like(infer, 0, dtype);
    po_infer_set_like(infer, 3, dtype);
    return PO_OK;
}

po_status po_ref_ms_skip_norm(po_ref *ref) {
    const po_array *x = ref->in[0], *skip = ref->in[1], *gamma = ref->in[2];
    bool rms = ref->node->op == PO_OP_MS_SkipSimplifiedLayerNormalization;
    const po_array *beta = rms ? NULL : po_ref_in(ref, 3), *bias = po_ref_in(ref, rms ? 3 : 4);
    double epsilon = (double)po_op_float(ref->graph, ref->node, "epsilon");
    int64_t n = x->rank ? x->dims[x->rank - 1] : 0;
    po_array *y, *sum;
    if (!x->f || !skip->f || skip->count != x->count || n == 0 || !gamma->f || gamma->count != n ||
        (beta && (!beta->f || beta->count != n)) || (bias && (!bias->f || bias->count != n)) ||
        po_ref_wants(ref, 1) || po_ref_wants(ref, 2))
        return PO_UNSUPPORTED;
    PO_TRY(po_ref_out(ref, 0, x->dtype, x->rank, x->dims, &y));
    PO_TRY(po_ref_make(ref, x->dtype, x->rank, x->dims, &sum));
    if (ref->n_out > 3)
        ref->out[3] = sum;
    for (int64_t k = 0; k < x->count; k++)
        sum->f[k] = x->f[k] + skip->f[k] + (bias ? bias->f[k % n] : 0);
    for (int64_t row = 0; row < x->count; row += n) {
        double mean = 0, square = 0;
        for (int64_t i = 0; i < n && !rms; i++)
            mean += sum->f[row + i] / (double)n;
        for (int64_t i = 0; i < n; i++)
            square += (sum->f[row + i] - mean) * (sum->f[row + i] - mean) / (double)n;
        for (int64_t i = 0; i < n; i++)
            y->f[row + i] = (sum->f[row + i] - mean) / sqrt(square + epsilon) * gamma->f[i] +
                            (beta ? beta->f[i] : 0);
    }
    return PO_OK;
}

/* --- FusedMatMul: alpha * A * B, either transposed first --- */

static po_status flags(const po_graph *graph, const po_node *node, bool *ta, bool *tb) {
    *ta = po_op_int(graph, node, "transA") != 0;
    *tb = po_op_int(graph, node, "transB") != 0;
    return po_op_int(graph, node, "transBatchA") || po_op_int(graph, node, "transBatchB")
               ? PO_UNSUPPORTED
               : PO_OK;
}

static po_node as_matmul(const po_node *node) {
    po_node plain = *node;
    plain.op = PO_OP_MatMul;
    plain.op_type = "MatMul";
    plain.domain = "";
    return plain;
}

/* Swaps the last two dims; vectors stay. */
static po_type swapped(po_arena *arena, const po_type *t) {
    po_type s = *t;
    if (!t->has_rank || t->rank < 2)
        return s;
    po_dim *dims = po_arena_memdup(arena, t->dims, t->rank * sizeof *dims);
    dims[t->rank - 2] = t->dims[t->rank - 1];
    dims[t->rank - 1] = t->dims[t->rank - 2];
    s.dims = dims;
    return s;
}

po_status po_infer_ms_fusedmatmul(po_infer *infer) {
    bool trans[2];
    PO_TRY(flags(infer->graph, infer->node, &trans[0], &trans[1]));
    po_type types[2];
    const po_type *in[2];
    for (int k = 0; k < 2; k++) {
        in[k] = infer->in[k];
        if (in[k] && trans[k]) {
            types[k] = swapped(infer->arena, in[k]);
            in[k] = &types[k];
        }
    }
    po_node node = as_matmul(infer->node);
    po_infer plain = *infer;
    plain.node = &node;
    plain.in = in;
    return po_infer_matmul(&plain);
}

static po_status swapped_array(po_ref *ref, const po_array *x, const po_array **out) {
    int64_t dims[PO_MAX_RANK];
    po_array *y;
    if (x->rank < 2 || !x->f)
        return PO_UNSUPPORTED;
    memcpy(dims, x->dims, x->rank * sizeof *dims);
    int64_t rows = dims[x->rank - 2], columns = dims[x->rank - 1];
    dims[x->rank - 2] = columns;
    dims[x->rank - 1] = rows;
    PO_TRY(po_ref_make(ref, x->dtype, x->rank, dims, &y));
    for (int64_t k = 0; k < x->count; k++) {
        int64_t c = k % columns, r = k / columns % rows;
        y->f[k / (rows * columns) * rows * columns + c * rows + r] = x->f[k];
    }
    *out = y;
    return PO_OK;
}

po_status po_ref_ms_fusedmatmul(po_ref *ref) {
    const po_array *in[] = {ref->in[0], ref->in[1]};
    double alpha = (double)po_op_float(ref->graph, ref->node, "alpha");
    bool ta, tb;
    PO_TRY(flags(ref->graph, ref->node, &ta, &tb));
    if (!in[0]->f || !in[1]->f)
        return PO_UNSUPPORTED;
    if (ta)
        PO_TRY(swapped_array(ref, in[0], &in[0]));
    if (tb)
        PO_TRY(swapped_array(ref, in[1], &in[1]));
    po_node node = as_matmul(ref->node);
    po_ref plain = *ref;
    plain.node = &node;
    plain.in = in;
    PO_TRY(po_ref_matmul(&plain));
    for (int64_t k = 0; ref->out[0] && k < ref->out[0]->count; k++)
        ref->out[0]->f[k] *= alpha;
    return PO_OK;
}

/* --- attributes --- */

const po_attr_def po_attrs_ms_skip_norm[] = {
    {.name = "epsilon", .kind = PO_ATTR_FLOAT, .since = 1, .has_default = true, .f = 1e-12f},
    {0},
};
const po_attr_def po_attrs_ms_skip_rms[] = {
    {.name = "epsilon", .kind = PO_ATTR_FLOAT, .since = 1, .required = true},
    {0},
};
const po_attr_def po_attrs_ms_fusedmatmul[] = {
    {.name = "alpha", .kind = PO_ATTR_FLOAT, .since = 1, .has_default = true, .f = 1.0f},
    {.name = "transA", .kind = PO_ATTR_INT, .since = 1, .has_default = true, .i = 0},
    {.name = "transB", .kind = PO_ATTR_INT, .since = 1, .has_default = true, .i = 0},
    {.name = "transBatchA", .kind = PO_ATTR_INT, .since = 1, .has_default = true, .i = 0},
    {.name = "transBatchB", .kind = PO_ATTR_INT, .since = 1, .has_default = true, .i = 0},
    {0},
};

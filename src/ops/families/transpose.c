/* Operators that permute elements: Transpose, DepthToSpace, SpaceToDepth, ReverseSequence. */
#include "ir/size.h"
#include "ops/rule.h"

/* --- Transpose --- */

static po_status permutation(po_ctx *ctx, const po_node *node, uint32_t rank, uint32_t *perm) {
    uint32_t n;
    const int64_t *given = po_node_ints(node, "perm", &n);
    bool seen[PO_MAX_RANK] = {false};
    for (uint32_t i = 0; i < rank; i++)
        perm[i] = rank - 1 - i;
    if (!given)
        return PO_OK;
    if (n != rank)
        return po_rule_bad(ctx, node, "perm has %u items (rank %u)", n, rank);
    for (uint32_t i = 0; i < rank; i++) {
        if (given[i] < 0 || given[i] >= (int64_t)rank || seen[given[i]])
            return po_rule_bad(ctx, node, "perm is not a permutation (item %u is %lld)", i,
                               (long long)given[i]);
        seen[given[i]] = true;
        perm[i] = (uint32_t)given[i];
    }
    return PO_OK;
}

po_status po_infer_transpose(po_infer *infer) {
    const po_type *in = po_rule_ranked(infer, 0);
    uint32_t perm[PO_MAX_RANK];
    if (!in || in->rank > PO_MAX_RANK) {
        po_infer_set_unranked(infer, 0, po_infer_dtype(infer, 0));
        return PO_OK;
    }
    PO_TRY(permutation(infer->ctx, infer->node, in->rank, perm));
    po_dim *dims = po_rule_out(infer, 0, in->dtype, in->rank);
    for (uint32_t i = 0; i < in->rank; i++)
        dims[i] = in->dims[perm[i]];
    if (in->rank <= 1)
        infer->out_partial[0] = infer->partial[0];
    return PO_OK;
}

po_status po_ref_transpose(po_ref *ref) {
    PO_TRY(po_rule_outputs(ref));
    const po_array *in = ref->in[0], *out = ref->out[0];
    uint32_t perm[PO_MAX_RANK];
    int64_t from[PO_MAX_RANK], strides[PO_MAX_RANK];
    PO_TRY(permutation(ref->ctx, ref->node, in->rank, perm));
    po_rule_strides(in->rank, in->dims, from);
    for (uint32_t i = 0; i < in->rank; i++)
        strides[i] = from[perm[i]];
    po_move(po_rule_data(out), po_rule_data(in), po_rule_width(in), out->rank, out->dims, 0,
            strides);
    return PO_OK;
}

/* --- DepthToSpace and SpaceToDepth --- */

static po_status block_of(const po_infer *infer, int64_t *block) {
    *block = po_op_int(infer->graph, infer->node, "blocksize");
    if (*block <= 0 || *block > INT32_MAX)
        return po_rule_bad(infer->ctx, infer->node, "blocksize must be positive (found %lld)",
                           (long long)*block);
    return PO_OK;
}

static po_status four_dims(const po_infer *infer, const po_type **in) {
    *in = po_rule_ranked(infer, 0);
    if (*in && (*in)->rank != 4)
        return po_rule_bad(infer->ctx, infer->node, "input must have rank 4 (found %u)",
                           (*in)->rank);
    return PO_OK;
}

static po_status divide(const po_infer *infer, po_dim d, int64_t by, po_dim *quotient) {
    /* It divides, or the model does not run. */
    *quotient = po_size_floor(infer->arena, d, 0, by);
    if (d.value >= 0) {
        if (d.value % by != 0)
            return po_rule_bad(infer->ctx, infer->node, "a dim of %lld does not divide by %lld",
                               (long long)d.value, (long long)by);
        *quotient = PO_DIM(d.value / by);
    }
    return PO_OK;
}

po_status po_infer_depth_to_space(po_infer *infer) {
    const po_type *in;
    int64_t b;
    PO_TRY(block_of(infer, &b));
    PO_TRY(four_dims(infer, &in));
    po_dim *dims = po_rule_out(infer, 0, po_infer_dtype(infer, 0), 4);
    if (!in)
        return PO_OK;
    dims[0] = in->dims[0];
    PO_TRY(divide(infer, in->dims[1], b * b, &dims[1]));
    dims[2] = po_size_times(infer->arena, in->dims[2], b);
    dims[3] = po_size_times(infer->arena, in->dims[3], b);
    return PO_OK;
}

po_status po_infer_space_to_depth(po_infer *infer) {
    const po_type *in;
    int64_t b;
    PO_TRY(block_of(infer, &b));
    PO_TRY(four_dims(infer, &in));
    po_dim *dims = po_rule_out(infer, 0, po_infer_dtype(infer, 0), 4);
    if (!in)
        return PO_OK;
    dims[0] = in->dims[0];
    dims[1] = po_size_times(infer->arena, in->dims[1], b * b);
    PO_TRY(divide(infer, in->dims[2], b, &dims[2]));
    PO_TRY(divide(infer, in->dims[3], b, &dims[3]));
    return PO_OK;
}

/* Reads `in` as six digits of the lengths given and writes them in the order given. */
static void move_digits(const po_array *out, const po_array *in, const int64_t *digits,
                        const uint32_t *order) {
    int64_t from[6], dims[6], strides[6];
    po_rule_strides(6, digits, from);
    for (int k = 0; k < 6; k++) {
        dims[k] = digits[order[k]];
        strides[k] = from[order[k]];
    }
    po_move(po_rule_data(out), po_rule_data(in), po_rule_width(in), 6, dims, 0, strides);
}

po_status po_ref_depth_to_space(po_ref *ref) {
    PO_TRY(po_rule_outputs(ref));
    const po_array *in = ref->in[0], *out = ref->out[0];
    int64_t b = po_op_int(ref->graph, ref->node, "blocksize");
    bool crd = po_rule_mode(ref->graph, ref->node, "mode", "CRD");
    int64_t n = out->dims[0], c = out->dims[1], h = in->dims[2], w = in->dims[3];
    if (crd)
        move_digits(out, in, (int64_t[]){n, c, b, b, h, w}, (uint32_t[]){0, 1, 4, 2, 5, 3});
    else
        move_digits(out, in, (int64_t[]){n, b, b, c, h, w}, (uint32_t[]){0, 3, 4, 1, 5, 2});
    return PO_OK;
}

po_status po_ref_space_to_depth(po_ref *ref) {
    PO_TRY(po_rule_outputs(ref));
    const po_array *in = ref->in[0], *out = ref->out[0];
    int64_t b = po_op_int(ref->graph, ref->node, "blocksize");
    int64_t n = in->dims[0], c = in->dims[1], h = out->dims[2], w = out->dims[3];
    move_digits(out, in, (int64_t[]){n, c, h, b, w, b}, (uint32_t[]){0, 3, 5, 1, 2, 4});
    return PO_OK;
}

/* --- ReverseSequence --- */

static po_status sequence_axes(po_ctx *ctx, const po_graph *graph, const po_node *node,
                               uint32_t rank, int64_t *batch, int64_t *time) {
    *batch = po_op_int(graph, node, "batch_axis");
    *time = po_op_int(graph, node, "time_axis");
    if (rank < 2)
        return po_rule_bad(ctx, node, "input must have rank 2 or more (found %u)", rank);
    /* The standard allows no others, but runtimes do not look at both. */
    return *batch < 0 || *batch > 1 || *time != 1 - *batch ? PO_UNSUPPORTED : PO_OK;
}

po_status po_infer_reverse_sequence(po_infer *infer) {
    const po_type *in = po_rule_ranked(infer, 0), *lens = po_rule_ranked(infer, 1);
    int64_t batch, time;
    po_infer_set_as(infer, 0, po_infer_dtype(infer, 0), in);
    if (!in)
        return PO_OK;
    PO_TRY(sequence_axes(infer->ctx, infer->graph, infer->node, in->rank, &batch, &time));
    po_dim ignored;
    if (lens && lens->rank != 1)
        return po_rule_bad(infer->ctx, infer->node, "sequence_lens must have rank 1 (found %u)",
                           lens->rank);
    if (lens)
        PO_TRY(po_rule_same_dim(infer, lens->dims[0], in->dims[batch], "batch sizes", &ignored));
    return PO_OK;
}

po_status po_ref_reverse_sequence(po_ref *ref) {
    PO_TRY(po_rule_outputs(ref));
    const po_array *in = ref->in[0], *lens = po_ref_in(ref, 1), *out = ref->out[0];
    int64_t batch, time, strides[PO_MAX_RANK], inner = 1;
    if (!lens || !lens->i)
        return PO_UNSUPPORTED;
    PO_TRY(sequence_axes(ref->ctx, ref->graph, ref->node, in->rank, &batch, &time));
    po_rule_strides(in->rank, in->dims, strides);
    for (uint32_t k = 2; k < in->rank; k++)
        inner *= in->dims[k];
    size_t width = po_rule_width(in) * (size_t)inner;
    for (int64_t b = 0; b < in->dims[batch]; b++) {
        int64_t len = lens->i[b];
        if (len < 0 || len > in->dims[time])
            return po_rule_bad(ref->ctx, ref->node, "sequence length %lld is out of range",
                               (long long)len);
        for (int64_t t = 0; t < in->dims[time]; t++) {
            int64_t from = t < len ? len - 1 - t : t;
            int64_t to_row = (b * strides[batch] + t * strides[time]) / (inner ? inner : 1);
            int64_t from_row = (b * strides[batch] + from * strides[time]) / (inner ? inner : 1);
            memcpy(po_rule_data(out) + (size_t)to_row * width,
                   po_rule_data(in) + (size_t)from_row * width, width);
        }
    }
    return PO_OK;
}

/* --- attributes --- */

const po_attr_def po_attrs_transpose[] = {
    {.name = "perm", .kind = PO_ATTR_INTS, .since = 1},
    {0},
};

const po_attr_def po_attrs_depth_to_space[] = {
    {.name = "blocksize", .kind = PO_ATTR_INT, .since = 1, .required = true},
    {.name = "mode", .kind = PO_ATTR_STRING, .since = 11, .has_default = true, .s = "DCR"},
    {0},
};

const po_attr_def po_attrs_space_to_depth[] = {
    {.name = "blocksize", .kind = PO_ATTR_INT, .since = 1, .required = true},
    {0},
};

const po_attr_def po_attrs_reverse_sequence[] = {
    {.name = "batch_axis", .kind = PO_ATTR_INT, .since = 10, .has_default = true, .i = 1},
    {.name = "time_axis", .kind = PO_ATTR_INT, .since = 10, .has_default = true, .i = 0},
    {0},
};

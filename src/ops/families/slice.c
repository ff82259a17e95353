/* Slice: starts, ends, axes and steps as attributes (before opset 10) or as inputs. */
#include "ir/size.h"
#include "ops/rule.h"

typedef struct range {
    bool sliced;
    int64_t start, step, count; /* clamped to the dim */
} range;

/* Clamps as the operator does. Any 64-bit start, end and step but step 0; dim >= 0. */
static range clamp_range(int64_t start, int64_t end, int64_t step, int64_t dim) {
    range r = {.sliced = true, .step = step};
    if (dim == 0)
        return r;
    int64_t low = step < 0 ? -1 : 0, high = step < 0 ? dim - 1 : dim;
    start = start < 0 ? start + dim : start;
    end = end < 0 ? end + dim : end;
    start = start < 0 ? 0 : start > high ? high : start;
    end = end < low ? low : end > dim ? dim : end;
    r.start = start;
    if (step > 0 && end > start)
        r.count = 1 + (end - start - 1) / step;
    else if (step < 0 && start > end)
        r.count = 1 + (int64_t)((uint64_t)(start - end - 1) / (0 - (uint64_t)step));
    return r;
}

/* The four lists, read once. */
typedef struct lists {
    const po_contents *starts, *ends;
    const int64_t *axes, *steps; /* NULL: the defaults */
    bool unknown_axes, unknown_steps;
    int64_t n;
} lists;

static const po_contents *exact_list(po_infer *infer, const char *name) {
    uint32_t n;
    const int64_t *v = po_node_ints(infer->node, name, &n);
    if (!v)
        return NULL;
    po_contents *c = PO_NEW(infer->arena, po_contents);
    bool *exact = PO_NEW_N(infer->arena, bool, n);
    memset(exact, 1, n);
    *c = (po_contents){.n = n, .values = v, .exact = exact};
    return c;
}

static po_status read_lists(po_infer *infer, lists *l) {
    bool attrs = infer->opset < 10;
    int64_t n_axes = 0, n_steps = 0;
    *l = (lists){.n = -1};
    l->starts = attrs ? exact_list(infer, "starts") : po_rule_contents(infer, 1);
    l->ends = attrs ? exact_list(infer, "ends") : po_rule_contents(infer, 2);
    po_known axes =
        po_rule_ints(infer, attrs ? "axes" : NULL, attrs ? PO_NONE : 3, &l->axes, &n_axes);
    po_known steps = attrs ? PO_ABSENT : po_rule_ints(infer, NULL, 4, &l->steps, &n_steps);
    l->unknown_axes = axes == PO_NOT_KNOWN;
    l->unknown_steps = steps == PO_NOT_KNOWN;
    if (axes != PO_KNOWN)
        l->axes = NULL;
    if (steps != PO_KNOWN)
        l->steps = NULL;
    l->n = l->starts ? l->starts->n : l->ends ? l->ends->n : axes == PO_KNOWN ? n_axes : -1;
    if ((l->starts && l->starts->n != l->n) || (l->ends && l->ends->n != l->n) ||
        (axes == PO_KNOWN && n_axes != l->n) || (steps == PO_KNOWN && l->n >= 0 && n_steps != l->n))
        return po_rule_bad(infer->ctx, infer->node,
                           "starts, ends, axes and steps differ in length");
    return PO_OK;
}

/* A bound within a length: unknown where neither is a number nor a length. From the end where it is
 * below 0. */
static po_dim bound(po_arena *arena, const po_contents *c, uint32_t i, po_dim dim) {
    if (!c->exact[i])
        return po_size_min(arena, (po_dim){-1, c->symbols[i]}, dim);
    if (c->values[i] >= INT32_MAX)
        return dim;
    if (c->values[i] >= 0)
        return po_size_min(arena, PO_DIM(c->values[i]), dim);
    return po_size_max(arena, po_size_plus(arena, dim, c->values[i]), PO_DIM(0));
}

/* Steps forwards of an axis whose length or bounds are open. */
static po_dim open_length(const po_infer *infer, const lists *l, uint32_t i, int64_t step,
                          po_dim dim) {
    po_arena *arena = infer->arena;
    if (!l->starts || !l->ends || step < 1 ||
        (l->starts->exact[i] && l->starts->values[i] < INT32_MIN))
        return PO_DIM_UNKNOWN;
    po_dim length = bound(arena, l->ends, i, dim);
    const bool from_end = l->starts->exact[i] && l->starts->values[i] < 0;
    if (from_end && l->ends->exact[i] && l->ends->values[i] >= INT32_MAX)
        length = po_size_min(arena, PO_DIM(-l->starts->values[i]), dim);
    else if (!l->starts->exact[i] || l->starts->values[i] != 0)
        length = po_size_max(arena, po_size_sub(arena, length, bound(arena, l->starts, i, dim)),
                             PO_DIM(0));
    return po_size_floor(arena, length, step - 1, step);
}

/* One sliced axis: the new dim, and the range where all of it is known. */
static po_status slice_axis(po_infer *infer, const lists *l, uint32_t i, po_dim dim, po_dim *out,
                            range *r) {
    int64_t step = l->steps ? l->steps[i] : 1;
    *out = PO_DIM_UNKNOWN;
    *r = (range){0};
    if (step == 0)
        return po_rule_bad(infer->ctx, infer->node, "step %u is 0", i);
    bool exact = l->starts && l->ends && l->starts->exact[i] && l->ends->exact[i];
    if (!l->unknown_steps && (!exact || dim.value < 0))
        *out = open_length(infer, l, i, step, dim);
    if (!exact || l->unknown_steps)
        return PO_OK;
    int64_t start = l->starts->values[i], end = l->ends->values[i];
    /* Going backwards to the largest number means two things to two runtimes. */
    if (step < 0 && (end == INT32_MAX || end == INT64_MAX))
        return PO_OK;
    if (dim.value >= 0) {
        *r = clamp_range(start, end, step, dim.value);
        *out = PO_DIM(r->count);
    }
    return PO_OK;
}

/* Fills dims and ranges (`rank` of each); ranges only hold where dims are known. */
static po_status slice_all(po_infer *infer, const po_type *in, po_dim *dims, range *ranges) {
    lists l;
    bool seen[PO_MAX_RANK] = {false};
    PO_TRY(read_lists(infer, &l));
    for (uint32_t k = 0; k < in->rank; k++) {
        dims[k] = l.unknown_axes || l.n < 0 ? PO_DIM_UNKNOWN : in->dims[k];
        ranges[k] = (range){0};
    }
    if (l.unknown_axes || l.n < 0)
        return PO_OK;
    if (l.n > (int64_t)in->rank)
        return po_rule_bad(infer->ctx, infer->node, "%lld axes are sliced, the rank is %u",
                           (long long)l.n, in->rank);
    for (uint32_t i = 0; i < (uint32_t)l.n; i++) {
        uint32_t k;
        PO_TRY(
            po_rule_axis(infer->ctx, infer->node, l.axes ? l.axes[i] : (int64_t)i, in->rank, &k));
        if (seen[k])
            return po_rule_bad(infer->ctx, infer->node, "axis %u is sliced twice", k);
        seen[k] = true;
        PO_TRY(slice_axis(infer, &l, i, in->dims[k], &dims[k], &ranges[k]));
    }
    return PO_OK;
}

po_status po_infer_slice(po_infer *infer) {
    const po_type *in = po_rule_ranked(infer, 0);
    po_infer_set_unranked(infer, 0, po_infer_dtype(infer, 0));
    if (!in || in->rank > PO_MAX_RANK)
        return PO_OK;
    range ranges[PO_MAX_RANK];
    po_dim *dims = po_rule_out(infer, 0, in->dtype, in->rank);
    PO_TRY(slice_all(infer, in, dims, ranges));
    const po_partial *p = infer->partial[0];
    if (p && in->rank == 1 && in->dims[0].value == (int64_t)p->n && ranges[0].sliced) {
        po_dim *items = PO_NEW_N(infer->arena, po_dim, ranges[0].count);
        for (int64_t i = 0, at = ranges[0].start; i < ranges[0].count; i++) {
            items[i] = p->items[at];
            if (i + 1 < ranges[0].count)
                at += ranges[0].step;
        }
        po_infer_set_partial(infer, 0, (uint32_t)ranges[0].count, items);
    }
    return PO_OK;
}

/* The ranges come out of the same code as the shape: a list is read back from the arrays. */
static po_contents *list_of(po_ref *ref, const char *name, uint32_t input) {
    po_contents *c = PO_NEW(ref->arena, po_contents);
    uint32_t n;
    const po_array *a = po_ref_in(ref, input);
    const int64_t *v = ref->opset < 10 ? po_node_ints(ref->node, name, &n) : NULL;
    if (ref->opset >= 10 && a && a->i) {
        v = a->i;
        n = (uint32_t)a->count;
    }
    if (!v)
        return NULL;
    *c = (po_contents){.n = n, .values = v};
    return c;
}

po_status po_ref_slice(po_ref *ref) {
    PO_TRY(po_rule_outputs(ref)); /* checks lengths, axes and steps */
    const po_array *in = ref->in[0], *out = ref->out[0];
    const po_contents *starts = list_of(ref, "starts", 1), *ends = list_of(ref, "ends", 2);
    const po_contents *axes = list_of(ref, "axes", 3);
    const po_contents *steps = ref->opset >= 10 ? list_of(ref, "", 4) : NULL;
    int64_t strides[PO_MAX_RANK], offset = 0;
    if (!starts || !ends)
        return PO_UNSUPPORTED;
    po_rule_strides(in->rank, in->dims, strides);
    if (out->count == 0)
        return PO_OK;
    for (uint32_t i = 0; i < starts->n; i++) {
        uint32_t k;
        PO_TRY(
            po_rule_axis(ref->ctx, ref->node, axes ? axes->values[i] : (int64_t)i, in->rank, &k));
        range r = clamp_range(starts->values[i], ends->values[i], steps ? steps->values[i] : 1,
                              in->dims[k]);
        offset += r.start * strides[k];
        strides[k] = r.count > 1 ? strides[k] * r.step : 0;
    }
    po_move(po_rule_data(out), po_rule_data(in), po_rule_width(in), out->rank, out->dims, offset,
            strides);
    return PO_OK;
}

/* --- attributes --- */

const po_attr_def po_attrs_slice[] = {
    {.name = "axes", .kind = PO_ATTR_INTS, .since = 1, .until = 9},
    {.name = "ends", .kind = PO_ATTR_INTS, .since = 1, .until = 9, .required = true},
    {.name = "starts", .kind = PO_ATTR_INTS, .since = 1, .until = 9, .required = true},
    {0},
};

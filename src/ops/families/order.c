/* TopK, Unique, NonZero: what sorts or picks elements by their values. */
#include "ir/size.h"
#include "ops/families/rules.h"
#include "ops/ref.h"
#include "ops/shape.h"

#include <math.h>
#include <stdlib.h>

static int compare_elements(const po_array *x, int64_t a, int64_t b) {
    if (x->f)
        return (x->f[a] > x->f[b]) - (x->f[a] < x->f[b]);
    if (x->i && x->dtype == PO_U64)
        return ((uint64_t)x->i[a] > (uint64_t)x->i[b]) - ((uint64_t)x->i[a] < (uint64_t)x->i[b]);
    if (x->i)
        return (x->i[a] > x->i[b]) - (x->i[a] < x->i[b]);
    size_t n = x->s[a].size < x->s[b].size ? x->s[a].size : x->s[b].size;
    int c = n ? memcmp(x->s[a].data, x->s[b].data, n) : 0;
    return c ? c : (x->s[a].size > x->s[b].size) - (x->s[a].size < x->s[b].size);
}

static bool has_nan(const po_array *x) {
    for (int64_t k = 0; k < x->count && x->f; k++)
        if (isnan(x->f[k]))
            return true;
    return false;
}

static void copy_element(po_array *to, int64_t i, const po_array *from, int64_t k) {
    if (to->f)
        to->f[i] = from->f[k];
    else if (to->i)
        to->i[i] = from->i[k];
    else
        to->s[i] = from->s[k];
}

/* --- TopK --- */

/* Since opset 10 k is an input. -1: not known. */
static int64_t topk_k(const po_infer *infer) {
    const int64_t *k;
    uint32_t n;
    if (infer->opset > 0 && infer->opset < 10)
        return po_op_int(infer->graph, infer->node, "k");
    return po_infer_ints(infer, 1, &n, &k) && n == 1 ? k[0] : -1;
}

po_status po_infer_topk(po_infer *infer) {
    const po_type *x = po_infer_tensor(infer, 0);
    po_dtype dtype = po_infer_dtype(infer, 0);
    int64_t k = topk_k(infer);
    uint32_t at;
    po_infer_set_unranked(infer, 0, dtype);
    po_infer_set_unranked(infer, 1, PO_I64);
    if (!x || !x->has_rank)
        return PO_OK;
    PO_TRY(po_rule_axis(infer->ctx, infer->node, po_op_int(infer->graph, infer->node, "axis"),
                        x->rank, &at));
    po_dim *dims = po_arena_memdup(infer->arena, x->dims, x->rank * sizeof *dims);
    if (k >= 0 && dims[at].value >= 0 && k > dims[at].value)
        return po_rule_bad(infer->ctx, infer->node, "k is larger than the axis (%lld, %lld)",
                           (long long)k, (long long)dims[at].value);
    const po_partial *p = po_infer_partial(infer, 1);
    dims[at] = k >= 0 ? PO_DIM(k) : p && p->n == 1 ? po_size_of_item(p->items[0]) : PO_DIM_UNKNOWN;
    po_infer_set(infer, 0, dtype, x->rank, dims);
    po_infer_set(infer, 1, PO_I64, x->rank, dims);
    return PO_OK;
}

typedef struct sorter {
    const po_array *x;
    int64_t base, step; /* TopK: element i is base + i * step; Unique: slice i */
    int64_t outer, width, inner;
    int sign;
} sorter;

static int by_value(const void *a, const void *b, void *user) {
    const sorter *s = user;
    int64_t i = *(const int64_t *)a, j = *(const int64_t *)b;
    int c = s->sign * compare_elements(s->x, s->base + i * s->step, s->base + j * s->step);
    return c ? c : (i > j) - (i < j);
}

po_status po_ref_topk(po_ref *ref) {
    const po_array *x = ref->in[0];
    int64_t k = po_op_int(ref->graph, ref->node, "k"), dims[PO_MAX_RANK];
    bool largest = ref->opset < 11 || po_op_int(ref->graph, ref->node, "largest") != 0;
    uint32_t at;
    po_array *values, *indices;
    if (ref->opset == 0 || ref->opset >= 10) {
        const int64_t *list;
        int64_t one;
        PO_TRY(po_ref_ints(ref, 1, &one, &list));
        if (one != 1)
            return PO_UNSUPPORTED;
        k = list[0];
    }
    if (x->s || has_nan(x) || !po_axis_at(po_op_int(ref->graph, ref->node, "axis"), x->rank, &at) ||
        k < 0 || k > x->dims[at])
        return PO_UNSUPPORTED;
    memcpy(dims, x->dims, x->rank * sizeof *dims);
    dims[at] = k;
    PO_TRY(po_ref_out(ref, 0, x->dtype, x->rank, dims, &values));
    PO_TRY(po_ref_out(ref, 1, PO_I64, x->rank, dims, &indices));
    int64_t n = x->dims[at], inner = po_product(x->dims, at + 1, x->rank);
    int64_t lines = n ? x->count / n : 0;
    int64_t *order = PO_NEW_N(ref->arena, int64_t, n);
    for (int64_t l = 0; l < lines; l++) {
        sorter s = {.x = x,
                    .base = l / inner * n * inner + l % inner,
                    .step = inner,
                    .sign = largest ? -1 : 1};
        for (int64_t i = 0; i < n; i++)
            order[i] = i;
        qsort_r(order, (size_t)n, sizeof *order, by_value, &s);
        for (int64_t i = 0; i < k; i++) {
            int64_t to = l / inner * k * inner + i * inner + l % inner;
            copy_element(values, to, x, s.base + order[i] * inner);
            indices->i[to] = order[i];
        }
    }
    return PO_OK;
}

/* --- Unique --- */

po_status po_infer_unique(po_infer *infer) {
    const po_type *x = po_infer_tensor(infer, 0);
    const po_attr *axis = po_node_attr(infer->node, "axis");
    uint32_t at;
    po_infer_set_unranked(infer, 0, po_infer_dtype(infer, 0));
    for (uint32_t k = 1; k < 4; k++)
        po_infer_set(infer, k, PO_I64, 1, &PO_DIM_UNKNOWN);
    if (!axis) {
        po_infer_set(infer, 0, po_infer_dtype(infer, 0), 1, &PO_DIM_UNKNOWN);
        int64_t count = x ? po_type_count(x) : -1;
        if (count >= 0)
            po_infer_set(infer, 2, PO_I64, 1, &PO_DIM(count));
        return PO_OK;
    }
    if (!x || !x->has_rank)
        return PO_OK;
    PO_TRY(po_rule_axis(infer->ctx, infer->node, axis->u.i, x->rank, &at));
    po_dim *dims = po_arena_memdup(infer->arena, x->dims, x->rank * sizeof *dims);
    po_infer_set(infer, 2, PO_I64, 1, &dims[at]);
    dims[at] = PO_DIM_UNKNOWN;
    po_infer_set(infer, 0, x->dtype, x->rank, dims);
    return PO_OK;
}

/* Slices a and b of [outer, width, inner], lexicographically. */
static int compare_slices(const sorter *s, int64_t a, int64_t b) {
    for (int64_t o = 0; o < s->outer; o++)
        for (int64_t i = 0; i < s->inner; i++) {
            int64_t base = o * s->width * s->inner + i;
            int c = compare_elements(s->x, base + a * s->inner, base + b * s->inner);
            if (c)
                return c;
        }
    return 0;
}

static int by_slice(const void *a, const void *b, void *user) {
    int64_t i = *(const int64_t *)a, j = *(const int64_t *)b;
    int c = compare_slices(user, i, j);
    return c ? c : (i > j) - (i < j);
}

static int by_number(const void *a, const void *b) {
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

po_status po_ref_unique(po_ref *ref) {
    const po_array *x = ref->in[0];
    const po_attr *axis = po_node_attr(ref->node, "axis");
    bool sorted = po_op_int(ref->graph, ref->node, "sorted") != 0;
    sorter s = {.x = x, .outer = 1, .width = x->count, .inner = 1};
    uint32_t at = 0;
    if (has_nan(x) || (axis && !po_axis_at(axis->u.i, x->rank, &at)))
        return PO_UNSUPPORTED;
    if (axis) {
        s.outer = po_product(x->dims, 0, at);
        s.width = x->dims[at];
        s.inner = po_product(x->dims, at + 1, x->rank);
    }
    int64_t *order = PO_NEW_N(ref->arena, int64_t, s.width), n = 0;
    int64_t *first = PO_NEW_N(ref->arena, int64_t, s.width); /* per slice: its first occurrence */
    int64_t *heads = PO_NEW_N(ref->arena, int64_t, s.width);
    for (int64_t i = 0; i < s.width; i++)
        order[i] = i;
    qsort_r(order, (size_t)s.width, sizeof *order, by_slice, &s);
    for (int64_t i = 0; i < s.width; i++) {
        bool fresh = i == 0 || compare_slices(&s, order[i - 1], order[i]) != 0;
        if (fresh)
            heads[n++] = order[i];
        first[order[i]] = fresh ? order[i] : first[order[i - 1]];
    }
    if (!sorted)
        qsort(heads, (size_t)n, sizeof *heads, by_number);
    int64_t *place = PO_NEW_N(ref->arena, int64_t, s.width);
    for (int64_t i = 0; i < n; i++)
        place[heads[i]] = i;
    po_array *y, *indices, *inverse, *counts;
    int64_t dims[PO_MAX_RANK] = {n};
    if (axis)
        memcpy(dims, x->dims, x->rank * sizeof *dims);
    dims[at] = n;
    PO_TRY(po_ref_make(ref, x->dtype, axis ? x->rank : 1, dims, &y));
    PO_TRY(po_ref_make(ref, PO_I64, 1, &n, &indices));
    PO_TRY(po_ref_make(ref, PO_I64, 1, &s.width, &inverse));
    PO_TRY(po_ref_make(ref, PO_I64, 1, &n, &counts));
    for (int64_t o = 0; o < s.outer; o++)
        for (int64_t k = 0; k < n; k++)
            for (int64_t i = 0; i < s.inner; i++)
                copy_element(y, (o * n + k) * s.inner + i, x,
                             (o * s.width + heads[k]) * s.inner + i);
    memcpy(indices->i, heads, (size_t)n * sizeof *heads);
    for (int64_t i = 0; i < s.width; i++) {
        inverse->i[i] = place[first[i]];
        counts->i[inverse->i[i]]++;
    }
    po_array *all[] = {y, indices, inverse, counts};
    for (uint32_t k = 0; k < ref->n_out && k < 4; k++)
        ref->out[k] = all[k];
    return PO_OK;
}

/* --- NonZero --- */

po_status po_infer_nonzero(po_infer *infer) {
    const po_type *x = po_infer_tensor(infer, 0);
    po_dim dims[] = {PO_DIM_UNKNOWN, PO_DIM_UNKNOWN};
    if (x && x->has_rank)
        dims[0] = PO_DIM(x->rank);
    po_infer_set(infer, 0, PO_I64, 2, dims);
    return PO_OK;
}

static bool is_zero(const po_array *x, int64_t k) {
    return x->f ? x->f[k] == 0 : x->i[k] == 0;
}

po_status po_ref_nonzero(po_ref *ref) {
    const po_array *x = ref->in[0];
    int64_t dims[] = {x->rank, 0}, at = 0;
    po_array *y;
    if (x->s || x->rank == 0)
        return PO_UNSUPPORTED;
    for (int64_t k = 0; k < x->count; k++)
        dims[1] += !is_zero(x, k);
    PO_TRY(po_ref_out(ref, 0, PO_I64, 2, dims, &y));
    for (int64_t k = 0; k < x->count; k++) {
        if (is_zero(x, k))
            continue;
        int64_t rest = k;
        for (uint32_t i = x->rank; i-- > 0;) {
            y->i[i * dims[1] + at] = rest % x->dims[i];
            rest /= x->dims[i];
        }
        at++;
    }
    return PO_OK;
}

/* --- attributes --- */

const po_attr_def po_attrs_topk[] = {
    {.name = "axis", .kind = PO_ATTR_INT, .since = 1, .has_default = true, .i = -1},
    {.name = "k", .kind = PO_ATTR_INT, .since = 1, .until = 9, .required = true},
    {.name = "largest", .kind = PO_ATTR_INT, .since = 11, .has_default = true, .i = 1},
    {.name = "sorted", .kind = PO_ATTR_INT, .since = 11, .has_default = true, .i = 1},
    {0},
};
const po_attr_def po_attrs_unique[] = {
    {.name = "axis", .kind = PO_ATTR_INT, .since = 11},
    {.name = "sorted", .kind = PO_ATTR_INT, .since = 11, .has_default = true, .i = 1},
    {0},
};

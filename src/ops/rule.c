/* Types and integer contents as rules read and make them, symbols kept where dims are the same;
 * references that take their outputs' shapes from the rule; strided and mapped moves. */
#include "ops/rule.h"

#include "ir/size.h"

enum { MAX_CONSTANT = 65536 };

bool po_rule_mode(const po_graph *graph, const po_node *node, const char *name, const char *text) {
    po_bytes s = po_op_string(graph, node, name);
    return s.data && s.size == strlen(text) && memcmp(s.data, text, s.size) == 0;
}

const po_type *po_rule_ranked(const po_infer *infer, uint32_t input) {
    const po_type *t = po_infer_tensor(infer, input);
    return t && t->has_rank ? t : NULL;
}

po_dim *po_rule_out(const po_infer *infer, uint32_t output, po_dtype dtype, uint32_t rank) {
    po_dim *dims = PO_NEW_N(infer->arena, po_dim, rank);
    for (uint32_t i = 0; i < rank; i++)
        dims[i] = PO_DIM_UNKNOWN;
    if (output < infer->n_out && rank <= PO_MAX_RANK)
        infer->out[output] = (po_type){
            .kind = PO_TYPE_TENSOR, .dtype = dtype, .has_rank = true, .rank = rank, .dims = dims};
    return dims;
}

po_status po_rule_same_dim(const po_infer *infer, po_dim a, po_dim b, const char *what,
                           po_dim *both) {
    if (a.value >= 0 && b.value >= 0 && a.value != b.value)
        return po_rule_bad(infer->ctx, infer->node, "%s differ (%lld and %lld)", what,
                           (long long)a.value, (long long)b.value);
    po_rule_demand(infer, PO_DEMAND_IS, a, b);
    *both = a.value >= 0 || (b.value < 0 && a.symbol) ? a : b;
    return PO_OK;
}

po_dim po_rule_product(const po_infer *infer, const po_dim *dims, uint32_t n) {
    po_dim product = PO_DIM(1);
    for (uint32_t i = 0; i < n; i++)
        if (dims[i].value == 0)
            return PO_DIM(0);
    for (uint32_t i = 0; i < n; i++)
        product = po_size_mul(infer->arena, product, dims[i]);
    return product;
}

static bool is_integer(po_dtype dtype) {
    po_dtype_class c = po_dtype_class_of(dtype);
    return c == PO_CLASS_SIGNED || c == PO_CLASS_UNSIGNED || c == PO_CLASS_BOOL;
}

static const po_tensor *small_constant(const po_infer *infer, uint32_t input) {
    const po_tensor *t = infer->constant[input];
    return t && is_integer(t->dtype) && t->count <= MAX_CONSTANT ? t : NULL;
}

po_known po_rule_ints(const po_infer *infer, const char *name, uint32_t input,
                      const int64_t **values, int64_t *n) {
    uint32_t count;
    const int64_t *attr = name ? po_node_ints(infer->node, name, &count) : NULL;
    if (!attr && name) {
        /* An empty list may be kept without storage. */
        const po_attr *a = po_node_attr(infer->node, name);
        if (a && a->kind == PO_ATTR_INTS && a->n == 0 && !a->reference) {
            *values = PO_NEW_N(infer->arena, int64_t, 1);
            *n = 0;
            return PO_KNOWN;
        }
    }
    if (attr) {
        *values = attr;
        *n = count;
        return PO_KNOWN;
    }
    if (input >= infer->n_in || !infer->in[input])
        return PO_ABSENT;
    const po_tensor *t = small_constant(infer, input);
    if (t) {
        int64_t *v = PO_NEW_N(infer->arena, int64_t, t->count);
        for (int64_t i = 0; i < t->count; i++)
            v[i] = po_tensor_int(t, i);
        *values = v;
        *n = t->count;
        return PO_KNOWN;
    }
    const po_partial *p = infer->partial[input];
    const po_type *type = po_infer_tensor(infer, input);
    *n = type ? po_type_count(type) : -1;
    if (!p)
        return PO_NOT_KNOWN;
    *n = p->n;
    int64_t *v = PO_NEW_N(infer->arena, int64_t, p->n);
    for (uint32_t i = 0; i < p->n; i++) {
        if (p->items[i].value < 0)
            return PO_NOT_KNOWN;
        v[i] = p->items[i].value;
    }
    *values = v;
    return PO_KNOWN;
}

const po_contents *po_rule_contents(const po_infer *infer, uint32_t input) {
    if (input >= infer->n_in || !infer->in[input])
        return NULL;
    const po_tensor *t = small_constant(infer, input);
    const po_partial *p = infer->partial[input];
    if (t && (t->count > PO_PARTIAL_MAX || t->rank > 1))
        return NULL;
    if (!t && !p)
        return NULL;
    uint32_t n = t ? (uint32_t)t->count : p->n;
    po_contents *c = PO_NEW(infer->arena, po_contents);
    int64_t *values = PO_NEW_N(infer->arena, int64_t, n);
    bool *exact = PO_NEW_N(infer->arena, bool, n);
    const char **symbols = PO_NEW_N(infer->arena, const char *, n);
    for (uint32_t i = 0; i < n; i++) {
        if (t)
            values[i] = po_tensor_int(t, i);
        exact[i] = t || po_size_number(p->items[i], &values[i]);
        symbols[i] = exact[i] ? NULL : p->items[i].symbol;
    }
    *c = (po_contents){.n = n, .values = values, .exact = exact, .symbols = symbols};
    return c;
}

/* Small enough to loop over, also where a dim of 0 hides how large the others are. */
static bool loopable(uint32_t rank, const po_dim *dims) {
    int64_t product = 1;
    if (rank > PO_MAX_RANK)
        return false;
    for (uint32_t k = 0; k < rank; k++)
        if (dims[k].value > 1 &&
            (!po_mul_i64(product, dims[k].value, &product) || product > PO_REF_MAX_COUNT))
            return false;
    return true;
}

po_status po_rule_infer_of(po_ref *ref, po_type *out, po_infer *infer) {
    const po_type **in = PO_NEW_N(ref->arena, const po_type *, ref->n_in);
    const po_tensor **constant = PO_NEW_N(ref->arena, const po_tensor *, ref->n_in);
    const po_partial **partial = PO_NEW_N(ref->arena, const po_partial *, ref->n_in);
    for (uint32_t i = 0; i < ref->n_in; i++) {
        const po_array *a = ref->in[i];
        if (!a)
            continue;
        po_type *t = PO_NEW(ref->arena, po_type);
        *t = po_type_tensor_i64(ref->arena, a->dtype, a->rank, a->dims);
        if (!loopable(t->rank, t->dims))
            return PO_UNSUPPORTED;
        in[i] = t;
        if (a->count <= MAX_CONSTANT && (a->i || (a->f && a->count <= PO_PARTIAL_MAX))) {
            po_tensor *small;
            PO_TRY(po_array_to_tensor(ref->ctx, ref->arena, a, &small));
            constant[i] = small;
        }
    }
    for (uint32_t i = 0; i < ref->n_out; i++)
        out[i] = po_type_unranked(PO_DT_NONE);
    *infer = (po_infer){.ctx = ref->ctx,
                        .arena = ref->arena,
                        .graph = ref->graph,
                        .node = ref->node,
                        .opset = ref->opset,
                        .n_in = ref->n_in,
                        .n_out = ref->n_out,
                        .in = in,
                        .constant = constant,
                        .partial = partial,
                        .out = out,
                        .out_partial = PO_NEW_N(ref->arena, const po_partial *, ref->n_out)};
    return PO_OK;
}

po_status po_rule_types(po_ref *ref, po_type *types) {
    po_infer infer;
    PO_TRY(po_rule_infer_of(ref, types, &infer));
    PO_TRY(po_op_row_of(ref->node->op)->infer(&infer));
    for (uint32_t i = 0; i < ref->n_out; i++) {
        if (ref->node->out[i] == PO_NONE)
            continue;
        if (po_type_count(&types[i]) < 0 || !loopable(types[i].rank, types[i].dims))
            return PO_UNSUPPORTED;
    }
    return PO_OK;
}

static int64_t *dims_of(po_arena *arena, const po_type *type) {
    int64_t *dims = PO_NEW_N(arena, int64_t, type->rank);
    for (uint32_t i = 0; i < type->rank; i++)
        dims[i] = type->dims[i].value;
    return dims;
}

po_status po_rule_outputs(po_ref *ref) {
    po_type *types = PO_NEW_N(ref->arena, po_type, ref->n_out);
    PO_TRY(po_rule_types(ref, types));
    for (uint32_t i = 0; i < ref->n_out; i++) {
        if (ref->node->out[i] == PO_NONE)
            continue;
        PO_TRY(po_array_create(ref->ctx, ref->arena, types[i].dtype, types[i].rank,
                               dims_of(ref->arena, &types[i]), &ref->out[i]));
    }
    return PO_OK;
}

po_status po_rule_reshaped(po_ref *ref) {
    po_type *types = PO_NEW_N(ref->arena, po_type, ref->n_out);
    PO_TRY(po_rule_types(ref, types));
    if (ref->n_out == 0 || ref->node->out[0] == PO_NONE || !ref->in[0])
        return PO_UNSUPPORTED;
    if (po_type_count(&types[0]) != ref->in[0]->count)
        return po_rule_bad(ref->ctx, ref->node, "the number of elements changes");
    ref->out[0] =
        po_array_view(ref->arena, ref->in[0], types[0].rank, dims_of(ref->arena, &types[0]));
    return PO_OK;
}

bool po_rule_floats(const po_ref *ref, uint32_t first, uint32_t last) {
    for (uint32_t i = first; i <= last && i < ref->n_in; i++)
        if (ref->in[i] && !ref->in[i]->f)
            return false;
    return true;
}

po_status po_rule_index(po_ref *ref, int64_t index, int64_t dim, int64_t *at) {
    if (index < -dim || index >= dim)
        return po_rule_bad(ref->ctx, ref->node, "index %lld is out of range (dim %lld)",
                           (long long)index, (long long)dim);
    *at = index < 0 ? index + dim : index;
    return PO_OK;
}

void po_rule_strides(uint32_t rank, const int64_t *dims, int64_t *strides) {
    int64_t s = 1;
    for (uint32_t i = rank; i-- > 0;) {
        strides[i] = s;
        s *= dims[i];
    }
}

static void copy_strided(char *to, const char *from, size_t width, int64_t n, int64_t stride) {
    if (stride == 1) {
        memcpy(to, from, (size_t)n * width);
    } else if (width == sizeof(double)) {
        for (int64_t i = 0; i < n; i++)
            memcpy(to + (size_t)i * sizeof(double), from + i * stride * (int64_t)sizeof(double),
                   sizeof(double));
    } else {
        for (int64_t i = 0; i < n; i++)
            memcpy(to + (size_t)i * width, from + i * stride * (int64_t)width, width);
    }
}

/* to[row * to_row + column] = from[row + column * from_column], in squares: a column of a large
 * weight is a page for each of its elements. */
static void turn(char *to, const char *from, size_t width, const int64_t n[2], int64_t to_row,
                 int64_t from_column) {
    enum { SQUARE = 32 };
    for (int64_t r = 0; r < n[0]; r += SQUARE)
        for (int64_t c = 0; c < n[1]; c += SQUARE) {
            const int64_t columns = n[1] - c < SQUARE ? n[1] - c : SQUARE;
            for (int64_t i = r; i < n[0] && i < r + SQUARE; i++)
                copy_strided(to + (i * to_row + c) * (int64_t)width,
                             from + (i + c * from_column) * (int64_t)width, width, columns,
                             from_column);
        }
}

/* The axis whose elements lie side by side in `from`, where it is long and not the last; PO_NONE.
 */
static uint32_t axis_to_turn(uint32_t rank, const int64_t *dims, const int64_t *strides) {
    enum { LONG = 8 };
    if (rank < 2 || strides[rank - 1] == 1 || dims[rank - 1] < LONG)
        return PO_NONE;
    for (uint32_t x = 0; x + 1 < rank; x++)
        if (strides[x] == 1 && dims[x] >= LONG)
            return x;
    return PO_NONE;
}

/* As po_move: squares of that axis and the last one, for every index of the others. */
static void move_turned(char *to, const char *from, size_t width, uint32_t rank,
                        const int64_t *dims, const int64_t *strides, uint32_t axis) {
    int64_t index[PO_MAX_RANK + 8] = {0}, own[PO_MAX_RANK + 8], at = 0, out = 0;
    const uint32_t last = rank - 1;
    po_rule_strides(rank, dims, own);
    for (;;) {
        turn(to + out * (int64_t)width, from + at * (int64_t)width, width,
             (const int64_t[]){dims[axis], dims[last]}, own[axis], strides[last]);
        uint32_t k = last;
        for (; k > 0; k--) {
            const uint32_t x = k - 1;
            if (x == axis)
                continue;
            at += strides[x];
            out += own[x];
            if (++index[x] < dims[x])
                break;
            at -= index[x] * strides[x];
            out -= index[x] * own[x];
            index[x] = 0;
        }
        if (k == 0)
            return;
    }
}

void po_move(char *to, const char *from, size_t width, uint32_t rank, const int64_t *dims,
             int64_t offset, const int64_t *strides) {
    int64_t index[PO_MAX_RANK + 8] = {0};
    for (uint32_t i = 0; i < rank; i++)
        if (dims[i] == 0)
            return;
    const uint32_t side = axis_to_turn(rank, dims, strides);
    if (side != PO_NONE) {
        move_turned(to, from + offset * (int64_t)width, width, rank, dims, strides, side);
        return;
    }
    int64_t inner = rank ? dims[rank - 1] : 1, stride = rank ? strides[rank - 1] : 1;
    int64_t at = offset;
    for (;;) {
        copy_strided(to, from + at * (int64_t)width, width, inner, stride);
        to += (size_t)inner * width;
        uint32_t k = rank ? rank - 1 : 0;
        for (; k > 0; k--) {
            at += strides[k - 1];
            if (++index[k - 1] < dims[k - 1])
                break;
            at -= index[k - 1] * strides[k - 1];
            index[k - 1] = 0;
        }
        if (k == 0)
            return;
    }
}

void po_move_mapped(const po_array *to, const po_array *from, const int64_t *const *maps,
                    const void *fill) {
    int64_t index[PO_MAX_RANK + 1] = {0}, strides[PO_MAX_RANK + 1];
    uint32_t rank = to->rank;
    size_t width = po_rule_width(to);
    char *out = po_rule_data(to);
    const char *in = po_rule_data(from);
    if (to->count == 0)
        return;
    po_rule_strides(rank, from->dims, strides);
    uint32_t outer = rank ? rank - 1 : 0;
    int64_t inner = rank ? to->dims[outer] : 1;
    const int64_t *last = rank ? maps[outer] : NULL;
    do {
        int64_t base = 0;
        bool inside = true;
        for (uint32_t k = 0; k < outer && inside; k++) {
            int64_t at = maps[k] ? maps[k][index[k]] : index[k];
            inside = at >= 0;
            base += at * strides[k];
        }
        for (int64_t i = 0; i < inner; i++, out += width) {
            int64_t at = last ? last[i] : i;
            memcpy(out, inside && at >= 0 ? in + (base + at) * (int64_t)width : fill, width);
        }
    } while (po_next_index(outer, to->dims, index));
}

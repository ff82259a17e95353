/* The po_mk_ helpers: nodes with static shapes, spelled for the model's opset. */
#include "ops/conv_view.h"
#include "rewrite/deriving.h"
#include "rewrite/weights.h"

bool po_dims_of(const po_graph *g, po_value_id v, uint32_t *rank, int64_t dims[PO_MOST_DIMS]) {
    const po_dim *d = po_static_dims(g, v, rank);
    if (!d || *rank > PO_MOST_DIMS)
        return false;
    for (uint32_t i = 0; i < *rank; i++)
        dims[i] = d[i].value;
    return true;
}

/* Of a value that a helper made or that the subprogram has: static, or the mutant is dropped. */
static uint32_t shape(po_deriving *d, po_value_id v, int64_t dims[PO_MOST_DIMS]) {
    uint32_t rank = 0;
    if (!po_dims_of(d->g, v, &rank, dims)) {
        d->dropped = true;
        return 0;
    }
    return rank;
}

/* Of what is rewritten; outside of derivations, of the graph. */
/* In place a value's shape may be open. */
static bool is_open(const po_deriving *d, po_value_id v) {
    return d->in_place && !po_type_static(&d->g->values[v].type);
}

static po_dtype dtype_of(const po_deriving *d) {
    const po_graph *g = d->from;
    return d->place < g->n_nodes ? g->values[g->nodes[d->place].out[0]].type.dtype
                                 : g->values[g->inputs[0]].type.dtype;
}

static int64_t opset(const po_deriving *d) {
    return po_model_opset(d->g->model, "");
}

/* What was added, its type inferred. */
static po_value_id known(po_deriving *d, po_value_id y) {
    int64_t dims[PO_MOST_DIMS];
    po_infer_one(d->g, d->g->values[y].producer);
    const uint32_t rank = shape(d, y, dims);
    for (uint32_t i = 0; i < rank; i++)
        d->dropped |= dims[i] < 1;
    return y;
}

po_value_id po_mk_table(po_deriving *d, uint32_t rank, const int64_t *dims, const double *values) {
    return po_add_floats(d->g, NULL, dtype_of(d), rank, dims, values);
}

po_value_id po_mk_zeros(po_deriving *d, uint32_t rank, const int64_t *dims) {
    int64_t count = 1;
    for (uint32_t i = 0; i < rank; i++)
        count *= dims[i];
    return po_mk_table(d, rank, dims, PO_NEW_N(d->arena, double, count));
}

po_value_id po_mk_scalar(po_deriving *d, double value) {
    return po_mk_table(d, 0, NULL, &value);
}

po_value_id po_mk_reshape(po_deriving *d, po_value_id x, uint32_t rank, const int64_t *dims) {
    int64_t old[PO_MOST_DIMS], was = 1, is = 1;
    uint32_t n = shape(d, x, old);
    for (uint32_t i = 0; i < n; i++)
        was *= old[i];
    for (uint32_t i = 0; i < rank; i++)
        is *= dims[i];
    if (was != is || d->dropped) {
        d->dropped = true;
        return x;
    }
    if (n == rank && memcmp(old, dims, rank * sizeof *dims) == 0)
        return x;
    return po_add_reshape(d->g, d->place, x, rank, dims);
}

po_value_id po_mk_transpose(po_deriving *d, po_value_id x, const int *perm) {
    int64_t old[PO_MOST_DIMS], dims[PO_MOST_DIMS], wide[PO_MOST_DIMS];
    uint32_t n = shape(d, x, old);
    bool same = true;
    for (uint32_t i = 0; i < n; i++) {
        dims[i] = old[perm[i]];
        wide[i] = perm[i];
        same = same && perm[i] == (int)i;
    }
    if (same)
        return x;
    po_type type = po_type_tensor_i64(d->g->arena, d->g->values[x].type.dtype, n, dims);
    return po_add_transpose(d->g, d->place, x, n, wide, &type);
}

po_value_id po_mk_rearrange(po_deriving *d, po_value_id x, const char *text, uint32_t n,
                            const po_rt_size *sizes) {
    int64_t dims[PO_MOST_DIMS];
    const uint32_t rank = shape(d, x, dims);
    const po_rt *rt = d->dropped ? NULL : po_rt_of_names(d->arena, text, n, sizes, rank, dims);
    const po_value_id y = rt ? po_rt_emit(d->g, d->place, x, rt) : PO_NONE;
    d->dropped = d->dropped || y == PO_NONE;
    return y == PO_NONE ? x : y;
}

static po_value_id crop(po_deriving *d, po_value_id x, const int64_t *before,
                        const int64_t *after) {
    int64_t dims[PO_MOST_DIMS];
    uint32_t n = shape(d, x, dims);
    for (uint32_t i = 0; i < n; i++) {
        int64_t from = before[i] < 0 ? -before[i] : 0, to = after[i] < 0 ? -after[i] : 0;
        x = po_mk_slice(d, x, i, from, dims[i] - from - to, 1);
    }
    return x;
}

po_value_id po_mk_pads(po_deriving *d, po_value_id x, const int64_t *before, const int64_t *after) {
    x = crop(d, x, before, after);
    int64_t dims[PO_MOST_DIMS], pads[2 * PO_MOST_DIMS], sum = 0;
    uint32_t n = shape(d, x, dims);
    for (uint32_t i = 0; i < n; i++) {
        pads[i] = po_larger(before[i], 0);
        pads[n + i] = po_larger(after[i], 0);
        sum += pads[i] + pads[n + i];
    }
    if (sum == 0)
        return x;
    po_value_id in[2] = {x, PO_NONE};
    bool as_input = opset(d) >= 11;
    if (as_input)
        in[1] = po_add_i64s(d->g, NULL, 2 * n, pads);
    po_value_id y = po_add_op(d->g, d->place, PO_OP_Pad, as_input ? 2 : 1, in, NULL);
    if (!as_input)
        po_node_set_ints(d->g, d->g->values[y].producer, "pads", 2 * n, pads);
    return known(d, y);
}

po_value_id po_mk_pad(po_deriving *d, po_value_id x, uint32_t axis, int64_t before, int64_t after) {
    int64_t b[PO_MOST_DIMS] = {0}, a[PO_MOST_DIMS] = {0};
    b[axis] = before;
    a[axis] = after;
    return po_mk_pads(d, x, b, a);
}

po_value_id po_mk_slice(po_deriving *d, po_value_id x, uint32_t axis, int64_t begin, int64_t count,
                        int64_t step) {
    int64_t dims[PO_MOST_DIMS], at = axis;
    shape(d, x, dims);
    if (d->in_place && step == 1 && po_graph_constant(d->g, x)) { /* at any opset */
        const po_recipe *r = po_recipe_doubles(d->g, d->arena, x);
        const po_value_id y =
            po_add_recipe(d->g, NULL, d->g->values[x].type.dtype,
                          po_recipe_slice(d->arena, r, axis, begin, begin + count));
        d->dropped = d->dropped || y == PO_NONE;
        return y == PO_NONE ? x : y;
    }
    int64_t last = begin + (count - 1) * step;
    if (d->dropped || count < 1 || begin < 0 || last < 0 || last >= dims[axis] ||
        begin >= dims[axis] || (step != 1 && opset(d) < 10)) {
        d->dropped = true;
        return x;
    }
    if (begin == 0 && step == 1 && count == dims[axis])
        return x;
    int64_t end = step > 0 ? last + 1 : last == 0 ? INT32_MIN : last - 1;
    return known(
        d, po_add_slice(d->g, d->place, x, 1, &at, &begin, &end, step != 1 ? &step : NULL, NULL));
}

po_value_id po_mk_indices(po_deriving *d, uint32_t rank, const int64_t *dims,
                          const int64_t *values) {
    return po_add_i64s_shaped(d->g, rank, dims, values);
}

po_value_id po_mk_gather(po_deriving *d, po_value_id x, uint32_t axis, po_value_id indices) {
    if (d->dropped)
        return x;
    po_value_id in[2] = {x, indices};
    po_value_id y = po_add_op(d->g, d->place, PO_OP_Gather, 2, in, NULL);
    po_node_set_int(d->g, d->g->values[y].producer, "axis", axis);
    return known(d, y);
}

po_value_id po_mk_concat(po_deriving *d, uint32_t axis, uint32_t n, const po_value_id *in) {
    if (n == 1)
        return in[0];
    return known(d, po_add_concat(d->g, d->place, n, in, axis, NULL));
}

void po_mk_split(po_deriving *d, po_value_id x, uint32_t axis, uint32_t n, const int64_t *parts,
                 po_value_id *out) {
    int64_t dims[PO_MOST_DIMS];
    uint32_t rank = shape(d, x, dims);
    if (n == 1) {
        out[0] = x;
        return;
    }
    for (uint32_t i = 0; i < n; i++) {
        dims[axis] = parts[i];
        po_type type = po_type_tensor_i64(d->g->arena, d->g->values[x].type.dtype, rank, dims);
        out[i] = po_graph_add_value(d->g, NULL, &type);
    }
    po_value_id in[2] = {x, PO_NONE};
    bool as_input = opset(d) >= 13;
    if (as_input)
        in[1] = po_add_i64s(d->g, NULL, n, parts);
    po_node_id id = po_ops_add(d->g, d->place,
                               &(po_node_spec){.op = PO_OP_Split,
                                               .name = d->g->values[out[0]].name,
                                               .n_in = as_input ? 2 : 1,
                                               .in = in,
                                               .n_out = n,
                                               .out = out});
    po_node_set_int(d->g, id, "axis", axis);
    if (!as_input)
        po_node_set_ints(d->g, id, "split", n, parts);
}

po_value_id po_mk_matmul(po_deriving *d, po_value_id a, po_value_id b) {
    return po_mk_binary(d, PO_OP_MatMul, a, b);
}

po_value_id po_mk_einsum(po_deriving *d, const char *equation, uint32_t n, const po_value_id *in) {
    po_arena *arena = d->g->arena; /* of what attributes and constants point to */
    const po_recipe **leaf = PO_NEW_N(d->arena, const po_recipe *, n);
    for (uint32_t i = 0; i < n; i++) {
        int64_t dims[PO_MOST_DIMS];
        const uint32_t rank = shape(d, in[i], dims);
        po_recipe *r = PO_NEW(arena, po_recipe);
        *r = (po_recipe){.kind = PO_RECIPE_SOURCE,
                         .dtype = PO_F64,
                         .rank = rank,
                         .dims = po_arena_memdup(arena, dims, rank * sizeof *dims)};
        leaf[i] = r;
    }
    const po_recipe *r = d->dropped ? NULL : po_recipe_einsum(arena, equation, n, leaf);
    const po_value_id y = r ? po_nodes_of(d->arena, d->g, r, n, leaf, in) : PO_NONE;
    d->dropped = d->dropped || y == PO_NONE;
    return y == PO_NONE ? in[0] : y;
}

po_value_id po_mk_binary(po_deriving *d, po_op_id op, po_value_id a, po_value_id b) {
    if (is_open(d, a) || is_open(d, b)) {
        const po_type open = po_type_unranked(d->g->values[a].type.dtype);
        return po_add_op(d->g, d->place, op, 2, (po_value_id[]){a, b}, &open);
    }
    return known(d, po_add_op(d->g, d->place, op, 2, (po_value_id[]){a, b}, NULL));
}

po_value_id po_mk_sum(po_deriving *d, uint32_t n, const po_value_id *in) {
    po_value_id y = in[0];
    for (uint32_t i = 1; i < n; i++)
        y = po_mk_binary(d, PO_OP_Add, y, in[i]);
    return y;
}

po_value_id po_mk_conv(po_deriving *d, po_value_id x, po_value_id w, po_value_id b,
                       const po_conv *c) {
    int64_t k[PO_MOST_DIMS];
    if (is_open(d, x)) {
        const po_type open = po_type_unranked(d->g->values[x].type.dtype);
        return po_add_conv(d->g, d->place, x, w, b, c, &open);
    }
    if (shape(d, w, k) != c->n + 2)
        d->dropped = true;
    for (uint32_t i = 0; i < c->n && !d->dropped; i++)
        d->dropped = k[i + 2] != c->kernel[i] || c->before[i] < 0 || c->after[i] < 0;
    return d->dropped ? x : known(d, po_add_conv(d->g, d->place, x, w, b, c, NULL));
}

po_value_id po_mk_biased(po_deriving *d, po_value_id y, po_value_id b, uint32_t map_axes) {
    int64_t dims[PO_MOST_DIMS];
    if (b == PO_NONE)
        return y;
    uint32_t n = shape(d, b, dims);
    for (uint32_t i = 0; i < map_axes; i++)
        dims[n++] = 1;
    return po_mk_binary(d, PO_OP_Add, y, po_mk_reshape(d, b, n, dims));
}

po_value_id po_mk_along(po_deriving *d, po_value_id x, uint32_t axis, int64_t rows,
                        const double *table) {
    int64_t dims[PO_MOST_DIMS], lead = 1, tail = 1;
    uint32_t rank = shape(d, x, dims);
    if (axis >= rank) {
        d->dropped = true;
        return x;
    }
    for (uint32_t i = 0; i < rank; i++) {
        lead *= i < axis ? dims[i] : 1;
        tail *= i > axis ? dims[i] : 1;
    }
    po_value_id t = po_mk_table(d, 2, (int64_t[]){rows, dims[axis]}, table);
    x = po_mk_matmul(d, t, po_mk_reshape(d, x, 3, (int64_t[]){lead, dims[axis], tail}));
    dims[axis] = rows;
    return po_mk_reshape(d, x, rank, dims);
}

/* A packing fills up, reshapes and transposes: done to a weight's numbers, stated as a recipe, and
 * undone by Transpose, Reshape and Slice in a function's body. */
#include "ops/recipe/pack.h"

#include "ops/recipe/recipe.h"
#include "ops/rewrite.h"

/* --- the numbers --- */

static int64_t product(uint32_t n, const int64_t *dims) {
    int64_t p = 1;
    for (uint32_t i = 0; i < n; i++)
        p *= dims[i];
    return p;
}

/* Dims after the Transpose. */
static void turned(const po_packing *p, int64_t *dims) {
    for (uint32_t i = 0; i < p->rank; i++)
        dims[i] = p->dims[p->perm[i]];
}

static bool fits(const po_packing *p, const po_tensor *weight) {
    bool seen[PO_PACK_MAX] = {false};
    if (p->rank > PO_PACK_MAX || p->merged_rank > PO_PACK_MAX ||
        product(p->rank, p->dims) != product(p->merged_rank, p->merged) ||
        product(p->merged_rank, p->length) != weight->count ||
        weight->size != 4 * (size_t)weight->count)
        return false;
    for (uint32_t i = 0; i < p->rank; i++) {
        if (p->perm[i] >= p->rank || seen[p->perm[i]] || p->dims[i] < 1)
            return false;
        seen[p->perm[i]] = true;
    }
    for (uint32_t i = 0; i < p->merged_rank; i++)
        if (p->length[i] < 1 || p->length[i] > p->merged[i])
            return false;
    return true;
}

/* Walks the elements in the order of the merged dims. */
static void scatter(const po_packing *p, const char *from, char *to) {
    int64_t dims[PO_PACK_MAX], stride[PO_PACK_MAX], at[PO_PACK_MAX] = {0};
    int64_t place[PO_PACK_MAX] = {0}, packed = 0, next = 0;
    turned(p, dims);
    for (uint32_t i = 0; i < p->rank; i++) {
        stride[i] = 1;
        for (uint32_t k = p->perm[i] + 1; k < p->rank; k++)
            stride[i] *= p->dims[k];
    }
    int64_t n = product(p->rank, p->dims);
    for (int64_t j = 0; j < n; j++) {
        bool kept = true;
        for (uint32_t i = 0; i < p->merged_rank; i++)
            kept = kept && place[i] < p->length[i];
        if (kept)
            memcpy(to + 4 * packed, from + 4 * next++, 4);
        for (uint32_t i = p->merged_rank; i > 0 && ++place[i - 1] == p->merged[i - 1]; i--)
            place[i - 1] = 0;
        for (uint32_t i = p->rank; i > 0; i--) {
            packed += stride[i - 1];
            if (++at[i - 1] < dims[i - 1])
                break;
            packed -= stride[i - 1] * dims[i - 1];
            at[i - 1] = 0;
        }
    }
}

po_status po_pack(po_ctx *ctx, po_arena *arena, const po_tensor *weight, const po_packing *packing,
                  const po_tensor **packed) {
    if (!fits(packing, weight))
        return po_fail(ctx, PO_INTERNAL, "a packing of %lld elements does not fit a weight of %lld",
                       (long long)product(packing->merged_rank, packing->length),
                       (long long)weight->count);
    po_tensor *t;
    PO_TRY(po_tensor_create(ctx, arena, weight->dtype, packing->rank, packing->dims, &t));
    scatter(packing, weight->data, po_tensor_data(t));
    *packed = t;
    return PO_OK;
}

/* --- where they come from --- */

static const po_recipe *pad(po_arena *arena, const po_recipe *r, uint32_t axis, int64_t length) {
    if (r->dims[axis] == length)
        return r;
    int64_t dims[PO_PACK_MAX];
    memcpy(dims, r->dims, r->rank * sizeof *dims);
    dims[axis] = length - r->dims[axis];
    const po_recipe *parts[2] = {r, po_recipe_fill(arena, r->rank, dims, 0)};
    return po_recipe_concat(arena, axis, 2, parts);
}

static const po_recipe *state(po_graph *graph, po_arena *arena, po_value_id weight,
                              const po_packing *p) {
    const po_recipe *r = po_recipe_doubles(graph, arena, weight);
    r = po_recipe_reshape(arena, r, p->merged_rank, p->length);
    for (uint32_t i = 0; i < p->merged_rank; i++)
        r = pad(arena, r, i, p->merged[i]);
    int64_t dims[PO_PACK_MAX];
    uint32_t back[PO_PACK_MAX];
    turned(p, dims);
    for (uint32_t i = 0; i < p->rank; i++)
        back[p->perm[i]] = i;
    r = po_recipe_transpose(arena, po_recipe_reshape(arena, r, p->rank, dims), back);
    const po_attr to = {.name = "to", .kind = PO_ATTR_INT, .n = 1, .u.i = PO_F32};
    return po_recipe_op(arena, &(po_recipe_spec){.op = PO_OP_Cast,
                                                 .n_in = 1,
                                                 .in = &r,
                                                 .n_attr = 1,
                                                 .attr = &to,
                                                 .dtype = PO_F32,
                                                 .rank = r->rank,
                                                 .dims = r->dims});
}

po_status po_pack_add(po_ctx *ctx, po_graph *graph, const char *name, po_value_id weight,
                      const po_packing *packing, po_value_id *packed) {
    const po_tensor *w = po_graph_constant(graph, weight), *t;
    if (!w || w->dtype != PO_F32)
        return po_fail(ctx, PO_INTERNAL, "'%.100s' is no f32 constant: it cannot be packed",
                       po_graph_value_name(graph, weight));
    PO_TRY(po_pack(ctx, graph->root->arena, w, packing, &t));
    *packed = po_graph_add_constant(graph, name, t);
    po_arena *scratch = po_arena_create(ctx);
    po_set_recipe(graph, *packed, state(graph, scratch, weight, packing));
    po_arena_free(scratch);
    return PO_OK;
}

/* --- the nodes that undo it --- */

typedef struct unpacking {
    po_graph *body;
    po_node_id place;
    po_value_id value;
    uint32_t rank;
    int64_t dims[PO_PACK_MAX]; /* of the value */
} unpacking;

static bool has_dims(const unpacking *u, uint32_t rank, const int64_t *dims) {
    return u->rank == rank && (rank == 0 || memcmp(u->dims, dims, rank * sizeof *dims) == 0);
}

static void add_node(unpacking *u, po_op_id op, uint32_t n_in, const po_value_id *in, uint32_t rank,
                     const int64_t *dims) {
    po_type type = po_type_tensor_i64(u->body->arena, PO_F32, rank, dims);
    u->value = po_add_op(u->body, u->place, op, n_in, in, &type);
    u->rank = rank;
    memmove(u->dims, dims, rank * sizeof *dims);
}

static void transpose(unpacking *u, const po_packing *p) {
    int64_t dims[PO_PACK_MAX], perm[PO_PACK_MAX];
    bool same = true;
    turned(p, dims);
    for (uint32_t i = 0; i < p->rank; i++) {
        perm[i] = p->perm[i];
        same = same && p->perm[i] == i;
    }
    if (same)
        return;
    add_node(u, PO_OP_Transpose, 1, &u->value, p->rank, dims);
    po_node_set_ints(u->body, u->body->values[u->value].producer, "perm", p->rank, perm);
}

static void reshape(unpacking *u, uint32_t rank, const int64_t *dims) {
    if (has_dims(u, rank, dims))
        return;
    po_value_id in[2] = {u->value, po_add_i64s(u->body, NULL, rank, dims)};
    add_node(u, PO_OP_Reshape, 2, in, rank, dims);
}

static void slice(unpacking *u, const po_packing *p) {
    if (has_dims(u, p->merged_rank, p->length))
        return;
    const int64_t zeros[PO_PACK_MAX] = {0};
    int64_t axes[PO_PACK_MAX];
    for (uint32_t i = 0; i < p->merged_rank; i++)
        axes[i] = i;
    if (po_model_opset(u->body->model, "") >= 10) {
        po_value_id in[4] = {u->value, po_add_i64s(u->body, NULL, p->merged_rank, zeros),
                             po_add_i64s(u->body, NULL, p->merged_rank, p->length),
                             po_add_i64s(u->body, NULL, p->merged_rank, axes)};
        add_node(u, PO_OP_Slice, 4, in, p->merged_rank, p->length);
        return;
    }
    add_node(u, PO_OP_Slice, 1, &u->value, p->merged_rank, p->length);
    po_node_id node = u->body->values[u->value].producer;
    po_node_set_ints(u->body, node, "starts", p->merged_rank, zeros);
    po_node_set_ints(u->body, node, "ends", p->merged_rank, p->length);
    po_node_set_ints(u->body, node, "axes", p->merged_rank, axes);
}

po_status po_pack_unpack(po_ctx *ctx, po_graph *body, po_value_id input,
                         const po_packing *packing) {
    uint32_t rank;
    const po_dim *was = po_static_dims(body, input, &rank);
    int64_t dims[PO_PACK_MAX];
    if (!was || rank > PO_PACK_MAX || po_model_opset(body->model, "") < 5)
        return po_fail(ctx, PO_UNSUPPORTED, "weight '%.100s' cannot be unpacked in a function",
                       body->values[input].name);
    for (uint32_t i = 0; i < rank; i++)
        dims[i] = was[i].value;
    uint32_t n = body->values[input].n_uses;
    po_use *uses = po_arena_memdup(body->arena, body->values[input].uses, n * sizeof *uses);
    body->values[input].type =
        po_type_tensor_i64(body->arena, PO_F32, packing->rank, packing->dims);
    if (n == 0)
        return PO_OK;
    unpacking u = {.body = body, .place = uses[0].node, .value = input, .rank = packing->rank};
    memcpy(u.dims, packing->dims, packing->rank * sizeof *u.dims);
    transpose(&u, packing);
    reshape(&u, packing->merged_rank, packing->merged);
    slice(&u, packing);
    reshape(&u, rank, dims);
    for (uint32_t i = 0; i < n; i++)
        if (uses[i].input != PO_USE_CAPTURE)
            po_graph_set_input(body, uses[i].node, uses[i].input, u.value);
    return PO_OK;
}

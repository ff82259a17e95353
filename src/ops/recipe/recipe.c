/* Making recipes: leaves, the algebra, and what values and nodes are made of. */
#include "ops/recipe/recipe.h"

#include <string.h>

/* Derived weights are derived from again by later passes. Beyond this many operators the rounded
 * numbers are taken as they are: a chain of n rewrites then costs n evaluations and not n^2. */
enum { MOST_HEIGHT = 64 };
/* Larger integer constants are named, not copied. */
enum { MOST_INTEGERS = 64 };

static int64_t product(uint32_t rank, const int64_t *dims) {
    int64_t count = 1;
    for (uint32_t i = 0; i < rank; i++)
        count *= dims[i];
    return count;
}

/* --- leaves --- */

static const po_recipe *leaf(po_arena *arena, po_recipe_kind kind, const char *name,
                             const po_tensor *tensor) {
    po_recipe *r = PO_NEW(arena, po_recipe);
    *r = (po_recipe){.kind = kind,
                     .dtype = tensor->dtype,
                     .rank = tensor->rank,
                     .dims = tensor->dims,
                     .count = tensor->count,
                     .name = name,
                     .tensor = tensor};
    return r;
}

const po_recipe *po_recipe_literal(po_arena *arena, uint32_t rank, const int64_t *dims,
                                   const double *values) {
    po_tensor *t = PO_NEW(arena, po_tensor);
    t->dtype = PO_F64;
    t->rank = rank;
    t->dims = po_arena_memdup(arena, dims, rank * sizeof *dims);
    t->count = product(rank, dims);
    t->size = (size_t)t->count * sizeof *values;
    t->data = po_arena_memdup(arena, values, t->size);
    return leaf(arena, PO_RECIPE_LITERAL, NULL, t);
}

const po_recipe *po_recipe_number(po_arena *arena, double number) {
    return po_recipe_literal(arena, 0, NULL, &number);
}

const po_recipe *po_recipe_fill(po_arena *arena, uint32_t rank, const int64_t *dims,
                                double number) {
    return po_recipe_expand(arena, po_recipe_number(arena, number), rank, dims);
}

const po_recipe *po_recipe_identity(po_arena *arena, int64_t n) {
    double *v = PO_NEW_N(arena, double, n *n);
    for (int64_t i = 0; i < n; i++)
        v[i * n + i] = 1;
    return po_recipe_literal(arena, 2, (const int64_t[]){n, n}, v);
}

const po_recipe *po_recipe_ints(po_arena *arena, uint32_t n, const int64_t *values) {
    return leaf(arena, PO_RECIPE_LITERAL, NULL, po_tensor_i64(arena, n, values));
}

const po_recipe *po_recipe_table(po_arena *arena, const po_tensor *tensor) {
    return po_dtype_class_of(tensor->dtype) == PO_CLASS_FLOAT
               ? po_recipe_literal(arena, tensor->rank, tensor->dims,
                                   po_tensor_doubles(arena, tensor))
               : leaf(arena, PO_RECIPE_LITERAL, NULL, tensor);
}

/* --- operators --- */

const po_recipe *po_recipe_op(po_arena *arena, const po_recipe_spec *spec) {
    po_recipe *r = PO_NEW(arena, po_recipe);
    uint32_t height = 0;
    for (uint32_t i = 0; i < spec->n_in; i++)
        if (spec->in[i] && !spec->in[i]->tensor && spec->in[i]->height > height)
            height = spec->in[i]->height;
    *r = (po_recipe){.kind = PO_RECIPE_OP,
                     .dtype = spec->dtype,
                     .rank = spec->rank,
                     .dims = po_arena_memdup(arena, spec->dims, spec->rank * sizeof *spec->dims),
                     .count = product(spec->rank, spec->dims),
                     .op = spec->op,
                     .n_in = spec->n_in,
                     .n_attr = spec->n_attr,
                     .n_out = spec->n_out ? spec->n_out : 1,
                     .output = spec->output,
                     .in = po_arena_memdup(arena, spec->in, spec->n_in * sizeof *spec->in),
                     .attr = po_arena_memdup(arena, spec->attr, spec->n_attr * sizeof *spec->attr),
                     .height = height + 1};
    return r;
}

static const po_recipe *cast(po_arena *arena, const po_recipe *a, po_dtype dtype) {
    const po_attr to = {.name = "to", .kind = PO_ATTR_INT, .n = 1, .u.i = dtype};
    return po_recipe_op(arena, &(po_recipe_spec){.op = PO_OP_Cast,
                                                 .n_in = 1,
                                                 .in = &a,
                                                 .n_attr = 1,
                                                 .attr = &to,
                                                 .dtype = dtype,
                                                 .rank = a->rank,
                                                 .dims = a->dims});
}

void po_set_recipe_literal(po_graph *graph, po_value_id value, const double *values) {
    const po_tensor *t = graph->values[value].constant;
    po_arena *scratch = po_arena_child(graph->arena);
    const po_recipe *r = po_recipe_literal(scratch, t->rank, t->dims, values);
    po_set_recipe(graph, value, t->dtype == PO_F64 ? r : cast(scratch, r, t->dtype));
    po_arena_free(scratch);
}

static const po_recipe *unary(po_arena *arena, po_op_id op, const po_recipe *a) {
    return po_recipe_op(
        arena,
        &(po_recipe_spec){
            .op = op, .n_in = 1, .in = &a, .dtype = a->dtype, .rank = a->rank, .dims = a->dims});
}

/* An operator with a second input and at most one attribute. */
static const po_recipe *with(po_arena *arena, po_op_id op, const po_recipe *a, const po_recipe *b,
                             const po_attr *attr, uint32_t rank, const int64_t *dims) {
    const po_recipe *in[2] = {a, b};
    return po_recipe_op(arena, &(po_recipe_spec){.op = op,
                                                 .n_in = b ? 2 : 1,
                                                 .in = in,
                                                 .n_attr = attr ? 1 : 0,
                                                 .attr = attr,
                                                 .dtype = a->dtype,
                                                 .rank = rank,
                                                 .dims = dims});
}

/* Numpy broadcasting; dims that do not fit are found by the evaluation. */
static uint32_t broadcast(const po_recipe *a, uint32_t na, const po_recipe *b, uint32_t nb,
                          int64_t *dims) {
    uint32_t n = na > nb ? na : nb;
    for (uint32_t i = 0; i < n; i++) {
        int64_t da = i + na >= n ? a->dims[i + na - n] : 1;
        int64_t db = i + nb >= n ? b->dims[i + nb - n] : 1;
        dims[i] = da == 1 ? db : da;
    }
    return n;
}

static const po_recipe *pair(po_arena *arena, po_op_id op, const po_recipe *a, const po_recipe *b) {
    int64_t dims[PO_MAX_RANK];
    uint32_t rank = broadcast(a, a->rank, b, b->rank, dims);
    return with(arena, op, a, b, NULL, rank, dims);
}

const po_recipe *po_recipe_add(po_arena *arena, const po_recipe *a, const po_recipe *b) {
    return pair(arena, PO_OP_Add, a, b);
}

const po_recipe *po_recipe_sub(po_arena *arena, const po_recipe *a, const po_recipe *b) {
    return pair(arena, PO_OP_Sub, a, b);
}

const po_recipe *po_recipe_mul(po_arena *arena, const po_recipe *a, const po_recipe *b) {
    return pair(arena, PO_OP_Mul, a, b);
}

const po_recipe *po_recipe_div(po_arena *arena, const po_recipe *a, const po_recipe *b) {
    return pair(arena, PO_OP_Div, a, b);
}

const po_recipe *po_recipe_neg(po_arena *arena, const po_recipe *a) {
    return unary(arena, PO_OP_Neg, a);
}

const po_recipe *po_recipe_sqrt(po_arena *arena, const po_recipe *a) {
    return unary(arena, PO_OP_Sqrt, a);
}

const po_recipe *po_recipe_drop_tiny(po_arena *arena, const po_recipe *a) {
    const po_attr attr[2] = {
        {.name = "bias", .kind = PO_ATTR_FLOAT, .n = 1, .u.f = 0},
        {.name = "lambd", .kind = PO_ATTR_FLOAT, .n = 1, .u.f = PO_RECIPE_TINY}};
    return po_recipe_op(arena, &(po_recipe_spec){.op = PO_OP_Shrink,
                                                 .n_in = 1,
                                                 .in = &a,
                                                 .n_attr = 2,
                                                 .attr = attr,
                                                 .dtype = a->dtype,
                                                 .rank = a->rank,
                                                 .dims = a->dims});
}

bool po_recipe_drops_tiny(const po_node *node) {
    double least = po_node_float(node, "lambd", 0.5f);
    return node->op == PO_OP_Shrink && po_node_float(node, "bias", 0) == 0 && least >= 0 &&
           least <= PO_RECIPE_TINY;
}

const po_recipe *po_recipe_reshape(po_arena *arena, const po_recipe *a, uint32_t rank,
                                   const int64_t *dims) {
    if (a->rank == rank && (rank == 0 || memcmp(a->dims, dims, rank * sizeof *dims) == 0))
        return a;
    return with(arena, PO_OP_Reshape, a, po_recipe_ints(arena, rank, dims), NULL, rank, dims);
}

const po_recipe *po_recipe_expand(po_arena *arena, const po_recipe *a, uint32_t rank,
                                  const int64_t *dims) {
    return with(arena, PO_OP_Expand, a, po_recipe_ints(arena, rank, dims), NULL, rank, dims);
}

const po_recipe *po_recipe_transpose(po_arena *arena, const po_recipe *a, const uint32_t *perm) {
    int64_t dims[PO_MAX_RANK], *axes = PO_NEW_N(arena, int64_t, a->rank);
    for (uint32_t i = 0; i < a->rank; i++) {
        axes[i] = perm[i];
        dims[i] = a->dims[perm[i]];
    }
    const po_attr attr = {.name = "perm", .kind = PO_ATTR_INTS, .n = a->rank, .u.ints = axes};
    return with(arena, PO_OP_Transpose, a, NULL, &attr, a->rank, dims);
}

const po_recipe *po_recipe_matmul(po_arena *arena, const po_recipe *a, const po_recipe *b) {
    int64_t dims[PO_MAX_RANK];
    uint32_t rank = broadcast(a, a->rank - 2, b, b->rank - 2, dims);
    dims[rank] = a->dims[a->rank - 2];
    dims[rank + 1] = b->dims[b->rank - 1];
    return with(arena, PO_OP_MatMul, a, b, NULL, rank + 2, dims);
}

const po_recipe *po_recipe_concat(po_arena *arena, uint32_t axis, uint32_t n,
                                  const po_recipe *const *parts) {
    int64_t dims[PO_MAX_RANK];
    memcpy(dims, parts[0]->dims, parts[0]->rank * sizeof *dims);
    for (uint32_t i = 1; i < n; i++)
        dims[axis] += parts[i]->dims[axis];
    const po_attr attr = {.name = "axis", .kind = PO_ATTR_INT, .n = 1, .u.i = axis};
    return po_recipe_op(arena, &(po_recipe_spec){.op = PO_OP_Concat,
                                                 .n_in = n,
                                                 .in = parts,
                                                 .n_attr = 1,
                                                 .attr = &attr,
                                                 .dtype = parts[0]->dtype,
                                                 .rank = parts[0]->rank,
                                                 .dims = dims});
}

const po_recipe *po_recipe_gather(po_arena *arena, const po_recipe *a, uint32_t axis, uint32_t n,
                                  const int64_t *indices) {
    int64_t dims[PO_MAX_RANK];
    memcpy(dims, a->dims, a->rank * sizeof *dims);
    dims[axis] = n;
    const po_attr attr = {.name = "axis", .kind = PO_ATTR_INT, .n = 1, .u.i = axis};
    return with(arena, PO_OP_Gather, a, po_recipe_ints(arena, n, indices), &attr, a->rank, dims);
}

const po_recipe *po_recipe_slice(po_arena *arena, const po_recipe *a, uint32_t axis, int64_t from,
                                 int64_t to) {
    int64_t dims[PO_MAX_RANK], at = axis;
    memcpy(dims, a->dims, a->rank * sizeof *dims);
    dims[axis] = to - from;
    const po_recipe *in[4] = {a, po_recipe_ints(arena, 1, &from), po_recipe_ints(arena, 1, &to),
                              po_recipe_ints(arena, 1, &at)};
    return po_recipe_op(arena, &(po_recipe_spec){.op = PO_OP_Slice,
                                                 .n_in = 4,
                                                 .in = in,
                                                 .dtype = a->dtype,
                                                 .rank = a->rank,
                                                 .dims = dims});
}

/* --- what values are made of --- */

const po_recipe *po_recipe_of(const po_graph *graph, po_arena *arena, po_value_id value) {
    while (graph->values[value].outer != PO_NONE && graph->parent) {
        value = graph->values[value].outer;
        graph = graph->parent;
    }
    const po_value *v = &graph->values[value];
    if (v->recipe)
        return v->recipe;
    bool number = po_dtype_class_of(v->constant->dtype) == PO_CLASS_FLOAT;
    bool small = !number && v->constant->count <= MOST_INTEGERS;
    return leaf(arena, small ? PO_RECIPE_LITERAL : PO_RECIPE_SOURCE, small ? NULL : v->name,
                v->constant);
}

const po_recipe *po_recipe_doubles(const po_graph *graph, po_arena *arena, po_value_id value) {
    const po_recipe *r = po_recipe_of(graph, arena, value);
    if (r->dtype == PO_F64)
        return r;
    if (r->kind == PO_RECIPE_OP && r->op == PO_OP_Cast && r->in[0]->dtype == PO_F64 &&
        r->in[0]->height <= MOST_HEIGHT)
        return r->in[0];
    return cast(arena, r, PO_F64);
}

/* --- nodes of the model --- */

int64_t po_recipe_opset(const po_model *model) {
    enum { LEAST = 13 };
    int64_t opset = model ? po_model_opset(model, "") : 0;
    return opset < LEAST ? LEAST : opset;
}

/* Operators of the standard domain that mean something else, or are written in another way, before
 * these opsets. What only turned attributes into inputs is told apart by the reference. */
static const struct {
    po_op op;
    int since;
} changes[] = {
    {PO_OP_Add, 7},       {PO_OP_Sub, 7},      {PO_OP_Mul, 7},
    {PO_OP_Div, 7},       {PO_OP_Pow, 7},      {PO_OP_And, 7},
    {PO_OP_Or, 7},        {PO_OP_Xor, 7},      {PO_OP_Greater, 7},
    {PO_OP_Less, 7},      {PO_OP_Equal, 7},    {PO_OP_Gemm, 7},
    {PO_OP_PRelu, 7},     {PO_OP_Cast, 6},     {PO_OP_BatchNormalization, 14},
    {PO_OP_Upsample, 13}, {PO_OP_Slice, 10},   {PO_OP_TopK, 11},
    {PO_OP_Clip, 11},     {PO_OP_Pad, 11},     {PO_OP_Resize, 13},
    {PO_OP_Dropout, 12},  {PO_OP_Softmax, 13}, {PO_OP_LogSoftmax, 13},
    {PO_OP_Hardmax, 13},
};

bool po_recipe_can_state(const po_graph *graph, const po_node *node) {
    if (!po_op_row_of(node->op) || po_op_has(node->op, PO_OPF_CONTROL | PO_OPF_RANDOM))
        return false;
    int64_t opset = graph->model ? po_model_opset(graph->model, "") : 0;
    if (*node->domain || opset == 0)
        return true;
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++)
        if (changes[i].op == node->op)
            return opset >= changes[i].since;
    return true;
}

/* Slice wrote its bounds as attributes before opset 10. */
static const po_recipe *old_slice(po_arena *arena, const po_node *node, const po_recipe *x,
                                  const po_tensor *result) {
    static const char *const names[3] = {"starts", "ends", "axes"};
    const po_recipe *in[4] = {x};
    for (uint32_t i = 0; i < 3; i++) {
        uint32_t n;
        const int64_t *v = po_node_ints(node, names[i], &n);
        if (!v && i < 2)
            return NULL;
        in[i + 1] = v ? po_recipe_ints(arena, n, v) : NULL;
    }
    return po_recipe_op(arena, &(po_recipe_spec){.op = PO_OP_Slice,
                                                 .n_in = in[3] ? 4 : 3,
                                                 .in = in,
                                                 .dtype = result->dtype,
                                                 .rank = result->rank,
                                                 .dims = result->dims});
}

const po_recipe *po_recipe_of_node(const po_graph *graph, po_arena *arena, const po_node *node,
                                   uint32_t output, const po_tensor *result) {
    const po_recipe **in = PO_NEW_N(arena, const po_recipe *, node->n_in);
    for (uint32_t i = 0; i < node->n_in; i++)
        if (node->in[i] != PO_NONE) {
            if (!po_graph_constant(graph, node->in[i]))
                return NULL;
            in[i] = po_recipe_of(graph, arena, node->in[i]);
        }
    if (!po_recipe_can_state(graph, node))
        return node->op == PO_OP_Slice ? old_slice(arena, node, in[0], result) : NULL;
    return po_recipe_op(arena, &(po_recipe_spec){.op = node->op,
                                                 .n_in = node->n_in,
                                                 .in = in,
                                                 .n_attr = node->n_attr,
                                                 .attr = node->attr,
                                                 .n_out = node->n_out,
                                                 .output = output,
                                                 .dtype = result->dtype,
                                                 .rank = result->rank,
                                                 .dims = result->dims});
}

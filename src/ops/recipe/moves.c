/* Weights in f32 of which a recipe only moves the elements, moved as they lie: through f64, as the
 * reference computes, they would take five times the memory. */
#include "ops/recipe/walk.h"
#include "ops/rule.h"

#include <math.h>

enum { MOST_MOVES = 16 }; /* one after the other: longer chains are worked by the reference */

/* The axes' lengths and steps of what is transposed; false where that is not stated. */
static bool read_transpose(const po_recipe *r, const po_tensor *of, int64_t *dims,
                           int64_t *strides) {
    int64_t own[PO_MAX_RANK];
    uint64_t seen = 0;
    const po_attr *perm = r->n_attr == 1 && strcmp(r->attr[0].name, "perm") == 0 ? r->attr : NULL;
    if (!perm || perm->kind != PO_ATTR_INTS || perm->n != of->rank || of->rank > PO_MAX_RANK)
        return false;
    po_rule_strides(of->rank, of->dims, own);
    for (uint32_t x = 0; x < of->rank; x++) {
        const int64_t from = perm->u.ints[x];
        if (from < 0 || from >= of->rank || (seen >> from & 1))
            return false;
        seen |= (uint64_t)1 << from;
        dims[x] = of->dims[from];
        strides[x] = own[from];
    }
    return true;
}

/* From the recipe down to the tensor that is moved; 0: it does more than that. */
static uint32_t read_moves(const po_recipe *r, const po_recipe *chain[MOST_MOVES + 1]) {
    uint32_t n = 0;
    for (chain[n++] = r; !r->tensor; chain[n++] = r) {
        const bool moves =
            r->kind == PO_RECIPE_OP && (r->dtype == PO_F32 || r->dtype == PO_F64) && r->n_in > 0 &&
            r->in[0] && (r->op == PO_OP_Transpose || r->op == PO_OP_Cast || r->op == PO_OP_Reshape);
        if (!moves || n > MOST_MOVES)
            return 0;
        r = r->in[0];
    }
    return r->tensor->dtype == PO_F32 && r->tensor->data ? n : 0;
}

static bool all_finite(const po_tensor *t) {
    for (int64_t i = 0; i < t->count; i++) {
        float v; /* the data may be unaligned */
        memcpy(&v, (const char *)t->data + (size_t)i * sizeof v, sizeof v);
        if (!isfinite(v))
            return false;
    }
    return true;
}

/* The same elements in the recipe's shape; a Cast keeps it. NULL: they are not so many. */
static const po_tensor *in_shape(po_arena *arena, const po_recipe *r, const po_tensor *of) {
    if (r->op == PO_OP_Cast)
        return of;
    if (!r->dims || r->count != of->count)
        return NULL;
    po_tensor *t = po_arena_memdup(arena, of, sizeof *of);
    t->rank = r->rank;
    t->dims = po_arena_memdup(arena, r->dims, r->rank * sizeof *r->dims);
    return t;
}

static const po_tensor *transposed(po_ctx *ctx, po_arena *arena, const po_recipe *r,
                                   const po_tensor *of) {
    int64_t dims[PO_MAX_RANK], strides[PO_MAX_RANK];
    po_tensor *t;
    if (!read_transpose(r, of, dims, strides))
        return NULL;
    if (po_tensor_create(ctx, arena, PO_F32, of->rank, dims, &t) != PO_OK) {
        po_ctx_clear(ctx);
        return NULL;
    }
    po_move(po_tensor_data(t), of->data, sizeof(float), t->rank, t->dims, 0, strides);
    return t;
}

const po_tensor *po_recipe_moved(po_ctx *ctx, po_arena *arena, const po_recipe *recipe) {
    const po_recipe *chain[MOST_MOVES + 1];
    uint32_t n = read_moves(recipe, chain), last = 0;
    if (n == 0)
        return NULL;
    while (last < n - 1 && chain[last]->op != PO_OP_Transpose)
        last++;
    po_arena *scratch = po_arena_child(arena);
    const po_tensor *at = chain[n - 1]->tensor;
    for (uint32_t k = n - 1; k-- > 0 && at;)
        at = chain[k]->op == PO_OP_Transpose
                 ? transposed(ctx, k == last ? arena : scratch, chain[k], at)
                 : in_shape(arena, chain[k], at);
    po_tensor *copy = NULL;
    if (at && all_finite(at)) {
        copy = po_arena_memdup(arena, at, sizeof *at);
        copy->dims = po_arena_memdup(arena, at->dims, at->rank * sizeof *at->dims);
        copy->origin = NULL; /* the message it was read from has other dims */
        if (last == n - 1 &&
            po_tensor_create(ctx, arena, PO_F32, at->rank, at->dims, &copy) == PO_OK)
            memcpy(po_tensor_data(copy), at->data, (size_t)at->count * sizeof(float));
    }
    po_arena_free(scratch);
    return copy;
}

/* What it means that two models differ modulo p. Residues differ where the functions do; but also
 * where they are equal by a law that the proof does not know, and where one model holds as a
 * rounded number what the other computes. It is certain where neither can be: both models hold the
 * same constants, and apply the same functions to the same values, which nothing then multiplies (a
 * root times itself is what it is the root of). */
#include "verify/proof/internal.h"

#include <math.h>

/* Elements that are looked up one by one; models with more of their own are left undecided. */
enum { MOST_LOOKED_UP = 1 << 22 };

typedef struct op_list {
    uint32_t n;
    po_op_id ops[12];
} op_list;

/* Rational functions that residues follow exactly, beside indexed sums. */
static const op_list arithmetic = {9,
                                   {PO_OP_Add, PO_OP_Sub, PO_OP_Mul, PO_OP_Div, PO_OP_Neg,
                                    PO_OP_Sum, PO_OP_ReduceSum, PO_OP_ReduceMean, PO_OP_Mean}};
/* Their inputs are not multiplied with one another. */
static const op_list additive = {5, {PO_OP_Add, PO_OP_Sub, PO_OP_Sum, PO_OP_Mean, PO_OP_Concat}};

static bool among(const op_list *list, const po_node *node) {
    for (uint32_t i = 0; i < list->n; i++)
        if (node->op == list->ops[i])
            return true;
    return false;
}

/* Whether values that depend on inputs are multiplied, or divided by. */
static bool multiplies(const po_pnode *n) {
    uint32_t varying = 0;
    for (uint32_t k = 0; k < n->node->n_in; k++) {
        const po_ptensor *t = n->in[k];
        bool varies =
            t && !t->constant && po_dtype_class_of(t->dtype) == PO_CLASS_FLOAT && !t->known;
        varying += varies;
        if (varies && k == 1 && n->node->op == PO_OP_Div)
            return true;
    }
    return varying > 1 && !among(&additive, n->node);
}

void po_pn_note(po_pnode *n, bool indexed) {
    if (indexed || among(&arithmetic, n->node)) {
        n->run->multiplied |= multiplies(n);
        return;
    }
    po_prun *run = n->run;
    po_hash print = po_pn_print(n);
    if (!run->applied[run->side])
        run->applied[run->side] = po_hash_map_create(run->arena);
    if (po_hash_map_get(run->applied[run->side], print) != PO_NONE)
        return;
    po_hash_map_put(run->applied[run->side], print, 1);
    run->applied_sum[run->side].lo += print.lo;
    run->applied_sum[run->side].hi += print.hi;
}

/* --- constants --- */

typedef struct holdings {
    po_arena *arena;
    po_hash_map *tensors, *numbers;
    int64_t left; /* elements that may still be looked up */
} holdings;

static po_hash hash_number(double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return po_hash_u64((po_hash){0, 0}, bits);
}

/* A residue without rounding, and small enough that another model may hold it by chance. */
static bool is_exact(double value) {
    double scaled = value * 0x1p12;
    return fabs(value) < 0x1p12 && scaled == floor(scaled);
}

static bool is_float(const po_tensor *t) {
    return t && po_dtype_class_of(t->dtype) == PO_CLASS_FLOAT;
}

static po_status collect(po_ctx *ctx, po_graph *graph, void *user) {
    holdings *h = user;
    (void)ctx;
    for (po_value_id v = 0; v < graph->n_values; v++) {
        const po_tensor *t = graph->values[v].constant;
        if (!is_float(t))
            continue;
        po_hash_map_put(h->tensors, po_tensor_hash(t), 1);
        h->left -= t->count;
        for (int64_t i = 0; h->left >= 0 && i < t->count; i++)
            po_hash_map_put(h->numbers, hash_number(po_tensor_f64(t, i)), 1);
    }
    return PO_OK;
}

typedef struct closing {
    const holdings *other;
    const po_map *excused; /* names that a recipe takes, or makes */
    bool closed;
} closing;

static po_status look_up(po_ctx *ctx, po_graph *graph, void *user) {
    closing *c = user;
    (void)ctx;
    for (po_value_id v = 0; v < graph->n_values && c->closed; v++) {
        const po_value *value = &graph->values[v];
        const po_tensor *t = value->constant;
        if (!is_float(t) || (value->n_uses == 0 && value->n_outputs == 0) ||
            (c->excused && po_map_get(c->excused, value->name) != PO_NONE) ||
            po_hash_map_get(c->other->tensors, po_tensor_hash(t)) != PO_NONE)
            continue;
        for (int64_t i = 0; c->closed && i < t->count; i++) {
            double x = po_tensor_f64(t, i);
            c->closed =
                is_exact(x) || (c->other->left >= 0 &&
                                po_hash_map_get(c->other->numbers, hash_number(x)) != PO_NONE);
        }
    }
    return PO_OK;
}

static po_map *names_of(po_arena *arena, const po_graph *g, const po_value_id *ids, uint32_t n) {
    po_map *names = po_map_create(arena);
    for (uint32_t k = 0; k < n; k++)
        po_map_put(names, g->values[ids[k]].name, k);
    return names;
}

/* Whether every float that `a` holds is one of `b`'s, exact, or named. */
static po_status closed_under(po_ctx *ctx, po_arena *arena, const po_graph *a, const po_graph *b,
                              const po_map *excused, bool *closed) {
    holdings h = {arena, po_hash_map_create(arena), po_hash_map_create(arena), MOST_LOOKED_UP};
    closing c = {&h, excused, true};
    PO_TRY(po_graph_walk(ctx, (po_graph *)(uintptr_t)b, collect, &h));
    PO_TRY(po_graph_walk(ctx, (po_graph *)(uintptr_t)a, look_up, &c));
    *closed = c.closed;
    return PO_OK;
}

po_status po_proof_certain(const po_prun *run, const po_graph *a, const po_graph *b,
                           const po_graph *recipes, bool *certain) {
    *certain = run->n_opaque == 0 && po_hash_equal(run->applied_sum[0], run->applied_sum[1]) &&
               (!run->multiplied || !(run->applied[0] || run->applied[1]));
    if (!*certain)
        return PO_OK;
    po_arena *arena = po_arena_create(run->ctx);
    const po_map *taken = NULL, *made = NULL;
    if (recipes) {
        taken = names_of(arena, recipes, recipes->inputs, recipes->n_inputs);
        made = names_of(arena, recipes, recipes->outputs, recipes->n_outputs);
    }
    po_status status = closed_under(run->ctx, arena, b, a, made, certain);
    if (status == PO_OK && *certain)
        status = closed_under(run->ctx, arena, a, b, taken, certain);
    po_arena_free(arena);
    return status;
}

/* Marks the elements in which two graphs differ under any seed, and holds an agreement's boxes
 * against them: each position in one box, no difference in an equal one, one at least in any
 * other. */
#include "agreeing.h"

#include "base/num.h"
#include "ops/op.h"
#include "unit.h"

#include <math.h>

static po_array **evaluate(po_ctx *ctx, po_arena *arena, const po_graph *g, uint64_t seed) {
    const po_array **in = PO_NEW_N(arena, const po_array *, g->n_inputs);
    po_array **out = PO_NEW_N(arena, po_array *, g->n_outputs);
    for (uint32_t i = 0; i < g->n_inputs; i++) {
        const po_type *type = &g->values[g->inputs[i]].type;
        int64_t dims[PO_MAX_RANK];
        po_array *a = NULL;
        for (uint32_t x = 0; x < type->rank; x++)
            dims[x] = type->dims[x].value;
        assert_int_equal(po_array_create(ctx, arena, type->dtype, type->rank, dims, &a), PO_OK);
        for (int64_t k = 0; k < a->count; k++)
            a->f[k] = 1 + (double)(po_random_u64(seed, i, (uint64_t)k) % 97);
        in[i] = a;
    }
    bool good = po_ref_graph(ctx, arena, g, in, out, false) == PO_OK;
    po_ctx_clear(ctx);
    return good ? out : NULL;
}

uint8_t **test_differing(po_ctx *ctx, po_arena *arena, const po_graph *a, const po_graph *b,
                         uint32_t seeds) {
    uint8_t **differ = PO_NEW_N(arena, uint8_t *, a->n_outputs);
    for (uint32_t seed = 0; seed < seeds; seed++) {
        po_arena *scratch = po_arena_child(arena);
        po_array **x = evaluate(ctx, scratch, a, seed), **y = evaluate(ctx, scratch, b, seed);
        if (!x || !y) {
            po_arena_free(scratch);
            return NULL;
        }
        for (uint32_t k = 0; k < a->n_outputs; k++) {
            assert_int_equal(x[k]->count, y[k]->count);
            if (!differ[k])
                differ[k] = PO_NEW_N(arena, uint8_t, x[k]->count);
            for (int64_t i = 0; i < x[k]->count; i++) {
                double size = fabs(x[k]->f[i]) + fabs(y[k]->f[i]);
                differ[k][i] |= fabs(x[k]->f[i] - y[k]->f[i]) > 1e-11 * size;
            }
        }
        po_arena_free(scratch);
    }
    return differ;
}

typedef struct tally {
    const po_tensor_shape *shape;
    const uint8_t *differing;
    uint8_t *seen;
    int64_t equal;
} tally;

static const char *check_box(tally *t, const po_box *box, bool equal) {
    int64_t at[PO_MAX_RANK] = {0};
    bool difference = false;
    for (uint32_t x = 0; x < box->rank; x++)
        if (box->count[x] < 1)
            return "an empty box";
    do {
        int64_t i = 0;
        for (uint32_t x = 0; x < box->rank; x++) {
            int64_t v = box->first[x] + at[x] * box->step[x];
            if (v < 0 || v >= t->shape->dims[x])
                return "a box outside";
            i = i * t->shape->dims[x] + v;
        }
        if (t->seen[i]++)
            return "boxes overlap";
        difference |= t->differing[i];
        t->equal += equal;
    } while (po_next_index(box->rank, box->count, at));
    if (equal && difference)
        return "a position called equal differs";
    if (!equal && !difference)
        return "a box called unequal is equal";
    return NULL;
}

const char *test_check_agreement(po_arena *arena, const po_program *program,
                                 const po_agreement *agreement, uint8_t *const *differing) {
    double total = 0, equal = 0;
    bool all = true;
    for (uint32_t k = 0; k < program->n_outputs; k++) {
        const po_tensor_shape *shape = &program->values[program->outputs[k]];
        tally t = {shape, differing[k], PO_NEW_N(arena, uint8_t, shape->count), 0};
        const char *wrong = NULL;
        for (uint32_t i = 0; i < agreement->agree[k].n && !wrong; i++)
            wrong = check_box(&t, &agreement->agree[k].boxes[i], true);
        for (uint32_t i = 0; i < agreement->differ[k].n && !wrong; i++)
            wrong = check_box(&t, &agreement->differ[k].boxes[i], false);
        for (int64_t i = 0; i < shape->count && !wrong; i++)
            wrong = t.seen[i] ? NULL : "a position in no box";
        if (wrong)
            return wrong;
        total += (double)shape->count;
        equal += (double)t.equal;
        all &= t.equal == shape->count;
    }
    if (all != agreement->equal)
        return "`equal` is wrong";
    if (total > 0 && fabs(equal / total - agreement->share) > 1e-12)
        return "`share` is wrong";
    return NULL;
}

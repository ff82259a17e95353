/* Terms of three factors and more, two factors at a time.
 *
 * Where variables stand in two factors alone, these are multiplied and summed over them first, into
 * a tensor of its own: Resize of two axes is a product along each, of H W (H' + W') in place of
 * H W H' W' multiplications. */
#include "ops/sum/contract.h"

#include "base/num.h"

/* The two factors, and which of their variables go. */
typedef struct choice {
    uint32_t a, b;
    bool gone[PO_SUM_MAX_VARS], kept[PO_SUM_MAX_VARS];
    double cost; /* multiplications of both steps */
} choice;

/* False where nothing goes. */
static bool weigh(const po_term *t, uint32_t a, uint32_t b, choice *c) {
    double inner = 1, outer = 1;
    bool some = false;
    *c = (choice){.a = a, .b = b};
    for (uint32_t v = 0; v < t->n_vars; v++) {
        const bool here =
            po_index_has(t, &t->factor[a].at, v) || po_index_has(t, &t->factor[b].at, v);
        bool elsewhere = po_index_has(t, &t->out, v);
        for (uint32_t k = 0; k < t->n_factors; k++)
            elsewhere = elsewhere || (k != a && k != b && po_index_has(t, &t->factor[k].at, v));
        c->gone[v] = here && !elsewhere;
        c->kept[v] = here && elsewhere;
        some = some || c->gone[v];
        inner *= here ? (double)t->extent[v] : 1;
        outer *= c->gone[v] ? 1 : (double)t->extent[v];
    }
    c->cost = inner + outer;
    return some;
}

static bool choose(const po_term *t, choice *best) {
    double all = 1;
    for (uint32_t v = 0; v < t->n_vars; v++)
        all *= (double)t->extent[v];
    best->cost = all / 2; /* less is not worth a tensor */
    bool found = false;
    for (uint32_t a = 0; a < t->n_factors; a++)
        for (uint32_t b = a + 1; b < t->n_factors; b++) {
            choice c;
            if (!weigh(t, a, b, &c) || c.cost >= best->cost)
                continue;
            *best = c;
            found = true;
        }
    return found;
}

/* All variables but those that go, numbered anew; UINT32_MAX: it goes. */
static void take_vars(const po_term *from, const bool *goes, po_term *to, uint32_t *number) {
    for (uint32_t v = 0; v < from->n_vars; v++)
        number[v] = goes[v] ? UINT32_MAX : po_term_var(to, NULL, from->extent[v]);
}

static void copy_index(const po_term *from, const po_index *index, const uint32_t *number,
                       po_term *to, po_index *copy) {
    for (uint32_t x = 0; x < index->rank; x++) {
        copy->base[x] = index->base[x];
        for (uint32_t v = 0; v < from->n_vars; v++)
            if (number[v] != UINT32_MAX)
                po_index_add(to, copy, x, po_index_coef(from, index, x, v), number[v]);
    }
}

static po_index *add_factor(po_sum *sum, po_term *t, uint32_t input, const po_operand *like) {
    return po_term_factor(sum, t, po_sum_input(sum, input, like->rank, like->dims));
}

bool po_sum_contract(po_arena *arena, const po_sum *sum, const po_term *t, po_contraction *c) {
    choice pick;
    if (t->n_factors < 3 || !choose(t, &pick))
        return false;
    int64_t dims[PO_SUM_MAX_VARS], count = 1;
    uint32_t rank = 0, number[PO_SUM_MAX_VARS];
    bool absent[PO_SUM_MAX_VARS]; /* from both */
    for (uint32_t v = 0; v < t->n_vars; v++) {
        absent[v] = !pick.gone[v] && !pick.kept[v];
        if (!pick.kept[v])
            continue;
        dims[rank++] = t->extent[v];
        if (!po_mul_i64(count, t->extent[v], &count))
            return false;
    }
    po_sum *inner = po_sum_create(arena, rank, dims);
    po_term *first = po_sum_term(inner, t->n_vars);
    const uint32_t both[2] = {pick.a, pick.b};
    take_vars(t, absent, first, number);
    for (uint32_t v = 0, x = 0; v < t->n_vars; v++)
        if (pick.kept[v])
            po_index_add(first, &first->out, x++, 1, number[v]);
    for (uint32_t k = 0; k < 2; k++) {
        const po_factor *f = &t->factor[both[k]];
        copy_index(t, &f->at, number, first,
                   add_factor(inner, first, k, &sum->operands[f->operand]));
        c->pair[k] = f->operand;
    }
    po_sum *outer = po_sum_create(arena, sum->rank, sum->dims);
    po_term *then = po_sum_term(outer, t->n_vars);
    then->scale = t->scale;
    take_vars(t, pick.gone, then, number);
    copy_index(t, &t->out, number, then, &then->out);
    c->n_rest = 0;
    for (uint32_t k = 0; k < t->n_factors; k++) {
        const po_factor *f = &t->factor[k];
        if (k == pick.a || k == pick.b)
            continue;
        copy_index(t, &f->at, number, then,
                   add_factor(outer, then, c->n_rest, &sum->operands[f->operand]));
        c->rest[c->n_rest++] = f->operand;
    }
    const po_operand made = {.rank = rank, .dims = dims};
    po_index *at = add_factor(outer, then, c->n_rest, &made);
    for (uint32_t v = 0, x = 0; v < t->n_vars; v++)
        if (pick.kept[v])
            po_index_add(then, at, x++, 1, number[v]);
    c->inner = inner;
    c->outer = outer;
    return po_sum_check(inner) && po_sum_check(outer);
}

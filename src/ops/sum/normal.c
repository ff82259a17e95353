/* Normal form, equality and hash of indexed sums. */
#include "base/num.h"
#include "ops/sum/sum.h"

/* --- columns: what one variable does in every index of its term --- */

/* Calls for every (index, axis) of a term, output first. */
typedef struct cursor {
    const po_term *term;
    uint32_t slot, axis;
} cursor;

static po_index *slot_index(const po_term *t, uint32_t slot) {
    return (po_index *)(uintptr_t)(slot ? &t->factor[slot - 1].at : &t->out);
}

static bool next(cursor *c, po_index **index) {
    while (c->slot <= c->term->n_factors) {
        *index = slot_index(c->term, c->slot);
        if (c->axis < (*index)->rank)
            return true;
        c->slot++;
        c->axis = 0;
    }
    return false;
}

/* Order of two columns: by the first index that tells them apart, larger coefficients first. */
static int compare_columns(const po_term *t, uint32_t v, uint32_t w) {
    po_index *index;
    for (cursor c = {.term = t}; next(&c, &index); c.axis++) {
        int64_t a = po_index_coef(t, index, c.axis, v), b = po_index_coef(t, index, c.axis, w);
        if (a != b)
            return a > b ? -1 : 1;
    }
    return t->extent[v] == t->extent[w] ? 0 : t->extent[v] > t->extent[w] ? -1 : 1;
}

static void swap_columns(po_term *t, uint32_t v, uint32_t w) {
    po_index *index;
    for (cursor c = {.term = t}; next(&c, &index); c.axis++) {
        int64_t *row = &index->coef[(size_t)c.axis * t->cap_vars], keep = row[v];
        row[v] = row[w];
        row[w] = keep;
    }
    int64_t extent = t->extent[v];
    t->extent[v] = t->extent[w];
    t->extent[w] = extent;
    const char *name = t->name[v];
    t->name[v] = t->name[w];
    t->name[w] = name;
}

static void remove_column(po_term *t, uint32_t v) {
    po_index *index;
    for (uint32_t w = v; w + 1 < t->n_vars; w++)
        swap_columns(t, w, w + 1);
    t->n_vars--;
    for (cursor c = {.term = t}; next(&c, &index); c.axis++)
        index->coef[c.axis * t->cap_vars + t->n_vars] = 0;
}

/* Whether v is the digit above w wherever they stand: its coefficients are extent(w) times. */
static bool digit_above(const po_term *t, uint32_t v, uint32_t w) {
    po_index *index;
    bool any = false;
    for (cursor c = {.term = t}; next(&c, &index); c.axis++) {
        int64_t high = po_index_coef(t, index, c.axis, v), low, part;
        low = po_index_coef(t, index, c.axis, w);
        if (!po_mul_i64(low, t->extent[w], &part) || part != high)
            return false;
        any |= low != 0;
    }
    return any;
}

static bool zero_column(const po_term *t, uint32_t v) {
    po_index *index;
    for (cursor c = {.term = t}; next(&c, &index); c.axis++)
        if (po_index_coef(t, index, c.axis, v))
            return false;
    return true;
}

/* Runs a variable backwards: t becomes extent - 1 - t. */
static void reverse_column(po_term *t, uint32_t v) {
    po_index *index;
    for (cursor c = {.term = t}; next(&c, &index); c.axis++) {
        int64_t *coef = &index->coef[c.axis * t->cap_vars + v];
        index->base[c.axis] += *coef * (t->extent[v] - 1);
        *coef = -*coef;
    }
}

/* The sign of a column's first coefficient. */
static bool starts_negative(const po_term *t, uint32_t v) {
    po_index *index;
    for (cursor c = {.term = t}; next(&c, &index); c.axis++) {
        int64_t coef = po_index_coef(t, index, c.axis, v);
        if (coef)
            return coef < 0;
    }
    return false;
}

/* Whether the variable can run where no index of its term falls outside is not asked here: only
 * rewrites that keep the visited indices as they are. */
static po_status tidy_vars(po_term *t) {
    for (uint32_t v = 0; v < t->n_vars;) {
        if (t->extent[v] == 1) {
            remove_column(t, v);
            continue;
        }
        if (zero_column(t, v)) {
            /* Nothing depends on it: so many equal iterations. */
            if (!po_rational_mul(t->scale, PO_RATIONAL(t->extent[v]), &t->scale))
                return PO_UNSUPPORTED;
            remove_column(t, v);
            continue;
        }
        if (starts_negative(t, v))
            reverse_column(t, v);
        v++;
    }
    for (bool merged = true; merged;) {
        merged = false;
        for (uint32_t v = 0; v < t->n_vars && !merged; v++)
            for (uint32_t w = 0; w < t->n_vars && !merged; w++) {
                if (v == w || !digit_above(t, v, w) ||
                    !po_mul_i64(t->extent[w], t->extent[v], &t->extent[w]))
                    continue;
                remove_column(t, v);
                merged = true;
            }
    }
    for (uint32_t v = 1; v < t->n_vars; v++)
        for (uint32_t w = v; w && compare_columns(t, w, w - 1) < 0; w--)
            swap_columns(t, w, w - 1);
    return PO_OK;
}

/* --- factors and terms --- */

static int compare_i64(int64_t a, int64_t b) {
    return (a > b) - (a < b);
}

static int compare_index(const po_term *t, const po_index *a, const po_term *u, const po_index *b) {
    for (uint32_t x = 0; x < a->rank; x++) {
        int order = compare_i64(a->base[x], b->base[x]);
        for (uint32_t v = 0; v < t->n_vars && !order; v++)
            order = compare_i64(po_index_coef(u, b, x, v), po_index_coef(t, a, x, v));
        if (order)
            return order;
    }
    return 0;
}

static int compare_factors(const po_term *t, const po_factor *a, const po_term *u,
                           const po_factor *b) {
    if (a->operand != b->operand)
        return a->operand < b->operand ? -1 : 1;
    return compare_index(t, &a->at, u, &b->at);
}

static void sort_factors(po_term *t) {
    for (uint32_t i = 1; i < t->n_factors; i++)
        for (uint32_t k = i; k && compare_factors(t, &t->factor[k], t, &t->factor[k - 1]) < 0;
             k--) {
            po_factor keep = t->factor[k];
            t->factor[k] = t->factor[k - 1];
            t->factor[k - 1] = keep;
        }
}

/* Of everything but the scale. */
static int compare_terms(const po_term *a, const po_term *b) {
    int order = compare_i64(a->n_factors, b->n_factors);
    if (!order)
        order = compare_i64(a->n_vars, b->n_vars);
    for (uint32_t v = 0; v < a->n_vars && !order; v++)
        order = compare_i64(a->extent[v], b->extent[v]);
    if (!order)
        order = compare_index(a, &a->out, b, &b->out);
    for (uint32_t k = 0; k < a->n_factors && !order; k++)
        order = compare_factors(a, &a->factor[k], b, &b->factor[k]);
    return order;
}

static bool empty_term(const po_term *t) {
    for (uint32_t v = 0; v < t->n_vars; v++)
        if (t->extent[v] == 0)
            return true;
    return t->scale.num == 0;
}

po_status po_sum_normalize(po_sum *sum) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < sum->n_terms; i++) {
        po_term *t = &sum->terms[i];
        if (empty_term(t))
            continue;
        /* The order of factors decides that of variables, and within one operand the other way
         * round: the second round settles what the first one moved. */
        for (int round = 0; round < 2; round++) {
            sort_factors(t);
            PO_TRY(tidy_vars(t));
        }
        sum->terms[n++] = *t;
    }
    /* Insertion keeps equal terms together; sums have few terms. */
    for (uint32_t i = 1; i < n; i++)
        for (uint32_t k = i; k && compare_terms(&sum->terms[k], &sum->terms[k - 1]) < 0; k--) {
            po_term keep = sum->terms[k];
            sum->terms[k] = sum->terms[k - 1];
            sum->terms[k - 1] = keep;
        }
    uint32_t kept = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (kept && compare_terms(&sum->terms[kept - 1], &sum->terms[i]) == 0) {
            po_rational *scale = &sum->terms[kept - 1].scale;
            if (!po_rational_add(*scale, sum->terms[i].scale, scale))
                return PO_UNSUPPORTED;
        } else {
            sum->terms[kept++] = sum->terms[i];
        }
        if (sum->terms[kept - 1].scale.num == 0)
            kept--;
    }
    sum->n_terms = kept;
    return PO_OK;
}

/* --- equality and hash --- */

static bool operands_equal(const po_operand *a, const po_operand *b) {
    if (a->kind != b->kind || a->input != b->input || a->rank != b->rank ||
        memcmp(&a->eps, &b->eps, sizeof a->eps) != 0)
        return false;
    for (uint32_t i = 0; i < a->rank; i++)
        if (a->dims[i] != b->dims[i])
            return false;
    for (int64_t i = 0; a->kind == PO_OPERAND_TABLE && i < a->count; i++)
        if (!po_rational_equal(a->table[i], b->table[i]))
            return false;
    return true;
}

bool po_sum_equal(const po_sum *a, const po_sum *b) {
    if (a->rank != b->rank || a->n_operands != b->n_operands || a->n_terms != b->n_terms)
        return false;
    for (uint32_t i = 0; i < a->rank; i++)
        if (a->dims[i] != b->dims[i])
            return false;
    for (uint32_t i = 0; i < a->n_operands; i++)
        if (!operands_equal(&a->operands[i], &b->operands[i]))
            return false;
    for (uint32_t i = 0; i < a->n_terms; i++)
        if (!po_rational_equal(a->terms[i].scale, b->terms[i].scale) ||
            compare_terms(&a->terms[i], &b->terms[i]) != 0)
            return false;
    return true;
}

static po_hash hash_index(po_hash h, const po_term *t, const po_index *index) {
    for (uint32_t x = 0; x < index->rank; x++) {
        h = po_hash_u64(h, (uint64_t)index->base[x]);
        for (uint32_t v = 0; v < t->n_vars; v++)
            h = po_hash_u64(h, (uint64_t)po_index_coef(t, index, x, v));
    }
    return h;
}

po_hash po_sum_hash(const po_sum *sum) {
    po_hash h = {sum->n_operands, sum->n_terms};
    h = po_hash_bytes(sum->dims, sum->rank * sizeof *sum->dims, h);
    for (uint32_t i = 0; i < sum->n_operands; i++) {
        const po_operand *op = &sum->operands[i];
        h = po_hash_u64(po_hash_u64(h, op->kind), op->input);
        h = po_hash_bytes(&op->eps, sizeof op->eps, h);
        h = po_hash_bytes(op->dims, op->rank * sizeof *op->dims, h);
        if (op->kind == PO_OPERAND_TABLE)
            h = po_hash_bytes(op->table, (size_t)op->count * sizeof *op->table, h);
    }
    for (uint32_t i = 0; i < sum->n_terms; i++) {
        const po_term *t = &sum->terms[i];
        h = po_hash_u64(po_hash_u64(h, (uint64_t)t->scale.num), (uint64_t)t->scale.den);
        h = po_hash_bytes(t->extent, t->n_vars * sizeof *t->extent, h);
        h = hash_index(h, t, &t->out);
        for (uint32_t k = 0; k < t->n_factors; k++)
            h = hash_index(po_hash_u64(h, t->factor[k].operand), t, &t->factor[k].at);
    }
    return h;
}

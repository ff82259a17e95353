/* Evaluates indexed sums modulo a prime, whole or at a point. */
#include "base/clones.h"
#include "ops/sum/contract.h"
#include "ops/sum/product.h"
#include "ops/sum/walk.h"

/* --- modulo p --- */

/* An atom's residue from its argument's. */
static uint32_t atom(po_field field, const po_operand *op, uint32_t argument) {
    if (op->kind == PO_OPERAND_INPUT)
        return argument;
    if (op->kind == PO_OPERAND_RECIPROCAL)
        return po_field_inverse(field, argument);
    uint64_t eps;
    memcpy(&eps, &op->eps, sizeof eps);
    return (uint32_t)(po_random_u64(0x7273717274, eps, argument) % field.p);
}

uint32_t po_sum_atom_mod(const po_operand *op, uint32_t argument) {
    return atom(PO_FIELD_FIXED, op, argument);
}

static bool table_mod(po_field field, const po_operand *op, uint32_t *out) {
    po_rational last = PO_RATIONAL(0);
    uint32_t residue = 0;
    for (int64_t i = 0; i < op->count; i++) {
        /* Tables repeat few values, and an inverse is costly. */
        if (!po_rational_equal(op->table[i], last) &&
            !po_rational_residue(field, op->table[i], &residue))
            return false;
        last = op->table[i];
        out[i] = residue;
    }
    return true;
}

typedef struct residues {
    po_field field;
    uint32_t scale, n_factors;
    const uint32_t *factor[PO_SUM_MAX_FACTORS];
    uint32_t *out;
} residues;

/* The loops that take the time. */
#define WIDE PO_CLONES("avx512f", "avx2")

WIDE static uint32_t dot(po_field field, int64_t n, const uint32_t *a, int64_t sa,
                         const uint32_t *b, int64_t sb) {
    uint64_t low = 0, high = 0;
    /* Halves of products add up without overflow for 2^31 of them. */
    if (sa == 1 && sb == 1) {
        for (int64_t i = 0; i < n; i++) {
            uint64_t v = (uint64_t)a[i] * b[i];
            low += v & UINT32_MAX;
            high += v >> 32;
        }
    } else {
        for (int64_t i = 0; i < n; i++) {
            uint64_t v = (uint64_t)a[i * sa] * b[i * sb];
            low += v & UINT32_MAX;
            high += v >> 32;
        }
    }
    uint32_t shift = po_field_reduce(field, (uint64_t)1 << 32);
    return po_field_add(field, po_field_reduce(field, low),
                        po_field_mul(field, po_field_reduce(field, high), shift));
}

/* A product by one number takes one division for all: q is the quotient or one less. */
WIDE static void add_scaled(po_field field, int64_t n, uint32_t by, const uint32_t *in,
                            int64_t step, uint32_t *out) {
    const uint32_t p = field.p, part = (uint32_t)(((uint64_t)by << 32) / p);
    for (int64_t i = 0; i < n; i++) {
        uint32_t x = in[i * step], q = (uint32_t)((uint64_t)part * x >> 32);
        uint32_t v = by * x - q * p;
        v = (v >= p ? v - p : v) + out[i];
        out[i] = v >= p ? v - p : v;
    }
}

static void run_residues(void *user, const po_stretch *run) {
    const residues *r = user;
    const uint32_t *a = r->n_factors > 0 ? r->factor[0] + run->at[1] : NULL;
    const uint32_t *b = r->n_factors > 1 ? r->factor[1] + run->at[2] : NULL;
    uint32_t *out = r->out + run->at[0];
    int64_t so = run->step[0], sa = run->step[1], sb = run->step[2];
    if (r->n_factors == 2 && so == 0) {
        uint32_t sum = dot(r->field, run->n, a, sa, b, sb);
        *out = po_field_add(r->field, *out, po_field_mul(r->field, r->scale, sum));
        return;
    }
    if (r->n_factors == 2 && so == 1 && (sa == 0 || sb == 0)) {
        uint32_t by = po_field_mul(r->field, r->scale, sa ? *b : *a);
        add_scaled(r->field, run->n, by, sa ? a : b, sa ? sa : sb, out);
        return;
    }
    if (r->n_factors == 1 && so == 1) {
        add_scaled(r->field, run->n, r->scale, a, sa, out);
        return;
    }
    for (int64_t i = 0; i < run->n; i++) {
        uint32_t product = r->scale;
        for (uint32_t k = 0; k < r->n_factors; k++)
            product = po_field_mul(r->field, product,
                                   r->factor[k][run->at[k + 1] + i * run->step[k + 1]]);
        out[i * so] = po_field_add(r->field, out[i * so], product);
    }
}

/* Adds the term to out, two factors at a time; `operand` are the sum's. */
static po_status add_contracted(po_arena *arena, po_field field, const po_contraction *c,
                                const uint32_t *const *operand, uint32_t *out) {
    const uint32_t *pair[2] = {operand[c->pair[0]], operand[c->pair[1]]};
    const uint32_t *rest[PO_SUM_MAX_FACTORS];
    uint32_t *made = PO_NEW_N(arena, uint32_t, c->inner->count);
    uint32_t *whole = PO_NEW_N(arena, uint32_t, c->outer->count);
    PO_TRY(po_sum_eval_mod(arena, field, c->inner, pair, made));
    for (uint32_t k = 0; k < c->n_rest; k++)
        rest[k] = operand[c->rest[k]];
    rest[c->n_rest] = made;
    PO_TRY(po_sum_eval_mod(arena, field, c->outer, rest, whole));
    for (int64_t i = 0; i < c->outer->count; i++)
        out[i] = po_field_add(field, out[i], whole[i]);
    return PO_OK;
}

po_status po_sum_eval_mod(po_arena *arena, po_field field, const po_sum *sum,
                          const uint32_t *const *in, uint32_t *out) {
    po_arena *scratch = po_arena_child(arena);
    const uint32_t **operand = PO_NEW_N(scratch, const uint32_t *, sum->n_operands);
    bool good = true;
    for (uint32_t i = 0; i < sum->n_operands; i++) {
        const po_operand *op = &sum->operands[i];
        if (op->kind == PO_OPERAND_INPUT) {
            operand[i] = in[op->input];
            continue;
        }
        uint32_t *v = PO_NEW_N(scratch, uint32_t, op->count);
        operand[i] = v;
        if (op->kind == PO_OPERAND_TABLE)
            good = good && table_mod(field, op, v);
        else
            for (int64_t k = 0; k < op->count; k++)
                v[k] = atom(field, op, in[op->input][k]);
    }
    memset(out, 0, (size_t)sum->count * sizeof *out);
    for (uint32_t i = 0; good && i < sum->n_terms; i++) {
        const po_term *t = &sum->terms[i];
        residues r = {.field = field, .n_factors = t->n_factors, .out = out};
        good = po_rational_residue(field, t->scale, &r.scale);
        for (uint32_t k = 0; k < t->n_factors; k++)
            r.factor[k] = operand[t->factor[k].operand];
        po_contraction c;
        if (good && po_sum_contract(scratch, sum, t, &c))
            good = add_contracted(scratch, field, &c, operand, out) == PO_OK;
        else if (good && po_product_suits(sum, t))
            po_product_run(scratch, field, sum, t, r.scale, r.factor[0], r.factor[1], out);
        else if (good)
            po_walk_run(po_walk_create(scratch, sum, t, false), NULL, run_residues, &r);
    }
    po_arena_free(scratch);
    return good ? PO_OK : PO_UNSUPPORTED;
}

po_status po_sum_table_mod(po_arena *arena, const po_operand *op, const uint32_t **out) {
    uint32_t *table = PO_NEW_N(arena, uint32_t, op->count);
    *out = table;
    return table_mod(PO_FIELD_FIXED, op, table) ? PO_OK : PO_UNSUPPORTED;
}

/* --- at a point --- */

struct po_sum_point {
    const po_sum *sum;
    const po_walk **walks; /* by term */
    uint32_t *scale;
    const uint32_t **tables; /* by operand; NULL: no table */
};

typedef struct pull {
    const po_sum_point *point;
    const po_term *term;
    po_fetch_fn fetch;
    void *user;
    uint32_t scale, total;
} pull;

static void run_pull(void *user, const po_stretch *run) {
    pull *p = user;
    const po_sum *sum = p->point->sum;
    for (int64_t i = 0; i < run->n; i++) {
        uint32_t product = p->scale;
        for (uint32_t k = 0; k < p->term->n_factors && product; k++) {
            uint32_t id = p->term->factor[k].operand;
            int64_t at = run->at[k + 1] + i * run->step[k + 1];
            const uint32_t *table = p->point->tables[id];
            const po_operand *op = &sum->operands[id];
            product = po_mod_mul(
                product, table ? table[at] : po_sum_atom_mod(op, p->fetch(p->user, op->input, at)));
        }
        p->total = po_mod_add(p->total, product);
    }
}

po_status po_sum_point_create(po_arena *arena, const po_sum *sum, po_sum_point **point) {
    po_sum_point *p = PO_NEW(arena, po_sum_point);
    p->sum = sum;
    p->walks = PO_NEW_N(arena, const po_walk *, sum->n_terms);
    p->scale = PO_NEW_N(arena, uint32_t, sum->n_terms);
    p->tables = PO_NEW_N(arena, const uint32_t *, sum->n_operands);
    for (uint32_t i = 0; i < sum->n_operands; i++) {
        if (sum->operands[i].kind != PO_OPERAND_TABLE)
            continue;
        uint32_t *v = PO_NEW_N(arena, uint32_t, sum->operands[i].count);
        if (!table_mod(PO_FIELD_FIXED, &sum->operands[i], v))
            return PO_UNSUPPORTED;
        p->tables[i] = v;
    }
    for (uint32_t i = 0; i < sum->n_terms; i++) {
        if (!po_rational_mod(sum->terms[i].scale, &p->scale[i]))
            return PO_UNSUPPORTED;
        p->walks[i] = po_walk_create(arena, sum, &sum->terms[i], true);
    }
    *point = p;
    return PO_OK;
}

uint32_t po_sum_point_eval(const po_sum_point *point, const int64_t *index, po_fetch_fn fetch,
                           void *user) {
    pull p = {.point = point, .fetch = fetch, .user = user};
    for (uint32_t i = 0; i < point->sum->n_terms; i++) {
        p.term = &point->sum->terms[i];
        p.scale = point->scale[i];
        po_walk_run(point->walks[i], index, run_pull, &p);
    }
    return p.total;
}

/* Evaluates indexed sums: float64, absolute values, modulo a prime, whole or at a point. */
#include "base/modp.h"
#include "ops/sum_walk.h"

#include <math.h>

/* --- float64 --- */

typedef struct floats {
    double scale;
    uint32_t n_factors;
    const double *factor[PO_SUM_MAX_FACTORS];
    double *out;
} floats;

static void run_floats(void *user, const po_run *run) {
    const floats *f = user;
    double *out = f->out + run->at[0];
    const double *a = f->n_factors > 0 ? f->factor[0] + run->at[1] : NULL;
    const double *b = f->n_factors > 1 ? f->factor[1] + run->at[2] : NULL;
    int64_t so = run->step[0], sa = run->step[1], sb = run->step[2];
    if (f->n_factors == 1) {
        for (int64_t i = 0; i < run->n; i++)
            out[i * so] += f->scale * a[i * sa];
    } else if (f->n_factors == 2 && so == 0) {
        double sum = 0;
        for (int64_t i = 0; i < run->n; i++)
            sum += a[i * sa] * b[i * sb];
        *out += f->scale * sum;
    } else if (f->n_factors == 2 && so == 1 && sa == 1 && sb == 0) {
        double by = f->scale * *b;
        for (int64_t i = 0; i < run->n; i++)
            out[i] += by * a[i];
    } else if (f->n_factors == 2) {
        for (int64_t i = 0; i < run->n; i++)
            out[i * so] += f->scale * a[i * sa] * b[i * sb];
    } else {
        for (int64_t i = 0; i < run->n; i++) {
            double product = f->scale;
            for (uint32_t k = 0; k < f->n_factors; k++)
                product *= f->factor[k][run->at[k + 1] + i * run->step[k + 1]];
            out[i * so] += product;
        }
    }
}

/* The operand's elements; the input itself where that will do. */
static const double *operand_floats(po_arena *arena, const po_operand *op, const double *const *in,
                                    bool absolute) {
    if (op->kind == PO_OPERAND_INPUT && !absolute)
        return in[op->input];
    double *v = PO_NEW_N(arena, double, op->count);
    for (int64_t i = 0; i < op->count; i++) {
        switch (op->kind) {
        case PO_OPERAND_TABLE:
            v[i] = po_rational_f64(op->table[i]);
            break;
        case PO_OPERAND_RECIPROCAL:
            v[i] = 1 / in[op->input][i];
            break;
        case PO_OPERAND_RSQRT:
            v[i] = 1 / sqrt(in[op->input][i] + op->eps);
            break;
        case PO_OPERAND_INPUT:
            v[i] = in[op->input][i];
            break;
        }
        if (absolute)
            v[i] = fabs(v[i]);
    }
    return v;
}

static po_status eval_floats(po_arena *arena, const po_sum *sum, const double *const *in,
                             double *out, bool absolute) {
    po_arena *scratch = po_arena_child(arena);
    const double **operand = PO_NEW_N(scratch, const double *, sum->n_operands);
    for (uint32_t i = 0; i < sum->n_operands; i++)
        operand[i] = operand_floats(scratch, &sum->operands[i], in, absolute);
    for (int64_t i = 0; i < sum->count; i++)
        out[i] = 0;
    for (uint32_t i = 0; i < sum->n_terms; i++) {
        const po_term *t = &sum->terms[i];
        floats f = {.scale = po_rational_f64(t->scale), .n_factors = t->n_factors, .out = out};
        if (absolute)
            f.scale = fabs(f.scale);
        for (uint32_t k = 0; k < t->n_factors; k++)
            f.factor[k] = operand[t->factor[k].operand];
        po_walk_run(po_walk_create(scratch, sum, t, false), NULL, run_floats, &f);
    }
    po_arena_free(scratch);
    return PO_OK;
}

po_status po_sum_eval_f64(po_arena *arena, const po_sum *sum, const double *const *in,
                          double *out) {
    return eval_floats(arena, sum, in, out, false);
}

po_status po_sum_eval_abs(po_arena *arena, const po_sum *sum, const double *const *in,
                          double *out) {
    return eval_floats(arena, sum, in, out, true);
}

/* --- modulo p --- */

/* An atom's residue from its argument's. */
static uint32_t atom_mod(const po_operand *op, uint32_t argument) {
    if (op->kind == PO_OPERAND_INPUT)
        return argument;
    if (op->kind == PO_OPERAND_RECIPROCAL)
        return po_mod_inverse(argument);
    uint64_t eps;
    memcpy(&eps, &op->eps, sizeof eps);
    return (uint32_t)(po_random_u64(0x7273717274, eps, argument) % PO_P);
}

static bool table_mod(const po_operand *op, uint32_t *out) {
    po_rational last = PO_RATIONAL(0);
    uint32_t residue = 0;
    for (int64_t i = 0; i < op->count; i++) {
        /* Tables repeat few values, and an inverse is costly. */
        if (!po_rational_equal(op->table[i], last) && !po_rational_mod(op->table[i], &residue))
            return false;
        last = op->table[i];
        out[i] = residue;
    }
    return true;
}

typedef struct residues {
    uint32_t scale, n_factors;
    const uint32_t *factor[PO_SUM_MAX_FACTORS];
    uint32_t *out;
} residues;

static void run_residues(void *user, const po_run *run) {
    const residues *r = user;
    const uint32_t *a = r->n_factors > 0 ? r->factor[0] + run->at[1] : NULL;
    const uint32_t *b = r->n_factors > 1 ? r->factor[1] + run->at[2] : NULL;
    uint32_t *out = r->out + run->at[0];
    int64_t so = run->step[0], sa = run->step[1], sb = run->step[2];
    if (r->n_factors == 2 && so == 0) {
        uint64_t sum = 0;
        for (int64_t i = 0; i < run->n; i++) {
            sum += (uint64_t)a[i * sa] * b[i * sb];
            /* A product is below 2^62: after two of them the sum must be brought down. */
            sum = (sum & PO_P) + (sum >> 31);
        }
        *out = po_mod_add(*out, po_mod_mul(r->scale, po_mod_reduce(sum)));
        return;
    }
    if (r->n_factors == 2 && so == 1 && ((sa == 1 && sb == 0) || (sa == 0 && sb == 1))) {
        const uint32_t *moving = sa ? a : b;
        uint64_t by = po_mod_mul(r->scale, sa ? *b : *a);
        for (int64_t i = 0; i < run->n; i++) {
            /* Below 2^31 after one fold of a number below 2^62, but for at most one p. */
            uint64_t v = by * moving[i] + out[i];
            v = (v & PO_P) + (v >> 31);
            out[i] = (uint32_t)(v >= PO_P ? v - PO_P : v);
        }
        return;
    }
    for (int64_t i = 0; i < run->n; i++) {
        uint32_t product = r->scale;
        for (uint32_t k = 0; k < r->n_factors; k++)
            product = po_mod_mul(product, r->factor[k][run->at[k + 1] + i * run->step[k + 1]]);
        out[i * so] = po_mod_add(out[i * so], product);
    }
}

po_status po_sum_eval_mod(po_arena *arena, const po_sum *sum, const uint32_t *const *in,
                          uint32_t *out) {
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
            good = good && table_mod(op, v);
        else
            for (int64_t k = 0; k < op->count; k++)
                v[k] = atom_mod(op, in[op->input][k]);
    }
    memset(out, 0, (size_t)sum->count * sizeof *out);
    for (uint32_t i = 0; good && i < sum->n_terms; i++) {
        const po_term *t = &sum->terms[i];
        residues r = {.n_factors = t->n_factors, .out = out};
        good = po_rational_mod(t->scale, &r.scale);
        for (uint32_t k = 0; k < t->n_factors; k++)
            r.factor[k] = operand[t->factor[k].operand];
        if (good)
            po_walk_run(po_walk_create(scratch, sum, t, false), NULL, run_residues, &r);
    }
    po_arena_free(scratch);
    return good ? PO_OK : PO_UNSUPPORTED;
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

static void run_pull(void *user, const po_run *run) {
    pull *p = user;
    const po_sum *sum = p->point->sum;
    for (int64_t i = 0; i < run->n; i++) {
        uint32_t product = p->scale;
        for (uint32_t k = 0; k < p->term->n_factors && product; k++) {
            uint32_t id = p->term->factor[k].operand;
            int64_t at = run->at[k + 1] + i * run->step[k + 1];
            const uint32_t *table = p->point->tables[id];
            const po_operand *op = &sum->operands[id];
            product = po_mod_mul(product, table ? table[at]
                                                : atom_mod(op, p->fetch(p->user, op->input, at)));
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
        if (!table_mod(&sum->operands[i], v))
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

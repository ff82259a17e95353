/* Evaluates indexed sums in float64 and with absolute values. */
#include "ops/sum/walk.h"

#include <math.h>

/* --- float64 --- */

typedef struct floats {
    double scale;
    uint32_t n_factors;
    const double *factor[PO_SUM_MAX_FACTORS];
    double *out;
} floats;

static void run_floats(void *user, const po_stretch *run) {
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

/* Shapes, figures and hashes of compact programs. */
#include "mutate/enumerate.h"

enum { EN_MOST_TAPS = 512 };

static bool conv_shape(const en_op *op, const en_shape *x, const en_shape *w, en_shape *y) {
    if (x->rank != w->rank || x->rank < 3 || x->rank > 2 + EN_MAPS || x->d[1] % w->d[1] != 0)
        return false;
    int32_t groups = x->d[1] / w->d[1];
    int64_t taps = 1;
    if (w->d[0] % groups != 0)
        return false;
    *y = (en_shape){.rank = x->rank, .d = {x->d[0], w->d[0]}};
    for (uint32_t i = 2; i < x->rank; i++) {
        int32_t room =
            x->d[i] + op->lo[i - 2] + op->hi[i - 2] - ((w->d[i] - 1) * op->dilation[i - 2] + 1);
        taps *= w->d[i];
        if (room < 0 || taps > EN_MOST_TAPS)
            return false;
        y->d[i] = room / op->stride[i - 2] + 1;
    }
    return true;
}

static bool matmul_shape(const en_shape *a, const en_shape *b, en_shape *y) {
    if (a->rank < 2 || b->rank < 2 || a->d[a->rank - 1] != b->d[b->rank - 2])
        return false;
    y->rank = a->rank > b->rank ? a->rank : b->rank;
    y->d[y->rank - 2] = a->d[a->rank - 2];
    y->d[y->rank - 1] = b->d[b->rank - 1];
    for (uint32_t i = 0; i + 2 < y->rank; i++) {
        uint32_t skip_a = (uint32_t)(y->rank - a->rank), skip_b = (uint32_t)(y->rank - b->rank);
        int32_t p = i < skip_a ? 1 : a->d[i - skip_a], q = i < skip_b ? 1 : b->d[i - skip_b];
        if (p != q && p != 1 && q != 1)
            return false;
        y->d[i] = p > q ? p : q;
    }
    return true;
}

static bool stacked_shape(const en_op *op, const en_shape *const *in, en_shape *out) {
    if (in[0]->rank == EN_RANK)
        return false;
    *out = (en_shape){.rank = (uint8_t)(in[0]->rank + 1), .d = {op->n_in}};
    memcpy(out->d + 1, in[0]->d, in[0]->rank * sizeof out->d[0]);
    for (uint32_t k = 1; k < op->n_in; k++)
        if (!en_same(in[k], in[0]))
            return false;
    return true;
}

static bool concat_shape(const en_op *op, const en_shape *const *in, en_shape *out) {
    *out = *in[0];
    if (op->axis >= out->rank)
        return false;
    for (uint32_t k = 1; k < op->n_in; k++) {
        en_shape s = *in[k];
        if (s.rank != out->rank)
            return false;
        if (op->how != EN_EVEN)
            out->d[op->axis] += s.d[op->axis];
        else if (s.d[op->axis] > out->d[op->axis])
            out->d[op->axis] = s.d[op->axis];
        s.d[op->axis] = in[0]->d[op->axis];
        if (!en_same(&s, in[0]))
            return false;
    }
    if (op->how == EN_EVEN)
        out->d[op->axis] *= op->n_in;
    return true;
}

static bool split_shapes(const en_op *op, const en_shape *in, en_shape *out) {
    int32_t rest = op->axis < in->rank ? in->d[op->axis] : 0, longest = 0, whole = rest;
    for (uint32_t k = 0; k < op->n_out; k++) {
        out[k] = *in;
        if (op->how == EN_STACKED) {
            memmove(out[k].d, in->d + 1, (EN_RANK - 1) * sizeof in->d[0]);
            out[k].rank--;
            continue;
        }
        out[k].d[op->axis] = op->size[k];
        rest -= op->size[k];
        longest = op->size[k] > longest ? op->size[k] : longest;
    }
    if (op->how == EN_STACKED)
        return in->rank > 1 && in->d[0] == op->n_out;
    return op->how == EN_EVEN ? whole > 0 && whole == longest * op->n_out : rest == 0;
}

/* Output shapes of an operator whose operands, R/Ts applied, have these shapes; false where they do
 * not fit. size of a SPLIT must be set. */
static bool op_shapes(const en_op *op, const en_shape *const *in, en_shape *out) {
    switch (op->kind) {
    case EN_CONV:
        return conv_shape(op, in[0], in[1], out);
    case EN_MATMUL:
        return matmul_shape(in[0], in[1], out);
    case EN_ADD:
        *out = *in[0];
        return en_same(in[0], in[1]);
    case EN_CONCAT:
        return op->how == EN_STACKED ? stacked_shape(op, in, out) : concat_shape(op, in, out);
    case EN_SPLIT:
        return split_shapes(op, in[0], out);
    case EN_POOL:
        *out = *in[0];
        if (out->rank < 3 || out->rank > 2 + EN_MAPS)
            return false;
        for (uint32_t i = 2; i < out->rank; i++) {
            uint32_t m = i - 2;
            int32_t room =
                in[0]->d[i] + op->lo[m] + op->hi[m] - ((op->window[m] - 1) * op->dilation[m] + 1);
            if (room < 0 || op->window[m] < 1)
                return false;
            out->d[i] = room / op->stride[m] + 1;
        }
        return true;
    case EN_MOVE: /* the view has done it */
        *out = *in[0];
        return true;
    default: /* EN_RESHAPE: the shape is set by who knows it */
        return en_count(in[0]) == en_count(out);
    }
}

/* --- monomials --- */

static bool add_monomial(en_monomials *set, uint8_t m) {
    uint32_t i = 0;
    while (i < set->n && set->m[i] < m)
        i++;
    if (i < set->n && set->m[i] == m)
        return true;
    if (set->n == EN_MONOMIALS)
        return false;
    memmove(set->m + i + 1, set->m + i, (size_t)(set->n - i));
    set->m[i] = m;
    set->n++;
    return true;
}

static bool monomials_union(const en_monomials *a, const en_monomials *b, en_monomials *c) {
    *c = *a;
    for (uint32_t i = 0; i < b->n; i++)
        if (!add_monomial(c, b->m[i]))
            return false;
    return true;
}

bool en_monomials_product(const en_monomials *a, const en_monomials *b, en_monomials *c) {
    *c = (en_monomials){0};
    for (uint32_t i = 0; i < a->n; i++)
        for (uint32_t k = 0; k < b->n; k++)
            if ((a->m[i] & b->m[k]) || !add_monomial(c, a->m[i] | b->m[k]))
                return false;
    return true;
}

bool en_program_infer(en_program *p, uint32_t n) {
    const en_op *op = &p->op[n];
    const en_shape *in[EN_ARGS];
    for (uint32_t k = 0; k < op->n_in; k++)
        in[k] = en_operand(p, n, k);
    if (!op_shapes(op, in, &p->shape[op->out]))
        return false;
    const en_monomials *a = &p->monomials[op->in[0]];
    en_monomials set = *a;
    if (op->kind == EN_CONV || op->kind == EN_MATMUL) {
        if (!en_monomials_product(a, &p->monomials[op->in[1]], &set))
            return false;
    } else {
        for (uint32_t k = 1; k < op->n_in; k++) {
            en_monomials more = set;
            if (!monomials_union(&more, &p->monomials[op->in[k]], &set))
                return false;
        }
    }
    for (uint32_t k = 0; k < op->n_out; k++)
        p->monomials[op->out + k] = set;
    return true;
}

/* --- figures --- */

/* Whether the elements stay in order: a reshape. */
static bool in_order(const en_rt *rt) {
    if (rt->twice)
        return false;
    for (uint32_t i = 0; i < EN_RANK; i++)
        if (rt->lo[i] || rt->hi[i])
            return false;
    for (uint32_t i = 1; i < rt->n; i++) {
        const en_digit *a = &rt->digit[i - 1], *b = &rt->digit[i];
        if (a->axis > b->axis || (a->axis == b->axis && a->mult < b->mult))
            return false;
    }
    return true;
}

double en_program_cost(const en_program *p, uint32_t n_activations, double *flops, double *bytes) {
    const double per_flop = 1.0 / 60e9, per_byte = 1.0 / 8e9, per_operator = 2e-6;
    double time = 0;
    bool live[EN_SLOTS] = {false};
    *flops = *bytes = 0;
    for (uint32_t i = 0; i < n_activations; i++)
        live[i] = true;
    for (uint32_t n = 0; n < p->n_ops; n++) {
        const en_op *op = &p->op[n];
        double moved = 0, work = 0, made = 0;
        bool any = false;
        for (uint32_t k = 0; k < op->n_in; k++)
            any |= live[op->in[k]];
        for (uint32_t k = 0; k < op->n_out; k++) {
            live[op->out + k] = any;
            made += (double)en_count(&p->shape[op->out + k]);
        }
        if (!any) /* runs once, when the model is written */
            continue;
        for (uint32_t k = 0; k < op->n_in; k++) {
            const en_rt *rt = p->view[n][k];
            const en_shape *s = rt ? &rt->out : &p->shape[op->in[k]];
            if (rt && live[op->in[k]] && !in_order(rt)) {
                double bytes_moved = 4.0 * (double)(en_count(&rt->in) + en_count(s));
                *bytes += bytes_moved;
                time += bytes_moved * per_byte + per_operator;
            }
            moved += (double)en_count(s);
            if (k == 1 && op->kind == EN_CONV)
                work = 2 * made * (double)(en_count(s) / s->d[0]);
            if (k == 1 && op->kind == EN_MATMUL)
                work = 2 * made * s->d[s->rank - 2];
        }
        if (op->kind == EN_MOVE || op->kind == EN_RESHAPE)
            continue;
        moved = 4 * (moved + made);
        *flops += work;
        *bytes += moved;
        time += (work * per_flop > moved * per_byte ? work * per_flop : moved * per_byte) +
                per_operator;
    }
    for (uint32_t k = 0; k < p->n_out; k++) {
        const en_rt *rt = p->last[k];
        if (rt && !in_order(rt)) {
            double moved = 4.0 * (double)(en_count(&rt->in) + en_count(&rt->out));
            *bytes += moved;
            time += moved * per_byte + per_operator;
        }
    }
    return time;
}

uint32_t en_products(const en_program *p) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < p->n_ops; i++)
        n += p->op[i].kind == EN_CONV || p->op[i].kind == EN_MATMUL;
    return n;
}

po_hash en_program_hash(const en_program *p) {
    po_hash h = po_hash_u64((po_hash){0x656E756D, 0}, p->n_ops);
    for (uint32_t n = 0; n < p->n_ops; n++) {
        const en_op *op = &p->op[n];
        h = po_hash_u64(h, (uint64_t)op->kind << 24 | (uint64_t)op->axis << 16 |
                               (uint64_t)op->n_in << 8 | op->n_out | (uint64_t)op->how << 32);
        for (uint32_t k = 0; k < op->n_in; k++) {
            h = po_hash_u64(h, op->in[k]);
            h = po_hash_u64(h, p->view[n][k] ? p->view[n][k]->hash : 0);
        }
        if (op->kind == EN_CONV || op->kind == EN_POOL)
            h = po_hash_bytes(op->stride, 5 * sizeof op->stride, h);
        for (uint32_t k = 0; k < op->n_out; k++)
            h = po_hash_u64(h, (uint64_t)op->size[k]);
    }
    for (uint32_t k = 0; k < p->n_out; k++) {
        h = po_hash_u64(h, p->out[k]);
        h = po_hash_u64(h, p->last[k] ? p->last[k]->hash : 0);
    }
    return h;
}

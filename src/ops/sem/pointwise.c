/* Indexed sums of elementwise arithmetic and batch normalisation. */
#include "ops/sem/rules_sem.h"

/* Before opset 7 shapes were broadcast as an attribute said: only equal ones are taken then. */
static bool broadcasts_as_numpy(const po_sem *sem) {
    if (sem->opset >= 7)
        return true;
    for (uint32_t k = 0; k < sem->n_in; k++)
        if (sem->in[k].rank != sem->out[0].rank ||
            memcmp(sem->in[k].dims, sem->out[0].dims,
                   sem->out[0].rank * sizeof *sem->out[0].dims) != 0)
            return false;
    return true;
}

/* out += scale * input, broadcast, for each input; from the second one on `rest`. */
static po_status add_inputs(po_sem *sem, po_rational scale, po_rational rest) {
    po_sum *sum = po_sem_begin(sem, 0);
    if (!po_sem_is_float(sem, 0) || !broadcasts_as_numpy(sem))
        return PO_UNSUPPORTED;
    for (uint32_t k = 0; k < sem->n_in; k++) {
        if (!po_sem_has(sem, k))
            return PO_UNSUPPORTED;
        po_term *t = po_sem_pointwise(sum, 0);
        t->scale = k ? rest : scale;
        if (!po_sem_broadcast(sum, t, po_sem_operand(sem, sum, k)))
            return PO_UNSUPPORTED;
    }
    return PO_OK;
}

po_status po_sem_add(po_sem *sem) {
    return add_inputs(sem, PO_RATIONAL(1), PO_RATIONAL(1));
}

po_status po_sem_sub(po_sem *sem) {
    return add_inputs(sem, PO_RATIONAL(1), PO_RATIONAL(-1));
}

po_status po_sem_mean(po_sem *sem) {
    po_rational share = {1, sem->n_in};
    return add_inputs(sem, share, share);
}

po_status po_sem_neg(po_sem *sem) {
    return add_inputs(sem, PO_RATIONAL(-1), PO_RATIONAL(-1));
}

po_status po_sem_mul(po_sem *sem) {
    po_sum *sum = po_sem_begin(sem, 0);
    if (!po_sem_is_float(sem, 0) || !broadcasts_as_numpy(sem))
        return PO_UNSUPPORTED;
    po_term *t = po_sem_pointwise(sum, 0);
    return po_sem_broadcast(sum, t, po_sem_operand(sem, sum, 0)) &&
                   po_sem_broadcast(sum, t, po_sem_operand(sem, sum, 1))
               ? PO_OK
               : PO_UNSUPPORTED;
}

po_status po_sem_div(po_sem *sem) {
    const po_sem_tensor *by = &sem->in[1];
    po_sum *sum = po_sem_begin(sem, 0);
    if (!po_sem_is_float(sem, 0) || !broadcasts_as_numpy(sem))
        return PO_UNSUPPORTED;
    uint32_t inverse = po_sum_atom(sum, PO_OPERAND_RECIPROCAL, 1, 0, by->rank, by->dims);
    po_term *t = po_sem_pointwise(sum, 0);
    return po_sem_broadcast(sum, t, po_sem_operand(sem, sum, 0)) &&
                   po_sem_broadcast(sum, t, inverse)
               ? PO_OK
               : PO_UNSUPPORTED;
}

/* (x - mean) * scale / sqrt(var + eps) + bias in three terms; the root is an atom. */
po_status po_sem_batch_norm(po_sem *sem) {
    const po_sem_tensor *in = &sem->in[0];
    po_sum *sum = po_sem_begin(sem, 0);
    if (in->rank < 2 || sum->rank != in->rank || sem->n_in != 5 ||
        memcmp(in->dims, sum->dims, in->rank * sizeof *in->dims) != 0 || !po_sem_is_float(sem, 0) ||
        po_node_int(sem->node, "training_mode", 0) || po_node_int(sem->node, "spatial", 1) != 1 ||
        (sem->opset < 7 && !po_node_int(sem->node, "is_test", 0)))
        return PO_UNSUPPORTED;
    for (uint32_t k = 1; k < sem->n_out; k++)
        if (sem->out[k].given)
            return PO_UNSUPPORTED;
    uint32_t operand[5];
    for (uint32_t k = 0; k < 5; k++) {
        const po_sem_tensor *p = &sem->in[k];
        if (k && (p->rank != 1 || p->dims[0] != in->dims[1]))
            return PO_UNSUPPORTED;
        operand[k] = po_sem_operand(sem, sum, k);
    }
    double eps = (double)po_node_float(sem->node, "epsilon", 1e-5f);
    operand[4] = po_sum_atom(sum, PO_OPERAND_RSQRT, 4, eps, 1, sem->in[4].dims);
    static const struct {
        int scale, n;
        int factor[3];
    } terms[] = {{1, 3, {0, 1, 4}}, {-1, 3, {3, 1, 4}}, {1, 1, {2}}};
    for (int i = 0; i < 3; i++) {
        po_term *t = po_sem_pointwise(sum, 0);
        t->scale = PO_RATIONAL(terms[i].scale);
        for (int k = 0; k < terms[i].n; k++) {
            int f = terms[i].factor[k];
            if (f == 0) {
                po_sem_broadcast(sum, t, operand[0]);
                continue;
            }
            po_index *at = po_term_factor(sum, t, operand[f]);
            po_index_add(t, at, 0, 1, 1);
        }
    }
    return PO_OK;
}

/* Indexed sums of reductions and running sums. */
#include "base/num.h"
#include "ops/sem/rules_sem.h"

static po_status reduce(po_sem *sem, bool mean) {
    const po_sem_tensor *in = &sem->in[0];
    uint32_t n, axis = 0;
    const int64_t *axes;
    bool keep = po_node_int(sem->node, "keepdims", 1) != 0, reduced[PO_MAX_RANK] = {false};
    po_sum *sum = po_sem_begin(sem, 0);
    if (!po_sem_is_float(sem, 0) || !po_sem_ints_or_attr(sem, 1, "axes", &n, &axes))
        return PO_UNSUPPORTED;
    bool all = n == 0 && !po_node_int(sem->node, "noop_with_empty_axes", 0);
    for (uint32_t i = 0; i < in->rank; i++)
        reduced[i] = all;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t at;
        if (!po_sem_axis(axes[i], in->rank, &at) || reduced[at])
            return PO_UNSUPPORTED;
        reduced[at] = true;
    }
    po_term *t = po_sum_term(sum, in->rank);
    po_index *a = po_term_factor(sum, t, po_sem_operand(sem, sum, 0));
    int64_t size = 1;
    for (uint32_t i = 0; i < in->rank; i++) {
        uint32_t v = po_term_var(t, NULL, in->dims[i]);
        po_index_add(t, a, i, 1, v);
        size *= reduced[i] ? in->dims[i] : 1;
        if (reduced[i] && !keep)
            continue;
        if (axis == sum->rank || sum->dims[axis] != (reduced[i] ? 1 : in->dims[i]))
            return PO_UNSUPPORTED;
        if (!reduced[i])
            po_index_add(t, &t->out, axis, 1, v);
        axis++;
    }
    if (axis != sum->rank)
        return PO_UNSUPPORTED;
    return !mean || po_rational_make(1, size, &t->scale) ? PO_OK : PO_UNSUPPORTED;
}

po_status po_sem_reduce_sum(po_sem *sem) {
    return reduce(sem, false);
}

po_status po_sem_reduce_mean(po_sem *sem) {
    return reduce(sem, true);
}

po_status po_sem_cumsum(po_sem *sem) {
    const po_sem_tensor *in = &sem->in[0];
    uint32_t n, axis;
    const int64_t *axes;
    int64_t exclusive = po_node_int(sem->node, "exclusive", 0) != 0;
    bool reverse = po_node_int(sem->node, "reverse", 0) != 0;
    po_sum *sum = po_sem_begin(sem, 0);
    if (!po_sem_is_float(sem, 0) || sum->rank != in->rank ||
        memcmp(in->dims, sum->dims, in->rank * sizeof *in->dims) != 0 ||
        !po_sem_ints(sem, 1, &n, &axes) || n != 1 || !po_sem_axis(axes[0], in->rank, &axis))
        return PO_UNSUPPORTED;
    po_term *t = po_sem_pointwise(sum, 1);
    po_index *a = po_term_factor(sum, t, po_sem_operand(sem, sum, 0));
    /* out[i] takes in[i - j] for every j; before the start there is nothing. */
    uint32_t j = po_term_var(t, "j", in->dims[axis]);
    for (uint32_t i = 0; i < in->rank; i++)
        po_index_add(t, a, i, 1, i);
    po_index_add(t, a, axis, reverse ? 1 : -1, j);
    a->base[axis] = reverse ? exclusive : -exclusive;
    return PO_OK;
}

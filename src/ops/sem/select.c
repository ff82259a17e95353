/* Indexed sums of operators whose constant inputs pick elements: Gather, Trilu, Where. */
#include "base/num.h"
#include "ops/sem/rules_sem.h"

enum { MOST_RUNS = 64, MOST_TABLE = 1 << 20 };

/* --- Gather --- */

typedef struct gather {
    po_sum *sum;
    uint32_t operand, axis, index_rank;
    const int64_t *index_dims, *index;
} gather;

/* Adds the variables of the axes that are not gathered. */
static void add_other_axes(const gather *g, po_term *t, po_index *at) {
    const po_operand *op = &g->sum->operands[g->operand];
    for (uint32_t i = 0; i < op->rank; i++) {
        if (i == g->axis)
            continue;
        uint32_t to = i < g->axis ? i : i + g->index_rank - 1;
        uint32_t v = po_term_var(t, NULL, op->dims[i]);
        po_index_add(t, at, i, 1, v);
        po_index_add(t, &t->out, to, 1, v);
    }
}

/* Indices that follow one another at a fixed step along the last axis: n of them from `from`. */
static void add_run(const gather *g, int64_t from, int64_t n) {
    po_term *t = po_sum_term(g->sum, g->sum->rank + 1);
    po_index *at = po_term_factor(g->sum, t, g->operand);
    add_other_axes(g, t, at);
    at->base[g->axis] = g->index[from];
    int64_t rest = from;
    for (uint32_t i = g->index_rank; i-- > 0; rest /= g->index_dims[i])
        t->out.base[g->axis + i] = rest % g->index_dims[i];
    if (n == 1)
        return;
    uint32_t v = po_term_var(t, NULL, n);
    po_index_add(t, &t->out, g->axis + g->index_rank - 1, 1, v);
    po_index_add(t, at, g->axis, g->index[from + 1] - g->index[from], v);
}

/* Calls add_run, or counts runs where `add` is false. */
static int64_t cut_runs(const gather *g, int64_t count, bool add) {
    int64_t runs = 0, row = g->index_rank ? g->index_dims[g->index_rank - 1] : 1;
    for (int64_t at = 0; at < count; runs++) {
        int64_t n = 1, left = row - at % row;
        while (n < left && (n == 1 || g->index[at + n] - g->index[at + n - 1] ==
                                          g->index[at + 1] - g->index[at]))
            n++;
        /* Two make a run of any step; that may take the second from a longer one. */
        if (n == 2 && left > 2 && g->index[at + 1] - g->index[at] != 1)
            n = 1;
        if (add)
            add_run(g, at, n);
        at += n;
    }
    return runs;
}

/* Indices that are affine in their places, such as windows that overlap: one term. */
static bool add_affine(const gather *g, int64_t count) {
    int64_t step[PO_MAX_RANK], place = 1;
    for (uint32_t i = g->index_rank; i-- > 0; place *= g->index_dims[i])
        step[i] = g->index_dims[i] > 1 ? g->index[place] - g->index[0] : 0;
    for (int64_t k = 0; k < count; k++) {
        int64_t value = g->index[0], rest = k;
        for (uint32_t i = g->index_rank; i-- > 0; rest /= g->index_dims[i])
            value += step[i] * (rest % g->index_dims[i]);
        if (value != g->index[k])
            return false;
    }
    po_term *t = po_sum_term(g->sum, g->sum->rank);
    po_index *at = po_term_factor(g->sum, t, g->operand);
    add_other_axes(g, t, at);
    at->base[g->axis] = g->index[0];
    for (uint32_t i = 0; i < g->index_rank; i++) {
        uint32_t v = po_term_var(t, NULL, g->index_dims[i]);
        po_index_add(t, &t->out, g->axis + i, 1, v);
        po_index_add(t, at, g->axis, step[i], v);
    }
    return true;
}

static po_status add_one_hot(const gather *g, int64_t count) {
    po_sum *sum = g->sum;
    int64_t dim = sum->operands[g->operand].dims[g->axis], size;
    if (!po_mul_i64(count, dim, &size) || size > MOST_TABLE)
        return PO_UNSUPPORTED;
    int64_t dims[PO_MAX_RANK + 1];
    po_rational *table = PO_NEW_N(sum->arena, po_rational, size);
    for (int64_t i = 0; i < size; i++)
        table[i] = PO_RATIONAL(g->index[i / dim] == i % dim);
    if (g->index_rank)
        memcpy(dims, g->index_dims, g->index_rank * sizeof *dims);
    dims[g->index_rank] = dim;
    uint32_t id = po_sum_table(sum, g->index_rank + 1, dims, table);
    po_term *t = po_sum_term(sum, sum->rank + 1);
    po_index *at = po_term_factor(sum, t, g->operand), *pick = po_term_factor(sum, t, id);
    add_other_axes(g, t, at);
    for (uint32_t i = 0; i < g->index_rank; i++) {
        uint32_t v = po_term_var(t, NULL, g->index_dims[i]);
        po_index_add(t, &t->out, g->axis + i, 1, v);
        po_index_add(t, pick, i, 1, v);
    }
    uint32_t v = po_term_var(t, "j", dim);
    po_index_add(t, at, g->axis, 1, v);
    po_index_add(t, pick, g->index_rank, 1, v);
    return PO_OK;
}

po_status po_sem_gather(po_sem *sem) {
    const po_sem_tensor *in = &sem->in[0], *index = &sem->in[1];
    gather g = {.index_rank = index->rank, .index_dims = index->dims};
    po_sum *sum = po_sem_begin(sem, 0);
    if (!index->constant || !po_sem_axis(po_node_int(sem->node, "axis", 0), in->rank, &g.axis) ||
        sum->rank != in->rank + index->rank - 1 || in->dtype == PO_STR ||
        index->constant->count > MOST_TABLE)
        return PO_UNSUPPORTED;
    for (uint32_t i = 0; i < sum->rank; i++) {
        int64_t dim = i < g.axis                 ? in->dims[i]
                      : i < g.axis + index->rank ? index->dims[i - g.axis]
                                                 : in->dims[i + 1 - index->rank];
        if (sum->dims[i] != dim)
            return PO_UNSUPPORTED;
    }
    int64_t count = index->constant->count, *values = PO_NEW_N(sem->arena, int64_t, count);
    for (int64_t i = 0; i < count; i++) {
        values[i] = po_tensor_int(index->constant, i);
        values[i] += values[i] < 0 ? in->dims[g.axis] : 0;
        if (values[i] < 0 || values[i] >= in->dims[g.axis])
            return PO_UNSUPPORTED;
    }
    g.sum = sum;
    g.index = values;
    g.operand = po_sem_operand(sem, sum, 0);
    if (count > 0 && add_affine(&g, count))
        return PO_OK;
    if (cut_runs(&g, count, false) > MOST_RUNS)
        return add_one_hot(&g, count);
    cut_runs(&g, count, true);
    return PO_OK;
}

/* --- masks --- */

po_status po_sem_trilu(po_sem *sem) {
    const po_sem_tensor *in = &sem->in[0];
    int64_t k = 0, rows, columns, size;
    bool upper = po_node_int(sem->node, "upper", 1) != 0;
    po_sum *sum = po_sem_begin(sem, 0);
    if (in->rank < 2 || sum->rank != in->rank || in->dtype == PO_STR)
        return PO_UNSUPPORTED;
    if (po_sem_has(sem, 1)) {
        uint32_t n;
        const int64_t *values;
        if (!po_sem_ints(sem, 1, &n, &values) || n != 1)
            return PO_UNSUPPORTED;
        k = values[0];
    }
    rows = in->dims[in->rank - 2];
    columns = in->dims[in->rank - 1];
    if (!po_mul_i64(rows, columns, &size) || size > MOST_TABLE)
        return PO_UNSUPPORTED;
    po_rational *table = PO_NEW_N(sem->arena, po_rational, size);
    for (int64_t i = 0; i < size; i++) {
        int64_t diagonal = i % columns - i / columns;
        table[i] = PO_RATIONAL(upper ? diagonal >= k : diagonal <= k);
    }
    uint32_t id = po_sum_table(sum, 2, &in->dims[in->rank - 2], table);
    po_term *t = po_sem_pointwise(sum, 0);
    return po_sem_broadcast(sum, t, po_sem_operand(sem, sum, 0)) && po_sem_broadcast(sum, t, id)
               ? PO_OK
               : PO_UNSUPPORTED;
}

po_status po_sem_where(po_sem *sem) {
    const po_tensor *mask = sem->in[0].constant;
    po_sum *sum = po_sem_begin(sem, 0);
    if (!mask || mask->count > MOST_TABLE || sem->in[1].dtype == PO_STR)
        return PO_UNSUPPORTED;
    for (uint32_t k = 1; k < 3; k++) {
        po_rational *table = PO_NEW_N(sem->arena, po_rational, mask->count);
        for (int64_t i = 0; i < mask->count; i++)
            table[i] = PO_RATIONAL((po_tensor_int(mask, i) != 0) == (k == 1));
        uint32_t id = po_sum_table(sum, sem->in[0].rank, sem->in[0].dims, table);
        po_term *t = po_sem_pointwise(sum, 0);
        if (!po_sem_broadcast(sum, t, po_sem_operand(sem, sum, k)) || !po_sem_broadcast(sum, t, id))
            return PO_UNSUPPORTED;
    }
    return PO_OK;
}

/* Indexed sums of matrix products: MatMul, Gemm, Einsum. */
#include "ops/sem/rules_sem.h"

/* Batch axes of a factor, broadcast from the right against the output's. */
static bool batch_axes(const po_sum *sum, const po_term *t, po_index *at, uint32_t operand,
                       uint32_t n_batch, uint32_t n_out_batch) {
    const int64_t *dims = sum->operands[operand].dims;
    for (uint32_t i = 0; i < n_batch; i++) {
        uint32_t to = n_out_batch - n_batch + i;
        if (dims[i] == sum->dims[to])
            po_index_add(t, at, i, 1, to);
        else if (dims[i] != 1)
            return false;
    }
    return true;
}

po_status po_sem_matmul(po_sem *sem) {
    const po_sem_tensor *a = &sem->in[0], *b = &sem->in[1];
    po_sum *sum = po_sem_begin(sem, 0);
    if (a->rank < 1 || b->rank < 1 || !po_sem_is_float(sem, 0))
        return PO_UNSUPPORTED;
    uint32_t batch_a = a->rank > 2 ? a->rank - 2 : 0, batch_b = b->rank > 2 ? b->rank - 2 : 0;
    uint32_t batch = batch_a > batch_b ? batch_a : batch_b, axis = batch;
    if (sum->rank != batch + (a->rank > 1) + (b->rank > 1))
        return PO_UNSUPPORTED;
    uint32_t x = po_sem_operand(sem, sum, 0), y = po_sem_operand(sem, sum, 1);
    po_term *t = po_sum_term(sum, batch + 3);
    po_index *l = po_term_factor(sum, t, x), *r = po_term_factor(sum, t, y);
    for (uint32_t i = 0; i < batch; i++)
        po_index_add(t, &t->out, i, 1, po_term_var(t, NULL, sum->dims[i]));
    if (!batch_axes(sum, t, l, x, batch_a, batch) || !batch_axes(sum, t, r, y, batch_b, batch))
        return PO_UNSUPPORTED;
    int64_t depth = a->dims[a->rank - 1];
    uint32_t depth_axis = b->rank > 1 ? b->rank - 2 : 0;
    if (b->dims[depth_axis] != depth)
        return PO_UNSUPPORTED;
    if (a->rank > 1) {
        uint32_t i = po_term_var(t, "i", a->dims[a->rank - 2]);
        if (sum->dims[axis] != a->dims[a->rank - 2])
            return PO_UNSUPPORTED;
        po_index_add(t, &t->out, axis++, 1, i);
        po_index_add(t, l, a->rank - 2, 1, i);
    }
    if (b->rank > 1) {
        uint32_t j = po_term_var(t, "j", b->dims[b->rank - 1]);
        if (sum->dims[axis] != b->dims[b->rank - 1])
            return PO_UNSUPPORTED;
        po_index_add(t, &t->out, axis++, 1, j);
        po_index_add(t, r, b->rank - 1, 1, j);
    }
    uint32_t k = po_term_var(t, "k", depth);
    po_index_add(t, l, a->rank - 1, 1, k);
    po_index_add(t, r, depth_axis, 1, k);
    return PO_OK;
}

po_status po_sem_gemm(po_sem *sem) {
    const po_sem_tensor *a = &sem->in[0], *b = &sem->in[1];
    uint32_t ta = po_node_int(sem->node, "transA", 0) != 0;
    uint32_t tb = po_node_int(sem->node, "transB", 0) != 0;
    po_rational alpha, beta;
    po_sum *sum = po_sem_begin(sem, 0);
    if (a->rank != 2 || b->rank != 2 || sum->rank != 2 || !po_sem_is_float(sem, 0) ||
        !po_rational_from_f64((double)po_node_float(sem->node, "alpha", 1), &alpha) ||
        !po_rational_from_f64((double)po_node_float(sem->node, "beta", 1), &beta) ||
        a->dims[ta] != sum->dims[0] || b->dims[1 - tb] != sum->dims[1] ||
        a->dims[1 - ta] != b->dims[tb])
        return PO_UNSUPPORTED;
    uint32_t x = po_sem_operand(sem, sum, 0), y = po_sem_operand(sem, sum, 1);
    po_term *t = po_sum_term(sum, 3);
    po_index *l = po_term_factor(sum, t, x), *r = po_term_factor(sum, t, y);
    uint32_t i = po_term_var(t, "i", sum->dims[0]), j = po_term_var(t, "j", sum->dims[1]);
    uint32_t k = po_term_var(t, "k", b->dims[tb]);
    t->scale = alpha;
    po_index_add(t, &t->out, 0, 1, i);
    po_index_add(t, &t->out, 1, 1, j);
    po_index_add(t, l, ta, 1, i);
    po_index_add(t, l, 1 - ta, 1, k);
    po_index_add(t, r, tb, 1, k);
    po_index_add(t, r, 1 - tb, 1, j);
    if (!po_sem_has(sem, 2))
        return PO_OK;
    t = po_sem_pointwise(sum, 0);
    t->scale = beta;
    return po_sem_broadcast(sum, t, po_sem_operand(sem, sum, 2)) ? PO_OK : PO_UNSUPPORTED;
}

/* --- Einsum --- */

enum { LETTERS = 128 }; /* the axes of an ellipsis come behind the letters */

typedef struct einsum {
    po_sem *sem;
    po_term *term;
    uint32_t ellipsis; /* its axes in the output */
    int64_t extent[LETTERS + PO_MAX_RANK];
    uint32_t var[LETTERS + PO_MAX_RANK]; /* PO_NONE: not seen */
    uint32_t count[LETTERS];             /* how often a letter stands among the inputs */
} einsum;

typedef struct subscript {
    uint32_t n, ellipsis_at; /* ellipsis_at: PO_NONE where there is none */
    char letters[PO_MAX_RANK];
} subscript;

/* Reads up to `end`; false where it is no list of letters with at most one ellipsis. */
static bool read_subscript(const char *at, const char *end, subscript *s) {
    *s = (subscript){.ellipsis_at = PO_NONE};
    for (; at < end; at++) {
        if (*at == ' ')
            continue;
        if (*at == '.') {
            if (end - at < 3 || at[1] != '.' || at[2] != '.' || s->ellipsis_at != PO_NONE)
                return false;
            s->ellipsis_at = s->n;
            at += 2;
            continue;
        }
        bool letter = (*at >= 'a' && *at <= 'z') || (*at >= 'A' && *at <= 'Z');
        if (!letter || s->n == PO_MAX_RANK)
            return false;
        s->letters[s->n++] = *at;
    }
    return true;
}

/* Calls with each axis of a tensor of that rank its symbol: a letter, or LETTERS + i for axis i of
 * an ellipsis, counted from the right end of `widest`. */
static uint32_t symbol(const subscript *s, uint32_t rank, uint32_t axis, uint32_t widest) {
    uint32_t width = rank - s->n;
    if (s->ellipsis_at == PO_NONE || axis < s->ellipsis_at)
        return (uint32_t)s->letters[axis];
    if (axis >= s->ellipsis_at + width)
        return (uint32_t)s->letters[axis - width];
    return LETTERS + widest - width + axis - s->ellipsis_at;
}

static bool rank_fits(const subscript *s, uint32_t rank) {
    return s->ellipsis_at == PO_NONE ? rank == s->n : rank >= s->n;
}

/* Without an arrow the output has the ellipsis, then the letters that stand once, sorted. */
static void implicit_output(const einsum *e, bool ellipsis, subscript *s) {
    *s = (subscript){.ellipsis_at = ellipsis ? 0 : PO_NONE};
    for (uint32_t c = 0; c < LETTERS; c++)
        if (e->count[c] == 1 && s->n < PO_MAX_RANK)
            s->letters[s->n++] = (char)c;
}

po_status po_sem_einsum(po_sem *sem) {
    const po_attr *attr = po_node_attr(sem->node, "equation");
    if (!attr || attr->kind != PO_ATTR_STRING || sem->n_in > PO_SUM_MAX_FACTORS ||
        !po_sem_is_float(sem, 0))
        return PO_UNSUPPORTED;
    const char *at = attr->u.s.data, *end = at + attr->u.s.size, *arrow = at;
    while (arrow < end && !(*arrow == '-' && arrow + 1 < end && arrow[1] == '>'))
        arrow++;
    subscript in[PO_SUM_MAX_FACTORS], out;
    einsum e = {.sem = sem};
    bool ellipsis = false;
    for (uint32_t k = 0; k < sem->n_in; k++) {
        const char *stop = at;
        while (stop < arrow && *stop != ',')
            stop++;
        if (!po_sem_has(sem, k) || !read_subscript(at, stop, &in[k]) ||
            !rank_fits(&in[k], sem->in[k].rank) || (k + 1 < sem->n_in) != (stop < arrow))
            return PO_UNSUPPORTED;
        at = stop + 1;
        uint32_t width = sem->in[k].rank - in[k].n;
        ellipsis |= in[k].ellipsis_at != PO_NONE;
        e.ellipsis = width > e.ellipsis ? width : e.ellipsis;
        for (uint32_t i = 0; i < in[k].n; i++)
            e.count[(uint32_t)in[k].letters[i]]++;
    }
    if (arrow == end)
        implicit_output(&e, ellipsis, &out);
    else if (!read_subscript(arrow + 2, end, &out))
        return PO_UNSUPPORTED;
    /* Extents: a 1 gives way to what stands elsewhere under the symbol. */
    uint32_t n_symbols = 0;
    for (uint32_t i = 0; i < LETTERS + PO_MAX_RANK; i++) {
        e.extent[i] = 1;
        e.var[i] = PO_NONE;
    }
    for (uint32_t k = 0; k < sem->n_in; k++)
        for (uint32_t i = 0; i < sem->in[k].rank; i++) {
            uint32_t s = symbol(&in[k], sem->in[k].rank, i, e.ellipsis);
            int64_t dim = sem->in[k].dims[i];
            if (dim != 1 && e.extent[s] != 1 && e.extent[s] != dim)
                return PO_UNSUPPORTED;
            e.extent[s] = dim != 1 ? dim : e.extent[s];
            n_symbols += e.var[s] == PO_NONE;
            e.var[s] = 0;
        }
    po_sum *sum = po_sem_begin(sem, 0);
    uint32_t width = out.ellipsis_at == PO_NONE ? 0 : e.ellipsis;
    if (sum->rank != out.n + width)
        return PO_UNSUPPORTED;
    uint32_t operand[PO_SUM_MAX_FACTORS];
    for (uint32_t k = 0; k < sem->n_in; k++)
        operand[k] = po_sem_operand(sem, sum, k);
    po_term *t = po_sum_term(sum, n_symbols);
    static const char *const names[26] = {"a", "b", "c", "d", "e", "f", "g", "h", "i",
                                          "j", "k", "l", "m", "n", "o", "p", "q", "r",
                                          "s", "t", "u", "v", "w", "x", "y", "z"};
    for (uint32_t s = 0; s < LETTERS + PO_MAX_RANK; s++)
        if (e.var[s] != PO_NONE)
            e.var[s] = po_term_var(t, s >= 'a' && s <= 'z' ? names[s - 'a'] : NULL, e.extent[s]);
    for (uint32_t i = 0; i < sum->rank; i++) {
        uint32_t s = symbol(&out, sum->rank, i, e.ellipsis);
        if (e.var[s] == PO_NONE || sum->dims[i] != e.extent[s])
            return PO_UNSUPPORTED;
        po_index_add(t, &t->out, i, 1, e.var[s]);
    }
    for (uint32_t k = 0; k < sem->n_in; k++) {
        po_index *index = po_term_factor(sum, t, operand[k]);
        for (uint32_t i = 0; i < sem->in[k].rank; i++)
            if (sem->in[k].dims[i] != 1)
                po_index_add(t, index, i, 1, e.var[symbol(&in[k], sem->in[k].rank, i, e.ellipsis)]);
    }
    return PO_OK;
}

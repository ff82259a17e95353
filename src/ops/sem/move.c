/* Indexed sums of operators that move whole boxes of data. */
#include "base/num.h"
#include "ops/sem/rules_sem.h"

po_status po_sem_transpose(po_sem *sem) {
    const po_sem_tensor *in = &sem->in[0];
    uint32_t n, rank = in->rank;
    const int64_t *perm = po_node_ints(sem->node, "perm", &n);
    po_sum *sum = po_sem_begin(sem, 0);
    if (sum->rank != rank || (perm && n != rank) || in->dtype == PO_STR)
        return PO_UNSUPPORTED;
    po_term *t = po_sem_pointwise(sum, 0);
    po_index *at = po_term_factor(sum, t, po_sem_operand(sem, sum, 0));
    bool seen[PO_MAX_RANK] = {false};
    for (uint32_t i = 0; i < rank; i++) {
        int64_t from = perm ? perm[i] : rank - 1 - i;
        if (from < 0 || from >= rank || seen[from] || in->dims[from] != sum->dims[i])
            return PO_UNSUPPORTED;
        seen[from] = true;
        po_index_add(t, at, (uint32_t)from, 1, i);
    }
    return PO_OK;
}

/* Steps and starts by axis; false where they contradict the output. */
static bool slice_axis(int64_t dim, int64_t out, int64_t *start, int64_t end, int64_t step) {
    int64_t length;
    if (step == 0 || step == INT64_MIN)
        return false;
    if (*start < 0)
        *start = *start < -dim ? -1 : *start + dim;
    if (end < 0)
        end = end < -dim ? -1 : end + dim;
    if (step > 0) {
        *start = *start < 0 ? 0 : *start > dim ? dim : *start;
        end = end < 0 ? 0 : end > dim ? dim : end;
        length = *start < end ? po_ceil_div(end - *start, step) : 0;
    } else {
        /* Unlike Python's, a start before the first element is the first element. */
        *start = *start > dim - 1 ? dim - 1 : *start < 0 ? 0 : *start;
        end = end > dim - 1 ? dim - 1 : end;
        length = *start > end ? po_ceil_div(*start - end, -step) : 0;
    }
    return length == out;
}

po_status po_sem_slice(po_sem *sem) {
    const po_sem_tensor *in = &sem->in[0];
    uint32_t n, n_ends, n_axes, n_steps;
    const int64_t *starts, *ends, *axes, *steps;
    po_sum *sum = po_sem_begin(sem, 0);
    /* From opset 10 they are inputs; no attribute is called "steps" before. */
    if (!po_sem_ints_or_attr(sem, 1, "starts", &n, &starts) ||
        !po_sem_ints_or_attr(sem, 2, "ends", &n_ends, &ends) ||
        !po_sem_ints_or_attr(sem, 3, "axes", &n_axes, &axes) ||
        !po_sem_ints_or_attr(sem, 4, "steps", &n_steps, &steps) || !starts || !ends ||
        n_ends != n || (axes && n_axes != n) || (steps && n_steps != n) || sum->rank != in->rank ||
        in->dtype == PO_STR)
        return PO_UNSUPPORTED;
    po_term *t = po_sem_pointwise(sum, 0);
    po_index *at = po_term_factor(sum, t, po_sem_operand(sem, sum, 0));
    bool seen[PO_MAX_RANK] = {false};
    for (uint32_t i = 0; i < n; i++) {
        uint32_t axis;
        int64_t start = starts[i], step = steps ? steps[i] : 1;
        if (!po_sem_axis(axes ? axes[i] : i, in->rank, &axis) || seen[axis] ||
            !slice_axis(in->dims[axis], sum->dims[axis], &start, ends[i], step))
            return PO_UNSUPPORTED;
        seen[axis] = true;
        at->base[axis] = start;
        /* A single element may have a step of any size. */
        po_index_add(t, at, axis, sum->dims[axis] > 1 ? step : 1, axis);
    }
    for (uint32_t i = 0; i < in->rank; i++) {
        if (!seen[i] && in->dims[i] != sum->dims[i])
            return PO_UNSUPPORTED;
        if (!seen[i])
            po_index_add(t, at, i, 1, i);
    }
    return PO_OK;
}

/* A term that copies a box: `dims` of operand from `from` to `to` on one axis. */
static bool copy_box(po_sum *sum, uint32_t operand, uint32_t axis, int64_t length, int64_t from,
                     int64_t to) {
    const po_operand *op = &sum->operands[operand];
    po_term *t = po_sum_term(sum, sum->rank);
    po_index *at = po_term_factor(sum, t, operand);
    if (op->rank != sum->rank)
        return false;
    for (uint32_t i = 0; i < sum->rank; i++) {
        if (i != axis && op->dims[i] != sum->dims[i])
            return false;
        uint32_t v = po_term_var(t, NULL, i == axis ? length : sum->dims[i]);
        po_index_add(t, &t->out, i, 1, v);
        po_index_add(t, at, i, 1, v);
    }
    t->out.base[axis] = to;
    at->base[axis] = from;
    return true;
}

po_status po_sem_concat(po_sem *sem) {
    uint32_t axis;
    int64_t to = 0;
    po_sum *sum = po_sem_begin(sem, 0);
    if (!po_sem_axis(po_node_int(sem->node, "axis", 1), sum->rank, &axis) ||
        sem->in[0].dtype == PO_STR)
        return PO_UNSUPPORTED;
    for (uint32_t i = 0; i < sem->n_in; i++) {
        if (!po_sem_has(sem, i) || sem->in[i].rank != sum->rank)
            return PO_UNSUPPORTED;
        int64_t length = sem->in[i].dims[axis];
        if (!copy_box(sum, po_sem_operand(sem, sum, i), axis, length, 0, to))
            return PO_UNSUPPORTED;
        to += length;
    }
    return to == sum->dims[axis] ? PO_OK : PO_UNSUPPORTED;
}

po_status po_sem_split(po_sem *sem) {
    const po_sem_tensor *in = &sem->in[0];
    uint32_t axis;
    int64_t from = 0;
    if (!po_sem_axis(po_node_int(sem->node, "axis", 0), in->rank, &axis) || in->dtype == PO_STR)
        return PO_UNSUPPORTED;
    uint32_t n;
    const int64_t *sizes;
    if (!po_sem_ints_or_attr(sem, 1, "split", &n, &sizes) || (sizes && n != sem->n_out))
        return PO_UNSUPPORTED;
    int64_t part = po_ceil_div(in->dims[axis], sem->n_out);
    for (uint32_t i = 0; i < sem->n_out; i++) {
        int64_t rest = in->dims[axis] - from, length = sizes ? sizes[i] : rest < part ? rest : part;
        if (length < 0 || length > rest)
            return PO_UNSUPPORTED;
        if (sem->out[i].given) {
            po_sum *sum = po_sem_begin(sem, i);
            if (sum->rank != in->rank || sum->dims[axis] != length ||
                !copy_box(sum, po_sem_operand(sem, sum, 0), axis, length, from, 0))
                return PO_UNSUPPORTED;
        }
        from += length;
    }
    return from == in->dims[axis] ? PO_OK : PO_UNSUPPORTED;
}

po_status po_sem_expand(po_sem *sem) {
    po_sum *sum = po_sem_begin(sem, 0);
    if (sem->in[0].dtype == PO_STR)
        return PO_UNSUPPORTED;
    po_term *t = po_sem_pointwise(sum, 0);
    return po_sem_broadcast(sum, t, po_sem_operand(sem, sum, 0)) ? PO_OK : PO_UNSUPPORTED;
}

po_status po_sem_tile(po_sem *sem) {
    const po_sem_tensor *in = &sem->in[0];
    uint32_t n;
    const int64_t *repeats;
    po_sum *sum = po_sem_begin(sem, 0);
    if (!po_sem_has(sem, 1) || sem->n_in != 2 || !po_sem_ints(sem, 1, &n, &repeats) ||
        n != in->rank || sum->rank != in->rank || in->dtype == PO_STR)
        return PO_UNSUPPORTED;
    po_term *t = po_sum_term(sum, 2 * n);
    po_index *at = po_term_factor(sum, t, po_sem_operand(sem, sum, 0));
    for (uint32_t i = 0; i < n; i++) {
        int64_t length;
        if (!po_mul_i64(repeats[i], in->dims[i], &length) || length != sum->dims[i])
            return PO_UNSUPPORTED;
        uint32_t copy = po_term_var(t, NULL, in->dims[i] ? repeats[i] : 0);
        uint32_t v = po_term_var(t, NULL, in->dims[i]);
        po_index_add(t, &t->out, i, in->dims[i], copy);
        po_index_add(t, &t->out, i, 1, v);
        po_index_add(t, at, i, 1, v);
    }
    return PO_OK;
}

/* --- Pad --- */

/* The border as boxes: on axis i before or after the inside, inside on the axes before i, anything
 * on those after it. */
static bool pad_border(const po_sem *sem, po_sum *sum, const int64_t *before) {
    const int64_t *dims = sem->in[0].dims;
    bool given = po_sem_has(sem, 2);
    po_rational value = PO_RATIONAL(0);
    bool known = given ? po_sem_fraction(sem, 2, 0, &value)
                       : po_rational_from_f64((double)po_node_float(sem->node, "value", 0), &value);
    if (known && value.num == 0)
        return true;
    if (!known &&
        (!given || sem->in[2].rank > 1 || (sem->in[2].rank == 1 && sem->in[2].dims[0] != 1)))
        return false; /* an infinite value, or none that can be a factor */
    for (uint32_t i = 0; i < sum->rank; i++)
        for (int side = 0; side < 2; side++) {
            int64_t inside_end = before[i] + dims[i];
            int64_t from = side ? (inside_end > 0 ? inside_end : 0) : 0;
            int64_t to = side ? sum->dims[i] : before[i] < sum->dims[i] ? before[i] : sum->dims[i];
            if (side && from < before[i])
                from = before[i];
            if (from >= to)
                continue;
            po_term *t = po_sum_term(sum, sum->rank);
            if (known)
                t->scale = value;
            else
                po_term_factor(sum, t, po_sem_operand(sem, sum, 2));
            for (uint32_t k = 0; k < sum->rank; k++) {
                /* Inside may be cut at both ends where padding is negative. */
                int64_t lo = k < i && before[k] > 0 ? before[k] : 0;
                int64_t hi = k < i && before[k] + dims[k] < sum->dims[k] ? before[k] + dims[k]
                                                                         : sum->dims[k];
                if (k == i) {
                    lo = from;
                    hi = to;
                }
                uint32_t v = po_term_var(t, NULL, hi > lo ? hi - lo : 0);
                po_index_add(t, &t->out, k, 1, v);
                t->out.base[k] = lo;
            }
        }
    return true;
}

/* Copies of the edges: along each axis what lies before the inside, the inside, and what lies
 * behind it; a box for each choice of these. */
static bool pad_edges(const po_sem *sem, po_sum *sum, const int64_t *before) {
    enum { PARTS = 3, MOST_BOXES = 81 };
    const po_sem_tensor *in = &sem->in[0];
    int64_t cut[PO_MAX_RANK][PARTS + 1];
    uint32_t boxes = 1;
    const uint32_t operand = po_sem_operand(sem, sum, 0);
    for (uint32_t i = 0; i < sum->rank; i++) {
        const int64_t first = before[i] > 0 ? before[i] : 0, behind = before[i] + in->dims[i];
        const int64_t last = behind < sum->dims[i] ? behind : sum->dims[i];
        if (in->dims[i] < 1 || first > last)
            return false;
        memcpy(cut[i], (int64_t[PARTS + 1]){0, first, last, sum->dims[i]}, sizeof cut[i]);
        boxes *= first > 0 || last < sum->dims[i] ? PARTS : 1;
        if (boxes > MOST_BOXES)
            return false;
    }
    for (uint32_t box = 0; box < boxes; box++) {
        uint32_t part[PO_MAX_RANK], rest = box;
        bool any = true;
        for (uint32_t i = 0; i < sum->rank; i++) {
            const bool whole = cut[i][1] == 0 && cut[i][2] == sum->dims[i];
            part[i] = whole ? 1 : rest % PARTS;
            rest /= whole ? 1 : PARTS;
            any = any && cut[i][part[i]] < cut[i][part[i] + 1];
        }
        if (!any)
            continue;
        po_term *t = po_sum_term(sum, sum->rank);
        po_index *at = po_term_factor(sum, t, operand);
        for (uint32_t i = 0; i < sum->rank; i++) {
            const int64_t from = cut[i][part[i]];
            const uint32_t v = po_term_var(t, NULL, cut[i][part[i] + 1] - from);
            po_index_add(t, &t->out, i, 1, v);
            t->out.base[i] = from;
            at->base[i] = part[i] == 0 ? 0 : part[i] == 1 ? from - before[i] : in->dims[i] - 1;
            if (part[i] == 1)
                po_index_add(t, at, i, 1, v);
        }
    }
    return true;
}

po_status po_sem_pad(po_sem *sem) {
    const po_sem_tensor *in = &sem->in[0];
    uint32_t n, n_axes = 0, rank = in->rank;
    const int64_t *pads, *axes = NULL;
    po_sum *sum = po_sem_begin(sem, 0);
    const bool edges = po_node_string_is(sem->node, "mode", "edge", "constant");
    if ((!edges && !po_node_string_is(sem->node, "mode", "constant", "constant")) ||
        sum->rank != rank ||
        !po_sem_ints_or_attr(sem, 1, po_node_attr(sem->node, "paddings") ? "paddings" : "pads", &n,
                             &pads) ||
        !pads || in->dtype == PO_STR)
        return PO_UNSUPPORTED;
    if (po_sem_has(sem, 3) && !po_sem_ints(sem, 3, &n_axes, &axes))
        return PO_UNSUPPORTED;
    uint32_t n_padded = axes ? n_axes : rank;
    if (n != 2 * n_padded)
        return PO_UNSUPPORTED;
    int64_t before[PO_MAX_RANK] = {0}, after[PO_MAX_RANK] = {0};
    for (uint32_t i = 0; i < n_padded; i++) {
        uint32_t axis;
        if (!po_sem_axis(axes ? axes[i] : i, rank, &axis))
            return PO_UNSUPPORTED;
        before[axis] = pads[i];
        after[axis] = pads[n_padded + i];
    }
    for (uint32_t i = 0; i < rank; i++) {
        int64_t length;
        if (!po_add_i64(in->dims[i], before[i], &length) ||
            !po_add_i64(length, after[i], &length) || length != sum->dims[i])
            return PO_UNSUPPORTED;
    }
    if (edges)
        return pad_edges(sem, sum, before) ? PO_OK : PO_UNSUPPORTED;
    po_term *t = po_sum_term(sum, rank);
    po_index *at = po_term_factor(sum, t, po_sem_operand(sem, sum, 0));
    for (uint32_t i = 0; i < rank; i++) {
        uint32_t v = po_term_var(t, NULL, in->dims[i]);
        po_index_add(t, at, i, 1, v);
        po_index_add(t, &t->out, i, 1, v);
        t->out.base[i] = before[i]; /* what is cut falls outside */
    }
    return pad_border(sem, sum, before) ? PO_OK : PO_UNSUPPORTED;
}

/* --- depth and space --- */

/* Channels as (high, c, low): the digits i and j of the block stand above or below the channel. */
static po_status depth_space(po_sem *sem, bool to_space, bool block_above) {
    const po_sem_tensor *in = &sem->in[0];
    int64_t b = po_node_int(sem->node, "blocksize", 0);
    po_sum *sum = po_sem_begin(sem, 0);
    if (in->rank != 4 || sum->rank != 4 || b < 1 || in->dtype == PO_STR)
        return PO_UNSUPPORTED;
    const int64_t *deep = to_space ? in->dims : sum->dims, *wide = to_space ? sum->dims : in->dims;
    for (int i = 2; i < 4; i++)
        if (b > wide[i] || wide[i] % b || deep[i] != wide[i] / b)
            return wide[i] == 0 && deep[i] == 0 ? PO_OK : PO_UNSUPPORTED;
    /* b * b cannot overflow: b is at most a dim of a tensor that has b * b elements. */
    if (deep[0] != wide[0] || deep[1] % (b * b) || deep[1] / (b * b) != wide[1])
        return PO_UNSUPPORTED;
    po_term *t = po_sum_term(sum, 6);
    po_index *at = po_term_factor(sum, t, po_sem_operand(sem, sum, 0));
    po_index *d = to_space ? at : &t->out, *w = to_space ? &t->out : at;
    uint32_t n = po_term_var(t, "n", deep[0]), c = po_term_var(t, "c", wide[1]);
    uint32_t y = po_term_var(t, "y", deep[2]), i = po_term_var(t, "i", b);
    uint32_t x = po_term_var(t, "x", deep[3]), j = po_term_var(t, "j", b);
    po_index_add(t, d, 0, 1, n);
    po_index_add(t, w, 0, 1, n);
    po_index_add(t, w, 1, 1, c);
    po_index_add(t, d, 1, block_above ? 1 : b * b, c);
    po_index_add(t, d, 1, block_above ? b * wide[1] : b, i);
    po_index_add(t, d, 1, block_above ? wide[1] : 1, j);
    po_index_add(t, d, 2, 1, y);
    po_index_add(t, w, 2, b, y);
    po_index_add(t, w, 2, 1, i);
    po_index_add(t, d, 3, 1, x);
    po_index_add(t, w, 3, b, x);
    po_index_add(t, w, 3, 1, j);
    return PO_OK;
}

po_status po_sem_depth_to_space(po_sem *sem) {
    bool crd = po_node_string_is(sem->node, "mode", "CRD", "DCR");
    if (!crd && !po_node_string_is(sem->node, "mode", "DCR", "DCR"))
        return PO_UNSUPPORTED;
    return depth_space(sem, true, !crd);
}

po_status po_sem_space_to_depth(po_sem *sem) {
    return depth_space(sem, false, true);
}

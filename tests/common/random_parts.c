/* Two streams of draws, the program's and the mutant's; values made by the po_mk_ helpers; and
 * detours, which move data and move it back, or nearly. */
#include "random_parts.h"

/* --- draws --- */

/* Of the program: the same in a mutant, but for one draw perhaps. */
int64_t rl_draw(maker *m, int64_t from, int64_t to) {
    uint32_t n = m->draws++;
    uint64_t r = m->mutant && n == m->altered ? po_random_u64(m->mutation, 2, n)
                                              : po_random_u64(m->seed, 1, n);
    return from + (int64_t)(r % (uint64_t)(to - from + 1));
}

bool rl_chance(maker *m, int64_t one_in) {
    return rl_draw(m, 1, one_in) == 1;
}

/* Of the mutant: 0 is as the program is written, 1 to n - 1 are other ways. */
int64_t rl_vary(maker *m, int64_t n, uint64_t percent) {
    if (!m->mutant)
        return 0;
    uint64_t r = po_random_u64(m->mutation, 3, m->variations++);
    return r % 100 < percent ? 1 + (int64_t)(r / 100 % (uint64_t)(n - 1)) : 0;
}

/* --- values --- */

tensor rl_dims_of(maker *m, po_value_id v) {
    tensor t = {0};
    if (!po_dims_of(m->d.g, v, &t.n, t.dim))
        m->d.dropped = true;
    return t;
}

int64_t rl_count_of(const tensor *t) {
    int64_t count = 1;
    for (uint32_t i = 0; i < t->n; i++)
        count *= t->dim[i];
    return count;
}

po_value_id rl_input(maker *m, uint32_t n, const int64_t *dims) {
    po_type type = po_type_tensor_i64(m->d.g->arena, PO_F32, n, dims);
    return po_graph_add_input(m->d.g, NULL, &type);
}

po_value_id rl_made(maker *m, po_op_id op, uint32_t n_in, const po_value_id *in, const tensor *t) {
    for (uint32_t i = 0; i < t->n; i++)
        if (t->dim[i] < 1)
            m->d.dropped = true;
    po_type type = po_type_tensor_i64(m->d.g->arena, PO_F32, t->n, t->dim);
    return po_add_op(m->d.g, PO_NONE, op, n_in, in, &type);
}

po_node_id rl_node_of(maker *m, po_value_id v) {
    return m->d.g->values[v].producer;
}

po_value_id rl_slice(maker *m, po_value_id v, uint32_t axis, int64_t begin, int64_t count,
                     int64_t step) {
    return m->d.dropped ? v : po_mk_slice(&m->d, v, axis, begin, count, step);
}

po_value_id rl_reversed(maker *m, po_value_id v, uint32_t axis) {
    tensor t = rl_dims_of(m, v);
    return rl_slice(m, v, axis, t.dim[axis] - 1, t.dim[axis], -1);
}

po_value_id rl_swapped(maker *m, po_value_id v, uint32_t a, uint32_t b) {
    int perm[PO_MOST_DIMS];
    for (int i = 0; i < PO_MOST_DIMS; i++)
        perm[i] = i;
    perm[a] = (int)b;
    perm[b] = (int)a;
    return m->d.dropped ? v : po_mk_transpose(&m->d, v, perm);
}

/* Axis as (outer, inner) digits. */
po_value_id rl_digits(maker *m, po_value_id v, uint32_t axis, int64_t inner) {
    tensor t = rl_dims_of(m, v);
    if (m->d.dropped || t.n + 1 > PO_MOST_DIMS || t.dim[axis] % inner) {
        m->d.dropped = true;
        return v;
    }
    memmove(&t.dim[axis + 2], &t.dim[axis + 1], (t.n - axis - 1) * sizeof *t.dim);
    t.dim[axis] /= inner;
    t.dim[axis + 1] = inner;
    return po_mk_reshape(&m->d, v, t.n + 1, t.dim);
}

/* Axes `axis` and the one after it as one. */
po_value_id rl_merged(maker *m, po_value_id v, uint32_t axis) {
    tensor t = rl_dims_of(m, v);
    if (m->d.dropped || axis + 1 >= t.n) {
        m->d.dropped = true;
        return v;
    }
    t.dim[axis] *= t.dim[axis + 1];
    memmove(&t.dim[axis + 1], &t.dim[axis + 2], (t.n - axis - 2) * sizeof *t.dim);
    return po_mk_reshape(&m->d, v, t.n - 1, t.dim);
}

/* Moves an axis to another place. */
po_value_id rl_moved(maker *m, po_value_id v, uint32_t from, uint32_t to) {
    int perm[PO_MOST_DIMS];
    tensor t = rl_dims_of(m, v);
    uint32_t n = 0;
    for (uint32_t i = 0; i < t.n; i++) {
        if (n == to)
            perm[n++] = (int)from;
        if (i != from)
            perm[n++] = (int)i;
    }
    if (n == to)
        perm[n] = (int)from;
    return m->d.dropped ? v : po_mk_transpose(&m->d, v, perm);
}

/* --- detours: what is moved and moved back --- */

po_value_id rl_detour(maker *m, po_value_id v) {
    int64_t way = rl_vary(m, 9, 25), bug = way ? rl_vary(m, 3, 45) : 0;
    tensor t = rl_dims_of(m, v);
    if (way == 0 || t.n == 0 || m->d.dropped)
        return v;
    uint32_t axis = (uint32_t)rl_vary(m, t.n + 1, 80), other;
    axis = axis ? axis - 1 : t.n - 1;
    other = (axis + 1) % t.n;
    int64_t dim = t.dim[axis];
    switch (way) {
    case 1: /* a transpose, there and back; or only there */
        v = rl_swapped(m, v, axis, other);
        return bug && dim == t.dim[other] ? v : rl_swapped(m, v, axis, other);
    case 2: /* halves, side by side; in the wrong order, or the second one early */
        if (dim < 2)
            return v;
        {
            po_value_id part[2] = {rl_slice(m, v, axis, 0, dim / 2, 1),
                                   rl_slice(m, v, axis, dim / 2 - (bug == 2), dim - dim / 2, 1)};
            po_value_id turned[2] = {part[1], part[0]};
            return m->d.dropped ? v : po_mk_concat(&m->d, axis, 2, bug == 1 ? turned : part);
        }
    case 3: /* reversed twice, or once */
        v = rl_reversed(m, v, axis);
        return bug ? v : rl_reversed(m, v, axis);
    case 4: /* zeros around, and off again; or beside */
        v = po_mk_pad(&m->d, v, axis, 1, 1);
        return rl_slice(m, v, axis, bug ? 2 * (bug - 1) : 1, dim, 1);
    case 5: /* times 2 and halved; or times 3 */
        v = po_mk_binary(&m->d, PO_OP_Mul, v, po_mk_scalar(&m->d, bug ? 3 : 2));
        return po_mk_binary(&m->d, PO_OP_Mul, v, po_mk_scalar(&m->d, 0.5));
    case 6: /* digits swapped, and back; or only swapped */
        for (int64_t inner = 2; inner < dim; inner++)
            if (dim % inner == 0 && t.n + 1 < PO_MOST_DIMS) {
                v = rl_merged(m, rl_swapped(m, rl_digits(m, v, axis, inner), axis, axis + 1), axis);
                if (bug)
                    return v;
                v = rl_digits(m, v, axis, dim / inner);
                return rl_merged(m, rl_swapped(m, v, axis, axis + 1), axis);
            }
        return v;
    case 7: /* evens and odds, put together again; or odds first */
        if (dim % 2 == 0) {
            po_value_id part[2] = {rl_slice(m, v, axis, bug == 1, dim / 2, 2),
                                   rl_slice(m, v, axis, bug != 1, dim / 2, 2)};
            if (m->d.dropped || t.n + 1 >= PO_MOST_DIMS)
                return v;
            v = rl_digits(m, po_mk_concat(&m->d, axis, 2, part), axis, dim / 2);
            return rl_merged(m, rl_swapped(m, v, axis, axis + 1), axis);
        }
        return v;
    default: /* flat and back; or by other dims */
        if (m->d.dropped)
            return v;
        v = po_mk_reshape(&m->d, v, 1, (int64_t[]){rl_count_of(&t)});
        if (bug && t.n > 1) {
            tensor u = t;
            u.dim[axis] = t.dim[other];
            u.dim[other] = dim;
            v = po_mk_reshape(&m->d, v, u.n, u.dim);
            return rl_swapped(m, v, axis, other);
        }
        return po_mk_reshape(&m->d, v, t.n, t.dim);
    }
}

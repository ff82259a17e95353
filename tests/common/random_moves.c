/* Nodes that move elements, for random programs. */
#include "random_making.h"

static uint32_t slice(making *m, uint32_t x) {
    making_value v = m->v[x];
    int64_t axis = making_draw(m, 0, v.rank - 1), dim = v.dim[axis];
    if (dim == 0)
        return x;
    int64_t begin = making_draw(m, 0, dim - 1), step = making_draw(m, 1, 2);
    int64_t end = making_draw(m, begin + 1, dim);
    v.dim[axis] = (end - begin + step - 1) / step;
    m->v[x].used = true;
    const char *b = making_integers(m, &begin, 1), *e = making_integers(m, &end, 1),
               *a = making_integers(m, &axis, 1), *s = making_integers(m, &step, 1);
    return making_made(m, &v, "Slice(v%u, %s, %s, %s, %s)", x, b, e, a, s);
}

static uint32_t concat(making *m, uint32_t x) {
    making_value v = m->v[x];
    for (uint32_t y = m->n; y-- > 0;) {
        const making_value *u = &m->v[y];
        uint32_t differ = 0, axis = (uint32_t)making_draw(m, 0, v.rank - 1);
        for (uint32_t i = 0; i < v.rank && u->rank == v.rank; i++)
            if (u->dim[i] != v.dim[i]) {
                differ++;
                axis = i;
            }
        if (u->rank != v.rank || differ > 1 || (y == x && !making_chance(m, 3)))
            continue;
        v.dim[axis] += u->dim[axis];
        m->v[x].used = m->v[y].used = true;
        return making_made(m, &v, "Concat(v%u, v%u) {axis=%u}", x, y, axis);
    }
    return x;
}

static uint32_t pad(making *m, uint32_t x) {
    making_value v = m->v[x];
    int64_t pads[2 * MAKING_RANK] = {0};
    for (uint32_t i = v.rank > 2 ? 2 : 0; i < v.rank; i++) {
        pads[i] = making_draw(m, 0, 2);
        pads[v.rank + i] = making_draw(m, 0, 2);
        v.dim[i] += pads[i] + pads[v.rank + i];
    }
    m->v[x].used = true;
    const char *p = making_integers(m, pads, 2 * v.rank);
    return making_made(m, &v, "Pad(v%u, %s)", x, p);
}

static uint32_t transpose(making *m, uint32_t x) {
    making_value v = m->v[x], from = v;
    int64_t perm[MAKING_RANK];
    for (uint32_t i = 0; i < v.rank; i++)
        perm[i] = i;
    for (uint32_t i = v.rank; i-- > 1;) {
        int64_t k = making_draw(m, 0, i), t = perm[i];
        perm[i] = perm[k];
        perm[k] = t;
    }
    for (uint32_t i = 0; i < v.rank; i++)
        v.dim[i] = from.dim[perm[i]];
    m->v[x].used = true;
    return making_made(m, &v, "Transpose(v%u) {perm=[%s]}", x, making_list(m, perm, v.rank));
}

/* Two axes made one, or one made two. */
static uint32_t reshape(making *m, uint32_t x) {
    making_value v = m->v[x], to = v;
    if (making_count_of(&v) == 0) /* a target of 0 is another dim */
        return x;
    if (v.rank == 0 || (v.rank == 1 && v.dim[0] == 1)) { /* a number, and a row of one */
        to.rank = 1 - v.rank;
        to.dim[0] = 1;
        m->v[x].used = true;
        return making_made(m, &to, "Reshape(v%u, %s)", x, making_integers(m, to.dim, to.rank));
    }
    uint32_t axis = (uint32_t)making_draw(m, 0, v.rank - 1);
    int64_t factor = v.dim[axis] % 4 == 0   ? 4
                     : v.dim[axis] % 3 == 0 ? 3
                     : v.dim[axis] % 2 == 0 ? 2
                                            : 1;
    if (v.rank < MAKING_RANK - 1 && factor > 1 && making_chance(m, 2)) {
        to.rank = v.rank + 1;
        to.dim[axis] = v.dim[axis] / factor;
        to.dim[axis + 1] = factor;
        for (uint32_t i = axis + 1; i < v.rank; i++)
            to.dim[i + 1] = v.dim[i];
    } else if (v.rank > 2) {
        axis = (uint32_t)making_draw(m, 0, v.rank - 2);
        to.rank = v.rank - 1;
        to.dim[axis] = v.dim[axis] * v.dim[axis + 1];
        for (uint32_t i = axis + 1; i < to.rank; i++)
            to.dim[i] = v.dim[i + 1];
    }
    m->v[x].used = true;
    const char *shape = making_integers(m, to.dim, to.rank);
    return making_made(m, &to, "Reshape(v%u, %s)", x, shape);
}

static uint32_t expand(making *m, uint32_t x) {
    making_value v = m->v[x];
    if (v.rank > 4)
        return x;
    int64_t to[MAKING_RANK] = {making_draw(m, 2, 3)};
    memcpy(to + 1, v.dim, v.rank * sizeof *to);
    memcpy(v.dim, to, sizeof to);
    v.rank++;
    if (making_count_of(&v) > 20000)
        return x;
    m->v[x].used = true;
    const char *shape = making_integers(m, to, v.rank);
    return making_made(m, &v, "Expand(v%u, %s)", x, shape);
}

static uint32_t split(making *m, uint32_t x) {
    making_value v = m->v[x];
    uint32_t axis = (uint32_t)making_draw(m, 0, v.rank - 1);
    if (v.dim[axis] < 2 || m->n + 2 >= MAKING_VALUES)
        return x;
    int64_t first = making_draw(m, 1, v.dim[axis] - 1), parts[2] = {first, v.dim[axis] - first};
    const char *p = making_integers(m, parts, 2);
    m->v[x].used = true;
    po_text_printf(&m->body, "  v%u, v%u = Split(v%u, %s) {axis=%u}\n", m->n, m->n + 1, x, p, axis);
    for (uint32_t i = 0; i < 2; i++) {
        v.dim[axis] = parts[i];
        m->v[m->n] = v;
        m->v[m->n++].used = false;
    }
    return m->n - (uint32_t)making_draw(m, 1, 2);
}

uint32_t making_move(making *m, uint32_t x) {
    if (m->v[x].rank == 0)
        return making_chance(m, 2) ? reshape(m, x) : expand(m, x);
    switch (making_draw(m, 0, 8)) {
    case 0:
        return concat(m, x);
    case 4:
        return pad(m, x);
    case 5:
        return transpose(m, x);
    case 6:
        return reshape(m, x);
    case 7:
        return expand(m, x);
    case 8:
        return split(m, x);
    default:
        return making_chance(m, 2) ? concat(m, x) : slice(m, x);
    }
}

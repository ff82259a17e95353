/* Draws, lines and shapes of a random graph, and nodes of any shape. */
#include "making.h"

#include "base/hash.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

uint32_t lots_below(lots *l, uint32_t n) {
    return (uint32_t)(po_random_u64(l->seed, l->stream, l->drawn++) % n);
}

bool lots_one_in(lots *l, uint32_t n) {
    return lots_below(l, n) == 0;
}

uint32_t sizes_below(making *m, uint32_t n) {
    return lots_below(&m->lots, n);
}

__attribute__((format(printf, 2, 3))) void sizes_line(making *m, const char *format, ...) {
    va_list args;
    if (m->g->n == GENERATED_LINES)
        return;
    va_start(args, format);
    vsnprintf(m->g->line[m->g->n++], GENERATED_LINE, format, args);
    va_end(args);
}

uint32_t sizes_value(making *m, shape s) {
    m->value[m->n] = s;
    return m->n++;
}

__attribute__((format(printf, 3, 4))) shape sizes_dim(shape s, uint32_t axis, const char *format,
                                                      ...) {
    va_list args;
    va_start(args, format);
    vsnprintf(s.dim[axis], DIM, format, args);
    va_end(args);
    return s;
}

int sizes_number(const shape *s, uint32_t axis) {
    return atoi(s->dim[axis]); /* 0: open */
}

static bool same_shape(const shape *a, const shape *b) {
    bool same = a->rank == b->rank;
    for (uint32_t i = 0; same && i < a->rank; i++)
        same = strcmp(a->dim[i], b->dim[i]) == 0;
    return same;
}

uint32_t sizes_partner(making *m, uint32_t v, uint32_t axis) {
    const uint32_t from = sizes_below(m, m->n);
    for (uint32_t i = 0; i < m->n; i++) {
        const uint32_t w = (from + i) % m->n;
        shape s = m->value[w];
        if (axis < 4)
            memcpy(s.dim[axis], m->value[v].dim[axis], DIM);
        if (w != v && s.rank == m->value[v].rank && same_shape(&s, &m->value[v]))
            return w;
    }
    return v;
}

const char *sizes_one_of(making *m, const char *const *list, uint32_t n) {
    return list[sizes_below(m, n)];
}
/* --- of any shape --- */

void sizes_unary(making *m, uint32_t v) {
    const char *op = ONE_OF(m, "Relu", "Sigmoid", "Tanh", "Erf", "Exp", "Neg", "Abs", "LeakyRelu",
                            "Identity", "HardSwish", "Softplus", "Sqrt");
    sizes_line(m, "v%u = %s(v%u)", m->n, op, v);
    sizes_value(m, m->value[v]);
}

void sizes_scalar(making *m, uint32_t v) {
    const char *op = ONE_OF(m, "Mul", "Add", "Div", "Sub");
    const char *number = ONE_OF(m, "0.5", "2.0", "1.0", "3.0", "0.125");
    sizes_line(m, "v%u = %s(v%u, c%u: f32[] {%s})", m->n, op, v, m->constants++, number);
    sizes_value(m, m->value[v]);
}

void sizes_combine(making *m, uint32_t v) {
    const uint32_t w = sizes_partner(m, v, 4);
    sizes_line(m, "v%u = %s(v%u, v%u)", m->n, ONE_OF(m, "Add", "Mul", "Sub", "Max"), v, w);
    sizes_value(m, m->value[v]);
}

void sizes_slice(making *m, uint32_t v, uint32_t axis) {
    const int c = sizes_number(&m->value[v], axis);
    if (c > 0 && c < 3)
        return;
    const int from = c > 2 ? (int)sizes_below(m, (uint32_t)c / 2) : (int)sizes_below(m, 3);
    const bool ends = c == 0 && sizes_below(m, 3) == 0;
    const int to = c > 2  ? c - (int)sizes_below(m, (uint32_t)c / 2)
                   : ends ? -1 - (int)sizes_below(m, 2)
                          : INT32_MAX;
    const int k = (int)m->constants;
    sizes_line(m, "v%u = Slice(v%u, c%d: i64[1] {%d}, c%d: i64[1] {%d}, c%d: i64[1] {%u})", m->n, v,
               k, from, k + 1, to, k + 2, axis);
    m->constants += 3;
    if (c > 0)
        sizes_value(m, sizes_dim(m->value[v], axis, "%d", to > from ? to - from : 1));
    else
        sizes_value(
            m, sizes_dim(m->value[v], axis, "cut%d_%d(%.40s)", from, to, m->value[v].dim[axis]));
}

void sizes_concat(making *m, uint32_t v, uint32_t axis) {
    const uint32_t w = sizes_partner(m, v, axis);
    const int a = sizes_number(&m->value[v], axis), b = sizes_number(&m->value[w], axis);
    sizes_line(m, "v%u = Concat(v%u, v%u) {axis=%u}", m->n, v, w, axis);
    if (a && b)
        sizes_value(m, sizes_dim(m->value[v], axis, "%d", a + b));
    else
        sizes_value(m, sizes_dim(m->value[v], axis, "%.30s+%.30s", m->value[v].dim[axis],
                                 m->value[w].dim[axis]));
}

/* Draws by seed, and the text of the graph under way: a line for each node, constants named as they
 * come, and which values have a reader. */
#include "random_making.h"

#include "base/hash.h"

#include <stdio.h>

int64_t making_draw(making *m, int64_t from, int64_t to) {
    return from + (int64_t)(po_random_u64(m->seed, 17, m->draws++) % (uint64_t)(to - from + 1));
}

bool making_chance(making *m, int64_t one_in) {
    return making_draw(m, 1, one_in) == 1;
}

int64_t making_pick(making *m, const int64_t *from, size_t n) {
    return from[making_draw(m, 0, (int64_t)n - 1)];
}

int64_t making_count_of(const making_value *v) {
    int64_t n = 1;
    for (uint32_t i = 0; i < v->rank; i++)
        n *= v->dim[i];
    return n;
}

const char *making_list(making *m, const int64_t *n, uint32_t count) {
    po_text t;
    po_text_init(&t, m->arena);
    for (uint32_t i = 0; i < count; i++)
        po_text_printf(&t, "%s%lld", i ? ", " : "", (long long)n[i]);
    return count ? t.data : "";
}

const char *making_weight(making *m, uint32_t rank, const int64_t *dims) {
    uint32_t k = m->n_constants++;
    return po_arena_printf(m->arena, "w%u: f32[%s] random %u", k, making_list(m, dims, rank),
                           k + 1);
}

const char *making_integers(making *m, const int64_t *n, uint32_t count) {
    uint32_t k = m->n_constants++;
    po_text_printf(&m->body, "  c%u = i64[%u] {%s}\n", k, count, making_list(m, n, count));
    return po_arena_printf(m->arena, "c%u", k);
}

const char *making_broadcast(making *m, const making_value *v) {
    int64_t dims[MAKING_RANK];
    uint32_t skip = (uint32_t)making_draw(m, 0, v->rank);
    for (uint32_t i = skip; i < v->rank; i++)
        dims[i - skip] = making_chance(m, 2) ? 1 : v->dim[i];
    if (skip == v->rank) {
        uint32_t k = m->n_constants++;
        return po_arena_printf(m->arena, "w%u: f32[] {%.2f}", k,
                               0.25 * (double)making_draw(m, 1, 9));
    }
    return making_weight(m, v->rank - skip, dims);
}

uint32_t making_made(making *m, const making_value *v, const char *format, ...) {
    va_list args;
    va_start(args, format);
    po_text_printf(&m->body, "  v%u = ", m->n);
    char line[400];
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    po_text_printf(&m->body, "%s\n", line);
    m->v[m->n] = *v;
    m->v[m->n].used = false;
    return m->n++;
}

uint32_t making_unary(making *m, uint32_t x, const char *op) {
    making_value v = m->v[x];
    m->v[x].used = true;
    return making_made(m, &v, "%s(v%u)", op, x);
}

uint32_t making_binary(making *m, uint32_t x, uint32_t y, const char *op) {
    making_value v = m->v[x];
    m->v[x].used = m->v[y].used = true;
    return making_made(m, &v, "%s(v%u, v%u)", op, x, y);
}

uint32_t making_with_number(making *m, uint32_t x, const char *op, double number) {
    making_value v = m->v[x];
    m->v[x].used = true;
    return making_made(m, &v, "%s(v%u, w%u: f32[] {%g})", op, x, m->n_constants++, number);
}

/* Sums of products of two operands, a whole statement at once: what the float64 reference of a
 * large convolution spends its time on. One kept label runs along vectors; for what the second
 * operand has besides, its numbers are gathered once with that label innermost; all reduced labels
 * together are a list of offsets, shortened at edges. */
#include "mugraph/eval_product.h"

enum { LANES = 32, MOST_GATHERED = 1 << 24 };

typedef double vector __attribute__((vector_size(64), aligned(8), may_alias));

/* acc[l] += sum over i of a[at[i]] * b[i][l] of LANES lanes, b's rows `pitch` apart; aligned to 8
 * bytes only. */
#define SUM_ROWS(name, attribute)                                                                  \
    attribute static void name(double *acc, const double *a, const int64_t *at,                    \
                               const int64_t *row, int64_t n, const double *b, int64_t pitch) {    \
        vector s0 = {0}, s1 = {0}, s2 = {0}, s3 = {0};                                             \
        for (int64_t i = 0; i < n; i++) {                                                          \
            const vector *v = (const vector *)(const void *)(b + row[i] * pitch);                  \
            double x = a[at[i]];                                                                   \
            s0 += x * v[0];                                                                        \
            s1 += x * v[1];                                                                        \
            s2 += x * v[2];                                                                        \
            s3 += x * v[3];                                                                        \
        }                                                                                          \
        vector *to = (vector *)(void *)acc;                                                        \
        to[0] += s0;                                                                               \
        to[1] += s1;                                                                               \
        to[2] += s2;                                                                               \
        to[3] += s3;                                                                               \
    }
SUM_ROWS(sum_rows, )
#if defined(__x86_64__)
SUM_ROWS(sum_rows_avx2, __attribute__((target("avx2,fma"))))
SUM_ROWS(sum_rows_avx512, __attribute__((target("avx512f"))))
#endif

typedef void (*sum_rows_fn)(double *acc, const double *a, const int64_t *at, const int64_t *row,
                            int64_t n, const double *b, int64_t pitch);

static sum_rows_fn best_rows(void) {
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f"))
        return sum_rows_avx512;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        return sum_rows_avx2;
#endif
    return sum_rows;
}

/* The labels by their part: the lane; what else the gathered operand has of kept ones (outer); the
 * other kept ones (pixel); the reduced ones. */
typedef struct parts {
    uint32_t lane, n_outer, n_pixel, n_reduced;
    uint32_t outer[PO_MU_MAX_RANK * 2], pixel[PO_MU_MAX_RANK * 2], reduced[PO_MU_MAX_RANK * 2];
    uint32_t a, b;    /* operands: read number by number (or along the lane), gathered */
    int64_t lanes, n; /* extents: of the lane, of all reduced labels */
} parts;

static int64_t extent_of(const po_mu_run *run, const po_mu_plan *plan, uint32_t place) {
    return plan->label[place] == PO_NONE ? 1 : run->mu->labels[plan->label[place]].extent;
}

static bool is_kept(const po_mu_plan *plan, uint32_t place) {
    for (uint32_t i = 0; i < plan->n_kept; i++)
        if (plan->kept[i] == place)
            return true;
    return false;
}

/* The longest kept label that no test at an edge depends on and that only one operand has; else
 * false. */
static bool find_parts(const po_mu_run *run, const po_mu_plan *plan, uint32_t x, uint32_t y,
                       parts *p) {
    *p = (parts){.lane = PO_NONE, .n = 1};
    for (uint32_t i = 0; i < plan->n_kept; i++) {
        uint32_t j = plan->kept[i];
        bool tested = false;
        for (uint32_t g = 0; g < plan->n_guards; g++)
            tested |= plan->guards[g].coef[j] != 0;
        bool in_x = plan->step[x][j] != 0, in_y = plan->step[y][j] != 0;
        if (!tested && in_x != in_y && extent_of(run, plan, j) > p->lanes) {
            p->lane = j;
            p->lanes = extent_of(run, plan, j);
            p->a = in_x ? y : x;
            p->b = in_x ? x : y;
        }
    }
    if (p->lane == PO_NONE)
        return false;
    for (uint32_t j = 0; j < plan->n_labels; j++) {
        if (p->n_outer + p->n_pixel + p->n_reduced == PO_MU_MAX_RANK * 2)
            return false;
        if (j == p->lane)
            continue;
        if (!is_kept(plan, j)) {
            p->reduced[p->n_reduced++] = j;
            if (__builtin_mul_overflow(p->n, extent_of(run, plan, j), &p->n))
                return false;
        } else if (plan->step[p->b][j] != 0) {
            p->outer[p->n_outer++] = j;
        } else {
            p->pixel[p->n_pixel++] = j;
        }
    }
    int64_t gathered;
    return !__builtin_mul_overflow(p->n, p->lanes + LANES, &gathered) && gathered <= MOST_GATHERED;
}

/* The next of the labels at these places; false after the last. */
static bool advance(const po_mu_run *run, const po_mu_plan *plan, const uint32_t *places,
                    uint32_t n, int64_t *value) {
    for (uint32_t i = n; i-- > 0;) {
        if (++value[places[i]] < extent_of(run, plan, places[i]))
            return true;
        value[places[i]] = 0;
    }
    return false;
}

static int64_t offset(const po_mu_plan *plan, uint32_t access, const uint32_t *places, uint32_t n,
                      const int64_t *value) {
    int64_t at = 0;
    for (uint32_t i = 0; i < n; i++)
        at += plan->step[access][places[i]] * value[places[i]];
    return at;
}

/* What a test sees of the labels at these places. */
static int64_t seen(const po_mu_guard *g, const uint32_t *places, uint32_t n,
                    const int64_t *value) {
    int64_t at = 0;
    for (uint32_t i = 0; i < n; i++)
        at += g->coef[places[i]] * value[places[i]];
    return at;
}

typedef struct lists {
    int64_t *at, *row;           /* of every iteration of the reduced labels: a's offset, number */
    int64_t *some_at, *some_row; /* of those that are inside */
    int64_t *const *of_guard;    /* by guard, iteration */
    int64_t *least, *most;       /* by guard */
} lists;

static void fill_lists(const po_mu_run *run, const po_mu_plan *plan, const parts *p,
                       po_arena *arena, int64_t *value, lists *l) {
    int64_t **of_guard = PO_NEW_N(arena, int64_t *, plan->n_guards + 1);
    l->at = PO_NEW_N(arena, int64_t, p->n);
    l->row = PO_NEW_N(arena, int64_t, p->n);
    l->some_at = PO_NEW_N(arena, int64_t, p->n);
    l->some_row = PO_NEW_N(arena, int64_t, p->n);
    l->least = PO_NEW_N(arena, int64_t, plan->n_guards + 1);
    l->most = PO_NEW_N(arena, int64_t, plan->n_guards + 1);
    for (uint32_t g = 0; g < plan->n_guards; g++)
        of_guard[g] = PO_NEW_N(arena, int64_t, p->n);
    for (int64_t i = 0; i < p->n; i++) {
        l->at[i] = offset(plan, p->a, p->reduced, p->n_reduced, value);
        l->row[i] = i;
        for (uint32_t g = 0; g < plan->n_guards; g++) {
            int64_t v = seen(&plan->guards[g], p->reduced, p->n_reduced, value);
            of_guard[g][i] = v;
            l->least[g] = i == 0 || v < l->least[g] ? v : l->least[g];
            l->most[g] = i == 0 || v > l->most[g] ? v : l->most[g];
        }
        advance(run, plan, p->reduced, p->n_reduced, value);
    }
    l->of_guard = of_guard;
}

/* Whether a test that no pixel has a part in, as all tests of b are, finds iteration i outside. */
static bool is_outside(const po_mu_plan *plan, const parts *p, const lists *l, const int64_t *value,
                       int64_t i) {
    for (uint32_t g = 0; g < plan->n_guards; g++) {
        const po_mu_guard *guard = &plan->guards[g];
        bool pixel = false;
        for (uint32_t k = 0; k < p->n_pixel; k++)
            pixel |= guard->coef[p->pixel[k]] != 0;
        int64_t v = guard->offset + seen(guard, p->outer, p->n_outer, value) + l->of_guard[g][i];
        if (!pixel && (v < 0 || v >= guard->dim))
            return true;
    }
    return false;
}

/* b with the lanes innermost, the last ones padded with zeros. What is outside of it is not read
 * here, nor used. */
static void gather(const po_mu_run *run, const po_mu_plan *plan, const parts *p, const lists *l,
                   const double *from, int64_t pitch, int64_t *value, double *to) {
    int64_t step = plan->step[p->b][p->lane];
    for (int64_t i = 0; i < p->n; i++) {
        int64_t row = offset(plan, p->b, p->reduced, p->n_reduced, value);
        bool out = is_outside(plan, p, l, value, i);
        for (int64_t k = 0; k < p->lanes && !out; k++)
            to[i * pitch + k] = from[row + k * step];
        advance(run, plan, p->reduced, p->n_reduced, value);
    }
}

/* Iterations of the pixel that are inside; their lists. */
static int64_t inside(const po_mu_plan *plan, const parts *p, const lists *l, const int64_t *value,
                      const int64_t **at, const int64_t **row) {
    int64_t base[PO_MU_ACCESSES * PO_MU_MAX_RANK];
    bool all = true;
    for (uint32_t g = 0; g < plan->n_guards; g++) {
        const po_mu_guard *guard = &plan->guards[g];
        base[g] = guard->offset + seen(guard, p->outer, p->n_outer, value) +
                  seen(guard, p->pixel, p->n_pixel, value);
        all &= base[g] + l->least[g] >= 0 && base[g] + l->most[g] < guard->dim;
    }
    *at = l->at;
    *row = l->row;
    if (all)
        return p->n;
    int64_t n = 0;
    for (int64_t i = 0; i < p->n; i++) {
        bool in = true;
        for (uint32_t g = 0; g < plan->n_guards; g++) {
            int64_t v = base[g] + l->of_guard[g][i];
            in &= v >= 0 && v < plan->guards[g].dim;
        }
        l->some_at[n] = l->at[i];
        l->some_row[n] = i;
        n += in;
    }
    *at = l->some_at;
    *row = l->some_row;
    return n;
}

bool po_mu_sum_products(po_mu_run *run, const po_mu_plan *plan, uint32_t x, uint32_t y,
                        double scale, double *const *value_of, double *const *magnitude_of) {
    parts p;
    uint32_t out = plan->n_accesses - 1;
    if (plan->n_guards > PO_MU_ACCESSES * PO_MU_MAX_RANK || !find_parts(run, plan, x, y, &p))
        return false;
    po_arena *arena = po_arena_child(run->arena);
    int64_t *value = PO_NEW_N(arena, int64_t, plan->n_labels + 1);
    int64_t pitch = (p.lanes + LANES - 1) / LANES * LANES;
    double *b = PO_NEW_N(arena, double, p.n *pitch), *acc = PO_NEW_N(arena, double, LANES);
    sum_rows_fn rows = best_rows();
    lists l;
    fill_lists(run, plan, &p, arena, value, &l);
    for (int side = 0; side < (magnitude_of ? 2 : 1); side++) {
        double *const *from = side ? magnitude_of : value_of;
        double factor = side && scale < 0 ? -scale : scale;
        const double *a = from[plan->s->in[p.a].tensor] + plan->base[p.a];
        double *to = from[plan->s->out.tensor] + plan->base[out];
        int64_t step = plan->step[out][p.lane];
        do {
            gather(run, plan, &p, &l,
                   from[plan->s->in[p.b].tensor] + plan->base[p.b] +
                       offset(plan, p.b, p.outer, p.n_outer, value),
                   pitch, value, b);
            for (int64_t k = 0; k < p.lanes; k += LANES)
                do {
                    const int64_t *at, *row;
                    int64_t n = inside(plan, &p, &l, value, &at, &row);
                    for (int i = 0; i < LANES; i++)
                        acc[i] = 0;
                    rows(acc,
                         a + offset(plan, p.a, p.outer, p.n_outer, value) +
                             offset(plan, p.a, p.pixel, p.n_pixel, value),
                         at, row, n, b + k, pitch);
                    double *o = to + offset(plan, out, p.outer, p.n_outer, value) +
                                offset(plan, out, p.pixel, p.n_pixel, value) + k * step;
                    for (int64_t i = 0; i < LANES && k + i < p.lanes; i++)
                        o[i * step] += factor * acc[i];
                } while (advance(run, plan, p.pixel, p.n_pixel, value));
        } while (advance(run, plan, p.outer, p.n_outer, value));
    }
    po_arena_free(arena);
    return true;
}

/* Runs of an axis whose slices of the grid are the same are one class; what is left is a small grid
 * of classes, which is covered greedily by products of sets of classes. A set of positions of an
 * axis is then cut into few progressions. */
#include "boxes/merge.h"

#include "base/hash.h"

enum {
    MOST_TRIES = 4096 /* cells of the grid of classes beyond which one order of axes must do */
};

typedef struct grid {
    po_arena *arena;
    uint32_t rank;
    uint32_t n[PO_MAX_RANK]; /* classes */
    const po_grid_axis *axes;
    uint32_t *class_of[PO_MAX_RANK]; /* by run */
    uint8_t *cells;
    int64_t count;
} grid;

/* --- classes --- */

typedef struct layout {
    int64_t outer, n, inner; /* cell (o, i, k) is at (o * n + i) * inner + k */
} layout;

static layout layout_of(const grid *g, uint32_t x) {
    layout l = {1, g->n[x], 1};
    for (uint32_t y = 0; y < g->rank; y++)
        *(y < x ? &l.outer : &l.inner) *= y == x ? 1 : g->n[y];
    return l;
}

static bool same_slice(const grid *g, layout l, int64_t a, int64_t b) {
    for (int64_t o = 0; o < l.outer; o++)
        if (memcmp(g->cells + (o * l.n + a) * l.inner, g->cells + (o * l.n + b) * l.inner,
                   (size_t)l.inner) != 0)
            return false;
    return true;
}

static void merge_classes(grid *g, uint32_t x) {
    layout l = layout_of(g, x);
    po_hash_map *first = po_hash_map_create(g->arena);
    uint32_t *kept = PO_NEW_N(g->arena, uint32_t, l.n), n = 0;
    uint32_t *class_of = PO_NEW_N(g->arena, uint32_t, l.n);
    for (int64_t i = 0; i < l.n; i++) {
        po_hash h = {(uint64_t)l.inner, (uint64_t)l.outer};
        for (int64_t o = 0; o < l.outer; o++)
            h = po_hash_bytes(g->cells + (o * l.n + i) * l.inner, (size_t)l.inner, h);
        uint32_t c = po_hash_map_get(first, h);
        if (c == PO_NONE || !same_slice(g, l, kept[c], i)) {
            c = n++;
            kept[c] = (uint32_t)i;
            po_hash_map_put(first, h, c);
        }
        class_of[i] = c;
    }
    uint8_t *cells = PO_NEW_N(g->arena, uint8_t, l.outer * n * l.inner);
    for (int64_t o = 0; o < l.outer; o++)
        for (int64_t c = 0; c < n; c++)
            memcpy(cells + (o * n + c) * l.inner, g->cells + (o * l.n + kept[c]) * l.inner,
                   (size_t)l.inner);
    g->cells = cells;
    g->class_of[x] = class_of;
    g->n[x] = n;
    g->count = l.outer * n * l.inner;
}

/* --- products of sets of classes --- */

typedef struct product {
    uint32_t *set[PO_MAX_RANK]; /* class numbers */
    uint32_t n[PO_MAX_RANK];
} product;

/* Whether all cells of the product with axis x at class c are `which`. */
static bool all_are(const grid *g, const product *p, uint32_t x, uint32_t c, uint8_t which) {
    uint32_t at[PO_MAX_RANK] = {0};
    for (;;) {
        int64_t cell = 0;
        for (uint32_t y = 0; y < g->rank; y++)
            cell = cell * g->n[y] + (y == x ? c : p->set[y][at[y]]);
        if (g->cells[cell] != which)
            return false;
        uint32_t y = g->rank;
        while (y-- > 0) {
            if (y == x)
                continue;
            if (++at[y] < p->n[y])
                break;
            at[y] = 0;
        }
        if (y == PO_NONE)
            return true;
    }
}

static void grow(const grid *g, const uint32_t *start, uint32_t first_axis, uint8_t which,
                 product *p) {
    for (uint32_t y = 0; y < g->rank; y++) {
        p->n[y] = 1;
        p->set[y][0] = start[y];
    }
    for (uint32_t i = 0; i < g->rank; i++) {
        uint32_t x = (first_axis + g->rank - i) % g->rank; /* the last axes first */
        for (uint32_t c = 0; c < g->n[x]; c++)
            if (c != start[x] && all_are(g, p, x, c, which))
                p->set[x][p->n[x]++] = c;
    }
}

static double positions_of(const grid *g, const product *p, const double *const *weight) {
    double n = 1;
    for (uint32_t x = 0; x < g->rank; x++) {
        double sum = 0;
        for (uint32_t i = 0; i < p->n[x]; i++)
            sum += weight[x][p->set[x][i]];
        n *= sum;
    }
    return n;
}

static void take(grid *g, const product *p, uint8_t value) {
    uint32_t at[PO_MAX_RANK] = {0};
    for (;;) {
        int64_t cell = 0;
        for (uint32_t y = 0; y < g->rank; y++)
            cell = cell * g->n[y] + p->set[y][at[y]];
        g->cells[cell] = value;
        uint32_t y = g->rank;
        while (y-- > 0) {
            if (++at[y] < p->n[y])
                break;
            at[y] = 0;
        }
        if (y == PO_NONE)
            return;
    }
}

/* --- progressions --- */

typedef struct runs {
    po_run_of_axis *items;
    uint32_t n, cap;
} runs;

/* Positions of the axis that are marked, as few progressions; greedy, the longest first found. */
static runs progressions(po_arena *arena, uint8_t *marked, int64_t dim) {
    enum { CANDIDATES = 32 };
    runs r = {0};
    for (int64_t from = 0; from < dim; from++) {
        if (!marked[from])
            continue;
        po_run_of_axis best = {from, 1, 1};
        for (int64_t to = from + 1, seen = 0; to < dim && seen < CANDIDATES; to++) {
            if (!marked[to])
                continue;
            seen++;
            int64_t step = to - from, n = 2;
            if ((dim - 1 - from) / step + 1 <= best.count)
                break;
            while (from + n * step < dim && marked[from + n * step])
                n++;
            if (n > best.count)
                best = (po_run_of_axis){from, step, n};
        }
        for (int64_t i = 0; i < best.count; i++)
            marked[best.first + i * best.step] = 0;
        PO_PUSH(arena, r.items, r.n, r.cap, best);
    }
    return r;
}

static runs runs_of(const grid *g, const product *p, uint32_t x) {
    const po_grid_axis *a = &g->axes[x];
    po_arena *scratch = po_arena_child(g->arena);
    uint8_t *marked = PO_NEW_N(scratch, uint8_t, a->dim),
            *taken = PO_NEW_N(scratch, uint8_t, g->n[x]);
    for (uint32_t i = 0; i < p->n[x]; i++)
        taken[p->set[x][i]] = 1;
    for (uint32_t i = 0; i < a->n; i++) {
        if (!taken[g->class_of[x][i]])
            continue;
        po_run_of_axis run = a->runs ? a->runs[i] : (po_run_of_axis){i, 1, 1};
        for (int64_t k = 0; k < run.count; k++)
            marked[run.first + k * run.step] = 1;
    }
    runs r = progressions(g->arena, marked, a->dim);
    po_arena_free(scratch);
    return r;
}

static void add_boxes(const grid *g, const product *p, po_arena *arena, po_box_list *list) {
    runs r[PO_MAX_RANK];
    uint32_t at[PO_MAX_RANK] = {0};
    for (uint32_t x = 0; x < g->rank; x++)
        r[x] = runs_of(g, p, x);
    for (;;) {
        int64_t *numbers = PO_NEW_N(arena, int64_t, 3 * (size_t)g->rank);
        po_box box = {g->rank, numbers, numbers + g->rank, numbers + 2 * (size_t)g->rank};
        for (uint32_t x = 0; x < g->rank; x++) {
            box.first[x] = r[x].items[at[x]].first;
            box.step[x] = r[x].items[at[x]].step;
            box.count[x] = r[x].items[at[x]].count;
        }
        PO_PUSH(arena, list->boxes, list->n, list->cap, box);
        uint32_t x = g->rank;
        while (x-- > 0) {
            if (++at[x] < r[x].n)
                break;
            at[x] = 0;
        }
        if (x == PO_NONE)
            return;
    }
}

void po_grid_boxes(po_arena *arena, uint32_t rank, const po_grid_axis *axes, const uint8_t *cells,
                   uint8_t which, po_box_list *list) {
    po_arena *scratch = po_arena_child(arena);
    grid g = {.arena = scratch, .rank = rank, .axes = axes, .count = 1};
    for (uint32_t x = 0; x < rank; x++) {
        g.n[x] = axes[x].n;
        g.count *= axes[x].n;
    }
    g.cells = po_arena_memdup(scratch, cells, (size_t)g.count);
    for (uint32_t x = 0; x < rank && g.count; x++)
        merge_classes(&g, x);
    product p, best;
    double *weight[PO_MAX_RANK];
    for (uint32_t x = 0; x < rank; x++) {
        p.set[x] = PO_NEW_N(scratch, uint32_t, g.n[x]);
        best.set[x] = PO_NEW_N(scratch, uint32_t, g.n[x]);
        weight[x] = PO_NEW_N(scratch, double, g.n[x]);
        for (uint32_t i = 0; i < axes[x].n && g.count; i++)
            weight[x][g.class_of[x][i]] += (double)(axes[x].runs ? axes[x].runs[i].count : 1);
    }
    for (int64_t cell = 0; cell < g.count; cell++) {
        if (g.cells[cell] != which)
            continue;
        uint32_t start[PO_MAX_RANK];
        int64_t rest = cell;
        for (uint32_t x = rank; x-- > 0; rest /= g.n[x])
            start[x] = (uint32_t)(rest % g.n[x]);
        double most = -1;
        uint32_t tries = g.count > MOST_TRIES || rank == 0 ? 1 : rank;
        for (uint32_t i = 0; i < tries; i++) {
            grow(&g, start, rank ? rank - 1 - i : 0, which, &p);
            double n = positions_of(&g, &p, (const double *const *)weight);
            if (n > most) {
                product swap = best;
                best = p;
                p = swap;
                most = n;
            }
        }
        add_boxes(&g, &best, arena, list);
        take(&g, &best, (uint8_t)(which ^ 0xff));
    }
    po_arena_free(scratch);
}

/* A variable is a row where the output and the left factor have it, a column where the output and
 * the right one do, part of the batch where all three do, and of the depth where the output does
 * not have it. Indices are affine, so an element's place is the sum of what its row, column, depth
 * and batch add. Rows of a block come in runs along which every place moves by a fixed step: what
 * of a run lies inside the tensor is found once for the run. */
#include "ops/sum/product.h"

#include "base/modp.h"
#include "base/num.h"
#include "ops/sum/mod_gemm.h"

typedef enum role { BATCH, ROW, COLUMN, DEPTH, ROLES } role;
typedef enum slot { OUT, LEFT, RIGHT, SLOTS } slot;

/* The variables of one role. */
typedef struct group {
    uint32_t n;
    uint32_t var[PO_SUM_MAX_VARS];
    int64_t count; /* of their values together */
} group;

enum { MOST_BOUNDED = 16 };

/* A tensor as the term touches it. */
typedef struct access {
    const po_index *index;
    int64_t base, step[PO_SUM_MAX_VARS]; /* row-major offsets */
    uint32_t n_bounded;                  /* axes on which an index may lie outside */
    uint32_t axis[MOST_BOUNDED];
    int64_t dim[MOST_BOUNDED];
} access;

/* Places of consecutive values of a group in one tensor. */
typedef struct places {
    uint32_t n, n_runs;
    int64_t at[PO_GEMM_ROWS];
    int64_t where[MOST_BOUNDED][PO_GEMM_ROWS]; /* on each bounded axis */
    uint32_t run[PO_GEMM_ROWS + 1];            /* first of each run, then n */
} places;

typedef struct product {
    po_field field;
    const po_sum *sum;
    const po_term *term;
    group group[ROLES];
    access access[SLOTS];
    const uint32_t *data[SLOTS];
    /* of the block under way */
    places left_rows, left_depth, right_columns, right_depth, out_rows, out_columns;
    int64_t batch_at[SLOTS], batch_where[SLOTS][MOST_BOUNDED];
    int64_t depth_first;
} product;

static const po_index *index_of(const po_term *t, slot s) {
    return s == OUT ? &t->out : &t->factor[s == LEFT ? 0 : 1].at;
}

static const int64_t *dims_of(const po_sum *sum, const po_term *t, slot s) {
    return s == OUT ? sum->dims : sum->operands[t->factor[s == LEFT ? 0 : 1].operand].dims;
}

static bool has(const po_term *t, slot s, uint32_t v) {
    return po_index_has(t, index_of(t, s), v);
}

static role role_of(const po_term *t, uint32_t v) {
    if (!has(t, OUT, v))
        return DEPTH;
    bool left = has(t, LEFT, v), right = has(t, RIGHT, v);
    return left && right ? BATCH : right ? COLUMN : ROW;
}

static void sort_vars(const po_term *t, group *groups) {
    for (int r = 0; r < ROLES; r++)
        groups[r] = (group){.count = 1};
    for (uint32_t v = 0; v < t->n_vars; v++) {
        group *g = &groups[role_of(t, v)];
        g->var[g->n++] = v;
        g->count *= t->extent[v]; /* po_sum_check bounds the product of all */
    }
}

/* False where there are too many bounded axes. */
static bool make_access(const po_sum *sum, const po_term *t, slot s, access *a) {
    const int64_t *dims = dims_of(sum, t, s);
    *a = (access){.index = index_of(t, s)};
    int64_t stride = 1;
    for (uint32_t x = a->index->rank; x-- > 0; stride *= dims[x]) {
        int64_t least = a->index->base[x], most = least;
        a->base += least * stride;
        for (uint32_t v = 0; v < t->n_vars; v++) {
            int64_t c = po_index_coef(t, a->index, x, v), reach = c * (t->extent[v] - 1);
            a->step[v] += c * stride;
            least += reach < 0 ? reach : 0;
            most += reach > 0 ? reach : 0;
        }
        if (least >= 0 && most < dims[x])
            continue;
        if (a->n_bounded == MOST_BOUNDED)
            return false;
        a->axis[a->n_bounded] = x;
        a->dim[a->n_bounded++] = dims[x];
    }
    return true;
}

bool po_product_suits(const po_sum *sum, const po_term *t) {
    enum { LEAST = 1 << 14 };
    group g[ROLES];
    access a;
    if (t->n_factors != 2)
        return false;
    int64_t all = 1;
    for (uint32_t v = 0; v < t->n_vars; v++)
        if (t->extent[v] == 0 || !po_mul_i64(all, t->extent[v], &all))
            return false;
    sort_vars(t, g);
    if (all < LEAST || g[DEPTH].count < 4 || g[ROW].count < 4 || g[COLUMN].count < 4)
        return false;
    for (slot s = OUT; s < SLOTS; s++)
        if (!make_access(sum, t, s, &a))
            return false;
    return true;
}

/* What the group's value number `i` adds to the place. */
static void decode(const product *p, const group *g, const access *a, int64_t i, int64_t *at,
                   int64_t *where) {
    *at = 0;
    for (uint32_t b = 0; b < a->n_bounded; b++)
        where[b] = 0;
    for (uint32_t k = g->n; k-- > 0;) {
        uint32_t v = g->var[k];
        int64_t t = i % p->term->extent[v];
        i /= p->term->extent[v];
        *at += t * a->step[v];
        for (uint32_t b = 0; b < a->n_bounded; b++)
            where[b] += t * po_index_coef(p->term, a->index, a->axis[b], v);
    }
}

static bool goes_on(const places *w, const access *a, uint32_t first, uint32_t i) {
    if (i == first + 1)
        return true;
    if (w->at[i] - w->at[i - 1] != w->at[i - 1] - w->at[i - 2])
        return false;
    for (uint32_t b = 0; b < a->n_bounded; b++)
        if (w->where[b][i] - w->where[b][i - 1] != w->where[b][i - 1] - w->where[b][i - 2])
            return false;
    return true;
}

static void find_places(const product *p, role r, slot s, int64_t first, uint32_t n, places *w) {
    const access *a = &p->access[s];
    w->n = n;
    w->n_runs = 0;
    for (uint32_t i = 0; i < n; i++) {
        int64_t where[MOST_BOUNDED];
        decode(p, &p->group[r], a, first + i, &w->at[i], where);
        for (uint32_t b = 0; b < a->n_bounded; b++)
            w->where[b][i] = where[b];
        if (i == 0 || !goes_on(w, a, w->run[w->n_runs - 1], i))
            w->run[w->n_runs++] = i;
    }
    w->run[w->n_runs] = n;
}

/* The part [*from, *to) of a run that lies inside, the rest of the index being `rest`. */
static void inside(const access *a, const places *w, uint32_t first, uint32_t last,
                   const int64_t *rest, uint32_t *from, uint32_t *to) {
    int64_t lo = 0, hi = (int64_t)last - first - 1;
    for (uint32_t b = 0; b < a->n_bounded; b++) {
        int64_t start = w->where[b][first] + rest[b];
        int64_t step = last - first > 1 ? w->where[b][first + 1] - w->where[b][first] : 0;
        if (step == 0) {
            hi = start < 0 || start >= a->dim[b] ? -1 : hi;
            continue;
        }
        int64_t l =
            step > 0 ? po_ceil_div(-start, step) : po_ceil_div(start - a->dim[b] + 1, -step);
        int64_t h =
            step > 0 ? po_floor_div(a->dim[b] - 1 - start, step) : po_floor_div(start, -step);
        lo = l > lo ? l : lo;
        hi = h < hi ? h : hi;
    }
    *from = first + (uint32_t)(lo <= hi ? lo : 0);
    *to = first + (uint32_t)(lo <= hi ? hi + 1 : 0);
}

/* One line of a factor: all rows (or columns) of the block at one depth. */
static void read_line(const product *p, slot s, const places *w, const places *depth, uint32_t k,
                      uint32_t *line) {
    const access *a = &p->access[s];
    const uint32_t *data = p->data[s];
    int64_t rest[MOST_BOUNDED], base = a->base + p->batch_at[s] + depth->at[k];
    for (uint32_t b = 0; b < a->n_bounded; b++)
        rest[b] = a->index->base[a->axis[b]] + p->batch_where[s][b] + depth->where[b][k];
    for (uint32_t r = 0; r < w->n_runs; r++) {
        uint32_t first = w->run[r], last = w->run[r + 1], from, to;
        inside(a, w, first, last, rest, &from, &to);
        for (uint32_t i = first; i < from; i++)
            line[i] = 0;
        int64_t step = last - first > 1 ? w->at[first + 1] - w->at[first] : 0;
        if (from < to && step == 1)
            memcpy(line + from, data + base + w->at[from], (to - from) * sizeof *line);
        else
            for (uint32_t i = from; i < to; i++)
                line[i] = data[base + w->at[i]];
        for (uint32_t i = to; i < last; i++)
            line[i] = 0;
    }
}

static void fill_left(void *user, int64_t first, uint32_t rows, int64_t depth, uint32_t *line) {
    const product *p = user;
    (void)first, (void)rows;
    read_line(p, LEFT, &p->left_rows, &p->left_depth, (uint32_t)(depth - p->depth_first), line);
}

static void fill_right(void *user, int64_t first, uint32_t rows, int64_t depth, uint32_t *line) {
    const product *p = user;
    (void)first, (void)rows;
    read_line(p, RIGHT, &p->right_columns, &p->right_depth, (uint32_t)(depth - p->depth_first),
              line);
}

static void add_block(const product *p, const po_gemm *gemm, uint32_t scale, uint32_t *out) {
    const access *a = &p->access[OUT];
    const places *w = &p->out_rows;
    uint32_t stride;
    const uint32_t *result = po_gemm_result(gemm, &stride);
    for (uint32_t n = 0; n < p->out_columns.n; n++, result += stride) {
        int64_t rest[MOST_BOUNDED], base = a->base + p->batch_at[OUT] + p->out_columns.at[n];
        for (uint32_t b = 0; b < a->n_bounded; b++)
            rest[b] =
                a->index->base[a->axis[b]] + p->batch_where[OUT][b] + p->out_columns.where[b][n];
        for (uint32_t r = 0; r < w->n_runs; r++) {
            uint32_t from, to;
            inside(a, w, w->run[r], w->run[r + 1], rest, &from, &to);
            for (uint32_t i = from; i < to; i++) {
                uint32_t *at = &out[base + w->at[i]];
                uint32_t v = scale == 1 ? result[i] : po_field_mul(p->field, scale, result[i]);
                *at = po_field_add(p->field, *at, v);
            }
        }
    }
}

static uint32_t block_of(int64_t left, uint32_t most) {
    return left < most ? (uint32_t)left : most;
}

static void run_batch(product *p, po_gemm *gemm, uint32_t scale, uint32_t *out) {
    const group *g = p->group;
    for (int64_t row = 0; row < g[ROW].count; row += PO_GEMM_ROWS) {
        uint32_t rows = block_of(g[ROW].count - row, PO_GEMM_ROWS);
        find_places(p, ROW, LEFT, row, rows, &p->left_rows);
        find_places(p, ROW, OUT, row, rows, &p->out_rows);
        for (int64_t column = 0; column < g[COLUMN].count; column += PO_GEMM_COLUMNS) {
            uint32_t columns = block_of(g[COLUMN].count - column, PO_GEMM_COLUMNS);
            find_places(p, COLUMN, RIGHT, column, columns, &p->right_columns);
            find_places(p, COLUMN, OUT, column, columns, &p->out_columns);
            for (int64_t k = 0; k < g[DEPTH].count; k += PO_GEMM_DEPTH) {
                uint32_t depth = block_of(g[DEPTH].count - k, PO_GEMM_DEPTH);
                find_places(p, DEPTH, LEFT, k, depth, &p->left_depth);
                find_places(p, DEPTH, RIGHT, k, depth, &p->right_depth);
                p->depth_first = k;
                po_gemm_pack(gemm, fill_left, fill_right, p, row, rows, column, columns, k, depth);
                po_gemm_multiply(gemm, k == 0);
            }
            add_block(p, gemm, scale, out);
        }
    }
}

void po_product_run(po_arena *arena, po_field field, const po_sum *sum, const po_term *term,
                    uint32_t scale, const uint32_t *left, const uint32_t *right, uint32_t *out) {
    po_arena *scratch = po_arena_child(arena);
    product *p = PO_NEW(scratch, product);
    p->field = field;
    p->sum = sum;
    p->term = term;
    sort_vars(term, p->group);
    for (slot s = OUT; s < SLOTS; s++)
        make_access(sum, term, s, &p->access[s]);
    p->data[LEFT] = left;
    p->data[RIGHT] = right;
    po_gemm *gemm = po_gemm_create(scratch, field);
    for (int64_t i = 0; i < p->group[BATCH].count; i++) {
        for (slot s = OUT; s < SLOTS; s++)
            decode(p, &p->group[BATCH], &p->access[s], i, &p->batch_at[s], p->batch_where[s]);
        run_batch(p, gemm, scale, out);
    }
    po_arena_free(scratch);
}

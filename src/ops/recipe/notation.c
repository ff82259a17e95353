/* Recipes in index notation: moves as R/T writes them, and sums of products as Einstein did. Both
 * become the operators that recipes have anyway, so that nothing that reads recipes knows of them.
 */
#include "ops/move/rt.h"
#include "ops/recipe/recipe.h"

/* --- moves --- */

/* Digits of a bijection in the order in which the input holds them. */
static void input_order(const po_rt *rt, uint32_t *order) {
    for (uint32_t i = 0; i < rt->n; i++) {
        const po_rt_digit *d = &rt->digits[i];
        uint32_t k = i;
        for (; k; k--) {
            const po_rt_digit *e = &rt->digits[order[k - 1]];
            if (e->in_axis < d->in_axis || (e->in_axis == d->in_axis && e->in_coef > d->in_coef))
                break;
            order[k] = order[k - 1];
        }
        order[k] = i;
    }
}

/* A Transpose, where it moves anything. */
static const po_recipe *transposed(po_arena *arena, const po_recipe *a, const uint32_t *perm) {
    bool moves = false;
    for (uint32_t i = 0; i < a->rank; i++)
        moves = moves || perm[i] != i;
    return moves ? po_recipe_transpose(arena, a, perm) : a;
}

const po_recipe *po_recipe_rearrange(po_arena *arena, const po_recipe *a, const char *text,
                                     uint32_t n, const po_rt_size *sizes) {
    const po_rt *rt = po_rt_of_names(arena, text, n, sizes, a->rank, a->dims);
    if (!rt || !po_rt_is_bijection(rt))
        return NULL;
    uint32_t order[PO_RT_MAX_DIGITS], perm[PO_RT_MAX_DIGITS];
    int64_t dims[PO_RT_MAX_DIGITS];
    input_order(rt, order);
    for (uint32_t k = 0; k < rt->n; k++) {
        if (rt->digits[order[k]].in_coef < 0)
            return NULL;
        dims[k] = rt->digits[order[k]].extent;
        perm[order[k]] = k;
    }
    a = transposed(arena, po_recipe_reshape(arena, a, rt->n, dims), perm);
    return po_recipe_reshape(arena, a, rt->out_rank, rt->out_dims);
}

/* --- sums of products --- */

enum { MOST_LABELS = 26, MOST_FACTORS = 8 }; /* letters */

/* A recipe whose axes have labels: letters, each once. */
typedef struct factor {
    const po_recipe *r;
    char label[MOST_LABELS + 1];
} factor;

static bool has(const char *labels, char label) {
    return label && strchr(labels, label);
}

static void push(char *labels, char label) {
    const size_t n = strlen(labels);
    labels[n] = label;
    labels[n + 1] = 0;
}

static int64_t extent_of(const factor *f, char label) {
    return f->r->dims[strchr(f->label, label) - f->label];
}

/* Dims of these labels, at `dims`; their product. */
static int64_t extents_of(const factor *f, const char *labels, int64_t *dims) {
    int64_t all = 1;
    for (; *labels; labels++)
        all *= *dims++ = extent_of(f, *labels);
    return all;
}

/* The labels of a list that the second has, or has not, and the third. */
static void pick(char *to, const char *of, const char *b, bool in_b, const char *c, bool in_c) {
    to[0] = 0;
    for (; *of; of++)
        if (has(b, *of) == in_b && (!c || has(c, *of) == in_c))
            push(to, *of);
}

/* Three lists one after the other, into an empty one. */
static void join(char *to, const char *a, const char *b, const char *c) {
    const char *const parts[3] = {a, b, c};
    for (int i = 0; i < 3; i++)
        for (const char *l = parts[i]; *l; l++)
            push(to, *l);
}

/* With its axes in the order of these labels, all that it has. */
static const po_recipe *ordered(po_arena *arena, const factor *f, const char *labels) {
    uint32_t perm[MOST_LABELS] = {0};
    for (uint32_t i = 0; labels[i]; i++)
        perm[i] = (uint32_t)(strchr(f->label, labels[i]) - f->label);
    return transposed(arena, f->r, perm);
}

/* Summed over the labels that neither list has. */
static factor summed(po_arena *arena, const factor *f, const char *a, const char *b) {
    int64_t axes[MOST_LABELS], dims[MOST_LABELS], gone = 1;
    uint32_t n = 0;
    factor g = {.r = f->r};
    for (uint32_t i = 0; f->label[i]; i++) {
        if (has(a, f->label[i]) || has(b, f->label[i])) {
            dims[strlen(g.label)] = f->r->dims[i];
            push(g.label, f->label[i]);
        } else {
            gone *= f->r->dims[i];
            axes[n++] = i;
        }
    }
    const uint32_t rank = (uint32_t)strlen(g.label);
    if (n && gone == 1) {
        g.r = po_recipe_reshape(arena, f->r, rank, dims);
    } else if (n) {
        const po_recipe *in[2] = {f->r, po_recipe_ints(arena, n, axes)};
        const po_attr drop = {.name = "keepdims", .kind = PO_ATTR_INT, .n = 1, .u.i = 0};
        g.r = po_recipe_op(arena, &(po_recipe_spec){.op = PO_OP_ReduceSum,
                                                    .n_in = 2,
                                                    .in = in,
                                                    .n_attr = 1,
                                                    .attr = &drop,
                                                    .dtype = f->r->dtype,
                                                    .rank = rank,
                                                    .dims = dims});
    }
    return g;
}

/* One holds every axis of the other, and all of them stay. */
static factor scaled(po_arena *arena, const factor *all, const factor *by) {
    char common[MOST_LABELS + 1];
    int64_t dims[MOST_LABELS];
    factor g = *all;
    pick(common, all->label, by->label, true, NULL, false);
    for (uint32_t i = 0; all->label[i]; i++)
        dims[i] = has(by->label, all->label[i]) ? all->r->dims[i] : 1;
    g.r = po_recipe_mul(arena, all->r,
                        po_recipe_reshape(arena, ordered(arena, by, common), all->r->rank, dims));
    return g;
}

/* A product of matrices, one for each index of what both have and keep. */
static factor multiplied(po_arena *arena, const factor *a, const factor *b, const char *keep) {
    char both[MOST_LABELS + 1], rows[MOST_LABELS + 1], inner[MOST_LABELS + 1],
        columns[MOST_LABELS + 1], left[MOST_LABELS + 1] = "", right[MOST_LABELS + 1] = "";
    int64_t dims[MOST_LABELS], spare[MOST_LABELS];
    factor g = {0};
    pick(both, a->label, b->label, true, keep, true);
    pick(inner, a->label, b->label, true, keep, false);
    pick(rows, a->label, b->label, false, NULL, false);
    pick(columns, b->label, a->label, false, NULL, false);
    const uint32_t n_both = (uint32_t)strlen(both), n_rows = (uint32_t)strlen(rows),
                   n_columns = (uint32_t)strlen(columns), rank = n_both ? 3 : 2;
    const int64_t n = extents_of(a, both, dims), k = extents_of(a, inner, spare);
    const int64_t m = extents_of(a, rows, dims + n_both);
    const int64_t c = extents_of(b, columns, dims + n_both + n_rows);
    join(left, both, rows, inner);
    join(right, both, inner, columns);
    join(g.label, both, rows, columns);
    const int64_t tall[3] = {n, m, k}, wide[3] = {n, k, c};
    const po_recipe *x = ordered(arena, a, left), *y = ordered(arena, b, right);
    x = po_recipe_reshape(arena, x, rank, &tall[3 - rank]);
    y = po_recipe_reshape(arena, y, rank, &wide[3 - rank]);
    g.r =
        po_recipe_reshape(arena, po_recipe_matmul(arena, x, y), n_both + n_rows + n_columns, dims);
    return g;
}

/* The sum over what is not kept; sums run in the order of a's axes. */
static factor pair_of(po_arena *arena, const factor *a, const factor *b, const char *keep) {
    const factor x = summed(arena, a, b->label, keep), y = summed(arena, b, a->label, keep);
    bool inner = false, rows = false, columns = false;
    for (const char *l = x.label; *l; l++) {
        rows = rows || !has(y.label, *l);
        inner = inner || !has(keep, *l);
    }
    for (const char *l = y.label; *l; l++)
        columns = columns || !has(x.label, *l);
    if (inner || (rows && columns))
        return multiplied(arena, &x, &y, keep);
    return columns ? scaled(arena, &y, &x) : scaled(arena, &x, &y);
}

/* Whether labels are letters, each once; they end at `end`. */
static bool read_labels(const char *at, const char *end, char *labels) {
    labels[0] = 0;
    for (; at < end; at++) {
        if (*at < 'a' || *at > 'z' || has(labels, *at))
            return false;
        push(labels, *at);
    }
    return true;
}

/* Factors by the equation, and what it keeps; every extent fits. */
static bool read_equation(const char *equation, uint32_t n, const po_recipe *const *in, factor *f,
                          char *out) {
    const char *at = equation, *arrow = strstr(equation, "->");
    if (!arrow || n < 1 || n > MOST_FACTORS ||
        !read_labels(arrow + 2, equation + strlen(equation), out))
        return false;
    char known[MOST_LABELS + 1] = "";
    for (uint32_t i = 0; i < n; i++) {
        const char *comma = i + 1 < n ? strchr(at, ',') : arrow;
        if (!comma || comma > arrow || !read_labels(at, comma, f[i].label) ||
            strlen(f[i].label) != in[i]->rank)
            return false;
        f[i].r = in[i];
        at = comma + 1;
        for (const char *l = f[i].label; *l; l++) {
            for (uint32_t k = 0; k < i; k++)
                if (has(f[k].label, *l) && extent_of(&f[k], *l) != extent_of(&f[i], *l))
                    return false;
            if (!has(known, *l))
                push(known, *l);
        }
    }
    for (const char *l = out; *l; l++)
        if (!has(known, *l))
            return false;
    return true;
}

const po_recipe *po_recipe_einsum(po_arena *arena, const char *equation, uint32_t n,
                                  const po_recipe *const *in) {
    factor f[MOST_FACTORS];
    char out[MOST_LABELS + 1];
    if (!read_equation(equation, n, in, f, out))
        return NULL;
    factor all = f[0];
    for (uint32_t i = 1; i < n; i++) {
        char keep[MOST_LABELS + 1];
        memcpy(keep, out, strlen(out) + 1);
        for (uint32_t k = i + 1; k < n; k++)
            for (const char *l = f[k].label; *l; l++)
                if (!has(keep, *l))
                    push(keep, *l);
        all = pair_of(arena, &all, &f[i], keep);
    }
    all = summed(arena, &all, out, "");
    return ordered(arena, &all, out);
}

/* What shows through a node, by its indexed sum alone: an element of an operand shows where some
 * iteration multiplies it by what is not zero and adds that to elements of the output that show.
 *
 * Variables that do not move the operand are asked once for each place of those that do: of the
 * output every element must show, of a constant factor one must not be zero. So a convolution takes
 * one step for each element and tap, however many channels it makes. */
#include "ops/sem/sem.h"
#include "ops/sum/walk.h"
#include "verify/proof/observability.h"

/* A term, seen from one of its operands. */
typedef struct view {
    const po_observable *s;
    const po_sum *sum;
    const po_term *term;
    const po_factor *of;
    bool moves[PO_SUM_MAX_VARS]; /* the operand */
} view;

/* A tensor that the term meets beside the operand: its elements are good or not. */
typedef struct beside {
    const po_index *at;
    const int64_t *dims;
    bool every;              /* all elements that private variables lead to must be good, or one */
    const bool *shown;       /* the output's */
    const po_tensor *number; /* good: not zero, and above it under a root */
    double eps;              /* of a root; else 0 */
    bool root;
    const po_rational *table;
    uint32_t n_own, n_private;
    uint32_t own[PO_SUM_MAX_VARS], private[PO_SUM_MAX_VARS];
} beside;

static bool is_good(const beside *b, int64_t at) {
    return b->shown    ? b->shown[at]
           : b->root   ? po_tensor_f64(b->number, at) + b->eps > 0
           : b->number ? po_tensor_f64(b->number, at) != 0
           : b->table  ? b->table[at].num != 0
                       : true;
}

/* Whether no index of the term falls outside of the tensor. */
static bool stays_inside(const view *w, const beside *b) {
    for (uint32_t x = 0; x < b->at->rank; x++) {
        int64_t least = b->at->base[x], most = least;
        for (uint32_t v = 0; v < w->term->n_vars; v++) {
            int64_t reach = po_index_coef(w->term, b->at, x, v) * (w->term->extent[v] - 1);
            *(reach < 0 ? &least : &most) += reach;
        }
        if (least < 0 || most >= b->dims[x])
            return false;
    }
    return true;
}

static void sort_vars(const view *w, beside *b) {
    for (uint32_t v = 0; v < w->term->n_vars; v++) {
        if (!po_index_has(w->term, b->at, v))
            continue;
        if (w->moves[v])
            b->own[b->n_own++] = v;
        else
            b->private[b->n_private++] = v;
    }
}

/* Whether one element, or every one, is good over the private variables from `level` on. What lies
 * outside is not. */
static bool search(const view *w, const beside *b, uint32_t level, int64_t *place) {
    if (level == b->n_private) {
        int64_t at = 0;
        for (uint32_t x = 0; x < b->at->rank; x++) {
            if (place[x] < 0 || place[x] >= b->dims[x])
                return false;
            at = at * b->dims[x] + place[x];
        }
        return is_good(b, at);
    }
    const uint32_t v = b->private[level];
    bool result = b->every;
    int64_t i = 0;
    for (; i < w->term->extent[v] && result == b->every; i++) {
        result = search(w, b, level + 1, place);
        for (uint32_t x = 0; x < b->at->rank; x++)
            place[x] += po_index_coef(w->term, b->at, x, v);
    }
    for (uint32_t x = 0; x < b->at->rank; x++)
        place[x] -= i * po_index_coef(w->term, b->at, x, v);
    return result;
}

/* The answers for all values of the variables that also move the operand; NULL: too many. */
static bool *answers(const view *w, const beside *b, int64_t *dims) {
    double count = 1, steps = 1;
    for (uint32_t k = 0; k < b->n_own; k++) {
        dims[k] = w->term->extent[b->own[k]];
        count *= (double)dims[k];
    }
    for (uint32_t k = 0; k < b->n_private; k++)
        steps *= (double)w->term->extent[b->private[k]];
    if (count > PO_OBSERVABLE_ELEMENTS || count * steps > PO_OBSERVABLE_STEPS)
        return NULL;
    bool *good = PO_NEW_N(w->s->arena, bool, (int64_t)count);
    int64_t place[PO_SUM_MAX_AXES];
    for (int64_t i = 0; i < (int64_t)count; i++) {
        memcpy(place, b->at->base, b->at->rank * sizeof *place);
        int64_t rest = i;
        for (uint32_t k = b->n_own; k-- > 0; rest /= dims[k])
            for (uint32_t x = 0; x < b->at->rank; x++)
                place[x] += rest % dims[k] * po_index_coef(w->term, b->at, x, b->own[k]);
        good[i] = search(w, b, 0, place);
    }
    return good;
}

/* --- the operand's places --- */

/* A sum over the variables that move the operand: its output is the operand's mask, its factors are
 * answers. */
typedef struct places {
    po_sum *sum;
    po_term *term;
    uint32_t var[PO_SUM_MAX_VARS]; /* of the term's variables */
    const bool *good[PO_SUM_MAX_FACTORS];
    bool *mask;
} places;

static void start(const view *w, places *p) {
    const po_operand *op = &w->sum->operands[w->of->operand];
    p->sum = po_sum_create(w->s->arena, op->rank, op->dims);
    p->term = po_sum_term(p->sum, w->term->n_vars);
    for (uint32_t v = 0; v < w->term->n_vars; v++) {
        if (!w->moves[v])
            continue;
        p->var[v] = po_term_var(p->term, NULL, w->term->extent[v]);
        for (uint32_t x = 0; x < op->rank; x++)
            po_index_add(p->term, &p->term->out, x, po_index_coef(w->term, &w->of->at, x, v),
                         p->var[v]);
    }
    memcpy(p->term->out.base, w->of->at.base, op->rank * sizeof *w->of->at.base);
}

static bool add_answers(const view *w, const beside *b, places *p) {
    int64_t dims[PO_SUM_MAX_VARS];
    const uint32_t n = p->term->n_factors;
    bool *good = answers(w, b, dims);
    po_index *at =
        good ? po_term_factor(p->sum, p->term, po_sum_input(p->sum, n, b->n_own, dims)) : NULL;
    for (uint32_t k = 0; at && k < b->n_own; k++)
        po_index_add(p->term, at, k, 1, p->var[b->own[k]]);
    if (at)
        p->good[n] = good;
    return at != NULL;
}

static void mark(void *user, const po_stretch *run) {
    const places *p = user;
    for (int64_t i = 0; i < run->n; i++) {
        bool good = true;
        for (uint32_t k = 0; k < p->term->n_factors; k++)
            good &= p->good[k][run->at[k + 1] + i * run->step[k + 1]];
        if (good)
            p->mask[run->at[0] + i * run->step[0]] = true;
    }
}

/* --- terms --- */

/* Whether iterations that meet the same element of the operand and of the output differ in nothing:
 * then no two products can cancel out. Of the variables that are summed over each axis of the
 * operand may have one. */
static bool meets_once(const view *w) {
    const po_term *t = w->term;
    for (uint32_t x = 0; x < w->of->at.rank; x++) {
        uint32_t summed = 0;
        for (uint32_t v = 0; v < t->n_vars; v++)
            summed += t->extent[v] > 1 && po_index_coef(t, &w->of->at, x, v) != 0 &&
                      !po_index_has(t, &t->out, v);
        if (summed > 1)
            return false;
    }
    return true;
}

/* A factor beside the operand. *partial: private variables decide whether it is zero. False: it may
 * be zero in ways that are not followed. */
static bool read_factor(const view *w, const po_node *node, const po_factor *f, beside *b,
                        bool *partial, bool *skip) {
    const po_term *t = w->term;
    const po_operand *op = &w->sum->operands[f->operand];
    *b = (beside){.at = &f->at, .dims = op->dims};
    if (op->kind == PO_OPERAND_TABLE)
        b->table = op->table;
    else
        b->number = po_graph_constant(w->s->graph, node->in[op->input]);
    b->root = b->number && op->kind == PO_OPERAND_RSQRT;
    b->eps = op->eps;
    if (b->number && po_dtype_class_of(b->number->dtype) != PO_CLASS_FLOAT)
        return false;
    sort_vars(w, b);
    const bool constant = b->number || b->table;
    *skip = !constant && stays_inside(w, b);
    for (uint32_t k = 0; constant && k < b->n_private; k++)
        if (t->extent[b->private[k]] > 1 && !po_index_has(t, &t->out, b->private[k]))
            return false; /* numbers are added up, to zero perhaps */
    *partial = !*skip && b->n_private > 0;
    return true;
}

static void show_operand(const po_observable *s, const po_node *node, const po_sum *sum,
                         const po_term *t, uint32_t factor, const bool *shown, bool all) {
    const po_operand *op = &sum->operands[t->factor[factor].operand];
    view w = {.s = s, .sum = sum, .term = t, .of = &t->factor[factor]};
    places p = {.mask = op->kind == PO_OPERAND_TABLE ? NULL
                                                     : po_observable_mask(s, node->in[op->input])};
    double steps = 1;
    for (uint32_t v = 0; v < t->n_vars; v++) {
        w.moves[v] = po_index_has(t, &w.of->at, v);
        steps *= w.moves[v] ? (double)t->extent[v] : 1;
        if (t->extent[v] == 0)
            return;
    }
    if (!p.mask || steps > PO_OBSERVABLE_STEPS ||
        op->count != po_observable_count(s, node->in[op->input]) || !meets_once(&w))
        return;
    start(&w, &p);
    beside out = {.at = &t->out, .dims = sum->dims, .every = true, .shown = shown};
    sort_vars(&w, &out);
    if (!(all && stays_inside(&w, &out)) && !add_answers(&w, &out, &p))
        return;
    uint32_t n_partial = 0;
    for (uint32_t k = 0; k < t->n_factors; k++) {
        beside b;
        bool partial, skip;
        if (k == factor)
            continue;
        if (!read_factor(&w, node, &t->factor[k], &b, &partial, &skip))
            return;
        n_partial += partial;
        /* Two of them might be zero by turns. */
        if (n_partial > 1 || (!skip && !add_answers(&w, &b, &p)))
            return;
    }
    if (po_sum_check(p.sum))
        po_walk_run(po_walk_create(s->arena, p.sum, p.term, false), NULL, mark, &p);
}

po_status po_observable_by_sum(po_observable *s, const po_node *node) {
    po_sum **sums = PO_NEW_N(s->arena, po_sum *, node->n_out);
    PO_TRY(po_sem_of(s->ctx, s->arena, s->graph, node, sums));
    for (uint32_t o = 0; o < node->n_out; o++) {
        const bool *shown = node->out[o] == PO_NONE ? NULL : s->mask[node->out[o]];
        const po_sum *sum = sums[o];
        if (!shown || !sum || sum->count != po_observable_count(s, node->out[o]))
            continue;
        const bool all = po_observable_all(s, node->out[o]);
        for (uint32_t i = 0; i < sum->n_terms; i++)
            for (uint32_t k = 0; sum->terms[i].scale.num && k < sum->terms[i].n_factors; k++)
                show_operand(s, node, sum, &sum->terms[i], k, shown, all);
    }
    return PO_OK;
}

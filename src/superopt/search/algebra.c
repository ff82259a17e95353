/* Programs without loops: how each part of the target can be made from smaller parts, and the
 * cheapest ways to make it all. */
#include "mugraph/field.h"
#include "superopt/search/internal.h"

#include <math.h>
#include <stdlib.h>

typedef struct way {
    search_kind kind;
    po_mu_function function;
    uint32_t arg[3], class;
    double cost;
} way;

typedef struct ways {
    way *list;
    uint32_t n, cap;
    double least; /* no program that makes it costs less */
    double tree;  /* what one costs that makes nothing for two uses */
} ways;

static const double dead = 1e300; /* the cost of what cannot be made */

enum { MOST_FORMS = 3000, SIEVE = 1 << 18 };

typedef struct algebra {
    const search_problem *p;
    const po_search_options *options;
    po_search_counts *counts;
    po_closure c;
    uint32_t *index; /* by form; PO_NONE */
    uint32_t n_index;
    ways *ways;
    uint64_t *value, *inverse; /* by index, of forms at one point */
    uint64_t *sieve;           /* bits: what the values' low bits may be; NULL: anything */
    /* The prefix under way. */
    uint32_t *need;     /* how many of the chosen ways use it */
    const way **chosen; /* by index */
    uint64_t budget;
    double best;
    uint32_t most, n;
    search_skeleton *out;
} algebra;

double search_elements(const search_problem *p, uint64_t labels) {
    double n = 1;
    for (uint32_t c = 0; c < p->n_classes; c++)
        n *= labels >> c & 1 ? (double)p->extent[c] : 1;
    return n;
}

static uint32_t index_of(const algebra *a, uint32_t form) {
    return form < a->n_index ? a->index[form] : PO_NONE;
}

/* A product or sum is one operation of many that run together; other functions are not. */
static double cost_of(const algebra *a, const way *w, uint32_t to) {
    const po_forms *f = a->p->plain;
    if (w->kind == SEARCH_SUM || w->kind == SEARCH_MAXIMUM)
        return search_elements(a->p, po_form_labels(f, a->c.forms[w->arg[0]]));
    static const double flops[PO_MU_FUNCTIONS] = {
#define PO_MU_FUNCTION(id, name, arity, number, what) [PO_MU_##id] = number,
#include "mugraph/functions.def"
#undef PO_MU_FUNCTION
    };
    double n = search_elements(a->p, po_form_labels(f, a->c.forms[to]));
    return n * (w->function == PO_MU_TIMES ? 1 : 2 * flops[w->function]);
}

static void add_way(algebra *a, uint32_t form, way w) {
    uint32_t to = index_of(a, form);
    a->counts->states++;
    if (to == PO_NONE) {
        a->counts->by_form++;
        return;
    }
    uint32_t arity = w.kind == SEARCH_FUNCTION ? po_mu_arity(w.function) : 1;
    for (uint32_t i = 0; i < arity; i++)
        if (w.arg[i] >= to || po_form_size(a->p->plain, a->c.forms[w.arg[i]]) >=
                                  po_form_size(a->p->plain, a->c.forms[to])) {
            a->counts->by_form++; /* would not come to an end */
            return;
        }
    w.cost = cost_of(a, &w, to);
    ways *all = &a->ways[to];
    PO_PUSH(a->p->arena, all->list, all->n, all->cap, w);
}

static void unary(algebra *a, uint32_t i) {
    po_forms *f = a->p->plain;
    uint32_t form = a->c.forms[i], args[3];
    po_mu_function function;
    if (po_form_is_function(f, form, &function, args)) {
        way w = {.kind = SEARCH_FUNCTION, .function = function};
        bool all = true;
        for (uint32_t k = 0; k < po_mu_arity(function); k++) {
            w.arg[k] = index_of(a, args[k]);
            all &= w.arg[k] != PO_NONE;
        }
        if (all)
            add_way(a, form, w);
    }
    add_way(a, po_form_apply(f, PO_MU_NEGATE, &form),
            (way){.kind = SEARCH_FUNCTION, .function = PO_MU_NEGATE, .arg = {i, 0, 0}});
    for (uint32_t c = 0; c < a->p->n_classes; c++) {
        if (!(po_form_labels(f, form) >> c & 1))
            continue;
        add_way(a, po_form_sum(f, form, c),
                (way){.kind = SEARCH_SUM, .arg = {i, 0, 0}, .class = c});
        add_way(a, po_form_maximum(f, form, c),
                (way){.kind = SEARCH_MAXIMUM, .arg = {i, 0, 0}, .class = c});
    }
}

/* Most pairs make nothing that is wanted: their values tell so. */
static void make_sieve(algebra *a) {
    po_form_values *values = po_form_values_create(a->p->arena, a->p->plain);
    a->value = PO_NEW_N(a->p->arena, uint64_t, a->c.n);
    a->inverse = PO_NEW_N(a->p->arena, uint64_t, a->c.n);
    a->sieve = PO_NEW_N(a->p->arena, uint64_t, SIEVE / 64);
    for (uint32_t i = 0; i < a->c.n; i++) {
        if (!po_form_value(values, a->c.forms[i], &a->value[i])) {
            a->sieve = NULL;
            return;
        }
        a->inverse[i] = po_mu_field_inverse(PO_MU_FIELD_P, a->value[i]);
        a->sieve[a->value[i] % SIEVE / 64] |= (uint64_t)1 << a->value[i] % 64;
    }
}

static bool may_be_wanted(const algebra *a, uint32_t i, uint32_t k, po_mu_function function) {
    const po_mu_field p = PO_MU_FIELD_P;
    uint64_t x = a->value[i], y = a->value[k];
    uint64_t v = function == PO_MU_TIMES  ? po_mu_field_mul(p, x, y)
                 : function == PO_MU_PLUS ? po_mu_field_add(p, x, y)
                 : function == PO_MU_OVER ? po_mu_field_mul(p, x, a->inverse[k])
                                          : po_mu_field_sub(p, x, y);
    return a->sieve[v % SIEVE / 64] >> v % 64 & 1;
}

static void binary(algebra *a, uint32_t i, uint32_t k, uint32_t most) {
    static const po_mu_function functions[] = {PO_MU_TIMES, PO_MU_PLUS, PO_MU_MINUS, PO_MU_OVER};
    po_forms *f = a->p->plain;
    uint32_t x[2] = {a->c.forms[i], a->c.forms[k]};
    double number;
    if (po_form_size(f, x[0]) + po_form_size(f, x[1]) > most + 2)
        return;
    for (uint32_t n = 0; n < 4; n++) {
        if (n == 0 && ((po_form_is_number(f, x[0], &number) && number == -1) ||
                       (po_form_is_number(f, x[1], &number) && number == -1)))
            continue;
        if ((i > k && n < 2) || (n == 3 && po_form_is_number(f, x[1], &number)))
            continue;
        if (a->sieve && !may_be_wanted(a, i, k, functions[n])) {
            a->counts->states++;
            a->counts->by_form++;
            continue;
        }
        add_way(a, po_form_apply(f, functions[n], x),
                (way){.kind = SEARCH_FUNCTION, .function = functions[n], .arg = {i, k, 0}});
    }
}

/* What it costs where nothing is used twice, an operation counting a little by itself. */
static double tree_of(const algebra *a, const way *w) {
    double cost = w->cost + 1;
    uint32_t arity = w->kind == SEARCH_FUNCTION ? po_mu_arity(w->function) : 1;
    for (uint32_t i = 0; i < arity; i++)
        cost += a->ways[w->arg[i]].tree;
    return cost;
}

static void find_ways(algebra *a) {
    const po_forms *f = a->p->plain;
    uint32_t n = a->c.n, most = po_form_size(f, a->c.forms[n - 1]);
    make_sieve(a);
    for (uint32_t i = 0; i < n; i++)
        unary(a, i);
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t k = 0; k < n; k++)
            binary(a, i, k, most);
    for (uint32_t i = 0; i < n; i++) {
        ways *w = &a->ways[i];
        double number;
        uint32_t tensor;
        if (po_form_is_number(f, a->c.forms[i], &number) ||
            po_form_is_leaf(f, a->c.forms[i], &tensor)) {
            w->n = 0;
            continue;
        }
        for (uint32_t k = 1; k < w->n; k++) { /* the cheapest first */
            way one = w->list[k];
            uint32_t at = k;
            for (; at > 0 && tree_of(a, &one) < tree_of(a, &w->list[at - 1]); at--)
                w->list[at] = w->list[at - 1];
            w->list[at] = one;
        }
        w->least = dead;
        w->tree = w->n ? tree_of(a, &w->list[0]) : dead;
        for (uint32_t k = 0; k < w->n; k++) {
            double least = 0;
            uint32_t arity =
                w->list[k].kind == SEARCH_FUNCTION ? po_mu_arity(w->list[k].function) : 1;
            for (uint32_t j = 0; j < arity; j++)
                if (a->ways[w->list[k].arg[j]].least > least)
                    least = a->ways[w->list[k].arg[j]].least;
            if (least < dead && w->list[k].cost + least < w->least)
                w->least = w->list[k].cost + least;
        }
    }
}

/* --- programs --- */

/* The operations and their shapes, in any order: programs that differ only in the order of equal
 * operations are one. */
static po_hash shape_of(const search_skeleton *s) {
    po_hash sum = {0, 0};
    for (uint32_t i = 0; i < s->n; i++) {
        const search_node *n = &s->node[i];
        po_hash one = po_hash_u64(po_hash_u64((po_hash){0, 0}, (uint64_t)n->kind), n->function);
        one = po_hash_u64(po_hash_u64(one, n->labels),
                          n->kind == SEARCH_SUM || n->kind == SEARCH_MAXIMUM ? n->class : 0);
        uint64_t args = 0;
        for (uint32_t k = 0; k < search_arity(n); k++)
            args += 1 + s->node[n->arg[k]].labels;
        one = po_hash_u64(one, args);
        sum.lo += one.lo;
        sum.hi += one.hi;
    }
    return sum;
}

/* Whether a sign is turned that another operation has: a + -b is a - b. */
static bool turns_a_sign(const search_skeleton *s) {
    for (uint32_t i = 0; i < s->n; i++) {
        const search_node *n = &s->node[i];
        if (n->kind != SEARCH_FUNCTION)
            continue;
        for (uint32_t k = 0; k < search_arity(n); k++) {
            const search_node *x = &s->node[n->arg[k]];
            if ((n->function == PO_MU_PLUS && x->kind == SEARCH_FUNCTION &&
                 x->function == PO_MU_NEGATE) ||
                (n->function == PO_MU_NEGATE && x->kind == SEARCH_NUMBER))
                return true;
        }
    }
    return false;
}

static void keep(algebra *a, double cost) {
    if (a->n == a->most && cost >= a->out[a->n - 1].cost)
        return;
    search_skeleton s = {.cost = cost};
    uint32_t at[MOST_FORMS];
    for (uint32_t i = 0; i < a->c.n; i++) {
        const way *w = a->chosen[i];
        double number = 0;
        uint32_t tensor = 0;
        if (!a->need[i])
            continue;
        if (s.n == SEARCH_NODES)
            return;
        search_node *n = &s.node[s.n];
        *n = (search_node){.form = a->c.forms[i],
                           .labels = po_form_labels(a->p->plain, a->c.forms[i])};
        if (!w) {
            bool is_number = po_form_is_number(a->p->plain, n->form, &number);
            if (!is_number)
                po_form_is_leaf(a->p->plain, n->form, &tensor);
            n->kind = is_number ? SEARCH_NUMBER : SEARCH_LEAF;
            n->value = number;
            n->tensor = tensor;
        } else {
            n->kind = w->kind;
            n->function = w->function;
            n->class = w->class;
            for (uint32_t k = 0; k < search_arity(n); k++)
                n->arg[k] = at[w->arg[k]];
        }
        at[i] = s.n++;
    }
    if (turns_a_sign(&s))
        return;
    s.shape = shape_of(&s);
    for (uint32_t i = 0; i < a->n; i++)
        if (po_hash_equal(a->out[i].shape, s.shape)) {
            if (cost >= a->out[i].cost)
                return;
            for (a->n--; i < a->n; i++)
                a->out[i] = a->out[i + 1];
        }
    uint32_t k = a->n < a->most ? a->n++ : a->n - 1;
    for (; k > 0 && cost < a->out[k - 1].cost; k--)
        a->out[k] = a->out[k - 1];
    a->out[k] = s;
    if (cost < a->best)
        a->best = cost;
}

/* Programs this much dearer than the cheapest may still be better scheduled. */
static const double slack = 1.3;

/* Makes what is needed at `i` and below; `n` nodes so far. */
static void make(algebra *a, uint32_t i, uint32_t n, double cost) {
    while (a->need[i] == 0 || a->ways[i].n == 0) { /* not needed, a tensor or a number */
        if (i == 0) {
            keep(a, cost);
            return;
        }
        i--;
    }
    const ways *w = &a->ways[i];
    for (uint32_t k = 0; k < w->n && a->budget > 0; k++) {
        const way *x = &w->list[k];
        uint32_t arity = x->kind == SEARCH_FUNCTION ? po_mu_arity(x->function) : 1;
        double least = 0, limit = a->best * slack;
        a->budget--;
        a->counts->states++;
        if (a->budget % SEARCH_POLL == 0 && po_ctx_poll(a->p->ctx) != PO_OK)
            a->budget = 0; /* po_search asks again */
        for (uint32_t j = 0; j < arity; j++)
            if (!a->need[x->arg[j]] && a->ways[x->arg[j]].least > least)
                least = a->ways[x->arg[j]].least;
        if (a->n == a->most && a->out[a->n - 1].cost < limit)
            limit = a->out[a->n - 1].cost;
        if (least >= dead || cost + x->cost + least > limit || n + 1 > SEARCH_NODES - 8) {
            a->counts->by_bound++;
            continue;
        }
        a->chosen[i] = x;
        for (uint32_t j = 0; j < arity; j++)
            a->need[x->arg[j]]++;
        if (i == 0)
            keep(a, cost + x->cost);
        else
            make(a, i - 1, n + 1, cost + x->cost);
        for (uint32_t j = 0; j < arity; j++)
            a->need[x->arg[j]]--;
        a->chosen[i] = NULL;
    }
}

uint32_t search_algebra(const search_problem *p, const po_search_options *options,
                        po_search_counts *counts, search_skeleton *skeletons, uint32_t most) {
    algebra a = {.p = p, .options = options, .counts = counts, .out = skeletons, .most = most};
    bool full;
    po_form_close(p->plain, p->arena, p->plain_target, MOST_FORMS, &a.c, &full);
    counts->forms = a.c.n;
    if (a.c.n == 0) /* what is always 0 has no form */
        return 0;
    a.n_index = po_forms_count(p->plain);
    a.index = PO_NEW_N(p->arena, uint32_t, a.n_index);
    a.ways = PO_NEW_N(p->arena, ways, a.c.n);
    a.need = PO_NEW_N(p->arena, uint32_t, a.c.n);
    a.chosen = PO_NEW_N(p->arena, const way *, a.c.n);
    for (uint32_t i = 0; i < a.n_index; i++)
        a.index[i] = PO_NONE;
    for (uint32_t i = 0; i < a.c.n; i++)
        a.index[a.c.forms[i]] = i;
    find_ways(&a);
    a.budget = options->algebra;
    a.best = dead;
    uint32_t target = index_of(&a, p->plain_target);
    a.need[target] = 1;
    if (a.ways[target].n)
        make(&a, target, 1, 0);
    for (uint32_t i = 0; i < a.n; i++)
        search_find_shifts(p, &skeletons[i]);
    counts->skeletons = a.n;
    return a.n;
}

bool search_is_fraction(const search_problem *p, const search_node *n, double *over,
                        double *under) {
    enum { MOST = 1 << 12 };
    po_rational r;
    if (n->kind != SEARCH_NUMBER || n->form == PO_NONE ||
        !po_form_is_rational(p->plain, n->form, &r) || r.den >= MOST ||
        llabs((long long)r.num) > INT32_MAX || po_form_number(p->plain, n->value) == n->form)
        return false;
    *over = (double)r.num;
    *under = (double)r.den;
    return *over / *under == n->value;
}

bool search_is_product(const search_problem *p, const search_node *n, double *a, double *b) {
    if (n->kind != SEARCH_NUMBER || n->form == PO_NONE ||
        po_form_number(p->plain, n->value) == n->form)
        return false;
    for (uint32_t i = 0; i < p->n_numbers; i++)
        for (uint32_t k = i; k < p->n_numbers; k++) {
            const uint32_t x = po_form_number(p->plain, p->number[i]),
                           y = po_form_number(p->plain, p->number[k]);
            *a = p->number[i];
            *b = p->number[k];
            if (x != PO_NONE && y != PO_NONE && po_form_multiply(p->plain, x, y) == n->form)
                return true;
        }
    return false;
}

uint32_t search_node_form(const search_problem *p, const search_node *n, const uint32_t *form) {
    uint32_t x[3], classes[PO_MU_MAX_RANK], rank = 0;
    for (uint32_t k = 0; k < search_arity(n); k++)
        x[k] = form[n->arg[k]];
    switch (n->kind) {
    case SEARCH_LEAF:
        for (uint32_t a = 0; a < p->naive->tensors[n->tensor].rank; a++)
            if (p->axes[n->tensor][a] != PO_NONE)
                classes[rank++] = p->axes[n->tensor][a];
        return po_form_leaf(p->exact, n->tensor, rank, classes);
    case SEARCH_NUMBER: {
        double over, under;
        if (search_is_product(p, n, &over, &under))
            return po_form_multiply(p->exact, po_form_number(p->exact, over),
                                    po_form_number(p->exact, under));
        if (search_is_fraction(p, n, &over, &under))
            return po_form_divide(p->exact, po_form_number(p->exact, over),
                                  po_form_number(p->exact, under));
        return po_form_number(p->exact, n->value);
    }
    case SEARCH_FUNCTION:
        return po_form_apply(p->exact, n->function, x);
    case SEARCH_SUM:
        return po_form_sum(p->exact, x[0], n->class);
    case SEARCH_MAXIMUM:
        return po_form_maximum(p->exact, x[0], n->class);
    }
    return PO_NONE;
}

uint32_t search_exact_form(const search_problem *p, const search_skeleton *s) {
    uint32_t form[SEARCH_NODES];
    for (uint32_t i = 0; i < s->n; i++)
        form[i] = search_node_form(p, &s->node[i], form);
    return form[s->n - 1];
}

static void tell_node(const search_problem *p, const search_skeleton *s, uint32_t i,
                      const uint32_t *uses, po_text *text, bool top) {
    static const char *const names[PO_MU_FUNCTIONS] = {
#define PO_MU_FUNCTION(id, name, arity, number, what) [PO_MU_##id] = name,
#include "mugraph/functions.def"
#undef PO_MU_FUNCTION
    };
    const search_node *n = &s->node[i];
    if (n->kind == SEARCH_LEAF) {
        po_text_puts(text, p->naive->tensors[n->tensor].name);
        return;
    }
    if (n->kind == SEARCH_NUMBER) {
        po_text_printf(text, "%.7g", n->value);
        return;
    }
    if (!top && uses[i] > 1) {
        po_text_printf(text, "n%u", i);
        return;
    }
    bool infix = n->kind == SEARCH_FUNCTION && search_arity(n) == 2 && n->function <= PO_MU_OVER;
    if (infix) {
        po_text_puts(text, "(");
        tell_node(p, s, n->arg[0], uses, text, false);
        po_text_printf(text, " %s ", names[n->function]);
        tell_node(p, s, n->arg[1], uses, text, false);
        po_text_puts(text, ")");
        return;
    }
    if (n->kind == SEARCH_FUNCTION)
        po_text_puts(text, names[n->function]);
    else
        po_text_printf(text, "%s_%s", n->kind == SEARCH_SUM ? "sum" : "max", p->name[n->class]);
    po_text_puts(text, "(");
    for (uint32_t k = 0; k < search_arity(n); k++) {
        po_text_puts(text, k ? ", " : "");
        tell_node(p, s, n->arg[k], uses, text, false);
    }
    po_text_puts(text, ")");
}

void search_tell_skeleton(const search_problem *p, const search_skeleton *s, po_text *text) {
    uint32_t uses[SEARCH_NODES] = {0};
    for (uint32_t i = 0; i < s->n; i++)
        for (uint32_t k = 0; k < search_arity(&s->node[i]); k++)
            uses[s->node[i].arg[k]]++;
    for (uint32_t i = 0; i < s->n; i++) {
        bool inner = s->node[i].kind != SEARCH_LEAF && s->node[i].kind != SEARCH_NUMBER;
        if (i + 1 < s->n && !(inner && uses[i] > 1))
            continue;
        if (i + 1 < s->n)
            po_text_printf(text, "n%u = ", i);
        tell_node(p, s, i, uses, text, true);
        po_text_puts(text, i + 1 < s->n ? "; " : "");
    }
}

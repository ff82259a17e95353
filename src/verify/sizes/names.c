/* Names for open dims, and lengths for these. */
#include "verify/sizes/names.h"

#include "ir/size.h"
#include "verify/inputs/internal.h"

/* --- names --- */

static uint32_t add_name(po_names *n, const char *name) {
    uint32_t k = po_map_get(n->at, name);
    if (k != PO_NONE)
        return k;
    uint32_t cap = n->cap;
    PO_PUSH(n->arena, n->tried, n->n, cap, -1);
    n->n--;
    PO_PUSH(n->arena, n->name, n->n, n->cap, name);
    po_map_put(n->at, name, n->n - 1);
    return n->n - 1;
}

/* A plain word: what stands in expressions. */
static bool is_word(po_arena *arena, const char *symbol) {
    return po_size_plus(arena, (po_dim){-1, symbol}, 1).symbol != NULL;
}

static const char *word_for(const po_names *n, uint32_t input, uint32_t axis) {
    return po_arena_printf(n->arena, "open_%u_%u", input, axis);
}

/* --- names of at least 1 --- */

static po_dim positive_name(void *user, const char *name) {
    const po_names *n = user;
    const bool word = !strpbrk(name, "(*");
    return word ? (po_dim){-1, po_arena_printf(n->arena, "%s" PO_SIZE_POSITIVE, name)}
                : PO_DIM_UNKNOWN;
}

static po_dim renamed(po_names *n, po_dim d) {
    return po_size_renamed(n->arena, d, positive_name, n);
}

/* --- dims of inputs --- */

/* What a model writes is an expression where it reads as one ("past + 1"), else a name. */
static po_dim dim_for(po_names *n, const po_graph *graph, uint32_t input, uint32_t axis) {
    const po_type *t = &graph->values[graph->inputs[input]].type;
    const char *symbol = t->dims[axis].symbol;
    const po_input in = {.name = graph->values[graph->inputs[input]].name, .type = *t};
    po_dim d = {-1, symbol};
    if (symbol && !po_size_made(symbol) && !is_word(n->arena, symbol))
        d = po_size_written(n->arena, symbol);
    if (!d.symbol)
        d = (po_dim){-1, word_for(n, input, axis)};
    if (n->positive)
        d = renamed(n, d);
    n->has_space |= po_input_class(&in, axis) == PO_DIM_SPACE;
    if (n->spaced > 1 && po_input_class(&in, axis) == PO_DIM_SPACE && !po_size_made(d.symbol))
        d = po_size_times(n->arena, d, n->spaced);
    return d;
}

static bool note_name(void *user, const char *name, int64_t *length) {
    add_name(user, name);
    *length = 1;
    return true;
}

/* A dim of an input, by what it is called there; the same names are the same dim. */
static po_dim given_dim(po_names *n, const po_graph *graph, uint32_t input, uint32_t axis) {
    const po_dim own = graph->values[graph->inputs[input]].type.dims[axis];
    if (own.value >= 0)
        return own;
    const char *key = own.symbol ? own.symbol : word_for(n, input, axis);
    uint32_t k = po_map_get(n->given, key);
    if (k == PO_NONE) {
        po_dim d = dim_for(n, graph, input, axis);
        int64_t value;
        for (uint32_t i = 0; own.symbol && i < n->plan->n_relations; i++)
            if (strcmp(n->plan->relation[i].symbol, own.symbol) == 0)
                d = n->positive ? renamed(n, n->plan->relation[i].is) : n->plan->relation[i].is;
        po_size_at(n->arena, d, note_name, n, &value);
        PO_PUSH(n->arena, n->dims, n->n_dims, n->cap_dims, d);
        k = n->n_dims - 1;
        po_map_put(n->given, key, k);
    }
    return n->dims[k];
}

static bool tried_length(void *user, const char *name, int64_t *length) {
    const po_names *n = user;
    const uint32_t k = po_map_get(n->at, name);
    *length = k == PO_NONE ? -1 : n->tried[k];
    return *length >= 0;
}

int64_t po_names_tried(const po_names *names, po_dim dim) {
    int64_t value;
    if (dim.value >= 0)
        return dim.value;
    return po_size_at(names->arena, dim, tried_length, (void *)(uintptr_t)names, &value) ? value
                                                                                         : -1;
}

static bool is_dense(const po_type *t) {
    return t->kind == PO_TYPE_TENSOR && t->has_rank;
}

/* Long enough for windows to lie within, and for sums to have several places; at least as long as
 * what the model takes. */
static int64_t roomy(const po_names *n, const po_input *in, uint32_t axis) {
    static const int64_t usual[] = {
        [PO_DIM_BATCH] = 2, [PO_DIM_CHANNELS] = 3, [PO_DIM_SPACE] = 288, [PO_DIM_SEQUENCE] = 33};
    const po_dim_class c = po_input_class(in, axis);
    const int64_t taken = po_inputs_length(n->plan, in->name, axis, n->size);
    int64_t least = usual[c];
    if (c == PO_DIM_SPACE && axis + 1 == in->type.rank)
        least += 32; /* so that width and height are not mixed up unseen */
    return taken > least ? taken : least;
}

/* The name alone, or so many times it: then its length follows. */
static void learn_length(po_names *n, po_dim d, int64_t length) {
    for (uint32_t i = 0; i < n->n; i++) {
        const int64_t times = po_size_divide(n->arena, d, (po_dim){-1, n->name[i]}).value;
        if (n->tried[i] < 0 && times > 0)
            n->tried[i] = (length + times - 1) / times;
    }
}

bool po_names_find(po_names *n, const po_graph *g) {
    n->at = po_map_create(n->arena);
    n->given = po_map_create(n->arena);
    for (uint32_t k = 0; k < g->n_inputs; k++) {
        const po_value *v = &g->values[g->inputs[k]];
        const po_input in = {.name = v->name, .type = v->type};
        for (uint32_t x = 0; is_dense(&v->type) && x < v->type.rank; x++) {
            const po_dim d = given_dim(n, g, k, x);
            if (d.value < 0)
                learn_length(n, d, roomy(n, &in, x));
        }
    }
    /* In expressions alone. */
    for (uint32_t i = 0; i < n->n; i++)
        n->tried[i] = n->tried[i] < 0 ? 33 : n->tried[i];
    return n->n > 0;
}

/* --- lengths that nothing else has --- */

static bool is_prime(int64_t n) {
    for (int64_t d = 2; d * d <= n; d++)
        if (n % d == 0)
            return false;
    return n > 1;
}

/* How many bits lengths have, in turn: as large as products of all of them allow, so that no bound
 * or table of a model matters; smaller where a table ends the model before. */
static uint32_t bits_of(const po_names *n, uint32_t turn) {
    const uint32_t most = n->n <= 2 ? 17 : n->n == 3 ? 13 : n->n <= 5 ? 10 : 8;
    return turn == 0 ? most : turn == 1 ? 8 : turn == 2 ? 6 : 5;
}

/* No dim of a model is a multiple of it. */
static bool is_apart(const po_names *n, int64_t p) {
    for (uint32_t i = 0; i < n->n_fixed; i++)
        if (n->fixed[i] % p == 0)
            return false;
    return true;
}

/* A prime, and a multiple of 12 or, where lengths must be small, of 6: what strides leave of the
 * two differs, and so does what padding makes of them. */
static int64_t large_length(const po_names *n, uint32_t turn, uint32_t name, uint32_t which) {
    const int64_t from = (int64_t)1 << bits_of(n, turn);
    const int64_t times = which == 0 ? 1 : from < 64 ? 6 : 12;
    int64_t p = times == 1 ? from : from / 8;
    for (uint32_t skip = name + 1; skip > 0;)
        if (is_prime(++p) && p > 3 && is_apart(n, p * times))
            skip--;
    return p * times;
}

typedef struct numbering {
    po_names *names;
    const po_graph *original;
    uint32_t which, turn;
    bool numbers;
} numbering;

static bool numbered(void *user, const char *name, int64_t *length) {
    const numbering *u = user;
    const uint32_t k = po_map_get(u->names->at, name);
    if (k == PO_NONE)
        return false;
    *length = u->which < PO_MAKEUP_SIZES - 1 ? large_length(u->names, u->turn, k, u->which)
                                             : u->names->tried[k];
    return *length >= 0;
}

/* By the original's input of that name. */
static po_dim sized_dim(void *user, po_graph *graph, po_value_id input, uint32_t axis) {
    const numbering *u = user;
    const po_dim own = graph->values[input].type.dims[axis];
    const po_graph *o = u->original;
    for (uint32_t k = 0; k < o->n_inputs; k++) {
        const po_value *v = &o->values[o->inputs[k]];
        if (strcmp(v->name, graph->values[input].name) != 0 || !is_dense(&v->type) ||
            axis >= v->type.rank)
            continue;
        const po_dim d = given_dim(u->names, o, k, axis);
        int64_t value;
        if (!u->numbers || d.value >= 0)
            return d;
        return po_size_at(u->names->arena, d, numbered, user, &value) ? PO_DIM(value) : own;
    }
    return own;
}

/* Lengths above 1 of what nodes make and of constants. */
static void note_fixed(po_names *n, const po_graph *g) {
    for (po_value_id v = 0; v < g->n_values; v++) {
        const po_type *t = &g->values[v].type;
        for (uint32_t x = 0; is_dense(t) && x < t->rank; x++) {
            bool known = t->dims[x].value < 2;
            for (uint32_t i = 0; i < n->n_fixed && !known; i++)
                known = n->fixed[i] == t->dims[x].value;
            if (!known)
                PO_PUSH(n->arena, n->fixed, n->n_fixed, n->cap_fixed, t->dims[x].value);
        }
    }
}

static uint32_t count_static(const po_graph *g) {
    uint32_t n = 0;
    for (po_value_id v = 0; v < g->n_values; v++)
        n += po_type_static(&g->values[v].type);
    return n;
}

/* Integers that follow from lengths are constants then. */
static void hold_numbers(po_ctx *ctx, po_graph *g) {
    for (po_value_id v = 0; v < g->n_values; v++) {
        po_value *value = &g->values[v];
        const po_partial *p = value->type.rank <= 1 ? value->partial : NULL;
        if (!p || value->constant || value->is_input || value->type.dtype == PO_DT_NONE)
            continue;
        int64_t count = p->n, *items = PO_NEW_N(g->arena, int64_t, count);
        bool known = true;
        for (uint32_t i = 0; i < p->n; i++)
            known &= po_size_number(p->items[i], &items[i]);
        const po_array a = {.dtype = value->type.dtype,
                            .rank = value->type.rank,
                            .count = count,
                            .dims = &count,
                            .i = items};
        po_tensor *t;
        if (known && po_array_to_tensor(ctx, g->arena, &a, &t) == PO_OK)
            value->constant = t;
    }
}

static po_graph *with_numbers(po_ctx *ctx, const po_graph *graph, numbering *u, uint32_t which) {
    u->which = which;
    po_graph *g = po_infer_with_dims(ctx, graph, sized_dim, u);
    hold_numbers(ctx, g);
    return g;
}

void po_sized_make(po_ctx *ctx, po_names *names, const po_graph *original,
                   const po_graph *const graph[2], po_sized sized[2]) {
    enum { TURNS = 4, LARGE = PO_MAKEUP_SIZES - 1 };
    numbering u = {.names = names, .original = original};
    for (int k = 0; k < 2; k++) {
        sized[k].open = po_infer_with_dims(ctx, graph[k], sized_dim, &u);
        note_fixed(names, sized[k].open);
    }
    u.numbers = true;
    for (int k = 0; k < 2; k++)
        sized[k].at[LARGE] = with_numbers(ctx, graph[k], &u, LARGE);
    /* The largest at which as much is known as there, or the most. */
    const uint32_t all =
        LARGE * (count_static(sized[0].at[LARGE]) + count_static(sized[1].at[LARGE]));
    uint32_t most = 0;
    for (u.turn = 0; u.turn < TURNS && most < all; u.turn++) {
        po_graph *at[2][LARGE];
        uint32_t known = 0;
        for (int k = 0; k < 2; k++)
            for (uint32_t which = 0; which < LARGE; which++) {
                at[k][which] = with_numbers(ctx, graph[k], &u, which);
                known += count_static(at[k][which]);
            }
        const bool better = u.turn == 0 || known > most;
        for (int k = 0; k < 2; k++)
            for (uint32_t which = 0; which < LARGE; which++) {
                po_graph_free(better ? sized[k].at[which] : at[k][which]);
                sized[k].at[which] = better ? at[k][which] : sized[k].at[which];
            }
        most = better ? known : most;
    }
}

void po_sized_free(po_sized *sized) {
    po_graph_free(sized->open);
    for (uint32_t i = 0; i < PO_MAKEUP_SIZES; i++)
        po_graph_free(sized->at[i]);
    *sized = (po_sized){.open = NULL};
}

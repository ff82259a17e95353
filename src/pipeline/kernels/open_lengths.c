/* Lengths are collected once; at each size that is tried only their numbers are looked at. */
#include "pipeline/kernels/open_lengths.h"

#include "ir/size.h"
#include "ops/sem/sem.h"

#include <math.h>

enum {
    MOST_LENGTHS = 4096,
    MOST_EQUAL = 64,
    MOST_NUMBER = 1 << 16, /* of those that constants are compared with */
    LEAST_OWN = 4          /* shorter lengths are windows' and strides' too */
};

/* --- numbers --- */

/* Lengths of names: by number, or each another sample. */
typedef struct named_lengths {
    const char *const *names;
    uint32_t n;
    const int64_t *lengths;
    const po_open_samples *samples; /* NULL: `lengths` */
    uint32_t first;
} named_lengths;

static bool length_named(void *user, const char *name, int64_t *length) {
    const named_lengths *l = user;
    for (uint32_t k = 0; k < l->n; k++)
        if (strcmp(l->names[k], name) == 0) {
            *length =
                l->samples ? l->samples->length[(l->first + k) % l->samples->n] : l->lengths[k];
            return true;
        }
    return false;
}

bool po_open_lengths_at(po_arena *arena, const char *const *names, uint32_t n_names,
                        const int64_t *lengths, po_dim dim, int64_t *number) {
    named_lengths l = {.names = names, .n = n_names, .lengths = lengths};
    return po_size_at(arena, dim, length_named, &l, number);
}

bool po_open_lengths_same(po_arena *arena, const char *const *names, uint32_t n_names,
                          const po_open_samples *samples, po_dim a, po_dim b) {
    bool same = samples->n > 1;
    if (po_dim_same(a, b))
        return true;
    po_arena *scratch = po_arena_child(arena);
    for (uint32_t i = 0; i < samples->n && same; i++) {
        named_lengths l = {.names = names, .n = n_names, .samples = samples, .first = i};
        int64_t x, y;
        same = po_size_at(scratch, a, length_named, &l, &x) &&
               po_size_at(scratch, b, length_named, &l, &y) && x == y;
    }
    po_arena_free(scratch);
    return same;
}

/* --- what there is --- */

bool po_open_is_live(const po_graph *graph, po_value_id v) {
    const po_value *value = &graph->values[v];
    const bool made = value->producer != PO_NONE && !graph->nodes[value->producer].removed;
    return (made || value->is_input) && !po_graph_constant(graph, v);
}

const po_type *po_open_live_type(const po_graph *graph, po_value_id v) {
    const po_type *type = &graph->values[v].type;
    const bool tensor = type->kind == PO_TYPE_TENSOR && type->has_rank;
    return tensor && po_open_is_live(graph, v) ? type : NULL;
}

void po_open_lengths_init(po_open_lengths *l, po_arena *arena, const char *const *names,
                          uint32_t n_names, const po_open_samples *samples) {
    *l = (po_open_lengths){.arena = arena,
                           .names = names,
                           .n_names = n_names,
                           .samples = samples,
                           .at = po_map_create(arena),
                           .taken = PO_NEW_N(arena, bool, MOST_NUMBER),
                           .known = PO_NEW_N(arena, po_mu_number, MOST_LENGTHS),
                           .untold = PO_NEW_N(arena, int64_t, MOST_LENGTHS),
                           .equal = PO_NEW_N(arena, po_size_pair, MOST_EQUAL)};
    for (int64_t i = 0; i < LEAST_OWN; i++)
        l->taken[i] = true;
}

/* What a length is at the samples: one number at all of them, as that of a slice of one token, or
 * which. */
static void sample(const po_open_lengths *l, po_open_length *one) {
    po_arena *scratch = po_arena_child(l->arena);
    int64_t first = -1;
    bool same = true;
    one->sampled = l->samples->n > 1;
    for (uint32_t i = 0; i < l->samples->n && one->sampled; i++) {
        named_lengths at = {.names = l->names, .n = l->n_names, .samples = l->samples, .first = i};
        int64_t number;
        one->sampled = po_size_at(scratch, one->is, length_named, &at, &number);
        if (!one->sampled)
            break;
        first = i == 0 ? number : first;
        same &= number == first;
        one->samples = po_hash_u64(one->samples, (uint64_t)number);
    }
    one->always = one->sampled && same && first >= 0 ? first : -1;
    po_arena_free(scratch);
}

static bool same_lengths(const po_open_length *a, const po_open_length *b) {
    return po_dim_same(a->is, b->is) ||
           (a->sampled && b->sampled && po_hash_equal(a->samples, b->samples));
}

static void add(po_open_lengths *l, po_dim dim, bool product, bool weak) {
    if (dim.value >= 0 || !dim.symbol)
        return;
    const uint32_t k = po_map_get(l->at, dim.symbol);
    if (k != PO_NONE) {
        l->list[k].product &= product;
        l->list[k].weak &= weak;
    } else if (l->n < MOST_LENGTHS) {
        /* The graph's own text goes with it. */
        const po_dim own = {-1, po_arena_strdup(l->arena, dim.symbol)};
        po_open_length one = {.is = own, .product = product, .weak = weak};
        sample(l, &one);
        PO_PUSH(l->arena, l->list, l->n, l->cap, one);
        po_map_put(l->at, own.symbol, l->n - 1);
    }
}

static void add_products(po_open_lengths *l, const po_type *type) {
    for (uint32_t d = 0; d < type->rank; d++) {
        po_dim all = type->dims[d];
        for (uint32_t e = d + 1; e < type->rank; e++) {
            const bool open = all.value < 0 && type->dims[e].value < 0;
            all = po_size_mul(l->arena, all, type->dims[e]);
            add(l, all, true, !open);
        }
    }
}

/* A constant that is 1 over a whole number is no mean's: that number is no length. */
static void take_constants(po_open_lengths *l, const po_graph *graph) {
    for (po_value_id v = 0; v < graph->n_values; v++) {
        const po_tensor *t = po_graph_constant(graph, v);
        if (!t || t->dtype != PO_F32 || t->count != 1)
            continue;
        const double over = 1 / fabs(po_tensor_f64(t, 0));
        if (over < MOST_NUMBER && over == floor(over))
            l->taken[(uint32_t)over] = true;
    }
    for (po_node_id n = 0; n < graph->n_nodes; n++)
        l->taken[6] |= graph->nodes[n].op == PO_OP_HardSwish; /* x (x / 6 + 1 / 2) */
}

void po_open_lengths_collect(po_open_lengths *l, const po_graph *named) {
    take_constants(l, named);
    for (int products = 0; products < 2; products++)
        for (po_value_id v = 0; v < named->n_values; v++) {
            const po_type *type = po_open_live_type(named, v);
            if (!type || type->dtype != PO_F32) /* regions hold nothing else */
                continue;
            for (uint32_t d = 0; d < type->rank && !products; d++) {
                const int64_t number = type->dims[d].value;
                if (number >= 0 && number < MOST_NUMBER)
                    l->taken[number] = true; /* what indexes weights is known by that */
                add(l, type->dims[d], false, false);
            }
            if (products)
                add_products(l, type);
        }
}

/* --- one size --- */

/* Of a product that of its factors is condition enough. */
static bool note_equal(po_open_lengths *l, po_dim a, po_dim b, bool product) {
    if (product)
        return true;
    if (l->n_equal == MOST_EQUAL)
        return false;
    l->equal[l->n_equal++] = (po_size_pair){a, b};
    return true;
}

static bool tell_one(po_open_lengths *l, const po_open_length *one, int64_t number) {
    if (one->always >= 0 && number >= 0) /* another number: a size that the model does not take */
        return number == one->always && note_equal(l, one->is, PO_DIM(number), one->product);
    if (number < 0 || (number < MOST_NUMBER && l->taken[number]))
        return false;
    for (uint32_t i = 0; i < l->n_known; i++)
        if (l->known[i].number == number &&
            !(same_lengths(&l->list[po_map_get(l->at, l->known[i].is.symbol)], one) &&
              note_equal(l, l->known[i].is, one->is, one->product)))
            return false;
    l->known[l->n_known++] = (po_mu_number){number, one->is};
    return true;
}

bool po_open_lengths_tell(po_open_lengths *l, const int64_t *lengths) {
    bool own = true;
    l->n_known = l->n_equal = l->n_untold = 0;
    po_arena *scratch = po_arena_child(l->arena);
    for (uint32_t i = 0; i < l->n && own; i++) {
        int64_t number;
        if (!po_open_lengths_at(scratch, l->names, l->n_names, lengths, l->list[i].is, &number) ||
            tell_one(l, &l->list[i], number))
            continue;
        own = l->list[i].weak;
        l->untold[l->n_untold++] = number;
    }
    po_arena_free(scratch);
    return own;
}

/* --- means --- */

static bool is_untold(const po_open_lengths *l, int64_t number) {
    for (uint32_t i = 0; i < l->n_untold; i++)
        if (l->untold[i] == number)
            return true;
    return false;
}

bool po_open_lengths_tell_means(const po_open_lengths *l, po_ctx *ctx, const po_graph *here) {
    bool told = true;
    po_arena *scratch = po_arena_create(ctx);
    for (po_node_id n = 0; n < here->n_nodes && told && l->n_untold > 0; n++) {
        const po_node *node = &here->nodes[n];
        po_sum **sums = PO_NEW_N(scratch, po_sum *, node->n_out + 1);
        if (node->removed || po_sem_of(ctx, scratch, here, node, sums) != PO_OK)
            continue;
        for (uint32_t o = 0; o < node->n_out; o++)
            for (uint32_t t = 0; sums[o] && t < sums[o]->n_terms; t++)
                told &=
                    sums[o]->terms[t].scale.num != 1 || !is_untold(l, sums[o]->terms[t].scale.den);
    }
    po_arena_free(scratch);
    return told;
}

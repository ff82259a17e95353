/* Lengths that a model wants to be equal: a mask of "total" tokens is added to scores of
 * "past + tokens" of them, which shape inference sees. */
#include "ir/size.h"
#include "ops/op.h"
#include "verify/inputs/internal.h"

#include <stdio.h>

static const po_relation *relation_of(const po_inputs *plan, const char *symbol) {
    for (uint32_t i = 0; i < plan->n_relations; i++)
        if (strcmp(plan->relation[i].symbol, symbol) == 0)
            return &plan->relation[i];
    return NULL;
}

/* Whether names in an expression are lengths of inputs that follow from no others, nor this one. */
typedef struct checked {
    const po_inputs *plan;
    const char *symbol;
} checked;

static bool is_free(void *user, const char *name, int64_t *length) {
    const checked *c = user;
    uint32_t axis;
    *length = 1;
    return strcmp(name, c->symbol) != 0 && !relation_of(c->plan, name) &&
           po_input_with(c->plan, name, &axis);
}

static bool is_used(const po_inputs *plan, po_arena *scratch, const char *symbol) {
    for (uint32_t i = 0; i < plan->n_relations; i++) {
        int64_t value;
        checked c = {plan, symbol};
        if (!po_size_at(scratch, plan->relation[i].is, is_free, &c, &value))
            return true; /* it is among its names */
    }
    return false;
}

static bool relate(po_inputs *plan, po_arena *scratch, po_dim a, po_dim b) {
    uint32_t axis;
    int64_t value;
    checked c = {plan, a.symbol};
    if (plan->n_relations == PO_MOST_RELATIONS || po_size_made(a.symbol) ||
        !po_input_with(plan, a.symbol, &axis) || relation_of(plan, a.symbol) ||
        is_used(plan, scratch, a.symbol) || !po_size_at(scratch, b, is_free, &c, &value))
        return false;
    plan->relation[plan->n_relations++] = (po_relation){a.symbol, b};
    return true;
}

/* Both open, and not known to be the same. */
static void relate_dims(po_inputs *plan, po_arena *scratch, po_dim a, po_dim b) {
    if (a.value >= 0 || b.value >= 0 || !a.symbol || !b.symbol || po_dim_same(a, b))
        return;
    /* What is computed from other lengths says what a name is, rather than another name. */
    const bool turned = po_size_made(a.symbol);
    if (!relate(plan, scratch, turned ? b : a, turned ? a : b) && !turned &&
        !po_size_made(b.symbol))
        relate(plan, scratch, b, a);
}

/* --- lengths that weights say --- */

enum { LONGEST_DEMANDED = 1 << 14 };

/* The one name of an expression, where it is a length of an input; NULL. */
typedef struct lone_name {
    const char *name;
    int64_t length;
    bool others;
} lone_name;

static bool is_lone(void *user, const char *name, int64_t *length) {
    lone_name *l = user;
    l->others |= l->name && strcmp(l->name, name) != 0;
    l->name = name;
    *length = l->length;
    return true;
}

static bool holds(po_arena *scratch, const po_demand *d, int64_t length, lone_name *l) {
    int64_t value;
    *l = (lone_name){.length = length};
    return po_size_at(scratch, d->is, is_lone, l, &value) &&
           (d->kind == PO_DEMAND_AT_LEAST ? value >= d->number : value == d->number);
}

/* A length at which an expression is what is demanded: of several that follow on one another (where
 * windows leave a rest) the first that is a multiple of 16 and at least half of the last, else the
 * first of all. 0: there is none. *least: all longer ones are as good (the first element of
 * anything is one). */
static int64_t solve(po_arena *scratch, const po_demand *d, const char **name, bool *least) {
    enum { TILE = 16 };
    lone_name l;
    int64_t first = 0, last;
    *least = holds(scratch, d, LONGEST_DEMANDED, &l);
    if (l.others || !l.name)
        return 0;
    for (int64_t length = 1; length <= LONGEST_DEMANDED && first == 0; length++)
        first = holds(scratch, d, length, &l) ? length : 0;
    *name = l.name;
    if (first == 0 || *least)
        return first;
    for (last = first; holds(scratch, d, last + 1, &l);)
        last++;
    const int64_t half = (last + 1) / 2 > first ? (last + 1) / 2 : first;
    const int64_t tiles = (half + TILE - 1) / TILE * TILE;
    return tiles <= last ? tiles : first;
}

/* Whether an open axis goes by that name, its own or PO_UNNAMED. */
static bool goes_by(const po_input *in, uint32_t axis, const char *name) {
    const po_dim *d = &in->type.dims[axis];
    char own[40];
    if (d->value >= 0 || d->symbol)
        return po_dim_same(*d, (po_dim){-1, name});
    snprintf(own, sizeof own, PO_UNNAMED, in->number, axis);
    return strcmp(own, name) == 0;
}

const po_drawn *po_drawn_length(const po_inputs *plan, const po_input *in, uint32_t axis) {
    for (uint32_t i = 0; i < plan->n_drawn; i++)
        if (goes_by(in, axis, plan->drawn[i].symbol))
            return &plan->drawn[i];
    return NULL;
}

/* How many axes of inputs go by the name; those get the marks. */
static uint32_t mark(const po_inputs *plan, const char *name, bool runs) {
    uint32_t n = 0;
    for (uint32_t k = 0; k < plan->n; k++) {
        po_input *in = &plan->inputs[k];
        for (uint32_t x = 0;
             in->type.kind == PO_TYPE_TENSOR && in->type.has_rank && x < in->type.rank; x++)
            if (goes_by(in, x, name)) {
                in->runs |= runs ? 1U << x : 0;
                n++;
            }
    }
    return n;
}

/* Of least lengths the greatest counts; what is known better stays. */
static void draw(po_inputs *plan, const char *name, int64_t length, bool least) {
    uint32_t i = 0;
    while (i < plan->n_drawn && strcmp(plan->drawn[i].symbol, name) != 0)
        i++;
    if (i == PO_MOST_RELATIONS || relation_of(plan, name) || mark(plan, name, false) == 0 ||
        (i < plan->n_drawn && (!plan->drawn[i].least || plan->drawn[i].length >= length)))
        return;
    plan->drawn[i] = (po_drawn){name, length, least};
    plan->n_drawn += i == plan->n_drawn;
}

/* The inputs' axes of that name are no batches. */
static void mark_runs(const po_inputs *plan, po_arena *scratch, po_dim is) {
    int64_t value;
    lone_name l = {.length = 1};
    (void)po_size_at(scratch, is, is_lone, &l, &value);
    if (l.name && !l.others)
        mark(plan, l.name, true);
}

/* What is a name's length at any rate is a relation, on which kernels and proofs build. */
static void take(po_inputs *plan, po_arena *scratch, const po_demand *d) {
    const char *name = d->is.symbol;
    if (d->kind == PO_DEMAND_SEQUENCE) {
        mark_runs(plan, scratch, d->is);
        return;
    }
    if (!po_size_made(name) && d->kind == PO_DEMAND_IS &&
        relate(plan, scratch, (po_dim){-1, name}, PO_DIM(d->number)))
        return;
    bool least = d->kind == PO_DEMAND_AT_LEAST;
    const int64_t length = po_size_made(name) ? solve(scratch, d, &name, &least) : d->number;
    if (length > 0)
        draw(plan, po_arena_strdup(plan->arena, name), length, least);
}

/* Each once: the layers of a network want the same. So many of a kind are looked at. */
static po_status find_demanded(po_inputs *plan, po_arena *scratch, const po_graph *graph) {
    enum { MOST_OF_A_KIND = 256 };
    po_demands found;
    PO_TRY(po_infer_demands(po_arena_ctx(plan->arena), plan->arena, graph, &found));
    po_map *seen = po_map_create(scratch);
    for (int kind = 0; kind < PO_DEMAND_KINDS; kind++)
        for (uint32_t i = 0, taken = 0; i < found.n && taken < MOST_OF_A_KIND; i++) {
            const po_demand *d = &found.list[i];
            if (d->kind != (po_demand_kind)kind)
                continue;
            const char *text =
                po_arena_printf(scratch, "%d %lld %s", kind, (long long)d->number, d->is.symbol);
            if (po_map_get(seen, text) != PO_NONE)
                continue;
            po_map_put(seen, text, i);
            take(plan, scratch, d);
            taken++;
            PO_TRY(po_ctx_poll(po_arena_ctx(plan->arena)));
        }
    return PO_OK;
}

po_status po_inputs_find_relations(po_inputs *plan, const po_graph *graph) {
    po_arena *scratch = po_arena_child(plan->arena);
    PO_TRY(find_demanded(plan, scratch, graph));
    for (int expressions = 1; expressions >= 0; expressions--)
        for (po_node_id id = 0; id < graph->n_nodes; id++) {
            const po_node *n = &graph->nodes[id];
            if (n->removed || !po_op_has(n->op, PO_OPF_ELEMENTWISE) || n->n_in < 2)
                continue;
            for (uint32_t k = 1; k < n->n_in; k++) {
                if (n->in[k] == PO_NONE || n->in[k - 1] == PO_NONE)
                    continue;
                const po_type *a = &graph->values[n->in[k - 1]].type;
                const po_type *b = &graph->values[n->in[k]].type;
                const uint32_t rank = !a->has_rank || !b->has_rank ? 0
                                      : a->rank < b->rank          ? a->rank
                                                                   : b->rank;
                for (uint32_t d = 1; d <= rank; d++) {
                    po_dim x = a->dims[a->rank - d], y = b->dims[b->rank - d];
                    if (expressions == (po_size_made(x.symbol) || po_size_made(y.symbol)))
                        relate_dims(plan, scratch, x, y);
                }
            }
        }
    po_arena_free(scratch);
    return PO_OK;
}

bool po_inputs_demanded(const po_inputs *plan, uint32_t k, const char **symbol, int64_t *length,
                        bool *exact) {
    *symbol = NULL;
    if (k >= plan->n_relations + plan->n_drawn)
        return false;
    *exact = k < plan->n_relations;
    if (*exact && plan->relation[k].is.value >= 0) {
        *symbol = plan->relation[k].symbol;
        *length = plan->relation[k].is.value;
    } else if (!*exact && !plan->drawn[k - plan->n_relations].least &&
               strncmp(plan->drawn[k - plan->n_relations].symbol, PO_UNNAMED_FIRST,
                       sizeof PO_UNNAMED_FIRST - 1) != 0) {
        *symbol = plan->drawn[k - plan->n_relations].symbol;
        *length = plan->drawn[k - plan->n_relations].length;
    }
    return true;
}

/* --- lengths that follow --- */

bool po_assigned_length(void *assignment, const char *name, int64_t *length) {
    const po_assignment *a = assignment;
    uint32_t axis;
    const po_input *in = po_input_with(a->plan, name, &axis);
    if (in)
        *length = po_input_length(a->plan, in, axis, a->size);
    return in != NULL;
}

bool po_related_length(const po_inputs *plan, const char *symbol, uint32_t size, int64_t *length) {
    const po_relation *r = relation_of(plan, symbol);
    if (!r)
        return false;
    po_assignment there = {plan, size};
    po_arena *scratch = po_arena_child(plan->arena);
    const bool known =
        po_size_at(scratch, r->is, po_assigned_length, &there, length) && *length >= 0;
    po_arena_free(scratch);
    return known;
}

po_dim po_inputs_related(const po_inputs *plan, const char *symbol) {
    const po_relation *r = relation_of(plan, symbol);
    return r ? r->is : PO_DIM_UNKNOWN;
}

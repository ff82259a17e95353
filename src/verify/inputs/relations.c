/* Lengths that a model wants to be equal: a mask of "total" tokens is added to scores of
 * "past + tokens" of them, which shape inference sees. */
#include "ir/size.h"
#include "ops/op.h"
#include "verify/inputs/internal.h"

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

void po_inputs_find_relations(po_inputs *plan, const po_graph *graph) {
    po_arena *scratch = po_arena_child(plan->arena);
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

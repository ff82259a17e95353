/* Forms of integer tensors by the nodes that make them. */
#include "ops/indices.h"

#include "ir/size.h"
#include "ops/rewrite.h"

enum {
    MOST_NODES = 64, /* looked at for one answer */
    MOST_ELEMENTS = 1 << 16
};

typedef struct looking {
    po_arena *arena;
    const po_graph *graph;
    uint32_t nodes;
} looking;

static const po_type *type_of(const looking *l, po_value_id v) {
    const po_type *t = v == PO_NONE ? NULL : &l->graph->values[v].type;
    return t && t->kind == PO_TYPE_TENSOR && t->has_rank && t->rank <= PO_MAX_RANK ? t : NULL;
}

static bool is_one(po_dim dim) {
    return dim.value == 1;
}

static bool is_zero(po_dim dim) {
    return dim.value == 0;
}

/* --- axes that are put in or taken out --- */

/* By axis of the longer shape: whether it is one of the node's `axes`. False: they are not known.
 */
static bool read_axes(const looking *l, const po_node *n, uint32_t rank, bool *of) {
    uint32_t axes[PO_MAX_RANK];
    const uint32_t count = po_axes_of(l->graph, n, (int)rank, PO_MAX_RANK, axes);
    memset(of, 0, rank * sizeof *of);
    for (uint32_t i = 0; i < count; i++)
        of[axes[i]] = true;
    return count > 0;
}

/* --- forms --- */

static bool form_of(looking *l, po_value_id v, po_index_form *form);

/* Known at each element: a first one, and a step along each axis. */
static bool of_constant(const po_tensor *t, po_index_form *form) {
    int64_t place[PO_MAX_RANK] = {0}, stride[PO_MAX_RANK], all = 1;
    if (t->count < 1 || t->count > MOST_ELEMENTS)
        return false;
    const int64_t base = po_tensor_int(t, 0);
    for (uint32_t a = t->rank; a-- > 0; all *= t->dims[a])
        stride[a] = all;
    form->base = PO_DIM(base);
    for (uint32_t a = 0; a < t->rank; a++) {
        form->step[a] = PO_DIM(t->dims[a] > 1 ? po_tensor_int(t, stride[a]) - base : 0);
        if (form->step[a].value < 0)
            return false;
    }
    for (int64_t i = 0; i < t->count; i++) {
        int64_t expected = base;
        for (uint32_t a = 0; a < t->rank; a++)
            expected += form->step[a].value * place[a];
        if (po_tensor_int(t, i) != expected)
            return false;
        for (uint32_t a = t->rank; a-- > 0 && ++place[a] == t->dims[a];)
            place[a] = 0;
    }
    return base >= 0;
}

/* A length, as an integer. */
static bool of_length(const looking *l, const po_value *v, po_index_form *form) {
    const po_partial *p = v->is_input ? NULL : v->partial;
    if (!p || p->n != 1 || v->type.rank > 1)
        return false;
    form->base = po_size_of_item(p->items[0]);
    form->step[0] = PO_DIM(0);
    return form->base.value >= 0 || (form->base.symbol && po_size_natural(l->arena, form->base));
}

static bool whole_constant(const looking *l, po_value_id v, int64_t *number) {
    double x;
    if (v == PO_NONE || !po_scalar_constant(l->graph, v, &x) || x < 0 || x > 1e9)
        return false;
    *number = (int64_t)x;
    return true;
}

static bool of_range(const looking *l, const po_node *n, po_index_form *form) {
    int64_t start, step;
    if (n->n_in != 3 || !whole_constant(l, n->in[0], &start) || !whole_constant(l, n->in[2], &step))
        return false;
    form->base = PO_DIM(start);
    form->step[0] = PO_DIM(step);
    return true;
}

static bool of_unsqueeze(looking *l, const po_node *n, po_index_form *form) {
    po_index_form of;
    bool put[PO_MAX_RANK];
    if (!form_of(l, n->in[0], &of) || !read_axes(l, n, form->rank, put))
        return false;
    form->base = of.base;
    for (uint32_t a = 0, k = 0; a < form->rank; a++)
        form->step[a] = put[a] || k >= of.rank ? PO_DIM(0) : of.step[k++];
    return true;
}

static bool of_squeeze(looking *l, const po_node *n, po_index_form *form) {
    po_index_form of;
    bool out[PO_MAX_RANK];
    const po_type *t = type_of(l, n->in[0]);
    if (!t || !form_of(l, n->in[0], &of) || !read_axes(l, n, t->rank, out))
        return false;
    form->base = of.base;
    for (uint32_t a = 0, k = 0; a < t->rank; a++)
        if (!out[a] && k < form->rank)
            form->step[k++] = of.step[a];
    return true;
}

/* The step of an operand along an axis of what it is broadcast to; false: it is not seen to fit. */
static bool step_along(const po_type *out, uint32_t axis, const po_type *in,
                       const po_index_form *of, po_dim *step) {
    const int at = (int)axis - (int)out->rank + (int)in->rank;
    *step = PO_DIM(0);
    if (at < 0 || is_one(in->dims[at]) || is_zero(of->step[at]))
        return true;
    *step = of->step[at];
    return po_dim_same(in->dims[at], out->dims[axis]);
}

static bool of_expand(looking *l, const po_node *n, const po_type *type, po_index_form *form) {
    po_index_form of;
    const po_type *t = type_of(l, n->in[0]);
    if (!t || !form_of(l, n->in[0], &of))
        return false;
    form->base = of.base;
    for (uint32_t a = 0; a < form->rank; a++)
        if (!step_along(type, a, t, &of, &form->step[a]))
            return false;
    return true;
}

static bool is_uniform(const po_index_form *f) {
    bool uniform = true;
    for (uint32_t a = 0; a < f->rank; a++)
        uniform &= is_zero(f->step[a]);
    return uniform;
}

/* A sum, or a product by what is the same everywhere. */
static bool of_two(looking *l, const po_node *n, const po_type *type, po_index_form *form) {
    const bool sum = n->op == PO_OP_Add;
    po_index_form f[2];
    const po_type *t[2];
    for (uint32_t k = 0; k < 2; k++) {
        t[k] = type_of(l, n->in[k]);
        if (!t[k] || !form_of(l, n->in[k], &f[k]))
            return false;
    }
    const uint32_t same = is_uniform(&f[0]) ? 0 : 1;
    if (!sum && !is_uniform(&f[same]))
        return false;
    form->base = sum ? po_size_add(l->arena, f[0].base, f[1].base)
                     : po_size_mul(l->arena, f[0].base, f[1].base);
    for (uint32_t a = 0; a < form->rank; a++) {
        po_dim step[2];
        if (!step_along(type, a, t[0], &f[0], &step[0]) ||
            !step_along(type, a, t[1], &f[1], &step[1]))
            return false;
        form->step[a] = sum ? po_size_add(l->arena, step[0], step[1])
                            : po_size_mul(l->arena, step[1 - same], f[same].base);
    }
    return true;
}

/* From a place on that is a number, in steps of one. */
static bool of_slice(looking *l, const po_node *n, po_index_form *form) {
    const po_tensor *list[5] = {NULL};
    bool seen[PO_MAX_RANK] = {false};
    for (uint32_t k = 1; k < n->n_in && k < 5; k++)
        list[k] = n->in[k] == PO_NONE ? NULL : po_graph_constant(l->graph, n->in[k]);
    if (n->n_in < 4 || !list[1] || !list[3] || list[1]->count != list[3]->count ||
        (n->n_in > 4 && n->in[4] != PO_NONE && !(list[4] && po_all_equal(list[4], 1))) ||
        !form_of(l, n->in[0], form))
        return false;
    for (int64_t i = 0; i < list[1]->count; i++) {
        const int64_t start = po_tensor_int(list[1], i);
        int64_t axis = po_tensor_int(list[3], i);
        axis += axis < 0 ? form->rank : 0;
        if (axis < 0 || axis >= form->rank || seen[axis] || start < 0 || start > MOST_ELEMENTS)
            return false;
        seen[axis] = true;
        form->base =
            po_size_add(l->arena, form->base, po_size_times(l->arena, form->step[axis], start));
    }
    return true;
}

/* What is taken of numbers that are the same everywhere. */
static bool of_taken(looking *l, const po_node *n, po_index_form *form) {
    po_index_form of;
    if (!form_of(l, n->in[0], &of) || !is_uniform(&of))
        return false;
    form->base = of.base;
    for (uint32_t a = 0; a < form->rank; a++)
        form->step[a] = PO_DIM(0);
    return true;
}

static bool of_node(looking *l, const po_node *n, const po_type *type, po_index_form *form) {
    switch (n->op) {
    case PO_OP_Range:
        return of_range(l, n, form);
    case PO_OP_Unsqueeze:
        return of_unsqueeze(l, n, form);
    case PO_OP_Squeeze:
        return of_squeeze(l, n, form);
    case PO_OP_Expand:
        return of_expand(l, n, type, form);
    case PO_OP_Identity:
        return form_of(l, n->in[0], form);
    case PO_OP_Slice:
        return of_slice(l, n, form);
    case PO_OP_Add:
    case PO_OP_Mul:
        return of_two(l, n, type, form);
    case PO_OP_Gather:
    case PO_OP_GatherElements:
    case PO_OP_GatherND:
        return of_taken(l, n, form);
    default:
        return false;
    }
}

static bool form_of(looking *l, po_value_id v, po_index_form *form) {
    const po_type *t = type_of(l, v);
    if (!t || t->dtype != PO_I64 || ++l->nodes > MOST_NODES)
        return false;
    const po_value *value = &l->graph->values[v];
    *form = (po_index_form){.rank = t->rank};
    const po_tensor *c = po_graph_constant(l->graph, v);
    if (c)
        return of_constant(c, form);
    if (of_length(l, value, form))
        return true;
    const po_node *n = po_graph_producer(l->graph, v);
    if (!n || n->n_out == 0 || n->out[0] != v || n->n_in == 0 || !of_node(l, n, t, form))
        return false;
    bool known = form->base.value >= 0 || form->base.symbol;
    for (uint32_t a = 0; a < form->rank; a++)
        known &= form->step[a].value >= 0 || form->step[a].symbol;
    return known;
}

bool po_index_form_of(po_arena *arena, const po_graph *graph, po_value_id value,
                      po_index_form *form) {
    return form_of(&(looking){arena, graph, 0}, value, form);
}

bool po_index_uniform(po_arena *arena, const po_graph *graph, po_value_id value, int64_t *number) {
    po_index_form form;
    if (!po_index_form_of(arena, graph, value, &form) || !is_uniform(&form))
        return false;
    *number = form.base.value;
    return form.base.value >= 0;
}

/* --- conditions --- */

static bool at_least(const looking *l, po_dim a, po_dim b) {
    const po_dim d = po_size_sub(l->arena, a, b);
    return d.value >= 0 || (d.symbol && po_size_natural(l->arena, d));
}

/* a >= b + more at every place, b being the same everywhere. */
static bool is_above(looking *l, po_value_id a, po_value_id b, int64_t more) {
    po_index_form x, y;
    return form_of(l, a, &x) && form_of(l, b, &y) && is_uniform(&y) &&
           at_least(l, x.base, po_size_plus(l->arena, y.base, more));
}

static po_truth truth(looking *l, po_value_id v);

static po_truth truth_of_both(looking *l, const po_node *n, po_truth decides) {
    const po_truth a = truth(l, n->in[0]), b = truth(l, n->in[1]);
    if (a == decides || b == decides)
        return decides;
    return a == b ? a : PO_TRUTH_UNKNOWN;
}

static po_truth truth_of_node(looking *l, const po_node *n) {
    switch (n->op) {
    case PO_OP_And:
        return truth_of_both(l, n, PO_TRUTH_FALSE);
    case PO_OP_Or:
        return truth_of_both(l, n, PO_TRUTH_TRUE);
    case PO_OP_GreaterOrEqual:
        return is_above(l, n->in[0], n->in[1], 0) ? PO_TRUTH_TRUE : PO_TRUTH_UNKNOWN;
    case PO_OP_Greater:
        return is_above(l, n->in[0], n->in[1], 1) ? PO_TRUTH_TRUE : PO_TRUTH_UNKNOWN;
    case PO_OP_LessOrEqual:
        return is_above(l, n->in[1], n->in[0], 0) ? PO_TRUTH_TRUE : PO_TRUTH_UNKNOWN;
    case PO_OP_Less:
        return is_above(l, n->in[0], n->in[1], 0)   ? PO_TRUTH_FALSE
               : is_above(l, n->in[1], n->in[0], 1) ? PO_TRUTH_TRUE
                                                    : PO_TRUTH_UNKNOWN;
    case PO_OP_Expand:
        return truth(l, n->in[0]);
    default:
        return po_op_has(n->op, PO_OPF_SHAPE_ONLY) ? truth(l, n->in[0]) : PO_TRUTH_UNKNOWN;
    }
}

static po_truth truth(looking *l, po_value_id v) {
    const po_type *t = type_of(l, v);
    const po_tensor *c = t ? po_graph_constant(l->graph, v) : NULL;
    if (!t || t->dtype != PO_BOOL || ++l->nodes > MOST_NODES)
        return PO_TRUTH_UNKNOWN;
    if (c)
        return c->count == 0        ? PO_TRUTH_UNKNOWN
               : po_all_equal(c, 1) ? PO_TRUTH_TRUE
               : po_all_equal(c, 0) ? PO_TRUTH_FALSE
                                    : PO_TRUTH_UNKNOWN;
    const po_node *n = po_graph_producer(l->graph, v);
    return n && n->n_out == 1 && n->n_in > 0 ? truth_of_node(l, n) : PO_TRUTH_UNKNOWN;
}

po_truth po_truth_of(po_arena *arena, const po_graph *graph, po_value_id value) {
    return truth(&(looking){arena, graph, 0}, value);
}

/* Whether two items are the same for all lengths, or for none. */
static bool is_told(po_arena *arena, po_dim a, po_dim b) {
    int64_t x, y;
    const bool numbers[2] = {po_size_number(a, &x), po_size_number(b, &y)};
    if ((numbers[0] && numbers[1]) || (a.symbol && po_dim_same(a, b)))
        return true;
    return (numbers[0] && x < 0 && b.symbol && po_size_natural(arena, b)) ||
           (numbers[1] && y < 0 && a.symbol && po_size_natural(arena, a));
}

/* Item by item: lengths beside the -1 that a shape has for what is left. */
static bool compares_told(po_arena *arena, const po_graph *graph, const po_node *node) {
    const po_partial *a = node->in[0] == PO_NONE ? NULL : graph->values[node->in[0]].partial,
                     *b = node->in[1] == PO_NONE ? NULL : graph->values[node->in[1]].partial;
    bool told = node->op == PO_OP_Equal && a && b && (a->n == b->n || a->n == 1 || b->n == 1);
    const uint32_t n = told ? (a->n > b->n ? a->n : b->n) : 0;
    for (uint32_t i = 0; told && i < n; i++)
        told = is_told(arena, a->items[a->n == 1 ? 0 : i], b->items[b->n == 1 ? 0 : i]);
    return told;
}

bool po_condition_told(po_arena *arena, const po_graph *graph, const po_node *node) {
    return node->n_out == 1 && node->n_in == 2 && node->out[0] != PO_NONE &&
           (compares_told(arena, graph, node) ||
            po_truth_of(arena, graph, node->out[0]) != PO_TRUTH_UNKNOWN);
}

/* --- all elements, in order --- */

/* Numbers of rows that are counted through, each of one element. */
static bool gathers_in_order(looking *l, const po_node *n, const po_type *data,
                             const po_type *index) {
    po_index_form f;
    po_dim all = PO_DIM(1);
    const int64_t axis = po_op_int(l->graph, n, "axis");
    if ((axis != 0 && axis != -(int64_t)data->rank) || data->rank == 0 ||
        !form_of(l, n->in[1], &f) || !is_zero(f.base))
        return false;
    for (uint32_t a = 1; a < data->rank; a++)
        if (!is_one(data->dims[a]))
            return false;
    for (uint32_t a = index->rank; a-- > 0;) {
        if (!is_one(index->dims[a]) && !po_dim_same(f.step[a], all))
            return false;
        all = po_size_mul(l->arena, all, index->dims[a]);
    }
    return po_dim_same(all, data->dims[0]);
}

/* Each axis of the data by an axis of the index, in order; this has no others but of one place. */
static bool gathers_axes_in_order(looking *l, const po_node *n, const po_type *data,
                                  const po_type *index) {
    const po_node *joined = po_made_by(l->graph, n->in[1], PO_OP_Concat);
    const int64_t axis = joined ? po_op_int(l->graph, joined, "axis") : 0;
    const uint32_t last = index->rank - 1;
    uint32_t next = 0;
    if (!joined || joined->n_in != data->rank || po_node_int(n, "batch_dims", 0) != 0 ||
        (axis != -1 && axis != (int64_t)last))
        return false;
    for (uint32_t k = 0; k < joined->n_in; k++) {
        po_index_form f;
        const po_type *t = type_of(l, joined->in[k]);
        if (!t || t->rank != index->rank || !is_one(t->dims[last]) ||
            !form_of(l, joined->in[k], &f) || !is_zero(f.base))
            return false;
        /* Axes of one place in front are passed over; then comes this one. */
        while (next < last && is_one(index->dims[next]))
            next++;
        if (next == last || !is_one(f.step[next]) || !po_dim_same(index->dims[next], data->dims[k]))
            return false;
        for (uint32_t a = 0; a < last; a++)
            if (a != next && !is_one(index->dims[a]) && !is_zero(f.step[a]))
                return false;
        next++;
    }
    while (next < last && is_one(index->dims[next]))
        next++;
    return next == last;
}

bool po_takes_in_order(po_arena *arena, const po_graph *graph, const po_node *node) {
    looking l = {arena, graph, 0};
    if ((node->op != PO_OP_Gather && node->op != PO_OP_GatherND) || node->n_in != 2)
        return false;
    const po_type *data = type_of(&l, node->in[0]), *index = type_of(&l, node->in[1]);
    if (!data || !index)
        return false;
    return node->op == PO_OP_Gather
               ? gathers_in_order(&l, node, data, index)
               : index->rank > 1 && gathers_axes_in_order(&l, node, data, index);
}

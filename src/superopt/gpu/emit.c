/* A plan as a muGraph for a GPU: a launch a step, blocks as grids, what a block keeps as SHARED
 * tensors. Operands of products are copied to the block, in 16 bits where the model has them;
 * sums are kept apart from where they go. A loop that is shared by several blocks leaves its sums
 * in parts, which a step of its own adds up, each weighed by exp(own maximum - greatest maximum)
 * where they were shifted by a running one. */
#include "superopt/gpu/internal.h"
#include "superopt/search/write.h"

#include <math.h>

typedef struct emitting {
    search_writer w;
    uint32_t tensor[SEARCH_NODES]; /* where a node's value lies; PO_NONE */
    uint32_t copy[SEARCH_NODES];   /* that as the operand of a product, of this kernel; PO_NONE */
    uint32_t part[SEARCH_NODES];   /* its parts, in memory; PO_NONE */
    bool split[SEARCH_NODES];      /* `tensor` has an axis of parts in front */
    bool made[SEARCH_NODES];
    /* of the kernel under way */
    const search_kernel *k;
    search_layout l;
    uint32_t number, row;             /* labels: of the parts, of one row; PO_NONE */
    uint32_t step, grid, scope, loop; /* nodes; PO_NONE */
    uint32_t factor;                  /* tensor: exp(old maximum - maximum) */
} emitting;

/* --- labels, tensors --- */

static uint64_t labels_used(const emitting *e) {
    uint64_t used = 0;
    for (uint32_t i = 0; i <= e->k->root; i++) {
        const search_node *n = &e->w.s->node[i];
        if (e->l.stage[i] == SEARCH_OUTSIDE)
            continue;
        used |= n->labels;
        for (uint32_t k = 0; k < search_arity(n); k++)
            used |= e->w.s->node[n->arg[k]].labels;
    }
    return used;
}

/* loop: whether the loop's class is needed. */
static void make_labels(emitting *e, bool loop) {
    const search_problem *p = e->w.p;
    po_mu *mu = e->w.to->mu;
    uint32_t classes[PO_FORM_CLASSES], n = search_classes_of(p, labels_used(e), classes);
    memset(e->w.label, 0, sizeof e->w.label);
    e->number = e->row = PO_NONE;
    if (e->k->parts > 1)
        e->number = po_mu_add_label(mu, po_arena_printf(p->arena, "%spart", p->name[e->k->loop]),
                                    e->k->parts);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t c = classes[i];
        po_for_label *f = &e->w.label[c];
        bool parts = c == e->k->loop && e->k->parts > 1;
        if (c == e->k->loop && !loop)
            continue;
        int64_t within = parts ? p->extent[c] / e->k->parts : p->extent[c];
        f->n = 1;
        f->terms[0] = (po_mu_term){po_mu_add_label(mu, p->name[c], within), 1};
        if (parts)
            f->terms[f->n++] = (po_mu_term){e->number, within};
    }
}

/* A tensor with axes in front of the classes': of parts, of one row. */
static uint32_t add_led(emitting *e, const char *name, po_mu_place place, uint64_t labels,
                        bool split, bool thin, uint32_t scope) {
    uint32_t classes[PO_FORM_CLASSES], n = search_classes_of(e->w.p, labels, classes), at = 0;
    int64_t dims[PO_MU_MAX_RANK] = {1};
    if (split)
        dims[at++] = e->k->parts;
    if (thin)
        dims[at++] = 1;
    for (uint32_t i = 0; i < n && at < PO_MU_MAX_RANK; i++)
        dims[at++] = e->w.p->extent[classes[i]];
    uint32_t id = po_mu_add_tensor(e->w.to->mu, name, place, at ? at : 1, dims);
    e->w.to->mu->tensors[id].scope = scope;
    return id;
}

/* row: the label that runs over the one row; PO_NONE: none does. */
static po_mu_access led_access(emitting *e, uint32_t tensor, uint64_t labels, bool split, bool thin,
                               uint32_t row) {
    uint32_t classes[PO_FORM_CLASSES], n = search_classes_of(e->w.p, labels, classes), at = 0;
    po_mu_access a = po_mu_access_of(e->w.to->mu, tensor);
    if (split)
        po_mu_at(e->w.to->mu, &a, at++, 1, e->number);
    if (thin) {
        if (row != PO_NONE)
            po_mu_at(e->w.to->mu, &a, at, 1, row);
        at++;
    }
    for (uint32_t i = 0; i < n; i++)
        search_at(&e->w, &a, at++, classes[i]);
    return a;
}

static uint32_t add_split(emitting *e, const char *name, po_mu_place place, uint64_t labels,
                          uint32_t scope) {
    return add_led(e, name, place, labels, true, false, scope);
}

static po_mu_access split_access(emitting *e, uint32_t tensor, uint64_t labels) {
    return led_access(e, tensor, labels, true, false, PO_NONE);
}

/* The vector of a product with one; PO_NONE: it is none. */
static uint32_t vector_of(const emitting *e, uint32_t i) {
    const search_skeleton *s = e->w.s;
    uint32_t operand[2];
    if (!gpu_is_product(e->w.p, s, &e->l, i, operand) || !gpu_is_thin(s, operand))
        return PO_NONE;
    bool first = !(s->node[operand[0]].labels & ~s->node[operand[1]].labels);
    return operand[first ? 0 : 1];
}

/* Whether what a block holds of a node has an axis for one row: such a vector, or such a product.
 */
static bool has_row(const emitting *e, uint32_t i) {
    for (uint32_t u = i + 1; u <= e->k->root; u++)
        if (vector_of(e, u) == i)
            return true;
    return i <= e->k->root && vector_of(e, i) != PO_NONE;
}

static uint32_t add_shared(emitting *e, const char *name, uint32_t i, uint32_t scope) {
    return add_led(e, name, PO_MU_SHARED, e->w.s->node[i].labels, e->split[i], has_row(e, i),
                   scope);
}

/* `tensor` has the shape of the node's own in the block. */
static po_mu_access with_row(emitting *e, uint32_t tensor, uint32_t i, uint32_t row) {
    bool here = e->l.stage[i] != SEARCH_OUTSIDE;
    return led_access(e, tensor, e->w.s->node[i].labels, e->split[i], here && has_row(e, i), row);
}

static po_mu_access as_node(emitting *e, uint32_t tensor, uint32_t i) {
    return with_row(e, tensor, i, PO_NONE);
}

static void set_type(emitting *e, uint32_t tensor, po_mu_type type) {
    e->w.to->mu->tensors[tensor].type = type;
}

/* --- statements --- */

typedef struct statement {
    emitting *e;
    uint32_t id, node;
    bool is_product;
    uint32_t vector, row; /* the operand that runs by the label of one row */
    uint32_t item[SEARCH_NODES];
} statement;

static uint32_t operand_of(statement *st, po_mu_access access) {
    po_mu *mu = st->e->w.to->mu;
    return po_mu_item_of(mu, st->id, PO_MU_OPERAND, po_mu_operand(mu, st->id, access), 0, 0);
}

static po_mu_access where(emitting *e, uint32_t i, uint32_t copy, uint32_t row) {
    const search_node *n = &e->w.s->node[i];
    return copy != PO_NONE          ? led_access(e, copy, n->labels, false, has_row(e, i), row)
           : n->kind == SEARCH_LEAF ? search_border_access(&e->w, n->tensor)
                                    : with_row(e, e->tensor[i], i, row);
}

static uint32_t value_of(statement *st, uint32_t i) {
    emitting *e = st->e;
    const search_node *n = &e->w.s->node[i];
    if (st->item[i] != PO_NONE)
        return st->item[i];
    if (n->kind == SEARCH_NUMBER) {
        st->item[i] = search_number(&e->w, st->id, n);
    } else if (n->kind == SEARCH_LEAF || (i != st->node && e->l.stage[i] != SEARCH_INLINE)) {
        /* A copy of a sum, which is rounded, serves products only. */
        bool rounded = n->kind == SEARCH_SUM && e->l.stage[i] != SEARCH_OUTSIDE;
        uint32_t copy = rounded && !st->is_product ? PO_NONE : e->copy[i];
        st->item[i] = operand_of(st, where(e, i, copy, i == st->vector ? st->row : PO_NONE));
    } else {
        uint32_t x[3] = {0, 0, 0};
        for (uint32_t k = 0; k < search_arity(n); k++)
            x[k] = value_of(st, n->arg[k]);
        st->item[i] = po_mu_item_of(e->w.to->mu, st->id, n->function, x[0], x[1], x[2]);
    }
    return st->item[i];
}

static statement start(emitting *e, uint32_t parent, po_mu_combine combine, uint32_t node) {
    statement st = {.e = e, .node = node, .vector = PO_NONE, .row = PO_NONE};
    st.id = po_mu_add_statement(e->w.to->mu, parent, combine);
    for (uint32_t k = 0; k < SEARCH_NODES; k++)
        st.item[k] = PO_NONE;
    return st;
}

static void move(emitting *e, uint32_t parent, po_mu_access to, po_mu_access from) {
    statement st = start(e, parent, PO_MU_SET, PO_NONE);
    e->w.to->mu->nodes[st.id].statement.out = to;
    operand_of(&st, from);
}

static void fill(emitting *e, uint32_t parent, po_mu_access to, double value) {
    statement st = start(e, parent, PO_MU_SET, PO_NONE);
    e->w.to->mu->nodes[st.id].statement.out = to;
    po_mu_constant(e->w.to->mu, st.id, value);
}

/* to = exp(a - b) */
static void weigh(emitting *e, uint32_t parent, po_mu_access to, po_mu_access a, po_mu_access b) {
    statement st = start(e, parent, PO_MU_SET, PO_NONE);
    po_mu *mu = e->w.to->mu;
    mu->nodes[st.id].statement.out = to;
    uint32_t x = operand_of(&st, a), y = operand_of(&st, b);
    po_mu_item_of(mu, st.id, PO_MU_EXP, po_mu_item_of(mu, st.id, PO_MU_MINUS, x, y, 0), 0, 0);
}

/* to (combine) a * b */
static void multiply(emitting *e, uint32_t parent, po_mu_combine combine, po_mu_access to,
                     po_mu_access a, po_mu_access b) {
    statement st = start(e, parent, combine, PO_NONE);
    po_mu *mu = e->w.to->mu;
    mu->nodes[st.id].statement.out = to;
    mu->nodes[st.id].statement.fresh = combine != PO_MU_SET;
    uint32_t x = operand_of(&st, a), y = operand_of(&st, b);
    po_mu_item_of(mu, st.id, PO_MU_TIMES, x, y, 0);
}

static po_mu_access root_access(emitting *e) {
    uint32_t root = e->k->root;
    return root + 1 == e->w.s->n ? search_border_access(&e->w, e->w.p->target)
                                 : search_access(&e->w, e->tensor[root], e->w.s->node[root].labels);
}

/* --- operands of products --- */

/* Copies a value to the block, or rounds a sum. factor: of a product. */
static void copy_operand(emitting *e, uint32_t parent, uint32_t scope, uint32_t i, bool factor) {
    const search_node *n = &e->w.s->node[i];
    if (e->copy[i] != PO_NONE)
        return;
    const char *name = n->kind == SEARCH_LEAF ? e->w.p->naive->tensors[n->tensor].name : "t";
    po_mu_access from = where(e, i, PO_NONE, PO_NONE);
    uint32_t to = add_led(e, po_arena_printf(e->w.p->arena, "%s/block", name), PO_MU_SHARED,
                          n->labels, false, has_row(e, i), scope);
    set_type(e, to,
             factor && e->w.p->half != PO_MU_F32 ? e->w.p->half
                                                 : gpu_device_type(e->w.p, e->w.s, i));
    move(e, parent, led_access(e, to, n->labels, false, has_row(e, i), PO_NONE), from);
    e->copy[i] = to;
}

/* Before a stage: what lies in memory. inside: of the loop, all that moves with it, so that it can
 * be fetched ahead. */
static void copy_operands(emitting *e, uint32_t parent, uint32_t scope, bool inside,
                          const bool *wanted) {
    uint32_t operand[2];
    for (uint32_t i = 0; i <= e->k->root; i++) {
        if (!wanted[i] || !gpu_is_product(e->w.p, e->w.s, &e->l, i, operand))
            continue;
        for (uint32_t a = 0; a < 2; a++) {
            bool moves =
                e->k->loop != PO_NONE && (e->w.s->node[operand[a]].labels >> e->k->loop & 1);
            if (e->l.stage[operand[a]] == SEARCH_OUTSIDE && moves == inside)
                copy_operand(e, parent, scope, operand[a], true);
        }
    }
    for (uint32_t i = 0; i <= e->k->root && inside; i++) {
        const search_node *n = &e->w.s->node[i];
        for (uint32_t a = 0; a < search_arity(n) && e->l.stage[i] != SEARCH_OUTSIDE; a++)
            if (e->l.stage[n->arg[a]] == SEARCH_OUTSIDE &&
                (e->w.s->node[n->arg[a]].labels >> e->k->loop & 1))
                copy_operand(e, parent, scope, n->arg[a], false);
    }
}

/* --- nodes --- */

static void update_maximum(emitting *e, uint32_t parent, uint32_t old) {
    uint32_t i = e->l.shift;
    weigh(e, parent, as_node(e, e->factor, i), as_node(e, old, i), as_node(e, e->tensor[i], i));
    for (uint32_t k = 0; k <= e->k->root; k++)
        if (e->l.rescaled[k])
            multiply(e, parent, PO_MU_SET, as_node(e, e->tensor[k], k), as_node(e, e->tensor[k], k),
                     as_node(e, e->factor, i));
}

static void write_node(emitting *e, uint32_t parent, uint32_t i) {
    po_mu *mu = e->w.to->mu;
    const search_node *n = &e->w.s->node[i];
    bool reduces = n->kind != SEARCH_FUNCTION, is_root = i == e->k->root;
    uint32_t old = PO_NONE, operand[2], scope = parent == e->loop ? e->loop : e->scope;
    bool product = gpu_is_product(e->w.p, e->w.s, &e->l, i, operand);
    if (product)
        for (uint32_t a = 0; a < 2; a++)
            if (e->w.s->node[operand[a]].kind == SEARCH_SUM && e->w.p->half != PO_MU_F32)
                copy_operand(e, parent, scope, operand[a], true);
    if (i == e->l.shift) {
        old = add_shared(e, "old", i, e->loop);
        e->factor = add_shared(e, "factor", i, e->loop);
        move(e, parent, as_node(e, old, i), as_node(e, e->tensor[i], i));
    }
    uint32_t own = e->tensor[i];
    if (is_root && reduces && !e->l.in_loop_sum[i])
        own = add_shared(e, "sum", i, scope);
    statement st = start(e, parent,
                         n->kind == SEARCH_SUM       ? PO_MU_ADD
                         : n->kind == SEARCH_MAXIMUM ? PO_MU_MAXIMUM
                                                     : PO_MU_SET,
                         i);
    st.is_product = product;
    st.vector = vector_of(e, i);
    if (st.vector != PO_NONE && e->row == PO_NONE)
        e->row = po_mu_add_label(mu, "row", 1);
    st.row = st.vector == PO_NONE ? PO_NONE : e->row;
    value_of(&st, reduces ? n->arg[0] : i);
    mu->nodes[st.id].statement.fresh = reduces && i != e->l.shift && !e->l.rescaled[i];
    mu->nodes[st.id].statement.out =
        is_root && !reduces ? root_access(e) : with_row(e, own, i, st.row);
    if (i == e->l.shift)
        update_maximum(e, parent, old);
    if (is_root && reduces && !e->l.in_loop_sum[i])
        move(e, parent, root_access(e), as_node(e, own, i));
}

static void write_stage(emitting *e, uint32_t parent, search_stage stage, const bool *wanted) {
    for (uint32_t i = 0; i <= e->k->root; i++)
        if (e->l.stage[i] == stage && (!wanted || wanted[i]))
            write_node(e, parent, i);
}

/* --- kernels --- */

static void open_grid(emitting *e, const char *what, uint32_t at, uint32_t of, const int64_t *chunk,
                      bool parts) {
    po_mu *mu = e->w.to->mu;
    po_text name;
    po_text_init(&name, e->w.p->arena);
    po_text_puts(&name, mu->name);
    if (of > 1)
        po_text_printf(&name, ", part %u of %u", at + 1, of);
    po_text_puts(&name, what);
    e->step = e->grid = po_mu_add_step(mu, name.data);
    e->loop = e->scope = PO_NONE;
    for (uint32_t i = 0; i < e->k->n_grid; i++)
        e->grid = e->scope = po_mu_add_loop(mu, e->grid, PO_MU_GRID,
                                            e->w.label[e->k->grid[i]].terms[0].label, chunk[i]);
    if (parts)
        e->grid = e->scope = po_mu_add_loop(mu, e->grid, PO_MU_GRID, e->number, 1);
    for (uint32_t i = 0; i < SEARCH_NODES; i++)
        e->copy[i] = PO_NONE;
}

/* The nodes that these need, themselves included; what the loop has added up needs no more. */
static void find_wanted(const emitting *e, bool *wanted) {
    for (uint32_t i = e->k->root + 1; i-- > 0;) {
        const search_node *n = &e->w.s->node[i];
        if (!wanted[i] || e->l.stage[i] == SEARCH_OUTSIDE)
            continue;
        for (uint32_t k = 0; k < search_arity(n); k++)
            wanted[n->arg[k]] = true;
    }
}

/* Places of what outlives the loop. */
static void add_places(emitting *e, const bool *wanted) {
    for (uint32_t i = 0; i <= e->k->root; i++) {
        search_stage stage = e->l.stage[i];
        if (!wanted[i] || stage == SEARCH_OUTSIDE || stage == SEARCH_INLINE ||
            (stage == SEARCH_INSIDE && !e->l.in_loop_sum[i]) ||
            (i == e->k->root && !e->l.in_loop_sum[i]) || (stage == SEARCH_AFTER && e->k->parts > 1))
            continue;
        e->split[i] = e->k->parts > 1 && e->l.in_loop_sum[i];
        e->tensor[i] = add_shared(e, e->l.in_loop_sum[i] ? "sum" : "t", i, e->scope);
        set_type(e, e->tensor[i], gpu_shared_type(e->w.p, e->w.s, &e->l, e->k->root, i));
    }
}

static void write_loop(emitting *e, const bool *wanted) {
    po_mu *mu = e->w.to->mu;
    for (uint32_t i = 0; i <= e->k->root; i++) {
        if (i == e->l.shift)
            fill(e, e->grid, as_node(e, e->tensor[i], i), -(double)INFINITY);
        if (e->l.rescaled[i])
            fill(e, e->grid, as_node(e, e->tensor[i], i), 0);
    }
    e->loop =
        po_mu_add_loop(mu, e->grid, PO_MU_FOR, e->w.label[e->k->loop].terms[0].label, e->k->step);
    for (uint32_t i = 0; i < e->k->root; i++)
        if (e->l.stage[i] == SEARCH_INSIDE && !e->l.in_loop_sum[i]) {
            /* What depends on the running maximum differs from part to part. */
            e->tensor[i] = add_shared(e, "t", i, e->loop);
            set_type(e, e->tensor[i], gpu_shared_type(e->w.p, e->w.s, &e->l, e->k->root, i));
        }
    copy_operands(e, e->loop, e->loop, true, wanted);
    write_stage(e, e->loop, SEARCH_INSIDE, NULL);
}

/* Adds up the parts in a step of its own, and ends the kernel there. */
static void combine(emitting *e, uint32_t at, uint32_t of) {
    bool wanted[SEARCH_NODES] = {false};
    int64_t chunk[PO_MU_MAX_GRID];
    uint32_t shift = e->l.shift, weight = PO_NONE;
    wanted[e->k->root] = true;
    for (uint32_t i = e->k->root + 1; i-- > 0;)
        for (uint32_t k = 0; k < search_arity(&e->w.s->node[i]) && wanted[i] &&
                             !e->l.in_loop_sum[i] && e->l.stage[i] != SEARCH_OUTSIDE;
             k++)
            wanted[e->w.s->node[i].arg[k]] = true;
    for (uint32_t i = 0; i <= e->k->root; i++)
        if (e->l.in_loop_sum[i] && (wanted[i] || i == shift)) {
            uint64_t labels = e->w.s->node[i].labels;
            e->part[i] = add_split(e, "part", PO_MU_DEVICE, labels, PO_NONE);
            move(e, e->grid, split_access(e, e->part[i], labels), as_node(e, e->tensor[i], i));
        }
    gpu_combine_chunks(e->w.p, e->k, chunk);
    make_labels(e, false);
    open_grid(e, ", parts added up", at, of, chunk, false);
    bool end[SEARCH_NODES];
    for (uint32_t i = 0; i < SEARCH_NODES; i++)
        end[i] = wanted[i] && !e->l.in_loop_sum[i];
    copy_operands(e, e->grid, e->scope, false, end);
    for (uint32_t i = 0; i <= e->k->root; i++) {
        search_stage stage = e->l.stage[i];
        bool here = e->l.in_loop_sum[i] || stage == SEARCH_BEFORE || stage == SEARCH_AFTER;
        e->split[i] = false;
        if (!here || (!wanted[i] && i != shift) || (i == e->k->root && !e->l.in_loop_sum[i]))
            continue;
        e->tensor[i] = add_shared(e, e->l.in_loop_sum[i] ? "sum" : "t", i, e->scope);
        set_type(e, e->tensor[i], gpu_shared_type(e->w.p, e->w.s, &e->l, e->k->root, i));
    }
    write_stage(e, e->grid, SEARCH_BEFORE, wanted);
    for (uint32_t i = 0; i <= e->k->root; i++) {
        const search_node *n = &e->w.s->node[i];
        if (!e->l.in_loop_sum[i] || (!wanted[i] && i != shift))
            continue;
        po_mu_access to = as_node(e, e->tensor[i], i);
        po_mu_access from = split_access(e, e->part[i], n->labels);
        if (e->l.rescaled[i]) {
            multiply(e, e->grid, PO_MU_ADD, to, from,
                     split_access(e, weight, e->w.s->node[shift].labels));
        } else {
            statement st =
                start(e, e->grid, n->kind == SEARCH_MAXIMUM ? PO_MU_MAXIMUM : PO_MU_ADD, PO_NONE);
            e->w.to->mu->nodes[st.id].statement.out = to;
            e->w.to->mu->nodes[st.id].statement.fresh = true;
            operand_of(&st, from);
        }
        if (i == shift) {
            weight = add_split(e, "weight", PO_MU_SHARED, n->labels, e->scope);
            weigh(e, e->grid, split_access(e, weight, n->labels), from, to);
        }
    }
}

static void write_kernel(emitting *e, uint32_t at, uint32_t of) {
    uint32_t root = e->k->root;
    bool wanted[SEARCH_NODES] = {false};
    gpu_lay(e->w.p, e->w.s, e->k, e->made, &e->l);
    for (uint32_t i = 0; i < SEARCH_NODES; i++) {
        e->split[i] = false;
        e->part[i] = PO_NONE;
        wanted[i] = i == root || e->l.in_loop_sum[i];
        wanted[i] &= e->k->parts <= 1 || e->l.in_loop_sum[i];
    }
    find_wanted(e, wanted);
    make_labels(e, true);
    open_grid(e, "", at, of, e->k->chunk, e->k->parts > 1);
    if (root + 1 < e->w.s->n && !e->l.in_loop_sum[root]) {
        e->tensor[root] =
            search_tensor(&e->w, "t", PO_MU_DEVICE, e->w.s->node[root].labels, PO_NONE);
        set_type(e, e->tensor[root], gpu_device_type(e->w.p, e->w.s, root));
    }
    add_places(e, wanted);
    copy_operands(e, e->grid, e->scope, false, wanted);
    write_stage(e, e->grid, SEARCH_BEFORE, wanted);
    if (e->k->loop != PO_NONE)
        write_loop(e, wanted);
    if (e->k->parts > 1)
        combine(e, at, of);
    write_stage(e, e->grid, SEARCH_AFTER, NULL);
    if (e->l.in_loop_sum[root]) {
        po_mu_access from = as_node(e, e->tensor[root], root);
        if (root + 1 < e->w.s->n) {
            e->tensor[root] =
                search_tensor(&e->w, "t", PO_MU_DEVICE, e->w.s->node[root].labels, PO_NONE);
            set_type(e, e->tensor[root], gpu_device_type(e->w.p, e->w.s, root));
        }
        move(e, e->grid, root_access(e), from);
    }
    if (root + 1 < e->w.s->n)
        e->made[root] = true;
}

void gpu_emit(const search_problem *p, const search_plan *plan, po_schedule *to) {
    emitting e = {.w = {.p = p, .s = plan->skeleton, .to = to, .as_is = true}};
    e.w.leaf = PO_NEW_N(p->arena, uint32_t, to->naive->n_tensors);
    for (uint32_t i = 0; i < to->naive->n_tensors; i++)
        e.w.leaf[i] = PO_NONE;
    for (uint32_t i = 0; i < plan->n; i++) {
        e.k = &plan->kernel[i];
        write_kernel(&e, i, plan->n);
    }
    for (uint32_t i = 0; i < to->mu->n_tensors; i++)
        po_mu_layout(to->mu, i, 1, 0);
}

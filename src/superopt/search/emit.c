/* A plan as a muGraph: steps, loops, statements, tiles, places. */
#include "superopt/search/write.h"

#include <math.h>

typedef struct emitting {
    search_writer w;
    uint32_t tensor[SEARCH_NODES]; /* where a node's value lies; PO_NONE */
    bool made[SEARCH_NODES];
    /* of the kernel under way */
    const search_kernel *k;
    search_layout l;
    int64_t panel[PO_FORM_CLASSES]; /* 0: not cut into panels */
    uint32_t step, grid, loop;      /* nodes; PO_NONE */
    uint32_t factor;                /* tensor: exp(old maximum - maximum) */
    const char *name;               /* of the steps */
    bool copied[SEARCH_NODES];      /* by sum: its operand, to the block */
    po_mu_access copy[SEARCH_NODES];
} emitting;

/* --- labels --- */

static void make_labels(emitting *e) {
    const search_problem *p = e->w.p;
    memset(e->w.label, 0, sizeof e->w.label);
    memset(e->panel, 0, sizeof e->panel);
    uint64_t used = 0;
    for (uint32_t i = 0; i <= e->k->root; i++) {
        const search_node *n = &e->w.s->node[i];
        bool reduced;
        if (e->l.stage[i] == SEARCH_OUTSIDE)
            continue;
        used |= n->labels;
        for (uint32_t k = 0; k < search_arity(n); k++)
            used |= e->w.s->node[n->arg[k]].labels;
        uint32_t lane = search_lane(p, e->w.s, &e->l, i, &reduced);
        const search_node *x = &e->w.s->node[n->arg[0]];
        for (uint32_t k = 0; n->kind == SEARCH_SUM && k < search_arity(x); k++)
            if (search_is_packed(p, e->w.s, i, x->arg[k], lane))
                e->panel[lane] = search_panel(p, lane);
    }
    /* Panels first, then the order of axes: statements run through them in this order. */
    uint32_t number[PO_FORM_CLASSES];
    for (uint32_t c = 0; c < p->n_classes; c++)
        if ((used >> c & 1) && e->panel[c] && e->panel[c] < p->extent[c])
            number[c] = po_mu_add_label(e->w.to->mu, po_arena_printf(p->arena, "%sb", p->name[c]),
                                        p->extent[c] / e->panel[c]);
    for (uint32_t place = 0; place < p->n_classes; place++)
        for (uint32_t c = 0; c < p->n_classes; c++) {
            if (p->place[c] != place || !(used >> c & 1))
                continue;
            po_for_label *f = &e->w.label[c];
            int64_t within = e->panel[c] ? e->panel[c] : p->extent[c];
            f->n = 1;
            f->terms[0] = (po_mu_term){po_mu_add_label(e->w.to->mu, p->name[c], within), 1};
            if (within < p->extent[c])
                f->terms[f->n++] = (po_mu_term){number[c], within};
        }
}

/* The label that a loop over the class binds, and its chunk. */
static uint32_t bound(const emitting *e, uint32_t class, int64_t *chunk) {
    const po_for_label *f = &e->w.label[class];
    if (f->n == 1)
        return f->terms[0].label;
    *chunk = *chunk / e->panel[class] > 0 ? *chunk / e->panel[class] : 1;
    return f->terms[1].label;
}

static po_mu_access packed_access(emitting *e, uint32_t naive, uint32_t lane) {
    const po_mu_tensor *t = &e->w.p->naive->tensors[naive];
    po_panels panels = {.weight_tensor = e->w.view ? e->w.view[naive].tensor : naive,
                        .split = PO_NONE,
                        .panel = e->panel[lane]};
    for (uint32_t x = 0; x < t->rank; x++)
        if (e->w.p->axes[naive][x] == lane)
            panels.split = x;
        else
            panels.order[panels.n_order++] = x;
    po_mu_access a = po_mu_access_of(e->w.to->mu, po_pack_weight(e->w.to, &panels));
    const po_for_label *f = &e->w.label[lane];
    po_mu_at(e->w.to->mu, &a, panels.n_order + 1, 1, f->terms[0].label);
    if (f->n > 1)
        po_mu_at(e->w.to->mu, &a, 0, 1, f->terms[1].label);
    for (uint32_t i = 0; i < panels.n_order; i++)
        if (e->w.p->axes[naive][panels.order[i]] != PO_NONE)
            search_at(&e->w, &a, i + 1, e->w.p->axes[naive][panels.order[i]]);
    return a;
}

/* --- statements --- */

typedef struct statement {
    emitting *e;
    uint32_t id, node, lane; /* of the skeleton; class */
    uint32_t item[SEARCH_NODES];
} statement;

static uint32_t operand_of(statement *st, po_mu_access access) {
    po_mu *mu = st->e->w.to->mu;
    return po_mu_item_of(mu, st->id, PO_MU_OPERAND, po_mu_operand(mu, st->id, access), 0, 0);
}

static uint32_t value_of(statement *st, uint32_t i) {
    emitting *e = st->e;
    const search_node *n = &e->w.s->node[i];
    if (st->item[i] != PO_NONE)
        return st->item[i];
    if (n->kind == SEARCH_NUMBER)
        st->item[i] = search_number(&e->w, st->id, n);
    else if (n->kind == SEARCH_LEAF)
        st->item[i] = operand_of(st, search_is_packed(e->w.p, e->w.s, st->node, i, st->lane)
                                         ? packed_access(e, n->tensor, st->lane)
                                         : search_border_access(&e->w, n->tensor));
    else if (i != st->node && e->l.stage[i] != SEARCH_INLINE)
        st->item[i] = operand_of(st, search_access(&e->w, e->tensor[i], n->labels));
    else {
        uint32_t x[3] = {0, 0, 0};
        for (uint32_t k = 0; k < search_arity(n); k++)
            x[k] = value_of(st, n->arg[k]);
        st->item[i] = po_mu_item_of(e->w.to->mu, st->id, n->function, x[0], x[1], x[2]);
    }
    return st->item[i];
}

/* Copies an operand of a sum to the block, its lane last. */
static void make_copy(emitting *e, uint32_t parent, uint32_t sum, uint32_t leaf, uint32_t lane,
                      bool turned) {
    po_mu *mu = e->w.to->mu;
    const uint64_t labels = e->w.s->node[leaf].labels;
    uint32_t classes[PO_FORM_CLASSES];
    uint32_t n = search_classes_of(e->w.p, labels & ~((uint64_t)1 << lane), classes);
    int64_t dims[PO_MU_MAX_RANK];
    classes[n] = lane;
    for (uint32_t x = 0; x <= n; x++)
        dims[x] = e->w.p->extent[classes[x]];
    uint32_t copy = po_mu_add_tensor(mu, "strip", PO_MU_SHARED, n + 1, dims);
    mu->tensors[copy].scope = parent == e->step ? PO_NONE : parent;
    uint32_t id = po_mu_add_statement(mu, parent, PO_MU_SET);
    po_mu_access to = po_mu_access_of(mu, copy);
    for (uint32_t x = 0; x <= n; x++)
        search_at(&e->w, &to, x, classes[x]);
    e->copy[sum] = to;
    e->copied[sum] = true;
    mu->nodes[id].statement.out = to;
    po_mu_item_of(mu, id, PO_MU_OPERAND,
                  po_mu_operand(mu, id, search_border_access(&e->w, e->w.s->node[leaf].tensor)), 0,
                  0);
    if (turned && e->w.p->extent[lane] >= PO_MU_VECTOR) { /* squares of so many rows and lanes */
        const uint32_t row = classes[n - 1];
        const int64_t rows = e->w.p->extent[row];
        mu->nodes[id].statement.lane = e->w.label[lane].terms[0].label;
        mu->nodes[id].statement.vectors = 1;
        mu->nodes[id].statement.row = e->w.label[row].terms[0].label;
        mu->nodes[id].statement.rows = (uint32_t)(rows < PO_MU_VECTOR ? rows : PO_MU_VECTOR);
        return;
    }
    int64_t size = e->k->step < e->w.p->extent[lane] ? e->k->step : e->w.p->extent[lane];
    if (size >= PO_MU_VECTOR) {
        mu->nodes[id].statement.lane = e->w.label[lane].terms[0].label;
        mu->nodes[id].statement.vectors =
            (uint32_t)((size < 64 ? size + PO_MU_VECTOR - 1 : 64) / PO_MU_VECTOR);
    }
}

/* What the loop reads again and again is copied before it. */
static void make_copies_before_loop(emitting *e) {
    for (uint32_t i = 0; i <= e->k->root; i++) {
        bool turned, reduced;
        if (e->l.stage[i] != SEARCH_INSIDE || e->w.s->node[i].kind != SEARCH_SUM)
            continue;
        const uint32_t lane = search_lane(e->w.p, e->w.s, &e->l, i, &reduced);
        const uint32_t leaf = search_copied(e->w.p, e->w.s, e->k, &e->l, i, lane, &turned);
        if (leaf != PO_NONE && !(e->w.s->node[leaf].labels >> e->k->loop & 1))
            make_copy(e, e->grid, i, leaf, lane, turned);
    }
}

static uint32_t chunk_rows(int64_t size) {
    enum { ROWS = 6 };
    int64_t parts = (size + ROWS - 1) / ROWS;
    return (uint32_t)((size + parts - 1) / parts);
}

static void tile(emitting *e, uint32_t id, uint32_t i) {
    po_mu_statement *s = &e->w.to->mu->nodes[id].statement;
    bool reduced;
    uint32_t lane = search_lane(e->w.p, e->w.s, &e->l, i, &reduced), row;
    if (lane == PO_NONE)
        return;
    int64_t size = e->panel[lane] ? e->panel[lane] : e->w.p->extent[lane];
    s->lane = e->w.label[lane].terms[0].label;
    s->vectors = (uint32_t)((size < 64 ? size + PO_MU_VECTOR - 1 : 64) / PO_MU_VECTOR);
    int64_t rows = search_rows(e->w.p, e->w.s, e->k, &e->l, i, lane, &row);
    if (row != PO_NONE && rows > 1) {
        s->row = e->w.label[row].terms[0].label;
        s->rows = chunk_rows(rows);
    }
}

static void small(emitting *e, uint32_t parent, uint32_t tensor, uint64_t labels, double value) {
    uint32_t id = po_mu_add_statement(e->w.to->mu, parent, PO_MU_SET);
    e->w.to->mu->nodes[id].statement.out = search_access(&e->w, tensor, labels);
    po_mu_constant(e->w.to->mu, id, value);
}

/* tensor = tensor * factor */
static void rescale(emitting *e, uint32_t parent, uint32_t i) {
    po_mu *mu = e->w.to->mu;
    uint32_t id = po_mu_add_statement(mu, parent, PO_MU_SET);
    uint64_t labels = e->w.s->node[i].labels;
    mu->nodes[id].statement.out = search_access(&e->w, e->tensor[i], labels);
    uint32_t a = po_mu_operand(mu, id, search_access(&e->w, e->tensor[i], labels));
    uint32_t b =
        po_mu_operand(mu, id, search_access(&e->w, e->factor, e->w.s->node[e->l.shift].labels));
    uint32_t x = po_mu_item_of(mu, id, PO_MU_OPERAND, a, 0, 0);
    po_mu_item_of(mu, id, PO_MU_TIMES, x, po_mu_item_of(mu, id, PO_MU_OPERAND, b, 0, 0), 0);
    if (e->l.shift != PO_NONE && labels != e->w.s->node[e->l.shift].labels) {
        uint32_t classes[PO_FORM_CLASSES], n = search_classes_of(e->w.p, labels, classes);
        uint32_t last = n ? classes[n - 1] : PO_NONE;
        if (last != PO_NONE && e->w.p->extent[last] >= PO_MU_VECTOR) {
            po_mu_statement *s = &mu->nodes[id].statement;
            int64_t size = e->w.label[last].n > 1 ? e->panel[last] : e->w.p->extent[last];
            s->lane = e->w.label[last].terms[0].label;
            s->vectors = (uint32_t)((size < 64 ? size + PO_MU_VECTOR - 1 : 64) / PO_MU_VECTOR);
        }
    }
}

/* old = maximum; maximum max= ...; factor = exp(old - maximum) */
static void keep_old(emitting *e, uint32_t parent, uint32_t old) {
    po_mu *mu = e->w.to->mu;
    uint64_t labels = e->w.s->node[e->l.shift].labels;
    uint32_t id = po_mu_add_statement(mu, parent, PO_MU_SET);
    mu->nodes[id].statement.out = search_access(&e->w, old, labels);
    po_mu_item_of(mu, id, PO_MU_OPERAND,
                  po_mu_operand(mu, id, search_access(&e->w, e->tensor[e->l.shift], labels)), 0, 0);
}

static void make_factor(emitting *e, uint32_t parent, uint32_t old) {
    po_mu *mu = e->w.to->mu;
    uint64_t labels = e->w.s->node[e->l.shift].labels;
    uint32_t id = po_mu_add_statement(mu, parent, PO_MU_SET);
    mu->nodes[id].statement.out = search_access(&e->w, e->factor, labels);
    uint32_t a = po_mu_operand(mu, id, search_access(&e->w, old, labels));
    uint32_t b = po_mu_operand(mu, id, search_access(&e->w, e->tensor[e->l.shift], labels));
    uint32_t x = po_mu_item_of(mu, id, PO_MU_OPERAND, a, 0, 0);
    uint32_t y = po_mu_item_of(mu, id, PO_MU_OPERAND, b, 0, 0);
    po_mu_item_of(mu, id, PO_MU_EXP, po_mu_item_of(mu, id, PO_MU_MINUS, x, y, 0), 0, 0);
}

/* The next slice of a weight comes while this one is worked with. */
static void fetch_ahead(emitting *e, uint32_t id, uint32_t i, uint32_t lane) {
    po_mu_statement *s = &e->w.to->mu->nodes[id].statement;
    if (!e->l.in_loop_sum[i] || s->row == PO_NONE)
        return;
    for (uint32_t k = 0; k < s->n_in; k++)
        if (e->w.to->mu->tensors[s->in[k].tensor].place == PO_MU_WEIGHT) {
            s->ahead = e->k->step * e->panel[lane];
            s->ahead_of = k;
        }
}

static void write_node(emitting *e, uint32_t parent, uint32_t i) {
    po_mu *mu = e->w.to->mu;
    const search_node *n = &e->w.s->node[i];
    uint32_t old = PO_NONE;
    if (e->l.fused[i]) { /* the argument in registers stands right before */
        uint32_t a = e->l.tile[i];
        e->tensor[a] = search_tensor(&e->w, "r", PO_MU_REGISTER, e->w.s->node[a].labels,
                                     parent == e->step ? PO_NONE : parent);
        write_node(e, parent, a);
    }
    if (i == e->l.shift) {
        old = search_tensor(&e->w, "old", PO_MU_SHARED, n->labels, e->loop);
        e->factor = search_tensor(&e->w, "factor", PO_MU_SHARED, n->labels, e->loop);
        keep_old(e, parent, old);
    }
    bool is_lane_reduced;
    uint32_t lane_class = search_lane(e->w.p, e->w.s, &e->l, i, &is_lane_reduced);
    bool turned = false;
    const uint32_t far = search_copied(e->w.p, e->w.s, e->k, &e->l, i, lane_class, &turned);
    if (far != PO_NONE && !e->copied[i])
        make_copy(e, parent, i, far, lane_class, turned);
    uint32_t id = po_mu_add_statement(mu, parent,
                                      n->kind == SEARCH_SUM       ? PO_MU_ADD
                                      : n->kind == SEARCH_MAXIMUM ? PO_MU_MAXIMUM
                                                                  : PO_MU_SET);
    bool reduces = n->kind != SEARCH_FUNCTION;
    statement st = {.e = e, .id = id, .node = i, .lane = lane_class};
    for (uint32_t k = 0; k < SEARCH_NODES; k++)
        st.item[k] = PO_NONE;
    if (far != PO_NONE)
        st.item[far] = operand_of(&st, e->copy[i]);
    value_of(&st, reduces ? n->arg[0] : i);
    mu->nodes[id].statement.fresh = reduces && i != e->l.shift && !e->l.rescaled[i];
    mu->nodes[id].statement.fused = e->l.fused[i];
    bool output = i + 1 == e->w.s->n;
    mu->nodes[id].statement.out = output ? search_border_access(&e->w, e->w.p->target)
                                         : search_access(&e->w, e->tensor[i], n->labels);
    if (!e->l.fused[i])
        tile(e, id, i);
    fetch_ahead(e, id, i, lane_class);
    if (i == e->l.shift)
        make_factor(e, parent, old);
    for (uint32_t k = 0; k <= e->k->root && i == e->l.shift; k++)
        if (e->l.rescaled[k])
            rescale(e, parent, k);
}

static void write_stage(emitting *e, uint32_t parent, search_stage stage) {
    for (uint32_t i = 0; i <= e->k->root; i++)
        if (e->l.stage[i] == stage && !e->l.on_tile[i])
            write_node(e, parent, i);
}

static void kernel(emitting *e, uint32_t number, uint32_t of) {
    po_mu *mu = e->w.to->mu;
    search_lay(e->w.p, e->w.s, e->k, e->made, &e->l);
    make_labels(e);
    e->step = e->grid = po_mu_add_step(
        mu, of > 1 ? po_arena_printf(mu->arena, "%s, part %u of %u", e->name, number + 1, of)
                   : e->name);
    e->loop = PO_NONE;
    memset(e->copied, 0, sizeof e->copied);
    uint32_t scope = PO_NONE;
    for (uint32_t i = 0; i < e->k->n_grid; i++) {
        int64_t chunk = e->k->chunk[i];
        uint32_t label = bound(e, e->k->grid[i], &chunk);
        e->grid = scope = po_mu_add_loop(mu, e->grid, PO_MU_GRID, label, chunk);
    }
    for (uint32_t i = 0; i <= e->k->root; i++) {
        search_stage stage = e->l.stage[i];
        if (i == e->k->root && i + 1 < e->w.s->n)
            e->tensor[i] = search_tensor(&e->w, "t", PO_MU_DEVICE, e->w.s->node[i].labels, PO_NONE);
        else if (stage >= SEARCH_BEFORE && !e->l.on_tile[i] && stage != SEARCH_INSIDE &&
                 i + 1 < e->w.s->n)
            e->tensor[i] = e->l.over[i] != PO_NONE ? e->tensor[e->l.over[i]]
                                                   : search_tensor(&e->w, "t", PO_MU_SHARED,
                                                                   e->w.s->node[i].labels, scope);
        else if (e->l.in_loop_sum[i])
            e->tensor[i] = search_tensor(&e->w, "t", PO_MU_SHARED, e->w.s->node[i].labels, scope);
        else if (e->l.on_tile[i])
            e->tensor[i] = PO_NONE;
    }
    write_stage(e, e->grid, SEARCH_BEFORE);
    for (uint32_t i = 0; i <= e->k->root; i++) {
        if (i == e->l.shift)
            small(e, e->grid, e->tensor[i], e->w.s->node[i].labels, -(double)INFINITY);
        if (e->l.rescaled[i])
            small(e, e->grid, e->tensor[i], e->w.s->node[i].labels, 0);
    }
    if (e->k->loop != PO_NONE) {
        int64_t chunk = e->k->step;
        make_copies_before_loop(e);
        uint32_t label = bound(e, e->k->loop, &chunk);
        e->loop = po_mu_add_loop(mu, e->grid, PO_MU_FOR, label, chunk);
        for (uint32_t i = 0; i < e->k->root; i++)
            if (e->l.stage[i] == SEARCH_INSIDE && !e->l.in_loop_sum[i] && !e->l.on_tile[i])
                e->tensor[i] =
                    e->l.over[i] != PO_NONE
                        ? e->tensor[e->l.over[i]]
                        : search_tensor(&e->w, "t", PO_MU_SHARED, e->w.s->node[i].labels, e->loop);
        write_stage(e, e->loop, SEARCH_INSIDE);
    }
    write_stage(e, e->grid, SEARCH_AFTER);
    if (e->k->root + 1 < e->w.s->n)
        e->made[e->k->root] = true;
}

/* Writes the steps, and lays out what they keep; what is INPUT or OUTPUT is the caller's. */
static void write_steps(emitting *e, const search_plan *plan) {
    const search_problem *p = e->w.p;
    po_mu *mu = e->w.to->mu;
    const uint32_t before = mu->n_tensors;
    e->w.leaf = PO_NEW_N(p->arena, uint32_t, p->naive->n_tensors + 1);
    for (uint32_t i = 0; i < p->naive->n_tensors; i++)
        e->w.leaf[i] = PO_NONE;
    for (uint32_t i = 0; i < plan->n; i++) {
        e->k = &plan->kernel[i];
        kernel(e, i, plan->n);
    }
    for (uint32_t i = before; i < mu->n_tensors; i++) {
        const po_mu_tensor *t = &mu->tensors[i];
        bool is_border = false;
        for (uint32_t k = 0; k < p->naive->n_tensors; k++)
            is_border |= e->w.leaf[k] == i;
        for (uint32_t k = 0; k < e->w.to->naive->n_tensors; k++)
            is_border |= e->w.to->tensor[k] == i;
        if (t->place == PO_MU_REGISTER)
            po_mu_layout(mu, i, 1, 0);
        else if (!is_border && (t->place == PO_MU_SHARED || t->place == PO_MU_DEVICE))
            po_schedule_lay(mu, i);
    }
}

const uint32_t *search_emit(const search_problem *p, const search_plan *plan, po_schedule *to) {
    emitting e = {.w = {.p = p, .s = plan->skeleton, .to = to}, .name = to->mu->name};
    write_steps(&e, plan);
    const char **name = PO_NEW_N(p->arena, const char *, p->naive->n_tensors + 1);
    for (uint32_t k = 0; k < p->naive->n_tensors; k++)
        name[k] = e.w.leaf[k] == PO_NONE ? NULL : to->mu->tensors[e.w.leaf[k]].name;
    po_schedule_finish(to);
    for (uint32_t k = 0; k < p->naive->n_tensors; k++) {
        e.w.leaf[k] = PO_NONE; /* numbers have changed, names have not */
        for (uint32_t i = 0; i < to->mu->n_tensors && name[k]; i++)
            if (strcmp(to->mu->tensors[i].name, name[k]) == 0)
                e.w.leaf[k] = i;
    }
    return e.w.leaf;
}

void po_search_append(const po_found *found, const po_mu_view *view, const char *name,
                      po_schedule *to) {
    emitting e = {.w = {.p = found->problem, .s = found->plan->skeleton, .to = to, .view = view},
                  .name = name};
    write_steps(&e, found->plan);
}

void search_tell_plan(const search_problem *p, const search_plan *plan, po_text *text) {
    for (uint32_t i = 0; i < plan->n; i++) {
        const search_kernel *k = &plan->kernel[i];
        po_text_printf(text, "%skernel", i ? "; " : "");
        for (uint32_t g = 0; g < k->n_grid; g++)
            po_text_printf(text, "%s %s by %lld", g ? "," : " grid", p->name[k->grid[g]],
                           (long long)k->chunk[g]);
        if (k->loop != PO_NONE)
            po_text_printf(text, " for %s by %lld", p->name[k->loop], (long long)k->step);
        if (k->parts > 1)
            po_text_printf(text, " in %lld parts", (long long)k->parts);
        if (i + 1 < plan->n)
            po_text_printf(text, " makes n%u", k->root);
    }
}

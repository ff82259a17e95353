/* What schedulers share, and the list of them. */
#include "base/num.h"
#include "superopt/schedule/internal.h"

static const po_scheduler *const schedulers[] = {
    &po_schedule_winograd, &po_schedule_strassen, &po_schedule_planes, &po_schedule_direct,
    &po_schedule_turned,   &po_schedule_blocks,   &po_schedule_map};

double po_choice_magnifies(const po_choice *choice) {
    return choice->how->magnifies ? choice->how->magnifies(choice) : 1;
}

/* Leaves out, from number `from` on, what makes more of rounding. */
static uint32_t drop_rough(po_choice *choices, uint32_t from, uint32_t n, double most) {
    for (uint32_t i = from; i < n; i++)
        if (most <= 0 || po_choice_magnifies(&choices[i]) <= most)
            choices[from++] = choices[i];
    return from;
}

uint32_t po_choices_of(const po_mu *naive, uint32_t step, const po_isa *isa, double most,
                       po_choice choices[PO_CHOICES_MAX]) {
    uint32_t n = 0;
    for (size_t i = 0; i < sizeof schedulers / sizeof schedulers[0]; i++) {
        uint32_t before = n;
        n = drop_rough(choices, before, schedulers[i]->list(naive, step, isa, choices, n), most);
        /* Behind choices that do less work the plain ones are there for safety. */
        const po_scheduler *last = before > 0 ? choices[before - 1].how : NULL;
        if (last && n > before && last != &po_schedule_strassen && last != &po_schedule_planes)
            n = before + 1;
        if (n > before && schedulers[i] == &po_schedule_direct)
            break;
    }
    return n;
}

int64_t po_panel_parts(const po_isa *isa, const int64_t panel[2]) {
    int64_t rows = panel[1], lanes = panel[0];
    po_isa_tile(isa, 0, &rows, &lanes);
    return po_ceil_div(panel[0], lanes);
}

/* --- looking at a step --- */

bool po_ends_outside(const po_mu *mu, const po_mu_access *out, uint32_t label) {
    if (label == PO_NONE)
        return true;
    const uint32_t axis = po_access_axis(mu, out, label);
    if (axis == PO_NONE)
        return false;
    const po_mu_index *index = &out->axes[axis];
    const int64_t coef = po_mu_coef(index, label);
    for (uint32_t i = 0; i < index->n; i++)
        if (index->terms[i].coef < 0)
            return false;
    return coef > 0 &&
           index->offset + coef * mu->labels[label].extent >= mu->tensors[out->tensor].dims[axis];
}

uint32_t po_access_axis(const po_mu *mu, const po_mu_access *access, uint32_t label) {
    uint32_t axis = PO_NONE;
    for (uint32_t x = 0; x < mu->tensors[access->tensor].rank; x++)
        if (po_mu_coef(&access->axes[x], label) != 0) {
            if (axis != PO_NONE)
                return PO_NONE;
            axis = x;
        }
    return axis;
}

bool po_is_reduced(const po_mu *mu, const po_naive_step *n, uint32_t label) {
    if (po_mu_has(mu, &n->s->out, label))
        return false;
    for (uint32_t i = 0; i < n->s->n_in; i++)
        if (po_mu_has(mu, &n->s->in[i], label))
            return true;
    return false;
}

static void find_roles(const po_mu *mu, po_naive_step *n) {
    const po_mu_index *last = po_mu_last_axis(mu, n->out);
    n->lane = PO_NONE;
    for (uint32_t i = 0; i < last->n; i++)
        if (last->terms[i].coef == 1)
            n->lane = last->terms[i].label;
    if (n->lane == PO_NONE || n->s->combine != PO_MU_ADD || n->s->n_in != 2 || n->s->n_items != 3 ||
        n->s->items[2].function != PO_MU_TIMES)
        return;
    bool first = po_mu_has(mu, &n->s->in[0], n->lane);
    bool second = po_mu_has(mu, &n->s->in[1], n->lane);
    n->product = first != second;
    n->a = first ? 1 : 0;
    n->b = first ? 0 : 1;
}

bool po_naive_step_of(const po_mu *mu, uint32_t step, po_naive_step *n) {
    *n = (po_naive_step){.main = mu->nodes[step].first, .fused = PO_NONE};
    if (n->main == PO_NONE || mu->nodes[n->main].kind != PO_MU_STATEMENT)
        return false;
    n->fused = mu->nodes[n->main].next;
    if (n->fused != PO_NONE &&
        (mu->nodes[n->fused].next != PO_NONE || !mu->nodes[n->fused].statement.fused))
        return false;
    n->s = &mu->nodes[n->main].statement;
    n->tail = n->fused == PO_NONE ? NULL : &mu->nodes[n->fused].statement;
    n->out = n->tail ? &n->tail->out : &n->s->out;
    find_roles(mu, n);
    return true;
}

/* --- building --- */

void po_schedule_start(po_schedule *s, po_arena *arena, const po_mu *naive, bool lone) {
    *s = (po_schedule){.arena = arena,
                       .naive = naive,
                       .mu = po_mu_create(arena, naive->name),
                       .tensor = PO_NEW_N(arena, uint32_t, naive->n_tensors),
                       .lone = lone};
    for (uint32_t i = 0; i < naive->n_tensors; i++)
        s->tensor[i] = PO_NONE;
}

uint32_t po_twin(po_schedule *s, uint32_t naive_tensor) {
    const po_mu_tensor *t = &s->naive->tensors[naive_tensor];
    if (s->tensor[naive_tensor] != PO_NONE)
        return s->tensor[naive_tensor];
    if (t->place == PO_MU_WEIGHT) {
        po_panels p = {.weight_tensor = naive_tensor, .split = PO_NONE, .n_order = t->rank};
        for (uint32_t i = 0; i < t->rank; i++)
            p.order[i] = i;
        return po_pack_weight(s, &p);
    }
    bool border = t->place == PO_MU_INPUT || t->place == PO_MU_OUTPUT;
    uint32_t id = po_mu_add_tensor(s->mu, t->name, border && s->lone ? PO_MU_DEVICE : t->place,
                                   t->rank, t->dims);
    s->mu->tensors[id].number = t->number;
    s->mu->tensors[id].table = t->table;
    s->tensor[naive_tensor] = id;
    return id;
}

po_mu_access po_access_by(po_mu *mu, uint32_t tensor, const uint32_t *labels) {
    po_mu_access access = po_mu_access_of(mu, tensor);
    for (uint32_t x = 0; x < mu->tensors[tensor].rank; x++)
        if (labels[x] != PO_NONE)
            po_mu_at(mu, &access, x, 1, labels[x]);
    return access;
}

uint32_t po_add_product(po_mu *mu, uint32_t parent, po_mu_access out, po_mu_access a,
                        po_mu_access b) {
    uint32_t id = po_mu_add_statement(mu, parent, PO_MU_ADD);
    mu->nodes[id].statement.out = out;
    mu->nodes[id].statement.fresh = true;
    uint32_t x = po_mu_item_of(mu, id, PO_MU_OPERAND, po_mu_operand(mu, id, a), 0, 0);
    uint32_t y = po_mu_item_of(mu, id, PO_MU_OPERAND, po_mu_operand(mu, id, b), 0, 0);
    po_mu_item_of(mu, id, PO_MU_TIMES, x, y, 0);
    return id;
}

po_for_label *po_for_labels(const po_schedule *s) {
    return PO_NEW_N(s->scratch, po_for_label, s->naive->n_labels);
}

/* Maps of labels are as long as the naive muGraph has labels, and are done with after the step. */
void po_schedule_step(po_schedule *s, uint32_t step, const po_choice *choice) {
    s->scratch = po_arena_child(s->arena);
    choice->how->apply(s, step, choice);
    po_arena_free(s->scratch);
    s->scratch = NULL;
}

uint32_t po_keep_label(po_schedule *s, po_for_label *map, uint32_t label) {
    const po_mu_label *from = &s->naive->labels[label];
    if (!map[label].n) {
        map[label].n = 1;
        map[label].terms[0] = (po_mu_term){po_mu_add_label(s->mu, from->name, from->extent), 1};
    }
    return map[label].terms[0].label;
}

static void keep_labels_of(po_schedule *s, po_for_label *map, const po_mu_access *access) {
    for (uint32_t x = 0; x < s->naive->tensors[access->tensor].rank; x++)
        for (uint32_t i = 0; i < access->axes[x].n; i++)
            po_keep_label(s, map, access->axes[x].terms[i].label);
}

void po_keep_labels(po_schedule *s, po_for_label *map, const po_naive_step *n) {
    keep_labels_of(s, map, &n->s->out);
    for (uint32_t i = 0; i < n->s->n_in; i++)
        keep_labels_of(s, map, &n->s->in[i]);
}

static void map_index(po_schedule *s, const po_for_label *map, const po_mu_index *from,
                      po_mu_access *to, uint32_t axis) {
    po_mu_at(s->mu, to, axis, from->offset, PO_NONE);
    for (uint32_t i = 0; i < from->n; i++) {
        const po_for_label *f = &map[from->terms[i].label];
        for (uint32_t k = 0; k < f->n; k++)
            po_mu_at(s->mu, to, axis, from->terms[i].coef * f->terms[k].coef, f->terms[k].label);
    }
}

po_mu_access po_map_access_on(po_schedule *s, const po_for_label *map, const po_mu_access *access,
                              uint32_t rank, uint32_t tensor) {
    po_mu_access to = po_mu_access_of(s->mu, tensor);
    for (uint32_t x = 0; x < rank; x++)
        map_index(s, map, &access->axes[x], &to, x);
    return to;
}

po_mu_access po_map_access(po_schedule *s, const po_for_label *map, const po_mu_access *access) {
    return po_map_access_on(s, map, access, s->naive->tensors[access->tensor].rank,
                            po_twin(s, access->tensor));
}

/* --- weights --- */

bool po_packing_same(const po_packing *a, const po_packing *b) {
    return a->rank == b->rank && a->merged_rank == b->merged_rank &&
           memcmp(a->dims, b->dims, a->rank * sizeof *a->dims) == 0 &&
           memcmp(a->perm, b->perm, a->rank * sizeof *a->perm) == 0 &&
           memcmp(a->merged, b->merged, a->merged_rank * sizeof *a->merged) == 0;
}

/* Elements of the split axis from one panel to the next. */
static int64_t panel_step(const po_panels *p) {
    return p->within > 0 ? p->within : p->panel;
}

/* What the weight's axes are made of and padded to, one after the other. */
static void merge(po_packing *k, const po_mu_tensor *t, const po_panels *p) {
    for (uint32_t x = 0; x < t->rank; x++) {
        int64_t n = t->dims[x], whole = n;
        if (x == p->split && p->within > 0) {
            k->merged[k->merged_rank] = k->length[k->merged_rank] = n / p->within;
            k->merged_rank++;
            n = p->within;
            whole = p->panel;
        } else if (x == p->split) {
            whole = (n + p->panel - 1) / p->panel * p->panel;
        } else if (p->split == PO_NONE && x == p->order[p->n_order - 1]) { /* whole vectors */
            whole = (n + PO_MU_VECTOR - 1) / PO_MU_VECTOR * PO_MU_VECTOR;
        }
        k->merged[k->merged_rank] = whole;
        k->length[k->merged_rank++] = n;
    }
}

uint32_t po_pack_weight(po_schedule *s, const po_panels *p) {
    const po_mu_tensor *t = &s->naive->tensors[p->weight_tensor];
    po_packing k = {.merged_rank = 0};
    uint32_t at = 0, n_perm = 0;
    merge(&k, t, p);
    if (p->split != PO_NONE)
        k.dims[at++] = (t->dims[p->split] + panel_step(p) - 1) / panel_step(p);
    for (uint32_t i = 0; i < p->n_order; i++)
        k.dims[at++] = p->split == PO_NONE && i + 1 == p->n_order ? k.merged[p->order[i]]
                                                                  : t->dims[p->order[i]];
    if (p->split != PO_NONE)
        k.dims[at++] = p->panel;
    k.rank = at;
    for (uint32_t x = 0; x < t->rank; x++) {
        if (x == p->split) {
            k.perm[n_perm++] = 0;
            k.perm[n_perm++] = at - 1;
            continue;
        }
        for (uint32_t i = 0; i < p->n_order; i++)
            if (p->order[i] == x)
                k.perm[n_perm++] = i + (p->split != PO_NONE);
    }
    for (uint32_t i = 0; i < s->n_packed; i++)
        if (s->packed[i].weight == t->number && po_packing_same(&s->packed[i].packing, &k))
            return s->packed[i].tensor;
    po_packed packed = {.weight = t->number, .packing = k};
    packed.tensor = po_mu_add_tensor(s->mu, t->name, PO_MU_WEIGHT, k.rank, k.dims);
    s->mu->tensors[packed.tensor].number = s->n_packed;
    PO_PUSH(s->arena, s->packed, s->n_packed, s->cap_packed, packed);
    return packed.tensor;
}

po_mu_access po_panel_access(po_schedule *s, const po_for_label *map, const po_mu_access *access,
                             const po_panels *p, uint32_t tensor) {
    po_mu_access to = po_mu_access_of(s->mu, tensor);
    uint32_t last = p->n_order + 1;
    const po_mu_index *split = &access->axes[p->split];
    for (uint32_t i = 0; i < split->n; i++) {
        const po_for_label *f = &map[split->terms[i].label];
        for (uint32_t k = 0; k < f->n; k++) {
            int64_t coef = split->terms[i].coef * f->terms[k].coef;
            bool whole = coef % panel_step(p) == 0;
            po_mu_at(s->mu, &to, whole ? 0 : last, whole ? coef / panel_step(p) : coef,
                     f->terms[k].label);
        }
    }
    po_mu_at(s->mu, &to, 0, split->offset / panel_step(p), PO_NONE);
    po_mu_at(s->mu, &to, last, split->offset % panel_step(p), PO_NONE);
    for (uint32_t i = 0; i < p->n_order; i++)
        map_index(s, map, &access->axes[p->order[i]], &to, i + 1);
    return to;
}

/* --- statements --- */

uint32_t po_map_statement(po_schedule *s, uint32_t parent, const po_for_label *map,
                          const po_mu_statement *from, const po_mu_access *out,
                          const po_mu_access *replaced) {
    uint32_t id = po_mu_add_statement(s->mu, parent, from->combine);
    s->mu->nodes[id].statement.out = *out;
    s->mu->nodes[id].statement.fresh = from->fresh;
    s->mu->nodes[id].statement.fused = from->fused;
    for (uint32_t i = 0; i < from->n_in; i++)
        po_mu_operand(s->mu, id,
                      replaced && replaced[i].tensor != PO_NONE
                          ? replaced[i]
                          : po_map_access(s, map, &from->in[i]));
    po_mu_copy_items(s->mu, id, from);
    return id;
}

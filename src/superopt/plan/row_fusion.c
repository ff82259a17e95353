/* Steps that follow one another, worked in bands of rows so that what passes between them stays in
 * cache. */
#include "superopt/plan/row_fusion.h"

#include "superopt/schedule/internal.h"

#include <math.h>

/* Weights of a step that is worked row by row are read again for each row. */
static const int64_t most_weights_a_row = 1 << 16;

/* A step as its scheduler has it. */
typedef struct part {
    uint32_t naive_out;
    uint32_t loops[PO_MU_MAX_DEPTH], n_loops, first; /* the first statement */
    uint32_t n_statements, out;                      /* what is written */
    /* Its rows lie along an axis, `scale` of them for each step of label y. */
    uint32_t axis, y;
    int64_t height, extent, scale;
    int64_t by, from, count; /* a band: steps by * band + from + [0, count) of y */
    int64_t below, above;    /* rows of these that are beyond the map */
    int64_t before[PO_MU_MAX_RANK], after[PO_MU_MAX_RANK];
    double fill;
    int64_t weights; /* bytes */
    bool along;      /* worked row by row with the part behind it */
    uint32_t tensor; /* SHARED, of what passes on */
} part;

typedef struct joining {
    po_arena *arena;
    const po_row_fusion *b;
    po_schedule steps;  /* the steps as they are scheduled alone */
    uint32_t *naive_of; /* by tensor of it */
    part part[PO_BANDS_MOST];
    /* While it is written: */
    po_schedule *to;
    uint32_t band, band_loop; /* label, loop */
    uint32_t *label, *twin;   /* by label and tensor of `steps`; PO_NONE */
} joining;

/* --- looking --- */

static bool find_part(joining *j, uint32_t step, uint32_t naive_step, part *p) {
    const po_mu *mu = j->steps.mu;
    po_naive_step n;
    if (!po_naive_step_of(j->b->naive, naive_step, &n))
        return false;
    *p = (part){.naive_out = n.out->tensor};
    uint32_t at = mu->nodes[step].first, last = PO_NONE;
    while (mu->nodes[at].kind == PO_MU_LOOP) {
        if (mu->nodes[at].loop != PO_MU_GRID || mu->nodes[at].next != PO_NONE)
            return false;
        p->loops[p->n_loops++] = at;
        at = mu->nodes[at].first;
    }
    p->first = at;
    for (; at != PO_NONE; last = at, at = mu->nodes[at].next, p->n_statements++)
        if (mu->nodes[at].kind != PO_MU_STATEMENT)
            return false;
    for (at = p->first; at != PO_NONE; at = mu->nodes[at].next)
        for (uint32_t k = 0; k < mu->nodes[at].statement.n_in; k++) {
            const po_mu_tensor *of = &mu->tensors[mu->nodes[at].statement.in[k].tensor];
            p->weights += of->place == PO_MU_WEIGHT ? 4 * po_mu_elements(of) : 0;
        }
    p->out = mu->nodes[last].statement.out.tensor;
    return j->steps.tensor[p->naive_out] == p->out;
}

/* Whether rows of `axis` of what a part writes are those of one label, and nothing else is in the
 * way: the tile runs along others, registers and what is read move as they can. */
static bool set_rows(const joining *j, part *p, uint32_t axis) {
    const po_mu *mu = j->steps.mu;
    const po_mu_tensor *t = &mu->tensors[p->out];
    uint32_t last = p->first;
    for (uint32_t at = p->first; at != PO_NONE; at = mu->nodes[at].next)
        last = at;
    const po_mu_access *out = &mu->nodes[last].statement.out;
    if (axis == PO_NONE || axis + 1 >= t->rank)
        return false;
    const po_mu_index *index = &out->axes[axis];
    int64_t within = 0;
    p->axis = axis;
    p->y = PO_NONE;
    for (uint32_t i = 0; i < index->n; i++)
        if (p->y == PO_NONE || index->terms[i].coef > p->scale) {
            p->y = index->terms[i].label;
            p->scale = index->terms[i].coef;
        }
    if (p->y == PO_NONE || p->scale < 1 || index->offset != 0)
        return false;
    for (uint32_t i = 0; i < index->n; i++) {
        if (index->terms[i].coef < 0)
            return false;
        if (index->terms[i].label != p->y)
            within += index->terms[i].coef * (mu->labels[index->terms[i].label].extent - 1);
    }
    p->height = t->dims[axis];
    p->extent = mu->labels[p->y].extent;
    if (within != p->scale - 1 || p->extent * p->scale != p->height ||
        po_access_axis(mu, out, p->y) != axis)
        return false;
    for (uint32_t i = 0; i < p->n_loops; i++)
        if (mu->nodes[p->loops[i]].label == p->y && po_mu_chunk(mu, p->loops[i]) != 1)
            return false;
    for (uint32_t at = p->first; at != PO_NONE; at = mu->nodes[at].next) {
        const po_mu_statement *s = &mu->nodes[at].statement;
        if (s->row == p->y || s->lane == p->y)
            return false;
        for (uint32_t k = 0; k <= s->n_in; k++) {
            const po_mu_access *access = k < s->n_in ? &s->in[k] : &s->out;
            const po_mu_tensor *of = &mu->tensors[access->tensor];
            uint32_t naive = j->naive_of[access->tensor];
            if (of->place == PO_MU_SHARED)
                return false;
            if (!po_mu_has(mu, access, p->y))
                continue;
            if (of->place == PO_MU_REGISTER ? po_access_axis(mu, access, p->y) != axis
                                            : naive == PO_NONE)
                return false;
            /* Alone it has a ring that the region's own input has not. */
            if (of->place != PO_MU_REGISTER && s->combine != PO_MU_SET &&
                j->b->naive->tensors[naive].place == PO_MU_INPUT)
                return false;
        }
    }
    return true;
}

/* Whether a part leaves out steps of y that there are not: its sum stands in registers before it is
 * written, or it only maps what ends with them. */
static bool leaves_out(const joining *j, const part *p) {
    const po_mu *mu = j->steps.mu;
    const po_mu_statement *s = &mu->nodes[p->first].statement;
    if (p->n_statements == 2)
        return s->combine != PO_MU_SET && p->scale == 1 &&
               mu->tensors[s->out.tensor].place == PO_MU_REGISTER &&
               mu->tensors[s->out.tensor].dims[p->axis] == p->height;
    for (uint32_t k = 0; k < s->n_in && p->n_statements == 1 && s->combine == PO_MU_SET; k++) {
        bool inner = false; /* what stands in cache has rows beyond the map */
        for (uint32_t i = 0; i < j->b->n; i++)
            inner |= j->part[i].out == s->in[k].tensor;
        for (uint32_t x = 0; !inner && x < mu->tensors[s->in[k].tensor].rank; x++) {
            const po_mu_index *index = &s->in[k].axes[x];
            if (index->n == 1 && index->terms[0].label == p->y && index->terms[0].coef == 1 &&
                index->offset == 0 && mu->tensors[s->in[k].tensor].dims[x] == p->extent)
                return true;
        }
    }
    return false;
}

static bool in_chain(const joining *j, uint32_t node) {
    for (uint32_t i = 0; i < j->b->n; i++)
        if (j->b->node[i] == node)
            return true;
    return false;
}

/* Whether what a part writes is used by the chain alone, and by its later steps only to read. */
static bool is_inner(const joining *j, const part *p, uint32_t number) {
    const po_mu *mu = j->b->naive;
    if (mu->tensors[p->naive_out].place != PO_MU_DEVICE)
        return false;
    for (uint32_t n = 0; n < mu->n_nodes; n++) {
        const po_mu_statement *s = &mu->nodes[n].statement;
        if (mu->nodes[n].kind != PO_MU_STATEMENT)
            continue;
        uint32_t step = po_mu_step_of(mu, n);
        if (s->out.tensor == p->naive_out && step != j->b->node[number])
            return false;
        for (uint32_t k = 0; k < s->n_in; k++)
            if (s->in[k].tensor == p->naive_out &&
                (!in_chain(j, step) || step == j->b->node[number]))
                return false;
    }
    return true;
}

/* Rows of a tensor that a band reads: by * band + [from, to). */
typedef struct rows {
    int64_t by, from, to;
    bool any;
} rows;

/* One read of what part p writes by a part behind it: which rows a band needs, and the ring. */
static bool need(const joining *j, part *p, const part *by, const po_mu_statement *s,
                 const po_mu_access *in, rows *r) {
    const po_mu *mu = j->steps.mu;
    const po_mu_index *index = &in->axes[p->axis];
    int64_t stride = po_mu_coef(index, by->y), low = index->offset, high = index->offset;
    if (stride < 1 || po_access_axis(mu, in, by->y) != p->axis)
        return false;
    for (uint32_t i = 0; i < index->n; i++) {
        int64_t reach = index->terms[i].coef * (mu->labels[index->terms[i].label].extent - 1);
        if (index->terms[i].label != by->y)
            *(reach < 0 ? &low : &high) += reach;
    }
    int64_t from = stride * by->from + low;
    int64_t to = stride * (by->from + by->count - 1) + high + 1;
    if (r->any && r->by != stride * by->by)
        return false;
    r->by = stride * by->by;
    r->from = !r->any || from < r->from ? from : r->from;
    r->to = !r->any || to > r->to ? to : r->to;
    r->any = true;
    /* Rows beyond the map stand there, and hold what adds nothing. */
    bool leaves = low < 0 || stride * (by->extent - 1) + high >= p->height;
    for (uint32_t x = 0; x < mu->tensors[in->tensor].rank; x++) {
        int64_t least, most;
        if (x == p->axis)
            continue;
        po_mu_range(mu, in, x, &least, &most);
        most -= mu->tensors[in->tensor].dims[x] - 1;
        leaves |= least < 0 || most > 0;
        if (s->combine == PO_MU_SET)
            continue;
        p->before[x] = -least > p->before[x] ? -least : p->before[x];
        p->after[x] = most > p->after[x] ? most : p->after[x];
    }
    if (leaves && s->combine == PO_MU_SET)
        return false;
    double fill = s->combine == PO_MU_MAXIMUM ? -(double)INFINITY : 0;
    if (leaves && !isnan(p->fill) && p->fill != fill)
        return false;
    p->fill = leaves ? fill : p->fill;
    return true;
}

/* The axis of what a part writes that moves with the rows of those that read it; PO_NONE. */
static uint32_t axis_of_rows(const joining *j, uint32_t number) {
    const po_mu *mu = j->steps.mu;
    uint32_t axis = PO_NONE;
    for (uint32_t k = number + 1; k < j->b->n; k++)
        for (uint32_t at = j->part[k].first; at != PO_NONE; at = mu->nodes[at].next) {
            const po_mu_statement *s = &mu->nodes[at].statement;
            for (uint32_t o = 0; o < s->n_in; o++)
                if (s->in[o].tensor == j->part[number].out && axis == PO_NONE)
                    axis = po_access_axis(mu, &s->in[o], j->part[k].y);
        }
    return axis;
}

static int64_t floor_of(int64_t a, int64_t b) {
    return a / b - (a % b < 0);
}

/* The rows of each part, from the last one backwards. */
static bool find_rows(joining *j, int64_t height) {
    const po_mu *mu = j->steps.mu;
    uint32_t n = j->b->n, axis = PO_NONE;
    part *last = &j->part[n - 1];
    const po_mu_tensor *t = &mu->tensors[last->out];
    for (uint32_t x = 0; x + 1 < t->rank && axis == PO_NONE; x++)
        if (t->dims[x] > 1)
            axis = x;
    if (!set_rows(j, last, axis) || height < 1 || last->height % height != 0 ||
        height % last->scale != 0)
        return false;
    last->by = last->count = height / last->scale;
    last->from = 0;
    int64_t bands = last->height / height;
    for (uint32_t i = n - 1; i-- > 0;) {
        part *p = &j->part[i];
        rows r = {0};
        bool along = true;
        p->fill = (double)NAN;
        if (!set_rows(j, p, axis_of_rows(j, i)))
            return false;
        for (uint32_t k = i + 1; k < n; k++)
            for (uint32_t at = j->part[k].first; at != PO_NONE; at = mu->nodes[at].next) {
                const po_mu_statement *s = &mu->nodes[at].statement;
                for (uint32_t o = 0; o < s->n_in; o++) {
                    const po_mu_index *index = &s->in[o].axes[p->axis];
                    if (s->in[o].tensor != p->out)
                        continue;
                    if (!need(j, p, &j->part[k], s, &s->in[o], &r))
                        return false;
                    along = along && k == i + 1 && index->n == 1 && index->offset == 0 &&
                            index->terms[0].coef == 1 && p->scale == 1;
                }
            }
        if (!r.any || r.by % p->scale != 0)
            return false;
        p->by = r.by / p->scale;
        p->from = floor_of(r.from, p->scale);
        p->count = -floor_of(-r.to, p->scale) - p->from;
        p->fill = isnan(p->fill) ? 0 : p->fill;
        p->below = p->from < 0 ? -p->from * p->scale : 0;
        int64_t end = p->by * (bands - 1) + p->from + p->count;
        p->above = end > p->extent ? (end - p->extent) * p->scale : 0;
        p->along = along && j->part[i + 1].weights <= most_weights_a_row;
        if ((p->below || p->above) &&
            (!leaves_out(j, p) || p->below > p->count * p->scale || p->above > p->count * p->scale))
            return false;
    }
    return true;
}

static bool look(joining *j, po_arena *arena, const po_row_fusion *b, bool lone) {
    const po_mu *naive = b->naive;
    *j = (joining){.arena = arena, .b = b};
    po_schedule_start(&j->steps, arena, naive, lone);
    for (uint32_t i = 0; i < b->n; i++)
        po_schedule_step(&j->steps, b->node[i], b->choice[i]);
    const po_mu *mu = j->steps.mu;
    j->naive_of = PO_NEW_N(arena, uint32_t, mu->n_tensors + 1);
    for (uint32_t i = 0; i < mu->n_tensors; i++)
        j->naive_of[i] = PO_NONE;
    for (uint32_t i = 0; i < naive->n_tensors; i++)
        if (j->steps.tensor[i] != PO_NONE)
            j->naive_of[j->steps.tensor[i]] = i;
    for (uint32_t i = 0; i < j->steps.n_packed; i++)
        for (uint32_t k = 0; k < naive->n_tensors; k++)
            if (naive->tensors[k].place == PO_MU_WEIGHT &&
                naive->tensors[k].number == j->steps.packed[i].weight)
                j->naive_of[j->steps.packed[i].tensor] = k;
    uint32_t i = 0;
    for (uint32_t step = mu->first; step != PO_NONE; step = mu->nodes[step].next, i++)
        if (i == b->n || !find_part(j, step, b->node[i], &j->part[i]))
            return false;
    if (i != b->n)
        return false;
    for (i = 0; i + 1 < b->n; i++)
        if (!is_inner(j, &j->part[i], i))
            return false;
    /* What the last one writes is read by none of them. */
    for (uint32_t n = 0; n < mu->n_nodes; n++)
        for (uint32_t k = 0;
             mu->nodes[n].kind == PO_MU_STATEMENT && k < mu->nodes[n].statement.n_in; k++)
            if (mu->nodes[n].statement.in[k].tensor == j->part[b->n - 1].out)
                return false;
    return find_rows(j, b->rows);
}

bool po_row_fusion_fits(po_arena *arena, const po_row_fusion *b, po_row_fusion_cost *cost) {
    joining j;
    *cost = (po_row_fusion_cost){.most_again = 1};
    if (b->n < 2 || b->n > PO_BANDS_MOST || !look(&j, arena, b, true))
        return false;
    cost->height = j.part[b->n - 1].height;
    for (uint32_t i = 0; i + 1 < b->n; i++) {
        const part *p = &j.part[i];
        const po_mu_tensor *t = &j.steps.mu->tensors[p->out];
        int64_t row = 4;
        for (uint32_t x = 0; x < t->rank; x++)
            row *= x == p->axis ? 1 : p->before[x] + t->dims[x] + p->after[x];
        cost->held += row * (p->along ? 1 : p->count * p->scale);
        cost->whole += row * t->dims[p->axis];
        double again = (double)p->count / (double)p->by;
        cost->again[i] = again;
        cost->most_again = again > cost->most_again ? again : cost->most_again;
    }
    return true;
}

/* --- writing --- */

static uint32_t weight_of(po_schedule *s, const po_packed *p, const char *name) {
    for (uint32_t i = 0; i < s->n_packed; i++) {
        const po_packing *a = &s->packed[i].packing, *b = &p->packing;
        if (s->packed[i].weight == p->weight && a->rank == b->rank &&
            a->merged_rank == b->merged_rank &&
            memcmp(a->dims, b->dims, a->rank * sizeof *a->dims) == 0 &&
            memcmp(a->perm, b->perm, a->rank * sizeof *a->perm) == 0 &&
            memcmp(a->merged, b->merged, a->merged_rank * sizeof *a->merged) == 0)
            return s->packed[i].tensor;
    }
    po_packed packed = *p;
    packed.tensor = po_mu_add_tensor(s->mu, name, PO_MU_WEIGHT, p->packing.rank, p->packing.dims);
    s->mu->tensors[packed.tensor].number = s->n_packed;
    PO_PUSH(s->arena, s->packed, s->n_packed, s->cap_packed, packed);
    return packed.tensor;
}

/* What stands for a tensor; registers live in the loop `scope`. */
static uint32_t tensor_of(joining *j, uint32_t tensor, uint32_t scope) {
    const po_mu_tensor *t = &j->steps.mu->tensors[tensor];
    if (j->twin[tensor] != PO_NONE)
        return j->twin[tensor];
    uint32_t id = PO_NONE;
    if (t->place == PO_MU_REGISTER) {
        id = po_mu_add_tensor(j->to->mu, "p", PO_MU_REGISTER, t->rank, t->dims);
        j->to->mu->tensors[id].scope = scope;
        j->to->tensor[j->naive_of[tensor]] = id;
    } else if (t->place == PO_MU_WEIGHT) {
        for (uint32_t i = 0; i < j->steps.n_packed && id == PO_NONE; i++)
            if (j->steps.packed[i].tensor == tensor)
                id = weight_of(j->to, &j->steps.packed[i], t->name);
    } else {
        id = po_twin(j->to, j->naive_of[tensor]);
    }
    j->twin[tensor] = id;
    return id;
}

static uint32_t label_of(joining *j, uint32_t label) {
    const po_mu_label *from = &j->steps.mu->labels[label];
    if (j->label[label] == PO_NONE)
        j->label[label] = po_mu_add_label(j->to->mu, from->name, from->extent);
    return j->label[label];
}

/* The access with p's rows counted by bands. */
static po_mu_access access_of(joining *j, const part *p, const po_mu_access *from, uint32_t scope) {
    const po_mu *mu = j->steps.mu;
    uint32_t tensor = tensor_of(j, from->tensor, scope);
    po_mu_access to = po_mu_access_of(j->to->mu, tensor);
    for (uint32_t x = 0; x < mu->tensors[from->tensor].rank; x++) {
        const po_mu_index *index = &from->axes[x];
        po_mu_at(j->to->mu, &to, x, index->offset, PO_NONE);
        for (uint32_t i = 0; i < index->n; i++) {
            po_mu_term t = index->terms[i];
            po_mu_at(j->to->mu, &to, x, t.coef, label_of(j, t.label));
            if (t.label != p->y)
                continue;
            po_mu_at(j->to->mu, &to, x, t.coef * p->by, j->band);
            po_mu_at(j->to->mu, &to, x, t.coef * p->from, PO_NONE);
        }
    }
    for (uint32_t i = 0; i < j->b->n; i++)
        if (j->part[i].tensor == tensor && j->part[i].below)
            po_mu_at(j->to->mu, &to, j->part[i].axis, j->part[i].below, PO_NONE);
    return to;
}

static void copy_statement(joining *j, const part *p, uint32_t node, uint32_t at) {
    po_mu *mu = j->to->mu;
    const po_mu_statement *from = &j->steps.mu->nodes[node].statement;
    uint32_t id = po_mu_add_statement(mu, at, from->combine);
    po_mu_access out = access_of(j, p, &from->out, at);
    mu->nodes[id].statement.out = out;
    for (uint32_t k = 0; k < from->n_in; k++)
        po_mu_operand(mu, id, access_of(j, p, &from->in[k], at));
    po_mu_copy_items(mu, id, from);
    uint32_t *order = PO_NEW_N(j->to->arena, uint32_t, from->n_order + 1), n_order = 0;
    if (from->n_order)
        order[n_order++] = j->band;
    for (uint32_t i = 0; i < from->n_order; i++)
        order[n_order++] = label_of(j, from->order[i]);
    po_mu_statement *s = &mu->nodes[id].statement;
    s->fresh = from->fresh;
    s->fused = from->fused;
    s->lane = from->lane == PO_NONE ? PO_NONE : label_of(j, from->lane);
    s->row = from->row == PO_NONE ? PO_NONE : label_of(j, from->row);
    s->vectors = from->vectors;
    s->rows = from->rows;
    s->order = order;
    s->n_order = n_order;
    s->ahead = from->ahead;
    s->ahead_of = from->ahead_of;
}

/* Sets rows [from, from + count) of a band's to what adds nothing; those of them that there are
 * are written over. */
static void fill_rows(joining *j, const part *p, int64_t from, int64_t count) {
    po_mu *mu = j->to->mu;
    uint32_t rank = mu->tensors[p->tensor].rank,
             id = po_mu_add_statement(mu, j->band_loop, PO_MU_SET);
    po_mu_access out = po_mu_access_of(mu, p->tensor);
    for (uint32_t x = 0; x < rank; x++) {
        int64_t extent = x == p->axis ? count : mu->tensors[p->tensor].dims[x];
        uint32_t label = po_mu_add_label(mu, "f", extent);
        po_mu_at(mu, &out, x, 1, label);
        if (x == p->axis) {
            po_mu_at(mu, &out, x, p->by * p->scale, j->band);
            po_mu_at(mu, &out, x, from + p->from * p->scale + p->below, PO_NONE);
        }
        if (x + 1 == rank && extent > 1 && !p->before[x] && !p->after[x]) {
            mu->nodes[id].statement.lane = label;
            mu->nodes[id].statement.vectors = 1;
            mu->nodes[id].statement.rows = 1;
        }
    }
    mu->nodes[id].statement.out = out;
    po_mu_constant(mu, id, p->fill);
}

/* The SHARED tensor of what a part passes on, in the loop in which it lives. */
static void add_shared(joining *j, part *p, uint32_t scope) {
    const po_mu_tensor *t = &j->steps.mu->tensors[p->out];
    int64_t dims[PO_MU_MAX_RANK];
    memcpy(dims, t->dims, t->rank * sizeof *dims);
    dims[p->axis] += p->below + p->above;
    p->tensor = po_mu_add_tensor(j->to->mu, t->name, PO_MU_SHARED, t->rank, dims);
    po_mu_tensor *to = &j->to->mu->tensors[p->tensor];
    to->scope = scope;
    to->fill = p->fill;
    memcpy(to->before, p->before, sizeof to->before);
    memcpy(to->after, p->after, sizeof to->after);
    j->twin[p->out] = p->tensor;
}

/* Loops of a part but the one over its rows, and its statements. */
static void write_part(joining *j, const part *p, uint32_t at, bool with_rows) {
    const po_mu *mu = j->steps.mu;
    for (uint32_t i = 0; i < p->n_loops; i++) {
        const po_mu_node *loop = &mu->nodes[p->loops[i]];
        if (loop->label != p->y || with_rows)
            at = po_mu_add_loop(j->to->mu, at, PO_MU_FOR, label_of(j, loop->label), loop->chunk);
    }
    for (uint32_t n = p->first; n != PO_NONE; n = mu->nodes[n].next)
        copy_statement(j, p, n, at);
}

static void write_bands(joining *j) {
    po_mu *mu = j->to->mu;
    const po_mu *steps = j->steps.mu;
    uint32_t n = j->b->n;
    const part *last = &j->part[n - 1];
    const char *name = j->b->naive->nodes[j->b->node[0]].name;
    for (uint32_t i = 1; i < n; i++)
        name = po_arena_printf(mu->arena, "%s; %s", name, j->b->naive->nodes[j->b->node[i]].name);
    uint32_t step = po_mu_add_step(mu, name);
    j->band = po_mu_add_label(mu, "band", last->extent / last->by);
    j->band_loop = po_mu_add_loop(mu, step, PO_MU_GRID, j->band, 1);
    for (uint32_t i = 0; i < n;) {
        uint32_t to = i, at = j->band_loop;
        while (to + 1 < n && j->part[to].along)
            to++;
        part *end = &j->part[to];
        if (to + 1 < n) {
            add_shared(j, end, j->band_loop);
            if (end->below)
                fill_rows(j, end, 0, end->below);
            if (end->above)
                fill_rows(j, end, end->count * end->scale - end->above, end->above);
        }
        uint32_t row = po_mu_add_label(mu, steps->labels[j->part[i].y].name, j->part[i].count);
        if (to > i)
            at = po_mu_add_loop(mu, at, PO_MU_FOR, row, 1);
        for (uint32_t k = i; k <= to; k++) {
            j->label[j->part[k].y] = row;
            if (k < to)
                add_shared(j, &j->part[k], at);
            write_part(j, &j->part[k], at, to == i);
        }
        i = to + 1;
    }
    for (uint32_t i = 0; i + 1 < n; i++)
        po_schedule_lay(mu, j->part[i].tensor);
}

void po_row_fusion_apply(po_schedule *s, const po_row_fusion *b) {
    joining j;
    if (b->rows == 0 || !look(&j, s->arena, b, s->lone)) {
        for (uint32_t i = 0; i < b->n; i++)
            po_schedule_step(s, b->node[i], b->choice[i]);
        return;
    }
    j.to = s;
    j.label = PO_NEW_N(s->arena, uint32_t, j.steps.mu->n_labels + 1);
    j.twin = PO_NEW_N(s->arena, uint32_t, j.steps.mu->n_tensors + 1);
    for (uint32_t i = 0; i < j.steps.mu->n_labels; i++)
        j.label[i] = PO_NONE;
    for (uint32_t i = 0; i < j.steps.mu->n_tensors; i++)
        j.twin[i] = PO_NONE;
    for (uint32_t i = 0; i < b->n; i++)
        j.part[i].tensor = PO_NONE;
    write_bands(&j);
}

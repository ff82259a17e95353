/* Parts of what steps write, and what of their inputs each needs. */
#include "superopt/plan/check_part.h"

#include "base/hash.h"
#include "superopt/schedule/internal.h"

const po_part_size po_part_usual = {1 << 20, 1 << 22, 1 << 17, 24, 1 << 24, 16};

bool po_look_at_steps(po_arena *arena, const po_mu *naive, uint32_t step, uint32_t n_steps,
                      po_looked_steps *n) {
    *n = (po_looked_steps){.inner = PO_NEW_N(arena, bool, naive->n_tensors + 1)};
    for (; n->n_steps < n_steps; step = naive->nodes[step].next) {
        po_naive_step one;
        if (n->n_steps == PO_WINDOW_MOST || step == PO_NONE || !po_naive_step_of(naive, step, &one))
            return false;
        const po_mu_statement *both[2] = {one.s, one.tail};
        for (uint32_t i = 0; i < 2 && both[i]; i++) {
            n->step_of[n->n] = n->n_steps;
            n->s[n->n++] = both[i];
        }
        if (n->out)
            n->inner[n->out->tensor] = true;
        n->out = one.out;
        n->n_steps++;
    }
    return true;
}

/* --- boxes --- */

int64_t po_part_elements(const po_part_box *box, uint32_t rank) {
    int64_t count = 1;
    for (uint32_t x = 0; x < rank; x++)
        count *= box->to[x] - box->from[x];
    return count;
}

po_part_box po_part_whole(const po_mu_tensor *t) {
    po_part_box box = {{0}, {0}};
    for (uint32_t x = 0; x < t->rank; x++)
        box.to[x] = t->dims[x];
    return box;
}

po_part_walk po_part_walk_by(const po_part_box *box, uint32_t rank, const int64_t *stride,
                             int64_t origin) {
    po_part_walk w = {.box = box, .rank = rank, .at = origin};
    for (uint32_t x = 0; x < rank; x++) {
        w.index[x] = box->from[x];
        w.stride[x] = stride[x];
        w.at += w.index[x] * stride[x];
    }
    return w;
}

po_part_walk po_part_walk_in(const po_part_box *box, const po_mu_tensor *t) {
    int64_t stride[PO_MU_MAX_RANK], count = 1;
    for (uint32_t x = t->rank; x-- > 0;) {
        stride[x] = count;
        count *= t->dims[x];
    }
    return po_part_walk_by(box, t->rank, stride, 0);
}

/* Along axes before this one; whether there was one more. */
static bool next_before(po_part_walk *w, uint32_t axis) {
    for (uint32_t x = axis; x-- > 0;) {
        w->at += w->stride[x];
        if (++w->index[x] < w->box->to[x])
            return true;
        w->at -= w->stride[x] * (w->box->to[x] - w->box->from[x]);
        w->index[x] = w->box->from[x];
    }
    return false;
}

bool po_part_next(po_part_walk *w) {
    return next_before(w, w->rank);
}

int64_t po_part_row(const po_part_walk *w, int64_t *step) {
    const uint32_t last = w->rank - 1;
    *step = w->rank > 0 ? w->stride[last] : 0;
    return w->rank > 0 ? w->box->to[last] - w->box->from[last] : 1;
}

bool po_part_next_row(po_part_walk *w) {
    return w->rank > 0 && next_before(w, w->rank - 1);
}

/* The label by itself that an axis goes by; PO_NONE: something else. */
static uint32_t label_of(const po_mu *mu, const po_mu_access *a, uint32_t axis) {
    const po_mu_index *index = &a->axes[axis];
    if (index->n != 1 || index->terms[0].coef != 1)
        return PO_NONE;
    for (uint32_t x = 0; x < mu->tensors[a->tensor].rank; x++)
        if (x != axis && po_mu_coef(&a->axes[x], index->terms[0].label) != 0)
            return PO_NONE;
    return index->terms[0].label;
}

/* Ranges of labels in a step. */
typedef struct range {
    int64_t from, to; /* to 0: none yet */
} range;

static void widen(range *r, int64_t from, int64_t to) {
    r->from = r->to == 0 || from < r->from ? from : r->from;
    r->to = to > r->to ? to : r->to;
}

/* The labels' ranges by which a statement writes the box, and what it goes through besides. */
static void add_ranges(const po_mu *mu, const po_mu_statement *s, const po_part_box *box,
                       po_arena *arena, range *ranges) {
    range *own = PO_NEW_N(arena, range, mu->n_labels + 1);
    uint32_t rank = mu->tensors[s->out.tensor].rank;
    for (uint32_t x = 0; x < rank; x++) {
        uint32_t label = label_of(mu, &s->out, x);
        if (label == PO_NONE)
            continue;
        int64_t offset = s->out.axes[x].offset, extent = mu->labels[label].extent;
        int64_t from = box->from[x] - offset, to = box->to[x] - offset;
        from = from < 0 ? 0 : from >= extent ? extent - 1 : from;
        to = to > extent ? extent : to <= from ? from + 1 : to;
        own[label] = (range){from, to};
    }
    for (uint32_t label = 0; label < mu->n_labels; label++) {
        bool has = po_mu_has(mu, &s->out, label);
        for (uint32_t k = 0; k < s->n_in && !has; k++)
            has = po_mu_has(mu, &s->in[k], label);
        if (has && own[label].to == 0)
            own[label].to = mu->labels[label].extent;
        if (has)
            widen(&ranges[label], own[label].from, own[label].to);
    }
}

/* Adds what a statement reads to the boxes. */
static void add_reads(const po_mu *mu, const po_mu_statement *s, const range *ranges,
                      po_part_box *boxes) {
    for (uint32_t k = 0; k < s->n_in; k++) {
        const po_mu_tensor *t = &mu->tensors[s->in[k].tensor];
        po_part_box *box = &boxes[s->in[k].tensor];
        if (t->place == PO_MU_TABLE)
            continue;
        for (uint32_t x = 0; x < t->rank; x++) {
            const po_mu_index *index = &s->in[k].axes[x];
            int64_t least = index->offset, most = index->offset;
            for (uint32_t i = 0; i < index->n; i++) {
                const range *r = &ranges[index->terms[i].label];
                int64_t a = index->terms[i].coef * r->from, b = index->terms[i].coef * (r->to - 1);
                least += a < b ? a : b;
                most += a < b ? b : a;
            }
            /* What is outside of the tensor is not read, and is outside of the box too. */
            least = least < 0 ? 0 : least >= t->dims[x] ? t->dims[x] - 1 : least;
            most = most >= t->dims[x] ? t->dims[x] - 1 : most < least ? least : most;
            range both = {box->from[x], box->to[x]};
            widen(&both, least, most + 1);
            box->from[x] = both.from;
            box->to[x] = both.to;
        }
    }
}

/* Along an axis that a statement does not write by one label, all of a tensor. */
static void make_writable(const po_mu *mu, const po_mu_statement *s, po_part_box *box) {
    const po_mu_tensor *t = &mu->tensors[s->out.tensor];
    for (uint32_t x = 0; x < t->rank; x++)
        if (box->to[x] == 0 || label_of(mu, &s->out, x) == PO_NONE) {
            box->from[x] = 0;
            box->to[x] = t->dims[x];
        }
}

/* Of the output: [from, to) along some axes, all along others. */
typedef struct part_cut {
    uint32_t n, axis[2];
    int64_t from[2], to[2];
} part_cut;

static part_cut cut_along(uint32_t axis, int64_t from, int64_t to) {
    return (part_cut){axis == PO_NONE ? 0 : 1, {axis}, {from}, {to}};
}

/* What that part of the output needs; the labels' ranges by step. */
static void find_boxes(po_arena *arena, const po_mu *mu, const po_looked_steps *n,
                       const part_cut *cut, po_part_box *boxes, range *const *ranges) {
    memset(boxes, 0, sizeof *boxes * mu->n_tensors);
    for (uint32_t id = 0; id < mu->n_tensors; id++)
        if (mu->tensors[id].place == PO_MU_TABLE)
            boxes[id] = po_part_whole(&mu->tensors[id]);
    po_part_box *out = &boxes[n->out->tensor];
    *out = po_part_whole(&mu->tensors[n->out->tensor]);
    for (uint32_t i = 0; i < cut->n; i++) {
        out->from[cut->axis[i]] = cut->from[i];
        out->to[cut->axis[i]] = cut->to[i];
    }
    for (uint32_t last = n->n; last > 0;) {
        uint32_t first = last - 1;
        while (first > 0 && n->step_of[first - 1] == n->step_of[last - 1])
            first--;
        range *of_step = ranges[n->step_of[first]];
        memset(of_step, 0, sizeof *of_step * (mu->n_labels + 1));
        for (uint32_t i = last; i-- > first;) {
            make_writable(mu, n->s[i], &boxes[n->s[i]->out.tensor]);
            add_ranges(mu, n->s[i], &boxes[n->s[i]->out.tensor], arena, of_step);
            add_reads(mu, n->s[i], of_step, boxes);
        }
        last = first;
    }
}

/* --- the muGraph of a part --- */

typedef struct building {
    const po_mu *naive;
    po_mu *mu;
    const po_part_box *boxes;
    const uint32_t *twin;
    const range *ranges;   /* of the step */
    const uint32_t *label; /* the step's, by naive label; PO_NONE */
} building;

static po_mu_access copy_access(const building *b, const po_mu_access *a) {
    po_mu_access to = po_mu_access_of(b->mu, b->twin[a->tensor]);
    for (uint32_t x = 0; x < b->naive->tensors[a->tensor].rank; x++) {
        int64_t offset = a->axes[x].offset - b->boxes[a->tensor].from[x];
        for (uint32_t i = 0; i < a->axes[x].n; i++) {
            const po_mu_term *term = &a->axes[x].terms[i];
            offset += term->coef * b->ranges[term->label].from;
            po_mu_at(b->mu, &to, x, term->coef, b->label[term->label]);
        }
        po_mu_at(b->mu, &to, x, offset, PO_NONE);
    }
    return to;
}

static void copy_statement(const building *b, uint32_t step, const po_mu_statement *s) {
    po_mu *mu = b->mu;
    uint32_t id = po_mu_add_statement(mu, step, s->combine);
    mu->nodes[id].statement.fresh = s->fresh;
    mu->nodes[id].statement.fused = s->fused;
    mu->nodes[id].statement.out = copy_access(b, &s->out);
    for (uint32_t k = 0; k < s->n_in; k++)
        po_mu_operand(mu, id, copy_access(b, &s->in[k]));
    po_mu_copy_items(mu, id, s);
}

static bool is_touched(const po_looked_steps *n, uint32_t tensor) {
    for (uint32_t i = 0; i < n->n; i++)
        for (uint32_t k = 0; k <= n->s[i]->n_in; k++)
            if (po_mu_touched(n->s[i], k) == tensor)
                return true;
    return false;
}

static void add_tensors(building *b, const po_looked_steps *n, uint32_t *twin) {
    const po_mu *naive = b->naive;
    uint32_t n_in = 0;
    for (uint32_t id = 0; id < naive->n_tensors; id++) {
        const po_mu_tensor *t = &naive->tensors[id];
        bool plain = t->place == PO_MU_TABLE || t->place == PO_MU_REGISTER;
        int64_t dims[PO_MU_MAX_RANK];
        if (!is_touched(n, id))
            continue;
        for (uint32_t x = 0; x < t->rank; x++)
            dims[x] = b->boxes[id].to[x] - b->boxes[id].from[x];
        twin[id] = po_mu_add_tensor(b->mu, t->name,
                                    plain                  ? t->place
                                    : id == n->out->tensor ? PO_MU_OUTPUT
                                    : n->inner[id]         ? PO_MU_DEVICE
                                                           : PO_MU_INPUT,
                                    t->rank, dims);
        po_mu_tensor *to = &b->mu->tensors[twin[id]];
        to->table = t->table;
        to->scope = PO_NONE;
        if (to->place == PO_MU_INPUT)
            to->number = n_in++;
    }
}

static void make_part(po_arena *arena, const po_mu *naive, const po_looked_steps *n,
                      const part_cut *cut, range *const *ranges, po_step_part *part) {
    part->boxes = PO_NEW_N(arena, po_part_box, naive->n_tensors);
    find_boxes(arena, naive, n, cut, part->boxes, ranges);
    uint32_t *twin = PO_NEW_N(arena, uint32_t, naive->n_tensors),
             *label = PO_NEW_N(arena, uint32_t, naive->n_labels + 1);
    po_mu *mu = po_mu_create(arena, "step");
    building b = {naive, mu, part->boxes, twin, NULL, label};
    add_tensors(&b, n, twin);
    uint32_t out = twin[n->out->tensor], rank = mu->tensors[out].rank;
    uint32_t fill = po_mu_add_statement(mu, po_mu_add_step(mu, "fill"), PO_MU_SET);
    po_mu_access all = po_mu_access_of(mu, out);
    for (uint32_t x = 0; x < rank; x++)
        po_mu_at(mu, &all, x, 1, po_mu_add_label(mu, "i", mu->tensors[out].dims[x]));
    mu->nodes[fill].statement.out = all;
    po_mu_constant(mu, fill, PO_UNTOUCHED);
    uint32_t step = PO_NONE;
    for (uint32_t i = 0; i < n->n; i++) {
        if (i == 0 || n->step_of[i] != n->step_of[i - 1]) {
            step = po_mu_add_step(mu, "step");
            b.ranges = ranges[n->step_of[i]];
            for (uint32_t l = 0; l < naive->n_labels; l++)
                label[l] = b.ranges[l].to == 0 ? PO_NONE
                                               : po_mu_add_label(mu, naive->labels[l].name,
                                                                 b.ranges[l].to - b.ranges[l].from);
        }
        copy_statement(&b, step, n->s[i]);
    }
    part->mu = mu;
    part->count = po_mu_elements(&mu->tensors[out]);
}

/* --- which parts --- */

/* Elements of all that a part of so many rows along an axis goes through. */
static int64_t cost_of(po_arena *arena, const po_mu *mu, const po_looked_steps *n, uint32_t axis,
                       int64_t rows, range *const *ranges) {
    po_arena *scratch = po_arena_child(arena);
    po_part_box *boxes = PO_NEW_N(scratch, po_part_box, mu->n_tensors);
    int64_t cost = 0,
            from = axis != PO_NONE ? (mu->tensors[n->out->tensor].dims[axis] - rows) / 2 : 0;
    const part_cut cut = cut_along(axis, from, from + rows);
    find_boxes(scratch, mu, n, &cut, boxes, ranges);
    for (uint32_t id = 0; id < mu->n_tensors; id++)
        if (mu->tensors[id].rank > 0 && boxes[id].to[0] > 0 && is_touched(n, id))
            cost += po_part_elements(&boxes[id], mu->tensors[id].rank);
    po_arena_free(scratch);
    return cost;
}

/* The axis along which parts cost least, and their rows; PO_NONE: it is not worth while. */
static uint32_t find_axis(po_arena *arena, const po_mu *mu, const po_looked_steps *n,
                          const po_part_size *size, bool few, range *const *ranges, int64_t *rows) {
    const po_mu_tensor *t = &mu->tensors[n->out->tensor];
    int64_t count = po_mu_elements(t);
    uint32_t best = PO_NONE;
    int64_t all = cost_of(arena, mu, n, PO_NONE, 0, ranges), least = all / 2;
    if (count <= size->whole && all <= size->whole_of_all)
        return PO_NONE;
    for (uint32_t x = 0; x < t->rank; x++) {
        int64_t row = count / t->dims[x], some = few ? 0 : size->least / row;
        some = some > size->rows ? some : size->rows;
        if (PO_PARTS_MOST * some > t->dims[x])
            continue;
        int64_t cost = PO_PARTS_MOST * cost_of(arena, mu, n, x, some, ranges);
        if (cost >= least)
            continue;
        least = cost;
        best = x;
        *rows = some;
    }
    return best;
}

/* Terms that are added up for all of the output, of the longest statement. */
static int64_t work_of(po_arena *arena, const po_mu *mu, const po_looked_steps *n,
                       range *const *ranges) {
    const part_cut whole = {0};
    int64_t most = 0;
    po_arena *scratch = po_arena_child(arena);
    find_boxes(scratch, mu, n, &whole, PO_NEW_N(scratch, po_part_box, mu->n_tensors), ranges);
    po_arena_free(scratch);
    for (uint32_t i = 0; i < n->n; i++) {
        int64_t work = 1;
        for (uint32_t label = 0; label < mu->n_labels; label++) {
            const range *r = &ranges[n->step_of[i]][label];
            bool has = po_mu_has(mu, &n->s[i]->out, label);
            for (uint32_t k = 0; k < n->s[i]->n_in && !has; k++)
                has = po_mu_has(mu, &n->s[i]->in[k], label);
            if (has && r->to > r->from && work <= INT64_MAX / (r->to - r->from))
                work *= r->to - r->from;
        }
        most = work > most ? work : most;
    }
    return most;
}

/* Of three parts along an axis, the first, one between, the last. */
static void place_part(const po_mu_tensor *t, uint32_t part, uint64_t draw, int64_t rows,
                       uint32_t axis, part_cut *cut) {
    const int64_t all = t->dims[axis], free_rows = all - PO_PARTS_MOST * rows;
    const int64_t middle = rows + (int64_t)(draw % (uint64_t)(free_rows + 1));
    cut->axis[cut->n] = axis;
    cut->from[cut->n] = part == 0 ? 0 : part == 1 ? middle : all - rows;
    cut->to[cut->n] = cut->from[cut->n] + rows;
    cut->n++;
}

/* The longest other axis along which heavy parts are cut, too; PO_NONE: none is long enough. */
static uint32_t second_axis(const po_mu_tensor *t, uint32_t first, const po_part_size *size) {
    uint32_t best = PO_NONE;
    for (uint32_t x = 0; x < t->rank; x++)
        if (x != first && t->dims[x] >= PO_PARTS_MOST * size->columns &&
            (best == PO_NONE || t->dims[x] > t->dims[best]))
            best = x;
    return best;
}

bool po_step_parts(po_arena *arena, const po_mu *naive, const po_looked_steps *n,
                   const po_part_size *size, po_step_part *parts, uint32_t *n_parts) {
    for (uint32_t i = 0; i < n->n; i++)
        for (uint32_t k = 0; k < n->s[i]->n_in; k++)
            if (n->s[i]->in[k].tensor == n->out->tensor)
                return false;
    range **ranges = PO_NEW_N(arena, range *, n->n_steps);
    for (uint32_t i = 0; i < n->n_steps; i++)
        ranges[i] = PO_NEW_N(arena, range, naive->n_labels + 1);
    const po_mu_tensor *t = &naive->tensors[n->out->tensor];
    int64_t rows = 0;
    const bool heavy = work_of(arena, naive, n, ranges) > size->work;
    /* Several steps make their work for each row of the last: few rows are looked at. */
    uint32_t axis = find_axis(arena, naive, n, size, heavy && n->n_steps > 1, ranges, &rows);
    const uint32_t second = heavy ? second_axis(t, axis, size) : PO_NONE;
    *n_parts = axis == PO_NONE && second == PO_NONE ? 1 : PO_PARTS_MOST;
    for (uint32_t i = 0; i < *n_parts; i++) {
        part_cut cut = {0};
        if (axis != PO_NONE)
            place_part(t, i, po_random_u64(11, n->out->tensor, (uint64_t)t->dims[axis]), rows, axis,
                       &cut);
        if (second != PO_NONE)
            place_part(t, i, po_random_u64(12, n->out->tensor, (uint64_t)t->dims[second]),
                       size->columns, second, &cut);
        make_part(arena, naive, n, &cut, ranges, &parts[i]);
    }
    return true;
}

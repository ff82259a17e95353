/* Cuts a naive muGraph where tensors must lie in memory, where two parts would each do much of the
 * same work, and where a part has more than 32 statements. Axes of several digits become several
 * axes in a part's own muGraph. */
#include "superopt/part/part.h"

/* A part of more statements is cut further; the search takes as many. */
enum { MOST_STATEMENTS = 32 };
/* Of a part's work: so much may be done again in another part. */
static const double SMALL = 1.0 / 64;

/* --- who writes, who reads --- */

typedef struct cutting {
    po_arena *arena;
    const po_mu *mu;
    bool slices;      /* what lies in memory may be read piece by piece */
    bool *lies;       /* by tensor: in memory between parts */
    uint32_t *writer; /* by tensor: the step, PO_NONE */
    uint32_t *n_writers;
} cutting;

static bool is_between(const po_mu *mu, uint32_t tensor) {
    return mu->tensors[tensor].place == PO_MU_DEVICE;
}

static void find_writers(cutting *c) {
    const po_mu *mu = c->mu;
    for (uint32_t i = 0; i < mu->n_tensors; i++)
        c->writer[i] = PO_NONE;
    for (uint32_t step = mu->first; step != PO_NONE; step = mu->nodes[step].next)
        for (uint32_t n = mu->nodes[step].first; n != PO_NONE; n = mu->nodes[n].next) {
            uint32_t t = mu->nodes[n].statement.out.tensor;
            c->n_writers[t] += c->writer[t] != step;
            c->writer[t] = step;
        }
}

/* --- indices --- */

/* Whether two accesses cut the tensor's axes into the same digits. */
static bool same_digits(const po_mu *mu, const po_mu_access *a, const po_mu_access *b) {
    for (uint32_t x = 0; x < mu->tensors[a->tensor].rank; x++) {
        uint32_t n, m;
        po_mu_term i[PO_MU_MAX_RANK], k[PO_MU_MAX_RANK];
        int64_t dim = mu->tensors[a->tensor].dims[x];
        if (!part_digits_of(mu, &a->axes[x], dim, &n, i) ||
            !part_digits_of(mu, &b->axes[x], dim, &m, k) || n != m)
            return false;
        for (uint32_t d = 0; d < n; d++)
            if (i[d].coef != k[d].coef ||
                mu->labels[i[d].label].extent != mu->labels[k[d].label].extent)
                return false;
    }
    return true;
}

/* --- the parts --- */

static bool reduces(const cutting *c, uint32_t step) {
    for (uint32_t n = c->mu->nodes[step].first; n != PO_NONE; n = c->mu->nodes[n].next)
        if (c->mu->nodes[n].statement.combine != PO_MU_SET)
            return true;
    return false;
}

/* Marks the steps that make a tensor from what lies in memory; their statements. */
static uint32_t mark(const cutting *c, uint32_t tensor, bool *in) {
    const po_mu *mu = c->mu;
    uint32_t statements = 0;
    for (uint32_t step = mu->first; step != PO_NONE; step = mu->nodes[step].next)
        for (uint32_t n = mu->nodes[step].first; n != PO_NONE; n = mu->nodes[n].next)
            in[step] |= mu->nodes[n].statement.out.tensor == tensor;
    for (bool again = true; again;) {
        again = false;
        for (uint32_t step = mu->first; step != PO_NONE; step = mu->nodes[step].next)
            for (uint32_t n = mu->nodes[step].first; in[step] && n != PO_NONE;
                 n = mu->nodes[n].next)
                for (uint32_t k = 0; k < mu->nodes[n].statement.n_in; k++) {
                    uint32_t t = mu->nodes[n].statement.in[k].tensor;
                    if (!is_between(mu, t) || c->lies[t] || c->writer[t] == PO_NONE ||
                        in[c->writer[t]])
                        continue;
                    in[c->writer[t]] = again = true;
                }
    }
    for (uint32_t step = mu->first; step != PO_NONE; step = mu->nodes[step].next)
        for (uint32_t n = mu->nodes[step].first; in[step] && n != PO_NONE; n = mu->nodes[n].next)
            statements++;
    return statements;
}

/* A step that is no part of a larger one: it writes two tensors, or a piece of one. */
static bool is_alone(const cutting *c, uint32_t step) {
    const po_mu *mu = c->mu;
    uint32_t first = PO_NONE;
    for (uint32_t n = mu->nodes[step].first; n != PO_NONE; n = mu->nodes[n].next) {
        uint32_t t = mu->nodes[n].statement.out.tensor;
        if (mu->tensors[t].place == PO_MU_REGISTER)
            continue;
        if ((first != PO_NONE && first != t) || c->n_writers[t] > 1)
            return true;
        first = t;
    }
    return false;
}

/* What is in the way of a part: tensors that lie in memory because of how they are used. */
static void must_lie(cutting *c) {
    const po_mu *mu = c->mu;
    for (uint32_t t = 0; t < mu->n_tensors; t++)
        c->lies[t] |= mu->tensors[t].place == PO_MU_OUTPUT ||
                      (is_between(mu, t) && (c->n_writers[t] != 1 || c->writer[t] == PO_NONE));
    const po_mu_access **first = PO_NEW_N(c->arena, const po_mu_access *, mu->n_tensors + 1);
    for (uint32_t i = 0; i < mu->n_nodes; i++) {
        const po_mu_statement *s = &mu->nodes[i].statement;
        for (uint32_t k = 0; mu->nodes[i].kind == PO_MU_STATEMENT && k <= s->n_in; k++) {
            const po_mu_access *a = k < s->n_in ? &s->in[k] : &s->out;
            if (!first[a->tensor])
                first[a->tensor] = a;
            if (is_between(mu, a->tensor) && !same_digits(mu, a, first[a->tensor]))
                c->lies[a->tensor] = true;
        }
    }
    /* Steps by themselves: what they write and read lies in memory. */
    for (uint32_t step = mu->first; step != PO_NONE; step = mu->nodes[step].next) {
        if (!is_alone(c, step))
            continue;
        for (uint32_t n = mu->nodes[step].first; n != PO_NONE; n = mu->nodes[n].next) {
            const po_mu_statement *s = &mu->nodes[n].statement;
            for (uint32_t k = 0; k <= s->n_in; k++) {
                uint32_t t = po_mu_touched(s, k);
                c->lies[t] |= is_between(mu, t);
            }
        }
    }
}

/* Iterations of a step's statements. */
static double work_of(const cutting *c, uint32_t step) {
    double all = 0;
    for (uint32_t n = c->mu->nodes[step].first; n != PO_NONE; n = c->mu->nodes[n].next) {
        uint32_t n_kept, n_reduced, *kept, *reduced;
        double times = 1;
        po_mu_labels_of(c->mu, &c->mu->nodes[n].statement, c->arena, &n_kept, &kept, &n_reduced,
                        &reduced);
        for (uint32_t i = 0; i < n_kept + n_reduced; i++)
            times *= (double)c->mu->labels[i < n_kept ? kept[i] : reduced[i - n_kept]].extent;
        all += times;
    }
    return all;
}

/* Sums that two parts would each make for themselves, where they are no small part of the work;
 * parts that are too large. */
static bool cut_more(cutting *c) {
    const po_mu *mu = c->mu;
    uint32_t *seen = PO_NEW_N(c->arena, uint32_t, mu->n_nodes + 1);
    for (uint32_t t = 0; t < mu->n_tensors; t++) {
        bool *in = PO_NEW_N(c->arena, bool, mu->n_nodes + 1);
        if (!c->lies[t])
            continue;
        uint32_t statements = mark(c, t, in), half = 0, best = PO_NONE;
        double work = 0;
        for (uint32_t step = mu->first; step != PO_NONE; step = mu->nodes[step].next)
            work += in[step] ? work_of(c, step) : 0;
        for (uint32_t step = mu->first; step != PO_NONE; step = mu->nodes[step].next) {
            uint32_t out = PO_NONE;
            if (!in[step])
                continue;
            for (uint32_t n = mu->nodes[step].first; n != PO_NONE; n = mu->nodes[n].next, half++)
                out = mu->nodes[n].statement.out.tensor;
            if (!is_between(mu, out) || c->lies[out])
                continue;
            if (seen[step]++ && reduces(c, step) && work_of(c, step) > SMALL * work) {
                c->lies[out] = true;
                return true;
            }
            if (half <= statements / 2 + 1 || best == PO_NONE)
                best = out;
        }
        if (statements > MOST_STATEMENTS && best != PO_NONE) {
            c->lies[best] = true;
            return true;
        }
    }
    return false;
}

/* --- a part by itself --- */

typedef struct taking {
    cutting *c;
    po_mu_part *part;
    uint32_t *label, *tensor; /* of the whole: the part's; PO_NONE */
    uint32_t cap, numbers[3];
} taking;

/* The part's twin of a tensor that lies in memory, cut into digits as the first access has them. */
static bool take_tensor(taking *k, const po_mu_access *a, bool target) {
    const po_mu *from = k->c->mu;
    const po_mu_tensor *t = &from->tensors[a->tensor];
    bool inner = is_between(from, a->tensor) && !k->c->lies[a->tensor];
    po_mu_view twin = {.tensor = inner ? PO_NONE : a->tensor};
    int64_t dims[PO_MU_MAX_RANK];
    uint32_t rank = 0;
    po_mu_place place = t->place == PO_MU_REGISTER ? PO_MU_DEVICE
                        : inner                    ? t->place
                        : target                   ? PO_MU_OUTPUT
                        : t->place == PO_MU_WEIGHT ? PO_MU_WEIGHT
                                                   : PO_MU_INPUT;
    if (t->place == PO_MU_REGISTER)
        twin.tensor = PO_NONE;
    if (t->place == PO_MU_TABLE)
        return false;
    for (uint32_t x = 0; x < t->rank; x++) {
        uint32_t n;
        po_mu_term digits[PO_MU_MAX_RANK];
        if (!part_digits_of(from, &a->axes[x], t->dims[x], &n, digits))
            return false;
        for (uint32_t i = 0; i < (n ? n : 1); i++, rank++) {
            if (rank == PO_MU_MAX_RANK)
                return false;
            twin.axis[rank] = x;
            twin.times[rank] = n ? digits[i].coef : 1;
            dims[rank] = n ? from->labels[digits[i].label].extent : 1;
        }
    }
    uint32_t id = po_mu_add_tensor(k->part->mu, t->name, place, rank, dims);
    k->part->mu->tensors[id].type = t->type;
    if (place != PO_MU_DEVICE)
        k->part->mu->tensors[id].number = k->numbers[place == PO_MU_INPUT    ? 0
                                                     : place == PO_MU_OUTPUT ? 1
                                                                             : 2]++;
    k->tensor[a->tensor] = id;
    uint32_t n = id;
    PO_PUSH(k->c->arena, k->part->twin, n, k->cap, twin);
    return true;
}

static uint32_t label_of(taking *k, uint32_t label) {
    const po_mu_label *l = &k->c->mu->labels[label];
    if (k->label[label] == PO_NONE)
        k->label[label] = po_mu_add_label(k->part->mu, l->name, l->extent);
    return k->label[label];
}

/* --- pieces of what lies in memory --- */

/* A piece that an access reads: an axis for each of its labels. */
typedef struct piece {
    po_mu_view view;
    uint32_t rank, label[PO_MU_MAX_RANK]; /* PO_NONE: one element */
    int64_t dims[PO_MU_MAX_RANK];
} piece;

static bool add_axis(piece *p, uint32_t axis, int64_t times, uint32_t label, int64_t dim) {
    for (uint32_t i = 0; i < p->rank && label != PO_NONE; i++)
        if (p->label[i] == label)
            return false; /* a diagonal */
    if (p->rank == PO_MU_MAX_RANK || times < 1)
        return false;
    p->view.axis[p->rank] = axis;
    p->view.times[p->rank] = times;
    p->label[p->rank] = label;
    p->dims[p->rank++] = dim;
    return true;
}

/* Larger steps first; what lies in neighbouring elements, and only that, has the last axis. */
static bool piece_of(const po_mu *mu, const po_mu_access *a, piece *p) {
    const uint32_t rank = mu->tensors[a->tensor].rank;
    *p = (piece){.view.tensor = a->tensor};
    if (!po_mu_is_inside(mu, a))
        return false;
    for (uint32_t x = 0; x < rank; x++) {
        const po_mu_index *i = &a->axes[x];
        bool done[PO_MU_MAX_RANK] = {false};
        int64_t least = 1;
        p->view.from[x] = i->offset;
        if (i->n > PO_MU_MAX_RANK || (i->n == 0 && !add_axis(p, x, 1, PO_NONE, 1)))
            return false;
        for (uint32_t k = 0; k < i->n; k++) {
            uint32_t best = PO_NONE;
            for (uint32_t t = 0; t < i->n; t++)
                if (!done[t] && (best == PO_NONE || i->terms[t].coef > i->terms[best].coef))
                    best = t;
            done[best] = true;
            least = i->terms[best].coef;
            if (!add_axis(p, x, least, i->terms[best].label,
                          mu->labels[i->terms[best].label].extent))
                return false;
        }
        if (x + 1 == rank && least != 1 && !add_axis(p, x, 1, PO_NONE, 1))
            return false;
    }
    return true;
}

static bool is_piece(const taking *k, uint32_t tensor, const piece *p) {
    const po_mu_tensor *t = &k->part->mu->tensors[tensor];
    const po_mu_view *v = &k->part->twin[tensor];
    bool same = v->tensor == p->view.tensor && t->rank == p->rank;
    for (uint32_t x = 0; same && x < k->c->mu->tensors[v->tensor].rank; x++)
        same = v->from[x] == p->view.from[x];
    for (uint32_t x = 0; same && x < p->rank; x++)
        same = v->axis[x] == p->view.axis[x] && v->times[x] == p->view.times[x] &&
               t->dims[x] == p->dims[x];
    return same;
}

static bool take_piece(taking *k, const po_mu_access *a, po_mu_access *to) {
    const po_mu_tensor *t = &k->c->mu->tensors[a->tensor];
    po_mu *mu = k->part->mu;
    uint32_t id = 0;
    piece p;
    if (!piece_of(k->c->mu, a, &p))
        return false;
    while (id < mu->n_tensors && !is_piece(k, id, &p))
        id++;
    if (id == mu->n_tensors) {
        const po_mu_place place = t->place == PO_MU_WEIGHT ? PO_MU_WEIGHT : PO_MU_INPUT;
        id = po_mu_add_tensor(mu, t->name, place, p.rank, p.dims);
        mu->tensors[id].type = t->type;
        mu->tensors[id].number = k->numbers[place == PO_MU_INPUT ? 0 : 2]++;
        uint32_t n = id;
        PO_PUSH(k->c->arena, k->part->twin, n, k->cap, p.view);
    }
    *to = po_mu_access_of(mu, id);
    for (uint32_t x = 0; x < p.rank; x++)
        if (p.label[x] != PO_NONE)
            po_mu_at(mu, to, x, 1, label_of(k, p.label[x]));
    return true;
}

static bool take_access(taking *k, const po_mu_access *a, bool target, po_mu_access *to) {
    const po_mu *from = k->c->mu;
    po_mu *mu = k->part->mu;
    const po_mu_place place = from->tensors[a->tensor].place;
    if (k->c->slices && !target &&
        (place == PO_MU_INPUT || place == PO_MU_WEIGHT ||
         (place == PO_MU_DEVICE && k->c->lies[a->tensor])))
        return take_piece(k, a, to);
    if (k->tensor[a->tensor] == PO_NONE && !take_tensor(k, a, target))
        return false;
    uint32_t id = k->tensor[a->tensor], rank = mu->tensors[id].rank;
    const po_mu_view *twin = &k->part->twin[id];
    *to = po_mu_access_of(mu, id);
    for (uint32_t x = 0; x < from->tensors[a->tensor].rank; x++) {
        const po_mu_index *index = &a->axes[x];
        uint32_t n;
        po_mu_term digits[PO_MU_MAX_RANK];
        if (!part_digits_of(from, index, from->tensors[a->tensor].dims[x], &n, digits))
            return false;
        uint32_t parts = 0;
        for (uint32_t y = 0; y < rank; y++)
            parts += twin->axis[y] == x;
        if (parts != (n ? n : 1))
            return false;
        for (uint32_t i = 0; i < n; i++) {
            uint32_t y = 0;
            while (y < rank && (twin->axis[y] != x || twin->times[y] != digits[i].coef))
                y++;
            uint32_t l = digits[i].label;
            if (y == rank || mu->tensors[id].dims[y] != from->labels[l].extent)
                return false;
            po_mu_at(mu, to, y, 1, label_of(k, l));
        }
    }
    return true;
}

static bool take_statement(taking *k, uint32_t step, const po_mu_statement *s) {
    po_mu *mu = k->part->mu;
    uint32_t id = po_mu_add_statement(mu, step, s->combine);
    mu->nodes[id].statement.fresh = s->fresh;
    po_mu_access a;
    for (uint32_t i = 0; i < s->n_in; i++) {
        if (!take_access(k, &s->in[i], false, &a))
            return false;
        po_mu_operand(mu, id, a);
    }
    po_mu_copy_items(mu, id, s);
    if (!take_access(k, &s->out, s->out.tensor == k->part->target, &a))
        return false;
    mu->nodes[id].statement.out = a;
    return true;
}

static void take(cutting *c, po_mu_part *part) {
    taking k = {.c = c, .part = part};
    const po_mu *from = c->mu;
    k.label = PO_NEW_N(c->arena, uint32_t, from->n_labels + 1);
    k.tensor = PO_NEW_N(c->arena, uint32_t, from->n_tensors + 1);
    for (uint32_t i = 0; i < from->n_labels; i++)
        k.label[i] = PO_NONE;
    for (uint32_t i = 0; i < from->n_tensors; i++)
        k.tensor[i] = PO_NONE;
    part->mu = po_mu_create(c->arena, from->name);
    part->twin = NULL;
    for (uint32_t i = 0; i < part->n_steps; i++) {
        uint32_t step = po_mu_add_step(part->mu, from->nodes[part->steps[i]].name);
        for (uint32_t n = from->nodes[part->steps[i]].first; n != PO_NONE; n = from->nodes[n].next)
            if (from->nodes[n].kind != PO_MU_STATEMENT ||
                !take_statement(&k, step, &from->nodes[n].statement)) {
                part->mu = NULL;
                return;
            }
    }
    for (uint32_t i = 0; i < part->mu->n_tensors; i++)
        po_mu_layout(part->mu, i, 1, 0);
}

void part_all(po_arena *arena, const po_mu *naive, const bool *more, bool slices,
              po_mu_part **parts, uint32_t *n_parts) {
    cutting c = {.arena = arena,
                 .mu = naive,
                 .slices = slices,
                 .lies = PO_NEW_N(arena, bool, naive->n_tensors + 1),
                 .writer = PO_NEW_N(arena, uint32_t, naive->n_tensors + 1),
                 .n_writers = PO_NEW_N(arena, uint32_t, naive->n_tensors + 1)};
    for (uint32_t i = 0; i < naive->n_tensors && more; i++)
        c.lies[i] = more[i];
    find_writers(&c);
    must_lie(&c);
    while (cut_more(&c)) {
    }
    po_mu_part *list = NULL;
    uint32_t n = 0, cap = 0;
    /* By the step that ends them: what a part reads was made before. */
    for (uint32_t step = naive->first; step != PO_NONE; step = naive->nodes[step].next) {
        uint32_t out = PO_NONE;
        for (uint32_t k = naive->nodes[step].first; k != PO_NONE; k = naive->nodes[k].next)
            out = naive->nodes[k].statement.out.tensor;
        if (out == PO_NONE || !c.lies[out])
            continue;
        po_mu_part part = {.target = out};
        uint32_t cap_steps = 0;
        bool alone = is_alone(&c, step);
        bool *in = PO_NEW_N(arena, bool, naive->n_nodes + 1);
        if (!alone)
            mark(&c, out, in);
        in[step] = true;
        for (uint32_t s = naive->first; s != PO_NONE; s = naive->nodes[s].next)
            if (in[s])
                PO_PUSH(arena, part.steps, part.n_steps, cap_steps, s);
        if (!alone)
            take(&c, &part);
        PO_PUSH(arena, list, n, cap, part);
    }
    *parts = list;
    *n_parts = n;
}

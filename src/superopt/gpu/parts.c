/* Cuts a naive muGraph where tensors must lie in memory, where two parts would each do much of the
 * same work, and where a part has more than 32 statements. Axes of several digits become several
 * axes in a part's own muGraph. */
#include "superopt/gpu/parts.h"

/* A part of more statements is cut further; the search takes as many. */
enum { MOST_STATEMENTS = 32 };
/* Of a part's work: so much may be done again in another part. */
static const double SMALL = 1.0 / 64;

/* --- who writes, who reads --- */

typedef struct cutting {
    po_arena *arena;
    const po_mu *mu;
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
        if (!gpu_digits_of(mu, &a->axes[x], dim, &n, i) ||
            !gpu_digits_of(mu, &b->axes[x], dim, &m, k) || n != m)
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
    gpu_part *part;
    uint32_t *label, *tensor; /* of the whole: the part's; PO_NONE */
    uint32_t cap, numbers[3];
} taking;

/* The part's twin of a tensor that lies in memory, cut into digits as the first access has them. */
static bool take_tensor(taking *k, const po_mu_access *a, bool target) {
    const po_mu *from = k->c->mu;
    const po_mu_tensor *t = &from->tensors[a->tensor];
    bool inner = is_between(from, a->tensor) && !k->c->lies[a->tensor];
    gpu_twin twin = {.tensor = inner ? PO_NONE : a->tensor};
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
        if (!gpu_digits_of(from, &a->axes[x], t->dims[x], &n, digits))
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

static bool take_access(taking *k, const po_mu_access *a, bool target, po_mu_access *to) {
    const po_mu *from = k->c->mu;
    po_mu *mu = k->part->mu;
    if (k->tensor[a->tensor] == PO_NONE && !take_tensor(k, a, target))
        return false;
    uint32_t id = k->tensor[a->tensor], rank = mu->tensors[id].rank;
    const gpu_twin *twin = &k->part->twin[id];
    *to = po_mu_access_of(mu, id);
    for (uint32_t x = 0; x < from->tensors[a->tensor].rank; x++) {
        const po_mu_index *index = &a->axes[x];
        uint32_t n;
        po_mu_term digits[PO_MU_MAX_RANK];
        if (!gpu_digits_of(from, index, from->tensors[a->tensor].dims[x], &n, digits))
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
            if (k->label[l] == PO_NONE)
                k->label[l] = po_mu_add_label(mu, from->labels[l].name, from->labels[l].extent);
            po_mu_at(mu, to, y, 1, k->label[l]);
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

static void take(cutting *c, gpu_part *part) {
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

void gpu_parts_of(po_arena *arena, const po_mu *naive, const bool *more, gpu_part **parts,
                  uint32_t *n_parts) {
    cutting c = {.arena = arena,
                 .mu = naive,
                 .lies = PO_NEW_N(arena, bool, naive->n_tensors + 1),
                 .writer = PO_NEW_N(arena, uint32_t, naive->n_tensors + 1),
                 .n_writers = PO_NEW_N(arena, uint32_t, naive->n_tensors + 1)};
    for (uint32_t i = 0; i < naive->n_tensors && more; i++)
        c.lies[i] = more[i];
    find_writers(&c);
    must_lie(&c);
    while (cut_more(&c)) {
    }
    gpu_part *list = NULL;
    uint32_t n = 0, cap = 0;
    /* By the step that ends them: what a part reads was made before. */
    for (uint32_t step = naive->first; step != PO_NONE; step = naive->nodes[step].next) {
        uint32_t out = PO_NONE;
        for (uint32_t k = naive->nodes[step].first; k != PO_NONE; k = naive->nodes[k].next)
            out = naive->nodes[k].statement.out.tensor;
        if (out == PO_NONE || !c.lies[out])
            continue;
        gpu_part part = {.target = out};
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

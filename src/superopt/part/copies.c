/* Copies that need not be made: what only moves elements is read where they lay before. */
#include "superopt/part/part.h"

enum { TERMS = 16 };

typedef struct affine {
    int64_t offset;
    uint32_t n;
    po_mu_term terms[TERMS];
} affine;

static bool add_term(affine *a, int64_t coef, uint32_t label) {
    for (uint32_t i = 0; i < a->n; i++)
        if (a->terms[i].label == label) {
            a->terms[i].coef += coef;
            return true;
        }
    if (a->n == TERMS)
        return false;
    a->terms[a->n++] = (po_mu_term){label, coef};
    return true;
}

/* A statement that only moves elements of another tensor in memory. */
bool part_is_copy(const po_mu *mu, const po_mu_statement *s) {
    if (s->combine != PO_MU_SET || s->n_in != 1 || s->n_items != 1)
        return false;
    po_mu_place place = mu->tensors[s->in[0].tensor].place;
    return place == PO_MU_INPUT || place == PO_MU_WEIGHT || place == PO_MU_DEVICE;
}

/* The axis that a label alone moves, by single elements; PO_NONE. */
uint32_t part_axis_of(const po_mu *mu, const po_mu_access *a, uint32_t label) {
    for (uint32_t x = 0; x < mu->tensors[a->tensor].rank; x++)
        if (a->axes[x].n == 1 && a->axes[x].terms[0].label == label &&
            a->axes[x].terms[0].coef == 1)
            return x;
    return PO_NONE;
}

/* An access of what a copy reads in place of `at`, an access of what it writes: each label of the
 * copy becomes what `at` has on its axis, less the copy's offset there. False where an axis of the
 * copy has no label of its own. */
bool part_through(po_mu *to, const po_mu *mu, const po_mu_statement *copy, const po_mu_access *at,
                  po_mu_access *out) {
    const po_mu_access *from = &copy->in[0];
    *out = po_mu_access_of(to, from->tensor);
    for (uint32_t x = 0; x < mu->tensors[from->tensor].rank; x++) {
        const po_mu_index *index = &from->axes[x];
        affine sum = {.offset = index->offset};
        for (uint32_t k = 0; k < index->n; k++) {
            uint32_t axis = part_axis_of(mu, &copy->out, index->terms[k].label);
            int64_t coef = index->terms[k].coef;
            if (axis == PO_NONE)
                return false;
            const po_mu_index *by = &at->axes[axis];
            sum.offset += coef * (by->offset - copy->out.axes[axis].offset);
            for (uint32_t i = 0; i < by->n; i++)
                if (!add_term(&sum, coef * by->terms[i].coef, by->terms[i].label))
                    return false;
        }
        po_mu_at(to, out, x, sum.offset, PO_NONE);
        for (uint32_t i = 0; i < sum.n; i++)
            if (sum.terms[i].coef != 0)
                po_mu_at(to, out, x, sum.terms[i].coef, sum.terms[i].label);
    }
    return true;
}

/* --- whole copies, in a naive muGraph --- */

/* Whether the statement fills what it writes, element by element, as it is read. */
static bool is_whole(const po_mu *mu, const po_mu_statement *s) {
    const po_mu_tensor *to = &mu->tensors[s->out.tensor], *from = &mu->tensors[s->in[0].tensor];
    bool same = to->type == from->type || to->type == PO_MU_F32;
    for (uint32_t x = 0; x < to->rank; x++) {
        const po_mu_index *i = &s->out.axes[x];
        same &=
            i->offset == 0 && (i->n == 0 ? to->dims[x] == 1
                                         : i->n == 1 && i->terms[0].coef == 1 &&
                                               mu->labels[i->terms[0].label].extent == to->dims[x]);
    }
    return same && po_mu_is_inside(mu, &s->in[0]);
}

typedef struct viewing {
    const po_mu *mu;
    const po_mu_statement **copy; /* by tensor: the copy that makes it; NULL */
    bool *gone;                   /* by step */
} viewing;

static bool all_inside(const po_mu *mu, uint32_t tensor) {
    for (uint32_t n = 0; n < mu->n_nodes; n++) {
        const po_mu_statement *s = &mu->nodes[n].statement;
        for (uint32_t k = 0; mu->nodes[n].kind == PO_MU_STATEMENT && k < s->n_in; k++)
            if (s->in[k].tensor == tensor && !po_mu_is_inside(mu, &s->in[k]))
                return false;
    }
    return true;
}

static void find_copies(viewing *v, po_arena *arena) {
    const po_mu *mu = v->mu;
    uint32_t *writers = PO_NEW_N(arena, uint32_t, mu->n_tensors + 1);
    for (uint32_t n = 0; n < mu->n_nodes; n++)
        if (mu->nodes[n].kind == PO_MU_STATEMENT)
            writers[mu->nodes[n].statement.out.tensor]++;
    for (uint32_t step = mu->first; step != PO_NONE; step = mu->nodes[step].next) {
        uint32_t n = mu->nodes[step].first;
        const po_mu_statement *s = &mu->nodes[n].statement;
        if (mu->nodes[n].kind != PO_MU_STATEMENT || mu->nodes[n].next != PO_NONE ||
            mu->tensors[s->out.tensor].place != PO_MU_DEVICE || writers[s->out.tensor] != 1 ||
            !part_is_copy(mu, s) || !is_whole(mu, s) || !all_inside(mu, s->out.tensor))
            continue;
        v->copy[s->out.tensor] = s;
        v->gone[step] = true;
    }
}

static bool resolve(const viewing *v, po_mu *to, po_mu_access a, po_mu_access *out) {
    for (uint32_t depth = 0; v->copy[a.tensor]; depth++) {
        po_mu_access next;
        if (depth > v->mu->n_tensors || !part_through(to, v->mu, v->copy[a.tensor], &a, &next))
            return false;
        a = next;
    }
    *out = a;
    return true;
}

/* Takes back copies whose readers cannot do without; false: there are none. */
static bool keep_needed(viewing *v, po_mu *scratch) {
    const po_mu *mu = v->mu;
    for (uint32_t n = 0; n < mu->n_nodes; n++) {
        const po_mu_statement *s = &mu->nodes[n].statement;
        for (uint32_t k = 0; mu->nodes[n].kind == PO_MU_STATEMENT && k < s->n_in; k++) {
            po_mu_access out;
            uint32_t t = s->in[k].tensor;
            if (!v->copy[t] || resolve(v, scratch, s->in[k], &out))
                continue;
            for (uint32_t step = mu->first; step != PO_NONE; step = mu->nodes[step].next)
                if (&mu->nodes[mu->nodes[step].first].statement == v->copy[t])
                    v->gone[step] = false;
            v->copy[t] = NULL;
            return true;
        }
    }
    return false;
}

po_mu *part_same_tables(po_arena *arena, const po_mu *mu) {
    po_mu *to = po_mu_create(arena, mu->name);
    for (uint32_t i = 0; i < mu->n_labels; i++)
        po_mu_add_label(to, mu->labels[i].name, mu->labels[i].extent);
    for (uint32_t i = 0; i < mu->n_tensors; i++) {
        const po_mu_tensor *t = &mu->tensors[i];
        uint32_t id = po_mu_add_tensor(to, t->name, t->place, t->rank, t->dims);
        to->tensors[id].type = t->type;
        to->tensors[id].number = t->number;
        to->tensors[id].table = t->table;
        to->tensors[id].scope = t->scope;
    }
    return to;
}

po_mu_access part_same_access(po_mu *to, const po_mu *mu, const po_mu_access *a) {
    po_mu_access out = po_mu_access_of(to, a->tensor);
    for (uint32_t x = 0; x < mu->tensors[a->tensor].rank; x++) {
        po_mu_at(to, &out, x, a->axes[x].offset, PO_NONE);
        for (uint32_t k = 0; k < a->axes[x].n; k++)
            po_mu_at(to, &out, x, a->axes[x].terms[k].coef, a->axes[x].terms[k].label);
    }
    return out;
}

/* A statement with its items; operands and what it writes are the caller's. */
uint32_t part_same_statement(po_mu *to, uint32_t parent, const po_mu_statement *s,
                             const po_mu_access *in, po_mu_access out) {
    uint32_t id = po_mu_add_statement(to, parent, s->combine);
    to->nodes[id].statement.fresh = s->fresh;
    to->nodes[id].statement.fused = s->fused;
    to->nodes[id].statement.out = out;
    for (uint32_t k = 0; k < s->n_in; k++)
        po_mu_operand(to, id, in[k]);
    po_mu_copy_items(to, id, s);
    return id;
}

const po_mu *part_without_copies(po_arena *arena, const po_mu *naive) {
    viewing v = {naive, PO_NEW_N(arena, const po_mu_statement *, naive->n_tensors + 1),
                 PO_NEW_N(arena, bool, naive->n_nodes + 1)};
    po_mu *to = part_same_tables(arena, naive);
    find_copies(&v, arena);
    while (keep_needed(&v, to)) {
    }
    for (uint32_t step = naive->first; step != PO_NONE; step = naive->nodes[step].next) {
        if (v.gone[step])
            continue;
        uint32_t id = po_mu_add_step(to, naive->nodes[step].name);
        for (uint32_t n = naive->nodes[step].first; n != PO_NONE; n = naive->nodes[n].next) {
            const po_mu_statement *s = &naive->nodes[n].statement;
            po_mu_access in[PO_MU_MAX_INPUTS];
            if (naive->nodes[n].kind != PO_MU_STATEMENT)
                return naive;
            for (uint32_t k = 0; k < s->n_in; k++) {
                if (!resolve(&v, to, s->in[k], &in[k]))
                    return naive;
                if (!v.copy[s->in[k].tensor])
                    in[k] = part_same_access(to, naive, &s->in[k]);
            }
            part_same_statement(to, id, s, in, part_same_access(to, naive, &s->out));
        }
    }
    for (uint32_t i = 0; i < to->n_tensors; i++)
        po_mu_layout(to, i, 1, 0);
    return to;
}

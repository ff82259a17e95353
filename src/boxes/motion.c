/* Motions are found step by step from the inputs, in exact fractions: those of a product are the
 * choices of one for each factor, moved on by the term's indices. Beyond 64 motions, or 8 factors
 * of one, nothing is known. */
#include "boxes/motion.h"

enum { MOST_MOTIONS = 64, MOST_SLOTS = 8, MOST_PRODUCTS = MOST_MOTIONS * MOST_MOTIONS };

typedef struct finder {
    po_arena *arena;
    const po_program *program;
    po_motions *of; /* by value */
} finder;

static int compare_slots(const po_motion_slot *a, const po_motion_slot *b) {
    if (a->input != b->input)
        return a->input < b->input ? -1 : 1;
    if (a->kind != b->kind)
        return a->kind < b->kind ? -1 : 1;
    return (a->eps > b->eps) - (a->eps < b->eps);
}

static bool same_type(const po_motion *a, const po_motion *b) {
    if (a->n_slots != b->n_slots)
        return false;
    for (uint32_t i = 0; i < a->n_slots; i++)
        if (compare_slots(&a->slots[i], &b->slots[i]))
            return false;
    return true;
}

/* On the axes of `moving` alone. */
static bool same_motion(const po_motion *a, const po_motion *b, uint32_t rank, uint64_t moving) {
    for (uint32_t r = 0; r < a->n_rows; r++)
        for (uint32_t x = 0; x < rank; x++)
            if (moving >> x & 1 && !po_rational_equal(a->by[r * rank + x], b->by[r * rank + x]))
                return false;
    return true;
}

static void add(finder *f, po_motions *into, const po_motion *motion, uint32_t rank) {
    for (uint32_t i = 0; i < into->n; i++)
        if (same_type(&into->items[i], motion) &&
            same_motion(&into->items[i], motion, rank, UINT64_MAX)) {
            into->items[i].still &= motion->still;
            return;
        }
    if (into->n == MOST_MOTIONS) {
        into->known = false;
        return;
    }
    PO_PUSH(f->arena, into->items, into->n, into->cap, *motion);
}

static uint32_t rows_of(const finder *f, const po_motion_slot *slot) {
    return f->program->values[slot->input].rank;
}

/* Brings the slots, and their rows, into order. */
static void sort(const finder *f, po_motion *m, uint32_t rank) {
    po_motion_slot *slots = po_arena_memdup(f->arena, m->slots, m->n_slots * sizeof *slots);
    po_rational *by = PO_NEW_N(f->arena, po_rational, (size_t)m->n_rows * rank);
    uint32_t order[MOST_SLOTS], start[MOST_SLOTS], at = 0;
    for (uint32_t i = 0; i < m->n_slots; i++) {
        start[i] = at;
        at += rows_of(f, &m->slots[i]);
        uint32_t k = i;
        for (; k && compare_slots(&m->slots[order[k - 1]], &m->slots[i]) > 0; k--)
            order[k] = order[k - 1];
        order[k] = i;
    }
    at = 0;
    for (uint32_t i = 0; i < m->n_slots; i++) {
        uint32_t rows = rows_of(f, &m->slots[order[i]]);
        slots[i] = m->slots[order[i]];
        for (uint32_t k = 0; k < rows * rank; k++)
            by[at * rank + k] = m->by[start[order[i]] * rank + k];
        at += rows;
    }
    m->slots = slots;
    m->by = by;
}

/* The motion of one term along axis x of its output: which variable, and by how much a step. */
typedef struct drive {
    uint32_t var[PO_MAX_RANK];
    int64_t coef[PO_MAX_RANK];
} drive;

/* Adds the rows of an operand's motion, moved on by the term. False on overflow. */
static bool push_rows(const po_sum *sum, const po_term *t, const drive *d, const po_index *at,
                      const po_motion *of, po_rational *by, uint64_t *still) {
    for (uint32_t x = 0; x < sum->rank; x++) {
        if (d->var[x] == PO_NONE)
            continue;
        for (uint32_t y = 0; y < at->rank; y++) {
            int64_t coef = po_index_coef(t, at, y, d->var[x]);
            po_rational step, product;
            if (coef == 0)
                continue;
            if (y < 64 && of->still >> y & 1)
                *still |= (uint64_t)1 << x;
            if (!po_rational_make(coef, d->coef[x], &step))
                return false;
            for (uint32_t r = 0; r < of->n_rows; r++) {
                po_rational *to = &by[r * sum->rank + x];
                if (!po_rational_mul(step, of->by[r * at->rank + y], &product) ||
                    !po_rational_add(*to, product, to))
                    return false;
            }
        }
    }
    return true;
}

/* What the factors of a term multiply to, one choice of motion for each. */
static void add_product(finder *f, const po_program_step *step, const po_term *t, const drive *d,
                        const uint32_t *choice, po_motions *into) {
    const po_sum *sum = step->sum;
    po_motion m = {0};
    po_motion_slot *slots = PO_NEW_N(f->arena, po_motion_slot, MOST_SLOTS);
    for (uint32_t x = 0; x < sum->rank; x++)
        if (d->var[x] == PO_NONE)
            m.still |= (uint64_t)1 << x;
    const po_motion *of[PO_SUM_MAX_FACTORS] = {NULL};
    for (uint32_t k = 0; k < t->n_factors; k++) {
        const po_operand *op = &sum->operands[t->factor[k].operand];
        if (op->kind == PO_OPERAND_TABLE)
            continue;
        of[k] = &f->of[step->in[op->input]].items[choice[k]];
        if (m.n_slots + of[k]->n_slots > MOST_SLOTS) {
            into->known = false;
            return;
        }
        for (uint32_t i = 0; i < of[k]->n_slots; i++) {
            slots[m.n_slots] = of[k]->slots[i];
            if (op->kind != PO_OPERAND_INPUT) {
                slots[m.n_slots].kind = op->kind;
                slots[m.n_slots].eps = op->kind == PO_OPERAND_RSQRT ? op->eps : 0;
            }
            m.n_slots++;
        }
        m.n_rows += of[k]->n_rows;
    }
    po_rational *by = PO_NEW_N(f->arena, po_rational, (size_t)m.n_rows * sum->rank);
    for (size_t i = 0; i < (size_t)m.n_rows * sum->rank; i++)
        by[i] = PO_RATIONAL(0);
    uint32_t row = 0;
    for (uint32_t k = 0; k < t->n_factors; k++) {
        if (!of[k])
            continue;
        if (!push_rows(sum, t, d, &t->factor[k].at, of[k], by + (size_t)row * sum->rank,
                       &m.still)) {
            into->known = false;
            return;
        }
        row += of[k]->n_rows;
    }
    m.slots = slots;
    m.by = by;
    sort(f, &m, sum->rank);
    add(f, into, &m, sum->rank);
}

static bool empty(const po_term *t) {
    for (uint32_t v = 0; v < t->n_vars; v++)
        if (t->extent[v] == 0)
            return true;
    return false;
}

static void add_term(finder *f, const po_program_step *step, const po_term *t, po_motions *into) {
    const po_sum *sum = step->sum;
    uint32_t n[PO_SUM_MAX_FACTORS], choice[PO_SUM_MAX_FACTORS] = {0};
    drive d;
    if (empty(t))
        return;
    for (uint32_t x = 0; x < sum->rank; x++) {
        /* An axis that is cut everywhere has no box in which anything moves along it; nothing that
         * another step moves along it is in a longer box either. */
        if (!po_cuts_moving(sum, t, x, &d.var[x]))
            d.var[x] = PO_NONE;
        d.coef[x] = d.var[x] == PO_NONE ? 1 : po_index_coef(t, &t->out, x, d.var[x]);
    }
    for (uint32_t k = 0; k < t->n_factors; k++) {
        const po_operand *op = &sum->operands[t->factor[k].operand];
        n[k] = 1;
        if (op->kind == PO_OPERAND_TABLE)
            continue;
        const po_motions *of = &f->of[step->in[op->input]];
        /* An atom of anything but an input is no free variable. */
        if (!of->known ||
            (op->kind != PO_OPERAND_INPUT && step->in[op->input] >= f->program->n_inputs)) {
            into->known = false;
            return;
        }
        n[k] = of->n;
        if (n[k] == 0)
            return; /* the operand is 0 everywhere */
    }
    for (uint32_t products = 0; products < MOST_PRODUCTS && into->known; products++) {
        add_product(f, step, t, &d, choice, into);
        uint32_t k = 0;
        while (k < t->n_factors && ++choice[k] == n[k])
            choice[k++] = 0;
        if (k == t->n_factors)
            return;
    }
    into->known = false;
}

/* Adds every order of slots that are alike. */
static void close_over_orders(finder *f, po_motions *m, uint32_t rank) {
    for (uint32_t i = 0; i < m->n && m->known; i++)
        for (uint32_t s = 0, row = 0; s + 1 < m->items[i].n_slots; s++) {
            const po_motion *from = &m->items[i];
            uint32_t rows = rows_of(f, &from->slots[s]);
            if (compare_slots(&from->slots[s], &from->slots[s + 1]) == 0) {
                po_motion swapped = *from;
                po_rational *by =
                    po_arena_memdup(f->arena, from->by, (size_t)from->n_rows * rank * sizeof *by);
                size_t size = (size_t)rows * rank * sizeof *by;
                memcpy(by + (size_t)row * rank, from->by + (size_t)(row + rows) * rank, size);
                memcpy(by + (size_t)(row + rows) * rank, from->by + (size_t)row * rank, size);
                swapped.by = by;
                add(f, m, &swapped, rank);
            }
            row += rows;
        }
}

po_motions po_motions_of(po_arena *arena, const po_program *program, uint32_t output) {
    finder f = {arena, program, PO_NEW_N(arena, po_motions, program->n_values)};
    for (uint32_t i = 0; i < program->n_inputs; i++) {
        uint32_t rank = program->values[i].rank;
        po_rational *by = PO_NEW_N(arena, po_rational, (size_t)rank * rank);
        for (uint32_t k = 0; k < rank * rank; k++)
            by[k] = PO_RATIONAL(k / rank == k % rank);
        po_motion_slot *slot = PO_NEW(arena, po_motion_slot);
        *slot = (po_motion_slot){.input = i, .kind = PO_OPERAND_INPUT};
        po_motion m = {.n_slots = 1, .n_rows = rank, .slots = slot, .by = by};
        f.of[i].known = true;
        add(&f, &f.of[i], &m, rank);
    }
    for (uint32_t i = 0; i < program->n_constants; i++) {
        /* Numbers: cut everywhere where they differ, so nothing of them moves. */
        po_motion m = {0};
        f.of[program->n_inputs + i].known = true;
        add(&f, &f.of[program->n_inputs + i], &m, program->values[program->n_inputs + i].rank);
    }
    for (uint32_t i = 0; i < program->n_steps; i++) {
        const po_program_step *step = &program->steps[i];
        po_motions *into = &f.of[step->out];
        into->known = step->sum->rank <= 64;
        for (uint32_t k = 0; k < step->sum->n_terms && into->known; k++)
            add_term(&f, step, &step->sum->terms[k], into);
    }
    uint32_t value = program->outputs[output];
    po_motions result = f.of[value];
    close_over_orders(&f, &result, program->values[value].rank);
    return result;
}

static bool has(const po_motions *m, uint32_t input, bool reciprocal) {
    for (uint32_t i = 0; i < m->n; i++)
        for (uint32_t s = 0; s < m->items[i].n_slots; s++)
            if (m->items[i].slots[s].input == input &&
                (m->items[i].slots[s].kind == PO_OPERAND_RECIPROCAL) == reciprocal)
                return true;
    return false;
}

static bool free_reciprocals(const po_motions *a, const po_motions *b) {
    for (uint32_t i = 0; i < a->n; i++)
        for (uint32_t s = 0; s < a->items[i].n_slots; s++) {
            const po_motion_slot *slot = &a->items[i].slots[s];
            if (slot->kind == PO_OPERAND_RECIPROCAL &&
                (has(a, slot->input, false) || has(b, slot->input, false)))
                return false;
        }
    return true;
}

bool po_motions_compatible(const po_motions *a, const po_motions *b) {
    return a->known && b->known && free_reciprocals(a, b) && free_reciprocals(b, a);
}

/* --- what must be tested --- */

static uint32_t distinct(const po_motion *const *of, uint32_t n, uint32_t rank, uint64_t moving) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < n; i++) {
        bool seen = false;
        for (uint32_t k = 0; k < i && !seen; k++)
            seen = same_motion(of[i], of[k], rank, moving);
        count += !seen;
    }
    return count;
}

void po_motions_need(po_arena *arena, const po_motions *a, const po_motions *b, uint32_t rank,
                     uint64_t moving, po_motion_need *need) {
    po_arena *scratch = po_arena_child(arena);
    const po_motion **all = PO_NEW_N(scratch, const po_motion *, a->n + b->n);
    const po_motion **alike = PO_NEW_N(scratch, const po_motion *, a->n + b->n);
    uint32_t n = 0;
    *need = (po_motion_need){.total = 1};
    for (uint32_t x = 0; x < rank; x++)
        need->on_axis[x] = 1;
    for (uint32_t i = 0; i < a->n + b->n; i++) {
        const po_motion *m = i < a->n ? &a->items[i] : &b->items[i - a->n];
        if (!(m->still & moving))
            all[n++] = m;
    }
    for (uint32_t i = 0; i < n; i++) {
        uint32_t n_alike = 0;
        for (uint32_t k = 0; k < n; k++)
            if (same_type(all[i], all[k]))
                alike[n_alike++] = all[k];
        uint32_t total = distinct(alike, n_alike, rank, moving);
        need->total = total > need->total ? total : need->total;
        for (uint32_t x = 0; x < rank; x++)
            if (moving >> x & 1) {
                uint32_t d = distinct(alike, n_alike, rank, (uint64_t)1 << x);
                need->on_axis[x] = d > need->on_axis[x] ? d : need->on_axis[x];
            }
    }
    po_arena_free(scratch);
}

/* Values of programs modulo PO_P, element by element. */
#include "base/modp.h"
#include "boxes/program.h"
#include "boxes/pull.h"

uint32_t po_program_input(uint64_t seed, uint32_t input, int64_t at) {
    return po_program_element(po_program_stream(seed, input), at);
}

/* Linear probing over a power of two of slots; entries of older generations are free. Of more than
 * half as many entries as there may be slots all are forgotten: where many points are asked for,
 * those of points long ago would be most of them. */
enum { FIRST_SLOTS = 1 << 8, MOST_SLOTS = 1 << 21 };

typedef struct slot {
    uint64_t key; /* value << 40 | element */
    uint32_t generation, residue;
} slot;

typedef struct near_slot {
    uint32_t generation, residue;
} near_slot;

/* Where a factor's elements come from. */
typedef enum source_kind { FROM_INPUT, FROM_ARRAY, FROM_STEP } source_kind;

typedef struct source {
    source_kind kind;
    uint32_t value;
    const uint32_t *array;
    const po_operand *atom; /* NULL: the element itself */
} source;

typedef struct term_plan {
    po_pull *pull;
    uint32_t scale, n;
    source from[PO_SUM_MAX_FACTORS];
} term_plan;

/* How a value is made. */
typedef struct value_plan {
    const po_tensor_shape *shape;
    term_plan *terms; /* NULL: an input or a constant */
    uint32_t n_terms;
    bool moves;      /* one iteration at most: nothing is remembered */
    near_slot *near; /* by element, where there are few; made when first needed */
} value_plan;

struct po_program_points {
    po_arena *arena;
    const po_program *program;
    value_plan *values;
    uint64_t *stream; /* by input */
    uint32_t generation, n, capacity;
    slot *slots;
    po_arena *table; /* theirs */
};

typedef struct pulling {
    po_program_points *points;
    const term_plan *term;
    uint32_t total;
} pulling;

static uint32_t value_at(po_program_points *p, uint32_t value, int64_t at);

static uint32_t element(po_program_points *p, const source *from, int64_t at) {
    uint32_t v = from->kind == FROM_ARRAY   ? from->array[at]
                 : from->kind == FROM_INPUT ? po_program_element(p->stream[from->value], at)
                                            : value_at(p, from->value, at);
    return from->atom ? po_sum_atom_mod(from->atom, v) : v;
}

static void run_pull(void *user, const po_stretch *run) {
    pulling *u = user;
    const term_plan *t = u->term;
    po_program_points *p = u->points;
    uint64_t sum = 0;
    for (int64_t i = 0; i < run->n; i++) {
        uint32_t product = t->n ? element(p, &t->from[0], run->at[1] + i * run->step[1]) : 1;
        for (uint32_t k = 1; k < t->n && product; k++)
            product =
                po_mod_mul(product, element(p, &t->from[k], run->at[k + 1] + i * run->step[k + 1]));
        sum += product;
    }
    u->total = po_mod_add(u->total, po_mod_mul(t->scale, po_mod_reduce(sum)));
}

static po_status plan_term(po_program_points *p, const po_program_step *step, const po_term *term,
                           const uint32_t *const *tables, term_plan *plan) {
    const po_program *program = p->program;
    if (!po_rational_mod(term->scale, &plan->scale))
        return PO_UNSUPPORTED;
    plan->pull = po_pull_create(p->arena, step->sum, term);
    plan->n = term->n_factors;
    for (uint32_t k = 0; k < term->n_factors; k++) {
        const po_operand *op = &step->sum->operands[term->factor[k].operand];
        source *from = &plan->from[k];
        if (op->kind == PO_OPERAND_TABLE) {
            *from = (source){.kind = FROM_ARRAY, .array = tables[term->factor[k].operand]};
            continue;
        }
        uint32_t value = step->in[op->input];
        *from = (source){.kind = FROM_STEP, .value = value};
        if (op->kind != PO_OPERAND_INPUT)
            from->atom = op;
        if (value < program->n_inputs) {
            from->kind = FROM_INPUT;
        } else if (value < program->n_inputs + program->n_constants) {
            from->kind = FROM_ARRAY;
            from->array = program->constants[value - program->n_inputs];
        }
    }
    return PO_OK;
}

static po_status plan_step(po_program_points *p, const po_program_step *step) {
    const po_sum *sum = step->sum;
    value_plan *v = &p->values[step->out];
    const uint32_t **tables = PO_NEW_N(p->arena, const uint32_t *, sum->n_operands);
    for (uint32_t i = 0; i < sum->n_operands; i++)
        if (sum->operands[i].kind == PO_OPERAND_TABLE)
            PO_TRY(po_sum_table_mod(p->arena, &sum->operands[i], &tables[i]));
    v->terms = PO_NEW_N(p->arena, term_plan, sum->n_terms);
    v->n_terms = sum->n_terms;
    for (uint32_t i = 0; i < sum->n_terms; i++)
        PO_TRY(plan_term(p, step, &sum->terms[i], tables, &v->terms[i]));
    v->moves = sum->n_terms == 0 ||
               (sum->n_terms == 1 && v->terms[0].n <= 1 && po_pull_single(v->terms[0].pull));
    return PO_OK;
}

static void make_slots(po_program_points *p, uint32_t n) {
    p->capacity = n;
    p->table = po_arena_child(p->arena);
    po_arena_own(p->arena, p->table);
    p->slots = PO_NEW_N(p->table, slot, n);
}

po_status po_program_points_create(po_arena *arena, const po_program *program,
                                   po_program_points **points) {
    po_program_points *p = PO_NEW(arena, po_program_points);
    *p = (po_program_points){.arena = arena, .program = program, .generation = 1};
    p->stream = PO_NEW_N(arena, uint64_t, program->n_inputs);
    p->values = PO_NEW_N(arena, value_plan, program->n_values);
    for (uint32_t i = 0; i < program->n_values; i++)
        p->values[i].shape = &program->values[i];
    for (uint32_t i = 0; i < program->n_steps; i++)
        PO_TRY(plan_step(p, &program->steps[i]));
    make_slots(p, FIRST_SLOTS);
    *points = p;
    return PO_OK;
}

static void forget(po_program_points *points) {
    points->n = 0;
    if (++points->generation == 0) {
        memset(points->slots, 0, points->capacity * sizeof *points->slots);
        for (uint32_t i = 0; i < points->program->n_values; i++)
            points->values[i].near = NULL;
        points->generation = 1;
    }
}

void po_program_points_reset(po_program_points *points, uint64_t seed) {
    for (uint32_t i = 0; i < points->program->n_inputs; i++)
        points->stream[i] = po_program_stream(seed, i);
    forget(points);
}

static slot *find(const po_program_points *p, uint64_t key) {
    uint64_t h = key * 0x9e3779b97f4a7c15u;
    for (uint32_t i = (uint32_t)(h >> 32) & (p->capacity - 1);; i = (i + 1) & (p->capacity - 1)) {
        slot *s = &p->slots[i];
        if (s->generation != p->generation || s->key == key)
            return s;
    }
}

static void remember(po_program_points *p, uint64_t key, uint32_t residue) {
    if (2 * p->n >= p->capacity && p->capacity == MOST_SLOTS) {
        forget(p);
    } else if (2 * p->n >= p->capacity) {
        const slot *old = p->slots;
        po_arena *before = p->table;
        uint32_t n = p->capacity;
        make_slots(p, 4 * n < MOST_SLOTS ? 4 * n : MOST_SLOTS);
        for (uint32_t i = 0; i < n; i++)
            if (old[i].generation == p->generation)
                *find(p, old[i].key) = old[i];
        po_arena_free(before);
    }
    *find(p, key) = (slot){key, p->generation, residue};
    p->n++;
}

static uint32_t eval(po_program_points *p, const value_plan *v, int64_t at) {
    int64_t index[PO_MAX_RANK];
    pulling u = {p, NULL, 0};
    for (uint32_t x = v->shape->rank; x-- > 0;) {
        uint64_t dim = (uint64_t)v->shape->dims[x], left = (uint64_t)at;
        bool small = left <= UINT32_MAX && dim <= UINT32_MAX; /* divides faster */
        at = (int64_t)(small ? (uint32_t)left / (uint32_t)dim : left / dim);
        index[x] = (int64_t)(left - (uint64_t)at * dim);
    }
    for (uint32_t i = 0; i < v->n_terms; i++) {
        u.term = &v->terms[i];
        po_pull_run(u.term->pull, index, run_pull, &u);
    }
    return u.total;
}

static uint32_t value_at(po_program_points *p, uint32_t value, int64_t at) {
    enum { FEW = 1 << 13 };
    value_plan *v = &p->values[value];
    if (v->moves)
        return eval(p, v, at);
    if (v->shape->count <= FEW) {
        if (!v->near)
            v->near = PO_NEW_N(p->arena, near_slot, v->shape->count);
        if (v->near[at].generation != p->generation)
            v->near[at] = (near_slot){p->generation, eval(p, v, at)};
        return v->near[at].residue;
    }
    uint64_t key = (uint64_t)value << 40 ^ (uint64_t)at;
    const slot *s = find(p, key);
    if (s->generation == p->generation)
        return s->residue;
    uint32_t residue = eval(p, v, at);
    remember(p, key, residue);
    return residue;
}

uint32_t po_program_points_eval(po_program_points *points, uint32_t output, const int64_t *index) {
    uint32_t value = points->program->outputs[output];
    const po_tensor_shape *shape = &points->program->values[value];
    int64_t at = 0;
    for (uint32_t x = 0; x < shape->rank; x++)
        at = at * shape->dims[x] + index[x];
    source from = {.kind = FROM_STEP, .value = value};
    if (value < points->program->n_inputs)
        from.kind = FROM_INPUT;
    else if (!points->values[value].terms &&
             value < points->program->n_inputs + points->program->n_constants)
        from = (source){.kind = FROM_ARRAY,
                        .array = points->program->constants[value - points->program->n_inputs]};
    return element(points, &from, at);
}

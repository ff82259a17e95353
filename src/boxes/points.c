/* Values of programs modulo PO_P, element by element and whole. */
#include "base/modp.h"
#include "boxes/program.h"

uint32_t po_program_input(uint64_t seed, uint32_t input, int64_t at) {
    return (uint32_t)((po_random_u64(seed, input, (uint64_t)at) >> 33) % PO_P);
}

/* --- element by element --- */

/* Linear probing over a power of two of slots; entries of older generations are free. */
typedef struct slot {
    uint64_t key; /* value << 40 | element */
    uint32_t generation, residue;
} slot;

struct po_program_points {
    po_arena *arena;
    const po_program *program;
    const po_program_step **maker; /* by value; NULL: input or constant */
    po_sum_point **point;          /* by value */
    bool *moves;                   /* by value: nothing is added up, so nothing is remembered */
    uint64_t seed;
    uint32_t generation, n, capacity;
    slot *slots;
};

typedef struct reading {
    po_program_points *points;
    const uint32_t *in;
} reading;

static uint32_t value_at(po_program_points *p, uint32_t value, int64_t at);

static uint32_t fetch(void *user, uint32_t input, int64_t at) {
    const reading *r = user;
    return value_at(r->points, r->in[input], at);
}

/* No output element sums more than one iteration: every variable that is not fixed by the output
 * has extent 1. Only the plain case is recognised: one term whose variables each lie on an axis. */
static bool only_moves(const po_sum *sum) {
    if (sum->n_terms != 1 || sum->terms[0].n_factors > 1)
        return false;
    const po_term *t = &sum->terms[0];
    for (uint32_t v = 0; v < t->n_vars; v++) {
        bool there = t->extent[v] == 1;
        for (uint32_t x = 0; x < sum->rank; x++)
            there |= po_index_coef(t, &t->out, x, v) != 0;
        if (!there)
            return false;
    }
    return true;
}

po_status po_program_points_create(po_arena *arena, const po_program *program,
                                   po_program_points **points) {
    enum { FIRST = 256 };
    po_program_points *p = PO_NEW(arena, po_program_points);
    *p = (po_program_points){.arena = arena, .program = program, .generation = 1};
    p->maker = PO_NEW_N(arena, const po_program_step *, program->n_values);
    p->point = PO_NEW_N(arena, po_sum_point *, program->n_values);
    p->moves = PO_NEW_N(arena, bool, program->n_values);
    for (uint32_t i = 0; i < program->n_steps; i++) {
        const po_program_step *step = &program->steps[i];
        p->maker[step->out] = step;
        p->moves[step->out] = only_moves(step->sum);
        PO_TRY(po_sum_point_create(arena, step->sum, &p->point[step->out]));
    }
    p->capacity = FIRST;
    p->slots = PO_NEW_N(arena, slot, FIRST);
    *points = p;
    return PO_OK;
}

void po_program_points_reset(po_program_points *points, uint64_t seed) {
    points->seed = seed;
    points->n = 0;
    if (++points->generation == 0) {
        memset(points->slots, 0, points->capacity * sizeof *points->slots);
        points->generation = 1;
    }
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
    if (2 * p->n >= p->capacity) {
        slot *old = p->slots;
        uint32_t n = p->capacity;
        p->capacity *= 4;
        p->slots = PO_NEW_N(p->arena, slot, p->capacity);
        for (uint32_t i = 0; i < n; i++)
            if (old[i].generation == p->generation)
                *find(p, old[i].key) = old[i];
    }
    *find(p, key) = (slot){key, p->generation, residue};
    p->n++;
}

static void unravel(const po_tensor_shape *shape, int64_t at, int64_t *index) {
    for (uint32_t x = shape->rank; x-- > 0; at /= shape->dims[x])
        index[x] = at % shape->dims[x];
}

static uint32_t eval_step(po_program_points *p, uint32_t value, const int64_t *index) {
    reading r = {p, p->maker[value]->in};
    return po_sum_point_eval(p->point[value], index, fetch, &r);
}

static uint32_t value_at(po_program_points *p, uint32_t value, int64_t at) {
    const po_program *program = p->program;
    if (value < program->n_inputs)
        return po_program_input(p->seed, value, at);
    if (!p->maker[value])
        return program->constants[value - program->n_inputs][at];
    int64_t index[PO_MAX_RANK];
    unravel(&program->values[value], at, index);
    if (p->moves[value])
        return eval_step(p, value, index);
    uint64_t key = (uint64_t)value << 40 ^ (uint64_t)at;
    const slot *s = find(p, key);
    if (s->generation == p->generation)
        return s->residue;
    uint32_t residue = eval_step(p, value, index);
    remember(p, key, residue);
    return residue;
}

uint32_t po_program_points_eval(po_program_points *points, uint32_t output, const int64_t *index) {
    uint32_t value = points->program->outputs[output];
    const po_tensor_shape *shape = &points->program->values[value];
    int64_t at = 0;
    for (uint32_t x = 0; x < shape->rank; x++)
        at = at * shape->dims[x] + index[x];
    return value_at(points, value, at);
}

/* --- whole --- */

po_status po_program_eval(po_ctx *ctx, po_arena *arena, const po_program *program, uint64_t seed,
                          uint32_t **out) {
    po_arena *scratch = po_arena_child(arena);
    const uint32_t **value = PO_NEW_N(scratch, const uint32_t *, program->n_values);
    for (uint32_t i = 0; i < program->n_inputs; i++) {
        int64_t count = program->values[i].count;
        uint32_t *v = PO_NEW_N(scratch, uint32_t, count);
        for (int64_t k = 0; k < count; k++)
            v[k] = po_program_input(seed, i, k);
        value[i] = v;
    }
    for (uint32_t i = 0; i < program->n_constants; i++)
        value[program->n_inputs + i] = program->constants[i];
    po_status status = PO_OK;
    for (uint32_t i = 0; i < program->n_steps && status == PO_OK; i++) {
        const po_program_step *step = &program->steps[i];
        const uint32_t **in = PO_NEW_N(scratch, const uint32_t *, step->n_in);
        for (uint32_t k = 0; k < step->n_in; k++)
            in[k] = step->in[k] == PO_NONE ? NULL : value[step->in[k]];
        uint32_t *v = PO_NEW_N(scratch, uint32_t, program->values[step->out].count);
        status = po_ctx_poll(ctx);
        if (status == PO_OK && po_sum_eval_mod(scratch, step->sum, in, v) != PO_OK)
            status = po_fail(ctx, PO_UNSUPPORTED, "node '%s': a fraction has no residue modulo %u",
                             step->name, PO_P);
        value[step->out] = v;
    }
    for (uint32_t i = 0; i < program->n_outputs && status == PO_OK; i++) {
        uint32_t from = program->outputs[i];
        memcpy(out[i], value[from], (size_t)program->values[from].count * sizeof *out[i]);
    }
    po_arena_free(scratch);
    return status;
}

/* Values of programs modulo PO_P, whole. Buffers are taken over by later values as soon as nothing
 * reads them any more: fresh pages cost as much as the arithmetic. */
#include "boxes/program.h"

typedef struct buffer {
    uint32_t *data;
    int64_t room;
} buffer;

typedef struct evaluation {
    po_arena *arena;
    const po_program *program;
    uint64_t seed;
    const uint32_t **value;
    buffer *of;     /* by value: what it lies in; data NULL: in a constant, or nowhere yet */
    uint32_t *last; /* by value: 1 + the last step that reads it */
    buffer *spare;
    uint32_t n_spare, cap_spare;
} evaluation;

static uint32_t *take(evaluation *e, uint32_t value) {
    int64_t count = e->program->values[value].count;
    uint32_t best = PO_NONE;
    for (uint32_t i = 0; i < e->n_spare; i++)
        if (e->spare[i].room >= count &&
            (best == PO_NONE || e->spare[i].room < e->spare[best].room))
            best = i;
    if (best != PO_NONE) {
        e->of[value] = e->spare[best];
        e->spare[best] = e->spare[--e->n_spare];
    } else {
        e->of[value] = (buffer){po_arena_alloc(e->arena, (size_t)count * sizeof(uint32_t)), count};
    }
    e->value[value] = e->of[value].data;
    return e->of[value].data;
}

static void read_value(evaluation *e, uint32_t value) {
    const po_program *p = e->program;
    if (e->value[value])
        return;
    if (value >= p->n_inputs) {
        e->value[value] = p->constants[value - p->n_inputs];
        return;
    }
    uint32_t *v = take(e, value);
    uint64_t stream = po_program_stream(e->seed, value);
    for (int64_t k = 0; k < p->values[value].count; k++)
        v[k] = po_program_element(stream, k);
}

static void give_back(evaluation *e, const po_program_step *step, uint32_t number) {
    for (uint32_t k = 0; k < step->n_in; k++) {
        uint32_t value = step->in[k];
        if (value == PO_NONE || e->last[value] != number + 1 || !e->of[value].data)
            continue;
        PO_PUSH(e->arena, e->spare, e->n_spare, e->cap_spare, e->of[value]);
        e->of[value].data = NULL;
    }
}

static bool reads(const po_sum *sum, uint32_t input) {
    for (uint32_t i = 0; i < sum->n_operands; i++)
        if (sum->operands[i].kind != PO_OPERAND_TABLE && sum->operands[i].input == input)
            return true;
    return false;
}

static po_status run_step(po_ctx *ctx, evaluation *e, uint32_t number) {
    const po_program_step *step = &e->program->steps[number];
    const uint32_t **in = PO_NEW_N(e->arena, const uint32_t *, step->n_in);
    PO_TRY(po_ctx_poll(ctx));
    for (uint32_t k = 0; k < step->n_in; k++)
        if (step->in[k] != PO_NONE && reads(step->sum, k)) {
            read_value(e, step->in[k]);
            in[k] = e->value[step->in[k]];
        }
    if (po_sum_eval_mod(e->arena, PO_FIELD_FIXED, step->sum, in, take(e, step->out)) != PO_OK)
        return po_fail(ctx, PO_UNSUPPORTED, "node '%s': a fraction has no residue modulo %u",
                       step->name, PO_P);
    give_back(e, step, number);
    return PO_OK;
}

static po_status evaluate(po_ctx *ctx, po_arena *scratch, const po_program *p, uint64_t seed,
                          uint32_t **out) {
    evaluation e = {.arena = scratch, .program = p, .seed = seed};
    e.value = PO_NEW_N(scratch, const uint32_t *, p->n_values);
    e.of = PO_NEW_N(scratch, buffer, p->n_values);
    e.last = PO_NEW_N(scratch, uint32_t, p->n_values);
    for (uint32_t i = 0; i < p->n_steps; i++)
        for (uint32_t k = 0; k < p->steps[i].n_in; k++)
            if (p->steps[i].in[k] != PO_NONE)
                e.last[p->steps[i].in[k]] = i + 1;
    for (uint32_t i = 0; i < p->n_outputs; i++)
        e.last[p->outputs[i]] = PO_NONE;
    for (uint32_t i = 0; i < p->n_steps; i++)
        PO_TRY(run_step(ctx, &e, i));
    for (uint32_t i = 0; i < p->n_outputs; i++) {
        read_value(&e, p->outputs[i]);
        memcpy(out[i], e.value[p->outputs[i]],
               (size_t)p->values[p->outputs[i]].count * sizeof *out[i]);
    }
    return PO_OK;
}

po_status po_program_eval(po_ctx *ctx, po_arena *arena, const po_program *program, uint64_t seed,
                          uint32_t **out) {
    po_arena *scratch = po_arena_child(arena);
    po_status status = evaluate(ctx, scratch, program, seed, out);
    po_arena_free(scratch);
    return status;
}

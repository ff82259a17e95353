/* Outputs by seed, cuts and evaluation points of the first program that is asked about; those of
 * any other are made anew and not kept. */
#include "boxes/known.h"

enum { MOST_SEEDS = 4 };

struct po_agree_known {
    po_arena *arena;
    const po_program *program; /* of the first call; others are not kept */
    const po_cuts *const *cuts;
    uint32_t n_seeds;
    uint64_t seed[MOST_SEEDS];
    uint32_t **outputs[MOST_SEEDS];
    po_program_points *points;
    uint64_t points_seed;
};

po_agree_known *po_agree_known_create(po_arena *arena) {
    po_agree_known *known = PO_NEW(arena, po_agree_known);
    known->arena = arena;
    return known;
}

static bool keeps(po_agree_known *known, const po_program *program) {
    if (known && !known->program)
        known->program = program;
    return known && known->program == program;
}

po_status po_known_outputs(po_ctx *ctx, po_arena *scratch, po_agree_known *known,
                           const po_program *program, uint64_t seed,
                           const uint32_t *const **outputs) {
    bool keep = keeps(known, program);
    for (uint32_t i = 0; keep && i < known->n_seeds; i++)
        if (known->seed[i] == seed) {
            *outputs = (const uint32_t *const *)known->outputs[i];
            return PO_OK;
        }
    keep = keep && known->n_seeds < MOST_SEEDS;
    po_arena *arena = keep ? known->arena : scratch;
    uint32_t **out = PO_NEW_N(arena, uint32_t *, program->n_outputs);
    for (uint32_t i = 0; i < program->n_outputs; i++)
        out[i] = po_arena_alloc(arena,
                                (size_t)program->values[program->outputs[i]].count * sizeof **out);
    PO_TRY(po_program_eval(ctx, scratch, program, seed, out));
    if (keep) {
        known->seed[known->n_seeds] = seed;
        known->outputs[known->n_seeds++] = out;
    }
    *outputs = (const uint32_t *const *)out;
    return PO_OK;
}

const po_cuts *const *po_known_cuts(po_arena *scratch, po_agree_known *known,
                                    const po_program *program) {
    if (!keeps(known, program))
        return po_program_cuts_all(scratch, program);
    if (!known->cuts)
        known->cuts = po_program_cuts_all(known->arena, program);
    return known->cuts;
}

po_status po_known_points(po_arena *scratch, po_agree_known *known, const po_program *program,
                          uint64_t seed, po_program_points **points) {
    if (!keeps(known, program)) {
        PO_TRY(po_program_points_create(scratch, program, points));
        po_program_points_reset(*points, seed);
        return PO_OK;
    }
    if (!known->points || known->points_seed != seed) {
        if (!known->points)
            PO_TRY(po_program_points_create(known->arena, program, &known->points));
        po_program_points_reset(known->points, seed);
        known->points_seed = seed;
    }
    *points = known->points;
    return PO_OK;
}

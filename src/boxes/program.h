/* Programs: a graph of linear operators as steps of indexed sums, for evaluation modulo a prime.
 *
 * All inputs of the graph are free variables; constants that shape operators are looked into by the
 * operators' rules, other constants are values with known residues: small fractions are exact, any
 * other number is a free variable of its own, the same one wherever it stands. */
#ifndef PO_BOXES_PROGRAM_H
#define PO_BOXES_PROGRAM_H

#include "base/modp.h"
#include "boxes/boxes.h"
#include "ir/graph.h"

typedef struct po_tensor_shape {
    uint32_t rank;
    const int64_t *dims;
    int64_t count;
} po_tensor_shape;

/* One node's output: values[out] is the sum over the values that its inputs are. */
typedef struct po_program_step {
    const po_sum *sum; /* in normal form */
    const uint32_t *in;
    uint32_t n_in, out;
    const char *name; /* of the node or its output, for messages */
} po_program_step;

typedef struct po_program {
    const po_tensor_shape *values; /* the inputs come first, then the constants */
    uint32_t n_values, n_inputs, n_constants;
    const uint32_t *const *constants; /* residues of value n_inputs + k, row-major */
    const po_program_step *steps;     /* in execution order */
    uint32_t n_steps;
    const uint32_t *outputs;
    uint32_t n_outputs;
    uint32_t degree; /* of the polynomials that the outputs are, at most */
} po_program;

/* Residue of a constant's element of that type: a simple fraction that rounds to it is meant, any
 * other number is a variable of its own. */
uint32_t po_program_constant(double value, po_dtype dtype);

/* Types must be inferred. PO_UNSUPPORTED with the node's name where one has no sum or a shape is
 * not static. */
po_status po_program_of(po_ctx *ctx, po_arena *arena, const po_graph *graph,
                        const po_program **program);

/* Cuts of every value, propagated through the steps (PET, section 5.1); of an output alone. */
const po_cuts *const *po_program_cuts_all(po_arena *arena, const po_program *program);
const po_cuts *po_program_cuts(po_arena *arena, const po_program *program, uint32_t output);

/* --- evaluation modulo PO_P; the inputs' residues are a counter-based hash of (seed, input,
 * index), so that nothing need be stored for them --- */

static inline uint64_t po_program_stream(uint64_t seed, uint32_t input) {
    return po_random_u64(seed, 0x73747265616d, input);
}
static inline uint32_t po_program_element(uint64_t stream, int64_t at) {
    uint64_t x = stream + (uint64_t)at * 0x9e3779b97f4a7c15u;
    x = (x ^ x >> 32) * 0xd6e8feb86659fd93u;
    x = (x ^ x >> 32) * 0xd6e8feb86659fd93u;
    uint32_t v = (uint32_t)(x >> 33);
    return v == PO_P ? 0 : v;
}
uint32_t po_program_input(uint64_t seed, uint32_t input, int64_t at);

/* Element by element, pulling only what it needs; results are remembered until the next reset. */
typedef struct po_program_points po_program_points;
po_status po_program_points_create(po_arena *arena, const po_program *program,
                                   po_program_points **points);
void po_program_points_reset(po_program_points *points, uint64_t seed);
uint32_t po_program_points_eval(po_program_points *points, uint32_t output, const int64_t *index);

/* Every output whole, row-major: out[k] has values[outputs[k]].count residues. */
po_status po_program_eval(po_ctx *ctx, po_arena *arena, const po_program *program, uint64_t seed,
                          uint32_t **out);

#endif

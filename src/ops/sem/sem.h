/* Indexed sums of nodes: what a rule (a row's `sem`) sees and makes, and helpers for rules. */
#ifndef PO_OPS_SEM_H
#define PO_OPS_SEM_H

#include "ops/op.h"
#include "ops/sum/sum.h"

/* A node's input or output. */
typedef struct po_sem_tensor {
    bool given; /* false: omitted */
    po_dtype dtype;
    uint32_t rank;
    const int64_t *dims;
    const po_tensor *constant; /* of inputs; NULL: not constant */
} po_sem_tensor;

/* A rule makes the sums of the outputs that it has one for. It returns PO_UNSUPPORTED, without
 * recording an error, where the node has no form: then the node is opaque. Weights stay free
 * variables: a rule looks only into constants that shape the operator (axes, pads, indices). Every
 * rule checks that the output's dims are those that the operator makes. */
struct po_sem {
    po_ctx *ctx;
    po_arena *arena;
    const po_graph *graph;
    const po_node *node;
    int64_t opset;
    uint32_t n_in, n_out;
    const po_sem_tensor *in, *out;
    po_sum **sum; /* by output */
};

/* The sums of a node's outputs, NULL for those without one. `in` and `out` are types, NULL for
 * what is omitted; `constant` by input. Every type must be static: PO_UNSUPPORTED (not recorded)
 * where one is not, and where the node has no form. */
po_status po_sem_node(po_ctx *ctx, po_arena *arena, const po_graph *graph, const po_node *node,
                      const po_type *const *in, const po_tensor *const *constant,
                      const po_type *const *out, po_sum **sums);
/* The same with the graph's types and constants. */
po_status po_sem_of(po_ctx *ctx, po_arena *arena, const po_graph *graph, const po_node *node,
                    po_sum **sums);

/* --- for rules --- */

static inline bool po_sem_has(const po_sem *sem, uint32_t input) {
    return input < sem->n_in && sem->in[input].given;
}
bool po_sem_is_float(const po_sem *sem, uint32_t input);
/* Starts the sum of an output. */
po_sum *po_sem_begin(po_sem *sem, uint32_t output);
/* The operand that an input is. */
uint32_t po_sem_operand(const po_sem *sem, po_sum *sum, uint32_t input);
/* Elements of a constant integer input of rank 0 or 1; false where it is not constant. */
bool po_sem_ints(const po_sem *sem, uint32_t input, uint32_t *n, const int64_t **values);
/* The constant input where the node has it, else the attribute: axes, pads and the like moved from
 * one to the other. False where neither can be read. *n is 0 where neither is there. */
bool po_sem_ints_or_attr(const po_sem *sem, uint32_t input, const char *attr, uint32_t *n,
                         const int64_t **values);
/* An axis in [-rank, rank) made non-negative. */
bool po_sem_axis(int64_t axis, uint32_t rank, uint32_t *at);
/* The exact value of element i of a constant float input. */
bool po_sem_fraction(const po_sem *sem, uint32_t input, int64_t i, po_rational *value);
/* A term with a variable for each axis of the output, which the output's index is. `more` further
 * variables may be added. Their numbers are those of the axes. */
po_term *po_sem_pointwise(po_sum *sum, uint32_t more);
/* Adds a factor whose axes follow the last axes of the pointwise variables; an axis of length 1
 * stays at 0. False where the shapes do not broadcast. */
bool po_sem_broadcast(po_sum *sum, po_term *term, uint32_t operand);

/* Name of axis i of n, from the end: x, y, z. NULL beyond. */
const char *po_sem_axis_name(uint32_t i, uint32_t n);

/* Windows of convolutions and pools, one for each spatial axis. */
typedef struct po_sem_window {
    int64_t kernel, stride, dilation;
    int64_t before, after; /* padding; below 0 elements are left out */
} po_sem_window;
/* From the attributes kernel_shape (or `kernel`, where not NULL), strides, dilations, pads and
 * auto_pad. False where they contradict one another or the output. in and out: spatial dims. */
bool po_sem_windows(const po_sem *sem, uint32_t n, const int64_t *kernel, const int64_t *in,
                    const int64_t *out, po_sem_window *windows);

#endif

/* What the shape rules and references of nn and data movement share beside ops/shape.h: reading
 * inputs and attributes, making outputs, and moving elements about. */
#ifndef PO_OPS_RULE_H
#define PO_OPS_RULE_H

#include "base/num.h"
#include "ops/families/rules.h"
#include "ops/ref.h"
#include "ops/shape.h"

/* --- both --- */

/* True where the attribute is there and holds that string, or where it is absent and the row's
 * default is that string. */
bool po_rule_mode(const po_graph *graph, const po_node *node, const char *name, const char *text);

/* --- shape rules --- */

/* The input's type where it is a tensor's with a known rank, else NULL. */
const po_type *po_rule_ranked(const po_infer *infer, uint32_t input);
/* Makes output k a tensor of this rank, dims unknown, and returns the dims to be filled. An output
 * that the node does not have, or of too large a rank, stays unknown: the dims are then scratch. */
po_dim *po_rule_out(const po_infer *infer, uint32_t output, po_dtype dtype, uint32_t rank);

/* What two dims that must agree are; PO_BAD_INPUT where they contradict. */
po_status po_rule_same_dim(const po_infer *infer, po_dim a, po_dim b, const char *what,
                           po_dim *both);
/* Product of dims; unknown where it cannot be told or overflows. */
po_dim po_rule_product(const po_infer *infer, const po_dim *dims, uint32_t n);

typedef enum po_known { PO_ABSENT, PO_NOT_KNOWN, PO_KNOWN } po_known;

/* A list of integers that an attribute (looked at first) or an input holds. `name` NULL: input
 * only; input UINT32_MAX: attribute only. *values and *n are set for PO_KNOWN. For PO_NOT_KNOWN *n
 * is the length where known, else -1. */
po_known po_rule_ints(const po_infer *infer, const char *name, uint32_t input,
                      const int64_t **values, int64_t *n);
/* Contents of a small integer input, from its constant or from data propagation; NULL: nothing.
 * Negative numbers of a constant are kept, so an item is known where `exact[i]`. */
typedef struct po_contents {
    uint32_t n;
    const int64_t *values;
    const bool *exact;
    const char *const *symbols; /* of items that are not exact; may be NULL */
} po_contents;
const po_contents *po_rule_contents(const po_infer *infer, uint32_t input);
/* --- references --- */

/* What the shape rule would see of the true shapes and small contents; out has room for n_out. */
po_status po_rule_infer_of(po_ref *ref, po_type *out, po_infer *infer);
/* Runs the row's shape rule on the true shapes and small contents, so that the same checks guard
 * both; fills types[0 .. n_out). PO_UNSUPPORTED where a wanted output is not static or too large.
 */
po_status po_rule_types(po_ref *ref, po_type *types);
/* The same, and makes the outputs (all that the node has). */
po_status po_rule_outputs(po_ref *ref);
/* A single output that shares the data of input 0, with the shape that the rule gives. */
po_status po_rule_reshaped(po_ref *ref);

/* An index in [-dim, dim-1] made non-negative; PO_BAD_INPUT outside. */
po_status po_rule_index(po_ref *ref, int64_t index, int64_t dim, int64_t *at);
/* Element data and its width in bytes. */
static inline char *po_rule_data(const po_array *array) {
    return array->f ? (char *)array->f : array->i ? (char *)array->i : (char *)array->s;
}
static inline size_t po_rule_width(const po_array *array) {
    return array->s ? sizeof(po_bytes) : sizeof(double);
}
/* True where each of the inputs first..last is omitted or holds floats. */
bool po_rule_floats(const po_ref *ref, uint32_t first, uint32_t last);
/* Number k of an array, whatever its class. */
static inline double po_rule_number(const po_array *array, int64_t k) {
    return array->f ? array->f[k] : (double)array->i[k];
}
static inline void po_rule_set_number(const po_array *array, int64_t k, double value) {
    if (array->f)
        array->f[k] = value;
    else
        array->i[k] = (int64_t)value;
}

/* Row-major strides in elements. */
void po_rule_strides(uint32_t rank, const int64_t *dims, int64_t *strides);
/* to[i over dims, row-major] = from[offset + i . strides], elements of `width` bytes. */
void po_move(char *to, const char *from, size_t width, uint32_t rank, const int64_t *dims,
             int64_t offset, const int64_t *strides);
/* to[i] = from[map_0[i_0], map_1[i_1], ..] over the dims of `to`; an index of -1 on any axis gives
 * the fill element. Both have the same rank; a NULL map is the identity. */
void po_move_mapped(const po_array *to, const po_array *from, const int64_t *const *maps,
                    const void *fill);

#endif

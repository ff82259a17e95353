/* Inputs at the edges of what statements may meet: rows of zeros, of denormals, of large numbers,
 * with one that outweighs the rest, and of the lowest float where nothing multiplies it. */
#ifndef PO_SUPEROPT_EDGES_H
#define PO_SUPEROPT_EDGES_H

#include "mugraph/mugraph.h"

typedef enum po_values_kind { PO_VALUES_RANDOM, PO_VALUES_EDGES, PO_VALUES_KINDS } po_values_kind;

typedef struct po_edge_range {
    double least, large; /* ordinary values lie between least and 1 */
    bool lowest;         /* holds the lowest float too */
} po_edge_range;

po_edge_range po_edge_range_of(const po_mu_statement *const *s, uint32_t n);
/* Element e of a tensor in rows of `row`; the same at each call. */
float po_edge_value(const po_edge_range *range, uint32_t tensor, uint64_t e, uint64_t row);

/* Whether what a kernel computed will do; sum: S(v) of mugraph/eval.h. Beside the limit: such
 * numbers are no model's, and may make a root of what is negative or go past what a float holds;
 * and at the edges what lies in between may, and be made small again by a small weight, as a norm
 * has it. */
bool po_edge_allows(po_values_kind kind, double found, double expected, double sum, double limit);

#endif

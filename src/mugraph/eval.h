/* What a muGraph computes, by running its tree as it stands: loops by chunks, storage with rings
 * and chunks. So a wrong chunk, scope, ring or start shows as a wrong value. */
#ifndef PO_MUGRAPH_EVAL_H
#define PO_MUGRAPH_EVAL_H

#include "mugraph/mugraph.h"

/* In float64. Inputs, weights and outputs by number, dense and row-major without rings. magnitude
 * (NULL, or an array a tensor for each output): S(v), the sum of the absolute values of what was
 * added up, which bounds a float's error (DESIGN.md, correctness ladder). Reading what was never
 * written fails (PO_BAD_INPUT, naming tensor and step). */
po_status po_mu_eval(po_ctx *ctx, const po_mu *mu, const double *const *inputs,
                     const double *const *weights, double *const *outputs,
                     double *const *magnitude);

/* Over finite fields (notes on the paper's section 5 in docs/mugraph.md): a value is a residue
 * modulo p and one modulo q, q a divisor of p - 1; exp takes the second to a power of a root of
 * order q; other functions are random functions of their arguments, keyed by seed; MAXIMUM too,
 * independent of order and repetition. */
typedef struct po_mu_residue {
    uint64_t p, q; /* q: PO_MU_NO_Q beyond an exp */
} po_mu_residue;
#define PO_MU_NO_Q UINT64_MAX

po_status po_mu_eval_mod(po_ctx *ctx, const po_mu *mu, const po_mu_residue *const *inputs,
                         const po_mu_residue *const *weights, po_mu_residue *const *outputs,
                         uint64_t seed);

#endif

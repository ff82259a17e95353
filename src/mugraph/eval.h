/* What a muGraph computes, by running its tree as it stands: loops by chunks, storage with rings
 * and chunks. So a wrong chunk, scope, ring or start shows as a wrong value. */
#ifndef PO_MUGRAPH_EVAL_H
#define PO_MUGRAPH_EVAL_H

#include "mugraph/mugraph.h"

/* In float64. Inputs, weights and outputs by number, dense and row-major without rings. magnitude
 * (NULL, or an array a tensor for each output): S(v), the sum of the absolute values of what was
 * added up, which bounds a float's error (docs/mugraph.md). Reading what was never written fails
 * (PO_BAD_INPUT, naming tensor and step). Of po_mu_check only what running relies on is asked
 * for. */
po_status po_mu_eval(po_ctx *ctx, const po_mu *mu, const double *const *inputs,
                     const double *const *weights, double *const *outputs,
                     double *const *magnitude);

/* The same as f32 has it, operation by operation and term by term: what a program makes of
 * rounding. */
po_status po_mu_eval_single(po_ctx *ctx, const po_mu *mu, const double *const *inputs,
                            const double *const *weights, double *const *outputs);

/* Over finite fields (docs/mugraph.md): a value is a residue modulo p and one modulo q, both prime,
 * p = 2q + 1; exp takes the second to a power of a root of order q; MAXIMUM goes by an order that
 * the seed draws; other functions are random functions of their arguments, keyed by seed. Two
 * muGraphs whose outputs are equal under random inputs compute the same. */
typedef struct po_mu_residue {
    uint64_t p, q; /* p: PO_MU_MINUS_INFINITY for that; q: PO_MU_NO_Q beyond an exp */
} po_mu_residue;
#define PO_MU_P              ((UINT64_C(1) << 61) - 2373)
#define PO_MU_Q              ((UINT64_C(1) << 60) - 1187)
#define PO_MU_NO_Q           UINT64_MAX
#define PO_MU_MINUS_INFINITY UINT64_MAX

/* Uniform ones for inputs; that of a number (finite, or -infinity). */
po_mu_residue po_mu_residue_random(uint64_t seed, uint64_t stream, uint64_t index);
po_mu_residue po_mu_residue_of(double value);
/* By p, and by q where both have it. */
bool po_mu_residue_equal(po_mu_residue a, po_mu_residue b);

/* PO_UNSUPPORTED: this seed says nothing (a division by 0), or an infinity is met that is not told
 * apart. */
po_status po_mu_eval_mod(po_ctx *ctx, const po_mu *mu, const po_mu_residue *const *inputs,
                         const po_mu_residue *const *weights, po_mu_residue *const *outputs,
                         uint64_t seed);

#endif

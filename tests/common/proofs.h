/* Proofs of two texts. */
#ifndef TEST_PROOFS_H
#define TEST_PROOFS_H

#include "verify/proof/proof.h"

/* po_prove of what the texts parse to; recipes NULL: none. */
po_proof_report test_prove(po_ctx *ctx, const char *a, const char *b, const char *recipes);
/* The same of nodes that make y of x: f32[2,6,4,4]. */
po_proof_report test_prove_nodes(po_ctx *ctx, const char *a, const char *b);
/* The text with its first `from` replaced, to be freed; NULL where there is none. */
char *test_replaced(const char *text, const char *from, const char *to);

#endif

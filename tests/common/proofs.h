/* Proofs of two texts. */
#ifndef TEST_PROOFS_H
#define TEST_PROOFS_H

#include "verify/proof.h"

/* po_prove of what the texts parse to; recipes NULL: none. */
po_proof_report test_prove(po_ctx *ctx, const char *a, const char *b, const char *recipes);
/* The text with its first `from` replaced, to be freed; NULL where there is none. */
char *test_replaced(const char *text, const char *from, const char *to);

#endif

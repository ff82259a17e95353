/* What a muGraph's accesses must fulfil, decided by Z3 (smt.h): for what po_mu_check's conditions,
 * which are sufficient only, leave open, and as a second look at a muGraph that is chosen. Unknown
 * counts as not fulfilled. */
#ifndef PO_MUGRAPH_PROVE_H
#define PO_MUGRAPH_PROVE_H

#include "mugraph/mugraph.h"
#include "mugraph/smt.h"

/* Whether different values of a statement's labels give different elements. */
po_smt_answer po_mu_never_twice(const po_mu *mu, uint32_t node, const po_mu_access *access,
                                po_smt *smt);
/* Whether two accesses of one tensor, in different chunks of a loop, never meet inside it. */
po_smt_answer po_mu_never_meet(const po_mu *mu, uint32_t loop, const po_mu_access *a,
                               const po_mu_access *b, po_smt *smt);
/* Whether all elements with extents `extent` have places of their own under the strides. */
po_smt_answer po_mu_never_overlap(uint32_t rank, const int64_t *stride, const int64_t *extent,
                                  po_smt *smt);
/* Whether the statements (SET, or fresh) write each element of the tensor exactly once, without
 * tests at edges: inside, none twice, no two of them the same, as many as there are. */
po_smt_answer po_mu_never_missed(const po_mu *mu, uint32_t tensor, po_smt *smt);

typedef struct po_mu_proved {
    uint32_t asked, unknown; /* questions; of them undecided */
} po_mu_proved;

/* The second look: layouts without overlap, accesses within their tensors' memory, '=' that writes
 * once, parallel chunks apart. PO_BAD_INPUT naming step and reason; also where Z3 gives up. `limit`
 * as for po_smt_create. */
po_status po_mu_prove(po_ctx *ctx, const po_mu *mu, uint32_t limit, po_mu_proved *proved);

#endif

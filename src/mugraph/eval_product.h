/* Sums of products in float64, fast. */
#ifndef PO_MUGRAPH_EVAL_PRODUCT_H
#define PO_MUGRAPH_EVAL_PRODUCT_H

#include "mugraph/run.h"

/* Adds scale * operand x * operand y over all labels' whole ranges to what the statement writes,
 * which is not tested at edges; likewise the magnitudes (by tensor; NULL: none), with |scale|.
 * False, with nothing done, where the statement has another form. */
bool po_mu_sum_products(po_mu_run *run, const po_mu_plan *plan, uint32_t x, uint32_t y,
                        double scale, double *const *value_of, double *const *magnitude_of);

#endif

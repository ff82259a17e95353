/* The data of a compiled kernel whose results are compared with those of its naive muGraph. */
#ifndef PO_SUPEROPT_COMPILED_H
#define PO_SUPEROPT_COMPILED_H

#include "cost/kernels.h"
#include "superopt/schedule/schedule.h"

/* Row-major element i of a tensor of the kernel's muGraph, in DEVICE memory. */
float *po_compiled_element(const po_loaded_kernel *kernel, uint32_t tensor, int64_t i);

/* Element i of a tensor that is read: between -1 and 1, the same at each call. */
float po_compiled_number(uint32_t tensor, int64_t i);

/* The weights as the kernel reads them, in the order of `packed`. data: by naive tensor, row-major.
 * NULL where one cannot be packed or has no data. */
const float *const *po_compiled_weights(po_ctx *ctx, po_arena *arena, const po_mu *naive,
                                        const float *const *data, const po_packed *packed,
                                        uint32_t n_packed);

#endif

/* Regions of models whose batch is open: what they do to one sample. */
#ifndef PO_SUPEROPT_GPU_BATCH_H
#define PO_SUPEROPT_GPU_BATCH_H

#include "mugraph/mugraph.h"

/* Whether a naive muGraph does the same to each sample, and samples have nothing to do with one
 * another: then what it does to one of them. Asked of the region's muGraphs for two samples and for
 * three: in either every statement must have one label for the samples, first axis of all that is
 * one of each sample and of nothing else, kept and never added up; and both must say the same of
 * one sample. batched: by INPUT number, whether its first axis is the samples'; of outputs all are.
 * PO_UNSUPPORTED, with the reason, where it is not so. */
po_status po_gpu_sample_of(po_ctx *ctx, po_arena *arena, const po_mu *two, const po_mu *three,
                           const bool *batched, const po_mu **one);

#endif

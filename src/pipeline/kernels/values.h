/* Whether a model computes with its kernels what it did: before the rest of the run builds on them.
 */
#ifndef PO_PIPELINE_KERNEL_VALUES_H
#define PO_PIPELINE_KERNEL_VALUES_H

#include "codegen/delivery/library.h"
#include "pipeline/stages.h"

/* Compares a variant, with its library, with the original on a few sets of inputs, in seconds.
 * any_size: on many small ones. part: of the limit, for the code that this machine runs. *why: what
 * differs, in the run's arena; NULL: nothing, or it could not be told. */
po_status po_kernel_values(const po_run *run, const po_imported *imported,
                           const po_library *library, const po_variant *variant, bool any_size,
                           double part, const char **why);

#endif

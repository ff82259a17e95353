/* The parts of the prelude. */
#ifndef PO_CODEGEN_PRELUDE_H
#define PO_CODEGEN_PRELUDE_H

#include "codegen/cpu/kernel.h"

const char *cg_prelude_headers(const po_isa *isa);
const char *cg_prelude_isa(const po_isa *isa);

#endif

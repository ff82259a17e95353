/* The shape rules, references, indexed sums and attribute tables that ops.def names. */
#ifndef PO_OPS_RULES_H
#define PO_OPS_RULES_H

#include "ops/families/rules_control.h"
#include "ops/families/rules_make.h"
#include "ops/families/rules_math.h"
#include "ops/families/rules_move.h"
#include "ops/families/rules_ms.h"
#include "ops/families/rules_nn.h"
#include "ops/families/rules_quant.h"
#include "ops/op.h"

/* general.c */
po_status po_infer_same(po_infer *infer); /* output 0 has input 0's type and contents */
po_status po_infer_constant(po_infer *infer);
po_status po_ref_constant(po_ref *ref);
po_status po_ref_identity(po_ref *ref);
extern const po_attr_def po_attrs_constant[];

#endif

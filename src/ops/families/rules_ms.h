/* Operators of com.microsoft that exporters of transformers write. */
#ifndef PO_OPS_RULES_MS_H
#define PO_OPS_RULES_MS_H

#include "ops/op.h"

/* ms.c; MS_Gelu and MS_QuickGelu are in unary.c's table */
po_status po_infer_ms_gelu_bias(po_infer *infer);
po_status po_ref_ms_gelu_bias(po_ref *ref); /* BiasGelu, FastGelu */
po_status po_infer_ms_skip_norm(po_infer *infer);
po_status po_ref_ms_skip_norm(po_ref *ref); /* SkipLayerNormalization and its simplified form */
po_status po_infer_ms_fusedmatmul(po_infer *infer);
po_status po_ref_ms_fusedmatmul(po_ref *ref);
extern const po_attr_def po_attrs_ms_skip_norm[];
extern const po_attr_def po_attrs_ms_skip_rms[];
extern const po_attr_def po_attrs_ms_fusedmatmul[];

#endif

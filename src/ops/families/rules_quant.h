/* Casts and quantisation. */
#ifndef PO_OPS_RULES_QUANT_H
#define PO_OPS_RULES_QUANT_H

#include "ops/op.h"

/* cast.c */
po_status po_infer_cast(po_infer *infer);
po_status po_infer_castlike(po_infer *infer);
po_status po_ref_cast(po_ref *ref); /* Cast, CastLike */
po_status po_ref_bitcast(po_ref *ref);
extern const po_attr_def po_attrs_cast[];
extern const po_attr_def po_attrs_castlike[];
extern const po_attr_def po_attrs_bitcast[];

/* Nearest value of a float type of 8 bits or less; `saturate` keeps overflows finite. */
double po_narrow_float(po_dtype dtype, double value, bool saturate);

/* quantize.c */
po_status po_infer_quantize(po_infer *infer);
po_status po_ref_quantize(po_ref *ref);
po_status po_infer_dequantize(po_infer *infer);
po_status po_ref_dequantize(po_ref *ref);
po_status po_infer_dynamicquantize(po_infer *infer);
po_status po_ref_dynamicquantize(po_ref *ref);
extern const po_attr_def po_attrs_quantizelinear[];
extern const po_attr_def po_attrs_dequantizelinear[];

/* qlinear.c */
po_status po_infer_matmulinteger(po_infer *infer);
po_status po_ref_matmulinteger(po_ref *ref);
po_status po_infer_qlinearmatmul(po_infer *infer);
po_status po_ref_qlinearmatmul(po_ref *ref);
po_status po_infer_convinteger(po_infer *infer);
po_status po_ref_convinteger(po_ref *ref);
po_status po_infer_qlinearconv(po_infer *infer);
po_status po_ref_qlinearconv(po_ref *ref);
extern const po_attr_def po_attrs_qlinearconv[];

#endif

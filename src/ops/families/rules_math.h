/* Elementwise mathematics, comparisons, activations, reductions, casts, quantisation, generators.
 */
#ifndef PO_OPS_RULES_MATH_H
#define PO_OPS_RULES_MATH_H

#include "ops/op.h"

/* unary.c */
po_status po_infer_unary(po_infer *infer);       /* type of input 0, contents unknown */
po_status po_infer_sign_change(po_infer *infer); /* Neg, Abs: contents too */
po_status po_infer_unary_bool(po_infer *infer);
po_status po_ref_unary(po_ref *ref);
po_status po_ref_unary_bool(po_ref *ref);     /* IsNaN, IsInf */
extern const po_attr_def po_attrs_consumed[]; /* only opset 1's in-place hint */
extern const po_attr_def po_attrs_isinf[];
extern const po_attr_def po_attrs_celu[];
extern const po_attr_def po_attrs_elu[];
extern const po_attr_def po_attrs_gelu[];
extern const po_attr_def po_attrs_hardsigmoid[];
extern const po_attr_def po_attrs_leakyrelu[];
extern const po_attr_def po_attrs_quickgelu[]; /* com.microsoft */
extern const po_attr_def po_attrs_selu[];
extern const po_attr_def po_attrs_shrink[];
extern const po_attr_def po_attrs_swish[];
extern const po_attr_def po_attrs_thresholdedrelu[];

/* binary.c, contents.c */
po_status po_infer_binary(po_infer *infer);
po_status po_infer_compare(po_infer *infer);
po_status po_ref_binary(po_ref *ref);
po_status po_ref_compare(po_ref *ref);
po_status po_ref_logic(po_ref *ref);
extern const po_attr_def po_attrs_broadcast[]; /* axis and broadcast, until opset 6 */
extern const po_attr_def po_attrs_broadcast_consumed[];
extern const po_attr_def po_attrs_mod[];
extern const po_attr_def po_attrs_bitshift[];

/* nary.c: Max, Mean, Min, Sum; Where; Clip; PRelu */
po_status po_infer_nary(po_infer *infer);
po_status po_ref_nary(po_ref *ref);
po_status po_infer_where(po_infer *infer);
po_status po_ref_where(po_ref *ref);
po_status po_ref_clip(po_ref *ref);
po_status po_ref_prelu(po_ref *ref);
extern const po_attr_def po_attrs_clip[];

/* softmax.c */
po_status po_infer_softmax(po_infer *infer);
po_status po_ref_softmax(po_ref *ref);
extern const po_attr_def po_attrs_softmax[];

/* reduce.c */
po_status po_infer_reduce(po_infer *infer);
po_status po_ref_reduce(po_ref *ref);
extern const po_attr_def po_attrs_reduce[];
extern const po_attr_def po_attrs_reducesum[];

#endif

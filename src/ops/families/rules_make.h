/* Operators that make tensors from shapes and numbers, and those that pick out elements. */
#ifndef PO_OPS_RULES_MAKE_H
#define PO_OPS_RULES_MAKE_H

#include "ops/op.h"

/* generate.c */
po_status po_infer_shape(po_infer *infer);
po_status po_ref_shape(po_ref *ref);
po_status po_infer_size(po_infer *infer);
po_status po_ref_size(po_ref *ref);
po_status po_infer_constantofshape(po_infer *infer);
po_status po_ref_constantofshape(po_ref *ref);
po_status po_infer_range(po_infer *infer);
po_status po_ref_range(po_ref *ref);
po_status po_infer_eyelike(po_infer *infer);
po_status po_ref_eyelike(po_ref *ref);
po_status po_infer_onehot(po_infer *infer);
po_status po_ref_onehot(po_ref *ref);
po_status po_ref_trilu(po_ref *ref);
extern const po_attr_def po_attrs_shape[];
extern const po_attr_def po_attrs_constantofshape[];
extern const po_attr_def po_attrs_range[];
extern const po_attr_def po_attrs_eyelike[];
extern const po_attr_def po_attrs_onehot[];
extern const po_attr_def po_attrs_trilu[];

/* window_fn.c: Blackman, Hamming and Hann windows */
po_status po_infer_window_fn(po_infer *infer);
po_status po_ref_window_fn(po_ref *ref);
extern const po_attr_def po_attrs_window_fn[];

/* order.c: TopK, Unique, NonZero */
po_status po_infer_topk(po_infer *infer);
po_status po_ref_topk(po_ref *ref);
po_status po_infer_unique(po_infer *infer);
po_status po_ref_unique(po_ref *ref);
po_status po_infer_nonzero(po_infer *infer);
po_status po_ref_nonzero(po_ref *ref);
extern const po_attr_def po_attrs_topk[];
extern const po_attr_def po_attrs_unique[];

/* along.c: ArgMax, ArgMin, CumSum, CumProd */
po_status po_infer_arg(po_infer *infer);
po_status po_ref_arg(po_ref *ref);
po_status po_ref_cumulative(po_ref *ref);
extern const po_attr_def po_attrs_arg[];
extern const po_attr_def po_attrs_cumsum[];
extern const po_attr_def po_attrs_cumprod[];

/* random.c: shapes only, but for Dropout outside of training */
po_status po_infer_random(po_infer *infer);
po_status po_infer_random_like(po_infer *infer);
po_status po_infer_multinomial(po_infer *infer);
po_status po_infer_dropout(po_infer *infer);
po_status po_ref_dropout(po_ref *ref);
extern const po_attr_def po_attrs_bernoulli[];
extern const po_attr_def po_attrs_dropout[];
extern const po_attr_def po_attrs_multinomial[];
extern const po_attr_def po_attrs_randomnormal[];
extern const po_attr_def po_attrs_randomnormallike[];
extern const po_attr_def po_attrs_randomuniform[];
extern const po_attr_def po_attrs_randomuniformlike[];

#endif

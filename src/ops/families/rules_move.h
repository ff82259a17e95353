/* Data movement. */
#ifndef PO_OPS_RULES_MOVE_H
#define PO_OPS_RULES_MOVE_H

#include "ops/op.h"

po_status po_infer_center_crop_pad(po_infer *infer);
po_status po_infer_compress(po_infer *infer);
po_status po_infer_concat(po_infer *infer);
po_status po_infer_depth_to_space(po_infer *infer);
po_status po_infer_expand(po_infer *infer);
po_status po_infer_flatten(po_infer *infer);
po_status po_infer_gather(po_infer *infer);
po_status po_infer_gather_elements(po_infer *infer);
po_status po_infer_gather_nd(po_infer *infer);
po_status po_infer_pad(po_infer *infer);
po_status po_infer_reshape(po_infer *infer);
po_status po_infer_reverse_sequence(po_infer *infer);
po_status po_infer_scatter_elements(po_infer *infer);
po_status po_infer_scatter_nd(po_infer *infer);
po_status po_infer_slice(po_infer *infer);
po_status po_infer_space_to_depth(po_infer *infer);
po_status po_infer_split(po_infer *infer);
po_status po_infer_squeeze(po_infer *infer);
po_status po_infer_tensor_scatter(po_infer *infer);
po_status po_infer_tile(po_infer *infer);
po_status po_infer_transpose(po_infer *infer);
po_status po_infer_unsqueeze(po_infer *infer);

po_status po_ref_center_crop_pad(po_ref *ref);
po_status po_ref_compress(po_ref *ref);
po_status po_ref_concat(po_ref *ref);
po_status po_ref_depth_to_space(po_ref *ref);
po_status po_ref_expand(po_ref *ref);
po_status po_ref_gather(po_ref *ref);
po_status po_ref_gather_elements(po_ref *ref);
po_status po_ref_gather_nd(po_ref *ref);
po_status po_ref_pad(po_ref *ref);
po_status po_ref_reverse_sequence(po_ref *ref);
po_status po_ref_scatter_elements(po_ref *ref);
po_status po_ref_scatter_nd(po_ref *ref);
po_status po_ref_slice(po_ref *ref);
po_status po_ref_space_to_depth(po_ref *ref);
po_status po_ref_split(po_ref *ref);
po_status po_ref_tensor_scatter(po_ref *ref);
po_status po_ref_tile(po_ref *ref);
po_status po_ref_transpose(po_ref *ref);
po_status po_rule_reshaped(po_ref *ref); /* rule.h */

extern const po_attr_def po_attrs_center_crop_pad[];
extern const po_attr_def po_attrs_compress[];
extern const po_attr_def po_attrs_concat[];
extern const po_attr_def po_attrs_depth_to_space[];
extern const po_attr_def po_attrs_flatten[];
extern const po_attr_def po_attrs_gather[];
extern const po_attr_def po_attrs_gather_elements[];
extern const po_attr_def po_attrs_gather_nd[];
extern const po_attr_def po_attrs_pad[];
extern const po_attr_def po_attrs_reshape[];
extern const po_attr_def po_attrs_reverse_sequence[];
extern const po_attr_def po_attrs_scatter[];
extern const po_attr_def po_attrs_scatter_elements[];
extern const po_attr_def po_attrs_scatter_nd[];
extern const po_attr_def po_attrs_slice[];
extern const po_attr_def po_attrs_space_to_depth[];
extern const po_attr_def po_attrs_split[];
extern const po_attr_def po_attrs_squeeze[];
extern const po_attr_def po_attrs_tensor_scatter[];
extern const po_attr_def po_attrs_transpose[];
extern const po_attr_def po_attrs_unsqueeze[];

#endif

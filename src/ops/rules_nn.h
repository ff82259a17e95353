/* Neural-network operators. */
#ifndef PO_OPS_RULES_NN_H
#define PO_OPS_RULES_NN_H

#include "ops/op.h"

po_status po_infer_pool(po_infer *infer);
po_status po_infer_batch_normalization(po_infer *infer);
po_status po_infer_conv(po_infer *infer);
po_status po_infer_conv_transpose(po_infer *infer);
po_status po_infer_rnn(po_infer *infer);
po_status po_infer_gemm(po_infer *infer);
po_status po_infer_global_pool(po_infer *infer);
po_status po_infer_group_normalization(po_infer *infer);
po_status po_infer_instance_normalization(po_infer *infer);
po_status po_infer_lrn(po_infer *infer);
po_status po_infer_layer_normalization(po_infer *infer);
po_status po_infer_lp_normalization(po_infer *infer);
po_status po_infer_matmul(po_infer *infer);
po_status po_infer_mean_variance_normalization(po_infer *infer);
po_status po_infer_rms_normalization(po_infer *infer);
po_status po_infer_resize(po_infer *infer);
po_status po_infer_attention(po_infer *infer);
po_status po_infer_rotary_embedding(po_infer *infer);
po_status po_infer_einsum(po_infer *infer);
po_status po_infer_grid_sample(po_infer *infer);
po_status po_infer_affine_grid(po_infer *infer);

po_status po_ref_average_pool(po_ref *ref);
po_status po_ref_batch_normalization(po_ref *ref);
po_status po_ref_conv(po_ref *ref);
po_status po_ref_conv_transpose(po_ref *ref);
po_status po_ref_rnn(po_ref *ref);
po_status po_ref_gemm(po_ref *ref);
po_status po_ref_global_average_pool(po_ref *ref);
po_status po_ref_global_lp_pool(po_ref *ref);
po_status po_ref_global_max_pool(po_ref *ref);
po_status po_ref_group_normalization(po_ref *ref);
po_status po_ref_instance_normalization(po_ref *ref);
po_status po_ref_lrn(po_ref *ref);
po_status po_ref_layer_normalization(po_ref *ref);
po_status po_ref_lp_normalization(po_ref *ref);
po_status po_ref_lp_pool(po_ref *ref);
po_status po_ref_matmul(po_ref *ref);
po_status po_ref_max_pool(po_ref *ref);
po_status po_ref_mean_variance_normalization(po_ref *ref);
po_status po_ref_rms_normalization(po_ref *ref);
po_status po_ref_resize(po_ref *ref);
po_status po_ref_attention(po_ref *ref);
po_status po_ref_rotary_embedding(po_ref *ref);
po_status po_ref_einsum(po_ref *ref);
po_status po_ref_grid_sample(po_ref *ref);
po_status po_ref_affine_grid(po_ref *ref);

extern const po_attr_def po_attrs_average_pool[];
extern const po_attr_def po_attrs_batch_normalization[];
extern const po_attr_def po_attrs_conv[];
extern const po_attr_def po_attrs_conv_transpose[];
extern const po_attr_def po_attrs_gru[];
extern const po_attr_def po_attrs_gemm[];
extern const po_attr_def po_attrs_global_lp_pool[];
extern const po_attr_def po_attrs_group_normalization[];
extern const po_attr_def po_attrs_instance_normalization[];
extern const po_attr_def po_attrs_lrn[];
extern const po_attr_def po_attrs_lstm[];
extern const po_attr_def po_attrs_layer_normalization[];
extern const po_attr_def po_attrs_lp_normalization[];
extern const po_attr_def po_attrs_lp_pool[];
extern const po_attr_def po_attrs_max_pool[];
extern const po_attr_def po_attrs_mean_variance_normalization[];
extern const po_attr_def po_attrs_rms_normalization[];
extern const po_attr_def po_attrs_rnn[];
extern const po_attr_def po_attrs_resize[];
extern const po_attr_def po_attrs_upsample[];
extern const po_attr_def po_attrs_attention[];
extern const po_attr_def po_attrs_rotary_embedding[];
extern const po_attr_def po_attrs_einsum[];
extern const po_attr_def po_attrs_grid_sample[];
extern const po_attr_def po_attrs_affine_grid[];

#endif

/* Control flow, sequences and optionals, strings, losses, com.microsoft. */
#ifndef PO_OPS_RULES_CONTROL_H
#define PO_OPS_RULES_CONTROL_H

#include "ops/op.h"

/* control.c */
po_status po_infer_if(po_infer *infer);
po_status po_ref_if(po_ref *ref);
po_status po_infer_loop(po_infer *infer);
po_status po_ref_loop(po_ref *ref);
extern const po_attr_def po_attrs_if[];
extern const po_attr_def po_attrs_loop[];

/* scan.c */
po_status po_infer_scan(po_infer *infer);
po_status po_ref_scan(po_ref *ref);
extern const po_attr_def po_attrs_scan[];

/* What two types have in common: dims that differ are unknown. */
po_type po_type_common(po_arena *arena, const po_type *a, const po_type *b);
/* The graph attribute of that name, or NULL. */
po_graph *po_node_body(const po_node *node, const char *name);
/* Joins n arrays of one shape along a new axis, the last first where `reverse`. */
po_status po_ref_stack(po_ref *ref, uint32_t out, uint32_t n, po_array *const *parts, uint32_t axis,
                       bool reverse);

/* sequence.c: types only */
po_status po_infer_sequence_construct(po_infer *infer);
po_status po_infer_sequence_empty(po_infer *infer);
po_status po_infer_sequence_insert(po_infer *infer);
po_status po_infer_sequence_at(po_infer *infer);
po_status po_infer_sequence_length(po_infer *infer);
po_status po_infer_sequence_map(po_infer *infer);
po_status po_infer_concatfromsequence(po_infer *infer);
po_status po_infer_splittosequence(po_infer *infer);
po_status po_infer_optional(po_infer *infer);
po_status po_infer_optional_get(po_infer *infer);
po_status po_infer_optional_has(po_infer *infer);
extern const po_attr_def po_attrs_concatfromsequence[];
extern const po_attr_def po_attrs_optional[];
extern const po_attr_def po_attrs_sequenceempty[];
extern const po_attr_def po_attrs_splittosequence[];

/* strings.c */
po_status po_infer_stringnormalizer(po_infer *infer);
po_status po_infer_stringconcat(po_infer *infer);
po_status po_ref_stringconcat(po_ref *ref);
po_status po_infer_stringsplit(po_infer *infer);
extern const po_attr_def po_attrs_stringnormalizer[];
extern const po_attr_def po_attrs_stringsplit[];
extern const po_attr_def po_attrs_regexfullmatch[];

/* loss.c */
po_status po_infer_loss(po_infer *infer);
po_status po_ref_loss(po_ref *ref);
extern const po_attr_def po_attrs_loss[];

#endif

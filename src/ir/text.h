/* The text form of graphs (.pir), which tests are written in and --dump prints:
 *
 *     pir 1 ir_version=8 opset=17 opset(com.microsoft)=1
 *     graph resnet18 (x: f32[1,3,"H",224]) -> (y) {
 *       w = f32[64,3,7,7] hash 3e0b...
 *       b = f32[64] {0.0}
 *       t1 = Conv(x, w: f32[64,3,7,7], b: f32[64]) {strides=[2,2]} : f32[1,64,112,112] @ "conv 1"
 *       y, _ = com.microsoft::Odd.overload(t1, _) {body=graph b () -> (r) { r = Relu(t1) }}
 *     }
 *
 * Values need no declaration but their making; bodies see the values around them (captures).
 * `_` is an omitted input or output. A tensor is written as its items, one item for all, `raw` and
 * hexadecimal bytes, `hash` (data not printed), or `random` and a seed, for tests. Metadata, doc
 * strings and model functions are not part of the form. docs/text.md has the grammar. */
#ifndef PO_IR_TEXT_H
#define PO_IR_TEXT_H

#include "base/scan.h"
#include "ir/graph.h"

typedef struct po_print_options {
    int64_t most_items; /* tensors of more elements are printed by hash, or raw */
    bool all_data;      /* raw in place of hash: the text then parses back without `data` */
} po_print_options;

/* Prints a root graph, without data of tensors above 32 elements. What the form cannot hold
 * (attributes that are kept verbatim) is printed as `verbatim`, and does not parse back. */
void po_graph_print(po_text *text, const po_graph *graph);
void po_graph_print_as(po_text *text, const po_graph *graph, po_print_options options);

/* Makes a graph from text, checked by po_graph_check. Without a `pir` line the model is of
 * ir_version 10 and opset 20. PO_BAD_INPUT names line and column. Registry rows are not set: call
 * po_ops_resolve. */
po_status po_graph_parse(po_ctx *ctx, const char *text, po_graph **graph);
/* The same; tensors that were printed by hash are taken from the constants of `data` (and shared
 * with it: its arena must outlive the new graph). */
po_status po_graph_parse_with(po_ctx *ctx, const char *text, const po_graph *data,
                              po_graph **graph);

/* --- pieces --- */

void po_tensor_print(po_text *text, const po_tensor *tensor, po_print_options options);
/* From "f32[2] {...}". `data` maps tensor hashes (po_tensor_hash) to indices of `tensors`; may be
 * NULL. */
po_status po_tensor_parse(po_scan *scan, const po_hash_map *data, const po_tensor *const *tensors,
                          const po_tensor **tensor);
/* Reads what po_type_print writes; symbols may be bare words. */
po_status po_type_parse(po_scan *scan, po_type *type);
/* One float with the bits of its type: decimals, inf, -inf, nan(0x7fc00001). */
void po_text_float(po_text *text, po_dtype dtype, uint64_t bits);
po_status po_scan_float(po_scan *scan, po_dtype dtype, uint64_t *bits);

#endif

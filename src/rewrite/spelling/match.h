/* What the recognition of activations and norms is written with: functions of one value, found
 * whatever the order of their operators and wherever their constants stand. Inner values are read
 * by nothing else, so that a match may replace the whole. */
#ifndef PO_REWRITE_SPELLING_MATCH_H
#define PO_REWRITE_SPELLING_MATCH_H

#include "rewrite/affine/affine.h"

/* Since when the standard domain has these operators. */
enum {
    PO_GELU_SINCE = 20,
    PO_LAYER_NORM_SINCE = 17,
    PO_RMS_NORM_SINCE = 23,
    PO_HARD_SWISH_SINCE = 14
};

/* Opset of the standard domain; 0 where the graph has no model. */
int64_t po_opset_of(const po_graph *graph);
/* Equal to float rounding of the constants that make them up. */
bool po_near(double a, double b);
/* f32: what the runtime's fused activations are made for. */
bool po_is_f32(const po_graph *graph, po_value_id value);
/* Something reads it still: parts of what was rewritten stay until the next sweep. */
static inline bool po_is_read(const po_graph *graph, po_value_id value) {
    return graph->values[value].n_uses || graph->values[value].n_outputs;
}
/* Ranks are known and the same. */
bool po_same_rank(const po_graph *graph, po_value_id a, po_value_id b);

/* v = a x + b with one a and b: through the longest chain of such nodes, or x = v, a = 1, b = 0
 * where v is not made by one. */
void po_match_line(const po_graph *graph, po_arena *arena, po_value_id v, po_value_id *x, double *a,
                   double *b);

enum { PO_MOST_FACTORS = 4 };

/* A product of values and numbers: c * v[0] * .. * v[n - 1]. */
typedef struct po_matched_product {
    double c;
    uint32_t n;
    po_value_id v[PO_MOST_FACTORS];
} po_matched_product;

/* Takes apart y = product; y itself may have any readers. False where it has too many factors or y
 * is not made by a product. */
bool po_match_product(const po_graph *graph, po_value_id y, po_matched_product *product);

/* v as a polynomial of x: coefficients of x^0 .. x^3. */
bool po_match_cubic(const po_graph *graph, po_value_id v, po_value_id x, double coefficient[4]);

/* The axis, counted from 0, where the node reduces a single one and keeps it with length 1. */
bool po_reduced_axis(const po_graph *graph, const po_node *node, uint32_t *axis);

#endif

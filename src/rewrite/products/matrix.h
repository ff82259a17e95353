/* One view of products by a constant matrix: MatMul, and Gemm where it is one with a bias. */
#ifndef PO_REWRITE_PRODUCTS_MATRIX_H
#define PO_REWRITE_PRODUCTS_MATRIX_H

#include "ops/rewrite.h"

typedef struct po_matrix_product {
    po_value_id matrix, bias; /* f32; bias: so many numbers as `out`, or PO_NONE */
    bool rows;                /* the matrix is [out, in] */
    int64_t in, out;
} po_matrix_product;

/* False where it is none: a matrix that only the run knows, other dtypes, Gemm's other factors. */
bool po_matrix_product_read(const po_graph *graph, const po_node *node, po_matrix_product *product);
/* Whether the runtime's blocked layout takes its channels, as a pointwise convolution. */
bool po_matrix_product_in_blocks(const po_matrix_product *product);
/* The matrix as weights of that, [out, in, 1, 1]; PO_NONE where they cannot be stored. */
po_value_id po_matrix_product_pointwise(po_graph *graph, po_arena *arena,
                                        const po_matrix_product *product);

#endif

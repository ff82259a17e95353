/* Matrix products modulo a prime (base/field.h), in wide registers: in 64-bit integers where the
 * machine has AVX-512, else in doubles, one factor cut into two limbs so that sums are exact. */
#ifndef PO_OPS_MOD_GEMM_H
#define PO_OPS_MOD_GEMM_H

#include "base/arena.h"
#include "base/field.h"

enum {
    PO_GEMM_ROWS = 384, /* largest block, one side each */
    PO_GEMM_COLUMNS = 192,
    PO_GEMM_DEPTH = 128 /* more would not add up exactly */
};

typedef struct po_gemm po_gemm;
/* Room for one block; not to be shared between threads. */
po_gemm *po_gemm_create(po_arena *arena, po_field field);

/* Reads elements of the left side: for each depth k, `rows` residues into row[0 .. rows). */
typedef void (*po_gemm_fill_fn)(void *user, int64_t first, uint32_t rows, int64_t depth,
                                uint32_t *row);

/* Packs one block of each side: k in [0, depth), counted from `at`. `left` and `right` each write
 * the elements of one k. */
void po_gemm_pack(po_gemm *gemm, po_gemm_fill_fn left, po_gemm_fill_fn right, void *user,
                  int64_t row, uint32_t rows, int64_t column, uint32_t columns, int64_t at,
                  uint32_t depth);
/* Adds the product of the packed blocks to the result, or sets it where `first`. */
void po_gemm_multiply(po_gemm *gemm, bool first);
/* Row-major by column: element (row, column) at [column * stride + row]. */
const uint32_t *po_gemm_result(const po_gemm *gemm, uint32_t *stride);

#endif

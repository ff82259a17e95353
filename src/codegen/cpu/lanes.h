/* What the printing of LANES loops shares. */
#ifndef PO_CODEGEN_LANES_H
#define PO_CODEGEN_LANES_H

#include "codegen/cpu/printer.h"

typedef struct cg_cached {
    const char *key, *name;
} cg_cached;

/* One LANES loop. Statements inside are unrolled; elements of REGISTER tensors are variables. */
typedef struct cg_unrolled {
    cg *g;
    uint32_t lane;
    const char *tail; /* lanes of the vector at hand in C; NULL: all */
    uint32_t node;
    const po_mu_statement *s;
    bool fetches;                           /* what comes ahead of an operand */
    const char *base[PO_MU_MAX_INPUTS + 1]; /* pointers of operands, then of what is written */
    cg_cached *cache;                       /* what has been loaded */
    uint32_t n_cache, cap_cache;
    const char **names; /* REGISTER elements that need declaring */
    uint32_t n_names, cap_names;
    uint32_t fresh_name;
} cg_unrolled;

/* The expression of an operand at the labels' values, loaded where it has not been; vector: whether
 * it has lanes. Where its index may lie outside and `zero`, it is 0 there. */
po_status cg_load(cg_unrolled *u, uint32_t operand, bool zero, const char **name, bool *vector);
/* Writes a value to where the statement's access points now. first: C condition that there is
 * nothing yet (NULL: always); `sum`: adds to what is there otherwise. */
po_status cg_write(cg_unrolled *u, const char *value, bool vector, bool fresh,
                   const char *condition);
/* Tries to print an ADD of products with tables as shared straight-line code; *done whether it
 * was. kept, reduced: labels that are unrolled. */
po_status cg_linear(cg_unrolled *u, uint32_t n_kept, const uint32_t *kept, uint32_t n_reduced,
                    const uint32_t *reduced, bool *done);
/* Sets labels to the first of their values; then to the next: false after the last. */
void cg_first(cg *g, uint32_t n, const uint32_t *labels);
bool cg_next(cg *g, uint32_t n, const uint32_t *labels);
/* Whether a fresh statement starts: see cg_write. */
bool cg_starts(cg *g, const po_mu_statement *s, const char **condition);

#endif

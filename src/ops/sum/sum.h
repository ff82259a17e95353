/* The indexed sum: the one form that every linear operator has (docs/sum.md).
 *
 * A sum makes one output tensor from its operands by terms, each a box of iteration variables:
 *     for t in the box:   out[o(t)] += scale * product over the factors of operand[a(t)]
 * o and every a are affine in t. Where an index falls outside its tensor, output or operand, the
 * iteration contributes nothing. What no term reaches is 0. Axes that an operator splits into
 * mixed-radix digits have one variable a digit, so that reshapes and transposes are affine too.
 *
 * Operands are inputs of the node, constant tables of fractions, or atoms: an unknown function of
 * one input, element by element, that is treated as a free variable (1/x, 1/sqrt(x + eps)). */
#ifndef PO_OPS_SUM_H
#define PO_OPS_SUM_H

#include "base/hash.h"
#include "base/rational.h"

enum {
    PO_SUM_MAX_VARS = 48,
    PO_SUM_MAX_FACTORS = 8,
    PO_SUM_MAX_AXES = 128, /* of output and factors of a term, together */
    PO_SUM_MAX_TERMS = 4096,
    PO_SUM_MAX_TABLE = 1 << 22 /* elements of one table */
};

/* Where a term touches a tensor: axis x has index base[x] + sum over v of coef[x * cap + v] * t_v,
 * cap being the term's cap_vars. */
typedef struct po_index {
    uint32_t rank;
    int64_t *base, *coef;
} po_index;

typedef struct po_factor {
    uint32_t operand;
    po_index at;
} po_factor;

typedef struct po_term {
    uint32_t n_vars, cap_vars;
    int64_t *extent;   /* t_v runs over [0, extent[v]) */
    const char **name; /* for printing; may be NULL each; no part of the term's meaning */
    po_rational scale;
    po_index out;
    uint32_t n_factors;
    po_factor factor[PO_SUM_MAX_FACTORS];
} po_term;

typedef enum po_operand_kind {
    PO_OPERAND_INPUT,
    PO_OPERAND_TABLE,
    PO_OPERAND_RECIPROCAL, /* 1 / x of an input */
    PO_OPERAND_RSQRT       /* 1 / sqrt(x + eps) of an input */
} po_operand_kind;

typedef struct po_operand {
    po_operand_kind kind;
    uint32_t input; /* number of the node's input; not for tables */
    double eps;     /* RSQRT */
    uint32_t rank;
    const int64_t *dims;
    int64_t count;
    const po_rational *table; /* row-major */
} po_operand;

typedef struct po_sum {
    po_arena *arena;
    uint32_t rank; /* of the output */
    const int64_t *dims;
    int64_t count;
    po_operand *operands;
    uint32_t n_operands, cap_operands;
    po_term *terms;
    uint32_t n_terms, cap_terms;
} po_sum;

/* --- building --- */

/* dims are copied; their product must not overflow (types are checked on import). */
po_sum *po_sum_create(po_arena *arena, uint32_t rank, const int64_t *dims);
/* Operand numbers. The same input asked for twice is one operand. */
uint32_t po_sum_input(po_sum *sum, uint32_t input, uint32_t rank, const int64_t *dims);
uint32_t po_sum_atom(po_sum *sum, po_operand_kind kind, uint32_t input, double eps, uint32_t rank,
                     const int64_t *dims);
/* The table is not copied. */
uint32_t po_sum_table(po_sum *sum, uint32_t rank, const int64_t *dims, const po_rational *table);
/* A term of scale 1 without variables and factors. The pointer holds until the next term. */
po_term *po_sum_term(po_sum *sum, uint32_t cap_vars);
/* A variable. name: a literal, or NULL. */
uint32_t po_term_var(po_term *term, const char *name, int64_t extent);
/* A factor: its index starts as all zeros. The pointer holds as long as the term's. NULL where
 * there are too many. */
po_index *po_term_factor(po_sum *sum, po_term *term, uint32_t operand);
static inline void po_index_add(const po_term *term, po_index *index, uint32_t axis, int64_t coef,
                                uint32_t var) {
    index->coef[axis * term->cap_vars + var] += coef;
}
static inline int64_t po_index_coef(const po_term *term, const po_index *index, uint32_t axis,
                                    uint32_t var) {
    return index->coef[axis * term->cap_vars + var];
}

/* Whether the index moves with the variable. */
static inline bool po_index_has(const po_term *term, const po_index *index, uint32_t var) {
    for (uint32_t x = 0; x < index->rank; x++)
        if (po_index_coef(term, index, x, var))
            return true;
    return false;
}

/* Checks the limits above and that no index can overflow anywhere in its box: false where one
 * can. Everything below needs a sum for which this holds; po_sem_node and po_sum_parse see to it.
 */
bool po_sum_check(const po_sum *sum);

/* --- verbs --- */

/* Brings the sum to a normal form: no empty terms, no variables of extent 1, digits merged that
 * always stand together, variables, factors and terms sorted, equal terms added up. The function
 * that the sum computes stays the same. Fails (PO_UNSUPPORTED, not recorded) only where scales
 * overflow. */
po_status po_sum_normalize(po_sum *sum);
/* Structural: shapes, operands, terms in order. On normal forms: the usual ways to write the same
 * index arithmetic are equal; unequal sums may still compute the same function. */
bool po_sum_equal(const po_sum *a, const po_sum *b);
po_hash po_sum_hash(const po_sum *sum);

/* Text that reads as what the sum means and parses back:
 *     sum (in0: [1,3,8,8], in1: [4,3,3,3]) -> [1,4,8,8] {
 *       out[n, k, y, x] += in0[n, c, y+r-1, x+s-1] * in1[k, c, r, s]   n<1 k<4 y<8 x<8 c<3 r<3 s<3
 *     } */
void po_sum_print(po_text *text, const po_sum *sum);
po_status po_sum_parse(po_scan *scan, po_sum **sum);

/* --- figures --- */

/* Of all terms. */
double po_sum_iterations(const po_sum *sum);
/* Multiplications and additions of a naive loop nest; moving data is free. What falls outside is
 * counted too. */
double po_sum_flops(const po_sum *sum);
/* What the sum is of in time: an addition and a multiplication for each iteration of a product of
 * two operands. What stands once for each element of the output beside that (a bias, a factor, a
 * divisor) is done on the way and left out. */
double po_sum_work(const po_sum *sum);
/* A product of two operands as that of matrices: how many products, rows and columns of each, and
 * what an element adds up. False where the sum is none, or of more operands. */
typedef struct po_sum_shape {
    double times, rows, columns, depth;
} po_sum_shape;
bool po_sum_product_shape(const po_sum *sum, po_sum_shape *shape);
/* Whether the term reaches every element of the output, from the first to the last on each axis, so
 * that it says the same of each of them. */
bool po_term_writes_all(const po_sum *sum, const po_term *term);
/* Elements read (each operand once, tables not) and written. */
double po_sum_elements(const po_sum *sum);
/* The largest number of factors that are no tables: the degree of the polynomial. */
uint32_t po_sum_degree(const po_sum *sum);

/* --- evaluation (in[k] is the node's input k, row-major; PO_UNSUPPORTED, not recorded, where a
 * fraction has no residue) --- */

po_status po_sum_eval_f64(po_arena *arena, const po_sum *sum, const double *const *in, double *out);
/* S(v): every product taken positive. u * S(v) times a small constant bounds the float error. */
po_status po_sum_eval_abs(po_arena *arena, const po_sum *sum, const double *const *in, double *out);
/* Modulo PO_P. An rsqrt atom is a fixed pseudorandom function of its argument's residue. */
po_status po_sum_eval_mod(po_arena *arena, po_field field, const po_sum *sum,
                          const uint32_t *const *in, uint32_t *out);

/* An operand's element from its argument's residue; a table's residues, row-major. */
uint32_t po_sum_atom_mod(const po_operand *op, uint32_t argument);
po_status po_sum_table_mod(po_arena *arena, const po_operand *op, const uint32_t **out);

/* One element at a time, pulling only what it needs. `fetch` gives the residue of element `at`
 * (row-major) of an input. May be used from several threads and from within `fetch`. */
typedef struct po_sum_point po_sum_point;
typedef uint32_t (*po_fetch_fn)(void *user, uint32_t input, int64_t at);
po_status po_sum_point_create(po_arena *arena, const po_sum *sum, po_sum_point **point);
uint32_t po_sum_point_eval(const po_sum_point *point, const int64_t *index, po_fetch_fn fetch,
                           void *user);

#endif

/* What the parts of the search share. */
#ifndef PO_SUPEROPT_SEARCH_PRIVATE_H
#define PO_SUPEROPT_SEARCH_PRIVATE_H

#include "cost/cuda/gpu.h"
#include "superopt/search/form.h"
#include "superopt/search/search.h"

enum { SEARCH_POLL = 1 << 13 }; /* states from one look at the time to the next */

/* --- what is searched for (problem.c) --- */

enum { SEARCH_NUMBERS = 16 };

typedef uint32_t search_axes[PO_MU_MAX_RANK]; /* class by axis; PO_NONE where the length is 1 */

typedef struct search_problem {
    po_ctx *ctx;
    po_arena *arena;
    const po_mu *naive;
    uint32_t n_classes;
    int64_t extent[PO_FORM_CLASSES];
    const char *name[PO_FORM_CLASSES];
    uint32_t place[PO_FORM_CLASSES]; /* in the order of axes of all tensors */
    search_axes *axes;               /* by tensor */
    uint32_t target;                 /* the OUTPUT tensor */
    po_forms *plain, *exact;
    uint32_t plain_target, exact_target;
    int64_t panel; /* greatest panel of packed weights */
    int64_t cache1, cache2;
    uint32_t *plain_of; /* by tensor: its plain form; PO_NONE */
    const po_gpu *gpu;  /* schedules for it; NULL: for the CPU */
    po_gpu_math math;   /* of products on it */
    po_mu_type half;    /* what its 16-bit tensors hold; PO_MU_F32: it has none */
    bool strict;        /* nothing that rounds otherwise than the steps (laws.c) */
    uint32_t n_numbers; /* that the naive muGraph has, the first of them */
    double number[SEARCH_NUMBERS];
} search_problem;

/* What programs may differ in from the steps (laws.c). */
typedef enum search_law {
    SEARCH_LAW_STEPS,
    SEARCH_LAW_PARTS,
    SEARCH_LAW_ALGEBRA,
    SEARCH_LAW_RESCALED,
    SEARCH_LAW_SHORT,
    SEARCH_LAWS
} search_law;

const char *search_law_name(search_law law);
po_rounding search_law_rounding(search_law law);
/* Whether the search may use it. */
bool search_admits(const search_problem *p, search_law law);

/* lenient: forms may be too large; the target's is PO_NONE then. */
po_status search_problem_of(po_ctx *ctx, po_arena *arena, const po_mu *naive, bool lenient,
                            search_problem *p);
/* The same with short labels, and with a naive muGraph of its own. */
search_problem *search_shrunk(const search_problem *p);

/* --- the same program? (same.c) --- */

/* What a muGraph computes of drawn inputs, to compare many programs with. */
typedef struct search_reference search_reference;
po_status search_reference_of(po_ctx *ctx, po_arena *arena, const po_mu *mu,
                              search_reference **reference);
/* As po_search_same; of several threads at once. */
po_status search_same_as(po_ctx *ctx, const search_reference *reference, const po_mu *candidate,
                         const po_packed *packed, uint32_t n_packed, int64_t shared_limit);

/* --- the algebra (algebra.c) --- */

typedef enum search_kind {
    SEARCH_LEAF, /* a tensor of the naive muGraph */
    SEARCH_NUMBER,
    SEARCH_FUNCTION, /* element by element */
    SEARCH_SUM,
    SEARCH_MAXIMUM
} search_kind;

typedef struct search_node {
    search_kind kind;
    po_mu_function function;
    uint32_t arg[3]; /* nodes before */
    uint32_t class;  /* SUM, MAXIMUM */
    uint32_t tensor; /* LEAF */
    double value;    /* NUMBER */
    uint64_t labels; /* of what it makes */
    uint32_t form;   /* plain; PO_NONE: not known */
    bool own;        /* a 16-bit value of the naive muGraph */
} search_node;

static inline uint32_t search_arity(const search_node *n) {
    return n->kind == SEARCH_SUM || n->kind == SEARCH_MAXIMUM ? 1
           : n->kind == SEARCH_FUNCTION                       ? po_mu_arity(n->function)
                                                              : 0;
}

enum { SEARCH_NODES = 40 };

/* A program without loops; the last node is the output. */
typedef struct search_skeleton {
    uint32_t n;
    search_node node[SEARCH_NODES];
    double cost; /* operations, weighted */
    bool naive;  /* the naive muGraph as it is */
    po_hash shape;
    /* By SUM: the maxima (a bit a node) over its label that its summand depends on by a factor
     * exp(-maximum) alone. */
    uint64_t shifts[SEARCH_NODES];
} search_skeleton;

double search_elements(const search_problem *p, uint64_t labels);
/* The best skeletons, at most `most`; their number. */
uint32_t search_algebra(const search_problem *p, const po_search_options *options,
                        po_search_counts *counts, search_skeleton *skeletons, uint32_t most);
/* Sets `shifts`; what makes skeletons calls it. */
void search_find_shifts(const search_problem *p, search_skeleton *s);
/* The naive muGraph itself; false: it has too many parts, or others than nodes. */
bool search_naive(const search_problem *p, search_skeleton *s);
/* The exact form of a node, from those of its arguments (by node). */
uint32_t search_node_form(const search_problem *p, const search_node *n, const uint32_t *form);
/* Whether a NUMBER is a fraction that no double is, 2/3: its parts. */
bool search_is_fraction(const search_problem *p, const search_node *n, double *over, double *under);
/* Whether it is a product of two of the naive muGraph's that no double is. */
bool search_is_product(const search_problem *p, const search_node *n, double *a, double *b);
/* The exact form of a skeleton. */
uint32_t search_exact_form(const search_problem *p, const search_skeleton *s);
void search_tell_skeleton(const search_problem *p, const search_skeleton *s, po_text *text);

/* --- schedules (schedule.c, emit.c) --- */

enum { SEARCH_KERNELS = 3 };

typedef struct search_kernel {
    uint32_t root; /* node that it makes */
    uint32_t n_grid, grid[PO_MU_MAX_GRID];
    int64_t chunk[PO_MU_MAX_GRID];
    uint32_t loop; /* class of the for loop; PO_NONE */
    int64_t step;
    int64_t parts;  /* GPU: blocks that share the loop's range, added up by another step; 0: one */
    bool staged;    /* CPU: operands of products are copied to the block first */
    double seconds; /* estimate */
} search_kernel;

typedef struct search_plan {
    const search_skeleton *skeleton;
    uint32_t n, number; /* kernels; of the skeleton */
    search_kernel kernel[SEARCH_KERNELS];
    double seconds;
} search_plan;

/* Where a node's statement stands. */
typedef enum search_stage {
    SEARCH_OUTSIDE, /* not in this kernel, or read where it lies */
    SEARCH_INLINE,  /* part of the statement that uses it */
    SEARCH_BEFORE,
    SEARCH_INSIDE, /* the for loop */
    SEARCH_AFTER
} search_stage;

typedef struct search_layout {
    search_stage stage[SEARCH_NODES];
    bool in_loop_sum[SEARCH_NODES]; /* added up over the for loop */
    bool rescaled[SEARCH_NODES];    /* of them: by the running maximum `shift` */
    bool fused[SEARCH_NODES];       /* to the statement of its argument */
    uint32_t tile[SEARCH_NODES];    /* of a fused one: that argument */
    bool on_tile[SEARCH_NODES];     /* stays in registers for the one fused to it */
    uint32_t over[SEARCH_NODES];    /* is written over this node, which nothing needs any more */
    uint32_t shift;                 /* node of the running maximum; PO_NONE */
} search_layout;

/* False where the loops do not admit the program. made: nodes that other kernels make. */
bool search_lay(const search_problem *p, const search_skeleton *s, const search_kernel *k,
                const bool *made, search_layout *l);
/* The class along whose elements a node's statement works in vectors; PO_NONE: one by one. reduced:
 * it is added up. */
uint32_t search_lane(const search_problem *p, const search_skeleton *s, const search_layout *l,
                     uint32_t i, bool *reduced);
/* The greatest panel that divides the class's length; 0: none. */
int64_t search_panel(const search_problem *p, uint32_t class);
/* Whether the sum reads this operand as a weight in panels along `lane`. */
bool search_is_packed(const search_problem *p, const search_skeleton *s, uint32_t sum,
                      uint32_t operand, uint32_t lane);
/* Whether the sum is of products with an operand that has the class it adds up in neighbouring
 * elements, where lanes are wanted: the block gets a turned copy. */
bool search_is_turned(const search_problem *p, const search_skeleton *s, uint32_t sum,
                      uint32_t operand, uint32_t lane);
/* The operand of a sum of products that is copied to the block first, PO_NONE: none. It has to be
 * turned, or its rows lie far apart in memory: they fall on few sets of the cache, and are read
 * again for every few rows of the other operand. Where it has not the label of the loop, the copy
 * is made before it. */
uint32_t search_copied(const search_problem *p, const search_skeleton *s, const search_kernel *k,
                       const search_layout *l, uint32_t sum, uint32_t lane, bool *turned);
/* Rows of a product's register tile: how many there are, and their class (PO_NONE: no product). */
int64_t search_rows(const search_problem *p, const search_skeleton *s, const search_kernel *k,
                    const search_layout *l, uint32_t i, uint32_t lane, uint32_t *row);
/* How much of a class a block sees, and inside its loop; elements that it holds; how many blocks
 * there are that differ in none of these labels. */
int64_t search_chunk_in(const search_problem *p, const search_kernel *k, uint32_t class,
                        bool inside);
double search_held(const search_problem *p, const search_kernel *k, uint64_t labels, bool inside);
double search_blocks_without(const search_problem *p, const search_kernel *k, uint64_t labels);
extern const double search_flops[PO_MU_FUNCTIONS];
uint32_t search_schedules(const search_problem *p, const search_skeleton *skeletons, uint32_t n,
                          const po_search_options *options, po_search_counts *counts,
                          search_plan *plans, uint32_t most);
/* Writes the plan to an empty schedule of p->naive, and finishes it. By naive tensor: what stands
 * for INPUT and OUTPUT ones; PO_NONE. */
const uint32_t *search_emit(const search_problem *p, const search_plan *plan, po_schedule *to);
void search_tell_plan(const search_problem *p, const search_plan *plan, po_text *text);

#endif

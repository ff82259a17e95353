/* What the parts of the CUDA printer share (docs/cuda-printer.md).
 *
 * A muGraph goes through them in this order: a copy is brought to a plain form (normal.c,
 * spread.c), operands of products are staged (stage.c), each statement gets a way to be
 * worked (plan.c, reside.c), tensors get places (memory.c), barriers are set
 * (barrier.c), then the text is printed statement by statement (map.c, rows.c,
 * product.c, tile.c, band.c). */
#ifndef PO_CODEGEN_CUDA_PRIVATE_H
#define PO_CODEGEN_CUDA_PRIVATE_H

#include "base/num.h"
#include "codegen/cpu/printer.h"
#include "codegen/cuda/cuda.h"

enum {
    CU_WARP = 32,
    CU_LABELS = 12, /* labels of one role in a statement */
    CU_STAGES = 4,  /* buffers of a pipeline at most */
    CU_FRAGMENTS = 16,
    CU_REGISTERS = 144, /* of a thread, in register tiles */
    CU_PAD = 16         /* bytes: rows of shared tensors lie an odd number of these apart */
};

/* How a statement is worked by the threads of a block. */
typedef enum cu_work {
    CU_MAP,      /* elements dealt to threads */
    CU_COPY,     /* a map that moves bytes, by asynchronous copies where they are wide enough */
    CU_THREAD,   /* a thread adds up an element */
    CU_ROWS,     /* so many lanes side by side add up an element */
    CU_BLOCK,    /* all threads add up an element */
    CU_PRODUCT,  /* register tiles of a product, on tensor cores or not */
    CU_FRAGMENT, /* a map over the register tile of a product */
    CU_TILE_SUM, /* adds up the columns of a register tile, for each of its rows */
    CU_TILE_ROW, /* a map over the rows of a register tile */
    CU_ONE       /* one thread does it all: threads would meet */
} cu_work;

/* A product: out[row, col] += scale * factors * sum over red of a[row, red] b[red, col]. */
typedef struct cu_product {
    uint32_t a, b; /* operands */
    uint32_t n_row, n_col, n_red, n_batch;
    uint32_t row[CU_LABELS], col[CU_LABELS], red[CU_LABELS]; /* outermost first */
    double scale;
    uint32_t n_factor, factor[PO_MU_MAX_INPUTS]; /* operands that hold no reduced label */
} cu_product;

/* How a product's rows and columns are dealt to threads: each warp has tiles_r x tiles_c tiles; a
 * tile is 16 x 8 on tensor cores, where a thread holds 4 elements of it, else 4 x 8, where it holds
 * one. Warps lie warps_k x warps_r x warps_c. */
typedef struct cu_fragment {
    bool tensor;
    uint32_t n_row, n_col, row[CU_LABELS], col[CU_LABELS];
    int64_t rows, cols; /* in the block's box */
    uint32_t warps_r, warps_c, tiles_r, tiles_c;
    uint32_t warps_k; /* warps that share what is added up; `gather` makes one sum of theirs */
    uint32_t gather;  /* node: before the first map over the tile; PO_NONE */
} cu_fragment;

typedef struct cu_node {
    cu_work work;
    cu_product product;
    uint32_t fragment; /* PRODUCT, FRAGMENT */
    uint32_t kind;     /* PRODUCT: 0 FFMA, else 1 f16, 2 bf16, 3 tf32, 4 f32 as two tf32 */
    bool swapped;      /* PRODUCT: rows of the tile are the product's columns */
    uint32_t lanes;    /* ROWS */
    uint32_t vector;   /* MAP, COPY, THREAD: elements at a time along the last of order */
    uint32_t n_order, order[CU_LABELS]; /* kept labels, outermost first */
    uint32_t n_red, red[CU_LABELS];
    bool barrier; /* before it (a FOR loop: before its first copies) */
    const char *reason;
    bool pipelined;            /* COPY: issued ahead by the FOR loop around it */
    uint32_t stages, n_copies; /* FOR: of its pipeline */
} cu_node;

typedef struct cu_tensor {
    const char *name; /* in C */
    int64_t stride[PO_MU_MAX_RANK], least[PO_MU_MAX_RANK], count[PO_MU_MAX_RANK];
    int64_t origin, elements; /* elements: of one stage */
    int64_t offset;           /* bytes: SHARED, DEVICE */
    int64_t first, last;      /* positions of nodes: when it lives */
    uint32_t stages;          /* copies of it, in turn */
    uint32_t fragment;        /* the register tile that it lives in + 1; 0: memory */
    bool rows;   /* it has an element for each row of that tile, in all lanes of the row */
    bool staged; /* whole chunks of it are there, zeros at edges */
} cu_tensor;

/* What a label is where text is being printed: start + inner. */
typedef struct cu_value {
    const char *start; /* NULL: 0 */
    const char *inner; /* NULL: 0 */
} cu_value;

typedef struct cu {
    cg g; /* lines */
    po_ctx *ctx;
    po_arena *arena;
    po_mu *mu; /* the copy */
    const po_cuda_print_options *options;
    const char *symbol;
    const char *step;
    uint32_t *staged, n_staged, cap_staged; /* tensors */
    uint32_t stages;                        /* of pipelines, at most */
    uint32_t threads;
    uint32_t n_fragments;
    cu_fragment fragment[CU_FRAGMENTS];
    cu_node *node;
    cu_tensor *tensor;
    cu_value *value;
    int64_t shared, device; /* bytes */
    int64_t limit;
    uint32_t n_barriers;
    bool pending; /* asynchronous copies may be in flight that nothing has waited for */
} cu;

/* --- the plain form (normal.c, spread.c) --- */

/* A copy without LANES loops, fused statements and REGISTER tensors, each step in GRID loops or
 * small; sums over chunks are added up in SHARED tensors. */
po_status cu_normal(cu *c, const po_mu *mu);
po_status cu_spread(cu *c);
/* Nodes moved about. */
void cu_detach(po_mu *mu, uint32_t node);
void cu_attach(po_mu *mu, uint32_t parent, uint32_t before, uint32_t node);
/* Puts a loop round the nodes from one to another (not included), which are brothers. */
uint32_t cu_wrap(po_mu *mu, uint32_t from, uint32_t to, po_mu_loop_kind kind, uint32_t label,
                 int64_t chunk);
/* Reads and adds in a statement moved from one access to another. */
void cu_replace(po_mu *mu, uint32_t node, const po_mu_access *from, const po_mu_access *to);

/* --- products (stage.c) --- */

bool cu_product_of(cu *c, uint32_t node, cu_product *product);
/* Puts FOR loops over slices around products that add up all at once. */
void cu_slice(cu *c);
void cu_stage(cu *c, uint32_t step);

/* --- plans --- */

void cu_plan_step(cu *c, uint32_t step);
/* What stays in register tiles: sets `fragment` and `rows` of tensors, and the work of statements
 * over these (reside.c). */
void cu_reside(cu *c, uint32_t step);
int64_t cu_registers(const cu_fragment *f);
/* Whether the product's rows come from a register tile as its tensor cores need them. */
bool cu_is_held(const cu *c, uint32_t node);
po_status cu_memory_device(cu *c);
void cu_memory_shared(cu *c, uint32_t step);
void cu_layout(cu *c, uint32_t tensor);
void cu_barriers(cu *c, uint32_t step);

/* --- looking (access.c) --- */

bool cu_is_global(const po_mu_tensor *t);
bool cu_writes(const cu *c, uint32_t around, uint32_t tensor);
/* Values that a label takes in a run of the node's box, and whether the last chunk is shorter. */
int64_t cu_count(const cu *c, uint32_t node, uint32_t label);
bool cu_has_tail(const cu *c, uint32_t node, uint32_t label);
int64_t cu_count_all(const cu *c, uint32_t node, const uint32_t *labels, uint32_t n);
/* Labels that take several values in the box: to `out`, their number. */
uint32_t cu_running(const cu *c, uint32_t node, const uint32_t *labels, uint32_t n, uint32_t *out);
/* Sets of labels, each once. */
bool cu_same_set(const uint32_t *a, uint32_t n_a, const uint32_t *b, uint32_t n_b);
/* Elements that a step of the label moves an access by, as stored. */
int64_t cu_step_of(const cu *c, const po_mu_access *access, uint32_t label);
/* How many elements side by side along a label the access may be moved by at a time, at most
 * `most`: all start at multiples of that many. 0: it does not lie side by side. */
int64_t cu_side(const cu *c, uint32_t node, const po_mu_access *access, uint32_t label,
                int64_t most);
bool cu_is_apart(const cu *c, uint32_t node, const po_mu_access *access);
/* Whether an index may lie outside the tensor. */
bool cu_leaves(const cu *c, const po_mu_access *access);

/* --- text --- */

const char *cu_c_type(po_mu_type type);
/* "", "_f16", "_bf16" */
const char *cu_suffix(po_mu_type type);
const char *cu_offset(cu *c, const po_mu_access *access);
const char *cu_pointer(cu *c, const po_mu_access *access);
/* The value at an access. */
const char *cu_get(cu *c, const po_mu_access *access);
/* The condition under which an iteration with these labels counts: tails, and indices of all
 * accesses of the statement (or only of one: operand, n_in for what is written). NULL: always. */
const char *cu_inside(cu *c, const po_mu_access *access);
const char *cu_tail(cu *c, uint32_t node, const uint32_t *labels, uint32_t n);
const char *cu_and(cu *c, const char *a, const char *b);
/* Prints what is needed, and gives the name of the statement's value over its operands' texts. */
const char *cu_value_of(cu *c, const po_mu_statement *s, const char *const *operand);
const char *cu_literal(cu *c, double value);
/* Declares the values of labels within their chunk: a number `index` taken apart. The last label
 * runs in steps of `vector`. */
void cu_take_apart(cu *c, uint32_t node, const char *index, const uint32_t *labels, uint32_t n,
                   int64_t vector);
void cu_forget(cu *c, const uint32_t *labels, uint32_t n);
/* "b_k == 0 && ...": the first chunk of the loops over what a statement reduces; NULL: always. */
const char *cu_is_first(cu *c, uint32_t node);

/* Declares `float name[vector]` and fills it from an access. */
const char *cu_vector_get(cu *c, const po_mu_access *a, const char *name, uint32_t vector);
void cu_put(cu *c, const po_mu_access *a, const char *value);
po_status cu_print_map(cu *c, uint32_t node);
po_status cu_print_copy(cu *c, uint32_t node, const char *stage);
/* Waits for all asynchronous copies, where some may be in flight (cuda.c): before a barrier. */
void cu_wait(cu *c);
po_status cu_print_rows(cu *c, uint32_t node);
po_status cu_print_product(cu *c, uint32_t node);
po_status cu_print_fragment(cu *c, uint32_t node);
po_status cu_print_tile_sum(cu *c, uint32_t node);
po_status cu_print_tile_row(cu *c, uint32_t node);
/* What the statement stores: `value` added to `old`, or to what the sum starts with. */
const char *cu_combined(cu *c, uint32_t node, const char *old, const char *value);
/* `value` as a tensor of the type has it. */
const char *cu_rounded(cu *c, po_mu_type type, const char *value);
/* The registers of a tensor that lives in a register tile. */
void cu_declare_fragment(cu *c, uint32_t tensor);
/* "[2][4][4]" */
const char *cu_registers_text(cu *c, const cu_fragment *f);
void cu_zero(cu *c, const cu_fragment *f, const char *name);
/* "warp / 2 % 2 * 32 + ", or "": where the warp's rows, columns start. */
const char *cu_warp_row(cu *c, const cu_fragment *f);
const char *cu_warp_col(cu *c, const cu_fragment *f);
/* Whether rows, columns lie inside the box for all threads. */
bool cu_is_full(const cu_fragment *f, bool col);
/* Each element of the tile to where the statement writes: its value, for products what the
 * registers `sum` have (NULL: a map). */
void cu_over_tiles(cu *c, uint32_t node, const cu_fragment *f, const char *sum);
/* Whether a product's tile starts from zeros once in the scope of what it writes. */
bool cu_starts_once(const cu *c, uint32_t node);
/* Bytes of shared memory for the sums of warps. */
int64_t cu_gather_bytes(const cu *c, uint32_t step);

#endif

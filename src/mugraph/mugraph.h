/* The muGraph: one program at three levels (Mirage, section 2; docs/mugraph.md).
 *
 *     kernel graph   a list of steps over tensors in memory (places INPUT, OUTPUT, WEIGHT, DEVICE)
 *     block graph    inside a step: GRID loops (its blocks, worked in parallel), FOR loops, and
 *                    statements over tiles that stay in cache (place SHARED)
 *     thread graph   a statement's register tile, and what LANES loops unroll (place REGISTER)
 *
 * The program is a tree: steps, loops, statements. Everything that is computed is a statement
 *
 *     out[o(t)]  =, += or max=  e(a[i(t)], b[j(t)], ...)          for t in the box of its labels
 *
 * with affine accesses, as an indexed sum has them (ops/sum/sum.h), but with any scalar expression
 * e. Labels belong to the muGraph: a label has one extent everywhere. A loop around a statement
 * binds one label to a chunk of its range; the statement runs over that chunk, and over the whole
 * range of its other labels. So the maps of the paper are derived and never stored: the axis of a
 * tensor whose access holds a GRID label is its imap (of what is written: its omap), the axis that
 * holds a FOR label its fmap; a statement whose reduced label is bound by a FOR loop is an
 * accumulator.
 *
 * Where an index falls outside its tensor, the iteration contributes nothing: nothing is stored,
 * and nothing is added. A tensor may have a ring of `fill` around it that makes this come about
 * without a test; that is a matter of layout, and not of meaning. */
#ifndef PO_MUGRAPH_MUGRAPH_H
#define PO_MUGRAPH_MUGRAPH_H

#include "base/arena.h"
#include "base/hash.h"
#include "base/rational.h"
#include "base/str.h"

enum {
    PO_MU_MAX_RANK = 8,
    PO_MU_MAX_INPUTS = 8, /* operands of a statement */
    PO_MU_MAX_ITEMS = 64, /* of its expression */
    PO_MU_MAX_DEPTH = 12, /* loops around a statement */
    PO_MU_MAX_GRID = 3,   /* of them GRID loops (the paper's grid dimensions) */
    PO_MU_VECTOR = 16     /* floats of the widest vector: the chunk of a LANES loop, and the room
                             that is held for it */
};

typedef struct po_mu po_mu;

typedef struct po_mu_label {
    const char *name; /* unique; lower-case letters and digits */
    int64_t extent;
} po_mu_label;

/* --- tensors --- */

typedef enum po_mu_place {
    PO_MU_INPUT,   /* the region's; as the runtime holds it: dense, row-major, no ring */
    PO_MU_OUTPUT,  /* likewise */
    PO_MU_WEIGHT,  /* a constant, packed when the model is written */
    PO_MU_TABLE,   /* small, its fractions known to the printer */
    PO_MU_DEVICE,  /* between steps */
    PO_MU_SHARED,  /* lives inside the loop `scope`, one copy a block */
    PO_MU_REGISTER /* inside a LANES loop, or between a statement and those fused to it */
} po_mu_place;

/* What elements are stored as; arithmetic is in f32 whatever they are. Storing a value in f16 or
 * bf16 rounds it (to the nearest, ties to even). Sizes and strides count elements. */
typedef enum po_mu_type { PO_MU_F32, PO_MU_F16, PO_MU_BF16 } po_mu_type;

typedef struct po_mu_tensor {
    const char *name; /* unique */
    po_mu_place place;
    po_mu_type type;
    uint32_t number; /* INPUT, OUTPUT, WEIGHT: which one */
    uint32_t rank;
    int64_t dims[PO_MU_MAX_RANK];
    int64_t stride[PO_MU_MAX_RANK];                        /* in floats */
    int64_t before[PO_MU_MAX_RANK], after[PO_MU_MAX_RANK]; /* ring along each axis */
    double fill;              /* what the ring holds: 0, or -infinity */
    int64_t floats;           /* size with rings and gaps; set by po_mu_layout */
    int64_t origin;           /* floats from the start to element 0; likewise */
    uint32_t scope;           /* SHARED, REGISTER: the loop inside which it lives, or PO_NONE: the
                                 step; along labels bound at or outside the scope its storage holds
                                 one chunk only (po_mu_held) */
    const po_rational *table; /* TABLE: row-major, dims' product of them */
} po_mu_tensor;

/* --- accesses --- */

typedef struct po_mu_term {
    uint32_t label;
    int64_t coef; /* not 0 */
} po_mu_term;

typedef struct po_mu_index {
    int64_t offset;
    uint32_t n;
    const po_mu_term *terms; /* by label, ascending */
} po_mu_index;

typedef struct po_mu_access {
    uint32_t tensor;
    const po_mu_index *axes; /* the tensor's rank of them */
} po_mu_access;

/* --- scalar expressions --- */

/* The scalar functions: mugraph/functions.def has a row for each. */
typedef enum po_mu_function {
#define PO_MU_FUNCTION(id, name, arity, flops, what) PO_MU_##id,
#include "mugraph/functions.def"
#undef PO_MU_FUNCTION
    PO_MU_FUNCTIONS
} po_mu_function;

/* In an array; arguments come before what uses them, the last item is the value. */
typedef struct po_mu_item {
    po_mu_function function;
    uint32_t a, b, c; /* items; PO_MU_OPERAND: a is the statement's operand; 0 where unused */
    double value;     /* PO_MU_CONST */
} po_mu_item;

/* The name of a function: in text, and in printed code behind a prefix. */
const char *po_mu_function_name(po_mu_function function);
/* How many arguments a function has, and what it is of numbers (not CONST, OPERAND). */
uint32_t po_mu_arity(po_mu_function function);
double po_mu_apply(po_mu_function function, double a, double b, double c);

/* --- the tree --- */

typedef enum po_mu_combine { PO_MU_SET, PO_MU_ADD, PO_MU_MAXIMUM } po_mu_combine;

typedef struct po_mu_statement {
    po_mu_access out;
    po_mu_combine combine;
    /* ADD, MAXIMUM: starts from 0 or -infinity at the first chunk of every enclosing FOR loop over
     * a label that it reduces; else it goes on from what `out` holds. */
    bool fresh;
    uint32_t n_in;
    po_mu_access in[PO_MU_MAX_INPUTS];
    uint32_t n_items;
    const po_mu_item *items;

    /* The thread graph, all labels PO_NONE for a plain loop nest. A tile holds `rows` steps of
     * label `row` times `vectors` times 16 steps of label `lane`, in registers, while the reduced
     * labels run; a lane label that is reduced is added up in so many vectors, then across. A
     * printer for a machine with fewer registers cuts the tile further. What of the last vector
     * lies past the end is masked. */
    uint32_t lane, vectors;
    uint32_t row, rows;
    uint32_t n_order;      /* the other labels, outermost first; what is reduced comes last */
    const uint32_t *order; /* empty: the kept ones, then the reduced ones, by number */
    int64_t ahead;         /* 0: none. While the statement runs, what lies so many floats behind
                              operand `ahead_of` is fetched into the cache: the next slice of a
                              weight, or what comes next of this one */
    uint32_t ahead_of;
    bool fused; /* runs on the register tile of the statement before it, whose out it
                   reads; kept labels are the same */
} po_mu_statement;

/* The tensor of operand k; with k = n_in that which is written. */
static inline uint32_t po_mu_touched(const po_mu_statement *s, uint32_t k) {
    return k < s->n_in ? s->in[k].tensor : s->out.tensor;
}

typedef enum po_mu_kind {
    PO_MU_STEP, /* only at the top: one node of the kernel graph */
    PO_MU_LOOP,
    PO_MU_STATEMENT
} po_mu_kind;

typedef enum po_mu_loop_kind {
    PO_MU_GRID, /* chunks in any order and in parallel; directly inside the step or another GRID,
                   and alone there */
    PO_MU_FOR,  /* chunks one after the other */
    PO_MU_LANES /* chunks of one vector: what is inside is unrolled, lane by lane the same; a lane
                   reads nothing that another writes */
} po_mu_loop_kind;

typedef struct po_mu_node {
    po_mu_kind kind;
    uint32_t parent, first, next; /* PO_NONE where there is none; steps hang on po_mu.first */
    const char *name;             /* STEP: for people, "conv1 3x3 64 to 64, F(4,3)" */
    po_mu_loop_kind loop;         /* LOOP */
    uint32_t label;
    int64_t chunk;             /* LANES: 0, one vector */
    po_mu_statement statement; /* STATEMENT */
} po_mu_node;

struct po_mu {
    po_arena *arena;
    const char *name;
    po_mu_label *labels;
    po_mu_tensor *tensors;
    po_mu_node *nodes;
    uint32_t n_labels, cap_labels, n_tensors, cap_tensors, n_nodes, cap_nodes;
    uint32_t first; /* step */
};

/* --- building --- */

po_mu *po_mu_create(po_arena *arena, const char *name);
/* Fresh numbers; names are made unique by a suffix where they are taken. */
uint32_t po_mu_add_label(po_mu *mu, const char *name, int64_t extent);
/* Dense and row-major, without a ring; the caller changes rings and strides, then calls
 * po_mu_layout. */
uint32_t po_mu_add_tensor(po_mu *mu, const char *name, po_mu_place place, uint32_t rank,
                          const int64_t *dims);
/* Row-major strides over what is held (po_mu_held: for SHARED and REGISTER tensors call it once the
 * statements stand) with its ring; the stride of the axis before the last is rounded up to a
 * multiple of `align` floats and then grows by `gap`. Calls po_mu_measure. */
void po_mu_layout(po_mu *mu, uint32_t tensor, int64_t align, int64_t gap);
/* Sets floats and origin by strides and ring: for callers that set the strides themselves. */
void po_mu_measure(po_mu *mu, uint32_t tensor);
/* At the end of the parent's children; parent PO_NONE: a step. */
uint32_t po_mu_add_step(po_mu *mu, const char *name);
uint32_t po_mu_add_loop(po_mu *mu, uint32_t parent, po_mu_loop_kind kind, uint32_t label,
                        int64_t chunk);
/* A statement without operands, items and tile, out unset. */
uint32_t po_mu_add_statement(po_mu *mu, uint32_t parent, po_mu_combine combine);
/* An access with all offsets 0: axes are filled in by po_mu_at. The pointer holds. */
po_mu_access po_mu_access_of(po_mu *mu, uint32_t tensor);
/* Adds coef * label (or, label PO_NONE, an offset) to an axis. */
void po_mu_at(po_mu *mu, po_mu_access *access, uint32_t axis, int64_t coef, uint32_t label);
/* An access by one label an axis. */
po_mu_access po_mu_access_by(po_mu *mu, uint32_t tensor, const uint32_t *labels);
/* Appends an operand, an item; their numbers (PO_NONE: more than PO_MU_MAX_INPUTS operands). */
uint32_t po_mu_operand(po_mu *mu, uint32_t statement, po_mu_access access);
uint32_t po_mu_item_of(po_mu *mu, uint32_t statement, po_mu_function function, uint32_t a,
                       uint32_t b, uint32_t c);
uint32_t po_mu_constant(po_mu *mu, uint32_t statement, double value);
/* Appends the items of another statement, whose operands must be those of this one. */
void po_mu_copy_items(po_mu *mu, uint32_t statement, const po_mu_statement *from);

/* --- looking --- */

/* The node after another in the order of the text (a loop before what is inside it), over all
 * steps; PO_NONE at the end. From the first: po_mu_next(mu, PO_NONE). */
uint32_t po_mu_next(const po_mu *mu, uint32_t node);
/* Whether a node is `around` or stands inside it. Everything is inside PO_NONE. */
bool po_mu_inside(const po_mu *mu, uint32_t node, uint32_t around);
/* Whether a statement there reads or writes the tensor. */
bool po_mu_names(const po_mu *mu, uint32_t around, uint32_t tensor);
/* The step of a node. */
uint32_t po_mu_step_of(const po_mu *mu, uint32_t node);

/* Labels of a statement: kept (in out), reduced (only in operands); numbers ascending. */
void po_mu_labels_of(const po_mu *mu, const po_mu_statement *s, po_arena *arena, uint32_t *n_kept,
                     uint32_t **kept, uint32_t *n_reduced, uint32_t **reduced);
/* How many numbers a label has; PO_NONE: 1. */
int64_t po_mu_extent(const po_mu *mu, uint32_t label);
/* How far an index moves a step of the label; 0 where the label is not in it. */
int64_t po_mu_coef(const po_mu_index *index, uint32_t label);
/* The index along the last axis: neighbours in memory. Of a tensor of rank 0 an index without
 * labels.
 */
const po_mu_index *po_mu_last_axis(const po_mu *mu, const po_mu_access *access);
/* Whether an access has the label on some axis. */
bool po_mu_has(const po_mu *mu, const po_mu_access *access, uint32_t label);
/* The loop that binds a label around a node; PO_NONE. */
uint32_t po_mu_binder(const po_mu *mu, uint32_t node, uint32_t label);
/* The chunk of a loop: PO_MU_VECTOR for LANES, at most the label's extent. */
int64_t po_mu_chunk(const po_mu *mu, uint32_t loop);
/* Whether a tensor's storage holds one chunk only of a label (see `scope`). */
bool po_mu_local(const po_mu *mu, uint32_t tensor, uint32_t label);
/* Whether something is kept round the tensor. */
bool po_mu_has_ring(const po_mu_tensor *t);
/* Bytes of an element: 4 or 2. */
int64_t po_mu_bytes(po_mu_type type);
/* Elements of a tensor that po_mu_check takes: the product of its dims. */
int64_t po_mu_elements(const po_mu_tensor *t);
/* What the storage of a tensor holds along an axis: `count` indices. Where no access has a local
 * label along the axis, those are the axis's own: least 0, count the dim. Else (returns true: the
 * axis is cut) index i of an access is found at
 *     i - (sum over local labels of coef * start of the chunk) - least,    0 <= it < count,
 * and all accesses have the same coefs of local labels there (po_mu_check). */
bool po_mu_held(const po_mu *mu, uint32_t tensor, uint32_t axis, int64_t *least, int64_t *count);
/* Least and greatest index of an access along an axis, over the labels' whole ranges. */
void po_mu_range(const po_mu *mu, const po_mu_access *access, uint32_t axis, int64_t *least,
                 int64_t *most);
/* Whether two accesses are written alike. */
bool po_mu_same_access(const po_mu *mu, const po_mu_access *a, const po_mu_access *b);
/* Whether no index of an access ever lies outside its tensor. */
bool po_mu_is_inside(const po_mu *mu, const po_mu_access *access);

/* How an access copes with indices outside its tensor. Both the printer and the evaluation go by
 * this. RING: the ring covers all of them, and the statement with this operand at `fill` adds
 * nothing, whatever the other operands are: nothing needs a test. GUARD: an iteration outside is
 * left out by a test; a statement with a tile has no guard on its row and lane (po_mu_check), but
 * for the tail of the lanes. */
typedef enum po_mu_edge { PO_MU_WITHIN, PO_MU_RING, PO_MU_GUARD } po_mu_edge;
/* operand PO_NONE: of what is written, which never relies on the ring. */
po_mu_edge po_mu_edge_of(const po_mu *mu, uint32_t statement, uint32_t operand);

/* FLOPs (2 a multiply-add, functions by their row), bytes moved from and to memory places, bytes
 * of SHARED places of the largest step. `bytes` has what a step reads of a tensor once; `weights`
 * those of weights as often as statements read them. */
typedef struct po_mu_cost {
    double flops, bytes, weights;
    int64_t device, shared; /* bytes held */
} po_mu_cost;
void po_mu_cost_of(const po_mu *mu, po_mu_cost *cost);

/* --- verbs --- */

/* Everything that construction demands: names, shapes, labels bound once on a path, GRID loops
 * outermost, parallel chunks that write apart, rings that cover what is read past the dims or a
 * tile that is guarded, REGISTER tensors only where they can be, SHARED bytes of a block at most
 * `shared_limit`. PO_BAD_INPUT naming step, tensor and reason. */
po_status po_mu_check(po_ctx *ctx, const po_mu *mu, int64_t shared_limit);
/* In this arena; what statements hold is shared, and must not change. */
po_mu *po_mu_copy(po_arena *arena, const po_mu *mu);
/* Gives all names by number, so that what is alike prints alike. */
void po_mu_unname(po_mu *mu);
/* The same but for names, and for numbers of tensors that the text orders otherwise. */
bool po_mu_equal(const po_mu *a, const po_mu *b);
po_hash po_mu_hash(const po_mu *mu);
/* Text that parses back (docs/mugraph.md). */
void po_mu_print(po_text *text, const po_mu *mu);
po_status po_mu_parse(po_ctx *ctx, po_arena *arena, const char *text, po_mu **mu);

#endif

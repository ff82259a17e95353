/* The blind enumeration's own compact programs (inside this folder; docs/enumeration.md).
 *
 * A program is a few operators over tensors ("slots": the inputs, then what operators make). Every
 * operand is read through an R/T, so that two R/Ts never stand in a row; one more R/T may follow
 * the last operator. An R/T is written twice: as the moves that made it, which fit tensors of any
 * size, and as mixed-radix digits for the size at hand. So what is found at small sizes is carried
 * to the true ones by making its moves again. */
#ifndef PO_MUTATE_ENUMERATE_H
#define PO_MUTATE_ENUMERATE_H

#include "mutate/mutate.h"

#include <limits.h>

enum {
    EN_RANK = 6,
    EN_MOVES = 4,
    EN_DIGITS = 10,
    EN_INPUTS = 8,
    EN_OPS = 8,
    EN_OUTS = 4,
    EN_BIASES = 3,
    EN_SLOTS = EN_INPUTS + EN_OPS * EN_OUTS,
    EN_ARGS = 4, /* operands of an operator */
    EN_MAPS = 3, /* spatial axes */
    EN_FACTORS = 6,
    EN_TILES = 8, /* parts that maps are cut into or put together from */
    EN_POINTS = 6,
    EN_MONOMIALS = 16,
    EN_POINT_WORK = 16 /* of a candidate judged by points; one whose shapes do not fit is 1 */
};

typedef struct en_shape {
    uint8_t rank;
    int32_t d[EN_RANK];
} en_shape;

bool en_same(const en_shape *a, const en_shape *b);
int64_t en_count(const en_shape *s);

/* --- R/T --- */

typedef enum en_move_kind {
    EN_TAKE = 1, /* f of `axis`, its outer (side 0) or inner digit, becomes the outer or inner
                    digit (place) of axis `to` */
    EN_NEW,      /* the same, as an axis of its own before axis `to` */
    EN_PAIR,     /* TAKE of `axis` and of the axis after it, both to `to`; order: which is outer;
                    g: factor of the latter, 0: f */
    EN_SPREAD,   /* TAKE twice from `axis`, to `to` and the axis after it; g: as of PAIR */
    EN_DROP,     /* every axis of length 1 goes (to: 255), or the axis `axis` */
    EN_SWAP,     /* of two axes */
    EN_GAP,      /* f zeros before (side 0) or after */
    EN_TWICE     /* the digit `f` of `axis`, `g` above it, stands in axis `to` too (as its outer
                    digit): zeros where the two differ. Blocks along a diagonal. f 0: all that
                    is below g */
} en_move_kind;

typedef struct en_move {
    uint8_t kind, axis, to, side, place, order;
    uint8_t pad;  /* 1, 2: zeros after, before, up to a multiple of f */
    uint8_t drop; /* the axis goes where nothing of it is left */
    uint8_t tile; /* by one of the factors for tiles: no other move follows */
    int16_t f, g; /* f 0: the whole axis; g of TAKE: zeros after each part that is merged */
} en_move;

/* t counts `size` and stands for t * mult on axis `axis` of the base; the base is the padded input,
 * and where a digit stands twice one more axis for its second place. */
typedef struct en_digit {
    uint8_t axis;
    int32_t size, mult;
} en_digit;

typedef struct en_rt {
    uint8_t n_moves, n, twice; /* twice: 1 + axis of the digit that stands twice */
    uint8_t lo[EN_RANK], hi[EN_RANK];
    uint8_t len[EN_RANK]; /* digits of each output axis, the outer one first */
    en_move move[EN_MOVES];
    en_digit digit[EN_DIGITS];
    int32_t twice_size, twice_mult;
    en_shape in, out;
    uint64_t hash; /* of the normal form */
} en_rt;

/* The identity. */
void en_rt_start(const en_shape *in, en_rt *rt);
/* Makes the move; false where it does not fit. en_rt_finish brings the result to normal form and
 * fills out and hash; false where it is too large. */
bool en_rt_move(en_rt *rt, const en_move *move);
bool en_rt_finish(en_rt *rt);
/* Makes the moves of another R/T on a tensor of another size. */
bool en_rt_again(const en_rt *like, const en_shape *in, en_rt *rt);
bool en_rt_is_identity(const en_rt *rt);
/* Those with one to `most` moves, each data movement once, sorted by moves, then shape. */
typedef struct en_bucket {
    uint8_t cost;
    en_shape out;
    uint32_t first, n;
} en_bucket;

typedef struct en_rts {
    en_shape in;
    en_rt *rt; /* [0] is the identity */
    uint32_t n;
    en_bucket *bucket;
    uint32_t n_buckets, of_cost[EN_MOVES + 2]; /* the first bucket of so many moves, or of more */
} en_rts;

typedef struct en_factors {
    uint8_t n, n_gaps, n_above, n_tiles;
    int16_t f[EN_FACTORS];   /* what axes are split by */
    int16_t tile[EN_TILES];  /* what maps, and batches that become maps, are split by as a whole */
    int16_t gap[EN_FACTORS]; /* zeros put between what is merged */
    int16_t above[EN_FACTORS]; /* groups above a digit that stands twice */
} en_factors;

enum { EN_ALLOW_PAD = 1, EN_ALLOW_TWICE = 2, EN_ALLOW_TILES = 4 };
/* What sets are made in, one after the other: the same memory for each. */
typedef struct en_maker en_maker;
en_maker *en_maker_create(po_arena *arena);
/* A set of the arena's. most: moves; limit: of the R/Ts made. */
en_rts *en_rts_make(en_maker *mk, po_arena *arena, const en_shape *in, const en_factors *factors,
                    uint32_t allow, uint32_t most, uint32_t limit);

/* --- programs --- */

typedef enum en_kind {
    EN_CONV = 1,
    EN_MATMUL,
    EN_ADD,
    EN_CONCAT,
    EN_SPLIT,
    EN_POOL,   /* average, zeros at borders counted */
    EN_MOVE,   /* of targets only: one operand through its R/T */
    EN_RESHAPE /* of targets only: radices that need not nest */
} en_kind;

/* How parts lie beside one another. */
typedef enum en_how {
    EN_CLOSE,
    EN_EVEN,   /* they start as far apart as the longest is long: zeros fill the others up, or what
                  fills them up is dropped */
    EN_STACKED /* each is a place on a new first axis */
} en_how;

typedef struct en_op {
    uint8_t kind, n_in, n_out, axis;
    uint8_t in[EN_ARGS], out; /* slots; results stand in a row */
    /* of each map axis; window: of pools */
    int16_t stride[EN_MAPS], dilation[EN_MAPS], lo[EN_MAPS], hi[EN_MAPS], window[EN_MAPS];
    int32_t size[EN_OUTS]; /* SPLIT: lengths along the axis */
    uint8_t how;           /* CONCAT, SPLIT: en_how */
    uint8_t like[EN_OUTS]; /* SPLIT: slots whose axis like_axis has these lengths; in mutants */
    uint8_t like_axis;     /* 255: lengths are those of the target's outputs */
} en_op;

/* What is multiplied with what in a tensor: sets of inputs, one bit each, sorted. */
typedef struct en_monomials {
    uint8_t n, m[EN_MONOMIALS];
} en_monomials;

typedef struct en_program {
    uint8_t n_in, n_ops, n_slots, n_out;
    uint8_t out[EN_OUTS];
    uint8_t
        table; /* 1 + the input that is no input but a table, [channels, 1, window]: each element
                  1 by the window's elements, so that a convolution with it averages; or 0 */
    en_shape shape[EN_SLOTS];
    en_monomials monomials[EN_SLOTS];
    en_op op[EN_OPS];
    const en_rt *view[EN_OPS][EN_ARGS]; /* NULL: as it is */
    const en_rt *last[EN_OUTS];         /* output to the slot's shape: read backwards; or NULL */
} en_program;

/* What operator `n` reads as its k-th operand, behind its R/T. */
static inline const en_shape *en_operand(const en_program *p, uint32_t n, uint32_t k) {
    return p->view[n][k] ? &p->view[n][k]->out : &p->shape[p->op[n].in[k]];
}
/* Shapes and monomials of what operator `n` makes, from its operands'; SPLIT: its sizes too. False
 * where it does not fit. */
bool en_program_infer(en_program *p, uint32_t n);
bool en_monomials_product(const en_monomials *a, const en_monomials *b, en_monomials *c);
/* Multiplications and additions, and elements moved, of the whole program at its shapes. Operators
 * that read only weights are free. */
double en_program_cost(const en_program *p, uint32_t n_activations, double *flops, double *bytes);
po_hash en_program_hash(const en_program *p);
/* How many of its operators multiply two tensors. */
uint32_t en_products(const en_program *p);

/* --- evaluation modulo PO_P --- */

typedef struct en_eval en_eval;
/* For programs over the inputs of this one. `whole`: residues of all inputs are laid out. */
/* The elements of a table's window. */
int64_t en_window_of(const en_shape *table);
en_eval *en_eval_create(po_arena *arena, const en_program *of, bool whole);
/* What is under evaluation. en_eval_changed forgets the results of operators from `op` on. */
void en_eval_program(en_eval *e, const en_program *p);
void en_eval_view(en_eval *e, uint32_t op, uint32_t arg);
void en_eval_changed(en_eval *e, uint32_t op);
/* Element of the program's output, by its row-major index in the output's shape. */
uint32_t en_eval_output(en_eval *e, uint32_t output, const en_shape *shape, const int32_t *index);

/* --- problems --- */

/* A part of a graph, all of whose operators the enumeration has; what its nodes read from outside
 * are inputs, activations first. Biases of convolutions and products that make an output are left
 * out and added again in the end. */
typedef struct en_problem {
    const po_graph *graph;
    en_program target;
    po_value_id input[EN_INPUTS], output[EN_OUTS]; /* the graph's values; of a table: PO_NONE */
    uint32_t n_activations;                        /* the others are made of weights alone */
    po_value_id bias[EN_OUTS][EN_BIASES];
    uint32_t n_biases[EN_OUTS];
    /* Parts that its maps may be cut into, ascending: each part has an inside that windows do not
     * leave. */
    uint8_t n_tiles;
    int16_t tile[EN_TILES];
} en_problem;

/* What an element of a tensor reads along each map axis of the inputs: how many positions beyond
 * the first, and how far apart those of neighbours are. */
typedef struct en_reach {
    int32_t reach[EN_MAPS], stride[EN_MAPS];
} en_reach;
/* Of the results, by output. */
void en_reach_of(const en_program *p, en_reach reach[EN_OUTS]);

/* A set of a graph's nodes to be enumerated together. */
typedef struct en_region {
    const bool *inside; /* by node */
} en_region;

/* Parts worth a search of their own (PET, section 6.2: subsets of up to four operators): all of the
 * graph where it is small; operators that read one tensor; sums of two; chains of two; single ones,
 * with the moves around them. `alone`: single ones without. *n is set. */
en_region *en_regions(po_arena *arena, const po_graph *g, bool alone, uint32_t *n);
/* `weight`: by value, as po_weights_of tells (ir/subprogram.h). */
bool en_read(po_arena *arena, const po_graph *g, const bool *weight, const en_region *region,
             en_problem *problem);
/* Sets what the problem's maps may be cut into. */
void en_set_tiles(en_problem *problem);
/* A smaller problem of the same structure: channels, maps and batches shrunk so that the factors
 * keep dividing what they divide. False: as it is. */
bool en_shrink(const en_problem *from, en_problem *small, po_arena *arena);
/* Of all of its tensors. */
int64_t en_elements(const en_problem *p);
/* A found program at the sizes of `to`: shapes made anew. False where it does not fit there. */
bool en_lift(po_arena *arena, const en_program *found, const en_problem *to, en_program *program);
/* A clone of the problem's graph with the program in the place of its part. NULL: it has no such
 * form at the graph's opset. */
po_status en_write(po_ctx *ctx, po_arena *arena, const en_problem *problem,
                   const en_program *program, po_graph **graph);

/* --- search --- */

typedef struct en_found {
    en_program program;
    uint64_t order; /* candidates judged before it */
    uint8_t depth, moves;
    double share; /* of the output positions that agree, at the sizes searched at */
} en_found;

typedef struct en_search {
    po_arena *arena; /* what found gets lives as long */
    en_maker *maker;
    const en_problem *problem;
    uint32_t depth, moves; /* most operators, R/Ts counted; most moves of all R/Ts */
    uint32_t most_rts;     /* R/Ts of one tensor */
    uint64_t budget;       /* of work */
    po_ctx *ctx;           /* whose limits end it before that; NULL: none */
    /* Called for each that agrees inside; returns whether to go on. */
    bool (*found)(void *user, const en_found *found);
    void *user;
    po_mutate_counts *counts;
} en_search;

void en_search_run(en_search *s);
/* Whether programs agree with a problem at its inside points. */
typedef struct en_checker en_checker;
en_checker *en_checker_create(po_arena *arena, const en_problem *problem);
bool en_agrees(en_checker *checker, const en_program *program);

#endif

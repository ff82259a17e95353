/* What directed derivations are written with. A derivation looks at one node of a subprogram and
 * proposes mutants: clones of the subprogram in which other nodes make the node's output. It states
 * its side conditions in its own words, yet nothing trusts it: mutants are checked like any others.
 *
 * Inside this folder. The po_mk_ helpers add a node to the mutant under construction and know the
 * static shape of what they make; where an operator would change nothing they return its input.
 * They work on weights as on activations: nodes that read only weights run once, when the model is
 * written. Tables are exact in f32 wherever a derivation can have it so. */
#ifndef PO_REWRITE_DERIVING_H
#define PO_REWRITE_DERIVING_H

#include "ir/subprogram.h"
#include "ops/conv_view.h"
#include "ops/move/rt.h"
#include "rewrite/declared.h"

enum {
    PO_MOST_DIMS = 12,
    PO_MOST_REPLACED = 16, /* outputs of one mutant */
    PO_DERIVED_SINCE = 7   /* before that opset, shapes were broadcast by attributes */
};

struct po_deriving {
    po_ctx *ctx;
    po_arena *arena; /* scratch */
    const po_subprogram *sub;
    const po_graph *from; /* sub's graph */
    const bool *weight;   /* by value: made from weights and constants alone; NULL: constants are */
    po_graph *in_place;   /* NULL: mutants are clones; else it is rewritten, once */
    po_mutants *mutants;
    uint64_t *derived; /* counts them */
    const char *name;
    po_graph *g; /* under construction; values and nodes of `from` keep their numbers */
    po_node_id place;
    struct {
        po_value_id old, made;
    } replaced[PO_MOST_REPLACED];
    uint32_t n_replaced;
    bool done;    /* in place: it was rewritten */
    bool dropped; /* a helper could not do what was asked at this opset: the mutant goes */
};

/* Starts a mutant: a clone of the subprogram, or the graph itself, to be changed beside the node.
 */
void po_derive_begin(po_deriving *d, po_node_id place);
/* y is to make what `old` (of the subprogram) was, from the end on; types of the same shape or the
 * mutant is dropped. */
void po_derive_replace(po_deriving *d, po_value_id old, po_value_id y);
/* Sweeps, infers, and adds the mutant under the derivation's name and `detail` (may be NULL). */
po_status po_derive_end(po_deriving *d, const char *detail);
/* The three in one: `y` for the first output of the node that was begun at. */
po_status po_derive_done(po_deriving *d, po_value_id y, const char *detail);

/* What the text says (pattern.h) in the place of the node's output. */
typedef struct po_match po_match;
po_status po_derive_text(po_deriving *d, po_node_id place, const po_match *match, const char *text);

/* Convolutions and transposed ones with every size known, of inputs that may be rearranged. */
bool po_read_conv(const po_graph *g, po_node_id id, po_conv *conv);
bool po_read_conv_transpose(const po_graph *g, po_node_id id, po_conv *conv);

/* The same of either; of a graph itself (po_law_derive_at) shapes may be open. */
bool po_conv_at(const po_deriving *d, po_node_id id, po_conv *conv);
/* Of what makes the value. */
bool po_conv_making(const po_deriving *d, po_value_id v, po_conv *conv);
/* Weights and bias may be read before anything runs. */
bool po_conv_ready(const po_deriving *d, const po_conv *conv);

/* Rank and dims of a static value; 0 rank counts. False where it is not static or too deep. */
bool po_dims_of(const po_graph *g, po_value_id v, uint32_t *rank, int64_t dims[PO_MOST_DIMS]);

po_value_id po_mk_table(po_deriving *d, uint32_t rank, const int64_t *dims, const double *values);
po_value_id po_mk_zeros(po_deriving *d, uint32_t rank, const int64_t *dims);
po_value_id po_mk_scalar(po_deriving *d, double value);
po_value_id po_mk_reshape(po_deriving *d, po_value_id x, uint32_t rank, const int64_t *dims);
po_value_id po_mk_transpose(po_deriving *d, po_value_id x, const int *perm);
/* Zeros before and after along one axis. Negative amounts crop. */
po_value_id po_mk_pad(po_deriving *d, po_value_id x, uint32_t axis, int64_t before, int64_t after);
/* The same along several axes, with one node. */
po_value_id po_mk_pads(po_deriving *d, po_value_id x, const int64_t *before, const int64_t *after);
/* count elements from begin on, every step-th; a step of -1 runs backwards from begin. */
po_value_id po_mk_slice(po_deriving *d, po_value_id x, uint32_t axis, int64_t begin, int64_t count,
                        int64_t step);
/* Integers of a shape, row by row; what x has at them along the axis, which their axes replace. */
po_value_id po_mk_indices(po_deriving *d, uint32_t rank, const int64_t *dims,
                          const int64_t *values);
po_value_id po_mk_gather(po_deriving *d, po_value_id x, uint32_t axis, po_value_id indices);
po_value_id po_mk_concat(po_deriving *d, uint32_t axis, uint32_t n, const po_value_id *in);
/* Consecutive parts along the axis. */
void po_mk_split(po_deriving *d, po_value_id x, uint32_t axis, uint32_t n, const int64_t *parts,
                 po_value_id *out);
po_value_id po_mk_matmul(po_deriving *d, po_value_id a, po_value_id b);
/* A sum of products as po_recipe_einsum has it, of static values. */
po_value_id po_mk_einsum(po_deriving *d, const char *equation, uint32_t n, const po_value_id *in);
/* Add, Sub, Mul, Div with broadcasting. */
po_value_id po_mk_binary(po_deriving *d, po_op_id op, po_value_id a, po_value_id b);
po_value_id po_mk_sum(po_deriving *d, uint32_t n, const po_value_id *in);
/* A convolution of x, whose shape may be open in place, by w, everything else from `like` (its n,
 * group, kernel, stride, dilation, before, after); b may be PO_NONE. */
po_value_id po_mk_conv(po_deriving *d, po_value_id x, po_value_id w, po_value_id b,
                       const po_conv *like);
/* y plus a bias [out] on a map of so many axes; b may be PO_NONE. */
po_value_id po_mk_biased(po_deriving *d, po_value_id y, po_value_id b, uint32_t map_axes);
/* A product by table [rows, length of the axis] along one axis. */
po_value_id po_mk_along(po_deriving *d, po_value_id x, uint32_t axis, int64_t rows,
                        const double *table);
/* A move as R/T writes it, in the fewest nodes: po_rt_of_names. */
po_value_id po_mk_rearrange(po_deriving *d, po_value_id x, const char *text, uint32_t n,
                            const po_rt_size *sizes);

/* conv/sums.c: K [a, b, ..] = K_a a + K_b b + .. by channels, and K (a + b) = K a + K b. The bias
 * goes with the last. */
po_status po_derive_parts(po_deriving *d, const po_conv *c, uint32_t n, const po_value_id *parts,
                          const int64_t *channels);
po_status po_derive_terms(po_deriving *d, const po_conv *c, const po_value_id terms[2]);
/* conv/parallel.c: makes `all` a window that holds both convolutions of one tensor (but for its
 * channels); false where there is none. The kernel of one of them in that window. */
bool po_derive_join(po_conv *all, const po_conv *c);
po_value_id po_derive_widened(po_deriving *d, const po_conv *all, const po_conv *c);

static inline int64_t po_up_to(int64_t n, int64_t multiple) {
    return (n + multiple - 1) / multiple * multiple;
}
static inline int64_t po_larger(int64_t a, int64_t b) {
    return a > b ? a : b;
}

#endif

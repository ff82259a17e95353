/* R/T: the one operator that every chain of reshapes, transposes, pads, slices and halo copies is
 * (docs/rt.md).
 *
 * It writes an element's place as mixed-radix digits: for digits t in their box,
 *     out[base_out + sum of out_coef * t] = in[base_in + sum of in_coef * t]
 * each digit belonging to one axis of the input and one of the output. An iteration that falls
 * outside either tensor is dropped, what none reaches is zero. So
 *     a pad or crop is a base, a gap between merged parts an out_coef larger than the digits below
 *     it need, a halo an in_coef smaller than that (neighbours are copied), a stride an in_coef
 *     above 1, a flip a negative one.
 * Forms are normal: two that move elements equally are equal, wherever their radices allow.
 *
 * Printed, a digit is a name or its extent; an axis of several digits stands in parentheses, most
 * significant first:
 *     n c (h 2) w -> (2 n) c h w         rows of either parity, as two images
 *     n c h w -> c (n*15 h) w            images of 14 rows merged into the height, a row of zeros
 *                                        between them: n steps by 15
 *     n c (t*4 h)-1 w -> (n t) c h w     windows of rows stepping by 4 from row -1: with h:6, a
 *                                        halo of one row on both sides
 *     n c h*2+1 w -> n c h w             the odd rows
 *     n c h w -> n c h+1=16 w            a row of zeros before; 16 rows
 * `name:extent` states an extent, `*k` a step other than the one that the digits below it give,
 * `+k` or `-k` the base of an axis, `=d` its length. */
#ifndef PO_OPS_RT_H
#define PO_OPS_RT_H

#include "ir/graph.h"
#include "ops/sum/sum.h"

enum { PO_RT_MAX_DIGITS = 24, PO_RT_MAX_RANK = 16 };

typedef struct po_rt_digit {
    int64_t extent;
    uint32_t in_axis, out_axis;
    int64_t in_coef, out_coef; /* out_coef > 0 in normal forms, in_coef != 0 */
} po_rt_digit;

typedef struct po_rt {
    uint32_t in_rank, out_rank, n;
    const int64_t *in_dims, *out_dims; /* none is 0 */
    const int64_t *in_base, *out_base;
    const po_rt_digit *digits; /* by output axis, then from the largest out_coef down */
} po_rt;

/* --- making: each returns NULL where there is no such form --- */

/* From what it is made of, brought to normal form; everything is copied. NULL where two iterations
 * would write one element, where none is left, and where a number is too large. */
const po_rt *po_rt_create(po_arena *arena, const po_rt *parts);
const po_rt *po_rt_identity(po_arena *arena, uint32_t rank, const int64_t *dims);
/* perm as ONNX's Transpose has it. */
const po_rt *po_rt_transpose(po_arena *arena, uint32_t rank, const int64_t *dims,
                             const uint32_t *perm);
const po_rt *po_rt_reshape(po_arena *arena, uint32_t in_rank, const int64_t *in_dims,
                           uint32_t out_rank, const int64_t *out_dims);
/* Zeros before and after each axis; negative: a crop. */
const po_rt *po_rt_pad(po_arena *arena, uint32_t rank, const int64_t *dims, const int64_t *before,
                       const int64_t *after);
/* The axis becomes two: tiles of `window` elements, the next starting `step` further, the first at
 * `from` (negative: reading zeros). step == window: a plain split. */
const po_rt *po_rt_tiles(po_arena *arena, uint32_t rank, const int64_t *dims, uint32_t axis,
                         int64_t tiles, int64_t window, int64_t step, int64_t from);

/* --- algebra --- */

/* `second` after `first`: exact. NULL where the dims do not meet or the digits of one cut across
 * those of the other. */
const po_rt *po_rt_compose(po_arena *arena, const po_rt *first, const po_rt *second);
/* What undoes it; NULL where an element of the input is lost. Of what a halo copied, and of what a
 * pad added, only the elements that came from the input once are looked at. */
const po_rt *po_rt_invert(po_arena *arena, const po_rt *rt);
bool po_rt_is_identity(const po_rt *rt);
/* Every element of the input stands somewhere in the output, and the output holds no zeros but
 * copies: it is a bijection where `true`. */
bool po_rt_is_bijection(const po_rt *rt);
bool po_rt_equal(const po_rt *a, const po_rt *b);
po_hash po_rt_hash(const po_rt *rt);

/* --- text --- */

/* With `extents`, extents and lengths are stated, so that the text parses without dims. */
void po_rt_print(po_text *text, const po_rt *rt, bool extents);
/* dims: of the input; NULL where the text states every extent. PO_BAD_INPUT names the place. */
po_status po_rt_parse(po_ctx *ctx, po_arena *arena, const char *text, uint32_t rank,
                      const int64_t *dims, const po_rt **rt);

/* A number that a text names: one value, or one for each axis that `..` stands for. */
typedef struct po_rt_size {
    const char *name;
    const int64_t *values;
} po_rt_size;
#define PO_SIZES(...)                                                                              \
    (const po_rt_size[]) {                                                                         \
        __VA_ARGS__, {                                                                             \
            NULL, NULL                                                                             \
        }                                                                                          \
    }
/* The same of a text with names in the place of numbers, for n map axes: the axis or digit before
 * `..` stands n times, its names numbered, so "n c (h p).. -> (p.. n) c h.." is
 * "n c (h0 p0) (h1 p1) -> (p0 p1 n) c h0 h1" for two. The sizes of digits are stated where a name
 * has one; bases, lengths and steps may be names ("h+b=l"), which need one. sizes: NULL for none.
 * NULL where the text or a size does not fit. */
const po_rt *po_rt_of_names(po_arena *arena, const char *text, uint32_t n, const po_rt_size *sizes,
                            uint32_t rank, const int64_t *dims);

/* --- from and to operators --- */

/* The indexed sum, of one input. */
po_sum *po_rt_sum(po_arena *arena, const po_rt *rt);
/* NULL where the sum is more than one move of one input. */
const po_rt *po_rt_of_sum(po_arena *arena, const po_sum *sum);
/* What a node does from input 0 to the given output: any operator whose indexed sum is a move
 * (Reshape, Transpose, Squeeze, Unsqueeze, Flatten, Slice, Split, Pad with zeros, DepthToSpace,
 * SpaceToDepth, Identity). *rt is NULL where it is none. */
po_status po_rt_of_node(po_ctx *ctx, po_arena *arena, const po_graph *graph, const po_node *node,
                        uint32_t output, const po_rt **rt);
/* The chain of moves that makes `value`, as far back as it composes: *rt is from *root to it. The
 * identity, and the value itself, where there is none; NULL where its shape is not known. */
po_status po_rt_of_chain(po_ctx *ctx, po_arena *arena, const po_graph *graph, po_value_id value,
                         po_value_id *root, const po_rt **rt);
/* Adds the fewest standard nodes beside `place` (PO_NONE: at the end) and returns their output;
 * `x` itself for the identity. */
po_value_id po_rt_emit(po_graph *graph, po_node_id place, po_value_id x, const po_rt *rt);
/* What po_rt_emit would add: nodes, and elements that they read and write (a Reshape: none). */
uint32_t po_rt_nodes(po_arena *arena, const po_rt *rt);
double po_rt_traffic(po_arena *arena, const po_rt *rt);

#endif

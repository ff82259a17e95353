/* R/T forms as standard nodes: crop and pad the input's axes, reshape them to digits, bring these
 * into the output's order, pad them to their places, reshape, crop and pad the output's axes. What
 * is not needed is left out; where steps can be had in several ways the fewest nodes win, then the
 * least data moved. */
#include "ops/move/rt_emit.h"
#include "ops/move/rt_internal.h"

/* One of the ways: what is done early, and what is transposed. */
typedef struct way {
    bool early_pads; /* pads of digits that are an input axis of their own */
    bool whole_axes; /* transpose the input's axes, not digits */
    bool out_axes;   /* reshape to the output's axes first, then transpose them */
} way;

/* --- the input's axes --- */

typedef struct axis {
    uint32_t n, digit[PO_RT_MAX_DIGITS]; /* from the largest step down */
    bool gather;                         /* its digits overlap, or run backwards */
    int64_t start, length, step;         /* of the slice */
    int64_t before, after;               /* zeros around that */
} axis;

static int64_t coef_of(const po_rt *rt, uint32_t digit, bool out) {
    return out ? rt->digits[digit].out_coef : rt->digits[digit].in_coef;
}

static void list_digits(const po_rt *rt, bool out, uint32_t x, axis *a) {
    a->n = 0;
    for (uint32_t i = 0; i < rt->n; i++) {
        if ((out ? rt->digits[i].out_axis : rt->digits[i].in_axis) != x)
            continue;
        int64_t c = coef_of(rt, i, out);
        uint32_t k = a->n++;
        for (; k; k--) {
            int64_t other = coef_of(rt, a->digit[k - 1], out);
            if ((other < 0 ? -other : other) >= (c < 0 ? -c : c))
                break;
            a->digit[k] = a->digit[k - 1];
        }
        a->digit[k] = i;
    }
}

/* Whether each step is a multiple of the next that leaves it room. */
static bool nests(const po_rt *rt, const axis *a, bool out) {
    for (uint32_t k = 0; k < a->n; k++) {
        int64_t c = coef_of(rt, a->digit[k], out);
        if (c < 0)
            return false;
        if (k + 1 == a->n)
            continue;
        int64_t below = coef_of(rt, a->digit[k + 1], out);
        if (below < 0 || c % below || below * rt->digits[a->digit[k + 1]].extent > c)
            return false;
    }
    return true;
}

static void plan_axis(const po_rt *rt, uint32_t x, axis *a) {
    int64_t base = rt->in_base[x], dim = rt->in_dims[x];
    list_digits(rt, false, x, a);
    *a = (axis){.n = a->n, .step = 1, .start = base, .length = 1, .digit = {0}};
    list_digits(rt, false, x, a);
    if (a->n == 0)
        return;
    if (a->n == 1) {
        const po_rt_digit *d = &rt->digits[a->digit[0]];
        a->step = d->in_coef;
        a->length = d->extent;
        return;
    }
    int64_t low = base, end = base + 1;
    a->gather = !nests(rt, a, false);
    if (!a->gather) {
        end = base + coef_of(rt, a->digit[0], false) * rt->digits[a->digit[0]].extent;
    } else {
        for (uint32_t k = 0; k < a->n; k++) {
            const po_rt_digit *d = &rt->digits[a->digit[k]];
            int64_t reach = d->in_coef * (d->extent - 1);
            if (reach < 0)
                low += reach;
            else
                end += reach;
        }
    }
    a->before = low < 0 ? -low : 0;
    a->after = end > dim ? end - dim : 0;
    a->start = a->gather || low < 0 ? 0 : low; /* a Gather needs no slice before it */
    a->length = (a->gather || end > dim ? dim : end) - a->start;
}

/* What a whole axis of the output needs before or behind what its digits make. */
static void out_ends(const po_rt *rt, const axis *o, uint32_t x, int64_t *before, int64_t *after) {
    int64_t length = o->n ? coef_of(rt, o->digit[0], true) * rt->digits[o->digit[0]].extent : 1;
    *before = rt->out_base[x];
    *after = rt->out_dims[x] - length - rt->out_base[x];
}

/* Overlapping digits: one Gather makes all dims of the axis. */
static void gather_axis(po_emitter *e, const axis *a, uint32_t at, int64_t base) {
    const po_rt *rt = e->rt;
    int64_t dims[PO_RT_MAX_DIGITS], count = 1;
    for (uint32_t k = 0; k < a->n; k++)
        count *= dims[k] = rt->digits[a->digit[k]].extent;
    po_value_id in[2] = {e->x, PO_NONE};
    if (e->graph) {
        po_arena *arena = e->graph->arena;
        int64_t *index = PO_NEW_N(arena, int64_t, count);
        for (int64_t i = 0; i < count; i++) {
            int64_t rest = i;
            index[i] = base;
            for (uint32_t k = a->n; k-- > 0; rest /= dims[k])
                index[i] += coef_of(rt, a->digit[k], false) * (rest % dims[k]);
        }
        in[1] = po_add_i64s_shaped(e->graph, a->n, dims, index);
    }
    memmove(&e->dims[at + a->n], &e->dims[at + 1], (e->rank - at - 1) * sizeof *e->dims);
    memmove(&e->digit[at + a->n], &e->digit[at + 1], (e->rank - at - 1) * sizeof *e->digit);
    for (uint32_t k = 0; k < a->n; k++) {
        e->dims[at + k] = dims[k];
        e->digit[at + k] = a->digit[k];
    }
    e->rank += a->n - 1;
    e->nodes++;
    e->traffic += 2 * po_emit_count(e);
    if (e->graph) {
        po_value_id x = po_emit_node(e, PO_OP_Gather, 2, in);
        po_node_set_int(e->graph, e->graph->values[x].producer, "axis", (int64_t)at);
    }
}

/* The place of a digit within its output axis: how far the one above it steps. */
static int64_t room_of(const po_rt *rt, const axis *out, uint32_t digit) {
    const axis *o = &out[rt->digits[digit].out_axis];
    for (uint32_t k = 1; k < o->n; k++)
        if (o->digit[k] == digit)
            return rt->digits[o->digit[k - 1]].out_coef / rt->digits[digit].out_coef;
    return rt->digits[digit].extent;
}

/* Crops and pads the input's axes; leaves each axis as one dim, or as its digits. */
static void enter(po_emitter *e, const axis *in, const axis *out, const way *w, bool *padded,
                  bool *ends_done) {
    const po_rt *rt = e->rt;
    int64_t start[PO_RT_MAX_RANK], length[PO_RT_MAX_RANK], step[PO_RT_MAX_RANK];
    int64_t before[PO_RT_MAX_RANK], after[PO_RT_MAX_RANK];
    for (uint32_t x = 0; x < rt->in_rank; x++) {
        start[x] = in[x].start;
        length[x] = in[x].length;
        step[x] = in[x].step;
        before[x] = in[x].before;
        after[x] = in[x].after;
        if (in[x].n != 1 || !w->early_pads)
            continue;
        /* A digit that is all of this axis may get the zeros that it needs later. */
        uint32_t d = in[x].digit[0], o = rt->digits[d].out_axis;
        if (out[o].n == 1 && rt->digits[d].out_coef == 1) {
            int64_t front, back;
            out_ends(rt, &out[o], o, &front, &back);
            if (front >= 0 && back >= 0) {
                before[x] = front;
                after[x] = back;
                ends_done[o] = true;
            }
        } else {
            after[x] = room_of(rt, out, d) - rt->digits[d].extent;
            padded[d] = true;
        }
    }
    po_emit_slice(e, start, length, step);
    po_emit_pad(e, before, after);
    for (uint32_t x = rt->in_rank; x-- > 0;)
        if (in[x].gather)
            gather_axis(e, &in[x], x, rt->in_base[x] + in[x].before);
}

/* Reshapes every axis to its digits, and crops these where the input steps over elements. */
static void to_digits(po_emitter *e, const axis *in) {
    const po_rt *rt = e->rt;
    bool split = false;
    for (uint32_t x = 0; x < rt->in_rank; x++)
        split |= !in[x].gather && in[x].n > 1;
    int64_t dims[PO_EMIT_MOST_DIMS], keep[PO_EMIT_MOST_DIMS], start[PO_EMIT_MOST_DIMS] = {0},
                                                              step[PO_EMIT_MOST_DIMS];
    uint32_t digit[PO_EMIT_MOST_DIMS], n = 0, at = 0;
    for (uint32_t x = 0; x < rt->in_rank; x++) {
        const axis *a = &in[x];
        if (a->gather || a->n < 2) {
            for (uint32_t k = 0; k < (a->gather ? a->n : 1); k++, at++) {
                if (!a->n && split)
                    continue; /* a dim of 1 goes */
                digit[n] = a->n ? a->digit[k] : PO_NONE;
                keep[n] = dims[n] = e->dims[at];
                n++;
            }
            continue;
        }
        at++;
        for (uint32_t k = 0; k < a->n; k++) {
            int64_t c = coef_of(rt, a->digit[k], false);
            digit[n] = a->digit[k];
            keep[n] = rt->digits[a->digit[k]].extent;
            dims[n] = k ? coef_of(rt, a->digit[k - 1], false) / c : keep[n];
            n++;
            if (k + 1 == a->n && c > 1) {
                digit[n] = PO_NONE;
                keep[n] = 1;
                dims[n++] = c;
            }
        }
    }
    for (uint32_t i = 0; i < n; i++)
        step[i] = 1;
    po_emit_reshape(e, n, dims);
    memcpy(e->digit, digit, n * sizeof *digit);
    po_emit_slice(e, start, keep, step);
}

/* --- the order --- */

static uint32_t dim_of_digit(const po_emitter *e, uint32_t digit) {
    for (uint32_t i = 0; i < e->rank; i++)
        if (e->digit[i] == digit)
            return i;
    return PO_NONE;
}

/* Dims of digits into the output's order, dims of 1 behind. */
static void order_digits(po_emitter *e) {
    uint32_t perm[PO_EMIT_MOST_DIMS], n = 0;
    for (uint32_t i = 0; i < e->rt->n; i++)
        perm[n++] = dim_of_digit(e, i);
    for (uint32_t i = 0; i < e->rank; i++)
        if (e->digit[i] == PO_NONE)
            perm[n++] = i;
    po_emit_transpose(e, perm);
}

/* Pads digits to their places; a lowest step above 1 is a dim of its own. */
static void pad_digits(po_emitter *e, const axis *out, const bool *padded) {
    const po_rt *rt = e->rt;
    int64_t before[PO_EMIT_MOST_DIMS] = {0}, after[PO_EMIT_MOST_DIMS] = {0},
            dims[PO_EMIT_MOST_DIMS];
    uint32_t digit[PO_EMIT_MOST_DIMS], n = 0;
    bool stepped = false, needed = false;
    for (uint32_t i = 0; i < rt->n; i++) {
        const axis *o = &out[rt->digits[i].out_axis];
        digit[n] = i;
        dims[n] = e->dims[i];
        after[n] = padded[i] ? 0 : room_of(rt, out, i) - rt->digits[i].extent;
        needed |= after[n] != 0;
        n++;
        if (o->digit[o->n - 1] == i && rt->digits[i].out_coef > 1) {
            digit[n] = PO_NONE;
            dims[n] = 1;
            after[n++] = rt->digits[i].out_coef - 1;
            stepped = true;
        }
    }
    if (!needed && !stepped)
        return;
    po_emit_reshape(e, n, dims);
    memcpy(e->digit, digit, n * sizeof *digit);
    po_emit_pad(e, before, after);
}

static void finish(po_emitter *e, const axis *out, const bool *ends_done) {
    const po_rt *rt = e->rt;
    int64_t dims[PO_RT_MAX_RANK], start[PO_RT_MAX_RANK], step[PO_RT_MAX_RANK];
    int64_t length[PO_RT_MAX_RANK], before[PO_RT_MAX_RANK], after[PO_RT_MAX_RANK];
    for (uint32_t x = 0; x < rt->out_rank; x++) {
        int64_t front = 0, back = 0;
        if (!ends_done[x])
            out_ends(rt, &out[x], x, &front, &back);
        dims[x] = rt->out_dims[x] - front - back;
        start[x] = front < 0 ? -front : 0;
        length[x] = dims[x] - start[x] + (back < 0 ? back : 0);
        step[x] = 1;
        before[x] = front > 0 ? front : 0;
        after[x] = back > 0 ? back : 0;
    }
    po_emit_reshape(e, rt->out_rank, dims);
    po_emit_slice(e, start, length, step);
    po_emit_pad(e, before, after);
}

/* Input axes in the order of the output, where each stays whole. */
static bool order_axes(po_emitter *e, const axis *in, const axis *out) {
    const po_rt *rt = e->rt;
    uint32_t perm[PO_EMIT_MOST_DIMS], n = 0, unit = 0;
    bool used[PO_RT_MAX_RANK] = {false};
    for (uint32_t x = 0; x < rt->in_rank; x++)
        if (in[x].gather)
            return false;
    for (uint32_t o = 0; o < rt->out_rank; o++) {
        for (uint32_t k = 0; k < out[o].n; k++) {
            uint32_t x = rt->digits[out[o].digit[k]].in_axis;
            if (!used[x])
                perm[n++] = x;
            used[x] = true;
        }
        for (; out[o].n == 0 && unit < rt->in_rank; unit++)
            if (!in[unit].n) {
                used[unit] = true;
                perm[n++] = unit++;
                break;
            }
    }
    for (uint32_t x = 0; x < rt->in_rank; x++)
        if (!used[x])
            perm[n++] = x;
    /* The digits of each axis must follow one another in the output. */
    uint32_t i = 0;
    for (uint32_t k = 0; k < n; k++)
        for (uint32_t j = 0; j < in[perm[k]].n; j++)
            if (in[perm[k]].digit[j] != i++)
                return false;
    po_emit_transpose(e, perm);
    return true;
}

/* Output axes as they lie in the input, then into order. */
static bool order_out_axes(po_emitter *e, const axis *in, const axis *out, const bool *ends_done) {
    const po_rt *rt = e->rt;
    uint32_t list[PO_RT_MAX_DIGITS], n = 0, axes[PO_RT_MAX_RANK], n_axes = 0, i = 0;
    bool used[PO_RT_MAX_RANK] = {false};
    for (uint32_t x = 0; x < rt->in_rank; x++)
        for (uint32_t k = 0; k < in[x].n; k++)
            list[n++] = in[x].digit[k];
    while (i < n) {
        uint32_t o = rt->digits[list[i]].out_axis;
        if (used[o])
            return false;
        for (uint32_t k = 0; k < out[o].n; k++)
            if (i == n || list[i++] != out[o].digit[k])
                return false;
        used[o] = true;
        axes[n_axes++] = o;
    }
    /* Output axes of length 1 stand where they will. */
    int64_t dims[PO_RT_MAX_RANK];
    uint32_t perm[PO_RT_MAX_RANK];
    for (uint32_t o = 0; o < rt->out_rank; o++)
        if (!used[o])
            axes[n_axes++] = o;
    for (uint32_t k = 0; k < n_axes; k++) {
        dims[k] = 1;
        for (uint32_t j = 0; j < out[axes[k]].n; j++)
            dims[k] *= rt->digits[out[axes[k]].digit[j]].extent;
        if (ends_done[axes[k]])
            dims[k] = rt->out_dims[axes[k]];
        perm[axes[k]] = k;
    }
    po_emit_reshape(e, n_axes, dims);
    po_emit_transpose(e, perm);
    return true;
}

/* --- the whole --- */

/* Every digit fills its place, and every input element its digits: dims can be regrouped freely. */
static bool dense(const po_rt *rt, const axis *in, const axis *out, const bool *padded) {
    for (uint32_t i = 0; i < rt->n; i++) {
        const axis *o = &out[rt->digits[i].out_axis], *a = &in[rt->digits[i].in_axis];
        if (padded[i] || room_of(rt, out, i) != rt->digits[i].extent ||
            (o->digit[o->n - 1] == i && rt->digits[i].out_coef != 1))
            return false;
        for (uint32_t k = 0; a->n > 1 && !a->gather && k < a->n; k++) {
            int64_t below = k + 1 < a->n ? coef_of(rt, a->digit[k + 1], false) *
                                               rt->digits[a->digit[k + 1]].extent
                                         : 1;
            if (coef_of(rt, a->digit[k], false) != below)
                return false;
        }
    }
    return true;
}

static bool go(po_emitter *e, const way *w) {
    const po_rt *rt = e->rt;
    axis in[PO_RT_MAX_RANK], out[PO_RT_MAX_RANK];
    bool padded[PO_RT_MAX_DIGITS] = {false}, ends_done[PO_RT_MAX_RANK] = {false};
    for (uint32_t x = 0; x < rt->in_rank; x++)
        plan_axis(rt, x, &in[x]);
    for (uint32_t x = 0; x < rt->out_rank; x++) {
        list_digits(rt, true, x, &out[x]);
        if (!nests(rt, &out[x], true))
            return false;
    }
    e->rank = rt->in_rank;
    for (uint32_t x = 0; x < rt->in_rank; x++) {
        e->dims[x] = rt->in_dims[x];
        e->digit[x] = PO_NONE;
    }
    enter(e, in, out, w, padded, ends_done);
    if (w->whole_axes || w->out_axes) {
        if (!dense(rt, in, out, padded) ||
            !(w->whole_axes ? order_axes(e, in, out) : order_out_axes(e, in, out, ends_done)))
            return false;
    } else {
        to_digits(e, in);
        order_digits(e);
        pad_digits(e, out, padded);
    }
    finish(e, out, ends_done);
    return !e->failed;
}

static const po_rt *depth_space(po_arena *arena, const po_rt *like, bool to_space, bool block_above,
                                int64_t *block) {
    const int64_t *deep = to_space ? like->in_dims : like->out_dims;
    const int64_t *wide = to_space ? like->out_dims : like->in_dims;
    if (like->in_rank != 4 || like->out_rank != 4)
        return NULL;
    int64_t b = *block = wide[2] / deep[2];
    if (b < 2 || deep[1] != wide[1] * b * b || wide[2] != deep[2] * b || wide[3] != deep[3] * b)
        return NULL;
    int64_t base[4] = {0}, c = wide[1];
    po_rt_digit d[6] = {
        {deep[0], 0, 0, 1, 1}, {c, 1, 1, block_above ? 1 : b * b, 1},
        {deep[2], 2, 2, 1, b}, {b, 1, 2, block_above ? b * c : b, 1},
        {deep[3], 3, 3, 1, b}, {b, 1, 3, block_above ? c : 1, 1},
    };
    for (int i = 0; i < 6 && !to_space; i++)
        d[i] = (po_rt_digit){d[i].extent, d[i].out_axis, d[i].in_axis, d[i].out_coef, d[i].in_coef};
    return po_rt_create(arena, &(po_rt){4, 4, 6, like->in_dims, like->out_dims, base, base, d});
}

static bool is_depth_space(po_arena *arena, const po_rt *rt, int64_t opset, bool *to_space,
                           bool *above, int64_t *block) {
    for (int k = 0; k < 3; k++) {
        *to_space = k < 2;
        *above = k != 1;
        const po_rt *other = depth_space(arena, rt, *to_space, *above, block);
        if (other && po_rt_equal(rt, other) && (*above || opset >= 11))
            return true;
    }
    return false;
}

static const way ways[] = {
    {false, true, false}, {true, true, false},   {false, false, true},
    {true, false, true},  {false, false, false}, {true, false, false},
};

/* The best of the ways; false where there is none. */
static bool choose(const po_rt *rt, int64_t opset, po_emitter *best, const way **how) {
    bool found = false;
    for (size_t k = 0; k < sizeof ways / sizeof *ways; k++) {
        po_emitter e = {.rt = rt, .opset = opset};
        if (!go(&e, &ways[k]) || (found && (e.nodes > best->nodes || (e.nodes == best->nodes &&
                                                                      e.traffic >= best->traffic))))
            continue;
        *best = e;
        *how = &ways[k];
        found = true;
    }
    return found;
}

enum { COUNTED_OPSET = 13 };

static bool figures(po_arena *arena, const po_rt *rt, uint32_t *nodes, double *traffic) {
    po_emitter e;
    const way *how;
    bool to_space, above;
    int64_t block;
    if (!choose(rt, COUNTED_OPSET, &e, &how))
        return false;
    po_arena *scratch = po_arena_child(arena);
    *nodes = e.nodes;
    *traffic = e.traffic;
    if (e.nodes > 1 && is_depth_space(scratch, rt, COUNTED_OPSET, &to_space, &above, &block))
        *nodes = 1;
    po_arena_free(scratch);
    return true;
}

uint32_t po_rt_nodes(po_arena *arena, const po_rt *rt) {
    uint32_t nodes;
    double traffic;
    return figures(arena, rt, &nodes, &traffic) ? nodes : PO_NONE;
}

double po_rt_traffic(po_arena *arena, const po_rt *rt) {
    uint32_t nodes;
    double traffic;
    return figures(arena, rt, &nodes, &traffic) ? traffic : -1;
}

po_value_id po_rt_emit(po_graph *graph, po_node_id place, po_value_id x, const po_rt *rt) {
    po_emitter e;
    const way *how;
    bool to_space, above;
    int64_t block, opset = po_model_opset(graph->model, "");
    if (opset < 5 || !choose(rt, opset, &e, &how))
        return PO_NONE;
    if (e.nodes > 1 && po_rearrangeable(graph, x) &&
        is_depth_space(graph->arena, rt, opset, &to_space, &above, &block)) {
        po_type type =
            po_type_tensor_i64(graph->arena, graph->values[x].type.dtype, 4, rt->out_dims);
        po_value_id y = po_add_op(graph, place, to_space ? PO_OP_DepthToSpace : PO_OP_SpaceToDepth,
                                  1, &x, &type);
        po_node_id node = graph->values[y].producer;
        po_node_set_int(graph, node, "blocksize", block);
        if (!above)
            po_node_set_string(graph, node, "mode", "CRD");
        return y;
    }
    e = (po_emitter){.rt = rt, .graph = graph, .place = place, .x = x, .opset = opset};
    return go(&e, how) ? e.x : PO_NONE;
}

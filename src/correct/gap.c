/* Zero gaps and halos: what a mutant's windows read across a seam is changed, without a patch.
 *
 * Looked for: moves, a window operator, moves. Along each map axis the moves before it say what
 * stands there, as digits of the input. Several digits: parts were merged, and windows read across
 * their seams; they are set apart by as many zeros as a window reaches beyond a part, and the moves
 * behind it pick the parts up from there. A digit that is but a tile of an input axis: windows at
 * its ends read zeros where the input has data; the tile is widened by what they read (its
 * neighbours' elements, or the zeros beyond the input), and the operator pads no more. */
#include "base/num.h"
#include "correct/ways.h"
#include "ops/rewrite.h"
#include "ops/window.h"

enum { MOST_SINGLE = 8 };

typedef struct window {
    int64_t kernel, stride, dilation, before, after; /* before, after: zeros */
} window;

typedef struct work {
    po_correcting *c;
    const po_graph *g; /* the mutant's */
    const po_node *node;
    po_value_id root, end;      /* the moves before start at root; those behind make end */
    const po_rt *enter, *leave; /* root to the operator, operator to end */
    uint32_t maps;
    window w[PO_RT_MAX_RANK]; /* by map axis */
    /* What becomes of them. */
    po_rt_digit in[PO_RT_MAX_DIGITS], out[PO_RT_MAX_DIGITS];
    int64_t in_base[PO_RT_MAX_RANK], in_dims[PO_RT_MAX_RANK], out_dims[PO_RT_MAX_RANK];
    bool gap, halo;
} work;

static bool read_windows(work *w) {
    const po_graph *g = w->g;
    const po_node *n = w->node;
    uint32_t rank;
    const po_dim *x = po_static_dims(g, n->in[0], &rank);
    po_window v;
    if (!x || rank < 3 || rank > PO_RT_MAX_RANK)
        return false;
    w->maps = rank - 2;
    if (!po_window_of(g, n, w->maps, &v) || v.ceil)
        return false;
    if (n->op == PO_OP_AveragePool && !po_op_int(g, n, "count_include_pad"))
        return false; /* other zeros would change what it divides by */
    for (uint32_t i = 0; i < w->maps; i++)
        w->w[i] = (window){v.kernel[i], v.stride[i], v.dilation[i], v.begin[i], v.end[i]};
    return true;
}

/* The moves that follow a value, as far as nothing else reads it. */
static po_status moves_behind(work *w, po_value_id value) {
    po_correcting *c = w->c;
    const po_rt *rt;
    po_value_id self;
    /* The identity on its shape. */
    PO_TRY(po_rt_of_chain(c->ctx, c->arena, w->g, value, &self, &rt));
    if (!rt)
        return PO_OK;
    w->leave = po_rt_identity(c->arena, rt->out_rank, rt->out_dims);
    w->end = value;
    for (const po_use *use; w->leave && (use = po_graph_sole_use(w->g, w->end));) {
        const po_node *n = &w->g->nodes[use->node];
        if (use->input != 0 || n->n_out != 1)
            break;
        PO_TRY(po_rt_of_node(c->ctx, c->arena, w->g, n, 0, &rt));
        const po_rt *longer = rt ? po_rt_compose(c->arena, w->leave, rt) : NULL;
        if (!longer)
            break;
        w->leave = longer;
        w->end = n->out[0];
    }
    return PO_OK;
}

/* Digits of an axis from the smallest step up: of the moves before, by what they make; of those
 * behind, by what they read. */
static uint32_t digits_on(const po_rt *rt, bool out, uint32_t axis, uint32_t *order) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < rt->n; i++) {
        const po_rt_digit *d = &rt->digits[i];
        int64_t step = out ? d->out_coef : d->in_coef;
        if ((out ? d->out_axis : d->in_axis) != axis)
            continue;
        uint32_t k = n++;
        for (; k; k--) {
            const po_rt_digit *e = &rt->digits[order[k - 1]];
            if ((out ? e->out_coef : e->in_coef) < step)
                break;
            order[k] = order[k - 1];
        }
        order[k] = i;
    }
    return n;
}

/* Whether another digit stands above this one on its axis of the input. */
static bool is_tile(const po_rt *rt, const po_rt_digit *low) {
    for (uint32_t i = 0; i < rt->n; i++) {
        const po_rt_digit *d = &rt->digits[i];
        if (d != low && d->in_axis == low->in_axis && d->in_coef > low->in_coef)
            return true;
    }
    return false;
}

static int64_t up_to(int64_t n, int64_t multiple) {
    return po_ceil_div(n, multiple) * multiple;
}

/* One map axis; false where it is not of the kind looked for. */
static bool adapt_axis(work *w, uint32_t map) {
    uint32_t x = map + 2, low_in[PO_RT_MAX_DIGITS], low_out[PO_RT_MAX_DIGITS];
    uint32_t n_in = digits_on(w->enter, true, x, low_in);
    uint32_t n_out = digits_on(w->leave, false, x, low_out);
    window *v = &w->w[map];
    if (v->kernel == 1 && !v->before && !v->after)
        return true; /* reads nothing but its own place */
    if (n_in == 0)
        return true;
    po_rt_digit *low = &w->in[low_in[0]];
    bool tile = is_tile(w->enter, &w->enter->digits[low_in[0]]), merged = n_in > 1;
    if (!tile && !merged)
        return true;
    if (n_out != n_in || low->out_coef != 1 || w->enter->out_base[x] || w->leave->in_base[x] ||
        w->out[low_out[0]].in_coef != 1)
        return false;
    int64_t rows = w->out[low_out[0]].extent, reach = v->dilation * (v->kernel - 1);
    int64_t content = low->extent, room = content, read = (rows - 1) * v->stride + reach + 1;
    if (tile) {
        w->in_base[low->in_axis] -= v->before * low->in_coef;
        content = low->extent = room = read;
        v->before = v->after = 0;
        w->halo = true;
    } else {
        int64_t behind = read - v->before - content;
        room += v->before > behind ? v->before : behind > 0 ? behind : 0;
        w->gap = true;
    }
    room = up_to(room, v->stride);
    /* The parts, further apart. */
    int64_t parts = 1;
    for (uint32_t k = 1; k < n_in; k++) {
        po_rt_digit *p = &w->in[low_in[k]], *q = &w->out[low_out[k]];
        int64_t seam_in = w->enter->digits[low_in[1]].out_coef;
        int64_t seam_out = w->leave->digits[low_out[1]].in_coef;
        if (p->out_coef % seam_in || q->in_coef % seam_out || p->extent != q->extent ||
            p->out_coef / seam_in != q->in_coef / seam_out)
            return false;
        parts += p->out_coef / seam_in * (p->extent - 1);
        p->out_coef = p->out_coef / seam_in * room;
        q->in_coef = q->in_coef / seam_out * (room / v->stride);
    }
    /* The last part gets the room that the others have: a few rows more, two nodes fewer. */
    int64_t length = merged ? parts * room : content;
    int64_t made = merged ? parts * (room / v->stride) : rows;
    int64_t after = (made - 1) * v->stride + reach + 1 - length - v->before;
    v->after = after > 0 ? after : 0;
    w->in_dims[x] = length;
    w->out_dims[x] = (length + v->before + v->after - reach - 1) / v->stride + 1;
    return w->out_dims[x] >= made;
}

static bool adapt(work *w) {
    memcpy(w->in, w->enter->digits, w->enter->n * sizeof *w->in);
    memcpy(w->out, w->leave->digits, w->leave->n * sizeof *w->out);
    memcpy(w->in_base, w->enter->in_base, w->enter->in_rank * sizeof *w->in_base);
    memcpy(w->in_dims, w->enter->out_dims, w->enter->out_rank * sizeof *w->in_dims);
    memcpy(w->out_dims, w->leave->in_dims, w->leave->in_rank * sizeof *w->out_dims);
    for (uint32_t i = 0; i < w->maps; i++)
        if (!adapt_axis(w, i))
            return false;
    if (!w->gap && !w->halo)
        return false;
    po_rt in = *w->enter, out = *w->leave;
    in.digits = w->in;
    in.in_base = w->in_base;
    in.out_dims = w->in_dims;
    out.digits = w->out;
    out.in_dims = w->out_dims;
    w->enter = po_rt_create(w->c->arena, &in);
    w->leave = po_rt_create(w->c->arena, &out);
    return w->enter && w->leave;
}

/* The adapted moves and operator in the place of the old ones. */
static bool rebuild(const work *w, po_graph *g, po_node_id id) {
    const po_node *n = w->node;
    po_value_id *in = po_arena_memdup(g->arena, n->in, n->n_in * sizeof *in), y;
    int64_t pads[2 * PO_RT_MAX_RANK];
    in[0] = po_rt_emit(g, id, w->root, w->enter);
    if (in[0] == PO_NONE)
        return false;
    po_type type = po_type_tensor_i64(g->arena, w->g->values[n->out[0]].type.dtype,
                                      w->leave->in_rank, w->leave->in_dims);
    y = po_graph_add_value(g, NULL, &type);
    po_node_id made = po_ops_add(g, id,
                                 &(po_node_spec){.op = n->op,
                                                 .name = g->values[y].name,
                                                 .n_in = n->n_in,
                                                 .in = in,
                                                 .n_out = 1,
                                                 .out = &y,
                                                 .n_attr = n->n_attr,
                                                 .attr = n->attr});
    for (uint32_t i = 0; i < w->maps; i++) {
        pads[i] = w->w[i].before;
        pads[w->maps + i] = w->w[i].after;
    }
    po_node_set_ints(g, made, "pads", 2 * w->maps, pads);
    y = po_rt_emit(g, id, y, w->leave);
    if (y == PO_NONE)
        return false;
    po_substitute(g, w->end, y);
    return true;
}

/* Adapts what stands around one node of a graph; unless `apply`, only says what it would need. */
static po_status correct_node(po_correcting *c, po_graph *g, po_node_id id, bool apply, bool *gap,
                              bool *halo) {
    work w = {.c = c, .g = g, .node = &g->nodes[id]};
    if (!po_op_sums_windows(w.node->op) || w.node->n_out != 1 || !read_windows(&w))
        return PO_OK;
    PO_TRY(po_rt_of_chain(c->ctx, c->arena, g, w.node->in[0], &w.root, &w.enter));
    PO_TRY(moves_behind(&w, w.node->out[0]));
    if (!w.enter || !w.leave || w.root == w.node->in[0] || w.enter->out_rank != w.maps + 2 ||
        w.leave->in_rank != w.maps + 2 || !adapt(&w))
        return PO_OK;
    /* Nodes move in memory while others are added. */
    po_node node = *w.node;
    w.node = &node;
    if (!apply || rebuild(&w, g, id)) {
        *gap |= w.gap;
        *halo |= w.halo;
    }
    return PO_OK;
}

/* Adapts the n-th node that can be, or all of them (PO_NONE); *more: there were others behind it.
 */
static po_status correct_windows(po_correcting *c, uint32_t which, bool *more, bool *right) {
    po_graph *g = po_graph_clone(c->ctx, c->mutant->graph);
    uint32_t n, met = 0;
    const po_node_id *order = po_graph_order(g, c->arena, &n);
    bool any_gap = false, any_halo = false;
    *more = *right = false;
    for (uint32_t i = 0; i < n && !*more; i++) {
        bool gap = false, halo = false;
        if (g->nodes[order[i]].removed)
            continue;
        *more = which != PO_NONE && met > which;
        if (*more)
            break;
        PO_TRY(correct_node(c, g, order[i], which == PO_NONE || met == which, &gap, &halo));
        met += gap || halo;
        if (which == PO_NONE || met == which + 1) {
            any_gap |= gap;
            any_halo |= halo;
        }
    }
    if (!any_gap && !any_halo) {
        po_graph_free(g);
        return PO_OK;
    }
    return po_correct_offer(c, g,
                            any_gap && any_halo ? PO_CORRECTION_GAP_AND_HALO
                            : any_gap           ? PO_CORRECTION_GAP
                                                : PO_CORRECTION_HALO,
                            right);
}

po_status po_correct_windows(po_correcting *c) {
    bool more, right;
    PO_TRY(correct_windows(c, PO_NONE, &more, &right));
    more = !right;
    /* What one window needs may be wrong for another that reads what it makes. */
    for (uint32_t i = 0; i < MOST_SINGLE && more; i++)
        PO_TRY(correct_windows(c, i, &more, &right));
    return PO_OK;
}

/* A program computed at regions of its output: from each node's indexed sum follows what it reads
 * there; it is run on slices of that, with the padding of the windows that reach over the border.
 * Works on any program of moves, windows (convolutions, pools) and operators that need no change
 * for smaller inputs (products, sums, element-wise ones). */
#include "base/num.h"
#include "correct/ways.h"
#include "ops/rewrite.h"
#include "ops/sem/sem.h"

struct po_restricted {
    po_value_id value, y;
    uint32_t n;
    const po_stepped *regions;
    struct po_restricted *next;
};

static bool same_region(const po_stepped *a, const po_stepped *b) {
    if (a->rank != b->rank)
        return false;
    for (uint32_t i = 0; i < a->rank; i++)
        if (a->first[i] != b->first[i] || a->step[i] != b->step[i] || a->count[i] != b->count[i])
            return false;
    return true;
}

static bool static_dims(const po_graph *g, po_value_id v, uint32_t *rank, int64_t *dims) {
    const po_dim *d = po_static_dims(g, v, rank);
    if (!d || *rank > PO_RT_MAX_RANK)
        return false;
    for (uint32_t i = 0; i < *rank; i++) {
        dims[i] = d[i].value;
        if (dims[i] < 1)
            return false;
    }
    return true;
}

/* Several pieces behind one another along axis 0. */
static po_value_id join(po_restrictor *r, uint32_t n, const po_value_id *pieces) {
    if (n == 1)
        return pieces[0];
    int64_t dims[PO_RT_MAX_RANK];
    uint32_t rank;
    if (!static_dims(r->to, pieces[0], &rank, dims) || rank == 0)
        return PO_NONE;
    dims[0] *= n;
    po_type type =
        po_type_tensor_i64(r->to->arena, r->to->values[pieces[0]].type.dtype, rank, dims);
    po_value_id y = po_add_op(r->to, PO_NONE, PO_OP_Concat, n, pieces, &type);
    po_node_set_int(r->to, r->to->values[y].producer, "axis", 0);
    return y;
}

static po_value_id emit_pieces(po_restrictor *r, po_value_id x, uint32_t n,
                               const po_rt *const *rt) {
    po_value_id *pieces = PO_NEW_N(r->arena, po_value_id, n);
    for (uint32_t k = 0; k < n; k++) {
        pieces[k] = po_rt_emit(r->to, PO_NONE, x, rt[k]);
        if (pieces[k] == PO_NONE)
            return PO_NONE;
    }
    return join(r, n, pieces);
}

/* A graph input or a constant at the regions. */
static po_value_id slice_source(po_restrictor *r, po_value_id value, uint32_t n,
                                const po_stepped *regions) {
    int64_t dims[PO_RT_MAX_RANK];
    uint32_t rank;
    po_value_id x = PO_NONE;
    if (!static_dims(r->from, value, &rank, dims))
        return PO_NONE;
    for (uint32_t i = 0; i < r->from->n_inputs; i++)
        if (r->from->inputs[i] == value)
            x = r->inputs[i];
    const po_tensor *t = po_graph_constant(r->from, value);
    if (x == PO_NONE && t)
        x = po_graph_add_constant(r->to, NULL, t);
    if (x == PO_NONE)
        return PO_NONE;
    const po_rt **rt = PO_NEW_N(r->arena, const po_rt *, n);
    for (uint32_t k = 0; k < n; k++)
        if (!(rt[k] = po_stepped_rt(r->arena, &regions[k], dims)))
            return PO_NONE;
    return emit_pieces(r, x, n, rt);
}

/* --- moves --- */

/* The part of the input that a move reads, and the move from it alone. */
static const po_rt *rebase(po_arena *arena, const po_rt *rt, po_stepped *hull) {
    po_rt_digit *d = po_arena_memdup(arena, rt->digits, rt->n * sizeof *d);
    int64_t base[PO_RT_MAX_RANK];
    hull->rank = rt->in_rank;
    for (uint32_t x = 0; x < rt->in_rank; x++) {
        int64_t lo = rt->in_base[x], hi = lo, g = 0;
        for (uint32_t i = 0; i < rt->n; i++) {
            if (d[i].in_axis != x)
                continue;
            int64_t c = d[i].in_coef < 0 ? -d[i].in_coef : d[i].in_coef;
            *(d[i].in_coef < 0 ? &lo : &hi) += d[i].in_coef * (d[i].extent - 1);
            for (int64_t y = c; y;) {
                int64_t rest = g % y;
                g = y;
                y = rest;
            }
        }
        g = g ? g : 1;
        if (lo < 0)
            lo += po_ceil_div(-lo, g) * g;
        if (hi > rt->in_dims[x] - 1)
            hi -= po_ceil_div(hi - rt->in_dims[x] + 1, g) * g;
        if (lo > hi)
            return NULL;
        hull->first[x] = lo;
        hull->step[x] = g;
        hull->count[x] = (hi - lo) / g + 1;
        base[x] = (rt->in_base[x] - lo) / g;
        for (uint32_t i = 0; i < rt->n; i++)
            if (d[i].in_axis == x)
                d[i].in_coef /= g;
    }
    return po_rt_create(arena, &(po_rt){rt->in_rank, rt->out_rank, rt->n, hull->count, rt->out_dims,
                                        base, rt->out_base, d});
}

/* The same move of several pieces behind one another, where it leaves axis 0 as it is. */
static const po_rt *join_moves(po_arena *arena, uint32_t n, const po_rt *const *pick,
                               const po_stepped *hull) {
    po_rt rt = *pick[0];
    if (!rt.in_rank || !rt.out_rank || rt.in_dims[0] != rt.out_dims[0] || rt.in_base[0] ||
        rt.out_base[0] || rt.n == PO_RT_MAX_DIGITS)
        return NULL;
    for (uint32_t k = 1; k < n; k++) {
        if (!po_rt_equal(pick[k], pick[0]))
            return NULL;
        for (uint32_t x = 0; x < hull[0].rank; x++)
            if (hull[k].count[x] != hull[0].count[x] || hull[k].step[x] != hull[0].step[x])
                return NULL;
    }
    po_rt_digit *d = PO_NEW_N(arena, po_rt_digit, rt.n + 1);
    int64_t *in = po_arena_memdup(arena, rt.in_dims, rt.in_rank * sizeof *in);
    int64_t *out = po_arena_memdup(arena, rt.out_dims, rt.out_rank * sizeof *out);
    uint32_t found = 0;
    memcpy(d, rt.digits, rt.n * sizeof *d);
    for (uint32_t i = 0; i < rt.n; i++) {
        if (d[i].in_axis && d[i].out_axis)
            continue;
        if (d[i].in_axis || d[i].out_axis || d[i].in_coef != 1 || d[i].out_coef != 1)
            return NULL;
        d[i].extent *= n;
        found++;
    }
    if (!found) /* axis 0 has length 1 */
        d[rt.n++] = (po_rt_digit){n, 0, 0, 1, 1};
    if ((found ? rt.digits[0].extent : 1) != in[0])
        return NULL;
    in[0] *= n;
    out[0] *= n;
    rt.digits = d;
    rt.in_dims = in;
    rt.out_dims = out;
    return po_rt_create(arena, &rt);
}

static po_status restrict_move(po_restrictor *r, const po_node *node, const po_rt *rt, uint32_t n,
                               const po_stepped *regions, po_value_id *y) {
    const po_rt **pick = PO_NEW_N(r->arena, const po_rt *, n);
    po_stepped *hull = PO_NEW_N(r->arena, po_stepped, n);
    for (uint32_t k = 0; k < n; k++) {
        const po_rt *region = po_stepped_rt(r->arena, &regions[k], rt->out_dims);
        pick[k] = region ? po_rt_compose(r->arena, rt, region) : NULL;
        if (pick[k])
            pick[k] = rebase(r->arena, pick[k], &hull[k]);
        if (!pick[k])
            return PO_OK;
    }
    const po_rt *joined =
        n > 1 && !r->weight[node->in[0]] ? join_moves(r->arena, n, pick, hull) : NULL;
    if (joined) {
        po_value_id x;
        PO_TRY(po_restrict(r, node->in[0], n, hull, &x));
        if (x != PO_NONE)
            *y = po_rt_emit(r->to, PO_NONE, x, joined);
        return PO_OK;
    }
    /* Else each is moved on its own. */
    po_value_id *pieces = PO_NEW_N(r->arena, po_value_id, n);
    for (uint32_t k = 0; k < n; k++) {
        PO_TRY(po_restrict(r, node->in[0], 1, &hull[k], &pieces[k]));
        if (pieces[k] == PO_NONE)
            return PO_OK;
        pieces[k] = po_rt_emit(r->to, PO_NONE, pieces[k], pick[k]);
        if (pieces[k] == PO_NONE)
            return PO_OK;
        if (r->weight[node->in[0]]) {
            *y = pieces[k];
            return PO_OK;
        }
    }
    *y = join(r, n, pieces);
    return PO_OK;
}

/* --- nodes --- */

/* The reading as a region of the input, and what of it lies outside. */
static bool clip(const po_operand_reach *in, uint32_t rank, const int64_t *dims, po_stepped *region,
                 int64_t *before, int64_t *after) {
    region->rank = rank;
    for (uint32_t x = 0; x < rank; x++) {
        int64_t lo = in->lo[x], hi = in->hi[x], step = in->step[x];
        before[x] = lo < 0 ? -lo : 0;
        after[x] = hi > dims[x] - 1 ? hi - dims[x] + 1 : 0;
        lo += before[x];
        hi -= after[x];
        if (lo > hi || (step != 1 && (before[x] || after[x])))
            return false;
        region->first[x] = lo;
        region->step[x] = step;
        region->count[x] = (hi - lo) / step + 1;
    }
    return true;
}

/* Reads its map through windows, which take over the stride and the border. */
static bool is_window(const po_node *node) {
    return po_op_sums_windows(node->op);
}

/* Strides and padding of a window operator at the region. */
static void set_window(po_restrictor *r, po_node_id id, const po_stepped *out,
                       const int64_t *before, const int64_t *after, int64_t channels) {
    po_graph *g = r->to;
    uint32_t n, maps = out->rank - 2;
    int64_t strides[PO_RT_MAX_RANK], pads[2 * PO_RT_MAX_RANK];
    const int64_t *old = po_node_ints(&g->nodes[id], "strides", &n);
    for (uint32_t i = 0; i < maps; i++) {
        int64_t s = old && n == maps ? old[i] : 1;
        strides[i] = out->count[i + 2] > 1 ? s * out->step[i + 2] : 1;
        pads[i] = before[i + 2];
        pads[maps + i] = after[i + 2];
    }
    po_node_set_ints(g, id, "strides", maps, strides);
    po_node_set_ints(g, id, "pads", 2 * maps, pads);
    po_node_remove_attr(g, id, "auto_pad");
    po_node_remove_attr(g, id, "ceil_mode");
    if (po_node_int(&g->nodes[id], "group", 1) > 1) {
        int64_t depth = po_dim_of(g, g->nodes[id].in[1], 1);
        po_node_set_int(g, id, "group", depth > 0 ? channels / depth : 1);
    }
}

/* Whether the operator needs no change where its inputs are smaller: every term says the same of
 * each element of the output, and no table says it by the element's place (but the divisors of a
 * pool, which follow its padding). An input that no term reads shapes the operator: a list of axes
 * does that whatever the sizes. What scatters would have to leave out parts of its weights. */
static bool works_on_slices(po_restrictor *r, const po_node *node, const po_sum *sum) {
    if (node->op == PO_OP_Concat) /* its terms are one for each input, which may be left out */
        return true;
    if (po_op_has(node->op, PO_OPF_MOVES_DATA | PO_OPF_SCATTERS))
        return false;
    bool *read = PO_NEW_N(r->arena, bool, node->n_in);
    for (uint32_t o = 0; o < sum->n_operands; o++) {
        if (sum->operands[o].kind != PO_OPERAND_TABLE)
            read[sum->operands[o].input] = true;
        else if (!is_window(node))
            return false;
    }
    for (uint32_t i = 0; i < node->n_in; i++) {
        const po_tensor *t = read[i] ? NULL : po_graph_constant(r->from, node->in[i]);
        if (!read[i] && node->in[i] != PO_NONE && !(t && t->dtype == PO_I64 && t->rank < 2))
            return false;
    }
    for (uint32_t i = 0; i < sum->n_terms; i++)
        if (!po_term_writes_all(sum, &sum->terms[i]))
            return false;
    return true;
}

/* Whether the iterations that write into a region write nothing else, term by term: not where it
 * cuts through a digit (the channels of a group). */
static bool fills(const po_sum *sum, uint32_t n, const po_stepped *regions) {
    for (uint32_t k = 0; k < n; k++)
        for (uint32_t i = 0; i < sum->n_terms; i++) {
            const po_term *t = &sum->terms[i];
            const po_stepped *r = &regions[k];
            int64_t lo[PO_SUM_MAX_VARS], hi[PO_SUM_MAX_VARS];
            if (!po_sum_narrow(sum, t, r, lo, hi))
                return false;
            for (uint32_t x = 0; x < sum->rank; x++) {
                int64_t low = t->out.base[x], high = low;
                for (uint32_t v = 0; v < t->n_vars; v++) {
                    low += po_index_coef(t, &t->out, x, v) * lo[v];
                    high += po_index_coef(t, &t->out, x, v) * hi[v];
                }
                if (low != r->first[x] || high != r->first[x] + r->step[x] * (r->count[x] - 1))
                    return false;
            }
        }
    return true;
}

typedef struct inputs {
    po_stepped *regions; /* [input * n + k] */
    bool *used;
    int64_t before[PO_RT_MAX_RANK], after[PO_RT_MAX_RANK]; /* of input 0 */
} inputs;

/* Whether a weight would have to stand once behind another for each region, as what depends on
 * activations does: it has an element for each of axis 0, or is joined to what has. */
static bool goes_along(const po_node *node, const po_operand_reach *in, const po_stepped *region) {
    return node->op == PO_OP_Concat || (in->batched && region->count[0] > 1);
}

/* What each input must be, the same for every region but for where it begins. */
static bool read_inputs(po_restrictor *r, const po_node *node, const po_sum *sum, uint32_t n,
                        const po_stepped *regions, inputs *in) {
    po_operand_reach *reads = PO_NEW_N(r->arena, po_operand_reach, node->n_in);
    in->regions = PO_NEW_N(r->arena, po_stepped, (size_t)node->n_in * n);
    in->used = PO_NEW_N(r->arena, bool, node->n_in);
    for (uint32_t k = 0; k < n; k++) {
        po_sum_reads(sum, &regions[k], node->n_in, reads);
        for (uint32_t x = 2; is_window(node) && x < regions[k].rank; x++)
            reads[0].step[x] = 1; /* the window's stride takes it over */
        for (uint32_t i = 0; i < node->n_in; i++) {
            int64_t dims[PO_RT_MAX_RANK], before[PO_RT_MAX_RANK], after[PO_RT_MAX_RANK];
            uint32_t rank;
            po_stepped *to = &in->regions[i * n + k];
            if (k && in->used[i] != reads[i].any)
                return false;
            in->used[i] = reads[i].any;
            if (!reads[i].any)
                continue;
            if (!static_dims(r->from, node->in[i], &rank, dims) ||
                !clip(&reads[i], rank, dims, to, before, after))
                return false;
            bool active = !r->weight[node->in[i]];
            if (n > 1 && (active ? !reads[i].batched : goes_along(node, &reads[i], to)))
                return false;
            for (uint32_t x = 0; x < rank; x++) {
                bool window = i == 0 && is_window(node) && x >= 2;
                if ((before[x] || after[x]) && !window)
                    return false;
                if (k && (to->count[x] != in->regions[(size_t)i * n].count[x] ||
                          (!active && to->first[x] != in->regions[(size_t)i * n].first[x]) ||
                          (window && (before[x] != in->before[x] || after[x] != in->after[x]))))
                    return false;
                if (i == 0) {
                    in->before[x] = before[x];
                    in->after[x] = after[x];
                }
            }
        }
    }
    return true;
}

static po_value_id add_copy(po_restrictor *r, const po_node *node, uint32_t n_in,
                            const po_value_id *in, uint32_t n, const po_stepped *region) {
    int64_t dims[PO_RT_MAX_RANK];
    memcpy(dims, region->count, region->rank * sizeof *dims);
    if (n > 1)
        dims[0] *= n;
    po_type type = po_type_tensor_i64(r->to->arena, r->from->values[node->out[0]].type.dtype,
                                      region->rank, dims);
    po_value_id y = po_graph_add_value(r->to, NULL, &type);
    po_ops_add(r->to, PO_NONE,
               &(po_node_spec){.op = node->op,
                               .name = r->to->values[y].name,
                               .n_in = n_in,
                               .in = in,
                               .n_out = 1,
                               .out = &y,
                               .n_attr = node->n_attr,
                               .attr = node->attr});
    return y;
}

/* Everything that the node makes, then the regions of it. */
static po_status restrict_whole(po_restrictor *r, const po_node *node, const po_sum *sum,
                                uint32_t n, const po_stepped *regions, po_value_id *y) {
    po_stepped all = {.rank = sum->rank};
    int64_t dims[PO_RT_MAX_RANK];
    po_value_id *in = PO_NEW_N(r->arena, po_value_id, node->n_in);
    const po_rt **rt = PO_NEW_N(r->arena, const po_rt *, n);
    for (uint32_t i = 0; i < node->n_in; i++) {
        po_stepped part = {0};
        in[i] = PO_NONE;
        if (node->in[i] == PO_NONE)
            continue;
        if (!static_dims(r->from, node->in[i], &part.rank, dims))
            return PO_OK;
        for (uint32_t x = 0; x < part.rank; x++) {
            part.step[x] = 1;
            part.count[x] = dims[x];
        }
        PO_TRY(po_restrict(r, node->in[i], 1, &part, &in[i]));
        if (in[i] == PO_NONE)
            return PO_OK;
    }
    for (uint32_t x = 0; x < sum->rank; x++)
        all.count[x] = sum->dims[x];
    po_value_id whole = add_copy(r, node, node->n_in, in, 1, &all);
    r->flops += r->weight[node->out[0]] ? 0 : po_sum_flops(sum);
    for (uint32_t k = 0; k < n; k++)
        if (!(rt[k] = po_stepped_rt(r->arena, &regions[k], sum->dims)))
            return PO_OK;
    *y = emit_pieces(r, whole, n, rt);
    return PO_OK;
}

static po_status restrict_node(po_restrictor *r, const po_node *node, const po_sum *sum, uint32_t n,
                               const po_stepped *regions, po_value_id *y) {
    inputs in;
    uint32_t n_in = 0;
    if (!read_inputs(r, node, sum, n, regions, &in))
        return PO_OK;
    po_value_id *made = PO_NEW_N(r->arena, po_value_id, node->n_in);
    for (uint32_t i = 0; i < node->n_in; i++) {
        const po_tensor *t = po_graph_constant(r->from, node->in[i]);
        if (in.used[i]) {
            PO_TRY(po_restrict(r, node->in[i], n, &in.regions[(size_t)i * n], &made[n_in]));
            if (made[n_in++] == PO_NONE)
                return PO_OK;
        } else if (node->op == PO_OP_Concat) { /* alone in that its inputs may be fewer */
            continue;
        } else if (node->in[i] == PO_NONE) {
            made[n_in++] = PO_NONE;
        } else if (t) {
            made[n_in++] = po_graph_add_constant(r->to, NULL, t);
        } else {
            return PO_OK;
        }
    }
    *y = add_copy(r, node, n_in, made, n, &regions[0]);
    double all = po_stepped_size(&regions[0]) * n / (double)(sum->count ? sum->count : 1);
    if (!r->weight[node->out[0]])
        r->flops += po_sum_flops(sum) * all;
    if (is_window(node))
        set_window(r, r->to->values[*y].producer, &regions[0], in.before, in.after,
                   in.regions[0].count[1]);
    return PO_OK;
}

static po_value_id look_up(const po_restrictor *r, po_value_id value, uint32_t n,
                           const po_stepped *regions) {
    for (const struct po_restricted *k = r->known; k; k = k->next) {
        bool same = k->value == value && k->n == n;
        for (uint32_t i = 0; same && i < n; i++)
            same = same_region(&k->regions[i], &regions[i]);
        if (same)
            return k->y;
    }
    return PO_NONE;
}

po_status po_restrict(po_restrictor *r, po_value_id value, uint32_t n, const po_stepped *regions,
                      po_value_id *y) {
    n = r->weight[value] ? 1 : n; /* weights are the same for all */
    *y = look_up(r, value, n, regions);
    if (*y != PO_NONE)
        return PO_OK;
    const po_node *node = po_graph_producer(r->from, value);
    if (!node || po_graph_constant(r->from, value)) {
        *y = slice_source(r, value, n, regions);
    } else {
        const po_rt *rt;
        uint32_t output = r->from->values[value].output;
        PO_TRY(po_rt_of_node(r->ctx, r->arena, r->from, node, output, &rt));
        if (rt) {
            PO_TRY(restrict_move(r, node, rt, n, regions, y));
        } else if (node->n_out == 1) {
            po_sum *sum = NULL;
            po_status status = po_sem_of(r->ctx, r->arena, r->from, node, &sum);
            if (status == PO_UNSUPPORTED || !sum)
                return PO_OK;
            PO_TRY(status);
            if (sum->rank > PO_RT_MAX_RANK)
                return PO_OK;
            const bool sliced = works_on_slices(r, node, sum) &&
                                (node->op == PO_OP_Concat || fills(sum, n, regions));
            PO_TRY(sliced ? restrict_node(r, node, sum, n, regions, y)
                          : restrict_whole(r, node, sum, n, regions, y));
        }
    }
    if (*y != PO_NONE) {
        struct po_restricted *k = PO_NEW(r->arena, struct po_restricted);
        *k = (struct po_restricted){
            value, *y, n, po_arena_memdup(r->arena, regions, n * sizeof *regions), r->known};
        r->known = k;
    }
    return PO_OK;
}

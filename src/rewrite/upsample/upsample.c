/* Convolutions over nearest upsampling as convolutions of the small map, one set of outputs for
 * each phase; concatenations split so that this can happen. */
#include "ir/size.h"
#include "rewrite/passes.h"
#include "rewrite/upsample/split.h"

#include "base/num.h"

/* --- nearest upsampling by whole factors --- */

bool po_upsampled(const po_graph *graph, po_value_id y, po_value_id *x, int64_t *factor) {
    const po_node *n = po_graph_producer(graph, y);
    int64_t f[4];
    if (!n || (n->op != PO_OP_Resize && n->op != PO_OP_Upsample) ||
        po_rank_of(graph, n->in[0]) != 4 || !po_repeats(graph, n, 4, f) || f[0] != 1 || f[1] != 1 ||
        f[2] != f[3])
        return false;
    *x = n->in[0];
    *factor = f[2];
    return f[2] >= 2;
}

po_value_id po_add_upsample(po_graph *graph, po_node_id place, po_value_id x, int64_t factor,
                            const po_node *like) {
    po_value_id scales = po_add_floats(graph, NULL, PO_F32, 1, (int64_t[]){4},
                                       (const double[]){1, 1, (double)factor, (double)factor});
    const po_type *t = &graph->values[x].type;
    po_type type = po_type_unranked(t->dtype);
    if (t->has_rank && t->rank == 4)
        type = po_type_tensor(graph->arena, t->dtype, 4,
                              (po_dim[]){t->dims[0], t->dims[1],
                                         po_size_mul(graph->arena, t->dims[2], PO_DIM(factor)),
                                         po_size_mul(graph->arena, t->dims[3], PO_DIM(factor))});
    const bool roi = like->op == PO_OP_Resize && po_op_version(graph, like) >= 11;
    po_value_id in[3] = {x, scales, PO_NONE};
    if (roi) {
        in[1] = like->in[1];
        in[2] = scales;
    }
    return po_add_like(graph, place, like, roi ? 3 : 2, in, &type);
}

/* --- concatenations of upsampled maps --- */

/* Concat(up_8 a, up_4 b, up_2 c, d) = Concat(up_2(Concat(up_4 a, up_2 b, c)), d): the common factor
 * of neighbouring parts is taken out. */
bool po_factor_concat(po_rewriting *r, po_graph *graph, po_node_id id) {
    po_arena *arena = r->scratch;
    const po_node *n = &graph->nodes[id];
    if (n->op != PO_OP_Concat || po_node_int(n, "axis", 1) != 1)
        return false;
    for (uint32_t first = 0; first < n->n_in; first++) {
        po_value_id x;
        int64_t f, common = 0;
        uint32_t last = first;
        for (; last < n->n_in && po_upsampled(graph, n->in[last], &x, &f); last++)
            common = common == 0 || f < common ? f : common;
        if (last - first < 2)
            continue;
        bool divides = true;
        for (uint32_t i = first; i < last; i++)
            divides &= po_upsampled(graph, n->in[i], &x, &f) && f % common == 0;
        if (!divides)
            return false;
        po_value_id *parts = PO_NEW_N(arena, po_value_id, n->n_in);
        uint32_t count = last - first;
        const po_node *like = po_graph_producer(graph, n->in[first]);
        for (uint32_t i = 0; i < count; i++) {
            po_upsampled(graph, n->in[first + i], &x, &f);
            like = po_graph_producer(graph, n->in[first + i]);
            parts[i] = f == common ? x : po_add_upsample(graph, id, x, f / common, like);
        }
        const po_type *t = &graph->values[parts[0]].type;
        po_dim channels = PO_DIM(0);
        for (uint32_t i = 0; i < count; i++) {
            int64_t c = po_dim_of(graph, parts[i], 1);
            channels = c < 0 || channels.value < 0 ? PO_DIM_UNKNOWN : PO_DIM(channels.value + c);
        }
        po_type type = po_type_unranked(t->dtype);
        if (t->has_rank && t->rank == 4)
            type = po_type_tensor(graph->arena, t->dtype, 4,
                                  (po_dim[]){t->dims[0], channels, t->dims[2], t->dims[3]});
        po_value_id inner = po_add_concat(graph, id, count, parts, 1, &type);
        po_value_id up = po_add_upsample(graph, id, inner, common, like);
        po_value_id y = up;
        uint32_t rest = n->n_in - count + 1;
        if (rest > 1) {
            uint32_t at = 0;
            for (uint32_t i = 0; i < n->n_in; i++)
                if (i < first || i >= last)
                    parts[at++] = n->in[i];
                else if (i == first)
                    parts[at++] = up;
            po_type whole = graph->values[n->out[0]].type;
            y = po_add_concat(graph, id, rest, parts, 1, &whole);
        }
        po_substitute(graph, graph->nodes[id].out[0], y);
        return true;
    }
    return false;
}

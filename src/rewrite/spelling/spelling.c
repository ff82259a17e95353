/* The last pass: operators spelled the way that the runtime runs them fastest. It runs once,
 * after the algebra, which looks for the operators as they are. */
#include "rewrite/passes.h"
#include "rewrite/spelling/match.h"

/* Below this many elements the maps stay in the cache and the spelling does not matter. */
enum { LARGE_MAP = 1 << 17 };
/* Sum broadcasts since then. */
enum { SPELLED_SINCE = 8 };

/* DepthToSpace in two steps that each move a single axis, first the column phases, then the row
 * phases: runtimes have a fast path for that and none for the whole permutation. */
bool po_split_move(po_rewriting *r, po_graph *graph, po_node_id id) {
    const po_node *n = &graph->nodes[id];
    if (!r->options->split_moves || n->op != PO_OP_DepthToSpace ||
        po_opset_of(graph) < SPELLED_SINCE)
        return false;
    uint32_t rank;
    const po_dim *d = po_static_dims(graph, n->in[0], &rank);
    int64_t b = po_node_int(n, "blocksize", 0);
    if (!d || rank != 4 || b < 2 || !po_node_string_is(n, "mode", "DCR", "DCR") ||
        po_type_count(&graph->values[n->in[0]].type) < LARGE_MAP || d[1].value % (b * b))
        return false;
    int64_t batch = d[0].value, c = d[1].value / (b * b), h = d[2].value, w = d[3].value;
    po_value_id y = n->out[0], x = n->in[0];
    x = po_add_reshape(graph, id, x, 6, (int64_t[]){batch, b, b, c, h, w});
    x = po_add_transpose(graph, id, x, 6, (int64_t[]){0, 1, 3, 4, 5, 2}, NULL);
    x = po_add_reshape(graph, id, x, 4, (int64_t[]){batch, b, c * h, w * b});
    x = po_add_transpose(graph, id, x, 4, (int64_t[]){0, 2, 1, 3}, NULL);
    x = po_add_reshape(graph, id, x, 4, (int64_t[]){batch, c, h * b, w * b});
    po_substitute(graph, y, x);
    r->counts->used |= PO_USED_MOVES;
    return true;
}

/* Read by the parts of one norm over the last axis and by nothing else. */
static bool only_for_norm(const po_graph *graph, po_value_id v) {
    const po_value *value = &graph->values[v];
    bool norm = false;
    if (value->n_outputs)
        return false;
    for (uint32_t i = 0; i < value->n_uses; i++) {
        if (value->uses[i].input != 0)
            return false;
        switch ((po_op)graph->nodes[value->uses[i].node].op) {
        case PO_OP_ReduceMean:
        case PO_OP_LayerNormalization:
            norm = true;
            break;
        case PO_OP_Sub:
            break;
        default:
            return false;
        }
    }
    return norm;
}

/* a + b before a norm as Sum(a, b): of maps of one shape, in f32. */
bool po_spell_sum(po_rewriting *r, po_graph *graph, po_node_id id) {
    const po_node *n = &graph->nodes[id];
    if (!r->options->sums || n->op != PO_OP_Add || po_opset_of(graph) < SPELLED_SINCE)
        return false;
    po_value_id a = n->in[0], b = n->in[1], y = n->out[0];
    if (graph->values[a].type.dtype != PO_F32 || po_rank_of(graph, a) < 2 ||
        !po_same_dims(graph, a, b) || po_graph_constant(graph, a) || po_graph_constant(graph, b) ||
        !only_for_norm(graph, y))
        return false;
    po_type type = graph->values[y].type;
    po_substitute(graph, y, po_add_op(graph, id, PO_OP_Sum, 2, (po_value_id[]){a, b}, &type));
    return true;
}

/* Where the output is longer than one, or as long as the input, PyTorch's half_pixel is the other.
 */
static bool longer_than_one(const po_graph *graph, const po_node *n) {
    const int rank = po_rank_of(graph, n->out[0]);
    const po_tensor *scales =
        n->n_in > 2 && n->in[2] != PO_NONE ? po_graph_constant(graph, n->in[2]) : NULL;
    if (rank < 1 || po_rank_of(graph, n->in[0]) != rank || po_node_attr(n, "axes"))
        return false;
    const po_dim *from = graph->values[n->in[0]].type.dims,
                 *to = graph->values[n->out[0]].type.dims;
    for (int i = 0; i < rank; i++) {
        const double scale = scales && scales->count == rank ? po_tensor_f64(scales, i) : 0;
        const bool stays = scales ? scale >= 1 && scale <= 1 : po_dim_same(from[i], to[i]);
        if (!stays && to[i].value < 2 && scale < 2)
            return false;
    }
    return true;
}

/* The modes that the runtime has kernels for in its layout of blocks: there an element costs a
 * quarter of what it costs elsewhere, and the layout stays. */
bool po_spell_resize(po_rewriting *r, po_graph *graph, po_node_id id) {
    (void)r;
    const po_node *n = &graph->nodes[id];
    int64_t factor[4];
    if (n->op != PO_OP_Resize || po_op_version(graph, n) < 11)
        return false;
    if (po_node_string_is(n, "mode", "linear", "nearest") &&
        po_node_string_is(n, "coordinate_transformation_mode", "pytorch_half_pixel",
                          "half_pixel") &&
        longer_than_one(graph, n)) {
        po_node_set_string(graph, id, "coordinate_transformation_mode", "half_pixel");
        return true;
    }
    if (!po_repeats(graph, n, 4, factor) ||
        po_node_string_is(n, "coordinate_transformation_mode", "asymmetric", "half_pixel"))
        return false;
    po_node_set_string(graph, id, "coordinate_transformation_mode", "asymmetric");
    po_node_set_string(graph, id, "nearest_mode", "floor");
    return true;
}

/* The nodes that R/T becomes, one by one. */
#include "ops/move/rt_emit.h"

double po_emit_count(const po_emitter *e) {
    double n = 1;
    for (uint32_t i = 0; i < e->rank; i++)
        n *= (double)e->dims[i];
    return n;
}

po_value_id po_emit_node(po_emitter *e, po_op_id op, uint32_t n_in, const po_value_id *in) {
    po_type type =
        po_type_tensor_i64(e->graph->arena, e->graph->values[e->x].type.dtype, e->rank, e->dims);
    e->x = po_add_op(e->graph, e->place, op, n_in, in, &type);
    return e->x;
}

static bool same(uint32_t n, const int64_t *a, const int64_t *b) {
    return n == 0 || memcmp(a, b, n * sizeof *a) == 0;
}

void po_emit_reshape(po_emitter *e, uint32_t rank, const int64_t *dims) {
    if (rank == e->rank && same(rank, dims, e->dims))
        return;
    e->nodes++;
    if (e->graph)
        e->x = po_add_reshape(e->graph, e->place, e->x, rank, dims);
    e->rank = rank;
    memmove(e->dims, dims, rank * sizeof *dims);
}

void po_emit_transpose(po_emitter *e, const uint32_t *perm) {
    int64_t dims[PO_EMIT_MOST_DIMS], wide[PO_EMIT_MOST_DIMS];
    uint32_t digit[PO_EMIT_MOST_DIMS], last = 0;
    bool moves = false;
    for (uint32_t i = 0; i < e->rank; i++) {
        dims[i] = e->dims[perm[i]];
        digit[i] = e->digit[perm[i]];
        wide[i] = perm[i];
        if (dims[i] == 1)
            continue;
        moves |= perm[i] < last;
        last = perm[i];
    }
    memcpy(e->digit, digit, e->rank * sizeof *digit);
    if (!moves) {
        po_emit_reshape(e, e->rank, dims);
        return;
    }
    memcpy(e->dims, dims, e->rank * sizeof *dims);
    e->nodes++;
    e->traffic += 2 * po_emit_count(e);
    if (e->graph) {
        po_value_id x = po_emit_node(e, PO_OP_Transpose, 1, &e->x);
        po_node_set_ints(e->graph, e->graph->values[x].producer, "perm", e->rank, wide);
    }
}

void po_emit_pad(po_emitter *e, const int64_t *before, const int64_t *after) {
    int64_t pads[2 * PO_EMIT_MOST_DIMS];
    bool needed = false;
    double from = po_emit_count(e);
    for (uint32_t i = 0; i < e->rank; i++) {
        pads[i] = before[i];
        pads[e->rank + i] = after[i];
        needed |= before[i] || after[i];
        e->dims[i] += before[i] + after[i];
    }
    if (!needed)
        return;
    e->nodes++;
    e->traffic += from + po_emit_count(e);
    if (!e->graph)
        return;
    if (e->opset >= 11) {
        po_value_id in[2] = {e->x, po_add_i64s(e->graph, NULL, 2 * e->rank, pads)};
        po_emit_node(e, PO_OP_Pad, 2, in);
    } else {
        po_value_id x = po_emit_node(e, PO_OP_Pad, 1, &e->x);
        po_node_set_ints(e->graph, e->graph->values[x].producer, "pads", 2 * e->rank, pads);
    }
}

void po_emit_slice(po_emitter *e, const int64_t *start, const int64_t *length,
                   const int64_t *step) {
    int64_t starts[PO_EMIT_MOST_DIMS], ends[PO_EMIT_MOST_DIMS], axes[PO_EMIT_MOST_DIMS],
        steps[PO_EMIT_MOST_DIMS];
    uint32_t n = 0;
    bool stepped = false;
    for (uint32_t i = 0; i < e->rank; i++) {
        if (start[i] == 0 && length[i] == e->dims[i] && step[i] == 1)
            continue;
        starts[n] = start[i];
        ends[n] = start[i] + (length[i] - 1) * step[i] + (step[i] > 0 ? 1 : -1);
        if (ends[n] < 0)
            ends[n] = INT64_MIN + 1; /* up to the first element, backwards */
        steps[n] = step[i];
        stepped |= step[i] != 1;
        axes[n++] = i;
        e->dims[i] = length[i];
    }
    if (!n)
        return;
    e->nodes++;
    e->traffic += 2 * po_emit_count(e);
    if (e->opset < 10 && stepped)
        e->failed = true;
    if (!e->graph || e->failed)
        return;
    po_graph *g = e->graph;
    if (e->opset >= 10) {
        po_value_id in[5] = {e->x, po_add_i64s(g, NULL, n, starts), po_add_i64s(g, NULL, n, ends),
                             po_add_i64s(g, NULL, n, axes), PO_NONE};
        if (stepped)
            in[4] = po_add_i64s(g, NULL, n, steps);
        po_emit_node(e, PO_OP_Slice, stepped ? 5 : 4, in);
        return;
    }
    po_value_id x = po_emit_node(e, PO_OP_Slice, 1, &e->x);
    po_node_id node = g->values[x].producer;
    po_node_set_ints(g, node, "starts", n, starts);
    po_node_set_ints(g, node, "ends", n, ends);
    po_node_set_ints(g, node, "axes", n, axes);
}

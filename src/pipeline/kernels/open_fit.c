/* Regions that can be opened: one tensor that has no form for all sizes costs its own node, and not
 * the whole region around it. */
#include "ops/window.h"
#include "pipeline/kernels/open_regions.h"
#include "pipeline/kernels/open_sizes.h"

#include <stdio.h>

enum { MOST_ROUNDS = 8 };

static bool names(const char *message, const char *name) {
    char quoted[120];
    int n = snprintf(quoted, sizeof quoted, "'%s'", name);
    return n > 0 && (size_t)n < sizeof quoted && strstr(message, quoted);
}

/* The value that a message names: as a tensor of the muGraph, or at the region's border. */
static po_value_id named_in(const po_graph *graph, const po_region *r, const po_lowered *lowered,
                            const char *message) {
    for (uint32_t i = 0; i < lowered->mu->n_tensors; i++)
        if (lowered->value[i] != PO_NONE && names(message, lowered->mu->tensors[i].name))
            return lowered->value[i];
    for (uint32_t i = 0; i < r->n_in + r->n_out; i++) {
        po_value_id v = i < r->n_out ? r->out[i] : r->in[i - r->n_out];
        if (names(message, graph->values[v].name))
            return v;
    }
    return PO_NONE;
}

/* The value that stands in the way of opening the region; PO_NONE: none does, or it is not known.
 */
static po_status in_the_way(const po_run *run, po_arena *arena, const po_graph *graph,
                            const po_open_sizes *sizes, const po_region *region,
                            po_value_id *value) {
    po_lowered lowered;
    po_kernel_ports ports;
    const po_mu_open *open;
    /* One other size tells nearly all; the program that is planned is looked at at each. */
    po_open_sizes few = *sizes;
    few.plan.n_others = few.plan.n_others > 0;
    *value = PO_NONE;
    po_status status = po_lower_region(run->ctx, arena, graph, region, "region", &lowered);
    if (status == PO_OK) {
        PO_TRY(po_open_ports(run->ctx, arena, graph, sizes->axis, region, &ports));
        status = po_open_sizes_region(run, arena, &few, region, po_mu_copy(arena, lowered.mu), NULL,
                                      &open, &ports);
        if (status == PO_UNSUPPORTED || status == PO_BAD_INPUT)
            *value = named_in(graph, region, &lowered, run->ctx->error.message);
    }
    if (status != PO_UNSUPPORTED && status != PO_BAD_INPUT)
        return status;
    po_ctx_clear(run->ctx);
    return PO_OK;
}

/* The node of the region that makes the value; those that read it where none does. */
static bool leave_out(const po_graph *graph, const po_region *r, po_value_id v, bool *outside) {
    bool made = false, any = false;
    for (uint32_t i = 0; i < r->n_nodes; i++)
        made |= r->nodes[i] == graph->values[v].producer;
    for (uint32_t i = 0; i < r->n_nodes; i++)
        if (made ? r->nodes[i] == graph->values[v].producer
                 : po_node_touches(&graph->nodes[r->nodes[i]], v))
            any = outside[r->nodes[i]] = true;
    return any;
}

/* Whether the pool's window is longer than some maps: the mean is then over what there is, which is
 * no sum of a window. */
static bool means_over_less(const po_graph *named, const po_node *node) {
    const po_type *in = &named->values[node->in[0]].type;
    po_window w;
    if (node->op != PO_OP_AveragePool || !in->has_rank || in->rank < 3 ||
        !po_window_of(named, node, in->rank - 2, &w) || !w.clips)
        return false;
    bool any = false;
    po_arena *scratch = po_arena_child(named->arena);
    w.arena = scratch;
    po_window whole = w;
    whole.clips = false;
    for (uint32_t a = 0; a < w.n; a++) {
        const po_dim size = in->dims[a + 2];
        any |= !po_dim_same(po_window_out(&w, a, size), po_window_out(&whole, a, size));
    }
    po_arena_free(scratch);
    return any;
}

po_status po_open_regions_that_fit(const po_run *run, po_arena *arena, const po_graph *graph,
                                   const int8_t *axis, const po_open_sizes *sizes,
                                   po_regions *regions) {
    bool *outside = PO_NEW_N(arena, bool, graph->n_nodes + 1);
    for (po_node_id n = 0; sizes && n < graph->n_nodes; n++)
        outside[n] = !graph->nodes[n].removed && means_over_less(sizes->named, &graph->nodes[n]);
    for (uint32_t round = 0; round < MOST_ROUNDS; round++) {
        bool again = false;
        PO_TRY(po_open_regions(run->ctx, arena, graph, axis, outside, regions));
        for (uint32_t i = 0; i < regions->n && sizes; i++) {
            po_arena *scratch = po_arena_child(arena);
            const po_region *r = &regions->regions[i];
            po_value_id value;
            PO_TRY(in_the_way(run, scratch, graph, sizes, r, &value));
            po_arena_free(scratch);
            /* Of one node the plan says itself why there is none. */
            if (value == PO_NONE || r->n_nodes == 1 || !leave_out(graph, r, value, outside))
                continue;
            po_log(run->ctx, "'%s' has no form for all sizes: its node stays outside",
                   graph->values[value].name);
            again = true;
        }
        if (!again)
            break;
    }
    return PO_OK;
}

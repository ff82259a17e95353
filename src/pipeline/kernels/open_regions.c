/* Regions are found; nodes at borders that a call for each sample cannot have are left out; and
 * again, until all borders are such. Each time at least one node fewer takes part. */
#include "pipeline/kernels/open_regions.h"

#include "cost/roofline.h"
#include "ops/samples.h"
#include "pipeline/kernels/stage.h"
#include "superopt/lower/lower.h"

#include <math.h>

/* The part of a graph's work, by estimate, that is done on what is mixed of several samples. */
static double mixed_part(const po_graph *here, const int8_t *axis) {
    const po_rates rates = {1, INFINITY, NULL, false};
    double all = 0, mixed = 0;
    for (uint32_t i = 0; i < here->n_nodes; i++) {
        const po_node *node = &here->nodes[i];
        po_estimate e = {0};
        bool of = false;
        if (node->removed)
            continue;
        po_roofline_add(here, node, &rates, 1, &e);
        for (uint32_t k = 0; k < node->n_out; k++)
            of |= node->out[k] != PO_NONE && axis[node->out[k]] == PO_MIXED_SAMPLES;
        all += e.flops;
        mixed += of ? e.flops : 0;
    }
    return all > 0 ? mixed / all : 0;
}

po_status po_open_axes(po_ctx *ctx, po_arena *arena, const po_graph *batch, const po_graph *here,
                       const int8_t **axis) {
    static const double most_mixed = 0.1;
    int8_t *own = NULL;
    const char *why;
    po_status status = po_samples_apart_parts(ctx, arena, batch, &own, &why);
    *axis = own;
    if (status != PO_OK || !why)
        return status;
    const double part = mixed_part(here, own);
    if (part > most_mixed)
        return po_fail(ctx, PO_UNSUPPORTED, "%s", why);
    po_log(ctx, "kernels of one sample, but for %.1f %% of the work: %s", 100 * part, why);
    return PO_OK;
}

typedef struct finding {
    po_ctx *ctx;
    const int8_t *axis;
    bool *out; /* by node: it stays outside */
} finding;

static po_region_part part_of(void *user, const po_graph *graph, const po_node *node) {
    const finding *f = user;
    return f->out[node - graph->nodes] ? PO_REGION_NOT : po_lower_part(f->ctx, graph, node);
}

/* Whether a border may be there: samples lie one behind the other; or, of what is read, it is the
 * same for all. Tests are inside, with what reads them (superopt/lower). */
static bool may_cross(const po_graph *graph, const int8_t *axis, po_value_id v, bool read) {
    const po_type *type = &graph->values[v].type;
    if (po_dtype_class_of(type->dtype) != PO_CLASS_FLOAT)
        return false;
    if (!axis)
        return true;
    if (axis[v] == PO_NOT_DELIVERED || axis[v] == PO_MIXED_SAMPLES)
        return false;
    if (axis[v] < 0)
        return read;
    for (int d = 0; d < axis[v]; d++)
        if (type->dims[d].value != 1)
            return false;
    return true;
}

bool po_node_touches(const po_node *node, po_value_id v) {
    bool found = false;
    for (uint32_t i = 0; i < node->n_in; i++)
        found |= node->in[i] == v;
    for (uint32_t i = 0; i < node->n_out; i++)
        found |= node->out[i] == v;
    return found;
}

static bool leave_out(const finding *f, const po_graph *graph, const po_region *r, po_value_id v) {
    bool any = false;
    for (uint32_t i = 0; i < r->n_nodes; i++)
        if (po_node_touches(&graph->nodes[r->nodes[i]], v))
            any = f->out[r->nodes[i]] = true;
    return any;
}

static bool leave_borders_out(const finding *f, const po_graph *graph, const po_region *r) {
    bool any = false;
    for (uint32_t i = 0; i < r->n_in; i++)
        if (!may_cross(graph, f->axis, r->in[i], true))
            any |= leave_out(f, graph, r, r->in[i]);
    for (uint32_t i = 0; i < r->n_out; i++)
        if (!may_cross(graph, f->axis, r->out[i], false))
            any |= leave_out(f, graph, r, r->out[i]);
    return any;
}

/* What is made of several samples is made by no call for one. */
static bool mixes(const po_node *node, const int8_t *axis) {
    bool any = false;
    for (uint32_t i = 0; i < node->n_in; i++)
        any |= node->in[i] != PO_NONE && axis[node->in[i]] == PO_MIXED_SAMPLES;
    for (uint32_t i = 0; i < node->n_out; i++)
        any |= node->out[i] != PO_NONE && axis[node->out[i]] == PO_MIXED_SAMPLES;
    return any;
}

po_status po_open_regions(po_ctx *ctx, po_arena *arena, const po_graph *graph, const int8_t *axis,
                          const bool *outside, po_regions *regions) {
    finding f = {ctx, axis, PO_NEW_N(arena, bool, graph->n_nodes + 1)};
    for (uint32_t i = 0; i < graph->n_nodes; i++)
        f.out[i] = (outside && outside[i]) || (axis && mixes(&graph->nodes[i], axis));
    for (bool again = true; again;) {
        PO_TRY(po_ctx_poll(ctx));
        PO_TRY(po_regions_find(ctx, arena, graph, part_of, &f, regions));
        again = false;
        for (uint32_t i = 0; i < regions->n; i++)
            again |= leave_borders_out(&f, graph, &regions->regions[i]);
    }
    return PO_OK;
}

static const po_kernel_port *open_ports(po_arena *arena, const int8_t *axis,
                                        const po_value_id *values, uint32_t n,
                                        const po_kernel_port *of_one) {
    po_kernel_port *ports = PO_NEW_N(arena, po_kernel_port, n + 1);
    for (uint32_t i = 0; i < n; i++) {
        ports[i] = of_one[i];
        if (axis[values[i]] >= 0)
            ports[i].dims[axis[values[i]]] *= -1;
    }
    return ports;
}

po_status po_open_ports(po_ctx *ctx, po_arena *arena, const po_graph *graph, const int8_t *axis,
                        const po_region *r, po_kernel_ports *ports) {
    po_kernel kernel;
    po_kernel_stage_ports(arena, graph, r, &kernel);
    *ports =
        (po_kernel_ports){.in = kernel.in, .out = kernel.out, .n_in = r->n_in, .n_out = r->n_out};
    if (!axis)
        return PO_OK;
    for (uint32_t i = 0; i < r->n_in + r->n_out; i++) {
        po_value_id v = i < r->n_in ? r->in[i] : r->out[i - r->n_in];
        if (!may_cross(graph, axis, v, i < r->n_in))
            return po_fail(ctx, PO_INTERNAL, "the samples of '%s' do not lie apart",
                           graph->values[v].name);
    }
    ports->in = open_ports(arena, axis, r->in, r->n_in, kernel.in);
    ports->out = open_ports(arena, axis, r->out, r->n_out, kernel.out);
    return PO_OK;
}

/* How mutants begin and end: cloned, swept, their types inferred, dropped where the outputs' types
 * differ. */
#include "rewrite/deriving.h"
#include "rewrite/pattern.h"

void po_derive_begin(po_deriving *d, po_node_id place) {
    d->g = d->in_place ? d->in_place : po_graph_clone(d->ctx, d->from);
    d->place = place;
    d->n_replaced = 0;
    d->dropped = d->done;
}

static bool same_dims(const po_type *a, const po_type *b) {
    if (a->dtype != b->dtype || !po_type_static(a) || !po_type_static(b) || a->rank != b->rank)
        return false;
    for (uint32_t i = 0; i < a->rank; i++)
        if (a->dims[i].value != b->dims[i].value)
            return false;
    return true;
}

void po_derive_replace(po_deriving *d, po_value_id old, po_value_id y) {
    const bool open = d->in_place && !po_type_static(&d->g->values[y].type);
    if (open)
        d->g->values[y].type = d->from->values[old].type;
    if (y == old || d->n_replaced == PO_MOST_REPLACED ||
        (!open && !same_dims(&d->from->values[old].type, &d->g->values[y].type))) {
        d->dropped = true;
        return;
    }
    d->replaced[d->n_replaced].old = old;
    d->replaced[d->n_replaced++].made = y;
}

static void substitute(po_deriving *d) {
    for (uint32_t i = 0; i < d->n_replaced && !d->dropped; i++)
        po_substitute(d->g, d->replaced[i].old, d->replaced[i].made);
    d->n_replaced = 0;
}

/* Outputs of the types that the subprogram's have, after inference of the clone alone. */
static bool fits(po_deriving *d) {
    po_graph *g = d->g;
    if (g->n_outputs != d->from->n_outputs || g->n_inputs != d->from->n_inputs)
        return false;
    if (po_infer_graph(d->ctx, g, false) != PO_OK) {
        po_ctx_clear(d->ctx);
        return false;
    }
    for (uint32_t i = 0; i < g->n_outputs; i++)
        if (!same_dims(&g->values[g->outputs[i]].type, &d->from->values[d->from->outputs[i]].type))
            return false;
    return true;
}

/* Nodes of one that was dropped are read by nothing, and swept. */
static po_status end_in_place(po_deriving *d) {
    substitute(d);
    d->done = d->done || !d->dropped;
    d->g = NULL;
    return po_ctx_poll(d->ctx);
}

po_status po_derive_end(po_deriving *d, const char *detail) {
    po_graph *g = d->g;
    if (d->in_place)
        return end_in_place(d);
    substitute(d);
    if (!d->dropped) {
        po_graph_sweep(g);
        d->dropped = !fits(d);
    }
    d->g = NULL;
    if (d->dropped) {
        po_graph_free(g);
        return po_ctx_poll(d->ctx);
    }
    const char *name = detail ? po_arena_printf(d->arena, "%s: %s", d->name, detail) : d->name;
    if (po_mutants_add(d->mutants, name, g))
        (*d->derived)++;
    return po_ctx_poll(d->ctx);
}

po_status po_derive_done(po_deriving *d, po_value_id y, const char *detail) {
    po_derive_replace(d, d->from->nodes[d->place].out[0], y);
    return po_derive_end(d, detail);
}

po_status po_derive_text(po_deriving *d, po_node_id place, const po_match *match,
                         const char *text) {
    po_derive_begin(d, place);
    return po_derive_done(d, po_write(d->g, place, match, text), NULL);
}

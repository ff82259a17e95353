/* What the open lengths of a model are at the sizes that it is meant for: laws tell by these what
 * pays, whatever the model was read at, since forms are made again where a run is recalled. */
#include "pipeline/meant.h"
#include "verify/inputs/inputs.h"

#include <string.h>

typedef struct meant_length {
    const char *symbol;
    int64_t length;
} meant_length;

typedef struct meant_lengths {
    uint32_t n;
    meant_length *of;
} meant_lengths;

static bool length_of(void *user, const char *name, int64_t *length) {
    const meant_lengths *m = user;
    for (uint32_t i = 0; i < m->n; i++)
        if (strcmp(m->of[i].symbol, name) == 0) {
            *length = m->of[i].length;
            return true;
        }
    return false;
}

static void *lengths_at(const po_run *run, const po_graph *graph, const po_inputs *plan,
                        uint32_t size) {
    meant_lengths *m = PO_NEW(run->arena, meant_lengths);
    m->of = PO_NEW_N(run->arena, meant_length, (size_t)graph->n_inputs * PO_MAX_RANK + 1);
    for (uint32_t i = 0; i < graph->n_inputs; i++) {
        const po_value *v = &graph->values[graph->inputs[i]];
        for (uint32_t a = 0; v->type.kind == PO_TYPE_TENSOR && a < v->type.rank; a++)
            if (v->type.dims[a].value < 0 && v->type.dims[a].symbol)
                m->of[m->n++] = (meant_length){v->type.dims[a].symbol,
                                               po_inputs_length(plan, v->name, a, size)};
    }
    return m;
}

po_status po_meant_lengths(const po_run *run, const po_graph *graph, po_meant *meant) {
    po_inputs *plan;
    PO_TRY(po_run_inputs(run, run->arena, graph, NULL, &plan));
    *meant = (po_meant){.n = po_inputs_meant(plan), .length = length_of};
    void **user = PO_NEW_N(run->arena, void *, meant->n + 1);
    for (uint32_t k = 0; k < meant->n; k++)
        user[k] = lengths_at(run, graph, plan, po_inputs_meant_size(k));
    meant->user = user;
    return PO_OK;
}

#include "codegen/printer.h"

po_status cg_lanes(cg *g, uint32_t node) {
    return po_fail(g->ctx, PO_UNSUPPORTED, "step '%s': lanes %s", g->step,
                   g->mu->labels[g->mu->nodes[node].label].name);
}

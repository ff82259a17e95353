/* Pinned dims bind the symbols that stood there: a symbol bound to one length is replaced
 * throughout the model, one bound to two lengths nowhere. Types are inferred anew. */
#include "pipeline/pin.h"

#include "import/import.h"
#include "ir/function.h"
#include "ops/op.h"

/* Lengths that symbols were found to have. */
typedef struct symbols {
    po_arena *arena;
    po_map *index;
    int64_t *lengths;
    uint32_t n, cap;
} symbols;

/* A name that stands for several lengths ("?", say) names none: it is replaced nowhere. */
static void bind_symbol(symbols *s, const char *symbol, int64_t length) {
    uint32_t i = po_map_get(s->index, symbol);
    if (i == PO_NONE) {
        po_map_put(s->index, symbol, s->n);
        PO_PUSH(s->arena, s->lengths, s->n, s->cap, length);
    } else if (s->lengths[i] != length) {
        s->lengths[i] = -1;
    }
}

static po_status pin_input(po_ctx *ctx, po_graph *graph, symbols *s, const po_pin *pin) {
    const po_value_id input = po_graph_input(graph, pin->name);
    if (input == PO_NONE)
        return po_fail(ctx, PO_BAD_USE, "--input-shape: the model has no input '%s'", pin->name);
    po_value *value = &graph->values[input];
    const po_type *had = &value->type;
    PO_TRY(po_pin_check(ctx, "input-shape", had, pin));
    po_dim *dims = PO_NEW_N(graph->arena, po_dim, pin->rank + 1);
    for (uint32_t d = 0; d < pin->rank; d++) {
        po_dim dim = had->has_rank ? had->dims[d] : (po_dim){.value = -1};
        const bool named = !po_dim_known(dim) && dim.symbol && *dim.symbol;
        dims[d] = pin->dims[d] >= 0 ? PO_DIM(pin->dims[d]) : dim;
        if (pin->dims[d] < 0 && !named)
            dims[d].symbol = po_arena_strdup(graph->arena, pin->open[d]);
        if (pin->dims[d] >= 0 && named)
            bind_symbol(s, dim.symbol, pin->dims[d]);
    }
    value->type = po_type_tensor(graph->arena, had->dtype, pin->rank, dims);
    return PO_OK;
}

/* Replaces bound symbols in a type, in what it is made of too. Returns whether any was there. */
static bool replace_in_type(po_arena *arena, po_type *type, const symbols *s) {
    bool changed = false;
    if (type->element) {
        po_type inner = *type->element;
        if (replace_in_type(arena, &inner, s)) {
            type->element = po_arena_memdup(arena, &inner, sizeof inner);
            changed = true;
        }
    }
    po_dim *dims = NULL;
    for (uint32_t d = 0; d < type->rank && type->has_rank; d++) {
        if (po_dim_known(type->dims[d]) || !type->dims[d].symbol)
            continue;
        uint32_t i = po_map_get(s->index, type->dims[d].symbol);
        if (i == PO_NONE || s->lengths[i] < 0)
            continue;
        if (!dims) {
            dims = po_arena_memdup(arena, type->dims, type->rank * sizeof *dims);
            type->dims = dims;
        }
        dims[d] = PO_DIM(s->lengths[i]);
        changed = true;
    }
    return changed;
}

static po_status replace_symbols(po_ctx *ctx, po_graph *graph, void *user) {
    (void)ctx;
    for (po_value_id i = 0; i < graph->n_values; i++)
        replace_in_type(graph->arena, &graph->values[i].type, user);
    return PO_OK;
}

po_status po_pin_inputs(po_ctx *ctx, const po_graph *graph, const po_pin *pins, uint32_t n_pins,
                        po_graph **pinned) {
    po_graph *copy = po_graph_clone(ctx, graph);
    PO_TRY(po_graph_inline(ctx, copy, NULL));
    PO_TRY(po_inline_functions(ctx, copy, PO_KERNEL_DOMAIN, NULL));
    po_arena *scratch = po_arena_create(ctx);
    symbols s = {.arena = scratch, .index = po_map_create(scratch)};
    for (uint32_t i = 0; i < n_pins; i++)
        PO_TRY(pin_input(ctx, copy, &s, &pins[i]));
    PO_TRY(po_graph_walk(ctx, copy, replace_symbols, &s));
    po_arena_free(scratch);
    po_ops_resolve(copy);
    PO_TRY(po_infer_graph(ctx, copy, true));
    *pinned = copy;
    return PO_OK;
}

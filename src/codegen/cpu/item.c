/* Scalar expressions in C, over floats and vectors of them: pk_NAME and pk_NAME1 of the prelude. */
#include "codegen/cpu/printer.h"

static const char *as_vector(cg *g, const char *text, bool vector) {
    return vector ? text : po_arena_printf(g->arena, "pk_set(%s)", text);
}

const char *cg_item(cg *g, const po_mu_item *item, const char *const argument[3],
                    const bool vector[3]) {
    uint32_t n = po_mu_arity(item->function);
    const char *a = argument[0], *b = argument[1];
    switch (item->function) {
    case PO_MU_PLUS:
    case PO_MU_MINUS:
    case PO_MU_TIMES:
        return po_arena_printf(g->arena, "%s %s %s", a, po_mu_function_name(item->function), b);
    case PO_MU_OVER:
        if (vector[0] && !vector[1])
            return po_arena_printf(g->arena, "pk_over(%s, %s)", a, b);
        return po_arena_printf(g->arena, "%s / %s", a, b);
    case PO_MU_NEGATE:
        return po_arena_printf(g->arena, "-%s", a);
    default:
        break;
    }
    bool any = vector[0] || (n > 1 && vector[1]) || (n > 2 && vector[2]);
    po_text text;
    po_text_init(&text, g->arena);
    po_text_printf(&text, "pk_%s%s(", po_mu_function_name(item->function), any ? "" : "1");
    for (uint32_t i = 0; i < n; i++)
        po_text_printf(&text, "%s%s", i ? ", " : "",
                       any ? as_vector(g, argument[i], vector[i]) : argument[i]);
    po_text_puts(&text, ")");
    return text.data;
}

/* Scalar expressions in C, over floats and vectors of them: pk_NAME and pk_NAME1 of the prelude. */
#include "codegen/cpu/printer.h"

static const char *as_vector(cg *g, const char *text, bool vector) {
    return vector ? text : po_arena_printf(g->arena, "pk_set(%s)", text);
}

/* Of a * sigmoid(a), either way round, which argument a is; PO_NONE: it is something else. */
static uint32_t gated(const po_mu_item *items, const po_mu_item *item) {
    if (item->function != PO_MU_TIMES)
        return PO_NONE;
    if (items[item->b].function == PO_MU_SIGMOID && items[item->b].a == item->a)
        return 0;
    return items[item->a].function == PO_MU_SIGMOID && items[item->a].a == item->b ? 1 : PO_NONE;
}

bool cg_is_gate(const po_mu_statement *s, uint32_t i) {
    if (s->items[i].function != PO_MU_SIGMOID || i + 1 == s->n_items)
        return false;
    for (uint32_t k = i + 1; k < s->n_items; k++) {
        const po_mu_item *user = &s->items[k];
        const uint32_t of[3] = {user->a, user->b, user->c};
        for (uint32_t a = 0; a < po_mu_arity(user->function); a++)
            if (of[a] == i && gated(s->items, user) == PO_NONE)
                return false;
    }
    return true;
}

const char *cg_item(cg *g, const po_mu_statement *s, uint32_t i, const char *const argument[3],
                    const bool vector[3]) {
    const po_mu_item *item = &s->items[i];
    uint32_t n = po_mu_arity(item->function);
    const char *a = argument[0], *b = argument[1];
    const uint32_t gate = gated(s->items, item);
    if (gate != PO_NONE)
        return po_arena_printf(g->arena, "pk_gated%s(%s)", vector[gate] ? "" : "1", argument[gate]);
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
    for (uint32_t k = 0; k < n; k++)
        po_text_printf(&text, "%s%s", k ? ", " : "",
                       any ? as_vector(g, argument[k], vector[k]) : argument[k]);
    po_text_puts(&text, ")");
    return text.data;
}

/* Prints indexed sums. */
#include "ops/sum/sum.h"

static void print_var(po_text *text, const po_term *t, uint32_t v) {
    if (t->name[v])
        po_text_puts(text, t->name[v]);
    else
        po_text_printf(text, "t%u", v);
}

static void print_index(po_text *text, const po_term *t, const po_index *index) {
    po_text_puts(text, "[");
    for (uint32_t x = 0; x < index->rank; x++) {
        bool any = false;
        po_text_puts(text, x ? ", " : "");
        for (uint32_t v = 0; v < t->n_vars; v++) {
            int64_t c = po_index_coef(t, index, x, v);
            if (c == 0)
                continue;
            po_text_puts(text, c < 0 ? "-" : any ? "+" : "");
            if (c != 1 && c != -1)
                po_text_printf(text, "%llu*",
                               c < 0 ? 0 - (unsigned long long)c : (unsigned long long)c);
            print_var(text, t, v);
            any = true;
        }
        if (!any || index->base[x])
            po_text_printf(text, any ? "%+lld" : "%lld", (long long)index->base[x]);
    }
    po_text_puts(text, "]");
}

static void print_operand_name(po_text *text, const po_sum *sum, uint32_t id) {
    const po_operand *op = &sum->operands[id];
    if (op->kind == PO_OPERAND_INPUT)
        po_text_printf(text, "in%u", op->input);
    else
        po_text_printf(text, op->kind == PO_OPERAND_TABLE ? "tab%u" : "atom%u", id);
}

static void print_dims(po_text *text, uint32_t rank, const int64_t *dims) {
    po_text_puts(text, "[");
    for (uint32_t i = 0; i < rank; i++)
        po_text_printf(text, "%s%lld", i ? "," : "", (long long)dims[i]);
    po_text_puts(text, "]");
}

static void print_operand(po_text *text, const po_sum *sum, uint32_t id) {
    const po_operand *op = &sum->operands[id];
    print_operand_name(text, sum, id);
    po_text_puts(text, ": ");
    print_dims(text, op->rank, op->dims);
    switch (op->kind) {
    case PO_OPERAND_INPUT:
        return;
    case PO_OPERAND_RECIPROCAL:
        po_text_printf(text, " 1/in%u", op->input);
        return;
    case PO_OPERAND_RSQRT:
        po_text_printf(text, " rsqrt(in%u, ", op->input);
        po_text_f64(text, op->eps);
        po_text_puts(text, ")");
        return;
    case PO_OPERAND_TABLE:
        po_text_puts(text, " {");
        for (int64_t i = 0; i < op->count; i++) {
            po_text_puts(text, i ? ", " : "");
            po_text_rational(text, op->table[i]);
        }
        po_text_puts(text, "}");
        return;
    }
}

static void print_term(po_text *text, const po_sum *sum, const po_term *t) {
    po_text_puts(text, "  out");
    print_index(text, t, &t->out);
    po_text_puts(text, " += ");
    bool one = po_rational_equal(t->scale, PO_RATIONAL(1));
    if (!one || t->n_factors == 0) {
        po_text_rational(text, t->scale);
        po_text_puts(text, t->n_factors ? " * " : "");
    }
    for (uint32_t k = 0; k < t->n_factors; k++) {
        po_text_puts(text, k ? " * " : "");
        print_operand_name(text, sum, t->factor[k].operand);
        print_index(text, t, &t->factor[k].at);
    }
    for (uint32_t v = 0; v < t->n_vars; v++) {
        po_text_puts(text, v ? " " : "   ");
        print_var(text, t, v);
        po_text_printf(text, "<%lld", (long long)t->extent[v]);
    }
    po_text_puts(text, "\n");
}

void po_sum_print(po_text *text, const po_sum *sum) {
    po_text_puts(text, "sum (");
    for (uint32_t i = 0; i < sum->n_operands; i++) {
        po_text_puts(text, i ? ", " : "");
        print_operand(text, sum, i);
    }
    po_text_puts(text, ") -> ");
    print_dims(text, sum->rank, sum->dims);
    po_text_puts(text, " {\n");
    for (uint32_t i = 0; i < sum->n_terms; i++)
        print_term(text, sum, &sum->terms[i]);
    po_text_puts(text, "}\n");
}

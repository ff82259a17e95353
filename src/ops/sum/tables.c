/* Reading sums that mix along each axis by a table. */
#include "ops/sum/tables.h"

enum { NOTHING = UINT32_MAX };

/* The variable that is the index along an axis: NOTHING where that is always 0. False: the index
 * is another. */
static bool variable_of(const po_term *t, const po_index *at, uint32_t axis, uint32_t *v) {
    *v = NOTHING;
    for (uint32_t i = 0; i < t->n_vars; i++) {
        const int64_t coef = t->extent[i] > 1 ? po_index_coef(t, at, axis, i) : 0;
        if (coef != 0 && (coef != 1 || *v != NOTHING))
            return false;
        *v = coef != 0 ? i : *v;
    }
    return at->base[axis] == 0;
}

/* Whether the variable runs over the whole of an axis. */
static bool runs(const po_term *t, uint32_t v, int64_t dim) {
    return v == NOTHING ? dim == 1 : t->extent[v] == dim;
}

/* The table's axis: where what it makes is the output's index, and what it reads the input's. */
static bool place_table(const po_sum *sum, const po_term *t, const po_factor *f,
                        const po_factor *input, po_sum_tables *tables) {
    const po_operand *op = &sum->operands[f->operand];
    uint32_t made, read, out, in;
    if (op->kind != PO_OPERAND_TABLE || op->rank != 2 || !variable_of(t, &f->at, 0, &made) ||
        !variable_of(t, &f->at, 1, &read) || made == NOTHING)
        return false;
    for (uint32_t x = 0; x < sum->rank; x++)
        if (variable_of(t, &t->out, x, &out) && out == made) {
            tables->of[x] = op;
            return variable_of(t, &input->at, x, &in) && in == read && runs(t, made, op->dims[0]) &&
                   runs(t, read, op->dims[1]) && sum->dims[x] == op->dims[0] &&
                   sum->operands[input->operand].dims[x] == op->dims[1];
        }
    return false;
}

bool po_sum_tables_of(const po_sum *sum, po_sum_tables *tables) {
    *tables = (po_sum_tables){.rank = sum->rank};
    if (sum->n_terms != 1 || sum->rank > PO_SUM_MAX_FACTORS)
        return false;
    const po_term *t = &sum->terms[0];
    const po_factor *input = NULL;
    for (uint32_t k = 0; k < t->n_factors; k++)
        if (sum->operands[t->factor[k].operand].kind == PO_OPERAND_INPUT) {
            if (input)
                return false;
            input = &t->factor[k];
        }
    if (!input || input->at.rank != sum->rank || t->scale.num != 1 || t->scale.den != 1)
        return false;
    for (uint32_t k = 0; k < t->n_factors; k++)
        if (&t->factor[k] != input && !place_table(sum, t, &t->factor[k], input, tables))
            return false;
    uint32_t out, in;
    for (uint32_t x = 0; x < sum->rank; x++)
        if (!tables->of[x] &&
            (!variable_of(t, &t->out, x, &out) || !variable_of(t, &input->at, x, &in) ||
             out != in || !runs(t, out, sum->dims[x]) ||
             sum->operands[input->operand].dims[x] != sum->dims[x]))
            return false;
    return true;
}

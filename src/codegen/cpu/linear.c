/* Products with constant tables as straight-line code: zeros are dropped, ones are not multiplied
 * by, and what two rows or two columns have in common is computed once (Winograd's matrices have
 * rows and columns in pairs that differ in the signs of the odd powers). */
#include "codegen/cpu/lanes.h"

typedef struct matrix {
    uint32_t rows, cols;
    double *at;         /* rows x cols */
    const char **names; /* of columns */
    bool *vector;
} matrix;

static double *cell(const matrix *m, uint32_t row, uint32_t col) {
    return &m->at[(size_t)row * m->cols + col];
}

static bool in_table(cg *g, const po_mu_statement *s, uint32_t label) {
    for (uint32_t k = 0; k < s->n_in; k++) {
        const po_mu_tensor *t = &g->mu->tensors[s->in[k].tensor];
        if (t->place == PO_MU_TABLE && po_mu_has(g->mu, &s->in[k], label))
            return true;
    }
    return false;
}

static bool in_data(cg *g, const po_mu_statement *s, uint32_t label) {
    for (uint32_t k = 0; k < s->n_in; k++) {
        const po_mu_tensor *t = &g->mu->tensors[s->in[k].tensor];
        if (t->place != PO_MU_TABLE && po_mu_has(g->mu, &s->in[k], label))
            return true;
    }
    return false;
}

/* Whether the expression is a product of each operand once, numbers and signs; their product. */
static bool is_product(const po_mu_statement *s, double *scale) {
    uint32_t used[PO_MU_MAX_INPUTS] = {0};
    *scale = 1;
    for (uint32_t i = 0; i < s->n_items; i++) {
        const po_mu_item *it = &s->items[i];
        if (it->function == PO_MU_CONST)
            *scale *= it->value;
        else if (it->function == PO_MU_NEGATE)
            *scale = -*scale;
        else if (it->function == PO_MU_OPERAND)
            used[it->a]++;
        else if (it->function != PO_MU_TIMES || it->a == it->b)
            return false;
    }
    for (uint32_t k = 0; k < s->n_in; k++)
        if (used[k] != 1)
            return false;
    /* Every item but the last is an argument once. */
    for (uint32_t i = 0; i + 1 < s->n_items; i++) {
        uint32_t n = 0;
        for (uint32_t j = i + 1; j < s->n_items; j++) {
            const po_mu_item *it = &s->items[j];
            if (it->function == PO_MU_TIMES)
                n += (it->a == i ? 1u : 0u) + (it->b == i ? 1u : 0u);
            else if (it->function == PO_MU_NEGATE)
                n += it->a == i;
        }
        if (n != 1)
            return false;
    }
    return true;
}

/* The product of the tables' entries at the labels' values. */
static double coefficient(cg *g, const po_mu_statement *s, double scale) {
    for (uint32_t k = 0; k < s->n_in; k++) {
        const po_mu_tensor *t = &g->mu->tensors[s->in[k].tensor];
        if (t->place != PO_MU_TABLE)
            continue;
        int64_t at = 0;
        for (uint32_t a = 0; a < t->rank; a++) {
            const po_mu_index *x = &s->in[k].axes[a];
            int64_t i = x->offset;
            for (uint32_t j = 0; j < x->n; j++)
                i += x->terms[j].coef * g->value[x->terms[j].label].add;
            if (i < 0 || i >= t->dims[a])
                return 0;
            at = at * t->dims[a] + i;
        }
        scale *= po_rational_f64(t->table[at]);
    }
    return scale;
}

/* --- sums --- */

typedef struct term {
    double c;
    const char *name;
    bool vector;
} term;

/* Prints a sum of terms as a new variable; its name. */
static const char *sum(cg_unrolled *u, term *terms, uint32_t n, bool *vector) {
    cg *g = u->g;
    *vector = false;
    if (n == 0)
        return "0.0f";
    /* A term to start from: +1, else one that is multiplied. */
    for (int pass = 0; pass < 2; pass++)
        for (uint32_t i = 0; i < n; i++)
            if (pass == 0 ? terms[i].c == 1 : terms[0].c == -1 && terms[i].c != -1) {
                term t = terms[i];
                memmove(terms + 1, terms, i * sizeof *terms);
                terms[0] = t;
                pass = 2;
                break;
            }
    po_text text;
    po_text_init(&text, g->arena);
    for (uint32_t i = 0; i < n; i++) {
        *vector |= terms[i].vector;
        if (terms[i].c == 1) {
            po_text_printf(&text, "%s%s", i ? " + " : "", terms[i].name);
        } else if (terms[i].c == -1) {
            po_text_printf(&text, "%s%s", i ? " - " : "-", terms[i].name);
        } else {
            po_text_puts(&text, i ? " + " : "");
            cg_number(&text, terms[i].c);
            po_text_printf(&text, " * %s", terms[i].name);
        }
    }
    if (n == 1 && terms[0].c == 1)
        return terms[0].name;
    const char *name = po_arena_printf(g->arena, "z%u", u->fresh_name++);
    cg_line(g, "const %s %s = %s;", *vector ? "pk_v" : "float", name, text.data);
    return name;
}

/* Replaces pairs of columns that come with equal or opposite factors in every row by their sum and
 * difference, where that saves operations. */
static void pair_columns(cg_unrolled *u, matrix *m) {
    for (uint32_t a = 0; a < m->cols; a++)
        for (uint32_t b = a + 1; b < m->cols; b++) {
            uint32_t same = 0, opposite = 0;
            bool fits = true;
            for (uint32_t r = 0; r < m->rows && fits; r++) {
                double x = *cell(m, r, a), y = *cell(m, r, b);
                if (x == 0 && y == 0)
                    continue;
                same += x == y;
                opposite += x == -y;
                fits = x == y || x == -y;
            }
            uint32_t cost = (same > 0 ? 1u : 0u) + (opposite > 0 ? 1u : 0u);
            if (!fits || same + opposite <= cost)
                continue;
            const char *names[2] = {m->names[a], m->names[b]};
            bool lanes[2] = {m->vector[a], m->vector[b]};
            for (int sign = 0; sign < 2; sign++) {
                if ((sign == 0 ? same : opposite) == 0)
                    continue;
                term terms[2] = {{1, names[0], lanes[0]}, {sign == 0 ? 1 : -1, names[1], lanes[1]}};
                uint32_t to = sign == 0 ? a : b;
                m->names[to] = sum(u, terms, 2, &m->vector[to]);
            }
            for (uint32_t r = 0; r < m->rows; r++) {
                double x = *cell(m, r, a), y = *cell(m, r, b);
                *cell(m, r, a) = x == y ? x : 0;
                *cell(m, r, b) = x == y ? 0 : x;
            }
            break;
        }
}

/* The row that shares its terms with another: their common part and the part of opposite sign. */
static uint32_t partner(const matrix *m, uint32_t row, const bool *done) {
    for (uint32_t r = row + 1; r < m->rows; r++) {
        uint32_t same = 0, opposite = 0;
        bool fits = !done[r];
        for (uint32_t c = 0; c < m->cols && fits; c++) {
            double x = *cell(m, row, c), y = *cell(m, r, c);
            if (x == 0 && y == 0)
                continue;
            same += x == y;
            opposite += x == -y;
            fits = x == y || x == -y;
        }
        if (fits && same > 0 && opposite > 0 && same + opposite > 2)
            return r;
    }
    return PO_NONE;
}

static const char *part(cg_unrolled *u, const matrix *m, uint32_t row, uint32_t other, int sign,
                        bool *vector) {
    term *terms = PO_NEW_N(u->g->arena, term, m->cols + 1);
    uint32_t n = 0;
    for (uint32_t c = 0; c < m->cols; c++) {
        double x = *cell(m, row, c), y = other == PO_NONE ? x : *cell(m, other, c);
        if (x != 0 && x == (sign < 0 ? -y : y))
            terms[n++] = (term){x, m->names[c], m->vector[c]};
    }
    return sum(u, terms, n, vector);
}

/* --- the statement --- */

static po_status group(cg_unrolled *u, double scale, uint32_t n_out, const uint32_t *out,
                       uint32_t n_reduced, const uint32_t *reduced) {
    cg *g = u->g;
    const po_mu_statement *s = u->s;
    matrix m = {1, 1, NULL, NULL, NULL};
    for (uint32_t i = 0; i < n_out; i++)
        m.rows *= (uint32_t)g->span[out[i]].full;
    for (uint32_t i = 0; i < n_reduced; i++)
        m.cols *= (uint32_t)g->span[reduced[i]].full;
    m.at = PO_NEW_N(g->arena, double, (size_t)m.rows *m.cols + 1);
    m.names = PO_NEW_N(g->arena, const char *, m.cols + 1);
    m.vector = PO_NEW_N(g->arena, bool, m.cols + 1);
    cg_first(g, n_reduced, reduced);
    for (uint32_t c = 0; c < m.cols; c++, (void)cg_next(g, n_reduced, reduced)) {
        bool any = false;
        cg_first(g, n_out, out);
        for (uint32_t r = 0; r < m.rows; r++, (void)cg_next(g, n_out, out)) {
            *cell(&m, r, c) = coefficient(g, s, scale);
            any |= *cell(&m, r, c) != 0;
        }
        if (!any)
            continue;
        po_text product;
        po_text_init(&product, g->arena);
        for (uint32_t k = 0, n = 0; k < s->n_in; k++) {
            const char *name;
            bool vector;
            if (g->mu->tensors[s->in[k].tensor].place == PO_MU_TABLE)
                continue;
            PO_TRY(cg_load(u, k, true, &name, &vector));
            po_text_printf(&product, "%s%s", n++ ? " * " : "", name);
            m.vector[c] |= vector;
            m.names[c] = name;
            if (n > 1)
                m.names[c] = NULL;
        }
        if (m.names[c] == NULL) {
            m.names[c] = po_arena_printf(g->arena, "z%u", u->fresh_name++);
            cg_line(g, "const %s %s = %s;", m.vector[c] ? "pk_v" : "float", m.names[c],
                    product.size ? product.data : "1.0f");
        }
    }
    pair_columns(u, &m);
    const char *condition;
    bool fresh = cg_starts(g, s, &condition), *done = PO_NEW_N(g->arena, bool, m.rows + 1);
    const char **value = PO_NEW_N(g->arena, const char *, m.rows + 1);
    bool *vector = PO_NEW_N(g->arena, bool, m.rows + 1);
    cg_first(g, n_reduced, reduced);
    cg_first(g, n_out, out);
    for (uint32_t r = 0; r < m.rows; r++, (void)cg_next(g, n_out, out)) {
        uint32_t other = done[r] ? PO_NONE : partner(&m, r, done);
        if (other != PO_NONE) {
            bool a, b;
            const char *same = part(u, &m, r, other, 1, &a);
            const char *opposite = part(u, &m, r, other, -1, &b);
            value[r] = po_arena_printf(g->arena, "%s + %s", same, opposite);
            value[other] = po_arena_printf(g->arena, "%s - %s", same, opposite);
            vector[r] = vector[other] = a || b;
            done[r] = done[other] = true;
        } else if (!done[r]) {
            value[r] = part(u, &m, r, PO_NONE, 1, &vector[r]);
        }
        PO_TRY(cg_write(u, value[r], vector[r], fresh, condition));
    }
    return PO_OK;
}

po_status cg_linear(cg_unrolled *u, uint32_t n_kept, const uint32_t *kept, uint32_t n_reduced,
                    const uint32_t *reduced, bool *done) {
    cg *g = u->g;
    const po_mu_statement *s = u->s;
    double scale;
    bool table = false;
    *done = false;
    for (uint32_t k = 0; k < s->n_in; k++)
        table |= g->mu->tensors[s->in[k].tensor].place == PO_MU_TABLE;
    if (s->combine != PO_MU_ADD || !table || !is_product(s, &scale))
        return PO_OK;
    for (uint32_t k = 0; k < s->n_in; k++) {
        const po_mu_tensor *t = &g->mu->tensors[s->in[k].tensor];
        if (t->place != PO_MU_TABLE)
            continue;
        if (po_mu_has(g->mu, &s->in[k], u->lane))
            return PO_OK;
        for (uint32_t l = 0; l < g->mu->n_labels; l++)
            if (po_mu_has(g->mu, &s->in[k], l) && g->value[l].name != NULL)
                return PO_OK; /* an entry that is not known here */
    }
    /* Rows of the matrix: labels of tables alone. */
    uint32_t n_out = 0, n_each = 0, *out = PO_NEW_N(g->arena, uint32_t, n_kept + 1);
    uint32_t *each = PO_NEW_N(g->arena, uint32_t, n_kept + 1);
    int64_t cells = 1;
    for (uint32_t i = 0; i < n_kept; i++) {
        if (in_table(g, s, kept[i]) && !in_data(g, s, kept[i])) {
            out[n_out++] = kept[i];
            cells *= g->span[kept[i]].full;
        } else {
            each[n_each++] = kept[i];
        }
    }
    for (uint32_t i = 0; i < n_reduced; i++)
        cells *= g->span[reduced[i]].full;
    if (cells > 1 << 16)
        return PO_OK;
    *done = true;
    cg_first(g, n_each, each);
    do {
        PO_TRY(group(u, scale, n_out, out, n_reduced, reduced));
    } while (cg_next(g, n_each, each));
    return PO_OK;
}

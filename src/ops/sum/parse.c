/* Reads indexed sums from text. A term's variables are declared behind it, so that it is read
 * twice: first for the declarations, then for its meaning. */
#include "base/num.h"
#include "ops/sum/sum.h"

static po_status parse_dims(po_scan *scan, uint32_t *rank, int64_t *dims) {
    int64_t count = 1;
    *rank = 0;
    PO_TRY(po_scan_need(scan, "["));
    while (!po_scan_take(scan, "]")) {
        if (*rank)
            PO_TRY(po_scan_need(scan, ","));
        if (*rank == PO_SUM_MAX_AXES)
            return po_scan_fail(scan, "too many dims (limit %d)", PO_SUM_MAX_AXES);
        PO_TRY(po_scan_i64(scan, &dims[*rank]));
        if (dims[*rank] < 0 || !po_mul_i64(count, dims[*rank], &count))
            return po_scan_fail(scan, "a dim is negative, or the product of the dims overflows");
        ++*rank;
    }
    return PO_OK;
}

static po_status parse_table(po_scan *scan, po_sum *sum, uint32_t rank, const int64_t *dims) {
    int64_t count = 1, n = 0;
    for (uint32_t i = 0; i < rank; i++)
        count *= dims[i];
    if (count > PO_SUM_MAX_TABLE)
        return po_scan_fail(scan, "a table is too large (limit %d)", PO_SUM_MAX_TABLE);
    po_rational *table = PO_NEW_N(sum->arena, po_rational, count);
    while (!po_scan_take(scan, "}")) {
        if (n)
            PO_TRY(po_scan_need(scan, ","));
        if (n == count)
            return po_scan_fail(scan, "a table has too many items");
        PO_TRY(po_scan_rational(scan, &table[n++]));
    }
    if (n < count)
        return po_scan_fail(scan, "a table has too few items");
    po_sum_table(sum, rank, dims, table);
    return PO_OK;
}

/* "in7" gives 7. */
static po_status parse_input_name(po_scan *scan, uint32_t *input) {
    const char *name;
    int64_t number = 0;
    PO_TRY(po_scan_name(scan, &name));
    if (strncmp(name, "in", 2) != 0 || !name[2])
        return po_scan_fail(scan, "expected an input such as in0");
    for (const char *p = name + 2; *p; p++)
        if (*p < '0' || *p > '9' || (number = number * 10 + (*p - '0')) > INT32_MAX)
            return po_scan_fail(scan, "expected an input such as in0");
    *input = (uint32_t)number;
    return PO_OK;
}

static po_status parse_operand(po_scan *scan, po_sum *sum, po_map *names) {
    const char *name;
    uint32_t rank, input, id;
    int64_t dims[PO_SUM_MAX_AXES];
    double eps;
    po_scan_peek(scan);
    const char *at = scan->at;
    PO_TRY(po_scan_name(scan, &name));
    const char *behind = scan->at;
    if (po_map_put(names, name, sum->n_operands) != PO_NONE)
        return po_scan_fail(scan, "operand '%s' is declared twice", name);
    PO_TRY(po_scan_need(scan, ":"));
    PO_TRY(parse_dims(scan, &rank, dims));
    id = sum->n_operands;
    if (po_scan_take(scan, "{"))
        return parse_table(scan, sum, rank, dims);
    if (po_scan_take(scan, "1/")) {
        PO_TRY(parse_input_name(scan, &input));
        input = po_sum_atom(sum, PO_OPERAND_RECIPROCAL, input, 0, rank, dims);
    } else if (po_scan_take_word(scan, "rsqrt")) {
        PO_TRY(po_scan_need(scan, "("));
        PO_TRY(parse_input_name(scan, &input));
        PO_TRY(po_scan_need(scan, ","));
        PO_TRY(po_scan_f64(scan, &eps));
        PO_TRY(po_scan_need(scan, ")"));
        input = po_sum_atom(sum, PO_OPERAND_RSQRT, input, eps, rank, dims);
    } else {
        const char *after = scan->at;
        scan->at = at;
        PO_TRY(parse_input_name(scan, &input));
        if (scan->at == behind)
            scan->at = after;
        input = po_sum_input(sum, input, rank, dims);
    }
    return input == id ? PO_OK : po_scan_fail(scan, "an operand is declared twice");
}

typedef struct term_reader {
    po_scan *scan;
    po_sum *sum;
    const po_map *operands;
    po_map *vars; /* NULL on the first reading */
    po_term *term;
} term_reader;

/* "2*y+r-1" */
static po_status parse_affine(term_reader *r, po_index *index, uint32_t axis) {
    po_scan *scan = r->scan;
    bool first = true;
    for (;; first = false) {
        bool negative = po_scan_take(scan, "-");
        if (!negative && !po_scan_take(scan, "+") && !first)
            return PO_OK;
        int64_t coef = 1;
        const char *name = NULL;
        char c = po_scan_peek(scan);
        if (c >= '0' && c <= '9') {
            PO_TRY(po_scan_i64(scan, &coef));
            if (po_scan_take(scan, "*"))
                PO_TRY(po_scan_name(scan, &name));
        } else {
            PO_TRY(po_scan_name(scan, &name));
        }
        if (negative)
            coef = -coef;
        if (!r->vars)
            continue;
        int64_t *to = &index->base[axis];
        if (name) {
            uint32_t v = po_map_get(r->vars, name);
            if (v == PO_NONE)
                return po_scan_fail(scan, "variable '%s' has no extent", name);
            to = &index->coef[axis * r->term->cap_vars + v];
        }
        if (!po_add_i64(*to, coef, to))
            return po_scan_fail(scan, "an index overflows");
    }
}

static po_status parse_index(term_reader *r, po_index *index, uint32_t rank) {
    uint32_t axis = 0;
    PO_TRY(po_scan_need(r->scan, "["));
    while (!po_scan_take(r->scan, "]")) {
        if (axis)
            PO_TRY(po_scan_need(r->scan, ","));
        if (axis == rank)
            return po_scan_fail(r->scan, "an index has too many axes (limit %u)", rank);
        PO_TRY(parse_affine(r, index, axis++));
    }
    return axis == rank ? PO_OK : po_scan_fail(r->scan, "an index has too few axes");
}

static po_status parse_product(term_reader *r) {
    po_scan *scan = r->scan;
    PO_TRY(po_scan_take_word(scan, "out") ? PO_OK : po_scan_fail(scan, "expected 'out'"));
    PO_TRY(parse_index(r, r->vars ? &r->term->out : NULL, r->sum->rank));
    PO_TRY(po_scan_need(scan, "+="));
    char c = po_scan_peek(scan);
    if (c == '-' || (c >= '0' && c <= '9')) {
        po_rational scale;
        PO_TRY(po_scan_rational(scan, &scale));
        if (r->vars)
            r->term->scale = scale;
        if (!po_scan_take(scan, "*"))
            return PO_OK;
    }
    do {
        const char *name;
        PO_TRY(po_scan_name(scan, &name));
        uint32_t id = po_map_get(r->operands, name);
        if (id == PO_NONE)
            return po_scan_fail(scan, "operand '%s' is not declared", name);
        po_index *index = r->vars ? po_term_factor(r->sum, r->term, id) : NULL;
        if (r->vars && !index)
            return po_scan_fail(scan, "too many factors (limit %d)", PO_SUM_MAX_FACTORS);
        PO_TRY(parse_index(r, index, r->sum->operands[id].rank));
    } while (po_scan_take(scan, "*"));
    return PO_OK;
}

static po_status parse_term(po_scan *scan, po_sum *sum, const po_map *operands) {
    term_reader r = {.scan = scan, .sum = sum, .operands = operands};
    po_scan_peek(scan);
    const char *at = scan->at;
    PO_TRY(parse_product(&r));
    po_map *vars = po_map_create(scan->arena);
    r.term = po_sum_term(sum, PO_SUM_MAX_VARS);
    for (char c; (c = po_scan_peek(scan)) != '}' && c != '\0';) {
        const char *name, *before = scan->at;
        int64_t extent;
        PO_TRY(po_scan_name(scan, &name));
        if (!po_scan_take(scan, "<")) {
            scan->at = before;
            break;
        }
        PO_TRY(po_scan_i64(scan, &extent));
        if (extent < 0 || po_map_get(vars, name) != PO_NONE)
            return po_scan_fail(scan, "variable '%s' has a negative extent or two", name);
        if (r.term->n_vars == PO_SUM_MAX_VARS)
            return po_scan_fail(scan, "too many variables (limit %d)", PO_SUM_MAX_VARS);
        po_map_put(vars, name, po_term_var(r.term, name, extent));
    }
    const char *end = scan->at;
    scan->at = at;
    r.vars = vars;
    PO_TRY(parse_product(&r));
    scan->at = end;
    return PO_OK;
}

po_status po_sum_parse(po_scan *scan, po_sum **sum) {
    PO_TRY(po_scan_take_word(scan, "sum") ? PO_OK : po_scan_fail(scan, "expected 'sum'"));
    po_sum *s = po_sum_create(scan->arena, 0, NULL);
    po_map *operands = po_map_create(scan->arena);
    int64_t dims[PO_SUM_MAX_AXES];
    PO_TRY(po_scan_need(scan, "("));
    while (!po_scan_take(scan, ")")) {
        if (s->n_operands)
            PO_TRY(po_scan_need(scan, ","));
        PO_TRY(parse_operand(scan, s, operands));
    }
    PO_TRY(po_scan_need(scan, "->"));
    PO_TRY(parse_dims(scan, &s->rank, dims));
    s->dims = po_arena_memdup(scan->arena, dims, s->rank * sizeof *dims);
    s->count = 1;
    for (uint32_t i = 0; i < s->rank; i++)
        s->count *= dims[i];
    PO_TRY(po_scan_need(scan, "{"));
    while (!po_scan_take(scan, "}"))
        PO_TRY(parse_term(scan, s, operands));
    if (!po_sum_check(s))
        return po_scan_fail(scan, "the sum is beyond the limits of its form");
    *sum = s;
    return PO_OK;
}

/* Building indexed sums, their limits and figures. */
#include "ops/sum/sum.h"

#include "base/num.h"

static int64_t product(uint32_t rank, const int64_t *dims) {
    int64_t p = 1;
    for (uint32_t i = 0; i < rank; i++)
        p *= dims[i];
    return p;
}

po_sum *po_sum_create(po_arena *arena, uint32_t rank, const int64_t *dims) {
    po_sum *s = PO_NEW(arena, po_sum);
    s->arena = arena;
    s->rank = rank;
    s->dims = po_arena_memdup(arena, dims, rank * sizeof *dims);
    s->count = product(rank, dims);
    return s;
}

static uint32_t add_operand(po_sum *sum, po_operand operand) {
    operand.dims = po_arena_memdup(sum->arena, operand.dims, operand.rank * sizeof *operand.dims);
    operand.count = product(operand.rank, operand.dims);
    PO_PUSH(sum->arena, sum->operands, sum->n_operands, sum->cap_operands, operand);
    return sum->n_operands - 1;
}

uint32_t po_sum_atom(po_sum *sum, po_operand_kind kind, uint32_t input, double eps, uint32_t rank,
                     const int64_t *dims) {
    for (uint32_t i = 0; i < sum->n_operands; i++)
        if (sum->operands[i].kind == kind && sum->operands[i].input == input &&
            memcmp(&sum->operands[i].eps, &eps, sizeof eps) == 0)
            return i;
    return add_operand(
        sum, (po_operand){.kind = kind, .input = input, .eps = eps, .rank = rank, .dims = dims});
}

uint32_t po_sum_input(po_sum *sum, uint32_t input, uint32_t rank, const int64_t *dims) {
    return po_sum_atom(sum, PO_OPERAND_INPUT, input, 0, rank, dims);
}

uint32_t po_sum_table(po_sum *sum, uint32_t rank, const int64_t *dims, const po_rational *table) {
    return add_operand(
        sum, (po_operand){.kind = PO_OPERAND_TABLE, .rank = rank, .dims = dims, .table = table});
}

static po_index new_index(po_arena *arena, uint32_t rank, uint32_t cap_vars) {
    return (po_index){rank, PO_NEW_N(arena, int64_t, rank),
                      PO_NEW_N(arena, int64_t, (size_t)rank * cap_vars)};
}

po_term *po_sum_term(po_sum *sum, uint32_t cap_vars) {
    po_term t = {.cap_vars = cap_vars, .scale = PO_RATIONAL(1)};
    t.extent = PO_NEW_N(sum->arena, int64_t, cap_vars);
    t.name = PO_NEW_N(sum->arena, const char *, cap_vars);
    t.out = new_index(sum->arena, sum->rank, cap_vars);
    PO_PUSH(sum->arena, sum->terms, sum->n_terms, sum->cap_terms, t);
    return &sum->terms[sum->n_terms - 1];
}

uint32_t po_term_var(po_term *term, const char *name, int64_t extent) {
    term->extent[term->n_vars] = extent;
    term->name[term->n_vars] = name;
    return term->n_vars++;
}

po_index *po_term_factor(po_sum *sum, po_term *term, uint32_t operand) {
    if (term->n_factors == PO_SUM_MAX_FACTORS)
        return NULL;
    po_factor *f = &term->factor[term->n_factors++];
    f->operand = operand;
    f->at = new_index(sum->arena, sum->operands[operand].rank, term->cap_vars);
    return &f->at;
}

/* Offsets stay below 2^62 wherever in the box, so that loops may add without checks. */
static bool index_fits(const po_term *term, const po_index *index, uint32_t rank,
                       const int64_t *dims) {
    enum { MOST = 62 };
    int64_t offset = 0, stride = 1;
    if (index->rank != rank)
        return false;
    for (uint32_t i = rank; i-- > 0;) {
        if (index->base[i] == INT64_MIN)
            return false;
        int64_t reach = index->base[i] < 0 ? -index->base[i] : index->base[i], part;
        for (uint32_t v = 0; v < term->n_vars; v++) {
            int64_t c = po_index_coef(term, index, i, v);
            if (c == INT64_MIN || !po_mul_i64(c < 0 ? -c : c, term->extent[v], &part) ||
                !po_add_i64(reach, part, &reach))
                return false;
        }
        if (!po_add_i64(reach, dims[i], &part) || !po_mul_i64(part, stride, &part) ||
            !po_add_i64(offset, part, &offset) || offset >= (int64_t)1 << MOST)
            return false;
        /* Strides of empty tensors are 0 above the empty axis: nothing is ever touched. */
        stride *= dims[i];
    }
    return true;
}

bool po_sum_check(const po_sum *sum) {
    if (sum->n_terms > PO_SUM_MAX_TERMS)
        return false;
    for (uint32_t i = 0; i < sum->n_terms; i++) {
        const po_term *t = &sum->terms[i];
        uint32_t axes = sum->rank;
        if (t->n_vars > PO_SUM_MAX_VARS || t->n_factors > PO_SUM_MAX_FACTORS)
            return false;
        for (uint32_t v = 0; v < t->n_vars; v++)
            if (t->extent[v] < 0)
                return false;
        if (!index_fits(t, &t->out, sum->rank, sum->dims))
            return false;
        for (uint32_t k = 0; k < t->n_factors; k++) {
            const po_operand *op = &sum->operands[t->factor[k].operand];
            axes += op->rank;
            if (!index_fits(t, &t->factor[k].at, op->rank, op->dims))
                return false;
        }
        if (axes > PO_SUM_MAX_AXES)
            return false;
    }
    return true;
}

/* --- figures --- */

static double box_size(const po_term *term) {
    double n = 1;
    for (uint32_t v = 0; v < term->n_vars; v++)
        n *= (double)term->extent[v];
    return n;
}

double po_sum_iterations(const po_sum *sum) {
    double n = 0;
    for (uint32_t i = 0; i < sum->n_terms; i++)
        n += box_size(&sum->terms[i]);
    return n;
}

double po_sum_flops(const po_sum *sum) {
    double points = po_sum_iterations(sum), flops = 0;
    for (uint32_t i = 0; i < sum->n_terms; i++) {
        const po_term *t = &sum->terms[i];
        uint32_t products = t->n_factors ? t->n_factors - 1 : 0;
        if (!po_rational_equal(t->scale, PO_RATIONAL(1)) &&
            !po_rational_equal(t->scale, PO_RATIONAL(-1)))
            products++;
        flops += products * box_size(t);
    }
    /* Each iteration adds, but the first one that reaches an output element only stores. */
    return flops + (points > (double)sum->count ? points - (double)sum->count : 0);
}

static uint32_t operands_of(const po_sum *sum, const po_term *t) {
    uint32_t n = 0;
    for (uint32_t k = 0; k < t->n_factors; k++)
        n += sum->operands[t->factor[k].operand].kind != PO_OPERAND_TABLE;
    return n;
}

double po_sum_work(const po_sum *sum) {
    double work = 0;
    for (uint32_t i = 0; i < sum->n_terms; i++) {
        const po_term *t = &sum->terms[i];
        const double box = box_size(t);
        const uint32_t n = operands_of(sum, t);
        if (n > 1 || box > (double)sum->count || sum->n_terms == 1)
            work += box * (n > 1 ? n : 1);
    }
    return work;
}

/* The term that is a product of two operands, with these factors; NULL: none or several. */
static const po_term *only_product(const po_sum *sum, uint32_t *factor) {
    const po_term *found = NULL;
    for (uint32_t i = 0; i < sum->n_terms; i++) {
        const po_term *t = &sum->terms[i];
        if (operands_of(sum, t) < 2)
            continue;
        if (found || operands_of(sum, t) > 2)
            return NULL;
        found = t;
        for (uint32_t k = 0, n = 0; k < t->n_factors; k++)
            if (sum->operands[t->factor[k].operand].kind != PO_OPERAND_TABLE)
                factor[n++] = k;
    }
    return found;
}

bool po_sum_product_shape(const po_sum *sum, po_sum_shape *shape) {
    uint32_t factor[2];
    const po_term *t = only_product(sum, factor);
    if (!t)
        return false;
    *shape = (po_sum_shape){1, 1, 1, 1};
    for (uint32_t v = 0; v < t->n_vars; v++) {
        bool left = po_index_has(t, &t->factor[factor[0]].at, v);
        bool right = po_index_has(t, &t->factor[factor[1]].at, v);
        double *role = !po_index_has(t, &t->out, v) ? &shape->depth
                       : left && right              ? &shape->times
                       : right                      ? &shape->columns
                                                    : &shape->rows;
        *role *= (double)t->extent[v];
    }
    return true;
}

bool po_term_writes_all(const po_sum *sum, const po_term *t) {
    for (uint32_t x = 0; x < sum->rank; x++) {
        int64_t last = t->out.base[x];
        if (last != 0)
            return false;
        for (uint32_t v = 0; v < t->n_vars; v++) {
            int64_t coef = po_index_coef(t, &t->out, x, v);
            if (coef < 0)
                return false;
            last += coef * (t->extent[v] - 1);
        }
        if (last != sum->dims[x] - 1)
            return false;
    }
    return true;
}

double po_sum_elements(const po_sum *sum) {
    double n = (double)sum->count;
    for (uint32_t i = 0; i < sum->n_operands; i++)
        if (sum->operands[i].kind != PO_OPERAND_TABLE)
            n += (double)sum->operands[i].count;
    return n;
}

uint32_t po_sum_degree(const po_sum *sum) {
    uint32_t most = 0;
    for (uint32_t i = 0; i < sum->n_terms; i++) {
        uint32_t degree = 0;
        for (uint32_t k = 0; k < sum->terms[i].n_factors; k++)
            degree += sum->operands[sum->terms[i].factor[k].operand].kind != PO_OPERAND_TABLE;
        most = degree > most ? degree : most;
    }
    return most;
}

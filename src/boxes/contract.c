/* A digit of an output is followed through each step to the one operand that carries it, down to
 * inputs and constants, and summed there. Of several digits the one that is cheapest for both
 * programs is taken. */
#include "boxes/contract.h"

#include "base/num.h"

enum { MOST_CHOICES = 8, MOST_STEPS = 512 };

/* Measured: products run as blocked matrix products, moves through memory, inputs are hashes. */
double po_program_cost(const po_program *program) {
    static const double product = 0.25, move = 1.5, input = 3;
    double cost = 0;
    for (uint32_t i = 0; i < program->n_steps; i++) {
        const po_sum *sum = program->steps[i].sum;
        cost +=
            po_sum_iterations(sum) * (sum->n_terms && sum->terms[0].n_factors > 1 ? product : move);
    }
    for (uint32_t i = 0; i < program->n_inputs; i++)
        cost += input * (double)program->values[i].count;
    return cost;
}

/* --- digits of axes --- */

/* Whether var's coefficient and extent are the digit, and the axis's other variables lie above and
 * below it without touching it. */
static bool is_digit(const po_term *t, const po_index *at, uint32_t axis, int64_t dim, uint32_t var,
                     const po_digit_of_axis *d) {
    int64_t room = d->stride * d->extent, low = at->base[axis] % room;
    if (po_index_coef(t, at, axis, var) != d->stride || t->extent[var] != d->extent || dim % room)
        return false;
    low = low < 0 ? low + room : low;
    for (uint32_t v = 0; v < t->n_vars; v++) {
        int64_t coef = po_index_coef(t, at, axis, v);
        if (v == var || coef % room == 0)
            continue;
        if (coef < 0)
            return false;
        low += coef * (t->extent[v] - 1);
    }
    return low < d->stride;
}

/* The index without the digit. */
static void drop_digit(const po_term *t, po_index *at, uint32_t axis, uint32_t var,
                       const po_digit_of_axis *d) {
    int64_t room = d->stride * d->extent, base = at->base[axis];
    int64_t high = po_floor_div(base, room);
    at->base[axis] = high * d->stride + (base - high * room);
    for (uint32_t v = 0; v < t->n_vars; v++) {
        int64_t *coef = &at->coef[axis * t->cap_vars + v];
        *coef = v == var ? 0 : *coef % room == 0 ? *coef / d->extent : *coef;
    }
}

/* A copy of a term with room for two more variables, in a sum whose operands are not set yet. */
static po_term *copy_term(po_sum *to, const po_term *t) {
    po_term *c = po_sum_term(to, t->n_vars + 2);
    for (uint32_t v = 0; v < t->n_vars; v++)
        po_term_var(c, t->name[v], t->extent[v]);
    c->scale = t->scale;
    return c;
}

static void copy_index(const po_term *from, const po_index *at, const po_term *to, po_index *copy) {
    for (uint32_t x = 0; x < at->rank; x++) {
        copy->base[x] = at->base[x];
        for (uint32_t v = 0; v < from->n_vars; v++)
            copy->coef[x * to->cap_vars + v] = po_index_coef(from, at, x, v);
    }
}

/* --- programs --- */

typedef struct contractor {
    po_arena *arena;
    const po_program *from;
    const po_program_step **maker; /* by value of `from` */
    uint32_t n_sums;               /* inputs that are coefficients */
    bool *emitted;                 /* by value of `from` */
    po_tensor_shape *shapes;
    uint32_t n_values, cap_values;
    po_program_step *steps;
    uint32_t n_steps, cap_steps;
} contractor;

static uint32_t number(const contractor *c, uint32_t value) {
    return value < c->from->n_inputs ? value : value + c->n_sums;
}

static void push_step(contractor *c, const po_program_step *step) {
    PO_PUSH(c->arena, c->steps, c->n_steps, c->cap_steps, *step);
}

/* The value as it is, with what it is made of. */
static void emit(contractor *c, uint32_t value) {
    const po_program_step *step = c->maker[value];
    if (!step || c->emitted[value])
        return;
    c->emitted[value] = true;
    uint32_t *in = PO_NEW_N(c->arena, uint32_t, step->n_in);
    for (uint32_t i = 0; i < step->sum->n_operands; i++)
        if (step->sum->operands[i].kind != PO_OPERAND_TABLE)
            emit(c, step->in[step->sum->operands[i].input]);
    for (uint32_t k = 0; k < step->n_in; k++)
        in[k] = step->in[k] == PO_NONE ? PO_NONE : number(c, step->in[k]);
    po_program_step copy = *step;
    copy.in = in;
    copy.out = number(c, value);
    push_step(c, &copy);
}

static uint32_t add_value(contractor *c, const po_sum *sum) {
    po_tensor_shape shape = {sum->rank, sum->dims, sum->count};
    PO_PUSH(c->arena, c->shapes, c->n_values, c->cap_values, shape);
    return c->n_values - 1;
}

static po_sum *shorter(contractor *c, uint32_t value, const po_digit_of_axis *d) {
    const po_tensor_shape *shape = &c->from->values[value];
    int64_t dims[PO_MAX_RANK];
    memcpy(dims, shape->dims, shape->rank * sizeof *dims);
    dims[d->axis] /= d->extent;
    return po_sum_create(c->arena, shape->rank, dims);
}

/* Sums an input or a constant itself. */
static uint32_t contract_leaf(contractor *c, uint32_t value, const po_digit_of_axis *d,
                              uint32_t coefficients) {
    const po_tensor_shape *shape = &c->from->values[value];
    po_sum *sum = shorter(c, value, d);
    po_term *t = po_sum_term(sum, shape->rank + 2);
    uint32_t x = po_sum_input(sum, 0, shape->rank, shape->dims);
    uint32_t r = po_sum_input(sum, 1, 1, &d->extent);
    po_index *at = po_term_factor(sum, t, x), *by = po_term_factor(sum, t, r);
    for (uint32_t y = 0; y < shape->rank; y++) {
        if (y != d->axis) {
            uint32_t v = po_term_var(t, NULL, shape->dims[y]);
            po_index_add(t, &t->out, y, 1, v);
            po_index_add(t, at, y, 1, v);
            continue;
        }
        int64_t room = d->stride * d->extent;
        uint32_t high = po_term_var(t, NULL, shape->dims[y] / room);
        uint32_t digit = po_term_var(t, NULL, d->extent), low = po_term_var(t, NULL, d->stride);
        po_index_add(t, &t->out, y, d->stride, high);
        po_index_add(t, &t->out, y, 1, low);
        po_index_add(t, at, y, room, high);
        po_index_add(t, at, y, d->stride, digit);
        po_index_add(t, at, y, 1, low);
        po_index_add(t, by, 0, 1, digit);
    }
    if (!po_sum_check(sum) || po_sum_normalize(sum) != PO_OK)
        return PO_NONE;
    uint32_t *in = PO_NEW_N(c->arena, uint32_t, 2);
    in[0] = number(c, value);
    in[1] = coefficients;
    po_program_step step = {sum, in, 2, add_value(c, sum), "a sum with random coefficients"};
    push_step(c, &step);
    return step.out;
}

static uint32_t contract(contractor *c, uint32_t value, const po_digit_of_axis *d,
                         uint32_t coefficients);

/* The variable that carries the digit, split off from a longer one where need be. */
static uint32_t digit_var(po_term *t, const po_digit_of_axis *d, int64_t dim) {
    for (uint32_t v = 0; v < t->n_vars; v++)
        if (is_digit(t, &t->out, d->axis, dim, v, d))
            return v;
    for (uint32_t v = 0; v < t->n_vars && t->n_vars + 2 <= t->cap_vars; v++) {
        int64_t coef = po_index_coef(t, &t->out, d->axis, v);
        if (coef <= 0 || d->stride % coef)
            continue;
        int64_t below = d->stride / coef;
        if (t->extent[v] % (below * d->extent))
            continue;
        /* v = (high * extent + digit) * below + low: v becomes low, two new ones the rest. */
        uint32_t digit = po_term_var(t, NULL, d->extent);
        uint32_t high = po_term_var(t, NULL, t->extent[v] / (below * d->extent));
        t->extent[v] = below;
        for (uint32_t slot = 0; slot <= t->n_factors; slot++) {
            po_index *at = slot ? &t->factor[slot - 1].at : &t->out;
            for (uint32_t y = 0; y < at->rank; y++) {
                int64_t of = po_index_coef(t, at, y, v);
                po_index_add(t, at, y, of * below, digit);
                po_index_add(t, at, y, of * below * d->extent, high);
            }
        }
        return is_digit(t, &t->out, d->axis, dim, digit, d) ? digit : PO_NONE;
    }
    return PO_NONE;
}

typedef struct inputs {
    uint32_t *value; /* of the new program */
    uint32_t n, cap;
} inputs;

static uint32_t operand_for(contractor *c, po_sum *sum, inputs *in, const po_operand *op,
                            uint32_t value, const int64_t *dims) {
    uint32_t k = 0;
    while (k < in->n && in->value[k] != value)
        k++;
    if (k == in->n)
        PO_PUSH(c->arena, in->value, in->n, in->cap, value);
    return op->kind == PO_OPERAND_INPUT ? po_sum_input(sum, k, op->rank, dims)
                                        : po_sum_atom(sum, op->kind, k, op->eps, op->rank, dims);
}

/* One term with the digit taken out of its output and of the one factor that has it. */
static bool contract_term(contractor *c, const po_program_step *step, const po_term *from,
                          const po_digit_of_axis *d, uint32_t coefficients, po_sum *sum,
                          inputs *in) {
    const po_sum *old = step->sum;
    /* First with the old operands, to find the digit; then with the new ones. */
    po_sum *draft = po_sum_create(c->arena, old->rank, old->dims);
    po_term *t = copy_term(draft, from);
    copy_index(from, &from->out, t, &t->out);
    for (uint32_t k = 0; k < from->n_factors; k++) {
        const po_operand *op = &old->operands[from->factor[k].operand];
        po_index *at = po_term_factor(draft, t, po_sum_table(draft, op->rank, op->dims, NULL));
        if (!at)
            return false;
        copy_index(from, &from->factor[k].at, t, at);
    }
    uint32_t var = digit_var(t, d, old->dims[d->axis]), carrier = PO_NONE;
    po_digit_of_axis inner = {0, 0, d->extent};
    if (var == PO_NONE)
        return false;
    for (uint32_t x = 0; x < old->rank; x++)
        if (x != d->axis && po_index_coef(t, &t->out, x, var))
            return false;
    for (uint32_t k = 0; k < t->n_factors; k++)
        for (uint32_t y = 0; y < t->factor[k].at.rank; y++) {
            int64_t coef = po_index_coef(t, &t->factor[k].at, y, var);
            if (coef == 0)
                continue;
            if (carrier != PO_NONE || coef < 0)
                return false;
            carrier = k;
            inner.axis = y;
            inner.stride = coef;
        }
    if (carrier == PO_NONE)
        return false;
    const po_operand *op = &old->operands[from->factor[carrier].operand];
    if (op->kind != PO_OPERAND_INPUT ||
        !is_digit(t, &t->factor[carrier].at, inner.axis, op->dims[inner.axis], var, &inner))
        return false;
    uint32_t inner_value = contract(c, step->in[op->input], &inner, coefficients);
    if (inner_value == PO_NONE)
        return false;
    drop_digit(t, &t->out, d->axis, var, d);
    drop_digit(t, &t->factor[carrier].at, inner.axis, var, &inner);
    t->extent[var] = 1;
    po_term *made = copy_term(sum, t);
    copy_index(t, &t->out, made, &made->out);
    for (uint32_t k = 0; k < t->n_factors; k++) {
        const po_operand *was = &old->operands[from->factor[k].operand];
        uint32_t id;
        if (was->kind == PO_OPERAND_TABLE) {
            id = po_sum_table(sum, was->rank, was->dims, was->table);
        } else if (k == carrier) {
            id = operand_for(c, sum, in, was, inner_value, c->shapes[inner_value].dims);
        } else {
            emit(c, step->in[was->input]);
            id = operand_for(c, sum, in, was, number(c, step->in[was->input]), was->dims);
        }
        copy_index(t, &t->factor[k].at, made, po_term_factor(sum, made, id));
    }
    return true;
}

/* The new value that is the sum over the digit of a value of `from`; PO_NONE where there is none.
 */
static uint32_t contract(contractor *c, uint32_t value, const po_digit_of_axis *d,
                         uint32_t coefficients) {
    const po_program_step *step = c->maker[value];
    if (c->n_steps > MOST_STEPS)
        return PO_NONE;
    if (!step)
        return contract_leaf(c, value, d, coefficients);
    po_sum *sum = shorter(c, value, d);
    inputs in = {0};
    for (uint32_t i = 0; i < step->sum->n_terms; i++)
        if (!contract_term(c, step, &step->sum->terms[i], d, coefficients, sum, &in))
            return PO_NONE;
    if (!po_sum_check(sum) || po_sum_normalize(sum) != PO_OK)
        return PO_NONE;
    po_program_step made = {sum, in.value, in.n, add_value(c, sum), step->name};
    push_step(c, &made);
    return made.out;
}

static void start(contractor *c, po_arena *arena, const po_program *p, uint32_t n_sums,
                  const po_digit_of_axis *digits) {
    *c = (contractor){.arena = arena, .from = p, .n_sums = n_sums};
    c->maker = PO_NEW_N(arena, const po_program_step *, p->n_values);
    c->emitted = PO_NEW_N(arena, bool, p->n_values);
    for (uint32_t i = 0; i < p->n_steps; i++)
        c->maker[p->steps[i].out] = &p->steps[i];
    for (uint32_t i = 0; i < p->n_values + n_sums; i++) {
        uint32_t sum = i - p->n_inputs;
        po_tensor_shape shape = {1, NULL, 1};
        if (i >= p->n_inputs && sum < n_sums) {
            shape.dims = po_arena_memdup(arena, &digits[sum].extent, sizeof(int64_t));
            shape.count = digits[sum].extent;
        } else {
            shape = p->values[i < p->n_inputs ? i : i - n_sums];
        }
        PO_PUSH(arena, c->shapes, c->n_values, c->cap_values, shape);
    }
}

/* NULL where an output cannot be summed so. `only` this one is kept; PO_NONE: all. */
static const po_program *contracted(po_arena *arena, const po_program *p, uint32_t only,
                                    const po_digit_of_axis *digits) {
    contractor c;
    start(&c, arena, p, p->n_outputs, digits);
    po_program *made = PO_NEW(arena, po_program);
    uint32_t *outputs = PO_NEW_N(arena, uint32_t, p->n_outputs);
    for (uint32_t k = 0; k < p->n_outputs; k++) {
        outputs[k] = number(&c, p->outputs[k]);
        if (only != PO_NONE && k != only)
            continue;
        if (digits[k].extent == 1)
            emit(&c, p->outputs[k]);
        else
            outputs[k] = contract(&c, p->outputs[k], &digits[k], p->n_inputs + k);
        if (outputs[k] == PO_NONE)
            return NULL;
    }
    *made = *p;
    made->values = c.shapes;
    made->n_values = c.n_values;
    made->n_inputs = p->n_inputs + p->n_outputs;
    made->steps = c.steps;
    made->n_steps = c.n_steps;
    made->outputs = outputs;
    made->degree = p->degree == UINT32_MAX ? p->degree : p->degree + 1;
    return made;
}

/* Digits of an output as the terms of the sum that makes it have them, the longest first. */
static uint32_t choices(const po_program *p, uint32_t output, po_digit_of_axis *found, uint32_t n) {
    const po_sum *sum = NULL;
    for (uint32_t i = 0; i < p->n_steps; i++)
        if (p->steps[i].out == p->outputs[output])
            sum = p->steps[i].sum;
    if (!sum || sum->n_terms == 0)
        return n;
    const po_term *t = &sum->terms[0];
    for (uint32_t x = 0; x < sum->rank; x++)
        for (uint32_t v = 0; v < t->n_vars; v++) {
            po_digit_of_axis d = {x, po_index_coef(t, &t->out, x, v), t->extent[v]};
            if (d.stride <= 0 || d.extent < 2 || !is_digit(t, &t->out, x, sum->dims[x], v, &d))
                continue;
            uint32_t i = n < MOST_CHOICES ? n++ : n - 1;
            if (i == MOST_CHOICES - 1 && n == MOST_CHOICES && found[i].extent >= d.extent)
                continue;
            for (; i && found[i - 1].extent < d.extent; i--)
                found[i] = found[i - 1];
            found[i] = d;
        }
    return n;
}

bool po_programs_contract(po_arena *arena, const po_program *a, const po_program *b,
                          const po_program **sum_a, const po_program **sum_b,
                          po_digit_of_axis *digits, double *cost) {
    bool any = false;
    for (uint32_t k = 0; k < a->n_outputs; k++)
        digits[k] = (po_digit_of_axis){0, 1, 1};
    for (uint32_t k = 0; k < a->n_outputs; k++) {
        po_digit_of_axis found[MOST_CHOICES + 1] = {{0, 0, 0}}, best = digits[k];
        uint32_t n = choices(a, k, found, 0);
        n = choices(b, k, found, n);
        double least = -1;
        for (uint32_t i = 0; i < n; i++) {
            digits[k] = found[i];
            const po_program *p = contracted(arena, a, k, digits);
            const po_program *q = p ? contracted(arena, b, k, digits) : NULL;
            double work = q ? po_program_cost(p) + po_program_cost(q) : 0;
            if (q && (least < 0 || work < least)) {
                least = work;
                best = found[i];
            }
        }
        digits[k] = best;
        any |= best.extent > 1;
    }
    if (!any)
        return false;
    *sum_a = contracted(arena, a, PO_NONE, digits);
    *sum_b = contracted(arena, b, PO_NONE, digits);
    if (!*sum_a || !*sum_b)
        return false;
    *cost = po_program_cost(*sum_a) + po_program_cost(*sum_b);
    return 2 * *cost < po_program_cost(a) + po_program_cost(b);
}

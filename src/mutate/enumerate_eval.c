/* Compact programs at single positions, modulo PO_P. */
#include "base/modp.h"
#include "mutate/enumerate.h"

enum { EN_LAID_OUT = 1 << 18, EN_REMEMBERED = 1 << 16, EN_TAPS = 512 };

/* What an operand reads: base elements by tables, one for each axis. */
typedef struct view {
    uint32_t slot;
    en_shape shape;          /* as the operator sees it */
    en_shape base;           /* of the slot, padded, with one more axis where a digit is twice */
    const en_rt *rt;         /* NULL: the slot as it is */
    const uint32_t *values;  /* of the base; NULL: made one by one */
    int32_t *table[EN_RANK]; /* offsets by index on the axis */
    int32_t *room;
    uint32_t cap;
} view;

/* Inputs with zeros around them, or along a diagonal. */
typedef struct variant {
    uint32_t input;
    uint8_t lo[EN_RANK], hi[EN_RANK], twice;
    int32_t twice_size, twice_mult;
    const uint32_t *values;
} variant;

typedef struct memory {
    uint32_t *value, *stamp;
    int64_t size;
} memory;

struct en_eval {
    po_arena *arena;
    uint32_t n_in;
    en_shape in[EN_INPUTS];
    uint32_t table, of_table; /* 1 + the input that is a table, and its elements */
    const uint32_t *values[EN_INPUTS];
    variant *variants;
    uint32_t n_variants, cap_variants;
    const en_program *p;
    view views[EN_OPS][EN_ARGS];
    uint32_t epoch[EN_OPS], next_epoch;
    uint8_t maker[EN_SLOTS];
    memory memory[EN_SLOTS];
};

/* Two rounds of a 64-bit mixer (splitmix64's constants), folded to the field. */
static uint32_t input_value(const en_eval *e, uint32_t input, int64_t at) {
    if (input + 1 == e->table)
        return e->of_table;
    uint64_t z = (uint64_t)at * 0x9E3779B97F4A7C15u + (uint64_t)(input + 1) * 0xD1B54A32D192ED03u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return po_mod_reduce(z >> 2);
}

int64_t en_window_of(const en_shape *table) {
    int64_t n = 1;
    for (uint32_t i = 2; i < table->rank; i++)
        n *= table->d[i];
    return n;
}

en_eval *en_eval_create(po_arena *arena, const en_program *of, bool whole) {
    en_eval *e = PO_NEW(arena, en_eval);
    e->arena = arena;
    e->n_in = of->n_in;
    e->table = of->table;
    if (of->table)
        e->of_table = po_mod_inverse((uint32_t)en_window_of(&of->shape[of->table - 1]));
    for (uint32_t i = 0; i < of->n_in; i++) {
        e->in[i] = of->shape[i];
        int64_t count = en_count(&of->shape[i]);
        if (!whole || count > EN_LAID_OUT)
            continue;
        uint32_t *values = PO_NEW_N(arena, uint32_t, count);
        for (int64_t k = 0; k < count; k++)
            values[k] = input_value(e, i, k);
        e->values[i] = values;
    }
    return e;
}

/* --- views --- */

static void base_of(const en_eval *e, const en_rt *rt, const en_shape *slot, en_shape *base) {
    (void)e;
    *base = *slot;
    for (uint32_t i = 0; i < slot->rank; i++)
        base->d[i] += rt->lo[i] + rt->hi[i];
    if (rt->twice)
        base->d[base->rank++] = rt->twice_size;
}

/* An element of an input's base, from its index. */
static uint32_t base_value(const en_eval *e, uint32_t input, const en_rt *rt, const en_shape *base,
                           int64_t at) {
    const en_shape *in = &e->in[input];
    int32_t index[EN_RANK];
    for (uint32_t i = base->rank; i-- > 0; at /= base->d[i])
        index[i] = (int32_t)(at % base->d[i]);
    if (rt->twice &&
        index[rt->twice - 1] / rt->twice_mult % rt->twice_size != index[base->rank - 1])
        return 0;
    int64_t from = 0;
    for (uint32_t i = 0; i < in->rank; i++) {
        int32_t k = index[i] - rt->lo[i];
        if (k < 0 || k >= in->d[i])
            return 0;
        from = from * in->d[i] + k;
    }
    return e->values[input] ? e->values[input][from] : input_value(e, input, from);
}

static const uint32_t *variant_values(en_eval *e, uint32_t input, const en_rt *rt,
                                      const en_shape *base) {
    bool plain = !rt->twice;
    for (uint32_t i = 0; i < EN_RANK; i++)
        plain &= !rt->lo[i] && !rt->hi[i];
    if (plain)
        return e->values[input];
    int64_t count = en_count(base);
    if (!e->values[input] || count > EN_LAID_OUT)
        return NULL;
    for (uint32_t i = 0; i < e->n_variants; i++) {
        const variant *v = &e->variants[i];
        if (v->input == input && v->twice == rt->twice && v->twice_size == rt->twice_size &&
            v->twice_mult == rt->twice_mult && memcmp(v->lo, rt->lo, sizeof v->lo) == 0 &&
            memcmp(v->hi, rt->hi, sizeof v->hi) == 0)
            return v->values;
    }
    uint32_t *values = PO_NEW_N(e->arena, uint32_t, count);
    for (int64_t k = 0; k < count; k++)
        values[k] = base_value(e, input, rt, base, k);
    variant v = {.input = input,
                 .twice = rt->twice,
                 .twice_size = rt->twice_size,
                 .twice_mult = rt->twice_mult,
                 .values = values};
    memcpy(v.lo, rt->lo, sizeof v.lo);
    memcpy(v.hi, rt->hi, sizeof v.hi);
    PO_PUSH(e->arena, e->variants, e->n_variants, e->cap_variants, v);
    return values;
}

void en_eval_view(en_eval *e, uint32_t op, uint32_t arg) {
    view *v = &e->views[op][arg];
    const en_rt *rt = e->p->view[op][arg];
    v->slot = e->p->op[op].in[arg];
    v->rt = rt;
    v->shape = rt ? rt->out : e->p->shape[v->slot];
    if (rt)
        base_of(e, rt, &e->p->shape[v->slot], &v->base);
    else
        v->base = v->shape;
    if (v->slot >= e->n_in)
        v->values = NULL;
    else
        v->values = rt ? variant_values(e, v->slot, rt, &v->base) : e->values[v->slot];
    uint32_t need = 0;
    for (uint32_t i = 0; i < v->shape.rank; i++)
        need += (uint32_t)v->shape.d[i];
    if (need > v->cap) {
        v->cap = need * 2;
        v->room = PO_NEW_N(e->arena, int32_t, v->cap);
    }
    int32_t stride[EN_RANK], *room = v->room, step = 1;
    for (uint32_t i = v->base.rank; i-- > 0; step *= v->base.d[i])
        stride[i] = step;
    const en_digit *digit = rt ? rt->digit : NULL;
    for (uint32_t i = 0; i < v->shape.rank; i++) {
        int32_t dim = v->shape.d[i];
        v->table[i] = room;
        if (!rt) {
            for (int32_t k = 0; k < dim; k++)
                room[k] = k * stride[i];
        } else {
            /* innermost digit first: what stands is repeated for each value of the next */
            int32_t done = 1;
            room[0] = 0;
            for (uint32_t n = rt->len[i]; n-- > 0;) {
                int32_t by = digit[n].mult * stride[digit[n].axis];
                for (int32_t t = 1; t < digit[n].size; t++)
                    for (int32_t k = 0; k < done; k++)
                        room[t * done + k] = room[k] + t * by;
                done *= digit[n].size;
            }
            digit += rt->len[i];
        }
        room += dim;
    }
}

void en_eval_changed(en_eval *e, uint32_t op) {
    for (uint32_t i = op; i < EN_OPS; i++)
        e->epoch[i] = ++e->next_epoch;
}

void en_eval_program(en_eval *e, const en_program *p) {
    e->p = p;
    for (uint32_t i = 0; i < p->n_ops; i++) {
        for (uint32_t k = 0; k < p->op[i].n_in; k++)
            en_eval_view(e, i, k);
        for (uint32_t k = 0; k < p->op[i].n_out; k++)
            e->maker[p->op[i].out + k] = (uint8_t)i;
    }
    en_eval_changed(e, 0);
}

/* --- values --- */

static uint32_t slot_value(en_eval *e, uint32_t slot, int64_t at);

static inline uint32_t fetch(en_eval *e, const view *v, int32_t at) {
    if (v->values)
        return v->values[at];
    if (v->slot >= e->n_in)
        return slot_value(e, v->slot, at);
    if (v->rt)
        return base_value(e, v->slot, v->rt, &v->base, at);
    return input_value(e, v->slot, at);
}

typedef struct dot {
    uint64_t sum;
    uint32_t pending;
} dot;

static inline void dot_add(dot *d, uint32_t a, uint32_t b) {
    d->sum += (uint64_t)a * b;
    if (++d->pending == 3) {
        d->sum = po_mod_reduce(d->sum);
        d->pending = 0;
    }
}

static uint32_t conv_value(en_eval *e, uint32_t n, const int32_t *index) {
    const en_op *op = &e->p->op[n];
    const view *a = &e->views[n][0], *b = &e->views[n][1];
    uint32_t maps = a->shape.rank - 2u, taps = 1;
    int32_t x_at[EN_TAPS], w_at[EN_TAPS];
    x_at[0] = w_at[0] = 0;
    for (uint32_t m = 0; m < maps; m++) {
        int32_t kernel = b->shape.d[2 + m], dim = a->shape.d[2 + m], valid = 0;
        int32_t x_off[EN_TAPS], w_off[EN_TAPS];
        for (int32_t r = 0; r < kernel && r < EN_TAPS; r++) {
            int32_t y = index[2 + m] * op->stride[m] + r * op->dilation[m] - op->lo[m];
            if (y < 0 || y >= dim)
                continue;
            x_off[valid] = a->table[2 + m][y];
            w_off[valid++] = b->table[2 + m][r];
        }
        if (valid == 0)
            return 0;
        for (uint32_t t = taps; t-- > 0;) {
            int32_t x = x_at[t], w = w_at[t];
            for (int32_t r = 0; r < valid; r++) {
                x_at[t + (uint32_t)r * taps] = x + x_off[r];
                w_at[t + (uint32_t)r * taps] = w + w_off[r];
            }
        }
        taps *= (uint32_t)valid;
    }
    int32_t channels = b->shape.d[1], groups = a->shape.d[1] / channels;
    int32_t first = index[1] / (b->shape.d[0] / groups) * channels;
    dot d = {0, 0};
    for (int32_t c = 0; c < channels; c++) {
        int32_t x = a->table[0][index[0]] + a->table[1][first + c];
        int32_t w = b->table[0][index[1]] + b->table[1][c];
        if (a->values && b->values)
            for (uint32_t t = 0; t < taps; t++)
                dot_add(&d, a->values[x + x_at[t]], b->values[w + w_at[t]]);
        else
            for (uint32_t t = 0; t < taps; t++)
                dot_add(&d, fetch(e, a, x + x_at[t]), fetch(e, b, w + w_at[t]));
    }
    return po_mod_reduce(d.sum);
}

static int32_t offset_of(const view *v, const int32_t *index, uint32_t n, uint32_t rank) {
    int32_t at = 0;
    for (uint32_t i = 0; i < n; i++) { /* the last n axes before the matrix, broadcast */
        uint32_t axis = rank - n + i;
        at += v->table[i][v->shape.d[i] == 1 ? 0 : index[axis]];
    }
    return at;
}

static uint32_t matmul_value(en_eval *e, uint32_t n, const int32_t *index, uint32_t rank) {
    const view *a = &e->views[n][0], *b = &e->views[n][1];
    uint32_t ra = a->shape.rank, rb = b->shape.rank;
    int32_t x = offset_of(a, index, ra - 2u, rank - 2u) + a->table[ra - 2][index[rank - 2]];
    int32_t y = offset_of(b, index, rb - 2u, rank - 2u) + b->table[rb - 1][index[rank - 1]];
    const int32_t *xs = a->table[ra - 1], *ys = b->table[rb - 2];
    int32_t depth = a->shape.d[ra - 1];
    dot d = {0, 0};
    if (a->values && b->values)
        for (int32_t k = 0; k < depth; k++)
            dot_add(&d, a->values[x + xs[k]], b->values[y + ys[k]]);
    else
        for (int32_t k = 0; k < depth; k++)
            dot_add(&d, fetch(e, a, x + xs[k]), fetch(e, b, y + ys[k]));
    return po_mod_reduce(d.sum);
}

static uint32_t pool_value(en_eval *e, uint32_t n, const int32_t *index) {
    const en_op *op = &e->p->op[n];
    const view *a = &e->views[n][0];
    uint32_t maps = a->shape.rank - 2u, count = 1, sum = 0, window[EN_MAPS] = {0};
    for (uint32_t m = 0; m < maps; m++)
        count *= window[m] = (uint32_t)(int32_t)op->window[m];
    for (uint32_t t = 0; t < count; t++) {
        int32_t at = a->table[0][index[0]] + a->table[1][index[1]];
        uint32_t rest = t;
        bool inside = true;
        for (uint32_t m = 0; m < maps; m++) {
            int32_t r = (int32_t)(rest % window[m]);
            int32_t y = index[2 + m] * op->stride[m] + r * op->dilation[m] - op->lo[m];
            rest /= window[m];
            inside = inside && y >= 0 && y < a->shape.d[2 + m];
            if (inside)
                at += a->table[2 + m][y];
        }
        if (inside)
            sum = po_mod_add(sum, fetch(e, a, at));
    }
    return po_mod_mul(sum, po_mod_inverse(count));
}

static uint32_t element(en_eval *e, const view *v, const int32_t *index) {
    int32_t at = 0;
    for (uint32_t i = 0; i < v->shape.rank; i++)
        at += v->table[i][index[i]];
    return fetch(e, v, at);
}

static uint32_t compute(en_eval *e, uint32_t n, uint32_t slot, int64_t at) {
    const en_op *op = &e->p->op[n];
    const en_shape *shape = &e->p->shape[slot];
    int32_t index[EN_RANK] = {0};
    int64_t rest = at;
    if (op->kind == EN_RESHAPE)
        return fetch(e, &e->views[n][0], (int32_t)at);
    for (uint32_t i = shape->rank; i-- > 0; rest /= shape->d[i])
        index[i] = (int32_t)(rest % shape->d[i]);
    switch (op->kind) {
    case EN_CONV:
        return conv_value(e, n, index);
    case EN_MATMUL:
        return matmul_value(e, n, index, shape->rank);
    case EN_POOL:
        return pool_value(e, n, index);
    case EN_ADD:
        return po_mod_add(element(e, &e->views[n][0], index), element(e, &e->views[n][1], index));
    case EN_CONCAT: {
        uint32_t k = 0;
        if (op->how == EN_STACKED)
            return element(e, &e->views[n][index[0]], index + 1);
        if (op->how == EN_EVEN) {
            int32_t apart = shape->d[op->axis] / op->n_in;
            k = (uint32_t)(index[op->axis] / apart);
            index[op->axis] %= apart;
            if (index[op->axis] >= e->views[n][k].shape.d[op->axis])
                return 0;
        }
        while (index[op->axis] >= e->views[n][k].shape.d[op->axis])
            index[op->axis] -= e->views[n][k++].shape.d[op->axis];
        return element(e, &e->views[n][k], index);
    }
    case EN_SPLIT:
        if (op->how == EN_STACKED) {
            memmove(index + 1, index, (EN_RANK - 1) * sizeof *index);
            index[0] = (int32_t)(slot - op->out);
        }
        for (uint32_t k = 0; k < slot - op->out && op->how != EN_STACKED; k++)
            index[op->axis] +=
                op->how == EN_EVEN ? e->views[n][0].shape.d[op->axis] / op->n_out : op->size[k];
        return element(e, &e->views[n][0], index);
    default: /* EN_MOVE */
        return element(e, &e->views[n][0], index);
    }
}

/* Makes room for the results of a tensor of `count` elements; false where it has too many. */
static bool remember(en_eval *e, memory *m, int64_t count) {
    if (count > EN_REMEMBERED)
        return false;
    m->size = m->size ? m->size : 256;
    while (m->size < count)
        m->size *= 2;
    m->value = po_arena_alloc(e->arena, (size_t)m->size * sizeof *m->value);
    m->stamp = PO_NEW_N(e->arena, uint32_t, m->size);
    return true;
}

static uint32_t slot_value(en_eval *e, uint32_t slot, int64_t at) {
    uint32_t op = e->maker[slot];
    memory *m = &e->memory[slot];
    if (at >= m->size && !remember(e, m, en_count(&e->p->shape[slot])))
        return compute(e, op, slot, at);
    if (m->stamp[at] != e->epoch[op]) {
        m->value[at] = compute(e, op, slot, at);
        m->stamp[at] = e->epoch[op];
    }
    return m->value[at];
}

uint32_t en_eval_output(en_eval *e, uint32_t output, const en_shape *shape, const int32_t *index) {
    const en_rt *rt = e->p->last[output];
    uint32_t slot = e->p->out[output];
    int64_t at = 0;
    if (rt) {
        for (uint32_t i = 0; i < rt->n; i++) {
            const en_digit *d = &rt->digit[i];
            at = at * d->size + (index[d->axis] + rt->lo[d->axis]) / d->mult % d->size;
        }
    } else {
        for (uint32_t i = 0; i < shape->rank; i++)
            at = at * shape->d[i] + index[i];
    }
    if (slot >= e->n_in)
        return slot_value(e, slot, at);
    return e->values[slot] ? e->values[slot][at] : input_value(e, slot, at);
}

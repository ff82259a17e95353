/* By the terms' indices alone: copies that reach every element once are views or moves, a product
 * covers its output digit by digit, and a scatter (a transposed convolution) has at most 16
 * phases. */
#include "superopt/lower/sum_kind.h"

#include "mugraph/mugraph.h"

enum { MOST_TERMS = 16, MOST_COPIES = 256 /* terms of a Concat */, MOST_PHASES = 16 };

/* Whether the index takes every element of the axes once, digit by digit. */
static bool covers(const po_term *t, const po_index *at, const int64_t *dims) {
    for (uint32_t v = 0; v < t->n_vars; v++) {
        uint32_t axes = 0;
        for (uint32_t x = 0; x < at->rank; x++)
            axes += po_index_coef(t, at, x, v) != 0;
        if (axes > 1)
            return false;
    }
    for (uint32_t x = 0; x < at->rank; x++) {
        int64_t reach = 1;
        if (at->base[x] != 0)
            return false;
        for (bool found = true; found;) {
            found = false;
            for (uint32_t v = 0; v < t->n_vars && !found; v++)
                if (t->extent[v] > 1 && po_index_coef(t, at, x, v) == reach) {
                    reach *= t->extent[v];
                    found = true;
                }
        }
        if (reach != dims[x])
            return false;
        for (uint32_t v = 0; v < t->n_vars; v++)
            if (t->extent[v] > 1 && po_index_coef(t, at, x, v) >= reach)
                return false;
    }
    return true;
}

uint32_t po_sum_axis_variable(const po_term *t, const int64_t *dims, uint32_t x) {
    uint32_t var = PO_NONE;
    for (uint32_t v = 0; v < t->n_vars; v++)
        if (po_index_coef(t, &t->out, x, v) != 0 && t->extent[v] > 1) {
            if (var != PO_NONE || po_index_coef(t, &t->out, x, v) != 1)
                return PO_NONE;
            var = v;
        }
    return var != PO_NONE && t->extent[var] == dims[x] ? var : PO_NONE;
}

static bool is_view(const po_term *t, const int64_t *dims) {
    for (uint32_t x = 0; x < t->out.rank; x++)
        if (t->out.base[x] != 0 || (dims[x] > 1 && po_sum_axis_variable(t, dims, x) == PO_NONE))
            return false;
    return true;
}

/* Variable i is the index along axis i. */
static bool is_pointwise(const po_term *t, const int64_t *dims) {
    for (uint32_t x = 0; x < t->out.rank; x++) {
        if (t->out.base[x] != 0 || x >= t->n_vars || t->extent[x] != dims[x])
            return false;
        for (uint32_t v = 0; v < t->n_vars; v++)
            if (po_index_coef(t, &t->out, x, v) != (v == x) && t->extent[v] > 1)
                return false;
    }
    return true;
}

bool po_sum_reduces(const po_term *t) {
    for (uint32_t v = 0; v < t->n_vars; v++) {
        bool kept = t->extent[v] == 1;
        for (uint32_t x = 0; x < t->out.rank; x++)
            kept |= po_index_coef(t, &t->out, x, v) != 0;
        if (!kept)
            return true;
    }
    return false;
}

static bool is_copy(const po_sum *sum, const po_term *t) {
    return t->scale.num == 1 && t->scale.den == 1 && t->n_factors == 1 &&
           sum->operands[t->factor[0].operand].kind == PO_OPERAND_INPUT && !po_sum_reduces(t);
}

static bool plain_operands(const po_sum *sum) {
    for (uint32_t i = 0; i < sum->n_operands; i++)
        if ((sum->operands[i].kind != PO_OPERAND_INPUT &&
             sum->operands[i].kind != PO_OPERAND_TABLE) ||
            sum->operands[i].rank > PO_MU_MAX_RANK)
            return false;
    return true;
}

bool po_sum_find_scatter(const po_sum *sum, const po_term *t, po_sum_scatter *s) {
    *s = (po_sum_scatter){.phases = 1};
    if (t->n_factors != 2)
        return false;
    for (uint32_t x = 0; x < t->out.rank; x++) {
        uint32_t var[2], n = 0, there = 0;
        for (uint32_t v = 0; v < t->n_vars; v++) {
            if (po_index_coef(t, &t->out, x, v) == 0)
                continue;
            bool moves = false, taps = false;
            for (uint32_t k = 0; k < t->factor[0].at.rank; k++)
                moves |= po_index_coef(t, &t->factor[0].at, k, v) != 0;
            for (uint32_t k = 0; k < t->factor[1].at.rank; k++)
                taps |= po_index_coef(t, &t->factor[1].at, k, v) != 0;
            there++;
            if (n < 2 && moves != taps)
                var[n++] = v;
        }
        if (x < 2) { /* batch and channels */
            if (t->out.base[x] != 0)
                return false;
            continue;
        }
        if (there != 2 || n != 2 || s->n == PO_SUM_SPATIAL)
            return false;
        uint32_t first = 0;
        for (uint32_t k = 0; k < t->factor[0].at.rank; k++)
            first |= po_index_coef(t, &t->factor[0].at, k, var[0]) != 0;
        uint32_t i = s->n++;
        s->axis[i] = x;
        s->v[i] = var[first ? 0 : 1];
        s->r[i] = var[first ? 1 : 0];
        s->stride[i] = po_index_coef(t, &t->out, x, s->v[i]);
        s->dilation[i] = po_index_coef(t, &t->out, x, s->r[i]);
        s->pad[i] = -t->out.base[x];
        if (s->stride[i] < 1 || s->pad[i] < 0 || s->stride[i] > MOST_PHASES ||
            (s->stride[i] > 1 && s->dilation[i] != 1) || s->dilation[i] < 1 ||
            sum->dims[x] < s->stride[i] || t->extent[s->r[i]] < s->stride[i])
            return false;
        s->phases *= (uint32_t)s->stride[i];
    }
    return s->n > 0 && s->phases <= MOST_PHASES;
}

/* A copy to a block: along each axis one variable from some index on. */
static bool is_block(const po_term *t, const int64_t *dims) {
    for (uint32_t x = 0; x < t->out.rank; x++) {
        int64_t last = t->out.base[x];
        uint32_t there = 0;
        for (uint32_t v = 0; v < t->n_vars; v++) {
            int64_t coef = t->extent[v] > 1 ? po_index_coef(t, &t->out, x, v) : 0;
            if (coef == 0)
                continue;
            there += coef == 1 ? 1 : 2;
            last += t->extent[v] - 1;
        }
        if (there > 1 || t->out.base[x] < 0 || last >= dims[x])
            return false;
    }
    for (uint32_t v = 0; v < t->n_vars; v++) {
        uint32_t axes = 0;
        for (uint32_t x = 0; x < t->out.rank; x++)
            axes += po_index_coef(t, &t->out, x, v) != 0;
        if (t->extent[v] > 1 && axes != 1)
            return false;
    }
    return true;
}

po_sum_kind po_sum_kind_of(const po_sum *sum) {
    int64_t reached = 0;
    bool copies = true;
    if (sum->n_terms == 0 || sum->n_terms > MOST_COPIES || sum->rank > PO_MU_MAX_RANK ||
        !plain_operands(sum))
        return PO_SUM_NONE;
    for (uint32_t i = 0; i < sum->n_terms; i++) {
        const po_term *t = &sum->terms[i];
        int64_t size = 1;
        for (uint32_t v = 0; v < t->n_vars; v++)
            size *= t->extent[v];
        reached += size;
        copies &= is_copy(sum, t);
    }
    if (copies && reached == sum->count)
        return sum->n_terms == 1 && is_view(&sum->terms[0], sum->dims) ? PO_SUM_VIEW : PO_SUM_MOVES;
    if (copies && sum->n_terms == 1 && is_block(&sum->terms[0], sum->dims))
        return PO_SUM_PART;
    const po_term *core = &sum->terms[0];
    bool covered = covers(core, &core->out, sum->dims);
    po_sum_scatter found;
    if (sum->n_terms > MOST_TERMS || core->n_factors == 0 || core->n_factors > PO_SUM_FACTORS ||
        (!covered && !po_sum_find_scatter(sum, core, &found)))
        return PO_SUM_NONE;
    for (uint32_t i = 1; i < sum->n_terms; i++)
        if (!is_pointwise(&sum->terms[i], sum->dims) || po_sum_reduces(&sum->terms[i]) ||
            sum->terms[i].n_factors > PO_SUM_FACTORS)
            return PO_SUM_NONE;
    return covered ? PO_SUM_PRODUCT : PO_SUM_SCATTER;
}

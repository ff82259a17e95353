/* What an indexed sum reads of its operands where it makes a region of its output: the variables at
 * which each term writes there, and where these lead. */
#include "base/num.h"
#include "correct/ways.h"

/* Of a region with steps only every step-th value of the variable that alone moves an axis. */
static bool align_vars(const po_sum *sum, const po_term *t, const po_stepped *region, int64_t *lo,
                       int64_t *hi) {
    for (uint32_t x = 0; x < sum->rank; x++) {
        uint32_t movers = 0, at = 0;
        for (uint32_t v = 0; v < t->n_vars; v++)
            if (po_index_coef(t, &t->out, x, v)) {
                movers++;
                at = v;
            }
        int64_t step = region->step[x], first = region->first[x] - t->out.base[x];
        if (step == 1 || movers != 1 || po_index_coef(t, &t->out, x, at) != 1)
            continue;
        lo[at] = first + po_ceil_div(lo[at] - first, step) * step;
        hi[at] = first + po_floor_div(hi[at] - first, step) * step;
        if (lo[at] > hi[at])
            return false;
    }
    return true;
}

bool po_sum_narrow(const po_sum *sum, const po_term *t, const po_stepped *region, int64_t *lo,
                   int64_t *hi) {
    for (uint32_t v = 0; v < t->n_vars; v++) {
        lo[v] = 0;
        hi[v] = t->extent[v] - 1;
    }
    for (bool changed = true; changed;) {
        changed = false;
        for (uint32_t x = 0; x < sum->rank; x++) {
            int64_t least = region->first[x] - t->out.base[x];
            int64_t most = least + region->step[x] * (region->count[x] - 1), low = 0, high = 0;
            for (uint32_t v = 0; v < t->n_vars; v++) {
                int64_t c = po_index_coef(t, &t->out, x, v);
                low += c * (c < 0 ? hi[v] : lo[v]);
                high += c * (c < 0 ? lo[v] : hi[v]);
            }
            if (low > most || high < least)
                return false;
            for (uint32_t v = 0; v < t->n_vars; v++) {
                int64_t c = po_index_coef(t, &t->out, x, v);
                if (c <= 0)
                    continue;
                int64_t from = po_ceil_div(least - (high - c * hi[v]), c);
                int64_t to = po_floor_div(most - (low - c * lo[v]), c);
                if (from <= lo[v] && to >= hi[v])
                    continue;
                high -= to < hi[v] ? c * (hi[v] - to) : 0;
                low += from > lo[v] ? c * (from - lo[v]) : 0;
                lo[v] = from > lo[v] ? from : lo[v];
                hi[v] = to < hi[v] ? to : hi[v];
                if (lo[v] > hi[v])
                    return false;
                changed = true;
            }
        }
    }
    return align_vars(sum, t, region, lo, hi);
}

/* Where the operand's axis moves with one axis of the output alone, in steps of 1, its steps are
 * those of the region. */
static int64_t step_of(const po_sum *sum, const po_term *t, const po_index *at, uint32_t axis,
                       const po_stepped *region) {
    int64_t step = 1;
    for (uint32_t v = 0; v < t->n_vars; v++) {
        int64_t c = po_index_coef(t, at, axis, v);
        if (!c)
            continue;
        for (uint32_t x = 0; x < sum->rank; x++) {
            int64_t o = po_index_coef(t, &t->out, x, v);
            if (o == 1 && c == 1)
                step = region->step[x];
        }
    }
    for (uint32_t v = 0; step != 1 && v < t->n_vars; v++) {
        bool others = t->extent[v] > 1 && po_index_coef(t, at, axis, v) != 0;
        for (uint32_t x = 0; others && x < sum->rank; x++)
            others = po_index_coef(t, &t->out, x, v) == 0;
        if (others)
            step = 1; /* a window */
    }
    return step;
}

static bool on_axis_0(const po_sum *sum, const po_term *t, const po_index *at) {
    if (!sum->rank || !at->rank || t->out.base[0] || at->base[0])
        return false;
    for (uint32_t v = 0; v < t->n_vars; v++)
        if (po_index_coef(t, &t->out, 0, v) != po_index_coef(t, at, 0, v))
            return false;
    return true;
}

void po_sum_reads(const po_sum *sum, const po_stepped *region, uint32_t n_in,
                  po_operand_reach *in) {
    for (uint32_t i = 0; i < n_in; i++)
        in[i] = (po_operand_reach){.batched = true};
    for (uint32_t k = 0; k < sum->n_terms; k++) {
        const po_term *t = &sum->terms[k];
        int64_t lo[PO_SUM_MAX_VARS], hi[PO_SUM_MAX_VARS];
        if (!po_sum_narrow(sum, t, region, lo, hi))
            continue;
        for (uint32_t f = 0; f < t->n_factors; f++) {
            const po_operand *op = &sum->operands[t->factor[f].operand];
            const po_index *at = &t->factor[f].at;
            if (op->kind == PO_OPERAND_TABLE)
                continue;
            po_operand_reach *r = &in[op->input];
            r->batched &= on_axis_0(sum, t, at);
            for (uint32_t x = 0; x < at->rank; x++) {
                int64_t low = at->base[x], high = low;
                int64_t step = step_of(sum, t, at, x, region);
                for (uint32_t v = 0; v < t->n_vars; v++) {
                    int64_t c = po_index_coef(t, at, x, v);
                    low += c * (c < 0 ? hi[v] : lo[v]);
                    high += c * (c < 0 ? lo[v] : hi[v]);
                }
                if (!r->any || low < r->lo[x])
                    r->lo[x] = low;
                if (!r->any || high > r->hi[x])
                    r->hi[x] = high;
                r->step[x] = r->any && r->step[x] != step ? 1 : step;
            }
            r->any = true;
        }
    }
}

/* Inputs at the edges, and what may come of them. */
#include "superopt/plan/edges.h"

#include "base/hash.h"

#include <float.h>
#include <math.h>

static bool has(const po_mu_statement *const *s, uint32_t n, po_mu_function function) {
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t k = 0; k < s[i]->n_items; k++)
            if (s[i]->items[k].function == function)
                return true;
    return false;
}

po_edge_range po_edge_range_of(const po_mu_statement *const *s, uint32_t n) {
    /* Roots and logarithms of what is negative are nobody's: their arguments are made positive. */
    bool positive = has(s, n, PO_MU_SQRT) || has(s, n, PO_MU_LOG) || has(s, n, PO_MU_POW);
    po_edge_range r = {positive ? 0.05 : -1, has(s, n, PO_MU_EXP) ? 20 : 100, false};
    r.lowest = r.least < 0 && !has(s, n, PO_MU_TIMES) && !has(s, n, PO_MU_OVER);
    return r;
}

float po_edge_value(const po_edge_range *r, uint32_t id, uint64_t e, uint64_t row) {
    double random = r->least + (1 - r->least) * po_random_unit(1, id, e);
    uint64_t of_row = po_random_u64(3, id, e / row);
    switch (of_row % 8) {
    case 0:
        return r->least < 0 ? 0 : (float)random;
    case 1:
        return r->least < 0 ? (float)(random * 1e-39) : (float)(random * 1e-20);
    case 2:
        return (float)(random * r->large);
    case 3:
        return e % row == (of_row >> 8) % row ? (float)r->large : 0.5F;
    case 4:
        return r->lowest ? -FLT_MAX : 1;
    case 5:
        return r->lowest && e % row >= (of_row >> 8) % row ? -FLT_MAX : (float)random;
    default:
        return (float)random;
    }
}

bool po_edge_allows(po_values_kind kind, double found, double expected, double sum, double limit) {
    static const double most = 1e37, near = 1e30; /* sums that overflow; that may on the way */
    if (fabs(found - expected) <= limit || found == expected)
        return true;
    if (isnan(expected) ? isnan(found)
                        : fabs(expected) > (double)FLT_MAX && isinf(found) &&
                              signbit(found) == signbit(expected))
        return true;
    return kind == PO_VALUES_EDGES && sum > (isfinite(found) ? most : near);
}

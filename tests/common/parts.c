/* Parts of a batch, compared element by element. */
#include "parts.h"

#include <math.h>

static double at(const po_array *a, int64_t i) {
    return a->f ? a->f[i] : (double)a->i[i];
}

static double differ(double x, double y) {
    if (isnan(x) || isnan(y))
        return isnan(x) && isnan(y) ? 0 : INFINITY;
    if (isinf(x) || isinf(y))
        return x == y ? 0 : INFINITY;
    return fabs(x - y) / (1 + fabs(y));
}

double test_part_differs(const po_array *all, int64_t many, const po_array *one, int axis,
                         int64_t i) {
    int64_t before = 1, behind = 1, own = axis < 0 ? 1 : one->dims[axis],
            times = axis < 0 ? 1 : many;
    for (int d = 0; d < (int)one->rank; d++) {
        before *= d < axis || axis < 0 ? one->dims[d] : 1;
        behind *= axis >= 0 && d > axis ? one->dims[d] : 1;
    }
    if (all->rank != one->rank || all->count != times * one->count || all->s || one->s ||
        (axis >= 0 && all->dims[axis] != many * own))
        return INFINITY;
    double worst = 0;
    for (int64_t b = 0; b < before; b++)
        for (int64_t k = 0; k < own * behind; k++)
            worst = fmax(worst, differ(at(all, (b * times + (axis < 0 ? 0 : i)) * own * behind + k),
                                       at(one, b * own * behind + k)));
    return worst;
}

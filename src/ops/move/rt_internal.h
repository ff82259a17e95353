/* What the files of R/T share. */
#ifndef PO_OPS_RT_PRIVATE_H
#define PO_OPS_RT_PRIVATE_H

#include "base/num.h"
#include "ops/move/rt.h"

enum { PO_RT_MAX_VARS = 2 * PO_RT_MAX_DIGITS };
/* Bases, steps, extents and dims above it are refused, so that sums of their products fit. */
static const int64_t po_rt_most = (int64_t)1 << 40;

/* Narrows lo <= t <= hi to what least <= base + sum of coef * t <= most leaves of each variable on
 * its own. False where nothing is left; *changed is set where a bound moved. */
bool po_rt_narrow(uint32_t n, int64_t *lo, int64_t *hi, const int64_t *coef, int64_t base,
                  int64_t least, int64_t most, bool *changed);
/* Bounds of base + sum of coef * t; false where they are too large to be of use. */
bool po_rt_range(uint32_t n, const int64_t *lo, const int64_t *hi, const int64_t *coef,
                 int64_t base, int64_t *least, int64_t *most);

#endif

/* Items of shapes as they are computed: lengths, and numbers below 0, which no length is. */
#include "ir/size.h"

#include "base/num.h"

po_dim po_size_item(po_arena *arena, int64_t number) {
    return number >= 0 ? PO_DIM(number)
                       : (po_dim){-1, po_arena_printf(arena, "(%lld)", (long long)number)};
}

bool po_size_below_zero(po_dim item, int64_t *number) {
    if (item.value >= 0 || !item.symbol || strncmp(item.symbol, "(-", 2) != 0)
        return false;
    const char *p = item.symbol + 2;
    *number = 0;
    for (; *p >= '0' && *p <= '9'; p++)
        if (!po_mul_i64(*number, 10, number) || !po_sub_i64(*number, *p - '0', number))
            return false;
    return p > item.symbol + 2 && strcmp(p, ")") == 0;
}

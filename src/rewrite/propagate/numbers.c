/* Numbers in the place of open dims: primes, and for maps multiples of 32. */
#include "rewrite/propagate/numbers.h"

#include "ops/op.h"

/* Positions of maps are whole multiples, so that what is halved five times fits again. */
static int64_t number_for(uint32_t which, bool position) {
    static const int64_t primes[] = {29, 31, 37, 41, 43, 47, 53, 59};
    static const int64_t maps[] = {96, 160, 224, 288, 352, 416, 480, 544};
    which %= sizeof primes / sizeof *primes;
    return position ? maps[which] : primes[which];
}

enum { MOST_NAMES = 32 };

typedef struct numbering {
    const char *name[MOST_NAMES];
    int64_t number[MOST_NAMES];
    uint32_t n, drawn;
} numbering;

/* The same name has the same number. */
static po_dim number_dim(void *user, po_graph *graph, po_value_id input, uint32_t axis) {
    numbering *m = user;
    const po_type *t = &graph->values[input].type;
    const po_dim dim = t->dims[axis];
    if (dim.value >= 0)
        return dim;
    for (uint32_t k = 0; k < m->n && dim.symbol; k++)
        if (strcmp(m->name[k], dim.symbol) == 0)
            return PO_DIM(m->number[k]);
    const int64_t number = number_for(m->drawn++, t->rank > 3 && axis > 1);
    if (dim.symbol && m->n < MOST_NAMES) {
        m->name[m->n] = dim.symbol;
        m->number[m->n++] = number;
    }
    return PO_DIM(number);
}

po_graph *po_with_numbers(po_ctx *ctx, const po_graph *graph) {
    numbering m = {.n = 0};
    return po_infer_with_dims(ctx, graph, number_dim, &m);
}

/* Walks the boxes that cuts make, by the runs and residue classes of each axis, and counts them
 * without a walk. */
#include "boxes/boxes.h"

/* Run `run` of residue class `residue` of an axis: false where it holds no position. */
static bool run_of(const po_axis_cuts *a, int64_t run, int64_t residue, int64_t *first,
                   int64_t *count) {
    int64_t begin = a->at[run], end = a->at[run + 1], shift = (residue - begin) % a->step;
    *first = begin + (shift < 0 ? shift + a->step : shift);
    *count = *first < end ? (end - 1 - *first) / a->step + 1 : 0;
    return *count > 0;
}

typedef struct visitor {
    const po_cuts *cuts;
    po_box box;
    bool (*fn)(void *user, const po_box *box);
    void *user;
} visitor;

static bool visit(visitor *v, uint32_t x) {
    if (x == v->cuts->rank)
        return v->fn(v->user, &v->box);
    const po_axis_cuts *a = &v->cuts->axis[x];
    v->box.step[x] = a->step;
    for (int64_t run = 0; run < a->n; run++) {
        /* Short runs have no more classes than positions. */
        int64_t length = a->at[run + 1] - a->at[run];
        int64_t classes = length < a->step ? length : a->step;
        for (int64_t k = 0; k < classes; k++)
            if (run_of(a, run, a->at[run] + k, &v->box.first[x], &v->box.count[x]) &&
                !visit(v, x + 1))
                return false;
    }
    return true;
}

void po_boxes_each(po_arena *arena, const po_cuts *cuts, bool (*fn)(void *user, const po_box *box),
                   void *user) {
    int64_t *numbers = PO_NEW_N(arena, int64_t, 3 * (size_t)cuts->rank);
    visitor v = {cuts,
                 {cuts->rank, numbers, numbers + cuts->rank, numbers + 2 * (size_t)cuts->rank},
                 fn,
                 user};
    visit(&v, 0);
}

double po_boxes_count(const po_cuts *cuts) {
    double n = 1;
    for (uint32_t x = 0; x < cuts->rank; x++) {
        const po_axis_cuts *a = &cuts->axis[x];
        double on_axis = 0;
        for (uint32_t run = 0; run < a->n; run++) {
            int64_t length = a->at[run + 1] - a->at[run];
            on_axis += (double)(length < a->step ? length : a->step);
        }
        n *= on_axis;
    }
    return n;
}

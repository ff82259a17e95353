/* Makeups of maxima over windows: what lies outside of the map is left out. */
#include "verify/sizes/makeup.h"

#include "ops/window.h"

enum { MOST_PLACES = 64 }; /* of a window along an axis */

/* Along one axis: every place of the window. */
static bool slide(po_piece *part, const po_makeup *f, uint32_t digit, po_makeup *out,
                  uint32_t out_digit, const po_window *w, uint32_t x) {
    if (w->kernel[x] > MOST_PLACES)
        return false;
    for (uint32_t i = 0; i < f->n_reads; i++) {
        const po_makeup_read *of = &f->reads[i];
        if (of->digit != digit)
            continue;
        /* Where the map ends there ends the leaf. */
        const po_type *leaf = part->leaves[of->leaf];
        if (!po_read_is_itself(of->read) ||
            !po_dim_same(leaf->dims[of->leaf_axis], f->digit[digit].size))
            return false;
        for (int64_t k = 0; k < w->kernel[x]; k++) {
            po_paced s;
            const po_pace pace = {1, 0, w->stride[x], k * w->dilation[x] - w->begin[x]};
            if (po_read_pace(of->read, pace, &s))
                po_makeup_add_read(
                    part, out, (po_makeup_read){of->leaf, of->leaf_axis, out_digit, s.read, true});
        }
    }
    return true;
}

po_status po_makeup_window(po_piece *part, const po_node *node) {
    const po_makeup *f = part->makeup[node->in[0]];
    const po_type *type = &part->open->values[node->out[0]].type;
    const po_type *in = &part->open->values[node->in[0]].type;
    po_makeup *out = po_makeup_create(part, type);
    po_window w;
    if (node->op != PO_OP_MaxPool || node->n_out != 1 || !out || !f || f->sized || type->rank < 3 ||
        f->n_digits != in->rank || out->n_digits != in->rank ||
        !po_window_of(part->open, node, type->rank - 2, &w) || w.same || w.ceil)
        return po_piece_fail(part, node, "it is none that is followed");
    for (uint32_t i = 0; i < f->n_digits; i++) {
        if (!po_digit_open(&f->digit[i]))
            continue;
        if (i >= 2 && slide(part, f, i, out, i, &w, i - 2))
            continue;
        if (i >= 2)
            return po_piece_fail(part, node, "its windows lie over others");
        po_makeup_take(part, out, i, f, i, i + 1);
    }
    po_makeup_inherit(part, out, f);
    out->needed = f->places > out->needed ? f->places : out->needed;
    out->strict = true;
    part->makeup[node->out[0]] = out;
    return PO_OK;
}

/* Whether what a node does is told by lengths and places, the same for all of them. */
#include "verify/sizes/makeup.h"

#include "ir/size.h"
#include "ops/indices.h"
#include "ops/rewrite.h"
#include "ops/window.h"

static uint32_t plain_name(void *user, const char *name) {
    *(bool *)user &= !strpbrk(name, "(*");
    return 0;
}

static uint32_t plain_sum(void *user, int64_t offset, uint32_t n, const int64_t *coefs,
                          const uint32_t *parts) {
    (void)user, (void)offset, (void)n, (void)coefs, (void)parts;
    return 0;
}

static uint32_t no_quotient(void *user, uint32_t of, int64_t by) {
    (void)of, (void)by;
    *(bool *)user = false;
    return 0;
}

/* A sum of multiples of names. */
static bool is_plain(po_piece *part, po_dim d) {
    bool plain = true;
    const po_size_builder build = {&plain, plain_name, plain_sum, no_quotient};
    uint32_t out;
    return d.value >= 0 || !d.symbol || (po_size_build(part->arena, d, &build, &out) && plain);
}

/* Item i of input k of n items says how far the output goes, and nothing else. */
static bool is_end(const po_node *node, uint32_t k, uint32_t i, uint32_t n) {
    return (node->op == PO_OP_Slice && k == 2) || (node->op == PO_OP_Expand && k == 1) ||
           (node->op == PO_OP_Pad && k == 1 && i >= n / 2);
}

bool po_piece_follows_lengths(po_piece *part, const po_node *node) {
    for (uint32_t k = 1; k < node->n_in; k++) {
        const po_value *v = node->in[k] == PO_NONE ? NULL : &part->open->values[node->in[k]];
        for (uint32_t i = 0; v && !v->constant && v->partial && i < v->partial->n; i++) {
            const po_dim d = v->partial->items[i];
            int64_t number;
            if (!is_end(node, k, i, v->partial->n) && !po_size_number(d, &number) &&
                !(node->op == PO_OP_Resize && is_plain(part, d)))
                return false;
        }
    }
    return true;
}

bool po_piece_pads_alike(const po_piece *part, const po_node *node) {
    const po_type *t = &part->open->values[node->in[0]].type;
    po_window w;
    if (!po_op_has(node->op, PO_OPF_WINDOW) || !t->has_rank || t->rank < 3 ||
        !po_window_of(part->open, node, t->rank - 2, &w) || !w.same)
        return true;
    for (uint32_t x = 2; x < t->rank; x++)
        if (t->dims[x].value < 0 && w.stride[x - 2] != 1)
            return false;
    return true;
}

bool po_piece_passes(const po_graph *open, const po_node *node) {
    const po_value_id mask = node->n_out > 1 ? node->out[1] : PO_NONE,
                      training = node->n_in > 2 ? node->in[2] : PO_NONE;
    const po_tensor *t = training == PO_NONE ? NULL : po_graph_constant(open, training);
    return node->op == PO_OP_Dropout && po_op_version(open, node) >= 7 && node->in[0] != PO_NONE &&
           (mask == PO_NONE || (!open->values[mask].n_uses && !open->values[mask].n_outputs)) &&
           (training == PO_NONE || (t && po_all_equal(t, 0)));
}

/* Whether it is one row of a table everywhere, whatever the lengths. */
static bool takes_one_row(const po_piece *part, const po_node *node) {
    int64_t row;
    return node->op == PO_OP_Gather && node->n_in == 2 &&
           po_graph_constant(part->open, node->in[0]) && po_op_int(part->open, node, "axis") == 0 &&
           po_index_uniform(part->arena, part->open, node->in[1], &row);
}

bool po_piece_follows_places(po_piece *part, const po_node *node) {
    po_index_form form;
    const po_value_id v = node->n_out == 1 ? node->out[0] : PO_NONE;
    if (v == PO_NONE)
        return false;
    const bool settled =
        po_truth_of(part->arena, part->open, v) != PO_TRUTH_UNKNOWN || takes_one_row(part, node);
    if (!settled && !po_index_form_of(part->arena, part->open, v, &form))
        return false;
    po_makeup *f = po_makeup_create(part, &part->open->values[v].type);
    if (!f)
        return false;
    f->strict = true;
    f->placed = !settled;
    part->makeup[v] = f;
    return true;
}

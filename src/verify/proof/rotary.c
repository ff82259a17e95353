/* RotaryEmbedding modulo p: pairs of elements of each head, turned by tables of cosines and sines,
 * which are variables like any other weights. */
#include "verify/proof/internal.h"

typedef struct rotary {
    int64_t batch, seq, heads, size, half; /* half: pairs of a head that are turned */
    bool heads_first;                      /* rank 4: [batch, heads, seq, size] */
} rotary;

static bool read(const po_pnode *n, rotary *r) {
    const po_ptensor *x = n->in[0], *ids = po_pn_in(n, 3);
    int64_t heads = po_op_int(n->graph, n->node, "num_heads");
    int64_t turned = po_op_int(n->graph, n->node, "rotary_embedding_dim");
    if (x->rank != 3 && x->rank != 4)
        return false;
    r->heads_first = x->rank == 4;
    r->batch = x->dims[0];
    r->seq = x->dims[r->heads_first ? 2 : 1];
    r->heads = r->heads_first ? x->dims[1] : heads;
    if (r->heads < 1 || (!r->heads_first && x->dims[2] % r->heads != 0))
        return false;
    r->size = r->heads_first ? x->dims[3] : x->dims[2] / r->heads;
    turned = turned == 0 ? r->size : turned;
    if (turned < 0 || turned > r->size || turned % 2 != 0)
        return false;
    r->half = turned / 2;
    if (ids && (!ids->known || !ids->known->i || ids->drawn || ids->count != r->batch * r->seq))
        return false; /* rows that were not picked would not show */
    for (uint32_t k = 1; k < 3; k++) {
        const po_ptensor *t = n->in[k];
        if (t->rank != (ids ? 2 : 3) || t->dims[t->rank - 1] != r->half ||
            t->count != n->in[1]->count || (!ids && t->count != r->batch * r->seq * r->half))
            return false;
    }
    return true;
}

po_status po_pn_rotary(po_pnode *n) {
    if (n->node->op != PO_OP_RotaryEmbedding || !po_pn_in(n, 0) || !po_pn_in(n, 1) ||
        !po_pn_in(n, 2))
        return PO_UNSUPPORTED;
    rotary r;
    const po_ptensor *ids = po_pn_in(n, 3);
    const uint32_t *x = po_pt_mod(n->in[0]), *c = po_pt_mod(n->in[1]), *s = po_pt_mod(n->in[2]);
    if (!x || !c || !s || !read(n, &r))
        return PO_UNSUPPORTED;
    int64_t rows = ids ? n->in[1]->dims[0] : r.batch * r.seq;
    for (int64_t i = 0; ids && i < ids->count; i++)
        if (ids->known->i[i] < -rows || ids->known->i[i] >= rows)
            return PO_UNSUPPORTED;
    bool interleaved = po_op_int(n->graph, n->node, "interleaved") != 0;
    po_ptensor *out = po_pn_out(n, 0);
    memcpy(out->mod, x, (size_t)out->count * sizeof *x);
    for (int64_t line = 0; line < r.batch * r.seq * r.heads; line++) {
        int64_t h = line % r.heads, place = line / r.heads, b = place / r.seq, t = place % r.seq;
        int64_t row = ids ? ids->known->i[place] : place;
        row += row < 0 ? rows : 0;
        int64_t at = (r.heads_first ? (b * r.heads + h) * r.seq + t : place * r.heads + h) * r.size;
        for (int64_t k = 0; k < r.half; k++) {
            uint32_t cosine = c[row * r.half + k], sine = s[row * r.half + k];
            int64_t i = at + (interleaved ? 2 * k : k), j = interleaved ? i + 1 : i + r.half;
            out->mod[i] =
                po_field_add(n->run->field, po_field_mul(n->run->field, cosine, x[i]),
                             po_field_neg(n->run->field, po_field_mul(n->run->field, sine, x[j])));
            out->mod[j] = po_field_add(n->run->field, po_field_mul(n->run->field, sine, x[i]),
                                       po_field_mul(n->run->field, cosine, x[j]));
        }
    }
    po_pbound tables = po_pb_either(n->run, &n->in[1]->bound, &n->in[2]->bound);
    po_pbound product = po_pb_product(n->run, &n->in[0]->bound, &tables);
    out->bound = po_pb_several(&product, 2);
    return PO_OK;
}

/* Operators on strings. */
#include "ops/broadcast.h"
#include "ops/families/rules.h"
#include "ops/shape.h"

/* Stop words go, so that the length is open; a matrix has one row. */
po_status po_infer_stringnormalizer(po_infer *infer) {
    const po_type *x = po_infer_tensor(infer, 0);
    po_dim dims[] = {PO_DIM_UNKNOWN, PO_DIM_UNKNOWN};
    po_infer_set_unranked(infer, 0, PO_STR);
    if (!x || !x->has_rank || x->rank < 1 || x->rank > 2)
        return PO_OK;
    if (x->rank == 2)
        dims[0] = PO_DIM(1);
    po_infer_set(infer, 0, PO_STR, x->rank, dims);
    return PO_OK;
}

po_status po_infer_stringconcat(po_infer *infer) {
    po_type out = po_type_unranked(PO_STR);
    PO_TRY(po_infer_broadcast(infer, 2, infer->in, &out));
    infer->out[0] = out;
    return PO_OK;
}

po_status po_ref_stringconcat(po_ref *ref) {
    const po_array *x = ref->in[0], *y = ref->in[1];
    po_bcast b;
    po_bcast_row row = {0};
    po_array *z;
    if (!x->s || !y->s || !po_bcast_init(&b, 2, ref->in))
        return PO_UNSUPPORTED;
    PO_TRY(po_ref_out(ref, 0, PO_STR, b.out_rank, b.out_dims, &z));
    while (po_bcast_next(&b, &row))
        for (int64_t k = 0; k < row.n; k++) {
            po_text text;
            po_bytes p = x->s[row.from[0] + k * row.step[0]];
            po_bytes q = y->s[row.from[1] + k * row.step[1]];
            po_text_init(&text, ref->arena);
            po_text_add(&text, p.data, p.size);
            po_text_add(&text, q.data, q.size);
            z->s[row.at + k] = (po_bytes){text.data, text.size};
        }
    return PO_OK;
}

po_status po_infer_stringsplit(po_infer *infer) {
    const po_type *x = po_infer_tensor(infer, 0);
    po_infer_set_unranked(infer, 0, PO_STR);
    po_infer_set_like(infer, 1, PO_I64);
    if (!x || !x->has_rank || x->rank >= PO_MAX_RANK)
        return PO_OK;
    po_dim *dims = PO_NEW_N(infer->arena, po_dim, x->rank + 1);
    memcpy(dims, x->dims, x->rank * sizeof *dims);
    dims[x->rank] = PO_DIM_UNKNOWN;
    po_infer_set(infer, 0, PO_STR, x->rank + 1, dims);
    return PO_OK;
}

const po_attr_def po_attrs_stringnormalizer[] = {
    {.name = "case_change_action",
     .kind = PO_ATTR_STRING,
     .since = 10,
     .has_default = true,
     .s = "NONE"},
    {.name = "is_case_sensitive", .kind = PO_ATTR_INT, .since = 10, .has_default = true, .i = 0},
    {.name = "locale", .kind = PO_ATTR_STRING, .since = 10},
    {.name = "stopwords", .kind = PO_ATTR_STRINGS, .since = 10},
    {0},
};
const po_attr_def po_attrs_stringsplit[] = {
    {.name = "delimiter", .kind = PO_ATTR_STRING, .since = 20},
    {.name = "maxsplit", .kind = PO_ATTR_INT, .since = 20},
    {0},
};
const po_attr_def po_attrs_regexfullmatch[] = {
    {.name = "pattern", .kind = PO_ATTR_STRING, .since = 20},
    {0},
};

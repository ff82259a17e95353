/* Det; ImageDecoder, of which only the type is known. */
#include "ops/rule.h"

#include <math.h>

/* --- Det --- */

po_status po_infer_det(po_infer *infer) {
    const po_type *x = po_rule_ranked(infer, 0);
    po_dim both;
    po_infer_set_unranked(infer, 0, po_infer_dtype(infer, 0));
    if (!x)
        return PO_OK;
    if (x->rank < 2)
        return po_rule_bad(infer->ctx, infer->node, "input must have rank 2 or more (found %u)",
                           x->rank);
    PO_TRY(po_rule_same_dim(infer, x->dims[x->rank - 2], x->dims[x->rank - 1], "rows and columns",
                            &both));
    memcpy(po_rule_out(infer, 0, x->dtype, x->rank - 2), x->dims, (x->rank - 2) * sizeof *x->dims);
    return PO_OK;
}

/* By elimination with row exchange; destroys m. */
static double determinant(double *m, int64_t n) {
    double det = 1;
    for (int64_t k = 0; k < n; k++) {
        int64_t pivot = k;
        for (int64_t i = k + 1; i < n; i++)
            if (fabs(m[i * n + k]) > fabs(m[pivot * n + k]))
                pivot = i;
        if (m[pivot * n + k] == 0)
            return 0;
        if (pivot != k)
            det = -det;
        for (int64_t j = 0; j < n; j++) {
            double swap = m[k * n + j];
            m[k * n + j] = m[pivot * n + j];
            m[pivot * n + j] = swap;
        }
        det *= m[k * n + k];
        for (int64_t i = k + 1; i < n; i++) {
            double f = m[i * n + k] / m[k * n + k];
            for (int64_t j = k; j < n; j++)
                m[i * n + j] -= f * m[k * n + j];
        }
    }
    return det;
}

po_status po_ref_det(po_ref *ref) {
    PO_TRY(po_rule_outputs(ref));
    const po_array *x = ref->in[0], *out = ref->out[0];
    int64_t n = x->dims[x->rank - 1];
    if (!x->f || n > 2048)
        return PO_UNSUPPORTED;
    double *m = PO_NEW_N(ref->arena, double, n *n);
    for (int64_t i = 0; i < out->count; i++) {
        memcpy(m, x->f + i * n * n, (size_t)(n * n) * sizeof *m);
        out->f[i] = determinant(m, n);
    }
    return PO_OK;
}

/* --- ImageDecoder: only its type is known --- */

po_status po_infer_image_decoder(po_infer *infer) {
    po_dim *dims = po_rule_out(infer, 0, PO_U8, 3);
    bool gray = po_rule_mode(infer->graph, infer->node, "pixel_format", "Grayscale");
    dims[2] = PO_DIM(gray ? 1 : 3);
    return PO_OK;
}

/* --- attributes --- */

const po_attr_def po_attrs_image_decoder[] = {
    {.name = "pixel_format", .kind = PO_ATTR_STRING, .since = 20, .has_default = true, .s = "RGB"},
    {0},
};

/* What a GPU computed against float64. */
#include "cost/cuda/run.h"

#include "ir/tensor.h"

#include <float.h>
#include <math.h>

static po_dtype dtype_of(po_mu_type type) {
    return type == PO_MU_F16 ? PO_F16 : type == PO_MU_BF16 ? PO_BF16 : PO_F32;
}

static double load(po_mu_type type, const char *data, int64_t i) {
    if (type == PO_MU_F32) {
        float f;
        memcpy(&f, data + 4 * i, 4);
        return (double)f;
    }
    uint16_t bits;
    memcpy(&bits, data + 2 * i, 2);
    return po_decode_float(dtype_of(type), bits);
}

void po_cuda_load(po_mu_type type, const void *from, int64_t n, double *values) {
    for (int64_t i = 0; i < n; i++)
        values[i] = load(type, from, i);
}

void po_cuda_store(po_mu_type type, const double *values, int64_t n, void *to) {
    char *data = to;
    for (int64_t i = 0; i < n; i++) {
        if (type == PO_MU_F32) {
            float f = (float)values[i];
            memcpy(data + 4 * i, &f, 4);
        } else {
            uint16_t bits = (uint16_t)po_encode_float(dtype_of(type), values[i]);
            memcpy(data + 2 * i, &bits, 2);
        }
    }
}

bool po_cuda_compare(po_mu_type type, bool tf32, po_bytes got, const double *reference,
                     const double *magnitude, double k, po_cuda_error *error) {
    int64_t n = (int64_t)got.size / po_mu_bytes(type);
    double u = type == PO_MU_F16 ? 0x1p-11 : type == PO_MU_BF16 ? 0x1p-8 : tf32 ? 0x1p-11 : 0x1p-24;
    double least = type == PO_MU_F16 ? 0x1p-24 : FLT_MIN;
    double large = type == PO_MU_F16 ? 65504 : type == PO_MU_BF16 ? 0x1.fep127 : (double)FLT_MAX;
    double most = -1;
    *error = (po_cuda_error){.index = -1};
    for (int64_t i = 0; i < n; i++) {
        double y = load(type, got.data, i), r = reference[i], s = fmax(magnitude[i], fabs(r));
        double part;
        if (isnan(r) || isnan(y))
            part = isnan(r) && isnan(y) ? 0 : HUGE_VAL;
        else if (isinf(y) || isinf(r)) /* beyond the largest number either will do */
            part = y == r || (isinf(y) && fabs(r) > large * (1 - 4 * k * u) && (y > 0) == (r > 0))
                       ? 0
                       : HUGE_VAL;
        else
            part = fmax(0, fabs(y - r) - least) / fmax(u * s, DBL_MIN);
        if (fabs(y - r) <= least)
            part = 0;
        error->bad += part > k;
        if (part > most) {
            most = part;
            error->index = i;
            error->got = y;
            error->expected = r;
        }
    }
    error->worst = most > 0 ? most : 0;
    if (most <= 0)
        error->index = -1;
    return error->bad == 0;
}

/* The indexed sum of STFT of real signals: windows of the signal times the window function, times
 * a table of cosines and sines. The table is of fractions of 2^45, a millionth of what f32 tells
 * apart of 1: what is proved is proved of these. */
#include "ops/spectrum.h"

#include "base/num.h"
#include "ops/sem/rules_sem.h"

#include <math.h>

enum { BATCH, FRAME, BIN, PART, RANK };

static po_rational fraction(double value) {
    const double ones = (double)((int64_t)1 << (3 * PO_SPECTRUM_LIMB));
    po_rational r = PO_RATIONAL(0);
    if (!po_rational_make((int64_t)nearbyint(value * ones), (int64_t)ones, &r))
        return PO_RATIONAL(0);
    return r;
}

po_rational *po_spectrum_table(po_arena *arena, int64_t length, int64_t bins) {
    const double turn = 2 * 3.14159265358979323846;
    po_rational *c = PO_NEW_N(arena, po_rational, length),
                *s = PO_NEW_N(arena, po_rational, length);
    po_rational *table = PO_NEW_N(arena, po_rational, bins * PO_SPECTRUM_PARTS * length),
                *to = table;
    for (int64_t i = 0; i < length; i++) {
        const double angle = turn * (double)i / (double)length;
        c[i] = fraction(cos(angle));
        s[i] = fraction(-sin(angle));
    }
    for (int64_t k = 0; k < bins; k++)
        for (int part = 0; part < PO_SPECTRUM_PARTS; part++)
            for (int64_t i = 0; i < length; i++)
                *to++ = (part ? s : c)[k * i % length];
    return table;
}

/* A constant number; false where it is none. */
static bool number(const po_sem *sem, uint32_t input, int64_t *value) {
    const int64_t *v;
    uint32_t n;
    if (!po_sem_has(sem, input) || !po_sem_ints(sem, input, &n, &v) || n != 1)
        return false;
    *value = v[0];
    return true;
}

po_status po_sem_stft(po_sem *sem) {
    const po_sem_tensor *x = &sem->in[0];
    int64_t step, length, size;
    const bool windowed = po_sem_has(sem, 2);
    const bool real = x->rank == 2 || (x->rank == 3 && x->dims[2] == 1);
    if (!real || !po_sem_is_float(sem, 0) || !number(sem, 1, &step) || step < 1 ||
        (windowed && (sem->in[2].rank != 1 || !po_sem_is_float(sem, 2))))
        return PO_UNSUPPORTED;
    if (!number(sem, 3, &length)) {
        if (po_sem_has(sem, 3))
            return PO_UNSUPPORTED;
        length = windowed ? sem->in[2].dims[0] : x->dims[1];
    }
    const bool onesided = po_node_int(sem->node, "onesided", 1) != 0;
    const int64_t bins = onesided ? length / 2 + 1 : length;
    po_sum *sum = po_sem_begin(sem, 0);
    if (length < 1 || x->dims[1] < length || (windowed && sem->in[2].dims[0] != length) ||
        sum->rank != RANK || sum->dims[BATCH] != x->dims[0] ||
        sum->dims[FRAME] != 1 + (x->dims[1] - length) / step || sum->dims[BIN] != bins ||
        sum->dims[PART] != PO_SPECTRUM_PARTS ||
        !po_mul_i64(bins * PO_SPECTRUM_PARTS, length, &size) || size > PO_SPECTRUM_MOST)
        return PO_UNSUPPORTED;
    const int64_t dims[] = {bins, PO_SPECTRUM_PARTS, length};
    const uint32_t signal = po_sem_operand(sem, sum, 0);
    const uint32_t window = windowed ? po_sem_operand(sem, sum, 2) : 0;
    const uint32_t table = po_sum_table(sum, 3, dims, po_spectrum_table(sem->arena, length, bins));
    po_term *t = po_sem_pointwise(sum, 1);
    const uint32_t i = po_term_var(t, "i", length);
    po_index *a = po_term_factor(sum, t, signal);
    po_index_add(t, a, 0, 1, BATCH);
    po_index_add(t, a, 1, step, FRAME);
    po_index_add(t, a, 1, 1, i);
    if (windowed)
        po_index_add(t, po_term_factor(sum, t, window), 0, 1, i);
    po_index *w = po_term_factor(sum, t, table);
    po_index_add(t, w, 0, 1, BIN);
    po_index_add(t, w, 1, 1, PART);
    po_index_add(t, w, 2, 1, i);
    return PO_OK;
}

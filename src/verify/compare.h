/* Comparison of outputs, element by element.
 *
 * Floats: |got - expected| relative to the output's largest finite magnitude; NaN and infinities
 * must stand at the same places with the same sign. Integers, bool and strings: exact.
 * Half-precision outputs are allowed two units in the last place of their largest magnitude. */
#ifndef PO_VERIFY_COMPARE_H
#define PO_VERIFY_COMPARE_H

#include "cost/ort/ort.h"

typedef enum po_mismatch {
    PO_MATCH = 0,
    PO_MISMATCH_KIND, /* tensor against sequence, or a value against none */
    PO_MISMATCH_DTYPE,
    PO_MISMATCH_SHAPE,
    PO_MISMATCH_LENGTH,  /* of a sequence */
    PO_MISMATCH_SPECIAL, /* NaN or infinity at one side only, or of the other sign */
    PO_MISMATCH_ERROR,   /* a float beyond the tolerance */
    PO_MISMATCH_EXACT    /* an integer, bool or string that differs */
} po_mismatch;

/* How often its own error another model may be off from the original. */
enum { PO_OWN_ERRORS = 8 };

typedef struct po_difference {
    po_mismatch mismatch; /* the first kind found, PO_MATCH where all is well */
    bool identical;       /* every bit */
    int64_t elements;     /* compared */
    int64_t bad;          /* outside what is allowed */
    bool excused;         /* something is beyond the tolerance, but not beyond `own` */
    double strain;        /* the largest error of a float over what is allowed by the tolerance */
    double largest;       /* finite magnitude among the expected floats */
    double max_abs;       /* largest |got - expected| of floats; of integers too */
    double max_rel;       /* max_abs over the larger of `largest` and `natural`, floats only */
    int64_t index;        /* flat index of the worst element; -1 where none differs */
    double expected, got; /* there */
} po_difference;

/* A float may be off by tolerance * the largest magnitude expected here. Where an output is far
 * below the magnitude that it can reach (a sigmoid at 1e-6), the runtime's own rounding is more
 * than that: then it may be off by `rounding` or by 4 * noise, but never by more than tolerance *
 * natural. By 2^-64 of `natural` it may always be off: elements hidden by a mask count for as much
 * as that where all others are 0.
 *
 * Where the original itself is known to be off from float64 by `own` at most, and by `own_mean` as
 * the root of its mean square, the other may be off from it by eight times as much. Both count: one
 * element that fell to the other side of a step excuses no others. */
typedef struct po_compare_rule {
    double tolerance;
    double natural;          /* magnitude that the output is known to reach; 0: none known */
    double rounding;         /* of an operator that works at magnitude 1; 0: not known */
    double noise;            /* how far rounding alone moves it; 0: not measured */
    bool shapes_only;        /* random models: kinds, dtypes and shapes */
    double own, own_mean;    /* absolute; 0: not known */
    const po_tensor *scaled; /* the original's output where inputs are 16 times as large: elements
                                that are not finite there may not be finite here; may be NULL */
    const bool *overflowed;  /* elements where the original is not finite and float64 is, within the
                                dtype's range: anything may stand there; may be NULL */
    bool one_sided; /* inputs beyond what models are made for: what is not finite in the original
                       is not looked at */
} po_compare_rule;

/* Parts of sequences and maps are compared in order and summed up. */
void po_compare(const po_datum *expected, const po_datum *got, const po_compare_rule *rule,
                po_difference *difference);
/* Against a float64 reference: `expected` is of dtype f64 and of the same shape; got's dtype is
 * free. Integer references (i64) are compared exactly. */
void po_compare_reference(const po_tensor *expected, const po_tensor *got,
                          const po_compare_rule *rule, po_difference *difference);
/* "a float beyond the tolerance" and so on. */
const char *po_mismatch_text(po_mismatch mismatch);

#endif

/* How two values are compared: element by element, the largest difference and the first rule that
 * it breaks. */
#include "verify/compare.h"

#include <math.h>

const char *po_mismatch_text(po_mismatch mismatch) {
    static const char *const texts[] = {
        [PO_MATCH] = "they agree",
        [PO_MISMATCH_KIND] = "one is there or a sequence, the other is not",
        [PO_MISMATCH_DTYPE] = "the element types differ",
        [PO_MISMATCH_SHAPE] = "the shapes differ",
        [PO_MISMATCH_LENGTH] = "the sequences differ in length",
        [PO_MISMATCH_SPECIAL] = "NaN or infinity on one side only",
        [PO_MISMATCH_ERROR] = "a float is beyond the tolerance",
        [PO_MISMATCH_EXACT] = "an integer, bool or string differs",
    };
    return texts[mismatch];
}

static void note(po_difference *d, po_mismatch mismatch) {
    if (d->mismatch == PO_MATCH)
        d->mismatch = mismatch;
    d->bad++;
}

/* Remembers the worst element: one outside what is allowed before one inside. */
static void worst(po_difference *d, int64_t i, double expected, double got) {
    d->index = i;
    d->expected = expected;
    d->got = got;
}

/* What a result of this dtype may be off by whatever the tolerance. */
static double least_tolerance(po_dtype dtype) {
    return po_dtype_bits(dtype) <= 16 ? 4 * po_dtype_half_bit(dtype) : 0;
}

/* Below this part of what an output is known to reach, a float is as good as 0: hidden elements of
 * a Softmax, tiny weights. */
static const double negligible = 0x1p-64;

typedef struct floats {
    const po_tensor *tensor;
    int64_t count; /* complex numbers count as two */
    po_dtype dtype;
} floats;

static floats floats_of(const po_tensor *t) {
    if (t->dtype == PO_C64)
        return (floats){t, 2 * t->count, PO_F32};
    if (t->dtype == PO_C128)
        return (floats){t, 2 * t->count, PO_F64};
    return (floats){t, t->count, t->dtype};
}

static double element(const floats *f, int64_t i) {
    if (f->dtype == PO_F32) {
        float v;
        memcpy(&v, (const char *)f->tensor->data + 4 * i, 4);
        return (double)v;
    }
    if (f->dtype == PO_F64) {
        double v;
        memcpy(&v, (const char *)f->tensor->data + 8 * i, 8);
        return v;
    }
    return po_tensor_f64(f->tensor, i);
}

/* Whether NaN or an infinity on one side says nothing: what is finite in the original only just is,
 * or what is not ought to be. */
static bool excuses(const po_compare_rule *rule, const po_tensor *expected, int64_t i,
                    bool finite) {
    const po_tensor *s = rule->scaled;
    if (!finite)
        return rule->one_sided || (rule->overflowed && rule->overflowed[i]);
    if (!s || s->dtype != expected->dtype || s->count != expected->count)
        return false;
    floats f = floats_of(s);
    return !isfinite(element(&f, i));
}

static void compare_floats(const po_tensor *expected, const po_tensor *got,
                           const po_compare_rule *rule, po_difference *d) {
    floats e = floats_of(expected), g = floats_of(got);
    d->elements += e.count;
    if (e.count == 0)
        return;
    double largest = 0;
    for (int64_t i = 0; i < e.count; i++) {
        double v = fabs(element(&e, i));
        if (isfinite(v) && v > largest)
            largest = v;
    }
    if (largest > d->largest)
        d->largest = largest;
    if (expected->dtype == got->dtype && memcmp(expected->data, got->data, expected->size) == 0)
        return;
    d->identical = false;
    double scale = fmax(largest, rule->natural);
    double tolerance = fmax(rule->tolerance, least_tolerance(got->dtype));
    double unavoidable = fmax(4 * rule->noise, rule->rounding);
    double allowed = fmax(tolerance * largest, fmin(tolerance * scale, unavoidable));
    allowed = fmax(allowed, fmin(tolerance, negligible) * scale);
    double beyond = fmax(allowed, PO_OWN_ERRORS * rule->own), most = 0, squares = 0;
    bool special = false;
    for (int64_t i = 0; i < e.count; i++) {
        double x = element(&e, i), y = element(&g, i);
        if (isfinite(x) && isfinite(y)) {
            double error = fabs(y - x);
            if (error > beyond)
                note(d, PO_MISMATCH_ERROR);
            most = fmax(most, error);
            squares += error * error;
            if (error > d->max_abs)
                d->max_abs = error;
            double relative = scale > 0 ? error / scale : error > 0 ? HUGE_VAL : 0;
            if (relative > d->max_rel) {
                d->max_rel = relative;
                if (!special)
                    worst(d, i, x, y);
            }
        } else if (!(isnan(x) && isnan(y)) && x != y && !excuses(rule, expected, i, isfinite(x))) {
            note(d, PO_MISMATCH_SPECIAL);
            if (!special)
                worst(d, i, x, y);
            special = true;
        }
    }
    double mean = sqrt(squares / (double)e.count);
    if (most > allowed && mean > fmax(allowed, PO_OWN_ERRORS * rule->own_mean) && d->bad == 0)
        note(d, PO_MISMATCH_ERROR);
    d->excused |= most > allowed && d->bad == 0;
    double strain = allowed > 0 ? most / allowed : most > 0 ? HUGE_VAL : 0;
    if (strain > d->strain)
        d->strain = strain;
}

static bool same_string(const po_tensor *a, const po_tensor *b, int64_t i) {
    const po_bytes *x = (const po_bytes *)a->data + i, *y = (const po_bytes *)b->data + i;
    return x->size == y->size && (x->size == 0 || memcmp(x->data, y->data, x->size) == 0);
}

static void compare_exact(const po_tensor *expected, const po_tensor *got, po_difference *d) {
    d->elements += expected->count;
    if (expected->count == 0)
        return;
    bool strings = expected->dtype == PO_STR;
    bool same_type = expected->dtype == got->dtype;
    if (same_type && !strings && memcmp(expected->data, got->data, expected->size) == 0)
        return;
    double most = -1;
    for (int64_t i = 0; i < expected->count; i++) {
        if (strings) {
            if (!same_string(expected, got, i)) {
                note(d, PO_MISMATCH_EXACT);
                if (d->bad == 1)
                    worst(d, i, NAN, NAN);
                d->identical = false;
            }
            continue;
        }
        int64_t x = po_tensor_int(expected, i), y = po_tensor_int(got, i);
        if (x == y)
            continue;
        d->identical = false;
        note(d, PO_MISMATCH_EXACT);
        double error = fabs((double)y - (double)x);
        if (error > most) {
            most = error;
            worst(d, i, (double)x, (double)y);
        }
        if (error > d->max_abs)
            d->max_abs = error;
    }
}

static bool is_float(po_dtype dtype) {
    return po_dtype_class_of(dtype) == PO_CLASS_FLOAT || dtype == PO_C64 || dtype == PO_C128;
}

static bool same_shape(const po_tensor *a, const po_tensor *b) {
    if (a->rank != b->rank)
        return false;
    for (uint32_t i = 0; i < a->rank; i++)
        if (a->dims[i] != b->dims[i])
            return false;
    return true;
}

static po_difference no_difference(void) {
    return (po_difference){.mismatch = PO_MATCH, .identical = true, .index = -1};
}

static void compare_part(const po_datum *expected, const po_datum *got, const po_compare_rule *rule,
                         po_difference *d) {
    if (expected->kind != got->kind) {
        note(d, PO_MISMATCH_KIND);
    } else if (expected->kind == PO_TYPE_TENSOR) {
        const po_tensor *e = expected->tensor, *g = got->tensor;
        if (e->dtype != g->dtype)
            note(d, PO_MISMATCH_DTYPE);
        else if (!same_shape(e, g))
            note(d, PO_MISMATCH_SHAPE);
        else if (rule->shapes_only)
            d->elements += e->count;
        else if (is_float(e->dtype))
            compare_floats(e, g, rule, d);
        else
            compare_exact(e, g, d);
    } else if (expected->n != got->n) {
        if (!rule->shapes_only)
            note(d, PO_MISMATCH_LENGTH);
    } else {
        for (uint32_t i = 0; i < expected->n; i++)
            compare_part(&expected->items[i], &got->items[i], rule, d);
    }
}

void po_compare(const po_datum *expected, const po_datum *got, const po_compare_rule *rule,
                po_difference *difference) {
    *difference = no_difference();
    compare_part(expected, got, rule, difference);
    if (difference->mismatch != PO_MATCH)
        difference->identical = false;
}

void po_compare_reference(const po_tensor *expected, const po_tensor *got,
                          const po_compare_rule *rule, po_difference *difference) {
    *difference = no_difference();
    if (!same_shape(expected, got))
        note(difference, PO_MISMATCH_SHAPE);
    else if (is_float(expected->dtype) != is_float(got->dtype))
        note(difference, PO_MISMATCH_DTYPE);
    else if (is_float(got->dtype))
        compare_floats(expected, got, rule, difference);
    else
        compare_exact(expected, got, difference);
    if (difference->mismatch != PO_MATCH)
        difference->identical = false;
}

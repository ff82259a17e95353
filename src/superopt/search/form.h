/* Labelled normal forms: what a tensor of a muGraph computes, so that equal numbers mean equal
 * functions (docs/superopt-search.md).
 *
 * A form is a sum of terms; a term is a fraction times a sum over bound labels of a product of
 * atoms with whole exponents. Atoms are elements of tensors by label, scalar functions of forms,
 * forms themselves (only below a fraction's bar), and maxima over a label. Labels are classes: one
 * axis of a tensor has the same label wherever it is read. A bound label is (class, height), the
 * height above all labels bound inside the atoms, so that nothing is captured when forms are put
 * into one another, and terms that differ in the names of bound labels only are one.
 *
 * Two ways of working. Exact: exp(a) * exp(b) is exp(a + b), and what all terms below a bar have in
 * common is taken out of it, so that a maximum that only shifts cancels, and one that does not
 * stays. Plain: exp is a function like any other; what the search builds from, so that it never
 * drops the shift that keeps exp finite. Square roots stay functions: sqrt(a) * sqrt(b) is
 * sqrt(a * b) only where neither is negative. */
#ifndef PO_SUPEROPT_FORM_H
#define PO_SUPEROPT_FORM_H

#include "mugraph/mugraph.h"

enum { PO_FORM_CLASSES = 48 };

typedef struct po_forms po_forms;

/* extents: by class. */
po_forms *po_forms_create(po_arena *arena, bool exact, uint32_t n_classes, const int64_t *extents);

/* Forms; PO_NONE where the result is too large for a form, or an argument is PO_NONE. */
uint32_t po_form_leaf(po_forms *f, uint32_t tensor, uint32_t rank, const uint32_t *classes);
uint32_t po_form_number(po_forms *f, double value);
uint32_t po_form_add(po_forms *f, uint32_t a, uint32_t b);
uint32_t po_form_subtract(po_forms *f, uint32_t a, uint32_t b);
uint32_t po_form_multiply(po_forms *f, uint32_t a, uint32_t b);
uint32_t po_form_divide(po_forms *f, uint32_t a, uint32_t b);
/* Any function of the table but + - * / and neg, which it sends to the ones above. */
uint32_t po_form_apply(po_forms *f, po_mu_function function, const uint32_t *arguments);
uint32_t po_form_sum(po_forms *f, uint32_t a, uint32_t class);
uint32_t po_form_maximum(po_forms *f, uint32_t a, uint32_t class);

/* Free labels, a bit a class. */
uint64_t po_form_labels(const po_forms *f, uint32_t a);
/* How much there is in it: what is put together from parts has more than each part. */
uint32_t po_form_size(const po_forms *f, uint32_t a);
/* Whether it is a number; that. */
bool po_form_is_number(const po_forms *f, uint32_t a, double *value);
/* Whether it is a fraction of whole numbers; that. */
bool po_form_is_rational(const po_forms *f, uint32_t a, po_rational *value);
/* Whether it is one element of a tensor; which. */
bool po_form_is_leaf(const po_forms *f, uint32_t a, uint32_t *tensor);
/* Whether it is one function of forms; which, and its arguments. */
bool po_form_is_function(const po_forms *f, uint32_t a, po_mu_function *function,
                         uint32_t arguments[3]);
/* Whether elements of the tensor are in it. */
bool po_form_reads(const po_forms *f, uint32_t a, uint32_t tensor);
uint32_t po_forms_count(const po_forms *f);
/* For people. */
void po_form_print(const po_forms *f, uint32_t a, po_text *text);

/* Values of plain forms modulo p = 2^61 - 2373 at one point drawn at random (form_value.c): equal
 * forms have equal values, and that of a + b, a - b, a * b and a / b is theirs. False: too deep. */
typedef struct po_form_values po_form_values;
po_form_values *po_form_values_create(po_arena *arena, po_forms *f);
bool po_form_value(po_form_values *v, uint32_t form, uint64_t *value);

/* All that may be computed on the way to a form: parts of products with labels still open, parts of
 * sums over what they have in common, arguments of functions. In increasing size. */
typedef struct po_closure {
    uint32_t n;
    uint32_t *forms;
} po_closure;

/* At most `limit` forms; the rest is left out (`full`). */
void po_form_close(po_forms *f, po_arena *arena, uint32_t target, uint32_t limit, po_closure *c,
                   bool *full);

#endif

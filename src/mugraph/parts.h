/* What the files of this folder share. */
#ifndef PO_MUGRAPH_PARTS_H
#define PO_MUGRAPH_PARTS_H

#include "mugraph/mugraph.h"

/* Whether a function's name stands between its arguments. */
bool po_mu_is_infix(po_mu_function function);

/* Types in text, by po_mu_type. */
extern const char *const po_mu_type_names[3];

/* Whether the statement adds nothing where the operand is `fill`, whatever finite numbers the
 * others are. */
bool po_mu_adds_nothing(const po_mu_statement *s, uint32_t operand, double fill);

/* The loop at or outside the tensor's scope that binds the label; PO_NONE. */
uint32_t po_mu_local_loop(const po_mu *mu, const po_mu_tensor *t, uint32_t label);

/* The words of the text: labels may not be named by them, and tensors that are stand in quotes. */
bool po_mu_is_reserved(const char *name);

#endif

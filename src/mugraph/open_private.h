/* Between open.c (what hangs on sizes, and where) and open_find.c (what each length is). */
#ifndef PO_MUGRAPH_OPEN_PRIVATE_H
#define PO_MUGRAPH_OPEN_PRIVATE_H

#include "mugraph/open.h"

static inline bool po_mu_is_open(po_dim d) {
    return d.value < 0;
}

/* The length that a number at hand stands for; else the number. */
po_dim po_mu_open_number(const po_mu_open *open, int64_t number);

/* The least value of an index, and how far the greatest lies above it; false where the least is not
 * the same at all sizes, or a length is not known. t: its local labels stay within a chunk. way:
 * which of the lengths labels have that their numbers stand for. */
bool po_mu_open_reach(const po_mu_open *open, const po_mu_tensor *t, const po_mu_index *index,
                      uint32_t way, int64_t *least, po_dim *reach, bool *cut);

/* Calls for each access of each statement, until one fails. */
typedef po_status po_mu_access_fn(void *user, const po_mu_access *access, bool written);
po_status po_mu_each_access(const po_mu *mu, po_mu_access_fn *fn, void *user);

/* Extents of labels and dims of tensors. PO_UNSUPPORTED: one that is two lengths, or an index in
 * digits whose bases are not known. */
po_status po_mu_open_find(po_ctx *ctx, po_mu_open *open);

#endif

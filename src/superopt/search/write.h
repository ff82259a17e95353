/* What writes of plans share (emit.c, gpu/emit.c): accesses and tensors by classes. */
#ifndef PO_SUPEROPT_SEARCH_WRITE_H
#define PO_SUPEROPT_SEARCH_WRITE_H

#include "superopt/schedule/internal.h"
#include "superopt/search/internal.h"

typedef struct search_writer {
    const search_problem *p;
    const search_skeleton *s;
    po_schedule *to;
    uint32_t *leaf;         /* by naive tensor: its twin; PO_NONE */
    const po_mu_view *view; /* by naive tensor: where it lies in `to`; NULL: by itself */
    po_for_label label[PO_FORM_CLASSES]; /* of the step under way: what stands for a class */
    bool as_is;                          /* weights are read as they are, by their own numbers */
} search_writer;

/* Adds the class's labels to an axis. */
void search_at(const search_writer *w, po_mu_access *access, uint32_t axis, uint32_t class);
/* The classes of a set, in the order of axes; their number. */
uint32_t search_classes_of(const search_problem *p, uint64_t labels, uint32_t *classes);
/* A tensor with an axis for each class; at least one axis. */
uint32_t search_tensor(search_writer *w, const char *name, po_mu_place place, uint64_t labels,
                       uint32_t scope);
/* The access of one; of a tensor of the naive muGraph, which gets its twin. */
po_mu_access search_access(search_writer *w, uint32_t tensor, uint64_t labels);
po_mu_access search_border_access(search_writer *w, uint32_t naive);

/* A NUMBER in a statement; its item. */
uint32_t search_number(search_writer *w, uint32_t statement, const search_node *n);

#endif

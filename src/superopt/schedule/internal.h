/* What schedulers share. */
#ifndef PO_SUPEROPT_SCHEDULE_PRIVATE_H
#define PO_SUPEROPT_SCHEDULE_PRIVATE_H

#include "superopt/schedule/schedule.h"

/* A naive step: a statement, and perhaps one fused to it. */
typedef struct po_naive_step {
    uint32_t main, fused;            /* nodes; PO_NONE */
    const po_mu_statement *s, *tail; /* tail NULL: none */
    const po_mu_access *out;         /* of the step: what reaches memory */
    uint32_t lane; /* kept label with coef 1 along the last axis of out; PO_NONE */
    /* Products a * b of two operands, only one of which has the lane: */
    bool product;
    uint32_t a, b; /* operands without and with the lane */
} po_naive_step;

/* False where the step has another form (more statements). */
bool po_naive_step_of(const po_mu *mu, uint32_t step, po_naive_step *n);

/* The axis whose index holds the label, PO_NONE: none or several. */
uint32_t po_access_axis(const po_mu *mu, const po_mu_access *access, uint32_t label);
/* Whether what is written for numbers of the label from its extent on lies outside of the tensor,
 * so that a scheduler may work whole tiles over its end. PO_NONE: there are none. */
bool po_ends_outside(const po_mu *mu, const po_mu_access *out, uint32_t label);
/* Number of labels of extent above 1 that are kept and not in the list. */
bool po_is_reduced(const po_mu *mu, const po_naive_step *n, uint32_t label);

/* In how many parts a panel of so many lanes and rows is worked: 1 where registers hold a row of
 * it. It is read in strides where they do not. */
int64_t po_panel_parts(const po_isa *isa, const int64_t panel[2]);

/* An access of a tensor of the scheduled muGraph, a label an axis; PO_NONE: one element only. */
po_mu_access po_access_by(po_mu *mu, uint32_t tensor, const uint32_t *labels);
/* out += a * b, from 0; the statement. */
uint32_t po_add_product(po_mu *mu, uint32_t parent, po_mu_access out, po_mu_access a,
                        po_mu_access b);

/* What stands for a naive label: an affine index in labels of the scheduled muGraph. */
enum { PO_FOR_LABEL_TERMS = 4 };
typedef struct po_for_label {
    uint32_t n;
    po_mu_term terms[PO_FOR_LABEL_TERMS];
} po_for_label;

/* One for each naive label, none set. */
po_for_label *po_for_labels(const po_schedule *s);
/* A label of the same extent stands for it; its number. */
uint32_t po_keep_label(po_schedule *s, po_for_label *map, uint32_t label);
/* The same for all labels of the step that nothing stands for yet. */
void po_keep_labels(po_schedule *s, po_for_label *map, const po_naive_step *n);

/* Lays a map out by its lanes (the last axis): whole vectors, and a gap where rows would fall on
 * few sets of the cache. */
void po_schedule_lay(po_mu *mu, uint32_t tensor);

uint32_t po_twin(po_schedule *s, uint32_t naive_tensor);
/* The access with its labels replaced; weights are read unpacked (in order, the last axis padded).
 */
po_mu_access po_map_access(po_schedule *s, const po_for_label *map, const po_mu_access *access);
/* The same on a tensor of the scheduled muGraph of the same rank. */
po_mu_access po_map_access_on(po_schedule *s, const po_for_label *map, const po_mu_access *access,
                              uint32_t rank, uint32_t tensor);
/* A weight in panels: [panels][axes in this order][panel] for the axis `split` of the natural
 * dims; the lane label within a panel and the panel's number stand for `lane` in `map`, as terms 0
 * (within) and 1 (number, coef = elements of a panel; absent where there is one panel). */
typedef struct po_panels {
    uint32_t weight_tensor; /* naive */
    uint32_t split;
    int64_t panel;
    int64_t within; /* elements of a panel, the rest is 0; 0: all, the last panel may have fewer */
    uint32_t n_order, order[PO_MU_MAX_RANK];
} po_panels;
uint32_t po_pack_weight(po_schedule *s, const po_panels *p);
po_mu_access po_panel_access(po_schedule *s, const po_for_label *map, const po_mu_access *access,
                             const po_panels *p, uint32_t tensor);

/* Copies a naive statement's items, operands by po_map_access, those in `replaced` (by operand,
 * tensor not PO_NONE) as they are. */
uint32_t po_map_statement(po_schedule *s, uint32_t parent, const po_for_label *map,
                          const po_mu_statement *from, const po_mu_access *out,
                          const po_mu_access *replaced);

#endif

/* How forms are held. */
#ifndef PO_SUPEROPT_FORM_PRIVATE_H
#define PO_SUPEROPT_FORM_PRIVATE_H

#include "superopt/search/form.h"

enum {
    FORM_FACTORS = 12,
    FORM_BOUND = 4,
    FORM_TERMS = 12,
    FORM_CLASS_BITS = 6, /* of a label: class, then height; height 0: free */
    FORM_TEMPORARY = 512 /* heights that no stored form has */
};

typedef uint16_t form_label;

static inline uint32_t form_class(form_label l) {
    return l & ((1u << FORM_CLASS_BITS) - 1);
}
static inline uint32_t form_height(form_label l) {
    return l >> FORM_CLASS_BITS;
}
static inline form_label form_label_of(uint32_t class, uint32_t height) {
    return (form_label)(height << FORM_CLASS_BITS | class);
}

typedef enum form_kind {
    FORM_LEAF,
    FORM_NUMBER, /* no fraction of small numbers */
    FORM_OF,     /* a form, below a bar */
    FORM_FUNCTION,
    FORM_MAXIMUM /* label[0] is bound */
} form_kind;

/* No padding inside: hashed and compared as bytes. */
typedef struct form_atom {
    uint32_t kind, function, tensor, n_labels;
    form_label label[PO_MU_MAX_RANK];
    uint32_t arg[3], n_args;
    double value;
} form_atom;

typedef struct form_factor {
    uint32_t atom;
    int32_t power;
} form_factor;

/* A term without its fraction. */
typedef struct form_body {
    uint32_t n_bound, n_factors;
    form_label bound[FORM_BOUND];
    form_factor factor[FORM_FACTORS];
} form_body;

typedef struct form_term {
    uint32_t body, unused;
    po_rational scale;
} form_term;

typedef struct form_sum {
    uint32_t n, unused;
    form_term term[FORM_TERMS]; /* by body */
} form_sum;

/* What is known of an atom, a body, a form. */
typedef struct form_facts {
    uint64_t free, bound; /* classes of labels that occur free; of others, inner ones included */
    uint32_t height;      /* greatest of what is bound inside */
    uint32_t size;
} form_facts;

typedef struct form_table {
    size_t item;
    uint8_t *items;
    form_facts *facts;
    uint32_t n, cap_items, cap_facts;
    po_hash_map *map;
} form_table;

struct po_forms {
    po_arena *arena;
    bool exact;
    uint32_t n_classes;
    int64_t extent[PO_FORM_CLASSES];
    form_table atoms, bodies, sums;
};

const form_atom *form_atom_at(const po_forms *f, uint32_t i);
const form_body *form_body_at(const po_forms *f, uint32_t i);
const form_sum *form_sum_at(const po_forms *f, uint32_t i);

typedef struct form_map {
    uint32_t n;
    form_label from[PO_FORM_CLASSES], to[PO_FORM_CLASSES];
} form_map;

/* A form under way: terms in any order, bodies as they come. */
typedef struct form_build {
    uint32_t n;
    form_term term[FORM_TERMS];
    bool failed;
} form_build;

void form_build_add(po_forms *f, form_build *b, const form_body *body, po_rational scale);
uint32_t form_build_end(po_forms *f, form_build *b);
uint32_t form_atom_rename(po_forms *f, uint32_t atom, const form_map *map);
/* Whether a label that is not bound inside the atom occurs in it. */
bool form_occurs(const po_forms *f, uint32_t atom, form_label label);
uint32_t form_rename(po_forms *f, uint32_t form, const form_map *map);
uint32_t form_scaled(po_forms *f, uint32_t form, po_rational by);
uint32_t form_function_atom(po_forms *f, po_mu_function function, const uint32_t *arguments);
bool form_is_exp(const po_forms *f, uint32_t atom);
uint32_t form_intern(po_forms *f, form_table *t, const void *item);

#endif

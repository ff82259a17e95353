/* Between consumers.c and borders.c (what an input is used for), size.c (how long it is) and
 * inputs.c (what it then holds). */
#ifndef PO_VERIFY_INPUTS_PRIVATE_H
#define PO_VERIFY_INPUTS_PRIVATE_H

#include "verify/inputs/inputs.h"

typedef enum po_role {
    PO_ROLE_FREE = 0, /* any number of the dtype */
    PO_ROLE_RANGE,    /* integers (perhaps kept as floats) from low to high, both inclusive */
    PO_ROLE_MASK,     /* 0 or 1; a row is ones, then zeros */
    PO_ROLE_REAL,     /* floats uniform from low to high */
    PO_ROLE_LIST      /* the integers given, cut or padded with the last to the length */
} po_role;

/* What the consumers ask of an input. */
typedef struct po_need {
    po_role role;
    double low, high;
    uint32_t n;
    const int64_t *list;
    bool arithmetic; /* only element-wise operators take it: integers of either sign are fine */
    bool guessed;    /* the range is none that a consumer asks for: borders may lie outside of it */
} po_need;

/* Follows the value through operators that only move data to all that consume it. */
po_need po_need_of(po_arena *arena, const po_graph *graph, po_value_id value);

/* A value at which the graph takes another branch. */
typedef struct po_border {
    double at;
    bool exact; /* the input itself is compared; else rounding decides where the branch begins */
} po_border;

typedef struct po_borders {
    uint32_t n;
    po_border *list;
} po_borders;

/* borders.c: those of an input, added to what is there (all 0: nothing). */
void po_borders_add(po_arena *arena, const po_graph *graph, po_value_id value, po_borders *borders);

/* Lengths at which a graph may take another branch: integer constants that it compares, divides or
 * cuts by, and the ones after them. Returns how many of at most `most` there are; none twice. */
uint32_t po_border_lengths(const po_graph *graph, int64_t *lengths, uint32_t n, uint32_t most);

/* --- the plan --- */

enum { PO_MOST_BORDER_SIZES = 24, PO_MOST_WORDS = 16, PO_MOST_MEANT = 3, PO_MOST_RELATIONS = 16 };
/* Of the largest value of a model, where a length is no one's wish: 512 MB of floats. */
#define PO_MOST_ELEMENTS ((int64_t)1 << 27)
/* Assignments at which the model is meant to be used are numbered from here on. */
enum { PO_FIRST_MEANT = 64 };

typedef struct po_input {
    const char *name;
    uint32_t number; /* among the graph's inputs */
    po_type type;
    po_need need;
    po_borders borders;
    uint32_t runs; /* a bit an axis: windows or recurrent layers run along it */
} po_input;

/* An assignment with one length of its own; the others are those of assignment 0. */
typedef struct po_border_size {
    const char *symbol; /* of the dims that have it; NULL: those without */
    int64_t length;
} po_border_size;

/* The lengths that were asked for of an input; `number`: in which assignment. */
typedef struct po_wanted {
    uint32_t input, number;
    const int64_t *dims;
} po_wanted;

/* A name that the model wants to be as long as an expression of others. */
typedef struct po_relation {
    const char *symbol;
    po_dim is;
} po_relation;

/* What a length is drawn as: the model's nodes take no other, or none below it. */
typedef struct po_drawn {
    const char *symbol; /* of an axis without a name: PO_UNNAMED */
    int64_t length;
    bool least;
} po_drawn;

struct po_inputs {
    po_arena *arena;
    uint32_t n, n_relations, n_drawn;
    po_relation relation[PO_MOST_RELATIONS];
    po_drawn drawn[PO_MOST_RELATIONS];
    po_input *inputs;
    uint32_t n_words, n_border;
    po_bytes words[PO_MOST_WORDS]; /* that the graphs hold: strings are compared with them */
    po_border_size border[PO_MOST_BORDER_SIZES];
    uint32_t n_meant, n_wanted;
    const po_wanted *wanted;
    bool dense; /* an output has open dims besides the batch */
    bool dynamic, has_masks, has_floats, has_ranges, has_borders;
};

po_dim_class po_input_class(const po_input *in, uint32_t axis); /* size.c */

/* size.c: NULL: none. */
const po_input *po_input_named(const po_inputs *plan, const char *name);
/* size.c: the first input with a dim of this name, and the dim; NULL: none. */
const po_input *po_input_with(const po_inputs *plan, const char *symbol, uint32_t *axis);
/* size.c: the length of an axis at an assignment; of a tensor of unknown rank too. */
int64_t po_input_length(const po_inputs *plan, const po_input *in, uint32_t axis, uint32_t size);
/* Fills `border` with the lengths at which the graphs may branch; b may be NULL. */
void po_inputs_find_borders(po_inputs *plan, const po_graph *a, const po_graph *b);
/* relations.c: finds lengths that elementwise nodes want to be equal; types are inferred. */
po_status po_inputs_find_relations(po_inputs *plan, const po_graph *graph);
/* The length of a name that follows from others at an assignment; false where none does. */
/* The length that windows and sums of the model want of an open axis, or the least such; NULL: any.
 */
const po_drawn *po_drawn_length(const po_inputs *plan, const po_input *in, uint32_t axis);
bool po_related_length(const po_inputs *plan, const char *symbol, uint32_t size, int64_t *length);
/* meant.c: counts the assignments that the model is meant for. */
void po_inputs_find_meant(po_inputs *plan, const po_graph *graph);
/* What was asked for of an axis; false: nothing. The length of a symbol, false where no input has
 * it; and of an axis of which nothing else is known. In assignment k of these. */
bool po_meant_asked(const po_inputs *plan, const po_input *in, uint32_t axis, uint32_t k,
                    int64_t *length);
bool po_meant_symbol(const po_inputs *plan, const char *symbol, uint32_t k, int64_t *length);
int64_t po_meant_length(const po_inputs *plan, const po_input *in, uint32_t axis, uint32_t k);
/* Whether the part, in small letters, stands anywhere in the text. */
bool po_name_contains(const char *text, const char *part);

#endif

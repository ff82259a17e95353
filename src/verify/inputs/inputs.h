/* Inputs for a model that respect what the model does with them: ids stay below the vocabulary,
 * masks are 0 and 1, lengths fit, shape inputs are valid; every dim without a length gets several.
 * Numbers depend on the seed, the input's place and the element alone. */
#ifndef PO_VERIFY_INPUTS_H
#define PO_VERIFY_INPUTS_H

#include "cost/ort/ort.h"
#include "ir/graph.h"

typedef struct po_inputs po_inputs;

/* The length of each dim of an input, by name: --input-shape, --sizes. */
typedef struct po_pin {
    const char *name;
    uint32_t rank;
    const int64_t *dims; /* --input-shape: -1 where a dim stays open */
    const char *const
        *open; /* by dim that stays open: its name, where it has none; NULL: none do */
} po_pin;

/* Whether an input of this type can have them: PO_BAD_USE, by the option's name, where it is no
 * tensor, has another rank, or a dim of another length. */
po_status po_pin_check(po_ctx *ctx, const char *option, const po_type *type, const po_pin *pin);

typedef enum po_input_kind {
    PO_INPUTS_NORMAL,   /* floats standard normal; the others random in their range */
    PO_INPUTS_UNIFORM,  /* floats uniform in [0, 1), as images are */
    PO_INPUTS_ZERO,     /* floats and free integers 0 */
    PO_INPUTS_LARGE,    /* floats normal, times 30 */
    PO_INPUTS_EXTREME,  /* integers at the ends of their range */
    PO_INPUTS_ONE_HOT,  /* one 1 in each row of floats */
    PO_INPUTS_MASKED,   /* as normal, with fully masked rows */
    PO_INPUTS_DENORMAL, /* floats tiny, some of them denormal */
    PO_INPUTS_IMAGE,    /* waves and discs over the last two axes */
    PO_INPUTS_PAGE,     /* dark strokes in lines on light paper */
    PO_INPUTS_RAMP,     /* rising or falling along every axis */
    PO_INPUTS_CONSTANT, /* one number all over */
    PO_INPUTS_SPARSE,   /* mostly 0 */
    PO_INPUTS_OFFSET,   /* normal about plus or minus the scale */
    PO_INPUTS_BORDERS,  /* where the graph tells values apart: at what they are compared with, at
                           ties of rounding, and beside them */
    PO_INPUTS_KINDS
} po_input_kind;

/* Reads the graph's inputs (those that are not initialisers) and what consumes them. Where `other`
 * has an input of the same name with more known dims (pinned ones), these hold. */
po_status po_inputs_plan(po_ctx *ctx, po_arena *arena, const po_graph *graph, const po_graph *other,
                         po_inputs **plan);

/* How many assignments of lengths to dims there are to try, best first; 1 where all are known. */
uint32_t po_inputs_sizes(const po_inputs *plan);
/* Further assignments, numbered on from these: open dims at lengths at which one of the graphs
 * takes another branch, since it compares or cuts by integers that are near. Those that one graph
 * alone has come first. */
uint32_t po_inputs_border_sizes(const po_inputs *plan);

/* The assignments that the model is meant for, best first: what is timed is timed at these. By what
 * the inputs are (tokens, images, frames), or as asked for; 0 where no dim is open. */
uint32_t po_inputs_meant(const po_inputs *plan);
uint32_t po_inputs_meant_size(uint32_t k); /* the number of the k-th of them */
bool po_inputs_is_meant(uint32_t size);
/* The assignments in the order in which one is looked for that the model can be read at: those that
 * it is meant for; others that are no larger than these, the largest first; the rest. */
uint32_t po_inputs_turns(const po_inputs *plan);
uint32_t po_inputs_turn(const po_inputs *plan, uint32_t k);
/* Added to an assignment's number: the same with no sample in the batches, or with one where a
 * first axis is such a batch. */
enum { PO_EMPTY_BATCH = 1 << 16, PO_ONE_SAMPLE = 1 << 17 };
bool po_inputs_has_batch(const po_inputs *plan);                     /* that is open */
bool po_inputs_alike(const po_inputs *plan, uint32_t a, uint32_t b); /* the same lengths */
/* These instead (--sizes). An input that comes again begins the next assignment; symbols of its
 * dims have its lengths in the other inputs too. The dims must outlive the plan. PO_BAD_USE where
 * the model has no such input or its dims are others. */
po_status po_inputs_want(po_ctx *ctx, po_arena *arena, po_inputs *plan, const po_pin *sizes,
                         uint32_t n);
bool po_inputs_asked(const po_inputs *plan); /* whether that was done */
po_hash po_pins_hash(po_hash hash, const po_pin *pins, uint32_t n);
/* What an open dim counts, by what the input is. PO_DIM_SEQUENCE: anything; also where the model
 * has no such input. */
typedef enum po_dim_class {
    PO_DIM_BATCH,
    PO_DIM_CHANNELS,
    PO_DIM_SPACE,
    PO_DIM_SEQUENCE
} po_dim_class;
po_dim_class po_inputs_class(const po_inputs *plan, const char *name, uint32_t axis);
/* Number k of what the model's nodes say of names: that they are a number, or (exact: false) are
 * drawn as one; *symbol NULL: something else is said. False: there are no more. */
bool po_inputs_demanded(const po_inputs *plan, uint32_t k, const char **symbol, int64_t *length,
                        bool *exact);
/* A length by those of others, which the model shows by what it adds elementwise; unknown where it
 * shows nothing. Over the model's symbols. */
po_dim po_inputs_related(const po_inputs *plan, const char *symbol);
/* The length of an input's dim; -1 where the model has no such input. */
int64_t po_inputs_length(const po_inputs *plan, const char *name, uint32_t axis, uint32_t size);
/* An assignment, and the dim that an input has there (po_input_dim_fn); its own where the model has
 * no such input. */
typedef struct po_assignment {
    const po_inputs *plan;
    uint32_t size;
} po_assignment;
po_dim po_assigned_dim(void *assignment, po_graph *graph, po_value_id input, uint32_t axis);
/* The length that a name has there, by the first input with a dim of it (po_size_length_fn); false
 * where none has. */
bool po_assigned_length(void *assignment, const char *name, int64_t *length);
/* Whether no value of the graph is larger than 512 MB there, as far as its lengths are seen. */
bool po_inputs_fit(po_ctx *ctx, const po_inputs *plan, const po_graph *graph, uint32_t size);
/* Elements of all inputs. */
double po_inputs_elements(const po_inputs *plan, uint32_t size);
/* Whether a kind differs from PO_INPUTS_NORMAL for this model. */
bool po_inputs_has(const po_inputs *plan, po_input_kind kind);

/* Which set. */
typedef struct po_draw {
    uint32_t size;
    po_input_kind kind;
    uint64_t seed;
    double scale; /* of floats that may be any; 0: 1 */
} po_draw;

/* Set k of those that take no part in a choice: every kind and scale in turn, as far as the model
 * has them. */
po_draw po_inputs_fresh(const po_inputs *plan, uint32_t k, uint64_t seed);

/* Makes one set. PO_UNSUPPORTED for inputs that are no tensors, sequences or optional ones of
 * them, and for sets over 2 GiB. */
po_status po_inputs_draw(po_ctx *ctx, po_arena *arena, const po_inputs *plan, const po_draw *draw,
                         po_feed *feed);
po_status po_inputs_make(po_ctx *ctx, po_arena *arena, const po_inputs *plan, uint32_t size,
                         po_input_kind kind, uint64_t seed, po_feed *feed);

/* "normal x:1x3x64x96", "page, times 3, x:1x3x64x96" */
const char *po_inputs_tell(po_arena *arena, const po_inputs *plan, const po_draw *draw);
const char *po_inputs_describe(po_arena *arena, const po_inputs *plan, uint32_t size,
                               po_input_kind kind);

#endif

/* The graph: values, nodes and attributes, with the edits that rewrites need.
 *
 * Values and nodes are numbered; a number never changes while the graph lives, removed nodes
 * leave holes. po_graph_order gives the nodes in execution order: as imported, what was inserted
 * beside the node that it was inserted at. A stage clones the graph that it is given and
 * edits the clone; the clone shares strings, tensors and types with what it came from, so the
 * older graph's arena must outlive it (src/pipeline keeps them all until the end). */
#ifndef PO_IR_GRAPH_H
#define PO_IR_GRAPH_H

#include "ir/tensor.h"

typedef uint32_t po_value_id;
typedef uint32_t po_node_id;
typedef uint16_t po_op_id; /* a row of the operator registry (ops/op.h); 0: opaque */

typedef struct po_graph po_graph;
typedef struct po_model po_model;
typedef struct po_function po_function; /* ir/function.h */

/* --- attributes --- */

typedef enum po_attr_kind {
    PO_ATTR_UNDEFINED = 0, /* a kind that is kept verbatim and not interpreted (type protos) */
    PO_ATTR_FLOAT = 1,     /* the numbers are those of ONNX's AttributeProto.AttributeType */
    PO_ATTR_INT = 2,
    PO_ATTR_STRING = 3,
    PO_ATTR_TENSOR = 4,
    PO_ATTR_GRAPH = 5,
    PO_ATTR_FLOATS = 6,
    PO_ATTR_INTS = 7,
    PO_ATTR_STRINGS = 8,
    PO_ATTR_TENSORS = 9,
    PO_ATTR_GRAPHS = 10,
    PO_ATTR_SPARSE_TENSOR = 11,
    PO_ATTR_SPARSE_TENSORS = 12,
    PO_ATTR_TYPE = 13,
    PO_ATTR_TYPES = 14
} po_attr_kind;

typedef struct po_attr {
    const char *name;
    po_attr_kind kind;
    uint32_t n; /* items of the list kinds; 1 for the others */
    union {
        float f;
        int64_t i;
        po_bytes s;
        const po_tensor *t;
        po_graph *g;
        const float *floats;
        const int64_t *ints;
        const po_bytes *strings;
        const po_tensor *const *tensors;
        po_graph **graphs;
        po_hash verbatim; /* of the kinds that are kept verbatim: what they hold */
    } u;
    const char *reference; /* in function bodies: the function's attribute that it takes; or NULL */
    const void *origin;    /* the AttributeProto it was read from; NULL once it was changed */
} po_attr;

/* --- values --- */

#define PO_USE_CAPTURE UINT32_MAX /* po_use.input of a value used inside a node's body */

typedef struct po_use {
    po_node_id node;
    uint32_t input; /* index among the node's inputs, or PO_USE_CAPTURE (once per node) */
} po_use;

/* What is known of the contents of a small integer tensor of rank 0 or 1 (shape arithmetic). */
typedef struct po_partial {
    uint32_t n;
    const po_dim *items; /* value -1: element unknown, perhaps with the symbol that it equals */
} po_partial;

typedef struct po_value {
    const char *name; /* unique over the root graph and all bodies; never "" */
    po_type type;
    po_node_id producer;            /* PO_NONE: graph input, initialiser or captured value */
    uint32_t output;                /* index among the producer's outputs */
    const po_tensor *constant;      /* initialisers, and outputs of Constant nodes */
    const struct po_recipe *recipe; /* how a rewrite made the constant (ops/recipe/recipe.h); NULL:
                                       it is the model's own, or its origin is not known */
    const po_partial *partial;      /* found by shape inference; may be NULL */
    po_value_id outer;   /* in a body: the captured value's id in the parent; else PO_NONE */
    bool is_input;       /* of its graph; with `constant` set: an initialiser that callers may
                            override, never folded */
    bool is_initializer; /* listed among the graph's initialisers */
    uint32_t n_outputs;  /* how many of the graph's outputs it is */
    po_use *uses;
    uint32_t n_uses, cap_uses;
    const void *origin; /* ValueInfoProto, for import and export; may be NULL */
} po_value;

/* --- nodes --- */

typedef struct po_node {
    po_op_id op;
    const char *op_type;
    const char *domain;   /* "" for ai.onnx */
    const char *overload; /* "" where absent */
    const char *name;     /* "" where absent */
    uint32_t n_in, n_out, n_attr;
    po_value_id *in;  /* PO_NONE: omitted optional input */
    po_value_id *out; /* PO_NONE: omitted output */
    uint32_t *slot;   /* per input: where the value's use list has it; kept by the edits */
    po_attr *attr;
    bool removed;
    uint64_t order;     /* preferred place; nodes of the same place run as their inputs demand */
    const void *origin; /* NodeProto: doc string, metadata and unknown fields are kept from it */
} po_node;

/* --- graphs --- */

struct po_graph {
    po_arena *arena;  /* root: owned; body: the root's */
    po_model *model;  /* opsets, functions, origin; shared, not owned */
    po_graph *parent; /* NULL for the root */
    po_graph *root;   /* itself for the root */
    po_node_id owner; /* body: the parent's node that holds it; PO_NONE until that node is added */
    const char *name;
    po_value *values;
    uint32_t n_values, cap_values;
    po_node *nodes;
    uint32_t n_nodes, cap_nodes; /* removed ones counted */
    uint32_t n_live;             /* not removed */
    po_value_id *inputs, *outputs, *initializers;
    uint32_t n_inputs, n_outputs, n_initializers;
    uint32_t cap_initializers;
    uint64_t next_order;
    po_map *names;      /* root only: every value name in use, bodies included, for fresh ones */
    uint32_t next_name; /* root only */
    const po_function *functions; /* root only: those that calls in the graph stand for */
    uint32_t n_functions;
    const void *origin; /* GraphProto */
};

/* An operator-set import of the model. */
typedef struct po_opset {
    const char *domain;
    int64_t version;
} po_opset;

/* What a function of the file holds: its nodes, the operator sets that they are of, and the
 * functions that they call. */
typedef struct po_function_sum {
    const char *domain, *name, *overload;
    po_hash contents;
} po_function_sum;

/* What belongs to the whole file. Its arena owns everything that import made: it outlives every
 * graph. */
struct po_model {
    po_arena *arena;
    po_graph *graph; /* as imported */
    int64_t ir_version;
    po_opset *opsets;
    uint32_t n_opsets;
    const po_function_sum *functions; /* those that the file came with */
    uint32_t n_functions;
    const char *path;   /* as given by the caller; NULL for built models */
    const void *origin; /* what import keeps for export; NULL for built models */
};

/* Version of a domain ("" or "ai.onnx" for the standard one); 0 where it is not imported. */
int64_t po_model_opset(const po_model *model, const char *domain);
/* The function that the node calls; NULL where the model has none of that name. */
const po_function_sum *po_model_function(const po_model *model, const po_node *node);

/* Makes an empty root graph with an arena of its own, or an empty body in the parent's arena. */
po_graph *po_graph_create(po_ctx *ctx, po_model *model, const char *name);
po_graph *po_graph_create_body(po_graph *parent, const char *name);
void po_graph_free(const po_graph *graph); /* root graphs; NULL is allowed */
/* Deep copy with the same value and node numbers, bodies included. */
po_graph *po_graph_clone(po_ctx *ctx, const po_graph *graph);

/* --- building (ids are returned) --- */

/* The name is copied, and made unique by a suffix where it is taken; NULL asks for a fresh one. */
po_value_id po_graph_add_value(po_graph *graph, const char *name, const po_type *type);
po_value_id po_graph_add_input(po_graph *graph, const char *name, const po_type *type);
/* An initialiser (in a body: of the body), without a recipe. */
po_value_id po_graph_add_constant(po_graph *graph, const char *name, const po_tensor *tensor);
/* In a body: the value that stands for a value of the parent graph (the same one each time). */
po_value_id po_graph_capture(po_graph *body, po_value_id parent_value);
void po_graph_add_output(po_graph *graph, po_value_id value);

/* Adds a node at the end of the order, or at the place of an existing one (before or after it, as
 * the wiring demands). Outputs must be values without a producer. op_type and domain are copied;
 * the registry row is set by po_ops_resolve or by the caller. Input ids may be PO_NONE. */
typedef struct po_node_spec {
    po_op_id op;
    const char *op_type;
    const char *domain;   /* NULL: "" */
    const char *overload; /* NULL: "" */
    const char *name;     /* NULL: none */
    uint32_t n_in, n_out, n_attr;
    const po_value_id *in, *out;
    const po_attr *attr; /* the array is copied, what it points to is not */
    const void *origin;
} po_node_spec;
/* What another node is, under its name, on other values: as many as it has. */
po_node_spec po_node_spec_like(const po_node *node, const po_value_id *in, const po_value_id *out);
po_node_id po_graph_add_node(po_graph *graph, const po_node_spec *spec);
po_node_id po_graph_add_node_at(po_graph *graph, po_node_id place, const po_node_spec *spec);

/* --- editing: use lists are kept up to date --- */

void po_graph_set_input(po_graph *graph, po_node_id node, uint32_t input, po_value_id value);
/* Appends or drops inputs at the end. */
void po_graph_resize_inputs(po_graph *graph, po_node_id node, uint32_t n_in);
/* Every use of `from`, captures in bodies and graph outputs included, becomes a use of `to`.
 * Where `from` is a graph output the output's name must survive: `to` then takes its name, unless
 * `to` is a graph input, an initialiser or an output itself; the call then leaves that one use
 * alone and returns false. The caller keeps its node for it or inserts an Identity. */
bool po_graph_replace_uses(po_graph *graph, po_value_id from, po_value_id to);
/* Makes a value without a producer the node's output; what was there before loses its producer. */
void po_graph_set_output(po_graph *graph, po_node_id node, uint32_t output, po_value_id value);
/* Withdraws the node's uses and removes it; its outputs must be unused (they lose their producer).
 */
void po_graph_remove_node(po_graph *graph, po_node_id node);
/* Takes initialisers off the list of inputs: before IR version 4 they had to be inputs too, and
 * were constants all the same. */
void po_graph_free_initialisers(po_graph *graph);
/* Removes nodes and initialisers that nothing uses, following inputs; nodes in bodies too. Returns
 * how many nodes went. Graph inputs always stay. */
uint32_t po_graph_sweep(po_graph *graph);
/* Makes a value constant: it becomes an initialiser with this tensor and no recipe; its producer
 * goes where nothing else of it is used. Not for graph inputs, outputs and captured values: returns
 * false. */
bool po_graph_make_constant(po_graph *graph, po_value_id value, const po_tensor *tensor);

/* Copies the nodes of a body of `place` (without inputs of its own) into the graph beside that
 * node. Returns what became of the body's outputs. The node then must go: the body is used up. */
const po_value_id *po_graph_absorb_body(po_graph *graph, po_node_id place, po_graph *body);

/* --- attributes --- */

const po_attr *po_node_attr(const po_node *node, const char *name);
int64_t po_node_int(const po_node *node, const char *name, int64_t otherwise);
float po_node_float(const po_node *node, const char *name, float otherwise);
/* NULL where absent; *n is set. */
const int64_t *po_node_ints(const po_node *node, const char *name, uint32_t *n);
const float *po_node_floats(const po_node *node, const char *name, uint32_t *n);
/* Compares a string attribute; an absent one equals `otherwise`. */
bool po_node_string_is(const po_node *node, const char *name, const char *text,
                       const char *otherwise);
/* Sets (adds or replaces). Lists are copied. */
void po_node_set_int(po_graph *graph, po_node_id node, const char *name, int64_t value);
void po_node_set_float(po_graph *graph, po_node_id node, const char *name, float value);
void po_node_set_ints(po_graph *graph, po_node_id node, const char *name, uint32_t n,
                      const int64_t *values);
void po_node_set_string(po_graph *graph, po_node_id node, const char *name, const char *value);
void po_node_remove_attr(po_graph *graph, po_node_id node, const char *name);

/* Kind and value the same, names not looked at. Bodies are never equal here: po_graph_equal
 * compares those. */
bool po_attr_equal(const po_attr *a, const po_attr *b);
/* Name, kind and value; bodies by their kind alone. */
po_hash po_attr_hash(const po_attr *attr);

/* --- walking --- */

/* The name a value is written with: captured values have the name of what they capture. */
const char *po_graph_value_name(const po_graph *graph, po_value_id value);

/* The input of this name; PO_NONE: there is none. */
po_value_id po_graph_input(const po_graph *graph, const char *name);
/* The live nodes in execution order: ids, in the graph's arena. */
const po_node_id *po_graph_order(const po_graph *graph, po_arena *arena, uint32_t *n);
/* The node that makes the value, or NULL. */
const po_node *po_graph_producer(const po_graph *graph, po_value_id value);
/* The single use of a value that is neither captured nor a graph output, or NULL. */
const po_use *po_graph_sole_use(const po_graph *graph, po_value_id value);
/* Constant that may be folded, followed through captures. An initialiser that is also an input may
 * be overridden by the caller and is none, except before IR version 4, where every initialiser had
 * to be listed so and runtimes take it as constant. */
const po_tensor *po_graph_constant(const po_graph *graph, po_value_id value);
/* Calls fn for the graph and then every body below it, in order. */
po_status po_graph_walk(po_ctx *ctx, po_graph *graph,
                        po_status (*fn)(po_ctx *ctx, po_graph *graph, void *user), void *user);

/* What a node's operator means, as far as its name does not say it: the version of its operator
 * set, and the function that it calls with what that holds. */
po_hash po_graph_operator_hash(const po_graph *graph, const po_node *node);

/* Structural equality and hash: operators with their operator sets and the functions that they
 * call, attributes, wiring, types of inputs, bytes of constants, in execution order; names of
 * inputs and outputs count, inner names do not. */
bool po_graph_equal(const po_graph *a, const po_graph *b);
po_hash po_graph_hash(const po_graph *graph);

/* Checks every invariant that this header states (use lists, single producers, order, acyclic,
 * captures, names). PO_INTERNAL with what is broken. */
po_status po_graph_check(po_ctx *ctx, const po_graph *graph);

#endif

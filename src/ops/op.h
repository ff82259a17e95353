/* The operator registry: one row per operator (ops.def), one file per family.
 *
 * A row gives the operator's attributes for every opset version, its shape rule with data
 * propagation, its float64 reference and, where it is linear, its indexed sum. What a row leaves
 * out is NULL: passes skip such an operator. Operators without a row are opaque. */
#ifndef PO_OPS_OP_H
#define PO_OPS_OP_H

#include "ir/graph.h"

/* Row numbers: PO_OP_Relu and so on; 0 is opaque. Operators of the standard domain are named
 * PO_OP_Name, those of com.microsoft PO_OP_MS_Name. */
typedef enum po_op {
    PO_OP_OPAQUE = 0,
#define PO_OP_ROW(id, ...) PO_OP_##id,
#include "ops/ops.def"
#undef PO_OP_ROW
    PO_OP_COUNT
} po_op;

typedef enum po_op_flag {
    PO_OPF_ELEMENTWISE = 1 << 0, /* out[i] depends on the (broadcast) inputs at i alone */
    PO_OPF_COMMUTATIVE = 1 << 1, /* the first two inputs may be swapped */
    PO_OPF_RANDOM = 1 << 2,      /* never folded, never merged */
    PO_OPF_CONTROL = 1 << 3,     /* has bodies */
    PO_OPF_MOVES_DATA = 1 << 4,  /* outputs are input elements or constants, no arithmetic */
    PO_OPF_SHAPE_ONLY = 1 << 5,  /* the data stays as it is: Reshape, Squeeze, Flatten, Identity */
    PO_OPF_LINEAR = 1 << 6,      /* (multi)linear in its float inputs: has a sem */
    PO_OPF_ACTIVATION = 1 << 7,  /* unary non-linear, elementwise */
    PO_OPF_QUANTIZE = 1 << 8,    /* QuantizeLinear and its kind: pairs stay intact */
    PO_OPF_JUMPS = 1 << 9,       /* of inputs right beside each other it may give far ones */
    PO_OPF_EXACT = 1 << 10,      /* floats are elements of inputs, their negatives or constants */
    PO_OPF_SUMS = 1 << 11,       /* adds up products of elements of its float inputs */
    PO_OPF_PRODUCTS = 1 << 12,   /* adds up products of two inputs: what most time goes into */
    PO_OPF_WINDOW = 1 << 13,     /* kernel_shape, strides and pads: slides over the map's axes */
    PO_OPF_SCATTERS = 1 << 14,   /* several elements of an input may meet in one of the output */
    PO_OPF_COSTLY = 1 << 15,     /* a transcendental function of every element */
    PO_OPF_BOUNDED = 1 << 16,    /* no element of the output is outside of [-1, 1] */
    PO_OPF_SAMPLES = 1 << 17,    /* each place of the first input's first axis by itself */
    PO_OPF_ALONG = 1 << 18,      /* each place of the axes before its `axis` or `axes` by itself */
    PO_OPF_REDUCES = 1 << 19     /* its axes are an attribute, or the second input; none: all */
} po_op_flag;

/* An attribute as of an opset range. Where its default changed between versions there is a row
 * for each range. */
typedef struct po_attr_def {
    const char *name;
    po_attr_kind kind;
    int since, until; /* opset versions, both inclusive; until 0: still there */
    bool required;
    bool has_default; /* INT, FLOAT and STRING kinds only */
    int64_t i;
    float f;
    const char *s;
} po_attr_def;

typedef struct po_infer po_infer;
typedef struct po_ref po_ref;
typedef struct po_sem po_sem;
typedef struct po_ref_frame po_ref_frame; /* ref.c */

typedef struct po_op_row {
    const char *name, *domain;
    uint32_t flags;
    int min_in, max_in, min_out, max_out; /* max -1: variadic */
    po_status (*infer)(po_infer *infer);
    po_status (*ref)(po_ref *ref);
    po_status (*sem)(po_sem *sem);
    const po_attr_def *attrs; /* ends with a row whose name is NULL; may be NULL: none */
} po_op_row;

const po_op_row *po_op_row_of(po_op_id op); /* NULL for opaque */
/* Row of an operator by name; PO_OP_OPAQUE where there is none. */
po_op_id po_op_find(const char *domain, const char *op_type);
static inline bool po_op_has(po_op_id op, uint32_t flag) {
    const po_op_row *row = po_op_row_of(op);
    return row && (row->flags & flag) != 0;
}
static inline bool po_op_has_all(po_op_id op, uint32_t flags) {
    const po_op_row *row = po_op_row_of(op);
    return row && (row->flags & flags) == flags;
}
/* Adds up products of two inputs and has an indexed sum that says which. */
static inline bool po_op_is_product(po_op_id op) {
    return po_op_has_all(op, PO_OPF_PRODUCTS) && po_op_row_of(op)->sem;
}
/* Adds up what windows of the map show: a plain convolution, an average pool. */
static inline bool po_op_sums_windows(po_op_id op) {
    return po_op_has_all(op, PO_OPF_WINDOW | PO_OPF_SUMS) && !po_op_has(op, PO_OPF_SCATTERS) &&
           po_op_row_of(op)->sem;
}

/* Sets every node's row, bodies included. Nodes that call a model function stay opaque. */
void po_ops_resolve(po_graph *graph);
/* Adds a node of a registered operator: the spec's op is given, op_type and domain follow. */
po_node_id po_ops_add(po_graph *graph, po_node_id place, const po_node_spec *spec);

/* Checks a node's attributes against its row: kinds, required ones, counts of inputs and outputs.
 * PO_BAD_INPUT names node and attribute. Unknown attributes are let through (newer opsets). */
po_status po_ops_check_node(po_ctx *ctx, const po_graph *graph, const po_node *node);

/* The same against the operator's signature in the model's opset (signatures.def): every input that
 * it wants, none too many, no attribute that it does not have. Operators without a row and opsets
 * newer than the table pass. */
po_status po_signature_check(po_ctx *ctx, const po_graph *graph, const po_node *node);
/* And the element types of the node's inputs, as far as the graph's values have one. */
po_status po_signature_types(po_ctx *ctx, const po_graph *graph, const po_node *node);
po_status po_signature_outputs(po_ctx *ctx, const po_graph *graph, const po_node *node);
/* Whether the node may take and give tensors of type `to` wherever it has `from`: its operator is
 * known to, and no output has `from` but as an input has it (an attribute may say it: Cast). */
bool po_signature_retypes(const po_graph *graph, const po_node *node, po_dtype from, po_dtype to);

/* An attribute's value where present, else the default of the row for the model's opset. */
int64_t po_op_int(const po_graph *graph, const po_node *node, const char *name);
float po_op_float(const po_graph *graph, const po_node *node, const char *name);
/* The string or its default; size 0 where neither is there. */
po_bytes po_op_string(const po_graph *graph, const po_node *node, const char *name);
/* Opset version that holds for the node (of its domain). */
int64_t po_op_version(const po_graph *graph, const po_node *node);

/* --- shape rules --- */

/* What a rule wants an open length to be. */
typedef enum po_demand_kind {
    PO_DEMAND_IS,       /* the number */
    PO_DEMAND_LIKELY,   /* the number, but others are no error: 1, which spreads */
    PO_DEMAND_AT_LEAST, /* that, for a window to fit */
    PO_DEMAND_SEQUENCE, /* nothing, but its elements are no samples: windows or layers run along it
                         */
    PO_DEMAND_KINDS
} po_demand_kind;

typedef struct po_demand {
    po_demand_kind kind;
    po_dim is; /* open: a name, or an expression of names */
    int64_t number;
} po_demand;

typedef struct po_demands {
    po_arena *arena;
    po_demand *list;
    uint32_t n, cap;
} po_demands;

/* What a shape rule sees and fills. Omitted inputs have type NULL. A rule that cannot know a
 * result leaves it: outputs start as unknown tensors. PO_BAD_INPUT where shapes contradict. */
struct po_infer {
    po_ctx *ctx;
    po_arena *arena;
    const po_graph *graph;
    const po_node *node;
    int64_t opset;
    uint32_t n_in, n_out;
    const po_type *const *in;
    const po_tensor *const *constant; /* per input, NULL where not constant */
    const po_partial *const *partial; /* per input, NULL where nothing is known of the contents;
                                         given for constants too (small integer ones) */
    po_type *out;
    const po_partial **out_partial; /* data propagation, for small integer outputs */
    bool lenient;                   /* for bodies: as given to po_infer_graph */
    po_demands *demands;            /* gets what is found; may be NULL */
};

/* What the graph's nodes demand of its open lengths, without its bodies: weights say how long the
 * rows are that they multiply, whatever the model's inputs declare. In the order of the nodes. An
 * axis of an input that is open and has no name goes by PO_UNNAMED, with the input's number and its
 * own. */
#define PO_UNNAMED_FIRST "petopt.open."
#define PO_UNNAMED       PO_UNNAMED_FIRST "%u.%u"
po_status po_infer_demands(po_ctx *ctx, po_arena *arena, const po_graph *graph, po_demands *found);

/* Infers the types of every value of the graph and its bodies, in order, merging with what the
 * model declares. A contradiction fails with the node's name, except where `lenient`: then the
 * declared type stays. Data propagation included. */
po_status po_infer_graph(po_ctx *ctx, po_graph *graph, bool lenient);
/* The types of what one node makes, from those of its inputs; a contradiction is let through. */
void po_infer_one(po_graph *graph, po_node_id node);
/* Whether some node can never run: PO_BAD_INPUT where a rule contradicts what the graph's inputs,
 * its constants and the rules of the nodes before say, *failed (else PO_NONE) being that node. What
 * the model declares of values that nodes make counts for nothing, and nodes in bodies, which may
 * never be executed, are let through. The graph stays as it is. */
po_status po_infer_check(po_ctx *ctx, const po_graph *graph, po_node_id *failed);
/* Leaves out the shapes that the model declares of what its nodes make: a runtime takes them as a
 * hint and goes by what it meets, so that nothing may be built on them. Element types stay, and so
 * does what is said of operators without a rule, and of the inputs of bodies. */
po_status po_infer_forget_shapes(po_ctx *ctx, po_graph *graph);

/* A dim of a graph's input (a tensor of known rank) in the place of the one that it has. */
typedef po_dim (*po_input_dim_fn)(void *user, po_graph *graph, po_value_id input, uint32_t axis);
/* A copy with other dims of its inputs, to be freed by the caller; nothing is inferred anew. */
po_graph *po_graph_with_dims(po_ctx *ctx, const po_graph *graph, po_input_dim_fn dim, void *user);
/* The same, and the types of what its nodes make, as far as they follow. */
po_graph *po_infer_with_dims(po_ctx *ctx, const po_graph *graph, po_input_dim_fn dim, void *user);

/* --- float64 reference --- */

/* A tensor of the reference: floats of every width are doubles, integers and bool are int64
 * (u64: two's complement), strings are po_bytes. The dtype stays, and every output element is
 * rounded to it, so that folding gives the model's own precision. */
typedef struct po_array {
    po_dtype dtype;
    uint32_t rank;
    int64_t *dims;
    int64_t count;
    double *f;   /* PO_CLASS_FLOAT */
    int64_t *i;  /* signed, unsigned, bool */
    po_bytes *s; /* PO_STR */
} po_array;

struct po_ref {
    po_ctx *ctx;
    po_arena *arena;
    const po_graph *graph;
    const po_node *node;
    int64_t opset;
    uint32_t n_in, n_out;
    const po_array *const *in; /* NULL: omitted */
    po_array **out;      /* the rule makes them; read n_out and node->out for what is wanted */
    po_ref_frame *frame; /* the evaluation under way, for bodies (ops/ref.h); may be NULL */
    bool round;          /* false: floats stay doubles */
};

/* Makes an array, zeroed. PO_UNSUPPORTED for dtypes that the reference does not have. */
po_status po_array_create(po_ctx *ctx, po_arena *arena, po_dtype dtype, uint32_t rank,
                          const int64_t *dims, po_array **array);
po_status po_array_from_tensor(po_ctx *ctx, po_arena *arena, const po_tensor *tensor,
                               po_array **array);
/* Rounds to the dtype. */
po_status po_array_to_tensor(po_ctx *ctx, po_arena *arena, const po_array *array,
                             po_tensor **tensor);
/* Rounds every float to the array's dtype and wraps every integer to its width, in place. */
void po_array_round(po_array *array);

/* Evaluates one node. PO_UNSUPPORTED (not recorded as an error: check the status) where the row has
 * no reference or it does not handle the dtypes. Outputs are rounded to their dtype; they may share
 * memory with the inputs. */
po_status po_ref_node(po_ctx *ctx, po_arena *arena, const po_graph *graph, const po_node *node,
                      const po_array *const *in, po_array **out);
/* The same for a node whose inputs, where there are any, are all constants of the graph. */
po_status po_ref_constants(po_ctx *ctx, po_arena *arena, const po_graph *graph, const po_node *node,
                           po_array **out);
/* Evaluates a whole graph in order (bodies through If, Loop, Scan rows). `in` are the graph's
 * inputs in order, `out` its outputs. With `round` false floats stay doubles in between: the
 * float64 reference of whole models (docs/operators.md). */
po_status po_ref_graph(po_ctx *ctx, po_arena *arena, const po_graph *graph,
                       const po_array *const *in, po_array **out, bool round);
/* The float64 reference, and in `noisy` the outputs where each float that its dtype would round is
 * off by half of its last bit, up or down by the number `draw`; so is what an operator adds up,
 * since it rounds by the size of its partial sums. Noise ends at operators that jump, and at those
 * with bodies. `out` may be NULL, which takes half of the time and memory where noise ends nowhere.
 */
po_status po_ref_graph_noisy(po_ctx *ctx, po_arena *arena, const po_graph *graph,
                             const po_array *const *in, uint64_t draw, po_array **out,
                             po_array **noisy);

#endif

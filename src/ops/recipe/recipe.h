/* Recipes: how a stored constant was made from the constants of the model.
 *
 * A rewrite that derives weights states them as an expression; the numbers follow from it by the
 * float64 reference, in its fixed order of operations, and are rounded once, where the constant is
 * stored. The expression is kept with the value (po_value.recipe), so that a certificate can show
 * it, `verify` can compute it again bit for bit, and a proof can evaluate it modulo a prime with
 * the model's constants as free variables.
 *
 * Recipes are typed as ONNX is: every operator rounds to the element type of its result. The
 * algebra below works in f64: what it takes from the model passes through a Cast to f64 first, and
 * a Cast to the stored type comes last. What simplify folds keeps the model's own types. In a
 * proof a Cast between float types is the identity, and operators mean what they do in the model.
 *
 * A constant without a recipe is the model's own; integers that only shape operators (axes, dims,
 * indices) have none either and are literals where a recipe reads them. docs/recipes.md */
#ifndef PO_OPS_RECIPE_H
#define PO_OPS_RECIPE_H

#include "ops/move/rt.h"
#include "ops/op.h"

typedef enum po_recipe_kind {
    PO_RECIPE_SOURCE, /* a constant of the model as imported: an initialiser, a Constant's output */
    PO_RECIPE_LITERAL, /* numbers that an algorithm makes: tables of simple rationals, indices */
    PO_RECIPE_OP       /* an operator of the registry on recipes */
} po_recipe_kind;

/* Immutable; a directed acyclic graph. */
typedef struct po_recipe po_recipe;
struct po_recipe {
    po_recipe_kind kind;
    po_dtype dtype;
    uint32_t rank;
    const int64_t *dims;
    int64_t count;
    const char *name;        /* SOURCE: in the model */
    const po_tensor *tensor; /* SOURCE, LITERAL (f64 or i64): the values; OP: the values where the
                                result is a stored constant, else NULL */
    po_op_id op;             /* OP: this operator at po_recipe_opset, */
    uint32_t n_in, n_attr;
    uint32_t n_out, output;     /* its output `output` of n_out */
    const po_recipe *const *in; /* NULL: omitted */
    const po_attr *attr;
    uint32_t height; /* operators on the longest way down to values at hand */
    bool kept;       /* in the arena of a graph */
};

/* --- what values are made of --- */

/* The value as it is stored: its recipe, or the source or literal that it is. The value must be
 * constant (po_graph_constant). Captured values are looked up where they are defined. */
const po_recipe *po_recipe_of(const po_graph *graph, po_arena *arena, po_value_id value);
/* The value as an f64 expression to derive others from: before it was rounded where the algebra
 * made it (its numbers may then differ from the stored ones by that rounding), else cast. */
const po_recipe *po_recipe_doubles(const po_graph *graph, po_arena *arena, po_value_id value);

/* --- leaves ---
 * Recipes are made in any arena; storing one copies it to the graph's. */

/* f64 numbers, copied. */
const po_recipe *po_recipe_literal(po_arena *arena, uint32_t rank, const int64_t *dims,
                                   const double *values);
const po_recipe *po_recipe_number(po_arena *arena, double number); /* rank 0 */
/* The same number everywhere. */
const po_recipe *po_recipe_fill(po_arena *arena, uint32_t rank, const int64_t *dims, double number);
/* n x n */
const po_recipe *po_recipe_identity(po_arena *arena, int64_t n);
const po_recipe *po_recipe_ints(po_arena *arena, uint32_t n, const int64_t *values); /* i64 [n] */
/* A tensor that an algorithm made, of any element type; floats become f64. */
const po_recipe *po_recipe_table(po_arena *arena, const po_tensor *tensor);

/* --- algebra on f64 recipes; shapes must fit (an assertion) --- */

const po_recipe *po_recipe_add(po_arena *arena, const po_recipe *a, const po_recipe *b);
const po_recipe *po_recipe_sub(po_arena *arena, const po_recipe *a, const po_recipe *b);
const po_recipe *po_recipe_mul(po_arena *arena, const po_recipe *a, const po_recipe *b);
const po_recipe *po_recipe_div(po_arena *arena, const po_recipe *a, const po_recipe *b);
const po_recipe *po_recipe_neg(po_arena *arena, const po_recipe *a);
const po_recipe *po_recipe_sqrt(po_arena *arena, const po_recipe *a);
const po_recipe *po_recipe_reshape(po_arena *arena, const po_recipe *a, uint32_t rank,
                                   const int64_t *dims);
/* Axis i of the result is axis perm[i] of a. */
const po_recipe *po_recipe_transpose(po_arena *arena, const po_recipe *a, const uint32_t *perm);
const po_recipe *po_recipe_expand(po_arena *arena, const po_recipe *a, uint32_t rank,
                                  const int64_t *dims);
/* Both of rank 2 or more, leading axes broadcast. */
const po_recipe *po_recipe_matmul(po_arena *arena, const po_recipe *a, const po_recipe *b);
const po_recipe *po_recipe_concat(po_arena *arena, uint32_t axis, uint32_t n,
                                  const po_recipe *const *parts);
/* The slices `indices` of an axis, in that order. */
const po_recipe *po_recipe_gather(po_arena *arena, const po_recipe *a, uint32_t axis, uint32_t n,
                                  const int64_t *indices);
/* Slices [from, to) of an axis. */
const po_recipe *po_recipe_slice(po_arena *arena, const po_recipe *a, uint32_t axis, int64_t from,
                                 int64_t to);

/* --- in index notation (notation.c): NULL where text and shapes do not fit --- */

/* "ojt,jc->oct": the sum of products over the letters that do not stand behind the arrow; letters
 * of an operand are its axes, each once. Two at a time from the left, as products of matrices; a
 * sum over several letters runs in the order in which the first operand has them. */
const po_recipe *po_recipe_einsum(po_arena *arena, const char *equation, uint32_t n,
                                  const po_recipe *const *operands);
/* A move that loses and adds nothing, "o (j t) -> (o t) j", as po_rt_of_names reads it. */
const po_recipe *po_recipe_rearrange(po_arena *arena, const po_recipe *a, const char *text,
                                     uint32_t n, const po_rt_size *sizes);

/* Rounding to a type without the smallest numbers: what is at most PO_RECIPE_TINY becomes zero. In
 * a proof it is the identity, like a Cast between float types. */
#define PO_RECIPE_TINY 0x1p-100
const po_recipe *po_recipe_drop_tiny(po_arena *arena, const po_recipe *a);
/* Whether a node of recipes is such a rounding, of PO_RECIPE_TINY or less. */
bool po_recipe_drops_tiny(const po_node *node);

/* Any operator, as of po_recipe_opset. The arrays are copied, what attributes point to is not. */
typedef struct po_recipe_spec {
    po_op_id op;
    uint32_t n_in, n_attr, n_out, output; /* n_out 0: 1 */
    const po_recipe *const *in;
    const po_attr *attr;
    po_dtype dtype; /* of the result */
    uint32_t rank;
    const int64_t *dims;
} po_recipe_spec;
const po_recipe *po_recipe_op(po_arena *arena, const po_recipe_spec *spec);
/* True where the node's operator means the same at the opset of its graph and at po_recipe_opset,
 * and may be stated at all (no bodies, nothing random). */
bool po_recipe_can_state(const po_graph *graph, const po_node *node);
/* A node of the graph whose inputs are constant, for its output: what folding it comes to. NULL
 * where it cannot be stated: the output is not a tensor of known shape, an input is not constant,
 * or the operator changed between the model's opset and po_recipe_opset. */
const po_recipe *po_recipe_of_node(const po_graph *graph, po_arena *arena, const po_node *node,
                                   uint32_t output, const po_tensor *result);

/* --- numbers --- */

/* Opset of the standard domain that recipes are written for: the model's, at least 13. */
int64_t po_recipe_opset(const po_model *model);
/* A model without a graph that has that opset, and those of other domains of the given one (may be
 * NULL). */
po_model *po_recipe_model(po_arena *arena, const po_model *model);

/* Evaluates; the array is the arena's. Every operator works in the order of the reference. f64 is
 * not rounded. PO_UNSUPPORTED (not recorded) where the reference does not take it, for one because
 * it is too large. */
po_status po_recipe_eval(po_ctx *ctx, po_arena *arena, const po_model *model,
                         const po_recipe *recipe, po_array **array);

/* Evaluates, rounds to dtype, and adds an initialiser with that recipe. PO_NONE where it cannot be
 * evaluated or an element is not finite once rounded: the rewrite must then be given up, so this
 * comes before any edit. */
po_value_id po_add_recipe(po_graph *graph, const char *name, po_dtype dtype,
                          const po_recipe *recipe);
/* States how a constant that exists was made, of its element type. Copies the recipe. */
void po_set_recipe(po_graph *graph, po_value_id value, const po_recipe *recipe);
/* The same for a float constant that these numbers were rounded to (po_add_floats). */
void po_set_recipe_literal(po_graph *graph, po_value_id value, const double *values);
/* A constant with other dims of the same product: it shares the data. */
po_value_id po_add_reshaped(po_graph *graph, po_value_id constant, uint32_t rank,
                            const int64_t *dims);
/* Gives every constant of a graph the recipe that po_recipe_of finds, so that the values may get
 * other names (a body that moves into the graph around it). */
void po_name_sources(po_graph *graph);

/* --- as a graph (graph.c) --- */

/* Recipes of every constant that has one, bodies and functions included, as one graph, ordered by
 * the graph's lists: inputs are the sources by name, outputs the derived constants by the names
 * that they are exported with, initialisers the literals. It prints and parses as .pir; evaluated
 * by po_ref_graph with rounding it gives the stored bits. Opset: po_recipe_opset. NULL in *recipes
 * where no constant has a recipe. */
po_status po_recipes_to_graph(po_ctx *ctx, const po_graph *graph, po_graph **recipes);

/* Those of the recipes that are of a constant of `graph`, by name; NULL where none is. */
po_status po_recipes_of(po_ctx *ctx, const po_graph *recipes, const po_graph *graph,
                        po_graph **out);

/* Computes every output of the recipes again and compares it with the constant of that name in
 * `graph`, bit for bit. Sources are taken by name from the constants of `sources` (the model as
 * imported), types and shapes compared. *why is NULL where all are equal, else what is wrong first
 * (in the arena). Outputs are done one by one: memory for the largest. */
po_status po_recipes_check(po_ctx *ctx, po_arena *arena, const po_graph *recipes,
                           const po_graph *sources, const po_graph *graph, const char **why);
/* The name of the first float constant in use that is neither an output of the recipes (NULL: there
 * are none) nor a constant of `sources` with the same name and bits: nothing is known of it. NULL
 * in *name where there is none. */
po_status po_recipes_missing(po_ctx *ctx, po_arena *arena, const po_graph *recipes,
                             const po_graph *sources, const po_graph *graph, const char **name);

#endif

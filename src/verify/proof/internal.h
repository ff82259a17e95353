/* The parts of a proof: tensors of residues, the nodes' meanings, one evaluation of a graph. */
#ifndef PO_VERIFY_PROOF_PRIVATE_H
#define PO_VERIFY_PROOF_PRIVATE_H

#include "base/field.h"
#include "ops/op.h"
#include "ops/sum/sum.h"
#include "verify/inputs/inputs.h"
#include "verify/proof/proof.h"

/* --- tensors --- */

typedef enum po_term_origin {
    PO_ORIGIN_NONE,
    PO_ORIGIN_CLIP,
    PO_ORIGIN_EXP,
    PO_ORIGIN_EXP_SUM,
    PO_ORIGIN_SCALED,
    PO_ORIGIN_ROW_MOST,
    PO_ORIGIN_ROW_FLOOR,
    PO_ORIGIN_RAISED
} po_term_origin;

/* A number that all elements of a constant have: its residue, and what it is about. */
typedef struct po_pnum {
    bool given;
    uint32_t mod;
    double value;
} po_pnum;

/* Which quotients have their denominators free (docs/proof.md): those by single terms, and by
 * symbols with something older added. */
typedef enum po_pform {
    PO_FORM_OTHER,
    PO_FORM_SHIFTED,  /* a FRESH symbol and what is older */
    PO_FORM_MONOMIAL, /* one term */
    PO_FORM_FRESH     /* a symbol that no other element of the tensor has: an input, a function */
} po_pform;

/* Of a polynomial, at most: its degree, and log2 of the sum of its coefficients' magnitudes, where
 * numbers of the models count as variables. */
typedef struct po_psize {
    double degree, terms;
} po_psize;

/* A common denominator: a product of powers of polynomials, by run->atoms. */
typedef struct po_pfactor {
    uint32_t atom;
    double power;
} po_pfactor;
typedef struct po_punder {
    uint32_t n;
    const po_pfactor *factors; /* ascending atoms */
    po_psize size;
} po_punder;

/* What elements are at most, as quotients of polynomials in weights, inputs and symbols. */
typedef struct po_pbound {
    po_psize size;          /* of numerators; of an element's own denominator as well */
    const po_punder *under; /* what all elements stand over; NULL: 1 */
    bool own;               /* elements may have denominators of their own besides */
    po_pform form;
    uint32_t newest;      /* number of the youngest symbol in it; 0: none */
    po_hash pivot, shift; /* SHIFTED: the symbol, and what it became */
} po_pbound;

/* A tensor: residues, contents that do not depend on residues (integers, what only constants go
 * into), or both. Counted: freed with its last user. */
typedef struct po_ptensor po_ptensor;
struct po_ptensor {
    po_arena *arena;
    po_field field;
    uint32_t users;
    po_dtype dtype;
    uint32_t rank;
    const int64_t *dims;
    int64_t count;
    uint32_t *mod;         /* NULL: not made yet, see po_pt_mod */
    const po_array *known; /* may be NULL */
    po_ptensor *base;      /* whose memory `mod` or `known` lies in; NULL: its own */
    /* How it was made from `from`: clip(from, lo, hi), exp(from), a sum of from = exp(..), lo *
     * from, maxima along axes of from, those minus so much that nothing is left of an exponential,
     * max(x, from) for such a floor of x. */
    po_term_origin origin;
    po_ptensor *from;
    po_pnum lo, hi;
    bool printed;
    po_hash print;
    bool drawn;    /* from inputs that are integers or strings, of which some were drawn */
    bool sized;    /* from lengths that the model leaves open */
    bool decided;  /* by such lengths: it may be another for others */
    bool constant; /* from constants alone */
    po_pbound bound;
};

/* Nodes of one type that the proof knows no laws of. */
typedef struct po_popaque {
    const char *op_type;
    uint32_t n[2]; /* of the original, of the candidate */
} po_popaque;
enum { PO_MOST_OPAQUE = 32 }; /* types; further ones are not told of */

/* 1 / n for the denominators of fractions: constant.c. */
enum { PO_PC_BASES = 3 };
typedef struct po_pfractions {
    uint32_t dyadic, few, bases[PO_PC_BASES];
} po_pfractions;
po_pfractions po_pc_fractions(po_field field);

/* One trial: both graphs, the same variables. */
typedef struct po_prun {
    po_ctx *ctx;
    po_arena *arena;
    po_field field;
    po_pfractions fractions;
    uint64_t seed;
    double cpu_end;     /* 0: none */
    bool late;          /* that did not suffice */
    po_hash_map *reuse; /* expensive nodes that were evaluated, by operator and inputs */
    struct po_preuse *kept;
    uint32_t n_kept, cap_kept;
    size_t kept_bytes;
    const uint32_t *powers; /* of a generator: po_px_exp */
    /* Tables that drawn integers pick rows of: the rows that were not picked must agree as well. */
    po_hash_map *tables;
    po_hash table_sum;
    /* What drawn integers and lengths choose: integers.c. */
    po_hash_map *choices;
    po_hash choice_sum;
    bool open;        /* some lengths are not the model's */
    uint32_t randoms; /* random nodes so far */
    double degree;    /* the largest of what was given to a function, or is an output */
    double chances;   /* over those, of 8 * degree + 1: how many of p points mislead */
    double factors;   /* over those: how many primes may divide what tells two apart */
    po_psize *atoms;  /* of common denominators */
    uint32_t n_atoms, cap_atoms;
    uint32_t stamps;    /* symbols so far */
    po_hash_map *poles; /* symbols that were divided by with something added, to `shifts` */
    po_hash *shifts;
    uint32_t n_shifts, cap_shifts;
    uint32_t nodes, reused;
    bool recipes;  /* what is evaluated are recipes */
    uint32_t side; /* 0: the original is evaluated, 1: the candidate */
    po_popaque opaque[PO_MOST_OPAQUE];
    uint32_t n_opaque;
    po_hash_map *applied[2]; /* functions that residues do not follow, by operator and inputs */
    po_hash applied_sum[2];  /* of each side's */
    bool multiplied;         /* values that depend on inputs, with one another */
    bool refused;            /* a node does not take the shapes that it is given */
    char why[PO_PROOF_TEXT];
} po_prun;

/* What stops the proof, not the run: fills run->why and returns PO_UNSUPPORTED. */
__attribute__((format(printf, 2, 3))) po_status po_pfail(po_prun *run, const char *format, ...);

/* Whether the CPU time left suffices for so many products, at a rate that any machine reaches. */
bool po_prun_affordable(const po_prun *run, double products);
/* PO_UNSUPPORTED: that it would not be. */
po_status po_prun_late(po_prun *run);

/* tensor.c */
/* Residues without contents yet, zeroed. */
po_ptensor *po_pt_residues(po_prun *run, po_dtype dtype, uint32_t rank, const int64_t *dims);
/* The same elements under other dims. */
po_ptensor *po_pt_view(po_prun *run, po_ptensor *of, po_dtype dtype, uint32_t rank,
                       const int64_t *dims);
/* Takes a copy of the array. */
po_ptensor *po_pt_known(po_prun *run, const po_array *array);
/* A constant of a model: float elements are keyed by value. */
po_status po_pt_constant(po_prun *run, const po_tensor *tensor, po_ptensor **out);
static inline po_ptensor *po_pt_use(po_ptensor *t) {
    t->users++;
    return t;
}
void po_pt_drop(po_ptensor *t); /* NULL is allowed */
/* Residues; made from the contents where there are none. NULL for strings. */
const uint32_t *po_pt_mod(po_ptensor *t);
/* Contents as numbers of one value for all elements. */
bool po_pt_number(const po_ptensor *t, po_pnum *number);
po_hash po_pt_print(po_ptensor *t);

/* --- degrees (degree.c) --- */

/* Of numerator and denominator together. */
po_psize po_pb_total(const po_pbound *b);
po_pbound po_pb_symbol(po_prun *run);
/* Single terms of weights. */
po_pbound po_pb_constant(double degree);
/* Numbers that are no variables, with numerators and denominators of so many bits together. */
po_pbound po_pb_numbers(double bits);
/* Of elements that are one or the other. */
po_pbound po_pb_either(po_prun *run, const po_pbound *a, const po_pbound *b);
po_pbound po_pb_sum(po_prun *run, const po_pbound *a, const po_pbound *b);
po_pbound po_pb_product(po_prun *run, const po_pbound *a, const po_pbound *b);
po_pbound po_pb_power(po_prun *run, const po_pbound *a, double power); /* of at least 0 */
/* The elements at other places, or several times. */
po_pbound po_pb_moved(const po_pbound *a);
/* Sums or means of n of the elements. */
po_pbound po_pb_several(const po_pbound *a, double n);
/* x and a new symbol added up. */
po_pbound po_pb_around(po_prun *run, const po_pbound *a);
/* Inverses of the tensor's elements. */
po_pbound po_pb_inverse(po_prun *run, const po_ptensor *of);
/* Marks a sum, whose residues are there, of each element of `pivot` and what is older. */
void po_pb_shifted(po_ptensor *out, po_ptensor *pivot);

/* constant.c: residues of constants. */
uint32_t po_pc_residue(const po_prun *run, double value, po_dtype dtype, bool lone);
void po_pc_residues(const po_prun *run, const po_tensor *tensor, uint32_t *out);

/* --- functions of residues (function.c) --- */

static inline uint64_t po_mix(uint64_t x) {
    x ^= x >> 32;
    x *= 0xd6e8feb86659fd93;
    x ^= x >> 32;
    x *= 0xd6e8feb86659fd93;
    return x ^ x >> 32;
}
/* A random function of x for each key. */
static inline uint32_t po_pf(po_field f, uint64_t key, uint64_t x) {
    uint64_t v = po_mix(x * 0x9e3779b97f4a7c15 ^ key);
    return (uint32_t)((unsigned __int128)v * f.p >> 64);
}
/* The key of a named function. */
uint64_t po_pf_key(const po_prun *run, const char *name);

typedef struct po_pfun {
    po_field field;
    uint64_t exp, erf, log, sqrt, abs, clip, less, equal, set, both, either, power;
    const uint32_t *powers;
} po_pfun;
po_pfun po_pfun_of(const po_prun *run);
void po_pf_powers(po_field f, uint32_t *table); /* PO_PF_POWERS numbers */
enum { PO_PF_POWERS = 3 * 2048 };

uint32_t po_px_exp(const po_pfun *f, uint32_t x);  /* exp(-x) = 1 / exp(x) */
uint32_t po_px_abs(const po_pfun *f, uint32_t x);  /* even */
uint32_t po_px_clip(const po_pfun *f, uint32_t x); /* to [0, 1]; clip(1 - x) = 1 - clip(x) */
uint32_t po_px_erf(const po_pfun *f, uint32_t x);  /* odd */
uint32_t po_px_sqrt(const po_pfun *f, uint32_t x); /* exact for small squares */
uint32_t po_px_relu(const po_pfun *f, uint32_t x); /* (x + |x|) / 2 */
uint32_t po_px_max(const po_pfun *f, uint32_t a, uint32_t b);
uint32_t po_px_power(const po_pfun *f, uint32_t x, const po_pnum *exponent);
/* Function of the set of values; they are reordered. */
uint32_t po_px_set(const po_pfun *f, uint32_t n, uint32_t *values);
void po_px_inverse(po_field f, int64_t n, uint32_t *values); /* all at once; 0 stays 0 */
void po_px_sigmoid(const po_pfun *f, int64_t n, const uint32_t *x, uint32_t *out);
void po_px_tanh(const po_pfun *f, int64_t n, const uint32_t *x, uint32_t *out);

/* --- nodes --- */

/* A node with its inputs, to be given its outputs. */
typedef struct po_pnode {
    po_prun *run;
    po_arena *arena; /* scratch */
    const po_graph *graph;
    const po_node *node;
    int64_t opset;
    po_ptensor **in;     /* NULL: omitted */
    const po_type *type; /* by output, static */
    po_ptensor **out;    /* NULL: not made; counted */
    po_hash captured;    /* what bodies take from around the node */
} po_pnode;

/* Input k, or NULL. */
static inline po_ptensor *po_pn_in(const po_pnode *n, uint32_t k) {
    return k < n->node->n_in ? n->in[k] : NULL;
}
/* The lengths of a static type. */
int64_t *po_pn_dims(po_arena *arena, const po_type *type);
/* A new output of the type inferred. */
po_ptensor *po_pn_out(po_pnode *n, uint32_t k);
/* Input k's residues, broadcast to output 0's shape. NULL where they do not fit. */
const uint32_t *po_pn_broadcast(po_pnode *n, uint32_t k);
/* Counts quotients that are compared, in all: of `times` this size and `more` factors. */
void po_prun_compared(po_prun *run, po_psize size, double times, double more);
po_psize po_psize_larger(po_psize a, po_psize b);
/* Marks an output as new symbols, made by a function of the node's inputs. */
void po_pn_function(po_pnode *n, po_ptensor *out);
/* Attribute as a number, keyed by value. */
po_pnum po_pn_float(const po_pnode *n, const char *name);
po_pnum po_pn_input_number(const po_pnode *n, uint32_t k);

/* Operator and attributes, absent ones by their defaults, bodies by their structure. */
po_hash po_pn_identity(const po_pnode *n);
/* The same and all that goes in. */
po_hash po_pn_print(po_pnode *n);
/* Number k of the list that an input, or an attribute, holds. False where it is not known. */
bool po_pn_ints(const po_pnode *n, uint32_t input, const char *attr, uint32_t *count,
                const int64_t **values);

/* Each returns PO_UNSUPPORTED, without a reason, where it does not take the node: the next way is
 * tried. */
typedef po_status (*po_pnode_fn)(po_pnode *n);
po_status po_pn_pointwise(po_pnode *n); /* pointwise.c: unary and binary functions */
po_status po_pn_clip(po_pnode *n);      /* clip.c: Relu, Clip, Max, Min and their kind */
po_status po_pn_rows(po_pnode *n);      /* rows.c: reductions, softmax, norms */
po_status po_pn_window(po_pnode *n);    /* rows.c: maxima over windows */
po_status po_pn_rotary(po_pnode *n);    /* rotary.c: pairs of elements turned */
po_status po_pn_move(po_pnode *n);      /* move.c: elements that only move */
po_status po_pn_sum(po_pnode *n);       /* move.c: indexed sums */
po_status po_pn_opaque(po_pnode *n);    /* move.c: functions of all that goes in */

/* run.c: inputs by name; outputs are counted. */
typedef struct po_pnamed {
    const char *name;
    po_ptensor *tensor;
} po_pnamed;
/* `constants`: tensors for constants by name, in place of those keyed by value; may be NULL. */
typedef struct po_pgraph_spec {
    const po_graph *graph;
    const po_pnamed *in;
    uint32_t n_in;
    const po_map *constant_at; /* name to index in constants */
    const po_pnamed *constants;
    /* Told of all that nodes make; may be NULL. */
    void (*record)(void *user, po_value_id value, po_ptensor *tensor);
    void *user;
} po_pgraph_spec;
po_status po_prun_graph(po_prun *run, const po_pgraph_spec *spec, po_ptensor **out);
/* Some nodes alone, in order: leaves have the tensors given, and `out` is the target's. */
typedef struct po_ppiece {
    const po_pgraph_spec *spec;
    uint32_t n_leaves, n_nodes;
    const po_value_id *leaves;
    po_ptensor *const *tensors;
    const po_node_id *nodes;
    po_value_id target;
} po_ppiece;
po_status po_prun_piece(po_prun *run, const po_ppiece *part, po_ptensor **out);
/* Drops what was kept to be taken over. */
void po_prun_forget(po_prun *run);

/* differ.c: notes a node that was evaluated; `indexed`: it moves elements, or sums them up.
 */
void po_pn_note(po_pnode *n, bool indexed);
/* Whether a difference of two models that were evaluated is one for sure. */
po_status po_proof_certain(const po_prun *run, const po_graph *a, const po_graph *b,
                           const po_graph *recipes, bool *certain);

/* samples.c: whether both models make of each sample of an open batch what they make of it alone,
 * the other lengths being those of an assignment. */
po_status po_proof_any_batch(po_ctx *ctx, const po_inputs *plan, uint32_t size, const po_graph *a,
                             const po_graph *b, bool *any);

/* disproof.c: makes the difference certain where float64 shows it within the time. */
po_status po_disprove(po_ctx *ctx, const po_inputs *plan, const po_graph *a, const po_graph *b,
                      double seconds, po_proof_report *report);

/* tables.c: notes the table of a Gather in run->table_sum, where rows that were not picked,
 * or were picked for nothing, would not show. */
void po_pn_note_table(po_pnode *n);
/* integers.c */
/* Whether the node's outputs must be symbols, though their contents are known for this trial. */
bool po_pn_symbolic(const po_pnode *n);
/* What the outputs come from. */
void po_pn_mark(const po_pnode *n);
/* Keeps contents beside the residues of output k. */
po_status po_pn_attach(po_pnode *n, uint32_t k, const po_array *contents);
/* Notes the integers that choose what the node reads. */
void po_pn_note_choices(po_pnode *n);

/* True where the node is a Gather or OneHot that picks every row at some place. */
bool po_pn_picks_all(const po_pnode *n);
/* observability.c: true where every element of a value, which the node makes, shows in the graph's
 * outputs, read from operators, shapes and constants. */
bool po_pn_all_observable(po_pnode *n, po_value_id value);

/* --- the whole --- */

/* Primes and seed, from the system or, for tests, from a seed. */
po_status po_proof_draw(po_ctx *ctx, const po_proof_options *options, po_proof_report *r);

/* As po_prove, of one graph beside another, with what was drawn. cpu_start: po_process_seconds()
 * that its time counts from. */
po_status po_proof_of(po_ctx *ctx, const po_graph *original, const po_graph *candidate,
                      const po_graph *recipes, const po_proof_options *options, double cpu_start,
                      po_proof_report *report);

#endif

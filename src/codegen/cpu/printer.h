/* What the parts of the printer share: where labels stand, where tensors lie, lines of C. */
#ifndef PO_CODEGEN_PRINTER_H
#define PO_CODEGEN_PRINTER_H

#include "codegen/cpu/kernel.h"
#include "mugraph/open.h"

/* What a label is where C is being printed: name + add. */
typedef struct cg_value {
    const char *name; /* a C variable; NULL: the number alone */
    int64_t add;
    int64_t least, most; /* of name + add */
    bool inner;          /* runs inside the place where base pointers are taken */
} cg_value;

/* How many steps of a label run: `full`, or what the C expression `count` says. That is full or
 * tail; where the label's extent hangs on sizes, any number up to full in chunks (`open`), and any
 * number at all where the label runs at once. */
typedef struct cg_span {
    const char *start; /* C expression of the first; NULL: 0 */
    int64_t full, tail;
    const char *count; /* NULL: always full */
    bool open;
    const char *at; /* a loop round all the statements of a LANES loop runs it: its variable */
    bool grid;      /* of a GRID loop: what is added up in a chunk of it starts there */
} cg_span;

typedef struct cg_tensor {
    const char *name;   /* in C, within a phase */
    uint32_t number;    /* within a phase, by first use */
    int64_t offset;     /* DEVICE, SHARED: floats from the start of that memory */
    const char *open;   /* the same in C where it hangs on sizes; NULL */
    uint32_t filled_by; /* DEVICE: the first statement that writes it, where its ring lies on what
                           others use and is filled in each call; PO_NONE: once, at the start */
    bool held;          /* its values are in C variables now */
    bool by_row, by_lane;
} cg_tensor;

/* Where in their tensors the accesses of a function begin, but for labels: parameters o_0, o_1, ..
 * of it, so that one that differs in these alone is the same (Strassen's products). */
typedef struct cg_offset {
    uint32_t tensor;
    const char *text; /* " + 16 + z[7]" */
} cg_offset;
typedef struct cg_offsets {
    cg_offset *list;
    uint32_t n, cap;
} cg_offsets;

/* Numbers that hang on sizes: z[0], z[1], .. */
typedef struct cg_size {
    const char *name, *expression; /* "z[k]"; what it is, in C */
} cg_size;

typedef struct cg_sizes {
    cg_size *all;
    uint32_t n, cap;
    po_map *at; /* k by the length that it is (ir/size.h), or by the expression */
} cg_sizes;

typedef struct cg {
    po_ctx *ctx;
    po_arena *arena;
    const po_mu *mu;
    const po_mu_open *open;
    const po_isa *isa;
    const char *symbol;     /* of the program */
    const uint32_t *weight; /* by WEIGHT number: that of the call; NULL: the same */
    bool brief; /* short code rather than unrolled: small sizes wait for their weights anyway */
    po_text *out;
    uint32_t depth; /* of indentation */
    const char *step;
    cg_value *value; /* by label */
    cg_span *span;   /* by label */
    cg_tensor *tensor;
    const char **label;      /* names in C, within a phase */
    cg_sizes *sizes;         /* of all programs of the kernel */
    cg_offsets *offsets;     /* of the function that is printed; NULL: they stand where they are */
    po_codegen_file *shared; /* functions that were printed */
    po_text *file;           /* functions go there, `out` is the text of the one under way */
    const uint32_t *at;      /* the tensors of the phase, by place in its array of pointers */
    uint32_t n_at;
} cg;

/* --- lines of C (lines.c) --- */

__attribute__((format(printf, 2, 3))) void cg_line(cg *g, const char *format, ...);
/* Opens a brace after the text, or alone; closes one. */
__attribute__((format(printf, 2, 3))) void cg_open(cg *g, const char *format, ...);
void cg_brace(cg *g);
void cg_close(cg *g);
/* Text as it may stand in a comment. */
const char *cg_comment(cg *g, const char *text);
/* A float literal. */
void cg_number(po_text *text, double value);

/* --- sizes (sizes.c) --- */

enum {
    CG_DEVICE, /* z[0], z[1]: floats of `device`, and of `scratch` for each part */
    CG_SCRATCH,
    CG_FIRST_SIZE
};

/* A length in C: a number, or z[k]. */
const char *cg_length(cg *g, po_dim length);
/* The same of a C expression over others. */
const char *cg_keep(cg *g, const char *expression);
/* The text of a function with sizes of its own, z[0], z[1], .. in the order in which it has them,
 * so that functions which differ in their place among all of them are the same. `passed`: what the
 * function is given as z where the text came from. */
const char *cg_own_sizes(cg *g, const char *text, const char **passed);
/* A constant of an expression: a number, or 1 over a length. */
const char *cg_constant(cg *g, double value);
/* A sum in C. */
typedef struct cg_terms {
    int64_t number;
    po_text text; /* " + 2 * z[3]" */
} cg_terms;
cg_terms cg_terms_start(cg *g);
void cg_terms_add(cg *g, cg_terms *t, int64_t coef, po_dim length);
/* " + 2 * z[3] - 64", or "". */
const char *cg_terms_text(cg *g, cg_terms *t);
/* The function that fills z from the lengths of the names. */
void cg_sizes_function(cg *g);

/* --- accesses (access.c) --- */

/* Floats that one step of a label moves an access by: at the size that the muGraph was made for,
 * which 0 and 1 are for all; in C, and for all. */
int64_t cg_step_of(const cg *g, const po_mu_access *access, uint32_t label);
const char *cg_step_text(cg *g, const po_mu_access *access, uint32_t label);
/* The pointer to an access, as far as labels outside go: inner ones and what is added to names is
 * left out. */
const char *cg_base(cg *g, const po_mu_access *access);
/* What cg_base leaves out: " + 64 * i_c + 128". */
const char *cg_rest(cg *g, const po_mu_access *access);
/* Whether an index may leave the dims, as far as the labels' values are known. */
bool cg_leaves(cg *g, const po_mu_access *access, uint32_t axis);
/* The C condition that an index lies inside the dims. */
const char *cg_inside(cg *g, const po_mu_access *access, uint32_t axis);
/* Whether no two values of the labels point to one element, as far as axes tell by themselves. */
bool cg_is_apart(const cg *g, const po_mu_access *access);

/* --- blocks (deal.c) --- */

/* Opens the deal of a nest of GRID loops, which is filled in from the outermost; how many they are,
 * and the braces opened. */
uint32_t cg_deal(cg *g, uint32_t node, uint32_t nest[PO_MU_MAX_DEPTH], uint32_t *braces);

/* --- statements --- */

/* The sum or maximum over its lanes that follows a statement and reads what that wrote where it was
 * written, so that one loop makes both; PO_NONE where there is none. */
uint32_t cg_led_by(cg *g, uint32_t node);
/* A statement and those fused to it, or with the sum that it leads; the node after them. */
po_status cg_group(cg *g, uint32_t node, uint32_t *next);
/* Opens the chunks of a loop and binds its label; the end of it (kernel.c). */
void cg_chunks(cg *g, uint32_t node);
void cg_chunks_end(cg *g, uint32_t node);
/* A LANES loop with all that is inside. */
po_status cg_lanes(cg *g, uint32_t node);

/* The C expression of a statement's item over its arguments' expressions; vector: whether any of
 * them is one (those that are not are scalars). */
const char *cg_item(cg *g, const po_mu_statement *s, uint32_t i, const char *const argument[3],
                    const bool vector[3]);
/* Whether it is a sigmoid that is read as the gate of its argument alone: a * sigmoid(a) is one
 * function. Nothing need be printed for it. */
bool cg_is_gate(const po_mu_statement *s, uint32_t i);

/* The text of a program, whose memory was planned: all but the sizes (kernel.c). */
po_status cg_program(cg *g);
/* Of the function that is called. */
extern const char cg_parameters[];

/* About how many cycles the statements from one node to another take (work.c). */
double cg_cycles(cg *g, uint32_t from, uint32_t to);

/* --- memory (memory.c) --- */

/* Of a node's ancestors the one right inside a tensor's scope: what runs once while it lives. */
uint32_t cg_below_scope(const po_mu *mu, uint32_t node, const po_mu_tensor *t);
/* The last node inside another; itself where it has none. */
uint32_t cg_last_inside(const po_mu *mu, uint32_t node);
/* Sets g->tensor, and how much memory there is. */
po_status cg_memory(cg *g);
/* Whether two tensors of a place lie at the same one. */
bool cg_same_place(const cg *g, uint32_t a, uint32_t b);

#endif

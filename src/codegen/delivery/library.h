/* The custom-operator library of a model: printed kernels (codegen/cpu/kernel.h) as operators that
 * ONNX Runtime loads beside it (docs/kernels.md).
 *
 * A region of the model is one node of the domain petopt.kernels. Its operator's name holds a hash
 * of the region and the version of the call between runtime and kernel, so that the library of
 * another model, or of another version, leaves the model's own function of that name in place. The
 * node's inputs are the region's activations, then its packed weights; all are f32 and of the
 * shapes that the region states, static but for the batch, and the library fails the call where
 * they are not. */
#ifndef PO_CODEGEN_LIBRARY_H
#define PO_CODEGEN_LIBRARY_H

#include "base/commit.h"
#include "codegen/cpu/kernel.h"
#include "ir/function.h"

#define PO_LIBRARY_NAME "libpetopt_kernels.so"
enum { PO_KERNEL_ABI = 2 };

/* Where a model's batch is open a kernel is of one sample, and called for each: a dim of -m stands
 * for as many samples as there are, each of m places; all dims before it are 1. */
typedef struct po_kernel_port {
    uint32_t rank;
    int64_t dims[PO_MU_MAX_RANK];
    po_dim open[PO_MU_MAX_RANK]; /* lengths over names where they have a symbol; else `dims` */
} po_kernel_port;

/* A name: what an axis of an input has, over `multiple`. */
typedef struct po_kernel_given {
    uint32_t input, axis;
    int64_t multiple;
} po_kernel_given;
enum { PO_KERNEL_GIVEN = 16 };

/* Lengths that a kernel takes for the same. */
typedef struct po_size_pair {
    po_dim a, b;
} po_size_pair;

/* What a region's node has in the model: n_in activations, and outputs. */
typedef struct po_kernel_ports {
    const po_kernel_port *in, *out;
    uint32_t n_in, n_out;
    const po_kernel_given *given; /* by name of what is open; NULL: nothing is */
    const po_size_pair *equal;    /* where they are not the calls fail */
    uint32_t n_equal;
} po_kernel_ports;

/* Lengths for which a program is meant. */
typedef struct po_size_range {
    po_dim of;
    int64_t least, most; /* most 0: any */
} po_size_range;

/* A part of a region as a program: WEIGHT numbers are those of the whole. */
typedef struct po_kernel_part {
    const po_mu_open *open; /* NULL: there is no such part */
    po_kernel_ports ports;
    const uint32_t *from; /* by input: that of the whole; behind those the outputs of the head */
    const po_size_range *meant; /* all of these, else the whole is called for each sample */
    uint32_t n_meant;
} po_kernel_part;

/* Of a kernel of one sample: how several are worked at once. What gains nothing by that comes first
 * and is called for each of them; `rest` has their number among its lengths. */
typedef struct po_kernel_batched {
    po_kernel_part head, rest; /* head: may be missing */
} po_kernel_batched;

typedef struct po_kernel {
    const char *name; /* operator type and C symbol: letters, digits, underscores */
    const char *what; /* one line for people; may be NULL */
    uint32_t n_in, n_weights, n_out;
    const po_kernel_port *in, *out; /* as the model has them: n_in, n_out */
    const int64_t *weight_floats;   /* n_weights: elements, whatever the initialiser's rank */
    uint32_t n_given;               /* at most PO_KERNEL_GIVEN */
    const po_kernel_given *given;   /* by name */
    const char *const *names;
    const po_size_pair *equal;
    uint32_t n_equal;
    const po_size_range *meant;
    uint32_t n_meant;
    /* Several samples at once, as po_kernel_batched: the rest, and its head, kernels of their own;
     * NULL: there are none. */
    const struct po_kernel *rest, *head;
    const uint32_t *from; /* of a rest and a head */
    /* C text of a file that starts with the prelude and defines NAME_<isa>, NAME_<isa>_start,
     * NAME_<isa>_measure, NAME_<isa>_sizes, of its parts too, which have the same text; NULL: none
     * for this one. At least one is there. */
    const char *code[PO_ISAS];
} po_kernel;

/* What a kernel is printed from. */
typedef struct po_kernel_print_spec {
    const po_mu_open *mu[PO_ISAS];
    const po_kernel_others *others;   /* NULL: the one program is for all sizes */
    const po_kernel_batched *batched; /* NULL: there is none */
    const po_kernel_ports *ports;     /* the model's own; NULL: those of the tensors */
    const int64_t *weights; /* elements of all that its programs read; NULL: those that mu reads */
    uint32_t n_weights;
} po_kernel_print_spec;

/* Fills a region from muGraphs whose INPUT, WEIGHT and OUTPUT tensors agree: INPUT number i is the
 * node's input i, WEIGHT number k its input n_in + k. Kernels are printed by po_codegen_kernel.
 * Ports have as many elements as the tensors, for a sample where the batch is open; the name
 * depends on them there. PO_UNSUPPORTED where a statement has no printer. */
po_status po_kernel_print(po_ctx *ctx, po_arena *arena, const po_kernel_print_spec *spec,
                          po_kernel *region);

/* What of a region does not depend on how it is printed: all but its name and code. */
void po_kernel_set_ports(po_arena *arena, const po_mu *mu, po_kernel *region);

typedef struct po_library_file {
    const char *name, *text;
} po_library_file;

/* A built library, held in memory. */
typedef struct po_library {
    const char *path; /* of the shared object, for this process and its children while the arena
                         lives: po_session_options.kernels, po_select_spec.kernels */
    po_bytes object;  /* its bytes */
    po_hash hash;     /* of the sources and, where objects are kept, the compiler's version */
    const po_library_file *files; /* sources */
    const char *const *flags;     /* of each: the compiler's; NULL: nothing to compile */
    uint32_t n_files;
    const char *about, *more; /* paragraphs of the README: what it is; what else there is */
    bool partly;              /* there was no time for code that this machine does not run */
} po_library;

/* Where objects that were compiled before are kept: find copies one into the arena. */
typedef struct po_object_store {
    void *user;
    bool (*find)(void *user, po_arena *arena, po_hash key, po_bytes *object);
    void (*keep)(void *user, po_hash key, po_bytes object);
} po_object_store;

/* Sources of a library, in an arena. Files in folders ("tensorrt/x.cpp") are only delivered, and so
 * are those with flags NULL; flags of a file that is compiled: at least "". */
typedef struct po_library_sources {
    po_arena *arena;
    po_library_file *files;
    const char **flags; /* by file */
    bool *optional;     /* by file: left out where there is no time */
    uint32_t n, cap, cap_flags, cap_optional;
} po_library_sources;
void po_library_add(po_library_sources *sources, const char *name, const char *text,
                    const char *flags);

/* library_split.c: a kernel's code as NAME_<isa>.c; where it is long some of its functions stand in
 * NAME_<isa>_1.c and so on. */
void po_library_add_code(po_library_sources *sources, const char *name, const po_isa *isa,
                         const char *text, const char *flags, bool optional);

/* Compiles sources into a library: what stands behind po_library_build and its like for other
 * targets. */
typedef struct po_library_parts {
    const char *cc;
    const po_object_store *store;
    const po_library_sources *sources; /* the first is compiled last where some are optional */
    const char *about, *more;
    /* Optional files are left out where they would not be compiled by then; the first file has a
     * further flag then, and the README another text. 0: none are. */
    double until;
    const char *without, *about_without;
} po_library_parts;
po_status po_library_compile(po_ctx *ctx, po_arena *arena, const po_library_parts *parts,
                             const po_library **library);

typedef struct po_library_spec {
    const char *cc;               /* as for po_cc_library */
    const po_object_store *store; /* by sources, flags and cc; NULL: always compiled */
    const po_kernel *kernels;
    uint32_t n_kernels;
    const char *flags; /* further ones for every file; NULL: none (tests: sanitizers, hooks) */
    /* Code that this machine does not run is left out where it would not be compiled by then
     * (po_now); 0: all is compiled. */
    double until;
    bool foreign[PO_ISAS]; /* this machine does not run it */
} po_library_spec;

/* Prints and compiles in a temporary folder that is gone afterwards. What is in the store is not
 * compiled again, so that the same sources have the same bytes. */
po_status po_library_build(po_ctx *ctx, po_arena *arena, const po_library_spec *spec,
                           const po_library **library);

/* Writes DIR/libpetopt_kernels.so, the sources and README.md; makes DIR (one level) where it is not
 * there. Each file appears whole, the library last; after a failure all is as it was.
 * `model` is the name that the README gives as an example. ops NULL: the system's. */
po_status po_library_save(po_ctx *ctx, const po_library *library, const po_file_ops *ops,
                          const char *dir, const char *model);

/* The same in steps: everything is written under temporary names, and takes its own in a commit.
 * Without one nothing is left, once the arena is freed. */
typedef struct po_library_saving po_library_saving;
po_status po_library_begin(po_ctx *ctx, po_arena *arena, const po_library *library,
                           const po_file_ops *ops, const char *dir, const char *model,
                           po_library_saving **saving);
void po_library_join(const po_library_saving *saving, po_commit *commit);

/* Whether DIR could be written, before any work is done for it; it is not made. With a model: also
 * whether what lies in DIR is that model's, and not another's. PO_BAD_USE. */
po_status po_library_check_folder(po_ctx *ctx, const char *dir, const char *model);

#endif

/* What the files of src/import share. */
#ifndef PO_IMPORT_PARTS_H
#define PO_IMPORT_PARTS_H

#include "import/import.h"
#include "import/scan.h"
#include "onnx/onnx.h"

enum {
    PO_DEEPEST_BODY = 32,
    PO_MOST_DATA_FILES = 20000,
    PO_MOST_CALLS = 64 /* functions within functions */
};

typedef struct po_external po_external;

/* A name in a message that will be another. */
typedef struct po_renaming {
    char **name;
    const char *now;
} po_renaming;

typedef struct po_importer {
    po_ctx *ctx;
    po_arena *arena;   /* the model's */
    po_arena *scratch; /* of this import */
    const char *file;  /* for messages */
    po_model *model;
    Onnx__ModelProto *proto;
    po_scanned scan;
    po_external *external; /* NULL: no folder, external data is refused */
    bool has_external;
    bool hard_links;
    uint32_t n_renamed;     /* nodes */
    po_renaming *renamings; /* once the graph is built */
    uint32_t n_renamings, cap_renamings;
    bool unsorted; /* a tensor was asked for that nothing before makes */
} po_importer;

#define po_bad(im, place, ...) po_fail_at((im)->ctx, (im)->file, (place), PO_BAD_INPUT, __VA_ARGS__)

/* tensors.c: checks every tensor of the model, points raw_data to where it lies and external data
 * into its mapping. Afterwards each TensorProto is self-contained and consistent. */
po_status po_import_tensors(po_importer *im);
/* A checked TensorProto as a tensor, its data not copied where the layouts agree. */
const po_tensor *po_import_tensor(po_importer *im, const Onnx__TensorProto *proto);

/* external.c: prepares for external data beside the model at `path`. */
po_external *po_external_create(po_importer *im, const char *path, const po_content *model);
/* The bytes that the tensor's external_data names; `size` is what its type and dims say. */
po_status po_external_find(po_importer *im, const po_place *place, const Onnx__TensorProto *proto,
                           size_t size, const uint8_t **data);
/* Says so where tensors share some of their bytes, but not all. */
void po_external_warn(po_importer *im);
/* Every file in use. */
const po_content *const *po_external_files(po_external *external, uint32_t *n);

/* The function whose body is being built. Without one, references to attributes are refused. */
typedef struct po_binding {
    const Onnx__FunctionProto *function;
    /* Where the body takes the place of a call, else NULL: */
    const po_node *call;    /* a copy: adding nodes moves the graph's own */
    po_node_id place;       /* the call's, now removed */
    const po_graph *caller; /* graph of the call */
    const char *prefix;     /* for names of the body */
    const po_map *omitted;  /* inputs of the function that the call leaves out */
    const po_map *outputs;  /* names of the function's outputs to values of the caller */
} po_binding;

/* Where names are looked up: a graph and, around it, those that it is a body of. */
typedef struct po_scope {
    const struct po_scope *outer;
    po_graph *graph;
    po_map *names; /* name to value id */
    po_map *nodes; /* names of nodes; NULL in functions */
    po_map *types; /* name to index in `infos`, for values that nodes make */
    const Onnx__ValueInfoProto **infos;
    const po_type *info_types; /* what each of them says */
    const po_binding *binding;
    int depth; /* bodies around it */
} po_scope;

/* build.c */
po_status po_build_graph(po_importer *im, const po_place *place, const Onnx__GraphProto *proto,
                         const po_scope *outer, const po_binding *binding, po_graph *graph);
/* The nodes of a graph or function, in order, into scope->graph. */
po_status po_build_nodes(po_importer *im, const po_place *place, po_scope *scope,
                         Onnx__NodeProto *const *nodes, size_t n);
/* Value of a name, captured from around where it is not the graph's own; PO_NONE: there is none. */
po_value_id po_scope_find(const po_scope *scope, const char *name);

/* sort.c: puts the root graph's nodes in order; false where they form a cycle. */
bool po_sort_nodes(po_importer *im);

/* attributes.c: an attribute of a node. *present is false where a reference is bound to nothing. */
po_status po_build_attr(po_importer *im, const po_place *place, const po_scope *scope,
                        const Onnx__AttributeProto *proto, po_attr *attr, bool *present);
/* Checks that the attribute's type and field agree and gives the type. */
po_status po_attr_check(po_importer *im, const po_place *place, const Onnx__AttributeProto *proto,
                        po_attr_kind *kind);

/* What a message holds, once its tensors are resolved. */
po_hash po_message_hash(const ProtobufCMessage *message);

/* nodes.c: sets every node's row and checks the nodes one by one. */
po_status po_check_nodes(po_importer *im);

/* functions.c: checks them, and sums up what each holds for the model. */
po_status po_check_functions(po_importer *im);
/* "domain, name, overload" of a function or of a call. */
const char *po_function_key(po_arena *arena, const char *domain, const char *name,
                            const char *overload);

#endif

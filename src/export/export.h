/* Graphs to ONNX files. What import kept and the IR does not model is written back; weights go from
 * where they lie to the file. */
#ifndef PO_EXPORT_H
#define PO_EXPORT_H

#include "base/commit.h"
#include "ir/graph.h"

/* SHA-256 of what was written, as hexadecimal digits. */
typedef struct po_export_sums {
    const char *model;
    const char *data_name, *data; /* NULL: no external data */
} po_export_sums;
/* Makes the text of OUT.cert, in the arena. */
typedef po_status (*po_certify_fn)(po_ctx *ctx, po_arena *arena, void *user,
                                   const po_export_sums *sums, const char **text);

typedef struct po_export_options {
    const po_file_ops *ops; /* NULL: the system's */
    bool external;          /* weights into a file of data, however small the model is */
    uint64_t limit;         /* bytes that one file may have; 0: 2^31 - 1, protobuf's own limit */
    po_certify_fn certify;  /* called once all is written; NULL: no OUT.cert */
    void *certify_user;
    bool hash; /* fill the hashes of the result; costs reading every byte */
} po_export_options;

typedef struct po_export_result {
    uint64_t model_bytes, data_bytes; /* data_bytes 0: no external data was written */
    po_hash model_hash, data_hash;    /* where asked for: XXH3 of the bytes of each file */
} po_export_result;

/* Writes the model to `path`, and its weights beside it to PATH.<hash>.data where the input had
 * external data or one file would reach the limit: a name that holds a hash of what the file does,
 * so that no model ever meets another's weights. All are complete and on the disk before they take
 * their names: the data first, then the model (which by then has no certificate), then the
 * certificate; last goes the data that the replaced model named, where petopt wrote it. After a
 * failure (PO_IO, PO_CANCELLED) all is as it was. The path may be the input's own. options and
 * result may be NULL. */
po_status po_export_file(po_ctx *ctx, const po_graph *graph, const char *path,
                         const po_export_options *options, po_export_result *result);

/* The same in steps, for a commit that has more in it: all is written, and the steps are added;
 * once they are done (po_commit_run) po_export_end removes what went with the old model. The arena
 * and the commit live until then. */
typedef struct po_export po_export;
po_status po_export_begin(po_ctx *ctx, po_arena *arena, const po_graph *graph, const char *path,
                          const po_export_options *options, po_commit *commit, po_export **out);
void po_export_end(po_export *begun, po_export_result *result);

/* Writes the model to a descriptor (a memfd), all weights inside. PO_UNSUPPORTED where that would
 * reach the limit: use po_export_split. */
po_status po_export_fd(po_ctx *ctx, const po_graph *graph, int fd, const po_export_options *options,
                       po_export_result *result);

/* A weight that a split model does not hold. */
typedef struct po_weight {
    const char
        *location;    /* the name that the model gives for its file; offset 0, the whole of it */
    const void *data; /* lives as long as the graph's tensors */
    size_t size;
} po_weight;

/* Writes a model whose large initialisers are external data under made-up locations, for a runtime
 * that takes them from memory (ONNX Runtime: AddExternalInitializersFromFilesInMemory): nothing is
 * copied, and the model has a few kB. Weights in bodies, attributes and functions stay inside. The
 * list is in `arena`. Locations are the same for the same weight in every model of a process. */
po_status po_export_split(po_ctx *ctx, po_arena *arena, const po_graph *graph, int fd,
                          const po_export_options *options, const po_weight **weights,
                          uint32_t *n_weights, po_export_result *result);

/* Hash of the model that would be written, weights included; nothing is written. */
po_status po_export_hash(po_ctx *ctx, const po_graph *graph, po_hash *hash);

#endif

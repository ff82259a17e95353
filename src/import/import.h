/* ONNX files to graphs. Whatever the file holds that the IR does not model is kept for export. */
#ifndef PO_IMPORT_H
#define PO_IMPORT_H

#include "base/file.h"
#include "ir/graph.h"

/* Reads a model and the external data that it names. Weights are not copied: they lie in read-only
 * mappings that live as long as the model. Failures leave nothing open. PO_BAD_INPUT: one sentence
 * that names file, node and tensor. Free it with po_model_free. */
po_status po_import_file(po_ctx *ctx, const char *path, po_model **model);
/* The same from memory, which must outlive the model. External data is refused: there is no folder
 * that it could be in. */
po_status po_import_bytes(po_ctx *ctx, const void *data, size_t size, po_model **model);

typedef struct po_import_options {
    bool hard_links; /* accept external data with more than one name: such a file can be one of
                        another's that was linked into the model's folder */
} po_import_options;
po_status po_import_file_with(po_ctx *ctx, const char *path, const po_import_options *options,
                              po_model **model);

/* Puts the bodies of the model's functions in the place of their calls, in the graph and its
 * bodies, functions within functions too; domain: those of it alone, NULL: all. *inlined (may be
 * NULL) tells how many. A call stays where its function is written for other operator-set versions
 * than the model's, where the runtime may know the operator itself (com.microsoft and the standard
 * domains), or where the graph would grow too much. The functions stay in the model. New nodes have
 * their registry rows. */
po_status po_inline_functions(po_ctx *ctx, po_graph *graph, const char *domain, uint32_t *inlined);

/* Reads a serialised TensorProto (test data: input_0.pb) into the arena. */
po_status po_import_tensor_file(po_ctx *ctx, po_arena *arena, const char *path,
                                const po_tensor **tensor);

/* SHA-256 of the files that the model was read from: the model's own first, then its external data
 * in the order in which it was met. n is 0 for built models. */
typedef struct po_file_sum {
    const char *name; /* without folder */
    const char *sha256;
} po_file_sum;
void po_import_sums(po_arena *arena, const po_model *model, const po_file_sum **sums, uint32_t *n);

/* The files that a model was read from: its own, and those of its external data. */
const po_content *const *po_import_contents(const po_model *model, uint32_t *n);

/* Gives back the memory of large files that are mapped; what is looked at again is read again. */
void po_import_rest(const po_model *model);

#endif

/* What the files of src/export share. */
#ifndef PO_EXPORT_PARTS_H
#define PO_EXPORT_PARTS_H

#include "export/export.h"
#include "onnx/onnx.h"

typedef struct po_exporter {
    po_ctx *ctx;
    po_arena *arena; /* of this call: messages, plans, writers */
    const po_model *model;
    const po_origin *origin; /* NULL for built models */
} po_exporter;

/* messages.c */
po_status po_make_graph(po_exporter *ex, const po_graph *g, Onnx__GraphProto **proto);

/* model.c: the whole model as messages. They share what they can with the import's, their
 * raw_data lies where the tensors' data does. */
po_status po_make_model(po_exporter *ex, const po_graph *graph, Onnx__ModelProto **proto);

/* values.c */
po_status po_make_infos(po_exporter *ex, const po_graph *graph, const Onnx__GraphProto *old,
                        Onnx__GraphProto *proto);
Onnx__TensorProto *po_make_tensor(po_exporter *ex, const po_tensor *tensor, const char *name);

/* external.c: a plan of what goes to OUT.data. */
typedef struct po_data_plan po_data_plan;
/* Plans every tensor of the model that is external already, and with `all` each one of at least
 * PO_LEAST_EXTERNAL bytes; returns the model that refers to them. */
enum { PO_LEAST_EXTERNAL = 1024, PO_DATA_ALIGNMENT = 4096 };
po_data_plan *po_plan_data(po_exporter *ex, const Onnx__ModelProto *proto, bool all,
                           const char *location, const Onnx__ModelProto **planned);
uint64_t po_plan_bytes(const po_data_plan *plan);
void po_write_data(const po_data_plan *plan, po_writer *writer);
/* The model with every external tensor's bytes inside. */
const Onnx__ModelProto *po_inline_data(po_exporter *ex, const Onnx__ModelProto *proto);
/* For po_export_split. */
const Onnx__ModelProto *po_split_data(po_exporter *ex, po_arena *arena,
                                      const Onnx__ModelProto *proto, const po_weight **weights,
                                      uint32_t *n_weights);

/* data_name.c: what the file of weights is called. Its name holds a hash of its content, so that no
 * model can ever read another's weights: the model names what it was written with, and no other
 * content ever has that name. */
/* The name for the data of a model file, with a hash of zeros; to be filled in once it is known. */
char *po_data_name(po_arena *arena, const char *model_name);
/* Puts the hash in its place. */
void po_data_name_fill(char *name, const char *sha256);
/* Removes data that the replaced model named and no other does: files beside `path` that have such
 * a name, but for `keep` (may be NULL) and for what `origin` was read from. Nothing of it fails. */
void po_data_retire(po_exporter *ex, const char *replaced, const char *path, const char *keep);

#endif

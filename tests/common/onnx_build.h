/* Small ONNX models made in memory, to be bent by tests. */
#ifndef TEST_ONNX_BUILD_H
#define TEST_ONNX_BUILD_H

#include "base/arena.h"
#include "ir/graph.h"
#include "onnx/onnx.h"

/* y = Add(x, w), x and y f32[2,3], w an initialiser of that type with raw_data; IR 8, opset 17. */
Onnx__ModelProto *tm_model(po_arena *a);
/* Names separated by commas; a lone comma gives empty names. */
Onnx__NodeProto *tm_node(po_arena *a, const char *op, const char *in, const char *out);
Onnx__ValueInfoProto *tm_info(po_arena *a, const char *name, int dtype, int rank,
                              const int64_t *dims);
/* A tensor without data; then with zeroed raw_data of so many bytes. */
Onnx__TensorProto *tm_tensor(po_arena *a, const char *name, int dtype, int rank,
                             const int64_t *dims);
Onnx__TensorProto *tm_raw(po_arena *a, const char *name, int dtype, int rank, const int64_t *dims,
                          size_t bytes);
Onnx__SparseTensorProto *tm_sparse(po_arena *a, const char *name, int64_t n, const int64_t *indices,
                                   int64_t length);
Onnx__AttributeProto *tm_attr(po_arena *a, const char *name, int type);
Onnx__AttributeProto *tm_attr_int(po_arena *a, const char *name, int64_t value);
Onnx__AttributeProto *tm_attr_ints(po_arena *a, const char *name, int n, const int64_t *values);
Onnx__GraphProto *tm_graph(po_arena *a, const char *name);
Onnx__FunctionProto *tm_function(po_arena *a, const char *domain, const char *name, const char *in,
                                 const char *out);
/* A node at the end of the model's graph; the one that is there. */
void tm_add_node(po_arena *a, Onnx__ModelProto *m, const char *op, const char *in, const char *out);
Onnx__NodeProto *tm_last_node(Onnx__ModelProto *m);
/* An attribute that is a body of one node, which makes an f32[2,3]. */
Onnx__AttributeProto *tm_branch(po_arena *a, const char *name, const char *op, const char *in,
                                const char *out);
void tm_opset(po_arena *a, Onnx__ModelProto *m, const char *domain, int64_t version);
void tm_external(po_arena *a, Onnx__TensorProto *t, const char *location, const char *offset,
                 const char *length);

/* Appends to a repeated field: TM_ADD(a, graph, node, n). */
#define TM_ADD(a, message, field, item)                                                            \
    do {                                                                                           \
        (message)->field = tm_append((a), (message)->field, (message)->n_##field, sizeof(void *)); \
        (message)->field[(message)->n_##field++] = (item);                                         \
    } while (0)
void *tm_append(po_arena *a, const void *items, size_t n, size_t size);

uint8_t *tm_pack(po_arena *a, const Onnx__ModelProto *m, size_t *size);

/* Imports the bytes under a guard, checks the graph, exports it to nowhere and frees it. */
po_status tm_import(po_ctx *ctx, const void *data, size_t size);

/* tm_model as `change` makes it, imported; that must succeed. */
po_model *tm_imported(po_ctx *ctx, po_arena *a, void (*change)(po_arena *, Onnx__ModelProto *));
/* Its nodes are of those operators, in that order. */
void tm_assert_operators(void (*change)(po_arena *, Onnx__ModelProto *), const char *const *want,
                         uint32_t n);

/* One line of a table of broken models: the message that it must give, NULL: it must be taken. */
typedef struct tm_case {
    const char *name;
    void (*change)(po_arena *a, Onnx__ModelProto *m);
    const char *want;
} tm_case;
/* Runs the cases on fresh models and prints what differs; returns how many did. */
int tm_run(const tm_case *cases, size_t n);

#endif

/* Small ONNX files for tests, written through the generated protobuf code alone. */
#ifndef TEST_ONNX_H
#define TEST_ONNX_H

#include "onnx-ml.pb-c.h"

/* A model under construction; at most 64 of each thing. */
typedef struct test_onnx {
    Onnx__ModelProto model;
    Onnx__GraphProto graph;
    Onnx__OperatorSetIdProto opset, *opsets[1];
    Onnx__ValueInfoProto *inputs[64], *outputs[64];
    Onnx__NodeProto *nodes[64];
    Onnx__TensorProto *initializers[64];
} test_onnx;

/* IR 7, opset 13, no nodes. Free it with test_onnx_free. */
test_onnx *test_onnx_new(void);
void test_onnx_free(test_onnx *m);
/* dims: "1,3,H,W": numbers, or symbols, or ? for unknown; "" is a scalar. dtype: ONNX's number. */
void test_onnx_input(test_onnx *m, const char *name, int dtype, const char *dims);
void test_onnx_output(test_onnx *m, const char *name, int dtype, const char *dims);
/* in and out: names with blanks between them. */
Onnx__NodeProto *test_onnx_node(test_onnx *m, const char *op, const char *in, const char *out);
void test_onnx_ints(Onnx__NodeProto *node, const char *name, int n, const int64_t *values);
void test_onnx_int(Onnx__NodeProto *node, const char *name, int64_t value);
/* Raw little-endian data, copied. */
void test_onnx_initializer(test_onnx *m, const char *name, int dtype, const char *dims,
                           const void *data, size_t size);
void test_onnx_write(const test_onnx *m, const char *path);

#endif

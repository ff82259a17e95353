/* A small reader of ONNX files for tests that must not depend on src/import: it trusts its input.
 */
#ifndef TEST_ONNX_LOAD_H
#define TEST_ONNX_LOAD_H

#include "ops/op.h"

/* Reads a model; everything is made in the model's arena. NULL where it cannot be represented
 * (external data, complex numbers). Free with test_model_free. */
po_model *test_model_load(po_ctx *ctx, const char *path);
void test_model_free(po_model *model);

/* Reads a TensorProto file; NULL where it cannot be read as one. */
po_tensor *test_tensor_load(po_ctx *ctx, po_arena *arena, const char *path);

#endif

/* A program outside the tree: only the public header, only the public library. Builds a graph,
 * writes it, reads it back and takes it through -O0. */
#include <petopt.h>

#include <stdio.h>
#include <string.h>

static po_model *build(po_error *error) {
    static const int64_t dims[2] = {4, 3};
    po_builder *b = po_build_create("example", 17);
    po_val in[2], y;
    po_model *model;
    in[0] = po_build_input(b, "x", "f32[batch,4]");
    in[1] = po_build_random(b, "w", 2, dims, 1, -1, 1);
    y = po_build_node(b, NULL, "MatMul", "product", 2, in);
    y = po_build_node(b, NULL, "Relu", NULL, 1, &y);
    po_build_output(b, y, "y");
    return po_build_finish(b, &model, error) == PO_OK ? model : NULL;
}

int main(int argc, char **argv) {
    const char *path = argc > 1 ? argv[1] : "use.onnx";
    po_error error;
    po_options *options = NULL;
    po_result *result = NULL;
    po_model *read = NULL, *built = build(&error);
    const po_node_view *nodes;
    size_t n = 0;
    int good = built && po_model_save(built, path, &error) == PO_OK &&
               po_model_load(path, &read, &error) == PO_OK &&
               po_options_create(&options) == PO_OK &&
               po_options_set(options, "level", "0", &error) == PO_OK &&
               po_options_set(options, "input-shape", "x:2,4", &error) == PO_OK &&
               po_optimise(read, options, NULL, &result, &error) == PO_OK &&
               po_model_save(po_result_model(result), path, &error) == PO_OK &&
               po_model_nodes(po_result_model(result), &nodes, &n, &error) == PO_OK;
    if (!good)
        fprintf(stderr, "%s: %s\n", po_status_name(error.status), error.message);
    else
        for (size_t i = 0; i < n; i++)
            printf("%s -> %s\n", nodes[i].op_type, nodes[i].out[0]);
    po_result_free(result);
    po_options_free(options);
    po_model_free(read);
    po_model_free(built);
    return good && n == 2 ? 0 : 1;
}

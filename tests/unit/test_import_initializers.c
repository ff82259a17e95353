/* Initialisers beside inputs of their name, and sparse ones. */
#include "unit.h"

#include "export/export.h"
#include "import/import.h"
#include "onnx_build.h"
#include "test_paths.h"

#include <limits.h>

static const int64_t two_three[] = {2, 3}, three_two[] = {3, 2}, three[] = {3};
static const int64_t positions[] = {1, 4};

static char *text(po_arena *a, const char *t) {
    return po_arena_strdup(a, t);
}

/* --- declared as an input, too --- */

static Onnx__ValueInfoProto *input(po_arena *a, Onnx__ModelProto *m, const char *name, int rank,
                                   const int64_t *dims) {
    Onnx__ValueInfoProto *info = tm_info(a, name, PO_F32, rank, dims);
    TM_ADD(a, m->graph, input, info);
    return info;
}
static void other_rank(po_arena *a, Onnx__ModelProto *m) {
    input(a, m, "w", 1, three);
}
static void other_dims(po_arena *a, Onnx__ModelProto *m) {
    input(a, m, "w", 2, three_two);
}
static void no_rank(po_arena *a, Onnx__ModelProto *m) {
    input(a, m, "w", 0, NULL)->type->tensor_type->shape = NULL;
}
static void open_dims(po_arena *a, Onnx__ModelProto *m) {
    Onnx__TypeProto *type = input(a, m, "w", 2, two_three)->type;
    for (int i = 0; i < 2; i++) {
        Onnx__TensorShapeProto__Dimension *d = type->tensor_type->shape->dim[i];
        d->value_case = ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM;
        d->dim_param = text(a, i ? "n" : "m");
    }
}
static void of_kind(po_arena *a, Onnx__ModelProto *m, po_type_kind kind) {
    po_type element = {.kind = PO_TYPE_TENSOR, .dtype = PO_F32};
    po_type type = {.kind = kind, .element = &element};
    if (kind == PO_TYPE_SPARSE)
        type = (po_type){.kind = kind, .dtype = PO_F32};
    input(a, m, "w", 0, NULL)->type = po_type_to_proto(a, &type);
}
static void a_sequence(po_arena *a, Onnx__ModelProto *m) {
    of_kind(a, m, PO_TYPE_SEQUENCE);
}
static void an_optional(po_arena *a, Onnx__ModelProto *m) {
    of_kind(a, m, PO_TYPE_OPTIONAL);
}
static void a_sparse_tensor(po_arena *a, Onnx__ModelProto *m) {
    of_kind(a, m, PO_TYPE_SPARSE);
}
/* In a body types may be left out. */
static void untyped_in_a_body(po_arena *a, Onnx__ModelProto *m) {
    tm_add_node(a, m, "Odd", "x", "p");
    tm_last_node(m)->domain = text(a, "nobody.knows");
    Onnx__AttributeProto *body = tm_branch(a, "body", "Add", "v,u", "o");
    for (int i = 0; i < 2; i++) {
        Onnx__ValueInfoProto *info = tm_info(a, i ? "u" : "v", PO_F32, 2, two_three);
        if (i)
            info->type = NULL;
        else
            info->type->tensor_type->has_elem_type = 0;
        TM_ADD(a, body->g, input, info);
        TM_ADD(a, body->g, initializer, tm_raw(a, i ? "u" : "v", PO_F32, 2, two_three, 24));
    }
    TM_ADD(a, tm_last_node(m), attribute, body);
}
static void no_name(po_arena *a, Onnx__ModelProto *m) {
    TM_ADD(a, m->graph, initializer, tm_raw(a, NULL, PO_F32, 2, two_three, 24));
}

/* --- sparse --- */

static Onnx__SparseTensorProto *sparse(po_arena *a, Onnx__ModelProto *m, const char *name) {
    Onnx__SparseTensorProto *s = tm_sparse(a, name, 2, positions, 6);
    TM_ADD(a, m->graph, sparse_initializer, s);
    return s;
}
static void sparse_input(po_arena *a, Onnx__ModelProto *m) {
    static const int64_t six[] = {6};
    sparse(a, m, "s");
    input(a, m, "s", 1, six);
}
static void sparse_other_input(po_arena *a, Onnx__ModelProto *m) {
    sparse(a, m, "s");
    input(a, m, "s", 1, three);
}
static void sparse_twice(po_arena *a, Onnx__ModelProto *m) {
    sparse(a, m, "s");
    sparse(a, m, "s");
}
static void sparse_and_dense(po_arena *a, Onnx__ModelProto *m) {
    sparse(a, m, "w");
}
static void sparse_empty_name(po_arena *a, Onnx__ModelProto *m) {
    sparse(a, m, "");
}
static void sparse_nameless(po_arena *a, Onnx__ModelProto *m) {
    sparse(a, m, NULL);
}
static void no_values(po_arena *a, Onnx__ModelProto *m) {
    sparse(a, m, "s")->values = NULL;
}
static void no_dims(po_arena *a, Onnx__ModelProto *m) {
    sparse(a, m, "s")->n_dims = 0;
}
static void values_of_two_dims(po_arena *a, Onnx__ModelProto *m) {
    static const int64_t dims[] = {1, 2};
    sparse(a, m, "s")->values = tm_raw(a, "s", PO_F32, 2, dims, 8);
}
static void indices(po_arena *a, Onnx__ModelProto *m, int dtype, int rank, int64_t d0, int64_t d1) {
    const int64_t dims[] = {d0, d1, 1};
    int64_t n = rank ? d0 * (rank > 1 ? d1 : 1) : 1;
    size_t bytes = (size_t)n * (dtype == PO_I64 ? 8 : 4);
    sparse(a, m, "s")->indices = tm_raw(a, NULL, dtype, rank, dims, bytes);
}
static void indices_of_other_type(po_arena *a, Onnx__ModelProto *m) {
    indices(a, m, PO_I32, 1, 2, 0);
}
static void one_index(po_arena *a, Onnx__ModelProto *m) {
    indices(a, m, PO_I64, 0, 0, 0);
}
static void indices_of_three_dims(po_arena *a, Onnx__ModelProto *m) {
    indices(a, m, PO_I64, 3, 2, 1);
}
static void indices_of_other_rank(po_arena *a, Onnx__ModelProto *m) {
    indices(a, m, PO_I64, 2, 2, 3);
}
/* Positions in two dims: [[1, 2], [2, at]]. */
static void in_two_dims(po_arena *a, Onnx__ModelProto *m, int64_t at) {
    const int64_t where[] = {1, 2, 2, at}, shape[] = {2, 2}, dims[] = {3, 4};
    Onnx__SparseTensorProto *s = sparse(a, m, "s");
    s->indices = tm_raw(a, NULL, PO_I64, 2, shape, sizeof where);
    memcpy(s->indices->raw_data.data, where, sizeof where);
    s->n_dims = 2;
    s->dims = po_arena_memdup(a, dims, sizeof dims);
}
static void negative_index(po_arena *a, Onnx__ModelProto *m) {
    in_two_dims(a, m, -1);
}
static void index_too_large(po_arena *a, Onnx__ModelProto *m) {
    in_two_dims(a, m, 4);
}
static void nothing_in_nothing(po_arena *a, Onnx__ModelProto *m) {
    TM_ADD(a, m->graph, sparse_initializer, tm_sparse(a, "s", 0, NULL, 0));
}

static const tm_case cases[] = {
    {"input of another rank", other_rank,
     "graph/initializer[0] 'w': tensor 'w' is declared with another type"},
    {"input of other dims", other_dims, "tensor 'w' is declared with another type"},
    {"input without rank", no_rank, NULL},
    {"input with open dims", open_dims, NULL},
    {"input that is a sequence", a_sequence, "tensor 'w' is declared with another type"},
    {"input that is optional", an_optional, "tensor 'w' is declared with another type"},
    {"input that is sparse", a_sparse_tensor, "tensor 'w' is declared with another type"},
    {"inputs of a body without type", untyped_in_a_body, NULL},
    {"no name at all", no_name, NULL},
    {"sparse and input", sparse_input, NULL},
    {"sparse and input of another type", sparse_other_input,
     "graph/sparse_initializer[0] 's': tensor 's' is declared with another type"},
    {"sparse twice", sparse_twice, "graph/sparse_initializer[1] 's': tensor 's' is made twice"},
    {"sparse and dense", sparse_and_dense, "tensor 'w' is made twice"},
    {"sparse with an empty name", sparse_empty_name, NULL},
    {"sparse without name", sparse_nameless,
     "graph/sparse_initializer[0]: an initialiser has no name"},
    {"sparse without values", no_values,
     "graph/sparse_initializer[0]: a sparse tensor needs values and indices"},
    {"sparse without dims", no_dims, "a sparse tensor needs dims (found 0, want 1 or more)"},
    {"values of two dims", values_of_two_dims, "sparse values must have one dim (found 2)"},
    {"indices of another type", indices_of_other_type, "sparse indices must be i64 of shape [n] "},
    {"one index", one_index, "sparse indices must be i64 of shape [n] or [n, rank] (n is 2)"},
    {"indices of three dims", indices_of_three_dims, "sparse indices must be i64 of shape"},
    {"indices of another rank", indices_of_other_rank, "sparse indices must be i64 of shape"},
    {"a negative index", negative_index, "sparse index 1 is out of range (limit 12 elements)"},
    {"an index too large", index_too_large, "sparse index 1 is out of range (limit 12 elements)"},
    {"nothing in nothing", nothing_in_nothing, NULL},
};

static void test_cases(void **state) {
    (void)state;
    assert_int_equal(tm_run(cases, sizeof cases / sizeof cases[0]), 0);
}

/* A sparse initialiser of a body under the name of a tensor around it. */
static void sparse_hides(po_arena *a, Onnx__ModelProto *m) {
    TM_ADD(a, m->graph, input, tm_info(a, "c", PO_BOOL, 0, NULL));
    tm_add_node(a, m, "If", "c", "z");
    for (int i = 0; i < 2; i++) {
        Onnx__AttributeProto *branch =
            tm_branch(a, i ? "else_branch" : "then_branch", "Relu", i ? "x" : "w", "o");
        branch->g->output[0] = tm_info(a, "o", PO_F32, 0, NULL);
        branch->g->output[0]->type->tensor_type->shape = NULL;
        TM_ADD(a, branch->g, sparse_initializer, tm_sparse(a, i ? "x" : "w", 2, positions, 6));
        TM_ADD(a, tm_last_node(m), attribute, branch);
    }
}

/* The same in a model that is sorted, and in one that is refused. */
static void sparse_hides_unsorted(po_arena *a, Onnx__ModelProto *m) {
    sparse_hides(a, m);
    tm_add_node(a, m, "Relu", "late", "q");
    tm_add_node(a, m, "Abs", "x", "late");
}
static void sparse_hides_refused(po_arena *a, Onnx__ModelProto *m) {
    sparse_hides(a, m);
    tm_add_node(a, m, "Relu", "nothing", "q");
}

/* What is written can be read again, and the nodes still have their own operands. */
static void check_sparse_hides(void (*change)(po_arena *, Onnx__ModelProto *)) {
    po_ctx ctx;
    po_ctx_init(&ctx);
    po_arena *a = po_arena_create(&ctx);
    char folder[PATH_MAX];
    test_mkdtemp(folder, sizeof folder);
    const char *path = po_arena_printf(a, "%s/m.onnx", folder);
    po_model *model = tm_imported(&ctx, a, change);
    assert_int_equal(po_export_file(&ctx, model->graph, path, NULL, NULL), PO_OK);
    po_model_free(model);
    if (po_import_file(&ctx, path, &model) != PO_OK)
        fail_msg("%s", ctx.error.message);
    for (int i = 0; i < 2; i++) {
        const po_graph *body = model->graph->nodes[1].attr[i].u.g;
        const po_value *in = &body->values[body->nodes[0].in[0]];
        assert_int_equal(in->outer, PO_NONE);
        assert_true(in->is_initializer);
        assert_int_equal(in->type.rank, 1);
    }
    po_model_free(model);
    po_arena_free(a);
    test_rmtree(folder);
}

static void test_sparse_hides(void **state) {
    (void)state;
    check_sparse_hides(sparse_hides);
    check_sparse_hides(sparse_hides_unsorted);
    static const tm_case refused = {"hidden and refused", sparse_hides_refused,
                                    "graph/node[2]: input 0 is tensor 'nothing'"};
    assert_int_equal(tm_run(&refused, 1), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cases),
        cmocka_unit_test(test_sparse_hides),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

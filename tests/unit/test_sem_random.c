/* Random nodes: the indexed sum, evaluated generically, against the operator's own reference. The
 * two share nothing but the node. Attributes come in combinations that no published test has. */
#include "ops/sem/sem.h"
#include "unit.h"

#include <math.h>
#include <stdio.h>

typedef struct maker {
    uint64_t seed, next;
    po_ctx *ctx;
    po_graph *g;
    po_value_id in[5];
    po_attr attr[12];
    po_node_spec spec;
} maker;

static int64_t draw(maker *m, int64_t from, int64_t to) {
    return from + (int64_t)(po_random_u64(m->seed, 4, m->next++) % (uint64_t)(to - from + 1));
}

/* --- parts of nodes --- */

static void add_float(maker *m, uint32_t rank, const int64_t *dims) {
    po_tensor *t;
    assert_int_equal(po_tensor_create(m->ctx, m->g->arena, PO_F64, rank, dims, &t), PO_OK);
    for (int64_t i = 0; i < t->count; i++)
        po_tensor_set_f64(t, i, po_random_normal(m->seed, m->spec.n_in, (uint64_t)i));
    m->in[m->spec.n_in++] = po_graph_add_constant(m->g, NULL, t);
}

static void add_ints_1d(maker *m, uint32_t n, const int64_t *values) {
    m->in[m->spec.n_in++] =
        po_graph_add_constant(m->g, NULL, po_tensor_i64(m->g->arena, n, values));
}

static void add_int_attr(maker *m, const char *name, int64_t value) {
    m->attr[m->spec.n_attr++] = (po_attr){.name = name, .kind = PO_ATTR_INT, .n = 1, .u.i = value};
}

static void add_ints_attr(maker *m, const char *name, uint32_t n, const int64_t *values) {
    m->attr[m->spec.n_attr++] =
        (po_attr){.name = name,
                  .kind = PO_ATTR_INTS,
                  .n = n,
                  .u.ints = po_arena_memdup(m->g->arena, values, n * sizeof *values)};
}

static void add_string_attr(maker *m, const char *name, const char *value) {
    m->attr[m->spec.n_attr++] =
        (po_attr){.name = name, .kind = PO_ATTR_STRING, .n = 1, .u.s = {value, strlen(value)}};
}

static void random_dims(maker *m, uint32_t rank, int64_t most, int64_t *dims) {
    for (uint32_t i = 0; i < rank; i++)
        dims[i] = draw(m, 1, most);
}

/* --- operators --- */

static void window_attrs(maker *m, uint32_t n, const int64_t *kernel, bool dilate) {
    static const char *const paddings[] = {"SAME_UPPER", "SAME_LOWER", "VALID"};
    int64_t strides[3], dilations[3], pads[6];
    random_dims(m, n, 3, strides);
    random_dims(m, n, 2, dilations);
    for (uint32_t i = 0; i < 2 * n; i++)
        pads[i] = draw(m, 0, kernel[i % n] - 1);
    if (draw(m, 0, 3))
        add_ints_attr(m, "strides", n, strides);
    if (dilate && draw(m, 0, 2))
        add_ints_attr(m, "dilations", n, dilations);
    if (draw(m, 0, 3))
        add_ints_attr(m, "pads", n * 2, pads);
    else if (draw(m, 0, 1))
        add_string_attr(m, "auto_pad", paddings[draw(m, 0, 2)]);
}

static void make_conv(maker *m, bool transposed) {
    uint32_t n = (uint32_t)draw(m, 1, 3);
    int64_t groups = draw(m, 1, 3), dims[5], weight[5], bias;
    random_dims(m, n + 2, n == 3 ? 5 : 8, dims);
    random_dims(m, n + 2, 3, weight);
    dims[1] = groups * draw(m, 1, 2);
    weight[0] = transposed ? dims[1] : groups * draw(m, 1, 2);
    weight[1] = transposed ? draw(m, 1, 2) : dims[1] / groups;
    bias = transposed ? groups * weight[1] : weight[0];
    m->spec.op_type = transposed ? "ConvTranspose" : "Conv";
    add_float(m, n + 2, dims);
    add_float(m, n + 2, weight);
    if (draw(m, 0, 1))
        add_float(m, 1, &bias);
    add_int_attr(m, "group", groups);
    window_attrs(m, n, weight + 2, true);
    if (transposed && draw(m, 0, 3) == 0) {
        int64_t extra[3] = {0, 0, 0};
        add_ints_attr(m, "output_padding", n, extra);
    }
}

static void conv(maker *m) {
    make_conv(m, false);
}

static void conv_transpose(maker *m) {
    make_conv(m, true);
}

static void average_pool(maker *m) {
    uint32_t n = (uint32_t)draw(m, 1, 3);
    int64_t dims[5], kernel[3];
    random_dims(m, n + 2, n == 3 ? 5 : 9, dims);
    random_dims(m, n, 3, kernel);
    m->spec.op_type = "AveragePool";
    add_float(m, n + 2, dims);
    add_ints_attr(m, "kernel_shape", n, kernel);
    window_attrs(m, n, kernel, true);
    add_int_attr(m, "ceil_mode", draw(m, 0, 1));
    add_int_attr(m, "count_include_pad", draw(m, 0, 1));
}

/* A shape of the same product by moving factors about, so that radices often do not nest. */
static void reshape(maker *m) {
    static const int64_t factors[] = {2, 2, 3, 4, 5, 1};
    int64_t dims[4] = {1, 1, 1, 1}, to[4] = {1, 1, 1, 1};
    uint32_t rank = (uint32_t)draw(m, 1, 4), rank_to = (uint32_t)draw(m, 1, 4);
    for (size_t i = 0; i < 6; i++)
        if (draw(m, 0, 3)) {
            dims[draw(m, 0, rank - 1)] *= factors[i];
            to[draw(m, 0, rank_to - 1)] *= factors[i];
        }
    m->spec.op_type = "Reshape";
    add_float(m, rank, dims);
    add_ints_1d(m, rank_to, to);
}

static void transpose(maker *m) {
    uint32_t rank = (uint32_t)draw(m, 1, 5);
    int64_t dims[5], perm[5] = {0, 1, 2, 3, 4};
    random_dims(m, rank, 4, dims);
    for (uint32_t i = rank; i-- > 1;) {
        int64_t k = draw(m, 0, i), keep = perm[i];
        perm[i] = perm[k];
        perm[k] = keep;
    }
    m->spec.op_type = "Transpose";
    add_float(m, rank, dims);
    add_ints_attr(m, "perm", rank, perm);
}

static void slice(maker *m) {
    uint32_t rank = (uint32_t)draw(m, 1, 4);
    int64_t dims[4], starts[4], ends[4], axes[4], steps[4];
    random_dims(m, rank, 7, dims);
    uint32_t n = (uint32_t)draw(m, 1, rank);
    for (uint32_t i = 0; i < n; i++) {
        axes[i] = draw(m, 0, 1) ? i : (int64_t)i - rank;
        starts[i] = draw(m, 0, 9) ? draw(m, -8, 8) : INT64_MIN + 1;
        ends[i] = draw(m, 0, 9) ? draw(m, -8, 8) : draw(m, 0, 1) ? INT64_MAX : INT64_MIN;
        steps[i] = draw(m, 0, 3) ? draw(m, 1, 3) : draw(m, -3, -1);
    }
    m->spec.op_type = "Slice";
    add_float(m, rank, dims);
    add_ints_1d(m, n, starts);
    add_ints_1d(m, n, ends);
    add_ints_1d(m, n, axes);
    add_ints_1d(m, n, steps);
}

static void pad(maker *m) {
    uint32_t rank = (uint32_t)draw(m, 1, 4);
    int64_t dims[4], pads[8];
    random_dims(m, rank, 5, dims);
    for (uint32_t i = 0; i < 2 * rank; i++)
        pads[i] = draw(m, 0, 3) ? draw(m, 0, 3) : -draw(m, 0, dims[i % rank] / 2);
    m->spec.op_type = "Pad";
    add_float(m, rank, dims);
    add_ints_1d(m, 2 * rank, pads);
    if (draw(m, 0, 1))
        add_string_attr(m, "mode", "edge");
    else if (draw(m, 0, 1))
        add_float(m, 0, NULL);
}

static void gather(maker *m) {
    uint32_t rank = (uint32_t)draw(m, 1, 4), n = (uint32_t)draw(m, 0, 2);
    int64_t dims[4], index_dims[2], axis = draw(m, 0, rank - 1), step = draw(m, 0, 2);
    random_dims(m, rank, 6, dims);
    random_dims(m, n, draw(m, 0, 9) ? 5 : 12, index_dims);
    m->spec.op_type = "Gather";
    add_float(m, rank, dims);
    po_tensor *t;
    assert_int_equal(po_tensor_create(m->ctx, m->g->arena, PO_I64, n, index_dims, &t), PO_OK);
    for (int64_t i = 0; i < t->count; i++)
        po_tensor_set_int(t, i,
                          step ? i * step % dims[axis] : draw(m, -dims[axis], dims[axis] - 1));
    m->in[m->spec.n_in++] = po_graph_add_constant(m->g, NULL, t);
    add_int_attr(m, "axis", draw(m, 0, 1) ? axis : axis - rank);
}

static void tile(maker *m) {
    uint32_t rank = (uint32_t)draw(m, 1, 4);
    int64_t dims[4], repeats[4];
    random_dims(m, rank, 4, dims);
    random_dims(m, rank, 3, repeats);
    m->spec.op_type = "Tile";
    add_float(m, rank, dims);
    add_ints_1d(m, rank, repeats);
}

static void matmul(maker *m) {
    uint32_t a = (uint32_t)draw(m, 1, 4), b = (uint32_t)draw(m, 1, 4);
    int64_t left[4], right[4], depth = draw(m, 1, 5), batch[2];
    random_dims(m, 2, 3, batch);
    random_dims(m, 4, 4, left);
    random_dims(m, 4, 4, right);
    for (uint32_t i = 0; i + 2 < a; i++)
        left[i] = draw(m, 0, 2) ? batch[a - 3 - i] : 1;
    for (uint32_t i = 0; i + 2 < b; i++)
        right[i] = draw(m, 0, 2) ? batch[b - 3 - i] : 1;
    left[a - 1] = depth;
    right[b > 1 ? b - 2 : 0] = depth;
    m->spec.op_type = "MatMul";
    add_float(m, a, left);
    add_float(m, b, right);
}

static void resize(maker *m) {
    static const char *const coordinates[] = {"half_pixel", "pytorch_half_pixel", "align_corners",
                                              "asymmetric"};
    static const char *const rounding[] = {"round_prefer_floor", "round_prefer_ceil", "floor",
                                           "ceil"};
    uint32_t rank = (uint32_t)draw(m, 1, 4);
    int64_t dims[4], sizes[4];
    random_dims(m, rank, 5, dims);
    for (uint32_t i = 0; i < rank; i++)
        sizes[i] = i + 2 < rank ? dims[i] : draw(m, 0, 1) ? dims[i] * draw(m, 1, 3) : draw(m, 1, 8);
    if (draw(m, 0, 2) == 0) { /* long enough for its form to be told by its ends */
        dims[rank - 1] = 12 * draw(m, 2, 5);
        sizes[rank - 1] =
            draw(m, 0, 1) ? dims[rank - 1] * draw(m, 1, 4) : dims[rank - 1] / draw(m, 1, 4);
    }
    m->spec.op_type = "Resize";
    add_float(m, rank, dims);
    m->in[1] = m->in[2] = PO_NONE;
    m->spec.n_in = 3;
    add_ints_1d(m, rank, sizes);
    add_string_attr(m, "mode", draw(m, 0, 1) ? "nearest" : "linear");
    add_string_attr(m, "coordinate_transformation_mode", coordinates[draw(m, 0, 3)]);
    add_string_attr(m, "nearest_mode", rounding[draw(m, 0, 3)]);
}

static void cumsum(maker *m) {
    uint32_t rank = (uint32_t)draw(m, 1, 4);
    int64_t dims[4], axis = draw(m, -(int64_t)rank, rank - 1);
    random_dims(m, rank, 5, dims);
    m->spec.op_type = "CumSum";
    add_float(m, rank, dims);
    add_ints_1d(m, 1, &axis);
    add_int_attr(m, "exclusive", draw(m, 0, 1));
    add_int_attr(m, "reverse", draw(m, 0, 1));
}

static void reduce(maker *m) {
    uint32_t rank = (uint32_t)draw(m, 1, 4), n = 0;
    int64_t dims[4], axes[4];
    random_dims(m, rank, 5, dims);
    for (uint32_t i = 0; i < rank; i++)
        if (draw(m, 0, 1))
            axes[n++] = draw(m, 0, 1) ? i : (int64_t)i - rank;
    m->spec.op_type = draw(m, 0, 1) ? "ReduceSum" : "ReduceMean";
    add_float(m, rank, dims);
    add_ints_1d(m, n, axes);
    add_int_attr(m, "keepdims", draw(m, 0, 1));
    add_int_attr(m, "noop_with_empty_axes", draw(m, 0, 1));
}

static void depth_space(maker *m) {
    int64_t b = draw(m, 1, 3), dims[4];
    random_dims(m, 4, 3, dims);
    bool to_space = draw(m, 0, 1);
    dims[1] *= to_space ? b * b : 1;
    dims[2] *= to_space ? 1 : b;
    dims[3] *= to_space ? 1 : b;
    m->spec.op_type = to_space ? "DepthToSpace" : "SpaceToDepth";
    add_float(m, 4, dims);
    add_int_attr(m, "blocksize", b);
    if (to_space)
        add_string_attr(m, "mode", draw(m, 0, 1) ? "DCR" : "CRD");
}

static void binary(maker *m) {
    static const char *const names[] = {"Add", "Sub", "Mul", "Div", "Sum", "Mean"};
    uint32_t rank = (uint32_t)draw(m, 0, 4), other = (uint32_t)draw(m, 0, rank);
    int64_t a[4], b[4];
    random_dims(m, rank, 4, a);
    for (uint32_t i = 0; i < other; i++)
        b[i] = draw(m, 0, 1) ? a[rank - other + i] : 1;
    if (rank && draw(m, 0, 1) && other == rank)
        a[draw(m, 0, rank - 1)] = 1;
    m->spec.op_type = names[draw(m, 0, 5)];
    add_float(m, rank, a);
    add_float(m, other, b);
}

static void concat(maker *m) {
    uint32_t rank = (uint32_t)draw(m, 1, 4);
    int64_t dims[4], axis = draw(m, 0, rank - 1);
    random_dims(m, rank, 4, dims);
    m->spec.op_type = "Concat";
    for (int64_t k = draw(m, 1, 3); k > 0; k--) {
        dims[axis] = draw(m, 1, 4);
        add_float(m, rank, dims);
    }
    add_int_attr(m, "axis", draw(m, 0, 1) ? axis : axis - rank);
}

static void trilu(maker *m) {
    uint32_t rank = (uint32_t)draw(m, 2, 4);
    int64_t dims[4], k = draw(m, -5, 5);
    random_dims(m, rank, 5, dims);
    m->spec.op_type = "Trilu";
    add_float(m, rank, dims);
    add_ints_1d(m, 1, &k);
    add_int_attr(m, "upper", draw(m, 0, 1));
}

static const struct {
    const char *name;
    void (*make)(maker *m);
    int least_percent; /* of the cases that the reference takes, those with a form */
} kinds[] = {
    {"Conv", conv, 100},
    {"ConvTranspose", conv_transpose, 100},
    {"AveragePool", average_pool, 80},
    {"Reshape", reshape, 100},
    {"Transpose", transpose, 100},
    {"Slice", slice, 100},
    {"Pad", pad, 100},
    {"Gather", gather, 100},
    {"Tile", tile, 100},
    {"MatMul", matmul, 100},
    {"Resize", resize, 100},
    {"CumSum", cumsum, 100},
    {"Reduce", reduce, 100},
    {"DepthToSpace", depth_space, 100},
    {"Binary", binary, 100},
    {"Concat", concat, 100},
    {"Trilu", trilu, 100},
};

enum { CASES = 400 };

/* -1: the reference does not take it; 0: opaque; 1: right. Fails the test where the two differ. */
static int one_case(size_t kind, uint64_t seed) {
    po_ctx ctx;
    po_ctx_init(&ctx);
    po_opset opset = {"", 19};
    po_model model = {.ir_version = 9, .opsets = &opset, .n_opsets = 1};
    maker m = {.seed = seed * 64 + kind, .ctx = &ctx};
    m.g = po_graph_create(&ctx, &model, "g");
    m.spec = (po_node_spec){.in = m.in, .attr = m.attr, .n_out = 1};
    kinds[kind].make(&m);
    po_value_id out = po_graph_add_value(m.g, "y", NULL);
    m.spec.out = &out;
    const po_node *node;
    po_node_id id = po_graph_add_node(m.g, &m.spec);
    po_graph_add_output(m.g, out);
    po_ops_resolve(m.g);
    node = &m.g->nodes[id];
    int result = -1;
    const po_array *in[5] = {NULL};
    const double *floats[5] = {NULL};
    for (uint32_t k = 0; k < node->n_in; k++) {
        po_array *a;
        if (node->in[k] == PO_NONE)
            continue;
        assert_int_equal(
            po_array_from_tensor(&ctx, m.g->arena, m.g->values[node->in[k]].constant, &a), PO_OK);
        in[k] = a;
        floats[k] = a->f;
    }
    po_array *want = NULL;
    po_sum *sum;
    if (po_infer_graph(&ctx, m.g, false) == PO_OK && po_type_static(&m.g->values[out].type) &&
        po_ref_node(&ctx, m.g->arena, m.g, node, in, &want) == PO_OK) {
        result = po_sem_of(&ctx, m.g->arena, m.g, node, &sum) == PO_OK;
        assert_int_equal(ctx.error.status, PO_OK);
        double *got = result ? PO_NEW_N(m.g->arena, double, sum->count) : NULL;
        if (result)
            assert_int_equal(po_sum_eval_f64(m.g->arena, sum, floats, got), PO_OK);
        for (int64_t i = 0; result && i < want->count; i++)
            if (want->count != sum->count || !(fabs(got[i] - want->f[i]) <= 1e-11)) {
                po_text text;
                po_text_init(&text, m.g->arena);
                po_sum_print(&text, sum);
                fail_msg("%s, seed %d: element %d is %g instead of %g\n%s", node->op_type,
                         (int)seed, (int)i, got[i], want->f[i], text.data);
            }
    }
    po_arenas_free_since(&ctx, 0);
    return result;
}

static void test_random_nodes(void **state) {
    (void)state;
    for (size_t kind = 0; kind < sizeof kinds / sizeof *kinds; kind++) {
        int right = 0, opaque = 0, refused = 0;
        for (uint64_t seed = 0; seed < CASES; seed++) {
            int result = one_case(kind, seed);
            right += result == 1;
            opaque += result == 0;
            refused += result < 0;
        }
        printf("%-16s %4d right, %4d opaque, %4d not taken by the reference\n", kinds[kind].name,
               right, opaque, refused);
        assert_true(right >= CASES / 4);
        assert_true(right * 100 >= kinds[kind].least_percent * (right + opaque));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_random_nodes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

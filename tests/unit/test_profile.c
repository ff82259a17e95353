/* Where time goes, by the runtime and by the roofline. */
#include "cost/profile.h"
#include "cost/roofline.h"
#include "onnx_load.h"
#include "test_onnx.h"
#include "test_paths.h"
#include "unit.h"

#include <glob.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { F32 = 1, SIDE = 40 };

/* y = Sigmoid(MatMul(Relu(Conv(x)) as a matrix, v)): 16 channels of 40x40. */
static void write_model(const char *path) {
    test_onnx *m = test_onnx_new();
    float w[16 * 16 * 9], v[SIDE * 64];
    for (size_t i = 0; i < sizeof w / sizeof w[0]; i++)
        w[i] = (float)po_random_normal(1, 1, i);
    for (size_t i = 0; i < sizeof v / sizeof v[0]; i++)
        v[i] = (float)po_random_normal(1, 2, i);
    int64_t pads[] = {1, 1, 1, 1};
    test_onnx_input(m, "x", F32, "1,16,40,40");
    test_onnx_output(m, "y", F32, "1,16,40,64");
    test_onnx_initializer(m, "w", F32, "16,16,3,3", w, sizeof w);
    test_onnx_initializer(m, "v", F32, "40,64", v, sizeof v);
    Onnx__NodeProto *conv = test_onnx_node(m, "Conv", "x w", "a");
    test_onnx_ints(conv, "pads", 4, pads);
    test_onnx_node(m, "Relu", "a", "b");
    Onnx__NodeProto *product = test_onnx_node(m, "MatMul", "b v", "c");
    test_onnx_node(m, "Sigmoid", "c", "y");
    conv->name = strdup("the_conv"); /* freed with the model */
    product->name = strdup("the_product");
    assert_true(conv->name && product->name);
    test_onnx_write(m, path);
    test_onnx_free(m);
}

typedef struct fixture {
    char dir[512], model[600], db[600];
    po_ctx ctx;
    po_arena *arena;
    po_cost *cost;
    po_model *loaded;
} fixture;

static void start(fixture *f) {
    test_mkdtemp(f->dir, sizeof f->dir);
    snprintf(f->model, sizeof f->model, "%s/a.onnx", f->dir);
    snprintf(f->db, sizeof f->db, "%s/cost.db", f->dir);
    write_model(f->model);
    po_ctx_init(&f->ctx);
    f->arena = po_arena_create(&f->ctx);
    assert_int_equal(po_cost_open(&f->ctx, f->arena, &(po_cost_options){NULL, f->db}, &f->cost),
                     PO_OK);
    f->loaded = test_model_load(&f->ctx, f->model);
    assert_non_null(f->loaded);
    po_ops_resolve(f->loaded->graph);
    assert_int_equal(po_infer_graph(&f->ctx, f->loaded->graph, false), PO_OK);
}

static void finish(fixture *f) {
    test_model_free(f->loaded);
    po_arena_free(f->arena);
    test_rmtree(f->dir);
}

static size_t folders(void) {
    char mine[60];
    glob_t found;
    snprintf(mine, sizeof mine, "/tmp/petopt-%ld-*", (long)getpid());
    size_t n = glob(mine, 0, NULL, &found) == 0 ? found.gl_pathc : 0;
    globfree(&found);
    return n;
}

static const po_profile_row *row_of(const po_profile *p, const char *op) {
    for (uint32_t i = 0; i < p->n; i++)
        if (strcmp(p->rows[i].op, op) == 0)
            return &p->rows[i];
    return NULL;
}

static void the_runtime_tells_where_time_goes(void **state) {
    (void)state;
    fixture f;
    start(&f);
    int64_t dims[] = {1, 16, SIDE, SIDE};
    po_tensor *x = NULL;
    assert_int_equal(po_tensor_create(&f.ctx, f.arena, PO_F32, 4, dims, &x), PO_OK);
    po_datum datum = {PO_TYPE_TENSOR, x, 0, NULL};
    const char *name = "x";
    po_feed feed = {1, &name, &datum};
    po_profile_spec spec = {.threads = 1, .model = f.model, .feed = &feed, .seconds = 0.2};
    po_profile profile;
    po_status status = po_profile_model(&f.ctx, f.arena, &spec, &profile);
    if (status != PO_OK)
        fail_msg("%s", f.ctx.error.message);
    assert_true(profile.runs >= 3 && profile.n >= 3);
    const po_profile_row *product = row_of(&profile, "MatMul");
    assert_non_null(product);
    assert_non_null(row_of(&profile, "Conv"));
    assert_string_equal(product->name, "the_product");
    assert_string_equal(product->provider, "CPUExecutionProvider");
    assert_int_equal(product->calls, 1);
    assert_true(product->seconds > 1e-7 && product->seconds < 1);
    double sum = 0;
    for (uint32_t i = 0; i < profile.n; i++) {
        sum += profile.rows[i].seconds;
        assert_true(i == 0 || profile.rows[i].seconds <= profile.rows[i - 1].seconds);
    }
    assert_true(fabs(sum - profile.seconds) < 1e-9);

    /* The operators' records, for this thread count only. */
    assert_true(po_operators_record(f.cost, f.loaded->graph, 1, &profile) >= 1);
    const po_node *node = NULL;
    for (po_node_id i = 0; i < f.loaded->graph->n_nodes; i++)
        if (f.loaded->graph->nodes[i].op == PO_OP_MatMul)
            node = &f.loaded->graph->nodes[i];
    double seconds = 0;
    assert_true(po_operator_seconds(f.cost, f.loaded->graph, node, 1, &seconds));
    assert_true(seconds == product->seconds);
    assert_false(po_operator_seconds(f.cost, f.loaded->graph, node, 2, &seconds));

    assert_int_equal(folders(), 0);
    spec.model = "/nowhere/a.onnx";
    assert_int_equal(po_profile_model(&f.ctx, f.arena, &spec, &profile), PO_RUNTIME);
    finish(&f);
}

static void no_folder_stays_behind(void **state) {
    (void)state;
    fixture f;
    start(&f);
    po_feed feed = {0, NULL, NULL};
    po_profile_spec spec = {.threads = 1, .model = f.model, .feed = &feed, .seconds = 0.1};
    po_profile profile;
    assert_int_equal(po_profile_model(&f.ctx, f.arena, &spec, &profile), PO_BAD_INPUT);
    assert_int_equal(folders(), 0);
    finish(&f);
}

static void the_roofline_counts_work(void **state) {
    (void)state;
    fixture f;
    start(&f);
    po_rates rates, again;
    po_rates_of_machine(f.cost, &rates);
    assert_true(rates.flops > 1e8 && rates.bytes > 1e8);
    po_rates_of_machine(f.cost, &again); /* from the cache */
    assert_memory_equal(&rates, &again, sizeof rates);

    po_estimate one, two;
    po_roofline_graph(f.loaded->graph, &rates, 1, &one);
    po_roofline_graph(f.loaded->graph, &rates, 2, &two);
    assert_int_equal(one.known, 4);
    assert_int_equal(one.unknown, 0);
    double conv = 2.0 * 16 * SIDE * SIDE * 16 * 9, product = 2.0 * 16 * SIDE * 64 * SIDE;
    double sigmoid = 15.0 * 16 * SIDE * 64;
    assert_true(fabs(one.flops - (conv + product + sigmoid)) < 1);
    assert_true(one.seconds > 0 && two.seconds < one.seconds);
    po_work work;
    const po_graph *g = f.loaded->graph;
    for (po_node_id i = 0; i < g->n_nodes; i++)
        if (g->nodes[i].op == PO_OP_Relu) {
            assert_true(po_node_work(g, &g->nodes[i], &work));
            assert_true(work.fused && work.flops == 0);
        }
    finish(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_runtime_tells_where_time_goes),
        cmocka_unit_test(no_folder_stays_behind),
        cmocka_unit_test(the_roofline_counts_work),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

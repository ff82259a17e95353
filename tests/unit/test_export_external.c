/* The hostile list of docs/import.md: external data that is written. */
#include "unit.h"

#include "export/export.h"
#include "model_site.h"
#include "ops/rewrite.h"
#include "test_paths.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static uint8_t *slurp(site *s, const char *name, size_t *size) {
    uint8_t *data = test_read_file(site_at(s, name), size);
    assert_non_null(data);
    return data;
}

/* The one file of petopt's beside a model that holds its data: PATH.<32 digits>.data. */
static const char *data_beside(site *s, const char *model) {
    const char *path = site_at(s, model), *name = strrchr(path, '/') + 1, *found = NULL;
    DIR *folder = opendir(po_path_folder(s->a, path));
    assert_non_null(folder);
    for (const struct dirent *e; (e = readdir(folder)) != NULL;)
        if (strncmp(e->d_name, name, strlen(name)) == 0 &&
            strlen(e->d_name) == strlen(name) + 1 + 32 + 5) {
            assert_null(found);
            found = po_arena_printf(s->a, "%.*s%s", (int)(strrchr(model, '/') + 1 - model), model,
                                    e->d_name);
        }
    closedir(folder);
    assert_non_null(found);
    return found;
}

static po_status export_to(site *s, const po_model *model, const char *name,
                           const po_export_options *o, po_export_result *r) {
    po_ctx_clear(&s->ctx);
    return po_export_file(&s->ctx, model->graph, site_at(s, name), o, r);
}

/* External in, external out; the data is one file, aligned, each weight once. */
static void test_round_trip(void **state) {
    (void)state;
    site s;
    site_start(&s);
    int64_t dims[] = {2, 3};
    for (int i = 0; i < 3; i++) {
        Onnx__TensorProto *t = tm_tensor(s.a, po_arena_printf(s.a, "v%d", i), PO_F32, 2, dims);
        tm_external(s.a, t, "w.bin", i == 2 ? "24" : "0", NULL);
        TM_ADD(s.a, s.m->graph, initializer, t);
    }
    site_write(&s);
    po_model *model = site_read(&s, NULL);
    assert_non_null(model);
    po_export_result r;
    assert_int_equal(export_to(&s, model, "m/out.onnx", NULL, &r), PO_OK);
    po_model_free(model);
    size_t size, out_size;
    uint8_t *was = slurp(&s, "m/w.bin", &size),
            *is = slurp(&s, data_beside(&s, "m/out.onnx"), &out_size);
    assert_int_equal(out_size, 4096 + SITE_BYTES);
    assert_int_equal(r.data_bytes, out_size);
    assert_memory_equal(is, was, SITE_BYTES);
    assert_memory_equal(is + 4096, was + 24, SITE_BYTES);
    free(was);
    free(is);
    s.model = site_at(&s, "m/out.onnx");
    model = site_read(&s, NULL);
    assert_non_null(model);
    const po_graph *g = model->graph;
    assert_int_equal(g->n_initializers, 4);
    assert_int_equal(*(const uint8_t *)g->values[g->initializers[3]].constant->data, 25);
    po_model_free(model);
    site_finish(&s);
}

/* A model with weights in files: what is made of them goes there too. Without such files nothing
 * does. */
static void test_made_weights(void **state) {
    (void)state;
    enum { MADE = 1024 }; /* numbers */
    for (int external = 0; external < 2; external++) {
        site s;
        site_start(&s);
        if (external)
            site_write(&s);
        else
            site_put(&s);
        po_model *model = site_read(&s, NULL);
        assert_non_null(model);
        po_graph *g = model->graph;
        const double values[MADE] = {1, 2, 3};
        const int64_t dims[] = {MADE};
        const po_value_id made = po_add_floats(g, "made", PO_F32, 1, dims, values);
        po_add_op(g, 0, PO_OP_Neg, 1, &made, NULL);
        po_export_result r;
        assert_int_equal(export_to(&s, model, "m/out.onnx", NULL, &r), PO_OK);
        po_model_free(model);
        assert_int_equal(r.data_bytes, external ? 4096 + 4 * MADE : 0);
        site_finish(&s);
    }
}

/* Over the input itself, and through a link: what the input named as petopt does is replaced, the
 * link stays. */
static void test_over_input(void **state) {
    (void)state;
    site s;
    site_start(&s);
    s.location = "model.onnx.data";
    s.offset = "40";
    assert_int_equal(rename(site_at(&s, "m/w.bin"), site_at(&s, "m/model.onnx.data")), 0);
    site_write(&s);
    assert_int_equal(symlink("m/model.onnx", site_at(&s, "link.onnx")), 0);
    for (int round = 0; round < 2; round++) {
        po_model *model = site_read(&s, NULL);
        if (!model)
            fail_msg("%s", s.ctx.error.message);
        const char *out = round ? "link.onnx" : "m/model.onnx";
        assert_int_equal(export_to(&s, model, out, NULL, NULL), PO_OK);
        const po_graph *g = model->graph; /* still there */
        assert_int_equal(*(const uint8_t *)g->values[g->initializers[0]].constant->data, 41);
        po_model_free(model);
        size_t size;
        uint8_t *data = slurp(&s, data_beside(&s, "m/model.onnx"), &size);
        assert_int_equal(size, SITE_BYTES);
        assert_int_equal(data[0], 41);
        free(data);
        struct stat st;
        assert_int_equal(lstat(site_at(&s, "link.onnx"), &st), 0);
        assert_true(S_ISLNK(st.st_mode));
        /* Data of another name may be another program's. */
        assert_int_equal(access(site_at(&s, "m/model.onnx.data"), F_OK), 0);
    }
    site_finish(&s);
}

/* Weights are never met by another model: each output keeps its own data beside it, and that goes
 * when the model is replaced, but not while the input is read from it. */
static void test_data_goes(void **state) {
    (void)state;
    site s;
    site_start(&s);
    site_write(&s);
    po_model *model = site_read(&s, NULL), *other;
    const po_export_options external = {.external = true};
    assert_int_equal(export_to(&s, model, "m/out.onnx", NULL, NULL), PO_OK);
    const char *first = data_beside(&s, "m/out.onnx");
    /* The same again: the same name, and it stays. */
    assert_int_equal(export_to(&s, model, "m/out.onnx", NULL, NULL), PO_OK);
    assert_string_equal(first, data_beside(&s, "m/out.onnx"));
    po_model_free(model);
    /* Another model with the same name, made from a copy that still reads the first one's data. */
    assert_int_equal(link(site_at(&s, "m/out.onnx"), site_at(&s, "m/was.onnx")), 0);
    assert_int_equal(unlink(site_at(&s, "m/out.onnx")), 0);
    size_t size;
    uint8_t *bytes = slurp(&s, "m/was.onnx", &size);
    test_write_file(site_at(&s, "m/out.onnx"), bytes, size);
    free(bytes);
    int64_t n = 3000;
    TM_ADD(s.a, s.m->graph, initializer, tm_raw(s.a, "more", PO_U8, 1, &n, 3000));
    const uint8_t *packed = tm_pack(s.a, s.m, &size);
    test_write_file(site_at(&s, "m/more.onnx"), packed, size);
    s.model = site_at(&s, "m/was.onnx");
    model = site_read(&s, NULL);
    s.model = site_at(&s, "m/more.onnx");
    other = site_read(&s, NULL);
    assert_true(model && other);
    test_write_file(site_at(&s, "m/was.onnx.00000000000000000000000000000000.data"), "x", 1);
    assert_int_equal(export_to(&s, model, "m/out.onnx", NULL, NULL), PO_OK);
    assert_int_equal(access(site_at(&s, first), F_OK), 0);
    assert_int_equal(export_to(&s, other, "m/out.onnx", &external, NULL), PO_OK);
    assert_int_not_equal(access(site_at(&s, first), F_OK), 0);
    const char *second = data_beside(&s, "m/out.onnx");
    assert_string_not_equal(first, second);
    assert_int_equal(access(site_at(&s, "m/was.onnx.00000000000000000000000000000000.data"), F_OK),
                     0);
    po_model_free(model);
    po_model_free(other);
    site_finish(&s);
}

/* A model that reaches the limit gets a file of data; typed weights move too. */
static void test_limit(void **state) {
    (void)state;
    site s;
    site_start(&s);
    int64_t n = 2000;
    Onnx__TensorProto *t = tm_tensor(s.a, "typed", PO_F32, 1, &n);
    t->n_float_data = 2000;
    t->float_data = PO_NEW_N(s.a, float, 2000);
    TM_ADD(s.a, s.m->graph, initializer, t);
    TM_ADD(s.a, s.m->graph, initializer, tm_raw(s.a, "raw", PO_U8, 1, &n, 2000));
    size_t size;
    const uint8_t *data = tm_pack(s.a, s.m, &size);
    test_write_file(s.model, data, size);
    po_model *model = site_read(&s, NULL);
    assert_non_null(model);
    po_export_result r;
    assert_int_equal(export_to(&s, model, "a.onnx", &(po_export_options){.limit = size + 1}, &r),
                     PO_OK);
    assert_int_equal(r.data_bytes, 0);
    assert_int_equal(r.model_bytes, size);
    assert_int_equal(export_to(&s, model, "b.onnx", &(po_export_options){.limit = size}, &r),
                     PO_OK);
    assert_int_equal(r.data_bytes, 8192 + 2000);
    po_model_free(model);
    s.model = site_at(&s, "b.onnx");
    model = site_read(&s, NULL);
    assert_non_null(model);
    po_model_free(model);
    site_finish(&s);
}

/* Whole in one piece for a runtime, or split into model and weights in memory. */
static void test_descriptors(void **state) {
    (void)state;
    site s;
    site_start(&s);
    int64_t n = 5000;
    Onnx__TensorProto *big = tm_raw(s.a, "big", PO_U8, 1, &n, 5000);
    big->raw_data.data[0] = 77;
    TM_ADD(s.a, s.m->graph, initializer, big);
    site_write(&s);
    po_model *model = site_read(&s, NULL);
    assert_non_null(model);
    FILE *f = tmpfile(), *split = tmpfile();
    po_export_result r, q;
    po_export_options o = {.hash = true};
    assert_int_equal(po_export_fd(&s.ctx, model->graph, fileno(f), &o, &r), PO_OK);
    po_hash hash;
    assert_int_equal(po_export_hash(&s.ctx, model->graph, &hash), PO_OK);
    assert_true(po_hash_equal(hash, r.model_hash));
    assert_true(r.model_bytes > 5000 && r.model_bytes < 6000);
    const po_weight *weights;
    uint32_t n_weights;
    assert_int_equal(
        po_export_split(&s.ctx, s.a, model->graph, fileno(split), &o, &weights, &n_weights, &q),
        PO_OK);
    assert_true(q.model_bytes < 1000);
    assert_int_equal(n_weights, 1);
    assert_int_equal(weights[0].size, 5000);
    assert_int_equal(*(const uint8_t *)weights[0].data, 77);
    o.limit = 1000;
    assert_int_equal(po_export_fd(&s.ctx, model->graph, fileno(f), &o, NULL), PO_UNSUPPORTED);
    fclose(f);
    fclose(split);
    po_model_free(model);
    site_finish(&s);
}

/* A mapped file that changes while it is in use is noticed before anything is written. */
static void test_changed(void **state) {
    (void)state;
    site s;
    site_start(&s);
    int fd = open(site_at(&s, "m/big.bin"), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    assert_int_equal(ftruncate(fd, 8 << 20), 0);
    s.location = "big.bin";
    site_write(&s);
    po_model *model = site_read(&s, NULL);
    assert_non_null(model);
    assert_int_equal(ftruncate(fd, 6 << 20), 0);
    close(fd);
    assert_int_equal(export_to(&s, model, "out.onnx", NULL, NULL), PO_IO);
    assert_non_null(strstr(s.ctx.error.message, "big.bin: was changed while it was in use"));
    assert_int_not_equal(access(site_at(&s, "out.onnx"), F_OK), 0);
    po_model_free(model);
    site_finish(&s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip), cmocka_unit_test(test_made_weights),
        cmocka_unit_test(test_over_input), cmocka_unit_test(test_data_goes),
        cmocka_unit_test(test_limit),      cmocka_unit_test(test_descriptors),
        cmocka_unit_test(test_changed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

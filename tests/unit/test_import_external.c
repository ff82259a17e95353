/* The hostile list of docs/import.md: external data, read and written. */
#include "unit.h"

#include "export/export.h"
#include "import/import.h"
#include "onnx_build.h"
#include "test_paths.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BYTES = 24 };

/* A folder with model.onnx, whose weight w (24 bytes) is external, and what a case adds. */
typedef struct site {
    char folder[PATH_MAX];
    const char *model;
    po_ctx ctx;
    po_arena *a;
    Onnx__ModelProto *m;
    const char *location, *offset, *length;
} site;

static const char *at(site *s, const char *name) {
    return po_arena_printf(s->a, "%s/%s", s->folder, name);
}

static void start(site *s) {
    *s = (site){.location = "w.bin", .offset = "0", .length = "24"};
    test_mkdtemp(s->folder, sizeof s->folder);
    po_ctx_init(&s->ctx);
    s->a = po_arena_create(&s->ctx);
    s->m = tm_model(s->a);
    s->model = at(s, "m/model.onnx");
    assert_int_equal(mkdir(at(s, "m"), 0777), 0);
    uint8_t data[64];
    for (int i = 0; i < 64; i++)
        data[i] = (uint8_t)(i + 1);
    test_write_file(at(s, "m/w.bin"), data, sizeof data);
    test_write_file(at(s, "outside.bin"), data, sizeof data);
}

static void finish(site *s) {
    po_arena_free(s->a);
    assert_null(s->ctx.arenas);
    test_rmtree(s->folder);
}

static void write_model(site *s) {
    size_t size;
    tm_external(s->a, s->m->graph->initializer[0], s->location, s->offset, s->length);
    const uint8_t *data = tm_pack(s->a, s->m, &size);
    test_write_file(s->model, data, size);
}

/* Imports the site's model; NULL where it was refused. */
static po_model *read_model(site *s, const po_import_options *options) {
    po_model *model = NULL;
    po_ctx_clear(&s->ctx);
    po_status status = po_import_file_with(&s->ctx, s->model, options, &model);
    return status == PO_OK ? model : NULL;
}

static void expect(site *s, const char *want) {
    write_model(s);
    po_model *model = read_model(s, NULL);
    if (want && (model || !strstr(s->ctx.error.message, want)))
        fail_msg("got '%s', want '%s'", s->ctx.error.message, want);
    if (want)
        assert_non_null(strstr(s->ctx.error.message, "model.onnx: "));
    else if (!model)
        fail_msg("refused: %s", s->ctx.error.message);
    if (model) {
        const po_graph *g = model->graph;
        const po_tensor *w = g->values[g->initializers[0]].constant;
        assert_int_equal(w->size, BYTES);
        assert_int_equal(*(const uint8_t *)w->data, s->offset ? atoi(s->offset) + 1 : 1);
    }
    po_model_free(model);
}

static void test_entries(void **state) {
    (void)state;
    static const struct {
        const char *location, *offset, *length, *want;
    } rows[] = {
        {"w.bin", "0", "24", NULL},
        {"w.bin", "40", "24", NULL},
        {"w.bin", NULL, NULL, NULL},
        {"./w.bin", "8", NULL, NULL},
        {NULL, "0", "24", "external data names no location"},
        {"", "0", "24", "location is empty"},
        {"w.bin", "-1", "24", "bad offset (found '-1'"},
        {"w.bin", "1e3", "24", "bad offset (found '1e3'"},
        {"w.bin", "", "24", "bad offset (found ''"},
        {"w.bin", " 8", "24", "bad offset (found ' 8'"},
        {"w.bin", "+8", "24", "bad offset (found '+8'"},
        {"w.bin", "0x8", "24", "bad offset"},
        {"w.bin", "99999999999999999999", "24", "bad offset"},
        {"w.bin", "9223372036854775808", "24", "bad offset"},
        {"w.bin", "9223372036854775807", "24", "offset and length overflow"},
        {"w.bin", "0", "-24", "bad length"},
        {"w.bin", "0", "", "bad length"},
        {"w.bin", "0", "99999999999999999999", "bad length"},
        {"w.bin", "0", "23", "length does not fit type and dims (found 23 bytes, want 24)"},
        {"w.bin", "0", "25", "length does not fit type and dims (found 25 bytes, want 24)"},
        {"w.bin", "41", "24", "ends behind its file (found 65 bytes, limit 64 in 'w.bin')"},
        {"w.bin", "4096", NULL, "ends behind its file"},
        {"absent.bin", "0", "24", "external data 'absent.bin' cannot be opened"},
        {"../outside.bin", "0", "24", "leads out of the model's folder"},
        {"a/../../outside.bin", "0", "24", "leads out of the model's folder"},
        {"..", "0", "24", "leads out of the model's folder"},
        {"a/..", "0", "24", "leads out of the model's folder"},
        {"..\\outside.bin", "0", "24", "leads out of the model's folder"},
        {"a\\..\\..\\outside.bin", "0", "24", "leads out of the model's folder"},
        {"/etc/passwd", "0", "24", "is an absolute path"},
        {"//etc/passwd", "0", "24", "is an absolute path"},
        {"\\\\server\\share", "0", "24", "is an absolute path"},
        {"C:\\w.bin", "0", "24", "is an absolute path"},
        {"*/_ORT_MEM_ADDR_/*", "94000000", "24", "is a memory address of another process"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        site s;
        start(&s);
        s.location = rows[i].location;
        s.offset = rows[i].offset;
        s.length = rows[i].length;
        expect(&s, rows[i].want);
        finish(&s);
    }
}

static void test_kinds(void **state) {
    (void)state;
    site s;
    start(&s);
    mkfifo(at(&s, "m/fifo"), 0666);
    mkdir(at(&s, "m/folder"), 0777);
    s.location = "fifo";
    expect(&s, "is a FIFO (want a regular file)");
    s.m = tm_model(s.a);
    s.location = "folder";
    expect(&s, "is a folder (want a regular file)");
    finish(&s);
    /* A device, through the folder that the model lies in. */
    start(&s);
    s.location = "null";
    tm_external(s.a, s.m->graph->initializer[0], "null", "0", "24");
    size_t size;
    const uint8_t *data = tm_pack(s.a, s.m, &size);
    po_model *model;
    assert_int_equal(po_import_bytes(&s.ctx, data, size, &model), PO_BAD_INPUT);
    assert_non_null(strstr(s.ctx.error.message, "not allowed in a model from memory"));
    finish(&s);
}

static void test_links(void **state) {
    (void)state;
    site s;
    start(&s); /* out of the folder */
    assert_int_equal(symlink("../outside.bin", at(&s, "m/link")), 0);
    s.location = "link";
    expect(&s, "leads out of the model's folder (found 'link')");
    finish(&s);
    start(&s); /* by an absolute link */
    assert_int_equal(symlink(at(&s, "outside.bin"), at(&s, "m/link")), 0);
    s.location = "link";
    expect(&s, "leads out of the model's folder");
    finish(&s);
    start(&s); /* in a folder on the way */
    assert_int_equal(symlink("..", at(&s, "m/up")), 0);
    s.location = "up/outside.bin";
    expect(&s, "leads out of the model's folder");
    finish(&s);
    start(&s); /* around in circles */
    assert_int_equal(symlink("link", at(&s, "m/link")), 0);
    s.location = "link";
    expect(&s, "leads out of the model's folder");
    finish(&s);
    start(&s); /* within the folder */
    assert_int_equal(symlink("w.bin", at(&s, "m/link")), 0);
    s.location = "link";
    expect(&s, NULL);
    finish(&s);
    start(&s); /* a device by a link */
    assert_int_equal(symlink("/dev/zero", at(&s, "m/link")), 0);
    s.location = "link";
    expect(&s, "leads out of the model's folder");
    finish(&s);
}

static void test_hard_links(void **state) {
    (void)state;
    site s;
    start(&s);
    assert_int_equal(link(at(&s, "outside.bin"), at(&s, "m/hard.bin")), 0);
    s.location = "hard.bin";
    expect(&s, "has 2 names (limit 1)");
    po_model *model = read_model(&s, &(po_import_options){.hard_links = true});
    assert_non_null(model);
    po_model_free(model);
    finish(&s);
}

/* A model hub's cache: files under other names, links to them elsewhere. */
static void test_hub_cache(void **state) {
    (void)state;
    site s;
    start(&s);
    write_model(&s);
    assert_int_equal(mkdir(at(&s, "blobs"), 0777), 0);
    assert_int_equal(mkdir(at(&s, "snap"), 0777), 0);
    assert_int_equal(rename(at(&s, "m/model.onnx"), at(&s, "blobs/aaa")), 0);
    assert_int_equal(rename(at(&s, "m/w.bin"), at(&s, "blobs/bbb")), 0);
    assert_int_equal(symlink("../blobs/aaa", at(&s, "snap/model.onnx")), 0);
    assert_int_equal(symlink("../blobs/bbb", at(&s, "snap/w.bin")), 0);
    s.model = at(&s, "snap/model.onnx");
    po_model *model = read_model(&s, NULL);
    if (!model)
        fail_msg("%s", s.ctx.error.message);
    po_model_free(model);
    /* Not to any place, though. */
    assert_int_equal(unlink(at(&s, "snap/w.bin")), 0);
    assert_int_equal(symlink("../outside.bin", at(&s, "snap/w.bin")), 0);
    assert_null(read_model(&s, NULL));
    assert_non_null(strstr(s.ctx.error.message, "leads out of the model's folder"));
    finish(&s);
    start(&s); /* the model alone is a link; the data lies beside what it points to */
    write_model(&s);
    assert_int_equal(symlink("m/model.onnx", at(&s, "short.onnx")), 0);
    s.model = at(&s, "short.onnx");
    model = read_model(&s, NULL);
    if (!model)
        fail_msg("%s", s.ctx.error.message);
    po_model_free(model);
    finish(&s);
}

static void add_entry(site *s, const char *key, const char *value) {
    Onnx__StringStringEntryProto *e =
        PO_PROTO_NEW(s->a, Onnx__StringStringEntryProto, ONNX__STRING_STRING_ENTRY_PROTO__INIT);
    e->key = po_arena_strdup(s->a, key);
    e->value = po_arena_strdup(s->a, value);
    Onnx__TensorProto *t = s->m->graph->initializer[0];
    TM_ADD(s->a, t, external_data, e);
}

static void test_more_entries(void **state) {
    (void)state;
    site s;
    start(&s);
    add_entry(&s, "flavour", "sweet");
    expect(&s, NULL);
    finish(&s);
    start(&s);
    add_entry(&s, "location", "other.bin");
    expect(&s, "external data names its location twice");
    finish(&s);
    start(&s);
    add_entry(&s, "checksum", "0000000000000000000000000000000000000000");
    expect(&s, "wrong checksum (found ");
    finish(&s);
    start(&s); /* of the bytes 1 to 64, as sha1sum says */
    add_entry(&s, "checksum", "92cb89df62d900b350d93e4225ca6f081d547a28");
    expect(&s, NULL);
    finish(&s);
}

static void count_overlaps(void *user, const char *line) {
    *(int *)user += strstr(line, "overlap") != NULL;
}

/* Overlaps are taken, with a warning where they are partial. */
static void test_overlaps(void **state) {
    (void)state;
    for (int partial = 0; partial < 2; partial++) {
        site s;
        int warned = 0;
        start(&s);
        int64_t dims[] = {2, 3};
        Onnx__TensorProto *t = tm_tensor(s.a, "v", PO_F32, 2, dims);
        tm_external(s.a, t, "w.bin", partial ? "8" : "0", NULL);
        TM_ADD(s.a, s.m->graph, initializer, t);
        s.ctx.log = count_overlaps;
        s.ctx.log_user = &warned;
        expect(&s, NULL);
        assert_int_equal(warned, partial);
        finish(&s);
    }
}

static void test_both(void **state) {
    (void)state;
    site s;
    start(&s);
    write_model(&s);
    Onnx__TensorProto *t = s.m->graph->initializer[0];
    t->n_external_data = 0;
    tm_external(s.a, t, "w.bin", "0", "24");
    t->has_raw_data = 1;
    size_t size;
    const uint8_t *data = tm_pack(s.a, s.m, &size);
    test_write_file(s.model, data, size);
    assert_null(read_model(&s, NULL));
    assert_non_null(strstr(s.ctx.error.message, "data is both external and in raw_data"));
    finish(&s);
}

/* The same checks wherever a tensor is. */
static void test_places(void **state) {
    (void)state;
    for (int place = 0; place < 5; place++) {
        site s;
        start(&s);
        int64_t dims[] = {2, 3}, n = 1;
        Onnx__TensorProto *t = tm_tensor(s.a, "bad", PO_F32, 2, dims);
        tm_external(s.a, t, "../outside.bin", "0", "24");
        Onnx__NodeProto *constant = tm_node(s.a, "Constant", "", "c");
        Onnx__AttributeProto *value = tm_attr(s.a, "value", PO_ATTR_TENSOR);
        value->t = t;
        TM_ADD(s.a, constant, attribute, value);
        if (place == 0) {
            TM_ADD(s.a, s.m->graph, node, constant);
        } else if (place == 1) {
            Onnx__NodeProto *outer = tm_node(s.a, "If", "x", "z");
            Onnx__AttributeProto *body = tm_attr(s.a, "then_branch", PO_ATTR_GRAPH);
            body->g = tm_graph(s.a, "b");
            TM_ADD(s.a, body->g, initializer, t);
            TM_ADD(s.a, outer, attribute, body);
            TM_ADD(s.a, s.m->graph, node, outer);
        } else if (place == 2) {
            Onnx__FunctionProto *f = tm_function(s.a, "d", "F", "", "c");
            TM_ADD(s.a, f, node, constant);
            TM_ADD(s.a, s.m, functions, f);
        } else if (place == 3) {
            int64_t zero = 0;
            Onnx__SparseTensorProto *sparse = tm_sparse(s.a, "s", n, &zero, 4);
            tm_external(s.a, sparse->indices, "../outside.bin", "0", "8");
            TM_ADD(s.a, s.m->graph, sparse_initializer, sparse);
        } else {
            Onnx__TrainingInfoProto *info =
                PO_PROTO_NEW(s.a, Onnx__TrainingInfoProto, ONNX__TRAINING_INFO_PROTO__INIT);
            info->algorithm = tm_graph(s.a, "t");
            TM_ADD(s.a, info->algorithm, initializer, t);
            TM_ADD(s.a, s.m, training_info, info);
        }
        expect(&s, "leads out of the model's folder");
        finish(&s);
    }
}

/* --- writing --- */

static uint8_t *slurp(site *s, const char *name, size_t *size) {
    uint8_t *data = test_read_file(at(s, name), size);
    assert_non_null(data);
    return data;
}

/* The one file of petopt's beside a model that holds its data: PATH.<32 digits>.data. */
static const char *data_beside(site *s, const char *model) {
    const char *path = at(s, model), *name = strrchr(path, '/') + 1, *found = NULL;
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
    return po_export_file(&s->ctx, model->graph, at(s, name), o, r);
}

/* External in, external out; the data is one file, aligned, each weight once. */
static void test_round_trip(void **state) {
    (void)state;
    site s;
    start(&s);
    int64_t dims[] = {2, 3};
    for (int i = 0; i < 3; i++) {
        Onnx__TensorProto *t = tm_tensor(s.a, po_arena_printf(s.a, "v%d", i), PO_F32, 2, dims);
        tm_external(s.a, t, "w.bin", i == 2 ? "24" : "0", NULL);
        TM_ADD(s.a, s.m->graph, initializer, t);
    }
    write_model(&s);
    po_model *model = read_model(&s, NULL);
    assert_non_null(model);
    po_export_result r;
    assert_int_equal(export_to(&s, model, "m/out.onnx", NULL, &r), PO_OK);
    po_model_free(model);
    size_t size, out_size;
    uint8_t *was = slurp(&s, "m/w.bin", &size),
            *is = slurp(&s, data_beside(&s, "m/out.onnx"), &out_size);
    assert_int_equal(out_size, 4096 + BYTES);
    assert_int_equal(r.data_bytes, out_size);
    assert_memory_equal(is, was, BYTES);
    assert_memory_equal(is + 4096, was + 24, BYTES);
    free(was);
    free(is);
    s.model = at(&s, "m/out.onnx");
    model = read_model(&s, NULL);
    assert_non_null(model);
    const po_graph *g = model->graph;
    assert_int_equal(g->n_initializers, 4);
    assert_int_equal(*(const uint8_t *)g->values[g->initializers[3]].constant->data, 25);
    po_model_free(model);
    finish(&s);
}

/* Over the input itself, and through a link: what the input named as petopt does is replaced, the
 * link stays. */
static void test_over_input(void **state) {
    (void)state;
    site s;
    start(&s);
    s.location = "model.onnx.data";
    s.offset = "40";
    assert_int_equal(rename(at(&s, "m/w.bin"), at(&s, "m/model.onnx.data")), 0);
    write_model(&s);
    assert_int_equal(symlink("m/model.onnx", at(&s, "link.onnx")), 0);
    for (int round = 0; round < 2; round++) {
        po_model *model = read_model(&s, NULL);
        if (!model)
            fail_msg("%s", s.ctx.error.message);
        const char *out = round ? "link.onnx" : "m/model.onnx";
        assert_int_equal(export_to(&s, model, out, NULL, NULL), PO_OK);
        const po_graph *g = model->graph; /* still there */
        assert_int_equal(*(const uint8_t *)g->values[g->initializers[0]].constant->data, 41);
        po_model_free(model);
        size_t size;
        uint8_t *data = slurp(&s, data_beside(&s, "m/model.onnx"), &size);
        assert_int_equal(size, BYTES);
        assert_int_equal(data[0], 41);
        free(data);
        struct stat st;
        assert_int_equal(lstat(at(&s, "link.onnx"), &st), 0);
        assert_true(S_ISLNK(st.st_mode));
        /* Data of another name may be another program's. */
        assert_int_equal(access(at(&s, "m/model.onnx.data"), F_OK), 0);
    }
    finish(&s);
}

/* Weights are never met by another model: each output keeps its own data beside it, and that goes
 * when the model is replaced, but not while the input is read from it. */
static void test_data_goes(void **state) {
    (void)state;
    site s;
    start(&s);
    write_model(&s);
    po_model *model = read_model(&s, NULL), *other;
    const po_export_options external = {.external = true};
    assert_int_equal(export_to(&s, model, "m/out.onnx", NULL, NULL), PO_OK);
    const char *first = data_beside(&s, "m/out.onnx");
    /* The same again: the same name, and it stays. */
    assert_int_equal(export_to(&s, model, "m/out.onnx", NULL, NULL), PO_OK);
    assert_string_equal(first, data_beside(&s, "m/out.onnx"));
    po_model_free(model);
    /* Another model with the same name, made from a copy that still reads the first one's data. */
    assert_int_equal(link(at(&s, "m/out.onnx"), at(&s, "m/was.onnx")), 0);
    assert_int_equal(unlink(at(&s, "m/out.onnx")), 0);
    size_t size;
    uint8_t *bytes = slurp(&s, "m/was.onnx", &size);
    test_write_file(at(&s, "m/out.onnx"), bytes, size);
    free(bytes);
    int64_t n = 3000;
    TM_ADD(s.a, s.m->graph, initializer, tm_raw(s.a, "more", PO_U8, 1, &n, 3000));
    const uint8_t *packed = tm_pack(s.a, s.m, &size);
    test_write_file(at(&s, "m/more.onnx"), packed, size);
    s.model = at(&s, "m/was.onnx");
    model = read_model(&s, NULL);
    s.model = at(&s, "m/more.onnx");
    other = read_model(&s, NULL);
    assert_true(model && other);
    test_write_file(at(&s, "m/was.onnx.00000000000000000000000000000000.data"), "x", 1);
    assert_int_equal(export_to(&s, model, "m/out.onnx", NULL, NULL), PO_OK);
    assert_int_equal(access(at(&s, first), F_OK), 0);
    assert_int_equal(export_to(&s, other, "m/out.onnx", &external, NULL), PO_OK);
    assert_int_not_equal(access(at(&s, first), F_OK), 0);
    const char *second = data_beside(&s, "m/out.onnx");
    assert_string_not_equal(first, second);
    assert_int_equal(access(at(&s, "m/was.onnx.00000000000000000000000000000000.data"), F_OK), 0);
    po_model_free(model);
    po_model_free(other);
    finish(&s);
}

/* A model that reaches the limit gets a file of data; typed weights move too. */
static void test_limit(void **state) {
    (void)state;
    site s;
    start(&s);
    int64_t n = 2000;
    Onnx__TensorProto *t = tm_tensor(s.a, "typed", PO_F32, 1, &n);
    t->n_float_data = 2000;
    t->float_data = PO_NEW_N(s.a, float, 2000);
    TM_ADD(s.a, s.m->graph, initializer, t);
    TM_ADD(s.a, s.m->graph, initializer, tm_raw(s.a, "raw", PO_U8, 1, &n, 2000));
    size_t size;
    const uint8_t *data = tm_pack(s.a, s.m, &size);
    test_write_file(s.model, data, size);
    po_model *model = read_model(&s, NULL);
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
    s.model = at(&s, "b.onnx");
    model = read_model(&s, NULL);
    assert_non_null(model);
    po_model_free(model);
    finish(&s);
}

/* Whole in one piece for a runtime, or split into model and weights in memory. */
static void test_descriptors(void **state) {
    (void)state;
    site s;
    start(&s);
    int64_t n = 5000;
    Onnx__TensorProto *big = tm_raw(s.a, "big", PO_U8, 1, &n, 5000);
    big->raw_data.data[0] = 77;
    TM_ADD(s.a, s.m->graph, initializer, big);
    write_model(&s);
    po_model *model = read_model(&s, NULL);
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
    finish(&s);
}

/* A mapped file that changes while it is in use is noticed before anything is written. */
static void test_changed(void **state) {
    (void)state;
    site s;
    start(&s);
    int fd = open(at(&s, "m/big.bin"), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    assert_int_equal(ftruncate(fd, 8 << 20), 0);
    s.location = "big.bin";
    write_model(&s);
    po_model *model = read_model(&s, NULL);
    assert_non_null(model);
    assert_int_equal(ftruncate(fd, 6 << 20), 0);
    close(fd);
    assert_int_equal(export_to(&s, model, "out.onnx", NULL, NULL), PO_IO);
    assert_non_null(strstr(s.ctx.error.message, "big.bin: was changed while it was in use"));
    assert_int_not_equal(access(at(&s, "out.onnx"), F_OK), 0);
    po_model_free(model);
    finish(&s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_entries),    cmocka_unit_test(test_kinds),
        cmocka_unit_test(test_links),      cmocka_unit_test(test_hard_links),
        cmocka_unit_test(test_hub_cache),  cmocka_unit_test(test_more_entries),
        cmocka_unit_test(test_overlaps),   cmocka_unit_test(test_both),
        cmocka_unit_test(test_places),     cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_over_input), cmocka_unit_test(test_data_goes),
        cmocka_unit_test(test_limit),      cmocka_unit_test(test_descriptors),
        cmocka_unit_test(test_changed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The hostile list of docs/import.md: external data. */
#include "unit.h"

#include "model_site.h"
#include "test_paths.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static void expect(site *s, const char *want) {
    site_write(s);
    po_model *model = site_read(s, NULL);
    if (want && (model || !strstr(s->ctx.error.message, want)))
        fail_msg("got '%s', want '%s'", s->ctx.error.message, want);
    if (want)
        assert_non_null(strstr(s->ctx.error.message, "model.onnx: "));
    else if (!model)
        fail_msg("refused: %s", s->ctx.error.message);
    if (model) {
        const po_graph *g = model->graph;
        const po_tensor *w = g->values[g->initializers[0]].constant;
        assert_int_equal(w->size, SITE_BYTES);
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
        site_start(&s);
        s.location = rows[i].location;
        s.offset = rows[i].offset;
        s.length = rows[i].length;
        expect(&s, rows[i].want);
        site_finish(&s);
    }
}

static void test_kinds(void **state) {
    (void)state;
    site s;
    site_start(&s);
    mkfifo(site_at(&s, "m/fifo"), 0666);
    mkdir(site_at(&s, "m/folder"), 0777);
    s.location = "fifo";
    expect(&s, "is a FIFO (want a regular file)");
    s.m = tm_model(s.a);
    s.location = "folder";
    expect(&s, "is a folder (want a regular file)");
    site_finish(&s);
    /* A device, through the folder that the model lies in. */
    site_start(&s);
    s.location = "null";
    tm_external(s.a, s.m->graph->initializer[0], "null", "0", "24");
    size_t size;
    const uint8_t *data = tm_pack(s.a, s.m, &size);
    po_model *model;
    assert_int_equal(po_import_bytes(&s.ctx, data, size, &model), PO_BAD_INPUT);
    assert_non_null(strstr(s.ctx.error.message, "not allowed in a model from memory"));
    site_finish(&s);
}

static void test_links(void **state) {
    (void)state;
    site s;
    site_start(&s); /* out of the folder */
    assert_int_equal(symlink("../outside.bin", site_at(&s, "m/link")), 0);
    s.location = "link";
    expect(&s, "leads out of the model's folder (found 'link')");
    site_finish(&s);
    site_start(&s); /* by an absolute link */
    assert_int_equal(symlink(site_at(&s, "outside.bin"), site_at(&s, "m/link")), 0);
    s.location = "link";
    expect(&s, "leads out of the model's folder");
    site_finish(&s);
    site_start(&s); /* in a folder on the way */
    assert_int_equal(symlink("..", site_at(&s, "m/up")), 0);
    s.location = "up/outside.bin";
    expect(&s, "leads out of the model's folder");
    site_finish(&s);
    site_start(&s); /* around in circles */
    assert_int_equal(symlink("link", site_at(&s, "m/link")), 0);
    s.location = "link";
    expect(&s, "leads out of the model's folder");
    site_finish(&s);
    site_start(&s); /* within the folder */
    assert_int_equal(symlink("w.bin", site_at(&s, "m/link")), 0);
    s.location = "link";
    expect(&s, NULL);
    site_finish(&s);
    site_start(&s); /* a device by a link */
    assert_int_equal(symlink("/dev/zero", site_at(&s, "m/link")), 0);
    s.location = "link";
    expect(&s, "leads out of the model's folder");
    site_finish(&s);
}

static void test_hard_links(void **state) {
    (void)state;
    site s;
    site_start(&s);
    assert_int_equal(link(site_at(&s, "outside.bin"), site_at(&s, "m/hard.bin")), 0);
    s.location = "hard.bin";
    expect(&s, "has 2 names (limit 1)");
    assert_null(site_read(&s, &(po_import_options){.hard_links = false}));
    po_model *model = site_read(&s, &(po_import_options){.hard_links = true});
    assert_non_null(model);
    po_model_free(model);
    site_finish(&s);
}

/* A model hub's cache: files under other names, links to them elsewhere. */
static void test_hub_cache(void **state) {
    (void)state;
    site s;
    site_start(&s);
    site_write(&s);
    assert_int_equal(mkdir(site_at(&s, "blobs"), 0777), 0);
    assert_int_equal(mkdir(site_at(&s, "snap"), 0777), 0);
    assert_int_equal(rename(site_at(&s, "m/model.onnx"), site_at(&s, "blobs/aaa")), 0);
    assert_int_equal(rename(site_at(&s, "m/w.bin"), site_at(&s, "blobs/bbb")), 0);
    assert_int_equal(symlink("../blobs/aaa", site_at(&s, "snap/model.onnx")), 0);
    assert_int_equal(symlink("../blobs/bbb", site_at(&s, "snap/w.bin")), 0);
    s.model = site_at(&s, "snap/model.onnx");
    po_model *model = site_read(&s, NULL);
    if (!model)
        fail_msg("%s", s.ctx.error.message);
    po_model_free(model);
    /* Not to any place, though. */
    assert_int_equal(unlink(site_at(&s, "snap/w.bin")), 0);
    assert_int_equal(symlink("../outside.bin", site_at(&s, "snap/w.bin")), 0);
    assert_null(site_read(&s, NULL));
    assert_non_null(strstr(s.ctx.error.message, "leads out of the model's folder"));
    site_finish(&s);
    site_start(&s); /* the model alone is a link; the data lies beside what it points to */
    site_write(&s);
    assert_int_equal(symlink("m/model.onnx", site_at(&s, "short.onnx")), 0);
    s.model = site_at(&s, "short.onnx");
    model = site_read(&s, NULL);
    if (!model)
        fail_msg("%s", s.ctx.error.message);
    po_model_free(model);
    site_finish(&s);
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
    site_start(&s);
    add_entry(&s, "flavour", "sweet");
    expect(&s, NULL);
    site_finish(&s);
    site_start(&s);
    add_entry(&s, "location", "other.bin");
    expect(&s, "external data names its location twice");
    site_finish(&s);
    site_start(&s);
    add_entry(&s, "checksum", "0000000000000000000000000000000000000000");
    expect(&s, "wrong checksum (found ");
    site_finish(&s);
    site_start(&s); /* of the bytes 1 to 64, as sha1sum says */
    add_entry(&s, "checksum", "92cb89df62d900b350d93e4225ca6f081d547a28");
    expect(&s, NULL);
    site_finish(&s);
    site_start(&s); /* an entry that says nothing */
    add_entry(&s, "", "");
    s.m->graph->initializer[0]->external_data[0]->key = NULL;
    expect(&s, NULL);
    site_finish(&s);
    site_start(&s);
    s.location = NULL;
    add_entry(&s, "location", "");
    s.m->graph->initializer[0]->external_data[0]->value = NULL;
    expect(&s, "external data location is empty (found '')");
    site_finish(&s);
    site_start(&s);
    char *far = po_arena_alloc(s.a, PATH_MAX + 1);
    memset(far, 'x', PATH_MAX);
    far[PATH_MAX] = '\0';
    s.location = far;
    expect(&s, "external data location is too long (found 'xxx");
    site_finish(&s);
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
        site_start(&s);
        int64_t dims[] = {2, 3};
        Onnx__TensorProto *t = tm_tensor(s.a, "v", PO_F32, 2, dims);
        tm_external(s.a, t, "w.bin", partial ? "8" : "0", NULL);
        TM_ADD(s.a, s.m->graph, initializer, t);
        s.ctx.log = count_overlaps;
        s.ctx.log_user = &warned;
        expect(&s, NULL);
        assert_int_equal(warned, partial);
        site_finish(&s);
    }
}

static void test_both(void **state) {
    (void)state;
    site s;
    site_start(&s);
    site_write(&s);
    Onnx__TensorProto *t = s.m->graph->initializer[0];
    t->n_external_data = 0;
    tm_external(s.a, t, "w.bin", "0", "24");
    t->has_raw_data = 1;
    size_t size;
    const uint8_t *data = tm_pack(s.a, s.m, &size);
    test_write_file(s.model, data, size);
    assert_null(site_read(&s, NULL));
    assert_non_null(strstr(s.ctx.error.message, "data is both external and in raw_data"));
    site_finish(&s);
}

/* The same checks wherever a tensor is. */
static void test_places(void **state) {
    (void)state;
    for (int place = 0; place < 5; place++) {
        site s;
        site_start(&s);
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
        site_finish(&s);
    }
}

/* --- several files --- */

/* One more f32[2,3] of external data. */
static Onnx__TensorProto *another(site *s, const char *name, const char *location,
                                  const char *offset) {
    static const int64_t dims[] = {2, 3};
    Onnx__TensorProto *t = tm_tensor(s->a, name, PO_F32, 2, dims);
    tm_external(s->a, t, location, offset, NULL);
    TM_ADD(s->a, s->m->graph, initializer, t);
    return t;
}

static void keep_overlap(void *user, const char *line) {
    const char *at = strstr(line, "external data of");
    if (at)
        snprintf(user, 200, "%s", at);
}

/* Overlaps are found whatever the order of the tensors and files. */
static void test_overlaps_of_many(void **state) {
    (void)state;
    static const struct {
        const char *offsets[3], *want; /* of w, of v and u; u is in the other file if it is there */
        bool two_files;
    } rows[] = {
        {{"40", "0", "16"}, "external data of tensors 'v' and 'u' overlap in '", false},
        {{"16", "40", "0"}, "external data of tensors 'u' and 'w' overlap in '", false},
        {{"40", "0", "16"}, "", true},
        {{"0", "16", "40"}, "external data of tensors 'w' and 'v' overlap in '", true},
        {{"0", "24", "24"}, "", false},
        {{"0", "40", "0"}, "", false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        for (int k = 0; k < 3; k++) { /* in the order w, v, u; w, u, v; u, v, w */
            site s;
            char got[200] = "";
            site_start(&s);
            assert_int_equal(rename(site_at(&s, "outside.bin"), site_at(&s, "m/other.bin")), 0);
            s.offset = rows[i].offsets[0];
            const char *other = rows[i].two_files ? "other.bin" : "w.bin";
            for (int n = 0; n < 2; n++) {
                bool u = (n == 0) == (k > 0);
                another(&s, u ? "u" : "v", u ? other : "w.bin", rows[i].offsets[u ? 2 : 1]);
            }
            if (k == 2) {
                Onnx__TensorProto **t = s.m->graph->initializer, *w = t[0];
                tm_external(s.a, w, s.location, s.offset, s.length);
                memmove(t, t + 1, 2 * sizeof(Onnx__TensorProto *));
                t[2] = w;
                site_put(&s);
            } else {
                site_write(&s);
            }
            s.ctx.log = keep_overlap;
            s.ctx.log_user = got;
            po_model *model = site_read(&s, NULL);
            assert_non_null(model);
            if (strncmp(got, rows[i].want, strlen(rows[i].want)) != 0 || !*got != !*rows[i].want)
                fail_msg("%zu, %d: '%s'", i, k, got);
            po_model_free(model);
            site_finish(&s);
        }
    }
}

/* The same start, another end. */
static void test_overlap_of_sizes(void **state) {
    (void)state;
    static const int64_t one = 1;
    site s;
    char got[200] = "";
    site_start(&s);
    Onnx__TensorProto *t = tm_tensor(s.a, "v", PO_F32, 1, &one);
    tm_external(s.a, t, "w.bin", NULL, "4");
    TM_ADD(s.a, s.m->graph, initializer, t);
    s.ctx.log = keep_overlap;
    s.ctx.log_user = got;
    expect(&s, NULL);
    assert_memory_equal(got, "external data of tensors 'v' and 'w' overlap", 43);
    site_finish(&s);
}

/* A file is read once, however its name is written, and its checksum is found right once. */
static void test_spellings(void **state) {
    (void)state;
    static const char *const sums[] = {"92cb89df62d900b350d93e4225ca6f081d547a28",
                                       "92cb89df62d900b350d93e4225ca6f081d547a28",
                                       "92CB89DF62D900B350D93E4225CA6F081D547A28"};
    static const char *const locations[] = {"./w.bin", ".//w.bin", "w.bin"};
    site s;
    site_start(&s);
    add_entry(&s, "checksum", sums[0]);
    for (int i = 0; i < 3; i++) {
        Onnx__TensorProto *t = another(&s, po_arena_printf(s.a, "v%d", i), locations[i], "8");
        Onnx__StringStringEntryProto *e =
            PO_PROTO_NEW(s.a, Onnx__StringStringEntryProto, ONNX__STRING_STRING_ENTRY_PROTO__INIT);
        e->key = po_arena_strdup(s.a, "checksum");
        e->value = po_arena_strdup(s.a, sums[i]);
        TM_ADD(s.a, t, external_data, e);
    }
    site_write(&s);
    po_model *model = site_read(&s, NULL);
    assert_non_null(model);
    uint32_t n;
    assert_non_null(po_import_contents(model, &n));
    assert_int_equal(n, 2); /* with the model's own */
    const po_graph *g = model->graph;
    const uint8_t *w = g->values[g->initializers[0]].constant->data;
    for (int i = 1; i < 4; i++)
        assert_ptr_equal(g->values[g->initializers[i]].constant->data, w + 8);
    po_model_free(model);
    site_finish(&s);
}

static void test_many_files(void **state) {
    (void)state;
    enum { LIMIT = 20000 };
    site s;
    char memory[] = "/dev/shm/petopt.XXXXXX"; /* on disk that takes seconds */
    site_start(&s);
    const char *folder = mkdtemp(memory) ? memory : site_at(&s, "m");
    s.model = po_arena_printf(s.a, "%s/model.onnx", folder);
    for (int i = 0; i <= LIMIT; i++) {
        int fd =
            open(po_arena_printf(s.a, "%s/%d", folder, i), O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
        assert_true(fd >= 0);
        close(fd);
    }
    /* Weights of no elements in empty files. */
    static const int64_t none = 0;
    Onnx__GraphProto *g = s.m->graph;
    Onnx__TensorProto *w = g->initializer[0];
    g->n_initializer = LIMIT + 2;
    g->initializer = PO_NEW_N(s.a, Onnx__TensorProto *, LIMIT + 2);
    g->initializer[0] = w;
    for (int i = 0; i <= LIMIT; i++) {
        const char *name = po_arena_printf(s.a, "%d", i);
        g->initializer[1 + i] = tm_tensor(s.a, name, PO_F32, 1, &none);
        tm_external(s.a, g->initializer[1 + i], name, NULL, NULL);
    }
    site_put(&s);
    assert_null(site_read(&s, NULL));
    test_rmtree(folder);
    assert_non_null(strstr(s.ctx.error.message, "graph/initializer[20001] '20000': too many files "
                                                "of external data (limit 20000)"));
    site_finish(&s);
}

/* --- folders --- */

/* Runs out of descriptors where a folder is opened: of the model, then of what it is a link to. */
static void test_no_descriptors(void **state) {
    (void)state;
    site s;
    site_start(&s);
    s.location = "absent.bin";
    site_write(&s);
    assert_int_equal(symlink("m/model.onnx", site_at(&s, "short.onnx")), 0);
    s.model = site_at(&s, "short.onnx");
    struct rlimit was;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &was), 0);
    int next = open("/dev/null", O_RDONLY | O_CLOEXEC);
    assert_true(next >= 0);
    close(next);
    for (int more = 1; more <= 2; more++) {
        const struct rlimit few = {(rlim_t)(next + more), was.rlim_max};
        po_model *model;
        po_ctx_clear(&s.ctx);
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
        po_status status = po_import_file(&s.ctx, s.model, &model);
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &was), 0);
        assert_int_equal(status, PO_IO);
        assert_string_equal(s.ctx.error.message,
                            po_arena_printf(s.a, "%s%s: cannot be opened (Too many open files)",
                                            s.folder, more == 1 ? "" : "/m"));
    }
    site_finish(&s);
}

/* A folder beside the model's whose name only begins like it. */
static void test_folder_of_like_name(void **state) {
    (void)state;
    site s;
    site_start(&s);
    site_write(&s);
    assert_int_equal(mkdir(site_at(&s, "m2"), 0777), 0);
    assert_int_equal(mkdir(site_at(&s, "snap"), 0777), 0);
    assert_int_equal(rename(site_at(&s, "m/w.bin"), site_at(&s, "m2/w.bin")), 0);
    assert_int_equal(symlink("../m/model.onnx", site_at(&s, "snap/model.onnx")), 0);
    assert_int_equal(symlink("../m2/w.bin", site_at(&s, "snap/w.bin")), 0);
    s.model = site_at(&s, "snap/model.onnx");
    assert_null(site_read(&s, NULL));
    assert_non_null(strstr(s.ctx.error.message, "leads out of the model's folder"));
    site_finish(&s);
}

/* A file that is open and has no name: a link to nothing, in a folder that holds no data. */
static void test_open_file(void **state) {
    (void)state;
    site s;
    site_start(&s);
    size_t size;
    const uint8_t *data = tm_pack(s.a, s.m, &size);
    int fd = memfd_create("model", MFD_CLOEXEC);
    assert_int_equal(write(fd, data, size), (ssize_t)size);
    s.model = po_arena_printf(s.a, "/proc/self/fd/%d", fd);
    po_model *model = site_read(&s, NULL);
    assert_non_null(model);
    po_model_free(model);
    tm_external(s.a, s.m->graph->initializer[0], "w.bin", "0", "24");
    data = tm_pack(s.a, s.m, &size);
    assert_int_equal(ftruncate(fd, 0), 0);
    assert_int_equal(pwrite(fd, data, size, 0), (ssize_t)size);
    assert_null(site_read(&s, NULL));
    assert_non_null(strstr(s.ctx.error.message, "external data 'w.bin' cannot be opened"));
    close(fd);
    site_finish(&s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_entries),
        cmocka_unit_test(test_kinds),
        cmocka_unit_test(test_links),
        cmocka_unit_test(test_hard_links),
        cmocka_unit_test(test_hub_cache),
        cmocka_unit_test(test_more_entries),
        cmocka_unit_test(test_overlaps),
        cmocka_unit_test(test_both),
        cmocka_unit_test(test_places),
        cmocka_unit_test(test_overlaps_of_many),
        cmocka_unit_test(test_overlap_of_sizes),
        cmocka_unit_test(test_spellings),
        cmocka_unit_test(test_many_files),
        cmocka_unit_test(test_no_descriptors),
        cmocka_unit_test(test_folder_of_like_name),
        cmocka_unit_test(test_open_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

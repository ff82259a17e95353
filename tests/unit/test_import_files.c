/* Tensors in files of their own, and the files that a model was read from. */
#include "unit.h"

#include "model_site.h"
#include "test_paths.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

static const int64_t two_three[] = {2, 3};

static int open_files(void) {
    int n = 0;
    DIR *d = opendir("/proc/self/fd");
    assert_non_null(d);
    while (readdir(d))
        n++;
    closedir(d);
    return n;
}

/* --- tensors --- */

/* Writes the tensor and reads it back; want: the refusal, NULL where it must be taken. */
static const po_tensor *read_back(site *s, const Onnx__TensorProto *t, const char *want) {
    size_t size = protobuf_c_message_get_packed_size(&t->base);
    uint8_t *data = po_arena_alloc(s->a, size);
    protobuf_c_message_pack(&t->base, data);
    const char *path = site_at(s, "input_0.pb");
    test_write_file(path, data, size);
    const po_tensor *tensor = NULL;
    int before = open_files();
    po_ctx_clear(&s->ctx);
    po_status status = po_import_tensor_file(&s->ctx, s->a, path, &tensor);
    assert_int_equal(open_files(), before);
    assert_ptr_equal(s->ctx.arenas, s->a); /* whatever happens, nothing else stays */
    assert_int_equal(status, want ? PO_BAD_INPUT : PO_OK);
    if (want && (!strstr(s->ctx.error.message, want) ||
                 strncmp(s->ctx.error.message, path, strlen(path)) != 0))
        fail_msg("got '%s', want '%s'", s->ctx.error.message, want);
    return tensor;
}

static void test_tensor_file(void **state) {
    (void)state;
    site s;
    site_start(&s);
    Onnx__TensorProto *t = tm_raw(s.a, "t", PO_F32, 2, two_three, 24);
    t->raw_data.data[23] = 0x40;
    const po_tensor *tensor = read_back(&s, t, NULL);
    assert_int_equal(tensor->dtype, PO_F32);
    assert_int_equal(tensor->rank, 2);
    assert_int_equal(tensor->count, 6);
    assert_true(po_tensor_f64(tensor, 5) == 2);
    t->raw_data.len = 20;
    read_back(&s, t, "'t': raw_data does not fit type and dims (found 20 bytes, want 24)");
    tm_external(s.a, t, "w.bin", "0", "24");
    read_back(&s, t, "external data is not allowed in a model from memory or a file of one tensor");
    site_finish(&s);
}

static void test_no_tensor_file(void **state) {
    (void)state;
    static const struct {
        const char *name, *bytes; /* NULL: not written */
        po_status status;
        const char *want;
    } rows[] = {
        {"absent.pb", NULL, PO_IO, "absent.pb: cannot be opened (No such file or directory)"},
        {"m", NULL, PO_BAD_INPUT, "m: is a folder (want a regular file)"},
        {"empty.pb", "", PO_BAD_INPUT, "empty.pb: is empty"},
        {"short.pb", "\x4a\x30", PO_BAD_INPUT, "short.pb: raw_data: a field is longer"},
        {"text.pb", "{}", PO_BAD_INPUT, "text.pb: is not an ONNX model: it looks like JSON"},
    };
    site s;
    site_start(&s);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const char *path = site_at(&s, rows[i].name);
        if (rows[i].bytes)
            test_write_text(path, rows[i].bytes);
        const po_tensor *tensor;
        int before = open_files();
        po_ctx_clear(&s.ctx);
        assert_int_equal(po_import_tensor_file(&s.ctx, s.a, path, &tensor), rows[i].status);
        if (!strstr(s.ctx.error.message, rows[i].want))
            fail_msg("got '%s', want '%s'", s.ctx.error.message, rows[i].want);
        assert_int_equal(open_files(), before);
        assert_ptr_equal(s.ctx.arenas, s.a);
    }
    site_finish(&s);
}

/* --- what a model was read from --- */

static void test_sums(void **state) {
    (void)state;
    site s;
    site_start(&s);
    site_write(&s);
    po_model *model = site_read(&s, NULL);
    assert_non_null(model);
    const po_file_sum *sums;
    uint32_t n, n_contents;
    po_import_sums(s.a, model, &sums, &n);
    assert_int_equal(n, 2);
    assert_string_equal(sums[0].name, "model.onnx");
    assert_int_equal(strspn(sums[0].sha256, "0123456789abcdef"), 64);
    assert_string_equal(sums[1].name, "w.bin"); /* the bytes 1 to 64, as sha256sum says */
    assert_string_equal(sums[1].sha256,
                        "20a7ec84684f7fe124cb3727d049734ab0b7da2f52fcafbcef989ecfd91e870b");
    const po_content *const *contents = po_import_contents(model, &n_contents);
    assert_int_equal(n_contents, 2);
    assert_int_equal(contents[1]->size, 64);
    po_model_free(model);
    site_finish(&s);
}

/* A model that was made from no file, and one from memory. */
static void test_no_files(void **state) {
    (void)state;
    po_ctx ctx;
    po_ctx_init(&ctx);
    po_arena *a = po_arena_create(&ctx);
    po_model built = {0};
    size_t size;
    const uint8_t *data = tm_pack(a, tm_model(a), &size);
    po_model *from_memory;
    assert_int_equal(po_import_bytes(&ctx, data, size, &from_memory), PO_OK);
    const po_model *const models[] = {&built, from_memory};
    for (int i = 0; i < 2; i++) {
        const po_file_sum *sums;
        uint32_t n = 7;
        po_import_sums(a, models[i], &sums, &n);
        assert_int_equal(n, 0);
        n = 7;
        assert_null(po_import_contents(models[i], &n));
        assert_int_equal(n, 0);
        po_import_rest(models[i]);
    }
    po_model_free(from_memory);
    po_arena_free(a);
}

/* Memory that is given back is read again. */
static void test_rest(void **state) {
    (void)state;
    site s;
    site_start(&s);
    int fd = open(site_at(&s, "m/w.bin"), O_RDWR | O_CLOEXEC);
    assert_int_equal(ftruncate(fd, 8 << 20), 0); /* mapped, not copied */
    close(fd);
    s.offset = "8";
    site_write(&s);
    po_model *model = site_read(&s, NULL);
    assert_non_null(model);
    po_import_rest(model);
    const po_graph *g = model->graph;
    const uint8_t *w = g->values[g->initializers[0]].constant->data;
    for (int i = 0; i < SITE_BYTES; i++)
        assert_int_equal(w[i], i + 9);
    po_model_free(model);
    site_finish(&s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tensor_file), cmocka_unit_test(test_no_tensor_file),
        cmocka_unit_test(test_sums),        cmocka_unit_test(test_no_files),
        cmocka_unit_test(test_rest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

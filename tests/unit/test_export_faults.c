/* Every open, write, fsync, close and rename of an export made to fail in turn; every allocation of
 * import and export too. Nothing new may be left behind and what was there must stay. */
#include "unit.h"

#include "export/export.h"
#include "import/import.h"
#include "onnx_build.h"
#include "test_paths.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

typedef struct faults {
    int calls;
    int fail_at;  /* the call that fails; -1: none */
    int error;    /* with this errno */
    bool partial; /* a write of half the bytes comes first */
    int renamed;  /* renames that were made */
} faults;

static bool hit(faults *f) {
    if (f->calls++ != f->fail_at)
        return false;
    errno = f->error;
    return true;
}
static int f_open(void *user, const char *path, int flags, mode_t mode) {
    return hit(user) ? -1 : open(path, flags, mode);
}
static ssize_t f_write(void *user, int fd, const void *data, size_t size) {
    faults *f = user;
    if (f->partial && size > 1 && f->calls == f->fail_at) {
        f->partial = false; /* the rest comes as another call, and fails */
        return write(fd, data, size / 2);
    }
    return hit(f) ? -1 : write(fd, data, size);
}
static int f_fsync(void *user, int fd) {
    return hit(user) ? -1 : fsync(fd);
}
static int f_close(void *user, int fd) {
    bool failed = hit(user);
    int error = errno;
    close(fd);
    errno = error;
    return failed ? -1 : 0;
}
static int f_rename(void *user, const char *from, const char *to) {
    faults *f = user;
    if (hit(f))
        return -1;
    f->renamed++;
    return rename(from, to);
}
static int f_unlink(void *user, const char *path) {
    (void)user; /* cleaning up is not made to fail: there is nothing behind it */
    return unlink(path);
}

static int files_in(const char *folder) {
    int n = 0;
    DIR *d = opendir(folder);
    assert_non_null(d);
    for (struct dirent *e; (e = readdir(d));)
        n += strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
    closedir(d);
    return n;
}

static bool holds(const char *path, const char *text) {
    size_t size;
    char *data = test_read_file(path, &size);
    bool same = data && size == strlen(text) && memcmp(data, text, size) == 0;
    free(data);
    return same;
}

static uint8_t *big_model(po_arena *a, size_t *size) {
    Onnx__ModelProto *m = tm_model(a);
    int64_t n = 700000; /* more than the writer's buffer */
    TM_ADD(a, m->graph, initializer, tm_raw(a, "big", PO_U8, 1, &n, 700000));
    for (int i = 0; i < 20; i++)
        TM_ADD(a, m->graph, node,
               tm_node(a, "Relu", i ? po_arena_printf(a, "n%d", i - 1) : "y",
                       po_arena_printf(a, "n%d", i)));
    return tm_pack(a, m, size);
}

static void run_faults(bool external, int error, bool partial) {
    char folder[PATH_MAX];
    test_mkdtemp(folder, sizeof folder);
    po_ctx ctx;
    po_ctx_init(&ctx);
    po_arena *a = po_arena_create(&ctx);
    const char *out = po_arena_printf(a, "%s/out.onnx", folder);
    const char *data_out = po_arena_printf(a, "%s.data", out);
    size_t size;
    const uint8_t *bytes = big_model(a, &size);
    po_model *model;
    assert_int_equal(po_import_bytes(&ctx, bytes, size, &model), PO_OK);
    int failures = 0;
    for (int n = 0;; n++) {
        assert_true(n < 200);
        test_write_text(out, "old");
        test_write_text(data_out, "data");
        faults f = {.fail_at = n, .error = error, .partial = partial};
        po_file_ops ops = {&f, f_open, f_write, f_fsync, f_close, f_rename, f_unlink};
        po_export_options o = {.ops = &ops, .external = external};
        po_ctx_clear(&ctx);
        po_status status = po_export_file(&ctx, model->graph, out, &o, NULL);
        assert_int_equal(files_in(folder), 2);
        if (status == PO_OK) {
            assert_true(f.calls <= n);
            break;
        }
        failures++;
        assert_int_equal(status, PO_IO);
        assert_non_null(strstr(ctx.error.message, "out.onnx"));
        assert_non_null(strstr(ctx.error.message, strerror(error)));
        if (f.renamed == 0) {
            assert_true(holds(out, "old"));
            assert_true(holds(data_out, "data"));
        }
    }
    /* Opening, writing twice, fsync, close, rename, and the folder's three: at least these. */
    assert_true(failures >= (external ? 13 : 9));
    assert_false(holds(out, "old"));
    po_model_free(model);
    po_arena_free(a);
    assert_null(ctx.arenas);
    test_rmtree(folder);
}

static void test_no_space(void **state) {
    (void)state;
    run_faults(false, ENOSPC, false);
    run_faults(false, ENOSPC, true);
    run_faults(true, ENOSPC, false);
}

static void test_io_error(void **state) {
    (void)state;
    run_faults(false, EIO, false);
    run_faults(true, EIO, true);
}

static void test_places(void **state) {
    (void)state;
    char folder[PATH_MAX];
    test_mkdtemp(folder, sizeof folder);
    po_ctx ctx;
    po_ctx_init(&ctx);
    po_arena *a = po_arena_create(&ctx);
    size_t size;
    const uint8_t *bytes = big_model(a, &size);
    po_model *model;
    assert_int_equal(po_import_bytes(&ctx, bytes, size, &model), PO_OK);
    const struct {
        const char *path, *want;
    } rows[] = {
        {po_arena_printf(a, "%s/none/out.onnx", folder), "No such file"},
        {folder, "it is no regular file"},
        {"/dev/null", "it is no regular file"},
        {po_arena_printf(a, "%s/nowhere", folder), "its link leads nowhere"},
    };
    assert_int_equal(symlink("absent/x", rows[3].path), 0);
    for (size_t i = 0; i < 4; i++) {
        po_ctx_clear(&ctx);
        assert_int_equal(po_export_file(&ctx, model->graph, rows[i].path, NULL, NULL), PO_IO);
        if (!strstr(ctx.error.message, rows[i].want))
            fail_msg("%s", ctx.error.message);
    }
    assert_int_equal(files_in(folder), 1);
    /* A cancelled run. */
    atomic_bool cancel = true;
    ctx.cancel = &cancel;
    po_ctx_clear(&ctx);
    const char *out = po_arena_printf(a, "%s/out.onnx", folder);
    assert_int_equal(po_export_file(&ctx, model->graph, out, NULL, NULL), PO_CANCELLED);
    assert_int_equal(files_in(folder), 1);
    po_model_free(model);
    po_arena_free(a);
    test_rmtree(folder);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_space),
        cmocka_unit_test(test_io_error),
        cmocka_unit_test(test_places),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

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
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct faults {
    int calls;
    int fail_at;  /* the call that fails; -1: none */
    int error;    /* with this errno */
    bool partial; /* a write of half the bytes comes first */
    int renames_left;
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
    return hit(user) ? -1 : rename(from, to);
}
static int f_unlink(void *user, const char *path) {
    (void)user; /* cleaning up is not made to fail: there is nothing behind it */
    return unlink(path);
}

static int f_link(void *user, const char *from, const char *to) {
    return hit(user) ? -1 : link(from, to);
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

#define OLD_DATA "out.onnx.00112233445566778899aabbccddeeff.data"
static const char old_cert[] = "{\n \"digest\": \"of the old model\"}\n";

static po_status certify(po_ctx *ctx, po_arena *arena, void *user, const po_export_sums *sums,
                         const char **text) {
    (void)ctx;
    (void)user;
    *text = po_arena_printf(arena, "{\n \"digest\": \"\", \"model\": \"%s\", \"data\": \"%s\"}\n",
                            sums->model, sums->data ? sums->data_name : "");
    return PO_OK;
}

/* The old model, which names its weights, its certificate, and files that only look like them. */
static void place_old(po_arena *a, const char *folder) {
    const char *names[] = {"out.onnx", OLD_DATA, "out.onnx.cert", "out.onnx.data",
                           "out.onnx.ffffffffffffffffffffffffffffffff.data"};
    const char *texts[] = {"old model \x12\x2e" OLD_DATA " end", "old weights", old_cert,
                           "another's", "of a model that was renamed"};
    assert_int_equal(strlen(OLD_DATA), 0x2e);
    for (int i = 0; i < 5; i++)
        test_write_text(po_arena_printf(a, "%s/%s", folder, names[i]), texts[i]);
}

/* What a reader finds beside a model is that model's: nothing of the one with the other. */
static bool is_old(po_arena *a, const char *folder) {
    return holds(po_arena_printf(a, "%s/out.onnx", folder), "old model \x12\x2e" OLD_DATA " end") &&
           holds(po_arena_printf(a, "%s/" OLD_DATA, folder), "old weights") &&
           holds(po_arena_printf(a, "%s/out.onnx.cert", folder), old_cert) && files_in(folder) == 5;
}

static void check_new(po_ctx *ctx, po_arena *a, const char *folder, bool external, bool certified) {
    po_model *back;
    assert_int_equal(po_import_file(ctx, po_arena_printf(a, "%s/out.onnx", folder), &back), PO_OK);
    assert_int_equal(back->graph->n_initializers, 2);
    po_model_free(back);
    assert_int_equal(access(po_arena_printf(a, "%s/" OLD_DATA, folder), F_OK), -1);
    assert_int_equal(access(po_arena_printf(a, "%s/out.onnx.cert", folder), F_OK),
                     certified ? 0 : -1);
    assert_false(holds(po_arena_printf(a, "%s/out.onnx.cert", folder), old_cert));
    assert_int_equal(files_in(folder), 3 + external + certified);
}

static void empty(const char *folder) {
    test_rmtree(folder);
    assert_int_equal(mkdir(folder, 0700), 0);
}

static void run_faults(bool external, bool certified, int error, bool partial) {
    char folder[PATH_MAX];
    test_mkdtemp(folder, sizeof folder);
    po_ctx ctx;
    po_ctx_init(&ctx);
    po_arena *a = po_arena_create(&ctx);
    const char *out = po_arena_printf(a, "%s/out.onnx", folder);
    size_t size;
    const uint8_t *bytes = big_model(a, &size);
    po_model *model;
    assert_int_equal(po_import_bytes(&ctx, bytes, size, &model), PO_OK);
    int failures = 0;
    for (int n = 0;; n++) {
        assert_true(n < 200);
        empty(folder);
        place_old(a, folder);
        faults f = {.fail_at = n, .error = error, .partial = partial};
        po_file_ops ops = {&f, f_open, f_write, f_fsync, f_close, f_rename, f_unlink, f_link};
        po_export_options o = {
            .ops = &ops, .external = external, .certify = certified ? certify : NULL};
        po_ctx_clear(&ctx);
        po_status status = po_export_file(&ctx, model->graph, out, &o, NULL);
        if (status == PO_OK && f.calls <= n)
            break;
        /* Without a second name for the old file there is no way back, and no need of one. */
        if (status == PO_OK) {
            empty(folder);
            continue;
        }
        failures++;
        assert_int_equal(status, PO_IO);
        assert_non_null(strstr(ctx.error.message, "out.onnx"));
        assert_non_null(strstr(ctx.error.message, strerror(error)));
        assert_true(is_old(a, folder));
    }
    /* Opening, writing twice, fsync, close, rename, the certificate's, the folder's three. */
    assert_true(failures >= 10 + (external ? 7 : 0) + (certified ? 5 : 0));
    check_new(&ctx, a, folder, external, certified);
    po_model_free(model);
    po_arena_free(a);
    assert_null(ctx.arenas);
    test_rmtree(folder);
}

/* Killed at any point a run leaves a model whose weights are its own, and no certificate but its
 * own: what the calls after the Nth would have done is not done. */
static int k_rename(void *user, const char *from, const char *to) {
    faults *f = user;
    if (f->renames_left-- == 0)
        _exit(0);
    return rename(from, to);
}

static void test_killed(void **state) {
    (void)state;
    char folder[PATH_MAX];
    test_mkdtemp(folder, sizeof folder);
    po_ctx ctx;
    po_ctx_init(&ctx);
    po_arena *a = po_arena_create(&ctx);
    const char *out = po_arena_printf(a, "%s/out.onnx", folder);
    size_t size;
    const uint8_t *bytes = big_model(a, &size);
    po_model *model;
    assert_int_equal(po_import_bytes(&ctx, bytes, size, &model), PO_OK);
    int old = 0, fresh = 0;
    for (int renames = 0; renames < 5; renames++) {
        empty(folder);
        place_old(a, folder);
        pid_t pid = fork();
        if (pid == 0) {
            faults f = {.fail_at = -1, .renames_left = renames};
            po_file_ops ops = {&f, f_open, f_write, f_fsync, f_close, k_rename, f_unlink, f_link};
            po_export_options o = {.ops = &ops, .external = true, .certify = certify};
            _exit(po_export_file(&ctx, model->graph, out, &o, NULL) == PO_OK ? 0 : 1);
        }
        int how;
        assert_int_equal(waitpid(pid, &how, 0), pid);
        assert_true(WIFEXITED(how) && WEXITSTATUS(how) == 0);
        const char *cert = po_arena_printf(a, "%s.cert", out);
        if (holds(out, "old model \x12\x2e" OLD_DATA " end")) {
            assert_true(holds(po_arena_printf(a, "%s/" OLD_DATA, folder), "old weights"));
            assert_true(access(cert, F_OK) != 0 || holds(cert, old_cert));
            old++;
            continue;
        }
        po_model *back;
        assert_int_equal(po_import_file(&ctx, out, &back), PO_OK);
        po_model_free(back);
        assert_false(holds(cert, old_cert));
        fresh++;
    }
    assert_true(old >= 3 && fresh >= 2); /* data, certificate aside, model, certificate */
    po_model_free(model);
    po_arena_free(a);
    test_rmtree(folder);
}

static void test_no_space(void **state) {
    (void)state;
    run_faults(false, false, ENOSPC, false);
    run_faults(false, true, ENOSPC, true);
    run_faults(true, false, ENOSPC, false);
}

static void test_io_error(void **state) {
    (void)state;
    run_faults(false, true, EIO, false);
    run_faults(true, true, EIO, false);
    run_faults(true, true, EIO, true);
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
        cmocka_unit_test(test_killed),
        cmocka_unit_test(test_places),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Every allocation of import and export made to fail in turn: each run ends with PO_NO_MEMORY,
 * nothing stays mapped, open or allocated. And files that change between two looks at them. */
#include "unit.h"

#include "export/export.h"
#include "import/import.h"
#include "import/scan.h"
#include "onnx_build.h"
#include "test_paths.h"

#include <dirent.h>
#include <limits.h>
#include <stdlib.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif

#ifdef SANITIZED

/* Sanitizers have an allocator of their own. */
static void test_memory(void **state) {
    (void)state;
    skip();
}
static void test_changed(void **state) {
    (void)state;
    skip();
}

#else

static long allocations, fail_at = -1;

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);
void *malloc(size_t size);
void *calloc(size_t n, size_t size);

static bool fails(void) {
    return fail_at >= 0 && allocations++ == fail_at;
}
/* A byte that changes with the first allocation of so many bytes. */
static uint8_t *changing, becomes;
static size_t changing_at;

void *malloc(size_t size) {
    if (changing && size >= changing_at) {
        *changing = becomes;
        changing = NULL;
    }
    return fails() ? NULL : __libc_malloc(size);
}
void *calloc(size_t n, size_t size) {
    return fails() ? NULL : __libc_calloc(n, size);
}

static po_status whole(po_ctx *ctx, const char *in, const char *out) {
    po_guard guard;
    po_model *volatile model = NULL;
    po_guard_push(ctx, &guard);
    if (setjmp(guard.env) != 0) {
        po_model_free(model);
        return po_guard_unwind(ctx, &guard);
    }
    po_model *got = NULL;
    po_status status = po_import_file(ctx, in, &got);
    model = got;
    if (status == PO_OK)
        status = po_export_file(ctx, got->graph, out, NULL, NULL);
    po_model_free(got);
    po_guard_pop(ctx, &guard);
    return status;
}

static int open_files(void) {
    int n = 0;
    DIR *d = opendir("/proc/self/fd");
    while (d && readdir(d))
        n++;
    if (d)
        closedir(d);
    return n;
}

static int files_in(const char *folder) {
    int n = 0;
    DIR *d = opendir(folder);
    while (d && readdir(d))
        n++;
    if (d)
        closedir(d);
    return n;
}

static void test_memory(void **state) {
    (void)state;
    char folder[PATH_MAX];
    test_mkdtemp(folder, sizeof folder);
    po_ctx ctx;
    po_ctx_init(&ctx);
    po_arena *a = po_arena_create(&ctx);
    Onnx__ModelProto *m = tm_model(a);
    tm_external(a, m->graph->initializer[0], "w.bin", "0", "24");
    for (int i = 0; i < 300; i++)
        TM_ADD(a, m->graph, node, tm_node(a, "Relu", "x", po_arena_printf(a, "n%d", i)));
    size_t size;
    const uint8_t *data = tm_pack(a, m, &size);
    const char *in = po_arena_printf(a, "%s/in.onnx", folder);
    const char *out = po_arena_printf(a, "%s/out.onnx", folder);
    test_write_file(in, data, size);
    uint8_t *big = calloc(5 << 20, 1); /* mapped, not read */
    test_write_file(po_arena_printf(a, "%s/w.bin", folder), big, 5 << 20);
    free(big);
    int before = open_files(), files = files_in(folder);
    po_arena *mine = ctx.arenas;
    long n = 0;
    for (;; n++) {
        assert_true(n < 100000);
        po_ctx_clear(&ctx);
        allocations = 0;
        fail_at = n;
        po_status status = whole(&ctx, in, out);
        bool finished = allocations <= n;
        fail_at = -1;
        assert_ptr_equal(ctx.arenas, mine);
        assert_int_equal(open_files(), before);
        if (finished) {
            assert_int_equal(status, PO_OK);
            break;
        }
        assert_int_equal(status, PO_NO_MEMORY);
        assert_int_equal(files_in(folder), files);
    }
    assert_true(n > 20);
    assert_int_equal(files_in(folder), files + 2);
    po_arena_free(a);
    test_rmtree(folder);
}

/* A mapped file that changes under the scanner: what it writes is as large as it was to be in its
 * first pass, or it is refused. Between the passes room for the second is allocated. */
static void test_changed(void **state) {
    (void)state;
    enum { NAME = 8, RAW = 9, DOC = 12, TEXT = 2 };
    static const struct {
        int64_t n; /* bytes of raw data, which become the tensor's doc_string */
        uint8_t becomes;
        po_status status;
        const char *want;
    } rows[] = {
        {40, DOC << 3 | TEXT, PO_IO, "f: was changed while it was read"}, /* too much to write */
        {8, DOC << 3 | TEXT, PO_IO, "f: was changed while it was read"},  /* not a reference */
        {8, NAME << 3 | TEXT, PO_BAD_INPUT,
         "f: graph/initializer[1]/name: the field is there twice"},
        {8, RAW << 3 | TEXT, PO_OK, ""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        po_ctx ctx;
        po_ctx_init(&ctx);
        po_arena *a = po_arena_create(&ctx);
        Onnx__ModelProto *m = tm_model(a);
        Onnx__TensorProto *t = tm_raw(a, "v", PO_U8, 1, &rows[i].n, (size_t)rows[i].n);
        memset(t->raw_data.data, 'a', (size_t)rows[i].n);
        TM_ADD(a, m->graph, initializer, t);
        changing_at = 1 << 20;
        m->graph->doc_string = po_arena_calloc(a, changing_at + 1, 1);
        memset(m->graph->doc_string, 'd', changing_at);
        size_t size;
        uint8_t *data = tm_pack(a, m, &size);
        const uint8_t start[] = {RAW << 3 | TEXT, (uint8_t)rows[i].n, 'a', 'a'};
        uint8_t *tag = memmem(data, size, start, sizeof start);
        assert_non_null(tag);
        po_arena *scratch = po_arena_create(&ctx);
        po_scanned scan;
        becomes = rows[i].becomes;
        changing = tag;
        po_status status = po_scan_message(&ctx, a, scratch, "f", &onnx__model_proto__descriptor,
                                           data, size, &scan);
        assert_null(changing);
        assert_int_equal(status, rows[i].status);
        assert_string_equal(ctx.error.message, rows[i].want);
        po_arena_free(scratch);
        po_arena_free(a);
    }
}

#endif

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_memory),
                                       cmocka_unit_test(test_changed)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

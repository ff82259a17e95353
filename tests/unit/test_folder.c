/* A folder for a moment goes with its arena, and all files in it. */
#include "base/arena.h"
#include "base/folder.h"
#include "test_paths.h"
#include "unit.h"

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static void it_goes_with_the_arena(void **state) {
    (void)state;
    po_ctx ctx;
    po_ctx_init(&ctx);
    po_arena *arena = po_arena_create(&ctx);
    const char *path = NULL, *other = NULL;
    assert_int_equal(po_folder_temporary(&ctx, arena, &path), PO_OK);
    assert_int_equal(po_folder_temporary(&ctx, arena, &other), PO_OK);
    assert_string_not_equal(path, other);
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    assert_true(S_ISDIR(st.st_mode) && (st.st_mode & 077) == 0);
    static const char *const names[] = {"kernel.c", ".hidden"};
    char kept[200], file[200];
    for (int i = 0; i < 2; i++) {
        snprintf(file, sizeof file, "%s/%s", path, names[i]);
        test_write_file(file, "x", 1);
    }
    snprintf(kept, sizeof kept, "%s", path);
    po_arena_free(arena);
    assert_int_not_equal(stat(kept, &st), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(it_goes_with_the_arena)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

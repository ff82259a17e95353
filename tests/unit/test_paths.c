/* The tests' own helpers: a scratch folder comes and goes, files come back as written. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "test_paths.h"

static void scratch_folder(void **state) {
    (void)state;
    char dir[512], path[600];
    test_mkdtemp(dir, sizeof dir);
    assert_int_equal(access(dir, F_OK), 0);
    snprintf(path, sizeof path, "%s/x", dir);
    char bytes[5000];
    for (size_t i = 0; i < sizeof bytes; i++) {
        bytes[i] = (char)(i * 7);
    }
    test_write_file(path, bytes, sizeof bytes);
    size_t size = 0;
    char *back = test_read_file(path, &size);
    assert_non_null(back);
    assert_int_equal(size, sizeof bytes);
    assert_memory_equal(back, bytes, sizeof bytes);
    free(back);
    test_rmtree(dir);
    assert_int_equal(access(dir, F_OK), -1);
    assert_null(test_read_file(path, NULL));
}

static void dependencies_are_there(void **state) {
    (void)state;
    char path[512];
    assert_int_equal(access(test_source_path(path, sizeof path, "CMakeLists.txt"), R_OK), 0);
    assert_int_equal(access(test_deps_path(path, sizeof path, "onnx/test-data"), R_OK), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scratch_folder),
        cmocka_unit_test(dependencies_are_there),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Paths and scratch folders for tests. */
#ifndef TEST_PATHS_H
#define TEST_PATHS_H

#include <stddef.h>

/* Writes "<sources>/<rel>" resp. "<.deps>/<rel>" into buf and returns buf. */
char *test_source_path(char *buf, size_t size, const char *rel);
char *test_deps_path(char *buf, size_t size, const char *rel);

/* A new empty folder; its path goes into buf. Remove it with test_rmtree. Aborts on failure. */
char *test_mkdtemp(char *buf, size_t size);
/* Removes the folder and all in it; symbolic links are removed, not followed. */
void test_rmtree(const char *path);

/* Creates or replaces a file. Aborts on failure. */
void test_write_file(const char *path, const void *data, size_t size);
void test_write_text(const char *path, const char *text);
/* The whole file, with a NUL behind it, to be freed by the caller; *size without the NUL. NULL if
 * the file cannot be read. */
void *test_read_file(const char *path, size_t *size);

/* Calls `see` with the path of every .onnx file below "<.deps>/<rel>". Aborts where it is not
 * there. */
void test_each_model(const char *rel, void (*see)(void *user, const char *path), void *user);

#endif

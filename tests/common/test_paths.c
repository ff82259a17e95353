/* Paths below the folders of the sources, dependencies and binaries, whole files read and written,
 * folders removed with what is in them. What fails aborts the test, but for a file that is not
 * there. */
#include "test_paths.h"

#include <fts.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char *join(char *buf, size_t size, const char *dir, const char *rel) {
    if ((size_t)snprintf(buf, size, "%s/%s", dir, rel) >= size) {
        abort();
    }
    return buf;
}

char *test_source_path(char *buf, size_t size, const char *rel) {
    return join(buf, size, TEST_SOURCE_DIR, rel);
}

char *test_deps_path(char *buf, size_t size, const char *rel) {
    return join(buf, size, TEST_DEPS_DIR, rel);
}

char *test_mkdtemp(char *buf, size_t size) {
    join(buf, size, TEST_BINARY_DIR, "tmp.XXXXXX");
    if (!mkdtemp(buf)) {
        perror(buf);
        abort();
    }
    return buf;
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *ftw) {
    (void)st;
    (void)kind;
    (void)ftw;
    return remove(path);
}

void test_rmtree(const char *path) {
    nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

void test_write_file(const char *path, const void *data, size_t size) {
    FILE *f = fopen(path, "wb");
    if (!f || fwrite(data, 1, size, f) != size || fclose(f) != 0) {
        perror(path);
        abort();
    }
}

void test_write_text(const char *path, const char *text) {
    test_write_file(path, text, strlen(text));
}

void *test_read_file(const char *path, size_t *size) {
    FILE *f = fopen(path, "rb");
    if (!f) {
        return NULL;
    }
    char *data = NULL;
    size_t n = 0, room = 0, got;
    do {
        room = room ? 2 * room : 4096;
        char *grown = realloc(data, room + 1);
        if (!grown) {
            abort();
        }
        data = grown;
        got = fread(data + n, 1, room - n, f);
        n += got;
    } while (n == room);
    fclose(f);
    data[n] = 0;
    if (size) {
        *size = n;
    }
    return data;
}

void test_each_model(const char *rel, void (*see)(void *user, const char *path), void *user) {
    char folder[4096];
    char *const roots[] = {test_deps_path(folder, sizeof folder, rel), NULL};
    FTS *walk = fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR, NULL);
    if (!walk)
        abort();
    for (FTSENT *e; (e = fts_read(walk));) {
        const size_t n = strlen(e->fts_path);
        if (e->fts_info == FTS_NS || e->fts_info == FTS_ERR || e->fts_info == FTS_DNR)
            abort();
        if (e->fts_info == FTS_F && n > 5 && strcmp(e->fts_path + n - 5, ".onnx") == 0)
            see(user, e->fts_path);
    }
    fts_close(walk);
}

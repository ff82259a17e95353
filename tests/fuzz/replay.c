/* Runs a fuzz target over the files of the folders (or the files) named on the command line, in the
 * order of their names, and fails where there is none: a replay of nothing would prove nothing. */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int replay_file(const char *path) {
    FILE *f = fopen(path, "rb");
    if (!f || fseek(f, 0, SEEK_END) != 0) {
        perror(path);
        exit(1);
    }
    long size = ftell(f);
    rewind(f);
    /* An exact allocation: a sanitizer sees the first byte read past the end. */
    uint8_t *data = malloc(size > 0 ? (size_t)size : 1);
    if (size < 0 || !data || fread(data, 1, (size_t)size, f) != (size_t)size) {
        fprintf(stderr, "%s: cannot be read\n", path);
        exit(1);
    }
    fclose(f);
    LLVMFuzzerTestOneInput(data, (size_t)size);
    free(data);
    return 1;
}

static int replay(const char *path) {
    struct stat st;
    if (stat(path, &st) != 0) {
        perror(path);
        exit(1);
    }
    if (!S_ISDIR(st.st_mode)) {
        return replay_file(path);
    }
    struct dirent **names;
    int n = scandir(path, &names, NULL, alphasort);
    int done = 0;
    for (int i = 0; i < n; i++) {
        if (names[i]->d_name[0] != '.') {
            char child[4096];
            snprintf(child, sizeof child, "%s/%s", path, names[i]->d_name);
            done += replay(child);
        }
        free(names[i]);
    }
    if (n >= 0) {
        free(names);
    }
    return done;
}

int main(int argc, char **argv) {
    int done = 0;
    for (int i = 1; i < argc; i++) {
        done += replay(argv[i]);
    }
    printf("%d inputs replayed\n", done);
    return done > 0 ? 0 : 1;
}

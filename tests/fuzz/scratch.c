/* The folder lies in /dev/shm: made when it is first asked for, removed with its files by
 * atexit. */
#include "scratch.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char folder[] = "/dev/shm/petopt-fuzz-XXXXXX";
static int made;

static void leave(void) {
    DIR *d = opendir(folder);
    for (const struct dirent *e; d && (e = readdir(d));) {
        char path[4096];
        snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
        unlink(path);
    }
    if (d)
        closedir(d);
    rmdir(folder);
}

const char *scratch_folder(void) {
    if (!made && !mkdtemp(folder)) {
        perror(folder);
        exit(1);
    }
    if (!made)
        atexit(leave);
    made = 1;
    return folder;
}

void scratch_write(const char *name, const void *data, size_t size, char path[4096]) {
    snprintf(path, 4096, "%s/%s", scratch_folder(), name);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0 || write(fd, data, size) != (ssize_t)size) {
        perror(path);
        exit(1);
    }
    close(fd);
}

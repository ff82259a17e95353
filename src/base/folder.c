#include "base/folder.h"

#include "base/str.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void remove_folder(void *user) {
    const char *path = user;
    DIR *folder = opendir(path);
    const struct dirent *entry;
    while (folder && (entry = readdir(folder)) != NULL)
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            unlinkat(dirfd(folder), entry->d_name, 0);
    if (folder)
        closedir(folder);
    rmdir(path);
}

void po_folder_remove_left(void) {
    char start[64], path[512];
    DIR *all = opendir("/tmp");
    const struct dirent *entry;
    int length = snprintf(start, sizeof start, "petopt-%ld-", (long)getpid());
    while (all && (entry = readdir(all)) != NULL) {
        snprintf(path, sizeof path, "/tmp/%s", entry->d_name);
        if (strncmp(entry->d_name, start, (size_t)length) == 0)
            remove_folder(path);
    }
    if (all)
        closedir(all);
}

po_status po_folder_temporary(po_ctx *ctx, po_arena *arena, const char **path) {
    char *name = po_arena_printf(arena, "/tmp/petopt-%ld-XXXXXX", (long)getpid());
    if (!mkdtemp(name))
        return po_fail(ctx, PO_IO, "no temporary folder can be made in /tmp (%s)", strerror(errno));
    po_arena_defer(arena, remove_folder, name);
    *path = name;
    return PO_OK;
}

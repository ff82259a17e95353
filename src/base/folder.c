/* Temporary folders in the first place that can be written and has room: /tmp, /var/tmp, /dev/shm,
 * the user's cache. They are named by process id, so that a process finds what it left behind. */
#include "base/folder.h"

#include "base/str.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

/* What compilers write for one library, with room to spare. */
#define LEAST_ROOM ((uint64_t)32 << 20)

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

/* Into the buffer; false: there is none. */
static bool find_home(char *path, size_t size, const char *below) {
    char buffer[4096];
    struct passwd entry, *found = NULL;
    if (getpwuid_r(getuid(), &entry, buffer, sizeof buffer, &found) != 0 || !found ||
        found->pw_dir[0] != '/')
        return false;
    return (size_t)snprintf(path, size, "%s%s", found->pw_dir, below) < size;
}

const char *po_folder_home(po_arena *arena) {
    char path[PATH_MAX];
    return find_home(path, sizeof path, "") ? po_arena_strdup(arena, path) : NULL;
}

/* Folders in the order in which they are tried: what is in memory or cleaned at the next start
 * first; then the user's cache, for machines that give no other. */
static bool place(int i, char path[PATH_MAX]) {
    static const char *const places[] = {"/tmp", "/var/tmp", "/dev/shm"};
    enum { PLACES = sizeof places / sizeof places[0] };
    if (i < PLACES)
        return snprintf(path, PATH_MAX, "%s", places[i]) > 0;
    return i == PLACES && find_home(path, PATH_MAX, "/.cache/petopt");
}

static bool has_room(const char *path) {
    struct statvfs st;
    return statvfs(path, &st) != 0 || (uint64_t)st.f_bavail * st.f_frsize >= LEAST_ROOM;
}

void po_folder_remove_left(void) {
    char start[64], parent[PATH_MAX], path[PATH_MAX + 300];
    int length = snprintf(start, sizeof start, "petopt-%ld-", (long)getpid());
    for (int i = 0; place(i, parent); i++) {
        DIR *all = opendir(parent);
        const struct dirent *entry;
        while (all && (entry = readdir(all)) != NULL) {
            snprintf(path, sizeof path, "%s/%s", parent, entry->d_name);
            if (strncmp(entry->d_name, start, (size_t)length) == 0)
                remove_folder(path);
        }
        if (all)
            closedir(all);
    }
}

po_status po_folder_temporary(po_ctx *ctx, po_arena *arena, const char **path) {
    int error = 0;
    char parent[PATH_MAX];
    for (int i = 0; place(i, parent); i++) {
        char *name = po_arena_printf(arena, "%s/petopt-%ld-XXXXXX", parent, (long)getpid());
        bool room = has_room(parent);
        if (room && mkdtemp(name)) {
            po_arena_defer(arena, remove_folder, name);
            *path = name;
            return PO_OK;
        }
        if (error == 0)
            error = room ? errno : ENOSPC;
    }
    return po_fail(ctx, PO_IO,
                   "no temporary folder can be made in /tmp (%s), nor in /var/tmp, /dev/shm or "
                   "~/.cache/petopt",
                   strerror(error));
}

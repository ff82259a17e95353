/* Whether a cache may be believed. Its rows hold verdicts and machine code that will be run, and
 * whoever can write them can make them add up: so the file, and the folder that its name stands in,
 * must be this user's (or the system's) and nobody else's to write. */
#include "cost/cache.h"

#include "base/file.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *distrust(po_arena *arena, const char *what, const char *path) {
    struct stat st;
    if (stat(path, &st) != 0)
        return NULL; /* what is not there holds nothing; opening it tells why */
    if (st.st_uid != geteuid() && st.st_uid != 0)
        return po_arena_printf(arena, "%s belongs to another user (%u)", what, (unsigned)st.st_uid);
    if (st.st_mode & (S_IWGRP | S_IWOTH))
        return po_arena_printf(arena, "%s can be written by others (chmod go-w %.300s)", what,
                               path);
    return NULL;
}

static const char *distrust_folder(po_arena *arena, const char *path) {
    const char *folder = po_path_folder(arena, path);
    return distrust(arena, "its folder", folder);
}

const char *po_cache_distrust(po_arena *arena, const char *path) {
    char real[PATH_MAX];
    const char *why = distrust(arena, "it", path);
    if (!why)
        why = distrust_folder(arena, path);
    if (!why && realpath(path, real)) /* a link: where it leads too */
        why = distrust_folder(arena, real);
    return why;
}

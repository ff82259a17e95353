/* Folders for a moment. */
#ifndef PO_BASE_FOLDER_H
#define PO_BASE_FOLDER_H

#include "base/ctx.h"

/* Makes a folder for this user alone: in /tmp, or where that cannot be written to or is full in
 * /var/tmp, /dev/shm or the user's cache. It goes with the arena, and with it the files in it (not
 * the folders). Programs may not be loadable from there (noexec): see po_memory_file. PO_IO. */
po_status po_folder_temporary(po_ctx *ctx, po_arena *arena, const char **path);

/* The home of the user who runs this, from the user database; NULL: there is none. */
const char *po_folder_home(po_arena *arena);

/* Removes such folders of a program that had this process before (execve), and its own. */
void po_folder_remove_left(void);

#endif

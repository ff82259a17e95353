/* Folders for a moment. */
#ifndef PO_BASE_FOLDER_H
#define PO_BASE_FOLDER_H

#include "base/ctx.h"

/* Makes a folder in /tmp, for this user alone. It goes with the arena, and with it the files in it
 * (not the folders). PO_IO. */
po_status po_folder_temporary(po_ctx *ctx, po_arena *arena, const char **path);

/* Removes such folders of a program that had this process before (execve), and its own. */
void po_folder_remove_left(void);

#endif

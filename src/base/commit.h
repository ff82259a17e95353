/* Files that take their names together: all of them, or none.
 *
 * Each is written and closed under a temporary name first (base/file.h). po_commit_run then does
 * the steps in the order in which they were added, and keeps what they replace under temporary
 * names until po_commit_keep: where a step fails, and where the arena is freed before the end,
 * everything is as it was. A process that is killed between two steps leaves the steps before it
 * done, so that their order decides what a reader can meet.
 *
 * Commits of several processes into one folder take turns, by a lock on the folder that leaves no
 * file. Who does not get it within some seconds goes on without. */
#ifndef PO_BASE_COMMIT_H
#define PO_BASE_COMMIT_H

#include "base/file.h"

typedef struct po_commit po_commit;

/* Nothing is done yet. ops NULL: the system's. */
po_commit *po_commit_create(po_ctx *ctx, po_arena *arena, const po_file_ops *ops);

/* The steps. The writer is finished, and lives as long as the commit. */
void po_commit_add(po_commit *commit, po_writer *writer);
/* What stands at the path goes; nothing there is no failure. */
void po_commit_drop(po_commit *commit, const char *path);
/* What was done so far in the folder of the step before is made durable. */
void po_commit_sync(po_commit *commit);

/* Does the steps, once. PO_IO: none of them is done. */
po_status po_commit_run(po_commit *commit);
/* After po_commit_run: where the file that the writer's replaced is found until po_commit_keep;
 * NULL: there was none, or it cannot be read. */
const char *po_commit_replaced(const po_commit *commit, const po_writer *writer);
/* From here on there is no way back; nothing of this can fail. */
void po_commit_keep(po_commit *commit);
/* Undoes what po_commit_run did, as freeing the arena does. */
void po_commit_undo(po_commit *commit);

#endif

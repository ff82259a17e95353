/* Work on all processors: tasks that need nothing of one another. What comes of them hangs neither
 * on how many threads there are nor on which is first. */
#ifndef PO_BASE_TASKS_H
#define PO_BASE_TASKS_H

#include "base/ctx.h"

/* One task: `ctx` is its own, and what it allocates from arenas made under it is gone when all are
 * done, but for arenas that it keeps (po_arena_keep). */
typedef po_status (*po_task_fn)(po_ctx *ctx, void *user, uint32_t which);

/* Runs n tasks. The failure of the first that failed, by number, is the call's. Lines that tasks
 * log are printed in their order. Tasks of a task run one after the other. A call that is cancelled
 * or late runs none. */
po_status po_tasks_run(po_ctx *ctx, uint32_t n, po_task_fn fn, void *user);

#endif

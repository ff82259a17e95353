/* Foreign code in a process of its own.
 *
 * The inference runtime is never loaded into the caller's process. Each use of it is a function
 * that runs in a forked child, sees the caller's memory as it was, and sends bytes back. The child
 * dies with the caller, at the time limit and when the context says stop; if the runtime
 * crashes the caller gets a PO_RUNTIME sentence. The child's stdin, stdout and stderr lead to
 * /dev/null; it keeps the caller's open descriptors, so /proc/self/fd/N names the same file. */
#ifndef PO_COST_ISOLATE_H
#define PO_COST_ISOLATE_H

#include "base/arena.h"
#include "base/str.h"

typedef struct po_reply po_reply;

/* Child: sends bytes; the caller gets all of them joined. A failed write ends the child. */
void po_reply_add(po_reply *reply, const void *data, size_t size);
/* Child: a line for the caller's log. */
__attribute__((format(printf, 2, 3))) void po_reply_log(po_reply *reply, const char *format, ...);

/* Runs in the child. Its context has the caller's limits and a guard of its own; the arena is
 * the child's. A failure is passed to the caller's context with its message. */
typedef po_status (*po_child_fn)(po_ctx *ctx, po_arena *arena, po_reply *reply, void *user);

/* Forks, runs fn and waits. `what` names the work in messages ("timing the model"). `seconds` is
 * the longest it may take; 0: no limit but the context's. `data` (may be NULL) gets what was
 * sent; it lives as long as the arena. Leaves no child, descriptor or zombie behind.
 * PO_RUNTIME: the child crashed or ran over its limit. PO_CANCELLED, PO_TIME_LIMIT: the context's.
 * PO_IO: no process or pipe to be had. */
po_status po_isolate(po_ctx *ctx, po_arena *arena, const char *what, double seconds, po_child_fn fn,
                     void *user, po_bytes *data);

#endif

/* Arenas: memory that is given back all at once. An allocation never returns NULL: when
 * memory runs out it unwinds to the context's guard (base/ctx.h). */
#ifndef PO_BASE_ARENA_H
#define PO_BASE_ARENA_H

#include "base/ctx.h"

#include <string.h>

/* Makes an empty arena. It is freed by po_arena_free or, on exhaustion, by the guard. */
po_arena *po_arena_create(po_ctx *ctx);
/* Runs the arena's deferred calls, newest first, and frees its memory. NULL is allowed. */
void po_arena_free(po_arena *arena);

/* Runs the deferred calls, and takes back what was allocated, to be handed out again: for scratch
 * memory that is used many times over. The arena keeps it until it is freed. */
void po_arena_reset(po_arena *arena);

/* An arena under the same context as another: scratch memory for functions without a context. */
po_arena *po_arena_child(po_arena *arena);
/* The context of the call under way. */
po_ctx *po_arena_ctx(const po_arena *arena);

/* Takes the arena out of its context, so that no guard frees it: for handles that outlive the
 * call. po_arena_bind puts it under another call's context before it is used again. */
void po_arena_keep(po_arena *arena);
void po_arena_bind(po_arena *arena, po_ctx *ctx);
/* The other arena leaves its context too, and goes with this one if it was not freed before. */
void po_arena_own(po_arena *arena, po_arena *other);
/* What lies in this one points into the other, which then stays as long as this one does, whoever
 * frees it before. */
void po_arena_hold(po_arena *arena, po_arena *other);

/* Aligned for any type; the bytes are not initialised. Size 0 gives a unique pointer. */
__attribute__((malloc, returns_nonnull, alloc_size(2))) void *po_arena_alloc(po_arena *arena,
                                                                             size_t size);
/* count * size bytes, zeroed; an overflow counts as exhaustion. */
__attribute__((malloc, returns_nonnull, alloc_size(2, 3))) void *
po_arena_calloc(po_arena *arena, size_t count, size_t size);
__attribute__((returns_nonnull)) void *po_arena_memdup(po_arena *arena, const void *data,
                                                       size_t size);
__attribute__((returns_nonnull)) char *po_arena_strdup(po_arena *arena, const char *text);
__attribute__((returns_nonnull, format(printf, 2, 3))) char *
po_arena_printf(po_arena *arena, const char *format, ...);

/* As po_arena_calloc(arena, size, 1), in a block of its own, which may be given back before the
 * rest: po_arena_visit_loose shows those that there are, po_arena_drop_loose frees them all. */
__attribute__((malloc, returns_nonnull, alloc_size(2))) void *po_arena_loose(po_arena *arena,
                                                                             size_t size);
void po_arena_visit_loose(const po_arena *arena,
                          void (*fn)(void *user, const void *data, size_t size), void *user);
void po_arena_drop_loose(po_arena *arena);

/* Calls fn(user) when the arena is freed: for descriptors, mappings and foreign handles. */
void po_arena_defer(po_arena *arena, void (*fn)(void *), void *user);

/* Unwinds as if an allocation had failed: for foreign allocators that return NULL. */
__attribute__((noreturn)) void po_arena_exhausted(po_arena *arena);

/* Frees every arena of the context whose serial is at least `mark`. */
void po_arenas_free_since(po_ctx *ctx, uint64_t mark);

/* Grows an arena array so that it holds at least `need` items; returns the new array. The old
 * one stays behind in the arena (sizes double, so at most as much again is wasted). */
__attribute__((returns_nonnull)) void *
po_arena_grow(po_arena *arena, void *items, uint32_t *capacity, uint32_t need, size_t item_size);

#define PO_NEW(arena, type)      ((type *)po_arena_calloc((arena), 1, sizeof(type)))
#define PO_NEW_N(arena, type, n) ((type *)po_arena_calloc((arena), (size_t)(n), sizeof(type)))

/* Appends to an array kept as (items, n, cap). */
#define PO_PUSH(arena, items, n, cap, item)                                                        \
    do {                                                                                           \
        if ((n) == (cap))                                                                          \
            (items) = po_arena_grow((arena), (items), &(cap), (n) + 1, sizeof *(items));           \
        (items)[(n)++] = (item);                                                                   \
    } while (0)

#endif

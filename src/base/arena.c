/* Memory in blocks that is freed as a whole, and with the call that made it. */
#include "base/arena.h"

#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

enum { FIRST_BLOCK = 512, LARGEST_BLOCK = 1 << 20 };

typedef struct block {
    struct block *next;
    size_t used, size;
    max_align_t data[];
} block;

typedef struct held {
    struct held *next;
    po_arena *arena;
} held;

typedef struct deferred {
    struct deferred *next;
    void (*fn)(void *);
    void *user;
} deferred;

struct po_arena {
    po_ctx *ctx;
    po_arena **list;         /* that it is in: its context's or its owner's; NULL: none */
    po_arena *older, *newer; /* there */
    po_arena *owned;
    uint64_t serial;
    atomic_uint refs; /* whoever made it, and those that hold it */
    held *held;
    block *blocks;
    block *loose; /* one allocation each */
    block *spare; /* what a reset took back */
    deferred *deferred;
    size_t next_size;
};

void po_arena_exhausted(po_arena *arena) {
    po_ctx *ctx = arena->ctx;
    if (!ctx || !ctx->guard) {
        /* No API call is under way: only a test or a bug gets here. */
        fputs("petopt: memory ran out outside of a guarded call\n", stderr);
        abort();
    }
    longjmp(ctx->guard->env, 1);
}

/* An arena of those that wait for tasks, used by one of these: two threads would be at its lists,
 * and a heap that breaks once in a hundred runs is found by nobody. */
static void refuse_lent(const po_ctx *ctx) {
    if (!ctx->lent)
        return;
    fputs("petopt: a task uses an arena that is not its own\n", stderr);
    abort();
}

/* One that was kept may outlive its context. */
static void refuse_foreign(const po_arena *arena) {
    if (arena->serial != 0)
        refuse_lent(arena->ctx);
}

static void enter(po_arena *arena, po_arena **list) {
    arena->list = list;
    arena->older = *list;
    if (*list)
        (*list)->newer = arena;
    *list = arena;
}

static void leave(po_arena *arena) {
    arena->serial = 0;
    if (!arena->list)
        return;
    if (arena->newer)
        arena->newer->older = arena->older;
    else
        *arena->list = arena->older;
    if (arena->older)
        arena->older->newer = arena->newer;
    arena->older = arena->newer = NULL;
    arena->list = NULL;
}

void po_arena_keep(po_arena *arena) {
    if (arena->serial != 0)
        leave(arena);
}

void po_arena_own(po_arena *arena, po_arena *other) {
    refuse_foreign(arena);
    leave(other);
    enter(other, &arena->owned);
}

void po_arena_bind(po_arena *arena, po_ctx *ctx) {
    po_arena_keep(arena);
    arena->ctx = ctx; /* serial stays 0: a guard of this call does not free a kept arena */
}

po_arena *po_arena_create(po_ctx *ctx) {
    po_arena *arena = calloc(1, sizeof *arena);
    if (!arena) {
        po_arena lost = {.ctx = ctx};
        po_arena_exhausted(&lost);
    }
    arena->next_size = FIRST_BLOCK;
    atomic_init(&arena->refs, 1);
    refuse_lent(ctx);
    arena->ctx = ctx;
    arena->serial = ctx->next_arena++;
    enter(arena, &ctx->arenas);
    return arena;
}

po_arena *po_arena_child(po_arena *arena) {
    return po_arena_create(arena->ctx);
}

po_ctx *po_arena_ctx(const po_arena *arena) {
    return arena->ctx;
}

static void free_owned(po_arena *arena) {
    while (arena->owned)
        po_arena_free(arena->owned);
}

void po_arena_hold(po_arena *arena, po_arena *other) {
    for (const held *h = arena->held; h; h = h->next)
        if (h->arena == other)
            return;
    held *h = po_arena_alloc(arena, sizeof *h);
    *h = (held){arena->held, other};
    arena->held = h;
    atomic_fetch_add(&other->refs, 1);
}

static void release(po_arena *arena);

static void release_held(po_arena *arena) {
    while (arena->held) {
        po_arena *other = arena->held->arena;
        arena->held = arena->held->next;
        release(other);
    }
}

static void run_deferred(po_arena *arena) {
    while (arena->deferred) {
        deferred *d = arena->deferred;
        arena->deferred = d->next;
        d->fn(d->user);
    }
}

static void free_blocks(block *b) {
    while (b) {
        block *next = b->next;
        free(b);
        b = next;
    }
}

static void release(po_arena *arena) {
    if (atomic_fetch_sub(&arena->refs, 1) > 1)
        return;
    run_deferred(arena);
    free_owned(arena);
    release_held(arena);
    free_blocks(arena->blocks);
    free_blocks(arena->loose);
    free_blocks(arena->spare);
    free(arena);
}

void po_arena_free(po_arena *arena) {
    if (!arena)
        return;
    refuse_foreign(arena);
    leave(arena);
    release(arena);
}

static void take_back(po_arena *arena, block **list) {
    while (*list) {
        block *b = *list;
        *list = b->next;
        b->next = arena->spare;
        arena->spare = b;
    }
}

void po_arena_reset(po_arena *arena) {
    refuse_foreign(arena);
    run_deferred(arena);
    free_owned(arena);
    release_held(arena);
    take_back(arena, &arena->blocks);
    take_back(arena, &arena->loose);
}

void po_arenas_free_since(po_ctx *ctx, uint64_t mark) {
    for (po_arena *a = ctx->arenas; a;) {
        po_arena *older = a->older;
        if (a->serial >= mark)
            po_arena_free(a);
        a = older;
    }
}

/* The smallest spare block that the size fits in, taken off the list; NULL. */
static block *take_spare(po_arena *arena, size_t size) {
    block **best = NULL;
    for (block **at = &arena->spare; *at; at = &(*at)->next)
        if ((*at)->size >= size && (!best || (*at)->size < (*best)->size))
            best = at;
    block *b = best ? *best : NULL;
    if (b)
        *best = b->next;
    return b;
}

/* A block for one allocation. */
static block *own_block(po_arena *arena, size_t size, bool zeroed) {
    size_t bytes = sizeof(block) + size;
    block *fresh = take_spare(arena, size);
    if (fresh) {
        fresh->used = fresh->size;
        if (zeroed)
            memset(fresh->data, 0, size);
    } else {
        fresh = zeroed ? calloc(1, bytes) : malloc(bytes);
        if (!fresh)
            po_arena_exhausted(arena);
        fresh->used = fresh->size = size;
    }
    return fresh;
}

/* Behind the current block, which stays in use. */
static void *alloc_large(po_arena *arena, size_t size, bool zeroed) {
    block *fresh = own_block(arena, size, zeroed);
    block *b = arena->blocks;
    fresh->next = b ? b->next : NULL;
    if (b)
        b->next = fresh;
    else
        arena->blocks = fresh;
    return fresh->data;
}

static void *alloc(po_arena *arena, size_t size, bool zeroed) {
    const size_t align = _Alignof(max_align_t);
    refuse_foreign(arena);
    if (size > SIZE_MAX / 2)
        po_arena_exhausted(arena);
    size = size ? (size + align - 1) / align * align : align;
    block *b = arena->blocks;
    if (!b || b->size - b->used < size) {
        if (size > arena->next_size / 2)
            return alloc_large(arena, size,
                               zeroed); /* fresh pages are zero without a second look */
        block *fresh = take_spare(arena, size);
        if (!fresh) {
            fresh = malloc(sizeof *fresh + arena->next_size);
            if (!fresh)
                po_arena_exhausted(arena);
            fresh->size = arena->next_size;
            if (arena->next_size < LARGEST_BLOCK)
                arena->next_size *= 2;
        }
        fresh->used = 0;
        fresh->next = b;
        arena->blocks = fresh;
        b = fresh;
    }
    void *p = (char *)b->data + b->used;
    b->used += size;
    return zeroed ? memset(p, 0, size) : p;
}

void *po_arena_alloc(po_arena *arena, size_t size) {
    return alloc(arena, size, false);
}

void *po_arena_calloc(po_arena *arena, size_t count, size_t size) {
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes))
        po_arena_exhausted(arena);
    return alloc(arena, bytes, true);
}

void *po_arena_loose(po_arena *arena, size_t size) {
    refuse_foreign(arena);
    if (size > SIZE_MAX / 2)
        po_arena_exhausted(arena);
    block *fresh = own_block(arena, size, true);
    fresh->next = arena->loose;
    arena->loose = fresh;
    return fresh->data;
}

void po_arena_visit_loose(const po_arena *arena,
                          void (*fn)(void *user, const void *data, size_t size), void *user) {
    for (const block *b = arena->loose; b; b = b->next)
        fn(user, b->data, b->size);
}

void po_arena_drop_loose(po_arena *arena) {
    free_blocks(arena->loose);
    arena->loose = NULL;
}

void *po_arena_memdup(po_arena *arena, const void *data, size_t size) {
    void *copy = po_arena_alloc(arena, size);
    return size ? memcpy(copy, data, size) : copy;
}

char *po_arena_strdup(po_arena *arena, const char *text) {
    return po_arena_memdup(arena, text, strlen(text) + 1);
}

char *po_arena_printf(po_arena *arena, const char *format, ...) {
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    int n = vsnprintf(NULL, 0, format, args);
    va_end(args);
    char *text = po_arena_alloc(arena, (size_t)(n < 0 ? 0 : n) + 1);
    text[0] = '\0';
    if (n >= 0)
        vsnprintf(text, (size_t)n + 1, format, again);
    va_end(again);
    return text;
}

void po_arena_defer(po_arena *arena, void (*fn)(void *), void *user) {
    deferred *d = po_arena_alloc(arena, sizeof *d);
    d->fn = fn;
    d->user = user;
    d->next = arena->deferred;
    arena->deferred = d;
}

void *po_arena_grow(po_arena *arena, void *items, uint32_t *capacity, uint32_t need,
                    size_t item_size) {
    if (items && need <= *capacity)
        return items;
    uint32_t cap = *capacity < 4 ? 4 : *capacity;
    while (cap < need) {
        if (cap > UINT32_MAX / 2)
            po_arena_exhausted(arena);
        cap *= 2;
    }
    size_t bytes;
    if (__builtin_mul_overflow((size_t)cap, item_size, &bytes))
        po_arena_exhausted(arena);
    void *grown = po_arena_alloc(arena, bytes);
    if (items)
        memcpy(grown, items, (size_t)*capacity * item_size);
    *capacity = cap;
    return grown;
}

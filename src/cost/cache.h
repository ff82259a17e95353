/* The cost cache: measurements by key in an SQLite file that several processes may share.
 *
 * Every row carries a checksum over kind, key and value; a row that does not add up counts as not
 * there. A file that SQLite finds damaged is made anew. Nothing here fails a run: a cache that
 * cannot be used is a cache that never has the answer. */
#ifndef PO_COST_CACHE_H
#define PO_COST_CACHE_H

#include "base/hash.h"
#include "base/str.h"

typedef struct po_cache po_cache;

/* path NULL: ~/.cache/petopt/cost.db of the user who runs this (from the user database). A default
 * place that cannot be used gives a cache that is always empty, with a log line. PO_BAD_USE: the
 * file named is there and is not a cost cache, or others may write it, so it is not touched; PO_IO:
 * it cannot be made. The arena closes it. */
po_status po_cache_open(po_ctx *ctx, po_arena *arena, const char *path, po_cache **cache);
/* A file that is there already, to be read alone: nothing changes in it. PO_IO where it is not
 * there, PO_BAD_USE where it is no cost cache of this layout. */
po_status po_cache_open_read(po_ctx *ctx, po_arena *arena, const char *path, po_cache **cache);
/* Why the file cannot be believed, as half a sentence ("it belongs to ..."); NULL: it can. */
const char *po_cache_distrust(po_arena *arena, const char *path);
/* Why the default cache is not used for want of trust: a sentence; NULL: it is used, or could not
 * be opened at all. */
const char *po_cache_refused(const po_cache *cache);
/* How large the file may become, PO_CACHE_BYTES where nothing is said: then the rows that were not
 * used for the longest time go, a quarter of the whole at a time. */
#define PO_CACHE_BYTES ((uint64_t)512 << 20)
void po_cache_limit(po_cache *cache, uint64_t bytes);
/* A cache that keeps nothing. */
po_cache *po_cache_none(po_arena *arena);

/* False where there is no such row. The value is copied into the arena. */
bool po_cache_get(po_cache *cache, po_arena *arena, const char *kind, po_hash key, po_bytes *value);
/* For values of a fixed size: another size counts as not there. */
bool po_cache_get_fixed(po_cache *cache, const char *kind, po_hash key, void *value, size_t size);
/* Adds or replaces; true where it was kept. */
bool po_cache_put(po_cache *cache, const char *kind, po_hash key, const void *value, size_t size);

/* The file's path, or NULL where nothing is kept. */
const char *po_cache_path(const po_cache *cache);

#endif

/* 128-bit hashes (XXH3) and a string map. Hashes decide identity only where a full comparison
 * follows, or as cache keys. */
#ifndef PO_BASE_HASH_H
#define PO_BASE_HASH_H

#include "base/arena.h"

typedef struct po_hash {
    uint64_t lo, hi;
} po_hash;

po_hash po_hash_bytes(const void *data, size_t size, po_hash seed);
/* Mixes one number into a hash; the order of calls matters. */
po_hash po_hash_u64(po_hash hash, uint64_t value);
po_hash po_hash_str(po_hash hash, const char *text); /* NULL hashes unlike "" */
static inline bool po_hash_equal(po_hash a, po_hash b) {
    return a.lo == b.lo && a.hi == b.hi;
}

/* Counter-based random numbers: the same (seed, stream, index) gives the same number on every
 * machine, nothing is stored. */
uint64_t po_random_u64(uint64_t seed, uint64_t stream, uint64_t index);
/* Uniform in [0, 1), 53 bits. */
double po_random_unit(uint64_t seed, uint64_t stream, uint64_t index);
/* Standard normal by Box-Muller. */
double po_random_normal(uint64_t seed, uint64_t stream, uint64_t index);

#define PO_NONE UINT32_MAX

/* A map from strings to 32-bit numbers. Keys are not copied: they must live as long as the map. */
typedef struct po_map po_map;
po_map *po_map_create(po_arena *arena);
/* Returns the value, or PO_NONE. */
uint32_t po_map_get(const po_map *map, const char *key);
/* Adds or replaces. Returns the previous value, or PO_NONE. */
uint32_t po_map_put(po_map *map, const char *key, uint32_t value);
uint32_t po_map_count(const po_map *map);

/* The same for 128-bit keys. */
typedef struct po_hash_map po_hash_map;
po_hash_map *po_hash_map_create(po_arena *arena);
uint32_t po_hash_map_get(const po_hash_map *map, po_hash key);
uint32_t po_hash_map_put(po_hash_map *map, po_hash key, uint32_t value);

#endif

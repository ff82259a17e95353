/* XXH3 by xxhash, random numbers by place from SplitMix64's mixing function, and two maps by open
 * addressing. */
#include "base/hash.h"

#include <math.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

po_hash po_hash_bytes(const void *data, size_t size, po_hash seed) {
    XXH128_hash_t h = XXH3_128bits_withSeed(data, size, seed.lo ^ (seed.hi << 1 | seed.hi >> 63));
    return (po_hash){h.low64, h.high64};
}

po_hash po_hash_u64(po_hash hash, uint64_t value) {
    uint64_t words[3] = {hash.lo, hash.hi, value};
    return po_hash_bytes(words, sizeof words, (po_hash){0x9e3779b97f4a7c15u, 0});
}

po_hash po_hash_str(po_hash hash, const char *text) {
    if (!text)
        return po_hash_u64(hash, 0x6e756c6cu);
    size_t n = strlen(text);
    return po_hash_bytes(text, n, po_hash_u64(hash, n));
}

static uint64_t mix(uint64_t x) {
    x ^= x >> 30;
    x *= 0xbf58476d1ce4e5b9u;
    x ^= x >> 27;
    x *= 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

uint64_t po_random_u64(uint64_t seed, uint64_t stream, uint64_t index) {
    uint64_t x = mix(seed + 0x9e3779b97f4a7c15u);
    x = mix(x ^ (stream + 0xd1b54a32d192ed03u));
    return mix(x + index * 0x9e3779b97f4a7c15u);
}

double po_random_unit(uint64_t seed, uint64_t stream, uint64_t index) {
    return (double)(po_random_u64(seed, stream, index) >> 11) * 0x1p-53;
}

double po_random_normal(uint64_t seed, uint64_t stream, uint64_t index) {
    double u = 1.0 - po_random_unit(seed, stream, 2 * index);
    double v = po_random_unit(seed, stream, 2 * index + 1);
    return sqrt(-2.0 * log(u)) * cos(6.283185307179586 * v);
}

/* Both maps probe linearly over a power of two of slots and grow at half full. */
typedef struct slot {
    po_hash hash;
    const char *key; /* strings only */
    uint32_t value;
    bool used;
} slot;

typedef struct table {
    po_arena *arena;
    slot *slots;
    uint32_t count, capacity;
} table;

struct po_map {
    table t;
};

struct po_hash_map {
    table t;
};

static slot *find(const table *t, po_hash hash, const char *key) {
    uint32_t mask = t->capacity - 1;
    for (uint32_t i = (uint32_t)hash.lo & mask;; i = (i + 1) & mask) {
        slot *s = &t->slots[i];
        if (!s->used)
            return s;
        if (po_hash_equal(s->hash, hash) && (!key || strcmp(s->key, key) == 0))
            return s;
    }
}

static uint32_t put(table *t, po_hash hash, const char *key, uint32_t value) {
    if (t->count * 2 >= t->capacity) {
        table bigger = {t->arena, NULL, t->count, t->capacity * 2};
        bigger.slots = PO_NEW_N(t->arena, slot, bigger.capacity);
        for (uint32_t i = 0; i < t->capacity; i++)
            if (t->slots[i].used)
                *find(&bigger, t->slots[i].hash, t->slots[i].key) = t->slots[i];
        *t = bigger;
    }
    slot *s = find(t, hash, key);
    uint32_t previous = s->used ? s->value : PO_NONE;
    if (!s->used) {
        t->count++;
        *s = (slot){hash, key, value, true};
    }
    s->value = value;
    return previous;
}

static void table_init(table *t, po_arena *arena) {
    t->arena = arena;
    t->capacity = 16;
    t->slots = PO_NEW_N(arena, slot, t->capacity);
}

static po_hash key_hash(const char *key) {
    return po_hash_bytes(key, strlen(key), (po_hash){0, 0});
}

po_map *po_map_create(po_arena *arena) {
    po_map *map = PO_NEW(arena, po_map);
    table_init(&map->t, arena);
    return map;
}

uint32_t po_map_get(const po_map *map, const char *key) {
    const slot *s = find(&map->t, key_hash(key), key);
    return s->used ? s->value : PO_NONE;
}

uint32_t po_map_put(po_map *map, const char *key, uint32_t value) {
    return put(&map->t, key_hash(key), key, value);
}

uint32_t po_map_count(const po_map *map) {
    return map->t.count;
}

po_hash_map *po_hash_map_create(po_arena *arena) {
    po_hash_map *map = PO_NEW(arena, po_hash_map);
    table_init(&map->t, arena);
    return map;
}

uint32_t po_hash_map_get(const po_hash_map *map, po_hash key) {
    const slot *s = find(&map->t, key, NULL);
    return s->used ? s->value : PO_NONE;
}

uint32_t po_hash_map_put(po_hash_map *map, po_hash key, uint32_t value) {
    return put(&map->t, key, NULL, value);
}

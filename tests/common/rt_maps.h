/* Index maps written out, and random chains of R/T steps with theirs, made without R/T's
 * arithmetic. */
#ifndef TEST_RT_MAPS_H
#define TEST_RT_MAPS_H

#include "ops/move/rt.h"

/* Where each output element comes from; -1: a zero. */
typedef struct rt_map {
    uint32_t in_rank, out_rank;
    int64_t in_dims[PO_RT_MAX_RANK], out_dims[PO_RT_MAX_RANK];
    int64_t n_in, n_out, *from;
} rt_map;

/* Every iteration of a form, one after another; that writes nothing twice. */
rt_map *rt_map_of(po_arena *arena, const po_rt *rt);
rt_map *rt_then(po_arena *arena, const rt_map *a, const rt_map *b);
bool rt_same_map(const rt_map *a, const rt_map *b);
/* Whether all it gives are zeros. */
bool rt_empty(const rt_map *m);
const char *rt_text(po_arena *arena, const po_rt *rt, bool extents);

/* --- random steps --- */

typedef struct rt_maker {
    uint64_t seed, next;
} rt_maker;

/* Both among what is drawn. */
int64_t rt_draw(rt_maker *m, int64_t from, int64_t to);

enum { RT_CHAIN = 6 };
typedef struct rt_chain {
    uint32_t n;
    const po_rt *step[RT_CHAIN];
    rt_map *made[RT_CHAIN];
} rt_chain;

/* At most so many steps, each compared with its map. */
rt_chain rt_random_chain(rt_maker *m, po_arena *arena, uint32_t most);

#endif

/* Bugs that are planted into graphs. */
#ifndef TEST_DAMAGE_H
#define TEST_DAMAGE_H

#include "ops/op.h"

typedef struct test_damage {
    const char *name;
    /* Changes the graph at its `nth` fitting place; false where there is none. */
    bool (*plant)(po_graph *graph, uint32_t nth);
} test_damage;

extern const test_damage test_damages[];
extern const uint32_t test_n_damages;

/* A damaged copy, its types inferred; NULL where the damage does not fit or changes the types of
 * the outputs. */
po_graph *test_damaged(po_ctx *ctx, const po_graph *graph, const test_damage *damage, uint32_t nth);

#endif

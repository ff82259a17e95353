/* Regions: the parts of a model that are worth a kernel of their own. */
#ifndef PO_SUPEROPT_REGIONS_H
#define PO_SUPEROPT_REGIONS_H

#include "ir/function.h"

typedef struct po_region {
    const po_node_id *nodes; /* in execution order */
    uint32_t n_nodes;
    const po_value_id *in; /* what comes from outside and is no constant, by first use */
    uint32_t n_in;
    const po_value_id *out; /* made inside and seen outside, in execution order */
    uint32_t n_out;
} po_region;

typedef struct po_regions {
    const po_region *regions; /* by first node */
    uint32_t n;
    uint32_t n_nodes; /* in all */
} po_regions;

/* What a node is to a region. */
typedef enum po_region_part {
    PO_REGION_NOT,  /* stays outside */
    PO_REGION_MOVE, /* may be in one, and is no reason for one */
    PO_REGION_MAP,  /* two of them are worth a region */
    PO_REGION_CORE  /* worth a region by itself */
} po_region_part;
typedef po_region_part (*po_region_fn)(void *user, const po_graph *graph, const po_node *node);

/* Connected sets of nodes as large as can be such that no path leaves one and comes back, and
 * that all of them together can become one node each: with every way from inside to outside a
 * count goes up, and only nodes of one count are joined. */
po_status po_regions_find(po_ctx *ctx, po_arena *arena, const po_graph *graph, po_region_fn part,
                          void *user, po_regions *regions);
/* These nodes, in execution order, as one region. */
po_region po_region_of(po_arena *arena, const po_graph *graph, const po_node_id *nodes, uint32_t n);
/* The region as the body of a function that a kernel may stand for, its inputs as they are. */
po_outline po_region_outline(const char *name, const po_region *region);
/* Looks over regions without using how they were made: nodes in one region only and alive, borders
 * complete, and no cycle once each region is one node. PO_INTERNAL with what is wrong. */
po_status po_regions_check(po_ctx *ctx, const po_graph *graph, const po_regions *regions);

#endif

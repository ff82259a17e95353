/* Shared by samples.c and apart.c. */
#ifndef PO_OPS_SAMPLES_INTERNAL_H
#define PO_OPS_SAMPLES_INTERNAL_H

#include "ops/samples.h"

typedef struct po_following {
    po_ctx *ctx;
    po_arena *scratch;
    const po_graph *graph;
    po_graph *open; /* the same, to be opened; NULL: it is only followed */
    int64_t samples;
    int8_t *axis;            /* by value */
    struct po_apart *strict; /* apart.c; NULL: operators without a sum at their shapes' word */
    po_arena *parts;         /* of `why`: nodes that mix samples are marked, and the walk goes on;
                                NULL: it ends there */
    const char *why;         /* what the first of them does; NULL: there is none */
} po_following;

/* Walks over the nodes in order. */
po_status po_samples_walk(po_following *f);
/* PO_UNSUPPORTED, naming the node. */
po_status po_samples_mixed(const po_following *f, const po_node *node, const char *why);
/* The axis of a reshaped value that counts the samples that `own` counted; PO_NO_SAMPLES: none. */
int po_samples_reshaped(const po_following *f, const po_dim *from, uint32_t own, const po_dim *to,
                        uint32_t rank);
/* Infers anew with so many samples, or as open as `like` is where `samples` < 0. */
po_status po_samples_infer(po_ctx *ctx, po_graph *graph, const po_graph *like, int64_t samples);
/* What nodes make is as long with `others` as it is with `samples`, but along its axis. */
po_status po_samples_scale(po_ctx *ctx, const po_graph *made, int64_t samples, const po_graph *more,
                           int64_t others, const int8_t *axis);

/* --- apart.c --- */

/* Numbers that are computed from lengths, and what is built by them. *done: nothing is left to ask
 * of the node. */
po_status po_apart_node(const po_following *f, const po_node *node, bool *done);
/* Whether an operator without a sum takes each sample by itself. */
bool po_apart_by_itself(const po_following *f, const po_node *node);

#endif

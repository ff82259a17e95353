/* Kernels of forms that hold for one sample alone. A kernel is of one sample where the batch is
 * open, and so may be what it is made of: gates go into weights, which samples otherwise share. No
 * standard operators say that of any number of samples, so that what is delivered around the call,
 * and in its function, is another form of the same model. Where a region of the one lies in the
 * other is known by the names of its borders, and that they are the same values is proved. */
#ifndef PO_PIPELINE_ONE_SAMPLE_H
#define PO_PIPELINE_ONE_SAMPLE_H

#include "pipeline/run.h"
#include "superopt/regions.h"

/* What is delivered: its batch is open. */
typedef struct po_delivered {
    const po_graph *graph;
    const int8_t *axis;    /* by value (ops/samples.h) */
    const po_graph *named; /* the same with one sample; lengths that are open are names */
    bool conditions;       /* some of its lengths are the same where it runs at all */
} po_delivered;

/* A graph of the model with inputs as long as those of `like` that are called the same; the
 * caller's. periods: open lengths are so many times as long. */
po_graph *po_one_sample(po_ctx *ctx, const po_graph *graph, const po_graph *like, int64_t periods);

/* The axes of a form's values: those of what is delivered under the same name; PO_NOT_DELIVERED
 * (open_regions.h) where nothing is. */
const int8_t *po_one_sample_axes(po_arena *arena, const po_graph *form,
                                 const po_delivered *delivered);

/* The form's regions in what is delivered: their borders by name, and what lies between them.
 * PO_UNSUPPORTED where they are no regions there. */
po_status po_one_sample_regions(po_ctx *ctx, po_arena *arena, const po_graph *form,
                                const po_regions *regions, const po_delivered *delivered,
                                po_regions *there);

/* Proves that the original computes what `delivered` does with the form's regions in their places,
 * where inputs are as long as those of `like`. PO_UNSUPPORTED where that is not proved. */
po_status po_one_sample_prove(const po_run *run, const po_graph *original, const po_graph *form,
                              const po_regions *regions, const po_graph *delivered,
                              const po_regions *there, const po_graph *like);

/* A constant of the form in a graph that is delivered: the same one, or added with its recipe. */
po_value_id po_one_sample_weight(po_graph *graph, const po_graph *form, po_value_id weight);

#endif

/* Kernels of models of which more is open than the batch: they are made at one size, at which every
 * length has a number of its own, and opened by these numbers (mugraph/open.h). */
#ifndef PO_PIPELINE_OPEN_SIZES_H
#define PO_PIPELINE_OPEN_SIZES_H

#include "pipeline/kernels/open_lengths.h"
#include "pipeline/run.h"
#include "superopt/plan/plan.h"

/* Of the heights and widths that detectors take. */
enum { PO_OPEN_PERIOD = 32 };

/* A model with open lengths; all graphs have its nodes and values by their numbers. */
typedef struct po_open_sizes {
    const po_graph *named; /* one sample; dims over the names */
    const po_graph *here;  /* the same at the size at hand */
    const int8_t *axis;    /* by value: of its samples (ops/samples.h); NULL: no batch is open */
    po_plan_sizes plan;    /* the names, and sizes of which the model takes all */
    double meant; /* how many times as much as at hand there is at the size it is meant for */
    const po_size_pair *equal; /* lengths that are the same wherever the model runs */
    uint32_t n_equal;
    const po_open_samples *samples;
    uint32_t n_larger;       /* so many of the plan's other sizes, the first, are larger */
    const po_graph **larger; /* at those; NULL: not made */
} po_open_sizes;

/* Lengths that a model takes, its forms too. */
po_status po_open_samples_find(const po_run *run, po_arena *arena, const po_graph *graph,
                               po_open_samples *samples);

/* PO_UNSUPPORTED, with a sentence, where it cannot be worked so. The samples must outlive it. */
po_status po_open_sizes_find(const po_run *run, po_arena *arena, const po_graph *graph,
                             const po_open_samples *samples, po_open_sizes *sizes);
/* The same with the number of samples as one of the lengths. samples NULL: no other is open. */
po_status po_open_sizes_of_batch(const po_run *run, po_arena *arena, const po_graph *graph,
                                 const po_open_samples *samples, po_open_sizes *sizes);
/* Its graphs go before the run's end, and with them what is told of it. */
void po_open_sizes_free(po_open_sizes *sizes);

/* The named graph at one of the plan's other sizes; the caller's. */
po_graph *po_open_sizes_at(const po_run *run, const po_open_sizes *sizes, uint32_t other);

/* The graphs at larger sizes, which regions are compared with; they go with _free, or sooner. */
po_status po_open_sizes_larger(const po_run *run, po_open_sizes *sizes);
void po_open_sizes_larger_free(po_open_sizes *sizes);

/* A region's muGraph for all sizes, and what its kernel is given; `ports` are those of the size at
 * hand. `naive`: what the region was lowered to, or NULL where that was looked at before.
 * PO_UNSUPPORTED where it cannot be, is no program at another size, or its lowering at a larger one
 * is another than what `naive` becomes there (smaller maps are narrower than windows). */
po_status po_open_sizes_region(const po_run *run, po_arena *arena, const po_open_sizes *sizes,
                               const po_region *region, po_mu *mu, const po_mu *naive,
                               const po_mu_open **open, po_kernel_ports *ports);

/* Whether lengths of a port are open, but for samples that are called one by one; its elements, of
 * one of those. */
bool po_open_port_is(const po_kernel_port *port);
po_dim po_open_port_elements(po_arena *arena, const po_kernel_port *port);

/* open_fit.c: as po_open_regions, without nodes that make, or take, what has no form for all sizes;
 * sizes NULL: there are none. */
po_status po_open_regions_that_fit(const po_run *run, po_arena *arena, const po_graph *graph,
                                   const int8_t *axis, const po_open_sizes *sizes,
                                   po_regions *regions);

/* others.c: the region's programs for small and for wide sizes, and for which they run. Those that
 * would never run leave the plan. */
po_status po_kernel_others_of(const po_run *run, po_arena *arena, const po_open_sizes *sizes,
                              po_plan *plan, const po_mu_open *program,
                              const po_kernel_ports *ports, po_kernel_others *others);

#endif

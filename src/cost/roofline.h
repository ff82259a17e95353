/* Costs without a runtime: what this machine can do at most, and what each operator asks of it.
 * Good for ranking programs, no measurement: nothing is claimed faster by it. */
#ifndef PO_COST_ROOFLINE_H
#define PO_COST_ROOFLINE_H

#include "cost/cost.h"
#include "cost/cuda/gpu.h"
#include "ir/graph.h"

typedef struct po_rates po_rates;
struct po_rates {
    double flops; /* float multiply-adds count 2; a second, one core */
    double bytes; /* read from memory a second, one core */
    /* NULL: a CPU, by the rates above. Else they say nothing, threads neither: each node is a
     * kernel of that GPU, products by cuBLAS and cuDNN. */
    const po_gpu *gpu;
    bool tf32; /* of f32 products on a GPU */
};

/* Measures for about 0.1 s; kept in the cache. */
void po_rates_of_machine(po_cost *cost, po_rates *rates);

typedef struct po_estimate {
    double seconds, flops, bytes;
    uint32_t known, unknown; /* nodes with and without work */
} po_estimate;

/* Sums over a graph; the bodies of If, Loop and Scan count once. */
void po_roofline_graph(const po_graph *graph, const po_rates *rates, uint32_t threads,
                       po_estimate *estimate);
/* Adds one node to an estimate that was started with zeros. */
void po_roofline_add(const po_graph *graph, const po_node *node, const po_rates *rates,
                     uint32_t threads, po_estimate *estimate);

/* Seconds to move that many bytes. */
double po_roofline_bytes(const po_rates *rates, uint32_t threads, double bytes);

#endif

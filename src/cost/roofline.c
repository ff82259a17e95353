/* What each node asks by its indexed sum and its static shapes, and its seconds: the longer of
 * computing and moving data, and the call. */
#include "cost/roofline.h"

#include "ops/conv_view.h"
#include "ops/work.h"

#include <math.h>

static const double node_seconds = 1.5e-6; /* what calling an operator costs */
static const double transcendental = 15;
/* A second core brings this much of the memory rate of the first. */
static const double second_core_bytes = 0.5;

/* What one call of a node costs at least. */
typedef struct node_cost {
    double flops; /* 2 for each multiply-add; transcendental functions count 15 */
    double bytes; /* operands and results once; what is a view only, 0 */
    double part;  /* of the peak that the runtime reaches with such an operator, (0, 1] */
    bool fused;   /* an activation that the runtime runs inside the operator before it */
    /* Of a product, for a GPU: rows and columns of the result, how many such there are, and what
     * each element adds up; rows 0: none. */
    double rows, columns, times, depth;
} node_cost;

static const po_type *type_of(const po_graph *g, po_value_id id) {
    return id == PO_NONE ? NULL : &g->values[id].type;
}

static double count_of(const po_type *type) {
    if (!type || type->kind != PO_TYPE_TENSOR)
        return -1;
    int64_t n = po_type_count(type);
    return n < 0 ? -1 : (double)n;
}

static double bytes_of(const po_type *type) {
    double n = count_of(type);
    return n < 0 ? -1 : n * po_dtype_bits(type->dtype) / 8;
}

static double dim_of(const po_type *type, uint32_t axis) {
    return type && type->has_rank && axis < type->rank ? (double)type->dims[axis].value : -1;
}

/* --- products --- */

/* The part of its peak that ONNX Runtime reaches with a product, as measured: it has kernels of
 * their own for convolutions, and they want channels to fill their vectors with. */
static double part_of(const po_graph *g, const po_node *node) {
    const po_type *w = node->n_in > 1 ? type_of(g, node->in[1]) : NULL;
    if (po_conv_is_transposed(node))
        return 0.5;
    if (!po_conv_is(node) || !w)
        return 0.8;
    double channels = dim_of(w, 1);
    return w->rank == 5                        ? 0.4
           : channels >= 8                     ? 0.85
           : po_node_int(node, "group", 1) > 1 ? 0.12
           : channels >= 3                     ? 0.5
                                               : 0.3;
}

static void add_up(const po_graph *g, const po_node *node, const po_work *work, node_cost *cost) {
    cost->flops = work->flops;
    if (!po_op_has(node->op, PO_OPF_PRODUCTS))
        return;
    cost->part = part_of(g, node);
    if (!work->product)
        return;
    cost->rows = work->shape.rows;
    cost->columns = work->shape.columns;
    cost->times = work->shape.times;
    cost->depth = work->shape.depth;
}

/* --- the others --- */

/* Operations an element; 0: it only moves. */
static double per_element(const po_node *node) {
    return po_op_has(node->op, PO_OPF_MOVES_DATA) ? 0
           : po_op_has(node->op, PO_OPF_COSTLY)   ? transcendental
                                                  : 1;
}

/* Views, constants, and what reads nothing of its input but the dims. */
static bool makes_no_copy(const po_node *node) {
    return node->op == PO_OP_Constant || node->op == PO_OP_Shape ||
           po_op_has(node->op, PO_OPF_SHAPE_ONLY);
}

/* The runtime's own fusions: these behind a convolution or a Gemm, and nothing between. The list is
 * ONNX Runtime's, no property of the operators. */
static bool runs_inside(const po_graph *g, const po_node *node) {
    static const char *const inside[] = {"Relu",    "LeakyRelu", "Clip",
                                         "Sigmoid", "Tanh",      "HardSigmoid"};
    if (node->n_in == 0 || node->in[0] == PO_NONE)
        return false;
    const po_node *before = po_graph_producer(g, node->in[0]);
    if (!before || !po_graph_sole_use(g, node->in[0]) ||
        (!po_conv_is(before) && before->op != PO_OP_Gemm))
        return false;
    for (size_t i = 0; i < sizeof inside / sizeof inside[0]; i++)
        if (strcmp(node->op_type, inside[i]) == 0)
            return true;
    return false;
}

/* False where a shape is not known. Types must be inferred. */
static bool node_work(const po_graph *g, const po_node *node, node_cost *work) {
    *work = (node_cost){.part = 1, .fused = runs_inside(g, node)};
    if (makes_no_copy(node) || work->fused)
        return true;
    for (uint32_t i = 0; i < node->n_in; i++) {
        double bytes = node->in[i] == PO_NONE ? 0 : bytes_of(type_of(g, node->in[i]));
        if (bytes < 0)
            return false;
        work->bytes += bytes;
    }
    double out = 0;
    for (uint32_t i = 0; i < node->n_out; i++) {
        double bytes = node->out[i] == PO_NONE ? 0 : bytes_of(type_of(g, node->out[i]));
        if (bytes < 0)
            return false;
        work->bytes += bytes;
        if (i == 0 && node->out[0] != PO_NONE)
            out = count_of(type_of(g, node->out[0]));
    }
    po_work sum;
    if (po_work_of(g, node, &sum))
        add_up(g, node, &sum, work);
    else
        work->flops = per_element(node) * out;
    return true;
}

/* --- GPUs --- */

/* Blocks that the libraries' kernels make of a product: tiles of the result, and parts of long
 * sums, so that few tiles still keep the multiprocessors busy. cuDNN's f32 convolutions have no
 * such parts (docs/cuda-cost.md). */
static double blocks_of(const node_cost *work, bool whole_sums) {
    enum { TILE = 64, PART = 256 };
    return ceil(work->rows / TILE) * ceil(work->columns / TILE) * work->times *
           (whole_sums ? 1 : fmax(1, floor(work->depth / PART)));
}

/* The part of a tile's columns and sums that a product fills: tensor cores and warps work 16 by 8
 * at a time however narrow it is. */
static double filled(const node_cost *work) {
    enum { LEAST_COLUMNS = 16, LEAST_DEPTH = 16 };
    return fmin(1, work->columns / LEAST_COLUMNS) * fmin(1, work->depth / LEAST_DEPTH);
}

/* What cuDNN's convolutions in plain f32 reach of what products reach: 20 to 29 of 67 Tflop/s with
 * all multiprocessors at work, Winograd's algorithm never seen (docs/cuda-cost.md). */
static const double f32_conv_reach = 0.56;

static double gpu_seconds(const po_graph *g, const po_node *node, const node_cost *work,
                          const po_rates *rates) {
    const po_type *type = node->n_in > 0 ? type_of(g, node->in[0]) : NULL;
    po_dtype dtype = type && type->kind == PO_TYPE_TENSOR ? type->dtype : PO_F32;
    po_gpu_work w = {.dram = work->bytes, .library = true};
    w.math = dtype == PO_F16    ? PO_GPU_F16
             : dtype == PO_BF16 ? PO_GPU_BF16
             : rates->tf32      ? PO_GPU_TF32
                                : PO_GPU_F32;
    bool slow = w.math == PO_GPU_F32 && po_conv_is(node);
    if (work->rows > 0) {
        w.flops = work->flops / filled(work) / (slow ? f32_conv_reach : 1);
        w.blocks = blocks_of(work, slow);
    } else {
        w.scalar = work->flops;
    }
    return po_gpu_seconds(rates->gpu, &w, false);
}

/* --- graphs --- */

static void add_node(const po_graph *g, const po_node *node, const po_rates *rates, double cores,
                     double lanes, po_estimate *e) {
    node_cost work;
    if (!node_work(g, node, &work)) {
        e->unknown++;
        return;
    }
    e->known++;
    e->flops += work.flops;
    e->bytes += work.bytes;
    if (rates->gpu && (work.bytes > 0 || work.flops > 0))
        e->seconds += gpu_seconds(g, node, &work, rates);
    else if (work.bytes > 0 || work.flops > 0)
        e->seconds += node_seconds + fmax(work.flops / (rates->flops * work.part * cores),
                                          work.bytes / (rates->bytes * lanes));
}

static void add_graph(const po_graph *g, const po_rates *rates, double cores, double lanes,
                      po_estimate *e) {
    for (po_node_id id = 0; id < g->n_nodes; id++) {
        const po_node *node = &g->nodes[id];
        if (node->removed)
            continue;
        for (uint32_t a = 0; a < node->n_attr; a++) {
            if (node->attr[a].kind == PO_ATTR_GRAPH)
                add_graph(node->attr[a].u.g, rates, cores, lanes, e);
            for (uint32_t k = 0; node->attr[a].kind == PO_ATTR_GRAPHS && k < node->attr[a].n; k++)
                add_graph(node->attr[a].u.graphs[k], rates, cores, lanes, e);
        }
        add_node(g, node, rates, cores, lanes, e);
    }
}

static double lanes_of(double cores) {
    return 1 + second_core_bytes * (cores - 1);
}

void po_roofline_add(const po_graph *graph, const po_node *node, const po_rates *rates,
                     uint32_t threads, po_estimate *estimate) {
    double cores = threads > 1 ? threads : 1;
    add_node(graph, node, rates, cores, lanes_of(cores), estimate);
}

void po_roofline_graph(const po_graph *graph, const po_rates *rates, uint32_t threads,
                       po_estimate *estimate) {
    *estimate = (po_estimate){0, 0, 0, 0, 0};
    double cores = threads > 1 ? threads : 1;
    add_graph(graph, rates, cores, lanes_of(cores), estimate);
}

double po_roofline_bytes(const po_rates *rates, uint32_t threads, double bytes) {
    if (rates->gpu)
        return po_gpu_seconds(rates->gpu, &(po_gpu_work){.dram = bytes}, true);
    return bytes / (rates->bytes * lanes_of(threads > 1 ? threads : 1));
}

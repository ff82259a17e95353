/* What each node asks by its static shapes, and its seconds: the longer of computing and moving
 * data, and the call. On a GPU cuDNN's Winograd is an alternative, so that writing it out is no
 * gain by itself. */
#include "cost/roofline.h"

#include "ops/op.h"

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

/* --- multiply-adds --- */

/* Convolutions: each output element takes the weights of its channel, divided among the groups
 * already. How much of the peak the runtime reaches is measured. */
static void convolution(const po_graph *g, const po_node *node, double out, node_cost *work) {
    const po_type *w = type_of(g, node->in[1]);
    double taps = count_of(w), channels = dim_of(w, 1);
    int64_t group = po_node_int(node, "group", 1);
    work->flops = 2 * out * taps / fmax(dim_of(w, 0), 1);
    work->columns = fmax(dim_of(w, 0), 1) / (double)group;
    work->rows = out / fmax(dim_of(w, 0), 1);
    work->times = (double)group;
    work->depth = taps / fmax(dim_of(w, 0), 1);
    work->part = w->rank == 5    ? 0.4
                 : channels >= 8 ? 0.85
                 : group > 1     ? 0.12
                 : channels >= 3 ? 0.5
                                 : 0.3;
}

static void transposed(const po_graph *g, const po_node *node, node_cost *work) {
    const po_type *w = type_of(g, node->in[1]), *x = type_of(g, node->in[0]);
    work->flops = 2 * count_of(x) * count_of(w) / fmax(dim_of(w, 0), 1);
    work->rows = count_of(x) / fmax(dim_of(w, 0), 1);
    work->columns = count_of(w) / fmax(dim_of(w, 0), 1);
    work->times = 1;
    work->depth = dim_of(w, 0);
    work->part = 0.5;
}

static void product(const po_graph *g, const po_node *node, double out, node_cost *work) {
    const po_type *a = type_of(g, node->in[0]);
    uint32_t last = a->rank > 0 ? a->rank - 1 : 0;
    bool turned = node->op == PO_OP_Gemm && po_node_int(node, "transA", 0);
    work->depth = dim_of(a, turned ? 0 : last);
    work->flops = 2 * out * work->depth;
    const po_type *b = type_of(g, node->in[1]);
    bool columns_first = node->op == PO_OP_Gemm && po_node_int(node, "transB", 0);
    work->columns = b->rank < 2 ? 1 : fmax(dim_of(b, columns_first ? 0 : b->rank - 1), 1);
    work->times = 1;
    for (uint32_t i = 0; i + 2 < b->rank; i++)
        work->times *= (double)b->dims[i].value;
    work->rows = out / (work->columns * work->times);
    work->part = 0.8;
}

/* --- the others --- */

/* Operations an element; 0: it only moves. */
static double per_element(const po_node *node) {
    static const char *const costly[] = {"Exp",     "Log",  "Tanh", "Sigmoid",   "Erf",  "Gelu",
                                         "Softmax", "Pow",  "Sin",  "Cos",       "Mish", "Softplus",
                                         "Elu",     "Selu", "Celu", "LogSoftmax"};
    for (size_t i = 0; i < sizeof costly / sizeof costly[0]; i++)
        if (strcmp(node->op_type, costly[i]) == 0)
            return transcendental;
    return po_op_has(node->op, PO_OPF_MOVES_DATA) ? 0 : 1;
}

static bool makes_no_copy(const po_node *node) {
    return node->op == PO_OP_Constant || strcmp(node->op_type, "Shape") == 0 ||
           po_op_has(node->op, PO_OPF_SHAPE_ONLY);
}

/* The runtime's own fusions: these behind a convolution or a Gemm, and nothing between. */
static bool runs_inside(const po_graph *g, const po_node *node) {
    static const char *const inside[] = {"Relu",    "LeakyRelu", "Clip",
                                         "Sigmoid", "Tanh",      "HardSigmoid"};
    if (node->n_in == 0 || node->in[0] == PO_NONE)
        return false;
    const po_node *before = po_graph_producer(g, node->in[0]);
    if (!before || !po_graph_sole_use(g, node->in[0]) ||
        (before->op != PO_OP_Conv && before->op != PO_OP_Gemm))
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
    bool two = node->n_in >= 2 && node->in[0] != PO_NONE && node->in[1] != PO_NONE;
    if (node->op == PO_OP_Conv && two)
        convolution(g, node, out, work);
    else if (node->op == PO_OP_ConvTranspose && two)
        transposed(g, node, work);
    else if ((node->op == PO_OP_MatMul || node->op == PO_OP_Gemm) && two)
        product(g, node, out, work);
    else
        work->flops = per_element(node) * out;
    return true;
}

/* --- GPUs --- */

/* Blocks that the libraries' kernels make of a product: tiles of the result, and parts of long
 * sums, so that few tiles still keep the multiprocessors busy. */
static double blocks_of(const node_cost *work) {
    enum { TILE = 64, PART = 256 };
    return ceil(work->rows / TILE) * ceil(work->columns / TILE) * work->times *
           fmax(1, floor(work->depth / PART));
}

/* The part of a tile's columns and sums that a product fills: tensor cores and warps work 16 by 8
 * at a time however narrow it is. */
static double filled(const node_cost *work) {
    enum { LEAST_COLUMNS = 16, LEAST_DEPTH = 16 };
    return fmin(1, work->columns / LEAST_COLUMNS) * fmin(1, work->depth / LEAST_DEPTH);
}

static bool all_equal(const po_node *node, const char *name, int64_t value) {
    uint32_t n;
    const int64_t *values = po_node_ints(node, name, &n);
    for (uint32_t i = 0; i < n; i++)
        if (values[i] != value)
            return false;
    return true;
}

/* cuDNN has Winograd's algorithm too, over tiles of 6x6 points: for plain f32 convolutions of two
 * axes, unit strides and no dilation. So a mutant that writes it out is no gain by itself, and one
 * that makes a dilated convolution plain is. Three kernels: to the points, a product for each of
 * the 36, back. HUGE_VAL: it does not have it. */
static double winograd_seconds(const po_graph *g, const po_node *node, const po_rates *rates) {
    enum { POINTS = 36, SIDE = 6 };
    const po_type *w = node->n_in > 1 ? type_of(g, node->in[1]) : NULL;
    const po_type *y = node->n_out > 0 ? type_of(g, node->out[0]) : NULL;
    if (node->op != PO_OP_Conv || !w || !y || w->rank != 4 || y->rank != 4 || w->dtype != PO_F32 ||
        rates->tf32 || po_node_int(node, "group", 1) != 1 || !all_equal(node, "strides", 1) ||
        !all_equal(node, "dilations", 1))
        return HUGE_VAL;
    double kernel = dim_of(w, 2), m = SIDE + 1 - kernel; /* an axis' results of a tile */
    if (dim_of(w, 3) != kernel || (kernel != 3 && kernel != 5))
        return HUGE_VAL;
    double tiles = dim_of(y, 0) * ceil(dim_of(y, 2) / m) * ceil(dim_of(y, 3) / m);
    double in = dim_of(w, 1), out = dim_of(w, 0), bytes = 4;
    double points_in = POINTS * tiles * in, points_out = POINTS * tiles * out;
    node_cost products = {.rows = tiles, .columns = out, .times = POINTS, .depth = in};
    po_gpu_work to = {.dram = bytes * (m * m * tiles * in + points_in), .library = true};
    po_gpu_work all = {.dram = bytes * (points_in + points_out + POINTS * in * out),
                       .flops = 2 * points_in * out / filled(&products),
                       .blocks = blocks_of(&products),
                       .library = true,
                       .math = PO_GPU_F32};
    po_gpu_work back = {.dram = bytes * (points_out + m * m * tiles * out), .library = true};
    return po_gpu_seconds(rates->gpu, &to, false) + po_gpu_seconds(rates->gpu, &all, false) +
           po_gpu_seconds(rates->gpu, &back, false);
}

static double gpu_seconds(const po_graph *g, const po_node *node, const node_cost *work,
                          const po_rates *rates) {
    const po_type *type = node->n_in > 0 ? type_of(g, node->in[0]) : NULL;
    po_dtype dtype = type && type->kind == PO_TYPE_TENSOR ? type->dtype : PO_F32;
    po_gpu_work w = {.dram = work->bytes, .library = true};
    w.math = dtype == PO_F16    ? PO_GPU_F16
             : dtype == PO_BF16 ? PO_GPU_BF16
             : rates->tf32      ? PO_GPU_TF32
                                : PO_GPU_F32;
    if (work->rows > 0) {
        w.flops = work->flops / filled(work);
        w.blocks = blocks_of(work);
    } else {
        w.scalar = work->flops;
    }
    return fmin(po_gpu_seconds(rates->gpu, &w, false), winograd_seconds(g, node, rates));
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

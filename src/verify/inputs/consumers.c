/* What operators ask of the contents of their inputs. */
#include "verify/inputs/internal.h"

#include "ops/op.h"

/* How a row of the table bounds an input. */
typedef enum rule {
    INDEX_AXIS,  /* below the length of input 0 along attribute axis */
    INDEX_ALL,   /* below the least dim of input 0 (GatherND, ScatterND) */
    INDEX_FIRST, /* below the first dim of input `a` */
    RANGE,       /* integers a to b */
    REAL,        /* floats a/10 to b/10 */
    OUT_SHAPE,   /* the shape of output 0 */
    TIME_LENGTH, /* 1 to the length of input 0 along axis a */
    DEPTH,       /* below the constant of input 1 (OneHot) */
    AMONG,       /* from the least to the greatest of the constants that the other input is */
    COUNT,       /* 0, 1, 2, ..: axes */
    ONE_DIMS,    /* the axes of input 0 that have length 1 (Squeeze) */
    PARTS        /* the lengths of the outputs along attribute axis (Split) */
} rule;

typedef struct row {
    const char *op;
    uint32_t input;
    rule rule;
    int a, b;
} row;

static const row rows[] = {
    {"Gather", 1, INDEX_AXIS, 0, 0},
    {"GatherElements", 1, INDEX_AXIS, 0, 0},
    {"GatherND", 1, INDEX_ALL, 0, 0},
    {"Scatter", 1, INDEX_AXIS, 0, 0},
    {"ScatterElements", 1, INDEX_AXIS, 0, 0},
    {"ScatterND", 1, INDEX_ALL, 0, 0},
    {"ArrayFeatureExtractor", 1, RANGE, 0, 0},
    {"EmbedLayerNormalization", 0, INDEX_FIRST, 2, 0},
    {"EmbedLayerNormalization", 1, INDEX_FIRST, 4, 0},
    {"EmbedLayerNormalization", 7, RANGE, 0, 1},
    {"RoiAlign", 2, INDEX_FIRST, 0, 0},
    {"OneHot", 0, DEPTH, 0, 0},
    {"OneHot", 1, RANGE, 3, 7},
    {"Equal", 0, AMONG, 1, 0},
    {"Equal", 1, AMONG, 0, 0},
    {"LSTM", 4, TIME_LENGTH, 0, 0},
    {"GRU", 4, TIME_LENGTH, 0, 0},
    {"RNN", 4, TIME_LENGTH, 0, 0},
    {"ReverseSequence", 1, TIME_LENGTH, 0, 0},
    {"Reshape", 1, OUT_SHAPE, 0, 0},
    {"Expand", 1, OUT_SHAPE, 0, 0},
    {"ConstantOfShape", 0, OUT_SHAPE, 0, 0},
    {"Resize", 3, OUT_SHAPE, 0, 0},
    {"Resize", 2, REAL, 20, 20},
    {"Upsample", 1, REAL, 20, 20},
    {"Range", 0, RANGE, 0, 1},
    {"Range", 1, RANGE, 4, 9},
    {"Range", 2, RANGE, 1, 2},
    {"Slice", 1, RANGE, 0, 0},
    {"Slice", 2, RANGE, 2, 3},
    {"Slice", 3, COUNT, 0, 0},
    {"Slice", 4, RANGE, 1, 1},
    {"Tile", 1, RANGE, 1, 2},
    {"Pad", 1, RANGE, 0, 1},
    {"TopK", 1, RANGE, 1, 1},
    {"CumSum", 1, RANGE, 0, 0},
    {"CumProd", 1, RANGE, 0, 0},
    {"Split", 1, PARTS, 0, 0},
    {"SplitToSequence", 1, PARTS, 0, 0},
    {"AffineGrid", 1, OUT_SHAPE, 0, 0},
    {"Col2Im", 1, RANGE, 5, 5},
    {"Col2Im", 2, RANGE, 2, 2},
    {"STFT", 1, RANGE, 4, 4},
    {"STFT", 3, RANGE, 8, 8},
    {"DFT", 1, RANGE, 4, 4},
    {"Trilu", 1, RANGE, -1, 1},
    {"Squeeze", 1, ONE_DIMS, 0, 0},
    {"Unsqueeze", 1, COUNT, 0, 0},
    {"ReduceSum", 1, RANGE, 0, 0},
    {"ReduceMean", 1, RANGE, 0, 0},
    {"ReduceMax", 1, RANGE, 0, 0},
    {"ReduceMin", 1, RANGE, 0, 0},
    {"ReduceProd", 1, RANGE, 0, 0},
    {"ReduceL1", 1, RANGE, 0, 0},
    {"ReduceL2", 1, RANGE, 0, 0},
    {"ReduceLogSum", 1, RANGE, 0, 0},
    {"ReduceLogSumExp", 1, RANGE, 0, 0},
    {"ReduceSumSquare", 1, RANGE, 0, 0},
    {"Loop", 0, RANGE, 2, 4},
    {"Loop", 1, RANGE, 1, 1},
    {"SequenceAt", 1, RANGE, 0, 0},
    {"SequenceErase", 1, RANGE, 0, 0},
    {"SequenceInsert", 2, RANGE, 0, 0},
    {"NonMaxSuppression", 2, RANGE, 1, 5},
    {"Div", 1, RANGE, 1, 7},
    {"Mod", 1, RANGE, 1, 7},
    {"BitShift", 1, RANGE, 0, 5},
    {"Pow", 1, RANGE, 0, 3},
    {"Clip", 1, REAL, -10, -5},
    {"Clip", 2, REAL, 5, 10},
    {"Dropout", 1, REAL, 1, 5},
    {"BatchNormalization", 4, REAL, 5, 20},
    {"QuantizeLinear", 1, REAL, 1, 3},
    {"DequantizeLinear", 1, REAL, 1, 3},
    {"QLinearConv", 1, REAL, 1, 3},
    {"QLinearConv", 4, REAL, 1, 3},
    {"QLinearConv", 6, REAL, 1, 3},
    {"QLinearMatMul", 1, REAL, 1, 3},
    {"QLinearMatMul", 4, REAL, 1, 3},
    {"QLinearMatMul", 6, REAL, 1, 3},
    {"Sqrt", 0, REAL, 0, 40},
    {"Log", 0, REAL, 1, 40},
    {"Asin", 0, REAL, -10, 10},
    {"Acos", 0, REAL, -10, 10},
    {"Atanh", 0, REAL, -9, 9},
    {"Acosh", 0, REAL, 10, 40},
    {"Bernoulli", 0, REAL, 0, 10},
    {"GridSample", 1, REAL, -12, 12},
};

/* Whether elements of the input pass through unchanged. What moves data takes it from input 0, or
 * from as many as there are. The others compute: a cast keeps what an index is, a dropout passes
 * all on where it is evaluated, and no flag says that of them. */
static bool passes_on(const po_node *node, uint32_t input) {
    if (po_op_has(node->op, PO_OPF_MOVES_DATA))
        return input == 0 || po_op_row_of(node->op)->max_in < 0;
    if (node->op == PO_OP_Min || node->op == PO_OP_Max)
        return true;
    return input == 0 &&
           (node->op == PO_OP_Cast || node->op == PO_OP_Dropout || node->op == PO_OP_Abs);
}

typedef struct search {
    po_arena *arena;
    po_need need;
    bool any, other; /* a bound was found; a consumer that is not element-wise was */
    uint32_t left;   /* values still to be visited at most */
} search;

static const po_type *input_type(const po_graph *g, const po_node *node, uint32_t i) {
    if (i >= node->n_in || node->in[i] == PO_NONE)
        return NULL;
    return &g->values[node->in[i]].type;
}

static int64_t dim_at(const po_type *type, int64_t axis) {
    if (!type || type->kind != PO_TYPE_TENSOR || !type->has_rank)
        return -1;
    if (axis < 0)
        axis += type->rank;
    return axis >= 0 && axis < type->rank ? type->dims[axis].value : -1;
}

static int64_t least_dim(const po_type *type) {
    if (!type || type->kind != PO_TYPE_TENSOR || !type->has_rank || type->rank == 0)
        return -1;
    int64_t least = type->dims[0].value;
    for (uint32_t i = 1; i < type->rank; i++)
        if (type->dims[i].value < least)
            least = type->dims[i].value;
    return least;
}

/* Joins a bound with those found so far: the range that suits both, or the newer one's low end. */
static void bound(search *s, po_role role, double low, double high) {
    if (high < low)
        high = low;
    if (!s->any) {
        s->need.role = role;
        s->need.low = low;
        s->need.high = high;
        s->any = true;
        return;
    }
    if (s->need.role == PO_ROLE_LIST)
        return;
    s->need.low = low > s->need.low ? low : s->need.low;
    s->need.high = high < s->need.high ? high : s->need.high;
    if (s->need.high < s->need.low)
        s->need.high = s->need.low;
}

static void bound_below(search *s, int64_t length) {
    bound(s, PO_ROLE_RANGE, 0, length > 0 ? (double)length - 1 : 0);
}

static void set_list(search *s, uint32_t n, const int64_t *list) {
    s->need.role = PO_ROLE_LIST;
    s->need.n = n;
    s->need.list = list;
    s->any = true;
}

static void list_parts(search *s, const po_graph *g, const po_node *node) {
    int64_t *list = PO_NEW_N(s->arena, int64_t, node->n_out);
    int64_t axis = po_node_int(node, "axis", 0), whole = dim_at(input_type(g, node, 0), axis);
    for (uint32_t o = 0; o < node->n_out; o++) {
        int64_t known = node->out[o] == PO_NONE ? -1 : dim_at(&g->values[node->out[o]].type, axis);
        list[o] = known >= 0 ? known : whole > 0 ? whole / node->n_out : 1;
    }
    set_list(s, node->n_out, list);
}

static void list_axes(search *s, const po_type *type) {
    int64_t *list = PO_NEW_N(s->arena, int64_t, PO_MAX_RANK);
    uint32_t n = 0;
    for (uint32_t i = 0; i < PO_MAX_RANK; i++)
        if (!type || (type->has_rank && i < type->rank && type->dims[i].value == 1))
            list[n++] = i;
    set_list(s, n, list);
}

static void list_shape(search *s, const po_type *type) {
    if (!type || type->kind != PO_TYPE_TENSOR || !type->has_rank || !po_type_static(type)) {
        bound(s, PO_ROLE_RANGE, 1, 2);
        return;
    }
    int64_t *list = PO_NEW_N(s->arena, int64_t, type->rank);
    for (uint32_t i = 0; i < type->rank; i++)
        list[i] = type->dims[i].value;
    set_list(s, type->rank, list);
}

/* What is compared with many constants is one of them: a one-hot code spelled out. */
static void bound_among(search *s, const po_graph *g, const po_node *node, uint32_t other) {
    enum { FEWEST = 8 };
    const po_tensor *t = other < node->n_in && node->in[other] != PO_NONE
                             ? po_graph_constant(g, node->in[other])
                             : NULL;
    if (!t || t->count < FEWEST ||
        (po_dtype_class_of(t->dtype) != PO_CLASS_SIGNED &&
         po_dtype_class_of(t->dtype) != PO_CLASS_UNSIGNED))
        return;
    int64_t low = po_tensor_int(t, 0), high = low;
    for (int64_t i = 1; i < t->count; i++) {
        int64_t x = po_tensor_int(t, i);
        low = x < low ? x : low;
        high = x > high ? x : high;
    }
    if (high - low >= FEWEST - 1)
        bound(s, PO_ROLE_RANGE, (double)low, (double)high);
}

static void apply(search *s, const po_graph *g, const po_node *node, const row *r, po_dtype dtype) {
    bool real = po_dtype_class_of(dtype) == PO_CLASS_FLOAT;
    switch (r->rule) {
    case INDEX_AXIS:
        bound_below(s, dim_at(input_type(g, node, 0), po_node_int(node, "axis", 0)));
        break;
    case INDEX_ALL:
        bound_below(s, least_dim(input_type(g, node, 0)));
        break;
    case INDEX_FIRST:
        bound_below(s, dim_at(input_type(g, node, (uint32_t)r->a), 0));
        break;
    case RANGE:
        /* Divisors and exponents may be any float. */
        if (!(real && (strcmp(r->op, "Div") == 0 || strcmp(r->op, "Mod") == 0 ||
                       strcmp(r->op, "Pow") == 0)))
            bound(s, PO_ROLE_RANGE, r->a, r->b);
        break;
    case REAL:
        if (real)
            bound(s, PO_ROLE_REAL, r->a / 10.0, r->b / 10.0);
        break;
    case OUT_SHAPE:
        list_shape(s, node->n_out > 0 && node->out[0] != PO_NONE ? &g->values[node->out[0]].type
                                                                 : NULL);
        break;
    case TIME_LENGTH: {
        int64_t axis = strcmp(r->op, "ReverseSequence") == 0 ? po_node_int(node, "time_axis", 0)
                       : po_node_int(node, "layout", 0)      ? 1
                                                             : 0;
        int64_t length = dim_at(input_type(g, node, 0), axis);
        bound(s, PO_ROLE_RANGE, 1, length > 0 ? (double)length : 1);
        break;
    }
    case DEPTH: {
        const po_tensor *depth =
            node->n_in > 1 && node->in[1] != PO_NONE ? po_graph_constant(g, node->in[1]) : NULL;
        int64_t n = depth && depth->count == 1 ? po_tensor_int(depth, 0) : 3;
        if (depth && po_dtype_class_of(depth->dtype) == PO_CLASS_FLOAT)
            n = (int64_t)po_tensor_f64(depth, 0);
        /* Before opset 11 what is outside of [0, n) is not agreed upon; since then it marks nothing
         * outside of [-n, n). */
        enum { COUNTS_BACK_SINCE = 11, BEYOND = 2 };
        bool back = po_op_version(g, node) >= COUNTS_BACK_SINCE &&
                    po_dtype_class_of(dtype) == PO_CLASS_SIGNED && po_dtype_bits(dtype) > 8 &&
                    n > 0 && n < (1 << 14);
        if (back)
            bound(s, PO_ROLE_RANGE, (double)(-n - BEYOND), (double)(n + BEYOND - 1));
        else
            bound_below(s, n);
        break;
    }
    case AMONG:
        bound_among(s, g, node, (uint32_t)r->a);
        break;
    case COUNT:
        list_axes(s, NULL);
        break;
    case ONE_DIMS:
        list_axes(s, input_type(g, node, 0));
        break;
    case PARTS:
        list_parts(s, g, node);
        break;
    }
}

static void visit(search *s, const po_graph *g, po_value_id id);

static void visit_bodies(search *s, const po_node *node, po_value_id id) {
    for (uint32_t a = 0; a < node->n_attr; a++) {
        const po_attr *attr = &node->attr[a];
        uint32_t n = attr->kind == PO_ATTR_GRAPH ? 1 : attr->kind == PO_ATTR_GRAPHS ? attr->n : 0;
        for (uint32_t k = 0; k < n; k++) {
            const po_graph *body = attr->kind == PO_ATTR_GRAPH ? attr->u.g : attr->u.graphs[k];
            for (po_value_id v = 0; v < body->n_values; v++)
                if (body->values[v].outer == id)
                    visit(s, body, v);
        }
    }
}

static void visit(search *s, const po_graph *g, po_value_id id) {
    if (s->left == 0)
        return;
    s->left--;
    const po_value *value = &g->values[id];
    for (uint32_t u = 0; u < value->n_uses; u++) {
        const po_node *node = &g->nodes[value->uses[u].node];
        uint32_t input = value->uses[u].input;
        if (input == PO_USE_CAPTURE) {
            visit_bodies(s, node, id);
            continue;
        }
        bool known = false;
        for (size_t r = 0; r < sizeof rows / sizeof rows[0]; r++)
            if (rows[r].input == input && strcmp(rows[r].op, node->op_type) == 0) {
                apply(s, g, node, &rows[r], value->type.dtype);
                known = true;
            }
        if (known && input != 0)
            continue;
        if (passes_on(node, input)) {
            for (uint32_t o = 0; o < node->n_out; o++)
                if (node->out[o] != PO_NONE)
                    visit(s, g, node->out[o]);
        } else if (!po_op_has(node->op, PO_OPF_ELEMENTWISE)) {
            s->other = true;
        }
    }
}

po_need po_need_of(po_arena *arena, const po_graph *graph, po_value_id value) {
    search s = {arena, {PO_ROLE_FREE, 0, 0, 0, NULL, false, false}, false, false, 256};
    visit(&s, graph, value);
    s.need.arithmetic = !s.any && !s.other;
    return s.need;
}

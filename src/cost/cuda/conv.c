/* Convolutions by cuDNN's graph interface: an operation graph conv -> add -> add -> relu, the
 * engine configurations that its heuristics offer, and an execution plan for each of them. Where
 * none runs the whole, the convolution and the rest become two graphs. */
#include "cost/cuda/internal.h"

enum { RANK = PO_CUDA_SPATIAL + 2, MOST_OPS = 4, ALIGNMENT = 16 };

/* Identifiers of tensors in a graph; those of its operations' inner results follow. */
enum { ID_X = 1, ID_W, ID_Y, ID_BIAS, ID_Z, ID_INNER };

typedef struct way {
    void *plan, *pack; /* NULL: no plan could be made, or none was needed */
} way;

/* An operation graph and its ways, one a configuration that may be. */
typedef struct dnn_graph {
    uint32_t only; /* the one that is needed; PO_NONE: all */
    uint32_t n, made;
    way ways[PO_CUDA_MOST_WAYS];
} dnn_graph;

typedef struct conv {
    po_cuda *cuda;
    const po_dnn *dnn;
    const po_cuda_conv *c;
    po_arena *arena;
    uint32_t rank; /* of x, w and y as cuDNN has them: 4 or 5 */
    uint64_t at_x, at_w, at_y, at_bias, at_z, workspace;
    dnn_graph first, rest; /* rest.n 0: the first does it all */
    uint32_t rest_way;
    void **made; /* all descriptors: a plan may still look at what it was made of */
    uint32_t n_made, cap_made;
} conv;

/* --- descriptors --- */

/* Makes descriptors that belong together; `failed` stays at the first failure. */
typedef struct maker {
    const po_dnn *dnn;
    conv *v;
    uint32_t from; /* how many there were before */
    int failed;
} maker;

static maker start(conv *v) {
    return (maker){v->dnn, v, v->n_made, 0};
}

static void *make(maker *m, int kind) {
    void *d = NULL;
    if (!m->failed)
        m->failed = m->dnn->cudnnBackendCreateDescriptor(kind, &d);
    if (m->failed)
        return NULL;
    PO_PUSH(m->v->arena, m->v->made, m->v->n_made, m->v->cap_made, d);
    return d;
}

static void set(maker *m, void *d, int attribute, int type, int64_t n, const void *values) {
    if (!m->failed)
        m->failed = m->dnn->cudnnBackendSetAttribute(d, attribute, type, n, values);
}

static void finish(maker *m, void *d) {
    if (!m->failed)
        m->failed = m->dnn->cudnnBackendFinalize(d);
}

static void unmake(maker *m) {
    while (m->v->n_made > m->from)
        m->dnn->cudnnBackendDestroyDescriptor(m->v->made[--m->v->n_made]);
}

static void destroy(void *user) {
    maker all = {((conv *)user)->dnn, user, 0, 0};
    unmake(&all);
}

static int type_of(po_mu_type type) {
    return type == PO_MU_F16 ? PO_DNN_HALF : type == PO_MU_BF16 ? PO_DNN_BFLOAT16 : PO_DNN_FLOAT;
}

/* A tensor of n x c x places; inner results are virtual, and in f32. */
static void *make_tensor(maker *m, int64_t id, int64_t n, int64_t c, const int64_t *places) {
    uint32_t spatial = m->v->rank - 2;
    int64_t dims[RANK] = {n, c}, strides[RANK], alignment = ALIGNMENT, at = 1;
    memcpy(dims + 2, places, spatial * sizeof *places);
    if (m->v->c->channels_last) {
        strides[1] = 1;
        at = c;
        for (uint32_t i = m->v->rank; i-- > 2; at *= dims[i])
            strides[i] = at;
        strides[0] = at;
    } else {
        for (uint32_t i = m->v->rank; i-- > 0; at *= dims[i])
            strides[i] = at;
    }
    bool is_virtual = id >= ID_INNER;
    int type = is_virtual ? PO_DNN_FLOAT : type_of(m->v->c->type);
    void *t = make(m, PO_DNN_TENSOR);
    set(m, t, PO_DNN_TENSOR_TYPE, PO_DNN_T_DATA_TYPE, 1, &type);
    set(m, t, PO_DNN_TENSOR_DIMS, PO_DNN_T_INT64, m->v->rank, dims);
    set(m, t, PO_DNN_TENSOR_STRIDES, PO_DNN_T_INT64, m->v->rank, strides);
    set(m, t, PO_DNN_TENSOR_ID, PO_DNN_T_INT64, 1, &id);
    set(m, t, PO_DNN_TENSOR_ALIGNMENT, PO_DNN_T_INT64, 1, &alignment);
    if (is_virtual)
        set(m, t, PO_DNN_TENSOR_IS_VIRTUAL, PO_DNN_T_BOOLEAN, 1, &is_virtual);
    finish(m, t);
    return t;
}

/* The spatial numbers as cuDNN has them: one axis gets another of `one` before it. */
static const int64_t *spatial_of(const conv *v, const int64_t *values, int64_t one, int64_t *room) {
    if (v->c->spatial > 1)
        return values;
    room[0] = one;
    room[1] = values[0];
    return room;
}

static void *make_conv(maker *m, void *x, void *w, void *y) {
    const po_cuda_conv *c = m->v->c;
    int64_t n = (int64_t)m->v->rank - 2, room[4][2];
    int compute = PO_DNN_FLOAT, mode = PO_DNN_CROSS_CORRELATION;
    float one = 1, zero = 0;
    void *d = make(m, PO_DNN_CONVOLUTION);
    set(m, d, PO_DNN_CONV_COMP_TYPE, PO_DNN_T_DATA_TYPE, 1, &compute);
    set(m, d, PO_DNN_CONV_MODE, PO_DNN_T_CONVOLUTION_MODE, 1, &mode);
    set(m, d, PO_DNN_CONV_SPATIAL_DIMS, PO_DNN_T_INT64, 1, &n);
    set(m, d, PO_DNN_CONV_DILATIONS, PO_DNN_T_INT64, n, spatial_of(m->v, c->dilation, 1, room[0]));
    set(m, d, PO_DNN_CONV_STRIDES, PO_DNN_T_INT64, n, spatial_of(m->v, c->stride, 1, room[1]));
    set(m, d, PO_DNN_CONV_PRE_PADDINGS, PO_DNN_T_INT64, n, spatial_of(m->v, c->before, 0, room[2]));
    set(m, d, PO_DNN_CONV_POST_PADDINGS, PO_DNN_T_INT64, n, spatial_of(m->v, c->after, 0, room[3]));
    finish(m, d);
    void *op = make(m, PO_DNN_OPERATION_CONVOLUTION);
    set(m, op, PO_DNN_OPCONV_DESC, PO_DNN_T_DESCRIPTOR, 1, &d);
    set(m, op, PO_DNN_OPCONV_X, PO_DNN_T_DESCRIPTOR, 1, &x);
    set(m, op, PO_DNN_OPCONV_W, PO_DNN_T_DESCRIPTOR, 1, &w);
    set(m, op, PO_DNN_OPCONV_Y, PO_DNN_T_DESCRIPTOR, 1, &y);
    set(m, op, PO_DNN_OPCONV_ALPHA, PO_DNN_T_FLOAT, 1, &one);
    set(m, op, PO_DNN_OPCONV_BETA, PO_DNN_T_FLOAT, 1, &zero);
    finish(m, op);
    return op;
}

/* b NULL: of x alone. */
static void *make_pointwise(maker *m, int mode, void *x, void *b, void *y) {
    int precision = PO_DNN_FLOAT;
    void *d = make(m, PO_DNN_POINTWISE), *op;
    set(m, d, PO_DNN_POINTWISE_MODE, PO_DNN_T_POINTWISE_MODE, 1, &mode);
    set(m, d, PO_DNN_POINTWISE_PREC, PO_DNN_T_DATA_TYPE, 1, &precision);
    finish(m, d);
    op = make(m, PO_DNN_OPERATION_POINTWISE);
    set(m, op, PO_DNN_OPPOINT_DESC, PO_DNN_T_DESCRIPTOR, 1, &d);
    set(m, op, PO_DNN_OPPOINT_X, PO_DNN_T_DESCRIPTOR, 1, &x);
    if (b)
        set(m, op, PO_DNN_OPPOINT_B, PO_DNN_T_DESCRIPTOR, 1, &b);
    set(m, op, PO_DNN_OPPOINT_Y, PO_DNN_T_DESCRIPTOR, 1, &y);
    finish(m, op);
    return op;
}

/* The operations from the convolution (or, without it, from x as its result) to y. */
static void *make_graph(maker *m, bool convolves, bool rest) {
    const conv *v = m->v;
    const po_cuda_conv *c = v->c;
    int64_t in[2], kernel[2], out[2], id = ID_INNER;
    static const int64_t ones[PO_CUDA_SPATIAL] = {1, 1, 1};
    const int64_t *places = spatial_of(v, c->out, 1, out);
    bool adds = rest && c->z.buffer != PO_NONE, shifts = rest && c->bias.buffer != PO_NONE;
    bool clips = rest && c->act == PO_CUDA_RELU;
    uint32_t left = (uint32_t)convolves + adds + shifts + clips;
    void *ops[MOST_OPS], *value = NULL;
    int64_t n = 0;
    if (convolves) {
        void *x = make_tensor(m, ID_X, c->n, c->c, spatial_of(v, c->in, 1, in));
        void *w = make_tensor(m, ID_W, c->k, c->c / c->groups, spatial_of(v, c->kernel, 1, kernel));
        value = make_tensor(m, --left ? id++ : ID_Y, c->n, c->k, places);
        ops[n++] = make_conv(m, x, w, value);
    } else {
        value = make_tensor(m, ID_X, c->n, c->k, places);
    }
    for (int i = 0; i < 3; i++) {
        static const int modes[] = {PO_DNN_MODE_ADD, PO_DNN_MODE_ADD, PO_DNN_MODE_RELU};
        const bool has[] = {adds, shifts, clips};
        if (!has[i])
            continue;
        void *b = i == 0   ? make_tensor(m, ID_Z, c->n, c->k, places)
                  : i == 1 ? make_tensor(m, ID_BIAS, 1, c->k, ones)
                           : NULL;
        void *to = make_tensor(m, --left ? id++ : ID_Y, c->n, c->k, places);
        ops[n++] = make_pointwise(m, modes[i], value, b, to);
        value = to;
    }
    void *graph = make(m, PO_DNN_OPERATIONGRAPH), *handle = v->cuda->dnn_handle;
    set(m, graph, PO_DNN_GRAPH_HANDLE, PO_DNN_T_HANDLE, 1, &handle);
    set(m, graph, PO_DNN_GRAPH_OPS, PO_DNN_T_DESCRIPTOR, n, ops);
    finish(m, graph);
    return graph;
}

/* --- ways --- */

/* Engines that may not be: those that round f32 to fewer bits unless TF32 is allowed, and those
 * whose sums come in another order each time. */
static bool allowed(const conv *v, void *config) {
    const po_dnn *dnn = v->dnn;
    void *engine = NULL;
    int notes[PO_DNN_NOTES];
    int64_t n = 0, one = 0;
    bool yes = false;
    if (dnn->cudnnBackendCreateDescriptor(PO_DNN_ENGINE, &engine) != 0)
        return false;
    if (dnn->cudnnBackendGetAttribute(config, PO_DNN_CFG_ENGINE, PO_DNN_T_DESCRIPTOR, 1, &one,
                                      &engine) == 0 &&
        dnn->cudnnBackendGetAttribute(engine, PO_DNN_ENGINE_NOTES, PO_DNN_T_NUMERICAL_NOTE,
                                      PO_DNN_NOTES, &n, notes) == 0) {
        yes = true;
        for (int64_t i = 0; i < n && i < PO_DNN_NOTES; i++) {
            yes &= notes[i] != PO_DNN_NOTE_NONDETERMINISTIC;
            if (v->c->type == PO_MU_F32)
                yes &= notes[i] != PO_DNN_NOTE_DOWN_CONVERT &&
                       (notes[i] != PO_DNN_NOTE_TENSOR_CORE || v->c->tf32);
        }
    }
    dnn->cudnnBackendDestroyDescriptor(engine);
    return yes;
}

static void *make_pack(maker *m, bool convolves) {
    const conv *v = m->v;
    int64_t ids[5], n = 0;
    uint64_t at[5], workspace = v->workspace;
    const uint64_t known[] = {convolves ? v->at_x : v->at_y, convolves ? v->at_w : 0, v->at_y,
                              v->at_bias, v->at_z};
    for (int i = 0; i < 5; i++)
        if (known[i]) {
            ids[n] = ID_X + i;
            at[n++] = known[i];
        }
    void *pack = make(m, PO_DNN_VARIANT_PACK);
    set(m, pack, PO_DNN_PACK_IDS, PO_DNN_T_INT64, n, ids);
    set(m, pack, PO_DNN_PACK_POINTERS, PO_DNN_T_POINTER, n, at);
    set(m, pack, PO_DNN_PACK_WORKSPACE, PO_DNN_T_POINTER, 1, &workspace);
    finish(m, pack);
    return pack;
}

/* A configuration's plan, where it has one that fits. */
static void add_way(conv *v, void *config, bool convolves, dnn_graph *to) {
    maker m = start(v);
    int64_t workspace = 0, one = 0;
    void *handle = v->cuda->dnn_handle;
    if (to->n == PO_CUDA_MOST_WAYS || to->made == PO_CUDA_MOST_PLANS || !allowed(v, config))
        return;
    way *added = &to->ways[to->n++];
    *added = (way){NULL, NULL};
    if (to->only != PO_NONE && to->only != to->n - 1)
        return;
    void *plan = make(&m, PO_DNN_EXECUTION_PLAN);
    set(&m, plan, PO_DNN_PLAN_HANDLE, PO_DNN_T_HANDLE, 1, &handle);
    set(&m, plan, PO_DNN_PLAN_CONFIG, PO_DNN_T_DESCRIPTOR, 1, &config);
    finish(&m, plan);
    if (!m.failed)
        m.failed = v->dnn->cudnnBackendGetAttribute(plan, PO_DNN_PLAN_WORKSPACE, PO_DNN_T_INT64, 1,
                                                    &one, &workspace);
    void *pack = make_pack(&m, convolves);
    if (m.failed || workspace > PO_CUDA_WORKSPACE) {
        unmake(&m);
        return;
    }
    *added = (way){plan, pack};
    to->made++;
}

static void ask(conv *v, void *graph, int mode, bool convolves, dnn_graph *to) {
    const po_dnn *dnn = v->dnn;
    maker m = start(v);
    void *heuristic = make(&m, PO_DNN_ENGINEHEUR), *configs[PO_CUDA_MOST_WAYS];
    int64_t offered = 0, n = 0, got = 0;
    set(&m, heuristic, PO_DNN_HEUR_GRAPH, PO_DNN_T_DESCRIPTOR, 1, &graph);
    set(&m, heuristic, PO_DNN_HEUR_MODE, PO_DNN_T_HEUR_MODE, 1, &mode);
    finish(&m, heuristic);
    if (!m.failed)
        m.failed = dnn->cudnnBackendGetAttribute(heuristic, PO_DNN_HEUR_RESULTS,
                                                 PO_DNN_T_DESCRIPTOR, 0, &offered, NULL);
    while (!m.failed && n < offered && n < PO_CUDA_MOST_WAYS) {
        configs[n] = make(&m, PO_DNN_ENGINECFG);
        n += !m.failed;
    }
    if (!m.failed && n > 0)
        m.failed = dnn->cudnnBackendGetAttribute(heuristic, PO_DNN_HEUR_RESULTS,
                                                 PO_DNN_T_DESCRIPTOR, n, &got, configs);
    if (m.failed)
        unmake(&m);
    for (int64_t i = 0; !m.failed && i < got && i < n; i++)
        add_way(v, configs[i], convolves, to);
}

static void find_ways(conv *v, bool convolves, bool rest, uint32_t only, dnn_graph *to) {
    maker m = start(v);
    void *graph = make_graph(&m, convolves, rest);
    to->only = only;
    to->n = to->made = 0;
    if (!m.failed) {
        ask(v, graph, PO_DNN_HEUR_A, convolves, to);
        ask(v, graph, PO_DNN_HEUR_FALLBACK, convolves, to);
    }
    if (to->made == 0)
        unmake(&m);
}

/* --- work --- */

static bool run(const conv *v, const way *w) {
    return w->plan && v->dnn->cudnnBackendExecute(v->cuda->dnn_handle, w->plan, w->pack) == 0;
}

static bool issue(void *own, uint32_t number) {
    const conv *v = own;
    return run(v, &v->first.ways[number]) &&
           (v->rest.made == 0 || run(v, &v->rest.ways[v->rest_way]));
}

static bool issue_rest(void *own, uint32_t number) {
    const conv *v = own;
    return run(v, &v->rest.ways[number]);
}

static uint64_t place(const uint64_t *memory, po_cuda_place p) {
    return p.buffer == PO_NONE ? 0 : memory[p.buffer] + (uint64_t)p.offset;
}

/* One graph that does it all, or two. */
static po_status find_graphs(po_ctx *ctx, conv *v, const po_cuda_step *step, po_cuda_known *known) {
    bool rest = v->at_bias || v->at_z || v->c->act != PO_CUDA_PLAIN;
    find_ways(v, true, rest, known->way, &v->first);
    if (v->first.made > 0 || !rest)
        return PO_OK;
    find_ways(v, true, false, known->way, &v->first);
    if (v->first.made == 0)
        return PO_OK;
    find_ways(v, false, true, known->rest, &v->rest);
    po_cuda_work behind = {step->what, v->rest.n, 0, v, issue_rest, 0};
    if (v->rest.made == 0)
        v->first.made = 0;
    else if (known->rest == PO_NONE)
        PO_TRY(po_cuda_tune(ctx, v->cuda, &behind));
    else
        behind.chosen = known->rest;
    v->rest_way = known->rest = behind.chosen;
    return PO_OK;
}

po_status po_cuda_conv_work(po_ctx *ctx, po_cuda *cuda, po_arena *arena, const po_cuda_step *step,
                            const uint64_t *memory, po_cuda_known *known, po_cuda_work *work) {
    const po_cuda_conv *c = &step->u.conv;
    PO_TRY(po_cuda_need_cudnn(ctx, cuda));
    if (c->spatial < 1 || c->spatial > PO_CUDA_SPATIAL || c->act == PO_CUDA_GELU_TANH)
        return po_fail(ctx, PO_BAD_USE, "%s: not a convolution of cuDNN's", step->what);
    conv *v = PO_NEW(arena, conv);
    *v = (conv){.cuda = cuda,
                .dnn = cuda->dnn,
                .c = c,
                .arena = arena,
                .rank = c->spatial < 3 ? 4 : 5,
                .at_x = place(memory, c->x),
                .at_w = place(memory, c->w),
                .at_y = place(memory, c->y),
                .at_bias = place(memory, c->bias),
                .at_z = place(memory, c->z)};
    po_arena_defer(arena, destroy, v);
    PO_TRY(po_cuda_workspace(ctx, cuda, &v->workspace));
    PO_TRY(find_graphs(ctx, v, step, known));
    if (v->first.made == 0 && known->way != PO_NONE) { /* what went elsewhere does not here */
        *known = (po_cuda_known){PO_NONE, PO_NONE};
        PO_TRY(find_graphs(ctx, v, step, known));
    }
    if (v->first.made == 0)
        return po_fail(ctx, PO_UNSUPPORTED, "%s: cuDNN %s has no engine for it", step->what,
                       cuda->info.cudnn);
    *work = (po_cuda_work){.what = step->what, .n = v->first.n, .own = v, .issue = issue};
    return PO_OK;
}

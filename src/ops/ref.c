/* The driver of the float64 reference: nodes, graphs and bodies. */
#include "ops/ref.h"

/* Memory of one or several arrays: outputs that are views of an input share the input's. */
typedef struct holder {
    po_arena *arena;
    uint32_t users;
} holder;

typedef struct slot {
    const po_array *array; /* the exact one; where noise is followed alone, what it made of it */
    holder *holder;        /* NULL: not ours (graph inputs) */
    const po_array *noisy; /* what noise made of it; NULL: nothing */
    holder *noisy_holder;
    bool moved;    /* noise made something of it */
    uint32_t next; /* list of values that the same node uses last */
} slot;

/* One evaluation of a graph or body. */
struct po_ref_frame {
    po_ref_frame *outer;
    const po_graph *graph;
    po_arena *arena;
    slot *slots; /* per value; NULL: a node that is evaluated alone */
    bool round;
    const uint64_t *draw; /* of the noise that is followed; NULL: none is */
    po_array **noisy;     /* the outputs with it */
    bool alone;           /* nothing exact is kept beside it */
    int64_t *trips;       /* iterations so far, shared by all frames */
};

bool po_ref_fits(uint32_t rank, const int64_t *dims) {
    int64_t count = 1;
    if (rank > PO_MAX_RANK)
        return false;
    for (uint32_t i = 0; i < rank; i++)
        if (dims[i] < 0 || !po_mul_i64(count, dims[i] ? dims[i] : 1, &count) ||
            count > PO_REF_MAX_COUNT)
            return false;
    return true;
}

po_status po_ref_make(po_ref *ref, po_dtype dtype, uint32_t rank, const int64_t *dims,
                      po_array **array) {
    if (!po_ref_fits(rank, dims))
        return PO_UNSUPPORTED;
    return po_array_create(ref->ctx, ref->arena, dtype, rank, dims, array);
}

po_status po_ref_out(po_ref *ref, uint32_t k, po_dtype dtype, uint32_t rank, const int64_t *dims,
                     po_array **array) {
    PO_TRY(po_ref_make(ref, dtype, rank, dims, array));
    ref->out[k] = *array;
    return PO_OK;
}

po_array *po_array_view(po_arena *arena, const po_array *array, uint32_t rank,
                        const int64_t *dims) {
    po_array *view = po_arena_memdup(arena, array, sizeof *array);
    view->rank = rank;
    view->dims = po_arena_memdup(arena, dims, rank * sizeof *dims);
    return view;
}

static po_bytes *copy_strings(po_arena *arena, const po_array *array) {
    po_bytes *s = PO_NEW_N(arena, po_bytes, array->count);
    for (int64_t k = 0; k < array->count; k++)
        s[k] = array->s[k].size
                   ? (po_bytes){po_arena_memdup(arena, array->s[k].data, array->s[k].size),
                                array->s[k].size}
                   : (po_bytes){"", 0};
    return s;
}

po_array *po_array_copy(po_arena *arena, const po_array *array) {
    po_array *copy = po_array_view(arena, array, array->rank, array->dims);
    if (array->f)
        copy->f = po_arena_memdup(arena, array->f, (size_t)array->count * sizeof *array->f);
    else if (array->i)
        copy->i = po_arena_memdup(arena, array->i, (size_t)array->count * sizeof *array->i);
    else if (array->s)
        copy->s = copy_strings(arena, array);
    return copy;
}

po_status po_ref_ints(po_ref *ref, uint32_t k, int64_t *n, const int64_t **values) {
    const po_array *a = po_ref_in(ref, k);
    if (!a || a->rank > 1)
        return PO_UNSUPPORTED;
    *n = a->count;
    if (a->i) {
        *values = a->i;
        return PO_OK;
    }
    if (!a->f)
        return PO_UNSUPPORTED;
    int64_t *v = PO_NEW_N(ref->arena, int64_t, a->count);
    for (int64_t i = 0; i < a->count; i++) {
        if (!(a->f[i] >= -0x1p62 && a->f[i] <= 0x1p62))
            return PO_UNSUPPORTED;
        v[i] = (int64_t)a->f[i];
    }
    *values = v;
    return PO_OK;
}

static bool within(const void *p, const void *base, int64_t count, size_t size) {
    uintptr_t at = (uintptr_t)p, from = (uintptr_t)base;
    return base && p && count > 0 && at >= from && at < from + (size_t)count * size;
}

/* True where `a` lies in the memory of `of`. */
static bool shares(const po_array *a, const po_array *of) {
    return within(a->f, of->f, of->count, sizeof *of->f) ||
           within(a->i, of->i, of->count, sizeof *of->i) ||
           within(a->s, of->s, of->count, sizeof *of->s);
}

static po_status evaluate(po_ctx *ctx, po_arena *arena, const po_graph *graph, const po_node *node,
                          const po_array *const *in, po_array **out, po_ref_frame *frame) {
    const po_op_row *row = po_op_row_of(node->op);
    for (uint32_t k = 0; k < node->n_out; k++)
        out[k] = NULL;
    if (!row || !row->ref || (int)node->n_in < row->min_in ||
        (row->max_in >= 0 && (int)node->n_in > row->max_in) ||
        (row->max_out >= 0 && (int)node->n_out > row->max_out))
        return PO_UNSUPPORTED;
    for (int k = 0; k < row->min_in && !(row->flags & PO_OPF_CONTROL); k++)
        if (!in[k])
            return PO_UNSUPPORTED;
    for (uint32_t k = 0; k < node->n_in; k++)
        if (in[k] && !po_ref_fits(in[k]->rank, in[k]->dims))
            return PO_UNSUPPORTED;
    po_ref ref = {
        .ctx = ctx,
        .arena = arena,
        .graph = graph,
        .node = node,
        .opset = po_op_version(graph, node),
        .n_in = node->n_in,
        .n_out = node->n_out,
        .in = in,
        .out = out,
        .frame = frame,
        .round = frame->round,
    };
    po_status status = row->ref(&ref);
    if (status == PO_BAD_INPUT) {
        /* What the runtime would refuse is not ours to refuse: the node stays as it is. */
        po_log(ctx, "reference: %s", ctx->error.message);
        po_ctx_clear(ctx);
        status = PO_UNSUPPORTED;
    }
    PO_TRY(status);
    for (uint32_t k = 0; k < node->n_out; k++) {
        if (!out[k]) {
            if (node->out[k] != PO_NONE)
                return PO_UNSUPPORTED;
            continue;
        }
        /* Views of inputs are rounded already, and not ours to write to. */
        bool view = false;
        for (uint32_t i = 0; i < node->n_in && !view; i++)
            view = in[i] && shares(out[k], in[i]);
        if (!view && (out[k]->i || frame->round))
            po_array_round(out[k]);
    }
    return PO_OK;
}

po_status po_ref_node(po_ctx *ctx, po_arena *arena, const po_graph *graph, const po_node *node,
                      const po_array *const *in, po_array **out) {
    int64_t trips = 0;
    po_ref_frame frame = {.graph = graph, .arena = arena, .round = true, .trips = &trips};
    return evaluate(ctx, arena, graph, node, in, out, &frame);
}

po_status po_ref_constants(po_ctx *ctx, po_arena *arena, const po_graph *graph, const po_node *node,
                           po_array **out) {
    const po_array **in = PO_NEW_N(arena, const po_array *, node->n_in);
    for (uint32_t i = 0; i < node->n_in; i++) {
        po_array *a = NULL;
        if (node->in[i] != PO_NONE)
            PO_TRY(po_array_from_tensor(ctx, arena, po_graph_constant(graph, node->in[i]), &a));
        in[i] = a;
    }
    return po_ref_node(ctx, arena, graph, node, in, out);
}

static holder *new_holder(po_ref_frame *frame) {
    holder *h = PO_NEW(frame->arena, holder);
    h->arena = po_arena_child(frame->arena);
    return h;
}

static void let_go(holder *h) {
    if (h && --h->users == 0)
        po_arena_free(h->arena);
}

static void drop(slot *s) {
    let_go(s->holder);
    let_go(s->noisy_holder);
    s->holder = s->noisy_holder = NULL;
    s->array = s->noisy = NULL;
}

/* The array of a value: computed before, a constant, or the parent's. */
static po_status fetch(po_ctx *ctx, po_ref_frame *frame, po_value_id id, const po_array **array) {
    slot *s = &frame->slots[id];
    const po_value *v = &frame->graph->values[id];
    if (!s->array && v->outer != PO_NONE && frame->outer && frame->outer->slots) {
        PO_TRY(fetch(ctx, frame->outer, v->outer, &s->array));
    } else if (!s->array) {
        const po_tensor *t =
            v->outer == PO_NONE ? v->constant : po_graph_constant(frame->graph, id);
        if (!t || !po_ref_fits(t->rank, t->dims))
            return PO_UNSUPPORTED;
        po_array *fresh;
        s->holder = new_holder(frame);
        s->holder->users = 1;
        PO_TRY(po_array_from_tensor(ctx, s->holder->arena, t, &fresh));
        s->array = fresh;
    }
    *array = s->array;
    return PO_OK;
}

/* Keeps an output: in memory of its own, or in that of the input that it is a view of. */
static void keep_output(po_ref_frame *frame, const po_node *node, const po_array *const *in,
                        uint32_t k, const po_array *array, holder *own) {
    slot *s = &frame->slots[node->out[k]];
    holder *h = own;
    po_arena *arena = own->arena;
    if (array->s) {
        /* Elements may point to strings of any input, or to new ones. */
        *s = (slot){.array = po_array_copy(frame->arena, array), .next = s->next};
        return;
    }
    for (uint32_t i = 0; i < node->n_in; i++)
        if (in[i] && shares(array, in[i])) {
            h = frame->slots[node->in[i]].holder;
            arena = h ? h->arena : frame->arena;
            break;
        }
    /* The rule may have taken struct and dims from an input that goes before this does. */
    s->array = po_array_view(arena, array, array->rank, array->dims);
    s->holder = h;
    if (h)
        h->users++;
}

/* --- noise --- */

enum {
    /* makes no noise of its own */
    KEEPS_VALUES = PO_OPF_EXACT | PO_OPF_MOVES_DATA,
    /* noise is not followed through it */
    STOPS_NOISE = PO_OPF_JUMPS | PO_OPF_CONTROL | PO_OPF_RANDOM
};

/* Whether noise makes something of the node's outputs. */
static bool is_moved(const po_ref_frame *frame, const po_node *node, const po_array *const *in) {
    bool moved = !(po_op_row_of(node->op)->flags & KEEPS_VALUES);
    for (uint32_t k = 0; k < node->n_in && !moved; k++)
        moved = in[k] && frame->slots[node->in[k]].moved;
    return moved;
}

/* Each element off by half a bit, where it is rounded: an elementwise operator does not round what
 * the dtype holds, another one has rounded on its way. */
static void add_noise(const po_ref_frame *frame, uint64_t stream, bool once, po_array *array) {
    bool rounds = array->dtype == PO_F32 || po_dtype_bits(array->dtype) == 16;
    double by = rounds ? po_dtype_half_bit(array->dtype) : 0;
    for (int64_t i = 0; by > 0 && i < array->count; i++) {
        double x = array->f[i];
        if (once && x == po_round_float(array->dtype, x))
            continue;
        uint64_t bit = po_random_u64(*frame->draw, stream, (uint64_t)i);
        array->f[i] = x * (bit & 1 ? 1 + by : 1 - by);
    }
}

/* A node's inputs with their noise, and with more where the node adds them up. */
static const po_array **noisy_inputs(const po_ref_frame *frame, po_arena *arena,
                                     const po_node *node, const po_array *const *in) {
    const po_array **to = PO_NEW_N(arena, const po_array *, node->n_in);
    bool sums = po_op_row_of(node->op)->flags & PO_OPF_SUMS;
    for (uint32_t k = 0; k < node->n_in; k++) {
        const po_array *noisy = in[k] ? frame->slots[node->in[k]].noisy : NULL;
        to[k] = noisy ? noisy : in[k];
        if (!sums || !in[k] || !in[k]->f)
            continue;
        po_array *copy = po_array_copy(arena, to[k]);
        add_noise(frame, ((uint64_t)node->in[k] << 32) + 2, false, copy);
        to[k] = copy;
    }
    return to;
}

/* Evaluates a node on its inputs with their noise, and adds its own. */
static po_status evaluate_noisy(po_ctx *ctx, po_ref_frame *frame, const po_node *node,
                                const po_array *const *in, po_arena *arena, po_array **out) {
    uint32_t flags = po_op_row_of(node->op)->flags;
    po_arena *scratch = po_arena_child(arena);
    const po_array **noisy = noisy_inputs(frame, scratch, node, in);
    po_status status = evaluate(ctx, arena, frame->graph, node, noisy, out, frame);
    for (uint32_t k = 0; k < node->n_out && status == PO_OK; k++) {
        bool view = false, rounds = !(flags & KEEPS_VALUES) && out[k] && out[k]->f;
        for (uint32_t i = 0; i < node->n_in && out[k]; i++)
            view |= noisy[i] && shares(out[k], noisy[i]) &&
                    (rounds || noisy[i] != in[i] || !frame->alone);
        if (view)
            out[k] = po_array_copy(arena, out[k]);
        if (rounds)
            add_noise(frame, ((uint64_t)node->out[k] << 32) + 1, flags & PO_OPF_ELEMENTWISE,
                      out[k]);
    }
    po_arena_free(scratch);
    return status;
}

/* What noise makes of a node's outputs, beside the exact ones. */
static po_status follow_noise(po_ctx *ctx, po_ref_frame *frame, const po_node *node,
                              const po_array *const *in) {
    if (po_op_row_of(node->op)->flags & STOPS_NOISE || !is_moved(frame, node, in))
        return PO_OK;
    holder *own = new_holder(frame);
    po_array **out = PO_NEW_N(own->arena, po_array *, node->n_out);
    own->users = 1;
    po_status status = evaluate_noisy(ctx, frame, node, in, own->arena, out);
    for (uint32_t k = 0; k < node->n_out && status == PO_OK; k++) {
        if (node->out[k] == PO_NONE || !out[k]->f)
            continue;
        slot *s = &frame->slots[node->out[k]];
        s->noisy = out[k];
        s->moved = true;
        s->noisy_holder = own;
        own->users++;
    }
    let_go(own);
    return status;
}

/* Whether noise ends nowhere, so that nothing exact is needed on its way: no operator jumps, and
 * none makes anything but floats of floats. */
static bool is_followed_alone(const po_graph *g) {
    for (uint32_t i = 0; i < g->n_nodes; i++) {
        const po_node *node = &g->nodes[i];
        const po_op_row *row = po_op_row_of(node->op);
        bool floats = false;
        if (node->removed)
            continue;
        if (!row || row->flags & STOPS_NOISE)
            return false;
        for (uint32_t k = 0; k < node->n_in + node->n_out; k++) {
            po_value_id v = k < node->n_in ? node->in[k] : node->out[k - node->n_in];
            po_dtype dtype = v != PO_NONE ? g->values[v].type.dtype : PO_F32;
            bool is_float = po_dtype_class_of(dtype) == PO_CLASS_FLOAT;
            floats |= is_float && v != PO_NONE;
            if (dtype == PO_DT_NONE || (k >= node->n_in && floats && !is_float))
                return false;
        }
    }
    return true;
}

/* --- graphs --- */

static po_status run_node(po_ctx *ctx, po_ref_frame *frame, const po_node *node) {
    holder *h = new_holder(frame);
    const po_array **in = PO_NEW_N(h->arena, const po_array *, node->n_in);
    po_array **out = PO_NEW_N(h->arena, po_array *, node->n_out);
    po_status status = PO_OK;
    h->users = 1;
    for (uint32_t k = 0; k < node->n_in && status == PO_OK; k++)
        if (node->in[k] != PO_NONE)
            status = fetch(ctx, frame, node->in[k], &in[k]);
    if (status == PO_OK && frame->alone)
        status = evaluate_noisy(ctx, frame, node, in, h->arena, out);
    else if (status == PO_OK)
        status = evaluate(ctx, h->arena, frame->graph, node, in, out, frame);
    if (status == PO_UNSUPPORTED)
        po_log(ctx, "reference: node '%s' (%s) is not supported", node->name, node->op_type);
    bool moved = status == PO_OK && frame->alone && is_moved(frame, node, in);
    for (uint32_t k = 0; k < node->n_out && status == PO_OK; k++)
        if (node->out[k] != PO_NONE) {
            keep_output(frame, node, in, k, out[k], h);
            frame->slots[node->out[k]].moved = moved && out[k]->f;
        }
    if (frame->draw && !frame->alone && status == PO_OK)
        status = follow_noise(ctx, frame, node, in);
    let_go(h);
    return status;
}

/* For every value the place in the order of the node that uses it last; lists by that place. */
static uint32_t *last_uses(po_ref_frame *frame, const po_node_id *order, uint32_t n) {
    const po_graph *g = frame->graph;
    uint32_t *place = PO_NEW_N(frame->arena, uint32_t, g->n_nodes);
    uint32_t *heads = PO_NEW_N(frame->arena, uint32_t, n);
    for (uint32_t i = 0; i < n; i++) {
        place[order[i]] = i;
        heads[i] = PO_NONE;
    }
    for (po_value_id v = 0; v < g->n_values; v++) {
        const po_value *value = &g->values[v];
        bool made = value->producer != PO_NONE && !g->nodes[value->producer].removed;
        if (value->n_outputs || (!value->n_uses && !made))
            continue;
        uint32_t last = made ? place[value->producer] : 0;
        for (uint32_t u = 0; u < value->n_uses; u++)
            if (place[value->uses[u].node] > last)
                last = place[value->uses[u].node];
        frame->slots[v].next = heads[last];
        heads[last] = v;
    }
    return heads;
}

/* By node, whether an output is computed from it: what else the graph has is neither run nor asked
 * for a reference. */
static const bool *needed_nodes(const po_ref_frame *frame, const po_node_id *order, uint32_t n) {
    const po_graph *g = frame->graph;
    bool *needed = PO_NEW_N(frame->arena, bool, g->n_nodes);
    for (uint32_t i = n; i-- > 0;) {
        const po_node *node = &g->nodes[order[i]];
        for (uint32_t k = 0; k < node->n_out; k++) {
            if (node->out[k] == PO_NONE)
                continue;
            const po_value *v = &g->values[node->out[k]];
            needed[order[i]] |= v->n_outputs > 0;
            for (uint32_t u = 0; u < v->n_uses; u++)
                needed[order[i]] |= needed[v->uses[u].node];
        }
    }
    return needed;
}

static po_status run_frame(po_ctx *ctx, po_arena *arena, po_ref_frame *frame, po_array **out) {
    uint32_t n;
    const po_graph *g = frame->graph;
    const po_node_id *order = po_graph_order(g, frame->arena, &n);
    const uint32_t *heads = last_uses(frame, order, n);
    const bool *needed = needed_nodes(frame, order, n);
    for (uint32_t i = 0; i < n; i++) {
        PO_TRY(po_ctx_poll(ctx));
        if (needed[order[i]])
            PO_TRY(run_node(ctx, frame, &g->nodes[order[i]]));
        for (uint32_t v = heads[i]; v != PO_NONE; v = frame->slots[v].next)
            drop(&frame->slots[v]);
    }
    for (uint32_t k = 0; k < g->n_outputs; k++) {
        const po_array *a;
        PO_TRY(fetch(ctx, frame, g->outputs[k], &a));
        if (out)
            out[k] = po_array_copy(arena, a);
        if (frame->draw) {
            const po_array *noisy = frame->slots[g->outputs[k]].noisy;
            frame->noisy[k] = po_array_copy(arena, noisy ? noisy : a);
        }
    }
    return PO_OK;
}

static po_status run_graph(po_ctx *ctx, po_arena *arena, po_ref_frame frame,
                           const po_array *const *in, po_array **out) {
    frame.arena = po_arena_child(arena);
    frame.slots = PO_NEW_N(frame.arena, slot, frame.graph->n_values);
    for (uint32_t k = 0; k < frame.graph->n_inputs; k++)
        frame.slots[frame.graph->inputs[k]].array = in[k];
    po_status status = run_frame(ctx, arena, &frame, out);
    for (po_value_id v = 0; v < frame.graph->n_values; v++)
        drop(&frame.slots[v]);
    po_arena_free(frame.arena);
    return status;
}

po_status po_ref_body(po_ref *ref, po_arena *arena, const po_graph *body, const po_array *const *in,
                      po_array **out) {
    return run_graph(
        ref->ctx, arena,
        (po_ref_frame){
            .outer = ref->frame, .graph = body, .round = ref->round, .trips = ref->frame->trips},
        in, out);
}

po_status po_ref_trip(po_ref *ref) {
    return ++*ref->frame->trips > PO_REF_MAX_TRIPS ? PO_UNSUPPORTED : PO_OK;
}

po_status po_ref_graph(po_ctx *ctx, po_arena *arena, const po_graph *graph,
                       const po_array *const *in, po_array **out, bool round) {
    int64_t trips = 0;
    return run_graph(ctx, arena, (po_ref_frame){.graph = graph, .round = round, .trips = &trips},
                     in, out);
}

po_status po_ref_graph_noisy(po_ctx *ctx, po_arena *arena, const po_graph *graph,
                             const po_array *const *in, uint64_t draw, po_array **out,
                             po_array **noisy) {
    int64_t trips = 0;
    return run_graph(ctx, arena,
                     (po_ref_frame){.graph = graph,
                                    .draw = &draw,
                                    .noisy = noisy,
                                    .alone = !out && is_followed_alone(graph),
                                    .trips = &trips},
                     in, out);
}

/* Nodes become units (a library's call, a region, a single operator) in an order in which each
 * follows what it reads. What is between them lies in one buffer, at the lowest place that is free
 * while it lives. */
#include "pipeline/gpu/model.h"

#include "codegen/cuda/library.h"
#include "ops/op.h"
#include "superopt/gpu/plan.h"

/* Where a value lies. */
typedef struct home {
    po_value_id root;     /* itself, or what it is another shape of */
    bool apart;           /* has a buffer of its own: inputs, constants, outputs */
    uint32_t first, last; /* units that write and read it first and last; of roots */
    po_cuda_place place;  /* of roots */
} home;

typedef struct unit {
    po_gpu_unit told;
    po_gpu_match match;      /* of libraries */
    const po_region *region; /* of kernels */
    po_lowered lowered;
    bool made; /* program and image are there */
    po_cuda_program program;
    const po_cuda_image *image;
    int64_t offset; /* of the program's own memory, in the working buffer */
    bool done;
} unit;

/* A kernel that was compiled. */
typedef struct compiled {
    po_hash key;
    po_cuda_program program;
    const po_cuda_image *image;
} compiled;

typedef struct making {
    po_ctx *ctx;
    po_arena *arena;
    const po_graph *graph;
    const po_gpu_model_options *options;
    bool *taken;  /* by node: a library's step has it */
    uint32_t *of; /* by node: its unit; PO_NONE: a shape alone, or none yet */
    home *homes;  /* by value */
    unit *units;  /* in execution order once they are sorted */
    uint32_t n_units, cap_units;
    compiled *known;
    uint32_t n_known, cap_known;
    po_cuda_buffer *buffers;
    uint32_t n_buffers, cap_buffers;
    uint32_t work;  /* buffer of what is between */
    uint32_t other; /* buffer that stand-ins copy from; PO_NONE: there are none */
} making;

/* --- units --- */

static uint32_t add_unit(making *m, const po_node_id *nodes, uint32_t n) {
    unit u = {.told = {.nodes = nodes, .n_nodes = n}};
    for (uint32_t i = 0; i < n; i++)
        m->of[nodes[i]] = m->n_units;
    PO_PUSH(m->arena, m->units, m->n_units, m->cap_units, u);
    return m->n_units - 1;
}

static void find_library_steps(making *m, const po_node_id *order, uint32_t n) {
    for (uint32_t i = 0; i < n; i++) {
        po_gpu_match match;
        if (!po_gpu_match_node(m->graph, order[i], m->options->tf32, m->taken, &match))
            continue;
        /* What the kernel stage makes a region of is faster there. */
        if (m->options->fuse && match.kind == PO_GPU_MATMUL &&
            po_gpu_part(m->ctx, m->graph, &m->graph->nodes[order[i]]) != PO_REGION_NOT)
            continue;
        const po_node_id *nodes =
            po_arena_memdup(m->arena, match.nodes, match.n_nodes * sizeof *match.nodes);
        uint32_t u = add_unit(m, nodes, match.n_nodes);
        m->units[u].told.kind = match.kind;
        m->units[u].match = match;
        for (uint32_t k = 0; k < match.n_nodes; k++)
            m->taken[nodes[k]] = true;
    }
}

/* All that the libraries leave, single operators too. */
static po_region_part part_of(void *user, const po_graph *graph, const po_node *node) {
    making *m = user;
    if (m->taken[node - graph->nodes])
        return PO_REGION_NOT;
    po_region_part part = po_lower_part_typed(m->ctx, graph, node);
    return part == PO_REGION_MAP ? PO_REGION_CORE : part;
}

static po_region *region_of_one(making *m, po_node_id id) {
    const po_node *node = &m->graph->nodes[id];
    po_region *r = PO_NEW(m->arena, po_region);
    po_node_id *nodes = PO_NEW(m->arena, po_node_id);
    po_value_id *in = PO_NEW_N(m->arena, po_value_id, node->n_in);
    po_value_id *out = PO_NEW_N(m->arena, po_value_id, node->n_out);
    *nodes = id;
    *r = (po_region){.nodes = nodes, .n_nodes = 1, .in = in, .out = out};
    for (uint32_t k = 0; k < node->n_in; k++) {
        bool again = node->in[k] == PO_NONE || po_graph_constant(m->graph, node->in[k]);
        for (uint32_t j = 0; j < r->n_in; j++)
            again |= in[j] == node->in[k];
        if (!again)
            in[r->n_in++] = node->in[k];
    }
    for (uint32_t k = 0; k < node->n_out; k++)
        if (node->out[k] != PO_NONE)
            out[r->n_out++] = node->out[k];
    return r;
}

static void add_region(making *m, const po_region *r) {
    uint32_t u = add_unit(m, r->nodes, r->n_nodes);
    m->units[u].told.kind = PO_GPU_KERNELS;
    m->units[u].region = r;
}

/* Only another shape of what it reads, which is made here. */
static bool is_shape(const po_graph *g, const po_node *node) {
    return po_op_has(node->op, PO_OPF_SHAPE_ONLY) && node->n_out > 0 && node->out[0] != PO_NONE &&
           node->in[0] != PO_NONE &&
           g->values[node->in[0]].type.dtype == g->values[node->out[0]].type.dtype;
}

static void add_given(making *m) {
    for (uint32_t i = 0; i < m->options->n_given; i++) {
        const po_gpu_given *g = &m->options->given[i];
        add_region(m, g->region);
        unit *u = &m->units[m->n_units - 1];
        u->lowered = *g->lowered;
        u->program = *g->program;
        u->image = g->image;
        u->made = true;
        for (uint32_t k = 0; k < g->region->n_nodes; k++)
            m->taken[g->region->nodes[k]] = true;
    }
}

/* Takes about as long as a copy of what it makes, or less. */
static bool has_stand_in(const making *m, const po_node *node) {
    bool light = po_op_has(node->op, PO_OPF_ELEMENTWISE | PO_OPF_MOVES_DATA | PO_OPF_EXACT) ||
                 node->op == PO_OP_Shape || node->op == PO_OP_Range;
    for (uint32_t k = 0; k < node->n_out && light; k++) {
        const po_type *type = node->out[k] == PO_NONE ? NULL : &m->graph->values[node->out[k]].type;
        light = !type || (po_type_count(type) >= 0 && po_dtype_bits(type->dtype) >= 8);
    }
    return light && m->options->stand_ins;
}

static void add_stand_in(making *m, po_node_id id) {
    const po_node_id *node = po_arena_memdup(m->arena, &id, sizeof id);
    uint32_t u = add_unit(m, node, 1);
    m->units[u].told.kind = PO_GPU_STAND_IN;
}

static po_status find_units(making *m) {
    uint32_t n;
    const po_node_id *order = po_graph_order(m->graph, m->arena, &n);
    add_given(m);
    find_library_steps(m, order, n);
    if (m->options->fuse) {
        po_regions *regions = PO_NEW(m->arena, po_regions);
        PO_TRY(po_regions_find(m->ctx, m->arena, m->graph, part_of, m, regions));
        for (uint32_t i = 0; i < regions->n; i++)
            add_region(m, &regions->regions[i]);
    }
    for (uint32_t i = 0; i < n; i++) {
        const po_node *node = &m->graph->nodes[order[i]];
        bool constant = true;
        for (uint32_t k = 0; k < node->n_out; k++)
            constant &= node->out[k] == PO_NONE || po_graph_constant(m->graph, node->out[k]);
        if (m->of[order[i]] != PO_NONE || constant || is_shape(m->graph, node))
            continue;
        bool lowered = po_lower_part_typed(m->ctx, m->graph, node) != PO_REGION_NOT;
        if (!lowered && !has_stand_in(m, node))
            return po_fail(m->ctx, PO_UNSUPPORTED,
                           "node '%s' (%s): no library and no kernel of ours does it on a GPU",
                           node->name, node->op_type);
        if (lowered)
            add_region(m, region_of_one(m, order[i]));
        else
            add_stand_in(m, order[i]);
    }
    return PO_OK;
}

/* --- order --- */

/* Calls fn for what a unit reads from outside, constants too. */
static void each_read(const making *m, const unit *u, void (*fn)(void *user, po_value_id v),
                      void *user) {
    for (uint32_t i = 0; i < u->told.n_nodes; i++) {
        const po_node *node = &m->graph->nodes[u->told.nodes[i]];
        for (uint32_t k = 0; k < node->n_in; k++)
            if (node->in[k] != PO_NONE)
                fn(user, node->in[k]);
    }
}

typedef struct waiting {
    const making *m;
    uint32_t unit;
    bool ready;
} waiting;

/* The unit that makes what a value's memory holds; PO_NONE: there from the start. */
static uint32_t maker(const making *m, po_value_id v) {
    po_node_id from = m->graph->values[m->homes[v].root].producer;
    return from == PO_NONE ? PO_NONE : m->of[from];
}

static void wait_for(void *user, po_value_id v) {
    waiting *w = user;
    uint32_t from = maker(w->m, v);
    w->ready &= from == PO_NONE || from == w->unit || w->m->units[from].done;
}

/* Sorts units so that each comes after what it reads; the earliest first. */
static po_status sort_units(making *m) {
    unit *sorted = PO_NEW_N(m->arena, unit, m->n_units);
    uint32_t *to = PO_NEW_N(m->arena, uint32_t, m->n_units), n = 0;
    for (bool moved = true; moved;) {
        moved = false;
        for (uint32_t i = 0; i < m->n_units; i++) {
            waiting w = {m, i, true};
            if (m->units[i].done)
                continue;
            each_read(m, &m->units[i], wait_for, &w);
            if (!w.ready)
                continue;
            m->units[i].done = moved = true;
            to[i] = n;
            sorted[n++] = m->units[i];
        }
    }
    if (n < m->n_units)
        return po_fail(m->ctx, PO_INTERNAL, "the steps for the GPU wait for one another");
    for (po_node_id i = 0; i < m->graph->n_nodes; i++)
        if (m->of[i] != PO_NONE)
            m->of[i] = to[m->of[i]];
    m->units = sorted;
    return PO_OK;
}

/* --- kernels --- */

/* All have one name, so that the same operator is the same text in every model. */
static po_status compile(making *m, unit *u) {
    static const char name[] = "petopt_unit";
    const po_gpu_options options = {.tf32 = m->options->tf32, .keep = m->options->fuse ? 0 : 1};
    const po_cuda_print_options printing = {.tf32 = m->options->tf32};
    po_gpu_candidate *candidates;
    uint32_t n;
    PO_TRY(po_lower_region(m->ctx, m->arena, m->graph, u->region, "unit", &u->lowered));
    po_hash key = po_mu_hash(u->lowered.mu);
    for (uint32_t i = 0; i < m->n_known; i++)
        if (po_hash_equal(m->known[i].key, key)) {
            u->program = m->known[i].program;
            u->image = m->known[i].image;
            return PO_OK;
        }
    PO_TRY(
        po_gpu_plan(m->ctx, m->arena, u->lowered.mu, m->options->gpu, &options, &candidates, &n));
    PO_TRY(po_codegen_cuda(m->ctx, m->arena, candidates[0].mu, name, &printing, &u->program));
    if (m->options->nvrtc) {
        po_cuda_kernel kernel = {.ports.name = name, .program = u->program};
        PO_TRY(po_cuda_kernel_compile_for(m->ctx, m->arena, m->options->nvrtc, m->options->images,
                                          m->options->arch, &kernel));
        u->image = kernel.images;
    }
    compiled made = {key, u->program, u->image};
    PO_PUSH(m->arena, m->known, m->n_known, m->cap_known, made);
    return PO_OK;
}

/* --- memory --- */

static int64_t bytes_of(const making *m, po_value_id v) {
    const po_type *type = &m->graph->values[v].type;
    return po_type_count(type) * po_dtype_bits(type->dtype) / 8;
}

static int64_t rounded(int64_t bytes) {
    return (bytes + 255) / 256 * 256;
}

static uint32_t add_buffer(making *m, int64_t bytes, const void *data) {
    po_cuda_buffer b = {bytes, data};
    PO_PUSH(m->arena, m->buffers, m->n_buffers, m->cap_buffers, b);
    return m->n_buffers - 1;
}

/* What is another shape of something has its root's memory. */
static void find_roots(making *m) {
    uint32_t n;
    const po_node_id *order = po_graph_order(m->graph, m->arena, &n);
    for (po_value_id v = 0; v < m->graph->n_values; v++)
        m->homes[v] = (home){.root = v, .first = PO_NONE, .place = PO_CUDA_NOWHERE};
    for (uint32_t i = 0; i < n; i++) {
        const po_node *node = &m->graph->nodes[order[i]];
        if (m->of[order[i]] == PO_NONE && is_shape(m->graph, node) &&
            !po_graph_constant(m->graph, node->out[0]))
            m->homes[node->out[0]].root = m->homes[node->in[0]].root;
    }
}

typedef struct living {
    making *m;
    uint32_t unit;
} living;

static void live_until(void *user, po_value_id v) {
    living *l = user;
    home *h = &l->m->homes[l->m->homes[v].root];
    h->last = l->unit;
}

/* Whether the value leaves its unit. */
static bool leaves(const making *m, po_value_id v, uint32_t u) {
    const po_value *value = &m->graph->values[v];
    if (value->n_outputs > 0)
        return true;
    for (uint32_t k = 0; k < value->n_uses; k++)
        if (m->of[value->uses[k].node] != u)
            return true;
    return false;
}

static void find_lives(making *m) {
    for (uint32_t u = 0; u < m->n_units; u++) {
        each_read(m, &m->units[u], live_until, &(living){m, u});
        for (uint32_t i = 0; i < m->units[u].told.n_nodes; i++) {
            const po_node *node = &m->graph->nodes[m->units[u].told.nodes[i]];
            for (uint32_t k = 0; k < node->n_out; k++)
                if (node->out[k] != PO_NONE && leaves(m, node->out[k], u)) {
                    m->homes[node->out[k]].first = u;
                    m->homes[node->out[k]].last = u;
                }
        }
    }
}

/* Something in the working buffer while units first to last run. */
typedef struct stay {
    uint32_t first, last;
    int64_t offset, bytes;
} stay;

typedef struct working {
    stay *stays;
    uint32_t n, cap;
    int64_t bytes;
} working;

/* The lowest place that is free all the while. */
static int64_t settle(making *m, working *w, uint32_t first, uint32_t last, int64_t bytes) {
    stay s = {first, last, 0, rounded(bytes)};
    for (bool moved = true; moved;) {
        moved = false;
        for (uint32_t i = 0; i < w->n; i++) {
            const stay *o = &w->stays[i];
            if (o->first <= last && first <= o->last && o->offset < s.offset + s.bytes &&
                s.offset < o->offset + o->bytes) {
                s.offset = o->offset + o->bytes;
                moved = true;
            }
        }
    }
    PO_PUSH(m->arena, w->stays, w->n, w->cap, s);
    w->bytes = s.offset + s.bytes > w->bytes ? s.offset + s.bytes : w->bytes;
    return s.offset;
}

static const po_tensor *fed(const po_feed *feed, const char *name) {
    for (uint32_t i = 0; feed && i < feed->n; i++)
        if (strcmp(feed->names[i], name) == 0)
            return feed->data[i].tensor;
    return NULL;
}

static po_status place_inputs(making *m, const po_feed *feed) {
    for (uint32_t i = 0; i < m->graph->n_inputs; i++) {
        po_value_id v = m->graph->inputs[i];
        const po_tensor *given = fed(feed, m->graph->values[v].name);
        if (po_graph_constant(m->graph, v))
            continue;
        if (given && (int64_t)given->size != bytes_of(m, v))
            return po_fail(m->ctx, PO_BAD_INPUT, "input '%s': %zu bytes are given for %lld",
                           m->graph->values[v].name, given->size, (long long)bytes_of(m, v));
        m->homes[v].apart = true;
        m->homes[v].place.offset = 0;
        m->homes[v].place.buffer = add_buffer(m, bytes_of(m, v), given ? given->data : NULL);
    }
    return PO_OK;
}

static void place_outputs(making *m) {
    for (uint32_t i = 0; i < m->graph->n_outputs; i++) {
        home *h = &m->homes[m->homes[m->graph->outputs[i]].root];
        if (!h->apart && !po_graph_constant(m->graph, h->root)) {
            h->apart = true;
            h->place.offset = 0;
            h->place.buffer = add_buffer(m, bytes_of(m, h->root), NULL);
        }
    }
}

static void place_between(making *m) {
    working w = {0};
    m->work = add_buffer(m, 0, NULL);
    for (uint32_t u = 0; u < m->n_units; u++) {
        for (uint32_t i = 0; i < m->units[u].told.n_nodes; i++) {
            const po_node *node = &m->graph->nodes[m->units[u].told.nodes[i]];
            for (uint32_t k = 0; k < node->n_out; k++) {
                home *h = node->out[k] == PO_NONE ? NULL : &m->homes[node->out[k]];
                if (!h || h->first != u || h->apart)
                    continue;
                h->place.buffer = m->work;
                h->place.offset = settle(m, &w, h->first, h->last, bytes_of(m, node->out[k]));
            }
        }
        if (m->units[u].region && m->units[u].program.device > 0)
            m->units[u].offset = settle(m, &w, u, u, m->units[u].program.device);
    }
    m->buffers[m->work].bytes = w.bytes;
}

/* Constants get a buffer when they are first asked for. */
static po_cuda_place place_of(making *m, po_value_id v) {
    home *h = &m->homes[m->homes[v].root];
    const po_tensor *constant = po_graph_constant(m->graph, v);
    if (constant && h->place.buffer == PO_NONE) {
        h->place.offset = 0;
        h->place.buffer = add_buffer(m, (int64_t)constant->size, constant->data);
    }
    return h->place;
}

/* --- steps --- */

static const char *told_as(making *m, const unit *u) {
    const po_node *node = &m->graph->nodes[u->told.nodes[0]];
    return po_arena_printf(m->arena, "%s '%s'", node->op_type, node->name);
}

typedef struct steps {
    po_cuda_step *list;
    uint32_t n, cap;
} steps;

static void library_step(making *m, unit *u, steps *to) {
    po_cuda_step s = {.what = told_as(m, u)};
    if (u->told.kind == PO_GPU_CONV) {
        s.kind = PO_CUDA_CONV;
        s.u.conv = u->match.u.conv;
    } else {
        s.kind = PO_CUDA_MATMUL;
        s.u.matmul = u->match.u.matmul;
    }
    po_cuda_places places = po_cuda_step_places(m->arena, &s);
    for (uint32_t i = 0; i < places.n; i++)
        if (places.list[i]->buffer != PO_NONE)
            *places.list[i] = place_of(m, places.list[i]->buffer);
    PO_PUSH(m->arena, to->list, to->n, to->cap, s);
}

static const po_cuda_place *places_of(making *m, const po_value_id *values, uint32_t n) {
    po_cuda_place *places = PO_NEW_N(m->arena, po_cuda_place, n + 1);
    for (uint32_t i = 0; i < n; i++)
        places[i] = place_of(m, values[i]);
    return places;
}

static void kernel_steps(making *m, unit *u, steps *to) {
    const po_region *r = u->region;
    po_cuda_io io = {.inputs = places_of(m, r->in, r->n_in),
                     .weights = places_of(m, u->lowered.weights, u->lowered.n_weights),
                     .outputs = places_of(m, r->out, r->n_out),
                     .device = {m->work, u->offset}};
    const po_cuda_step *made = po_cuda_program_steps(m->arena, &u->program, u->image, &io);
    for (uint32_t i = 0; i < u->program.n_launches; i++)
        PO_PUSH(m->arena, to->list, to->n, to->cap, made[i]);
}

static void stand_in_steps(making *m, const unit *u, steps *to) {
    const po_node *node = &m->graph->nodes[u->told.nodes[0]];
    for (uint32_t k = 0; k < node->n_out; k++) {
        if (node->out[k] == PO_NONE)
            continue;
        const po_cuda_place to_place = place_of(m, node->out[k]);
        const int64_t bytes = bytes_of(m, node->out[k]);
        if (bytes == 0 || to_place.buffer == PO_NONE) /* nobody reads it */
            continue;
        if (m->other == PO_NONE)
            m->other = add_buffer(m, 0, NULL);
        if (m->buffers[m->other].bytes < bytes)
            m->buffers[m->other].bytes = bytes;
        po_cuda_step s = {.kind = PO_CUDA_COPY, .what = told_as(m, u)};
        s.u.copy = (po_cuda_copy){{m->other, 0}, to_place, bytes};
        PO_PUSH(m->arena, to->list, to->n, to->cap, s);
    }
}

static void write_plan(making *m, po_gpu_model *model) {
    steps to = {0};
    po_gpu_unit *told = PO_NEW_N(m->arena, po_gpu_unit, m->n_units);
    po_cuda_output *outputs = PO_NEW_N(m->arena, po_cuda_output, m->graph->n_outputs);
    for (uint32_t u = 0; u < m->n_units; u++) {
        told[u] = m->units[u].told;
        if (m->units[u].region)
            kernel_steps(m, &m->units[u], &to);
        else if (told[u].kind == PO_GPU_STAND_IN)
            stand_in_steps(m, &m->units[u], &to);
        else
            library_step(m, &m->units[u], &to);
    }
    for (uint32_t i = 0; i < m->graph->n_outputs; i++)
        outputs[i] =
            (po_cuda_output){place_of(m, m->graph->outputs[i]), bytes_of(m, m->graph->outputs[i])};
    *model = (po_gpu_model){.plan = {.name = m->graph->name,
                                     .n_buffers = m->n_buffers,
                                     .n_steps = to.n,
                                     .n_outputs = m->graph->n_outputs,
                                     .buffers = m->buffers,
                                     .steps = to.list,
                                     .outputs = outputs},
                            .units = told,
                            .n_units = m->n_units};
}

po_status po_gpu_model_make(po_ctx *ctx, po_arena *arena, const po_graph *graph,
                            const po_gpu_model_options *options, const po_feed *feed,
                            po_gpu_model *model) {
    making m = {.ctx = ctx, .arena = arena, .graph = graph, .options = options, .other = PO_NONE};
    m.taken = PO_NEW_N(arena, bool, graph->n_nodes);
    m.of = PO_NEW_N(arena, uint32_t, graph->n_nodes);
    m.homes = PO_NEW_N(arena, home, graph->n_values);
    for (po_node_id i = 0; i < graph->n_nodes; i++)
        m.of[i] = PO_NONE;
    PO_TRY(find_units(&m));
    find_roots(&m);
    PO_TRY(sort_units(&m));
    for (uint32_t u = 0; u < m.n_units; u++) {
        po_step(ctx, (double)u / m.n_units, "compiling step %u for the GPU", u);
        PO_TRY(po_ctx_poll(ctx));
        if (m.units[u].region && !m.units[u].made)
            PO_TRY(compile(&m, &m.units[u]));
    }
    PO_TRY(place_inputs(&m, feed));
    place_outputs(&m);
    find_lives(&m);
    place_between(&m);
    write_plan(&m, model);
    return PO_OK;
}

/* Makes plans ready (memory, modules, algorithms), captures them as CUDA graphs, and runs them for
 * their outputs or times several against one another, in shuffled rounds and several processes. */
#include "cost/cuda/cost.h"
#include "cost/cuda/internal.h"
#include "cost/isolate.h"
#include "cost/timing_internal.h"

#include <math.h>
#include <stdlib.h>

enum {
    EXECUTE_SECONDS = 600,
    MOST_ROUNDS = 40,
    LEAST_ROUNDS = 7,
    MOST_LAUNCHES = 64,
    WARM_LAUNCHES = 2,
    LONGEST_PROCESS = 900 /* seconds beyond the plan until a child counts as hung */
};
static const double block_aim = 3e-3; /* seconds of launches between two events */

/* --- getting ready --- */

/* A kernel's function with its arguments. */
typedef struct kernel_work {
    po_cuda *cuda;
    void *function;
    const po_cuda_launch *launch;
    uint64_t *values;
    void **parameters;
} kernel_work;

static bool issue_kernel(void *own, uint32_t way) {
    const kernel_work *k = own;
    const po_cuda_launch *l = k->launch;
    (void)way;
    return k->cuda->cu->cuLaunchKernel(k->function, l->grid[0], l->grid[1], l->grid[2], l->threads,
                                       1, 1, l->shared, k->cuda->stream, k->parameters,
                                       NULL) == PO_CU_SUCCESS;
}

typedef struct module {
    const po_cu *cu;
    const void *image;
    void *handle;
} module;

static void unload(void *user) {
    const module *m = user;
    m->cu->cuModuleUnload(m->handle);
}

/* Images that steps share are loaded once. */
typedef struct modules {
    module *items;
    uint32_t n, cap;
} modules;

static po_status load(po_ctx *ctx, po_cuda *cuda, po_arena *arena, modules *all,
                      const po_cuda_image *image, void **handle) {
    for (uint32_t i = 0; i < all->n; i++)
        if (all->items[i].image == image->bytes.data) {
            *handle = all->items[i].handle;
            return PO_OK;
        }
    module *m = PO_NEW(arena, module);
    *m = (module){cuda->cu, image->bytes.data, NULL};
    CU_TRY(ctx, cuda, "loading kernels", cuModuleLoadData(&m->handle, image->bytes.data));
    po_arena_defer(arena, unload, m);
    *handle = m->handle;
    PO_PUSH(arena, all->items, all->n, all->cap, *m);
    return PO_OK;
}

static uint64_t place(const po_cuda_ready *r, po_cuda_place p) {
    return r->memory[p.buffer] + (uint64_t)p.offset;
}

static po_status kernel_ready(po_ctx *ctx, po_arena *arena, const po_cuda_ready *r, modules *all,
                              const po_cuda_step *step, po_cuda_work *work) {
    const po_cuda_launch *l = step->u.kernel.launch;
    po_cuda *cuda = r->cuda;
    kernel_work *k = PO_NEW(arena, kernel_work);
    void *handle = NULL;
    if (!step->u.kernel.image)
        return po_fail(ctx, PO_BAD_USE, "%s: it is not compiled", step->what);
    PO_TRY(load(ctx, cuda, arena, all, step->u.kernel.image, &handle));
    CU_TRY(ctx, cuda, l->symbol, cuModuleGetFunction(&k->function, handle, l->symbol));
    if (l->shared > 0)
        CU_TRY(ctx, cuda, l->symbol,
               cuFuncSetAttribute(k->function, PO_CU_DYNAMIC_SHARED, (int)l->shared));
    k->cuda = cuda;
    k->launch = l;
    k->values = PO_NEW_N(arena, uint64_t, l->n_args);
    k->parameters = PO_NEW_N(arena, void *, l->n_args + 1);
    for (uint32_t i = 0; i < l->n_args; i++) {
        k->values[i] = place(r, step->u.kernel.args[i]);
        k->parameters[i] = &k->values[i];
    }
    *work = (po_cuda_work){.what = step->what, .n = 1, .own = k, .issue = issue_kernel};
    return PO_OK;
}

typedef struct copy_work {
    po_cuda *cuda;
    uint64_t from, to;
    size_t bytes;
} copy_work;

static bool issue_copy(void *own, uint32_t way) {
    const copy_work *c = own;
    (void)way;
    return c->cuda->cu->cuMemcpyDtoDAsync_v2(c->to, c->from, c->bytes, c->cuda->stream) ==
           PO_CU_SUCCESS;
}

static po_status step_ready(po_ctx *ctx, po_arena *arena, const po_cuda_ready *r, modules *all,
                            const po_cuda_step *step, po_cuda_known *known, po_cuda_work *work) {
    switch (step->kind) {
    case PO_CUDA_KERNEL:
        return kernel_ready(ctx, arena, r, all, step, work);
    case PO_CUDA_MATMUL:
        return po_cuda_matmul_work(ctx, r->cuda, arena, step, r->memory, work);
    case PO_CUDA_CONV:
        return po_cuda_conv_work(ctx, r->cuda, arena, step, r->memory, known, work);
    case PO_CUDA_COPY: {
        copy_work *c = PO_NEW(arena, copy_work);
        *c = (copy_work){r->cuda, place(r, step->u.copy.from), place(r, step->u.copy.to),
                         (size_t)step->u.copy.bytes};
        *work = (po_cuda_work){.what = step->what, .n = 1, .own = c, .issue = issue_copy};
        return PO_OK;
    }
    }
    return po_fail(ctx, PO_INTERNAL, "%s: a step of no kind", step->what);
}

/* On the stream, which waits for no other: a copy without one may still be on its way when the call
 * is over. */
static po_status fill(po_ctx *ctx, po_cuda *cuda, po_arena *arena, const po_cuda_buffer *b,
                      uint64_t *memory) {
    PO_TRY(po_cuda_alloc(ctx, cuda, arena, b->bytes, memory));
    if (b->bytes == 0)
        return PO_OK;
    if (b->data)
        CU_TRY(ctx, cuda, "copying to it",
               cuMemcpyHtoDAsync_v2(*memory, b->data, (size_t)b->bytes, cuda->stream));
    else
        CU_TRY(ctx, cuda, "filling memory",
               cuMemsetD8Async(*memory, 0, (size_t)b->bytes, cuda->stream));
    return PO_OK;
}

/* What places must be, so that no step reaches beyond its buffer at its start at least. */
static po_status check_plan(po_ctx *ctx, po_arena *arena, const po_cuda_plan *plan) {
    for (uint32_t i = 0; i < plan->n_steps; i++) {
        po_cuda_step s = plan->steps[i];
        po_cuda_places p = po_cuda_step_places(arena, &s);
        for (uint32_t k = 0; k < p.needed; k++)
            if (p.list[k]->buffer >= plan->n_buffers || p.list[k]->offset < 0 ||
                p.list[k]->offset > plan->buffers[p.list[k]->buffer].bytes)
                return po_fail(ctx, PO_BAD_USE, "plan '%s', step '%s': a place outside the buffers",
                               plan->name, s.what);
    }
    return PO_OK;
}

po_status po_cuda_make_ready(po_ctx *ctx, po_cuda *cuda, po_arena *arena, const po_cuda_plan *plan,
                             uint32_t *ways, po_cuda_ready **out) {
    po_cuda_ready *r = PO_NEW(arena, po_cuda_ready);
    modules all = {NULL, 0, 0};
    PO_TRY(check_plan(ctx, arena, plan));
    r->cuda = cuda;
    r->plan = plan;
    r->memory = PO_NEW_N(arena, uint64_t, plan->n_buffers);
    r->work = PO_NEW_N(arena, po_cuda_work, plan->n_steps);
    for (uint32_t i = 0; i < plan->n_buffers; i++)
        PO_TRY(fill(ctx, cuda, arena, &plan->buffers[i], &r->memory[i]));
    CU_TRY(ctx, cuda, "filling memory", cuStreamSynchronize(cuda->stream));
    for (uint32_t i = 0; i < plan->n_steps; i++) {
        po_cuda_work *w = &r->work[i];
        po_hash hash = po_cuda_step_hash(plan, &plan->steps[i]);
        po_cuda_known before = po_cuda_recall_way(cuda, hash), known = before;
        if (ways && ways[i] != PO_NONE)
            known.way = ways[i];
        PO_TRY(step_ready(ctx, arena, r, &all, &plan->steps[i], &known, w));
        if (known.way < w->n)
            w->chosen = known.way;
        else if (w->n > 1)
            PO_TRY(po_cuda_tune(ctx, cuda, w));
        known.way = w->chosen;
        if (ways)
            ways[i] = w->chosen;
        if (known.way != before.way || known.rest != before.rest)
            po_cuda_keep_way(cuda, hash, known);
    }
    /* Trying algorithms wrote results; inputs are as they were, and a run writes the rest anew. */
    *out = r;
    return PO_OK;
}

po_status po_cuda_issue_all(po_ctx *ctx, po_cuda_ready *r) {
    for (uint32_t i = 0; i < r->plan->n_steps; i++)
        if (!r->work[i].issue(r->work[i].own, r->work[i].chosen))
            return po_fail(ctx, PO_RUNTIME, "plan '%s', step '%s': it could not be started on %s",
                           r->plan->name, r->work[i].what, r->cuda->info.name);
    return PO_OK;
}

static bool issue_plan(void *own, uint32_t way) {
    const po_cuda_ready *r = own;
    bool good = true;
    (void)way;
    for (uint32_t i = 0; i < r->plan->n_steps && good; i++)
        good = r->work[i].issue(r->work[i].own, r->work[i].chosen);
    return good;
}

typedef struct captured {
    const po_cu *cu;
    void *exec;
} captured;

static void destroy_exec(void *user) {
    const captured *c = user;
    c->cu->cuGraphExecDestroy(c->exec);
}

/* Once as it is, before: what is loaded at the first launch need not be loaded in a capture. */
po_status po_cuda_capture(po_ctx *ctx, po_arena *arena, po_cuda_ready *r, uint32_t times) {
    if (!r->exec) {
        PO_TRY(po_cuda_issue_all(ctx, r));
        CU_TRY(ctx, r->cuda, r->plan->name, cuStreamSynchronize(r->cuda->stream));
    }
    r->exec = po_cuda_captured(r->cuda, issue_plan, r, 0, times, &r->nodes);
    if (!r->exec)
        return po_fail(ctx, PO_RUNTIME, "plan '%s' could not be captured as a CUDA graph",
                       r->plan->name);
    captured *c = PO_NEW(arena, captured);
    *c = (captured){r->cuda->cu, r->exec};
    po_arena_defer(arena, destroy_exec, c);
    return PO_OK;
}

/* The symbols' common part is no more than a name. */
po_hash po_cuda_program_hash(const po_cuda_program *program) {
    const char *name = program->n_launches > 0 ? program->launches[0].symbol : "";
    const char *end = strrchr(name, '_'), *from = program->source;
    size_t n = end ? (size_t)(end - name) : 0;
    po_hash h = {0, 0};
    for (const char *p = from; n > 0 && (p = strchr(p, name[0])) != NULL; p++)
        if (strncmp(p, name, n + 1) == 0) { /* and what follows it */
            h = po_hash_bytes(from, (size_t)(p - from), h);
            from = p + n;
            p = from - 1;
        }
    h = po_hash_str(h, from);
    for (uint32_t i = 0; i < program->n_launches; i++) {
        const po_cuda_launch *l = &program->launches[i];
        h = po_hash_u64(po_hash_u64(po_hash_u64(h, l->grid[0]), l->grid[1]), l->grid[2]);
        h = po_hash_u64(po_hash_u64(h, l->threads), l->shared);
    }
    return h;
}

const po_cuda_step *po_cuda_program_steps(po_arena *arena, const po_cuda_program *program,
                                          const po_cuda_image *image, const po_cuda_io *io) {
    po_cuda_step *steps = PO_NEW_N(arena, po_cuda_step, program->n_launches);
    po_hash source = po_cuda_program_hash(program);
    for (uint32_t i = 0; i < program->n_launches; i++) {
        const po_cuda_launch *l = &program->launches[i];
        po_cuda_place *args = PO_NEW_N(arena, po_cuda_place, l->n_args);
        for (uint32_t k = 0; k < l->n_args; k++) {
            const po_cuda_arg *a = &l->args[k];
            args[k] = a->kind == PO_CUDA_INPUT    ? io->inputs[a->number]
                      : a->kind == PO_CUDA_WEIGHT ? io->weights[a->number]
                      : a->kind == PO_CUDA_OUTPUT ? io->outputs[a->number]
                                                  : io->device;
            args[k].offset += a->offset;
        }
        steps[i].kind = PO_CUDA_KERNEL;
        steps[i].what = l->what;
        steps[i].u.kernel = (po_cuda_call){image, l, args, po_hash_u64(source, i)};
    }
    return steps;
}

/* --- executing --- */

typedef struct execution {
    const po_cuda_options *options;
    const po_cuda_plan *plan;
    bool as_graph;
} execution;

static po_status execute(po_ctx *ctx, po_arena *arena, po_reply *reply, void *user) {
    const execution *e = user;
    po_cuda *cuda = NULL;
    po_cuda_ready *r = NULL;
    PO_TRY(po_cuda_open(ctx, arena, e->options, &cuda));
    PO_TRY(po_cuda_make_ready(ctx, cuda, arena, e->plan, NULL, &r));
    if (e->as_graph) {
        PO_TRY(po_cuda_capture(ctx, arena, r, 1));
        CU_TRY(ctx, cuda, e->plan->name, cuGraphLaunch(r->exec, cuda->stream));
    } else {
        PO_TRY(po_cuda_issue_all(ctx, r));
    }
    CU_TRY(ctx, cuda, e->plan->name, cuStreamSynchronize(cuda->stream));
    for (uint32_t i = 0; i < e->plan->n_outputs; i++) {
        const po_cuda_output *o = &e->plan->outputs[i];
        char *data = po_arena_alloc(arena, (size_t)o->bytes);
        CU_TRY(ctx, cuda, "copying from it",
               cuMemcpyDtoH_v2(data, place(r, o->place), (size_t)o->bytes));
        po_reply_add(reply, data, (size_t)o->bytes);
    }
    return PO_OK;
}

po_status po_cuda_execute(po_ctx *ctx, po_arena *arena, const po_cuda_options *options,
                          const po_cuda_plan *plan, bool as_graph, po_bytes *outputs) {
    execution e = {options, plan, as_graph};
    po_bytes data;
    size_t at = 0;
    PO_TRY(po_isolate(ctx, arena, "running on a GPU", EXECUTE_SECONDS, execute, &e, &data));
    for (uint32_t i = 0; i < plan->n_outputs; i++) {
        size_t size = (size_t)plan->outputs[i].bytes;
        if (data.size - at < size)
            return po_fail(ctx, PO_INTERNAL, "running on a GPU: %zu bytes came back", data.size);
        outputs[i] = (po_bytes){data.data + at, size};
        at += size;
    }
    return PO_OK;
}

/* --- timing --- */

typedef struct job {
    const po_cuda_timing *spec;
    uint32_t **ways; /* by plan and step; PO_NONE: not known */
    uint32_t number;
    double seconds;
} job;

typedef struct head {
    uint32_t rounds, runs;
} head;

/* Seconds of one run of a plan: of `launches` together, or each by itself behind a flush. */
static double time_block(po_cuda *cuda, const po_cuda_ready *r, uint32_t launches, uint64_t flush,
                         size_t flushed) {
    if (!flushed) {
        for (uint32_t i = 0; i < WARM_LAUNCHES; i++)
            if (cuda->cu->cuGraphLaunch(r->exec, cuda->stream) != PO_CU_SUCCESS)
                return -1;
        return po_cuda_launch_seconds(cuda, r->exec, launches) / launches;
    }
    double takes[MOST_LAUNCHES];
    for (uint32_t i = 0; i < launches; i++) {
        if (cuda->cu->cuMemsetD8Async(flush, (unsigned char)i, flushed, cuda->stream) !=
            PO_CU_SUCCESS)
            return -1;
        takes[i] = po_cuda_launch_seconds(cuda, r->exec, 1);
        if (takes[i] < 0)
            return -1;
    }
    return po_median(takes, launches);
}

static po_status time_plans(po_ctx *ctx, po_arena *arena, po_reply *reply, void *user) {
    const job *j = user;
    const po_cuda_timing *spec = j->spec;
    po_cuda *cuda = NULL;
    po_cuda_ready *ready[PO_TIMING_MAX];
    uint32_t launches[PO_TIMING_MAX];
    uint64_t flush = 0;
    PO_TRY(po_cuda_open(ctx, arena, spec->options, &cuda));
    size_t flushed = spec->cold ? 2 * (size_t)cuda->info.l2 : 0;
    if (flushed)
        PO_TRY(po_cuda_alloc(ctx, cuda, arena, (int64_t)flushed, &flush));
    /* The order of loading changes from one process to the next (cost/timing.h). */
    for (uint32_t k = 0; k < spec->n; k++) {
        uint32_t m = j->number % 2 ? spec->n - 1 - k : k;
        m = (m + j->number / 2) % spec->n;
        PO_TRY(po_cuda_make_ready(ctx, cuda, arena, spec->plans[m], j->ways[m], &ready[m]));
        PO_TRY(po_cuda_capture(ctx, arena, ready[m], 1));
    }
    for (uint32_t m = 0; m < spec->n; m++) {
        double one = po_cuda_launch_seconds(cuda, ready[m]->exec, 1);
        one = one < 0 ? -1 : po_cuda_launch_seconds(cuda, ready[m]->exec, 1);
        if (one < 0)
            return po_fail(ctx, PO_RUNTIME, "plan '%s' failed on %s", spec->plans[m]->name,
                           cuda->info.name);
        double n = ceil(block_aim / one);
        launches[m] = n < 1 ? 1 : n > MOST_LAUNCHES ? MOST_LAUNCHES : (uint32_t)n;
    }
    double *samples = PO_NEW_N(arena, double, (size_t)MOST_ROUNDS * spec->n);
    double until = po_now() + j->seconds;
    head h = {0, launches[0]};
    while (h.rounds < LEAST_ROUNDS || (h.rounds < MOST_ROUNDS && po_now() < until)) {
        uint32_t order[PO_TIMING_MAX];
        po_timing_shuffle(order, spec->n, spec->seed, 5000 + j->number, h.rounds);
        for (uint32_t k = 0; k < spec->n; k++) {
            uint32_t m = order[k];
            double s = time_block(cuda, ready[m], launches[m], flush, flushed);
            if (s <= 0)
                return po_fail(ctx, PO_RUNTIME, "plan '%s' failed on %s", spec->plans[m]->name,
                               cuda->info.name);
            samples[(size_t)h.rounds * spec->n + m] = s;
        }
        h.rounds++;
        PO_TRY(po_ctx_poll(ctx));
    }
    po_reply_add(reply, &h, sizeof h);
    po_reply_add(reply, samples, sizeof *samples * h.rounds * spec->n);
    for (uint32_t m = 0; m < spec->n; m++)
        po_reply_add(reply, j->ways[m], sizeof(uint32_t) * spec->plans[m]->n_steps);
    return PO_OK;
}

static po_status time_in_process(void *user, po_ctx *ctx, po_arena *arena,
                                 const po_timing_spec *timing, uint32_t number, double seconds,
                                 po_timing_process *process) {
    job *j = user;
    po_bytes data;
    double start = po_now();
    j->number = number;
    j->seconds = seconds;
    PO_TRY(
        po_isolate(ctx, arena, "timing on a GPU", seconds + LONGEST_PROCESS, time_plans, j, &data));
    head h = {0, 0};
    memcpy(&h, data.data, data.size < sizeof h ? data.size : sizeof h);
    size_t size = sizeof(double) * h.rounds * timing->n, ways = 0;
    for (uint32_t m = 0; m < timing->n; m++)
        ways += sizeof(uint32_t) * j->spec->plans[m]->n_steps;
    if (h.rounds == 0 || h.rounds > MOST_ROUNDS || data.size != sizeof h + size + ways)
        return po_fail(ctx, PO_INTERNAL, "timing on a GPU: %zu bytes came back", data.size);
    const char *at = data.data + sizeof h + size;
    for (uint32_t m = 0; m < timing->n; m++) { /* what the first process found holds for all */
        memcpy(j->ways[m], at, sizeof(uint32_t) * j->spec->plans[m]->n_steps);
        at += sizeof(uint32_t) * j->spec->plans[m]->n_steps;
    }
    *process = (po_timing_process){.rounds = h.rounds,
                                   .runs = h.runs,
                                   .samples = po_arena_memdup(arena, data.data + sizeof h, size),
                                   .waited = PO_NEW_N(arena, double, (size_t)h.rounds * timing->n),
                                   .spent = po_now() - start};
    return PO_OK;
}

po_status po_cuda_time(po_ctx *ctx, const po_cuda_timing *spec, po_timing *timing,
                       po_timing_work *work) {
    if (spec->n < 1 || spec->n > PO_TIMING_MAX)
        return po_fail(ctx, PO_BAD_USE, "%u plans to time (limit %d)", spec->n, PO_TIMING_MAX);
    po_arena *arena = po_arena_create(ctx);
    job j = {spec, PO_NEW_N(arena, uint32_t *, spec->n), 0, 0};
    for (uint32_t m = 0; m < spec->n; m++) {
        j.ways[m] = po_arena_alloc(arena, sizeof(uint32_t) * (spec->plans[m]->n_steps + 1));
        memset(j.ways[m], 0xff, sizeof(uint32_t) * (spec->plans[m]->n_steps + 1));
    }
    po_timing_spec all = {.threads = 1,
                          .n = spec->n,
                          .seconds = spec->seconds,
                          .seed = spec->seed,
                          .ranking = spec->ranking,
                          .thorough = spec->thorough,
                          .source = time_in_process,
                          .source_user = &j};
    po_status status = po_time_models(ctx, &all, timing, work);
    po_arena_free(arena);
    return status;
}

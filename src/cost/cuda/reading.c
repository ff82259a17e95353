/* A step is timed as copies of itself in a captured graph, with weights of twice the L2 together
 * where memory and 24 copies allow; the median of 9 takes counts. Whole plans are timed as they
 * are, and one that ends its child is passed over. */
#include "cost/cuda/reading.h"

#include "cost/cuda/internal.h"
#include "cost/isolate.h"
#include "cost/timing_internal.h"

#include <math.h>
#include <stdio.h>

enum { MOST_COPIES = 24, TAKES = 9, MOST_TIMES = 64, BATCH_SECONDS = 600 };
static const double launch_aim = 400e-6; /* seconds between two events: of a step */
static const double plan_aim = 3e-3;     /* of a whole plan */

/* Of a step or plan: what it takes, or that it cannot be done here; other failures come back. Its
 * memory goes first, which may end the process. */
static po_status answer(po_ctx *ctx, po_reply *reply, po_arena *own, po_status status,
                        double seconds) {
    po_cuda_reading r;
    memset(&r, 0, sizeof r);
    if (status == PO_UNSUPPORTED) {
        snprintf(r.why, sizeof r.why, "%.*s", (int)sizeof r.why - 1, ctx->error.message);
        po_ctx_clear(ctx);
    } else {
        PO_TRY(status);
        r.seconds = seconds;
    }
    po_arena_free(own);
    po_reply_add(reply, &r, sizeof r);
    return PO_OK;
}

/* --- steps by themselves --- */

/* Numbers that are ordinary as f16, small as bf16 and f32: the power that a GPU draws, and so its
 * clock, goes by the bits that change. Enough for the largest buffer without data. */
static const uint16_t *make_filler(po_arena *arena, const po_cuda_plan *plan) {
    enum { PATTERN = 1 << 20 };
    size_t bytes = 2;
    for (uint32_t b = 0; b < plan->n_buffers; b++)
        if (!plan->buffers[b].data && (size_t)plan->buffers[b].bytes > bytes)
            bytes = (size_t)plan->buffers[b].bytes;
    uint16_t *data = po_arena_alloc(arena, bytes + 2);
    for (size_t i = 0; i < bytes / 2 + 1 && i < PATTERN; i++) {
        uint64_t r = po_random_u64(11, 0, i);
        data[i] = (uint16_t)(0x3400 + (r & 0x7ff) + (r >> 20 & 0x8000));
    }
    for (size_t i = PATTERN; i < bytes / 2 + 1; i++)
        data[i] = data[i - PATTERN];
    return data;
}

/* The step on other buffers: `to` by buffer of the plan. */
static po_cuda_step moved_step(po_arena *arena, const po_cuda_step *s, const uint32_t *to) {
    po_cuda_step c = *s;
    po_cuda_places p = po_cuda_step_places(arena, &c);
    for (uint32_t i = 0; i < p.n; i++)
        if (p.list[i]->buffer != PO_NONE)
            p.list[i]->buffer = to[p.list[i]->buffer];
    return c;
}

/* Which buffers a step has to do with. */
static bool *used_by(po_arena *arena, const po_cuda_plan *plan, const po_cuda_step *s) {
    bool *used = PO_NEW_N(arena, bool, plan->n_buffers + 1);
    po_cuda_step c = *s;
    po_cuda_places p = po_cuda_step_places(arena, &c);
    for (uint32_t i = 0; i < p.n; i++)
        if (p.list[i]->buffer < plan->n_buffers)
            used[p.list[i]->buffer] = true;
    return used;
}

/* The step so many times, one after the other, what has data in a copy for each. */
static po_cuda_plan repeated(po_arena *arena, const po_cuda_plan *plan, const po_cuda_step *step,
                             const uint16_t *filler, uint32_t copies) {
    const bool *used = used_by(arena, plan, step);
    po_cuda_buffer *buffers = PO_NEW_N(arena, po_cuda_buffer, (size_t)plan->n_buffers * copies + 1);
    po_cuda_step *steps = PO_NEW_N(arena, po_cuda_step, copies);
    uint32_t *to = PO_NEW_N(arena, uint32_t, plan->n_buffers + 1), n = 0;
    memset(to, 0xff, sizeof *to * (plan->n_buffers + 1)); /* PO_NONE: not used */
    for (uint32_t c = 0; c < copies; c++) {
        for (uint32_t b = 0; b < plan->n_buffers; b++) {
            if (!used[b] || (c > 0 && !plan->buffers[b].data))
                continue;
            buffers[n] = plan->buffers[b];
            if (!buffers[n].data)
                buffers[n].data = filler;
            to[b] = n++;
        }
        steps[c] = moved_step(arena, step, to);
    }
    return (po_cuda_plan){step->what, n, copies, 0, buffers, steps, NULL};
}

static uint32_t copies_of(const po_cuda *cuda, po_arena *arena, const po_cuda_plan *plan,
                          const po_cuda_step *step) {
    const bool *used = used_by(arena, plan, step);
    double bytes = 0;
    for (uint32_t b = 0; b < plan->n_buffers; b++)
        if (used[b] && plan->buffers[b].data)
            bytes += (double)plan->buffers[b].bytes;
    if (bytes <= 0)
        return 1;
    double n = ceil(2 * (double)cuda->info.l2 / bytes);
    double most = fmax(1, floor((double)cuda->info.memory / 4 / bytes));
    n = fmin(fmin(n, most), MOST_COPIES);
    return n < 2 ? fmin(2, most) >= 2 ? 2 : 1 : (uint32_t)n;
}

static po_status time_step(po_ctx *ctx, po_cuda *cuda, po_arena *arena, const po_cuda_plan *plan,
                           const po_cuda_step *step, const uint16_t *filler, double *seconds) {
    uint32_t copies = copies_of(cuda, arena, plan, step), way = PO_NONE;
    po_arena *scratch = po_arena_create(ctx);
    po_cuda_plan once = repeated(scratch, plan, step, filler, 1);
    po_cuda_ready *r = NULL;
    po_status status = po_cuda_make_ready(ctx, cuda, scratch, &once, &way, &r);
    po_arena_free(scratch);
    PO_TRY(status);
    po_cuda_plan all = repeated(arena, plan, step, filler, copies);
    uint32_t *ways = PO_NEW_N(arena, uint32_t, copies);
    for (uint32_t i = 0; i < copies; i++)
        ways[i] = way;
    PO_TRY(po_cuda_make_ready(ctx, cuda, arena, &all, ways, &r));
    PO_TRY(po_cuda_capture(ctx, arena, r, 1));
    double one = po_cuda_launch_seconds(cuda, r->exec, 1), takes[TAKES];
    one = one < 0 ? one : po_cuda_launch_seconds(cuda, r->exec, 1);
    if (one > 0) {
        double times = fmin(fmax(ceil(launch_aim / one), 1), MOST_TIMES);
        PO_TRY(po_cuda_capture(ctx, arena, r, (uint32_t)times));
        one = po_cuda_launch_seconds(cuda, r->exec, 1);
        for (int i = 0; i < TAKES && one > 0; i++) {
            one = po_cuda_launch_seconds(cuda, r->exec, 1);
            takes[i] = one / times / copies;
        }
    }
    if (one < 0)
        return po_fail(ctx, PO_RUNTIME, "%s failed on %s", step->what, cuda->info.name);
    *seconds = po_median(takes, TAKES);
    return PO_OK;
}

typedef struct steps_job {
    const po_cuda_options *options;
    const po_cuda_plan *plan;
    const uint32_t *which;
    uint32_t n;
} steps_job;

static po_status time_steps(po_ctx *ctx, po_arena *arena, po_reply *reply, void *user) {
    const steps_job *j = user;
    po_cuda *cuda = NULL;
    PO_TRY(po_cuda_open(ctx, arena, j->options, &cuda));
    const uint16_t *filler = make_filler(arena, j->plan);
    for (uint32_t i = 0; i < j->n; i++) {
        po_arena *mine = po_arena_create(ctx);
        double seconds = 0;
        po_status status =
            time_step(ctx, cuda, mine, j->plan, &j->plan->steps[j->which[i]], filler, &seconds);
        PO_TRY(answer(ctx, reply, mine, status, seconds));
    }
    return PO_OK;
}

po_status po_cuda_read_steps(po_ctx *ctx, po_arena *arena, const po_cuda_options *options,
                             const po_cuda_plan *plan, const uint32_t *which, uint32_t n,
                             po_cuda_reading *readings) {
    steps_job j = {options, plan, which, n};
    po_bytes data = {NULL, 0};
    if (n == 0)
        return PO_OK;
    PO_TRY(
        po_isolate(ctx, arena, "timing on a GPU", BATCH_SECONDS + 5.0 * n, time_steps, &j, &data));
    if (data.size != n * sizeof *readings)
        return po_fail(ctx, PO_INTERNAL, "timing on a GPU: %zu bytes came back", data.size);
    memcpy(readings, data.data, data.size);
    return PO_OK;
}

/* --- whole plans --- */

/* Sent first: from here on a failure is one plan's. */
static const uint64_t opened = 1;

/* In the child: those of `which` from `from` on. */
typedef struct plans_job {
    const po_cuda_options *options;
    const po_cuda_plan *const *plans;
    const uint32_t *which;
    uint32_t from, n;
} plans_job;

static po_status time_plan(po_ctx *ctx, po_cuda *cuda, po_arena *arena, const po_cuda_plan *plan,
                           double *seconds) {
    po_cuda_ready *r = NULL;
    double takes[TAKES];
    PO_TRY(po_cuda_make_ready(ctx, cuda, arena, plan, NULL, &r));
    PO_TRY(po_cuda_capture(ctx, arena, r, 1));
    double one = po_cuda_launch_seconds(cuda, r->exec, 2);
    one = one < 0 ? one : po_cuda_launch_seconds(cuda, r->exec, 1);
    uint32_t launches = one > 0 ? (uint32_t)fmin(fmax(ceil(plan_aim / one), 1), MOST_TIMES) : 1;
    for (int i = 0; i < TAKES && one > 0; i++) {
        one = po_cuda_launch_seconds(cuda, r->exec, launches);
        takes[i] = one / launches;
    }
    if (one < 0)
        return po_fail(ctx, PO_RUNTIME, "plan '%s' failed on %s", plan->name, cuda->info.name);
    *seconds = po_median(takes, TAKES);
    return PO_OK;
}

static po_status time_whole(po_ctx *ctx, po_arena *arena, po_reply *reply, void *user) {
    const plans_job *j = user;
    po_cuda *cuda = NULL;
    PO_TRY(po_cuda_open(ctx, arena, j->options, &cuda));
    po_reply_add(reply, &opened, sizeof opened);
    for (uint32_t i = j->from; i < j->n; i++) {
        po_arena *mine = po_arena_create(ctx);
        double seconds = 0;
        po_status status = time_plan(ctx, cuda, mine, j->plans[j->which[i]], &seconds);
        PO_TRY(answer(ctx, reply, mine, status, seconds));
    }
    return PO_OK;
}

po_status po_cuda_read_plans(po_ctx *ctx, po_arena *arena, const po_cuda_options *options,
                             const po_cuda_plan *const *plans, const uint32_t *which, uint32_t n,
                             po_cuda_reading *readings) {
    plans_job j = {options, plans, which, 0, n};
    while (j.from < j.n) {
        po_bytes data = {NULL, 0};
        po_status status = po_isolate(ctx, arena, "timing on a GPU",
                                      BATCH_SECONDS + 20.0 * (j.n - j.from), time_whole, &j, &data);
        if ((status != PO_OK && status != PO_RUNTIME) || data.size < sizeof opened)
            return status != PO_OK ? status
                                   : po_fail(ctx, PO_INTERNAL, "timing on a GPU gave no answer");
        uint32_t got = (uint32_t)((data.size - sizeof opened) / sizeof *readings);
        for (uint32_t i = 0; i < got && j.from < j.n; i++)
            memcpy(&readings[j.from++], data.data + sizeof opened + i * sizeof *readings,
                   sizeof *readings);
        if (status == PO_RUNTIME && j.from < j.n) { /* this one ended the process */
            po_cuda_reading *r = &readings[j.from++];
            snprintf(r->why, sizeof r->why, "%.*s", (int)sizeof r->why - 1, ctx->error.message);
        }
        if (status == PO_RUNTIME)
            po_ctx_clear(ctx);
    }
    return PO_OK;
}

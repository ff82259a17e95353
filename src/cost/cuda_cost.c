#include "cost/cuda_cost.h"

#include "cost/cuda_private.h"
#include "cost/isolate.h"
#include "cost/timing_private.h"

#include <math.h>
#include <stdio.h>

enum { RECORD_LAYOUT = 1, MOST_COPIES = 24, TAKES = 9, MOST_TIMES = 64, BATCH_SECONDS = 600 };
static const double launch_aim = 400e-6; /* seconds between two events: of a step */
static const double plan_aim = 3e-3;     /* of a whole plan */
static const char gpu_kind[] = "cuda gpu", step_kind[] = "cuda step", plan_kind[] = "cuda plan",
                  program_kind[] = "cuda program", pair_kind[] = "cuda pair";

/* The one place where a file says whose readings it has. */
static const po_hash gpu_key = {RECORD_LAYOUT, 0};

/* What of a GPU's description is recorded: no more than readings depend on. */
typedef struct gpu_record {
    char name[128], driver[16], cublas[16], cudnn[16];
    uint32_t arch, sms;
    int64_t memory, shared_block, shared_sm, l2, registers;
    double clock;
} gpu_record;

po_hash po_cuda_cost_key(const po_cuda_cost *cost) {
    const po_cuda_info *i = &cost->info;
    po_hash key = po_hash_str((po_hash){RECORD_LAYOUT, 0}, i->name);
    key = po_hash_str(po_hash_str(po_hash_str(key, i->driver), i->cublas), i->cudnn);
    return po_hash_u64(po_hash_u64(key, i->arch), i->sms);
}

static po_hash with(po_hash key, po_hash more) {
    return po_hash_u64(po_hash_u64(key, more.lo), more.hi);
}

/* --- opening --- */

po_status po_cuda_cost_open(po_ctx *ctx, po_arena *arena, const po_cuda_options *options,
                            po_cache *cache, po_cuda_cost **out) {
    po_cuda_cost *cost = PO_NEW(arena, po_cuda_cost);
    cost->options = *options;
    cost->cache = cache;
    PO_TRY(po_cuda_look(ctx, arena, options, &cost->info));
    if (!cost->info.has_gpu)
        return po_fail(ctx, PO_RUNTIME, "%s", cost->info.missing);
    const po_cuda_info *i = &cost->info;
    gpu_record r = {.arch = i->arch,
                    .sms = i->sms,
                    .memory = i->memory,
                    .shared_block = i->shared_block,
                    .shared_sm = i->shared_sm,
                    .l2 = i->l2,
                    .registers = i->registers,
                    .clock = i->clock};
    memcpy(r.name, i->name, sizeof r.name);
    memcpy(r.driver, i->driver, sizeof r.driver);
    memcpy(r.cublas, i->cublas, sizeof r.cublas);
    memcpy(r.cudnn, i->cudnn, sizeof r.cudnn);
    po_cache_put(cache, gpu_kind, gpu_key, &r, sizeof r);
    *out = cost;
    return PO_OK;
}

po_status po_cuda_cost_replay(po_ctx *ctx, po_arena *arena, const char *path, po_cuda_cost **out) {
    po_cuda_cost *cost = PO_NEW(arena, po_cuda_cost);
    gpu_record r;
    cost->replay = po_arena_strdup(arena, path);
    PO_TRY(po_cache_open_read(ctx, arena, path, &cost->cache));
    if (!po_cache_get_fixed(cost->cache, gpu_kind, gpu_key, &r, sizeof r))
        return po_fail(ctx, PO_BAD_USE, "%s: it has no readings of a GPU", path);
    po_cuda_info *i = &cost->info;
    i->has_gpu = true;
    i->arch = r.arch;
    i->sms = r.sms;
    i->memory = r.memory;
    i->shared_block = r.shared_block;
    i->shared_sm = r.shared_sm;
    i->l2 = r.l2;
    i->registers = r.registers;
    i->clock = r.clock;
    memcpy(i->name, r.name, sizeof r.name);
    memcpy(i->driver, r.driver, sizeof r.driver);
    memcpy(i->cublas, r.cublas, sizeof r.cublas);
    memcpy(i->cudnn, r.cudnn, sizeof r.cudnn);
    *out = cost;
    return PO_OK;
}

/* --- timing steps, in the child --- */

typedef struct job {
    const po_cuda_options *options;
    const po_cuda_plan *plan;
    const uint32_t *which; /* steps to time */
    uint32_t n;
} job;

/* Sent first where a failure may be one plan's: from here on it is. */
static const uint64_t opened = 1;

/* Of each step: seconds, or why there are none. */
typedef struct answer {
    double seconds;
    char why[400];
} answer;

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

static po_status time_steps(po_ctx *ctx, po_arena *arena, po_reply *reply, void *user) {
    const job *j = user;
    po_cuda *cuda = NULL;
    PO_TRY(po_cuda_open(ctx, arena, j->options, &cuda));
    const uint16_t *filler = make_filler(arena, j->plan);
    for (uint32_t i = 0; i < j->n; i++) {
        po_arena *mine = po_arena_create(ctx);
        answer a;
        memset(&a, 0, sizeof a);
        po_status status =
            time_step(ctx, cuda, mine, j->plan, &j->plan->steps[j->which[i]], filler, &a.seconds);
        if (status == PO_UNSUPPORTED) {
            snprintf(a.why, sizeof a.why, "%.*s", (int)sizeof a.why - 1, ctx->error.message);
            po_ctx_clear(ctx);
            a.seconds = -1;
        } else {
            PO_TRY(status);
        }
        po_arena_free(mine);
        po_reply_add(reply, &a, sizeof a);
    }
    return PO_OK;
}

/* --- records --- */

static bool sensible(double seconds) {
    return isfinite(seconds) && seconds > 0;
}

static bool recall(po_cuda_cost *cost, const char *kind, po_hash key, double *seconds) {
    if (!po_cache_get_fixed(cost->cache, kind, key, seconds, sizeof *seconds) ||
        !sensible(*seconds))
        return false;
    cost->recalled++;
    return true;
}

static void keep(po_cuda_cost *cost, const char *kind, po_hash key, double seconds) {
    po_cache_put(cost->cache, kind, key, &seconds, sizeof seconds);
    cost->measured++;
}

#define MISSING "%s has no reading of %s on %s: record it there with --cost record:FILE"

static po_status missing(po_ctx *ctx, const po_cuda_cost *cost, const char *what) {
    return po_fail(ctx, PO_UNSUPPORTED, MISSING, cost->replay, what, cost->info.name);
}

static po_status cost_steps(po_ctx *ctx, po_arena *arena, po_cuda_cost *cost,
                            const po_cuda_plan *plan, double *seconds) {
    po_hash own = po_cuda_cost_key(cost), *keys = PO_NEW_N(arena, po_hash, plan->n_steps + 1);
    uint32_t *which = PO_NEW_N(arena, uint32_t, plan->n_steps + 1), n = 0;
    po_hash_map *first = po_hash_map_create(arena);
    for (uint32_t i = 0; i < plan->n_steps; i++) {
        keys[i] = with(own, po_cuda_step_hash(plan, &plan->steps[i]));
        uint32_t before = po_hash_map_get(first, keys[i]);
        seconds[i] = 0;
        if (before != PO_NONE) /* as that one */
            continue;
        po_hash_map_put(first, keys[i], i);
        if (recall(cost, step_kind, keys[i], &seconds[i]))
            continue;
        if (cost->replay)
            return missing(ctx, cost, po_cuda_step_text(arena, &plan->steps[i]));
        which[n++] = i;
    }
    job j = {&cost->options, plan, which, n};
    po_bytes data = {NULL, 0};
    if (n > 0)
        PO_TRY(po_isolate(ctx, arena, "timing on a GPU", BATCH_SECONDS + 5.0 * n, time_steps, &j,
                          &data));
    if (data.size != n * sizeof(answer))
        return po_fail(ctx, PO_INTERNAL, "timing on a GPU: %zu bytes came back", data.size);
    po_status status = PO_OK;
    for (uint32_t i = 0; i < n; i++) {
        answer a;
        memcpy(&a, data.data + i * sizeof a, sizeof a);
        seconds[which[i]] = a.seconds;
        if (sensible(a.seconds))
            keep(cost, step_kind, keys[which[i]], a.seconds);
        else
            status = po_fail(ctx, PO_UNSUPPORTED, "%s", a.why[0] ? a.why : "a reading of no time");
    }
    PO_TRY(status);
    for (uint32_t i = 0; i < plan->n_steps; i++)
        seconds[i] = seconds[po_hash_map_get(first, keys[i])];
    return PO_OK;
}

po_status po_cuda_cost_steps(po_ctx *ctx, po_cuda_cost *cost, const po_cuda_plan *plan,
                             double *seconds) {
    po_arena *arena = po_arena_create(ctx);
    po_status status = cost_steps(ctx, arena, cost, plan, seconds);
    po_arena_free(arena);
    return status;
}

/* Steps in order, and where each reads and writes: what lies where is part of a plan. */
static po_hash plan_hash(const po_cuda_plan *plan) {
    po_hash h = po_hash_u64((po_hash){RECORD_LAYOUT, 1}, plan->n_steps);
    for (uint32_t i = 0; i < plan->n_steps; i++)
        h = with(h, po_cuda_step_hash(plan, &plan->steps[i]));
    for (uint32_t b = 0; b < plan->n_buffers; b++)
        h = po_hash_u64(h, (uint64_t)plan->buffers[b].bytes);
    return h;
}

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
        answer a;
        memset(&a, 0, sizeof a);
        po_status status = time_plan(ctx, cuda, mine, j->plans[j->which[i]], &a.seconds);
        if (status == PO_UNSUPPORTED) {
            snprintf(a.why, sizeof a.why, "%.*s", (int)sizeof a.why - 1, ctx->error.message);
            po_ctx_clear(ctx);
            a.seconds = 0;
        } else {
            PO_TRY(status);
        }
        po_arena_free(mine);
        po_reply_add(reply, &a, sizeof a);
    }
    return PO_OK;
}

/* Times what `which` names; answers by plan. */
static po_status time_those(po_ctx *ctx, po_arena *arena, plans_job *j, answer *answers) {
    while (j->from < j->n) {
        po_bytes data = {NULL, 0};
        po_status status =
            po_isolate(ctx, arena, "timing on a GPU", BATCH_SECONDS + 20.0 * (j->n - j->from),
                       time_whole, j, &data);
        if ((status != PO_OK && status != PO_RUNTIME) || data.size < sizeof opened)
            return status != PO_OK ? status
                                   : po_fail(ctx, PO_INTERNAL, "timing on a GPU gave no answer");
        uint32_t got = (uint32_t)((data.size - sizeof opened) / sizeof(answer));
        for (uint32_t i = 0; i < got && j->from < j->n; i++)
            memcpy(&answers[j->which[j->from++]], data.data + sizeof opened + i * sizeof(answer),
                   sizeof(answer));
        if (status == PO_RUNTIME && j->from < j->n) { /* this one ended the process */
            answer *a = &answers[j->which[j->from++]];
            snprintf(a->why, sizeof a->why, "%.*s", (int)sizeof a->why - 1, ctx->error.message);
        }
        if (status == PO_RUNTIME)
            po_ctx_clear(ctx);
    }
    return PO_OK;
}

po_status po_cuda_cost_plans(po_ctx *ctx, po_arena *arena, po_cuda_cost *cost,
                             const po_cuda_plan *const *plans, uint32_t n, double *seconds,
                             const char **why) {
    answer *answers = PO_NEW_N(arena, answer, n + 1);
    po_hash *keys = PO_NEW_N(arena, po_hash, n + 1);
    uint32_t *which = PO_NEW_N(arena, uint32_t, n + 1);
    plans_job j = {&cost->options, plans, which, 0, 0};
    po_hash_map *first = po_hash_map_create(arena); /* equal plans have one reading */
    for (uint32_t i = 0; i < n; i++) {
        keys[i] = with(po_cuda_cost_key(cost), plan_hash(plans[i]));
        seconds[i] = 0;
        why[i] = NULL;
        if (po_hash_map_get(first, keys[i]) != PO_NONE)
            continue;
        po_hash_map_put(first, keys[i], i);
        if (recall(cost, plan_kind, keys[i], &seconds[i]))
            continue;
        seconds[i] = 0;
        if (cost->replay)
            why[i] = po_arena_printf(arena, MISSING, cost->replay, plans[i]->name, cost->info.name);
        else
            which[j.n++] = i;
    }
    PO_TRY(time_those(ctx, arena, &j, answers));
    for (uint32_t i = 0; i < j.n; i++) {
        const answer *a = &answers[which[i]];
        if (sensible(a->seconds)) {
            seconds[which[i]] = a->seconds;
            keep(cost, plan_kind, keys[which[i]], a->seconds);
        } else {
            why[which[i]] = po_arena_strdup(arena, a->why[0] ? a->why : "a reading of no time");
        }
    }
    for (uint32_t i = 0; i < n; i++) {
        uint32_t same = po_hash_map_get(first, keys[i]);
        seconds[i] = seconds[same];
        why[i] = why[same];
    }
    return PO_OK;
}

po_status po_cuda_cost_plan(po_ctx *ctx, po_cuda_cost *cost, const po_cuda_plan *plan,
                            double *seconds) {
    po_arena *arena = po_arena_create(ctx);
    const char *why = NULL;
    po_status status = po_cuda_cost_plans(ctx, arena, cost, &plan, 1, seconds, &why);
    if (status == PO_OK && why)
        status = po_fail(ctx, PO_UNSUPPORTED, "%s", why);
    po_arena_free(arena);
    return status;
}

po_status po_cuda_cost_compare(po_ctx *ctx, po_cuda_cost *cost, const po_cuda_plan *before,
                               const po_cuda_plan *after, po_timing *timing) {
    const po_cuda_plan *const plans[2] = {before, after};
    po_hash key = with(with(po_cuda_cost_key(cost), plan_hash(before)), plan_hash(after));
    po_timing both[2];
    if (po_cache_get_fixed(cost->cache, pair_kind, key, timing, sizeof *timing) &&
        sensible(timing->seconds) && sensible(timing->gain)) {
        cost->recalled++;
        return PO_OK;
    }
    if (cost->replay)
        return missing(ctx, cost, after->name);
    const po_cuda_timing spec = {
        .options = &cost->options, .n = 2, .plans = plans, .seed = 1, .thorough = true};
    PO_TRY(po_cuda_time(ctx, &spec, both, NULL));
    *timing = both[1];
    po_cache_put(cost->cache, pair_kind, key, timing, sizeof *timing);
    cost->measured++;
    return PO_OK;
}

/* --- programs --- */

typedef struct program_record {
    double seconds, worst; /* as in po_cuda_candidate */
} program_record;

static po_hash program_key(const po_cuda_cost *cost, const po_cuda_trial *trial,
                           const po_cuda_candidate *c) {
    po_hash key = with(po_cuda_cost_key(cost), po_cuda_program_hash(c->program));
    uint64_t asked = (uint64_t)trial->check | (uint64_t)trial->time << 1 |
                     (uint64_t)trial->cold << 2 | (uint64_t)c->tf32 << 3;
    key = po_hash_u64(po_hash_u64(key, asked), trial->seed);
    return po_hash_bytes(&trial->k, sizeof trial->k, key);
}

static bool recall_program(po_cuda_cost *cost, po_hash key, po_cuda_candidate *c) {
    program_record r;
    if (!po_cache_get_fixed(cost->cache, program_kind, key, &r, sizeof r) || !isfinite(r.seconds) ||
        r.seconds == 0)
        return false;
    c->seconds = r.seconds;
    c->worst = r.worst;
    c->why = r.seconds < 0 ? "it computes something else, as was found before" : NULL;
    cost->recalled++;
    return true;
}

po_status po_cuda_cost_programs(po_ctx *ctx, po_arena *arena, po_cuda_cost *cost,
                                const po_cuda_trial *trial, po_cuda_candidate *candidates,
                                uint32_t n) {
    po_cuda_candidate *open = PO_NEW_N(arena, po_cuda_candidate, n + 1);
    uint32_t *of = PO_NEW_N(arena, uint32_t, n + 1), n_open = 0;
    po_hash_map *first = po_hash_map_create(arena); /* equal programs have one reading */
    po_cuda_trial own = *trial;
    own.options = &cost->options;
    if (!own.meaning && n > 0)
        own.meaning = candidates[0].mu;
    for (uint32_t i = 0; i < n; i++) {
        po_cuda_candidate *c = &candidates[i];
        po_hash key = program_key(cost, trial, c);
        if (po_hash_map_get(first, key) != PO_NONE)
            continue;
        po_hash_map_put(first, key, i);
        if (recall_program(cost, key, c))
            continue;
        c->seconds = c->worst = 0;
        if (cost->replay) {
            c->why = po_arena_printf(arena, "%s has no reading of '%s'", cost->replay, c->mu->name);
            continue;
        }
        of[n_open] = i;
        open[n_open++] = *c;
    }
    PO_TRY(po_cuda_try(ctx, arena, &own, open, n_open));
    for (uint32_t i = 0; i < n_open; i++) {
        po_cuda_candidate *c = &candidates[of[i]];
        *c = open[i];
        program_record r = {c->seconds, c->worst};
        if (c->seconds != 0)
            po_cache_put(cost->cache, program_kind, program_key(cost, trial, c), &r, sizeof r);
        cost->measured += c->seconds != 0;
    }
    for (uint32_t i = 0; i < n; i++) {
        const po_cuda_candidate *same =
            &candidates[po_hash_map_get(first, program_key(cost, trial, &candidates[i]))];
        candidates[i].seconds = same->seconds;
        candidates[i].worst = same->worst;
        candidates[i].why = same->why;
    }
    return PO_OK;
}

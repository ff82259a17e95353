/* Readings by key: a hash of the GPU, its libraries and all that a step, plan or program does, so
 * that equal ones are read once. Under replay nothing is read, and what is not recorded is an error
 * that names it. */
#include "cost/cuda/cost.h"

#include "cost/cuda/reading.h"

#include <math.h>

enum { RECORD_LAYOUT = 1 };
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
                            const po_cuda_info *i, po_cache *cache, po_cuda_cost **out) {
    if (!i->has_gpu)
        return po_fail(ctx, PO_RUNTIME, "%s", i->missing);
    po_cuda_cost *cost = PO_NEW(arena, po_cuda_cost);
    *cost = (po_cuda_cost){.options = *options, .info = *i, .cache = cache};
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

static const char *why_not(const po_cuda_reading *r) {
    return r->why[0] ? r->why : "a reading of no time";
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
    po_cuda_reading *taken = PO_NEW_N(arena, po_cuda_reading, n + 1);
    PO_TRY(po_cuda_read_steps(ctx, arena, &cost->options, plan, which, n, taken));
    po_status status = PO_OK;
    for (uint32_t i = 0; i < n; i++) {
        seconds[which[i]] = taken[i].seconds;
        if (sensible(taken[i].seconds))
            keep(cost, step_kind, keys[which[i]], taken[i].seconds);
        else
            status = po_fail(ctx, PO_UNSUPPORTED, "%s", why_not(&taken[i]));
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

po_status po_cuda_cost_plans(po_ctx *ctx, po_arena *arena, po_cuda_cost *cost,
                             const po_cuda_plan *const *plans, uint32_t n, double *seconds,
                             const char **why) {
    po_cuda_reading *taken = PO_NEW_N(arena, po_cuda_reading, n + 1);
    po_hash own = po_cuda_cost_key(cost), *keys = PO_NEW_N(arena, po_hash, n + 1);
    uint32_t *which = PO_NEW_N(arena, uint32_t, n + 1), n_which = 0;
    po_hash_map *first = po_hash_map_create(arena); /* equal plans have one reading */
    for (uint32_t i = 0; i < n; i++) {
        keys[i] = with(own, plan_hash(plans[i]));
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
            which[n_which++] = i;
    }
    PO_TRY(po_cuda_read_plans(ctx, arena, &cost->options, plans, which, n_which, taken));
    for (uint32_t i = 0; i < n_which; i++) {
        if (sensible(taken[i].seconds)) {
            seconds[which[i]] = taken[i].seconds;
            keep(cost, plan_kind, keys[which[i]], taken[i].seconds);
        } else {
            why[which[i]] = po_arena_strdup(arena, why_not(&taken[i]));
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

static po_hash program_key(po_hash own, const po_cuda_trial *trial, const po_cuda_candidate *c) {
    po_hash key = with(own, po_cuda_program_hash(c->program));
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
    po_hash own = po_cuda_cost_key(cost), *keys = PO_NEW_N(arena, po_hash, n + 1);
    po_cuda_trial here = *trial;
    here.options = &cost->options;
    if (!here.meaning && n > 0)
        here.meaning = candidates[0].mu;
    for (uint32_t i = 0; i < n; i++) {
        po_cuda_candidate *c = &candidates[i];
        keys[i] = program_key(own, trial, c);
        if (po_hash_map_get(first, keys[i]) != PO_NONE)
            continue;
        po_hash_map_put(first, keys[i], i);
        if (recall_program(cost, keys[i], c))
            continue;
        c->seconds = c->worst = 0;
        if (cost->replay) {
            c->why = po_arena_printf(arena, "%s has no reading of '%s'", cost->replay, c->mu->name);
            continue;
        }
        of[n_open] = i;
        open[n_open++] = *c;
    }
    PO_TRY(po_cuda_try(ctx, arena, &here, open, n_open));
    for (uint32_t i = 0; i < n_open; i++) {
        po_cuda_candidate *c = &candidates[of[i]];
        *c = open[i];
        program_record r = {c->seconds, c->worst};
        if (c->seconds != 0)
            po_cache_put(cost->cache, program_kind, keys[of[i]], &r, sizeof r);
        cost->measured += c->seconds != 0;
    }
    for (uint32_t i = 0; i < n; i++) {
        const po_cuda_candidate *same = &candidates[po_hash_map_get(first, keys[i])];
        candidates[i].seconds = same->seconds;
        candidates[i].worst = same->worst;
        candidates[i].why = same->why;
    }
    return PO_OK;
}

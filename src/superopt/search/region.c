/* The search in a plan: what was found is timed against the steps one by one. */
#include "cost/kernels.h"
#include "superopt/plan/plan.h"
#include "superopt/search/search.h"

/* Estimates are off by less: what is so much slower than the best by them is not timed. Partial
 * sums of a large product may take gigabytes. */
static const double worth_timing = 4;

enum { MOST_STATEMENTS = 32 };

static uint32_t statements(const po_mu *mu) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < mu->n_nodes; i++)
        n += mu->nodes[i].kind == PO_MU_STATEMENT;
    return n;
}

static po_status time_found(po_ctx *ctx, po_arena *arena, const po_plan_options *options,
                            po_found *found, uint32_t n) {
    uint32_t isa = po_isa_of_machine(), n_batch = 0;
    po_timed_kernel *batch = PO_NEW_N(arena, po_timed_kernel, n);
    uint32_t *which = PO_NEW_N(arena, uint32_t, n);
    po_hash *key = PO_NEW_N(arena, po_hash, n);
    for (uint32_t i = 0; i < n; i++) {
        po_hash mu = po_mu_hash(found[i].lone);
        key[i] = po_hash_u64(po_hash_u64(options->key, mu.lo), mu.hi);
        key[i] = po_hash_u64(key[i], PO_KERNEL_READING * PO_ISAS + isa);
        if (options->cache && po_cache_get_fixed(options->cache, "search", key[i],
                                                 &found[i].seconds, sizeof found[i].seconds))
            continue;
        which[n_batch] = i;
        batch[n_batch++] = (po_timed_kernel){.mu = found[i].lone};
    }
    PO_TRY(po_time_kernels(ctx, options->cc, isa, batch, n_batch));
    for (uint32_t k = 0; k < n_batch; k++) {
        uint32_t i = which[k];
        found[i].seconds = batch[k].seconds;
        if (options->cache && batch[k].seconds > 0)
            po_cache_put(options->cache, "search", key[i], &found[i].seconds,
                         sizeof found[i].seconds);
    }
    return PO_OK;
}

/* Compares the fastest with float64, and the next where it is wrong; PO_NONE: none is left. */
static po_status fastest(po_ctx *ctx, const po_plan_options *options, const po_mu *naive,
                         po_found *found, uint32_t n, uint32_t *best) {
    *best = PO_NONE;
    for (uint32_t left = n; left > 0; left--) {
        PO_TRY(po_ctx_poll(ctx));
        for (uint32_t i = 0; i < n; i++)
            if (found[i].seconds > 0 &&
                (*best == PO_NONE || found[i].seconds < found[*best].seconds))
                *best = i;
        if (*best == PO_NONE)
            return PO_OK;
        po_search_query look = {naive, &found[*best]};
        po_timed_kernel one = {.mu = found[*best].lone, .check = po_search_queried, .user = &look};
        PO_TRY(po_time_kernels(ctx, options->cc, po_isa_of_machine(), &one, 1));
        if (one.seconds > 0)
            return PO_OK;
        po_log(ctx, "search: computes something else, compiled: %s; %s", found[*best].algebra,
               found[*best].schedule);
        found[*best].seconds = 0;
        *best = PO_NONE;
    }
    return PO_OK;
}

const double po_found_magnifies = 2;

static void take(po_arena *arena, po_plan *plan, const po_found *f, bool exact, uint32_t tried) {
    double flops = 0;
    for (uint32_t i = 0; i < plan->n_steps; i++)
        flops += plan->steps[i].flops;
    po_plan_step *row = PO_NEW(arena, po_plan_step);
    *row = (po_plan_step){.name = po_arena_printf(arena, "found: %s", f->algebra),
                          .schedule = f->schedule,
                          .flops = flops,
                          .bytes = po_plan_traffic(arena, plan->lowered.mu, PO_NONE),
                          .seconds = f->seconds,
                          .estimated = po_plan_estimated_small(f->mu),
                          .tried = tried,
                          .magnifies = exact ? 1 : po_found_magnifies,
                          .made = PO_NONE};
    plan->mu = f->mu;
    plan->small = plan->wide = NULL;
    plan->packed = f->packed;
    plan->n_packed = f->n_packed;
    plan->steps = row;
    plan->n_steps = 1;
    plan->failed = NULL;
}

po_status po_search_region(po_ctx *ctx, po_arena *arena, const po_plan_options *options,
                           po_plan *plan) {
    po_search_options search = po_search_defaults();
    search.exact =
        options->exact || (options->magnifies > 0 && options->magnifies < po_found_magnifies);
    po_search_counts counts;
    po_found *found = PO_NEW_N(arena, po_found, search.keep);
    uint32_t n = 0, best = PO_NONE;
    double now = 0, start = po_now();
    if (statements(plan->lowered.mu) > MOST_STATEMENTS)
        return PO_OK;
    po_status status = po_search(ctx, arena, plan->lowered.mu, &search, &counts, found, &n);
    if (status == PO_UNSUPPORTED) {
        po_log(ctx, "%s", ctx->error.message);
        po_ctx_clear(ctx);
        return PO_OK;
    }
    PO_TRY(status);
    while (n > 1 && found[n - 1].estimate > worth_timing * found[0].estimate)
        n--;
    double seconds = po_now() - start;
    po_log(ctx,
           "search: %.2f s, %.1f million states a second (%llu), %u forms, %u programs, %u plans, "
           "%u refused; left out %llu by form, %llu by shape, %llu by bound",
           seconds, (double)counts.states / counts.seconds / 1e6, (unsigned long long)counts.states,
           counts.forms, counts.skeletons, counts.checked, counts.wrong,
           (unsigned long long)counts.by_form, (unsigned long long)counts.by_shape,
           (unsigned long long)counts.by_bound);
    if (n == 0 || !options->measure)
        return PO_OK;
    status = time_found(ctx, arena, options, found, n);
    if (status == PO_UNSUPPORTED || status == PO_RUNTIME) {
        po_ctx_clear(ctx);
        return PO_OK;
    }
    PO_TRY(status);
    for (uint32_t i = 0; i < plan->n_steps; i++)
        now += plan->steps[i].seconds;
    for (uint32_t i = 0; i < n; i++) {
        po_log(ctx, "search: %.3f ms (estimate %.3f): %s; %s", 1e3 * found[i].seconds,
               1e3 * found[i].estimate, found[i].algebra, found[i].schedule);
    }
    PO_TRY(fastest(ctx, options, plan->lowered.mu, found, n, &best));
    if (best != PO_NONE && (now <= 0 || found[best].seconds < now))
        take(arena, plan, &found[best], search.exact, n);
    return PO_OK;
}

/* The search from end to end: the algebra's programs, loops for them, and each plan compared with
 * the naive muGraph at shrunk shapes, in parallel, before it counts as found. */
#include "base/tasks.h"
#include "superopt/gpu/internal.h"

#include <unistd.h>

po_search_options po_search_defaults(void) {
    long first = sysconf(_SC_LEVEL1_DCACHE_SIZE), second = sysconf(_SC_LEVEL2_CACHE_SIZE);
    return (po_search_options){.keep = 12,
                               .algebra = 2000000,
                               .schedules = 400000,
                               .cache1 = first > 0 ? first : 32 << 10,
                               .cache2 = second > 0 ? second : 512 << 10};
}

static po_mu_type half_of(const po_mu *mu) {
    for (uint32_t i = 0; i < mu->n_tensors; i++)
        if (mu->tensors[i].type != PO_MU_F32)
            return mu->tensors[i].type;
    return PO_MU_F32;
}

po_search_options po_search_for_gpu(const po_gpu *gpu, const po_mu *naive, bool tf32) {
    po_mu_type half = half_of(naive);
    po_search_options options = po_search_defaults();
    options.gpu = gpu;
    options.math = half == PO_MU_F16    ? PO_GPU_F16
                   : half == PO_MU_BF16 ? PO_GPU_BF16
                   : tf32               ? PO_GPU_TF32
                                        : PO_GPU_F32;
    options.schedules = 3000000;
    options.keep = 24;
    return options;
}

/* --- the search --- */

/* The plan at shrunk shapes: loops keep several chunks, and tails. */
static search_plan shrunk_plan(const search_problem *q, const search_plan *plan) {
    search_plan to = *plan;
    for (uint32_t i = 0; i < to.n; i++) {
        search_kernel *k = &to.kernel[i];
        for (uint32_t g = 0; g < k->n_grid; g++) {
            int64_t extent = q->extent[k->grid[g]], half = extent > 1 ? (extent + 1) / 2 : 1;
            k->chunk[g] = k->chunk[g] < half ? k->chunk[g] : half;
        }
        if (k->loop != PO_NONE) {
            int64_t third = (q->extent[k->loop] + 2) / 3;
            k->step = k->step < third ? k->step : third;
            k->parts = k->parts > 1 ? 2 : 0;
        }
    }
    return to;
}

static void emit(const search_problem *p, const search_plan *plan, po_schedule *to) {
    if (p->gpu)
        gpu_emit(p, plan, to);
    else
        search_emit(p, plan, to);
}

/* Plans at short shapes, each to be compared with the naive muGraph there. */
typedef struct short_plan {
    po_schedule s;
    const char *form;           /* why it needs no comparison: it is of another form; NULL */
    char wrong[PO_MESSAGE_MAX]; /* what is; "" where nothing is */
} short_plan;

typedef struct checking {
    const search_problem *p;
    const search_reference *reference;
    short_plan *plans;
} checking;

/* What concerns the plan alone refuses it. */
static po_status refused(po_ctx *ctx, po_status status, short_plan *plan) {
    if (status != PO_BAD_INPUT && status != PO_UNSUPPORTED)
        return status;
    memcpy(plan->wrong, ctx->error.message, sizeof plan->wrong);
    po_ctx_clear(ctx);
    return PO_OK;
}

static po_status check_one(po_ctx *ctx, void *user, uint32_t i) {
    const checking *c = user;
    short_plan *plan = &c->plans[i];
    if (plan->form)
        return PO_OK;
    return refused(ctx,
                   search_same_as(ctx, c->reference, plan->s.mu, c->p->gpu ? NULL : plan->s.packed,
                                  plan->s.n_packed, PO_SHARED_BYTES),
                   plan);
}

static po_status check_plans(const search_problem *p, const search_plan *plans, uint32_t n,
                             short_plan *small) {
    const search_problem *q = search_shrunk(p);
    search_reference *reference = NULL;
    for (uint32_t i = 0; i < n; i++) {
        const search_skeleton *s = plans[i].skeleton;
        const search_plan shrunk = shrunk_plan(q, &plans[i]);
        if (!s->naive && search_exact_form(p, s) != p->exact_target) {
            small[i].form = "of another form";
            continue;
        }
        po_schedule_start(&small[i].s, p->arena, q->naive, false);
        emit(q, &shrunk, &small[i].s);
    }
    if (n == 0)
        return PO_OK;
    short_plan none = {.form = NULL};
    PO_TRY(refused(p->ctx, search_reference_of(p->ctx, p->arena, q->naive, &reference), &none));
    for (uint32_t i = 0; i < n && none.wrong[0]; i++)
        memcpy(small[i].wrong, none.wrong, sizeof none.wrong);
    checking c = {p, reference, small};
    return none.wrong[0] ? PO_OK : po_tasks_run(p->ctx, n, check_one, &c);
}

static bool is_right(const search_problem *p, const search_plan *plan, const short_plan *small) {
    if (!small->form && !small->wrong[0])
        return true;
    po_text text;
    po_text_init(&text, p->arena);
    search_tell_skeleton(p, plan->skeleton, &text);
    if (small->form) {
        po_log(p->ctx, "search: refused, %s: %s", small->form, text.data);
        return false;
    }
    po_text_puts(&text, "; ");
    search_tell_plan(p, plan, &text);
    po_log(p->ctx, "search: refused %s: %s", text.data, small->wrong);
    return false;
}

/* Drops programs that are wrong, or lose digits, whatever their loops: they would take the place of
 * others. */
static po_status check_programs(const search_problem *p, search_skeleton *skeletons, uint32_t *n,
                                po_search_counts *counts) {
    search_plan *plans = PO_NEW_N(p->arena, search_plan, *n + 1);
    short_plan *small = PO_NEW_N(p->arena, short_plan, *n + 1);
    uint32_t kept = 0;
    for (uint32_t i = 0; i < *n; i++) {
        plans[i] = (search_plan){.skeleton = &skeletons[i], .number = i, .n = 1};
        plans[i].kernel[0] = (search_kernel){.root = skeletons[i].n - 1, .loop = PO_NONE};
    }
    PO_TRY(check_plans(p, plans, *n, small));
    for (uint32_t i = 0; i < *n; i++) {
        if (is_right(p, &plans[i], &small[i]))
            skeletons[kept++] = skeletons[i];
        else
            counts->wrong++;
    }
    *n = kept;
    return PO_OK;
}

po_status po_search(po_ctx *ctx, po_arena *arena, const po_mu *naive,
                    const po_search_options *options, po_search_counts *counts, po_found *found,
                    uint32_t *n_found) {
    enum { SKELETONS = 12 };
    search_problem *p = PO_NEW(arena, search_problem);
    *counts = (po_search_counts){0};
    *n_found = 0;
    PO_TRY(search_problem_of(ctx, arena, naive, options->gpu != NULL, p));
    p->cache1 = options->cache1;
    p->cache2 = options->cache2;
    p->gpu = options->gpu;
    p->math = options->math;
    p->half = half_of(naive);
    p->strict = options->exact;
    if (!search_admits(p, SEARCH_LAW_SHORT) && p->math == PO_GPU_TF32)
        p->math = PO_GPU_F32;
    search_skeleton *skeletons = PO_NEW_N(arena, search_skeleton, SKELETONS);
    search_plan *plans = PO_NEW_N(arena, search_plan, options->keep);
    double start = po_now();
    uint32_t n = 0;
    if (p->plain_target != PO_NONE && p->exact_target != PO_NONE &&
        search_admits(p, SEARCH_LAW_ALGEBRA))
        n = search_algebra(p, options, counts, skeletons, SKELETONS - 1);
    if (search_admits(p, SEARCH_LAW_STEPS) && search_naive(p, &skeletons[n]))
        n++;
    const double checks = po_now();
    if (!p->gpu)
        PO_TRY(check_programs(p, skeletons, &n, counts));
    start += po_now() - checks;
    n = search_schedules(p, skeletons, n, options, counts, plans, options->keep);
    counts->seconds = po_now() - start;
    PO_TRY(po_ctx_poll(ctx));
    short_plan *small = PO_NEW_N(arena, short_plan, n + 1);
    PO_TRY(check_plans(p, plans, n, small));
    counts->checked = n;
    for (uint32_t i = 0; i < n; i++) {
        if (!is_right(p, &plans[i], &small[i])) {
            counts->wrong++;
            continue;
        }
        po_found *f = &found[(*n_found)++];
        po_schedule s, lone;
        po_schedule_start(&s, arena, naive, false);
        emit(p, &plans[i], &s);
        const uint32_t *tensor = NULL;
        po_schedule_start(&lone, arena, naive, true);
        if (!p->gpu)
            tensor = search_emit(p, &plans[i], &lone);
        else
            PO_TRY(po_mu_check(ctx, s.mu, GPU_SHARED));
        po_text algebra, schedule;
        po_text_init(&algebra, arena);
        po_text_init(&schedule, arena);
        search_tell_skeleton(p, plans[i].skeleton, &algebra);
        search_tell_plan(p, &plans[i], &schedule);
        *f = (po_found){.algebra = algebra.data,
                        .schedule = schedule.data,
                        .mu = s.mu,
                        .packed = s.packed,
                        .n_packed = s.n_packed,
                        .lone = p->gpu ? NULL : lone.mu,
                        .lone_tensor = tensor,
                        .estimate = plans[i].seconds,
                        .problem = p,
                        .plan = &plans[i]};
    }
    return PO_OK;
}

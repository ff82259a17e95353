#include "superopt/gpu_private.h"

#include "mugraph/eval.h"

#include <math.h>
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
    return options;
}

/* --- the same program? --- */

typedef struct ports {
    uint32_t n[3]; /* INPUT, OUTPUT, WEIGHT */
    int64_t *count[3];
} ports;

static const po_mu_place places[3] = {PO_MU_INPUT, PO_MU_OUTPUT, PO_MU_WEIGHT};

static ports ports_of(po_arena *arena, const po_mu *mu) {
    ports p = {{0}, {NULL}};
    for (uint32_t k = 0; k < 3; k++) {
        for (uint32_t i = 0; i < mu->n_tensors; i++)
            if (mu->tensors[i].place == places[k] && mu->tensors[i].number >= p.n[k])
                p.n[k] = mu->tensors[i].number + 1;
        p.count[k] = PO_NEW_N(arena, int64_t, p.n[k] + 1);
        for (uint32_t i = 0; i < mu->n_tensors; i++) {
            const po_mu_tensor *t = &mu->tensors[i];
            if (t->place == places[k])
                p.count[k][t->number] = po_mu_elements(t);
        }
    }
    return p;
}

/* By element of the packed weight: that of the weight, or -1. */
static int64_t *sources(po_arena *arena, const po_packing *k, int64_t *count) {
    int64_t n = 1, stride[PO_PACK_MAX];
    for (uint32_t i = k->rank; i-- > 0;) {
        stride[i] = n;
        n *= k->dims[i];
    }
    int64_t *from = PO_NEW_N(arena, int64_t, n);
    *count = n;
    for (int64_t e = 0; e < n; e++) {
        /* Index of the transposed, joined to `merged`, cut to `length`. */
        int64_t flat = 0, at = 0, rest;
        for (uint32_t i = 0; i < k->rank; i++)
            flat = flat * k->dims[k->perm[i]] + e / stride[k->perm[i]] % k->dims[k->perm[i]];
        int64_t below = 1, index[PO_PACK_MAX];
        rest = flat;
        for (uint32_t i = k->merged_rank; i-- > 0;) {
            index[i] = rest % k->merged[i];
            rest /= k->merged[i];
        }
        bool in = true;
        for (uint32_t i = k->merged_rank; i-- > 0;) {
            in &= index[i] < k->length[i];
            at += index[i] * below;
            below *= k->length[i];
        }
        from[e] = in ? at : -1;
    }
    return from;
}

typedef struct comparing {
    po_ctx *ctx;
    po_arena *arena;
    const po_mu *a, *b;
    const po_packed *packed;
    uint32_t n_packed;
    ports pa, pb;
    int64_t **from; /* by WEIGHT of b: sources, or NULL */
} comparing;

static po_status differ(const comparing *c, const char *how, uint32_t output, int64_t element) {
    return po_fail(c->ctx, PO_BAD_INPUT,
                   "muGraph '%s' computes something else than '%s': %s, output %u, element %lld",
                   c->b->name, c->a->name, how, output, (long long)element);
}

static uint32_t weight_of(const comparing *c, uint32_t number) {
    return c->packed ? c->packed[number].weight : number;
}

static po_status fields(const comparing *c, uint64_t seed, bool *said) {
    po_arena *arena = po_arena_child(c->arena);
    po_mu_residue **values[3], **out = PO_NEW_N(arena, po_mu_residue *, c->pa.n[1] + 1);
    for (uint32_t k = 0; k < 3; k++) {
        values[k] = PO_NEW_N(arena, po_mu_residue *, c->pa.n[k] + 1);
        for (uint32_t i = 0; i < c->pa.n[k]; i++) {
            values[k][i] = PO_NEW_N(arena, po_mu_residue, c->pa.count[k][i]);
            for (int64_t e = 0; e < c->pa.count[k][i] && k != 1; e++)
                values[k][i][e] = po_mu_residue_random(seed, 16 * k + i, (uint64_t)e);
        }
    }
    po_mu_residue **packed = PO_NEW_N(arena, po_mu_residue *, c->pb.n[2] + 1);
    for (uint32_t i = 0; i < c->pb.n[2]; i++) {
        packed[i] = values[2][weight_of(c, i)];
        if (!c->from[i])
            continue;
        packed[i] = PO_NEW_N(arena, po_mu_residue, c->pb.count[2][i]);
        for (int64_t e = 0; e < c->pb.count[2][i]; e++)
            packed[i][e] =
                c->from[i][e] < 0 ? po_mu_residue_of(0) : values[2][weight_of(c, i)][c->from[i][e]];
    }
    for (uint32_t i = 0; i < c->pa.n[1]; i++)
        out[i] = PO_NEW_N(arena, po_mu_residue, c->pa.count[1][i]);
    const po_mu_residue *const *in = (const po_mu_residue *const *)values[0];
    po_status status =
        po_mu_eval_mod(c->ctx, c->a, in, (const po_mu_residue *const *)values[2], values[1], seed);
    if (status == PO_OK)
        status = po_mu_eval_mod(c->ctx, c->b, in, (const po_mu_residue *const *)packed, out, seed);
    *said = status == PO_OK;
    if (status == PO_UNSUPPORTED) {
        po_ctx_clear(c->ctx);
        status = PO_OK;
    }
    for (uint32_t i = 0; i < c->pa.n[1] && *said && status == PO_OK; i++)
        for (int64_t e = 0; e < c->pa.count[1][i] && status == PO_OK; e++)
            if (!po_mu_residue_equal(values[1][i][e], out[i][e]))
                status = differ(c, "over finite fields", i, e);
    po_arena_free(arena);
    return status;
}

static po_status floats(const comparing *c, uint64_t seed, double scale) {
    static const double tolerance = 1e-10;
    po_arena *arena = po_arena_child(c->arena);
    double **values[3], **out = PO_NEW_N(arena, double *, c->pa.n[1] + 1);
    double **size = PO_NEW_N(arena, double *, c->pa.n[1] + 1);
    for (uint32_t k = 0; k < 3; k++) {
        values[k] = PO_NEW_N(arena, double *, c->pa.n[k] + 1);
        for (uint32_t i = 0; i < c->pa.n[k]; i++) {
            values[k][i] = PO_NEW_N(arena, double, c->pa.count[k][i]);
            for (int64_t e = 0; e < c->pa.count[k][i] && k != 1; e++)
                values[k][i][e] = (k ? 1 : scale) * po_random_normal(seed, 16 * k + i, (uint64_t)e);
        }
    }
    double **packed = PO_NEW_N(arena, double *, c->pb.n[2] + 1);
    for (uint32_t i = 0; i < c->pb.n[2]; i++) {
        packed[i] = values[2][weight_of(c, i)];
        if (!c->from[i])
            continue;
        packed[i] = PO_NEW_N(arena, double, c->pb.count[2][i]);
        for (int64_t e = 0; e < c->pb.count[2][i]; e++)
            packed[i][e] = c->from[i][e] < 0 ? 0 : values[2][weight_of(c, i)][c->from[i][e]];
    }
    for (uint32_t i = 0; i < c->pa.n[1]; i++) {
        out[i] = PO_NEW_N(arena, double, c->pa.count[1][i]);
        size[i] = PO_NEW_N(arena, double, c->pa.count[1][i]);
    }
    const double *const *in = (const double *const *)values[0];
    po_status status =
        po_mu_eval(c->ctx, c->a, in, (const double *const *)values[2], values[1], size);
    if (status == PO_OK)
        status = po_mu_eval(c->ctx, c->b, in, (const double *const *)packed, out, NULL);
    for (uint32_t i = 0; i < c->pa.n[1] && status == PO_OK; i++)
        for (int64_t e = 0; e < c->pa.count[1][i] && status == PO_OK; e++) {
            double x = values[1][i][e], y = out[i][e];
            if (x != y && !(isnan(x) && isnan(y)) && !(fabs(x - y) <= tolerance * size[i][e]))
                status = differ(c, scale > 1 ? "in float64, large inputs" : "in float64", i, e);
        }
    po_arena_free(arena);
    return status;
}

static po_status same_borders(const comparing *c) {
    for (uint32_t k = 0; k < 3; k++) {
        for (uint32_t i = 0; i < c->pb.n[k] && k < 2; i++)
            if (i >= c->pa.n[k] || c->pa.count[k][i] != c->pb.count[k][i])
                return differ(c, k ? "another output" : "another input", i, 0);
        for (uint32_t i = 0; i < c->pb.n[k] && k == 2; i++)
            if (weight_of(c, i) >= c->pa.n[2] ||
                (!c->packed && c->pb.count[2][i] != c->pa.count[2][i]))
                return differ(c, "another weight", i, 0);
    }
    return c->pb.n[1] == c->pa.n[1] ? PO_OK : differ(c, "another output", 0, 0);
}

enum { SEEDS = 2, MOST_SEEDS = 6 };

/* once: at true shapes, where the fields would take long. */
static po_status same(po_ctx *ctx, const po_mu *reference, const po_mu *candidate,
                      const po_packed *packed, uint32_t n_packed, int64_t shared_limit, bool once) {
    PO_TRY(po_mu_check(ctx, candidate, shared_limit));
    comparing c = {.ctx = ctx,
                   .arena = po_arena_create(ctx),
                   .a = reference,
                   .b = candidate,
                   .packed = packed,
                   .n_packed = n_packed};
    c.pa = ports_of(c.arena, reference);
    c.pb = ports_of(c.arena, candidate);
    po_status status =
        packed && c.pb.n[2] != n_packed ? differ(&c, "other weights", 0, 0) : same_borders(&c);
    c.from = PO_NEW_N(c.arena, int64_t *, c.pb.n[2] + 1);
    for (uint32_t i = 0; i < n_packed && packed && status == PO_OK; i++) {
        int64_t count;
        c.from[i] = sources(c.arena, &packed[i].packing, &count);
        if (count != c.pb.count[2][i])
            status = differ(&c, "a weight of another size", i, 0);
    }
    uint32_t said = 0;
    for (uint64_t seed = 1; seed <= MOST_SEEDS && said < SEEDS && !once && status == PO_OK;
         seed++) {
        bool one;
        status = fields(&c, seed, &one);
        said += one;
    }
    if (status == PO_OK && !once && said < SEEDS)
        status = differ(&c, "the finite fields say nothing", 0, 0);
    static const double scales[] = {1, 40};
    for (uint32_t i = 0; i < (once ? 1 : 2) && status == PO_OK; i++)
        status = floats(&c, 7 + i, scales[i]);
    po_arena_free(c.arena);
    return status;
}

po_status po_search_same(po_ctx *ctx, const po_mu *reference, const po_mu *candidate,
                         const po_packed *packed, uint32_t n_packed, int64_t shared_limit) {
    return same(ctx, reference, candidate, packed, n_packed, shared_limit, false);
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

enum { SHARED_LIMIT = 4 << 20 };

static void emit(const search_problem *p, const search_plan *plan, po_schedule *to) {
    if (p->gpu)
        gpu_emit(p, plan, to);
    else
        search_emit(p, plan, to);
}

static po_status check_plan(const search_problem *p, const search_problem *q,
                            const search_plan *plan, po_search_counts *counts, bool *good) {
    search_plan small = shrunk_plan(q, plan);
    po_schedule s;
    counts->checked++;
    *good = plan->skeleton->naive || search_exact_form(p, plan->skeleton) == p->exact_target;
    if (!*good) {
        counts->wrong++;
        po_text text;
        po_text_init(&text, p->arena);
        search_tell_skeleton(p, plan->skeleton, &text);
        po_log(p->ctx, "search: refused, of another form: %s", text.data);
        return PO_OK;
    }
    po_schedule_start(&s, p->arena, q->naive, false);
    emit(q, &small, &s);
    po_status status =
        po_search_same(p->ctx, q->naive, s.mu, p->gpu ? NULL : s.packed, s.n_packed, SHARED_LIMIT);
    if (status == PO_BAD_INPUT || status == PO_UNSUPPORTED) {
        *good = false;
        counts->wrong++;
        po_text text;
        po_text_init(&text, p->arena);
        search_tell_skeleton(p, plan->skeleton, &text);
        po_text_puts(&text, "; ");
        search_tell_plan(p, plan, &text);
        po_log(p->ctx, "search: refused %s: %s", text.data, p->ctx->error.message);
        po_ctx_clear(p->ctx);
        return PO_OK;
    }
    return status;
}

po_status po_search(po_ctx *ctx, po_arena *arena, const po_mu *naive,
                    const po_search_options *options, po_search_counts *counts, po_found *found,
                    uint32_t *n_found) {
    enum { SKELETONS = 12 };
    search_problem p;
    *counts = (po_search_counts){0};
    *n_found = 0;
    PO_TRY(search_problem_of(ctx, arena, naive, options->gpu != NULL, &p));
    p.cache1 = options->cache1;
    p.cache2 = options->cache2;
    p.gpu = options->gpu;
    p.math = options->math;
    p.half = half_of(naive);
    search_problem *q = search_shrunk(&p);
    search_skeleton *skeletons = PO_NEW_N(arena, search_skeleton, SKELETONS);
    search_plan *plans = PO_NEW_N(arena, search_plan, options->keep);
    double start = po_now();
    uint32_t n = 0;
    if (p.plain_target != PO_NONE && p.exact_target != PO_NONE)
        n = search_algebra(&p, options, counts, skeletons, p.gpu ? SKELETONS - 1 : SKELETONS);
    if (p.gpu && search_naive(&p, &skeletons[n]))
        n++;
    n = search_schedules(&p, skeletons, n, options, counts, plans, options->keep);
    counts->seconds = po_now() - start;
    for (uint32_t i = 0; i < n; i++) {
        bool good;
        PO_TRY(check_plan(&p, q, &plans[i], counts, &good));
        if (!good)
            continue;
        po_found *f = &found[(*n_found)++];
        po_schedule s, lone;
        po_schedule_start(&s, arena, naive, false);
        emit(&p, &plans[i], &s);
        const uint32_t *tensor = NULL;
        po_schedule_start(&lone, arena, naive, true);
        if (!p.gpu)
            tensor = search_emit(&p, &plans[i], &lone);
        else
            PO_TRY(po_mu_check(ctx, s.mu, GPU_SHARED));
        po_text algebra, schedule;
        po_text_init(&algebra, arena);
        po_text_init(&schedule, arena);
        search_tell_skeleton(&p, plans[i].skeleton, &algebra);
        search_tell_plan(&p, &plans[i], &schedule);
        *f = (po_found){.algebra = algebra.data,
                        .schedule = schedule.data,
                        .mu = s.mu,
                        .packed = s.packed,
                        .n_packed = s.n_packed,
                        .lone = p.gpu ? NULL : lone.mu,
                        .lone_tensor = tensor,
                        .estimate = plans[i].seconds};
    }
    return PO_OK;
}

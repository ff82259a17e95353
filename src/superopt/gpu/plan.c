/* Each part is searched, cut in two where the search does not take it, and what was found is put
 * together as candidates: the best of every part, and others that differ in one. Plans are kept by
 * muGraph, since layers repeat. */
#include "superopt/gpu/plan.h"

#include "superopt/gpu/internal.h"
#include "superopt/gpu/join.h"

enum { KEEP = 24, ALTERNATIVES = 12 };

/* A part, and in which ways it can be worked. */
typedef struct planned {
    const po_mu_part *part;
    po_found *found;
    uint32_t n_found;
} planned;

typedef struct planning {
    po_ctx *ctx;
    po_arena *arena;
    const po_mu *naive;
    const po_gpu *gpu;
    const po_gpu_options *options;
    planned *list;
    uint32_t n, cap;
    planned *done; /* what was searched for, by steps */
    uint32_t n_done, cap_done;
    po_hash_map *known;
} planning;

double po_gpu_bound(const po_mu *naive, const po_gpu *gpu, bool tf32) {
    po_mu_cost cost;
    double bytes = 0;
    bool half = false;
    po_mu_cost_of(naive, &cost);
    for (uint32_t i = 0; i < naive->n_tensors; i++) {
        const po_mu_tensor *t = &naive->tensors[i];
        half |= t->type != PO_MU_F32;
        if (t->place == PO_MU_INPUT || t->place == PO_MU_OUTPUT || t->place == PO_MU_WEIGHT)
            bytes += (double)(po_mu_elements(t) * po_mu_bytes(t->type));
    }
    double peak = po_gpu_peak(gpu, half ? PO_GPU_F16 : tf32 ? PO_GPU_TF32 : PO_GPU_F32, true);
    double work = cost.flops / peak, moved = bytes / gpu->dram;
    return work > moved ? work : moved;
}

/* --- parts --- */

/* Searches for programs of a part; none where the search does not read it. */
static po_status search_part(planning *p, planned *to) {
    const po_mu_part *part = to->part;
    if (!part->mu)
        return PO_OK;
    po_search_options options = po_search_for_gpu(p->gpu, part->mu, p->options->tf32);
    options.exact = p->options->exact;
    po_search_counts counts;
    to->found = PO_NEW_N(p->arena, po_found, options.keep);
    po_status status =
        po_search(p->ctx, p->arena, part->mu, &options, &counts, to->found, &to->n_found);
    if (status == PO_UNSUPPORTED) {
        po_log(p->ctx, "%s", p->ctx->error.message);
        po_ctx_clear(p->ctx);
        to->n_found = 0;
        return PO_OK;
    }
    PO_TRY(status);
    po_log(p->ctx,
           "search for %s: %.2f s, %llu states, %u forms, %u programs, %u plans, %u refused, best "
           "%.1f us",
           p->gpu->name, counts.seconds, (unsigned long long)counts.states, counts.forms,
           counts.skeletons, counts.checked, counts.wrong,
           to->n_found ? 1e6 * to->found[0].estimate : 0);
    return PO_OK;
}

/* The same steps have the same borders. */
static po_status search_once(planning *p, planned *to) {
    po_hash key = po_hash_u64((po_hash){5, 5}, to->part->target);
    for (uint32_t k = 0; k < to->part->n_steps; k++)
        key = po_hash_u64(key, to->part->steps[k]);
    uint32_t before = po_hash_map_get(p->known, key);
    if (before != PO_NONE) {
        to->found = p->done[before].found;
        to->n_found = p->done[before].n_found;
        return PO_OK;
    }
    PO_TRY(search_part(p, to));
    po_hash_map_put(p->known, key, p->n_done);
    PO_PUSH(p->arena, p->done, p->n_done, p->cap_done, *to);
    return PO_OK;
}

/* Cuts a part in two: at the least of what its steps pass on, of those the one nearest to the
 * middle. */
static void halve(const planning *p, const po_mu_part *part, bool *more) {
    uint32_t best = PO_NONE, best_away = 0;
    int64_t least = 0;
    for (uint32_t i = 0; i + 1 < part->n_steps; i++)
        for (uint32_t n = p->naive->nodes[part->steps[i]].first; n != PO_NONE;
             n = p->naive->nodes[n].next) {
            uint32_t t = p->naive->nodes[n].statement.out.tensor, twice = 2 * (i + 1);
            int64_t size = po_mu_elements(&p->naive->tensors[t]);
            uint32_t away = twice > part->n_steps ? twice - part->n_steps : part->n_steps - twice;
            if (p->naive->tensors[t].place != PO_MU_DEVICE || more[t] || t == part->target ||
                (best != PO_NONE && (size > least || (size == least && away >= best_away))))
                continue;
            best = t;
            best_away = away;
            least = size;
        }
    if (best != PO_NONE) {
        more[best] = true;
        return;
    }
    for (uint32_t i = 0; i < part->n_steps; i++) /* all of them lie in memory already */
        for (uint32_t n = p->naive->nodes[part->steps[i]].first; n != PO_NONE;
             n = p->naive->nodes[n].next)
            more[p->naive->nodes[n].statement.out.tensor] = true;
}

/* Parts, as large as the search takes them; those that it does not are cut in two until it does. */
static po_status plan_parts(planning *p) {
    bool *more = PO_NEW_N(p->arena, bool, p->naive->n_tensors + 1);
    for (bool again = true; again;) {
        po_mu_part *parts;
        uint32_t n;
        part_all(p->arena, p->naive, more, false, &parts, &n);
        again = false;
        p->n = 0;
        for (uint32_t i = 0; i < n; i++) {
            planned one = {.part = &parts[i]};
            PO_TRY(search_once(p, &one));
            if (!one.n_found && parts[i].n_steps > 1) {
                halve(p, &parts[i], more);
                again = true;
                break;
            }
            PO_PUSH(p->arena, p->list, p->n, p->cap, one);
        }
    }
    return PO_OK;
}

/* --- together --- */

static uint32_t border_of(po_mu *to, const po_mu *naive, uint32_t tensor) {
    const po_mu_tensor *t = &naive->tensors[tensor];
    uint32_t id = po_mu_add_tensor(to, t->name, t->place, t->rank, t->dims);
    to->tensors[id].type = t->type;
    to->tensors[id].number = t->number;
    to->tensors[id].table = t->table;
    return id;
}

/* Whether two parts have the same ways to be worked: the projections of a layer. */
static bool is_alike(const planned *a, const planned *b) {
    if (a->n_found != b->n_found)
        return false;
    for (uint32_t i = 0; i < a->n_found; i++)
        if (a->found[i].estimate != b->found[i].estimate)
            return false;
    return true;
}

/* The best of every part; those like `other` (PO_NONE: none) in their way `which`. */
static po_status candidate_of(planning *p, uint32_t other, uint32_t which, po_gpu_candidate *c) {
    const po_mu *naive = p->naive;
    po_mu *mu = po_mu_create(p->arena, naive->name);
    po_mu_view *whole = PO_NEW_N(p->arena, po_mu_view, naive->n_tensors + 1);
    po_text what;
    po_text_init(&what, p->arena);
    *c = (po_gpu_candidate){.mu = mu};
    for (uint32_t i = 0; i < naive->n_tensors; i++) {
        po_mu_place place = naive->tensors[i].place;
        bool port = place == PO_MU_INPUT || place == PO_MU_OUTPUT || place == PO_MU_WEIGHT;
        whole[i].tensor = port ? border_of(mu, naive, i) : PO_NONE;
        for (uint32_t x = 0; x < PO_MU_MAX_RANK; x++) {
            whole[i].axis[x] = x;
            whole[i].times[x] = 1;
        }
    }
    for (uint32_t i = 0; i < p->n; i++) {
        const planned *one = &p->list[i];
        if (!one->n_found) {
            for (uint32_t k = 0; k < one->part->n_steps; k++)
                c->seconds +=
                    gpu_append_step(p->arena, mu, naive, one->part->steps[k], p->gpu, whole);
            po_text_printf(&what, "%sas it is: %s", i ? "; " : "",
                           naive->nodes[one->part->steps[0]].name);
            continue;
        }
        bool otherwise = other != PO_NONE && is_alike(one, &p->list[other]);
        const po_found *f = &one->found[otherwise && which < one->n_found ? which : 0];
        /* Borders of what was found are by number those of the part's own muGraph. */
        po_mu_view *twin = PO_NEW_N(p->arena, po_mu_view, f->mu->n_tensors + 1);
        for (uint32_t t = 0; t < f->mu->n_tensors; t++) {
            const po_mu_tensor *ft = &f->mu->tensors[t];
            twin[t].tensor = PO_NONE;
            for (uint32_t s = 0; s < one->part->mu->n_tensors; s++) {
                const po_mu_tensor *st = &one->part->mu->tensors[s];
                bool border = ft->place == PO_MU_INPUT || ft->place == PO_MU_OUTPUT ||
                              ft->place == PO_MU_WEIGHT;
                if (border && st->place == ft->place && st->number == ft->number) {
                    twin[t] = one->part->twin[s];
                    po_mu_view *home = &whole[twin[t].tensor];
                    if (home->tensor == PO_NONE)
                        home->tensor = border_of(mu, naive, twin[t].tensor);
                    twin[t].tensor = home->tensor;
                }
            }
        }
        part_append(p->arena, mu, f->mu, twin);
        c->seconds += f->estimate;
        c->searched = true;
        po_text_printf(&what, "%s%s; %s", i ? "; " : "", f->algebra, f->schedule);
    }
    for (uint32_t i = 0; i < mu->n_tensors; i++)
        po_mu_layout(mu, i, 1, 0);
    c->mu = gpu_read_pieces(p->arena, mu);
    uint32_t merged;
    c->mu = gpu_merge_steps(p->arena, c->mu, p->gpu, &merged);
    c->seconds -= merged * (p->gpu->launch + p->gpu->latency);
    c->what = what.data;
    return po_mu_check(p->ctx, c->mu, GPU_SHARED);
}

static po_status plan_of(planning *p, po_gpu_candidate **candidates, uint32_t *n) {
    uint32_t keep = p->options->keep ? p->options->keep : KEEP;
    *candidates = PO_NEW_N(p->arena, po_gpu_candidate, keep);
    *n = 0;
    p->known = po_hash_map_create(p->arena);
    PO_TRY(plan_parts(p));
    PO_TRY(candidate_of(p, PO_NONE, 0, &(*candidates)[(*n)++]));
    /* Others differ in one part, and in those that are like it. */
    for (uint32_t which = 1; which < (p->n == 1 ? keep : ALTERNATIVES); which++)
        for (uint32_t i = 0; i < p->n && *n < keep; i++) {
            bool again = false; /* with an earlier part that is like it */
            for (uint32_t j = 0; j < i; j++)
                again |= is_alike(&p->list[j], &p->list[i]);
            if (which >= p->list[i].n_found || again)
                continue;
            po_gpu_candidate c;
            PO_TRY(candidate_of(p, i, which, &c));
            uint32_t at = (*n)++;
            for (; at > 1 && c.seconds < (*candidates)[at - 1].seconds; at--)
                (*candidates)[at] = (*candidates)[at - 1];
            (*candidates)[at] = c;
        }
    return PO_OK;
}

static po_status plan_whole(po_ctx *ctx, po_arena *arena, const po_mu *naive, const po_gpu *gpu,
                            const po_gpu_options *options, po_gpu_candidate **candidates,
                            uint32_t *n) {
    const po_mu *plain = part_without_copies(arena, naive), *cut = part_with_digits(arena, plain);
    planning p = {.ctx = ctx, .arena = arena, .naive = cut, .gpu = gpu, .options = options};
    PO_TRY(plan_of(&p, candidates, n));
    if (cut == plain)
        return PO_OK;
    /* Parts that go further are mostly better; not always. */
    po_gpu_candidate *others;
    uint32_t n_others;
    planning q = {.ctx = ctx, .arena = arena, .naive = plain, .gpu = gpu, .options = options};
    PO_TRY(plan_of(&q, &others, &n_others));
    if (others[0].seconds < (*candidates)[0].seconds) {
        *candidates = others;
        *n = n_others;
    }
    return PO_OK;
}

/* --- regions of the same form --- */

typedef struct remembered {
    const po_mu *naive;
    po_gpu_candidate *candidates;
    uint32_t n;
} remembered;

struct po_gpu_memo {
    po_arena *arena;
    po_hash_map *map;
    remembered *list;
    uint32_t n, cap;
};

po_gpu_memo *po_gpu_memo_create(po_arena *arena) {
    po_gpu_memo *memo = PO_NEW(arena, po_gpu_memo);
    *memo = (po_gpu_memo){.arena = arena, .map = po_hash_map_create(arena)};
    return memo;
}

po_status po_gpu_plan(po_ctx *ctx, po_arena *arena, const po_mu *naive, const po_gpu *gpu,
                      const po_gpu_options *options, po_gpu_candidate **candidates, uint32_t *n) {
    po_gpu_memo *memo = options->memo;
    po_hash key = po_hash_u64(po_mu_hash(naive), gpu->arch * 1000003ull + gpu->sms);
    key = po_hash_u64(key, options->keep * 2ull + options->tf32);
    uint32_t before = memo ? po_hash_map_get(memo->map, key) : PO_NONE;
    if (before != PO_NONE && po_mu_equal(memo->list[before].naive, naive)) {
        *candidates = memo->list[before].candidates;
        *n = memo->list[before].n;
        return PO_OK;
    }
    PO_TRY(plan_whole(ctx, arena, naive, gpu, options, candidates, n));
    if (memo && before == PO_NONE) {
        remembered one = {naive, *candidates, *n};
        po_hash_map_put(memo->map, key, memo->n);
        PO_PUSH(memo->arena, memo->list, memo->n, memo->cap, one);
    }
    return PO_OK;
}

po_status po_gpu_plan_region(po_ctx *ctx, po_arena *arena, const po_graph *graph,
                             const po_region *region, const char *name, const po_gpu *gpu,
                             const po_gpu_options *options, po_gpu_region *plan) {
    *plan = (po_gpu_region){.region = region};
    po_gpu_candidate *candidates = NULL;
    po_status status = po_lower_region(ctx, arena, graph, region, name, &plan->lowered);
    if (status == PO_OK)
        status = po_gpu_plan(ctx, arena, plan->lowered.mu, gpu, options, &candidates, &plan->n);
    plan->candidates = candidates;
    if (status == PO_UNSUPPORTED || status == PO_BAD_INPUT) {
        plan->failed = po_arena_strdup(arena, ctx->error.message);
        plan->n = 0;
        po_ctx_clear(ctx);
        return PO_OK;
    }
    return status;
}

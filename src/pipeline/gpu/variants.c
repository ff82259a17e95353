/* Plans the regions of a form and estimates its seconds, each region by its kernel or by its nodes.
 * Regions of an open batch are planned for one sample, which is found from the model's shapes with
 * two and with three. */
#include "mugraph/mugraph.h"
#include "pipeline/gpu/making.h"
#include "pipeline/kernels/stage.h"
#include "pipeline/open_batch.h"
#include "postopt/postopt.h"
#include "superopt/gpu/batch.h"

static bool gains(const cuda_variant *f, uint32_t i) {
    const po_gpu_region *plan = &f->plans[i];
    return !plan->failed && plan->n > 0 &&
           plan->candidates[0].seconds < cuda_worth_a_kernel * f->nodes[i];
}

static void estimate(cuda_making *m, cuda_variant *f) {
    const po_graph *g = f->shapes;
    bool *inside = PO_NEW_N(m->run->arena, bool, g->n_nodes);
    f->seconds = 0;
    for (uint32_t i = 0; i < f->regions.n; i++) {
        const po_region *r = &f->regions.regions[i];
        po_estimate e = {0};
        for (uint32_t k = 0; k < r->n_nodes; k++) {
            inside[r->nodes[k]] = true;
            po_roofline_add(g, &g->nodes[r->nodes[k]], &m->rates, 1, &e);
        }
        f->nodes[i] = e.seconds;
        f->seconds += gains(f, i) ? f->plans[i].candidates[0].seconds : e.seconds;
    }
    po_estimate rest = {0};
    for (po_node_id i = 0; i < g->n_nodes; i++)
        if (!inside[i] && !g->nodes[i].removed)
            po_roofline_add(g, &g->nodes[i], &m->rates, 1, &rest);
    f->rest = rest.seconds;
    f->seconds += f->rest;
}

/* --- an open batch --- */

/* What a sample has of the GPU where so many run side by side. */
static po_gpu *share_of(po_arena *arena, const po_gpu *gpu, uint32_t samples) {
    po_gpu *part = po_arena_memdup(arena, gpu, sizeof *gpu);
    double n = samples < gpu->sms ? samples : gpu->sms;
    part->sms = (uint32_t)(gpu->sms / n);
    double rest = (double)part->sms / gpu->sms;
    part->f32 *= rest;
    part->tf32 *= rest;
    part->f16 *= rest;
    part->dram /= samples;
    part->l2_rate /= samples;
    return part;
}

/* The first dim of what is one of each sample is their number. */
static bool is_batched(const po_graph *two, const po_graph *three, po_value_id v) {
    const po_type *a = &two->values[v].type, *b = &three->values[v].type;
    return a->has_rank && a->rank > 0 && a->rank == b->rank && a->dims[0].value == 2 &&
           b->dims[0].value == 3;
}

static po_status plan_sample(cuda_making *m, cuda_variant *f, uint32_t i, const po_graph *two,
                             const po_graph *three, const char *name, const po_gpu *gpu,
                             const po_gpu_options *options) {
    po_arena *arena = m->run->arena;
    po_gpu_region *plan = &f->plans[i];
    const po_region *r = &f->regions.regions[i];
    po_lowered other;
    const po_mu *one;
    bool *batched = PO_NEW_N(arena, bool, r->n_in + 1);
    *plan = (po_gpu_region){.region = r};
    for (uint32_t k = 0; k < r->n_in; k++)
        batched[k] = is_batched(two, three, r->in[k]);
    f->batched[i] = batched;
    po_gpu_candidate *candidates = NULL;
    po_status status = po_lower_region(m->ctx, arena, two, r, name, &plan->lowered);
    if (status == PO_OK)
        status = po_lower_region(m->ctx, arena, three, r, name, &other);
    if (status == PO_OK)
        status = po_gpu_sample_of(m->ctx, arena, plan->lowered.mu, other.mu, batched, &one);
    if (status == PO_OK && (other.n_weights != plan->lowered.n_weights ||
                            memcmp(other.weights, plan->lowered.weights,
                                   other.n_weights * sizeof *other.weights) != 0))
        status = po_fail(m->ctx, PO_UNSUPPORTED, "its weights hang on the number of samples");
    if (status == PO_OK) {
        plan->lowered.mu = po_arena_memdup(arena, one, sizeof *one);
        status = po_gpu_plan(m->ctx, arena, one, gpu, options, &candidates, &plan->n);
    }
    plan->candidates = candidates;
    if (status != PO_OK)
        plan->n = 0;
    return po_kernel_stage_drop(m->run, status, &plan->failed);
}

static po_status plan_samples(cuda_making *m, cuda_variant *f, const po_gpu_options *options) {
    const po_graph *two, *three;
    const po_gpu *gpu = share_of(m->run->arena, m->run->gpu, m->run->options->batch);
    PO_TRY(po_batch_pinned(m->run, f->graph, 2, &two));
    PO_TRY(po_batch_pinned(m->run, f->graph, 3, &three));
    for (uint32_t i = 0; i < f->regions.n; i++) {
        po_step(m->ctx, 0.5 * i / f->regions.n, "scheduling region %u", i);
        PO_TRY(po_ctx_poll(m->ctx));
        PO_TRY(plan_sample(m, f, i, two, three, po_arena_printf(m->run->arena, "region%u", i), gpu,
                           options));
    }
    return PO_OK;
}

/* --- forms --- */

static po_status plan_regions(cuda_making *m, cuda_variant *f, const po_gpu_options *options) {
    const po_run *run = m->run;
    for (uint32_t i = 0; i < f->regions.n; i++) {
        po_step(m->ctx, 0.5 * i / f->regions.n, "scheduling region %u", i);
        PO_TRY(po_ctx_poll(m->ctx));
        PO_TRY(po_gpu_plan_region(m->ctx, run->arena, f->graph, &f->regions.regions[i],
                                  po_arena_printf(run->arena, "region%u", i), run->gpu, options,
                                  &f->plans[i]));
    }
    return PO_OK;
}

po_status cuda_plan_variant(cuda_making *m, const po_graph *from, const char *name,
                            cuda_variant *f) {
    const po_run *run = m->run;
    po_arena *arena = run->arena;
    const po_postopt_options postopt = po_postopt_gpu();
    const po_gpu_options options = {
        .exact = run->options->exact, .tf32 = run->options->tf32, .memo = m->memo};
    *f = (cuda_variant){.name = name};
    PO_TRY(po_postopt(m->ctx, from, &postopt, &f->graph, NULL));
    po_run_hold(run, f->graph);
    PO_TRY(po_infer_graph(m->ctx, f->graph, true));
    PO_TRY(po_batch_planned(run, f->graph, &f->shapes));
    f->open = f->shapes != f->graph;
    PO_TRY(po_regions_find(m->ctx, arena, f->shapes, po_gpu_part, m->ctx, &f->regions));
    f->plans = PO_NEW_N(arena, po_gpu_region, f->regions.n);
    f->batched = PO_NEW_N(arena, const bool *, f->regions.n);
    f->nodes = PO_NEW_N(arena, double, f->regions.n);
    f->timed = PO_NEW_N(arena, bool, f->regions.n);
    f->taken = PO_NEW_N(arena, double, f->regions.n);
    f->which = PO_NEW_N(arena, uint32_t, f->regions.n);
    f->why = PO_NEW_N(arena, const char *, f->regions.n);
    PO_TRY(f->open ? plan_samples(m, f, &options) : plan_regions(m, f, &options));
    for (uint32_t i = 0; i < f->regions.n; i++)
        f->why[i] = f->plans[i].failed;
    estimate(m, f);
    po_log(m->ctx, "%s: %u regions with %u of %u nodes, %.1f us estimated", name, f->regions.n,
           f->regions.n_nodes, f->graph->n_live, 1e6 * f->seconds);
    return PO_OK;
}

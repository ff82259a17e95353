/* The kernel stage for target cuda: regions as kernels for NVIDIA GPUs, each region one node with
 * the standard operators as its function (codegen/cuda_library.h). Without a GPU estimates decide
 * which regions have kernels; the whole competes with the standard forms in select. */
#include "codegen/cuda_library.h"
#include "cost/cuda_program.h"
#include "pipeline/gpu_timing.h"
#include "pipeline/kernel_stage.h"
#include "pipeline/recall.h"
#include "pipeline/search.h"
#include "postopt/postopt.h"
#include "split/split.h"
#include "superopt/gpu_plan.h"

/* What estimates must promise, of the nodes' own time: they may be off by so much. */
static const double worth_a_kernel = 0.98;

/* Why a region has no kernel, though it could. */
static const char no_faster[] = "no faster than its nodes one by one";

/* A form of the model with a plan for each region. */
typedef struct form {
    po_graph *graph;
    po_regions regions;
    po_gpu_region *plans;
    double *nodes;  /* by region: seconds of its nodes one by one, by NVIDIA's libraries */
    double seconds; /* of the whole, each region as the better of the two */
    const po_cuda_plan *plan; /* with its kernels, where readings are to be had; NULL */
} form;

typedef struct making {
    po_run_state *state;
    po_ctx *ctx;
    po_rates rates;
    const po_nvrtc *nvrtc;
    const po_object_store *images; /* NULL: none are kept */
    po_cuda_kernel *kernels;
    uint32_t n;
} making;

/* --- forms --- */

static bool gains(const form *f, uint32_t i) {
    const po_gpu_region *plan = &f->plans[i];
    return !plan->failed && plan->n > 0 &&
           plan->candidates[0].seconds < worth_a_kernel * f->nodes[i];
}

static void estimate(making *m, form *f) {
    const po_graph *g = f->graph;
    bool *inside = PO_NEW_N(m->state->arena, bool, g->n_nodes);
    f->nodes = PO_NEW_N(m->state->arena, double, f->regions.n);
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
    f->seconds += rest.seconds;
}

static po_status plan_form(making *m, const po_graph *from, const char *name, form *f) {
    po_run_state *state = m->state;
    po_postopt_options options = po_postopt_plain(0);
    po_gpu_options gpu = {.tf32 = state->options->tf32, .memo = po_gpu_memo_create(state->arena)};
    PO_TRY(po_postopt(m->ctx, from, &options, &f->graph, NULL));
    po_pipeline_hold(state, f->graph);
    PO_TRY(po_infer_graph(m->ctx, f->graph, true));
    PO_TRY(po_regions_find(m->ctx, state->arena, f->graph, po_gpu_part, m->ctx, &f->regions));
    f->plans = PO_NEW_N(state->arena, po_gpu_region, f->regions.n);
    for (uint32_t i = 0; i < f->regions.n; i++) {
        po_step(m->ctx, 0.5 * i / f->regions.n, "scheduling region %u", i);
        PO_TRY(po_ctx_poll(m->ctx));
        PO_TRY(po_gpu_plan_region(m->ctx, state->arena, f->graph, &f->regions.regions[i],
                                  po_arena_printf(state->arena, "region%u", i), state->gpu, &gpu,
                                  &f->plans[i]));
    }
    estimate(m, f);
    po_log(m->ctx, "%s: %u regions with %u of %u nodes, %.1f us estimated", name, f->regions.n,
           f->regions.n_nodes, f->graph->n_live, 1e6 * f->seconds);
    return PO_OK;
}

/* The model, and the model with the mutants that were chosen: the better by estimate. */
static po_status best_form(making *m, form *best) {
    po_run_state *state = m->state;
    const po_graph *others[2];
    PO_TRY(plan_form(m, state->current, "the model", best));
    if (state->search && !po_options_has(state->options->skip, state->options->n_skip, "choose"))
        PO_TRY(po_stage_choose(state));
    others[0] = state->mutated;
    others[1] = state->joined;
    for (uint32_t i = 0; i < 2; i++) {
        form other;
        if (!others[i])
            continue;
        PO_TRY(plan_form(m, others[i], i == 0 ? "mutants" : "mutants, seams joined", &other));
        if (other.seconds < best->seconds)
            *best = other;
    }
    return PO_OK;
}

/* --- kernels --- */

static po_status make_kernel(making *m, const po_graph *g, const po_gpu_region *plan,
                             const po_mu *mu, po_cuda_kernel *kernel) {
    po_arena *arena = m->state->arena;
    const po_cuda_print_options options = {.tf32 = m->state->options->tf32};
    PO_TRY(po_kernel_stage_check(m->state, plan->lowered.mu, mu, m->state->gpu->shared_block));
    PO_TRY(po_cuda_kernel_print(m->ctx, arena, mu, &options, kernel));
    po_kernel_stage_ports(arena, g, plan->region, &kernel->ports);
    for (uint32_t i = 0; i < m->n; i++)
        if (strcmp(m->kernels[i].ports.name, kernel->ports.name) == 0) {
            *kernel = m->kernels[i];
            return PO_OK;
        }
    /* The one that is timed; all others once it is chosen. */
    if (m->state->gpu_cost)
        return po_cuda_kernel_compile_for(m->ctx, arena, m->nvrtc, m->images,
                                          m->state->gpu_cost->info.arch, kernel);
    return po_cuda_kernel_compile(m->ctx, arena, m->nvrtc, m->images, kernel);
}

/* --- on a GPU that is here, or by what was recorded there --- */

static const po_cuda_image *own_image(const making *m, const po_cuda_kernel *kernel) {
    const po_cuda_image *best = NULL;
    uint32_t arch = m->state->gpu_cost->info.arch;
    for (uint32_t i = 0; i < kernel->n_images; i++) {
        const po_cuda_image *image = &kernel->images[i];
        bool runs =
            image->ptx ? image->arch <= arch : image->arch / 10 == arch / 10 && image->arch <= arch;
        if (runs && (!best || best->ptx || (!image->ptx && image->arch > best->arch)))
            best = image;
    }
    return best;
}

/* Seconds of a region's nodes, one by one, there. */
static po_status time_nodes(making *m, form *f, uint32_t i) {
    const po_region *r = &f->regions.regions[i];
    po_extract part;
    bool known;
    double seconds;
    const char *why;
    PO_TRY(po_split_extract(m->ctx, m->state->arena, f->graph, r->nodes, r->n_nodes, false, &part));
    po_pipeline_hold(m->state, part.graph);
    PO_TRY(po_infer_graph(m->ctx, part.graph, true));
    PO_TRY(
        po_gpu_graph_seconds(m->state, m->state->arena, part.graph, false, &known, &seconds, &why));
    if (known)
        f->nodes[i] = seconds;
    else
        po_log(m->ctx, "region %u node by node: %s", i, why);
    return PO_OK;
}

/* Each kernel compared with float64 and timed; estimates become readings, what does not run or
 * computes something else is out (seconds 0). */
static po_status time_kernels(making *m, const form *f, uint32_t i, const po_cuda_kernel *made,
                              double *seconds) {
    const po_gpu_region *plan = &f->plans[i];
    po_cuda_candidate *c = PO_NEW_N(m->state->arena, po_cuda_candidate, plan->n);
    uint32_t *of = PO_NEW_N(m->state->arena, uint32_t, plan->n), n = 0;
    for (uint32_t k = 0; k < plan->n; k++) {
        if (!(seconds[k] > 0))
            continue;
        of[n] = k;
        c[n++] = (po_cuda_candidate){.mu = plan->candidates[k].mu,
                                     .program = &made[k].program,
                                     .image = own_image(m, &made[k]),
                                     .tf32 = m->state->options->tf32};
    }
    const po_cuda_trial trial = {
        .meaning = plan->lowered.mu, .check = true, .time = true, .seed = 1};
    PO_TRY(po_cuda_cost_programs(m->ctx, m->state->arena, m->state->gpu_cost, &trial, c, n));
    for (uint32_t k = 0; k < n; k++) {
        seconds[of[k]] = c[k].seconds > 0 ? c[k].seconds : 0;
        po_log(m->ctx, "region %u, %s: %s%.1f us (estimate %.1f), error %.2f u S", i,
               plan->candidates[of[k]].what, c[k].seconds > 0 ? "" : c[k].why, 1e6 * c[k].seconds,
               1e6 * plan->candidates[of[k]].seconds, c[k].worst);
    }
    return PO_OK;
}

/* --- which kernel --- */

enum { MOST_TIMED = 12 };

/* Prints and compiles what may gain: the first that can be, or, where a GPU or its records can tell
 * their times, all of the best few. seconds: by candidate, 0 where there is no kernel. */
static po_status make_kernels(making *m, const form *f, uint32_t i, po_cuda_kernel *made,
                              double *seconds, const char **why) {
    const po_gpu_region *plan = &f->plans[i];
    bool timed = m->state->gpu_cost != NULL;
    for (uint32_t k = 0, n = 0; k < plan->n && n < (timed ? MOST_TIMED : 1); k++) {
        const po_gpu_candidate *c = &plan->candidates[k];
        if (!timed && !(c->seconds < worth_a_kernel * f->nodes[i]))
            break;
        po_status status = make_kernel(m, f->graph, plan, c->mu, &made[k]);
        if (status != PO_OK) {
            PO_TRY(po_kernel_stage_drop(m->state, status, why));
            po_log(m->ctx, "region %u, %s: %s", i, c->what, *why);
            continue;
        }
        bool again = false; /* other algebra, the same kernel */
        for (uint32_t j = 0; j < k; j++)
            again |= seconds[j] > 0 && strcmp(made[j].ports.name, made[k].ports.name) == 0;
        if (again)
            continue;
        seconds[k] = c->seconds;
        n++;
    }
    return timed ? time_kernels(m, f, i, made, seconds) : PO_OK;
}

/* The fastest kernel, as long as it gains; *which: its number. */
static po_status add_kernel(making *m, form *f, uint32_t i, uint32_t *which, const char **why) {
    const po_gpu_region *plan = &f->plans[i];
    po_cuda_kernel *made = PO_NEW_N(m->state->arena, po_cuda_kernel, plan->n);
    double *seconds = PO_NEW_N(m->state->arena, double, plan->n);
    uint32_t best = PO_NONE;
    *which = PO_NONE;
    if (m->state->gpu_cost)
        PO_TRY(time_nodes(m, f, i));
    PO_TRY(make_kernels(m, f, i, made, seconds, why));
    for (uint32_t k = 0; k < plan->n; k++)
        if (seconds[k] > 0 && (best == PO_NONE || seconds[k] < seconds[best]))
            best = k;
    if (best == PO_NONE || !(seconds[best] < worth_a_kernel * f->nodes[i])) {
        *why = *why && best == PO_NONE ? *why : no_faster;
        return PO_OK;
    }
    *why = NULL;
    if (m->state->gpu_cost) {
        po_status status =
            po_cuda_kernel_compile(m->ctx, m->state->arena, m->nvrtc, m->images, &made[best]);
        if (status != PO_OK)
            return po_kernel_stage_drop(m->state, status, why);
    }
    m->kernels[m->n] = made[best];
    for (*which = 0;
         *which < m->n && strcmp(m->kernels[*which].ports.name, made[best].ports.name) != 0;
         ++*which)
        ;
    m->n += *which == m->n;
    return PO_OK;
}

/* The whole form as the executor runs it, its kernels in it. */
static po_status plan_whole(making *m, form *f, const uint32_t *which, const char **why) {
    po_gpu_given *given = PO_NEW_N(m->state->arena, po_gpu_given, f->regions.n);
    uint32_t n = 0;
    if (!m->state->gpu_cost)
        return PO_OK;
    for (uint32_t i = 0; i < f->regions.n; i++)
        if (!why[i])
            given[n++] =
                (po_gpu_given){&f->regions.regions[i], &f->plans[i].lowered,
                               &m->kernels[which[i]].program, own_image(m, &m->kernels[which[i]])};
    po_status status =
        po_gpu_plan_graph(m->state, m->state->arena, f->graph, given, n, false, &f->plan);
    if (status != PO_UNSUPPORTED)
        return status;
    po_log(m->ctx, "not timed as a whole: %s", m->ctx->error.message);
    po_ctx_clear(m->ctx);
    return PO_OK;
}

/* --- in the model --- */

/* Puts the call in the region's place: activations, then weights. */
static po_status replace(making *m, po_graph *g, const po_gpu_region *plan,
                         const po_cuda_kernel *kernel, uint32_t number) {
    const po_region *r = plan->region;
    uint32_t n_in = r->n_in + plan->lowered.n_weights;
    po_value_id *in = PO_NEW_N(m->state->arena, po_value_id, n_in);
    memcpy(in, r->in, r->n_in * sizeof *in);
    for (uint32_t i = 0; i < plan->lowered.n_weights; i++)
        in[r->n_in + i] = plan->lowered.weights[i];
    po_graph *body;
    po_node_id call;
    PO_TRY(po_kernel_stage_call(m->state, g, r, &kernel->ports, number, in, n_in, &body, &call));
    po_node_set_string(g, call, "plugin_version", PO_PLUGIN_VERSION);
    po_node_set_string(g, call, "plugin_namespace", PO_PLUGIN_NAMESPACE);
    return PO_OK;
}

static po_status place(making *m, const form *f, const uint32_t *which, const char **why) {
    po_run_state *state = m->state;
    po_graph *g;
    bool whole;
    do {
        whole = true;
        g = po_graph_clone(m->ctx, f->graph);
        po_pipeline_hold(state, g);
        for (uint32_t i = 0; i < f->regions.n && whole; i++) {
            if (why[i])
                continue;
            po_status status = replace(m, g, &f->plans[i], &m->kernels[which[i]], i);
            whole = status == PO_OK;
            PO_TRY(whole ? PO_OK : po_kernel_stage_drop(m->state, status, &why[i]));
        }
    } while (!whole);
    po_graph_sweep(g);
    if (g->n_functions > 0)
        state->variants[state->n_variants++] =
            (po_variant){"kernels", g, true, f->seconds, f->plan};
    return PO_OK;
}

/* --- telling --- */

/* "64 x 8 blocks of 128 threads, 48 KB shared; on 9.0 96 registers, 0 bytes spilled" */
static const char *launch_text(po_arena *arena, const po_cuda_kernel *kernel, uint32_t launch) {
    const po_cuda_launch *l = &kernel->program.launches[launch];
    po_text t;
    po_text_init(&t, arena);
    po_text_printf(&t, "%u x %u x %u blocks of %u threads", l->grid[0], l->grid[1], l->grid[2],
                   l->threads);
    if (l->shared > 0)
        po_text_printf(&t, ", %.1f KB shared", l->shared / 1024.0);
    for (uint32_t i = 0; i < kernel->n_images; i++)
        for (uint32_t u = 0; u < kernel->images[i].n_usage; u++) {
            const po_cuda_usage *usage = &kernel->images[i].usage[u];
            if (strcmp(usage->symbol, l->symbol) == 0)
                po_text_printf(&t, "; %u.%u: %u registers, %u bytes spilled",
                               kernel->images[i].arch / 10, kernel->images[i].arch % 10,
                               usage->registers, usage->spills);
        }
    return t.data;
}

static void tell(making *m, const form *f, uint32_t i, const po_cuda_kernel *kernel,
                 const char *why) {
    po_record *record = m->state->record;
    const po_gpu_region *plan = &f->plans[i];
    po_region_report row = {.nodes = plan->region->n_nodes,
                            .why = why ? why : "",
                            .ms_nodes = 1e3 * f->nodes[i],
                            .ms_estimated = plan->n > 0 ? 1e3 * plan->candidates[0].seconds : 0};
    if (kernel) {
        const po_cuda_program *p = &kernel->program;
        po_kernel_step_report *steps =
            PO_NEW_N(record->arena, po_kernel_step_report, p->n_launches);
        for (uint32_t k = 0; k < p->n_launches; k++)
            steps[k] = (po_kernel_step_report){.name = p->launches[k].what ? p->launches[k].what
                                                                           : p->launches[k].symbol,
                                               .schedule = launch_text(record->arena, kernel, k)};
        row.steps = steps;
        row.n_steps = p->n_launches;
    }
    po_log(m->ctx, "region %u: %u nodes, %.1f us node by node, %.1f us as kernels, estimated; %s",
           i, plan->region->n_nodes, 1e3 * row.ms_nodes, 1e3 * row.ms_estimated,
           why ? why : kernel->ports.name);
    for (size_t k = 0; k < row.n_steps; k++)
        po_log(m->ctx, "  %s: %s", row.steps[k].name, row.steps[k].schedule);
    PO_PUSH(record->arena, record->regions, record->n_regions, record->cap_regions, row);
}

/* --- the stage --- */

po_status po_stage_cuda(po_run_state *state) {
    if (!state->options->kernels)
        return PO_OK;
    making m = {.state = state, .ctx = state->ctx};
    po_cost *cost;
    form f;
    PO_TRY(po_pipeline_cost(state, &cost));
    PO_TRY(po_pipeline_rates(state, &m.rates));
    PO_TRY(po_pipeline_nvrtc(state, &m.nvrtc));
    po_kept_objects cubins = {cost->cache, "cubin"}, libraries = {cost->cache, "library"};
    const po_object_store images = po_kernel_stage_store(&cubins),
                          objects = po_kernel_stage_store(&libraries);
    m.images = &images;
    PO_TRY(best_form(&m, &f));
    m.kernels = PO_NEW_N(state->arena, po_cuda_kernel, f.regions.n);
    uint32_t *which = PO_NEW_N(state->arena, uint32_t, f.regions.n);
    const char **why = PO_NEW_N(state->arena, const char *, f.regions.n);
    for (uint32_t i = 0; i < f.regions.n; i++) {
        po_step(state->ctx, 0.5 + 0.5 * i / f.regions.n, "compiling region %u", i);
        why[i] = f.plans[i].failed;
        if (!why[i])
            PO_TRY(add_kernel(&m, &f, i, &which[i], &why[i]));
    }
    if (m.n > 0) {
        po_cuda_library_spec spec = {
            .cc = state->options->cc, .store = &objects, .kernels = m.kernels, .n_kernels = m.n};
        PO_TRY(po_cuda_library_build(state->ctx, state->arena, &spec, &state->library));
        PO_TRY(plan_whole(&m, &f, which, why));
        PO_TRY(place(&m, &f, which, why));
    }
    uint32_t slow = 0;
    for (uint32_t i = 0; i < f.regions.n; i++) {
        slow += why[i] == no_faster;
        if (why[i] && why[i] != no_faster)
            po_record_note(state->record, "region %u stays with the runtime: %s", i, why[i]);
        tell(&m, &f, i, why[i] ? NULL : &m.kernels[which[i]], why[i]);
    }
    if (slow > 0)
        po_record_note(state->record, "%u of %u regions stay with the runtime: %s%s", slow,
                       f.regions.n, state->gpu_cost ? "" : "by estimate ", no_faster);
    return PO_OK;
}

/* The kernel stage for target cuda: regions as kernels for NVIDIA GPUs, each region one node with
 * the standard operators as its function (codegen/cuda/library.h). The model, and the model with
 * the mutants that were chosen, each with the kernels that it gets: the better by readings of the
 * whole where there are such, else by estimates, competes with the standard forms in select. */
#include "pipeline/choose/chooser.h"
#include "pipeline/dump.h"
#include "pipeline/gpu/making.h"
#include "pipeline/kernels/stage.h"
#include "pipeline/open_batch.h"
#include "pipeline/stages.h"
#include "pipeline/variants.h"

/* What forms are made of: the model, and the same with mutants of each kind. */
enum { MODEL, MUTATED, BASES = MUTATED + PO_MUTATED_KINDS };

/* --- forms --- */

typedef struct po_cuda_forms {
    cuda_making m;
    po_kept_objects cubins, libraries;
    po_object_store images, objects;
    const po_graph *from[BASES]; /* NULL: there is none */
    cuda_variant forms[BASES];
    uint32_t n;
    po_chooser *chooser; /* number: of the form */
} po_cuda_forms;

static po_status look_at(po_cuda_forms *c, po_combination *form) {
    cuda_variant *f = &c->forms[c->n];
    const char *name = form->base == MODEL
                           ? "the model"
                           : po_mutated_name((po_mutated_kind)(form->base - MUTATED));
    PO_TRY(cuda_plan_variant(&c->m, c->from[form->base], name, f));
    form->number = c->n++;
    if (!c->m.run->gpu_cost || f->open)
        return PO_OK;
    PO_TRY(cuda_choose_kernels(&c->m, f));
    return cuda_read_variant(&c->m, f);
}

/* By readings where all have some, else by estimate. */
static po_status price(void *user, po_combination *const *batch, uint32_t n) {
    po_cuda_forms *c = user;
    bool read = true;
    for (uint32_t i = 0; i < n; i++)
        PO_TRY(look_at(c, batch[i]));
    for (uint32_t i = 0; i < c->n; i++)
        read &= c->forms[i].read > 0;
    for (uint32_t i = 0; i < c->chooser->n; i++) {
        po_combination *form = &c->chooser->states[i];
        const cuda_variant *f = &c->forms[form->number];
        form->cost = read ? f->read : f->seconds;
    }
    return PO_OK;
}

/* --- in the model --- */

/* Puts the call in the region's place: activations, then weights. */
static po_status replace(cuda_making *m, po_graph *g, const po_gpu_region *plan,
                         const po_cuda_kernel *kernel, uint32_t number) {
    const po_region *r = plan->region;
    uint32_t n_in = r->n_in + plan->lowered.n_weights;
    po_value_id *in = PO_NEW_N(m->run->arena, po_value_id, n_in);
    memcpy(in, r->in, r->n_in * sizeof *in);
    for (uint32_t i = 0; i < plan->lowered.n_weights; i++)
        in[r->n_in + i] = plan->lowered.weights[i];
    po_graph *body;
    po_node_id call;
    PO_TRY(po_kernel_stage_call(m->run, g, r, &kernel->ports, number, in, n_in, &body, &call));
    po_node_set_string(g, call, "plugin_version", PO_PLUGIN_VERSION);
    po_node_set_string(g, call, "plugin_namespace", PO_PLUGIN_NAMESPACE);
    return PO_OK;
}

static po_status place(cuda_making *m, cuda_variant *f, po_kernels *out) {
    po_graph *g;
    bool whole;
    do {
        whole = true;
        g = po_graph_clone(m->ctx, f->graph);
        po_run_hold(m->run, g);
        for (uint32_t i = 0; i < f->regions.n && whole; i++) {
            if (f->why[i])
                continue;
            po_status status = replace(m, g, &f->plans[i], &m->pool[f->which[i]]->kernel, i);
            whole = status == PO_OK;
            PO_TRY(whole ? PO_OK : po_kernel_stage_drop(m->run, status, &f->why[i]));
        }
    } while (!whole);
    po_graph_sweep(g);
    f->seconds = f->rest; /* with the kernels that it has */
    for (uint32_t i = 0; i < f->regions.n; i++)
        f->seconds += f->why[i] ? f->nodes[i] : f->taken[i];
    if (g->n_functions > 0)
        out->variants[out->n_variants++] = (po_variant){
            .name = "kernels", .graph = g, .kernels = true, .seconds = f->seconds, .plan = f->plan};
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

static void tell(cuda_making *m, const cuda_variant *f, uint32_t i) {
    po_record *record = m->run->record;
    const po_gpu_region *plan = &f->plans[i];
    const char *why = f->why[i];
    const po_cuda_kernel *kernel = why ? NULL : &m->pool[f->which[i]]->kernel;
    double seconds = f->taken[i] > 0 ? f->taken[i] : plan->n > 0 ? plan->candidates[0].seconds : 0;
    po_region_report row = {.nodes = plan->region->n_nodes,
                            .why = why ? why : "",
                            .ms_nodes = 1e3 * f->nodes[i],
                            .ms_estimated = 1e3 * seconds};
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
    po_log(m->ctx, "region %u: %u nodes, %.1f us node by node%s, %.1f us as kernels%s; %s", i,
           plan->region->n_nodes, 1e3 * row.ms_nodes, f->timed[i] ? "" : " (estimated)",
           1e3 * row.ms_estimated, f->timed[i] && f->taken[i] > 0 ? ", measured" : ", estimated",
           why ? why : kernel->ports.name);
    for (size_t k = 0; k < row.n_steps; k++)
        po_log(m->ctx, "  %s: %s", row.steps[k].name, row.steps[k].schedule);
    PO_PUSH(record->arena, record->regions, record->n_regions, record->cap_regions, row);
}

/* --- the stage --- */

static po_status build(cuda_making *m, const cuda_variant *f, const po_object_store *objects,
                       const po_library **library) {
    const po_run *run = m->run;
    po_cuda_kernel *kernels = PO_NEW_N(run->arena, po_cuda_kernel, m->n + 1);
    bool *in = PO_NEW_N(run->arena, bool, m->n + 1);
    uint32_t n = 0;
    for (uint32_t i = 0; i < f->regions.n; i++) {
        if (f->why[i] || in[f->which[i]])
            continue;
        in[f->which[i]] = true;
        kernels[n++] = m->pool[f->which[i]]->kernel;
    }
    const po_cuda_library_spec spec = {
        .cc = run->options->cc, .store = objects, .kernels = kernels, .n_kernels = n};
    return n > 0 ? po_cuda_library_build(run->ctx, run->arena, &spec, library) : PO_OK;
}

static void tell_all(cuda_making *m, const cuda_variant *f) {
    uint32_t slow = 0, late = 0;
    for (uint32_t i = 0; i < f->regions.n; i++) {
        slow += f->why[i] == cuda_no_faster;
        late += f->why[i] == cuda_no_time;
        if (f->why[i] && f->why[i] != cuda_no_faster && f->why[i] != cuda_no_time)
            po_record_note(m->run->record, "region %u stays with the runtime: %s", i, f->why[i]);
        tell(m, f, i);
    }
    if (slow > 0)
        po_record_note(m->run->record, "%u of %u regions stay with the runtime: %s%s", slow,
                       f->regions.n, m->run->gpu_cost && !f->open ? "" : "by estimate ",
                       cuda_no_faster);
    if (late > 0)
        po_record_note(m->run->record,
                       "%u of %u regions stay with the runtime: %s (--time-limit S gives more)",
                       late, f->regions.n, cuda_no_time);
    if (f->open && f->regions.n > 0)
        po_record_note(m->run->record,
                       "the batch is open: kernels take any, and were chosen by estimates for %u "
                       "(--batch)",
                       m->run->options->batch);
}

static void print_programs(const cuda_making *m, const cuda_variant *f, const char **programs) {
    po_text text;
    po_text_init(&text, m->run->arena);
    for (uint32_t i = 0; i < f->regions.n; i++)
        if (!f->why[i])
            po_dump_program(&text, i, m->pool[f->which[i]]->mu);
    *programs = text.size ? text.data : NULL;
}

po_status po_stage_cuda_model(const po_run *run, const po_simplified *simplified,
                              po_cuda_forms **out) {
    po_cost *cost;
    *out = NULL;
    if (!run->options->kernels)
        return PO_OK;
    PO_TRY(po_run_cost(run, &cost));
    po_cuda_forms *c = PO_NEW(run->arena, po_cuda_forms);
    c->m = (cuda_making){.run = run, .ctx = run->ctx, .memo = po_gpu_memo_create(run->arena)};
    PO_TRY(po_run_rates(run, &c->m.rates));
    PO_TRY(po_run_nvrtc(run, &c->m.nvrtc));
    c->cubins = (po_kept_objects){cost->cache, "cubin"};
    c->libraries = (po_kept_objects){cost->cache, "library"};
    c->images = po_kernel_stage_store(&c->cubins);
    c->objects = po_kernel_stage_store(&c->libraries);
    c->m.images = &c->images;
    c->from[MODEL] = simplified->graph;
    c->chooser = po_chooser_create(
        run->ctx, run->arena,
        &(po_chooser_rules){
            .bases = 1u << MODEL, .beam = 1, .most = BASES, .gain = 1, .price = price, .user = c});
    po_chooser_add(c->chooser, MODEL, 0);
    PO_TRY(po_chooser_run(c->chooser));
    *out = c;
    return PO_OK;
}

/* The best of the model and of those with mutants. */
static po_status choose(po_cuda_forms *c, const po_chosen *chosen, cuda_variant **best) {
    for (po_mutated_kind k = 0; k < PO_MUTATED_KINDS; k++) {
        c->from[MUTATED + k] = chosen->mutated[k].graph;
        if (c->from[MUTATED + k])
            po_chooser_add(c->chooser, MUTATED + k, 0);
    }
    PO_TRY(po_chooser_run(c->chooser));
    const po_combination *found = po_chooser_best(c->chooser, 0);
    *best = &c->forms[found ? found->number : 0];
    if (!c->m.run->gpu_cost || (*best)->open)
        PO_TRY(cuda_choose_kernels(&c->m, *best));
    return cuda_compile_chosen(&c->m, *best);
}

po_status po_stage_cuda(po_cuda_forms *forms, const po_chosen *chosen, po_kernels *out) {
    cuda_variant *f;
    *out = (po_kernels){.search = chosen->search};
    if (!forms)
        return PO_OK;
    PO_TRY(choose(forms, chosen, &f));
    PO_TRY(build(&forms->m, f, &forms->objects, &out->library));
    if (out->library)
        PO_TRY(place(&forms->m, f, out));
    tell_all(&forms->m, f);
    if (po_dump_is_asked(forms->m.run, "superopt"))
        print_programs(&forms->m, f, &out->programs);
    return PO_OK;
}
